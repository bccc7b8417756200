/* SPDX-License-Identifier: MIT */
/* S7: the numbers of its cards, held against those known without the engine,
 * and what each card draws. */
#include "test_pictures_shot_help.h"

#include "tollbooth/shot.h"

static double ask(tb_test *T, const char *set, const char *id)
{
    tb_shot *s = make_shot(T, "S7", set);
    double v = number_of(T, s, id);
    tb_shot_destroy(s);
    return v;
}

/* a: J_LN of mean 5, variance 4 has 1/2 six times; paid once, not N times. */
TB_TEST(silent_branch)
{
    tb_shot *s = make_shot(T, "S7", "card=a,eps=0,N=32");
    const tb_heat *h = panel_of(T, s, "heat");
    TB_CHECK(T, h->values[0] == 0.296875 && h->values[7] == 0.125);
    TB_NEAR(T, number_of(T, s, "E3.max"), 0.5, 1e-12);
    TB_CHECK(T, number_of(T, s, "rank") == 6);
    TB_CHECK(T, number_of(T, s, "pre.off") == 0);
    tb_shot_destroy(s);
    double deep = ask(T, "card=a,N=32", "E3.max.N");
    TB_CHECK(T, deep > 0.499 && deep < 0.5);
}

/* b: the sweep of reference numbers at eps 1e-5 */
TB_TEST(flat_list)
{
    static const struct {
        const char *set;
        double most, radial;
    } known[] = {
        {"sigma=0", 316.2278, 316.2278}, {"sigma=1e-4", 316.07, 315.75},
        {"sigma=1e-3", 301.51, 274.10},  {"sigma=1e-2", 95.346, 8.668},
        {"sigma=0.1", 9.9950, 9.985e-3}, {"sigma=1", 1, 1e-5},
        {"sigma=10", 0.1, 1e-8}};
    for (size_t i = 0; i < TB_LEN(known); i++) {
        tb_shot *s = make_shot(T, "S7", known[i].set);
        double most = number_of(T, s, "E3.max"),
               radial = number_of(T, s, "E3.radial");
        TB_NEAR(T, most / known[i].most, 1, 1e-4);
        TB_NEAR(T, radial / known[i].radial, 1, 1e-3);
        TB_CHECK(T, tb_shot_refused(s) == TB_OK);
        tb_shot_destroy(s);
    }
    TB_NEAR(T, ask(T, "sigma=0.001", "E1.std.out"), 0.3015, 1e-4);
    TB_NEAR(T, ask(T, "sigma=0,eps=1e-6", "E3.max"), 1000, 1e-6);
}

/* No number where there is none: the picture says what the engine said. */
TB_TEST(refused)
{
    tb_shot *s = make_shot(T, "S7", "sigma=0,eps=0");
    tb_out *out;
    TB_CHECK(T, tb_shot_refused(s) == TB_ERR_INPUT);
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_shot_term(s, NULL, out));
    TB_CHECK(T, strstr(tb_out_str(out), "zero variance"));
    TB_CHECK(T, !strstr(tb_out_str(out), "nan") &&
                    !strstr(tb_out_str(out), "inf"));
    tb_out_reset(out);
    TB_OKAY(T, tb_shot_svg(s, NULL, out));
    TB_CHECK(T, !strstr(tb_out_str(out), "nan"));
    tb_out_destroy(out);
    tb_shot_destroy(s);
}

/* c: tolls fall as the branch grows; the lane of Pre-LN does not know it */
TB_TEST(huge_branch)
{
    static const char *const sets[] = {"variance=0,N=6", "variance=1,N=6",
                                       "variance=10,N=6", "variance=100,N=6"};
    double before = 2;
    for (size_t i = 0; i < TB_LEN(sets); i++) {
        double toll = ask(T, sets[i], "E5.median");
        TB_CHECK(T, toll < before);
        TB_CHECK(T, ask(T, sets[i], "E6.pre") == 1);
        before = toll;
    }
}

/* A lane smaller than any float is what S5 says, not 0. */
TB_TEST(a_lane_too_small_for_floats)
{
    tb_shot *s = make_shot(T, "S5", "N=48,v=10,d=16,T=4");
    double lane = number_of(T, s, "E6.lane");
    TB_CHECK(T, lane > 0 && lane < 1e-38);
    tb_shot_destroy(s);
    TB_CHECK(T, ask(T, "N=48,v=10,d=16,T=4", "E6.post") == lane);
    TB_CHECK(T, ask(T, "card=d,N=48,v=10,d=16,T=4", "E6.post") == lane);
    lane = ask(T, "card=c,N=96,variance=100,d=16,T=4", "E6.post");
    TB_CHECK(T, lane > 0 && lane < 1e-60);
}

