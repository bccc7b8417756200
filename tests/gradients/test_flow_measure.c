/* SPDX-License-Identifier: MIT */
/* The numbers of flow against their definitions: exact identities, closed
 * formulas of the norms, central differences, and what theory predicts. */
#include "gradients/flow_help.h"

/* --- identities -------------------------------------------------------------
 */

static void check_split(tb_test *T, double total, double lane, double branch,
                        double cos)
{
    double square = lane * lane + branch * branch + 2 * lane * branch * cos;
    TB_NEAR(T, square, total * total, 1e-10);
    TB_CHECK(T, cos >= -1 - 1e-12 && cos <= 1 + 1e-12);
}

TB_TEST(total_is_lane_plus_branch)
{
    static const char *const more[] = {
        "u = norm(x + attn(x)); x = norm(x + u + ffn(u))", "x = norm(x) + F(x)",
        "x = 2*x - F(x)/3", "x = drop(x, 0.2) + F(x)"};
    for (size_t i = 0; i < tb_builtin_count() + TB_LEN(more); i++)
        for (int c = 0; c < 3; c++) {
            const char *block =
                i < TB_LEN(more) ? more[i] : tb_builtin_name(i - TB_LEN(more));
            tb_flow_spec s = tiny_spec(3, (tb_cotangent)c);
            tb_flow *f = measure(T, block, &s);
            TB_REQUIRE(T, f);
            double product = 1;
            for (size_t k = f->nrows; k-- > 0;) {
                const tb_flow_row *r = &f->rows[k];
                check_split(T, r->total, r->lane, r->branch, r->cos);
                TB_CHECK(T, r->k == k);
                TB_NEAR(T, r->toll_product, product, 1e-12);
                product *= r->toll;
                if (k == 0)
                    break;
                /* per unit of what arrives here: what leaves is the row below,
                 * unless lists bring more */
                if (!f->lists)
                    check_split(T, f->rows[k - 1].total / r->total,
                                r->local_lane, r->local_branch, r->local_cos);
            }
            TB_NEAR(T, f->rows[f->nrows - 1].total, 1, 1e-15);
            TB_NEAR(T, f->rows[f->nrows - 1].branch, 0, 0);
            TB_STR(T, f->rows[0].name, "stem");
            TB_CHECK(T, f->rows[0].local_lane == 1 &&
                            f->rows[0].local_branch == 0);
            tb_flow_free(T->ctx, f);
        }
}

/* --- post-ln: the lane is the product of the norms' Jacobians ---------------
 */

/* E1, E2: g <- J_LN(z)^T g of each row, gain 1; adds |J|_F^2 and the largest
 * singular value. */
static void norm_transposed(const double *z, double eps, double *g,
                            double *frobenius, double *largest)
{
    const double d = WIDTH;
    double mean = 0, var = 0, mg = 0, mgz = 0;
    for (int j = 0; j < WIDTH; j++)
        mean += z[j] / d;
    for (int j = 0; j < WIDTH; j++)
        var += (z[j] - mean) * (z[j] - mean) / d;
    double s = tb_sqrt(var + eps);
    for (int j = 0; j < WIDTH; j++) {
        mg += g[j] / d;
        mgz += g[j] * (z[j] - mean) / s / d;
    }
    for (int j = 0; j < WIDTH; j++)
        g[j] = (g[j] - mg - (z[j] - mean) / s * mgz) / s;
    *frobenius += (d - 2) / (s * s) + eps * eps / (s * s * s * s * s * s);
    if (1 / s > *largest)
        *largest = 1 / s;
}

static const tb_node *norm_below(const tb_graph *g, int boundary)
{
    const tb_node *n = &g->nodes[g->boundaries[boundary].node];
    return n->op->lane == TB_LANE_TOLL ? n : NULL;
}

