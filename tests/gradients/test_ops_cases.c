/* SPDX-License-Identifier: MIT */
/* Single ops on inputs from real bug reports, with right results known in
 * closed form: norms, their Jacobians, activations, attention, losses, and
 * what each op refuses. */
#include "test_ops_call.h"

static double nan_value(void)
{
    volatile double zero = 0;
    return zero / zero;
}

/* A norm over rows of width d with gain and bias all 1 and 0. */
static bool open_norm(tb_test *T, bed *b, const char *op, size_t rows, size_t d,
                      int nin, double eps, tb_dtype type)
{
    const variant v = {.op = op,
                       .batch = 1,
                       .time = rows,
                       .nin = nin,
                       .in = {STREAM(d), VECTOR(d), VECTOR(d)},
                       .attr = {eps}};
    if (!bed_open(T, b, &v, type))
        return false;
    if (nin > 1)
        bed_set_all(b, b->x[1], d, 1);
    if (nin > 2)
        bed_set_all(b, b->x[2], d, 0);
    return true;
}

static const char *check_of(const bed *b, size_t *row)
{
    tb_opcall c = bed_call(b);
    return b->op->check(&c, row);
}

static void gain_of(const bed *b, double *rms, double *max)
{
    bed_fwd(b);
    tb_opcall c = bed_call(b);
    b->op->gain(&c, rms, max);
}

/* --- norms, forward ----------------------------------------------------- */

/* C003: a constant row gives exactly the bias; with eps = 0 it has no value */
TB_TEST(constant_row)
{
    const double x[] = {5, 5, 5, 5}, bias[] = {0.5, -0.5, 0, 2};
    const double eps[] = {1e-3, 1e-5, 1e-12};
    size_t row = 9;
    bed b;
    for (size_t i = 0; i < 6; i++) {
        TB_REQUIRE(T, open_norm(T, &b, "layernorm", 1, 4, 3, eps[i % 3],
                                i < 3 ? TB_F32 : TB_F64));
        bed_put(&b, b.x[0], x, 4);
        bed_put(&b, b.x[2], bias, 4);
        bed_fwd(&b);
        for (size_t j = 0; j < 4; j++)
            TB_CHECK(T, bed_get(&b, b.y, j) == bias[j]);
        TB_CHECK(T, check_of(&b, &row) == NULL);
    }
}

TB_TEST(zero_variance_without_eps_is_found)
{
    const double x[] = {1, 2, 0.1, 0.1, 3, 3};
    size_t row = 9;
    bed b;
    TB_REQUIRE(T, open_norm(T, &b, "layernorm", 3, 2, 1, 0, TB_F64));
    bed_put(&b, b.x[0], x, 6);
    bed_fwd(&b);
    TB_STR(T, check_of(&b, &row), "zero variance with eps = 0");
    TB_CHECK(T, row == 1);
    ((double *)b.x[0])[2] = 0.2;
    ((double *)b.x[0])[4] = nan_value(); /* another trouble, not this one */
    bed_fwd(&b);
    TB_CHECK(T, check_of(&b, &row) == NULL);

    TB_REQUIRE(T, open_norm(T, &b, "rmsnorm", 3, 2, 1, 0, TB_F64));
    bed_put(&b, b.x[0], x, 6);
    bed_fwd(&b);
    TB_CHECK(T, check_of(&b, &row) == NULL);
    bed_set_all(&b, b.x[0], 6, 0);
    bed_fwd(&b);
    TB_STR(T, check_of(&b, &row), "zero variance with eps = 0");
    TB_CHECK(T, row == 0);
}

/* Values whose mean rounds: the variance must still come out as exactly 0. */
TB_TEST(zero_variance_at_any_value_and_width)
{
    const double value[] = {0.1, -3.3, 1e-300, 1e30};
    for (size_t d = 1; d < 40; d++)
        for (size_t k = 0; k < 2 * TB_LEN(value); k++) {
            size_t row = 9;
            bed b;
            TB_REQUIRE(T, open_norm(T, &b, "layernorm", 1, d, 1, 0,
                                    k % 2 ? TB_F32 : TB_F64));
            bed_set_all(&b, b.x[0], d, value[k / 2]);
            bed_fwd(&b);
            TB_CHECK(T, check_of(&b, &row) != NULL && row == 0);
        }
}

static bool eps_allowed(double eps, const char **why)
{
    const tb_shape in[] = {STREAM(4)};
    const double attr[TB_OP_ATTRS] = {eps};
    tb_shape out;
    return tb_op_layernorm.shape(in, 1, attr, &out, why);
}

TB_TEST(eps_below_zero_or_nan_is_refused)
{
    const char *why = "";
    TB_CHECK(T, eps_allowed(0, &why));
    TB_CHECK(T, !eps_allowed(-1, &why));
    TB_STR(T, why, "eps must be a finite number, 0 or more");
    TB_CHECK(T, !eps_allowed(nan_value(), &why));
    TB_CHECK(T, !eps_allowed(1e308 * 10, &why));
}

/* C012: a bad row stays bad, through relu and gelu too, and stays alone */
TB_TEST(nan_and_inf_stay_in_their_row)
{
    const double bad = nan_value();
    const double x[] = {1, 2, 3, 4, 1, bad,        3, 4,
                        1, 2, 3, 4, 1, 1e308 * 10, 3, 4};
    const char *const after[] = {"relu", "gelu", "silu", "sigmoid", "tanh"};
    bed b, f;
    TB_REQUIRE(T, open_norm(T, &b, "layernorm", 4, 4, 1, 1e-5, TB_F64));
    bed_put(&b, b.x[0], x, 16);
    bed_fwd(&b);
    for (size_t k = 0; k < TB_LEN(after); k++) {
        const variant v = {
            .op = after[k], .batch = 1, .time = 4, .nin = 1, .in = {STREAM(4)}};
        TB_REQUIRE(T, bed_open(T, &f, &v, TB_F64));
        memcpy(f.x[0], b.y, 16 * sizeof(double));
        bed_fwd(&f);
        for (size_t i = 0; i < 16; i++)
            TB_CHECK(T, tb_isfinite(((double *)f.y)[i]) == (i / 4 % 2 == 0));
        TB_SAME(T, (double *)f.y + 8, f.y, 4 * sizeof(double));
    }
}

/* C018: statistics belong to one token */
TB_TEST(norm_is_per_token)
{
    const double x[] = {1, 2, 3, 7};
    const double want[] = {-0.9999800, 0.9999800, -0.9999988, 0.9999988};
    double first[2];
    bed b;
    TB_REQUIRE(T, open_norm(T, &b, "layernorm", 2, 2, 1, 1e-5, TB_F64));
    bed_put(&b, b.x[0], x, 4);
    bed_fwd(&b);
    TB_NEAR_N(T, (double *)b.y, want, 4, 1e-7);
    memcpy(first, b.y, sizeof first);
    ((double *)b.x[0])[3] = 8;
    bed_fwd(&b);
    TB_SAME(T, b.y, first, sizeof first);
}

/* --- norms, conventions ------------------------------------------------- */

static bool open_form(tb_test *T, bed *b, const char *op, size_t d,
                      tb_dtype type, double eps, double mode, double variance,
                      double unbiased)
{
    const variant v = {.op = op,
                       .batch = 1,
                       .time = 1,
                       .nin = tb_streq(op, "scalenorm") ? 2 : 1,
                       .in = {STREAM(d), SCALAR},
                       .attr = {eps, mode, variance, unbiased}};
    return bed_open(T, b, &v, type);
}

