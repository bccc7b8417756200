/* SPDX-License-Identifier: MIT */
/* Numbers of single equations: tables of EXPR, given numbers and what must
 * come out. Expected values are closed formulas worked in double. */
#include "model_help.h"

typedef struct row {
    const char *what, *text, *sets, *eps, *y, *cotangent;
    const char *grads;    /* "x=[..]; norm.gain=[..]" */
    const char *jacobian; /* of x */
    double tol;
} row;

static const row rows[] = {
    {"C001 eps inside, n", "norm(x)", "x=[1,0,0,0]", NULL,
     "[1.7320046,-0.5773349,-0.5773349,-0.5773349]", NULL, NULL, NULL, 1e-7},
    {"C001 second row", "norm(x)", "x=[0,1,2,3]", NULL,
     "[-1.3416354,-0.4472118,0.4472118,1.3416354]", NULL, NULL, NULL, 1e-7},
    {"C003 constant row gives the bias", "norm(x)",
     "x=[5,5,5,5]; norm.bias=[0.5,-0.5,0,2]; norm.gain=[1,1,1,1]", NULL,
     "[0.5,-0.5,0,2]", NULL, NULL, NULL, 0},
    {"C003 eps 1e-3", "norm(x)", "x=[5,5,5,5]; norm.bias=[0.5,-0.5,0,2]",
     "1e-3", "[0.5,-0.5,0,2]", NULL, NULL, NULL, 0},
    {"C003 eps 1e-12", "norm(x)", "x=[5,5,5,5]; norm.bias=[0.5,-0.5,0,2]",
     "1e-12", "[0.5,-0.5,0,2]", NULL, NULL, NULL, 0},
    {"C013 d = 1", "norm(x)", "x=[1e6]; norm.gain=[123]; norm.bias=[3]", NULL,
     "[3]", "[2]", "x=[0]; norm.gain=[0]; norm.bias=[2]", NULL, 0},
    {"C013 eps 0.1", "norm(x)", "x=[-3]; norm.gain=[1e10]; norm.bias=[-1]",
     "0.1", "[-1]", NULL, NULL, NULL, 0},
    {"C018 per token", "norm(x)", "x=[[1,2],[3,7]]", NULL,
     "[[-0.9999800,0.9999800],[-0.99999875,0.99999875]]", NULL, NULL, NULL,
     2e-8},
    {"C018 the edit stays in its row", "norm(x)", "x=[[1,2],[3,8]]", NULL,
     "[[-0.9999800,0.9999800],[-0.9999992,0.9999992]]", NULL, NULL, NULL, 5e-8},
    {"C019 gradient at a constant row", "norm(x)", "x=[5,5,5,5]", NULL,
     "[0,0,0,0]", "[1,0,0,0]",
     "x=[237.1708245,-79.0569415,-79.0569415,-79.0569415]", NULL, 1e-8},
    {"C019 zero row", "norm(x)", "x=[0,0,0,0]", NULL, "[0,0,0,0]", "[1,0,0,0]",
     "x=[237.1708245,-79.0569415,-79.0569415,-79.0569415]", NULL, 1e-8},
    {"C020 mean term once", "norm(x)", "x=[1,2,3,4]", NULL, NULL, "[1,0,0,0]",
     "x=[0.2683303,-0.3577684,-0.0894434,0.1788815]", NULL, 1e-7},
    {"C021 sums over batch and time", "norm(x)",
     "x=[[[1,2,4],[0,1,0]],[[3,3,0],[5,6,10]]]", NULL, NULL,
     "[[[1,1,1],[1,1,1]],[[1,1,1],[1,1,1]]]",
     "norm.bias=[4,4,4]; norm.gain=[-1.9948465,1.3911168,0.6037297]; "
     "x=[[[0,0,0],[0,0,0]],[[0,0,0],[0,0,0]]]",
     NULL, 1e-7},
    {"C023 a zero gain", "norm(x)", "x=[1,2,3,4]; norm.gain=[1,0,1,1]", NULL,
     NULL, "[1,1,1,1]",
     "norm.gain=[-1.3416354,-0.4472118,0.4472118,1.3416354]; "
     "x=[0.3577684,-0.6260969,0.1788851,0.0894434]",
     NULL, 1e-7},
    {"C023 all gains zero", "norm(x)", "x=[1,2,3,4]; norm.gain=[0,0,0,0]", NULL,
     "[0,0,0,0]", "[1,1,1,1]",
     "norm.gain=[-1.3416354,-0.4472118,0.4472118,1.3416354]; x=[0,0,0,0]", NULL,
     1e-7},
    {"C025 the old x is not overwritten", "f(v) = v*v; x = x + f(x)",
     "x=[1,2,3]", NULL, "[2,6,12]", "[1,1,1]", "x=[3,5,7]", NULL, 0},
    {"C027 the normalised copy on the skip",
     "attn(v) = 0*v; x = norm(x); x = x + attn(x)", "x=[1,2,3,4]", NULL,
     "[-1.3416354,-0.4472118,0.4472118,1.3416354]", "[1,1,1,1]", "x=[0,0,0,0]",
     NULL, 1e-7},
    {"C027 pre-LN with attn = 0", "attn(v) = 0*v; x = x + attn(norm(x))",
     "x=[1,2,3,4]", NULL, "[1,2,3,4]", NULL, NULL,
     "[[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]]", 0},
    {"C029 no path around", "f(v) = 0*v; f(norm(x) + x)", "x=[1,2,3,4]", NULL,
     "[0,0,0,0]", NULL, NULL, "[[0,0,0,0],[0,0,0,0],[0,0,0,0],[0,0,0,0]]", 0},
    {"C031 drop on the branch of nothing",
     "f(v) = 0*v; x = x + drop(f(norm(x)), 0.5)", "x=[1,1,1,1]", NULL,
     "[1,1,1,1]", NULL, NULL, NULL, 0},
    {"C061 the exact Jacobian", "norm(x)", "x=[1,2,3]", NULL, NULL, NULL, NULL,
     "[[0.2041318,-0.4082452,0.2041134],[-0.4082452,0.8164905,-0.4082452],"
     "[0.2041134,-0.4082452,0.2041318]]",
     1e-7},
    {"C061 gains scale rows", "norm(x)", "x=[1,2,3]; norm.gain=[1,2,3]", NULL,
     NULL, NULL, NULL,
     "[[0.2041318,-0.4082452,0.2041134],[-0.8164904,1.632981,-0.8164904],"
     "[0.6123402,-1.2247356,0.6123954]]",
     3e-7},
    {"C061 constant row", "norm(x)", "x=[5,5,5,5]", NULL, NULL, NULL, NULL,
     "[[237.1708245,-79.0569415,-79.0569415,-79.0569415],"
     "[-79.0569415,237.1708245,-79.0569415,-79.0569415],"
     "[-79.0569415,-79.0569415,237.1708245,-79.0569415],"
     "[-79.0569415,-79.0569415,-79.0569415,237.1708245]]",
     1e-8},
    {"C046 alpha on the skip",
     "f(v) = w(v); w = linear(3, 3, bias=false); "
     "norm(2*x + f(x))",
     "x=[1,2,4]; w=[[0,0,1],[1,0,0],[0,1,0]]", NULL,
     "[-0.4629096,-0.9258191,1.3887287]", NULL, NULL, NULL, 1e-7},
    {"C046 alpha on the branch",
     "w = linear(3, 3, bias=false); "
     "norm(x + 2*w(x))",
     "x=[1,2,4]; w=[[0,0,1],[1,0,0],[0,1,0]]", NULL,
     "[0.9258191,-1.3887287,0.4629096]", NULL, NULL, NULL, 1e-7},
    {"C038 parallel",
     "w = linear(3, 3, bias=false); "
     "x + w(norm(x)) + norm(x)",
     "x=[1,2,4]; w=[[0,0,1],[1,0,0],[0,1,0]]", NULL,
     "[1.2672604,0.6636981,5.0690415]", NULL, NULL, NULL, 1e-7},
    {"C038 sequential",
     "w = linear(3, 3, bias=false); "
     "x = x + w(norm(x)); x = x + norm(x)",
     "x=[1,2,4]; w=[[0,0,1],[1,0,0],[0,1,0]]", NULL,
     "[2.3388972,-0.2950773,4.9561802]", NULL, NULL, NULL, 1e-7},
    {"C041 sandwich",
     "w = linear(3, 3, bias=false); "
     "x = x + norm(w(norm(x))); x = x + norm(norm(x))",
     "x=[1,2,4]; w=[[0,0,1],[1,0,0],[0,1,0]]", NULL,
     "[2.3388927,-0.2950729,4.9561802]", NULL, NULL, NULL, 1e-7},
    {"C041 first contribution",
     "w = linear(3, 3, bias=false); "
     "norm(w(norm(x)))",
     "x=[1,2,4]; w=[[0,0,1],[1,0,0],[0,1,0]]", NULL,
     "[1.3362995,-1.0690396,-0.2672599]", NULL, NULL, NULL, 1e-7},
    {"C047 rezero at the start",
     "a = scalar(0); w = linear(2, 2, bias=false); "
     "x + a*w(x)",
     "x=[1,1]; w=[[2,0],[0,3]]", NULL, "[1,1]", "[1,1]",
     "a=5; w.weight=[[0,0],[0,0]]; x=[1,1]", "[[1,0],[0,1]]", 0},
    {"C047 after one step",
     "a = scalar(0); w = linear(2, 2, bias=false); "
     "x + a*w(x)",
     "x=[1,1]; w=[[2,0],[0,3]]; a=-0.5", NULL, "[0,-0.5]", "[1,1]",
     "a=5; w.weight=[[-0.5,-0.5],[-0.5,-0.5]]", NULL, 0},
    {"C062 two tokens, blocks on the diagonal", "norm(x)",
     "x=[[1,2,3],[2,4,6]]", NULL, NULL, NULL, NULL,
     "[[0.2041318,-0.4082452,0.2041134,0,0,0],"
     "[-0.4082452,0.8164905,-0.4082452,0,0,0],"
     "[0.2041134,-0.4082452,0.2041318,0,0,0],"
     "[0,0,0,0.1020627,-0.204124,0.1020604],"
     "[0,0,0,-0.204124,0.4082474,-0.204124],"
     "[0,0,0,0.1020604,-0.204124,0.1020627]]",
     4e-6},
    {"dyadic LN", "norm(x)", "x=[2,4,4,4,5,5,7,9]", "0",
     "[-1.5,-0.5,-0.5,-0.5,0,0,1,2]", NULL, NULL, NULL, 0},
    {"dyadic Jacobian, row 1", "norm(x)", "x=[2,4,4,4,5,5,7,9]", "0", NULL,
     "[1,0,0,0,0,0,0,0]",
     "x=[0.296875,-0.109375,-0.109375,-0.109375,-0.0625,-0.0625,0.03125,"
     "0.125]",
     NULL, 0},
    {"dyadic Jacobian, row 8", "norm(x)", "x=[2,4,4,4,5,5,7,9]", "0", NULL,
     "[0,0,0,0,0,0,0,1]", "x=[0.125,0,0,0,-0.0625,-0.0625,-0.1875,0.1875]",
     NULL, 0},
    {"sum of a norm's outputs has no gradient", "norm(x)",
     "x=[2,4,4,4,5,5,7,9]", NULL, NULL, "[1,1,1,1,1,1,1,1]",
     "x=[0,0,0,0,0,0,0,0]", NULL, 1e-15},
    {"flat vector: bias, gain 1/sqrt(eps)", "norm(x)", "x=[3,3]", "1e-6",
     "[0,0]", "[1,-1]", "x=[1000,-1000]", NULL, 1e-9},
    {"a constant added changes nothing", "norm(x)",
     "x=[1002,1004,1004,1004,1005,1005,1007,1009]", "0",
     "[-1.5,-0.5,-0.5,-0.5,0,0,1,2]", NULL, NULL, NULL, 0},
};

