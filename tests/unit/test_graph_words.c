/* SPDX-License-Identifier: MIT */
/* Words that mix streams and what they mix by: parameters, graphs, Jacobians,
 * lanes, refusals. */
#include "unit/graph_help.h"

static void params(tb_test *T, const char *text, const char *want)
{
    gr_check(T, text, NULL, GR_LAYER, 1, gr_params, want);
}

static void ops(tb_test *T, const char *text, const char *want)
{
    gr_check(T, text, NULL, GR_LAYER, 1, gr_ops, want);
}

static tb_status say_jacobian(tb_ctx *ctx, gr_case *c, tb_buf *out)
{
    tb_jacobian j;
    TB_TRY(tb_jacobian_build(ctx, &c->arena, c->g, TB_JAC_CLOSED, &j));
    return tb_jacobian_print(ctx, &j, TB_NOTE_TEXT, out);
}

static void jacobian(tb_test *T, const char *text, const char *want)
{
    gr_check(T, text, NULL, GR_LAYER, 1, say_jacobian, want);
}

static void lane(tb_test *T, const char *text, const char *want)
{
    gr_check(T, text, NULL, GR_LAYER, 1, gr_lane, want);
}

static void refused(tb_test *T, const char *text, const char *want)
{
    gr_refused(T, text, NULL, GR_LAYER, want);
}

TB_TEST(learned_shapes)
{
    gr_case c;
    TB_OKAY(T, gr_open(T->ctx, &c,
                       "A = matrix(3, 2, identity)\n"
                       "x = mix(vector(0, size=1), x)\n"
                       "x = vector(1)*x + mix(A, x, x, row=3)",
                       NULL, GR_LAYER, 1));
    const tb_param *p = c.g->params;
    TB_CHECK(T, p[0].role == TB_ROLE_TABLE);
    TB_CHECK(T, p[0].shape.height == 3 && p[0].shape.width == 2);
    TB_CHECK(T, p[1].role == TB_ROLE_VECTOR && p[1].shape.width == 1);
    TB_CHECK(T, p[2].shape.width == c.sizes.s.width);
    gr_close(T->ctx, &c);
    params(T,
           "ffn(x) = down(vector(1, size=ffn)*up(x)); x = ffn(x)\n"
           "model: ffn = 3*d; bias = false",
           "ffn.vector ffn.up.weight ffn.down.weight");
}

/* Named: one for the repeats; in place: one each. */
TB_TEST(who_owns_a_matrix)
{
    params(T, "A = matrix(1, 2, 0); x = mix(A, x, F(x))",
           "A attn.q.weight attn.q.bias attn.k.weight attn.k.bias "
           "attn.v.weight attn.v.bias attn.o.weight attn.o.bias ffn.up.weight "
           "ffn.up.bias ffn.down.weight ffn.down.bias");
    params(T, "x = mix(matrix(1, 2, 0), x, x)\nx = mix(matrix(1, 2, 0), x, x)",
           "matrix matrix2");
    ops(T, "x = mix(vector(0, size=2), x, tanh(x))", "tanh mix");
    ops(T, "x = mix(dot(x, x), x)", "dot mix");
}

TB_TEST(projections)
{
    params(T,
           "x = x + project(x, d)\nx = x + mix(project(x, 1, bias=false), x)",
           "project.weight project.bias project2.weight");
    jacobian(T, "x = project(x, d)", "W_project");
    refused(T, "x = x + project(x, x)",
            "1:20: project: got a stream, wanted a constant\n"
            "    x = x + project(x, x)\n"
            "                       ^");
    refused(T, "x = x + project(vector(1), d)",
            "1:9: project(...): needs a stream\n"
            "    x = x + project(vector(1), d)\n"
            "            ^");
}

TB_TEST(norms_without_parameters)
{
    params(T, "x = x + rmsnorm(x, gain=false)", "");
    params(T, "x = x + norm(x, gain=false, groups=2)", "");
    params(T, "x = x + norm(x, bias=false)", "norm.gain");
    params(T, "x = x + rmsnorm(x, bias=false)", "norm.gain");
    params(T, "x = x + l2norm(x, gain=false)", "");
    params(T, "x = x + norm(x, gain=true)", "norm.gain norm.bias");
    refused(T, "x = x + norm(x, gain=false, bias=true)",
            "1:34: bias: stands on a gain, which gain=false left out\n"
            "    x = x + norm(x, gain=false, bias=true)\n"
            "                                     ^");
    refused(T, "x = x + rmsnorm(x, bias=true)",
            "1:25: bias: this norm has none\n"
            "    x = x + rmsnorm(x, bias=true)\n"
            "                            ^");
    refused(T, "x = x + scalenorm(x, gain=false)",
            "1:22: gain: scalenorm takes no such option\n"
            "    x = x + scalenorm(x, gain=false)\n"
            "                         ^");
}