/* One row through a norm; its first value. */
static double first_of(tb_test *T, const char *op, const double *x, size_t d,
                       double eps, double mode, double unbiased)
{
    bed b;
    if (!open_form(T, &b, op, d, TB_F64, eps, mode, 0, unbiased))
        return nan_value();
    bed_put(&b, b.x[0], x, d);
    if (b.c.nin > 1)
        bed_set_all(&b, b.x[1], 1, 2);
    bed_fwd(&b);
    return bed_get(&b, b.y, 0);
}

/* C001: where eps stands and what the variance divides by */
TB_TEST(conventions_of_a_layernorm)
{
    const double x[] = {1, 0, 0, 0};
    double sd = 0.5, var = 0.1875, c = 0.75;
    const char *const ln = "layernorm";
    TB_NEAR(T, first_of(T, ln, x, 4, 1e-5, 0, 0), 1.7320046, 1e-7);
    TB_NEAR(T, first_of(T, ln, x, 4, 1e-5, TB_EPS_INSIDE, 1),
            c / tb_sqrt(0.25 + 1e-5), 1e-14);
    TB_NEAR(T, first_of(T, ln, x, 4, 1e-6, TB_EPS_OUTSIDE, 1), 1.499997, 1e-7);
    TB_NEAR(T, first_of(T, ln, x, 4, 0.1, TB_EPS_OUTSIDE, 0),
            c / (tb_sqrt(var) + 0.1), 1e-14);
    TB_NEAR(T, first_of(T, ln, x, 4, 3, TB_EPS_CLAMP, 0), 2 * c / 3, 1e-14);
    TB_NEAR(T, first_of(T, ln, x, 4, 3, TB_EPS_CLAMP_SQUARE, 0),
            2 * c / tb_sqrt(3), 1e-14);
    TB_NEAR(T, first_of(T, ln, x, 4, 0.1, TB_EPS_CLAMP, 0), c / tb_sqrt(var),
            1e-14);
    TB_NEAR(T, first_of(T, ln, x, 4, 3, TB_EPS_NONE, 1), c / sd, 1e-14);
    TB_NEAR(T, first_of(T, ln, x, 4, 3, TB_EPS_DTYPE, 0),
            c / tb_sqrt(var + 0x1p-52), 1e-14);
}

/* x-transformers: x / max(|x|, eps) times a length, or sqrt(d) (rmsnorm). */
TB_TEST(conventions_of_a_length)
{
    const double x[] = {3, 4}, tiny[] = {3e-7, 4e-7};
    TB_NEAR(T, first_of(T, "scalenorm", x, 2, 1e-5, 0, 0), 1.2, 1e-15);
    TB_NEAR(T, first_of(T, "scalenorm", tiny, 2, 1e-5, 0, 0), 0.06, 1e-15);
    TB_NEAR(T, first_of(T, "scalenorm", x, 2, 1, TB_EPS_OUTSIDE, 0), 1, 1e-15);
    TB_NEAR(T, first_of(T, "l2norm", x, 2, 1e-5, 0, 0), 0.6, 1e-15);
    TB_NEAR(T, first_of(T, "l2norm", x, 2, 0, TB_EPS_NONE, 0), 0.6, 1e-15);
    TB_NEAR(T, first_of(T, "rmsnorm", tiny, 2, 1e-5, TB_EPS_CLAMP, 0),
            0.03 * tb_sqrt(2), 1e-15);
    TB_NEAR(T, first_of(T, "rmsnorm", x, 2, 1e-5, TB_EPS_CLAMP, 0),
            0.6 * tb_sqrt(2), 1e-15);
}

/* C004: one pass in float turns 256 times 1234 into a variance of -3.25; our
 * own two passes, and one clipped pass, give 0. */
TB_TEST(one_pass_variance)
{
    const double how[] = {TB_VARIANCE_TWOPASS, TB_VARIANCE_ONEPASS,
                          TB_VARIANCE_ONEPASS_CLIPPED};
    for (size_t k = 0; k < 3; k++) {
        size_t row = 9;
        bed b;
        TB_REQUIRE(
            T, open_form(T, &b, "layernorm", 256, TB_F32, 1e-5, 0, how[k], 0));
        bed_set_all(&b, b.x[0], 256, 1234);
        bed_fwd(&b);
        double y = bed_get(&b, b.y, 7);
        TB_CHECK(T, k == 1 ? y != y : y == 0);
        const char *why = check_of(&b, &row);
        TB_CHECK(T, (why != NULL) == (k == 1));
        if (k == 1)
            TB_STR(T, why, "one-pass variance below 0");
    }
}

/* C009: eps and statistics in double, whatever the storage type */
TB_TEST(small_eps_survives)
{
    const double eps[] = {1e-12, 2e-8};
    const double modes[] = {TB_EPS_INSIDE, TB_EPS_OUTSIDE, TB_EPS_CLAMP,
                            TB_EPS_CLAMP_SQUARE, TB_EPS_DTYPE};
    for (size_t e = 0; e < TB_LEN(eps); e++)
        for (size_t m = 0; m < TB_LEN(modes); m++)
            for (int v = 0; v < 2; v++) {
                bed b;
                TB_REQUIRE(T, open_form(T, &b, "layernorm", 10, TB_F32, eps[e],
                                        modes[m], 0, 0));
                bed_set_all(&b, b.x[0], 10, v ? 7 : 0);
                bed_fwd(&b);
                bed_bwd(&b, 1);
                for (size_t i = 0; i < 10; i++) {
                    TB_CHECK(T, bed_get(&b, b.y, i) == 0);
                    TB_CHECK(T, tb_isfinite(bed_get(&b, b.g[0], i)));
                }
            }
}

/* eps = 0 by any name: a row without length has no value */
TB_TEST(no_eps_by_any_name)
{
    const char *const ops[] = {"layernorm", "rmsnorm", "l2norm"};
    for (size_t k = 0; k < TB_LEN(ops); k++)
        for (double mode = 0; mode <= TB_EPS_NONE; mode++) {
            double eps = mode == TB_EPS_NONE ? 1 : 0;
            size_t row = 9;
            bed b;
            TB_REQUIRE(T, open_form(T, &b, ops[k], 3, TB_F64, eps, mode, 0, 0));
            bed_set_all(&b, b.x[0], 3, 0);
            bed_fwd(&b);
            const char *why = check_of(&b, &row);
            if (mode == TB_EPS_DTYPE)
                TB_CHECK(T, why == NULL);
            else
                TB_STR(T, why, "zero variance with eps = 0");
        }
}

/* A norm per head is the norm of each head's part. */
TB_TEST(groups_are_rows)
{
    const variant whole = {.op = "rmsnorm",
                           .batch = 2,
                           .time = 2,
                           .nin = 2,
                           .in = {STREAM(6), VECTOR(3)},
                           .attr = {1e-5, 0, 0, 0, 2}};
    variant parts = whole;
    parts.time = 4;
    parts.in[0].width = 3;
    parts.attr[TB_ATTR_NORM_GROUPS] = 0;
    uint64_t draws = T->draws;
    double a_rms, a_max, b_rms, b_max;
    bed a, b;
    TB_REQUIRE(T, bed_open(T, &a, &whole, TB_F32));
    T->draws = draws;
    TB_REQUIRE(T, bed_open(T, &b, &parts, TB_F32));
    gain_of(&a, &a_rms, &a_max);
    gain_of(&b, &b_rms, &b_max);
    TB_SAME(T, a.y, b.y, a.nout * sizeof(float));
    TB_CHECK(T, a_rms == b_rms && a_max == b_max);
}

