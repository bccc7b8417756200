/* SPDX-License-Identifier: MIT */
/* Inside the verdicts: what a code looks at, and where it was found. */
#ifndef TB_FLOW_VERDICT_H
#define TB_FLOW_VERDICT_H

#include "flow/flow_model.h"

/** A number and where it was found. */
typedef struct tb_flow_finding {
    double value;
    const tb_flow_row *at; /* NULL: the whole stack */
    bool applies;
    const tb_flow_norm *norm;     /* or of one norm, */
    bool number;                  /* or of the largest number of that row, */
    bool gradient;                /* or of that of its gradient, */
    const tb_flow_heads *heads;   /* or of one head there, */
    size_t head;                  /* from 0, */
    const tb_flow_check *check;   /* or of one block, */
    const tb_flow_weight *weight; /* or of one weight, */
    size_t count, of;             /* of those outside of limits */
} tb_flow_finding;

/* Of the stack whose rows f has (verdict_audit.c). */
tb_flow_finding tb_find_identity(const tb_flow *f, size_t nonfinite);
tb_flow_finding tb_find_check(const tb_flow *f, size_t nonfinite);
tb_flow_finding tb_find_sink(const tb_flow *f, size_t nonfinite);

/* Two halves of one code: exponents too low, or none of those and some too
 * high. */
tb_flow_finding tb_find_alpha_low(const tb_flow *f, size_t nonfinite);
tb_flow_finding tb_find_alpha_high(const tb_flow *f, size_t nonfinite);

/** tb_count_sinks - heads of the stack, and those above the limit. */
size_t tb_count_sinks(const tb_flow *f, double limit, size_t *of);

#endif
