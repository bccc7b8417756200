/* SPDX-License-Identifier: MIT */
/* Tables filled cell by cell, and the numbers behind charts and bars as
 * tables. */
#include "pictures/plot.h"

enum { MAX_ROWS = 400 }; /* of one series in "show as table" */

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

static void chart_rows(tb_grid *g, const tb_chart *c, size_t i)
{
    tb_series s = tb_series_of(c, i);
    size_t step = s.n / MAX_ROWS + 1;
    for (size_t k = 0; k < s.n; k += step) {
        double x = tb_series_x(&s, k);
        tb_grid_text(g, s.label);
        tb_grid_number(g, x);
        bool named = c->x_names && x >= 0 && x < (double)c->n_names;
        if (c->x_names)
            tb_grid_text(g, named ? c->x_names[(size_t)x] : NULL);
        tb_grid_number(g, s.y[k]);
    }
}

static tb_status chart_table(tb_arena *a, const void *data, tb_grid *g)
{
    const tb_chart *c = data;
    const tb_column columns[] = {
        {.head = "series"},
        {.head = c->x_label ? c->x_label : "x", .align = TB_RIGHT},
        {.head = "name"},
        {.head = c->y_label ? c->y_label : "y", .align = TB_RIGHT}};
    const tb_column plain[] = {columns[0], columns[1], columns[3]};
    TB_TRY(tb_grid_init(g, a, c->title, c->x_names ? columns : plain,
                        c->x_names ? 4 : 3, c->count * (MAX_ROWS + 1)));
    for (size_t i = 0; i < c->count; i++)
        chart_rows(g, c, i);
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
