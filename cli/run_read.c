/* SPDX-License-Identifier: MIT */
/* Runs from files: curves are kept as at most 2,000 points, the least and the
 * largest of each stretch among them. */
#include "run_read.h"
#include "flow_read.h"
#include "tollbooth/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 2000 };

/* --- list ----------------------------------------------------------------- */

static run_item *add(pool *p, run_list *list)
{
    if (list->n == list->cap) {
        size_t cap = list->cap ? 2 * list->cap : 16;
        run_item *more = pool_get(p, cap, sizeof *more);
        if (!more)
            return NULL;
        if (list->n)
            memcpy(more, list->items, list->n * sizeof *more);
        list->items = more;
        list->cap = cap;
    }
    run_item *item = &list->items[list->n++];
    *item = (run_item){.loss = (double)NAN, .val_loss = (double)NAN};
    return item;
}

/* --- curves --------------------------------------------------------------- */

typedef struct points {
    double *step, *value;
    size_t n, cap;
} points;

static points room(pool *p, size_t n)
{
    points c = {pool_get(p, n, sizeof *c.step), pool_get(p, n, sizeof *c.value),
                0, n};
    c.cap = c.step && c.value ? n : 0;
    return c;
}

static void push(points *c, double step, double value)
{
    if (c->n == c->cap)
        return;
    c->step[c->n] = step;
    c->value[c->n++] = value;
}

/* The least and the largest value of points [from, to), in their order. */
static void keep_two(const report_curve *c, size_t from, size_t to, points *out)
{
    size_t low = from, high = from;
    for (size_t i = from; i < to; i++) {
        low = c->value[i] < c->value[low] ? i : low;
        high = c->value[i] > c->value[high] ? i : high;
    }
    size_t first = low < high ? low : high, last = low < high ? high : low;
    push(out, c->step[first], c->value[first]);
    if (last != first)
        push(out, c->step[last], c->value[last]);
}

static void thin(pool *p, report_curve *c)
{
    if (c->n <= POINTS)
        return;
    points out = room(p, POINTS);
    size_t pieces = POINTS / 2 - 1;
    push(&out, c->step[0], c->value[0]);
    for (size_t i = 0; i < pieces; i++)
        keep_two(c, 1 + (c->n - 2) * i / pieces,
                 1 + (c->n - 2) * (i + 1) / pieces, &out);
    push(&out, c->step[c->n - 1], c->value[c->n - 1]);
    *c = (report_curve){out.step, out.value, out.n};
}

/* Judged with every point, kept with few. */
static void judge_and_thin(pool *p, run_item *r, double far)
{
    report_training *t = &r->training;
    report_curve *all[] = {&t->loss, &t->val, &t->grad, &t->update};
    t->shown = true;
    report_judge(p, t, r->where, far);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        thin(p, all[i]);
}

/* [[step, value], ...] */
static tb_status read_curve(pool *p, tb_config *run, const char *key,
                            report_curve *out)
{
    tb_config *list, *pair, *one;
    double at[2];
    if (tb_config_what(run, key) == TB_CONFIG_ABSENT)
        return TB_OK;
    TRY(tb_config_array(run, key, &list));
    points c = room(p, tb_config_length(list));
    for (size_t i = 0; i < c.cap; i++) {
        TRY(tb_config_item(list, i, &pair));
        for (size_t k = 0; k < 2; k++) {
            TRY(tb_config_item(pair, k, &one));
            TRY(json_number(one, NULL, &at[k]));
        }
        push(&c, at[0], at[1]);
    }
    *out = (report_curve){c.step, c.value, c.n};
    return pool_status(p);
}

