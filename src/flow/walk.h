/* SPDX-License-Identifier: MIT */
/* What the walks down a stack share: one where only streams go from block to
 * block (flow.c), one where lists do, too (history.c). */
#ifndef TB_FLOW_WALK_H
#define TB_FLOW_WALK_H

#include "flow/flow_model.h"

/* --- lengths (lengths.c): one parallel pass over memory each ------------- */

/** Of a vector, of a part of it, and of the rest, their difference. */
typedef struct tb_lengths {
    double whole, part, rest;
    double cos;       /* angle of part and rest; 0 if one is zero */
    size_t nonfinite; /* numbers in whole */
} tb_lengths;
/** tb_flow_lengths - part may be NULL: only whole and nonfinite. */
tb_lengths tb_flow_lengths(const tb_ctx *ctx, const tb_kern *k, size_t n,
                           const void *part, const void *whole);

/** tb_flow_largest - the largest finite magnitude, and the first place of it.
 */
double tb_flow_largest(const tb_ctx *ctx, const tb_kern *k, size_t n,
                       const void *x, size_t *at);

typedef struct tb_spread {
    double mean, std;
    size_t nonfinite;
} tb_spread;
/** tb_flow_spread - of all elements. */
tb_spread tb_flow_spread(const tb_ctx *ctx, const tb_kern *k, size_t n,
                         const void *x);
/** tb_flow_moments - the same in two passes: a constant has a standard
 * deviation of exactly 0. */
tb_spread tb_flow_moments(const tb_ctx *ctx, const tb_kern *k, size_t n,
                          const void *x);

/* --- single tokens (stream.c), single numbers (outliers.c) --------------- */

/** tb_flow_tokens - lengths of the shortest and of the longest token of a
 * vector [streams, tokens, d]; nan if there is one. */
void tb_flow_tokens(const tb_ctx *ctx, const tb_kern *k, size_t tokens,
                    size_t d, size_t streams, const void *x, double *low,
                    double *high);
/** tb_flow_outliers - the three largest finite magnitudes, falling, and where
 * the first of them is; magnitude number n/2 of n > 0 in rising order, from 0.
 */
tb_status tb_flow_outliers(tb_ctx *ctx, tb_dtype t, size_t n, const void *x,
                           double top[3], size_t *at, double *middle);
/** tb_flow_angle - acos over pi, within 1e-15. */
double tb_flow_angle(double cos);

typedef struct tb_flow_term {
    const void *x;
    double factor;
} tb_flow_term;
/** tb_flow_beside - length of the sum of the terms over that of x. */
double tb_flow_beside(const tb_ctx *ctx, const tb_kern *k, size_t n,
                      const tb_flow_term *term, size_t nterms, const void *x);

/* --- the walk --------------------------------------------------------------
 */

/** Gradients of weights on the way down (weights.c). */
typedef struct tb_flow_weights tb_flow_weights;
/** Room for what an audit measures (audit.h). */
typedef struct tb_audit tb_audit;

enum { TB_WALK_STREAMS = 32, TB_WALK_INPUTS = TB_WALK_STREAMS + 8 };

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
    void *next, *local, *spare;
    void **between; /* the true gradient at boundaries inside a block, */
    int *seen;      /* and their nodes */
    void *memory;   /* gradient of the encoder's output so far, or NULL */
    tb_flow_weights *weights;       /* NULL: not of the loss */
    const tb_flow_auditor *auditor; /* NULL: not asked for */
    tb_audit *audit;
    tb_flow_box *box;
    size_t norms_left; /* rows of f->norms that are not filled yet */
    double top;        /* |g_K| */
    double arrived;    /* length of the true gradient at this row */
    size_t nonfinite;  /* in this stack */
    size_t k_now;
} tb_walk;

/** tb_walk_has_lists - does any stack of the model carry lists? */
bool tb_walk_has_lists(const tb_model *m);

/** tb_walk_pieces - that of each stream in a vector (NULL: none), in the order
 * graphs list them. */
void tb_walk_pieces(const tb_walk *w, void *vector, void **out);

/** tb_walk_lengths - of vectors of this walk. */
tb_lengths tb_walk_lengths(const tb_walk *w, const void *part,
                           const void *whole);

/** tb_walk_gains - lengths of `total`, the lane and their difference into a
 * row. */
void tb_walk_gains(tb_walk *w, const void *total, tb_flow_row *row);

