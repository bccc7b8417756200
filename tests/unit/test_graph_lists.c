/* SPDX-License-Identifier: MIT */
/* Lists: what a block reads of the blocks below, what it hands on, and what is
 * refused. */
#include "unit/graph_help.h"

#define DENSE                                                                  \
    "stem: past = list(x)\n"                                                   \
    "block: x = x + attn(x); x = x + ffn(x); past = append(past, x)\n"         \
    "  x = mix(vector(onehot(size(past)), size=size(past)), past)\n"

/* "x past.0 -> x past.2": inputs and outputs. */
static tb_status say_ends(tb_ctx *ctx, gr_case *c, tb_buf *out)
{
    (void)ctx;
    for (int i = 0; i < c->g->ninputs; i++)
        tb_buf_printf(out, "%s ", c->g->nodes[c->g->inputs[i]].name);
    tb_buf_puts(out, "->");
    for (int i = 0; i < c->g->noutputs; i++)
        tb_buf_printf(out, " %s", c->g->outputs[i].name);
    for (int i = 0; i < c->g->nlists; i++)
        tb_buf_printf(out, "; %s %d", c->g->lists[i].name, c->g->lists[i].n);
    return tb_buf_status(out);
}

static void ends(tb_test *T, const char *text, gr_part part, size_t l,
                 const char *want)
{
    gr_check(T, text, NULL, part, l, say_ends, want);
}

TB_TEST(a_block_reads_all_before_it)
{
    ends(T, DENSE, GR_STEM, 1, "tokens -> x past.0; past 1");
    ends(T, DENSE, GR_LAYER, 1, "x past.0 -> x past.1; past 2");
    ends(T, DENSE, GR_LAYER, 3, "x past.0 past.1 past.2 -> x past.3; past 4");
}

/* An element is an input only where something reads it. */
TB_TEST(only_what_is_read_enters)
{
    ends(T, DENSE, GR_TAIL, 1, "x targets -> logits loss");
    ends(T, DENSE "final: x = item(past, 2)", GR_TAIL, 1,
         "x past.2 targets -> logits loss");
    ends(T,
         "stem: past = list(x)\n"
         "block: past = append(past, F(x))\n  x = x + item(past, l - 1)\n",
         GR_LAYER, 4, "x past.3 -> x past.7 past.8; past 9");
}

TB_TEST(what_a_list_may_become)
{
    /* begun anew: of one element for ever */
    ends(T, "stem: a = list(x, x)\nblock: x = F(x); a = list(item(a, 0))",
         GR_LAYER, 1, "x a.0 -> x; a 1");
    ends(T, "stem: a = list(x, x)\nblock: x = F(x); a = list(x)", GR_LAYER, 2,
         "x -> x a.0; a 1");
    /* an element that moves */
    ends(T,
         "stem: a = list(x, x)\n"
         "block: x = attn(x); a = list(item(a, 1), item(a, 0))",
         GR_LAYER, 2, "x a.1 a.0 -> x a.0 a.1; a 2");
    /* begun in a block: it ends there */
    ends(T, "a = list(x, F(x)); x = sum(a)", GR_LAYER, 2, "x -> x");
    /* streams of another width may be elements */
    ends(T,
         "stem: a = list(x)\n"
         "block: w = linear(d, 2*d); a = append(a, w(x)); x = attn(x)",
         GR_LAYER, 2, "x -> x a.2; a 3");
}

static void ops(tb_test *T, const char *text, size_t l, const char *want)
{
    gr_check(T, text, NULL, GR_LAYER, l, gr_ops, want);
}

#define EACH(what) "stem: a = list(x)\nblock: a = append(a, x); " what

TB_TEST(a_function_of_each_element)
{
    ops(T, EACH("x = sum(gelu(a))"), 1, "gelu gelu add");
    ops(T, EACH("x = sum(2*a - a/3)"), 1,
        "affine affine affine affine sub sub add");
    ops(T, EACH("x = mean(-a)"), 1, "affine affine add affine");
    ops(T, EACH("x = sum(exp(scalar(1)*a))"), 1, "mul mul exp exp add");
    ops(T, EACH("x = sum(x*a)"), 1, "mul mul add");
    ops(T, EACH("x = mix(concat(dot(a, x)), a)"), 1, "dot dot concat mix");
    ops(T, EACH("x = sum(list(x))"), 1, "");
}

