/* SPDX-License-Identifier: MIT */
/* The tasks as one table: what they need, and what they share. A row is drawn
 * as a corpus draws its windows, so that there is nothing to save. */
#include "data/feed.h"

static const tb_feed_kind *const kinds[] = {
    [TB_TASK_LM] = &tb_feed_lm,
    [TB_TASK_MLM] = &tb_feed_mlm,
    [TB_TASK_CLASSIFY] = &tb_feed_classify,
    [TB_TASK_TRANSLATE] = &tb_feed_translate,
};

const char *tb_task_name(tb_task t)
{
    return t == TB_TASK_UNSET ? "none" : kinds[t]->name;
}

tb_status tb_task_named(tb_ctx *ctx, const char *name, tb_task *out)
{
    const char *names[TB_LEN(kinds) - 1];
    for (size_t i = 1; i < TB_LEN(kinds); i++) {
        names[i - 1] = kinds[i]->name;
        if (!tb_streq(name, kinds[i]->name))
            continue;
        *out = (tb_task)i;
        return TB_OK;
    }
    const char *near = tb_nearest(name, names, TB_LEN(names));
    return TB_FAIL(ctx, TB_ERR_ARG,
                   "task: got %s, wanted lm, mlm, classify or translate%s%s%s",
                   name, near ? "; did you mean " : "", near ? near : "",
                   near ? "?" : "");
}

/* --- making ----------------------------------------------------------------
 */

tb_status tb_feed_tokenizer(tb_ctx *ctx, const tb_feed_spec *spec,
                            const char *kind, tb_tokenizer **out)
{
    const tb_feed_kind *k = kinds[spec->task];
    tb_spans spans = {0};
    *out = NULL;
    tb_status s = k->spans(ctx, spec, &spans);
    if (s == TB_OK)
        s = tb_tokenizer_make_of(ctx, kind, spans.span, spans.count, out);
    tb_free(ctx, spans.span);
    if (s == TB_OK && k->special)
        s = tb_tokenizer_special_add(*out, k->special);
    if (s != TB_OK) {
        tb_tokenizer_destroy(*out);
        *out = NULL;
    }
    return s;
}

static tb_status adopt_tokenizer(tb_feed *f, const tb_tokenizer *t)
{
    f->vocab = tb_tokenizer_size(t);
    f->plain = tb_tokenizer_plain(t);
    for (size_t i = 0; i < TB_SPECIALS; i++) {
        f->special[i] = tb_tokenizer_special(t, (tb_special)i);
        if ((f->kind->special >> i & 1) && f->special[i] < 0)
            return TB_FAIL(f->ctx, TB_ERR_ARG,
                           "%s: the tokenizer lacks the special tokens of this "
                           "task",
                           f->kind->name);
    }
    return TB_OK;
}

static tb_status open_feed(tb_feed *f, const tb_feed_spec *spec,
                           const tb_tokenizer *t)
{
    if (spec->context == 0)
        return TB_FAIL(f->ctx, TB_ERR_ARG,
                       "context: got 0 tokens, wanted at least 1");
    if (!(spec->val_fraction >= 0 && spec->val_fraction < 1))
        return TB_FAIL(f->ctx, TB_ERR_ARG,
                       "validation fraction: got %g, wanted 0 to less than 1",
                       spec->val_fraction);
    TB_TRY(adopt_tokenizer(f, t));
    return f->kind->open(f, spec, t);
}

tb_status tb_feed_create(tb_ctx *ctx, const tb_feed_spec *spec,
                         const tb_tokenizer *t, tb_feed **out)
{
    *out = NULL;
    tb_feed *f = tb_alloc(ctx, 1, sizeof *f);
    if (f == NULL)
        return TB_ERR_MEMORY;
    *f = (tb_feed){.ctx = ctx,
                   .task = spec->task,
                   .kind = kinds[spec->task],
                   .context = spec->context,
                   .whole = spec->whole};
    tb_arena_init(&f->arena, ctx);
    tb_status s = open_feed(f, spec, t);
    if (s == TB_OK)
        *out = f;
    else
        tb_feed_destroy(f);
    return s;
}

static void side_clear(tb_ctx *ctx, tb_side *s)
{
    tb_tokens_clear(ctx, &s->ids);
    tb_free(ctx, s->at);
}

void tb_feed_destroy(tb_feed *f)
{
    if (f == NULL)
        return;
    tb_corpus_destroy(f->corpus);
    side_clear(f->ctx, &f->source);
    side_clear(f->ctx, &f->target);
    tb_free(f->ctx, f->label);
    tb_arena_clear(&f->arena);
    tb_free(f->ctx, f);
}

/* --- reading ---------------------------------------------------------------
 */

tb_task tb_feed_task(const tb_feed *f)
{
    return f->task;
}

size_t tb_feed_time(const tb_feed *f)
{
    return f->time;
}

size_t tb_feed_source_time(const tb_feed *f)
{
    return f->source_time;
}

size_t tb_feed_lines(const tb_feed *f, tb_split s)
{
    return s == TB_SPLIT_VAL ? f->val : f->lines - f->val;
}

/* Tokens of lines [from, to). */
static size_t side_tokens(const tb_side *s, size_t from, size_t to)
{
    return s->at == NULL ? 0 : s->at[to] - s->at[from];
}

size_t tb_feed_tokens(const tb_feed *f, tb_split s)
{
    size_t n = 0, cut = f->lines - f->val;
    if (f->corpus != NULL) {
        (void)tb_corpus_tokens(f->corpus, s, &n);
        return n;
    }
    size_t from = s == TB_SPLIT_VAL ? cut : 0;
    size_t to = s == TB_SPLIT_VAL ? f->lines : cut;
    return side_tokens(&f->source, from, to) +
           side_tokens(&f->target, from, to);
}

size_t tb_feed_skipped(const tb_feed *f)
{
    return f->skipped;
}

const char *const *tb_feed_labels(const tb_feed *f, size_t *n)
{
    *n = f->nlabels;
    return f->labels;
}

uint64_t tb_feed_hash(const tb_feed *f)
{
    return f->hash;
}

/* --- rows ------------------------------------------------------------------
 */

enum { ROW_BITS = 24 }; /* as tb_corpus_draw */

void tb_feed_batch(const tb_feed *f, uint64_t seed, uint64_t step, uint64_t row,
                   size_t rows, const tb_rows *out)
{
    tb_rng r = tb_rng_make(seed, "data.window");
    size_t places = f->kind->places(f, TB_SPLIT_TRAIN);
    for (size_t i = 0; i < rows; i++) {
        const tb_draw d = {seed, step, row + i};
        size_t place =
            (size_t)tb_rng_below(r, step << ROW_BITS | d.row, places);
        f->kind->fill(f, TB_SPLIT_TRAIN, place, d, out, i);
    }
}

size_t tb_feed_rows(const tb_feed *f, tb_split s)
{
    return f->kind->rows(f, s);
}

/* Seed and step are no training step's: those count from 1. */
void tb_feed_row(const tb_feed *f, tb_split s, size_t i, const tb_rows *out,
                 size_t at)
{
    const tb_draw d = {0, 0, i};
    f->kind->fill(f, s, f->kind->place(f, i), d, out, at);
}
