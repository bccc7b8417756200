/* SPDX-License-Identifier: MIT */
/* The numbers of a chart before they are drawn: defaults of a series,
 * thinning, and the words for what cannot be drawn. */
#include "pictures/plot.h"

tb_series tb_series_of(const tb_chart *c, size_t i)
{
    tb_series s = c->series[i];
    if (s.tone == TB_TONE_NONE) {
        s.tone = tb_series_tone(i);
        s.dash = tb_series_dash(i);
        s.marker = tb_series_marker(i);
    }
    if (!(s.line > 0))
        s.line = 2;
    if (!s.role)
        s.role = "series";
    if (!s.label)
        s.label = "";
    return s;
}

double tb_series_x(const tb_series *s, size_t i)
{
    return s->x ? s->x[i] : (double)i;
}

/* --- thinning ----------------------------------------------------------- */

/* Index of the least, the largest and the first undrawable value of one
 * stretch, in rising order without repeats. */
static size_t pick(const tb_axis *axis, const double *y, size_t from, size_t to,
                   size_t out[3])
{
    size_t none = to, low = none, high = none, gap = none;
    for (size_t i = from; i < to; i++) {
        tb_state state = tb_axis_state(axis, y[i]);
        if (state == TB_GAP || state == TB_FLOOR) {
            gap = gap == none ? i : gap;
            continue;
        }
        low = low == none || y[i] < y[low] ? i : low;
        high = high == none || y[i] > y[high] ? i : high;
    }
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        if (i == low || i == high || i == gap)
            out[n++] = i;
    return n;
}

const size_t *tb_thin(tb_arena *a, const tb_axis *axis, const double *y,
                      size_t n, size_t *count)
{
    size_t cap = n < TB_MAX_POINTS ? n : TB_MAX_POINTS;
    size_t *index = tb_arena_alloc(a, (cap + 1) * sizeof *index);
    *count = 0;
    if (!index)
        return NULL;
    if (n <= TB_MAX_POINTS) {
        for (size_t i = 0; i < n; i++)
            index[i] = i;
        *count = n;
        return index;
    }
    size_t stretches = (TB_MAX_POINTS - 2) / 3, used = 0;
    index[used++] = 0;
    for (size_t s = 0; s < stretches; s++) {
        size_t from =
            1 + (size_t)((double)(n - 2) * (double)s / (double)stretches);
        size_t to =
            1 + (size_t)((double)(n - 2) * (double)(s + 1) / (double)stretches);
        used += pick(axis, y, from, to, index + used);
    }
    index[used++] = n - 1;
    *count = used;
    return index;
}

/* --- words -------------------------------------------------------------- */

static void put_x(tb_buf *b, const tb_chart *c, double x)
{
    char text[TB_SHOW_CHARS];
    if (x >= 0 && x < (double)c->n_names && c->x_names &&
        c->x_names[(size_t)x] && x == tb_floor(x))
        tb_buf_printf(b, "%s ", c->x_names[(size_t)x]);
    if (tb_fabs(x) < 1e15 && x == tb_floor(x))
        tb_buf_printf(b, "%lld", (long long)x);
    else
        tb_buf_puts(b, tb_show_number(x, text));
}

enum { LISTED = 8 };

/* nan like nan, 0 like 0: one entry of the list. */
static bool alike(double a, double b)
{
    return a == b || (a != a && b != b);
}

static bool is_undrawn(const tb_series *s, const tb_axis *y, size_t i)
{
    tb_state state = tb_axis_state(y, s->y[i]);
    return state == TB_GAP || state == TB_FLOOR ||
           !tb_isfinite(tb_series_x(s, i));
}

