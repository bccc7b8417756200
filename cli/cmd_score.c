/* SPDX-License-Identifier: MIT */
/* tollbooth score: how well a trained model does its task on other data. */
#include "cli.h"
#include "tollbooth/train.h"

#include <stdio.h>

static const opt_usage usage = {
    .name = "score",
    .operands = "DIR",
    .summary = "loss and perplexity of a trained model on a text",
    .detail = "The text is read in windows of the model's context, each "
              "starting blank. An encoder is asked for the tokens that are "
              "hidden, 15 % of them and always the same, or for the labels of "
              "the lines; an encoder and decoder for the lines of --target.",
    .example = "score run --text book.txt --json",
    .min = 1,
    .max = 1,
};

static tb_status measure(tb_ctx *ctx, const char *dir,
                         const tb_score_files *files, const char *logits,
                         tb_score *score)
{
    tb_lm *m = NULL;
    tb_status s = tb_lm_open(ctx, dir, &m);
    if (s == TB_OK)
        s = tb_lm_score_files(m, files, logits, score);
    tb_lm_close(m);
    return s;
}

static int as_json(tb_ctx *ctx, const tb_score *s, int code)
{
    tb_json *j;
    if (tb_json_create(ctx, &j) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_json_object(j, NULL);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_int(j, "tokens", (int64_t)s->tokens);
    tb_json_number(j, "loss", s->loss);
    tb_json_number(j, "perplexity", s->perplexity);
    if (s->has_accuracy)
        tb_json_number(j, "accuracy", s->accuracy);
    tb_json_end(j);
    return print_json(ctx, j, code);
}

int cmd_score(tb_ctx *ctx, int argc, char **argv)
{
    tb_score_files files = {0};
    const char *logits = NULL;
    bool json = false, exact = false;
    tb_score score = {0};
    const opt opts[] = {
        {"text", OPT_TEXT, &files.text, "FILE", "plain or gzip; - is stdin", 0,
         0},
        {"source", OPT_TEXT, &files.source, "FILE",
         "of an encoder and decoder, with --target", 0, 0},
        {"target", OPT_TEXT, &files.target, "FILE",
         "a line for each of the source", 0, 0},
        {"logits", OPT_TEXT, &logits, "FILE.npy",
         "write all logits, [tokens, vocabulary or labels]", 0, 0},
        {"exact", OPT_FLAG, &exact, NULL, "our own matrix products only", 0, 0},
        {"json", OPT_FLAG, &json, NULL, "print one JSON object", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    if (!files.text && !files.source && !files.target)
        return usage_error("score", "got no --text, wanted --text FILE, or "
                                    "--source FILE and --target FILE");
    tb_ctx_exact(ctx, exact);
    tb_status s = measure(ctx, argv[0], &files, logits, &score);
    if (s != TB_OK)
        return die(ctx, s);
    bool finite = score.loss - score.loss == 0;
    int code = finite ? 0 : tb_status_exit(TB_ERR_NONFINITE);
    if (json)
        return as_json(ctx, &score, code);
    printf("%zu tokens, %.5f nats per token, perplexity %.4f", score.tokens,
           score.loss, score.perplexity);
    if (score.has_accuracy)
        printf(", %.2f %% right", 100 * score.accuracy);
    putchar('\n');
    return finish(code);
}
