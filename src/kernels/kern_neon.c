/* SPDX-License-Identifier: MIT */
/* The kernels for 64-bit ARM (128-bit vectors, no FMA), whose every processor
 * has NEON: no flags of its own. Twice the registers of SSE2 hold a tile of
 * eight rows. */
#include "kernels/kern_common.h"

#if defined(__aarch64__)

#    define KERN_ISA       "neon"
#    define KERN_VEC_BYTES 16
#    define GEMM_MR        8

#    define REAL_BITS 32
#    include "kernels/kern_table.h"
#    define REAL_BITS 64
#    include "kernels/kern_table.h"

const tb_kern *const tb_kern_neon[2] = {&table_f32, &table_f64};
const tb_gemm_part_fn tb_gemm_part_neon[2] = {gemm_part_f32, gemm_part_f64};

#else

const tb_kern *const tb_kern_neon[2] = {NULL, NULL};
const tb_gemm_part_fn tb_gemm_part_neon[2] = {NULL, NULL};

#endif
