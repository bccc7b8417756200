/* SPDX-License-Identifier: MIT */
/* oneDNN's matmul primitive: what dnnl_sgemm cannot do (bf16), or does slower.
 * Only its version 2 has this C interface. */
#ifndef TB_KERNELS_GEMM_MATMUL_H
#define TB_KERNELS_GEMM_MATMUL_H

#include "kernels/kern_tables.h"

/** tb_library_open - the first of these that is there; it stays open, since its
 * threads outlive any context. "": passed over. */
void *tb_library_open(const char *const *files, size_t n);

typedef struct tb_dnnl_version {
    int major, minor, patch;
} tb_dnnl_version;

/** tb_dnnl_open - oneDNN, the version built with first, then 2, whose matmul we
 * know. NULL: not to be had; *v is 0.0.0 where it does not say. */
void *tb_dnnl_open(tb_dnnl_version *v);

typedef struct tb_matmul tb_matmul;

/** tb_matmul_create - the library opened; NULL where it is absent, has another
 * interface (said to the log), or memory ran out. Not inside tb_parallel. */
tb_matmul *tb_matmul_create(tb_ctx *ctx);
void tb_matmul_destroy(tb_ctx *ctx, tb_matmul *m); /* NULL is fine */

/** tb_matmul_version - "oneDNN 2.6.3". */
const char *tb_matmul_version(const tb_matmul *m);

/** tb_matmul_run - C = op(A) op(B) + beta C, beta 0 or 1, alpha 1, k > 0, or
 * + bias with beta 0; with g->bf16 a and b are bf16. False where the library
 * cannot do it, or only by its reference code: then C is as before. The first
 * product of a shape makes its code; later ones make nothing. Not inside
 * tb_parallel. */
bool tb_matmul_run(tb_ctx *ctx, tb_matmul *m, const tb_gemm_args *g);

#endif
