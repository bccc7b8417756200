/* SPDX-License-Identifier: MIT */
/* Text to tokens. Spellings of papers (LN, x_{i+1}, a multiplication dot)
 * become the canonical ones here, so nobody after the lexer sees them. */
#include "equation/lexer.h"

#include "base/number.h"
#include "equation/names.h"

enum { NUMBER_CHARS_MAX = 1000 };

/* --- characters ---------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(char c)
{
    return is_letter(c) || is_digit(c) || c == '.' || c == '*' || c == '-';
}

/* Letters of papers and what they are spelled. */
static const struct {
    const char *utf8, *name;
} greek[] = {
    {"\xce\xb3", "gamma"}, /* U+03B3 */
    {"\xce\xb2", "beta"},  /* U+03B2 */
    {"\xce\xb5", "eps"},   /* U+03B5 */
    {"\xcf\xb5", "eps"},   /* U+03F5, the lunate one */
};

/* Operators of papers and what they mean. */
static const struct {
    const char *utf8;
    char op;
} signs[] = {
    {"\xe2\x8a\x99", '*'}, /* U+2299 circled dot */
    {"\xc2\xb7", '*'},     /* U+00B7 middle dot */
    {"\xe2\x8b\x85", '*'}, /* U+22C5 dot operator */
    {"\xc3\x97", '*'},     /* U+00D7 times */
    {"\xe2\x88\x92", '-'}, /* U+2212 minus */
};

/* Characters that are refused, with what to write instead. */
static const struct {
    unsigned code;
    const char *instead;
} refused[] = {
    {0x00a0, "a blank"},  {0x00b2, "'^2'"},     {0x00f7, "'/'"},
    {0x03b1, "'alpha'"},  {0x03bb, "'lambda'"}, {0x03c3, "'sigma'"},
    {0x03c9, "'omega'"},  {0x2009, "a blank"},  {0x200b, "nothing"},
    {0x2010, "'-'"},      {0x2011, "'-'"},      {0x2013, "'-'"},
    {0x2014, "'-'"},      {0x2190, "'='"},      {0x2217, "'*'"},
    {0x221a, "'sqrt()'"}, {0x2264, "'<='"},     {0x2265, "'>='"},
    {0x2295, "'+'"},      {0xff08, "'('"},      {0xff09, "')'"},
    {0xff0c, "','"},      {0xff1d, "'='"},      {0x1d62, "'_i'"},
};

static size_t greek_at(const char *s, size_t n, const char **name)
{
    for (size_t i = 0; n >= 2 && i < TB_LEN(greek); i++)
        if (!memcmp(s, greek[i].utf8, 2)) {
            *name = greek[i].name;
            return 2;
        }
    return 0;
}

static size_t sign_at(const char *s, size_t n, char *op)
{
    for (size_t i = 0; i < TB_LEN(signs); i++) {
        size_t length = strlen(signs[i].utf8);
        if (length <= n && !memcmp(s, signs[i].utf8, length)) {
            *op = signs[i].op;
            return length;
        }
    }
    return 0;
}

/* Bytes of one character of a name at s: letter, digit or Greek. */
static size_t name_char(const char *s, size_t n)
{
    const char *spelled;
    if (n && (is_letter(s[0]) || is_digit(s[0])))
        return 1;
    return greek_at(s, n, &spelled);
}

static unsigned code_point(const char *s, size_t length)
{
    static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    unsigned code = (unsigned char)s[0] & mask[length];
    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)s[i] & 0x3f);
    return code;
}

/* --- moving and failing --------------------------------------------------- */

static size_t left(const tb_lexer *lx)
{
    return (size_t)(lx->end - lx->at);
}

static char byte_at(const tb_lexer *lx, size_t i)
{
    return i < left(lx) ? lx->at[i] : '\0';
}

/* Over n bytes of this line; a column is a code point. */
static void skip(tb_lexer *lx, size_t n)
{
    for (; n > 0; n--, lx->at++)
        if (((unsigned char)*lx->at & 0xc0) != 0x80)
            lx->pos.column++;
}

