/* SPDX-License-Identifier: MIT */
/* SUM: sizes of cards, and a difference that is no colour. */
#include "test_pictures_shot_help.h"

TB_TEST(sizes)
{
    static const struct {
        const char *set;
        double h;
    } sizes[] = {{"size=social", 315}, {"size=a4,N=96,d=16", 424}};
    for (size_t i = 0; i < TB_LEN(sizes); i++) {
        tb_shot *s = make_shot(T, "SUM", sizes[i].set);
        tb_scene *scene;
        TB_OKAY(T, tb_shot_scene(s, &scene));
        TB_NEAR(T, scene->w, 600, 1e-9); /* 12 px at 600 px are 12 px */
        TB_NEAR(T, scene->h, sizes[i].h, 1e-9);
        tb_scene_destroy(scene);
        tb_shot_destroy(s);
        check_faces(T, "SUM", sizes[i].set);
    }
    check_faces(T, "SUM", "N=1,v=0");
    check_faces(T, "SUM", "N=96,v=100,d=4,T=1,size=social");
    check_faces(T, "SUM", "N=6,v=2,branch=linear");
}

/* Barrier and dash on the left, neither on the right's lane. */
TB_TEST(seen_without_colour)
{
    tb_shot *s = make_shot(T, "SUM", NULL);
    tb_scene *scene;
    TB_OKAY(T, tb_shot_scene(s, &scene));
    const tb_item *left = item_called(T, scene, "p0-post-grad-hw"),
                  *right = item_called(T, scene, "p0-pre-grad-hw");
    TB_REQUIRE(T, left && right);
    TB_CHECK(T, left->style.dash == TB_DASHED);
    TB_CHECK(T, right->style.dash == TB_SOLID);
    TB_CHECK(T, roles(scene, "diag", "identity") == 2);
    TB_CHECK(T, roles(scene, "norm", "booth") == 2);
    double post = number_of(T, s, "E6.post");
    TB_CHECK(T, post > 0 && post < 0.1 && number_of(T, s, "E6.pre") == 1);
    tb_scene_destroy(scene);
    tb_shot_destroy(s);
}

/* The same stacks as S5 and S6. */
TB_TEST(same_numbers_as_the_towers)
{
    tb_shot *sum = make_shot(T, "SUM", "N=7,seed=4"),
            *post = make_shot(T, "S5", "N=7,seed=4"),
            *pre = make_shot(T, "S6", "N=7,seed=4");
    TB_CHECK(T, number_of(T, sum, "E6.post") == number_of(T, post, "E6.lane"));
    TB_CHECK(T, number_of(T, sum, "E7.post") == number_of(T, post, "E7.total"));
    TB_CHECK(T, number_of(T, sum, "E7.pre") == number_of(T, pre, "E7.total"));
    tb_shot_destroy(sum);
    tb_shot_destroy(post);
    tb_shot_destroy(pre);
}
