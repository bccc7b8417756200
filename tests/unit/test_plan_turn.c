/* SPDX-License-Identifier: MIT */
/* Ropes that turn queries and keys in place, by angles that the plan has, give
 * the bits of those that do not: values, gradients, tangents, both types, any
 * sizes. And where somebody else wants what one reads or makes, it does not. */
#include "plan/plan_parts.h"
#include "unit/test_plan_hand.h"

typedef struct sizes {
    size_t batch, tq, tk; /* tk 0: keys are the queries' tokens */
    size_t heads, kv, head;
    double q[5], k[5]; /* ropes: heads are those of the attention */
    bool causal, keep;
    double drop;
    int turned;
} sizes;

static const sizes all[] = {
    {2, 7, 0, 2, 2, 4, {0}, {0}, true, false, 0, 2},
    {2, 70, 0, 4, 2, 6, {0}, {0}, true, false, 0, 2},
    {1, 130, 0, 4, 1, 10, {0}, {0}, false, true, 0.25, 2},
    {3, 65, 0, 3, 3, 34, {0, 3, 1}, {0, 3, 1}, true, true, 0, 2},
    {2, 5, 0, 2, 2, 7, {0, 0, 0, 4}, {0, 0, 0, 6}, true, false, 0, 2},
    {2, 67, 9, 2, 2, 8, {0, 0, 0, 0, 3}, {0, 50}, false, true, 0, 2},
    {2, 9, 67, 2, 1, 8, {0, 0, 0, 0, 58}, {0}, true, false, 0, 2},
    {1, 451, 0, 1, 1, 16, {0}, {0}, true, false, 0, 2},
    {2, 6, 0, 2, 2, 4, {-1}, {0}, true, false, 0, 1},
    {2, 6, 0, 2, 2, 4, {0}, {-1}, true, false, 0, 1},
    {2, 6, 0, 4, 2, 4, {2}, {1}, true, false, 0, 2},
};

/* heads -1: no rope; above 0: other heads than the attention's */
static int rope(hand *h, int x, const double *attr, size_t heads)
{
    if (attr[0] < 0)
        return x;
    int n = hand_node(h, &tb_op_rope, h->nodes[x].shape);
    h->nodes[n].nin = 1;
    h->nodes[n].in[0] = x;
    for (int i = 0; i < 5; i++)
        h->nodes[n].attr[i].value = attr[i];
    if (attr[0] == 0)
        h->nodes[n].attr[0].value = (double)heads;
    return n;
}

static void make(hand *h, const sizes *s)
{
    size_t width = s->heads * s->head, narrow = s->kv * s->head;
    hand_init(h);
    int x = hand_stream(h, 8), m = s->tk ? hand_stream(h, 8) : x;
    int in[4] = {rope(h, hand_linear(h, x, width), s->q, s->heads),
                 rope(h, hand_linear(h, m, narrow), s->k, s->kv),
                 hand_linear(h, m, narrow)};
    if (s->keep)
        in[3] = hand_stream(h, 1);
    int y = hand_call(
        h, &tb_op_mha, s->keep ? 4 : 3, in,
        (double[]){(double)s->heads, (double)s->kv, s->causal, s->drop});
    hand_output(h, "y", hand_linear(h, y, 8));
}

/* --- one way to run it --------------------------------------------------- */

enum { SLOTS = 16 };

typedef struct way {
    tb_plan *plan;
    tb_run run;
    size_t input_time[SLOTS];
    double attr[HAND_NODES][TB_OP_ATTRS];
    void *value[SLOTS], *grad[SLOTS], *tangent[SLOTS]; /* inputs, params */
    void *y, *gy, *ty;
    int n, turned;
} way;

static size_t count(const way *w, int node)
{
    return w->plan->steps[node].count;
}

static int leaf(const tb_graph *g, int i)
{
    return i < g->ninputs ? g->inputs[i] : g->params[i - g->ninputs].node;
}

static void *fresh(tb_test *T, tb_dtype type, size_t n, double scale, int seed)
{
    void *x = rig_poison(T, n * tb_dtype_size(type));
    for (size_t i = 0; i < n; i++)
        tb_test_set(type, x, i,
                    scale * tb_sin((double)(i * 7 % 1001) + 31.7 * seed));
    return x;
}

