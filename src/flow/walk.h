/* SPDX-License-Identifier: MIT */
/* What the walks down a stack share: one where only streams go from block to
 * block (flow.c), one where lists do, too (history.c). */
#ifndef TB_FLOW_WALK_H
#define TB_FLOW_WALK_H

#include "flow/flow_model.h"

/** State of one measurement. Vectors are [streams, B, T, d] in the model's
 * dtype; with several streams the walk goes down a whole block at a time,
 * because only there do all of them meet. With lists a vector is x alone. */
typedef struct tb_walk {
    tb_ctx *ctx;
    tb_model *m;
    const tb_kern *k;
    tb_flow *f;
    const tb_batch *batch;
    size_t n;  /* elements of a vector */
    size_t nx; /* of one stream of it */
    size_t nstreams;
    tb_layers layers;     /* of the stack being walked */
    tb_flow_stack *stack; /* the same */
    void *total, *lane;   /* at the boundary reached so far */
    void *next, *local, *tmp;
    void *memory;     /* gradient of the encoder's output so far, or NULL */
    void *grads;      /* of the parameters, or NULL */
    double top;       /* |g_K| */
    size_t nonfinite; /* in this stack */
    size_t k_now;
} tb_walk;

/** tb_walk_has_lists - does any stack of the model carry lists? */
bool tb_walk_has_lists(const tb_model *m);

/** tb_walk_spread - standard deviation over all elements of x. */
double tb_walk_spread(const tb_walk *w, const void *x);

/** tb_walk_gains - lengths of total, lane and their difference into a row. */
void tb_walk_gains(tb_walk *w, tb_flow_row *row);

/** tb_walk_split - the same inside a sublayer: `arrived` is the length of the
 * gradient that came to it, `left` what it became, w->local its lane part. */
void tb_walk_split(tb_walk *w, double arrived, const void *left,
                   tb_flow_row *row);

/** tb_walk_tolls - of the norms on the lane from boundary lo to hi. */
tb_status tb_walk_tolls(tb_walk *w, const tb_run *run, const tb_graph *g,
                        int lo, int hi, tb_flow_row *row);

/** tb_walk_values - what the forward pass left between two boundaries: spread
 * of `out`, the branch's share beside `in`, tolls. */
tb_status tb_walk_values(tb_walk *w, const tb_run *run, const tb_graph *g,
                         int lo, int hi, const void *in, const void *out,
                         tb_flow_row *row);

/** tb_walk_final - the norms of the part above a stack. */
tb_status tb_walk_final(tb_walk *w, const tb_run *run, size_t part);

/** tb_walk_cotangent - the vector that spec asks for, into w->total. */
void tb_walk_cotangent(tb_walk *w, const tb_flow_spec *spec);

/** The walk of a model with lists; everything of it lives in an arena. */
typedef struct tb_history tb_history;
tb_status tb_history_make(tb_walk *w, tb_flow_box *box, tb_arena *a,
                          tb_history **out);
/** tb_history_walk - the rows of the stack below part `end`; the stack with
 * the head comes first. */
tb_status tb_history_walk(tb_history *h, const tb_flow_spec *spec, size_t end);

#endif
