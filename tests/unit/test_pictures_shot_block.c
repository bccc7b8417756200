/* SPDX-License-Identifier: MIT */
/* S1 to S3: what is drawn of a block, and that its numbers are the engine's,
 * under every box, width and scale. */
#include "test_pictures_shot_help.h"

#include "pictures/shot_stage.h"

static const char *const boxes[] = {"linear", "relu", "attention", "zero"};

static tb_scene *scene_of(tb_test *T, const char *name, const char *set)
{
    tb_scene *scene = NULL;
    tb_shot *s = make_shot(T, name, set);
    TB_CHECK(T, tb_shot_scene(s, &scene) == TB_OK);
    tb_shot_destroy(s);
    return scene;
}

/* --- S1 ------------------------------------------------------------------- */

TB_TEST(s1_draws_one_box)
{
    for (int d = 2; d <= 16; d++) {
        char set[64];
        tb_format(set, sizeof set, "d=%d,F=%s", d, boxes[d % 4]);
        tb_scene *s = scene_of(T, "S1", set);
        TB_CHECK(T, roles(s, "box", NULL) == 1);
        TB_CHECK(T, roles(s, "skip", NULL) == 0);
        TB_CHECK(T, roles(s, "plus", NULL) == 0);
        TB_CHECK(T, roles(s, "norm", NULL) == 0);
        TB_CHECK(T, roles(s, "in-arrow", NULL) == 1);
        TB_CHECK(T, roles(s, "box-out", NULL) == 1);
        TB_CHECK(T, roles(s, "bar", NULL) == 2 * (size_t)d);
        tb_scene_destroy(s);
        check_faces(T, "S1", set);
    }
}

/* A bar below zero is drawn another way in a terminal too, and that is said. */
TB_TEST(s1_below_zero)
{
    static const char *const marks[] = {"\xE2\x96\x92", "-"};
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    for (int ascii = 0; ascii < 2; ascii++)
        for (int below = 0; below < 2; below++) {
            const tb_terminal term = {.width = 80, .ascii = ascii};
            char note[32];
            tb_shot *s =
                make_shot(T, "S1", below ? "x=[-5,5],F=zero" : "F=zero");
            tb_out_reset(out);
            TB_OKAY(T, tb_shot_term(s, &term, out));
            tb_format(note, sizeof note, "\n%s: below 0\n", marks[ascii]);
            TB_CHECK(T, !strstr(tb_out_str(out), note) == !below);
            tb_shot_destroy(s);
        }
    tb_out_destroy(out);
}

TB_TEST(s1_numbers)
{
    tb_shot *s = make_shot(T, "S1", "F=zero");
    TB_CHECK(T, number_of(T, s, "norm.F") == 0);
    TB_CHECK(T, number_of(T, s, "x.8") == 9);
    tb_shot_destroy(s);
    s = make_shot(T, "S1", "x=[3,4]"); /* as long as the list that is given */
    TB_CHECK(T, number_of(T, s, "d.out") == 2);
    TB_CHECK(T, number_of(T, s, "norm.x") == 5);
    tb_shot_destroy(s);
    s = make_shot(T, "S1", "x=[3,4],d=3"); /* and from its start again */
    TB_CHECK(T, number_of(T, s, "x.3") == 3);
    double f = number_of(T, s, "F.2");
    tb_shot_destroy(s);
    s = make_shot(T, "S1", "x=[3,4],d=3,scale=2");
    TB_CHECK(T, number_of(T, s, "F.2") == 2 * f);
    tb_shot_destroy(s);
    TB_FAILS(T, tb_shot_create(T->ctx, "S1", "x=[3]", &s), TB_ERR_SHAPE,
             "got 1 number, wanted 2 to 16");
}

/* --- S2 ------------------------------------------------------------------- */

