/* SPDX-License-Identifier: MIT */
/* Random numbers: published vectors, moments, independence of order. */
#include "tb_test.h"

#include <math.h>

/* Philox 4x32-10 vectors of Random123 (kat_vectors): counter, key, result. */
TB_TEST(philox_known_answers)
{
    static const struct {
        uint64_t counter, stream, seed, low;
    } row[] = {
        {0, 0, 0, 0xE169C58D6627E8D5u},
        {~(uint64_t)0, ~(uint64_t)0, ~(uint64_t)0, 0x41C83B0E408F276Du},
        {0x85A308D3243F6A88u, 0x0370734413198A2Eu, 0x299F31D0A4093822u,
         0x94FDCCEBD16CFE09u},
    };
    for (size_t i = 0; i < TB_LEN(row); i++) {
        uint64_t got =
            tb_rng_u64((tb_rng){row[i].seed, row[i].stream}, row[i].counter);
        if (got != row[i].low)
            tb_test_fail(T, __FILE__, __LINE__, "row %zu: %llx", i,
                         (unsigned long long)got);
    }
}

TB_TEST(hash_separates)
{
    TB_CHECK(T, tb_hash("a", 1) != tb_hash("b", 1));
    TB_CHECK(T, tb_hash("", 0) != tb_hash("\0", 1));
    TB_CHECK(T, tb_hash("ab", 2) == tb_hash("abc", 2));
    /* one flipped bit changes about half of 64 */
    int flipped = 0;
    for (int i = 0; i < 64; i++) {
        uint64_t a = (uint64_t)0x1234567 * (uint64_t)(i + 1);
        uint64_t b = a ^ (uint64_t)1 << i;
        flipped += __builtin_popcountll(tb_hash(&a, 8) ^ tb_hash(&b, 8));
    }
    TB_NEAR(T, flipped / 64.0, 32, 0.1);
}

TB_TEST(streams_differ)
{
    tb_rng a = tb_rng_make(1, "layers.0.attn.q.weight");
    tb_rng b = tb_rng_make(1, "layers.0.attn.k.weight");
    tb_rng c = tb_rng_make(2, "layers.0.attn.q.weight");
    int equal = 0;
    for (uint64_t i = 0; i < 1000; i++)
        equal += tb_rng_u64(a, i) == tb_rng_u64(b, i) ||
                 tb_rng_u64(a, i) == tb_rng_u64(c, i) ||
                 tb_rng_u64(a, i) == tb_rng_u64(a, i + 1);
    TB_CHECK(T, equal == 0);
    TB_CHECK(T, tb_rng_u64(a, 7) == tb_rng_u64(a, 7));
}

/* Limits are five standard errors. */
TB_TEST(uniform_moments)
{
    enum { N = 200000 };
    double sum = 0, square = 0, lag = 0, before = 0.5, low = 1, high = 0;
    for (int i = 0; i < N; i++) {
        double u = tb_test_uniform(T);
        sum += u;
        square += u * u;
        lag += (u - 0.5) * (before - 0.5);
        before = u;
        low = u < low ? u : low;
        high = u > high ? u : high;
    }
    TB_CHECK(T, low >= 0 && low < 1e-4 && high < 1 && high > 1 - 1e-4);
    TB_NEAR(T, sum / N, 0.5, 5 * sqrt(1.0 / 12 / N));
    TB_NEAR(T, square / N, 1.0 / 3, 5 * sqrt(4.0 / 45 / N));
    TB_NEAR(T, lag / N, 0, 5 / 12.0 / sqrt(N));
}

TB_TEST(normal_moments)
{
    enum { N = 200000 };
    double m[5] = {0}, inside = 0, lag = 0, before = 0;
    for (int i = 0; i < N; i++) {
        double z = tb_test_normal(T), p = 1;
        TB_REQUIRE(T, tb_isfinite(z));
        for (int k = 0; k < 5; k++, p *= z)
            m[k] += p / N;
        inside += fabs(z) < 1;
        lag += z * before;
        before = z;
    }
    TB_NEAR(T, m[1], 0, 5 / sqrt(N));
    TB_NEAR(T, m[2], 1, 5 * sqrt(2.0 / N));
    TB_NEAR(T, m[3], 0, 5 * sqrt(15.0 / N));
    TB_NEAR(T, m[4], 3, 5 * sqrt(96.0 / N));
    TB_NEAR(T, inside / N, erf(sqrt(0.5)), 5 * sqrt(0.22 / N));
    TB_NEAR(T, lag / N, 0, 5 / sqrt(N));
}

/* Pearson's chi square with 6 degrees of freedom: 99.99 % below 27.9. */
TB_TEST(below_is_even)
{
    enum { N = 70000, K = 7 };
    int count[K] = {0};
    tb_rng r = tb_rng_make(3, T->name);
    double chi = 0;
    for (uint64_t i = 0; i < N; i++)
        count[tb_rng_below(r, i, K)]++;
    for (int k = 0; k < K; k++)
        chi += (count[k] - N / K) * (double)(count[k] - N / K) / (N / K);
    if (chi > 27.9)
        tb_test_fail(T, __FILE__, __LINE__, "chi square %.1f", chi);
    TB_CHECK(T, tb_rng_below(r, 0, 1) == 0);
}

/* n = 3 * 2^62: a quarter of the draws is rejected; a plain remainder would
 * make the lowest 2^62 values twice as likely (half of all). */
TB_TEST(below_rejects)
{
    enum { N = 20000 };
    int low = 0;
    tb_rng r = tb_rng_make(4, T->name);
    const uint64_t n = (uint64_t)3 << 62;
    for (uint64_t i = 0; i < N; i++) {
        uint64_t v = tb_rng_below(r, i, n);
        TB_REQUIRE(T, v < n);
        low += v < (uint64_t)1 << 62;
    }
    TB_NEAR(T, low / (double)N, 1.0 / 3, 5 * sqrt(2.0 / 9 / N));
}
