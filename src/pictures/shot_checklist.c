/* SPDX-License-Identifier: MIT */
/* CHECK: eight statements to tick, each with what the engine says to it, and
 * small tests for those that can be tested. */
#include "pictures/shot_checklist.h"

/* How many numbers the guess has right; none if it has another length. */
static bool right(const quiz *q, const shot_value *guess)
{
    if (guess->n != q->n)
        return false;
    for (size_t i = 0; i < q->n; i++)
        if (tb_fabs(guess->data[i] - q->truth[i]) > 1e-3)
            return false;
    return true;
}

static tb_status test(tb_shot *s, size_t k)
{
    const shot_value *guess = shot_get(s, "guess");
    quiz q = {.n = 0};
    TB_TRY(quiz_ask(s, k, &q));
    shot_tell(s, "test.numbers", "numbers that the answer has", (double)q.n);
    shot_say(s, shot_text(s, "Answer with guess=%s.", q.wanted));
    if (guess->set) {
        shot_tell(s, "test.right", "1: the guess is right",
                  right(&q, guess) ? 1 : 0);
        shot_say(s, right(&q, guess) ? "Right." : "Not so. Another try.");
    }
    for (size_t i = 0; shot_on(s, "reveal") && i < q.n; i++) {
        char id[24];
        tb_format(id, sizeof id, "test.answer.%zu", i + 1);
        shot_tell(s, id, "the answer", q.truth[i]);
    }
    if (shot_on(s, "reveal"))
        shot_say(s, q.n == 1
                        ? "The answer: {test.answer.1}."
                        : "The answer: {test.answer.1} and {test.answer.2}.");
    return TB_OK;
}

static tb_status build(tb_shot *s)
{
    shot_cards *p = shot_alloc(s, 1, sizeof *p);
    const shot_value *done = shot_get(s, "done");
    static const char *const roles[] = {"tick-box", "tick"};
    size_t ticked = 0, drawn[TB_LEN(roles)];
    if (!p)
        return TB_ERR_MEMORY;
    *p = (shot_cards){.boxes = true, .reveal = shot_on(s, "reveal")};
    TB_TRY(shot_cards_read(s, "checklist", p));
    for (size_t i = 0; i < done->n; i++)
        if (done->data[i] > 0)
            p->ticked[(size_t)done->data[i] - 1] = true;
    for (size_t i = 0; i < CHECKLIST; i++)
        ticked += p->ticked[i];
    shot_title(s, "Equipment checklist",
               shot_text(s,
                         "%zu statements, each with a number that the "
                         "engine computes; %zu ticked.",
                         p->n, ticked));
    if (shot_whole(s, "test"))
        TB_TRY(test(s, shot_whole(s, "test")));
    shot_below(s, &shot_cards_face, p);
    shot_tell(s, "ticked", "ticked", (double)ticked);
    shot_say(s, "Ticked: {ticked} of {items}.");
    shot_drawn(s, &shot_cards_face, p, roles, TB_LEN(roles), drawn);
    shot_check_that(s, drawn[0] == CHECKLIST && drawn[1] == ticked,
                    "drawn: %zu boxes, %zu of them ticked", drawn[0], drawn[1]);
    return TB_OK;
}

const shot_row shot_checklist = {
    .name = "CHECK",
    .about = "the equipment checklist: eight statements, with tests",
    .input = {{"done", "items ticked (0: none)", TB_SHOT_LIST, "[0]", 0,
               CHECKLIST, .step = 1, .whole = true, .most = CHECKLIST},
              {"reveal", "show the answers", TB_SHOT_SWITCH, "0", 0, 1,
               .step = 1},
              {"test", "test me on item (0: none)", TB_SHOT_NUMBER, "0", 0,
               CHECKLIST, .step = 1, .whole = true},
              {"guess", "my answer", TB_SHOT_LIST, "[0]", -1e6, 1e6,
               .step = 0.01, .most = QUIZ_NUMBERS},
              {"seed", "seed of the test", TB_SHOT_NUMBER, "1", 0, 1e6,
               .step = 1, .whole = true}},
    .build = build,
};
