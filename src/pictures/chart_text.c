/* SPDX-License-Identifier: MIT */
/* A line chart on a terminal: one mark per series and column, dots between
 * distant points, and the same notes as the picture. */
#include "pictures/plot.h"

typedef struct text_plot {
    const tb_chart *c;
    const tb_terminal *term;
    tb_arena arena;
    tb_axis x, y;
    tb_canvas canvas;
    int left, cols, rows; /* plot cells, from column `left` */
} text_plot;

/* In the order of tb_marker. */
static const uint32_t marks[] = {0x25CF, 0x25CF, 0x25A0, 0x25C6,
                                 0x25B2, 0xD7,   0x25CB};

static uint32_t mark_of(const tb_series *s)
{
    return marks[s->marker];
}

static int column_of(const text_plot *p, double x)
{
    double share = (tb_axis_unit(&p->x, x) - p->x.lo) / (p->x.hi - p->x.lo);
    return p->left + (int)(share * (p->cols - 1) + 0.5);
}

static int row_of(const text_plot *p, double unit)
{
    double share = (unit - p->y.lo) / (p->y.hi - p->y.lo);
    return (int)((1 - share) * (p->rows - 1) + 0.5);
}

static void y_axis(text_plot *p)
{
    for (int r = 0; r <= p->rows; r++)
        tb_canvas_put(&p->canvas, p->left - 1, r, 0x2502);
    size_t n = p->y.n_ticks, every = 1; /* labels keep a row between them */
    while (n > every && 2 * (n - 1) > (size_t)(p->rows - 1) * every)
        every++;
    for (size_t i = 0; i < n; i += every) {
        char label[TB_SHOW_CHARS];
        int r = row_of(p, p->y.tick[i]);
        tb_axis_label(&p->y, i, label);
        tb_canvas_text(&p->canvas, p->left - 2 - (int)strlen(label), r, label);
        tb_canvas_put(&p->canvas, p->left - 1, r, 0x2524);
    }
}

static void x_axis(text_plot *p)
{
    int r = p->rows + 1, used = 0;
    tb_canvas_put(&p->canvas, p->left - 1, r, 0x2514);
    for (int c = p->left; c < p->left + p->cols; c++)
        tb_canvas_put(&p->canvas, c, r, 0x2500);
    for (size_t i = 0; i < p->x.n_ticks; i++) {
        char label[TB_SHOW_CHARS];
        int n = (int)strlen(tb_axis_label(&p->x, i, label));
        int c = column_of(p, p->x.tick[i]);
        tb_canvas_put(&p->canvas, c, r, 0x2534);
        int start = c - n / 2;
        if (start + n > p->canvas.w)
            start = p->canvas.w - n;
        if (start <= used)
            continue;
        tb_canvas_text(&p->canvas, start, r + 1, label);
        used = start + n;
    }
}

static void reference(text_plot *p)
{
    if (!p->c->has_ref || tb_axis_state(&p->y, p->c->ref) != TB_DRAWN)
        return;
    int r = row_of(p, tb_axis_unit(&p->y, p->c->ref));
    for (int c = p->left; c < p->left + p->cols; c++)
        tb_canvas_put(&p->canvas, c, r, 0x2504);
}

/* Dots from (c0, u0) to (c1, u1), where nothing else stands. */
static void between(text_plot *p, int c0, double u0, int c1, double u1)
{
    for (int c = c0 + 1; c < c1; c++) {
        double t = (double)(c - c0) / (c1 - c0);
        int r = row_of(p, u0 + t * (u1 - u0));
        uint32_t here = tb_canvas_get(&p->canvas, c, r);
        if (here == 0 || here == 0x2504)
            tb_canvas_put(&p->canvas, c, r, 0xB7);
    }
}

