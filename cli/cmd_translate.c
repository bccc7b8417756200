/* SPDX-License-Identifier: MIT */
/* tollbooth translate: lines through a trained encoder and decoder. */
#include "cli.h"
#include "tollbooth/train.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const opt_usage usage = {
    .name = "translate",
    .operands = "DIR",
    .summary = "lines of a source through a trained encoder and decoder",
    .detail = "--text is a file, plain or gzip, - is stdin, or where no such "
              "file is a line itself; it may be given again and again. A line "
              "is printed for each. The likeliest token is taken every time, "
              "until the end token or the context is full; or, with --beam, "
              "the best of so many hypotheses.",
    .example = "translate mt --text 'Go on.'",
    .min = 1,
    .max = 1,
};

typedef struct speaker {
    tb_ctx *ctx;
    const tb_tokenizer *tokenizer;
    tb_search search;
    const char *name; /* of the lines: a file, or the line itself */
    tb_json *json;    /* NULL: lines of text */
    size_t unended;
    tb_status status;
} speaker;

static void say_json(speaker *s, const tb_translation *t, const tb_bytes *text)
{
    tb_json_object(s->json, NULL);
    tb_json_string(s->json, "text", s->name);
    tb_json_int(s->json, "line", (int64_t)t->line + 1);
    tb_json_bytes(s->json, "target", text->data, text->len);
    tb_json_int(s->json, "tokens", (int64_t)t->count);
    tb_json_bool(s->json, "ended", t->ended);
    tb_json_number(s->json, "log_prob", t->log_prob);
    tb_json_end(s->json);
}

static bool say(void *user, const tb_translation *t)
{
    speaker *s = user;
    tb_bytes text;
    s->unended += !t->ended;
    s->status =
        tb_tokenizer_decode(s->ctx, s->tokenizer, t->ids, t->count, &text);
    if (s->status != TB_OK)
        return false;
    if (s->json) {
        say_json(s, t, &text);
    } else {
        fwrite(text.data, 1, text.len, stdout);
        putchar('\n');
        fflush(stdout);
    }
    tb_bytes_clear(s->ctx, &text);
    return s->json || !ferror(stdout);
}

/* One --text: a file, or the line itself. */
static tb_status translate_one(tb_lm *m, const char *word, speaker *s)
{
    tb_text text = {0};
    tb_lines lines = {0};
    const tb_text_options no_bom = {.strip_bom = true};
    const tb_span itself = {word, strlen(word)};
    bool file = strcmp(word, "-") == 0 || access(word, F_OK) == 0;
    tb_status status = TB_OK;
    if (file) {
        status = tb_text_load(s->ctx, word, &no_bom, &text);
        if (status == TB_OK)
            status =
                tb_lines_split(s->ctx, text.bytes.data, text.bytes.len, &lines);
    }
    s->name = word;
    if (status == TB_OK)
        status = tb_lm_translate(m, file ? word : "--text",
                                 file ? lines.line : &itself,
                                 file ? lines.count : 1, &s->search, say, s);
    tb_lines_clear(s->ctx, &lines);
    tb_text_clear(s->ctx, &text);
    return status == TB_OK ? s->status : status;
}

static tb_status translate_all(const char *dir, const opt_many *texts,
                               speaker *s)
{
    tb_lm *m = NULL;
    tb_status status = tb_lm_open(s->ctx, dir, &m);
    if (status == TB_OK)
        s->tokenizer = tb_lm_tokenizer(m);
    for (size_t i = 0; i < texts->count && status == TB_OK; i++)
        status = translate_one(m, texts->items[i], s);
    tb_lm_close(m);
    return status;
}

static int as_json(const char *dir, const opt_many *texts, speaker *s)
{
    if (tb_json_create(s->ctx, &s->json) != TB_OK)
        return die(s->ctx, TB_ERR_MEMORY);
    tb_json_object(s->json, NULL);
    tb_json_string(s->json, "tollbooth", TB_VERSION);
    tb_json_array(s->json, "lines");
    tb_status status = translate_all(dir, texts, s);
    tb_json_end(s->json);
    tb_json_end(s->json);
    if (status == TB_OK)
        return print_json(s->ctx, s->json, 0);
    tb_json_destroy(s->json);
    return die(s->ctx, status);
}

int cmd_translate(tb_ctx *ctx, int argc, char **argv)
{
    opt_many texts = {0};
    speaker s = {.ctx = ctx, .search = {.beam = 1, .length_penalty = 0.6}};
    bool json = false, exact = false;
    const opt opts[] = {
        {"text", OPT_MANY, &texts, "FILE", "lines, or one line itself", 0, 0},
        {"beam", OPT_SIZE, &s.search.beam, "K",
         "hypotheses, at most 64; 1: greedy (default 1)", 0, 0},
        {"length-penalty", OPT_REAL, &s.search.length_penalty, "a",
         "of --beam: the log probability of n tokens is divided by "
         "((5+n)/6)^a (default 0.6)",
         0, 0},
        {"exact", OPT_FLAG, &exact, NULL, "our own matrix products only", 0, 0},
        {"json", OPT_FLAG, &json, NULL, "print one JSON object", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    if (texts.count == 0)
        return usage_error("translate",
                           "got no --text, wanted --text FILE or a line");
    tb_ctx_exact(ctx, exact);
    if (json)
        return as_json(argv[0], &texts, &s);
    tb_status status = translate_all(argv[0], &texts, &s);
    if (status != TB_OK)
        return die(ctx, status);
    if (s.unended)
        fprintf(stderr, "tollbooth: %zu line%s ended where the context did\n",
                s.unended, s.unended == 1 ? "" : "s");
    return finish(0);
}