static void fill(tb_test *T, way *w, const hand *h, const sizes *s,
                 tb_dtype type)
{
    const tb_graph *g = &h->g;
    w->n = g->ninputs + g->nparams;
    for (int i = 0; i < w->n; i++) {
        size_t n = count(w, leaf(g, i));
        w->value[i] = fresh(T, type, n, 1, i);
        w->grad[i] = fresh(T, type, n, 0, 0);
        w->tangent[i] = fresh(T, type, n, 1, 50 + i);
        for (size_t j = 0; s->keep && i == g->ninputs - 1 && j < n; j++)
            tb_test_set(type, w->value[i], j, j % 5 != 3);
    }
    size_t n = count(w, g->outputs[0].node);
    w->y = fresh(T, type, n, 0, 0);
    w->gy = fresh(T, type, n, 1, 99);
    w->ty = fresh(T, type, n, 0, 0);
}

/* A layer's own base is none that the plan has angles of. */
static void own_bases(way *w, const hand *h, bool moved)
{
    for (int n = 0; n < h->g.nnodes; n++)
        for (int i = 0; i < TB_OP_ATTRS; i++)
            w->attr[n][i] = h->nodes[n].attr[i].value;
    for (int n = 0; n < h->g.nnodes && moved; n++)
        if (h->nodes[n].op == &tb_op_rope)
            w->attr[n][TB_ATTR_ROPE_BASE] = 20 + n;
    w->run.attr = (const double(*)[TB_OP_ATTRS])w->attr;
}

static tb_status passes_of(tb_test *T, way *w, int ninputs, unsigned passes)
{
    const bool zero[SLOTS] = {false};
    const void *gy[] = {w->gy};
    void *ty[] = {w->ty};
    const tb_bwd b = {.hi = -1,
                      .lo = -1,
                      .gout = gy,
                      .gin = w->grad,
                      .gparams = w->grad + ninputs,
                      .fresh = zero};
    TB_TRY(tb_plan_forward(T->ctx, &w->run));
    if (passes & TB_PASS_TAN)
        TB_TRY(tb_plan_tangent(T->ctx, &w->run, (const void *const *)w->tangent,
                               (const void *const *)w->tangent + ninputs, ty));
    if (passes & TB_PASS_BWD)
        TB_TRY(tb_plan_backward(T->ctx, &w->run, &b));
    return TB_OK;
}

static bool run(tb_test *T, way *w, const hand *h, const sizes *s,
                tb_dtype type, unsigned passes, bool moved)
{
    const tb_graph *g = &h->g;
    void *outputs[] = {NULL};
    *w = (way){.input_time = {0, s->tk}};
    if (s->keep)
        w->input_time[g->ninputs - 1] = s->tk;
    const tb_plan_spec spec = {.graph = g,
                               .batch = s->batch,
                               .time = s->tq,
                               .input_time = w->input_time,
                               .dtype = type,
                               .passes = passes};
    if (tb_plan_create(T->ctx, &spec, &w->plan) != TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
        return false;
    }
    fill(T, w, h, s, type);
    outputs[0] = w->y;
    w->run = (tb_run){.plan = w->plan,
                      .saved = rig_poison(T, tb_plan_saved_bytes(w->plan)),
                      .work = rig_poison(T, tb_plan_work_bytes(w->plan)),
                      .inputs = (const void *const *)w->value,
                      .params = (const void *const *)w->value + g->ninputs,
                      .outputs = outputs,
                      .seed = 3};
    own_bases(w, h, moved);
    for (int n = 0; n < g->nnodes; n++)
        w->turned += w->plan->steps[n].in_place;
    if (passes_of(T, w, g->ninputs, passes) == TB_OK)
        return true;
    tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    tb_plan_destroy(T->ctx, w->plan);
    return false;
}

/* -0 is 0. */
static bool same(tb_dtype type, size_t n, const void *a, const void *b)
{
    for (size_t i = 0; i < n; i++)
        if (!(tb_test_get(type, a, i) == tb_test_get(type, b, i)))
            return false;
    return true;
}