static void compare(tb_test *T, const row *w, const char *part,
                    const tb_eval_value *got, const tb_eval_value *want)
{
    if (!got || !got->data) {
        tb_test_fail(T, __FILE__, __LINE__, "%s: no %s", w->what, part);
        return;
    }
    bool same = got->rank == want->rank;
    for (int i = 0; i < want->rank && same; i++)
        same = got->dims[i] == want->dims[i];
    if (!same) {
        tb_test_fail(T, __FILE__, __LINE__, "%s: shape of %s", w->what, part);
        return;
    }
    for (size_t i = 0; i < help_count(want); i++) {
        double size = tb_fabs(want->data[i]), d;
        d = tb_fabs(got->data[i] - want->data[i]);
        if (!(d <= w->tol * (size > 1 ? size : 1)))
            tb_test_fail(T, __FILE__, __LINE__, "%s: %s[%zu] got %g wanted %g",
                         w->what, part, i, got->data[i], want->data[i]);
    }
}

static void check_row(tb_test *T, const row *w)
{
    static tb_case c, want;
    char copy[512], names[512];
    memset(&c, 0, sizeof c);
    memset(&want, 0, sizeof want);
    c.e.text = w->text;
    help_sets(&c, copy, w->sets);
    if (w->eps) {
        tb_double_parse(w->eps, strlen(w->eps), &c.eps);
        c.e.eps = &c.eps;
    }
    if (w->cotangent)
        help_cotangent(&c, w->cotangent);
    c.e.jacobian = w->jacobian ? "x" : NULL;
    tb_eval_result *r;
    tb_status s = tb_eval_run(T->ctx, &c.e, &r);
    if (s != TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", w->what,
                     tb_error(T->ctx));
        return;
    }
    if (w->y) {
        tb_eval_value y = help_list(&want, "y", w->y);
        compare(T, w, "y", &r->y, &y);
    }
    if (w->grads)
        help_sets(&want, names, w->grads);
    for (size_t i = 0; i < want.e.nsets; i++)
        compare(T, w, want.sets[i].name, help_grad(r, want.sets[i].name),
                &want.sets[i]);
    if (w->jacobian) {
        tb_eval_value j = help_list(&want, "jacobian", w->jacobian);
        compare(T, w, "jacobian", &r->jacobian, &j);
    }
    tb_eval_free(T->ctx, r);
}

