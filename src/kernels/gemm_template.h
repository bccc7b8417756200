/* SPDX-License-Identifier: MIT */
/* Our own matrix product over REAL. Every element is, in this order, beta c,
 * then for each block of GEMM_KC values of k alpha times the block's sum over
 * k in increasing order, then the bias. Compiled without FMA it has the same
 * bits for any tile, part or thread; compiled with FMA (gemm_fma_*.c) it is
 * twice as fast.
 *
 * A block of B is copied into panels of two vectors of columns and stays in
 * the second cache; strips of GEMM_MR rows of A pass by it, each read where it
 * is if that is as good as a copy. A tile, strip times panel, stays in
 * registers while k runs; what the next tiles need is fetched meanwhile, a
 * line at a time: the tile waits for nothing else. */

#ifndef GEMM_UNROLL
#    ifndef GEMM_KC
#        define GEMM_KC 256
#    endif
/* bytes of a row of B's block and of a column of A's copy: 112 KiB in all, on
 * the stack */
#    ifndef GEMM_NC_BYTES
#        define GEMM_NC_BYTES 256
#        define GEMM_MC_BYTES 192
#    endif
#    if defined(__clang__)
#        define GEMM_UNROLL _Pragma("clang loop unroll(full)")
#    elif defined(__GNUC__)
#        define GEMM_UNROLL _Pragma("GCC unroll 16")
#    else
#        define GEMM_UNROLL
#    endif
enum { GEMM_LINE = 64 }; /* bytes the caches move at once */
#endif

