/* SPDX-License-Identifier: MIT */
/* The order of a report: what was run, verdicts, one picture, the plots, the
 * numbers, what a change would do, the method. */
#include "report_parts.h"
#include "tollbooth/checkpoint.h"
#include "tollbooth/explain.h"

#include <stdio.h>
#include <string.h>

/* --- verdicts ------------------------------------------------------------- */

/* "k 12, ffn of block 6" is a row of the table of flow `which`. */
static const char *link_of(pool *p, const char *where, size_t which)
{
    size_t n = strspn(where, "k ");
    size_t digits = strspn(where + n, "0123456789");
    if (strncmp(where, "k ", 2) != 0 || digits == 0)
        return NULL;
    return pool_text(p, "r%zu-k%.*s", which + 1, (int)digits, where + n);
}

tb_report_verdict report_verdict_of(pool *p, const tb_verdict *x,
                                    const char *label, const char *link)
{
    return (tb_report_verdict){
        .code = x->code,
        .level = tb_level_name(x->level),
        .sentence = x->sentence,
        .detail = pool_text(p, "%s%s%s, limit %s, %s", label,
                            *label ? ": " : "", pool_number(p, x->value),
                            pool_number(p, x->threshold), x->source),
        .where = *x->where ? x->where : NULL,
        .link = link};
}

typedef struct collector {
    pool *p;
    tb_report_verdict *found;
    size_t n;
    const char *ok;
} collector;

static void collect(collector *c, const tb_verdict *v, size_t n,
                    const char *label, size_t which, bool table)
{
    for (size_t i = 0; i < n; i++) {
        const char *link = table ? link_of(c->p, v[i].where, which) : NULL;
        if (v[i].level != TB_OK_)
            c->found[c->n++] = report_verdict_of(c->p, &v[i], label, link);
        else if (!strstr(c->ok, v[i].code))
            c->ok =
                pool_text(c->p, "%s%s%s", c->ok, *c->ok ? ", " : "", v[i].code);
    }
}

tb_report_verdict *report_found(pool *p, const report *r, size_t *n,
                                const char **ok)
{
    collector c = {.p = p, .ok = ""};
    size_t most = 0;
    bool several = r->nflows > 1 || r->ntrainings > 1;
    for (size_t i = 0; i < r->nflows; i++)
        most += r->flows[i].flow->nverdicts;
    for (size_t i = 0; i < r->ntrainings; i++)
        most += r->trainings[i].nverdicts;
    c.found = pool_get(p, most, sizeof *c.found);
    for (size_t i = 0; c.found && i < r->nflows; i++)
        collect(&c, r->flows[i].flow->verdicts, r->flows[i].flow->nverdicts,
                several ? r->flows[i].label : "", i, true);
    for (size_t i = 0; c.found && i < r->ntrainings; i++)
        collect(&c, r->trainings[i].verdicts, r->trainings[i].nverdicts,
                several ? r->trainings[i].label : "", 0, false);
    *n = c.n;
    *ok = c.ok;
    return c.found;
}

static void verdicts(report_sink *s, pool *p, const report *r)
{
    size_t n;
    const char *ok;
    tb_report_verdict *v = report_found(p, r, &n, &ok);
    if (!v || (n == 0 && !*ok))
        return;
    sink_heading(s, "Verdicts");
    if (n)
        sink_verdicts(s, v, n);
    if (*ok)
        sink_paragraph(s, n ? "OK where not listed: %s." : "All OK: %s.", ok);
}

/* --- one picture ---------------------------------------------------------- */

typedef struct curve {
    double *lane, *total, *branch;
    const char **names;
} curve;

/* The panel of one stack is called as its run. */
static tb_flow_curve curve_of(pool *p, const report_flow *run,
                              const tb_flow_stack *s)
{
    const tb_flow *f = run->flow;
    const tb_flow_row *rows = f->rows + s->first;
    curve c = {pool_get(p, s->nrows, sizeof *c.lane),
               pool_get(p, s->nrows, sizeof *c.total),
               pool_get(p, s->nrows, sizeof *c.branch),
               pool_get(p, s->nrows, sizeof *c.names)};
    if (p->failed)
        return (tb_flow_curve){0};
    for (size_t k = 0; k < s->nrows; k++) {
        c.lane[k] = rows[k].lane;
        c.total[k] = rows[k].total;
        c.branch[k] = rows[k].branch;
        c.names[k] = rows[k].name;
    }
    return (tb_flow_curve){.block = s->role ? report_stack_label(p, f, s)
                                            : run->label,
                           .depth = s->role ? s->depth : 0,
                           .n = s->nrows,
                           .lane = c.lane,
                           .total = c.total,
                           .branch = c.branch,
                           .names = c.names};
}

tb_flow_figure report_flow_figure(pool *p, const report_flow *flows, size_t n)
{
    size_t stacks = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        stacks += flows[i].flow->nstacks;
    tb_flow_curve *curves = pool_get(p, stacks, sizeof *curves);
    for (size_t i = 0; curves && i < n; i++)
        for (size_t k = 0; k < flows[i].flow->nstacks; k++)
            curves[at++] = curve_of(p, &flows[i], &flows[i].flow->stacks[k]);
    return (tb_flow_figure){.runs = curves, .count = at};
}

