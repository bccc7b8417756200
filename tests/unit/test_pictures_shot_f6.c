/* SPDX-License-Identifier: MIT */
/* F6: beads and equation are one thing. */
#include "test_pictures_shot_help.h"

#include "pictures/shot_f6.h"
#include "tollbooth/explain.h"

static bool same_beads(const f6_beads *a, const f6_beads *b)
{
    return a->fork == b->fork && a->skip == b->skip && a->before == b->before &&
           a->behind == b->behind && a->merged == b->merged;
}

/* Dropping a bead writes the equation; typing that equation parks the bead. */
TB_TEST(order_and_equation)
{
    static const struct {
        const char *order, *equation;
    } drops[] = {{"post", "x = norm(x + F(x))"},
                 {"pre", "x = x + F(norm(x))"},
                 {"sandwich", "x = x + norm(F(norm(x)))"},
                 {"both", "x = norm(x) + F(norm(x))"},
                 {"output", "x = x + norm(F(x))"},
                 {"double", "x = norm(x + F(norm(x)))"},
                 {"skip", "x = norm(x) + F(x)"},
                 {"fork", "n = norm(x); x = n + F(n)"},
                 {"none", "x = x + F(x)"}};
    for (size_t i = 0; i < TB_LEN(drops); i++) {
        char set[120];
        tb_format(set, sizeof set, "order=%s", drops[i].order);
        tb_shot *a = make_shot(T, "F6", set);
        const f6_beads *x = panel_of(T, a, "beads");
        TB_CHECK(T, tb_streq(x->equation, drops[i].equation));
        TB_CHECK(T, !tb_streq(x->label, "a block of its own"));
        tb_format(set, sizeof set, "equation=%s&i=1", drops[i].equation);
        tb_shot *b = make_shot(T, "F6", set);
        TB_CHECK(T, same_beads(x, panel_of(T, b, "beads")));
        tb_shot_destroy(a);
        tb_shot_destroy(b);
        check_faces(T, "F6", set);
    }
}

/* What the labels say is what the built-in blocks are. */
TB_TEST(known_placements)
{
    static const char *const known[][2] = {
        {"post", "post-ln"}, {"pre", "pre-ln-no-final"}, {"none", "plain"}};
    const tb_settings unset = TB_SETTINGS_UNSET;
    for (size_t i = 0; i < TB_LEN(known); i++) {
        char set[40];
        tb_block *a, *b;
        tb_expected e;
        tb_out *why;
        tb_format(set, sizeof set, "order=%s", known[i][0]);
        tb_shot *s = make_shot(T, "F6", set);
        const f6_beads *x = panel_of(T, s, "beads");
        TB_OKAY(T, tb_block_load(T->ctx, x->equation, &a));
        TB_OKAY(T, tb_block_load(T->ctx, known[i][1], &b));
        TB_OKAY(T, tb_out_create(T->ctx, &why));
        TB_OKAY(T, tb_explain_expect(T->ctx, a, b, &unset, &e, why));
        TB_CHECK(T, e.same);
        tb_out_destroy(why);
        tb_block_destroy(T->ctx, a);
        tb_block_destroy(T->ctx, b);
        tb_shot_destroy(s);
    }
}

TB_TEST(other_equations)
{
    static const char *const sets[] = {
        "equation=x = norm(x) + norm(F(norm(x)))&i=0",
        "equation=x = norm(x + F(norm(x))); final: x = norm(x)",
        "equation=x = 0.5*x + F(x)",
        "equation=x = F(x)",
        "equation=n = norm(x); x = x + attn(n) + ffn(n)&j=6",
        "equation=block[l == 1]: x = norm(x + F(x)); block: x = x + F(x)",
        "equation=post-ln"};
    for (size_t i = 0; i < TB_LEN(sets); i++)
        check_faces(T, "F6", sets[i]);
    tb_shot *s;
    TB_FAILS(T, tb_shot_create(T->ctx, "F6", "equation=x = nrm(x)", &s),
             TB_ERR_PARSE, "norm");
}

/* A declaration stands on every floor, and floors differ in their weights. */
TB_TEST(floors_are_climbed_one_by_one)
{
    static const char *const sets[] = {
        "equation=a = scalar(0); x = x + a*F(x)&i=4",
        "equation=x = x + F(norm(x))/sqrt(2*N)&i=0", "equation=deepnorm",
        "equation=rezero"};
    for (size_t i = 0; i < TB_LEN(sets); i++)
        check_faces(T, "F6", sets[i]);
    tb_shot *s = make_shot(T, "F6", sets[0]);
    TB_CHECK(T, number_of(T, s, "x_ij") == 0.5); /* as at floor 0 */
    tb_shot_destroy(s);
    tb_shot *one = make_shot(T, "F6", "order=none,i=1,seed=7");
    tb_shot *two = make_shot(T, "F6", "order=none,i=2,seed=7");
    double first = number_of(T, one, "x_ij") - 0.5;
    double second = number_of(T, two, "x_ij") - number_of(T, one, "x_ij");
    TB_CHECK(T, first != 0 && second != 0 && first != second);
    tb_shot_destroy(one);
    tb_shot_destroy(two);
}
