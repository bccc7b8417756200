/* SPDX-License-Identifier: MIT */
/* What a page calls. Every call returns the exit status of the same command
 * line (0: done) and leaves a text: the JSON or SVG, or the error's lines.
 * Products are our own, so the numbers are those of `tollbooth --exact`. */
#include "base/base.h"
#include "base/platform.h"
#include "model/model.h"
#include "tollbooth/eval.h"
#include "tollbooth/explain.h"
#include "tollbooth/flow.h"
#include "tollbooth/shot.h"

#define EXPORT(name) __attribute__((export_name(#name)))

static struct {
    tb_ctx *ctx;
    tb_json *json; /* owners of the last text; at most one is there */
    tb_out *out;
    tb_block *block;
    const char *text;
} page;

static void forget(void)
{
    tb_json_destroy(page.json);
    tb_out_destroy(page.out);
    if (page.block)
        tb_block_destroy(page.ctx, page.block);
    page.json = NULL;
    page.out = NULL;
    page.block = NULL;
    page.text = "";
}

/* 24 MiB of them: stacks of 96 floors of width 64, and all below. */
enum { DRAWS_KEPT = 3 << 20 };

static tb_status start(void)
{
    if (!page.ctx) {
        TB_TRY(tb_ctx_create(&page.ctx));
        TB_TRY(tb_model_keep_draws(page.ctx, DRAWS_KEPT));
    }
    forget();
    tb_error_clear(page.ctx);
    tb_ctx_exact(page.ctx, true);
    return TB_OK;
}

/* n bytes from the page as a string of ours. */
static tb_status copy_text(const char *bytes, size_t n, char **out)
{
    *out = tb_alloc(page.ctx, n + 1, 1);
    if (!*out)
        return TB_ERR_MEMORY;
    memcpy(*out, bytes, n);
    return TB_OK;
}

/* The block named or written in n bytes at `what`. */
static tb_status begin(const char *what, size_t n)
{
    char *text;
    TB_TRY(start());
    TB_TRY(copy_text(what, n, &text));
    tb_status s = tb_block_load(page.ctx, text, &page.block);
    tb_free(page.ctx, text);
    return s;
}

static int end(tb_status s)
{
    if (s == TB_OK && page.json)
        page.text = tb_json_text(page.json);
    else if (s == TB_OK && page.out)
        page.text = tb_out_str(page.out);
    if (s == TB_OK && !page.text)
        s = TB_ERR_MEMORY;
    if (s != TB_OK)
        page.text = page.ctx && *tb_error(page.ctx) ? tb_error(page.ctx)
                                                    : tb_status_text(s);
    return tb_status_exit(s);
}

/** tb_web_alloc, tb_web_free - room for arguments. */
EXPORT(tb_web_alloc) void *tb_web_alloc(size_t bytes);
void *tb_web_alloc(size_t bytes)
{
    return tb_platform_alloc(bytes);
}

EXPORT(tb_web_free) void tb_web_free(void *p);
void tb_web_free(void *p)
{
    tb_platform_free(p);
}

/** tb_web_text, tb_web_text_len - what the last call left, UTF-8; gone with
 * the next call. */
EXPORT(tb_web_text) const char *tb_web_text(void);
const char *tb_web_text(void)
{
    return page.text ? page.text : "";
}

EXPORT(tb_web_text_len) size_t tb_web_text_len(void);
size_t tb_web_text_len(void)
{
    return strlen(tb_web_text());
}

/** tb_web_settings - sizes for the calls below; 0: the default. */
static tb_settings sizes = TB_SETTINGS_UNSET;
EXPORT(tb_web_settings)
void tb_web_settings(size_t depth, size_t width, size_t heads, size_t tokens,
                     size_t vocab);
void tb_web_settings(size_t depth, size_t width, size_t heads, size_t tokens,
                     size_t vocab)
{
    sizes = (tb_settings)TB_SETTINGS_UNSET;
    sizes.depth = depth;
    sizes.width = width;
    sizes.heads = heads;
    sizes.context = tokens;
    sizes.vocab = vocab;
}

