/* SPDX-License-Identifier: MIT */
/* Backward between boundaries, and with the branches cut: the lane. */
#include "unit/test_plan_hand.h"

enum { N = 64 }; /* elements of a stream of width 8 */

static bool ready(rig *r, tb_test *T, hand *h, void (*make)(hand *),
                  unsigned passes)
{
    hand_init(h);
    make(h);
    if (!rig_make(r, T, h, TB_F64, passes))
        return false;
    rig_zero_gparams(r);
    if (rig_forward(r) == TB_OK)
        return true;
    tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    return false;
}

/* The pieces from the last boundary down to the first, one after another. */
static tb_status compose(rig *r, bool cut, double *g)
{
    double above[N];
    memcpy(g, r->gout[0], sizeof(above));
    for (int i = r->g->nboundaries - 1; i > 0; i--) {
        memcpy(above, g, sizeof(above));
        TB_TRY(rig_backward(r, i, i - 1, cut, above, g, true));
    }
    return TB_OK;
}

static void check_pieces(tb_test *T, void (*make)(hand *), bool cut)
{
    hand h;
    rig r;
    double g[N], params[HAND_SLOTS * 2][2 * N];
    if (!ready(&r, T, &h, make, TB_PASS_BWD))
        return;
    TB_OKAY(T, rig_backward(&r, -1, -1, cut, NULL, NULL, true));
    for (int i = 0; i < h.g.nparams; i++)
        memcpy(params[i], r.gparams[i], rig_bytes(&r, h.params[i].node));
    rig_zero_gparams(&r);
    TB_OKAY(T, compose(&r, cut, g));
    TB_SAME(T, g, r.gin[0], sizeof(g));
    for (int i = 0; i < h.g.nparams; i++)
        TB_NEAR_N(T, (double *)r.gparams[i], params[i],
                  rig_count(&r, h.params[i].node), 1e-15);
    rig_free(&r);
}

TB_TEST(pieces_compose_to_the_whole)
{
    check_pieces(T, hand_pre, false);
    check_pieces(T, hand_post, false);
    check_pieces(T, hand_gated, false);
    check_pieces(T, hand_attention, false);
}

TB_TEST(pieces_compose_with_branches_cut)
{
    check_pieces(T, hand_pre, true);
    check_pieces(T, hand_post, true);
    check_pieces(T, hand_gated, true);
}

TB_TEST(two_pieces_at_once)
{
    hand h;
    rig r;
    double g[N];
    if (!ready(&r, T, &h, hand_post, TB_PASS_BWD))
        return;
    TB_OKAY(T, rig_backward(&r, -1, -1, false, NULL, NULL, false));
    TB_OKAY(T, rig_backward(&r, 2, 0, false, r.gout[0], g, false));
    TB_SAME(T, g, r.gin[0], sizeof(g));
    TB_OKAY(T, rig_backward(&r, 1, 1, false, r.gout[0], g, false));
    TB_SAME(T, g, r.gout[0], sizeof(g)); /* an empty piece */
    TB_OKAY(T, rig_backward(&r, 2, 1, false, NULL, g, false));
    for (int i = 0; i < N; i++)
        TB_NEAR(T, g[i], 0, 0);
    rig_free(&r);
}

/* One pass through the whole shows what the pieces find at their ends. */
TB_TEST(boundaries_are_seen_on_the_way)
{
    void (*const make[])(hand *) = {hand_pre, hand_post};
    for (size_t m = 0; m < TB_LEN(make); m++) {
        hand h;
        rig r;
        double g[N], seen[N];
        void *const look[] = {seen};
        if (!ready(&r, T, &h, make[m], TB_PASS_BWD))
            return;
        TB_CHECK(T, r.g->nboundaries == 3);
        TB_OKAY(T, rig_backward(&r, 2, 1, false, r.gout[0], g, false));
        rig_dirty(&r, false);
        const tb_bwd b = {.hi = -1,
                          .lo = -1,
                          .gout = (const void *const *)r.gout,
                          .gin = r.gin,
                          .nseen = 1,
                          .seen = &r.g->boundaries[1].node,
                          .gseen = look};
        TB_OKAY(T, tb_plan_backward(T->ctx, &r.run, &b));
        TB_SAME(T, seen, g, sizeof(g));
        TB_OKAY(T, rig_backward(&r, 1, 0, false, seen, g, false));
        TB_SAME(T, g, r.gin[0], sizeof(g));
        rig_free(&r);
    }
}

