/* SPDX-License-Identifier: MIT */
/* How much a norm scales gradients at given rows: the exact Frobenius norm
 * and the exact largest singular value of its Jacobian, row by row.
 *
 * Per row, with s = sqrt(var + eps), u the unit vector along x - mean, e the
 * unit vector of ones (absent for RMS) and kappa = eps / s^2:
 *
 *   J = diag(g) (1/s) P,   P = I - ee' - (1 - kappa) uu':
 *   P e = 0,  P u = kappa u,  P w = w for every w orthogonal to both.
 *
 * So without a gain the singular values are 0 (LayerNorm only), eps/s^3, and
 * 1/s for the other directions, of which there are d-2 (RMS: d-1). */
#include "ops/op_norm.h"

/* One row, in double. */
typedef struct row {
    size_t d;
    double rstd, kappa;
    double e2;       /* square of an element of e: 1/d, or 0 for RMS */
    const double *u; /* [d] unit, or all 0 where the row has no direction */
    const double *w; /* [d] g_i^2, scaled to largest 1 */
} row;

/* --- reading a row ------------------------------------------------------ */

/* u = (x - mean) / |x - mean|; scaled first, as squares may overflow */
static void direction(const tb_opcall *c, const void *x, double mean, size_t d,
                      double *u)
{
    double big = 0, sum = 0;
    for (size_t i = 0; i < d; i++) {
        u[i] = tb_op_get(c, x, i) - mean;
        big = tb_fabs(u[i]) > big ? tb_fabs(u[i]) : big;
    }
    for (size_t i = 0; i < d && big > 0; i++) {
        u[i] /= big;
        sum += u[i] * u[i];
    }
    double length = tb_sqrt(sum);
    for (size_t i = 0; i < d && big > 0; i++)
        u[i] /= length;
}

/* In one or two dimensions nothing is left beside u, and u is known. */
static bool only_u(const row *p)
{
    return p->d <= (p->e2 > 0 ? 2u : 1u);
}

static void read_row(const tb_opcall *c, tb_norm_kind kind, size_t r, double *u,
                     row *p)
{
    const double *stat = (const double *)c->saved + 2 * r;
    p->rstd = stat[1];
    p->kappa = c->attr[TB_ATTR_NORM_EPS] * p->rstd * p->rstd;
    p->e2 = kind == TB_NORM_RMS ? 0 : 1 / (double)p->d;
    p->u = u;
    direction(c, tb_op_peek(c, c->in[0], r * p->d), stat[0], p->d, u);
    for (size_t i = 0; i < p->d && only_u(p); i++)
        u[i] = (i ? -1 : 1) * tb_sqrt(1 - p->e2);
}

/* --- the two measures, both for s = 1 and largest gain 1 ---------------- */

/* |diag(g) P|_F^2 = sum_i g_i^2 |P_i|^2. Row i of P has the squared length of
 * unit vector i without its parts along e and u, plus kappa^2 u_i^2. */
static double frobenius2(const row *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->d; i++) {
        double u2 = p->u[i] * p->u[i];
        double rest = only_u(p) ? 0 : 1 - p->e2 - u2;
        sum += p->w[i] * ((rest > 0 ? rest : 0) + p->kappa * p->kappa * u2);
    }
    return sum;
}

/* Does diag(g) P P diag(g) = D - A A', D = diag(g^2), A = diag(g) [e, q u],
 * q^2 = 1 - kappa^2, have an eigenvalue above m? By the inertia of the block
 * matrix [D - m, A; A', I] (Haynsworth 1968) the number of them is
 * #(D > m) + #pos(I - A' (D - m)^-1 A) - 2. */
static bool eigenvalue_above(const row *p, double m)
{
    double s00 = 1, s01 = 0, s11 = 1;
    double q2 = (1 - p->kappa) * (1 + p->kappa), q = tb_sqrt(q2);
    double e = tb_sqrt(p->e2);
    size_t count = 0;
    for (size_t i = 0; i < p->d; i++) {
        double gap = p->w[i] - m;
        count += gap > 0;
        double t = p->w[i] / (gap != 0 ? gap : -1e-290);
        s00 -= t * p->e2;
        s01 -= t * e * q * p->u[i];
        s11 -= t * q2 * p->u[i] * p->u[i];
    }
    count += s00 > 0;
    count += s11 - s01 * (s01 / (s00 != 0 ? s00 : 1e-290)) > 0;
    return count > 2;
}

