/* SPDX-License-Identifier: MIT */
/* Right results for hard inputs, at the level of the kernels. The numbers
 * C001... come from bug reports against other systems; each was computed
 * independently of this code. */
#include "tb_test.h"
#include "kernels/kernels.h"

static const tb_kern *best(tb_test *T, tb_dtype t)
{
    return tb_kern_get(T->ctx, t);
}

/* y of one f32 row without gain and bias */
static void norm_f32(tb_test *T, const float *x, size_t d, double eps, float *y,
                     double *stat)
{
    tb_k_norm p = {.x = x, .rows = 1, .d = d, .eps = eps};
    best(T, TB_F32)->norm_fwd(&p, y, stat);
}

static void near_f32(tb_test *T, const float *got, const double *want, size_t n,
                     double tol)
{
    double g[16];
    for (size_t i = 0; i < n; i++)
        g[i] = (double)got[i];
    TB_NEAR_N(T, g, want, n, tol);
}

/* --- norm, forward ------------------------------------------------------ */

static const double ramp_y[] = {-1.3416354, -0.4472118, 0.4472118, 1.3416354};

/* C001: eps inside the root, variance divides by d */
TB_TEST(norm_uses_population_variance_and_eps_inside)
{
    const float one_hot[] = {1, 0, 0, 0}, ramp[] = {0, 1, 2, 3};
    const double y[] = {1.7320046, -0.5773349, -0.5773349, -0.5773349};
    float got[4];
    norm_f32(T, one_hot, 4, 1e-5, got, NULL);
    near_f32(T, got, y, 4, 1e-6);
    norm_f32(T, ramp, 4, 1e-5, got, NULL);
    near_f32(T, got, ramp_y, 4, 1e-6);
}

/* C003: a constant row gives exactly the bias for any eps > 0; eps = 0 gives
 * NaN, which the caller reports */
TB_TEST(norm_of_a_constant_row_is_the_bias)
{
    const float x[] = {5, 5, 5, 5}, gain[] = {1, 1, 1, 1};
    const float bias[] = {0.5f, -0.5f, 0, 2};
    const double eps[] = {1e-3, 1e-5, 1e-12};
    float y[4];
    tb_k_norm p = {.x = x, .gain = gain, .bias = bias, .rows = 1, .d = 4};
    for (size_t i = 0; i < TB_LEN(eps); i++) {
        p.eps = eps[i];
        best(T, TB_F32)->norm_fwd(&p, y, NULL);
        TB_SAME(T, y, bias, sizeof y);
    }
    p.eps = 0;
    best(T, TB_F32)->norm_fwd(&p, y, NULL);
    TB_CHECK(T, best(T, TB_F32)->nonfinite(4, y) == 4);
}

static void constant_row(tb_test *T, tb_dtype t, double c, size_t d, double eps)
{
    double x[300], y[300];
    for (size_t i = 0; i < d; i++)
        tb_test_set(t, x, i, c);
    tb_k_norm p = {.x = x, .rows = 1, .d = d, .eps = eps};
    best(T, t)->norm_fwd(&p, y, NULL);
    for (size_t i = 0; i < d; i++)
        TB_CHECK(T, tb_test_get(t, y, i) == 0);
}

/* C004 */
TB_TEST(norm_of_a_constant_row_is_exactly_zero)
{
    for (tb_dtype t = TB_F32; t <= TB_F64; t++) {
        constant_row(T, t, 1234, 256, 1e-5);
        constant_row(T, t, 14, 2, 1e-6);
        constant_row(T, t, 3.3, 8, 1e-5);
        for (size_t d = 1; d < 300; d++) /* d c need not be exact */
            constant_row(T, t, 0.1, d, 1e-5);
    }
}

/* C005 */
TB_TEST(norm_of_a_row_far_from_zero)
{
    const float base[] = {0, 2000, 40000, 80000};
    for (size_t i = 0; i < TB_LEN(base); i++) {
        float x[4], y[4];
        double stat[2], b = (double)base[i];
        for (int j = 0; j < 4; j++)
            x[j] = base[i] + (float)j;
        norm_f32(T, x, 4, 1e-5, y, stat);
        near_f32(T, y, ramp_y, 4, 1e-6);
        TB_CHECK(T, stat[0] == b + 1.5);
        TB_NEAR(T, 1 / (stat[1] * stat[1]) - 1e-5, 1.25, 1e-12);
    }
}