/* --- norms, backward ---------------------------------------------------- */

/* C013: one feature gives exactly the bias and no gradient but the bias's */
TB_TEST(width_one)
{
    bed b;
    TB_REQUIRE(T, open_norm(T, &b, "layernorm", 1, 1, 3, 1e-5, TB_F64));
    ((double *)b.x[0])[0] = 1e6;
    ((double *)b.x[1])[0] = 123;
    ((double *)b.x[2])[0] = 3;
    ((double *)b.gy)[0] = 2;
    bed_fwd(&b);
    bed_bwd(&b, 7);
    TB_CHECK(T, ((double *)b.y)[0] == 3);
    TB_CHECK(T, ((double *)b.g[0])[0] == 0);
    TB_CHECK(T, ((double *)b.g[1])[0] == 0);
    TB_CHECK(T, ((double *)b.g[2])[0] == 2);

    TB_REQUIRE(T, open_norm(T, &b, "layernorm", 1, 1, 3, 0.1, TB_F64));
    ((double *)b.x[0])[0] = -3;
    ((double *)b.x[1])[0] = 1e10;
    ((double *)b.x[2])[0] = -1;
    bed_fwd(&b);
    TB_CHECK(T, ((double *)b.y)[0] == -1);
}

/* C019: backward at a constant row is finite, 1/sqrt(eps) times as large */
TB_TEST(gradient_at_a_constant_row)
{
    const double want[] = {237.17082, -79.056942, -79.056942, -79.056942};
    const double gy[] = {1, 0, 0, 0};
    bed b;
    for (int i = 0; i < 2; i++) {
        TB_REQUIRE(T, open_norm(T, &b, "layernorm", 1, 4, 1, 1e-5, TB_F64));
        bed_set_all(&b, b.x[0], 4, i ? 5 : 0);
        bed_put(&b, b.gy, gy, 4);
        bed_fwd(&b);
        bed_bwd(&b, 1);
        TB_NEAR_N(T, (double *)b.g[0], want, 4, 1e-7);
    }
}

/* C020: the mean is taken off once; two invariants need no reference */
TB_TEST(mean_term_once)
{
    const double x[] = {1, 2, 3, 4}, gy[] = {1, 0, 0, 0};
    const double want[] = {0.2683303, -0.3577684, -0.0894434, 0.1788815};
    double sum = 0, along = 0;
    bed b;
    TB_REQUIRE(T, open_norm(T, &b, "layernorm", 1, 4, 1, 1e-5, TB_F64));
    bed_put(&b, b.x[0], x, 4);
    bed_put(&b, b.gy, gy, 4);
    bed_fwd(&b);
    bed_bwd(&b, 1);
    TB_NEAR_N(T, (double *)b.g[0], want, 4, 1e-7);
    for (size_t i = 0; i < 4; i++) {
        sum += ((double *)b.g[0])[i];
        along += ((double *)b.g[0])[i] * ((double *)b.y)[i];
    }
    TB_NEAR(T, sum, 0, 1e-12);
    double g_dot_xhat = ((double *)b.y)[0], rstd = 1 / tb_sqrt(1.25 + 1e-5);
    TB_NEAR(T, along, g_dot_xhat * 1e-5 * rstd * rstd * rstd, 1e-12);
}

/* C021: [batch, time, feature] */
TB_TEST(parameter_gradients_sum_over_batch_and_time)
{
    const double x[] = {1, 2, 4, 0, 1, 0, 3, 3, 0, 5, 6, 10};
    const double dgain[] = {-1.9948465, 1.3911168, 0.6037297};
    const double dbias[] = {4, 4, 4}, dx[12] = {0};
    const variant v = {.op = "layernorm",
                       .batch = 2,
                       .time = 2,
                       .nin = 3,
                       .in = {STREAM(3), VECTOR(3), VECTOR(3)},
                       .attr = {1e-5}};
    bed b;
    TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
    bed_put(&b, b.x[0], x, 12);
    bed_set_all(&b, b.x[1], 3, 1);
    bed_set_all(&b, b.gy, 12, 1);
    bed_fwd(&b);
    bed_bwd(&b, 7);
    TB_NEAR_N(T, (double *)b.g[0], dx, 12, 1e-12);
    TB_NEAR_N(T, (double *)b.g[1], dgain, 3, 1e-7);
    TB_SAME(T, b.g[2], dbias, sizeof dbias);
}

/* C023: nothing divides by the gain */
TB_TEST(zero_gain)
{
    const double x[] = {1, 2, 3, 4}, gain[] = {1, 0, 1, 1};
    const double dgain[] = {-1.3416354, -0.4472118, 0.4472118, 1.3416354};
    const double dx[] = {0.3577684, -0.6260969, 0.1788851, 0.0894434};
    bed b;
    TB_REQUIRE(T, open_norm(T, &b, "layernorm", 1, 4, 3, 1e-5, TB_F64));
    bed_put(&b, b.x[0], x, 4);
    bed_put(&b, b.x[1], gain, 4);
    bed_set_all(&b, b.gy, 4, 1);
    bed_fwd(&b);
    bed_bwd(&b, 7);
    TB_NEAR_N(T, (double *)b.g[0], dx, 4, 1e-7);
    TB_NEAR_N(T, (double *)b.g[1], dgain, 4, 1e-7);
    bed_set_all(&b, b.x[1], 4, 0);
    bed_fwd(&b);
    bed_bwd(&b, 7);
    TB_NEAR_N(T, (double *)b.g[1], dgain, 4, 1e-7);
    for (size_t i = 0; i < 4; i++)
        TB_CHECK(T, ((double *)b.g[0])[i] == 0);
}

/* --- the Jacobian of a norm --------------------------------------------- */

enum { WIDEST = 8 };

/* Column j of one row's Jacobian: the tangent along unit vector j. */
static void jacobian(bed *b, size_t row, size_t d, double j[WIDEST][WIDEST])
{
    bed_fwd(b);
    for (size_t col = 0; col < d; col++) {
        bed_set_all(b, b->t[0], b->n[0], 0);
        tb_test_set(b->type, b->t[0], row * d + col, 1);
        bed_tan(b, 1);
        for (size_t i = 0; i < d; i++)
            j[i][col] = bed_get(b, b->ty, row * d + i);
    }
}

/* C061: three features, then a gain that scales rows, not columns */
TB_TEST(layernorm_jacobian)
{
    const double x[] = {1, 2, 3}, gain[] = {1, 2, 3};
    const double want[3][3] = {{0.2041318, -0.4082452, 0.2041134},
                               {-0.4082452, 0.8164905, -0.4082452},
                               {0.2041134, -0.4082452, 0.2041318}};
    double j[WIDEST][WIDEST];
    bed b;
    TB_REQUIRE(T, open_norm(T, &b, "layernorm", 1, 3, 3, 1e-5, TB_F64));
    bed_put(&b, b.x[0], x, 3);
    for (int with = 0; with < 2; with++) {
        if (with)
            bed_put(&b, b.x[1], gain, 3);
        jacobian(&b, 0, 3, j);
        for (size_t r = 0; r < 3; r++) {
            TB_NEAR(T, j[r][0] + j[r][1] + j[r][2], 0, 1e-14);
            for (size_t c = 0; c < 3; c++)
                TB_NEAR(T, j[r][c], want[r][c] * (with ? gain[r] : 1), 3e-7);
        }
    }
}

