/* SPDX-License-Identifier: MIT */
/* How much a norm scales gradients at given rows: the exact Frobenius norm
 * and the exact largest singular value of its Jacobian, row by row.
 *
 * J = diag(g) r P,   P = I - ee' - (1 - kappa) uu':   (op_norm.h)
 *
 *   P e = 0,  P u = kappa u,  P w = w for every w orthogonal to both.
 *
 * So without a gain the singular values are 0 (LayerNorm only), r |kappa|, and
 * r for the other directions, of which there are d-2 (without e: d-1). For eps
 * inside the root kappa = eps r^2. A one-pass variance that lost digits can
 * make kappa negative, even below -1; its mean, rounded in float, leaves u
 * orthogonal to e only up to that rounding. */
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

/* In one or two dimensions nothing is left beside u, and u is known. */
static bool only_u(const row *p)
{
    return p->d <= (p->e2 > 0 ? 2u : 1u);
}

static void read_stat(const tb_opcall *c, const tb_norm_form *f, size_t r,
                      row *p)
{
    tb_norm_stat stat = tb_norm_stat_get(c, f, r);
    p->rstd = stat.r;
    p->kappa = stat.kappa;
    p->e2 = f->family == TB_FAMILY_LAYER ? 1 / (double)p->d : 0;
}

static void read_row(const tb_opcall *c, const tb_norm_form *f, size_t r,
                     double *u, row *p)
{
    tb_norm_stat stat = tb_norm_stat_get(c, f, r);
    p->u = u;
    tb_norm_direction(c, tb_op_peek(c, c->in[0], r * p->d), stat.mean, p->d, u);
    for (size_t i = 0; i < p->d && only_u(p); i++)
        u[i] = (i ? -1 : 1) * tb_sqrt(1 - p->e2);
}

