/* SPDX-License-Identifier: MIT */
/* What compare prints and writes: the table, the JSON object, the report. */
#include "compare.h"
#include "report_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- table -------------------------------------------------------------------
 */

enum { CELL = 64, COLS = 10 };

static const tb_column columns[COLS] = {
    {"block", TB_LEFT, 0, true},     {"N", TB_RIGHT, 0, false},
    {"warm-up", TB_RIGHT, 1, false}, {"seed", TB_RIGHT, 6, false},
    {"lane", TB_RIGHT, 2, false},    {"total", TB_RIGHT, 2, false},
    {"loss", TB_RIGHT, 4, false},    {"validation", TB_RIGHT, 0, false},
    {"ended", TB_LEFT, 0, true},     {"tokens/s", TB_RIGHT, 5, false},
};

static void ending(const compare_run *r, char out[CELL])
{
    if (r->diverged)
        snprintf(out, CELL, "diverged at %zu", r->result.bad_step);
    else
        snprintf(out, CELL, "%s", r->result.plateau ? "plateau" : "ok");
}

static void fill_row(const compare_run *r, char (*c)[CELL])
{
    const tb_flow_row *one = &r->flow->rows[r->flow->nrows > 1 ? 1 : 0];
    snprintf(c[0], CELL, "%.60s", r->name);
    snprintf(c[1], CELL, "%zu", r->depth);
    if (r->warmup)
        snprintf(c[2], CELL, "%zu", r->warmup);
    else
        snprintf(c[2], CELL, "none");
    snprintf(c[3], CELL, "%llu", (unsigned long long)r->seed);
    tb_show_number(one->lane, c[4]);
    tb_show_number(one->total, c[5]);
    tb_show_number(r->result.loss, c[6]);
    tb_show_number(r->result.val_loss, c[7]);
    ending(r, c[8]);
    tb_show_number(r->result.tokens_per_s, c[9]);
}

/* --- JSON --------------------------------------------------------------------
 */

static void curve_json(tb_json *j, const char *key, const curve_points *p)
{
    tb_json_array(j, key);
    for (size_t i = 0; i < p->n; i++) {
        tb_json_array(j, NULL);
        tb_json_number(j, NULL, p->step[i]);
        tb_json_number(j, NULL, p->loss[i]);
        tb_json_end(j);
    }
    tb_json_end(j);
}

static void run_json(const comparison *c, const compare_run *r, tb_json *j)
{
    const tb_settings *s = &c->spec.settings;
    tb_json_object(j, NULL);
    tb_json_string(j, "block", r->name);
    tb_json_int(j, "seed", (int64_t)r->seed);
    tb_json_int(j, "depth", (int64_t)r->depth);
    tb_json_int(j, "width", (int64_t)s->width);
    tb_json_int(j, "heads", (int64_t)s->heads);
    tb_json_int(j, "context", (int64_t)s->context);
    tb_json_int(j, "batch", (int64_t)c->spec.batch);
    tb_json_int(j, "warmup", (int64_t)r->warmup);
    tb_json_int(j, "steps", (int64_t)r->steps);
    tb_json_number(j, "lr", c->spec.lr < 0 ? 1e-3 : c->spec.lr);
    tb_json_string(j, "dtype", c->spec.dtype == TB_BF16 ? "bf16" : "f32");
    tb_json_int(j, "parameters", (int64_t)r->result.parameters);
    tb_json_number(j, "loss", r->result.loss);
    tb_json_number(j, "val_loss", r->result.val_loss);
    tb_json_bool(j, "diverged", r->diverged);
    tb_json_bool(j, "plateau", r->result.plateau);
    ending_json(&r->result, &r->layers, j);
    if (r->diverged) {
        tb_json_int(j, "diverged_at", (int64_t)r->result.bad_step);
        tb_json_string(j, "where", r->result.bad_where);
    }
    tb_json_number(j, "tokens_per_s", r->result.tokens_per_s);
    curve_json(j, "loss_curve", &r->train);
    curve_json(j, "val_curve", &r->val);
    curve_json(j, "grad_curve", &r->grad);
    curve_json(j, "update_curve", &r->update);
    tb_flow_json(r->flow, j, "flow");
    tb_json_end(j);
}

void compare_json(const comparison *c, tb_json *j)
{
    tb_json_object(j, NULL);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_string(j, "command", c->command);
    tb_json_array(j, "runs");
    for (size_t i = 0; i < c->nruns; i++)
        run_json(c, &c->runs[i], j);
    tb_json_end(j);
    tb_json_end(j);
}

/* --- report ------------------------------------------------------------------
 */

/* Do the runs of a depth differ by their warm-up? */
static bool warmups_differ(const comparison *c)
{
    for (size_t i = 1; i < c->nruns; i++)
        if (!c->runs[i].warmup != !c->runs[0].warmup)
            return true;
    return false;
}

static const char *label_of(const comparison *c, const compare_run *r, pool *p)
{
    if (!warmups_differ(c))
        return pool_text(p, "%.60s", r->name);
    if (r->warmup)
        return pool_text(p, "%.40s, warm-up %zu", r->name, r->warmup);
    return pool_text(p, "%.40s, no warm-up", r->name);
}

static report_curve curve_of(const curve_points *c)
{
    return (report_curve){c->step, c->loss, c->n};
}

