/* SPDX-License-Identifier: MIT */
/* Findings: each code where it belongs and not where it does not, every
 * built-in, blocks of real reports (tests/golden/lint), texts made by chance.
 */
#include "unit/graph_help.h"

#include "tollbooth/lint.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

/* " code code" of a text, in order of place; its error if it has none. */
static void codes_in(tb_test *T, const char *what, size_t depth, int stack,
                     tb_buf *out)
{
    tb_settings s = TB_SETTINGS_UNSET;
    tb_block *b = NULL;
    tb_lint *l = NULL;
    s.depth = depth;
    s.stack = stack;
    tb_status status = tb_block_load(T->ctx, what, &b);
    if (status == TB_OK)
        status = tb_lint_create(T->ctx, b, &s, &l);
    if (status != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", what, tb_error(T->ctx));
    for (size_t i = 0; l && i < tb_lint_count(l); i++)
        tb_buf_printf(out, " %s", tb_lint_at(l, i)->code);
    tb_buf_putc(out, ' ');
    tb_lint_destroy(l);
    if (b)
        tb_block_destroy(T->ctx, b);
}

static void codes_of(tb_test *T, const char *what, size_t depth, tb_buf *out)
{
    codes_in(T, what, depth, TB_STACKS_DECODER, out);
}

static bool has_word(const char *text, const char *word)
{
    char between[80];
    tb_format(between, sizeof between, " %s ", word);
    return strstr(text, between) != NULL;
}

static void found(tb_test *T, const char *what, size_t depth, const char *code,
                  bool want)
{
    tb_buf got;
    tb_buf_init(&got, T->ctx);
    codes_of(T, what, depth, &got);
    if (has_word(tb_buf_str(&got), code) != want)
        tb_test_fail(T, __FILE__, __LINE__, "%s\ngot:   %s\nwanted%s %s", what,
                     tb_buf_str(&got), want ? "" : " no", code);
    tb_buf_clear(&got);
}

#define FINAL "\nfinal: x = norm(x)"
#define GPT   "\ninit: *: normal(0.02)\n attn.o, ffn.down: "

/* A text that has the finding and one close to it that has not. */
static const struct {
    const char *code, *has, *lacks;
    size_t depth;
} cases[] = {
    {"no-skip", "x = F(x)", "x = x + F(x)", 0},
    {"no-skip", "x = attn(norm(x) + x)", "x = norm(x) + attn(x)", 0},
    {"no-skip", "x = x - x + F(x)", "x = 2*x - x + F(x)", 0},
    {"no-skip", "x = x + attn(norm(x)); x = ffn(norm(x))",
     "x = x + attn(norm(x)); x = x + ffn(norm(x))", 0},
    {"no-skip", "x = stop(x) + F(x)", "x = x + stop(x) + F(x)", 0},
    {"no-skip", "w = linear(d, d); x = w(x) + F(x)", "x = vector(1)*x + F(x)",
     0},
    {"no-skip", "x = F(x)", "stem: y = x\nblock: x = y + F(x)", 0},
    {"nonlinear-lane", "x = relu(x + F(x))", "x = x + relu(F(x))", 0},
    {"nonlinear-lane", "x = relu(x + F(x))", "x = relu(F(x))", 0},
    {"lane-scaled", "x = x/2 + F(norm(x))", "x = norm(x/2 + F(x))", 0},
    {"lane-scaled", "x = 0.6*x + 0.9*F(norm(x))",
     "b = (2*N)^-0.5; x = (1 - b^2)^0.5*x + b*F(norm(x))", 0},
    {"lane-scaled", "x = x + x + F(x)", "x = x + F(x) + F(x)", 0},
    {"dead-lane", "x = norm(x + F(x))\ninit: *.gain: zeros",
     "x = x + norm(F(x))\ninit: *.gain: zeros", 0},
    {"dropout-on-lane", "x = drop(x + F(norm(x)))", "x = x + drop(F(norm(x)))",
     0},
    {"branch-not-added", "y = norm(x + attn(x)); x = norm(x + ffn(y))",
     "y = norm(x + attn(x)); x = norm(x + y + ffn(y))", 0},
    {"branch-not-added", "y = attn(norm(x)); x = x + ffn(y)",
     "w = linear(d, d); y = w(attn(norm(x))); x = x + y + ffn(y)", 0},
    {"shadowed-stream", "y = x; x = x + attn(x); x = y + ffn(y)",
     "y = x; x = x + attn(x); x = x + ffn(y)", 0},
    {"shadowed-stream", "stem: y = x\nblock: x = y + F(y)",
     "stem: y = x\nblock: x = x + F(y)", 0},

    {"no-final-norm", "x = x + F(norm(x))", "x = x + F(norm(x))" FINAL, 0},
    {"no-final-norm", "x = x + norm(F(x))", "x = norm(x + F(x))", 0},
    {"no-final-norm",
     "block[l <= N/2]: x = norm(x + F(x))\nblock: x = x + F(norm(x))",
     "block[l <= N/2]: x = x + F(norm(x))\nblock: x = norm(x + F(x))", 0},
    {"two-norms", "x = norm(x + F(x))" FINAL, "x = norm(x + F(x))", 0},
    {"two-norms", "x = norm(x + F(x))" FINAL, "x = x + F(norm(x))" FINAL, 0},
    {"two-norms",
     "block[l <= N/2]: x = x + F(norm(x))\nblock: x = norm(x + F(x))" FINAL,
     "block[l <= N/2]: x = norm(x + F(x))\nblock: x = x + F(norm(x))" FINAL, 0},
    {"double-norm", "x = x + F(norm(norm(x)))", "x = x + norm(F(norm(x)))", 0},
    {"double-norm", "x = norm(x); x = norm(x + F(x))", "x = norm(x + F(x))", 0},
    {"double-norm", "stem: x = norm(x)\nblock: x = norm(x) + F(x)",
     "stem: x = norm(x)\nblock: x = norm(x + F(x))", 0},
    {"stem-then-norm", "stem: x = norm(x)\nblock: x = x + F(norm(x))",
     "stem: x = norm(x)\nblock: x = norm(x + F(x))", 0},
    {"normed-skip", "x = norm(x); x = x + attn(x)", "x = x + attn(norm(x))", 0},
    {"normed-skip", "x = x + attn(norm(x)); x = norm(x); x = x + ffn(x)",
     "x = x + attn(x); x = norm(x); x = x + ffn(x)", 0},
    {"skip-after-norm", "x = norm(x) + F(x)", "n = norm(x); x = n + F(n)", 0},
    {"skip-after-norm", "x = norm(x) + F(norm(x))", "x = x + F(norm(x))", 0},
    {"norm-after-add-in-sandwich", "x = norm(x + F(norm(x)))",
     "x = x + norm(F(norm(x)))", 0},
    {"norm-after-add-in-sandwich", "x = norm(x + F(norm(x)))",
     "x = norm(2*N*x + F(norm(x)))", 0},
    {"unnormed-kv", "x = x + norm(F(x))", "x = x + F(norm(x))", 0},
    {"unnormed-kv", "x = x + norm(F(x))",
     "attn(x) = o(mha(norm(q(x)), norm(k(x)), v(x)))\nx = x + norm(F(x))", 0},
    {"unnormed-kv",
     "attn(x) = o(mha(q(norm(x)), k(x), v(x)))\nx = x + attn(x); x = x + "
     "ffn(norm(x))",
     "attn(x) = o(mha(q(x), k(x), v(x)))\nx = x + F(norm(x))", 0},
    {"unnormed-kv", "x = x + norm(F(x))", "x = x + F(x)", 0},
    {"unnormed-branch", "x = x + attn(norm(x)); x = x + ffn(x)",
     "x = x + attn(norm(x)); x = x + ffn(norm(x))", 0},
    {"unnormed-branch", "x = x + attn(norm(x)); x = x + ffn(x)",
     "x = x + attn(norm(x)); x = x + norm(ffn(x))", 0},
    {"unbounded-stream", "x = x + F(x)", "x = x + F(x)" FINAL, 0},
    {"unbounded-stream", "x = x + F(x)", "x = x + scalar(0)*F(x)", 0},
    {"unbounded-stream", "x = x + F(x)",
     "x = x + F(x)\ninit: attn.o, ffn.down: xavier(N^-0.5)", 0},
    {"post-ln-deep", "x = norm(x + F(x))", "x = norm((2*N)^0.25*x + F(x))", 24},
    {"post-ln-deep", "x = norm(x + F(x))", "x = x + F(norm(x))", 24},
    {"pre-ln-deep", "x = x + F(norm(x))", "x = norm(x + F(x))", 24},
    {"pre-ln-deep", "x = x + F(norm(x))", "x = x + F(norm(x)/sqrt(l))", 24},
    {"pre-ln-deep", "x = x + F(norm(x))",
     "x = x + F(norm(x))\ninit: attn.o, ffn.down: normal(0.02/sqrt(2*N))", 24},
    {"parallel-branches", "x = x + attn(norm(x)) + ffn(norm(x))",
     "x = x + attn(norm(x)); x = x + ffn(norm(x))", 0},
    {"parallel-branches", "x = x + attn(x) + ffn(x)",
     "n = norm(x); x = x + attn(n) + ffn(n)", 0},

    {"eps-zero", "x = norm(x + F(x), eps=0)", "x = norm(x + F(x), eps=1e-6)",
     0},
    {"eps-too-small", "x = norm(x + F(x), eps=1e-12)",
     "x = norm(x + F(x), eps=1e-7)", 0},
    {"eps-too-small", "x = norm(x + F(x), eps=1e-50)", "x = norm(x + F(x))", 0},
    {"eps-large", "x = norm(x + F(x), eps=0.1)", "x = norm(x + F(x), eps=1e-3)",
     0},
    {"eps-differs", "x = norm(x + attn(x)); x = norm(x + ffn(x), eps=1e-6)",
     "x = norm(x + attn(x)); x = norm(x + ffn(x), eps=1e-5)", 0},
    {"eps-differs", "x = x + F(norm(x))\nfinal: x = norm(x, eps=1e-6)",
     "x = x + F(norm(x))" FINAL, 0},
    {"norm-kinds-differ", "x = x + F(layernorm(x))\nfinal: x = rmsnorm(x)",
     "x = x + F(layernorm(x))\nfinal: x = norm(x)", 0},
    {"norm-width-1",
     "w = linear(d, 1); u = linear(1, d); x = x + ffn(u(norm(w(x))))",
     "w = linear(d, 2); u = linear(2, d); x = x + ffn(u(norm(w(x))))", 0},
    {"double-norm", "x = x + F(batchnorm(powernorm(x)))" FINAL,
     "x = x + F(batchnorm(rmsnorm(x)))" FINAL, 0},
    {"batch-statistics-causal", "x = x + F(batchnorm(x))" FINAL,
     "x = x + F(norm(x))" FINAL, 0},
    {"batch-statistics-padding", "x = x + F(norm(x))\nmodel: norm = powernorm",
     "w = linear(d, 1); m = w(x); x = x + F(powernorm(x, keep=m))", 0},
    {"same-norm-shared", "n = norm(x); x = x + attn(n) + ffn(n)",
     "x = x + attn(norm(x)) + ffn(norm(x))", 0},
    {"shared-sublayer", "x = x + ffn(norm(x)); x = x + ffn(norm(x))",
     "x = x + F(norm(x))", 0},

    {"branch-scaled-instead-of-skip", "x = norm(x + (2*N)^0.25*F(x))",
     "x = norm((2*N)^0.25*x + F(x))", 0},
    {"branch-scaled-instead-of-skip", "x = norm(x + 2*F(x))",
     "x = x + 2*F(norm(x))", 0},
    {"branch-scaled-instead-of-skip", "x = x + N*F(norm(x))",
     "x = x + (8/N)*F(norm(x))", 0},
    {"alpha-without-init", "x = norm((2*N)^0.25*x + F(x))",
     "x = norm((2*N)^0.25*x + F(x))\ninit: ffn.*, attn.v, attn.o: "
     "xavier((8*N)^-0.25)",
     0},
    {"alpha-without-init", "x = norm(N*x + F(x))", "x = norm(N*x + F(norm(x)))",
     0},
    {"alpha-fixed", "x = norm(2.828*x + F(x))", "x = norm(N*x + F(x))", 0},
    {"gain-inverted",
     "x = norm((2*N)^0.25*x + F(x))\ninit: ffn.*, attn.o: xavier((8*N)^0.25)",
     "x = norm((2*N)^0.25*x + F(x))\ninit: ffn.*, attn.o: xavier((8*N)^-0.25)",
     0},
    {"gain-inverted",
     "x = norm((2*N)^0.25*x + F(x))\ninit: ffn.*, attn.o: xavier((8*N)^0.25)",
     "ffn(x) = down(norm(gelu(up(x))))\nx = x + F(norm(x))\ninit: ffn.*, "
     "attn.o: xavier(sqrt(log(2*N)))",
     0},
    {"deepnorm-and-subln",
     "ffn(x) = down(norm(gelu(up(x))))\nx = norm((2*N)^0.25*x + F(x))",
     "ffn(x) = down(norm(gelu(up(x))))\nx = x + F(norm(x))", 0},
    {"scale-and-init",
     "x = x + F(norm(x)/sqrt(l))" GPT "normal(0.02/sqrt(2*N))",
     "x = x + F(norm(x)/sqrt(l))" GPT "normal(0.01)", 0},
    {"scale-and-init",
     "x = x + F(norm(x))/sqrt(2*N)" GPT "normal(0.02/sqrt(2*N))",
     "x = x + F(norm(x))" GPT "normal(0.02/sqrt(2*N))", 0},
    {"scale-and-init", "x = x + scalar(0)*F(x)" GPT "normal(0.02/sqrt(2*N))",
     "x = x + scalar(1)*F(x)" GPT "normal(0.02/sqrt(2*N))", 0},
    {"init-not-matching", "x = norm(x + F(x))" GPT "normal(0.02/sqrt(2*N))",
     "x = x + F(norm(x))" GPT "normal(0.02/sqrt(2*N))", 0},
    {"init-not-matching", "x = norm(x + F(x))" GPT "normal(0.02/sqrt(2*N))",
     "x = norm(x + F(x))\ninit: *: xavier(1/sqrt(l))", 0},
    {"norm-undoes-init",
     "x = x + norm(F(norm(x)))" GPT "normal(0.02/sqrt(2*N))",
     "x = x + norm(F(norm(x)))" GPT "normal(0.02)", 0},
    {"init-counts-blocks", "x = x + F(norm(x))" GPT "normal(0.02/sqrt(N))",
     "x = x + F(norm(x))" GPT "normal(0.02/sqrt(2*N))", 0},
    {"init-unmatched", "x = x + F(x)\ninit: c_proj: normal(0.02)",
     "x = x + F(x)\ninit: *.o: normal(0.02)", 0},
    {"init-unmatched", "x = x + F(x)\ninit: attn.o, ffn.out: normal(0.02)",
     "x = x + F(x)\ninit: attn.o, encoder.ffn.down: normal(0.02)", 0},
    {"init-counts-blocks",
     "x = x + F(norm(x))\ninit: attn.o, ffn.down: normal(0.02/sqrt(N))",
     "x = x + F(norm(x))\ninit: attn.o, ffn.down: normal(0.02/sqrt(2*N))", 0},
    {"branch-scaled-instead-of-skip", "x = x + 2*F(x)", "x = x + 2*F(norm(x))",
     0},
    {"init-overridden",
     "x = x + F(x)\ninit: attn.o: normal(0.1)\n *: normal(0.02)",
     "x = x + F(x)\ninit: *: normal(0.02)\n attn.o: normal(0.1)", 0},
    {"tied-scale", "x = x + F(norm(x))" FINAL "\nmodel: tied = true",
     "x = x + F(norm(x))" FINAL
     "\nmodel: tied = true\ninit: embed.*: normal(0.02)",
     0},
    {"dead-branch", "x = x + scalar(0)*F(x)\ninit: attn.o: zeros",
     "x = x + scalar(1)*F(x)\ninit: attn.o: zeros", 0},
    {"dead-branch", "a = scalar(0); b = scalar(0); x = x + a*(b*F(x))",
     "a = scalar(0); b = scalar(1); x = x + a*(b*F(x))", 0},
    {"dead-branch", "x = x + 0*F(x)", "x = x + 1*F(x)", 0},
    {"dead-branch", "x = x + norm(F(x))\ninit: *.gain: zeros\n attn.o: zeros",
     "x = x + norm(F(x))\ninit: *.gain: zeros", 0},
    {"zero-start", "a = scalar(0); x = x + a*F(x)",
     "a = scalar(1e-5); x = x + a*F(x)", 0},
    {"zero-start", "x = x + F(norm(x))\ninit: attn.o: zeros",
     "x = x + F(norm(x))\ninit: attn.q: zeros", 0},
    {"zero-start", "a = scalar(0); x = x + a*F(x)",
     "x = x + F(norm(x)); x = x - scalar(0)*stop(x)", 0},
    {"rezero-with-norm", "x = x + scalar(0)*F(norm(x))",
     "x = x + scalar(0)*F(x)", 0},
    {"uneven-gate", "a = scalar(0); x = x + a*attn(x); x = x + ffn(x)",
     "a = scalar(0); x = x + a*attn(x); x = x + a*ffn(x)", 0},

    {"unused-name", "n = norm(x); x = x + F(x)", "n = norm(x); x = x + F(n)",
     0},
    {"unused-name", "a = 1; a = 2; x = a*x + F(x)", "a = 1; x = a*x + F(x)", 0},
    {"unused-name", "f(v) = v; x = x + F(x)", "f(v) = v; x = f(x) + F(x)", 0},
    {"unused-name", "f(u, v) = u; x = f(x, x) + F(x)",
     "f(u, v) = u + v; x = f(x, x) + F(x)", 0},
    {"unused-name", "stem: y = x\nblock: x = x + F(x)",
     "stem: y = x\nblock: x = x + F(y)", 0},
    {"unused-name", "n = norm(x); x = x + F(x)",
     "attn(x) = o(mha(q(x), k(x), v(x) + n))\nn = norm(x); x = x + F(n)", 0},
    {"unused-parameter", "a = scalar(0); x = x + F(x)",
     "a = scalar(1); x = x + a*F(x)", 0},
    {"unused-parameter", "w = linear(d, d); x = x + F(x)",
     "w = linear(d, d); x = x + F(w(x))", 0},
    {"unused-setting", "x = x + F(x)\nmodel: norm = rmsnorm",
     "x = x + F(norm(x))\nmodel: norm = rmsnorm", 0},
    {"unused-setting", "x = norm(x + F(x), eps=1e-6)\nmodel: eps = 1e-6",
     "x = norm(x + F(x))\nmodel: eps = 1e-6", 0},
    {"unused-setting", "x = x + attn(x)\nmodel: ffn = d",
     "x = x + F(x)\nmodel: ffn = d", 0},
    {"unused-setting", "x = x + F(dyt(x))\nmodel: eps = 1e-6",
     "x = x + F(layernorm(x))\nmodel: eps = 1e-6", 0},
    {"unused-setting",
     "x = x + F(norm(x, eps_mode=inside))\nmodel: eps_mode "
     "= outside",
     "x = x + F(norm(x, eps=1e-6))\nmodel: eps_mode = outside", 0},
    {"unused-setting", "x = x + F(x)\nmodel: variance = onepass",
     "x = x + F(norm(x))\nmodel: variance = onepass", 0},
    {"unused-setting", "x = x + F(norm(x))\nmodel: rope_base = 500",
     "x = x + F(norm(x))\nmodel: rope_base = 500\n positions = rope", 0},
    {"unused-setting",
     "attn(x) = o(mha(rope(q(x), base=5), k(x), v(x)))\n"
     "block: x = x + F(x)\nmodel: rope_base = 500",
     "attn(x) = o(mha(rope(q(x)), k(x), v(x)))\n"
     "block: x = x + F(x)\nmodel: rope_base = 500",
     0},
    {"unused-setting",
     "attn(x) = o(mha(q(x), k(x), v(x)))\nblock: x = x + F(x)\n"
     "model: positions = rope",
     "x = x + F(x)\nmodel: positions = rope", 0},
    {"unused-section", "block[l > 100]: x = F(x)\nblock: x = x + F(x)",
     "block[l > 3]: x = F(x)\nblock: x = x + F(x)", 0},
    {"expect-unmet", "expect: no-skip\nblock: x = x + F(x)",
     "expect: no-skip\nblock: x = F(x)", 0},
    {"expect-unmet", "expect: no-skpi\nblock: x = F(x)", "x = F(x)", 0},
};

TB_TEST(codes_where_they_belong)
{
    for (size_t i = 0; i < TB_LEN(cases); i++) {
        found(T, cases[i].has, cases[i].depth, cases[i].code, true);
        found(T, cases[i].lacks, cases[i].depth, cases[i].code, false);
    }
}

#define ROLES(enc, dec) "encoder: " enc "\ndecoder: " dec FINAL

/* The same of an encoder and a decoder. */
static const struct {
    const char *code, *has, *lacks;
} pairs[] = {
    {"no-final-norm",
     "encoder: x = x + F(norm(x))\ndecoder: x = norm(x + F(x))",
     "encoder: x = norm(x + F(x))\ndecoder: x = norm(x + F(x))"},
    {"two-norms", "x = norm(x + F(x))\nencoder final: x = norm(x)",
     "x = x + F(norm(x))\nfinal: x = norm(x)"},
    {"memory-unread",
     "x = x + attn(norm(x)); x = x + ffn(norm(x))\nfinal: x = norm(x)",
     "x = x + F(norm(x))" FINAL},
    {"memory-unread",
     "cross(x) = o(mha(q(x), k(x), v(x)))\nblock: x = x + F(norm(x))",
     "cross(x) = o(mha(q(x), k(memory), v(memory)))\nblock: x = x + "
     "F(norm(x))"},
    {"memory-normed-twice",
     "cross(x) = o(mha(q(x), k(norm(memory)), v(memory)))\n"
     "block: x = x + F(norm(x))" FINAL,
     "cross(x) = o(mha(q(x), k(norm(memory)), v(norm(memory))))\n"
     "block: x = x + F(norm(x))\ndecoder final: x = norm(x)"},
    {"memory-normed-twice",
     "cross(x) = o(mha(q(x), k(norm(memory)), v(memory)))\n"
     "block: x = norm(x + F(x))",
     "x = norm(x + F(x))"},
    {"roles-differ", ROLES("x = x + F(norm(x))", "x = norm(x + F(x))"),
     ROLES("x = x + F(norm(x))", "x = x + F(norm(x))")},
    {"roles-differ", ROLES("x = x + norm(F(norm(x)))", "x = x + F(norm(x))"),
     ROLES("x = norm(2*x + F(x))", "x = norm(3*x + F(x))")},
    {"unnormed-kv",
     "encoder: x = x + F(norm(x))\ndecoder: x = x + attn(norm(x)); "
     "x = x + cross(x); x = x + ffn(norm(x))" FINAL,
     "x = x + F(norm(x))" FINAL},
};

TB_TEST(codes_of_two_stacks)
{
    for (size_t i = 0; i < TB_LEN(pairs); i++)
        for (int has = 0; has < 2; has++) {
            const char *text = has ? pairs[i].has : pairs[i].lacks;
            tb_buf got;
            tb_buf_init(&got, T->ctx);
            codes_in(T, text, 0, TB_STACKS_BOTH, &got);
            if (has_word(tb_buf_str(&got), pairs[i].code) != (has == 1))
                tb_test_fail(T, __FILE__, __LINE__, "%s\ngot:   %s\n%s %s",
                             text, tb_buf_str(&got), has ? "wanted" : "without",
                             pairs[i].code);
            tb_buf_clear(&got);
        }
}

TB_TEST(every_code_has_a_case)
{
    for (size_t i = 0; tb_lint_code_at(i); i++) {
        const tb_lint_code *c = tb_lint_code_at(i);
        bool any = false;
        for (size_t j = 0; j < TB_LEN(cases); j++)
            any |= tb_streq(cases[j].code, c->code);
        for (size_t j = 0; j < TB_LEN(pairs); j++)
            any |= tb_streq(pairs[j].code, c->code);
        if (!any)
            tb_test_fail(T, __FILE__, __LINE__, "%s: no case", c->code);
    }
}

/* --- blocks of the project ------------------------------------------------ */

/* What belongs to a placement is named in its expect:. */
TB_TEST(no_built_in_warns)
{
    const tb_settings unset = TB_SETTINGS_UNSET;
    for (size_t i = 0; i < tb_builtin_count(); i++) {
        tb_block *b;
        tb_lint *l;
        TB_OKAY(T, tb_block_load(T->ctx, tb_builtin_name(i), &b));
        TB_OKAY(T, tb_lint_create(T->ctx, b, &unset, &l));
        if (tb_lint_worst(l) >= TB_LINT_WARN)
            tb_test_fail(T, __FILE__, __LINE__, "%s: see lint", b->name);
        tb_lint_destroy(l);
        tb_block_destroy(T->ctx, b);
    }
}

TB_TEST(built_ins)
{
    static const struct {
        const char *name, *codes;
    } want[] = {
        {"deepnorm", " "},
        {"deepscalelm", " "},
        {"gpt-2", " "},
        {"layerscale", " "},
        {"no-skip", " no-skip "},
        {"olmo-2", " "},
        {"output-norm", " unnormed-kv "},
        {"parallel", " same-norm-shared "},
        {"mix-ln", " "},
        {"parallel-two-norms", " parallel-branches "},
        {"plain", " unbounded-stream "},
        {"post-ln", " "},
        {"pre-ln", " "},
        {"pre-ln-no-final", " no-final-norm "},
        {"rezero", " zero-start "},
        {"sandwich", " norm-undoes-init "},
    };
    for (size_t i = 0; i < TB_LEN(want); i++) {
        tb_buf got;
        tb_buf_init(&got, T->ctx);
        codes_of(T, want[i].name, 0, &got);
        if (!tb_streq(tb_buf_str(&got), want[i].codes))
            tb_test_fail(T, __FILE__, __LINE__, "%s: got%s, wanted%s",
                         want[i].name, tb_buf_str(&got), want[i].codes);
        tb_buf_clear(&got);
    }
}

/* --- blocks of real reports ----------------------------------------------- */

static const char reports[] = TB_SOURCE_DIR "/tests/golden/lint";

static size_t read_file(const char *path, char *out, size_t cap)
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(out, 1, cap - 1, f) : 0;
    out[n] = '\0';
    if (f)
        (void)fclose(f);
    return n;
}

