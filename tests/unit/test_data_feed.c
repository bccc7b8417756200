/* SPDX-License-Identifier: MIT */
/* Feeds: pairs of lines, labels, hidden tokens; where padding stands, what has
 * a target, and that a row hangs on seed, step and row alone. */
#include <math.h>

#include "data/feed.h"
#include "unit/test_checkpoint_tmp.h"

enum { MOST = 1 << 17 };

/* One batch and a tokenizer that live as long as a test. */
typedef struct bench {
    tb_test *T;
    tb_tokenizer *t;
    tb_feed *f;
    tb_rows rows;
    size_t time, source_time;
} bench;

static tb_named_text named(const char *name, const char *text)
{
    return (tb_named_text){name, text, strlen(text)};
}

static tb_feed_spec pairs(const char *source, const char *target,
                          size_t context, double fraction)
{
    return (tb_feed_spec){.task = TB_TASK_TRANSLATE,
                          .context = context,
                          .val_fraction = fraction,
                          .text = named("a.en", source),
                          .target = named("a.de", target)};
}

static tb_feed_spec text_of(tb_task task, const char *text, size_t context,
                            double fraction)
{
    return (tb_feed_spec){.task = task,
                          .context = context,
                          .val_fraction = fraction,
                          .text = named("a.txt", text)};
}

static tb_rows some_rows(void)
{
    static int32_t tokens[MOST], targets[MOST], source[MOST];
    static unsigned char keep[MOST], source_keep[MOST];
    return (tb_rows){tokens, targets, keep, source, source_keep};
}

static tb_status bench_try(bench *b, const tb_feed_spec *spec)
{
    tb_test *T = b->T;
    tb_status s = tb_feed_tokenizer(T->ctx, spec, "char", &b->t);
    if (s == TB_OK)
        s = tb_feed_create(T->ctx, spec, b->t, &b->f);
    if (s != TB_OK)
        return s;
    b->rows = some_rows();
    b->time = tb_feed_time(b->f);
    b->source_time = tb_feed_source_time(b->f);
    return TB_OK;
}

static void bench_close(bench *b)
{
    tb_feed_destroy(b->f);
    tb_tokenizer_destroy(b->t);
}

static void refuse(tb_test *T, tb_feed_spec spec, const char *error)
{
    bench b = {.T = T};
    size_t blocks = tb_ctx_blocks(T->ctx);
    TB_FAILS(T, bench_try(&b, &spec), TB_ERR_INPUT, error);
    TB_CHECK(T, b.f == NULL);
    bench_close(&b);
    TB_CHECK(T, tb_ctx_blocks(T->ctx) == blocks);
}

/* A row as characters: ^ start, $ end, . padding, # mask, - no target; then
 * | and the positions that are kept. */
static const char *shown(const bench *b, const int32_t *ids,
                         const unsigned char *keep, size_t row, size_t time)
{
    static char out[4][256];
    static unsigned turn;
    static const char marks[] = ".^$#";
    char *p = out[turn++ % 4], *start = p;
    for (size_t i = row * time; i < (row + 1) * time; i++) {
        size_t n = 0;
        const char *token = tb_tokenizer_token(b->t, ids[i], &n);
        *p = token != NULL && n > 0 ? *token : '-';
        for (size_t s = 0; s < TB_SPECIALS; s++)
            if (ids[i] >= 0 &&
                ids[i] == tb_tokenizer_special(b->t, (tb_special)s))
                *p = marks[s];
        p++;
    }
    *p++ = '|';
    for (size_t i = row * time; keep != NULL && i < (row + 1) * time; i++)
        *p++ = (char)('0' + keep[i]);
    *p = 0;
    return start;
}

static const char *shown_tokens(const bench *b, size_t row)
{
    return shown(b, b->rows.tokens, b->rows.keep, row, b->time);
}

static const char *shown_source(const bench *b, size_t row)
{
    return shown(b, b->rows.source, b->rows.source_keep, row, b->source_time);
}

static const char *shown_targets(const bench *b, size_t row)
{
    return shown(b, b->rows.targets, NULL, row, b->time);
}

