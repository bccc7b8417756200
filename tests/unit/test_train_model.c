/* SPDX-License-Identifier: MIT */
/* A tiny model learns a repeating text, is opened again, writes the text and
 * scores it. */
#include "test_train_help.h"
#include "train/lm.h"

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
    s.settings.width = 32;
    s.settings.context = 24;
    s.batch = 6;
    s.steps = 200;
    s.val_every = 100;
    s.lr = 1e-2;
    return s;
}

/* Trained once, used by the tests below. */
static char learned[1024];
static tb_train_result learned_result;

static tb_lm *learn(tb_test *T)
{
    tb_lm *m = NULL;
    if (!learned[0]) {
        snprintf(learned, sizeof learned, "%s", tmp_path("learned"));
        tb_train_spec spec = overfit_spec(learned);
        help_log log = {0};
        TB_CHECK(T, help_train(T, "pre-ln", &spec, &log, &learned_result, NULL,
                               0) == TB_OK);
    }
    TB_CHECK(T, tb_lm_open(T->ctx, learned, &m) == TB_OK);
    return m;
}

static void write_text(tb_test *T, tb_lm *m, const char *prompt, size_t n,
                       const tb_sampling *s, text *out)
{
    tb_tokens ids;
    *out = (text){.m = m};
    TB_OKAY(T, tb_tokenizer_encode(T->ctx, tb_lm_tokenizer(m), "prompt", prompt,
                                   strlen(prompt), &ids));
    TB_OKAY(T, tb_lm_generate(m, ids.ids, ids.count, n, s, collect, out));
    tb_tokens_clear(T->ctx, &ids);
}

TB_TEST(overfits_and_writes_it)
{
    tb_sampling greedy = TB_SAMPLING_DEFAULT;
    text out;
    tb_lm *m = learn(T);
    TB_REQUIRE(T, m != NULL);
    const tb_train_result *r = &learned_result;
    TB_CHECK(T, r->end == TB_TRAIN_DONE && r->steps == 200 && !r->plateau);
    TB_CHECK(T, r->loss < 0.1 && r->val_loss < 0.3);
    TB_CHECK(T, r->best_val_loss <= r->val_loss && r->best_step > 0);
    TB_CHECK(T, tb_lm_step(m) == 200);
    TB_CHECK(T, tb_lm_parameters(m) == r->parameters);
    TB_CHECK(T, tb_lm_settings(m)->width == 32);
    greedy.greedy = true;
    write_text(T, m, "the quick brown", 120, &greedy, &out);
    TB_CHECK(T, out.n == 120);
    TB_CHECK(T, memcmp(out.bytes, rhyme + 15, sizeof rhyme - 1 - 15) == 0);
    TB_CHECK(T, memcmp(out.bytes + sizeof rhyme - 1 - 15, rhyme, 60) == 0);
    tb_lm_close(m);
}

TB_TEST(sampling)
{
    tb_sampling s = TB_SAMPLING_DEFAULT;
    text a, b;
    tb_lm *m = learn(T);
    TB_REQUIRE(T, m != NULL);
    s.temperature = 3; /* far from greedy: choices show */
    write_text(T, m, "the", 40, &s, &a);
    write_text(T, m, "the", 40, &s, &b);
    TB_CHECK(T, a.n == 40 && memcmp(a.bytes, b.bytes, 40) == 0);
    s.seed = 2;
    write_text(T, m, "the", 40, &s, &b);
    TB_CHECK(T, memcmp(a.bytes, b.bytes, 40) != 0);
    s.seed = 1; /* the choice at a place depends on the text before it only */
    char prompt[32];
    snprintf(prompt, sizeof prompt, "the%.10s", a.bytes);
    write_text(T, m, prompt, 30, &s, &b);
    TB_CHECK(T, memcmp(a.bytes + 10, b.bytes, 30) == 0);
    s.temperature = 1e-3;
    tb_sampling greedy = s, one = s, nucleus = s;
    greedy.temperature = 0;
    one.temperature = nucleus.temperature = 5;
    one.top_k = 1;
    nucleus.top_p = 1e-9;
    write_text(T, m, "", 40, &greedy, &a); /* no prompt: from token 0 */
    const tb_sampling *same[] = {&s, &one, &nucleus};
    for (size_t i = 0; i < TB_LEN(same); i++) {
        write_text(T, m, "", 40, same[i], &b);
        TB_CHECK(T, b.n == 40 && memcmp(a.bytes, b.bytes, 40) == 0);
    }
    tb_lm_close(m);
}

