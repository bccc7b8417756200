/* SPDX-License-Identifier: MIT */
/* What compare prints and writes: the table, the JSON object, the report. */
#include "compare.h"
#include "flow_print.h"
#include "tollbooth/checkpoint.h"
#include "tollbooth/explain.h"

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

tb_status compare_table(const comparison *c, const tb_terminal *term,
                        tb_out *out, tb_out *html)
{
    char(*text)[CELL] = calloc(c->nruns * COLS, sizeof *text);
    const char **cells = calloc(c->nruns * COLS, sizeof *cells);
    tb_status s = text && cells ? TB_OK : TB_ERR_MEMORY;
    for (size_t i = 0; i < c->nruns && s == TB_OK; i++)
        fill_row(&c->runs[i], text + i * COLS);
    for (size_t i = 0; i < c->nruns * COLS && s == TB_OK; i++)
        cells[i] = text[i];
    tb_table t = {
        .caption = html
                       ? "One line per run. lane and total: gradient at the "
                         "first sublayer's output over that at the top, at init"
                       : NULL,
        .columns = columns,
        .n_columns = COLS,
        .cells = cells,
        .n_rows = c->nruns};
    if (s == TB_OK)
        s = html ? tb_table_html(c->ctx, &t, html)
                 : tb_table_term(c->ctx, &t, term, out);
    free(text);
    free(cells);
    return s;
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

static tb_status flow_figures(const comparison *c, tb_report *r)
{
    tb_status s = TB_OK;
    for (size_t d = 0; d < c->ndepths && s == TB_OK; d++) {
        tb_scene *scene = NULL;
        tb_out *table;
        char caption[200];
        s = tb_out_create(c->ctx, &table);
        if (s != TB_OK)
            return s;
        s = flow_figure_scene(c->ctx, c->flows + d * c->nblocks, c->nblocks,
                              &scene, table);
        snprintf(caption, sizeof caption,
                 "%zu blocks at their initial values: the lane alone (every "
                 "branch cut) and the total gradient, relative to the top.",
                 c->depths[d]);
        if (s == TB_OK)
            tb_report_figure(r, scene, caption, tb_out_str(table));
        tb_scene_destroy(scene);
        tb_out_destroy(table);
    }
    return s;
}

/* Do the runs of a depth differ by their warm-up? */
static bool warmups_differ(const comparison *c)
{
    for (size_t i = 1; i < c->nruns; i++)
        if (!c->runs[i].warmup != !c->runs[0].warmup)
            return true;
    return false;
}

static void loss_curve(const compare_run *r, bool say_warmup, char *label,
                       size_t cap, tb_loss_curve *out)
{
    if (!say_warmup)
        snprintf(label, cap, "%.60s", r->name);
    else if (r->warmup)
        snprintf(label, cap, "%.40s, warm-up %zu", r->name, r->warmup);
    else
        snprintf(label, cap, "%.40s, no warm-up", r->name);
    *out = (tb_loss_curve){.label = label,
                           .step = r->train.step,
                           .loss = r->train.loss,
                           .n = r->train.n,
                           .val_step = r->val.step,
                           .val_loss = r->val.loss,
                           .val_n = r->val.n,
                           .diverged = r->diverged,
                           .diverged_at = (double)r->result.bad_step};
}

/* One figure per depth, first seed: more lines than that cannot be read. */
static tb_status loss_figure(const comparison *c, tb_report *r, size_t depth)
{
    tb_loss_curve *curves = calloc(c->nruns, sizeof *curves);
    char(*labels)[80] = calloc(c->nruns, sizeof *labels);
    size_t n = 0;
    tb_scene *scene = NULL;
    tb_out *table = NULL;
    char title[80];
    tb_status s =
        curves && labels ? tb_out_create(c->ctx, &table) : TB_ERR_MEMORY;
    for (size_t i = 0; i < c->nruns && s == TB_OK; i++)
        if (c->runs[i].depth == depth && c->runs[i].seed == c->runs[0].seed) {
            loss_curve(&c->runs[i], warmups_differ(c), labels[n],
                       sizeof labels[n], &curves[n]);
            n++;
        }
    snprintf(title, sizeof title, "Loss by update, %zu blocks", depth);
    tb_loss_figure f = {.title = title, .runs = curves, .count = n};
    if (s == TB_OK)
        s = tb_loss_scene(c->ctx, &f, &scene);
    if (s == TB_OK)
        s = tb_loss_table_html(c->ctx, &f, table);
    if (s == TB_OK)
        tb_report_figure(r, scene,
                         "Training loss per update and validation loss, nats "
                         "per token; a cross marks where a run diverged.",
                         tb_out_str(table));
    tb_scene_destroy(scene);
    tb_out_destroy(table);
    free(curves);
    free(labels);
    return s;
}

static void number_text(char out[CELL], double v)
{
    snprintf(out, CELL, "%g", v);
}

static void settings(const comparison *c, tb_report *r)
{
    const tb_train_spec *t = &c->spec;
    char v[8][CELL];
    number_text(v[0], (double)t->settings.width);
    number_text(v[1], (double)t->settings.heads);
    number_text(v[2], (double)t->settings.context);
    number_text(v[3], (double)t->batch);
    number_text(v[4], (double)c->runs[0].steps);
    number_text(v[5], t->lr < 0 ? 1e-3 : t->lr);
    const tb_report_setting rows[] = {
        {"text", t->text},
        {"tokenizer", t->tokenizer ? t->tokenizer : "char"},
        {"width", v[0]},
        {"heads", v[1]},
        {"context", v[2]},
        {"batch", v[3]},
        {"updates", v[4]},
        {"peak learning rate", v[5]},
        {"schedule",
         tb_schedule_name(t->schedule == TB_SCHEDULE_UNSET ? TB_SCHEDULE_COSINE
                                                           : t->schedule)},
        {"products with weights", t->dtype == TB_BF16 ? "bf16" : "f32"},
    };
    tb_report_settings(r, rows, sizeof rows / sizeof rows[0]);
}

static tb_status verdicts(const comparison *c, tb_report *r)
{
    size_t n = 0, most = 0;
    for (size_t i = 0; i < c->nflows; i++)
        most += c->flows[i]->nverdicts;
    tb_report_verdict *v = calloc(most + 1, sizeof *v);
    char(*text)[240] = calloc(most + 1, sizeof *text);
    if (!v || !text) {
        free(v);
        free(text);
        return TB_ERR_MEMORY;
    }
    for (size_t i = 0; i < c->nflows; i++)
        for (size_t k = 0; k < c->flows[i]->nverdicts; k++) {
            const tb_verdict *x = &c->flows[i]->verdicts[k];
            char value[TB_SHOW_CHARS], limit[TB_SHOW_CHARS];
            if (x->level == TB_OK_)
                continue;
            snprintf(text[n], sizeof text[n],
                     "%.60s, %zu blocks: %s, limit "
                     "%s, %s",
                     c->flows[i]->block, c->flows[i]->depth,
                     tb_show_number(x->value, value),
                     tb_show_number(x->threshold, limit), x->source);
            v[n] = (tb_report_verdict){x->code, tb_level_name(x->level),
                                       x->sentence, text[n], x->where};
            n++;
        }
    if (n)
        tb_report_verdicts(r, v, n);
    else
        tb_report_paragraph(r, "No verdict beyond OK at init.");
    free(v);
    free(text);
    return TB_OK;
}

static tb_status equations(const comparison *c, tb_report *r)
{
    tb_status s = TB_OK;
    for (size_t i = 0; i < c->nblocks && s == TB_OK; i++) {
        tb_out *math;
        char *text = NULL;
        s = tb_out_create(c->ctx, &math);
        if (s != TB_OK)
            return s;
        s = tb_block_text(c->ctx, c->blocks[i], &text);
        if (s == TB_OK)
            s = tb_explain_text(c->ctx, c->blocks[i], &c->spec.settings,
                                TB_EXPLAIN_MATHML, false, 80, false, math);
        if (s == TB_OK) {
            tb_report_heading(r, c->names[i]);
            tb_report_pre(r, text);
            tb_report_markup(r, tb_out_str(math));
        }
        tb_text_free(c->ctx, text);
        tb_out_destroy(math);
    }
    return s;
}

static tb_status table(const comparison *c, tb_report *r)
{
    tb_out *html;
    tb_status s = tb_out_create(c->ctx, &html);
    if (s != TB_OK)
        return s;
    s = compare_table(c, NULL, NULL, html);
    if (s == TB_OK)
        tb_report_markup(r, tb_out_str(html));
    tb_out_destroy(html);
    return s;
}

static void method(tb_report *r)
{
    static const char *const items[] = {
        "lane: the backward signal from the top of the stack (below the final "
        "norm) with every branch cut; all values, and so all norms, are those "
        "of the full model.",
        "total: the true gradient at the same place. Both are lengths over "
        "all tokens, divided by the length at the top.",
        "The loss is the mean cross-entropy per token in nats; validation "
        "uses the same windows of the last tenth of the text every time.",
        "Every run draws its initial values, batches and order from its seed: "
        "two blocks with the same seed see the same data.",
        "diverged: a non-finite loss or gradient, or a loss above three times "
        "the first. plateau: the last fifth of the updates improved the loss "
        "by less than 1 %.",
    };
    tb_report_heading(r, "Method");
    tb_report_list(r, items, sizeof items / sizeof items[0]);
}

static tb_status fill_report(const comparison *c, tb_report *r)
{
    tb_status s;
    settings(c, r);
    tb_report_heading(r, "Verdicts at init");
    s = verdicts(c, r);
    tb_report_heading(r, "Runs");
    if (s == TB_OK)
        s = table(c, r);
    tb_report_heading(r, "Gradient flow at init");
    if (s == TB_OK)
        s = flow_figures(c, r);
    tb_report_heading(r, "Training");
    for (size_t d = 0; d < c->ndepths && s == TB_OK; d++)
        s = loss_figure(c, r, c->depths[d]);
    tb_report_heading(r, "Equations and Jacobians");
    if (s == TB_OK)
        s = equations(c, r);
    method(r);
    return s;
}

static tb_status write_report(const comparison *c, tb_report *r,
                              const char *path)
{
    tb_json *j;
    tb_out *page = NULL;
    tb_status s = fill_report(c, r);
    if (s != TB_OK)
        return s;
    s = tb_json_create(c->ctx, &j);
    if (s != TB_OK)
        return s;
    compare_json(c, j);
    const char *json = tb_json_text(j);
    s = json ? tb_out_create(c->ctx, &page) : TB_ERR_MEMORY;
    if (s == TB_OK) {
        tb_report_json(r, json);
        s = tb_report_finish(r, page);
    }
    if (s == TB_OK)
        s = tb_file_write_atomic(c->ctx, path, tb_out_str(page),
                                 tb_out_len(page));
    tb_out_destroy(page);
    tb_json_destroy(j);
    return s;
}

tb_status compare_report(const comparison *c, const char *path)
{
    tb_report *r;
    const tb_report_head head = {
        .title = "Placements compared",
        .lead = warmups_differ(c)
                    ? "The same text, seeds and budget for every block: "
                      "gradient flow at init, then training with and without "
                      "warm-up."
                    : "The same text, seeds and budget for every block: "
                      "gradient flow at init, then training.",
        .command = c->command,
    };
    tb_status s = tb_report_create(c->ctx, &head, &r);
    if (s != TB_OK)
        return s;
    s = write_report(c, r, path);
    tb_report_destroy(r);
    return s;
}
