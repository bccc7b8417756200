/* SPDX-License-Identifier: MIT */
/* Running a plan: where outputs land, what is readable afterwards, random
 * streams, values that do not exist, no allocation. */
#include "unit/test_plan_hand.h"

enum { N = 64 }; /* elements of a stream of width 8 */

static bool ready(rig *r, tb_test *T, hand *h, void (*make)(hand *),
                  unsigned passes)
{
    hand_init(h);
    make(h);
    return rig_make(r, T, h, TB_F64, passes);
}

/* --- outputs ---------------------------------------------------------------
 */

TB_TEST(outputs_land_where_asked)
{
    hand h;
    rig r;
    if (!ready(&r, T, &h, hand_many, 0))
        return;
    TB_OKAY(T, rig_forward(&r));
    const double *x = r.inputs[0], *z = r.inputs[1];
    for (int i = 0; i < N; i++) {
        double a = x[i] * z[i], b = a / (1 + tb_exp(-a));
        TB_NEAR(T, ((double *)r.outputs[0])[i], a, 0);
        TB_NEAR(T, ((double *)r.outputs[3])[i], b, 1e-15);
        TB_NEAR(T, ((double *)r.outputs[4])[i], 2 * b, 1e-15);
    }
    TB_SAME(T, r.outputs[1], x, N * sizeof(double)); /* the input itself */
    TB_SAME(T, r.outputs[2], x, N * sizeof(double));
    TB_SAME(T, r.outputs[5], r.outputs[3], N * sizeof(double));
    TB_SAME(T, r.outputs[6], r.outputs[0], N * sizeof(double));
    rig_free(&r);
}

/* Any subset of the outputs may stay inside. */
TB_TEST(outputs_may_stay_inside)
{
    hand h;
    rig r;
    double want[7][N];
    if (!ready(&r, T, &h, hand_many, 0))
        return;
    TB_OKAY(T, rig_forward(&r));
    for (int o = 0; o < 7; o++)
        memcpy(want[o], r.outputs[o], sizeof(want[o]));
    void *all[HAND_SLOTS];
    memcpy(all, r.outputs, sizeof(all));
    for (unsigned mask = 0; mask < 128; mask++) {
        for (int o = 0; o < 7; o++) {
            r.outputs[o] = mask >> o & 1 ? all[o] : NULL;
            memset(all[o], 0xff, sizeof(want[o]));
        }
        TB_OKAY(T, rig_forward(&r));
        for (int o = 0; o < 7; o++) {
            int node = h.outputs[o].node;
            TB_SAME(T, tb_plan_value(&r.run, node), want[o], sizeof(want[o]));
            if (r.outputs[o])
                TB_SAME(T, r.outputs[o], want[o], sizeof(want[o]));
        }
    }
    r.run.outputs = NULL;
    TB_OKAY(T, rig_forward(&r));
    TB_SAME(T, tb_plan_value(&r.run, h.outputs[4].node), want[4],
            sizeof(want[4]));
    rig_free(&r);
}

TB_TEST(kept_values_are_readable)
{
    hand h;
    rig r;
    if (!ready(&r, T, &h, hand_attention, TB_PASS_KEEP))
        return;
    TB_OKAY(T, rig_forward(&r));
    memset(r.run.work, 0xff, tb_plan_work_bytes(r.plan));
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    for (int n = 0; n < h.g.nnodes; n++) {
        const void *v = tb_plan_value(&r.run, n);
        TB_REQUIRE(T, v);
        TB_CHECK(T, k->nonfinite(rig_count(&r, n), v) == 0);
    }
    rig_free(&r);
    if (!ready(&r, T, &h, hand_attention, 0))
        return;
    TB_OKAY(T, rig_forward(&r));
    TB_CHECK(T, !tb_plan_value(&r.run, h.outputs[0].node - 1));
    rig_free(&r);
}

/* --- no allocation ---------------------------------------------------------
 */

TB_TEST(steps_allocate_nothing)
{
    const unsigned all = TB_PASS_BWD | TB_PASS_TAN;
    for (size_t i = 0; i < TB_LEN(hand_zoo); i++) {
        hand h;
        rig r;
        if (!ready(&r, T, &h, hand_zoo[i].make, all))
            return;
        rig_zero_gparams(&r);
        tb_gemm_load(T->ctx); /* finding a library is not part of a step */
        tb_ctx_fail_alloc_at(T->ctx, 1);
        tb_status s = rig_forward(&r);
        if (s == TB_OK)
            s = rig_backward(&r, -1, -1, false, NULL, NULL, true);
        if (s == TB_OK)
            s = tb_plan_tangent(T->ctx, &r.run, (const void *const *)r.tin,
                                (const void *const *)r.tparams, r.tout);
        /* the failure still waits for the next allocation */
        void *p = tb_alloc(T->ctx, 1, 1);
        TB_CHECK(T, !p);
        tb_free(T->ctx, p);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        TB_OKAY(T, s);
        rig_free(&r);
    }
}

/* --- values that do not exist ----------------------------------------------
 */

TB_TEST(zero_variance_names_scope_op_and_row)
{
    hand h;
    rig r;
    hand_init(&h);
    int x = hand_stream(&h, 8);
    hand_output(&h, "x", hand_norm(&h, x, 0));
    if (!rig_make(&r, T, &h, TB_F64, 0))
        return;
    TB_OKAY(T, rig_forward(&r));
    for (int i = 0; i < 8; i++)
        ((double *)r.inputs[0])[8 + i] = 3;
    TB_FAILS(T, rig_forward(&r), TB_ERR_INPUT,
             "layers.3: layernorm: zero variance with eps = 0 at row 2 "
             "(rows from 1)");
    r.run.scope = NULL;
    TB_FAILS(T, rig_forward(&r), TB_ERR_INPUT, "hand: layernorm: zero");
    const double attr[4][TB_OP_ATTRS] = {{0}, {0}, {0}, {1e-5}};
    r.run.attr = attr; /* a run's own attributes win over the node's */
    TB_OKAY(T, rig_forward(&r));
    rig_free(&r);
}

