/* SPDX-License-Identifier: MIT */
/* x^y = exp(y log x) with the logarithm and the product in two doubles. */
#include "base/math_inline.h"
#include "base/number.h"
#include "base/twofold.h"

/* 2 atanh(s), s = f / (2 + f): the terms 2s and 2/3 s^3 in two doubles, the
 * rest 2/5 s^5 + ... (relative error 2^-64 of log) in one. */
static tb_twofold log_mantissa(double f)
{
    const tb_twofold third2 = {0x1.5555555555555p-1, 0x1.5555555555555p-55};
    tb_twofold d = tb_twofold_quick(2, f);
    double s = f / d.hi;
    tb_twofold p = tb_twofold_product(s, d.hi);
    tb_twofold t = {s, (((f - p.hi) - p.lo) - s * d.lo) / d.hi};
    tb_twofold z = tb_twofold_mul(t, t), cube = tb_twofold_mul(t, z);
    double q = 0x1.0caf0f93412edp-3;
    q = q * z.hi + 0x1.0fae96257fd6ep-3;
    q = q * z.hi + 0x1.3b1cc0e00bf95p-3;
    q = q * z.hi + 0x1.745cf70fc6b4dp-3;
    q = q * z.hi + 0x1.c71c7202b245fp-3;
    q = q * z.hi + 0x1.249249247a68ap-2;
    q = q * z.hi + 0x1.99999999999d9p-2;
    tb_twofold r = tb_twofold_mul(cube, third2);
    r.lo += q * z.hi * cube.hi;
    return tb_twofold_add((tb_twofold){2 * t.hi, 2 * t.lo}, r);
}

/* log x for x > 0, finite: about 65 bits */
static tb_twofold log_twofold(double x)
{
    double n = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        n = -54;
    }
    uint64_t u = tb_inline_bits(x);
    uint64_t k = (u + (0x3FF0000000000000u - 0x3FE6A09E667F3BCDu)) >> 52;
    n += (double)k - 1023;
    double f = tb_inline_from_bits(u - (k << 52) + 0x3FF0000000000000u) - 1;
    tb_twofold ln2 = {n * 0x1.62e42fefa38p-1, n * 0x1.ef35793c7673p-45};
    return tb_twofold_add(ln2, log_mantissa(f));
}

static double exp_twofold(tb_twofold y)
{
    uint64_t n;
    double lo;
    if (y.hi > 710 || y.hi < -746)
        return tb_exp(y.hi);
    double r = tb_inline_reduce(y.hi, &n, &lo);
    /* y.lo reaches 2^-44: too large for the second argument alone */
    tb_twofold t = tb_twofold_sum(r, y.lo);
    return tb_inline_scale(tb_inline_exp_core(t.hi, lo + t.lo), n);
}

static bool is_integer(double y)
{
    double a = tb_fabs(y);
    return a >= 0x1p52 || (a + 0x1p52) - 0x1p52 == a;
}

static bool is_odd(double y)
{
    return is_integer(y) && tb_fabs(y) < 0x1p53 && !is_integer(y / 2);
}

/* |x|^y where |x| is 0 or infinite, or y infinite */
static double pow_limit(double a, double y)
{
    if (a == 1)
        return 1;
    bool grows = (a > 1) == (y > 0);
    return grows ? __builtin_inf() : 0;
}

static double pow_positive(double a, double y)
{
    if (a == 0 || !tb_isfinite(a) || !tb_isfinite(y))
        return pow_limit(a, y);
    if (tb_fabs(y) > 0x1p65) /* |log a| >= 2^-53 unless a = 1: 0 or inf */
        y = y > 0 ? 0x1p65 : -0x1p65;
    tb_twofold l = log_twofold(a), p = tb_twofold_product(l.hi, y);
    return exp_twofold(tb_twofold_quick(p.hi, p.lo + l.lo * y));
}

/* pow: <= 1 ulp */
double tb_pow(double x, double y)
{
    if (y == 0 || x == 1)
        return 1;
    if (x != x || y != y)
        return x + y;
    if (x < 0 && tb_isfinite(x) && !is_integer(y))
        return __builtin_nan("");
    double v = pow_positive(tb_fabs(x), y);
    return __builtin_copysign(1, x) < 0 && is_odd(y) ? -v : v;
}
