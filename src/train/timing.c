/* SPDX-License-Identifier: MIT */
/* Where the time of updates goes: what the plans count, and the rest of the
 * loop. */
#include "train/timing.h"

#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void tb_timing_open(tb_timing *t, tb_model *m)
{
    *t = (tb_timing){.model = m, .plans.now = now};
}

void tb_timing_start(tb_timing *t)
{
    if (!t->model)
        return;
    if (t->updates == 1 && !t->warm) { /* it opened libraries, and so on */
        tb_timing_open(t, t->model);
        t->warm = true;
    }
    t->model->profile = &t->plans;
    t->start = t->last = now();
}

void tb_timing_lap(tb_timing *t, double *to)
{
    if (!t->model)
        return;
    double then = t->last;
    t->last = now();
    *to += t->last - then;
}

void tb_timing_stop(tb_timing *t)
{
    if (!t->model)
        return;
    t->all += now() - t->start;
    t->updates++;
    t->model->profile = NULL; /* a validation is no update */
}

/* Read w, its gradient and two moments; write w and the moments. */
enum { ADAMW_MOVES = 7 };

void tb_timing_give(const tb_timing *t, tb_train_profile *out)
{
    static const struct {
        const char *name;
        tb_work work;
    } rows[] = {{"products", TB_WORK_PRODUCT},
                {"attention", TB_WORK_ATTENTION},
                {"norms", TB_WORK_NORM},
                {"element-wise", TB_WORK_ELEMENT},
                {"loss", TB_WORK_LOSS}};
    const double n = t->updates ? (double)t->updates : 1;
    const double size = (double)tb_dtype_size(t->model->dtype);
    double rest = t->all - t->data - t->optimizer;
    tb_train_part *p = out->parts;
    *out = (tb_train_profile){.updates = t->updates, .seconds = t->all / n};
    for (size_t i = 0; i < TB_LEN(rows); i++, p++) {
        const tb_worked *w = &t->plans.work[rows[i].work];
        bool flops = w->flops > 0;
        *p = (tb_train_part){rows[i].name, w->seconds / n, w->flops / n,
                             flops ? 0 : w->bytes / n};
        rest -= w->seconds;
    }
    *p++ = (tb_train_part){"optimizer", t->optimizer / n, 0,
                           ADAMW_MOVES * size * (double)t->model->nelements};
    *p++ = (tb_train_part){"data", t->data / n, 0, 0};
    *p++ = (tb_train_part){"rest", rest / n, 0, 0};
    out->nparts = (size_t)(p - out->parts);
}
