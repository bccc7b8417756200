/* SPDX-License-Identifier: MIT */
/* Terminal drawing: a canvas of characters, wrapped lines, bars in eighths.
 * Never an escape sequence, never a trailing blank. */
#include "pictures/scene.h"

int tb_terminal_width(const tb_terminal *t)
{
    int w = t && t->width ? t->width : 80;
    return w < 40 ? 40 : w > 200 ? 200 : w;
}

bool tb_terminal_ascii(const tb_terminal *t)
{
    return t && t->ascii;
}

static void put_code(tb_buf *b, bool ascii, uint32_t cp)
{
    int columns = tb_columns_of(cp);
    if (!ascii) {
        tb_glyph_put(b, cp);
        return;
    }
    for (int i = 0; i < columns; i++) /* same width, none for combining */
        tb_buf_putc(b, tb_ascii_of(cp));
}

void tb_term_puts(tb_buf *b, const tb_terminal *t, const char *s)
{
    bool ascii = tb_terminal_ascii(t);
    for (uint32_t cp; s && (cp = tb_glyph_next(&s));)
        put_code(b, ascii, cp);
}

void tb_term_pad(tb_buf *b, int n)
{
    while (n-- > 0)
        tb_buf_putc(b, ' ');
}

/* A character of running text before `next`: how it is spelled, NULL for
 * itself, and how wide. "sqrt x", but "sqrt(x)". */
static const char *spelled(const tb_terminal *t, uint32_t cp, const char *next,
                           int *columns)
{
    const char *word = tb_terminal_ascii(t) ? tb_ascii_word(cp) : NULL;
    *columns =
        word ? (int)strcspn(word, *next == '(' ? " " : "") : tb_columns_of(cp);
    return word;
}

/* Puts the n bytes at s, cutting a word longer than a line into pieces;
 * returns the column reached. */
static int put_word(tb_buf *b, const tb_terminal *t, const char *s, size_t n,
                    int column, int indent)
{
    const char *end = s + n;
    while (s < end) {
        uint32_t cp = tb_glyph_next(&s);
        int columns;
        const char *word = spelled(t, cp, s, &columns);
        if (column + columns > tb_terminal_width(t)) {
            tb_buf_putc(b, '\n');
            tb_term_pad(b, indent);
            column = indent;
        }
        if (word)
            tb_buf_printf(b, "%.*s", columns, word);
        else
            put_code(b, tb_terminal_ascii(t), cp);
        column += columns;
    }
    return column;
}

static int word_columns(const tb_terminal *t, const char *s, size_t n)
{
    int columns = 0, one;
    for (const char *end = s + n; s < end; columns += one) {
        uint32_t cp = tb_glyph_next(&s);
        spelled(t, cp, s, &one);
    }
    return columns;
}

void tb_term_wrap(tb_buf *b, const tb_terminal *t, int indent, const char *s)
{
    int column = 0;
    for (bool first = true; s && *s; first = false) {
        size_t n = strcspn(s, " ");
        int needs = word_columns(t, s, n);
        if (!first && column + 1 + needs > tb_terminal_width(t)) {
            tb_buf_putc(b, '\n');
            tb_term_pad(b, indent);
            column = indent;
        } else if (!first) {
            tb_buf_putc(b, ' ');
            column++;
        }
        column = put_word(b, t, s, n, column, indent);
        s += n + (s[n] == ' ');
    }
    tb_buf_putc(b, '\n');
}

void tb_term_bar(tb_buf *b, const tb_terminal *t, double share, int cells)
{
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    int eighths = (int)(share * cells * 8 + 0.5);
    if (tb_terminal_ascii(t)) {
        for (int i = 0; i < (eighths + 4) / 8; i++)
            tb_buf_putc(b, '#');
        return;
    }
    for (int i = 0; i < eighths / 8; i++)
        tb_glyph_put(b, 0x2588);
    if (eighths % 8) /* U+258F is one eighth, U+2589 seven */
        tb_glyph_put(b, (uint32_t)(0x2590 - eighths % 8));
}

/* --- canvas ------------------------------------------------------------- */

tb_status tb_canvas_init(tb_canvas *c, tb_arena *a, int w, int h)
{
    *c = (tb_canvas){.w = w, .h = h};
    c->cells = tb_arena_alloc(a, (size_t)w * (size_t)h * sizeof *c->cells);
    return c->cells ? TB_OK : TB_ERR_MEMORY;
}

void tb_canvas_put(tb_canvas *c, int x, int y, uint32_t cp)
{
    if (x >= 0 && x < c->w && y >= 0 && y < c->h)
        c->cells[y * c->w + x] = cp;
}

uint32_t tb_canvas_get(const tb_canvas *c, int x, int y)
{
    bool inside = x >= 0 && x < c->w && y >= 0 && y < c->h;
    return inside ? c->cells[y * c->w + x] : 0;
}

/* A wide character takes two cells; the second holds UINT32_MAX. */
int tb_canvas_text(tb_canvas *c, int x, int y, const char *s)
{
    for (uint32_t cp; s && (cp = tb_glyph_next(&s));) {
        int columns = tb_columns_of(cp);
        if (columns == 0)
            continue;
        tb_canvas_put(c, x, y, cp);
        if (columns == 2)
            tb_canvas_put(c, x + 1, y, UINT32_MAX);
        x += columns;
    }
    return x;
}

void tb_canvas_flush(const tb_canvas *c, bool ascii, tb_buf *out)
{
    for (int y = 0; y < c->h; y++) {
        const uint32_t *row = c->cells + y * c->w;
        int n = c->w;
        while (n > 0 && (row[n - 1] == 0 || row[n - 1] == ' '))
            n--;
        for (int x = 0; x < n; x++)
            if (row[x] != UINT32_MAX)
                put_code(out, ascii, row[x] ? row[x] : ' ');
        tb_buf_putc(out, '\n');
    }
}
