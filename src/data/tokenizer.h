/* SPDX-License-Identifier: MIT */
/* A tokenizer: a table of token bytes, plus what its kind adds. A new kind is
 * one row in the list of tokenizer.c. */
#ifndef TB_DATA_TOKENIZER_H
#define TB_DATA_TOKENIZER_H

#include "base/base.h"
#include "tollbooth/data.h"
#include "tollbooth/json.h"

typedef struct tb_token_kind {
    const char *name; /* of --tokenizer and of the file */
    tb_status (*encode)(tb_ctx *ctx, const tb_tokenizer *t, const char *what,
                        const char *data, size_t n, tb_tokens *out);
    /** The vocabulary from texts; none where it needs none. */
    tb_status (*build)(tb_tokenizer *t, const tb_span *texts, size_t count);
    void (*save)(const tb_tokenizer *t, tb_json *j); /* into an open object */
    tb_status (*load)(tb_tokenizer *t, tb_config *c);
} tb_token_kind;

extern const tb_token_kind tb_token_byte, tb_token_char;

struct tb_tokenizer {
    tb_ctx *ctx;
    const tb_token_kind *kind;
    size_t size;  /* tokens */
    size_t plain; /* of them, those that stand for text: ids 0 .. plain-1 */
    int32_t special[TB_SPECIALS]; /* ids, -1: none */
    char *bytes;                  /* of all tokens, one after the other */
    size_t *at;                   /* [size+1] where each starts */
    int32_t *map; /* char: [TB_CODES + 256] id of a code point or byte, -1 */
};

enum { TB_CODES = 0x110000 };

/** tb_tokenizer_new - an empty one of a kind. */
tb_status tb_tokenizer_new(tb_ctx *ctx, const tb_token_kind *kind,
                           tb_tokenizer **out);

/** tb_tokenizer_room - tables for `size` tokens of `bytes` bytes together;
 * the caller fills t->at and t->bytes. */
tb_status tb_tokenizer_room(tb_tokenizer *t, size_t size, size_t bytes);

/** tb_tokens_room - ids for n tokens, count 0. */
tb_status tb_tokens_room(tb_ctx *ctx, size_t n, tb_tokens *out);

#endif
