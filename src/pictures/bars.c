/* SPDX-License-Identifier: MIT */
/* Bar charts: upright as a scene, one line per bar on a terminal. On a log
 * axis a bar starts at the floor; what has no logarithm is marked there. */
#include "pictures/plot.h"

enum { MARGIN = 14 };

/* The same data as a one-series chart: axis, notes and description. */
static tb_chart as_chart(const tb_bars *b, tb_series *one)
{
    *one = (tb_series){.y = b->values, .n = b->n};
    return (tb_chart){.title = b->title,
                      .x_label = b->x_label,
                      .y_label = b->y_label,
                      .series = one,
                      .count = 1,
                      .log_y = b->log,
                      .ref = b->ref,
                      .has_ref = b->has_ref,
                      .x_names = b->labels,
                      .n_names = b->labels ? b->n : 0};
}

/* Bars of a linear axis start at zero, so zero belongs to it; on a log axis
 * they start at a power of ten that leaves the shortest one visible. */
static void fit(tb_axis *y, const tb_chart *c)
{
    tb_axis_of_y(y, c);
    if (y->log && !y->empty && !y->below)
        tb_axis_fit(y, true, tb_pow10(tb_floor(y->lo - 0.2)), tb_pow10(y->hi),
                    false);
    if (!y->log && !y->empty && (y->lo > 0 || y->hi < 0))
        tb_axis_fit(y, false, tb_min2(y->lo, 0), tb_max2(y->hi, 0), false);
}

/* --- scene -------------------------------------------------------------- */

static void one_bar(tb_scene *s, const tb_bars *b, const tb_axis *y, size_t i,
                    double x, double w)
{
    char text[TB_SHOW_CHARS];
    double v = b->values[i];
    const char *name = b->labels && b->labels[i] ? b->labels[i] : "";
    tb_show_number(v, text);
    tb_tone tone = b->tone == TB_TONE_NONE ? TB_TONE_IN : b->tone;
    tb_style st = {.role = b->role ? b->role : "bar",
                   .title = tb_arena_printf(&s->arena, "%s%s%s", name,
                                            *name ? " = " : "", text),
                   .fill = tone,
                   .round = 1.5};
    tb_style label = {.fill = TB_TONE_INK, .size = 12, .anchor = TB_MIDDLE};
    tb_state state = tb_axis_state(y, v);
    if (state == TB_GAP || state == TB_FLOOR) {
        st.role = state == TB_GAP ? "gap-mark" : "floor-mark";
        double at = y->p_lo + 6;
        if (state == TB_GAP)
            tb_plot_marker(s, TB_MARK_CROSS, x + w / 2, at, 4, &st);
        else
            tb_scene_path(s,
                          (double[]){x + w / 2, at + 5, x + w / 2 - 5, at - 5,
                                     x + w / 2 + 5, at - 5},
                          3, true, &st);
        tb_plot_label(s, x + w / 2, at - 9, text, &label);
        return;
    }
    double base = y->log ? y->p_lo : tb_axis_px(y, 0), top = tb_axis_px(y, v);
    tb_scene_rect(s, x, tb_min2(base, top), w, tb_max2(1, tb_fabs(base - top)),
                  &st);
    tb_plot_label(s, x + w / 2, v < 0 && !y->log ? top + 14 : top - 5, text,
                  &label);
}

static void bar_labels(tb_scene *s, const tb_bars *b, tb_box area, double slot)
{
    tb_style st = {.fill = TB_TONE_MUTED, .size = 12, .anchor = TB_MIDDLE};
    for (size_t i = 0; b->labels && i < b->n; i++) {
        const char *label = tb_shorten_px(&s->arena, b->labels[i],
                                          tb_max2(slot - 4, 40), 12, false);
        if (label && *label)
            tb_plot_label(s, area.x + ((double)i + 0.5) * slot,
                          area.y + area.h + 18, label, &st);
    }
    st.anchor = TB_END;
    tb_scene_text(s, area.x + area.w, area.y + area.h + 38, b->x_label, &st);
}

static void draw_bars(tb_scene *s, const tb_bars *b, tb_box area, tb_axis *y)
{
    tb_style line = {.role = "axis", .stroke = TB_TONE_MUTED, .line = 1};
    tb_style muted = {.fill = TB_TONE_MUTED, .size = 12};
    double slot = area.w / (double)b->n;
    tb_plot_frame_y(area, y);
    tb_plot_y_axis(s, area, y);
    tb_scene_text(s, MARGIN, area.y - 8, b->y_label, &muted);
    double zero = y->log ? area.y + area.h : tb_axis_px(y, 0);
    tb_scene_line(s, area.x, zero, area.x + area.w, zero, &line);
    for (size_t i = 0; i < b->n; i++)
        one_bar(s, b, y, i, area.x + ((double)i + 0.15) * slot, 0.7 * slot);
    if (b->has_ref && tb_axis_state(y, b->ref) == TB_DRAWN) {
        double at = tb_axis_px(y, b->ref);
        line.dash = TB_DASHED;
        line.role = "reference";
        tb_scene_line(s, area.x, at, area.x + area.w, at, &line);
    }
    bar_labels(s, b, area, slot);
}

