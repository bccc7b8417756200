/* SPDX-License-Identifier: MIT */
/* tollbooth generate: text from a trained model. */
#include "cli.h"
#include "tollbooth/train.h"

#include <stdio.h>
#include <string.h>

static const opt_usage usage = {
    .name = "generate",
    .operands = "DIR",
    .summary = "write text with a trained model",
    .detail = "The prompt is printed first, then what follows it. The same "
              "seed gives the same text.",
    .example = "generate run --prompt 'ROMEO:' --tokens 200",
    .min = 1,
    .max = 1,
};

typedef struct speaker {
    tb_decoder *decoder;
    tb_status status;
} speaker;

static bool say(void *user, int32_t id)
{
    speaker *s = user;
    const char *text;
    size_t n;
    s->status = tb_decoder_push(s->decoder, id, &text, &n);
    if (s->status != TB_OK)
        return false;
    fwrite(text, 1, n, stdout);
    fflush(stdout);
    return !ferror(stdout);
}

static tb_status write_text(tb_lm *m, const tb_tokens *prompt, size_t n,
                            const tb_sampling *sampling, speaker *s)
{
    const char *rest;
    size_t len;
    tb_status status =
        tb_lm_generate(m, prompt->ids, prompt->count, n, sampling, say, s);
    if (status == TB_OK)
        status = s->status;
    if (status == TB_OK)
        status = tb_decoder_flush(s->decoder, &rest, &len);
    if (status == TB_OK)
        fwrite(rest, 1, len, stdout);
    putchar('\n');
    return status;
}

static int run(tb_ctx *ctx, const char *dir, const char *prompt, size_t n,
               const tb_sampling *sampling)
{
    tb_lm *m = NULL;
    tb_tokens tokens = {0};
    speaker s = {0};
    tb_status status = tb_lm_open(ctx, dir, &m);
    if (status == TB_OK)
        status = tb_tokenizer_encode(ctx, tb_lm_tokenizer(m), "prompt", prompt,
                                     strlen(prompt), &tokens);
    if (status == TB_OK)
        status = tb_decoder_create(ctx, tb_lm_tokenizer(m), &s.decoder);
    if (status == TB_OK) {
        fputs(prompt, stdout);
        status = write_text(m, &tokens, n, sampling, &s);
    }
    tb_decoder_destroy(s.decoder);
    tb_tokens_clear(ctx, &tokens);
    tb_lm_close(m);
    return status == TB_OK ? finish(0) : die(ctx, status);
}

int cmd_generate(tb_ctx *ctx, int argc, char **argv)
{
    tb_sampling s = TB_SAMPLING_DEFAULT;
    const char *prompt = "";
    size_t n = 200;
    const opt opts[] = {
        {"prompt", OPT_TEXT, &prompt, "TEXT",
         "what the text starts with (default: the first vocabulary item, not "
         "printed)",
         0, 0},
        {"tokens", OPT_COUNT, &n, "N", "tokens to write (default 200)", 0, 0},
        {"greedy", OPT_FLAG, &s.greedy, NULL, "always the likeliest token", 0,
         0},
        {"temperature", OPT_REAL, &s.temperature, "t",
         "divides the logits; 0: greedy (default 1)", 0, 0},
        {"top-k", OPT_COUNT, &s.top_k, "k", "only the k likeliest tokens", 0,
         0},
        {"top-p", OPT_REAL, &s.top_p, "p",
         "only the likeliest tokens that reach probability p", 0, 0},
        {"seed", OPT_SEED, &s.seed, "S", "seed (default 1)", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    if (!(s.top_p > 0 && s.top_p <= 1))
        return usage_error("generate", "--top-p: got %g, wanted 0 < p <= 1",
                           s.top_p);
    return run(ctx, argv[0], prompt, n, &s);
}
