/* SPDX-License-Identifier: MIT */
/* tollbooth flow: what the gradient is at every sublayer boundary. */
#include "drawing.h"
#include "flow_print.h"
#include "report_parts.h"
#include "tollbooth/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const opt_usage usage = {
    .name = "flow",
    .operands = "BLOCK...",
    .summary = "gradient flow through any depth, side by side",
    .detail =
        "A BLOCK is measured at its initial values; a folder that train wrote "
        "is measured as it is, in its own sizes. lane is the backward signal "
        "with every branch cut, total the true gradient, both relative to the "
        "top of the stack, below the final norm.",
    .example = "flow post-ln pre-ln --depth 6,12,48",
    .min = 1,
    .max = -1,
};

#define FORMATS "text|svg|png|pdf|json"
enum { AS_TEXT, AS_SVG, AS_PNG, AS_PDF, AS_JSON };

typedef struct flow_options {
    tb_flow_spec spec;
    opt_sizes depths;
    opt_many thresholds;
    tb_threshold limits[64];
    const char *text, *svg, *report, *command;
    bool exact, ascii, check, table, audit;
    int attention, mask, cotangent, dtype; /* mask -1: by the stack */
    drawing to;
    size_t tokens;
} flow_options;

static int read_thresholds(flow_options *o)
{
    for (size_t i = 0; i < o->thresholds.count; i++) {
        const char *item = o->thresholds.items[i];
        char *code = strdup(item), *equals = code ? strchr(code, '=') : NULL;
        double v;
        if (!equals || !opt_real(equals + 1, &v)) {
            free(code);
            return usage_error("flow", "--threshold: got %s, wanted CODE=v",
                               item);
        }
        *equals = '\0';
        o->limits[i] = (tb_threshold){code, v};
    }
    o->spec.thresholds = o->limits;
    o->spec.nthresholds = o->thresholds.count;
    return 0;
}

/* batch*(T+1) ids: evenly spaced windows of the text. */
static tb_status window_ids(tb_ctx *ctx, const tb_tokens *t, size_t batch,
                            size_t tokens, const char *name, int32_t **out)
{
    size_t row = tokens + 1;
    *out = NULL;
    if (t->count < row) {
        complain("tollbooth: %s: need at least %zu tokens, have %zu\n", name,
                 row, t->count);
        tb_error_clear(ctx);
        return TB_ERR_INPUT;
    }
    if (batch > SIZE_MAX / sizeof **out / row)
        return TB_ERR_MEMORY;
    *out = malloc(batch * row * sizeof **out);
    if (!*out)
        return TB_ERR_MEMORY;
    for (size_t b = 0; b < batch; b++) {
        size_t at = batch > 1 ? (t->count - row) * b / (batch - 1) : 0;
        memcpy(*out + b * row, t->ids + at, row * sizeof **out);
    }
    return TB_OK;
}

static tb_status text_ids(tb_ctx *ctx, flow_options *o,
                          const tb_tokenizer *tokenizer, int32_t **ids)
{
    tb_text text = {0};
    tb_tokens tokens = {0};
    tb_tokenizer *own = NULL;
    size_t batch = o->spec.batch ? o->spec.batch : 1;
    tb_status s = tb_text_load(ctx, o->text, NULL, &text);
    if (s == TB_OK && !tokenizer) {
        s = tb_tokenizer_byte(ctx, &own);
        tokenizer = own;
    }
    if (s == TB_OK)
        s = tb_tokenizer_encode(ctx, tokenizer, o->text, text.bytes.data,
                                text.bytes.len, &tokens);
    if (s == TB_OK)
        s = window_ids(ctx, &tokens, batch, o->spec.settings.context, o->text,
                       ids);
    tb_tokens_clear(ctx, &tokens);
    tb_text_clear(ctx, &text);
    tb_tokenizer_destroy(own);
    return s;
}

