/* SPDX-License-Identifier: MIT */
/* Backward and tangent of LayerNorm and RMSNorm; see kern_norm.h. */

/* `plain`: as centre_plain says, a constant that saves two operations. */
TB_INLINE FN(v8) FN(xhat8)(FN(centre) c, bool plain, FN(v8) x)
{
    return plain ? (x - c.hi) * c.r : ((x * c.pre - c.hi) - c.lo) * c.r;
}

/* What backward and tangent subtract: mean(h) and mean(h xhat). */
typedef struct FN(means) {
    REAL h, h_lo, hx;
} FN(means);

TB_PER_CASE size_t FN(means_whole)(FN(centre) c, bool plain, size_t d,
                                   const REAL *x, const REAL *h,
                                   const REAL *gain, double *l1, double *l2)
{
    tb_d8 s[2] = {{0}}, q[2] = {{0}};
    size_t i = 0;
    for (; i + TB_LANES <= d; i += TB_LANES)
        for (size_t half = 0, at = i; half < 2; half++, at += 8) {
            FN(v8) xhat = FN(xhat8)(c, plain, FN(load8)(x + at));
            FN(v8) v = FN(load8)(h + at);
            v = gain ? v * FN(load8)(gain + at) : v;
            tb_d8 wide = FN(wide8)(v);
            s[half] += wide;
            q[half] = FN(mul_add8)(wide, FN(wide8)(xhat), q[half]);
        }
    memcpy(l1, s, sizeof s);
    memcpy(l2, q, sizeof q);
    return i;
}

TB_PER_CASE FN(means)
    FN(means_of)(tb_norm_kind kind, FN(centre) c, size_t d, const REAL *x,
                 const REAL *h, const REAL *gain)
{
    double l1[TB_LANES], l2[TB_LANES];
    size_t i;
    if (FN(centre_plain)(&c))
        i = FN(means_whole)(c, true, d, x, h, gain, l1, l2);
    else
        i = FN(means_whole)(c, false, d, x, h, gain, l1, l2);
    for (size_t j = 0; i + j < d; j++) {
        REAL v = gain ? h[i + j] * gain[i + j] : h[i + j];
        l1[j] += (double)v;
        l2[j] = REAL_MUL_ADD((double)v, (double)FN(xhat)(c, x[i + j]), l2[j]);
    }
    double m1 = kind == TB_NORM_LAYER ? tree16(l1) / (double)d : 0;
    double m2 = tree16(l2) / (double)d;
    REAL hi = (REAL)m1;
    return (FN(means)){
        .h = hi, .h_lo = (REAL)(m1 - (double)hi), .hx = (REAL)m2};
}

/* rstd * (h - mean(h) - xhat * mean(h xhat)): the norm's Jacobian, which is
 * symmetric, applied to h */
TB_INLINE REAL FN(project)(FN(centre) c, FN(means) m, REAL x, REAL h)
{
    return c.rstd * (((h - m.h) - m.h_lo) - FN(xhat)(c, x) * m.hx);
}

TB_PER_CASE void FN(norm_bwd_row)(tb_norm_kind kind, FN(centre) c, size_t d,
                                  const REAL *x, const REAL *gain,
                                  const REAL *gy, const REAL *base, REAL *gx)
{
    FN(means) m = FN(means_of)(kind, c, d, x, gy, gain);
    TB_IVDEP
    for (size_t i = 0; i < d; i++) {
        REAL v = FN(project)(c, m, x[i], gain ? gy[i] * gain[i] : gy[i]);
        gx[i] = base ? base[i] + v : v;
    }
}

/* One loop per case, as in norm_fwd. */
static void FN(norm_bwd_one)(const tb_k_norm *p, FN(centre) c, const REAL *x,
                             const REAL *gy, const REAL *base, REAL *gx)
{
    if (p->gain && base)
        FN(norm_bwd_row)(p->kind, c, p->d, x, p->gain, gy, base, gx);
    else if (p->gain)
        FN(norm_bwd_row)(p->kind, c, p->d, x, p->gain, gy, NULL, gx);
    else if (base)
        FN(norm_bwd_row)(p->kind, c, p->d, x, NULL, gy, base, gx);
    else
        FN(norm_bwd_row)(p->kind, c, p->d, x, NULL, gy, NULL, gx);
}

