/* SPDX-License-Identifier: MIT */
/* Text to tokens to batches: loading (plain or gzip), byte and character
 * tokenizers, a streaming decoder, and a corpus with its split. Bytes are
 * never changed silently. */
#ifndef TOLLBOOTH_DATA_H
#define TOLLBOOTH_DATA_H

#include "tollbooth/base.h"
#include "tollbooth/checkpoint.h" /* tb_bytes, tb_config */

#ifdef __cplusplus
extern "C" {
#endif

/* --- text ----------------------------------------------------------------- */

/** What is in a text, counted before --strip-bom. */
typedef struct tb_text_stats {
    size_t bytes;
    size_t codepoints; /* valid ones */
    size_t cr;         /* CR not followed by LF */
    size_t lf;         /* LF not after CR */
    size_t crlf;
    size_t nul;
    size_t invalid; /* bytes that are not part of valid UTF-8 */
    bool bom;       /* EF BB BF at the start */
} tb_text_stats;

typedef struct tb_text_options {
    bool strip_bom; /* drop a BOM at the start; default: keep it */
    size_t max;     /* most bytes after decompression; 0: 4 GiB */
} tb_text_options;

typedef struct tb_text {
    tb_bytes bytes;
    tb_text_stats stats;
    bool gzip;
} tb_text;

/**
 * tb_text_load - a plain or gzip file, or standard input ("-").
 *
 * Gzip is known by its first bytes, whatever the name (.gz, .dict.dz); several
 * members in a row are joined, as gzip does. Bytes stay as they are.
 * in   opt   NULL for the defaults
 * Returns TB_ERR_INPUT for an absent file, damaged or truncated gzip, or more
 * than opt->max bytes. An empty text is TB_OK.
 */
tb_status tb_text_load(tb_ctx *ctx, const char *path,
                       const tb_text_options *opt, tb_text *out);
void tb_text_clear(tb_ctx *ctx, tb_text *t);

/** tb_text_count - the statistics of any bytes. */
tb_text_stats tb_text_count(const void *data, size_t n);

/** tb_text_gunzip - decompress bytes; `name` is for messages. */
tb_status tb_text_gunzip(tb_ctx *ctx, const char *name, const void *data,
                         size_t n, size_t max, tb_bytes *out);

/* --- tokenizers ------------------------------------------------------------
 */

typedef struct tb_tokenizer tb_tokenizer;

/** tb_tokenizer_byte - 256 tokens, id = byte. Never fails to encode. */
tb_status tb_tokenizer_byte(tb_ctx *ctx, tb_tokenizer **out);

/**
 * tb_tokenizer_char - one token per distinct character of `data`.
 *
 * Ids: the code points in rising order, then those single bytes that are not
 * part of valid UTF-8, in rising order; so decode(encode(data)) == data byte
 * for byte, whatever data is. TB_ERR_INPUT if data is empty.
 */
tb_status tb_tokenizer_char(tb_ctx *ctx, const void *data, size_t n,
                            tb_tokenizer **out);

/** tb_tokenizer_make - by the name of --tokenizer: "byte" or "char"; char
 * takes its vocabulary from data. TB_ERR_ARG on another name. */
tb_status tb_tokenizer_make(tb_ctx *ctx, const char *kind, const void *data,
                            size_t n, tb_tokenizer **out);
void tb_tokenizer_destroy(tb_tokenizer *t); /* NULL is fine */

const char *tb_tokenizer_kind(const tb_tokenizer *t);
size_t tb_tokenizer_size(const tb_tokenizer *t); /* vocabulary */

/** tb_tokenizer_token - the bytes of a token, not NUL-terminated; NULL and 0
 * if `id` is out of range. The default prompt is token 0. */
const char *tb_tokenizer_token(const tb_tokenizer *t, int32_t id, size_t *n);

typedef struct tb_tokens {
    int32_t *ids;
    size_t count;
} tb_tokens;
void tb_tokens_clear(tb_ctx *ctx, tb_tokens *t);

/**
 * tb_tokenizer_encode - bytes to ids; `what` names them in messages:
 *   prompt: character "c" (U+0063) at offset 2 is not in the vocabulary
 *   prompt: byte 0xFF at offset 2 is not in the vocabulary
 * with TB_ERR_INPUT; the offset counts bytes from 0. n may be 0.
 */
tb_status tb_tokenizer_encode(tb_ctx *ctx, const tb_tokenizer *t,
                              const char *what, const void *data, size_t n,
                              tb_tokens *out);

/** tb_tokenizer_decode - ids to the exact bytes; TB_ERR_INPUT on an id out of
 * range, with its position. */
tb_status tb_tokenizer_decode(tb_ctx *ctx, const tb_tokenizer *t,
                              const int32_t *ids, size_t n, tb_bytes *out);

/** tb_tokenizer_save - as JSON text, for TB_DIR_TOKENIZER. */
tb_status tb_tokenizer_save(tb_ctx *ctx, const tb_tokenizer *t, tb_bytes *out);
/** tb_tokenizer_load - from that text; `name` is the file for messages. */
tb_status tb_tokenizer_load(tb_ctx *ctx, const char *name, const char *text,
                            size_t n, tb_tokenizer **out);

/* --- showing tokens as they come -------------------------------------------
 */

/** Joins the bytes of tokens and lets out whole characters only; what cannot
 * become one is U+FFFD (one per maximal invalid run, as Unicode advises). */
typedef struct tb_decoder tb_decoder;

tb_status tb_decoder_create(tb_ctx *ctx, const tb_tokenizer *t,
                            tb_decoder **out);
void tb_decoder_destroy(tb_decoder *d); /* NULL is fine */

/** tb_decoder_push - one token; *text (valid UTF-8, *n bytes, maybe 0) lives
 * until the next call on d. */
tb_status tb_decoder_push(tb_decoder *d, int32_t id, const char **text,
                          size_t *n);
/** tb_decoder_flush - what is held back, as U+FFFD, at the end. */
tb_status tb_decoder_flush(tb_decoder *d, const char **text, size_t *n);

/* --- corpus ----------------------------------------------------------------
 */

typedef enum tb_split { TB_SPLIT_TRAIN, TB_SPLIT_VAL } tb_split;

typedef struct tb_corpus_options {
    size_t context;      /* T, tokens a model sees; > 0 */
    double val_fraction; /* in [0, 1); the last floor(N*f) tokens */
} tb_corpus_options;

#define TB_VAL_FRACTION 0.1 /* the default of the command line */

typedef struct tb_corpus tb_corpus;

/**
 * tb_corpus_create - encode a text and split it: [ train | validation ].
 *
 * Each part that is not empty must hold context + 1 tokens:
 *   a.txt: validation split: need at least 9 tokens, have 4 (context 8 and
 *   the next token)
 * is TB_ERR_INPUT. An empty validation part (short text or fraction 0) is
 * legal: tb_corpus_windows is 0 then.
 * in   name  of the text, for messages
 */
tb_status tb_corpus_create(tb_ctx *ctx, const char *name, const tb_tokenizer *t,
                           const void *data, size_t n,
                           const tb_corpus_options *opt, tb_corpus **out);
/** tb_corpus_create_ids - the same from ids (copied), each in [0, vocab). */
tb_status tb_corpus_create_ids(tb_ctx *ctx, const char *name,
                               const int32_t *ids, size_t n, size_t vocab,
                               const tb_corpus_options *opt, tb_corpus **out);
void tb_corpus_destroy(tb_corpus *c); /* NULL is fine */

size_t tb_corpus_context(const tb_corpus *c);
size_t tb_corpus_vocab(const tb_corpus *c);
/** tb_corpus_tokens - the ids of a part and how many. */
const int32_t *tb_corpus_tokens(const tb_corpus *c, tb_split s, size_t *n);
/** tb_corpus_hash - of ids, vocabulary size and split point; a resumed run
 * compares it. The context is not in it. */
uint64_t tb_corpus_hash(const tb_corpus *c);

/** tb_corpus_starts - how many places a window of context + 1 tokens can
 * start at in a part of N tokens: N - T (0 if none). */
size_t tb_corpus_starts(const tb_corpus *c, tb_split s);

/** tb_corpus_draw - where row `row` of training step `step` starts: uniform
 * over 0..N-T-1, a pure function of (seed, step, row). row < 2^24. */
size_t tb_corpus_draw(const tb_corpus *c, uint64_t seed, uint64_t step,
                      uint64_t row);

/**
 * tb_corpus_batch - training rows [row, row+rows) of a step.
 * out  x  i32 [rows,T]  tokens;  y  i32 [rows,T]  the token after each
 * Rows are global, so that ranks or micro-batches take theirs. Allocates
 * nothing and cannot fail.
 */
void tb_corpus_batch(const tb_corpus *c, uint64_t seed, uint64_t step,
                     uint64_t row, size_t rows, int32_t *x, int32_t *y);

/** tb_corpus_windows - whole windows that tile a part: window i starts at i*T
 * and (N-1)/T of them fit; the last (N-1) mod T targets are left over. */
size_t tb_corpus_windows(const tb_corpus *c, tb_split s);

/** tb_corpus_window - windows [first, first+rows) as tb_corpus_batch; they
 * must exist. */
void tb_corpus_window(const tb_corpus *c, tb_split s, size_t first, size_t rows,
                      int32_t *x, int32_t *y);

#ifdef __cplusplus
}
#endif
#endif
