/* SPDX-License-Identifier: MIT */
/* What eval does with rows, masks, names and numbers that are not finite, and
 * what it refuses. */
#include "model_help.h"

static tb_eval_result *run_case(tb_test *T, tb_case *c)
{
    tb_eval_result *r = NULL;
    tb_status s = tb_eval_run(T->ctx, &c->e, &r);
    if (s != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", c->e.text,
                     tb_error(T->ctx));
    return r;
}

/* C005: the same spread at any offset, in float. */
TB_TEST(offset_does_not_matter_in_float)
{
    static const char *const x[] = {"[0,1,2,3]", "[2000,2001,2002,2003]",
                                    "[40000,40001,40002,40003]",
                                    "[80000,80001,80002,80003]"};
    const double want[] = {-1.3416354, -0.4472118, 0.4472118, 1.3416354};
    for (size_t i = 0; i < TB_LEN(x); i++) {
        tb_case c = {.e = {.text = "norm(x)", .f32 = true}};
        help_set(&c, "x", x[i]);
        tb_eval_result *r = run_case(T, &c);
        if (r)
            TB_NEAR_N(T, r->y.data, want, 4, 1e-6);
        tb_eval_free(T->ctx, r);
    }
}

/* C012: bad rows stay in their rows and are said to come from the norm. */
TB_TEST(nonfinite_rows)
{
    tb_case c = {.e = {.text = "relu(norm(x))"}};
    help_set(&c, "x", "[[1,2,3,4],[1,nan,3,4],[1,inf,3,4],[4,3,2,1]]");
    tb_eval_result *r = run_case(T, &c);
    TB_REQUIRE(T, r != NULL);
    const double good[] = {0, 0, 0.4472118, 1.3416354};
    const double last[] = {1.3416354, 0.4472118, 0, 0};
    TB_NEAR_N(T, r->y.data, good, 4, 1e-7);
    TB_NEAR_N(T, r->y.data + 12, last, 4, 1e-7);
    for (size_t i = 4; i < 12; i++)
        TB_CHECK(T, r->y.data[i] != r->y.data[i]);
    TB_CHECK(T, r->nonfinite_rows == 2 && r->first_row == 2);
    TB_STR(T, r->first_op, "layernorm");
    tb_eval_free(T->ctx, r);
}

/* C022, C026: value semantics; two spellings of one equation. */
TB_TEST(spellings_agree)
{
    static const char *const text[] = {
        "r = x; x = norm(x); x = attn(x); x = r + x", "x = x + attn(norm(x))"};
    double first[8] = {0};
    for (size_t i = 0; i < TB_LEN(text); i++) {
        tb_case c = {.e = {.text = text[i], .seed = 3}};
        help_set(&c, "x", "[[1,2,0,4],[0.5,-1,2,7]]");
        tb_eval_result *r = run_case(T, &c);
        TB_REQUIRE(T, r != NULL);
        if (i)
            TB_SAME(T, r->y.data, first, sizeof first);
        memcpy(first, r->y.data, sizeof first);
        tb_eval_free(T->ctx, r);
    }
}

/* C030: a branch made small by its weights is made large again. */
TB_TEST(norm_on_the_branch)
{
    static const double s[] = {1, 0.1, 0.01, 0.001, 0.0001, 0};
    static const double want[] = {1.341635, 1.341104, 1.290994,
                                  0.447214, 0.047405, 0};
    for (size_t i = 0; i < TB_LEN(s); i++) {
        tb_case c = {.e = {.text = "a = scalar(1); norm(a*x)"}};
        help_set(&c, "x", "[1,2,3,4]");
        help_set(&c, "a", "0");
        c.numbers[4] = s[i];
        tb_eval_result *r = run_case(T, &c);
        if (r)
            TB_NEAR(T, r->y.data[3], want[i], 1e-5);
        tb_eval_free(T->ctx, r);
    }
}

/* C031, the wrong place: drop on the sum leaves 0 or 2. */
TB_TEST(drop_on_the_sum)
{
    tb_case c = {.e = {.text = "f(v) = 0*v; drop(x + f(norm(x)), 0.5)"}};
    help_set(&c, "x", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]");
    tb_eval_result *r = run_case(T, &c);
    TB_REQUIRE(T, r != NULL);
    size_t zeros = 0;
    for (size_t i = 0; i < 16; i++) {
        TB_CHECK(T, r->y.data[i] == 0 || r->y.data[i] == 2);
        zeros += r->y.data[i] == 0;
    }
    TB_CHECK(T, zeros > 0 && zeros < 16);
    tb_eval_free(T->ctx, r);
}

