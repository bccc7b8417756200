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
                               const REAL *gy, double *ggain, double *gbias)
{
    TB_IVDEP
    for (size_t i = 0; i < d; i++) {
        double g = (double)gy[i];
        if (ggain)
            ggain[i] = REAL_MUL_ADD(g, (double)FN(xhat)(c, x[i]), ggain[i]);
        if (gbias)
            gbias[i] += g;
    }
}

static void FN(norm_bwd_cols)(FN(centre) c, size_t d, const REAL *x,
                              const REAL *gy, double *ggain, double *gbias)
{
    if (ggain && gbias)
        FN(norm_cols)(c, d, x, gy, ggain, gbias);
    else if (ggain)
        FN(norm_cols)(c, d, x, gy, ggain, NULL);
    else if (gbias)
        FN(norm_cols)(c, d, x, gy, NULL, gbias);
}

/* A few rows at once read and write ggain and gbias once; every element gets
 * its terms in the order of the rows, as one by one. */
enum { FN(GROUP) = 4 };

typedef struct FN(bwd_row) {
    FN(centre) c;
    FN(means) m;
    const REAL *x, *gy, *base; /* base: NULL in all rows of a group or none */
    REAL *gx;
} FN(bwd_row);

/* What is constant in one compiled copy: `plain` for all rows of the group. */
typedef struct FN(bwd_form) {
    bool plain, based, stream;
} FN(bwd_form);

/* Columns [at, at + 8). */
TB_INLINE void FN(group8)(const FN(bwd_row) * row, size_t rows, FN(bwd_form) f,
                          size_t at, const REAL *gain, double *ggain,
                          double *gbias)
{
    FN(v8) scale = FN(load8)(gain + at);
    tb_d8 lg, lb;
    memcpy(&lg, ggain + at, sizeof lg);
    memcpy(&lb, gbias + at, sizeof lb);
    for (size_t r = 0; r < rows; r++) {
        FN(centre) c = row[r].c;
        FN(means) m = row[r].m;
        FN(v8) x = FN(load8)(row[r].x + at), g = FN(load8)(row[r].gy + at);
        FN(v8) xhat = FN(xhat8)(c, f.plain, x);
        FN(v8) gx = c.rstd * (((g * scale - m.h) - m.h_lo) - xhat * m.hx);
        if (f.based)
            gx = FN(load8)(row[r].base + at) + gx;
        FN(put8)(row[r].gx + at, gx, f.stream);
        lg = FN(mul_add8)(FN(wide8)(g), FN(wide8)(xhat), lg);
        lb += FN(wide8)(g);
    }
    memcpy(ggain + at, &lg, sizeof lg);
    memcpy(gbias + at, &lb, sizeof lb);
}

/* The same of one column. */
static void FN(group1)(const FN(bwd_row) * row, size_t rows, size_t at,
                       const REAL *gain, double *ggain, double *gbias)
{
    for (size_t r = 0; r < rows; r++) {
        const FN(bwd_row) *b = &row[r];
        REAL g = b->gy[at], x = b->x[at];
        REAL v = FN(project)(b->c, b->m, x, g * gain[at]);
        b->gx[at] = b->base ? b->base[at] + v : v;
        ggain[at] =
            REAL_MUL_ADD((double)g, (double)FN(xhat)(b->c, x), ggain[at]);
        gbias[at] += (double)g;
    }
}

TB_PER_CASE void FN(norm_bwd_group)(const FN(bwd_row) * row, size_t rows,
                                    FN(bwd_form) f, size_t d, const REAL *gain,
                                    double *ggain, double *gbias)
{
    size_t i = 0;
    for (; i + 8 <= d; i += 8)
        FN(group8)(row, rows, f, i, gain, ggain, gbias);
    for (; i < d; i++)
        FN(group1)(row, rows, i, gain, ggain, gbias);
}

/* Rows [r, r + rows) with gradients for all of x, gain and bias. */
static void FN(norm_bwd_all)(const tb_k_norm *p, const double *stat,
                             const REAL *gy, const REAL *base, REAL *gx,
                             size_t r, size_t rows, double *ggain,
                             double *gbias)
{
    const REAL *gain = p->gain;
    const bool stream = FN(can_stream)(p, gx);
    FN(bwd_row) row[FN(GROUP)];
    bool plain = true;
    for (size_t q = 0; q < rows; q++) {
        size_t at = (r + q) * p->d;
        FN(bwd_row) *b = &row[q];
        *b = (FN(bwd_row)){.c = FN(centre_of)(stat + 2 * (r + q)),
                           .x = (const REAL *)p->x + at,
                           .gy = gy + at,
                           .base = base ? base + at : NULL,
                           .gx = gx + at};
        b->m = FN(means_of)(p->kind, b->c, p->d, b->x, b->gy, gain);
        plain = plain && FN(centre_plain)(&b->c);
    }
    const bool whole = plain && rows == FN(GROUP);
    if (whole && stream && !base)
        FN(norm_bwd_group)
    (row, FN(GROUP), (FN(bwd_form)){true, false, true}, p->d, gain, ggain,
     gbias);
    else if (whole && base)
        FN(norm_bwd_group)(row, FN(GROUP), (FN(bwd_form)){true, true, false},
                           p->d, gain, ggain, gbias);
    else if (whole)
        FN(norm_bwd_group)(row, FN(GROUP), (FN(bwd_form)){true, false, false},
                           p->d, gain, ggain, gbias);
    else FN(norm_bwd_group)(row, rows,
                            (FN(bwd_form)){false, base != NULL, false}, p->d,
                            gain, ggain, gbias);
}

static void FN(norm_bwd)(const tb_k_norm *p, const double *stat,
                         const void *gy_, const void *gbase, void *gx_,
                         double *ggain, double *gbias)
{
    const REAL *x = p->x, *gy = gy_, *base = gbase;
    REAL *gx = gx_;
    if (gx && p->gain && ggain && gbias) {
        for (size_t r = 0; r < p->rows; r += FN(GROUP)) {
            size_t left = p->rows - r;
            FN(norm_bwd_all)
            (p, stat, gy, base, gx, r, left < FN(GROUP) ? left : FN(GROUP),
             ggain, gbias);
        }
        if (p->stream)
            tb_stream_end();
        return;
    }
    for (size_t r = 0; r < p->rows; r++) {
        size_t at = r * p->d;
        FN(centre) c = FN(centre_of)(stat + 2 * r);
        if (gx)
            FN(norm_bwd_one)
        (p, c, x + at, gy + at, base ? base + at : NULL, gx + at);
        FN(norm_bwd_cols)(c, p->d, x + at, gy + at, ggain, gbias);
    }
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