/* C007 */
TB_TEST(norm_of_a_wide_row_with_small_deviation)
{
    enum { D = 32768 };
    float *x = tb_test_guarded(T, D * sizeof *x);
    float *y = tb_test_guarded(T, D * sizeof *y);
    double stat[2];
    for (size_t i = 0; i < D; i++)
        x[i] = i % 2 ? 99.99f : 100.01f;
    norm_f32(T, x, D, 1e-5, y, stat);
    TB_NEAR(T, stat[0], 100, 1e-6);
    TB_NEAR(T, 1e4 * (1 / (stat[1] * stat[1]) - 1e-5), 1.0004273, 1e-6);
    TB_NEAR(T, (double)y[0], 0.9534811, 1e-6);
    TB_NEAR(T, (double)y[D - 1], -0.9534811, 1e-6);
}

/* C011 */
TB_TEST(norm_of_huge_and_tiny_rows)
{
    const float huge[] = {1e25f, -1e25f, 1e25f, -1e25f};
    const float tiny[] = {1e-30f, -1e-30f, 1e-30f, -1e-30f};
    const double one[] = {1, -1, 1, -1};
    float y[4];
    norm_f32(T, huge, 4, 1e-5, y, NULL);
    near_f32(T, y, one, 4, 1e-6);
    norm_f32(T, tiny, 4, 1e-5, y, NULL);
    for (int i = 0; i < 4; i++)
        TB_NEAR(T, (double)y[i] * 1e28, 3.1622777 * one[i], 1e-6);
}

/* near the ends of the types, where rstd leaves the type or squares overflow */
TB_TEST(norm_at_the_ends_of_the_type)
{
    const double size[2][3] = {{3e38, 1e-37, 1e-42}, {8e307, 1e-200, 1e-300}};
    const double one[] = {1, -1, 1, -1};
    for (tb_dtype t = TB_F32; t <= TB_F64; t++)
        for (size_t s = 0; s < 3; s++) {
            double x[4], y[4], got[4];
            for (size_t i = 0; i < 4; i++)
                tb_test_set(t, x, i, size[t][s] * one[i]);
            tb_k_norm p = {.x = x, .rows = 1, .d = 4, .eps = 0};
            best(T, t)->norm_fwd(&p, y, NULL);
            for (size_t i = 0; i < 4; i++)
                got[i] = tb_test_get(t, y, i);
            TB_NEAR_N(T, got, one, 4, 1e-6);
        }
}

/* C012 */
TB_TEST(nan_and_inf_stay_visible_and_in_their_row)
{
    const float nan = __builtin_nanf(""), inf = __builtin_inff();
    const float x[] = {1, 2, 3, 4, 1, nan, 3, 4, 1, inf, 3, 4, 4, 3, 2, 1};
    float y[16], z[16];
    const tb_kern *k = best(T, TB_F32);
    tb_k_norm p = {.x = x, .rows = 4, .d = 4, .eps = 1e-5};
    k->norm_fwd(&p, y, NULL);
    for (int pass = 0; pass < 3; pass++) {
        const float *now = pass == 0 ? y : z;
        TB_CHECK(T, k->nonfinite(4, now) == 0);
        TB_CHECK(T, k->nonfinite(8, now + 4) == 8);
        TB_CHECK(T, k->nonfinite(4, now + 12) == 0);
        k->unary_fwd(pass == 0 ? TB_UNARY_RELU : TB_UNARY_GELU, 16, y, z);
    }
}

/* C013 */
TB_TEST(norm_of_width_one)
{
    const float x = 1e6f, gain = 123, bias = 3, g = 2;
    float y, gx = 0, ggain = 0, gbias = 0;
    double stat[2];
    tb_k_norm p = {
        .x = &x, .gain = &gain, .bias = &bias, .rows = 1, .d = 1, .eps = 1e-5};
    best(T, TB_F32)->norm_fwd(&p, &y, stat);
    best(T, TB_F32)->norm_bwd(
        &p, stat, &g, &gx, &gx,
        &(tb_k_spans){.gain = {.part = &ggain}, .bias = {.part = &gbias}});
    TB_CHECK(T, y == 3 && gx == 0 && ggain == 0 && gbias == 2);

    const double x2 = -3, gain2 = 1e10, bias2 = -1;
    double y2;
    tb_k_norm p2 = {.x = &x2,
                    .gain = &gain2,
                    .bias = &bias2,
                    .rows = 1,
                    .d = 1,
                    .eps = 0.1};
    best(T, TB_F64)->norm_fwd(&p2, &y2, NULL);
    TB_CHECK(T, y2 == -1);
}

