/* SPDX-License-Identifier: MIT */
/* What an audit measures, against formulas, differences and all rows. */
#include "gradients/flow_help.h"

#include <stdio.h>

static tb_flow_spec audit_spec(size_t depth)
{
    tb_flow_spec s = tiny_spec(depth, TB_COTANGENT_RANDOM);
    s.audit = &tb_flow_audit;
    return s;
}

/* --- Jacobians that are known --------------------------------------------- */

static void check_scaled(tb_test *T, const char *block, double by)
{
    tb_flow_spec s = audit_spec(2);
    s.settings.init = "attn.o, ffn.down: zeros";
    tb_flow *f = measure(T, block, &s);
    TB_REQUIRE(T, f);
    TB_CHECK(T, !f->rows[0].audited);
    for (size_t k = 1; k < f->nrows; k++) {
        const tb_flow_row *r = &f->rows[k];
        TB_REQUIRE(T, r->audited && r->spectrum);
        TB_NEAR(T, r->identity_share, by, 1e-15);
        TB_NEAR(T, r->jacobian_rms, tb_fabs(by), 1e-15);
        TB_NEAR(T, r->jacobian_off, tb_fabs(by - 1), 1e-15);
        TB_NEAR(T, r->sigma_max, tb_fabs(by), 1e-14);
        TB_NEAR(T, r->spectrum->values[r->spectrum->n - 1], tb_fabs(by), 1e-14);
        TB_CHECK(T, r->identity_share_error == 0 && r->jacobian_rms_error == 0);
    }
    tb_flow_free(T->ctx, f);
}

TB_TEST(silent_branches_leave_the_lane)
{
    check_scaled(T, "pre-ln", 1);
    check_scaled(T, "x = 2*x + F(norm(x))", 2);
    check_scaled(T, "x = F(x) - x/2", -0.5);
    check_scaled(T, "x = F(x)", 0);
}

/* J_LN of every token, E2 and E3: trace (d - 1 - var/s^2)/s, squares
 * (d - 2)/s^2 + eps^2/s^6, largest singular value 1/s. */
TB_TEST(silent_post_ln_is_its_norm)
{
    enum { N = TOKENS * WIDTH };
    const double d = WIDTH, eps = 1e-5;
    double trace = 0, square = 0, largest = 0;
    measured x;
    tb_flow_spec s = audit_spec(1);
    s.settings.init = "ffn.down: zeros";
    TB_OKAY(T, open_measured(T->ctx, &x, "x = norm(x + ffn(x))", &s));
    const double *stem = tb_model_stream(x.m, 0);
    for (int t = 0; t < TOKENS; t++) {
        double mean = 0, var = 0;
        for (int j = 0; j < WIDTH; j++)
            mean += stem[t * WIDTH + j] / d;
        for (int j = 0; j < WIDTH; j++)
            var += (stem[t * WIDTH + j] - mean) * (stem[t * WIDTH + j] - mean);
        var /= d;
        double v = var + eps, one = tb_sqrt(v);
        trace += (d - 1 - var / v) / one;
        square += (d - 2) / v + eps * eps / (v * v * v);
        largest = 1 / one > largest ? 1 / one : largest;
    }
    const tb_flow_row *r = &x.f->rows[1];
    TB_NEAR(T, r->identity_share, trace / N, 1e-12);
    TB_NEAR(T, r->jacobian_rms, tb_sqrt(square / N), 1e-12);
    TB_NEAR(T, r->sigma_max, largest, 1e-12);
    TB_NEAR(T, r->jacobian_off * r->jacobian_off, (square - 2 * trace) / N + 1,
            1e-12);
    close_measured(T->ctx, &x);
}

/* --- against differences -------------------------------------------------- */

