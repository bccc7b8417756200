/* SPDX-License-Identifier: MIT */
/* Flow results as figures and tables, for flow and compare. */
#include "flow_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- figures -----------------------------------------------------------------
 */

/* "post-ln", of two stacks "post-ln encoder". */
static void stack_label(const tb_flow *f, const tb_flow_stack *s, size_t size,
                        char *out)
{
    snprintf(out, size, "%s%s%s", f->block, s->role ? " " : "",
             s->role ? s->role : "");
}

/** Arrays of one curve, freed together. */
typedef struct curve {
    double *lane, *total, *branch;
    const char **names;
    char *label;
} curve;

static bool fill(const tb_flow *f, const tb_flow_stack *s, curve *c,
                 tb_flow_curve *out)
{
    size_t n = s->nrows, label = strlen(f->block) + 16;
    const tb_flow_row *rows = f->rows + s->first;
    *c = (curve){calloc(n, sizeof(double)), calloc(n, sizeof(double)),
                 calloc(n, sizeof(double)), calloc(n, sizeof(char *)),
                 malloc(label)};
    if (!c->lane || !c->total || !c->branch || !c->names || !c->label)
        return false;
    for (size_t k = 0; k < n; k++) {
        c->lane[k] = rows[k].lane;
        c->total[k] = rows[k].total;
        c->branch[k] = rows[k].branch;
        c->names[k] = rows[k].name;
    }
    stack_label(f, s, label, c->label);
    *out = (tb_flow_curve){.block = c->label,
                           .depth = s->depth,
                           .n = n,
                           .lane = c->lane,
                           .total = c->total,
                           .branch = c->branch,
                           .names = c->names};
    return true;
}

/* One curve for each stack of each run. */
static bool fill_all(tb_flow *const *runs, size_t n, curve *curves,
                     tb_flow_curve *shown)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t s = 0; s < runs[i]->nstacks; s++, at++)
            if (!fill(runs[i], &runs[i]->stacks[s], &curves[at], &shown[at]))
                return false;
    return true;
}

static size_t count_stacks(tb_flow *const *runs, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += runs[i]->nstacks;
    return count;
}

typedef tb_status (*figure_fn)(tb_ctx *ctx, const tb_flow_figure *f, void *to);

static tb_status with_figure(tb_ctx *ctx, tb_flow *const *runs, size_t n,
                             figure_fn fn, void *to)
{
    size_t count = count_stacks(runs, n);
    curve *curves = calloc(count, sizeof *curves);
    tb_flow_curve *shown = calloc(count, sizeof *shown);
    tb_status s = curves && shown && fill_all(runs, n, curves, shown)
                      ? TB_OK
                      : TB_ERR_MEMORY;
    tb_flow_figure f = {.runs = shown, .count = count};
    if (s == TB_OK)
        s = fn(ctx, &f, to);
    for (size_t i = 0; i < count && curves; i++) {
        free(curves[i].lane);
        free(curves[i].total);
        free(curves[i].branch);
        free(curves[i].names);
        free(curves[i].label);
    }
    free(curves);
    free(shown);
    return s;
}

typedef struct term_target {
    const tb_terminal *term;
    tb_out *out;
} term_target;

static tb_status draw_term(tb_ctx *ctx, const tb_flow_figure *f, void *to)
{
    const term_target *t = to;
    return tb_flow_term(ctx, f, t->term, t->out);
}

tb_status flow_figure_term(tb_ctx *ctx, tb_flow *const *runs, size_t n,
                           const tb_terminal *term, tb_out *out)
{
    term_target t = {term, out};
    return with_figure(ctx, runs, n, draw_term, &t);
}

typedef struct scene_target {
    tb_scene **scene;
    tb_out *table;
} scene_target;

static tb_status draw_scene(tb_ctx *ctx, const tb_flow_figure *f, void *to)
{
    const scene_target *t = to;
    tb_status s = tb_flow_scene(ctx, f, t->scene);
    return s == TB_OK ? tb_flow_table_html(ctx, f, t->table) : s;
}

tb_status flow_figure_scene(tb_ctx *ctx, tb_flow *const *runs, size_t n,
                            tb_scene **out, tb_out *table_html)
{
    scene_target t = {out, table_html};
    return with_figure(ctx, runs, n, draw_scene, &t);
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
    char(*detail)[160] = calloc(f->nverdicts + 1, sizeof *detail);
    tb_report_verdict *v = calloc(f->nverdicts + 1, sizeof *v);
    tb_status s = detail && v ? TB_OK : TB_ERR_MEMORY;
    for (size_t i = 0; i < f->nverdicts && s == TB_OK; i++) {
        const tb_verdict *x = &f->verdicts[i];
        char value[CELL], limit[CELL];
        snprintf(detail[i], sizeof detail[i], "%s, limit %s, %s",
                 tb_show_number(x->value, value),
                 tb_show_number(x->threshold, limit), x->source);
        v[i] =
            (tb_report_verdict){x->code, tb_level_name(x->level), x->sentence,
                                detail[i], *x->where ? x->where : NULL};
    }
    if (s == TB_OK)
        s = tb_verdicts_term(ctx, v, f->nverdicts, term, out);
    free(detail);
    free(v);
    return s;
}
