/* SPDX-License-Identifier: MIT */
/* F-MAP, CHECK, RECALL and RETELL: the arrows that are drawn, ticks, and tests
 * whose answers are computed here a second time. */
#include "test_pictures_shot_help.h"

#include "pictures/shot_checklist.h"

/* The edges of the foundations page, no other: 2 leans on 1, and so on. */
TB_TEST(build_order)
{
    static const size_t edges[][2] = {{2, 1}, {3, 1}, {3, 2}, {4, 1},
                                      {5, 4}, {6, 3}, {6, 5}};
    tb_shot *s = make_shot(T, "F-MAP", NULL);
    tb_scene *scene;
    TB_OKAY(T, tb_shot_scene(s, &scene));
    TB_CHECK(T, roles(scene, "edge", NULL) == TB_LEN(edges));
    TB_CHECK(T, roles(scene, "card", NULL) == 6);
    for (size_t i = 0; i < TB_LEN(edges); i++) {
        char id[40];
        tb_format(id, sizeof id, "p0-edge-%zu-%zu", edges[i][0], edges[i][1]);
        const tb_item *e = item_called(T, scene, id);
        TB_REQUIRE(T, e);
        TB_CHECK(T, e->xy[2 * e->n - 1] > e->xy[1]); /* down, to the ground */
    }
    tb_scene_destroy(scene);
    tb_shot_destroy(s);
}

TB_TEST(what_can_be_read_next)
{
    static const struct {
        const char *set;
        double done, ready;
    } known[] = {{"", 0, 1},
                 {"done=[1]", 1, 2},
                 {"done=[1,2]", 2, 2},
                 {"done=[4,1,2]", 3, 2},
                 {"done=[1,2,3,4,5]", 5, 1},
                 {"done=[1,2,3,4,5,6]", 6, 0}};
    for (size_t i = 0; i < TB_LEN(known); i++) {
        tb_shot *s = make_shot(T, "F-MAP", known[i].set);
        TB_CHECK(T, number_of(T, s, "done") == known[i].done);
        TB_CHECK(T, number_of(T, s, "ready") == known[i].ready);
        tb_shot_destroy(s);
        check_faces(T, "F-MAP", known[i].set);
    }
}

/* Texts and proofs are those of the cards. */
TB_TEST(eight_items)
{
    tb_shot *s = make_shot(T, "CHECK", "done=[2,8]");
    const shot_cards *p = panel_of(T, s, "checklist");
    size_t at = 0;
    for (size_t i = 0; i < tb_card_count(); i++)
        if (tb_streq(tb_card_at(i)->deck, "checklist"))
            TB_CHECK(T, at < CHECKLIST && p->card[at++] == tb_card_at(i));
    TB_CHECK(T, at == CHECKLIST);
    TB_CHECK(T, p->ticked[1] && p->ticked[7] && !p->ticked[0]);
    TB_CHECK(T, number_of(T, s, "items") == 8);
    TB_CHECK(T, number_of(T, s, "ticked") == 2);
    tb_shot_destroy(s);
}

static bool says_right(tb_test *T, size_t item, size_t seed, const double *v,
                       size_t n)
{
    char set[120];
    tb_format(set, sizeof set,
              n == 2 ? "test=%zu,seed=%zu,guess=[%g,%g]"
                     : "test=%zu,seed=%zu,guess=[%g]",
              item, seed, v[0], n == 2 ? v[1] : 0);
    tb_shot *s = make_shot(T, "CHECK", set);
    bool right = number_of(T, s, "test.right") == 1;
    tb_shot_destroy(s);
    return right;
}

/* What is shown as the answer is taken as one, its neighbour is not. */
TB_TEST(tests_know_their_answers)
{
    for (size_t item = 1; item <= CHECKLIST; item++)
        for (size_t seed = 1; seed <= 6; seed++) {
            char set[120];
            double v[2] = {0, 0};
            tb_format(set, sizeof set, "test=%zu,seed=%zu,reveal=1", item,
                      seed);
            tb_shot *s = make_shot(T, "CHECK", set);
            size_t n = (size_t)number_of(T, s, "test.numbers");
            for (size_t k = 0; k < n; k++) {
                char id[40];
                tb_format(id, sizeof id, "test.answer.%zu", k + 1);
                v[k] = number_of(T, s, id);
            }
            tb_shot_destroy(s);
            TB_CHECK(T, says_right(T, item, seed, v, n));
            v[n - 1] += 1;
            TB_CHECK(T, !says_right(T, item, seed, v, n));
        }
}