/* From the top down with formulas only; compares every row. */
static void check_post_lane(tb_test *T, measured *x, double *g)
{
    enum { N = TOKENS * WIDTH };
    const tb_flow *f = x->f;
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    double top = k->norm2(N, g);
    size_t row = f->nrows - 1;
    for (size_t l = x->m->sizes.s.depth; l >= 1; l--) {
        tb_run run;
        TB_OKAY(T, tb_model_run(x->m, l, &x->batch, &run));
        const tb_graph *graph = tb_model_graph(x->m, l);
        for (int s = graph->nboundaries - 1; s >= 1; s--, row--) {
            double frobenius = 0, largest = 0;
            const tb_node *norm = norm_below(graph, s);
            TB_REQUIRE(T, norm && f->rows[row].norms == 1);
            const double *z = tb_plan_value(&run, norm->in[0]);
            TB_NEAR(T, f->rows[row].lane, k->norm2(N, g) / top, 1e-12);
            for (int t = 0; t < TOKENS; t++)
                norm_transposed(z + t * WIDTH, 1e-5, g + t * WIDTH, &frobenius,
                                &largest);
            TB_NEAR(T, f->rows[row].toll, tb_sqrt(frobenius / N), 1e-12);
            TB_NEAR(T, f->rows[row].toll_max, largest, 1e-12);
        }
    }
    TB_CHECK(T, row == 0);
    TB_NEAR(T, f->rows[0].lane, k->norm2(N, g) / top, 1e-12);
}

TB_TEST(post_ln_lane_is_the_product_of_norm_jacobians)
{
    double g[TOKENS * WIDTH];
    for (int coherent = 0; coherent < 2; coherent++) {
        measured x;
        tb_flow_spec s = tiny_spec(4, coherent ? TB_COTANGENT_COHERENT
                                               : TB_COTANGENT_RANDOM);
        tb_rng r = tb_rng_make(SEED, "cotangent");
        TB_OKAY(T, open_measured(T->ctx, &x, "post-ln", &s));
        for (size_t i = 0; i < TB_LEN(g); i++)
            g[i] = tb_rng_normal(r, coherent ? i % WIDTH : i);
        check_post_lane(T, &x, g);
        TB_CHECK(T, x.f->nweights == 0);
        close_measured(T->ctx, &x);
    }
}

TB_TEST(local_lane_of_post_ln_is_its_norm_alone)
{
    measured x;
    enum { N = TOKENS * WIDTH };
    double g[N], unused = 0;
    tb_flow_spec s = tiny_spec(1, TB_COTANGENT_RANDOM);
    tb_rng r = tb_rng_make(SEED, "cotangent");
    tb_run run;
    TB_OKAY(T, open_measured(T->ctx, &x, "x = norm(x + ffn(x))", &s));
    for (size_t i = 0; i < N; i++)
        g[i] = tb_rng_normal(r, i);
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    double arrived = k->norm2(N, g);
    TB_OKAY(T, tb_model_run(x.m, 1, &x.batch, &run));
    const tb_node *norm = norm_below(tb_model_graph(x.m, 1), 1);
    TB_REQUIRE(T, norm);
    const double *z = tb_plan_value(&run, norm->in[0]);
    for (int t = 0; t < TOKENS; t++)
        norm_transposed(z + t * WIDTH, 1e-5, g + t * WIDTH, &unused, &unused);
    TB_NEAR(T, x.f->rows[1].local_lane, k->norm2(N, g) / arrived, 1e-12);
    close_measured(T->ctx, &x);
}

/* --- weights ----------------------------------------------------------------
 */

TB_TEST(weight_gradients_are_those_of_the_model)
{
    static const char *const blocks[] = {"pre-ln", "post-ln", "rezero",
                                         "parallel"};
    for (size_t i = 0; i < TB_LEN(blocks); i++) {
        measured x;
        double loss;
        tb_flow_spec s = tiny_spec(3, TB_COTANGENT_LOSS);
        const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
        TB_OKAY(T, open_measured(T->ctx, &x, blocks[i], &s));
        double *grads = tb_alloc(T->ctx, x.m->nelements, sizeof *grads);
        TB_REQUIRE(T, grads);
        TB_OKAY(T, tb_model_forward(x.m, &x.batch, &loss));
        TB_OKAY(T, tb_model_backward(x.m, &x.batch, grads));
        TB_NEAR(T, x.f->loss, loss, 1e-14);
        TB_CHECK(T, x.f->nweights == x.m->nviews);
        for (size_t v = 0; v < x.f->nweights; v++) {
            const tb_view *view = &x.m->views[v];
            TB_STR(T, x.f->weights[v].name, view->name);
            TB_CHECK(T, x.f->weights[v].layer == view->layer);
            TB_NEAR(T, x.f->weights[v].grad_norm,
                    k->norm2(view->count, grads + view->offset), 1e-13);
        }
        tb_free(T->ctx, grads);
        close_measured(T->ctx, &x);
    }
}

