/* SPDX-License-Identifier: MIT */
/* Gradient flow on a terminal: a summary of the runs, then per run one line
 * per sublayer from the top down, with log bars on one shared scale. */
#include "pictures/flow_figure.h"

enum { NUMBER = 8, NAME_MAX_COLUMNS = 6, UNFOLDED = 64, ENDS = 5 };

static tb_status fill_summary(tb_grid *g, tb_arena *a, const tb_flow_figure *f)
{
    for (size_t i = 0; i < f->count; i++) {
        const tb_flow_curve *r = &f->runs[i];
        size_t at;
        const char *name = tb_flow_name(a, r);
        if (!name)
            return TB_ERR_MEMORY;
        tb_grid_text(g, name);
        const double *values[] = {r->lane, r->total};
        for (size_t k = 0; k < 2; k++) {
            double least = tb_flow_least(values[k], r->n, &at);
            if (r->n)
                tb_grid_number(g, values[k][0]);
            else
                tb_grid_text(g, "-");
            if (at < r->n)
                tb_grid_number(g, least);
            else
                tb_grid_text(g, "-");
        }
    }
    return TB_OK;
}

static tb_status summary(tb_arena *a, const tb_flow_figure *f,
                         const tb_terminal *term, tb_out *out)
{
    static const tb_column columns[] = {
        {.head = "block"},
        {.head = "lane k=0", .align = TB_RIGHT},
        {.head = "lane least", .align = TB_RIGHT, .priority = 2},
        {.head = "total k=0", .align = TB_RIGHT},
        {.head = "total least", .align = TB_RIGHT, .priority = 1}};
    tb_grid g;
    TB_TRY(tb_grid_init(&g, a, f->title ? f->title : TB_FLOW_TITLE, columns,
                        TB_LEN(columns), f->count));
    TB_TRY(fill_summary(&g, a, f));
    return tb_grid_term(&g, term, out);
}

/* --- lines -------------------------------------------------------------- */

typedef struct lines {
    const tb_flow_curve *r;
    const tb_terminal *term;
    tb_axis y;
    int k_width, name_width, cells;
} lines;

static void measure(lines *l)
{
    char text[32];
    l->k_width = (int)tb_format(text, sizeof text, "%zu", l->r->n);
    l->name_width = 0;
    for (size_t k = 0; l->r->names && k < l->r->n; k++) {
        int n = (int)tb_columns(l->r->names[k]);
        l->name_width = n > l->name_width ? n : l->name_width;
    }
    if (l->name_width > NAME_MAX_COLUMNS)
        l->name_width = NAME_MAX_COLUMNS;
    int fixed = l->k_width + 1 + l->name_width + 2 * (NUMBER + 2);
    l->cells = (tb_terminal_width(l->term) - fixed) / 2;
}

/* Number and bar in NUMBER + 1 + cells columns; returns blanks owed. */
static int put_value(const lines *l, tb_buf *b, double v)
{
    char text[TB_SHOW_CHARS];
    tb_state state = tb_axis_state(&l->y, v);
    tb_buf_printf(b, " %*s", NUMBER, tb_show_number(v, text));
    if (state != TB_DRAWN && state != TB_ABOVE)
        return l->cells + 1;
    double share = (tb_axis_unit(&l->y, v) - l->y.lo) / (l->y.hi - l->y.lo);
    int eighths = (int)(share * l->cells * 8 + 0.5);
    int used =
        tb_terminal_ascii(l->term) ? (eighths + 4) / 8 : (eighths + 7) / 8;
    if (used == 0)
        return l->cells + 1;
    tb_buf_putc(b, ' ');
    tb_term_bar(b, l->term, share, l->cells);
    return l->cells - used;
}

static tb_status put_line(const lines *l, tb_arena *a, tb_buf *b, size_t k)
{
    const char *name = tb_shorten(a, l->r->names ? l->r->names[k] : NULL,
                                  (size_t)l->name_width);
    if (!name)
        return TB_ERR_MEMORY;
    tb_buf_printf(b, "%*zu ", l->k_width, k);
    tb_term_puts(b, l->term, name);
    tb_term_pad(b, l->name_width - (int)tb_columns(name));
    int owed = put_value(l, b, l->r->lane[k]);
    tb_term_pad(b, owed);
    put_value(l, b, l->r->total[k]);
    tb_buf_putc(b, '\n');
    return TB_OK;
}

/* "1e-5      10" under the bars of one column. */
static void put_scale(const lines *l, tb_buf *b, const char *what, bool last)
{
    char lo[TB_SHOW_CHARS], hi[TB_SHOW_CHARS];
    tb_show_number(tb_pow10(l->y.lo), lo);
    tb_show_number(tb_pow10(l->y.hi), hi);
    int room = l->cells - (int)strlen(lo) - (int)strlen(hi);
    tb_buf_printf(b, " %*s ", NUMBER, what);
    if (room < 1 && last)
        return;
    if (room < 1) {
        tb_term_pad(b, l->cells);
        return;
    }
    tb_buf_puts(b, lo);
    tb_term_pad(b, room);
    tb_buf_puts(b, hi);
}