/* Largest eigenvalue of J'J by cyclic Jacobi rotations: another road than
 * the product's. */
static double largest_singular(size_t d, double j[WIDEST][WIDEST])
{
    double a[WIDEST][WIDEST] = {{0}}, top = 0;
    for (size_t r = 0; r < d; r++)
        for (size_t c = 0; c < d; c++)
            for (size_t k = 0; k < d; k++)
                a[r][c] += j[k][r] * j[k][c];
    for (int sweep = 0; sweep < 30; sweep++)
        for (size_t p = 0; p < d; p++)
            for (size_t q = p + 1; q < d; q++) {
                if (a[p][q] == 0)
                    continue;
                double th = (a[q][q] - a[p][p]) / (2 * a[p][q]);
                double t =
                    (th < 0 ? -1 : 1) / (tb_fabs(th) + tb_sqrt(th * th + 1));
                double c = 1 / tb_sqrt(t * t + 1), s = t * c;
                for (size_t k = 0; k < d; k++) {
                    double u = a[k][p], v = a[k][q];
                    a[k][p] = c * u - s * v, a[k][q] = s * u + c * v;
                }
                for (size_t k = 0; k < d; k++) {
                    double u = a[p][k], v = a[q][k];
                    a[p][k] = c * u - s * v, a[q][k] = s * u + c * v;
                }
            }
    for (size_t i = 0; i < d; i++)
        top = a[i][i] > top ? a[i][i] : top;
    return tb_sqrt(top);
}

/* `gain` against the Jacobian written out, row by row. */
static void compare_gain(tb_test *T, bed *b, size_t rows, size_t d, double tol)
{
    double j[WIDEST][WIDEST], square = 0, top = 0, rms, max;
    for (size_t r = 0; r < rows; r++) {
        jacobian(b, r, d, j);
        double s = largest_singular(d, j);
        top = s > top ? s : top;
        for (size_t i = 0; i < d; i++)
            for (size_t c = 0; c < d; c++)
                square += j[i][c] * j[i][c];
    }
    gain_of(b, &rms, &max);
    TB_NEAR(T, rms, tb_sqrt(square / (double)(rows * d)), tol);
    TB_NEAR(T, top > 0 ? max / top : max + 1, 1, tol);
}

/* For every width and eps. */
static void check_gain(tb_test *T, const char *op, size_t d, double eps,
                       int nin, int constant)
{
    size_t rows = 3;
    bed b;
    TB_REQUIRE(T, open_norm(T, &b, op, rows, d, nin, eps, TB_F64));
    if (nin > 1 && !constant)
        bed_fill(T, TB_F64, b.x[1], d);
    if (nin > 1 && constant)
        bed_set_all(&b, b.x[1], d, -1.5);
    bed_set_all(&b, b.x[0], d, eps > 0 ? 2.5 : 0); /* row 0: no variance */
    if (eps == 0)
        bed_fill(T, TB_F64, b.x[0], d);
    compare_gain(T, &b, rows, d, 1e-9);
}

TB_TEST(gain_is_that_of_the_jacobian)
{
    const double eps[] = {1e-5, 0.5, 0};
    for (size_t d = 1; d <= WIDEST; d++)
        for (size_t e = 0; e < TB_LEN(eps); e++)
            for (int how = 0; how < 3; how++) {
                if (eps[e] > 0 || d > 2)
                    check_gain(T, "layernorm", d, eps[e], how ? 2 : 1,
                               how == 2);
                if (eps[e] > 0 || d > 1)
                    check_gain(T, "rmsnorm", d, eps[e], how ? 2 : 1, how == 2);
            }
}

/* The same in every convention: eps that matters and eps that does not. */
TB_TEST(gain_in_every_convention)
{
    const char *const ops[] = {"layernorm", "rmsnorm", "scalenorm", "l2norm"};
    const double eps[] = {1e-3, 1.5, 40};
    for (size_t n = 0; n < 4 * 3 * 5 * 3 * 2 * 6; n++) {
        size_t op = n % 4, e = n / 4 % 3, mode = n / 12 % 5 + 1;
        size_t how = n / 60 % 3, unbiased = n / 180 % 2, d = n / 360 % 6 + 3;
        const variant v = {
            .op = ops[op],
            .batch = 1,
            .time = 3,
            .nin = op == 3 ? 1 : 2,
            .in = {STREAM(d), op < 2 ? (tb_shape)VECTOR(d) : (tb_shape)SCALAR},
            .attr = {eps[e], (double)mode, (double)how,
                     op == 0 ? (double)unbiased : 0}};
        bed b;
        TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
        compare_gain(T, &b, 3, d, 1e-9);
    }
}

/* A variance that lost its digits: kappa leaves 0 .. 1. In double, too. */
TB_TEST(gain_of_a_bad_variance)
{
    double worst = 1;
    for (int i = 0; i < 200; i++) {
        const variant v = {.op = "rmsnorm",
                           .batch = 1,
                           .time = 1,
                           .nin = 1 + i % 2,
                           .in = {STREAM(6), VECTOR(6)},
                           .attr = {0, TB_EPS_NONE, TB_VARIANCE_ONEPASS}};
        bed b;
        TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
        bed_fwd(&b);
        /* as if the sum of squares had come out otherwise */
        double *stat = b.c.saved;
        stat[2] = 3 * tb_test_normal(T);
        worst = stat[2] < worst ? stat[2] : worst;
        double j[WIDEST][WIDEST], rms, max;
        for (size_t col = 0; col < 6; col++) {
            bed_set_all(&b, b.t[0], 6, 0);
            bed_put(&b, (double *)b.t[0] + col, (const double[]){1}, 1);
            bed_tan(&b, 1);
            for (size_t r = 0; r < 6; r++)
                j[r][col] = bed_get(&b, b.ty, r);
        }
        tb_opcall c = bed_call(&b);
        b.op->gain(&c, &rms, &max);
        TB_NEAR(T, max / largest_singular(6, j), 1, 1e-9);
    }
    TB_CHECK(T, worst < -1);
}

TB_TEST(gain_in_closed_form)
{
    const double x[] = {1, 2, 3};
    double rms, max, s = tb_sqrt(2.0 / 3 + 1e-5), e = 1e-5 / (s * s * s);
    bed b;
    TB_REQUIRE(T, open_norm(T, &b, "layernorm", 1, 3, 1, 1e-5, TB_F64));
    bed_put(&b, b.x[0], x, 3);
    gain_of(&b, &rms, &max);
    TB_NEAR(T, max, 1 / s, 1e-14);
    TB_NEAR(T, rms, tb_sqrt((1 / (s * s) + e * e) / 3), 1e-14);

    /* two features: only the direction that eps keeps alive */
    TB_REQUIRE(T, open_norm(T, &b, "layernorm", 1, 2, 1, 1e-5, TB_F64));
    bed_put(&b, b.x[0], x, 2);
    s = tb_sqrt(0.25 + 1e-5);
    gain_of(&b, &rms, &max);
    TB_NEAR(T, max * 1e4, 1e-1 / (s * s * s), 1e-9);

    /* one feature: none at all, and none for RMS but eps's */
    TB_REQUIRE(T, open_norm(T, &b, "layernorm", 1, 1, 1, 1e-5, TB_F64));
    gain_of(&b, &rms, &max);
    TB_CHECK(T, rms == 0 && max == 0);

    /* a constant row: 1/sqrt(eps) in all directions but one */
    TB_REQUIRE(T, open_norm(T, &b, "layernorm", 1, 4, 1, 1e-5, TB_F64));
    bed_set_all(&b, b.x[0], 4, 5);
    gain_of(&b, &rms, &max);
    TB_NEAR(T, max, 316.2277660168379, 1e-12);
    TB_NEAR(T, rms, 316.2277660168379 * tb_sqrt(0.75), 1e-12);
}

