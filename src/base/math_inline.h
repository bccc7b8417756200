/* SPDX-License-Identifier: MIT */
/* exp, log, tanh, erf for loops: no branch, no table, no call, no FMA, so gcc
 * and clang turn a loop over them into SIMD code of any width with the same
 * bits. number.h has the same functions as ordinary calls.
 *
 * The coefficients are minimax polynomials (Remez exchange in 45 digits),
 * each with its error on the stated interval. An "ulp" bound beside a function
 * is the largest error tests/unit/test_base_math.c measured, rounded up, and
 * the test asserts it. Rounding mode: to nearest. */
#ifndef TB_BASE_MATH_INLINE_H
#define TB_BASE_MATH_INLINE_H

#include <stdint.h>
#include <string.h>

static inline uint64_t tb_inline_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double tb_inline_from_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint32_t tb_inline_bitsf(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float tb_inline_from_bitsf(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* --- exp, double -------------------------------------------------------- */

/* Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits: AVX2
 * has no conversion from double to 64-bit integers. */
#define TB_INLINE_MAGIC 0x1.8p52

/* x = n ln2 + (r + *lo), n an integer, |r| <= 0.347; n * 0x1.62e42fefa38p-1
 * is exact for |n| < 2^11. n is left in the low bits of *magic. */
static inline double tb_inline_reduce(double x, uint64_t *magic, double *lo)
{
    double m = x * 0x1.71547652b82fep+0 + TB_INLINE_MAGIC;
    double k = m - TB_INLINE_MAGIC;
    double hi = x - k * 0x1.62e42fefa38p-1, w = k * 0x1.ef35793c7673p-45;
    double r = hi - w;
    *magic = tb_inline_bits(m);
    *lo = (hi - r) - w;
    return r;
}

/* 2^n for -1022 <= n <= 1023, of which the low 12 bits count; anything for
 * NaN. */
static inline double tb_inline_pow2(uint64_t n)
{
    return tb_inline_from_bits((n + 1023) << 52);
}

/* v 2^n in two steps: exp needs n from -1076 to 1024. */
static inline double tb_inline_scale(double v, uint64_t n)
{
    uint64_t half = ((n + 2048) >> 1) - 1024;
    return v * tb_inline_pow2(half) * tb_inline_pow2(n - half);
}

/* e^(r+lo) - 1 - r for |r| <= 0.347; relative to e^r within 2^-57.9. */
static inline double tb_inline_exp_tail(double r, double lo)
{
    double q = 0x1.ad7f5d73c6aa7p-26;
    q = q * r + 0x1.28ad7cb3ef62ap-22;
    q = q * r + 0x1.71df256db9de9p-19;
    q = q * r + 0x1.a0199a023ba06p-16;
    q = q * r + 0x1.a01a012a446b7p-13;
    q = q * r + 0x1.6c16c1842d971p-10;
    q = q * r + 0x1.1111111127c31p-7;
    q = q * r + 0x1.555555555086ep-5;
    q = q * r + 0x1.55555555554fap-3;
    q = q * r + 0x1.000000000000ap-1;
    return r * r * q + lo;
}

/* e^(r+lo): the rounding error of 1 + r is added back. */
static inline double tb_inline_exp_core(double r, double lo)
{
    double s = 1 + r;
    return s + ((r - (s - 1)) + tb_inline_exp_tail(r, lo));
}

/** exp: <= 0.8 ulp; results below 2^-1022 are rounded twice, <= 1 unit of
 * 2^-1074 there. */
static inline double tb_inline_exp(double x)
{
    uint64_t n;
    double lo;
    x = x > 710 ? 710 : x; /* overflows below; NaN stays */
    x = x < -746 ? -746 : x;
    double r = tb_inline_reduce(x, &n, &lo);
    return tb_inline_scale(tb_inline_exp_core(r, lo), n);
}

/* --- exp, float --------------------------------------------------------- */

#define TB_INLINE_MAGICF 0x1.8p23f

/* As for double; n * 0x1.62e4p-1f is exact for |n| < 2^9. */
static inline float tb_inline_reducef(float x, uint32_t *magic, float *lo)
{
    float m = x * 0x1.715476p+0f + TB_INLINE_MAGICF;
    float k = m - TB_INLINE_MAGICF;
    float hi = x - k * 0x1.62e4p-1f, w = k * 0x1.7f7d1cp-20f;
    float r = hi - w;
    *magic = tb_inline_bitsf(m);
    *lo = (hi - r) - w;
    return r;
}

static inline float tb_inline_pow2f(uint32_t n)
{
    return tb_inline_from_bitsf((n + 127) << 23);
}

static inline float tb_inline_scalef(float v, uint32_t n)
{
    uint32_t half = ((n + 256) >> 1) - 128;
    return v * tb_inline_pow2f(half) * tb_inline_pow2f(n - half);
}

/* Relative to e^r within 2^-28.3. */
static inline float tb_inline_exp_tailf(float r, float lo)
{
    float q = 0x1.6a2422p-10f;
    q = q * r + 0x1.1239f2p-7f;
    q = q * r + 0x1.5558f2p-5f;
    q = q * r + 0x1.555492p-3f;
    q = q * r + 0x1.fffffcp-2f;
    return r * r * q + lo;
}

static inline float tb_inline_exp_coref(float r, float lo)
{
    float s = 1 + r;
    return s + ((r - (s - 1)) + tb_inline_exp_tailf(r, lo));
}

/** exp of a float: <= 0.8 ulp, below 2^-126 <= 1 unit of 2^-149. */
static inline float tb_inline_expf(float x)
{
    uint32_t n;
    float lo;
    x = x > 89 ? 89 : x;
    x = x < -104 ? -104 : x;
    float r = tb_inline_reducef(x, &n, &lo);
    return tb_inline_scalef(tb_inline_exp_coref(r, lo), n);
}

/* --- tanh --------------------------------------------------------------- */

/* With e = exp(2|x|) - 1: tanh = q = e / (e + 2) while that is small, and
 * 1 - 2 / (e + 2) where it is near 1 and the error of the quotient should
 * shrink. One division either way. In the first case the rounding errors de of
 * e and dd of e + 2 are known, and dq = (de - q dd) / (e + 2) is added back;
 * 1 / (e + 2) is (1 - q) / 2. */

/** tanh: <= 1.5 ulp. */
static inline double tb_inline_tanh(double x)
{
    uint64_t n;
    double lo, a = __builtin_fabs(x);
    a = a > 22 ? 22 : a; /* 1 - tanh(22) < 2^-54 */
    double r = tb_inline_reduce(2 * a, &n, &lo);
    double p = tb_inline_pow2(n);
    double tail = tb_inline_exp_tail(r, lo), s = r + tail;
    double e = (p - 1) + p * s, d = e + 2;
    double de = (((p - 1) - e) + p * s) + p * ((r - s) + tail);
    double dd = ((2 - d) + e) + de;
    double q = (a > 0.55 ? 2 : e) / d;
    double small = q + (de - q * dd) * ((1 - q) * 0.5);
    return __builtin_copysign(a > 0.55 ? 1 - q : small, x);
}

/** tanh of a float: <= 1.5 ulp. */
static inline float tb_inline_tanhf(float x)
{
    uint32_t n;
    float lo, a = __builtin_fabsf(x);
    a = a > 10 ? 10 : a; /* 1 - tanh(10) < 2^-25 */
    float r = tb_inline_reducef(2 * a, &n, &lo);
    float p = tb_inline_pow2f(n);
    float tail = tb_inline_exp_tailf(r, lo), s = r + tail;
    float e = (p - 1) + p * s, d = e + 2;
    float de = (((p - 1) - e) + p * s) + p * ((r - s) + tail);
    float dd = ((2 - d) + e) + de;
    float q = (a > 0.55f ? 2 : e) / d;
    float small = q + (de - q * dd) * ((1 - q) * 0.5f);
    return __builtin_copysignf(a > 0.55f ? 1 - q : small, x);
}

/* --- erf ---------------------------------------------------------------- */

/* Below 1: x + x P(x^2). Above: 1 - exp(-h(|x| - 1)), where h = -log erfc is
 * smooth and nearly a parabola; expanded at 1, because the absolute error of h
 * counts most where erfc is largest. Both are computed, one is taken. */

/* erf(x)/x - 1 in z = x^2 on [0,1]; relative to erf(x)/x within 2^-56.9. */
static inline double tb_inline_erf_small(double z)
{
    double p = -0x1.abae3f2b28ff6p-31;
    p = p * z + 0x1.d71b0bbe27715p-27;
    p = p * z + -0x1.5c0726720bd5cp-23;
    p = p * z + 0x1.b97fd3c481bbcp-20;
    p = p * z + -0x1.f4ca4d6d09df5p-17;
    p = p * z + 0x1.f9a2baa8d85d9p-14;
    p = p * z + -0x1.c02db03dd563ap-11;
    p = p * z + 0x1.565bccf92b22cp-8;
    p = p * z + -0x1.b82ce311fa936p-6;
    p = p * z + 0x1.ce2f21a040d16p-4;
    p = p * z + -0x1.812746b0379bdp-2;
    return p * z + 0x1.06eba8214db68p-3;
}

/* -log erfc(1 + u) on [0,5]; times erfc within 2^-59.5. */
static inline double tb_inline_erf_large(double u)
{
    double h = -0x1.2477ff684eedfp-40;
    h = h * u + 0x1.fae973fe0230bp-36;
    h = h * u + -0x1.94e1ece077366p-32;
    h = h * u + 0x1.899f82ccc329cp-29;
    h = h * u + -0x1.002c5cb2102bdp-26;
    h = h * u + 0x1.beff6d8c3a92ap-25;
    h = h * u + -0x1.a2f5a70ecfc9fp-24;
    h = h * u + -0x1.32d2e273c9d6ep-23;
    h = h * u + 0x1.147537ff25bfap-19;
    h = h * u + -0x1.426bd07a193a2p-17;
    h = h * u + 0x1.c7a77df530816p-16;
    h = h * u + -0x1.b8de9c0a691aep-16;
    h = h * u + -0x1.f1b3898c4d991p-13;
    h = h * u + 0x1.033f65b04f706p-9;
    h = h * u + -0x1.48c9d3eb20ddcp-7;
    h = h * u + 0x1.5477f09c037a2p-5;
    h = h * u + 0x1.afabc11a295f4p-1;
    h = h * u + 0x1.51c9b0006c236p+1;
    return h * u + 0x1.d97fbf27aa2a1p+0;
}

/** erf: <= 1.5 ulp. */
static inline double tb_inline_erf(double x)
{
    uint64_t n;
    double lo, a = __builtin_fabs(x);
    a = a > 6 ? 6 : a; /* 1 - erf(6) < 2^-55 */
    double r = tb_inline_reduce(-tb_inline_erf_large(a - 1), &n, &lo);
    double large = 1 - tb_inline_exp_core(r, lo) * tb_inline_pow2(n);
    double small = a + a * tb_inline_erf_small(a * a);
    return __builtin_copysign(a < 1 ? small : large, x);
}

/* As above; 2^-29.6 on [0,1] and 2^-29.9 on [0,3]. */
static inline float tb_inline_erf_smallf(float z)
{
    float p = 0x1.496a3p-14f;
    p = p * z + -0x1.a3f7p-11f;
    p = p * z + 0x1.5405b2p-8f;
    p = p * z + -0x1.b7f90ep-6f;
    p = p * z + 0x1.ce2cf8p-4f;
    p = p * z + -0x1.81273ep-2f;
    return p * z + 0x1.06eba8p-3f;
}

static inline float tb_inline_erf_largef(float u)
{
    float h = -0x1.852cdep-13f;
    h = h * u + 0x1.deb792p-10f;
    h = h * u + -0x1.441acap-7f;
    h = h * u + 0x1.53f94p-5f;
    h = h * u + 0x1.afad34p-1f;
    h = h * u + 0x1.51c9aap+1f;
    return h * u + 0x1.d97fcp+0f;
}

/** erf of a float: <= 1.4 ulp. */
static inline float tb_inline_erff(float x)
{
    uint32_t n;
    float lo, a = __builtin_fabsf(x);
    a = a > 4 ? 4 : a; /* 1 - erf(4) < 2^-25 */
    float r = tb_inline_reducef(-tb_inline_erf_largef(a - 1), &n, &lo);
    float large = 1 - tb_inline_exp_coref(r, lo) * tb_inline_pow2f(n);
    float small = a + a * tb_inline_erf_smallf(a * a);
    return __builtin_copysignf(a < 1 ? small : large, x);
}

/* --- log ---------------------------------------------------------------- */

/* x = 2^k m, m in [sqrt(1/2), sqrt(2)], f = m - 1, s = f / (2 + f):
 *   log m = 2 atanh(s) = f - f^2/2 + s (f^2/2 + R(s^2)),  R(z) = 2z/3 + ...
 * where the terms fall off, so that only f (exact) meets a full rounding. */

/** log: <= 0.9 ulp. log(0) = -inf, log(x < 0) = NaN. */
static inline double tb_inline_log(double x)
{
    double y = x < 0x1p-1022 ? x * 0x1p54 : x; /* subnormals */
    double shift = x < 0x1p-1022 ? 1023 + 54 : 1023;
    uint64_t u = tb_inline_bits(y);
    /* exponent of y / sqrt(1/2), biased */
    uint64_t k = (u + (0x3FF0000000000000u - 0x3FE6A09E667F3BCDu)) >> 52;
    double n = tb_inline_from_bits(k | 0x4330000000000000u) - 0x1p52 - shift;
    double f = tb_inline_from_bits(u - (k << 52) + 0x3FF0000000000000u) - 1;
    double s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double q = 0x1.3082d75afb3b5p-3; /* z q = R, 2^-60 relative to log m */
    q = q * z + 0x1.3978ee6905e6ep-3;
    q = q * z + 0x1.7467f8ee7f3edp-3;
    q = q * z + 0x1.c71c48ad5326ep-3;
    q = q * z + 0x1.2492494f187e6p-2;
    q = q * z + 0x1.999999996e26cp-2;
    q = q * z + 0x1.55555555555d7p-1;
    double lo = s * (half + z * q) + n * 0x1.ef35793c7673p-45;
    double v = n * 0x1.62e42fefa38p-1 + (f - (half - lo));
    v = x < __builtin_inf() ? v : x; /* inf and NaN */
    v = x == 0 ? -__builtin_inf() : v;
    return x < 0 ? __builtin_nan("") : v;
}

/** log of a float: <= 0.9 ulp. */
static inline float tb_inline_logf(float x)
{
    float y = x < 0x1p-126f ? x * 0x1p25f : x;
    int32_t shift = x < 0x1p-126f ? 127 + 25 : 127;
    uint32_t u = tb_inline_bitsf(y);
    uint32_t k = (u + (0x3F800000u - 0x3F3504F3u)) >> 23;
    float n = (float)((int32_t)k - shift);
    float f = tb_inline_from_bitsf(u - (k << 23) + 0x3F800000u) - 1;
    float s = f / (2 + f), z = s * s, half = 0.5f * f * f;
    float q = 0x1.32cf4ap-2f; /* 2^-29 relative to log m */
    q = q * z + 0x1.995458p-2f;
    q = q * z + 0x1.555588p-1f;
    float lo = s * (half + z * q) + n * 0x1.7f7d1cp-20f;
    float v = n * 0x1.62e4p-1f + (f - (half - lo));
    v = x < __builtin_inff() ? v : x;
    v = x == 0 ? -__builtin_inff() : v;
    return x < 0 ? __builtin_nanf("") : v;
}

#endif
