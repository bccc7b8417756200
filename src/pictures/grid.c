/* SPDX-License-Identifier: MIT */
/* Tables filled cell by cell, and the numbers behind charts and bars as
 * tables. */
#include "pictures/plot.h"

enum { MAX_ROWS = 400 }; /* of one series in "show as table", about */

tb_status tb_grid_init(tb_grid *g, tb_arena *a, const char *caption,
                       const tb_column *columns, size_t n_columns,
                       size_t max_rows)
{
    tb_column *own = tb_arena_alloc(a, n_columns * sizeof *own);
    size_t bytes;
    if (!own)
        return TB_ERR_MEMORY;
    memcpy(own, columns, n_columns * sizeof *own);
    *g = (tb_grid){
        .arena = a,
        .table = {.caption = caption, .columns = own, .n_columns = n_columns}};
    if (!tb_mul(n_columns, max_rows, &g->cap) ||
        !tb_mul(g->cap, sizeof *g->cells, &bytes))
        return TB_FAIL(a->ctx, TB_ERR_MEMORY, "table: %zu rows", max_rows);
    g->cells = tb_arena_alloc(a, bytes);
    return g->cells ? TB_OK : TB_ERR_MEMORY;
}

void tb_grid_text(tb_grid *g, const char *s)
{
    const char *copy = s ? tb_arena_strdup(g->arena, s) : "";
    if (!copy || g->used == g->cap)
        g->failed = true;
    else
        g->cells[g->used++] = copy;
}

void tb_grid_number(tb_grid *g, double v)
{
    char text[TB_SHOW_CHARS];
    tb_grid_text(g, tb_show_number(v, text));
}

static tb_status finish(tb_grid *g)
{
    g->table.cells = g->cells;
    g->table.n_rows = g->used / g->table.n_columns;
    return g->failed ? TB_ERR_MEMORY : TB_OK;
}

tb_status tb_grid_term(tb_grid *g, const tb_terminal *term, tb_out *out)
{
    TB_TRY(finish(g));
    return tb_table_term(g->arena->ctx, &g->table, term, out);
}

tb_status tb_grid_html_of(tb_ctx *ctx, tb_grid_maker make, const void *data,
                          tb_out *out)
{
    tb_arena a;
    tb_grid g;
    tb_arena_init(&a, ctx);
    tb_status s = make(&a, data, &g);
    if (s == TB_OK)
        s = finish(&g);
    if (s == TB_OK)
        s = tb_table_html(ctx, &g.table, out);
    tb_arena_clear(&a);
    return s;
}

tb_status tb_grid_term_of(tb_ctx *ctx, tb_grid_maker make, const void *data,
                          const tb_terminal *term, tb_out *out)
{
    tb_arena a;
    tb_grid g;
    tb_arena_init(&a, ctx);
    tb_status s = make(&a, data, &g);
    if (s == TB_OK)
        s = tb_grid_term(&g, term, out);
    tb_arena_clear(&a);
    return s;
}

/* --- charts and bars ---------------------------------------------------- */

/* Where the walk through one series is. */
typedef struct cursor {
    tb_series series;
    size_t next, step; /* step: every so many points are shown, and the last */
} cursor;

static bool has_more(const cursor *c)
{
    return c->next < c->series.n;
}

static bool is_shown(const cursor *c)
{
    return c->next % c->step == 0 || c->next + 1 == c->series.n;
}

static cursor *cursors(tb_arena *a, const tb_chart *c, size_t *rows)
{
    cursor *all = tb_arena_alloc(a, (c->count + 1) * sizeof *all);
    *rows = 0;
    for (size_t i = 0; all && i < c->count; i++) {
        size_t step = c->series[i].n / MAX_ROWS + 1;
        all[i] = (cursor){.series = tb_series_of(c, i), .step = step};
        *rows += all[i].series.n / step + 2;
    }
    return all;
}

static bool stands_at(const cursor *c, double x)
{
    return has_more(c) && tb_series_x(&c->series, c->next) <= x;
}

/* The least x that is still to come; false at the end. What is no place is
 * passed over: it is not drawn either. */
