/* SPDX-License-Identifier: MIT */
/* linear: y = x W^T + b over rows; W is stored [out, in] as in checkpoints. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    (void)attr;
    if (in[0].kind != TB_SHAPE_STREAM)
        return tb_op_no(why, "a linear map applies to a stream");
    if (in[1].kind != TB_SHAPE_MATRIX)
        return tb_op_no(why, "its weight must be a matrix [out, in]");
    if (in[1].width != in[0].width)
        return tb_op_no(why, "the weight's input size is not the width");
    if (nin > 2 &&
        (in[2].kind != TB_SHAPE_VECTOR || in[2].width != in[1].height))
        return tb_op_no(why, "the bias must be a vector, one per output");
    *out = (tb_shape){TB_SHAPE_STREAM, in[1].height, 1};
    return true;
}

/* y (+)= x W^T, for the primal and both halves of the tangent. */
static tb_gemm_args product(const tb_opcall *c, const void *x, const void *w,
                            bool add, void *y)
{
    size_t din = c->in_shape[0].width, dout = c->out_shape.width;
    return tb_op_product_args(c, TB_OP_NT, tb_op_rows(c), dout, din,
                              (tb_op_mat){x, din}, (tb_op_mat){w, din}, add, y,
                              dout);
}

static void apply(const tb_opcall *c, const void *x, const void *w, bool add,
                  void *y)
{
    const tb_gemm_args g = product(c, x, w, add, y);
    tb_op_multiply(c, &g);
}

static void add_rows(const tb_opcall *c, size_t from, size_t to, const void *v,
                     void *y)
{
    size_t d = c->out_shape.width;
    c->k->row_add(to - from, d, v, tb_op_at(c, y, from * d));
}

static void bias_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    add_rows(c, from, to, c->in[2], c->out);
}

static void tan_bias_range(const tb_opcall *c, size_t from, size_t to,
                           size_t chunk)
{
    (void)chunk;
    if (c->tin[2])
        add_rows(c, from, to, c->tin[2], c->tout);
}

/* Is the bias the product's business? */
static bool fwd_whole(const tb_opcall *c)
{
    const tb_gemm_args g = product(c, c->in[0], c->in[1], false, c->out);
    return tb_gemm_adds_bias(c->ctx, &g);
}

static void fwd(const tb_opcall *c)
{
    tb_gemm_args g = product(c, c->in[0], c->in[1], false, c->out);
    if (c->nin > 2 && tb_gemm_adds_bias(c->ctx, &g))
        g.bias = c->in[2];
    tb_op_multiply(c, &g);
}

/* db = column sums of gy, in double */
static void bwd_bias_range(const tb_opcall *c, size_t from, size_t to,
                           size_t chunk)
{
    size_t d = c->out_shape.width;
    c->k->col_sum(to - from, d, tb_op_peek(c, c->gout, from * d),
                  tb_op_part(c, chunk, d));
}

static size_t part(const tb_opcall *c)
{
    return c->nin > 2 ? c->out_shape.width : 0;
}

static void join(const tb_opcall *c, size_t pieces)
{
    size_t d = c->out_shape.width;
    tb_op_join(c, pieces, d, 0, d, c->gin[2]);
}

/* dx (+)= gy W, dW (+)= gy^T x */
static void bwd(const tb_opcall *c)
{
    size_t rows = tb_op_rows(c);
    size_t din = c->in_shape[0].width, dout = c->out_shape.width;
    const tb_op_mat gy = {c->gout, dout};
    if (c->gin[0])
        tb_op_product(c, TB_OP_NN, rows, din, dout, gy,
                      (tb_op_mat){c->in[1], din}, c->gbase[0] != NULL,
                      c->gin[0], din);
    if (c->gin[1])
        tb_op_product(c, TB_OP_TN, dout, din, rows, gy,
                      (tb_op_mat){c->in[0], din}, c->gbase[1] != NULL,
                      c->gin[1], din);
}

/* ty = tx W^T + x tW^T + tb */
static void tan_(const tb_opcall *c)
{
    if (c->tin[0])
        apply(c, c->tin[0], c->in[1], false, c->tout);
    else if (!c->tin[1])
        tb_op_copy(c, tb_op_out_count(c), NULL, c->tout);
    if (c->tin[1])
        apply(c, c->in[0], c->tin[1], c->tin[0] != NULL, c->tout);
}

static double flops(const tb_opcall *c)
{
    return 2.0 * (double)tb_op_rows(c) * (double)c->in_shape[0].width *
           (double)c->out_shape.width;
}

const tb_op tb_op_linear = {
    .name = "linear",
    .symbol = "W",
    .min_in = 2,
    .max_in = 3,
    .lane = TB_LANE_CUT,
    .jac = TB_JAC_WEIGHT,
    .needs = TB_NEED_IN(0) | TB_NEED_IN(1),
    .rounds = true,
    .shape = shape,
    .fwd = fwd,
    .fwd_whole = fwd_whole,
    .bwd = bwd,
    .tan = tan_,
    .fwd_rows = bias_range,
    .bwd_rows = bwd_bias_range,
    .tan_rows = tan_bias_range,
    .rows_in = TB_NEED_IN(2),
    .part = part,
    .join = join,
    .bases = TB_NEED_IN(0) | TB_NEED_IN(1),
    .flops = flops,
    .work = TB_WORK_PRODUCT,
};
