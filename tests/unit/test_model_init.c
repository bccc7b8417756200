/* SPDX-License-Identifier: MIT */
/* Init rules: who matches what, the numbers drawn, and what a fresh model
 * predicts. */
#include "model_help.h"
#include "model/parts.h"

typedef struct tb_pair {
    tb_block *b;
    tb_model *m;
} tb_pair;

static tb_status open_pair(tb_test *T, const char *what, const tb_settings *s,
                           tb_dtype dtype, tb_pair *p)
{
    memset(p, 0, sizeof *p);
    TB_TRY(tb_block_load(T->ctx, what, &p->b));
    return tb_model_create(T->ctx, p->b, s, dtype, &p->m);
}

static void close_pair(tb_test *T, tb_pair *p)
{
    tb_model_destroy(p->m);
    if (p->b)
        tb_block_destroy(T->ctx, p->b);
}

static tb_settings tiny(void)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = 2;
    s.width = 8;
    s.heads = 2;
    s.context = 6;
    s.vocab = 13;
    return s;
}

static const char *rule_of(const tb_pair *p, const char *name)
{
    const tb_view *v = tb_model_view(p->m, name);
    return v ? v->rule : "no such weight";
}

TB_TEST(prelude)
{
    tb_pair p;
    tb_settings s = tiny();
    TB_OKAY(T, open_pair(T, "pre-ln", &s, TB_F32, &p));
    TB_STR(T, rule_of(&p, "layers.0.attn.q.weight"), "xavier(1)");
    TB_STR(T, rule_of(&p, "layers.0.attn.q.bias"), "zeros");
    TB_STR(T, rule_of(&p, "layers.0.attn.norm.gain"), "ones");
    TB_STR(T, rule_of(&p, "layers.0.attn.norm.bias"), "zeros");
    TB_STR(T, rule_of(&p, "embed.token.weight"), "normal(1)");
    TB_STR(T, rule_of(&p, "embed.position.weight"), "normal(1)");
    TB_STR(T, rule_of(&p, "head.weight"), "xavier(1)");
    close_pair(T, &p);
    TB_OKAY(T, open_pair(T, "layerscale", &s, TB_F32, &p));
    size_t vectors = 0;
    for (size_t i = 0; i < p.m->nviews; i++)
        if (p.m->views[i].role == TB_ROLE_VECTOR) {
            TB_STR(T, p.m->views[i].rule, "const(1e-5)");
            vectors++;
        }
    TB_CHECK(T, vectors == 4); /* one per branch, two blocks */
    close_pair(T, &p);
}

/* What a glob means, one at a time, on top of the prelude. */
TB_TEST(globs)
{
    static const struct {
        const char *init, *name, *rule;
    } rows[] = {
        {"attn.q: zeros", "layers.1.attn.q.weight", "zeros"},
        {"attn.q: ones", "layers.1.attn.q.bias", "zeros"},
        {"attn.q.weight: zeros", "layers.1.attn.q.weight", "zeros"},
        {"attn.q.bias: const(2)", "layers.1.attn.q.bias", "const(2)"},
        {"*.bias: const(2)", "layers.1.ffn.up.bias", "const(2)"},
        {"layers.1.attn.q: zeros", "layers.1.attn.q.weight", "zeros"},
        {"layers.1.attn.q: zeros", "layers.0.attn.q.weight", "xavier(1)"},
        {"layers.*.attn.*: zeros", "layers.0.attn.v.weight", "zeros"},
        {"ffn.*: zeros", "layers.0.ffn.down.weight", "zeros"},
        {"ffn.*: zeros", "layers.0.attn.q.weight", "xavier(1)"},
        {"*: zeros", "layers.0.attn.q.weight", "zeros"},
        {"*: zeros", "head.weight", "zeros"},
        {"*: zeros", "embed.token.weight", "normal(1)"},
        {"*: ones", "layers.0.attn.norm.bias", "zeros"},
        {"*, embed.*: zeros", "embed.token.weight", "zeros"},
        {"embed.token: normal(2)", "embed.token.weight", "normal(2)"},
        {"embed.token: normal(2)", "embed.position.weight", "normal(1)"},
        {"*.gain: const(0.5)", "layers.0.attn.norm.gain", "const(0.5)"},
        {"*.gain: const(0.5)", "final.norm.gain", "const(0.5)"},
        {"*: zeros; attn.q: ones", "layers.0.attn.q.weight", "ones"},
        {"attn.q: ones; *: zeros", "layers.0.attn.q.weight", "zeros"},
        {"attn.q: normal(l/10)", "layers.1.attn.q.weight",
         "normal(l/10) = 0.2"},
        {"ffn.up: normal(k/10)", "layers.1.ffn.up.weight",
         "normal(k/10) = 0.2"},
        {"head: xavier(2)", "head.weight", "xavier(2)"},
        {"head: orthogonal", "head.weight", "orthogonal"},
        {"head: uniform(1/d)", "head.weight", "uniform(1/d) = 0.125"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_pair p;
        tb_settings s = tiny();
        s.init = rows[i].init;
        tb_status st = open_pair(T, "pre-ln", &s, TB_F32, &p);
        const char *got =
            st == TB_OK ? rule_of(&p, rows[i].name) : tb_error(T->ctx);
        if (!tb_streq(got, rows[i].rule))
            tb_test_fail(T, __FILE__, __LINE__, "%s: %s got %s wanted %s",
                         rows[i].init, rows[i].name, got, rows[i].rule);
        close_pair(T, &p);
    }
}

TB_TEST(scalars_keep_the_text)
{
    static const struct {
        const char *init, *rule;
    } rows[] = {{NULL, "const(0)"},
                {"*: ones", "const(0)"},
                {"a: const(1/N)", "const(1/N) = 0.5"}};
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_pair p;
        tb_settings s = tiny();
        s.init = rows[i].init;
        TB_OKAY(T, open_pair(T, "rezero", &s, TB_F32, &p));
        TB_STR(T, rule_of(&p, "layers.0.a"), rows[i].rule);
        close_pair(T, &p);
    }
}