/* ggain += gy xhat and gbias += gy, where they are given */
TB_PER_CASE void FN(norm_cols)(FN(centre) c, size_t d, const REAL *x,
                               const REAL *gy, REAL *ggain, REAL *gbias)
{
    TB_IVDEP
    for (size_t i = 0; i < d; i++) {
        if (ggain)
            ggain[i] += gy[i] * FN(xhat)(c, x[i]);
        if (gbias)
            gbias[i] += gy[i];
    }
}

static void FN(norm_bwd_cols)(FN(centre) c, size_t d, const REAL *x,
                              const REAL *gy, REAL *ggain, REAL *gbias)
{
    if (ggain && gbias)
        FN(norm_cols)(c, d, x, gy, ggain, gbias);
    else if (ggain)
        FN(norm_cols)(c, d, x, gy, ggain, NULL);
    else if (gbias)
        FN(norm_cols)(c, d, x, gy, NULL, gbias);
}

/* --- spans ---------------------------------------------------------------- */

/* Before row `row` is added: a full span joins those before it. A new one
 * begins: what is in `part` no longer counts. */
static void FN(span_open)(size_t d, size_t row, const tb_k_span *s)
{
    REAL *part = s->part;
    double *full = s->full;
    if (!part || row % TB_NORM_SPAN)
        return;
    if (row > TB_NORM_SPAN) {
        TB_IVDEP
        for (size_t i = 0; i < d; i++)
            full[i] += (double)part[i];
    } else if (row == TB_NORM_SPAN) {
        TB_IVDEP
        for (size_t i = 0; i < d; i++)
            full[i] = (double)part[i];
    }
}

/* `n` parts of eights of columns: 4, by a tree, or 1. */
TB_INLINE void FN(span_add)(size_t at, size_t eights, size_t n,
                            const tb_k_span *s, tb_d8 *sum)
{
    for (size_t e = 0; e < eights; e++, at += 8) {
        for (size_t k = 0; k < n; k++) {
            tb_d8 full;
            if (!s[k].full)
                continue;
            memcpy(&full, s[k].full + at, sizeof full);
            sum[e] += full;
        }
        FN(v8) part = FN(load8)((const REAL *)s[0].part + at);
        if (n == 4) {
            part += FN(load8)((const REAL *)s[1].part + at);
            part += FN(load8)((const REAL *)s[2].part + at) +
                    FN(load8)((const REAL *)s[3].part + at);
        }
        sum[e] += FN(wide8)(part);
    }
}

/* Eights of columns from `at` on, 4 or 1. */
TB_PER_CASE void FN(span_join8)(size_t at, size_t eights, size_t parts,
                                const tb_k_span *s, REAL *g)
{
    tb_d8 sum[4] = {{0}};
    for (; parts >= 4; parts -= 4, s += 4)
        FN(span_add)(at, eights, 4, s, sum);
    for (; parts > 0; parts--, s++)
        FN(span_add)(at, eights, 1, s, sum);
    double total[32];
    memcpy(total, sum, eights * sizeof *sum);
    TB_IVDEP
    for (size_t j = 0; j < 8 * eights; j++)
        g[at + j] = (REAL)(total[j] + (double)g[at + j]);
}

static void FN(span_join)(size_t d, size_t parts, const tb_k_span *s, void *g_)
{
    REAL *g = g_;
    size_t i = 0;
    for (; i + 32 <= d; i += 32)
        FN(span_join8)(i, 4, parts, s, g);
    for (; i + 8 <= d; i += 8)
        FN(span_join8)(i, 1, parts, s, g);
    for (; i < d; i++) {
        double sum = 0;
        for (size_t k = 0, n; k < parts; k += n) {
            n = parts - k < 4 ? 1 : 4;
            REAL p[4] = {0};
            for (size_t j = 0; j < n; j++) {
                sum += s[k + j].full ? s[k + j].full[i] : 0;
                p[j] = ((const REAL *)s[k + j].part)[i];
            }
            sum += (double)((p[0] + p[1]) + (p[2] + p[3]));
        }
        g[i] = (REAL)(sum + (double)g[i]);
    }
}

