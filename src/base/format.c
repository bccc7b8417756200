/* SPDX-License-Identifier: MIT */
/* printf without the C library: no locale, the same text on every machine,
 * and %g is the shortest text that reads back. */
#include "base/base.h"

#include "base/digits.h"
#include "base/number.h"

typedef struct sink {
    char *dst;
    size_t cap, len; /* len counts what did not fit, too */
} sink;

typedef struct spec {
    bool left, zero, plus, space;
    int width, prec; /* prec -1: not given */
    char size;       /* 0, 'l', 'L' (ll) or 'z' */
} spec;

static void put(sink *o, char c)
{
    if (o->len + 1 < o->cap)
        o->dst[o->len] = c;
    o->len++;
}

static void put_n(sink *o, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(o, s[i]);
}

static void pad(sink *o, char c, size_t have, size_t want)
{
    for (; have < want; have++)
        put(o, c);
}

/* --- strings and integers ----------------------------------------------- */

static void put_padded(sink *o, spec f, const char *s, size_t n)
{
    if (!f.left)
        pad(o, ' ', n, (size_t)f.width);
    put_n(o, s, n);
    if (f.left)
        pad(o, ' ', n, (size_t)f.width);
}

static void put_string(sink *o, spec f, const char *s)
{
    size_t n = 0;
    if (!s)
        s = "(null)";
    while ((f.prec < 0 || n < (size_t)f.prec) && s[n])
        n++;
    put_padded(o, f, s, n);
}

static const char *sign_of(spec f, bool negative)
{
    return negative ? "-" : f.plus ? "+" : f.space ? " " : "";
}

/* sign, zeros up to the width if asked for, body */
static void put_number(sink *o, spec f, const char *sign, const char *s,
                       size_t n, size_t zeros)
{
    size_t len = strlen(sign) + zeros + n, width = (size_t)f.width;
    if (f.zero && !f.left && len < width) {
        zeros += width - len;
        len = width;
    }
    if (!f.left)
        pad(o, ' ', len, width);
    put_n(o, sign, strlen(sign));
    pad(o, '0', 0, zeros);
    put_n(o, s, n);
    if (f.left)
        pad(o, ' ', len, width);
}

static void put_int(sink *o, spec f, uint64_t v, bool negative, unsigned base,
                    bool upper)
{
    const char *alphabet = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    char s[20];
    size_t n = 0, at_least = f.prec < 0 ? 1 : (size_t)f.prec;
    for (; v; v /= base)
        s[sizeof s - ++n] = alphabet[v % base];
    size_t zeros = n < at_least ? at_least - n : 0;
    f.zero = f.zero && f.prec < 0; /* as C: a precision switches '0' off */
    put_number(o, f, sign_of(f, negative), s + sizeof s - n, n, zeros);
}

static int64_t next_signed(spec f, va_list *ap)
{
    switch (f.size) {
    case 'l':
        return va_arg(*ap, long);
    case 'L':
        return va_arg(*ap, long long);
    case 'z':
        return (int64_t)va_arg(*ap, size_t);
    default:
        return va_arg(*ap, int);
    }
}

static uint64_t next_unsigned(spec f, va_list *ap)
{
    switch (f.size) {
    case 'l':
        return va_arg(*ap, unsigned long);
    case 'L':
        return va_arg(*ap, unsigned long long);
    case 'z':
        return va_arg(*ap, size_t);
    default:
        return va_arg(*ap, unsigned);
    }
}

/* --- floating point ----------------------------------------------------- */

/* Precisions above this print zeros anyway; keeps the buffer small. */
enum { PREC_MAX = 1100, FLOAT_CHARS = 310 + PREC_MAX + 16 };

static char digit_at(const tb_digits *g, int i)
{
    return i >= 0 && i < g->n ? g->d[i] : '0';
}

/* ddd.ddd with `places` digits after the point; g is already rounded. */
static size_t fixed_text(const tb_digits *g, int places, char *s)
{
    size_t n = 0;
    if (g->point <= 0)
        s[n++] = '0';
    for (int i = 0; i < g->point; i++)
        s[n++] = digit_at(g, i);
    if (places > 0)
        s[n++] = '.';
    for (int i = 0; i < places; i++)
        s[n++] = digit_at(g, g->point + i);
    return n;
}

/* d.ddde+dd, at least two exponent digits, as C. */
static size_t exp_text(const tb_digits *g, int places, char *s)
{
    int e = g->point - 1;
    size_t n = 0;
    s[n++] = digit_at(g, 0);
    if (places > 0)
        s[n++] = '.';
    for (int i = 0; i < places; i++)
        s[n++] = digit_at(g, i + 1);
    n += tb_format(s + n, 8, "e%c%02d", e < 0 ? '-' : '+', e < 0 ? -e : e);
    return n;
}