/* --- lines ---------------------------------------------------------------- */

TB_TEST(lines_end_at_lf_or_crlf)
{
    static const struct {
        const char *text, *lines; /* joined by | */
        size_t count;
    } rows[] = {{"", "", 0},
                {"a", "a|", 1},
                {"a\n", "a|", 1},
                {"a\n\n", "a||", 2},
                {"\n", "|", 1},
                {"a\r\nb\n", "a|b|", 2},
                {"a\rb\n", "a\rb|", 1},
                {"a\r", "a\r|", 1},
                {"\r\n\r\n", "||", 2},
                {"a\r\r\n", "a\r|", 1}};
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_lines l;
        tb_buf b;
        tb_buf_init(&b, T->ctx);
        TB_OKAY(T,
                tb_lines_split(T->ctx, rows[i].text, strlen(rows[i].text), &l));
        for (size_t k = 0; k < l.count; k++) {
            tb_buf_put(&b, l.line[k].data, l.line[k].n);
            tb_buf_putc(&b, '|');
        }
        TB_STR(T, tb_buf_str(&b), rows[i].lines);
        TB_CHECK(T, l.count == rows[i].count);
        tb_lines_clear(T->ctx, &l);
        tb_buf_clear(&b);
    }
}

/* --- pairs ---------------------------------------------------------------- */

TB_TEST(a_pair_is_shifted_and_padded)
{
    const tb_feed_spec spec = pairs("ab\nc\r\n", "xyz\nx\n", 9, 0);
    bench b = {.T = T};
    TB_OKAY(T, bench_try(&b, &spec));
    TB_CHECK(T, b.time == 4 && b.source_time == 3); /* of the longest lines */
    TB_CHECK(T, tb_tokenizer_plain(b.t) == 6);      /* no line ends */
    TB_CHECK(T, tb_feed_lines(b.f, TB_SPLIT_TRAIN) == 2);
    TB_CHECK(T, tb_feed_tokens(b.f, TB_SPLIT_TRAIN) == 3 + 4);
    for (size_t i = 0; i < 2; i++)
        tb_feed_row(b.f, TB_SPLIT_TRAIN, i, &b.rows, i);
    TB_STR(T, shown_source(&b, 0), "ab$|111");
    TB_STR(T, shown_tokens(&b, 0), "^xyz|1111");
    TB_STR(T, shown_targets(&b, 0), "xyz$|");
    TB_STR(T, shown_source(&b, 1), "c$.|110");
    TB_STR(T, shown_tokens(&b, 1), "^x..|1100");
    TB_STR(T, shown_targets(&b, 1), "x$--|");
    bench_close(&b);
}

TB_TEST(pairs_with_an_empty_line_are_passed_over)
{
    const tb_feed_spec spec = pairs("a\n\nb\nc\n", "x\ny\n\nz\n", 9, 0);
    bench b = {.T = T};
    TB_OKAY(T, bench_try(&b, &spec));
    TB_CHECK(T, tb_feed_skipped(b.f) == 2);
    TB_CHECK(T, tb_feed_rows(b.f, TB_SPLIT_TRAIN) == 2);
    tb_feed_row(b.f, TB_SPLIT_TRAIN, 1, &b.rows, 0);
    TB_STR(T, shown_source(&b, 0), "c$|11");
    TB_STR(T, shown_targets(&b, 0), "z$|");
    bench_close(&b);
}

TB_TEST(pairs_that_cannot_be_meant)
{
    refuse(T, pairs("a\nb\nc\n", "x\ny\n", 9, 0),
           "a.en has 3 lines and a.de has 2, wanted as many in both");
    refuse(T, pairs("\n\n", "x\ny\n", 9, 0),
           "a.en: got no pair of lines with text in both");
    refuse(T, pairs("", "", 9, 0), "character vocabulary: got an empty text");
    refuse(T, pairs("a\nabcd\nabc\n", "x\ny\nz\n", 3, 0),
           "a.en: line 2: got 4 tokens, wanted at most 2 (context 3 and the "
           "end token); 2 of 3 lines are too long, a context of 5 would hold "
           "them");
    refuse(T, pairs("a\n\nb\n", "x\ny\nxyz\n", 3, 0),
           "a.de: line 3: got 3 tokens, wanted at most 2 (context 3 and the "
           "start token); 1 of 2 lines are too long");
}

