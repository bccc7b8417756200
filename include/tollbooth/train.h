/* SPDX-License-Identifier: MIT */
/* Train a language model on a text, an encoder on a text with holes or on
 * labelled lines, an encoder and decoder on pairs of lines; save and resume bit
 * for bit; generate, translate, score, measure the gradient flow. */
#ifndef TOLLBOOTH_TRAIN_H
#define TOLLBOOTH_TRAIN_H

#include "tollbooth/block.h"
#include "tollbooth/data.h"
#include "tollbooth/flow.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- settings ------------------------------------------------------------- */

typedef enum tb_schedule {
    TB_SCHEDULE_UNSET, /* cosine, or what the resumed run has */
    TB_SCHEDULE_CONSTANT,
    TB_SCHEDULE_COSINE, /* to lr/10 at the last step */
    TB_SCHEDULE_INVSQRT /* lr * sqrt(warmup / step) after the warm-up */
} tb_schedule;

/** tb_schedule_name - "constant", "cosine", "invsqrt"; tb_schedule_named - the
 * other way, TB_ERR_ARG with the nearest name. */
const char *tb_schedule_name(tb_schedule s);
tb_status tb_schedule_named(tb_ctx *ctx, const char *name, tb_schedule *out);

/** tb_learning_rate - of update `step` (from 1): linear warm-up
 * lr * step / warmup for step <= warmup, then the schedule. Inverse square
 * root without a warm-up is lr / sqrt(step). */
double tb_learning_rate(tb_schedule s, double lr, size_t warmup, size_t steps,
                        size_t step);

#define TB_SEED_UNSET UINT64_MAX

typedef struct tb_train_spec {
    tb_settings settings;   /* unset: the block's model: section, else depth 6,
                               width 128, heads 4, context 128. vocab, classes
                               and padding follow from the data */
    tb_task task;           /* unset, by the stack: lm, mlm, translate */
    size_t batch;           /* rows per update [16]; 0 unset */
    size_t steps;           /* updates [2000]; 0 unset */
    double lr;              /* peak [1e-3]; < 0 unset */
    size_t warmup;          /* updates [100]; SIZE_MAX unset */
    tb_schedule schedule;   /* [cosine] */
    double beta1, beta2;    /* [0.9, 0.95]; < 0 unset */
    double adam_eps;        /* [1e-8]; < 0 unset */
    double weight_decay;    /* on matrices only [0.1]; < 0 unset */
    double clip;            /* global gradient norm; 0: none [1]; < 0 unset */
    double label_smoothing; /* of the loss that is trained, in [0, 1); what is
                               validated and scored is without it [0]; < 0
                               unset */
    double val_fraction;    /* last part of the text [0.1]; < 0 unset */
    size_t val_every;       /* updates [250]; 0 unset */
    size_t val_windows;     /* validation windows each time [32]; 0 unset */
    size_t save_every;      /* updates [500]; 0 unset */
    uint64_t seed;          /* [1]; TB_SEED_UNSET */
    tb_dtype dtype;         /* [TB_F32]; TB_BF16: products with weights round
                               their operands, in training and wherever the
                               result is used; TB_DTYPE_UNSET */
    const char *tokenizer;  /* "char" or "byte" [char] */
    const char *text;       /* file name; NULL with resume: the recorded one */
    const char *source, *target; /* of translate, in place of the text: files
                                    that are aligned by lines */
    const char *out;             /* folder; NULL: nothing is saved */
    bool resume;                 /* continue `out` */
} tb_train_spec;

/** TB_TRAIN_UNSET - every field unset. */
#define TB_TRAIN_UNSET                                                         \
    {                                                                          \
        .settings = TB_SETTINGS_UNSET, .lr = -1, .warmup = SIZE_MAX,           \
        .beta1 = -1, .beta2 = -1, .adam_eps = -1, .weight_decay = -1,          \
        .clip = -1, .label_smoothing = -1, .val_fraction = -1,                 \
        .seed = TB_SEED_UNSET, .dtype = TB_DTYPE_UNSET                         \
    }

/* --- what a run reports --------------------------------------------------- */

