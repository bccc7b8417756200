/* SPDX-License-Identifier: MIT */
/* Our own matrix product and attention for 64-bit ARM with FMA: for contexts
 * that are not exact. Built with -ffp-contract=fast. */
#include "kernels/kern_common.h"

#if defined(__aarch64__)

#    define KERN_VEC_BYTES 16
#    define GEMM_MR        8
#    define GEMM_KC        384
#    define GEMM_MC_BYTES  1024
#    define GEMM_NC_BYTES  512

#    define GEMM_THIN 16 /* rows */

#    define REAL_BITS 32
#    include "kernels/kern_real.h"
#    include "kernels/gemm_template.h"
#    include "kernels/kern_attn.h"
#    undef REAL_BITS
#    define REAL_BITS 64
#    include "kernels/kern_real.h"
#    include "kernels/gemm_template.h"
#    include "kernels/kern_attn.h"

const tb_gemm_part_fn tb_gemm_fma_neon[2] = {gemm_any_part_f32,
                                             gemm_any_part_f64};
const tb_k_attn_passes *const tb_attn_fma_neon[2] = {&attn_passes_f32,
                                                     &attn_passes_f64};

#else

const tb_gemm_part_fn tb_gemm_fma_neon[2] = {NULL, NULL};
const tb_k_attn_passes *const tb_attn_fma_neon[2] = {NULL, NULL};

#endif
