/* SPDX-License-Identifier: MIT */
/* The evaluated symbolic Jacobian against tangent, backward and central
 * difference: every built-in block, and a thousand random ones; and the
 * symbolic lane against the backward pass with branches cut. */
#include "random_block.h"
#include "tb_test.h"
#include "model/symbolic.h"

#include <stdio.h>

enum { DEPTH = 4, BLOCKS = 1000 };

/** Largest errors met, printed at the end. */
typedef struct tb_worst {
    tb_agreement a;
    double lane, formula, silent;
    bool loose; /* random blocks may lose digits */
    size_t layers, undefined, kinds[TB_LANE_KIND_NONE + 1];
} tb_worst;

/* --- the lane as a matrix --------------------------------------------------
 * From the graph's own rules, with the norms' Jacobians by their formulas:
 * sums, constants and gates carry it, whatever is cut gives nothing. */

typedef struct tb_lane_matrices {
    tb_symbolic s;
    size_t n;
    double **at;   /* per node [its elements, n], NULL: zero */
    int *tolls;    /* per node: norms on the path that has most */
    bool vanished; /* somewhere paths cancelled to exactly 0 */
    tb_arena arena;
} tb_lane_matrices;

/* Of a node's elements by those of the stream that enters; all zero. */
static double *lane_new(tb_lane_matrices *m, size_t rows)
{
    return tb_arena_alloc(&m->arena, rows * m->n * sizeof(double));
}

static size_t lane_size(const tb_lane_matrices *m, int node)
{
    return tb_symbolic_count(&m->s, node) * m->n;
}

static void lane_add(tb_lane_matrices *m, int node, const double *from,
                     double sign, double *to)
{
    for (size_t i = 0; from && i < lane_size(m, node); i++)
        to[i] += sign * from[i];
}

/* to += diag(value of node) from */
static void lane_gate(tb_lane_matrices *m, int node, int by, const double *from,
                      double *to)
{
    const double *v = tb_symbolic_value(&m->s, by);
    size_t count = tb_symbolic_count(&m->s, by);
    for (size_t i = 0; from && i < lane_size(m, node); i++)
        to[i] += v[i / m->n % count] * from[i];
}

/* y = a/b: to += (a - y b) / b */
static void lane_quotient(tb_lane_matrices *m, int node, double *to)
{
    const tb_node *n = &m->s.graph->nodes[node];
    const double *y = tb_symbolic_value(&m->s, node);
    const double *v = tb_symbolic_value(&m->s, n->in[1]);
    const double *a = m->at[n->in[0]], *b = m->at[n->in[1]];
    size_t count = tb_symbolic_count(&m->s, n->in[1]);
    for (size_t i = 0; i < lane_size(m, node); i++) {
        size_t r = i / m->n;
        to[i] += ((a ? a[i] : 0) - (b ? y[r] * b[i] : 0)) / v[r % count];
    }
}

/* y = sum of w_t x_t, w of all tokens or of each: to += w_t from_t + x_t times
 * what w has */
static void lane_mix(tb_lane_matrices *m, int node, double *to)
{
    const tb_node *n = &m->s.graph->nodes[node];
    int w = n->in[n->nin - 1];
    size_t streams = (size_t)n->nin - 1, d = n->shape.width;
    size_t all = m->s.graph->nodes[w].shape.width;
    size_t row = (size_t)m->s.run->attr[node][TB_ATTR_MIX_ROW] * streams;
    bool own = m->s.graph->nodes[w].shape.kind == TB_SHAPE_STREAM;
    const double *v = tb_symbolic_value(&m->s, w);
    for (size_t t = 0; t < streams; t++)
        for (size_t i = 0; i < lane_size(m, node); i++) {
            size_t at = (own ? i / m->n / d * all : 0) + row + t;
            const double *x = tb_symbolic_value(&m->s, n->in[t]);
            if (m->at[n->in[t]])
                to[i] += v[at] * m->at[n->in[t]][i];
            if (m->at[w])
                to[i] += x[i / m->n] * m->at[w][at * m->n + i % m->n];
        }
}

/* A row of each token: to += sum over its width of v from, v 1 or a value. */
static void lane_rows(tb_lane_matrices *m, int node, int in, const double *v,
                      double share, double *to)
{
    size_t d = m->s.graph->nodes[in].shape.width;
    for (size_t i = 0; m->at[in] && i < lane_size(m, node); i++)
        for (size_t c = 0; c < d; c++) {
            size_t at = i / m->n * d + c;
            to[i] += share * (v ? v[at] : 1) * m->at[in][at * m->n + i % m->n];
        }
}