/* The rest of the line "# key: ...", "" if there is none. */
static void line_of(const char *text, const char *key, char *out, size_t cap)
{
    char head[40];
    tb_format(head, sizeof head, "\n# %s: ", key);
    const char *at = strstr(text, head);
    size_t n = at ? strcspn(at + strlen(head), "\n") : 0;
    tb_format(out, cap, "%.*s", (int)n, at ? at + strlen(head) : "");
}

/* Every code wanted, and no other. */
static void compare_codes(tb_test *T, const char *path, const char *want,
                          const char *got)
{
    char wanted[400], each[800], word[80];
    size_t n;
    tb_format(wanted, sizeof wanted, " %s ", want);
    tb_format(each, sizeof each, "%s%s", wanted, got);
    for (const char *w = each; *(w += strspn(w, " ")); w += n) {
        n = strcspn(w, " ");
        tb_format(word, sizeof word, "%.*s", (int)n, w);
        if (!has_word(wanted, word) || !has_word(got, word))
            tb_test_fail(T, __FILE__, __LINE__, "%s: got%s, wanted %s", path,
                         got, want);
    }
}

static void one_report(tb_test *T, const char *path)
{
    char text[4096], want[200], depth[20], stack[40];
    tb_buf got;
    TB_REQUIRE(T, read_file(path, text, sizeof text));
    line_of(text, "lint", want, sizeof want);
    line_of(text, "depth", depth, sizeof depth);
    line_of(text, "stack", stack, sizeof stack);
    TB_REQUIRE(T, *want);
    tb_buf_init(&got, T->ctx);
    codes_in(T, path, (size_t)atoi(depth),
             *stack ? TB_STACKS_BOTH : TB_STACKS_DECODER, &got);
    compare_codes(T, path, want, tb_buf_str(&got));
    tb_buf_clear(&got);
}