static bool agree(const way *a, const way *b, const tb_graph *g, tb_dtype type,
                  unsigned passes)
{
    const size_t n = count(a, g->outputs[0].node);
    bool good = same(type, n, a->y, b->y);
    if (passes & TB_PASS_TAN)
        good = good && same(type, n, a->ty, b->ty);
    for (int i = 0; i < a->n && passes & TB_PASS_BWD; i++)
        good = good && same(type, count(a, leaf(g, i)), a->grad[i], b->grad[i]);
    return good;
}

static void compare(tb_test *T, size_t which, tb_dtype type, bool moved)
{
    static const unsigned ways[] = {TB_PASS_BWD | TB_PASS_TAN, 0,
                                    TB_PASS_BWD | TB_PASS_ONCE, TB_PASS_TAN};
    const sizes *s = &all[which];
    hand h;
    way apart, own;
    make(&h, s);
    if (!run(T, &apart, &h, s, type, ways[0] | TB_PASS_KEEP, moved))
        return;
    TB_CHECK(T, apart.turned == 0);
    for (size_t i = 0; i < TB_LEN(ways); i++) {
        tb_ctx_threads(T->ctx, i % 2 ? 3 : 1);
        if (run(T, &own, &h, s, type, ways[i], moved)) {
            TB_CHECK(T, own.turned == s->turned);
            if (!agree(&apart, &own, &h.g, type, ways[i]))
                tb_test_fail(T, __FILE__, __LINE__, "case %zu, %s, way %zu",
                             which, type == TB_F64 ? "double" : "float", i);
            tb_plan_destroy(T->ctx, own.plan);
        }
    }
    tb_ctx_threads(T->ctx, 1);
    tb_plan_destroy(T->ctx, apart.plan);
}

TB_TEST(in_place_as_elsewhere)
{
    for (size_t i = 0; i < TB_LEN(all); i++) {
        compare(T, i, TB_F32, i % 2);
        compare(T, i, TB_F64, i % 3 == 0);
    }
}

/* Without FMA, as contexts that are exact and the browser have it. */
TB_TEST(and_with_exact_products)
{
    tb_ctx_exact(T->ctx, true);
    for (size_t i = 0; i < TB_LEN(all); i++)
        compare(T, i, TB_F32, i % 2 == 0);
    tb_ctx_exact(T->ctx, false);
}

/* --- who else wants it ---------------------------------------------------- */

typedef enum other {
    NOBODY,
    OUTPUT,
    READER,
    INPUT_READ,
    PIECE,
    OUT_READ,
    ALIAS
} other;

static int turned_beside(tb_test *T, other what)
{
    hand h;
    tb_plan *p;
    int n = 0;
    hand_init(&h);
    int x = hand_stream(&h, 8), q = hand_linear(&h, x, 8);
    if (what == OUT_READ) /* its derivative is made of its value */
        q = hand_1(&h, &tb_op_softmax, q);
    if (what == ALIAS)
        q = hand_1(&h, &tb_op_identity, q);
    int in[] = {rope(&h, q, (double[5]){0}, 2), hand_linear(&h, x, 8), x};
    int y = hand_call(&h, &tb_op_mha, 3, in, (double[]){2, 2, 1, 0});
    if (what == OUTPUT)
        hand_output(&h, "turned", in[0]);
    if (what == READER)
        y = hand_2(&h, &tb_op_add, y, in[0]);
    if (what == INPUT_READ)
        y = hand_2(&h, &tb_op_add, y, q);
    if (what == PIECE)
        hand_boundary(&h, in[0]);
    hand_output(&h, "y", y);
    const tb_plan_spec spec = {
        .graph = &h.g, .batch = 1, .time = 3, .dtype = TB_F32};
    TB_CHECK(T, tb_plan_create(T->ctx, &spec, &p) == TB_OK);
    for (int i = 0; p && i < h.g.nnodes; i++)
        n += p->steps[i].in_place;
    tb_plan_destroy(T->ctx, p);
    return n;
}

TB_TEST(not_where_others_look)
{
    TB_CHECK(T, turned_beside(T, NOBODY) == 1);
    for (other o = OUTPUT; o <= ALIAS; o++)
        TB_CHECK(T, turned_beside(T, o) == 0);
}
