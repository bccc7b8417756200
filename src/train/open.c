/* SPDX-License-Identifier: MIT */
/* Everything before the first step: settings, text, tokenizer, model, and the
 * folder, new or resumed. */
#include "equation/equation.h"
#include "train/setting.h"
#include "train/trainer.h"

/* --- settings ---------------------------------------------------------------
 */

static tb_status need(const tb_trainer *t, const void *p, const char *what)
{
    if (p)
        return TB_OK;
    return TB_FAIL(t->ctx, TB_ERR_ARG, "train: no %s given", what);
}

static tb_status own(tb_trainer *t, const char **text)
{
    if (*text && !(*text = tb_arena_strdup(&t->arena, *text)))
        return TB_ERR_MEMORY;
    return TB_OK;
}

static tb_status own_strings(tb_trainer *t)
{
    TB_TRY(own(t, &t->spec.settings.norm));
    TB_TRY(own(t, &t->spec.settings.init));
    TB_TRY(own(t, &t->spec.tokenizer));
    TB_TRY(own(t, &t->spec.text));
    TB_TRY(own(t, &t->spec.source));
    TB_TRY(own(t, &t->spec.target));
    return own(t, &t->spec.out);
}

static tb_status open_new(tb_trainer *t)
{
    TB_TRY(need(t, t->block, "block"));
    tb_record_defaults(&t->spec);
    if (t->spec.out)
        TB_TRY(tb_folder_fresh(t->ctx, &t->arena, t->spec.out));
    t->record.block_name = tb_block_name(t->block);
    TB_TRY(tb_record_block(t->ctx, &t->arena, t->block, &t->record));
    tb_sha256_hex(t->record.block_text, strlen(t->record.block_text),
                  t->record.block_hash);
    return TB_OK;
}

/* A block that is given must be the folder's. */
static tb_status open_block(tb_trainer *t, const tb_block *given)
{
    tb_record r = {0};
    TB_TRY(tb_folder_block(t->ctx, &t->arena, t->spec.out, &t->record,
                           &t->own_block));
    t->block = t->own_block;
    if (!given)
        return TB_OK;
    TB_TRY(tb_record_block(t->ctx, &t->arena, given, &r));
    if (tb_streq(r.block_text, t->record.block_text))
        return TB_OK;
    return tb_block_differs(t->ctx, "resume", r.block_text,
                            t->record.block_text);
}

static tb_status open_old(tb_trainer *t)
{
    const char *dir = t->spec.out;
    TB_TRY(need(t, dir, "folder to resume"));
    if (!tb_folder_has(t->ctx, &t->arena, dir, TB_DIR_CONFIG))
        return TB_FAIL(t->ctx, TB_ERR_INPUT,
                       "%s: nothing to resume: no " TB_DIR_CONFIG, dir);
    TB_TRY(tb_folder_record(t->ctx, &t->arena, dir, &t->record));
    TB_TRY(tb_record_adopt(t->ctx, dir, &t->spec, &t->record.spec));
    return open_block(t, t->block);
}

/* --- data -------------------------------------------------------------------
 */

static tb_status open_tokenizer(tb_trainer *t, const tb_feed_spec *data)
{
    if (t->spec.resume)
        return tb_folder_tokenizer(t->ctx, &t->arena, t->spec.out,
                                   &t->tokenizer);
    if (data->text.n == 0)
        return TB_FAIL(t->ctx, TB_ERR_INPUT, "%s: the text is empty",
                       data->text.name);
    return tb_feed_tokenizer(t->ctx, data, t->spec.tokenizer, &t->tokenizer);
}

static tb_status open_feed(tb_trainer *t, const tb_files *files)
{
    tb_feed_spec data = tb_files_feed(files, &t->spec);
    for (size_t i = 0; i < files->count; i++) {
        t->stats[i] = files->text[i].stats;
        t->gzip[i] = files->text[i].gzip;
    }
    data.labels = t->record.labels;
    data.nlabels = t->record.nlabels;
    TB_TRY(open_tokenizer(t, &data));
    return tb_feed_create(t->ctx, &data, t->tokenizer, &t->feed);
}

static tb_status check_feed(tb_trainer *t)
{
    char hash[17];
    size_t n = tb_feed_tokens(t->feed, TB_SPLIT_TRAIN) +
               tb_feed_tokens(t->feed, TB_SPLIT_VAL);
    tb_format(hash, sizeof hash, "%016llx",
              (unsigned long long)tb_feed_hash(t->feed));
    if (!t->spec.resume) {
        t->record.tokens = n;
        memcpy(t->record.tokens_hash, hash, sizeof hash);
        t->record.labels = tb_feed_labels(t->feed, &t->record.nlabels);
        return TB_OK;
    }
    if (n == t->record.tokens && tb_streq(hash, t->record.tokens_hash))
        return TB_OK;
    return TB_FAIL(t->ctx, TB_ERR_INPUT,
                   "resume: text: %s is not what the run in %s was trained on: "
                   "%zu tokens with hash %s, the run has %zu with %s",
                   t->spec.source ? t->spec.source : t->spec.text, t->spec.out,
                   n, hash, t->record.tokens, t->record.tokens_hash);
}

static tb_status open_data(tb_trainer *t)
{
    tb_files files;
    tb_status s = tb_files_load(t->ctx, &t->spec, &files);
    if (s == TB_OK)
        s = open_feed(t, &files);
    tb_files_clear(t->ctx, &files);
    return s == TB_OK ? check_feed(t) : s;
}

