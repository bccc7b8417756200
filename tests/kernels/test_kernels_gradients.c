/* SPDX-License-Identifier: MIT */
/* Backward and tangent passes of the kernels in double: the adjoint identity
 * <g, J t> = <J' g, t>, and tangents against central differences. */
#include "tb_test.h"
#include "kernels/kernels.h"

enum { R = 5, D = 37, N = R * D }; /* not a multiple of the lanes */

static const tb_kern *kern(tb_test *T)
{
    return tb_kern_get(T->ctx, TB_F64);
}

static void fill(tb_test *T, double *x, size_t n)
{
    tb_test_fill(T, TB_F64, x, n);
}

/* x + h t */
static void along(size_t n, const double *x, double h, const double *t,
                  double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] + h * t[i];
}

/* (f(x + h t) - f(x - h t)) / 2h from the two values */
static void difference(size_t n, const double *plus, const double *minus,
                       double h, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (plus[i] - minus[i]) / (2 * h);
}

static const double h = 1e-5; /* error about h^2 + eps/h: 1e-10 */

/* --- activations -------------------------------------------------------- */

TB_TEST(unary_slopes_are_slopes)
{
    for (tb_unary f = TB_UNARY_RELU; f < TB_UNARY_COUNT; f++) {
        double x[N], t[N], y[N], d[N], alone[N], ty[N];
        double lo[N], hi[N], y0[N], y1[N], want[N];
        fill(T, x, N);
        fill(T, t, N);
        kern(T)->unary_slope(f, N, x, y, d);
        kern(T)->unary_slope(f, N, x, NULL, alone);
        TB_CHECK(T, memcmp(d, alone, sizeof d) == 0);
        kern(T)->unary_fwd(f, N, x, alone);
        TB_CHECK(T, memcmp(y, alone, sizeof y) == 0);
        kern(T)->mul(N, t, d, ty);
        along(N, x, h, t, hi);
        along(N, x, -h, t, lo);
        kern(T)->unary_fwd(f, N, hi, y1);
        kern(T)->unary_fwd(f, N, lo, y0);
        difference(N, y1, y0, h, want);
        TB_NEAR_N(T, ty, want, N, 1e-8);
    }
}

/* --- norms -------------------------------------------------------------- */

typedef struct norm_case {
    double x[N], gain[D], bias[D];
    double tx[N], tgain[D], tbias[D];
    tb_k_norm p;
} norm_case;

static void norm_fill(tb_test *T, norm_case *c, tb_norm_kind kind, bool affine)
{
    fill(T, c->x, N);
    fill(T, c->gain, D);
    fill(T, c->bias, D);
    fill(T, c->tx, N);
    fill(T, c->tgain, D);
    fill(T, c->tbias, D);
    c->p = (tb_k_norm){.kind = kind, .x = c->x, .rows = R, .d = D, .eps = 1e-2};
    if (affine) {
        c->p.gain = c->gain;
        c->p.bias = c->bias;
    }
}

/* sums of so many rows before these; they fit one span */
static tb_k_spans sums_of(size_t row, double *ggain, double *gbias)
{
    return (tb_k_spans){
        .row = row, .gain = {.part = ggain}, .bias = {.part = gbias}};
}

/* y at (x, gain, bias) + s (tx, tgain, tbias) */
static void norm_at(tb_test *T, const norm_case *c, double s, double *y)
{
    double x[N], gain[D], bias[D];
    along(N, c->x, s, c->tx, x);
    along(D, c->gain, s, c->tgain, gain);
    along(D, c->bias, s, c->tbias, bias);
    tb_k_norm p = c->p;
    p.x = x;
    p.gain = p.gain ? gain : NULL;
    p.bias = p.bias ? bias : NULL;
    kern(T)->norm_fwd(&p, y, NULL);
}

static void norm_passes(tb_test *T, tb_norm_kind kind, bool affine)
{
    norm_case c;
    double y[N], y0[N], y1[N], ty[N], want[N], g[N], stat[2 * R];
    double gx[N] = {0}, ggain[D] = {0}, gbias[D] = {0};
    const tb_kern *k = kern(T);
    norm_fill(T, &c, kind, affine);
    fill(T, g, N);
    k->norm_fwd(&c.p, y, stat);
    k->norm_tan(&c.p, stat, c.tx, affine ? c.tgain : NULL,
                affine ? c.tbias : NULL, ty);
    const tb_k_spans sums = sums_of(0, ggain, gbias);
    k->norm_bwd(&c.p, stat, g, gx, gx, &sums);
    double rhs = k->dot(N, gx, c.tx);
    if (affine)
        rhs += k->dot(D, ggain, c.tgain) + k->dot(D, gbias, c.tbias);
    TB_NEAR(T, k->dot(N, g, ty), rhs, 1e-12);
    norm_at(T, &c, h, y1);
    norm_at(T, &c, -h, y0);
    difference(N, y1, y0, h, want);
    TB_NEAR_N(T, ty, want, N, 1e-8);
}

