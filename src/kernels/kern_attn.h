/* SPDX-License-Identifier: MIT */
/* Attention of one head over REAL, by blocks of TB_ATTN_KEYS keys that meet
 * tiles of TB_ATTN_ROWS queries. Nothing of size rows x keys is kept: a row
 * carries its largest score and the sum of exp(score - it), and its output
 * shrinks where a larger score appears (Milakov and Gimelshein 2018,
 * arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135). The other passes
 * compute the probabilities again. Compiled without FMA it has the same bits
 * for any vector and tile: every sum over a depth runs in order, block by
 * block.
 *
 * A pair that is hidden has probability 0 and gives nothing, not even where the
 * other side is not finite: products that sum over keys or queries read copies
 * in which such rows are 0, and what the visible pairs of such a row give is
 * added one by one. */

#ifndef ATTN_MR
#    if KERN_VEC_BYTES == 64 || defined(__aarch64__)
#        define ATTN_MR 6
#        define ATTN_NV 4
#    elif KERN_VEC_BYTES == 32
#        define ATTN_MR 6
#        define ATTN_NV 2
#    else
#        define ATTN_MR 4
#        define ATTN_NV 2
#    endif
#endif

/* --- products ---------------------------------------------------------------
 */

/* c (+)= a b: a is [m,depth], b [depth,n]; row strides lda, ldb, ldc. m counts
 * as a multiple of ATTN_MR, n as one of the vector: all three have room. */
typedef struct FN(attn_product) {
    size_t m, n, depth, lda, ldb, ldc;
    const REAL *a, *b;
    REAL *c;
    bool add;
} FN(attn_product);

/* Element (i, k) of a stands at i * row + k * col, one of which is 1. */
TB_INLINE void FN(attn_tile)(const FN(attn_product) * p, int nv, const REAL *a,
                             size_t row, size_t col, const REAL *b, REAL *c)
{
    const FN(vec) zero = {0};
    FN(vec) sum[ATTN_MR][ATTN_NV], v[ATTN_NV];
    GEMM_UNROLL
    for (int i = 0; i < ATTN_MR; i++)
        GEMM_UNROLL
    for (int j = 0; j < nv; j++)
        sum[i][j] = zero;
    for (size_t k = 0; k < p->depth; k++, a += col, b += p->ldb) {
        GEMM_UNROLL
        for (int j = 0; j < nv; j++)
            memcpy(&v[j], b + j * FN(VEC), sizeof *v);
        GEMM_UNROLL
        for (int i = 0; i < ATTN_MR; i++)
            GEMM_UNROLL
        for (int j = 0; j < nv; j++)
            sum[i][j] += a[(size_t)i * row] * v[j];
    }
    GEMM_UNROLL
    for (int i = 0; i < ATTN_MR; i++, c += p->ldc)
        GEMM_UNROLL
    for (int j = 0; j < nv; j++) {
        if (p->add) {
            memcpy(v, c + j * FN(VEC), sizeof *v);
            sum[i][j] = v[0] + sum[i][j];
        }
        memcpy(c + j * FN(VEC), &sum[i][j], sizeof *v);
    }
}

/* nv vectors of columns and all rows */
TB_INLINE void FN(attn_strip)(const FN(attn_product) * p, bool across, int nv,
                              size_t j)
{
    for (size_t i = 0; i < p->m; i += ATTN_MR)
        if (across)
            FN(attn_tile)
    (p, nv, p->a + i, 1, p->lda, p->b + j, p->c + i * p->ldc + j);
    else FN(attn_tile)(p, nv, p->a + i * p->lda, p->lda, 1, p->b + j,
                       p->c + i * p->ldc + j);
}

TB_INLINE void FN(attn_multiply)(const FN(attn_product) * p, bool across)
{
    size_t j = 0, n = (p->n + FN(VEC) - 1) / FN(VEC) * FN(VEC);
    for (; j + ATTN_NV * FN(VEC) <= n; j += ATTN_NV * FN(VEC))
        FN(attn_strip)(p, across, ATTN_NV, j);
    if (n - j == FN(VEC))
        FN(attn_strip)(p, across, 1, j);
#if ATTN_NV > 2
    if (n - j == 2 * FN(VEC))
        FN(attn_strip)(p, across, 2, j);
    if (n - j == 3 * FN(VEC))
        FN(attn_strip)(p, across, 3, j);
#endif
}

/* a as it stands, and a transposed: [depth,m] */
static void FN(attn_times)(const FN(attn_product) * p)
{
    FN(attn_multiply)(p, false);
}

static void FN(attn_times_t)(const FN(attn_product) * p)
{
    FN(attn_multiply)(p, true);
}

/* --- copies -----------------------------------------------------------------
 */

static size_t FN(attn_wide)(size_t n)
{
    return (n + TB_LANES - 1) / TB_LANES * TB_LANES;
}

/* n rows, with those that fill up the last tile */
static size_t FN(attn_tiled)(size_t n)
{
    return (n + ATTN_MR - 1) / ATTN_MR * ATTN_MR;
}

/* A row's elements, all finite? */
static bool FN(attn_finite)(size_t n, const REAL *x)
{
    REAL bad = 0;
    for (size_t i = 0; i < n; i++)
        bad += x[i] * 0;
    return bad == 0;
}