static void series(text_plot *p, const tb_series *s)
{
    int last = -1;
    double last_unit = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = tb_series_x(s, i);
        tb_state state = tb_axis_state(&p->y, s->y[i]);
        if (tb_axis_state(&p->x, x) != TB_DRAWN)
            continue;
        int c = column_of(p, x);
        if (state == TB_FLOOR || state == TB_GAP) {
            tb_canvas_put(&p->canvas, c, p->rows,
                          state == TB_FLOOR ? 0x25BE : '!');
            last = -1;
            continue;
        }
        double unit = tb_axis_unit(&p->y, s->y[i]);
        if (last >= 0)
            between(p, last, last_unit, c, unit);
        uint32_t edge = state == TB_ABOVE ? 0x25B2 : 0x25BC;
        tb_canvas_put(&p->canvas, c, row_of(p, unit),
                      state == TB_DRAWN ? mark_of(s) : edge);
        last = c;
        last_unit = unit;
    }
}

static void legend(const text_plot *p, tb_buf *b)
{
    tb_buf one;
    tb_buf_init(&one, p->arena.ctx);
    for (size_t i = 0; i < p->c->count; i++) {
        tb_series s = tb_series_of(p->c, i);
        char text[TB_SHOW_CHARS];
        tb_buf_clear(&one);
        tb_glyph_put(&one, mark_of(&s));
        tb_buf_printf(&one, " %s", s.label);
        if (s.n)
            tb_buf_printf(&one, ", last %s",
                          tb_show_number(s.y[s.n - 1], text));
        if (s.stopped)
            tb_buf_printf(&one, ", diverged at %s",
                          tb_show_number(s.stop, text));
        tb_term_wrap(b, p->term, 2, tb_buf_str(&one));
    }
    b->failed = b->failed || one.failed;
    tb_buf_clear(&one);
}

static tb_status put(text_plot *p, tb_buf *b)
{
    int w = tb_terminal_width(p->term);
    tb_term_wrap(b, p->term, 2, p->c->title);
    tb_axis_of_y(&p->y, p->c);
    tb_axis_of_x(&p->x, p->c);
    if (p->c->y_label)
        tb_term_wrap(b, p->term, 2, p->c->y_label);
    if (p->y.empty || p->x.empty) {
        tb_term_wrap(b, p->term, 2,
                     p->c->log_y ? "no positive values" : "no finite values");
    } else {
        size_t gutter = 0;
        char label[TB_SHOW_CHARS];
        for (size_t i = 0; i < p->y.n_ticks; i++) {
            size_t n = strlen(tb_axis_label(&p->y, i, label));
            gutter = n > gutter ? n : gutter;
        }
        p->rows = 14;
        p->left = (int)gutter + 2;
        p->cols = w - p->left;
        TB_TRY(tb_canvas_init(&p->canvas, &p->arena, w, p->rows + 3));
        y_axis(p);
        x_axis(p);
        reference(p);
        for (size_t i = 0; i < p->c->count; i++) {
            tb_series s = tb_series_of(p->c, i);
            series(p, &s);
        }
        tb_canvas_flush(&p->canvas, tb_terminal_ascii(p->term), b);
    }
    if (p->c->x_label)
        tb_term_wrap(b, p->term, 2, p->c->x_label);
    legend(p, b);
    const char *const *notes = tb_chart_notes(&p->arena, p->c, &p->y);
    for (size_t i = 0; notes && notes[i]; i++)
        tb_term_wrap(b, p->term, 2, notes[i]);
    return notes ? tb_buf_status(b) : TB_ERR_MEMORY;
}

tb_status tb_chart_term(tb_ctx *ctx, const tb_chart *chart,
                        const tb_terminal *term, tb_out *out)
{
    if (!chart->title)
        return TB_FAIL(ctx, TB_ERR_ARG, "chart: no title, wanted one");
    text_plot p = {.c = chart, .term = term};
    tb_arena_init(&p.arena, ctx);
    tb_status s = put(&p, &out->buf);
    tb_arena_clear(&p.arena);
    return s;
}
