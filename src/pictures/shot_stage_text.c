/* SPDX-License-Identifier: MIT */
/* A stage as characters, as a table and as JSON. */
#include "pictures/diagram.h"
#include "pictures/shot_columns.h"
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

/* --- lists ---------------------------------------------------------------- */

static shot_columns columns_of(const shot_stage *st)
{
    shot_columns c = {.caption = st->title, .d = st->d};
    shot_columns_add(&c, "x", st->x);
    if (st->f)
        shot_columns_add(&c, "F(x)", st->f);
    if (st->y)
        shot_columns_add(&c, "y", st->y);
    return c;
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
    const shot_columns lists = columns_of(st);
    tb_arena a;
    tb_arena_init(&a, ctx);
    tb_status status = roads(&a, st, term, &out->buf);
    tb_arena_clear(&a);
    tb_buf_putc(&out->buf, '\n');
    shot_columns_term(&lists, term, out);
    if (st->back) {
        tb_buf_putc(&out->buf, '\n');
        backward(&out->buf, term, st->back);
    }
    return status == TB_OK ? tb_buf_status(&out->buf) : status;
}

/* --- table and JSON ------------------------------------------------------- */

tb_status stage_html(tb_ctx *ctx, const void *data, tb_out *out)
{
    const shot_columns lists = columns_of(data);
    return shot_columns_html(ctx, &lists, out);
}

void stage_json(const void *data, tb_json *j)
{
    const shot_stage *st = data;
    tb_json_string(j, "title", st->title);
    tb_json_string(j, "box", st->box);
    if (st->y)
        tb_json_bool(j, "skip", st->skip);
    tb_json_tensor(j, "x", TB_F64, st->x, 1, &st->d);
    if (st->f)
        tb_json_tensor(j, "f", TB_F64, st->f, 1, &st->d);
    if (st->y)
        tb_json_tensor(j, "y", TB_F64, st->y, 1, &st->d);
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
