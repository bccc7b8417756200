/* SPDX-License-Identifier: MIT */
/* The learning rate of an update. Updates count from 1, so that the first one
 * moves and no schedule divides by zero. */
#include "base/number.h"
#include "tollbooth/train.h"

static const double pi = 3.14159265358979323846;

static double constant(double lr, size_t warmup, size_t steps, size_t step)
{
    (void)warmup, (void)steps, (void)step;
    return lr;
}

/* lr at the end of the warm-up, lr/10 at the last step (Loshchilov and Hutter
 * 2017, arXiv:1608.03983, without restarts). */
static double cosine(double lr, size_t warmup, size_t steps, size_t step)
{
    const double floor = 0.1;
    if (step >= steps)
        return lr * floor;
    if (step <= warmup)
        return lr;
    double done = (double)(step - warmup) / (double)(steps - warmup);
    return lr * (floor + (1 - floor) * 0.5 * (1 + tb_cos(pi * done)));
}

/* Vaswani et al. 2017, arXiv:1706.03762, section 5.3: their peak
 * d^-0.5 warmup^-0.5 is `lr` here. */
static double invsqrt(double lr, size_t warmup, size_t steps, size_t step)
{
    (void)steps;
    return lr * tb_sqrt((double)(warmup ? warmup : 1) / (double)step);
}

static const struct {
    const char *name;
    double (*rate)(double lr, size_t warmup, size_t steps, size_t step);
} schedules[] = {
    [TB_SCHEDULE_UNSET] = {"cosine", cosine},
    [TB_SCHEDULE_CONSTANT] = {"constant", constant},
    [TB_SCHEDULE_COSINE] = {"cosine", cosine},
    [TB_SCHEDULE_INVSQRT] = {"invsqrt", invsqrt},
};

const char *tb_schedule_name(tb_schedule s)
{
    return schedules[s].name;
}

tb_status tb_schedule_named(tb_ctx *ctx, const char *name, tb_schedule *out)
{
    const char *names[TB_LEN(schedules) - 1];
    for (size_t i = 1; i < TB_LEN(schedules); i++) {
        names[i - 1] = schedules[i].name;
        if (!tb_streq(name, schedules[i].name))
            continue;
        *out = (tb_schedule)i;
        return TB_OK;
    }
    const char *near = tb_nearest(name, names, TB_LEN(names));
    return TB_FAIL(ctx, TB_ERR_ARG,
                   "schedule: got %s, wanted constant, cosine or invsqrt%s%s%s",
                   name, near ? "; did you mean " : "", near ? near : "",
                   near ? "?" : "");
}

double tb_learning_rate(tb_schedule s, double lr, size_t warmup, size_t steps,
                        size_t step)
{
    if (step < warmup)
        return lr * (double)step / (double)warmup;
    return schedules[s].rate(lr, warmup, steps, step ? step : 1);
}
