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

/* --- by a stream, or one scalar by another ------------------------------- */

static void same_fwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    for (size_t i = from; i < to; i++)
        tb_op_set(c, c->out, i,
                  tb_op_get(c, c->in[0], i) / tb_op_get(c, c->in[1], i));
}

static void same_bwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    for (size_t i = from; i < to; i++) {
        double g = tb_op_get(c, c->gout, i) / tb_op_get(c, c->in[1], i);
        if (c->gin[0])
            tb_op_acc(c, c->gin[0], i, g);
        if (c->gin[1])
            tb_op_acc(c, c->gin[1], i, -g * tb_op_get(c, c->out, i));
    }
}

static void same_tan(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    for (size_t i = from; i < to; i++) {
        double t = c->tin[0] ? tb_op_get(c, c->tin[0], i) : 0;
        if (c->tin[1])
            t -= tb_op_get(c, c->out, i) * tb_op_get(c, c->tin[1], i);
        tb_op_set(c, c->tout, i, t / tb_op_get(c, c->in[1], i));
    }
}

/* --- a stream by a scalar ------------------------------------------------ */

static void scalar_fwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    double s = tb_op_get(c, c->in[1], 0);
    for (size_t i = from; i < to; i++)
        tb_op_set(c, c->out, i, tb_op_get(c, c->in[0], i) / s);
}

static void scalar_bwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    double s = tb_op_get(c, c->in[1], 0);
    const void *gy = tb_op_peek(c, c->gout, from);
    if (c->gin[0])
        c->k->axpy(to - from, 1 / s, gy, tb_op_at(c, c->gin[0], from));
    if (c->gin[1])
        *tb_op_part(c, chunk, 1) =
            -c->k->dot(to - from, gy, tb_op_peek(c, c->out, from)) / s;
}

static void scalar_tan(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    double s = tb_op_get(c, c->in[1], 0);
    void *ty = tb_op_at(c, c->tout, from);
    tb_op_copy(c, to - from, NULL, ty);
    if (c->tin[0])
        c->k->axpy(to - from, 1 / s, tb_op_peek(c, c->tin[0], from), ty);
    if (c->tin[1])
        c->k->axpy(to - from, -tb_op_get(c, c->tin[1], 0) / s,
                   tb_op_peek(c, c->out, from), ty);
}

/* --- the three passes ---------------------------------------------------- */

static bool broadcasts(const tb_opcall *c)
{
    return !tb_op_same(c->in_shape[1], c->out_shape);
}

static void each(const tb_opcall *c, tb_range_fn same, tb_range_fn scalar)
{
    tb_op_each(c, tb_op_out_count(c), 1, broadcasts(c) ? scalar : same);
}

static void fwd(const tb_opcall *c)
{
    each(c, same_fwd, scalar_fwd);
}

static void bwd(const tb_opcall *c)
{
    each(c, same_bwd, scalar_bwd);
    if (broadcasts(c))
        tb_op_join(c, tb_op_pieces(tb_op_out_count(c), 1), 1, 0, 1, c->gin[1]);
}

static void tan_(const tb_opcall *c)
{
    each(c, same_tan, scalar_tan);
}

static size_t scratch(const tb_opcall *c)
{
    size_t pieces = tb_op_pieces(tb_op_out_count(c), 1);
    return broadcasts(c) ? tb_op_part_bytes(pieces, 1) : 0;
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
    .scratch = scratch,
    .fwd = fwd,
    .bwd = bwd,
    .tan = tan_,
};
