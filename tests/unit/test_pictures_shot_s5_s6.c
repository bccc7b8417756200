/* SPDX-License-Identifier: MIT */
/* S5 and S6: where the booths stand, what the arrows weigh, and numbers that
 * are known without the engine. */
#include "test_pictures_shot_help.h"

static void draw(tb_test *T, const char *name, const char *set, tb_scene **out)
{
    tb_shot *s;
    TB_OKAY(T, tb_shot_create(T->ctx, name, set, &s));
    TB_OKAY(T, tb_shot_scene(s, out));
    tb_shot_destroy(s);
}

static const tb_item *part(tb_test *T, const tb_scene *s, const char *what,
                           size_t k)
{
    char id[40];
    tb_format(id, sizeof id, "p1-%s-%zu", what, k);
    return item_called(T, s, id);
}

/* Over the lane and over both ways back, or over none of them. */
static void check_booth(tb_test *T, const tb_scene *s, size_t k, bool astride)
{
    const tb_item *toll = part(T, s, "toll", k), *lane = part(T, s, "skip", k),
                  *hw = part(T, s, "hw", k), *total = part(T, s, "total", k);
    TB_REQUIRE(T, toll && lane && hw && total);
    const double x[] = {lane->xy[0], hw->xy[0], total->xy[0]};
    size_t over = 0;
    for (size_t i = 0; i < 3; i++)
        over += x[i] > toll->x && x[i] < toll->x + toll->w;
    TB_CHECK(T, over == (astride ? 3 : 0));
}

TB_TEST(booths)
{
    static const size_t floors[] = {1, 2, 6, 24, 96};
    for (size_t i = 0; i < TB_LEN(floors); i++) {
        char set[40];
        size_t n = floors[i];
        tb_format(set, sizeof set, "N=%zu,d=8,T=4", n);
        tb_scene *post, *pre;
        draw(T, "S5", set, &post);
        draw(T, "S6", set, &pre);
        TB_CHECK(T, roles(post, "toll", NULL) == n);
        TB_CHECK(T, roles(pre, "toll", NULL) == n + 1);
        TB_CHECK(T, roles(pre, "toll", "toll-exit") == 1);
        for (size_t k = 1; k <= n; k++) {
            check_booth(T, post, k, true);
            check_booth(T, pre, k, false);
        }
        tb_scene_destroy(post);
        tb_scene_destroy(pre);
    }
}

TB_TEST(clean_lane_is_equally_wide)
{
    tb_scene *s;
    draw(T, "S6", NULL, &s);
    for (size_t k = 1; k <= 24; k++)
        TB_NEAR(T, part(T, s, "hw", k)->style.line, 10, 0.05);
    tb_scene_destroy(s);
    draw(T, "S5", NULL, &s);
    TB_CHECK(T, part(T, s, "hw", 1)->style.line < 5);
    TB_CHECK(T, part(T, s, "hw", 1)->style.dash == TB_DASHED);
    tb_scene_destroy(s);
}

/* What S5 has, S6 has under the same name; a page moves one into the other. */
TB_TEST(parts_keep_their_ids)
{
    tb_scene *post, *pre;
    size_t same = 0;
    draw(T, "S5", "N=6", &post);
    draw(T, "S6", "N=6", &pre);
    for (size_t i = 0; i < post->count; i++) {
        const char *id = post->items[i].style.id;
        same += id && item_called(T, pre, id);
    }
    TB_CHECK(T, same > 6 * 8);
    const tb_item *a = item_called(T, post, "p1-box-3"),
                  *b = item_called(T, pre, "p1-box-3");
    TB_NEAR(T, a->x, b->x, 1e-9);
    tb_scene_destroy(post);
    tb_scene_destroy(pre);
}

TB_TEST(tolls_multiply)
{
    tb_shot *s;
    double product = 1, tau = 1;
    TB_OKAY(T, tb_shot_create(T->ctx, "S5", "N=48,seed=3", &s));
    for (size_t k = 1; k <= 48; k++) {
        char id[40];
        tb_format(id, sizeof id, "E5.toll.%zu", k);
        product *= number_of(T, s, id);
        tb_format(id, sizeof id, "E5.tau.%zu", k);
        tau *= number_of(T, s, id);
    }
    TB_NEAR(T, product / number_of(T, s, "E6.product"), 1, 1e-9);
    TB_NEAR(T, tau / number_of(T, s, "E6.scalar"), 1, 1e-9);
    tb_shot_destroy(s);
}

/* One floor of one token: the matrix is J_LN itself. No branch: later floors
 * let pass what the first did. */