/* One norm, one linear, however long the list. */
TB_TEST(parameters_are_shared)
{
    gr_check(T, EACH("x = sum(norm(a))"), NULL, GR_LAYER, 3, gr_params,
             "norm.gain norm.bias");
    gr_check(T, EACH("w = linear(d, d); x = sum(w(a))"), NULL, GR_LAYER, 3,
             gr_params, "w.weight w.bias");
    ops(T, EACH("w = linear(d, d); x = sum(w(norm(a)))"), 1,
        "layernorm layernorm linear linear add");
}

/* More than an op has inputs: eights of eights, sevens added. */
TB_TEST(long_lists)
{
    ops(T,
        "stem: a = list(x)\n"
        "block: a = append(a, x)\n  x = mix(vector(0, size=size(a)), a)",
        20, "mix mix add mix add");
    ops(T,
        "stem: a = list(x)\n"
        "block: w = linear(size(a)*d, d); u = w(concat(a)); a = append(a, u)",
        17, "concat concat concat concat linear");
}

/* A list may begin with nothing; then there is nothing to make of it. */
TB_TEST(empty_lists)
{
    ends(T, "stem: a = list()\nblock: a = append(a, x)", GR_STEM, 1,
         "tokens -> x; a 0");
    ends(T, "stem: a = list()\nblock: a = append(a, x)", GR_LAYER, 2,
         "x -> x a.1; a 2");
    static const char *const rows[][2] = {
        {"x = sum(a)", "sum: the list is empty"},
        {"x = mean(a)", "mean: the list is empty"},
        {"x = item(a, 0)", "item: the list is empty"},
        {"x = concat(a)", "concat: the list is empty"},
        {"x = mix(vector(0), a)", "mix: the list is empty"},
        {"x = sum(norm(a))", "norm: the list is empty"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        gr_case c;
        char text[80];
        tb_format(text, sizeof text, "stem: a = list()\nblock: %s", rows[i][0]);
        TB_FAILS(T, gr_open(T->ctx, &c, text, NULL, GR_LAYER, 1), TB_ERR_PARSE,
                 rows[i][1]);
    }
}

TB_TEST(too_long)
{
    gr_case c;
    TB_OKAY(T, gr_open(T->ctx, &c, "stem: a = list(x)\nblock: a = append(a, x)",
                       NULL, GR_LAYER, 511));
    gr_close(T->ctx, &c);
    TB_FAILS(T,
             gr_open(T->ctx, &c, "stem: a = list(x)\nblock: a = append(a, x)",
                     NULL, GR_LAYER, 512),
             TB_ERR_PARSE, "a list holds at most 512 elements");
}

TB_TEST(refusals)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"x = attn(a)",
         "35: a list stands where one stream is needed: item(list, i), "
         "sum(list), mix(w, list) and concat(list) make one of it"},
        {"x = a", "1: x is not a stream at the end of the section"},
        {"x = x + a", "1: x is not a stream at the end of the section"},
        {"a = x", "1: a is not a list at the end of the section"},
        {"x = item(a, 2)",
         "38: item: got 2, wanted a whole number from 0 to 1"},
        {"x = item(a, 0.5)",
         "38: item: got 0.5, wanted a whole number from 0 to 1"},
        {"x = item(a, x)", "38: item: which one must be a constant"},
        {"x = item(x, 0)", "35: item: got a stream, wanted a list"},
        {"x = sum(x)", "30: x leaves with width 1, wanted d = 64"},
        {"x = size(2)*x", "35: size: got a constant, wanted a list"},
        {"x = sum(a + list(x))", "36: lists of 2 and 1 elements"},
        {"a = list(scalar(1))", "35: list: elements of a list are streams"},
        {"ffn(x) = list(x); x = ffn(x)",
         "26: ffn: its value is a list, wanted a stream"},
        {"x = mix(vector(0), a)", "30: mix: there must be one weight per "
                                  "stream"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        gr_case c;
        char text[160], want[200];
        tb_format(text, sizeof text, "%s%s", EACH(""), rows[i].text);
        tb_format(want, sizeof want, "2:%s\n", rows[i].want);
        tb_status s = gr_open(T->ctx, &c, text, NULL, GR_LAYER, 1);
        if (s == TB_OK)
            gr_close(T->ctx, &c);
        if (s == TB_OK || !strstr(tb_error(T->ctx), want))
            tb_test_fail(T, __FILE__, __LINE__, "%s\ngot  %s\nwant %s", text,
                         s == TB_OK ? "it built" : tb_error(T->ctx), want);
    }
}
