/* SPDX-License-Identifier: MIT */
/* The steps: draw, forward, look, backward, clip and update, measure, save.
 * Nothing is written to a weight before its step is known to be sound. */
#include <time.h>

#include "train/timing.h"
#include "train/trainer.h"

enum { RECENT = 16 }; /* updates behind tokens_per_s */

/* A loss this many times that of the first step counts as diverged; or of even
 * guesses where those cost more: a first loss over few targets may be luck. */
static const double diverged_at = 3;

typedef struct loop {
    tb_trainer *t;
    const tb_train_observer *obs;
    tb_train_result *r;
    tb_train_step step; /* being made */
    tb_update update;
    size_t measured;        /* step of the gradients that the optimizer holds */
    double seconds[RECENT]; /* of the last updates, a ring */
    double tokens[RECENT];  /* in them, padding left out */
    size_t done;            /* updates of this call */
    double spent, read;     /* seconds in them, tokens */
    tb_timing timing;
} loop;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double uniform_loss(const tb_trainer *t)
{
    const tb_settings *s = &t->model->sizes.s;
    return tb_log((double)(s->classes ? s->classes : s->vocab));
}

/* --- divergence -------------------------------------------------------------
 */

static tb_status diverged(loop *l, const char *what, const char *where)
{
    tb_trainer *t = l->t;
    l->r->end = TB_TRAIN_DIVERGED;
    l->r->bad_step = l->step.step;
    tb_format(l->r->bad_where, sizeof l->r->bad_where, "%s", where);
    if (t->saved)
        return TB_FAIL(t->ctx, TB_ERR_DIVERGED,
                       "training diverged at step %zu: %s: %s; last good "
                       "checkpoint: step %zu in %s",
                       l->step.step, what, where, t->saved, t->spec.out);
    return TB_FAIL(t->ctx, TB_ERR_DIVERGED,
                   "training diverged at step %zu: %s: %s; no checkpoint was "
                   "saved",
                   l->step.step, what, where);
}

static tb_status check_loss(loop *l)
{
    tb_trainer *t = l->t;
    char what[96];
    double loss = l->step.loss;
    bool had = tb_isfinite(t->progress.first_loss);
    double first = had ? t->progress.first_loss : loss;
    bool lucky = first < uniform_loss(t);
    double from = lucky ? uniform_loss(t) : first;
    if (!tb_isfinite(loss)) {
        const char *where = tb_model_first_nonfinite(t->model);
        tb_format(what, sizeof what, "loss %g, first not finite in", loss);
        return diverged(l, what, where ? where : "loss");
    }
    if (!(loss > diverged_at * from))
        return TB_OK;
    tb_format(what, sizeof what, "loss %.6g, more than %g times %s %.6g", loss,
              diverged_at, lucky ? "that of even guesses" : "the first", from);
    return diverged(l, what, "loss");
}

static tb_status bad_update(loop *l)
{
    char where[TB_TRAIN_WHERE];
    bool before = tb_isfinite(l->update.weight_norm) &&
                  l->update.weight_norm == 0 && !l->update.ngroups;
    tb_format(where, sizeof where, "%s%s", before ? "gradient of " : "",
              l->update.bad ? l->update.bad->name : "weights");
    return diverged(l,
                    before ? "not finite, or its square is not"
                           : "not finite after the update",
                    where);
}

/* A running statistic that is not finite is not repaired by later steps. */
static tb_status check_statistics(loop *l)
{
    const tb_model *m = l->t->model;
    const tb_kern *k = tb_kern_get(l->t->ctx, m->dtype);
    for (size_t i = 0; i < m->nviews; i++) {
        const tb_view *v = &m->views[i];
        const char *x =
            (const char *)m->params + v->offset * tb_dtype_size(m->dtype);
        if (v->role == TB_ROLE_BUFFER && k->nonfinite(v->count, x))
            return diverged(l, "running statistic not finite", v->name);
    }
    return TB_OK;
}

/* --- one step ---------------------------------------------------------------
 */

static tb_adam adam_of(const tb_train_spec *s)
{
    return (tb_adam){s->beta1, s->beta2, s->adam_eps, s->weight_decay, s->clip};
}

/* Nothing to learn from: weights and moments stay as they are, the step
 * counts. */
static tb_status without_targets(loop *l)
{
    const double nan = __builtin_nan("");
    l->update = (tb_update){
        .grad_norm_after = nan, .update_norm = nan, .weight_norm = nan};
    tb_say(l->t->ctx, TB_LOG_INFO, "step %zu: 0 target tokens, no update",
           l->step.step);
    return TB_OK;
}