/* A vocabulary of another text: the line is named. */
TB_TEST(pairs_outside_the_vocabulary)
{
    const tb_feed_spec had = pairs("a\n", "x\n", 9, 0);
    const tb_feed_spec new = pairs("a\naq\n", "x\nx\n", 9, 0);
    bench b = {.T = T};
    tb_feed *f;
    TB_OKAY(T, bench_try(&b, &had));
    TB_FAILS(T, tb_feed_create(T->ctx, &new, b.t, &f), TB_ERR_INPUT,
             "a.en: line 2: character \"q\" (U+0071) at offset 1 is not in the "
             "vocabulary");
    bench_close(&b);
}

TB_TEST(a_feed_wants_its_special_tokens)
{
    const tb_feed_spec spec = pairs("a\n", "x\n", 9, 0);
    tb_tokenizer *t;
    tb_feed *f;
    TB_OKAY(T, tb_tokenizer_char(T->ctx, "ax", 2, &t));
    TB_FAILS(T, tb_feed_create(T->ctx, &spec, t, &f), TB_ERR_ARG,
             "translate: the tokenizer lacks the special tokens");
    tb_tokenizer_destroy(t);
}

/* 40 pairs "aaa.." -> "bbb..": line i has i % 5 + 1 letters. */
static void ladder(char *a, char *b)
{
    for (size_t i = 0; i < 40; i++) {
        for (size_t k = 0; k <= i % 5; k++) {
            *a++ = (char)('A' + i);
            *b++ = (char)('A' + i);
        }
        *a++ = *b++ = '\n';
    }
    *a = *b = 0;
}

/* Which line a row of the ladder is. */
static size_t rung(const bench *b, size_t row)
{
    size_t n;
    return (size_t)(*tb_tokenizer_token(
                        b->t, b->rows.source[row * b->source_time], &n) -
                    'A');
}

TB_TEST(pairs_are_split_by_lines)
{
    char source[400], target[400];
    bench b = {.T = T};
    unsigned seen[40] = {0};
    ladder(source, target);
    const tb_feed_spec spec = pairs(source, target, 6, 0.1);
    TB_OKAY(T, bench_try(&b, &spec));
    TB_CHECK(T, tb_feed_lines(b.f, TB_SPLIT_TRAIN) == 36);
    TB_CHECK(T, tb_feed_rows(b.f, TB_SPLIT_VAL) == 4);
    for (size_t i = 0; i < 4; i++) {
        tb_feed_row(b.f, TB_SPLIT_VAL, i, &b.rows, 0);
        TB_CHECK(T, rung(&b, 0) == 36 + i);
    }
    for (size_t step = 1; step <= 100; step++) {
        tb_feed_batch(b.f, 1, step, 0, 4, &b.rows);
        for (size_t r = 0; r < 4; r++)
            seen[rung(&b, r)]++;
    }
    for (size_t i = 0; i < 40; i++) /* 400 draws of 36: 11 each, +- 3.3 */
        TB_CHECK(T, i < 36 ? seen[i] > 0 && seen[i] < 28 : seen[i] == 0);
    bench_close(&b);
}

/* Rows of a step are the same however they are cut into batches. */
static void same_rows(tb_test *T, const tb_feed_spec *spec)
{
    bench b = {.T = T};
    int32_t tokens[512], targets[512];
    TB_OKAY(T, bench_try(&b, spec));
    size_t n = 6 * b.time;
    TB_REQUIRE(T, n <= 512);
    tb_feed_batch(b.f, 7, 3, 0, 6, &b.rows);
    memcpy(tokens, b.rows.tokens, n * sizeof *tokens);
    memcpy(targets, b.rows.targets, n * sizeof *targets);
    for (size_t r = 0; r < 6; r++) {
        tb_feed_batch(b.f, 7, 3, r, 1, &b.rows);
        TB_SAME(T, b.rows.tokens, tokens + r * b.time, b.time * sizeof *tokens);
        TB_SAME(T, b.rows.targets, targets + r * b.time,
                b.time * sizeof *targets);
    }
    tb_feed_batch(b.f, 8, 3, 0, 6, &b.rows);
    TB_CHECK(T, memcmp(b.rows.tokens, tokens, n * sizeof *tokens) != 0);
    tb_feed_batch(b.f, 7, 4, 0, 6, &b.rows);
    TB_CHECK(T, memcmp(b.rows.tokens, tokens, n * sizeof *tokens) != 0);
    bench_close(&b);
}

