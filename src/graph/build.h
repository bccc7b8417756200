/* SPDX-License-Identifier: MIT */
/* From statements to nodes: the builder's state, shared by build.c (names,
 * nodes), build_expr.c, build_section.c, calls.c (functions) and stack.c (whole
 * graphs). */
#ifndef TB_GRAPH_BUILD_H
#define TB_GRAPH_BUILD_H

#include "graph/graph.h"

/** What an expression turned out to be. */
typedef enum tb_val_kind {
    TB_VAL_CONST, /* expr: numbers and N M l k d h only */
    TB_VAL_NODE,
    TB_VAL_LIST
} tb_val_kind;

/** An element of a list. One from a block below becomes an input of the graph
 * where something first reads it; lists that hold it share that. */
typedef struct tb_item {
    int node;         /* -1: an input nothing has read yet */
    const char *name; /* of an input: "past.2" */
    tb_shape shape;
    tb_dim dim;
} tb_item;

typedef struct tb_val {
    tb_val_kind kind;
    const tb_expr *expr; /* CONST: names already replaced */
    const char *shown;   /* CONST: the local's name, or NULL */
    int node;            /* NODE */
    int size; /* CONST: operations in expr, each as often as it is read */
    tb_item **items; /* LIST */
    int nitems;
} tb_val;

/** An owned linear: weight and bias leaves. */
typedef struct tb_lin {
    int weight, bias; /* nodes; bias -1: none */
} tb_lin;

/** One name in scope. A declaration (scalar, vector, linear) is made once:
 * the repeats of a section share it. */
typedef struct tb_binding {
    const char *name;
    tb_val val;
    tb_lin lin;
    bool is_value, is_linear;
    const tb_expr *declared; /* the scalar(...), vector(...), linear(...) that
                                made `learned` or `lin` */
    tb_val learned;
    uint64_t hash;
    int next; /* in its hash chain, -1: end */
} tb_binding;

typedef struct tb_scope {
    tb_binding *items;
    int count, cap;
    int *heads;
    int nheads;
} tb_scope;

/** How often a parameter base name was used: "attn.norm" -> 2. */
typedef struct tb_slot_count {
    const char *base;
    int count;
} tb_slot_count;

typedef struct tb_builder {
    tb_ctx *ctx;
    tb_arena *arena;
    tb_graph *g;
    const tb_graph
        *below; /* whose streams and lists enter; of stem and eval NULL */
    const tb_block *block;   /* whose positions errors show */
    const tb_block *prelude; /* default attn and ffn */
    const tb_sizes *sizes;
    bool eval; /* names of --set are inputs; parameters named by call */
    bool causal;
    tb_stack stack;
    int keep[2]; /* leaves that say what is padding among the stack's own
                    tokens and among memory's; -1: not made */
    const tb_eval_input *sets;
    int nsets;
    int cap_nodes, cap_params, cap_regions, cap_inputs, cap_outputs, cap_lists;
    tb_scope scope;             /* the section's values and linears */
    const struct tb_args *args; /* of the definition being expanded */
    int depth;                  /* of expressions being built */
    size_t steps, steps_max;    /* expressions built so far, allowed */
    int k;                      /* sublayer being built, from 1 */
    const char *sub;            /* what F means now, or NULL */
    bool sub_is_f;              /* the section spells its sublayer F */
    const char *place;          /* "stem", "final", or NULL in a block */
    const char *owner;          /* prefix of parameter names: "attn", "" */
    int region;                 /* innermost region, -1 */
    int l;                      /* the layer, or the first of its section */
    unsigned char *def_calls;   /* per definition: TB_CALLS_*, 0: not known */
    bool has_pos;
    tb_pos pos; /* inside the prelude: the call's position */
    tb_slot_count *slots;
    int nslots, cap_slots;
    struct tb_mark *marks; /* candidates for boundaries */
    int nmarks, cap_marks;
} tb_builder;

/** x, and every stream, after a statement or repeat, and regions made so
 * far. */
typedef struct tb_mark {
    int node, regions;
    int *streams; /* per input of the graph its node now, -1: no stream */
} tb_mark;

/** Arguments of a definition while its body is expanded. */
typedef struct tb_args {
    const tb_def *def;
    const tb_val *vals;
    const struct tb_args *outer; /* of the definition that called it */
} tb_args;

/** Bits: the sublayers that an expression calls, itself or through
 * definitions. */
enum {
    TB_CALLS_ATTN = 1,
    TB_CALLS_CROSS = 2,
    TB_CALLS_FFN = 4,
    TB_CALLS_F = 8,
    TB_CALLS_KNOWN = 128 /* of def_calls */
};

/** Texts are bounded, what definitions make of them is not. */
enum {
    TB_LIST_MOST = 512,     /* elements: blocks times elements are nodes */
    TB_STEPS_MAX = 1 << 20, /* expressions of one graph */
    TB_STEPS_FREE = 200000, /* for a short text; and 8 for each byte */
    TB_CONST_MAX = 10000,   /* operations of one constant */
    TB_EXPAND_MAX = 2 * TB_DEPTH_MAX /* depth of expressions in one another */
};

tb_status tb_build_begin(tb_builder *b, tb_ctx *ctx, tb_arena *arena,
                         const tb_block *block, const tb_sizes *sizes,
                         tb_stack stack);

/* nodes */
tb_status tb_build_node(tb_builder *b, const tb_op *op, const int *in, int nin,
                        const tb_attr *attr, tb_pos pos, int *out);
tb_status tb_build_leaf(tb_builder *b, const tb_op *op, const char *name,
                        tb_shape shape, tb_dim dim, int *out);
