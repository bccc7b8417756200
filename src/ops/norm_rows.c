/* SPDX-License-Identifier: MIT */
/* Norms of single rows in double, in every convention of eps and variance
 * that peers use; op_norm.h has the formulas. The kernels do the usual one. */
#include "ops/op_norm.h"

/* --- conventions -------------------------------------------------------- */

void tb_norm_eps(const tb_opcall *c, tb_eps_mode *mode, double *eps)
{
    if (*mode == TB_EPS_DTYPE)
        *eps = c->k->dtype == TB_F32 ? 0x1p-23 : 0x1p-52;
    if (*mode == TB_EPS_NONE)
        *eps = 0;
    if (*mode == TB_EPS_DTYPE || *mode == TB_EPS_NONE)
        *mode = TB_EPS_INSIDE;
}

tb_norm_form tb_norm_form_of(const tb_opcall *c, tb_norm_family family)
{
    const double *attr = c->attr;
    size_t groups = (size_t)attr[TB_ATTR_NORM_GROUPS];
    groups = groups ? groups : 1;
    tb_norm_form f = {.family = family,
                      .groups = groups,
                      .rows = tb_op_rows(c) * groups,
                      .d = c->out_shape.width / groups,
                      .mode = (tb_eps_mode)attr[TB_ATTR_NORM_EPS_MODE],
                      .eps = attr[TB_ATTR_NORM_EPS],
                      .variance = (tb_variance)attr[TB_ATTR_NORM_VARIANCE]};
    bool length = family == TB_FAMILY_LENGTH;
    bool unbiased = attr[TB_ATTR_NORM_UNBIASED] != 0;
    if (f.mode == TB_EPS_DEFAULT)
        f.mode = length ? TB_EPS_CLAMP : TB_EPS_INSIDE;
    tb_norm_eps(c, &f.mode, &f.eps);
    f.n = length ? 1 : (double)f.d - (unbiased ? 1 : 0);
    f.plain = !length && !unbiased && f.mode == TB_EPS_INSIDE &&
              f.variance == TB_VARIANCE_TWOPASS;
    f.nstat = f.plain ? 2 : 3;
    f.part = tb_op_times(4, f.d / 2 * 2 + 2); /* whole lines of a cache */
    return f;
}

tb_norm_stat tb_norm_stat_get(const tb_opcall *c, const tb_norm_form *f,
                              size_t row)
{
    const double *s = (const double *)c->saved + f->nstat * row;
    double kappa = f->plain ? f->eps * s[1] * s[1] : s[2];
    return (tb_norm_stat){s[0], s[1], kappa};
}

/* From a variance v, whose root is s, to r and kappa. Comparisons are turned
 * so that a nan stays one. */
static tb_norm_stat scale_of(tb_eps_mode mode, double eps, double n, double v,
                             double s)
{
    double root = tb_sqrt(n), length = s * root;
    double least = mode == TB_EPS_CLAMP_SQUARE ? tb_sqrt(eps) : eps;
    if (mode == TB_EPS_OUTSIDE) {
        double r = 1 / (s + eps);
        return (tb_norm_stat){.r = r, .kappa = eps * r};
    }
    if (mode == TB_EPS_INSIDE) {
        /* where the square left the range of doubles, eps does not matter */
        double r = eps <= 0 || s > 1e150 ? 1 / s : 1 / tb_sqrt(v + eps);
        return (tb_norm_stat){.r = r, .kappa = eps * r * r};
    }
    if (length <= least)
        return (tb_norm_stat){.r = root / least, .kappa = 1};
    return (tb_norm_stat){.r = 1 / s, .kappa = 0};
}

tb_norm_stat tb_norm_scale(tb_eps_mode mode, double eps, double n,
                           double length)
{
    double s = length / tb_sqrt(n);
    return scale_of(mode, eps, n, s * s, s);
}

/* --- one row ------------------------------------------------------------ */

double tb_norm_gain_at(const tb_opcall *c, size_t i)
{
    if (c->nin < 2)
        return 1;
    return tb_op_get(c, c->in[1],
                     c->in_shape[1].kind == TB_SHAPE_SCALAR ? 0 : i);
}