/* y = c x for rows of width n, in rows of width attn_wide(n) and up to `all`
 * rows, the rest being 0. True if all of x is finite. */
static bool FN(attn_copy)(size_t rows, size_t all, size_t n, REAL c,
                          const REAL *x, size_t ld, REAL *y)
{
    const size_t wide = FN(attn_wide)(n), whole = n / FN(VEC) * FN(VEC);
    FN(vec) bad = {0}, v;
    REAL rest = 0, lane[FN(VEC)];
    for (size_t r = 0; r < rows; r++, x += ld, y += wide) {
        for (size_t i = 0; i < whole; i += FN(VEC)) {
            memcpy(&v, x + i, sizeof v);
            bad += v * 0;
            v *= c;
            memcpy(y + i, &v, sizeof v);
        }
        for (size_t i = whole; i < wide; i++) {
            y[i] = i < n ? c * x[i] : 0;
            rest += i < n ? x[i] * 0 : 0;
        }
    }
    memset(y, 0, (all - rows) * wide * sizeof *y);
    memcpy(lane, &bad, sizeof lane);
    for (int j = 0; j < FN(VEC); j++)
        rest += lane[j];
    return rest == 0;
}

/* The same, rows that are not finite being 0; true if there is one. */
static bool FN(attn_copy_clean)(size_t rows, size_t all, size_t n, REAL c,
                                const REAL *x, size_t ld, REAL *y)
{
    const size_t wide = FN(attn_wide)(n);
    if (FN(attn_copy)(rows, all, n, c, x, ld, y))
        return false;
    for (size_t r = 0; r < rows; r++)
        if (!FN(attn_finite)(n, x + r * ld))
            memset(y + r * wide, 0, wide * sizeof *y);
    return true;
}

/* y[i,r] = x[r,i], y having rows of TB_ATTN_KEYS, those after `rows` being 0 up
 * to whole lanes: nobody reads further. */
static void FN(attn_across)(size_t rows, size_t n, const REAL *x, size_t ld,
                            REAL *y)
{
    const size_t wide = FN(attn_wide)(rows), deep = n / FN(VEC) * FN(VEC);
    for (size_t r = 0; r < wide; r += FN(VEC))
        for (size_t i = 0; i < deep; i += FN(VEC)) {
            const REAL *from = x + r * ld + i;
            REAL *to = y + i * TB_ATTN_KEYS + r;
            if (r + FN(VEC) <= rows)
                FN(transpose)(FN(VEC), from, ld, to, TB_ATTN_KEYS);
            else
                FN(transpose)
            (rows > r ? rows - r : 0, from, ld, to, TB_ATTN_KEYS);
        }
    for (size_t i = deep; i < n; i++)
        for (size_t r = 0; r < wide; r++)
            y[i * TB_ATTN_KEYS + r] = r < rows ? x[r * ld + i] : 0;
}

/* --- one block of scores ----------------------------------------------------
 */

/* Rows of a block of scores lie this far apart: there is room for a register
 * tile across, and they do not all use the same lines of the cache. */
enum { FN(ATTN_LD) = TB_ATTN_KEYS + TB_LANES };

/* Keys [c0, c0 + n) and queries [r0, r0 + rows). */
typedef struct FN(attn_block) {
    const tb_k_attn *p;
    size_t c0, n, r0, rows;
} FN(attn_block);

/* Of the block's columns, those that its row i sees, the mask aside. */
TB_INLINE size_t FN(attn_reach)(const FN(attn_block) * b, size_t i)
{
    ptrdiff_t m = b->p->first + (ptrdiff_t)(b->r0 + i) - (ptrdiff_t)b->c0;
    return m <= 0 ? 0 : (size_t)m < b->n ? (size_t)m : b->n;
}

/* Of a tile's rows from i on, the last one, which sees most. */
TB_INLINE size_t FN(attn_last)(const FN(attn_block) * b, size_t i)
{
    return FN(least)(i + ATTN_MR, b->rows) - 1;
}

/* The first of the block's rows that sees column j. */
TB_INLINE size_t FN(attn_begin)(const FN(attn_block) * b, size_t j)
{
    ptrdiff_t i = (ptrdiff_t)(b->c0 + j + 1) - b->p->first - (ptrdiff_t)b->r0;
    return i <= 0 ? 0 : FN(least)((size_t)i, b->rows);
}

/* The first query of all that sees key c0. */
static size_t FN(attn_start)(const tb_k_attn *p, size_t c0)
{
    const FN(attn_block) b = {.p = p, .c0 = c0, .rows = p->rows};
    return FN(attn_begin)(&b, 0);
}

/* For x <= 0 or NaN; below 2^-127 it is 0. f32: relative error below 1.4e-7 +
 * |x| 2^-23, the second being that of x in units of log 2. */
TB_INLINE REAL FN(attn_exp)(REAL x)
{
#if REAL_BITS == 32
    float t = x * 0x1.715476p+0f;
    t = t < -127 ? -127 : t;
    float k = t + TB_INLINE_MAGICF, r = t - (k - TB_INLINE_MAGICF);
    float q = 0x1.4413dcp-13f;
    q = q * r + 0x1.5f0906p-10f;
    q = q * r + 0x1.3b2a52p-7f;
    q = q * r + 0x1.c6af6cp-5f;
    q = q * r + 0x1.ebfbe0p-3f;
    q = q * r + 0x1.62e430p-1f;
    q = q * r + 1;
    return q * tb_inline_from_bitsf((tb_inline_bitsf(k) + 127) << 23);
#else
    return REAL_EXP(x);
#endif
}

