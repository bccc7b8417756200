/* SPDX-License-Identifier: MIT */
/* Flow results as tables, for flow. */
#include "flow_print.h"
#include "report_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "post-ln", of two stacks "post-ln encoder". */
static void stack_label(const tb_flow *f, const tb_flow_stack *s, size_t size,
                        char *out)
{
    snprintf(out, size, "%s%s%s", f->block, s->role ? " " : "",
             s->role ? s->role : "");
}

/* --- tables ------------------------------------------------------------------
 */

enum { CELL = TB_SHOW_CHARS };

static tb_status print_table(tb_ctx *ctx, const tb_column *columns,
                             size_t ncolumns, char (*text)[CELL], size_t rows,
                             const char *caption, const tb_terminal *term,
                             tb_out *out)
{
    const char **cells = calloc(rows * ncolumns + 1, sizeof *cells);
    if (!cells)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < rows * ncolumns; i++)
        cells[i] = text[i];
    tb_table t = {.caption = caption,
                  .columns = columns,
                  .n_columns = ncolumns,
                  .cells = cells,
                  .n_rows = rows};
    tb_status s = tb_table_term(ctx, &t, term, out);
    free(cells);
    return s;
}

static size_t count_stacks(tb_flow *const *runs, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += runs[i]->nstacks;
    return count;
}

static void summary_row(const tb_flow *f, const tb_flow_stack *s,
                        char (*c)[CELL])
{
    const tb_flow_row *rows = f->rows + s->first;
    const tb_flow_row *one = &rows[s->nrows > 1 ? 1 : 0];
    double low = rows[0].total;
    for (size_t k = 0; k < s->nrows; k++)
        low = rows[k].total < low ? rows[k].total : low;
    stack_label(f, s, CELL, c[0]);
    snprintf(c[1], CELL, "%zu", s->depth);
    tb_show_number(one->lane, c[2]);
    tb_show_number(one->total, c[3]);
    tb_show_number(rows[0].lane, c[4]);
    tb_show_number(rows[0].total, c[5]);
    tb_show_number(low, c[6]);
    if (s->has_final)
        tb_show_number(s->final_toll, c[7]);
    else
        snprintf(c[7], CELL, "none");
    tb_show_number(f->loss, c[8]);
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
    size_t count = count_stacks(runs, n), at = 0;
    char(*text)[CELL] = calloc(count * COLS, sizeof *text);
    if (!text)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < runs[i]->nstacks; k++)
            summary_row(runs[i], &runs[i]->stacks[k], text + at++ * COLS);
    tb_status s = print_table(ctx, columns, COLS, text, count, NULL, term, out);
    free(text);
    return s;
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
    char(*text)[CELL] = calloc(f->nrows * COLS, sizeof *text);
    if (!text)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < f->nrows; i++) { /* the top first, as a tower */
        const tb_flow_row *r = &f->rows[f->nrows - 1 - i];
        char(*c)[CELL] = text + i * COLS;
        const double numbers[] = {
            r->lane,  r->total,        r->branch,     r->cos,         r->toll,
            r->std_x, r->branch_ratio, r->local_lane, r->local_branch};
        snprintf(c[0], CELL, "%zu", r->k);
        if (r->layer)
            snprintf(c[1], CELL, "%zu", r->layer);
        snprintf(c[2], CELL, "%s%s%s", r->role ? r->role : "",
                 r->role ? " " : "", r->name);
        for (size_t j = 0; j < sizeof numbers / sizeof numbers[0]; j++)
            tb_show_number(numbers[j], c[3 + j]);
    }
    tb_status s =
        print_table(ctx, columns, COLS, text, f->nrows, NULL, term, out);
    free(text);
    return s;
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
    char(*text)[CELL] = calloc(f->nweights * 3 + 1, sizeof *text);
    const char **cells = calloc(f->nweights * COLS + 1, sizeof *cells);
    tb_status s = text && cells ? TB_OK : TB_ERR_MEMORY;
    for (size_t i = 0; i < f->nweights && s == TB_OK; i++) {
        const tb_flow_weight *w = &f->weights[i];
        const double numbers[] = {w->mean, w->std, w->grad_norm};
        cells[i * COLS] = w->name;
        cells[i * COLS + 1] = w->start;
        for (size_t k = 0; k < 3; k++)
            cells[i * COLS + 2 + k] =
                tb_show_number(numbers[k], text[i * 3 + k]);
    }
    tb_table t = {.columns = columns,
                  .n_columns = COLS,
                  .cells = cells,
                  .n_rows = f->nweights};
    if (s == TB_OK)
        s = tb_table_term(ctx, &t, term, out);
    free(text);
    free(cells);
    return s;
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
