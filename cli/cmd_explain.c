/* SPDX-License-Identifier: MIT */
/* tollbooth explain: what the text of a block alone gives. */
#include "cli.h"
#include "tollbooth/explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const opt_usage usage = {
    .name = "explain",
    .operands = "BLOCK",
    .summary = "diagram, Jacobian, lane and weights of a block",
    .detail = "Everything here is derived from the text; corners are measured "
              "too, in small trials. Nothing is trained.",
    .example = "explain 'x = x + F(norm(x)); final: x = norm(x)' --depth 12",
    .min = 1,
    .max = 1,
};

/* Errors that are no numbers come of values that are none. */
static int code_of(const tb_numeric *n)
{
    return n && !isfinite(n->error) ? 4 : 0;
}

static void numeric_line(const tb_numeric *n)
{
    printf(
        "\nNumeric   on random numbers (width %zu, %zu tokens, double) the "
        "formula\n"
        "          differs from the tangent pass by %.2g, from the backward\n"
        "          pass by %.2g, from a central difference by %.2g of its\n"
        "          largest entry\n",
        n->width, n->tokens, n->tangent, n->backward, n->difference);
}

static int print_text(tb_ctx *ctx, const tb_block *b, const tb_settings *s,
                      const tb_numeric *numeric, tb_explain_format format,
                      bool expand, bool ascii)
{
    tb_terminal term = terminal_of(ascii);
    tb_out *out;
    if (tb_out_create(ctx, &out) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_status status =
        tb_explain_text(ctx, b, s, format, expand, term.width, ascii, out);
    if (status == TB_OK)
        put_clean(stdout, tb_out_str(out));
    if (status == TB_OK && numeric)
        numeric_line(numeric);
    tb_out_destroy(out);
    return status == TB_OK ? finish(code_of(numeric)) : die(ctx, status);
}

static int print_object(tb_ctx *ctx, const tb_block *b, const tb_settings *s,
                        const tb_numeric *numeric)
{
    tb_json *j;
    if (tb_json_create(ctx, &j) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_status status = tb_explain_json(ctx, b, s, numeric, j, NULL);
    if (status == TB_OK)
        return print_json(ctx, j, code_of(numeric));
    tb_json_destroy(j);
    return die(ctx, status);
}

/* The object (format 4), or text, formula, drawing. */
static int print(tb_ctx *ctx, const tb_block *b, const tb_settings *s,
                 bool numeric, bool expand, int format, bool ascii)
{
    tb_numeric n;
    tb_status status = numeric ? tb_explain_numeric(ctx, b, s, 1, &n) : TB_OK;
    const tb_numeric *shown = numeric ? &n : NULL;
    if (status != TB_OK)
        return die(ctx, status);
    if (format == 4)
        return print_object(ctx, b, s, shown);
    return print_text(ctx, b, s, shown, (tb_explain_format)format, expand,
                      ascii);
}

/* A label as people write it: post-LN is post-ln. */
static tb_status load_label(tb_ctx *ctx, const char *label, tb_block **out)
{
    char low[64];
    size_t n = strlen(label);
    if (tb_block_load(ctx, label, out) == TB_OK)
        return TB_OK;
    for (size_t i = 0; i <= n && n < sizeof low; i++)
        low[i] = (char)(label[i] >= 'A' && label[i] <= 'Z' ? label[i] + 32
                                                           : label[i]);
    return n < sizeof low ? tb_block_load(ctx, low, out) : TB_ERR_PARSE;
}

/* Exit 1 where the placement is another one, with how it differs. */
static int check_label(tb_ctx *ctx, const tb_block *b, const tb_settings *s,
                       const char *label)
{
    tb_block *other;
    tb_expected found;
    tb_out *why;
    if (tb_out_create(ctx, &why) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_status status = load_label(ctx, label, &other);
    if (status == TB_OK) {
        status = tb_explain_expect(ctx, b, other, s, &found, why);
        tb_block_destroy(ctx, other);
    }
    if (status == TB_OK && !found.same)
        complain("tollbooth: explain: got %s%s, wanted %s: %s\n",
                 found.placement ? "the placement of " : "another placement",
                 found.placement ? found.placement : "", label,
                 tb_out_str(why));
    tb_out_destroy(why);
    return status != TB_OK ? die(ctx, status) : !found.same;
}

int cmd_explain(tb_ctx *ctx, int argc, char **argv)
{
    tb_settings s = TB_SETTINGS_UNSET;
    bool json = false, ascii = false, numeric = false, expand = false;
    const char *label = NULL;
    int format = 0;
    const opt opts[] = {
        {"depth", OPT_SIZE, &s.depth, "N", "blocks in the stack (default 6)", 0,
         0},
        SETTINGS_OPTS(s, "64"),
        STACK_OPTS(s),
        {"format", OPT_CHOICE, &format, NULL, "what to print (default text)",
         "text|latex|mathml|svg|json", 0},
        {"json", OPT_FLAG, &json, NULL, "the same as --format json", 0, 0},
        {"numeric", OPT_FLAG, &numeric, NULL,
         "evaluate the Jacobian on random numbers (width 8 unless --width) and "
         "hold it against tangent, backward and central difference",
         0, 0},
        {"expand", OPT_FLAG, &expand, NULL,
         "open J_attn and J_ffn down to their weights", 0, 0},
        {"expect", OPT_TEXT, &label, "BLOCK",
         "exit 1 unless the block has that block's placement: where norms, "
         "sums, factors and sublayers stand, compared by graphs",
         0, 0},
        {"ascii", OPT_FLAG, &ascii, NULL, "plain ASCII drawing", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    tb_block *b;
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    format = json ? 4 : format;
    if (numeric && format != 0 && format != 4)
        return usage_error("explain", "--numeric goes with --format text or "
                                      "json");
    tb_ctx_exact(ctx, true); /* no library is worth opening for its corners */
    tb_status status = tb_block_load(ctx, argv[0], &b);
    if (status != TB_OK)
        return die(ctx, status);
    int wrong = label ? check_label(ctx, b, &s, label) : 0;
    if (wrong > 1) {
        tb_block_destroy(ctx, b);
        return wrong;
    }
    int code = print(ctx, b, &s, numeric, expand, format, ascii);
    tb_block_destroy(ctx, b);
    return code ? code : wrong;
}