/* What row i does not see of its first `wide` columns becomes -inf. */
TB_INLINE void FN(attn_hide)(const FN(attn_block) * b, size_t i, size_t wide,
                             REAL *s)
{
    const tb_k_attn *p = b->p;
    size_t m = FN(attn_reach)(b, i);
    for (size_t j = m; j < wide; j++)
        s[j] = -REAL_INF;
    if (!p->keep)
        return;
    const REAL *keep = (const REAL *)p->keep + (b->r0 + i) * p->keep_ld + b->c0;
    TB_IVDEP
    for (size_t j = 0; j < m; j++)
        s[j] = keep[j] > 0 ? s[j] : -REAL_INF;
}

/* The scores' rows [i, i + ATTN_MR), a group: q k^T, hidden ones being -inf, up
 * to the last column that one of them sees, filled up to whole lanes. Returns
 * how many columns that makes. */
static size_t FN(attn_group)(const FN(attn_block) * b, size_t i, const REAL *q,
                             size_t ldq, const REAL *kt, size_t depth, REAL *s)
{
    size_t wide = FN(attn_wide)(FN(attn_reach)(b, FN(attn_last)(b, i)));
    const FN(attn_product) x = {.m = ATTN_MR,
                                .n = wide,
                                .depth = depth,
                                .a = q + i * ldq,
                                .lda = ldq,
                                .b = kt,
                                .ldb = TB_ATTN_KEYS,
                                .c = s + i * FN(ATTN_LD),
                                .ldc = FN(ATTN_LD)};
    FN(attn_times)(&x);
    return wide;
}

static void FN(attn_drop)(const FN(attn_block) * b, REAL *s)
{
    const tb_k_attn *p = b->p;
    uint64_t at = p->number + b->r0 * p->keys + b->c0;
    for (size_t i = 0; p->drop > 0 && i < b->rows; i++, at += p->keys)
        p->kern->drop(p->rng, p->drop, at, FN(attn_reach)(b, i),
                      s + i * FN(ATTN_LD), false, s + i * FN(ATTN_LD));
}

/* y[i] += s[i,j] x[j] for every j whose x is not finite, and which the copies
 * left out; or, across, y[j] += s[i,j] x[i]. y's rows are `wide` apart. */
static void FN(attn_mend)(const FN(attn_block) * b, bool across, size_t n,
                          double c, const REAL *s, const REAL *x, size_t ld,
                          REAL *y)
{
    const size_t wide = FN(attn_wide)(n);
    for (size_t at = 0; at < (across ? b->rows : b->n); at++) {
        if (FN(attn_finite)(n, x + at * ld))
            continue;
        for (size_t to = 0; to < (across ? b->n : b->rows); to++) {
            size_t i = across ? at : to, j = across ? to : at;
            REAL w = s[i * FN(ATTN_LD) + j] * (REAL)c;
            if (j >= FN(attn_reach)(b, i) || w == 0)
                continue;
            for (size_t e = 0; e < n; e++)
                y[to * wide + e] += w * x[at * ld + e];
        }
    }
}

/* --- forward ----------------------------------------------------------------
 */

/* The part of `work` that each pass uses, in elements; see tb_attn_work. */
typedef struct FN(attn_work) {
    REAL *kt, *vt, *k, *v, *q, *g, *gk, *gv, *s, *ds, *rows, *mean;
} FN(attn_work);

enum { FN(ATTN_TILE) = TB_ATTN_ROWS + TB_ATTN_SPARE };

static FN(attn_work) FN(attn_carve)(const tb_k_attn *p)
{
    const size_t hd = FN(attn_wide)(p->hd), vd = FN(attn_wide)(p->vd);
    const size_t wide = hd > vd ? hd : vd;
    FN(attn_work) w;
    w.kt = p->work;
    w.vt = w.kt + hd * TB_ATTN_KEYS;
    w.k = w.vt + wide * TB_ATTN_KEYS;
    w.v = w.k + hd * TB_ATTN_KEYS;
    w.q = w.v + vd * TB_ATTN_KEYS;
    w.g = w.q + hd * FN(ATTN_TILE);
    w.gk = w.g + wide * FN(ATTN_TILE);
    w.gv = w.gk + hd * (TB_ATTN_KEYS + TB_ATTN_SPARE);
    w.s = w.gv + vd * (TB_ATTN_KEYS + TB_ATTN_SPARE);
    w.ds = w.s + FN(ATTN_LD) * FN(ATTN_TILE);
    w.rows = w.ds + FN(ATTN_LD) * FN(ATTN_TILE);
    w.mean = w.rows + wide * (p->rows + TB_ATTN_SPARE);
    return w;
}

TB_INLINE void FN(attn_max_half)(REAL *lane, int half)
{
    TB_WHOLE
    for (int j = 0; j < half; j++)
        lane[j] = lane[j + half] > lane[j] ? lane[j + half] : lane[j];
}

