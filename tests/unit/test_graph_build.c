/* SPDX-License-Identifier: MIT */
/* From text to graph: every ruling on the language that the builder keeps,
 * and every message it gives. */
#include "unit/graph_help.h"

#include <stdio.h>
#include <time.h>

static const tb_settings unset = TB_SETTINGS_UNSET;

static void params(tb_test *T, const char *what, const char *want)
{
    gr_check(T, what, NULL, GR_LAYER, 1, gr_params, want);
}

static void refused(tb_test *T, const char *what, const char *want)
{
    gr_refused(T, what, NULL, GR_LAYER, want);
}

/* The dump of both texts must be the same. */
static void same(tb_test *T, const char *a, const char *b)
{
    gr_case c;
    tb_buf dump;
    TB_OKAY(T, gr_open(T->ctx, &c, a, NULL, GR_LAYER, 1));
    tb_buf_init(&dump, T->ctx);
    tb_graph_dump(c.g, &dump);
    gr_check(T, b, NULL, GR_LAYER, 1, gr_dump, tb_buf_str(&dump));
    tb_buf_clear(&dump);
    gr_close(T->ctx, &c);
}

/* --- slots of every built-in block ---------------------------------------- */

#define ATTN                                                                   \
    "attn.q.weight attn.q.bias attn.k.weight attn.k.bias attn.v.weight "       \
    "attn.v.bias attn.o.weight attn.o.bias"
#define FFN       "ffn.up.weight ffn.up.bias ffn.down.weight ffn.down.bias"
#define ATTN_NORM "attn.norm.gain attn.norm.bias"
#define FFN_NORM  "ffn.norm.gain ffn.norm.bias"

TB_TEST(slots_of_every_built_in)
{
    static const struct {
        const char *name, *want;
    } cases[] = {
        {"deepnorm", ATTN " " ATTN_NORM " " FFN " " FFN_NORM},
        {"gpt-2", ATTN_NORM " " ATTN " " FFN_NORM " " FFN},
        {"layerscale",
         "attn.vector " ATTN_NORM " " ATTN " ffn.vector " FFN_NORM " " FFN},
        {"no-skip", ATTN " " FFN},
        {"olmo-2",
         "attn.q.weight attn.q.bias attn.inner_norm.gain attn.k.weight "
         "attn.k.bias attn.inner_norm2.gain attn.v.weight attn.v.bias "
         "attn.o.weight attn.o.bias attn.norm.gain " FFN " ffn.norm.gain"},
        {"output-norm", ATTN " attn.norm.gain " FFN " ffn.norm.gain"},
        {"parallel", "norm.gain norm.bias " ATTN " " FFN},
        {"parallel-two-norms",
         "norm.gain norm.bias " ATTN " norm2.gain norm2.bias " FFN},
        {"plain", ATTN " " FFN},
        {"post-ln", ATTN " " ATTN_NORM " " FFN " " FFN_NORM},
        {"pre-ln-no-final", ATTN_NORM " " ATTN " " FFN_NORM " " FFN},
        {"pre-ln", ATTN_NORM " " ATTN " " FFN_NORM " " FFN},
        {"rezero", "a " ATTN " " FFN},
        {"sandwich",
         ATTN_NORM " " ATTN " attn.norm2.gain attn.norm2.bias " FFN_NORM " " FFN
                   " ffn.norm2.gain ffn.norm2.bias"},
    };
    for (size_t i = 0; i < TB_LEN(cases); i++)
        params(T, cases[i].name, cases[i].want);
    TB_CHECK(T, tb_builtin_count() >= TB_LEN(cases));
    for (size_t i = 0; i < tb_builtin_count(); i++) {
        gr_case c;
        TB_OKAY(T, gr_open(T->ctx, &c, tb_builtin_name(i), NULL, GR_STEM, 1));
        gr_close(T->ctx, &c);
        TB_OKAY(T, gr_open(T->ctx, &c, tb_builtin_name(i), NULL, GR_TAIL, 1));
        gr_close(T->ctx, &c);
    }
}

TB_TEST(stem_and_tail)
{
    tb_settings tied = unset;
    tied.tied = 1;
    tied.positions = 0;
    gr_check(T, "pre-ln", NULL, GR_STEM, 1, gr_params,
             "embed.token.weight embed.position.weight");
    gr_check(T, "pre-ln", &tied, GR_STEM, 1, gr_params, "embed.token.weight");
    gr_check(T, "pre-ln", NULL, GR_TAIL, 1, gr_params,
             "final.norm.gain final.norm.bias head.weight");
    gr_check(T, "pre-ln", &tied, GR_TAIL, 1, gr_params,
             "final.norm.gain final.norm.bias embed.token.weight");
    /* stem and tail share the model's top level, so a name says its place */
    gr_check(T, "stem: a = scalar(1); x = a*x\nblock: x = F(x)", NULL, GR_STEM,
             1, gr_params, "embed.token.weight embed.position.weight stem.a");
    gr_check(T, "x = F(x)\nfinal: head = linear(d, d); x = head(x)", NULL,
             GR_TAIL, 1, gr_params,
             "final.head.weight final.head.bias head.weight");
}

/* --- ruling 1 ---------------------------------------------------------------
 */

TB_TEST(f_repeats_the_section)
{
    same(T, "x = x + F(norm(x))",
         "x = x + attn(norm(x)); x = x + ffn(norm(x))");
    same(T, "x = norm(x + F(x))",
         "x = norm(x + attn(x)); x = norm(x + ffn(x))");
    /* through a definition too */
    same(T, "f(v) = F(norm(v)); x = x + f(x)", "x = x + F(norm(x))");
    refused(T, "x = x + F(x); x = x + attn(x)",
            "1:15: F and attn in one section: F already stands for every "
            "sublayer\n"
            "    x = x + F(x); x = x + attn(x)\n"
            "                  ^");
    refused(T, "f(v) = ffn(v)\nx = f(x) + F(x)",
            "2:1: F and ffn in one section: F already stands for every "
            "sublayer\n"
            "    x = f(x) + F(x)\n"
            "    ^");
    refused(T, "x = x + attn(ffn(x)) + cross(x)",
            "1:24: cross: needs an encoder: --stack encoder-decoder\n"
            "    x = x + attn(ffn(x)) + cross(x)\n"
            "                           ^");
    refused(T, "attn(x) = o(ffn(x)); x = F(x)",
            "1:13: ffn inside attn: sublayers do not nest\n"
            "    attn(x) = o(ffn(x)); x = F(x)\n"
            "                ^");
}

/* --- ruling 2 ---------------------------------------------------------------
 */

