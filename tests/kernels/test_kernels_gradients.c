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

TB_TEST(unary_passes_agree)
{
    for (tb_unary f = TB_UNARY_RELU; f < TB_UNARY_COUNT; f++) {
        double x[N], t[N], g[N], ty[N], gx[N] = {0};
        double lo[N], hi[N], y0[N], y1[N], want[N];
        fill(T, x, N);
        fill(T, t, N);
        fill(T, g, N);
        kern(T)->unary_tan(f, N, x, t, ty);
        kern(T)->unary_bwd(f, N, x, g, gx);
        TB_NEAR(T, kern(T)->dot(N, g, ty), kern(T)->dot(N, gx, t), 1e-13);
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
    k->norm_bwd(&c.p, stat, g, gx, gx, ggain, gbias);
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
    double g1[D] = {0}, g2[D] = {0};
    const tb_kern *k = kern(T);
    norm_fill(T, &c, TB_NORM_LAYER, true);
    k->norm_fwd(&c.p, y, stat);
    k->norm_bwd(&c.p, stat, c.tx, once, once, g1, NULL);
    k->norm_bwd(&c.p, stat, c.tx, twice, twice, g2, NULL);
    k->norm_bwd(&c.p, stat, c.tx, twice, twice, NULL, NULL);
    k->norm_bwd(&c.p, stat, c.tx, NULL, NULL, g2, NULL);
    k->scale(D, 2, g1, g1);
    TB_NEAR_N(T, g2, g1, D, 1e-14);
    double elsewhere[N], written[N];
    fill(T, written, N);
    k->norm_bwd(&c.p, stat, c.tx, once, elsewhere, g1, g2);
    k->norm_bwd(&c.p, stat, c.tx, NULL, written, g1, g2);
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
        float x[M], y[M], d[M], ones[M];
        double x2[M], y2[M], d2[M], ones2[M], got[M];
        for (size_t i = 0; i < M; i++) {
            x[i] = ((float)i - 1000) / 50;
            x2[i] = (double)x[i];
            ones[i] = 1;
            ones2[i] = 1;
        }
        tb_kern_get(T->ctx, TB_F32)->unary_fwd(f, M, x, y);
        tb_kern_get(T->ctx, TB_F32)->unary_tan(f, M, x, ones, d);
        kern(T)->unary_fwd(f, M, x2, y2);
        kern(T)->unary_tan(f, M, x2, ones2, d2);
        for (size_t i = 0; i < M; i++)
            TB_NEAR(T, (double)y[i], y2[i], 3e-7);
        for (size_t i = 0; i < M; i++)
            got[i] = (double)d[i];
        TB_NEAR_N(T, got, d2, M, 1e-6);
    }
}