/* --- spectrum ---------------------------------------------------------------
 */

TB_TEST(spectrum_is_that_of_a_difference_jacobian)
{
    static const char *const blocks[] = {"post-ln", "pre-ln", "x = norm(F(x))"};
    enum { D = 8, T4 = 4, N = D * T4 };
    for (size_t i = 0; i < TB_LEN(blocks); i++) {
        measured x;
        tb_flow_spec s = tiny_spec(2, TB_COTANGENT_RANDOM);
        const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
        s.settings.width = D;
        s.settings.context = T4;
        s.spectrum = true;
        TB_OKAY(T, open_measured(T->ctx, &x, blocks[i], &s));
        const tb_spectrum *p = &x.f->spectrum;
        double *J = tb_alloc(T->ctx, N * N, sizeof *J);
        double *G = tb_alloc(T->ctx, N * N, sizeof *G);
        TB_REQUIRE(T, J && G && x.f->has_spectrum && p->n == N);
        TB_OKAY(T, difference_jacobian(&x, N, J));
        gram(J, N, G);
        double second = 0, fourth = 0;
        for (size_t v = 0; v < N; v++) {
            double square = p->values[v] * p->values[v];
            second += square;
            fourth += square * square;
            TB_CHECK(T, v == 0 || p->values[v] <= p->values[v - 1]);
        }
        double frobenius = k->norm2(N * N, J), of_gram = k->norm2(N * N, G);
        TB_NEAR(T, second, frobenius * frobenius, 1e-6);
        TB_NEAR(T, fourth, of_gram * of_gram, 1e-6);
        TB_NEAR(T, p->max * p->max, largest_eigenvalue(k, G, N), 1e-6);
        TB_NEAR(T, p->rms, tb_sqrt(second / N), 1e-12);
        TB_NEAR(T, p->median, (p->values[N / 2 - 1] + p->values[N / 2]) / 2, 0);
        tb_free(T->ctx, J);
        tb_free(T->ctx, G);
        close_measured(T->ctx, &x);
    }
}

TB_TEST(a_spectrum_too_large_is_refused)
{
    tb_flow_spec s = tiny_spec(1, TB_COTANGENT_LOSS);
    tb_block *b;
    tb_flow *f;
    s.settings.width = 64;
    s.settings.context = 9;
    s.spectrum = true;
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    TB_FAILS(T, tb_flow_measure(T->ctx, b, &s, &f), TB_ERR_ARG,
             "spectrum: got batch*tokens*width = 576, wanted at most 512");
    TB_CHECK(T, !f);
    tb_block_destroy(T->ctx, b);
}

/* --- what theory predicts ---------------------------------------------------
 */

/* C058: with identical tokens, batch and length change no ratio. */
TB_TEST(ratios_do_not_depend_on_batch_and_length)
{
    static const char *const blocks[] = {"pre-ln", "post-ln"};
    static const size_t sizes[][2] = {{2, 3}, {4, 6}};
    int32_t ids[64];
    for (int i = 0; i < 64; i++)
        ids[i] = 7;
    for (size_t i = 0; i < TB_LEN(blocks); i++) {
        tb_flow *f[2];
        for (int j = 0; j < 2; j++) {
            tb_flow_spec s = tiny_spec(3, TB_COTANGENT_LOSS);
            s.batch = sizes[j][0];
            s.settings.context = sizes[j][1];
            s.settings.positions = 0;
            s.settings.causal = 0;
            s.ids = ids;
            f[j] = measure(T, blocks[i], &s);
            TB_REQUIRE(T, f[j]);
        }
        for (size_t k = 0; k < f[0]->nrows; k++) {
            TB_NEAR(T, f[0]->rows[k].total, f[1]->rows[k].total, 1e-10);
            TB_NEAR(T, f[0]->rows[k].lane, f[1]->rows[k].lane, 1e-10);
            TB_NEAR(T, f[0]->rows[k].toll, f[1]->rows[k].toll, 1e-10);
        }
        tb_flow_free(T->ctx, f[0]);
        tb_flow_free(T->ctx, f[1]);
    }
}