TB_TEST(declarations_are_made_once_and_calls_once_per_use)
{
    params(T, "a = scalar(0); x = x + a*F(x)", "a " ATTN " " FFN);
    params(T, "x = x + scalar(0)*F(x)", "attn.scalar " ATTN " ffn.scalar " FFN);
    params(T, "n = norm(x); x = x + attn(n); x = x + ffn(n)",
           "norm.gain norm.bias " ATTN " " FFN);
    params(T, "w = linear(d, d); x = x + w(x); x = x + w(x) + F(x)",
           "w.weight w.bias " ATTN " " FFN);
    /* changing its value does not make it anew in the next repeat */
    params(T, "a = scalar(0); a = 2*a; x = x + a*F(x)", "a " ATTN " " FFN);
    refused(T, "a = scalar(0); x = a*x; a = scalar(1); x = x + a*F(x)",
            "1:29: a is declared twice\n"
            "    a = scalar(0); x = a*x; a = scalar(1); x = x + a*F(x)\n"
            "                                ^");
    refused(T, "x = linear(d, d)(x)",
            "1:17: no operator before '('; multiplication is written '*'\n"
            "    x = linear(d, d)(x)\n"
            "                    ^");
    refused(T, "x = x + linear(d, d)",
            "1:9: linear: give it a name first: w = linear(d, d), then w(x)\n"
            "    x = x + linear(d, d)\n"
            "            ^");
}

TB_TEST(a_sublayer_called_twice_shares_its_weights)
{
    params(T, "x = x + ffn(norm(x)); x = x + ffn(norm(x))",
           FFN_NORM " " FFN " ffn.norm2.gain ffn.norm2.bias");
}

/* --- ruling 3 ---------------------------------------------------------------
 */

TB_TEST(streams_cross_and_locals_end)
{
    const char *two = "stem: y = x\nblock: y = y + F(x); x = x + y";
    gr_check(T, two, NULL, GR_LAYER, 1, gr_boundaries, "attn+ffn");
    gr_check(T,
             "stem: y = norm(x); a = 2*N; s = scalar(1); b = 2*s\n"
             "block: x = x + F(y)",
             NULL, GR_STEM, 1, gr_params,
             "embed.token.weight embed.position.weight stem.norm.gain "
             "stem.norm.bias stem.s");
    gr_case c;
    TB_OKAY(T, gr_open(T->ctx, &c, two, NULL, GR_LAYER, 1));
    TB_CHECK(T, c.g->ninputs == 2 && c.g->noutputs == 2);
    TB_STR(T, c.g->nodes[c.g->inputs[1]].name, "y");
    TB_STR(T, c.g->outputs[1].name, "y");
    gr_close(T->ctx, &c);
    refused(T, "stem: a = 2*N\nblock: x = a*x + F(x)",
            "2:12: a is read before it is assigned\n"
            "    block: x = a*x + F(x)\n"
            "               ^");
    gr_refused(T, "x = F(x)\nfinal: x = x + F(x)", NULL, GR_TAIL,
               "2:16: F belongs in the block section, not in final\n"
               "    final: x = x + F(x)\n"
               "                   ^");
}

TB_TEST(reading_and_assigning_names)
{
    refused(T, "x = x + skip",
            "1:9: skip is read before it is assigned\n"
            "    x = x + skip\n"
            "            ^");
    refused(T, "norms = norm(x); x = x + F(norma)",
            "1:28: norma is read before it is assigned; did you mean norms?\n"
            "    norms = norm(x); x = x + F(norma)\n"
            "                               ^");
    refused(T, "x = x + F",
            "1:9: F is a function; did you mean F(...)?\n"
            "    x = x + F\n"
            "            ^");
    refused(T, "f(v) = v; x = x + f",
            "1:19: f is a function; did you mean f(...)?\n"
            "    f(v) = v; x = x + f\n"
            "                      ^");
    refused(T, "x = K*x + F(x)",
            "1:5: K is the number of sublayers: it cannot be read yet\n"
            "    x = K*x + F(x)\n"
            "        ^");
    refused(T, "x = x + memory",
            "1:9: memory: needs an encoder: --stack encoder-decoder\n"
            "    x = x + memory\n"
            "            ^");
    refused(T, "x = 2",
            "1:1: x is not a stream at the end of the section\n"
            "    x = 2\n"
            "    ^");
    refused(T, "w = linear(d, 2*d); x = w(x) + w(x)",
            "1:30: x leaves with width 128, wanted d = 64\n"
            "    w = linear(d, 2*d); x = w(x) + w(x)\n"
            "                                 ^");
}

/* --- ruling 4 ---------------------------------------------------------------
 */

TB_TEST(final_and_stem)
{
    gr_refused(T, "x = F(x)\nfinal: x = 1", NULL, GR_TAIL,
               "2:1: x is not a stream at the end of the section\n"
               "    final: x = 1\n"
               "    ^");
    gr_refused(T, "x = F(x)\nfinal: y = norm(x); x = x + attn(y)", NULL,
               GR_TAIL,
               "2:29: attn belongs in the block section, not in final\n"
               "    final: y = norm(x); x = x + attn(y)\n"
               "                                ^");
    gr_refused(T, "stem: x = F(x)\nblock: x = F(x)", NULL, GR_STEM,
               "1:11: F belongs in the block section, not in stem\n"
               "    stem: x = F(x)\n"
               "              ^");
    gr_refused(T, "x = F(x)\nfinal: w = linear(d, 3*d); x = w(x)", NULL,
               GR_TAIL,
               "2:32: x leaves with width 192, wanted d = 64\n"
               "    final: w = linear(d, 3*d); x = w(x)\n"
               "                                   ^");
}

/* --- ruling 5 ---------------------------------------------------------------
 */

TB_TEST(arithmetic)
{
    refused(T, "w = linear(d, d); x = w*x",
            "1:23: w is a linear: write w(x), not w*x\n"
            "    w = linear(d, d); x = w*x\n"
            "                          ^");
    refused(T, "a = scalar(1); x = a(x)",
            "1:20: a is a value, not a function: write a * (...)\n"
            "    a = scalar(1); x = a(x)\n"
            "                       ^");
    refused(T, "x = x^2",
            "1:6: ^: works on constants only\n"
            "    x = x^2\n"
            "         ^");
    refused(T, "x = 2^x",
            "1:6: ^: works on constants only\n"
            "    x = 2^x\n"
            "         ^");
    refused(T, "x = 1/x",
            "1:6: /: only constants stand on its right\n"
            "    x = 1/x\n"
            "         ^");
    refused(T, "x = x/vector(1)",
            "1:6: div: only a scalar, or a stream under a stream, can stand "
            "under a division\n"
            "    x = x/vector(1)\n"
            "         ^");
    refused(T, "x = x + 3*vector(0)",
            "1:7: add: both sides must have the same shape; shift(x, b) adds b "
            "to every token\n"
            "    x = x + 3*vector(0)\n"
            "          ^");
    refused(T, "x = min(x, 2)",
            "1:9: min: got a stream, wanted a constant\n"
            "    x = min(x, 2)\n"
            "            ^");
    gr_check(T, "x = x/2 + F(x)/sqrt(2)", NULL, GR_LAYER, 1, gr_lane,
             "scaled 0 0.25");
    gr_check(T, "x = x/max(1, 2, 4) + F(x)", NULL, GR_LAYER, 1, gr_lane,
             "scaled 0 0.0625");
}