static const char verse[] =
    "the quick brown fox jumps over the lazy dog and the dog sleeps on, while "
    "five boxing wizards jump quickly over the sphinx of black quartz.\n";

TB_TEST(a_row_hangs_on_seed_step_and_row)
{
    char source[400], target[400];
    ladder(source, target);
    const tb_feed_spec specs[] = {
        pairs(source, target, 6, 0.1), text_of(TB_TASK_LM, verse, 16, 0),
        text_of(TB_TASK_MLM, verse, 16, 0),
        text_of(TB_TASK_CLASSIFY, "a\tx\nb\tyy\na\tzzz\nb\tw\n", 9, 0)};
    for (size_t i = 0; i < TB_LEN(specs); i++)
        same_rows(T, &specs[i]);
}

/* What a resumed run compares: the text, not its name or the context. */
TB_TEST(the_hash_is_of_the_text)
{
    const tb_feed_spec same[] = {pairs("a\nb\n", "x\ny\n", 9, 0),
                                 pairs("a\r\nb", "x\ny\n", 8, 0)};
    const tb_feed_spec other[] = {
        pairs("b\na\n", "x\ny\n", 9, 0), pairs("a\nb\n", "y\nx\n", 9, 0),
        pairs("ab\na\n", "x\ny\n", 9, 0), pairs("a\nab\n", "x\ny\n", 9, 0),
        pairs("a\nb\n", "x\ny\n", 9, 0.5)};
    uint64_t hash = 0;
    for (size_t i = 0; i < TB_LEN(same) + TB_LEN(other); i++) {
        bench b = {.T = T};
        TB_OKAY(T, bench_try(&b, i < 2 ? &same[i] : &other[i - 2]));
        if (i == 0)
            hash = tb_feed_hash(b.f);
        TB_CHECK(T, (tb_feed_hash(b.f) == hash) == (i < 2));
        bench_close(&b);
    }
}

/* --- lm: a feed draws what a corpus draws --------------------------------- */

TB_TEST(lm_is_the_corpus)
{
    const tb_feed_spec spec = text_of(TB_TASK_LM, verse, 8, 0.2);
    const tb_corpus_options opt = {8, 0.2};
    int32_t x[5 * 8], y[5 * 8];
    bench b = {.T = T};
    tb_corpus *c;
    TB_OKAY(T, bench_try(&b, &spec));
    TB_OKAY(T, tb_corpus_create(T->ctx, "v", b.t, verse, sizeof verse - 1, &opt,
                                &c));
    TB_CHECK(T, tb_feed_hash(b.f) == tb_corpus_hash(c));
    tb_feed_batch(b.f, 5, 9, 2, 5, &b.rows);
    tb_corpus_batch(c, 5, 9, 2, 5, x, y);
    TB_SAME(T, b.rows.tokens, x, sizeof x);
    TB_SAME(T, b.rows.targets, y, sizeof y);
    TB_CHECK(T, tb_feed_rows(b.f, TB_SPLIT_VAL) ==
                    tb_corpus_windows(c, TB_SPLIT_VAL));
    tb_feed_row(b.f, TB_SPLIT_VAL, 1, &b.rows, 0);
    tb_corpus_window(c, TB_SPLIT_VAL, 1, 1, x, y);
    TB_SAME(T, b.rows.tokens, x, 8 * sizeof *x);
    TB_SAME(T, b.rows.targets, y, 8 * sizeof *y);
    tb_corpus_destroy(c);
    bench_close(&b);
}

