/* SPDX-License-Identifier: MIT */
/* softmax over the width of each row of a stream or a matrix, or of a vector;
 * derivatives from the output alone. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    if (in[0].kind == TB_SHAPE_SCALAR)
        return tb_op_no(why, "a softmax of one number is 1");
    return tb_op_shape_keep(in, nin, attr, out, why);
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    size_t d = c->out_shape.width;
    void *y = tb_op_at(c, c->out, from * d);
    tb_op_copy(c, (to - from) * d, tb_op_peek(c, c->in[0], from * d), y);
    c->k->softmax_fwd(to - from, d, d, d, 1, y);
}

/* The kernel works in place, so each chunk has one row of its own. */
static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t d = c->out_shape.width;
    void *row = tb_op_part(c, chunk, d);
    for (size_t r = from; r < to; r++) {
        tb_op_copy(c, d, tb_op_peek(c, c->gout, r * d), row);
        c->k->softmax_bwd(1, d, d, d, 1, tb_op_peek(c, c->out, r * d), row);
        tb_op_plus(c, d, row, tb_op_at(c, c->gin[0], r * d));
    }
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    size_t d = c->out_shape.width;
    void *ty = tb_op_at(c, c->tout, from * d);
    tb_op_copy(c, (to - from) * d, tb_op_peek(c, c->tin[0], from * d), ty);
    if (c->tin[0])
        c->k->softmax_bwd(to - from, d, d, d, 1,
                          tb_op_peek(c, c->out, from * d), ty);
}

static size_t part(const tb_opcall *c)
{
    return c->out_shape.width;
}

const tb_op tb_op_softmax = {
    .name = "softmax",
    .symbol = "softmax",
    .min_in = 1,
    .max_in = 1,
    .lane = TB_LANE_CUT,
    .jac = TB_JAC_SYMBOL,
    .needs = TB_NEED_OUT,
    .shape = shape,
    .fwd_rows = fwd_range,
    .bwd_rows = bwd_range,
    .tan_rows = tan_range,
    .part = part,
};