/* C113, and numbers that cannot be */
/* What is kept from token to token does not show, before and after the context
 * is full; products are exact, so that every choice is the same. */
TB_TEST(kept_keys_do_not_show)
{
    enum { MANY = 60 }; /* the context is 24 */
    static const char *const prompts[] = {
        "", "the lazy", "the quick brown fox jumps over the lazy dog"};
    tb_sampling s = TB_SAMPLING_DEFAULT;
    tb_lm *m = learn(T);
    TB_REQUIRE(T, m != NULL);
    tb_ctx_exact(T->ctx, true);
    for (size_t i = 0; i < TB_LEN(prompts); i++) {
        text kept, anew;
        m->windows = false;
        write_text(T, m, prompts[i], MANY, &s, &kept);
        m->windows = true;
        write_text(T, m, prompts[i], MANY, &s, &anew);
        TB_CHECK(T, memcmp(kept.bytes, anew.bytes, MANY) == 0);
    }
    tb_ctx_exact(T->ctx, false);
    tb_lm_close(m);
}

TB_TEST(generate_refuses)
{
    tb_sampling s = TB_SAMPLING_DEFAULT;
    tb_tokens ids;
    text out;
    tb_lm *m = learn(T);
    TB_REQUIRE(T, m != NULL);
    out.m = m;
    TB_FAILS(T,
             tb_tokenizer_encode(T->ctx, tb_lm_tokenizer(m), "prompt", "the C",
                                 5, &ids),
             TB_ERR_INPUT,
             "prompt: character \"C\" (U+0043) at offset 4 is not in the "
             "vocabulary");
    const int32_t beyond[] = {1, 99};
    TB_FAILS(T, tb_lm_generate(m, beyond, 2, 1, &s, collect, &out),
             TB_ERR_INPUT, "token 1: got id 99");
    s.temperature = -1;
    TB_FAILS(T, tb_lm_generate(m, NULL, 0, 1, &s, collect, &out), TB_ERR_ARG,
             "temperature: got -1");
    s = (tb_sampling){.temperature = 1};
    TB_FAILS(T, tb_lm_generate(m, NULL, 0, 1, &s, collect, &out), TB_ERR_ARG,
             "top-p: got 0");
    tb_lm_close(m);
}

/* The validation part, all of it in windows, through the other door. */
TB_TEST(score_is_the_validation_loss)
{
    tb_score score;
    tb_tokens ids;
    tb_lm *m = learn(T);
    TB_REQUIRE(T, m != NULL);
    size_t n = 40 * (sizeof rhyme - 1), val = n / 10;
    char *text_ = malloc(n);
    for (size_t i = 0; i < n; i++)
        text_[i] = rhyme[i % (sizeof rhyme - 1)];
    size_t windows = (val - 1) / 24; /* no more than val_windows tiles */
    TB_OKAY(T, tb_tokenizer_encode(T->ctx, tb_lm_tokenizer(m), "text",
                                   text_ + n - val, val, &ids));
    double sum = 0;
    TB_CHECK(T, windows > 4);
    for (size_t i = 0; i < 4; i++) { /* as tb_validate spreads 4 windows */
        TB_OKAY(T, tb_lm_score(m, ids.ids + i * windows / 4 * 24, 25, NULL,
                               &score));
        TB_CHECK(T, score.tokens == 24);
        sum += score.loss;
    }
    TB_NEAR(T, sum / 4, learned_result.val_loss, 1e-6);
    tb_tokens_clear(T->ctx, &ids);
    free(text_);
    tb_lm_close(m);
}