/* C043: with F = 0 the toll of post-LN is paid once. */
TB_TEST(toll_is_paid_once)
{
    char text[600] = "";
    static const int depth[] = {1, 2, 6, 12, 24};
    for (size_t n = 0, at = 0, i = 0; i < TB_LEN(depth); i++) {
        for (; n < (size_t)depth[i]; n++)
            at += tb_format(text + at, sizeof text - at, "x = norm(x);");
        tb_case c = {.e = {.text = text}};
        help_set(&c, "x", "[1,2,3,4]");
        help_tangent(&c, "x", "[1,-1,-1,1]"); /* orthogonal to 1 and x */
        tb_eval_result *r = run_case(T, &c);
        TB_REQUIRE(T, r != NULL);
        TB_NEAR(T, r->tangent.data[0], depth[i] == 1 ? 0.894424 : 0.894423,
                2e-6);
        tb_eval_free(T->ctx, r);
    }
}

/* C063: rows are outputs, columns inputs; jvp and vjp of the same matrix. */
TB_TEST(rows_and_columns)
{
    tb_case c = {
        .e = {.text = "w = linear(2, 2, bias=false); w(x)", .jacobian = "x"}};
    help_set(&c, "x", "[5,7]");
    help_set(&c, "w", "[[1,2],[3,0]]");
    help_cotangent(&c, "[1,0]");
    help_tangent(&c, "x", "[1,0]");
    tb_eval_result *r = run_case(T, &c);
    TB_REQUIRE(T, r != NULL);
    const double j[] = {1, 2, 3, 0}, vjp[] = {1, 2}, jvp[] = {1, 3};
    TB_NEAR_N(T, r->jacobian.data, j, 4, 0);
    TB_NEAR_N(T, help_grad(r, "x")->data, vjp, 2, 0);
    TB_NEAR_N(T, r->tangent.data, jvp, 2, 0);
    tb_eval_free(T->ctx, r);
}

TB_TEST(jacobian_of_several_names)
{
    tb_case c = {.e = {.text = "a*b + 3*a", .jacobian = "b, a"}};
    help_set(&c, "a", "2");
    help_set(&c, "b", "5");
    tb_eval_result *r = run_case(T, &c);
    TB_REQUIRE(T, r != NULL);
    const double j[] = {2, 8};
    TB_CHECK(T, r->y.rank == 0 && r->y.data[0] == 16);
    TB_CHECK(T, r->jacobian.dims[0] == 1 && r->jacobian.dims[1] == 2);
    TB_NEAR_N(T, r->jacobian.data, j, 2, 0);
    tb_eval_free(T->ctx, r);
}

/* C062 in blocks, against the diagonal blocks of the full form. */
TB_TEST(jacobian_blocks)
{
    double full[16 * 16];
    for (int blocks = 0; blocks < 2; blocks++) {
        tb_case c = {.e = {.text = "x = x + attn(norm(x))",
                           .jacobian = "x",
                           .jacobian_blocks = blocks != 0,
                           .seed = 1}};
        help_set(&c, "x",
                 "[[[1,2,3,0],[0,1,5,2]],[[1,1,2,3],[-1,0.5,0.25,3]]]");
        tb_eval_result *r = run_case(T, &c);
        TB_REQUIRE(T, r != NULL);
        if (!blocks)
            memcpy(full, r->jacobian.data, sizeof full);
        for (size_t t = 0; t < 4 && blocks; t++)
            for (size_t i = 0; i < 4; i++)
                TB_NEAR_N(T, r->jacobian.data + (t * 4 + i) * 4,
                          full + (t * 4 + i) * 16 + t * 4, 4, 0);
        tb_eval_free(T->ctx, r);
    }
}

