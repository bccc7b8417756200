/* SPDX-License-Identifier: MIT */
/* The record of a run as config.json, both ways. */
#include "train/setting.h"
#include "train/trainer.h"

/* --- writing ----------------------------------------------------------------
 */

/* No JSON reader keeps all 64 bits of a number. */
static void write_seed(uint64_t seed, const char *key, tb_json *j)
{
    char text[24];
    if (seed <= INT64_MAX) {
        tb_json_int(j, key, (int64_t)seed);
        return;
    }
    tb_format(text, sizeof text, "%llu", (unsigned long long)seed);
    tb_json_string(j, key, text);
}

/* true and false are the two that there were first. */
static void write_positions(int kind, const char *key, tb_json *j)
{
    if (kind == TB_POSITIONS_NONE || kind == TB_POSITIONS_LEARNED)
        tb_json_bool(j, key, kind == TB_POSITIONS_LEARNED);
    else
        tb_json_string(j, key, tb_positions_names[kind]);
}

static void write_row(const tb_setting_row *r, const tb_train_spec *s,
                      tb_json *j)
{
    const void *p = tb_setting_peek(r, s);
    char text[TB_SETTING_CHARS];
    switch (r->kind) {
    case TB_SETTING_SIZE:
    case TB_SETTING_COUNT:
        tb_json_int(j, r->key, (int64_t)(*(const size_t *)p));
        break;
    case TB_SETTING_REAL:
        tb_json_number(j, r->key, *(const double *)p);
        break;
    case TB_SETTING_FLAG:
        tb_json_bool(j, r->key, *(const int *)p != 0);
        break;
    case TB_SETTING_POSITIONS:
        write_positions(*(const int *)p, r->key, j);
        break;
    case TB_SETTING_TEXT:
        tb_json_string(j, r->key, *(const char *const *)p);
        break;
    case TB_SETTING_SEED:
        write_seed(*(const uint64_t *)p, r->key, j);
        break;
    case TB_SETTING_SCHEDULE:
    case TB_SETTING_DTYPE:
    case TB_SETTING_STACK:
    case TB_SETTING_TASK:
        tb_json_string(j, r->key, tb_setting_text(r, s, text));
        break;
    }
}

static void write_labels(const tb_record *r, tb_json *j)
{
    if (!r->nlabels)
        return;
    tb_json_array(j, "labels");
    for (size_t i = 0; i < r->nlabels; i++)
        tb_json_string(j, NULL, r->labels[i]);
    tb_json_end(j);
}

void tb_record_json(const tb_record *r, tb_json *j)
{
    tb_json_string(j, "block_name", r->block_name);
    tb_json_string(j, "block_hash", r->block_hash);
    for (size_t i = 0; i < tb_setting_count; i++) {
        const tb_setting_row *row = &tb_setting_rows[i];
        write_row(row, &r->spec, j);
        if (tb_streq(row->key, "norm"))
            tb_json_string(j, "norm_from", tb_origin_names[r->norm_from]);
        if (tb_streq(row->key, "eps"))
            tb_json_string(j, "eps_from", tb_origin_names[r->eps_from]);
    }
    tb_json_int(j, "tokens", (int64_t)r->tokens);
    tb_json_string(j, "tokens_hash", r->tokens_hash);
    write_labels(r, j);
}

tb_status tb_record_text(tb_ctx *ctx, const tb_record *r, bool pretty,
                         tb_buf *out)
{
    tb_json *j;
    TB_TRY(tb_json_create(ctx, &j));
    tb_json_pretty(j, pretty);
    tb_json_object(j, NULL);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_record_json(r, j);
    tb_json_end(j);
    const char *text = tb_json_text(j);
    if (text)
        tb_buf_puts(out, text);
    tb_json_destroy(j);
    return text ? tb_buf_status(out) : TB_ERR_MEMORY;
}

/* --- reading ----------------------------------------------------------------
 */

/** What reading needs beside the row. */
typedef struct reader {
    tb_ctx *ctx;
    tb_arena *arena;
    tb_config *c;
    const char *name;
} reader;

static tb_status read_word(const reader *r, const char *key,
                           const char *const *words, size_t n, size_t *out)
{
    const char *word;
    TB_TRY(tb_config_string(r->c, key, &word));
    for (*out = 0; *out < n; ++*out)
        if (tb_streq(word, words[*out]))
            return TB_OK;
    return TB_FAIL(r->ctx, TB_ERR_INPUT, "%s: %s: got \"%.40s\"", r->name, key,
                   word);
}

