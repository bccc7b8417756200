/* SPDX-License-Identifier: MIT */
/* Tokens in two parts and the windows cut from them. What a step sees is a
 * pure function of seed, step and row: nothing to save, nothing to restore. */
#include "base/number.h"
#include "data/feed.h"

typedef struct part {
    size_t at, n; /* in ids */
} part;

struct tb_corpus {
    tb_ctx *ctx;
    tb_tokens tokens;
    size_t vocab, context;
    part parts[2]; /* by tb_split */
    uint64_t hash;
};

enum { ROW_BITS = 24 };

static tb_status check_options(tb_ctx *ctx, const tb_corpus_options *o)
{
    if (o->context == 0)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "context: got 0 tokens, wanted at least 1");
    if (!(o->val_fraction >= 0 && o->val_fraction < 1))
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "validation fraction: got %g, wanted 0 to less than 1",
                       o->val_fraction);
    return TB_OK;
}

/* A part that is there must hold one window: T inputs and the last target. */
static tb_status check_part(const tb_corpus *c, const char *name, tb_split s)
{
    static const char *const words[] = {"training", "validation"};
    size_t need = 0, n = c->parts[s].n;
    if (!tb_add(c->context, 1, &need))
        return TB_FAIL(c->ctx, TB_ERR_ARG, "context: got %zu tokens, too many",
                       c->context);
    if (n >= need || (s == TB_SPLIT_VAL && n == 0))
        return TB_OK;
    return TB_FAIL(c->ctx, TB_ERR_INPUT,
                   "%s: %s split: need at least %zu tokens, have %zu (context "
                   "%zu and the next token)",
                   name, words[s], need, n, c->context);
}

/* The hash of what a resumed run must find again. */
static uint64_t hash_of(const tb_corpus *c)
{
    const uint64_t sums[] = {
        tb_hash(c->tokens.ids, c->tokens.count * sizeof(*c->tokens.ids)),
        c->tokens.count, c->vocab, c->parts[TB_SPLIT_TRAIN].n};
    return tb_hash(sums, sizeof(sums));
}

static tb_status split(tb_corpus *c, const char *name,
                       const tb_corpus_options *o)
{
    size_t n = c->tokens.count;
    size_t val = (size_t)((double)n * o->val_fraction);
    c->context = o->context;
    c->parts[TB_SPLIT_TRAIN] = (part){0, n - val};
    c->parts[TB_SPLIT_VAL] = (part){n - val, val};
    c->hash = hash_of(c);
    TB_TRY(check_part(c, name, TB_SPLIT_TRAIN));
    return check_part(c, name, TB_SPLIT_VAL);
}

/* Takes the ids over; on failure they are freed. */
static tb_status make(tb_ctx *ctx, const char *name, tb_tokens tokens,
                      size_t vocab, const tb_corpus_options *o, tb_corpus **out)
{
    *out = tb_alloc(ctx, 1, sizeof(**out));
    if (*out == NULL) {
        tb_tokens_clear(ctx, &tokens);
        return TB_ERR_MEMORY;
    }
    **out = (tb_corpus){.ctx = ctx, .tokens = tokens, .vocab = vocab};
    tb_status s = split(*out, name, o);
    if (s != TB_OK) {
        tb_corpus_destroy(*out);
        *out = NULL;
    }
    return s;
}

tb_status tb_corpus_create(tb_ctx *ctx, const char *name, const tb_tokenizer *t,
                           const void *data, size_t n,
                           const tb_corpus_options *opt, tb_corpus **out)
{
    tb_tokens tokens;
    *out = NULL;
    TB_TRY(check_options(ctx, opt));
    TB_TRY(tb_tokenizer_encode(ctx, t, name, data, n, &tokens));
    return make(ctx, name, tokens, tb_tokenizer_size(t), opt, out);
}

