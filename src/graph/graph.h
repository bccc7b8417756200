/* SPDX-License-Identifier: MIT */
/* Single-assignment nodes in an arena, one graph per kind of layer. Streams
 * and data enter and leave by name; parameters are leaf nodes. Jacobian
 * algebra, lane, diagram and exports read the graph and nothing else. */
#ifndef TB_GRAPH_GRAPH_H
#define TB_GRAPH_GRAPH_H

#include "equation/equation.h"
#include "ops/op.h"
#include "tollbooth/block.h"

/** a*d + b: a width as the text spells it, for messages and tables. */
typedef struct tb_dim {
    double per_d, fixed;
} tb_dim;

/** What a parameter is; AdamW decays matrices only. */
typedef enum tb_role {
    TB_ROLE_MATRIX, /* a linear's weight [out, in] */
    TB_ROLE_BIAS,
    TB_ROLE_GAIN,
    TB_ROLE_SCALAR,
    TB_ROLE_VECTOR,
    TB_ROLE_EMBEDDING, /* [rows, width]; not decayed */
    TB_ROLE_TABLE,     /* matrix(...): a matrix that is a value; not decayed */
    TB_ROLE_BUFFER     /* a running statistic: no parameter. Stands in files and
                          in the flat buffer, not before the optimizer */
} tb_role;

const char *tb_role_name(tb_role r);

/** A parameter the graph owns. `name` is its slot inside the layer
 * ("attn.q.weight", "norm.gain"); the model prefixes "layers.3.". */
typedef struct tb_param {
    const char *name;
    tb_role role;
    tb_shape shape;       /* MATRIX, VECTOR or SCALAR */
    const tb_expr *start; /* as the text says: a constant or an init rule; or
                             NULL */
    tb_pos pos;
    int node;    /* its leaf */
    bool shared; /* one for the whole model, not of one stack: embed.token,
                    head */
} tb_param;

/** A constant of a node, folded per layer when the model is built. */
typedef struct tb_attr {
    const tb_expr *expr; /* NULL: `value` */
    double value;
    const char *shown; /* the name the text gave it (alpha), or NULL */
} tb_attr;

typedef struct tb_node {
    const tb_op *op;
    int nin;
    int in[TB_OP_INPUTS];
    tb_attr attr[TB_OP_ATTRS];
    int k; /* sublayer number in the block, from 1; 0: none yet */
    tb_shape shape;
    tb_dim dim;       /* its width, symbolically */
    int region;       /* innermost sublayer call it is inside, -1: none */
    int param;        /* index into params for `param` nodes, else -1 */
    bool of_memory;   /* its rows are the memory's tokens, not the stack's */
    const char *name; /* input's name, or the local it was assigned to */
    tb_pos pos;
} tb_node;

/** A sublayer call F(e), attn(e), ffn(e): nodes first..last computed `out`
 * from `in` ([0] is the argument; [1] memory where it is read). */
typedef struct tb_region {
    const char *name;  /* "attn", "ffn", "cross" */
    const char *shown; /* as written: "F" or the name */
    int nin, in[2], out, first, last;
    int k;
    tb_pos pos;
} tb_region;

/** A place every path from x in to x out passes: boundary 0 is x in, the
 * last is x out; between two of them lie the sublayers of one step. */
typedef struct tb_boundary {
    int node;
    const char *name; /* sublayers since the boundary before: "attn", "ffn",
                         "attn+ffn"; "" if none */
    int first_region, nregions;
} tb_boundary;

/** Nodes, one per stream, that together every path from the streams in to the
 * streams out passes. Cut 0 holds the streams in, the last the streams out;
 * a graph of one stream has the nodes of its boundaries. */
typedef struct tb_cut {
    const int *nodes;
    const char *name; /* sublayers since the cut before, as in tb_boundary */
} tb_cut;

typedef struct tb_output {
    const char *name; /* "x", "logits", "loss", or "" for eval's value */
    int node;
} tb_output;