/* Many rows in several chunks: as row by row, and in float too. */
TB_TEST(gain_over_many_rows)
{
    enum { ROWS = 200, D = 300 };
    for (int type = 0; type < 2; type++) {
        bed b;
        double rms, max, one_rms, one_max, square = 0, top = 0;
        TB_REQUIRE(T, open_norm(T, &b, "layernorm", ROWS, D, 2, 1e-5,
                                type ? TB_F64 : TB_F32));
        bed_fill(T, b.type, b.x[1], D);
        gain_of(&b, &rms, &max);
        for (size_t r = 0; r < ROWS; r++) {
            tb_opcall c = bed_call(&b);
            size_t at = r * D * tb_dtype_size(b.type);
            c.time = 1;
            c.in[0] = (const char *)b.x[0] + at;
            c.saved = (double *)b.c.saved + 2 * r;
            b.op->gain(&c, &one_rms, &one_max);
            square += one_rms * one_rms;
            top = one_max > top ? one_max : top;
        }
        TB_NEAR(T, rms, tb_sqrt(square / ROWS), 1e-12);
        TB_NEAR(T, max, top, 1e-12);
    }
}

/* --- activations -------------------------------------------------------- */

static double unary_at(tb_test *T, const char *op, double x, double *slope)
{
    const variant v = {
        .op = op, .batch = 1, .time = 1, .nin = 1, .in = {STREAM(1)}};
    bed b;
    if (!bed_open(T, &b, &v, TB_F64))
        return nan_value();
    ((double *)b.x[0])[0] = x;
    ((double *)b.t[0])[0] = 1;
    bed_fwd(&b);
    bed_tan(&b, 1);
    *slope = ((double *)b.ty)[0];
    return ((double *)b.y)[0];
}

/* C104: the two forms of gelu are different functions */
TB_TEST(gelu_forms)
{
    double slope;
    TB_NEAR(T, unary_at(T, "gelu", 1, &slope), 0.8413447, 1e-7);
    TB_NEAR(T, slope, 1.0833155, 1e-7);
    TB_NEAR(T, unary_at(T, "gelu", -1, &slope), -0.1586553, 1e-7);
    TB_NEAR(T, unary_at(T, "gelu_tanh", 1, &slope), 0.8411920, 1e-7);
    TB_NEAR(T, slope, 1.0829641, 1e-7);
    TB_NEAR(T, unary_at(T, "gelu_tanh", -1, &slope), -0.1588080, 1e-7);
}

/* C025: x * x, one buffer on both sides; both gradients go to one place */
TB_TEST(square)
{
    const double x[] = {1, 2, 3}, want[] = {2, 4, 6};
    const variant v = {.op = "mul",
                       .batch = 1,
                       .time = 1,
                       .nin = 2,
                       .in = {STREAM(3), STREAM(3)}};
    bed b;
    TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
    b.x[1] = b.x[0], b.t[1] = b.t[0], b.g[1] = b.g[0];
    bed_put(&b, b.x[0], x, 3);
    bed_set_all(&b, b.t[0], 3, 1);
    bed_set_all(&b, b.gy, 3, 1);
    bed_fwd(&b);
    bed_tan(&b, 3);
    bed_bwd(&b, 3);
    TB_SAME(T, b.ty, want, sizeof want);
    TB_SAME(T, b.g[0], want, sizeof want);
}

/* --- attention ---------------------------------------------------------- */

enum { ATT_T = 150, ATT_W = 8 };

static bool open_mha(tb_test *T, bed *b, double causal, size_t time)
{
    const variant v = {.op = "mha",
                       .batch = 2,
                       .time = time,
                       .nin = 3,
                       .in = {STREAM(ATT_W), STREAM(ATT_W), STREAM(ATT_W)},
                       .attr = {2, 2, causal}};
    return bed_open(T, b, &v, TB_F32);
}

/* C068: later tokens change nothing, bit for bit; without the mask they do */
TB_TEST(causal_attention_sees_no_later_token)
{
    const size_t cut[] = {1, 63, 64, 65, 128, 149};
    for (size_t k = 0; k < TB_LEN(cut); k++)
        for (int causal = 0; causal < 2; causal++) {
            bed b;
            TB_REQUIRE(T, open_mha(T, &b, causal, ATT_T));
            bed_fwd(&b);
            float *first = tb_test_guarded(T, b.nout * sizeof *first);
            memcpy(first, b.y, b.nout * sizeof *first);
            for (int i = 0; i < 3; i++)
                for (size_t j = cut[k] * ATT_W; j < ATT_T * ATT_W; j++)
                    ((float *)b.x[i])[j] *= -3;
            bed_fwd(&b);
            bool same = memcmp(first, b.y, cut[k] * ATT_W * sizeof *first) == 0;
            TB_CHECK(T, same == causal);
            /* the other sequence of the batch never changes */
            TB_SAME(T, (float *)b.y + ATT_T * ATT_W, first + ATT_T * ATT_W,
                    ATT_T * ATT_W * sizeof *first);
        }
}

/* The other way round: no gradient flows back from a token to a later one. */
TB_TEST(causal_attention_gradient_stops_at_the_token)
{
    const size_t at = 70;
    bed b;
    TB_REQUIRE(T, open_mha(T, &b, 1, ATT_T));
    bed_set_all(&b, b.gy, b.nout, 0);
    for (size_t j = 0; j < ATT_W; j++)
        ((float *)b.gy)[at * ATT_W + j] = 1;
    bed_fwd(&b);
    bed_bwd(&b, 7);
    for (int i = 0; i < 3; i++)
        for (size_t j = 0; j < b.n[i]; j++)
            if (j >= (at + 1) * ATT_W)
                TB_CHECK(T, ((float *)b.g[i])[j] == 0);
    TB_CHECK(T, ((float *)b.g[2])[at * ATT_W] != 0);
}

/* Rows of the probabilities sum to 1: values of 1 come out as they are. */
TB_TEST(attention_probabilities)
{
    bed b;
    TB_REQUIRE(T, open_mha(T, &b, 1, ATT_T));
    memset(b.c.saved, 0xff, b.saved_bytes);
    bed_set_all(&b, b.x[2], b.n[2], 1);
    bed_fwd(&b);
    for (size_t i = 0; i < b.nout; i++)
        TB_NEAR(T, bed_get(&b, b.y, i), 1, 1e-6);
}