/* --- backward ------------------------------------------------------------- */

typedef struct FN(bwd) {
    const tb_k_norm *p;
    const double *stat;
    const REAL *gy, *base;
    REAL *gx, *ggain, *gbias;
    size_t row; /* of the sums, that row 0 of these is */
} FN(bwd);

/* The first row of a span is written, not added. */
static bool FN(bwd_fresh)(const FN(bwd) * b, size_t r)
{
    return (b->row + r) % TB_NORM_SPAN == 0;
}

#if REAL_BITS == 32
/* A usual row: it has a gain, and a mean within its deviation. With h = gy
 * gain,
 *
 *   gx = rstd * (h - (slope x + shift))
 *
 * where slope x + shift = mean(h) + mean(h xhat) xhat. Sixteen terms of a mean
 * at a time are added in float by a tree, and eight such sums one after the
 * other. With m = mean|h| and n = mean|h xhat| gx is right to 20 * 2^-24 rstd
 * (|h| + m (1 + |xhat|) + n (|x| + |mean|) rstd).
 */
typedef struct bwd_rows { /* one, or two that follow each other */
    const float *x, *gy, *base;
    float *gx;
    size_t d;
    float hi[2], rstd[2]; /* xhat = (x - hi) rstd */
    float slope[2], shift[2];
} bwd_rows;

/* h and h xhat of two rows, or their sums. */
typedef struct bwd_lanes {
    pack_f32 h[2], hx[2];
} bwd_lanes;

TB_INLINE bwd_lanes bwd_plus(bwd_lanes a, bwd_lanes b, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        a.h[r] += b.h[r];
        a.hx[r] += b.hx[r];
        TB_ONCE(a.h[r]);
        TB_ONCE(a.hx[r]);
    }
    return a;
}

/* Gradients of gain and bias; `keep`: bits of a column's number, none where a
 * span is new and what was there counts as 0. */
typedef struct bwd_cols {
    float *gain, *bias;
    const float *gain_was, *bias_was;
    size_t keep;
} bwd_cols;

TB_INLINE bwd_cols bwd_cols_of(float *gain, float *bias, bool fresh)
{
    static const _Alignas(64) float zero[PACK_f32];
    return (bwd_cols){.gain = gain,
                      .bias = bias,
                      .gain_was = fresh ? zero : gain,
                      .bias_was = fresh ? zero : bias,
                      .keep = fresh ? 0 : SIZE_MAX};
}

/* Columns [i, i + 16). The gradients of gain and bias get their terms in the
 * order of the rows, as one by one. */
TB_INLINE bwd_lanes bwd_strip(const bwd_rows *g, size_t rows, const float *gain,
                              size_t i, bwd_cols c)
{
    bwd_lanes s = {.h = {{0}}};
    pack_f32 scale = load_f32(gain + i), to_gain = {0}, to_bias = {0};
    TB_ONCE(scale);
    if (c.gain)
        to_gain = load_f32(c.gain_was + (i & c.keep));
    if (c.bias)
        to_bias = load_f32(c.bias_was + (i & c.keep));
    for (size_t r = 0; r < rows; r++) {
        pack_f32 gy = load_f32(g->gy + r * g->d + i);
        TB_ONCE(gy);
        pack_f32 xhat = load_f32(g->x + r * g->d + i);
        xhat = (xhat - g->hi[r]) * g->rstd[r];
        to_gain += gy * xhat;
        to_bias += gy;
        s.h[r] = gy * scale;
        s.hx[r] = s.h[r] * xhat;
    }
    if (c.gain)
        put_f32(c.gain + i, to_gain, false);
    if (c.bias)
        put_f32(c.bias + i, to_bias, false);
    return s;
}

/* Columns [i, i + MOMENTS / 2). */
TB_PER_CASE bwd_lanes bwd_half(const bwd_rows *g, size_t rows,
                               const float *gain, size_t i, bwd_cols c)
{
    bwd_lanes a = bwd_strip(g, rows, gain, i, c);
    a = bwd_plus(a, bwd_strip(g, rows, gain, i + 16, c), rows);
    bwd_lanes b = bwd_strip(g, rows, gain, i + 32, c);
    b = bwd_plus(b, bwd_strip(g, rows, gain, i + 48, c), rows);
    return bwd_plus(a, b, rows);
}