static tb_status learn(loop *l)
{
    tb_trainer *t = l->t;
    const tb_train_spec *s = &t->spec;
    size_t step = l->step.step;
    const tb_batch b = tb_rows_batch(&t->rows, s->seed, step);
    const tb_adam adam = adam_of(s);
    tb_feed_batch(t->feed, s->seed, step, 0, s->batch, &t->rows);
    l->step.targets = tb_rows_targets(t->feed, &t->rows, s->batch);
    tb_timing_lap(&l->timing, &l->timing.data);
    if (!l->step.targets)
        return without_targets(l);
    tb_model_step(t->model, step);
    TB_TRY(tb_model_forward(t->model, &b, &l->step.loss));
    TB_TRY(check_loss(l));
    TB_TRY(tb_model_gradients(t->model, &b, t->optimizer->grads));
    l->measured = step;
    tb_timing_lap(&l->timing, &l->timing.other);
    tb_status status =
        tb_optimizer_step(t->optimizer, &adam, step, l->step.lr, &l->update);
    l->step.grad_norm = l->update.grad_norm;
    if (status == TB_OK) {
        tb_model_after(t->model);
        status = tb_model_update(t->model, &b);
    }
    tb_timing_lap(&l->timing, &l->timing.optimizer);
    if (status == TB_OK)
        return check_statistics(l);
    return status == TB_ERR_NONFINITE ? bad_update(l) : status;
}

static void count_time(loop *l, double seconds)
{
    const tb_trainer *t = l->t;
    double recent = 0, read = 0;
    size_t at = l->done++ % RECENT;
    l->seconds[at] = seconds;
    l->tokens[at] = (double)tb_rows_tokens(t->feed, &t->rows, t->spec.batch);
    l->spent += seconds;
    l->read += l->tokens[at];
    size_t n = l->done < RECENT ? l->done : RECENT;
    for (size_t i = 0; i < n; i++) {
        recent += l->seconds[i];
        read += l->tokens[i];
    }
    double each = recent / (double)n;
    l->step.tokens_per_s = read / recent;
    l->step.seconds_left = each * (double)(l->step.steps - l->step.step);
}

static void report_update(loop *l)
{
    const tb_update *u = &l->update;
    l->step.grad_norm_after = u->grad_norm_after;
    l->step.clipped = u->clipped;
    l->step.update_norm = u->update_norm;
    l->step.weight_norm = u->weight_norm;
    l->step.ngroups = u->ngroups;
    l->step.groups = u->groups;
}

static tb_status one_step(loop *l)
{
    tb_trainer *t = l->t;
    const tb_train_spec *s = &t->spec;
    const double nan = __builtin_nan("");
    double start = now();
    l->step = (tb_train_step){.step = t->progress.step + 1,
                              .steps = s->steps,
                              .loss = nan,
                              .uniform_loss = uniform_loss(t),
                              .grad_norm = nan};
    l->update = (tb_update){0};
    l->step.lr =
        tb_learning_rate(s->schedule, s->lr, s->warmup, s->steps, l->step.step);
    tb_timing_start(&l->timing);
    tb_status status = learn(l);
    tb_timing_stop(&l->timing);
    count_time(l, now() - start);
    report_update(l);
    if (status != TB_OK)
        return status;
    t->progress.step = l->step.step;
    tb_progress_loss(&t->progress, s->steps, l->step.loss);
    return TB_OK;
}

/* --- between steps ----------------------------------------------------------
 */

static bool due(size_t step, size_t every, size_t steps)
{
    return step == steps || step % every == 0;
}

static tb_status validate(loop *l)
{
    tb_trainer *t = l->t;
    tb_progress *p = &t->progress;
    if (!due(p->step, t->spec.val_every, t->spec.steps) ||
        tb_feed_rows(t->feed, TB_SPLIT_VAL) == 0)
        return TB_OK;
    TB_TRY(tb_validate(&t->quiet, t->feed, t->spec.batch, t->spec.val_windows,
                       &t->rows, &p->val_loss));
    l->step.has_val = true;
    l->step.val_loss = p->val_loss;
    if (!tb_isfinite(p->val_loss))
        return diverged(l, "not finite", "validation loss");
    if (!(p->val_loss >= p->best_val_loss)) {
        p->best_val_loss = p->val_loss;
        p->best_step = p->step;
    }
    return TB_OK;
}

static tb_status save(loop *l, bool now_)
{
    tb_trainer *t = l->t;
    size_t step = t->progress.step;
    if (!t->spec.out || step == t->saved ||
        !(now_ || due(step, t->spec.save_every, t->spec.steps)))
        return TB_OK;
    TB_TRY(tb_state_save(t->ctx, t->spec.out, &t->record, &t->progress,
                         t->model, t->optimizer));
    t->saved = step;
    if (l->obs && l->obs->saved)
        l->obs->saved(l->obs->user, step, t->spec.out);
    return TB_OK;
}

