/* SPDX-License-Identifier: MIT */
/* Models of two stacks and of an encoder alone: gradients against central
 * differences, memories of another length, padding and rows that see nothing
 * (C074, C075, C077, C078), and what a padded token may not change. */
#include "model/symbolic.h"
#include "model_help.h"

enum { B = 3, T_ = 4, S_ = 7, VOCAB = 13, SAMPLES = 1 };

typedef struct rig {
    tb_block *block;
    tb_model *m;
    int32_t tokens[B * T_], targets[B * T_], source[B * S_];
    unsigned char keep[B * T_], source_keep[B * S_];
    tb_batch batch;
    double *grads;
    size_t logits;
} rig;

static tb_settings tiny(int stack)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.stack = stack;
    s.depth = 1;
    s.decoder_depth = stack == TB_STACKS_BOTH ? 2 : 0;
    s.width = 8;
    s.heads = 2;
    s.ffn = 12;
    s.context = 8;
    s.vocab = VOCAB;
    return s;
}

static void fill(tb_test *T, rig *r, bool padding)
{
    const tb_settings *s = &r->m->sizes.s;
    for (int i = 0; i < B * S_; i++) {
        r->source[i] = (int32_t)(tb_test_uniform(T) * VOCAB);
        r->source_keep[i] = 1;
    }
    for (int i = 0; i < B * T_; i++) {
        size_t outputs = tb_settings_outputs(s);
        r->tokens[i] = (int32_t)(tb_test_uniform(T) * VOCAB);
        r->targets[i] = (int32_t)(tb_test_uniform(T) * (double)outputs);
        r->keep[i] = 1;
        if (s->classes && i % T_)
            r->targets[i] = -1;
    }
    r->batch = (tb_batch){
        .tokens = r->tokens,
        .targets = r->targets,
        .seed = 4,
        .source = s->stack == TB_STACKS_BOTH ? r->source : NULL,
        .keep = padding ? r->keep : NULL,
        .source_keep = padding ? r->source_keep : NULL,
    };
}

/* Start values and noise on top, so that nothing is 0 or 1 by design. */
static tb_status open_rig(tb_test *T, const char *what, const tb_settings *s,
                          rig *r)
{
    memset(r, 0, sizeof *r);
    TB_TRY(tb_block_load(T->ctx, what, &r->block));
    TB_TRY(tb_model_create(T->ctx, r->block, s, TB_F64, &r->m));
    TB_TRY(tb_model_init(r->m, 5));
    TB_TRY(tb_model_bind_source(r->m, B, T_, S_, TB_PASS_BWD));
    double *w = r->m->params;
    for (size_t v = 0; v < r->m->nviews; v++)
        for (size_t i = 0; i < r->m->views[v].count; i++)
            w[r->m->views[v].offset + i] += 0.2 * tb_test_normal(T);
    fill(T, r, s->padding);
    r->logits = (size_t)B * T_ * tb_settings_outputs(&r->m->sizes.s);
    r->grads = tb_alloc(T->ctx, r->m->nelements, sizeof *r->grads);
    return r->grads ? TB_OK : TB_ERR_MEMORY;
}

static void close_rig(tb_test *T, rig *r)
{
    tb_free(T->ctx, r->grads);
    tb_model_destroy(r->m);
    if (r->block)
        tb_block_destroy(T->ctx, r->block);
}

