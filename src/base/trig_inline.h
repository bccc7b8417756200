/* SPDX-License-Identifier: MIT */
/* The parts of sin and cos that loops need, in the manner of math_inline.h: no
 * branch, no table, no FMA, so a loop over them becomes SIMD code with the same
 * bits. trig.c has the whole functions. */
#ifndef TB_BASE_TRIG_INLINE_H
#define TB_BASE_TRIG_INLINE_H

#include "base/math_inline.h"
#include "base/twofold.h"

/* hi + lo in [-pi/4, pi/4], and how many quarter turns beside it */
typedef struct tb_angle {
    double hi, lo;
    uint64_t quadrant;
} tb_angle;

/* 0 <= x < 2^20, by Cody and Waite: 33-bit parts of pi/2, whose products with
 * n < 2^20 are exact. The quadrant is in the low bits of n + magic. */
static inline tb_angle tb_inline_reduce_near(double x)
{
    double big = x * 0x1.45f306dc9c883p-1 + TB_INLINE_MAGIC;
    double n = big - TB_INLINE_MAGIC;
    double first = x - n * 0x1.921fb544p+0; /* exact */
    tb_twofold a = tb_twofold_sum(first, -n * 0x1.0b4611a6p-34);
    tb_twofold b = tb_twofold_sum(a.hi, -n * 0x1.3198a2ep-69);
    tb_twofold r =
        tb_twofold_quick(b.hi, (a.lo + b.lo) - n * 0x1.b839a252049c1p-104);
    return (tb_angle){r.hi, r.lo, tb_inline_bits(big) & 3};
}

/* sin r = r + r^3 S(r^2), S within 2^-58; minimax as in math_inline.h */
static inline double tb_inline_sin_core(tb_angle r)
{
    double z = r.hi * r.hi, cube = z * r.hi;
    double s = 0x1.5d9300cf18812p-33;
    s = s * z + -0x1.ae5e6639d428fp-26;
    s = s * z + 0x1.71de3577b56b1p-19;
    s = s * z + -0x1.a01a019c11978p-13;
    s = s * z + 0x1.111111110f87ap-7;
    s = s * z + -0x1.5555555555549p-3;
    return r.hi + (cube * s + r.lo * (1 - 0.5 * z));
}

/* cos r = 1 - r^2/2 + r^4 C(r^2), C within 2^-64; the rounding error of
 * 1 - r^2/2 is added back */
static inline double tb_inline_cos_core(tb_angle r)
{
    double z = r.hi * r.hi, half = 0.5 * z, w = 1 - half;
    double c = -0x1.8fae9cb4449ffp-37;
    c = c * z + 0x1.1ee9ebe9aae8p-29;
    c = c * z + -0x1.27e4f809f15ecp-22;
    c = c * z + 0x1.a01a019cb1bebp-16;
    c = c * z + -0x1.6c16c16c1517ep-10;
    c = c * z + 0x1.555555555554cp-5;
    return w + (((1 - w) - half) + (z * z * c - r.hi * r.lo));
}

/** cos for 0 <= x < 2^20, the bits of tb_cos */
static inline double tb_inline_cos_near(double x)
{
    tb_angle r = tb_inline_reduce_near(x);
    uint64_t q = r.quadrant + 1;
    double sine = tb_inline_sin_core(r), cosine = tb_inline_cos_core(r);
    double v = q & 1 ? cosine : sine;
    return tb_inline_from_bits(tb_inline_bits(v) ^ (q & 2) << 62);
}

#endif
