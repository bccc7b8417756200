/* SPDX-License-Identifier: MIT */
/* tollbooth export: a block as the source text of another system. */
#include "cli.h"
#include "tollbooth/export.h"

#include <stdio.h>

static const opt_usage usage = {
    .name = "export",
    .operands = "BLOCK",
    .summary = "a block as a PyTorch module",
    .detail =
        "Prints one Python file that imports torch and the standard library "
        "only: a class per sublayer, Block, Model with our weight names and "
        "initial weights, and load_tollbooth(path) for what train wrote. "
        "Give the sizes that the model was trained with.",
    .example = "export --to pytorch pre-ln --depth 6 --width 128 > model.py",
    .min = 1,
    .max = 1,
};

int cmd_export(tb_ctx *ctx, int argc, char **argv)
{
    tb_settings s = TB_SETTINGS_UNSET;
    int to = -1, mask = -1;
    const opt opts[] = {
        {"to", OPT_CHOICE, &to, NULL, "the system", "pytorch", 0},
        {"depth", OPT_SIZE, &s.depth, "N", "blocks in the stack (default 6)", 0,
         0},
        SETTINGS_OPTS(s, "64"),
        STACK_OPTS(s),
        {"context", OPT_SIZE, &s.context, "T",
         "tokens a model sees (default 32)", 0, 0},
        {"vocab", OPT_SIZE, &s.vocab, "V", "tokens there are (default 256)", 0,
         0},
        {"mask", OPT_CHOICE, &mask, NULL,
         "attention mask (default causal, in an encoder none)", "causal|none",
         0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    tb_block *b;
    char *text;
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    if (to < 0)
        return usage_error("export", "got no --to, wanted --to pytorch");
    s.causal = mask < 0 ? -1 : mask == 0;
    tb_status status = tb_block_load(ctx, argv[0], &b);
    if (status != TB_OK)
        return die(ctx, status);
    status = tb_export_pytorch(ctx, b, &s, &text);
    if (status == TB_OK) {
        fputs(text, stdout);
        tb_text_free(ctx, text);
    }
    tb_block_destroy(ctx, b);
    return status == TB_OK ? finish(0) : die(ctx, status);
}
