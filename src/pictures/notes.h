/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: what the writer and the reader of notes share. */
#ifndef TB_PICTURES_NOTES_H
#define TB_PICTURES_NOTES_H

#include "pictures/scene.h"
#include "tollbooth/cards.h"

#define NOTES_ONE_WAY      "Basic"
#define NOTES_TWO_WAY      "Basic (and reversed card)"
#define NOTES_ANKI_TAG     "tollbooth::"
#define NOTES_OBSIDIAN_TAG "#flashcards/tollbooth/"

/** Notes and the arena of their texts. */
typedef struct notes_box {
    tb_notes notes; /* first: the caller's pointer */
    tb_arena arena;
} notes_box;

tb_status tb_notes_create(tb_ctx *ctx, notes_box **out);

/** What a file is read with. */
typedef struct notes_reader {
    tb_ctx *ctx;
    const char *name;
    const char *at, *end;
    size_t line; /* of `at`, from 1 */
    notes_box *box;
    size_t cap; /* of the notes */
} notes_reader;

/** notes_fail - "cards.txt:12: got ..., wanted ..."; TB_ERR_INPUT. */
tb_status notes_fail(notes_reader *r, size_t line, const char *got,
                     const char *wanted);
/** notes_add - a note, whose texts live in the box's arena. */
tb_status notes_add(notes_reader *r, const tb_note *note);

tb_status notes_read_anki(notes_reader *r);
tb_status notes_read_obsidian(notes_reader *r);

#endif