/* d: measured stacks, Post-LN's lane strictly falling, Pre-LN's flat */
TB_TEST(depth)
{
    tb_shot *s = make_shot(T, "S7", "card=d,N=48");
    const tb_chart *c = panel_of(T, s, "chart");
    const tb_series *post = &c->series[0], *pre = &c->series[2];
    TB_REQUIRE(T, c->count == 4 && post->n == 7 && c->log_y);
    TB_CHECK(T, post->x[0] == 1 && post->x[6] == 48);
    for (size_t i = 1; i < post->n; i++)
        TB_CHECK(T, post->y[i] < post->y[i - 1] && pre->y[i] == 1);
    tb_shot_destroy(s);
    TB_CHECK(T, ask(T, "card=d,N=1", "E6.pre") == 1);
}

/* e: a row of ones against a Jacobian whose columns sum to 0 */
TB_TEST(sum_of_outputs)
{
    tb_shot *s = make_shot(T, "S7", "card=e,z=[0.3,-1.7,2.2,0.9,5.1]");
    tb_scene *scene;
    TB_CHECK(T, number_of(T, s, "g") <= 1e-12);
    TB_CHECK(T, number_of(T, s, "g.one") > 0.1);
    TB_OKAY(T, tb_shot_scene(s, &scene));
    const tb_item *back = item_called(T, scene, "p0-grad-sum");
    TB_REQUIRE(T, back);
    TB_NEAR(T, back->style.line, 1, 1e-9);
    tb_scene_destroy(scene);
    tb_shot_destroy(s);
}

/* f: whichever floor it is, it is found by its lane */
TB_TEST(deleted_skip)
{
    static const struct {
        const char *set;
        double floor;
    } cuts[] = {{"cut=1,N=6", 1}, {"cut=4,N=6", 4}, {"cut=6,N=6", 6}};
    for (size_t i = 0; i < TB_LEN(cuts); i++) {
        tb_shot *s = make_shot(T, "S7", cuts[i].set);
        tb_scene *scene;
        TB_CHECK(T, number_of(T, s, "found") == cuts[i].floor);
        TB_CHECK(T, number_of(T, s, "E6.cut") == 0);
        TB_CHECK(T, number_of(T, s, "E7.below") < number_of(T, s, "E7.above"));
        TB_OKAY(T, tb_shot_scene(s, &scene));
        TB_CHECK(T, roles(scene, "cut", NULL) == 1);
        tb_scene_destroy(scene);
        tb_shot_destroy(s);
    }
    TB_CHECK(T, ask(T, "card=f,N=6", "found") == 3); /* in the middle */
    TB_CHECK(T, ask(T, "cut=7,N=6", "found") == 6);  /* at the top */
}

TB_TEST(stacks_side_by_side)
{
    tb_shot *s = make_shot(T, "S7", NULL);
    tb_scene *scene;
    TB_OKAY(T, tb_shot_scene(s, &scene));
    const tb_item *post = item_called(T, scene, "p0-hw-1"),
                  *pre = item_called(T, scene, "p1-hw-1");
    TB_REQUIRE(T, post && pre);
    TB_CHECK(T, post->style.dash == TB_DASHED &&
                    post->style.stroke == TB_TONE_BAD);
    TB_CHECK(T, pre->style.dash == TB_SOLID && pre->style.line == 10);
    TB_NEAR(T, post->xy[3], pre->xy[3], 8); /* the same floor, as high */
    tb_scene_destroy(scene);
    tb_shot_destroy(s);
}

TB_TEST(every_card)
{
    static const char *const sets[] = {"card=stacks,N=1",
                                       "card=stacks,N=96,d=8,T=4",
                                       "card=a",
                                       "card=a,z=[3,3,3],N=2",
                                       "card=a,eps=0.1,N=96",
                                       "card=b,sigma=0.5,eps=0",
                                       "card=b,eps=0",
                                       "card=b,sigma=0.02",
                                       "card=c,N=3",
                                       "card=c,variance=0,N=2",
                                       "card=d,N=96,d=8,T=4",
                                       "card=d,init=normal(0.02),N=5",
                                       "card=e,z=[1]",
                                       "card=e,eps=0.1",
                                       "card=f,branch=linear,N=12"};
    for (size_t i = 0; i < TB_LEN(sets); i++)
        check_faces(T, "S7", sets[i]);
}