/** A list that leaves a graph. Its elements are called name.0, name.1, ...;
 * those that entered under their names are no outputs. */
typedef struct tb_list {
    const char *name;
    int n, entered; /* elements that leave, that came from below */
    tb_shape *shapes;
    tb_dim *dims;
} tb_list;

typedef struct tb_graph {
    tb_arena *arena;
    const tb_block *block;
    int nnodes, nparams, nregions, nboundaries, ninputs, noutputs;
    tb_node *nodes; /* topological order */
    tb_param *params;
    tb_region *regions;
    tb_boundary *boundaries; /* single-stream graphs; else in and out only */
    int *inputs;             /* node indices of leaves that data enters by */
    tb_output *outputs;
    int ncarried; /* streams that go on: the first of the outputs */
    int nlists;
    tb_list *lists;      /* that go on beside them */
    int nstreams, ncuts; /* at most TB_STREAMS_MOST streams stand in cuts */
    const char **streams;
    tb_cut *cuts;
} tb_graph;

enum { TB_STREAMS_MOST = 16 };

/** Sizes the builder needs: settings with nothing unset. */
typedef struct tb_sizes {
    tb_settings s;
    double N, M;
    int eps_mode; /* tb_eps_mode and tb_variance that model: asks of norms */
    int variance;
    double rope_base; /* 0: not said */
    tb_origin norm_from, eps_from;
} tb_sizes;

/** tb_sizes_resolve - options over the block's model: section over defaults;
 * TB_ERR_ARG for impossible ones (width not divisible by heads, eps < 0 or
 * nan, dropout outside [0,1)). */
tb_status tb_sizes_resolve(tb_ctx *ctx, const tb_block *b,
                           const tb_settings *given, tb_sizes *out);

/** tb_settings_outputs - what the head tells apart: classes, else tokens. */
size_t tb_settings_outputs(const tb_settings *s);

/** Sublayers of a stack, in order, for F. */
typedef enum tb_stack {
    TB_STACK_DECODER, /* attn ffn, causal by the settings */
    TB_STACK_ENCODER, /* attn ffn, full */
    TB_STACK_CROSS    /* attn cross ffn, of a decoder that has an encoder */
} tb_stack;

/** tb_sizes_top - the stack that the head stands on; of two stacks the other
 * one is TB_STACK_ENCODER. */
tb_stack tb_sizes_top(const tb_sizes *sizes);
/** tb_sizes_depth - its blocks: N of an encoder, else M. */
size_t tb_sizes_depth(const tb_sizes *sizes, tb_stack stack);

/** tb_section_serves - is this section for that stack? Of two stacks each takes
 * the sections of its role and those without one; a single stack takes those
 * without a role and, where the text has none of that kind, its own role's. */
bool tb_section_serves(const tb_block *b, const tb_section *s,
                       const tb_sizes *sizes, tb_stack stack);

/** tb_graph_layer - the graph of block l (1..N): the first block section that
 * serves the stack and whose condition holds. Inputs: "x" (and further streams
 * by name), in a decoder with an encoder "memory", and with padding, where
 * something attends, "x.keep" [B,T,1] and "memory.keep" [B,S,1]: 1 for a token,
 * 0 for padding. Output "x" and the further streams. Two layers with the same
 * section have the same graph; *section tells which. Everything lives in
 * `arena`. */
tb_status tb_graph_layer(tb_ctx *ctx, tb_arena *arena, const tb_block *b,
                         const tb_sizes *sizes, tb_stack stack, size_t l,
                         tb_graph **out);
/** tb_graph_layer_on - the same where the graph below it is at hand: that of
 * layer l - 1 of its stack, or of the stem. tb_graph_layer makes it first. With
 * lists every block has a graph of its own, which has as many inputs as it
 * reads elements. */
tb_status tb_graph_layer_on(tb_ctx *ctx, tb_arena *arena, const tb_block *b,
                            const tb_sizes *sizes, tb_stack stack, size_t l,
                            const tb_graph *below, tb_graph **out);
