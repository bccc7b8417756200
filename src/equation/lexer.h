/* SPDX-License-Identifier: MIT */
/* Text to tokens, one at a time, and failing at a place of the text. */
#ifndef TB_EQUATION_LEXER_H
#define TB_EQUATION_LEXER_H

#include "equation/equation.h"

typedef enum tb_token_kind {
    TB_TOKEN_END,
    TB_TOKEN_NEWLINE, /* or ';' */
    TB_TOKEN_NAME,
    TB_TOKEN_NUMBER,
    TB_TOKEN_WORD, /* letters, digits and . * - _, in word mode only */
    TB_TOKEN_OP,   /* one of + - * / ^ ( ) [ ] , : = < > l(<=) g(>=) e(==) */
    TB_TOKEN_BAD   /* the failure is recorded */
} tb_token_kind;

/** x_{i+1} is x: the paper's subscripts, checked and forgotten. */
typedef enum tb_subscript {
    TB_SUB_NONE,
    TB_SUB_THIS, /* x_i x_{i} x_l x_{l} */
    TB_SUB_NEXT  /* x_{i+1} x_{l+1} */
} tb_subscript;

typedef struct tb_token {
    tb_token_kind kind;
    tb_pos pos;
    const char *start; /* as written */
    size_t n;
    char op;
    const char *name; /* NAME: canonical; WORD: as written */
    double number;
    tb_subscript subscript;
} tb_token;

typedef struct tb_lexer {
    tb_ctx *ctx;
    tb_block *block; /* its arena, name and source */
    const char *at, *end;
    tb_pos pos;       /* of `at` */
    int brackets;     /* open ones: newlines are blanks inside */
    bool words;       /* read weight names and lint codes */
    tb_status status; /* the first failure */
} tb_lexer;

/** tb_lexer_init - at the start of block->source; fails on NUL bytes and
 * invalid UTF-8, wherever they stand. n: bytes of the source. */
void tb_lexer_init(tb_lexer *lx, tb_ctx *ctx, tb_block *block, size_t n);

tb_token tb_lexer_next(tb_lexer *lx);

/** tb_lexer_peek - the next byte that is not a blank, '\0' at the end, 'e'
 * for "==". */
char tb_lexer_peek(const tb_lexer *lx);

/** tb_lexer_seek - read this token again (in another mode). */
void tb_lexer_seek(tb_lexer *lx, const tb_token *t);

/** tb_lexer_fail - the first one counts; later ones only follow from it. */
void tb_lexer_fail(tb_lexer *lx, tb_pos pos, const char *fmt, ...)
    TB_PRINTF(3, 4);

/** tb_token_text - for messages: 'x' in quotes, or "the end of the line". */
enum { TB_TOKEN_CHARS = 48 };
const char *tb_token_text(const tb_token *t, char out[TB_TOKEN_CHARS]);

/** tb_utf8_length - bytes of the code point at s, 0 if it is not valid. */
size_t tb_utf8_length(const char *s, size_t n);

/** tb_source_fail - name:line:column: message, the line, the caret. */
tb_status tb_source_fail(tb_ctx *ctx, const char *name, const char *source,
                         size_t n, tb_pos pos, const char *fmt, va_list ap);

#endif
