/* SPDX-License-Identifier: MIT */
/* A stage as characters, as a table and as JSON. */
#include "pictures/diagram.h"
#include "pictures/shot_stage_parts.h"

/* --- roads as characters -------------------------------------------------- */

enum { CORNER_UP = 0x250C, ACROSS = 0x2500, CORNER_DOWN = 0x2510 };

static void run(tb_canvas *c, int x0, int x1, int y, uint32_t cp)
{
    for (int x = x0; x <= x1; x++)
        tb_canvas_put(c, x, y, cp);
}

/* Centred on the road, with a blank on either side. */
static void words_on(tb_canvas *c, int x0, int x1, int y, const char *text)
{
    int n = (int)tb_columns(text);
    int at = (x0 + x1 + 1 - n) / 2;
    if (at - 1 <= x0 || at + n >= x1)
        return;
    tb_canvas_put(c, at - 1, y, ' ');
    at = tb_canvas_text(c, at, y, text);
    tb_canvas_put(c, at, y, ' ');
}

/*      ┌────── skip: x itself ──────┐
 *      │                            ▼
 * x ───┴───►[ F ]──── F(x) ────────►⊕───► y */
static void skip_road(tb_canvas *c, const shot_stage *st, int fork, int plus)
{
    run(c, fork + 1, plus - 1, 0, st->skip ? ACROSS : 0x2508);
    tb_canvas_put(c, fork, 0, CORNER_UP);
    tb_canvas_put(c, plus, 0, CORNER_DOWN);
    words_on(c, fork, plus, 0, st->skip ? "skip: x itself" : "skip broken");
    tb_canvas_put(c, fork, 1, st->skip ? 0x2502 : 0x2508);
    tb_canvas_put(c, plus, 1, st->skip ? 0x25BC : 0x2508);
}

static tb_status roads(tb_arena *a, const shot_stage *st,
                       const tb_terminal *term, tb_buf *out)
{
    tb_canvas c;
    int w = tb_terminal_width(term) > 72 ? 72 : tb_terminal_width(term);
    int y = st->y ? 2 : 0, fork = 5, plus = w - 8;
    TB_TRY(tb_canvas_init(&c, a, w, y + 1));
    run(&c, 2, plus + 3, y, ACROSS);
    tb_canvas_text(&c, 0, y, "x ");
    int box = fork + (plus - fork) / 3 - 2;
    tb_canvas_put(&c, box - 1, y, 0x25BA);
    int after = tb_canvas_text(&c, box, y, "[ ");
    after = tb_canvas_text(&c, after, y, st->box);
    after = tb_canvas_text(&c, after, y, st->box_broken ? " broken ]" : " ]");
    if (st->y) {
        skip_road(&c, st, fork, plus);
        tb_canvas_put(&c, fork, y, 0x2534);
        words_on(&c, after, plus - 1, y, "F(x)");
        tb_canvas_put(&c, plus - 1, y, 0x25BA);
        tb_canvas_put(&c, plus, y, 0x2295);
        tb_canvas_text(&c, plus + 3, y, "\xE2\x96\xBA y");
    } else {
        tb_canvas_text(&c, plus + 1, y, "\xE2\x96\xBA F(x)");
    }
    tb_canvas_flush(&c, tb_terminal_ascii(term), out);
    return TB_OK;
}

/* --- lists as characters -------------------------------------------------- */

static void cell(tb_buf *b, const tb_terminal *term, double v, double most,
                 int cells, bool last)
{
    enum { NUMBER = 8 };
    char text[TB_SHOW_CHARS];
    tb_buf_printf(b, "%*s", NUMBER, tb_show_number(v, text));
    double share = most > 0 ? tb_fabs(v) / most : 0;
    int eighths = (int)(tb_min2(1, share) * cells * 8 + 0.5);
    int used = tb_terminal_ascii(term) ? (eighths + 4) / 8 : (eighths + 7) / 8;
    if (used) {
        tb_buf_putc(b, ' ');
        tb_term_bar(b, term, share, cells);
    }
    if (!last)
        tb_term_pad(b, cells + (used ? 0 : 1) - used + 1);
}

static void heads(tb_buf *b, const tb_terminal *term, const char *const *names,
                  size_t n, int cells)
{
    tb_term_pad(b, 3);
    for (size_t k = 0; k < n; k++) {
        tb_term_pad(b, 8 - (int)tb_columns(names[k]));
        tb_term_puts(b, term, names[k]);
        if (k + 1 < n)
            tb_term_pad(b, cells + 2);
    }
    tb_buf_putc(b, '\n');
}

static size_t columns_of(const shot_stage *st, const double **lists,
                         const char **names)
{
    size_t n = 0;
    lists[n] = st->x;
    names[n++] = "x";
    if (st->f) {
        lists[n] = st->f;
        names[n++] = "F(x)";
    }
    if (st->y) {
        lists[n] = st->y;
        names[n++] = "y";
    }
    return n;
}

