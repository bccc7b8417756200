/* SPDX-License-Identifier: MIT */
/* Lines from a trained encoder and decoder: some lines side by side, a token
 * for each in every pass, the likeliest one, until each has ended. */
#include "train/translate.h"

enum { ROWS = 16, MOST_BEAM = 64 }; /* lines side by side; hypotheses */

int32_t *tb_translator_text(const tb_translator *w, size_t row)
{
    return w->text + row * (w->context + 1);
}

/* --- sources ---------------------------------------------------------------
 */

static tb_status read_line(tb_translator *w, size_t number, tb_tokens *out)
{
    enum { WHAT = 300 };
    char what[WHAT];
    const tb_span *line = &w->lines[number];
    tb_format(what, sizeof what, "%.250s: line %zu", w->name, number + 1);
    TB_TRY(tb_tokenizer_encode(w->m->ctx, w->m->tokenizer, what, line->data,
                               line->n, out));
    if (out->count < w->context)
        return TB_OK;
    return TB_FAIL(
        w->m->ctx, TB_ERR_INPUT,
        "%s: got %zu tokens, wanted at most %zu (context %zu and the "
        "end token)",
        what, out->count, w->context - 1, w->context);
}

/* Lines first, first + 1, ...: an empty one is said at once. */
static tb_status read_lines(tb_translator *w, size_t first, size_t rows)
{
    w->rows = rows;
    w->source_time = 1;
    for (size_t r = 0; r < rows; r++) {
        tb_tokens_clear(w->m->ctx, &w->source[r]);
        TB_TRY(read_line(w, first + r, &w->source[r]));
        size_t n = w->source[r].count + 1;
        w->source_time = n > w->source_time ? n : w->source_time;
        w->said[r] = 0;
        w->score[r] = 0;
        w->ended[r] = n == 1;
        tb_translator_text(w, r)[0] = w->start;
    }
    return TB_OK;
}

/* Row r of a pass reads source r, or the one source there is. */
static void fill_source(tb_translator *w, size_t sources)
{
    size_t S = w->source_time;
    for (size_t i = 0; i < w->rows * S; i++) {
        const tb_tokens *line = &w->source[i / S % sources];
        size_t at = i % S;
        w->sources[i] = at < line->count    ? line->ids[at]
                        : at == line->count ? w->end
                                            : w->pad;
        w->source_keep[i] = at <= line->count;
    }
}

/* --- one pass --------------------------------------------------------------
 */

/* A causal stack may be padded behind the last token, so bindings double. */
static size_t time_for(const tb_translator *w, size_t seen)
{
    size_t time = 16;
    while (time < seen)
        time *= 2;
    return time < w->context ? time : w->context;
}

/* Tokens [from, to) of all rows; behind what was said, padding. */
static void fill_tokens(tb_translator *w, size_t from, size_t to, size_t seen)
{
    for (size_t r = 0; r < w->rows; r++)
        for (size_t i = from; i < to; i++)
            w->tokens[r * (to - from) + i - from] =
                i <= w->said[r] && i < seen ? tb_translator_text(w, r)[i]
                                            : w->pad;
}

tb_status tb_translator_pass(tb_translator *w, size_t seen)
{
    const tb_batch b = {.tokens = w->tokens,
                        .source = w->sources,
                        .source_keep = w->source_keep};
    if (w->cache) {
        fill_tokens(w, seen - 1, seen, seen);
        return tb_cache_feed(w->cache, &b, 1, true);
    }
    w->time = time_for(w, seen);
    TB_TRY(tb_lm_bind(w->m, w->rows, w->time, w->source_time));
    fill_tokens(w, 0, w->time, seen);
    return tb_quiet_forward(&w->m->quiet, &b, NULL);
}

size_t tb_translator_place(const tb_translator *w, size_t row, size_t seen)
{
    return w->cache ? row : row * w->time + seen - 1;
}

double tb_translator_logit(const tb_translator *w, size_t place, size_t id)
{
    const tb_model *m = w->m->model;
    return tb_lm_logit(m, tb_model_logits(m), place * w->vocab + id);
}

bool tb_translator_may(const tb_translator *w, size_t id)
{
    return id < w->plain || id == (size_t)w->end;
}

tb_status tb_translator_lse(const tb_translator *w, size_t place, double *out)
{
    double most = tb_translator_logit(w, place, 0), sum = 0;
    for (size_t i = 0; i < w->vocab; i++) {
        double z = tb_translator_logit(w, place, i);
        if (!tb_isfinite(z))
            return TB_FAIL(w->m->ctx, TB_ERR_NONFINITE,
                           "translate: the logit of token %zu is %g", i, z);
        most = z > most ? z : most;
    }
    for (size_t i = 0; i < w->vocab; i++)
        sum += tb_exp(tb_translator_logit(w, place, i) - most);
    *out = most + tb_log(sum);
    return TB_OK;
}

/* --- greedy ----------------------------------------------------------------
 */

/* The likeliest of what can be said; of equals the smallest. */
static tb_status choose(tb_translator *w, size_t row, size_t seen)
{
    size_t place = tb_translator_place(w, row, seen), best = w->vocab;
    double lse, most = 0;
    TB_TRY(tb_translator_lse(w, place, &lse));
    for (size_t i = 0; i < w->vocab; i++) {
        double z = tb_translator_logit(w, place, i);
        if (tb_translator_may(w, i) && (best == w->vocab || z > most)) {
            best = i;
            most = z;
        }
    }
    w->score[row] += most - lse;
    w->ended[row] = best == (size_t)w->end;
    if (!w->ended[row])
        tb_translator_text(w, row)[++w->said[row]] = (int32_t)best;
    return TB_OK;
}

