/* SPDX-License-Identifier: MIT */
/* Running statistics in a model: views that are no parameters, moved once a
 * training step, frozen in use. */
#include "tb_test.h"
#include "model/parts.h"
#include "train/optimizer.h"

enum { B = 2, TIME = 3, D = 4, TOKENS = B * TIME };

typedef struct made {
    tb_block *block;
    tb_model *m;
    int32_t ids[2 * TOKENS];
    tb_batch batch;
    void *grads;
} made;

static bool make(tb_test *T, made *x, const char *text)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = 1;
    s.width = D;
    s.heads = 2;
    s.context = TIME;
    s.vocab = 7;
    *x = (made){0};
    tb_status status = tb_block_load(T->ctx, text, &x->block);
    if (status == TB_OK)
        status = tb_model_create(T->ctx, x->block, &s, TB_F64, &x->m);
    if (status == TB_OK)
        status = tb_model_init(x->m, 3);
    if (status == TB_OK)
        status = tb_model_bind(x->m, B, TIME, TB_PASS_BWD);
    if (status != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    for (int i = 0; i < 2 * TOKENS; i++)
        x->ids[i] = (i * i + 3 * i) % 7;
    x->batch = (tb_batch){.tokens = x->ids, .targets = x->ids + TOKENS};
    if (x->m)
        x->grads = tb_alloc(T->ctx, x->m->nelements, sizeof(double));
    return status == TB_OK && x->grads;
}

static void drop(tb_test *T, made *x)
{
    tb_free(T->ctx, x->grads);
    tb_model_destroy(x->m);
    if (x->block)
        tb_block_destroy(T->ctx, x->block);
}

static double *view_at(const made *x, const char *name)
{
    return (double *)x->m->params + tb_model_view(x->m, name)->offset;
}

TB_TEST(buffers_are_no_parameters)
{
    made a, b;
    TB_REQUIRE(T, make(T, &a, "x = x + F(batchnorm(x))"));
    TB_REQUIRE(T, make(T, &b, "x = x + F(layernorm(x))"));
    TB_CHECK(T, a.m->nparameters == b.m->nparameters);
    TB_CHECK(T, a.m->nviews == b.m->nviews + 4);
    const tb_view *var = tb_model_view(a.m, "layers.0.ffn.norm.var");
    TB_REQUIRE(T, var != NULL);
    TB_CHECK(T, var->role == TB_ROLE_BUFFER && var->count == D);
    TB_STR(T, var->rule, "const(1)");
    TB_CHECK(T, view_at(&a, "layers.0.ffn.norm.var")[D - 1] == 1);
    TB_CHECK(T, view_at(&a, "layers.0.ffn.norm.mean")[D - 1] == 0);
    drop(T, &a);
    drop(T, &b);
}

/* The stem's output is what the first norm sees. */
TB_TEST(update_moves_towards_the_batch)
{
    made x;
    double loss;
    TB_REQUIRE(T, make(T, &x, "x = x + F(batchnorm(x, momentum=0.25))"));
    TB_OKAY(T, tb_model_forward(x.m, &x.batch, &loss));
    TB_OKAY(T, tb_model_update(x.m, &x.batch));
    const double *in = tb_model_stream(x.m, 0);
    for (int j = 0; j < D; j++) {
        double mean = 0, square = 0;
        for (int t = 0; t < TOKENS; t++)
            mean += in[t * D + j] / TOKENS;
        for (int t = 0; t < TOKENS; t++)
            square += (in[t * D + j] - mean) * (in[t * D + j] - mean);
        TB_NEAR(T, view_at(&x, "layers.0.attn.norm.mean")[j], 0.25 * mean,
                1e-14);
        TB_NEAR(T, view_at(&x, "layers.0.attn.norm.var")[j],
                0.75 + 0.25 * square / (TOKENS - 1), 1e-14);
    }
    drop(T, &x);
}

TB_TEST(optimizer_leaves_them_alone)
{
    made x;
    double loss;
    tb_optimizer *o;
    tb_update u;
    const tb_adam adam = {0.9, 0.99, 1e-8, 0.1, 1};
    TB_REQUIRE(T, make(T, &x, "x = x + F(powernorm(x))"));
    TB_OKAY(T, tb_optimizer_create(T->ctx, TB_F64, x.m->views, x.m->nviews,
                                   x.m->nelements, x.m->params, &o));
    double *nu = view_at(&x, "layers.0.ffn.norm.nu");
    double *square = view_at(&x, "layers.0.ffn.norm.square");
    TB_OKAY(T, tb_model_forward(x.m, &x.batch, &loss));
    TB_OKAY(T, tb_model_backward(x.m, &x.batch, o->grads));
    double *g = (double *)o->grads +
                tb_model_view(x.m, "layers.0.ffn.norm.square")->offset;
    for (int j = 0; j < D; j++)
        TB_CHECK(T, g[j] == 0);
    g[0] = 1e30; /* would count in norm and clipping */
    TB_OKAY(T, tb_optimizer_step(o, &adam, 1, 0.1, &u));
    TB_CHECK(T, u.grad_norm < 1e3);
    TB_CHECK(T, nu[0] == 0 && square[0] == 1);
    for (size_t i = 0; i < u.ngroups; i++)
        TB_CHECK(T, !tb_streq(u.groups[i].name, "buffer"));
    TB_OKAY(T, tb_model_update(x.m, &x.batch));
    TB_CHECK(T, nu[0] != 0 && square[0] != 1);
    tb_optimizer_destroy(o);
    drop(T, &x);
}

