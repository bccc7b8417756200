/* SPDX-License-Identifier: MIT */
/* A tiny model learns a repeating text, is opened again, writes the text and
 * scores it. */
#include "test_train_help.h"

typedef struct text {
    tb_lm *m;
    char bytes[512];
    size_t n;
} text;

static bool collect(void *user, int32_t id)
{
    text *t = user;
    size_t n;
    const char *s = tb_tokenizer_token(tb_lm_tokenizer(t->m), id, &n);
    if (t->n + n > sizeof t->bytes)
        return false;
    memcpy(t->bytes + t->n, s, n);
    t->n += n;
    return true;
}

static tb_train_spec overfit_spec(const char *dir)
{
    tb_train_spec s = help_spec(help_text("rhyme.txt", 40), dir);
    s.settings.depth = 2;
    s.settings.width = 32;
    s.settings.context = 32;
    s.batch = 8;
    s.steps = 300;
    s.val_every = 100;
    s.lr = 5e-3;
    return s;
}

/* C127 and more: the first loss is near that of guessing, the last near 0. */
TB_TEST(overfits_and_writes_it)
{
    const char *dir = tmp_path("overfit");
    tb_train_spec spec = overfit_spec(dir);
    help_log log = {0};
    tb_train_result r;
    tb_lm *m;
    TB_OKAY(T, help_train(T, "pre-ln", &spec, &log, &r, NULL, 0));
    TB_CHECK(T, r.end == TB_TRAIN_DONE && r.steps == 300 && !r.plateau);
    TB_CHECK(T, r.loss < 0.1);
    TB_CHECK(T, r.val_loss < 0.3);
    TB_OKAY(T, tb_lm_open(T->ctx, dir, &m));
    TB_CHECK(T, tb_lm_step(m) == 300);
    tb_tokens prompt;
    TB_OKAY(T, tb_tokenizer_encode(T->ctx, tb_lm_tokenizer(m), "prompt",
                                   "the quick brown", 15, &prompt));
    tb_sampling greedy = TB_SAMPLING_DEFAULT;
    greedy.greedy = true;
    text out = {.m = m};
    TB_OKAY(T, tb_lm_generate(m, prompt.ids, prompt.count, 120, &greedy,
                              collect, &out));
    TB_CHECK(T, out.n == 120);
    TB_CHECK(T, memcmp(out.bytes, rhyme + 15, sizeof rhyme - 1 - 15) == 0);
    TB_CHECK(T, memcmp(out.bytes + sizeof rhyme - 1 - 15, rhyme, 60) == 0);
    tb_tokens_clear(T->ctx, &prompt);
    tb_lm_close(m);
}
