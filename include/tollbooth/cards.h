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

/** tb_card_count, tb_card_at - the cards, deck after deck. */
size_t tb_card_count(void);
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

/** tb_card_term - a card's text, or another, in lines that fit; lines after
 * the first begin `indent` columns in. Plain ASCII spells formulas out. */
tb_status tb_card_term(tb_ctx *ctx, const char *text, int indent,
                       const tb_terminal *term, tb_out *out);
/** tb_proof_term - the numbers of a proof behind a label, in the same way. */
tb_status tb_proof_term(tb_ctx *ctx, const char *label, const tb_proof *p,
                        int indent, const tb_terminal *term, tb_out *out);

/** tb_card_json - one element of "cards" of `recall --json` (docs/json.md). */
void tb_card_json(const tb_card *card, const tb_proof *proof, tb_json *j);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