/* Products counted over visible pairs only. */
TB_TEST(attention_and_linear_flops)
{
    const variant v = {.op = "linear",
                       .batch = 2,
                       .time = 3,
                       .nin = 2,
                       .in = {STREAM(5), MATRIX(4, 5)}};
    bed b;
    TB_REQUIRE(T, open_mha(T, &b, 0, 10));
    TB_CHECK(T, b.op->flops(&b.c) == 4.0 * 2 * 100 * ATT_W);
    TB_REQUIRE(T, open_mha(T, &b, 1, 10));
    TB_CHECK(T, b.op->flops(&b.c) == 4.0 * 2 * 55 * ATT_W);
    TB_REQUIRE(T, bed_open(T, &b, &v, TB_F32));
    TB_CHECK(T, b.op->flops(&b.c) == 2.0 * 6 * 5 * 4);
}

/* --- loss --------------------------------------------------------------- */

static double uniform_loss(tb_test *T, size_t vocab, tb_dtype type)
{
    const variant v = {.op = "xent",
                       .batch = 2,
                       .time = 3,
                       .nin = 2,
                       .in = {STREAM(vocab), TOKENS},
                       .vocab = (int)vocab};
    bed b;
    if (!bed_open(T, &b, &v, type))
        return nan_value();
    bed_set_all(&b, b.x[0], b.n[0], 0.25);
    bed_fwd(&b);
    return bed_get(&b, b.y, 0);
}

/* C127: an untrained model's loss is ln V */
TB_TEST(uniform_logits_cost_ln_v)
{
    TB_NEAR(T, uniform_loss(T, 50257, TB_F64), 10.824905, 1e-7);
    TB_NEAR(T, uniform_loss(T, 65, TB_F64), 4.1743872699, 1e-10);
    TB_NEAR(T, uniform_loss(T, 256, TB_F64), 5.5451774445, 1e-10);
    TB_NEAR(T, uniform_loss(T, 50257, TB_F32), 10.824905, 1e-6);
}

/* C121: no target at all is loss 0, not 0/0; gradients stay as they were */
TB_TEST(no_target_token)
{
    const variant v = {.op = "xent",
                       .batch = 2,
                       .time = 3,
                       .nin = 2,
                       .in = {STREAM(5), TOKENS},
                       .vocab = 1};
    bed b;
    TB_REQUIRE(T, bed_open(T, &b, &v, TB_F32));
    for (size_t i = 0; i < 6; i++)
        ((int32_t *)b.x[1])[i] = -1 - (int32_t)i;
    bed_fwd(&b);
    bed_tan(&b, 1);
    bed_bwd(&b, 1);
    TB_CHECK(T, ((float *)b.y)[0] == 0 && ((float *)b.ty)[0] == 0);
    for (size_t i = 0; i < b.n[0]; i++)
        TB_CHECK(T, ((float *)b.g[0])[i] == 0);
}

/* Rows without a target are as if they were not there, whatever they hold. */
TB_TEST(ignored_rows_do_not_count)
{
    const variant v = {.op = "xent",
                       .batch = 1,
                       .time = 3,
                       .nin = 2,
                       .in = {STREAM(2), TOKENS},
                       .vocab = 2};
    const double x[] = {0, 0, nan_value(), 1, 0, 0};
    bed b;
    TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
    bed_put(&b, b.x[0], x, 6);
    memcpy(b.x[1], (const int32_t[]){0, -1, 1}, 3 * sizeof(int32_t));
    bed_set_all(&b, b.gy, 1, 1);
    bed_fwd(&b);
    bed_bwd(&b, 1);
    const double g[] = {-0.25, 0.25, 0, 0, 0.25, -0.25};
    TB_NEAR(T, ((double *)b.y)[0], 0.6931471805599453, 1e-15);
    TB_NEAR_N(T, (double *)b.g[0], g, 6, 1e-15);
}

/* --- tokens out of range ------------------------------------------------ */

TB_TEST(token_outside_the_vocabulary)
{
    const int32_t tokens[] = {0, 3, -1, 2};
    const variant e = {.op = "embed",
                       .batch = 1,
                       .time = 4,
                       .nin = 2,
                       .in = {TOKENS, MATRIX(3, 2)},
                       .vocab = 3};
    const variant x = {.op = "xent",
                       .batch = 1,
                       .time = 4,
                       .nin = 2,
                       .in = {STREAM(3), TOKENS},
                       .vocab = 3};
    size_t row = 9;
    bed b;
    TB_REQUIRE(T, bed_open(T, &b, &e, TB_F64));
    bed_fwd(&b);
    TB_CHECK(T, check_of(&b, &row) == NULL);
    memcpy(b.x[0], tokens, sizeof tokens);
    bed_fwd(&b);
    bed_bwd(&b, 2);
    TB_STR(T, check_of(&b, &row), "token outside the vocabulary");
    TB_CHECK(T, row == 1);
    for (size_t i = 2; i < 6; i++)
        TB_CHECK(T, ((double *)b.y)[i] == 0);

    TB_REQUIRE(T, bed_open(T, &b, &x, TB_F64));
    bed_fwd(&b);
    TB_CHECK(T, check_of(&b, &row) == NULL);
    memcpy(b.x[1], tokens, sizeof tokens);
    bed_set_all(&b, b.x[0], b.n[0], 0);
    bed_fwd(&b);
    bed_tan(&b, 1);
    bed_bwd(&b, 1);
    TB_STR(T, check_of(&b, &row), "target outside the vocabulary");
    TB_CHECK(T, row == 1);
    TB_NEAR(T, ((double *)b.y)[0], 1.0986122886681098, 1e-15);
    TB_CHECK(T, ((double *)b.g[0])[3] == 0 && ((double *)b.g[0])[6] == 0);
}

/* sin and cos of t, then of t/100, side by side. */
TB_TEST(sinusoid_at_width_4)
{
    const variant v = {
        .op = "sinusoid", .batch = 1, .time = 3, .nin = 1, .in = {STREAM(4)}};
    const double want[] = {0,
                           1,
                           0,
                           1,
                           0.8414709848078965,
                           0.5403023058681398,
                           0.009999833334166664,
                           0.9999500004166653,
                           0.9092974268256817,
                           -0.4161468365471424,
                           0.01999866669333308,
                           0.9998000066665778};
    bed b;
    TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
    bed_set_all(&b, b.x[0], b.n[0], 0);
    bed_fwd(&b);
    for (size_t i = 0; i < TB_LEN(want); i++)
        TB_NEAR(T, ((double *)b.y)[i], want[i], 1e-15);
}

/* Tokens that follow others: the rows of the whole from there on. */
TB_TEST(places_that_start_later)
{
    enum { D = 4, LATER = 2, TIME = 3 };
    static const char *const ops[] = {"sinusoid", "position", "rope"};
    for (size_t i = 0; i < TB_LEN(ops); i++) {
        variant v = {.op = ops[i],
                     .batch = 1,
                     .time = LATER + TIME,
                     .nin = i == 1 ? 2 : 1,
                     .in = {STREAM(D), MATRIX(LATER + TIME, D)}};
        bed all, some;
        v.attr[TB_ATTR_ROPE_HEADS] = i == 2;
        TB_REQUIRE(T, bed_open(T, &all, &v, TB_F64));
        bed_fwd(&all);
        v.time = TIME;
        v.attr[all.op->place - 1] = LATER;
        TB_REQUIRE(T, bed_open(T, &some, &v, TB_F64));
        memcpy(some.x[0], (double *)all.x[0] + LATER * D,
               TIME * D * sizeof(double));
        if (i == 1)
            memcpy(some.x[1], all.x[1], (LATER + TIME) * D * sizeof(double));
        bed_fwd(&some);
        TB_SAME(T, some.y, (double *)all.y + LATER * D,
                TIME * D * sizeof(double));
    }
}