/* C064: refused before anything of that size is allocated. */
TB_TEST(huge_jacobian_is_refused)
{
    double *x = tb_alloc(T->ctx, 128 * 768, sizeof *x);
    TB_REQUIRE(T, x != NULL);
    tb_eval_value v = {.name = "x", .rank = 2, .dims = {128, 768}, .data = x};
    tb_eval e = {.text = "norm(x)", .nsets = 1, .sets = &v, .jacobian = "x"};
    tb_eval_result *r;
    TB_FAILS(T, tb_eval_run(T->ctx, &e, &r), TB_ERR_ARG, "77309411328 bytes");
    TB_FAILS(T, tb_eval_run(T->ctx, &e, &r), TB_ERR_ARG, "per-token blocks");
    tb_free(T->ctx, x);
}

/* C068: a causal block's upper blocks are exactly 0, a full one's are not. */
TB_TEST(causal_blocks)
{
    for (int causal = 0; causal < 2; causal++) {
        tb_case c = {
            .e = {.text = "x = x + F(norm(x))",
                  .jacobian = "x",
                  .heads = 2,
                  .seed = 7,
                  .mask = causal ? TB_EVAL_MASK_CAUSAL : TB_EVAL_MASK_NONE}};
        double x[32];
        tb_test_fill(T, TB_F64, x, 32);
        tb_eval_value v = {.name = "x", .rank = 2, .dims = {4, 8}, .data = x};
        c.e.nsets = 1;
        c.e.sets = &v;
        tb_eval_result *r = run_case(T, &c);
        TB_REQUIRE(T, r != NULL);
        size_t nonzero = 0;
        for (size_t i = 0; i < 32; i++)
            for (size_t j = (i / 8 + 1) * 8; j < 32; j++)
                nonzero += r->jacobian.data[i * 32 + j] != 0;
        TB_CHECK(T, causal ? nonzero == 0 : nonzero == 8 * 8 * 6);
        tb_eval_free(T->ctx, r);
    }
}

/* C068: later tokens change nothing before them, bit for bit. */
TB_TEST(perturbing_the_last_token)
{
    double x[32], y[32] = {0};
    tb_test_fill(T, TB_F64, x, 32);
    for (int i = 0; i < 2; i++) {
        tb_case c = {.e = {.text = "x = x + F(norm(x))", .heads = 2}};
        tb_eval_value v = {.name = "x", .rank = 2, .dims = {4, 8}, .data = x};
        c.e.nsets = 1;
        c.e.sets = &v;
        tb_eval_result *r = run_case(T, &c);
        TB_REQUIRE(T, r != NULL);
        if (i) {
            TB_SAME(T, r->y.data, y, 24 * sizeof *y);
            TB_CHECK(T, memcmp(r->y.data + 24, y + 24, 8 * sizeof *y) != 0);
        }
        memcpy(y, r->y.data, sizeof y);
        x[27] += 1;
        tb_eval_free(T->ctx, r);
    }
}

/* A [d] beside [T,d] is one vector for all tokens. */
TB_TEST(vector_beside_tokens)
{
    tb_case c = {.e = {.text = "s*x"}};
    help_set(&c, "x", "[[1,2],[3,4],[5,6]]");
    help_set(&c, "s", "[10,-1]");
    help_cotangent(&c, "[[1,1],[1,1],[1,1]]");
    tb_eval_result *r = run_case(T, &c);
    TB_REQUIRE(T, r != NULL);
    const double y[] = {10, -2, 30, -4, 50, -6}, gs[] = {9, 12};
    TB_NEAR_N(T, r->y.data, y, 6, 0);
    TB_NEAR_N(T, help_grad(r, "s")->data, gs, 2, 0);
    tb_eval_free(T->ctx, r);
}

typedef struct refusal {
    const char *text, *sets, *eps, *cotangent;
    tb_status status;
    const char *message;
} refusal;