/* Fresh gradients overwrite what stood there, the others add to it. */
TB_TEST(parameters_may_start_afresh)
{
    hand h;
    rig r;
    double once[HAND_SLOTS * 2][2 * N];
    bool fresh[HAND_SLOTS * 2] = {false};
    if (!ready(&r, T, &h, hand_pre, TB_PASS_BWD))
        return;
    tb_bwd b = {.hi = -1,
                .lo = -1,
                .gout = (const void *const *)r.gout,
                .gparams = r.gparams,
                .fresh = fresh};
    TB_OKAY(T, tb_plan_backward(T->ctx, &r.run, &b));
    for (int i = 0; i < h.g.nparams; i++) {
        memcpy(once[i], r.gparams[i], rig_bytes(&r, h.params[i].node));
        fresh[i] = i % 2 == 0;
    }
    TB_OKAY(T, tb_plan_backward(T->ctx, &r.run, &b));
    for (int i = 0; i < h.g.nparams; i++)
        for (size_t j = 0; j < rig_count(&r, h.params[i].node); j++)
            TB_NEAR(T, ((double *)r.gparams[i])[j],
                    once[i][j] * (fresh[i] ? 1 : 2), 1e-15);
    rig_free(&r);
}

TB_TEST(a_piece_may_want_parameters_only)
{
    hand h;
    rig r;
    double g[N], gain[8];
    if (!ready(&r, T, &h, hand_pre, TB_PASS_BWD))
        return;
    TB_OKAY(T, rig_backward(&r, 2, 1, false, r.gout[0], g, true));
    /* the first sublayer's six parameters, then the second norm's gain */
    memcpy(gain, r.gparams[6], sizeof(gain));
    for (int i = 0; i < 8; i++)
        TB_NEAR(T, ((double *)r.gparams[0])[i], 0, 0);
    TB_CHECK(T, gain[0] != 0);
    rig_zero_gparams(&r);
    TB_OKAY(T, rig_backward(&r, 2, 1, false, r.gout[0], NULL, true));
    TB_SAME(T, r.gparams[6], gain, sizeof(gain));
    rig_free(&r);
}

TB_TEST(pre_norm_lane_is_clean)
{
    hand h;
    rig r;
    if (!ready(&r, T, &h, hand_pre, TB_PASS_BWD))
        return;
    TB_OKAY(T, rig_backward(&r, -1, -1, true, NULL, NULL, false));
    TB_SAME(T, r.gin[0], r.gout[0], N * sizeof(double));
    rig_free(&r);
}

/* g <- J^T g of one layernorm with gain, row by row: with u = gain (.) g,
 * rstd (u - mean(u) - xhat mean(u xhat)). */
static void norm_back(const double *x, const double *gain, double eps,
                      double *g)
{
    enum { D = 8 };
    double mean = 0, var = 0, mu = 0, mux = 0;
    for (int i = 0; i < D; i++)
        mean += x[i] / D;
    for (int i = 0; i < D; i++)
        var += (x[i] - mean) * (x[i] - mean) / D;
    double rstd = 1 / tb_sqrt(var + eps);
    for (int i = 0; i < D; i++) {
        mu += gain[i] * g[i] / D;
        mux += gain[i] * g[i] * (x[i] - mean) * rstd / D;
    }
    for (int i = 0; i < D; i++)
        g[i] = rstd * (gain[i] * g[i] - mu - (x[i] - mean) * rstd * mux);
}

/* Undoes every norm on the lane, last first, with the model's own values. */
static void lane_by_hand(const rig *r, double *g)
{
    for (int n = r->g->nnodes - 1; n >= 0; n--) {
        const tb_node *node = &r->g->nodes[n];
        if (node->op->lane != TB_LANE_TOLL)
            continue;
        const double *x = tb_plan_value(&r->run, node->in[0]);
        const double *gain = tb_plan_value(&r->run, node->in[1]);
        for (int row = 0; row < N / 8; row++)
            norm_back(x + 8 * row, gain, 1e-5, g + 8 * row);
    }
}

TB_TEST(post_norm_lane_pays_every_toll)
{
    hand h;
    rig r;
    double g[N];
    if (!ready(&r, T, &h, hand_post, TB_PASS_BWD | TB_PASS_KEEP))
        return;
    TB_OKAY(T, rig_backward(&r, -1, -1, true, NULL, NULL, false));
    memcpy(g, r.gout[0], sizeof(g));
    lane_by_hand(&r, g);
    TB_NEAR_N(T, (double *)r.gin[0], g, N, 1e-13);
    rig_free(&r);
}

/* y = (sigmoid(x) (.) x) (.) x + x: the gate is cut and counts as a constant,
 * so the lane's factor is 2 gate x + 1. */
TB_TEST(cut_gates_are_constants)
{
    hand h;
    rig r;
    hand_init(&h);
    int x = hand_stream(&h, 8);
    int gate = hand_1(&h, &tb_op_sigmoid, x);
    int gx = hand_2(&h, &tb_op_mul, gate, x);
    int y = hand_2(&h, &tb_op_add, hand_2(&h, &tb_op_mul, gx, x), x);
    hand_output(&h, "x", y);
    if (!rig_make(&r, T, &h, TB_F64, TB_PASS_BWD | TB_PASS_KEEP))
        return;
    TB_OKAY(T, rig_forward(&r));
    TB_OKAY(T, rig_backward(&r, -1, -1, true, NULL, NULL, false));
    const double *s = tb_plan_value(&r.run, gate), *v = r.inputs[0];
    for (int i = 0; i < N; i++)
        TB_NEAR(T, ((double *)r.gin[0])[i],
                ((double *)r.gout[0])[i] * (2 * s[i] * v[i] + 1), 1e-14);
    rig_free(&r);
}

