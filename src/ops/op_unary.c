/* SPDX-License-Identifier: MIT */
/* relu gelu gelu_tanh silu sigmoid tanh: one function per element; the kernels
 * hold the formulas. Forward leaves the slope beside the value: it costs little
 * there, and the other passes multiply by it. relu reads its slope off its
 * output, whose sign is its input's. */
#include "ops/op_help.h"

static void fwd_part(const tb_opcall *c, tb_unary f, size_t from, size_t to)
{
    const void *x = tb_op_peek(c, c->in[0], from);
    void *y = tb_op_at(c, c->out, from);
    if (c->saved)
        c->k->unary_slope(f, to - from, x, y, tb_op_at(c, c->saved, from));
    else
        c->k->unary_fwd(f, to - from, x, y);
}

static size_t slopes(const tb_opcall *c)
{
    return tb_op_bytes(c, tb_op_out_count(c));
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    c->k->mul_acc(
        to - from, tb_op_peek(c, c->gout, from), tb_op_peek(c, c->saved, from),
        tb_op_peek(c, c->gbase[0], from), tb_op_at(c, c->gin[0], from));
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    c->k->mul(to - from, tb_op_peek(c, c->tin[0], from),
              tb_op_peek(c, c->saved, from), tb_op_at(c, c->tout, from));
}

#define UNARY(id, label)                                                       \
    static void label##_fwd_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        (void)chunk;                                                           \
        fwd_part(c, TB_UNARY_##id, from, to);                                  \
    }                                                                          \
    const tb_op tb_op_##label = {                                              \
        .name = #label,                                                        \
        .symbol = #label,                                                      \
        .min_in = 1,                                                           \
        .max_in = 1,                                                           \
        .lane = TB_LANE_CUT,                                                   \
        .jac = TB_JAC_DIAG,                                                    \
        .shape = tb_op_shape_keep,                                             \
        .saved = slopes,                                                       \
        .saves_ahead = true,                                                   \
        .fwd_rows = label##_fwd_range,                                         \
        .bwd_rows = bwd_range,                                                 \
        .tan_rows = tan_range,                                                 \
        .elements = true,                                                      \
        .bases = TB_NEED_IN(0),                                                \
    };

UNARY(GELU, gelu)
UNARY(GELU_TANH, gelu_tanh)
UNARY(SILU, silu)
UNARY(SIGMOID, sigmoid)
UNARY(TANH, tanh)

/* --- relu --------------------------------------------------------------- */

static void relu_fwd_range(const tb_opcall *c, size_t from, size_t to,
                           size_t chunk)
{
    (void)chunk;
    c->k->unary_fwd(TB_UNARY_RELU, to - from, tb_op_peek(c, c->in[0], from),
                    tb_op_at(c, c->out, from));
}

/* The slopes of up to a block of elements from `from` on; how many. */
static size_t relu_slopes(const tb_opcall *c, size_t from, size_t to,
                          tb_op_block *d)
{
    size_t n = to - from < TB_OP_BLOCK ? to - from : TB_OP_BLOCK;
    c->k->unary_slope(TB_UNARY_RELU, n, tb_op_peek(c, c->out, from), NULL, d);
    return n;
}

static void relu_bwd_range(const tb_opcall *c, size_t from, size_t to,
                           size_t chunk)
{
    (void)chunk;
    tb_op_block d;
    for (size_t n; from < to; from += n) {
        n = relu_slopes(c, from, to, &d);
        c->k->mul_acc(n, tb_op_peek(c, c->gout, from), &d,
                      tb_op_peek(c, c->gbase[0], from),
                      tb_op_at(c, c->gin[0], from));
    }
}

static void relu_tan_range(const tb_opcall *c, size_t from, size_t to,
                           size_t chunk)
{
    (void)chunk;
    tb_op_block d;
    for (size_t n; from < to; from += n) {
        n = relu_slopes(c, from, to, &d);
        c->k->mul(n, tb_op_peek(c, c->tin[0], from), &d,
                  tb_op_at(c, c->tout, from));
    }
}

const tb_op tb_op_relu = {
    .name = "relu",
    .symbol = "relu",
    .min_in = 1,
    .max_in = 1,
    .lane = TB_LANE_CUT,
    .jac = TB_JAC_DIAG,
    .needs = TB_NEED_OUT,
    .shape = tb_op_shape_keep,
    .fwd_rows = relu_fwd_range,
    .bwd_rows = relu_bwd_range,
    .tan_rows = relu_tan_range,
    .elements = true,
    .bases = TB_NEED_IN(0),
};
