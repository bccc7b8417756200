/* SPDX-License-Identifier: MIT */
/* Constant expressions: values against known ones, refusals, and names. */
#include "unit/equation_help.h"

static const double nan_value = (double)__builtin_nanf("");

/* Names of the block's statements, as the graph resolves its locals. */
static const tb_expr *local(void *user, const char *name)
{
    const tb_block *b = user;
    for (int i = 0; i < b->sections[0].nstmts; i++)
        if (tb_streq(b->sections[0].stmts[i].name, name))
            return b->sections[0].stmts[i].value;
    return NULL;
}

/* Folds the last statement. */
static tb_status fold_last(tb_ctx *ctx, const char *text, double *value,
                           bool *constant)
{
    static const tb_consts c = {.N = 12, .M = 6, .l = 3, .k = 2, .d = 64};
    tb_consts consts = c;
    tb_block *b;
    consts.h = nan_value;
    TB_TRY(eq_parse(ctx, text, TB_PARSE_EVAL, &b));
    const tb_section *s = &b->sections[0];
    const tb_expr *e = s->stmts[s->nstmts - 1].value;
    *constant = tb_expr_is_const(e, local, b);
    tb_status status = tb_expr_fold(ctx, b, e, &consts, local, b, value);
    tb_block_destroy(ctx, b);
    return status;
}

TB_TEST(values)
{
    static const struct {
        const char *text;
        double value;
    } known[] = {
        {"-0.5^2", -0.25},
        {"(-0.5)^2", 0.25},
        {"2^3^2", 512},
        {"2^-1", 0.5},
        {"7 - 2 - 1", 4},
        {"8/4/2", 1},
        {"2 + 3*4", 14},
        {"(2*N)^0.25", 2.213363839400643}, /* DeepNorm, N = 12 */
        {"(8*N)^-0.25", 0.3194715521231362},
        {"sqrt(log(2*N))", 1.782709687623856}, /* Sub-LN, N = 12 */
        {"0.02/sqrt(2*N)", 0.004082482904638631},
        {"0.81*(N^4*M)^(1/16)", 1.686222125536953},
        {"min(3, 1, 2) + max(3, 1, 2)", 4},
        {"floor(2.5) + floor(-2.5) + floor(-3)", -4},
        {"floor(1e300)", 1e300},
        {"abs(-3) + exp(0)", 4},
        {"d*l*k", 384},
        {"alpha = 2*N; beta = alpha^2; beta + 1", 577},
    };
    for (size_t i = 0; i < TB_LEN(known); i++) {
        double value;
        bool constant;
        TB_OKAY(T, fold_last(T->ctx, known[i].text, &value, &constant));
        TB_NEAR(T, value, known[i].value, 1e-14);
        TB_CHECK(T, constant);
    }
}

TB_TEST(conditions_give_one_or_zero)
{
    static const struct {
        const char *text;
        double value;
    } known[] = {
        {"block[l < 3]: x = x", 0},
        {"block[l <= N/4]: x = x", 1},
        {"block[l == 3]: x = x", 1},
        {"block[l >= 4]: x = x", 0},
        {"block[2*l > 5]: x = x", 1},
        {"block[l == 4]: x = x", 0},
        {"block[l/3 == floor(l/3)]: x = x", 1},
    };
    const tb_consts c = {.N = 12, .M = 12, .l = 3, .k = 1, .d = 8, .h = 1};
    for (size_t i = 0; i < TB_LEN(known); i++) {
        tb_block *b;
        double value;
        TB_OKAY(T, eq_parse(T->ctx, known[i].text, TB_PARSE_BLOCK, &b));
        TB_OKAY(T, tb_expr_fold(T->ctx, b, b->sections[0].condition, &c, NULL,
                                NULL, &value));
        TB_NEAR(T, value, known[i].value, 0);
        tb_block_destroy(T->ctx, b);
    }
}

TB_TEST(refusals)
{
    static const struct {
        const char *text, *error;
        bool constant; /* by its form, though it has no value */
    } bad[] = {
        {"1/(N - 12)", "1:2: division by zero\n    1/(N - 12)\n     ^", true},
        {"sqrt(-1)",
         "1:1: the result is not a finite number\n"
         "    sqrt(-1)\n"
         "    ^",
         true},
        {"2 + log(0)",
         "1:5: the result is not a finite number\n"
         "    2 + log(0)\n"
         "        ^",
         true},
        {"10^400",
         "1:3: the result is not a finite number\n"
         "    10^400\n"
         "      ^",
         true},
        {"(-8)^(1/3)",
         "1:5: the result is not a finite number\n"
         "    (-8)^(1/3)\n"
         "        ^",
         true},
        {"2*h", "1:3: 'h' has no value here\n    2*h\n      ^", true},
        {"2*x", "1:3: 'x' is not a constant\n    2*x\n      ^", false},
        {"2*K", "1:3: 'K' is not a constant\n    2*K\n      ^", false},
        {"norm(2)",
         "1:1: 'norm' is not a function of constants\n"
         "    norm(2)\n"
         "    ^",
         false},
        {"sqrt(1, 2)",
         "1:1: 'sqrt' takes one argument, got 2\n"
         "    sqrt(1, 2)\n"
         "    ^",
         true},
        {"max(1)",
         "1:1: 'max' takes two or more arguments, got 1\n"
         "    max(1)\n"
         "    ^",
         true},
        {"sqrt(a=1)",
         "1:6: 'sqrt' takes no options\n"
         "    sqrt(a=1)\n"
         "         ^",
         false},
        {"(1, 2)", "1:1: a tuple is not a constant\n    (1, 2)\n    ^", false},
        {"a = a + 1",
         "1:7: constant expression too large, or defined by "
         "itself\n"
         "    a = a + 1\n"
         "          ^",
         false},
    };
    for (size_t i = 0; i < TB_LEN(bad); i++) {
        double value;
        bool constant;
        TB_FAILS(T, fold_last(T->ctx, bad[i].text, &value, &constant),
                 TB_ERR_PARSE, "");
        TB_STR(T, tb_error(T->ctx), bad[i].error);
        TB_CHECK(T, constant == bad[i].constant);
    }
}

/* Every line doubles the one before: 2^60 additions without a bound. */
TB_TEST(doubling_names_are_bounded)
{
    tb_buf text;
    double value;
    bool constant;
    tb_buf_init(&text, T->ctx);
    tb_buf_puts(&text, "a0 = 1\n");
    for (int i = 1; i <= 60; i++)
        tb_buf_printf(&text, "a%d = a%d + a%d\n", i, i - 1, i - 1);
    TB_FAILS(T, fold_last(T->ctx, tb_buf_str(&text), &value, &constant),
             TB_ERR_PARSE, "constant expression too large");
    TB_CHECK(T, !constant);
    tb_buf_clear(&text);
}