/** tb_graph_section - index of that section, or TB_ERR_PARSE if none holds */
tb_status tb_graph_section(tb_ctx *ctx, const tb_block *b,
                           const tb_sizes *sizes, tb_stack stack, size_t l,
                           int *section);

/** The blocks of one section. */
typedef struct tb_section_use {
    size_t first, last; /* their l, from 1 */
    size_t blocks;      /* how many; 0: none */
    bool repeats;       /* two of them stand on each other */
} tb_section_use;

/** tb_graph_sections - the same for every block of the stack, into
 * use[nsections]; TB_ERR_ARG where so many blocks have so many conditions that
 * it would take minutes. */
tb_status tb_graph_sections(tb_ctx *ctx, const tb_block *b,
                            const tb_sizes *sizes, tb_stack stack,
                            tb_section_use *use);

/** tb_graph_stem - tokens -> embedding (+ positions, dropout) -> stem:.
 * Inputs "tokens"; output "x" (and further streams). */
tb_status tb_graph_stem(tb_ctx *ctx, tb_arena *arena, const tb_block *b,
                        const tb_sizes *sizes, tb_stack stack, tb_graph **out);

/** tb_graph_memory - x -> final: of the encoder of two stacks. Input "x" (and
 * further streams), output "memory". Boundaries as in the tail. */
tb_status tb_graph_memory(tb_ctx *ctx, tb_arena *arena, const tb_block *b,
                          const tb_sizes *sizes, tb_graph **out);

tb_status tb_graph_memory_on(tb_ctx *ctx, tb_arena *arena, const tb_block *b,
                             const tb_sizes *sizes, const tb_graph *below,
                             tb_graph **out);

/** tb_graph_tail - x -> final: -> head -> loss, of the top stack. Inputs "x",
 * "targets"; outputs "logits" and "loss". Boundary 0 is x, boundary 1 the final
 * value. */
tb_status tb_graph_tail(tb_ctx *ctx, tb_arena *arena, const tb_block *b,
                        const tb_sizes *sizes, tb_graph **out);

tb_status tb_graph_tail_on(tb_ctx *ctx, tb_arena *arena, const tb_block *b,
                           const tb_sizes *sizes, const tb_graph *below,
                           tb_graph **out);

/** A value --set gives to eval. */
typedef struct tb_eval_input {
    const char *name;
    tb_shape shape; /* STREAM, SCALAR; parameters are matched by name later */
} tb_eval_input;

/** tb_graph_eval - EXPR with the given inputs; output "" is the last value. A
 * tuple is an output whose parts are joined along the width. */
tb_status tb_graph_eval(tb_ctx *ctx, tb_arena *arena, const tb_block *b,
                        const tb_sizes *sizes, const tb_eval_input *inputs,
                        int ninputs, tb_graph **out);

/** tb_graph_attrs - fold every node's attributes for block l into
 * out[nnodes][TB_OP_ATTRS]. */
tb_status tb_graph_attrs(tb_ctx *ctx, const tb_graph *g, const tb_sizes *sizes,
                         size_t l, double (*out)[TB_OP_ATTRS]);

/** tb_graph_dump - one line per node, canonical: equal graphs print the
 * same, however their parameters and locals are called. */
void tb_graph_dump(const tb_graph *g, tb_buf *out);

/** tb_graph_placement - the same for placements: sublayers are one node each,
 * every kind of norm is a norm, constants are those of the layer whose folded
 * attributes are given, random drop is not there. */
tb_status tb_graph_placement(tb_ctx *ctx, const tb_graph *g,
                             const double (*attr)[TB_OP_ATTRS], tb_buf *out);

/* --- derived from the graph --------------------------------------------- */

typedef enum tb_lane_kind {
    TB_LANE_KIND_CLEAN,  /* exactly 1 */
    TB_LANE_KIND_SCALED, /* a constant */
    TB_LANE_KIND_GATED,  /* learned or data-dependent factor */
    TB_LANE_KIND_TOLL,   /* one or more norms */
    TB_LANE_KIND_NONE    /* no path without a branch */
} tb_lane_kind;

