/* SPDX-License-Identifier: MIT */
/* Characters: UTF-8, terminal columns, pixel widths, ellipsis, ASCII
 * stand-ins and XML escapes. */
#include "pictures/scene.h"

enum { REPLACEMENT = 0xFFFD, ELLIPSIS = 0x2026 };

/* utf8 = ASCII | lead continuation{1,3}, shortest form, no surrogates */
uint32_t tb_glyph_next(const char **s)
{
    const unsigned char *p = (const unsigned char *)*s;
    uint32_t c = p[0];
    if (!c)
        return 0;
    *s += 1;
    if (c < 0x80)
        return c < 0x20 || c == 0x7F ? REPLACEMENT : c;
    int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
    if (c < 0xC2 || c > 0xF4)
        return REPLACEMENT;
    uint32_t v = c & (0x3Fu >> more);
    for (int i = 1; i <= more; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return REPLACEMENT;
        v = v << 6 | (p[i] & 0x3Fu);
    }
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (v < least[more] || (v >= 0xD800 && v < 0xE000) || v > 0x10FFFF)
        return REPLACEMENT;
    *s += more;
    return v < 0xA0 || (v & 0xFFFE) == 0xFFFE ? (uint32_t)REPLACEMENT : v;
}

void tb_glyph_put(tb_buf *b, uint32_t cp)
{
    char s[4];
    size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; cp >>= 6)
        s[i] = (char)(0x80 | (cp & 0x3F));
    static const unsigned lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    s[0] = (char)(lead[n] | cp);
    tb_buf_put(b, s, n);
}

typedef struct span {
    uint32_t from, to;
} span;

static bool in_spans(const span *s, size_t n, uint32_t cp)
{
    for (size_t i = 0; i < n; i++)
        if (cp >= s[i].from && cp <= s[i].to)
            return true;
    return false;
}