static tb_status put_run(lines *l, tb_arena *a, tb_buf *b)
{
    const char *name = tb_flow_name(a, l->r);
    if (!name)
        return TB_ERR_MEMORY;
    measure(l);
    tb_buf_putc(b, '\n');
    tb_term_wrap(b, l->term, 2, name);
    if (l->y.empty) {
        tb_term_wrap(b, l->term, 2, "no positive values");
        return TB_OK;
    }
    tb_buf_printf(b, "%*s ", l->k_width, "k");
    tb_term_pad(b, l->name_width);
    put_scale(l, b, "lane", false);
    put_scale(l, b, "total", true);
    while (b->len && !b->failed && b->data[b->len - 1] == ' ')
        b->data[--b->len] = 0;
    tb_buf_putc(b, '\n');
    bool fold = l->r->n > UNFOLDED;
    for (size_t k = l->r->n; k-- > 0;) {
        if (fold && k >= ENDS && k < l->r->n - ENDS) {
            if (k == ENDS)
                tb_buf_printf(b, "%*s %zu more lines\n", l->k_width, "..",
                              l->r->n - 2 * ENDS);
            continue;
        }
        TB_TRY(put_line(l, a, b, k));
    }
    return TB_OK;
}

static tb_status put_notes(const lines *l, tb_arena *a, tb_buf *b)
{
    tb_series all[3];
    tb_chart c = {.series = all,
                  .log_y = true,
                  .x_names = l->r->names,
                  .n_names = l->r->names ? l->r->n : 0};
    c.count = tb_flow_series(l->r, all);
    const char *const *notes = tb_chart_notes(a, &c, &l->y);
    for (size_t i = 0; notes && notes[i]; i++)
        tb_term_wrap(b, l->term, 2, notes[i]);
    return notes ? TB_OK : TB_ERR_MEMORY;
}

/* Bars span at least three decades, so that runs look alike across figures. */
static void widen(tb_axis *y)
{
    if (!y->empty && y->hi - y->lo < 3)
        y->lo = y->hi - 3;
}

static tb_status put_all(tb_arena *a, const tb_flow_figure *f,
                         const tb_terminal *term, tb_out *out)
{
    lines l = {.term = term};
    TB_TRY(tb_flow_scale(a, f, &l.y));
    widen(&l.y);
    TB_TRY(summary(a, f, term, out));
    for (size_t i = 0; i < f->count; i++) {
        l.r = &f->runs[i];
        TB_TRY(put_run(&l, a, &out->buf));
        TB_TRY(put_notes(&l, a, &out->buf));
    }
    return tb_buf_status(&out->buf);
}

tb_status tb_flow_term(tb_ctx *ctx, const tb_flow_figure *f,
                       const tb_terminal *term, tb_out *out)
{
    TB_TRY(tb_flow_check(ctx, f));
    tb_arena a;
    tb_arena_init(&a, ctx);
    tb_status s = put_all(&a, f, term, out);
    tb_arena_clear(&a);
    return s;
}

/* --- show as table ------------------------------------------------------ */

static tb_status table(tb_arena *a, const void *data, tb_grid *g)
{
    const tb_flow_figure *f = data;
    static const tb_column columns[] = {{.head = "block"},
                                        {.head = "k", .align = TB_RIGHT},
                                        {.head = "sublayer"},
                                        {.head = "lane", .align = TB_RIGHT},
                                        {.head = "total", .align = TB_RIGHT},
                                        {.head = "branch", .align = TB_RIGHT}};
    size_t rows = 0;
    for (size_t i = 0; i < f->count; i++)
        rows += f->runs[i].n;
    TB_TRY(tb_grid_init(g, a, f->title ? f->title : TB_FLOW_TITLE, columns,
                        TB_LEN(columns), rows));
    for (size_t i = 0; i < f->count; i++) {
        const tb_flow_curve *r = &f->runs[i];
        for (size_t k = 0; k < r->n; k++) {
            tb_grid_text(g, r->block);
            tb_grid_number(g, (double)k);
            tb_grid_text(g, r->names ? r->names[k] : NULL);
            tb_grid_number(g, r->lane[k]);
            tb_grid_number(g, r->total[k]);
            if (r->branch)
                tb_grid_number(g, r->branch[k]);
            else
                tb_grid_text(g, "");
        }
    }
    return TB_OK;
}

tb_status tb_flow_table_html(tb_ctx *ctx, const tb_flow_figure *f, tb_out *out)
{
    TB_TRY(tb_flow_check(ctx, f));
    return tb_grid_html_of(ctx, table, f, out);
}