/* A folder of train: its weights, its sizes. */
static tb_status measure_folder(tb_ctx *ctx, flow_options *o, const char *dir,
                                tb_flow **out)
{
    tb_lm *lm;
    int32_t *ids = NULL;
    tb_status s = tb_lm_open(ctx, dir, &lm);
    if (s != TB_OK)
        return s;
    o->spec.settings.context = tb_lm_settings(lm)->context;
    if (o->text)
        s = text_ids(ctx, o, tb_lm_tokenizer(lm), &ids);
    o->spec.ids = ids;
    if (s == TB_OK)
        s = tb_lm_flow(lm, &o->spec, out);
    o->spec.ids = NULL;
    free(ids);
    tb_lm_close(lm);
    return s;
}

static tb_status measure_block(tb_ctx *ctx, flow_options *o, const char *what,
                               size_t depth, tb_flow **out)
{
    tb_block *b;
    int32_t *ids = NULL;
    tb_status s = tb_block_load(ctx, what, &b);
    if (s != TB_OK)
        return s;
    o->spec.settings.context = o->tokens ? o->tokens : 32;
    o->spec.settings.depth = depth;
    if (o->text) {
        o->spec.settings.vocab = 256;
        s = text_ids(ctx, o, NULL, &ids);
    }
    o->spec.ids = ids;
    if (s == TB_OK)
        s = tb_flow_measure(ctx, b, &o->spec, out);
    o->spec.ids = NULL;
    free(ids);
    tb_block_destroy(ctx, b);
    return s;
}

static bool is_folder(const char *what)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/" TB_DIR_CONFIG, what);
    return tb_file_exists(path);
}

static tb_status put_heading(const tb_flow *f, const tb_terminal *term,
                             tb_out *out)
{
    pool p = {0};
    const char *label = report_flow_label(&p, f);
    tb_status s = pool_status(&p);
    tb_out_put(out, "\n");
    if (s == TB_OK)
        s = tb_text_term(label, 2, term, out);
    pool_free(&p);
    return s;
}

static tb_status json_of(tb_ctx *ctx, tb_flow *const *runs, size_t n,
                         tb_json **out)
{
    tb_json *j;
    tb_status s = tb_json_create(ctx, &j);
    *out = j;
    if (s != TB_OK)
        return s;
    tb_json_object(j, NULL);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_array(j, "runs");
    for (size_t i = 0; i < n; i++)
        tb_flow_json(runs[i], j, NULL);
    tb_json_end(j);
    tb_json_end(j);
    return TB_OK;
}

static tb_status put_objects(tb_ctx *ctx, const flow_options *o,
                             tb_flow *const *runs, size_t n)
{
    tb_json *j = NULL;
    tb_status s = json_of(ctx, runs, n, &j);
    if (s == TB_OK)
        s = deliver_json(ctx, o->to.out, j);
    tb_json_destroy(j);
    return s;
}

static report_flow *labelled(pool *p, tb_flow *const *runs, size_t n)
{
    report_flow *flows = pool_get(p, n, sizeof *flows);
    for (size_t i = 0; flows && i < n; i++)
        flows[i] = (report_flow){report_flow_label(p, runs[i]), runs[i]};
    return flows;
}

/* The figure of all runs: as text, or as a scene. */
static tb_status draw(tb_ctx *ctx, tb_flow *const *runs, size_t n,
                      const tb_terminal *term, tb_out *out, tb_scene **scene)
{
    pool p = {0};
    report_flow *flows = labelled(&p, runs, n);
    tb_flow_figure f = {0};
    if (flows)
        f = report_flow_figure(&p, flows, n);
    tb_status s = pool_status(&p);
    if (s == TB_OK)
        s = scene ? tb_flow_scene(ctx, &f, scene)
                  : tb_flow_term(ctx, &f, term, out);
    pool_free(&p);
    return s;
}

static tb_status put_text(tb_ctx *ctx, const flow_options *o,
                          tb_flow *const *runs, size_t n, tb_out *out)
{
    tb_terminal term = terminal_of(o->ascii);
    tb_status s = draw(ctx, runs, n, &term, out, NULL);
    tb_out_put(out, "\n");
    if (s == TB_OK)
        s = flow_summary(ctx, runs, n, &term, out);
    for (size_t i = 0; i < n && s == TB_OK; i++) {
        s = put_heading(runs[i], &term, out);
        if (s == TB_OK && o->table)
            s = flow_table(ctx, runs[i], &term, out);
        if (s == TB_OK && runs[i]->has_spread)
            s = flow_weights(ctx, runs[i], &term, out);
        if (s == TB_OK)
            s = flow_verdicts(ctx, runs[i], &term, out);
    }
    return s;
}

