/* SPDX-License-Identifier: MIT */
/* RECALL: the questions of one deck, with the pictures that show the answers
 * and, once they are turned over, what the engine says. */
#include "pictures/shot_checklist.h"

enum { RECALL = 6 }; /* cards of the walkthrough itself */

/* That card alone, if one is named. */
static tb_status keep_one(tb_shot *s, shot_cards *p)
{
    size_t k = shot_whole(s, "card");
    if (!k)
        return TB_OK;
    if (k > p->n)
        return TB_FAIL(s->ctx, TB_ERR_INPUT,
                       "set card: got %zu, wanted a whole number from 0 to %zu",
                       k, p->n);
    p->card[0] = p->card[k - 1];
    p->proof[0] = p->proof[k - 1];
    p->n = 1;
    return TB_OK;
}

/* The deck has all its cards, and each is drawn. */
static void check(tb_shot *s, size_t deck, const shot_cards *p)
{
    static const char *const role = "card";
    size_t all = 0, drawn;
    for (size_t i = 0; i < tb_card_count(); i++)
        all += tb_streq(tb_card_at(i)->deck, tb_deck_names[deck]);
    shot_drawn(s, &shot_cards_face, p, &role, 1, &drawn);
    shot_check_that(s, drawn == all && (deck || all == RECALL),
                    "drawn: all %zu cards", all);
}

static tb_status build(tb_shot *s)
{
    size_t deck = shot_choice(s, "deck");
    shot_cards *p = shot_alloc(s, 1, sizeof *p);
    if (!p)
        return TB_ERR_MEMORY;
    *p = (shot_cards){.reveal = shot_on(s, "reveal")};
    TB_TRY(shot_cards_read(s, tb_deck_names[deck], p));
    check(s, deck, p);
    shot_title(s, "Recall",
               shot_text(s,
                         "%zu questions; the engine computes what their "
                         "answers claim.",
                         p->n));
    TB_TRY(keep_one(s, p));
    shot_below(s, &shot_cards_face, p);
    shot_say(s, p->reveal ? "Of {items} cards {proved} claim something that "
                            "can be computed."
                          : "Answer aloud, then turn them over: reveal=1. Each "
                            "names the picture that shows it.");
    shot_say(s, "As a quiz: tollbooth recall.");
    return TB_OK;
}

const shot_row shot_recall = {
    .name = "RECALL",
    .about = "the cards: questions, answers, what the engine says",
    .input = {{"deck", "cards", TB_SHOT_CHOICE, "recall",
               .choices = "recall|inline|checklist"},
              {"card", "card alone (0: all)", TB_SHOT_NUMBER, "0", 0,
               CARDS_MOST, .step = 1, .whole = true},
              {"reveal", "show the answers", TB_SHOT_SWITCH, "0", 0, 1,
               .step = 1}},
    .build = build,
};
