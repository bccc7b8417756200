/* SPDX-License-Identifier: MIT */
/* F1 to F5: a list as bars, boxes on floors, two roads home, mean and spread,
 * the parts of a norm. */
#include "test_pictures_shot_help.h"

#include "pictures/shot_house.h"

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
        /* one after the other: compilers differ in the order of arguments */
        double a = 6 * tb_test_normal(T), b = tb_test_normal(T);
        double c = 0.01 * tb_test_normal(T);
        tb_format(set, sizeof set, "d=%d,x=[%g,%g,%g],unbiased=%d", d, a, b, c,
                  d % 4 == 0);
        check_faces(T, "F4", set);
    }
    check_faces(T, "F4", "x=[3,3,3]");
    check_faces(T, "F4", "d=16,x=[-1.9571984,0.2242933,0.0124508],unbiased=1");
    check_faces(T, "F4", "d=16,x=[-19.571984,0.0002242933,19.124508]");
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

/* --- F2 ------------------------------------------------------------------- */

TB_TEST(f2_one_box_per_floor)
{
    static const char *const names[] = {"F", "Sublayer", "MHA/FFN"};
    char first[256] = "";
    for (size_t k = 0; k < TB_LEN(names); k++)
        for (int n = 1; n <= 6; n++) {
            char set[64];
            tb_scene *scene;
            tb_format(set, sizeof set, "name=%s,floors=%d,d=%d,wrong=%d",
                      names[k], n, 2 * n + 4, n % 2);
            tb_shot *s = make_shot(T, "F2", set);
            TB_OKAY(T, tb_shot_scene(s, &scene));
            TB_CHECK(T, roles(scene, "box", NULL) == (size_t)n);
            TB_CHECK(T, roles(scene, "floor", NULL) == (size_t)n);
            TB_CHECK(T, roles(scene, "skip", NULL) == 0);
            TB_CHECK(T, roles(scene, "error", NULL) == (size_t)(n % 2));
            tb_scene_destroy(scene);
            tb_shot_destroy(s);
            check_faces(T, "F2", set);
        }
    /* another name on the box, and every number stays */
    for (size_t k = 0; k < TB_LEN(names); k++) {
        char set[64], all[256] = "";
        tb_format(set, sizeof set, "name=%s", names[k]);
        tb_shot *s = make_shot(T, "F2", set);
        const shot_house *h = panel_of(T, s, "house");
        for (size_t i = 0; h && i <= h->n; i++)
            tb_format(all + strlen(all), sizeof all - strlen(all), "%.17g ",
                      h->length[i]);
        if (k == 0)
            memcpy(first, all, sizeof first);
        TB_CHECK(T, tb_streq(all, first));
        tb_shot_destroy(s);
    }
}

/* The engine's own words, in the picture. */
TB_TEST(f2_wrong_box_is_refused)
{
    tb_shot *s = make_shot(T, "F2", "wrong=1,d=5");
    const shot_house *h = panel_of(T, s, "house");
    TB_CHECK(T, h && h->error && strstr(h->error, "widths differ: 5 and"));
    TB_CHECK(T, number_of(T, s, "d.out") == 6);
    tb_shot_destroy(s);
}

/* --- F3 ------------------------------------------------------------------- */

TB_TEST(f3_two_roads_home)
{
    for (int d = 2; d <= 16; d += 2) {
        char set[64];
        tb_scene *scene;
        bool broken = d % 4 == 0;
        tb_format(set, sizeof set, "d=%d,F=%s,broken=%d,seed=%d", d,
                  d < 8 ? "relu" : "linear", broken, d);
        tb_shot *s = make_shot(T, "F3", set);
        TB_OKAY(T, tb_shot_scene(s, &scene));
        TB_CHECK(T, roles(scene, "plus", NULL) == 2);
        TB_CHECK(T, roles(scene, "box", NULL) == 2);
        TB_CHECK(T, roles(scene, "grad-hw", NULL) == 2);
        TB_CHECK(T, roles(scene, "grad-br", NULL) == (broken ? 0 : 2));
        TB_CHECK(T, roles(scene, "grad-total", NULL) == 3);
        if (broken) {
            TB_CHECK(T, number_of(T, s, "E7.g.0") == number_of(T, s, "E7.g.2"));
            TB_CHECK(T, number_of(T, s, "E9.br.1") == 0);
        } else {
            TB_CHECK(T, number_of(T, s, "E9.br.1") > 0);
            TB_CHECK(T,
                     number_of(T, s, "E9.hw.1") == number_of(T, s, "E7.g.1"));
        }
        tb_scene_destroy(scene);
        tb_shot_destroy(s);
        check_faces(T, "F3", set);
    }
}

/* --- without memory ------------------------------------------------------- */

/* An allocation that fails ends a shot or one of its faces, nothing else. */
static tb_status all_faces(tb_test *T, const char *name, tb_shot **s,
                           tb_out **out)
{
    tb_terminal term = {.width = 80};
    TB_TRY(tb_shot_create(T->ctx, name, NULL, s));
    TB_TRY(tb_out_create(T->ctx, out));
    TB_TRY(tb_shot_svg(*s, NULL, *out));
    TB_TRY(tb_shot_term(*s, &term, *out));
    return tb_shot_html(*s, *out);
}

TB_TEST(no_memory)
{
    static const char *const names[] = {"F1", "F2", "F3", "F4", "F5",
                                        "S1", "S2", "S3", "S4"};
    for (size_t k = 0; k < TB_LEN(names); k++) {
        tb_status status = TB_ERR_MEMORY;
        tb_shot_destroy(
            make_shot(T, names[k], NULL)); /* what a context keeps */
        size_t blocks = tb_ctx_blocks(T->ctx);
        for (size_t n = 1; status == TB_ERR_MEMORY; n++) {
            tb_shot *s = NULL;
            tb_out *out = NULL;
            tb_ctx_fail_alloc_at(T->ctx, n);
            status = all_faces(T, names[k], &s, &out);
            tb_ctx_fail_alloc_at(T->ctx, 0);
            tb_out_destroy(out);
            tb_shot_destroy(s);
            TB_CHECK(T, tb_ctx_blocks(T->ctx) == blocks);
        }
        if (status != TB_OK)
            tb_test_fail(T, __FILE__, __LINE__, "%s: %s", names[k],
                         tb_error(T->ctx));
    }
}
