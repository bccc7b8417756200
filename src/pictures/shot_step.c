/* SPDX-License-Identifier: MIT */
/* N7: how long a first step may be. One batch, the weights at their start, one
 * step down the gradient; the loss of the same batch after steps of many
 * lengths, for both placements. Warm-up is what keeps the first steps on the
 * left of this picture. */
#include "model/model.h"
#include "pictures/shot_panels.h"
#include "tollbooth/block.h"

enum { STEPS = 17, BATCH = 4, TOKENS = 16, WIDTH = 32, VOCAB = 64 };

typedef struct stepped {
    double start;       /* loss before the step */
    double loss[STEPS]; /* after it, over the loss before */
    double fall;        /* loss lost over what a straight line would lose, for
                           the shortest step */
    double slope;       /* length of the gradient, squared */
    double best;        /* the longest step that still lowers the loss */
} stepped;

/** What one stack needs while it is measured. */
typedef struct stack {
    tb_model *model;
    double *grads, *start; /* [model->nelements] */
    int32_t tokens[BATCH * TOKENS], targets[BATCH * TOKENS];
} stack;

static double step_length(size_t i)
{
    return tb_pow(10, -3 + 0.25 * (double)i);
}

static void draw_batch(stack *t, uint64_t seed)
{
    tb_rng r = tb_rng_make(seed, "tokens");
    for (size_t i = 0; i < BATCH * TOKENS; i++) {
        t->tokens[i] = (int32_t)tb_rng_below(r, 2 * i, VOCAB);
        t->targets[i] = (int32_t)tb_rng_below(r, 2 * i + 1, VOCAB);
    }
}

static tb_status loss_after(stack *t, const tb_batch *b, double length,
                            double *loss)
{
    double *w = t->model->params;
    for (size_t i = 0; i < t->model->nelements; i++)
        w[i] = t->start[i] - length * t->grads[i];
    return tb_model_forward(t->model, b, loss);
}

static tb_status step(stack *t, stepped *out)
{
    const tb_batch b = {.tokens = t->tokens, .targets = t->targets};
    size_t n = t->model->nelements;
    TB_TRY(tb_model_bind(t->model, BATCH, TOKENS, TB_PASS_BWD));
    TB_TRY(tb_model_forward(t->model, &b, &out->start));
    TB_TRY(tb_model_gradients(t->model, &b, t->grads));
    memcpy(t->start, t->model->params, n * sizeof *t->start);
    for (size_t i = 0; i < n; i++)
        out->slope += t->grads[i] * t->grads[i];
    TB_TRY(loss_after(t, &b, 1e-6, &out->fall));
    out->fall = (out->start - out->fall) / (1e-6 * out->slope);
    for (size_t i = 0; i < STEPS; i++) {
        TB_TRY(loss_after(t, &b, step_length(i), &out->loss[i]));
        out->loss[i] /= out->start;
        if (out->loss[i] < 1)
            out->best = step_length(i);
    }
    return TB_OK;
}

static tb_status with_block(tb_shot *s, const tb_block *block, stepped *out)
{
    tb_settings given = TB_SETTINGS_UNSET;
    stack *t = shot_alloc(s, 1, sizeof *t);
    if (!t)
        return TB_ERR_MEMORY;
    given.depth = shot_whole(s, "N");
    given.width = WIDTH;
    given.context = TOKENS;
    given.vocab = VOCAB;
    draw_batch(t, (uint64_t)shot_num(s, "seed"));
    TB_TRY(tb_model_create(s->ctx, block, &given, TB_F64, &t->model));
    t->grads = shot_alloc(s, t->model->nelements, sizeof *t->grads);
    t->start = shot_alloc(s, t->model->nelements, sizeof *t->start);
    tb_status status = s->status;
    if (status == TB_OK)
        status = tb_model_init(t->model, (uint64_t)shot_num(s, "seed"));
    if (status == TB_OK)
        status = step(t, out);
    tb_model_destroy(t->model);
    return status;
}