TB_TEST(jacobians)
{
    jacobian(T, "a = vector(1, size=2); x = mix(a, x, F(x))",
             "a[1]\xc2\xb7I + a[2]\xc2\xb7J_F(x)");
    jacobian(T, "A = matrix(2, 2, 0); x = mix(A, x, F(x), row=2)",
             "A[2,1]\xc2\xb7I + A[2,2]\xc2\xb7J_F(x)");
    jacobian(T, "A = matrix(2, 2, 0); x = mix(A, F(x), x, row=k)",
             "A[k,1]\xc2\xb7J_F(x) + A[k,2]\xc2\xb7I");
    jacobian(T, "w = linear(d, 1); x = mix(w(x), attn(x))",
             "diag(w(x)[1])\xc2\xb7J_attn(x) + J_mix\xc2\xb7W_w");
    jacobian(T, "x = norm(mix(vector(1, size=2), x, attn(x)))",
             "J_LN(mix(vector, x, attn(x)))\xc2\xb7"
             "(vector[1]\xc2\xb7I + vector[2]\xc2\xb7J_attn(x))");
}

TB_TEST(jacobians_of_the_rest)
{
    jacobian(T, "b = vector(0); x = shift(x, b)", "I");
    jacobian(T, "b = scalar(0); x = attn(shift(x, b))", "J_attn(x + b)");
    jacobian(T, "x = attn(x)/norm(x)",
             "diag(1/LN(x))\xc2\xb7(J_attn(x) - "
             "diag(attn(x)/LN(x))\xc2\xb7J_LN(x))");
    jacobian(T, "x = maxdiv(x, to=4)", "J_maxdiv(x)");
    jacobian(T, "x = headscale(x, vector(1, size=h))", "J_headscale(x)");
    jacobian(T, "x = mix(unit(vector(1, size=2)), x, attn(x))",
             "unit(vector)[1]\xc2\xb7I + unit(vector)[2]\xc2\xb7J_attn(x)");
    jacobian(T, "A = matrix(2, 2, 0); x = mix(sinkhorn(A), x, attn(x), row=2)",
             "sinkhorn(A)[2,1]\xc2\xb7I + "
             "sinkhorn(A)[2,2]\xc2\xb7J_attn(x)");
    jacobian(T, "x = mix(mean(x), attn(x))",
             "diag(mean(x)[1])\xc2\xb7J_attn(x) + J_mix\xc2\xb7J_mean(x)");
}

TB_TEST(options)
{
    gr_case c;
    TB_OKAY(T, gr_open(T->ctx, &c,
                       "x = mix(sinkhorn(matrix(1, 1, 0), rounds=N, "
                       "columns_first=true), maxdiv(x, to=2, whole=true))\n"
                       "x = mix(sinkhorn(matrix(1, 1, 0)), maxdiv(x))\n"
                       "x = mix(unit(matrix(1, 1, 1), eps=l, columns=1), x)",
                       NULL, GR_LAYER, 2));
    TB_CHECK(T, gr_attr(T, &c, "sinkhorn", TB_ATTR_SINKHORN_ROUNDS, 2) == 20);
    TB_CHECK(T, gr_attr(T, &c, "maxdiv", TB_ATTR_MAXDIV_TO, 2) == 8);
    TB_CHECK(T, gr_attr(T, &c, "unit", TB_ATTR_UNIT_EPS, 2) == 2);
    TB_CHECK(T, gr_attr(T, &c, "unit", TB_ATTR_UNIT_COLUMNS, 2) == 1);
    gr_close(T->ctx, &c);
    ops(T, "x = maxdiv(x)", "stop maxdiv");
}

