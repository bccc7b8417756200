/* SPDX-License-Identifier: MIT */
/* The plots of one gradient flow, and its table of sublayers: plots 1 to 6 of
 * every report. */
#include "report_parts.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* --- arrays --------------------------------------------------------------- */

typedef struct stack_view {
    const tb_flow *flow;
    const tb_flow_stack *stack;
    const tb_flow_row *rows;
    size_t n;
    const char *const *names; /* of the rows */
    const double *k;
    const char *title; /* " of the encoder", or "" */
} stack_view;

static const double *column(pool *p, const stack_view *v, size_t offset)
{
    double *out = pool_get(p, v->n, sizeof *out);
    for (size_t i = 0; out && i < v->n; i++)
        memcpy(&out[i], (const char *)&v->rows[i] + offset, sizeof *out);
    return out;
}

#define COLUMN(p, v, field) column(p, v, offsetof(tb_flow_row, field))

static stack_view view_of(pool *p, const tb_flow *f, size_t which)
{
    const tb_flow_stack *s = &f->stacks[which];
    stack_view v = {.flow = f,
                    .stack = s,
                    .rows = f->rows + s->first,
                    .n = s->nrows,
                    .title = s->role ? pool_text(p, ", %s", s->role) : ""};
    const char **names = pool_get(p, v.n, sizeof *names);
    double *k = pool_get(p, v.n, sizeof *k);
    for (size_t i = 0; names && k && i < v.n; i++) {
        names[i] = v.rows[i].name;
        k[i] = (double)v.rows[i].k;
    }
    v.names = names;
    v.k = k;
    return v;
}

/* Names are by place in the list, so only where k is that place. */
static tb_chart by_depth(pool *p, const stack_view *v, const char *title)
{
    bool first = v->rows[0].k == 0;
    return (tb_chart){.title = pool_text(p, "%s%s", title, v->title),
                      .x_label = "sublayer k, 0 = stem",
                      .x_names = first ? v->names : NULL,
                      .n_names = first ? v->n : 0};
}

/* --- plots 1 to 4 --------------------------------------------------------- */

/* As the tower and the verdict TOLL have it. */
static bool lane_fades(const stack_view *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->rows[i].lane < 0.1)
            return true;
    return false;
}

static void gradient(report_sink *s, pool *p, const stack_view *v)
{
    bool fades = lane_fades(v);
    /* at the top nothing has branched off yet: 0, and no finding */
    size_t branched = v->n - (v->n > 1 && v->rows[v->n - 1].branch == 0);
    const tb_series lines[] = {{.label = "total",
                                .x = v->k,
                                .y = COLUMN(p, v, total),
                                .n = v->n,
                                .tone = TB_TONE_TOTAL,
                                .marker = TB_MARK_DOT,
                                .role = "grad-total",
                                .low = COLUMN(p, v, total_min),
                                .high = COLUMN(p, v, total_max)},
                               {.label = "lane (branches cut)",
                                .x = v->k,
                                .y = COLUMN(p, v, lane),
                                .n = v->n,
                                .tone = fades ? TB_TONE_BAD : TB_TONE_LANE,
                                .dash = fades ? TB_DASHED : TB_SOLID,
                                .marker = TB_MARK_SQUARE,
                                .line = 4,
                                .role = "grad-hw"},
                               {.label = "branch (total - lane)",
                                .x = v->k,
                                .y = COLUMN(p, v, branch),
                                .n = branched,
                                .tone = TB_TONE_BOX,
                                .dash = TB_DOTTED,
                                .marker = TB_MARK_DIAMOND,
                                .role = "grad-br"}};
    tb_chart c = by_depth(p, v, "Gradient by depth");
    c.y_label = "relative to the top, log scale";
    c.series = lines;
    c.count = 3;
    c.log_y = c.has_ref = true;
    c.ref = 1;
    c.ref_label = "1";
    sink_chart(s, &c,
               "The band is the total of single tokens, from the one that gets "
               "least to the one that gets most; the line is over all.");
}

