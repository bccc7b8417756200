/* SPDX-License-Identifier: MIT */
/* The Jacobian as a formula: every built-in block in three forms, LaTeX and
 * MathML, and bounded output where a text blows up. */
#include "unit/graph_help.h"

#include <time.h>

static tb_status print(tb_ctx *ctx, gr_case *c, tb_jac_mode mode,
                       tb_notation note, tb_buf *out)
{
    tb_jacobian j;
    TB_TRY(tb_jacobian_build(ctx, &c->arena, c->g, mode, &j));
    return tb_jacobian_print(ctx, &j, note, out);
}

static tb_status closed(tb_ctx *ctx, gr_case *c, tb_buf *out)
{
    return print(ctx, c, TB_JAC_CLOSED, TB_NOTE_TEXT, out);
}

static tb_status opened(tb_ctx *ctx, gr_case *c, tb_buf *out)
{
    return print(ctx, c, TB_JAC_OPEN, TB_NOTE_TEXT, out);
}

static tb_status silent(tb_ctx *ctx, gr_case *c, tb_buf *out)
{
    return print(ctx, c, TB_JAC_SILENT, TB_NOTE_TEXT, out);
}

static tb_status latex(tb_ctx *ctx, gr_case *c, tb_buf *out)
{
    return print(ctx, c, TB_JAC_CLOSED, TB_NOTE_LATEX, out);
}

static tb_status mathml(tb_ctx *ctx, gr_case *c, tb_buf *out)
{
    return print(ctx, c, TB_JAC_CLOSED, TB_NOTE_MATHML, out);
}

static void check(tb_test *T, const char *what, gr_say say, const char *want)
{
    gr_check(T, what, NULL, GR_LAYER, 1, say, want);
}

#define MHA      "W_o·(J_mha,q·W_q + J_mha,k·W_k + J_mha,v·W_v)"
#define ATTN(x)  "o(mha(q(" x "), k(" x "), v(" x ")))"
#define WHERE    " where x1 = "
#define FFN(arg) "W_down·diag(gelu'(up(" arg ")))·W_up"

TB_TEST(every_built_in_closed)
{
    static const char pre[] = "I + J_F(LN(x))·J_LN(x)";
    static const char two[] =
        "I + J_attn(LN(x))·J_LN(x) + J_ffn(LN(x))·J_LN(x)";
    static const char shared[] = "I + (J_attn(LN(x)) + J_ffn(LN(x)))·J_LN(x)";
    check(T, "deepnorm", closed, "J_LN(alpha·x + F(x))·(alpha·I + J_F(x))");
    check(T, "gpt-2", closed, pre);
    check(T, "layerscale", closed, "I + diag(vector)·J_F(LN(x))·J_LN(x)");
    check(T, "no-skip", closed, "J_F(x)");
    check(T, "olmo-2", closed, "I + J_RMS(F(x))·J_F(x)");
    check(T, "output-norm", closed, "I + J_RMS(F(x))·J_F(x)");
    check(T, "parallel", closed, shared);
    check(T, "parallel-two-norms", closed, two);
    check(T, "plain", closed, "I + J_F(x)");
    check(T, "post-ln", closed, "J_LN(x + F(x))·(I + J_F(x))");
    check(T, "pre-ln-no-final", closed, pre);
    check(T, "pre-ln", closed, pre);
    check(T, "rezero", closed, "I + a·J_F(x)");
    check(T, "sandwich", closed, "I + J_LN(F(LN(x)))·J_F(LN(x))·J_LN(x)");
}

/* The published table of block Jacobians of placements, row by
 * row, factored as it writes them. */
