/* SPDX-License-Identifier: MIT */
/* What greedy translation and beam search share: a source for each row, what
 * each row has said, and one pass over all of them. */
#ifndef TB_TRAIN_TRANSLATE_H
#define TB_TRAIN_TRANSLATE_H

#include "train/lm.h"

typedef struct tb_translator {
    tb_lm *m;
    const char *name; /* of the lines, for messages */
    const tb_span *lines;
    size_t context, vocab, plain;
    int32_t pad, start, end;
    size_t most, rows; /* room for rows; those of a pass */
    size_t time, source_time;
    tb_tokens *source; /* [most] */
    int32_t *text;     /* [most, context + 1]: start and what was said */
    size_t *said;      /* [most] */
    double *score;     /* [most]: sum of the logarithms */
    bool *ended;       /* [most] */
    int32_t *tokens, *sources;
    unsigned char *source_keep;
    tb_cache *cache; /* of these rows; NULL: all of them anew in each pass */
} tb_translator;

/** tb_translator_text - start and what row r has said. */
int32_t *tb_translator_text(const tb_translator *w, size_t row);

/** tb_translator_pass - logits of the next token of every row; their place of
 * row r is tb_translator_place. */
tb_status tb_translator_pass(tb_translator *w, size_t seen);
size_t tb_translator_place(const tb_translator *w, size_t row, size_t seen);

/** tb_translator_lse - log of the sum of exp of the logits of a place;
 * TB_ERR_NONFINITE if one is not finite. */
tb_status tb_translator_lse(const tb_translator *w, size_t place, double *out);
double tb_translator_logit(const tb_translator *w, size_t place, size_t id);
/** tb_translator_may - can this token be said? Text and the end can. */
bool tb_translator_may(const tb_translator *w, size_t id);

/** tb_beam_line - the best of `beam` hypotheses for the source of row 0, which
 * all rows share; text, said, score and ended of row 0 are set. */
tb_status tb_beam_line(tb_translator *w, size_t beam, double penalty);

#endif