static void skip_newline(tb_lexer *lx)
{
    lx->at++;
    lx->pos.line++;
    lx->pos.column = 1;
}

void tb_lexer_fail(tb_lexer *lx, tb_pos pos, const char *fmt, ...)
{
    va_list ap;
    if (lx->status != TB_OK)
        return;
    va_start(ap, fmt);
    lx->status =
        tb_source_fail(lx->ctx, lx->block->name, lx->block->source,
                       (size_t)(lx->end - lx->block->source), pos, fmt, ap);
    va_end(ap);
}

/* Every byte, comments included: later code may trust the encoding. */
static void check_encoding(tb_lexer *lx)
{
    tb_lexer at = *lx;
    while (left(&at)) {
        size_t length = tb_utf8_length(at.at, left(&at));
        if (length == 0) {
            if (*at.at)
                tb_lexer_fail(lx, at.pos, "not valid UTF-8: byte %x",
                              (unsigned)(unsigned char)*at.at);
            else
                tb_lexer_fail(lx, at.pos, "a NUL byte in the text");
            return;
        }
        if (*at.at == '\n')
            skip_newline(&at);
        else
            skip(&at, length);
    }
}

void tb_lexer_init(tb_lexer *lx, tb_ctx *ctx, tb_block *block, size_t n)
{
    *lx = (tb_lexer){.ctx = ctx,
                     .block = block,
                     .at = block->source,
                     .end = block->source + n,
                     .pos = {1, 1}};
    check_encoding(lx);
}

/* Blanks, comments, and inside brackets newlines. */
static void skip_blanks(tb_lexer *lx)
{
    for (;;) {
        char c = byte_at(lx, 0);
        if (c == ' ' || c == '\t' || (c == '\r' && byte_at(lx, 1) == '\n'))
            skip(lx, 1);
        else if (c == '#')
            while (left(lx) && *lx->at != '\n')
                skip(lx, 1);
        else if (c == '\n' && lx->brackets > 0)
            skip_newline(lx);
        else
            return;
    }
}

char tb_lexer_peek(const tb_lexer *lx)
{
    tb_lexer ahead = *lx;
    skip_blanks(&ahead);
    if (byte_at(&ahead, 0) == '=' && byte_at(&ahead, 1) == '=')
        return 'e';
    return byte_at(&ahead, 0);
}

void tb_lexer_seek(tb_lexer *lx, const tb_token *t)
{
    lx->at = t->start;
    lx->pos = t->pos;
}

/* --- tokens --------------------------------------------------------------- */

static void bad(tb_lexer *lx, tb_token *t)
{
    t->kind = TB_TOKEN_BAD;
    if (lx->status == TB_OK) /* not yet said, so memory ran out */
        lx->status = TB_ERR_MEMORY;
}

/* The next n bytes are the token. */
static void take(tb_lexer *lx, tb_token *t, tb_token_kind kind, size_t n)
{
    t->kind = kind;
    t->n = n;
    skip(lx, n);
}

static size_t number_length(const char *s, size_t n, double *value)
{
    size_t most = n < NUMBER_CHARS_MAX + 1 ? n : NUMBER_CHARS_MAX + 1;
    return tb_double_parse(s, most, value);
}

/* True if a digit other than 0 stands before the exponent. */
static bool has_digit(const char *s, size_t n)
{
    for (; n > 0 && *s != 'e' && *s != 'E'; s++, n--)
        if (*s >= '1' && *s <= '9')
            return true;
    return false;
}

/* number = digits [ "." digits ] [ ("e" | "E") [ "+" | "-" ] digits ] */
static void lex_number(tb_lexer *lx, tb_token *t)
{
    size_t n = number_length(lx->at, left(lx), &t->number);
    char after = byte_at(lx, n);
    if (n > NUMBER_CHARS_MAX)
        tb_lexer_fail(lx, t->pos, "a number of more than %d characters",
                      NUMBER_CHARS_MAX);
    else if (n == 1 && lx->at[0] == '0' && (after == 'x' || after == 'X') &&
             name_char(lx->at + 2, left(lx) - 2))
        tb_lexer_fail(lx, t->pos, "hexadecimal numbers are not offered");
    else if (after == '.' || after == '_')
        tb_lexer_fail(lx, t->pos,
                      "not a number: write digits, one point "
                      "with digits after it, an exponent");
    else if (!tb_isfinite(t->number))
        tb_lexer_fail(lx, t->pos, "number too large for a double");
    else if (tb_fabs(t->number) <= 0 && has_digit(lx->at, n))
        tb_lexer_fail(lx, t->pos, "number too small for a double");
    if (lx->status != TB_OK || n == 0) {
        bad(lx, t);
        return;
    }
    take(lx, t, TB_TOKEN_NUMBER, n);
}

