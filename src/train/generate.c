/* SPDX-License-Identifier: MIT */
/* Text from a trained model: each token is computed once, with the keys and
 * values of those before it, until the context is full. From then on, as where
 * the model cannot do that, the last tokens in a window; the logits of the last
 * one, a choice. */
#include "train/lm.h"

typedef struct writer {
    tb_lm *m;
    const tb_sampling *s;
    size_t n, cap; /* tokens of the text so far */
    int32_t *text, *window;
    tb_choice *choices;
    tb_cache *cache; /* NULL: by windows */
} writer;

static size_t context_of(const tb_lm *m)
{
    return m->record.spec.settings.context;
}

/* A causal model may be padded behind the last token, so bindings double and
 * a short prompt does not pay for the whole context. */
static size_t bound_time(const tb_lm *m, size_t seen)
{
    size_t time = 16, context = context_of(m);
    if (!m->record.spec.settings.causal)
        return seen;
    while (time < seen)
        time *= 2;
    return time < context ? time : context;
}

/* All tokens but the last need no logits. */
static tb_status feed(writer *w)
{
    size_t seen = tb_cache_seen(w->cache);
    tb_batch b = {.tokens = w->text + seen};
    if (w->n - seen > 1)
        TB_TRY(tb_cache_feed(w->cache, &b, w->n - seen - 1, false));
    b.tokens = w->text + w->n - 1;
    return tb_cache_feed(w->cache, &b, 1, true);
}

/* The logits of the window's last token, number *place. */
static tb_status look(writer *w, size_t *place)
{
    tb_lm *m = w->m;
    size_t context = context_of(m);
    size_t seen = w->n < context ? w->n : context;
    size_t time = bound_time(m, seen);
    const tb_batch b = {.tokens = w->window};
    *place = seen - 1;
    TB_TRY(tb_lm_bind(m, 1, time, 0));
    memset(w->window, 0, time * sizeof *w->window);
    memcpy(w->window, w->text + w->n - seen, seen * sizeof *w->window);
    return tb_quiet_forward(&m->quiet, &b, NULL);
}

static tb_status step(writer *w, int32_t *id)
{
    tb_lm *m = w->m;
    size_t vocab = m->record.spec.settings.vocab, place = 0;
    tb_dtype dtype = m->model->dtype;
    if (w->cache && w->n > context_of(m)) {
        tb_cache_destroy(w->cache);
        w->cache = NULL;
    }
    TB_TRY(w->cache ? feed(w) : look(w, &place));
    const char *logits = tb_model_logits(m->model);
    return tb_sample(m->ctx, w->s, dtype,
                     logits + place * vocab * tb_dtype_size(dtype), vocab, w->n,
                     w->choices, id);
}

static tb_status run(writer *w, size_t n, bool (*token)(void *user, int32_t id),
                     void *user)
{
    for (size_t i = 0; i < n; i++) {
        int32_t id;
        if (tb_ctx_interrupted(w->m->ctx))
            return TB_FAIL(w->m->ctx, TB_INTERRUPTED,
                           "generate: interrupted after %zu tokens", i);
        TB_TRY(step(w, &id));
        w->text[w->n++] = id;
        if (!token(user, id))
            return TB_OK;
    }
    return TB_OK;
}

static tb_status check_prompt(const tb_lm *m, const int32_t *ids, size_t n)
{
    size_t vocab = m->record.spec.settings.vocab;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= vocab)
            return TB_FAIL(m->ctx, TB_ERR_INPUT,
                           "token %zu: got id %d, the vocabulary has %zu", i,
                           (int)ids[i], vocab);
    return TB_OK;
}

static tb_status prepare(writer *w, const int32_t *prompt, size_t nprompt,
                         size_t n)
{
    tb_ctx *ctx = w->m->ctx;
    if (!tb_add(nprompt ? nprompt : 1, n, &w->cap))
        return TB_FAIL(ctx, TB_ERR_ARG, "tokens: got %zu, too many", n);
    w->text = tb_alloc(ctx, w->cap, sizeof *w->text);
    w->window = tb_alloc(ctx, context_of(w->m), sizeof *w->window);
    w->choices =
        tb_alloc(ctx, w->m->record.spec.settings.vocab, sizeof *w->choices);
    if (!w->text || !w->window || !w->choices)
        return TB_ERR_MEMORY;
    w->n = nprompt ? nprompt : 1; /* nothing: token 0 */
    if (nprompt)
        memcpy(w->text, prompt, nprompt * sizeof *prompt);
    return w->n <= context_of(w->m) ? tb_lm_cache(w->m, 1, 0, &w->cache)
                                    : TB_OK;
}

tb_status tb_lm_generate(tb_lm *m, const int32_t *prompt, size_t nprompt,
                         size_t n, const tb_sampling *s,
                         bool (*token)(void *user, int32_t id), void *user)
{
    writer w = {.m = m, .s = s};
    TB_TRY(tb_lm_need_task(m, "generate", TB_TASK_LM));
    TB_TRY(tb_sampling_check(m->ctx, s));
    TB_TRY(check_prompt(m, prompt, nprompt));
    tb_status status = prepare(&w, prompt, nprompt, n);
    if (status == TB_OK)
        status = run(&w, n, token, user);
    tb_cache_destroy(w.cache);
    tb_free(m->ctx, w.text);
    tb_free(m->ctx, w.window);
    tb_free(m->ctx, w.choices);
    return status;
}
