/* SPDX-License-Identifier: MIT */
/* Derivatives of whole hand-built graphs, all in double: backward against
 * tangent, tangent against a central difference, storage reuse on and off. */
#include "unit/test_plan_hand.h"

static const char *zoo_name; /* of the graph under test, for messages */

/* <gout, tout> over outputs, or <gin, tin> over inputs and parameters. */
static double outputs_dot(const rig *r, void *const *a, void *const *b)
{
    double sum = 0;
    for (int o = 0; o < r->g->noutputs; o++)
        sum += rig_dot(r, a[o], b[o], r->g->outputs[o].node);
    return sum;
}

static double leaves_dot(const rig *r)
{
    double sum = 0;
    for (int i = 0; i < r->g->ninputs; i++)
        if (!rig_is_ids(r, r->g->inputs[i]))
            sum += rig_dot(r, r->gin[i], r->tin[i], r->g->inputs[i]);
    for (int i = 0; i < r->g->nparams; i++)
        sum += rig_dot(r, r->gparams[i], r->tparams[i], r->g->params[i].node);
    return sum;
}

static tb_status tangent(rig *r)
{
    rig_dirty(r, false);
    return tb_plan_tangent(r->T->ctx, &r->run, (const void *const *)r->tin,
                           (const void *const *)r->tparams, r->tout);
}

static void adjoint(tb_test *T, const hand_kind *kind)
{
    hand h;
    rig r;
    hand_init(&h);
    kind->make(&h);
    if (!rig_make(&r, T, &h, TB_F64, TB_PASS_BWD | TB_PASS_TAN))
        return;
    rig_zero_gparams(&r);
    TB_OKAY(T, rig_forward(&r));
    TB_OKAY(T, rig_backward(&r, -1, -1, false, NULL, NULL, true));
    TB_OKAY(T, tangent(&r));
    double want = outputs_dot(&r, r.gout, r.tout), got = leaves_dot(&r);
    if (!(tb_fabs(got - want) <= 1e-12 * (1 + tb_fabs(want))))
        tb_test_fail(T, __FILE__, __LINE__, "%s: %g, not %g", kind->name, got,
                     want);
    TB_CHECK(T, want != 0);
    rig_free(&r);
}

TB_TEST(backward_is_the_adjoint_of_tangent)
{
    for (size_t i = 0; i < TB_LEN(hand_zoo); i++)
        adjoint(T, &hand_zoo[i]);
}

/* --- random graphs ---------------------------------------------------------
 */

/* Mostly sums and aliases, whose storage is shared; several outputs. */
static void random_graph(tb_test *T, hand *h)
{
    const tb_op *const ops[] = {&tb_op_add,  &tb_op_add,      &tb_op_sub,
                                &tb_op_mul,  &tb_op_identity, &tb_op_stop,
                                &tb_op_tanh, &tb_op_layernorm};
    hand_init(h);
    for (int i = 0; i < 2; i++)
        hand_stream(h, 8);
    int n = 5 + (int)(tb_test_uniform(T) * 20);
    while (h->g.nnodes < n) {
        const tb_op *op = ops[(int)(tb_test_uniform(T) * 8)];
        int in[2];
        for (int i = 0; i < 2; i++) {
            double u = tb_test_uniform(T);
            in[i] = (int)((1 - u * u) * h->g.nnodes); /* rather the last */
            in[i] = in[i] < h->g.nnodes ? in[i] : h->g.nnodes - 1;
        }
        hand_call(h, op, op->min_in, in, (double[]){1e-2, 0});
    }
    hand_output(h, "x", n - 1);
    for (int i = 0; i < 4; i++)
        hand_output(h, "y", (int)(tb_test_uniform(T) * n));
    if (tb_test_uniform(T) < 0.5)
        hand_boundary(h, (int)(tb_test_uniform(T) * n));
}

static double largest(const rig *r)
{
    double m = 0;
    for (int o = 0; o < r->g->noutputs; o++)
        for (size_t i = 0; i < rig_count(r, r->g->outputs[o].node); i++) {
            double v = tb_fabs(tb_test_get(TB_F64, r->tout[o], i));
            m = v > m ? v : m;
        }
    return m;
}

