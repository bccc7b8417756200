/* SPDX-License-Identifier: MIT */
/* tollbooth train: a language model on a text, an encoder on a text or on
 * labelled lines, an encoder and decoder on pairs of lines. */
#include "progress.h"
#include "train_layers.h"
#include "train_log.h"
#include "train_opts.h"
#include "train_profile.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const opt_usage usage = {
    .name = "train",
    .operands = "[BLOCK]",
    .summary = "train a model on a text, labels or pairs of lines",
    .detail =
        "Results go to the folder --out: the weights (model.safetensors), the "
        "state to resume from, config.json, the tokenizer, the block's text "
        "and "
        "log.jsonl, which report reads; without --out nothing is saved. "
        "--resume continues it bit for "
        "bit; BLOCK and the settings may then be left out. Ctrl-C saves and "
        "stops.\n"
        "A decoder learns the next token of --text. An encoder (--stack "
        "encoder) learns the tokens that are hidden in it, or, with --task "
        "classify, the labels of its lines: LABEL TAB text. An encoder and "
        "decoder learn the lines of --target from those of --source; a pair "
        "with an empty line is passed over.\n"
        "With --json one line per update is printed.",
    .example = "train pre-ln --text book.txt --out run --depth 4 --steps 500",
    .min = 0,
    .max = 1,
};

typedef struct printer {
    progress bar;
    bool json, groups_shown;
    run_layers layers;
    run_profile profile;
    run_log log;
    int failed; /* errno of the first line that could not be written */
    tb_ctx *ctx;
} printer;

tb_schedule schedule_of(int choice)
{
    static const tb_schedule kinds[] = {
        TB_SCHEDULE_CONSTANT, TB_SCHEDULE_COSINE, TB_SCHEDULE_INVSQRT};
    return choice < 0 ? TB_SCHEDULE_UNSET : kinds[choice];
}

tb_dtype dtype_of(int choice)
{
    static const tb_dtype kinds[] = {TB_F32, TB_BF16};
    return choice < 0 ? TB_DTYPE_UNSET : kinds[choice];
}

void step_text(const tb_train_step *s, char out[STEP_TEXT])
{
    char loss[TB_SHOW_CHARS], val[TB_SHOW_CHARS], rate[TB_SHOW_CHARS];
    tb_show_number(s->loss, loss);
    tb_show_number(s->val_loss, val);
    tb_show_number(s->tokens_per_s, rate);
    snprintf(out, STEP_TEXT, "loss %s%s%s, %s tokens/s", loss,
             s->has_val ? ", validation " : "", s->has_val ? val : "", rate);
}

/* Nobody reads stdout any more: save and stop instead of working on. */
static void line_out(printer *p, const char *line)
{
    if (line)
        printf("%s\n", line);
    if (p->failed == 0 && (!line || fflush(stdout) != 0)) {
        p->failed = errno ? errno : ENOMEM;
        tb_ctx_interrupt(p->ctx);
    }
}

static void on_memory(void *user, const tb_train_memory *m)
{
    double none = 0;
    (void)user;
    progress_memory(m, &none);
}

static void on_begin(void *user, const char *json)
{
    printer *p = user;
    if (p->json)
        line_out(p, json);
    log_begin(p->ctx, &p->log, json);
}

/* To stdout if asked, and into the folder. */
static void line_both(printer *p, const char *line)
{
    if (p->json)
        line_out(p, line);
    log_line(&p->log, line);
}

/* A step without targets has no loss and no gradient. */
static void number_or_null(tb_json *j, const tb_train_step *s, const char *key,
                           double v)
{
    if (s->targets)
        tb_json_number(j, key, v);
    else
        tb_json_null(j, key);
}

static void step_json(printer *p, const tb_train_step *s)
{
    tb_json *j;
    if (tb_json_create(p->ctx, &j) != TB_OK) {
        line_out(p, NULL);
        return;
    }
    tb_json_object(j, NULL);
    tb_json_int(j, "step", (int64_t)s->step);
    number_or_null(j, s, "loss", s->loss);
    tb_json_int(j, "targets", (int64_t)s->targets);
    tb_json_number(j, "lr", s->lr);
    number_or_null(j, s, "grad_norm", s->grad_norm);
    number_or_null(j, s, "grad_norm_after", s->grad_norm_after);
    number_or_null(j, s, "update_norm", s->update_norm);
    number_or_null(j, s, "weight_norm", s->weight_norm);
    tb_json_number(j, "tokens_per_s", s->tokens_per_s);
    if (s->has_val)
        tb_json_number(j, "val_loss", s->val_loss);
    tb_json_end(j);
    line_both(p, tb_json_text(j));
    tb_json_destroy(j);
}

static void on_saved(void *user, size_t step, const char *dir)
{
    (void)step;
    (void)dir;
    log_flush(&((printer *)user)->log);
}

