/* SPDX-License-Identifier: MIT */
/* div: y = a / b, b a scalar and a a stream or a scalar, or both streams of one
 * width. Both derivatives follow from y, which is kept instead of a: dy = da /
 * b
 * - y db / b. Division by 0 is IEEE's: inf, or nan for 0/0. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    (void)nin, (void)attr;
    bool streams =
        in[0].kind == TB_SHAPE_STREAM && in[1].kind == TB_SHAPE_STREAM;
    *out = in[0];
    if (streams)
        return in[0].width == in[1].width ||
               tb_op_no(why, "the two sides differ in width");
    if (in[1].kind != TB_SHAPE_SCALAR)
        return tb_op_no(why, "only a scalar, or a stream under a stream, can "
                             "stand under a division");
    if (in[0].kind != TB_SHAPE_STREAM && in[0].kind != TB_SHAPE_SCALAR)
        return tb_op_no(why, "only a stream or a scalar can be divided");
    return true;
}

/* The divisor of element i is in[1][i * step(c)]. */
static size_t step(const tb_opcall *c)
{
    return tb_op_same(c->in_shape[1], c->out_shape) ? 1 : 0;
}

static void fwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t d = c->out_shape.width, one = step(c);
    (void)chunk;
    for (size_t i = from * d; i < to * d; i++)
        tb_op_set(c, c->out, i,
                  tb_op_get(c, c->in[0], i) / tb_op_get(c, c->in[1], i * one));
}

static void same_bwd(const tb_opcall *c, size_t from, size_t to)
{
    size_t d = c->out_shape.width;
    for (size_t i = from * d; i < to * d; i++) {
        double g = tb_op_get(c, c->gout, i) / tb_op_get(c, c->in[1], i);
        if (c->gin[0])
            tb_op_acc(c, c->gin[0], i, g);
        if (c->gin[1])
            tb_op_acc(c, c->gin[1], i, -g * tb_op_get(c, c->out, i));
    }
}

static void scalar_bwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t d = c->out_shape.width;
    double s = tb_op_get(c, c->in[1], 0);
    if (c->gin[0])
        c->k->axpy((to - from) * d, 1 / s, tb_op_peek(c, c->gout, from * d),
                   tb_op_at(c, c->gin[0], from * d));
    for (size_t r = from; r < to && c->gin[1]; r++)
        *tb_op_part(c, chunk, 1) -= c->k->dot(d, tb_op_peek(c, c->gout, r * d),
                                              tb_op_peek(c, c->out, r * d)) /
                                    s;
}

static void bwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    if (step(c))
        same_bwd(c, from, to);
    else
        scalar_bwd(c, from, to, chunk);
}

static void tan_(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t d = c->out_shape.width, one = step(c);
    (void)chunk;
    for (size_t i = from * d; i < to * d; i++) {
        double t = c->tin[0] ? tb_op_get(c, c->tin[0], i) : 0;
        if (c->tin[1])
            t -= tb_op_get(c, c->out, i) * tb_op_get(c, c->tin[1], i * one);
        tb_op_set(c, c->tout, i, t / tb_op_get(c, c->in[1], i * one));
    }
}

static size_t part(const tb_opcall *c)
{
    return step(c) ? 0 : 1;
}

static void join(const tb_opcall *c, size_t pieces)
{
    if (!step(c))
        tb_op_join(c, pieces, 1, 0, 1, c->gin[1]);
}

const tb_op tb_op_div = {
    .name = "div",
    .symbol = "/",
    .min_in = 2,
    .max_in = 2,
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_QUOT,
    .needs = TB_NEED_IN(1) | TB_NEED_OUT,
    .shape = shape,
    .fwd_rows = fwd,
    .bwd_rows = bwd,
    .tan_rows = tan_,
    .part = part,
    .join = join,
};