tb_status tb_corpus_create_ids(tb_ctx *ctx, const char *name,
                               const int32_t *ids, size_t n, size_t vocab,
                               const tb_corpus_options *opt, tb_corpus **out)
{
    tb_tokens tokens;
    *out = NULL;
    TB_TRY(check_options(ctx, opt));
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= vocab)
            return TB_FAIL(ctx, TB_ERR_INPUT,
                           "%s: token %zu: got id %d, the vocabulary has %zu",
                           name, i, ids[i], vocab);
    TB_TRY(tb_tokens_room(ctx, n, &tokens));
    if (n > 0)
        memcpy(tokens.ids, ids, n * sizeof(*ids));
    tokens.count = n;
    return make(ctx, name, tokens, vocab, opt, out);
}

tb_status tb_corpus_create_whole(tb_ctx *ctx, const char *name,
                                 const tb_tokenizer *t, const void *data,
                                 size_t n, size_t context, tb_corpus **out)
{
    tb_tokens tokens;
    *out = NULL;
    TB_TRY(tb_tokenizer_encode(ctx, t, name, data, n, &tokens));
    if (tokens.count == 0) {
        tb_tokens_clear(ctx, &tokens);
        return TB_FAIL(ctx, TB_ERR_INPUT, "%s: the text is empty", name);
    }
    *out = tb_alloc(ctx, 1, sizeof(**out));
    if (*out == NULL) {
        tb_tokens_clear(ctx, &tokens);
        return TB_ERR_MEMORY;
    }
    **out = (tb_corpus){.ctx = ctx,
                        .tokens = tokens,
                        .vocab = tb_tokenizer_size(t),
                        .context = context,
                        .parts = {{0, tokens.count}, {tokens.count, 0}}};
    (*out)->hash = hash_of(*out);
    return TB_OK;
}

void tb_corpus_destroy(tb_corpus *c)
{
    if (c == NULL)
        return;
    tb_tokens_clear(c->ctx, &c->tokens);
    tb_free(c->ctx, c);
}

size_t tb_corpus_context(const tb_corpus *c)
{
    return c->context;
}

size_t tb_corpus_vocab(const tb_corpus *c)
{
    return c->vocab;
}

const int32_t *tb_corpus_tokens(const tb_corpus *c, tb_split s, size_t *n)
{
    *n = c->parts[s].n;
    return c->tokens.ids + c->parts[s].at;
}

uint64_t tb_corpus_hash(const tb_corpus *c)
{
    return c->hash;
}

/* --- windows
 * --------------------------------------------------------------------- */

size_t tb_corpus_starts(const tb_corpus *c, tb_split s)
{
    size_t n = c->parts[s].n;
    return n > c->context ? n - c->context : 0;
}

size_t tb_corpus_draw(const tb_corpus *c, uint64_t seed, uint64_t step,
                      uint64_t row)
{
    tb_rng r = tb_rng_make(seed, "data.window");
    return (size_t)tb_rng_below(r, step << ROW_BITS | row,
                                tb_corpus_starts(c, TB_SPLIT_TRAIN));
}

static void cut(const tb_corpus *c, tb_split s, size_t start, int32_t *x,
                int32_t *y)
{
    const int32_t *from = c->tokens.ids + c->parts[s].at + start;
    memcpy(x, from, c->context * sizeof(*x));
    memcpy(y, from + 1, c->context * sizeof(*y));
}

void tb_corpus_batch(const tb_corpus *c, uint64_t seed, uint64_t step,
                     uint64_t row, size_t rows, int32_t *x, int32_t *y)
{
    for (size_t r = 0; r < rows; r++)
        cut(c, TB_SPLIT_TRAIN, tb_corpus_draw(c, seed, step, row + r),
            x + r * c->context, y + r * c->context);
}

size_t tb_corpus_windows(const tb_corpus *c, tb_split s)
{
    size_t n = c->parts[s].n;
    return n == 0 ? 0 : (n - 1) / c->context;
}

void tb_corpus_window(const tb_corpus *c, tb_split s, size_t first, size_t rows,
                      int32_t *x, int32_t *y)
{
    for (size_t r = 0; r < rows; r++)
        cut(c, s, (first + r) * c->context, x + r * c->context,
            y + r * c->context);
}