const char *tb_lane_kind_name(tb_lane_kind k);

typedef struct tb_lane_info {
    tb_lane_kind kind;
    int tolls;               /* norms on the lane of one block */
    const char *coefficient; /* product of the constant factors, as text */
    double value; /* the same as a number where attributes are given */
} tb_lane_info;

/** tb_graph_lane - from input "x" to output "x" (or the first output). */
tb_status tb_graph_lane(tb_ctx *ctx, const tb_graph *g, tb_arena *arena,
                        tb_lane_info *out);

/** tb_graph_lane_between - from one node to another; attr are the folded
 * attributes of a layer (tb_graph_attrs), or NULL. */
tb_status tb_graph_lane_between(tb_ctx *ctx, const tb_graph *g, tb_arena *arena,
                                int from, int to,
                                const double (*attr)[TB_OP_ATTRS],
                                tb_lane_info *out);

/** tb_graph_on_lane - marks[node] = 1 for nodes on a lane path from boundary
 * lo to hi, the node at hi included, the one at lo not. */
void tb_graph_on_lane(const tb_graph *g, int lo, int hi, unsigned char *marks);

/* --- symbolic Jacobian ---------------------------------------------------- */

typedef enum tb_jx_kind {
    TB_JX_ZERO,
    TB_JX_ONE,    /* I */
    TB_JX_SUM,    /* items, each with its sign */
    TB_JX_PROD,   /* items, left to right; they do not commute */
    TB_JX_SYM,    /* J_<name>(node), or J_<name> where node is -1 */
    TB_JX_SLOPE,  /* diag(<name>'(node)) */
    TB_JX_DIAG,   /* diag(node) */
    TB_JX_COEF,   /* a constant: attr */
    TB_JX_SCALAR, /* a learned scalar, or weight `input` of the mix at `at`:
                     node */
    TB_JX_WEIGHT, /* the matrix of a linear: name */
    TB_JX_TOKENS  /* such a weight that each token has its own of */
} tb_jx_kind;

/** A term of the Jacobian, shared where it occurs more than once. */
typedef struct tb_jx {
    tb_jx_kind kind;
    const char *name;
    int node;
    int at;    /* the node whose rule made this factor */
    int input; /* SYM of an op with several inputs, weights of mix: which */
    const tb_attr *attr;
    bool inverse; /* COEF, SCALAR, DIAG: 1/it */
    int n;
    const struct tb_jx **items;
    const signed char *signs;
} tb_jx;

/** How sublayers appear in a Jacobian. */
typedef enum tb_jac_mode {
    TB_JAC_CLOSED, /* one symbol J_F(arg) */
    TB_JAC_OPEN,   /* down to their weights */
    TB_JAC_SILENT, /* F = 0: gone, with their Jacobians */
    TB_JAC_LANE    /* everything that is cut gives nothing; values stay */
} tb_jac_mode;

/** d streams out / d streams in of a graph: one matrix per step between cuts,
 * to be multiplied last to first. Entry (i, j) of step f, what stream i out
 * of the step takes from stream j into it, is
 * entries[(f*nstreams + i)*nstreams + j]. */
typedef struct tb_jacobian {
    const tb_graph *graph;
    tb_jac_mode mode;
    int nfactors, nstreams;
    int first; /* step that factor 0 is of; not 0 in part of a product */
    const tb_jx **entries;
    const bool *silent;        /* per node: its value is 0 where every F is */
    const signed char *degree; /* per node, or NULL: formulas show only what
                                  grows most (tb_large_form) */
} tb_jacobian;

tb_status tb_jacobian_build(tb_ctx *ctx, tb_arena *arena, const tb_graph *g,
                            tb_jac_mode mode, tb_jacobian *out);

/** tb_jacobian_memory - d x out / d memory of a decoder block: the step that
 * reads the memory, and those above it. *said is false where there is none,
 * and of several streams or several such steps, whose sum is no product. */
