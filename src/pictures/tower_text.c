/* SPDX-License-Identifier: MIT */
/* The tower as characters (the top floor drawn, then a line per floor) and as a
 * table. */
#include "pictures/tower.h"

enum { DRAWN = 2, LINES = 24, SHORT = 4 };

/* --- a floor as drawn ----------------------------------------------------- */

static void end_line(tb_buf *b, const tb_terminal *term, const char *line)
{
    tb_term_puts(b, term, line);
    tb_buf_putc(b, '\n');
}

/* Lane left, branch right, the lane's gain under each booth. */
static void draw_floor(tb_buf *b, const tb_terminal *term, const tb_tower *t,
                       size_t k)
{
    const tb_tower_floor *f = &t->floors[k - 1];
    char lane[TB_SHOW_CHARS], toll[TB_SHOW_CHARS] = "", line[160];
    tb_show_number(t->lane[k - 1], lane);
    if (tb_isfinite(f->toll))
        tb_show_number(f->toll, toll);
    if (f->on_lane) {
        tb_format(line, sizeof line, "      \xE2\x96\xA3 toll %-10s %8s", toll,
                  lane);
        end_line(b, term, line);
    }
    if (f->on_branch) {
        tb_format(line, sizeof line,
                  "      \xE2\x8A\x95\xE2\x97\x84[F]\xE2\x97\x84\xE2\x94\x80"
                  "\xE2\x96\xA3 %-6s %8s",
                  f->on_lane ? "" : toll, f->on_lane ? "" : lane);
        end_line(b, term, line);
    } else {
        end_line(b, term,
                 "      \xE2\x8A\x95\xE2\x97\x84\xE2\x94\x80\xE2\x94\x80"
                 "[F]\xE2\x97\x84\xE2\x94\x80\xE2\x94\x90");
    }
    tb_format(line, sizeof line, "      %s        \xE2\x94\x82",
              f->cut ? " " : "\xE2\x94\x82");
    end_line(b, term, line);
    end_line(b, term,
             "      \xE2\x94\x9C\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94"
             "\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94"
             "\x98");
}

static void draw_x(tb_buf *b, const tb_terminal *term, const tb_tower *t,
                   size_t k)
{
    char text[TB_SHOW_CHARS], line[80];
    tb_format(line, sizeof line, "  x%-3zu\xE2\x96\xB2 %-15s %8s",
              tower_k(t, k), "", tb_show_number(t->lane[k], text));
    end_line(b, term, line);
}

static void draw_top(tb_buf *b, const tb_terminal *term, const tb_tower *t)
{
    size_t n = t->n;
    char toll[TB_SHOW_CHARS], line[80];
    if (t->exit) {
        tb_format(line, sizeof line, "      \xE2\x96\xA3 exit toll %s",
                  tb_show_number(t->exit_toll, toll));
        end_line(b, term, line);
    }
    draw_x(b, term, t, n);
    for (size_t k = n; k > 0 && k + DRAWN > n; k--) {
        draw_floor(b, term, t, k);
        draw_x(b, term, t, k - 1);
    }
}

/* --- a line per floor ----------------------------------------------------- */

static const char *bar(tb_arena *a, const tb_terminal *term, const tb_axis *y,
                       double v, int cells)
{
    tb_buf b;
    tb_state state = tb_axis_state(y, v);
    if (state != TB_DRAWN && state != TB_ABOVE)
        return "";
    tb_buf_init(&b, a->ctx);
    tb_term_bar(&b, term, (tb_axis_unit(y, v) - y->lo) / (y->hi - y->lo),
                cells);
    const char *text = b.failed ? NULL : tb_arena_strdup(a, tb_buf_str(&b));
    tb_buf_clear(&b);
    return text;
}

/* Columns without bars where these would be too short to read. */
static void put_gain(tb_grid *g, tb_arena *a, const tb_terminal *term,
                     const tb_axis *y, double v, int cells)
{
    tb_grid_number(g, v);
    if (cells >= SHORT)
        tb_grid_text(g, bar(a, term, y, v, cells));
}

