/* SPDX-License-Identifier: MIT */
/* Corners: what the formulas say against what trials measure, for every
 * built-in block. */
#include "graph/graph.h"
#include "model/corners.h"
#include "tb_test.h"

#include <stdio.h>

static const tb_settings unset = TB_SETTINGS_UNSET;

static tb_block *load(tb_test *T, const char *what)
{
    tb_block *b = NULL;
    if (tb_block_load(T->ctx, what, &b) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", what, tb_error(T->ctx));
    return b;
}

/* --- N -> infinity -------------------------------------------------------- */

static void deep(tb_test *T, const char *what, tb_deep *d)
{
    tb_block *b = load(T, what);
    TB_OKAY(T, tb_corner_deep(T->ctx, b, &unset, d));
    tb_block_destroy(T->ctx, b);
}

/* C035: 24 branches of unit variance on a stream of unit variance. */
TB_TEST(branches_of_unit_variance)
{
    tb_deep d;
    deep(T, "pre-ln", &d);
    TB_REQUIRE(T, d.measured && d.nstreams == 1);
    for (int i = 0; i < TB_DEEP_COUNT; i++) {
        TB_CHECK(T, d.sublayers[i] == 2 * d.depth[i]);
        TB_NEAR(T, d.std[i][0], tb_sqrt(1.0 + (double)d.sublayers[i]), 1e-12);
        TB_CHECK(T, d.lane[i][0] == 1);
    }
    TB_NEAR(T, d.std[1][0], 5, 1e-12);
    deep(T, "post-ln", &d);
    for (int i = 0; i < TB_DEEP_COUNT; i++) {
        TB_NEAR(T, d.std[i][0], 1, 1e-5);
        TB_NEAR(T, tb_log(d.lane[i][0]) / (double)d.sublayers[i],
                tb_log(0.5) / 2, 1e-5);
    }
    deep(T, "residual", &d);
    TB_NEAR(T, d.std[2][1], 7, 1e-12);
    TB_CHECK(T, d.lane[2][1] == 1 && d.lane[2][0] < 1e-6);
    deep(T, "rezero", &d);
    TB_NEAR(T, d.std[2][0], 1, 1e-12);
    deep(T, "keel", &d); /* (1 + 1/K^2)^(-K/2), less the first block */
    TB_CHECK(T, d.lane[2][0] > 0.5 && d.lane[2][0] < 1);
}

/* C043: without branches the toll is paid once, at every depth. */
TB_TEST(without_branches_one_toll)
{
    static const char *const blocks[] = {"post-ln", "deepnorm", "b2t"};
    for (size_t i = 0; i < TB_LEN(blocks); i++) {
        tb_deep d;
        deep(T, blocks[i], &d);
        for (int k = 0; k < TB_DEEP_COUNT; k++)
            TB_NEAR(T, d.silent[k], 1.0 / TB_DEEP_SILENT_STD, 1e-5);
    }
}

/* A constant on the lane is met to the last bits. */
TB_TEST(lanes_of_deep_stacks)
{
    for (size_t i = 0; i < tb_builtin_count(); i++) {
        tb_deep d;
        tb_arena a;
        tb_model *m;
        tb_lane_info lane;
        tb_block *b = load(T, tb_builtin_name(i));
        tb_arena_init(&a, T->ctx);
        TB_OKAY(T, tb_corner_deep(T->ctx, b, &unset, &d));
        TB_OKAY(T, tb_model_create(T->ctx, b, &unset, TB_F64, &m));
        const tb_graph *g = tb_model_graph(m, 1);
        TB_OKAY(T, tb_graph_lane(T->ctx, g, &a, &lane));
        bool clean = lane.kind == TB_LANE_KIND_CLEAN;
        for (size_t l = 1; l < m->sizes.s.depth; l++)
            clean = clean && tb_model_graph(m, l + 1) == g;
        for (int k = 0; d.measured && clean && k < TB_DEEP_COUNT; k++)
            TB_CHECK(T, d.lane[k][0] == 1 && d.silent[k] == 1);
        TB_CHECK(T, d.measured == !d.why);
        tb_model_destroy(m);
        tb_arena_clear(&a);
        tb_block_destroy(T->ctx, b);
    }
}

TB_TEST(stacks_that_cannot_be_measured)
{
    tb_deep d;
    deep(T, "admin", &d);
    TB_CHECK(T, !d.measured);
    TB_STR(T, d.why, "its starts are profiled");
    deep(T, "x = x + F(batchnorm(x)); model: norm = rmsnorm", &d);
    TB_CHECK(T, d.measured); /* the norm stands in the branch's argument */
    deep(T, "x = batchnorm(x + F(x))", &d);
    TB_STR(T, d.why, "its norms need a batch");
    deep(T, "x = norm(x - x) + F(x); model: eps = 0", &d);
    TB_STR(T, d.why, "its values have no numbers there");
}

/* --- sigma -> 0 ----------------------------------------------------------- */

static void flat(tb_test *T, const char *what, const char *mode, double value)
{
    tb_block *b = load(T, what);
    tb_model *m;
    tb_arena a;
    tb_flat *rows;
    size_t n;
    tb_arena_init(&a, T->ctx);
    TB_OKAY(T, tb_model_create(T->ctx, b, &unset, TB_F64, &m));
    TB_OKAY(T, tb_corner_flat(m, &a, &rows, &n));
    TB_REQUIRE(T, n == 1);
    TB_STR(T, rows->mode, mode);
    TB_NEAR(T, rows->value / value, 1, 1e-12);
    if (tb_fabs(rows->measured / value - 1) > 1e-9)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s = %g, measured %g", what,
                     rows->gain, rows->value, rows->measured);
    tb_model_destroy(m);
    tb_arena_clear(&a);
    tb_block_destroy(T->ctx, b);
}