static bool next_x(cursor *all, size_t n, double *x)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        cursor *c = &all[i];
        while (has_more(c) && !tb_isfinite(tb_series_x(&c->series, c->next)))
            c->next++;
        if (!has_more(c) || (any && !stands_at(c, *x)))
            continue;
        *x = tb_series_x(&c->series, c->next);
        any = true;
    }
    return any;
}

/* A place is told in full: update 12345, not 12300. */
static void put_place(tb_grid *g, double x)
{
    if (tb_fabs(x) < 1e15 && x == tb_floor(x))
        tb_grid_text(g, tb_arena_printf(g->arena, "%lld", (long long)x));
    else
        tb_grid_number(g, x);
}

/* One row: x, its name, and what each series has there. A series with two
 * points at one x goes on in the next row. */
static void chart_row(tb_grid *g, const tb_chart *c, cursor *all, double x)
{
    bool named = x >= 0 && x < (double)c->n_names, shown = false;
    for (size_t i = 0; i < c->count; i++)
        shown = shown || (stands_at(&all[i], x) && is_shown(&all[i]));
    if (shown)
        put_place(g, x);
    if (shown && c->x_names)
        tb_grid_text(g, named ? c->x_names[(size_t)x] : NULL);
    for (size_t i = 0; i < c->count; i++) {
        bool here = stands_at(&all[i], x);
        if (shown && here)
            tb_grid_number(g, all[i].series.y[all[i].next]);
        else if (shown)
            tb_grid_text(g, "");
        all[i].next += here;
    }
}

static const tb_column *chart_columns(tb_arena *a, const tb_chart *c)
{
    tb_column *out = tb_arena_alloc(a, (c->count + 2) * sizeof *out);
    size_t n = 0;
    if (!out)
        return NULL;
    out[n++] =
        (tb_column){.head = c->x_label ? c->x_label : "x", .align = TB_RIGHT};
    if (c->x_names)
        out[n++] = (tb_column){.head = "name"};
    for (size_t i = 0; i < c->count; i++) {
        const char *label = c->series[i].label;
        label = label && *label ? label : c->y_label ? c->y_label : "y";
        out[n++] = (tb_column){.head = label, .align = TB_RIGHT};
    }
    return out;
}

/* "Loss by update: loss, nats per token (of 4 points one)" */
static const char *chart_caption(tb_arena *a, const tb_chart *c,
                                 const cursor *all)
{
    size_t step = 1;
    for (size_t i = 0; i < c->count; i++)
        step = all[i].step > step ? all[i].step : step;
    const char *text =
        tb_arena_printf(a, "%s%s%s", c->title, c->y_label ? ": " : "",
                        c->y_label ? c->y_label : "");
    return text && step > 1
               ? tb_arena_printf(a, "%s (of %zu points one)", text, step)
               : text;
}

static tb_status chart_table(tb_arena *a, const void *data, tb_grid *g)
{
    const tb_chart *c = data;
    size_t rows;
    double x = 0;
    cursor *all = cursors(a, c, &rows);
    const tb_column *columns = chart_columns(a, c);
    const char *caption = all ? chart_caption(a, c, all) : NULL;
    if (!columns || !caption)
        return TB_ERR_MEMORY;
    TB_TRY(tb_grid_init(g, a, caption, columns,
                        c->count + 1 + (c->x_names != NULL), rows));
    while (next_x(all, c->count, &x))
        chart_row(g, c, all, x);
    return TB_OK;
}

tb_status tb_chart_table_html(tb_ctx *ctx, const tb_chart *chart, tb_out *out)
{
    return tb_grid_html_of(ctx, chart_table, chart, out);
}

static tb_status bars_table(tb_arena *a, const void *data, tb_grid *g)
{
    const tb_bars *bars = data;
    const tb_column columns[] = {
        {.head = bars->x_label ? bars->x_label : "name"},
        {.head = bars->y_label ? bars->y_label : "value", .align = TB_RIGHT}};
    TB_TRY(tb_grid_init(g, a, bars->title, columns, 2, bars->n));
    for (size_t i = 0; i < bars->n; i++) {
        tb_grid_text(g, bars->labels ? bars->labels[i] : NULL);
        tb_grid_number(g, bars->values[i]);
    }
    return TB_OK;
}

tb_status tb_bars_table_html(tb_ctx *ctx, const tb_bars *bars, tb_out *out)
{
    return tb_grid_html_of(ctx, bars_table, bars, out);
}