static void lane_dot(tb_lane_matrices *m, int node, double *to)
{
    const int *in = m->s.graph->nodes[node].in;
    for (int i = 0; i < 2; i++)
        lane_rows(m, node, in[i], tb_symbolic_value(&m->s, in[1 - i]), 1, to);
}

static void lane_sum(tb_lane_matrices *m, int node, double *to)
{
    const tb_node *n = &m->s.graph->nodes[node];
    double d = (double)m->s.graph->nodes[n->in[0]].shape.width;
    lane_rows(m, node, n->in[0], NULL, n->op == &tb_op_mean ? 1 / d : 1, to);
}

/* A norm, or the mask of drop, by its formula. */
static void lane_factor(tb_lane_matrices *m, tb_test *T, int i, double *to)
{
    int in = m->s.graph->nodes[i].in[0];
    const double *from = m->at[in];
    size_t rows = tb_symbolic_count(&m->s, i);
    size_t cols = tb_symbolic_count(&m->s, in);
    double *j = tb_arena_alloc(&m->arena, rows * cols * sizeof *j);
    if (!from)
        return;
    TB_OKAY(T, tb_symbolic_between(&m->s, in, i, TB_JAC_OPEN, j));
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < cols; k++)
            for (size_t c = 0; c < m->n; c++)
                to[r * m->n + c] += j[r * cols + k] * from[k * m->n + c];
}

/* x - x carries nothing. */
static void lane_drop_zero(tb_lane_matrices *m, int i)
{
    for (size_t k = 0; k < lane_size(m, i); k++)
        if (m->at[i][k] != 0)
            return;
    m->at[i] = NULL;
    m->tolls[i] = 0;
    m->vanished = true;
}

static void lane_node(tb_lane_matrices *m, tb_test *T, int i)
{
    const tb_node *n = &m->s.graph->nodes[i];
    const double *attr = m->s.run->attr[i];
    bool on = false;
    int tolls = n->op->lane == TB_LANE_TOLL;
    for (int k = 0; k < n->nin; k++) {
        on = on || m->at[n->in[k]];
        if (m->tolls[n->in[k]] > m->tolls[i])
            m->tolls[i] = m->tolls[n->in[k]];
    }
    m->tolls[i] += tolls;
    /* streams joined side by side come back through a linear, which is cut */
    bool wide = n->op == &tb_op_concat && n->nin > 1;
    if (!on || wide || n->op->lane == TB_LANE_CUT || n->op == &tb_op_stop) {
        m->tolls[i] = 0;
        return;
    }
    double *to = m->at[i] = lane_new(m, tb_symbolic_count(&m->s, i));
    const double *a = m->at[n->in[0]], *b = n->nin > 1 ? m->at[n->in[1]] : NULL;
    if (n->op == &tb_op_add || n->op == &tb_op_sub ||
        n->op == &tb_op_identity || n->op == &tb_op_shift) {
        lane_add(m, i, a, 1, to);
        lane_add(m, i, b, n->op == &tb_op_sub ? -1 : 1, to);
    } else if (n->op == &tb_op_affine) {
        lane_add(m, i, a, attr[TB_ATTR_AFFINE_SCALE], to);
    } else if (n->op == &tb_op_mul) {
        lane_gate(m, i, n->in[1], a, to);
        lane_gate(m, i, n->in[0], b, to);
    } else if (n->op == &tb_op_div) {
        lane_quotient(m, i, to);
    } else if (n->op == &tb_op_mix) {
        lane_mix(m, i, to);
    } else if (n->op == &tb_op_dot) {
        lane_dot(m, i, to);
    } else if (n->op == &tb_op_sum || n->op == &tb_op_mean) {
        lane_sum(m, i, to);
    } else if (tb_symbolic_find(n->op)) {
        lane_factor(m, T, i, to);
    } else {
        tb_test_fail(T, __FILE__, __LINE__, "lane: no rule for %s",
                     n->op->name);
    }
    lane_drop_zero(m, i);
}

