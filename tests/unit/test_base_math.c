/* SPDX-License-Identifier: MIT */
/* Errors of our elementary functions in units in the last place, measured
 * against the C library's long double; special values; and the exact bits,
 * which every compiler and instruction set must reproduce. */
#include "tb_test.h"

#include <math.h>

/* The number formats' spacing at `want`: `digits` bits, least exponent. */
static double ulps(long double got, long double want, int digits, int least)
{
    int e;
    if (!isfinite((double)want) || got == want)
        return 0;
    frexpl(want, &e);
    e = e - digits > least ? e - digits : least;
    return (double)(fabsl(got - want) / ldexpl(1, e));
}

typedef struct range {
    double low, high;
} range;

/* Largest error over random x in [low, high] is at most `bound`, the number
 * stated beside the function. */
static void check_double(tb_test *T, const char *name, double (*f)(double),
                         long double (*ref)(long double), range in,
                         double bound)
{
    double worst = 0, at = 0;
    for (int i = 0; i < 200000; i++) {
        double x = in.low + (in.high - in.low) * tb_test_uniform(T);
        double u = ulps((long double)f(x), ref((long double)x), 53, -1074);
        if (!(u <= worst)) {
            worst = u;
            at = x;
        }
    }
    if (!(worst <= bound))
        tb_test_fail(T, __FILE__, __LINE__, "%s(%g): %.3f ulp, stated %.2f",
                     name, at, worst, bound);
}

/* Floats of every magnitude: each 4001st bit pattern of either sign. */
static void check_float(tb_test *T, const char *name, float (*f)(float),
                        double (*ref)(double), double bound)
{
    double worst = 0, at = 0;
    for (uint64_t i = 0; i < (uint64_t)1 << 32; i += 4001) {
        uint32_t bits = (uint32_t)i;
        float x, y;
        memcpy(&x, &bits, sizeof x);
        double want = ref((double)x);
        if (!isfinite(x) || !(fabs(want) < 3.4028235e38))
            continue;
        y = f(x);
        double u = ulps((long double)y, (long double)want, 24, -149);
        if (!(u <= worst)) {
            worst = u;
            at = (double)x;
        }
    }
    if (!(worst <= bound))
        tb_test_fail(T, __FILE__, __LINE__, "%s(%g): %.3f ulp, stated %.2f",
                     name, at, worst, bound);
}

