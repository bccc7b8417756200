/* SPDX-License-Identifier: MIT */
/* Profiled start values against the formula of Admin (Liu L. et al. 2020):
 * w_1 = 1, w_{k+1}^2 = Var[w_k x_k] + Var[f_k]. The variances are measured
 * here, in a pass of the finished model that knows nothing of profiling. */
#include "model_help.h"
#include "model/parts.h"

enum { DEPTH = 4, TIME = 16, BATCH = 3, VOCAB = 29 };

typedef struct tb_pair {
    tb_block *b;
    tb_model *m;
} tb_pair;

static tb_settings tiny(void)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = DEPTH;
    s.width = 24;
    s.heads = 2;
    s.context = TIME;
    s.vocab = VOCAB;
    return s;
}

static tb_status open_pair(tb_test *T, const char *what, const tb_settings *s,
                           tb_pair *p)
{
    memset(p, 0, sizeof *p);
    TB_TRY(tb_block_load(T->ctx, what, &p->b));
    return tb_model_create(T->ctx, p->b, s, TB_F64, &p->m);
}

static void close_pair(tb_test *T, tb_pair *p)
{
    tb_model_destroy(p->m);
    if (p->b)
        tb_block_destroy(T->ctx, p->b);
}

/* The first element of a view; all must be the same. */
static double value_of(tb_test *T, const tb_model *m, const char *name)
{
    const tb_view *v = tb_model_view(m, name);
    if (!v) {
        tb_test_fail(T, __FILE__, __LINE__, "no %s", name);
        return __builtin_nan("");
    }
    const double *x = (const double *)m->params + v->offset;
    for (size_t i = 1; i < v->count; i++)
        TB_CHECK(T, x[i] == x[0]);
    return x[0];
}

static double omega(tb_test *T, const tb_model *m, size_t k)
{
    char name[64];
    tb_format(name, sizeof name, "layers.%zu.%s.vector", k / 2,
              k % 2 ? "ffn" : "attn");
    return value_of(T, m, name);
}

static double variance(const double *x, size_t n)
{
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        square += (x[i] - mean) * (x[i] - mean) / (double)n;
    return square;
}

static void make_tokens(tb_test *T, int32_t *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tokens[i] = (int32_t)(tb_test_uniform(T) * VOCAB);
}

/* Variances of the branches and of the stream below each sublayer, of a
 * bound model after a forward. */
static void measure(tb_test *T, tb_model *m, const tb_batch *batch, double *f,
                    double *x)
{
    size_t n = m->bound->batch * m->bound->time[0] * m->sizes.s.width;
    for (size_t l = 1; l <= DEPTH; l++) {
        const tb_graph *g = tb_model_graph(m, l);
        tb_run r;
        TB_OKAY(T, tb_model_run(m, l, batch, &r));
        for (int i = 0; i < g->nregions; i++) {
            size_t k = 2 * (l - 1) + (size_t)i;
            const void *in =
                i ? tb_plan_value(&r, g->boundaries[i].node) : r.inputs[0];
            f[k] = variance(tb_plan_value(&r, g->regions[i].out), n);
            x[k] = variance(in, n);
        }
    }
}

static void check_formula(tb_test *T, tb_model *m, const tb_batch *batch,
                          size_t B, size_t time, double norm_tolerance)
{
    double f[2 * DEPTH], x[2 * DEPTH], loss;
    TB_OKAY(T, tb_model_bind(m, B, time, TB_PASS_KEEP));
    TB_OKAY(T, tb_model_forward(m, batch, &loss));
    measure(T, m, batch, f, x);
    TB_NEAR(T, omega(T, m, 0), 1, 0);
    for (size_t k = 0; k + 1 < 2 * DEPTH; k++) {
        double w = omega(T, m, k), next = omega(T, m, k + 1);
        TB_NEAR(T, next * next, w * w * x[k] + f[k], 1e-12);
        if (k > 0) /* a norm's output has variance 1, but for eps */
            TB_NEAR(T, next * next - w * w, f[k], norm_tolerance);
    }
}

