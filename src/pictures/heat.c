/* SPDX-License-Identifier: MIT */
/* The cells of a heat map: merging, what each one shows, and the words for
 * what a colour cannot say. */
#include "pictures/heat.h"

tb_status tb_heat_check(tb_ctx *ctx, const tb_heat *h)
{
    size_t n;
    if (!h->title)
        return TB_FAIL(ctx, TB_ERR_ARG, "heat map: no title, wanted one");
    if (!h->rows || !h->columns || !h->values ||
        !tb_mul(h->rows, h->columns, &n))
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "heat map: %zu x %zu values, wanted 1 or more", h->rows,
                       h->columns);
    if (h->limit < 0 || !tb_isfinite(h->limit))
        return TB_FAIL(ctx, TB_ERR_ARG, "heat map: limit %g, wanted 0 or more",
                       h->limit);
    return TB_OK;
}

/* --- merging ------------------------------------------------------------ */

static tb_heat_state state_of(const tb_heat *h, size_t i)
{
    if (h->missing && h->missing[i])
        return TB_HEAT_NONE;
    if (!tb_isfinite(h->values[i]))
        return TB_HEAT_BAD;
    bool none = h->scale == TB_HEAT_LOG && !(h->values[i] > 0);
    return none ? TB_HEAT_ZERO : TB_HEAT_SHOWN;
}

/* What wins inside a merged cell: trouble first, then a number, then zero;
 * missing only where nothing else is. */
static bool wins(tb_heat_state a, double va, tb_heat_state b, double vb)
{
    static const int rank[] = {[TB_HEAT_NONE] = 0,
                               [TB_HEAT_ZERO] = 1,
                               [TB_HEAT_SHOWN] = 2,
                               [TB_HEAT_BAD] = 3};
    if (a != b)
        return rank[a] > rank[b];
    return a == TB_HEAT_SHOWN && tb_fabs(va) > tb_fabs(vb);
}

static void merge_cell(tb_heat_view *v, size_t r, size_t c)
{
    const tb_heat *h = v->heat;
    size_t cell = r * v->columns + c;
    size_t r1 = (r + 1) * v->by_row, c1 = (c + 1) * v->by_column;
    tb_heat_state state = TB_HEAT_NONE;
    double value = 0;
    for (size_t i = r * v->by_row; i < r1 && i < h->rows; i++)
        for (size_t k = c * v->by_column; k < c1 && k < h->columns; k++) {
            size_t at = i * h->columns + k;
            tb_heat_state one = state_of(h, at);
            if (wins(one, h->values[at], state, value)) {
                state = one;
                value = h->values[at];
            }
        }
    v->state[cell] = (unsigned char)state;
    v->value[cell] = value;
    v->found[state]++;
}

static void choose_merge(tb_heat_view *v, size_t cells, size_t columns)
{
    const tb_heat *h = v->heat;
    v->by_row = v->by_column = 1;
    for (;;) {
        v->rows = (h->rows + v->by_row - 1) / v->by_row;
        v->columns = (h->columns + v->by_column - 1) / v->by_column;
        bool wide = v->columns > columns;
        if (!wide && v->rows <= cells / v->columns)
            return;
        bool square = h->outline_diagonal && h->rows == h->columns;
        bool more_columns = wide || v->columns >= v->rows;
        if (square || more_columns)
            v->by_column += v->by_column / 16 + 1;
        if (square || !more_columns)
            v->by_row += v->by_row / 16 + 1;
    }
}

/* --- scale -------------------------------------------------------------- */

static double lowest(const tb_heat *h, double least, double most)
{
    double low = h->decades > 0 ? most * tb_pow10(-h->decades) : least;
    return low > least ? low : least;
}

static void fit(tb_heat_view *v)
{
    double least = 1, most = 0;
    for (size_t i = 0; i < v->rows * v->columns; i++) {
        if (v->state[i] != TB_HEAT_SHOWN)
            continue;
        double x = v->value[i];
        bool first = least > most;
        if (v->heat->scale == TB_HEAT_SIGNED)
            x = tb_fabs(x);
        least = first || x < least ? x : least;
        most = first || x > most ? x : most;
    }
    v->limit = v->heat->limit > 0 ? v->heat->limit : most;
    if (v->heat->scale == TB_HEAT_LOG)
        tb_axis_fit(&v->axis, true, lowest(v->heat, least, most), most, false);
}

