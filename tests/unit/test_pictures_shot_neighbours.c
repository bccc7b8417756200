/* SPDX-License-Identifier: MIT */
/* N1-N7 and batchnorm: their figures under other settings, and what their
 * inputs change. */
#include "test_pictures_shot_help.h"

TB_TEST(other_settings)
{
    static const char *const known[][2] = {
        {"N1", "T=2,sharp=0"},
        {"N1", "T=8,sharp=20,turn=1,seed=3"},
        {"N2", "heads=1,T=8"},
        {"N2", "heads=2,T=2,sharp=0"},
        {"N3", "T=2,d=2"},
        {"N3", "T=32,d=32,base=2,list=random,seed=3"},
        {"N4", "T=8,sharp=20,token=8"},
        {"N4", "T=2,sharp=0,token=1"},
        {"N5", "N=1"},
        {"N5", "N=24,seed=9"},
        {"N6", "N=1"},
        {"N6", "N=24,seed=9"},
        {"N7", "N=1,seed=5"},
        {"batchnorm", "padding=[5,0,10,1],token=5,feature=3"},
        {"batchnorm", "x=[[1],[1]],padding=[0]"}};
    for (size_t i = 0; i < TB_LEN(known); i++)
        check_faces(T, known[i][0], known[i][1]);
}

/* Without positions the order does not count, with them it does. */
TB_TEST(order_of_tokens)
{
    for (int turn = 0; turn < 2; turn++) {
        char set[40];
        tb_format(set, sizeof set, "turn=%d,T=6,seed=4", turn);
        tb_shot *s = make_shot(T, "N1", set);
        double order = number_of(T, s, "order");
        TB_CHECK(T, turn ? order > 0.01 : order < 1e-12);
        tb_shot_destroy(s);
    }
}

/* A token that is asked nothing in particular still gives its value. */
TB_TEST(gradient_comes_home_by_values)
{
    tb_shot *s = make_shot(T, "N4", "sharp=0,T=3,token=1");
    const tb_bars *b = panel_of(T, s, "bars");
    TB_REQUIRE(T, b->n == 3);
    TB_CHECK(T, b->values[0] > 0);
    for (size_t j = 1; j < 3; j++) /* equal weights, equal shares */
        TB_NEAR(T, b->values[j], b->values[0], 1e-12);
    tb_shot_destroy(s);
}

/* The total of post-LN stays while its lane alone fades. */
TB_TEST(lane_and_total)
{
    tb_shot *s = make_shot(T, "N5", "N=24");
    const tb_chart *c = panel_of(T, s, "chart");
    TB_CHECK(T, c->count == 5);
    TB_CHECK(T, number_of(T, s, "E6.post") < 0.001);
    TB_CHECK(T, number_of(T, s, "E7.post") > 0.1);
    TB_CHECK(T, number_of(T, s, "E6.pre") == 1);
    tb_shot_destroy(s);
}

/* Both placements start at 1, the loss before the step. */
TB_TEST(steps_are_relative)
{
    tb_shot *s = make_shot(T, "N7", "N=2");
    const tb_chart *c = panel_of(T, s, "chart");
    TB_REQUIRE(T, c->count == 2 && c->has_ref && c->ref == 1);
    for (size_t i = 0; i < 2; i++)
        TB_NEAR(T, c->series[i].y[0], 1, 0.01);
    tb_shot_destroy(s);
}

TB_TEST(padding_in_any_order)
{
    tb_shot *a = make_shot(T, "batchnorm", "padding=[10,0,5]");
    tb_shot *b = make_shot(T, "batchnorm", "padding=[0,5,10]");
    const tb_chart *x = panel_of(T, a, "chart"), *y = panel_of(T, b, "chart");
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++)
            TB_CHECK(T, x->series[i].y[k] == y->series[i].y[k] &&
                            x->series[i].x[k] == y->series[i].x[k]);
    tb_shot_destroy(a);
    tb_shot_destroy(b);
}
