/* SPDX-License-Identifier: MIT */
/* Gradients of whole models against central differences in double: every
 * parameter tensor of every built-in block, and of blocks with several
 * streams, per-layer sections, tied heads and dropout. */
#include "gradients/random_block.h"
#include "model_help.h"

enum { B = 2, TIME = 5, VOCAB = 11, SAMPLES = 4 };

typedef struct tb_setup {
    tb_block *block;
    tb_model *m;
    int32_t tokens[B * TIME], targets[B * TIME];
    tb_batch batch;
    double *grads;
} tb_setup;

static tb_settings tiny(void)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = 2;
    s.width = 8;
    s.heads = 2;
    s.ffn = 12;
    s.context = TIME;
    s.vocab = VOCAB;
    return s;
}

/* Start values and noise on top, so that nothing is 0 or 1 by design. */
static void shake(tb_test *T, tb_model *m)
{
    double *w = m->params;
    for (size_t v = 0; v < m->nviews; v++)
        for (size_t i = 0; i < m->views[v].count; i++)
            w[m->views[v].offset + i] += 0.2 * tb_test_normal(T);
}

static tb_status set_up(tb_test *T, const char *what, const tb_settings *s,
                        tb_setup *u)
{
    memset(u, 0, sizeof *u);
    TB_TRY(tb_block_load(T->ctx, what, &u->block));
    TB_TRY(tb_model_create(T->ctx, u->block, s, TB_F64, &u->m));
    TB_TRY(tb_model_init(u->m, 5));
    TB_TRY(tb_model_bind(u->m, B, TIME, TB_PASS_BWD));
    shake(T, u->m);
    for (int i = 0; i < B * TIME; i++) {
        u->tokens[i] = (int32_t)(tb_test_uniform(T) * VOCAB);
        u->targets[i] = i % 4 == 3 ? -1 : (int32_t)(tb_test_uniform(T) * VOCAB);
    }
    u->batch = (tb_batch){
        .tokens = u->tokens, .targets = u->targets, .seed = 9, .step = 3};
    u->grads = tb_alloc(T->ctx, u->m->nelements, sizeof *u->grads);
    return u->grads ? TB_OK : TB_ERR_MEMORY;
}

static void tear_down(tb_test *T, tb_setup *u)
{
    tb_free(T->ctx, u->grads);
    tb_model_destroy(u->m);
    if (u->block)
        tb_block_destroy(T->ctx, u->block);
}

