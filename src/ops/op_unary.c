/* SPDX-License-Identifier: MIT */
/* relu gelu gelu_tanh silu sigmoid tanh: one function per element. The
 * kernels hold the formulas; a row here names the function and the operand
 * its derivative is read from. relu reads its output, whose sign is its
 * input's, so that the input need not be kept. */
#include "ops/op_help.h"

static void fwd_part(const tb_opcall *c, tb_unary f, size_t from, size_t to)
{
    c->k->unary_fwd(f, to - from, tb_op_peek(c, c->in[0], from),
                    tb_op_at(c, c->out, from));
}

static void bwd_part(const tb_opcall *c, tb_unary f, const void *at,
                     size_t from, size_t to)
{
    c->k->unary_bwd(f, to - from, tb_op_peek(c, at, from),
                    tb_op_peek(c, c->gout, from), tb_op_at(c, c->gin[0], from));
}

static void tan_part(const tb_opcall *c, tb_unary f, const void *at,
                     size_t from, size_t to)
{
    c->k->unary_tan(f, to - from, tb_op_peek(c, at, from),
                    tb_op_peek(c, c->tin[0], from), tb_op_at(c, c->tout, from));
}

/* `at`: where the derivative is taken, in[0] or out; `need` its bit. */
#define UNARY(id, label, at, need)                                             \
    static void label##_fwd_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        (void)chunk;                                                           \
        fwd_part(c, TB_UNARY_##id, from, to);                                  \
    }                                                                          \
    static void label##_bwd_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        (void)chunk;                                                           \
        bwd_part(c, TB_UNARY_##id, c->at, from, to);                           \
    }                                                                          \
    static void label##_tan_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        (void)chunk;                                                           \
        tan_part(c, TB_UNARY_##id, c->at, from, to);                           \
    }                                                                          \
    const tb_op tb_op_##label = {                                              \
        .name = #label,                                                        \
        .symbol = #label,                                                      \
        .min_in = 1,                                                           \
        .max_in = 1,                                                           \
        .lane = TB_LANE_CUT,                                                   \
        .jac = TB_JAC_DIAG,                                                    \
        .needs = need,                                                         \
        .shape = tb_op_shape_keep,                                             \
        .fwd_rows = label##_fwd_range,                                         \
        .bwd_rows = label##_bwd_range,                                         \
        .tan_rows = label##_tan_range,                                         \
        .elements = true,                                                      \
    };

UNARY(RELU, relu, out, TB_NEED_OUT)
UNARY(GELU, gelu, in[0], TB_NEED_IN(0))
UNARY(GELU_TANH, gelu_tanh, in[0], TB_NEED_IN(0))
UNARY(SILU, silu, in[0], TB_NEED_IN(0))
UNARY(SIGMOID, sigmoid, in[0], TB_NEED_IN(0))
UNARY(TANH, tanh, in[0], TB_NEED_IN(0))