static tb_status rows(tb_arena *a, const shot_stage *st,
                      const tb_terminal *term, tb_buf *b)
{
    const double *lists[3];
    const char *names[3];
    size_t n = columns_of(st, lists, names);
    double lo, hi;
    int cells = (tb_terminal_width(term) - 3) / (int)n - 10;
    cells = cells > 24 ? 24 : cells;
    stage_range(st, &lo, &hi);
    heads(b, term, names, n, cells);
    for (size_t i = 0; i < st->d; i++) {
        tb_buf_printf(b, "%2zu ", i + 1);
        tb_buf line;
        tb_buf_init(&line, a->ctx);
        for (size_t k = 0; k < n; k++)
            cell(&line, term, lists[k][i], tb_max2(hi, -lo), cells, k + 1 == n);
        tb_buf_puts(b, tb_buf_str(&line));
        b->failed = b->failed || line.failed;
        tb_buf_clear(&line);
        tb_buf_putc(b, '\n');
    }
    return TB_OK;
}

static void back_line(tb_buf *b, const tb_terminal *term, const char *name,
                      double g)
{
    char text[TB_SHOW_CHARS];
    tb_buf_printf(b, "  %-16s%8s ", name, tb_show_number(g, text));
    tb_term_bar(b, term, tb_back_width(g) / 13, 12);
    tb_buf_putc(b, '\n');
}

static void backward(tb_buf *b, const tb_terminal *term, const stage_back *g)
{
    tb_term_wrap(b, term, 2,
                 "Backward (\xE2\x97\x84), as wide as an arrow is drawn:");
    back_line(b, term, "arrives at y", g->out);
    back_line(b, term, "by the skip", g->hw);
    back_line(b, term, "through F", g->br);
    back_line(b, term, "both, at x", g->in);
}

tb_status stage_term(tb_ctx *ctx, const void *data, const tb_terminal *term,
                     tb_out *out)
{
    const shot_stage *st = data;
    tb_arena a;
    tb_arena_init(&a, ctx);
    tb_status status = roads(&a, st, term, &out->buf);
    tb_buf_putc(&out->buf, '\n');
    if (status == TB_OK)
        status = rows(&a, st, term, &out->buf);
    if (status == TB_OK && st->back) {
        tb_buf_putc(&out->buf, '\n');
        backward(&out->buf, term, st->back);
    }
    tb_arena_clear(&a);
    return status == TB_OK ? tb_buf_status(&out->buf) : status;
}

/* --- table and JSON ------------------------------------------------------- */

static tb_status table(tb_arena *a, const shot_stage *st, tb_out *out)
{
    const double *lists[3];
    const char *names[3];
    tb_column columns[4] = {{.head = "j", .align = TB_RIGHT}};
    size_t n = columns_of(st, lists, names);
    tb_grid g;
    for (size_t k = 0; k < n; k++)
        columns[k + 1] = (tb_column){.head = names[k], .align = TB_RIGHT};
    TB_TRY(tb_grid_init(&g, a, st->title, columns, n + 1, st->d));
    for (size_t i = 0; i < st->d; i++) {
        tb_grid_number(&g, (double)i + 1);
        for (size_t k = 0; k < n; k++)
            tb_grid_number(&g, lists[k][i]);
    }
    return tb_grid_html(&g, out);
}

tb_status stage_html(tb_ctx *ctx, const void *data, tb_out *out)
{
    tb_arena a;
    tb_arena_init(&a, ctx);
    tb_status status = table(&a, data, out);
    tb_arena_clear(&a);
    return status;
}

void stage_json(const void *data, tb_json *j)
{
    const shot_stage *st = data;
    const double *lists[3];
    const char *names[3];
    size_t n = columns_of(st, lists, names);
    static const char *const keys[] = {"x", "f", "y"};
    tb_json_string(j, "title", st->title);
    tb_json_string(j, "box", st->box);
    if (st->y)
        tb_json_bool(j, "skip", st->skip);
    for (size_t k = 0; k < n; k++)
        tb_json_tensor(j,
                       keys[names[k][0] == 'x'   ? 0
                            : names[k][0] == 'F' ? 1
                                                 : 2],
                       TB_F64, lists[k], 1, &st->d);
    if (st->back) {
        tb_json_object(j, "backward");
        tb_json_number(j, "at_y", st->back->out);
        tb_json_number(j, "skip", st->back->hw);
        tb_json_number(j, "box", st->back->br);
        tb_json_number(j, "at_x", st->back->in);
        tb_json_end(j);
    }
}

const shot_face shot_stage_face = {"stage", stage_scene, stage_term, stage_html,
                                   stage_json};
