/* SPDX-License-Identifier: MIT */
/* Blocks made from blocks: what each change makes of a text, and where it finds
 * nothing. */
#include "equation_help.h"

static const struct change_case {
    tb_change what;
    double value;
    const char *text, *wanted; /* NULL: nothing to change */
} cases[] = {
    {TB_CHANGE_TO_BRANCH, 0, "x = norm(x + F(x))",
     "x = x + F(norm(x)); final: x = norm(x)"},
    {TB_CHANGE_TO_BRANCH, 0, "x = rmsnorm(2*x + 0.5*F(x), eps=1e-6)",
     "x = 2*x + 0.5*F(rmsnorm(x, eps=1e-6)); final: x = norm(x)"},
    {TB_CHANGE_TO_BRANCH, 0, "x = norm(x + F(x)); final: x = l2norm(x)",
     "x = x + F(norm(x)); final: x = l2norm(x)"},
    {TB_CHANGE_TO_BRANCH, 0, "x = x + F(norm(x))", NULL},
    {TB_CHANGE_TO_BRANCH, 0, "x = norm(x + F(norm(x)))", NULL},
    {TB_CHANGE_TO_LANE, 0, "x = x + F(norm(x)); final: x = norm(x)",
     "x = norm(x + F(x)); final: x = norm(x)"},
    {TB_CHANGE_TO_LANE, 0, "x = x + 0.5*attn(norm(x)); x = x + ffn(norm(x))",
     "x = norm(x + 0.5*attn(x)); x = norm(x + ffn(x))"},
    {TB_CHANGE_TO_LANE, 0, "x = norm(x + F(x))", NULL},
    {TB_CHANGE_TO_LANE, 0, "x = F(norm(x))", NULL},
    {TB_CHANGE_SCALE, 0.5, "x = norm(x + F(x))", "x = norm(x + 0.5*F(x))"},
    {TB_CHANGE_SCALE, 2,
     "attn(x) = o(mha(q(x), k(x), v(x))); "
     "x = x + attn(norm(x)) + ffn(norm(x))",
     "attn(x) = o(mha(q(x), k(x), v(x))); "
     "x = x + 2*attn(norm(x)) + 2*ffn(norm(x))"},
    {TB_CHANGE_SCALE, 2, "x = norm(x)", NULL},
    {TB_CHANGE_CUT, 0, "x = norm(x + F(x))", "x = norm(F(x))"},
    {TB_CHANGE_CUT, 0, "x = x + attn(x) + ffn(x)", "x = attn(x) + ffn(x)"},
    {TB_CHANGE_CUT, 0, "g = sigmoid(x); x = (1 - g)*x + g*F(x)",
     "g = sigmoid(x); x = g*F(x)"},
    {TB_CHANGE_CUT, 0, "x = F(x)", NULL},
    {TB_CHANGE_CUT_ONE, 3, "x = x + F(norm(x)); final: x = norm(x)",
     "block[l == 3]: x = F(norm(x))\nblock: x = x + F(norm(x))\n"
     "final: x = norm(x)"},
    {TB_CHANGE_CUT_ONE, 3, "block[l <= 2]: x = F(x)\nblock: x = x + F(x)",
     "block[l <= 2]: x = F(x)\nblock[l == 3]: x = F(x)\n"
     "block: x = x + F(x)"},
};

static void print_into(tb_buf *out, const tb_block *b)
{
    tb_buf_clear(out);
    tb_block_print(b, out);
}

TB_TEST(changes)
{
    tb_buf got, want;
    tb_buf_init(&got, T->ctx);
    tb_buf_init(&want, T->ctx);
    for (size_t i = 0; i < TB_LEN(cases); i++) {
        const struct change_case *c = &cases[i];
        tb_block *b, *changed, *wanted;
        TB_OKAY(T, tb_block_load(T->ctx, c->text, &b));
        TB_OKAY(T, tb_block_changed(T->ctx, b, c->what, c->value, &changed));
        if (!c->wanted != !changed)
            tb_test_fail(T, __FILE__, __LINE__, "case %zu: %s", i,
                         changed ? "changed" : "not changed");
        if (c->wanted && changed) {
            TB_OKAY(T, tb_block_load(T->ctx, c->wanted, &wanted));
            print_into(&got, changed);
            print_into(&want, wanted);
            TB_STR(T, tb_buf_str(&got), tb_buf_str(&want));
            tb_block_destroy(T->ctx, wanted);
        }
        if (changed)
            tb_block_destroy(T->ctx, changed);
        tb_block_destroy(T->ctx, b);
    }
    tb_buf_clear(&got);
    tb_buf_clear(&want);
}

/* Every published block survives every change, or has none. */
TB_TEST(changes_of_all_blocks)
{
    size_t n = 0, all = 0;
    for (const tb_builtin *one = tb_builtins; one->name; one++, all++)
        for (int what = TB_CHANGE_SCALE; what <= TB_CHANGE_TO_LANE; what++) {
            tb_block *b, *changed;
            TB_OKAY(T, tb_block_load(T->ctx, one->name, &b));
            TB_OKAY(T,
                    tb_block_changed(T->ctx, b, (tb_change)what, 2, &changed));
            n += changed != NULL;
            if (changed)
                tb_block_destroy(T->ctx, changed);
            tb_block_destroy(T->ctx, b);
        }
    TB_CHECK(T, n > 3 * all);
}
