/* SPDX-License-Identifier: MIT */
/* What is left between x in and x out when every branch is removed, where
 * the stack can be cut, and what the branches add. */
#include "unit/graph_help.h"

static void lane(tb_test *T, const char *what, const char *want)
{
    gr_check(T, what, NULL, GR_LAYER, 1, gr_lane, want);
}

static void boundaries(tb_test *T, const char *what, const char *want)
{
    gr_check(T, what, NULL, GR_LAYER, 1, gr_boundaries, want);
}

static const char b2t[] = "u = norm(x + attn(x)); x = norm(x + u + ffn(u))";

/* kind, tolls, coefficient of one block; boundaries; tolls of the tail */
TB_TEST(every_built_in)
{
    static const struct {
        const char *name, *lane, *boundaries, *tail;
    } cases[] = {
        {"deepnorm", "toll 2 alpha^2", "attn ffn", "clean 0 1"},
        {"gpt-2", "clean 0 1", "attn ffn", "toll 1 1"},
        {"layerscale", "clean 0 1", "attn ffn", "toll 1 1"},
        {"no-skip", "none 0 0", "attn ffn", "clean 0 1"},
        {"olmo-2", "clean 0 1", "attn ffn", "toll 1 1"},
        {"output-norm", "clean 0 1", "attn ffn", "toll 1 1"},
        {"parallel", "clean 0 1", "attn+ffn", "toll 1 1"},
        {"parallel-two-norms", "clean 0 1", "attn+ffn", "toll 1 1"},
        {"plain", "clean 0 1", "attn ffn", "clean 0 1"},
        {"post-ln", "toll 2 1", "attn ffn", "clean 0 1"},
        {"pre-ln-no-final", "clean 0 1", "attn ffn", "clean 0 1"},
        {"pre-ln", "clean 0 1", "attn ffn", "toll 1 1"},
        {"rezero", "clean 0 1", "attn ffn", "clean 0 1"},
        {"sandwich", "clean 0 1", "attn ffn", "toll 1 1"},
    };
    for (size_t i = 0; i < TB_LEN(cases); i++) {
        lane(T, cases[i].name, cases[i].lane);
        boundaries(T, cases[i].name, cases[i].boundaries);
        gr_check(T, cases[i].name, NULL, GR_TAIL, 1, gr_lane, cases[i].tail);
    }
}

TB_TEST(constants_on_the_lane)
{
    lane(T, "x = x + x", "scaled 0 2");
    lane(T, "x = x/2 + F(x)", "scaled 0 0.25");
    lane(T, "x = 2*x - F(x)", "scaled 0 4");
    lane(T, "x = x - F(x)", "clean 0 1");
    lane(T, "x = -x + F(x)", "clean 0 1"); /* twice */
    lane(T, "x = -x + ffn(x)", "scaled 0 -1");
    lane(T, "x = 2*x - x + F(x)", "clean 0 1");
    lane(T, "x = x - x + F(x)", "none 0 0");
    lane(T, "x = 0*x + F(x)", "none 0 0");
    lane(T, "x = x + 2 + F(x)", "clean 0 1");
    lane(T, "x = 2*(3*x + F(x))", "scaled 0 36");
    lane(T, "a = 0.5; x = a*x + F(x)", "scaled 0 0.25");
    lane(T, "a = 1/N; x = a*x + F(x)", "scaled 0 a^2");
    lane(T, "a = 1/N; b = 1/l; x = a*b*b*x + ffn(x)",
         "scaled 0 (1/N*(1/l)*(1/l))");
    lane(T, "a = 1/N; b = 1/l; x = a*(b*(b*x)) + ffn(x)", "scaled 0 b^2*a");
    lane(T, "a = 1/N; x = a*x + x + ffn(x)", "scaled 0 (a + 1)");
    lane(T, "a = 1/N; x = a*x + a*x + ffn(x)", "scaled 0 2*a");
    lane(T, "x = norm(3*x + F(x))", "toll 2 9");
    lane(T, "x = (2*N)^0.25*x + ffn(x)", "scaled 0 ((2*N)^0.25)");
}

TB_TEST(gates_on_the_lane)
{
    lane(T, "a = scalar(1); x = a*x + F(x)", "gated 0 1");
    lane(T, "a = scalar(1); x = x/a + F(x)", "gated 0 1");
    lane(T, "x = vector(1)*x + F(x)", "gated 0 1");
    lane(T, "w = linear(d, d); x = sigmoid(w(x))*x + F(x)", "gated 0 1");
    lane(T, "x = 2*x*x + ffn(x)", "gated 0 2");
    lane(T, "x = drop(x, 0.1) + F(x)", "gated 0 1");
    lane(T, "a = scalar(1); x = a*x + x + F(x)", "gated 0 1");
    lane(T, "a = scalar(1); x = x + a*F(x)", "clean 0 1");
}