/* The same in double, 8 lanes. */
typedef struct bwd_wide {
    tb_d8 h[2], hx[2];
} bwd_wide;

TB_INLINE void bwd_widen(bwd_wide *w, bwd_lanes s, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        w->h[r] += wide8_f32(fold16(s.h[r]));
        w->hx[r] += wide8_f32(fold16(s.hx[r]));
    }
}

/* The columns from i on that fill no pack, in double. */
TB_APART void bwd_rest(const bwd_rows *g, size_t r, const float *gain, size_t i,
                       bwd_cols c, double *l1, double *l2)
{
    const float *x = g->x + r * g->d, *gy = g->gy + r * g->d;
    for (size_t j = 0; i < g->d; i++, j = (j + 1) % 8) {
        float xhat = (x[i] - g->hi[r]) * g->rstd[r];
        double v = (double)(gy[i] * gain[i]);
        l1[j] += v;
        l2[j] = REAL_MUL_ADD(v, (double)xhat, l2[j]);
        if (c.gain)
            c.gain[i] = (c.keep ? c.gain[i] : 0) + gy[i] * xhat;
        if (c.bias)
            c.bias[i] = (c.keep ? c.bias[i] : 0) + gy[i];
    }
}

/* What follows from the sums; those of columns from i on are still missing. */
TB_INLINE void bwd_means(bwd_rows *g, size_t r, const tb_k_norm *p, size_t i,
                         tb_d8 h, tb_d8 hx, bwd_cols c)
{
    const double share = 1 / (double)p->d;
    double mean, slope;
    if (i == p->d) {
        mean = tree8_of(h);
        slope = tree8_of(hx);
    } else {
        double l1[8], l2[8];
        memcpy(l1, &h, sizeof l1);
        memcpy(l2, &hx, sizeof l2);
        bwd_rest(g, r, p->gain, i, c, l1, l2);
        mean = tree8(l1);
        slope = tree8(l2);
    }
    mean = p->kind == TB_NORM_LAYER ? mean * share : 0;
    slope *= share * (double)g->rstd[r];
    g->slope[r] = (float)slope;
    g->shift[r] = (float)(mean - slope * (double)g->hi[r]);
}

/* As many columns as are summed in float: blocks of MOMENTS, one after the
 * other. */
enum { BWD_RUN = 8 * MOMENTS };

TB_PER_CASE void bwd_measure(bwd_rows *to, size_t rows, const tb_k_norm *p,
                             bwd_cols c)
{
    const float *gain = p->gain;
    const bwd_rows g = *to;
    const size_t blocks = g.d - g.d % MOMENTS;
    bwd_wide w = {.h = {{0}}};
    size_t i = 0;
    while (i < blocks) {
        const size_t end = blocks - i > BWD_RUN ? i + BWD_RUN : blocks;
        bwd_lanes s = {.h = {{0}}};
        for (; i < end; i += MOMENTS) {
            bwd_lanes a = bwd_half(&g, rows, gain, i, c);
            bwd_lanes b = bwd_half(&g, rows, gain, i + MOMENTS / 2, c);
            s = bwd_plus(s, bwd_plus(a, b, rows), rows);
        }
        bwd_widen(&w, s, rows);
    }
    for (; i + PACK_f32 <= g.d; i += PACK_f32)
        bwd_widen(&w, bwd_strip(&g, rows, gain, i, c), rows);
    bwd_means(to, 0, p, i, w.h[0], w.hx[0], c);
    c.keep = SIZE_MAX;
    if (rows > 1)
        bwd_means(to, 1, p, i, w.h[1], w.hx[1], c);
}

/* `based`, `stream`: constants. The sums in `keep` are wanted next: what is
 * touched now is not what a first-level cache gives up for these rows. */