TB_TEST(random_graphs_are_adjoint)
{
    for (int round = 0; round < 400; round++) {
        hand h;
        rig r;
        random_graph(T, &h);
        if (!rig_make(&r, T, &h, TB_F64, TB_PASS_BWD | TB_PASS_TAN))
            return;
        TB_OKAY(T, rig_forward(&r));
        TB_OKAY(T, rig_backward(&r, -1, -1, false, NULL, NULL, false));
        TB_OKAY(T, tangent(&r));
        double want = outputs_dot(&r, r.gout, r.tout), got = leaves_dot(&r);
        if (!(tb_fabs(got - want) <= 1e-11 * (1 + largest(&r))))
            tb_test_fail(T, __FILE__, __LINE__, "round %d: %g, not %g", round,
                         got, want);
        rig_free(&r);
    }
}

/* --- central difference -------------------------------------------------- */

static void step_leaf(const rig *r, void *x, const void *t, int node, double h)
{
    if (!rig_is_ids(r, node))
        for (size_t i = 0; i < rig_count(r, node); i++)
            ((double *)x)[i] += h * ((const double *)t)[i];
}

/* Moves along one leaf (`only`, inputs first), or along all of them (-1). */
static void step(const rig *r, int only, double h)
{
    int n = r->g->ninputs;
    for (int i = 0; i < n; i++)
        if (only < 0 || only == i)
            step_leaf(r, r->inputs[i], r->tin[i], r->g->inputs[i], h);
    for (int i = 0; i < r->g->nparams; i++)
        if (only < 0 || only == n + i)
            step_leaf(r, r->params[i], r->tparams[i], r->g->params[i].node, h);
}

/* d <gout, out> / dh by a central difference. */
static double quotient(tb_test *T, rig *r, int only)
{
    const double h = 1e-5;
    double at[2];
    for (int i = 0; i < 2; i++) {
        step(r, only, i ? -2 * h : h);
        if (rig_forward(r) != TB_OK)
            tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
        at[i] = outputs_dot(r, r->gout, r->outputs);
    }
    step(r, only, h);
    return (at[0] - at[1]) / (2 * h);
}

static double leaf_dot(const rig *r, int only)
{
    int n = r->g->ninputs;
    if (only < n)
        return rig_dot(r, r->gin[only], r->tin[only], r->g->inputs[only]);
    return rig_dot(r, r->gparams[only - n], r->tparams[only - n],
                   r->g->params[only - n].node);
}

/* The gradient of every leaf alone: a swap of two cannot hide. */
static void difference(tb_test *T, const hand_kind *kind)
{
    hand h;
    rig r;
    zoo_name = kind->name;
    hand_init(&h);
    kind->make(&h);
    if (!rig_make(&r, T, &h, TB_F64, TB_PASS_BWD))
        return;
    rig_zero_gparams(&r);
    TB_OKAY(T, rig_forward(&r));
    TB_OKAY(T, rig_backward(&r, -1, -1, false, NULL, NULL, true));
    for (int i = 0; i < h.g.ninputs + h.g.nparams; i++) {
        if (i < h.g.ninputs && rig_is_ids(&r, h.inputs[i]))
            continue;
        double want = quotient(T, &r, i), got = leaf_dot(&r, i);
        if (!(tb_fabs(got - want) <= 1e-7 * (1 + tb_fabs(want))))
            tb_test_fail(T, __FILE__, __LINE__, "%s, leaf %d: %g, not %g",
                         zoo_name, i, got, want);
    }
    rig_free(&r);
}

TB_TEST(backward_is_the_central_difference)
{
    for (size_t i = 0; i < TB_LEN(hand_zoo); i++)
        if (!hand_zoo[i].stops)
            difference(T, &hand_zoo[i]);
}

/* --- reuse of storage ----------------------------------------------------- */

static void copy_leaves(const rig *to, const rig *from)
{
    const tb_graph *g = from->g;
    for (int i = 0; i < g->ninputs; i++)
        memcpy(to->inputs[i], from->inputs[i], rig_bytes(from, g->inputs[i]));
    for (int i = 0; i < g->nparams; i++)
        memcpy(to->params[i], from->params[i],
               rig_bytes(from, g->params[i].node));
    for (int o = 0; o < g->noutputs; o++)
        memcpy(to->gout[o], from->gout[o], rig_bytes(from, g->outputs[o].node));
}

