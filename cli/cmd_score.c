/* SPDX-License-Identifier: MIT */
/* tollbooth score: how well a trained model predicts a text. */
#include "cli.h"
#include "tollbooth/train.h"

#include <stdio.h>

static const opt_usage usage = {
    .name = "score",
    .operands = "DIR",
    .summary = "loss and perplexity of a trained model on a text",
    .detail = "The text is read in windows of the model's context, each "
              "starting blank.",
    .example = "score run --text book.txt --json",
    .min = 1,
    .max = 1,
};

static tb_status measure(tb_ctx *ctx, const char *dir, const char *file,
                         const char *logits, tb_score *score)
{
    tb_lm *m = NULL;
    tb_text text = {0};
    tb_tokens tokens = {0};
    tb_status s = tb_lm_open(ctx, dir, &m);
    if (s == TB_OK)
        s = tb_text_load(ctx, file, NULL, &text);
    if (s == TB_OK)
        s = tb_tokenizer_encode(ctx, tb_lm_tokenizer(m), file, text.bytes.data,
                                text.bytes.len, &tokens);
    if (s == TB_OK)
        s = tb_lm_score(m, tokens.ids, tokens.count, logits, score);
    tb_tokens_clear(ctx, &tokens);
    tb_text_clear(ctx, &text);
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
    tb_json_end(j);
    return print_json(ctx, j, code);
}

int cmd_score(tb_ctx *ctx, int argc, char **argv)
{
    const char *file = NULL, *logits = NULL;
    bool json = false, exact = false;
    tb_score score = {0};
    const opt opts[] = {
        {"text", OPT_TEXT, &file, "FILE", "plain or gzip; - is stdin", 0, 0},
        {"logits", OPT_TEXT, &logits, "FILE.npy",
         "write all logits, [tokens, vocabulary]", 0, 0},
        {"exact", OPT_FLAG, &exact, NULL, "our own matrix products only", 0, 0},
        {"json", OPT_FLAG, &json, NULL, "print one JSON object", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    if (!file)
        return usage_error("score", "got no --text, wanted --text FILE");
    tb_ctx_exact(ctx, exact);
    tb_status s = measure(ctx, argv[0], file, logits, &score);
    if (s != TB_OK)
        return die(ctx, s);
    bool finite = score.loss - score.loss == 0;
    int code = finite ? 0 : tb_status_exit(TB_ERR_NONFINITE);
    if (json)
        return as_json(ctx, &score, code);
    printf("%zu tokens, %.5f nats per token, perplexity %.4f\n", score.tokens,
           score.loss, score.perplexity);
    return finish(code);
}