/* The name with Greek letters spelled out. */
static const char *spell_name(tb_lexer *lx, const char *s, size_t n)
{
    const char *alias = tb_alias_find(s, n), *spelled;
    if (alias)
        return alias;
    size_t length = 0;
    for (size_t i = 0; i < n;) {
        size_t bytes = greek_at(s + i, n - i, &spelled);
        length += bytes ? strlen(spelled) : 1;
        i += bytes ? bytes : 1;
    }
    char *name = tb_arena_alloc(&lx->block->arena, length + 1);
    for (size_t i = 0, used = 0; name && i < n;) {
        size_t bytes = greek_at(s + i, n - i, &spelled);
        if (bytes)
            memcpy(name + used, spelled, strlen(spelled));
        else
            name[used] = s[i];
        used += bytes ? strlen(spelled) : 1;
        i += bytes ? bytes : 1;
    }
    return name;
}

static size_t over_blanks(const char *s, size_t i, size_t n)
{
    while (i < n && s[i] == ' ')
        i++;
    return i;
}

/* "{" ( "i" | "l" ) [ "+" "1" ] "}" at s: its bytes, 0 if it is not that. */
static size_t braces(const char *s, size_t n, tb_subscript *sub)
{
    size_t i = over_blanks(s, 1, n);
    if (i >= n || (s[i] != 'i' && s[i] != 'l'))
        return 0;
    *sub = TB_SUB_THIS;
    i = over_blanks(s, i + 1, n);
    if (i < n && s[i] == '+') {
        i = over_blanks(s, i + 1, n);
        if (i >= n || s[i] != '1')
            return 0;
        *sub = TB_SUB_NEXT;
        i = over_blanks(s, i + 1, n);
    }
    return i < n && s[i] == '}' ? i + 1 : 0;
}

/* subscript = "_" ( "i" | "l" | braces ), after x only. n: bytes of the name
 * so far. Returns those of name and subscript, 0 if it is not a subscript. */
static size_t lex_subscript(const tb_lexer *lx, size_t n, tb_subscript *sub)
{
    const char *s = lx->at;
    if (n == 3 && (!memcmp(s, "x_i", 3) || !memcmp(s, "x_l", 3)))
        *sub = TB_SUB_THIS;
    if (byte_at(lx, n) != '{')
        return n;
    if (n != 2 || memcmp(s, "x_", 2) != 0)
        return 0;
    size_t bytes = braces(s + n, left(lx) - n, sub);
    return bytes ? n + bytes : 0;
}

/* name = letter { letter | digit } [ subscript ] */
static void lex_name(tb_lexer *lx, tb_token *t)
{
    size_t n = 0, step, whole;
    while ((step = name_char(lx->at + n, left(lx) - n)) > 0)
        n += step;
    whole = lex_subscript(lx, n, &t->subscript);
    if (whole == 0) {
        skip(lx, n);
        tb_lexer_fail(lx, lx->pos,
                      "only x takes a subscript: x_i, x_{i}, x_{i+1}, x_l, "
                      "x_{l} or x_{l+1}");
        bad(lx, t);
        return;
    }
    t->name = t->subscript ? "x" : spell_name(lx, lx->at, n);
    take(lx, t, TB_TOKEN_NAME, whole);
    if (!t->name)
        bad(lx, t);
}

