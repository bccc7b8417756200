/* SPDX-License-Identifier: MIT */
/* Corpus: too short texts (C108), the split, windows and their randomness. */
#include <math.h>

#include "tollbooth/data.h"
#include "unit/test_checkpoint_tmp.h"

/* n tokens 0, 1, 2, ... so that a window shows where it starts. */
static tb_status make(tb_ctx *ctx, size_t n, size_t context, double fraction,
                      tb_corpus **out)
{
    static int32_t ids[20000];
    const tb_corpus_options o = {context, fraction};
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)i;
    return tb_corpus_create_ids(ctx, "a.txt", ids, n, 20000, &o, out);
}

TB_TEST(short_texts)
{
    static const struct {
        size_t n, starts;
    } rows[] = {{0, 0}, {8, 0}, {9, 1}, {10, 2}};
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_corpus *c;
        char text[64];
        snprintf(text, sizeof(text), "need at least 9 tokens, have %zu",
                 rows[i].n);
        if (rows[i].starts == 0) {
            TB_FAILS(T, make(T->ctx, rows[i].n, 8, 0, &c), TB_ERR_INPUT, text);
            TB_CHECK(T, c == NULL);
            continue;
        }
        TB_OKAY(T, make(T->ctx, rows[i].n, 8, 0, &c));
        TB_CHECK(T, tb_corpus_starts(c, TB_SPLIT_TRAIN) == rows[i].starts);
        TB_CHECK(T, tb_corpus_starts(c, TB_SPLIT_VAL) == 0);
        TB_CHECK(T, tb_corpus_windows(c, TB_SPLIT_VAL) == 0);
        tb_corpus_destroy(c);
    }
}

TB_TEST(split_is_named)
{
    tb_corpus *c;
    TB_FAILS(T, make(T->ctx, 40, 8, TB_VAL_FRACTION, &c), TB_ERR_INPUT,
             "a.txt: validation split: need at least 9 tokens, have 4");
    TB_FAILS(T, make(T->ctx, 10, 8, 0.5, &c), TB_ERR_INPUT,
             "a.txt: training split: need at least 9 tokens, have 5");
    TB_OKAY(T, make(T->ctx, 9, 8, TB_VAL_FRACTION, &c)); /* no validation */
    tb_corpus_destroy(c);
}

TB_TEST(split_at_the_end)
{
    tb_corpus *c;
    size_t n;
    TB_OKAY(T, make(T->ctx, 1009, 8, 0.1, &c));
    const int32_t *ids = tb_corpus_tokens(c, TB_SPLIT_TRAIN, &n);
    TB_CHECK(T, n == 909 && ids[0] == 0 && ids[908] == 908);
    ids = tb_corpus_tokens(c, TB_SPLIT_VAL, &n);
    TB_CHECK(T, n == 100 && ids[0] == 909 && ids[99] == 1008);
    TB_CHECK(T, tb_corpus_context(c) == 8 && tb_corpus_vocab(c) == 20000);
    tb_corpus_destroy(c);
}

TB_TEST(impossible_settings)
{
    tb_corpus *c;
    TB_FAILS(T, make(T->ctx, 100, 0, 0, &c), TB_ERR_ARG, "context: got 0");
    TB_FAILS(T, make(T->ctx, 100, 8, 1, &c), TB_ERR_ARG, "fraction: got 1");
    TB_FAILS(T, make(T->ctx, 100, 8, -0.1, &c), TB_ERR_ARG, "got -0.1");
    TB_FAILS(T, make(T->ctx, 100, 8, (double)NAN, &c), TB_ERR_ARG,
             "fraction: got");
    TB_FAILS(T, make(T->ctx, 100, SIZE_MAX, 0, &c), TB_ERR_ARG, "context");
    const int32_t ids[] = {0, 5};
    const tb_corpus_options o = {1, 0};
    TB_FAILS(T, tb_corpus_create_ids(T->ctx, "i", ids, 2, 5, &o, &c),
             TB_ERR_INPUT, "i: token 1: got id 5, the vocabulary has 5");
}

/* Starts cover exactly 0..N-T-1, evenly. */
TB_TEST(starts_cover_all_places)
{
    enum { N = 20, T_ = 7, STARTS = N - T_, DRAWS = 26000 };
    tb_corpus *c;
    int count[STARTS] = {0};
    TB_OKAY(T, make(T->ctx, N, T_, 0, &c));
    for (uint64_t step = 0; step < DRAWS / 10; step++)
        for (uint64_t row = 0; row < 10; row++) {
            size_t at = tb_corpus_draw(c, 1, step, row);
            TB_REQUIRE(T, at < STARTS);
            count[at]++;
        }
    for (size_t i = 0; i < STARTS; i++) /* 2000 each, 5 sigma */
        TB_CHECK(T, count[i] > 1785 && count[i] < 2215);
    tb_corpus_destroy(c);
}

