/* SPDX-License-Identifier: MIT */
/* Lists side by side on a terminal and as a table. */
#include "pictures/shot_columns.h"

enum { NUMBER = 8, WIDEST = 24 };

void shot_columns_add(shot_columns *c, const char *name, const double *list)
{
    if (c->n == SHOT_COLUMNS)
        return;
    c->names[c->n] = name;
    c->lists[c->n++] = list;
}

/* The least number; the largest magnitude. */
static double extremes(const shot_columns *c, double *most)
{
    double least = *most = 0;
    for (size_t k = 0; k < c->n; k++)
        for (size_t i = 0; i < c->d; i++) {
            *most = tb_max2(*most, tb_fabs(c->lists[k][i]));
            least = tb_min2(least, c->lists[k][i]);
        }
    return least;
}

/* A bar below zero, in whole cells: it looks another way, as it points there.
 */
static void below_zero(tb_buf *b, const tb_terminal *term, int cells)
{
    while (cells-- > 0)
        tb_term_puts(b, term, tb_terminal_ascii(term) ? "-" : "\xE2\x96\x92");
}

static void cell(tb_buf *b, const tb_terminal *term, double v, double most,
                 int cells, bool last)
{
    char text[TB_SHOW_CHARS];
    tb_buf_printf(b, "%*s", NUMBER, tb_show_number(v, text));
    double share = most > 0 ? tb_fabs(v) / most : 0;
    int eighths = (int)(tb_min2(1, share) * cells * 8 + 0.5);
    int used = tb_terminal_ascii(term) ? (eighths + 4) / 8 : (eighths + 7) / 8;
    if (used) {
        tb_buf_putc(b, ' ');
        if (v < 0)
            below_zero(b, term, used);
        else
            tb_term_bar(b, term, share, cells);
    }
    if (!last)
        tb_term_pad(b, cells + (used || !cells ? 0 : 1) - used + 1);
}

static void heads(tb_buf *b, const tb_terminal *term, const shot_columns *c,
                  int cells)
{
    tb_term_pad(b, 3);
    for (size_t k = 0; k < c->n; k++) {
        tb_term_pad(b, NUMBER - (int)tb_columns(c->names[k]));
        tb_term_puts(b, term, c->names[k]);
        if (k + 1 < c->n)
            tb_term_pad(b, cells + (cells ? 2 : 1));
    }
    tb_buf_putc(b, '\n');
}

void shot_columns_term(const shot_columns *c, const tb_terminal *term,
                       tb_out *out)
{
    int cells = (tb_terminal_width(term) - 3) / (int)c->n - NUMBER - 2;
    double most, least = extremes(c, &most);
    cells = cells > WIDEST ? WIDEST : cells < 2 ? 0 : cells;
    heads(&out->buf, term, c, cells);
    for (size_t i = 0; i < c->d; i++) {
        tb_buf_printf(&out->buf, "%2zu ", i + 1);
        for (size_t k = 0; k < c->n; k++)
            cell(&out->buf, term, c->lists[k][i], most, cells, k + 1 == c->n);
        tb_buf_putc(&out->buf, '\n');
    }
    if (cells && least < 0)
        tb_term_wrap(&out->buf, term, 2,
                     tb_terminal_ascii(term) ? "-: below 0"
                                             : "\xE2\x96\x92: below 0");
}

static tb_status table(tb_arena *a, const void *data, tb_grid *g)
{
    const shot_columns *c = data;
    tb_column columns[SHOT_COLUMNS + 1] = {{.head = "j", .align = TB_RIGHT}};
    for (size_t k = 0; k < c->n; k++)
        columns[k + 1] = (tb_column){.head = c->names[k], .align = TB_RIGHT};
    TB_TRY(tb_grid_init(g, a, c->caption, columns, c->n + 1, c->d));
    for (size_t i = 0; i < c->d; i++) {
        tb_grid_number(g, (double)i + 1);
        for (size_t k = 0; k < c->n; k++)
            tb_grid_number(g, c->lists[k][i]);
    }
    return TB_OK;
}

tb_status shot_columns_html(tb_ctx *ctx, const shot_columns *c, tb_out *out)
{
    return tb_grid_html_of(ctx, table, c, out);
}
