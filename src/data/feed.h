/* SPDX-License-Identifier: MIT */
/* A feed: the texts of a task as tokens, and how a row is made of them. A new
 * task is one row in the list of feed.c. */
#ifndef TB_DATA_FEED_H
#define TB_DATA_FEED_H

#include "base/number.h"
#include "data/tokenizer.h"

/** What the randomness of a row hangs on. */
typedef struct tb_draw {
    uint64_t seed, step, row;
} tb_draw;

/** Texts that a vocabulary is made of; the pieces point into the files. */
typedef struct tb_spans {
    tb_span *span;
    size_t count;
} tb_spans;

typedef struct tb_feed_kind {
    const char *name; /* of the task */
    unsigned special; /* bits of the special tokens it needs */
    /** The texts of a vocabulary. */
    tb_status (*spans)(tb_ctx *ctx, const tb_feed_spec *spec, tb_spans *out);
    tb_status (*open)(tb_feed *f, const tb_feed_spec *spec,
                      const tb_tokenizer *t);
    /** How many places of a part a row can be drawn from; how many rows cover
     * it, and the place of the i-th. */
    size_t (*places)(const tb_feed *f, tb_split s);
    size_t (*rows)(const tb_feed *f, tb_split s);
    size_t (*place)(const tb_feed *f, size_t i);
    void (*fill)(const tb_feed *f, tb_split s, size_t place, tb_draw d,
                 const tb_rows *out, size_t at);
} tb_feed_kind;

extern const tb_feed_kind tb_feed_lm, tb_feed_mlm, tb_feed_classify,
    tb_feed_translate;

/** Lines as tokens: line i is ids[at[i]] .. ids[at[i+1]-1]. */
typedef struct tb_side {
    tb_tokens ids;
    size_t *at;
    size_t longest;
} tb_side;

struct tb_feed {
    tb_ctx *ctx;
    tb_arena arena; /* labels */
    tb_task task;
    const tb_feed_kind *kind;
    size_t context, time, source_time;
    bool whole;
    int32_t special[TB_SPECIALS];
    size_t vocab, plain;
    tb_corpus *corpus;      /* lm, mlm */
    tb_side source, target; /* translate; classify: only target, the text */
    int32_t *label;         /* classify: [lines] */
    const char *const *labels;
    size_t nlabels;
    size_t lines, val; /* kept; the last `val` of them are for validation */
    size_t skipped;
    uint64_t hash;
};

/** tb_corpus_create_whole - without a split and of any length above 0. */
tb_status tb_corpus_create_whole(tb_ctx *ctx, const char *name,
                                 const tb_tokenizer *t, const void *data,
                                 size_t n, size_t context, tb_corpus **out);

/** tb_mask_token - what BERT's scheme makes of the token at position `at` of a
 * row: true if it is to be said, and in *shown what the model sees. */
bool tb_mask_token(tb_draw d, size_t at, int32_t token, size_t plain,
                   int32_t mask, int32_t *shown);

/* --- lines ---------------------------------------------------------------- */

/** The lines of one file that are kept, and their numbers in it, from 1. */
typedef struct tb_kept {
    const char *name;
    tb_span *span;
    size_t *number;
} tb_kept;

tb_status tb_kept_room(tb_ctx *ctx, const char *name, size_t n, tb_kept *out);
void tb_kept_clear(tb_ctx *ctx, tb_kept *k);

/** tb_lines_part - f->val of the f->lines there are; none is TB_ERR_INPUT. */
tb_status tb_lines_part(tb_feed *f, const tb_feed_spec *spec, const char *what);
/** tb_side_encode - the f->lines kept lines of a file. */
tb_status tb_side_encode(tb_feed *f, const tb_tokenizer *t, const tb_kept *k,
                         tb_side *s);
/** tb_side_check - does each fit, with the special token of that name? */
tb_status tb_side_check(const tb_feed *f, const tb_kept *k, const tb_side *s,
                        const char *special);
size_t tb_side_length(const tb_side *s, size_t i);
uint64_t tb_side_hash(const tb_side *s, size_t lines);

/** Members of the table: a row is a line. */
size_t tb_lines_places(const tb_feed *f, tb_split s);
size_t tb_lines_place(const tb_feed *f, size_t i);
/** tb_lines_at - the line at a place of a part. */
size_t tb_lines_at(const tb_feed *f, tb_split s, size_t place);
/** tb_lines_put - `before`, line i, `after` (absent if < 0), padding. */
void tb_lines_put(const tb_feed *f, const tb_side *s, size_t i, int32_t before,
                  int32_t after, size_t time, int32_t *x, unsigned char *keep);

#endif
