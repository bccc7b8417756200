/* SPDX-License-Identifier: MIT */
/* Flow of an encoder and a decoder: the walk down both gives every weight the
 * gradient that the model's own backward pass gives it, and the rows say whose
 * they are. */
#include "flow/flow_model.h"
#include "tb_test.h"

enum { B = 2, N = 2, M = 3 };

static tb_flow_spec spec_of(int stack)
{
    tb_flow_spec spec = {
        .settings = TB_SETTINGS_UNSET, .batch = B, .seed = 3, .dtype = TB_F64};
    spec.settings.stack = stack;
    spec.settings.depth = N;
    spec.settings.decoder_depth = stack == TB_STACKS_BOTH ? M : 0;
    spec.settings.width = 16;
    spec.settings.context = 6;
    return spec;
}

static tb_flow *measure(tb_test *T, const char *text, const tb_flow_spec *spec)
{
    tb_block *b;
    tb_flow *f = NULL;
    if (tb_block_load(T->ctx, text, &b) != TB_OK ||
        tb_flow_measure(T->ctx, b, spec, &f) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", text, tb_error(T->ctx));
    tb_block_destroy(T->ctx, b);
    return f;
}

/* The batch that flow measures on: random tokens, of two generators. */
static tb_status backward(tb_model *m, const tb_flow_spec *spec, double *grads)
{
    int32_t x[B * 6], y[B * 6], source[B * 6];
    tb_rng r = tb_rng_make(spec->seed, "tokens");
    tb_rng other = tb_rng_make(spec->seed, "source");
    for (size_t i = 0; i < B * 6; i++) {
        size_t at = i / 6 * 7 + i % 6;
        x[i] = (int32_t)tb_rng_below(r, at, 256);
        y[i] = (int32_t)tb_rng_below(r, at + 1, 256);
        source[i] = (int32_t)tb_rng_below(other, at, 256);
    }
    const tb_batch batch = {
        .tokens = x, .targets = y, .seed = spec->seed, .source = source};
    TB_TRY(tb_model_bind(m, B, 6, TB_PASS_BWD));
    TB_TRY(tb_model_forward(m, &batch, NULL));
    return tb_model_backward(m, &batch, grads);
}

static void compare(tb_test *T, const char *text, const tb_flow *f,
                    const tb_model *m, const double *grads)
{
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    TB_CHECK(T, f->nweights == m->nviews);
    for (size_t i = 0; i < f->nweights && i < m->nviews; i++) {
        const tb_view *v = &m->views[i];
        double want = k->norm2(v->count, grads + v->offset);
        if (!(tb_fabs(f->weights[i].grad_norm - want) <= 1e-12 * (want + 1)))
            tb_test_fail(T, __FILE__, __LINE__, "%s: %s has %g, wanted %g",
                         text, v->name, f->weights[i].grad_norm, want);
    }
}

static void check(tb_test *T, const char *text, bool tied)
{
    tb_flow_spec spec = spec_of(TB_STACKS_BOTH);
    spec.settings.tied = tied;
    tb_block *b;
    tb_model *m = NULL;
    tb_flow *f = measure(T, text, &spec);
    TB_OKAY(T, tb_block_load(T->ctx, text, &b));
    TB_OKAY(T, tb_model_create(T->ctx, b, &spec.settings, TB_F64, &m));
    TB_OKAY(T, tb_model_init(m, spec.seed));
    double *grads = tb_alloc(T->ctx, m->nelements, sizeof *grads);
    TB_REQUIRE(T, grads && f);
    TB_OKAY(T, backward(m, &spec, grads));
    compare(T, text, f, m, grads);
    tb_free(T->ctx, grads);
    tb_flow_free(T->ctx, f);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(weights_get_the_models_gradients)
{
    check(T, "pre-ln", false);
    check(T, "pre-ln", true); /* one table in three parts */
    check(T, "post-ln", false);
    check(T, "deepnorm", false);
    check(T, "siamesenorm", false);
    check(T,
          "decoder: n = norm(x); x = x + attn(n) + cross(n) + ffn(n)\n"
          "encoder stem: y = norm(x)\n"
          "encoder: y = y + ffn(x); x = x + attn(norm(y))\n"
          "encoder final: x = norm(x + y)",
          false);
}

TB_TEST(rows_of_both_stacks)
{
    tb_flow_spec spec = spec_of(TB_STACKS_BOTH);
    tb_flow *f = measure(T, "pre-ln", &spec);
    TB_REQUIRE(T, f && f->nstacks == 2 && f->nrows == 1 + 2 * N + 1 + 3 * M);
    TB_CHECK(T, f->stacks[0].nrows == 1 + 2 * N && f->stacks[0].depth == N);
    TB_CHECK(T, f->stacks[1].first == 1 + 2 * N && f->stacks[1].depth == M);
    for (size_t i = 0; i < f->nrows; i++) {
        const tb_flow_row *r = &f->rows[i];
        bool encoder = i < f->stacks[1].first;
        TB_CHECK(T, r->k == i && r->lane == 1);
        TB_STR(T, r->role, encoder ? "encoder" : "decoder");
    }
    TB_STR(T, f->rows[2 * N].name, "ffn");
    TB_STR(T, f->rows[2 * N + 1].name, "stem");
    TB_STR(T, f->rows[2 * N + 3].name, "cross");
    TB_CHECK(T, f->rows[2 * N].total == 1 && f->rows[f->nrows - 1].total == 1);
    for (int s = 0; s < 2; s++)
        TB_CHECK(T, f->stacks[s].has_final);
    tb_flow_free(T->ctx, f);
}

TB_TEST(a_single_stack_has_no_roles)
{
    tb_flow_spec spec = spec_of(TB_STACKS_ENCODER);
    tb_flow *f = measure(T, "post-ln", &spec);
    TB_REQUIRE(T, f && f->nstacks == 1 && f->nrows == 1 + 2 * N);
    for (size_t i = 0; i < f->nrows; i++)
        TB_CHECK(T, f->rows[i].role == NULL);
    tb_flow_free(T->ctx, f);
}

/* Nothing but cross branches brings a gradient to the encoder. */
TB_TEST(memory_comes_through_cross_branches)
{
    tb_flow_spec spec = spec_of(TB_STACKS_BOTH);
    spec.cotangent = TB_COTANGENT_RANDOM;
    spec.settings.init = "cross.o: zeros";
    tb_flow *f = measure(T, "post-ln", &spec);
    TB_REQUIRE(T, f);
    for (size_t i = 0; i < f->stacks[0].nrows; i++)
        TB_CHECK(T, f->rows[i].total == 0 && f->rows[i].lane == 0);
    TB_CHECK(T, f->rows[f->nrows - 1].total == 1);
    tb_flow_free(T->ctx, f);
}