/* C016: a running float sum has the wrong sign here */
TB_TEST(norm_of_a_hundred_thousand)
{
    enum { D = 100000 };
    float *x = tb_test_guarded(T, D * sizeof *x);
    for (size_t i = 0; i < D; i++)
        x[i] = i + 1 < D ? 0.1f : 0.2f;
    norm_f32(T, x, D, 1e-5, x, NULL);
    TB_NEAR(T, (double)x[0] * 1e4, -3.1465841, 1e-6);
    TB_NEAR(T, (double)x[D - 1], 31.465526, 1e-6);
}

/* mean and rstd of rows anywhere, the first element far off too; rows whose
 * mean is within their deviation are summed in float, 16 at a time */
TB_TEST(norm_statistics_are_those_of_two_passes)
{
    enum { D = 203 };
    const double base[] = {0, 0.9, 1, 2, 1000, 1e6}, first[] = {0, 1e3, -1e7};
    for (size_t b = 0; b < TB_LEN(base); b++)
        for (size_t f = 0; f < TB_LEN(first); f++) {
            float x[D], y[D];
            double stat[2], mean = 0, var = 0;
            for (size_t i = 0; i < D; i++)
                x[i] = (float)(base[b] + tb_test_normal(T));
            x[0] += (float)first[f];
            for (size_t i = 0; i < D; i++)
                mean += (double)x[i]; /* exact but for the odd last bit */
            mean /= D;
            for (size_t i = 0; i < D; i++)
                var += ((double)x[i] - mean) * ((double)x[i] - mean) / D;
            norm_f32(T, x, D, 1e-5, y, stat);
            bool near = mean * mean < 1.01 * var;
            /* the mean is x[0] plus a mean difference, each rounded once */
            double size = tb_fabs((double)x[0]) + 2 * tb_fabs(mean);
            double limit = near ? 5 * 0x1p-23 * tb_sqrt(var) : 0x1p-52 * size;
            TB_CHECK(T, tb_fabs(stat[0] - mean) <= limit);
            TB_NEAR(T, stat[1] * tb_sqrt(var + 1e-5), 1,
                    near ? 10 * 0x1p-23 : 1e-9);
        }
}

/* Rows of every kind: usual ones, a constant one, one far from 0, a huge one,
 * a tiny one, one with a nan. */
enum { SUM_ROWS = 9, SUM_D = 301 };

static void sum_inputs(tb_test *T, float *x, float *r)
{
    for (size_t i = 0; i < SUM_ROWS * SUM_D; i++) {
        x[i] = (float)tb_test_normal(T);
        r[i] = (float)tb_test_normal(T);
    }
    for (size_t i = 0; i < SUM_D; i++) {
        x[SUM_D + i] = 3, r[SUM_D + i] = 4;
        x[3 * SUM_D + i] += 5000;
        x[4 * SUM_D + i] *= 1e25f;
        x[6 * SUM_D + i] *= 1e-30f, r[6 * SUM_D + i] *= 1e-30f;
    }
    x[7 * SUM_D + 5] = __builtin_nanf("");
}

static void sum_case(tb_test *T, double cx, double cr, bool stream, bool inside)
{
    enum { N = SUM_ROWS * SUM_D };
    static _Alignas(64) float x[N], r[N], gain[SUM_D], bias[SUM_D];
    static _Alignas(64) float sum[N], y[N], got_sum[N], got[N];
    double stat[2 * SUM_ROWS], got_stat[2 * SUM_ROWS];
    const tb_kern *k = best(T, TB_F32);
    sum_inputs(T, x, r);
    for (size_t i = 0; i < SUM_D; i++)
        gain[i] = (float)tb_test_normal(T), bias[i] = 0.1f * gain[i];
    tb_k_norm p = {.x = sum,
                   .gain = gain,
                   .bias = bias,
                   .rows = SUM_ROWS,
                   .d = stream ? 256 : SUM_D,
                   .eps = 1e-5,
                   .stream = stream,
                   .far = inside};
    size_t n = p.rows * p.d;
    k->scale(n, cx, x, sum);
    k->axpy(n, cr, r, sum);
    k->norm_fwd(&p, y, stat);
    p.x = x;
    const tb_k_sum a = {
        .r = r, .cx = cx, .cr = cr, .sum = inside ? x : got_sum};
    k->addnorm_fwd(&p, &a, got, got_stat);
    TB_SAME(T, a.sum, sum, n * sizeof *sum);
    TB_SAME(T, got, y, n * sizeof *y);
    TB_SAME(T, got_stat, stat, sizeof stat);
}

