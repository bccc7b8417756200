/* SPDX-License-Identifier: MIT */
/* Where a report goes: a page, or text on a terminal. Parts are written once
 * against a sink, so both have the same order and the same numbers. The first
 * failure sticks. */
#ifndef TB_CLI_REPORT_SINK_H
#define TB_CLI_REPORT_SINK_H

#include "cli.h"

typedef struct report_sink {
    tb_ctx *ctx;
    tb_report *page; /* NULL: text */
    tb_out *out;     /* of text; of a page scratch */
    const tb_terminal *term;
    tb_status status;
} report_sink;

/** A chapter, and a part of it. */
void sink_heading(report_sink *s, const char *text);
void sink_subheading(report_sink *s, const char *text);
/** sink_fold .. sink_unfold - a chapter that a page shows on demand. */
void sink_fold(report_sink *s, const char *heading);
void sink_unfold(report_sink *s);
void sink_paragraph(report_sink *s, const char *fmt, ...) TB_PRINTF(2, 3);
void sink_list(report_sink *s, const char *const *items, size_t n);
void sink_pre(report_sink *s, const char *text);
void sink_settings(report_sink *s, const tb_report_setting *rows, size_t n);
void sink_verdicts(report_sink *s, const tb_report_verdict *v, size_t n);
void sink_table(report_sink *s, const tb_table *t);
/* Figures; a caption may be NULL. */
void sink_chart(report_sink *s, const tb_chart *c, const char *caption);
void sink_bars(report_sink *s, const tb_bars *b, const char *caption);
void sink_heat(report_sink *s, const tb_heat *h, const char *caption);
void sink_flow(report_sink *s, const tb_flow_figure *f, const char *caption);
void sink_tower(report_sink *s, const tb_tower *t, const char *caption);
void sink_loss(report_sink *s, const tb_loss_figure *f, const char *caption);

#endif
