/* SPDX-License-Identifier: MIT */
/* Lengths, angles and spreads of long vectors: against plain sums, where
 * numbers are huge or none, and for any number of threads. */
#include "flow/walk.h"
#include "tb_test.h"

enum { MOST = 70001 }; /* several pieces of several blocks, and a rest */

static double *numbers(tb_test *T, const char *stream, double offset)
{
    double *x = tb_alloc(T->ctx, MOST, sizeof *x);
    tb_rng r = tb_rng_make(7, stream);
    for (size_t i = 0; x && i < MOST; i++)
        x[i] = tb_rng_normal(r, i) + offset;
    return x;
}

TB_TEST(lengths_of_a_part_and_the_rest)
{
    static const size_t sizes[] = {1, 15, 2048, 2049, 16384, MOST};
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    double *a = numbers(T, "part", 0.5), *b = numbers(T, "whole", 0);
    TB_REQUIRE(T, a && b);
    for (size_t s = 0; s < TB_LEN(sizes); s++) {
        double part = 0, whole = 0, rest = 0, dot = 0;
        for (size_t i = 0; i < sizes[s]; i++) {
            part += a[i] * a[i];
            whole += b[i] * b[i];
            rest += (b[i] - a[i]) * (b[i] - a[i]);
            dot += a[i] * (b[i] - a[i]);
        }
        tb_lengths l = tb_flow_lengths(T->ctx, k, sizes[s], a, b);
        TB_NEAR(T, l.part, tb_sqrt(part), 1e-12 * l.part);
        TB_NEAR(T, l.whole, tb_sqrt(whole), 1e-12 * l.whole);
        TB_NEAR(T, l.rest, tb_sqrt(rest), 1e-12 * l.rest);
        TB_NEAR(T, l.cos, dot / tb_sqrt(part * rest), 1e-12);
        TB_CHECK(T, l.nonfinite == 0);
        const tb_flow_term terms[] = {{a, 2}, {b, -1}};
        double beside = tb_flow_beside(T->ctx, k, sizes[s], terms, 1, b);
        TB_NEAR(T, beside, 2 * l.part / l.whole, 1e-12 * beside);
        beside = tb_flow_beside(T->ctx, k, sizes[s], terms, 0, b);
        TB_CHECK(T, beside == 0);
    }
    tb_free(T->ctx, a);
    tb_free(T->ctx, b);
}

/* Gradients that vanished, or exploded, have the same angles. */
TB_TEST(an_angle_at_any_size)
{
    static const double sizes[] = {1e-170, 1e-305, 1e170, 1e300};
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    double *a = numbers(T, "part", 0.5), *b = numbers(T, "whole", 0);
    TB_REQUIRE(T, a && b);
    double want = tb_flow_lengths(T->ctx, k, MOST, a, b).cos;
    TB_CHECK(T, want < -0.1);
    for (size_t s = 0; s < TB_LEN(sizes); s++) {
        double *x[] = {tb_alloc(T->ctx, MOST, sizeof *a),
                       tb_alloc(T->ctx, MOST, sizeof *a)};
        TB_REQUIRE(T, x[0] && x[1]);
        for (size_t i = 0; i < MOST; i++) {
            x[0][i] = a[i] * sizes[s];
            x[1][i] = b[i] * sizes[s];
        }
        TB_NEAR(T, tb_flow_lengths(T->ctx, k, MOST, x[0], x[1]).cos, want,
                1e-12);
        tb_free(T->ctx, x[0]);
        tb_free(T->ctx, x[1]);
    }
    tb_free(T->ctx, a);
    tb_free(T->ctx, b);
}

TB_TEST(huge_and_none)
{
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    double *x = numbers(T, "huge", 0);
    TB_REQUIRE(T, x != NULL);
    for (size_t i = 0; i < MOST; i++)
        x[i] = 0;
    TB_CHECK(T, tb_flow_lengths(T->ctx, k, MOST, x, x).whole == 0);
    x[0] = x[MOST - 1] = 3e200;
    x[5000] = x[40000] = 4e200;
    TB_NEAR(T, tb_flow_lengths(T->ctx, k, MOST, NULL, x).whole / 1e200,
            tb_sqrt(50), 1e-13);
    x[3] = 1 / tb_fabs(x[4]);
    x[50000] = -x[3];
    tb_lengths l = tb_flow_lengths(T->ctx, k, MOST, NULL, x);
    TB_CHECK(T, l.nonfinite == 2 && !tb_isfinite(l.whole));
    tb_free(T->ctx, x);
}

TB_TEST(spreads)
{
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    double *x = numbers(T, "spread", 1000);
    TB_REQUIRE(T, x != NULL);
    double mean = 0, square = 0;
    for (size_t i = 0; i < MOST; i++)
        mean += x[i] / MOST;
    for (size_t i = 0; i < MOST; i++)
        square += (x[i] - mean) * (x[i] - mean) / MOST;
    TB_NEAR(T, tb_flow_spread(T->ctx, k, MOST, x).mean, mean, 1e-9);
    TB_NEAR(T, tb_flow_spread(T->ctx, k, MOST, x).std, tb_sqrt(square), 1e-8);
    TB_NEAR(T, tb_flow_moments(T->ctx, k, MOST, x).std, tb_sqrt(square), 1e-12);
    for (size_t i = 0; i < MOST; i++)
        x[i] = 0.8125; /* sums of it are exact */
    TB_CHECK(T, tb_flow_moments(T->ctx, k, MOST, x).std == 0);
    tb_free(T->ctx, x);
}

TB_TEST(threads_do_not_show)
{
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    double *a = numbers(T, "a", 0.5), *b = numbers(T, "b", 0);
    TB_REQUIRE(T, a && b);
    tb_lengths want, got;
    tb_ctx_threads(T->ctx, 1);
    want = tb_flow_lengths(T->ctx, k, MOST, a, b);
    tb_ctx_threads(T->ctx, 4);
    got = tb_flow_lengths(T->ctx, k, MOST, a, b);
    TB_CHECK(T, got.whole == want.whole && got.part == want.part &&
                    got.rest == want.rest && got.cos == want.cos);
    tb_free(T->ctx, a);
    tb_free(T->ctx, b);
}