/* Of a row of a block; a nan does not count, and -inf if there is no more. */
TB_INLINE REAL FN(attn_max)(const REAL *s)
{
    REAL lane[TB_LANES];
    TB_WHOLE
    for (int j = 0; j < TB_LANES; j++) {
        REAL m = -REAL_INF;
        GEMM_UNROLL
        for (int i = j; i < TB_ATTN_KEYS; i += TB_LANES)
            m = s[i] > m ? s[i] : m;
        lane[j] = m;
    }
    FN(attn_max_half)(lane, 8);
    FN(attn_max_half)(lane, 4);
    FN(attn_max_half)(lane, 2);
    return lane[1] > lane[0] ? lane[1] : lane[0];
}

TB_INLINE void FN(attn_add_half)(REAL *lane, int half)
{
    TB_WHOLE
    for (int j = 0; j < half; j++)
        lane[j] += lane[j + half];
}

TB_INLINE REAL FN(attn_fold)(REAL *lane)
{
    FN(attn_add_half)(lane, 8);
    FN(attn_add_half)(lane, 4);
    FN(attn_add_half)(lane, 2);
    return lane[0] + lane[1];
}

/* s = exp(s - max), and the sums of lanes: within a block, in the operands'
 * type. Vectors, because gcc leaves an array of lanes in memory, and every
 * round then waits for it. */
TB_INLINE void FN(attn_exps)(size_t n, REAL max, REAL *s, REAL *lane)
{
    enum { VECS = TB_LANES / FN(VEC) };
    FN(vec) sum[VECS], v;
    memset(sum, 0, sizeof sum);
    for (size_t i = 0; i < n; i += TB_LANES) {
        TB_WHOLE
        for (size_t j = 0; j < TB_LANES; j++)
            s[i + j] = FN(attn_exp)(s[i + j] - max);
        GEMM_UNROLL
        for (int j = 0; j < VECS; j++) {
            memcpy(&v, s + i + j * FN(VEC), sizeof v);
            sum[j] += v;
        }
    }
    memcpy(lane, sum, sizeof sum);
}

/* An empty maximum counts as 0: exp of -inf is 0 then, and not a nan. */
TB_INLINE REAL FN(attn_base)(double max)
{
    return (REAL)max == -REAL_INF ? 0 : (REAL)max;
}

/* A row's largest score rises: its sum and its output so far shrink. */
static void FN(attn_raise)(REAL max, double *stat, size_t width, REAL *y)
{
    const REAL shrink = FN(attn_exp)((REAL)stat[0] - max);
    stat[0] = (double)max;
    stat[1] *= (double)shrink;
    TB_IVDEP
    for (size_t i = 0; i < width; i++)
        y[i] *= shrink;
}

/* The scores of a group of rows from i on become exp(score - max). Step by
 * step for all rows, so that none waits for the end of a sum. */
static void FN(attn_soft)(const FN(attn_block) * b, const FN(attn_work) * w,
                          size_t i, size_t wide)
{
    const size_t n = FN(attn_last)(b, i) + 1 - i, vd = b->p->vd;
    double *stat = b->p->stat + 2 * (b->r0 + i);
    REAL *s = w->s + i * FN(ATTN_LD), max[ATTN_MR], lane[ATTN_MR][TB_LANES];
    for (size_t r = 0; r < n; r++) {
        FN(attn_hide)(b, i + r, TB_ATTN_KEYS, s + r * FN(ATTN_LD));
        max[r] = FN(attn_max)(s + r * FN(ATTN_LD));
    }
    for (size_t r = 0; r < n; r++)
        if (max[r] > (REAL)stat[2 * r])
            FN(attn_raise)
    (max[r], stat + 2 * r, b->c0 ? vd : 0,
     w->rows + (b->r0 + i + r) * FN(attn_wide)(vd));
    for (size_t r = 0; r < n; r++)
        FN(attn_exps)
    (wide, FN(attn_base)(stat[2 * r]), s + r * FN(ATTN_LD), lane[r]);
    for (size_t r = 0; r < n; r++)
        stat[2 * r + 1] += (double)FN(attn_fold)(lane[r]);
}

/* rows (+)= s v, by groups, each as deep as its last row sees */
static void FN(attn_mix)(const FN(attn_block) * b, const REAL *s, const REAL *v,
                         size_t width, bool add, REAL *rows)
{
    const size_t wide = FN(attn_wide)(width);
    FN(attn_product)
    x = {.n = width,
         .lda = FN(ATTN_LD),
         .b = v,
         .ldb = wide,
         .ldc = wide,
         .add = add};
    for (size_t i = 0; i < b->rows; i += x.m) {
        x.a = s + i * FN(ATTN_LD);
        x.c = rows + (b->r0 + i) * wide;
        x.depth = FN(attn_reach)(b, FN(attn_last)(b, i));
        x.m = x.depth == b->n ? b->rows - i : ATTN_MR;
        FN(attn_times)(&x);
    }
}