/* Mean and variance of the list that is written down. */
TB_TEST(variance_by_hand)
{
    for (size_t seed = 1; seed <= 6; seed++) {
        char set[40];
        tb_format(set, sizeof set, "test=4,reveal=1,seed=%zu", seed);
        tb_shot *s = make_shot(T, "CHECK", set);
        const shot_words_of *w = panel_of(T, s, "words");
        double sum = 0, square = 0;
        for (size_t i = 0; i < w->n; i++)
            for (const char *p = w->words[i].text; *p; p++)
                if (*p >= '1' && *p <= '9') {
                    sum += *p - '0';
                    square += (*p - '0') * (*p - '0');
                }
        TB_NEAR(T, number_of(T, s, "test.answer.1"), sum / 4, 1e-12);
        TB_NEAR(T, number_of(T, s, "test.answer.2"),
                square / 4 - sum * sum / 16, 1e-12);
        tb_shot_destroy(s);
    }
}

TB_TEST(every_test_is_drawn)
{
    for (size_t k = 0; k <= 8; k++) {
        char set[60];
        tb_format(set, sizeof set, "test=%zu,reveal=%zu,guess=[1],seed=4", k,
                  k % 2);
        check_faces(T, "CHECK", set);
    }
}

/* The cards of each deck, in their order, and one of them alone. */
TB_TEST(recall_is_the_cards)
{
    static const size_t sizes[TB_DECKS] = {6, 10, 8};
    for (size_t deck = 0, at = 0; deck < TB_DECKS; at += sizes[deck++]) {
        char set[60];
        tb_format(set, sizeof set, "deck=%s,reveal=1", tb_deck_names[deck]);
        tb_shot *s = make_shot(T, "RECALL", set);
        const shot_cards *p = panel_of(T, s, "checklist");
        TB_CHECK(T, p->n == sizes[deck]);
        for (size_t i = 0; i < p->n; i++)
            TB_CHECK(T, p->card[i] == tb_card_at(at + i) && p->proof[i].ok);
        tb_shot_destroy(s);
        check_faces(T, "RECALL", set);
        tb_format(set, sizeof set, "deck=%s,card=%zu", tb_deck_names[deck],
                  sizes[deck]);
        s = make_shot(T, "RECALL", set);
        p = panel_of(T, s, "checklist");
        TB_CHECK(T,
                 p->n == 1 && p->card[0] == tb_card_at(at + sizes[deck] - 1));
        tb_shot_destroy(s);
        check_faces(T, "RECALL", set);
    }
    tb_shot *s;
    TB_FAILS(T, tb_shot_create(T->ctx, "RECALL", "card=7", &s), TB_ERR_INPUT,
             "card: got 7, wanted a whole number from 0 to 6");
}

/* Nothing is told before it is asked for; words are marked as the page does. */
TB_TEST(retelling)
{
    static const struct {
        const char *set;
        double right;
    } known[] = {{"", 0},
                 {"first=ADD&second=identity&third=Layer Norm&uncover=1", 3},
                 {"first=plus&second= one &third=norms&uncover=1", 1},
                 {"first=a word that is far too long for the place it has&"
                  "second=\"<&third=\xE2\x88\x82&uncover=1",
                  0}};
    for (size_t i = 0; i < TB_LEN(known); i++) {
        tb_out *out;
        tb_shot *s = make_shot(T, "RETELL", known[i].set);
        TB_CHECK(T, number_of(T, s, "right") == known[i].right);
        TB_OKAY(T, tb_out_create(T->ctx, &out));
        TB_OKAY(T, tb_shot_term(s, NULL, out));
        TB_CHECK(T, (strstr(tb_out_str(out), "[\xE2\x80\xA6]") != NULL) ==
                        (i == 0));
        tb_out_destroy(out);
        tb_shot_destroy(s);
        check_faces(T, "RETELL", known[i].set);
    }
}