/* --- mlm ------------------------------------------------------------------ */

/* 15 % are chosen; of those 80 % masked, 10 % replaced, 10 % kept: each count
 * within 3 sigma of its mean. */
TB_TEST(masking_in_BERTs_proportions)
{
    enum { TOKENS = 200000, PLAIN = 1000, MASK = 1001, TRUE_ID = 17 };
    double chosen = 0, masked = 0, same = 0, replaced[4] = {0};
    for (size_t i = 0; i < TOKENS; i++) {
        const tb_draw d = {1, 1 + i / 5000, i / 100 % 50};
        int32_t seen;
        bool say = tb_mask_token(d, i % 100, TRUE_ID, PLAIN, MASK, &seen);
        chosen += say;
        TB_CHECK(T, say || seen == TRUE_ID);
        TB_CHECK(T, seen == MASK || (seen >= 0 && seen < PLAIN));
        masked += seen == MASK;
        same += say && seen == TRUE_ID;
        if (say && seen != MASK && seen != TRUE_ID)
            replaced[seen * 4 / PLAIN]++;
    }
    double n = TOKENS * 0.15;
    TB_CHECK(T, fabs(chosen - n) < 3 * sqrt(n * 0.85));
    TB_CHECK(T, fabs(masked - 0.8 * chosen) < 3 * sqrt(chosen * 0.16));
    TB_CHECK(T, fabs(same - 0.1001 * chosen) < 3 * sqrt(chosen * 0.09));
    for (size_t q = 0; q < 4; q++) /* a quarter of the ids each */
        TB_CHECK(T,
                 fabs(replaced[q] - 0.025 * chosen) < 3 * sqrt(chosen * 0.025));
}

TB_TEST(mlm_targets_are_what_was_hidden)
{
    const tb_feed_spec spec = text_of(TB_TASK_MLM, verse, 32, 0);
    bench b = {.T = T};
    tb_tokens ids;
    size_t hidden = 0, none = 0;
    TB_OKAY(T, bench_try(&b, &spec));
    TB_OKAY(T, tb_tokenizer_encode(T->ctx, b.t, "v", verse, sizeof verse - 1,
                                   &ids));
    for (size_t step = 1; step <= 1000; step++) {
        tb_rng r = tb_rng_make(1, "data.window");
        size_t start = (size_t)tb_rng_below(
            r, step << 24, tb_corpus_starts(b.f->corpus, TB_SPLIT_TRAIN));
        tb_feed_batch(b.f, 1, step, 0, 1, &b.rows);
        size_t here = 0;
        for (size_t i = 0; i < 32; i++) {
            int32_t y = b.rows.targets[i], x = b.rows.tokens[i];
            TB_CHECK(T, y == -1 ? x == ids.ids[start + i]
                                : y == ids.ids[start + i]);
            TB_CHECK(T, b.rows.keep[i] == 1);
            here += y != -1;
        }
        hidden += here;
        none += here == 0;
    }
    TB_CHECK(T, hidden > 4600 && hidden < 5000); /* 4800 +- 64 */
    TB_CHECK(T, none > 0 && none < 13);          /* 5.5 +- 2.3: C121 happens */
    tb_tokens_clear(T->ctx, &ids);
    bench_close(&b);
}

/* A text that is measured as a whole: each token in one row, the rest of the
 * last one is padding, which is never hidden. */
