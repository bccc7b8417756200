/* SPDX-License-Identifier: MIT */
/* Norms over tokens: masks, running statistics, powernorm's own backward, and
 * their gain against the whole Jacobian. */
#include "test_ops_call.h"

enum { FEW = 24 };

/* batchnorm or powernorm of [1, time, width], everything given; gain 1, bias
 * 0, mask 1. */
static bool open_full(tb_test *T, bed *b, const char *op, size_t time,
                      size_t width, double eps, double statistics)
{
    const variant v = {.op = op,
                       .batch = 1,
                       .time = time,
                       .nin = 6,
                       .in = {STREAM(width), VECTOR(width), VECTOR(width),
                              VECTOR(width), VECTOR(width), STREAM(1)},
                       .attr = {eps, 0, statistics}};
    if (!bed_open(T, b, &v, TB_F64))
        return false;
    bed_set_all(b, b->x[1], width, 1);
    bed_set_all(b, b->x[2], width, 0);
    bed_set_all(b, b->x[5], time, 1);
    return true;
}

static void update(const bed *b)
{
    tb_opcall c = b->c;
    c.state[3] = b->x[3];
    c.state[4] = b->x[4];
    b->op->update(&c);
}

/* --- batchnorm ---------------------------------------------------------- */

/* C070, C071: padding moves unmasked statistics, never masked ones */
TB_TEST(padding_and_mask)
{
    const double x[] = {1, 2, 3, 4, 5, 0, 0, 0, 0, 0};
    const double first[] = {-0.2773497, -1.4142100};
    const double mean[] = {1.5, 3}, var[] = {3.25, 2};
    for (int masked = 0; masked < 2; masked++) {
        bed b;
        TB_REQUIRE(T, open_full(T, &b, "batchnorm", 10, 1, 1e-5, 0));
        bed_put(&b, b.x[0], x, 10);
        bed_set_all(&b, b.x[3], 1, 0);
        bed_set_all(&b, b.x[4], 1, 0);
        for (size_t i = 5; i < 10; i++)
            ((double *)b.x[5])[i] = !masked;
        bed_fwd(&b);
        update(&b);
        TB_NEAR(T, bed_get(&b, b.y, 0), first[masked], 1e-7);
        TB_NEAR(T, bed_get(&b, b.x[3], 0), 0.1 * mean[masked], 1e-15);
        double m = masked ? 5 : 10;
        TB_NEAR(T, bed_get(&b, b.x[4], 0), 0.1 * var[masked] * m / (m - 1),
                1e-15);
        for (size_t i = 5; i < 10 && masked; i++)
            TB_CHECK(T, bed_get(&b, b.y, i) == 0);
    }
}

/* C073: eps inside the root; a constant batch gives exactly the bias */
TB_TEST(batch_of_four)
{
    const double x[] = {1, 2, 3, 4};
    const double want[] = {-1.3416354, -0.4472118, 0.4472118, 1.3416354};
    double sum = 0;
    bed b;
    TB_REQUIRE(T, open_full(T, &b, "batchnorm", 4, 1, 1e-5, 0));
    bed_put(&b, b.x[0], x, 4);
    bed_fwd(&b);
    TB_NEAR_N(T, (double *)b.y, want, 4, 1e-7);
    for (size_t i = 0; i < 4; i++)
        sum += bed_get(&b, b.y, i);
    TB_NEAR(T, sum, 0, 1e-12);
    bed_set_all(&b, b.x[0], 4, 0.1);
    bed_set_all(&b, b.x[2], 1, 0.7);
    bed_fwd(&b);
    for (size_t i = 0; i < 4; i++)
        TB_CHECK(T, bed_get(&b, b.y, i) == 0.7);
}

TB_TEST(frozen_statistics)
{
    bed b;
    TB_REQUIRE(T,
               open_full(T, &b, "batchnorm", 3, 2, 0.5, TB_STATISTICS_FROZEN));
    const double mean[] = {1, -2}, var[] = {3.5, 0.5};
    bed_put(&b, b.x[3], mean, 2);
    bed_put(&b, b.x[4], var, 2);
    bed_fwd(&b);
    for (size_t i = 0; i < 6; i++)
        TB_NEAR(T, bed_get(&b, b.y, i),
                (bed_get(&b, b.x[0], i) - mean[i % 2]) /
                    tb_sqrt(var[i % 2] + 0.5),
                1e-14);
    update(&b);
    TB_SAME(T, b.x[3], mean, sizeof mean);
    TB_SAME(T, b.x[4], var, sizeof var);
}

