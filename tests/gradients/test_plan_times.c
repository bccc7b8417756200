/* SPDX-License-Identifier: MIT */
/* Graphs whose streams differ in length (attention to a memory, with a mask
 * that is data), and running statistics moved after a step. */
#include "unit/test_plan_hand.h"

enum { B = 2, TQ = 3, TK = 5, D = 4, X = B * TQ * D, M = B * TK * D };

/* y = mha(q(x), k(norm(memory)), v(memory), keep), and memory once more */
static void hand_memory(hand *h)
{
    int x = hand_stream(h, D), memory = hand_stream(h, D);
    int keep = hand_stream(h, 1);
    int k = hand_linear(h, hand_norm(h, memory, 1e-5), D);
    int v = hand_1(h, &tb_op_tanh, memory);
    int in[] = {hand_linear(h, x, D), k, v, keep};
    int y = hand_call(h, &tb_op_mha, 4, in, (double[]){2, 2, 0, 0});
    hand_output(h, "y", y);
    hand_output(h, "memory", hand_2(h, &tb_op_add, memory, v));
}

typedef struct run {
    tb_plan *plan;
    tb_run r;
    double x[X], memory[M], keep[B * TK], y[X], out[M];
    double gx[X], gmemory[M], gkeep[B * TK], tx[X], tmemory[M], ty[X], tout[M];
    double params[HAND_SLOTS * 2][D * D], tparams[HAND_SLOTS * 2][D * D];
    double gparams[HAND_SLOTS * 2][D * D];
    const void *in[3], *param[HAND_SLOTS * 2], *tin[3], *tparam[HAND_SLOTS * 2];
    void *outs[2], *gin[3], *gparam[HAND_SLOTS * 2], *touts[2];
    const void *gouts[2];
} run;

static void wire(run *w, const hand *h)
{
    w->in[0] = w->x, w->in[1] = w->memory, w->in[2] = w->keep;
    w->gin[0] = w->gx, w->gin[1] = w->gmemory, w->gin[2] = w->gkeep;
    w->tin[0] = w->tx, w->tin[1] = w->tmemory, w->tin[2] = w->keep;
    w->outs[0] = w->y, w->outs[1] = w->out;
    w->touts[0] = w->ty, w->touts[1] = w->tout;
    for (int i = 0; i < h->g.nparams; i++) {
        w->param[i] = w->params[i];
        w->tparam[i] = w->tparams[i];
        w->gparam[i] = w->gparams[i];
    }
}

