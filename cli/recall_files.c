/* SPDX-License-Identifier: MIT */
/* tollbooth recall: cards to and from files of other programs. */
#include "recall.h"
#include "tollbooth/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MOST = 16 << 20 };

/* --- writing -----------------------------------------------------------------
 */

/* Obsidian keeps its schedule between the cards: a file that is there is not
 * replaced, unless by the same bytes. */
static int keep_note(tb_ctx *ctx, const char *path, const tb_out *out)
{
    tb_bytes old;
    if (!tb_file_exists(path))
        return 0;
    tb_status s = tb_file_read(ctx, path, 0, &old);
    if (s != TB_OK)
        return die(ctx, s);
    bool same = old.len == tb_out_len(out) &&
                memcmp(old.data, tb_out_str(out), old.len) == 0;
    tb_bytes_clear(ctx, &old);
    if (same)
        return 0;
    complain("tollbooth: recall: --out: got %s, which is there and differs, "
             "wanted a new file: Obsidian keeps its schedule in the old one\n",
             path);
    return tb_status_exit(TB_ERR_INPUT);
}

static int put(tb_ctx *ctx, const tb_out *out, const recall_options *o,
               tb_notes_format format, size_t n)
{
    if (!o->out) {
        fputs(tb_out_str(out), stdout);
        return finish(0);
    }
    int code = format == TB_NOTES_OBSIDIAN ? keep_note(ctx, o->out, out) : 0;
    if (code)
        return code;
    tb_status s =
        tb_file_write_atomic(ctx, o->out, tb_out_str(out), tb_out_len(out));
    if (s != TB_OK)
        return die(ctx, s);
    complain("tollbooth: %zu cards for %s in %s\n", n, tb_notes_names[format],
             o->out);
    return finish(0);
}

static int write_notes(tb_ctx *ctx, const tb_notes *notes,
                       const recall_options *o)
{
    tb_notes_format format = (tb_notes_format)(o->format - 1);
    tb_out *out;
    if (tb_out_create(ctx, &out) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_status s =
        tb_notes_write(ctx, notes, format, o->two_way || notes->two_way, out);
    int code = s == TB_OK ? put(ctx, out, o, format, notes->n) : die(ctx, s);
    tb_out_destroy(out);
    return code;
}

int recall_export(tb_ctx *ctx, const choice *c, const recall_options *o)
{
    tb_notes *notes;
    tb_status s = tb_notes_of_cards(ctx, c->cards, c->n, &notes);
    if (s != TB_OK)
        return die(ctx, s);
    int code = write_notes(ctx, notes, o);
    tb_notes_free(ctx, notes);
    return code;
}

/* --- reading -----------------------------------------------------------------
 */

typedef enum likeness { SAME, CHANGED, UNKNOWN, LIKENESSES } likeness;
static const char *const words[LIKENESSES] = {"same", "changed", "unknown"};

static likeness compare(const tb_note *note)
{
    size_t i = tb_card_find(note->id);
    if (i == tb_card_count())
        return UNKNOWN;
    const tb_card *c = tb_card_at(i);
    return strcmp(note->question, c->question_tex) == 0 &&
                   strcmp(note->answer, c->answer_tex) == 0
               ? SAME
               : CHANGED;
}

static bool has(const tb_notes *notes, const char *id)
{
    for (size_t i = 0; i < notes->n; i++)
        if (strcmp(notes->notes[i].id, id) == 0)
            return true;
    return false;
}

static void as_text(const tb_notes *notes, const size_t *count, size_t missing)
{
    for (size_t i = 0; i < notes->n; i++) {
        const tb_note *note = &notes->notes[i];
        printf("%-8s %4zu  ", words[compare(note)], note->line);
        put_clean(stdout, *note->id ? note->id : "(no id)");
        printf("\n");
    }
    for (size_t i = 0; i < tb_card_count() && missing; i++)
        if (!has(notes, tb_card_at(i)->id))
            printf("missing     -  %s\n", tb_card_at(i)->id);
    printf("%s%s, %zu cards: %zu same, %zu changed, %zu unknown; %zu missing\n",
           tb_notes_names[notes->format], notes->two_way ? ", two ways" : "",
           notes->n, count[SAME], count[CHANGED], count[UNKNOWN], missing);
    if (notes->schedules)
        printf("lines with a schedule: %zu\n", notes->schedules);
}

static int as_json(tb_ctx *ctx, const tb_notes *notes)
{
    tb_json *j;
    if (tb_json_create(ctx, &j) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_json_object(j, NULL);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_string(j, "format", tb_notes_names[notes->format]);
    tb_json_bool(j, "two_way", notes->two_way);
    tb_json_int(j, "schedules", (int64_t)notes->schedules);
    tb_json_array(j, "notes");
    for (size_t i = 0; i < notes->n; i++) {
        const tb_note *note = &notes->notes[i];
        tb_json_object(j, NULL);
        tb_json_string(j, "id", *note->id ? note->id : NULL);
        tb_json_string(j, "deck", *note->deck ? note->deck : NULL);
        tb_json_int(j, "line", (int64_t)note->line);
        tb_json_string(j, "is", words[compare(note)]);
        tb_json_string(j, "question", note->question);
        tb_json_string(j, "answer", note->answer);
        tb_json_end(j);
    }
    tb_json_end(j);
    tb_json_array(j, "missing");
    for (size_t i = 0; i < tb_card_count(); i++)
        if (!has(notes, tb_card_at(i)->id))
            tb_json_string(j, NULL, tb_card_at(i)->id);
    tb_json_end(j);
    tb_json_end(j);
    return print_json(ctx, j, 0);
}

static int report(tb_ctx *ctx, const tb_notes *notes, const recall_options *o)
{
    size_t count[LIKENESSES] = {0}, missing = 0;
    for (size_t i = 0; i < notes->n; i++)
        count[compare(&notes->notes[i])]++;
    for (size_t i = 0; i < tb_card_count(); i++)
        missing += !has(notes, tb_card_at(i)->id);
    int code = 0;
    if (o->json)
        code = as_json(ctx, notes);
    else {
        as_text(notes, count, missing);
        code = finish(0);
    }
    bool all = missing == 0 && count[SAME] == notes->n;
    return code == 0 && o->check && !all ? tb_status_exit(TB_CHECK) : code;
}

int recall_import(tb_ctx *ctx, const recall_options *o)
{
    tb_bytes file;
    tb_notes *notes;
    tb_status s = tb_file_read(ctx, o->import, FILE_MOST, &file);
    if (s != TB_OK)
        return die(ctx, s);
    s = tb_notes_read(ctx, o->import, file.data, file.len, &notes);
    tb_bytes_clear(ctx, &file);
    if (s != TB_OK)
        return die(ctx, s);
    int code = o->format ? write_notes(ctx, notes, o) : report(ctx, notes, o);
    tb_notes_free(ctx, notes);
    return code;
}
