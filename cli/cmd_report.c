/* SPDX-License-Identifier: MIT */
/* tollbooth report: runs that are there already, as one page or as text. */
#include "run_read.h"
#include "tollbooth/train.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const opt_usage usage = {
    .name = "report",
    .operands = "RUN...",
    .summary = "one page from trained folders and printed JSON",
    .detail =
        "A RUN is a folder that train wrote, or a file that `flow --json`, "
        "`compare --json` or `train --json` printed. Of a folder the gradient "
        "flow of its weights is measured, on the text it was trained on where "
        "that is still there. The page goes to --out; with --terminal the same "
        "is printed as text.",
    .example = "report run --out report.html",
    .min = 1,
    .max = -1,
};

typedef struct report_options {
    const char *out, *text, *command;
    bool json, terminal, ascii, diffable, check, exact, spectrum, alpha;
    size_t batch;
    uint64_t seed;
    opt_many thresholds;
    tb_threshold limits[64];
    size_t nlimits;
    double far; /* of UPDATE; 0: unset */
} report_options;

/* --- thresholds ------------------------------------------------------------
 */

/* UPDATE is ours; the others are flow's, which knows what there is. */
static int read_thresholds(report_options *o, pool *p)
{
    for (size_t i = 0; i < o->thresholds.count; i++) {
        const char *item = o->thresholds.items[i], *equals = strchr(item, '=');
        double v;
        if (!equals || !opt_real(equals + 1, &v))
            return usage_error("report", "--threshold: got %s, wanted CODE=v",
                               item);
        const char *code = pool_text(p, "%.*s", (int)(equals - item), item);
        if (strcmp(code, "UPDATE") == 0)
            o->far = v;
        else
            o->limits[o->nlimits++] = (tb_threshold){code, v};
    }
    return 0;
}

/* --- folders ---------------------------------------------------------------
 */

/* One batch of evenly spaced windows; NULL where the text gives none. */
static tb_status windows(tb_ctx *ctx, const tb_lm *lm, const char *name,
                         size_t batch, int32_t **out)
{
    tb_text text = {0};
    tb_tokens tokens = {0};
    size_t row = tb_lm_settings(lm)->context + 1;
    *out = NULL;
    tb_status s = tb_text_load(ctx, name, NULL, &text);
    if (s == TB_OK)
        s = tb_tokenizer_encode(ctx, tb_lm_tokenizer(lm), name, text.bytes.data,
                                text.bytes.len, &tokens);
    if (s == TB_OK && tokens.count >= row && batch < SIZE_MAX / row / 4) {
        *out = malloc(batch * row * sizeof **out);
        for (size_t b = 0; *out && b < batch; b++)
            memcpy(*out + b * row,
                   tokens.ids +
                       (batch > 1 ? (tokens.count - row) * b / (batch - 1) : 0),
                   row * sizeof **out);
        s = *out ? TB_OK : TB_ERR_MEMORY;
    }
    tb_tokens_clear(ctx, &tokens);
    tb_text_clear(ctx, &text);
    return s;
}

typedef struct work {
    tb_ctx *ctx;
    report_options *o;
    pool *p;
    run_list list;
    report_block *blocks;
    size_t nblocks;
    const tb_terminal *term; /* NULL: for a page */
} work;

/* The recorded text may be gone, or be no text of this task: then random
 * tokens, as flow without --text. */
static tb_status measure(work *w, const tb_lm *lm, const char *recorded,
                         tb_flow_spec *spec, const char **tokens)
{
    bool lm_task = tb_lm_settings(lm)->classes == 0 &&
                   tb_lm_settings(lm)->stack != TB_STACKS_BOTH;
    const char *name = w->o->text ? w->o->text : recorded;
    int32_t *ids = NULL;
    *tokens = "random";
    if (!name || (!lm_task && !w->o->text))
        return TB_OK;
    tb_status s =
        windows(w->ctx, lm, name, spec->batch ? spec->batch : 1, &ids);
    if (s != TB_OK && !w->o->text) {
        tb_error_clear(w->ctx);
        return TB_OK;
    }
    spec->ids = ids;
    *tokens = ids ? name : "random";
    return s;
}