TB_TEST(table)
{
    for (size_t i = 0; i < TB_LEN(rows); i++)
        check_row(T, &rows[i]);
}

TB_TEST(nothing_leaks)
{
    size_t before = tb_ctx_blocks(T->ctx);
    for (size_t i = 0; i < TB_LEN(rows); i++)
        check_row(T, &rows[i]);
    TB_CHECK(T, tb_ctx_blocks(T->ctx) == before);
}

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
     TB_ERR_SHAPE, "z: got [3,2], wanted [2,2]"},
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

TB_TEST(every_allocation_may_fail)
{
    size_t before = tb_ctx_blocks(T->ctx), n = 1;
    tb_status s = TB_ERR_MEMORY;
    for (; s != TB_OK && n < 10000; n++) {
        tb_case c = {.e = {.text = "x = x + attn(norm(x))", .jacobian = "x"}};
        help_set(&c, "x", "[[1,2],[0,4]]");
        help_cotangent(&c, "[[1,2],[3,4]]");
        help_tangent(&c, "x", "[[1,2],[3,4]]");
        tb_eval_result *r;
        tb_ctx_fail_alloc_at(T->ctx, n);
        s = tb_eval_run(T->ctx, &c.e, &r);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        TB_CHECK(T, s == TB_OK || (s == TB_ERR_MEMORY && !r));
        tb_eval_free(T->ctx, r);
        TB_REQUIRE(T, tb_ctx_blocks(T->ctx) == before);
    }
    TB_CHECK(T, s == TB_OK && n > 5);
}
