/* SPDX-License-Identifier: MIT */
/* Loss of a model on files of its task: rows of the feed, every target once. */
#include "train/lm.h"

enum { ROWS = 8 }; /* of one forward pass */

typedef struct scorer {
    tb_lm *m;
    tb_feed *feed;
    tb_rows rows;
    size_t outputs, right; /* of the head; targets that are its first choice */
    tb_npy_writer *npy;
    tb_mean mean;
} scorer;

static size_t best_of(const scorer *s, size_t at)
{
    const tb_model *m = s->m->model;
    const void *logits = tb_model_logits(m);
    size_t best = 0;
    for (size_t i = 1; i < s->outputs; i++)
        if (tb_lm_logit(m, logits, at * s->outputs + i) >
            tb_lm_logit(m, logits, at * s->outputs + best))
            best = i;
    return best;
}

/* The logits of position `at`, which has a target. */
static tb_status look_at(scorer *s, size_t at)
{
    const tb_model *m = s->m->model;
    const char *logits = tb_model_logits(m);
    s->right += best_of(s, at) == (size_t)s->rows.targets[at];
    if (!s->npy)
        return TB_OK;
    return tb_npy_append(s->npy, m->dtype,
                         logits + at * s->outputs * tb_dtype_size(m->dtype),
                         s->outputs);
}

static tb_status some(scorer *s, size_t first, size_t rows)
{
    const tb_batch b = tb_rows_batch(&s->rows, 0, 0);
    size_t time = tb_feed_time(s->feed);
    double loss;
    for (size_t r = 0; r < rows; r++)
        tb_feed_row(s->feed, TB_SPLIT_TRAIN, first + r, &s->rows, r);
    TB_TRY(tb_lm_bind(s->m, rows, time, tb_feed_source_time(s->feed)));
    TB_TRY(tb_quiet_forward(&s->m->quiet, &b, &loss));
    tb_mean_add(&s->mean, loss, tb_rows_targets(s->feed, &s->rows, rows));
    for (size_t i = 0; i < rows * time; i++)
        if (s->rows.targets[i] >= 0)
            TB_TRY(look_at(s, i));
    return TB_OK;
}

static tb_status all(scorer *s)
{
    size_t n = tb_feed_rows(s->feed, TB_SPLIT_TRAIN);
    for (size_t i = 0; i < n; i += ROWS) {
        if (tb_ctx_interrupted(s->m->ctx))
            return TB_FAIL(s->m->ctx, TB_INTERRUPTED, "score: interrupted");
        TB_TRY(some(s, i, n - i < ROWS ? n - i : ROWS));
    }
    if (s->mean.tokens)
        return TB_OK;
    return TB_FAIL(s->m->ctx, TB_ERR_INPUT,
                   "score: of %zu tokens none was hidden, so that there is "
                   "nothing to guess",
                   tb_feed_tokens(s->feed, TB_SPLIT_TRAIN));
}

/* How many targets there will be: a file says first what it holds. */
static size_t count_targets(const scorer *s)
{
    size_t sum = 0;
    for (size_t i = 0; i < tb_feed_rows(s->feed, TB_SPLIT_TRAIN); i++) {
        tb_feed_row(s->feed, TB_SPLIT_TRAIN, i, &s->rows, 0);
        sum += tb_rows_targets(s->feed, &s->rows, 1);
    }
    return sum;
}

static tb_status score_feed(scorer *s, const char *npy)
{
    tb_ctx *ctx = s->m->ctx;
    TB_TRY(tb_rows_create(ctx, s->feed, ROWS, &s->rows));
    if (npy) {
        size_t dims[2] = {count_targets(s), s->outputs};
        TB_TRY(tb_npy_create(ctx, npy, tb_elem_of(s->m->model->dtype), 2, dims,
                             &s->npy));
    }
    tb_status status = all(s);
    if (s->npy && status == TB_OK)
        return tb_npy_finish(s->npy);
    tb_npy_abort(s->npy);
    return status;
}

static tb_status open_feed(scorer *s, const tb_files *files,
                           const tb_train_spec *spec)
{
    tb_feed_spec data = tb_files_feed(files, spec);
    data.whole = true;
    data.val_fraction = 0;
    data.labels = s->m->record.labels;
    data.nlabels = s->m->record.nlabels;
    return tb_feed_create(s->m->ctx, &data, s->m->tokenizer, &s->feed);
}

static tb_status score_rows(tb_lm *m, const tb_files *files,
                            const tb_train_spec *spec, const char *npy,
                            tb_score *out)
{
    scorer s = {.m = m, .outputs = tb_settings_outputs(&m->model->sizes.s)};
    tb_status status = open_feed(&s, files, spec);
    if (status == TB_OK)
        status = score_feed(&s, npy);
    tb_rows_clear(m->ctx, &s.rows);
    tb_feed_destroy(s.feed);
    double loss = tb_mean_of(&s.mean), n = (double)s.mean.tokens;
    if (status == TB_OK)
        *out = (tb_score){s.mean.tokens, loss, tb_exp(loss), true,
                          (double)s.right / n};
    return status;
}

/* A running text has a scorer of its own: each token but the first, once. */
static tb_status score_text(tb_lm *m, const tb_files *files, const char *npy,
                            tb_score *out)
{
    const tb_bytes *b = &files->text[0].bytes;
    tb_tokens tokens;
    TB_TRY(tb_tokenizer_encode(m->ctx, m->tokenizer, files->name[0], b->data,
                               b->len, &tokens));
    tb_status s = tb_lm_score(m, tokens.ids, tokens.count, npy, out);
    tb_tokens_clear(m->ctx, &tokens);
    return s;
}

tb_status tb_lm_score_files(tb_lm *m, const tb_score_files *given,
                            const char *logits_npy, tb_score *out)
{
    tb_train_spec spec = m->record.spec;
    tb_files files;
    spec.text = given->text;
    spec.source = given->source;
    spec.target = given->target;
    *out = (tb_score){0};
    tb_status s = tb_files_load(m->ctx, &spec, &files);
    if (s == TB_OK)
        s = spec.task == TB_TASK_LM
                ? score_text(m, &files, logits_npy, out)
                : score_rows(m, &files, &spec, logits_npy, out);
    tb_files_clear(m->ctx, &files);
    return s;
}