/* Starts by a rule in the text, and what init: makes of them. */
TB_TEST(starts_by_rule)
{
    static const char *const text =
        "A = matrix(2, 3, identity); w = vector(onehot(l + 1), size=3)\n"
        "x = mix(A, x, x, F(x), row=2) + mix(w, x, x, x)";
    static const struct {
        const char *init, *name, *rule;
        double numbers[6];
    } rows[] = {
        {NULL, "layers.1.A", "identity", {1, 0, 0, 0, 1, 0}},
        {"*: ones", "layers.1.A", "identity", {1, 0, 0, 0, 1, 0}},
        {"A: const(2)", "layers.0.A", "const(2)", {2, 2, 2, 2, 2, 2}},
        {NULL, "layers.0.w", "onehot(l + 1) = 2", {0, 1, 0}},
        {NULL, "layers.1.w", "onehot(l + 1) = 3", {0, 0, 1}},
        {"w: onehot(1)", "layers.1.w", "onehot(1)", {1, 0, 0}},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_pair p;
        tb_settings s = tiny();
        double got[6] = {0};
        s.init = rows[i].init;
        TB_OKAY(T, open_pair(T, text, &s, TB_F64, &p));
        TB_STR(T, rule_of(&p, rows[i].name), rows[i].rule);
        const tb_view *v = tb_model_view(p.m, rows[i].name);
        TB_REQUIRE(T, v && v->count <= TB_LEN(got));
        TB_OKAY(T, tb_model_init_view(p.m, v, 1, got));
        TB_SAME(T, got, rows[i].numbers, sizeof got);
        close_pair(T, &p);
    }
}

TB_TEST(refused_starts)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"x = vector(onehot(9))*x", "onehot: got 9, wanted a whole number from "
                                    "1 to 8, the elements of layers.0.vector"},
        {"x = vector(onehot(0))*x", "onehot: got 0"},
        {"x = vector(onehot(1.5))*x", "onehot: got 1.5"},
        {"x = vector(identity)*x", "identity: needs a matrix, layers.0.vector"},
        {"x = scalar(onehot(1))*x", "onehot: needs a vector"},
        {"x = mix(matrix(2, 1, onehot(1)), x)", "onehot: needs a vector"},
        {"x = vector(normal(-1))*x", "normal: got -1, wanted at least 0"},
        {"x = x\ninit: head: identity; embed.token: onehot(1)",
         "onehot: needs a vector, embed.token.weight is none"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_pair p;
        tb_settings s = tiny();
        TB_FAILS(T, open_pair(T, rows[i].text, &s, TB_F32, &p), TB_ERR_PARSE,
                 rows[i].message);
        close_pair(T, &p);
    }
}

