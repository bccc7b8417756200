/* SPDX-License-Identifier: MIT */
/* Our own matrix product and attention for AVX-512 with FMA: for contexts that
 * are not exact. Built with -ffp-contract=fast. */
#include "kernels/kern_common.h"

#if defined(__x86_64__)

#    if !defined(__AVX512F__)
#        error "gemm_fma_avx512.c needs its flags, see src/CMakeLists.txt"
#    endif

#    define KERN_VEC_BYTES 64
#    define GEMM_MR        12
#    define GEMM_KC        384
/* B's block, 576 KiB, is what a second cache of 1 MiB holds beside the rest */
#    define GEMM_NC_BYTES 1536
#    define GEMM_MC_BYTES 384

#    define GEMM_THIN 64 /* rows */

#    define REAL_BITS 32
#    include "kernels/kern_real.h"
#    include "kernels/gemm_template.h"
#    include "kernels/kern_attn.h"
#    undef REAL_BITS
#    define REAL_BITS 64
#    include "kernels/kern_real.h"
#    include "kernels/gemm_template.h"
#    include "kernels/kern_attn.h"

const tb_gemm_part_fn tb_gemm_fma_avx512[2] = {gemm_any_part_f32,
                                               gemm_any_part_f64};
const tb_k_attn_passes *const tb_attn_fma_avx512[2] = {&attn_passes_f32,
                                                       &attn_passes_f64};

#else

const tb_gemm_part_fn tb_gemm_fma_avx512[2] = {NULL, NULL};
const tb_k_attn_passes *const tb_attn_fma_avx512[2] = {NULL, NULL};

#endif
