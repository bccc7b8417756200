/* SPDX-License-Identifier: MIT */
/* A graph with sizes, a dtype and the passes wanted: order, buffers by
 * lifetime, one workspace whose size is known before it is allocated. Runs
 * forward, backward (with branches cut: the lane) and tangent of one layer;
 * training, flow, eval and wasm use the same code. */
#ifndef TB_PLAN_PLAN_H
#define TB_PLAN_PLAN_H

#include "graph/graph.h"

/** Passes a plan must be able to run. */
enum {
    TB_PASS_BWD = 1,
    TB_PASS_TAN = 2,
    TB_PASS_KEEP = 4,
    TB_PASS_ONCE = 8,  /* a forward has one backward at most, of the whole
                          graph, which may write over values, outputs too */
    TB_PASS_ALONE = 16 /* tests: every op goes through memory by itself */
};

typedef struct tb_plan_spec {
    const tb_graph *graph;
    size_t batch, time;
    const size_t *input_time; /* per graph input (a memory has its own); NULL,
                                 or 0: time */
    tb_dtype dtype;   /* TB_BF16: floats, products with weights rounded */
    unsigned passes;  /* KEEP: every value stays readable after forward */
    const char *name; /* for messages: "layer", "stem", "eval" */
} tb_plan_spec;

typedef struct tb_plan tb_plan;

/** tb_plan_create - TB_ERR_SHAPE, TB_ERR_MEMORY (sizes overflow), TB_ERR_ARG
 * (a graph that is none). The graph and the name must outlive the plan.
 * Attributes that a shape rule or a size reads (heads) are taken from the
 * nodes' own values, so they may not be expressions. */
tb_status tb_plan_create(tb_ctx *ctx, const tb_plan_spec *spec, tb_plan **out);
void tb_plan_destroy(tb_ctx *ctx, tb_plan *p);

const tb_graph *tb_plan_graph(const tb_plan *p);
/** Bytes: what one layer keeps from forward to backward, and what any pass
 * borrows while it runs (shared by all layers and plans). */
size_t tb_plan_saved_bytes(const tb_plan *p);
size_t tb_plan_work_bytes(const tb_plan *p);
/** Bytes of the angles of ropes, which the plan itself holds. */
size_t tb_plan_angle_bytes(const tb_plan *p);
/** FLOPs of one forward pass's matrix products. */
double tb_plan_flops(const tb_plan *p);

/** What runs of sequences that grow left for the next one (plan_past.c). */
typedef struct tb_past {
    const tb_graph *graph;
    bool *moving;    /* per node: it depends on what grows */
    size_t *seen_at; /* per node: where its keys, then its values stand among
                        the widths of all; SIZE_MAX: it keeps none */
    size_t width;    /* of all keys and values of a token */
    /* the caller's from here on */
    size_t seen, most; /* tokens before this run's, and with those of all */
    bool again;        /* the last run had this plan, passes and buffers: what
                          does not move is there */
    void *kept;        /* [batch, width, most] */
    void *room;        /* tb_past_room, 64-byte aligned */
} tb_past;

/** tb_past_make - for graph inputs of which `moves` tells those that grow;
 * *able is false where a run would need more of them than its new tokens. */
tb_status tb_past_make(tb_arena *a, const tb_graph *g,
                       const double (*attr)[TB_OP_ATTRS], const bool *moves,
                       tb_past *out, bool *able);
/** tb_past_room - bytes for runs of this plan that end at most at `keys`. */
size_t tb_past_room(const tb_past *past, const tb_plan *p, size_t keys);

/** tb_past_copy - what sequence `from` of x has seen, a `kept` of elements of
 * `one` byte, to sequence `to` of y. */
void tb_past_copy(const tb_past *past, size_t one, const void *x, size_t from,
                  void *y, size_t to);

/** One layer's data. Arrays are indexed as in the graph: inputs by
 * graph->inputs, params by graph->params, outputs by graph->outputs. Buffers
 * may not overlap, and stay as forward left them until the last backward or
 * tangent: a value that is an output is read where the caller has it. */
typedef struct tb_run {
    const tb_plan *plan;
    struct tb_profile *profile; /* where time goes is counted; NULL: not */
    void *saved;                /* tb_plan_saved_bytes, 64-byte aligned */
    void *work;                 /* tb_plan_work_bytes, 64-byte aligned */
    const void *const *inputs;
    void *const *outputs; /* NULL entry: kept inside */
    const void *const *params;
    const double (*attr)[TB_OP_ATTRS]; /* per node; NULL: the nodes' own */
    uint64_t seed, step;               /* randomness of drop */
    const tb_past *past; /* forward only: its tokens follow others; NULL: not */
    const char *scope; /* "layers.3": names drop's random streams and errors */
} tb_run;

/** tb_run_on - r runs this plan, with room in `a`. */
tb_status tb_run_on(tb_arena *a, const tb_plan *p, tb_run *r);