/** tb_web_explain - the object of `explain --json`. */
EXPORT(tb_web_explain) int tb_web_explain(const char *what, size_t n);
int tb_web_explain(const char *what, size_t n)
{
    tb_status s = begin(what, n);
    if (s == TB_OK)
        s = tb_json_create(page.ctx, &page.json);
    if (s == TB_OK)
        s = tb_explain_json(page.ctx, page.block, &sizes, NULL, page.json,
                            NULL);
    return end(s);
}

/** tb_web_print - `explain --format`: 0 text, 1 latex, 2 mathml, 3 svg. */
EXPORT(tb_web_print) int tb_web_print(const char *what, size_t n, int format);
int tb_web_print(const char *what, size_t n, int format)
{
    tb_status s = begin(what, n);
    if (s == TB_OK)
        s = tb_out_create(page.ctx, &page.out);
    if (s == TB_OK)
        s = tb_explain_text(page.ctx, page.block, &sizes,
                            (tb_explain_format)format, false, 80, false,
                            page.out);
    return end(s);
}

static tb_status flow_json(const tb_flow *f)
{
    TB_TRY(tb_json_create(page.ctx, &page.json));
    tb_json_object(page.json, NULL);
    tb_json_string(page.json, "tollbooth", TB_VERSION);
    tb_json_array(page.json, "runs");
    tb_flow_json(f, page.json, NULL);
    tb_json_end(page.json);
    tb_json_end(page.json);
    return TB_OK;
}

/** tb_web_flow - the object of `flow --json --exact`. dtype 0: f32, 1: f64;
 * cotangent as tb_cotangent; spectrum 0 or 1. */
EXPORT(tb_web_flow)
int tb_web_flow(const char *what, size_t n, uint32_t seed, int dtype,
                int cotangent, int spectrum);
int tb_web_flow(const char *what, size_t n, uint32_t seed, int dtype,
                int cotangent, int spectrum)
{
    tb_flow *f = NULL;
    tb_flow_spec spec = {.settings = sizes,
                         .seed = seed,
                         .dtype = dtype ? TB_F64 : TB_F32,
                         .cotangent = (tb_cotangent)cotangent,
                         .spectrum = spectrum != 0};
    tb_status s = begin(what, n);
    if (s == TB_OK)
        s = tb_flow_measure(page.ctx, page.block, &spec, &f);
    if (s == TB_OK)
        s = flow_json(f);
    if (f)
        tb_flow_free(page.ctx, f);
    return end(s);
}

/* --- shots ---------------------------------------------------------------- */

enum { AS_JSON, AS_SVG, AS_TABLES, AS_TEXT, AS_STACK };

static tb_status print_shot(const tb_shot *shot, int face)
{
    const tb_svg how = {.in_html = true, .stacked = face == AS_STACK};
    if (face == AS_JSON) {
        TB_TRY(tb_json_create(page.ctx, &page.json));
        tb_shot_json(shot, page.json, NULL);
        return TB_OK;
    }
    TB_TRY(tb_out_create(page.ctx, &page.out));
    if (face == AS_SVG || face == AS_STACK)
        return tb_shot_svg(shot, &how, page.out);
    if (face == AS_TABLES)
        return tb_shot_html(shot, page.out);
    return tb_shot_term(shot, NULL, page.out);
}

/** tb_web_picture - a shot with settings as `picture --set` takes them.
 * `face`: 0 JSON, 1 SVG for a page, 2 HTML tables, 3 text, 4 SVG for a phone;
 * the faces of one shot, asked for one after the other, are computed once. */
EXPORT(tb_web_picture)
int tb_web_picture(const char *name, size_t n, const char *settings, size_t m,
                   int face);
int tb_web_picture(const char *name, size_t n, const char *settings, size_t m,
                   int face)
{
    static struct {
        tb_shot *shot;
        char *name, *settings;
    } last;
    char *what = NULL, *set = NULL;
    tb_status s = start();
    if (s == TB_OK)
        s = copy_text(name, n, &what);
    if (s == TB_OK)
        s = copy_text(settings, m, &set);
    if (s == TB_OK && !(last.shot && tb_streq(last.name, what) &&
                        tb_streq(last.settings, set))) {
        tb_shot_destroy(last.shot);
        s = tb_shot_create(page.ctx, what, set, &last.shot);
    }
    tb_free(page.ctx, last.name);
    tb_free(page.ctx, last.settings);
    last.name = what;
    last.settings = set;
    return end(s == TB_OK ? print_shot(last.shot, face) : s);
}