/* C035: 2N independent branches of variance 1 on a stream of variance 1. */
TB_TEST(stream_of_independent_branches_grows_like_a_root)
{
    static const size_t depths[] = {6, 12, 24};
    for (size_t i = 0; i < TB_LEN(depths); i++) {
        tb_flow_spec s = tiny_spec(depths[i], TB_COTANGENT_RANDOM);
        s.dtype = TB_F32;
        s.settings.width = 256;
        s.settings.context = 64;
        s.settings.vocab = 1024;
        s.settings.positions = 0;
        tb_flow *f = measure(T,
                             "attn(x) = o(x)\nffn(x) = down(x)\n"
                             "x = x + F(norm(x))\n"
                             "init: attn.o, ffn.down: normal(1/sqrt(d))",
                             &s);
        TB_REQUIRE(T, f);
        for (size_t k = 0; k < f->nrows; k++)
            TB_NEAR(T, f->rows[k].std_x / tb_sqrt(1 + (double)k), 1, 0.03);
        tb_flow_free(T->ctx, f);
    }
}

TB_TEST(without_branches_total_is_lane)
{
    static const char *const blocks[] = {"pre-ln", "post-ln", "parallel",
                                         "deepnorm"};
    for (size_t i = 0; i < TB_LEN(blocks); i++) {
        tb_flow_spec s = tiny_spec(4, TB_COTANGENT_LOSS);
        s.settings.init = "attn.o, ffn.down: zeros";
        tb_flow *f = measure(T, blocks[i], &s);
        TB_REQUIRE(T, f);
        for (size_t k = 0; k < f->nrows; k++) {
            const tb_flow_row *r = &f->rows[k];
            TB_CHECK(T, r->total == r->lane && r->branch == 0 && r->cos == 0);
            TB_CHECK(T, r->branch_ratio == 0 && r->local_branch == 0);
            if (i == 0 || i == 2)
                TB_CHECK(T, r->total == 1 && r->std_x == f->rows[0].std_x);
        }
        tb_flow_free(T->ctx, f);
    }
}

/* C043: the toll is paid once, at any depth. */
TB_TEST(post_ln_without_branches_does_not_fade)
{
    static const size_t depths[] = {1, 2, 6, 12, 24};
    double first = 0;
    for (size_t i = 0; i < TB_LEN(depths); i++) {
        tb_flow_spec s = tiny_spec(depths[i], TB_COTANGENT_RANDOM);
        s.settings.init = "attn.o, ffn.down: zeros";
        tb_flow *f = measure(T, "post-ln", &s);
        TB_REQUIRE(T, f);
        first = i ? first : f->rows[0].lane;
        TB_NEAR(T, f->rows[0].lane, first, 1e-3);
        TB_CHECK(T, f->rows[0].lane > 0.3);
        tb_flow_free(T->ctx, f);
    }
}

TB_TEST(rezero_is_the_identity_at_the_start)
{
    tb_flow_spec s = tiny_spec(3, TB_COTANGENT_LOSS);
    tb_flow *f = measure(T, "rezero", &s);
    TB_REQUIRE(T, f);
    for (size_t k = 0; k < f->nrows; k++)
        TB_CHECK(T, f->rows[k].total == 1 && f->rows[k].lane == 1);
    for (size_t i = 0; i < f->nweights; i++) {
        const tb_flow_weight *w = &f->weights[i];
        const char *dot = strrchr(w->name, '.');
        bool scalar = dot && tb_streq(dot, ".a");
        if (w->layer) /* only the scalars receive a gradient */
            TB_CHECK(T, scalar == (w->grad_norm > 0));
    }
    tb_flow_free(T->ctx, f);
}

/* --- verdicts ---------------------------------------------------------------
 */