/* NULL: the lane is zero. */
static const double *lane_matrix(tb_lane_matrices *m, tb_test *T, int from,
                                 int to)
{
    m->at =
        tb_arena_alloc(&m->arena, (size_t)m->s.graph->nnodes * sizeof *m->at);
    m->tolls = tb_arena_alloc(&m->arena,
                              (size_t)m->s.graph->nnodes * sizeof *m->tolls);
    m->at[from] = lane_new(m, m->n);
    for (size_t i = 0; i < m->n; i++)
        m->at[from][i * m->n + i] = 1;
    for (int i = from + 1; i <= to; i++)
        lane_node(m, T, i);
    return m->at[to];
}

/* Rows of the backward pass from the last boundary to the first. */
static void backward_rows(tb_test *T, const tb_run *run, const tb_graph *g,
                          bool cut, size_t n, double *out)
{
    double *unit = tb_alloc(T->ctx, n, sizeof *unit);
    const void *gout[1] = {unit};
    for (size_t i = 0; i < n; i++) {
        void *gin[1] = {out + i * n};
        tb_bwd b = {
            .hi = g->nboundaries - 1, .cut = cut, .gout = gout, .gin = gin};
        unit[i] = 1;
        TB_OKAY(T, tb_plan_backward(T->ctx, run, &b));
        unit[i] = 0;
    }
    tb_free(T->ctx, unit);
}

/* out == c I: exactly, or within a bound. */
static bool is_identity(const double *m, size_t n, double c, double within)
{
    for (size_t i = 0; i < n * n; i++) {
        double want = i / n == i % n ? c : 0;
        if (!(tb_fabs(m[i] - want) <= within))
            return false;
    }
    return true;
}

/* What the kind says of the matrix. Where paths cancelled, the pass through
 * them leaves rounding; a coefficient may be 0 in this layer: symbolic NULL. */
static bool kind_holds(const tb_lane_info *lane, const tb_lane_matrices *m,
                       const double *cut, const double *symbolic)
{
    double exact = m->vanished ? 1e-10 : 0;
    switch (lane->kind) {
    case TB_LANE_KIND_CLEAN:
        return is_identity(cut, m->n, 1, exact);
    case TB_LANE_KIND_SCALED:
        return is_identity(cut, m->n, symbolic ? symbolic[0] : 0, 1e-12);
    case TB_LANE_KIND_NONE:
        return is_identity(cut, m->n, 0, exact);
    case TB_LANE_KIND_GATED:
    case TB_LANE_KIND_TOLL:
        return true; /* the matrix says it */
    }
    return false;
}

static void check_lane(tb_test *T, const tb_trial *t, tb_worst *w)
{
    const tb_graph *g = t->graph;
    int from = g->boundaries[0].node,
        to = g->boundaries[g->nboundaries - 1].node;
    tb_lane_matrices m = {.s = tb_trial_symbolic(t)};
    tb_lane_info lane;
    tb_arena_init(&m.arena, T->ctx);
    m.n = tb_symbolic_count(&m.s, from);
    double *cut = lane_new(&m, m.n), largest = 0, error = 0;
    backward_rows(T, &t->run, g, true, m.n, cut);
    const double *symbolic = lane_matrix(&m, T, from, to);
    tb_status s = tb_graph_lane(T->ctx, g, &m.arena, &lane);
    for (size_t i = 0; i < m.n * m.n; i++) {
        double want = symbolic ? symbolic[i] : 0;
        worse(&error, tb_fabs(cut[i] - want));
        worse(&largest, tb_fabs(want));
    }
    worse(&w->lane, error / (largest > 0 ? largest : 1));
    if (s != TB_OK || !(error <= 1e-10 * largest + 1e-12) ||
        !kind_holds(&lane, &m, cut, symbolic) ||
        (lane.kind == TB_LANE_KIND_TOLL && !m.vanished &&
         lane.tolls != m.tolls[to]))
        tb_test_fail(T, __FILE__, __LINE__,
                     "lane %s (%s, %d tolls): error %g of %g",
                     tb_lane_kind_name(lane.kind), lane.coefficient, lane.tolls,
                     error, largest);
    else
        w->kinds[lane.kind]++;
    tb_arena_clear(&m.arena);
}

/* Rows of a backward pass through the whole graph, every stream out by every
 * stream in: out[streams*n, streams*n]. */