/* No lane at all: the cut gradient is zero, not absent. */
TB_TEST(cut_without_a_lane_is_zero)
{
    hand h;
    rig r;
    hand_init(&h);
    int x = hand_stream(&h, 8);
    hand_output(&h, "x", hand_ffn(&h, x));
    if (!rig_make(&r, T, &h, TB_F64, TB_PASS_BWD))
        return;
    TB_OKAY(T, rig_forward(&r));
    TB_OKAY(T, rig_backward(&r, -1, -1, true, NULL, NULL, false));
    for (int i = 0; i < N; i++)
        TB_NEAR(T, ((double *)r.gin[0])[i], 0, 0);
    rig_free(&r);
}

/* What is looked at may be cut: it has a gradient and hands none on. */
TB_TEST(what_is_seen_may_be_cut)
{
    hand h;
    rig r;
    double seen[N];
    void *const look[] = {seen};
    hand_init(&h);
    int x = hand_stream(&h, 8);
    int y = hand_1(&h, &tb_op_tanh, x);
    hand_output(&h, "x", hand_2(&h, &tb_op_add, y, hand_1(&h, &tb_op_stop, x)));
    if (!rig_make(&r, T, &h, TB_F64, TB_PASS_BWD))
        return;
    TB_OKAY(T, rig_forward(&r));
    for (int stop = 0; stop < 2;
         stop++) { /* the last but one stops by itself */
        int node = stop ? h.g.nnodes - 2 : y;
        const tb_bwd b = {.hi = -1,
                          .lo = -1,
                          .cut = true,
                          .gout = (const void *const *)r.gout,
                          .gin = r.gin,
                          .nseen = 1,
                          .seen = &node,
                          .gseen = look};
        TB_OKAY(T, tb_plan_backward(T->ctx, &r.run, &b));
        TB_SAME(T, seen, r.gout[0], sizeof(seen));
        for (int i = 0; i < N; i++)
            TB_NEAR(T, ((double *)r.gin[0])[i], 0, 0);
    }
    rig_free(&r);
}

/* <g, J t> = <J'g, t> from boundary to boundary, and the pieces one after
 * another are the whole. */
TB_TEST(tangents_go_piece_by_piece)
{
    void (*const make[])(hand *) = {hand_pre, hand_post, hand_gated,
                                    hand_attention};
    for (size_t m = 0; m < TB_LEN(make); m++) {
        hand h;
        rig r;
        double t[N], up[N], g[N];
        if (!ready(&r, T, &h, make[m], TB_PASS_BWD | TB_PASS_TAN))
            return;
        const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
        memcpy(t, r.tin[0], sizeof(t));
        for (int i = 1; i < r.g->nboundaries; i++) {
            TB_OKAY(T, rig_backward(&r, i, i - 1, false, r.gout[0], g, false));
            TB_OKAY(T, tb_plan_tangent_piece(T->ctx, &r.run, i - 1, i, t, up));
            TB_NEAR(T, k->dot(N, g, t), k->dot(N, r.gout[0], up), 1e-12);
            memcpy(t, up, sizeof(t));
        }
        const void *const tin[] = {r.tin[0], NULL};
        TB_OKAY(T, tb_plan_tangent(T->ctx, &r.run, tin, NULL, r.tout));
        TB_SAME(T, t, r.tout[0], sizeof(t));
        TB_OKAY(T, tb_plan_tangent_piece(T->ctx, &r.run, 1, 1, t, up));
        TB_SAME(T, t, up, sizeof(t)); /* an empty piece */
        rig_free(&r);
    }
}

TB_TEST(impossible_pieces_are_refused)
{
    hand h;
    rig r;
    double g[N];
    if (!ready(&r, T, &h, hand_pre, TB_PASS_BWD))
        return;
    TB_FAILS(T, rig_backward(&r, 3, 0, false, r.gout[0], g, false), TB_ERR_ARG,
             "no piece from boundary 3 to 0 of 3");
    TB_FAILS(T, rig_backward(&r, 0, 1, false, r.gout[0], g, false), TB_ERR_ARG,
             "boundary 0 to 1");
    TB_FAILS(T, rig_backward(&r, 1, -1, false, r.gout[0], g, false), TB_ERR_ARG,
             "boundary 1 to -1");
    TB_FAILS(T,
             tb_plan_tangent(T->ctx, &r.run, (const void *const *)r.tin, NULL,
                             r.tout),
             TB_ERR_ARG, "planned without tangents");
    TB_FAILS(T, tb_plan_tangent_piece(T->ctx, &r.run, 0, 1, r.tin[0], g),
             TB_ERR_ARG, "planned without tangents");
    rig_free(&r);
}