static void same_leaves(tb_test *T, const rig *a, const rig *b)
{
    const tb_graph *g = a->g;
    for (int i = 0; i < g->ninputs; i++)
        if (!rig_is_ids(a, g->inputs[i]))
            TB_SAME(T, a->gin[i], b->gin[i], rig_bytes(a, g->inputs[i]));
    for (int i = 0; i < g->nparams; i++)
        TB_SAME(T, a->gparams[i], b->gparams[i],
                rig_bytes(a, g->params[i].node));
    for (int o = 0; o < g->noutputs; o++)
        TB_SAME(T, a->outputs[o], b->outputs[o],
                rig_bytes(a, g->outputs[o].node));
}

static void reuse(tb_test *T, const hand_kind *kind, tb_dtype dtype)
{
    hand h;
    rig r[2];
    const unsigned passes[] = {TB_PASS_BWD, TB_PASS_BWD | TB_PASS_KEEP};
    hand_init(&h);
    kind->make(&h);
    for (int i = 0; i < 2; i++) {
        if (!rig_make(&r[i], T, &h, dtype, passes[i]))
            return;
        copy_leaves(&r[i], &r[0]);
        rig_zero_gparams(&r[i]);
        TB_OKAY(T, rig_forward(&r[i]));
        TB_OKAY(T, rig_backward(&r[i], -1, -1, false, NULL, NULL, true));
    }
    TB_CHECK(T,
             tb_plan_saved_bytes(r[0].plan) <= tb_plan_saved_bytes(r[1].plan));
    same_leaves(T, &r[0], &r[1]);
    rig_free(&r[0]);
    rig_free(&r[1]);
}

TB_TEST(keeping_every_value_changes_no_bit)
{
    for (size_t i = 0; i < TB_LEN(hand_zoo); i++) {
        reuse(T, &hand_zoo[i], TB_F32);
        reuse(T, &hand_zoo[i], TB_F64);
    }
}

/* C025: x + f(x) with f(v) = v v; an overwritten x would give [5,13,25]. */
static void square_in(tb_test *T, unsigned passes)
{
    hand h;
    rig r;
    const double x[] = {1, 2, 3}, want[] = {3, 5, 7};
    hand_init(&h);
    hand_square(&h);
    if (!rig_make(&r, T, &h, TB_F64, passes))
        return;
    for (int row = 0; row < RIG_BATCH * RIG_TIME; row++)
        for (int c = 0; c < 3; c++) {
            ((double *)r.inputs[0])[row * 3 + c] = x[c];
            ((double *)r.gout[0])[row * 3 + c] = 1;
        }
    TB_OKAY(T, rig_forward(&r));
    TB_OKAY(T, rig_backward(&r, -1, -1, false, NULL, NULL, false));
    for (int row = 0; row < RIG_BATCH * RIG_TIME; row++)
        TB_SAME(T, (double *)r.gin[0] + row * 3, want, sizeof(want));
    rig_free(&r);
}

TB_TEST(residual_backward_sees_the_old_x)
{
    square_in(T, TB_PASS_BWD);
    square_in(T, TB_PASS_BWD | TB_PASS_TAN);
    square_in(T, TB_PASS_BWD | TB_PASS_KEEP);
}

/* --- what is wanted ------------------------------------------------------- */

TB_TEST(gradients_of_parameters_are_added_to)
{
    hand h;
    rig r;
    hand_init(&h);
    hand_pre(&h);
    if (!rig_make(&r, T, &h, TB_F64, TB_PASS_BWD))
        return;
    size_t n = rig_count(&r, h.params[0].node);
    double once[64];
    TB_REQUIRE(T, n <= TB_LEN(once));
    rig_zero_gparams(&r);
    TB_OKAY(T, rig_forward(&r));
    TB_OKAY(T, rig_backward(&r, -1, -1, false, NULL, NULL, true));
    memcpy(once, r.gparams[0], n * sizeof(double));
    TB_OKAY(T, rig_backward(&r, -1, -1, false, NULL, NULL, true));
    for (size_t i = 0; i < n; i++)
        TB_NEAR(T, ((double *)r.gparams[0])[i], 2 * once[i], 1e-13);
    rig_free(&r);
}

