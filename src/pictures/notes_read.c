/* SPDX-License-Identifier: MIT */
/* Cards for other programs: which kind of file it is, and Obsidian's. */
#include "pictures/notes.h"

tb_status notes_fail(notes_reader *r, size_t line, const char *got,
                     const char *wanted)
{
    return TB_FAIL(r->ctx, TB_ERR_INPUT, "%s:%zu: got %s, wanted %s", r->name,
                   line, got, wanted);
}

tb_status notes_add(notes_reader *r, const tb_note *note)
{
    tb_notes *notes = &r->box->notes;
    char got[120];
    if (!note->id || !note->deck || !note->question || !note->answer)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < notes->n && *note->id; i++)
        if (tb_streq(notes->notes[i].id, note->id)) {
            tb_format(got, sizeof got, "the id %.60s of line %zu again",
                      note->id, notes->notes[i].line);
            return notes_fail(r, note->line, got, "one card for each id");
        }
    if (notes->n == r->cap) {
        size_t more = r->cap ? 2 * r->cap : 32, size = sizeof *note;
        tb_note *p =
            tb_realloc(r->ctx, notes->notes, r->cap * size, more * size);
        if (!p)
            return TB_ERR_MEMORY;
        notes->notes = p;
        r->cap = more;
    }
    notes->notes[notes->n++] = *note;
    return TB_OK;
}

/* --- Obsidian -------------------------------------------------------------
 * line = tag | schedule | question (":::" | "::") answer [" ^" id] | text */

/** A piece of the file. */
typedef struct span {
    const char *at;
    size_t n;
} span;

static span trim(span s)
{
    while (s.n && (s.at[0] == ' ' || s.at[0] == '\t'))
        s.at++, s.n--;
    while (s.n && strchr(" \t\r", s.at[s.n - 1]))
        s.n--;
    return s;
}

static bool begins(span s, const char *with)
{
    size_t n = strlen(with);
    return s.n >= n && memcmp(s.at, with, n) == 0;
}

/* The next "::" or ":::" outside of `code` from `i`; its length, 0: none. */
static size_t separator(span s, size_t i, size_t *at)
{
    for (bool code = false; i < s.n; i++) {
        size_t colons = 0;
        code ^= s.at[i] == '`';
        while (!code && i + colons < s.n && s.at[i + colons] == ':')
            colons++;
        *at = i;
        if (colons > 1)
            return colons;
    }
    return 0;
}

/* " ^recall-eps" at the end, taken off. */
static span take_id(span *s)
{
    size_t i = s->n;
    while (i && (s->at[i - 1] == '-' ||
                 (s->at[i - 1] >= '0' && s->at[i - 1] <= '9') ||
                 ((s->at[i - 1] | 32) >= 'a' && (s->at[i - 1] | 32) <= 'z')))
        i--;
    if (i < 2 || i == s->n || s->at[i - 1] != '^' || s->at[i - 2] != ' ')
        return (span){s->at, 0};
    span id = {s->at + i, s->n - i};
    s->n = i - 2;
    *s = trim(*s);
    return id;
}

/* $x$ to \(x\), \$ to $. */
static tb_status from_markdown(notes_reader *r, span s, const char **out)
{
    tb_buf b;
    bool inside = false;
    tb_buf_init(&b, r->ctx);
    for (size_t i = 0; i < s.n; i++) {
        if (s.at[i] == '\\' && i + 1 < s.n && s.at[i + 1] == '$') {
            tb_buf_putc(&b, '$');
            i++;
        } else if (s.at[i] == '$') {
            tb_buf_puts(&b, inside ? "\\)" : "\\(");
            inside = !inside;
        } else
            tb_buf_putc(&b, s.at[i]);
    }
    tb_status status = tb_buf_status(&b);
    if (status == TB_OK && inside)
        status = notes_fail(r, r->line, "a formula that does not end", "a $");
    *out = status == TB_OK ? tb_arena_strdup(&r->box->arena, tb_buf_str(&b))
                           : NULL;
    tb_buf_clear(&b);
    return status;
}