static const refusal refusals[] = {
    {"norm(x)", "x=[5,5,5,5]", "0", NULL, TB_ERR_INPUT, "zero variance"},
    {"norm(x)", "x=[5,5,5,5]", "-1", NULL, TB_ERR_ARG, "eps"},
    {"norm(x)", "x=[5,5,5,5]", "nan", NULL, TB_ERR_ARG, "eps"},
    {"norm(x)", "x=[5,5,5,5]", "inf", NULL, TB_ERR_ARG, "eps"},
    {"norm(x)", "x=[1,2]; y=[1,2]", NULL, NULL, TB_ERR_INPUT, "y"},
    {"norm(x)", "x=[1,2]; norm.gian=[1,2]", NULL, NULL, TB_ERR_INPUT,
     "did you mean norm.gain?"},
    {"norm(x)", "x=[1,2]; norm.gain=[1,2,3]", NULL, NULL, TB_ERR_SHAPE,
     "norm.gain: got [3], wanted [2]"},
    {"norm(x)", "x=[1,2]", NULL, "[1,2,3]", TB_ERR_SHAPE,
     "cotangent: got [3], wanted [2]"},
    {"norm(z)", "x=[1,2]", NULL, NULL, TB_ERR_PARSE, "z"},
    {"x + z", "x=[[1,2],[3,4]]; z=[[1,2],[3,4],[5,6]]", NULL, NULL,
     TB_ERR_SHAPE, "add: streams of 2 and 3 tokens"},
    {"x + memory", "x=[[1,2],[3,4]]; memory=[[1,2],[3,4]]", NULL, NULL,
     TB_ERR_PARSE, "only mha brings them together"},
    {"cross(x)", "x=[[1,2],[3,4]]", NULL, NULL, TB_ERR_PARSE,
     "memory: needs an encoder; give it with --set"},
    {"x + z", "x=[[1,2],[3,4]]; z=[[[1,2],[3,4]]]", NULL, NULL, TB_ERR_SHAPE,
     "x: got [2,2], wanted [1,2,2]"},
    {"x + x", "x=[1,2]; x=[1,2]", NULL, NULL, TB_ERR_INPUT, "set twice"},
    {"x + (", "x=[1,2]", NULL, NULL, TB_ERR_PARSE, "1:"},
};

TB_TEST(refused)
{
    for (size_t i = 0; i < TB_LEN(refusals); i++) {
        const refusal *f = &refusals[i];
        tb_case c = {.e = {.text = f->text}};
        char copy[256];
        tb_eval_result *r;
        help_sets(&c, copy, f->sets);
        if (f->eps) {
            const char *p = f->eps;
            c.eps = help_number(&p);
            c.e.eps = &c.eps;
        }
        if (f->cotangent)
            help_cotangent(&c, f->cotangent);
        TB_FAILS(T, tb_eval_run(T->ctx, &c.e, &r), f->status, f->message);
    }
}

static tb_status run_everything(tb_test *T, tb_eval_result **r)
{
    tb_case c = {.e = {.text = "x = x + attn(norm(x))", .jacobian = "x"}};
    help_set(&c, "x", "[[1,2],[0,4]]");
    help_cotangent(&c, "[[1,2],[3,4]]");
    help_tangent(&c, "x", "[[1,2],[3,4]]");
    return tb_eval_run(T->ctx, &c.e, r);
}

TB_TEST(every_allocation_may_fail)
{
    tb_eval_result *r;
    TB_OKAY(T, run_everything(T, &r)); /* back ends start once */
    tb_eval_free(T->ctx, r);
    size_t before = tb_ctx_blocks(T->ctx), n = 1;
    tb_status s = TB_ERR_MEMORY;
    for (; s != TB_OK && n < 10000; n++) {
        tb_ctx_fail_alloc_at(T->ctx, n);
        s = run_everything(T, &r);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        TB_REQUIRE(T, s == TB_OK || (s == TB_ERR_MEMORY && !r));
        tb_eval_free(T->ctx, r);
        TB_REQUIRE(T, tb_ctx_blocks(T->ctx) == before);
    }
    TB_CHECK(T, s == TB_OK && n > 5);
}

static tb_status check_everything(tb_test *T, tb_eval_agreement *a)
{
    tb_case c = {.e = {.text = "x + stop(x)*ffn(norm(x))", .jacobian = "x"}};
    help_set(&c, "x", "[[1,2],[0,4]]");
    return tb_eval_check(T->ctx, &c.e, a);
}

TB_TEST(every_allocation_of_the_check_may_fail)
{
    tb_eval_agreement a;
    TB_OKAY(T, check_everything(T, &a));
    size_t before = tb_ctx_blocks(T->ctx), n = 1;
    tb_status s = TB_ERR_MEMORY;
    for (; s != TB_OK && n < 10000; n++) {
        tb_ctx_fail_alloc_at(T->ctx, n);
        s = check_everything(T, &a);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        TB_REQUIRE(T, s == TB_OK || s == TB_ERR_MEMORY);
        TB_REQUIRE(T, tb_ctx_blocks(T->ctx) == before);
    }
    TB_CHECK(T, s == TB_OK && n > 5);
}
