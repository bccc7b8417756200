/* SPDX-License-Identifier: MIT */
/* UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF
 * (Unicode 15, table 3-7). */
#ifndef TB_CHECKPOINT_UTF8_H
#define TB_CHECKPOINT_UTF8_H

#include "base/base.h"

typedef enum tb_utf8_kind {
    TB_UTF8_VALID,
    TB_UTF8_INVALID, /* `len` bytes that can never become a character */
    TB_UTF8_PARTIAL  /* all n bytes begin a character, more could follow */
} tb_utf8_kind;

typedef struct tb_utf8 {
    tb_utf8_kind kind;
    size_t len;    /* bytes it takes; for INVALID the maximal subpart */
    uint32_t code; /* of a valid one */
} tb_utf8;

/** tb_utf8_next - what stands at s, n > 0 bytes. */
tb_utf8 tb_utf8_next(const char *s, size_t n);

/** tb_utf8_valid - all n bytes are UTF-8. */
bool tb_utf8_valid(const char *s, size_t n);

/** tb_utf8_put - the UTF-8 of a code point; returns 1 to 4. */
size_t tb_utf8_put(uint32_t code, char out[4]);

/** tb_utf8_is_code - a code point that UTF-8 can hold. */
bool tb_utf8_is_code(int64_t code);

#endif
