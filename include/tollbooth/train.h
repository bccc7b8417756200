/* SPDX-License-Identifier: MIT */
/* Train a decoder language model on a text, save and resume it bit for bit,
 * and use it: generate, score. */
#ifndef TOLLBOOTH_TRAIN_H
#define TOLLBOOTH_TRAIN_H

#include "tollbooth/block.h"
#include "tollbooth/data.h"
#include "tollbooth/flow.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tb_schedule {
    TB_SCHEDULE_CONSTANT,
    TB_SCHEDULE_COSINE, /* to lr/10 at the last step */
    TB_SCHEDULE_INVSQRT /* lr * sqrt(warmup / step) after the warm-up */
} tb_schedule;

/** tb_learning_rate - of update `step` (from 1): linear warm-up
 * lr * step / warmup for step <= warmup, then the schedule. */
double tb_learning_rate(tb_schedule s, double lr, size_t warmup, size_t steps,
                        size_t step);

typedef struct tb_train_spec {
    tb_settings settings;   /* zero or NULL fields: defaults of train */
    size_t batch;           /* rows per update [16] */
    size_t steps;           /* updates [2000] */
    double lr;              /* peak [1e-3]; < 0 unset */
    size_t warmup;          /* updates [100]; SIZE_MAX unset */
    tb_schedule schedule;   /* [cosine] */
    double beta1, beta2;    /* [0.9, 0.95]; < 0 unset */
    double adam_eps;        /* [1e-8]; < 0 unset */
    double weight_decay;    /* on matrices only [0.1]; < 0 unset */
    double clip;            /* global gradient norm; 0: none [1]; < 0 unset */
    double val_fraction;    /* [0.1]; < 0 unset */
    size_t val_every;       /* updates [250]; 0 unset */
    size_t val_windows;     /* validation windows each time [32]; 0 unset */
    size_t save_every;      /* updates [500]; 0 unset */
    uint64_t seed;
    tb_dtype dtype;         /* TB_F32 */
    const char *tokenizer;  /* "char" or "byte" [char] */
    const char *text;       /* file name */
    const char *out;        /* folder; NULL: nothing is saved */
    bool resume;            /* continue `out` */
} tb_train_spec;

/** TB_TRAIN_UNSET - every field unset. */
#define TB_TRAIN_UNSET                                                         \
    {                                                                          \
        .settings = TB_SETTINGS_UNSET, .lr = -1, .warmup = SIZE_MAX,           \
        .schedule = TB_SCHEDULE_COSINE, .beta1 = -1, .beta2 = -1,              \
        .adam_eps = -1, .weight_decay = -1, .clip = -1, .val_fraction = -1,    \
        .seed = 1                                                              \
    }

/** One update, as it is printed. */
typedef struct tb_train_step {
    size_t step, steps; /* from 1 */
    double loss, lr;
    double grad_norm; /* before clipping */
    bool clipped;
    double update_norm, weight_norm;
    double tokens_per_s; /* over the last few updates */
    double seconds_left;
    bool has_val;
    double val_loss;
} tb_train_step;

typedef struct tb_train_observer {
    void (*begin)(void *user, const char *json); /* header line: settings,
                                  parameter groups, what runs underneath */
    void (*step)(void *user, const tb_train_step *s);
    void (*saved)(void *user, size_t step, const char *dir);
    void *user;
} tb_train_observer;

typedef enum tb_train_end {
    TB_TRAIN_DONE,
    TB_TRAIN_DIVERGED,
    TB_TRAIN_INTERRUPTED
} tb_train_end;

typedef struct tb_train_result {
    tb_train_end end;
    size_t steps;        /* updates made */
    double loss, val_loss; /* val_loss nan: no validation part */
    double tokens_per_s;
    size_t parameters;
    /* diverged: */
    size_t bad_step;
    const char *bad_where;  /* "layers.4" or "gradient of layers.4.ffn.up" */
    size_t good_step;       /* of the last saved checkpoint; 0: none */
} tb_train_result;

/**
 * tb_train - run it. `block` may be NULL with resume (the folder knows).
 * TB_ERR_DIVERGED after a non-finite loss or gradient (no weight was touched
 * by it): result and error text name step, layer and last good checkpoint.
 * TB_INTERRUPTED after tb_ctx_interrupt: state saved. TB_ERR_INPUT: text too
 * short, folder of another run (the difference is named). TB_ERR_IO: out
 * cannot be written; the old checkpoint is intact.
 */
tb_status tb_train(tb_ctx *ctx, const tb_block *block,
                   const tb_train_spec *spec, const tb_train_observer *obs,
                   tb_train_result *result);

/* --- a trained model ------------------------------------------------------ */

typedef struct tb_lm tb_lm;

/** tb_lm_open - a folder that train wrote. The block text inside must be the
 * one the weights were trained with (hash), else the difference is shown. */
tb_status tb_lm_open(tb_ctx *ctx, const char *dir, tb_lm **out);
void tb_lm_close(tb_lm *m); /* NULL is fine */
const tb_block *tb_lm_block(const tb_lm *m);
const tb_tokenizer *tb_lm_tokenizer(const tb_lm *m);
const tb_settings *tb_lm_settings(const tb_lm *m);
/** tb_lm_origin - where norm kind and eps came from, by ruling 6. */

typedef struct tb_sampling {
    bool greedy;
    double temperature; /* [1] */
    size_t top_k;       /* 0: all */
    double top_p;       /* [1] */
    uint64_t seed;
} tb_sampling;

/** tb_lm_generate - n tokens after the prompt, one callback each (the id; the
 * prompt is not repeated). Empty prompt: starts from token 0. false from the
 * callback stops. */
tb_status tb_lm_generate(tb_lm *m, const int32_t *prompt, size_t nprompt,
                         size_t n, const tb_sampling *s,
                         bool (*token)(void *user, int32_t id), void *user);

typedef struct tb_score {
    size_t tokens; /* predicted */
    double loss;   /* nats per token */
    double perplexity;
} tb_score;

/** tb_lm_score - mean loss over a whole text in windows of the context;
 * `logits_npy` NULL or a file for all logits [tokens, V]. */
tb_status tb_lm_score(tb_lm *m, const int32_t *ids, size_t n,
                      const char *logits_npy, tb_score *out);

/** tb_lm_flow - gradient flow of the trained weights. */
tb_status tb_lm_flow(tb_lm *m, const tb_flow_spec *spec, tb_flow **out);

#ifdef __cplusplus
}
#endif
#endif
