/* SPDX-License-Identifier: MIT */
/* S4: the reference numbers of a norm, and what is drawn of it. */
#include "test_pictures_shot_help.h"

#include "pictures/shot_norm.h"

static const shot_norm_of *norm_of(tb_test *T, const tb_shot *s)
{
    const shot_norm_panel *p = panel_of(T, s, "norm");
    return p ? p->norm : NULL;
}

/* z = (2,4,4,4,5,5,7,9): every number is a sum of powers of two. */
TB_TEST(reference_numbers_are_exact)
{
    static const double hat[] = {-1.5, -0.5, -0.5, -0.5, 0, 0, 1, 2};
    static const double first[] = {0.296875, -0.109375, -0.109375, -0.109375,
                                   -0.0625,  -0.0625,   0.03125,   0.125};
    static const double last[] = {0.125,   0,       0,       0,
                                  -0.0625, -0.0625, -0.1875, 0.1875};
    tb_shot *s = make_shot(T, "S4", NULL);
    const shot_norm_of *n = norm_of(T, s);
    TB_REQUIRE(T, n);
    TB_CHECK(T, n->mu == 5 && n->var == 4 && n->sigma == 2 && n->s == 2);
    for (size_t i = 0; i < 8; i++) {
        double sum = 0;
        TB_CHECK(T, n->hat[i] == hat[i] && n->out[i] == hat[i]);
        TB_CHECK(T, n->jacobian[i] == first[i]);
        TB_CHECK(T, n->jacobian[7 * 8 + i] == last[i]);
        for (size_t k = 0; k < 8; k++)
            sum += n->jacobian[k * 8 + i];
        TB_CHECK(T, sum == 0);
        TB_NEAR(T, n->singular[i], i < 6 ? 0.5 : 0, 1e-15);
    }
    TB_NEAR(T, number_of(T, s, "E3.frobenius"), 1.2247448713915890, 1e-14);
    TB_CHECK(T, number_of(T, s, "E1.mu") == 5);
    TB_CHECK(T, number_of(T, s, "E3.radial") == 0);
    tb_shot_destroy(s);
}

/* [-1,1] has spread 1; eps 1e-5. */
TB_TEST(sweep_of_the_spread)
{
    static const struct {
        double sigma, largest, radial;
    } rows[] = {{1e-4, 316.07, 315.75},    {1e-3, 301.51, 274.10},
                {1e-2, 95.346, 8.668},     {0.1, 9.9950, 9.99e-3},
                {1, 0.999995, 9.99985e-6}, {10, 0.1, 1e-8}};
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        char set[64];
        tb_format(set, sizeof set, "z=[-1,1,-1,1],eps=1e-5,wild=%g",
                  rows[i].sigma);
        tb_shot *s = make_shot(T, "S4", set);
        TB_NEAR(T, number_of(T, s, "E3.largest") / rows[i].largest, 1, 2e-5);
        TB_NEAR(T, number_of(T, s, "E3.radial") / rows[i].radial, 1, 5e-4);
        if (rows[i].sigma == 1e-3)
            TB_NEAR(T, number_of(T, s, "out.std"), 0.3015, 5e-5);
        tb_shot_destroy(s);
    }
}

TB_TEST(flat_list)
{
    tb_shot *s = make_shot(T, "S4", "z=[3,3,3],eps=1e-5,bias=[7]");
    TB_NEAR(T, number_of(T, s, "E3.largest"), 316.2277660168379, 1e-9);
    TB_CHECK(T, number_of(T, s, "hat.1") == 0);
    TB_CHECK(T, number_of(T, s, "out.3") == 7);
    tb_shot_destroy(s);
    TB_FAILS(T, tb_shot_create(T->ctx, "S4", "z=[3,3,3],eps=0", &s),
             TB_ERR_INPUT, "zero variance with eps = 0");
}

TB_TEST(rmsnorm_keeps_the_mean)
{
    tb_shot *s = make_shot(T, "S4", "norm=rmsnorm,offset=3");
    double mean = number_of(T, s, "out.mean");
    TB_CHECK(T, mean > 0.5);
    TB_NEAR(T, mean, number_of(T, s, "E1.mu") / number_of(T, s, "E1.s"), 1e-12);
    tb_shot_destroy(s);
}

