/* SPDX-License-Identifier: MIT */
/* Text to the nearest double, ties to even. Few digits and a small exponent
 * are one exact product or quotient; the rest is exact integer division. */
#include "base/bignum.h"
#include "base/number.h"

/* No decision needs more than 768 digits: a longer tail only says "above". */
enum { DIGITS_MAX = 770 };

/** The number read: digits * 10^exp. */
typedef struct decimal {
    bool negative;
    int n;       /* digits kept, no leading zeros */
    int64_t exp; /* power of ten of the last kept digit */
    char d[DIGITS_MAX + 1];
} decimal;

typedef struct cursor {
    const char *s;
    size_t at, n;
} cursor;

static bool digit_here(const cursor *c)
{
    return c->at < c->n && c->s[c->at] >= '0' && c->s[c->at] <= '9';
}

static bool eat(cursor *c, char a, char b)
{
    bool yes = c->at < c->n && (c->s[c->at] == a || c->s[c->at] == b);
    c->at += yes;
    return yes;
}

/* Beyond DIGITS_MAX a digit that is not 0 makes the last kept one odd: the
 * value then is not a tie and stays on its side of every tie. */
static void keep_digit(decimal *v, char d)
{
    if (v->n == 0 && d == '0')
        return;
    if (v->n < DIGITS_MAX) {
        v->d[v->n++] = d;
        return;
    }
    v->exp++;
    if (d != '0')
        v->d[DIGITS_MAX - 1] |= 1; /* '0'..'9' are 0x30..0x39 */
}

static bool scan_digits(cursor *c, decimal *v, bool fraction)
{
    size_t from = c->at;
    for (; digit_here(c); c->at++) {
        if (fraction)
            v->exp--;
        keep_digit(v, c->s[c->at]);
    }
    return c->at > from;
}

/* exponent = ("e" | "E") ["+" | "-"] digits, all or nothing */
static void scan_exponent(cursor *c, decimal *v)
{
    cursor t = *c;
    int64_t e = 0;
    if (!eat(&t, 'e', 'E'))
        return;
    bool negative = t.at < t.n && t.s[t.at] == '-';
    eat(&t, '+', '-');
    if (!digit_here(&t))
        return;
    for (; digit_here(&t); t.at++)
        if (e < (int64_t)1 << 50)
            e = 10 * e + (t.s[t.at] - '0');
    v->exp += negative ? -e : e;
    *c = t;
}

/* number = ["+" | "-"] digits ["." digits] [exponent] */
static size_t scan(const char *s, size_t n, decimal *v)
{
    cursor c = {s, 0, n};
    v->negative = n > 0 && s[0] == '-';
    v->n = 0;
    v->exp = 0;
    eat(&c, '+', '-');
    if (!scan_digits(&c, v, false))
        return 0;
    cursor t = c;
    if (eat(&t, '.', '.') && digit_here(&t)) {
        scan_digits(&t, v, true);
        c = t;
    }
    scan_exponent(&c, v);
    return c.at;
}

/* Clinger 1990: both operands exact, so one correctly rounded operation. */
static bool convert_small(const decimal *v, double *out)
{
    static const double power[] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    };
    if (v->n > 15 || v->exp > 22 || v->exp < -22)
        return false;
    uint64_t m = 0;
    for (int i = 0; i < v->n; i++)
        m = 10 * m + (uint64_t)(v->d[i] - '0');
    *out = v->exp < 0 ? (double)m / power[-v->exp] : (double)m * power[v->exp];
    return true;
}

/* num/den = digits * 10^exp */
static void set_ratio(const decimal *v, tb_big *num, tb_big *den)
{
    int i = 0;
    tb_big_set(num, 0);
    for (; i + 9 <= v->n; i += 9) {
        uint32_t nine = 0;
        for (int j = 0; j < 9; j++)
            nine = 10 * nine + (uint32_t)(v->d[i + j] - '0');
        tb_big_mul_add(num, 1000000000u, nine);
    }
    for (; i < v->n; i++)
        tb_big_mul_add(num, 10, (uint32_t)(v->d[i] - '0'));
    tb_big_set(den, 1);
    tb_big_mul_pow10(v->exp < 0 ? den : num,
                     (int)(v->exp < 0 ? -v->exp : v->exp));
}

/* Scales num/den into [1, 2) and returns the power of two taken out. */
static int normalise(tb_big *num, tb_big *den)
{
    int e = tb_big_bits(num) - tb_big_bits(den);
    if (e > 0)
        tb_big_shl(den, e);
    else
        tb_big_shl(num, -e);
    if (tb_big_cmp(num, den) < 0) {
        tb_big_shl(num, 1);
        e--;
    }
    return e;
}

static double from_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Long division in binary: `bits` digits of the quotient, then rounding. The
 * mantissa's carry into the exponent field is the right result, up to inf. */
static double convert_exact(const decimal *v)
{
    tb_big num, den;
    set_ratio(v, &num, &den);
    int e = normalise(&num, &den);
    if (e > 1023)
        return __builtin_inf();
    int bits = e < -1022 ? 53 + (e + 1022) : 53; /* fewer when subnormal */
    uint64_t m = 0;
    if (bits < 0)
        return 0;
    for (int i = 0; i < bits; i++) {
        m *= 2;
        if (tb_big_cmp(&num, &den) >= 0) {
            tb_big_sub(&num, &den);
            m++;
        }
        tb_big_shl(&num, 1);
    }
    int half = tb_big_cmp(&num, &den); /* twice the remainder against 1 */
    m += half > 0 || (half == 0 && m % 2 == 1);
    return from_bits(e < -1022 ? m : m + ((uint64_t)(e + 1022) << 52));
}

/* Powers of ten that decide without arithmetic: beyond them 0 or inf. */
static double convert(const decimal *v)
{
    double out;
    if (v->n == 0)
        return 0;
    if (convert_small(v, &out))
        return out;
    if (v->exp + v->n > 310)
        return __builtin_inf();
    if (v->exp + v->n < -326)
        return 0;
    return convert_exact(v);
}

size_t tb_double_parse(const char *s, size_t n, double *out)
{
    decimal v;
    size_t read = scan(s, n, &v);
    if (read == 0)
        return 0;
    double a = convert(&v);
    *out = v.negative ? -a : a;
    return read;
}