tb_status tb_jacobian_memory(tb_ctx *ctx, tb_arena *arena, const tb_graph *g,
                             tb_jac_mode mode, tb_jacobian *out, bool *said);

/** tb_jacobian_between - d node `to` / d node `from`. */
tb_status tb_jacobian_between(tb_arena *arena, const tb_graph *g, int from,
                              int to, tb_jac_mode mode, const tb_jx **out);

/** tb_jacobian_sublayer - d output of a sublayer / d its argument, or of input
 * 1 its memory, down to its weights. What else it reads stays as it is,
 * although it may depend on the argument. */
tb_status tb_jacobian_sublayer(tb_arena *arena, const tb_graph *g, int region,
                               int input, const tb_jx **out);

typedef enum tb_notation {
    TB_NOTE_TEXT,
    TB_NOTE_LATEX,
    TB_NOTE_MATHML
} tb_notation;

/** A name that a formula uses for a longer one. */
typedef struct tb_where {
    const char *name, *is;
} tb_where;

/** A Jacobian in pieces, for those who lay it out themselves. */
typedef struct tb_jac_parts {
    int nstreams, nfactors; /* factors that are written: fewer than the
                               Jacobian has where one stands for each */
    const char **streams;   /* their names, in the notation */
    const char **cells;     /* as tb_jacobian.entries, in the notation; NULL:
                               too long, as are those before it */
    const bool *loose;      /* per cell: brackets in a product */
    const bool *unit;       /* per cell: it is I */
    int nwhere;
    tb_where *where;
} tb_jac_parts;

/** tb_jacobian_parts - strings live in `arena`. Very long formulas end in an
 * ellipsis. */
tb_status tb_jacobian_parts(tb_ctx *ctx, tb_arena *arena, const tb_jacobian *j,
                            tb_notation note, tb_jac_parts *out);

/** tb_jacobian_print - the product, with what its names stand for; where every
 * step reads the same (the text spells its sublayers F), one step. Several
 * streams give matrices: [ a, b ; c, d ]. MathML is a whole <math> element. */
tb_status tb_jacobian_print(tb_ctx *ctx, const tb_jacobian *j, tb_notation note,
                            tb_buf *out);

/** tb_jacobian_steps - 1 where tb_jacobian_print writes one step that stands
 * for each of them, else the number of factors it writes. */
int tb_jacobian_steps(tb_ctx *ctx, const tb_jacobian *j);

/** tb_formula_print - a node as a formula of its step's x. */
tb_status tb_formula_print(tb_ctx *ctx, const tb_graph *g, int node,
                           tb_notation note, tb_buf *out);

/* --- F -> t F, t -> infinity ---------------------------------------------- */

/** Powers of t. Values that vanish, and what the rules cannot say. */
enum { TB_LARGE_NONE = -100, TB_LARGE_UNKNOWN = 100 };

/** One step with every F times t, its streams in held: how each value grows,
 * and the Jacobian's terms that grow most, stream out by stream out. */
typedef struct tb_large_form {
    int nstreams, step;
    signed char *degree; /* per node */
    signed char value[TB_STREAMS_MOST], jacobian[TB_STREAMS_MOST],
        lane[TB_STREAMS_MOST];
    tb_jacobian leading; /* of this step alone; a row that vanishes is 0 */
} tb_large_form;

tb_status tb_large_form_build(tb_ctx *ctx, tb_arena *arena, const tb_graph *g,
                              int step, tb_large_form *out);
/** tb_large_value_print - what stream i tends to, without its power of t. */
tb_status tb_large_value_print(const tb_large_form *l, int i, tb_notation note,
                               tb_buf *out);

/* --- contributions -------------------------------------------------------- */

/** tb_graph_contributions - the branch operands that are added to the lane
 * between boundaries lo and hi: node and factor (+1, -1), at most cap; the
 * count, -1 if memory ran out. */
typedef struct tb_contribution {
    int node;
    double factor;
} tb_contribution;
int tb_graph_contributions(const tb_graph *g, int lo, int hi,
                           tb_contribution *out, int cap);

#endif