TB_TEST(norm_of_a_sum_is_sum_then_norm)
{
    sum_case(T, 1, 1, false, false);
    sum_case(T, 1, 1, false, true);
    sum_case(T, 0.75, -2, false, false);
    sum_case(T, 1, 1, true, false);
    sum_case(T, 1, 1, true, true);
    sum_case(T, 1, 0.5, true, true);
}

/* --- norm, backward ----------------------------------------------------- */

static void dx_f32(tb_test *T, const float *x, const float *g, float *gx)
{
    double stat[2];
    float y[4];
    tb_k_norm p = {.x = x, .rows = 1, .d = 4, .eps = 1e-5};
    best(T, TB_F32)->norm_fwd(&p, y, stat);
    memset(gx, 0, 4 * sizeof *gx);
    best(T, TB_F32)->norm_bwd(&p, stat, g, gx, gx, NULL);
}

/* C019: finite, and 1/sqrt(eps) = 316 times the upstream */
TB_TEST(norm_gradient_at_a_constant_row)
{
    const float five[] = {5, 5, 5, 5}, zero[4] = {0}, g[] = {1, 0, 0, 0};
    const double want[] = {237.17082, -79.056942, -79.056942, -79.056942};
    float gx[4];
    dx_f32(T, five, g, gx);
    near_f32(T, gx, want, 4, 1e-7);
    dx_f32(T, zero, g, gx);
    near_f32(T, gx, want, 4, 1e-7);
    const float same[] = {1, 1, 1, 1}; /* cos(0): the sine loss */
    dx_f32(T, same, same, gx);
    TB_SAME(T, gx, zero, sizeof gx);
}

/* C020: the two invariants need no reference */
TB_TEST(norm_gradient_subtracts_the_mean_once)
{
    const double x[] = {1, 2, 3, 4}, g[] = {1, 0, 0, 0};
    const double want[] = {0.2683303, -0.3577684, -0.0894434, 0.1788815};
    double stat[2], xhat[4], gx[4] = {0};
    const tb_kern *k = best(T, TB_F64);
    tb_k_norm p = {.x = x, .rows = 1, .d = 4, .eps = 1e-5};
    k->norm_fwd(&p, xhat, stat);
    k->norm_bwd(&p, stat, g, gx, gx, NULL);
    TB_NEAR_N(T, gx, want, 4, 1e-7);
    TB_NEAR(T, k->sum(4, gx), 0, 1e-12);
    double rest = k->dot(4, g, xhat) * 1e-5 / 1.25001 * stat[1];
    TB_NEAR(T, k->dot(4, gx, xhat) * 1e6, rest * 1e6, 1e-6);
    TB_NEAR(T, k->dot(4, gx, xhat) * 1e6, -9.6, 1e-2);
}

/* C023: nothing is rebuilt by dividing by gain */
TB_TEST(norm_gradient_with_a_zero_gain)
{
    const double x[] = {1, 2, 3, 4}, g[] = {1, 1, 1, 1}, zero[4] = {0};
    const double gain[] = {1, 0, 1, 1};
    const double want[] = {0.3577684, -0.6260969, 0.1788851, 0.0894434};
    double stat[2], y[4], gx[4] = {0}, ggain[4] = {0}, gbias[4] = {0};
    const tb_kern *k = best(T, TB_F64);
    tb_k_norm p = {.x = x, .gain = gain, .rows = 1, .d = 4, .eps = 1e-5};
    k->norm_fwd(&p, y, stat);
    k->norm_bwd(
        &p, stat, g, gx, gx,
        &(tb_k_spans){.gain = {.part = ggain}, .bias = {.part = gbias}});
    TB_NEAR_N(T, gx, want, 4, 1e-7);
    TB_NEAR_N(T, ggain, ramp_y, 4, 1e-7);
    TB_SAME(T, gbias, g, sizeof g);
    p.gain = zero;
    memset(gx, 0, sizeof gx);
    memset(ggain, 0, sizeof ggain);
    k->norm_bwd(&p, stat, g, gx, gx, &(tb_k_spans){.gain = {.part = ggain}});
    TB_SAME(T, gx, zero, sizeof gx);
    TB_NEAR_N(T, ggain, ramp_y, 4, 1e-7);
}

