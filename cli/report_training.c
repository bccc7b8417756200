/* SPDX-License-Identifier: MIT */
/* What trainings did, update by update: plot 7 of every report, and the two
 * verdicts on it. */
#include "report_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- verdicts ------------------------------------------------------------- */

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* NaN without one. */
static double middle_of(pool *p, const report_curve *c)
{
    double *sorted = pool_get(p, c->n, sizeof *sorted);
    size_t n = 0;
    for (size_t i = 0; sorted && i < c->n; i++)
        if (isfinite(c->value[i]))
            sorted[n++] = c->value[i];
    if (n == 0)
        return (double)NAN;
    qsort(sorted, n, sizeof *sorted, rising);
    return sorted[n / 2];
}

#define USUAL 1e-3

static tb_verdict judge_update(double middle, double far)
{
    double times = middle > USUAL ? middle / USUAL : USUAL / middle;
    bool bad = !(times <= far);
    return (tb_verdict){
        .code = "UPDATE",
        .level = bad ? TB_NOTE : TB_OK_,
        .value = times,
        .threshold = far,
        .sentence = !bad ? "a middle update changes the weights by a usual "
                           "share, about 1e-3"
                    : middle > USUAL
                        ? "a middle update changes the weights by this many "
                          "times the usual share of 1e-3"
                        : "a middle update changes the weights by so many "
                          "times less than the usual share of 1e-3",
        .source = "CS231n: about 1e-3; distance ours",
        .where = ""};
}

void report_judge(pool *p, report_training *t, const char *where, double far)
{
    double middle = middle_of(p, &t->update);
    t->verdicts = pool_get(p, 2, sizeof *t->verdicts);
    if (!t->verdicts)
        return;
    if (t->diverged)
        t->verdicts[t->nverdicts++] = (tb_verdict){
            .code = "DIVERGED",
            .level = TB_FAILED,
            .value = t->diverged_at,
            .threshold = 0,
            .sentence = "training diverged at this update",
            .source = "not finite, or a loss above three times the first",
            .where = where ? where : ""};
    if (!isnan(middle))
        t->verdicts[t->nverdicts++] = judge_update(middle, far > 0 ? far : 10);
}

/* --- curves --------------------------------------------------------------- */

static void losses(report_sink *s, pool *p, const report *r, size_t depth)
{
    tb_loss_curve *curves = pool_get(p, r->ntrainings, sizeof *curves);
    size_t n = 0;
    for (size_t i = 0; curves && i < r->ntrainings; i++) {
        const report_training *t = &r->trainings[i];
        if (t->depth != depth || !t->shown || !t->loss.n)
            continue;
        curves[n++] = (tb_loss_curve){.label = t->label,
                                      .step = t->loss.step,
                                      .loss = t->loss.value,
                                      .n = t->loss.n,
                                      .val_step = t->val.step,
                                      .val_loss = t->val.value,
                                      .val_n = t->val.n,
                                      .diverged = t->diverged,
                                      .diverged_at = t->diverged_at};
    }
    const tb_loss_figure f = {.title =
                                  pool_text(p, "Loss by update, %zu block%s",
                                            depth, depth == 1 ? "" : "s"),
                              .runs = curves,
                              .count = n};
    if (n)
        sink_loss(s, &f,
                  "Training loss of each update and validation loss, nats per "
                  "token; a cross marks where a run diverged.");
}

typedef const report_curve *(*curve_of)(const report_training *t);

static const report_curve *grad_of(const report_training *t)
{
    return &t->grad;
}

static const report_curve *update_of(const report_training *t)
{
    return &t->update;
}

/* One line per training of this depth that has the curve. */
static void curves(report_sink *s, pool *p, const report *r, size_t depth,
                   curve_of get, tb_chart c, const char *caption)
{
    tb_series *all = pool_get(p, r->ntrainings, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; all && i < r->ntrainings; i++) {
        const report_training *t = &r->trainings[i];
        const report_curve *one = get(t);
        if (t->depth == depth && t->shown && one->n)
            all[n++] = (tb_series){.label = t->label,
                                   .x = one->step,
                                   .y = one->value,
                                   .n = one->n,
                                   .line = 1.6};
    }
    c.title =
        pool_text(p, "%s, %zu block%s", c.title, depth, depth == 1 ? "" : "s");
    c.series = all;
    c.count = n;
    c.x_label = "update";
    c.log_y = true;
    if (n)
        sink_chart(s, &c, caption);
}

typedef double (*ending_of)(const kept_layer *l);

static double gradient_of(const kept_layer *l)
{
    return l->grad_norm;
}

static double ratio_of(const kept_layer *l)
{
    return l->update_ratio;
}

/* A number of each floor after the last update. */
static bool ending_line(pool *p, const report_training *t, ending_of get,
                        tb_series *out)
{
    const run_layers *e = t->ending;
    if (!t->shown || !e || !e->n || isnan(get(&e->rows[0])))
        return false;
    double *x = pool_get(p, e->n, sizeof *x), *y = pool_get(p, e->n, sizeof *y);
    *out = (tb_series){.label = t->label, .x = x, .y = y, .n = e->n};
    for (size_t i = 0; x && y && i < e->n; i++) {
        x[i] = (double)i;
        y[i] = get(&e->rows[i]);
    }
    return x && y;
}

static void endings(report_sink *s, pool *p, const report *r, size_t depth,
                    ending_of get, tb_chart c)
{
    tb_series *all = pool_get(p, r->ntrainings, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; all && i < r->ntrainings; i++)
        if (r->trainings[i].depth == depth)
            n += ending_line(p, &r->trainings[i], get, &all[n]);
    c.title = pool_text(p, "%s of each floor at the end, %zu block%s", c.title,
                        depth, depth == 1 ? "" : "s");
    c.x_label = "floor, 0 = below the first, the last = above";
    c.series = all;
    c.count = n;
    c.log_y = true;
    if (n)
        sink_chart(s, &c, NULL);
}

static void parts_of(report_sink *s, pool *p, const report *r, size_t depth)
{
    losses(s, p, r, depth);
    curves(s, p, r, depth, grad_of,
           (tb_chart){.title = "Gradient norm by update",
                      .y_label = "length before clipping, log scale"},
           NULL);
    curves(s, p, r, depth, update_of,
           (tb_chart){.title = "Update ratio",
                      .y_label = "|change of all weights| / |weights|",
                      .ref = USUAL,
                      .has_ref = true,
                      .ref_label = "1e-3"},
           "The line at 1e-3 is a guide of practice, not a bound.");
    endings(s, p, r, depth, gradient_of,
            (tb_chart){.title = "The longest weight gradient",
                       .y_label = "length before clipping, log scale"});
    endings(s, p, r, depth, ratio_of,
            (tb_chart){.title = "Update ratio",
                       .y_label = "|change of its weights| / |its weights|",
                       .ref = USUAL,
                       .has_ref = true,
                       .ref_label = "1e-3"});
}

/* Trainings of one depth stand together: those of two may be called alike. */
void report_training_parts(report_sink *s, pool *p, const report *r)
{
    for (size_t i = 0; i < r->ntrainings; i++) {
        size_t depth = r->trainings[i].depth, j = 0;
        while (r->trainings[j].depth != depth)
            j++;
        if (i == j)
            parts_of(s, p, r, depth);
    }
}
