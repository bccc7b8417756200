/* SPDX-License-Identifier: MIT */
/* tollbooth explain: what the text of a block alone gives. */
#include "drawing.h"
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

static tb_status numeric_lines(const tb_numeric *n, tb_out *out)
{
    char text[400];
    snprintf(
        text, sizeof text,
        "\nNumeric   on random numbers (width %zu, %zu tokens, double) the "
        "formula\n"
        "          differs from the tangent pass by %.2g, from the "
        "backward\n"
        "          pass by %.2g, from a central difference by %.2g of its\n"
        "          largest entry\n",
        n->width, n->tokens, n->tangent, n->backward, n->difference);
    return tb_out_put(out, text);
}

#define FORMATS "text|latex|mathml|svg|png|pdf|json"
enum { AS_TEXT, AS_LATEX, AS_MATHML, AS_SVG, AS_PNG, AS_PDF, AS_JSON };

typedef struct explain_options {
    bool numeric, expand, ascii;
    drawing to;
} explain_options;

static tb_status put_text(tb_ctx *ctx, const tb_block *b, const tb_settings *s,
                          const tb_numeric *numeric, const explain_options *o)
{
    static const tb_explain_format formats[] = {[AS_TEXT] = TB_EXPLAIN_TEXT,
                                                [AS_LATEX] = TB_EXPLAIN_LATEX,
                                                [AS_MATHML] =
                                                    TB_EXPLAIN_MATHML};
    tb_terminal term = terminal_of(o->ascii);
    tb_out *out;
    tb_status status = tb_out_create(ctx, &out);
    if (status != TB_OK)
        return status;
    status = tb_explain_text(ctx, b, s, formats[o->to.format], o->expand,
                             term.width, o->ascii, out);
    if (status == TB_OK && numeric)
        status = numeric_lines(numeric, out);
    if (status == TB_OK)
        status = deliver_text(ctx, o->to.out, out);
    tb_out_destroy(out);
    return status;
}

static tb_status put_object(tb_ctx *ctx, const tb_block *b,
                            const tb_settings *s, const tb_numeric *numeric,
                            const explain_options *o)
{
    tb_json *j;
    tb_status status = tb_json_create(ctx, &j);
    if (status != TB_OK)
        return status;
    status = tb_explain_json(ctx, b, s, numeric, j, NULL);
    if (status == TB_OK)
        status = deliver_json(ctx, o->to.out, j);
    tb_json_destroy(j);
    return status;
}

static tb_status put_scene(tb_ctx *ctx, const tb_block *b, const tb_settings *s,
                           const explain_options *o)
{
    tb_scene *scene;
    tb_status status = tb_explain_scene(ctx, b, s, &scene);
    if (status != TB_OK)
        return status;
    status = drawing_write(ctx, &o->to, scene);
    tb_scene_destroy(scene);
    return status;
}

/* The object, the drawing, or text and formula. */
static int print(tb_ctx *ctx, const tb_block *b, const tb_settings *s,
                 const explain_options *o)
{
    tb_numeric n;
    tb_status status =
        o->numeric ? tb_explain_numeric(ctx, b, s, 1, &n) : TB_OK;
    const tb_numeric *shown = o->numeric ? &n : NULL;
    if (status == TB_OK)
        status = o->to.format == AS_JSON  ? put_object(ctx, b, s, shown, o)
                 : o->to.how != DRAWN_NOT ? put_scene(ctx, b, s, o)
                                          : put_text(ctx, b, s, shown, o);
    return status == TB_OK ? finish(code_of(shown)) : die(ctx, status);
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
    explain_options o = {.to = DRAWING_UNSET};
    const char *label = NULL;
    const opt opts[] = {
        {"depth", OPT_SIZE, &s.depth, "N", "blocks in the stack (default 6)", 0,
         0},
        SETTINGS_OPTS(s, "64"),
        STACK_OPTS(s),
        DRAWING_OPTS(o.to, FORMATS),
        {"numeric", OPT_FLAG, &o.numeric, NULL,
         "evaluate the Jacobian on random numbers (width 8 unless --width) and "
         "hold it against tangent, backward and central difference",
         0, 0},
        {"expand", OPT_FLAG, &o.expand, NULL,
         "open J_attn and J_ffn down to their weights", 0, 0},
        {"expect", OPT_TEXT, &label, "BLOCK",
         "exit 1 unless the block has that block's placement: where norms, "
         "sums, factors and sublayers stand, compared by graphs",
         0, 0},
        {"ascii", OPT_FLAG, &o.ascii, NULL, "plain ASCII drawing", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    tb_block *b;
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    int bad = drawing_settle("explain", FORMATS, &o.to);
    if (bad)
        return bad;
    if (o.numeric && o.to.format != AS_TEXT && o.to.format != AS_JSON)
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
    int code = print(ctx, b, &s, &o);
    tb_block_destroy(ctx, b);
    return code ? code : wrong;
}
