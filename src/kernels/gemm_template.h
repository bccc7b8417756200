/* SPDX-License-Identifier: MIT */
/* Our own matrix product over REAL. Every element is, in this order, beta c,
 * then for each block of GEMM_KC values of k alpha times the block's sum over
 * k in increasing order. Compiled without FMA it has the same bits for any
 * tile, part or thread; compiled with FMA (gemm_fma_*.c) it is twice as fast.
 * A block of B is copied into panels of two vectors of columns; a tile of
 * GEMM_MR rows and two vectors stays in registers. */

#ifndef GEMM_UNROLL
#    ifndef GEMM_KC
#        define GEMM_KC 256
#    endif
/* bytes of a column of A's block and a row of B's: 150 KiB on the stack */
#    ifndef GEMM_MC_BYTES
#        define GEMM_MC_BYTES 512
#        define GEMM_NC_BYTES 256
#    endif
#    if defined(__clang__)
#        define GEMM_UNROLL _Pragma("clang loop unroll(full)")
#    elif defined(__GNUC__)
#        define GEMM_UNROLL _Pragma("GCC unroll 16")
#    else
#        define GEMM_UNROLL
#    endif
#endif

enum {
    FN(VEC) = KERN_VEC_BYTES / (int)sizeof(REAL),
    FN(NR) = 2 * FN(VEC),
    FN(MC) = GEMM_MC_BYTES / (int)sizeof(REAL) / (2 * GEMM_MR) * (2 * GEMM_MR),
    FN(NC) = GEMM_NC_BYTES / (int)sizeof(REAL),
    /* rows of a panel lie this far apart: not a multiple of a page, which
     * would put them all into the same lines of the cache */
    FN(ROW) = GEMM_KC + 64 / (int)sizeof(REAL)
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

TB_INLINE size_t FN(least)(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* --- copies --------------------------------------------------------------- */

/* Rows of op(A), each kc long and ROW apart; `rows` may be more than there
 * are: those are zero. */
static void FN(copy_rows)(const tb_gemm_args *g, size_t i0, size_t rows,
                          size_t k0, size_t kc, REAL *out)
{
    const REAL *a = g->a;
    for (size_t i = i0; i < i0 + rows; i++, out += FN(ROW)) {
        if (i >= g->m)
            memset(out, 0, kc * sizeof *out);
        else if (!g->ta)
            memcpy(out, a + i * g->lda + k0, kc * sizeof *out);
        for (size_t k = 0; g->ta && i < g->m && k < kc; k++)
            out[k] = a[(k0 + k) * g->lda + i];
    }
}

/* A square of vectors, transposed by rounds of a perfect shuffle, from lines
 * `ld` apart to lines NR apart. */
TB_INLINE void FN(transpose)(const REAL *x, size_t ld, REAL *out)
{
#if KERN_VEC_BYTES * 8 / REAL_BITS == 16
#    define GEMM_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#    define GEMM_HIGH                                                          \
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif KERN_VEC_BYTES * 8 / REAL_BITS == 8
#    define GEMM_LOW  0, 8, 1, 9, 2, 10, 3, 11
#    define GEMM_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif KERN_VEC_BYTES * 8 / REAL_BITS == 4
#    define GEMM_LOW  0, 4, 1, 5
#    define GEMM_HIGH 2, 6, 3, 7
#else
#    define GEMM_LOW  0, 2
#    define GEMM_HIGH 1, 3
#endif
    FN(vec) v[FN(VEC)], t[FN(VEC)];
    GEMM_UNROLL
    for (int i = 0; i < FN(VEC); i++)
        memcpy(&v[i], x + (size_t)i * ld, sizeof v[i]);
    GEMM_UNROLL
    for (int round = 1; round < FN(VEC); round *= 2) {
        GEMM_UNROLL
        for (int i = 0; i < FN(VEC) / 2; i++) {
            t[2 * i] =
                __builtin_shufflevector(v[i], v[i + FN(VEC) / 2], GEMM_LOW);
            t[2 * i + 1] =
                __builtin_shufflevector(v[i], v[i + FN(VEC) / 2], GEMM_HIGH);
        }
        GEMM_UNROLL
        for (int i = 0; i < FN(VEC); i++)
            v[i] = t[i];
    }
    GEMM_UNROLL
    for (int i = 0; i < FN(VEC); i++)
        memcpy(out + i * FN(NR), &v[i], sizeof v[i]);
#undef GEMM_LOW
#undef GEMM_HIGH
}

/* One panel of B from lines along k: squares, then what is left over. */
TB_INLINE void FN(panel_across)(const REAL *b, size_t ld, size_t w, size_t kc,
                                REAL *out)
{
    size_t whole = w == FN(NR) ? kc / FN(VEC) * FN(VEC) : 0;
    for (size_t k = 0; k < whole; k += FN(VEC))
        for (size_t j = 0; j < FN(NR); j += FN(VEC))
            FN(transpose)(b + j * ld + k, ld, out + k * FN(NR) + j);
    for (size_t j = 0; j < w; j++)
        for (size_t k = whole; k < kc; k++)
            out[k * FN(NR) + j] = b[j * ld + k];
}

/* Panels of B, k slowest. Columns that do not exist are zero. */
static void FN(pack_b)(const tb_gemm_args *g, size_t k0, size_t kc, size_t j0,
                       size_t nc, REAL *out)
{
    const REAL *b = (const REAL *)g->b + FN(b_at)(g, k0, j0);
    for (size_t j = 0; j < nc; j += FN(NR), out += FN(NR) * kc) {
        size_t w = FN(least)(FN(NR), nc - j);
        if (w < FN(NR))
            memset(out, 0, FN(NR) * kc * sizeof *out);
        if (g->tb)
            FN(panel_across)(b + j * g->ldb, g->ldb, w, kc, out);
        for (size_t k = 0; !g->tb && k < kc; k++)
            if (w == FN(NR))
                memcpy(out + k * FN(NR), b + k * g->ldb + j,
                       FN(NR) * sizeof *out);
            else
                memcpy(out + k * FN(NR), b + k * g->ldb + j, w * sizeof *out);
    }
}

/* --- one tile ---------------------------------------------------------------
 */

/* Where a tile goes: c = beta c + alpha times it, on the elements that exist.
 */
typedef struct FN(place) {
    REAL alpha, beta, *c;
    size_t ldc, mr, nr;
} FN(place);

/* c may be uninitialised where beta is 0 */
static void FN(store_part)(const FN(place) * p, const REAL *acc)
{
    for (size_t i = 0; i < p->mr; i++)
        for (size_t j = 0; j < p->nr; j++) {
            REAL sum = p->alpha * acc[i * FN(NR) + j];
            REAL *c = p->c + i * p->ldc + j;
            *c = p->beta == 0 ? sum : p->beta * *c + sum;
        }
}

TB_INLINE void FN(store_vector)(const FN(place) * p, FN(vec) sum, REAL *c)
{
    FN(vec) old;
    sum = p->alpha * sum;
    if (p->beta != 0) {
        memcpy(&old, c, sizeof old);
        sum = p->beta * old + sum;
    }
    memcpy(c, &sum, sizeof sum);
}

/* Rows of A times a panel of B; a's element (i, k) stands at i * row + k * col,
 * one of which is the constant 1. */
TB_INLINE void FN(tile)(size_t kc, const REAL *a, size_t row, size_t col,
                        const REAL *b, const FN(place) * p)
{
    const FN(vec) zero = {0};
    FN(vec) c[GEMM_MR][2], b0, b1;
    GEMM_UNROLL
    for (int i = 0; i < GEMM_MR; i++)
        c[i][0] = c[i][1] = zero;
    for (size_t i = 0; i < p->mr; i++) { /* needed in kc steps */
        __builtin_prefetch(p->c + i * p->ldc, 1);
        __builtin_prefetch(p->c + i * p->ldc + FN(VEC), 1);
    }
    for (size_t k = 0; k < kc; k++, a += col, b += FN(NR)) {
        memcpy(&b0, b, sizeof b0);
        memcpy(&b1, b + FN(VEC), sizeof b1);
        GEMM_UNROLL
        for (int i = 0; i < GEMM_MR; i++) {
            c[i][0] += a[(size_t)i * row] * b0;
            c[i][1] += a[(size_t)i * row] * b1;
        }
    }
    if (p->mr < GEMM_MR || p->nr < FN(NR)) {
        REAL acc[GEMM_MR * FN(NR)];
        memcpy(acc, c, sizeof acc);
        FN(store_part)(p, acc);
        return;
    }
    GEMM_UNROLL
    for (int i = 0; i < GEMM_MR; i++) {
        FN(store_vector)(p, c[i][0], p->c + (size_t)i * p->ldc);
        FN(store_vector)(p, c[i][1], p->c + (size_t)i * p->ldc + FN(VEC));
    }
}

/* --- a block ----------------------------------------------------------------
 */

/* One block: rows [i0, i1) of A, k in [k0, k0 + kc). Whole tiles read A where
 * it is, or from `copy`; the rows left over are in `rest`. */
typedef struct FN(block) {
    size_t i0, i1, k0, kc;
    const REAL *a, *rest;
    size_t row, col;
} FN(block);

/* Rows a whole number of pages apart would all use the same few lines of the
 * first cache: better copied. */
static bool FN(clashes)(const tb_gemm_args *g)
{
    return !g->ta && g->lda * sizeof(REAL) % 4096 == 0;
}

static FN(block) FN(block_of)(const tb_gemm_args *g, size_t i0, size_t i1,
                              size_t k0, size_t kc, REAL *copy, REAL *rest)
{
    size_t whole = (i1 - i0) / GEMM_MR * GEMM_MR;
    FN(block) b = {.i0 = i0, .i1 = i1, .k0 = k0, .kc = kc, .rest = rest};
    if (FN(clashes)(g))
        FN(copy_rows)(g, i0, whole, k0, kc, copy);
    if (i0 + whole < i1)
        FN(copy_rows)(g, i0 + whole, GEMM_MR, k0, kc, rest);
    b.a = FN(clashes)(g) ? copy : (const REAL *)g->a + FN(a_at)(g, i0, k0);
    b.row = g->ta ? 1 : FN(clashes)(g) ? (size_t)FN(ROW) : g->lda;
    b.col = g->ta ? g->lda : 1;
    return b;
}

/* Columns [j, j + nc), of which `pb` is the copy. */
TB_INLINE void FN(columns)(const tb_gemm_args *g, const FN(block) * s,
                           size_t row, size_t col, size_t j0, size_t nc,
                           const REAL *pb)
{
    size_t rows = s->i1 - s->i0;
    FN(place)
    p = {.alpha = (REAL)g->alpha,
         .beta = s->k0 == 0 ? (REAL)g->beta : 1,
         .ldc = g->ldc};
    for (size_t j = 0; j < nc; j += FN(NR), pb += FN(NR) * s->kc) {
        p.nr = FN(least)(FN(NR), nc - j);
        p.c = (REAL *)g->c + s->i0 * g->ldc + j0 + j;
        p.mr = GEMM_MR;
        size_t i = 0;
        for (; i + GEMM_MR <= rows; i += GEMM_MR, p.c += GEMM_MR * g->ldc)
            FN(tile)(s->kc, s->a + i * row, row, col, pb, &p);
        p.mr = rows - i;
        if (p.mr)
            FN(tile)(s->kc, s->rest, FN(ROW), 1, pb, &p);
    }
}

static void FN(block_times)(const tb_gemm_args *g, const FN(block) * s,
                            size_t j0, size_t j1, REAL *pb)
{
    for (size_t j = j0; j < j1; j += FN(NC)) {
        size_t nc = FN(least)(FN(NC), j1 - j);
        FN(pack_b)(g, s->k0, s->kc, j, nc, pb);
        if (g->ta)
            FN(columns)(g, s, 1, s->col, j, nc, pb);
        else
            FN(columns)(g, s, s->row, 1, j, nc, pb);
    }
}

/* Blocks of rows of about one size, each at most `most`: B is copied for each.
 */
static size_t FN(even_step)(size_t rows, size_t most)
{
    size_t blocks = (rows + most - 1) / most;
    size_t tiles = (rows + GEMM_MR - 1) / GEMM_MR;
    return blocks ? (tiles + blocks - 1) / blocks * GEMM_MR : 1;
}

static void FN(gemm_part)(const tb_gemm_args *g, tb_gemm_part p)
{
    REAL copy[FN(MC) / 2 * FN(ROW)], rest[GEMM_MR * FN(ROW)],
        pb[FN(NC) * GEMM_KC];
    size_t most = FN(clashes)(g) ? FN(MC) / 2 : FN(MC);
    size_t step = FN(even_step)(p.i1 - p.i0, most);
    for (size_t i = p.i0; i < p.i1; i += step) {
        size_t k = 0, end = FN(least)(i + step, p.i1);
        do { /* once even for an empty sum, which is beta c */
            size_t kc = FN(least)(GEMM_KC, g->k - k);
            FN(block) s = FN(block_of)(g, i, end, k, kc, copy, rest);
            FN(block_times)(g, &s, p.j0, p.j1, pb);
            k += kc;
        } while (k < g->k);
    }
}