TB_TEST(time_beyond_the_position_table)
{
    const variant v = {.op = "position",
                       .batch = 2,
                       .time = 3,
                       .nin = 2,
                       .in = {STREAM(4), MATRIX(2, 4)}};
    size_t row = 9;
    bed b;
    TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
    bed_fwd(&b);
    bed_tan(&b, 3);
    bed_bwd(&b, 3);
    TB_STR(T, check_of(&b, &row), "time beyond the position table");
    TB_CHECK(T, row == 2);
    TB_SAME(T, (double *)b.y + 8, (double *)b.x[0] + 8, 4 * sizeof(double));
}

/* --- dropout ------------------------------------------------------------ */

/* The share kept, its scale, and p = 0 and p = 1. */
TB_TEST(drop_mask)
{
    enum { N = 40000 };
    const double p[] = {0, 0.25, 1};
    for (size_t k = 0; k < TB_LEN(p); k++) {
        const variant v = {.op = "drop",
                           .batch = 1,
                           .time = N,
                           .nin = 1,
                           .in = {STREAM(1)},
                           .attr = {p[k]}};
        size_t kept = 0;
        bed b;
        TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
        bed_set_all(&b, b.x[0], N, 3);
        bed_fwd(&b);
        for (size_t i = 0; i < N; i++) {
            double y = ((double *)b.y)[i];
            TB_CHECK(T, y == 0 || y == 3 * (1 / (1 - p[k])));
            kept += y != 0;
        }
        /* five standard deviations */
        TB_NEAR(T, (double)kept / N - (1 - p[k]), 0,
                5 * tb_sqrt(p[k] * (1 - p[k]) / N) + 1e-15);
    }
}

/* --- refusals ----------------------------------------------------------- */

typedef struct refusal {
    const char *op;
    int nin;
    tb_shape in[TB_OP_INPUTS];
    double attr[TB_OP_ATTRS];
    const char *why; /* part of the reason */
} refusal;

static const refusal refusals[] = {
    /* clang-format off */
    {"add", 2, {STREAM(4), STREAM(5)}, {0}, "same shape"},
    {"add", 2, {STREAM(4), VECTOR(4)}, {0}, "same shape"},
    {"sub", 2, {TOKENS, TOKENS}, {0}, "streams or scalars"},
    {"mul", 2, {STREAM(4), STREAM(5)}, {0}, "width"},
    {"mul", 2, {VECTOR(5), STREAM(4)}, {0}, "width"},
    {"mul", 2, {MATRIX(4, 4), STREAM(4)}, {0}, "w(x)"},
    {"mul", 2, {VECTOR(4), VECTOR(4)}, {0}, "must be a stream"},
    {"mul", 2, {SCALAR, VECTOR(4)}, {0}, "must be a stream"},
    {"mul", 2, {STREAM(1), TOKENS}, {0}, "token"},
    {"div", 2, {VECTOR(4), SCALAR}, {0}, "only a stream"},
    {"affine", 1, {TOKENS}, {2, 0}, "token"},
    {"layernorm", 1, {VECTOR(4)}, {1e-5}, "applies to a stream"},
    {"layernorm", 2, {STREAM(4), VECTOR(3)}, {1e-5}, "width"},
    {"layernorm", 1, {STREAM(4)}, {1e-5, 7}, "eps mode"},
    {"layernorm", 1, {STREAM(4)}, {1e-5, 0, 3}, "variance"},
    {"layernorm", 1, {STREAM(1)}, {1e-5, 0, 0, 1}, "2 features"},
    {"layernorm", 1, {STREAM(4)}, {1e-5, 0, 0, 0, 3}, "divide"},
    {"layernorm", 2, {STREAM(4), VECTOR(4)}, {1e-5, 0, 0, 0, 2}, "width"},
    {"rmsnorm", 1, {STREAM(4)}, {1e-5, 0, 0, 1}, "about the mean"},
    {"scalenorm", 2, {STREAM(4), VECTOR(4)}, {1e-5}, "scalar"},
    {"l2norm", 1, {SCALAR}, {1e-5}, "stream"},
    {"batchnorm", 1, {VECTOR(4)}, {1e-5}, "stream"},
    {"batchnorm", 2, {STREAM(4), VECTOR(3)}, {1e-5}, "width"},
    {"batchnorm", 1, {STREAM(4)}, {-1}, "eps"},
    {"batchnorm", 1, {STREAM(4)}, {1, 0, TB_STATISTICS_RUNNING}, "such"},
    {"batchnorm", 1, {STREAM(4)}, {1, 0, TB_STATISTICS_FROZEN}, "fourth"},
    {"batchnorm", 1, {STREAM(4)}, {1, 0, 0, 2}, "momentum"},
    {"batchnorm", 1, {STREAM(4)}, {1, TB_EPS_CLAMP}, "inside"},
    {"powernorm", 1, {STREAM(4)}, {1, 0, 0, 0, -1}, "momentum"},
    {"powernorm", 4, {STREAM(1), VECTOR(1), VECTOR(1), VECTOR(1)}, {1},
     "twos"},
    {"powernorm", 6, {STREAM(1), VECTOR(1), VECTOR(1), VECTOR(1),
                      VECTOR(1), STREAM(2)}, {1}, "width 1"},
    {"dyt", 2, {STREAM(4), VECTOR(4)}, {0}, "scalars"},
    {"dyt", 3, {STREAM(4), SCALAR, VECTOR(3)}, {0}, "width"},
    {"derf", 3, {STREAM(4), SCALAR, VECTOR(4)}, {0}, "scalars"},
    {"derf", 3, {VECTOR(4), SCALAR, SCALAR}, {0}, "stream"},
    {"rmsnorm", 2, {STREAM(4), MATRIX(1, 4)}, {1e-5}, "width"},
    {"linear", 2, {STREAM(4), MATRIX(4, 3)}, {0}, "input size"},
    {"linear", 2, {STREAM(4), VECTOR(4)}, {0}, "matrix"},
    {"linear", 3, {STREAM(4), MATRIX(3, 4), VECTOR(4)}, {0}, "bias"},
    {"mha", 3, {STREAM(6), STREAM(6), STREAM(6)}, {4, 4}, "divide the"},
    {"mha", 3, {STREAM(6), STREAM(4), STREAM(4)}, {3, 2}, "kv_heads"},
    {"mha", 3, {STREAM(6), STREAM(4), STREAM(6)}, {3, 3}, "k must"},
    {"mha", 3, {STREAM(6), STREAM(6), STREAM(4)}, {3, 3}, "v must"},
    {"mha", 3, {STREAM(6), STREAM(6), STREAM(6)}, {0, 1}, "whole"},
    {"mha", 3, {STREAM(6), STREAM(6), STREAM(6)}, {1.5, 1}, "whole"},
    {"mha", 3, {STREAM(6), STREAM(6), STREAM(6)}, {1, 1, 0, 2}, "drop"},
    {"mha", 4, {STREAM(6), STREAM(6), STREAM(6), VECTOR(6)}, {1, 1},
     "mask"},
    {"mha", 3, {STREAM(6), STREAM(6), STREAM(6)},
     {1, 1, 0, 0, 1e308 * 10}, "finite"},
    {"relu", 1, {TOKENS}, {0}, "token"},
    {"softmax", 1, {SCALAR}, {0}, "one number"},
    {"softmax", 1, {TOKENS}, {0}, "token"},
    {"exp", 1, {TOKENS}, {0}, "token"},
    {"rope", 1, {STREAM(6)}, {0}, "whole"},
    {"rope", 1, {STREAM(6)}, {4}, "divide"},
    {"rope", 1, {STREAM(6)}, {2}, "even"},
    {"rope", 1, {STREAM(8)}, {2, 0, 0, 6}, "within a head"},
    {"rope", 1, {STREAM(8)}, {2, -1}, "base"},
    {"rope", 1, {STREAM(8)}, {2, 0, 0, 0, 0.5}, "positions"},
    {"rope", 1, {VECTOR(8)}, {2}, "stream"},
    {"concat", 2, {STREAM(4), VECTOR(4)}, {0}, "streams"},
    {"concat", 2, {STREAM(SIZE_MAX), STREAM(4)}, {0}, "too large"},
    {"mix", 3, {STREAM(4), STREAM(5), VECTOR(2)}, {0}, "one width"},
    {"mix", 3, {STREAM(4), STREAM(4), VECTOR(3)}, {0}, "per stream"},
    {"mix", 3, {STREAM(4), STREAM(4), STREAM(5)}, {0}, "per stream"},
    {"mix", 3, {STREAM(4), STREAM(4), SCALAR}, {0}, "matrix"},
    {"mix", 3, {STREAM(4), STREAM(4), VECTOR(2)}, {1}, "row"},
    {"mix", 3, {STREAM(4), STREAM(4), VECTOR(3)}, {0, 2, 3}, "columns"},
    {"mix", 3, {STREAM(4), STREAM(4), VECTOR(3)}, {0, 0, 4}, "per stream"},
    {"mix", 3, {STREAM(4), STREAM(4), MATRIX(2, 2)}, {2}, "row"},
    {"mix", 3, {STREAM(4), STREAM(4), MATRIX(2, 2)}, {0.5}, "row"},
    {"dot", 2, {STREAM(4), STREAM(5)}, {0}, "width"},
    {"headscale", 2, {STREAM(4), VECTOR(3)}, {0}, "heads"},
    {"headscale", 2, {STREAM(4), SCALAR}, {0}, "vector"},
    {"dot", 2, {STREAM(4), VECTOR(4)}, {0}, "streams"},
    {"sinkhorn", 1, {MATRIX(3, 4)}, {3}, "square"},
    {"sinkhorn", 1, {MATRIX(2, 8)}, {3}, "square"},
    {"sinkhorn", 1, {STREAM(8)}, {3}, "square"},
    {"sinkhorn", 1, {MATRIX(65, 65)}, {3}, "at most"},
    {"sinkhorn", 1, {VECTOR(4)}, {3}, "matrix"},
    {"sinkhorn", 1, {STREAM(4)}, {-1}, "rounds"},
    {"sinkhorn", 1, {STREAM(4)}, {0.5}, "rounds"},
    {"unit", 1, {STREAM(4)}, {0}, "matrix or a vector"},
    {"unit", 1, {VECTOR(4)}, {0, 1}, "columns"},
    {"unit", 1, {VECTOR(4)}, {-1}, "eps"},
    {"maxdiv", 1, {VECTOR(4)}, {8}, "stream"},
    {"maxdiv", 1, {STREAM(4)}, {1e308 * 10}, "finite"},
    {"skipdrop", 1, {STREAM(4)}, {1.5}, "0 .. 1"},
    {"sum", 1, {TOKENS}, {0}, "stream or a vector"},
    {"mean", 1, {MATRIX(2, 2)}, {0}, "stream or a vector"},
    {"maxdiv", 2, {STREAM(4), STREAM(3)}, {8}, "same shape"},
    {"shift", 2, {STREAM(4), VECTOR(3)}, {0}, "wide"},
    {"shift", 2, {STREAM(4), STREAM(4)}, {0}, "added with +"},
    {"shift", 2, {SCALAR, SCALAR}, {0}, "stream"},
    {"div", 2, {STREAM(4), STREAM(3)}, {0}, "width"},
    {"div", 2, {STREAM(4), VECTOR(4)}, {0}, "only a scalar"},
    {"embed", 2, {STREAM(4), MATRIX(4, 4)}, {0}, "tokens"},
    {"embed", 2, {TOKENS, VECTOR(4)}, {0}, "table"},
    {"position", 2, {STREAM(4), MATRIX(8, 5)}, {0}, "table"},
    {"position", 2, {STREAM(4), MATRIX(8, 4)}, {-1}, "start"},
    {"position", 2, {STREAM(4), MATRIX(8, 4)}, {0.5}, "whole"},
    {"sinusoid", 1, {STREAM(4)}, {-1}, "start"},
    {"drop", 1, {STREAM(4)}, {1.5}, "0 .. 1"},
    {"drop", 1, {STREAM(4)}, {-0.5}, "0 .. 1"},
    {"xent", 2, {STREAM(4), STREAM(4)}, {0}, "targets"},
    {"xent", 2, {VECTOR(4), TOKENS}, {0}, "logits"},
    {"xent", 2, {STREAM(4), TOKENS}, {1}, "smoothing"},
    {"xent", 2, {STREAM(4), TOKENS}, {-0.1}, "smoothing"},
    /* clang-format on */
};