static tb_status put_figures(tb_ctx *ctx, const flow_options *o,
                             tb_flow *const *runs, size_t n)
{
    tb_out *out;
    tb_status s = tb_out_create(ctx, &out);
    if (s != TB_OK)
        return s;
    s = put_text(ctx, o, runs, n, out);
    if (s == TB_OK)
        s = deliver_text(ctx, o->to.out, out);
    tb_out_destroy(out);
    return s;
}

static tb_status write_scene(tb_ctx *ctx, const drawing *to,
                             tb_flow *const *runs, size_t n)
{
    tb_scene *scene = NULL;
    tb_status s = draw(ctx, runs, n, NULL, NULL, &scene);
    if (s == TB_OK)
        s = drawing_write(ctx, to, scene);
    tb_scene_destroy(scene);
    return s;
}

static tb_status put_result(tb_ctx *ctx, const flow_options *o,
                            tb_flow *const *runs, size_t n)
{
    return o->to.format == AS_JSON  ? put_objects(ctx, o, runs, n)
           : o->to.how == DRAWN_NOT ? put_figures(ctx, o, runs, n)
                                    : write_scene(ctx, &o->to, runs, n);
}

/* --- the page ----------------------------------------------------------------
 */

static tb_status block_part(tb_ctx *ctx, const flow_options *o, pool *p,
                            const char *what, report_block *out)
{
    tb_block *b = NULL;
    tb_lm *lm = NULL;
    bool folder = is_folder(what);
    tb_status s =
        folder ? tb_lm_open(ctx, what, &lm) : tb_block_load(ctx, what, &b);
    tb_settings sizes = lm ? *tb_lm_settings(lm) : o->spec.settings;
    if (!folder && o->depths.count)
        sizes.depth = o->depths.items[0];
    if (s == TB_OK)
        s = report_block_of(ctx, p, lm ? tb_lm_block(lm) : b, what, &sizes,
                            NULL, out);
    if (b)
        tb_block_destroy(ctx, b);
    tb_lm_close(lm);
    return s;
}

static void setting(tb_report_setting *rows, size_t *n, const char *name,
                    const char *value)
{
    if (value)
        rows[(*n)++] = (tb_report_setting){name, value};
}

static tb_report_setting *settings_of(pool *p, const flow_options *o, size_t *n)
{
    static const char *const sent[] = {
        "the gradient of the mean loss", "independent normal numbers",
        "one normal vector, the same for every token"};
    static const char *const masks[] = {"causal", "none"};
    enum { MOST = 8 };
    tb_report_setting *rows = pool_get(p, MOST, sizeof *rows);
    *n = 0;
    if (!rows)
        return NULL;
    setting(rows, n, "sent back from the top", sent[o->cotangent]);
    setting(rows, n, "tokens", o->text ? o->text : "random");
    setting(rows, n, "norm", o->spec.settings.norm);
    setting(rows, n, "init", o->spec.settings.init);
    setting(rows, n, "attention",
            o->attention ? "uniform: queries and keys start at 0" : NULL);
    setting(rows, n, "mask", o->mask >= 0 ? masks[o->mask] : NULL);
    setting(rows, n, "matrix products", o->exact ? "our own only" : NULL);
    return rows;
}

static tb_status write_report(tb_ctx *ctx, const flow_options *o, int argc,
                              char **argv, tb_flow *const *runs, size_t n)
{
    pool p = {0};
    tb_json *j = NULL;
    report_block *blocks = pool_get(&p, (size_t)argc, sizeof *blocks);
    report r = {.title = "Gradient flow",
                .lead = "What is left of a signal that is sent back from the "
                        "top, at every sublayer.",
                .command = o->command,
                .blocks = blocks,
                .nblocks = (size_t)argc,
                .flows = labelled(&p, runs, n),
                .nflows = n};
    r.settings = settings_of(&p, o, &r.nsettings);
    tb_status s = pool_status(&p);
    for (int i = 0; i < argc && s == TB_OK; i++)
        s = block_part(ctx, o, &p, argv[i], &blocks[i]);
    if (s == TB_OK) {
        r.runs = report_flow_table(&p, r.flows, n);
        s = json_of(ctx, runs, n, &j);
    }
    if (s == TB_OK)
        s = (r.json = tb_json_text(j)) ? pool_status(&p) : TB_ERR_MEMORY;
    if (s == TB_OK)
        s = report_page(ctx, &r, o->report);
    tb_json_destroy(j);
    pool_free(&p);
    return s;
}

