/* SPDX-License-Identifier: MIT */
/* What the lane is: exactly 1 for pre-norm at every depth, a product of norm
 * Jacobians for post-norm, nothing where there is no skip. */
#include "flow/flow_model.h"
#include "tb_test.h"

static tb_flow *measure(tb_test *T, const char *block, size_t depth,
                        tb_dtype dtype)
{
    tb_block *b;
    tb_flow *f = NULL;
    tb_flow_spec spec = {
        .settings = TB_SETTINGS_UNSET, .seed = 1, .dtype = dtype};
    spec.settings.depth = depth;
    if (tb_block_load(T->ctx, block, &b) != TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
        return NULL;
    }
    if (tb_flow_measure(T->ctx, b, &spec, &f) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    tb_block_destroy(T->ctx, b);
    return f;
}

TB_TEST(pre_ln_lane_is_exactly_one)
{
    tb_flow *f = measure(T, "pre-ln", 48, TB_F32);
    TB_REQUIRE(T, f && f->nrows == 97);
    for (size_t i = 0; i < f->nrows; i++) {
        TB_CHECK(T, f->rows[i].lane == 1);
        TB_CHECK(T, f->rows[i].toll == 1);
        TB_CHECK(T, f->rows[i].norms == 0);
        TB_CHECK(T, i == 0 || f->rows[i].local_lane == 1);
    }
    TB_CHECK(T, f->stacks[0].has_final);
    tb_flow_free(T->ctx, f);
}

TB_TEST(post_ln_lane_fades_while_total_does_not)
{
    tb_flow *f = measure(T, "post-ln", 12, TB_F32);
    TB_REQUIRE(T, f && f->nrows == 25);
    TB_CHECK(T, f->rows[1].lane < 0.05);
    TB_CHECK(T, f->rows[1].total > 10 * f->rows[1].lane);
    for (size_t i = 1; i < f->nrows; i++)
        TB_CHECK(T, f->rows[i].norms == 1 && f->rows[i].toll < 1);
    TB_CHECK(T, !f->stacks[0].has_final);
    tb_flow_free(T->ctx, f);
}

TB_TEST(no_skip_has_no_lane)
{
    tb_flow *f = measure(T, "x = F(x)", 3, TB_F64);
    TB_REQUIRE(T, f);
    TB_CHECK(T, f->rows[0].lane == 0);
    TB_STR(T, f->verdicts[0].code, "NOSKIP");
    tb_flow_free(T->ctx, f);
}
