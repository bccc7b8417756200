/* SPDX-License-Identifier: MIT */
/* The JSON writer every command uses. Output is one line unless `pretty`;
 * numbers read back to the same bits; nan and infinities become the strings
 * "nan", "inf", "-inf". Reading JSON is jansson's job. */
#ifndef TOLLBOOTH_JSON_H
#define TOLLBOOTH_JSON_H

#include "tollbooth/base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct tb_json tb_json;

/** tb_json_create - an empty writer. */
tb_status tb_json_create(tb_ctx *ctx, tb_json **out);
/** tb_json_destroy - NULL is fine. */
void tb_json_destroy(tb_json *j);
/** tb_json_pretty - set before the first value: one member per line, two
 * spaces per level; an array without containers stays on its line. */
void tb_json_pretty(tb_json *j, bool on);

/* Containers. `key` is NULL inside an array and at the top. */
void tb_json_object(tb_json *j, const char *key);
void tb_json_array(tb_json *j, const char *key);
void tb_json_end(tb_json *j); /* closes the innermost container */

/* Values. Invalid UTF-8 in `s` is written as U+FFFD; "</" as "<\/" and "<!" as
 * "<\u0021", so that the text may stand in a page's script element as it is. */
void tb_json_string(tb_json *j, const char *key,
                    const char *s); /* NULL: null */
/** tb_json_bytes - a string that may hold NUL; s[n] is NUL, too. */
void tb_json_bytes(tb_json *j, const char *key, const char *s, size_t n);
void tb_json_number(tb_json *j, const char *key, double v);
void tb_json_float(tb_json *j, const char *key, float v); /* shortest float */
void tb_json_int(tb_json *j, const char *key, int64_t v);
void tb_json_bool(tb_json *j, const char *key, bool v);
void tb_json_null(tb_json *j, const char *key);
/** tb_json_tensor - nested arrays of `rank` dimensions, row-major. */
void tb_json_tensor(tb_json *j, const char *key, tb_dtype dtype,
                    const void *data, int rank, const size_t *dims);

/** tb_json_text - the finished text; NULL if memory ran out. */
const char *tb_json_text(const tb_json *j);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