/* --- model ------------------------------------------------------------------
 */

/* What of the model follows from the data. */
static tb_status settle_data(tb_trainer *t)
{
    size_t *vocab = &t->spec.settings.vocab;
    size_t n = tb_tokenizer_size(t->tokenizer);
    if (*vocab && *vocab != n)
        return TB_FAIL(t->ctx, TB_ERR_ARG,
                       "vocab: got %zu, the tokenizer has %zu tokens", *vocab,
                       n);
    *vocab = n;
    t->spec.settings.classes = t->record.nlabels;
    t->spec.settings.padding = t->spec.task != TB_TASK_LM;
    return TB_OK;
}

/* The record of a new run is what the model made of the settings. */
static void settle_record(tb_trainer *t)
{
    if (t->spec.resume) {
        t->model->sizes.norm_from = t->record.norm_from;
        t->model->sizes.eps_from = t->record.eps_from;
        return;
    }
    t->spec.settings = t->model->sizes.s;
    t->record.spec = t->spec;
    t->record.norm_from = t->model->sizes.norm_from;
    t->record.eps_from = t->model->sizes.eps_from;
}

static tb_status open_model(tb_trainer *t)
{
    TB_TRY(settle_data(t));
    TB_TRY(tb_model_create(t->ctx, t->block, &t->spec.settings, t->spec.dtype,
                           &t->model));
    settle_record(t);
    tb_model_smooth_labels(t->model, t->spec.label_smoothing);
    return tb_quiet_init(t->model, &t->quiet);
}

static const unsigned passes = TB_PASS_BWD | TB_PASS_ONCE;

static tb_status count_memory(tb_trainer *t, size_t T, size_t S)
{
    const size_t one = t->model->nelements * tb_dtype_size(t->model->dtype);
    size_t all, saved;
    TB_TRY(
        tb_model_memory(t->model, t->spec.batch, T, S, passes, &all, &saved));
    t->memory = (tb_train_memory){.weights = one,
                                  .gradients = one,
                                  .optimizer = 2 * one,
                                  .saved = saved,
                                  .work = all - saved};
    return TB_OK;
}

static tb_status open_buffers(tb_trainer *t, const tb_train_observer *obs)
{
    tb_model *m = t->model;
    size_t batch = t->spec.batch, T = tb_feed_time(t->feed);
    size_t S = tb_feed_source_time(t->feed) ? tb_feed_source_time(t->feed) : T;
    TB_TRY(count_memory(t, T, S));
    if (obs && obs->memory)
        obs->memory(obs->user, &t->memory);
    TB_TRY(tb_model_init(m, t->spec.seed));
    TB_TRY(tb_model_bind_source(m, batch, T, S, passes));
    TB_TRY(tb_rows_create(t->ctx, t->feed, batch, &t->rows));
    return tb_optimizer_create(t->ctx, m->dtype, m->views, m->nviews,
                               m->nelements, m->params, &t->optimizer);
}

/* --- folder -----------------------------------------------------------------
 */

/* A run killed before its first save has no state: it starts again. */
static tb_status open_state(tb_trainer *t)
{
    const char *dir = t->spec.out;
    tb_progress_init(&t->progress);
    if (!dir)
        return TB_OK;
    if (!t->spec.resume)
        return tb_folder_start(t->ctx, &t->arena, dir, &t->record,
                               t->tokenizer);
    if (!tb_folder_has(t->ctx, &t->arena, dir, TB_DIR_STATE))
        return TB_OK;
    TB_TRY(tb_state_load(t->ctx, dir, &t->record, &t->progress, t->model,
                         t->optimizer));
    t->saved = t->progress.step;
    return TB_OK;
}

/* Looked at once more now that nobody else writes there. */
static tb_status open_folder(tb_trainer *t)
{
    const char *dir = t->spec.out;
    TB_TRY(tb_folder_open(t->ctx, dir, &t->folder));
    return dir && !t->spec.resume ? tb_folder_fresh(t->ctx, &t->arena, dir)
                                  : TB_OK;
}

static tb_status open_all(tb_trainer *t, const tb_train_observer *obs)
{
    TB_TRY(own_strings(t));
    TB_TRY(t->spec.resume ? open_old(t) : open_new(t));
    TB_TRY(tb_record_check(t->ctx, &t->spec));
    TB_TRY(open_data(t));
    TB_TRY(open_model(t));
    TB_TRY(open_folder(t));
    TB_TRY(open_buffers(t, obs));
    return open_state(t);
}

tb_status tb_trainer_open(tb_ctx *ctx, const tb_block *block,
                          const tb_train_spec *spec,
                          const tb_train_observer *obs, tb_trainer *out)
{
    *out = (tb_trainer){
        .ctx = ctx, .block = block, .spec = *spec, .folder = {.lock = -1}};
    tb_arena_init(&out->arena, ctx);
    tb_status s = open_all(out, obs);
    if (s != TB_OK)
        tb_trainer_close(out);
    return s;
}

void tb_trainer_close(tb_trainer *t)
{
    tb_folder_close(&t->folder);
    tb_optimizer_destroy(t->optimizer);
    tb_quiet_clear(&t->quiet);
    tb_rows_clear(t->ctx, &t->rows);
    tb_model_destroy(t->model);
    tb_feed_destroy(t->feed);
    tb_tokenizer_destroy(t->tokenizer);
    if (t->own_block)
        tb_block_destroy(t->ctx, t->own_block);
    tb_arena_clear(&t->arena);
}