TB_TEST(the_formula_on_given_tokens)
{
    static const double eps[] = {1e-14, 1e-5};
    for (size_t i = 0; i < TB_LEN(eps); i++) {
        tb_pair p;
        tb_settings s = tiny();
        int32_t tokens[BATCH * TIME];
        s.eps = eps[i];
        make_tokens(T, tokens, TB_LEN(tokens));
        const tb_batch batch = {.tokens = tokens};
        TB_OKAY(T, open_pair(T, "admin", &s, &p));
        TB_OKAY(T, tb_model_init(p.m, 3));
        TB_OKAY(T, tb_model_profile(p.m, &batch, BATCH, TIME));
        check_formula(T, p.m, &batch, BATCH, TIME, eps[i] < 1e-6 ? 1e-6 : 1e-3);
        close_pair(T, &p);
    }
}

/* What tb_model_init does by itself: its tokens, as documented, are draws of
 * the stream "profile". */
TB_TEST(the_formula_at_init)
{
    tb_pair p;
    tb_settings s = tiny();
    int32_t tokens[TIME];
    const tb_rng r = tb_rng_make(11, "profile");
    for (size_t i = 0; i < TIME; i++)
        tokens[i] = (int32_t)tb_rng_below(r, i, VOCAB);
    const tb_batch batch = {.tokens = tokens, .seed = 11};
    TB_OKAY(T, open_pair(T, "admin", &s, &p));
    TB_OKAY(T, tb_model_init(p.m, 11));
    check_formula(T, p.m, &batch, 1, TIME, 1e-3);
    close_pair(T, &p);
}

/* Training mode: the branches' variances are those behind dropout. */
TB_TEST(with_dropout)
{
    tb_pair p;
    tb_settings s = tiny();
    int32_t tokens[BATCH * TIME];
    make_tokens(T, tokens, TB_LEN(tokens));
    const tb_batch batch = {.tokens = tokens, .seed = 5};
    s.dropout = 0.3;
    TB_OKAY(T, open_pair(T, "admin", &s, &p));
    TB_OKAY(T, tb_model_init(p.m, 3));
    TB_OKAY(T, tb_model_profile(p.m, &batch, BATCH, TIME));
    check_formula(T, p.m, &batch, BATCH, TIME, 1e-3);
    close_pair(T, &p);
}

/* Scalars do as well; x on the left, a difference, and a sum of three. */
TB_TEST(other_spellings)
{
    static const struct {
        const char *text;
        bool same; /* as admin */
    } rows[] = {
        {"x = norm(F(x) + x*vector(7))\ninit: *.vector: profiled", true},
        {"x = norm(vector(1)*x - F(x))\ninit: *.vector: profiled", true},
        {"a = vector(1); x = norm(a*x + attn(x))\n"
         "b = vector(1); x = norm(b*x + ffn(x))\ninit: a, b: profiled",
         false},
        {"a = scalar(1); x = norm(a*x + attn(x) + ffn(x))\ninit: a: profiled",
         false},
        {"stem: s = scalar(1); x = s*x + norm(x)\nblock: x = x + F(norm(x))\n"
         "init: stem.s: profiled",
         false},
    };
    tb_settings s = tiny();
    tb_pair admin, p;
    TB_OKAY(T, open_pair(T, "admin", &s, &admin));
    TB_OKAY(T, tb_model_init(admin.m, 4));
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        TB_OKAY(T, open_pair(T, rows[i].text, &s, &p));
        TB_OKAY(T, tb_model_init(p.m, 4));
        for (size_t k = 0; rows[i].same && k < 2; k++)
            TB_NEAR(T, omega(T, p.m, k), omega(T, admin.m, k), 1e-12);
        close_pair(T, &p);
    }
    TB_OKAY(T, open_pair(T, rows[2].text, &s, &p)); /* the same, by name */
    TB_OKAY(T, tb_model_init(p.m, 4));
    TB_NEAR(T, value_of(T, p.m, "layers.0.b"), omega(T, admin.m, 1), 1e-12);
    close_pair(T, &p);
    close_pair(T, &admin);
}

