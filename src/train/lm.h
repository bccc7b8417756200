/* SPDX-License-Identifier: MIT */
/* A trained model that is used: opened, bound to what is asked of it. */
#ifndef TB_TRAIN_LM_H
#define TB_TRAIN_LM_H

#include "model/cache.h"
#include "train/trainer.h"

struct tb_lm {
    tb_ctx *ctx;
    tb_arena arena;
    tb_record record;
    tb_block *block;
    tb_tokenizer *tokenizer;
    tb_model *model; /* dropout 0 */
    tb_quiet quiet;
    size_t step;
    bool windows;               /* tests: nothing is kept from token to token */
    size_t batch, time, source; /* of the binding; 0: none */
};

/** tb_lm_bind - for forward passes of batch x time, of sources of `source`
 * tokens (0: there are none); keeps a fitting binding. */
tb_status tb_lm_bind(tb_lm *m, size_t batch, size_t time, size_t source);

/** tb_lm_cache - for sequences up to the context (tb_cache_create), or NULL
 * where all of a window is to be computed for each token. Until it is
 * destroyed the model is its own. */
tb_status tb_lm_cache(tb_lm *m, size_t batch, size_t source, tb_cache **out);

/** tb_lm_logit - number i of logits of the model's type. */
double tb_lm_logit(const tb_model *m, const void *logits, size_t i);

/** tb_lm_need_task - TB_ERR_INPUT where the model was trained for another task
 * than `what` needs. */
tb_status tb_lm_need_task(const tb_lm *m, const char *what, tb_task task);

/** A token while one is chosen. */
typedef struct tb_choice {
    double logit, weight;
    int32_t id;
} tb_choice;

/** tb_sample - one id from the logits [vocab] of a place (its number in the
 * text, from 0); c is scratch for vocab choices. */
tb_status tb_sample(tb_ctx *ctx, const tb_sampling *s, tb_dtype dtype,
                    const void *logits, size_t vocab, uint64_t place,
                    tb_choice *c, int32_t *out);

/** tb_sampling_check - TB_ERR_ARG for impossible numbers. */
tb_status tb_sampling_check(tb_ctx *ctx, const tb_sampling *s);

#endif