/* What AdamW decays and what not, once: matrices by their role only. */
static void print_groups(const tb_train_step *s)
{
    for (size_t i = 0; i < s->ngroups; i++) {
        const tb_train_group *g = &s->groups[i];
        fprintf(stderr, "%-10s %4zu tensor%s %9zu numbers, %s\n", g->name,
                g->tensors, g->tensors == 1 ? " " : "s", g->elements,
                g->decayed ? "decayed" : "not decayed");
    }
}

/* A model that knows nothing yet should guess about evenly. */
static void look_at_first(const tb_train_step *s)
{
    char loss[TB_SHOW_CHARS], even[TB_SHOW_CHARS], times[TB_SHOW_CHARS];
    if (s->step == 1 && s->loss > 1.1 * s->uniform_loss)
        fprintf(stderr,
                "first loss %s, %s times that of even guesses (%s): large "
                "initial weights, or no final norm\n",
                tb_show_number(s->loss, loss),
                tb_show_number(s->loss / s->uniform_loss, times),
                tb_show_number(s->uniform_loss, even));
}

static void on_step(void *user, const tb_train_step *s)
{
    printer *p = user;
    char text[STEP_TEXT];
    if (p->json || p->log.file)
        step_json(p, s);
    if (!p->json && !p->groups_shown)
        print_groups(s);
    p->groups_shown = p->groups_shown || s->ngroups;
    look_at_first(s);
    step_text(s, text);
    progress_show(&p->bar, s->step, s->steps, s->seconds_left, text);
}

static void done_json(printer *p, const tb_train_result *r, const char *out)
{
    tb_json *j;
    if (tb_json_create(p->ctx, &j) != TB_OK) {
        line_out(p, NULL);
        return;
    }
    tb_json_object(j, NULL);
    tb_json_bool(j, "done", r->end == TB_TRAIN_DONE);
    tb_json_int(j, "steps", (int64_t)r->steps);
    tb_json_number(j, "loss", r->loss);
    tb_json_number(j, "val_loss", r->val_loss);
    tb_json_number(j, "tokens_per_s", r->tokens_per_s);
    tb_json_string(j, "out", out);
    ending_json(r, &p->layers, j);
    profile_json(&p->profile, j);
    if (r->end == TB_TRAIN_DIVERGED) {
        tb_json_int(j, "diverged_at", (int64_t)r->bad_step);
        tb_json_string(j, "where", r->bad_where);
        tb_json_int(j, "last_good_step", (int64_t)r->good_step);
    }
    tb_json_end(j);
    line_both(p, tb_json_text(j));
    tb_json_destroy(j);
}

static void on_ended(void *user, size_t step, const tb_train_layer *rows,
                     size_t n)
{
    printer *p = user;
    layers_keep(&p->layers, step, rows, n);
}

static void on_profiled(void *user, const tb_train_profile *times)
{
    printer *p = user;
    p->profile.there = true;
    p->profile.times = *times;
}

/* Also of a run that diverged: where its gradient was longest. */
static void largest_text(const printer *p)
{
    const kept_layer *most = layers_largest(&p->layers);
    char norm[TB_SHOW_CHARS];
    if (most)
        printf("largest gradient at update %zu: %s, length %s\n",
               p->layers.step, most->weight,
               tb_show_number(most->grad_norm, norm));
}

static void done_text(const tb_train_result *r, const char *out)
{
    char loss[TB_SHOW_CHARS], val[TB_SHOW_CHARS], rate[TB_SHOW_CHARS];
    tb_show_number(r->loss, loss);
    tb_show_number(r->val_loss, val);
    tb_show_number(r->tokens_per_s, rate);
    printf("%zu parameters, %zu updates, loss %s", r->parameters, r->steps,
           loss);
    if (!isnan(r->val_loss))
        printf(", validation %s nats per token", val);
    printf(r->tokens_per_s > 0 ? ", %s tokens/s\n" : "\n", rate);
    printf("%s, decided at update %zu\n", tb_train_status(r),
           tb_train_decided(r));
    if (out)
        printf("saved in %s\n", out);
}

