/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: cards as drawn, the equipment checklist and its
 * small tests. */
#ifndef TB_PICTURES_SHOT_CHECKLIST_H
#define TB_PICTURES_SHOT_CHECKLIST_H

#include "pictures/shot_panels.h"
#include "tollbooth/cards.h"

enum { CHECKLIST = 8, CARDS_MOST = 10 };

/** The cards of one deck, with what the engine says to each. */
typedef struct shot_cards {
    size_t n;
    const tb_card *card[CARDS_MOST];
    tb_proof proof[CARDS_MOST];
    bool boxes; /* to tick; else numbers, and the command of the picture */
    bool ticked[CARDS_MOST], reveal;
} shot_cards;

extern const shot_face shot_cards_face;

/** shot_cards_read - all cards of the deck, and a check of their numbers. */
tb_status shot_cards_read(tb_shot *s, const char *deck, shot_cards *out);

enum { QUIZ_NUMBERS = 2 };

/** One question with numbers drawn from the seed, and what the engine says. */
typedef struct quiz {
    const char *question, *wanted; /* "[mean, variance]" */
    double truth[QUIZ_NUMBERS];
    size_t n; /* numbers of the answer */
} quiz;

/** quiz_ask - the test of item k, from 1; leaves its panels. */
tb_status quiz_ask(tb_shot *s, size_t k, quiz *out);

#endif