TB_TEST(lanes)
{
    lane(T, "x = shift(x, vector(0)) + F(x)", "clean 0 1");
    lane(T, "x = maxdiv(x) + attn(x)", "gated 0 1");
    lane(T, "x = x/(1 + norm(x))", "toll 1 1");
    lane(T, "x = mix(vector(1, size=2), x, F(x))", "gated 0 1");
    lane(T, "x = mix(vector(1, size=2), attn(x), norm(x))", "toll 1 1");
    lane(T, "x = mix(vector(1, size=2), norm(x), x)", "toll 1 1");
    lane(T, "x = mix(sigmoid(dot(x, x)), F(x))", "none 0 0");
    lane(T, "x = mix(dot(x, x), F(x))", "gated 0 1");
    lane(T, "x = mix(sum(norm(x)), attn(x))", "toll 1 1");
}

TB_TEST(refusals)
{
    refused(T, "x = shift(x, x)",
            "1:5: shift: it shifts by a vector or a scalar; two streams are "
            "added with +\n"
            "    x = shift(x, x)\n"
            "        ^");
    refused(T, "x = headscale(x, vector(1, size=3))",
            "1:5: headscale: the width cannot be parted into so many heads\n"
            "    x = headscale(x, vector(1, size=3))\n"
            "        ^");
    refused(T, "x = unit(x)",
            "1:5: unit: it applies to a matrix or a vector\n"
            "    x = unit(x)\n"
            "        ^");
    refused(T, "x = mix(sinkhorn(matrix(2, 1, 0)), x)",
            "1:9: sinkhorn: its matrix must be square, 64 by 64 at most\n"
            "    x = mix(sinkhorn(matrix(2, 1, 0)), x)\n"
            "            ^");
    refused(T, "x = maxdiv(x, whole=2)",
            "1:21: whole: got 2, wanted true or false\n"
            "    x = maxdiv(x, whole=2)\n"
            "                        ^");
    refused(T, "x = maxdiv(x, of=2)",
            "1:15: maxdiv: unknown option of, wanted to whole\n"
            "    x = maxdiv(x, of=2)\n"
            "                  ^");
}

TB_TEST(refusals_of_mix)
{
    refused(T, "x = mix(x)",
            "1:5: mix: got 1 argument, wanted 2 or more\n"
            "    x = mix(x)\n"
            "        ^");
    refused(T, "x = mix(scalar(1), x)",
            "1:5: mix: its weights must be a matrix, vector or stream\n"
            "    x = mix(scalar(1), x)\n"
            "        ^");
    refused(T, "x = mix(vector(1), x)",
            "1:5: mix: there must be one weight per stream\n"
            "    x = mix(vector(1), x)\n"
            "        ^");
    refused(T, "x = mix(matrix(2, 1, 0), x, row=0)",
            "1:5: mix: the weights have no such row\n"
            "    x = mix(matrix(2, 1, 0), x, row=0)\n"
            "        ^");
    refused(T, "x = mix(matrix(2, 1, 0), x, row=x)",
            "1:33: row: got a stream, wanted a constant\n"
            "    x = mix(matrix(2, 1, 0), x, row=x)\n"
            "                                    ^");
    refused(T, "w = linear(d, 64); x = mix(vector(1, size=2), x, w(x))",
            "1:24: widths differ: d = 64 and 64\n"
            "    w = linear(d, 64); x = mix(vector(1, size=2), x, w(x))\n"
            "                           ^");
    refused(T, "x = dot(x, 2)*x",
            "1:12: a constant stands where a stream is needed\n"
            "    x = dot(x, 2)*x\n"
            "               ^");
    refused(T, "x = dot(x, x)*x",
            "1:14: widths differ: 1 and d = 64\n"
            "    x = dot(x, x)*x\n"
            "                 ^");
    refused(T, "x = vector(0, size=0.5)*x",
            "1:20: width: got 0.5, wanted a whole number from 1\n"
            "    x = vector(0, size=0.5)*x\n"
            "                       ^");
    refused(T, "x = matrix(2, 2, 0)*x",
            "1:20: mul: a weight is applied, w(x), not multiplied\n"
            "    x = matrix(2, 2, 0)*x\n"
            "                       ^");
    refused(T, "x = mix(vector(onehot, size=1), x)",
            "1:16: onehot: got 0 arguments, wanted 1\n"
            "    x = mix(vector(onehot, size=1), x)\n"
            "                   ^");
    refused(T, "x = mix(vector(onehot(x), size=1), x)",
            "1:23: onehot: got a stream, wanted a constant\n"
            "    x = mix(vector(onehot(x), size=1), x)\n"
            "                          ^");
}
