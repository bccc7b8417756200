/* SPDX-License-Identifier: MIT */
/* tollbooth eval: an equation on given numbers. */
#include "cli.h"
#include "named.h"
#include "tollbooth/eval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const opt_usage usage = {
    .name = "eval",
    .operands = "EXPR",
    .summary = "evaluate an equation, its gradients and Jacobian",
    .detail =
        "EXPR is one or more statements; the value is that of the last one. "
        "--set gives inputs ([d], [T,d] or [B,T,d]) and weights (norm.gain, "
        "attn.q) by name, as JSON, NAME=FILE.npy or "
        "NAME=FILE.safetensors:TENSOR. The strings \"nan\", \"inf\" and "
        "\"-inf\" are numbers. A non-finite result is printed and exits 4.",
    .example = "eval 'x + relu(norm(x))' --set x='[1,2,3,4]' --jacobian x",
    .min = 1,
    .max = 1,
};

/* --- output ------------------------------------------------------------------
 */

static bool finite(const tb_eval_value *v)
{
    size_t n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->dims[i];
    for (size_t i = 0; v->data && i < n; i++)
        if (!(v->data[i] - v->data[i] == 0))
            return false;
    return true;
}

static bool all_finite(const tb_eval_result *r)
{
    bool ok = finite(&r->y) && finite(&r->tangent) && finite(&r->jacobian);
    for (size_t i = 0; i < r->ngrads; i++)
        ok = ok && finite(&r->grads[i]);
    return ok;
}

/* Rows of numbers, seven digits, one token a line. */
static void value_text(const char *name, const tb_eval_value *v)
{
    size_t n = 1, width = v->rank ? v->dims[v->rank - 1] : 1;
    if (!v->data)
        return;
    for (int i = 0; i < v->rank; i++)
        n *= v->dims[i];
    printf("%s%s", name, v->rank > 1 || n > 8 ? "\n" : " ");
    for (size_t i = 0; i < n; i++)
        printf("%12.7g%s", v->data[i], (i + 1) % width == 0 ? "\n" : " ");
}

static void result_text(const tb_eval_result *r)
{
    char name[200];
    value_text("y", &r->y);
    for (size_t i = 0; i < r->ngrads; i++) {
        snprintf(name, sizeof name, "grad %s", r->grads[i].name);
        value_text(name, &r->grads[i]);
    }
    for (size_t i = 0; i < r->nstatistics; i++)
        value_text(r->statistics[i].name, &r->statistics[i]);
    value_text("tangent", &r->tangent);
    value_text("jacobian (rows are outputs, columns inputs)", &r->jacobian);
}