/* Does x differ from its mean anywhere? */
static bool has_direction(const tb_opcall *c, const tb_norm_form *f, size_t r)
{
    const void *x = tb_op_peek(c, c->in[0], r * f->d);
    double mean = tb_norm_stat_get(c, f, r).mean;
    size_t i = 0;
    while (i < f->d && tb_op_get(c, x, i) == mean)
        i++;
    return i < f->d;
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

/* The same where all |g| are equal, which needs no u: P has d singular values
 * 1, less one for e, and kappa in place of one for u. */
static double flat_frobenius2(const row *p, bool has_u)
{
    double ones = (double)p->d - (p->e2 > 0 ? 1 : 0);
    return ones - (has_u ? 1 : 0) * (1 - p->kappa * p->kappa);
}

/* Does diag(g) P P diag(g) = D - A S A', D = diag(g^2), A = diag(g) [e, q u],
 * q^2 = |1 - kappa^2|, S = diag(1, sign(1 - kappa^2)), have an eigenvalue
 * above m? By the inertia of the block matrix [D - m, A; A', S] (Haynsworth
 * 1968) the number of them is
 * #(D > m) + #pos(S - A' (D - m)^-1 A) - #pos(S). */
static bool eigenvalue_above(const row *p, double m)
{
    double s2 = (1 - p->kappa) * (1 + p->kappa), sign = s2 < 0 ? -1 : 1;
    double s00 = 1, s01 = 0, s11 = sign;
    double q2 = tb_fabs(s2), q = tb_sqrt(q2);
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
    return count > (sign > 0 ? 2u : 1u);
}

/* Largest squared singular value of P itself, where u is not all there is. */
static double top2(const row *p)
{
    double k2 = p->kappa * p->kappa;
    return k2 > 1 ? k2 : 1;
}

/* Largest eigenvalue, by bisection; `least` and less is of no interest. */
static double largest2(const row *p, double least)
{
    double lo = least, hi = top2(p);
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

static part part_of(const tb_opcall *c, const tb_norm_form *f, size_t chunk)
{
    double *p = tb_op_part(c, chunk, f->part);
    return (part){p, p + f->d, p + 2 * f->d, p + 2 * f->d + 1};
}

/* w_i = (g_i / largest)^2; returns the largest |g|; *flat: all |g| equal */
static double weights(const tb_opcall *c, size_t d, double *w, bool *flat)
{
    double big = 0;
    for (size_t i = 0; i < d; i++) {
        w[i] = tb_fabs(tb_norm_gain_at(c, i));
        big = w[i] > big ? w[i] : big;
    }
    *flat = true;
    for (size_t i = 0; i < d; i++) {
        *flat = *flat && w[i] == big;
        w[i] = big > 0 ? w[i] / big * (w[i] / big) : 0;
    }
    return big;
}

/* Largest singular value of one row, at least `least`; f: its frobenius2. */
static double row_max(const row *p, bool flat, double g, double f, double least)
{
    double scale = g * p->rstd;
    if (scale != scale || scale == 0)
        return scale != scale ? scale : least; /* nan stays visible */
    if (only_u(p) || flat)
        f = flat && !only_u(p) ? top2(p) : f;
    else {
        double floor2 = least / scale * (least / scale);
        double top = largest2(p, floor2);
        f = top < f ? top : f; /* rounding where almost all cancels */
    }
    double s = scale * tb_sqrt(f);
    return s > least ? s : least;
}

static void gain_part(const tb_opcall *c, tb_norm_family family, size_t from,
                      size_t to, size_t chunk)
{
    tb_norm_form f = tb_norm_form_of(c, family);
    part mine = part_of(c, &f, chunk);
    row p = {.d = f.d, .w = mine.w};
    bool flat;
    double g = weights(c, f.d, mine.w, &flat);
    *mine.sum = *mine.max = 0;
    for (size_t r = from * f.groups; r < to * f.groups; r++) {
        read_stat(c, &f, r, &p);
        double scale = g * p.rstd, square;
        if (flat && !only_u(&p) && scale > 0) {
            square = flat_frobenius2(&p, has_direction(c, &f, r));
        } else {
            read_row(c, &f, r, mine.u, &p);
            square = frobenius2(&p);
        }
        *mine.sum += scale * scale * square;
        *mine.max = row_max(&p, flat, g, square, *mine.max);
    }
}

static void layer_range(const tb_opcall *c, size_t from, size_t to,
                        size_t chunk)
{
    gain_part(c, TB_FAMILY_LAYER, from, to, chunk);
}

static void rms_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    gain_part(c, TB_FAMILY_RMS, from, to, chunk);
}

static void length_range(const tb_opcall *c, size_t from, size_t to,
                         size_t chunk)
{
    gain_part(c, TB_FAMILY_LENGTH, from, to, chunk);
}

void tb_op_norm_gain(const tb_opcall *c, tb_norm_family family, double *rms,
                     double *max)
{
    static const tb_rows_fn range[] = {layer_range, rms_range, length_range};
    tb_norm_form f = tb_norm_form_of(c, family);
    size_t pieces = tb_op_row_pieces(tb_op_rows(c));
    tb_op_each_row(c, range[family]);
    double sum = 0;
    *max = 0;
    for (size_t i = 0; i < pieces; i++) {
        part p = part_of(c, &f, i);
        sum += *p.sum;
        *max = *p.max > *max || *p.max != *p.max ? *p.max : *max;
    }
    *rms = pieces ? tb_sqrt(sum / ((double)f.rows * (double)f.d)) : 0;
}

bool tb_op_norm_scale(const tb_opcall *c, tb_norm_family family, size_t i,
                      double *s, double *eps_share)
{
    tb_norm_form f = tb_norm_form_of(c, family);
    if (i >= f.rows)
        return false;
    tb_norm_stat stat = tb_norm_stat_get(c, &f, i);
    *s = 1 / stat.r;
    *eps_share = stat.kappa;
    return true;
}
