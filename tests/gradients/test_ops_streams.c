/* SPDX-License-Identifier: MIT */
/* Positions, several streams and their mixing matrices, whole-sequence drops,
 * sums: what is known of them in closed form. */
#include "test_ops_call.h"

static bool open_1(tb_test *T, bed *b, const char *op, size_t batch,
                   size_t time, tb_shape in, const double *attr)
{
    variant v = {.op = op, .batch = batch, .time = time, .nin = 1, .in = {in}};
    for (int i = 0; i < TB_OP_ATTRS && attr; i++)
        v.attr[i] = attr[i];
    return bed_open(T, b, &v, TB_F64);
}

/* --- rope --------------------------------------------------------------- */

/* Lengths stay, and q . k depends on the distance alone. */
TB_TEST(rope_turns)
{
    enum { W = 12, LONG = 5 };
    for (int pairs = 0; pairs < 2; pairs++) {
        const double attr[TB_OP_ATTRS] = {2, 100, pairs};
        double first = 0;
        bed b;
        TB_REQUIRE(T,
                   open_1(T, &b, "rope", 1, LONG, (tb_shape)STREAM(W), attr));
        double *x = b.x[0], *y = b.y;
        for (size_t i = W; i < LONG * W; i++)
            x[i] = x[i - (size_t)W]; /* one vector at every time */
        bed_fwd(&b);
        for (size_t t = 0; t < LONG; t++) {
            double length = 0, at_x = 0, step = 0;
            for (size_t i = 0; i < W; i++) {
                length += y[t * W + i] * y[t * W + i];
                at_x += x[i] * x[i];
                step += t ? y[t * W + i] * y[(t - 1) * W + i] : 0;
            }
            TB_NEAR(T, length, at_x, 1e-12);
            first = t == 1 ? step : first;
            TB_NEAR(T, step, t ? first : 0, 1e-12);
        }
        TB_SAME(T, y, x, W * sizeof *x); /* time 0 does not turn */
    }
}

/* A later start is a later time; elements beyond the rotary part pass. */
TB_TEST(rope_start_and_rotary)
{
    const double from0[TB_OP_ATTRS] = {1, 0, 0, 4};
    const double from3[TB_OP_ATTRS] = {1, 0, 0, 4, 3};
    bed a, b;
    TB_REQUIRE(T, open_1(T, &a, "rope", 1, 5, (tb_shape)STREAM(6), from0));
    TB_REQUIRE(T, open_1(T, &b, "rope", 1, 2, (tb_shape)STREAM(6), from3));
    memcpy(b.x[0], (double *)a.x[0] + 18, 12 * sizeof(double));
    bed_fwd(&a), bed_fwd(&b);
    TB_SAME(T, b.y, (double *)a.y + 18, 12 * sizeof(double));
    for (size_t t = 0; t < 5; t++)
        TB_SAME(T, (double *)a.y + 6 * t + 4, (double *)a.x[0] + 6 * t + 4,
                2 * sizeof(double));
}

/* --- sinkhorn ----------------------------------------------------------- */

/* mHC's start: identity logits at n = 4 do not give the identity, and zero
 * logits give 1/n. */
TB_TEST(sinkhorn_of_the_identity)
{
    const double rounds[TB_OP_ATTRS] = {20}, e = 2.718281828459045;
    bed b;
    TB_REQUIRE(T,
               open_1(T, &b, "sinkhorn", 1, 1, (tb_shape)MATRIX(4, 4), rounds));
    for (size_t i = 0; i < 16; i++)
        ((double *)b.x[0])[i] = i % 5 == 0;
    bed_fwd(&b);
    for (size_t i = 0; i < 16; i++)
        TB_NEAR(T, bed_get(&b, b.y, i), (i % 5 == 0 ? e : 1) / (e + 3), 1e-15);
    bed_set_all(&b, b.x[0], 16, 0);
    bed_fwd(&b);
    for (size_t i = 0; i < 16; i++)
        TB_NEAR(T, bed_get(&b, b.y, i), 0.25, 1e-15);
}