static void FN(attn_fwd_tile)(const FN(attn_block) * b, const FN(attn_work) * w,
                              bool bad)
{
    const tb_k_attn *p = b->p;
    const size_t hd = FN(attn_wide)(p->hd), vd = FN(attn_wide)(p->vd);
    FN(attn_copy)
    (b->rows, FN(attn_tiled)(b->rows), p->hd, (REAL)p->scale,
     (const REAL *)p->q + b->r0 * p->ldq, p->ldq, w->q);
    for (size_t i = 0; i < b->rows; i += ATTN_MR) {
        size_t wide = FN(attn_group)(b, i, w->q, hd, w->kt, p->hd, w->s);
        FN(attn_soft)(b, w, i, wide);
    }
    FN(attn_drop)(b, w->s);
    FN(attn_mix)(b, w->s, w->v, p->vd, b->c0 > 0, w->rows);
    if (bad)
        FN(attn_mend)
    (b, false, p->vd, 1, w->s, (const REAL *)p->v + b->c0 * p->ldv, p->ldv,
     w->rows + b->r0 * vd);
}

/* Does query r see a key? Asked only where the sum is 0. */
static bool FN(attn_sees)(const tb_k_attn *p, size_t r)
{
    const FN(attn_block) b = {.p = p, .n = p->keys};
    size_t j = 0, m = FN(attn_reach)(&b, r);
    if (p->keep) {
        const REAL *keep = (const REAL *)p->keep + r * p->keep_ld;
        while (j < m && !(keep[j] > 0))
            j++;
    }
    return j < m;
}

/* stat's sum becomes 1 / sum, 0 for a query that sees nothing */
static void FN(attn_finish)(const tb_k_attn *p, const REAL *rows, REAL *out)
{
    const size_t vd = FN(attn_wide)(p->vd);
    for (size_t r = 0; r < p->rows; r++, rows += vd, out += p->ldo) {
        double *sum = p->stat + 2 * r + 1;
        bool seen = *sum != 0 || FN(attn_sees)(p, r);
        *sum = seen ? 1 / *sum : 0;
        const REAL inv = (REAL)*sum;
        TB_IVDEP
        for (size_t i = 0; i < p->vd; i++)
            out[i] = seen ? inv * rows[i] : 0;
    }
}

#include "kernels/kern_attn_one.h"

static void FN(attn_tiles)(const tb_k_attn *p, const FN(attn_work) * w)
{
    FN(attn_block) b = {.p = p};
    for (; b.c0 < p->keys; b.c0 += TB_ATTN_KEYS) {
        const REAL *k = (const REAL *)p->k + b.c0 * p->ldk;
        const REAL *v = (const REAL *)p->v + b.c0 * p->ldv;
        b.n = FN(least)(TB_ATTN_KEYS, p->keys - b.c0);
        b.r0 = FN(attn_start)(p, b.c0);
        if (b.r0 >= p->rows)
            break;
        FN(attn_across)(b.n, p->hd, k, p->ldk, w->kt);
        bool bad = FN(attn_copy_clean)(b.n, b.n, p->vd, 1, v, p->ldv, w->v);
        for (; b.r0 < p->rows; b.r0 += b.rows) {
            b.rows = FN(least)(TB_ATTN_ROWS, p->rows - b.r0);
            FN(attn_fwd_tile)(&b, w, bad);
        }
    }
}

static void FN(attn_fwd)(const tb_k_attn *p, void *out)
{
    const FN(attn_work) w = FN(attn_carve)(p);
    for (size_t r = 0; r < p->rows; r++) {
        p->stat[2 * r] = (double)-REAL_INF;
        p->stat[2 * r + 1] = 0;
    }
    if (p->rows == 1)
        FN(one_query)(p, &w);
    else
        FN(attn_tiles)(p, &w);
    FN(attn_finish)(p, w.rows, out);
}

/* --- backward ---------------------------------------------------------------
 * With P' = m P, m what dropout makes of 1, dP' = dy v^T and dP = m dP', whose
 * mean under P is <dy, y> in each row, dS = P (dP - mean). */

/* <dy, y> of some rows, each in the order in which a tile sums dy v^T: where a
 * query sees one key alone, y is its v, and dS is 0 and no rounding. */
static void FN(attn_means)(const tb_k_attn *p, const REAL *gout,
                           const REAL *out, REAL *mean)
{
    const size_t deep = p->vd / FN(VEC) * FN(VEC), ld = p->ldo;
    FN(vec) a[FN(VEC)], b[FN(VEC)];
    for (size_t r = 0; r < p->rows; r += FN(VEC)) {
        const size_t n = FN(least)(FN(VEC), p->rows - r);
        FN(vec) sum = {0};
        for (size_t i = 0; i < deep; i += FN(VEC)) {
            FN(load_square)(n, gout + r * ld + i, ld, a);
            FN(load_square)(n, out + r * ld + i, ld, b);
            FN(transpose_square)(a);
            FN(transpose_square)(b);
            GEMM_UNROLL
            for (int j = 0; j < FN(VEC); j++)
                sum += a[j] * b[j];
        }
        for (size_t i = deep; i < p->vd; i++)
            for (size_t j = 0; j < n; j++)
                sum[j] += gout[(r + j) * ld + i] * out[(r + j) * ld + i];
        memcpy(mean + r, &sum, n * sizeof *mean);
    }
}

/* The rest of a row of a block of which n columns are there becomes 0. */
TB_INLINE void FN(attn_clear)(size_t n, REAL *s)
{
    for (size_t i = n; i < FN(ATTN_LD); i += TB_LANES) {
        TB_WHOLE
        for (size_t j = 0; j < TB_LANES; j++)
            s[i + j] = 0;
    }
}

