/* SPDX-License-Identifier: MIT */
/* The kinds of panels that several shots use. A shot that needs a drawing of
 * its own brings its own face. */
#include "pictures/shot_panels.h"
#include "pictures/wiring.h"

/* A kind that reports have too, as a face takes it: its drawing, characters
 * and table. */
#define ADAPT(kind)                                                            \
    static tb_status kind##_scene(tb_ctx *ctx, const void *data,               \
                                  tb_scene **out)                              \
    {                                                                          \
        return tb_##kind##_scene(ctx, data, out);                              \
    }                                                                          \
    static tb_status kind##_term(tb_ctx *ctx, const void *data,                \
                                 const tb_terminal *term, tb_out *out)         \
    {                                                                          \
        return tb_##kind##_term(ctx, data, term, out);                         \
    }
#define ADAPT_TABLE(kind)                                                      \
    static tb_status kind##_html(tb_ctx *ctx, const void *data, tb_out *out)   \
    {                                                                          \
        return tb_##kind##_table_html(ctx, data, out);                         \
    }
ADAPT(chart)
ADAPT_TABLE(chart)
ADAPT(bars)
ADAPT_TABLE(bars)
ADAPT(diagram)
ADAPT(heat)
ADAPT_TABLE(heat)
ADAPT(flow)
ADAPT_TABLE(flow)

/* --- chart ---------------------------------------------------------------- */

static void chart_json(const void *data, tb_json *j)
{
    const tb_chart *c = data;
    tb_json_string(j, "title", c->title);
    tb_json_string(j, "x_label", c->x_label);
    tb_json_string(j, "y_label", c->y_label);
    tb_json_array(j, "series");
    for (size_t i = 0; i < c->count; i++) {
        const tb_series *s = &c->series[i];
        tb_json_object(j, NULL);
        tb_json_string(j, "label", s->label);
        if (s->x)
            tb_json_tensor(j, "x", TB_F64, s->x, 1, &s->n);
        tb_json_tensor(j, "y", TB_F64, s->y, 1, &s->n);
        tb_json_end(j);
    }
    tb_json_end(j);
}

const shot_face shot_chart = {"chart", chart_scene, chart_term, chart_html,
                              chart_json};

/* --- bars ----------------------------------------------------------------- */

static void bars_json(const void *data, tb_json *j)
{
    const tb_bars *b = data;
    tb_json_string(j, "title", b->title);
    tb_json_array(j, "labels");
    for (size_t i = 0; b->labels && i < b->n; i++)
        tb_json_string(j, NULL, b->labels[i]);
    tb_json_end(j);
    tb_json_tensor(j, "values", TB_F64, b->values, 1, &b->n);
}

const shot_face shot_bars = {"bars", bars_scene, bars_term, bars_html,
                             bars_json};

/* --- diagram -------------------------------------------------------------- */

static void diagram_json(const void *data, tb_json *j)
{
    const tb_diagram *d = data;
    tb_json_string(j, "title", d->title);
    tb_json_string(j, "formula", d->formula);
    tb_json_array(j, "lane");
    for (size_t i = 0; i < d->count; i++)
        tb_json_string(j, NULL, d->items[i].part.label);
    tb_json_end(j);
    if (d->wiring)
        tb_wiring_json(d->wiring, j);
}

const shot_face shot_diagram = {"diagram", diagram_scene, diagram_term, NULL,
                                diagram_json};

/* --- table ---------------------------------------------------------------- */

/* A scene of a table: rows of text, columns as wide as their longest cell. */
static tb_status table_scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    enum { MARGIN = 14, GAP = 20, ROW = 22 };
    const tb_table *t = data;
    tb_scene *s;
    TB_TRY(tb_scene_create(ctx, 100, 100, t->caption ? t->caption : "table",
                           "table", &s));
    double x = MARGIN;
    for (size_t c = 0; c < t->n_columns; c++) {
        double w = tb_text_width(t->columns[c].head, 12, true);
        for (size_t r = 0; r < t->n_rows; r++)
            w = tb_max2(
                w, tb_text_width(t->cells[r * t->n_columns + c], 13, false));
        bool right = t->columns[c].align == TB_RIGHT;
        tb_style head = {.role = "label",
                         .fill = TB_TONE_MUTED,
                         .size = 12,
                         .bold = true,
                         .anchor = right ? TB_END : TB_START};
        tb_style cell = {.role = "label", .anchor = head.anchor};
        tb_scene_text(s, right ? x + w : x, 44, t->columns[c].head, &head);
        for (size_t r = 0; r < t->n_rows; r++)
            tb_scene_text(s, right ? x + w : x, 66 + ROW * (double)r,
                          t->cells[r * t->n_columns + c], &cell);
        x += w + GAP;
    }
    double width =
        tb_max2(x - GAP, MARGIN + tb_text_width(t->caption, 15, true));
    tb_scene_resize(s, width + MARGIN, 60 + ROW * (double)t->n_rows);
    tb_scene_text(s, MARGIN, 20, t->caption,
                  &(tb_style){.size = 15, .bold = true});
    tb_scene_line(s, MARGIN, 50, width, 50,
                  &(tb_style){.stroke = TB_TONE_GRID, .line = 1});
    return tb_scene_done(s, out);
}