/* Arrowheads (closed paths of three points) whose tip touches the plus. */
static size_t into_plus(tb_test *T, const tb_scene *s)
{
    const tb_item *plus = NULL;
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].style.role && tb_streq(s->items[i].style.role, "plus"))
            plus = &s->items[i];
    TB_CHECK(T, plus);
    for (size_t i = 0; plus && i < s->count; i++) {
        const tb_item *it = &s->items[i];
        if (it->kind != TB_ITEM_PATH || !it->closed || it->n != 3)
            continue;
        double x = it->xy[0] - plus->x, y = it->xy[1] - plus->y;
        n += x * x + y * y < (plus->w + 4) * (plus->w + 4);
    }
    return n;
}

TB_TEST(s2_adds_two_roads)
{
    tb_scene *s = scene_of(T, "S2", NULL);
    TB_CHECK(T, roles(s, "skip", NULL) == 1);
    TB_CHECK(T, roles(s, "plus", NULL) == 1);
    TB_CHECK(T, roles(s, "box", NULL) == 1);
    TB_CHECK(T, into_plus(T, s) == 2);
    tb_scene_destroy(s);
    s = scene_of(T, "S2", "skip=0");
    TB_CHECK(T, roles(s, "skip", NULL) == 0);
    TB_CHECK(T, into_plus(T, s) == 1);
    tb_scene_destroy(s);
}

TB_TEST(s2_without_correction_is_x)
{
    for (size_t k = 0; k < TB_LEN(boxes); k++) {
        char set[64];
        tb_format(set, sizeof set, "scale=0,F=%s,d=11", boxes[k]);
        tb_shot *s = make_shot(T, "S2", set);
        const shot_stage *st = panel_of(T, s, "stage");
        TB_CHECK(T, memcmp(st->x, st->y, 11 * sizeof *st->x) == 0);
        TB_CHECK(T, number_of(T, s, "E12.share") == 0);
        tb_shot_destroy(s);
        check_faces(T, "S2", set);
        tb_format(set, sizeof set, "scale=4,F=%s,d=16,skip=0", boxes[k]);
        check_faces(T, "S2", set);
        check_faces(T, "S2", set + strlen("scale=4,"));
    }
}

/* The widths of the two parts of a bar are to each other as the numbers. */
TB_TEST(s2_bars_are_stacked)
{
    tb_shot *s = make_shot(T, "S2", "x=[1,2,3],F=relu,seed=3");
    const shot_stage *st = panel_of(T, s, "stage");
    tb_scene *scene;
    TB_OKAY(T, tb_shot_scene(s, &scene));
    double unit = item_called(T, scene, "p0-x-3")->w / 3;
    for (size_t i = 0; i < 3; i++) {
        char id[32];
        tb_format(id, sizeof id, "p0-y-%zu", i + 1);
        TB_NEAR(T, item_called(T, scene, id)->w, unit * tb_fabs(st->x[i]),
                1e-9);
        tb_format(id, sizeof id, "p0-y-rest-%zu", i + 1);
        TB_NEAR(T, item_called(T, scene, id)->w, unit * tb_fabs(st->f[i]),
                1e-9);
        TB_NEAR(T, st->x[i] + st->f[i], st->y[i], 1e-12);
    }
    tb_scene_destroy(scene);
    tb_shot_destroy(s);
}

/* On x_3, F_3 and y_3 alike; without the skip each has its own. */
TB_TEST(s2_every_bar_says_the_sum)
{
    static const char *const ids[] = {"p0-x-3", "p0-F-3", "p0-y-3",
                                      "p0-y-rest-3"};
    tb_scene *s = scene_of(T, "S2", "x=[1,2,3],F=zero");
    for (size_t i = 0; i < TB_LEN(ids); i++)
        TB_STR(T, item_called(T, s, ids[i])->style.title,
               "x\xE2\x82\x83 + F\xE2\x82\x83 = y\xE2\x82\x83: 3 + 0 = 3");
    tb_scene_destroy(s);
    s = scene_of(T, "S2", "x=[1,2,3],F=zero,skip=0");
    TB_STR(T, item_called(T, s, "p0-x-3")->style.title, "x\xE2\x82\x83 = 3");
    tb_scene_destroy(s);
}

/* --- S3 ------------------------------------------------------------------- */