static tb_status read_ending(pool *p, tb_config *end, run_item *r)
{
    tb_config *list, *one;
    run_layers *l = pool_get(p, 1, sizeof *l);
    if (tb_config_what(end, "layers") == TB_CONFIG_ABSENT || !l)
        return TB_OK;
    TRY(tb_config_array(end, "layers", &list));
    l->n = tb_config_length(list);
    l->rows = pool_get(p, l->n, sizeof *l->rows);
    for (size_t i = 0; l->rows && i < l->n; i++) {
        const char *name;
        TRY(tb_config_item(list, i, &one));
        TRY(tb_config_size(one, "layer", &l->rows[i].layer));
        TRY(json_number(one, "grad_norm", &l->rows[i].grad_norm));
        l->rows[i].update_ratio = (double)NAN; /* old logs have none */
        if (tb_config_what(one, "update_ratio") != TB_CONFIG_ABSENT)
            TRY(json_number(one, "update_ratio", &l->rows[i].update_ratio));
        TRY(json_text(p, one, "weight", "", &name));
        snprintf(l->rows[i].weight, WEIGHT_NAME, "%s", name);
    }
    TRY(tb_config_size_or(end, "layers_step", 0, &l->step));
    r->training.ending = l;
    return pool_status(p);
}

/* How it ended: the same keys in train's last line and in compare's runs. */
static tb_status read_end(pool *p, tb_config *end, run_item *r)
{
    size_t at;
    TRY(json_text(p, end, "status", NULL, &r->status));
    TRY(json_text(p, end, "where", NULL, &r->where));
    TRY(tb_config_size_or(end, "diverged_at", 0, &at));
    r->training.diverged = r->status && strcmp(r->status, "diverged") == 0;
    r->training.diverged_at = (double)at;
    TRY(json_number(end, "loss", &r->loss));
    TRY(json_number(end, "val_loss", &r->val_loss));
    TRY(read_ending(p, end, r));
    return pool_status(p);
}

/* --- settings ------------------------------------------------------------- */

static tb_status setting_text(pool *p, tb_config *c, const char *key,
                              const char **out)
{
    bool yes;
    double v;
    *out = NULL;
    switch (tb_config_what(c, key)) {
    case TB_CONFIG_STRING:
        return json_text(p, c, key, NULL, out);
    case TB_CONFIG_BOOL:
        TRY(tb_config_bool(c, key, &yes));
        *out = yes ? "yes" : "no";
        break;
    case TB_CONFIG_INT:
    case TB_CONFIG_REAL:
        TRY(tb_config_number(c, key, &v));
        *out = pool_text(p, "%.15g", v);
        break;
    case TB_CONFIG_ABSENT:
    case TB_CONFIG_NULL:
    case TB_CONFIG_ARRAY:
    case TB_CONFIG_OBJECT:
        break;
    }
    return TB_OK;
}

/* Every plain member, in the order of the file. */
static tb_status read_settings(pool *p, tb_config *c, run_item *r)
{
    tb_report_setting *rows = pool_get(p, tb_config_length(c), sizeof *rows);
    void *it = NULL;
    const char *key;
    while (rows && tb_config_next(c, &it, &key)) {
        const char *value;
        if (strcmp(key, "tollbooth") == 0)
            continue;
        TRY(setting_text(p, c, key, &value));
        if (value)
            rows[r->nsettings++] =
                (tb_report_setting){pool_copy(p, key), value};
    }
    r->settings = rows;
    return pool_status(p);
}

static const char *setting_of(const run_item *r, const char *name)
{
    for (size_t i = 0; i < r->nsettings; i++)
        if (strcmp(r->settings[i].name, name) == 0)
            return r->settings[i].value;
    return NULL;
}

/* --- the log of a training ------------------------------------------------ */

typedef struct log_state {
    points loss, val, grad, update;
    run_item *run;
} log_state;

static tb_status log_step(tb_config *c, log_state *l)
{
    double step, loss, grad, update, weights, val;
    if (tb_config_what(c, "loss") == TB_CONFIG_NULL)
        return TB_OK; /* a step without targets */
    TRY(tb_config_number(c, "step", &step));
    TRY(json_number(c, "loss", &loss));
    TRY(json_number(c, "grad_norm", &grad));
    TRY(json_number(c, "update_norm", &update));
    TRY(json_number(c, "weight_norm", &weights));
    push(&l->loss, step, loss);
    push(&l->grad, step, grad);
    if (weights > 0)
        push(&l->update, step, update / weights);
    if (tb_config_what(c, "val_loss") != TB_CONFIG_ABSENT) {
        TRY(json_number(c, "val_loss", &val));
        push(&l->val, step, val);
        l->run->val_loss = val;
    }
    l->run->steps = (size_t)step;
    l->run->loss = loss;
    return TB_OK;
}

