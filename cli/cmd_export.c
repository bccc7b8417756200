/* SPDX-License-Identifier: MIT */
/* tollbooth export: a block as the source text of another system, or as its
 * setting there, and back. */
#include "cli.h"
#include "tollbooth/export.h"

#include <stdio.h>

static const opt_usage usage = {
    .name = "export",
    .operands = "BLOCK|SETTING",
    .summary = "a block as a PyTorch module or another system's setting",
    .detail =
        "--to pytorch prints one Python file that imports torch and the "
        "standard library only: a class per sublayer, Block, Model with our "
        "weight names and initial weights, and load_tollbooth(path) for what "
        "train wrote. Give the sizes that the model was trained with.\n"
        "--to marian, tensor2tensor, fairseq or x-transformers prints the "
        "setting that places norms, sums and factors as the block does, and "
        "what may differ beside them as remarks. Where there is none, the "
        "exit code is 3; the reason and the nearest setting are printed.\n"
        "--from SYSTEM prints the block that a SETTING means: what --to "
        "prints, or shorter, as 'pre=n post=da top=n'.",
    .example = "export --to pytorch pre-ln --depth 6 --width 128 > model.py",
    .min = 1,
    .max = 1,
    .dashed = true,
};

#define PEERS "marian|tensor2tensor|fairseq|x-transformers"

/* --- settings ------------------------------------------------------------- */

static void print_list(const char *head, const char *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("# %s%s\n", head, items[i]);
}

/* The statements of a block without their first line's name. */
static void print_text(const char *text)
{
    printf("#\n");
    for (bool start = true; *text; text++) {
        if (start)
            printf("#     ");
        putchar(*text);
        start = *text == '\n';
    }
}

static void print_answer(const tb_peer_answer *a, const char *peer)
{
    if (a->exact) {
        printf("%s\n", a->setting);
    } else {
        printf("# no setting of %s computes this block\n", peer);
        print_list("only here: ", a->here, a->nhere);
        print_list("only there: ", a->there, a->nthere);
        printf("# nearest: %s\n", a->setting);
    }
    print_list("", a->remarks, a->nremarks);
    if (!a->exact)
        print_text(a->text);
}

static void json_list(tb_json *j, const char *key, const char *const *items,
                      size_t n)
{
    tb_json_array(j, key);
    for (size_t i = 0; i < n; i++)
        tb_json_string(j, NULL, items[i]);
    tb_json_end(j);
}

static int print_answer_json(tb_ctx *ctx, const tb_peer_answer *a,
                             const char *peer, int code)
{
    tb_json *j;
    if (tb_json_create(ctx, &j) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_json_object(j, NULL);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_string(j, "to", peer);
    tb_json_bool(j, "exact", a->exact);
    tb_json_string(j, "setting", a->setting);
    tb_json_string(j, "text", a->text);
    json_list(j, "here", a->here, a->nhere);
    json_list(j, "there", a->there, a->nthere);
    json_list(j, "remarks", a->remarks, a->nremarks);
    tb_json_end(j);
    return print_json(ctx, j, code);
}

static int to_peer(tb_ctx *ctx, const tb_block *b, const tb_settings *s,
                   const char *peer, bool json)
{
    tb_peer_answer *a;
    tb_status status = tb_peer_find(ctx, b, s, peer, &a);
    if (status != TB_OK)
        return die(ctx, status);
    int code = a->exact ? 0 : tb_status_exit(TB_ERR_INPUT);
    if (!a->exact)
        fprintf(stderr, "tollbooth: %s: %s has no setting for it: %s%s\n",
                tb_block_name(b) ? tb_block_name(b) : "block", peer,
                a->nhere ? "" : "there, ", a->nhere ? a->here[0] : a->there[0]);
    if (json) {
        code = print_answer_json(ctx, a, peer, code);
    } else {
        print_answer(a, peer);
        code = finish(code);
    }
    tb_peer_free(ctx, a);
    return code;
}

/* --- texts ---------------------------------------------------------------- */

static int print_text_of(tb_ctx *ctx, const char *key, const char *system,
                         char *text, bool json)
{
    tb_json *j;
    int code;
    if (!json) {
        fputs(text, stdout);
        code = finish(0);
    } else if (tb_json_create(ctx, &j) != TB_OK) {
        code = die(ctx, TB_ERR_MEMORY);
    } else {
        tb_json_object(j, NULL);
        tb_json_string(j, "tollbooth", TB_VERSION);
        tb_json_string(j, key, system);
        tb_json_string(j, "text", text);
        tb_json_end(j);
        code = print_json(ctx, j, 0);
    }
    tb_text_free(ctx, text);
    return code;
}

static int from_peer(tb_ctx *ctx, const char *peer, const char *setting,
                     bool json)
{
    char *text;
    tb_status status = tb_peer_read(ctx, peer, setting, &text);
    if (status != TB_OK)
        return die(ctx, status);
    return print_text_of(ctx, "from", peer, text, json);
}

static int to_pytorch(tb_ctx *ctx, const tb_block *b, const tb_settings *s,
                      bool json)
{
    char *text;
    tb_status status = tb_export_pytorch(ctx, b, s, &text);
    if (status != TB_OK)
        return die(ctx, status);
    return print_text_of(ctx, "to", "pytorch", text, json);
}

int cmd_export(tb_ctx *ctx, int argc, char **argv)
{
    tb_settings s = TB_SETTINGS_UNSET;
    int to = -1, from = -1, mask = -1;
    bool json = false;
    const opt opts[] = {
        {"to", OPT_CHOICE, &to, NULL, "the system", "pytorch|" PEERS, 0},
        {"from", OPT_CHOICE, &from, NULL, "the system whose setting is read",
         PEERS, 0},
        {"depth", OPT_SIZE, &s.depth, "N", "blocks in the stack (default 6)", 0,
         0},
        SETTINGS_OPTS(s, "64"),
        STACK_OPTS(s),
        {"context", OPT_SIZE, &s.context, "T",
         "tokens a model sees (default 32)", 0, 0},
        {"vocab", OPT_SIZE, &s.vocab, "V", "tokens there are (default 256)", 0,
         0},
        {"mask", OPT_CHOICE, &mask, NULL, "attention mask (default causal)",
         "causal|none", 0},
        {"json", OPT_FLAG, &json, NULL, "print one JSON object", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    tb_block *b;
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    if ((to < 0) == (from < 0))
        return usage_error("export", "wanted --to SYSTEM or --from SYSTEM, one "
                                     "of them");
    if (from >= 0)
        return from_peer(ctx, tb_peer_name((size_t)from), argv[0], json);
    s.causal = mask < 0 ? -1 : mask == 0;
    tb_status status = tb_block_load(ctx, argv[0], &b);
    if (status != TB_OK)
        return die(ctx, status);
    int code = to == 0
                   ? to_pytorch(ctx, b, &s, json)
                   : to_peer(ctx, b, &s, tb_peer_name((size_t)to - 1), json);
    tb_block_destroy(ctx, b);
    return code;
}