tb_status tb_heat_view_init(tb_heat_view *v, tb_arena *a, const tb_heat *h,
                            size_t cells, size_t columns)
{
    *v = (tb_heat_view){.heat = h, .arena = a};
    choose_merge(v, cells, columns);
    size_t n = v->rows * v->columns;
    v->value = tb_arena_alloc(a, n * sizeof *v->value);
    v->state = tb_arena_alloc(a, n * sizeof *v->state);
    if (!v->value || !v->state)
        return TB_ERR_MEMORY;
    for (size_t r = 0; r < v->rows; r++)
        for (size_t c = 0; c < v->columns; c++)
            merge_cell(v, r, c);
    fit(v);
    return TB_OK;
}

double tb_heat_strength(const tb_heat_view *v, double value)
{
    if (v->heat->scale == TB_HEAT_FROM_ZERO)
        value = tb_max2(0, value);
    if (v->heat->scale != TB_HEAT_LOG)
        return v->limit > 0 ? tb_min2(1, tb_fabs(value) / v->limit) : 0;
    const tb_axis *a = &v->axis;
    return (tb_axis_unit(a, value) - a->lo) / (a->hi - a->lo);
}

/* --- words -------------------------------------------------------------- */

static const char *name_of(const tb_heat_view *v, const char *const *names,
                           size_t total, size_t by, size_t i)
{
    if (!names)
        return "";
    size_t last = (i + 1) * by <= total ? (i + 1) * by - 1 : total - 1;
    const char *a = names[i * by] ? names[i * by] : "";
    if (last == i * by || !names[last])
        return a;
    return tb_arena_printf(v->arena, "%s..%s", a, names[last]);
}

const char *tb_heat_row_name(const tb_heat_view *v, size_t row)
{
    return name_of(v, v->heat->row_names, v->heat->rows, v->by_row, row);
}

const char *tb_heat_column_name(const tb_heat_view *v, size_t column)
{
    return name_of(v, v->heat->column_names, v->heat->columns, v->by_column,
                   column);
}

const char *tb_heat_cell(const tb_heat_view *v, size_t cell,
                         char out[TB_SHOW_CHARS])
{
    return v->state[cell] == TB_HEAT_NONE ? "none"
                                          : tb_show_number(v->value[cell], out);
}

const char *tb_heat_scale_words(const tb_heat *h)
{
    static const char *const words[] = {
        [TB_HEAT_SIGNED] = "about 0: a square is above, a disc below",
        [TB_HEAT_LOG] = "log scale",
        [TB_HEAT_FROM_ZERO] = "linear, from 0"};
    return words[h->scale];
}

/* The scale does not reach this value. */
static bool is_beyond(const tb_heat_view *v, double x)
{
    if (v->heat->scale == TB_HEAT_LOG)
        return tb_axis_state(&v->axis, x) != TB_DRAWN;
    bool below = v->heat->scale == TB_HEAT_FROM_ZERO && x < 0;
    return below || tb_fabs(x) > v->limit * (1 + 1e-12);
}

static size_t beyond(const tb_heat_view *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->rows * v->columns; i++)
        n += v->state[i] == TB_HEAT_SHOWN && is_beyond(v, v->value[i]);
    return n;
}

enum { NOTES = 3 };

const char *const *tb_heat_notes(const tb_heat_view *v)
{
    tb_arena *a = v->arena;
    const char **notes = tb_arena_alloc(a, (NOTES + 1) * sizeof *notes);
    size_t n = 0, over = beyond(v), bad = v->found[TB_HEAT_BAD];
    if (!notes)
        return NULL;
    if (v->by_row > 1 || v->by_column > 1)
        notes[n++] = tb_arena_printf(a,
                                     "%zu x %zu values: each cell shows the "
                                     "largest magnitude of %zu x %zu",
                                     v->heat->rows, v->heat->columns, v->by_row,
                                     v->by_column);
    if (bad)
        notes[n++] = tb_arena_printf(a, "not finite: %zu cell%s", bad,
                                     bad == 1 ? "" : "s");
    if (over)
        notes[n++] =
            tb_arena_printf(a, "beyond the scale, at its end: %zu cell%s", over,
                            over == 1 ? "" : "s");
    for (size_t i = 0; i < n; i++)
        if (!notes[i])
            return NULL;
    notes[n] = NULL;
    return notes;
}