/* Of several seeds the first is drawn: more lines cannot be read. */
static report_training *trainings(const comparison *c, pool *p)
{
    report_training *all = pool_get(p, c->nruns, sizeof *all);
    for (size_t i = 0; all && i < c->nruns; i++) {
        const compare_run *r = &c->runs[i];
        all[i] = (report_training){.label = label_of(c, r, p),
                                   .depth = r->depth,
                                   .loss = curve_of(&r->train),
                                   .val = curve_of(&r->val),
                                   .grad = curve_of(&r->grad),
                                   .update = curve_of(&r->update),
                                   .diverged = r->diverged,
                                   .diverged_at = (double)r->result.bad_step,
                                   .ending = &r->layers,
                                   .shown = r->seed == c->runs[0].seed};
        report_judge(p, &all[i], r->result.bad_where, 0);
    }
    return all;
}

static report_flow *flows(const comparison *c, pool *p)
{
    report_flow *all = pool_get(p, c->nflows, sizeof *all);
    for (size_t i = 0; all && i < c->nflows; i++)
        all[i] = (report_flow){report_flow_label(p, c->flows[i]), c->flows[i]};
    return all;
}

static tb_report_setting *settings(const comparison *c, pool *p, size_t *n)
{
    const tb_train_spec *t = &c->spec;
    bool schedule = t->schedule != TB_SCHEDULE_UNSET;
    const tb_report_setting rows[] = {
        {"text", t->text},
        {"tokenizer", t->tokenizer ? t->tokenizer : "char"},
        {"width", pool_text(p, "%zu", t->settings.width)},
        {"heads", pool_text(p, "%zu", t->settings.heads)},
        {"context", pool_text(p, "%zu", t->settings.context)},
        {"batch", pool_text(p, "%zu", t->batch)},
        {"updates", pool_text(p, "%zu", c->runs[0].steps)},
        {"peak learning rate", pool_text(p, "%g", t->lr < 0 ? 1e-3 : t->lr)},
        {"schedule",
         tb_schedule_name(schedule ? t->schedule : TB_SCHEDULE_COSINE)},
        {"products with weights", t->dtype == TB_BF16 ? "bf16" : "f32"},
    };
    *n = sizeof rows / sizeof rows[0];
    tb_report_setting *out = pool_get(p, *n, sizeof *out);
    if (out)
        memcpy(out, rows, sizeof rows);
    return out;
}

static tb_table *runs_table(const comparison *c, pool *p)
{
    char(*text)[CELL] = pool_get(p, c->nruns * COLS, sizeof *text);
    tb_table *t = pool_get(p, 1, sizeof *t);
    const char **cells = pool_get(p, c->nruns * COLS, sizeof *cells);
    if (!text || !t || !cells)
        return NULL;
    for (size_t i = 0; i < c->nruns; i++)
        fill_row(&c->runs[i], text + i * COLS);
    for (size_t i = 0; i < c->nruns * COLS; i++)
        cells[i] = text[i];
    *t = (tb_table){.caption = "One line per run. lane and total: gradient at "
                               "the first sublayer's output over that at the "
                               "top, at init",
                    .columns = columns,
                    .n_columns = COLS,
                    .cells = cells,
                    .n_rows = c->nruns};
    return t;
}

tb_status compare_table(const comparison *c, const tb_terminal *term,
                        tb_out *out)
{
    pool p = {0};
    tb_table *t = runs_table(c, &p);
    if (t)
        t->caption = NULL;
    tb_status s = t ? tb_table_term(c->ctx, t, term, out) : TB_ERR_MEMORY;
    pool_free(&p);
    return s;
}

static const char *const method[] = {
    "Every run draws its initial values, batches and order from its seed: two "
    "blocks with the same seed see the same data. Gradient flow is measured at "
    "init, on the first window of the text.",
    "Validation uses the same windows of the last tenth of the text every "
    "time."};

static tb_status write_report(const comparison *c, pool *p, const char *path)
{
    report_block *blocks = pool_get(p, c->nblocks, sizeof *blocks);
    report r = {.title = "Placements compared",
                .lead = warmups_differ(c)
                            ? "The same text, seeds and budget for every "
                              "block: gradient flow at init, then training "
                              "with and without warm-up."
                            : "The same text, seeds and budget for every "
                              "block: gradient flow at init, then training.",
                .command = c->command,
                .blocks = blocks,
                .nblocks = c->nblocks,
                .flows = flows(c, p),
                .nflows = c->nflows,
                .trainings = trainings(c, p),
                .ntrainings = c->nruns,
                .runs = runs_table(c, p),
                .method = method,
                .nmethod = sizeof method / sizeof method[0]};
    r.settings = settings(c, p, &r.nsettings);
    tb_json *j = NULL;
    tb_status s = pool_status(p);
    for (size_t i = 0; i < c->nblocks && s == TB_OK; i++)
        s = report_block_of(c->ctx, p, c->blocks[i], c->names[i],
                            &c->spec.settings, NULL, &blocks[i]);
    if (s == TB_OK)
        s = tb_json_create(c->ctx, &j);
    if (s == TB_OK) {
        compare_json(c, j);
        r.json = tb_json_text(j);
        s = r.json ? report_page(c->ctx, &r, path) : TB_ERR_MEMORY;
    }
    tb_json_destroy(j);
    return s;
}

tb_status compare_report(const comparison *c, const char *path)
{
    pool p = {0};
    tb_status s = write_report(c, &p, path);
    pool_free(&p);
    return s;
}