TB_TEST(layernorm_passes_agree)
{
    norm_passes(T, TB_NORM_LAYER, true);
    norm_passes(T, TB_NORM_LAYER, false);
}

TB_TEST(rmsnorm_passes_agree)
{
    norm_passes(T, TB_NORM_RMS, true);
    norm_passes(T, TB_NORM_RMS, false);
}

/* each tangent alone; the others NULL mean zero */
TB_TEST(norm_tangents_add_up)
{
    norm_case c;
    double y[N], stat[2 * R], all[N], part[N], sum[N];
    const tb_kern *k = kern(T);
    norm_fill(T, &c, TB_NORM_LAYER, true);
    k->norm_fwd(&c.p, y, stat);
    k->norm_tan(&c.p, stat, c.tx, c.tgain, c.tbias, all);
    k->norm_tan(&c.p, stat, c.tx, NULL, NULL, sum);
    k->norm_tan(&c.p, stat, NULL, c.tgain, NULL, part);
    k->add(N, sum, part, sum);
    k->norm_tan(&c.p, stat, NULL, NULL, c.tbias, part);
    k->add(N, sum, part, sum);
    TB_NEAR_N(T, sum, all, N, 1e-14);
}

/* gradients are added to what is there, or to what stands elsewhere */
TB_TEST(norm_gradients_accumulate)
{
    norm_case c;
    double y[N], stat[2 * R], once[N] = {0}, twice[N] = {0};
    double g1[D] = {0}, g2[D] = {0}, bias[D];
    const tb_kern *k = kern(T);
    norm_fill(T, &c, TB_NORM_LAYER, true);
    k->norm_fwd(&c.p, y, stat);
    const tb_k_spans first = sums_of(0, g1, NULL), both = sums_of(0, g1, bias),
                     start = sums_of(0, g2, NULL), more = sums_of(R, g2, NULL);
    k->norm_bwd(&c.p, stat, c.tx, once, once, &first);
    k->norm_bwd(&c.p, stat, c.tx, twice, twice, &start);
    k->norm_bwd(&c.p, stat, c.tx, twice, twice, NULL);
    k->norm_bwd(&c.p, stat, c.tx, NULL, NULL, &more);
    k->scale(D, 2, g1, g1);
    TB_NEAR_N(T, g2, g1, D, 1e-14);
    double elsewhere[N], written[N];
    fill(T, written, N);
    k->norm_bwd(&c.p, stat, c.tx, once, elsewhere, &both);
    k->norm_bwd(&c.p, stat, c.tx, NULL, written, &both);
    TB_SAME(T, elsewhere, twice, sizeof twice);
    TB_SAME(T, written, once, sizeof once);
    k->scale(N, 2, once, once);
    TB_NEAR_N(T, twice, once, N, 1e-14);
}

/* --- softmax ------------------------------------------------------------ */

static void softmax_passes(tb_test *T, size_t first)
{
    enum { LD = D + 3 };
    double s[R * LD], t[R * LD], g[R * LD], p[R * LD], ty[R * LD], gs[R * LD];
    double lo[R * LD], hi[R * LD], want[R * LD];
    const tb_kern *k = kern(T);
    const double scale = 0.37;
    fill(T, s, R * LD);
    fill(T, t, R * LD);
    fill(T, g, R * LD);
    for (size_t i = 0; i < R * LD; i++) /* columns past n are not its own */
        if (i % LD >= D)
            s[i] = t[i] = g[i] = 0;
    along(R * LD, s, h, t, hi);
    along(R * LD, s, -h, t, lo);
    memcpy(p, s, sizeof p);
    memcpy(ty, t, sizeof ty);
    memcpy(gs, g, sizeof gs);
    k->softmax_fwd(R, D, LD, first, scale, p);
    k->softmax_fwd(R, D, LD, first, scale, hi);
    k->softmax_fwd(R, D, LD, first, scale, lo);
    k->softmax_bwd(R, D, LD, first, scale, p, ty); /* symmetric map */
    k->softmax_bwd(R, D, LD, first, scale, p, gs);
    TB_NEAR(T, k->dot(R * LD, g, ty), k->dot(R * LD, gs, t), 1e-13);
    difference(R * LD, hi, lo, h, want);
    TB_NEAR_N(T, ty, want, R * LD, 1e-9);
}

