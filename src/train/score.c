/* SPDX-License-Identifier: MIT */
/* Loss of a model on a text: windows of the context side by side, the last one
 * shorter, every token but the first predicted once. */
#include "train/lm.h"

enum { ROWS = 8 }; /* windows of one forward pass */

typedef struct scorer {
    tb_lm *m;
    const int32_t *ids;
    size_t targets; /* tokens to predict: ids[1..targets] */
    size_t vocab;
    int32_t *x, *y;
    tb_npy_writer *npy;
    tb_mean mean;
} scorer;

/* Targets [at, at + count) of `rows` windows of `time`; where the text ends
 * the rest has no target (and lies behind it, out of a causal model's sight).
 */
static void fill(const scorer *s, size_t at, size_t count, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool in = i < count;
        s->x[i] = in ? s->ids[at + i] : 0;
        s->y[i] = in ? s->ids[at + i + 1] : -1;
    }
}

static tb_status some(scorer *s, size_t at, size_t count, size_t rows,
                      size_t time)
{
    tb_lm *m = s->m;
    const tb_batch b = {.tokens = s->x, .targets = s->y};
    double loss;
    TB_TRY(tb_lm_bind(m, rows, time, 0));
    fill(s, at, count, rows * time);
    TB_TRY(tb_quiet_forward(&m->quiet, &b, &loss));
    tb_mean_add(&s->mean, loss, count);
    if (!s->npy)
        return TB_OK;
    return tb_npy_append(s->npy, m->model->dtype, tb_model_logits(m->model),
                         count * s->vocab);
}

/* Whole windows, ROWS at a time; then the rest, on its own if it would see
 * padding. */
static tb_status all(scorer *s)
{
    const tb_settings *set = &s->m->record.spec.settings;
    size_t time = set->context, whole = s->targets / time, at = 0;
    size_t rest = s->targets % time;
    for (size_t w = 0; w < whole; w += ROWS) {
        size_t rows = whole - w < ROWS ? whole - w : ROWS;
        if (tb_ctx_interrupted(s->m->ctx))
            return TB_FAIL(s->m->ctx, TB_INTERRUPTED, "score: interrupted");
        TB_TRY(some(s, at, rows * time, rows, time));
        at += rows * time;
    }
    return rest ? some(s, at, rest, 1, set->causal ? time : rest) : TB_OK;
}

static tb_status check_ids(const tb_lm *m, const int32_t *ids, size_t n)
{
    size_t vocab = m->record.spec.settings.vocab;
    if (n < 2)
        return TB_FAIL(m->ctx, TB_ERR_INPUT,
                       "score: need at least 2 tokens, have %zu", n);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= vocab)
            return TB_FAIL(m->ctx, TB_ERR_INPUT,
                           "score: token %zu: got id %d, the vocabulary has "
                           "%zu",
                           i, (int)ids[i], vocab);
    return TB_OK;
}

static tb_status prepare(scorer *s, const char *logits_npy)
{
    tb_ctx *ctx = s->m->ctx;
    size_t n, dims[2] = {s->targets, s->vocab};
    if (!tb_mul(ROWS, s->m->record.spec.settings.context, &n))
        return TB_ERR_MEMORY;
    s->x = tb_alloc(ctx, n, sizeof *s->x);
    s->y = s->x ? tb_alloc(ctx, n, sizeof *s->y) : NULL;
    if (!s->y)
        return TB_ERR_MEMORY;
    if (!logits_npy)
        return TB_OK;
    return tb_npy_create(ctx, logits_npy, tb_elem_of(s->m->model->dtype), 2,
                         dims, &s->npy);
}

static tb_status finish(scorer *s, tb_status status)
{
    if (s->npy && status == TB_OK)
        return tb_npy_finish(s->npy);
    tb_npy_abort(s->npy);
    return status;
}

tb_status tb_lm_score(tb_lm *m, const int32_t *ids, size_t n,
                      const char *logits_npy, tb_score *out)
{
    scorer s = {.m = m,
                .ids = ids,
                .targets = n - 1,
                .vocab = m->record.spec.settings.vocab};
    *out = (tb_score){0};
    TB_TRY(tb_lm_need_task(m, "score", TB_TASK_LM));
    TB_TRY(check_ids(m, ids, n));
    tb_status status = prepare(&s, logits_npy);
    if (status == TB_OK)
        status = all(&s);
    status = finish(&s, status);
    tb_free(m->ctx, s.x);
    tb_free(m->ctx, s.y);
    double loss = tb_mean_of(&s.mean);
    if (status == TB_OK)
        *out = (tb_score){
            .tokens = s.targets, .loss = loss, .perplexity = tb_exp(loss)};
    return status;
}