/** tb_plan_forward - fills outputs and saved. TB_ERR_INPUT where an op has
 * no value (zero variance with eps = 0), naming op, scope and row. */
tb_status tb_plan_forward(tb_ctx *ctx, const tb_run *r);

/** Which part of a backward pass, and how. */
typedef struct tb_bwd {
    int hi, lo; /* boundaries; -1, -1: the whole graph from its outputs */
    bool cut;   /* branches cut: TB_LANE_CUT ops pass nothing back */
    const void *const *gout; /* per output (whole graph), or [0] at hi;
                                NULL entry: zero */
    void *const *gin;     /* per input (whole graph), or [0] at lo: overwritten;
                             NULL entry: unwanted */
    const bool *adds;     /* per input (whole graph): gin is added to; NULL:
                             none is */
    void *const *gparams; /* per param, added to; NULL or NULL entry */
    const bool *fresh;    /* per param: gparams is overwritten; NULL: none is */
    size_t nseen;         /* nodes that compute, whose gradients are wanted */
    const int *seen;      /* too; */
    void *const *gseen;   /* here, overwritten; a NULL entry: not wanted */
} tb_bwd;

/** tb_plan_backward - needs TB_PASS_BWD and a forward with the same run.
 * Entries of gin and gparams for token ids are not looked at. A parameter
 * gets all of its gradient, also through nodes that stand before lo.
 * A cut pass goes only through pass and toll ops, with all values those of
 * the full model; gates count as constants. */
tb_status tb_plan_backward(tb_ctx *ctx, const tb_run *r, const tb_bwd *b);

/** Which Jacobian, and where it goes. */
typedef struct tb_jacobian_spec {
    const int *inputs; /* of the graph, streams: its columns, one after the */
    size_t ninputs;    /* other */
    size_t columns;    /* from one row to the next in out: their elements, */
    bool blocks;       /* or, of one input, those of the row's own token */
    double *out;       /* a row for each token and channel of the outputs */
} tb_jacobian_spec;

/** tb_plan_jacobian - of all outputs, many cotangents at once; out must be
 * zero, and where an output does not depend on an input it stays so. Needs
 * TB_PASS_BWD and KEEP and a forward. *done is false, and out as it was, where
 * sequences of a batch meet (tb_op_reach), an output is no stream, or there
 * would be too much of it: then row by row with tb_plan_backward. */
tb_status tb_plan_jacobian(tb_ctx *ctx, const tb_run *r,
                           const tb_jacobian_spec *j, bool *done);

/** tb_plan_tangent - tin per input, tparams per param (NULL: zero); tout per
 * output, overwritten. Needs TB_PASS_TAN and a forward. */
tb_status tb_plan_tangent(tb_ctx *ctx, const tb_run *r, const void *const *tin,
                          const void *const *tparams, void *const *tout);

/** tb_plan_tangent_piece - the same from boundary lo up to hi of a single
 * stream, parameters held. */
tb_status tb_plan_tangent_piece(tb_ctx *ctx, const tb_run *r, int lo, int hi,
                                const void *tin, void *tout);

/** tb_plan_update - after the forward, and the backward if there was one, of
 * a training step: moves the running statistics (tb_op.update). `buffers` are
 * the run's params, writable; only those that an op calls its state are
 * written. Needs a plan with passes. */
tb_status tb_plan_update(tb_ctx *ctx, const tb_run *r, void *const *buffers);
/** tb_plan_state - is this parameter a running statistic: no gradient, no
 * decay, not for the optimizer? */
bool tb_plan_state(const tb_plan *p, int param);

/** tb_plan_statistic - the statistics that a node's last forward used for its
 * state input `i` (a batch's own, or running ones), into out[width]; false
 * where the node has none there. Needs a plan with passes. */
bool tb_plan_statistic(tb_ctx *ctx, const tb_run *r, int node, int i,
                       double *out);

/** tb_plan_value - where a node's value is after forward, NULL if it was not
 * kept; with TB_PASS_KEEP every node has one. */
const void *tb_plan_value(const tb_run *r, int node);

/** tb_plan_rng - a node's random stream in this run: the masks of drop. */
tb_rng tb_plan_rng(const tb_run *r, int node);

/** tb_plan_scale - what row `row` of a norm node was divided by: see
 * tb_op.scale; false where it has no such row. Needs KEEP. */
bool tb_plan_scale(tb_ctx *ctx, const tb_run *r, int node, size_t row,
                   double *s, double *eps_share);

/** tb_plan_first - of a node of attention: see tb_op.first; share has a number
 * for each head. Needs KEEP. */
tb_status tb_plan_first(tb_ctx *ctx, const tb_run *r, int node, double *share);

/** tb_plan_gain - toll of a norm node: see tb_op.gain. Needs KEEP. */
tb_status tb_plan_gain(tb_ctx *ctx, const tb_run *r, int node, double *rms,
                       double *max);

#endif