TB_TEST(reports_are_found)
{
    DIR *d = opendir(reports);
    int n = 0;
    TB_REQUIRE(T, d);
    for (struct dirent *e; (e = readdir(d)); n++) {
        char path[512];
        tb_format(path, sizeof path, "%s/%s", reports, e->d_name);
        if (strstr(e->d_name, ".block"))
            one_report(T, path);
    }
    closedir(d);
    TB_CHECK(T, n > 30);
}

static const char docs[] = TB_SOURCE_DIR "/docs/lint.md";
enum { MOST = 1 << 18 };

/* The row of docs/lint.md that names a report: "| thread | `text` | `code`, ...
 * |". Its codes are those the text itself asks for. */
static void one_row(tb_test *T, const char *rows, const char *file)
{
    char text[4096], path[512], want[200], cell[80], codes[400] = "";
    size_t n = strlen(file) - strlen(".block"), len = 0;
    tb_format(path, sizeof path, "%s/%s", reports, file);
    TB_REQUIRE(T, read_file(path, text, sizeof text));
    line_of(text, "lint", want, sizeof want);
    for (const char *w = want; *(w += strspn(w, " ")); w += strcspn(w, " "))
        len += tb_format(codes + len, sizeof codes - len, "%s`%.*s`",
                         len ? ", " : "", (int)strcspn(w, " "), w);
    tb_format(cell, sizeof cell, " | `%.*s` | ", (int)n, file);
    const char *row = strstr(rows, cell);
    tb_format(path, sizeof path, "%s |\n", codes);
    if (!row || strncmp(row + strlen(cell), path, strlen(path)) != 0)
        tb_test_fail(T, __FILE__, __LINE__, "docs/lint.md lacks%s%s", cell,
                     path);
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    for (; (text = strstr(text, word)); text++)
        n++;
    return n;
}