/* Norms of this stack: on the lane, inside branches, after the stack. */
static tb_series norm_line(pool *p, const stack_view *v, int kind)
{
    static const tb_series look[] = {
        {.label = "on the lane", .tone = TB_TONE_TOLL, .marker = TB_MARK_DOT},
        {.label = "inside a branch",
         .tone = TB_TONE_BOX,
         .dash = TB_DOTTED,
         .marker = TB_MARK_RING},
        {.label = "after the stack",
         .tone = TB_TONE_LANE,
         .marker = TB_MARK_DIAMOND}};
    const tb_flow *f = v->flow;
    double *k = pool_get(p, f->nnorms, sizeof *k);
    double *toll = pool_get(p, f->nnorms, sizeof *toll);
    tb_series out = look[kind];
    for (size_t i = 0; k && toll && i < f->nnorms; i++) {
        const tb_flow_norm *n = &f->norms[i];
        int is = n->layer == 0 ? 2 : n->lane ? 0 : 1;
        if (is != kind || n->k < v->rows[0].k || n->k > v->rows[v->n - 1].k)
            continue;
        k[out.n] = (double)n->k;
        toll[out.n++] = n->toll;
    }
    out.x = k;
    out.y = toll;
    out.role = "toll";
    return out;
}

static void tolls(report_sink *s, pool *p, const stack_view *v)
{
    tb_series lines[3];
    size_t n = 0;
    for (int kind = 0; kind < 3; kind++) {
        lines[n] = norm_line(p, v, kind);
        n += lines[n].n > 0;
    }
    if (n == 0) {
        sink_paragraph(s, "Tolls%s: this stack has no norm.", v->title);
        return;
    }
    tb_chart c =
        by_depth(p, v,
                 n > 1 ? "Tolls: the RMS gain of each norm"
                       : pool_text(p, "Tolls: the RMS gain of each norm, %s",
                                   lines[0].label));
    c.y_label = "gain of its Jacobian, log scale";
    c.series = lines;
    c.count = n;
    c.log_y = c.has_ref = true;
    c.ref = 1;
    c.ref_label = "1";
    sink_chart(s, &c,
               n > 1 ? "Norms on the lane are filled: every signal passes "
                       "them. Those inside a branch are hollow: the lane goes "
                       "around them."
                     : NULL);
}

static const double *top_x(pool *p, const stack_view *v, size_t which)
{
    double *out = pool_get(p, v->n, sizeof *out);
    for (size_t i = 0; out && i < v->n; i++)
        out[i] = v->rows[i].top_x[which];
    return out;
}

static void stream(report_sink *s, pool *p, const stack_view *v)
{
    const tb_series lines[] = {
        {.label = "standard deviation", .y = COLUMN(p, v, std_x)},
        {.label = "of the first token alone", .y = COLUMN(p, v, std_first)},
        {.label = "length of a token (RMS)", .y = COLUMN(p, v, norm_x)},
        {.label = "largest |x|", .y = top_x(p, v, 0)},
        {.label = "third largest |x|", .y = top_x(p, v, 2)},
        {.label = "middle |x|", .y = COLUMN(p, v, median_x)}};
    enum { LINES = sizeof lines / sizeof lines[0] };
    tb_series all[LINES];
    for (size_t i = 0; i < LINES; i++) {
        all[i] = lines[i];
        all[i].x = v->k;
        all[i].n = v->n;
    }
    tb_chart c = by_depth(p, v, "The residual stream");
    c.y_label = "size, log scale";
    c.series = all;
    c.count = LINES;
    c.log_y = true;
    sink_chart(s, &c, NULL);
}