/* C's %g: prec significant digits, trailing zeros dropped. */
static size_t general_text(tb_digits *g, int prec, char *s)
{
    prec = prec ? prec : 1;
    tb_digits_round(g, prec);
    int e = g->point - 1, used = g->n ? g->n : 1;
    if (e < -4 || e >= prec)
        return exp_text(g, used - 1, s);
    return fixed_text(g, used > g->point ? used - g->point : 0, s);
}

static size_t finite_text(spec f, double v, char conv, char *s)
{
    tb_digits g;
    int prec = f.prec < 0 ? 6 : f.prec;
    if (conv == 'g' && f.prec < 0)
        return tb_double_text(tb_fabs(v), s);
    tb_digits_exact(tb_binary_of_double(v), &g);
    if (conv == 'g')
        return general_text(&g, prec, s);
    if (conv == 'e') {
        tb_digits_round(&g, prec + 1);
        return exp_text(&g, prec, s);
    }
    tb_digits_round(&g, g.point + prec);
    return fixed_text(&g, prec, s);
}

static void put_float(sink *o, spec f, double v, char conv)
{
    char s[FLOAT_CHARS];
    const char *sign = sign_of(f, tb_double_bits(v) >> 63);
    f.prec = f.prec > PREC_MAX ? PREC_MAX : f.prec;
    if (v != v) {
        put_padded(o, f, "nan", 3); /* its sign differs between machines */
    } else if (!tb_isfinite(v)) {
        f.zero = false;
        put_number(o, f, sign, "inf", 3, 0);
    } else {
        put_number(o, f, sign, s, finite_text(f, v, conv, s), 0);
    }
}

/* --- the format string -------------------------------------------------- */

static int read_count(const char **p, va_list *ap)
{
    int n = 0;
    if (**p == '*') {
        ++*p;
        return va_arg(*ap, int);
    }
    for (; **p >= '0' && **p <= '9' && n < 100000; ++*p)
        n = 10 * n + (**p - '0');
    return n;
}

static void read_flags(const char **p, spec *f)
{
    for (;; ++*p) {
        if (**p == '-')
            f->left = true;
        else if (**p == '0')
            f->zero = true;
        else if (**p == '+')
            f->plus = true;
        else if (**p == ' ')
            f->space = true;
        else
            return;
    }
}

/* spec = flags [width] ["." precision] ["l" | "ll" | "z"] */
static spec read_spec(const char **p, va_list *ap)
{
    spec f = {.prec = -1};
    read_flags(p, &f);
    f.width = read_count(p, ap);
    if (f.width < 0) { /* from '*', as C */
        f.left = true;
        f.width = -f.width;
    }
    if (**p == '.') {
        ++*p;
        f.prec = read_count(p, ap);
        f.prec = f.prec < 0 ? -1 : f.prec;
    }
    for (; **p == 'l' || **p == 'z'; ++*p)
        f.size = **p == 'z' ? 'z' : f.size == 'l' ? 'L' : 'l';
    return f;
}

static void put_signed(sink *o, spec f, int64_t v)
{
    uint64_t mag = v < 0 ? -(uint64_t)v : (uint64_t)v;
    put_int(o, f, mag, v < 0, 10, false);
}

static void convert(sink *o, spec f, char conv, va_list *ap)
{
    char c;
    spec plain = f;
    plain.plus = plain.space = false;
    switch (conv) {
    case 's':
        put_string(o, f, va_arg(*ap, const char *));
        break;
    case 'c':
        c = (char)va_arg(*ap, int);
        put_padded(o, f, &c, 1);
        break;
    case 'd':
    case 'i':
        put_signed(o, f, next_signed(f, ap));
        break;
    case 'u':
        put_int(o, plain, next_unsigned(f, ap), false, 10, false);
        break;
    case 'x':
    case 'X':
        put_int(o, plain, next_unsigned(f, ap), false, 16, conv == 'X');
        break;
    case 'e':
    case 'f':
    case 'g':
        put_float(o, f, va_arg(*ap, double), conv);
        break;
    case '%':
        put(o, '%');
        break;
    default: /* unknown: shown, so that a test sees it */
        put(o, '%');
        put(o, conv);
    }
}

size_t tb_vformat(char *dst, size_t cap, const char *fmt, va_list ap)
{
    sink o = {dst, cap, 0};
    va_list args; /* a copy, because &ap of a parameter is not a va_list * */
    va_copy(args, ap);
    while (*fmt) {
        if (*fmt != '%') {
            put(&o, *fmt++);
            continue;
        }
        fmt++;
        spec f = read_spec(&fmt, &args);
        if (*fmt)
            convert(&o, f, *fmt++, &args);
    }
    va_end(args);
    if (cap > 0)
        dst[o.len < cap ? o.len : cap - 1] = '\0';
    return o.len;
}

size_t tb_format(char *dst, size_t cap, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    size_t n = tb_vformat(dst, cap, fmt, ap);
    va_end(ap);
    return n;
}