/* C019: 316 at eps = 1e-5; where eps stands decides. */
TB_TEST(rows_without_spread)
{
    flat(T, "x = norm(x + F(x))", "inside", 316.22776601683796);
    flat(T, "x = rmsnorm(x + F(x), eps=1e-6)", "inside", 1000);
    flat(T, "x = norm(x + F(x), eps_mode=outside)", "outside", 1e5);
    flat(T, "x = norm(x + F(x), eps_mode=clamp)", "clamp", 8e5);
    flat(T, "x = norm(x + F(x), eps_mode=clamp_square)", "clamp_square",
         8 * 316.22776601683796);
    flat(T, "x = norm(x + F(x), groups=4)", "inside", 316.22776601683796);
    flat(T, "x = l2norm(x + F(x), eps=1e-3)", "clamp", 1e3);
    flat(T, "x = scalenorm(x + F(x), eps=1e-3)", "clamp", 1e3);
}

TB_TEST(every_norm_of_the_built_ins)
{
    for (size_t i = 0; i < tb_builtin_count(); i++) {
        tb_block *b = load(T, tb_builtin_name(i));
        tb_model *m;
        tb_arena a;
        tb_flat *rows;
        size_t n;
        tb_arena_init(&a, T->ctx);
        TB_OKAY(T, tb_model_create(T->ctx, b, &unset, TB_F64, &m));
        TB_OKAY(T, tb_corner_flat(m, &a, &rows, &n));
        for (size_t k = 0; k < n; k++)
            if (!tb_isfinite(rows[k].value) /* eps = 0 */
                    ? tb_isfinite(rows[k].measured)
                    : !(tb_fabs(rows[k].measured / rows[k].value - 1) < 1e-6))
                tb_test_fail(T, __FILE__, __LINE__, "%s: %s: %g, measured %g",
                             tb_builtin_name(i), rows[k].norm, rows[k].value,
                             rows[k].measured);
        tb_model_destroy(m);
        tb_arena_clear(&a);
        tb_block_destroy(T->ctx, b);
    }
}

/* --- F -> t F ------------------------------------------------------------- */

static bool agrees(int degree, double measured)
{
    if (degree == TB_LARGE_UNKNOWN)
        return true;
    if (degree == TB_LARGE_NONE)
        return measured != measured; /* 0: no power at all */
    return tb_fabs(measured - degree) < 0.02;
}

