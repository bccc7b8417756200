/* SPDX-License-Identifier: MIT */
/* Names, counts and layout of a model's parameters, binding, and one step's
 * errors and memory. */
#include "model_help.h"
#include "model/parts.h"

static tb_settings tiny(void)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = 3;
    s.width = 8;
    s.heads = 2;
    s.context = 6;
    s.vocab = 13;
    return s;
}

static tb_model *make(tb_test *T, tb_block *b, const tb_settings *s)
{
    tb_model *m = NULL;
    if (tb_model_create(T->ctx, b, s, TB_F32, &m) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    return m;
}

TB_TEST(names_and_shapes)
{
    static const struct {
        const char *name;
        tb_role role;
        size_t height, width;
    } want[] = {
        {"embed.token.weight", TB_ROLE_EMBEDDING, 13, 8},
        {"embed.position.weight", TB_ROLE_EMBEDDING, 6, 8},
        {"layers.0.attn.norm.gain", TB_ROLE_GAIN, 1, 8},
        {"layers.0.attn.norm.bias", TB_ROLE_BIAS, 1, 8},
        {"layers.2.attn.q.weight", TB_ROLE_MATRIX, 8, 8},
        {"layers.1.ffn.up.weight", TB_ROLE_MATRIX, 32, 8},
        {"layers.1.ffn.down.weight", TB_ROLE_MATRIX, 8, 32},
        {"layers.1.ffn.up.bias", TB_ROLE_BIAS, 1, 32},
        {"final.norm.gain", TB_ROLE_GAIN, 1, 8},
        {"head.weight", TB_ROLE_MATRIX, 13, 8},
    };
    tb_block *b;
    tb_settings s = tiny();
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    tb_model *m = make(T, b, &s);
    TB_REQUIRE(T, m != NULL);
    for (size_t i = 0; i < TB_LEN(want); i++) {
        const tb_view *v = tb_model_view(m, want[i].name);
        if (!v || v->role != want[i].role ||
            v->shape.height != want[i].height ||
            v->shape.width != want[i].width)
            tb_test_fail(T, __FILE__, __LINE__, "%s", want[i].name);
    }
    TB_CHECK(T, !tb_model_view(m, "layers.3.attn.q.weight"));
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(layout)
{
    tb_block *b;
    tb_settings s = tiny();
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    tb_model *m = make(T, b, &s);
    TB_REQUIRE(T, m != NULL);
    size_t end = 0, sum = 0;
    for (size_t i = 0; i < m->nviews; i++) {
        const tb_view *v = &m->views[i];
        TB_CHECK(T, v->offset % 16 == 0 && v->offset >= end);
        TB_CHECK(T, v->offset < end + 16);
        TB_CHECK(T, tb_model_view(m, v->name) == v);
        end = v->offset + v->count;
        sum += v->count;
    }
    TB_CHECK(T, sum == m->nparameters && end <= m->nelements);
    TB_CHECK(T, tb_model_graph(m, 1) == tb_model_graph(m, 3));
    TB_STR(T, tb_model_scope(m, 3), "layers.2");
    TB_STR(T, tb_model_part_view(m, 3, 0)->name, "layers.2.attn.norm.gain");
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

/* C059: GPT-2 small, counted without holding it. */
TB_TEST(gpt2_small_is_counted)
{
    tb_block *b;
    TB_OKAY(T, tb_block_load(T->ctx, "gpt-2", &b));
    for (int tied = 0; tied < 2; tied++) {
        tb_settings s = TB_SETTINGS_UNSET;
        s.depth = 12;
        s.width = 768;
        s.heads = 12;
        s.context = 1024;
        s.vocab = 50257;
        s.tied = tied;
        tb_model *m = make(T, b, &s);
        TB_REQUIRE(T, m != NULL);
        TB_CHECK(T, m->nparameters == (tied ? 124439808u : 163037184u));
        TB_CHECK(T, m->params == NULL);
        tb_model_destroy(m);
    }
    tb_block_destroy(T->ctx, b);
}

/* C042: norm parameters of six layers at d = 512. */
TB_TEST(norm_parameters)
{
    static const struct {
        const char *block;
        size_t want;
    } rows[] = {{"post-ln", 12288}, {"pre-ln", 13312}};
    for (size_t r = 0; r < TB_LEN(rows); r++) {
        tb_block *b;
        size_t sum = 0;
        tb_settings s = tiny();
        s.depth = 6;
        s.width = 512;
        TB_OKAY(T, tb_block_load(T->ctx, rows[r].block, &b));
        tb_model *m = make(T, b, &s);
        TB_REQUIRE(T, m != NULL);
        for (size_t i = 0; i < m->nviews; i++)
            if (strstr(m->views[i].name, "norm"))
                sum += m->views[i].count;
        TB_CHECK(T, sum == rows[r].want);
        tb_model_destroy(m);
        tb_block_destroy(T->ctx, b);
    }
}

/* --- steps --------------------------------------------------------------- */

static const int32_t ids[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

TB_TEST(a_step_allocates_nothing)
{
    tb_block *b;
    double loss;
    tb_settings s = tiny();
    TB_OKAY(T, tb_block_load(T->ctx, "post-ln", &b));
    tb_model *m = make(T, b, &s);
    TB_REQUIRE(T, m != NULL);
    TB_OKAY(T, tb_model_init(m, 1));
    TB_OKAY(T, tb_model_bind(m, 2, 6, TB_PASS_BWD));
    void *g = tb_alloc(T->ctx, m->nelements, sizeof(float));
    TB_REQUIRE(T, g != NULL);
    tb_batch batch = {.tokens = ids, .targets = ids};
    TB_OKAY(T, tb_model_forward(m, &batch, &loss)); /* threads start once */
    TB_OKAY(T, tb_model_backward(m, &batch, g));
    tb_ctx_fail_alloc_at(T->ctx, 1);
    tb_status f = tb_model_forward(m, &batch, &loss);
    tb_status r = tb_model_backward(m, &batch, g);
    tb_ctx_fail_alloc_at(T->ctx, 0);
    TB_CHECK(T, f == TB_OK && r == TB_OK);
    tb_free(T->ctx, g);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

/* Keeping layers or not changes memory, not one bit of the logits. */
TB_TEST(kept_or_not)
{
    tb_block *b;
    tb_settings s = tiny();
    float first[2 * 6 * 13];
    size_t bytes[2], saved[2];
    s.depth = 7;
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    tb_model *m = make(T, b, &s);
    TB_REQUIRE(T, m != NULL);
    TB_OKAY(T, tb_model_init(m, 1));
    for (int keep = 0; keep < 2; keep++) {
        unsigned passes = keep ? TB_PASS_BWD | TB_PASS_KEEP : 0;
        double loss;
        tb_batch batch = {.tokens = ids, .targets = ids};
        TB_OKAY(
            T, tb_model_memory(m, 2, 6, 6, passes, &bytes[keep], &saved[keep]));
        TB_OKAY(T, tb_model_bind(m, 2, 6, passes));
        TB_CHECK(T, bytes[keep] == m->bound->bytes);
        TB_OKAY(T, tb_model_forward(m, &batch, &loss));
        if (keep)
            TB_SAME(T, tb_model_logits(m), first, sizeof first);
        memcpy(first, tb_model_logits(m), sizeof first);
        TB_CHECK(T, tb_model_flops(m) > 0);
    }
    TB_CHECK(T, bytes[0] < bytes[1]);
    TB_CHECK(T, saved[0] == 0 && 0 < saved[1] && saved[1] < bytes[1]);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

/* Buffers by lifetime: without passes two for the stream, with backward one
 * for each value and two for gradients; logits and loss have their own. */
TB_TEST(buffers_take_turns)
{
    tb_block *b;
    tb_settings s = tiny();
    s.depth = 7;
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    tb_model *m = make(T, b, &s);
    TB_REQUIRE(T, m != NULL);
    TB_CHECK(T, m->nvalues == s.depth + 3);
    TB_OKAY(T, tb_model_bind(m, 2, 6, 0));
    TB_CHECK(T, m->bound->pool.nlots == 2 + 2);
    TB_OKAY(T, tb_model_bind(m, 2, 6, TB_PASS_BWD));
    TB_CHECK(T, m->bound->pool.nlots == m->nvalues + 2);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

/* The parts of one stack in order, and what each reads. */
TB_TEST(parts_in_order)
{
    tb_block *b;
    tb_settings s = tiny();
    TB_OKAY(T, tb_block_load(T->ctx, "siamesenorm", &b));
    tb_model *m = make(T, b, &s);
    TB_REQUIRE(T, m != NULL);
    size_t tail = tb_model_tail(m), data = 0;
    tb_layers layers = tb_model_layers(m, tail);
    TB_CHECK(T, m->nparts == s.depth + 2 && tail == s.depth + 1);
    TB_CHECK(T, layers.first == 1 && layers.n == s.depth);
    TB_CHECK(T, tb_model_role(m, 0) == TB_PART_STEM);
    TB_CHECK(T, tb_model_role(m, tail) == TB_PART_TAIL);
    for (size_t p = 1; p <= tail; p++) {
        TB_CHECK(T, tb_model_layer(m, p) == (p < tail ? p : 0));
        TB_CHECK(T, tb_model_side(m, p) == TB_SIDE_DECODER);
        for (int i = 0; i < tb_model_graph(m, p)->ninputs; i++) {
            int v = tb_model_in_value(m, p, (size_t)i);
            data += v < 0;
            TB_CHECK(T, v < 0 || (size_t)v ==
                                     tb_model_out_value(m, p - 1, (size_t)i));
        }
    }
    TB_CHECK(T, data == 1); /* the targets */
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

/* A longer binding's first rows are a shorter one's: causal, batch apart. */
TB_TEST(rebinding)
{
    tb_block *b;
    tb_settings s = tiny();
    float all[2 * 6 * 13];
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    tb_model *m = make(T, b, &s);
    TB_REQUIRE(T, m != NULL);
    TB_OKAY(T, tb_model_init(m, 1));
    tb_batch batch = {.tokens = ids, .targets = NULL};
    TB_OKAY(T, tb_model_bind(m, 2, 6, 0));
    TB_OKAY(T, tb_model_forward(m, &batch, NULL));
    memcpy(all, tb_model_logits(m), sizeof all);
    TB_OKAY(T, tb_model_bind(m, 1, 3, TB_PASS_KEEP));
    TB_OKAY(T, tb_model_forward(m, &batch, NULL));
    const float *some = tb_model_logits(m);
    for (size_t i = 0; i < 3 * 13; i++)
        TB_NEAR(T, (double)some[i], (double)all[i], 1e-6);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(refused)
{
    tb_block *b;
    double loss;
    tb_settings s = tiny();
    int32_t wild[12] = {0};
    float g[1];
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    tb_model *m = make(T, b, &s);
    TB_REQUIRE(T, m != NULL);
    tb_batch batch = {.tokens = wild, .targets = wild};
    TB_FAILS(T, tb_model_forward(m, &batch, &loss), TB_ERR_ARG, "not bound");
    TB_FAILS(T, tb_model_bind(m, 2, 7, 0), TB_ERR_ARG, "6 positions");
    TB_FAILS(T, tb_model_bind(m, 0, 6, 0), TB_ERR_ARG, "0 x 6");
    TB_OKAY(T, tb_model_bind(m, 2, 6, 0));
    TB_FAILS(T, tb_model_backward(m, &batch, g), TB_ERR_ARG, "backward");
    wild[7] = 13;
    TB_FAILS(T, tb_model_forward(m, &batch, &loss), TB_ERR_INPUT,
             "tokens: got id 13 at row 8, wanted 0 to 12");
    wild[7] = -1;
    TB_FAILS(T, tb_model_forward(m, &batch, &loss), TB_ERR_INPUT, "tokens");
    tb_model_destroy(m);
    s.width = 9;
    TB_FAILS(T, tb_model_create(T->ctx, b, &s, TB_F32, &m), TB_ERR_ARG,
             "heads");
    TB_CHECK(T, m == NULL);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(first_nonfinite)
{
    tb_block *b;
    double loss;
    tb_settings s = tiny();
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    tb_model *m = make(T, b, &s);
    TB_REQUIRE(T, m != NULL);
    TB_OKAY(T, tb_model_init(m, 1));
    TB_OKAY(T, tb_model_bind(m, 2, 6, TB_PASS_KEEP));
    tb_batch batch = {.tokens = ids, .targets = ids};
    TB_OKAY(T, tb_model_forward(m, &batch, &loss));
    TB_CHECK(T, tb_model_first_nonfinite(m) == NULL && tb_isfinite(loss));
    static const char *const at[] = {"head.weight", "layers.1.ffn.up.bias",
                                     "embed.token.weight"};
    static const char *const want[] = {"tail", "layers.1", "stem"};
    for (size_t i = 0; i < TB_LEN(at); i++) {
        const tb_view *v = tb_model_view(m, at[i]);
        TB_REQUIRE(T, v != NULL);
        for (size_t j = 0; j < v->count; j++)
            tb_elem_set(TB_F32, m->params, v->offset + j, __builtin_inf());
        TB_OKAY(T, tb_model_forward(m, &batch, &loss));
        TB_STR(T, tb_model_first_nonfinite(m), want[i]);
        TB_CHECK(T, !tb_isfinite(loss));
    }
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

/* The outline counts the stack that it does not make. */
TB_TEST(an_outline_counts_the_whole)
{
    static const char *const texts[] = {
        "x = x + F(norm(x))\nfinal: x = norm(x)",
        "block[l <= N/4]: x = norm(x + F(x))\nblock: x = x + F(norm(x))",
        "block[l/2 == floor(l/2)]: x = x + vector(1)*F(x)\nblock: x = F(x)",
    };
    for (size_t i = 0; i < TB_LEN(texts); i++)
        for (size_t depth = 1; depth <= 9; depth += 4) {
            tb_block *b;
            TB_OKAY(T, tb_block_load(T->ctx, texts[i], &b));
            tb_settings s = tiny();
            s.depth = depth;
            tb_model *whole = make(T, b, &s), *line;
            TB_OKAY(T, tb_model_outline(T->ctx, b, &s, &line));
            TB_CHECK(T, line->nparameters == whole->nparameters);
            TB_CHECK(T, line->nnames == whole->nnames);
            TB_CHECK(T, line->nparts <= 4);
            tb_model_destroy(whole);
            tb_model_destroy(line);
            tb_block_destroy(T->ctx, b);
        }
}

TB_TEST(stacks_too_deep)
{
    tb_block *b;
    TB_OKAY(T, tb_block_load(T->ctx,
                             "x = x + F(norm(x))\ninit: layers.7.attn.q: zeros",
                             &b));
    tb_settings s = tiny();
    tb_model *m;
    s.depth = 1000000;
    TB_FAILS(T, tb_model_create(T->ctx, b, &s, TB_F32, &m), TB_ERR_ARG,
             "the blocks have 16000000 weights, wanted at most 2000000");
    TB_OKAY(T, tb_model_outline(T->ctx, b, &s, &m));
    TB_CHECK(T, m->nparts == 3 && m->nnames == 16000000);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
    TB_OKAY(T, tb_block_load(T->ctx,
                             "block[l == 3]: x = F(x)\nblock[l == 4]: x = x\n"
                             "block: x = x + F(x)",
                             &b));
    s.depth = 20000000;
    TB_FAILS(T, tb_model_outline(T->ctx, b, &s, &m), TB_ERR_ARG,
             "20000000 blocks ask for 2 conditions each");
    tb_block_destroy(T->ctx, b);
    TB_OKAY(T, tb_block_load(T->ctx, "x = x + F(x)\ninit: attn.zz: zeros", &b));
    TB_FAILS(T, tb_model_outline(T->ctx, b, &s, &m), TB_ERR_PARSE,
             "'attn.zz' matches no weight");
    tb_block_destroy(T->ctx, b);
}

TB_TEST(every_allocation_may_fail)
{
    tb_block *b;
    tb_settings s = tiny();
    s.depth = 2;
    s.init = "attn.q: orthogonal; ffn.*: normal(0.1/N)";
    TB_OKAY(T, tb_block_load(T->ctx, "gpt-2", &b));
    size_t before = tb_ctx_blocks(T->ctx), n = 1;
    tb_status status = TB_ERR_MEMORY;
    for (; status != TB_OK && n < 10000; n++) {
        tb_model *m;
        tb_ctx_fail_alloc_at(T->ctx, n);
        status = tb_model_create(T->ctx, b, &s, TB_F32, &m);
        if (status == TB_OK)
            status = tb_model_init(m, 1);
        if (status == TB_OK)
            status = tb_model_bind(m, 2, 6, TB_PASS_BWD);
        if (status == TB_OK)
            status = tb_model_bind(m, 1, 4, 0);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        TB_REQUIRE(T, status == TB_OK || status == TB_ERR_MEMORY);
        tb_model_destroy(m);
        TB_REQUIRE(T, tb_ctx_blocks(T->ctx) == before);
    }
    TB_CHECK(T, status == TB_OK && n > 10);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(a_name_of_the_text_may_not_be_a_slot)
{
    static const char text[] = "norm2 = linear(d, d)\n"
                               "n = norm(norm(x))\n"
                               "x = x + norm2(n)";
    tb_settings s = TB_SETTINGS_UNSET;
    tb_block *b;
    tb_model *m;
    TB_OKAY(T, tb_block_load(T->ctx, text, &b));
    tb_status got = tb_model_create(T->ctx, b, &s, TB_F32, &m);
    TB_FAILS(T, got, TB_ERR_PARSE, "two parameters are called layers.0.");
    tb_block_destroy(T->ctx, b);
}