/* Every token but the first once, whatever the remainder; logits agree. */
TB_TEST(score_of_any_length)
{
    tb_tokens ids;
    tb_lm *m = learn(T);
    TB_REQUIRE(T, m != NULL);
    TB_OKAY(T, tb_tokenizer_encode(T->ctx, tb_lm_tokenizer(m), "text", rhyme,
                                   sizeof rhyme - 1, &ids));
    size_t V = tb_tokenizer_size(tb_lm_tokenizer(m));
    for (size_t n = 2; n <= ids.count; n += 13) {
        const char *path = tmp_path("logits.npy");
        tb_array a;
        tb_score s;
        double sum = 0;
        TB_OKAY(T, tb_lm_score(m, ids.ids, n, path, &s));
        TB_CHECK(T, s.tokens == n - 1);
        TB_NEAR(T, s.perplexity, tb_exp(s.loss), 1e-15);
        TB_OKAY(T, tb_npy_read(T->ctx, path, &a));
        TB_CHECK(T, a.rank == 2 && a.dims[0] == n - 1 && a.dims[1] == V);
        for (size_t i = 0; i + 1 < n; i++) {
            double z = 0;
            for (size_t v = 0; v < V; v++)
                z += tb_exp(a.data[i * V + v]);
            sum += tb_log(z) - a.data[i * V + (size_t)ids.ids[i + 1]];
        }
        TB_NEAR(T, s.loss, sum / (double)(n - 1), 1e-5);
        tb_array_clear(T->ctx, &a);
    }
    tb_score s;
    TB_FAILS(T, tb_lm_score(m, ids.ids, 1, NULL, &s), TB_ERR_INPUT,
             "need at least 2 tokens");
    tb_tokens_clear(T->ctx, &ids);
    tb_lm_close(m);
}

TB_TEST(flow_and_then_generate)
{
    tb_sampling greedy = TB_SAMPLING_DEFAULT;
    tb_flow_spec spec = {.seed = 1};
    tb_flow *f;
    text a, b;
    tb_lm *m = learn(T);
    TB_REQUIRE(T, m != NULL);
    greedy.greedy = true;
    write_text(T, m, "the lazy", 20, &greedy, &a);
    TB_OKAY(T, tb_lm_flow(m, &spec, &f));
    TB_CHECK(T, f->depth == 2 && f->nrows == 5 && f->tokens == 24);
    tb_flow_free(T->ctx, f);
    write_text(T, m, "the lazy", 20, &greedy, &b);
    TB_CHECK(T, memcmp(a.bytes, b.bytes, 20) == 0);
    tb_lm_close(m);
}

TB_TEST(origins)
{
    tb_origin norm, eps;
    tb_lm *m;
    help_log log = {0};
    tb_train_result r;
    const char *dir = tmp_path("origins");
    tb_train_spec spec = help_spec(help_text("rhyme.txt", 40), dir);
    spec.settings.eps = 1e-6;
    spec.steps = 1;
    TB_CHECK(T, help_train(T,
                           "model:\n norm = rmsnorm\nblock:\n x = x + "
                           "F(norm(x))\nfinal:\n x = norm(x)\n",
                           &spec, &log, &r, NULL, 0) == TB_OK);
    TB_CHECK(T, strstr(log.header, "\"norm\":\"rmsnorm\",\"norm_from\":"
                                   "\"model\",\"eps\":1e-6,\"eps_from\":"
                                   "\"option\""));
    TB_OKAY(T, tb_lm_open(T->ctx, dir, &m));
    tb_lm_origin(m, &norm, &eps);
    TB_CHECK(T, norm == TB_FROM_MODEL_SECTION && eps == TB_FROM_OPTION);
    TB_CHECK(T, tb_lm_settings(m)->eps == 1e-6);
    TB_STR(T, tb_lm_settings(m)->norm, "rmsnorm");
    tb_lm_close(m);
}