/* --- the rest ----------------------------------------------------------- */

TB_TEST(softmax_hides_the_future)
{
    double s[3 * 5] = {1, 2, 3, 4, 9, 1, 2, 3, 4, 9, 800, 802, 801, 4, 9};
    const double e = 2.718281828459045, sum = 1 + e + e * e;
    const double want[] = {1,           0,           0,       0, 9,
                           1 / (1 + e), e / (1 + e), 0,       0, 9,
                           1 / sum,     e * e / sum, e / sum, 0, 9};
    best(T, TB_F64)->softmax_fwd(3, 4, 5, 1, 1, s); /* column 4 is padding */
    TB_NEAR_N(T, s, want, 15, 1e-15);
}

TB_TEST(softmax_without_a_visible_column_is_zero)
{
    float s[6] = {1, 2, 3, 4, 5, 6}, zero[3] = {0};
    best(T, TB_F32)->softmax_fwd(2, 3, 3, 0, 1, s);
    TB_SAME(T, s, zero, sizeof zero);
    TB_CHECK(T, s[3] == 1 && s[4] == 0 && s[5] == 0);
    float gp[3] = {1, 2, 3};
    best(T, TB_F32)->softmax_bwd(1, 3, 3, 0, 1, zero, gp);
    TB_SAME(T, gp, zero, sizeof zero);
}

TB_TEST(cross_entropy_of_huge_logits)
{
    const float z[] = {1e4f, -1e4f, 0, 1e4f};
    const int32_t target[] = {0, -1};
    double lse[2], loss = 0;
    best(T, TB_F32)->xent_fwd(2, 2, z, target, lse, &loss);
    TB_NEAR(T, loss, 0, 0);
    const int32_t wrong[] = {1, 0};
    loss = 0;
    best(T, TB_F32)->xent_fwd(2, 2, z, wrong, lse, &loss);
    TB_NEAR(T, loss, 30000, 1e-12);
}

TB_TEST(norm2_neither_overflows_nor_vanishes)
{
    const double big[] = {3e200, 4e200}, small[] = {3e-200, 4e-200};
    const double bad[] = {1, __builtin_inf()}, nan[] = {1, __builtin_nan("")};
    const tb_kern *k = best(T, TB_F64);
    TB_NEAR(T, k->norm2(2, big) / 5e200, 1, 1e-15);
    TB_NEAR(T, k->norm2(2, small) / 5e-200, 1, 1e-15);
    TB_CHECK(T, k->norm2(2, bad) == __builtin_inf());
    TB_NEAR(T, k->norm2(2, nan), __builtin_nan(""), 0);
    TB_CHECK(T, k->norm2(0, big) == 0);
}

TB_TEST(activations_at_their_ends)
{
    for (tb_unary f = TB_UNARY_RELU; f < TB_UNARY_COUNT; f++) {
        const float x[] = {-1e30f, -50, -0.0f, 0, 50, 1e30f};
        float y[6], d[6];
        bool flat = f == TB_UNARY_TANH || f == TB_UNARY_SIGMOID;
        best(T, TB_F32)->unary_slope(f, 6, x, y, d);
        TB_CHECK(T, best(T, TB_F32)->nonfinite(6, y) == 0);
        TB_NEAR(T, (double)y[4], flat ? 1 : 50, 1e-6);
        TB_NEAR(T, (double)y[0], f == TB_UNARY_TANH ? -1 : 0, 1e-6);
        TB_NEAR(T, (double)d[5], flat ? 0 : 1, 1e-6);
        TB_NEAR(T, (double)d[0], 0, 1e-6);
    }
}

/* C130: update / lr at the first step */
static void adam_first_step(tb_test *T, tb_dtype t)
{
    const double g[] = {1e-3, 1e3, 1e-8, 1e-20, 0};
    const double want[] = {0.99999, 1, 0.5, 1, 0};
    double w[5] = {0}, m[5] = {0}, v[5] = {0}, gt[5];
    tb_k_adamw p = {.n = 5,
                    .lr = 1e-3,
                    .beta1 = 0.9,
                    .beta2 = 0.999,
                    .eps = 1e-8,
                    .bias1 = 0.1,
                    .bias2 = 0.001,
                    .grad_scale = 1};
    for (size_t i = 0; i < 5; i++)
        tb_test_set(t, gt, i, g[i]);
    best(T, t)->adamw(&p, w, gt, m, v);
    for (size_t i = 0; i < 5; i++) {
        double update = -tb_test_get(t, w, i) / 1e-3;
        TB_NEAR(T, i == 3 ? update * 1e12 : update, want[i], 1e-6);
    }
}

