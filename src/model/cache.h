/* SPDX-License-Identifier: MIT */
/* A model that is given its sequences a few tokens at a time: keys and values
 * of all tokens are kept, so that each is computed once. */
#ifndef TB_MODEL_CACHE_H
#define TB_MODEL_CACHE_H

#include "model/model.h"

typedef struct tb_cache tb_cache;

/** tb_cache_create - for `batch` sequences of up to `most` tokens, which an
 * encoder's sources of `source` tokens go with (0: there is none). *out is NULL
 * where the model cannot be used so: a token of it changes what stood before,
 * or a sequence another. Dropout must be off (tb_model_quiet). */
tb_status tb_cache_create(tb_model *m, size_t batch, size_t most, size_t source,
                          tb_cache **out);
void tb_cache_destroy(tb_cache *c);

/** tb_cache_feed - the next n tokens of every sequence, b->tokens [batch, n];
 * then, if `logits`, tb_model_logits are theirs. Binds the model. All of
 * b->source in the first call, and the same after it; no b->keep. */
tb_status tb_cache_feed(tb_cache *c, const tb_batch *b, size_t n, bool logits);
/** tb_cache_seen - tokens fed so far; at most `most`. */
size_t tb_cache_seen(const tb_cache *c);
/** tb_cache_forget - the next feed is the first. */
void tb_cache_forget(tb_cache *c);
/** tb_cache_pick - sequence i goes on as sequence from[i] did so far. */
tb_status tb_cache_pick(tb_cache *c, const size_t *from);

#endif