static double statistics(const made *x, const tb_op *op)
{
    const tb_graph *g = tb_model_graph(x->m, 1);
    for (int i = 0; i < g->nnodes; i++)
        if (g->nodes[i].op == op)
            return tb_model_attrs(x->m, 1)[i][TB_ATTR_BATCH_STATISTICS];
    return -1;
}

TB_TEST(warm_up_ends)
{
    made x;
    TB_REQUIRE(T, make(T, &x, "x = batchnorm(x + F(powernorm(x, warmup=2)))"));
    TB_CHECK(T, statistics(&x, &tb_op_powernorm) == TB_STATISTICS_BATCH);
    for (size_t step = 1; step < 5; step++) {
        tb_model_step(x.m, step);
        TB_CHECK(T,
                 statistics(&x, &tb_op_powernorm) ==
                     (step > 2 ? TB_STATISTICS_RUNNING : TB_STATISTICS_BATCH));
        TB_CHECK(T, statistics(&x, &tb_op_batchnorm) == TB_STATISTICS_BATCH);
    }
    tb_model_step(x.m, 1); /* a run may start again */
    TB_CHECK(T, statistics(&x, &tb_op_powernorm) == TB_STATISTICS_BATCH);
    drop(T, &x);
}

/* A model with padding: statistics and outputs of real tokens are those of the
 * tokens alone, in every section. */
TB_TEST(padding_does_not_count)
{
    enum { LONG = 5, VOCAB = 7 };
    static const char *const text =
        "stem: x = batchnorm(x)\nblock: x = x + F(powernorm(x))\n"
        "final: x = batchnorm(x)";
    static const int32_t ids[] = {4, 1, 6, 0, 0, 2, 5, 3, 0, 0};
    static const int32_t alone[] = {4, 1, 6, 2, 5, 3};
    static const unsigned char keep[] = {1, 1, 1, 0, 0, 1, 1, 1, 0, 0};
    tb_settings s = TB_SETTINGS_UNSET;
    tb_block *b;
    tb_model *m[2];
    double logits[2][2 * LONG * VOCAB];
    s.stack = TB_STACKS_ENCODER;
    s.depth = 1;
    s.width = D;
    s.heads = 2;
    s.context = LONG;
    s.vocab = VOCAB;
    TB_OKAY(T, tb_block_load(T->ctx, text, &b));
    for (int padded = 0; padded < 2; padded++) {
        size_t time = padded ? LONG : 3;
        tb_batch batch = {.tokens = padded ? ids : alone,
                          .keep = padded ? keep : NULL};
        s.padding = padded;
        TB_OKAY(T, tb_model_create(T->ctx, b, &s, TB_F64, &m[padded]));
        TB_OKAY(T, tb_model_init(m[padded], 3));
        TB_OKAY(T, tb_model_bind(m[padded], 2, time, TB_PASS_BWD));
        TB_OKAY(T, tb_model_forward(m[padded], &batch, NULL));
        TB_OKAY(T, tb_model_update(m[padded], &batch));
        memcpy(logits[padded], tb_model_logits(m[padded]),
               2 * time * VOCAB * sizeof(double));
    }
    for (size_t i = 0; i < m[0]->nelements; i++) /* weights and statistics */
        TB_NEAR(T, ((double *)m[1]->params)[i], ((double *)m[0]->params)[i],
                1e-14);
    for (size_t t = 0; t < 3; t++)
        for (size_t r = 0; r < 2; r++)
            TB_NEAR_N(T, &logits[1][(r * LONG + t) * VOCAB],
                      &logits[0][(r * 3 + t) * VOCAB], VOCAB, 1e-12);
    TB_CHECK(T, ((double *)m[0]
                     ->params)[tb_model_view(m[0], "stem.norm.mean")->offset] !=
                    0);
    tb_model_destroy(m[0]);
    tb_model_destroy(m[1]);
    tb_block_destroy(T->ctx, b);
}

/* Frozen, a token's logits do not depend on later tokens; by the batch they
 * do, causal mask or not. */
TB_TEST(later_tokens_leak_in_training_only)
{
    made x;
    double before[7];
    TB_REQUIRE(T, make(T, &x, "x = x + F(batchnorm(x))"));
    for (int quiet = 0; quiet < 2; quiet++) {
        if (quiet)
            tb_model_quiet(x.m);
        x.ids[TIME - 1] = 1;
        TB_OKAY(T, tb_model_forward(x.m, &x.batch, NULL));
        memcpy(before, tb_model_logits(x.m), sizeof before);
        x.ids[TIME - 1] = 5;
        TB_OKAY(T, tb_model_forward(x.m, &x.batch, NULL));
        bool same = !memcmp(before, tb_model_logits(x.m), sizeof before);
        TB_CHECK(T, same == (quiet == 1));
    }
    drop(T, &x);
}
