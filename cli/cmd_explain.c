/* SPDX-License-Identifier: MIT */
/* tollbooth explain: what the text of a block alone gives. */
#include "cli.h"
#include "tollbooth/explain.h"

#include <stdio.h>

static const opt_usage usage = {
    .name = "explain",
    .operands = "BLOCK",
    .summary = "diagram, Jacobian, lane and weights of a block",
    .detail = "Everything here is derived from the text: nothing is trained "
              "or measured.",
    .example = "explain 'x = x + F(norm(x)); final: x = norm(x)' --depth 12",
    .min = 1,
    .max = 1,
};

static int print_text(tb_ctx *ctx, const tb_block *b, const tb_settings *s,
                      tb_explain_format format, bool ascii)
{
    tb_terminal term = terminal_of(ascii);
    tb_out *out;
    if (tb_out_create(ctx, &out) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_status status =
        tb_explain_text(ctx, b, s, format, term.width, ascii, out);
    if (status == TB_OK)
        fputs(tb_out_str(out), stdout);
    tb_out_destroy(out);
    return status == TB_OK ? finish(0) : die(ctx, status);
}

static int print_object(tb_ctx *ctx, const tb_block *b, const tb_settings *s)
{
    tb_json *j;
    if (tb_json_create(ctx, &j) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_status status = tb_explain_json(ctx, b, s, j, NULL);
    if (status == TB_OK)
        return print_json(ctx, j, 0);
    tb_json_destroy(j);
    return die(ctx, status);
}

int cmd_explain(tb_ctx *ctx, int argc, char **argv)
{
    tb_settings s = TB_SETTINGS_UNSET;
    bool json = false, ascii = false;
    int format = 0;
    const opt opts[] = {
        {"depth", OPT_SIZE, &s.depth, "N", "blocks in the stack (default 6)", 0,
         0},
        SETTINGS_OPTS(s, "64"),
        {"format", OPT_CHOICE, &format, NULL, "what to print (default text)",
         "text|latex|mathml|svg|json", 0},
        {"json", OPT_FLAG, &json, NULL, "the same as --format json", 0, 0},
        {"ascii", OPT_FLAG, &ascii, NULL, "plain ASCII drawing", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    tb_block *b;
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    tb_status status = tb_block_load(ctx, argv[0], &b);
    if (status != TB_OK)
        return die(ctx, status);
    int code = json || format == 4
                   ? print_object(ctx, b, &s)
                   : print_text(ctx, b, &s, (tb_explain_format)format, ascii);
    tb_block_destroy(ctx, b);
    return code;
}