TB_TEST(softmax_passes_agree)
{
    const size_t first[] = {0, 1, 20, D - 1, D, D + 5};
    for (size_t i = 0; i < TB_LEN(first); i++)
        softmax_passes(T, first[i]);
}

/* --- cross-entropy ------------------------------------------------------ */

static double loss_at(tb_test *T, const double *z, double s, const double *t,
                      const int32_t *target)
{
    double moved[N], lse[R], loss = 0;
    along(N, z, s, t, moved);
    kern(T)->xent_fwd(R, D, moved, target, lse, &loss);
    return loss;
}

TB_TEST(cross_entropy_passes_agree)
{
    const int32_t target[R] = {0, D - 1, -1, 17, 17};
    double z[N], t[N], gz[N] = {0}, lse[R], loss = 0, tloss = 0;
    const tb_kern *k = kern(T);
    fill(T, z, N);
    fill(T, t, N);
    k->xent_fwd(R, D, z, target, lse, &loss);
    k->xent_tan(R, D, z, target, lse, t, &tloss);
    k->xent_bwd(R, D, z, target, lse, 3, gz, gz);
    TB_NEAR(T, k->dot(N, gz, t), 3 * tloss, 1e-13);
    for (size_t c = 0; c < D; c++)
        TB_CHECK(T, gz[2 * D + c] == 0); /* the ignored row */
    double plus = loss_at(T, z, h, t, target);
    double minus = loss_at(T, z, -h, t, target);
    TB_NEAR(T, tloss, (plus - minus) / (2 * h), 1e-8);
}

/* --- float against double ----------------------------------------------- */

/* Every activation and its derivative in float, over the whole useful range;
 * the bound is that of the formula, some ulps of the larger of 1 and |f|. */
TB_TEST(float_activations_follow_double)
{
    enum { M = 2001 };
    for (tb_unary f = TB_UNARY_RELU; f < TB_UNARY_COUNT; f++) {
        float x[M], y[M], d[M];
        double x2[M], y2[M], d2[M], got[M];
        for (size_t i = 0; i < M; i++) {
            x[i] = ((float)i - 1000) / 50;
            x2[i] = (double)x[i];
        }
        tb_kern_get(T->ctx, TB_F32)->unary_slope(f, M, x, y, d);
        kern(T)->unary_slope(f, M, x2, y2, d2);
        for (size_t i = 0; i < M; i++)
            TB_NEAR(T, (double)y[i], y2[i], 3e-7);
        for (size_t i = 0; i < M; i++)
            got[i] = (double)d[i];
        TB_NEAR_N(T, got, d2, M, 1e-6);
    }
}

/* --- norms of floats ------------------------------------------------------ */

enum { ROWS = 40, WIDE = 768, ALL = ROWS * WIDE };

/* A norm's backward pass over floats, and its inputs as doubles. */
typedef struct float_norm {
    size_t d;
    tb_norm_kind kind;
    double stat[2 * ROWS];
    float x[ALL], g[ALL], gain[WIDE], gx[ALL];
    float part[2][WIDE], joined[2][WIDE];
    double full[2][WIDE], x2[ALL], g2[ALL], gain2[WIDE], want[ALL];
    double want_part[2][WIDE], want_full[2][WIDE];
} float_norm;

/* Rows like those of LN-num: about 0, off by as much as they spread, far off, a
 * constant, very small. */
static double element(tb_test *T, size_t row)
{
    static const double base[] = {0, 0.7, -100, 40000, 1234, 0};
    static const double spread[] = {1, 1, 1, 1, 0, 1e-30};
    size_t kind = row % TB_LEN(base);
    return base[kind] + spread[kind] * tb_test_normal(T);
}

static void float_norm_fill(tb_test *T, float_norm *c)
{
    for (size_t i = 0; i < ROWS * c->d; i++) {
        c->x[i] = (float)element(T, i / c->d);
        c->g[i] = (float)(tb_test_normal(T) + (i / c->d % 4 == 1 ? 3 : 0));
        c->x2[i] = (double)c->x[i];
        c->g2[i] = (double)c->g[i];
    }
    for (size_t i = 0; i < c->d; i++) {
        c->gain[i] = (float)(1 + 0.3 * tb_test_normal(T));
        c->gain2[i] = (double)c->gain[i];
    }
}

static tb_k_norm float_norm_of(const float_norm *c, size_t from, size_t to)
{
    return (tb_k_norm){.kind = c->kind,
                       .x = c->x + from * c->d,
                       .gain = c->gain,
                       .rows = to - from,
                       .d = c->d,
                       .eps = 1e-5};
}

