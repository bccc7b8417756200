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

static tb_status open_tokenizer(tb_trainer *t, const tb_text *text)
{
    if (t->spec.resume)
        return tb_folder_tokenizer(t->ctx, &t->arena, t->spec.out,
                                   &t->tokenizer);
    if (text->bytes.len == 0)
        return TB_FAIL(t->ctx, TB_ERR_INPUT, "%s: the text is empty",
                       t->spec.text);
    return tb_tokenizer_make(t->ctx, t->spec.tokenizer, text->bytes.data,
                             text->bytes.len, &t->tokenizer);
}

static tb_status open_corpus(tb_trainer *t, const tb_text *text)
{
    tb_corpus_options opt = {t->spec.settings.context, t->spec.val_fraction};
    t->stats = text->stats;
    t->gzip = text->gzip;
    TB_TRY(open_tokenizer(t, text));
    return tb_corpus_create(t->ctx, t->spec.text, t->tokenizer,
                            text->bytes.data, text->bytes.len, &opt,
                            &t->corpus);
}

static size_t tokens_of(const tb_corpus *c)
{
    size_t a, b;
    (void)tb_corpus_tokens(c, TB_SPLIT_TRAIN, &a);
    (void)tb_corpus_tokens(c, TB_SPLIT_VAL, &b);
    return a + b;
}

static tb_status check_corpus(tb_trainer *t)
{
    char hash[17];
    size_t n = tokens_of(t->corpus);
    tb_format(hash, sizeof hash, "%016llx",
              (unsigned long long)tb_corpus_hash(t->corpus));
    if (!t->spec.resume) {
        t->record.tokens = n;
        memcpy(t->record.tokens_hash, hash, sizeof hash);
        return TB_OK;
    }
    if (n == t->record.tokens && tb_streq(hash, t->record.tokens_hash))
        return TB_OK;
    return TB_FAIL(t->ctx, TB_ERR_INPUT,
                   "resume: text: %s is not what the run in %s was trained on: "
                   "%zu tokens with hash %s, the run has %zu with %s",
                   t->spec.text, t->spec.out, n, hash, t->record.tokens,
                   t->record.tokens_hash);
}

static tb_status open_text(tb_trainer *t)
{
    tb_text text;
    TB_TRY(need(t, t->spec.text, "text"));
    TB_TRY(tb_text_load(t->ctx, t->spec.text, NULL, &text));
    tb_status s = open_corpus(t, &text);
    tb_text_clear(t->ctx, &text);
    return s == TB_OK ? check_corpus(t) : s;
}

/* --- model ------------------------------------------------------------------
 */

static tb_status settle_vocab(tb_trainer *t)
{
    size_t *vocab = &t->spec.settings.vocab;
    size_t n = tb_tokenizer_size(t->tokenizer);
    if (*vocab && *vocab != n)
        return TB_FAIL(t->ctx, TB_ERR_ARG,
                       "vocab: got %zu, the tokenizer has %zu tokens", *vocab,
                       n);
    *vocab = n;
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
    TB_TRY(settle_vocab(t));
    TB_TRY(tb_model_create(t->ctx, t->block, &t->spec.settings, t->spec.dtype,
                           &t->model));
    settle_record(t);
    return tb_quiet_init(t->model, &t->quiet);
}

static tb_status open_buffers(tb_trainer *t)
{
    tb_model *m = t->model;
    size_t batch = t->spec.batch, T = t->spec.settings.context, n;
    TB_TRY(tb_model_memory(m, batch, T, TB_PASS_BWD, &t->memory));
    if (!tb_mul(batch, T, &n))
        return TB_FAIL(t->ctx, TB_ERR_MEMORY, "batch x context overflows");
    TB_TRY(tb_model_init(m, t->spec.seed));
    TB_TRY(tb_model_bind(m, batch, T, TB_PASS_BWD));
    t->tokens = tb_alloc(t->ctx, n, sizeof *t->tokens);
    t->targets = t->tokens ? tb_alloc(t->ctx, n, sizeof *t->targets) : NULL;
    if (!t->targets)
        return TB_ERR_MEMORY;
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

static tb_status open_all(tb_trainer *t)
{
    TB_TRY(own_strings(t));
    TB_TRY(t->spec.resume ? open_old(t) : open_new(t));
    TB_TRY(tb_record_check(t->ctx, &t->spec));
    TB_TRY(open_text(t));
    TB_TRY(open_model(t));
    TB_TRY(open_folder(t));
    TB_TRY(open_buffers(t));
    return open_state(t);
}

tb_status tb_trainer_open(tb_ctx *ctx, const tb_block *block,
                          const tb_train_spec *spec, tb_trainer *out)
{
    *out = (tb_trainer){
        .ctx = ctx, .block = block, .spec = *spec, .folder = {.lock = -1}};
    tb_arena_init(&out->arena, ctx);
    tb_status s = open_all(out);
    if (s != TB_OK)
        tb_trainer_close(out);
    return s;
}

void tb_trainer_close(tb_trainer *t)
{
    tb_folder_close(&t->folder);
    tb_optimizer_destroy(t->optimizer);
    tb_quiet_clear(&t->quiet);
    tb_free(t->ctx, t->tokens);
    tb_free(t->ctx, t->targets);
    tb_model_destroy(t->model);
    tb_corpus_destroy(t->corpus);
    tb_tokenizer_destroy(t->tokenizer);
    if (t->own_block)
        tb_block_destroy(t->ctx, t->own_block);
    tb_arena_clear(&t->arena);
}
