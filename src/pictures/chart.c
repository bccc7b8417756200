/* SPDX-License-Identifier: MIT */
/* A line chart as a scene: title, legend, plot area, and under it the words
 * for what could not be drawn. */
#include "pictures/plot.h"

enum { SWATCH = 30, ROW = 20 };

void tb_plot_swatch(tb_scene *s, const tb_series *series, double x, double y)
{
    tb_style line = {.role = "legend-line",
                     .stroke = series->tone,
                     .line = series->line,
                     .dash = series->dash};
    tb_style mark = {.role = "legend-mark", .fill = series->tone};
    tb_scene_line(s, x, y, x + SWATCH, y, &line);
    tb_plot_marker(s, series->marker, x + SWATCH / 2.0, y,
                   tb_max2(2.8, series->line), &mark);
}

double tb_plot_legend(tb_scene *s, const tb_chart *c, double x, double y,
                      double width)
{
    double at = x;
    tb_style text = {.size = 12};
    if (c->count < 2)
        return y;
    for (size_t i = 0; i < c->count; i++) {
        tb_series one = tb_series_of(c, i);
        const char *label =
            tb_shorten_px(&s->arena, one.label, width - SWATCH - 6, 12, false);
        double w = SWATCH + 6 + tb_text_width(label, 12, false);
        if (at > x && at + w > x + width) {
            at = x;
            y += ROW;
        }
        tb_plot_swatch(s, &one, at, y + ROW / 2.0 - 2);
        tb_scene_text(s, at + SWATCH + 6, y + ROW / 2.0 + 2, label, &text);
        at += w + 20;
    }
    return y + ROW + 6;
}

double tb_plot_notes(tb_scene *s, const char *const *notes, double x, double y,
                     double width)
{
    tb_style st = {.role = "note", .fill = TB_TONE_MUTED, .size = 12};
    for (; notes && *notes; notes++)
        y = tb_scene_wrap(s, x, y, width, *notes, &st);
    return y;
}

static void draw(tb_scene *s, const tb_chart *c, double height)
{
    enum { MARGIN = 14 };
    tb_style bold = {.size = 15, .bold = true};
    tb_axis y;
    tb_axis_of_y(&y, c);
    double right = c->has_ref && c->ref_label
                       ? tb_text_width(c->ref_label, 12, false) + 12
                       : 10;
    double left = MARGIN + tb_plot_gutter(&y);
    double top =
        tb_scene_wrap(s, MARGIN, 26, s->w - 2 * MARGIN, c->title, &bold) - 6;
    top = tb_plot_legend(s, c, MARGIN, top, s->w - 2 * MARGIN);
    top += c->y_label ? 14 : 2;
    tb_box area = {left, top, s->w - left - right - 4,
                   tb_max2(100, height - top - 50)};
    tb_plot_panel(s, c, area, &y);
    const char *const *notes = tb_chart_notes(&s->arena, c, &y);
    if (!notes)
        tb_scene_fail(s, TB_ERR_MEMORY);
    double bottom = area.y + area.h + (c->x_label ? 58 : 44);
    bottom = tb_plot_notes(s, notes, MARGIN, bottom, s->w - 2 * MARGIN);
    tb_scene_resize(s, s->w, tb_max2(height, bottom - 6));
}

tb_status tb_scene_done(tb_scene *s, tb_scene **out)
{
    tb_status status = s->status;
    *out = status == TB_OK ? s : NULL;
    if (status != TB_OK)
        tb_scene_destroy(s);
    return status;
}

static tb_status check(tb_ctx *ctx, const tb_chart *c)
{
    if (!c->title)
        return TB_FAIL(ctx, TB_ERR_ARG, "chart: no title, wanted one");
    if (c->count && !c->series)
        return TB_FAIL(ctx, TB_ERR_ARG, "chart: %zu series, got NULL",
                       c->count);
    if (c->log_y && c->y_min < c->y_max && !(c->y_min > 0))
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "chart: lower limit %g on a log axis, wanted > 0",
                       c->y_min);
    return TB_OK;
}

tb_status tb_chart_scene(tb_ctx *ctx, const tb_chart *chart, tb_scene **out)
{
    *out = NULL;
    TB_TRY(check(ctx, chart));
    tb_scene *s;
    double w = chart->width > 0 ? tb_max2(240, chart->width) : 760;
    double h = chart->height > 0 ? chart->height : 380;
    TB_TRY(tb_scene_create(ctx, w, h, chart->title, "chart", &s));
    const char *desc =
        chart->desc ? chart->desc : tb_chart_describe(&s->arena, chart);
    if (!desc)
        tb_scene_fail(s, TB_ERR_MEMORY);
    tb_scene_describe(s, desc);
    draw(s, chart, h);
    return tb_scene_done(s, out);
}