/* --- random streams --------------------------------------------------------
 */

/* Two drops of the same x in one layer. */
static void two_drops(hand *h)
{
    int x = hand_stream(h, 8);
    for (int i = 0; i < 2; i++)
        hand_output(h, "x", hand_call(h, &tb_op_drop, 1, &x, (double[]){0.5}));
}

static bool drops_equal(rig *r, const double *want)
{
    if (rig_forward(r) != TB_OK)
        return false;
    return memcmp(r->outputs[0], want, N * sizeof(double)) == 0;
}

TB_TEST(every_drop_has_its_own_stream)
{
    hand h;
    rig r;
    double first[N];
    if (!ready(&r, T, &h, two_drops, 0))
        return;
    TB_OKAY(T, rig_forward(&r));
    memcpy(first, r.outputs[0], sizeof(first));
    TB_CHECK(T, memcmp(first, r.outputs[1], sizeof(first)) != 0);
    TB_CHECK(T, drops_equal(&r, first));
    r.run.step++;
    TB_CHECK(T, !drops_equal(&r, first));
    r.run.step--;
    r.run.seed++;
    TB_CHECK(T, !drops_equal(&r, first));
    r.run.seed--;
    r.run.scope = "layers.4";
    TB_CHECK(T, !drops_equal(&r, first));
    r.run.scope = "layers.3";
    TB_CHECK(T, drops_equal(&r, first));
    rig_free(&r);
}

/* --- tangent ---------------------------------------------------------------
 */

TB_TEST(missing_tangents_are_zero)
{
    hand h;
    rig r;
    if (!ready(&r, T, &h, hand_many, TB_PASS_TAN))
        return;
    TB_OKAY(T, rig_forward(&r));
    const void *tin[3] = {r.tin[0], NULL, NULL};
    TB_OKAY(T, tb_plan_tangent(T->ctx, &r.run, tin, NULL, r.tout));
    for (int i = 0; i < N; i++)
        TB_NEAR(T, ((double *)r.tout[0])[i],
                ((double *)r.tin[0])[i] * ((double *)r.inputs[1])[i], 0);
    TB_SAME(T, r.tout[1], r.tin[0], N * sizeof(double));
    TB_SAME(T, r.tout[2], r.tin[0], N * sizeof(double));
    TB_SAME(T, r.tout[5], r.tout[3], N * sizeof(double));
    TB_SAME(T, r.tout[6], r.tout[0], N * sizeof(double));
    TB_OKAY(T, tb_plan_tangent(T->ctx, &r.run, NULL, NULL, r.tout));
    for (int i = 0; i < N; i++)
        TB_NEAR(T, ((double *)r.tout[4])[i], 0, 0);
    rig_free(&r);
}

/* --- toll ------------------------------------------------------------------
 */

/* For LN without gain, ||J||_F^2 = rstd^2 (D - 1 - var rstd^2 (2 - var
 * rstd^2))...: with eps = 0, rstd^2 (D - 2) per row. */
TB_TEST(gain_of_a_norm)
{
    hand h;
    rig r;
    hand_init(&h);
    int x = hand_stream(&h, 8);
    double eps = 0, rms, max, sum = 0;
    int y = hand_call(&h, &tb_op_layernorm, 1, &x, &eps);
    hand_output(&h, "x", y);
    if (!rig_make(&r, T, &h, TB_F64, TB_PASS_KEEP))
        return;
    TB_OKAY(T, rig_forward(&r));
    TB_OKAY(T, tb_plan_gain(T->ctx, &r.run, y, &rms, &max));
    for (int row = 0; row < 8; row++) {
        const double *v = (const double *)r.inputs[0] + row * 8;
        double mean = 0, var = 0;
        for (int i = 0; i < 8; i++)
            mean += v[i] / 8;
        for (int i = 0; i < 8; i++)
            var += (v[i] - mean) * (v[i] - mean) / 8;
        sum += (8 - 2) / var / (8 * 8);
    }
    TB_NEAR(T, rms, tb_sqrt(sum), 1e-12);
    TB_FAILS(T, tb_plan_gain(T->ctx, &r.run, x, &rms, &max), TB_ERR_ARG,
             "node 0 is not a norm");
    rig_free(&r);
    if (!rig_make(&r, T, &h, TB_F64, TB_PASS_BWD))
        return;
    TB_FAILS(T, tb_plan_gain(T->ctx, &r.run, y, &rms, &max), TB_ERR_ARG,
             "without its values kept");
    rig_free(&r);
}

/* Planned for less, the same numbers come out: fewer bytes, same bits. */
TB_TEST(passes_do_not_change_the_forward)
{
    for (size_t i = 0; i < TB_LEN(hand_zoo); i++) {
        hand h;
        rig a, b;
        if (!ready(&a, T, &h, hand_zoo[i].make, 0) ||
            !rig_make(&b, T, &h, TB_F64, TB_PASS_BWD))
            return;
        b.run.inputs = a.run.inputs;
        b.run.params = a.run.params;
        TB_OKAY(T, rig_forward(&a));
        TB_OKAY(T, rig_forward(&b));
        for (int o = 0; o < h.g.noutputs; o++)
            TB_SAME(T, a.outputs[o], b.outputs[o],
                    rig_bytes(&a, h.outputs[o].node));
        rig_free(&a);
        rig_free(&b);
    }
}