/* With a spread if there is one, with bars if they are long enough. */
static size_t heads(const tb_tower *t, bool bars, tb_column *out)
{
    static const tb_column all[] = {
        {.head = "x", .align = TB_RIGHT},
        {.head = "below", .priority = 3},
        {.head = "toll", .align = TB_RIGHT, .priority = 1},
        {.head = "std x", .align = TB_RIGHT, .priority = 2},
        {.head = "lane", .align = TB_RIGHT},
        {.head = "", .priority = 4},
        {.head = "total", .align = TB_RIGHT},
        {.head = "", .priority = 4}};
    size_t n = 0;
    for (size_t i = 0; i < TB_LEN(all); i++)
        if (i == 3 ? t->std != NULL : bars || *all[i].head)
            out[n++] = all[i];
    return n;
}

static tb_status lines(tb_arena *a, const tb_tower *t, const tb_terminal *term,
                       tb_out *out)
{
    size_t n = t->n, step = (n + LINES - 1) / LINES;
    int cells = (tb_terminal_width(term) - (t->std ? 55 : 48)) / 2;
    tb_column columns[8];
    size_t count = heads(t, cells >= SHORT, columns);
    tb_axis y = {0};
    tb_grid g;
    tower_axis(t, &y);
    TB_TRY(tb_grid_init(&g, a, t->title, columns, count, n + 2));
    for (size_t k = n + 1; k-- > 0;) {
        if ((n - k) % step && k)
            continue;
        tb_grid_text(&g, tb_arena_printf(a, "x%zu", tower_k(t, k)));
        tb_grid_text(&g, k ? t->floors[k - 1].name : "input");
        if (k && tb_isfinite(t->floors[k - 1].toll))
            tb_grid_number(&g, t->floors[k - 1].toll);
        else
            tb_grid_text(&g, "");
        if (t->std)
            tb_grid_number(&g, t->std[k]);
        put_gain(&g, a, term, &y, t->lane[k], cells);
        put_gain(&g, a, term, &y, t->total[k], cells);
    }
    TB_TRY(tb_grid_term(&g, term, out));
    if (step > 1)
        tb_term_wrap(&out->buf, term, 2,
                     tb_arena_printf(a, "every %zu. floor of %zu", step, n));
    return TB_OK;
}

static tb_status term_in(tb_arena *a, const tb_tower *t,
                         const tb_terminal *term, tb_out *out)
{
    if (!t->small) {
        draw_top(&out->buf, term, t);
        tb_term_wrap(&out->buf, term, 2,
                     "\xE2\x96\xA3 booth (norm)  \xE2\x8A\x95 add  right: "
                     "lane, from the top");
        tb_buf_putc(&out->buf, '\n');
    }
    TB_TRY(lines(a, t, term, out));
    return tb_buf_status(&out->buf);
}

tb_status tb_tower_term(tb_ctx *ctx, const tb_tower *t, const tb_terminal *term,
                        tb_out *out)
{
    TB_TRY(tower_check(ctx, t));
    tb_arena a;
    tb_arena_init(&a, ctx);
    tb_status status = term_in(&a, t, term, out);
    tb_arena_clear(&a);
    return status;
}

/* --- table ---------------------------------------------------------------- */

static tb_status table(tb_arena *a, const void *data, tb_grid *g)
{
    static const tb_column columns[] = {
        {.head = "floor", .align = TB_RIGHT},
        {.head = "x at its top", .align = TB_RIGHT},
        {.head = "what"},
        {.head = "norms"},
        {.head = "toll", .align = TB_RIGHT},
        {.head = "lane below", .align = TB_RIGHT},
        {.head = "total below", .align = TB_RIGHT}};
    static const char *const places[] = {"none", "lane", "branch",
                                         "lane and branch"};
    const tb_tower *t = data;
    TB_TRY(tb_grid_init(g, a, t->title, columns, TB_LEN(columns), t->n));
    for (size_t k = t->n; k > 0; k--) {
        const tb_tower_floor *f = &t->floors[k - 1];
        tb_grid_number(g, (double)k);
        tb_grid_text(g, tb_arena_printf(a, "x%zu", f->k));
        tb_grid_text(g, f->name);
        tb_grid_text(g, places[f->on_lane + 2 * f->on_branch]);
        if (tb_isfinite(f->toll))
            tb_grid_number(g, f->toll);
        else
            tb_grid_text(g, "");
        tb_grid_number(g, t->lane[k - 1]);
        tb_grid_number(g, t->total[k - 1]);
    }
    return TB_OK;
}

tb_status tb_tower_table_html(tb_ctx *ctx, const tb_tower *t, tb_out *out)
{
    TB_TRY(tower_check(ctx, t));
    return tb_grid_html_of(ctx, table, t, out);
}