TB_TEST(booths_multiplied_out)
{
    tb_shot *s = make_shot(T, "S5", "N=1,T=1,d=8,eps=0");
    double tau = number_of(T, s, "E5.tau.1");
    TB_NEAR(T, number_of(T, s, "E6.max"), tau, 1e-9);
    TB_NEAR(T, number_of(T, s, "E6.rms"), tau * 0.8660254037844386, 1e-9);
    tb_shot_destroy(s);
    s = make_shot(T, "S5", "N=5,T=3,d=8,v=0,eps=0");
    TB_NEAR(T, number_of(T, s, "E6.rms") / number_of(T, s, "E6.max"),
            0.8660254037844386, 1e-9);
    tb_shot_destroy(s);
}

/* A matrix of variance 1/d keeps the variance, so s is sqrt(1 + v^2). */
TB_TEST(toll_of_a_linear_branch)
{
    static const struct {
        const char *set;
        double tau;
    } known[] = {
        {"N=1,d=256,T=64,branch=linear", 0.7071},
        {"N=1,d=256,T=64,branch=linear,v=0.5", 0.8944},
        {"N=1,d=256,T=64,branch=linear,v=2,seed=5", 0.4472},
        {"N=1,d=256,T=64,branch=linear,v=10", 0.0995},
    };
    for (size_t i = 0; i < TB_LEN(known); i++) {
        tb_shot *s;
        TB_OKAY(T, tb_shot_create(T->ctx, "S5", known[i].set, &s));
        TB_NEAR(T, number_of(T, s, "E5.tau.1"), known[i].tau, 0.02);
        tb_shot_destroy(s);
    }
}

/* d - 2 directions at 1/s, one at eps/s^3, one not at all. */
TB_TEST(opened_booth)
{
    tb_shot *s;
    TB_OKAY(T, tb_shot_create(T->ctx, "S5", "N=3,d=8,T=2,open=2,eps=0.01", &s));
    double top = number_of(T, s, "E3.max");
    TB_NEAR(T, number_of(T, s, "E3.radial"), 0.01 * top * top * top, 1e-12);
    tb_shot_destroy(s);
    s = make_shot(T, "S5", "N=3,d=8,T=2,open=9"); /* the top */
    double last = number_of(T, s, "E3.max");
    tb_shot_destroy(s);
    s = make_shot(T, "S5", "N=3,d=8,T=2,open=3");
    TB_CHECK(T, number_of(T, s, "E3.max") == last);
    tb_shot_destroy(s);
}

/* E7 by token; E12: the spread of x on every floor, on hover and as text. */
TB_TEST(tokens_and_spreads)
{
    tb_scene *scene;
    tb_out *out;
    tb_shot *s = make_shot(T, "S6", "N=3,d=8,T=4");
    double total = number_of(T, s, "E7.total");
    TB_CHECK(T, number_of(T, s, "E7.token.least") < total &&
                    number_of(T, s, "E7.token.most") > total);
    TB_OKAY(T, tb_shot_scene(s, &scene));
    const tb_item *booth = part(T, scene, "toll", 2);
    TB_REQUIRE(T, booth && booth->style.title);
    TB_CHECK(T, strstr(booth->style.title, "; spread of x above it 1."));
    tb_scene_destroy(scene);
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_shot_term(s, NULL, out));
    TB_CHECK(T, strstr(tb_out_str(out), "  std x  "));
    tb_out_destroy(out);
    tb_shot_destroy(s);
    s = make_shot(T, "S5", "N=3,d=8,T=1"); /* there is one */
    TB_NEAR(T, number_of(T, s, "E7.token.least"),
            number_of(T, s, "E7.token.most"), 1e-12);
    tb_shot_destroy(s);
}

TB_TEST(other_settings)
{
    static const char *const sets[] = {
        "N=1",
        "N=2,T=1,v=0",
        "N=6,v=4,show=lane",
        "N=96,d=16,T=8,show=total",
        "N=24,branch=linear,init=he,eps=0.1",
        "N=12,init=normal(0.02),open=12,d=16",
        "N=13,init=xavier/sqrt(2L),seed=9",
        "N=1,init=xavier/sqrt(2L),branch=linear,v=100",
    };
    for (size_t i = 0; i < TB_LEN(sets); i++) {
        check_faces(T, "S5", sets[i]);
        check_faces(T, "S6", sets[i]);
    }
    check_faces(T, "S6", "N=5,final=0,eps=0");
    check_faces(T, "S5", "N=4,v=100,d=4,T=1,open=4");
    check_faces(T, "S6", "N=4,v=100,d=4,T=1,open=4");
}
