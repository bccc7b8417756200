/* SPDX-License-Identifier: MIT */
/* dot: the inner product of two streams over the width of each token, a stream
 * of width 1: coefficients of projections (the delta rule of Deep Delta
 * Learning, arXiv:2601.00417; orthogonal updates, arXiv:2505.11881). */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    (void)nin, (void)attr;
    if (in[0].kind != TB_SHAPE_STREAM || in[1].kind != TB_SHAPE_STREAM)
        return tb_op_no(why, "both sides must be streams");
    if (in[0].width != in[1].width)
        return tb_op_no(why, "the two sides differ in width");
    *out = (tb_shape){TB_SHAPE_STREAM, 1, 1};
    return true;
}

static size_t width(const tb_opcall *c)
{
    return c->in_shape[0].width;
}

/* Token r of one side, or NULL. */
static const void *token(const tb_opcall *c, const void *x, size_t r)
{
    return tb_op_peek(c, x, r * width(c));
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    for (size_t r = from; r < to; r++)
        tb_op_set(
            c, c->out, r,
            c->k->dot(width(c), token(c, c->in[0], r), token(c, c->in[1], r)));
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    for (size_t r = from; r < to; r++)
        for (int i = 0; i < 2; i++)
            if (c->gin[i])
                c->k->axpy(width(c), tb_op_get(c, c->gout, r),
                           token(c, c->in[1 - i], r),
                           tb_op_at(c, c->gin[i], r * width(c)));
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    for (size_t r = from; r < to; r++) {
        double t = 0;
        for (int i = 0; i < 2; i++)
            if (c->tin[i])
                t += c->k->dot(width(c), token(c, c->tin[i], r),
                               token(c, c->in[1 - i], r));
        tb_op_set(c, c->tout, r, t);
    }
}

const tb_op tb_op_dot = {
    .name = "dot",
    .symbol = "dot",
    .min_in = 2,
    .max_in = 2,
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_MULTI,
    .needs = TB_NEED_IN(0) | TB_NEED_IN(1),
    .shape = shape,
    .fwd_rows = fwd_range,
    .bwd_rows = bwd_range,
    .tan_rows = tan_range,
};