/* s = exp(s - max) inv; 0 up to the end of the row */
TB_INLINE void FN(attn_again)(size_t n, const double *stat, REAL *s)
{
    const REAL max = FN(attn_base)(stat[0]), inv = (REAL)stat[1];
    for (size_t i = 0; i < n; i += TB_LANES) {
        TB_WHOLE
        for (size_t j = 0; j < TB_LANES; j++) {
            REAL e = FN(attn_exp)(s[i + j] - max);
            s[i + j] = e == 0 ? 0 : e * inv; /* inv may be NaN */
        }
    }
    FN(attn_clear)(n, s);
}

/* ds = s (ds - mean) where s is not 0; 0 up to the end of the row */
TB_INLINE void FN(attn_through)(size_t n, const REAL *s, REAL mean, REAL *ds)
{
    for (size_t i = 0; i < n; i += TB_LANES) {
        TB_WHOLE
        for (size_t j = 0; j < TB_LANES; j++)
            ds[i + j] = s[i + j] == 0 ? 0 : s[i + j] * (ds[i + j] - mean);
    }
    FN(attn_clear)(n, ds);
}

/* keys (+)= s^T rows, by groups of keys, each from its first query on */
static void FN(attn_gather)(const FN(attn_block) * b, const REAL *s,
                            const REAL *rows, size_t width, bool add,
                            REAL *keys)
{
    const size_t wide = FN(attn_wide)(width);
    FN(attn_product)
    x = {.n = width, .lda = FN(ATTN_LD), .ldb = wide, .ldc = wide, .add = add};
    for (size_t j = 0; j < b->n; j += x.m) {
        size_t i = FN(attn_begin)(b, j);
        x.m = FN(attn_begin)(b, b->n - 1) == 0 ? b->n - j : ATTN_MR;
        x.a = s + i * FN(ATTN_LD) + j;
        x.b = rows + i * wide;
        x.c = keys + j * wide;
        x.depth = b->rows - i;
        FN(attn_times_t)(&x);
    }
}

/* What a tile and a block of keys have that is not finite. */
typedef struct FN(attn_bad) {
    bool k, v, q, g;
} FN(attn_bad);

/* The tile's probabilities and the derivatives of its scores. */
static void FN(attn_slopes)(const FN(attn_block) * b, const FN(attn_work) * w)
{
    const tb_k_attn *p = b->p;
    const size_t hd = FN(attn_wide)(p->hd), vd = FN(attn_wide)(p->vd);
    for (size_t i = 0; i < b->rows; i += ATTN_MR) {
        size_t wide = FN(attn_group)(b, i, w->q, hd, w->kt, p->hd, w->s);
        FN(attn_group)(b, i, w->g, vd, w->vt, p->vd, w->ds);
        for (size_t r = i; r <= FN(attn_last)(b, i); r++) {
            FN(attn_hide)(b, r, wide, w->s + r * FN(ATTN_LD));
            FN(attn_again)
            (wide, p->stat + 2 * (b->r0 + r), w->s + r * FN(ATTN_LD));
        }
    }
    FN(attn_drop)(b, w->ds);
    for (size_t i = 0; i < b->rows; i++) {
        size_t wide = FN(attn_wide)(
            FN(attn_reach)(b, FN(attn_last)(b, i / ATTN_MR * ATTN_MR)));
        FN(attn_through)
        (wide, w->s + i * FN(ATTN_LD), w->mean[b->r0 + i],
         w->ds + i * FN(ATTN_LD));
    }
    FN(attn_drop)(b, w->s);
}

static void FN(attn_bwd_tile)(const FN(attn_block) * b, const FN(attn_work) * w,
                              const tb_k_attn_grad *g, bool first,
                              FN(attn_bad) bad)
{
    const tb_k_attn *p = b->p;
    const size_t hd = FN(attn_wide)(p->hd);
    const REAL *q = (const REAL *)p->q + b->r0 * p->ldq;
    const REAL *gy = (const REAL *)g->gout + b->r0 * p->ldo;
    const REAL *k = (const REAL *)p->k + b->c0 * p->ldk;
    bad.q = FN(attn_copy_clean)(b->rows, FN(attn_tiled)(b->rows), p->hd,
                                (REAL)p->scale, q, p->ldq, w->q);
    bad.g = FN(attn_copy_clean)(b->rows, FN(attn_tiled)(b->rows), p->vd, 1, gy,
                                p->ldo, w->g);
    FN(attn_slopes)(b, w);
    FN(attn_gather)(b, w->s, w->g, p->vd, !first, w->gv);
    FN(attn_gather)(b, w->ds, w->q, p->hd, !first, w->gk);
    FN(attn_mix)(b, w->ds, w->k, p->hd, b->c0 > 0, w->rows);
    if (bad.g)
        FN(attn_mend)(b, true, p->vd, 1, w->s, gy, p->ldo, w->gv);
    if (bad.q)
        FN(attn_mend)(b, true, p->hd, p->scale, w->ds, q, p->ldq, w->gk);
    if (bad.k)
        FN(attn_mend)
    (b, false, p->hd, 1, w->ds, k, p->ldk, w->rows + b->r0 * hd);
}