static tb_status log_one(pool *p, tb_config *c, log_state *l)
{
    tb_config *settings;
    run_item *r = l->run;
    if (tb_config_what(c, "step") != TB_CONFIG_ABSENT)
        return log_step(c, l);
    if (tb_config_what(c, "done") != TB_CONFIG_ABSENT) {
        TRY(tb_config_size(c, "steps", &r->steps));
        return read_end(p, c, r);
    }
    if (tb_config_what(c, "settings") != TB_CONFIG_OBJECT || r->nsettings)
        return TB_OK;
    TRY(tb_config_object(c, "settings", &settings));
    return read_settings(p, settings, r);
}

static report_curve curve_of(const points *c)
{
    return (report_curve){c->step, c->value, c->n};
}

/* A line that a killed run left half is the last and is passed over. */
static tb_status read_log(tb_ctx *ctx, pool *p, const char *name,
                          const tb_bytes *text, double far, run_item *r)
{
    size_t lines = 1, at = 0;
    for (size_t i = 0; i < text->len; i++)
        lines += text->data[i] == '\n';
    log_state l = {room(p, lines), room(p, lines), room(p, lines),
                   room(p, lines), r};
    for (const char *s = text->data; *s && at < lines; at++) {
        size_t n = strcspn(s, "\n");
        tb_config *c;
        tb_status status = tb_config_parse(ctx, name, s, n, &c);
        if (status == TB_ERR_INPUT && !s[n]) {
            tb_error_clear(ctx);
            break;
        }
        TRY(status);
        status = log_one(p, c, &l);
        tb_config_destroy(c);
        TRY(status);
        s += n + (s[n] == '\n');
    }
    r->training.loss = curve_of(&l.loss);
    r->training.val = curve_of(&l.val);
    r->training.grad = curve_of(&l.grad);
    r->training.update = curve_of(&l.update);
    judge_and_thin(p, r, far);
    r->trained = l.loss.n > 0;
    return pool_status(p);
}

/* --- labels --------------------------------------------------------------- */

static void label_item(pool *p, run_item *r)
{
    const char *name = setting_of(r, "block_name");
    const char *depth = setting_of(r, "depth");
    if (!r->block)
        r->block = name ? name : r->run;
    if (!r->label && depth)
        r->label = pool_text(p, "%s, %s block%s", r->block, depth,
                             strcmp(depth, "1") == 0 ? "" : "s");
    if (!r->label)
        r->label = r->block;
    r->training.label = r->label;
    r->training.depth = depth ? (size_t)strtoull(depth, NULL, 10) : 0;
}

/* --- JSON files ----------------------------------------------------------- */

static tb_status read_flow_run(pool *p, tb_config *c, run_item *r)
{
    r->kind = "flow";
    TRY(flow_read(p, c, &r->flow));
    r->block = r->flow->block;
    r->label = report_flow_label(p, r->flow);
    return pool_status(p);
}

/* Warm-ups and seeds of one block and depth share a flow: the first has it. */
static bool flow_is_known(const run_list *list, const run_item *r,
                          const tb_flow *f)
{
    for (size_t i = 0; i + 1 < list->n; i++) {
        const run_item *one = &list->items[i];
        if (one->flow && strcmp(one->run, r->run) == 0 &&
            strcmp(one->flow->block, f->block) == 0 &&
            one->flow->depth == f->depth)
            return true;
    }
    return false;
}

