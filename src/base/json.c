/* SPDX-License-Identifier: MIT */
/* The JSON writer: text goes straight into one growing string. The last byte
 * written tells whether a comma is due, so a level needs only its bracket. */
#include "tollbooth/json.h"

#include "base/base.h"
#include "base/number.h"

/* One byte per open container; BROKEN is an array that went over lines. */
enum { OBJECT = '{', ARRAY = '[', BROKEN = 'b' };

struct tb_json {
    tb_ctx *ctx;
    tb_buf text, stack;
    bool pretty;
};

tb_status tb_json_create(tb_ctx *ctx, tb_json **out)
{
    tb_json *j = *out = tb_alloc(ctx, 1, sizeof *j);
    if (!j)
        return TB_ERR_MEMORY;
    j->ctx = ctx;
    tb_buf_init(&j->text, ctx);
    tb_buf_init(&j->stack, ctx);
    return TB_OK;
}

void tb_json_destroy(tb_json *j)
{
    if (!j)
        return;
    tb_buf_clear(&j->text);
    tb_buf_clear(&j->stack);
    tb_free(j->ctx, j);
}

void tb_json_pretty(tb_json *j, bool on)
{
    j->pretty = on;
}

const char *tb_json_text(const tb_json *j)
{
    return j->text.failed || j->stack.failed ? NULL : tb_buf_str(&j->text);
}

/* --- strings ------------------------------------------------------------ */

/* Length of the valid UTF-8 sequence at s (ended by NUL), or 0. Refuses
 * overlong forms, surrogates and what is above U+10FFFF (RFC 3629). */
static size_t utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xC2 || s[0] > 0xF4)
        return 0;
    size_t n = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    unsigned char low = 0x80, high = 0xBF; /* of the second byte */
    if (s[0] == 0xE0)
        low = 0xA0;
    else if (s[0] == 0xED)
        high = 0x9F;
    else if (s[0] == 0xF0)
        low = 0x90;
    else if (s[0] == 0xF4)
        high = 0x8F;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if (s[i] < 0x80 || s[i] > 0xBF)
            return 0;
    return n;
}