TB_TEST(widths_are_symbols)
{
    tb_settings wide = unset;
    wide.ffn = 256;
    /* 256 = 4*d today, but not the same expression */
    gr_refused(T,
               "w = linear(d, 256); u = linear(d, 4*d); b = linear(4*d, d)\n"
               "x = b(w(x) + u(x))",
               &wide, GR_LAYER,
               "2:12: widths differ: 256 and 4*d = 256\n"
               "    x = b(w(x) + u(x))\n"
               "               ^");
    refused(T, "w = linear(d, d/7); x = w(x)",
            "1:16: width: got 9.142857142857142, wanted a whole number from 1\n"
            "    w = linear(d, d/7); x = w(x)\n"
            "                   ^");
    refused(T, "w = linear(2*d, d); x = w(x)",
            "1:25: w(...): got width 64, wanted 128\n"
            "    w = linear(2*d, d); x = w(x)\n"
            "                            ^");
    refused(T, "w = linear(x, d); x = w(x)",
            "1:12: linear: got a stream, wanted a constant\n"
            "    w = linear(x, d); x = w(x)\n"
            "               ^");
}

TB_TEST(division_by_zero_is_found_when_constants_are_folded)
{
    gr_case c;
    double attrs[64][TB_OP_ATTRS];
    TB_OKAY(T, gr_open(T->ctx, &c, "x = x/(l - 2) + F(x)", NULL, GR_LAYER, 1));
    TB_REQUIRE(T, c.g->nnodes < 64);
    TB_OKAY(T, tb_graph_attrs(T->ctx, c.g, &c.sizes, 1, attrs));
    TB_FAILS(T, tb_graph_attrs(T->ctx, c.g, &c.sizes, 2, attrs), TB_ERR_PARSE,
             "1:6: division by zero\n"
             "    x = x/(l - 2) + F(x)\n"
             "         ^");
    gr_close(T->ctx, &c);
}

/* C137: unary minus against power, constants on the skip. */
TB_TEST(operator_rules)
{
    gr_case c;
    TB_OKAY(T, gr_open(T->ctx, &c, "x = x + -0.5^2*F(x)", NULL, GR_LAYER, 1));
    TB_NEAR(T, gr_attr(T, &c, "affine", TB_ATTR_AFFINE_SCALE, 1), -0.25, 0);
    gr_close(T->ctx, &c);
    gr_check(T, "x = 2*x + F(norm(x))", NULL, GR_LAYER, 1, gr_lane,
             "scaled 0 4");
    gr_check(T, "x = (x + F(norm(x)))/2", NULL, GR_LAYER, 1, gr_lane,
             "scaled 0 0.25");
    gr_check(T, "x = x \xE2\x88\x92 F(norm(x))", NULL, GR_LAYER, 1, gr_lane,
             "clean 0 1");
    same(T,
         "x = x + 2\xC2\xB7"
         "F(x)",
         "x = x + 2*F(x)");
}

/* --- ruling 6 ---------------------------------------------------------------
 */

static void check_eps(tb_test *T, const char *what, const tb_settings *s,
                      double eps, tb_origin from)
{
    gr_case c;
    TB_OKAY(T, gr_open(T->ctx, &c, what, s, GR_LAYER, 1));
    TB_NEAR(T, gr_attr(T, &c, "layernorm", TB_ATTR_NORM_EPS, 1), eps, 0);
    TB_CHECK(T, c.sizes.eps_from == from);
    gr_close(T->ctx, &c);
}

TB_TEST(eps_of_call_over_options_over_model_over_default)
{
    tb_settings option = unset;
    option.eps = 1e-3;
    check_eps(T, "x = norm(x + F(x))", NULL, 1e-5, TB_FROM_DEFAULT);
    check_eps(T, "x = norm(x + F(x))\nmodel: eps = 1e-4", NULL, 1e-4,
              TB_FROM_MODEL_SECTION);
    check_eps(T, "x = norm(x + F(x))\nmodel: eps = 1e-4", &option, 1e-3,
              TB_FROM_OPTION);
    check_eps(T, "x = norm(x + F(x), eps=1e-2)\nmodel: eps = 1e-4", &option,
              1e-2, TB_FROM_OPTION);
    check_eps(T, "x = norm(x + F(x), eps=0)", NULL, 0, TB_FROM_DEFAULT);
    check_eps(T, "x = norm(x + F(x), eps=1e-5/d)", NULL, 1e-5 / 64,
              TB_FROM_DEFAULT);
    static const double bad[] = {-1e-5, -2};
    for (size_t i = 0; i < TB_LEN(bad); i++) {
        option.eps = bad[i];
        gr_refused(T, "x = norm(x)", &option, GR_LAYER,
                   i ? "eps: got -2, wanted 0 or more"
                     : "eps: got -1e-5, wanted 0 or more");
    }
    option.eps = __builtin_nan("");
    gr_refused(T, "x = norm(x)", &option, GR_LAYER,
               "eps: got nan, wanted 0 or more");
    option.eps = __builtin_inf();
    gr_refused(T, "x = norm(x)", &option, GR_LAYER,
               "eps: got inf, wanted 0 or more");
    refused(T, "x = norm(x, eps=-1)",
            "1:17: eps: got -1, wanted 0 or more\n"
            "    x = norm(x, eps=-1)\n"
            "                    ^");
    refused(T, "x = norm(x, eps=x)",
            "1:17: eps: got a stream, wanted a constant\n"
            "    x = norm(x, eps=x)\n"
            "                    ^");
    refused(T, "x = norm(x)\nmodel: eps = -1",
            "2:8: eps: got -1, wanted 0 or more\n"
            "    model: eps = -1\n"
            "           ^");
}