static void check_verdict(tb_test *T, const char *block, size_t depth,
                          const tb_threshold *limit, const char *code,
                          const char *level)
{
    tb_flow_spec s = tiny_spec(depth, TB_COTANGENT_RANDOM);
    s.thresholds = limit;
    s.nthresholds = limit != NULL;
    tb_flow *f = measure(T, block, &s);
    TB_REQUIRE(T, f);
    const tb_verdict *v = verdict(f, code);
    const char *got = v ? tb_level_name(v->level) : "absent";
    if (!tb_streq(got, level))
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s is %s, wanted %s", block,
                     code, got, level);
    for (size_t i = 1; i < f->nverdicts; i++)
        TB_CHECK(T, f->verdicts[i].level <= f->verdicts[i - 1].level);
    if (v && limit)
        TB_NEAR(T, v->threshold, limit->value, 0);
    tb_flow_free(T->ctx, f);
}

TB_TEST(verdicts)
{
    const tb_threshold strict = {"VANISH", 5}, loose = {"EARLYBIG", 1e9};
    static const char fades[] = "x = 0.1*x + F(norm(x))/1000";
    check_verdict(T, "pre-ln", 2, NULL, "NONFINITE", "OK");
    check_verdict(T, "x = 1e200*x", 3, NULL, "NONFINITE", "FAIL");
    check_verdict(T, "x = F(x)", 2, NULL, "NOSKIP", "FAIL");
    check_verdict(T, "pre-ln", 2, NULL, "NOSKIP", "OK");
    check_verdict(T, fades, 1, NULL, "VANISH", "OK");
    check_verdict(T, fades, 3, NULL, "VANISH", "FAIL");
    check_verdict(T, "x = 0.3*x + ffn(x)/1000", 4, NULL, "VANISH", "WARN");
    check_verdict(T, "pre-ln", 2, &strict, "VANISH", "WARN");
    check_verdict(T, "x = 20*x", 2, NULL, "EXPLODE", "WARN");
    check_verdict(T, "x = 20*x", 6, NULL, "EXPLODE", "FAIL");
    check_verdict(T, "x = 20*x", 6, NULL, "SLOPE", "NOTE");
    check_verdict(T, "post-ln", 12, NULL, "TOLL", "NOTE");
    check_verdict(T, "post-ln", 40, NULL, "TOLL", "WARN");
    check_verdict(T, "pre-ln", 12, NULL, "TOLL", "OK");
    check_verdict(T, "plain", 4, &loose, "EARLYBIG", "OK");
    check_verdict(T, "plain", 4, NULL, "EARLYBIG", "NOTE");
    check_verdict(T, "layerscale", 3, NULL, "DEADDEPTH", "NOTE");
    check_verdict(T, "pre-ln", 3, NULL, "DEADDEPTH", "OK");
    check_verdict(T, "x = F(x)", 3, NULL, "DEADDEPTH", "absent");
    /* much is added, but along x: no angle */
    check_verdict(T, "attn(x) = x\nffn(x) = x\nx = x + F(x)", 3, NULL,
                  "DEADDEPTH", "NOTE");
    check_verdict(T, "attn(x) = q(x)\nx = x + attn(x)", 3, NULL, "DEADDEPTH",
                  "OK");
    check_verdict(T, "x = F(x)", 3, NULL, "TOLL", "absent");
}

/* 1e200 twice is too much for a double; from there down no gradient is left. */
TB_TEST(the_first_place_that_is_not_finite)
{
    tb_flow_spec s = tiny_spec(3, TB_COTANGENT_LOSS);
    tb_flow *f = measure(T, "x = 1e200*x", &s);
    TB_REQUIRE(T, f && f->nrows == 4);
    const tb_verdict *v = verdict(f, "NONFINITE");
    TB_STR(T, v->where, "k 2, block of block 2");
    TB_CHECK(T, f->rows[2].nonfinite >= TOKENS * WIDTH);
    tb_flow_free(T->ctx, f);
    s.cotangent = TB_COTANGENT_RANDOM;
    f = measure(T, "pre-ln", &s);
    TB_REQUIRE(T, f);
    TB_STR(T, verdict(f, "NONFINITE")->where, "");
    for (size_t k = 0; k < f->nrows; k++)
        TB_CHECK(T, f->rows[k].nonfinite == 0);
    tb_flow_free(T->ctx, f);
}

