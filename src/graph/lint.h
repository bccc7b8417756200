/* SPDX-License-Identifier: MIT */
/* Inside lint: what the checks read. lint.c runs them, lint_table.c lists
 * them, lint_look.c looks at one graph; lint_lane.c, lint_norm.c,
 * lint_stacks.c, lint_scale.c and lint_names.c are the checks. */
#ifndef TB_GRAPH_LINT_H
#define TB_GRAPH_LINT_H

#include "base/number.h"
#include "graph/graph.h"
#include "tollbooth/lint.h"

/** A constant where it is used, with four times as many blocks, and four
 * times as high up: what it depends on. NaN: not known. */
typedef struct lint_factor {
    double at, at_4N, at_4l;
} lint_factor;

/** lint_by_N, lint_by_l - 1: grows with it, -1: falls, 0: neither. */
int lint_by_N(lint_factor f);
int lint_by_l(lint_factor f);

/** How a parameter starts. */
typedef struct lint_start {
    lint_factor size; /* standard deviation, gain or value */
    bool zero;        /* exactly 0 everywhere */
    int rule;         /* line of init: that decides, -1: none */
} lint_start;

/** How one sublayer joins the lane. Nodes are -1 where there is none. */
typedef struct lint_use {
    int sum;            /* on the lane, where its output is added */
    int norm_in;        /* the norm its argument comes from */
    int norm_inner;     /* the norm right before its last weight */
    int norm_out;       /* the norm on its output */
    int norm_top;       /* the norm on the lane right above the sum */
    lint_factor branch; /* constants on argument and output */
    lint_factor output; /* constants on the output alone */
    int gate;           /* node of a learned factor on the output */
    bool gate_zero;     /* which starts at 0 */
    int last;           /* parameter: the weight that ends it */
    int base;           /* where the skip of the sum starts */
    lint_factor skip;   /* constants on it */
    bool skip_plain;    /* nothing else stands on it */
    bool reads_base;    /* the sublayer, or its norm, reads that node */
} lint_use;

/** One graph and what is asked about it again and again. */
typedef struct lint_graph {
    const tb_graph *g;
    size_t first, count; /* layers; 0: stem, tail */
    int below;           /* kind of the layer under the first, -1: the stem */
    bool repeats;        /* stands on a layer of its own kind somewhere */
    bool many;           /* several streams */
    double (*attr)[TB_OP_ATTRS]; /* in layer `first` */
    int *users_at, *users;       /* of node i: users_at[i] .. users_at[i+1] */
    unsigned char *lane;         /* between a stream in and a stream out */
    unsigned char *loose;        /* the same, element-wise functions allowed */
    unsigned char *reach;        /* an output depends on it */
    unsigned char *joins;        /* and not only through a sublayer */
    unsigned char *branch;       /* holds a sublayer\'s output */
    unsigned char *raw;          /* not normed since it entered */
    unsigned char *order;        /* factors at 0 at the start, at most 3 */
    lint_start *start;           /* per parameter */
    lint_use *use;               /* per region */
    tb_lane_info info;
    int top; /* x where the graph ends */
} lint_graph;

enum { LINT_FINDINGS = 200, LINT_DEAD = 3 };

/** Names of the text, by lint_names.c. */
struct lint_names;

typedef struct lint_row lint_row;

/** One stack of the model. Of an encoder under a decoder, `tail` is its final:
 * that makes the memory. */
typedef struct lint_stack {
    tb_stack which;
    lint_graph stem, tail, *kinds;
    int nkinds, last; /* kind of the last layer */
    int *kind_of;     /* per section: its kind, -1 */
} lint_stack;

struct tb_lint {
    tb_ctx *ctx;
    tb_arena arena;
    const tb_block *b;
    tb_block *extra; /* init rules of the settings, or NULL */
    tb_sizes sizes;
    bool given_drop;           /* the dropout rate is the user's, not ours */
    lint_stack stacks[2], *at; /* the one being looked at */
    int nstacks;
    bool *rule_hit, *rule_won; /* per line of init: */
    uint64_t *glob_hit;        /* the same, a bit for each of its first 64 */
    struct lint_names *names;
    const lint_row *row; /* being checked */
    int n;
    tb_finding found[LINT_FINDINGS];
};

/** One check. `g` is NULL for those of the whole stack. */
typedef tb_status (*lint_check)(tb_lint *L, const lint_graph *g);

/** Which graphs a check is run for. */
typedef enum lint_scope { LINT_STACK, LINT_LAYER, LINT_EACH } lint_scope;

struct lint_row {
    tb_lint_code say;
    lint_scope scope;
    lint_check check; /* NULL: found by another row's check or by lint.c */
};
extern const lint_row lint_rows[];
extern const size_t lint_nrows;

/* reporting (lint.c) */

/** lint_found - the row's code at a place, with its own message. */
void lint_found(tb_lint *L, tb_pos pos);
/** lint_said - the same with another level and message; TB_ERR_MEMORY if
 * `message` is NULL. */
tb_status lint_said(tb_lint *L, tb_pos pos, tb_lint_level level,
                    const char *message);
tb_pos lint_pos(const lint_graph *g, int node);