static void put_control(tb_buf *b, char c)
{
    static const char name[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    const char *p = c ? strchr(name, c) : NULL;
    if (p)
        tb_buf_printf(b, "\\%c", letter[p - name]);
    else
        tb_buf_printf(b, "\\u%04x", (unsigned)(unsigned char)c);
}

/* Inside a script element of a page only "</" and "<!" can do harm. Spelled
 * so, the same text is safe there. */
static bool ends_a_script(const char *s)
{
    return s[0] == '<' && (s[1] == '/' || s[1] == '!');
}

/* s[n] is readable, so that a character cut off at the end is seen as such. */
static void put_quoted_bytes(tb_buf *b, const char *s, size_t length)
{
    const char *end = s + length;
    tb_buf_putc(b, '"');
    while (s < end) {
        size_t n = utf8_length((const unsigned char *)s);
        if (ends_a_script(s)) {
            tb_buf_puts(b, s[1] == '/' ? "<\\/" : "<\\u0021");
            n = 2;
        } else if (n == 0)
            tb_buf_puts(b, "\xEF\xBF\xBD"); /* U+FFFD */
        else if (*s == '"' || *s == '\\' || (unsigned char)*s < 0x20)
            put_control(b, *s);
        else
            tb_buf_put(b, s, n);
        s += n ? n : 1;
    }
    tb_buf_putc(b, '"');
}

static void put_quoted(tb_buf *b, const char *s)
{
    put_quoted_bytes(b, s, strlen(s));
}

/* --- structure ---------------------------------------------------------- */

static char *top(tb_json *j)
{
    return j->stack.len ? &j->stack.data[j->stack.len - 1] : NULL;
}

static void new_line(tb_json *j)
{
    tb_buf_putc(&j->text, '\n');
    for (size_t i = 0; i < j->stack.len; i++)
        tb_buf_puts(&j->text, "  ");
}

static char last(const tb_json *j)
{
    return j->text.len ? j->text.data[j->text.len - 1] : '\0';
}

/* Comma, line break and key of the next value. Pretty arrays break before
 * containers only: rows of numbers stay rows. */
static void begin_value(tb_json *j, const char *key, bool container)
{
    char *level = top(j);
    if (!level)
        return;
    bool first = last(j) == '{' || last(j) == '[';
    bool broken = j->pretty && (*level == OBJECT || container);
    if (!first)
        tb_buf_puts(&j->text, j->pretty && !broken ? ", " : ",");
    if (broken)
        new_line(j);
    if (*level == OBJECT) {
        put_quoted(&j->text, key ? key : "");
        tb_buf_puts(&j->text, j->pretty ? ": " : ":");
    } else if (broken) {
        *level = BROKEN;
    }
}

static void open_container(tb_json *j, const char *key, char bracket)
{
    begin_value(j, key, true);
    tb_buf_putc(&j->text, bracket);
    tb_buf_putc(&j->stack, bracket);
}

void tb_json_object(tb_json *j, const char *key)
{
    open_container(j, key, OBJECT);
}

void tb_json_array(tb_json *j, const char *key)
{
    open_container(j, key, ARRAY);
}

void tb_json_end(tb_json *j)
{
    if (j->stack.len == 0)
        return;
    char level = *top(j);
    bool empty = last(j) == '{' || last(j) == '[';
    j->stack.data[--j->stack.len] = '\0';
    if (j->pretty && !empty && level != ARRAY)
        new_line(j);
    tb_buf_putc(&j->text, level == OBJECT ? '}' : ']');
}

/* --- values ------------------------------------------------------------- */

void tb_json_string(tb_json *j, const char *key, const char *s)
{
    if (!s) {
        tb_json_null(j, key);
        return;
    }
    begin_value(j, key, false);
    put_quoted(&j->text, s);
}

void tb_json_bytes(tb_json *j, const char *key, const char *s, size_t n)
{
    begin_value(j, key, false);
    put_quoted_bytes(&j->text, s, n);
}

/* JSON has no nan and no inf: those become strings. Readers that know whole
 * numbers take "-0" for one and lose its sign. */
static void put_number_text(tb_json *j, const char *key, const char *text,
                            bool finite)
{
    begin_value(j, key, false);
    if (finite)
        tb_buf_puts(&j->text, tb_streq(text, "-0") ? "-0.0" : text);
    else
        put_quoted(&j->text, text);
}

void tb_json_number(tb_json *j, const char *key, double v)
{
    char text[TB_DOUBLE_CHARS];
    tb_double_text(v, text);
    put_number_text(j, key, text, tb_isfinite(v));
}

void tb_json_float(tb_json *j, const char *key, float v)
{
    char text[TB_DOUBLE_CHARS];
    tb_float_text(v, text);
    put_number_text(j, key, text, tb_isfinite((double)v));
}

void tb_json_int(tb_json *j, const char *key, int64_t v)
{
    begin_value(j, key, false);
    tb_buf_printf(&j->text, "%lld", (long long)v);
}

void tb_json_bool(tb_json *j, const char *key, bool v)
{
    begin_value(j, key, false);
    tb_buf_puts(&j->text, v ? "true" : "false");
}

void tb_json_null(tb_json *j, const char *key)
{
    begin_value(j, key, false);
    tb_buf_puts(&j->text, "null");
}

/* Writes dims[0..rank) from element *at on. */
static void put_tensor(tb_json *j, const char *key, tb_dtype dtype,
                       const void *data, int rank, const size_t *dims,
                       size_t *at)
{
    if (rank == 0) {
        size_t i = (*at)++;
        if (dtype == TB_F64)
            tb_json_number(j, key, ((const double *)data)[i]);
        else
            tb_json_float(j, key, ((const float *)data)[i]);
        return;
    }
    tb_json_array(j, key);
    for (size_t i = 0; i < dims[0]; i++)
        put_tensor(j, NULL, dtype, data, rank - 1, dims + 1, at);
    tb_json_end(j);
}

void tb_json_tensor(tb_json *j, const char *key, tb_dtype dtype,
                    const void *data, int rank, const size_t *dims)
{
    size_t at = 0;
    put_tensor(j, key, dtype, data, rank, dims, &at);
}