static int run(tb_ctx *ctx, const tb_block *b, const tb_train_spec *spec,
               printer *p)
{
    tb_train_result r = {.val_loss = (double)NAN};
    tb_train_observer obs = {.begin = on_begin,
                             .step = on_step,
                             .saved = on_saved,
                             .user = p,
                             .ended = on_ended,
                             .memory = on_memory};
    p->log.dir = spec->out;
    if (p->profile.wanted)
        obs.profiled = on_profiled;
    progress_begin(&p->bar, "train", false);
    tb_status s = tb_train(ctx, b, spec, &obs, &r);
    progress_end(&p->bar);
    bool ended = s == TB_OK || s == TB_ERR_DIVERGED || s == TB_INTERRUPTED;
    p->profile.there = p->profile.there && s == TB_OK && !p->failed;
    if (s == TB_OK)
        s = profile_measure(ctx, &p->profile);
    if (ended && (p->json || p->log.file) && !p->failed)
        done_json(p, &r, spec->out);
    log_end(&p->log);
    if (ended && !p->json && !p->failed)
        largest_text(p);
    if (p->failed) {
        fprintf(stderr, "tollbooth: standard output: %s\n",
                strerror(p->failed));
        s = s == TB_INTERRUPTED || s == TB_OK ? TB_ERR_IO : s;
        return *tb_error(ctx) ? die(ctx, s) : tb_status_exit(s);
    }
    if (s != TB_OK)
        return die(ctx, s);
    if (!p->json)
        done_text(&r, spec->out);
    if (!p->json)
        s = profile_text(ctx, &p->profile);
    return s == TB_OK ? finish(0) : die(ctx, s);
}

/* What must be said; two files that are aligned by lines mean a stack. */
static int check_files(tb_train_spec *t, int blocks)
{
    bool pairs = t->source || t->target;
    if (t->settings.stack < 0)
        t->settings.stack = pairs ? TB_STACKS_BOTH : TB_STACKS_DECODER;
    if (t->resume && !t->out)
        return usage_error("train", "--resume: wanted --out DIR too");
    if (t->resume)
        return 0;
    if (blocks == 0)
        return usage_error("train",
                           "got no BLOCK, wanted BLOCK and --text FILE");
    if (pairs && !(t->source && t->target))
        return usage_error(
            "train", "got no --%s, wanted --source FILE and --target FILE",
            t->source ? "target" : "source");
    if (!pairs && !t->text)
        return usage_error("train", "got no --text, wanted BLOCK and --text "
                                    "FILE, or --source FILE and --target FILE");
    return 0;
}

int cmd_train(tb_ctx *ctx, int argc, char **argv)
{
    tb_train_spec t = TB_TRAIN_UNSET;
    printer p = {.ctx = ctx};
    int schedule = -1, task = -1, dtype = -1;
    bool exact = false;
    const opt opts[] = {
        {"text", OPT_TEXT, &t.text, "FILE", "plain or gzip; - is stdin", 0, 0},
        {"source", OPT_TEXT, &t.source, "FILE",
         "what an encoder reads, line by line", 0, 0},
        {"target", OPT_TEXT, &t.target, "FILE",
         "what the decoder is to say, a line for each of the source", 0, 0},
        {"out", OPT_TEXT, &t.out, "DIR", "folder of the results", 0, 0},
        {"resume", OPT_FLAG, &t.resume, NULL, "continue --out", 0, 0},
        STACK_OPTS(t.settings),
        {"task", OPT_CHOICE, &task, NULL,
         "what is learned (default lm, mlm or translate, by the stack)",
         "lm|mlm|classify|translate", 0},
        {"depth", OPT_SIZE, &t.settings.depth, "N",
         "blocks in the stack (default 6)", 0, 0},
        TRAIN_OPTS(t, schedule, dtype, "128", "128", "16"),
        {"steps", OPT_SIZE, &t.steps, "n", "updates (default 2000)", 0, 0},
        {"warmup", OPT_COUNT, &t.warmup, "n",
         "updates of rising learning rate (default 100)", 0, 0},
        {"label-smoothing", OPT_REAL, &t.label_smoothing, "e",
         "share of a target spread over all tokens (default 0)", 0, 0},
        {"val-every", OPT_SIZE, &t.val_every, "n",
         "updates between validations (default 250)", 0, 0},
        {"save-every", OPT_SIZE, &t.save_every, "n",
         "updates between saves (default 500)", 0, 0},
        {"seed", OPT_SEED, &t.seed, "S", "seed (default 1)", 0, 0},
        {"exact", OPT_FLAG, &exact, NULL, "our own matrix products only", 0, 0},
        {"profile", OPT_FLAG, &p.profile.wanted, NULL,
         "say at the end where the time went", 0, 0},
        {"json", OPT_FLAG, &p.json, NULL, "print JSON lines", 0, 0},
        OPT_END,
    };
    t.settings.stack = -1;
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    tb_block *b = NULL;
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    int code = check_files(&t, argc);
    if (code != 0)
        return code;
    tb_status s = argc ? tb_block_load(ctx, argv[0], &b) : TB_OK;
    if (s != TB_OK)
        return die(ctx, s);
    t.schedule = schedule_of(schedule);
    t.dtype = dtype_of(dtype);
    t.task = (tb_task)(task + 1); /* -1: unset */
    signal(SIGPIPE, SIG_IGN);     /* line_out stops the run and saves it */
    tb_ctx_exact(ctx, exact);
    code = run(ctx, b, &t, &p);
    layers_free(&p.layers);
    if (b)
        tb_block_destroy(ctx, b);
    return code;
}