/* looking (lint_look.c) */

tb_status lint_look(tb_lint *L, lint_graph *g);
double lint_fold(tb_lint *L, const tb_expr *e, double N, double l, double k);
bool lint_is_norm(const lint_graph *g, int node);
/** lint_is_sum - an add or sub of two streams. */
bool lint_is_sum(const lint_graph *g, int node);
/** lint_below - node under factors, dropout and other single-stream ops that
 * pass the signal on. */
int lint_below(const lint_graph *g, int node);
/** lint_is_entry - where data enters. */
bool lint_is_entry(const lint_graph *g, int node);
bool lint_any_norm(const lint_graph *g);

bool lint_normed_off_lane(const lint_graph *g);
/** lint_starts_small - do the branches start smaller than they may? */
bool lint_starts_small(const lint_graph *g);
/** lint_ends_normed - does x leave through a norm? */
bool lint_ends_normed(const lint_graph *g);

/* checks */
tb_status lint_batch_causal(tb_lint *L, const lint_graph *g);
tb_status lint_batch_padding(tb_lint *L, const lint_graph *g);
tb_status lint_no_skip(tb_lint *L, const lint_graph *g);
tb_status lint_nonlinear_lane(tb_lint *L, const lint_graph *g);
tb_status lint_lane_scaled(tb_lint *L, const lint_graph *g);
tb_status lint_dropout_on_lane(tb_lint *L, const lint_graph *g);
tb_status lint_no_final_norm(tb_lint *L, const lint_graph *g);
tb_status lint_unbounded_stream(tb_lint *L, const lint_graph *g);
tb_status lint_two_norms(tb_lint *L, const lint_graph *g);
tb_status lint_double_norm(tb_lint *L, const lint_graph *g);
tb_status lint_stem_then_norm(tb_lint *L, const lint_graph *g);
tb_status lint_normed_skip(tb_lint *L, const lint_graph *g);
tb_status lint_skip_after_norm(tb_lint *L, const lint_graph *g);
tb_status lint_norm_after_add(tb_lint *L, const lint_graph *g);
tb_status lint_branch_not_added(tb_lint *L, const lint_graph *g);
tb_status lint_post_ln_deep(tb_lint *L, const lint_graph *g);

tb_status lint_unnormed_kv(tb_lint *L, const lint_graph *g);
tb_status lint_unnormed_branch(tb_lint *L, const lint_graph *g);
tb_status lint_eps_zero(tb_lint *L, const lint_graph *g);
tb_status lint_eps_too_small(tb_lint *L, const lint_graph *g);
tb_status lint_eps_large(tb_lint *L, const lint_graph *g);
tb_status lint_eps_differs(tb_lint *L, const lint_graph *g);
tb_status lint_norm_kinds(tb_lint *L, const lint_graph *g);
tb_status lint_norm_width(tb_lint *L, const lint_graph *g);
tb_status lint_same_norm(tb_lint *L, const lint_graph *g);
tb_status lint_shared_sublayer(tb_lint *L, const lint_graph *g);

tb_status lint_branch_scaled(tb_lint *L, const lint_graph *g);
tb_status lint_alpha_without_init(tb_lint *L, const lint_graph *g);
tb_status lint_alpha_fixed(tb_lint *L, const lint_graph *g);
tb_status lint_gain_inverted(tb_lint *L, const lint_graph *g);
tb_status lint_scale_and_init(tb_lint *L, const lint_graph *g);
tb_status lint_init_not_matching(tb_lint *L, const lint_graph *g);
tb_status lint_norm_undoes_init(tb_lint *L, const lint_graph *g);
tb_status lint_deepnorm_and_subln(tb_lint *L, const lint_graph *g);
tb_status lint_init_counts_blocks(tb_lint *L, const lint_graph *g);
tb_status lint_init_unmatched(tb_lint *L, const lint_graph *g);
tb_status lint_init_overridden(tb_lint *L, const lint_graph *g);
tb_status lint_tied_scale(tb_lint *L, const lint_graph *g);
tb_status lint_dead_branch(tb_lint *L, const lint_graph *g);
tb_status lint_dead_lane(tb_lint *L, const lint_graph *g);
tb_status lint_zero_start(tb_lint *L, const lint_graph *g);
tb_status lint_rezero_norm(tb_lint *L, const lint_graph *g);
tb_status lint_uneven_gate(tb_lint *L, const lint_graph *g);

tb_status lint_memory_unread(tb_lint *L, const lint_graph *g);
tb_status lint_memory_normed_twice(tb_lint *L, const lint_graph *g);
tb_status lint_roles_differ(tb_lint *L, const lint_graph *g);
tb_status lint_pre_ln_deep(tb_lint *L, const lint_graph *g);
tb_status lint_parallel(tb_lint *L, const lint_graph *g);

tb_status lint_unused_name(tb_lint *L, const lint_graph *g);
tb_status lint_unused_parameter(tb_lint *L, const lint_graph *g);
tb_status lint_shadowed_stream(tb_lint *L, const lint_graph *g);
tb_status lint_unused_setting(tb_lint *L, const lint_graph *g);
tb_status lint_unused_section(tb_lint *L, const lint_graph *g);

#endif