/** tb_walk_split - the same inside a sublayer, after the gains of its row:
 * `left` is what the gradient became, w->local its lane part. */
void tb_walk_split(tb_walk *w, const void *left, tb_flow_row *row);

/** tb_walk_tolls - of the norms from boundary lo to hi of part p: those on the
 * lane make the row's toll. */
tb_status tb_walk_tolls(tb_walk *w, const tb_run *run, size_t p, int lo, int hi,
                        tb_flow_row *row);

/** tb_walk_values - what the forward pass left between two boundaries: spread
 * of `out`, the branch's share beside `in`, tolls. */
tb_status tb_walk_values(tb_walk *w, const tb_run *run, size_t p, int lo,
                         int hi, const void *in, const void *out,
                         tb_flow_row *row);

/** tb_walk_spread - of x_k: its standard deviation, what is not finite. */
void tb_walk_spread(tb_walk *w, const void *x, tb_flow_row *row);

/** tb_walk_stream - outliers, token lengths and turns of x_k after x_(k-1),
 * which is NULL at the stem. */
tb_status tb_walk_stream(tb_walk *w, const void *before, const void *x,
                         tb_flow_row *row);

/** tb_walk_make_norms - room for all norms of the model (norms.c). */
tb_status tb_walk_make_norms(tb_walk *w, tb_flow_box *box);
/** tb_walk_norm - measures norm `node` of part p, from the last to the first:
 * its k is that of the row the walk is at. */
tb_status tb_walk_norm(tb_walk *w, const tb_run *run, size_t p, int node,
                       bool lane, const tb_flow_norm **out);

/** tb_walk_keep_norms - at the end: those that were measured. */
void tb_walk_keep_norms(tb_walk *w);

/** tb_walk_final - the norms of the part above a stack. */
tb_status tb_walk_final(tb_walk *w, const tb_run *run, size_t part);

/** tb_walk_cotangent - the vector that spec asks for, into w->total. */
void tb_walk_cotangent(tb_walk *w, const tb_flow_spec *spec);

/** tb_walk_make_weights - a row for every weight, its mean and standard
 * deviation where they are asked for, and room for gradients. */
tb_status tb_walk_make_weights(tb_walk *w, tb_flow_box *box, tb_arena *a);
/** tb_walk_want_weights - those of part p into a whole backward pass; false if
 * none are wanted. Parts come from the last to the first, each once. */
bool tb_walk_want_weights(tb_walk *w, size_t p, tb_bwd *b);
/** tb_walk_measure_weights - after it: lengths of what is complete. */
void tb_walk_measure_weights(tb_walk *w, size_t p);
/** tb_walk_weights_nonfinite - numbers in gradients measured so far. */
size_t tb_walk_weights_nonfinite(const tb_walk *w);

/** What the walk calls where an audit is asked for. */
struct tb_flow_auditor {
    /* makes w->audit, for vectors of w->n elements at most */
    tb_status (*make)(tb_walk *w, uint64_t seed, tb_arena *a);
    /* the row that goes from boundary lo to hi of part p */
    tb_status (*row)(tb_walk *w, const tb_run *run, size_t p, int lo, int hi,
                     tb_flow_row *row);
    /* a layer, its values being those of the forward pass */
    tb_status (*part)(tb_walk *w, const tb_run *run, size_t p);
    /* at the end, where exponents of weights are asked for */
    tb_status (*alpha)(tb_walk *w);
};

/** tb_walk_between - is node i one of those that make x at boundary hi out of
 * x at lo? */
bool tb_walk_between(const tb_graph *g, int lo, int hi, int i);

/** tb_walk_audit - a row, where that is asked for. */
tb_status tb_walk_audit(tb_walk *w, const tb_run *run, size_t p, int lo, int hi,
                        tb_flow_row *row);
/** tb_walk_audit_part - a layer, too. */
tb_status tb_walk_audit_part(tb_walk *w, const tb_run *run, size_t p);

/** The walk of a model with lists; everything of it lives in an arena. */
typedef struct tb_history tb_history;
tb_status tb_history_make(tb_walk *w, tb_flow_box *box, tb_arena *a,
                          tb_history **out);
/** tb_history_walk - the rows of the stack below part `end`; the stack with
 * the head comes first. */
tb_status tb_history_walk(tb_history *h, const tb_flow_spec *spec, size_t end);

#endif