TB_TEST(refused)
{
    static const struct {
        const char *init, *message;
    } rows[] = {
        {"attn.z: zeros", "'attn.z' matches no weight"},
        {"attn.q, bogus: zeros", "--init:2:13: 'bogus' matches no weight"},
        {"attn.q: zero", "did you mean 'zeros'?"},
        {"attn.q: normal", "'normal' takes 1 argument, got 0"},
        {"attn.q: zeros(1)", "'zeros' takes 0 arguments, got 1"},
        {"attn.q: normal(-1)", "normal: got -1, wanted at least 0"},
        {"attn.q: normal(1/0)", "zero"},
        {"attn.q.bias: xavier", "needs a matrix"},
        {"head: normal(l)", "l"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_pair p;
        tb_settings s = tiny();
        s.init = rows[i].init;
        TB_FAILS(T, open_pair(T, "pre-ln", &s, TB_F32, &p), TB_ERR_PARSE,
                 rows[i].message);
        close_pair(T, &p);
    }
}

/* --- numbers ------------------------------------------------------------- */

static double std_of(tb_dtype t, const void *x, size_t n)
{
    double mean = 0, var = 0;
    for (size_t i = 0; i < n; i++)
        mean += tb_test_get(t, x, i) / (double)n;
    for (size_t i = 0; i < n; i++) {
        double d = tb_test_get(t, x, i) - mean;
        var += d * d / (double)n;
    }
    return tb_sqrt(var);
}

static double view_std(tb_test *T, const tb_pair *p, const char *name)
{
    const tb_view *v = tb_model_view(p->m, name);
    double std = __builtin_nan("");
    if (!v)
        return std;
    void *x = tb_alloc(T->ctx, v->count, tb_dtype_size(p->m->dtype));
    if (x && tb_model_init_view(p->m, v, 1, x) == TB_OK)
        std = std_of(p->m->dtype, x, v->count);
    tb_free(T->ctx, x);
    return std;
}

/* C045: beta (N = 9) on a 4096 x 512 matrix, not on queries and keys. */
TB_TEST(deepnorm)
{
    tb_pair p;
    tb_settings s = tiny();
    s.depth = 9;
    s.width = 512;
    s.ffn = 4096;
    TB_OKAY(T, open_pair(T, "deepnorm", &s, TB_F32, &p));
    TB_NEAR(T, view_std(T, &p, "layers.4.ffn.up.weight"), 0.00715197, 1.1e-5);
    TB_NEAR(T, view_std(T, &p, "layers.4.attn.q.weight"), 0.0441942, 2e-4);
    TB_NEAR(T, view_std(T, &p, "layers.4.attn.v.weight"), 0.0441942 * 0.3432945,
            1e-4);
    close_pair(T, &p);
}

/* C049: residual projections of GPT-2 small, and the rule as printed. */
TB_TEST(gpt2_residual_scale)
{
    tb_pair p;
    tb_settings s = tiny();
    s.depth = 12;
    s.width = 768;
    s.heads = 12;
    TB_OKAY(T, open_pair(T, "gpt-2", &s, TB_F32, &p));
    TB_NEAR(T, view_std(T, &p, "layers.0.attn.o.weight"), 0.004082483, 2e-5);
    TB_NEAR(T, view_std(T, &p, "layers.11.ffn.down.weight"), 0.004082483, 2e-5);
    TB_NEAR(T, view_std(T, &p, "layers.11.ffn.up.weight"), 0.02, 1e-4);
    const char *rule = rule_of(&p, "layers.0.attn.o.weight");
    TB_CHECK(T, strstr(rule, "= 0.00408248") != NULL);
    close_pair(T, &p);
}

TB_TEST(uniform_and_orthogonal)
{
    tb_pair p;
    tb_settings s = tiny();
    s.width = 64;
    s.init = "attn.q: uniform(0.5); attn.k: xavier_uniform(2); "
             "ffn.up, ffn.down, attn.v: orthogonal(3)";
    TB_OKAY(T, open_pair(T, "pre-ln", &s, TB_F64, &p));
    TB_OKAY(T, tb_model_init(p.m, 4));
    const double *w = p.m->params;
    const tb_view *q = tb_model_view(p.m, "layers.0.attn.q.weight");
    TB_NEAR(T, view_std(T, &p, q->name), 0.5 / tb_sqrt(3), 0.01);
    TB_NEAR(T, view_std(T, &p, "layers.0.attn.k.weight"), 2.0 / 8, 0.01);
    for (size_t i = 0; i < q->count; i++)
        TB_CHECK(T, tb_fabs(w[q->offset + i]) <= 0.5);
    static const char *const names[] = {"layers.0.ffn.up.weight",
                                        "layers.1.ffn.down.weight",
                                        "layers.1.attn.v.weight"};
    for (size_t k = 0; k < TB_LEN(names); k++) {
        const tb_view *v = tb_model_view(p.m, names[k]);
        size_t h = v->shape.height, d = v->shape.width;
        bool rows = h <= d;
        size_t n = rows ? h : d, len = rows ? d : h;
        double worst = 0;
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b <= a; b++) {
                double dot = 0;
                for (size_t i = 0; i < len; i++)
                    dot += w[v->offset + (rows ? a * d + i : i * d + a)] *
                           w[v->offset + (rows ? b * d + i : i * d + b)];
                double off = tb_fabs(dot - (a == b ? 9.0 : 0.0));
                worst = off > worst ? off : worst;
            }
        TB_CHECK(T, worst < 1e-13);
    }
    close_pair(T, &p);
}

