/* SPDX-License-Identifier: MIT */
/* Softmax and cross-entropy over REAL; see kern_template.h. Both subtract the
 * row's maximum first; a nan anywhere in a row makes the whole row nan. */

TB_INLINE void FN(max16)(REAL *lane, const REAL *x, size_t m)
{
    TB_WHOLE
    for (size_t j = 0; j < m; j++)
        lane[j] = x[j] > lane[j] ? x[j] : lane[j];
}

/* the largest element that is not nan; -inf if there is none */
TB_PER_CASE REAL FN(row_max)(size_t n, const REAL *x)
{
    REAL lane[TB_LANES];
    TB_WHOLE
    for (int j = 0; j < TB_LANES; j++)
        lane[j] = -REAL_INF;
    size_t i = 0;
    for (; i + TB_LANES <= n; i += TB_LANES)
        FN(max16)(lane, x + i, TB_LANES);
    FN(max16)(lane, x + i, n - i);
    FN(max16)(lane, lane + 8, 8);
    FN(max16)(lane, lane + 4, 4);
    FN(max16)(lane, lane + 2, 2);
    return lane[1] > lane[0] ? lane[1] : lane[0];
}

/* e = exp((x - hi) - lo), 16 of them, each added to its lane */
TB_PER_CASE void FN(exp16)(double *lane, const REAL *x, REAL hi, REAL lo,
                           REAL *e)
{
    TB_WHOLE
    for (int j = 0; j < TB_LANES; j++) {
        e[j] = REAL_EXP((x[j] - hi) - lo);
        lane[j] += (double)e[j];
    }
}

/* The last m < 16 elements, filled up with -inf: a whole block of exp costs
 * less than a few scalar ones. */
TB_INLINE void FN(pad16)(REAL *pad, const REAL *x, size_t m)
{
    TB_WHOLE
    for (size_t j = 0; j < TB_LANES; j++)
        pad[j] = -REAL_INF;
    memcpy(pad, x, m * sizeof *pad);
}

/* y = exp(x - max), or nothing stored if y is NULL; returns the sum */
TB_PER_CASE double FN(row_exp)(size_t n, const REAL *x, REAL max, REAL *y)
{
    double lane[TB_LANES] = {0};
    REAL e[TB_LANES], pad[TB_LANES];
    size_t i = 0;
    for (; i + TB_LANES <= n; i += TB_LANES)
        FN(exp16)(lane, x + i, max, 0, y ? y + i : e);
    if (i < n) {
        FN(pad16)(pad, x + i, n - i);
        FN(exp16)(lane, pad, max, 0, e);
        if (y)
            memcpy(y + i, e, (n - i) * sizeof *e);
    }
    return tree16(lane);
}

TB_INLINE size_t FN(visible)(size_t n, size_t first, size_t r)
{
    return first >= n || r >= n - first ? n : first + r;
}

static void FN(softmax_fwd)(size_t rows, size_t n, size_t ld, size_t first,
                            double scale, void *s_)
{
    REAL *s = s_;
    for (size_t r = 0; r < rows; r++, s += ld) {
        size_t m = FN(visible)(n, first, r);
        FN(scale)(m, scale, s, s);
        double sum = FN(row_exp)(m, s, FN(row_max)(m, s), s);
        FN(scale)(m, 1 / sum, s, s);
        memset(s + m, 0, (n - m) * sizeof *s);
    }
}

static void FN(softmax_bwd)(size_t rows, size_t n, size_t ld, size_t first,
                            double scale_, const void *p_, void *gp_)
{
    const REAL *p = p_, scale = (REAL)scale_;
    REAL *gp = gp_;
    for (size_t r = 0; r < rows; r++, p += ld, gp += ld) {
        size_t m = FN(visible)(n, first, r);
        REAL mean = (REAL)FN(dot)(m, p, gp);
        TB_IVDEP
        for (size_t i = 0; i < m; i++)
            gp[i] = scale * p[i] * (gp[i] - mean);
        memset(gp + m, 0, (n - m) * sizeof *gp);
    }
}

/* --- cross-entropy ------------------------------------------------------ */

static void FN(xent_fwd)(size_t rows, size_t v, const void *logits,
                         const int32_t *target, double *lse, double *loss)
{
    const REAL *z = logits;
    for (size_t r = 0; r < rows; r++, z += v) {
        lse[r] = 0;
        if (target[r] < 0)
            continue;
        REAL max = FN(row_max)(v, z);
        lse[r] = (double)max + tb_log(FN(row_exp)(v, z, max, NULL));
        *loss += lse[r] - (double)z[target[r]];
    }
}

/* g = base + scale exp(z - lse), base NULL being zero; g may be z or base */
TB_PER_CASE void FN(xent_row)(size_t v, const REAL *z, double lse, REAL scale,
                              const REAL *base, REAL *g)
{
    /* lse in two REALs: exp would turn its rounding into a bias */
    REAL hi = (REAL)lse, lo = (REAL)(lse - (double)hi);
    TB_IVDEP
    for (size_t i = 0; i < v; i++) {
        REAL term = scale * REAL_EXP((z[i] - hi) - lo);
        g[i] = base ? base[i] + term : term;
    }
}

static void FN(xent_bwd)(size_t rows, size_t v, const void *logits,
                         const int32_t *target, const double *lse,
                         double scale_, const void *gbase, void *glogits)
{
    const REAL *z = logits, *base = gbase, scale = (REAL)scale_;
    REAL *g = glogits;
    for (size_t r = 0; r < rows; r++, z += v, g += v) {
        const REAL *from = base ? base + r * v : NULL;
        if (target[r] < 0 && !from)
            memset(g, 0, v * sizeof *g);
        else if (target[r] < 0)
            memmove(g, from, v * sizeof *g);
        else if (from)
            FN(xent_row)(v, z, lse[r], scale, from, g);
        else
            FN(xent_row)(v, z, lse[r], scale, NULL, g);
        if (target[r] >= 0)
            g[target[r]] -= scale;
    }
}

/* sum of p tz, p = exp(z - lse) */
TB_INLINE double FN(xent_mean)(size_t v, const REAL *z, double lse,
                               const REAL *tz)
{
    REAL hi = (REAL)lse, lo = (REAL)(lse - (double)hi);
    REAL e[TB_LANES], pad[TB_LANES];
    double lane[TB_LANES] = {0}, unused[TB_LANES] = {0};
    size_t i = 0;
    for (; i + TB_LANES <= v; i += TB_LANES) {
        FN(exp16)(unused, z + i, hi, lo, e);
        FN(dot16)(lane, e, tz + i, TB_LANES);
    }
    FN(pad16)(pad, z + i, v - i);
    FN(exp16)(unused, pad, hi, lo, e);
    FN(dot16)(lane, e, tz + i, v - i);
    return tree16(lane);
}

static void FN(xent_tan)(size_t rows, size_t v, const void *logits,
                         const int32_t *target, const double *lse,
                         const void *tlogits, double *tloss)
{
    const REAL *z = logits, *tz = tlogits;
    for (size_t r = 0; r < rows; r++, z += v, tz += v)
        if (target[r] >= 0)
            *tloss += FN(xent_mean)(v, z, lse[r], tz) - (double)tz[target[r]];
}