TB_TEST(kind_of_norm)
{
    tb_settings option = unset;
    option.norm = "layernorm";
    const char *rms = "x = norm(x + F(x))\nmodel: norm = rmsnorm";
    params(T, rms, ATTN " attn.norm.gain " FFN " ffn.norm.gain");
    gr_check(T, rms, &option, GR_LAYER, 1, gr_params,
             ATTN " " ATTN_NORM " " FFN " " FFN_NORM);
    gr_case c;
    TB_OKAY(T, gr_open(T->ctx, &c, rms, NULL, GR_LAYER, 1));
    TB_STR(T, c.sizes.s.norm, "rmsnorm");
    TB_CHECK(T, c.sizes.norm_from == TB_FROM_MODEL_SECTION);
    gr_close(T->ctx, &c);
    TB_OKAY(T, gr_open(T->ctx, &c, rms, &option, GR_LAYER, 1));
    TB_CHECK(T, c.sizes.norm_from == TB_FROM_OPTION);
    gr_close(T->ctx, &c);
    /* a kind named in the call is not the settings' business */
    gr_check(T, "x = rmsnorm(x + F(x))", &option, GR_LAYER, 1, gr_params,
             ATTN " attn.norm.gain " FFN " ffn.norm.gain");
    option.norm = "groupnorm";
    gr_refused(T, "x = norm(x)", &option, GR_LAYER,
               "norm: got groupnorm, wanted one of layernorm rmsnorm scalenorm "
               "l2norm batchnorm powernorm dyt derf");
    refused(T, "x = norm(x, momentum=0.2)",
            "1:13: norm: unknown option momentum, wanted eps eps_mode variance "
            "unbiased groups gain bias\n"
            "    x = norm(x, momentum=0.2)\n"
            "                ^");
    refused(T, "x = batchnorm(x, momentum=0)",
            "1:27: momentum: got 0, wanted 0 < momentum <= 1\n"
            "    x = batchnorm(x, momentum=0)\n"
            "                              ^");
    refused(T, "x = batchnorm(x, warmup=1)",
            "1:18: batchnorm: unknown option warmup, wanted eps eps_mode "
            "momentum keep\n"
            "    x = batchnorm(x, warmup=1)\n"
            "                     ^");
    refused(T, "x = powernorm(x, warmup=-1)",
            "1:25: warmup: got -1, wanted 0 or more steps\n"
            "    x = powernorm(x, warmup=-1)\n"
            "                            ^");
    refused(T, "x = batchnorm(x, eps_mode=clamp)",
            "1:5: batchnorm: its eps can be inside, outside, dtype or none\n"
            "    x = batchnorm(x, eps_mode=clamp)\n"
            "        ^");
    refused(T, "x = batchnorm(x, keep=x)",
            "1:5: batchnorm: its mask must be a stream of width 1\n"
            "    x = batchnorm(x, keep=x)\n"
            "        ^");
    option.norm = "powernorm";
    gr_refused(T, "x = norm(x, groups=2)", &option, GR_LAYER,
               "1:13: groups: powernorm takes no such option\n"
               "    x = norm(x, groups=2)\n"
               "                ^");
    refused(T, "x = dyt(x, eps=1)",
            "1:12: eps: dyt takes no options\n"
            "    x = dyt(x, eps=1)\n"
            "               ^");
    refused(T, "x = norm(x, eps_mode=outsid)",
            "1:22: eps_mode: wanted one of inside outside clamp clamp_square "
            "dtype none\n"
            "    x = norm(x, eps_mode=outsid)\n"
            "                         ^");
    refused(T, "x = norm(x, variance=2)",
            "1:22: variance: wanted one of twopass onepass onepass_clipped\n"
            "    x = norm(x, variance=2)\n"
            "                         ^");
    refused(T, "x = norm(x, unbiased=2)",
            "1:22: unbiased: got 2, wanted true or false\n"
            "    x = norm(x, unbiased=2)\n"
            "                         ^");
    refused(T, "x = norm(x, groups=3)",
            "1:20: groups: 64 features cannot be parted so\n"
            "    x = norm(x, groups=3)\n"
            "                       ^");
    refused(T, "w = linear(d, 3); x = x + norm(w(x), groups=heads)",
            "1:45: groups: 3 features cannot be parted so\n"
            "    w = linear(d, 3); x = x + norm(w(x), groups=heads)\n"
            "                                                ^");
    refused(T, "x = rmsnorm(x, unbiased=true)",
            "1:5: rmsnorm: only a variance about the mean has an n-1 form\n"
            "    x = rmsnorm(x, unbiased=true)\n"
            "        ^");
    refused(T, "x = norm(x, epsilon=1)",
            "1:13: norm: unknown option epsilon, wanted eps eps_mode variance "
            "unbiased groups gain bias\n"
            "    x = norm(x, epsilon=1)\n"
            "                ^");
}

/* The options of a norm, from the call or from model:. */
TB_TEST(conventions_of_norms)
{
    static const struct {
        const char *text;
        double mode, variance, unbiased, groups;
    } rows[] = {
        {"x = norm(x)", TB_EPS_DEFAULT, TB_VARIANCE_TWOPASS, 0, 0},
        {"x = norm(x, eps_mode=inside, unbiased=true)", TB_EPS_INSIDE, 0, 1, 0},
        {"x = norm(x, eps_mode=outside, unbiased=0)", TB_EPS_OUTSIDE, 0, 0, 0},
        {"x = norm(x, eps_mode=clamp, groups=4)", TB_EPS_CLAMP, 0, 0, 4},
        {"x = norm(x, eps_mode=clamp_square, groups=heads)",
         TB_EPS_CLAMP_SQUARE, 0, 0, 8},
        {"n = 2*h; x = norm(x, eps_mode=dtype, groups=n)", TB_EPS_DTYPE, 0, 0,
         16},
        {"x = norm(x, eps_mode=none, variance=onepass)", TB_EPS_NONE,
         TB_VARIANCE_ONEPASS, 0, 0},
        {"x = norm(x)\nmodel: eps_mode = outside; variance = onepass_clipped",
         TB_EPS_OUTSIDE, TB_VARIANCE_ONEPASS_CLIPPED, 0, 0},
        {"x = norm(x, eps_mode=clamp, variance=twopass)\n"
         "model: eps_mode = outside; variance = onepass",
         TB_EPS_CLAMP, TB_VARIANCE_TWOPASS, 0, 0},
    };
    tb_settings s = unset;
    s.heads = 8;
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        gr_case c;
        TB_OKAY(T, gr_open(T->ctx, &c, rows[i].text, &s, GR_LAYER, 1));
        const double want[] = {rows[i].mode, rows[i].variance, rows[i].unbiased,
                               rows[i].groups};
        for (int a = 0; a < 4; a++)
            TB_NEAR(T,
                    gr_attr(T, &c, "layernorm", TB_ATTR_NORM_EPS_MODE + a, 1),
                    want[a], 0);
        gr_close(T->ctx, &c);
    }
}

TB_TEST(parameters_of_norms)
{
    params(T, "x = scalenorm(x) + l2norm(F(x))",
           "attn.norm.length " ATTN " ffn.norm.length " FFN);
    params(T, "x = norm(F(x))\nmodel: norm = dyt",
           ATTN " attn.norm.alpha attn.norm.gain attn.norm.bias " FFN
                " ffn.norm.alpha ffn.norm.gain ffn.norm.bias");
    params(T, "x = derf(x)", "norm.alpha norm.shift norm.gain norm.bias");
}

