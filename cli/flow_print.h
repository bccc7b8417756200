/* SPDX-License-Identifier: MIT */
/* Flow results as figures and tables, for flow and compare. */
#ifndef TB_CLI_FLOW_PRINT_H
#define TB_CLI_FLOW_PRINT_H

#include "cli.h"
#include "tollbooth/flow.h"

/** flow_summary - one line per run: lane, total, tolls. */
tb_status flow_summary(tb_ctx *ctx, tb_flow *const *runs, size_t n,
                       const tb_terminal *term, tb_out *out);

/** flow_table - every sublayer of one run; flow_rows_html: for a report. */
tb_status flow_table(tb_ctx *ctx, const tb_flow *f, const tb_terminal *term,
                     tb_out *out);

/** flow_weights - every weight: rule, measured mean and std, gradient. */
tb_status flow_weights(tb_ctx *ctx, const tb_flow *f, const tb_terminal *term,
                       tb_out *out);

/** flow_verdicts - what was found, worst first. */
tb_status flow_verdicts(tb_ctx *ctx, const tb_flow *f, const tb_terminal *term,
                        tb_out *out);

/** flow_figure - the lane and total of all runs: terminal, or a scene. */
tb_status flow_figure_term(tb_ctx *ctx, tb_flow *const *runs, size_t n,
                           const tb_terminal *term, tb_out *out);
tb_status flow_figure_scene(tb_ctx *ctx, tb_flow *const *runs, size_t n,
                            tb_scene **out, tb_out *table_html);

#endif
