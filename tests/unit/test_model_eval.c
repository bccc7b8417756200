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
     "a=5; w.weight=[[0,0],[0,0]]; w=[[0,0],[0,0]]; x=[1,1]", "[[1,0],[0,1]]",
     0},
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
    /* y and gradients: PyTorch's softmax and products, in double */
    {"queries that are keys and values too", "mha(x, x, x)",
     "x=[[1,2],[0.5,-1],[0,1.5]]", NULL,
     "[[1,2],[0.5625747688,-0.6245513871],[0.6262610378,1.743105796]]",
     "[[1,-1],[0.5,2],[0,1]]",
     "x=[[1.304509433,-0.4528680925],[0.4374252312,3.636555542],[0.08675318261,"
     "0.4471218939]]",
     NULL, 1e-9},
    {"queries that are keys", "n = 2*x; mha(n, n, x)",
     "x=[[1,2],[0.5,-1],[0,1.5]]", NULL,
     "[[1,2],[0.5002093003,-0.9987441982],[0.8929571574,1.946471293]]",
     "[[1,-1],[0.5,2],[0,1]]",
     "x=[[1.003907693,0.08918926094],[0.4997906997,2.02871947],[0.1351843016,-"
     "0.02806550161]]",
     NULL, 1e-9},
    {"a product and attention of one value", "x*x + mha(x, x, x)",
     "x=[[1,2],[0.5,-1]]", NULL, "[[2,6],[0.8125747688,0.3754486129]]", NULL,
     NULL,
     "[[3,0,0,0],[0,5,0,0],[0.1445043108,-0.03870954634,1.874850462,"
     "0.1548381854],[0.116128639,-0.1071077404,0,-0.1961204254]]",
     1e-9},
    {"attention of what attention made", "n = mha(x, x, x); mha(n, n, 2*n)",
     "x=[[1,2],[0.5,-1]]", NULL, "[[2,4],[1.363011982,0.1780718932]]", NULL,
     NULL,
     "[[2,0,0,0],[0,2,0,0],[0.8670965744,-0.1748793945,1.260567807,"
     "0.9408656855],[0.8464356602,-0.3232524027,-0.08044936915,6.919170149]]",
     1e-9},
    {"a memory is attended to whole", "mha(x, memory, memory)",
     "x=[[1,2],[0.5,-1],[0,1.5]]; memory=[[1,0],[0,1],[2,-1],[0.5,0.5]]", NULL,
     "[[0.5456080366,0.4543919634],[1.466075931,-0.4660759312],"
     "[0.4284128763,0.5715871237]]",
     "[[1,-1],[0.5,2],[0,1]]",
     "x=[[0.5308042551,-0.5308042551],[-0.5132825157,0.5132825157],"
     "[-0.2050384544,0.2050384544]]; "
     "memory=[[0.4870767318,0.4362142247],[0.1853758048,-0.3031444088],"
     "[0.4346390239,1.808407153],[0.3929084395,0.05852303114]]",
     NULL, 1e-9},
    {"the last query sees the last key", "mha(x, m, m)",
     "x=[[1,2],[0.5,-1]]; m=[[1,0],[0,1],[2,-1],[0.5,0.5]]", NULL,
     "[[0.5640538998,0.4359461002],[1.466075931,-0.4660759312]]",
     "[[1,-1],[0.5,2]]",
     "x=[[0.7438135258,-0.7438135258],[-0.5132825157,0.5132825157]]; "
     "m=[[0.6140061907,0.3783698894],[0.2082334331,-1.462932936],[0.5542518364,"
     "1.965570745],[0.1235085398,0.1189923019]]",
     NULL, 1e-9},
    {"keys of a memory hidden", "mha(x, memory, memory, keep=m)",
     "x=[[1,2],[0.5,-1],[0,1.5]]; memory=[[1,0],[0,1],[2,-1],[0.5,0.5]]; "
     "m=[[1],[0],[1],[1]]",
     NULL,
     "[[0.9249308443,0.07506915566],[1.579462286,-0.5794622858],[0.8346796907,"
     "0.1653203093]]",
     "[[1,-1],[0.5,2],[0,1]]",
     "x=[[0.4036619353,-0.4036619353],[-0.3630267312,0.3630267312],[-0."
     "1596960112,0.1596960112]]; "
     "memory=[[0.5595240484,0.3102136041],[0,0],[0.6046990219,1.896248801],[0."
     "3357769297,-0.2064624048]]",
     NULL, 1e-9},
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
    for (size_t i = 0; i < TB_LEN(rows); i++) /* back ends start once */
        check_row(T, &rows[i]);
    size_t before = tb_ctx_blocks(T->ctx);
    for (size_t i = 0; i < TB_LEN(rows); i++)
        check_row(T, &rows[i]);
    TB_CHECK(T, tb_ctx_blocks(T->ctx) == before);
}