static int report(tb_ctx *ctx, const tb_eval_result *r, bool json)
{
    int code = all_finite(r) ? 0 : tb_status_exit(TB_ERR_NONFINITE);
    tb_json *j;
    if (r->nonfinite_rows)
        fprintf(stderr,
                "tollbooth: %zu non-finite row%s, first at row %zu, operation "
                "%s\n",
                r->nonfinite_rows, r->nonfinite_rows == 1 ? "" : "s",
                r->first_row, r->first_op ? r->first_op : "input");
    if (r->empty_rows)
        fprintf(stderr,
                "tollbooth: %zu row%s of attention may see nothing and get "
                "zeros\n",
                r->empty_rows, r->empty_rows == 1 ? "" : "s");
    if (!json) {
        result_text(r);
        return finish(code);
    }
    if (tb_json_create(ctx, &j) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_eval_json(r, j, NULL);
    return print_json(ctx, j, code);
}

static int run(tb_ctx *ctx, const tb_eval *e, bool json)
{
    tb_eval_result *r;
    tb_status s = tb_eval_run(ctx, e, &r);
    if (s != TB_OK)
        return die(ctx, s);
    int code = report(ctx, r, json);
    tb_eval_free(ctx, r);
    return code;
}

/* --- command -----------------------------------------------------------------
 */

/** The command line, and what it names. */
typedef struct words {
    opt_many set, tangent;
    const char *grad;
    char *cotangent; /* "y=" and grad */
    bool json, exact;
    int dtype, mask, statistics;
    double eps;
    tb_eval e;
    named sets, tangents, cot;
} words;

static int read_grad(tb_ctx *ctx, words *w)
{
    size_t n = strlen(w->grad) + strlen("y=") + 1;
    w->cotangent = malloc(n);
    if (!w->cotangent)
        return die(ctx, TB_ERR_MEMORY);
    snprintf(w->cotangent, n, "y=%s", w->grad);
    return named_add(ctx, &w->cot, "grad", w->cotangent);
}

static int read_values(tb_ctx *ctx, words *w)
{
    int code = named_add_all(ctx, &w->sets, "set", &w->set);
    if (code == 0)
        code = named_add_all(ctx, &w->tangents, "tangent", &w->tangent);
    if (code == 0 && w->grad)
        code = read_grad(ctx, w);
    w->e.sets = w->sets.values;
    w->e.nsets = w->sets.count;
    w->e.tangents = w->tangents.values;
    w->e.ntangents = w->tangents.count;
    w->e.cotangent = w->cot.count ? w->cot.values : NULL;
    w->e.eps = w->eps >= 0 ? &w->eps : NULL;
    w->e.f32 = w->dtype == 1;
    w->e.running = w->statistics == 1;
    w->e.mask = w->mask == 1 ? TB_EVAL_MASK_NONE : TB_EVAL_MASK_CAUSAL;
    return code;
}

static int evaluate(tb_ctx *ctx, words *w)
{
    int code = read_values(ctx, w);
    tb_ctx_exact(ctx, w->exact);
    if (code == 0)
        code = run(ctx, &w->e, w->json);
    named_clear(ctx, &w->sets);
    named_clear(ctx, &w->tangents);
    named_clear(ctx, &w->cot);
    free(w->cotangent);
    return code;
}

int cmd_eval(tb_ctx *ctx, int argc, char **argv)
{
    words w = {.eps = -1,
               .e.seed = 1,
               .sets.command = "eval",
               .tangents.command = "eval",
               .cot.command = "eval"};
    const opt opts[] = {
        {"set", OPT_MANY, &w.set, "NAME=V", "an input or a weight: x='[1,2,3]'",
         0, 0},
        {"grad", OPT_TEXT, &w.grad, "JSON",
         "cotangent, of the shape of the value: prints all gradients", 0, 0},
        {"tangent", OPT_MANY, &w.tangent, "NAME=V",
         "direction of an input: prints the tangent", 0, 0},
        {"jacobian", OPT_TEXT, &w.e.jacobian, "NAME",
         "Jacobian with respect to this input", 0, 0},
        {"blocks", OPT_FLAG, &w.e.jacobian_blocks, NULL,
         "of --jacobian only each token's own block: [rows, outputs, inputs]",
         0, 0},
        {"heads", OPT_SIZE, &w.e.heads, "h", "attention heads (default 1)", 0,
         0},
        {"kv-heads", OPT_SIZE, &w.e.kv_heads, "n",
         "key and value heads (default: heads)", 0, 0},
        {"mask", OPT_CHOICE, &w.mask, NULL, "attention mask (default causal)",
         "causal|none", 0},
        {"statistics", OPT_CHOICE, &w.statistics, NULL,
         "of batchnorm and powernorm: of the given tokens, or the running ones "
         "(default batch)",
         "batch|running", 0},
        {"seed", OPT_SEED, &w.e.seed, "S",
         "seed of weights not set (default 1)", 0, 0},
        {"norm", OPT_TEXT, &w.e.norm, "KIND",
         "norm(...): rmsnorm scalenorm l2norm batchnorm powernorm dyt derf "
         "(default layernorm)",
         0, 0},
        {"eps", OPT_REAL, &w.eps, "E", "eps of the norms (default 1e-5)", 0, 0},
        {"init", OPT_TEXT, &w.e.init, "RULES", "init rules of weights not set",
         0, 0},
        {"dtype", OPT_CHOICE, &w.dtype, NULL, "number type (default f64)",
         "f64|f32", 0},
        {"exact", OPT_FLAG, &w.exact, NULL, "our own matrix products only", 0,
         0},
        {"json", OPT_FLAG, &w.json, NULL, "print one JSON object", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    w.e.text = argv[0];
    return evaluate(ctx, &w);
}
