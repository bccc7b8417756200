/* SPDX-License-Identifier: MIT */
/* F1, F4 and F5: a list as bars, its mean and spread, the parts of a norm. */
#include "test_pictures_shot_help.h"

/* --- F1 ------------------------------------------------------------------- */

TB_TEST(f1_label_names_the_number)
{
    tb_scene *scene;
    tb_shot *s = make_shot(T, "F1", NULL);
    TB_OKAY(T, tb_shot_scene(s, &scene));
    const tb_item *label = item_called(T, scene, "p0-focus-label");
    TB_CHECK(T, label && tb_streq(label->text, "x\xE2\x82\x83 = 4"));
    TB_CHECK(T, roles(scene, "bar", NULL) == 16);
    TB_CHECK(T, roles(scene, "focus", NULL) == 1);
    tb_scene_destroy(scene);
    tb_shot_destroy(s);
    s = make_shot(T, "F1", "token=2,j=16,d=12,x2=[1.5,-7]");
    TB_OKAY(T, tb_shot_scene(s, &scene));
    label = item_called(T, scene, "p0-focus-label"); /* the last there is */
    TB_CHECK(T, label && tb_streq(label->text, "x\xE2\x82\x81\xE2\x82\x82 = "
                                               "-7"));
    tb_scene_destroy(scene);
    tb_shot_destroy(s);
    for (int d = 2; d <= 16; d++) {
        char set[64];
        tb_format(set, sizeof set, "d=%d,j=%d,token=%d", d, d, 1 + d % 2);
        check_faces(T, "F1", set);
    }
}

/* --- F4 ------------------------------------------------------------------- */

/* The words of a panel, with a blank between them. */
static void words_of(tb_test *T, const char *set, char *out, size_t room)
{
    tb_out *text;
    tb_terminal term = {.width = 200, .ascii = true};
    tb_shot *s = make_shot(T, "F4", set);
    TB_OKAY(T, tb_out_create(T->ctx, &text));
    TB_OKAY(T, tb_shot_term(s, &term, text));
    tb_format(out, room, "%s", tb_out_str(text));
    tb_out_destroy(text);
    tb_shot_destroy(s);
}

TB_TEST(f4_worked_sum)
{
    char text[4096];
    tb_shot *s = make_shot(T, "F4", NULL);
    TB_CHECK(T, number_of(T, s, "E1.mu") == 5);
    TB_CHECK(T, number_of(T, s, "E1.squares") == 32);
    TB_CHECK(T, number_of(T, s, "E1.var") == 4);
    TB_CHECK(T, number_of(T, s, "E1.sigma") == 2);
    tb_shot_destroy(s);
    words_of(T, NULL, text, sizeof text);
    TB_CHECK(T, strstr(text, "2 + 4 + 4 + 4 + 5 + 5 + 7 + 9 = 40, / 8 = 5"));
    TB_CHECK(T, strstr(text, "9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32, / 8 = 4"));
    TB_CHECK(T, !strstr(text, "LayerNorm divides by d."));
    words_of(T, "unbiased=1", text, sizeof text);
    TB_CHECK(T, strstr(text, "= 32, / 7 = 4.57"));
    TB_CHECK(T, strstr(text, "LayerNorm divides by d."));
    s = make_shot(T, "F4", "unbiased=1");
    TB_NEAR(T, number_of(T, s, "E1.var"), 32.0 / 7, 1e-15);
    tb_shot_destroy(s);
}

/* Sides are to each other as distances, the mean square's as the spread. */
TB_TEST(f4_squares)
{
    tb_scene *scene;
    tb_shot *s = make_shot(T, "F4", NULL);
    TB_OKAY(T, tb_shot_scene(s, &scene));
    double unit = item_called(T, scene, "p0-square-8")->w / 4;
    TB_NEAR(T, item_called(T, scene, "p0-square-1")->w, 3 * unit, 1e-9);
    TB_NEAR(T, item_called(T, scene, "p0-square-7")->h, 2 * unit, 1e-9);
    TB_NEAR(T, item_called(T, scene, "p0-mean-square")->w, 2 * unit, 1e-9);
    TB_CHECK(T, roles(scene, "square", NULL) == 8);
    TB_CHECK(T, roles(scene, "bar", NULL) == 8);
    TB_CHECK(T, roles(scene, "mu-line", NULL) == 1);
    tb_scene_destroy(scene);
    tb_shot_destroy(s);
    for (int d = 2; d <= 16; d += 2) {
        char set[96];
        tb_format(set, sizeof set, "d=%d,x=[%g,%g,%g],unbiased=%d", d,
                  6 * tb_test_normal(T), tb_test_normal(T),
                  0.01 * tb_test_normal(T), d % 4 == 0);
        check_faces(T, "F4", set);
    }
    check_faces(T, "F4", "x=[3,3,3]");
}

/* --- F5 ------------------------------------------------------------------- */

TB_TEST(f5_switches)
{
    tb_shot *s = make_shot(T, "F5", "undo=1");
    TB_CHECK(T, number_of(T, s, "undo.error") <= 1e-12);
    TB_NEAR(T, number_of(T, s, "out.8"), 9, 1e-12);
    TB_CHECK(T, number_of(T, s, "touched") == 1);
    tb_shot_destroy(s);
    s = make_shot(T, "F5", "use_gamma=0,use_beta=0,use_eps=0");
    TB_CHECK(T, number_of(T, s, "out.1") == -1.5);
    TB_CHECK(T, number_of(T, s, "hat.8") == 2);
    tb_shot_destroy(s);
    s = make_shot(T, "F5", "use_dot=0");
    TB_CHECK(T, number_of(T, s, "touched") == 8);
    tb_shot_destroy(s);
    TB_FAILS(T, tb_shot_create(T->ctx, "F5", "z=[2,2],use_eps=0", &s),
             TB_ERR_INPUT, "zero variance with eps = 0");
    tb_shot_destroy(make_shot(T, "F5", "z=[2,2]"));
}

TB_TEST(f5_draws_every_part)
{
    for (unsigned k = 0; k < 32; k++) {
        char set[160];
        tb_scene *scene;
        size_t d = 2 + k % 15, touched;
        tb_format(set, sizeof set,
                  "use_gamma=%u,use_beta=%u,use_eps=%u,use_dot=%u,undo=%u,"
                  "d=%zu,j=%zu,gamma=[-2,0.5]",
                  k & 1, k >> 1 & 1, k >> 2 & 1, k >> 3 & 1, k >> 4, d, d);
        tb_shot *s = make_shot(T, "F5", set);
        touched = (size_t)number_of(T, s, "touched");
        TB_OKAY(T, tb_shot_scene(s, &scene));
        TB_CHECK(T, roles(scene, "bar", NULL) == 4 * d);
        TB_CHECK(T, roles(scene, "switch", NULL) == 4);
        TB_CHECK(T, roles(scene, "nudge", NULL) == touched);
        tb_scene_destroy(scene);
        tb_shot_destroy(s);
        check_faces(T, "F5", set);
    }
}
