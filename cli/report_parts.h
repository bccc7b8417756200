/* SPDX-License-Identifier: MIT */
/* What a report is made of, and the one order it is shown in: by report, flow
 * and compare, on a page or as text. */
#ifndef TB_CLI_REPORT_PARTS_H
#define TB_CLI_REPORT_PARTS_H

#include "text_pool.h"
#include "report_sink.h"
#include "tollbooth/flow.h"
#include "train_layers.h"

/** A measured gradient flow. */
typedef struct report_flow {
    const char *label; /* "post-ln, 12 blocks" */
    const tb_flow *flow;
} report_flow;

typedef struct report_curve {
    const double *step, *value;
    size_t n;
} report_curve;

/** A training. Curves that are not known have n = 0. */
typedef struct report_training {
    const char *label;
    size_t depth; /* trainings of one depth share a figure */
    report_curve loss, val, grad, update; /* update: |change| / |weights| */
    bool diverged;
    double diverged_at;
    const run_layers *ending; /* gradients of the last update, or NULL */
    tb_verdict *verdicts;
    size_t nverdicts;
    bool shown; /* in the figure of losses; of many seeds only the first is */
} report_training;

/** The text of a block, and what is derived from it alone. */
typedef struct report_block {
    const char *name, *text;
    const tb_scene *diagram; /* for a page; NULL: none */
    const char *mathml;      /* its Jacobian, for a page; */
    const char *drawn;       /* for text: what explain prints. NULL: none */
} report_block;

typedef struct report {
    const char *title, *lead, *command;
    const tb_report_setting *settings;
    size_t nsettings;
    const report_block *blocks;
    size_t nblocks;
    const report_flow *flows;
    size_t nflows;
    const report_training *trainings;
    size_t ntrainings;
    const tb_table *runs; /* one line per run, or NULL */

    const char *const *method; /* lines beside those of every report */
    size_t nmethod;
    const char *json; /* the object of --json */
} report;

/** report_show - all of it, in order. */
tb_status report_show(report_sink *s, const report *r);
/** report_page - as one file at `path`, atomically. */
tb_status report_page(tb_ctx *ctx, const report *r, const char *path);
/** report_text - as text. */
tb_status report_text(tb_ctx *ctx, const report *r, const tb_terminal *term,
                      tb_out *out);

/** report_found - verdicts of all flows that are worse than OK, each with its
 * run if there are several; *ok: codes of the others. For the pool. */
tb_report_verdict *report_found(pool *p, const report *r, size_t *n,
                                const char **ok);

/** report_tower - the tower of each of its stacks. */
void report_tower(report_sink *s, pool *p, const report_flow *f);
/** report_flow_parts - the plots and the table of flow number `which`. */
void report_flow_parts(report_sink *s, pool *p, const report_flow *f,
                       size_t which);
/** report_jacobians - plot 6 of a stack. */
void report_jacobians(report_sink *s, pool *p, const tb_flow *f,
                      const tb_flow_stack *stack, const char *title);
/** report_sublayers - the table of flow number `which`. */
void report_sublayers(report_sink *s, pool *p, const tb_flow *f, size_t which);
/** report_weight_kind - "layers.3.attn.q.weight" is kind "attn.q.weight" of
 * floor 4; false outside of the blocks of this role. */
bool report_weight_kind(const tb_flow_weight *w, const char *role,
                        const char **kind);
/** report_judge - verdicts DIVERGED and UPDATE of a training: `where` says
 * where it diverged; `far` is how many times a usual update one may be, larger
 * or smaller; 0: 10. */
void report_judge(pool *p, report_training *t, const char *where, double far);
/** report_training_parts - what trainings did, step by step. */
void report_training_parts(report_sink *s, pool *p, const report *r);
/** report_flow_label - "post-ln, 12 blocks". */
const char *report_flow_label(pool *p, const tb_flow *f);
/** report_stack_label - "post-ln", of two stacks "post-ln encoder"; a text, of
 * which little may be left, "encoder of x = x + F(x)". */
const char *report_stack_label(pool *p, const tb_flow *f,
                               const tb_flow_stack *s);
/** report_flow_figure - one panel for each stack; only if nothing failed. */
tb_flow_figure report_flow_figure(pool *p, const report_flow *flows, size_t n);
/** report_flow_table - one line for each stack, as `runs` of a report. */
tb_table *report_flow_table(pool *p, const report_flow *flows, size_t n);
/** report_verdict_of - as pages and terminals show it; `label` goes before its
 * numbers, "" for none. */
tb_report_verdict report_verdict_of(pool *p, const tb_verdict *x,
                                    const char *label, const char *link);
/** report_block_of - with its Jacobian for a page (term NULL) or as explain
 * prints it. */
tb_status report_block_of(tb_ctx *ctx, pool *p, const tb_block *b,
                          const char *name, const tb_settings *settings,
                          const tb_terminal *term, report_block *out);

#endif