static tb_status table_term(tb_ctx *ctx, const void *data,
                            const tb_terminal *term, tb_out *out)
{
    return tb_table_term(ctx, data, term, out);
}

static tb_status table_html(tb_ctx *ctx, const void *data, tb_out *out)
{
    return tb_table_html(ctx, data, out);
}

static void table_json(const void *data, tb_json *j)
{
    const tb_table *t = data;
    tb_json_string(j, "title", t->caption);
    tb_json_array(j, "columns");
    for (size_t c = 0; c < t->n_columns; c++)
        tb_json_string(j, NULL, t->columns[c].head);
    tb_json_end(j);
    tb_json_array(j, "rows");
    for (size_t r = 0; r < t->n_rows; r++) {
        tb_json_array(j, NULL);
        for (size_t c = 0; c < t->n_columns; c++)
            tb_json_string(j, NULL, t->cells[r * t->n_columns + c]);
        tb_json_end(j);
    }
    tb_json_end(j);
}

const shot_face shot_table = {"table", table_scene, table_term, table_html,
                              table_json};

/* --- heat map ------------------------------------------------------------- */

static void heat_json(const void *data, tb_json *j)
{
    const tb_heat *h = data;
    tb_json_string(j, "title", h->title);
    tb_json_tensor(j, "cells", TB_F64, h->values, 2,
                   (size_t[]){h->rows, h->columns});
}

const shot_face shot_heat = {"heat", heat_scene, heat_term, heat_html,
                             heat_json};

/* --- gradient flow -------------------------------------------------------- */

static void flow_json(const void *data, tb_json *j)
{
    const tb_flow_figure *f = data;
    tb_json_string(j, "title", f->title);
    tb_json_array(j, "runs");
    for (size_t i = 0; i < f->count; i++) {
        const tb_flow_curve *r = &f->runs[i];
        tb_json_object(j, NULL);
        tb_json_string(j, "block", r->block);
        tb_json_tensor(j, "lane", TB_F64, r->lane, 1, &r->n);
        tb_json_tensor(j, "total", TB_F64, r->total, 1, &r->n);
        tb_json_end(j);
    }
    tb_json_end(j);
}

const shot_face shot_flow = {"flow", flow_scene, flow_term, flow_html,
                             flow_json};

/* --- words ---------------------------------------------------------------- */

const char *shot_next_word(tb_shot *s, const char **at)
{
    size_t n = strcspn(*at, " ");
    const char *text = shot_text(s, "%.*s", (int)n, *at);
    *at += n + strspn(*at + n, " ");
    return text ? text : "";
}

static tb_status words_scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    enum { MARGIN = 14, ROW = 26, SIZE = 16, WIDEST = 760 };
    const shot_words_of *w = data;
    tb_scene *s;
    TB_TRY(tb_scene_create(ctx, 100, 100, "formula", "formula", &s));
    double x = MARGIN, y = 24, right = 0;
    for (size_t i = 0; i < w->n; i++) {
        const shot_word *it = &w->words[i];
        double wide = tb_text_width(it->text, SIZE, it->bold) + 5;
        if (x > MARGIN && x + wide > WIDEST - MARGIN) {
            x = MARGIN;
            y += ROW;
        }
        tb_scene_text(s, x, y, it->text,
                      &(tb_style){.role = it->role ? it->role : "label",
                                  .id = it->id,
                                  .fill = it->tone,
                                  .size = SIZE,
                                  .bold = it->bold});
        x += wide;
        right = tb_max2(right, x);
        if (it->ends_line || i + 1 == w->n) {
            x = MARGIN;
            y += ROW;
        }
    }
    tb_scene_resize(s, right + MARGIN, y - ROW + 14);
    return tb_scene_done(s, out);
}

static tb_status words_term(tb_ctx *ctx, const void *data,
                            const tb_terminal *term, tb_out *out)
{
    const shot_words_of *w = data;
    tb_buf line;
    tb_buf_init(&line, ctx);
    for (size_t i = 0; i < w->n; i++) {
        tb_buf_printf(&line, "%s%s", line.len ? " " : "", w->words[i].text);
        if (!w->words[i].ends_line && i + 1 < w->n)
            continue;
        tb_term_wrap(&out->buf, term, 2, tb_buf_str(&line));
        tb_buf_clear(&line);
        tb_buf_init(&line, ctx);
    }
    tb_buf_clear(&line);
    return tb_buf_status(&out->buf);
}

static void words_json(const void *data, tb_json *j)
{
    const shot_words_of *w = data;
    tb_json_array(j, "words");
    for (size_t i = 0; i < w->n; i++)
        tb_json_string(j, NULL, w->words[i].text);
    tb_json_end(j);
}

const shot_face shot_words = {"words", words_scene, words_term, NULL,
                              words_json};