static void all_rows(tb_test *T, const tb_run *run, bool cut, size_t streams,
                     size_t n, double *out)
{
    size_t width = streams * n;
    const tb_graph *g = tb_plan_graph(run->plan);
    double *unit = tb_alloc(T->ctx, n, sizeof *unit);
    const void **gout = tb_alloc(T->ctx, (size_t)g->noutputs, sizeof *gout);
    void **gin = tb_alloc(T->ctx, (size_t)g->ninputs, sizeof *gin);
    TB_REQUIRE(T, unit && gout && gin);
    for (size_t i = 0; i < width; i++) {
        tb_bwd b = {.hi = -1, .lo = -1, .cut = cut, .gout = gout, .gin = gin};
        for (size_t k = 0; k < streams; k++)
            gin[k] = out + i * width + k * n;
        gout[i / n] = unit;
        unit[i % n] = 1;
        TB_OKAY(T, tb_plan_backward(T->ctx, run, &b));
        unit[i % n] = 0;
        gout[i / n] = NULL;
    }
    tb_free(T->ctx, unit);
    tb_free(T->ctx, gout);
    tb_free(T->ctx, gin);
}

/* The lane as a formula, every stream out by every stream in. */
static void check_lane_formula(tb_test *T, const tb_trial *t, tb_worst *w)
{
    const tb_symbolic at = tb_trial_symbolic(t);
    size_t streams = (size_t)t->graph->nstreams;
    size_t n = tb_symbolic_count(&at, t->graph->cuts[0].nodes[0]);
    size_t count = streams * n * streams * n;
    double error = 0, largest = 0;
    tb_jacobian j;
    tb_arena a;
    tb_arena_init(&a, T->ctx);
    double *symbolic = tb_arena_alloc(&a, count * sizeof *symbolic);
    double *cut = tb_arena_alloc(&a, count * sizeof *cut);
    tb_status s = tb_jacobian_build(T->ctx, &a, t->graph, TB_JAC_LANE, &j);
    if (s == TB_OK)
        s = tb_symbolic_matrix(&at, &j, n, symbolic);
    if (s == TB_OK)
        all_rows(T, &t->run, true, streams, n, cut);
    for (size_t i = 0; i < count; i++) {
        worse(&error, tb_fabs(symbolic[i] - cut[i]));
        worse(&largest, tb_fabs(cut[i]));
    }
    if (s != TB_OK || !(error <= 1e-10 * largest + 1e-12))
        tb_test_fail(T, __FILE__, __LINE__, "lane formula: %g of %g; %s", error,
                     largest, s == TB_OK ? "" : tb_error(T->ctx));
    worse(&w->formula, error / (largest > 1e-12 ? largest : 1));
    tb_arena_clear(&a);
}

/* --- F = 0 ---------------------------------------------------------------- */

/** A trial's layer with every sublayer's value 0. */
typedef struct tb_silenced {
    tb_graph graph;
    tb_plan *plan;
    tb_run run;
    tb_arena arena;
    size_t n;
} tb_silenced;

static tb_status silence(tb_test *T, const tb_trial *t, tb_silenced *z)
{
    size_t n = (size_t)t->graph->nnodes;
    tb_plan_spec spec = {.graph = &z->graph,
                         .batch = 1,
                         .time = t->time,
                         .dtype = TB_F64,
                         .passes = TB_PASS_BWD | TB_PASS_KEEP,
                         .name = "silenced"};
    z->graph = *t->graph;
    z->graph.nodes = tb_arena_alloc(&z->arena, n * sizeof(tb_node));
    memcpy(z->graph.nodes, t->graph->nodes, n * sizeof(tb_node));
    for (size_t i = 0; i < n; i++)
        if (z->graph.nodes[i].op == &tb_op_branch)
            z->graph.nodes[i].op = &tb_op_affine; /* 0*y + 0 */
    TB_TRY(tb_plan_create(T->ctx, &spec, &z->plan));
    z->run = t->run;
    z->run.plan = z->plan;
    z->run.saved = tb_alloc(T->ctx, tb_plan_saved_bytes(z->plan), 1);
    z->run.work = tb_alloc(T->ctx, tb_plan_work_bytes(z->plan), 1);
    return tb_plan_forward(T->ctx, &z->run);
}