/* Three terms: Var[a x] + Var attn + Var ffn. */
TB_TEST(a_sum_of_three)
{
    tb_pair p;
    tb_settings s = tiny();
    int32_t tokens[BATCH * TIME];
    double f[2 * DEPTH], x[2 * DEPTH], loss;
    make_tokens(T, tokens, TB_LEN(tokens));
    const tb_batch batch = {.tokens = tokens};
    TB_OKAY(T, open_pair(T,
                         "a = scalar(1); x = norm(a*x + attn(x) + ffn(x))\n"
                         "init: a: profiled",
                         &s, &p));
    TB_OKAY(T, tb_model_init(p.m, 4));
    TB_OKAY(T, tb_model_profile(p.m, &batch, BATCH, TIME));
    TB_OKAY(T, tb_model_bind(p.m, BATCH, TIME, TB_PASS_KEEP));
    TB_OKAY(T, tb_model_forward(p.m, &batch, &loss));
    size_t n = BATCH * TIME * s.width;
    for (size_t l = 1; l < DEPTH; l++) {
        const tb_graph *g = tb_model_graph(p.m, l);
        char name[32];
        tb_run r;
        TB_OKAY(T, tb_model_run(p.m, l, &batch, &r));
        for (int i = 0; i < 2; i++)
            f[i] = variance(tb_plan_value(&r, g->regions[i].out), n);
        x[0] = variance(r.inputs[0], n);
        tb_format(name, sizeof name, "layers.%zu.a", l - 1);
        double a = value_of(T, p.m, name);
        tb_format(name, sizeof name, "layers.%zu.a", l);
        double next = value_of(T, p.m, name);
        TB_NEAR(T, next * next, a * a * x[0] + f[0] + f[1], 1e-12);
    }
    close_pair(T, &p);
}

TB_TEST(seeds)
{
    tb_pair a, b;
    tb_settings s = tiny();
    TB_OKAY(T, open_pair(T, "admin", &s, &a));
    TB_OKAY(T, open_pair(T, "admin", &s, &b));
    TB_OKAY(T, tb_model_init(a.m, 1));
    TB_OKAY(T, tb_model_init(b.m, 2));
    TB_CHECK(T, omega(T, a.m, 1) != omega(T, b.m, 1));
    TB_OKAY(T, tb_model_init(b.m, 1)); /* nothing of the first is left */
    TB_SAME(T, b.m->params, a.m->params, a.m->nelements * sizeof(double));
    close_pair(T, &b);
    /* a deeper stack of the same seed begins with the same values */
    s.depth = DEPTH + 3;
    TB_OKAY(T, open_pair(T, "admin", &s, &b));
    TB_OKAY(T, tb_model_init(b.m, 1));
    for (size_t k = 0; k < 2 * DEPTH; k++)
        TB_CHECK(T, omega(T, a.m, k) == omega(T, b.m, k));
    close_pair(T, &b);
    close_pair(T, &a);
}

/* The last layer rewrites nothing of a binding that the caller has. */
TB_TEST(the_binding_stays)
{
    tb_pair p;
    tb_settings s = tiny();
    int32_t tokens[BATCH * TIME];
    double before, after;
    make_tokens(T, tokens, TB_LEN(tokens));
    const tb_batch batch = {.tokens = tokens, .targets = tokens};
    TB_OKAY(T, open_pair(T, "admin", &s, &p));
    TB_OKAY(T, tb_model_init(p.m, 1));
    TB_OKAY(T, tb_model_bind(p.m, BATCH, TIME, 0));
    const tb_bound *bound = p.m->bound;
    TB_OKAY(T, tb_model_forward(p.m, &batch, &before));
    TB_OKAY(T, tb_model_init(p.m, 1));
    TB_CHECK(T, p.m->bound == bound);
    TB_OKAY(T, tb_model_forward(p.m, &batch, &after));
    TB_NEAR(T, after, before, 0);
    close_pair(T, &p);
}