static void tell(const loop *l)
{
    if (l->obs && l->obs->step)
        l->obs->step(l->obs->user, &l->step);
}

static tb_status advance(loop *l)
{
    tb_status s = one_step(l);
    if (s == TB_OK)
        s = validate(l);
    if (s == TB_OK || s == TB_ERR_DIVERGED)
        tell(l);
    return s == TB_OK ? save(l, false) : s;
}

static tb_status run(loop *l)
{
    tb_trainer *t = l->t;
    while (t->progress.step < t->spec.steps) {
        if (tb_ctx_interrupted(t->ctx)) {
            TB_TRY(save(l, t->progress.step > 0));
            l->r->end = TB_TRAIN_INTERRUPTED;
            return TB_FAIL(t->ctx, TB_INTERRUPTED,
                           "training interrupted after step %zu",
                           t->progress.step);
        }
        TB_TRY(advance(l));
    }
    return TB_OK;
}

/* --- a whole run ------------------------------------------------------------
 */

static void fill_result(const loop *l, tb_train_result *r)
{
    const tb_trainer *t = l->t;
    const tb_progress *p = &t->progress;
    r->steps = p->step;
    r->loss = r->end == TB_TRAIN_DIVERGED ? l->step.loss : p->loss;
    r->val_loss = p->val_loss;
    r->best_val_loss = p->best_val_loss;
    r->best_step = p->best_step;
    r->first_loss = p->step ? p->first_loss : r->loss;
    r->uniform_loss = uniform_loss(t);
    r->parameters = t->model->nparameters;
    r->good_step = t->saved;
    r->plateau = p->step == t->spec.steps && tb_progress_plateau(p, p->step);
    if (l->done && l->spent > 0)
        r->tokens_per_s = l->read / l->spent;
}

const char *tb_train_status(const tb_train_result *r)
{
    switch (r->end) {
    case TB_TRAIN_DIVERGED:
        return "diverged";
    case TB_TRAIN_INTERRUPTED:
        return "interrupted";
    case TB_TRAIN_DONE:
        break;
    }
    return r->plateau ? "plateau" : "ok";
}

size_t tb_train_decided(const tb_train_result *r)
{
    return r->end == TB_TRAIN_DIVERGED ? r->bad_step : r->steps;
}

/* Where the gradient was when the run ended, block by block. */
static tb_status tell_layers(const loop *l)
{
    const tb_optimizer *o = l->t->optimizer;
    if (!l->obs || !l->obs->ended || !l->measured)
        return TB_OK;
    tb_train_layer *rows = tb_alloc(l->t->ctx, o->nviews, sizeof *rows);
    if (!rows)
        return TB_ERR_MEMORY;
    size_t n = tb_optimizer_layers(o, rows);
    l->obs->ended(l->obs->user, l->measured, rows, n);
    tb_free(l->t->ctx, rows);
    return TB_OK;
}

static void tell_profile(const loop *l)
{
    tb_train_profile p;
    if (!l->timing.model || !l->done)
        return;
    tb_timing_give(&l->timing, &p);
    l->obs->profiled(l->obs->user, &p);
}

tb_status tb_trainer_run(tb_trainer *t, const tb_train_observer *obs,
                         tb_train_result *result)
{
    loop l = {.t = t, .obs = obs, .r = result};
    tb_timing_open(&l.timing, obs && obs->profiled ? t->model : NULL);
    tb_status s = run(&l);
    fill_result(&l, result);
    tell_profile(&l);
    if (s == TB_OK || s == TB_ERR_DIVERGED) {
        tb_status told = tell_layers(&l);
        s = s == TB_OK ? told : s;
    }
    return s;
}

static tb_status tell_header(const tb_trainer *t, const tb_train_observer *obs)
{
    tb_json *j;
    if (!obs || !obs->begin)
        return TB_OK;
    TB_TRY(tb_json_create(t->ctx, &j));
    tb_status s = tb_trainer_header(t, j);
    if (s == TB_OK)
        obs->begin(obs->user, tb_json_text(j));
    tb_json_destroy(j);
    return s;
}

tb_status tb_train(tb_ctx *ctx, const tb_block *block,
                   const tb_train_spec *spec, const tb_train_observer *obs,
                   tb_train_result *result)
{
    tb_trainer t;
    const double nan = __builtin_nan("");
    *result =
        (tb_train_result){.loss = nan, .val_loss = nan, .best_val_loss = nan};
    TB_TRY(tb_trainer_open(ctx, block, spec, obs, &t));
    tb_status s = tell_header(&t, obs);
    if (s == TB_OK)
        s = tb_trainer_run(&t, obs, result);
    tb_trainer_close(&t);
    return s;
}