static bool all_ended(const tb_translator *w)
{
    for (size_t r = 0; r < w->rows; r++)
        if (!w->ended[r])
            return false;
    return true;
}

/* What has ended rides along. */
static tb_status say_likeliest(tb_translator *w)
{
    for (size_t seen = 1; seen <= w->context && !all_ended(w); seen++) {
        if (tb_ctx_interrupted(w->m->ctx))
            return TB_FAIL(w->m->ctx, TB_INTERRUPTED, "translate: interrupted");
        TB_TRY(tb_translator_pass(w, seen));
        for (size_t r = 0; r < w->rows; r++)
            if (!w->ended[r])
                TB_TRY(choose(w, r, seen));
    }
    return TB_OK;
}

/* --- all of them -----------------------------------------------------------
 */

static tb_status say_rows(tb_translator *w, const tb_search *s, size_t sources)
{
    fill_source(w, sources);
    TB_TRY(tb_lm_cache(w->m, w->rows, w->source_time, &w->cache));
    tb_status status = s->beam < 2
                           ? say_likeliest(w)
                           : tb_beam_line(w, s->beam, s->length_penalty);
    tb_cache_destroy(w->cache);
    w->cache = NULL;
    return status;
}

static tb_status say(tb_translator *w, const tb_search *s)
{
    if (s->beam < 2)
        return say_rows(w, s, w->rows);
    if (w->ended[0])
        return TB_OK;
    w->rows = s->beam;
    tb_status status = say_rows(w, s, 1);
    w->rows = 1;
    return status;
}

static tb_status run(tb_translator *w, const tb_search *s, size_t n,
                     bool (*line)(void *user, const tb_translation *t),
                     void *user)
{
    size_t rows = s->beam < 2 ? ROWS : 1;
    for (size_t first = 0; first < n; first += rows) {
        TB_TRY(read_lines(w, first, n - first < rows ? n - first : rows));
        TB_TRY(say(w, s));
        for (size_t r = 0; r < w->rows; r++) {
            const tb_translation t = {first + r, tb_translator_text(w, r) + 1,
                                      w->said[r], w->ended[r], w->score[r]};
            if (!line(user, &t))
                return TB_OK;
        }
    }
    return TB_OK;
}

static tb_status take_room(tb_translator *w)
{
    tb_ctx *ctx = w->m->ctx;
    size_t n;
    if (!tb_mul(w->most, w->context + 1, &n))
        return TB_FAIL(ctx, TB_ERR_MEMORY, "context: %zu is too large",
                       w->context);
    w->source = tb_alloc(ctx, w->most, sizeof *w->source);
    w->said = tb_alloc(ctx, w->most, sizeof *w->said);
    w->score = tb_alloc(ctx, w->most, sizeof *w->score);
    w->ended = tb_alloc(ctx, w->most, sizeof *w->ended);
    w->text = tb_alloc(ctx, n, sizeof *w->text);
    w->tokens = tb_alloc(ctx, n, sizeof *w->tokens);
    w->sources = tb_alloc(ctx, n, sizeof *w->sources);
    w->source_keep = tb_alloc(ctx, n, 1);
    return w->source && w->said && w->score && w->ended && w->text &&
                   w->tokens && w->sources && w->source_keep
               ? TB_OK
               : TB_ERR_MEMORY;
}

static void clear(tb_translator *w)
{
    tb_ctx *ctx = w->m->ctx;
    for (size_t r = 0; w->source && r < w->most; r++)
        tb_tokens_clear(ctx, &w->source[r]);
    tb_free(ctx, w->source);
    tb_free(ctx, w->said);
    tb_free(ctx, w->score);
    tb_free(ctx, w->ended);
    tb_free(ctx, w->text);
    tb_free(ctx, w->tokens);
    tb_free(ctx, w->sources);
    tb_free(ctx, w->source_keep);
}

static tb_status prepare(tb_translator *w, const tb_search *s)
{
    const tb_tokenizer *t = w->m->tokenizer;
    if (s->beam > MOST_BEAM || !(s->length_penalty >= 0) ||
        !tb_isfinite(s->length_penalty))
        return TB_FAIL(w->m->ctx, TB_ERR_ARG,
                       "translate: got a beam of %zu and length penalty %g, "
                       "wanted at most %d and 0 or more",
                       s->beam, s->length_penalty, (int)MOST_BEAM);
    w->context = w->m->record.spec.settings.context;
    w->vocab = tb_tokenizer_size(t);
    w->plain = tb_tokenizer_plain(t);
    w->pad = tb_tokenizer_special(t, TB_SPECIAL_PAD);
    w->start = tb_tokenizer_special(t, TB_SPECIAL_START);
    w->end = tb_tokenizer_special(t, TB_SPECIAL_END);
    w->most = s->beam < ROWS ? ROWS : s->beam;
    if (w->pad < 0 || w->start < 0 || w->end < 0)
        return TB_FAIL(w->m->ctx, TB_ERR_INPUT,
                       TB_DIR_TOKENIZER ": got no special tokens, wanted pad, "
                                        "start and end");
    return take_room(w);
}

tb_status tb_lm_translate(tb_lm *m, const char *name, const tb_span *lines,
                          size_t n, const tb_search *search,
                          bool (*line)(void *user, const tb_translation *t),
                          void *user)
{
    tb_translator w = {.m = m, .name = name, .lines = lines};
    TB_TRY(tb_lm_need_task(m, "translate", TB_TASK_TRANSLATE));
    tb_status s = prepare(&w, search);
    if (s == TB_OK)
        s = run(&w, search, n, line, user);
    clear(&w);
    return s;
}