/* With every omega 1 it is Post-LN, bit for bit. */
TB_TEST(omega_1_is_post_ln)
{
    tb_pair admin, post;
    tb_settings s = tiny();
    int32_t tokens[TIME];
    double loss[2];
    make_tokens(T, tokens, TIME);
    const tb_batch batch = {.tokens = tokens, .targets = tokens};
    TB_OKAY(T, open_pair(T, "post-ln", &s, &post));
    s.init = "*.vector: ones";
    TB_OKAY(T, open_pair(T, "admin", &s, &admin));
    tb_model *const m[] = {admin.m, post.m};
    for (int i = 0; i < 2; i++) {
        TB_OKAY(T, tb_model_init(m[i], 9));
        TB_OKAY(T, tb_model_bind(m[i], 1, TIME, 0));
        TB_OKAY(T, tb_model_forward(m[i], &batch, &loss[i]));
    }
    TB_SAME(T, tb_model_logits(admin.m), tb_model_logits(post.m),
            TIME * VOCAB * sizeof(double));
    TB_NEAR(T, loss[0], loss[1], 0);
    close_pair(T, &admin);
    close_pair(T, &post);
}

TB_TEST(refused)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"x = x + F(norm(x))\ninit: attn.q: profiled",
         "2:15: profiled: needs a learned scalar or vector, "
         "layers.0.attn.q.weight is none"},
        {"x = x + F(norm(x))\ninit: *.gain: profiled",
         "profiled: needs a learned scalar or vector"},
        {"x = x + F(norm(x))\ninit: embed.token: profiled",
         "profiled: needs a learned scalar or vector"},
        {"a = scalar(1); x = norm(a*x + F(x))\ninit: a: profiled",
         "2:10: profiled: layers.0.a is wanted in one place of the block: "
         "write vector(1) in place"},
        {"x = vector(1)*norm(x + F(x))\ninit: *.vector: profiled",
         "profiled: layers.0.attn.vector is wanted as a factor in a sum: "
         "w*x + F(x)"},
        {"a = scalar(1); x = x/a + ffn(x)\ninit: a: profiled",
         "wanted as a factor in a sum"},
        {"a = scalar(1); b = scalar(1); x = a*b*x + ffn(x)\n"
         "init: a: profiled",
         "wanted as a factor in a sum"},
        {"x = x + F(norm(x))\ninit: attn.q: profiled(1)",
         "'profiled' takes 0 arguments, got 1"},
        {"x = x + F(norm(x))\ninit: attn.q: profile",
         "did you mean 'profiled'?"},
    };
    tb_settings s = tiny();
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_pair p;
        TB_FAILS(T, open_pair(T, rows[i].text, &s, &p), TB_ERR_PARSE,
                 rows[i].message);
        close_pair(T, &p);
    }
}

/* A stream that is all zeros has no standard deviation to divide by. */
TB_TEST(nothing_to_measure)
{
    tb_pair p;
    tb_settings s = tiny();
    s.norm = "rmsnorm";
    s.init = "*, embed.*: zeros";
    TB_OKAY(T, open_pair(T, "admin", &s, &p));
    TB_FAILS(T, tb_model_init(p.m, 1), TB_ERR_NONFINITE,
             "layers.0.attn.vector: profiled: got standard deviation 0 behind "
             "it, wanted a number above 0");
    TB_CHECK(T, p.m->bound == NULL);
    close_pair(T, &p);
}

TB_TEST(memory_runs_out)
{
    tb_settings s = tiny();
    tb_status status = TB_ERR_MEMORY;
    tb_pair p;
    size_t n = 0;
    s.depth = 2;
    /* the first matrix product makes what the context keeps */
    TB_OKAY(T, open_pair(T, "admin", &s, &p));
    TB_OKAY(T, tb_model_init(p.m, 1));
    close_pair(T, &p);
    size_t before = tb_ctx_blocks(T->ctx);
    while (status == TB_ERR_MEMORY && ++n < 5000) {
        TB_OKAY(T, open_pair(T, "admin", &s, &p));
        tb_ctx_fail_alloc_at(T->ctx, n);
        status = tb_model_init(p.m, 1);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        close_pair(T, &p);
        TB_REQUIRE(T, tb_ctx_blocks(T->ctx) == before);
    }
    TB_CHECK(T, status == TB_OK && n > 10);
}