TB_TEST(one_sublayer_by_differences)
{
    static const char *const blocks[] = {
        "x = norm(x + ffn(x))", "x = x + attn(norm(x))", "x = ffn(norm(x))"};
    enum { D = 8, T4 = 4, N = D * T4 };
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    for (size_t i = 0; i < TB_LEN(blocks); i++) {
        measured x;
        double J[N * N], G[N * N], trace = 0, off = 0;
        tb_flow_spec s = audit_spec(1);
        s.settings.width = D;
        s.settings.context = T4;
        TB_OKAY(T, open_measured(T->ctx, &x, blocks[i], &s));
        const tb_flow_row *r = &x.f->rows[1];
        TB_OKAY(T, difference_jacobian(&x, N, J));
        gram(J, N, G);
        for (size_t a = 0; a < N; a++)
            for (size_t b = 0; b < N; b++) {
                double rest = J[a * N + b] - (a == b);
                trace += a == b ? J[a * N + b] : 0;
                off += rest * rest;
            }
        TB_NEAR(T, r->identity_share, trace / N, 1e-7);
        TB_NEAR(T, r->jacobian_rms, k->norm2(N * N, J) / tb_sqrt(N), 1e-7);
        TB_NEAR(T, r->jacobian_off, tb_sqrt(off / N), 1e-7);
        TB_NEAR(T, r->sigma_max * r->sigma_max, largest_eigenvalue(k, G, N),
                1e-6);
        close_measured(T->ctx, &x);
    }
}

/* Two ways to the same numbers, for every built-in: rows of blocks with
 * several streams and with lists among them. */
TB_TEST(spectra_of_chosen_floors_agree)
{
    for (size_t i = 0; i < tb_builtin_count(); i++) {
        tb_flow_spec s = audit_spec(5);
        s.settings.width = 8;
        s.settings.context = 3;
        tb_flow *f = measure(T, tb_builtin_name(i), &s);
        TB_REQUIRE(T, f);
        for (size_t k = 1; k < f->nrows; k++) {
            const tb_flow_row *r = &f->rows[k];
            bool chosen = r->layer == 1 || r->layer == 3 || r->layer == 5;
            TB_REQUIRE(T, r->audited && chosen == (r->spectrum != NULL));
            if (!chosen)
                continue;
            TB_CHECK(T, r->spectrum->n % (3 * 8) == 0);
            TB_NEAR(T, r->spectrum->max, r->sigma_max, 1e-6);
            TB_NEAR(T, r->spectrum->rms, r->jacobian_rms, 1e-12);
        }
        tb_flow_free(T->ctx, f);
    }
}

/* --- probes --------------------------------------------------------------- */

/** What all rows of a sublayer's Jacobian say. */
typedef struct whole {
    double trace, square, largest; /* trace / n and so on */
} whole;

static tb_status by_all_rows(measured *x, size_t part, int hi, size_t n,
                             whole *out)
{
    tb_ctx *ctx = x->m->ctx;
    const tb_kern *k = tb_kern_get(ctx, TB_F64);
    double *J = tb_alloc(ctx, n * n, sizeof *J), *e = tb_alloc(ctx, n, 8);
    double *v = tb_alloc(ctx, n, 8), *y = tb_alloc(ctx, n, 8);
    tb_run run;
    tb_status s = J && e && v && y ? tb_model_run(x->m, part, &x->batch, &run)
                                   : TB_ERR_MEMORY;
    *out = (whole){0};
    for (size_t i = 0; i < n && s == TB_OK; i++) {
        const void *gout[] = {e};
        void *gin[] = {J + i * n};
        tb_bwd b = {.hi = hi, .lo = hi - 1, .gout = gout, .gin = gin};
        e[i] = 1;
        s = tb_plan_backward(ctx, &run, &b);
        e[i] = 0;
        v[i] = 1 + 0.001 * (double)(i * 7919 % 997);
        out->trace += J[i * n + i] / (double)n;
    }
    for (int step = 0; step < 300 && s == TB_OK; step++) {
        memset(y, 0, n * sizeof *y);
        for (size_t i = 0; i < n; i++) /* y = J'(J v) */
            k->axpy(n, k->dot(n, J + i * n, v), J + i * n, y);
        out->largest = tb_sqrt(k->norm2(n, y));
        k->scale(n, 1 / k->norm2(n, y), y, v);
    }
    if (s == TB_OK)
        out->square = k->dot(n * n, J, J) / (double)n;
    tb_free(ctx, J);
    tb_free(ctx, e);
    tb_free(ctx, v);
    tb_free(ctx, y);
    return s;
}

