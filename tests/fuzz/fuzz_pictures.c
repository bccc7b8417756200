/* SPDX-License-Identifier: MIT */
/* Any bytes as a block: what parses is explained in every format, looked over
 * by lint, exported, and run forward and backward at a tiny size, in a stack
 * of each kind; as an equation it is evaluated. Errors are fine; crashes,
 * leaks, hangs and broken MathML are not. Built with clang
 * -fsanitize=fuzzer; tests replay the corpus through the same function. */
#include "base/base.h"
#include "model/model.h"
#include "tollbooth/eval.h"
#include "tollbooth/explain.h"
#include "tollbooth/export.h"
#include "tollbooth/lint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    LONGEST = 2000, /* bytes of a text: more of the same finds nothing new */
    ROWS = 2,
    TOKENS = 3,
    MEMORY = 1 << 22, /* bytes of activations and weights */
    WEIGHTS = 200000
};

static tb_settings tiny(int stack)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = 3;
    s.decoder_depth = stack == TB_STACKS_BOTH ? 2 : 0;
    s.width = 8;
    s.heads = 2;
    s.context = TOKENS;
    s.vocab = 5;
    s.stack = stack;
    s.padding = stack != TB_STACKS_DECODER;
    return s;
}

/* --- texts ---------------------------------------------------------------- */

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
        n++;
    return n;
}

/* As many elements end as begin. */
static void check_mathml(const char *text)
{
    if (count(text, "<m") != count(text, "</m") + count(text, "/>"))
        __builtin_trap();
}

static void explain(tb_ctx *ctx, const tb_block *b, const tb_settings *s)
{
    tb_out *out;
    tb_json *j;
    tb_scene *scene;
    if (tb_out_create(ctx, &out) != TB_OK)
        return;
    (void)tb_explain_text(ctx, b, s, TB_EXPLAIN_TEXT, true, 72, false, out);
    tb_out_reset(out);
    if (tb_explain_scene(ctx, b, s, &scene) == TB_OK)
        (void)tb_scene_svg(scene, NULL, out);
    tb_scene_destroy(scene);
    tb_out_reset(out);
    if (tb_explain_text(ctx, b, s, TB_EXPLAIN_MATHML, true, 72, false, out) ==
        TB_OK)
        check_mathml(tb_out_str(out));
    tb_out_destroy(out);
    if (tb_json_create(ctx, &j) != TB_OK)
        return;
    (void)tb_explain_json(ctx, b, s, NULL, j, NULL);
    tb_json_destroy(j);
}

static void look(tb_ctx *ctx, const tb_block *b, const tb_settings *s)
{
    tb_lint *lint = NULL;
    char *text = NULL;
    if (tb_lint_create(ctx, b, s, &lint) == TB_OK)
        (void)tb_lint_text(lint, "file", 60, &text);
    tb_text_free(ctx, text);
    tb_lint_destroy(lint);
    text = NULL;
    (void)tb_export_pytorch(ctx, b, s, &text);
    tb_text_free(ctx, text);
}

static void peers(tb_ctx *ctx, const tb_block *b, const tb_settings *s)
{
    for (size_t i = 0; tb_peer_name(i); i++) {
        tb_peer_answer *a = NULL;
        (void)tb_peer_find(ctx, b, s, tb_peer_name(i), &a);
        tb_peer_free(ctx, a);
    }
}

/* --- numbers -------------------------------------------------------------- */

static void run(tb_model *m)
{
    static const int32_t tokens[ROWS * TOKENS] = {0, 1, 2, 4, 3, 3},
                                       targets[ROWS * TOKENS] = {1, 2,  -1,
                                                                 3, -1, -1};
    static const unsigned char keep[ROWS * TOKENS] = {1, 1, 0, 1, 0, 0};
    bool both = m->sizes.s.stack == TB_STACKS_BOTH;
    const tb_batch b = {.tokens = tokens,
                        .targets = targets,
                        .seed = 1,
                        .step = 1,
                        .source = both ? tokens : NULL,
                        .keep = m->sizes.s.padding ? keep : NULL,
                        .source_keep = both ? keep : NULL};
    double loss;
    void *grads = tb_alloc(m->ctx, m->nelements, tb_dtype_size(m->dtype));
    if (grads && tb_model_init(m, 1) == TB_OK &&
        tb_model_bind(m, ROWS, TOKENS, TB_PASS_BWD) == TB_OK &&
        tb_model_forward(m, &b, &loss) == TB_OK)
        (void)tb_model_backward(m, &b, grads);
    tb_free(m->ctx, grads);
}

static void compute(tb_ctx *ctx, const tb_block *b, const tb_settings *s)
{
    tb_model *m;
    size_t bytes, saved;
    if (tb_model_create(ctx, b, s, TB_F32, &m) != TB_OK)
        return;
    if (m->nelements <= WEIGHTS &&
        tb_model_memory(m, ROWS, TOKENS, TOKENS, TB_PASS_BWD, &bytes, &saved) ==
            TB_OK &&
        bytes <= MEMORY)
        run(m);
    tb_model_destroy(m);
}

/* Two tokens of width 2 in every name that such texts use. */
static void evaluate(tb_ctx *ctx, const char *text)
{
    static const double x[] = {1, -2, 0.5, 3}, g[] = {1, 0, -1, 2};
    const tb_eval_value in = {
        .name = "x", .rank = 2, .dims = {2, 2}, .data = x};
    const tb_eval_value cotangent = {
        .name = "y", .rank = 2, .dims = {2, 2}, .data = g};
    tb_eval e = {.text = text,
                 .nsets = 1,
                 .sets = &in,
                 .ntangents = 1,
                 .tangents = &in,
                 .jacobian = "x",
                 .seed = 1};
    tb_eval_result *r;
    for (int back = 0; back < 2; back++) {
        e.cotangent = back ? &cotangent : NULL;
        if (tb_eval_run(ctx, &e, &r) == TB_OK)
            tb_eval_free(ctx, r);
    }
}

/* --- all of it ------------------------------------------------------------ */

/* stack: tb_stacks; several settings of other systems are searched slowly */
static void whole(tb_ctx *ctx, const char *text, size_t n, int stack,
                  bool search)
{
    const tb_settings s = tiny(stack);
    tb_block *b;
    if (tb_block_parse(ctx, "fuzz", text, n, TB_PARSE_BLOCK, &b) != TB_OK)
        return;
    explain(ctx, b, &s);
    look(ctx, b, &s);
    compute(ctx, b, &s);
    if (search)
        peers(ctx, b, &s);
    tb_block_destroy(ctx, b);
}

static void all_of_it(const uint8_t *data, size_t size, int stack, bool search)
{
    char text[LONGEST + 1];
    tb_ctx *ctx;
    if (size > LONGEST || tb_ctx_create(&ctx) != TB_OK)
        return;
    tb_ctx_exact(ctx, true); /* no library is opened for products this small */
    memcpy(text, data, size);
    text[size] = '\0';
    whole(ctx, text, size, stack, search);
    if (!memchr(text, '\0', size))
        evaluate(ctx, text);
    tb_ctx_destroy(ctx); /* what is left the leak checker finds */
}

/* One kind of stack for each input, by its bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + data[i];
    all_of_it(data, size, (int)(sum % 3), sum / 3 % 16 == 0);
    return 0;
}
