/* SPDX-License-Identifier: MIT */
/* sum, mean: of all elements, a scalar. The mean of nothing is 0. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    if (!tb_op_shape_keep(in, nin, attr, out, why))
        return false;
    *out = (tb_shape){TB_SHAPE_SCALAR, 1, 1};
    return true;
}

static void sum_range(const tb_opcall *c, const void *x, size_t from, size_t to,
                      size_t chunk)
{
    *tb_op_part(c, chunk, 1) = c->k->sum(to - from, tb_op_peek(c, x, from));
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    sum_range(c, c->in[0], from, to, chunk);
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    sum_range(c, c->tin[0], from, to, chunk);
}

/* What an element counts: 1, or 1/n. */
static double share(const tb_opcall *c, bool mean)
{
    size_t n = tb_op_in_count(c, 0);
    return mean && n > 0 ? 1 / (double)n : 1;
}

static double total(const tb_opcall *c, tb_range_fn fn)
{
    size_t n = tb_op_in_count(c, 0);
    tb_op_each(c, n, 1, fn);
    return tb_op_total(c, tb_op_pieces(n, 1), 1, 0);
}

static void fwd_with(const tb_opcall *c, bool mean)
{
    tb_op_set(c, c->out, 0, total(c, fwd_range) * share(c, mean));
}

static void tan_with(const tb_opcall *c, bool mean)
{
    double t = c->tin[0] ? total(c, tan_range) : 0;
    tb_op_set(c, c->tout, 0, t * share(c, mean));
}

/* gx += g for every element */
static void spread(const tb_opcall *c, size_t from, size_t to, bool mean)
{
    double g = tb_op_get(c, c->gout, 0) * share(c, mean);
    for (size_t i = from; i < to; i++)
        tb_op_acc(c, c->gin[0], i, g);
}

static size_t scratch(const tb_opcall *c)
{
    return tb_op_part_bytes(tb_op_pieces(tb_op_in_count(c, 0), 1), 1);
}

#define SUM(label, is_mean)                                                    \
    static void label##_bwd_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        (void)chunk;                                                           \
        spread(c, from, to, is_mean);                                          \
    }                                                                          \
    static void label##_fwd(const tb_opcall *c)                                \
    {                                                                          \
        fwd_with(c, is_mean);                                                  \
    }                                                                          \
    static void label##_bwd(const tb_opcall *c)                                \
    {                                                                          \
        if (c->gin[0])                                                         \
            tb_op_each(c, tb_op_in_count(c, 0), 1, label##_bwd_range);         \
    }                                                                          \
    static void label##_tan(const tb_opcall *c)                                \
    {                                                                          \
        tan_with(c, is_mean);                                                  \
    }                                                                          \
    const tb_op tb_op_##label = {                                              \
        .name = #label,                                                        \
        .symbol = #label,                                                      \
        .min_in = 1,                                                           \
        .max_in = 1,                                                           \
        .lane = TB_LANE_CUT,                                                   \
        .jac = TB_JAC_SYMBOL,                                                  \
        .draft = true,                                                         \
        .shape = shape,                                                        \
        .scratch = scratch,                                                    \
        .fwd = label##_fwd,                                                    \
        .bwd = label##_bwd,                                                    \
        .tan = label##_tan,                                                    \
    };

SUM(sum, false)
SUM(mean, true)
