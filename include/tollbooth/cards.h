/* SPDX-License-Identifier: MIT */
/* The recall cards: questions, answers, the picture that shows each answer,
 * and the number by which the engine proves it. */
#ifndef TOLLBOOTH_CARDS_H
#define TOLLBOOTH_CARDS_H

#include "tollbooth/base.h"
#include "tollbooth/json.h"
#include "tollbooth/pictures.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct tb_card {
    const char *id;   /* "recall-eps": never changes, never means another */
    const char *deck; /* one of tb_deck_names */
    const char *question, *answer; /* plain text */
    /* the same with formulas as TeX between \( and \) */
    const char *question_tex, *answer_tex;
    const char *shot;     /* the picture that shows it: "S7" */
    const char *settings; /* as tb_shot_create takes them; "" for its own */
} tb_card;

enum { TB_DECKS = 3 };
extern const char *const tb_deck_names[TB_DECKS]; /* recall inline checklist */

/** tb_card_count - cards of all decks. */
size_t tb_card_count(void);
/** tb_card_at - card i below tb_card_count(), deck after deck. */
const tb_card *tb_card_at(size_t i);
/** tb_card_find - the place of the card called `id`, tb_card_count() if there
 * is none. */
size_t tb_card_find(const char *id);

enum { TB_PROOF_VALUES = 8, TB_PROOF_TEXT = 200 };

/** What the engine says to a card. */
typedef struct tb_proof {
    const char *what;       /* the numbers: "largest gain of J_LN" */
    const char *expression; /* the equation, or the block */
    size_t n;               /* numbers; 0: nothing to compute in this card */
    double value[TB_PROOF_VALUES], expected[TB_PROOF_VALUES];
    double tolerance; /* |value - expected| at most, of max(1, |expected|) */
    bool ok;
    char command[TB_PROOF_TEXT]; /* shows it, after "tollbooth " */
    char said[TB_PROOF_TEXT];    /* where it is a refusal: its message; or "" */
} tb_proof;

/** tb_card_prove - compute what card i claims. A number that is not the
 * expected one is a result (ok is false); what the engine cannot do, such as
 * TB_ERR_MEMORY, is an error. */
tb_status tb_card_prove(tb_ctx *ctx, size_t i, tb_proof *out);

/** tb_proof_term - the numbers of a proof behind a label, in lines that fit. */
tb_status tb_proof_term(tb_ctx *ctx, const char *label, const tb_proof *p,
                        int indent, const tb_terminal *term, tb_out *out);

/** tb_card_json - one element of "cards" of `recall --json` (docs/json.md). */
void tb_card_json(const tb_card *card, const tb_proof *proof, tb_json *j);

/** tb_cards_shuffle - n places in an order that depends on `seed` alone. */
void tb_cards_shuffle(uint64_t seed, size_t *cards, size_t n);

/* --- files of other programs ---------------------------------------------- */

typedef enum tb_notes_format {
    TB_NOTES_ANKI,    /* text that Anki imports: columns and header lines */
    TB_NOTES_OBSIDIAN /* Markdown for its spaced-repetition plugin */
} tb_notes_format;
extern const char *const tb_notes_names[2]; /* "anki" "obsidian" */

/** A card as such a file has it; formulas stand between \( and \). */
typedef struct tb_note {
    const char *id;   /* Anki's guid, Obsidian's block id; "" without one */
    const char *deck; /* last part of its tag; "" without one */
    const char *question, *answer;
    size_t line; /* of the file, from 1 */
} tb_note;

typedef struct tb_notes {
    tb_notes_format format; /* it was read from */
    bool two_way;           /* each question is asked by its answer, too */
    size_t n;
    tb_note *notes;
    size_t schedules; /* lines in which Obsidian keeps when to ask: left out */
} tb_notes;

/** tb_notes_of_cards - the cards at n places; freed with tb_notes_free. */
tb_status tb_notes_of_cards(tb_ctx *ctx, const size_t *cards, size_t n,
                            tb_notes **out);

/**
 * tb_notes_read - a file of either kind; which of them is seen from its text.
 * `name` stands for it in messages. Of a file that tb_notes_write wrote, all
 * that it needs to write the same bytes again.
 *
 * Returns TB_ERR_INPUT with the line: columns that do not fit, a quote that
 * does not end, two separators in one line, a formula that does not end, an id
 * that was there before; a file without cards.
 */
tb_status tb_notes_read(tb_ctx *ctx, const char *name, const char *text,
                        size_t n, tb_notes **out);
/** tb_notes_free - NULL is fine. */
void tb_notes_free(tb_ctx *ctx, tb_notes *notes);

/** tb_notes_write - two_way: "Basic (and reversed card)" in Anki, ":::" in
 * Obsidian. TB_ERR_INPUT for a text that the format cannot hold. */
tb_status tb_notes_write(tb_ctx *ctx, const tb_notes *notes,
                         tb_notes_format format, bool two_way, tb_out *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