/* y += c x, or where `new` y = c x */
TB_INLINE void FN(attn_give_row)(size_t n, REAL c, const REAL *x, bool new,
                                 REAL *y)
{
    const size_t whole = n / FN(VEC) * FN(VEC);
    FN(vec) v, old;
    for (size_t i = 0; i < whole; i += FN(VEC)) {
        memcpy(&v, x + i, sizeof v);
        v *= c;
        if (!new) {
            memcpy(&old, y + i, sizeof old);
            v = old + v;
        }
        memcpy(y + i, &v, sizeof v);
    }
    for (size_t i = whole; i < n; i++)
        y[i] = new ? c *x[i] : y[i] + c *x[i];
}

/* The same for rows; x NULL: zero; y NULL: unwanted */
static void FN(attn_give)(size_t rows, size_t n, double c_, const REAL *x,
                          bool new, REAL *y, size_t ld)
{
    const size_t wide = FN(attn_wide)(n);
    const REAL c = (REAL)c_;
    for (size_t r = 0; y && r < rows; r++, y += ld) {
        if (x && new)
            FN(attn_give_row)(n, c, x + r * wide, true, y);
        else if (x)
            FN(attn_give_row)(n, c, x + r * wide, false, y);
        else if (new)
            memset(y, 0, n * sizeof *y);
    }
}

/* What a block of keys and of values got; NULL: no query sees it. */
static void FN(attn_give_keys)(const FN(attn_block) * b,
                               const tb_k_attn_grad *g, const REAL *gk,
                               const REAL *gv)
{
    const tb_k_attn *p = b->p;
    FN(attn_give)
    (b->n, p->hd, 1, gk, g->new_k,
     g->gk ? (REAL *)g->gk + b->c0 * p->ldk : NULL, p->ldk);
    FN(attn_give)
    (b->n, p->vd, 1, gv, g->new_v,
     g->gv ? (REAL *)g->gv + b->c0 * p->ldv : NULL, p->ldv);
}

/* What the queries got, of which the first `start` see nothing. */
static void FN(attn_give_queries)(const tb_k_attn *p, const tb_k_attn_grad *g,
                                  size_t start, const REAL *rows)
{
    REAL *gq = g->gq;
    FN(attn_give)(start, p->hd, 1, NULL, g->new_q, gq, p->ldq);
    FN(attn_give)
    (p->rows - start, p->hd, p->scale, rows + start * FN(attn_wide)(p->hd),
     g->new_q, gq ? gq + start * p->ldq : NULL, p->ldq);
}

static void FN(attn_bwd)(const tb_k_attn *p, const tb_k_attn_grad *g)
{
    const FN(attn_work) w = FN(attn_carve)(p);
    FN(attn_block) b = {.p = p};
    FN(attn_means)(p, g->gout, g->out, w.mean);
    for (; b.c0 < p->keys; b.c0 += TB_ATTN_KEYS) {
        const REAL *k = (const REAL *)p->k + b.c0 * p->ldk;
        const REAL *v = (const REAL *)p->v + b.c0 * p->ldv;
        FN(attn_bad) bad = {0};
        b.n = FN(least)(TB_ATTN_KEYS, p->keys - b.c0);
        const size_t from = b.r0 = FN(attn_start)(p, b.c0);
        if (from < p->rows) {
            FN(attn_across)(b.n, p->hd, k, p->ldk, w.kt);
            FN(attn_across)(b.n, p->vd, v, p->ldv, w.vt);
            bad.k = FN(attn_copy_clean)(b.n, b.n, p->hd, 1, k, p->ldk, w.k);
        }
        for (; b.r0 < p->rows; b.r0 += b.rows) {
            b.rows = FN(least)(TB_ATTN_ROWS, p->rows - b.r0);
            FN(attn_bwd_tile)(&b, &w, g, b.r0 == from, bad);
        }
        FN(attn_give_keys)
        (&b, g, from < p->rows ? w.gk : NULL, from < p->rows ? w.gv : NULL);
    }
    FN(attn_give_queries)
    (p, g, p->keys ? FN(attn_start)(p, 0) : p->rows, w.rows);
}

/* --- tangent ----------------------------------------------------------------
 * dS = tq k^T + q tk^T, the mean of dS under P in each row, and ty = m P dS v -
 * mean y + m P tv. */

/* s (+)= a block of scores of q and k, of all rows */
static void FN(attn_scores)(const FN(attn_block) * b, const REAL *q,
                            const REAL *kt, bool add, REAL *s)
{
    const FN(attn_product) x = {.m = b->rows,
                                .n = b->n,
                                .depth = b->p->hd,
                                .a = q,
                                .lda = FN(attn_wide)(b->p->hd),
                                .b = kt,
                                .ldb = TB_ATTN_KEYS,
                                .c = s,
                                .ldc = FN(ATTN_LD),
                                .add = add};
    FN(attn_times)(&x);
}

/* The tile's probabilities, and those times the tangent of the scores, their
 * sum added to each row's mean. */