static tb_status read_seed(const reader *r, const char *key, uint64_t *out)
{
    int64_t i = 0;
    const char *text = "";
    if (tb_config_what(r->c, key) != TB_CONFIG_STRING) {
        TB_TRY(tb_config_int(r->c, key, &i));
        *out = (uint64_t)i;
        return TB_OK;
    }
    TB_TRY(tb_config_string(r->c, key, &text));
    *out = 0;
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '9')
            return TB_FAIL(r->ctx, TB_ERR_INPUT, "%s: %s: got \"%.40s\"",
                           r->name, key, text);
        *out = *out * 10 + (uint64_t)(*p - '0');
    }
    return TB_OK;
}

static tb_status read_flag(const reader *r, const char *key, int *out)
{
    bool b = false;
    TB_TRY(tb_config_bool(r->c, key, &b));
    *out = b;
    return TB_OK;
}

static tb_status read_positions(const reader *r, const char *key, int *out)
{
    size_t kind = 0;
    if (tb_config_what(r->c, key) != TB_CONFIG_STRING)
        return read_flag(r, key, out);
    TB_TRY(read_word(r, key, tb_positions_names, TB_POSITIONS_KINDS, &kind));
    *out = (int)kind;
    return TB_OK;
}

static tb_status read_text(const reader *r, const char *key, const char **out)
{
    TB_TRY(tb_config_string_or(r->c, key, NULL, out));
    if (*out && !(*out = tb_arena_strdup(r->arena, *out)))
        return TB_ERR_MEMORY;
    return TB_OK;
}

static tb_status read_schedule(const reader *r, const char *key,
                               tb_schedule *out)
{
    const char *word;
    TB_TRY(tb_config_string(r->c, key, &word));
    return tb_schedule_named(r->ctx, word, out) == TB_OK
               ? TB_OK
               : TB_FAIL(r->ctx, TB_ERR_INPUT, "%s: %s: got \"%.40s\"", r->name,
                         key, word);
}

static tb_status read_stack(const reader *r, const char *key, int *out)
{
    size_t i = 0;
    TB_TRY(read_word(r, key, tb_stack_names, TB_LEN(tb_stack_names), &i));
    *out = (int)i;
    return TB_OK;
}

static tb_status read_task(const reader *r, const char *key, tb_task *out)
{
    const char *word;
    TB_TRY(tb_config_string(r->c, key, &word));
    return tb_task_named(r->ctx, word, out) == TB_OK
               ? TB_OK
               : TB_FAIL(r->ctx, TB_ERR_INPUT, "%s: %s: got \"%.40s\"", r->name,
                         key, word);
}

static tb_status read_row(const reader *r, const tb_setting_row *row,
                          tb_train_spec *s)
{
    void *p = tb_setting_field(row, s);
    size_t i = 0;
    if (row->later && tb_config_what(r->c, row->key) == TB_CONFIG_ABSENT)
        return TB_OK;
    switch (row->kind) {
    case TB_SETTING_SIZE:
    case TB_SETTING_COUNT:
        return tb_config_size(r->c, row->key, p);
    case TB_SETTING_REAL:
        return tb_config_number(r->c, row->key, p);
    case TB_SETTING_FLAG:
        return read_flag(r, row->key, p);
    case TB_SETTING_POSITIONS:
        return read_positions(r, row->key, p);
    case TB_SETTING_TEXT:
        return read_text(r, row->key, p);
    case TB_SETTING_SEED:
        return read_seed(r, row->key, p);
    case TB_SETTING_SCHEDULE:
        return read_schedule(r, row->key, p);
    case TB_SETTING_DTYPE:
        TB_TRY(
            read_word(r, row->key, tb_dtype_names, TB_LEN(tb_dtype_names), &i));
        *(tb_dtype *)p = (tb_dtype)i;
        return TB_OK;
    case TB_SETTING_STACK:
        return read_stack(r, row->key, p);
    case TB_SETTING_TASK:
        return read_task(r, row->key, p);
    }
    return TB_OK;
}

static tb_status read_origin(const reader *r, const char *key, tb_origin *out)
{
    size_t i;
    TB_TRY(read_word(r, key, tb_origin_names, TB_LEN(tb_origin_names), &i));
    *out = (tb_origin)i;
    return TB_OK;
}