/* Rows of one name: "attn", "ffn", ... */
static bool share_line(pool *p, const stack_view *v, const char *name,
                       tb_series *out)
{
    double *k = pool_get(p, v->n, sizeof *k), *y = pool_get(p, v->n, sizeof *y);
    *out = (tb_series){
        .label = pool_text(p, "|F|/|x| of %s", name), .x = k, .y = y};
    for (size_t i = 1; k && y && i < v->n; i++)
        if (strcmp(v->rows[i].name, name) == 0) {
            k[out->n] = v->k[i];
            y[out->n++] = v->rows[i].branch_ratio;
        }
    return out->n > 0;
}

static void shares(report_sink *s, pool *p, const stack_view *v)
{
    enum { MOST = 6 };
    tb_series lines[MOST + 1];
    size_t n = 0;
    for (size_t i = 1; i < v->n && n < MOST; i++) {
        bool seen = false;
        for (size_t j = 1; j < i; j++)
            seen = seen || strcmp(v->rows[i].name, v->rows[j].name) == 0;
        if (!seen)
            n += share_line(p, v, v->rows[i].name, &lines[n]);
    }
    const double *angle = COLUMN(p, v, angle);
    if (v->n < 2 || !angle)
        return;
    lines[n++] = (tb_series){.label = "angle to the stream before, over pi",
                             .x = v->k + 1,
                             .y = angle + 1,
                             .n = v->n - 1};
    tb_chart c = by_depth(p, v, "What each sublayer adds");
    c.y_label = "share of the stream, and angle";
    c.series = lines;
    c.count = n;
    sink_chart(s, &c,
               "A share near 0 over many sublayers, and an angle near 0, say "
               "that these floors are near the identity.");
}

/* --- plot 5 --------------------------------------------------------------- */

bool report_weight_kind(const tb_flow_weight *w, const char *role,
                        const char **kind)
{
    const char *at = w->name;
    size_t n = role ? strlen(role) : 0;
    if (role && (strncmp(at, role, n) != 0 || at[n] != '.'))
        return false;
    at += n + (role != NULL);
    if (w->layer == 0 || strncmp(at, "layers.", 7) != 0)
        return false;
    at += 7;
    at += strspn(at, "0123456789");
    *kind = at + (*at == '.');
    return true;
}

static double rms_of(const tb_flow_weight *w)
{
    return w->elements ? w->grad_norm / sqrt((double)w->elements) : 0;
}

typedef struct kinds {
    const char **name;
    size_t n;
} kinds;

static size_t find_kind(const kinds *k, const char *name)
{
    size_t i = 0;
    while (i < k->n && strcmp(k->name[i], name) != 0)
        i++;
    return i;
}

static kinds all_kinds(pool *p, const stack_view *v)
{
    const tb_flow *f = v->flow;
    kinds k = {pool_get(p, f->nweights, sizeof *k.name), 0};
    const char *name;
    for (size_t i = 0; k.name && i < f->nweights; i++)
        if (report_weight_kind(&f->weights[i], v->stack->role, &name) &&
            find_kind(&k, name) == k.n)
            k.name[k.n++] = name;
    return k;
}

static void outside(report_sink *s, pool *p, const tb_flow *f)
{
    static const tb_column columns[] = {
        {.head = "weight"},
        {.head = "numbers", .align = TB_RIGHT},
        {.head = "RMS gradient", .align = TB_RIGHT}};
    const char **cells = pool_get(p, 3 * f->nweights, sizeof *cells);
    size_t n = 0;
    for (size_t i = 0; cells && i < f->nweights; i++) {
        const tb_flow_weight *w = &f->weights[i];
        if (w->layer)
            continue;
        cells[3 * n] = w->name;
        cells[3 * n + 1] = pool_text(p, "%zu", w->elements);
        cells[3 * n + 2] = pool_number(p, rms_of(w));
        n++;
    }
    const tb_table t = {.caption = "Gradients outside the blocks",
                        .columns = columns,
                        .n_columns = 3,
                        .cells = cells,
                        .n_rows = n};
    if (n)
        sink_table(s, &t);
}