static void draw(tb_scene *s, const tb_bars *b, const tb_chart *c)
{
    tb_style bold = {.size = 15, .bold = true};
    double height = s->h;
    tb_axis y;
    fit(&y, c);
    double top =
        tb_scene_wrap(s, MARGIN, 26, s->w - 2 * MARGIN, b->title, &bold) +
        (b->y_label ? 8 : -4);
    double left = MARGIN + tb_plot_gutter(&y);
    tb_box area = {left, top, s->w - left - MARGIN,
                   tb_max2(100, height - top - 52)};
    if (y.empty || b->n == 0) {
        tb_style st = {.fill = TB_TONE_MUTED, .anchor = TB_MIDDLE};
        tb_scene_text(s, s->w / 2, top + area.h / 2,
                      b->log ? "no positive values" : "no finite values", &st);
    } else {
        draw_bars(s, b, area, &y);
    }
    const char *const *notes = tb_chart_notes(&s->arena, c, &y);
    double bottom = tb_plot_notes(s, notes, MARGIN, area.y + area.h + 60,
                                  s->w - 2 * MARGIN);
    tb_scene_resize(s, s->w, tb_max2(height, bottom - 6));
    if (!notes)
        tb_scene_fail(s, TB_ERR_MEMORY);
}

tb_status tb_bars_scene(tb_ctx *ctx, const tb_bars *bars, tb_scene **out)
{
    *out = NULL;
    tb_series one;
    tb_chart c = as_chart(bars, &one);
    if (!bars->title)
        return TB_FAIL(ctx, TB_ERR_ARG, "bar chart: no title, wanted one");
    tb_scene *s;
    TB_TRY(tb_scene_create(ctx, bars->width > 0 ? bars->width : 760,
                           bars->height > 0 ? bars->height : 320, bars->title,
                           "bar chart", &s));
    const char *desc =
        bars->desc ? bars->desc : tb_chart_describe(&s->arena, &c);
    if (!desc)
        tb_scene_fail(s, TB_ERR_MEMORY);
    tb_scene_describe(s, desc);
    draw(s, bars, &c);
    return tb_scene_done(s, out);
}

/* --- terminal ----------------------------------------------------------- */

/* Share of the bar's columns. Linear bars start at zero or the least value. */
static double share(const tb_axis *y, double v)
{
    return (tb_axis_unit(y, v) - y->lo) / (y->hi - y->lo);
}

/* A blank and the bar; nothing where it is too short to be seen. */
static void put_bar(tb_buf *out, const tb_terminal *term, double of, int cells)
{
    size_t at = out->len;
    tb_buf_putc(out, ' ');
    tb_term_bar(out, term, of, cells);
    if (!out->failed && out->len == at + 1)
        out->data[out->len = at] = 0;
}

static tb_status put_bars(tb_arena *a, const tb_bars *b,
                          const tb_terminal *term, tb_buf *out)
{
    enum { NUMBER = 9, LABEL_MAX = 18 };
    tb_series one;
    tb_chart c = as_chart(b, &one);
    tb_axis y;
    fit(&y, &c);
    tb_term_wrap(out, term, 2, b->title);
    if (y.empty)
        tb_term_wrap(out, term, 2,
                     b->log ? "no positive values" : "no finite values");
    size_t wide = 0;
    for (size_t i = 0; b->labels && i < b->n; i++) {
        size_t n = tb_columns(b->labels[i]);
        wide = n > wide ? n : wide;
    }
    wide = wide > LABEL_MAX ? (size_t)LABEL_MAX : wide;
    int cells = tb_terminal_width(term) - (int)wide - NUMBER - 3;
    for (size_t i = 0; i < b->n; i++) {
        char text[TB_SHOW_CHARS];
        const char *label =
            tb_shorten(a, b->labels ? b->labels[i] : NULL, wide);
        if (!label)
            return TB_ERR_MEMORY;
        tb_state state = tb_axis_state(&y, b->values[i]);
        tb_term_puts(out, term, label);
        tb_term_pad(out, (int)(wide - tb_columns(label)));
        tb_buf_printf(out, " %*s", NUMBER, tb_show_number(b->values[i], text));
        bool drawn = state == TB_DRAWN && share(&y, b->values[i]) > 0;
        if (drawn)
            put_bar(out, term, share(&y, b->values[i]), cells);
        tb_buf_putc(out, '\n');
    }
    char lo[TB_SHOW_CHARS], hi[TB_SHOW_CHARS];
    if (!y.empty) {
        tb_show_number(y.log ? tb_pow10(y.lo) : y.lo, lo);
        tb_show_number(y.log ? tb_pow10(y.hi) : y.hi, hi);
        tb_term_pad(out, (int)wide + NUMBER + 2);
        tb_buf_printf(out, "%s", lo);
        tb_term_pad(out, cells - (int)strlen(lo) - (int)strlen(hi));
        tb_buf_printf(out, "%s\n", hi);
    }
    const char *const *notes = tb_chart_notes(a, &c, &y);
    for (size_t i = 0; notes && notes[i]; i++)
        tb_term_wrap(out, term, 2, notes[i]);
    return notes ? tb_buf_status(out) : TB_ERR_MEMORY;
}

tb_status tb_bars_term(tb_ctx *ctx, const tb_bars *bars,
                       const tb_terminal *term, tb_out *out)
{
    if (!bars->title)
        return TB_FAIL(ctx, TB_ERR_ARG, "bar chart: no title, wanted one");
    tb_arena a;
    tb_arena_init(&a, ctx);
    tb_status s = put_bars(&a, bars, term, &out->buf);
    tb_arena_clear(&a);
    return s;
}