/* The mask of any part of a tensor is what element after element gives. */
TB_TEST(drop_is_element_by_element)
{
    enum { N = 300, FIRST = 4294967293 % 1000 };
    const uint64_t far = UINT64_C(17179869184) - 100; /* 2^32 blocks */
    tb_rng r = tb_rng_make(7, "mask");
    double x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = 1 + i;
    for (int t = 0; t < 6; t++) {
        uint64_t first = t < 4 ? FIRST + (uint64_t)t : far + (uint64_t)t;
        size_t dropped = 0;
        best(T, TB_F64)->drop(r, 0.25, first, N, x, false, y);
        for (size_t i = 0; i < N; i++) {
            bool gone = tb_rng_drops(r, first + i, 0.25);
            dropped += gone;
            TB_CHECK(T, y[i] == (gone ? 0 : x[i] * (1 / 0.75)));
        }
        TB_CHECK(T, dropped > 45 && dropped < 105); /* 75 +- 4 sigma */
    }
}

/* Any part of a tensor starts with what element after element gives. */
static void starts_by_element(tb_test *T, tb_dtype t, uint64_t first)
{
    enum { N = 20011 };
    tb_rng r = tb_rng_make(first, "start");
    double *normal = tb_test_guarded(T, N * sizeof *normal);
    double *uniform = tb_test_guarded(T, N * sizeof *uniform);
    best(T, t)->normal(r, first, N, 0.3, normal);
    best(T, t)->uniform(r, first, N, 0.3, uniform);
    int before = T->failed;
    for (size_t i = 0; i < N && T->failed == before; i++) {
        double want[2] = {0.3 * tb_rng_normal(r, first + i),
                          0.3 * (2 * tb_rng_uniform(r, first + i) - 1)};
        for (int j = 0; j < 2 && t == TB_F32; j++)
            want[j] = (double)(float)want[j];
        TB_CHECK(T, tb_test_get(t, normal, i) == want[0]);
        TB_CHECK(T, tb_test_get(t, uniform, i) == want[1]);
    }
}

TB_TEST(initial_values_are_element_by_element)
{
    const uint64_t first[] = {0, 1, 12345, UINT64_C(4294967296) - 100};
    for (size_t i = 0; i < TB_LEN(first); i++) {
        starts_by_element(T, TB_F32, first[i]);
        starts_by_element(T, TB_F64, first[i]);
    }
}

TB_TEST(adamw_first_step)
{
    adam_first_step(T, TB_F32);
    adam_first_step(T, TB_F64);
}

TB_TEST(adamw_decays_the_weight_alone)
{
    double w = 2, g = 0, m = 0, v = 0;
    tb_k_adamw p = {.n = 1,
                    .lr = 0.1,
                    .beta1 = 0.9,
                    .beta2 = 0.999,
                    .eps = 1e-8,
                    .decay = 0.5,
                    .bias1 = 0.1,
                    .bias2 = 0.001,
                    .grad_scale = 1};
    best(T, TB_F64)->adamw(&p, &w, &g, &m, &v);
    TB_NEAR(T, w, 2 - 0.1 * 0.5 * 2, 1e-15);
    TB_CHECK(T, m == 0 && v == 0);
}

/* C130: the update is 0 for ever; nonfinite must find out */
TB_TEST(adamw_overflow_is_seen)
{
    float w = 1, g = 1e20f, m = 0, v = 0;
    tb_k_adamw p = {.n = 1,
                    .lr = 1e-3,
                    .beta1 = 0.9,
                    .beta2 = 0.999,
                    .eps = 1e-8,
                    .bias1 = 0.1,
                    .bias2 = 0.001,
                    .grad_scale = 1};
    best(T, TB_F32)->adamw(&p, &w, &g, &m, &v);
    TB_CHECK(T, w == 1);
    TB_CHECK(T, best(T, TB_F32)->nonfinite(1, &v) == 1);
}
