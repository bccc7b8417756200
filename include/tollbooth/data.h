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
#pragma GCC visibility push(default)

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
/** tb_text_clear - frees the bytes; the text is empty then. */
void tb_text_clear(tb_ctx *ctx, tb_text *t);

/** tb_text_count - the statistics of any bytes. */
tb_text_stats tb_text_count(const void *data, size_t n);

/** tb_text_gunzip - decompress bytes; `name` is for messages. */
tb_status tb_text_gunzip(tb_ctx *ctx, const char *name, const void *data,
                         size_t n, size_t max, tb_bytes *out);

/* --- lines ---------------------------------------------------------------- */

/** A piece of somebody else's text. */
typedef struct tb_span {
    const char *data;
    size_t n;
} tb_span;

typedef struct tb_lines {
    tb_span *line;
    size_t count;
} tb_lines;

/** tb_lines_split - the lines of a text, which they point into. A line ends at
 * LF or CR LF, neither of which belongs to it; a last line needs no end. */
tb_status tb_lines_split(tb_ctx *ctx, const void *data, size_t n,
                         tb_lines *out);
/** tb_lines_clear - frees the list, not the text it points into. */
void tb_lines_clear(tb_ctx *ctx, tb_lines *l);

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
/** tb_tokenizer_make_of - the same from several texts, one vocabulary for all:
 * the lines of source and target, say. */
tb_status tb_tokenizer_make_of(tb_ctx *ctx, const char *kind,
                               const tb_span *texts, size_t count,
                               tb_tokenizer **out);
/** tb_tokenizer_destroy - NULL is fine. */
void tb_tokenizer_destroy(tb_tokenizer *t);

/** tb_tokenizer_kind - as tb_tokenizer_make takes it. tb_tokenizer_size - kinds
 * of tokens, the special ones among them. */
const char *tb_tokenizer_kind(const tb_tokenizer *t);
size_t tb_tokenizer_size(const tb_tokenizer *t); /* vocabulary */

/** Tokens that stand for no bytes: encode never gives one, decode gives nothing
 * for them. Their ids follow those of the text, in this order. */
typedef enum tb_special {
    TB_SPECIAL_PAD,   /* behind the end of a shorter row */
    TB_SPECIAL_START, /* before the first token */
    TB_SPECIAL_END,   /* after the last one */
    TB_SPECIAL_MASK   /* hides a token that is to be guessed */
} tb_special;
enum { TB_SPECIALS = TB_SPECIAL_MASK + 1 };

/** tb_tokenizer_special_add - give a tokenizer that has none the special tokens
 * whose bits (1 << TB_SPECIAL_PAD, ...) are set. */
tb_status tb_tokenizer_special_add(tb_tokenizer *t, unsigned bits);
/** tb_tokenizer_special - its id, -1 if the tokenizer lacks it. */
int32_t tb_tokenizer_special(const tb_tokenizer *t, tb_special s);
/** tb_tokenizer_plain - the vocabulary without special tokens: every id below
 * it stands for text. */
size_t tb_tokenizer_plain(const tb_tokenizer *t);

/** tb_tokenizer_token - the bytes of a token, not NUL-terminated; NULL and 0
 * if `id` is out of range. The default prompt is token 0. */
const char *tb_tokenizer_token(const tb_tokenizer *t, int32_t id, size_t *n);

typedef struct tb_tokens {
    int32_t *ids;
    size_t count;
} tb_tokens;
/** tb_tokens_clear - frees the ids. */
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

/** tb_decoder_create - nothing held back yet; `t` must outlive it.
 * tb_decoder_destroy - NULL is fine. */
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
/** tb_corpus_destroy - NULL is fine. */
void tb_corpus_destroy(tb_corpus *c);

/** tb_corpus_context - tokens of a window. tb_corpus_vocab - every id is below
 * it. */
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

/* --- tasks ----------------------------------------------------------------
 */

/** What a model is asked to say. */
typedef enum tb_task {
    TB_TASK_UNSET,
    TB_TASK_LM,       /* the next token of a text */
    TB_TASK_MLM,      /* the hidden tokens of a text, BERT's way: 15 % of them
                         are to be said; of those 80 % show the mask, 10 % a token
                         drawn from all of the text's, 10 % themselves (Devlin et al.
                         2019,      arXiv:1810.04805) */
    TB_TASK_CLASSIFY, /* the label of a line: LABEL TAB text */
    TB_TASK_TRANSLATE /* the line of the target that stands beside a line of
                         the source */
} tb_task;

