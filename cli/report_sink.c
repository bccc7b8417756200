/* SPDX-License-Identifier: MIT */
/* One part of a report, on a page or as text. */
#include "report_sink.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void keep(report_sink *s, tb_status status)
{
    if (s->status == TB_OK)
        s->status = status;
}

/* --- text ----------------------------------------------------------------- */

static void text_lines(report_sink *s, const char *text, int indent)
{
    keep(s, tb_text_term(text, indent, s->term, s->out));
}

static void blank(report_sink *s)
{
    keep(s, tb_out_put(s->out, "\n"));
}

/* "== Method ==" */
static void titled(report_sink *s, const char *mark, const char *text)
{
    blank(s);
    keep(s, tb_out_put(s->out, mark));
    keep(s, tb_out_put(s->out, " "));
    text_lines(s, text, 3);
}

void sink_heading(report_sink *s, const char *text)
{
    if (s->page)
        tb_report_heading(s->page, text);
    else
        titled(s, "==", text);
}

void sink_subheading(report_sink *s, const char *text)
{
    if (s->page)
        tb_report_subheading(s->page, text);
    else
        titled(s, "--", text);
}

void sink_fold(report_sink *s, const char *heading)
{
    if (s->page)
        tb_report_fold(s->page, heading);
    else
        sink_heading(s, heading);
}

void sink_unfold(report_sink *s)
{
    if (s->page)
        tb_report_unfold(s->page);
}

void sink_paragraph(report_sink *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (!text) {
        keep(s, TB_ERR_MEMORY);
        return;
    }
    va_start(ap, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    if (s->page)
        tb_report_paragraph(s->page, text);
    else
        text_lines(s, text, 2);
    free(text);
}

void sink_list(report_sink *s, const char *const *items, size_t n)
{
    if (s->page) {
        tb_report_list(s->page, items, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        sink_paragraph(s, "- %s", items[i]);
}

void sink_pre(report_sink *s, const char *text)
{
    if (s->page)
        tb_report_pre(s->page, text);
    else
        keep(s, tb_out_put(s->out, text));
}

void sink_settings(report_sink *s, const tb_report_setting *rows, size_t n)
{
    if (s->page) {
        tb_report_settings(s->page, rows, n);
        return;
    }
    static const tb_column columns[] = {{.head = "setting"},
                                        {.head = "value", .wrap = true}};
    const char **cells = calloc(2 * n + 1, sizeof *cells);
    if (!cells) {
        keep(s, TB_ERR_MEMORY);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        cells[2 * i] = rows[i].name;
        cells[2 * i + 1] = rows[i].value;
    }
    const tb_table t = {
        .columns = columns, .n_columns = 2, .cells = cells, .n_rows = n};
    keep(s, tb_table_term(s->ctx, &t, s->term, s->out));
    free(cells);
}

void sink_verdicts(report_sink *s, const tb_report_verdict *v, size_t n)
{
    if (s->page)
        tb_report_verdicts(s->page, v, n);
    else
        keep(s, tb_verdicts_term(s->ctx, v, n, s->term, s->out));
}

void sink_table(report_sink *s, const tb_table *t)
{
    if (s->page)
        tb_report_table(s->page, t);
    else
        keep(s, tb_table_term(s->ctx, t, s->term, s->out));
}

/* --- figures -------------------------------------------------------------- */

/* On a page: the scene and its table. */
static void place(report_sink *s, tb_status status, tb_scene *scene,
                  const char *caption)
{
    if (status == TB_OK)
        tb_report_figure(s->page, scene, caption, tb_out_str(s->out));
    keep(s, status);
    tb_scene_destroy(scene);
    tb_out_reset(s->out);
}

/* The same steps for every kind of figure. */
#define FIGURE(name, type, prefix)                                             \
    void sink_##name(report_sink *s, const type *f, const char *caption)       \
    {                                                                          \
        tb_scene *scene = NULL;                                                \
        if (!s->page) {                                                        \
            blank(s);                                                          \
            keep(s, prefix##_term(s->ctx, f, s->term, s->out));                \
            return;                                                            \
        }                                                                      \
        tb_status status = prefix##_scene(s->ctx, f, &scene);                  \
        if (status == TB_OK)                                                   \
            status = prefix##_table_html(s->ctx, f, s->out);                   \
        place(s, status, scene, caption);                                      \
    }

FIGURE(chart, tb_chart, tb_chart)
FIGURE(bars, tb_bars, tb_bars)
FIGURE(heat, tb_heat, tb_heat)
FIGURE(flow, tb_flow_figure, tb_flow)
FIGURE(tower, tb_tower, tb_tower)
FIGURE(loss, tb_loss_figure, tb_loss)