/* Every report has a row, and every row a report. */
TB_TEST(reports_are_documented)
{
    char *text = tb_alloc(T->ctx, MOST, 1);
    DIR *d = opendir(reports);
    size_t n = 0;
    TB_REQUIRE(T, d && text && read_file(docs, text, MOST));
    char *rows = strstr(text, "\n## Reported bugs as blocks\n");
    char *end = rows ? strstr(rows, "\nOf some of these") : NULL;
    TB_REQUIRE(T, rows && end);
    *end = '\0';
    for (struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, ".block")) {
            one_row(T, rows, e->d_name);
            n++;
        }
    closedir(d);
    TB_CHECK(T, count(rows, "\n|") == n + 2); /* the head and its line */
    tb_free(T->ctx, text);
}

/* docs/lint.md has one row per code, with the texts of the table. */
TB_TEST(documented)
{
    char *text = tb_alloc(T->ctx, MOST, 1);
    TB_REQUIRE(T, text && read_file(docs, text, MOST));
    for (size_t i = 0; tb_lint_code_at(i); i++) {
        const tb_lint_code *c = tb_lint_code_at(i);
        char row[1000];
        tb_format(row, sizeof row, "\n| `%s` | %s | %s | %s%s%s | %s |\n",
                  c->code, tb_lint_level_name(c->level), c->message,
                  c->fix ? "`" : "", c->fix ? c->fix : "", c->fix ? "`" : "",
                  c->source ? c->source : "");
        if (!strstr(text, row))
            tb_test_fail(T, __FILE__, __LINE__, "docs/lint.md lacks%s", row);
    }
    tb_free(T->ctx, text);
}