/* Largest eigenvalue, by bisection; `least` and less is of no interest. */
static double largest2(const row *p, double least)
{
    double lo = least, hi = 1;
    if (!(lo < hi) || !eigenvalue_above(p, lo))
        return least;
    for (int i = 0; i < 60; i++) {
        double m = lo + (hi - lo) / 2;
        if (eigenvalue_above(p, m))
            lo = m;
        else
            hi = m;
    }
    return lo + (hi - lo) / 2;
}

/* --- all rows ----------------------------------------------------------- */

/* Layout of a chunk's doubles: u [d], w [d], then its two results. */
typedef struct part {
    double *u, *w, *sum, *max;
} part;

static part part_of(const tb_opcall *c, size_t chunk)
{
    size_t d = c->out_shape.width;
    double *p = tb_op_part(c, chunk, 2 * d + 2);
    return (part){p, p + d, p + 2 * d, p + 2 * d + 1};
}

/* w_i = (g_i / largest)^2; returns the largest |g|; *flat: all |g| equal */
static double weights(const tb_opcall *c, size_t d, double *w, bool *flat)
{
    const void *g = tb_op_norm_gain_vector(c);
    double big = g ? 0 : 1;
    for (size_t i = 0; i < d; i++) {
        w[i] = g ? tb_fabs(tb_op_get(c, g, i)) : 1;
        big = w[i] > big ? w[i] : big;
    }
    *flat = true;
    for (size_t i = 0; i < d; i++) {
        *flat = *flat && w[i] == big;
        w[i] = big > 0 ? w[i] / big * (w[i] / big) : 0;
    }
    return big;
}

/* Largest singular value of one row, at least `least`. */
static double row_max(const row *p, bool flat, double g, double least)
{
    double scale = g * p->rstd, f = frobenius2(p);
    if (scale != scale || scale == 0)
        return scale != scale ? scale : least; /* nan stays visible */
    if (only_u(p) || flat)
        f = flat && !only_u(p) ? 1 : f;
    else {
        double floor2 = least / scale * (least / scale);
        double top = largest2(p, floor2);
        f = top < f ? top : f; /* rounding where almost all cancels */
    }
    double s = scale * tb_sqrt(f);
    return s > least ? s : least;
}

static void gain_part(const tb_opcall *c, tb_norm_kind kind, size_t from,
                      size_t to, size_t chunk)
{
    size_t d = c->out_shape.width;
    part mine = part_of(c, chunk);
    row p = {.d = d, .w = mine.w};
    bool flat;
    double g = weights(c, d, mine.w, &flat);
    *mine.sum = *mine.max = 0;
    for (size_t r = from; r < to; r++) {
        read_row(c, kind, r, mine.u, &p);
        double scale = g * p.rstd;
        *mine.sum += scale * scale * frobenius2(&p);
        *mine.max = row_max(&p, flat, g, *mine.max);
    }
}

static void layer_range(const tb_opcall *c, size_t from, size_t to,
                        size_t chunk)
{
    gain_part(c, TB_NORM_LAYER, from, to, chunk);
}

static void rms_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    gain_part(c, TB_NORM_RMS, from, to, chunk);
}

void tb_op_norm_gain(const tb_opcall *c, tb_norm_kind kind, double *rms,
                     double *max)
{
    size_t rows = tb_op_rows(c), d = c->out_shape.width;
    size_t pieces = tb_op_pieces(rows, d);
    tb_op_each(c, rows, d, kind == TB_NORM_RMS ? rms_range : layer_range);
    double sum = 0;
    *max = 0;
    for (size_t i = 0; i < pieces; i++) {
        part p = part_of(c, i);
        sum += *p.sum;
        *max = *p.max > *max || *p.max != *p.max ? *p.max : *max;
    }
    *rms = pieces ? tb_sqrt(sum / ((double)rows * (double)d)) : 0;
}