/* word = ( letter | digit | "." | "*" | "-" ) { ... } */
static void lex_word(tb_lexer *lx, tb_token *t)
{
    size_t n = 0;
    while (n < left(lx) && is_word(lx->at[n]))
        n++;
    t->name = tb_arena_strndup(&lx->block->arena, lx->at, n);
    take(lx, t, TB_TOKEN_WORD, n);
    if (!t->name)
        bad(lx, t);
}

static void lex_refused(tb_lexer *lx, tb_token *t)
{
    char hex[9];
    int digits = 0;
    unsigned code = code_point(lx->at, tb_utf8_length(lx->at, left(lx)));
    const char *instead = NULL;
    for (int shift = 20; shift >= 0; shift -= 4)
        if (digits || shift < 16 || code >> shift)
            hex[digits++] = "0123456789ABCDEF"[code >> shift & 15];
    hex[digits] = '\0';
    for (size_t i = 0; i < TB_LEN(refused); i++)
        if (refused[i].code == code)
            instead = refused[i].instead;
    if (code > 0x20 && code < 0x7f)
        tb_lexer_fail(lx, t->pos, "'%c' has no meaning here", (int)code);
    else
        tb_lexer_fail(lx, t->pos,
                      "character U+%s is not part of the language%s%s", hex,
                      instead ? "; write " : "", instead ? instead : "");
    bad(lx, t);
}

static void lex_op(tb_lexer *lx, tb_token *t)
{
    static const struct {
        const char *text;
        char op;
    } pair[] = {{"<=", 'l'}, {">=", 'g'}, {"==", 'e'}};
    for (size_t i = 0; i < TB_LEN(pair); i++)
        if (byte_at(lx, 0) == pair[i].text[0] &&
            byte_at(lx, 1) == pair[i].text[1]) {
            t->op = pair[i].op;
            take(lx, t, TB_TOKEN_OP, 2);
            return;
        }
    size_t n = sign_at(lx->at, left(lx), &t->op);
    if (n == 0 && *lx->at && strchr("+-*/^()[],:=<>", *lx->at)) {
        t->op = *lx->at;
        n = 1;
    }
    if (n == 0) {
        lex_refused(lx, t);
        return;
    }
    if (t->op == '(' || t->op == '[')
        lx->brackets++;
    if ((t->op == ')' || t->op == ']') && lx->brackets > 0)
        lx->brackets--;
    take(lx, t, TB_TOKEN_OP, n);
}

tb_token tb_lexer_next(tb_lexer *lx)
{
    skip_blanks(lx);
    tb_token t = {.pos = lx->pos, .start = lx->at};
    const char *spelled;
    if (lx->status != TB_OK) {
        t.kind = TB_TOKEN_BAD;
    } else if (!left(lx)) {
        t.kind = TB_TOKEN_END;
    } else if (*lx->at == '\n') {
        t.kind = TB_TOKEN_NEWLINE;
        t.n = 1;
        skip_newline(lx);
    } else if (*lx->at == ';') {
        take(lx, &t, TB_TOKEN_NEWLINE, 1);
    } else if (lx->words && is_word(*lx->at)) {
        lex_word(lx, &t);
    } else if (is_digit(*lx->at)) {
        lex_number(lx, &t);
    } else if (is_letter(*lx->at) || greek_at(lx->at, left(lx), &spelled)) {
        lex_name(lx, &t);
    } else {
        lex_op(lx, &t);
    }
    return t;
}

const char *tb_token_text(const tb_token *t, char out[TB_TOKEN_CHARS])
{
    enum { MOST = 32 };
    size_t n = 0, step;
    if (t->kind == TB_TOKEN_END) {
        tb_format(out, TB_TOKEN_CHARS, "the end of the text");
        return out;
    }
    if (t->kind == TB_TOKEN_NEWLINE && *t->start == '\n') {
        tb_format(out, TB_TOKEN_CHARS, "the end of the line");
        return out;
    }
    while (n < t->n && (step = tb_utf8_length(t->start + n, t->n - n)) > 0 &&
           n + step <= MOST)
        n += step;
    tb_format(out, TB_TOKEN_CHARS, "'%.*s%s'", (int)n, t->start,
              n < t->n ? "..." : "");
    return out;
}