static bool open_run(tb_test *T, run *w, const hand *h, const size_t *times)
{
    const tb_plan_spec spec = {.graph = &h->g,
                               .batch = B,
                               .time = TQ,
                               .input_time = times,
                               .dtype = TB_F64,
                               .passes = TB_PASS_BWD | TB_PASS_TAN,
                               .name = "memory"};
    memset(w, 0, sizeof *w);
    if (tb_plan_create(T->ctx, &spec, &w->plan) != TB_OK)
        return false;
    wire(w, h);
    double *const fill[] = {w->x, w->memory, w->tx, w->tmemory};
    const size_t n[] = {X, M, X, M};
    for (int i = 0; i < 4; i++)
        tb_test_fill(T, TB_F64, fill[i], n[i]);
    for (int i = 0; i < h->g.nparams; i++) {
        tb_test_fill(T, TB_F64, w->params[i], (size_t)D * D);
        tb_test_fill(T, TB_F64, w->tparams[i], (size_t)D * D);
    }
    for (size_t i = 0; i < TB_LEN(w->keep); i++)
        w->keep[i] = i % 4 != 1;
    w->r = (tb_run){.plan = w->plan,
                    .saved = rig_poison(T, tb_plan_saved_bytes(w->plan)),
                    .work = rig_poison(T, tb_plan_work_bytes(w->plan)),
                    .inputs = w->in,
                    .outputs = w->outs,
                    .params = w->param,
                    .scope = "layers.0"};
    return true;
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

TB_TEST(memory_of_another_length)
{
    static run w;
    const size_t times[] = {0, TK, TK};
    double gy[X], gm[M];
    hand h;
    hand_init(&h);
    hand_memory(&h);
    TB_REQUIRE(T, open_run(T, &w, &h, times));
    tb_test_fill(T, TB_F64, gy, X);
    tb_test_fill(T, TB_F64, gm, M);
    w.gouts[0] = gy, w.gouts[1] = gm;
    memset(w.gkeep, 0xff, sizeof w.gkeep);
    const tb_bwd b = {
        .hi = -1, .lo = -1, .gout = w.gouts, .gin = w.gin, .gparams = w.gparam};
    TB_OKAY(T, tb_plan_forward(T->ctx, &w.r));
    TB_OKAY(T, tb_plan_tangent(T->ctx, &w.r, w.tin, w.tparam, w.touts));
    TB_OKAY(T, tb_plan_backward(T->ctx, &w.r, &b));
    double lhs = dot(gy, w.ty, X) + dot(gm, w.tout, M);
    double rhs = dot(w.gx, w.tx, X) + dot(w.gmemory, w.tmemory, M);
    for (int i = 0; i < h.g.nparams; i++)
        rhs += dot(w.gparams[i], w.tparams[i], (size_t)D * D);
    TB_NEAR(T, lhs, rhs, 1e-12);
    TB_CHECK(T, lhs != 0);
    for (size_t i = 0; i < TB_LEN(w.gkeep); i++)
        TB_CHECK(T, w.gkeep[i] == 0); /* data: asked for, and zero */
    /* a hidden token of the memory does not reach y */
    double y[X];
    memcpy(y, w.y, sizeof y);
    w.memory[D] = 7;
    TB_OKAY(T, tb_plan_forward(T->ctx, &w.r));
    TB_SAME(T, y, w.y, sizeof y);
    tb_plan_destroy(T->ctx, w.plan);
}

TB_TEST(lengths_that_meet_nowhere)
{
    static run w;
    const size_t times[] = {0, TK, TK}, wrong[] = {0, TK, TK - 1};
    hand h;
    hand_init(&h);
    int x = hand_stream(&h, D), z = hand_stream(&h, D);
    hand_output(&h, "y", hand_2(&h, &tb_op_add, x, z));
    TB_CHECK(T, !open_run(T, &w, &h, times));
    TB_STR(T, tb_error(T->ctx), "memory: add: streams of 3 and 5 tokens");
    hand_init(&h);
    hand_memory(&h);
    TB_CHECK(T, !open_run(T, &w, &h, wrong));
    TB_STR(T, tb_error(T->ctx),
           "memory: mha: the mask must be [T_q, T_k], [B, T_q, T_k] or "
           "[B, T_k, 1]");
}

/* batchnorm(x) with gain, bias, mean, var */
static void hand_batchnorm(hand *h)
{
    int in[5] = {hand_stream(h, D)};
    for (int i = 1; i < 5; i++)
        in[i] = hand_param(h, TB_SHAPE_VECTOR, 1, D);
    hand_output(h, "y",
                hand_call(h, &tb_op_batchnorm, 5, in, (double[]){1e-5}));
}

TB_TEST(running_statistics_move_after_the_step)
{
    static run w;
    hand h;
    hand_init(&h);
    hand_batchnorm(&h);
    TB_REQUIRE(T, open_run(T, &w, &h, NULL));
    double before[4][D], mean = 0;
    for (int i = 0; i < 4; i++)
        memcpy(before[i], w.params[i], sizeof before[i]);
    TB_OKAY(T, tb_plan_forward(T->ctx, &w.r));
    TB_SAME(T, w.params[2], before[2], sizeof before[2]);
    void *buffers[] = {NULL, NULL, w.params[2], w.params[3]};
    TB_OKAY(T, tb_plan_update(T->ctx, &w.r, buffers));
    for (size_t r = 0; r < (size_t)B * TQ; r++)
        mean += w.x[r * D] / (B * TQ);
    TB_NEAR(T, w.params[2][0], 0.9 * before[2][0] + 0.1 * mean, 1e-15);
    TB_SAME(T, w.params[0], before[0], sizeof before[0]);
    TB_SAME(T, w.params[1], before[1], sizeof before[1]);
    for (int i = 0; i < 4; i++)
        TB_CHECK(T, tb_plan_state(w.plan, i) == (i > 1));
    tb_plan_destroy(T->ctx, w.plan);
}