/* The base of the call, of the settings, or the op's own; heads by width. */
TB_TEST(rotary_positions)
{
    static const struct {
        const char *text;
        double heads, base;
    } rows[] = {
        {"x = rope(x)", 4, 0},
        {"x = rope(x, base=5e5)", 4, 5e5},
        {"x = rope(x)\nmodel: rope_base = 100*h", 4, 400},
        {"x = rope(x, base=d)\nmodel: rope_base = 7", 4, 64},
        {"attn(x) = o(mha(q(x), rope(k(x)), v(x)))\nx = x + attn(x)", 2, 0},
    };
    tb_settings s = unset;
    s.kv_heads = 2;
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        gr_case c;
        TB_OKAY(T, gr_open(T->ctx, &c, rows[i].text, &s, GR_LAYER, 1));
        TB_NEAR(T, gr_attr(T, &c, "rope", TB_ATTR_ROPE_HEADS, 1), rows[i].heads,
                0);
        TB_NEAR(T, gr_attr(T, &c, "rope", TB_ATTR_ROPE_BASE, 1), rows[i].base,
                0);
        gr_close(T->ctx, &c);
    }
}

/* With fewer key heads the parts stay as wide as a head. */
TB_TEST(groups_follow_the_heads)
{
    tb_settings s = unset;
    gr_case c;
    s.heads = 8;
    s.kv_heads = 2;
    TB_OKAY(T, gr_open(T->ctx, &c,
                       "attn(x) = o(mha(q(x), norm(k(x), groups=heads), v(x)))"
                       "\nx = x + F(x)",
                       &s, GR_LAYER, 1));
    TB_NEAR(T, gr_attr(T, &c, "layernorm", TB_ATTR_NORM_GROUPS, 1), 2, 0);
    for (int i = 0; i < c.g->nparams; i++)
        if (c.g->params[i].role == TB_ROLE_GAIN)
            TB_CHECK(T, c.g->params[i].shape.width == 8);
    gr_close(T->ctx, &c);
}

TB_TEST(settings)
{
    params(T, "x = F(x)\nmodel: bias = false",
           "attn.q.weight attn.k.weight attn.v.weight attn.o.weight "
           "ffn.up.weight ffn.down.weight");
    gr_case c;
    TB_OKAY(T, gr_open(T->ctx, &c,
                       "x = F(x)\nmodel:\n ffn = h*32\n heads = 8\n"
                       " kv_heads = h/4\n dropout = 0.1",
                       NULL, GR_LAYER, 1));
    TB_CHECK(T, c.sizes.s.ffn == 256 && c.sizes.s.heads == 8 &&
                    c.sizes.s.kv_heads == 2);
    gr_close(T->ctx, &c);
    refused(T, "x = F(x)\nmodel: activation = relu",
            "2:8: activation: this setting has no effect yet\n"
            "    model: activation = relu\n"
            "           ^");
    refused(T, "x = F(x)\nmodel: heads = 3",
            "width: got 64, wanted a multiple of 3 heads");
    refused(T, "x = F(x)\nmodel: heads = 0.5",
            "2:8: heads: got 0.5, wanted a whole number from 1\n"
            "    model: heads = 0.5\n"
            "           ^");
    refused(T, "x = F(x)\nmodel: dropout = 1",
            "dropout: got 1, wanted 0 <= p < 1");
}

TB_TEST(kinds_of_positions)
{
    tb_settings s = unset;
    gr_check(T, "x = F(x)\nmodel: positions = sinusoidal", NULL, GR_STEM, 1,
             gr_ops, "embed sinusoid");
    s.positions = TB_POSITIONS_NONE;
    gr_check(T, "x = F(x)\nmodel: positions = sinusoidal", &s, GR_STEM, 1,
             gr_ops, "embed");
    gr_check(T, "x = F(x)\nmodel: positions = rope", NULL, GR_STEM, 1, gr_ops,
             "embed");
    gr_check(T, "x = F(x)\nmodel: positions = rope", NULL, GR_LAYER, 1, gr_ops,
             "linear rope linear rope linear mha linear branch linear gelu "
             "linear branch");
    /* an attn of one's own says rope itself */
    gr_check(T, "attn(x) = v(x)\nx = F(x)\nmodel: positions = rope", NULL,
             GR_LAYER, 1, gr_ops, "linear branch linear gelu linear branch");
}

TB_TEST(one_stack_or_two)
{
    tb_settings s = unset;
    gr_case c;
    s.depth = 3;
    s.stack = TB_STACKS_ENCODER;
    TB_OKAY(T, gr_open(T->ctx, &c, "x = F(x)", &s, GR_LAYER, 1));
    TB_CHECK(T, c.sizes.N == 3 && c.sizes.M == 3 && !c.sizes.s.causal);
    gr_close(T->ctx, &c);
    s.causal = 1;
    gr_refused(T, "x = F(x)", &s, GR_LAYER,
               "mask: got causal, but the tokens of an encoder see each other");
    s.causal = -1;
    s.decoder_depth = 5;
    gr_refused(T, "x = F(x)", &s, GR_LAYER,
               "decoder depth: got 5 for a model of one stack, which has one "
               "depth");
    s.stack = TB_STACKS_BOTH;
    TB_OKAY(T, gr_open(T->ctx, &c, "x = F(x)\nmodel: ffn = M + N", &s, GR_LAYER,
                       1));
    TB_CHECK(T, c.sizes.N == 3 && c.sizes.M == 5 && c.sizes.s.ffn == 8);
    gr_close(T->ctx, &c);
}

TB_TEST(a_head_over_classes)
{
    tb_settings s = unset;
    gr_case c;
    s.classes = 7;
    TB_OKAY(T, gr_open(T->ctx, &c, "x = F(x)", &s, GR_TAIL, 1));
    TB_CHECK(T, c.g->params[c.g->nparams - 1].shape.height == 7);
    gr_close(T->ctx, &c);
    s.tied = 1;
    gr_refused(T, "x = F(x)", &s, GR_TAIL,
               "tied: a head over 7 classes cannot be the embedding");
}

/* --- rulings 7 and 8 --------------------------------------------------------
 */