static void check_silent(tb_test *T, const tb_trial *t, tb_worst *w)
{
    tb_silenced z = {0};
    tb_jacobian j;
    double error = 0, largest = 0;
    tb_arena_init(&z.arena, T->ctx);
    z.n = tb_shape_count(t->graph->nodes[t->graph->boundaries[0].node].shape, 1,
                         t->time);
    size_t width = z.n * (size_t)t->graph->nstreams;
    double *symbolic = tb_arena_alloc(&z.arena, width * width * 8);
    double *backward = tb_arena_alloc(&z.arena, width * width * 8);
    tb_status s = silence(T, t, &z);
    const tb_symbolic at = {T->ctx, &z.graph, &z.run, t->time};
    if (s == TB_OK)
        s = tb_jacobian_build(T->ctx, &z.arena, t->graph, TB_JAC_SILENT, &j);
    if (s == TB_OK)
        s = tb_symbolic_matrix(&at, &j, z.n, symbolic);
    if (s == TB_OK)
        all_rows(T, &z.run, false, (size_t)t->graph->nstreams, z.n, backward);
    for (size_t i = 0; i < width * width; i++) {
        worse(&error, tb_fabs(symbolic[i] - backward[i]));
        worse(&largest, tb_fabs(backward[i]));
    }
    /* nGPT: there is no direction of length 1 in a branch of zeros */
    bool undefined = s == TB_ERR_INPUT && strstr(tb_error(T->ctx), "eps = 0");
    if (!undefined && (s != TB_OK || !(error <= 1e-10 * largest + 1e-12)))
        tb_test_fail(T, __FILE__, __LINE__, "F = 0: error %g of %g; %s", error,
                     largest, s == TB_OK ? "" : tb_error(T->ctx));
    worse(&w->silent, error / (largest > 1e-12 ? largest : 1));
    w->undefined += undefined;
    tb_free(T->ctx, z.run.saved);
    tb_free(T->ctx, z.run.work);
    if (z.plan)
        tb_plan_destroy(T->ctx, z.plan);
    tb_arena_clear(&z.arena);
}

/* --- one block ------------------------------------------------------------ */

static void check_layer(tb_test *T, const tb_block *b, const tb_settings *s,
                        size_t l, size_t time, uint64_t seed, tb_worst *w)
{
    tb_trial t;
    tb_agreement a = {0};
    const double within = w->loose ? 1e-7 : 1e-10;
    tb_status status = tb_trial_open(&t, T->ctx, b, s, l, time, seed);
    if (status == TB_OK)
        status = tb_trial_check(&t, &a);
    if (status != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "layer %zu: %s", l,
                     tb_error(T->ctx));
    else if (!(a.tangent <= within && a.backward <= within &&
               a.difference <= 1e-9 + 20 * a.bound))
        tb_test_fail(T, __FILE__, __LINE__,
                     "layer %zu: tangent %g backward %g difference %g (%g)", l,
                     a.tangent, a.backward, a.difference, a.bound);
    if (status == TB_OK) {
        check_lane(T, &t, w);
        check_lane_formula(T, &t, w);
        check_silent(T, &t, w);
    }
    worse(&w->a.tangent, a.tangent);
    worse(&w->a.backward, a.backward);
    worse(&w->a.difference, a.difference);
    w->layers++;
    tb_trial_close(&t);
}

/* Every kind of layer once. */
static void check_layers(tb_test *T, const tb_block *b, const tb_settings *s,
                         size_t time, uint64_t seed, tb_worst *w)
{
    tb_sizes sizes;
    int before = -1, section;
    TB_OKAY(T, tb_sizes_resolve(T->ctx, b, s, &sizes));
    for (size_t l = 1; l <= s->depth; l++) {
        TB_OKAY(T, tb_graph_section(T->ctx, b, &sizes, TB_STACK_DECODER, l,
                                    &section));
        if (section != before)
            check_layer(T, b, s, l, time, seed, w);
        before = section;
    }
}

static void print_worst(const char *what, const tb_worst *w)
{
    printf("%s: %zu layers, largest error against tangent %.2g, backward "
           "%.2g, difference %.2g, lane %.2g, its formula %.2g, F = 0 %.2g "
           "(%zu without); lanes",
           what, w->layers, w->a.tangent, w->a.backward, w->a.difference,
           w->lane, w->formula, w->silent, w->undefined);
    for (int k = 0; k <= TB_LANE_KIND_NONE; k++)
        printf(" %s %zu", tb_lane_kind_name((tb_lane_kind)k), w->kinds[k]);
    printf("\n");
}

