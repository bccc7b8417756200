/* SPDX-License-Identifier: MIT */
/* div: y = a / s, s a scalar and a a stream or a scalar. Both derivatives
 * follow from y, which is kept instead of a: dy = da / s - y ds / s. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    (void)nin, (void)attr;
    if (in[1].kind != TB_SHAPE_SCALAR)
        return tb_op_no(why, "only a scalar can stand under a division");
    if (in[0].kind != TB_SHAPE_STREAM && in[0].kind != TB_SHAPE_SCALAR)
        return tb_op_no(why, "only a stream or a scalar can be divided");
    *out = in[0];
    return true;
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    double s = tb_op_get(c, c->in[1], 0);
    for (size_t i = from; i < to; i++)
        tb_op_set(c, c->out, i, tb_op_get(c, c->in[0], i) / s);
}

static void fwd(const tb_opcall *c)
{
    tb_op_each(c, tb_op_out_count(c), 1, fwd_range);
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    double s = tb_op_get(c, c->in[1], 0);
    const void *gy = tb_op_peek(c, c->gout, from);
    if (c->gin[0])
        c->k->axpy(to - from, 1 / s, gy, tb_op_at(c, c->gin[0], from));
    if (c->gin[1])
        *tb_op_part(c, chunk, 1) =
            -c->k->dot(to - from, gy, tb_op_peek(c, c->out, from)) / s;
}

static void bwd(const tb_opcall *c)
{
    size_t n = tb_op_out_count(c);
    tb_op_each(c, n, 1, bwd_range);
    tb_op_join(c, tb_op_pieces(n, 1), 1, 0, 1, c->gin[1]);
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
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

static void tan_(const tb_opcall *c)
{
    tb_op_each(c, tb_op_out_count(c), 1, tan_range);
}

static size_t scratch(const tb_opcall *c)
{
    return tb_op_part_bytes(tb_op_pieces(tb_op_out_count(c), 1), 1);
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