/* Training's rate and one token, whose variance says nothing. */
TB_TEST(running_statistics)
{
    bed b;
    TB_REQUIRE(T, open_full(T, &b, "batchnorm", 1, 1, 1e-5, 0));
    b.c.attr[TB_ATTR_BATCH_MOMENTUM] = 0.25;
    bed_set_all(&b, b.x[0], 1, 8);
    bed_set_all(&b, b.x[3], 1, 4);
    bed_set_all(&b, b.x[4], 1, 3);
    bed_fwd(&b);
    update(&b);
    TB_CHECK(T, bed_get(&b, b.x[3], 0) == 5 && bed_get(&b, b.x[4], 0) == 3);
    bed_set_all(&b, b.x[5], 1, 0); /* and none at all */
    bed_fwd(&b);
    bed_tan(&b, 1);
    bed_bwd(&b, 7);
    update(&b);
    TB_CHECK(T, bed_get(&b, b.x[3], 0) == 5 && bed_get(&b, b.x[4], 0) == 3);
    TB_CHECK(T, bed_get(&b, b.y, 0) == 0 && bed_get(&b, b.ty, 0) == 0);
    for (int i = 0; i < 3; i++)
        TB_CHECK(T, bed_get(&b, b.g[i], 0) == 0);
}

TB_TEST(feature_without_variance)
{
    size_t row = 9;
    bed b;
    TB_REQUIRE(T, open_full(T, &b, "batchnorm", 3, 2, 0, 0));
    bed_fwd(&b);
    tb_opcall c = bed_call(&b);
    TB_CHECK(T, b.op->check(&c, &row) == NULL);
    for (size_t i = 0; i < 3; i++)
        ((double *)b.x[0])[2 * i + 1] = 5;
    ((double *)b.x[5])[0] = 0;
    bed_fwd(&b);
    TB_STR(T, b.op->check(&c, &row),
           "a feature has zero variance with eps = 0, first met");
    TB_CHECK(T, row == 1);
    ((double *)b.x[5])[2] = 0.5;
    TB_STR(T, b.op->check(&c, &row),
           "a mask holds 1 (keep) or 0 (hide), not this");
    TB_CHECK(T, row == 2);
}

/* --- powernorm ---------------------------------------------------------- */

/* Algorithm 2 of the paper, written out: two features, three tokens. */
TB_TEST(powernorm_after_warm_up)
{
    const double square[] = {2, 0.5}, nu[] = {0.3, -0.2}, eps = 0.1;
    bed b;
    TB_REQUIRE(T,
               open_full(T, &b, "powernorm", 3, 2, eps, TB_STATISTICS_RUNNING));
    bed_put(&b, b.x[3], square, 2);
    bed_put(&b, b.x[4], nu, 2);
    bed_fill(T, TB_F64, b.x[1], 2);
    bed_fwd(&b);
    bed_bwd(&b, 7);
    update(&b);
    for (size_t j = 0; j < 2; j++) {
        double r = 1 / tb_sqrt(square[j] + eps), lambda = 0, gamma = 0, psi = 0;
        for (size_t i = 0; i < 3; i++) {
            double x = bed_get(&b, b.x[0], 2 * i + j), n = r * x;
            double h = bed_get(&b, b.gy, 2 * i + j) * bed_get(&b, b.x[1], j);
            TB_NEAR(T, bed_get(&b, b.g[0], 2 * i + j), r * (h - nu[j] * n),
                    1e-14);
            lambda += h * n / 3, gamma += n * n / 3, psi += x * x / 3;
        }
        TB_NEAR(T, bed_get(&b, b.x[3], j), 0.9 * square[j] + 0.1 * psi, 1e-14);
        TB_NEAR(T, bed_get(&b, b.x[4], j),
                nu[j] * (1 - 0.1 * gamma) + 0.1 * lambda, 1e-14);
    }
}

/* nu settles where the approximate backward has no part along n left: there it
 * agrees with the batch statistic's exact one. */
TB_TEST(powernorm_nu_settles)
{
    bed b, exact;
    uint64_t draws = T->draws;
    TB_REQUIRE(T,
               open_full(T, &b, "powernorm", 4, 3, 0, TB_STATISTICS_RUNNING));
    T->draws = draws;
    TB_REQUIRE(T, open_full(T, &exact, "powernorm", 4, 3, 0, 0));
    bed_fwd(&exact);
    bed_bwd(&exact, 1);
    for (int i = 0; i < 1000; i++) {
        bed_fwd(&b);
        bed_bwd(&b, 1);
        update(&b);
    }
    TB_NEAR_N(T, (double *)b.g[0], (double *)exact.g[0], 12, 1e-12);
}