TB_TEST(every_builtin_block)
{
    tb_worst w = {0};
    for (const tb_builtin *b = tb_builtins; b->name; b++) {
        tb_settings s = TB_SETTINGS_UNSET;
        tb_block *block;
        int failed = T->failed;
        s.depth = DEPTH;
        s.width = 8;
        s.heads = 2;
        TB_OKAY(T, tb_block_load(T->ctx, b->name, &block));
        check_layers(T, block, &s, 4, 7, &w);
        if (T->failed > failed)
            printf("block %s\n", b->name);
        tb_block_destroy(T->ctx, block);
    }
    print_worst("built-in blocks", &w);
}

/* --- particular blocks ---------------------------------------------------- */

TB_TEST(particular_blocks)
{
    static const char *const texts[] = {
        /* a sublayer that reads more than its argument */
        "r = 2*x; attn(u) = o(mha(q(u), k(u), v(u))) + r\n"
        "x = x + F(norm(x))",
        "attn(u) = x*o(u); ffn(u) = down(up(u)) - x\n"
        "x = norm(x) + attn(norm(x)) + ffn(x)",
        /* one sublayer twice in a step: each with its own inner norm */
        "attn(u) = o(norm(mha(q(u), k(u), v(u))))\n"
        "x = x + attn(x)*attn(x) - 2*attn(norm(x))",
        /* masks and stopped values stand still */
        "x = x + drop(F(drop(norm(x), 0.5)), 0.25)",
        "x = drop(x, 0.5) + F(norm(x))",
        "x = stop(x) + F(norm(x)) + x*stop(F(x))",
        "x = stop(x)",
        /* streams that cross, pass or end */
        "stem: a = 2*x; b = tanh(x)\n"
        "block: t = a; a = x + attn(norm(a)); x = t*x - ffn(b)",
        "stem: a = x\nblock: a = x; x = norm(a)",
        /* no lane through a difference that is 0, one past it */
        "u = x; x = norm(x - u)*x + F(x)",
        "u = x; x = x*norm(x - u) + F(x)",
        /* where eps stands, what the variance divides by, parts */
        "x = x + F(norm(x, eps_mode=outside, eps=0.1, unbiased=true))",
        "x = norm(x + F(norm(x, eps_mode=inside, eps=0.3, groups=2)))",
        "x = norm(F(x) + x, eps_mode=clamp, eps=1e-3, groups=2)",
        "x = norm(F(x) + x, eps_mode=clamp, eps=7)",
        "x = x + F(rmsnorm(x, eps_mode=clamp_square, eps=99, groups=heads))",
        "x = rmsnorm(x, eps_mode=dtype) + F(rmsnorm(x, eps_mode=none))",
        "attn(u) = o(mha(norm(q(u), groups=h), norm(k(u), groups=heads), "
        "v(u)))\nx = norm(x + F(x))\n"
        "model: eps_mode = outside; eps = 0.2; variance = onepass",
        "x = x + F(scalenorm(x))",
        "x = scalenorm(x, eps_mode=outside, eps=0.3, groups=2) + F(l2norm(x))",
        "x = l2norm(x + F(x), eps=9, groups=heads)",
        "x = dyt(x + F(derf(x)))",
        "attn(u) = o(derf(mha(dyt(q(u)), k(u), v(u))))\nx = derf(x) + F(x)",
        "attn(u) = o(mha(rope(q(u)), rope(k(u), base=100), v(u)))\n"
        "x = rope(x, base=3) + F(norm(x))",
        "w = linear(2*d, d)\nx = x + w(concat(F(x), norm(x)))",
        "w = linear(4*d, d)\nx = w(concat(x, F(x), x*x, x)) + concat(x)",
        "x = x + drop_branch(F(norm(x)), 0.5)",
        "x = drop_branch(x, l/(2*N)) + F(exp(-abs(x)))",
        "attn(u) = o(mha(q(u), k(u), v(u), scale=h/d))\nx = x + F(norm(x))",
        /* statistics over tokens */
        "x = batchnorm(x + F(x))",
        "x = x + F(powernorm(batchnorm(x), eps=0.3))",
        "x = batchnorm(x, eps_mode=outside, eps=0.1) + F(powernorm(x))\n"
        "attn(u) = o(batchnorm(mha(q(u), powernorm(k(u)), v(u))))",
        "x = powernorm(x, eps_mode=dtype)*batchnorm(x, eps_mode=none) + F(x)",
        /* kinks and saturation */
        "ffn(u) = down(relu(up(u)))\nx = x + F(softmax(3*x))",
        /* it reads what another sublayer made of its argument */
        "attn(u) = o(v(u)) - 0.1*x\n"
        "stem: y = x\nblock: x = x + ffn(y); y = x + attn(y)",
        /* two streams that are one value where the sublayers meet */
        "stem: a = 2*x\nblock: x = x + attn(x); x = a; a = x - a + attn(x)",
    };
    tb_worst w = {0};
    for (size_t i = 0; i < TB_LEN(texts); i++) {
        tb_settings s = TB_SETTINGS_UNSET;
        tb_block *b;
        int failed = T->failed;
        s.depth = DEPTH;
        s.width = 8;
        s.heads = 4;
        s.kv_heads = 2;
        s.dropout = i % 2 ? 0.2 : 0;
        TB_OKAY(T, tb_block_load(T->ctx, texts[i], &b));
        check_layers(T, b, &s, 3, i, &w);
        if (T->failed > failed)
            printf("block:\n%s\n", texts[i]);
        tb_block_destroy(T->ctx, b);
    }
    print_worst("particular blocks", &w);
}