/* --- what a finding says ---------------------------------------------------
 */

static void says(tb_test *T, const char *what, const char *file,
                 const char *want)
{
    const tb_settings unset = TB_SETTINGS_UNSET;
    tb_block *b;
    tb_lint *l;
    char *text;
    TB_OKAY(T, tb_block_load(T->ctx, what, &b));
    TB_OKAY(T, tb_lint_create(T->ctx, b, &unset, &l));
    TB_OKAY(T, tb_lint_text(l, file, 0, &text));
    TB_STR(T, text, want);
    tb_text_free(T->ctx, text);
    tb_lint_destroy(l);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(text_of_a_finding)
{
    says(T, "x = x + F(norm(x))", "my.block",
         "my.block:1:7: warn no-final-norm: the norms stand on the branches "
         "only and none follows the last block: the head sees a stream that "
         "grows with depth\n"
         "    x = x + F(norm(x))\n"
         "          ^\n"
         "    fix: add final: x = norm(x)\n"
         "    source: arXiv:2002.04745; huggingface/transformers #17785\n");
    says(T, "x = x + F(norm(x)); final: x = norm(x)", NULL, "");
    says(T, "expect: two-norm\nblock: x = norm(x + F(x))", NULL,
         "1:9: note expect-unmet: two-norm is no code; did you mean "
         "two-norms?\n"
         "    expect: two-norm\n"
         "            ^\n"
         "    fix: drop the code from expect:\n");
}

TB_TEST(numbers_in_messages)
{
    says(T, "x = norm(drop(x + F(x), 0.5))\nexpect: no-skip\n", NULL,
         "1:10: warn dropout-on-lane: dropout stands on the lane and drops "
         "the skip too: at rate 0.5 a feature of x survives 6 blocks with "
         "probability 0.000244\n"
         "    x = norm(drop(x + F(x), 0.5))\n"
         "             ^\n"
         "    fix: drop the branch only: x = x + drop(F(norm(x)))\n"
         "    source: hyunwoongko/transformer #8; codertimo/BERT-pytorch #85\n"
         "2:9: note expect-unmet: no-skip is expected and was not found\n"
         "    expect: no-skip\n"
         "            ^\n"
         "    fix: drop the code from expect:\n");
}

TB_TEST(levels)
{
    static const struct {
        const char *text;
        int worst;
    } want[] = {
        {"x = x + F(norm(x)); final: x = norm(x)", -1},
        {"a = scalar(0); x = x + a*F(x)", TB_LINT_NOTE},
        {"x = x + F(norm(x))", TB_LINT_WARN},
        {"expect: no-final-norm\nblock: x = x + F(norm(x))", TB_LINT_NOTE},
        {"x = F(x)", TB_LINT_FAIL},
        {"expect: no-skip\nblock: x = F(x)", TB_LINT_NOTE},
        {"x = norm(x + F(x), eps=0.5)", TB_LINT_WARN},
        {"x = norm(x + F(x), eps=1)", TB_LINT_FAIL},
        {"alpha = 3; x = alpha*norm(x) + F(norm(x))", TB_LINT_WARN},
        {"n = norm(x); x = 3*n + F(n)", TB_LINT_NOTE},
    };
    for (size_t i = 0; i < TB_LEN(want); i++) {
        const tb_settings unset = TB_SETTINGS_UNSET;
        tb_block *b;
        tb_lint *l;
        TB_OKAY(T, tb_block_load(T->ctx, want[i].text, &b));
        TB_OKAY(T, tb_lint_create(T->ctx, b, &unset, &l));
        if (tb_lint_worst(l) != want[i].worst)
            tb_test_fail(T, __FILE__, __LINE__, "%s: got %d, wanted %d",
                         want[i].text, tb_lint_worst(l), want[i].worst);
        tb_lint_destroy(l);
        tb_block_destroy(T->ctx, b);
    }
}

/* The settings' init rules count like the text's. */
TB_TEST(init_of_the_settings)
{
    tb_settings s = TB_SETTINGS_UNSET;
    tb_block *b;
    tb_lint *l;
    s.init = "attn.o: zeros; ffn.down: zeros";
    TB_OKAY(T, tb_block_load(T->ctx, "x = x + scalar(0)*F(x)", &b));
    TB_OKAY(T, tb_lint_create(T->ctx, b, &s, &l));
    TB_CHECK(T, tb_lint_worst(l) == TB_LINT_FAIL);
    tb_lint_destroy(l);
    tb_block_destroy(T->ctx, b);
}

/* --- hostile texts ---------------------------------------------------------
 */

static void survives(tb_test *T, const char *text, size_t n)
{
    tb_settings s = TB_SETTINGS_UNSET;
    tb_block *b;
    tb_lint *l = NULL;
    s.depth = 1 + (size_t)(tb_test_uniform(T) * 5);
    if (tb_block_parse(T->ctx, NULL, text, n, TB_PARSE_BLOCK, &b) != TB_OK)
        return;
    if (tb_lint_create(T->ctx, b, &s, &l) == TB_OK)
        for (size_t i = 0; i < tb_lint_count(l); i++) {
            const tb_finding *f = tb_lint_at(l, i);
            TB_CHECK(T, f->line >= 1 && f->column >= 1 && f->message);
        }
    tb_lint_destroy(l);
    tb_block_destroy(T->ctx, b);
}

static size_t below(tb_test *T, size_t n)
{
    return (size_t)(tb_test_uniform(T) * (double)n);
}

/* A word of the language over, before, or instead of a piece of the text. */
static size_t mutate(tb_test *T, char *text, size_t n, size_t cap)
{
    static const char *const words[] = {
        "x",      " + x", "norm(x)", "F(x)",      "attn(x)",
        "ffn(x)", " = ",  "drop(x)", "\n",        "; ",
        "*",      "/",    "stop(",   "scalar(0)", "vector(0)*x",
        ")",      "(",    "final:",  "block:",    "relu(x)",
        "0",      "N",    "l",       "y = x;",    "eps=0"};
    const char *w = words[below(T, TB_LEN(words))];
    size_t k = strlen(w), at = below(T, n + 1);
    size_t cut = below(T, 2) ? below(T, 6) : 0;
    if (cut > n - at)
        cut = n - at;
    if (n - cut + k >= cap)
        return n;
    memmove(text + at + k, text + at + cut, n - at - cut + 1);
    memcpy(text + at, w, k);
    return n - cut + k;
}

TB_TEST(mutated_built_ins)
{
    enum { ROUNDS = 60, CAP = 8192 };
    char *text = tb_alloc(T->ctx, CAP, 1);
    TB_REQUIRE(T, text);
    for (size_t i = 0; tb_builtins[i].name; i++)
        for (int round = 0; round < ROUNDS; round++) {
            size_t n = strlen(tb_builtins[i].text);
            TB_REQUIRE(T, n + 1 < CAP);
            memcpy(text, tb_builtins[i].text, n + 1);
            for (size_t m = 1 + below(T, 3); m; m--)
                n = mutate(T, text, n, CAP);
            survives(T, text, n);
        }
    tb_free(T->ctx, text);
}

/* Where every token sees every other, statistics over them hide nothing. */
TB_TEST(batch_statistics_of_an_encoder)
{
    static const char *const text = "encoder block: x = batchnorm(x + F(x))\n"
                                    "decoder block: x = norm(x + F(x))";
    for (int stack = TB_STACKS_DECODER; stack <= TB_STACKS_BOTH; stack++) {
        tb_settings s = TB_SETTINGS_UNSET;
        tb_block *b;
        tb_lint *l;
        s.stack = stack;
        TB_OKAY(T, tb_block_load(T->ctx, text, &b));
        TB_OKAY(T, tb_lint_create(T->ctx, b, &s, &l));
        for (size_t i = 0; i < tb_lint_count(l); i++)
            TB_CHECK(T, !tb_streq(tb_lint_at(l, i)->code,
                                  "batch-statistics-causal"));
        tb_lint_destroy(l);
        tb_block_destroy(T->ctx, b);
    }
}

TB_TEST(large_texts)
{
    static const char *const pieces[] = {"x = x + ffn(norm(x))\n",
                                         "x = norm(x + ffn(norm(x)))\n",
                                         "y = x;",
                                         "x = norm(x)\n",
                                         "x = x + x;",
                                         "a = scalar(0);x = x+a*ffn(x)\n"};
    for (size_t i = 0; i < TB_LEN(pieces); i++) {
        tb_buf text;
        tb_buf_init(&text, T->ctx);
        tb_buf_puts(&text, "expect: a, b, c\nblock:\n");
        while (text.len < 100000)
            tb_buf_puts(&text, pieces[i]);
        tb_buf_puts(&text, "x = x\n");
        survives(T, tb_buf_str(&text), text.len);
        tb_buf_clear(&text);
    }
}

TB_TEST(no_memory)
{
    static const char text[] =
        "f(v) = v\nstem: x = norm(x)\nblock: a = scalar(0)\n"
        "n = norm(x); x = drop(x) + a*F(n)\nexpect: no-skip\n"
        "init: attn.o: normal(0.02/N)\nmodel: tied = true\n";
    const tb_settings unset = TB_SETTINGS_UNSET;
    size_t blocks = tb_ctx_blocks(T->ctx);
    tb_status s = TB_ERR_MEMORY;
    for (size_t n = 1; n < 5000 && s == TB_ERR_MEMORY; n++) {
        tb_block *b;
        tb_lint *l = NULL;
        char *out = NULL;
        tb_ctx_fail_alloc_at(T->ctx, n);
        s = tb_block_parse(T->ctx, NULL, text, sizeof text - 1, TB_PARSE_BLOCK,
                           &b);
        if (s == TB_OK)
            s = tb_lint_create(T->ctx, b, &unset, &l);
        if (s == TB_OK)
            s = tb_lint_text(l, NULL, 40, &out);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        tb_text_free(T->ctx, out);
        tb_lint_destroy(l);
        tb_block_destroy(T->ctx, b);
        TB_CHECK(T, tb_ctx_blocks(T->ctx) == blocks);
    }
    TB_OKAY(T, s);
}
