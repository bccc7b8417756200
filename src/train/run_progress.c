/* SPDX-License-Identifier: MIT */
/* What a run knows beside its weights, and its text in the state file. */
#include "train/trainer.h"

void tb_progress_init(tb_progress *p)
{
    const double nan = __builtin_nan("");
    *p = (tb_progress){
        .first_loss = nan, .loss = nan, .val_loss = nan, .best_val_loss = nan};
}

/* The fifth that step s (from 1) belongs to; fifth f starts after its own
 * steps_before. */
static size_t steps_before(size_t steps, size_t f)
{
    return steps / TB_FIFTHS * f + steps % TB_FIFTHS * f / TB_FIFTHS;
}

static size_t fifth_of(size_t steps, size_t s)
{
    size_t f = TB_FIFTHS - 1;
    while (f > 0 && s <= steps_before(steps, f))
        f--;
    return f;
}

void tb_progress_loss(tb_progress *p, size_t steps, double loss)
{
    if (tb_isfinite(loss)) /* else a step without targets: as the one before */
        p->loss = loss;
    if (!tb_isfinite(p->first_loss))
        p->first_loss = loss;
    if (tb_isfinite(p->loss))
        p->fifth[fifth_of(steps, p->step)] += p->loss;
}

static double mean_of_fifth(const tb_progress *p, size_t steps, size_t f)
{
    size_t n = steps_before(steps, f + 1) - steps_before(steps, f);
    return p->fifth[f] / (double)n;
}

bool tb_progress_plateau(const tb_progress *p, size_t steps)
{
    if (steps < 2 * TB_FIFTHS)
        return false;
    double before = mean_of_fifth(p, steps, TB_FIFTHS - 2);
    return mean_of_fifth(p, steps, TB_FIFTHS - 1) > 0.99 * before;
}

/* --- text -------------------------------------------------------------------
 */

static const struct {
    const char *key;
    size_t offset;
} losses[] = {
    {"first_loss", offsetof(tb_progress, first_loss)},
    {"loss", offsetof(tb_progress, loss)},
    {"val_loss", offsetof(tb_progress, val_loss)},
    {"best_val_loss", offsetof(tb_progress, best_val_loss)},
};

static double *loss_at(tb_progress *p, size_t i)
{
    return (double *)(void *)((char *)p + losses[i].offset);
}

tb_status tb_progress_text(tb_ctx *ctx, const tb_progress *p, tb_buf *out)
{
    tb_json *j;
    tb_progress copy = *p;
    const size_t n = TB_FIFTHS;
    TB_TRY(tb_json_create(ctx, &j));
    tb_json_object(j, NULL);
    tb_json_int(j, "step", (int64_t)p->step);
    for (size_t i = 0; i < TB_LEN(losses); i++)
        if (tb_isfinite(*loss_at(&copy, i)))
            tb_json_number(j, losses[i].key, *loss_at(&copy, i));
    tb_json_int(j, "best_step", (int64_t)p->best_step);
    tb_json_tensor(j, "fifths", TB_F64, p->fifth, 1, &n);
    tb_json_end(j);
    const char *text = tb_json_text(j);
    if (text)
        tb_buf_puts(out, text);
    tb_json_destroy(j);
    return text ? tb_buf_status(out) : TB_ERR_MEMORY;
}

static tb_status read_fifths(tb_ctx *ctx, tb_config *c, tb_progress *out)
{
    tb_config *list, *item;
    TB_TRY(tb_config_array(c, "fifths", &list));
    if (tb_config_length(list) != TB_FIFTHS)
        return TB_FAIL(ctx, TB_ERR_INPUT,
                       "progress: fifths: got %zu, wanted %d",
                       tb_config_length(list), (int)TB_FIFTHS);
    for (size_t i = 0; i < TB_FIFTHS; i++) {
        TB_TRY(tb_config_item(list, i, &item));
        TB_TRY(tb_config_number(item, NULL, &out->fifth[i]));
    }
    return TB_OK;
}

static tb_status read_all(tb_ctx *ctx, tb_config *c, tb_progress *out)
{
    TB_TRY(tb_config_size(c, "step", &out->step));
    for (size_t i = 0; i < TB_LEN(losses); i++)
        TB_TRY(tb_config_number_or(c, losses[i].key, __builtin_nan(""),
                                   loss_at(out, i)));
    TB_TRY(tb_config_size(c, "best_step", &out->best_step));
    return read_fifths(ctx, c, out);
}

tb_status tb_progress_read(tb_ctx *ctx, const char *name, const char *text,
                           tb_progress *out)
{
    tb_config *c;
    tb_progress_init(out);
    TB_TRY(tb_config_parse(ctx, name, text, strlen(text), &c));
    tb_status s = read_all(ctx, c, out);
    tb_config_destroy(c);
    return s;
}
