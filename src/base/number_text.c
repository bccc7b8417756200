/* SPDX-License-Identifier: MIT */
/* Shortest text of a number: 3, 0.1, -0, 1e23, 5e-324, nan, inf. */
#include "base/digits.h"
#include "base/number.h"

/* Plain notation from 0.0001 up to 15 digits before the point, else an
 * exponent; both are JSON. */
enum { POINT_MIN = -3, POINT_MAX = 15 };

typedef struct writer {
    char *out;
    size_t n;
} writer;

static void put(writer *w, char c)
{
    w->out[w->n++] = c;
}

static void put_digits(writer *w, const tb_digits *g, int from, int to)
{
    for (int i = from; i < to; i++)
        put(w, i >= 0 && i < g->n ? g->d[i] : '0');
}

static void put_plain(writer *w, const tb_digits *g)
{
    if (g->point <= 0)
        put(w, '0');
    put_digits(w, g, 0, g->point);
    if (g->n > g->point) {
        put(w, '.');
        put_digits(w, g, g->point, g->n);
    }
}

static void put_scientific(writer *w, const tb_digits *g)
{
    put(w, g->d[0]);
    if (g->n > 1) {
        put(w, '.');
        put_digits(w, g, 1, g->n);
    }
    w->n += tb_format(w->out + w->n, 8, "e%d", g->point - 1);
}

static size_t finite_text(tb_binary b, char *out)
{
    tb_digits g;
    writer w = {out, 0};
    tb_digits_shortest(b, &g);
    if (b.negative)
        put(&w, '-');
    if (g.point >= POINT_MIN && g.point <= POINT_MAX)
        put_plain(&w, &g);
    else
        put_scientific(&w, &g);
    out[w.n] = '\0';
    return w.n;
}

static size_t special_text(double v, char *out)
{
    const char *s = v != v ? "nan" : v > 0 ? "inf" : "-inf";
    size_t n = strlen(s);
    memcpy(out, s, n + 1);
    return n;
}

size_t tb_double_text(double v, char out[TB_DOUBLE_CHARS])
{
    if (!tb_isfinite(v))
        return special_text(v, out);
    return finite_text(tb_binary_of_double(v), out);
}

size_t tb_float_text(float v, char out[TB_DOUBLE_CHARS])
{
    if (!tb_isfinite((double)v))
        return special_text((double)v, out);
    return finite_text(tb_binary_of_float(v), out);
}