TB_TEST(steps_open_strips)
{
    static const char *const steps[] = {"list", "subtract", "divide", "scale",
                                        "shift"};
    static const size_t open[] = {1, 2, 3, 4, 4};
    for (size_t k = 0; k < TB_LEN(steps); k++)
        for (size_t d = 2; d <= 16; d += 7) {
            char set[96];
            tb_scene *scene;
            tb_format(set, sizeof set, "step=%s,d=%zu,gain=[2,-1],bias=[1]",
                      steps[k], d);
            tb_shot *s = make_shot(T, "S4", set);
            TB_OKAY(T, tb_shot_scene(s, &scene));
            TB_CHECK(T, roles(scene, "mu-line", NULL) == open[k]);
            TB_CHECK(T, roles(scene, "sigma-band", NULL) == open[k]);
            TB_CHECK(T, roles(scene, "jac", NULL) == 1);
            TB_CHECK(T, roles(scene, "diag", NULL) == d);
            TB_CHECK(T, roles(scene, "bar", NULL) == d * (open[k] + 1));
            tb_scene_destroy(scene);
            tb_shot_destroy(s);
            check_faces(T, "S4", set);
        }
    check_faces(T, "S4", "norm=rmsnorm,eps=0.1,wild=1000,offset=-100");
    check_faces(T, "S4", "wild=1e-6,eps=1e-9,d=3");
}

/* Bars of the third strip are as long as the squeezed numbers say. */
TB_TEST(bars_are_the_squeezed_numbers)
{
    tb_scene *scene;
    tb_shot *s = make_shot(T, "S4", NULL);
    const shot_norm_of *n = norm_of(T, s);
    TB_OKAY(T, tb_shot_scene(s, &scene));
    double unit = item_called(T, scene, "p1-bar-1-8")->w / 9;
    for (size_t i = 0; i < 8; i++) {
        char id[32];
        tb_format(id, sizeof id, "p1-bar-3-%zu", i + 1);
        TB_NEAR(T, item_called(T, scene, id)->w, unit * tb_fabs(n->hat[i]),
                1e-9);
    }
    tb_scene_destroy(scene);
    tb_shot_destroy(s);
}

/* A strip too small for the common axis is drawn larger, and says how much. */
TB_TEST(small_strips_are_drawn_larger)
{
    static const struct {
        const char *set, *label;
        double times;
    } known[] = {{"wild=1", NULL, 1},
                 {"wild=1000",
                  "drawn \xC3\x97"
                  "1000",
                  1000},
                 {"wild=1000,norm=rmsnorm",
                  "drawn \xC3\x97"
                  "1000",
                  1000}};
    for (size_t i = 0; i < TB_LEN(known); i++) {
        tb_scene *scene;
        size_t labels = 0;
        tb_shot *s = make_shot(T, "S4", known[i].set);
        const shot_norm_of *n = norm_of(T, s);
        TB_OKAY(T, tb_shot_scene(s, &scene));
        double unit = item_called(T, scene, "p1-bar-1-8")->w / n->z[7];
        TB_NEAR(T, item_called(T, scene, "p1-bar-3-8")->w,
                unit * known[i].times * n->hat[7], 1e-9);
        for (size_t k = 0; k < scene->count; k++)
            labels += scene->items[k].text && known[i].label &&
                      tb_streq(scene->items[k].text, known[i].label);
        TB_CHECK(T, labels == (known[i].label ? 2 : 0));
        tb_scene_destroy(scene);
        tb_shot_destroy(s);
    }
    check_faces(T, "S4", "wild=1e-6,offset=-100,eps=1e-5");
    check_faces(T, "S4", "wild=1000,d=2");
}

/* Every check holds whatever the list. */
TB_TEST(holds_everywhere)
{
    for (size_t k = 0; k < 60; k++) {
        char set[128];
        tb_format(set, sizeof set,
                  "z=[%g,%g,%g],d=%zu,eps=%g,wild=%g,offset=%zu,norm=%s",
                  4 * tb_test_normal(T), tb_test_normal(T),
                  3.0 + 0.01 * tb_test_normal(T), 2 + k % 15,
                  k % 3 ? 1e-5 : 0.0, k % 2 ? 0.01 : 20.0, k,
                  k % 4 ? "layernorm" : "rmsnorm");
        tb_shot_destroy(make_shot(T, "S4", set));
    }
}