static tb_status read_compare_run(pool *p, tb_config *c, double far,
                                  run_list *list, run_item *r)
{
    tb_config *flow;
    tb_flow *f;
    size_t warmup, seed, depth;
    r->kind = "compare";
    r->trained = true;
    TRY(json_text(p, c, "block", "", &r->block));
    TRY(tb_config_size(c, "warmup", &warmup));
    TRY(tb_config_size(c, "seed", &seed));
    TRY(tb_config_size(c, "depth", &depth));
    TRY(tb_config_size(c, "steps", &r->steps));
    TRY(read_settings(p, c, r));
    TRY(read_curve(p, c, "loss_curve", &r->training.loss));
    TRY(read_curve(p, c, "val_curve", &r->training.val));
    TRY(read_curve(p, c, "grad_curve", &r->training.grad));
    TRY(read_curve(p, c, "update_curve", &r->training.update));
    TRY(read_end(p, c, r));
    judge_and_thin(p, r, far);
    r->label = pool_text(p, "%s, %zu blocks, %s%s, seed %zu", r->block, depth,
                         warmup ? "warm-up " : "no warm-up",
                         warmup ? pool_text(p, "%zu", warmup) : "", seed);
    r->training.label = r->label;
    r->training.depth = depth;
    TRY(tb_config_object(c, "flow", &flow));
    TRY(flow_read(p, flow, &f));
    r->flow = flow_is_known(list, r, f) ? NULL : f;
    return pool_status(p);
}

static tb_status read_object(pool *p, tb_config *c, const char *path,
                             double far, run_list *list)
{
    tb_config *runs, *one;
    TRY(tb_config_array(c, "runs", &runs));
    for (size_t i = 0; i < tb_config_length(runs); i++) {
        TRY(tb_config_item(runs, i, &one));
        run_item *r = add(p, list);
        if (!r)
            return TB_ERR_MEMORY;
        r->run = path;
        bool both = tb_config_what(one, "flow") == TB_CONFIG_OBJECT;
        TRY(both ? read_compare_run(p, one, far, list, r)
                 : read_flow_run(p, one, r));
    }
    return TB_OK;
}

static tb_status read_text(tb_ctx *ctx, pool *p, const char *path,
                           const tb_bytes *text, double far, run_list *list)
{
    size_t first = strcspn(text->data, "\n");
    bool lines = text->data[first] && text->data[first + 1] == '{';
    tb_config *c;
    if (lines) {
        run_item *r = add(p, list);
        if (!r)
            return TB_ERR_MEMORY;
        r->run = path;
        r->kind = "train";
        TRY(read_log(ctx, p, path, text, far, r));
        label_item(p, r);
        return pool_status(p);
    }
    TRY(tb_config_parse(ctx, path, text->data, text->len, &c));
    tb_status s = read_object(p, c, path, far, list);
    tb_config_destroy(c);
    return s;
}

tb_status run_read_file(tb_ctx *ctx, pool *p, const char *path, double far,
                        run_list *list)
{
    tb_bytes text = {0};
    size_t before = list->n;
    TRY(tb_file_read(ctx, path, (size_t)1 << 30, &text));
    tb_status s = read_text(ctx, p, path, &text, far, list);
    tb_bytes_clear(ctx, &text);
    if (s == TB_ERR_INPUT || (s == TB_OK && list->n == before)) {
        complain("tollbooth: %s: got %s, wanted what `flow --json`, `compare "
                 "--json` or `train --json` of this version printed, or a "
                 "folder of train\n",
                 path, *tb_error(ctx) ? tb_error(ctx) : "something else");
        tb_error_clear(ctx);
        return TB_ERR_INPUT;
    }
    return s;
}

/* --- folders -------------------------------------------------------------- */

bool run_is_folder(const char *what)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/" TB_DIR_CONFIG, what);
    return tb_file_exists(path);
}

static tb_status read_member(tb_ctx *ctx, const char *dir, const char *name,
                             run_item *r, tb_bytes *out)
{
    tb_bytes path = {0};
    TRY(tb_path_join(ctx, dir, name, &path));
    tb_status s = TB_OK;
    *out = (tb_bytes){0};
    if (tb_file_exists(path.data)) {
        run_file *f = &r->files[r->nfiles];
        s = tb_file_read(ctx, path.data, 0, out);
        if (s == TB_OK) {
            f->name = name;
            f->bytes = out->len;
            tb_sha256_hex(out->data, out->len, f->sha256);
            r->nfiles++;
        }
    }
    tb_bytes_clear(ctx, &path);
    return s;
}