static void FN(attn_changes)(const FN(attn_block) * b, const FN(attn_work) * w)
{
    const size_t wide = FN(attn_wide)(b->n);
    for (size_t r = 0; r < b->rows; r++) {
        REAL *s = w->s + r * FN(ATTN_LD), *ds = w->ds + r * FN(ATTN_LD);
        REAL lane[TB_LANES] = {0};
        FN(attn_hide)(b, r, wide, s);
        FN(attn_again)(wide, b->p->stat + 2 * (b->r0 + r), s);
        FN(attn_through)(wide, s, 0, ds);
        for (size_t i = 0; i < wide; i++)
            lane[i % TB_LANES] += ds[i];
        w->mean[b->r0 + r] += FN(attn_fold)(lane);
    }
}

/* rows += s x over the block's keys, x being p's v or its tangent */
static void FN(attn_tan_mix)(const FN(attn_block) * b, const FN(attn_work) * w,
                             REAL *s, const REAL *x, const REAL *clean,
                             bool bad)
{
    const tb_k_attn *p = b->p;
    FN(attn_drop)(b, s);
    FN(attn_mix)(b, s, clean, p->vd, true, w->rows);
    if (bad)
        FN(attn_mend)
    (b, false, p->vd, 1, s, x, p->ldv, w->rows + b->r0 * FN(attn_wide)(p->vd));
}

static void FN(attn_tan_tile)(const FN(attn_block) * b, const FN(attn_work) * w,
                              const tb_k_attn_tangent *t, FN(attn_bad) bad)
{
    const tb_k_attn *p = b->p;
    const size_t at = b->r0 * p->ldq, tiled = FN(attn_tiled)(b->rows);
    FN(attn_copy)
    (b->rows, tiled, p->hd, (REAL)p->scale, (const REAL *)p->q + at, p->ldq,
     w->q);
    FN(attn_scores)(b, w->q, w->kt, false, w->s);
    if (t->tk)
        FN(attn_scores)(b, w->q, w->vt, false, w->ds);
    if (t->tq) {
        FN(attn_copy)
        (b->rows, tiled, p->hd, (REAL)p->scale, (const REAL *)t->tq + at,
         p->ldq, w->g);
        FN(attn_scores)(b, w->g, w->kt, t->tk != NULL, w->ds);
    }
    if (!t->tk && !t->tq)
        memset(w->ds, 0, b->rows * FN(ATTN_LD) * sizeof *w->ds);
    FN(attn_changes)(b, w);
    if (t->tq || t->tk)
        FN(attn_tan_mix)
    (b, w, w->ds, (const REAL *)p->v + b->c0 * p->ldv, w->v, bad.v);
    if (t->tv)
        FN(attn_tan_mix)
    (b, w, w->s, (const REAL *)t->tv + b->c0 * p->ldv, w->gv, bad.g);
}

/* A kernel without FMA subtracts: a query that sees one key has no tangent from
 * its scores, not a rounding error's. */
static void FN(attn_tan_finish)(const tb_k_attn *p, const FN(attn_work) * w,
                                const tb_k_attn_tangent *t)
{
    const size_t vd = FN(attn_wide)(p->vd);
    for (size_t r = 0; r < p->rows; r++) {
        REAL *out = (REAL *)t->tout + r * p->ldo;
        memcpy(out, w->rows + r * vd, p->vd * sizeof *out);
        if (t->tq || t->tk)
            p->kern->axpy(p->vd, -(double)w->mean[r],
                          (const REAL *)t->out + r * p->ldo, out);
    }
}

static void FN(attn_tan)(const tb_k_attn *p, const tb_k_attn_tangent *t)
{
    const FN(attn_work) w = FN(attn_carve)(p);
    const size_t vd = FN(attn_wide)(p->vd);
    FN(attn_block) b = {.p = p};
    memset(w.mean, 0, p->rows * sizeof *w.mean);
    memset(w.rows, 0, p->rows * vd * sizeof *w.rows);
    for (; b.c0 < p->keys; b.c0 += TB_ATTN_KEYS) {
        const size_t k = b.c0 * p->ldk, v = b.c0 * p->ldv;
        FN(attn_bad) bad = {0};
        b.n = FN(least)(TB_ATTN_KEYS, p->keys - b.c0);
        b.r0 = FN(attn_start)(p, b.c0);
        if (b.r0 >= p->rows)
            break;
        FN(attn_across)(b.n, p->hd, (const REAL *)p->k + k, p->ldk, w.kt);
        if (t->tk)
            FN(attn_across)
        (b.n, p->hd, (const REAL *)t->tk + k, p->ldk, w.vt);
        bad.v = FN(attn_copy_clean)(b.n, b.n, p->vd, 1, (const REAL *)p->v + v,
                                    p->ldv, w.v);
        if (t->tv)
            bad.g = FN(attn_copy_clean)(b.n, b.n, p->vd, 1,
                                        (const REAL *)t->tv + v, p->ldv, w.gv);
        for (; b.r0 < p->rows; b.r0 += b.rows) {
            b.rows = FN(least)(TB_ATTN_ROWS, p->rows - b.r0);
            FN(attn_tan_tile)(&b, &w, t, bad);
        }
    }
    FN(attn_tan_finish)(p, &w, t);
}

#include "kernels/kern_attn_copies.h"

static const tb_k_attn_passes FN(attn_passes) = {
    FN(attn_fwd), FN(attn_bwd), FN(attn_tan), FN(attn_bwd_copies)};
