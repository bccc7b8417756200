/* SPDX-License-Identifier: MIT */
/* shift: y = x + b for every token, b a vector as wide as the stream or a
 * scalar: the biases of Fixup (Zhang, Dauphin, Ma 2019, arXiv:1901.09321) and
 * of gates whose weights a factor multiplies first (mHC, arXiv:2512.24880). */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    (void)nin, (void)attr;
    if (in[0].kind != TB_SHAPE_STREAM)
        return tb_op_no(why, "what is shifted must be a stream");
    if (in[1].kind != TB_SHAPE_VECTOR && in[1].kind != TB_SHAPE_SCALAR)
        return tb_op_no(why, "it shifts by a vector or a scalar; two streams "
                             "are added with +");
    if (in[1].kind == TB_SHAPE_VECTOR && in[1].width != in[0].width)
        return tb_op_no(why, "the vector must be as wide as the stream");
    *out = in[0];
    return true;
}

/* y[r,:] += b */
static void plus(const tb_opcall *c, size_t rows, const void *b, void *y)
{
    size_t d = c->out_shape.width;
    if (!b)
        return;
    if (c->in_shape[1].kind == TB_SHAPE_VECTOR) {
        c->k->row_add(rows, d, b, y);
        return;
    }
    double v = tb_op_get(c, b, 0);
    for (size_t i = 0; i < rows * d; i++)
        tb_op_acc(c, y, i, v);
}

static void shifted(const tb_opcall *c, size_t from, size_t to, const void *x,
                    const void *b, void *y)
{
    size_t d = c->out_shape.width;
    tb_op_copy(c, (to - from) * d, tb_op_peek(c, x, from * d),
               tb_op_at(c, y, from * d));
    plus(c, to - from, b, tb_op_at(c, y, from * d));
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    shifted(c, from, to, c->in[0], c->in[1], c->out);
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    shifted(c, from, to, c->tin[0], c->tin[1], c->tout);
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t d = c->out_shape.width;
    const void *gy = tb_op_peek(c, c->gout, from * d);
    double *part = tb_op_part(c, chunk, d);
    if (c->gin[0])
        tb_op_plus(c, (to - from) * d, gy, tb_op_at(c, c->gin[0], from * d));
    if (!c->gin[1])
        return;
    c->k->col_sum(to - from, d, gy, part);
}

static size_t part(const tb_opcall *c)
{
    return c->out_shape.width;
}

/* A scalar's gradient is the sum of all columns. */
static void join(const tb_opcall *c, size_t pieces)
{
    size_t d = c->out_shape.width;
    double sum = 0;
    for (size_t i = 0; i < d && c->in_shape[1].kind == TB_SHAPE_SCALAR; i++)
        sum += tb_op_total(c, pieces, d, i);
    if (c->in_shape[1].kind == TB_SHAPE_VECTOR)
        tb_op_join(c, pieces, d, 0, d, c->gin[1]);
    else if (c->gin[1])
        tb_op_acc(c, c->gin[1], 0, sum);
}

const tb_op tb_op_shift = {
    .name = "shift",
    .symbol = "+",
    .min_in = 2,
    .max_in = 2,
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_SUM,
    .shape = shape,
    .fwd_rows = fwd_range,
    .bwd_rows = bwd_range,
    .tan_rows = tan_range,
    .part = part,
    .join = join,
};
