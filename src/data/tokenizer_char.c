/* SPDX-License-Identifier: MIT */
/* One token per character. Symbols are code points, then TB_CODES + b for a
 * byte b outside valid UTF-8; ids follow the order of symbols. */
#include "checkpoint/utf8.h"
#include "data/tokenizer.h"

enum { SYMBOLS = TB_CODES + 256, ABSENT = -1 };

/* The symbol at p and the bytes it takes: an invalid run goes byte by byte. */
static uint32_t symbol_at(const char *p, size_t n, size_t *len)
{
    tb_utf8 u = tb_utf8_next(p, n);
    *len = u.kind == TB_UTF8_VALID ? u.len : 1;
    return u.kind == TB_UTF8_VALID ? u.code
                                   : TB_CODES + (uint32_t)(unsigned char)*p;
}

static size_t put_symbol(uint32_t symbol, char out[4])
{
    if (symbol < TB_CODES)
        return tb_utf8_put(symbol, out);
    out[0] = (char)(unsigned char)(symbol - TB_CODES);
    return 1;
}

/* t->map says which symbols occur (0) or not (-1): number them in order. */
static tb_status number_symbols(tb_tokenizer *t)
{
    size_t size = 0, at = 0;
    for (size_t s = 0; s < SYMBOLS; s++)
        size += t->map[s] != ABSENT;
    TB_TRY(tb_tokenizer_room(t, size, 4 * size));
    int32_t id = 0;
    for (uint32_t s = 0; s < SYMBOLS; s++) {
        if (t->map[s] == ABSENT)
            continue;
        t->map[s] = id;
        t->at[id++] = at;
        at += put_symbol(s, t->bytes + at);
    }
    t->at[id] = at;
    return TB_OK;
}

static tb_status make_map(tb_tokenizer *t)
{
    t->map = tb_alloc(t->ctx, SYMBOLS, sizeof(*t->map));
    if (t->map == NULL)
        return TB_ERR_MEMORY;
    for (size_t s = 0; s < SYMBOLS; s++)
        t->map[s] = ABSENT;
    return TB_OK;
}

static tb_status char_build(tb_tokenizer *t, const tb_span *texts, size_t count)
{
    size_t all = 0;
    TB_TRY(make_map(t));
    for (size_t k = 0; k < count; k++) {
        const tb_span *s = &texts[k];
        for (size_t i = 0, len; i < s->n; i += len)
            t->map[symbol_at(s->data + i, s->n - i, &len)] = 0;
        all |= s->n;
    }
    if (all == 0)
        return TB_FAIL(t->ctx, TB_ERR_INPUT,
                       "character vocabulary: got an empty text, wanted at "
                       "least 1 character");
    return number_symbols(t);
}

/* "U+0063", or the character itself too where it can be shown. */
static tb_status unknown(tb_ctx *ctx, const char *what, uint32_t symbol,
                         size_t offset)
{
    static const char digit[] = "0123456789ABCDEF";
    char code[8] = {0}, shown[8] = "";
    uint32_t v = symbol < TB_CODES ? symbol : symbol - TB_CODES;
    size_t digits = symbol >= TB_CODES ? 2
                    : v > 0xfffff      ? 6
                    : v > 0xffff       ? 5
                                       : 4;
    for (size_t i = 0; i < digits; i++)
        code[i] = digit[v >> (4 * (digits - 1 - i)) & 15];
    if (symbol >= TB_CODES)
        return TB_FAIL(ctx, TB_ERR_INPUT,
                       "%s: byte 0x%s at offset %zu is not in the vocabulary",
                       what, code, offset);
    bool control = v < 0x20 || (v >= 0x7f && v < 0xa0);
    if (!control)
        shown[1 + put_symbol(symbol, shown + 1)] = '"';
    shown[0] = control ? 0 : '"';
    return TB_FAIL(ctx, TB_ERR_INPUT,
                   "%s: character %s%s%s%s at offset %zu is not in the "
                   "vocabulary",
                   what, shown, control ? "U+" : " (U+", code,
                   control ? "" : ")", offset);
}

static tb_status char_encode(tb_ctx *ctx, const tb_tokenizer *t,
                             const char *what, const char *data, size_t n,
                             tb_tokens *out)
{
    TB_TRY(tb_tokens_room(ctx, n, out));
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t symbol = symbol_at(data + i, n - i, &len);
        if (t->map[symbol] == ABSENT)
            return unknown(ctx, what, symbol, i);
        out->ids[out->count++] = t->map[symbol];
    }
    return TB_OK;
}

/* Numbers rather than strings: a vocabulary may hold NUL or half a character.
 */
static void char_save(const tb_tokenizer *t, tb_json *j)
{
    static const char *const names[] = {"codepoints", "bytes"};
    const size_t from[] = {0, TB_CODES, SYMBOLS};
    for (size_t part = 0; part < 2; part++) {
        tb_json_array(j, names[part]);
        for (size_t s = from[part]; s < from[part + 1]; s++)
            if (t->map[s] != ABSENT)
                tb_json_int(j, NULL, (int64_t)(s - from[part]));
        tb_json_end(j);
    }
}

/* One list of the file: rising, so that ids are what they were. */
static tb_status load_part(tb_tokenizer *t, tb_config *c, const char *key,
                           size_t base, size_t limit)
{
    tb_config *list, *item;
    int64_t before = -1, v;
    TB_TRY(tb_config_array(c, key, &list));
    for (size_t i = 0; i < tb_config_length(list); i++) {
        TB_TRY(tb_config_item(list, i, &item));
        TB_TRY(tb_config_int(item, NULL, &v));
        if (v <= before || (size_t)v >= limit ||
            (base == 0 && !tb_utf8_is_code(v)))
            return TB_FAIL(t->ctx, TB_ERR_INPUT,
                           "tokenizer: %s[%zu]: got %lld after %lld, wanted "
                           "rising code points or bytes",
                           key, i, (long long)v, (long long)before);
        t->map[base + (size_t)v] = 0;
        before = v;
    }
    return TB_OK;
}

static tb_status char_load(tb_tokenizer *t, tb_config *c)
{
    TB_TRY(make_map(t));
    TB_TRY(load_part(t, c, "codepoints", 0, TB_CODES));
    TB_TRY(load_part(t, c, "bytes", TB_CODES, 256));
    TB_TRY(number_symbols(t));
    if (t->size == 0)
        return TB_FAIL(t->ctx, TB_ERR_INPUT,
                       "tokenizer: got no characters, wanted at least 1");
    return TB_OK;
}

const tb_token_kind tb_token_char = {"char", char_encode, char_build, char_save,
                                     char_load};
