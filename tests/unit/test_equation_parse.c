/* SPDX-License-Identifier: MIT */
/* Every construct of the language: what tree it makes, how it prints. */
#include "unit/equation_help.h"

static void dumps(tb_test *T, const char *expression, const char *want)
{
    tb_block *b;
    tb_buf got;
    TB_OKAY(T, eq_parse(T->ctx, expression, TB_PARSE_EVAL, &b));
    tb_buf_init(&got, T->ctx);
    eq_dump(b->sections[0].stmts[b->sections[0].nstmts - 1].value, &got);
    TB_STR(T, tb_buf_str(&got), want);
    tb_buf_clear(&got);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(precedence)
{
    dumps(T, "a + b*c", "(+ a (* b c))");
    dumps(T, "(a + b)*c", "(* (+ a b) c)");
    dumps(T, "a - b - c", "(- (- a b) c)");
    dumps(T, "a/b*c", "(* (/ a b) c)");
    dumps(T, "2^3^2", "(^ 2 (^ 3 2))");
    dumps(T, "-0.5^2", "(neg (^ 0.5 2))");
    dumps(T, "(-0.5)^2", "(^ (neg 0.5) 2)");
    dumps(T, "2^-0.25*x", "(* (^ 2 (neg 0.25)) x)");
    dumps(T, "2^-3^2", "(^ 2 (neg (^ 3 2)))");
    dumps(T, "-a*b", "(* (neg a) b)");
    dumps(T, "a*-b", "(* a (neg b))");
    dumps(T, "--a", "(neg (neg a))");
    dumps(T, "a - -b", "(- a (neg b))");
    dumps(T, "x + -0.5^2*f(x)", "(+ x (* (neg (^ 0.5 2)) (f() x)))");
}

TB_TEST(calls_and_tuples)
{
    dumps(T, "f()", "(f())");
    dumps(T, "f(a, b, eps=1e-6, mode=none)", "(f() a b eps=1e-6 mode=none)");
    dumps(T, "((a))", "a");
    dumps(T, "(a, b + 1, (c, d))", "(tuple a (+ b 1) (tuple c d))");
    dumps(T, "f((a, b))", "(f() (tuple a b))");
    dumps(T, "f(\n  a, # a comment\n\n  b\n)", "(f() a b)");
    eq_check_dump(T, "f(x1,x2) = (x1+2*x2, 3*x1)", TB_PARSE_EVAL,
                  "def f x1 x2 = (tuple (+ x1 (* 2 x2)) (* 3 x1))\n");
}

TB_TEST(numbers)
{
    eq_check_print(T,
                   "a = 0.1; b = 1e-5; c = 1E+3; d2 = 12.50; e = 1e300; "
                   "f = 0; g = 123456789012345680000; i = 4.9e-324",
                   TB_PARSE_BLOCK,
                   "a = 0.1\nb = 1e-5\nc = 1000\nd2 = 12.5\ne = 1e300\n"
                   "f = 0\ng = 1.2345678901234568e20\ni = 5e-324\n");
}

TB_TEST(papers_spelling)
{
    eq_check_print(T, "x_{i+1} = LN(x_i + F(x_i))", TB_PARSE_BLOCK,
                   "x = layernorm(x + F(x))\n");
    eq_check_print(T, "x_{l+1} = x_{l} + Sublayer(LayerNorm(x_l))",
                   TB_PARSE_BLOCK, "x = x + F(layernorm(x))\n");
    eq_check_print(T, "x_{ i + 1 } = x_{ i } + MHA(RMSNorm(x_{i}))",
                   TB_PARSE_BLOCK, "x = x + attn(rmsnorm(x))\n");
    eq_check_print(T,
                   "x = x + Attn(x); x = x + MultiHeadAttention(x); "
                   "x = x + FFN(x); x = x + MLP(x)",
                   TB_PARSE_BLOCK,
                   "x = x + attn(x)\nx = x + attn(x)\nx = x + ffn(x)\n"
                   "x = x + ffn(x)\n");
    /* gamma, circled dot, beta, both epsilons, middle dot, dot operator,
     * times, minus */
    eq_check_print(T,
                   "y = \xce\xb3\xe2\x8a\x99x + \xce\xb2_1 + "
                   "norm(x, \xce\xb5=1) + \xcf\xb5",
                   TB_PARSE_BLOCK,
                   "y = gamma*x + beta_1 + norm(x, eps=1) + eps\n");
    eq_check_print(T, "y = 2\xc2\xb7x \xe2\x88\x92 3\xe2\x8b\x85x\xc3\x97x",
                   TB_PARSE_BLOCK, "y = 2*x - 3*x*x\n");
}

TB_TEST(new_and_old_x)
{
    /* Reading x_{i+1} once it has its value is right. */
    eq_check_print(T, "x_{i+1} = x_i + F(x_i); x_{i+1} = LN(x_{i+1})",
                   TB_PARSE_BLOCK, "x = x + F(x)\nx = layernorm(x)\n");
    /* Each section starts anew. */
    eq_check_print(T, "block[l<2]: x_{i+1} = x_i; block: x_{i+1} = 2*x_i",
                   TB_PARSE_BLOCK,
                   "block[l < 2]:\n    x = x\nblock:\n    x = 2*x\n");
    eq_check_print(T, "x_i = x_i + F(x_i); x_i = LN(x_i)", TB_PARSE_BLOCK,
                   "x = x + F(x)\nx = layernorm(x)\n");
}

TB_TEST(sections)
{
    static const char text[] =
        "# first line\n"
        "#second line  \r\n"
        "\n"
        "# not about\n"
        "stem:\n"
        "    y = x; z = 0*x\n"
        "block [ l <= N/4 ] : x = norm(x + F(x))\n"
        "x = 2*x\n"
        "encoder block[l == 3]: x = x\r\n"
        "decoder block:\n"
        "\tx = x + F(x)\n"
        "encoder: x = -x\n"
        "f(v) = 2*v\n"
        "encoder final: x = norm(x)\n"
        "final:\n"
        "init: *, embed.*: normal(0.02); attn.o: zeros()\n"
        "ffn(x) = down(x)\n"
        "ffn.up: xavier_uniform(sqrt(2))\n"
        "expect: lint-1, lint_2\n"
        "layers.0.*.bias: const(-1)\n"
        "model:\n"
        "  norm = RMSNorm\n"
        "  eps = 1e-6; ffn = 4*d\n"
        "cross(x) = o(x)\n"
        "  bias = false\n"
        "expect: L3";
    static const char want[] =
        "def f v = (* 2 v)\n"
        "def ffn x = (down() x)\n"
        "def cross x = (o() x)\n"
        "section 1 - \ny = x\nz = (* 0 x)\n"
        "section 0 - (comparel l (/ N 4))\n"
        "x = (norm() (+ x (F() x)))\nx = (* 2 x)\n"
        "section 0 encoder (compare= l 3)\nx = x\n"
        "section 0 decoder \nx = (+ x (F() x))\n"
        "section 0 encoder \nx = (neg x)\n"
        "section 2 encoder \nx = (norm() x)\n"
        "section 2 - \n"
        "init * embed.*: (normal() 0.02)\n"
        "init attn.o: zeros\n"
        "init ffn.up: (xavier_uniform() (sqrt() 2))\n"
        "init layers.0.*.bias: (const() (neg 1))\n"
        "set norm = rmsnorm\nset eps = 1e-6\nset ffn = (* 4 d)\n"
        "set bias = false\n"
        "expect lint-1\nexpect lint_2\nexpect L3\n";
    eq_check_dump(T, text, TB_PARSE_BLOCK, want);
    eq_check_round_trip(T, text, TB_PARSE_BLOCK);
    tb_block *b;
    TB_OKAY(T, eq_parse(T->ctx, text, TB_PARSE_BLOCK, &b));
    TB_STR(T, b->about, "first line\nsecond line");
    TB_CHECK(T, b->name == NULL);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(bare_text_is_the_block_section)
{
    eq_check_dump(T, "x = x + F(norm(x))", TB_PARSE_BLOCK,
                  "section 0 - \nx = (+ x (F() (norm() x)))\n");
    eq_check_print(T, "block:\n  r = x; ; x = r # end", TB_PARSE_BLOCK,
                   "r = x\nx = r\n");
    eq_check_print(T, "r = x\nfinal: x = r", TB_PARSE_BLOCK,
                   "block:\n    r = x\nfinal:\n    x = r\n");
    eq_check_print(T, "block:\nexpect: A", TB_PARSE_BLOCK,
                   "block:\nexpect: A\n");
    /* Words of headers are ordinary names elsewhere. */
    eq_check_print(T, "block = x; final = block; model = 2; out = final",
                   TB_PARSE_BLOCK,
                   "block = x\nfinal = block\nmodel = 2\nout = final\n");
}

TB_TEST(value_in_last_place)
{
    eq_check_dump(T, "f(v) = 2*v; x = 3; f(x)", TB_PARSE_EVAL,
                  "def f v = (* 2 v)\nsection 0 - \nx = 3\n"
                  "(value) = (f() x)\n");
    eq_check_print(T, "1+1", TB_PARSE_EVAL, "1 + 1\n");
}

TB_TEST(minimal_brackets)
{
    static const char *const same[] = {
        "a - (b - c)",  "a - (b + c)",  "(a + b)*c",
        "a/(b*c)",      "a*(b/c)",      "(a^b)^c",
        "a^b^c",        "(-a)^2",       "-a^2",
        "2^-a",         "-(a*b)",       "-(a + b)",
        "2^-(a*b)",     "2^(a*b)",      "--a",
        "a*-b",         "f(-a, b + c)", "(a, -b)^2",
        "f((a, b), c)", "(-a)*b + c",   "(2*N)^0.25*x - y",
        "a + (b, c)",   "-f(x)^2",      "(a, b)",
        "2^-3^-4",      "f(eps=-1e-5)", "a/b/c",
        "a + b - c",
    };
    for (size_t i = 0; i < TB_LEN(same); i++) {
        char line[64];
        tb_format(line, sizeof line, "%s\n",
                  i == 19 ? "-a*b + c" : same[i]); /* (-a)*b is -a*b */
        eq_check_print(T, same[i], TB_PARSE_EVAL, line);
        eq_check_round_trip(T, same[i], TB_PARSE_EVAL);
    }
    eq_check_print(T, "((a) + ((b)*(c)))", TB_PARSE_EVAL, "a + b*c\n");
    eq_check_print(T, "(a + b) + (c + e)", TB_PARSE_EVAL, "a + b + (c + e)\n");
}

TB_TEST(negative_number_nodes_print_as_minus)
{
    /* Not from a text, but other rooms build trees too. */
    const tb_expr minus = {.kind = TB_EXPR_NUMBER, .number = -2};
    const tb_expr two = {.kind = TB_EXPR_NUMBER, .number = 2};
    tb_arg args[] = {{.value = &minus}, {.value = &two}};
    const tb_expr power = {
        .kind = TB_EXPR_BINARY, .op = '^', .nargs = 2, .args = args};
    tb_buf out;
    tb_buf_init(&out, T->ctx);
    tb_expr_print(&power, &out);
    TB_STR(T, tb_buf_str(&out), "(-2)^2");
    tb_buf_clear(&out);
}

TB_TEST(positions)
{
    tb_block *b;
    TB_OKAY(T, eq_parse(T->ctx,
                        "\xef\xbb\xbf# c\n"
                        "f(v) = v\n"
                        "block[l < 2]:\n"
                        "  y = \xce\xb3 \xe2\x8a\x99 f(x,\n"
                        "     eps=-1)",
                        TB_PARSE_BLOCK, &b));
    const tb_expr *e = b->sections[0].stmts[0].value;
    const tb_expr *call = e->args[1].value;
    const tb_pos got[] = {b->defs[0].pos,
                          b->sections[0].pos,
                          b->sections[0].condition->pos,
                          b->sections[0].stmts[0].pos,
                          e->args[0].value->pos,
                          e->pos,
                          call->pos,
                          call->args[1].key_pos,
                          call->args[1].value->pos};
    const tb_pos want[] = {{2, 1}, {3, 1},  {3, 9}, {4, 3}, {4, 7},
                           {4, 9}, {4, 11}, {5, 6}, {5, 10}};
    for (size_t i = 0; i < TB_LEN(got); i++)
        TB_CHECK(T, got[i].line == want[i].line &&
                        got[i].column == want[i].column);
    TB_CHECK(T,
             e->depth == 4 && call->depth == 3 && e->args[0].value->depth == 1);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(hash_is_of_the_canonical_text)
{
    static const char *const text[] = {"x = x + F(LN(x))",
                                       "block: x=x+F( layernorm(x) ) # same",
                                       "x = x + F(rmsnorm(x))"};
    uint64_t hash[TB_LEN(text)];
    for (size_t i = 0; i < TB_LEN(text); i++) {
        tb_block *b;
        TB_OKAY(T, eq_parse(T->ctx, text[i], TB_PARSE_BLOCK, &b));
        hash[i] = tb_block_hash(b);
        tb_block_destroy(T->ctx, b);
    }
    TB_CHECK(T, hash[0] == hash[1]);
    TB_CHECK(T, hash[0] != hash[2]);
}
