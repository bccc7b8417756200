/* SPDX-License-Identifier: MIT */
/* add: y = a + b. sub: y = a - b. Equal shapes, nothing broadcasts. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    (void)nin, (void)attr;
    bool one = in[0].kind == TB_SHAPE_STREAM && in[1].kind != in[0].kind;
    if (one && in[1].kind != TB_SHAPE_MATRIX)
        return tb_op_no(why, "both sides must have the same shape; shift(x, b) "
                             "adds b to every token");
    if (!tb_op_same(in[0], in[1]))
        return tb_op_no(why, "both sides must have the same shape");
    if (in[0].kind != TB_SHAPE_STREAM && in[0].kind != TB_SHAPE_SCALAR)
        return tb_op_no(why, "both sides must be streams or scalars");
    *out = in[0];
    return true;
}

static void add_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    c->k->add(to - from, tb_op_peek(c, c->in[0], from),
              tb_op_peek(c, c->in[1], from), tb_op_at(c, c->out, from));
}

static void sub_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    c->k->sub(to - from, tb_op_peek(c, c->in[0], from),
              tb_op_peek(c, c->in[1], from), tb_op_at(c, c->out, from));
}

/* g0 += gy, g1 += sign gy */
static void bwd_signed(const tb_opcall *c, size_t from, size_t to, double sign)
{
    const void *gy = tb_op_peek(c, c->gout, from);
    if (c->gin[0])
        tb_op_plus(c, to - from, gy, tb_op_at(c, c->gin[0], from));
    if (c->gin[1])
        c->k->axpy(to - from, sign, gy, tb_op_at(c, c->gin[1], from));
}

static void add_bwd_range(const tb_opcall *c, size_t from, size_t to,
                          size_t chunk)
{
    (void)chunk;
    bwd_signed(c, from, to, 1);
}

static void sub_bwd_range(const tb_opcall *c, size_t from, size_t to,
                          size_t chunk)
{
    (void)chunk;
    bwd_signed(c, from, to, -1);
}

/* ty = t0 + sign t1 */
static void tan_signed(const tb_opcall *c, size_t from, size_t to, double sign)
{
    void *ty = tb_op_at(c, c->tout, from);
    tb_op_copy(c, to - from, tb_op_peek(c, c->tin[0], from), ty);
    if (c->tin[1])
        c->k->axpy(to - from, sign, tb_op_peek(c, c->tin[1], from), ty);
}

static void add_tan_range(const tb_opcall *c, size_t from, size_t to,
                          size_t chunk)
{
    (void)chunk;
    tan_signed(c, from, to, 1);
}

static void sub_tan_range(const tb_opcall *c, size_t from, size_t to,
                          size_t chunk)
{
    (void)chunk;
    tan_signed(c, from, to, -1);
}

const tb_op tb_op_add = {
    .name = "add",
    .sums = true,
    .symbol = "+",
    .min_in = 2,
    .max_in = 2,
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_SUM,
    .shape = shape,
    .fwd_rows = add_range,
    .bwd_rows = add_bwd_range,
    .tan_rows = add_tan_range,
    .elements = true,
};

const tb_op tb_op_sub = {
    .name = "sub",
    .symbol = "-",
    .min_in = 2,
    .max_in = 2,
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_DIFF,
    .shape = shape,
    .fwd_rows = sub_range,
    .bwd_rows = sub_bwd_range,
    .tan_rows = sub_tan_range,
    .elements = true,
};
