/* SPDX-License-Identifier: MIT */
/* Cards for other programs: writing. Anki's text import takes columns behind
 * header lines; Obsidian's spaced-repetition plugin takes lines of Markdown. */
#include "pictures/notes.h"

const char *const tb_notes_names[] = {"anki", "obsidian"};

tb_status tb_notes_create(tb_ctx *ctx, notes_box **out)
{
    notes_box *box = tb_alloc(ctx, 1, sizeof *box);
    *out = box;
    if (!box)
        return TB_ERR_MEMORY;
    tb_arena_init(&box->arena, ctx);
    return TB_OK;
}

void tb_notes_free(tb_ctx *ctx, tb_notes *notes)
{
    notes_box *box = (notes_box *)notes;
    if (!box)
        return;
    tb_free(ctx, box->notes.notes);
    tb_arena_clear(&box->arena);
    tb_free(ctx, box);
}

tb_status tb_notes_of_cards(tb_ctx *ctx, const size_t *cards, size_t n,
                            tb_notes **out)
{
    notes_box *box;
    *out = NULL;
    TB_TRY(tb_notes_create(ctx, &box));
    tb_notes *notes = &box->notes;
    notes->notes = tb_alloc(ctx, n, sizeof *notes->notes);
    if (!notes->notes) {
        tb_notes_free(ctx, notes);
        return TB_ERR_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        const tb_card *c = tb_card_at(cards[i]);
        notes->notes[i] = (tb_note){.id = c->id,
                                    .deck = c->deck,
                                    .question = c->question_tex,
                                    .answer = c->answer_tex};
    }
    notes->n = n;
    *out = notes;
    return TB_OK;
}

/* --- Anki -----------------------------------------------------------------
 * Header lines "#key:value", then one row per note. The guid makes a second
 * import update the notes of the first; fields are HTML. A field with a
 * separator, a quote or a line break is quoted as in CSV. */

static void put_html(tb_buf *b, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '&':
            tb_buf_puts(b, "&amp;");
            break;
        case '<':
            tb_buf_puts(b, "&lt;");
            break;
        case '>':
            tb_buf_puts(b, "&gt;");
            break;
        default:
            tb_buf_putc(b, *s);
        }
}

static tb_status put_field(tb_ctx *ctx, tb_buf *b, const char *before,
                           const char *s)
{
    tb_buf html;
    tb_buf_init(&html, ctx);
    put_html(&html, before);
    put_html(&html, s);
    const char *text = tb_buf_str(&html);
    bool quoted = strpbrk(text, "\t\n\r\"") || text[0] == '#';
    if (quoted)
        tb_buf_putc(b, '"');
    for (; *text; text++) {
        if (*text == '"')
            tb_buf_putc(b, '"');
        tb_buf_putc(b, *text);
    }
    if (quoted)
        tb_buf_putc(b, '"');
    tb_status status = tb_buf_status(&html);
    tb_buf_clear(&html);
    return status;
}

static tb_status write_anki(tb_ctx *ctx, const tb_notes *notes, bool two_way,
                            tb_buf *b)
{
    tb_buf_printf(b,
                  "#separator:tab\n"
                  "#html:true\n"
                  "#notetype:%s\n"
                  "#deck:tollbooth::residual\n"
                  "#columns:Front\tBack\tGUID\tTags\n"
                  "#guid column:3\n"
                  "#tags column:4\n"
                  "#if matches:update current\n",
                  two_way ? NOTES_TWO_WAY : NOTES_ONE_WAY);
    for (size_t i = 0; i < notes->n; i++) {
        const tb_note *note = &notes->notes[i];
        TB_TRY(put_field(ctx, b, "", note->question));
        tb_buf_putc(b, '\t');
        TB_TRY(put_field(ctx, b, "", note->answer));
        tb_buf_putc(b, '\t');
        TB_TRY(put_field(ctx, b, "", note->id));
        tb_buf_putc(b, '\t');
        TB_TRY(
            put_field(ctx, b, *note->deck ? NOTES_ANKI_TAG : "", note->deck));
        tb_buf_putc(b, '\n');
    }
    return tb_buf_status(b);
}

/* --- Obsidian -------------------------------------------------------------
 * A tag alone on its line names the deck of what follows; a card is one line,
 * "question::answer ^block-id". The plugin looks for its separator anywhere
 * but in `code`. */

/* Letters, digits and dashes: what Anki makes up itself is none and is left
 * out, since behind a card's text it would be read as part of it. */
static bool is_block_id(const char *s)
{
    size_t n = 0;
    while ((s[n] >= '0' && s[n] <= '9') || s[n] == '-' ||
           ((s[n] | 32) >= 'a' && (s[n] | 32) <= 'z'))
        n++;
    return n > 0 && s[n] == '\0';
}

static tb_status put_markdown(tb_ctx *ctx, tb_buf *b, const tb_note *note,
                              const char *s)
{
    if (strpbrk(s, "\n\r") || strstr(s, "::"))
        return TB_FAIL(ctx, TB_ERR_INPUT,
                       "card %s: got %s in its text, wanted one line without "
                       "'::' for Obsidian",
                       note->id, strpbrk(s, "\n\r") ? "a line break" : "'::'");
    for (; *s; s++) {
        if (s[0] == '\\' && (s[1] == '(' || s[1] == ')')) {
            tb_buf_putc(b, '$');
            s++;
        } else {
            if (*s == '$')
                tb_buf_putc(b, '\\');
            tb_buf_putc(b, *s);
        }
    }
    return TB_OK;
}

static tb_status write_obsidian(tb_ctx *ctx, const tb_notes *notes,
                                bool two_way, tb_buf *b)
{
    const char *deck = "";
    for (size_t i = 0; i < notes->n; i++) {
        const tb_note *note = &notes->notes[i];
        if (i)
            tb_buf_putc(b, '\n');
        if (!tb_streq(deck, note->deck))
            tb_buf_printf(b, "%s%s\n\n", NOTES_OBSIDIAN_TAG, note->deck);
        deck = note->deck;
        TB_TRY(put_markdown(ctx, b, note, note->question));
        tb_buf_puts(b, two_way ? ":::" : "::");
        TB_TRY(put_markdown(ctx, b, note, note->answer));
        if (is_block_id(note->id))
            tb_buf_printf(b, " ^%s", note->id);
        tb_buf_putc(b, '\n');
    }
    return tb_buf_status(b);
}

tb_status tb_notes_write(tb_ctx *ctx, const tb_notes *notes,
                         tb_notes_format format, bool two_way, tb_out *out)
{
    return format == TB_NOTES_ANKI
               ? write_anki(ctx, notes, two_way, &out->buf)
               : write_obsidian(ctx, notes, two_way, &out->buf);
}
