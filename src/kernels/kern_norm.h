/* SPDX-License-Identifier: MIT */
/* LayerNorm and RMSNorm over REAL; see kern_template.h. Statistics are two
 * passes in double; elements are centred before they are scaled. */

/* How to reach xhat = (x - mean) * rstd without leaving REAL: the mean is
 * split in two REALs (x - hi is exact where it cancels), and `pre`, a power of
 * two, keeps rstd and x - mean in range for rows near the ends of the type. */
typedef struct FN(centre) {
    REAL pre, hi, lo, r;
    REAL rstd;
} FN(centre);

#if REAL_BITS == 32
#    define RSTD_SMALL 0x1p-60
#    define PRE_SMALL  0x1p-64
#else
#    define RSTD_SMALL 0x1p-500
#    define PRE_SMALL  0x1p-512
#endif

TB_INLINE FN(centre) FN(centre_of)(const double *stat)
{
    double pre = 1, mean = stat[0], rstd = stat[1];
    if (rstd < RSTD_SMALL)
        pre = PRE_SMALL;
    if (rstd > 1 / RSTD_SMALL)
        pre = 1 / PRE_SMALL;
    mean *= pre;
    REAL hi = (REAL)mean;
    return (FN(centre)){.pre = (REAL)pre,
                        .hi = hi,
                        .lo = (REAL)(mean - (double)hi),
                        .r = (REAL)(rstd / pre),
                        .rstd = (REAL)rstd};
}

TB_INLINE REAL FN(xhat)(FN(centre) c, REAL x)
{
    return ((x * c.pre - c.hi) - c.lo) * c.r;
}

#if REAL_BITS == 64
/* The sum of squares left double's range: the mean again from halved-down
 * elements, then deviations in units of `scale`. */
static void stat_scaled_f64(const tb_k_norm *p, const double *x, double *stat)
{
    const double down = 0x1p-64, d = (double)p->d;
    double lane[TB_LANES] = {0};
    if (p->kind == TB_NORM_LAYER && !(__builtin_fabs(stat[0]) < 1e300)) {
        for (size_t i = 0; i < p->d; i++)
            lane[i % TB_LANES] += x[i] * down;
        stat[0] = tree16(lane) / d / down;
    }
    double scale = pow2_near_inverse(span_f64(p->d, x, stat[0]));
    double var = squares_about_f64(p->d, x, stat[0], scale) / d;
    double eps = p->eps > 0 ? p->eps * scale * scale : 0;
    stat[1] = scale / __builtin_sqrt(var + eps);
}
#endif

/* Two passes. A row that is constant has exactly that constant as its mean:
 * sums of d equal floats are exact in double, for doubles the pivot is it. */
static void FN(stat_two_pass)(const tb_k_norm *p, const REAL *x, double *stat)
{
    double mean = 0, d = (double)p->d;
    double pivot = REAL_BITS == 64 ? (double)x[0] : 0;
    if (p->kind == TB_NORM_LAYER)
        mean = pivot + FN(sum_about)(p->d, x, pivot) / d;
    double var = FN(squares_about)(p->d, x, mean, 1) / d;
    stat[0] = mean;
    stat[1] = 1 / __builtin_sqrt(var + p->eps);
#if REAL_BITS == 64
    if (!(var < 1e300) || (p->eps <= 0 && var < 1e-280))
        stat_scaled_f64(p, x, stat);
#endif
}

#if REAL_BITS == 32
TB_INLINE void moments16(double *l1, double *l2, const float *x, double pivot,
                         size_t m)
{
    TB_WHOLE
    for (size_t j = 0; j < m; j++) {
        double c = (double)x[j] - pivot;
        l1[j] += c;
        l2[j] += c * c;
    }
}

/* One pass about the first element: var = E c^2 - (E c)^2. False where that
 * difference lost 20 of double's 53 bits (or is no number): the first element
 * is then far from all others, and two passes have to do it. */
TB_INLINE bool stat_one_pass(const tb_k_norm *p, const float *x, double *stat)
{
    double l1[TB_LANES] = {0}, l2[TB_LANES] = {0}, d = (double)p->d;
    double pivot = p->kind == TB_NORM_LAYER ? (double)x[0] : 0;
    size_t i = 0;
    for (; i + TB_LANES <= p->d; i += TB_LANES)
        moments16(l1, l2, x + i, pivot, TB_LANES);
    moments16(l1, l2, x + i, pivot, p->d - i);
    double shift = p->kind == TB_NORM_LAYER ? tree16(l1) / d : 0;
    double square = tree16(l2) / d, var = square - shift * shift;
    stat[0] = pivot + shift;
    stat[1] = 1 / __builtin_sqrt(var + p->eps);
    return var > 0x1p-20 * square;
}
#endif

