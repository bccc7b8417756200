/* SPDX-License-Identifier: MIT */
/* Making a plan: sizes checked, storage bounded, memory given back. */
#include "unit/test_plan_hand.h"

static tb_plan_spec spec_of(const hand *h, unsigned passes)
{
    return (tb_plan_spec){.graph = &h->g,
                          .batch = RIG_BATCH,
                          .time = RIG_TIME,
                          .dtype = TB_F64,
                          .passes = passes,
                          .name = "layer"};
}

static tb_status create(tb_test *T, const hand *h, unsigned passes, tb_plan **p)
{
    tb_plan_spec spec = spec_of(h, passes);
    return tb_plan_create(T->ctx, &spec, p);
}

/* Work bytes of a plan, 0 if there is none. */
static size_t work_of(tb_test *T, const hand *h, unsigned passes)
{
    tb_plan *p = NULL;
    if (create(T, h, passes, &p) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    size_t bytes = p ? tb_plan_work_bytes(p) : 0;
    tb_plan_destroy(T->ctx, p);
    return bytes;
}

static size_t saved_of(tb_test *T, const hand *h, unsigned passes)
{
    tb_plan *p = NULL;
    if (create(T, h, passes, &p) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    size_t bytes = p ? tb_plan_saved_bytes(p) : 0;
    tb_plan_destroy(T->ctx, p);
    return bytes;
}

/* --- refusals --------------------------------------------------------------
 */

TB_TEST(empty_and_huge_sizes_are_refused)
{
    hand h;
    tb_plan *p;
    hand_init(&h);
    hand_pre(&h);
    tb_plan_spec spec = spec_of(&h, TB_PASS_BWD);
    spec.batch = 0;
    TB_FAILS(T, tb_plan_create(T->ctx, &spec, &p), TB_ERR_SHAPE,
             "layer: 0 sequences of 4 tokens");
    TB_CHECK(T, !p);
    spec.batch = SIZE_MAX / 2;
    TB_FAILS(T, tb_plan_create(T->ctx, &spec, &p), TB_ERR_MEMORY, "too many");
    spec.batch = SIZE_MAX / 16;
    spec.time = 1;
    TB_FAILS(T, tb_plan_create(T->ctx, &spec, &p), TB_ERR_MEMORY, "too large");
    spec.batch = SIZE_MAX / 8 / 64; /* each value fits, all together not */
    TB_FAILS(T, tb_plan_create(T->ctx, &spec, &p), TB_ERR_MEMORY,
             "buffers are too large");
}

TB_TEST(shapes_are_checked_again)
{
    hand h;
    tb_plan *p;
    hand_init(&h);
    int x = hand_stream(&h, 8), z = hand_stream(&h, 8);
    int y = hand_2(&h, &tb_op_add, x, z);
    hand_output(&h, "x", y);
    h.nodes[y].shape.width = 4;
    TB_FAILS(T, create(T, &h, 0, &p), TB_ERR_SHAPE,
             "layer: add gives width 8, the graph says 4");
    h.nodes[z].shape.width = 4;
    TB_FAILS(T, create(T, &h, 0, &p), TB_ERR_SHAPE,
             "layer: add: both sides must have the same shape");
}

TB_TEST(broken_graphs_are_refused)
{
    hand h;
    tb_plan *p;
    hand_init(&h);
    int x = hand_stream(&h, 8);
    int y = hand_2(&h, &tb_op_add, x, x);
    hand_output(&h, "x", y);
    h.nodes[y].in[1] = y;
    TB_FAILS(T, create(T, &h, 0, &p), TB_ERR_ARG, "node 1 reads node 1");
    h.nodes[y].in[1] = x;
    h.nodes[y].nin = 1;
    TB_FAILS(T, create(T, &h, 0, &p), TB_ERR_ARG, "add has 1 inputs");
    h.nodes[y].nin = 2;
    h.g.ninputs = 0;
    TB_FAILS(T, create(T, &h, 0, &p), TB_ERR_ARG, "nothing enters by node 0");
}

TB_TEST(every_allocation_may_fail)
{
    const unsigned all = TB_PASS_BWD | TB_PASS_TAN | TB_PASS_KEEP;
    hand h;
    tb_plan *p;
    hand_init(&h);
    hand_attention(&h);
    size_t before = tb_ctx_blocks(T->ctx), n = 1;
    for (;; n++) {
        tb_ctx_fail_alloc_at(T->ctx, n);
        tb_status s = create(T, &h, all, &p);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        if (s == TB_OK)
            break;
        TB_CHECK(T, s == TB_ERR_MEMORY && !p);
        TB_CHECK(T, tb_ctx_blocks(T->ctx) == before);
    }
    TB_CHECK(T, n > 3); /* plan, steps and pool were all tried */
    tb_plan_destroy(T->ctx, p);
    tb_plan_destroy(T->ctx, NULL);
    TB_CHECK(T, tb_ctx_blocks(T->ctx) == before);
}

/* --- storage ---------------------------------------------------------------
 */

/* x, then `n` times x = 2 x. */
static void chain(hand *h, int n)
{
    hand_init(h);
    int x = hand_stream(h, 8);
    for (int i = 0; i < n; i++)
        x = hand_affine(h, x, 2, 0);
    hand_output(h, "x", x);
}

TB_TEST(a_longer_chain_borrows_no_more)
{
    enum { SHORT = 36, LONG = 60, VALUE = RIG_BATCH * RIG_TIME * 8 * 8 };
    hand a, b; /* both longer than what runs together */
    chain(&a, SHORT);
    chain(&b, LONG);
    const unsigned passes[] = {0, TB_PASS_BWD, TB_PASS_TAN};
    for (size_t i = 0; i < TB_LEN(passes); i++) {
        /* only the tables of pointers grow: at most 64 bytes a node */
        size_t grown = work_of(T, &b, passes[i]) - work_of(T, &a, passes[i]);
        TB_CHECK(T, grown < (LONG - SHORT + 1) * 64);
        /* an affine needs no value: only the output is kept */
        TB_CHECK(T, saved_of(T, &b, passes[i]) == VALUE);
    }
    TB_CHECK(T, saved_of(T, &b, TB_PASS_KEEP) == LONG * VALUE);
}

/* A value that is read much later must survive what lies between. */
TB_TEST(long_lived_values_are_not_overwritten)
{
    hand h;
    rig r;
    hand_init(&h);
    int x = hand_stream(&h, 8);
    int old = hand_affine(&h, x, 3, 1), y = old;
    for (int i = 0; i < 6; i++)
        y = hand_affine(&h, y, -1, 0.5);
    y = hand_2(&h, &tb_op_sub, hand_2(&h, &tb_op_add, y, y), old);
    hand_output(&h, "x", y);
    if (!rig_make(&r, T, &h, TB_F64, 0))
        return;
    TB_OKAY(T, rig_forward(&r));
    for (size_t i = 0; i < rig_count(&r, y); i++)
        TB_NEAR(T, ((double *)r.outputs[0])[i],
                3 * ((double *)r.inputs[0])[i] + 1, 1e-14);
    rig_free(&r);
}

/* The sums of a residual stream hand their gradient on without a copy: one
 * buffer for the stream, not one per term. */
static void sums(hand *h, int n)
{
    hand_init(h);
    int x = hand_stream(h, 8), y = x;
    for (int i = 0; i < n; i++)
        y = hand_2(h, &tb_op_add, y, hand_affine(h, x, 2, 0));
    hand_output(h, "x", y);
}

TB_TEST(terms_of_a_sum_borrow_its_gradient)
{
    enum { SHORT = 16, LONG = 30 };
    hand a, b;
    sums(&a, SHORT);
    sums(&b, LONG);
    size_t grown = work_of(T, &b, TB_PASS_BWD) - work_of(T, &a, TB_PASS_BWD);
    TB_CHECK(T, grown < (LONG - SHORT) * 2 * 64);
}

TB_TEST(flops_are_those_of_the_products)
{
    hand h;
    tb_plan *p;
    hand_init(&h);
    hand_pre(&h);
    TB_OKAY(T, create(T, &h, 0, &p));
    /* two sublayers of 8 -> 16 -> 8 over 8 rows */
    TB_NEAR(T, tb_plan_flops(p), 2 * 2 * 2.0 * 8 * 8 * 16, 0);
    TB_CHECK(T, tb_plan_graph(p) == &h.g);
    tb_plan_destroy(T->ctx, p);
}
