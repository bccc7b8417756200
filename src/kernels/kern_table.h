/* SPDX-License-Identifier: MIT */
/* All kernels of one type and the table that names them; needs REAL_BITS and
 * KERN_ISA, the name of the instruction set. */
#include "kernels/kern_real.h"
#include "kernels/kern_template.h"
#include "kernels/kern_vec.h"
#include "kernels/kern_norm.h"
#include "kernels/kern_norm_bwd.h"
#include "kernels/kern_rows.h"
#include "kernels/kern_rope.h"
#if REAL_BITS == 32
#    include "kernels/kern_bf16.h"
#endif
#include "kernels/kern_random.h"
#include "kernels/gemm_template.h"
#include "kernels/kern_attn.h"

static const tb_kern FN(table) = {
    .dtype = REAL_BITS == 32 ? TB_F32 : TB_F64,
    .isa = KERN_ISA,
    .add = FN(add),
    .sub = FN(sub),
    .mul = FN(mul),
    .mul_acc = FN(mul_acc),
    .scale = FN(scale),
    .axpy = FN(axpy),
    .dot = FN(dot),
    .sum = FN(sum),
    .unary_fwd = FN(unary_fwd),
    .unary_slope = FN(unary_slope),
    .row_add = FN(row_add),
    .row_mul = FN(row_mul),
    .col_sum = FN(col_sum),
    .col_dot = FN(col_dot),
    .norm_fwd = FN(norm_fwd),
    .addnorm_fwd = FN(addnorm_fwd),
    .norm_bwd = FN(norm_bwd),
    .span_join = FN(span_join),
    .norm_tan = FN(norm_tan),
    .softmax_fwd = FN(softmax_fwd),
    .softmax_bwd = FN(softmax_bwd),
    .attn = &FN(attn_passes),
    .turn = FN(turn),
    .xent_fwd = FN(xent_fwd),
    .xent_bwd = FN(xent_bwd),
    .xent_tan = FN(xent_tan),
    .drop = FN(drop),
    .normal = FN(normal),
    .uniform = FN(uniform),
    .adamw = FN(adamw),
    .nonfinite = FN(nonfinite),
    .norm2 = FN(norm2),
#if REAL_BITS == 32
    .to_bf16 = to_bf16,
    .round_bf16 = round_bf16,
#endif
};

#undef REAL_BITS