/** Lengths over the parameters of one role ("matrix", "gain", ...). */
typedef struct tb_train_group {
    const char *name;
    bool decayed;
    size_t tensors, elements;
    double grad_norm; /* before clipping */
    double update_norm, weight_norm;
} tb_train_group;

/** One update, as it is printed. */
typedef struct tb_train_step {
    size_t step, steps;     /* from 1 */
    double loss, lr;        /* loss of the batch before the update */
    size_t targets;         /* tokens it is the mean over; 0: there was none, so
                               no update, and the loss is nan */
    double uniform_loss;    /* ln of the vocabulary: every token as likely; of
                               classify: ln of the number of labels */
    double grad_norm;       /* before clipping */
    double grad_norm_after; /* the same number if nothing was clipped */
    bool clipped;
    double update_norm, weight_norm; /* |change of all weights|, |weights| */
    size_t ngroups;
    const tb_train_group *groups;
    double tokens_per_s; /* over the last few updates, nothing else in it */
    double seconds_left;
    bool has_val;
    double val_loss;
} tb_train_step;

/** The longest weight gradient of one block, before clipping. What lies below
 * the first block and above the last is a row of its own with layer 0. */
typedef struct tb_train_layer {
    size_t layer;       /* from 1 */
    const char *weight; /* "layers.0.ffn.up.weight" */
    double grad_norm;
    double update_ratio; /* |change| / |weights| of all its weights, by the last
                            update that was made; nan: there was none */
} tb_train_layer;

/** A part of an update: mean seconds, and what it multiplies or moves; 0 where
 * that says nothing. Bytes are those each operation by itself reads and writes,
 * so operations that go through memory together may be faster than a stream. */
typedef struct tb_train_part {
    const char *name;
    double seconds, flops, bytes;
} tb_train_part;

enum { TB_TRAIN_PARTS = 8 };

/** Where the time of the updates went; the first one is not among them if there
 * is another. */
typedef struct tb_train_profile {
    size_t updates;
    double seconds; /* of a mean update */
    size_t nparts;
    tb_train_part parts[TB_TRAIN_PARTS]; /* together all of it */
} tb_train_profile;

/** Bytes that a run asks for once, before its first update. */
typedef struct tb_train_memory {
    size_t weights, gradients, optimizer; /* optimizer: two moments */
    size_t saved;                         /* what forward leaves for backward */
    size_t work; /* what a pass borrows, gradients of activations included */
} tb_train_memory;

/** Each may be NULL. */
typedef struct tb_train_observer {
    void (*begin)(void *user, const char *json); /* header line: settings,
                                  parameter groups, what runs underneath */
    void (*step)(void *user, const tb_train_step *s);
    void (*saved)(void *user, size_t step, const char *dir);
    void *user;
    /* once, after the last update or where the run diverged: the gradients of
       `step`, the last one with a backward pass; not called if there was none
     */
    void (*ended)(void *user, size_t step, const tb_train_layer *rows,
                  size_t n);
    /* once, after the last update, also of a run that diverged or was
       interrupted; NULL: no clock runs inside of updates */
    void (*profiled)(void *user, const tb_train_profile *p);
    /* before any of it is asked for, and before `begin` */
    void (*memory)(void *user, const tb_train_memory *m);
} tb_train_observer;

typedef enum tb_train_end {
    TB_TRAIN_DONE,
    TB_TRAIN_DIVERGED,
    TB_TRAIN_INTERRUPTED
} tb_train_end;

enum { TB_TRAIN_WHERE = 160 };

typedef struct tb_train_result {
    tb_train_end end;
    size_t steps;          /* updates made, those before a resume included */
    double loss, val_loss; /* last ones; nan: none */
    double best_val_loss;  /* nan: none */
    double first_loss;     /* of the first step with a target, also of a resumed
                              run; nan: none */
    double uniform_loss;   /* as in tb_train_step */
    size_t best_step;
    double tokens_per_s;
    size_t parameters;
    bool plateau; /* last fifth of the steps less than 1 % below the one before
                   */
    /* diverged: */
    size_t bad_step;
    char bad_where[TB_TRAIN_WHERE]; /* "layers.4", "loss", or "gradient of
                                       layers.4.ffn.up.weight" */
    size_t good_step;               /* of the last saved checkpoint; 0: none */
} tb_train_result;