int tb_columns_of(uint32_t cp)
{
    static const span zero[] = {{0x300, 0x36F},   {0x200B, 0x200F},
                                {0x20D0, 0x20FF}, {0xFE00, 0xFE0F},
                                {0x1AB0, 0x1AFF}, {0x2060, 0x2064}};
    static const span wide[] = {
        {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},
        {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
        {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
        {0x1F680, 0x1F6FF}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD}};
    if (cp < 0x300)
        return 1;
    if (in_spans(zero, TB_LEN(zero), cp))
        return 0;
    return in_spans(wide, TB_LEN(wide), cp) ? 2 : 1;
}

size_t tb_columns(const char *s)
{
    size_t n = 0;
    for (uint32_t cp; s && (cp = tb_glyph_next(&s));)
        n += (size_t)tb_columns_of(cp);
    return n;
}

/* Characters that a plain terminal gets in their place. */
static const struct {
    uint32_t cp;
    char c;
} ascii[] = {{0xA0, ' '},
             {0xA7, 'S'},
             {0xB7, '.'},
             {0xD7, 'x'},
             {0xB1, '~'},
             {0xB2, '2'},
             {0xB3, '3'},
             {0x2212, '-'},
             {0x2013, '-'},
             {0x2014, '-'},
             {0x2026, '~'},
             {0x2016, '|'},
             {0x2190, '<'},
             {0x2192, '>'},
             {0x2191, '^'},
             {0x2193, 'v'},
             {0x2018, '\''},
             {0x2019, '\''},
             {0x201C, '"'},
             {0x201D, '"'},
             {0x3B1, 'a'},
             {0x3B2, 'b'},
             {0x3B3, 'g'},
             {0x3B4, 'd'},
             {0x3B5, 'e'},
             {0x3B8, 't'},
             {0x3BB, 'l'},
             {0x3BC, 'm'},
             {0x3C3, 's'},
             {0x3C4, 't'},
             {0x220F, 'P'},
             {0x2202, 'd'},
             {0x221E, 'i'},
             {0x221A, 'v'},
             {0x2211, 'S'},
             {0x2264, '<'},
             {0x2265, '>'},
             {0x2248, '~'},
             /* what the terminal figures draw */
             {0x2295, '+'},
             {0x2296, '-'},
             {0x2297, '*'},
             {0xF7, '/'},
             {0x2032, '\''},
             {0x25A3, '#'},
             {0x25B2, '^'},
             {0x25C4, '<'},
             {0x25BA, '>'},
             {0x25BC, 'v'},
             {0x25BE, 'v'},
             {0x2502, '|'},
             {0x2500, '-'},
             {0x251C, '+'},
             {0x2524, '+'},
             {0x2510, '+'},
             {0x2518, '+'},
             {0x250C, '+'},
             {0x2514, '+'},
             {0x253C, '+'},
             {0x2508, '.'},
             {0x2534, '+'},
             {0x252C, '+'},
             {0x2299, '*'},
             {0x25CF, '*'},
             {0x25A0, 'o'},
             {0x25C6, '%'},
             {0x25B3, 'A'},
             {0x25CB, '@'},
             {0x2503, '!'},
             {0x2504, '-'},
             {0x2550, '='},
             {0x2588, '#'},
             {0x2713, 'v'},
             {0x2080, '0'},
             {0x2081, '1'},
             {0x2082, '2'},
             {0x2083, '3'},
             {0x2084, '4'},
             {0x2085, '5'},
             {0x2086, '6'},
             {0x2087, '7'},
             {0x2088, '8'},
             {0x2089, '9'}};

char tb_ascii_of(uint32_t cp)
{
    if (cp < 0x7F)
        return (char)cp;
    for (size_t i = 0; i < TB_LEN(ascii); i++)
        if (ascii[i].cp == cp)
            return ascii[i].c;
    return '?';
}

/* In running text, where width is free, they are spelled out. */
const char *tb_ascii_word(uint32_t cp)
{
    static const struct {
        uint32_t cp;
        const char *word;
    } words[] = {
        {0xB2, "^2"},   {0xB3, "^3"},      {0x3B2, "beta"},  {0x3B3, "gamma"},
        {0x3B5, "eps"}, {0x3BC, "mu"},     {0x3C3, "sigma"}, {0x3C4, "tau"},
        {0x2192, "->"}, {0x221A, "sqrt "}, {0x2264, "<="},   {0x2265, ">="},
        {0xB7, "*"},    {0x1E91, "z"},     {0x2026, "..."},  {0x2299, "(*)"}};
    for (size_t i = 0; i < TB_LEN(words); i++)
        if (words[i].cp == cp)
            return words[i].word;
    return NULL;
}

/* --- pixels ------------------------------------------------------------- */

/* Advance of ' '..'~' in hundredths of the font size. Measured on DejaVu
 * Sans, the widest of the usual system faces, so others only leave room. */
static const unsigned char advance[] = {
    32,  41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 37, 32, 34,
    64,  64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 54,
    100, 69, 69, 70, 78, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79,
    61,  79, 70, 64, 62, 74, 69, 99, 69, 62, 69, 40, 34, 40, 84, 50,
    50,  62, 64, 55, 64, 62, 36, 64, 64, 28, 28, 58, 28, 98, 64, 62,
    64,  64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84};

static double advance_of(uint32_t cp)
{
    if (cp >= ' ' && cp <= '~')
        return advance[cp - ' '] / 100.0;
    int columns = tb_columns_of(cp);
    if (columns != 1)
        return columns / 2.0;
    if (cp >= 0x2000 && cp < 0x2E80) /* arrows, operators, shapes */
        return cp == ELLIPSIS || cp == 0x2014 ? 1.0 : 0.84;
    return 0.7;
}

double tb_text_width(const char *text, double size, bool bold)
{
    double w = 0;
    for (uint32_t cp; text && (cp = tb_glyph_next(&text));)
        w += advance_of(cp);
    return w * size * (bold ? 1.12 : 1.0);
}

/* --- cutting and escaping ----------------------------------------------- */

/* Copies the longest start of s whose measure plus the ellipsis fits. */
static const char *cut(tb_arena *a, const char *s, double max, double per_em,
                       bool columns)
{
    double used = 0, mark = columns ? 1 : per_em;
    const char *p = s, *end = s;
    for (uint32_t cp; (cp = tb_glyph_next(&p));) {
        used += columns ? tb_columns_of(cp) : advance_of(cp) * per_em;
        if (used + mark > max)
            break;
        end = p;
    }
    return tb_arena_printf(a, "%.*s\xE2\x80\xA6", (int)(end - s), s);
}

const char *tb_shorten(tb_arena *a, const char *s, size_t max)
{
    if (!s)
        return "";
    return tb_columns(s) <= max ? s : cut(a, s, (double)max, 1, true);
}

const char *tb_shorten_px(tb_arena *a, const char *s, double px, double size,
                          bool bold)
{
    if (!s)
        return "";
    if (tb_text_width(s, size, bold) <= px)
        return s;
    return cut(a, s, px, size * (bold ? 1.12 : 1.0), false);
}

const char *tb_subscript(tb_arena *a, const char *letter, size_t j)
{
    char digits[24];
    const char *label = tb_arena_strdup(a, letter);
    tb_format(digits, sizeof digits, "%zu", j);
    for (const char *p = digits; *p && label; p++) /* U+2080: subscript 0 */
        label = tb_arena_printf(a, "%s\xE2\x82%c", label, 0x80 + (*p - '0'));
    return label;
}

void tb_xml_text(tb_buf *b, const char *s)
{
    for (uint32_t cp; s && *s;) {
        bool space = *s == '\n' || *s == '\t';
        cp = space ? ' ' : tb_glyph_next(&s);
        s += space;
        if (cp == '&')
            tb_buf_puts(b, "&amp;");
        else if (cp == '<')
            tb_buf_puts(b, "&lt;");
        else if (cp == '>')
            tb_buf_puts(b, "&gt;");
        else if (cp == '"')
            tb_buf_puts(b, "&quot;");
        else
            tb_glyph_put(b, cp);
    }
}