TB_TEST(probes_are_near_all_rows)
{
    enum { D = 64, T9 = 9, N = D * T9 };
    measured x;
    tb_flow_spec s = audit_spec(1);
    s.settings.width = D;
    s.settings.context = T9;
    TB_OKAY(T, open_measured(T->ctx, &x, "post-ln", &s));
    for (int k = 1; k <= 2; k++) {
        const tb_flow_row *r = &x.f->rows[k];
        whole w;
        TB_OKAY(T, by_all_rows(&x, 1, k, N, &w));
        TB_CHECK(T, r->audited && !r->spectrum);
        TB_CHECK(T,
                 r->identity_share_error > 0 && r->identity_share_error < 0.05);
        TB_CHECK(T, r->jacobian_rms_error > 0 && r->jacobian_rms_error < 0.1);
        TB_CHECK(T, tb_fabs(r->identity_share - w.trace) <
                        5 * r->identity_share_error);
        TB_CHECK(T, tb_fabs(r->jacobian_rms - tb_sqrt(w.square)) <
                        5 * r->jacobian_rms_error);
        TB_CHECK(T, r->sigma_max < w.largest * (1 + 1e-9));
        TB_CHECK(T, r->sigma_max > w.largest * 0.98);
    }
    close_measured(T->ctx, &x);
}

/* A number that is not finite is a number. */
TB_TEST(what_is_not_finite_shows)
{
    tb_flow_spec s = audit_spec(3);
    tb_flow *f = measure(T, "x = 1e200*x", &s);
    TB_REQUIRE(T, f);
    TB_NEAR(T, f->rows[1].identity_share, 1e200, 1e186);
    TB_CHECK(T, !tb_isfinite(f->rows[1].jacobian_rms));
    TB_CHECK(T, !f->rows[1].spectrum);
    tb_flow_free(T->ctx, f);
}

/* --- sums -------------------------------------------------------------------
 */

/* max|x_after - (x_before + branch)| / max|x_after| of the only sublayer. */
static double sum_error(measured *x, size_t n)
{
    tb_run run;
    double off = 0, most = 0;
    const tb_graph *g = tb_model_graph(x->m, 1);
    if (tb_model_run(x->m, 1, &x->batch, &run) != TB_OK)
        return -1;
    const float *before = run.inputs[0], *after = run.outputs[0];
    const float *branch = tb_plan_value(&run, g->regions[0].out);
    for (size_t i = 0; i < n; i++) {
        double is = (double)after[i];
        double d = tb_fabs(is - ((double)before[i] + (double)branch[i]));
        off = d > off ? d : off;
        most = tb_fabs(is) > most ? tb_fabs(is) : most;
    }
    return off / most;
}

TB_TEST(sums_are_what_they_say)
{
    static const struct {
        const char *block;
        const char *level;
    } cases[] = {{"x = x + ffn(norm(x))", "OK"},
                 {"x = 1e7*x + ffn(norm(x)) - 9999999*x", "FAIL"}};
    for (size_t i = 0; i < TB_LEN(cases); i++) {
        measured x;
        tb_flow_spec s = audit_spec(1);
        s.dtype = TB_F32;
        TB_OKAY(T, open_measured(T->ctx, &x, cases[i].block, &s));
        const tb_flow_row *r = &x.f->rows[1];
        const tb_verdict *v = verdict(x.f, "IDENTITY");
        TB_REQUIRE(T, r->has_sums && v);
        TB_NEAR(T, r->identity_error, sum_error(&x, TOKENS * WIDTH), 1e-6);
        TB_STR(T, tb_level_name(v->level), cases[i].level);
        TB_NEAR(T, v->value, r->identity_error, 0);
        TB_NEAR(T, v->threshold, 1e-4, 0);
        close_measured(T->ctx, &x);
    }
}

/* Norms and gates are where a sum starts anew; without one there is none. */
TB_TEST(not_every_lane_is_a_sum)
{
    static const struct {
        const char *block;
        bool sums;
    } cases[] = {{"post-ln", true}, {"deepnorm", true}, {"x = F(x)", false}};
    for (size_t i = 0; i < TB_LEN(cases); i++) {
        tb_flow_spec s = audit_spec(2);
        tb_flow *f = measure(T, cases[i].block, &s);
        TB_REQUIRE(T, f);
        for (size_t k = 1; k < f->nrows; k++)
            TB_CHECK(T, f->rows[k].has_sums == cases[i].sums &&
                            f->rows[k].identity_error < 1e-15);
        TB_CHECK(T, (verdict(f, "IDENTITY") != NULL) == cases[i].sums);
        tb_flow_free(T->ctx, f);
    }
}

/* --- derivatives ------------------------------------------------------------
 */

