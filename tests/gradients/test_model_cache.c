/* SPDX-License-Identifier: MIT */
/* Logits of tokens given a few at a time against those of all at once: the
 * same bits where products are exact, for every built-in block, every kind of
 * position, with an encoder, and after sequences were picked. */
#include "gradients/random_block.h"
#include "sizes_help.h"
#include "model/cache.h"
#include "tb_test.h"

#include <stdio.h>

enum { BATCH = 3, TIME = 7, SOURCE = 5, VOCAB = 13, DEPTH = 2, SEED = 5 };

typedef struct rig {
    tb_block *block;
    tb_model *m;
    int32_t ids[BATCH * TIME], source[BATCH * SOURCE];
    unsigned char keep[BATCH * SOURCE];
    tb_batch batch;
    double *whole; /* [BATCH, TIME, VOCAB] */
    bool wild;     /* a logit is no number, here and there */
} rig;

static tb_status make(tb_ctx *ctx, rig *r, const char *text,
                      void (*change)(tb_settings *s), tb_dtype dtype)
{
    *r = (rig){.batch = {.tokens = r->ids}};
    for (size_t i = 0; i < TB_LEN(r->ids); i++)
        r->ids[i] = (int32_t)(i * i * 5 + 2) % VOCAB;
    for (size_t i = 0; i < TB_LEN(r->source); i++)
        r->source[i] = (int32_t)(i * 7 + 3) % VOCAB;
    for (size_t i = 0; i < TB_LEN(r->keep); i++)
        r->keep[i] = i % SOURCE < 2 + i / SOURCE;
    TB_TRY(tb_block_load(ctx, text, &r->block));
    tb_settings s = help_sizes(r->block, DEPTH, TIME, VOCAB);
    if (change)
        change(&s);
    TB_TRY(tb_model_create(ctx, r->block, &s, dtype, &r->m));
    tb_model_quiet(r->m);
    if (r->m->sizes.s.stack == TB_STACKS_BOTH)
        r->batch.source = r->source;
    if (r->m->sizes.s.stack == TB_STACKS_BOTH && r->m->sizes.s.padding)
        r->batch.source_keep = r->keep;
    return tb_model_init(r->m, SEED);
}

static void leave(tb_ctx *ctx, rig *r)
{
    tb_model_destroy(r->m);
    if (r->block)
        tb_block_destroy(ctx, r->block);
    tb_free(ctx, r->whole);
}

/* Logits of the first `time` tokens, all at once. */
static tb_status all_at_once(tb_ctx *ctx, rig *r, size_t time)
{
    int32_t ids[BATCH * TIME];
    tb_batch b = r->batch;
    size_t n = BATCH * time * VOCAB;
    b.tokens = ids;
    for (size_t i = 0; i < BATCH * time; i++)
        ids[i] = r->ids[i / time * TIME + i % time];
    TB_TRY(
        tb_model_bind_source(r->m, BATCH, time, b.source ? SOURCE : time, 0));
    TB_TRY(tb_model_forward(r->m, &b, NULL));
    tb_free(ctx, r->whole);
    r->whole = tb_alloc(ctx, n, sizeof *r->whole);
    for (size_t i = 0; r->whole && i < n; i++)
        r->whole[i] = tb_test_get(r->m->dtype, tb_model_logits(r->m), i);
    return r->whole ? TB_OK : TB_ERR_MEMORY;
}

/* Tokens [from, from + n) of every sequence. */
static tb_status feed(rig *r, tb_cache *c, size_t from, size_t n, bool logits)
{
    int32_t ids[BATCH * TIME];
    tb_batch b = r->batch;
    b.tokens = ids;
    for (size_t i = 0; i < BATCH * n; i++)
        ids[i] = r->ids[i / n * TIME + from + i % n];
    return tb_cache_feed(c, &b, n, logits);
}

/* The largest difference from the logits of tokens [from, from + n). */
static double off(rig *r, size_t from, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < BATCH * n * VOCAB; i++) {
        size_t b = i / VOCAB / n, t = i / VOCAB % n;
        double got = tb_test_get(r->m->dtype, tb_model_logits(r->m), i);
        double want = r->whole[(b * TIME + from + t) * VOCAB + i % VOCAB];
        bool wild = got != got && want != want; /* squares of squares */
        r->wild = r->wild || wild;
        worse(&most, wild ? 0 : tb_fabs(got - want));
    }
    return most;
}