enum { FOLDED_FROM = 3 }; /* flows whose parts a page shows at once: fewer */

/* Of many flows each has its tower in its own chapter. */
static void towers(report_sink *s, pool *p, const report *r)
{
    if (r->nflows == 0 || r->nflows >= FOLDED_FROM)
        return;
    sink_heading(s, "One picture");
    for (size_t i = 0; i < r->nflows; i++)
        report_tower(s, p, &r->flows[i]);
}

/* Flows of one depth stand together. */
static void picture(report_sink *s, pool *p, const report *r)
{
    if (r->nflows == 0)
        return;
    sink_heading(s, "Lane and total");
    for (size_t from = 0, to; from < r->nflows; from = to) {
        for (to = from + 1; to < r->nflows; to++)
            if (r->flows[to].flow->depth != r->flows[from].flow->depth)
                break;
        tb_flow_figure f = report_flow_figure(p, r->flows + from, to - from);
        if (p->failed)
            return;
        sink_flow(
            s, &f,
            "The lane alone (every branch cut) and the total gradient, "
            "relative to the top of the stack. A fading lane is a fact about "
            "the lane: the total beside it is what trains.");
    }
}

/* --- numbers -------------------------------------------------------------- */

static void details(report_sink *s, pool *p, const report *r)
{
    for (size_t i = 0; i < r->nflows; i++) {
        bool fold = r->nflows >= FOLDED_FROM;
        const char *title = r->flows[i].label;
        if (fold)
            sink_fold(s, title);
        else
            sink_heading(s, title);
        if (fold)
            report_tower(s, p, &r->flows[i]);
        report_flow_parts(s, p, &r->flows[i], i);
        if (fold)
            sink_unfold(s);
    }
}

static const tb_column change_columns[] = {
    {"run", TB_LEFT, 2, true},           {"change", TB_LEFT, 0, true},
    {"lane k=0", TB_RIGHT, 0, false},    {"total k=0", TB_RIGHT, 0, false},
    {"least total", TB_RIGHT, 1, false}, {"loss", TB_RIGHT, 1, false}};
enum { CHANGE_COLUMNS = sizeof change_columns / sizeof change_columns[0] };

static void change_row(pool *p, const report_flow *f, const tb_flow_change *x,
                       const char **c)
{
    const double numbers[] = {x->lane, x->total, x->least_total, x->loss};
    c[0] = f->label;
    c[1] = x->change;
    for (size_t k = 0; k < 4; k++)
        c[2 + k] = pool_number(p, numbers[k]);
}

static void changes(report_sink *s, pool *p, const report *r)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < r->nflows; i++)
        n += r->flows[i].flow->nchanges;
    const char **cells = pool_get(p, CHANGE_COLUMNS * n, sizeof *cells);
    if (n == 0 || !cells)
        return;
    for (size_t i = 0; i < r->nflows; i++)
        for (size_t k = 0; k < r->flows[i].flow->nchanges; k++)
            change_row(p, &r->flows[i], &r->flows[i].flow->changes[k],
                       cells + CHANGE_COLUMNS * at++);
    const tb_table t = {.caption = "At k = 0, in the stack with the head",
                        .columns = change_columns,
                        .n_columns = CHANGE_COLUMNS,
                        .cells = cells,
                        .n_rows = n};
    sink_heading(s, "What if");
    sink_paragraph(s, "The same measurement in changed blocks with the same "
                      "weights: those of the seed, or the trained ones. "
                      "Not retrained: it says what a placement does to these "
                      "weights, not what training would make of it.");
    sink_table(s, &t);
}

static void end_scene(void *scene)
{
    tb_scene_destroy(scene);
}

tb_status report_block_of(tb_ctx *ctx, pool *p, const tb_block *b,
                          const char *name, const tb_settings *settings,
                          const tb_terminal *term, report_block *out)
{
    tb_out *derived;
    char *text = NULL;
    tb_status s = tb_out_create(ctx, &derived);
    if (s != TB_OK)
        return s;
    s = tb_block_text(ctx, b, &text);
    if (s == TB_OK)
        s = tb_explain_text(
            ctx, b, settings, term ? TB_EXPLAIN_TEXT : TB_EXPLAIN_MATHML, false,
            term ? term->width : 80, term && term->ascii, derived);
    tb_scene *scene = NULL;
    if (s == TB_OK && !term)
        s = tb_explain_scene(ctx, b, settings, &scene);
    if (scene)
        pool_own(p, scene, end_scene);
    *out = (report_block){.name = pool_copy(p, name),
                          .text = pool_copy(p, text),
                          .diagram = p->failed ? NULL : scene};
    const char *copy = pool_copy(p, tb_out_str(derived));
    *(term ? &out->drawn : &out->mathml) = copy;
    tb_text_free(ctx, text);
    tb_out_destroy(derived);
    return s == TB_OK ? pool_status(p) : s;
}