TB_TEST(first_section_that_matches)
{
    const char *mix = "block[l <= N/4]: x = norm(x + F(x))\n"
                      "block: x = x + F(norm(x))\nfinal: x = norm(x)";
    tb_settings deep = unset;
    deep.depth = 8;
    for (size_t l = 1; l <= 8; l++)
        gr_check(T, mix, &deep, GR_LAYER, l, gr_lane,
                 l <= 2 ? "toll 2 1" : "clean 0 1");
    const char *every = "block[l/3 == floor(l/3)]: x = F(x)\n"
                        "block[l == 3]: x = norm(x)\nblock: x = x + F(x)";
    gr_check(T, every, &deep, GR_LAYER, 3, gr_lane, "none 0 0");
    gr_check(T, every, &deep, GR_LAYER, 4, gr_lane, "clean 0 1");
    gr_refused(T, "block[l >= 2]: x = F(x)", &deep, GR_LAYER,
               "block: no block section holds for block l = 1 of N = 8");
    gr_refused(T, "final: x = norm(x)", &deep, GR_LAYER,
               "block: it has no block section, wanted one");
}

TB_TEST(constants_are_folded_per_layer)
{
    tb_settings deep = unset;
    deep.depth = 8;
    gr_case c;
    TB_OKAY(T, gr_open(T->ctx, &c, "x = x + (l/N + k)*F(norm(x, eps=1e-5*l))",
                       &deep, GR_LAYER, 1));
    for (size_t l = 1; l <= 8; l++) { /* the last affine is that of k = 2 */
        TB_NEAR(T, gr_attr(T, &c, "affine", TB_ATTR_AFFINE_SCALE, l),
                (double)l / 8 + 2, 0);
        TB_NEAR(T, gr_attr(T, &c, "layernorm", TB_ATTR_NORM_EPS, l),
                1e-5 * (double)l, 1e-18);
    }
    gr_close(T->ctx, &c);
    /* what only one layer refuses is found when its constants are folded */
    TB_OKAY(T, gr_open(T->ctx, &c, "x = norm(x + F(x), eps=3-l)", &deep,
                       GR_LAYER, 1));
    double(*attrs)[TB_OP_ATTRS] =
        tb_arena_alloc(&c.arena, (size_t)c.g->nnodes * sizeof *attrs);
    TB_OKAY(T, tb_graph_attrs(T->ctx, c.g, &c.sizes, 3, attrs));
    TB_FAILS(T, tb_graph_attrs(T->ctx, c.g, &c.sizes, 4, attrs), TB_ERR_PARSE,
             "in block l = 4");
    gr_close(T->ctx, &c);
    refused(T, "w = linear(d, l*d); x = w(x)",
            "1:15: 'l' has no value here\n"
            "    w = linear(d, l*d); x = w(x)\n"
            "                  ^");
}

/* --- ruling 9 ---------------------------------------------------------------
 */

TB_TEST(weights_of_sublayers)
{
    refused(T, "x = q(x)",
            "1:5: q(...) is a weight of attn: it belongs inside attn(x) = ...\n"
            "    x = q(x)\n"
            "        ^");
    refused(
        T, "ffn(x) = down(q(x)); x = x + ffn(x)",
        "1:15: q(...) is a weight of attn: it belongs inside attn(x) = ...\n"
        "    ffn(x) = down(q(x)); x = x + ffn(x)\n"
        "                  ^");
    params(T, "w = linear(d, d, bias=false); x = x + w(x)", "w.weight");
    params(T, "w = linear(d, d, bias=1); x = x + w(x)", "w.weight w.bias");
    refused(T, "w = linear(d, d, bias=2); x = x + w(x)",
            "1:23: bias: got 2, wanted true or false\n"
            "    w = linear(d, d, bias=2); x = x + w(x)\n"
            "                          ^");
    refused(T, "attn(x, y) = o(x); x = attn(x)",
            "1:1: attn: got 2 parameters, wanted 1\n"
            "    attn(x, y) = o(x); x = attn(x)\n"
            "    ^");
    refused(T, "ffn() = 1; x = ffn(x)",
            "1:1: ffn: got 0 parameters, wanted 1\n"
            "    ffn() = 1; x = ffn(x)\n"
            "    ^");
    refused(T, "ffn(x) = 2; x = ffn(x)",
            "1:1: ffn: its value is a constant, wanted a stream\n"
            "    ffn(x) = 2; x = ffn(x)\n"
            "    ^");
    /* gated, as Llama writes it */
    params(T, "ffn(x) = down(silu(gate(x)) * up(x)); x = x + ffn(x)",
           "ffn.gate.weight ffn.gate.bias ffn.up.weight ffn.up.bias "
           "ffn.down.weight ffn.down.bias");
}

/* --- ruling 10 --------------------------------------------------------------
 */

TB_TEST(dropout_appears_and_vanishes)
{
    tb_settings dropped = unset;
    dropped.dropout = 0.1;
    const char *attn = "linear linear linear mha linear";
    char want[200];
    tb_format(want, sizeof want, "%s branch add", attn);
    gr_check(T, "x = x + attn(x)", NULL, GR_LAYER, 1, gr_ops, want);
    tb_format(want, sizeof want, "%s drop branch add", attn);
    gr_check(T, "x = x + attn(x)", &dropped, GR_LAYER, 1, gr_ops, want);
    gr_check(T, "x = x + drop(x)", NULL, GR_LAYER, 1, gr_ops, "add");
    gr_check(T, "x = x + drop(x)", &dropped, GR_LAYER, 1, gr_ops, "drop add");
    gr_check(T, "x = x + drop(x, 0.2)", NULL, GR_LAYER, 1, gr_ops, "drop add");
    gr_check(T, "x = x + drop(x, 0)", &dropped, GR_LAYER, 1, gr_ops, "add");
    gr_check(T, "x = F(x)", &dropped, GR_STEM, 1, gr_ops,
             "embed position drop");
    gr_case c; /* 0 in block 1, not in the others */
    TB_OKAY(T, gr_open(T->ctx, &c, "x = x + drop(F(x), 0.1*(l - 1)/N)", NULL,
                       GR_LAYER, 1));
    TB_NEAR(T, gr_attr(T, &c, "drop", TB_ATTR_DROP_P, 1), 0, 0);
    TB_NEAR(T, gr_attr(T, &c, "drop", TB_ATTR_DROP_P, 6), 0.1 * 5 / 6, 1e-16);
    gr_close(T->ctx, &c);
    refused(T, "x = drop(x, 1)",
            "1:13: drop: got rate 1, wanted 0 <= p < 1\n"
            "    x = drop(x, 1)\n"
            "                ^");
    refused(T, "x = drop(x, x)",
            "1:13: drop: got a stream, wanted a constant\n"
            "    x = drop(x, x)\n"
            "                ^");
}

/* --- ruling 11, C026 --------------------------------------------------------
 */

TB_TEST(spellings_of_papers)
{
    same(T, "x_{i+1} = LN(x_i + F(x_i))", "x = layernorm(x + F(x))");
    same(T, "x_{i+1} = x_i + Sublayer(LayerNorm(x_i))",
         "x = x + F(layernorm(x))");
    same(T, "x = x + MultiHeadAttention(LN(x)); x = x + MLP(LN(x))",
         "x = x + F(layernorm(x))");
    same(T, "\xCE\xB3 = vector(1); x = \xCE\xB3 \xE2\x8A\x99 x + F(x)",
         "gamma = vector(1); x = gamma*x + F(x)");
}