TB_TEST(s3_draws_two_roads_back)
{
    for (int d = 2; d <= 16; d += 2) {
        char set[64];
        tb_format(set, sizeof set, "d=%d,F=%s", d, boxes[d / 2 % 4]);
        tb_scene *s = scene_of(T, "S3", set);
        TB_CHECK(T, roles(s, "grad-hw", NULL) == 1);
        TB_CHECK(T, roles(s, "grad-br", NULL) == 1);
        TB_CHECK(T, roles(s, "grad-total", NULL) == 2);
        TB_CHECK(T, roles(s, "skip", NULL) == 1);
        TB_CHECK(T, roles(s, "jac", NULL) == 3);
        TB_CHECK(T, roles(s, "diag", NULL) == 3 * (size_t)d);
        TB_CHECK(T, roles(s, "jac-cell", NULL) == 3 * (size_t)(d * d));
        TB_CHECK(T, roles(s, "column", NULL) == 2);
        tb_scene_destroy(s);
        check_faces(T, "S3", set);
    }
    check_faces(T, "S3", "j=0,scale=4,J=numeric,h=1e-12");
    check_faces(T, "S3", "x=[10,-20,5],h=0.1,nudge=-2,F=relu,d=9");
}

/* A box that is off: width law and arrows say 1, 0 and 1. */
TB_TEST(s3_without_box)
{
    for (size_t k = 0; k < TB_LEN(boxes); k++) {
        char set[64];
        tb_format(set, sizeof set, "scale=0,F=%s", boxes[k]);
        tb_shot *s = make_shot(T, "S3", set);
        TB_CHECK(T, number_of(T, s, "E9.sum") == number_of(T, s, "E9.out"));
        TB_CHECK(T, number_of(T, s, "E9.br") == 0);
        TB_CHECK(T, number_of(T, s, "E11.trace") == 1);
        TB_CHECK(T, number_of(T, s, "sigma.max") == 1);
        TB_CHECK(T, number_of(T, s, "sigma.min") == 1);
        TB_CHECK(T, number_of(T, s, "E10.entry") <= 1e-9);
        tb_scene *scene;
        TB_OKAY(T, tb_shot_scene(s, &scene));
        TB_NEAR(T, item_called(T, scene, "p0-grad-hw")->style.line, 10, 1e-9);
        TB_NEAR(T, item_called(T, scene, "p0-grad-br")->style.line, 1, 1e-9);
        tb_scene_destroy(scene);
        tb_shot_destroy(s);
    }
}

/* Of one linear box: J - I is scale times the weights, so twice the scale is
 * twice the branch, and the gradient's own part stays. */
TB_TEST(s3_scale)
{
    tb_shot *a = make_shot(T, "S3", "F=linear,scale=1");
    tb_shot *b = make_shot(T, "S3", "F=linear,scale=2");
    TB_NEAR(T, number_of(T, b, "E11.branch"), 2 * number_of(T, a, "E11.branch"),
            1e-12);
    TB_NEAR(T, number_of(T, b, "E9.br"), 2 * number_of(T, a, "E9.br"), 1e-12);
    TB_NEAR(T, number_of(T, b, "E9.cos"), number_of(T, a, "E9.cos"), 1e-12);
    TB_CHECK(T, number_of(T, b, "E9.hw") == number_of(T, a, "E9.hw"));
    tb_shot_destroy(a);
    tb_shot_destroy(b);
}

/* Every check holds for many boxes and seeds. */
TB_TEST(s3_holds_everywhere)
{
    static const int widths[] = {2, 5, 8, 16};
    for (int seed = 0; seed < 6; seed++)
        for (size_t k = 0; k < TB_LEN(boxes); k++)
            for (size_t w = 0; w < TB_LEN(widths); w++) {
                char set[64];
                tb_format(set, sizeof set, "seed=%d,F=%s,d=%d,T=%d,j=%d", seed,
                          boxes[k], widths[w], seed + 1, seed);
                tb_shot_destroy(make_shot(T, "S3", set));
            }
}