TB_TEST(norms_on_the_lane)
{
    lane(T, "x = norm(x) + F(x)", "toll 2 1");
    lane(T, "x = x + norm(x) + ffn(x)", "toll 1 1");
    lane(T, "x = norm(norm(x)) + ffn(x)", "toll 2 1");
    lane(T, "x = norm(x); x = x + attn(x)", "toll 1 1"); /* C027 */
    lane(T, b2t, "toll 2 1");
    lane(T, "a = scalar(1); x = a*norm(x) + ffn(x)", "toll 1 1");
}

TB_TEST(no_lane)
{
    lane(T, "x = F(x)", "none 0 0");
    lane(T, "x = stop(x) + F(x)", "none 0 0");
    lane(T, "x = relu(x) + F(x)", "none 0 0");
    lane(T, "x = attn(norm(x) + x)", "none 0 0"); /* C029 */
    lane(T, "w = linear(d, d); x = w(x) + F(x)", "none 0 0");
    lane(T, "x = x", "clean 0 1");
    lane(T, "r = x; x = norm(x); x = r", "clean 0 1");
}

TB_TEST(where_the_stack_is_cut)
{
    boundaries(T, "r = x; x = norm(x); x = attn(x); x = r + x", "attn");
    boundaries(T, "x = norm(x); x = x + attn(x)", "attn");
    boundaries(T, "x = x + attn(x); x = norm(x); x = x + ffn(x); x = norm(x)",
               "attn ffn");
    boundaries(T, b2t, "attn+ffn");
    boundaries(T, "n = norm(x); x = x + attn(n); x = x + ffn(n)", "attn+ffn");
    boundaries(T, "x = x + attn(x); x = x + ffn(x); x = x + ffn(x)",
               "attn ffn ffn");
    boundaries(T, "x = F(x)", "attn ffn");
    boundaries(T, "x = x", "");
    boundaries(T, "r = x; x = x + attn(x); x = r", "attn");
    boundaries(T, "stem: y = x\nblock: x = x + F(y); y = norm(x)", "attn+ffn");
}

TB_TEST(several_streams)
{
    lane(T, "stem: y = x\nblock: x = x + F(norm(y)); y = x", "clean 0 1");
    lane(T, "stem: y = x\nblock: y = norm(x); x = y + F(y)", "toll 2 1");
    lane(T, "stem: y = x\nblock: x = y + F(x)", "none 0 0");
}

/* "attn +1, ffn -1": what the branches add between boundaries lo and hi */
static void added(tb_test *T, const char *what, int lo, int hi,
                  const char *want)
{
    gr_case c;
    tb_contribution parts[8];
    tb_buf got;
    TB_OKAY(T, gr_open(T->ctx, &c, what, NULL, GR_LAYER, 1));
    tb_buf_init(&got, T->ctx);
    int n = tb_graph_contributions(c.g, lo, hi, parts, 8);
    for (int i = 0; i < n; i++) {
        const tb_node *node = &c.g->nodes[parts[i].node];
        tb_buf_printf(&got, "%s%s %g", i ? ", " : "",
                      node->region >= 0 ? c.g->regions[node->region].name
                                        : node->op->name,
                      parts[i].factor);
    }
    TB_STR(T, tb_buf_str(&got), want);
    tb_buf_clear(&got);
    gr_close(T->ctx, &c);
}

TB_TEST(what_the_branches_add)
{
    added(T, "pre-ln", 0, 1, "attn 1");
    added(T, "pre-ln", 1, 2, "ffn 1");
    added(T, "pre-ln", 0, 2, "attn 1, ffn 1");
    added(T, "post-ln", 0, 1, "attn 1");
    added(T, "parallel", 0, 1, "attn 1, ffn 1");
    added(T, "sandwich", 0, 1, "layernorm 1");
    added(T, "rezero", 0, 1, "mul 1");
    added(T, "x = x - F(x)", 0, 1, "attn -1");
    added(T, "x = F(x) - x", 0, 1, "attn 1");
    added(T, "x = F(x)", 0, 1, "");
    added(T, b2t, 0, 1, "attn 1, ffn 1");
}

TB_TEST(memory_runs_out)
{
    gr_case c;
    tb_contribution parts[8];
    tb_lane_info info;
    TB_OKAY(T, gr_open(T->ctx, &c, "pre-ln", NULL, GR_LAYER, 1));
    tb_ctx_fail_alloc_at(T->ctx, 1);
    TB_CHECK(T, tb_graph_contributions(c.g, 0, 1, parts, 8) == -1);
    tb_ctx_fail_alloc_at(T->ctx, 0);
    tb_status s = TB_ERR_MEMORY;
    for (size_t n = 1; s == TB_ERR_MEMORY && n < 100; n++) {
        tb_arena a;
        tb_arena_init(&a, T->ctx);
        tb_ctx_fail_alloc_at(T->ctx, n);
        s = tb_graph_lane(T->ctx, c.g, &a, &info);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        tb_arena_clear(&a);
    }
    TB_CHECK(T, s == TB_OK);
    gr_close(T->ctx, &c);
}