TB_TEST(names_hold_values) /* C026 */
{
    same(T, "r = x; x = norm(x); x = attn(x); x = r + x",
         "x = x + attn(norm(x))");
}

/* --- calls ------------------------------------------------------------------
 */

TB_TEST(words_from_elsewhere)
{
    static const char *const words[][2] = {
        {"lm", "LN"},        {"ln", "LN"},       {"swish", "silu"},
        {"f", "F"},          {"rms", "rmsnorm"}, {"attention", "attn"},
        {"dropout", "drop"}, {"mlp", "MLP"},
    };
    for (size_t i = 0; i < TB_LEN(words); i++) {
        char text[80], want[200];
        tb_format(text, sizeof text, "x = x + %s(x)", words[i][0]);
        tb_format(want, sizeof want,
                  "1:9: unknown function %s; did you mean %s?\n    %s\n"
                  "            ^",
                  words[i][0], words[i][1], text);
        refused(T, text, want);
    }
}

TB_TEST(calls_and_suggestions)
{
    refused(T, "x = x + nrom(x)",
            "1:9: unknown function nrom; did you mean norm?\n"
            "    x = x + nrom(x)\n"
            "            ^");
    refused(T, "halve(v) = v/2; x = x + halv(x)",
            "1:25: unknown function halv; did you mean halve?\n"
            "    halve(v) = v/2; x = x + halv(x)\n"
            "                            ^");
    refused(T, "x = x + somethingelse(x)",
            "1:9: unknown function somethingelse\n"
            "    x = x + somethingelse(x)\n"
            "            ^");
    refused(T, "x = norm(x, x)",
            "1:5: norm: got 2 arguments, wanted 1\n"
            "    x = norm(x, x)\n"
            "        ^");
    refused(T, "x = drop()",
            "1:5: drop: got 0 arguments, wanted 1 to 2\n"
            "    x = drop()\n"
            "        ^");
    refused(T, "x = max(1)*x",
            "1:5: max: got 1 argument, wanted 2 or more\n"
            "    x = max(1)*x\n"
            "        ^");
    refused(T, "attn(x) = mha(x, x, x, scale=0)\nx = attn(x)",
            "1:30: scale: got 0, wanted more than 0\n"
            "    attn(x) = mha(x, x, x, scale=0)\n"
            "                                 ^");
    refused(T, "attn(x) = mha(x, x, scale=1)\nx = attn(x)",
            "1:11: mha: got 2 arguments, wanted 3\n"
            "    attn(x) = mha(x, x, scale=1)\n"
            "              ^");
    refused(T, "x = drop_branch(x, 1)",
            "1:20: drop_branch: got rate 1, wanted 0 <= p < 1\n"
            "    x = drop_branch(x, 1)\n"
            "                       ^");
    same(T, "x = x + drop_branch(F(x), 0)", "x = x + F(x)");
    same(T, "x = exp(0)*x + abs(-2)*F(x)", "x = exp(0)*x + abs(-2)*F(x)");
    refused(T, "f(v) = v; x = f(x, x)",
            "1:15: f: got 2 arguments, wanted 1\n"
            "    f(v) = v; x = f(x, x)\n"
            "                  ^");
    refused(T, "f(v) = v; x = f(v=x)",
            "1:17: f: unknown option v\n"
            "    f(v) = v; x = f(v=x)\n"
            "                    ^");
    refused(T, "x = sum(x)",
            "1:5: x leaves with width 1, wanted d = 64\n"
            "    x = sum(x)\n"
            "        ^");
    refused(T, "x = rope(x, base=0)",
            "1:18: base: got 0, wanted more than 0\n"
            "    x = rope(x, base=0)\n"
            "                     ^");
    refused(T, "w = linear(d, 3); x = x + rope(w(x))",
            "1:27: rope: 3 features are no whole number of heads of 16\n"
            "    w = linear(d, 3); x = x + rope(w(x))\n"
            "                              ^");
    refused(T, "x = x\nmodel: rope_base = 0",
            "2:8: rope_base: got 0, wanted more than 0\n"
            "    model: rope_base = 0\n"
            "           ^");
    refused(
        T, "x = (x, x)",
        "1:5: (..., ...): several values are for the last statement of eval\n"
        "    x = (x, x)\n"
        "        ^");
    refused(T, "x = norm(2)",
            "1:10: a constant stands where a stream is needed\n"
            "    x = norm(2)\n"
            "             ^");
    refused(T, "x = norm(scalar(1))",
            "1:5: norm(...): needs a stream\n"
            "    x = norm(scalar(1))\n"
            "        ^");
}

TB_TEST(definitions)
{
    same(T, "f(v) = g(v) + v; g(v) = relu(v); x = f(x)", "x = relu(x) + x");
    same(T, "f(v, c) = c*v; x = x + f(F(x), 2*N)", "x = x + 2*N*F(x)");
    refused(T, "f(v) = f(v); x = f(x)",
            "1:8: f calls itself\n"
            "    f(v) = f(v); x = f(x)\n"
            "           ^");
    refused(T, "f(v) = g(v); g(v) = f(v); x = f(x)",
            "1:21: f calls itself\n"
            "    f(v) = g(v); g(v) = f(v); x = f(x)\n"
            "                        ^");
    refused(T, "attn(v) = attn(v); x = attn(x)",
            "1:11: attn inside attn: sublayers do not nest\n"
            "    attn(v) = attn(v); x = attn(x)\n"
            "              ^");
}

/* --- hostile texts ----------------------------------------------------------
 */

static void repeat(tb_buf *out, const char *text, int n)
{
    for (int i = 0; i < n; i++)
        tb_buf_puts(out, text);
}

/* A text must build, or fail with `want`, in seconds. */
static void survives(tb_test *T, tb_buf *text, gr_part part, const char *want)
{
    gr_case c;
    clock_t start = clock();
    tb_status s = gr_open(T->ctx, &c, tb_buf_str(text), NULL, part, 1);
    if (s == TB_OK) {
        tb_lane_info lane;
        tb_jacobian j;
        tb_buf out;
        TB_CHECK(T, !want);
        TB_CHECK(T, tb_graph_lane(T->ctx, c.g, &c.arena, &lane) == TB_OK);
        for (int mode = 0; mode < 3; mode++) {
            tb_buf_init(&out, T->ctx);
            TB_CHECK(T, tb_jacobian_build(T->ctx, &c.arena, c.g,
                                          (tb_jac_mode)mode, &j) == TB_OK);
            TB_CHECK(T, tb_jacobian_print(T->ctx, &j, TB_NOTE_MATHML, &out) ==
                            TB_OK);
            if (out.len >= 200000)
                tb_test_fail(T, __FILE__, __LINE__, "%.20s: %zu bytes",
                             tb_buf_str(text), out.len);
            tb_buf_clear(&out);
        }
        gr_close(T->ctx, &c);
    } else {
        TB_CHECK(T, want && strstr(tb_error(T->ctx), want));
        if (!want)
            tb_test_fail(T, __FILE__, __LINE__, "%.300s", tb_error(T->ctx));
    }
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (seconds > 20)
        tb_test_fail(T, __FILE__, __LINE__, "%g seconds", seconds);
    tb_buf_clear(text);
}