/* --check: 1 on a FAIL; a non-finite result is exit 4 in any case. */
static int exit_code(const flow_options *o, tb_flow *const *runs, size_t n)
{
    int code = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t v = 0; v < runs[i]->nverdicts; v++) {
            const tb_verdict *x = &runs[i]->verdicts[v];
            if (x->level != TB_FAILED)
                continue;
            if (strcmp(x->code, "NONFINITE") == 0)
                return tb_status_exit(TB_ERR_NONFINITE);
            if (o->check)
                code = tb_status_exit(TB_CHECK);
        }
    return code;
}

/* Sizes given for folders only would be ignored: say so. */
static int check_sizes(const flow_options *o, int argc, char **argv)
{
    const tb_settings *s = &o->spec.settings;
    const struct {
        const char *name;
        bool given;
    } sizes[] = {
        {"depth", o->depths.count},
        {"width", s->width},
        {"heads", s->heads},
        {"kv-heads", s->kv_heads},
        {"ffn", s->ffn},
        {"norm", s->norm},
        {"eps", s->eps >= 0},
        {"dropout", s->dropout >= 0},
        {"no-bias", s->bias == 0},
        {"positions", s->positions >= 0},
        {"stack", s->stack},
        {"decoder-depth", s->decoder_depth},
        {"tied", s->tied == 1},
        {"init", s->init},
        {"tokens", o->tokens},
        {"vocab", s->vocab},
    };
    for (int i = 0; i < argc; i++)
        if (!is_folder(argv[i]))
            return 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].given)
            return usage_error("flow",
                               "--%s: %s is a trained folder and has its own",
                               sizes[i].name, argv[0]);
    return 0;
}

static int measure_all(tb_ctx *ctx, flow_options *o, int argc, char **argv)
{
    size_t ndepths = o->depths.count ? o->depths.count : 1, n = 0;
    tb_flow **runs = calloc((size_t)argc * ndepths, sizeof *runs);
    tb_status s = runs ? TB_OK : TB_ERR_MEMORY;
    for (int i = 0; i < argc && s == TB_OK; i++) {
        bool folder = is_folder(argv[i]);
        for (size_t k = 0; k < (folder ? 1 : ndepths) && s == TB_OK; k++) {
            size_t depth = o->depths.count ? o->depths.items[k] : 0;
            s = folder ? measure_folder(ctx, o, argv[i], &runs[n])
                       : measure_block(ctx, o, argv[i], depth, &runs[n]);
            n += s == TB_OK;
        }
    }
    if (s == TB_OK && o->svg)
        s = write_scene(ctx, &(drawing){.out = o->svg, .how = DRAWN_SVG}, runs,
                        n);
    if (s == TB_OK && o->report)
        s = write_report(ctx, o, argc, argv, runs, n);
    if (s == TB_OK)
        s = put_result(ctx, o, runs, n);
    int code = s == TB_ERR_INPUT && !*tb_error(ctx)
                   ? tb_status_exit(s) /* said */
               : s != TB_OK ? die(ctx, s)
                            : finish(exit_code(o, runs, n));
    for (size_t i = 0; i < n; i++)
        tb_flow_free(ctx, runs[i]);
    free(runs);
    return code;
}

/* What the options come to; 0, or the exit code of a usage error. */
static int settle(flow_options *o, int argc, char **argv)
{
    tb_settings *s = &o->spec.settings;
    s->uniform_attention = o->attention;
    s->causal = o->mask < 0 ? -1 : o->mask == 0;
    o->spec.cotangent = (tb_cotangent)o->cotangent;
    o->spec.dtype = o->dtype == 1 ? TB_F64 : TB_F32;
    if (o->audit || o->spec.alpha || o->report)
        o->spec.audit = &tb_flow_audit;
    int code = drawing_settle("flow", FORMATS, &o->to);
    if (code == 0)
        code = read_thresholds(o);
    return code ? code : check_sizes(o, argc, argv);
}

