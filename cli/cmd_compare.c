/* SPDX-License-Identifier: MIT */
/* tollbooth compare: blocks on the same data, seeds and budget. */
#include "compare.h"
#include "progress.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const opt_usage usage = {
    .name = "compare",
    .operands = "BLOCK...",
    .summary = "blocks on the same data and seeds, one report",
    .detail =
        "Every block is measured at its initial values and trained on the "
        "same text, with and without warm-up, at every depth, with every "
        "seed. One table is printed and one self-contained report.html is "
        "written. --minutes times 20 updates of each block and depth and "
        "chooses the number of updates, at least 200.\n"
        "A run that diverges is a result: the exit code stays 0.",
    .example = "compare post-ln pre-ln --text book.txt --depth 12,24 "
               "--minutes 4",
    .min = 1,
    .max = -1,
};

typedef struct compare_options {
    opt_sizes depths;
    size_t seeds, warmup;
    uint64_t seed;
    double minutes;
    const char *report;
    bool json, ascii, exact, one_warmup;
    int schedule, dtype;
} compare_options;

/* --- runs --------------------------------------------------------------------
 */

static bool push(curve_points *c, double step, double loss)
{
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 256;
        double *s = realloc(c->step, cap * sizeof *s);
        if (s)
            c->step = s;
        double *l = realloc(c->loss, cap * sizeof *l);
        if (l)
            c->loss = l;
        if (!s || !l)
            return false;
        c->cap = cap;
    }
    c->step[c->n] = step;
    c->loss[c->n++] = loss;
    return true;
}

typedef struct watcher {
    comparison *all;
    compare_run *run;
    progress bar;
    bool forgot; /* no memory for a point of a curve */
} watcher;

static void on_memory(void *user, const tb_train_memory *m)
{
    watcher *w = user;
    progress_memory(m, &w->all->memory);
}

static void on_step(void *user, const tb_train_step *s)
{
    watcher *w = user;
    char text[STEP_TEXT];
    bool kept = push(&w->run->train, (double)s->step, s->loss);
    if (s->has_val)
        kept = push(&w->run->val, (double)s->step, s->val_loss) && kept;
    if (s->targets && s->weight_norm > 0) {
        kept = push(&w->run->grad, (double)s->step, s->grad_norm) && kept;
        kept = push(&w->run->update, (double)s->step,
                    s->update_norm / s->weight_norm) &&
               kept;
    }
    w->forgot |= !kept;
    step_text(s, text);
    progress_show(&w->bar, s->step, s->steps, s->seconds_left, text);
}

static void on_ended(void *user, size_t step, const tb_train_layer *rows,
                     size_t n)
{
    watcher *w = user;
    layers_keep(&w->run->layers, step, rows, n);
    w->forgot |= w->run->layers.forgot;
}

static tb_status train_run(comparison *c, size_t i)
{
    compare_run *r = &c->runs[i];
    tb_train_spec t = c->spec;
    watcher w = {.all = c, .run = r};
    tb_train_observer obs = {
        .step = on_step, .user = &w, .ended = on_ended, .memory = on_memory};
    char label[120];
    snprintf(label, sizeof label, "%zu/%zu %.40s N=%zu %s", i + 1, c->nruns,
             r->name, r->depth, r->warmup ? "warm-up" : "no warm-up");
    t.settings.depth = r->depth;
    t.warmup = r->warmup;
    t.steps = r->steps;
    t.val_every = r->steps / 10 ? r->steps / 10 : 1;
    t.seed = r->seed;
    progress_begin(&w.bar, label, false);
    tb_status s = tb_train(c->ctx, r->block, &t, &obs, &r->result);
    progress_end(&w.bar);
    r->diverged = s == TB_ERR_DIVERGED;
    if (r->diverged)
        complain("tollbooth: %s: %s\n", label, tb_error(c->ctx));
    return r->diverged ? TB_OK : s == TB_OK && w.forgot ? TB_ERR_MEMORY : s;
}

