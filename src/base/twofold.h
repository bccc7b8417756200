/* SPDX-License-Identifier: MIT */
/* Unevaluated sums hi + lo of two doubles, about 106 bits, without FMA:
 * Dekker 1971 and Knuth's two-sum. For sin, cos and pow only. */
#ifndef TB_BASE_TWOFOLD_H
#define TB_BASE_TWOFOLD_H

typedef struct tb_twofold {
    double hi, lo;
} tb_twofold;

/** a + b exactly */
static inline tb_twofold tb_twofold_sum(double a, double b)
{
    double s = a + b, t = s - a;
    return (tb_twofold){s, (a - (s - t)) + (b - t)};
}

/** a + b exactly, for |a| >= |b| or a = 0 */
static inline tb_twofold tb_twofold_quick(double a, double b)
{
    double s = a + b;
    return (tb_twofold){s, b - (s - a)};
}

/** a b exactly, |a| and |b| below 2^995 */
static inline tb_twofold tb_twofold_product(double a, double b)
{
    const double split = 0x1p27 + 1;
    double p = a * b, ca = split * a, cb = split * b;
    double ah = ca - (ca - a), al = a - ah;
    double bh = cb - (cb - b), bl = b - bh;
    return (tb_twofold){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

static inline tb_twofold tb_twofold_mul(tb_twofold a, tb_twofold b)
{
    tb_twofold p = tb_twofold_product(a.hi, b.hi);
    return tb_twofold_quick(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static inline tb_twofold tb_twofold_add(tb_twofold a, tb_twofold b)
{
    tb_twofold s = tb_twofold_sum(a.hi, b.hi);
    return tb_twofold_quick(s.hi, s.lo + (a.lo + b.lo));
}

#endif