TB_TEST(a_hundred_thousand_statements)
{
    static const struct {
        const char *head, *again;
        gr_part part;
        const char *want;
    } cases[] = {
        {"", "x=x+x\n", GR_LAYER, NULL},
        {"", "x=x*x\n", GR_LAYER, NULL},
        {"", "x=2*x\n", GR_LAYER, NULL},
        {"", "x=x-relu(x)\n", GR_LAYER, NULL},
        {"", "x=x+F(x)\n", GR_LAYER, NULL},
        {"", "x=x+ffn(x)\n", GR_LAYER, NULL},
        {"a=N\nb=N\n", "x=a*x\nx=b*x\n", GR_LAYER, NULL},
        {"a=N\n", "a=a+1\n", GR_LAYER, "takes too many operations"},
        {"a=N\n", "a=a+a\n", GR_LAYER, "takes too many operations"},
        {"x=x\nstem:\n", "x=2*x\n", GR_STEM, NULL},
    };
    for (size_t i = 0; i < TB_LEN(cases); i++) {
        tb_buf text;
        int n = 100000 / (strlen(cases[i].again) > 8 ? 2 : 1);
        tb_buf_init(&text, T->ctx);
        tb_buf_puts(&text, cases[i].head);
        repeat(&text, cases[i].again, n);
        survives(T, &text, cases[i].part, cases[i].want);
    }
}

TB_TEST(a_stem_of_many_streams)
{
    tb_buf text;
    tb_buf_init(&text, T->ctx);
    tb_buf_puts(&text, "x=x+F(x)\nstem:\n");
    for (int i = 0; i < 30000; i++)
        tb_buf_printf(&text, "y%d=x\n", i);
    survives(T, &text, GR_LAYER, NULL);
}

/* f31 is 2^31 operations; h1000 is a thousand definitions deep. */
TB_TEST(definitions_that_explode)
{
    tb_buf text;
    tb_buf_init(&text, T->ctx);
    tb_buf_puts(&text, "f0(v) = relu(v)\n");
    for (int i = 1; i <= 60; i++)
        tb_buf_printf(&text, "f%d(v) = f%d(v) + f%d(v)\n", i, i - 1, i - 1);
    tb_buf_puts(&text, "x = f60(x)\n");
    survives(T, &text, GR_LAYER, "definitions expand to more than 2");
    tb_buf_init(&text, T->ctx);
    tb_buf_puts(&text, "f0(v) = v\n");
    for (int i = 1; i < 30; i++) {
        tb_buf_printf(&text, "f%d(v) = f%d(v)", i, i - 1);
        repeat(&text, "+v", 900);
        tb_buf_puts(&text, "\n");
    }
    tb_buf_puts(&text, "x = f29(x)\n");
    survives(T, &text, GR_LAYER, "2000 operations in one another");
    tb_buf_init(&text, T->ctx);
    tb_buf_puts(&text, "f0(v) = v + F(v)\n");
    for (int i = 1; i < 999; i++)
        tb_buf_printf(&text, "f%d(v) = f%d(v)\n", i, i - 1);
    tb_buf_puts(&text, "x = f998(x)\n");
    survives(T, &text, GR_LAYER, NULL);
}

/* --- memory -----------------------------------------------------------------
 */

static tb_status all_graphs(tb_ctx *ctx, const char *what, const tb_settings *s)
{
    tb_status status = TB_OK;
    for (int part = 0; part < 3 && status == TB_OK; part++) {
        gr_case c;
        status = gr_open(ctx, &c, what, s, (gr_part)part, 1);
        if (status == TB_OK)
            gr_close(ctx, &c);
    }
    return status;
}

TB_TEST(every_failed_allocation_is_reported)
{
    tb_settings tiny = unset;
    tiny.width = 8;
    tiny.heads = 2;
    tiny.depth = 1;
    const size_t before = tb_ctx_blocks(T->ctx);
    size_t n = 1;
    tb_status s = TB_ERR_MEMORY;
    for (; s != TB_OK && n < 10000; n++) {
        tb_ctx_fail_alloc_at(T->ctx, n);
        s = all_graphs(T->ctx, "pre-ln", &tiny);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        TB_CHECK(T, s == TB_OK || s == TB_ERR_MEMORY);
        TB_CHECK(T, tb_ctx_blocks(T->ctx) == before);
    }
    TB_CHECK(T, s == TB_OK && n > 10);
}

TB_TEST(eval_graphs)
{
    static const char text[] = "f(v) = 2*v\nx = x + F(norm(x))\nf(x)";
    const tb_eval_input in = {"x", {TB_SHAPE_STREAM, 8, 1}};
    tb_settings tiny = unset;
    tiny.width = 8;
    tiny.heads = 2;
    const size_t before = tb_ctx_blocks(T->ctx);
    tb_status s = TB_ERR_MEMORY;
    for (size_t n = 1; s != TB_OK && n < 10000; n++) {
        tb_block *b = NULL;
        tb_arena a;
        tb_sizes sizes;
        tb_graph *g = NULL;
        tb_ctx_fail_alloc_at(T->ctx, n);
        tb_arena_init(&a, T->ctx);
        s = tb_block_parse(T->ctx, NULL, text, sizeof text - 1, TB_PARSE_EVAL,
                           &b);
        if (s == TB_OK)
            s = tb_sizes_resolve(T->ctx, b, &tiny, &sizes);
        if (s == TB_OK)
            s = tb_graph_eval(T->ctx, &a, b, &sizes, &in, 1, &g);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        TB_CHECK(T, s == TB_OK || s == TB_ERR_MEMORY);
        if (s == TB_OK) { /* the value is computed once, after both repeats */
            TB_CHECK(T, g->noutputs == 1 && g->nregions == 2);
            TB_CHECK(T, g->outputs[0].node == g->nnodes - 1);
        }
        tb_arena_clear(&a);
        tb_block_destroy(T->ctx, b);
        TB_CHECK(T, tb_ctx_blocks(T->ctx) == before);
    }
    TB_CHECK(T, s == TB_OK);
}