static tb_status add_folder(work *w, const char *dir)
{
    const char *recorded, *tokens;
    tb_lm *lm = NULL;
    tb_status s =
        run_read_folder(w->ctx, w->p, dir, w->o->far, &w->list, &recorded);
    if (s == TB_OK)
        s = tb_lm_open(w->ctx, dir, &lm);
    if (s != TB_OK)
        return s;
    run_item *r = &w->list.items[w->list.n - 1];
    tb_flow_spec spec = {.settings = *tb_lm_settings(lm),
                         .batch = w->o->batch,
                         .seed = w->o->seed,
                         .spectrum = w->o->spectrum,
                         .what_if = true,
                         .audit = &tb_flow_audit,
                         .alpha = w->o->alpha,
                         .thresholds = w->o->limits,
                         .nthresholds = w->o->nlimits};
    s = measure(w, lm, recorded, &spec, &tokens);
    if (s == TB_OK)
        s = tb_lm_flow(lm, &spec, &r->flow);
    r->owned = s == TB_OK;
    r->tokens = pool_copy(w->p, tokens);
    free((void *)(uintptr_t)spec.ids);
    if (s == TB_OK)
        s = report_block_of(w->ctx, w->p, tb_lm_block(lm), r->label,
                            tb_lm_settings(lm), w->term,
                            &w->blocks[w->nblocks++]);
    tb_lm_close(lm);
    return s;
}

/* --- what a page shows -----------------------------------------------------
 */

/* As it was given; a path is nothing to compare, so then its number. */
static const char *name_of(work *w, const run_item *r)
{
    size_t number = 1;
    const char *before = NULL;
    for (const run_item *x = w->list.items; x->run != r->run; x++) {
        number += x->run != before;
        before = x->run;
    }
    return w->o->diffable ? pool_text(w->p, "run %zu", number) : r->run;
}

static report_flow *flows_of(work *w, size_t *n)
{
    report_flow *out = pool_get(w->p, w->list.n, sizeof *out);
    *n = 0;
    for (size_t i = 0; out && i < w->list.n; i++) {
        const run_item *r = &w->list.items[i];
        if (r->flow)
            out[(*n)++] = (report_flow){
                r->owned ? pool_text(w->p, "%s (%s)", r->label, name_of(w, r))
                         : report_flow_label(w->p, r->flow),
                r->flow};
    }
    return out;
}

static report_training *trainings_of(work *w, size_t *n)
{
    report_training *out = pool_get(w->p, w->list.n, sizeof *out);
    *n = 0;
    for (size_t i = 0; out && i < w->list.n; i++)
        if (w->list.items[i].trained)
            out[(*n)++] = w->list.items[i].training;
    return out;
}

static const tb_column run_columns[] = {
    {"run", TB_LEFT, 3, true},        {"what", TB_LEFT, 0, true},
    {"ended", TB_LEFT, 1, false},     {"updates", TB_RIGHT, 2, false},
    {"loss", TB_RIGHT, 1, false},     {"validation", TB_RIGHT, 0, false},
    {"lane k=0", TB_RIGHT, 0, false}, {"total k=0", TB_RIGHT, 0, false}};
enum { RUN_COLUMNS = sizeof run_columns / sizeof run_columns[0] };

static void run_row(work *w, const run_item *r, const char **c)
{
    const tb_flow *f = r->flow;
    pool *p = w->p;
    c[0] = name_of(w, r);
    c[1] = r->label;
    c[2] = r->status ? r->status : "";
    c[3] = r->trained ? pool_text(p, "%zu", r->steps) : "";
    c[4] = r->trained ? pool_number(p, r->loss) : "";
    c[5] = r->trained && !isnan(r->val_loss) ? pool_number(p, r->val_loss) : "";
    c[6] = f ? pool_number(p, f->rows[0].lane) : "";
    c[7] = f ? pool_number(p, f->rows[0].total) : "";
}

static tb_table *runs_table(work *w)
{
    tb_table *t = pool_get(w->p, 1, sizeof *t);
    const char **cells = pool_get(w->p, w->list.n * RUN_COLUMNS, sizeof *cells);
    if (!t || !cells)
        return NULL;
    for (size_t i = 0; i < w->list.n; i++)
        run_row(w, &w->list.items[i], cells + i * RUN_COLUMNS);
    *t = (tb_table){.caption = "One line per run",
                    .columns = run_columns,
                    .n_columns = RUN_COLUMNS,
                    .cells = cells,
                    .n_rows = w->list.n};
    return t;
}