static void parameters(report_sink *s, pool *p, const stack_view *v)
{
    const tb_flow *f = v->flow;
    kinds k = all_kinds(p, v);
    size_t depth = v->stack->depth, n = k.n * depth;
    double *value = pool_get(p, n, sizeof *value);
    bool *missing = pool_get(p, n, sizeof *missing);
    const char **floors = pool_get(p, depth, sizeof *floors), *name;
    if (n == 0 || !value || !missing || !floors)
        return;
    for (size_t i = 0; i < n; i++)
        missing[i] = true;
    for (size_t i = 0; i < depth; i++)
        floors[i] = pool_text(p, "%zu", i + 1);
    for (size_t i = 0; i < f->nweights; i++) {
        const tb_flow_weight *w = &f->weights[i];
        if (!report_weight_kind(w, v->stack->role, &name) || w->layer > depth)
            continue;
        size_t at = find_kind(&k, name) * depth + w->layer - 1;
        value[at] = rms_of(w);
        missing[at] = false;
    }
    const tb_heat h = {
        .title = pool_text(p, "Parameter gradients by floor%s", v->title),
        .rows = k.n,
        .columns = depth,
        .values = value,
        .missing = missing,
        .row_names = k.name,
        .column_names = floors,
        .row_label = "weight",
        .column_label = "floor (block)",
        .value_label = "root mean square of the gradient of the mean loss",
        .scale = TB_HEAT_LOG,
        .decades = 4,
        .print_values = TB_PRINT_NEVER};
    sink_heat(s, &h, NULL);
}

/* --- plot 6, of the whole stack
 * --------------------------------------------------------------- */

static void spectrum(report_sink *s, pool *p, const tb_flow *f)
{
    const tb_spectrum *x = &f->spectrum;
    const tb_series line = {
        .label = "singular value", .y = x->values, .n = x->n, .role = "jac"};
    const tb_chart c = {.title = "Singular values of the whole stack",
                        .x_label = "number, from the largest",
                        .y_label = "log scale",
                        .series = &line,
                        .count = 1,
                        .log_y = true,
                        .ref = 1,
                        .has_ref = true,
                        .ref_label = "1"};
    sink_chart(s, &c,
               pool_text(p,
                         "Of the derivative of x at the top in x at the "
                         "stem: RMS %s, largest %s, middle %s.",
                         pool_number(p, x->rms), pool_number(p, x->max),
                         pool_number(p, x->median)));
}

/* A text on one line: "block: x = F(x); final: x = norm(x)". */
static const char *one_line(pool *p, const char *block)
{
    char *out = pool_get(p, 2 * strlen(block) + 1, 1), *at = out;
    for (const char *s = block; out && *s;) {
        if (*s != '\n') {
            *at++ = *s++;
            continue;
        }
        s += strspn(s, "\n ");
        if (*s && at > out && at[-1] != ':')
            *at++ = ';';
        if (*s)
            *at++ = ' ';
    }
    return out ? out : "";
}

const char *report_stack_label(pool *p, const tb_flow *f,
                               const tb_flow_stack *s)
{
    const char *block = one_line(p, f->block);
    if (!s->role)
        return block;
    return strchr(block, '=') ? pool_text(p, "%s of %s", s->role, block)
                              : pool_text(p, "%s %s", block, s->role);
}

/* --- one line per stack --------------------------------------------------- */

static const tb_column run_columns[] = {
    {"block", TB_LEFT, 0, true},        {"N", TB_RIGHT, 0, false},
    {"width", TB_RIGHT, 5, false},      {"tokens", TB_RIGHT, 6, false},
    {"seed", TB_RIGHT, 7, false},       {"type", TB_LEFT, 7, false},
    {"loss", TB_RIGHT, 1, false},       {"lane k=0", TB_RIGHT, 0, false},
    {"total k=0", TB_RIGHT, 0, false},  {"least total", TB_RIGHT, 2, false},
    {"final toll", TB_RIGHT, 3, false}, {"verdict", TB_LEFT, 0, false}};
enum { RUN_COLUMNS = sizeof run_columns / sizeof run_columns[0] };