TB_PER_CASE void bwd_write(const bwd_rows *from, size_t rows, const float *gain,
                           const float *const *keep, bool based, bool stream)
{
    const bwd_rows g = *from;
    const float *keep0 = keep[0], *keep1 = keep[1];
    size_t i = 0;
    for (; i + PACK_f32 <= g.d; i += PACK_f32) {
        pack_f32 scale = load_f32(gain + i);
        TB_ONCE(scale);
        __builtin_prefetch(keep0 + i);
        __builtin_prefetch(keep1 + i);
        for (size_t r = 0, at = i; r < rows; r++, at += g.d) {
            pack_f32 h = load_f32(g.gy + at) * scale;
            pack_f32 v = load_f32(g.x + at) * g.slope[r] + g.shift[r];
            v = g.rstd[r] * (h - v);
            if (based)
                v = load_f32(g.base + at) + v;
            put_f32(g.gx + at, v, stream);
        }
    }
    for (; i < g.d; i++)
        for (size_t r = 0, at = i; r < rows; r++, at += g.d) {
            float v = g.x[at] * g.slope[r] + g.shift[r];
            v = g.rstd[r] * (g.gy[at] * gain[i] - v);
            g.gx[at] = based ? g.base[at] + v : v;
        }
}

/* One compiled copy for each set of sums, and of ways to write. */
TB_APART void bwd_measure_rows(const bwd_f32 *b, bwd_rows *g, bool two,
                               bool fresh)
{
    const tb_k_norm *p = b->p;
    if (b->ggain && b->gbias && two)
        bwd_measure(g, 2, p, bwd_cols_of(b->ggain, b->gbias, fresh));
    else if (b->ggain && b->gbias)
        bwd_measure(g, 1, p, bwd_cols_of(b->ggain, b->gbias, fresh));
    else if (b->ggain && two)
        bwd_measure(g, 2, p, bwd_cols_of(b->ggain, NULL, fresh));
    else if (b->ggain)
        bwd_measure(g, 1, p, bwd_cols_of(b->ggain, NULL, fresh));
    else if (two)
        bwd_measure(g, 2, p, bwd_cols_of(NULL, NULL, fresh));
    else
        bwd_measure(g, 1, p, bwd_cols_of(NULL, NULL, fresh));
}

TB_APART void bwd_write_rows(const bwd_f32 *b, const bwd_rows *g, bool two)
{
    const float *gain = b->p->gain;
    const bool keeps = g->d <= BWD_RUN; /* two such rows fit beside them */
    const float *const keep[2] = {keeps && b->ggain ? b->ggain : gain,
                                  keeps && b->gbias ? b->gbias : gain};
    if (b->base && two)
        bwd_write(g, 2, gain, keep, true, false);
    else if (b->base)
        bwd_write(g, 1, gain, keep, true, false);
    else if (can_stream_f32(b->p, b->gx) && two)
        bwd_write(g, 2, gain, keep, false, true);
    else if (two)
        bwd_write(g, 2, gain, keep, false, false);
    else
        bwd_write(g, 1, gain, keep, false, false);
}

/* Row r of what is to be done as row k of a group; false if it is not usual. */
TB_INLINE bool bwd_take(const bwd_f32 *b, size_t r, bwd_rows *g, size_t k)
{
    const centre_f32 c = centre_of_f32(b->stat + 2 * r);
    g->hi[k] = c.hi;
    g->rstd[k] = c.rstd;
    return centre_plain_f32(&c) && stat_near_f32(b->stat + 2 * r);
}

TB_INLINE bwd_rows bwd_rows_at(const bwd_f32 *b, size_t r)
{
    const size_t at = r * b->p->d;
    return (bwd_rows){.x = (const float *)b->p->x + at,
                      .gy = b->gy + at,
                      .base = b->base ? b->base + at : NULL,
                      .gx = b->gx + at,
                      .d = b->p->d};
}

/* Two rows one after the other: one long stream is read faster than two. */
static void bwd_measure_far(const bwd_f32 *b, size_t r, bwd_rows *g, bool fresh)
{
    bwd_rows next = bwd_rows_at(b, r + 1);
    bwd_take(b, r + 1, &next, 0);
    bwd_measure_rows(b, g, false, fresh);
    bwd_measure_rows(b, &next, false, false);
    g->slope[1] = next.slope[0];
    g->shift[1] = next.shift[0];
}