/** tb_train_status - "ok", "plateau", "diverged" or "interrupted". */
const char *tb_train_status(const tb_train_result *r);
/** tb_train_decided - the update at which that was decided: bad_step of a run
 * that diverged, the last one of any other. */
size_t tb_train_decided(const tb_train_result *r);

/**
 * tb_train - run it. `block` may be NULL with resume (the folder knows).
 *
 * Every number depends on the settings, the text and the seed alone: step s
 * draws its rows and dropout masks from (seed, s), so a run that was stopped,
 * killed or resumed ends with the same bits as one that was not (same program,
 * same number of threads; in an exact context any number).
 *
 * Diverged (TB_ERR_DIVERGED; result and error text name step, place and last
 * good checkpoint; nothing is saved any more):
 *   loss not finite, or above 3 times that of the first step (of even guesses
 *   where that is more): no backward pass
 *   a gradient not finite, or one whose square is too large for the second
 *   moment: no weight is touched
 *   a weight not finite after the update
 *
 * Resume: settings that are given must be those of the folder; only val_every,
 * save_every, the name of the text and of the folder may change. The text must
 * give the same tokens, a given block must print the same.
 *
 * TB_INTERRUPTED after tb_ctx_interrupt: the update was finished, the state
 * saved. TB_ERR_INPUT: text too short, folder of another run (the difference
 * is named), a fresh run into a folder that holds one. TB_ERR_IO: `out` cannot
 * be written (tried before the first step), another process trains there; the
 * old checkpoint is intact.
 */
tb_status tb_train(tb_ctx *ctx, const tb_block *block,
                   const tb_train_spec *spec, const tb_train_observer *obs,
                   tb_train_result *result);

/*
 * config.json of such a folder: one object, read by tb_lm_open and --resume.
 *
 *   tollbooth     version that wrote it     kind          "decoder", "encoder",
 *                                                         "encoder-decoder"
 *   block_name    built-in or file, or null block_hash    SHA-256 of block.txt
 *   task          "lm", "mlm", "classify", "translate"
 *   depth decoder_depth width heads kv_heads ffn context vocab classes   sizes
 *   norm norm_from eps eps_from             with their origin: "default",
 *                                           "model", "option"
 *   dropout bias tied causal positions uniform_attention init
 *   batch steps lr warmup schedule beta1 beta2 adam_eps weight_decay clip
 *   label_smoothing val_fraction val_every val_windows save_every seed dtype
 *   tokenizer text source target            files
 *   tokens tokens_hash                      of the text; 64-bit, hexadecimal
 *   labels                                  of classify, in the order of
 * classes
 *
 * Metadata of state.safetensors: tollbooth, step, seed, block, block_hash,
 * settings (the text of config.json), settings_hash, tokens_hash, and progress:
 * {"step", "first_loss", "loss", "val_loss", "best_val_loss", "best_step",
 * "fifths"}. model.safetensors has tollbooth, step, block, block_hash,
 * settings, settings_hash.
 */

/* --- a trained model ------------------------------------------------------ */

typedef struct tb_lm tb_lm;

/** tb_lm_open - a folder that train wrote. The block text inside must be the
 * one the weights were trained with (hash), else the difference is shown.
 * Without a model.safetensors the weights of state.safetensors are taken. */
tb_status tb_lm_open(tb_ctx *ctx, const char *dir, tb_lm **out);
/** tb_lm_close - NULL is fine. tb_lm_block, tb_lm_tokenizer - what the folder
 * has; they live as long as the model. */
void tb_lm_close(tb_lm *m);
const tb_block *tb_lm_block(const tb_lm *m);
const tb_tokenizer *tb_lm_tokenizer(const tb_lm *m);
/** tb_lm_settings - as trained, nothing unset. */
const tb_settings *tb_lm_settings(const tb_lm *m);
/** tb_lm_step - updates behind the weights. */
size_t tb_lm_step(const tb_lm *m);
/** tb_lm_parameters - learned numbers. */
size_t tb_lm_parameters(const tb_lm *m);
/** tb_lm_origin - where training took norm kind and eps from, by ruling 6. */
void tb_lm_origin(const tb_lm *m, tb_origin *norm, tb_origin *eps);

