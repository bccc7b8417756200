/* SPDX-License-Identifier: MIT */
/* Flow results as tables, for flow. */
#ifndef TB_CLI_FLOW_PRINT_H
#define TB_CLI_FLOW_PRINT_H

#include "cli.h"
#include "tollbooth/flow.h"

/** flow_summary - one line per run: lane, total, tolls. */
tb_status flow_summary(tb_ctx *ctx, tb_flow *const *runs, size_t n,
                       const tb_terminal *term, tb_out *out);

/** flow_table - every sublayer of one run. */
tb_status flow_table(tb_ctx *ctx, const tb_flow *f, const tb_terminal *term,
                     tb_out *out);

/** flow_weights - every weight: rule, measured mean and std, gradient. */
tb_status flow_weights(tb_ctx *ctx, const tb_flow *f, const tb_terminal *term,
                       tb_out *out);

/** flow_verdicts - what was found, worst first. */
tb_status flow_verdicts(tb_ctx *ctx, const tb_flow *f, const tb_terminal *term,
                        tb_out *out);

#endif