/* Rows from r on, before `end`: how many were done. */
static size_t bwd_usual(const bwd_f32 *b, size_t r, size_t end)
{
    if (!b->gx || !b->p->gain || (b->gbias && !b->ggain))
        return 0;
    bwd_rows g = bwd_rows_at(b, r);
    if (!bwd_take(b, r, &g, 0))
        return 0;
    const bool two = r + 1 < end && bwd_take(b, r + 1, &g, 1);
    const bool fresh = bwd_fresh_f32(b, r);
    if (two && b->p->far)
        bwd_measure_far(b, r, &g, fresh);
    else
        bwd_measure_rows(b, &g, two, fresh);
    bwd_write_rows(b, &g, two);
    return two ? 2 : 1;
}
#endif

static void FN(bwd_any)(const FN(bwd) * b, size_t r)
{
    const tb_k_norm *p = b->p;
    const size_t at = r * p->d;
    const REAL *x = (const REAL *)p->x + at, *gy = b->gy + at;
    FN(centre) c = FN(centre_of)(b->stat + 2 * r);
    const bool fresh = FN(bwd_fresh)(b, r);
    if (fresh && b->ggain)
        memset(b->ggain, 0, p->d * sizeof(REAL));
    if (fresh && b->gbias)
        memset(b->gbias, 0, p->d * sizeof(REAL));
    FN(norm_bwd_cols)(c, p->d, x, gy, b->ggain, b->gbias);
    if (b->gx)
        FN(norm_bwd_one)
    (p, c, x, gy, b->base ? b->base + at : NULL, b->gx + at);
}

static void FN(norm_bwd)(const tb_k_norm *p, const double *stat, const void *gy,
                         const void *gbase, void *gx, const tb_k_spans *s)
{
    const tb_k_spans none = {.row = 0};
    s = s ? s : &none;
    const FN(bwd) b = {.p = p,
                       .stat = stat,
                       .gy = gy,
                       .base = gbase,
                       .gx = gx,
                       .ggain = s->gain.part,
                       .gbias = s->bias.part,
                       .row = s->row};
    for (size_t r = 0; r < p->rows;) {
        size_t to = r + TB_NORM_SPAN - (s->row + r) % TB_NORM_SPAN;
        to = to < p->rows ? to : p->rows;
        FN(span_open)(p->d, s->row + r, &s->gain);
        FN(span_open)(p->d, s->row + r, &s->bias);
        while (r < to) {
            size_t done = 0;
#if REAL_BITS == 32
            done = bwd_usual(&b, r, to);
#endif
            if (done == 0)
                FN(bwd_any)(&b, r);
            r += done ? done : 1;
        }
    }
    if (p->stream)
        tb_stream_end();
}

/* ty = gain * J tx + tgain * xhat + tbias, each term where it is given */
static void FN(norm_tan_row)(const tb_k_norm *p, FN(centre) c, const REAL *x,
                             const REAL *tx, const REAL *tgain,
                             const REAL *tbias, REAL *ty)
{
    const REAL *gain = p->gain;
    size_t d = p->d;
    if (tx) {
        FN(means) m = FN(means_of)(p->kind, c, d, x, tx, NULL);
        TB_IVDEP
        for (size_t i = 0; i < d; i++)
            ty[i] = FN(project)(c, m, x[i], tx[i]);
        if (gain)
            FN(mul)(d, ty, gain, ty);
    } else {
        memset(ty, 0, d * sizeof *ty);
    }
    TB_IVDEP
    for (size_t i = 0; tgain && i < d; i++)
        ty[i] += tgain[i] * FN(xhat)(c, x[i]);
    if (tbias)
        FN(add)(d, ty, tbias, ty);
}

static void FN(norm_tan)(const tb_k_norm *p, const double *stat,
                         const void *tx_, const void *tgain, const void *tbias,
                         void *ty_)
{
    const REAL *x = p->x, *tx = tx_;
    REAL *ty = ty_;
    for (size_t r = 0; r < p->rows; r++) {
        size_t at = r * p->d;
        FN(norm_tan_row)
        (p, FN(centre_of)(stat + 2 * r), x + at, tx ? tx + at : NULL, tgain,
         tbias, ty + at);
    }
}