#define CHECK(name, low, high, bound)                                          \
    check_double(T, #name, tb_##name, name##l, (range){low, high}, bound)

TB_TEST(ulp_exp)
{
    CHECK(exp, -708, 709.7, 0.8);
    CHECK(exp, -1, 1, 0.8);
    CHECK(exp, -1e-3, 1e-3, 0.8);
    CHECK(exp, -745.2, -708, 1);
}

TB_TEST(ulp_log)
{
    CHECK(log, 0.7, 1.42, 0.9);
    CHECK(log, 0.999, 1.001, 0.9);
    CHECK(log, 0, 100, 0.9);
    CHECK(log, 0, 1e308, 0.9);
    CHECK(log, 0, 1e-307, 0.9);
}

TB_TEST(ulp_tanh)
{
    CHECK(tanh, -1e-5, 1e-5, 1.5);
    CHECK(tanh, -0.2, 0.2, 1.5);
    CHECK(tanh, 0.5, 0.6, 1.5); /* where the formula changes */
    CHECK(tanh, 0, 2, 1.5);
    CHECK(tanh, -20, 20, 1.5);
}

TB_TEST(ulp_erf)
{
    CHECK(erf, -1e-5, 1e-5, 1.5);
    CHECK(erf, -1, 1, 1.5);
    CHECK(erf, 0.9, 1.1, 1.5);
    CHECK(erf, 1, 6.5, 1.5);
}

TB_TEST(ulp_sin_cos)
{
    static const double high[] = {1e-4, 0.8, 7, 1e3, 1e6, 3e6, 1e9, 1e15};
    for (size_t i = 0; i < TB_LEN(high); i++) {
        CHECK(sin, -high[i], high[i], 0.8);
        CHECK(cos, -high[i], high[i], 0.8);
    }
}

TB_TEST(ulp_float)
{
    check_float(T, "expf", tb_expf, exp, 1); /* subnormal results */
    check_float(T, "logf", tb_logf, log, 0.9);
    check_float(T, "tanhf", tb_tanhf, tanh, 1.5);
    check_float(T, "erff", tb_erff, erf, 1.4);
    check_float(T, "sinf", tb_sinf, sin, 0.51);
    check_float(T, "cosf", tb_cosf, cos, 0.51);
}

/* --- sin and cos of large numbers --------------------------------------- */

/* glibc's double sin is below 0.56 ulp but for a few such x as below. */
TB_TEST(sin_cos_huge)
{
    tb_rng r = tb_rng_make(1, T->name);
    double worst = 0, at = 0;
    for (uint64_t i = 0; i < 200000; i++) {
        double x =
            ldexp(1 + tb_rng_uniform(r, i), (int)tb_rng_below(r, i, 1005) + 18);
        double s = sin(x), c = cos(x);
        double u = ulps((long double)tb_sin(x), (long double)s, 53, -1074);
        double w = ulps((long double)tb_cos(x), (long double)c, 53, -1074);
        u = u > w ? u : w;
        if (u > worst) {
            worst = u;
            at = x;
        }
    }
    if (worst > 1)
        tb_test_fail(T, __FILE__, __LINE__, "at %g: %.0f ulp from glibc", at,
                     worst);
}

/* 6381956970095103 * 2^797 is the double nearest to a multiple of pi/2
 * (Muller et al., Handbook of Floating-Point Arithmetic, 11.6). The value is
 * from 2000-bit arithmetic; glibc 2.36 is 8 ulp off here. */
TB_TEST(sin_cos_worst_case)
{
    double x = ldexp(6381956970095103.0, 797);
    TB_CHECK(T, tb_cos(x) == -0x1.14ae72e6ba22fp-61);
    TB_CHECK(T, tb_sin(x) == 1);
    for (int k = 1; k < 3000; k++) { /* multiples of pi/2, rounded */
        double y = k * 0x1.921fb54442d18p+0;
        TB_CHECK(T, ulps((long double)tb_sin(y), sinl((long double)y), 53,
                         -1074) <= 0.8);
        TB_CHECK(T, ulps((long double)tb_cos(y), cosl((long double)y), 53,
                         -1074) <= 0.8);
    }
}

/* --- pow ---------------------------------------------------------------- */

TB_TEST(ulp_pow)
{
    double worst = 0;
    for (int i = 0; i < 300000; i++) {
        double x = exp(20 * tb_test_normal(T)), y = 10 * tb_test_normal(T);
        if (i % 3 == 0)
            x = 1 + 1e-3 * tb_test_normal(T);
        if (i % 3 == 0)
            y = 1e5 * tb_test_normal(T);
        long double want = powl((long double)x, (long double)y);
        if (!(want < 1.7e308L) || want < 1e-320L)
            continue;
        double u = ulps((long double)tb_pow(x, y), want, 53, -1074);
        worst = u > worst ? u : worst;
    }
    if (worst > 1)
        tb_test_fail(T, __FILE__, __LINE__, "pow: %.3f ulp, stated 1", worst);
}

TB_TEST(pow_special)
{
    static const double v[] = {0,
                               -0.0,
                               1,
                               -1,
                               2,
                               -2,
                               0.5,
                               -0.5,
                               3,
                               -3,
                               1e300,
                               -1e300,
                               1e-300,
                               5e-324,
                               0x1p52,
                               0x1p53,
                               0x1p60,
                               -0x1p70,
                               2.5,
                               -7,
                               (double)INFINITY,
                               -(double)INFINITY,
                               (double)NAN};
    for (size_t i = 0; i < TB_LEN(v); i++)
        for (size_t k = 0; k < TB_LEN(v); k++) {
            double got = tb_pow(v[i], v[k]), want = pow(v[i], v[k]);
            bool same =
                signbit(got) == signbit(want) &&
                ulps((long double)got, (long double)want, 53, -1074) <= 1;
            if (isinf(want))
                same = got == want;
            if (isnan(want))
                same = isnan(got);
            if (!same)
                tb_test_fail(T, __FILE__, __LINE__, "pow(%g, %g) = %g, not %g",
                             v[i], v[k], got, want);
        }
    TB_CHECK(T, tb_pow(16, 0.25) == 2 && tb_pow(81, 0.5) == 9);
    TB_CHECK(T, tb_pow(2, 10) == 1024);
    TB_CHECK(T, tb_pow(10, -2) == 0.01);
}

/* --- special values ----------------------------------------------------- */

static void check_special(tb_test *T, const char *name, double got, double want)
{
    if (isnan(want) ? !isnan(got)
                    : !(got == want && signbit(got) == signbit(want)))
        tb_test_fail(T, __FILE__, __LINE__, "%s: got %g, wanted %g", name, got,
                     want);
}

#define SPECIAL(name, x, want)                                                 \
    do {                                                                       \
        check_special(T, #name "(" #x ")", tb_##name(x), want);                \
        check_special(T, #name "f(" #x ")", (double)tb_##name##f((float)(x)),  \
                      want);                                                   \
    } while (0)

TB_TEST(special_values)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    SPECIAL(exp, inf, inf);
    SPECIAL(exp, -inf, 0);
    SPECIAL(exp, nan, nan);
    SPECIAL(exp, 0.0, 1);
    SPECIAL(exp, -0.0, 1);
    SPECIAL(exp, 1000, inf);
    SPECIAL(exp, -1000, 0);
    SPECIAL(log, inf, inf);
    SPECIAL(log, 0.0, -inf);
    SPECIAL(log, -0.0, -inf);
    SPECIAL(log, -1, nan);
    SPECIAL(log, -inf, nan);
    SPECIAL(log, nan, nan);
    SPECIAL(log, 1, 0);
    SPECIAL(tanh, inf, 1);
    SPECIAL(tanh, -inf, -1);
    SPECIAL(tanh, 0.0, 0);
    SPECIAL(tanh, -0.0, -0.0);
    SPECIAL(tanh, nan, nan);
    SPECIAL(tanh, 30, 1);
    SPECIAL(erf, inf, 1);
    SPECIAL(erf, -inf, -1);
    SPECIAL(erf, -0.0, -0.0);
    SPECIAL(erf, nan, nan);
    SPECIAL(erf, 7, 1);
    SPECIAL(sin, -0.0, -0.0);
    SPECIAL(sin, inf, nan);
    SPECIAL(sin, nan, nan);
    SPECIAL(cos, -0.0, 1);
    SPECIAL(cos, -inf, nan);
    SPECIAL(sqrt, 4, 2);
    SPECIAL(sqrt, -1, nan);
    TB_CHECK(T, tb_tanh(5e-324) == 5e-324 && tb_tanh(1e-310) == 1e-310);
    TB_CHECK(T, tb_tanhf(1e-45f) == 1e-45f && tb_erff(1e-45f) == 1e-45f);
    TB_CHECK(T, tb_erf(5e-324) == 5e-324 && tb_sin(5e-324) == 5e-324);
    TB_CHECK(T, tb_exp(-745.13) == 5e-324 && tb_exp(-745.14) == 0);
    TB_CHECK(T, tb_exp(709.78) < inf && tb_exp(709.79) == inf);
    TB_CHECK(T, tb_expf(88.72f) < INFINITY && tb_expf(88.73f) == INFINITY);
    TB_CHECK(T, tb_isfinite(1.7e308) && !tb_isfinite(inf) && !tb_isfinite(nan));
    TB_CHECK(T, tb_fabs(-2) == 2 && !signbit(tb_fabs(-0.0)));
}

/* --- the same bits everywhere ------------------------------------------- */

/* Hash of the results at 4096 points; -0.0 counts, NaN is excluded. */
static uint64_t fingerprint(double (*f)(double), float (*g)(float))
{
    uint64_t hash = 0;
    tb_rng r = {1, 2}; /* fixed: no name goes in */
    for (uint64_t i = 0; i < 4096; i++) {
        double x = (tb_rng_uniform(r, i) * 2 - 1) * (i % 2 ? 30 : 2);
        double y[2] = {f(x), (double)g((float)x)};
        hash = tb_hash(y, sizeof y) ^ (hash * 3);
    }
    return hash;
}

static double log_of_abs(double x)
{
    return tb_log(tb_fabs(x));
}

static float logf_of_abs(float x)
{
    return tb_logf(x < 0 ? -x : x);
}

TB_TEST(same_bits_everywhere)
{
    static const struct {
        const char *name;
        double (*f)(double);
        float (*g)(float);
        uint64_t want;
    } row[] = {
        {"exp", tb_exp, tb_expf, 0x3038BAD7C9E145F4u},
        {"log", log_of_abs, logf_of_abs, 0x4D08E1E2C2B80569u},
        {"tanh", tb_tanh, tb_tanhf, 0xA9F5ED00677BCC46u},
        {"erf", tb_erf, tb_erff, 0x62C7E826CFC342ACu},
        {"sin", tb_sin, tb_sinf, 0x279A827DC3CDEBB8u},
        {"cos", tb_cos, tb_cosf, 0x6F91D1826CBB21F6u},
    };
    for (size_t i = 0; i < TB_LEN(row); i++) {
        uint64_t got = fingerprint(row[i].f, row[i].g);
        if (got != row[i].want)
            tb_test_fail(T, __FILE__, __LINE__, "%s: 0x%llX", row[i].name,
                         (unsigned long long)got);
    }
}
