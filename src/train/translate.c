/* SPDX-License-Identifier: MIT */
/* Lines from a trained encoder and decoder: some lines side by side, a token
 * for each in every pass, the likeliest one, until each has ended. */
#include "train/lm.h"

enum { ROWS = 16 }; /* lines side by side */

typedef struct translator {
    tb_lm *m;
    const char *name; /* of the lines, for messages */
    const tb_span *lines;
    size_t context;
    int32_t pad, start, end;
    tb_tokens source[ROWS];
    size_t rows, source_time;
    int32_t *text; /* [ROWS, context + 1]: start and what was said */
    size_t said[ROWS];
    bool ended[ROWS];
    int32_t *tokens, *sources; /* of a pass */
    unsigned char *source_keep;
} translator;

static int32_t *text_of(translator *w, size_t row)
{
    return w->text + row * (w->context + 1);
}

/* --- sources ---------------------------------------------------------------
 */

static tb_status read_line(translator *w, size_t number, tb_tokens *out)
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
static tb_status read_lines(translator *w, size_t first, size_t rows)
{
    w->rows = rows;
    w->source_time = 1;
    for (size_t r = 0; r < rows; r++) {
        tb_tokens_clear(w->m->ctx, &w->source[r]);
        TB_TRY(read_line(w, first + r, &w->source[r]));
        size_t n = w->source[r].count + 1;
        w->source_time = n > w->source_time ? n : w->source_time;
        w->said[r] = 0;
        w->ended[r] = n == 1;
        text_of(w, r)[0] = w->start;
    }
    return TB_OK;
}

static void fill_source(translator *w)
{
    size_t S = w->source_time;
    for (size_t i = 0; i < w->rows * S; i++) {
        const tb_tokens *line = &w->source[i / S];
        size_t at = i % S;
        w->sources[i] = at < line->count    ? line->ids[at]
                        : at == line->count ? w->end
                                            : w->pad;
        w->source_keep[i] = at <= line->count;
    }
}

/* --- one token for each line -----------------------------------------------
 */

/* A causal stack may be padded behind the last token, so bindings double. */
static size_t time_for(const translator *w, size_t seen)
{
    size_t time = 16;
    while (time < seen)
        time *= 2;
    return time < w->context ? time : w->context;
}

/* The likeliest of the text's tokens and the end; of equals the smallest. */
static tb_status choose(const translator *w, size_t at, int32_t *out)
{
    const tb_model *m = w->m->model;
    const void *logits = tb_model_logits(m);
    size_t vocab = m->sizes.s.vocab;
    size_t plain = tb_tokenizer_plain(w->m->tokenizer);
    double most = 0;
    *out = -1;
    for (size_t i = 0; i < vocab; i++) {
        double z = tb_lm_logit(m, logits, at * vocab + i);
        if (!tb_isfinite(z))
            return TB_FAIL(w->m->ctx, TB_ERR_NONFINITE,
                           "translate: the logit of token %zu is %g", i, z);
        bool may = i < plain || (int32_t)i == w->end;
        if (may && (*out < 0 || z > most)) {
            *out = (int32_t)i;
            most = z;
        }
    }
    return TB_OK;
}

/* Row r has said its `seen - 1` tokens; what has ended rides along. */
static tb_status pass(translator *w, size_t seen)
{
    size_t time = time_for(w, seen);
    const tb_batch b = {.tokens = w->tokens,
                        .source = w->sources,
                        .source_keep = w->source_keep};
    TB_TRY(tb_lm_bind(w->m, w->rows, time, w->source_time));
    for (size_t r = 0; r < w->rows; r++)
        for (size_t i = 0; i < time; i++)
            w->tokens[r * time + i] =
                i <= w->said[r] && i < seen ? text_of(w, r)[i] : w->pad;
    TB_TRY(tb_quiet_forward(&w->m->quiet, &b, NULL));
    for (size_t r = 0; r < w->rows; r++) {
        int32_t id = w->end;
        if (w->ended[r])
            continue;
        TB_TRY(choose(w, r * time + seen - 1, &id));
        w->ended[r] = id == w->end;
        if (!w->ended[r])
            text_of(w, r)[++w->said[r]] = id;
    }
    return TB_OK;
}

static bool all_ended(const translator *w)
{
    for (size_t r = 0; r < w->rows; r++)
        if (!w->ended[r])
            return false;
    return true;
}

static tb_status say(translator *w)
{
    fill_source(w);
    for (size_t seen = 1; seen <= w->context && !all_ended(w); seen++) {
        if (tb_ctx_interrupted(w->m->ctx))
            return TB_FAIL(w->m->ctx, TB_INTERRUPTED, "translate: interrupted");
        TB_TRY(pass(w, seen));
    }
    return TB_OK;
}

/* --- all of them -----------------------------------------------------------
 */

static tb_status run(translator *w, size_t n,
                     bool (*line)(void *user, const tb_translation *t),
                     void *user)
{
    for (size_t first = 0; first < n; first += ROWS) {
        TB_TRY(read_lines(w, first, n - first < ROWS ? n - first : ROWS));
        TB_TRY(say(w));
        for (size_t r = 0; r < w->rows; r++) {
            const tb_translation t = {first + r, text_of(w, r) + 1, w->said[r],
                                      w->ended[r]};
            if (!line(user, &t))
                return TB_OK;
        }
    }
    return TB_OK;
}

static tb_status prepare(translator *w)
{
    tb_ctx *ctx = w->m->ctx;
    const tb_tokenizer *t = w->m->tokenizer;
    size_t n;
    w->context = w->m->record.spec.settings.context;
    w->pad = tb_tokenizer_special(t, TB_SPECIAL_PAD);
    w->start = tb_tokenizer_special(t, TB_SPECIAL_START);
    w->end = tb_tokenizer_special(t, TB_SPECIAL_END);
    if (w->pad < 0 || w->start < 0 || w->end < 0)
        return TB_FAIL(ctx, TB_ERR_INPUT,
                       TB_DIR_TOKENIZER ": got no special tokens, wanted pad, "
                                        "start and end");
    if (!tb_mul(ROWS, w->context + 1, &n))
        return TB_FAIL(ctx, TB_ERR_MEMORY, "context: %zu is too large",
                       w->context);
    w->text = tb_alloc(ctx, n, sizeof *w->text);
    w->tokens = tb_alloc(ctx, n, sizeof *w->tokens);
    w->sources = tb_alloc(ctx, n, sizeof *w->sources);
    w->source_keep = tb_alloc(ctx, n, 1);
    return w->text && w->tokens && w->sources && w->source_keep ? TB_OK
                                                                : TB_ERR_MEMORY;
}

tb_status tb_lm_translate(tb_lm *m, const char *name, const tb_span *lines,
                          size_t n,
                          bool (*line)(void *user, const tb_translation *t),
                          void *user)
{
    translator w = {.m = m, .name = name, .lines = lines};
    TB_TRY(tb_lm_need_task(m, "translate", TB_TASK_TRANSLATE));
    tb_status s = prepare(&w);
    if (s == TB_OK)
        s = run(&w, n, line, user);
    for (size_t r = 0; r < ROWS; r++)
        tb_tokens_clear(m->ctx, &w.source[r]);
    tb_free(m->ctx, w.text);
    tb_free(m->ctx, w.tokens);
    tb_free(m->ctx, w.sources);
    tb_free(m->ctx, w.source_keep);
    return s;
}