static tb_status make_runs(comparison *c, const compare_options *o,
                           const size_t *steps)
{
    size_t warmups = o->one_warmup ? 1 : 2, n = 0;
    c->nruns = c->ndepths * c->nblocks * warmups * o->seeds;
    c->runs = calloc(c->nruns, sizeof *c->runs);
    if (!c->runs)
        return TB_ERR_MEMORY;
    for (size_t d = 0; d < c->ndepths; d++)
        for (size_t b = 0; b < c->nblocks; b++)
            for (size_t w = 0; w < warmups; w++)
                for (size_t s = 0; s < o->seeds; s++)
                    c->runs[n++] = (compare_run){
                        .block = c->blocks[b],
                        .name = c->names[b],
                        .depth = c->depths[d],
                        .warmup = w ? 0
                                  : o->warmup == SIZE_MAX
                                      ? (steps[d] / 10 ? steps[d] / 10 : 1)
                                      : o->warmup,
                        .steps = steps[d],
                        .seed = o->seed + s,
                        .flow = c->flows[d * c->nblocks + b]};
    return TB_OK;
}

/* --- budget ------------------------------------------------------------------
 */

typedef struct stopwatch {
    comparison *all;
    double begin, end;
} stopwatch;

static void on_timed_memory(void *user, const tb_train_memory *m)
{
    stopwatch *w = user;
    progress_memory(m, &w->all->memory);
}

/* The first five updates load libraries and touch memory. */
static void on_timed_step(void *user, const tb_train_step *s)
{
    stopwatch *w = user;
    if (s->step == 5)
        w->begin = seconds_now();
    w->end = seconds_now();
}

/* Seconds of one update of every block at this depth, together. */
static tb_status seconds_per_step(comparison *c, size_t depth, double *out)
{
    *out = 0;
    for (size_t b = 0; b < c->nblocks; b++) {
        tb_train_spec t = c->spec;
        stopwatch w = {.all = c};
        tb_train_observer obs = {
            .step = on_timed_step, .user = &w, .memory = on_timed_memory};
        tb_train_result r;
        t.settings.depth = depth;
        t.steps = 20;
        t.warmup = 20;
        t.val_every = 1000;
        tb_status s = tb_train(c->ctx, c->blocks[b], &t, &obs, &r);
        if (s != TB_OK && s != TB_ERR_DIVERGED)
            return s;
        *out += (w.end - w.begin) / 15;
    }
    return TB_OK;
}

/* Every depth gets the same number of updates out of the whole budget. */
static tb_status choose_steps(comparison *c, const compare_options *o,
                              size_t *steps)
{
    double total = 0, runs = (o->one_warmup ? 1 : 2) * (double)o->seeds;
    for (size_t d = 0; d < c->ndepths; d++) {
        double s;
        steps[d] = c->spec.steps ? c->spec.steps : 500;
        if (o->minutes <= 0)
            continue;
        tb_status status = seconds_per_step(c, c->depths[d], &s);
        if (status != TB_OK)
            return status;
        total += s * runs;
    }
    if (o->minutes <= 0)
        return TB_OK;
    double n = floor(o->minutes * 60 / total / 10) * 10;
    n = n < 200 ? 200 : n > 100000 ? 100000 : n;
    for (size_t d = 0; d < c->ndepths; d++)
        steps[d] = (size_t)n;
    fprintf(stderr,
            "tollbooth: 20 updates timed: %.3g s for one of each block and "
            "depth; %.0f updates each for %g minutes\n",
            total / runs, n, o->minutes);
    return TB_OK;
}

/* --- flow at init
 * ------------------------------------------------------------- */

/* The first window of the text in the tokens of training. */
static tb_status first_window(comparison *c, tb_flow_spec *spec, int32_t **ids)
{
    tb_text text = {0};
    tb_tokens tokens = {0};
    tb_tokenizer *tok = NULL;
    const char *kind = c->spec.tokenizer ? c->spec.tokenizer : "char";
    size_t row = spec->settings.context + 1;
    tb_status s = tb_text_load(c->ctx, c->spec.text, NULL, &text);
    if (s == TB_OK)
        s = tb_tokenizer_make(c->ctx, kind, text.bytes.data, text.bytes.len,
                              &tok);
    if (s == TB_OK)
        s = tb_tokenizer_encode(c->ctx, tok, c->spec.text, text.bytes.data,
                                text.bytes.len, &tokens);
    if (s == TB_OK && tokens.count >= row) {
        *ids = malloc(row * sizeof **ids);
        s = *ids ? TB_OK : TB_ERR_MEMORY;
        if (*ids)
            memcpy(*ids, tokens.ids, row * sizeof **ids);
        spec->settings.vocab = tb_tokenizer_size(tok);
    }
    spec->ids = *ids; /* a text too short is train's error to explain */
    tb_tokens_clear(c->ctx, &tokens);
    tb_text_clear(c->ctx, &text);
    tb_tokenizer_destroy(tok);
    return s;
}