/* A value depends on seed, name and element: not on depth, type or order. */
TB_TEST(pure_function_of_the_name)
{
    tb_pair shallow, deep;
    tb_settings s = tiny();
    TB_OKAY(T, open_pair(T, "pre-ln", &s, TB_F32, &shallow));
    s.depth = 17;
    s.tied = 1;
    s.context = 4;
    TB_OKAY(T, open_pair(T, "pre-ln", &s, TB_F64, &deep));
    TB_OKAY(T, tb_model_init(shallow.m, 8));
    TB_OKAY(T, tb_model_init(deep.m, 8));
    const tb_view *a = tb_model_view(shallow.m, "layers.1.ffn.up.weight");
    const tb_view *b = tb_model_view(deep.m, "layers.1.ffn.up.weight");
    const tb_view *c = tb_model_view(deep.m, "layers.2.ffn.up.weight");
    const float *x = shallow.m->params;
    const double *y = deep.m->params;
    size_t same = 0;
    for (size_t i = 0; i < a->count; i++) {
        TB_CHECK(T, x[a->offset + i] == (float)y[b->offset + i]);
        same += y[b->offset + i] == y[c->offset + i];
    }
    TB_CHECK(T, same == 0);
    double alone[256];
    TB_REQUIRE(T, b->count <= TB_LEN(alone));
    TB_OKAY(T, tb_model_init_view(deep.m, b, 8, alone));
    TB_SAME(T, alone, y + b->offset, b->count * sizeof *alone);
    TB_OKAY(T, tb_model_init_view(deep.m, b, 9, alone));
    TB_CHECK(T, alone[0] != y[b->offset]);
    close_pair(T, &shallow);
    close_pair(T, &deep);
}

enum { PARAMETER_BYTES = 1 << 16 };

/* All parameters of a small model, as bytes. */
static void parameters_of(tb_test *T, const char *init, tb_dtype dtype,
                          uint64_t seed, unsigned char *out, size_t *bytes)
{
    tb_pair p;
    tb_settings s = tiny();
    s.init = init;
    TB_OKAY(T, open_pair(T, "pre-ln", &s, dtype, &p));
    TB_OKAY(T, tb_model_init(p.m, seed));
    *bytes = p.m->nelements * tb_dtype_size(dtype);
    TB_REQUIRE(T, *bytes <= PARAMETER_BYTES);
    memcpy(out, p.m->params, *bytes);
    close_pair(T, &p);
}

/* Numbers that are kept are those that would be drawn: of either type, for
 * other scales, where there is no room for all, and where memory ends. */
TB_TEST(kept_draws)
{
    static const char *const inits[] = {"*: xavier", "*: normal(0.3)",
                                        "ffn.*: orthogonal"};
    unsigned char *want = tb_alloc(T->ctx, PARAMETER_BYTES, 1),
                  *got = tb_alloc(T->ctx, PARAMETER_BYTES, 1);
    size_t n = 0, again = 0;
    TB_REQUIRE(T, want && got);
    for (size_t most = 100; most <= 1000000; most *= 100)
        for (size_t i = 0; i < 12; i++) {
            const char *init = inits[i / 2 % 3];
            tb_dtype dtype = i % 2 ? TB_F64 : TB_F32;
            TB_OKAY(T, tb_model_keep_draws(T->ctx, 0));
            parameters_of(T, init, dtype, i / 6, want, &n);
            TB_OKAY(T, tb_model_keep_draws(T->ctx, most));
            for (size_t k = 0; k < 6; k++) /* others before it */
                parameters_of(T, inits[k % 3], k % 2 ? TB_F32 : TB_F64, k / 3,
                              got, &again);
            parameters_of(T, init, dtype, i / 6, got, &again);
            TB_CHECK(T, again == n);
            TB_SAME(T, got, want, n);
        }
    TB_OKAY(T, tb_model_keep_draws(T->ctx, 0));
    tb_free(T->ctx, want);
    tb_free(T->ctx, got);
}

