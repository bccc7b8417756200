/* SPDX-License-Identifier: MIT */
/* What becomes of a block in its corners, measured by small trials: a row
 * without spread, a branch that grows without end, a stack that does. */
#ifndef TB_MODEL_CORNERS_H
#define TB_MODEL_CORNERS_H

#include "model/model.h"

/* --- sigma -> 0 ----------------------------------------------------------- */

/** A norm of the block, on a row without spread. */
typedef struct tb_flat {
    const char *norm, *mode; /* "layernorm", "inside" */
    double eps;
    const char *gain; /* the largest gain as a formula: "1/sqrt(eps)" */
    double value;     /* of the formula; infinite without eps */
    double measured;  /* largest singular value; NaN: not measured */
} tb_flat;

/** tb_corner_flat - every kind of norm in the parts of a model, at its initial
 * gain, once each. */
tb_status tb_corner_flat(const tb_model *m, tb_arena *a, tb_flat **out,
                         size_t *n);

/* --- F -> t F, t -> infinity ---------------------------------------------- */

/** One step with its branches times t: growth as powers of t, NaN where a
 * value is 0 or not finite. */
typedef struct tb_large {
    int nstreams;
    double value[TB_STREAMS_MOST];    /* of each stream out */
    double jacobian[TB_STREAMS_MOST]; /* of a gradient on it, going down */
    double lane[TB_STREAMS_MOST];     /* the same with branches cut */
} tb_large;

/** tb_corner_large - step f of layer l, on random numbers at a small size. */
tb_status tb_corner_large(tb_ctx *ctx, const tb_block *b,
                          const tb_settings *settings, size_t l, int f,
                          tb_large *out);

/* --- N -> infinity -------------------------------------------------------- */

enum { TB_DEEP_COUNT = 3 };

/** Stacks at their initial values in which every branch gives a unit-variance
 * vector orthogonal to all others and to the stream: independent branches
 * without sampling noise. */
typedef struct tb_deep {
    bool measured;
    const char *why; /* where it was not */
    size_t depth[TB_DEEP_COUNT], sublayers[TB_DEEP_COUNT];
    int nstreams;
    double std[TB_DEEP_COUNT][TB_STREAMS_MOST];  /* of each stream at the top */
    double lane[TB_DEEP_COUNT][TB_STREAMS_MOST]; /* from it to itself below */
    double silent[TB_DEEP_COUNT]; /* F = 0, lane of x below a stream of
                                     standard deviation TB_DEEP_SILENT_STD */
} tb_deep;

enum { TB_DEEP_SILENT_STD = 4 };

/** tb_corner_deep - settings' depth and width are not looked at. A stack that
 * cannot be measured so is no failure: measured is false. */
tb_status tb_corner_deep(tb_ctx *ctx, const tb_block *b,
                         const tb_settings *settings, tb_deep *out);

#endif
