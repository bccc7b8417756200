/* SPDX-License-Identifier: MIT */
/* sin and cos. |x| is brought to hi + lo in [-pi/4, pi/4] and a quadrant: as
 * trig_inline.h does up to 2^20, by Payne and Hanek's product with the right
 * bits of 2/pi above. */
#include "base/digits.h"
#include "base/number.h"
#include "base/trig_inline.h"

/* --- reduction ---------------------------------------------------------- */

/* 2/pi = sum of word[i] * 2^(-32 (i + 1)) */
static const uint32_t two_over_pi[] = {
    0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u,
    0x3C439041u, 0xFE5163ABu, 0xDEBBC561u, 0xB7246E3Au, 0x424DD2E0u,
    0x06492EEAu, 0x09D1921Cu, 0xFE1DEB1Cu, 0xB129A73Eu, 0xE88235F5u,
    0x2EBB4484u, 0xE99C7026u, 0xB45F7E41u, 0x3991D639u, 0x835339F4u,
    0x9C845F8Bu, 0xBDF9283Bu, 0x1FF897FFu, 0xDE05980Fu, 0xEF2F118Bu,
    0x5A0A6D1Fu, 0x6D367ECFu, 0x27CB09B7u, 0x4F463F66u, 0x9E5FEA2Du,
    0x7527BAC7u, 0xEBE5F17Bu, 0x3D0739F7u, 0x8A5292EAu, 0x6BFB5FB1u,
    0x1F8D5D08u, 0x56033046u, 0xFC7B6BABu,
};

/* Seven words of 2/pi times a mantissa of two words. */
enum { WINDOW = 7, PRODUCT = WINDOW + 2 };

/* out = mant * (the WINDOW words at `from`), least significant word first */
static void window_product(size_t from, uint64_t mant, uint32_t out[PRODUCT])
{
    memset(out, 0, PRODUCT * sizeof out[0]);
    for (int j = 0; j < 2; j++) {
        uint64_t m = j ? mant >> 32 : mant & 0xFFFFFFFFu, carry = 0;
        for (int i = 0; i < WINDOW; i++) {
            carry += m * two_over_pi[from + WINDOW - 1 - (size_t)i];
            carry += out[i + j];
            out[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        out[WINDOW + j] = (uint32_t)carry;
    }
}

/* The 32 bits that start at bit `at` of the product. */
static uint32_t bits_at(const uint32_t *p, int at)
{
    int word = at / 32, shift = at % 32;
    uint64_t high = word + 1 < PRODUCT ? p[word + 1] : 0;
    return (uint32_t)((high << 32 | p[word]) >> shift);
}

/* x = mant 2^exp. Bits of 2/pi above 2^(2 - exp) give whole turns and are
 * skipped. Of the seven words from there, what is cut off is below 2^-138,
 * and no double is nearer to a multiple of pi/2 than 2^-62. */
static tb_angle reduce_far(double x)
{
    const tb_twofold half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
    tb_binary b = tb_binary_of_double(x);
    int skip = b.exp > 2 ? (b.exp - 2) / 32 : 0;
    int point = 32 * (skip + WINDOW) - b.exp; /* bits of fraction */
    uint32_t p[PRODUCT];
    window_product((size_t)skip, b.mant, p);
    unsigned quadrant = bits_at(p, point) % 4;
    /* to the nearest quadrant: a fraction above 1/2 becomes negative */
    bool negative = bits_at(p, point - 32) >> 31;
    tb_twofold f = {0, 0};
    double scale = negative ? -0x1p-32 : 0x1p-32;
    for (int i = 1; i <= 4; i++, scale *= 0x1p-32) {
        uint32_t w = bits_at(p, point - 32 * i);
        tb_twofold s = tb_twofold_quick(f.hi, scale * (negative ? ~w : w));
        f = (tb_twofold){s.hi, f.lo + s.lo};
    }
    tb_twofold r = tb_twofold_mul(tb_twofold_quick(f.hi, f.lo), half_pi);
    return (tb_angle){r.hi, r.lo, quadrant + negative};
}

static tb_angle reduce(double x)
{
    return x < 0x1p20 ? tb_inline_reduce_near(x) : reduce_far(x);
}

/* --- sin and cos -------------------------------------------------------- */

static double by_quadrant(tb_angle r, uint64_t turn)
{
    uint64_t q = (r.quadrant + turn) % 4;
    double v = q % 2 ? tb_inline_cos_core(r) : tb_inline_sin_core(r);
    return q >= 2 ? -v : v;
}

/* sin: <= 0.8 ulp */
double tb_sin(double x)
{
    if (!tb_isfinite(x))
        return x - x;
    double v = by_quadrant(reduce(tb_fabs(x)), 0);
    return x < 0 ? -v : x == 0 ? x : v;
}

/* cos: <= 0.8 ulp */
double tb_cos(double x)
{
    if (!tb_isfinite(x))
        return x - x;
    return by_quadrant(reduce(tb_fabs(x)), 1);
}

/* sin, cos of a float: <= 0.51 ulp */
float tb_sinf(float x)
{
    return (float)tb_sin((double)x);
}

float tb_cosf(float x)
{
    return (float)tb_cos((double)x);
}