typedef struct tb_sampling {
    bool greedy;        /* most likely token; of equals the smallest id */
    double temperature; /* > 0; 0: greedy */
    size_t top_k;       /* the k most likely tokens; 0: all */
    double top_p;       /* fewest tokens that reach this probability; (0,1] */
    uint64_t seed;
} tb_sampling;

/** TB_SAMPLING_DEFAULT - all tokens at temperature 1, seed 1. */
#define TB_SAMPLING_DEFAULT                                                    \
    {                                                                          \
        .temperature = 1, .top_p = 1, .seed = 1                                \
    }

/** tb_lm_generate - n tokens after the prompt, one callback each (the id; the
 * prompt is not repeated). Empty prompt: starts from token 0. The model sees
 * the last `context` tokens: until there are so many each is computed once, and
 * its keys and values are kept; then all of the window for each. The choice at
 * a place is a pure function of (seed, place, text before it). false from the
 * callback stops. TB_INTERRUPTED after tb_ctx_interrupt; TB_ERR_NONFINITE for
 * logits that are. */
tb_status tb_lm_generate(tb_lm *m, const int32_t *prompt, size_t nprompt,
                         size_t n, const tb_sampling *s,
                         bool (*token)(void *user, int32_t id), void *user);

/** tb_translation - what was said to one line. */
typedef struct tb_translation {
    size_t line; /* from 0 */
    const int32_t *ids;
    size_t count;
    bool ended;      /* false: the context was full before the end token came */
    double log_prob; /* sum of the logarithms of its tokens and the end */
} tb_translation;

/** tb_search - how a translation is looked for. 0 or 1 hypotheses: greedy, the
 * likeliest token every time. Else beam search, at most 64: the translation of
 * n tokens, the end among them, with the largest log_prob / ((5 + n) /
 * 6)^length_penalty (Wu et al. 2016, arXiv:1609.08144). */
typedef struct tb_search {
    size_t beam;
    double length_penalty; /* 0 or more; 0.6 in Vaswani et al. 2017 */
} tb_search;

/** tb_lm_translate - a line of the target for each of n lines of a source, in
 * their order, one callback each; `name` is theirs in messages. A translation
 * ends with the end token, or where the context is full; that of an empty line
 * is empty. false from the callback stops.
 * TB_ERR_INPUT for a model of another task, a character outside the vocabulary
 * or a line too long for the context; TB_INTERRUPTED after tb_ctx_interrupt;
 * TB_ERR_NONFINITE for logits that are. */
tb_status tb_lm_translate(tb_lm *m, const char *name, const tb_span *lines,
                          size_t n, const tb_search *search,
                          bool (*line)(void *user, const tb_translation *t),
                          void *user);

typedef struct tb_score {
    size_t tokens; /* predicted: all but the first; mlm: those that are hidden;
                      classify: lines; translate: those of the target and an
                      end for each line */
    double loss;   /* nats, mean over them */
    double perplexity;
    bool has_accuracy; /* not of lm */
    double accuracy;   /* share of them that the model thinks likeliest */
} tb_score;

/** The file names of a task, NULL where it has none. */
typedef struct tb_score_files {
    const char *text, *source, *target;
} tb_score_files;

/** tb_lm_score_files - loss over whole files as the model's task reads them;
 * `logits_npy` NULL or a file for the logits of every target, in order. What
 * mlm hides is the same in every call. */
tb_status tb_lm_score_files(tb_lm *m, const tb_score_files *given,
                            const char *logits_npy, tb_score *out);

/** tb_lm_score - of lm: loss over a whole text in windows of the context, each
 * starting blank; `logits_npy` NULL or a file for all logits [tokens, V]. */
tb_status tb_lm_score(tb_lm *m, const int32_t *ids, size_t n,
                      const char *logits_npy, tb_score *out);

/** tb_lm_flow - gradient flow of the trained weights, dropout off and running
 * statistics frozen; settings and dtype of `spec` are the model's. With
 * spec->what_if changed blocks get the trained weights by their names; what
 * they have beside those starts by its rules. */
tb_status tb_lm_flow(tb_lm *m, const tb_flow_spec *spec, tb_flow **out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
