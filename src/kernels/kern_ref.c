/* SPDX-License-Identifier: MIT */
/* The kernels with the compiler's default instruction set: the definition
 * that every other table must match bit for bit, and the browser's. */
#include "kernels/kern_common.h"

#if defined(__wasm__)
#    define KERN_ISA "wasm"
#else
#    define KERN_ISA "ref"
#endif
#define KERN_VEC_BYTES 16
#define GEMM_MR        4

#define REAL_BITS 32
#include "kernels/kern_table.h"
#define REAL_BITS 64
#include "kernels/kern_table.h"

const tb_kern *const tb_kern_ref[2] = {&table_f32, &table_f64};
const tb_gemm_part_fn tb_gemm_part_ref[2] = {gemm_part_f32, gemm_part_f64};
