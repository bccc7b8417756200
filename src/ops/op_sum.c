/* SPDX-License-Identifier: MIT */
/* sum, mean: over the width of each token, a stream of width 1; of a vector, a
 * scalar. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    (void)nin, (void)attr;
    bool vector = in[0].kind == TB_SHAPE_VECTOR;
    if (!vector && in[0].kind != TB_SHAPE_STREAM)
        return tb_op_no(why, "it applies to a stream or a vector");
    *out = (tb_shape){vector ? TB_SHAPE_SCALAR : TB_SHAPE_STREAM, 1, 1};
    return true;
}

static size_t width(const tb_opcall *c)
{
    return c->in_shape[0].width;
}

static void total(const tb_opcall *c, size_t from, size_t to, const void *x,
                  double share, void *y)
{
    size_t d = width(c);
    for (size_t r = from; r < to; r++)
        tb_op_set(c, y, r,
                  x ? c->k->sum(d, tb_op_peek(c, x, r * d)) * share : 0);
}

/* gx += g for every element of the row */
static void spread(const tb_opcall *c, size_t from, size_t to, double share)
{
    size_t d = width(c);
    for (size_t r = from; r < to; r++)
        for (size_t i = 0; i < d; i++)
            tb_op_acc(c, c->gin[0], r * d + i,
                      tb_op_get(c, c->gout, r) * share);
}

#define SUM(label, what)                                                       \
    static void label##_fwd_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        (void)chunk;                                                           \
        total(c, from, to, c->in[0], what, c->out);                            \
    }                                                                          \
    static void label##_bwd_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        (void)chunk;                                                           \
        spread(c, from, to, what);                                             \
    }                                                                          \
    static void label##_tan_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        (void)chunk;                                                           \
        total(c, from, to, c->tin[0], what, c->tout);                          \
    }                                                                          \
    const tb_op tb_op_##label = {                                              \
        .name = #label,                                                        \
        .symbol = #label,                                                      \
        .min_in = 1,                                                           \
        .max_in = 1,                                                           \
        .lane = TB_LANE_PASS,                                                  \
        .jac = TB_JAC_SYMBOL,                                                  \
        .shape = shape,                                                        \
        .fwd_rows = label##_fwd_range,                                         \
        .bwd_rows = label##_bwd_range,                                         \
        .tan_rows = label##_tan_range,                                         \
    };

SUM(sum, 1)
SUM(mean, 1 / (double)width(c))