tb_status tb_build_param(tb_builder *b, const char *base, const char *suffix,
                         tb_role role, tb_shape shape, tb_dim dim,
                         const tb_expr *start, tb_pos pos, int *out);
/** tb_build_slot - "attn.norm", the second time "attn.norm2". */
tb_status tb_build_slot(tb_builder *b, const char *base, const char **out);
/** tb_build_linear - weight [out, in] and bias leaves named base.weight,
 * base.bias. bias < 0: by the settings. */
tb_status tb_build_linear(tb_builder *b, const char *base, size_t in,
                          size_t out_width, tb_dim out_dim, int bias,
                          tb_pos pos, tb_lin *out);
tb_status tb_build_apply(tb_builder *b, tb_lin lin, int x, const char *name,
                         tb_pos pos, int *out);

/* names */
tb_binding *tb_scope_find(tb_scope *s, const char *name);
tb_status tb_scope_put(tb_builder *b, const char *name, tb_binding **out);

/* expressions and statements */
tb_status tb_build_expr(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_build_value(tb_builder *b, const tb_expr *e, int *node);
/** tb_build_tuple_args - where *e calls a definition whose body is (a, b):
 * *e becomes the body and *args its arguments. */
tb_status tb_build_tuple_args(tb_builder *b, const tb_expr **e,
                              struct tb_args *args);
tb_status tb_build_call(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_build_section(tb_builder *b, const tb_section *s);
/** tb_build_keep - the mask [B,T,1] of the tokens that are no padding: the
 * stack's own, or memory's. -1 in a model without padding. */
tb_status tb_build_keep(tb_builder *b, bool of_memory, int *node);
/** tb_build_no_encoder - `what` is of decoder blocks that have an encoder. */
tb_status tb_build_no_encoder(tb_builder *b, tb_pos pos, const char *what);
/** tb_build_width - fold a width such as 4*d at d and 2d: number and dim. */
tb_status tb_build_width(tb_builder *b, const tb_expr *e, size_t *width,
                         tb_dim *dim);
tb_status tb_build_fold(tb_builder *b, const tb_expr *e, double *out);
tb_status tb_build_fail(tb_builder *b, tb_pos pos, const char *fmt, ...)
    TB_PRINTF(3, 4);

/** tb_build_calls - TB_CALLS_* of an expression. */
unsigned tb_build_calls(tb_builder *b, const tb_expr *e);
/** tb_build_const - `copy` over constant operands: depth and size bounded. */
tb_status tb_build_const(tb_builder *b, const tb_expr *e, const tb_val *v,
                         tb_val *out);

/* functions (calls.c) */
const tb_def *tb_def_find(const tb_block *block, const char *name);
/** tb_declares - true for scalar(...), vector(...), linear(...). */
bool tb_declares(const tb_expr *e);
tb_status tb_build_declare(tb_builder *b, const char *name, const tb_expr *e);

/* lists (lists.c) */

/** tb_build_item - the node of an element. */
tb_status tb_build_item(tb_builder *b, tb_item *item, int *node);
/** tb_build_list - a list of n elements yet to be said. */
tb_status tb_build_list(tb_builder *b, int n, tb_val *out);

/** A stream, or the elements of a list: what a function of one stream is
 * applied to. */
typedef struct tb_each {
    int *nodes, n;
    bool list;
} tb_each;

tb_status tb_build_each(tb_builder *b, const tb_expr *e, tb_each *out);
tb_status tb_build_each_of(tb_builder *b, tb_pos pos, const tb_val *v,
                           tb_each *out);
/** tb_build_each_value - the results as a stream, or as a list. */
tb_status tb_build_each_value(tb_builder *b, const tb_each *each, tb_val *out);
/** tb_build_pairs - an op of two streams: of each element where one is a list,
 * element by element where both are. */
tb_status tb_build_pairs(tb_builder *b, const tb_op *op, const tb_expr *e,
                         const tb_val v[2], tb_val *out);
/** tb_build_spread - the arguments from `from` on in a row, lists spread out;
 * out->list: there was one. */
tb_status tb_build_spread(tb_builder *b, const tb_expr *e, int from,
                          tb_each *out);

tb_status tb_call_list(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_append(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_item(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_size(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_total(tb_builder *b, const tb_expr *e, tb_val *out);

/* what goes from graph to graph (carry.c) */

tb_status tb_carry_bind(tb_builder *b, const char *name, int node);
tb_status tb_carry_input(tb_builder *b, const char *name);
/** tb_carry_begin - the stem's outputs: x, then every name that holds a stream
 * or a list there (ruling 3). */
tb_status tb_carry_begin(tb_builder *b, tb_pos pos);
/** tb_carry_in - the streams and lists that b->below leaves, as names. */
tb_status tb_carry_in(tb_builder *b);
/** tb_carry_out - the same names as outputs. */
tb_status tb_carry_out(tb_builder *b, tb_pos pos);
/** tb_carry_check - the node of a stream that leaves: [B, T, d]. */
tb_status tb_carry_check(tb_builder *b, const char *name, tb_pos pos,
                         int *node);

/* boundaries (boundary.c) */
/** tb_build_mark - the streams as they are now. */
tb_status tb_build_mark(tb_builder *b);
tb_status tb_build_boundaries(tb_builder *b, int in, int out);
/** tb_build_cuts - after the boundaries: g->streams and g->cuts, of every
 * output that has an input of its name. */
tb_status tb_build_cuts(tb_builder *b);
tb_status tb_build_output(tb_builder *b, const char *name, int node);

#define TB_GROW(b, field, count, cap, type)                                    \
    tb_build_grow((b)->arena, (void **)&(field), (count), &(cap), sizeof(type))
tb_status tb_build_grow(tb_arena *a, void **items, int count, int *cap,
                        size_t size);

#endif
