/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: the equipment checklist, and its small tests. */
#ifndef TB_PICTURES_SHOT_CHECKLIST_H
#define TB_PICTURES_SHOT_CHECKLIST_H

#include "pictures/shot_panels.h"
#include "tollbooth/cards.h"

enum { CHECKLIST = 8 };

typedef struct checklist {
    const tb_card *card[CHECKLIST];
    tb_proof proof[CHECKLIST];
    bool ticked[CHECKLIST], reveal;
} checklist;

extern const shot_face checklist_face;

enum { QUIZ_NUMBERS = 2 };

/** One question with numbers drawn from the seed, and what the engine says. */
typedef struct quiz {
    const char *question, *wanted; /* "[mean, variance]" */
    double truth[QUIZ_NUMBERS];
    size_t n; /* numbers of the answer; 0: this item has no test */
} quiz;

/** quiz_ask - the test of item k, from 1; leaves its panel. */
tb_status quiz_ask(tb_shot *s, size_t k, quiz *out);

#endif