TB_TEST(mlm_covers_a_text)
{
    for (size_t n = 1; n < 70; n += 4) {
        tb_feed_spec spec = text_of(TB_TASK_MLM, verse, 16, 0);
        bench b = {.T = T};
        size_t kept = 0;
        spec.text.n = n;
        spec.whole = true;
        TB_OKAY(T, bench_try(&b, &spec));
        TB_CHECK(T, b.time == (n < 16 ? n : 16));
        for (size_t i = 0; i < tb_feed_rows(b.f, TB_SPLIT_TRAIN); i++) {
            tb_feed_row(b.f, TB_SPLIT_TRAIN, i, &b.rows, 0);
            for (size_t k = 0; k < b.time; k++) {
                bool pad = b.rows.tokens[k] ==
                           tb_tokenizer_special(b.t, TB_SPECIAL_PAD);
                TB_CHECK(T, pad == !b.rows.keep[k]);
                TB_CHECK(T, !pad || b.rows.targets[k] == -1);
                kept += b.rows.keep[k];
            }
        }
        TB_CHECK(T, kept == n);
        bench_close(&b);
    }
    tb_feed_spec empty = text_of(TB_TASK_MLM, "", 16, 0);
    tb_feed *f;
    tb_tokenizer *t;
    empty.whole = true;
    TB_OKAY(T, tb_tokenizer_char(T->ctx, "a", 1, &t));
    TB_OKAY(T, tb_tokenizer_special_add(t, 15));
    TB_FAILS(T, tb_feed_create(T->ctx, &empty, t, &f), TB_ERR_INPUT,
             "a.txt: the text is empty");
    tb_tokenizer_destroy(t);
}

/* --- classify ------------------------------------------------------------- */

TB_TEST(labels_are_sorted)
{
    const tb_feed_spec spec = text_of(
        TB_TASK_CLASSIFY, "yes\tab\n\nno\t\r\nyes\tc\td\nNo\ta\n", 9, 0);
    bench b = {.T = T};
    size_t n;
    TB_OKAY(T, bench_try(&b, &spec));
    const char *const *labels = tb_feed_labels(b.f, &n);
    TB_REQUIRE(T, n == 3);
    TB_STR(T, labels[0], "No");
    TB_STR(T, labels[1], "no");
    TB_STR(T, labels[2], "yes");
    TB_CHECK(T, tb_feed_skipped(b.f) == 1 && b.time == 4);
    TB_CHECK(T, tb_tokenizer_plain(b.t) == 5); /* a b c d and the later TAB */
    static const int classes[] = {2, 1, 2, 0};
    static const char *const rows[] = {"^ab.|1110", "^...|1000", "^c\td|1111",
                                       "^a..|1100"};
    for (size_t i = 0; i < 4; i++) {
        tb_feed_row(b.f, TB_SPLIT_TRAIN, i, &b.rows, 0);
        TB_STR(T, shown_tokens(&b, 0), rows[i]);
        TB_CHECK(T, b.rows.targets[0] == classes[i]);
        for (size_t k = 1; k < 4; k++)
            TB_CHECK(T, b.rows.targets[k] == -1);
    }
    bench_close(&b);
}

TB_TEST(labels_that_cannot_be_meant)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"a\tx\nb y\n", "a.txt: line 2: got no TAB, wanted LABEL TAB text"},
        {"a\tx\n\ty\n", "a.txt: line 2: got no label"},
        {"\xff\tx\nb\ty\n", "a.txt: line 1: the label is not a text in UTF-8"},
        {"a\tx\na\ty\n", "a.txt: got 1 label (a), wanted at least 2"},
        {"\n\n", "character vocabulary: got an empty text"},
        {"a\t0123456789\nb\tc\n",
         "a.txt: line 1: got 10 tokens, wanted at most 8 (context 9 and the "
         "start token); 1 of 2 lines are too long, a context of 11"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++)
        refuse(T, text_of(TB_TASK_CLASSIFY, rows[i].text, 9, 0), rows[i].error);
}

/* A file of unique labels is some other file. */
TB_TEST(too_many_labels)
{
    static char text[5000 * 8];
    char *p = text;
    for (int i = 0; i < 5000; i++)
        p += snprintf(p, 8, "%04d\tx\n", (i * 7) % 5000);
    refuse(T, text_of(TB_TASK_CLASSIFY, text, 9, 0),
           "a.txt: line 4097: got more than 4096 different labels");
}

