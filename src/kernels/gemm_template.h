/* SPDX-License-Identifier: MIT */
/* Our own matrix product over REAL. Every element is, in this order, beta c,
 * then for each block of GEMM_KC values of k alpha times the block's sum over
 * k in increasing order. Compiled without FMA it has the same bits for any
 * tile, part or thread; compiled with FMA (gemm_fma_*.c) it is twice as fast.
 * A is packed in panels of GEMM_MR rows, B in panels of GEMM_NR columns. */

#ifndef GEMM_KC
#    define GEMM_KC 256
/* bytes of one packed column of A and row of B: 192 KiB on the stack */
#    define GEMM_MC_BYTES 512
#    define GEMM_NC_BYTES 256
#endif

enum {
    FN(VEC) = KERN_VEC_BYTES / (int)sizeof(REAL),
    FN(NR) = 2 * FN(VEC),
    FN(MC) = GEMM_MC_BYTES / (int)sizeof(REAL),
    FN(NC) = GEMM_NC_BYTES / (int)sizeof(REAL)
};

typedef REAL FN(vec) __attribute__((vector_size(KERN_VEC_BYTES)));

/* element (i, k) of op(A) and (k, j) of op(B) */
TB_INLINE size_t FN(a_at)(const tb_gemm_args *g, size_t i, size_t k)
{
    return g->ta ? k * g->lda + i : i * g->lda + k;
}

TB_INLINE size_t FN(b_at)(const tb_gemm_args *g, size_t k, size_t j)
{
    return g->tb ? j * g->ldb + k : k * g->ldb + j;
}

/* One panel: k slowest, then `width` lines of which w exist, the others are
 * zero. `line` and `step` are the distances of neighbours in x along a line's
 * index and along k; one of them is 1. */
TB_INLINE void FN(pack_panel)(const REAL *x, size_t line, size_t step, size_t w,
                              size_t kc, size_t width, REAL *out)
{
    if (w < width)
        memset(out, 0, width * kc * sizeof *out);
    if (line == 1 && w == width)
        for (size_t k = 0; k < kc; k++) /* a constant size: vector moves */
            memcpy(out + k * width, x + k * step, width * sizeof *out);
    else if (line == 1)
        for (size_t k = 0; k < kc; k++)
            memcpy(out + k * width, x + k * step, w * sizeof *out);
    else
        for (size_t j = 0; j < w; j++)
            for (size_t k = 0; k < kc; k++)
                out[k * width + j] = x[j * line + k * step];
}

/* A piece of an operand as panels one after the other. */
TB_INLINE void FN(pack)(const REAL *x, size_t line, size_t step, size_t lines,
                        size_t kc, size_t width, REAL *out)
{
    for (size_t l = 0; l < lines; l += width, out += width * kc)
        FN(pack_panel)
    (x + l * line, line, step, lines - l < width ? lines - l : width, kc, width,
     out);
}

static void FN(pack_a)(const REAL *x, size_t line, size_t step, size_t lines,
                       size_t kc, REAL *out)
{
    FN(pack)(x, line, step, lines, kc, GEMM_MR, out);
}

static void FN(pack_b)(const REAL *x, size_t line, size_t step, size_t lines,
                       size_t kc, REAL *out)
{
    FN(pack)(x, line, step, lines, kc, FN(NR), out);
}

#if defined(__clang__)
#    define GEMM_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#    define GEMM_UNROLL _Pragma("GCC unroll 16")
#else
#    define GEMM_UNROLL
#endif

/* acc[MR][NR] = sum over k of a panel times b panel, kept in registers */
TB_INLINE void FN(tile)(size_t kc, const REAL *a, const REAL *b, REAL *acc)
{
    const FN(vec) zero = {0};
    FN(vec) c[GEMM_MR][2], b0, b1;
    GEMM_UNROLL
    for (int i = 0; i < GEMM_MR; i++)
        c[i][0] = c[i][1] = zero;
    for (size_t k = 0; k < kc; k++, a += GEMM_MR, b += FN(NR)) {
        memcpy(&b0, b, sizeof b0);
        memcpy(&b1, b + FN(VEC), sizeof b1);
        GEMM_UNROLL
        for (int i = 0; i < GEMM_MR; i++) {
            c[i][0] += a[i] * b0;
            c[i][1] += a[i] * b1;
        }
    }
    GEMM_UNROLL
    for (int i = 0; i < GEMM_MR; i++) {
        memcpy(acc + i * FN(NR), &c[i][0], sizeof b0);
        memcpy(acc + i * FN(NR) + FN(VEC), &c[i][1], sizeof b1);
    }
}