static void okay(tb_test *T, const char *text, tb_status s)
{
    if (s != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", text, tb_error(T->ctx));
}

/* `first` tokens at once without logits, two with them, then one by one. */
static void compare(tb_test *T, const char *text, rig *r, tb_cache *c,
                    size_t first, double bound)
{
    double d = 0;
    okay(T, text, all_at_once(T->ctx, r, TIME));
    tb_cache_forget(c);
    if (first)
        okay(T, text, feed(r, c, 0, first, false));
    okay(T, text, feed(r, c, first, 2, true));
    d = off(r, first, 2);
    for (size_t t = first + 2; t < TIME; t++) {
        okay(T, text, feed(r, c, t, 1, true));
        worse(&d, off(r, t, 1));
    }
    TB_CHECK(T, tb_cache_seen(c) == TIME);
    if (!(d <= bound))
        tb_test_fail(T, __FILE__, __LINE__, "%s: off by %g", text, d);
}

/* False where the model cannot be used so, or no numbers are left. */
static bool agrees(tb_test *T, const char *text, void (*change)(tb_settings *s),
                   tb_dtype dtype, double bound)
{
    rig r;
    tb_cache *c = NULL;
    okay(T, text, make(T->ctx, &r, text, change, dtype));
    bool both = r.m && r.m->sizes.s.stack == TB_STACKS_BOTH;
    if (r.m)
        okay(T, text, tb_cache_create(r.m, BATCH, TIME, both ? SOURCE : 0, &c));
    if (c && !both)
        compare(T, text, &r, c, 3, bound);
    if (c)
        compare(T, text, &r, c, 0, bound);
    bool able = c && !r.wild;
    tb_cache_destroy(c);
    leave(T->ctx, &r);
    return able;
}

/* All of them: lists go from block to block token by token, and statistics are
 * those of training. */
TB_TEST(every_built_in)
{
    tb_ctx_exact(T->ctx, true);
    for (size_t i = 0; i < tb_builtin_count(); i++)
        if (!agrees(T, tb_builtin_name(i), NULL, TB_F64, 0))
            tb_test_fail(T, __FILE__, __LINE__, "%s: refused",
                         tb_builtin_name(i));
    tb_ctx_exact(T->ctx, false);
}

static void no_positions(tb_settings *s)
{
    s->positions = TB_POSITIONS_NONE;
}

static void waves(tb_settings *s)
{
    s->positions = TB_POSITIONS_SINUSOIDAL;
}

static void turned(tb_settings *s)
{
    s->positions = TB_POSITIONS_ROPE;
    s->kv_heads = 1;
    s->tied = 1;
}

static void two_stacks(tb_settings *s)
{
    s->stack = TB_STACKS_BOTH;
    s->padding = 1;
}

static void turned_stacks(tb_settings *s)
{
    two_stacks(s);
    turned(s);
}

TB_TEST(every_kind_of_position)
{
    void (*const kinds[])(tb_settings *) = {no_positions, waves, turned};
    tb_ctx_exact(T->ctx, true);
    for (size_t i = 0; i < TB_LEN(kinds); i++) {
        TB_CHECK(T, agrees(T, "pre-ln", kinds[i], TB_F32, 0));
        TB_CHECK(T, agrees(T, "post-ln", kinds[i], TB_F64, 0));
    }
    tb_ctx_exact(T->ctx, false);
    TB_CHECK(T, agrees(T, "pre-ln", turned, TB_F32, 1e-5));
}

TB_TEST(encoder_and_decoder)
{
    static const char *const blocks[] = {"pre-ln", "post-ln", "deepnorm",
                                         "powernorm", "siamesenorm"};
    tb_ctx_exact(T->ctx, true);
    for (size_t i = 0; i < TB_LEN(blocks); i++) {
        TB_CHECK(T, agrees(T, blocks[i], two_stacks, TB_F64, 0));
        TB_CHECK(T, agrees(T, blocks[i], turned_stacks, TB_F32, 0));
    }
    tb_ctx_exact(T->ctx, false);
}

static void sees_all(tb_settings *s)
{
    s->stack = TB_STACKS_ENCODER;
}

static void not_causal(tb_settings *s)
{
    s->causal = 0;
}

TB_TEST(what_a_later_token_changes_is_refused)
{
    TB_CHECK(T, !agrees(T, "pre-ln", sees_all, TB_F32, 0));
    TB_CHECK(T, !agrees(T, "pre-ln", not_causal, TB_F32, 0));
    TB_CHECK(T, !agrees(T, "block: x = x + attn(maxdiv(x, whole=true))", NULL,
                        TB_F32, 0));
}

/* Logits that nobody asked for leave the keys of what stands after the stack.
 */
TB_TEST(attention_before_and_after_the_stack)
{
    tb_ctx_exact(T->ctx, true);
    TB_CHECK(T, agrees(T,
                       "block: x = x + F(norm(x))\n"
                       "final: x = x + mha(x, x, norm(x))",
                       NULL, TB_F64, 0));
    TB_CHECK(T, agrees(T,
                       "stem: x = x + mha(x, x, x)\n"
                       "block: x = x + F(norm(x))",
                       NULL, TB_F32, 0));
    tb_ctx_exact(T->ctx, false);
}

static const random_drawn *drawn;

static void as_drawn(tb_settings *s)
{
    s->width = drawn->width;
    s->heads = drawn->heads;
    s->stack = drawn->stack;
}

/* Statistics are running ones; what draws or looks at all tokens is refused. */
TB_TEST(random_blocks)
{
    const random_seeds all = random_asked(200);
    size_t able = 0;
    tb_ctx_exact(T->ctx, true);
    tb_ctx_threads(T->ctx, 1);
    for (uint64_t seed = all.from; seed < all.to && T->failed < 10; seed++) {
        random_drawn d;
        random_block(T->ctx, seed, 0, &d);
        drawn = &d;
        able += agrees(T, tb_buf_str(&d.text), as_drawn,
                       seed % 2 ? TB_F64 : TB_F32, 0);
        tb_buf_clear(&d.text);
    }
    printf("%zu of %llu random blocks run token by token\n", able,
           (unsigned long long)(all.to - all.from));
    TB_CHECK(T, 4 * able > 3 * (all.to - all.from) || !all.enough);
    tb_ctx_exact(T->ctx, false);
}

/* After a pick each sequence goes on as if it had been the other one. */
TB_TEST(picked_sequences)
{
    static const size_t from[BATCH] = {2, 0, 0};
    enum { HALF = 4 };
    rig r;
    tb_cache *c = NULL;
    int32_t ids[BATCH * TIME];
    tb_ctx_exact(T->ctx, true);
    TB_OKAY(T, make(T->ctx, &r, "pre-ln", turned, TB_F64));
    TB_OKAY(T, tb_cache_create(r.m, BATCH, TIME, 0, &c));
    TB_REQUIRE(T, c != NULL);
    for (size_t t = 0; t < HALF; t++)
        TB_OKAY(T, feed(&r, c, t, 1, true));
    memcpy(ids, r.ids, sizeof ids);
    for (size_t b = 0; b < BATCH; b++)
        memcpy(r.ids + b * TIME, ids + from[b] * TIME, HALF * sizeof *ids);
    TB_OKAY(T, tb_cache_pick(c, from));
    TB_OKAY(T, feed(&r, c, HALF, 1, true));
    double *logits = tb_alloc(T->ctx, BATCH * VOCAB, sizeof *logits);
    TB_REQUIRE(T, logits != NULL);
    memcpy(logits, tb_model_logits(r.m), BATCH * VOCAB * sizeof *logits);
    TB_OKAY(T, all_at_once(T->ctx, &r, HALF + 1));
    for (size_t b = 0; b < BATCH; b++)
        TB_SAME(T, logits + b * VOCAB,
                r.whole + (b * (HALF + 1) + HALF) * VOCAB,
                VOCAB * sizeof *logits);
    TB_FAILS(T, feed(&r, c, 0, TIME - HALF, true), TB_ERR_ARG,
             "cache: got 3 tokens after 5, wanted at most 7");
    tb_free(T->ctx, logits);
    tb_cache_destroy(c);
    leave(T->ctx, &r);
    tb_ctx_exact(T->ctx, false);
}