static const char *worst_of(const tb_flow *f)
{
    tb_level worst = TB_OK_;
    for (size_t i = 0; i < f->nverdicts; i++)
        if (f->verdicts[i].level > worst)
            worst = f->verdicts[i].level;
    return tb_level_name(worst);
}

static void run_row(pool *p, const tb_flow *f, const tb_flow_stack *s,
                    const char **c)
{
    const tb_flow_row *rows = f->rows + s->first;
    double least = rows[0].total;
    for (size_t k = 0; k < s->nrows; k++)
        least = rows[k].total < least ? rows[k].total : least;
    c[0] = report_stack_label(p, f, s);
    c[1] = pool_text(p, "%zu", s->depth);
    c[2] = pool_text(p, "%zu", f->width);
    c[3] = pool_text(p, "%zu", f->batch * f->tokens);
    c[4] = pool_text(p, "%llu", (unsigned long long)f->seed);
    c[5] = f->dtype == TB_F64 ? "f64" : "f32";
    c[6] = pool_number(p, f->loss);
    c[7] = pool_number(p, rows[0].lane);
    c[8] = pool_number(p, rows[0].total);
    c[9] = pool_number(p, least);
    c[10] = s->has_final ? pool_number(p, s->final_toll) : "none";
    c[11] = worst_of(f);
}

tb_table *report_flow_table(pool *p, const report_flow *flows, size_t n)
{
    size_t stacks = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        stacks += flows[i].flow->nstacks;
    const char **cells = pool_get(p, stacks * RUN_COLUMNS, sizeof *cells);
    tb_table *t = pool_get(p, 1, sizeof *t);
    if (!cells || !t)
        return NULL;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < flows[i].flow->nstacks; k++)
            run_row(p, flows[i].flow, &flows[i].flow->stacks[k],
                    cells + RUN_COLUMNS * at++);
    *t = (tb_table){.caption = "One line per measured stack",
                    .columns = run_columns,
                    .n_columns = RUN_COLUMNS,
                    .cells = cells,
                    .n_rows = stacks};
    return t;
}

/* --- all of them ---------------------------------------------------------- */

const char *report_flow_label(pool *p, const tb_flow *f)
{
    const char *block = one_line(p, f->block);
    if (f->nstacks > 1)
        return pool_text(p, "%s, %zu + %zu blocks", block, f->depth,
                         f->stacks[1].depth);
    return pool_text(p, "%s, %zu block%s", block, f->depth,
                     f->depth == 1 ? "" : "s");
}

void report_flow_parts(report_sink *s, pool *p, const report_flow *f,
                       size_t which)
{
    const tb_flow *flow = f->flow;
    for (size_t i = 0; i < flow->nstacks; i++) {
        stack_view v = view_of(p, flow, i);
        if (p->failed)
            return;
        sink_subheading(s, pool_text(p, "Gradient%s", v.title));
        gradient(s, p, &v);
        sink_subheading(s, pool_text(p, "Tolls%s", v.title));
        tolls(s, p, &v);
        sink_subheading(s, pool_text(p, "Stream%s", v.title));
        stream(s, p, &v);
        sink_subheading(s, pool_text(p, "Shares%s", v.title));
        shares(s, p, &v);
        sink_subheading(s, pool_text(p, "Parameters%s", v.title));
        if (flow->nweights)
            parameters(s, p, &v);
        else
            sink_paragraph(s, "Not measured: gradients of weights are those "
                              "of the loss, and another signal was sent.");
        sink_subheading(s, pool_text(p, "Jacobians%s", v.title));
        report_jacobians(s, p, flow, v.stack, v.title);
    }
    if (flow->nweights)
        outside(s, p, flow);
    if (flow->has_spectrum) {
        sink_subheading(s, "Spectrum");
        spectrum(s, p, flow);
    }
    sink_subheading(s, "Sublayers");
    report_sublayers(s, p, flow, which);
}