/* Adds how many powers were known. */
static void check_step(tb_test *T, const char *what, const tb_block *b,
                       const tb_graph *g, size_t l, int f, int *known)
{
    tb_arena a;
    tb_large_form form;
    tb_large seen;
    tb_arena_init(&a, T->ctx);
    TB_OKAY(T, tb_large_form_build(T->ctx, &a, g, f, &form));
    TB_OKAY(T, tb_corner_large(T->ctx, b, &unset, l, f, &seen));
    for (int i = 0; i < form.nstreams; i++) {
        *known += (form.value[i] != TB_LARGE_UNKNOWN) +
                  (form.jacobian[i] != TB_LARGE_UNKNOWN);
        if (!agrees(form.value[i], seen.value[i]) ||
            !agrees(form.jacobian[i], seen.jacobian[i]) ||
            !agrees(form.lane[i], seen.lane[i]))
            tb_test_fail(T, __FILE__, __LINE__,
                         "%s step %d stream %d: value %d %g, Jacobian %d %g, "
                         "lane %d %g",
                         what, f, i, form.value[i], seen.value[i],
                         form.jacobian[i], seen.jacobian[i], form.lane[i],
                         seen.lane[i]);
    }
    tb_arena_clear(&a);
}

TB_TEST(powers_of_large_branches)
{
    int known = 0, steps = 0;
    for (size_t i = 0; i < tb_builtin_count(); i++) {
        tb_block *b = load(T, tb_builtin_name(i));
        tb_model *m;
        TB_OKAY(T, tb_model_create(T->ctx, b, &unset, TB_F64, &m));
        for (size_t l = 1; l <= 2; l++)
            for (int f = 0; f + 1 < tb_model_graph(m, l)->ncuts; f++, steps++)
                check_step(T, tb_builtin_name(i), b, tb_model_graph(m, l), l, f,
                           &known);
        tb_model_destroy(m);
        tb_block_destroy(T->ctx, b);
    }
    printf("large branches: %d powers known in %d steps\n", known, steps);
    TB_CHECK(T, known > 2 * steps - 20);
}

/* "x 1 t, J 1, lane 0": powers and the leading terms. */
static void large(tb_test *T, const char *what, const char *value,
                  const char *jacobian, int power)
{
    tb_block *b = load(T, what);
    tb_model *m;
    tb_arena a;
    tb_large_form form;
    tb_buf out;
    tb_arena_init(&a, T->ctx);
    tb_buf_init(&out, T->ctx);
    TB_OKAY(T, tb_model_create(T->ctx, b, &unset, TB_F64, &m));
    TB_OKAY(T, tb_large_form_build(T->ctx, &a, tb_model_graph(m, 1), 0, &form));
    TB_OKAY(T, tb_large_value_print(&form, 0, TB_NOTE_TEXT, &out));
    TB_STR(T, tb_buf_str(&out), value);
    out.len = 0;
    TB_OKAY(T, tb_jacobian_print(T->ctx, &form.leading, TB_NOTE_TEXT, &out));
    TB_STR(T, tb_buf_str(&out), jacobian);
    TB_CHECK(T, form.jacobian[0] == power);
    tb_buf_clear(&out);
    tb_arena_clear(&a);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(limits_of_large_branches)
{
    large(T, "post-ln", "LN(F(x))", "J_LN(F(x))·J_F(x)", 0);
    large(T, "pre-ln", "F(LN(x))", "J_F(LN(x))·J_LN(x)", 1);
    large(T, "peri-ln", "x + LN(F(LN(x)))",
          "I + J_LN(F(LN(x)))·J_F(LN(x))·J_LN(x)", 0);
    large(T, "residual", "LN(F(x))", "[ J_LN(F(x))·J_F(x), 0 ; J_F(x), 0 ]", 0);
    large(T, "x = norm(x - F(x) + 2)", "LN(-F(x))", "-1·J_LN(-F(x))·J_F(x)", 0);
    large(T, "x = x + tanh(F(x))", "x + sign(F(x))", "I", 0);
}