static double bias_at(const tb_opcall *c, size_t i)
{
    return c->nin > 2 ? tb_op_get(c, c->in[2], i) : 0;
}

/* Two passes; a constant row's mean is exactly its value. */
static double mean_of(const tb_opcall *c, const void *x, size_t d)
{
    double pivot = tb_op_get(c, x, 0), sum = 0;
    for (size_t i = 0; i < d; i++)
        sum += tb_op_get(c, x, i) - pivot;
    return pivot + sum / (double)d;
}

double tb_norm_direction(const tb_opcall *c, const void *x, double mean,
                         size_t d, double *u)
{
    double big = 0, sum = 0;
    for (size_t i = 0; i < d; i++) {
        u[i] = tb_op_get(c, x, i) - mean;
        big = tb_fabs(u[i]) > big ? tb_fabs(u[i]) : big;
    }
    double unit = big > 0 ? big : 1; /* scaled first: squares may overflow */
    for (size_t i = 0; i < d; i++) {
        u[i] /= unit;
        sum += u[i] * u[i];
    }
    double length = tb_sqrt(sum);
    for (size_t i = 0; i < d && length > 0; i++)
        u[i] /= length;
    return length * unit;
}

/* E[x^2] - E[x]^2 as a plain loop in the storage type has it. */
static double one_pass_f32(const float *x, size_t d, bool centred, double *mean)
{
    float sum = 0, square = 0, n = (float)d;
    for (size_t i = 0; i < d; i++) {
        sum += x[i];
        square += x[i] * x[i];
    }
    float m = centred ? sum / n : 0, v = square / n - m * m;
    *mean = (double)m;
    return (double)v;
}

static double one_pass_f64(const double *x, size_t d, bool centred,
                           double *mean)
{
    double sum = 0, square = 0, n = (double)d;
    for (size_t i = 0; i < d; i++) {
        sum += x[i];
        square += x[i] * x[i];
    }
    *mean = centred ? sum / n : 0;
    return square / n - *mean * *mean;
}

/* The variance as computed is not |c|^2/n; what the derivative of its formula
 * takes from u is (1 - kappa) |c|^2/(n v). */
static tb_norm_stat one_pass(const tb_opcall *c, const tb_norm_form *f,
                             const void *x, double *u)
{
    bool centred = f->family == TB_FAMILY_LAYER;
    double mean;
    double v = c->k->dtype == TB_F32 ? one_pass_f32(x, f->d, centred, &mean)
                                     : one_pass_f64(x, f->d, centred, &mean);
    v *= (double)f->d / f->n;
    if (f->variance == TB_VARIANCE_ONEPASS_CLIPPED && v < 0)
        v = 0;
    double length = tb_norm_direction(c, x, mean, f->d, u);
    tb_norm_stat s = scale_of(f->mode, f->eps, f->n, v, tb_sqrt(v));
    double kept = v == 0 ? 0 : (1 - s.kappa) * (length * length / (f->n * v));
    return (tb_norm_stat){mean, s.r, 1 - kept};
}

static tb_norm_stat measure(const tb_opcall *c, const tb_norm_form *f,
                            const void *x, double *u)
{
    if (f->variance != TB_VARIANCE_TWOPASS)
        return one_pass(c, f, x, u);
    double mean = f->family == TB_FAMILY_LAYER ? mean_of(c, x, f->d) : 0;
    double length = tb_norm_direction(c, x, mean, f->d, u);
    tb_norm_stat s = tb_norm_scale(f->mode, f->eps, f->n, length);
    s.mean = mean;
    return s;
}

/* --- rows --------------------------------------------------------------- */

/* A chunk's doubles: gradients of gain and bias, then two rows. */
static double *row_u(const tb_norm_form *f, double *part)
{
    return part + 2 * f->d;
}

static double *row_h(const tb_norm_form *f, double *part)
{
    return part + 3 * f->d;
}

static double xhat(const tb_opcall *c, const void *x, size_t i, tb_norm_stat s)
{
    return (tb_op_get(c, x, i) - s.mean) * s.r;
}