static double loss_at(tb_test *T, tb_setup *u, double *w, double v)
{
    double loss = 0, keep = *w;
    *w = v;
    if (tb_model_forward(u->m, &u->batch, &loss) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    *w = keep;
    return loss;
}

static void check_view(tb_test *T, tb_setup *u, const char *what,
                       const tb_view *v)
{
    double *w = (double *)u->m->params + v->offset;
    const double *g = u->grads + v->offset;
    double largest = 0;
    for (size_t i = 0; i < v->count; i++)
        largest = tb_fabs(g[i]) > largest ? tb_fabs(g[i]) : largest;
    for (int k = 0; k < SAMPLES; k++) {
        size_t i = (size_t)(tb_test_uniform(T) * (double)v->count);
        double h = 1e-5;
        double d =
            (loss_at(T, u, w + i, w[i] + h) - loss_at(T, u, w + i, w[i] - h)) /
            (2 * h);
        if (!(tb_fabs(d - g[i]) <= 2e-7 * largest + 2e-9))
            tb_test_fail(T, __FILE__, __LINE__,
                         "%s: %s[%zu] gradient %g, difference %g", what,
                         v->name, i, g[i], d);
    }
}

static void check_model(tb_test *T, const char *what, const tb_settings *s)
{
    tb_setup u;
    double loss;
    tb_status status = set_up(T, what, s, &u);
    if (status == TB_OK)
        status = tb_model_forward(u.m, &u.batch, &loss);
    if (status == TB_OK)
        status = tb_model_backward(u.m, &u.batch, u.grads);
    if (status != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", what, tb_error(T->ctx));
    for (size_t v = 0; status == TB_OK && v < u.m->nviews; v++)
        check_view(T, &u, what, &u.m->views[v]);
    tear_down(T, &u);
}

/* A stopped value moves in a difference and not in the gradient, which is
 * meant (GPAS); test_model_symbolic holds it still. */
TB_TEST(built_in_blocks)
{
    tb_settings s = tiny();
    for (size_t i = 0; tb_builtins[i].name; i++)
        if (!strstr(tb_builtins[i].text, "stop("))
            check_model(T, tb_builtins[i].name, &s);
}

TB_TEST(tied_with_kv_heads_and_no_bias)
{
    tb_settings s = tiny();
    s.tied = 1;
    s.heads = 4;
    s.kv_heads = 2;
    s.bias = 0;
    s.norm = "rmsnorm";
    check_model(T, "pre-ln", &s);
    check_model(T, "post-ln", &s);
}

TB_TEST(dropout_with_fixed_masks)
{
    tb_settings s = tiny();
    s.dropout = 0.3;
    check_model(T, "pre-ln", &s);
    s.causal = 0;
    s.positions = 0;
    check_model(T, "post-ln", &s);
}

TB_TEST(several_streams)
{
    tb_settings s = tiny();
    check_model(T,
                "stem:\n    y = 2*norm(x)\n"
                "block:\n    y = norm(y + x)\n    x = x + attn(y)\n"
                "    x = x + ffn(norm(x))\n"
                "final:\n    x = norm(x) + y\n",
                &s);
    check_model(T,
                "stem:\n    y = norm(x)\n    z = x\n"
                "block:\n    x = x + F(norm(x + z)) + y\n",
                &s);
}

TB_TEST(sections_per_layer)
{
    tb_settings s = tiny();
    s.depth = 3;
    check_model(T,
                "block[l <= 1]:\n    x = norm(x + F(x))\n"
                "block:\n    x = x + l*F(norm(x))/N\n"
                "final:\n    x = norm(x)\n",
                &s);
}

/* C059 in small: a tied weight's gradient is the sum of its two uses. */
TB_TEST(tied_gradient_is_the_sum)
{
    tb_setup u[2];
    double loss;
    for (int tied = 0; tied < 2; tied++) {
        tb_settings s = tiny();
        s.tied = tied;
        TB_OKAY(T, set_up(T, "pre-ln", &s, &u[tied]));
    }
    tb_model *one = u[1].m, *two = u[0].m;
    for (size_t v = 0; v < two->nviews; v++) {
        tb_view *to = &two->views[v];
        const tb_view *from = tb_model_view(
            one, tb_streq(to->name, "head.weight") ? "embed.token.weight"
                                                   : to->name);
        TB_REQUIRE(T, from && from->count == to->count);
        memcpy((double *)two->params + to->offset,
               (double *)one->params + from->offset,
               to->count * sizeof(double));
    }
    for (int i = 0; i < 2; i++) {
        TB_OKAY(T, tb_model_forward(u[i].m, &u[1].batch, &loss));
        TB_OKAY(T, tb_model_backward(u[i].m, &u[1].batch, u[i].grads));
    }
    const tb_view *e1 = tb_model_view(one, "embed.token.weight");
    const tb_view *e2 = tb_model_view(two, "embed.token.weight");
    const tb_view *h2 = tb_model_view(two, "head.weight");
    TB_REQUIRE(T, e1 && e2 && h2 && !tb_model_view(one, "head.weight"));
    for (size_t i = 0; i < e1->count; i++)
        TB_NEAR(T, u[1].grads[e1->offset + i],
                u[0].grads[e2->offset + i] + u[0].grads[h2->offset + i], 1e-13);
    tear_down(T, &u[0]);
    tear_down(T, &u[1]);
}

/* Two backward passes add up; padding of the flat buffer stays 0. */
TB_TEST(gradients_are_added)
{
    tb_setup u;
    double loss;
    tb_settings s = tiny();
    TB_OKAY(T, set_up(T, "rezero", &s, &u));
    size_t n = u.m->nelements, used = 0;
    double *twice = tb_alloc(T->ctx, n, sizeof *twice);
    TB_REQUIRE(T, twice != NULL);
    TB_OKAY(T, tb_model_forward(u.m, &u.batch, &loss));
    TB_OKAY(T, tb_model_backward(u.m, &u.batch, u.grads));
    for (int i = 0; i < 2; i++)
        TB_OKAY(T, tb_model_backward(u.m, &u.batch, twice));
    for (size_t i = 0; i < n; i++) {
        TB_NEAR(T, twice[i], 2 * u.grads[i], 1e-14);
        used += u.grads[i] != 0;
    }
    TB_CHECK(T, used <= u.m->nparameters);
    for (size_t v = 0; v < u.m->nviews; v++) {
        const tb_view *w = &u.m->views[v];
        for (size_t i = w->offset + w->count; i % 16; i++)
            TB_CHECK(T, u.grads[i] == 0);
    }
    tb_free(T->ctx, twice);
    tear_down(T, &u);
}

/* --- Jacobians of equations: three ways ---------------------------------- */

static const char *const equations[] = {
    "norm(x)",
    "rmsnorm(x)",
    "x + attn(norm(x))",
    "norm(x + ffn(x))",
    "x = x + F(norm(x))",
    "a = scalar(0.5); x + a*gelu(norm(x))",
    "x = norm(x + attn(x)); x + silu(x)*tanh(x)",
    "x + stop(x)*x",
    "x*sigmoid(stop(norm(x)) + x)",
    "softmax(x) - 2*x",
    "x + drop(x*x, 0.5)",
    /* one value read twice by an op, and by attention */
    "mha(x, x, x)",
    "n = norm(x); mha(n, n, x) + mha(x, n, n) + mha(n, x, n)",
    "x*x + mha(x, x, x)",
    "x + x + attn(x)",
    "n = mha(x, x, x); mha(n, n, norm(n)) - n*n",
};

/* Of x alone, or of x and of another list, which has `tokens`. */
static void three_ways(tb_test *T, const char *text, const char *names,
                       size_t tokens)
{
    double x[24 + 32], keep[8];
    tb_eval_value sets[3] = {
        {.name = "x", .rank = 3, .dims = {2, 3, 4}, .data = x},
        {.name = "memory", .rank = 3, .dims = {2, tokens, 4}, .data = x + 24},
        {.name = "keep", .rank = 3, .dims = {2, tokens, 1}, .data = keep}};
    tb_eval_agreement a;
    tb_test_fill(T, TB_F64, x, TB_LEN(x));
    for (size_t i = 0; i < TB_LEN(keep); i++)
        keep[i] = i % 3 != 1;
    if (strchr(names, ',') && !strstr(names, "memory"))
        sets[1].name = names + strlen("x,");
    tb_eval e = {.text = text,
                 .jacobian = names,
                 .heads = 2,
                 .seed = 2,
                 .nsets = !strchr(names, ',')    ? 1
                          : strstr(text, "keep") ? 3
                                                 : 2,
                 .sets = sets};
    TB_OKAY(T, tb_eval_check(T->ctx, &e, &a));
    if (!(a.tangent <= 1e-13) || !(a.difference <= 2e-9) || !(a.largest > 0))
        tb_test_fail(T, __FILE__, __LINE__,
                     "%s, %zu tokens: tangent %g difference %g of %g", text,
                     tokens, a.tangent, a.difference, a.largest);
}

TB_TEST(jacobian_three_ways)
{
    for (size_t i = 0; i < TB_LEN(equations); i++)
        three_ways(T, equations[i], "x", 1);
}

/* C066: the step and the error of the norm at [1,2,3,4]. */
TB_TEST(difference_step)
{
    tb_case c = {.e = {.text = "norm(x)", .jacobian = "x"}};
    tb_eval_agreement a;
    help_set(&c, "x", "[1,2,3,4]");
    TB_OKAY(T, tb_eval_check(T->ctx, &c.e, &a));
    TB_NEAR(T, a.step, 2.4e-5, 1e-12);
    TB_CHECK(T, a.difference < 1e-9 && a.tangent < 1e-14);
}

/* Rows by the backward pass, or all at once, against columns by the tangent
 * pass, of two streams. */
static void check_equation(tb_test *T, uint64_t seed)
{
    tb_buf text;
    double x[24], y[24];
    tb_eval_agreement a;
    tb_eval_value sets[] = {
        {.name = "x", .rank = 3, .dims = {2, 3, 4}, .data = x},
        {.name = "y", .rank = 3, .dims = {2, 3, 4}, .data = y}};
    random_equation(T->ctx, seed, &text);
    tb_eval e = {.text = tb_buf_str(&text),
                 .jacobian = "x,y",
                 .heads = 2,
                 .seed = seed,
                 .nsets = 2,
                 .sets = sets};
    tb_test_fill(T, TB_F64, x, TB_LEN(x));
    tb_test_fill(T, TB_F64, y, TB_LEN(y));
    tb_status s = tb_eval_check(T->ctx, &e, &a);
    if (s != TB_OK || !(a.tangent <= 1e-9 * (1 + a.largest)))
        tb_test_fail(T, __FILE__, __LINE__,
                     "seed %llu: tangent %g of %g %s\n%s",
                     (unsigned long long)seed, a.tangent, a.largest,
                     s == TB_OK ? "" : tb_error(T->ctx), tb_buf_str(&text));
    tb_buf_clear(&text);
}

TB_TEST(jacobians_of_random_equations)
{
    const random_seeds all = random_asked(300);
    for (uint64_t seed = all.from; seed < all.to && T->failed < 10; seed++)
        check_equation(T, seed);
}

/* 0/0 in the first column: what comes later does not hide it. */
TB_TEST(what_is_no_number_does_not_agree)
{
    tb_case c = {.e = {.text = "x*x/x", .jacobian = "x"}};
    tb_eval_agreement a;
    help_set(&c, "x", "[0,1]");
    TB_OKAY(T, tb_eval_check(T->ctx, &c.e, &a));
    TB_CHECK(T, a.tangent != a.tangent && a.difference != a.difference);
}

/* Keys and values of fewer tokens than the queries, or of more; values held
 * that have a memory's length. */
TB_TEST(jacobian_of_other_lengths)
{
    for (size_t tokens = 1; tokens <= 4; tokens++) {
        three_ways(T, "mha(x, memory, memory)", "x,memory", tokens);
        three_ways(T, "x + cross(norm(x))", "x,memory", tokens);
        three_ways(T, "mha(memory, x, x)", "x,memory", tokens);
        three_ways(T, "mha(x, memory, memory, keep=keep)", "x,memory", tokens);
        three_ways(T, "mha(x, stop(memory)*memory, norm(memory))", "x,memory",
                   tokens);
        three_ways(T, "mha(x, m, m)", "x,m", tokens);
    }
}

/* A parameter's columns as well. */
TB_TEST(jacobian_of_parameters)
{
    tb_case c = {.e = {.text = "x + attn(norm(x))",
                       .jacobian = "attn.q, norm.gain, attn.o.bias",
                       .seed = 2}};
    tb_eval_agreement a;
    help_set(&c, "x", "[[1,2,0],[0.5,1,-1]]");
    TB_OKAY(T, tb_eval_check(T->ctx, &c.e, &a));
    TB_CHECK(T, a.tangent < 1e-13 && a.difference < 2e-9 && a.largest > 0);
}
