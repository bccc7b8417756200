/* SPDX-License-Identifier: MIT */
/* Our own product of operands rounded to bf16 with sums in float, for
 * processors with AVX512_BF16. One instruction adds two neighbouring values of
 * k to a sum, so operands are rounded while they are copied into pairs along
 * k. The instruction takes a subnormal bf16 for zero and sums without
 * subnormals. */
#include "kernels/kern_bf16.h"

#if defined(__x86_64__)

#    if !defined(__AVX512BF16__)
#        error "gemm_bf16_avx512.c needs its flags, see src/CMakeLists.txt"
#    endif

#    include <immintrin.h>

#    if defined(__clang__)
#        define UNROLL _Pragma("clang loop unroll(full)")
#    else
#        define UNROLL _Pragma("GCC unroll 16")
#    endif

enum {
    VEC = 16,         /* floats, or pairs, of a vector */
    MR = 12,          /* a tile: 12 rows and 2 vectors of columns */
    NR = 2 * VEC,     /* */
    KC = 512,         /* values of k of a block */
    PAIRS = KC / 2,   /* */
    MC = 43 * MR,     /* rows of a block: 560 KiB with KC */
    NC = 2 * NR,      /* columns that are copied at once */
    ROW = PAIRS + VEC /* pairs between rows: not a multiple of a page */
};

typedef uint32_t pair;
typedef uint32_t pairs __attribute__((vector_size(64)));

TB_INLINE size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* --- rounding into pairs ---------------------------------------------------
 */

/* The processor's conversion: to_bf16 but for subnormals, which are zero. */
TB_INLINE __m512i round32(const float *x, const float *y)
{
    return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(y), _mm512_loadu_ps(x));
}

/* 16 pairs of 32 neighbours */
TB_INLINE pairs neighbours16(const float *x)
{
    return (pairs)round32(x, x + VEC);
}