/* Frozen statistics: one after the other, every token by itself. */
TB_TEST(given_statistics)
{
    tb_settings s = TB_SETTINGS_UNSET;
    tb_trial t;
    tb_block *b;
    tb_agreement a;
    s.width = 8;
    TB_OKAY(T, tb_block_load(T->ctx,
                             "x = batchnorm(x) + F(powernorm(x, eps=0.1))\n"
                             "x = batchnorm(x, eps_mode=outside, eps=0.2)",
                             &b));
    TB_OKAY(T, tb_trial_open(&t, T->ctx, b, &s, 1, 3, 5));
    double(*attr)[TB_OP_ATTRS] = (double(*)[TB_OP_ATTRS])(uintptr_t)t.run.attr;
    for (int i = 0; i < t.graph->nnodes; i++)
        if (t.graph->nodes[i].op->state)
            attr[i][TB_ATTR_BATCH_STATISTICS] = TB_STATISTICS_FROZEN;
    TB_OKAY(T, tb_plan_forward(T->ctx, &t.run));
    TB_OKAY(T, tb_trial_check(&t, &a));
    TB_CHECK(T, a.tangent < 1e-12 && a.backward < 1e-12 && a.largest > 0.1);
    TB_CHECK(T, a.difference < 1e-7);
    tb_trial_close(&t);
    tb_block_destroy(T->ctx, b);
}

/* --- random blocks -------------------------------------------------------- */

/* parse -> print -> parse -> print stands still. */
static void check_round_trip(tb_test *T, const tb_block *b)
{
    tb_buf once, twice;
    tb_block *again = NULL;
    tb_buf_init(&once, T->ctx);
    tb_buf_init(&twice, T->ctx);
    tb_block_print(b, &once);
    tb_status s = tb_block_parse(T->ctx, NULL, tb_buf_str(&once), once.len,
                                 TB_PARSE_BLOCK, &again);
    if (s == TB_OK)
        tb_block_print(again, &twice);
    if (s != TB_OK || !tb_streq(tb_buf_str(&once), tb_buf_str(&twice)))
        tb_test_fail(T, __FILE__, __LINE__, "printed:\n%s\nread back:\n%s\n%s",
                     tb_buf_str(&once), tb_buf_str(&twice),
                     s == TB_OK ? "" : tb_error(T->ctx));
    if (s == TB_OK)
        tb_block_destroy(T->ctx, again);
    tb_buf_clear(&once);
    tb_buf_clear(&twice);
}

static void check_random(tb_test *T, uint64_t seed, tb_worst *w)
{
    tb_settings s = TB_SETTINGS_UNSET;
    tb_block *b;
    random_drawn d;
    int failed = T->failed;
    random_block(T->ctx, seed, 0, &d);
    s.depth = DEPTH;
    s.heads = d.heads;
    s.width = d.width;
    s.stack = d.stack;
    if (tb_block_parse(T->ctx, NULL, tb_buf_str(&d.text), d.text.len,
                       TB_PARSE_BLOCK, &b) == TB_OK) {
        check_round_trip(T, b);
        check_layers(T, b, &s, 1 + seed / 2 % 4, seed, w);
        tb_block_destroy(T->ctx, b);
    } else {
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    }
    if (T->failed > failed)
        printf("seed %llu:\n%s\n", (unsigned long long)seed,
               tb_buf_str(&d.text));
    tb_buf_clear(&d.text);
}