/* x is flat: norm(1 + h t) is (t - mean) h / sqrt(h^2 var + eps), so along t
 * a difference falls short by 1 - sqrt(eps / (h^2 var + eps)), var being that
 * of random signs: at most 1, and of 16 of them hardly below 1/2. */
static void check_steep(tb_test *T, const char *eps_text, double eps,
                        const char *level)
{
    const double h = 1e-7, one = h * h;
    char block[64];
    tb_flow_spec s = audit_spec(1);
    s.settings.positions = 0;
    s.settings.init = "embed.*: const(1)";
    snprintf(block, sizeof block, "x = norm(x, eps=%s)", eps_text);
    tb_flow *f = measure(T, block, &s);
    TB_REQUIRE(T, f && f->nchecks == 1);
    const tb_verdict *v = verdict(f, "JACCHECK");
    TB_REQUIRE(T, v);
    TB_CHECK(T, v->value < 1.001 * (1 - tb_sqrt(eps / (one + eps))) + 1e-9);
    TB_CHECK(T, v->value > (1 - tb_sqrt(eps / (one / 2 + eps))) - 1e-7);
    TB_STR(T, tb_level_name(v->level), level);
    TB_STR(T, v->where, "block 1");
    TB_CHECK(T, f->checks[0].adjoint < 1e-12);
    tb_flow_free(T->ctx, f);
}

TB_TEST(derivatives_that_differences_do_not_see)
{
    check_steep(T, "1e-5", 1e-5, "OK");
    check_steep(T, "1e-9", 1e-9, "NOTE");
    check_steep(T, "1e-12", 1e-12, "WARN");
    check_steep(T, "1e-16", 1e-16, "FAIL");
}

TB_TEST(derivatives_of_every_built_in)
{
    for (size_t i = 0; i < tb_builtin_count(); i++) {
        tb_flow_spec s = audit_spec(2);
        s.dtype = i % 2 ? TB_F32 : TB_F64;
        tb_flow *f = measure(T, tb_builtin_name(i), &s);
        TB_REQUIRE(T, f);
        const tb_verdict *v = verdict(f, "JACCHECK");
        if (v && v->level != TB_OK_)
            tb_test_fail(T, __FILE__, __LINE__, "%s: %g", tb_builtin_name(i),
                         v->value);
        bool held = tb_streq(tb_builtin_name(i), "gpas"); /* by stop() */
        if (f->nchecks != (held ? 0 : 2))
            tb_test_fail(T, __FILE__, __LINE__, "%s: %zu blocks checked",
                         tb_builtin_name(i), f->nchecks);
        for (size_t c = 0; c < f->nchecks; c++)
            TB_CHECK(T, f->checks[c].adjoint < 1e-13);
        tb_flow_free(T->ctx, f);
    }
    tb_flow_spec s = audit_spec(2);
    tb_flow *f = measure(T, "x = x + stop(F(norm(x)))", &s);
    TB_REQUIRE(T, f);
    TB_CHECK(T, f->nchecks == 0 && !verdict(f, "JACCHECK"));
    tb_flow_free(T->ctx, f);
}

/* --- attention --------------------------------------------------------------
 */

enum { MANY = 32 };

static const tb_node *attention_of(const tb_graph *g)
{
    for (int i = 0; i < g->nnodes; i++)
        if (g->nodes[i].op == &tb_op_mha)
            return &g->nodes[i];
    return NULL;
}

/* softmax of q k / sqrt(8) over keys up to the query's, token 1's share. */
static double first_by_hand(measured *x, size_t head)
{
    enum { HD = WIDTH / HEADS };
    tb_run run;
    double sum = 0;
    const tb_node *n = attention_of(tb_model_graph(x->m, 1));
    if (!n || tb_model_run(x->m, 1, &x->batch, &run) != TB_OK)
        return -1;
    const double *q = tb_plan_value(&run, n->in[0]);
    const double *k = tb_plan_value(&run, n->in[1]);
    for (size_t i = 0; i < MANY; i++) {
        double all = 0, first = 0;
        for (size_t j = 0; j <= i; j++) {
            double s = 0;
            for (size_t c = 0; c < HD; c++)
                s +=
                    q[i * WIDTH + head * HD + c] * k[j * WIDTH + head * HD + c];
            double e = tb_exp(s / tb_sqrt((double)HD));
            all += e;
            first = j ? first : e;
        }
        sum += first / all;
    }
    return sum / MANY;
}

