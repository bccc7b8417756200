/* SPDX-License-Identifier: MIT */
/* What a page calls. Every call returns the exit status of the same command
 * line (0: done) and leaves a text: the JSON or SVG, or the error's lines.
 * Products are our own, so the numbers are those of `tollbooth --exact`. */
#include "base/base.h"
#include "base/platform.h"
#include "tollbooth/explain.h"
#include "tollbooth/flow.h"

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

/* The block named or written in n bytes at `what`. */
static tb_status begin(const char *what, size_t n)
{
    if (!page.ctx)
        TB_TRY(tb_ctx_create(&page.ctx));
    forget();
    tb_error_clear(page.ctx);
    tb_ctx_exact(page.ctx, true);
    char *text = tb_alloc(page.ctx, n + 1, 1);
    if (!text)
        return TB_ERR_MEMORY;
    memcpy(text, what, n);
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
static tb_settings settings = TB_SETTINGS_UNSET;
EXPORT(tb_web_settings)
void tb_web_settings(size_t depth, size_t width, size_t heads, size_t tokens,
                     size_t vocab);
void tb_web_settings(size_t depth, size_t width, size_t heads, size_t tokens,
                     size_t vocab)
{
    settings = (tb_settings)TB_SETTINGS_UNSET;
    settings.depth = depth;
    settings.width = width;
    settings.heads = heads;
    settings.context = tokens;
    settings.vocab = vocab;
}

/** tb_web_explain - the object of `explain --json`. */
EXPORT(tb_web_explain) int tb_web_explain(const char *what, size_t n);
int tb_web_explain(const char *what, size_t n)
{
    tb_status s = begin(what, n);
    if (s == TB_OK)
        s = tb_json_create(page.ctx, &page.json);
    if (s == TB_OK)
        s = tb_explain_json(page.ctx, page.block, &settings, page.json, NULL);
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
        s = tb_explain_text(page.ctx, page.block, &settings,
                            (tb_explain_format)format, 80, false, page.out);
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
    tb_flow_spec spec = {.settings = settings,
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