#undef GEMM_UNROLL

/* c = beta c + alpha acc on the mr x nr elements that exist */
TB_INLINE void FN(tile_store)(const REAL *acc, size_t mr, size_t nr, REAL alpha,
                              REAL beta, REAL *c, size_t ldc)
{
    for (size_t i = 0; i < mr; i++, acc += FN(NR), c += ldc) {
        TB_IVDEP
        for (size_t j = 0; beta == 0 && j < nr; j++)
            c[j] = alpha * acc[j]; /* c may be uninitialised */
        TB_IVDEP
        for (size_t j = 0; beta != 0 && j < nr; j++)
            c[j] = beta * c[j] + alpha * acc[j];
    }
}

/* every tile of packed A [mc, kc] times packed B [kc, nc] */
static void FN(tiles)(size_t mc, size_t nc, size_t kc, const REAL *a,
                      const REAL *b, REAL alpha, REAL beta, REAL *c, size_t ldc)
{
    REAL acc[GEMM_MR * FN(NR)];
    for (size_t j = 0; j < nc; j += FN(NR))
        for (size_t i = 0; i < mc; i += GEMM_MR) {
            size_t mr = mc - i < GEMM_MR ? mc - i : GEMM_MR, at = i * ldc + j;
            FN(tile)(kc, a + i * kc, b + j * kc, acc);
            if (nc - j >= FN(NR)) /* a constant width has no tail */
                FN(tile_store)(acc, mr, FN(NR), alpha, beta, c + at, ldc);
            else
                FN(tile_store)(acc, mr, nc - j, alpha, beta, c + at, ldc);
        }
}

/* k in [k0, k0+kc) of one block of rows, over all its columns */
static void FN(gemm_rows)(const tb_gemm_args *g, tb_gemm_part p, size_t k0,
                          size_t kc, const REAL *pa, REAL *pb)
{
    REAL beta = k0 == 0 ? (REAL)g->beta : 1;
    const REAL *b = g->b;
    REAL *c = g->c;
    for (size_t j = p.j0; j < p.j1; j += FN(NC)) {
        size_t nc = p.j1 - j < FN(NC) ? p.j1 - j : FN(NC);
        FN(pack_b)
        (b + FN(b_at)(g, k0, j), g->tb ? g->ldb : 1, g->tb ? 1 : g->ldb, nc, kc,
         pb);
        FN(tiles)
        (p.i1 - p.i0, nc, kc, pa, pb, (REAL)g->alpha, beta,
         c + p.i0 * g->ldc + j, g->ldc);
    }
}

static void FN(gemm_part)(const tb_gemm_args *g, tb_gemm_part p)
{
    /* the last panel of A may be padded beyond MC */
    REAL pa[(FN(MC) + GEMM_MR - 1) * GEMM_KC], pb[FN(NC) * GEMM_KC];
    const REAL *a = g->a;
    for (size_t i = p.i0; i < p.i1; i += FN(MC)) {
        size_t mc = p.i1 - i < FN(MC) ? p.i1 - i : FN(MC);
        tb_gemm_part rows = {i, i + mc, p.j0, p.j1};
        size_t k = 0;
        do { /* once even for an empty sum, which is beta c */
            size_t kc = g->k - k < GEMM_KC ? g->k - k : GEMM_KC;
            FN(pack_a)
            (a + FN(a_at)(g, i, k), g->ta ? 1 : g->lda, g->ta ? g->lda : 1, mc,
             kc, pa);
            FN(gemm_rows)(g, rows, k, kc, pa, pb);
            k += kc;
        } while (k < g->k);
    }
}
