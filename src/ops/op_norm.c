/* SPDX-License-Identifier: MIT */
/* layernorm (Ba, Kiros, Hinton 2016, arXiv:1607.06450) and rmsnorm (Zhang,
 * Sennrich 2019, arXiv:1910.07467) of each row, with gain and bias. */
#include "ops/op_norm.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    if (in[0].kind != TB_SHAPE_STREAM)
        return tb_op_no(why, "a norm applies to a stream");
    for (int i = 1; i < nin; i++)
        if (in[i].kind != TB_SHAPE_VECTOR || in[i].width != in[0].width)
            return tb_op_no(why, "gain and bias must have the width");
    if (!(attr[TB_ATTR_NORM_EPS] >= 0) || !tb_isfinite(attr[TB_ATTR_NORM_EPS]))
        return tb_op_no(why, "eps must be a finite number, 0 or more");
    *out = in[0];
    return true;
}

const void *tb_op_norm_gain_vector(const tb_opcall *c)
{
    return c->nin > 1 ? c->in[1] : NULL;
}

/* The kernel's view of rows [from, to). */
static tb_k_norm rows_of(const tb_opcall *c, tb_norm_kind kind, size_t from,
                         size_t to)
{
    size_t d = c->out_shape.width;
    return (tb_k_norm){.kind = kind,
                       .x = tb_op_peek(c, c->in[0], from * d),
                       .gain = tb_op_norm_gain_vector(c),
                       .bias = c->nin > 2 ? c->in[2] : NULL,
                       .rows = to - from,
                       .d = d,
                       .eps = c->attr[TB_ATTR_NORM_EPS]};
}

/* saved: mean and rstd of each row */
static double *stat_of(const tb_opcall *c, size_t row)
{
    return (double *)c->saved + 2 * row;
}

static void fwd_part(const tb_opcall *c, tb_norm_kind kind, size_t from,
                     size_t to)
{
    tb_k_norm p = rows_of(c, kind, from, to);
    c->k->norm_fwd(&p, tb_op_at(c, c->out, from * p.d), stat_of(c, from));
}

/* Each chunk sums its gain and bias gradients in its own doubles. */
static void bwd_part(const tb_opcall *c, tb_norm_kind kind, size_t from,
                     size_t to, size_t chunk)
{
    tb_k_norm p = rows_of(c, kind, from, to);
    double *part = tb_op_part(c, chunk, 2 * p.d);
    memset(part, 0, 2 * p.d * sizeof *part);
    c->k->norm_bwd(&p, stat_of(c, from), tb_op_peek(c, c->gout, from * p.d),
                   tb_op_at(c, c->gin[0], from * p.d),
                   c->nin > 1 && c->gin[1] ? part : NULL,
                   c->nin > 2 && c->gin[2] ? part + p.d : NULL);
}

static void tan_part(const tb_opcall *c, tb_norm_kind kind, size_t from,
                     size_t to)
{
    tb_k_norm p = rows_of(c, kind, from, to);
    c->k->norm_tan(&p, stat_of(c, from), tb_op_peek(c, c->tin[0], from * p.d),
                   c->nin > 1 ? c->tin[1] : NULL, c->nin > 2 ? c->tin[2] : NULL,
                   tb_op_at(c, c->tout, from * p.d));
}

static void each(const tb_opcall *c, tb_range_fn fn)
{
    tb_op_each(c, tb_op_rows(c), c->out_shape.width, fn);
}

static void bwd_with(const tb_opcall *c, tb_range_fn fn)
{
    size_t d = c->out_shape.width;
    size_t pieces = tb_op_pieces(tb_op_rows(c), d);
    each(c, fn);
    for (int i = 1; i < c->nin; i++)
        tb_op_join(c, pieces, 2 * d, (size_t)(i - 1) * d, d, c->gin[i]);
}

static size_t saved(const tb_opcall *c)
{
    return tb_op_part_bytes(tb_op_rows(c), 2);
}

static size_t scratch(const tb_opcall *c)
{
    size_t d = c->out_shape.width;
    return tb_op_part_bytes(tb_op_pieces(tb_op_rows(c), d), 2 * d + 2);
}

/* No variance (RMS: no length), or so little that it is lost below the smallest
 * double. A row with a NaN or infinity has another trouble. */
static bool degenerate(const tb_opcall *c, size_t row)
{
    size_t d = c->out_shape.width;
    for (size_t i = 0; i < d; i++)
        if (!tb_isfinite(tb_op_get(c, c->in[0], row * d + i)))
            return false;
    return !tb_isfinite(stat_of(c, row)[1]);
}

static const char *check_rows(const tb_opcall *c, size_t *row)
{
    if (c->attr[TB_ATTR_NORM_EPS] > 0)
        return NULL;
    for (size_t r = 0; r < tb_op_rows(c); r++)
        if (degenerate(c, r)) {
            *row = r;
            return "zero variance with eps = 0";
        }
    return NULL;
}

#define NORM(kind, label, sign)                                                \
    static void label##_fwd_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        (void)chunk;                                                           \
        fwd_part(c, kind, from, to);                                           \
    }                                                                          \
    static void label##_bwd_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        bwd_part(c, kind, from, to, chunk);                                    \
    }                                                                          \
    static void label##_tan_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        (void)chunk;                                                           \
        tan_part(c, kind, from, to);                                           \
    }                                                                          \
    static void label##_fwd(const tb_opcall *c)                                \
    {                                                                          \
        each(c, label##_fwd_range);                                            \
    }                                                                          \
    static void label##_bwd(const tb_opcall *c)                                \
    {                                                                          \
        bwd_with(c, label##_bwd_range);                                        \
    }                                                                          \
    static void label##_tan(const tb_opcall *c)                                \
    {                                                                          \
        each(c, label##_tan_range);                                            \
    }                                                                          \
    static void label##_gain(const tb_opcall *c, double *rms, double *max)     \
    {                                                                          \
        tb_op_norm_gain(c, kind, rms, max);                                    \
    }                                                                          \
    static const char *label##_check(const tb_opcall *c, size_t *row)          \
    {                                                                          \
        return check_rows(c, row);                                             \
    }                                                                          \
    const tb_op tb_op_##label = {                                              \
        .name = #label,                                                        \
        .symbol = sign,                                                        \
        .min_in = 1,                                                           \
        .max_in = 3,                                                           \
        .nattr = 1,                                                            \
        .attr_name = {"eps"},                                                  \
        .lane = TB_LANE_TOLL,                                                  \
        .jac = TB_JAC_SYMBOL,                                                  \
        .needs = TB_NEED_IN(0) | TB_NEED_IN(1),                                \
        .shape = shape,                                                        \
        .saved = saved,                                                        \
        .scratch = scratch,                                                    \
        .fwd = label##_fwd,                                                    \
        .bwd = label##_bwd,                                                    \
        .tan = label##_tan,                                                    \
        .gain = label##_gain,                                                  \
        .check = label##_check,                                                \
    };

NORM(TB_NORM_LAYER, layernorm, "LN")
NORM(TB_NORM_RMS, rmsnorm, "RMS")