TB_TEST(shapes_that_cannot_be_meant)
{
    for (size_t i = 0; i < TB_LEN(refusals); i++) {
        const refusal *r = &refusals[i];
        const char *why = "";
        tb_shape out;
        if (tb_op_find(r->op)->shape(r->in, r->nin, r->attr, &out, &why) ||
            !strstr(why, r->why))
            tb_test_fail(T, __FILE__, __LINE__, "%s, row %zu: \"%s\"", r->op, i,
                         why);
    }
}

/* A workspace too large to count is asked for as SIZE_MAX, never a small
 * wrapped number. */
TB_TEST(sizes_do_not_wrap)
{
    tb_opcall c = {.ctx = T->ctx,
                   .k = tb_kern_get(T->ctx, TB_F32),
                   .batch = (size_t)1 << 20,
                   .time = (size_t)1 << 60,
                   .nin = 3,
                   .in_shape = {STREAM(64), STREAM(64), STREAM(64)},
                   .out_shape = STREAM(64),
                   .attr = {64, 64, 1}};
    TB_CHECK(T, tb_op_mha.scratch(&c) == SIZE_MAX);
    TB_CHECK(T, tb_op_mha.saved(&c) == SIZE_MAX);
    TB_CHECK(T, tb_shape_count((tb_shape)STREAM(SIZE_MAX), 2, 3) == SIZE_MAX);
}

/* --- what later passes read --------------------------------------------- */

TB_TEST(a_forward_that_no_pass_follows_has_the_same_value)
{
    int seen = 0;
    for (size_t i = 0; tb_ops[i]; i++) {
        const variant v = {.op = tb_ops[i]->name,
                           .batch = 2,
                           .time = 3,
                           .nin = 1,
                           .in = {STREAM(37)}};
        bed b;
        double want[2 * 3 * 37];
        if (!tb_ops[i]->saves_ahead)
            continue;
        TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
        bed_fwd(&b);
        memcpy(want, b.y, sizeof want);
        memset(b.y, 0xff, sizeof want);
        b.c.saved = NULL;
        bed_fwd(&b);
        TB_CHECK(T, memcmp(want, b.y, sizeof want) == 0);
        seen++;
    }
    TB_CHECK(T, seen > 0);
}