static void equations(report_sink *s, const report *r)
{
    if (r->nblocks == 0)
        return;
    sink_heading(s, "Equations and Jacobians");
    for (size_t i = 0; i < r->nblocks; i++) {
        const report_block *b = &r->blocks[i];
        if (b->name && r->nblocks > 1)
            sink_subheading(s, b->name);
        sink_pre(s, b->text);
        if (s->page && b->diagram)
            tb_report_figure(s->page, b->diagram, NULL, NULL);
        if (s->page && b->mathml)
            tb_report_markup(s->page, b->mathml);
        else if (!s->page && b->drawn)
            sink_pre(s, b->drawn);
    }
}

static const char *const flow_method[] = {
    "lane: an exact backward pass from the top of the stack (below the final "
    "norm) in which every branch is cut; all values, and so all norms, are "
    "those of the full model. total: the true gradient. branch: the length of "
    "their difference. All are lengths over all tokens, divided by the length "
    "at the top.",
    "toll: the RMS gain |J|_F/sqrt(d) of a norm's Jacobian over all tokens; s "
    "is what a row is divided by, sqrt(variance + eps).",
    "local lane, local branch: the same split inside one sublayer, per unit of "
    "the true gradient that arrives at its output.",
    "|F|/|x|: length of what the branches add over that of the stream before; "
    "angle: arccos of the cosine between the stream before and after, mean "
    "over tokens, over pi.",
    "tr(J)/d, sigma max: of J = d x_k / d x_(k-1) over all tokens, the trace "
    "over its size (1: the stream passes as it is) and the largest singular "
    "value; by all rows of J up to 512 of them, else by 8 random probes and at "
    "most 24 Golub-Kahan steps, which give a lower bound.",
    "A verdict's limit is printed beside it; limits without a source are ours. "
    "--threshold CODE=v sets another."};

static const char *const training_method[] = {
    "Loss is the mean cross-entropy per token in nats; gradient lengths are "
    "before clipping; update ratio is the length of the change of all weights "
    "over the length of all weights.",
    "diverged: a loss or gradient that is not finite, or a loss above three "
    "times the first. plateau: the last fifth of the updates improved the loss "
    "by less than 1 %."};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void method(report_sink *s, const report *r)
{
    sink_heading(s, "Method");
    if (r->nflows)
        sink_list(s, flow_method, COUNT(flow_method));
    if (r->ntrainings)
        sink_list(s, training_method, COUNT(training_method));
    if (r->nmethod)
        sink_list(s, r->method, r->nmethod);
    sink_paragraph(s, "The command above prints the same numbers again. The "
                      "page holds them as JSON, as --json prints it: the "
                      "element tollbooth-data.");
}

static void fill(report_sink *s, pool *p, const report *r)
{
    if (r->nsettings)
        sink_settings(s, r->settings, r->nsettings);
    verdicts(s, p, r);
    if (r->runs) {
        sink_heading(s, "Runs");
        sink_table(s, r->runs);
    }
    towers(s, p, r);
    picture(s, p, r);
    details(s, p, r);
    if (r->ntrainings) {
        sink_heading(s, "Training");
        report_training_parts(s, p, r);
    }
    changes(s, p, r);
    equations(s, r);
    method(s, r);
}

tb_status report_show(report_sink *s, const report *r)
{
    pool p = {0};
    fill(s, &p, r);
    if (s->status == TB_OK)
        s->status = pool_status(&p);
    pool_free(&p);
    return s->status;
}

/* --- ends ----------------------------------------------------------------- */

static tb_status write_page(tb_ctx *ctx, const report *r, tb_report *page,
                            const char *path)
{
    report_sink s = {.ctx = ctx, .page = page};
    tb_out *all = NULL;
    tb_status status = tb_out_create(ctx, &s.out);
    if (status == TB_OK)
        status = report_show(&s, r);
    if (status == TB_OK)
        status = tb_out_create(ctx, &all);
    if (status == TB_OK) {
        tb_report_json(page, r->json);
        status = tb_report_finish(page, all);
    }
    if (status == TB_OK)
        status =
            tb_file_write_atomic(ctx, path, tb_out_str(all), tb_out_len(all));
    tb_out_destroy(all);
    tb_out_destroy(s.out);
    return status;
}

tb_status report_page(tb_ctx *ctx, const report *r, const char *path)
{
    tb_report *page;
    const tb_report_head head = {
        .title = r->title, .lead = r->lead, .command = r->command};
    tb_status s = tb_report_create(ctx, &head, &page);
    if (s == TB_OK)
        s = write_page(ctx, r, page, path);
    else
        return s;
    tb_report_destroy(page);
    return s;
}

tb_status report_text(tb_ctx *ctx, const report *r, const tb_terminal *term,
                      tb_out *out)
{
    report_sink s = {.ctx = ctx, .out = out, .term = term};
    sink_paragraph(&s, "%s", r->title);
    if (r->lead)
        sink_paragraph(&s, "%s", r->lead);
    if (r->command)
        sink_paragraph(&s, "%s (tollbooth %s)", r->command, TB_VERSION);
    tb_out_put(out, "\n");
    return report_show(&s, r);
}
