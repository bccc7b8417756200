/* SPDX-License-Identifier: MIT */
/* UTF-8 one character at a time, from the table of well-formed sequences. */
#include "checkpoint/utf8.h"

/* first byte range -> length, payload bits, range of the second byte */
static const struct lead {
    unsigned char from, to, len, mask, low, high;
} leads[] = {
    {0x00, 0x7f, 1, 0x7f, 0, 0},       {0xc2, 0xdf, 2, 0x1f, 0x80, 0xbf},
    {0xe0, 0xe0, 3, 0x0f, 0xa0, 0xbf}, {0xe1, 0xec, 3, 0x0f, 0x80, 0xbf},
    {0xed, 0xed, 3, 0x0f, 0x80, 0x9f}, {0xee, 0xef, 3, 0x0f, 0x80, 0xbf},
    {0xf0, 0xf0, 4, 0x07, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x07, 0x80, 0xbf},
    {0xf4, 0xf4, 4, 0x07, 0x80, 0x8f},
};

static const struct lead *lead_of(unsigned char c)
{
    for (size_t i = 0; i < TB_LEN(leads); i++)
        if (c >= leads[i].from && c <= leads[i].to)
            return &leads[i];
    return NULL;
}

tb_utf8 tb_utf8_next(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    const struct lead *l = lead_of(p[0]);
    if (l == NULL)
        return (tb_utf8){TB_UTF8_INVALID, 1, 0};
    uint32_t code = p[0] & l->mask;
    for (size_t i = 1; i < l->len; i++) {
        if (i == n)
            return (tb_utf8){TB_UTF8_PARTIAL, n, 0};
        unsigned low = i == 1 ? l->low : 0x80, high = i == 1 ? l->high : 0xbf;
        if (p[i] < low || p[i] > high)
            return (tb_utf8){TB_UTF8_INVALID, i, 0};
        code = code << 6 | (p[i] & 0x3f);
    }
    return (tb_utf8){TB_UTF8_VALID, l->len, code};
}

bool tb_utf8_valid(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        tb_utf8 u = tb_utf8_next(s + i, n - i);
        if (u.kind != TB_UTF8_VALID)
            return false;
        i += u.len;
    }
    return true;
}

bool tb_utf8_is_code(int64_t code)
{
    return code >= 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

size_t tb_utf8_put(uint32_t code, char out[4])
{
    static const uint32_t below[] = {0x80, 0x800, 0x10000, 0x110000};
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    size_t len = 1;
    while (code >= below[len - 1])
        len++;
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)(first[len - 1] | code);
    return len;
}
