/* SPDX-License-Identifier: MIT */
/* From the settings a caller gives to those of the run: defaults, limits, and
 * what a resumed run must find unchanged. */
#include "train/setting.h"
#include "train/trainer.h"

static const tb_train_spec defaults = {
    .settings = {.depth = 6,
                 .width = 128,
                 .context = 128,
                 .eps = -1,
                 .dropout = -1,
                 .bias = -1,
                 .tied = -1,
                 .causal = -1,
                 .positions = -1,
                 .uniform_attention = -1},
    .batch = 16,
    .steps = 2000,
    .lr = 1e-3,
    .warmup = 100,
    .schedule = TB_SCHEDULE_COSINE,
    .beta1 = 0.9,
    .beta2 = 0.95,
    .adam_eps = 1e-8,
    .weight_decay = 0.1,
    .clip = 1,
    .label_smoothing = 0,
    .val_fraction = TB_VAL_FRACTION,
    .val_every = 250,
    .val_windows = 32,
    .save_every = 500,
    .seed = 1,
    .dtype = TB_F32,
    .tokenizer = "char",
};

/* What a stack is for. */
static tb_task task_of(int stack)
{
    static const tb_task tasks[] = {[TB_STACKS_DECODER] = TB_TASK_LM,
                                    [TB_STACKS_ENCODER] = TB_TASK_MLM,
                                    [TB_STACKS_BOTH] = TB_TASK_TRANSLATE};
    return tasks[stack];
}

void tb_record_defaults(tb_train_spec *s)
{
    if (s->task == TB_TASK_UNSET)
        s->task = task_of(s->settings.stack);
    for (size_t i = 0; i < tb_setting_count; i++)
        if (!tb_setting_is_set(&tb_setting_rows[i], s))
            tb_setting_copy(&tb_setting_rows[i], s, &defaults);
}

/* --- limits -----------------------------------------------------------------
 */

static tb_status between(tb_ctx *ctx, const char *key, double got, double low,
                         double below, const char *wanted)
{
    if (got >= low && got < below)
        return TB_OK;
    return TB_FAIL(ctx, TB_ERR_ARG, "%s: got %g, wanted %s", key, got, wanted);
}

/* Who can do what: a decoder's tokens see only those before them, an encoder's
 * see the one they are to predict. */
int tb_task_stack(tb_task t)
{
    static const tb_stacks stacks[] = {[TB_TASK_UNSET] = TB_STACKS_DECODER,
                                       [TB_TASK_LM] = TB_STACKS_DECODER,
                                       [TB_TASK_MLM] = TB_STACKS_ENCODER,
                                       [TB_TASK_CLASSIFY] = TB_STACKS_ENCODER,
                                       [TB_TASK_TRANSLATE] = TB_STACKS_BOTH};
    return (int)stacks[t];
}

static tb_status check_task(tb_ctx *ctx, const tb_train_spec *s)
{
    int stack = s->settings.stack, wanted = tb_task_stack(s->task);
    if (stack == wanted)
        return TB_OK;
    return TB_FAIL(ctx, TB_ERR_ARG, "task %s: got the stack %s, wanted %s",
                   tb_task_name(s->task), tb_stack_names[stack],
                   tb_stack_names[wanted]);
}

tb_status tb_record_check(tb_ctx *ctx, const tb_train_spec *s)
{
    const double inf = __builtin_inf();
    TB_TRY(between(ctx, "lr", s->lr, 0, inf, "0 or more"));
    TB_TRY(between(ctx, "beta1", s->beta1, 0, 1, "0 <= beta < 1"));
    TB_TRY(between(ctx, "beta2", s->beta2, 0, 1, "0 <= beta < 1"));
    TB_TRY(between(ctx, "adam_eps", s->adam_eps, 0, inf, "0 or more"));
    TB_TRY(between(ctx, "weight_decay", s->weight_decay, 0, inf, "0 or more"));
    TB_TRY(between(ctx, "clip", s->clip, 0, inf, "0 or more"));
    TB_TRY(between(ctx, "val_fraction", s->val_fraction, 0, 1,
                   "0 to less than 1"));
    TB_TRY(between(ctx, "label_smoothing", s->label_smoothing, 0, 1,
                   "0 to less than 1"));
    TB_TRY(check_task(ctx, s));
    return between(ctx, "batch", (double)s->batch, 1, 1 << 24,
                   "1 to less than 2^24");
}

/* --- resume -----------------------------------------------------------------
 */

static tb_status differs(tb_ctx *ctx, const tb_setting_row *r, const char *dir,
                         const tb_train_spec *got, const tb_train_spec *had)
{
    char a[TB_SETTING_CHARS], b[TB_SETTING_CHARS];
    return TB_FAIL(ctx, TB_ERR_INPUT,
                   "resume: %s: got %s, the run in %s has %s", r->key,
                   tb_setting_text(r, got, a), dir, tb_setting_text(r, had, b));
}

tb_status tb_record_adopt(tb_ctx *ctx, const char *dir, tb_train_spec *given,
                          const tb_train_spec *have)
{
    for (size_t i = 0; i < tb_setting_count; i++) {
        const tb_setting_row *r = &tb_setting_rows[i];
        if (!tb_setting_is_set(r, given))
            tb_setting_copy(r, given, have);
        else if (!r->free && !tb_setting_same(r, given, have))
            return differs(ctx, r, dir, given, have);
    }
    return TB_OK;
}

tb_status tb_record_same(tb_ctx *ctx, const char *dir, const tb_record *config,
                         const tb_record *state)
{
    char name[TB_SETTING_CHARS];
    tb_format(name, sizeof name, "%.90s/" TB_DIR_STATE, dir);
    for (size_t i = 0; i < tb_setting_count; i++) {
        const tb_setting_row *r = &tb_setting_rows[i];
        if (!tb_setting_same(r, &config->spec, &state->spec))
            return differs(ctx, r, name, &config->spec, &state->spec);
    }
    if (tb_streq(config->tokens_hash, state->tokens_hash))
        return TB_OK;
    return TB_FAIL(ctx, TB_ERR_INPUT,
                   "resume: tokens_hash: " TB_DIR_CONFIG " has %s, %s has %s",
                   config->tokens_hash, name, state->tokens_hash);
}