/* Many rounds make it doubly stochastic, also from logits whose exponentials
 * leave the range of doubles. */
TB_TEST(sinkhorn_is_doubly_stochastic)
{
    for (int far = 0; far < 2; far++) {
        const double rounds[TB_OP_ATTRS] = {300, far};
        bed b;
        TB_REQUIRE(
            T, open_1(T, &b, "sinkhorn", 1, 2, (tb_shape)STREAM(9), rounds));
        for (size_t i = 0; i < 18 && far; i++)
            ((double *)b.x[0])[i] += 1000 * (double)(i % 3);
        bed_fwd(&b);
        for (size_t m = 0; m < 2; m++)
            for (size_t k = 0; k < 3; k++) {
                double row = 0, column = 0;
                for (size_t i = 0; i < 3; i++) {
                    row += bed_get(&b, b.y, 9 * m + 3 * k + i);
                    column += bed_get(&b, b.y, 9 * m + 3 * i + k);
                }
                TB_NEAR(T, row, 1, 1e-9);
                TB_NEAR(T, column, 1, 1e-9);
            }
    }
}

/* --- mix ---------------------------------------------------------------- */

/* A unit row picks a stream (the start of hyper-connections), and only that
 * row of A gets a gradient. */
TB_TEST(mix_picks_a_stream)
{
    const variant v = {.op = "mix",
                       .batch = 2,
                       .time = 3,
                       .nin = 4,
                       .in = {STREAM(4), STREAM(4), STREAM(4), MATRIX(3, 3)},
                       .attr = {2}};
    const double eye[] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    bed b;
    TB_REQUIRE(T, bed_open(T, &b, &v, TB_F32));
    bed_put(&b, b.x[3], eye, 9);
    bed_fwd(&b);
    bed_bwd(&b, 15);
    TB_SAME(T, b.y, b.x[2], b.nout * sizeof(float));
    TB_SAME(T, b.g[2], b.gy, b.nout * sizeof(float));
    for (size_t i = 0; i < 6; i++) /* other rows of A get no gradient */
        TB_CHECK(T, bed_get(&b, b.g[3], i) == 0);
    TB_CHECK(T, bed_get(&b, b.g[3], 6) != 0);
}

/* --- unit --------------------------------------------------------------- */

TB_TEST(unit_lines)
{
    const double w[] = {3, 4, 0, 0}, rows[] = {0.6, 0.8, 0, 0};
    const double eps[TB_OP_ATTRS] = {1e-6}, none[TB_OP_ATTRS] = {0};
    size_t row = 9;
    bed b;
    TB_REQUIRE(T, open_1(T, &b, "unit", 1, 1, (tb_shape)MATRIX(2, 2), eps));
    bed_put(&b, b.x[0], w, 4);
    bed_fwd(&b);
    bed_bwd(&b, 1);
    TB_NEAR_N(T, (double *)b.y, rows, 4, 1e-15);
    TB_CHECK(T, bed_get(&b, b.g[0], 2) == bed_get(&b, b.gy, 2) / 1e-6);
    tb_opcall c = bed_call(&b);
    TB_CHECK(T, b.op->check(&c, &row) == NULL);
    TB_REQUIRE(T, open_1(T, &b, "unit", 1, 1, (tb_shape)MATRIX(2, 2), none));
    bed_put(&b, b.x[0], w, 4);
    bed_fwd(&b);
    c = bed_call(&b);
    TB_STR(T, b.op->check(&c, &row), "no direction with eps = 0");
    TB_CHECK(T, row == 1);
}

/* --- maxdiv ------------------------------------------------------------- */