static tb_status measure_flows(comparison *c, uint64_t seed)
{
    tb_flow_spec spec = {
        .settings = c->spec.settings, .seed = seed, .dtype = TB_F32};
    int32_t *ids = NULL;
    tb_status s = first_window(c, &spec, &ids);
    c->nflows = c->ndepths * c->nblocks;
    c->flows = calloc(c->nflows, sizeof *c->flows);
    if (!c->flows)
        s = TB_ERR_MEMORY;
    for (size_t i = 0; i < c->nflows && s == TB_OK; i++) {
        spec.settings.depth = c->depths[i / c->nblocks];
        s = tb_flow_measure(c->ctx, c->blocks[i % c->nblocks], &spec,
                            &c->flows[i]);
    }
    free(ids);
    return s;
}

/* --- command -----------------------------------------------------------------
 */

static void release(comparison *c)
{
    for (size_t i = 0; i < c->nruns && c->runs; i++) {
        compare_run *r = &c->runs[i];
        free(r->train.step);
        free(r->train.loss);
        free(r->val.step);
        free(r->val.loss);
        free(r->grad.step);
        free(r->grad.loss);
        free(r->update.step);
        free(r->update.loss);
        layers_free(&r->layers);
    }
    for (size_t i = 0; i < c->nflows && c->flows; i++)
        tb_flow_free(c->ctx, c->flows[i]);
    for (size_t i = 0; i < c->nblocks && c->blocks; i++)
        if (c->blocks[i])
            tb_block_destroy(c->ctx, c->blocks[i]);
    free(c->runs);
    free(c->flows);
    free(c->blocks);
}

static tb_status load_blocks(comparison *c)
{
    c->blocks = calloc(c->nblocks, sizeof *c->blocks);
    tb_status s = c->blocks ? TB_OK : TB_ERR_MEMORY;
    for (size_t i = 0; i < c->nblocks && s == TB_OK; i++)
        s = tb_block_load(c->ctx, c->names[i], &c->blocks[i]);
    return s;
}

static tb_status run_all(comparison *c, const compare_options *o)
{
    size_t steps[64];
    tb_status s = load_blocks(c);
    if (s == TB_OK)
        s = measure_flows(c, o->seed);
    if (s == TB_OK)
        s = choose_steps(c, o, steps);
    if (s == TB_OK)
        s = make_runs(c, o, steps);
    for (size_t i = 0; i < c->nruns && s == TB_OK; i++)
        s = train_run(c, i);
    return s;
}

static int print_object(const comparison *c)
{
    tb_json *j;
    if (tb_json_create(c->ctx, &j) != TB_OK)
        return die(c->ctx, TB_ERR_MEMORY);
    compare_json(c, j);
    return print_json(c->ctx, j, 0);
}

static int print_table(const comparison *c, const compare_options *o)
{
    tb_terminal term = terminal_of(o->ascii);
    tb_out *out;
    if (tb_out_create(c->ctx, &out) != TB_OK)
        return die(c->ctx, TB_ERR_MEMORY);
    tb_status s = compare_table(c, &term, out);
    if (s == TB_OK)
        printf("%s\nlane and total: gradient at the first sublayer's output "
               "over that at the top, at init.\nreport: %s\n",
               tb_out_str(out), o->report);
    tb_out_destroy(out);
    return s == TB_OK ? finish(0) : die(c->ctx, s);
}