enum {
    FN(VEC) = KERN_VEC_BYTES / (int)sizeof(REAL),
    FN(NR) = 2 * FN(VEC),
    FN(MC) = GEMM_MC_BYTES / (int)sizeof(REAL) / GEMM_MR * GEMM_MR,
    FN(NC) = GEMM_NC_BYTES / (int)sizeof(REAL),
    FN(LINE) = GEMM_LINE / (int)sizeof(REAL),
    /* copied rows lie this far apart: not a multiple of a page, which would
     * put them all into the same lines of the cache */
    FN(ROW) = GEMM_KC + FN(LINE)
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

/* A strip of A (not transposed), rows ROW apart; rows that do not exist are
 * zero. */
static void FN(copy_rows)(const tb_gemm_args *g, size_t i0, size_t k0,
                          size_t kc, REAL *out)
{
    const REAL *a = (const REAL *)g->a + k0;
    for (size_t i = i0; i < i0 + GEMM_MR; i++, out += FN(ROW))
        if (i < g->m)
            memcpy(out, a + i * g->lda, kc * sizeof *out);
        else
            memset(out, 0, kc * sizeof *out);
}

/* Fetch part of a line that is read some steps from now. */
TB_INLINE void FN(fetch_row)(const REAL *row, size_t n)
{
    for (size_t j = 0; j < n; j += FN(LINE))
        __builtin_prefetch(row + j);
}

/* Strips of a transposed A, k slowest within each; rows that do not exist are
 * zero. Each k is another page of A, which no processor foresees. */
static void FN(copy_strips)(const tb_gemm_args *g, size_t i0, size_t rows,
                            size_t k0, size_t kc, REAL *out)
{
    size_t whole = rows / GEMM_MR * GEMM_MR, ahead = 12 * g->lda;
    const REAL *a = (const REAL *)g->a + k0 * g->lda + i0;
    for (size_t k = 0; k < kc; k++, a += g->lda, out += GEMM_MR) {
        FN(fetch_row)(a + ahead, rows);
        for (size_t i = 0; i < whole; i += GEMM_MR)
            memcpy(out + i * kc, a + i, GEMM_MR * sizeof *out);
        if (whole == rows)
            continue;
        memset(out + whole * kc, 0, GEMM_MR * sizeof *out);
        memcpy(out + whole * kc, a + whole, (rows - whole) * sizeof *out);
    }
}

/* Two vectors shuffled: their lower, and their higher halves. */
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

/* n lines `ld` apart of a square of vectors; the others are 0. */
TB_INLINE void FN(load_square)(size_t n, const REAL *x, size_t ld,
                               FN(vec) v[FN(VEC)])
{
    const FN(vec) zero = {0};
    GEMM_UNROLL
    for (size_t i = 0; i < (size_t)FN(VEC); i++) {
        v[i] = zero;
        if (i < n)
            memcpy(&v[i], x + i * ld, sizeof v[i]);
    }
}

/* Transposed by rounds of a perfect shuffle. */
TB_INLINE void FN(transpose_square)(FN(vec) v[FN(VEC)])
{
    FN(vec) t[FN(VEC)];
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
}

/* n lines, `ld` apart, of a square of vectors, transposed to lines `ldo` apart.
 */
TB_INLINE void FN(transpose)(size_t n, const REAL *x, size_t ld, REAL *out,
                             size_t ldo)
{
    FN(vec) v[FN(VEC)];
    FN(load_square)(n, x, ld, v);
    FN(transpose_square)(v);
    GEMM_UNROLL
    for (int i = 0; i < FN(VEC); i++)
        memcpy(out + (size_t)i * ldo, &v[i], sizeof v[i]);
}

/* One panel of B from lines along k: squares, then what is left over. */
TB_INLINE void FN(panel_across)(const REAL *b, size_t ld, size_t w, size_t kc,
                                REAL *out)
{
    size_t whole = w == FN(NR) ? kc / FN(VEC) * FN(VEC) : 0;
    for (size_t k = 0; k < whole; k += FN(VEC))
        for (size_t j = 0; j < FN(NR); j += FN(VEC))
            FN(transpose)
    (FN(VEC), b + j * ld + k, ld, out + k * FN(NR) + j, FN(NR));
    for (size_t j = 0; j < w; j++)
        for (size_t k = whole; k < kc; k++)
            out[k * FN(NR) + j] = b[j * ld + k];
}

/* Panels from lines along j: whole panels, then what is left over. */
static void FN(panels_along)(const REAL *b, size_t ld, size_t nc, size_t kc,
                             REAL *out)
{
    size_t whole = nc / FN(NR) * FN(NR), ahead = 3 * ld;
    for (size_t k = 0; k < kc; k++, b += ld, out += FN(NR)) {
        FN(fetch_row)(b + ahead, nc);
        for (size_t j = 0; j < whole; j += FN(NR))
            memcpy(out + j * kc, b + j, FN(NR) * sizeof *out);
        if (whole == nc)
            continue;
        memset(out + whole * kc, 0, FN(NR) * sizeof *out);
        memcpy(out + whole * kc, b + whole, (nc - whole) * sizeof *out);
    }
}

/* Panels of B, k slowest within each. Columns that do not exist are zero. */
static void FN(pack_b)(const tb_gemm_args *g, size_t k0, size_t kc, size_t j0,
                       size_t nc, REAL *out)
{
    const REAL *b = (const REAL *)g->b + FN(b_at)(g, k0, j0);
    if (!g->tb) {
        FN(panels_along)(b, g->ldb, nc, kc, out);
        return;
    }
    for (size_t j = 0; j < nc; j += FN(NR), out += FN(NR) * kc) {
        size_t w = FN(least)(FN(NR), nc - j);
        if (w < FN(NR))
            memset(out, 0, FN(NR) * kc * sizeof *out);
        FN(panel_across)(b + j * g->ldb, g->ldb, w, kc, out);
    }
}

/* --- one tile ---------------------------------------------------------------
 */

/* Where a tile goes: c = beta c + alpha times it + bias, on the elements that
 * exist; no bias: NULL. `next`: a row that will be read soon. */
typedef struct FN(place) {
    REAL alpha, beta, *c;
    const REAL *bias;
    size_t ldc, mr, nr;
    const REAL *next;
} FN(place);

/* c may be uninitialised where beta is 0 */
static void FN(store_part)(const FN(place) * p, const REAL *acc)
{
    for (size_t i = 0; i < p->mr; i++)
        for (size_t j = 0; j < p->nr; j++) {
            REAL sum = p->alpha * acc[i * FN(NR) + j];
            REAL *c = p->c + i * p->ldc + j;
            sum = p->beta == 0 ? sum : p->beta * *c + sum;
            *c = p->bias ? sum + p->bias[j] : sum;
        }
}

TB_INLINE void FN(store_vector)(const FN(place) * p, FN(vec) sum, REAL *c,
                                size_t j)
{
    FN(vec) old;
    sum = p->alpha * sum;
    if (p->beta != 0) {
        memcpy(&old, c + j, sizeof old);
        sum = p->beta * old + sum;
    }
    if (p->bias) {
        memcpy(&old, p->bias + j, sizeof old);
        sum = sum + old;
    }
    memcpy(c + j, &sum, sizeof sum);
}

/* Some values of k: `a` and `b` move on. */
TB_INLINE void FN(steps)(size_t n, const REAL **a, size_t row, size_t col,
                         const REAL **b, FN(vec) c[GEMM_MR][2])
{
    const REAL *x = *a, *y = *b;
    FN(vec) b0, b1;
    for (size_t k = 0; k < n; k++, x += col, y += FN(NR)) {
        memcpy(&b0, y, sizeof b0);
        memcpy(&b1, y + FN(VEC), sizeof b1);
        GEMM_UNROLL
        for (int i = 0; i < GEMM_MR; i++) {
            c[i][0] += x[(size_t)i * row] * b0;
            c[i][1] += x[(size_t)i * row] * b1;
        }
    }
    *a = x;
    *b = y;
}

/* A strip of A times a panel of B; a's element (i, k) stands at
 * i * row + k * col, one of which is the constant 1. */
TB_INLINE void FN(tile)(size_t kc, const REAL *a, size_t row, size_t col,
                        const REAL *b, const FN(place) * p)
{
    const FN(vec) zero = {0};
    FN(vec) c[GEMM_MR][2];
    size_t k = 0;
    GEMM_UNROLL
    for (int i = 0; i < GEMM_MR; i++)
        c[i][0] = c[i][1] = zero;
    for (; !TB_SMALL && k + FN(LINE) <= kc; k += FN(LINE)) {
        size_t i = k / FN(LINE);
        __builtin_prefetch(p->next + k, 0, 2);
        if (i < p->mr) {
            __builtin_prefetch(p->c + i * p->ldc, 1);
            __builtin_prefetch(p->c + i * p->ldc + FN(VEC), 1);
        }
        FN(steps)(FN(LINE), &a, row, col, &b, c);
    }
    FN(steps)(kc - k, &a, row, col, &b, c);
    if (p->mr < GEMM_MR || p->nr < FN(NR)) {
        REAL acc[GEMM_MR * FN(NR)];
        memcpy(acc, c, sizeof acc);
        FN(store_part)(p, acc);
        return;
    }
    GEMM_UNROLL
    for (int i = 0; i < GEMM_MR; i++) {
        FN(store_vector)(p, c[i][0], p->c + (size_t)i * p->ldc, 0);
        FN(store_vector)(p, c[i][1], p->c + (size_t)i * p->ldc, FN(VEC));
    }
}

/* --- a block ----------------------------------------------------------------
 */

/* A block of B in its copy, and room for copies of A. */
typedef struct FN(block) {
    size_t k0, kc, j0, nc;
    const REAL *panels;
    REAL *copy;
} FN(block);

/* A strip's element (i, k) stands at i * row + k * col. */
typedef struct FN(strip) {
    const REAL *a;
    size_t row, col;
} FN(strip);

/* Rows a whole number of pages apart would all use the same few lines of the
 * first cache: better copied. */
static bool FN(clashes)(const tb_gemm_args *g)
{
    return g->lda * sizeof(REAL) % 4096 == 0;
}

static FN(strip) FN(strip_of)(const tb_gemm_args *g, const FN(block) * s,
                              const tb_gemm_part *p, size_t i)
{
    size_t rows = p->i1 - i, at = (i - p->i0) % FN(MC);
    if (g->ta) {
        if (at == 0)
            FN(copy_strips)
        (g, i, FN(least)(FN(MC), rows), s->k0, s->kc, s->copy);
        return (FN(strip)){s->copy + at * s->kc, 1, GEMM_MR};
    }
    if (rows >= GEMM_MR && !FN(clashes)(g))
        return (FN(strip)){(const REAL *)g->a + FN(a_at)(g, i, s->k0), g->lda,
                           1};
    FN(copy_rows)(g, i, s->k0, s->kc, s->copy);
    return (FN(strip)){s->copy, FN(ROW), 1};
}

/* All tiles of the strip at row i; each fetches a row of the next strip. */
TB_INLINE void FN(strip_times)(const tb_gemm_args *g, const FN(block) * s,
                               const tb_gemm_part *part, size_t i,
                               const REAL *a, size_t row, size_t col)
{
    const REAL *panel = s->panels;
    const bool last = s->k0 + s->kc == g->k;
    FN(place)
    p = {.alpha = (REAL)g->alpha,
         .beta = s->k0 == 0 ? (REAL)g->beta : 1,
         .c = (REAL *)g->c + i * g->ldc + s->j0,
         .bias = g->bias && last ? (const REAL *)g->bias + s->j0 : NULL,
         .ldc = g->ldc,
         .mr = FN(least)(GEMM_MR, part->i1 - i)};
    size_t next = i + GEMM_MR;
    for (size_t j = 0; j < s->nc; j += FN(NR), panel += FN(NR) * s->kc) {
        bool ahead = !g->ta && next < part->i1;
        p.next =
            ahead ? (const REAL *)g->a + FN(a_at)(g, next++, s->k0) : panel;
        p.nr = FN(least)(FN(NR), s->nc - j);
        FN(tile)(s->kc, a, row, col, panel, &p);
        p.c += FN(NR);
        p.bias = p.bias ? p.bias + FN(NR) : NULL;
    }
}

static void FN(block_times)(const tb_gemm_args *g, const FN(block) * s,
                            const tb_gemm_part *part)
{
    for (size_t i = part->i0; i < part->i1; i += GEMM_MR) {
        FN(strip) x = FN(strip_of)(g, s, part, i);
        if (g->ta)
            FN(strip_times)(g, s, part, i, x.a, 1, x.col);
        else
            FN(strip_times)(g, s, part, i, x.a, x.row, 1);
    }
}

static void FN(gemm_part)(const tb_gemm_args *g, tb_gemm_part p)
{
    _Alignas(GEMM_LINE) REAL panels[FN(NC) * GEMM_KC];
    _Alignas(GEMM_LINE)
        REAL copy[FN(MC) * GEMM_KC > GEMM_MR * FN(ROW) ? FN(MC) * GEMM_KC
                                                       : GEMM_MR * FN(ROW)];
    for (size_t j = p.j0; j < p.j1; j += FN(NC)) {
        FN(block) s = {.j0 = j, .panels = panels, .copy = copy};
        s.nc = FN(least)(FN(NC), p.j1 - j);
        do { /* once even for an empty sum, which is beta c */
            s.kc = FN(least)(GEMM_KC, g->k - s.k0);
            FN(pack_b)(g, s.k0, s.kc, j, s.nc, panels);
            FN(block_times)(g, &s, &p);
            s.k0 += s.kc;
        } while (s.k0 < g->k);
    }
}

#ifdef GEMM_THIN
#    include "kernels/gemm_thin.h"
#endif

#undef GEMM_LOW
#undef GEMM_HIGH