TB_TEST(unknown_codes_are_refused)
{
    const tb_threshold limit = {"VANNISH", 1};
    tb_flow_spec s = tiny_spec(1, TB_COTANGENT_LOSS);
    tb_block *b;
    tb_flow *f;
    s.thresholds = &limit;
    s.nthresholds = 1;
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    TB_FAILS(T, tb_flow_measure(T->ctx, b, &s, &f), TB_ERR_ARG,
             "threshold: unknown code VANNISH; did you mean VANISH");
    tb_block_destroy(T->ctx, b);
}

/* --- stopping and refusing --------------------------------------------------
 */

TB_TEST(interrupted)
{
    tb_flow_spec s = tiny_spec(4, TB_COTANGENT_LOSS);
    tb_block *b;
    tb_flow *f;
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    TB_OKAY(T, tb_flow_measure(T->ctx, b, &s, &f)); /* what the context keeps */
    tb_flow_free(T->ctx, f);
    const size_t before = tb_ctx_blocks(T->ctx);
    tb_ctx_interrupt(T->ctx);
    TB_FAILS(T, tb_flow_measure(T->ctx, b, &s, &f), TB_INTERRUPTED,
             "interrupted");
    TB_CHECK(T, !f && tb_ctx_blocks(T->ctx) == before);
    tb_block_destroy(T->ctx, b);
}

/* ResiDual's second stream is a clean lane beside post-norm's: its part of
 * the gradient alone arrives at full length, so the lane cannot fall below
 * what came in by it. A stream that nothing reads changes nothing. */
TB_TEST(several_streams)
{
    tb_flow_spec s = tiny_spec(4, TB_COTANGENT_RANDOM);
    tb_flow *two = measure(T,
                           "stem: y = x\n"
                           "block: x = norm(x + F(x)); y = y",
                           &s);
    TB_REQUIRE(T, two && two->nrows == 5);
    for (size_t k = 0; k < two->nrows; k++)
        TB_CHECK(T, two->rows[k].lane > 0.7 && two->rows[k].total > 0.7);
    tb_flow_free(T->ctx, two);
    s = tiny_spec(4, TB_COTANGENT_LOSS);
    tb_flow *idle =
        measure(T, "stem: y = x\nblock: x = x + F(norm(x)); y = x", &s);
    tb_flow *one = measure(T, "x = x + F(norm(x))", &s);
    TB_REQUIRE(T, idle && one);
    for (size_t l = 0; l < idle->nrows; l++) {
        TB_NEAR(T, idle->rows[l].total, one->rows[2 * l].total, 1e-12);
        TB_NEAR(T, idle->rows[l].lane, 1, 1e-12);
    }
    tb_flow_free(T->ctx, idle);
    tb_flow_free(T->ctx, one);
}

TB_TEST(every_failed_allocation_is_reported)
{
    tb_flow_spec s = tiny_spec(1, TB_COTANGENT_LOSS);
    tb_status status = TB_ERR_MEMORY;
    tb_block *b;
    size_t n = 1;
    s.settings.width = 8;
    s.settings.vocab = 16;
    s.settings.context = 4;
    s.spectrum = true;
    s.audit = &tb_flow_audit;
    s.alpha = true;
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    tb_flow *warm; /* what the context keeps from its first run */
    TB_OKAY(T, tb_flow_measure(T->ctx, b, &s, &warm));
    tb_flow_free(T->ctx, warm);
    const size_t before = tb_ctx_blocks(T->ctx);
    for (; status != TB_OK && n < 9000; n++) {
        tb_flow *f;
        tb_ctx_fail_alloc_at(T->ctx, n);
        status = tb_flow_measure(T->ctx, b, &s, &f);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        TB_CHECK(T, status == TB_OK || status == TB_ERR_MEMORY);
        tb_flow_free(T->ctx, f);
        if (tb_ctx_blocks(T->ctx) != before)
            tb_test_fail(T, __FILE__, __LINE__, "n = %zu leaks", n);
    }
    TB_CHECK(T, status == TB_OK && n > 20);
    tb_block_destroy(T->ctx, b);
}