/* 16 pairs of which the first are at x, the second at y */
TB_INLINE pairs join16(const float *x, const float *y)
{
    const __m512i order = _mm512_set_epi16(
        31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
        6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return (pairs)_mm512_permutexvar_epi16(order, round32(x, y));
}

TB_INLINE pair join(float first, float second)
{
    return bf16_of(first) | (pair)bf16_of(second) << 16;
}

/* A line along k. */
static void pair_line(const float *x, size_t kc, pair *out)
{
    size_t k = 0;
    for (; k + NR <= kc; k += NR, out += VEC) {
        pairs v = neighbours16(x + k);
        memcpy(out, &v, sizeof v);
    }
    for (; k < kc; k += 2)
        *out++ = join(x[k], k + 1 < kc ? x[k + 1] : 0);
}

/* Two lines across k, n wide; there may be no second one. */
static void pair_lines(const float *x, const float *y, size_t n, pair *out)
{
    size_t i = 0;
    for (; y && i + VEC <= n; i += VEC) {
        pairs v = join16(x + i, y + i);
        memcpy(out + i, &v, sizeof v);
    }
    for (; i < n; i++)
        out[i] = join(x[i], y ? y[i] : 0);
}

/* 16 lines along k, 32 values each, to 16 rows of pairs NR apart. */
TB_INLINE void square(const float *x, size_t ld, pair *out)
{
    pairs v[VEC], t[VEC];
    UNROLL
    for (int i = 0; i < VEC; i++)
        v[i] = neighbours16(x + (size_t)i * ld);
    UNROLL
    for (int round = 1; round < VEC; round *= 2) { /* a perfect shuffle */
        UNROLL
        for (int i = 0; i < VEC / 2; i++) {
            t[2 * i] =
                __builtin_shufflevector(v[i], v[i + VEC / 2], 0, 16, 1, 17, 2,
                                        18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            t[2 * i + 1] = __builtin_shufflevector(v[i], v[i + VEC / 2], 8, 24,
                                                   9, 25, 10, 26, 11, 27, 12,
                                                   28, 13, 29, 14, 30, 15, 31);
        }
        UNROLL
        for (int i = 0; i < VEC; i++)
            v[i] = t[i];
    }
    UNROLL
    for (int i = 0; i < VEC; i++)
        memcpy(out + i * NR, &v[i], sizeof v[i]);
}

/* --- copies ----------------------------------------------------------------
 */

/** Rows of op(A) in pairs: pair (i, kk) at i * row + kk * col. One of the two
 * is 1. */
typedef struct rows_of_a {
    const pair *a;
    size_t row, col;
} rows_of_a;

/* Rows [i0, i1) of op(A) and [k0, k0 + kc); up to a whole number of tiles the
 * rows are zero. */
static rows_of_a copy_a(const tb_gemm_args *g, size_t i0, size_t i1, size_t k0,
                        size_t kc, pair *out)
{
    const float *a = g->a;
    size_t n = i1 - i0, whole = (n + MR - 1) / MR * MR;
    if (!g->ta) {
        for (size_t i = 0; i < n; i++)
            pair_line(a + (i0 + i) * g->lda + k0, kc, out + i * ROW);
        memset(out + n * ROW, 0, (whole - n) * ROW * sizeof *out);
        return (rows_of_a){out, ROW, 1};
    }
    for (size_t k = 0; k < kc; k += 2) {
        const float *x = a + (k0 + k) * g->lda + i0;
        pair *to = out + k / 2 * whole;
        pair_lines(x, k + 1 < kc ? x + g->lda : NULL, n, to);
        memset(to + n, 0, (whole - n) * sizeof *to);
    }
    return (rows_of_a){out, 1, whole};
}

/* A panel of NR columns of op(B), w of which exist, in rows of pairs. */
static void copy_panel(const tb_gemm_args *g, size_t k0, size_t kc, size_t j,
                       size_t w, pair *out)
{
    const float *b = g->b;
    size_t whole = w == NR ? kc / NR * NR : 0;
    if (w < NR)
        memset(out, 0, (kc + 1) / 2 * NR * sizeof *out);
    if (!g->tb) {
        for (size_t k = 0; k < kc; k += 2, out += NR) {
            const float *x = b + (k0 + k) * g->ldb + j;
            pair_lines(x, k + 1 < kc ? x + g->ldb : NULL, w, out);
        }
        return;
    }
    b += j * g->ldb + k0;
    for (size_t k = 0; k < whole; k += NR)
        for (size_t i = 0; i < NR; i += VEC)
            square(b + i * g->ldb + k, g->ldb, out + k / 2 * NR + i);
    for (size_t i = 0; i < w; i++)
        for (size_t k = whole; k < kc; k += 2) {
            const float *x = b + i * g->ldb + k;
            out[k / 2 * NR + i] = join(x[0], k + 1 < kc ? x[1] : 0);
        }
}

/* --- one tile --------------------------------------------------------------
 */

/** Where a tile goes: c = beta c + alpha times it, on the elements that exist.
 */
typedef struct place {
    float alpha, beta, *c;
    size_t ldc, mr, nr;
} place;

/* c may be uninitialised where beta is 0 */
static void store_part(const place *p, const float *sum)
{
    for (size_t i = 0; i < p->mr; i++)
        for (size_t j = 0; j < p->nr; j++) {
            float *c = p->c + i * p->ldc + j, s = p->alpha * sum[i * NR + j];
            *c = p->beta == 0 ? s : p->beta * *c + s;
        }
}

TB_INLINE void store16(const place *p, __m512 sum, float *c)
{
    sum = p->alpha * sum;
    if (p->beta != 0)
        sum = p->beta * _mm512_loadu_ps(c) + sum;
    _mm512_storeu_ps(c, sum);
}

TB_INLINE void tile(size_t n, const pair *a, size_t row, size_t col,
                    const pair *b, const place *p)
{
    __m512 c[MR][2];
    UNROLL
    for (int i = 0; i < MR; i++)
        c[i][0] = c[i][1] = _mm512_setzero_ps();
    for (size_t i = 0; i < p->mr; i++) { /* needed in n steps */
        __builtin_prefetch(p->c + i * p->ldc, 1);
        __builtin_prefetch(p->c + i * p->ldc + VEC, 1);
    }
    for (size_t k = 0; k < n; k++, a += col, b += NR) {
        __m512bh b0 = (__m512bh)_mm512_loadu_si512(b);
        __m512bh b1 = (__m512bh)_mm512_loadu_si512(b + VEC);
        UNROLL
        for (int i = 0; i < MR; i++) {
            __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[(size_t)i * row]);
            c[i][0] = _mm512_dpbf16_ps(c[i][0], x, b0);
            c[i][1] = _mm512_dpbf16_ps(c[i][1], x, b1);
        }
    }
    if (p->mr < MR || p->nr < NR) {
        float sum[MR * NR];
        memcpy(sum, c, sizeof sum);
        store_part(p, sum);
        return;
    }
    UNROLL
    for (int i = 0; i < MR; i++) {
        store16(p, c[i][0], p->c + (size_t)i * p->ldc);
        store16(p, c[i][1], p->c + (size_t)i * p->ldc + VEC);
    }
}

/* Functions of their own: inlined further out, sums would leave registers. */
#    define OWN static __attribute__((noinline))
OWN void tile_along(size_t n, const pair *a, size_t row, const pair *b,
                    const place *p)
{
    (void)row;
    tile(n, a, ROW, 1, b, p);
}

OWN void tile_across(size_t n, const pair *a, size_t col, const pair *b,
                     const place *p)
{
    tile(n, a, 1, col, b, p);
}

/* --- a part ----------------------------------------------------------------
 */

/** One block: rows [i0, i1), values [k0, k0 + kc) of k. */
typedef struct block {
    size_t i0, i1, k0, kc;
    rows_of_a a;
} block;

static void panel(const tb_gemm_args *g, const block *s, size_t j, size_t w,
                  const pair *pb)
{
    size_t n = (s->kc + 1) / 2;
    place p = {.alpha = (float)g->alpha,
               .beta = s->k0 == 0 ? (float)g->beta : 1,
               .c = (float *)g->c + s->i0 * g->ldc + j,
               .ldc = g->ldc,
               .nr = w};
    for (size_t i = s->i0; i < s->i1; i += MR, p.c += MR * g->ldc) {
        p.mr = least(MR, s->i1 - i);
        const pair *a = s->a.a + (i - s->i0) * s->a.row;
        if (g->ta)
            tile_across(n, a, s->a.col, pb, &p);
        else
            tile_along(n, a, s->a.row, pb, &p);
    }
}

static void columns(const tb_gemm_args *g, const block *s, size_t j0, size_t j1,
                    pair *pb)
{
    for (size_t j = j0; j < j1; j += NR) {
        size_t w = least(NR, j1 - j);
        copy_panel(g, s->k0, s->kc, j, w, pb);
        panel(g, s, j, w, pb);
    }
}

/* Blocks of rows of about one size: B is copied for each. */
static size_t even_step(size_t rows)
{
    size_t blocks = (rows + MC - 1) / MC, tiles = (rows + MR - 1) / MR;
    return blocks ? (tiles + blocks - 1) / blocks * MR : 1;
}

static void gemm_part(const tb_gemm_args *g, tb_gemm_part p)
{
    pair pa[MC * ROW], pb[PAIRS * NR];
    size_t step = even_step(p.i1 - p.i0);
    for (size_t i = p.i0; i < p.i1; i += step) {
        block s = {.i0 = i, .i1 = least(i + step, p.i1)};
        do { /* once even for an empty sum, which is beta c */
            s.kc = least(KC, g->k - s.k0);
            s.a = copy_a(g, s.i0, s.i1, s.k0, s.kc, pa);
            columns(g, &s, p.j0, p.j1, pb);
            s.k0 += s.kc;
        } while (s.k0 < g->k);
    }
}

const tb_gemm_part_fn tb_gemm_bf16_avx512 = gemm_part;

#else

const tb_gemm_part_fn tb_gemm_bf16_avx512 = NULL;

#endif