/* Without a backward pass nu stays. */
TB_TEST(powernorm_without_backward)
{
    bed b;
    TB_REQUIRE(T, open_full(T, &b, "powernorm", 3, 2, 0.1, 0));
    double nu = bed_get(&b, b.x[4], 0), square = bed_get(&b, b.x[3], 0);
    bed_fwd(&b);
    update(&b);
    TB_CHECK(T, bed_get(&b, b.x[4], 0) == nu);
    TB_CHECK(T, bed_get(&b, b.x[3], 0) != square);
}

/* --- gain --------------------------------------------------------------- */

/* Largest singular value of a symmetric J by powers of J^2. */
static double largest(size_t n, double j[FEW][FEW])
{
    double v[FEW], w[FEW], s = 0;
    for (size_t i = 0; i < n; i++)
        v[i] = 1 + 0.37 * (double)(i * i % 7);
    for (int turn = 0; turn < 4000; turn++) {
        double length = 0;
        for (size_t r = 0; r < n; r++) {
            w[r] = 0;
            for (size_t c = 0; c < n; c++)
                w[r] += j[r][c] * v[c];
            length += w[r] * w[r];
        }
        s = tb_sqrt(length);
        for (size_t i = 0; i < n && s > 0; i++)
            v[i] = w[i] / s;
    }
    return s;
}

static void compare_gain(tb_test *T, bed *b, size_t kept)
{
    double j[FEW][FEW], square = 0, rms, max;
    size_t n = b->nout, d = b->c.out_shape.width;
    bed_fwd(b);
    for (size_t c = 0; c < n; c++) {
        bed_set_all(b, b->t[0], n, 0);
        ((double *)b->t[0])[c] = 1;
        bed_tan(b, 1);
        for (size_t r = 0; r < n; r++) {
            j[r][c] = ((double *)b->ty)[r];
            square += j[r][c] * j[r][c];
        }
    }
    tb_opcall c = bed_call(b);
    b->op->gain(&c, &rms, &max);
    TB_NEAR(T, rms, tb_sqrt(square / (double)(kept * d)), 1e-12);
    TB_NEAR(T, max, largest(n, j), 1e-9);
}

TB_TEST(gain_over_tokens)
{
    const char *const ops[] = {"batchnorm", "powernorm"};
    for (size_t k = 0; k < 2 * 5 * 2 * 2; k++) {
        size_t time = k / 2 % 5 + 1, kept = time;
        bool frozen = k / 10 % 2, masked = k / 20 % 2;
        bed b;
        TB_REQUIRE(T, open_full(T, &b, ops[k % 2], time, 3, 0.3,
                                frozen ? TB_STATISTICS_FROZEN : 0));
        bed_fill(T, TB_F64, b.x[1], 3);
        if (masked && time > 1) {
            ((double *)b.x[5])[time / 2] = 0;
            kept--;
        }
        compare_gain(T, &b, kept);
    }
}

static double at_one(tb_test *T, const char *op, double alpha, double shift,
                     double *rms, double *max)
{
    bool erf = tb_streq(op, "derf");
    const variant v = {.op = op,
                       .batch = 1,
                       .time = 1,
                       .nin = erf ? 4 : 3,
                       .in = {STREAM(2), SCALAR,
                              erf ? (tb_shape)SCALAR : (tb_shape)VECTOR(2),
                              VECTOR(2)}};
    const double x[] = {1, 0}, gain[] = {1, -3};
    bed b;
    if (!bed_open(T, &b, &v, TB_F64))
        return -1;
    bed_put(&b, b.x[0], x, 2);
    bed_set_all(&b, b.x[1], 1, alpha);
    if (erf)
        bed_set_all(&b, b.x[2], 1, shift);
    bed_put(&b, b.x[erf ? 3 : 2], gain, 2);
    bed_fwd(&b);
    tb_opcall c = bed_call(&b);
    b.op->gain(&c, rms, max);
    return bed_get(&b, b.y, 0);
}

/* Values and slopes known in closed form. */
TB_TEST(squashing_norms)
{
    double rms, max, t = 0.46211715726000975; /* tanh(1/2) */
    TB_NEAR(T, at_one(T, "dyt", 0.5, 0, &rms, &max), t, 1e-15);
    double a = 0.5 * (1 - t * t);
    TB_NEAR(T, max, 1.5, 1e-15);
    TB_NEAR(T, rms, tb_sqrt((a * a + 2.25) / 2), 1e-15);
    TB_NEAR(T, at_one(T, "derf", 0.5, 0, &rms, &max), 0.5204998778130465,
            1e-15);
    TB_NEAR(T, max, 1.5 * 1.1283791670955126, 1e-14);
    TB_NEAR(T, at_one(T, "derf", 0.5, 0.5, &rms, &max), 0.8427007929497149,
            1e-15);
}