static bool is_worth_a_line(const char *name)
{
    static const char *const names[] = {
        "kind",   "task",      "depth",        "decoder_depth", "width",
        "heads",  "ffn",       "context",      "vocab",         "norm",
        "eps",    "dropout",   "batch",        "steps",         "lr",
        "warmup", "schedule",  "weight_decay", "clip",          "seed",
        "dtype",  "tokenizer", "text",         "source",        "target",
        "tokens", "init"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Where norms stand, sublayer by sublayer; decided by the equation alone. */
static const char *placement(const tb_flow *f)
{
    size_t lane = 0, branch = 0, sublayers = f->nrows - f->nstacks;
    for (size_t i = 0; i < f->nrows; i++)
        lane += f->rows[i].norms > 0;
    for (size_t i = 0; i < f->nnorms; i++)
        branch += f->norms[i].layer > 0 && !f->norms[i].lane;
    if (lane == 0)
        return branch ? "pre: norms inside branches alone, counted in the "
                        "graph of the equation"
                      : "no norm in a block, by the equation";
    if (lane == sublayers)
        return branch ? "post: a norm on the lane of every sublayer, and "
                        "others inside branches, counted in the graph of the "
                        "equation"
                      : "post: a norm on the lane of every sublayer, counted "
                        "in the graph of the equation";
    return "mixed: a norm on the lane of some sublayers, counted in the graph "
           "of the equation";
}

/* Of one run its settings and files; of several what the table says is enough,
 * and the rest is in the data. */
static tb_report_setting *settings_of(work *w, size_t *n)
{
    const run_item *r = &w->list.items[0];
    tb_report_setting *out =
        pool_get(w->p, r->nsettings + RUN_FILES + 4, sizeof *out);
    *n = 0;
    if (w->list.n != 1 || !out || w->o->diffable)
        return out;
    for (size_t i = 0; i < r->nsettings; i++)
        if (is_worth_a_line(r->settings[i].name))
            out[(*n)++] = r->settings[i];
    if (r->flow)
        out[(*n)++] = (tb_report_setting){"placement", placement(r->flow)};
    if (r->tokens)
        out[(*n)++] =
            (tb_report_setting){"gradient flow measured on tokens", r->tokens};
    if (r->tokens)
        out[(*n)++] = (tb_report_setting){"sent back from the top",
                                          "the gradient of the mean loss"};
    for (size_t i = 0; i < r->nfiles; i++)
        out[(*n)++] = (tb_report_setting){
            pool_text(w->p, "SHA-256 of %s", r->files[i].name),
            r->files[i].sha256};
    return out;
}

static tb_status make_json(work *w, tb_json **out)
{
    tb_json *j;
    tb_status s = tb_json_create(w->ctx, &j);
    *out = j;
    if (s != TB_OK)
        return s;
    tb_json_object(j, NULL);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_string(j, "command", w->o->command);
    tb_json_array(j, "runs");
    for (size_t i = 0; i < w->list.n; i++)
        run_json(&w->list.items[i], j);
    tb_json_end(j);
    tb_json_end(j);
    return tb_json_text(j) ? TB_OK : TB_ERR_MEMORY;
}

static tb_status fill(work *w, report *r)
{
    *r = (report){.title = w->list.n == 1 ? w->list.items[0].label : "Runs",
                  .lead = "Gradient flow and training of runs that are there.",
                  .command = w->o->diffable ? NULL : w->o->command,
                  .blocks = w->blocks,
                  .nblocks = w->nblocks,
                  .runs = runs_table(w)};
    r->flows = flows_of(w, &r->nflows);
    r->trainings = trainings_of(w, &r->ntrainings);
    r->settings = settings_of(w, &r->nsettings);
    return pool_status(w->p);
}

/* --- the command -----------------------------------------------------------
 */

static tb_status read_all(work *w, int argc, char **argv)
{
    w->blocks = pool_get(w->p, (size_t)argc, sizeof *w->blocks);
    tb_status s = pool_status(w->p);
    for (int i = 0; i < argc && s == TB_OK; i++)
        s = run_is_folder(argv[i])
                ? add_folder(w, argv[i])
                : run_read_file(w->ctx, w->p, argv[i], w->o->far, &w->list);
    return s;
}

/* 1 with --check and a FAIL among the verdicts. */
static int code_of(const report_options *o, const tb_report_verdict *v,
                   size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (o->check && strcmp(v[i].level, "FAIL") == 0)
            return tb_status_exit(TB_CHECK);
    return 0;
}

static tb_status print_found(work *w, const tb_report_verdict *v, size_t n,
                             const char *ok)
{
    tb_terminal term = terminal_of(w->o->ascii);
    tb_out *out;
    tb_status s = tb_out_create(w->ctx, &out);
    if (s != TB_OK)
        return s;
    s = tb_verdicts_term(w->ctx, v, n, &term, out);
    if (s == TB_OK && *ok)
        s = tb_text_term(pool_text(w->p, "OK where not listed: %s", ok), 4,
                         &term, out);
    put_clean(stdout, tb_out_str(out));
    printf("report: %s\n", w->o->out);
    tb_out_destroy(out);
    return s;
}

static tb_status print_text(work *w, const report *r)
{
    tb_terminal term = terminal_of(w->o->ascii);
    tb_out *out;
    tb_status s = tb_out_create(w->ctx, &out);
    if (s != TB_OK)
        return s;
    s = report_text(w->ctx, r, &term, out);
    if (s == TB_OK)
        put_clean(stdout, tb_out_str(out));
    tb_out_destroy(out);
    return s;
}

static int show(work *w)
{
    report r;
    tb_json *j = NULL;
    size_t n = 0;
    const char *ok = "";
    tb_report_verdict *v = NULL;
    tb_status s = fill(w, &r);
    if (s == TB_OK)
        s = make_json(w, &j);
    if (s == TB_OK) {
        r.json = tb_json_text(j);
        v = report_found(w->p, &r, &n, &ok);
        s = pool_status(w->p);
    }
    if (s == TB_OK && w->o->out)
        s = report_page(w->ctx, &r, w->o->out);
    if (s == TB_OK && w->o->json)
        printf("%s\n", r.json);
    else if (s == TB_OK && w->o->terminal)
        s = print_text(w, &r);
    else if (s == TB_OK)
        s = print_found(w, v, n, ok);
    tb_json_destroy(j);
    return s == TB_OK ? finish(code_of(w->o, v, n)) : die(w->ctx, s);
}

static int run(tb_ctx *ctx, report_options *o, pool *p, int argc, char **argv)
{
    tb_terminal term = terminal_of(o->ascii);
    work w = {.ctx = ctx, .o = o, .p = p, .term = o->terminal ? &term : NULL};
    tb_status s = read_all(&w, argc, argv);
    int code = s == TB_OK ? show(&w)
               : s == TB_ERR_INPUT && !*tb_error(ctx)
                   ? tb_status_exit(s) /* said */
                   : die(ctx, s);
    for (size_t i = 0; i < w.list.n; i++)
        if (w.list.items[i].owned)
            tb_flow_free(ctx, w.list.items[i].flow);
    return code;
}

int cmd_report(tb_ctx *ctx, int argc, char **argv)
{
    report_options o = {.seed = 1};
    pool p = {0};
    const opt opts[] = {
        {"out", OPT_TEXT, &o.out, "FILE",
         "the page to write (default report.html)", 0, 0},
        {"terminal", OPT_FLAG, &o.terminal, NULL,
         "print the report as text; no page without --out", 0, 0},
        {"text", OPT_TEXT, &o.text, "FILE",
         "measure folders on this text (default: the recorded one)", 0, 0},
        {"batch", OPT_SIZE, &o.batch, "B", "rows of it (default 1)", 0, 0},
        {"seed", OPT_SEED, &o.seed, "S",
         "of random tokens, where there is no text (default 1)", 0, 0},
        {"spectrum", OPT_FLAG, &o.spectrum, NULL,
         "singular values of folders (B*T*d up to 512)", 0, 0},
        {"alpha", OPT_FLAG, &o.alpha, NULL,
         "exponents of the spectra of folders' weights (contested)", 0, 0},
        {"threshold", OPT_MANY, &o.thresholds, "CODE=v",
         "limit of a verdict on folders, e.g. VANISH=0.01, UPDATE=10", 0, 0},
        {"check", OPT_FLAG, &o.check, NULL, "exit 1 on a FAIL", 0, 0},
        {"exact", OPT_FLAG, &o.exact, NULL, "our own matrix products only", 0,
         0},
        {"ascii", OPT_FLAG, &o.ascii, NULL, "plain ASCII drawing", 0, 0},
        {"diffable", OPT_FLAG, &o.diffable, NULL,
         "without command line, settings, hashes and paths", 0, 0},
        {"json", OPT_FLAG, &o.json, NULL,
         "print one JSON object; no page without --out", 0, 0},
        OPT_END,
    };
    char *command = command_line(argc, argv);
    o.command = command ? command : "tollbooth report";
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    int code = end == OPT_DONE ? finish(0) : 2;
    if (end == OPT_GO) {
        if (!o.out && !o.json && !o.terminal)
            o.out = "report.html";
        tb_ctx_exact(ctx, o.exact);
        code = read_thresholds(&o, &p);
        if (code == 0)
            code = run(ctx, &o, &p, argc, argv);
    }
    pool_free(&p);
    free(command);
    return code;
}
