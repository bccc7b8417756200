/* SPDX-License-Identifier: MIT */
/* Tokens, outliers and angles: against what a sort and the C library say. */
#include <math.h>
#include <stdlib.h>

#include "flow/walk.h"
#include "tb_test.h"

TB_TEST(angles)
{
    for (int i = -1000; i <= 1000; i++) {
        double want = acos(i / 1000.0) / acos(-1);
        TB_NEAR(T, tb_flow_angle(i / 1000.0), want, 4e-16);
    }
    TB_CHECK(T, tb_flow_angle(1) == 0 && tb_flow_angle(1 + 1e-15) == 0);
    TB_NEAR(T, tb_flow_angle(-1 - 1e-15), 1, 1e-15);
    TB_NEAR(T, tb_flow_angle(0), 0.5, 1e-15);
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool are_outliers(const double *sorted, size_t n, const double top[3],
                         double largest, double middle)
{
    bool same = middle == sorted[n / 2] && largest == sorted[n - 1];
    for (size_t k = 0; k < 3; k++)
        same = same && top[k] == (k < n ? sorted[n - 1 - k] : 0);
    return same;
}

/* One piece and several; numbers of all sizes, and many that are equal. */
TB_TEST(outliers)
{
    enum { N = 78125 };
    static double x[N], sorted[N];
    static float small[N];
    for (size_t n = 1; n <= N; n = n < 8 ? n + 1 : n * 5 / 2) {
        double middle, top[3];
        size_t at;
        for (size_t i = 0; i < n; i++) {
            double v = tb_test_normal(T) * tb_exp(8 * tb_test_normal(T));
            small[i] = (float)(n % 3 ? v : trunc(v));
            x[i] = (double)small[i];
            sorted[i] = fabs(x[i]);
        }
        qsort(sorted, n, sizeof *sorted, rising);
        TB_OKAY(T, tb_flow_outliers(T->ctx, TB_F64, n, x, top, &at, &middle));
        TB_CHECK(T, are_outliers(sorted, n, top, fabs(x[at]), middle));
        TB_OKAY(T,
                tb_flow_outliers(T->ctx, TB_F32, n, small, top, &at, &middle));
        TB_CHECK(T, are_outliers(sorted, n, top, fabs(x[at]), middle));
    }
}

/* The first of equals; what is not finite is no outlier, but counts. */
TB_TEST(outliers_that_are_equal_or_not_finite)
{
    enum { N = 50000 };
    static float x[N];
    double middle, top[3];
    size_t at;
    for (size_t i = 0; i < N; i++)
        x[i] = 1;
    x[30001] = x[40001] = -7;
    TB_OKAY(T, tb_flow_outliers(T->ctx, TB_F32, N, x, top, &at, &middle));
    TB_CHECK(T, top[0] == 7 && top[1] == 7 && top[2] == 1 && at == 30001);
    TB_CHECK(T, middle == 1);
    for (size_t i = 0; i < N / 2 + 1; i++)
        x[i] = i % 2 ? -INFINITY : (float)NAN;
    TB_OKAY(T, tb_flow_outliers(T->ctx, TB_F32, N, x, top, &at, &middle));
    TB_CHECK(T, top[0] == 7 && top[2] == 1 && at == 30001);
    TB_CHECK(T, middle == (double)INFINITY);
}

/* Two streams of five tokens: a token is both of its rows. */
TB_TEST(tokens)
{
    enum { D = 3, TOKENS = 5 };
    double x[2 * TOKENS * D] = {0}, low, high;
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    for (size_t t = 0; t < TOKENS; t++) {
        x[t * D] = 3.0 * (double)(t + 1);
        x[(TOKENS + t) * D + 1] = 4.0 * (double)(t + 1);
    }
    tb_flow_tokens(T->ctx, k, TOKENS, D, 2, x, &low, &high);
    TB_NEAR(T, low, 5, 1e-15);
    TB_NEAR(T, high, 25, 1e-14);
    tb_flow_tokens(T->ctx, k, TOKENS, D, 1, x, &low, &high);
    TB_CHECK(T, low == 3 && high == 15);
    x[2 * D + 2] = (double)NAN;
    tb_flow_tokens(T->ctx, k, TOKENS, D, 1, x, &low, &high);
    TB_CHECK(T, low != low && high != high);
}