TB_TEST(a_thousand_random_blocks)
{
    tb_worst w = {.loose = true};
    const random_seeds all = random_asked(BLOCKS);
    for (uint64_t seed = all.from; seed < all.to && T->failed < 10; seed++)
        check_random(T, seed, &w);
    print_worst("random blocks", &w);
    for (int k = 0; k <= TB_LANE_KIND_NONE; k++)
        TB_CHECK(T, !all.enough || w.kinds[k] > 0);
    TB_CHECK(T, 20 * w.undefined < w.layers);
}

/* --- the table ------------------------------------------------------------ */

/* An op that stands in formulas as a factor of its own and can be written in a
 * block has a closed formula. */
TB_TEST(every_factor_has_a_formula)
{
    for (size_t i = 0; tb_ops[i]; i++) {
        tb_jac jac = tb_ops[i]->jac;
        bool factor = jac == TB_JAC_SYMBOL || jac == TB_JAC_DIAG ||
                      jac == TB_JAC_WEIGHT || jac == TB_JAC_MULTI;
        if (factor && tb_op_find(tb_ops[i]->name) == tb_ops[i] &&
            !tb_symbolic_find(tb_ops[i]))
            tb_test_fail(T, __FILE__, __LINE__,
                         "%s: no row in model/symbolic_ops.c", tb_ops[i]->name);
    }
}

static const char small_text[] = "x = x + F(norm(x))";

static tb_status open_small(tb_test *T, tb_block **b, tb_trial *t)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.width = 4;
    s.heads = 2;
    TB_TRY(tb_block_parse(T->ctx, NULL, small_text, sizeof small_text - 1,
                          TB_PARSE_BLOCK, b));
    return tb_trial_open(t, T->ctx, *b, &s, 1, 2, 1);
}

static tb_status whole(const tb_trial *t, double *out)
{
    const tb_symbolic s = tb_trial_symbolic(t);
    const tb_boundary *b = t->graph->boundaries;
    return tb_symbolic_between(&s, b[0].node, b[t->graph->nboundaries - 1].node,
                               TB_JAC_CLOSED, out);
}

/* A new op, or one with options or inputs a formula does not know of, is
 * refused by name instead of evaluated as something else. */
TB_TEST(what_has_no_formula_is_refused_by_name)
{
    tb_block *b = NULL;
    tb_trial t;
    double out[64];
    TB_OKAY(T, open_small(T, &b, &t));
    for (int i = 0; i < t.graph->nnodes; i++) {
        tb_node *n = &t.graph->nodes[i];
        const tb_op *op = n->op;
        tb_op strange = *op;
        if (!tb_symbolic_find(op))
            continue;
        strange.name = "strange";
        n->op = &strange;
        TB_FAILS(T, whole(&t, out), TB_ERR_ARG, "strange");
        n->op = op;
        double *attr = (double *)(uintptr_t)t.run.attr[i];
        attr[TB_OP_ATTRS - 1] = 1;
        TB_FAILS(T, whole(&t, out), TB_ERR_ARG, op->name);
        attr[TB_OP_ATTRS - 1] = 0;
    }
    TB_OKAY(T, whole(&t, out));
    tb_trial_close(&t);
    tb_block_destroy(T->ctx, b);
}

/* Open, check, close, with the n-th allocation failing (0: none). */
static tb_status try_small(tb_test *T, size_t n)
{
    tb_block *b = NULL;
    tb_trial t = {0};
    tb_agreement a;
    tb_arena_init(&t.arena, T->ctx);
    tb_ctx_fail_alloc_at(T->ctx, n);
    tb_status status = open_small(T, &b, &t);
    if (status == TB_OK)
        status = tb_trial_check(&t, &a);
    tb_ctx_fail_alloc_at(T->ctx, 0);
    tb_trial_close(&t);
    if (b)
        tb_block_destroy(T->ctx, b);
    return status;
}

TB_TEST(every_allocation_may_fail)
{
    TB_OKAY(T, try_small(T, 0)); /* what is opened once stays open */
    size_t before = tb_ctx_blocks(T->ctx), n = 1;
    tb_status status = TB_ERR_MEMORY;
    for (; status != TB_OK && n < 2000; n++) {
        status = try_small(T, n);
        TB_REQUIRE(T, status == TB_OK || status == TB_ERR_MEMORY);
        TB_REQUIRE(T, tb_ctx_blocks(T->ctx) == before);
    }
    TB_CHECK(T, status == TB_OK && n > 10);
}