/* Without memory for what is kept a model starts all the same. */
TB_TEST(kept_draws_without_memory)
{
    tb_pair p;
    tb_settings s = tiny();
    TB_OKAY(T, open_pair(T, "pre-ln", &s, TB_F64, &p));
    TB_OKAY(T, tb_model_init(p.m, 3));
    double *want = tb_alloc(T->ctx, p.m->nelements, sizeof *want);
    TB_REQUIRE(T, want);
    memcpy(want, p.m->params, p.m->nelements * sizeof *want);
    for (size_t n = 1; n < 12; n++) {
        TB_OKAY(T, tb_model_keep_draws(T->ctx, 100000));
        tb_ctx_fail_alloc_at(T->ctx, n);
        TB_OKAY(T, tb_model_init(p.m, 3));
        tb_ctx_fail_alloc_at(T->ctx, 0);
        TB_STR(T, tb_error(T->ctx), "");
        TB_SAME(T, p.m->params, want, p.m->nelements * sizeof *want);
    }
    TB_OKAY(T, tb_model_keep_draws(T->ctx, 0));
    tb_free(T->ctx, want);
    close_pair(T, &p);
}

TB_TEST(same_values_for_any_thread_count)
{
    tb_pair p;
    tb_settings s = tiny();
    s.width = 64;
    TB_OKAY(T, open_pair(T, "pre-ln", &s, TB_F32, &p));
    const tb_view *v = tb_model_view(p.m, "layers.0.ffn.up.weight");
    float *x = tb_alloc(T->ctx, v->count, sizeof *x);
    float *y = tb_alloc(T->ctx, v->count, sizeof *y);
    TB_REQUIRE(T, x && y);
    tb_ctx_threads(T->ctx, 1);
    TB_OKAY(T, tb_model_init_view(p.m, v, 8, x));
    tb_ctx_threads(T->ctx, 3);
    TB_OKAY(T, tb_model_init_view(p.m, v, 8, y));
    tb_ctx_threads(T->ctx, 0);
    TB_SAME(T, x, y, v->count * sizeof *x);
    tb_free(T->ctx, x);
    tb_free(T->ctx, y);
    close_pair(T, &p);
}

/* C127: a head of zeros predicts every id alike. (Reference products: leak
 * checkers trip over the thread-local data of loaded libraries.) */
TB_TEST(untrained_loss)
{
    static const struct {
        size_t vocab;
        double loss;
    } rows[] = {{50257, 10.8249051}, {65, 4.1743873}, {256, 5.5451774}};
    static const int32_t ids[6] = {0, 1, 2, 64, 3, 5};
    tb_ctx_exact(T->ctx, true);
    for (size_t i = 0; i < TB_LEN(rows); i++)
        for (int f64 = 0; f64 < 2; f64++) {
            tb_pair p;
            double loss;
            tb_settings s = tiny();
            s.vocab = rows[i].vocab;
            s.init = "head: zeros";
            TB_OKAY(T, open_pair(T, "post-ln", &s, f64 ? TB_F64 : TB_F32, &p));
            TB_OKAY(T, tb_model_init(p.m, 1));
            TB_OKAY(T, tb_model_bind(p.m, 1, 6, 0));
            tb_batch batch = {.tokens = ids, .targets = ids};
            TB_OKAY(T, tb_model_forward(p.m, &batch, &loss));
            TB_NEAR(T, loss, rows[i].loss, 1e-7);
            close_pair(T, &p);
        }
}

/* Uniform attention: every causal row averages what it sees. */
TB_TEST(uniform_attention)
{
    tb_pair p;
    tb_settings s = tiny();
    s.uniform_attention = 1;
    s.init = "attn.q: normal(3)";
    TB_OKAY(T, open_pair(T, "pre-ln", &s, TB_F64, &p));
    TB_STR(T, rule_of(&p, "layers.0.attn.q.weight"),
           "zeros (uniform attention)");
    TB_NEAR(T, view_std(T, &p, "layers.1.attn.k.weight"), 0, 0);
    TB_CHECK(T, view_std(T, &p, "layers.1.attn.v.weight") > 0);
    close_pair(T, &p);
}
