/* SPDX-License-Identifier: MIT */
/* The kernels for AVX2 (256-bit vectors, no FMA). Built with its own
 * flags and reached only through dispatch.c. */
#include "kernels/kern_common.h"

#if defined(__x86_64__)

#    if !defined(__AVX2__)
#        error "kern_avx2.c needs its flags, see src/CMakeLists.txt"
#    endif

#    define KERN_ISA       "avx2"
#    define KERN_VEC_BYTES 32
#    define GEMM_MR        4

#    define REAL_BITS 32
#    include "kernels/kern_table.h"
#    define REAL_BITS 64
#    include "kernels/kern_table.h"

const tb_kern *const tb_kern_avx2[2] = {&table_f32, &table_f64};
const tb_gemm_part_fn tb_gemm_part_avx2[2] = {gemm_part_f32, gemm_part_f64};

#else

const tb_kern *const tb_kern_avx2[2] = {NULL, NULL};
const tb_gemm_part_fn tb_gemm_part_avx2[2] = {NULL, NULL};

#endif
