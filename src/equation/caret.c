/* SPDX-License-Identifier: MIT */
/* Failing at a place of a text: "name:line:column: message", the line as
 * written and a caret under the column. Long lines show a window. */
#include "equation/lexer.h"

enum {
    WINDOW = 72, /* code points of the line that are shown, at most */
    NARROW = 20, /* and at least */
    AROUND = 10, /* columns that are not of the line: indent and dots */
    LINE_CHARS = 4 * WINDOW + 16,
    MESSAGE_CHARS = 512,
    NAME_CHARS = 120
};

size_t tb_utf8_length(const char *s, size_t n)
{
    /* First byte, then the range of the second: no overlong forms, no
     * surrogates, nothing above U+10FFFF. */
    static const struct {
        unsigned char from, to, length, second_from, second_to;
    } form[] = {
        {0x01, 0x7f, 1, 0, 0},       {0xc2, 0xdf, 2, 0x80, 0xbf},
        {0xe0, 0xe0, 3, 0xa0, 0xbf}, {0xe1, 0xec, 3, 0x80, 0xbf},
        {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
        {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf},
        {0xf4, 0xf4, 4, 0x80, 0x8f},
    };
    const unsigned char *u = (const unsigned char *)s;
    for (size_t i = 0; n && i < TB_LEN(form); i++) {
        if (u[0] < form[i].from || u[0] > form[i].to)
            continue;
        size_t length = form[i].length;
        if (length > n)
            return 0;
        if (length > 1 &&
            (u[1] < form[i].second_from || u[1] > form[i].second_to))
            return 0;
        for (size_t j = 2; j < length; j++)
            if ((u[j] & 0xc0) != 0x80)
                return 0;
        return length;
    }
    return 0;
}

/* What a terminal may see: control characters (also the C1 ones) and broken
 * bytes become '?', tabs one blank, so that the caret stands right. */
static size_t put_visible(char *out, const char *s, size_t n, size_t *length)
{
    size_t bytes = tb_utf8_length(s, n);
    unsigned char first = (unsigned char)s[0];
    bool c1 = bytes == 2 && first == 0xc2 && (unsigned char)s[1] < 0xa0;
    *length = bytes ? bytes : 1;
    if (bytes > 1 && !c1) {
        memcpy(out, s, bytes);
        return bytes;
    }
    out[0] = s[0];
    if (s[0] == '\t')
        out[0] = ' ';
    else if (!bytes || c1 || first < 0x20 || first == 0x7f)
        out[0] = '?';
    return 1;
}

/* The bytes of line `line`, without its end. */
static const char *find_line(const char *s, size_t n, int line, size_t *length)
{
    const char *end = s + n;
    for (int i = 1; i < line; i++) {
        const char *newline = memchr(s, '\n', (size_t)(end - s));
        if (!newline)
            break;
        s = newline + 1;
    }
    const char *newline = memchr(s, '\n', (size_t)(end - s));
    *length = (size_t)((newline ? newline : end) - s);
    if (*length && s[*length - 1] == '\r')
        --*length;
    return s;
}

/* "    line\n    caret" around the position, `window` of a long line. */
static void put_line(char out[LINE_CHARS + WINDOW], const char *line, size_t n,
                     int column, int window)
{
    int first = column > window - window / 6 ? column - window * 5 / 9 : 1;
    size_t used = 0, length;
    char skipped[4];
    int c = 1;
    for (; c < first && n; c++, line += length, n -= length)
        (void)put_visible(skipped, line, n, &length);
    if (first > 1)
        used += tb_format(out + used, 4, "...");
    for (; c < first + window && n; c++, line += length, n -= length)
        used += put_visible(out + used, line, n, &length);
    if (n)
        used += tb_format(out + used, 4, "...");
    used += tb_format(out + used, 6, "\n    ");
    for (int i = (first > 1 ? first - 3 : first); i < column; i++)
        out[used++] = ' ';
    out[used++] = '^';
    out[used] = '\0';
}

tb_status tb_source_fail(tb_ctx *ctx, const char *name, const char *source,
                         size_t n, tb_pos pos, const char *fmt, va_list ap)
{
    char message[MESSAGE_CHARS], shown[LINE_CHARS + WINDOW];
    char head[NAME_CHARS + 1] = "";
    size_t length;
    tb_vformat(message, sizeof message, fmt, ap);
    if (name)
        tb_format(head, sizeof head, "%.*s:", NAME_CHARS - 1, name);
    if (pos.line <= 0 || !source)
        return TB_FAIL(ctx, TB_ERR_PARSE, "%s%s%s", head, name ? " " : "",
                       message);
    const char *line = find_line(source, n, pos.line, &length);
    put_line(shown, line, length, pos.column, WINDOW);
    return TB_FAIL(ctx, TB_ERR_PARSE, "%s%d:%d: %s\n    %s", head, pos.line,
                   pos.column, message, shown);
}

void tb_block_caret(const tb_block *b, tb_pos pos, size_t columns, tb_buf *out)
{
    char shown[LINE_CHARS + WINDOW];
    size_t length;
    int window =
        columns && columns < WINDOW + AROUND ? (int)columns - AROUND : WINDOW;
    if (pos.line <= 0 || !b->source)
        return;
    const char *line =
        find_line(b->source, strlen(b->source), pos.line, &length);
    put_line(shown, line, length, pos.column,
             window < NARROW ? NARROW : window);
    tb_buf_printf(out, "    %s\n", shown);
}

tb_status tb_block_fail(tb_ctx *ctx, const tb_block *b, tb_pos pos,
                        const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tb_status s =
        tb_source_fail(ctx, b->name, b->source,
                       b->source ? strlen(b->source) : 0, pos, fmt, ap);
    va_end(ap);
    return s;
}