TB_TEST(maxdiv_holds_the_maximum)
{
    const double x[] = {1, -4, 0, 0, 2, 1}, row[] = {2, -8, 0, 0, 8, 4};
    const double all[] = {2, -8, 0, 0, 4, 2};
    for (int whole = 0; whole < 2; whole++) {
        const double attr[TB_OP_ATTRS] = {8, whole};
        const double *want = whole ? all : row;
        bed b;
        TB_REQUIRE(T, open_1(T, &b, "maxdiv", 1, 3, (tb_shape)STREAM(2), attr));
        bed_put(&b, b.x[0], x, 6);
        bed_fwd(&b);
        bed_bwd(&b, 1);
        TB_NEAR_N(T, (double *)b.y, want, 6, 1e-15);
        for (size_t i = 0; i < 6; i++)
            if (x[i] != 0)
                TB_NEAR(T, bed_get(&b, b.g[0], i),
                        bed_get(&b, b.gy, i) * (want[i] / x[i]), 1e-14);
    }
}

/* --- skipdrop ----------------------------------------------------------- */

/* All of a sequence or nothing of it, the share right, p = 0 the identity. */
TB_TEST(skipdrop_drops_sequences)
{
    enum { MANY = 4000 };
    const double p[] = {0, 0.25, 1};
    for (size_t k = 0; k < TB_LEN(p); k++) {
        const double attr[TB_OP_ATTRS] = {p[k]};
        size_t kept = 0;
        bed b;
        TB_REQUIRE(
            T, open_1(T, &b, "skipdrop", MANY, 2, (tb_shape)STREAM(3), attr));
        bed_set_all(&b, b.x[0], b.n[0], 3);
        bed_fwd(&b);
        for (size_t s = 0; s < MANY; s++) {
            double y = bed_get(&b, b.y, 6 * s);
            TB_CHECK(T, y == 0 || y == 3 * (1 / (1 - p[k])));
            for (size_t i = 1; i < 6; i++)
                TB_CHECK(T, bed_get(&b, b.y, 6 * s + i) == y);
            kept += y != 0;
        }
        TB_NEAR(T, (double)kept / MANY - (1 - p[k]), 0,
                5 * tb_sqrt(p[k] * (1 - p[k]) / MANY) + 1e-15);
    }
}

/* --- elements and sums -------------------------------------------------- */

TB_TEST(abs_at_zero_and_exp_of_nothing)
{
    const double x[] = {0, -2, 3};
    const double slope[] = {0, -1, 1};
    bed b;
    TB_REQUIRE(T, open_1(T, &b, "abs", 1, 1, (tb_shape)STREAM(3), NULL));
    bed_put(&b, b.x[0], x, 3);
    bed_set_all(&b, b.gy, 3, 1);
    bed_fwd(&b);
    bed_bwd(&b, 1);
    TB_SAME(T, b.g[0], slope, sizeof slope);
    TB_REQUIRE(T, open_1(T, &b, "exp", 1, 1, (tb_shape)STREAM(3), NULL));
    bed_set_all(&b, b.x[0], 3, 0);
    bed_fwd(&b);
    TB_CHECK(T, bed_get(&b, b.y, 1) == 1);
}

TB_TEST(sums_of_each_token)
{
    const double x[] = {1, 2, 3, -4, 5, -6};
    bed b;
    TB_REQUIRE(T, open_1(T, &b, "mean", 1, 2, (tb_shape)STREAM(3), NULL));
    bed_put(&b, b.x[0], x, 6);
    bed_fwd(&b);
    TB_CHECK(T, bed_get(&b, b.y, 0) == 2);
    TB_NEAR(T, bed_get(&b, b.y, 1), -5.0 / 3, 1e-15);
}

/* IEEE: nothing is caught, nothing is clamped. */
TB_TEST(division_by_zero)
{
    const variant v = {.op = "div",
                       .batch = 1,
                       .time = 1,
                       .nin = 2,
                       .in = {STREAM(3), STREAM(3)}};
    const double a[] = {1, -1, 0}, zero[] = {0, 0, 0};
    bed b;
    TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
    bed_put(&b, b.x[0], a, 3);
    bed_put(&b, b.x[1], zero, 3);
    bed_fwd(&b);
    TB_CHECK(T, bed_get(&b, b.y, 0) == __builtin_inf());
    TB_CHECK(T, bed_get(&b, b.y, 1) == -__builtin_inf());
    TB_CHECK(T, bed_get(&b, b.y, 2) != bed_get(&b, b.y, 2));
}
