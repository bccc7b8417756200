/* SPDX-License-Identifier: MIT */
/* Binary to decimal with exact integers: Steele and White 1990, "How to print
 * floating-point numbers accurately" (FPP2, free format). Slower than the
 * table-driven methods, but short, exact and the same everywhere. */
#include "base/digits.h"

#include "base/bignum.h"

uint64_t tb_double_bits(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* `stored` has `width` fraction bits; min_exp is the exponent of the last
 * fraction bit of subnormals. */
static tb_binary binary_of(uint64_t fraction, int biased, int width,
                           int min_exp)
{
    tb_binary b = {.mant = fraction, .exp = min_exp};
    if (biased > 0) {
        b.mant |= (uint64_t)1 << width;
        b.exp += biased - 1;
    }
    b.lower_closer = fraction == 0 && biased > 1;
    return b;
}

tb_binary tb_binary_of_double(double v)
{
    uint64_t bits = tb_double_bits(v);
    tb_binary b = binary_of(bits & 0xFFFFFFFFFFFFFu, (int)(bits >> 52 & 0x7FF),
                            52, -1074);
    b.negative = bits >> 63;
    return b;
}

tb_binary tb_binary_of_float(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    tb_binary b =
        binary_of(bits & 0x7FFFFFu, (int)(bits >> 23 & 0xFF), 23, -149);
    b.negative = bits >> 31;
    return b;
}

static void set_zero(tb_digits *g)
{
    g->n = 0;
    g->point = 1;
}

static void drop_trailing_zeros(tb_digits *g)
{
    while (g->n > 0 && g->d[g->n - 1] == '0')
        g->n--;
    if (g->n == 0)
        set_zero(g);
}

/* Adds one unit in the last kept digit; 99 becomes 1 with point + 1. */
static void round_up(tb_digits *g)
{
    int i = g->n - 1;
    while (i >= 0 && g->d[i] == '9')
        i--;
    if (i < 0) {
        g->d[0] = '1';
        g->n = 1;
        g->point++;
        return;
    }
    g->d[i]++;
    g->n = i + 1;
}

/* --- shortest ----------------------------------------------------------- */

/* v = r/s, half gaps to the neighbours up/s and down/s. */
typedef struct fraction {
    tb_big r, s, up, down;
    bool even; /* a tie at a neighbour's boundary reads back to v */
} fraction;

static void fraction_set(fraction *f, tb_binary b)
{
    int wide = b.lower_closer ? 2 : 1; /* makes both half gaps integers */
    int grow = b.exp > 0 ? b.exp : 0, shrink = b.exp < 0 ? -b.exp : 0;
    tb_big_set(&f->r, b.mant);
    tb_big_shl(&f->r, grow + wide);
    tb_big_set(&f->s, 1);
    tb_big_shl(&f->s, shrink + wide);
    tb_big_set(&f->down, 1);
    tb_big_shl(&f->down, grow);
    tb_big_set(&f->up, 1);
    tb_big_shl(&f->up, grow + wide - 1);
    f->even = b.mant % 2 == 0;
}

static bool reaches_top(const fraction *f) /* v + up is a reader's s */
{
    return tb_big_cmp_sum(&f->r, &f->up, &f->s) >= (f->even ? 0 : 1);
}

static bool reaches_bottom(const fraction *f)
{
    return tb_big_cmp(&f->r, &f->down) <= (f->even ? 0 : -1);
}

static void fraction_times10(fraction *f)
{
    tb_big_mul_add(&f->r, 10, 0);
    tb_big_mul_add(&f->up, 10, 0);
    tb_big_mul_add(&f->down, 10, 0);
}

/* Scales so that 1/10 <= (v + up) / 10^point < 1 and returns point. */
static int fraction_scale(fraction *f, tb_binary b)
{
    int bits = 64 - __builtin_clzll(b.mant) + b.exp; /* v < 2^bits */
    /* floor of (bits - 1) log10(2), by 1233/4096; may be 1 too small */
    int point = (bits - 1) * 1233;
    point = point >= 0 ? point / 4096 : -((4095 - point) / 4096);
    if (point >= 0) {
        tb_big_mul_pow10(&f->s, point);
    } else {
        tb_big_mul_pow10(&f->r, -point);
        tb_big_mul_pow10(&f->up, -point);
        tb_big_mul_pow10(&f->down, -point);
    }
    while (reaches_top(f)) {
        tb_big_mul_add(&f->s, 10, 0);
        point++;
    }
    return point;
}

/* The digit r / s, leaving the remainder in r. */
static int fraction_digit(fraction *f)
{
    int digit = 0;
    while (tb_big_cmp(&f->r, &f->s) >= 0) {
        tb_big_sub(&f->r, &f->s);
        digit++;
    }
    return digit;
}

/* Both last digits would read back: take the nearer, the even one on a tie. */
static bool nearer_above(const fraction *f, int digit)
{
    int half = tb_big_cmp_sum(&f->r, &f->r, &f->s);
    return half > 0 || (half == 0 && digit % 2 == 1);
}

void tb_digits_shortest(tb_binary b, tb_digits *out)
{
    fraction f;
    bool low, high;
    set_zero(out);
    if (b.mant == 0)
        return;
    fraction_set(&f, b);
    out->point = fraction_scale(&f, b);
    do {
        fraction_times10(&f);
        int digit = fraction_digit(&f);
        out->d[out->n++] = (char)('0' + digit);
        low = reaches_bottom(&f);
        high = reaches_top(&f);
        if (high && (!low || nearer_above(&f, digit)))
            round_up(out);
    } while (!low && !high);
}

/* --- all ---------------------------------------------------------------- */

void tb_digits_exact(tb_binary b, tb_digits *out)
{
    tb_big big;
    int n = 0;
    set_zero(out);
    if (b.mant == 0)
        return;
    for (; b.mant % 2 == 0; b.exp++)
        b.mant /= 2;
    tb_big_set(&big, b.mant);
    if (b.exp >= 0)
        tb_big_shl(&big, b.exp);
    else
        tb_big_mul_pow5(&big, -b.exp); /* m 2^-k = (m 5^k) / 10^k */
    while (big.n > 0) {                /* from the last digit to the first */
        uint32_t nine = tb_big_div(&big, 1000000000u);
        for (int i = 0; i < 9 && (nine > 0 || big.n > 0); i++, nine /= 10)
            out->d[n++] = (char)('0' + nine % 10);
    }
    for (int i = 0, j = n - 1; i < j; i++, j--) {
        char c = out->d[i];
        out->d[i] = out->d[j];
        out->d[j] = c;
    }
    out->n = n;
    out->point = n + (b.exp < 0 ? b.exp : 0);
    drop_trailing_zeros(out);
}

static bool rounds_up(const tb_digits *g, int n)
{
    if (n < 0 || g->d[n] != '5')
        return n >= 0 && g->d[n] > '5';
    if (g->n > n + 1) /* no trailing zeros, so this is above the half */
        return true;
    return n > 0 && (g->d[n - 1] - '0') % 2 == 1;
}

void tb_digits_round(tb_digits *g, int n)
{
    if (n >= g->n)
        return;
    bool up = rounds_up(g, n);
    if (n <= 0) { /* 0.7 to no digits: 1 at the place before the first */
        if (up) {
            g->d[0] = '1';
            g->n = 1;
            g->point++;
        } else {
            set_zero(g);
        }
        return;
    }
    g->n = n;
    if (up)
        round_up(g);
    drop_trailing_zeros(g);
}