static tb_status obsidian_card(notes_reader *r, span s, size_t at, size_t n,
                               const char *deck)
{
    tb_note note = {.deck = deck, .line = r->line};
    size_t second;
    span question = trim((span){s.at, at});
    span answer = trim((span){s.at + at + n, s.n - at - n});
    span id = take_id(&answer);
    if (n > 3)
        return notes_fail(r, r->line, "more than three colons",
                          "'::' or ':::'");
    if (separator(s, at + n, &second))
        return notes_fail(r, r->line, "a second separator in the line",
                          "one card a line");
    if (!question.n || !answer.n)
        return notes_fail(r, r->line, question.n ? "no answer" : "no question",
                          "question::answer");
    r->box->notes.two_way |= n == 3;
    note.id = tb_arena_strndup(&r->box->arena, id.at, id.n);
    TB_TRY(from_markdown(r, question, &note.question));
    TB_TRY(from_markdown(r, answer, &note.answer));
    return notes_add(r, &note);
}

/* "#flashcards/tollbooth/recall" to "recall" */
static const char *deck_of(notes_reader *r, span tag)
{
    size_t i = tag.n;
    while (i && tag.at[i - 1] != '/' && tag.at[i - 1] != '#')
        i--;
    return tb_arena_strndup(&r->box->arena, tag.at + i, tag.n - i);
}

tb_status notes_read_obsidian(notes_reader *r)
{
    const char *deck = "";
    r->box->notes.format = TB_NOTES_OBSIDIAN;
    for (; r->at < r->end; r->line++) {
        const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
        size_t length = (size_t)((stop ? stop : r->end) - r->at), at, n;
        span s = trim((span){r->at, length});
        r->at += length + (stop != NULL);
        if (begins(s, "<!--SR:"))
            r->box->notes.schedules++;
        else if (begins(s, "#flashcards"))
            deck = deck_of(r, s);
        else if ((n = separator(s, 0, &at)) != 0)
            TB_TRY(obsidian_card(r, s, at, n, deck));
    }
    return TB_OK;
}

/* --- both ----------------------------------------------------------------- */

/* Anki's header lines, or a table. */
static bool is_anki(const char *text, size_t n)
{
    static const char *const keys[] = {
        "#separator:", "#html:",    "#notetype:", "#deck:",
        "#tags:",      "#columns:", "#guid",      "#if matches:"};
    const span s = {text, n};
    size_t at;
    for (size_t i = 0; i < TB_LEN(keys); i++)
        if (begins(s, keys[i]))
            return true;
    return !separator(s, 0, &at) && memchr(text, '\t', n);
}

tb_status tb_notes_read(tb_ctx *ctx, const char *name, const char *text,
                        size_t n, tb_notes **out)
{
    notes_reader r = {ctx, name, text, text + n, 1, NULL, 0};
    *out = NULL;
    if (memchr(text, '\0', n))
        return TB_FAIL(ctx, TB_ERR_INPUT, "%s: got a NUL byte, wanted text",
                       name);
    TB_TRY(tb_notes_create(ctx, &r.box));
    if (begins((span){text, n}, "\xEF\xBB\xBF"))
        r.at += 3;
    tb_status s = is_anki(r.at, (size_t)(r.end - r.at))
                      ? notes_read_anki(&r)
                      : notes_read_obsidian(&r);
    if (s == TB_OK && r.box->notes.n == 0)
        s = TB_FAIL(ctx, TB_ERR_INPUT,
                    "%s: got no card, wanted Anki's columns or lines "
                    "question::answer",
                    name);
    if (s == TB_OK)
        *out = &r.box->notes;
    else
        tb_notes_free(ctx, &r.box->notes);
    return s;
}