TB_TEST(attention_to_the_first_token)
{
    measured x;
    tb_flow_spec s = audit_spec(1);
    s.settings.context = MANY;
    TB_OKAY(T, open_measured(T->ctx, &x, "pre-ln", &s));
    TB_REQUIRE(T, x.f->nattention == 1 && x.f->attention[0].heads == HEADS);
    for (size_t h = 0; h < HEADS; h++)
        TB_NEAR(T, x.f->attention[0].first[h], first_by_hand(&x, h), 1e-12);
    TB_STR(T, tb_level_name(verdict(x.f, "SINK")->level), "OK");
    /* queries of head 2 look along the first key: a sink is made */
    tb_run run;
    TB_OKAY(T, tb_model_run(x.m, 1, &x.batch, &run));
    const double *k =
        tb_plan_value(&run, attention_of(tb_model_graph(x.m, 1))->in[1]);
    double *bias = (double *)x.m->params +
                   tb_model_view(x.m, "layers.0.attn.q.bias")->offset;
    for (size_t c = WIDTH / HEADS; c < WIDTH; c++)
        bias[c] = 20 * k[c];
    tb_flow_free(T->ctx, x.f);
    TB_OKAY(T, tb_flow_of_model(x.m, &s, &x.f));
    const tb_verdict *v = verdict(x.f, "SINK");
    TB_NEAR(T, v->value, first_by_hand(&x, 1), 1e-12);
    TB_CHECK(T, v->value > 0.3);
    TB_STR(T, tb_level_name(v->level), "NOTE");
    TB_STR(T, v->where, "k 1, attn of block 1, head 2; 1 of 2 heads");
    close_measured(T->ctx, &x);
}

/* Queries that spread evenly: (1 + 1/2 + ... + 1/T)/T of causal attention, 1/T
 * of full attention. */
TB_TEST(even_attention_is_no_sink)
{
    for (int causal = 0; causal < 2; causal++) {
        tb_flow_spec s = audit_spec(1);
        const tb_threshold low = {"SINK", 0.1};
        double even = 0;
        s.settings.context = MANY;
        s.settings.uniform_attention = 1;
        s.settings.causal = causal;
        s.thresholds = &low;
        s.nthresholds = 1;
        tb_flow *f = measure(T, "post-ln", &s);
        TB_REQUIRE(T, f);
        for (int i = 1; i <= MANY; i++)
            even += 1.0 / (causal ? i : MANY) / MANY;
        TB_NEAR(T, verdict(f, "SINK")->value, even, 1e-12);
        TB_STR(T, tb_level_name(verdict(f, "SINK")->level),
               causal ? "NOTE" : "OK");
        tb_flow_free(T->ctx, f);
    }
    tb_flow_spec s = audit_spec(1);
    s.settings.context = MANY - 1;
    tb_flow *f = measure(T, "post-ln", &s);
    TB_REQUIRE(T, f);
    TB_CHECK(T, !verdict(f, "SINK"));
    tb_flow_free(T->ctx, f);
}

/* --- no identity path -------------------------------------------------------
 */

TB_TEST(little_identity_and_a_drop)
{
    static const struct {
        const char *block;
        bool audit;
        const char *level;
    } cases[] = {{"x = 0.05*x + F(norm(x))/1000", false, "OK"},
                 {"x = 0.05*x + F(norm(x))/1000", true, "FAIL"},
                 {"x = 0.05*x + 3*F(norm(x))", true, "OK"},
                 {"x = 0.15*x + F(norm(x))/1000", true, "OK"}};
    for (size_t i = 0; i < TB_LEN(cases); i++) {
        tb_flow_spec s = audit_spec(1);
        s.audit = cases[i].audit ? &tb_flow_audit : NULL;
        tb_flow *f = measure(T, cases[i].block, &s);
        TB_REQUIRE(T, f);
        const tb_verdict *v = verdict(f, "NOSKIP");
        TB_STR(T, tb_level_name(v->level), cases[i].level);
        if (tb_streq(cases[i].level, "FAIL"))
            TB_NEAR(T, v->value, 0.05, 0.01);
        tb_flow_free(T->ctx, f);
    }
}

/* --- exponents of weights ---------------------------------------------------
 */

enum { SIDE = 24 };

