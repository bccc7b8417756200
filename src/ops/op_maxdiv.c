/* SPDX-License-Identifier: MIT */
/* maxdiv: y = to x / max|x|, the maximum a constant to every derivative, over
 * each token or over the whole stream (CogView's guard before a norm in half
 * precision, Ding et al. 2021, arXiv:2105.13290: to = 8, whole). A token of
 * zeros stays as it is. Where there is a second input, its maximum counts: the
 * same stream, held constant. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    if (!tb_isfinite(attr[TB_ATTR_MAXDIV_TO]))
        return tb_op_no(why, "the new maximum must be a finite number");
    if (nin > 1 && !tb_op_same(in[0], in[1]))
        return tb_op_no(why, "both inputs must have the same shape");
    return tb_op_shape_stream(in, nin, attr, out, why);
}

static bool whole(const tb_opcall *c)
{
    return c->attr[TB_ATTR_MAXDIV_WHOLE] != 0;
}

/* saved: max|x| of each token (whole: then one over all) */
static double *max_at(const tb_opcall *c, size_t row)
{
    return (double *)c->saved + row;
}

static double factor(const tb_opcall *c, size_t row)
{
    double max = *max_at(c, whole(c) ? tb_op_rows(c) : row);
    return max > 0 ? c->attr[TB_ATTR_MAXDIV_TO] / max : 1;
}

static void max_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t d = c->out_shape.width;
    const void *of = c->in[c->nin - 1];
    (void)chunk;
    for (size_t r = from; r < to; r++) {
        double max = 0;
        for (size_t i = 0; i < d; i++) {
            double x = tb_fabs(tb_op_get(c, of, r * d + i));
            max = x > max ? x : max;
        }
        *max_at(c, r) = max;
    }
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t d = c->out_shape.width;
    (void)chunk;
    for (size_t r = from; r < to; r++)
        c->k->scale(d, factor(c, r), tb_op_peek(c, c->in[0], r * d),
                    tb_op_at(c, c->out, r * d));
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t d = c->out_shape.width;
    (void)chunk;
    for (size_t r = from; r < to; r++)
        c->k->axpy(d, factor(c, r), tb_op_peek(c, c->gout, r * d),
                   tb_op_at(c, c->gin[0], r * d));
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t d = c->out_shape.width;
    (void)chunk;
    for (size_t r = from; r < to; r++)
        c->k->scale(d, factor(c, r), tb_op_peek(c, c->tin[0], r * d),
                    tb_op_at(c, c->tout, r * d));
}

static void each(const tb_opcall *c, tb_rows_fn fn)
{
    tb_op_each(c, tb_op_rows(c), c->out_shape.width, fn);
}

static void fwd(const tb_opcall *c)
{
    size_t rows = tb_op_rows(c);
    double *all = max_at(c, rows);
    each(c, max_range);
    if (whole(c))
        *all = 0;
    for (size_t r = 0; r < rows && whole(c); r++)
        *all = *max_at(c, r) > *all ? *max_at(c, r) : *all;
    each(c, fwd_range);
}

static void bwd(const tb_opcall *c)
{
    if (c->gin[0])
        each(c, bwd_range);
}

static void tan_(const tb_opcall *c)
{
    if (c->tin[0])
        each(c, tan_range);
    else
        tb_op_copy(c, tb_op_out_count(c), NULL, c->tout);
}

static size_t saved(const tb_opcall *c)
{
    size_t n;
    return tb_add(tb_op_rows(c), whole(c), &n) ? tb_op_part_bytes(n, 1)
                                               : SIZE_MAX;
}

static tb_reach reach(const double *attr)
{
    return attr[TB_ATTR_MAXDIV_WHOLE] != 0 ? TB_REACH_BATCH : TB_REACH_TOKEN;
}

const tb_op tb_op_maxdiv = {
    .name = "maxdiv",
    .symbol = "maxdiv",
    .min_in = 1,
    .max_in = 2,
    .nattr = 1,
    .noption = 1,
    .attr_name = {"to", "whole"},
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_SYMBOL,
    .data = TB_NEED_IN(1),
    .shape = shape,
    .reach = reach,
    .saved = saved,
    .fwd = fwd,
    .bwd = bwd,
    .tan = tan_,
};
