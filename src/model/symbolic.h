/* SPDX-License-Identifier: MIT */
/* The symbolic Jacobian as numbers: every term of the formula a dense matrix
 * over flattened [T*d], from the values of a forward pass and the closed
 * formulas of symbolic_ops.c. No op's own backward or tangent is called, so
 * that the three can be held against each other. */
#ifndef TB_MODEL_SYMBOLIC_H
#define TB_MODEL_SYMBOLIC_H

#include "plan/plan.h"

/** Where the values come from: a run of one sequence in double whose plan
 * keeps every value, after its forward pass. */
typedef struct tb_symbolic {
    tb_ctx *ctx;
    const tb_graph *graph;
    const tb_run *run;
    size_t time;
} tb_symbolic;

/** tb_symbolic_count - elements of a node's value: rows of its Jacobian. */
size_t tb_symbolic_count(const tb_symbolic *s, int node);
/** tb_symbolic_value - its value, NULL if it was not kept. */
const double *tb_symbolic_value(const tb_symbolic *s, int node);

/** tb_symbolic_term - a term of a Jacobian of this graph into out[rows, cols].
 * TB_ERR_ARG for an op whose Jacobian has no closed formula here, by name, and
 * for formulas too deep or too large to evaluate; TB_ERR_MEMORY. */
tb_status tb_symbolic_term(const tb_symbolic *s, const tb_jx *x, size_t rows,
                           size_t cols, double *out);

/** tb_symbolic_between - d value of `to` / d value of `from`, sublayers closed
 * or open, into out[count of to, count of from]. */
tb_status tb_symbolic_between(const tb_symbolic *s, int from, int to,
                              tb_jac_mode mode, double *out);

/** tb_symbolic_matrix - all steps of a Jacobian multiplied: out[s*n, s*n] for
 * s streams of n elements each. */
tb_status tb_symbolic_matrix(const tb_symbolic *s, const tb_jacobian *j,
                             size_t n, double *out);

/* --- closed formulas ------------------------------------------------------ */

/** The Jacobian of `node` by its input number `input`, into j[rows, cols], all
 * zero before. */
typedef void (*tb_symbolic_fn)(const tb_symbolic *s, int node, int input,
                               double *j);

/** One op that stands in formulas as a factor of its own. */
typedef struct tb_symbolic_row {
    const tb_op *op;
    tb_symbolic_fn fn;
    int inputs, attrs; /* it knows; a node with more of them is refused */
} tb_symbolic_row;

/** tb_symbolic_find - the row of an op, NULL if there is none. */
const tb_symbolic_row *tb_symbolic_find(const tb_op *op);

/* --- the check ------------------------------------------------------------ */

/** One layer with random parameters and streams, run forward. */
typedef struct tb_trial {
    tb_ctx *ctx;
    tb_arena arena;
    tb_sizes sizes;
    tb_graph *graph;
    size_t time;
    tb_plan *plan;
    tb_run run;
} tb_trial;

/** tb_trial_open - layer l of the block in double; streams and parameters are
 * pure functions of (seed, name, element), none of them 0 or 1 by design.
 * Closed by tb_trial_close, also after a failure. */
tb_status tb_trial_open(tb_trial *t, tb_ctx *ctx, const tb_block *b,
                        const tb_settings *settings, size_t l, size_t time,
                        uint64_t seed);
/** tb_trial_below - the same of the encoder, where the settings have two
 * stacks; tb_trial_open takes the one that the head stands on. */
tb_status tb_trial_below(tb_trial *t, tb_ctx *ctx, const tb_block *b,
                         const tb_settings *settings, size_t l, size_t time,
                         uint64_t seed);
/** tb_trial_plan - plan and buffers for t's graph and the forward pass; inputs,
 * parameters and attributes of its run are set. */
tb_status tb_trial_plan(tb_trial *t, unsigned passes);
void tb_trial_close(tb_trial *t);
tb_symbolic tb_trial_symbolic(const tb_trial *t);

/** How far the evaluated symbolic Jacobian is from three other ways to it:
 * the largest entry of the difference over the largest entry (over 1 where
 * that is 0 but for rounding). */
typedef struct tb_agreement {
    double tangent, backward, difference;
    double bound;   /* what the central difference knows of its own error */
    double largest; /* entry of the symbolic Jacobian */
} tb_agreement;

/** tb_trial_check - every step between boundaries, with its sublayers closed
 * and open, and the whole layer as their product; where there are several
 * streams, every stream out by every stream in. Stopped values and masks are
 * held fixed in the differences. */
tb_status tb_trial_check(const tb_trial *t, tb_agreement *out);

#endif