/* Every graph of the zoo, its input gradients added to what is there. */
TB_TEST(gradients_of_inputs_are_added_where_asked)
{
    static const bool adds[] = {true, true, true, true};
    for (size_t z = 0; z < TB_LEN(hand_zoo); z++) {
        hand h;
        rig r;
        hand_init(&h);
        hand_zoo[z].make(&h);
        if (!rig_make(&r, T, &h, TB_F64, TB_PASS_BWD))
            return;
        tb_bwd b = {.hi = -1, .lo = -1, .gout = (const void *const *)r.gout};
        b.gin = r.gin;
        TB_CHECK(T, h.g.ninputs <= (int)TB_LEN(adds));
        TB_OKAY(T, rig_forward(&r));
        TB_OKAY(T, tb_plan_backward(T->ctx, &r.run, &b));
        b.adds = adds;
        TB_OKAY(T, tb_plan_backward(T->ctx, &r.run, &b));
        b.gin = r.tin;
        b.adds = NULL;
        TB_OKAY(T, tb_plan_backward(T->ctx, &r.run, &b));
        for (int i = 0; i < h.g.ninputs; i++)
            for (size_t j = 0;
                 !rig_is_ids(&r, h.inputs[i]) && j < rig_count(&r, h.inputs[i]);
                 j++)
                TB_NEAR(T, ((double *)r.gin[i])[j], 2 * ((double *)r.tin[i])[j],
                        1e-12);
        rig_free(&r);
    }
}

/* Whatever is asked for, the parts asked for have the same bits. */
TB_TEST(unwanted_gradients_are_skipped)
{
    hand h;
    rig r;
    hand_init(&h);
    hand_gated(&h);
    if (!rig_make(&r, T, &h, TB_F64, TB_PASS_BWD))
        return;
    double alone[64], gate = 0;
    TB_OKAY(T, rig_forward(&r));
    TB_OKAY(T, rig_backward(&r, -1, -1, false, NULL, NULL, false));
    memcpy(alone, r.gin[0], sizeof(alone));
    rig_zero_gparams(&r);
    TB_OKAY(T, rig_backward(&r, -1, -1, false, NULL, NULL, true));
    TB_SAME(T, r.gin[0], alone, sizeof(alone));
    gate = *(double *)r.gparams[0];
    r.gin[0] = NULL;
    rig_zero_gparams(&r);
    TB_OKAY(T, rig_backward(&r, -1, -1, false, NULL, NULL, true));
    TB_SAME(T, r.gparams[0], &gate, sizeof(gate));
    rig_free(&r);
}

TB_TEST(no_cotangent_gives_zero)
{
    hand h;
    rig r;
    const double zero[64] = {0};
    hand_init(&h);
    hand_many(&h);
    if (!rig_make(&r, T, &h, TB_F64, TB_PASS_BWD))
        return;
    TB_OKAY(T, rig_forward(&r));
    TB_OKAY(T, rig_backward(&r, -1, -1, false, NULL, NULL, false));
    TB_SAME(T, r.gin[2], zero, 32 * sizeof(double)); /* nobody reads it */
    memset(r.gout, 0, sizeof(r.gout));
    TB_OKAY(T, rig_backward(&r, -1, -1, false, NULL, NULL, false));
    TB_SAME(T, r.gin[0], zero, sizeof(zero));
    TB_SAME(T, r.gin[1], zero, sizeof(zero));
    rig_free(&r);
}

TB_TEST(stop_passes_nothing)
{
    hand h;
    rig r;
    hand_init(&h);
    hand_stopped(&h);
    if (!rig_make(&r, T, &h, TB_F64, TB_PASS_BWD | TB_PASS_TAN))
        return;
    TB_OKAY(T, rig_forward(&r));
    TB_OKAY(T, rig_backward(&r, -1, -1, false, NULL, NULL, false));
    TB_OKAY(T, tangent(&r));
    for (size_t i = 0; i < 64; i++) {
        double x = ((double *)r.inputs[0])[i];
        TB_NEAR(T, ((double *)r.gin[0])[i], ((double *)r.gout[1])[i] * x, 0);
        TB_NEAR(T, ((double *)r.tout[0])[i], 0, 0);
        TB_NEAR(T, ((double *)r.tout[1])[i], ((double *)r.tin[0])[i] * x, 0);
    }
    rig_free(&r);
}