/** tb_task_name - "lm", "mlm", "classify", "translate"; tb_task_named - the
 * other way, TB_ERR_ARG with the nearest name. */
const char *tb_task_name(tb_task t);
tb_status tb_task_named(tb_ctx *ctx, const char *name, tb_task *out);

/** A loaded file and what messages call it. */
typedef struct tb_named_text {
    const char *name, *data;
    size_t n;
} tb_named_text;

typedef struct tb_feed_spec {
    tb_task task;
    size_t context;      /* most tokens of a row; > 0 */
    double val_fraction; /* in [0, 1): the last tokens or lines */
    bool whole;          /* to measure a text: one of any length, and all of it;
                            not of TB_TASK_LM */
    tb_named_text text, target; /* target: of TB_TASK_TRANSLATE alone */
    const char *const *labels;  /* CLASSIFY: the ones there are; NULL: those of
                                   the text */
    size_t nlabels;
} tb_feed_spec;

/** One batch as a model reads it: [rows, time], what the task lacks is NULL.
 *
 *   lm         tokens, and after each the next one as its target
 *   mlm        tokens of which some are hidden; target: what stood there
 *   classify   start, then the line; its label is the target of the start
 *   translate  source: the line, then end; tokens: start, then the line;
 *              targets: the line, then end
 *
 * A position without a target has -1, padding among them; keep is 1 for a
 * token and 0 for padding, which lm has none of. */
typedef struct tb_rows {
    int32_t *tokens, *targets;
    unsigned char *keep;
    int32_t *source; /* [rows, source_time] */
    unsigned char *source_keep;
} tb_rows;

typedef struct tb_feed tb_feed;

/** tb_feed_tokenizer - the vocabulary of the texts of spec, with the special
 * tokens of its task. Of lines only what belongs to them: no line ends, no
 * labels. */
tb_status tb_feed_tokenizer(tb_ctx *ctx, const tb_feed_spec *spec,
                            const char *kind, tb_tokenizer **out);

/**
 * tb_feed_create - encode the texts and split them.
 *
 * A pair of lines of which one is empty is passed over and counted, and so is
 * an empty line of a file of labels. TB_ERR_INPUT: a text of tokens shorter
 * than tb_corpus_create wants (unless spec->whole); files of an unequal number
 * of lines; lines too long for the context; a line without a TAB; a label that
 * is not UTF-8 or not one of spec->labels; fewer than two labels; no line left.
 * TB_ERR_ARG: the tokenizer lacks a special token of the task.
 */
tb_status tb_feed_create(tb_ctx *ctx, const tb_feed_spec *spec,
                         const tb_tokenizer *t, tb_feed **out);
/** tb_feed_destroy - NULL is fine. */
void tb_feed_destroy(tb_feed *f);

/** tb_feed_task - that of its spec. */
tb_task tb_feed_task(const tb_feed *f);
/** tb_feed_time - tokens of a row: the context, or of lines the longest there
 * is. tb_feed_source_time - the same of sources, 0: there are none. */
size_t tb_feed_time(const tb_feed *f);
size_t tb_feed_source_time(const tb_feed *f);
/** tb_feed_tokens - text tokens of a part, of both sides. */
size_t tb_feed_tokens(const tb_feed *f, tb_split s);
/** tb_feed_lines - lines of a part; 0 where the text is not read in lines.
 * tb_feed_skipped - those passed over. */
size_t tb_feed_lines(const tb_feed *f, tb_split s);
size_t tb_feed_skipped(const tb_feed *f);
/** tb_feed_labels - the labels, sorted as bytes, and how many; a class is its
 * place here. */
const char *const *tb_feed_labels(const tb_feed *f, size_t *n);
/** tb_feed_hash - of what a resumed run must find again. */
uint64_t tb_feed_hash(const tb_feed *f);

/** tb_feed_batch - training rows [row, row+rows) of a step: a pure function of
 * (seed, step, row). Allocates nothing and cannot fail. */
void tb_feed_batch(const tb_feed *f, uint64_t seed, uint64_t step, uint64_t row,
                   size_t rows, const tb_rows *out);
/** tb_feed_rows - rows that cover a part, each token or line once. */
size_t tb_feed_rows(const tb_feed *f, tb_split s);
/** tb_feed_row - the i-th of them as row `at` of out; what mlm hides in it is
 * the same in every run. */
void tb_feed_row(const tb_feed *f, tb_split s, size_t i, const tb_rows *out,
                 size_t at);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