/* In calls of `step` rows. */
static void float_norm_run(tb_test *T, float_norm *c, size_t step)
{
    const tb_kern *k = tb_kern_get(T->ctx, TB_F32);
    const tb_k_norm all = float_norm_of(c, 0, ROWS);
    tb_k_spans s = {.gain = {c->part[0], c->full[0]},
                    .bias = {c->part[1], c->full[1]}};
    k->norm_fwd(&all, c->gx, c->stat);
    for (size_t to; s.row < ROWS; s.row = to) {
        to = s.row + step < ROWS ? s.row + step : ROWS;
        const tb_k_norm p = float_norm_of(c, s.row, to);
        const size_t at = s.row * c->d;
        k->norm_bwd(&p, c->stat + 2 * s.row, c->g + at, NULL, c->gx + at, &s);
    }
    memset(c->joined, 0, sizeof c->joined);
    k->span_join(c->d, 1, &s.gain, c->joined[0]);
    k->span_join(c->d, 1, &s.bias, c->joined[1]);
}

/* Doubles about the same means and deviations. */
static void float_norm_want(tb_test *T, float_norm *c)
{
    tb_k_norm p = float_norm_of(c, 0, ROWS);
    tb_k_spans s = {.gain = {c->want_part[0], c->want_full[0]},
                    .bias = {c->want_part[1], c->want_full[1]}};
    p.x = c->x2;
    p.gain = c->gain2;
    kern(T)->norm_bwd(&p, c->stat, c->g2, NULL, c->want, &s);
    for (size_t i = 0; i < c->d; i++) {
        c->want_part[0][i] += c->want_full[0][i];
        c->want_part[1][i] += c->want_full[1][i];
    }
}

/* The bounds of kern_norm_bwd.h and tb_k_span; cols: of gain, bias. */
static void float_norm_check(tb_test *T, const float_norm *c)
{
    const double u = 0x1p-24, d = (double)c->d;
    double cols[2][WIDE] = {{0}};
    for (size_t r = 0; r < ROWS; r++) {
        double mean = c->stat[2 * r], rstd = c->stat[2 * r + 1], m = 0, n = 0;
        bool near = tb_fabs(mean) * rstd <= 1;
        for (size_t i = 0; i < c->d; i++) {
            double x = c->x2[r * c->d + i], g = tb_fabs(c->g2[r * c->d + i]);
            double xhat = tb_fabs(x - mean) * rstd;
            m += g * tb_fabs(c->gain2[i]) / d;
            n += g * tb_fabs(c->gain2[i]) * xhat / d;
            cols[0][i] +=
                20 * u * g * (xhat + (near ? tb_fabs(mean * rstd) : 0));
            cols[1][i] += 15 * u * g;
        }
        for (size_t i = 0; i < c->d; i++) {
            size_t at = r * c->d + i;
            double xhat = tb_fabs(c->x2[at] - mean) * rstd;
            double gh = tb_fabs(c->g2[at] * c->gain2[i]);
            double far = near ? tb_fabs(c->x2[at]) + tb_fabs(mean) : 0;
            far = near ? far * rstd : xhat;
            TB_NEAR(T, (double)c->gx[at], c->want[at],
                    20 * u * rstd * (gh + m * (1 + xhat) + n * far));
        }
    }
    for (size_t j = 0; j < 2; j++)
        for (size_t i = 0; i < c->d; i++)
            TB_NEAR(T, (double)c->joined[j][i], c->want_part[j][i],
                    cols[j][i] + u * tb_fabs(c->want_part[j][i]));
}

static const size_t float_norm_widths[] = {1, 4, 37, 128, 131, WIDE};

TB_TEST(norm_gradients_of_floats_follow_double)
{
    static float_norm c;
    for (size_t w = 0; w < 2 * TB_LEN(float_norm_widths); w++) {
        c.d = float_norm_widths[w / 2];
        c.kind = w % 2 ? TB_NORM_RMS : TB_NORM_LAYER;
        float_norm_fill(T, &c);
        float_norm_run(T, &c, ROWS);
        float_norm_want(T, &c);
        float_norm_check(T, &c);
    }
}

/* Nor does it show who a row's neighbours are. */
TB_TEST(norm_gradients_do_not_show_where_a_call_ends)
{
    static float_norm c, whole;
    for (size_t w = 0; w < TB_LEN(float_norm_widths); w++)
        for (size_t step = 1; step < ROWS; step += 3) {
            c.d = float_norm_widths[w];
            float_norm_fill(T, &c);
            whole = c;
            float_norm_run(T, &whole, ROWS);
            float_norm_run(T, &c, step);
            TB_SAME(T, c.gx, whole.gx, ROWS * c.d * sizeof *c.gx);
            TB_SAME(T, c.joined, whole.joined, sizeof c.joined);
        }
}
