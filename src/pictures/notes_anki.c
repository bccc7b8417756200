/* SPDX-License-Identifier: MIT */
/* Cards for other programs: Anki's text files.
 *
 *   file   = {"#" key ":" value newline} {row newline}
 *   row    = field {separator field}
 *   field  = '"' {any, '"' doubled} '"' | {none of separator, newline}
 *
 * A later line that begins with # is a comment. */
#include "pictures/notes.h"

enum { COLUMNS = 16 };

/** What the header lines say. */
typedef struct anki_head {
    char separator;
    bool html;
    size_t guid, tags; /* columns from 1; 0: none */
} anki_head;

static bool is_value(const char *at, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(at, word, n) == 0;
}

static tb_status set_separator(notes_reader *r, anki_head *h, const char *v,
                               size_t n)
{
    static const struct {
        const char *name;
        char c;
    } known[] = {{"tab", '\t'},  {"pipe", '|'},  {"semicolon", ';'},
                 {"colon", ':'}, {"comma", ','}, {"space", ' '}};
    for (size_t i = 0; i < TB_LEN(known); i++)
        if (is_value(v, n, known[i].name) || (n == 1 && *v == known[i].c)) {
            h->separator = known[i].c;
            return TB_OK;
        }
    return notes_fail(r, r->line, "a separator of another name",
                      "tab, pipe, semicolon, colon, comma or space");
}

static tb_status set_column(notes_reader *r, const char *v, size_t n,
                            size_t *out)
{
    *out = 0;
    for (size_t i = 0; i < n && v[i] >= '0' && v[i] <= '9' && *out < 100; i++)
        *out = 10 * *out + (size_t)(v[i] - '0');
    return *out >= 1 && *out <= COLUMNS
               ? TB_OK
               : notes_fail(r, r->line, "a column of another number",
                            "1 to 16");
}

/* "#html:true"; keys that it has no use for are passed over. */
static tb_status head_line(notes_reader *r, anki_head *h, const char *s,
                           size_t n)
{
    const char *colon = memchr(s, ':', n);
    if (!colon)
        return TB_OK;
    size_t key = (size_t)(colon - s), left = n - key - 1;
    if (is_value(s, key, "#separator"))
        return set_separator(r, h, colon + 1, left);
    if (is_value(s, key, "#guid column"))
        return set_column(r, colon + 1, left, &h->guid);
    if (is_value(s, key, "#tags column"))
        return set_column(r, colon + 1, left, &h->tags);
    if (is_value(s, key, "#html"))
        h->html = is_value(colon + 1, left, "true");
    if (is_value(s, key, "#notetype"))
        r->box->notes.two_way = is_value(colon + 1, left, NOTES_TWO_WAY);
    return TB_OK;
}

static size_t line_length(const notes_reader *r)
{
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    return (size_t)((stop ? stop : r->end) - r->at);
}

static void next_line(notes_reader *r)
{
    r->at += line_length(r);
    r->at += r->at < r->end;
    r->line++;
}

static tb_status read_head(notes_reader *r, anki_head *h)
{
    while (r->at < r->end && *r->at == '#') {
        size_t n = line_length(r);
        while (n && r->at[n - 1] == '\r')
            n--;
        TB_TRY(head_line(r, h, r->at, n));
        next_line(r);
    }
    return TB_OK;
}

/* The four names that put_html and Anki write. */
static size_t from_html(const char *s, tb_buf *b)
{
    static const struct {
        const char *name;
        char c;
    } known[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}};
    for (size_t i = 0; i < TB_LEN(known); i++) {
        size_t n = strlen(known[i].name);
        if (strncmp(s, known[i].name, n) == 0) {
            tb_buf_putc(b, known[i].c);
            return n;
        }
    }
    tb_buf_putc(b, *s);
    return 1;
}

static const char *kept(notes_reader *r, const anki_head *h, const tb_buf *raw)
{
    if (!h->html)
        return tb_arena_strdup(&r->box->arena, tb_buf_str(raw));
    tb_buf b;
    tb_buf_init(&b, r->ctx);
    for (const char *s = tb_buf_str(raw); *s;)
        s += from_html(s, &b);
    const char *out =
        b.failed ? NULL : tb_arena_strdup(&r->box->arena, tb_buf_str(&b));
    tb_buf_clear(&b);
    return out;
}

static tb_status quoted(notes_reader *r, tb_buf *b)
{
    size_t first = r->line;
    for (r->at++; r->at < r->end; r->at++) {
        if (*r->at == '"' && (r->at + 1 == r->end || r->at[1] != '"')) {
            r->at++;
            return TB_OK;
        }
        r->at += *r->at == '"';
        r->line += *r->at == '\n';
        tb_buf_putc(b, *r->at);
    }
    return notes_fail(r, first, "a quote that does not end", "\"");
}

static tb_status field(notes_reader *r, const anki_head *h, const char **out)
{
    tb_buf b;
    tb_buf_init(&b, r->ctx);
    tb_status s = TB_OK;
    if (r->at < r->end && *r->at == '"')
        s = quoted(r, &b);
    while (s == TB_OK && r->at < r->end && *r->at != '\n' &&
           *r->at != h->separator) {
        if (*r->at != '\r')
            tb_buf_putc(&b, *r->at);
        r->at++;
    }
    if (s == TB_OK)
        s = tb_buf_status(&b);
    *out = s == TB_OK ? kept(r, h, &b) : NULL;
    tb_buf_clear(&b);
    return s == TB_OK && !*out ? TB_ERR_MEMORY : s;
}

static tb_status row(notes_reader *r, const anki_head *h)
{
    const char *fields[COLUMNS], *text[2] = {"", ""};
    tb_note note = {.id = "", .deck = "", .line = r->line};
    size_t n = 0, texts = 0;
    for (bool more = true; more;) {
        if (n == COLUMNS)
            return notes_fail(r, note.line, "more columns", "at most 16");
        TB_TRY(field(r, h, &fields[n++]));
        more = r->at < r->end && *r->at == h->separator;
        r->at += more;
    }
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == h->guid)
            note.id = fields[i];
        else if (i + 1 == h->tags)
            note.deck = fields[i];
        else if (texts < 2)
            text[texts++] = fields[i];
    }
    if (texts < 2 || n < h->guid || n < h->tags || !*text[0] || !*text[1])
        return notes_fail(r, note.line, "fewer columns",
                          "question, answer and those of the header");
    size_t tag = strlen(NOTES_ANKI_TAG);
    note.deck += strncmp(note.deck, NOTES_ANKI_TAG, tag) == 0 ? tag : 0;
    note.question = text[0];
    note.answer = text[1];
    return notes_add(r, &note);
}

tb_status notes_read_anki(notes_reader *r)
{
    anki_head h = {.separator = '\t'};
    r->box->notes.format = TB_NOTES_ANKI;
    TB_TRY(read_head(r, &h));
    while (r->at < r->end) {
        if (*r->at == '#' || *r->at == '\n' || *r->at == '\r') {
            next_line(r);
            continue;
        }
        TB_TRY(row(r, &h));
        next_line(r);
    }
    return TB_OK;
}