static void FN(norm_stat)(const tb_k_norm *p, const REAL *x, double *stat)
{
#if REAL_BITS == 32
    if (stat_one_pass(p, x, stat))
        return;
#endif
    FN(stat_two_pass)(p, x, stat);
}

TB_INLINE void FN(norm_row)(FN(centre) c, size_t d, const REAL *x,
                            const REAL *gain, const REAL *bias, REAL *y)
{
    TB_IVDEP
    for (size_t i = 0; i < d; i++) {
        REAL v = FN(xhat)(c, x[i]);
        if (gain)
            v *= gain[i];
        if (bias)
            v += bias[i];
        y[i] = v;
    }
}

static void FN(norm_fwd)(const tb_k_norm *p, void *y_, double *stat)
{
    const REAL *x = p->x, *gain = p->gain, *bias = p->bias;
    REAL *y = y_;
    double local[2];
    for (size_t r = 0; r < p->rows; r++, x += p->d, y += p->d) {
        double *s = stat ? stat + 2 * r : local;
        FN(norm_stat)(p, x, s);
        FN(centre) c = FN(centre_of)(s);
        /* one loop per case: a test inside would stop the vectoriser */
        if (gain && bias)
            FN(norm_row)(c, p->d, x, gain, bias, y);
        else if (gain)
            FN(norm_row)(c, p->d, x, gain, NULL, y);
        else if (bias)
            FN(norm_row)(c, p->d, x, NULL, bias, y);
        else
            FN(norm_row)(c, p->d, x, NULL, NULL, y);
    }
}

/* What backward and tangent subtract: mean(h) and mean(h xhat). */
typedef struct FN(means) {
    REAL h, h_lo, hx;
} FN(means);

TB_INLINE void FN(means16)(double *l1, double *l2, FN(centre) c, const REAL *x,
                           const REAL *h, const REAL *gain, size_t m)
{
    TB_WHOLE
    for (size_t j = 0; j < m; j++) {
        REAL v = gain ? h[j] * gain[j] : h[j];
        l1[j] += (double)v;
        l2[j] += (double)v * (double)FN(xhat)(c, x[j]);
    }
}

TB_INLINE FN(means) FN(means_of)(tb_norm_kind kind, FN(centre) c, size_t d,
                                 const REAL *x, const REAL *h, const REAL *gain)
{
    double l1[TB_LANES] = {0}, l2[TB_LANES] = {0};
    size_t i = 0;
    for (; i + TB_LANES <= d; i += TB_LANES)
        FN(means16)(l1, l2, c, x + i, h + i, gain ? gain + i : NULL, TB_LANES);
    FN(means16)(l1, l2, c, x + i, h + i, gain ? gain + i : NULL, d - i);
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

TB_INLINE void FN(norm_bwd_row)(tb_norm_kind kind, FN(centre) c, size_t d,
                                const REAL *x, const REAL *gain, const REAL *gy,
                                REAL *gx)
{
    FN(means) m = FN(means_of)(kind, c, d, x, gy, gain);
    TB_IVDEP
    for (size_t i = 0; i < d; i++)
        gx[i] += FN(project)(c, m, x[i], gain ? gy[i] * gain[i] : gy[i]);
}

/* ggain += gy xhat and gbias += gy, where they are given */
TB_INLINE void FN(norm_cols)(FN(centre) c, size_t d, const REAL *x,
                             const REAL *gy, double *ggain, double *gbias)
{
    TB_IVDEP
    for (size_t i = 0; i < d; i++) {
        double g = (double)gy[i];
        if (ggain)
            ggain[i] += g * (double)FN(xhat)(c, x[i]);
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

static void FN(norm_bwd)(const tb_k_norm *p, const double *stat,
                         const void *gy_, void *gx_, double *ggain,
                         double *gbias)
{
    const REAL *x = p->x, *gain = p->gain, *gy = gy_;
    REAL *gx = gx_;
    for (size_t r = 0; r < p->rows; r++) {
        size_t at = r * p->d;
        FN(centre) c = FN(centre_of)(stat + 2 * r);
        if (gx && gain)
            FN(norm_bwd_row)(p->kind, c, p->d, x + at, gain, gy + at, gx + at);
        else if (gx)
            FN(norm_bwd_row)(p->kind, c, p->d, x + at, NULL, gy + at, gx + at);
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

#undef RSTD_SMALL
#undef PRE_SMALL
