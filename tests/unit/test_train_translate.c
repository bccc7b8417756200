/* SPDX-License-Identifier: MIT */
/* Translation: what stands beside a line does not change it, a beam of one is
 * greedy, and what can go wrong on the way. */
#include "model/model.h"
#include "test_train_help.h"
#include "train/lm.h"

static const char *const words[] = {"ab", "c", "", "abcabc", "cab", "bbbbb"};

/* A folder of a model that swaps a and b, somewhat. */
static const char *swapping(tb_test *T)
{
    static char dir[512];
    help_log log = {0};
    tb_train_result r;
    if (dir[0])
        return dir;
    snprintf(dir, sizeof dir, "%s", tmp_path("swaps"));
    tb_train_spec s = help_spec(NULL, dir);
    s.settings.stack = TB_STACKS_BOTH;
    s.source = tmp_text("s", "ab\nba\nc\nabcabc\ncab\nbbbbb\naaa\nbcb\nacca\n");
    s.target = tmp_text("t", "ba\nab\nc\nbacbac\ncba\naaaaa\nbbb\naca\nbccb\n");
    s.val_fraction = 0;
    s.steps = 60;
    s.batch = 8;
    TB_CHECK(T, help_train(T, "pre-ln", &s, &log, &r, NULL, 0) == TB_OK);
    return dir;
}

/** All translations, one line each; stops after some. */
typedef struct said {
    tb_lm *m;
    size_t lines, stop_at;
    char text[1024];
    double log_prob;
} said;

static bool collect(void *user, const tb_translation *t)
{
    said *s = user;
    size_t at = strlen(s->text);
    for (size_t i = 0; i < t->count; i++) {
        size_t n;
        const char *token =
            tb_tokenizer_token(tb_lm_tokenizer(s->m), t->ids[i], &n);
        memcpy(s->text + at, token, n);
        at += n;
    }
    s->text[at] = '\n';
    s->log_prob += t->log_prob;
    return t->line == s->lines && ++s->lines != s->stop_at;
}

static tb_status translate(tb_lm *m, size_t first, size_t n, size_t beam,
                           said *out)
{
    tb_span lines[TB_LEN(words)];
    const tb_search s = {beam, 0.6};
    for (size_t i = 0; i < TB_LEN(words); i++)
        lines[i] = (tb_span){words[i], strlen(words[i])};
    out->m = m;
    return tb_lm_translate(m, "words", lines + first, n, &s, collect, out);
}

TB_TEST(a_line_is_translated_as_it_is_alone)
{
    tb_lm *m;
    TB_OKAY(T, tb_lm_open(T->ctx, swapping(T), &m));
    for (size_t beam = 0; beam < 4; beam += 3) {
        said all = {0}, alone = {0};
        TB_OKAY(T, translate(m, 0, TB_LEN(words), beam, &all));
        TB_CHECK(T, all.lines == TB_LEN(words));
        for (size_t i = 0; i < TB_LEN(words); i++) {
            alone.lines = 0;
            TB_OKAY(T, translate(m, i, 1, beam, &alone));
        }
        TB_STR(T, alone.text, all.text);
        TB_NEAR(T, alone.log_prob, all.log_prob, 1e-4);
    }
    tb_lm_close(m);
}

TB_TEST(a_beam_of_one_is_greedy)
{
    tb_lm *m;
    said greedy = {0}, one = {0}, wide = {0};
    TB_OKAY(T, tb_lm_open(T->ctx, swapping(T), &m));
    TB_OKAY(T, translate(m, 0, TB_LEN(words), 0, &greedy));
    TB_OKAY(T, translate(m, 0, TB_LEN(words), 1, &one));
    TB_OKAY(T, translate(m, 0, TB_LEN(words), 5, &wide));
    TB_STR(T, one.text, greedy.text);
    TB_CHECK(T, greedy.lines == wide.lines && wide.text[0]);
    tb_lm_close(m);
}

/* What is kept from token to token does not show: not in one bit where products
 * are exact. */