static tb_status measure(tb_shot *s, const char *name, stepped *out)
{
    tb_block *block;
    TB_TRY(tb_block_load(s->ctx, name, &block));
    tb_status status = with_block(s, block, out);
    tb_block_destroy(s->ctx, block);
    return status;
}

static void chart(tb_shot *s, const stepped *post, const stepped *pre)
{
    tb_chart *c = shot_alloc(s, 1, sizeof *c);
    tb_series *all = shot_alloc(s, 2, sizeof *all);
    double *x = shot_alloc(s, STEPS, sizeof *x);
    if (!c || !all || !x)
        return;
    for (size_t i = 0; i < STEPS; i++)
        x[i] = -3 + 0.25 * (double)i;
    all[0] = (tb_series){.label = "post-LN",
                         .x = x,
                         .y = post->loss,
                         .n = STEPS,
                         .tone = TB_TONE_TOLL,
                         .marker = TB_MARK_DIAMOND};
    all[1] = (tb_series){.label = "pre-LN",
                         .x = x,
                         .y = pre->loss,
                         .n = STEPS,
                         .tone = TB_TONE_LANE,
                         .marker = TB_MARK_SQUARE};
    *c = (tb_chart){.title = "Loss of the batch after one step",
                    .x_label = "log10 of the step's length (learning rate)",
                    .y_label = "over the loss before it, log axis",
                    .series = all,
                    .count = 2,
                    .log_y = true,
                    .ref = 1,
                    .has_ref = true,
                    .ref_label = "before"};
    shot_below(s, &shot_chart, c);
}

static tb_status build(tb_shot *s)
{
    stepped *post = shot_alloc(s, 1, sizeof *post);
    stepped *pre = shot_alloc(s, 1, sizeof *pre);
    if (!post || !pre)
        return TB_ERR_MEMORY;
    TB_TRY(measure(s, "post-ln", post));
    TB_TRY(measure(s, "pre-ln", pre));
    shot_tell(s, "E15.post", "longest step that helps, post-LN", post->best);
    shot_tell(s, "E15.pre", "longest step that helps, pre-LN", pre->best);
    shot_tell(s, "N", "blocks", shot_num(s, "N"));
    shot_tell(s, "worst.post",
              "loss after a step of the last length over that before, post-LN",
              post->loss[STEPS - 1]);
    shot_tell(s, "worst.pre", "the same, pre-LN", pre->loss[STEPS - 1]);
    shot_title(s, "Training stability: how long may the first step be?",
               shot_text(s,
                         "Plain gradient descent from the start, %zu "
                         "blocks: the loss falls for steps up to %.3g with "
                         "post-LN, %.3g with pre-LN.",
                         shot_whole(s, "N"), post->best, pre->best));
    chart(s, post, pre);
    shot_say(s, "At {N} blocks one plain step down the gradient still lowers "
                "the loss of its batch up to a length of {E15.post} with "
                "post-LN and {E15.pre} with pre-LN; beyond, it overshoots. "
                "Warm-up keeps the first steps short. One batch, one seed: a "
                "picture of the problem, not a law.");
    shot_check_that(
        s, tb_fabs(post->fall - 1) < 1e-2 && tb_fabs(pre->fall - 1) < 1e-2,
        "a short step lowers the loss as the gradient says, within "
        "1 %%");
    shot_check_that(s, post->best > 0 && pre->best > 0,
                    "some step lowers the loss of either");
    return TB_OK;
}

const shot_row shot_n7 = {
    .name = "N7",
    .about = "training stability: the loss after a first step of any length",
    .input = {{"N", "blocks", TB_SHOT_NUMBER, "6", 1, 24, .step = 1,
               .whole = true},
              {"seed", "seed", TB_SHOT_NUMBER, "1", 0, 1e6, .step = 1,
               .whole = true}},
    .build = build,
};