TB_TEST(one_start_only)
{
    tb_corpus *c;
    TB_OKAY(T, make(T->ctx, 9, 8, 0, &c));
    for (uint64_t step = 0; step < 100; step++)
        TB_CHECK(T, tb_corpus_draw(c, step, step, step) == 0);
    tb_corpus_destroy(c);
}

/* Pure in (seed, step, row): any order, any cut into parts, same rows. */
TB_TEST(batch_is_pure)
{
    enum { T_ = 5, ROWS = 8 };
    tb_corpus *c;
    int32_t x[ROWS * T_], y[ROWS * T_], x2[ROWS * T_], y2[ROWS * T_];
    TB_OKAY(T, make(T->ctx, 10000, T_, 0.1, &c));
    tb_corpus_batch(c, 7, 3, 0, ROWS, x, y);
    tb_corpus_batch(c, 7, 3, 4, 4, x2 + 4 * T_, y2 + 4 * T_);
    tb_corpus_batch(c, 7, 3, 0, 4, x2, y2);
    TB_SAME(T, x2, x, sizeof(x));
    TB_SAME(T, y2, y, sizeof(y));
    for (size_t r = 0; r < ROWS; r++)
        for (size_t t = 0; t < T_; t++) {
            int32_t at = (int32_t)tb_corpus_draw(c, 7, 3, r);
            TB_CHECK(T, x[r * T_ + t] == at + (int32_t)t);
            TB_CHECK(T, y[r * T_ + t] == at + (int32_t)t + 1);
        }
    tb_corpus_batch(c, 8, 3, 0, ROWS, x2, y2);
    TB_CHECK(T, memcmp(x, x2, sizeof(x)) != 0);
    tb_corpus_batch(c, 7, 4, 0, ROWS, x2, y2);
    TB_CHECK(T, memcmp(x, x2, sizeof(x)) != 0);
    tb_corpus_destroy(c);
}

/* Windows tile the part: every target but the last (N-1) mod T, once. */
TB_TEST(validation_windows)
{
    enum { N = 1000, T_ = 9 };
    tb_corpus *c;
    int32_t x[11 * T_], y[11 * T_];
    TB_OKAY(T, make(T->ctx, N, T_, 0.1, &c));
    TB_CHECK(T, tb_corpus_windows(c, TB_SPLIT_VAL) == 11); /* 99 = 11 * 9 */
    tb_corpus_window(c, TB_SPLIT_VAL, 0, 11, x, y);
    for (int i = 0; i < 11 * T_; i++)
        TB_CHECK(T, x[i] == 900 + i && y[i] == 901 + i);
    tb_corpus_window(c, TB_SPLIT_VAL, 10, 1, x, y);
    TB_CHECK(T, x[0] == 990 && y[T_ - 1] == 999);
    TB_CHECK(T, tb_corpus_windows(c, TB_SPLIT_TRAIN) == 99);
    tb_corpus_window(c, TB_SPLIT_TRAIN, 98, 1, x, y);
    TB_CHECK(T, y[T_ - 1] == 99 * T_);
    tb_corpus_destroy(c);
}

TB_TEST(hash_tells_corpora_apart)
{
    tb_corpus *a, *b;
    static const struct {
        size_t n, context;
        double fraction;
        bool same;
    } rows[] = {{1000, 8, 0.1, true},
                {1000, 9, 0.1, true}, /* the context is not in it */
                {1001, 8, 0.1, false},
                {1000, 8, 0.2, false},
                {1000, 8, 0, false}};
    TB_OKAY(T, make(T->ctx, 1000, 8, 0.1, &a));
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        TB_OKAY(T,
                make(T->ctx, rows[i].n, rows[i].context, rows[i].fraction, &b));
        TB_CHECK(T, (tb_corpus_hash(a) == tb_corpus_hash(b)) == rows[i].same);
        tb_corpus_destroy(b);
    }
    tb_corpus_destroy(a);
}

TB_TEST(from_text)
{
    static const char text[] = "abcabcabcabcabcabcab";
    const tb_corpus_options o = {.context = 3, .val_fraction = 0.25};
    tb_tokenizer *t;
    tb_corpus *c;
    size_t n;
    TB_OKAY(T, tb_tokenizer_char(T->ctx, text, 20, &t));
    TB_OKAY(T, tb_corpus_create(T->ctx, "a.txt", t, text, 20, &o, &c));
    const int32_t *ids = tb_corpus_tokens(c, TB_SPLIT_VAL, &n);
    TB_CHECK(T, n == 5 && ids[0] == 0 && ids[1] == 1 && ids[2] == 2);
    TB_CHECK(T, tb_corpus_vocab(c) == 3);
    tb_corpus_destroy(c);
    TB_FAILS(T, tb_corpus_create(T->ctx, "b.txt", t, "abd", 3, &o, &c),
             TB_ERR_INPUT, "b.txt: character \"d\" (U+0064) at offset 2");
    TMP_EACH_ALLOC(T, tb_corpus_create(T->ctx, "a.txt", t, text, 20, &o, &c),
                   tb_corpus_destroy(c));
    tb_tokenizer_destroy(t);
}