TB_TEST(labels_of_a_model)
{
    static const char *const names[] = {"a", "b", "cc"};
    tb_feed_spec spec = text_of(TB_TASK_CLASSIFY, "cc\tx\n", 9, 0);
    bench b = {.T = T};
    spec.labels = names;
    spec.nlabels = 3;
    TB_OKAY(T, bench_try(&b, &spec)); /* one label is enough here */
    tb_feed_row(b.f, TB_SPLIT_TRAIN, 0, &b.rows, 0);
    TB_CHECK(T, b.rows.targets[0] == 2);
    bench_close(&b);
    spec.text = named("a.txt", "a\tx\nc\tx\n");
    refuse(T, spec, "a.txt: line 2: label \"c\" is none of the model's 3");
}

/* --- all of them ---------------------------------------------------------- */

TB_TEST(impossible_settings)
{
    tb_feed_spec spec = pairs("a\n", "x\n", 0, 0);
    bench b = {.T = T};
    TB_FAILS(T, bench_try(&b, &spec), TB_ERR_ARG, "context: got 0");
    bench_close(&b);
    spec = pairs("a\n", "x\n", 4, 1);
    b = (bench){.T = T};
    TB_FAILS(T, bench_try(&b, &spec), TB_ERR_ARG, "fraction: got 1");
    bench_close(&b);
    spec = text_of(TB_TASK_LM, verse, 16, 0);
    spec.whole = true;
    b = (bench){.T = T};
    TB_FAILS(T, bench_try(&b, &spec), TB_ERR_ARG, "leave out the end");
    bench_close(&b);
    tb_task task;
    TB_FAILS(T, tb_task_named(T->ctx, "mllm", &task), TB_ERR_ARG,
             "task: got mllm, wanted lm, mlm, classify or translate; did you "
             "mean mlm?");
    TB_OKAY(T, tb_task_named(T->ctx, "classify", &task));
    TB_STR(T, tb_task_name(task), "classify");
}

TB_TEST(each_allocation_may_fail)
{
    const tb_feed_spec specs[] = {
        pairs("a\nb\n", "x\ny\n", 9, 0), text_of(TB_TASK_MLM, verse, 16, 0),
        text_of(TB_TASK_CLASSIFY, "a\tx\nb\ty\n", 9, 0)};
    for (size_t i = 0; i < TB_LEN(specs); i++) {
        size_t blocks = tb_ctx_blocks(T->ctx);
        tb_tokenizer *t = NULL;
        tb_feed *f = NULL;
        TMP_EACH_ALLOC(T, tb_feed_tokenizer(T->ctx, &specs[i], "char", &t),
                       (void)0);
        TMP_EACH_ALLOC(T, tb_feed_create(T->ctx, &specs[i], t, &f),
                       tb_feed_destroy(f));
        tb_tokenizer_destroy(t);
        TB_CHECK(T, tb_ctx_blocks(T->ctx) == blocks);
    }
}

/* --- ../shared ------------------------------------------------------------ */

TB_TEST(real_pairs)
{
    const char *en = tb_test_shared(T, "data/parallel/multi30k/val.en.gz");
    if (en == NULL)
        TB_SKIP(T, "no ../shared/data/parallel");
    char name[1024];
    snprintf(name, sizeof name, "%s", en);
    const char *de = tb_test_shared(T, "data/parallel/multi30k/val.de.gz");
    tb_text a, b;
    TB_OKAY(T, tb_text_load(T->ctx, name, NULL, &a));
    TB_OKAY(T, tb_text_load(T->ctx, de, NULL, &b));
    const tb_feed_spec spec = {.task = TB_TASK_TRANSLATE,
                               .context = 256,
                               .val_fraction = 0.1,
                               .text = {"en", a.bytes.data, a.bytes.len},
                               .target = {"de", b.bytes.data, b.bytes.len}};
    bench bed = {.T = T};
    TB_OKAY(T, bench_try(&bed, &spec));
    TB_CHECK(T, tb_feed_lines(bed.f, TB_SPLIT_TRAIN) +
                        tb_feed_lines(bed.f, TB_SPLIT_VAL) ==
                    1014);
    TB_CHECK(T, tb_feed_lines(bed.f, TB_SPLIT_VAL) == 101);
    bench_close(&bed);
    tb_text_clear(T->ctx, &a);
    tb_text_clear(T->ctx, &b);
}