void tb_norm_rows_fwd(const tb_opcall *c, const tb_norm_form *f, size_t from,
                      size_t to, double *part)
{
    for (size_t r = from; r < to; r++) {
        const void *x = tb_op_peek(c, c->in[0], r * f->d);
        void *y = tb_op_at(c, c->out, r * f->d);
        tb_norm_stat s = measure(c, f, x, row_u(f, part));
        double *stat = (double *)c->saved + f->nstat * r;
        stat[0] = s.mean, stat[1] = s.r, stat[2] = s.kappa;
        for (size_t i = 0; i < f->d; i++)
            tb_op_set(c, y, i,
                      xhat(c, x, i, s) * tb_norm_gain_at(c, i) + bias_at(c, i));
    }
}

/* h = P h: without its mean and all but kappa of its part along u */
static void project(const tb_norm_form *f, double kappa, const double *u,
                    double *h)
{
    double mean = 0, along = 0;
    for (size_t i = 0; i < f->d; i++) {
        mean += h[i];
        along += h[i] * u[i];
    }
    mean = f->family == TB_FAMILY_LAYER ? mean / (double)f->d : 0;
    along *= 1 - kappa;
    for (size_t i = 0; i < f->d; i++)
        h[i] = (h[i] - mean) - along * u[i];
}

static void bwd_params(const tb_opcall *c, const tb_norm_form *f, const void *x,
                       tb_norm_stat s, const void *gy, double *part)
{
    bool one = c->nin > 1 && c->in_shape[1].kind == TB_SHAPE_SCALAR;
    for (size_t i = 0; i < f->d; i++) {
        double g = tb_op_get(c, gy, i);
        part[one ? 0 : i] += g * xhat(c, x, i, s);
        part[f->d + i] += g;
    }
}

void tb_norm_rows_bwd(const tb_opcall *c, const tb_norm_form *f, size_t from,
                      size_t to, double *part)
{
    double *u = row_u(f, part), *h = row_h(f, part);
    for (size_t r = from; r < to; r++) {
        size_t at = r * f->d;
        const void *x = tb_op_peek(c, c->in[0], at);
        const void *gy = tb_op_peek(c, c->gout, at);
        tb_norm_stat s = tb_norm_stat_get(c, f, r);
        if (c->nin > 1)
            bwd_params(c, f, x, s, gy, part);
        if (!c->gin[0])
            continue;
        tb_norm_direction(c, x, s.mean, f->d, u);
        for (size_t i = 0; i < f->d; i++)
            h[i] = tb_op_get(c, gy, i) * tb_norm_gain_at(c, i);
        project(f, s.kappa, u, h);
        for (size_t i = 0; i < f->d; i++)
            tb_op_acc(c, c->gin[0], at + i, s.r * h[i]);
    }
}

/* An element of the tangent of gain or bias. */
static double param_tangent(const tb_opcall *c, int in, size_t i)
{
    if (c->nin <= in || !c->tin[in])
        return 0;
    bool one = c->in_shape[in].kind == TB_SHAPE_SCALAR;
    return tb_op_get(c, c->tin[in], one ? 0 : i);
}

void tb_norm_rows_tan(const tb_opcall *c, const tb_norm_form *f, size_t from,
                      size_t to, double *part)
{
    double *u = row_u(f, part), *h = row_h(f, part);
    for (size_t r = from; r < to; r++) {
        size_t at = r * f->d;
        const void *x = tb_op_peek(c, c->in[0], at);
        tb_norm_stat s = tb_norm_stat_get(c, f, r);
        tb_norm_direction(c, x, s.mean, f->d, u);
        for (size_t i = 0; i < f->d; i++)
            h[i] = c->tin[0] ? tb_op_get(c, c->tin[0], at + i) : 0;
        project(f, s.kappa, u, h);
        for (size_t i = 0; i < f->d; i++)
            tb_op_set(c, c->tout, at + i,
                      s.r * h[i] * tb_norm_gain_at(c, i) +
                          param_tangent(c, 1, i) * xhat(c, x, i, s) +
                          param_tangent(c, 2, i));
    }
}
