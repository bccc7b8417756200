/* SPDX-License-Identifier: MIT */
/* Flow results as tables, for flow. */
#include "flow_print.h"
#include "report_parts.h"

/* Prints what the pool has, which ends here. */
static tb_status print_table(tb_ctx *ctx, pool *p, const tb_table *t,
                             const tb_terminal *term, tb_out *out)
{
    tb_status s = pool_status(p);
    if (s == TB_OK)
        s = tb_table_term(ctx, t, term, out);
    pool_free(p);
    return s;
}

static size_t count_stacks(tb_flow *const *runs, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += runs[i]->nstacks;
    return count;
}

static void summary_row(pool *p, const tb_flow *f, const tb_flow_stack *s,
                        const char **c)
{
    const tb_flow_row *rows = f->rows + s->first;
    const tb_flow_row *one = &rows[s->nrows > 1 ? 1 : 0];
    double low = rows[0].total;
    for (size_t k = 0; k < s->nrows; k++)
        low = rows[k].total < low ? rows[k].total : low;
    c[0] = report_stack_label(p, f, s);
    c[1] = pool_text(p, "%zu", s->depth);
    c[2] = pool_number(p, one->lane);
    c[3] = pool_number(p, one->total);
    c[4] = pool_number(p, rows[0].lane);
    c[5] = pool_number(p, rows[0].total);
    c[6] = pool_number(p, low);
    c[7] = s->has_final ? pool_number(p, s->final_toll) : "none";
    c[8] = pool_number(p, f->loss);
}

tb_status flow_summary(tb_ctx *ctx, tb_flow *const *runs, size_t n,
                       const tb_terminal *term, tb_out *out)
{
    static const tb_column columns[] = {
        {"block", TB_LEFT, 0, true},       {"depth", TB_RIGHT, 0, false},
        {"lane k=1", TB_RIGHT, 0, false},  {"total k=1", TB_RIGHT, 0, false},
        {"lane k=0", TB_RIGHT, 2, false},  {"total k=0", TB_RIGHT, 2, false},
        {"min total", TB_RIGHT, 3, false}, {"final toll", TB_RIGHT, 4, false},
        {"loss", TB_RIGHT, 1, false},
    };
    enum { COLS = sizeof columns / sizeof columns[0] };
    pool p = {0};
    size_t count = count_stacks(runs, n), at = 0;
    const char **cells = pool_get(&p, count * COLS, sizeof *cells);
    for (size_t i = 0; cells && i < n; i++)
        for (size_t k = 0; k < runs[i]->nstacks; k++)
            summary_row(&p, runs[i], &runs[i]->stacks[k], cells + at++ * COLS);
    tb_table t = {
        .columns = columns, .n_columns = COLS, .cells = cells, .n_rows = count};
    return print_table(ctx, &p, &t, term, out);
}

tb_status flow_table(tb_ctx *ctx, const tb_flow *f, const tb_terminal *term,
                     tb_out *out)
{
    static const tb_column columns[] = {
        {"k", TB_RIGHT, 0, false},
        {"block", TB_RIGHT, 2, false},
        {"sublayer", TB_LEFT, 0, false},
        {"lane", TB_RIGHT, 0, false},
        {"total", TB_RIGHT, 0, false},
        {"branch", TB_RIGHT, 1, false},
        {"cos", TB_RIGHT, 3, false},
        {"toll", TB_RIGHT, 1, false},
        {"std x", TB_RIGHT, 2, false},
        {"|F|/|x|", TB_RIGHT, 3, false},
        {"local lane", TB_RIGHT, 5, false},
        {"local branch", TB_RIGHT, 5, false},
    };
    enum { COLS = sizeof columns / sizeof columns[0] };
    pool p = {0};
    const char **cells = pool_get(&p, f->nrows * COLS, sizeof *cells);
    for (size_t i = 0; cells && i < f->nrows; i++) { /* the top first */
        const tb_flow_row *r = &f->rows[f->nrows - 1 - i];
        const char **c = cells + i * COLS;
        const double numbers[] = {
            r->lane,  r->total,        r->branch,     r->cos,         r->toll,
            r->std_x, r->branch_ratio, r->local_lane, r->local_branch};
        c[0] = pool_text(&p, "%zu", r->k);
        c[1] = r->layer ? pool_text(&p, "%zu", r->layer) : "";
        c[2] = pool_text(&p, "%s%s%s", r->role ? r->role : "",
                         r->role ? " " : "", r->name);
        for (size_t j = 0; j < sizeof numbers / sizeof numbers[0]; j++)
            c[3 + j] = pool_number(&p, numbers[j]);
    }
    tb_table t = {.columns = columns,
                  .n_columns = COLS,
                  .cells = cells,
                  .n_rows = f->nrows};
    return print_table(ctx, &p, &t, term, out);
}

tb_status flow_weights(tb_ctx *ctx, const tb_flow *f, const tb_terminal *term,
                       tb_out *out)
{
    static const tb_column columns[] = {
        {"weight", TB_LEFT, 0, false},      {"starts as", TB_LEFT, 1, true},
        {"mean", TB_RIGHT, 2, false},       {"std", TB_RIGHT, 0, false},
        {"|gradient|", TB_RIGHT, 1, false},
    };
    enum { COLS = sizeof columns / sizeof columns[0] };
    pool p = {0};
    const char **cells = pool_get(&p, f->nweights * COLS, sizeof *cells);
    for (size_t i = 0; cells && i < f->nweights; i++) {
        const tb_flow_weight *w = &f->weights[i];
        const char **c = cells + i * COLS;
        c[0] = w->name;
        c[1] = w->start;
        c[2] = pool_number(&p, w->mean);
        c[3] = pool_number(&p, w->std);
        c[4] = pool_number(&p, w->grad_norm);
    }
    tb_table t = {.columns = columns,
                  .n_columns = COLS,
                  .cells = cells,
                  .n_rows = f->nweights};
    return print_table(ctx, &p, &t, term, out);
}

tb_status flow_verdicts(tb_ctx *ctx, const tb_flow *f, const tb_terminal *term,
                        tb_out *out)
{
    pool p = {0};
    tb_report_verdict *v = pool_get(&p, f->nverdicts, sizeof *v);
    for (size_t i = 0; v && i < f->nverdicts; i++)
        v[i] = report_verdict_of(&p, &f->verdicts[i], "", NULL);
    tb_status s = pool_status(&p);
    if (s == TB_OK)
        s = tb_verdicts_term(ctx, v, f->nverdicts, term, out);
    pool_free(&p);
    return s;
}