/* Hours of training must not end at a report that cannot be written. */
static tb_status try_report(comparison *c, const char *path)
{
    bool was_there = access(path, F_OK) == 0;
    FILE *f = fopen(path, "ab");
    if (f && fclose(f) == 0) {
        if (!was_there)
            remove(path);
        return TB_OK;
    }
    complain("tollbooth: %s: cannot write the report: %s\n", path,
             strerror(errno));
    tb_error_clear(c->ctx);
    return TB_ERR_IO;
}

static int compare(comparison *c, const compare_options *o)
{
    tb_status s = try_report(c, o->report);
    if (s != TB_OK)
        return tb_status_exit(s);
    s = run_all(c, o);
    if (s == TB_OK)
        s = compare_report(c, o->report);
    int code = s != TB_OK ? die(c->ctx, s)
               : o->json  ? print_object(c)
                          : print_table(c, o);
    release(c);
    return code;
}

static void compare_defaults(comparison *c)
{
    tb_settings *s = &c->spec.settings;
    s->width = s->width ? s->width : 64;
    s->heads = s->heads ? s->heads : 4;
    s->context = s->context ? s->context : 64;
    c->spec.batch = c->spec.batch ? c->spec.batch : 8;
}

int cmd_compare(tb_ctx *ctx, int argc, char **argv)
{
    comparison c = {.ctx = ctx, .spec = TB_TRAIN_UNSET};
    compare_options o = {.seeds = 1,
                         .seed = 1,
                         .warmup = SIZE_MAX,
                         .report = "report.html",
                         .schedule = -1,
                         .dtype = -1};
    static const size_t default_depths[] = {12, 24};
    char *command = command_line(argc, argv);
    const opt opts[] = {
        {"text", OPT_TEXT, &c.spec.text, "FILE", "plain or gzip", 0, 0},
        {"depth", OPT_SIZES, &o.depths, "N,N,...",
         "blocks in the stack (default 12,24)", 0, 0},
        TRAIN_OPTS(c.spec, o.schedule, o.dtype, "64", "64", "8"),
        {"steps", OPT_SIZE, &c.spec.steps, "n", "updates (default 500)", 0, 0},
        {"minutes", OPT_REAL, &o.minutes, "m",
         "choose the updates for this much training", 0, 0},
        {"warmup", OPT_COUNT, &o.warmup, "n",
         "updates of warm-up (default steps/10)", 0, 0},
        {"one-warmup", OPT_FLAG, &o.one_warmup, NULL,
         "no second run without warm-up", 0, 0},
        {"seeds", OPT_SIZE, &o.seeds, "n",
         "runs with different seeds (default 1)", 0, 0},
        {"seed", OPT_SEED, &o.seed, "S", "first seed (default 1)", 0, 0},
        {"report", OPT_TEXT, &o.report, "FILE",
         "the page to write (default report.html)", 0, 0},
        {"exact", OPT_FLAG, &o.exact, NULL, "our own matrix products only", 0,
         0},
        {"ascii", OPT_FLAG, &o.ascii, NULL, "plain ASCII drawing", 0, 0},
        {"json", OPT_FLAG, &o.json, NULL, "print one JSON object", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    int code;
    if (end != OPT_GO) {
        code = end == OPT_DONE ? finish(0) : 2;
    } else if (!c.spec.text || strcmp(c.spec.text, "-") == 0) {
        code = usage_error("compare",
                           "--text: got %s, wanted a FILE (it is "
                           "read once for every run)",
                           c.spec.text ? "stdin" : "nothing");
    } else {
        c.command = command ? command : "tollbooth compare";
        c.names = argv;
        c.nblocks = (size_t)argc;
        c.depths = o.depths.count ? o.depths.items : default_depths;
        c.ndepths = o.depths.count ? o.depths.count : 2;
        c.spec.schedule = schedule_of(o.schedule);
        c.spec.dtype = dtype_of(o.dtype);
        compare_defaults(&c);
        o.one_warmup |= o.warmup == 0; /* the second run would be the same */
        signal(SIGPIPE, SIG_IGN);      /* the report is written in any case */
        tb_ctx_exact(ctx, o.exact);
        code = compare(&c, &o);
    }
    free(command);
    return code;
}