TB_TEST(the_table_of_block_jacobians)
{
    static const struct {
        const char *name;
        size_t l;
        const char *want;
    } rows[] = {
        {"post-ln", 1, "J_LN(x + F(x))·(I + J_F(x))"},
        {"pre-ln", 1, "I + J_F(LN(x))·J_LN(x)"},
        {"sandwich", 1, "I + J_LN(F(LN(x)))·J_F(LN(x))·J_LN(x)"},
        {"peri-ln", 1, "I + J_LN(F(LN(x)))·J_F(LN(x))·J_LN(x)"},
        {"gemma-2", 1, "I + J_RMS(F(RMS(x)))·J_F(RMS(x))·J_RMS(x)"},
        {"output-norm", 1, "I + J_RMS(F(x))·J_F(x)"},
        {"swin-v2", 1, "I + J_LN(F(x))·J_F(x)"},
        {"deepnorm", 1, "J_LN(alpha·x + F(x))·(alpha·I + J_F(x))"},
        {"admin", 1, "J_LN(vector·x + F(x))·(diag(vector) + J_F(x))"},
        {"keel", 2,
         "J_RMS(alpha·x + F(RMS(x)))·(alpha·I + J_F(RMS(x))·J_RMS(x))"},
        {"rezero", 1, "I + a·J_F(x)"},
        {"skipinit", 1, "I + scalar·J_F(x)"},
        {"layerscale", 1, "I + diag(vector)·J_F(LN(x))·J_LN(x)"},
        {"lns", 1, "I + (1/sqrt(l))·J_F((1/sqrt(l))·RMS(x))·J_RMS(x)"},
        {"hybridnorm", 1,
         "(I + J_ffn(RMS(x1)))·J_RMS(x1)·(I + J_attn(x)) where x1 = x + "
         "attn(x)"},
        {"parallel", 1, "I + (J_attn(LN(x)) + J_ffn(LN(x)))·J_LN(x)"},
        {"b2t", 1,
         "J_LN(x + u + ffn(u))·(I + (I + J_ffn(u))·J_LN(x + attn(x))·(I + "
         "J_attn(x))) where u = LN(x + attn(x))"},
        {"residual", 1, "[ J_LN(x + F(x))·(I + J_F(x)), 0 ; J_F(x), I ]"},
        {"stem: y = x\nblock: u = scalar(1)*x + scalar(0)*y; f = F(norm(u)); "
         "x1 = scalar(1)*x + scalar(0)*y; y = scalar(0)*x + scalar(1)*y + "
         "scalar(1)*f; x = x1 + scalar(1)*f",
         1,
         "[ scalar3·I + scalar8·scalar·J_z, scalar4·I + scalar8·scalar2·J_z "
         "; scalar5·I + scalar7·scalar·J_z, scalar6·I + scalar7·scalar2·J_z ]"
         " where J_z = J_F(LN(u))·J_LN(u), u = scalar·x + scalar2·y"},
        {"siamesenorm", 1,
         "[ (I + (1/sqrt(2*l))·J_z)·J_LN(x), (1/sqrt(2*l))·J_z·J_LN(y) ; "
         "J_z·J_LN(x), I + J_z·J_LN(y) ] where J_z = J_F(LN(u))·J_LN(u), u = "
         "LN(x) + LN(y)"},
        {"revnet", 1,
         "[ I, 0 ; J_ffn(LN(x1))·J_LN(x1), I ]·[ I, J_attn(LN(x2))·J_LN(x2) ; "
         "0, I ] where x1 = x + attn(LN(x2))"},
        {"w = linear(d, d); s = linear(d, d); y = F(norm(x)); "
         "z = sigmoid(w(y) + s(x)); x = (1 - z)*x + z*tanh(y)",
         1,
         "(-diag(x) + diag(tanh(F(LN(x)))))·diag(sigmoid'(u))·"
         "(W_w·J_F(LN(x))·J_LN(x) + W_s) + diag(1 - sigmoid(u)) + "
         "diag(sigmoid(u))·diag(tanh'(F(LN(x))))·J_F(LN(x))·J_LN(x) where u = "
         "w(F(LN(x))) + s(x)"},
        {"gpas", 1, "I + J_F(LN(x))·J_LN(x)"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++)
        gr_check(T, rows[i].name, NULL, GR_LAYER, rows[i].l, closed,
                 rows[i].want);
}

TB_TEST(every_built_in_without_its_branches)
{
    static const struct {
        const char *name, *want;
    } cases[] = {
        {"deepnorm", "alpha·J_LN(alpha·x)"},
        {"gpt-2", "I"},
        {"layerscale", "I"},
        {"no-skip", "0"},
        {"olmo-2", "I"},
        {"output-norm", "I"},
        {"parallel", "I"},
        {"parallel-two-norms", "I"},
        {"plain", "I"},
        {"post-ln", "J_LN(x)"},
        {"pre-ln-no-final", "I"},
        {"pre-ln", "I"},
        {"rezero", "I"},
        {"sandwich", "I"},
        {"x = norm(x + norm(F(x)))", "J_LN(x + LN(0))"},
        {"x = x + F(x)*F(x)", "I"},
        {"x = norm(x + (attn(x) + ffn(x)))", "J_LN(x)"},
        {"x = norm(F(x) - x)", "-1·J_LN(0 - x)"},
        {"x = x*F(x) + x", "I"},
    };
    for (size_t i = 0; i < TB_LEN(cases); i++)
        check(T, cases[i].name, silent, cases[i].want);
}

TB_TEST(opened_down_to_the_weights)
{
    check(T, "plain", opened,
          "(I + " FFN("x1") ")·(I + " MHA ")" WHERE "x + " ATTN("x"));
    check(T, "pre-ln", opened,
          "(I + " FFN("LN(x1)") "·J_LN(x1))·(I + " MHA "·J_LN(x))" WHERE
                                "x + " ATTN("LN(x)"));
    check(T, "post-ln", opened,
          "J_LN(x1 + down(gelu(up(x1))))·(I + " FFN(
              "x1") ")·"
                    "J_LN(u)·(I + " MHA ")" WHERE "LN(u), u = x + " ATTN("x"));
    check(T, "olmo-2", opened,
          "(I + J_RMS(down(gelu(up(x1))))·" FFN(
              "x1") ")·"
                    "(I + J_RMS(u)·"
                    "W_o·(J_mha,q·J_RMS(q(x))·W_q + J_mha,k·J_RMS(k(x))·W_k + "
                    "J_mha,v·W_v))" WHERE
                    "x + RMS(u), u = o(mha(RMS(q(x)), RMS(k(x)), v(x)))");
    check(T, "rezero", opened,
          "(I + a·" FFN("x1") ")·(I + a·" MHA ")" WHERE "x + a·" ATTN("x"));
    check(T, "parallel", opened, "I + (" MHA " + " FFN("LN(x)") ")·J_LN(x)");
    check(T, "ffn(x) = down(silu(gate(x))*up(x)); x = x + ffn(x)", opened,
          "I + W_down·(diag(up(x))·diag(silu'(gate(x)))·W_gate + "
          "diag(silu(gate(x)))·W_up)");
}

TB_TEST(hand_cases)
{
    check(T, "x = x - F(norm(x))", closed, "I - J_F(LN(x))·J_LN(x)");
    check(T, "x = F(x) - x", closed, "J_F(x) - I");
    check(T, "x = -F(x) + x", closed, "-J_F(x) + I");
    check(T, "x = (x + F(x))/2", closed, "(1/2)·(I + J_F(x))");
    check(T, "x = x + 2*F(3*x)", closed, "I + 2·3·J_F(3·x)");
    check(T, "a = scalar(2); x = x/a + F(x)", closed, "(1/a)·I + J_F(x)");
    check(T, "x = stop(x) + F(x)", closed, "J_F(x)");
    check(T, "x = x + attn(stop(norm(x)))", closed, "I");
    check(T, "x = x + drop(F(x), 0.1)", closed, "I + J_drop(F(x))·J_F(x)");
    check(T, "x = x*x", closed, "2·diag(x)");
    check(T, "x = x + x - 2*x + F(x)", closed, "J_F(x)");
    check(T, "w = linear(d, d); x = x + sigmoid(w(x))*F(x)", closed,
          "I + diag(F(x))·diag(sigmoid'(w(x)))·W_w + "
          "diag(sigmoid(w(x)))·J_F(x)");
    check(T, "x = x + attn(norm(x)); x = norm(x + ffn(x))", closed,
          "J_LN(x1 + ffn(x1))·(I + J_ffn(x1))·(I + J_attn(LN(x))·J_LN(x))" WHERE
          "x + attn(LN(x))");
    check(T, "u = norm(x + attn(x)); x = norm(x + u + ffn(u))", closed,
          "J_LN(x + u + ffn(u))·(I + (I + J_ffn(u))·J_LN(x + attn(x))·"
          "(I + J_attn(x))) where u = LN(x + attn(x))");
}

TB_TEST(as_latex)
{
    check(T, "post-ln", latex, "J_{\\mathrm{LN}}(x + F(x))\\,(I + J_{F}(x))");
    check(T, "pre-ln", latex,
          "I + J_{F}(\\mathrm{LN}(x))\\,J_{\\mathrm{LN}}(x)");
    check(T, "deepnorm", latex,
          "J_{\\mathrm{LN}}(\\alpha \\,x + F(x))\\,(\\alpha \\,I + J_{F}(x))");
    check(T, "x = (2*N)^(1/4)*x + ffn(x)", latex,
          "(2\\,N)^{1/4}\\,I + J_{\\mathrm{ffn}}(x)");
    check(T, "x = sqrt(2*N)*x + ffn(x)/(N - (l - 1))", latex,
          "\\sqrt{2\\,N}\\,I + (1/(N - (l - 1)))\\,J_{\\mathrm{ffn}}(x)");
    check(T, "x = 1e-5*x + ffn(x)", latex,
          "1 \\cdot 10^{-5}\\,I + J_{\\mathrm{ffn}}(x)");
    check(T, "skip_scale = vector(1); x = skip_scale*x + ffn(x)", latex,
          "\\mathrm{diag}(\\mathrm{skip\\_scale}) + J_{\\mathrm{ffn}}(x)");
    check(T, "x = x + attn(x); x = x + ffn(x)", latex,
          "(I + J_{\\mathrm{ffn}}(x_{1}))\\,(I + J_{\\mathrm{attn}}(x))"
          "\\quad\\text{where }\\ x_{1} = x + \\mathrm{attn}(x)");
}

#define MATH(alt, inner)                                                       \
    "<math xmlns=\"http://www.w3.org/1998/Math/MathML\" display=\"block\" "    \
    "alttext=\"" alt "\"><mrow>" inner "</mrow></math>"
#define J(f)  "<msub><mi>J</mi><mi>" f "</mi></msub>"
#define OPEN  "<mo stretchy=\"false\">(</mo>"
#define CLOSE "<mo stretchy=\"false\">)</mo>"
#define PLUS  "<mo>+</mo>"
#define DOT   "<mo>&#183;</mo>"

TB_TEST(as_mathml)
{
    check(T, "pre-ln", mathml,
          MATH("I + J_F(LN(x))·J_LN(x)", "<mi>I</mi>" PLUS J("F") OPEN
               "<mi>LN</mi>" OPEN "<mi>x</mi>" CLOSE CLOSE DOT J("LN") OPEN
               "<mi>x</mi>" CLOSE));
    check(T, "plain", mathml,
          MATH("I + J_F(x)", "<mi>I</mi>" PLUS J("F") OPEN "<mi>x</mi>" CLOSE));
    check(T, "alpha = N^0.5; x = alpha*x + ffn(x)", mathml,
          MATH("alpha·I + J_ffn(x)", "<mi>&#945;</mi>" DOT "<mi>I</mi>" PLUS J(
                                         "ffn") OPEN "<mi>x</mi>" CLOSE));
    check(T, "x = N^0.5*x + ffn(x)", mathml,
          MATH("(N^0.5)·I + J_ffn(x)",
               "<msup><mrow><mi>N</mi></mrow><mrow><mn>0.5</mn></mrow>"
               "</msup>" DOT "<mi>I</mi>" PLUS J("ffn") OPEN
               "<mi>x</mi>" CLOSE));
}

/* Every tag that opens closes again, in order; no bare < or &. */
static bool well_formed(const char *s)
{
    const char *stack[400];
    size_t n = 0;
    for (; *s; s++) {
        if (*s == '&' && s[1] != '#')
            return false;
        if (*s != '<')
            continue;
        bool closing = s[1] == '/';
        const char *name = s + 1 + closing;
        size_t len = strcspn(name, " >");
        if (!closing && n == TB_LEN(stack))
            return false;
        if (closing && (n == 0 || strncmp(stack[n - 1], name, len)))
            return false;
        if (closing)
            n--;
        else
            stack[n++] = name;
        s = strchr(s, '>');
        if (!s)
            return false;
    }
    return n == 0;
}

TB_TEST(mathml_is_well_formed)
{
    static const char *const more[] = {"x = x/(N - l) + F(x)",
                                       "a = scalar(1); x = x/a + ffn(x)",
                                       "x = max(1, N)*x + ffn(x)",
                                       "x = exp(-N^-2)*x + ffn(x)",
                                       "x = x*sigmoid(norm(x)) + ffn(x)",
                                       "x = x - attn(x)"};
    for (size_t i = 0; i < tb_builtin_count() + TB_LEN(more); i++) {
        const char *what =
            i < TB_LEN(more) ? more[i] : tb_builtin_name(i - TB_LEN(more));
        for (int mode = 0; mode <= TB_JAC_LANE; mode++) {
            gr_case c;
            tb_buf out;
            TB_OKAY(T, gr_open(T->ctx, &c, what, NULL, GR_LAYER, 1));
            tb_buf_init(&out, T->ctx);
            TB_OKAY(T,
                    print(T->ctx, &c, (tb_jac_mode)mode, TB_NOTE_MATHML, &out));
            if (!well_formed(tb_buf_str(&out)))
                tb_test_fail(T, __FILE__, __LINE__, "%s: %s", what,
                             tb_buf_str(&out));
            tb_buf_clear(&out);
            gr_close(T->ctx, &c);
        }
    }
}

/* Braces close, environments end, every underscore opens a subscript and every
 * command is one that plain LaTeX with amsmath has. */
static bool is_latex(const char *s)
{
    static const char *const known[] = {
        "mathrm", "quad",       "text",  "begin", "end",  "cdot",
        "sqrt",   "ldots",      "_",     "alpha", "beta", "lambda",
        "eps",    "varepsilon", "gamma", "sigma", "mu",   "tau",
        "theta",  ",",          "\\",    " "};
    int depth = 0, environments = 0;
    for (; *s; s++) {
        depth += (*s == '{') - (*s == '}');
        if (depth < 0 || (*s & 0x80) || (*s == '_' && s[1] != '{'))
            return false;
        if (*s != '\\')
            continue;
        size_t n = strspn(s + 1, "abcdefghijklmnopqrstuvwxyz");
        bool found = false;
        n = n ? n : 1;
        for (size_t i = 0; i < TB_LEN(known); i++)
            found = found ||
                    (strlen(known[i]) == n && memcmp(known[i], s + 1, n) == 0);
        environments += strncmp(s, "\\begin", 6) == 0;
        environments -= strncmp(s, "\\end", 4) == 0;
        if (!found || environments < 0)
            return false;
        s += n;
    }
    return depth == 0 && environments == 0;
}

TB_TEST(latex_compiles_in_spirit)
{
    static const char *const more[] = {
        "skip_scale = vector(1); x = skip_scale*x + ffn(x)",
        "f_z = linear(d, d); x = x + f_z(attn(x))",
        "stem: y_2 = x\nblock: x = x + F(y_2); y_2 = y_2 + x",
        "x = 1e-5*x + drop_branch(F(x), 0.1)", "x = x + gelu_tanh(F(x))"};
    for (size_t i = 0; i < tb_builtin_count() + TB_LEN(more); i++)
        for (int mode = 0; mode <= TB_JAC_LANE; mode++) {
            const char *what =
                i < TB_LEN(more) ? more[i] : tb_builtin_name(i - TB_LEN(more));
            gr_case c;
            tb_buf out;
            TB_OKAY(T, gr_open(T->ctx, &c, what, NULL, GR_LAYER, 1));
            tb_buf_init(&out, T->ctx);
            TB_OKAY(T,
                    print(T->ctx, &c, (tb_jac_mode)mode, TB_NOTE_LATEX, &out));
            if (!is_latex(tb_buf_str(&out)))
                tb_test_fail(T, __FILE__, __LINE__, "%s: %s", what,
                             tb_buf_str(&out));
            tb_buf_clear(&out);
            gr_close(T->ctx, &c);
        }
}

/* --- hostile texts ----------------------------------------------------------
 */

TB_TEST(blow_ups_are_bounded)
{
    static const char *const again[] = {
        "x = x*x\n",          "x = x + x\n",       "x = norm(x + x)\n",
        "x = x*norm(x)\n",    "x = attn(x) + x\n", "x = x - 2*x\n",
        "x = sigmoid(x)*x\n", "x = x*attn(x)\n",   "x = x/2 - norm(x)\n"};
    clock_t start = clock();
    for (size_t i = 0; i < TB_LEN(again); i++) {
        tb_buf text;
        gr_case c;
        tb_buf_init(&text, T->ctx);
        for (int j = 0; j < 60; j++)
            tb_buf_puts(&text, again[i]);
        TB_OKAY(T, gr_open(T->ctx, &c, tb_buf_str(&text), NULL, GR_LAYER, 1));
        for (int mode = 0; mode < 3; mode++)
            for (int note = 0; note < 3; note++) {
                tb_buf out;
                tb_buf_init(&out, T->ctx);
                TB_OKAY(T, print(T->ctx, &c, (tb_jac_mode)mode,
                                 (tb_notation)note, &out));
                TB_CHECK(T, out.len < 100000);
                TB_CHECK(T, note != TB_NOTE_MATHML ||
                                well_formed(tb_buf_str(&out)));
                tb_buf_clear(&out);
            }
        tb_buf_clear(&text);
        gr_close(T->ctx, &c);
    }
    TB_CHECK(T, clock() - start < 20 * CLOCKS_PER_SEC);
}

TB_TEST(memory_runs_out)
{
    gr_case c;
    tb_status s = TB_ERR_MEMORY;
    size_t n = 1;
    TB_OKAY(T, gr_open(T->ctx, &c, "post-ln", NULL, GR_LAYER, 1));
    const size_t before = tb_ctx_blocks(T->ctx);
    for (; s == TB_ERR_MEMORY && n < 1000; n++) {
        tb_arena a;
        tb_buf out;
        tb_jacobian j;
        tb_arena_init(&a, T->ctx);
        tb_buf_init(&out, T->ctx);
        tb_ctx_fail_alloc_at(T->ctx, n);
        s = tb_jacobian_build(T->ctx, &a, c.g, TB_JAC_OPEN, &j);
        if (s == TB_OK)
            s = tb_jacobian_print(T->ctx, &j, TB_NOTE_MATHML, &out);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        tb_buf_clear(&out);
        tb_arena_clear(&a);
        TB_CHECK(T, tb_ctx_blocks(T->ctx) == before);
    }
    TB_CHECK(T, s == TB_OK && n > 2);
    gr_close(T->ctx, &c);
}