static double loss_of(tb_test *T, rig *r)
{
    double loss = 0;
    if (tb_model_forward(r->m, &r->batch, &loss) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    return loss;
}

static void run(tb_test *T, rig *r)
{
    loss_of(T, r);
    memset(r->grads, 0, r->m->nelements * sizeof *r->grads);
    TB_OKAY(T, tb_model_backward(r->m, &r->batch, r->grads));
}

static void check_view(tb_test *T, rig *r, const char *what, const tb_view *v)
{
    double *w = (double *)r->m->params + v->offset;
    const double *g = r->grads + v->offset;
    double largest = 0;
    for (size_t i = 0; i < v->count; i++)
        largest = tb_fabs(g[i]) > largest ? tb_fabs(g[i]) : largest;
    for (int k = 0; k < SAMPLES; k++) {
        size_t i = (size_t)(tb_test_uniform(T) * (double)v->count);
        double h = 1e-5, keep = w[i];
        w[i] = keep + h;
        double up = loss_of(T, r);
        w[i] = keep - h;
        double d = (up - loss_of(T, r)) / (2 * h);
        w[i] = keep;
        if (!(tb_fabs(d - g[i]) <= 2e-6 * largest + 2e-9))
            tb_test_fail(T, __FILE__, __LINE__,
                         "%s: %s[%zu] gradient %g, difference %g", what,
                         v->name, i, g[i], d);
    }
}

static void check_model(tb_test *T, const char *what, const tb_settings *s)
{
    rig r;
    if (open_rig(T, what, s, &r) != TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", what, tb_error(T->ctx));
    } else {
        if (s->padding)
            r.keep[T_ - 1] = r.source_keep[S_ - 1] = r.source_keep[S_] = 0;
        run(T, &r);
        for (size_t v = 0; v < r.m->nviews; v++)
            check_view(T, &r, what, &r.m->views[v]);
    }
    close_rig(T, &r);
}

/* --- gradients -------------------------------------------------------------
 */

/* The text names sublayers, and cross is not among them. */
static bool leaves_cross_out(tb_test *T, const char *name, const tb_settings *s)
{
    tb_block *b;
    tb_model *m;
    if (tb_block_load(T->ctx, name, &b) != TB_OK)
        return false;
    tb_status status = tb_model_create(T->ctx, b, s, TB_F64, &m);
    bool out =
        status != TB_OK && strstr(tb_error(T->ctx), "no decoder block reads");
    if (status != TB_OK)
        TB_CHECK(T, out);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
    tb_error_clear(T->ctx);
    return out;
}

TB_TEST(built_in_blocks)
{
    tb_settings both = tiny(TB_STACKS_BOTH);
    size_t n = 0;
    both.depth = 2; /* a text may halve the stack */
    both.decoder_depth = 1;
    for (size_t i = 0; tb_builtins[i].name; i++) {
        const char *name = tb_builtins[i].name;
        if (strstr(tb_builtins[i].text, "stop("))
            continue;
        if (leaves_cross_out(T, name, &both))
            continue;
        check_model(T, name, &both);
        n++;
    }
    TB_CHECK(T, n >= 25);
}

TB_TEST(an_encoder_alone)
{
    tb_settings s = tiny(TB_STACKS_ENCODER);
    check_model(T, "bert", &s);
    check_model(T, "pre-ln", &s);
    s.padding = true;
    check_model(T, "post-ln", &s);
}

TB_TEST(with_padding_and_settings)
{
    tb_settings s = tiny(TB_STACKS_BOTH);
    s.padding = true;
    check_model(T, "pre-ln", &s);
    s.tied = 1;
    s.kv_heads = 1;
    s.bias = 0;
    s.positions = TB_POSITIONS_ROPE;
    check_model(T, "post-ln", &s);
    s.dropout = 0.2;
    s.positions = TB_POSITIONS_SINUSOIDAL;
    check_model(T, "sub-ln", &s);
}

TB_TEST(memory_in_many_places)
{
    tb_settings s = tiny(TB_STACKS_BOTH);
    check_model(T,
                "encoder stem: y = norm(x)\n"
                "encoder: y = y + ffn(x); x = norm(x + attn(y))\n"
                "encoder final: x = norm(x + y)\n"
                "decoder: n = norm(x)\n x = x + attn(n) + cross(n) + ffn(n)\n"
                "decoder final: x = norm(x)",
                &s);
    check_model(T,
                "decoder: m = norm(memory); x = x + mha(x, m, m); x = x + "
                "F(norm(x))\nblock: x = x + F(norm(x))",
                &s);
}

TB_TEST(not_every_block_reads_memory)
{
    tb_settings s = tiny(TB_STACKS_BOTH);
    check_model(T,
                "decoder block[l == 1]: x = x + attn(norm(x)) + ffn(norm(x))\n"
                "block: x = x + F(norm(x))",
                &s);
}

/* --- data ------------------------------------------------------------------
 */

TB_TEST(what_a_batch_must_hold)
{
    tb_settings s = tiny(TB_STACKS_BOTH);
    rig r;
    double loss;
    TB_OKAY(T, open_rig(T, "pre-ln", &s, &r));
    r.batch.source = NULL;
    TB_FAILS(T, tb_model_forward(r.m, &r.batch, &loss), TB_ERR_ARG,
             "source: got none, wanted what the encoder reads");
    r.batch.source = r.source;
    r.batch.keep = r.keep;
    TB_FAILS(T, tb_model_forward(r.m, &r.batch, &loss), TB_ERR_ARG,
             "keep: the model was made without padding");
    r.batch.keep = NULL;
    r.source[B * S_ - 1] = VOCAB;
    TB_FAILS(T, tb_model_forward(r.m, &r.batch, &loss), TB_ERR_INPUT,
             "source: got id 13 at row 21, wanted 0 to 12");
    close_rig(T, &r);
    s = tiny(TB_STACKS_DECODER);
    TB_OKAY(T, open_rig(T, "pre-ln", &s, &r));
    r.batch.source = r.source;
    TB_FAILS(T, tb_model_forward(r.m, &r.batch, &loss), TB_ERR_ARG,
             "source: got tokens, wanted none");
    close_rig(T, &r);
}

/* --- isolation -------------------------------------------------------------
 */

/* Logits of row b from token t on, n of them. */
static const double *logits_at(const rig *r, size_t b, size_t t)
{
    size_t v = tb_settings_outputs(&r->m->sizes.s);
    return (const double *)tb_model_logits(r->m) + (b * T_ + t) * v;
}

/* Copies of logits and gradients. */
typedef struct seen {
    double *logits, *grads;
} seen;

static seen look(tb_test *T, rig *r)
{
    seen s = {tb_alloc(T->ctx, r->logits, sizeof(double)),
              tb_alloc(T->ctx, r->m->nelements, sizeof(double))};
    run(T, r);
    memcpy(s.logits, tb_model_logits(r->m), r->logits * sizeof(double));
    memcpy(s.grads, r->grads, r->m->nelements * sizeof(double));
    return s;
}

static void forget(tb_test *T, seen s)
{
    tb_free(T->ctx, s.logits);
    tb_free(T->ctx, s.grads);
}

/* What stands at a padded place reaches nothing but itself, to the bit: not
 * the other tokens of its row, no other row, no gradient. */
TB_TEST(padded_tokens_are_not_seen)
{
    tb_settings s = tiny(TB_STACKS_BOTH);
    s.padding = true;
    rig r;
    TB_OKAY(T, open_rig(T, "pre-ln", &s, &r));
    size_t v = s.vocab;
    r.keep[2] = r.keep[3] = 0;
    r.targets[2] = r.targets[3] = -1;
    r.source_keep[S_ + 5] = r.source_keep[S_ + 6] = 0;
    seen a = look(T, &r);
    r.tokens[2] = (r.tokens[2] + 1) % VOCAB;
    r.source[S_ + 5] = (r.source[S_ + 5] + 1) % VOCAB;
    seen b = look(T, &r);
    TB_SAME(T, a.logits, b.logits, 2 * v * sizeof(double));
    TB_SAME(T, a.logits + T_ * v, b.logits + T_ * v,
            (r.logits - T_ * v) * sizeof(double));
    TB_SAME(T, a.grads, b.grads, r.m->nelements * sizeof(double));
    TB_CHECK(
        T, memcmp(a.logits + 2 * v, b.logits + 2 * v, v * sizeof(double)) != 0);
    forget(T, a);
    forget(T, b);
    close_rig(T, &r);
}

/* A padded batch computes what the shorter row computes alone. */
TB_TEST(padding_is_as_if_it_were_not_there)
{
    tb_settings s = tiny(TB_STACKS_BOTH);
    s.padding = true;
    rig r;
    TB_OKAY(T, open_rig(T, "post-ln", &s, &r));
    size_t v = s.vocab;
    r.source_keep[4] = r.source_keep[5] = r.source_keep[6] = 0;
    r.keep[3] = 0;
    seen a = look(T, &r);
    TB_OKAY(T, tb_model_bind_source(r.m, 1, 3, 4, 0));
    loss_of(T, &r);
    for (size_t i = 0; i < 3 * v; i++)
        TB_NEAR(T, logits_at(&r, 0, 0)[i], a.logits[i], 1e-13);
    forget(T, a);
    close_rig(T, &r);
}

/* C074: a row whose source is all padding, and queries that see no token of
 * their own, as causality and a padded beginning leave them. */
TB_TEST(rows_that_see_nothing)
{
    tb_settings s = tiny(TB_STACKS_BOTH);
    s.padding = true;
    rig r;
    TB_OKAY(T, open_rig(T, "pre-ln", &s, &r));
    size_t v = s.vocab;
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    memset(r.source_keep, 0, S_);
    r.keep[T_] = r.keep[T_ + 1] = 0; /* of row 1 */
    for (int i = 0; i < S_; i++)
        r.source[i] = VOCAB - 1; /* a word of this row's source only */
    for (int i = S_; i < B * S_; i++)
        r.source[i] %= VOCAB - 1;
    for (int i = 0; i < B * T_; i++)
        r.tokens[i] %= VOCAB - 1;
    seen a = look(T, &r);
    TB_CHECK(T, k->nonfinite(r.logits, a.logits) == 0);
    TB_CHECK(T, k->nonfinite(r.m->nelements, a.grads) == 0);
    const tb_view *e = tb_model_view(r.m, "embed.token.weight");
    const double *last = a.grads + e->offset + (VOCAB - 1) * s.width;
    for (size_t i = 0; i < s.width; i++)
        TB_CHECK(T, last[i] == 0);
    memset(r.source_keep, 1, S_);
    seen b = look(T, &r);
    TB_CHECK(T, memcmp(a.logits, b.logits, v * sizeof(double)) != 0);
    TB_SAME(T, a.logits + T_ * v, b.logits + T_ * v,
            (r.logits - T_ * v) * sizeof(double));
    forget(T, a);
    forget(T, b);
    close_rig(T, &r);
}

/* Causality hides later tokens of a decoder, nothing of the memory, and
 * nothing in an encoder. */
TB_TEST(who_sees_whom)
{
    tb_settings s = tiny(TB_STACKS_BOTH);
    rig r;
    TB_OKAY(T, open_rig(T, "pre-ln", &s, &r));
    size_t v = s.vocab;
    seen a = look(T, &r);
    r.tokens[3] = (r.tokens[3] + 1) % VOCAB;
    seen b = look(T, &r);
    TB_SAME(T, a.logits, b.logits, 3 * v * sizeof(double));
    r.source[S_ - 1] = (r.source[S_ - 1] + 1) % VOCAB;
    seen c = look(T, &r);
    TB_CHECK(T, memcmp(b.logits, c.logits, v * sizeof(double)) != 0);
    forget(T, a);
    forget(T, b);
    forget(T, c);
    close_rig(T, &r);
    s = tiny(TB_STACKS_ENCODER);
    TB_OKAY(T, open_rig(T, "pre-ln", &s, &r));
    a = look(T, &r);
    r.tokens[3] = (r.tokens[3] + 1) % VOCAB;
    b = look(T, &r);
    TB_CHECK(T, memcmp(a.logits, b.logits, v * sizeof(double)) != 0);
    forget(T, a);
    forget(T, b);
    close_rig(T, &r);
}

/* --- heads -----------------------------------------------------------------
 */

TB_TEST(a_head_over_classes)
{
    tb_settings s = tiny(TB_STACKS_ENCODER);
    s.classes = 3;
    s.padding = true;
    check_model(T, "pre-ln", &s);
    rig r;
    double loss;
    TB_OKAY(T, open_rig(T, "pre-ln", &s, &r));
    TB_CHECK(T, tb_model_view(r.m, "head.weight")->shape.height == 3);
    r.targets[0] = 3;
    TB_FAILS(T, tb_model_forward(r.m, &r.batch, &loss), TB_ERR_INPUT,
             "targets: got id 3 at row 1, wanted 0 to 2");
    close_rig(T, &r);
}

/* --- names and starts ------------------------------------------------------
 */

TB_TEST(names_of_two_stacks)
{
    static const char *const names[] = {
        "embed.token.weight",
        "encoder.embed.position.weight",
        "encoder.layers.0.attn.q.weight",
        "encoder.final.norm.gain",
        "decoder.embed.position.weight",
        "decoder.layers.1.cross.k.weight",
        "decoder.final.norm.gain",
        "head.weight",
    };
    tb_settings s = tiny(TB_STACKS_BOTH);
    rig r;
    TB_OKAY(T, open_rig(T, "pre-ln", &s, &r));
    for (size_t i = 0; i < TB_LEN(names); i++)
        if (!tb_model_view(r.m, names[i]))
            tb_test_fail(T, __FILE__, __LINE__, "no %s", names[i]);
    TB_CHECK(T, !tb_model_view(r.m, "encoder.layers.1.attn.q.weight"));
    TB_CHECK(T, !tb_model_view(r.m, "encoder.layers.0.cross.q.weight"));
    close_rig(T, &r);
}

static double start(tb_test *T, const char *text, const tb_settings *s,
                    const char *name)
{
    tb_block *b;
    tb_model *m;
    double v = __builtin_nan("");
    if (tb_block_load(T->ctx, text, &b) != TB_OK)
        return v;
    if (tb_model_create(T->ctx, b, s, TB_F64, &m) == TB_OK &&
        tb_model_init(m, 1) == TB_OK && tb_model_view(m, name))
        v = ((double *)m->params)[tb_model_view(m, name)->offset];
    else
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", name, tb_error(T->ctx));
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
    return v;
}

TB_TEST(init_rules_by_role)
{
    const char *text = "x = x + F(norm(x))\n"
                       "init:\n attn.q: const(1)\n encoder.attn.*: const(N)\n"
                       " decoder.*: const(10*M + l)\n embed.*: const(3)";
    tb_settings both = tiny(TB_STACKS_BOTH), one = tiny(TB_STACKS_DECODER);
    both.depth = 3;
    TB_NEAR(T, start(T, text, &both, "encoder.layers.2.attn.q.weight"), 3, 0);
    TB_NEAR(T, start(T, text, &both, "decoder.layers.1.cross.v.weight"), 22, 0);
    TB_NEAR(T, start(T, text, &both, "encoder.embed.position.weight"), 3, 0);
    TB_NEAR(T, start(T, text, &one, "layers.0.attn.q.weight"), 1, 0);
    TB_CHECK(T, start(T, text, &one, "layers.0.attn.k.weight") != 1);
    tb_block *b;
    tb_model *m;
    TB_OKAY(T, tb_block_load(T->ctx,
                             "x = x + F(x)\ninit: encoder.cross.q: zeros", &b));
    TB_FAILS(T, tb_model_create(T->ctx, b, &both, TB_F64, &m), TB_ERR_PARSE,
             "'encoder.cross.q' matches no weight");
    tb_block_destroy(T->ctx, b);
}

/* Admin counts the sublayers of each stack from 1 (placements, 4.4). */
TB_TEST(profiling_counts_each_stack)
{
    tb_settings s = tiny(TB_STACKS_BOTH);
    TB_NEAR(T, start(T, "admin", &s, "encoder.layers.0.attn.vector"), 1, 0);
    TB_NEAR(T, start(T, "admin", &s, "decoder.layers.0.attn.vector"), 1, 0);
    double cross = start(T, "admin", &s, "decoder.layers.0.cross.vector");
    double ffn = start(T, "admin", &s, "decoder.layers.0.ffn.vector");
    double next = start(T, "admin", &s, "decoder.layers.1.attn.vector");
    TB_CHECK(T, cross > 1 && ffn > cross && next > ffn);
}

/* --- the memory's Jacobian -------------------------------------------------
 */

static int memory_slot(const tb_graph *g)
{
    for (int i = 0; i < g->ninputs; i++)
        if (tb_streq(g->nodes[g->inputs[i]].name, "memory"))
            return i;
    return 0;
}

/* Rows by backward passes against the formula's numbers. */
static double memory_error(tb_test *T, const tb_trial *t, const double *m,
                           size_t n, double *row, double *unit)
{
    const void *gout[] = {unit};
    void *gin[4] = {NULL};
    double worst = 0, size = 0;
    gin[memory_slot(t->graph)] = row;
    for (size_t i = 0; i < n; i++) {
        const tb_bwd b = {.hi = -1, .lo = -1, .gout = gout, .gin = gin};
        unit[i] = 1;
        if (tb_plan_backward(T->ctx, &t->run, &b) != TB_OK)
            tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
        unit[i] = 0;
        for (size_t j = 0; j < n; j++) {
            double d = tb_fabs(row[j] - m[i * n + j]), v = tb_fabs(row[j]);
            worst = d > worst ? d : worst;
            size = v > size ? v : size;
        }
    }
    return size > 0 ? worst / size : 1;
}

static void check_memory(tb_test *T, const char *text)
{
    enum { TOKENS = 3, WIDTH = 8, SIZE = TOKENS * WIDTH };
    static const tb_jac_mode modes[] = {TB_JAC_CLOSED, TB_JAC_OPEN};
    static double m[SIZE * SIZE];
    double row[SIZE], unit[SIZE] = {0};
    tb_settings s = tiny(TB_STACKS_BOTH);
    tb_block *b;
    tb_trial t;
    TB_OKAY(T, tb_block_load(T->ctx, text, &b));
    TB_OKAY(T, tb_trial_open(&t, T->ctx, b, &s, 1, TOKENS, 3));
    const tb_symbolic sym = tb_trial_symbolic(&t);
    const tb_graph *g = t.graph;
    int from = g->inputs[memory_slot(g)], to = g->outputs[0].node;
    for (size_t i = 0; i < TB_LEN(modes); i++) {
        TB_OKAY(T, tb_symbolic_between(&sym, from, to, modes[i], m));
        double error = memory_error(T, &t, m, SIZE, row, unit);
        if (!(error <= 1e-12))
            tb_test_fail(T, __FILE__, __LINE__, "%s: off by %g", text, error);
    }
    tb_trial_close(&t);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(jacobian_by_the_memory)
{
    check_memory(T, "pre-ln");
    check_memory(T, "post-ln");
    check_memory(T, "deepnorm");
    check_memory(T, "decoder: n = norm(x); x = x + attn(n) + cross(n) + ffn(n)"
                    "\nblock: x = F(x)");
    check_memory(T, "cross(x) = o(mha(q(x), k(norm(memory)), v(memory)))\n"
                    "decoder: m = norm(memory)\n x = x + mha(x, m, m)\n"
                    " x = x + F(norm(x))\nblock: x = F(x)");
}