/* Turns the columns (or rows) of a matrix of SIDE columns by I - 2 vv'/v'v. */
static void turn(double *w, size_t rows, bool of_rows, double from)
{
    size_t n = of_rows ? rows : SIDE, others = of_rows ? SIDE : rows;
    double v[2 * SIDE], square = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = from + (double)(i * 5 % 7);
        square += v[i] * v[i];
    }
    for (size_t o = 0; o < others; o++) {
        double dot = 0;
        for (size_t i = 0; i < n; i++)
            dot += v[i] * w[of_rows ? i * SIDE + o : o * SIDE + i];
        for (size_t i = 0; i < n; i++)
            w[of_rows ? i * SIDE + o : o * SIDE + i] -= 2 * dot / square * v[i];
    }
}

/* The least Kolmogorov-Smirnov distance over all starts; x falls. */
static double fit_by_hand(const double *x, size_t n)
{
    double best = 2, alpha = 0;
    for (size_t tail = 2; tail <= n; tail++) {
        double sum = 0, off = 0, least = x[tail - 1];
        for (size_t i = 0; i < tail; i++)
            sum += tb_log(x[i] / least);
        double a = 1 + (double)tail / sum;
        for (size_t i = 0; i < tail; i++) {
            double above = tb_exp((1 - a) * tb_log(x[i] / least));
            double is = (double)(i + 1) / (double)tail;
            off = tb_fabs(is - above) > off ? tb_fabs(is - above) : off;
        }
        if (off <= best) {
            best = off;
            alpha = a;
        }
    }
    return alpha;
}

static void check_exponent(tb_test *T, size_t rows, double alpha,
                           const char *level)
{
    tb_ctx *ctx = T->ctx;
    tb_block *b;
    tb_model *m;
    tb_flow *f;
    double x[SIDE];
    const char *block = rows == SIDE ? "u = linear(d, d); x = x + u(x)"
                                     : "u = linear(d, 2*d); t = linear(2*d, d);"
                                       "x = x + t(u(x))";
    tb_flow_spec s = tiny_spec(1, TB_COTANGENT_LOSS);
    s.settings.width = SIDE;
    s.audit = &tb_flow_audit;
    s.alpha = true;
    TB_OKAY(T, tb_block_load(ctx, block, &b));
    TB_OKAY(T, tb_model_create(ctx, b, &s.settings, s.dtype, &m));
    TB_OKAY(T, tb_model_init(m, s.seed));
    const tb_view *v = tb_model_view(m, "layers.0.u.weight");
    TB_REQUIRE(T, v && v->count == rows * SIDE);
    double *w = (double *)m->params + v->offset;
    memset(w, 0, v->count * sizeof *w);
    for (size_t i = 0; i < SIDE; i++) { /* quantiles of the law from 1 on */
        x[i] = tb_exp(-tb_log(((double)i + 0.5) / SIDE) / (alpha - 1));
        w[i * SIDE + i] = tb_sqrt(x[i]);
    }
    turn(w, rows, true, 1);
    turn(w, rows, false, -2);
    TB_OKAY(T, tb_flow_of_model(m, &s, &f));
    double found = 0;
    for (size_t i = 0; i < f->nweights; i++)
        if (tb_streq(f->weights[i].name, v->name))
            found = f->weights[i].alpha;
    TB_NEAR(T, found, fit_by_hand(x, SIDE), 1e-6);
    const tb_verdict *said = verdict(f, "ALPHA");
    TB_REQUIRE(T, said && strstr(said->sentence, "contested"));
    if (level) { /* it is the only matrix of blocks */
        TB_NEAR(T, said->value, found, 0);
        TB_STR(T, tb_level_name(said->level), level);
    }
    tb_flow_free(ctx, f);
    tb_model_destroy(m);
    tb_block_destroy(ctx, b);
}

TB_TEST(exponents_of_spectra)
{
    check_exponent(T, SIDE, 1.5, "NOTE");
    check_exponent(T, SIDE, 3, "OK");
    check_exponent(T, SIDE, 12, "NOTE");
    check_exponent(T, 2 * SIDE, 3, NULL);
    tb_flow_spec s = audit_spec(1); /* not asked for */
    tb_flow *f = measure(T, "pre-ln", &s);
    TB_REQUIRE(T, f && !verdict(f, "ALPHA"));
    tb_flow_free(T->ctx, f);
}