static tb_status folder_parts(tb_ctx *ctx, pool *p, const char *dir, double far,
                              run_item *r)
{
    static const char *const names[] = {TB_DIR_CONFIG, TB_DIR_LOG, TB_DIR_BLOCK,
                                        TB_DIR_TOKENIZER, TB_DIR_MODEL};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tb_bytes text;
        tb_config *c;
        TRY(read_member(ctx, dir, names[i], r, &text));
        tb_status s = TB_OK;
        if (text.data && strcmp(names[i], TB_DIR_CONFIG) == 0) {
            s = tb_config_parse(ctx, names[i], text.data, text.len, &c);
            if (s == TB_OK) {
                s = read_settings(p, c, r);
                tb_config_destroy(c);
            }
        } else if (text.data && strcmp(names[i], TB_DIR_LOG) == 0) {
            s = read_log(ctx, p, names[i], &text, far, r);
        }
        tb_bytes_clear(ctx, &text);
        TRY(s);
    }
    return TB_OK;
}

tb_status run_read_folder(tb_ctx *ctx, pool *p, const char *dir, double far,
                          run_list *list, const char **text)
{
    run_item *r = add(p, list);
    if (!r)
        return TB_ERR_MEMORY;
    r->run = dir;
    r->kind = "folder";
    TRY(folder_parts(ctx, p, dir, far, r));
    label_item(p, r);
    *text = setting_of(r, "text");
    return pool_status(p);
}

/* --- JSON ----------------------------------------------------------------- */

static void curve_json(tb_json *j, const char *key, const report_curve *c)
{
    tb_json_array(j, key);
    for (size_t i = 0; i < c->n; i++) {
        tb_json_array(j, NULL);
        tb_json_number(j, NULL, c->step[i]);
        tb_json_number(j, NULL, c->value[i]);
        tb_json_end(j);
    }
    tb_json_end(j);
}

static void training_json(const run_item *r, tb_json *j)
{
    const report_training *t = &r->training;
    static const run_layers none = {0};
    if (!r->trained) {
        tb_json_null(j, "training");
        return;
    }
    tb_json_object(j, "training");
    tb_json_string(j, "status", r->status);
    tb_json_int(j, "steps", (int64_t)r->steps);
    tb_json_number(j, "loss", r->loss);
    tb_json_number(j, "val_loss", r->val_loss);
    if (t->diverged)
        tb_json_number(j, "diverged_at", t->diverged_at);
    curve_json(j, "loss_curve", &t->loss);
    curve_json(j, "val_curve", &t->val);
    curve_json(j, "grad_curve", &t->grad);
    curve_json(j, "update_curve", &t->update);
    layers_json(t->ending ? t->ending : &none, j);
    tb_verdicts_json(t->verdicts, t->nverdicts, j, "verdicts");
    tb_json_end(j);
}

static void files_json(const run_item *r, tb_json *j)
{
    tb_json_array(j, "files");
    for (size_t i = 0; i < r->nfiles; i++) {
        tb_json_object(j, NULL);
        tb_json_string(j, "name", r->files[i].name);
        tb_json_int(j, "bytes", (int64_t)r->files[i].bytes);
        tb_json_string(j, "sha256", r->files[i].sha256);
        tb_json_end(j);
    }
    tb_json_end(j);
}

void run_json(const run_item *r, tb_json *j)
{
    tb_json_object(j, NULL);
    tb_json_string(j, "run", r->run);
    tb_json_string(j, "kind", r->kind);
    tb_json_string(j, "label", r->label);
    tb_json_string(j, "block", r->block);
    tb_json_object(j, "settings");
    for (size_t i = 0; i < r->nsettings; i++)
        tb_json_string(j, r->settings[i].name, r->settings[i].value);
    tb_json_end(j);
    files_json(r, j);
    training_json(r, j);
    tb_json_string(j, "flow_tokens", r->tokens);
    if (r->flow)
        tb_flow_json(r->flow, j, "flow");
    else
        tb_json_null(j, "flow");
    tb_json_end(j);
}