TB_TEST(kept_keys_do_not_show)
{
    tb_lm *m;
    TB_OKAY(T, tb_lm_open(T->ctx, swapping(T), &m));
    tb_ctx_exact(T->ctx, true);
    for (size_t beam = 1; beam < 5; beam += 3) {
        said kept = {0}, anew = {0};
        m->windows = false;
        TB_OKAY(T, translate(m, 0, TB_LEN(words), beam, &kept));
        m->windows = true;
        TB_OKAY(T, translate(m, 0, TB_LEN(words), beam, &anew));
        TB_STR(T, kept.text, anew.text);
        TB_CHECK(T, kept.log_prob == anew.log_prob);
    }
    tb_ctx_exact(T->ctx, false);
    tb_lm_close(m);
}

TB_TEST(the_callback_stops)
{
    tb_lm *m;
    said two = {.stop_at = 2};
    TB_OKAY(T, tb_lm_open(T->ctx, swapping(T), &m));
    TB_OKAY(T, translate(m, 0, TB_LEN(words), 0, &two));
    TB_CHECK(T, two.lines == 2);
    tb_lm_close(m);
}

TB_TEST(refusals)
{
    tb_lm *m;
    said out = {0};
    const tb_span lines[] = {{"ab", 2}, {"aqb", 3}, {"abcabcabcabc", 12}};
    const tb_search greedy = {1, 0.6}, wide = {65, 0.6}, bad = {2, -1};
    TB_OKAY(T, tb_lm_open(T->ctx, swapping(T), &m));
    out.m = m;
    TB_FAILS(T, tb_lm_translate(m, "w", lines, 2, &greedy, collect, &out),
             TB_ERR_INPUT, "w: line 2: character \"q\" (U+0071) at offset 1");
    TB_FAILS(T, tb_lm_translate(m, "w", lines + 2, 1, &greedy, collect, &out),
             TB_ERR_INPUT, "w: line 1: got 12 tokens, wanted at most 11");
    TB_FAILS(T, tb_lm_translate(m, "w", lines, 1, &wide, collect, &out),
             TB_ERR_ARG, "got a beam of 65");
    TB_FAILS(T, tb_lm_translate(m, "w", lines, 1, &bad, collect, &out),
             TB_ERR_ARG, "length penalty -1");
    const tb_view *head = tb_model_view(m->model, "head.weight");
    ((float *)m->model->params)[head->offset] = __builtin_inff();
    for (size_t beam = 1; beam < 4; beam += 2)
        TB_FAILS(T, translate(m, 0, 1, beam, &out), TB_ERR_NONFINITE,
                 "translate: the logit of token");
    tb_lm_close(m);
}

TB_TEST(interrupted)
{
    tb_ctx *ctx;
    tb_lm *m;
    said out = {0};
    const char *dir = swapping(T);
    TB_OKAY(T, tb_ctx_create(&ctx));
    TB_OKAY(T, tb_lm_open(ctx, dir, &m));
    tb_ctx_interrupt(ctx);
    TB_CHECK(T, translate(m, 0, 2, 0, &out) == TB_INTERRUPTED);
    TB_CHECK(T, translate(m, 0, 2, 4, &out) == TB_INTERRUPTED);
    tb_lm_close(m);
    tb_ctx_destroy(ctx);
}

TB_TEST(each_allocation_may_fail)
{
    tb_lm *m;
    TB_OKAY(T, tb_lm_open(T->ctx, swapping(T), &m));
    for (size_t beam = 1; beam < 4; beam += 2) {
        said out = {0};
        TB_OKAY(T, translate(m, 0, 1, beam, &out)); /* binds */
        size_t blocks = tb_ctx_blocks(T->ctx);
        TMP_EACH_ALLOC(T, (out = (said){0}, translate(m, 0, 1, beam, &out)),
                       (void)0);
        TB_CHECK(T, tb_ctx_blocks(T->ctx) == blocks);
    }
    tb_lm_close(m);
}