int cmd_flow(tb_ctx *ctx, int argc, char **argv)
{
    flow_options o = {.spec = {.settings = TB_SETTINGS_UNSET, .seed = 1},
                      .mask = -1,
                      .to = DRAWING_UNSET};
    tb_settings *s = &o.spec.settings;
    const opt opts[] = {
        {"depth", OPT_SIZES, &o.depths, "N,N,...",
         "blocks in the stack (default 6)", 0, 0},
        SETTINGS_OPTS(*s, "64"),
        STACK_OPTS(*s),
        {"tokens", OPT_SIZE, &o.tokens, "T", "tokens in a row (default 32)", 0,
         0},
        {"batch", OPT_SIZE, &o.spec.batch, "B", "rows (default 1)", 0, 0},
        {"vocab", OPT_SIZE, &s->vocab, "V", "vocabulary (default 256)", 0, 0},
        {"text", OPT_TEXT, &o.text, "FILE",
         "a text, by bytes (a folder: its own tokenizer), not random tokens", 0,
         0},
        {"seed", OPT_SEED, &o.spec.seed, "S", "seed (default 1)", 0, 0},
        {"attention", OPT_CHOICE, &o.attention, NULL,
         "uniform: queries and keys start at 0", "softmax|uniform", 0},
        {"mask", OPT_CHOICE, &o.mask, NULL,
         "attention mask (default causal, in an encoder none)", "causal|none",
         0},
        {"cotangent", OPT_CHOICE, &o.cotangent, NULL,
         "what is sent back from the top (default loss)",
         "loss|random|coherent", 0},
        {"spectrum", OPT_FLAG, &o.spec.spectrum, NULL,
         "singular values of the whole stack (B*T*d up to 512)", 0, 0},
        {"audit", OPT_FLAG, &o.audit, NULL,
         "every sublayer's Jacobian, for --json; --report always has it", 0, 0},
        {"alpha", OPT_FLAG, &o.spec.alpha, NULL,
         "with an audit, exponents of the weights' spectra (contested)", 0, 0},
        {"what-if", OPT_FLAG, &o.spec.what_if, NULL,
         "the same in changed blocks, for --report and --json", 0, 0},
        {"dtype", OPT_CHOICE, &o.dtype, NULL, "number type (default f32)",
         "f32|f64", 0},
        {"exact", OPT_FLAG, &o.exact, NULL, "our own matrix products only", 0,
         0},
        {"threshold", OPT_MANY, &o.thresholds, "CODE=v",
         "limit of a verdict, e.g. VANISH=0.01", 0, 0},
        {"check", OPT_FLAG, &o.check, NULL, "exit 1 on a FAIL", 0, 0},
        {"table", OPT_FLAG, &o.table, NULL, "print every sublayer", 0, 0},
        {"weights", OPT_FLAG, &o.spec.weights, NULL,
         "print every weight: its rule, measured standard deviation, gradient",
         0, 0},
        {"ascii", OPT_FLAG, &o.ascii, NULL, "plain ASCII drawing", 0, 0},
        DRAWING_OPTS(o.to, FORMATS),
        {"svg", OPT_TEXT, &o.svg, "FILE", "write the figure there too", 0, 0},
        {"report", OPT_TEXT, &o.report, "FILE",
         "write a page with every plot there too", 0, 0},
        OPT_END,
    };
    char *command = command_line(argc, argv);
    o.command = command ? command : "tollbooth flow";
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    if (end != OPT_GO) {
        free(command);
        return end == OPT_DONE ? finish(0) : 2;
    }
    int code = settle(&o, argc, argv);
    tb_ctx_exact(ctx, o.exact);
    if (code == 0)
        code = measure_all(ctx, &o, argc, argv);
    for (size_t i = 0; i < o.thresholds.count; i++)
        free((void *)(uintptr_t)o.limits[i].code);
    free(command);
    return code;
}