/* --- eval ----------------------------------------------------------------- */

enum { VALUES = 64 };
enum { SET, COTANGENT, TANGENT, KINDS };

/** Numbers the page has handed over for the next tb_web_eval. */
static struct {
    tb_eval_value of[KINDS][VALUES];
    size_t count[KINDS];
} given;

static void forget_given(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < given.count[kind]; i++) {
            tb_eval_value *v = &given.of[kind][i];
            tb_free(page.ctx, (void *)(uintptr_t)v->name);
            tb_free(page.ctx, (void *)(uintptr_t)v->data);
        }
        given.count[kind] = 0;
    }
}

static tb_status keep(tb_eval_value *v, const char *name, size_t n,
                      const double *data)
{
    size_t numbers = 1;
    char *text;
    for (int i = 0; i < v->rank; i++)
        if (__builtin_mul_overflow(numbers, v->dims[i], &numbers))
            return TB_ERR_SHAPE;
    TB_TRY(copy_text(name, n, &text));
    double *copy = tb_alloc(page.ctx, numbers, sizeof *copy);
    if (!copy) {
        tb_free(page.ctx, text);
        return TB_ERR_MEMORY;
    }
    memcpy(copy, data, numbers * sizeof *copy);
    v->name = text;
    v->data = copy;
    return TB_OK;
}

/** tb_web_give - numbers by name for the next tb_web_eval: kind 0 as --set,
 * 1 as --grad, 2 as --tangent; rank 0 to 3, row-major. */
EXPORT(tb_web_give)
int tb_web_give(int kind, const char *name, size_t n, int rank, size_t d0,
                size_t d1, size_t d2, const double *data);
int tb_web_give(int kind, const char *name, size_t n, int rank, size_t d0,
                size_t d1, size_t d2, const double *data)
{
    tb_eval_value v = {.rank = rank, .dims = {d0, d1, d2}};
    tb_status s = start();
    if (s == TB_OK && (kind < 0 || kind >= KINDS || rank < 0 ||
                       rank > TB_EVAL_RANK || given.count[kind] == VALUES))
        s = TB_ERR_USAGE;
    if (s == TB_OK)
        s = keep(&v, name, n, data);
    if (s == TB_OK)
        given.of[kind][given.count[kind]++] = v;
    return end(s);
}

static tb_status eval_json(const tb_eval *e)
{
    tb_eval_result *r;
    TB_TRY(tb_eval_run(page.ctx, e, &r));
    tb_status s = tb_json_create(page.ctx, &page.json);
    if (s == TB_OK)
        tb_eval_json(r, page.json, NULL);
    tb_eval_free(page.ctx, r);
    return s;
}

/** tb_web_eval - the object of `eval --json --exact` in f64, on the numbers
 * given; they are forgotten. `inputs`: as --jacobian, n_inputs 0 for none.
 * heads 0: 1; eps < 0: 1e-5. */
EXPORT(tb_web_eval)
int tb_web_eval(const char *expr, size_t n, const char *inputs, size_t n_inputs,
                size_t heads, double eps);
int tb_web_eval(const char *expr, size_t n, const char *inputs, size_t n_inputs,
                size_t heads, double eps)
{
    char *text = NULL, *of = NULL;
    tb_status s = start();
    if (s == TB_OK)
        s = copy_text(expr, n, &text);
    if (s == TB_OK)
        s = copy_text(inputs, n_inputs, &of);
    tb_eval e = {.text = text,
                 .sets = given.of[SET],
                 .nsets = given.count[SET],
                 .cotangent =
                     given.count[COTANGENT] ? given.of[COTANGENT] : NULL,
                 .tangents = given.of[TANGENT],
                 .ntangents = given.count[TANGENT],
                 .jacobian = n_inputs ? of : NULL,
                 .heads = heads,
                 .eps = eps < 0 ? NULL : &eps,
                 .seed = 1};
    if (s == TB_OK)
        s = eval_json(&e);
    if (page.ctx) {
        tb_free(page.ctx, text);
        tb_free(page.ctx, of);
        forget_given();
    }
    return end(s);
}