/* "lane: not drawable: 0 at attn 1, nan at 3 to 9 and 2 more" */
static void undrawn(tb_buf *b, const tb_chart *c, const tb_series *s,
                    const tb_axis *y)
{
    char text[TB_SHOW_CHARS];
    size_t found = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!is_undrawn(s, y, i))
            continue;
        size_t last = i;
        while (last + 1 < s->n && is_undrawn(s, y, last + 1) &&
               alike(s->y[last + 1], s->y[i]))
            last++;
        if (found++ < LISTED) {
            if (found == 1)
                tb_buf_printf(b, "%s%snot drawable%s: ", s->label,
                              *s->label ? ": " : "",
                              y->log ? " (log axis)" : "");
            tb_buf_printf(b, "%s%s at ", found > 1 ? ", " : "",
                          tb_show_number(s->y[i], text));
            put_x(b, c, tb_series_x(s, i));
            tb_buf_puts(b, last > i ? " to " : "");
            if (last > i)
                put_x(b, c, tb_series_x(s, last));
        }
        i = last;
    }
    if (found > LISTED)
        tb_buf_printf(b, " and %zu more", found - LISTED);
}

/* "2 values below 1e-60 are drawn at the lower edge" */
static void edge(tb_buf *b, const tb_chart *c, const tb_axis *y, bool above)
{
    size_t n = 0;
    char text[TB_SHOW_CHARS];
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->series[i].n; k++)
            n += tb_axis_state(y, c->series[i].y[k]) ==
                 (above ? TB_ABOVE : TB_BELOW);
    double limit = above ? y->hi : y->lo;
    tb_show_number(y->log ? tb_pow10(limit) : limit, text);
    if (n)
        tb_buf_printf(b, "%zu value%s %s %s drawn at the %s edge", n,
                      n == 1 ? "" : "s", above ? "above" : "below", text,
                      above ? "upper" : "lower");
}

/* Moves what b holds to the arena; false if there was nothing or no memory. */
static bool take(tb_arena *a, tb_buf *b, const char **out)
{
    *out = b->len && !b->failed ? tb_arena_strndup(a, b->data, b->len) : NULL;
    tb_buf_clear(b);
    tb_buf_init(b, a->ctx);
    return *out != NULL;
}

const char *const *tb_chart_notes(tb_arena *a, const tb_chart *c,
                                  const tb_axis *y)
{
    const char **notes = tb_arena_alloc(a, (c->count + 3) * sizeof *notes);
    if (!notes)
        return NULL;
    size_t n = 0;
    tb_buf b;
    tb_buf_init(&b, a->ctx);
    for (size_t i = 0; i < c->count; i++) {
        tb_series s = tb_series_of(c, i);
        undrawn(&b, c, &s, y);
        n += take(a, &b, &notes[n]);
    }
    for (unsigned above = 0; above < 2 && !y->empty; above++) {
        edge(&b, c, y, above);
        n += take(a, &b, &notes[n]);
    }
    tb_buf_clear(&b);
    return notes;
}

static void describe(tb_buf *b, const tb_chart *c, const tb_series *s)
{
    size_t low = s->n, high = s->n, first = s->n, last = s->n;
    for (size_t i = 0; i < s->n; i++) {
        if (!tb_isfinite(s->y[i]))
            continue;
        first = first == s->n ? i : first;
        last = i;
        low = low == s->n || s->y[i] < s->y[low] ? i : low;
        high = high == s->n || s->y[i] > s->y[high] ? i : high;
    }
    tb_buf_printf(b, "%s%s: ", b->len ? "; " : "",
                  *s->label ? s->label : "series");
    if (first == s->n) {
        tb_buf_puts(b, "no finite value");
        return;
    }
    static const char *const words[] = {"", " to ", ", least ", ", largest "};
    const size_t at[] = {first, last, low, high};
    char text[TB_SHOW_CHARS];
    for (size_t i = 0; i < 4; i++) {
        tb_buf_printf(b, "%s%s at ", words[i],
                      tb_show_number(s->y[at[i]], text));
        put_x(b, c, tb_series_x(s, at[i]));
    }
}

const char *tb_chart_describe(tb_arena *a, const tb_chart *c)
{
    const char *out = NULL;
    tb_buf b;
    tb_buf_init(&b, a->ctx);
    for (size_t i = 0; i < c->count && i < 12; i++) {
        tb_series s = tb_series_of(c, i);
        describe(&b, c, &s);
    }
    if (c->count > 12)
        tb_buf_printf(&b, "; and %zu more series", c->count - 12);
    tb_buf_putc(&b, '.');
    take(a, &b, &out);
    tb_buf_clear(&b);
    return out;
}