/* A text of exactly `size - 1` characters. */
static tb_status read_hash(const reader *r, const char *key, size_t size,
                           char *out)
{
    const char *text;
    TB_TRY(tb_config_string(r->c, key, &text));
    if (strlen(text) != size - 1)
        return TB_FAIL(r->ctx, TB_ERR_INPUT,
                       "%s: %s: got %zu characters, wanted %zu", r->name, key,
                       strlen(text), size - 1);
    memcpy(out, text, size);
    return TB_OK;
}

/* Classes are the places of the labels. */
static tb_status read_labels(const reader *r, tb_record *out)
{
    tb_config *list, *item;
    size_t n = out->spec.settings.classes;
    if (!n)
        return TB_OK;
    TB_TRY(tb_config_array(r->c, "labels", &list));
    if (tb_config_length(list) != n)
        return TB_FAIL(r->ctx, TB_ERR_INPUT,
                       "%s: labels: got %zu, wanted %zu, one for each class",
                       r->name, tb_config_length(list), n);
    const char **labels = tb_arena_alloc(r->arena, n * sizeof *labels);
    if (!labels)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++) {
        TB_TRY(tb_config_item(list, i, &item));
        TB_TRY(tb_config_string(item, NULL, &labels[i]));
        labels[i] = tb_arena_strdup(r->arena, labels[i]);
        if (!labels[i])
            return TB_ERR_MEMORY;
        if (i > 0 && strcmp(labels[i - 1], labels[i]) >= 0)
            return TB_FAIL(r->ctx, TB_ERR_INPUT,
                           "%s: labels[%zu]: got \"%.60s\" after \"%.60s\", "
                           "wanted them sorted",
                           r->name, i, labels[i], labels[i - 1]);
    }
    out->labels = labels;
    out->nlabels = n;
    return TB_OK;
}

/* Each by itself is right; together they say what no run ever was. */
static tb_status check_task(const reader *r, const tb_train_spec *s)
{
    bool labels = s->task == TB_TASK_CLASSIFY;
    if (s->settings.stack != tb_task_stack(s->task))
        return TB_FAIL(r->ctx, TB_ERR_INPUT, "%s: kind: got %s with task %s",
                       r->name, tb_stack_names[s->settings.stack],
                       tb_task_name(s->task));
    if (labels != (s->settings.classes > 0))
        return TB_FAIL(r->ctx, TB_ERR_INPUT,
                       "%s: classes: got %zu with task %s", r->name,
                       s->settings.classes, tb_task_name(s->task));
    return TB_OK;
}

static tb_status check_ours(const reader *r)
{
    if (tb_config_what(r->c, "tollbooth") == TB_CONFIG_STRING)
        return TB_OK;
    return TB_FAIL(r->ctx, TB_ERR_INPUT,
                   "%s: not written by tollbooth train (no key \"tollbooth\")",
                   r->name);
}

/* A folder of an earlier version has one task and no smoothing. */
static void fill_later(tb_train_spec *s)
{
    if (s->task == TB_TASK_UNSET)
        s->task = TB_TASK_LM;
    if (s->label_smoothing < 0)
        s->label_smoothing = 0;
}

static tb_status read_all(const reader *r, tb_record *out)
{
    TB_TRY(check_ours(r));
    for (size_t i = 0; i < tb_setting_count; i++)
        TB_TRY(read_row(r, &tb_setting_rows[i], &out->spec));
    fill_later(&out->spec);
    TB_TRY(check_task(r, &out->spec));
    out->spec.settings.padding = out->spec.task != TB_TASK_LM;
    TB_TRY(read_labels(r, out));
    TB_TRY(read_origin(r, "norm_from", &out->norm_from));
    TB_TRY(read_origin(r, "eps_from", &out->eps_from));
    TB_TRY(read_text(r, "block_name", &out->block_name));
    TB_TRY(read_hash(r, "block_hash", sizeof out->block_hash, out->block_hash));
    TB_TRY(tb_config_size(r->c, "tokens", &out->tokens));
    return read_hash(r, "tokens_hash", sizeof out->tokens_hash,
                     out->tokens_hash);
}

tb_status tb_record_read(tb_ctx *ctx, tb_arena *a, const char *name,
                         const char *text, size_t n, tb_record *out)
{
    reader r = {ctx, a, NULL, name};
    *out = (tb_record){.spec = TB_TRAIN_UNSET};
    TB_TRY(tb_config_parse(ctx, name, text, n, &r.c));
    tb_status s = read_all(&r, out);
    tb_config_destroy(r.c);
    return s;
}
