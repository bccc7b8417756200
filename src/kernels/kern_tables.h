/* SPDX-License-Identifier: MIT */
/* What the files of one instruction set offer to dispatch.c and gemm_ref.c.
 * Arrays are indexed by tb_dtype; NULL where the build lacks that set. */
#ifndef TB_KERNELS_KERN_TABLES_H
#define TB_KERNELS_KERN_TABLES_H

#include "kernels/kernels.h"

extern const tb_kern *const tb_kern_ref[2];
extern const tb_kern *const tb_kern_avx2[2];
extern const tb_kern *const tb_kern_avx512[2];
extern const tb_kern *const tb_kern_neon[2];

/** Rows [i0,i1) and columns [j0,j1) of a product. */
typedef struct tb_gemm_part {
    size_t i0, i1, j0, j1;
} tb_gemm_part;

typedef void (*tb_gemm_part_fn)(const tb_gemm_args *g, tb_gemm_part part);

extern const tb_gemm_part_fn tb_gemm_part_ref[2];
extern const tb_gemm_part_fn tb_gemm_part_avx2[2];
extern const tb_gemm_part_fn tb_gemm_part_avx512[2];
extern const tb_gemm_part_fn tb_gemm_part_neon[2];

/* with FMA: other bits, twice the speed */
extern const tb_gemm_part_fn tb_gemm_fma_avx2[2];
extern const tb_gemm_part_fn tb_gemm_fma_avx512[2];
extern const tb_gemm_part_fn tb_gemm_fma_neon[2];

extern const tb_k_attn_passes *const tb_attn_fma_avx2[2];
extern const tb_k_attn_passes *const tb_attn_fma_avx512[2];
extern const tb_k_attn_passes *const tb_attn_fma_neon[2];

/** tb_gemm_part_get - the fastest part function up to `limit` (NULL: all).
 * Without FMA all give the same bits. */
tb_gemm_part_fn tb_gemm_part_get(const char *limit, tb_dtype dtype, bool fma);

/** Operands rounded to bf16, by the processor's own instruction. */
extern const tb_gemm_part_fn tb_gemm_bf16_avx512;
/** tb_gemm_bf16_get - it, or NULL where this build, the processor or `limit`
 * lacks it. tb_gemm_has_amx - are there tile units for bf16? */
tb_gemm_part_fn tb_gemm_bf16_get(const char *limit);
bool tb_gemm_has_amx(void);

/** tb_gemm_cut - a product by `part`, in parallel. */
void tb_gemm_cut(const tb_ctx *ctx, const tb_gemm_args *g,
                 tb_gemm_part_fn part);

/** tb_gemm_own - our own product in parallel: the same bits for any number of
 * threads, and those of tb_gemm_ref if the context is exact. */
void tb_gemm_own(const tb_ctx *ctx, const tb_gemm_args *g);

/** One library's product, whatever the context prefers; false if there is no
 * such library or it cannot do this product: then C is as before. */
bool tb_gemm_dnnl(tb_ctx *ctx, const tb_gemm_args *g);
bool tb_gemm_cblas(tb_ctx *ctx, const tb_gemm_args *g);

/** tb_gemm_bf16 - the live product of operands rounded to bf16; then each one
 * by itself, false as above. */
void tb_gemm_bf16(tb_ctx *ctx, const tb_gemm_args *g);
void tb_gemm_bf16_emulated(tb_ctx *ctx, const tb_gemm_args *g);
bool tb_gemm_bf16_own(tb_ctx *ctx, const tb_gemm_args *g);
bool tb_gemm_bf16_dnnl(tb_ctx *ctx, const tb_gemm_args *g);
/** tb_gemm_bf16_name - which. */
const char *tb_gemm_bf16_name(tb_ctx *ctx);

#endif
