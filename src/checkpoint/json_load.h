/* SPDX-License-Identifier: MIT */
/* Reading JSON text with jansson: one place for flags, depth and messages.
 * Seen by this room only. */
#ifndef TB_CHECKPOINT_JSON_LOAD_H
#define TB_CHECKPOINT_JSON_LOAD_H

#include <jansson.h>

#include "base/base.h"

typedef enum tb_json_numbers {
    TB_JSON_STRICT, /* an integer beyond 64 bits is an error */
    TB_JSON_AS_REAL /* every number becomes a real */
} tb_json_numbers;

/**
 * tb_json_load - parse all n bytes; duplicate keys are refused.
 *
 * in   name     stands before the message: "NAME: not JSON: line 1, column 3:
 *               ..."
 *      context  what of it is JSON, e.g. "header: " or ""
 * Returns TB_ERR_INPUT or TB_ERR_MEMORY; *big tells (when not NULL) that an
 * integer did not fit in 64 bits.
 */
tb_status tb_json_load(tb_ctx *ctx, const char *name, const char *context,
                       const char *text, size_t n, tb_json_numbers numbers,
                       bool *big, json_t **out);

/** tb_json_describe - a value for a message: string "abc", number 1.5, true,
 * null, a list of 3, an object. Writes at most cap bytes. */
void tb_json_describe(const json_t *v, char *dst, size_t cap);

#endif
