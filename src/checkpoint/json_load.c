/* SPDX-License-Identifier: MIT */
/* jansson's errors in tollbooth's words. jansson bounds the nesting at 2048,
 * so a file of brackets cannot exhaust the stack. */
#include "checkpoint/json_load.h"

/* "Infinity" and NaN are what Python writes; say what we take instead. */
static const char *advice(const json_error_t *e)
{
    return strstr(e->text, "NaN") || strstr(e->text, "Infinity") ||
                   strstr(e->text, "'nan'") || strstr(e->text, "'inf'")
               ? "; write \"nan\", \"inf\" or \"-inf\" in quotes"
               : "";
}

static const char *kind_of(enum json_error_code code)
{
    switch ((int)code) {
    case json_error_invalid_utf8:
        return "not UTF-8";
    case json_error_numeric_overflow:
        return "overflow";
    case json_error_duplicate_key:
        return "duplicate key";
    case json_error_stack_overflow:
        return "not JSON (nested too deeply)";
    default:
        return "not JSON";
    }
}

tb_status tb_json_load(tb_ctx *ctx, const char *name, const char *context,
                       const char *text, size_t n, tb_json_numbers numbers,
                       bool *big, json_t **out)
{
    json_error_t e;
    size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    if (numbers == TB_JSON_AS_REAL)
        flags |= JSON_DECODE_INT_AS_REAL;
    *out = json_loadb(text, n, flags, &e);
    if (*out != NULL)
        return TB_OK;
    enum json_error_code code = json_error_code(&e);
    if (code == json_error_out_of_memory)
        return TB_FAIL(ctx, TB_ERR_MEMORY, "%s: JSON of %zu bytes", name, n);
    if (big != NULL)
        *big = code == json_error_numeric_overflow;
    return TB_FAIL(ctx, TB_ERR_INPUT, "%s: %s%s: line %d, column %d: %s%s",
                   name, context, kind_of(code), e.line, e.column, e.text,
                   advice(&e));
}

/* Bytes of s that fit in `room` without cutting a UTF-8 character. */
static size_t fit(const char *s, size_t n, size_t room)
{
    if (n <= room)
        return n;
    while (room > 0 && ((unsigned char)s[room] & 0xc0) == 0x80)
        room--;
    return room;
}

void tb_json_describe(const json_t *v, char *dst, size_t cap)
{
    enum { SHOWN = 40 };
    size_t n = v && json_is_string(v) ? json_string_length(v) : 0;
    size_t shown = n > 0 ? fit(json_string_value(v), n, SHOWN) : 0;
    if (v == NULL)
        tb_format(dst, cap, "nothing");
    else if (json_is_string(v))
        tb_format(dst, cap, "string \"%.*s%s\"", (int)shown,
                  json_string_value(v), shown < n ? "..." : "");
    else if (json_is_integer(v))
        tb_format(dst, cap, "number %lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        tb_format(dst, cap, "number %g", json_real_value(v));
    else if (json_is_array(v))
        tb_format(dst, cap, "a list of %zu", json_array_size(v));
    else
        tb_format(dst, cap, "%s",
                  json_is_object(v)  ? "an object"
                  : json_is_true(v)  ? "true"
                  : json_is_false(v) ? "false"
                                     : "null");
}
