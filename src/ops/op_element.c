/* SPDX-License-Identifier: MIT */
/* exp, abs: functions of one element that the kernels do not have, of streams
 * and of parameters (a logit scale, a step that must not change sign). */
#include "ops/op_help.h"
#include "base/math_inline.h"

/* The value; the slope, from the operand a row names: in[0] or out. */
static double exp_of(double x)
{
    return tb_inline_exp(x);
}

static double exp_slope(double y)
{
    return y;
}

static double abs_of(double x)
{
    return tb_fabs(x);
}

/* 0 at 0; a nan stays one */
static double abs_slope(double x)
{
    double sign = x > 0 ? 1 : x;
    return x < 0 ? -1 : sign;
}

#define ELEMENT(label, from_, need)                                            \
    static void label##_fwd_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        (void)chunk;                                                           \
        for (size_t i = from; i < to; i++)                                     \
            tb_op_set(c, c->out, i, label##_of(tb_op_get(c, c->in[0], i)));    \
    }                                                                          \
    static void label##_bwd_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        (void)chunk;                                                           \
        for (size_t i = from; i < to; i++)                                     \
            tb_op_acc(c, c->gin[0], i,                                         \
                      tb_op_get(c, c->gout, i) *                               \
                          label##_slope(tb_op_get(c, c->from_, i)));           \
    }                                                                          \
    static void label##_tan_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        (void)chunk;                                                           \
        for (size_t i = from; i < to; i++)                                     \
            tb_op_set(c, c->tout, i,                                           \
                      tb_op_get(c, c->tin[0], i) *                             \
                          label##_slope(tb_op_get(c, c->from_, i)));           \
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

ELEMENT(exp, out, TB_NEED_OUT)
ELEMENT(abs, in[0], TB_NEED_IN(0))
