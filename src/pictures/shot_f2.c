/* SPDX-License-Identifier: MIT */
/* F2: the machine on every floor. It has several names and one duty: a list
 * of d numbers in, a list of d numbers out. */
#include "pictures/shot_box.h"
#include "pictures/shot_house.h"
#include "tollbooth/explain.h"

/* Every floor is attention or a feed-forward network, in turn. */
static const char *const names[][2] = {
    {"F(x)", "F(x)"}, {"Sublayer(x)", "Sublayer(x)"}, {"MHA(x)", "FFN(x)"}};

/* --- numbers -------------------------------------------------------------- */

/* What floor i makes of x, under one of its names that can be called. */
static tb_status floor_value(tb_shot *s, const char *text, size_t i, size_t d,
                             const double *x, double *out)
{
    const tb_eval_value set = {"x", 1, {d}, x};
    tb_eval e = {.text = text, .sets = &set, .nsets = 1, .seed = i + 1};
    return shot_eval(s, &e, d, out);
}

/* All lists from the ground to the top; same: whatever the boxes are called. */
static tb_status climb(tb_shot *s, shot_house *h, const double *x, bool *same)
{
    static const char *const texts[][3] = {
        {"attn(x)", "MHA(x)", "MultiHeadAttention(x)"},
        {"ffn(x)", "FFN(x)", "FFN(x)"}};
    double *v = shot_alloc(s, 3 * h->d, sizeof *v), *y = v + h->d;
    if (!v)
        return TB_ERR_MEMORY;
    memcpy(v, x, h->d * sizeof *v);
    *same = true;
    h->length[0] = shot_norm(v, h->d);
    for (size_t i = 0; i < h->n; i++) {
        TB_TRY(floor_value(s, texts[i % 2][0], i, h->d, v, y));
        for (size_t k = 1; k < 3; k++) {
            TB_TRY(floor_value(s, texts[i % 2][k], i, h->d, v, y + h->d));
            *same = *same && memcmp(y, y + h->d, h->d * sizeof *y) == 0;
        }
        memcpy(v, y, h->d * sizeof *v);
        h->length[i + 1] = shot_norm(v, h->d);
    }
    return TB_OK;
}

/* --- names ---------------------------------------------------------------- */

static tb_status same_block(tb_shot *s, const char *a, const char *b, bool *out)
{
    const tb_settings settings = TB_SETTINGS_UNSET;
    tb_block *one, *two = NULL;
    tb_expected e = {.same = false};
    tb_out *why = NULL;
    TB_TRY(tb_block_load(s->ctx, a, &one));
    tb_status status = tb_block_load(s->ctx, b, &two);
    if (status == TB_OK)
        status = tb_out_create(s->ctx, &why);
    if (status == TB_OK)
        status = tb_explain_expect(s->ctx, one, two, &settings, &e, why);
    *out = e.same;
    tb_out_destroy(why);
    if (two)
        tb_block_destroy(s->ctx, two);
    tb_block_destroy(s->ctx, one);
    return status;
}

static void check_picture(tb_shot *s, const shot_house *h)
{
    static const char *const roles[] = {"floor", "box"};
    size_t drawn[TB_LEN(roles)];
    shot_drawn(s, &shot_house_face, h, roles, TB_LEN(roles), drawn);
    shot_check_that(s, drawn[0] == h->n && drawn[1] == h->n,
                    "drawn: one box on each of %zu floors", drawn[0]);
}

static tb_status check_names(tb_shot *s, bool same)
{
    bool sublayer, both;
    TB_TRY(same_block(s, "x = x + F(x)", "x = x + Sublayer(x)", &sublayer));
    TB_TRY(
        same_block(s, "x = x + F(x)", "x = x + MHA(x); x = x + FFN(x)", &both));
    shot_check_that(s, sublayer, "x + F(x) and x + Sublayer(x) are one block");
    shot_check_that(s, both, "x + F(x) is x + MHA(x), then x + FFN(x)");
    shot_check_that(s, same, "other names change no bit of any list");
    return TB_OK;
}

/* --- a box that gives one number too many --------------------------------- */

static tb_status refuse(tb_shot *s, shot_house *h, const double *x)
{
    const tb_eval_value set = {"x", 1, {h->d}, x};
    const tb_eval e = {
        .text = "x + project(x, d + 1)", .sets = &set, .nsets = 1, .seed = 1};
    tb_eval_result *r = NULL;
    tb_status status = tb_eval_run(s->ctx, &e, &r);
    if (status == TB_ERR_MEMORY)
        return status;
    const char *text = tb_error(s->ctx);
    bool says = status != TB_OK && strstr(text, "widths differ");
    if (shot_on(s, "wrong"))
        h->error =
            shot_text(s, "refused: %.*s", (int)strcspn(text, "\n"), text);
    tb_error_clear(s->ctx);
    tb_eval_free(s->ctx, r);
    shot_check_that(s, says,
                    "x + F(x) is refused where F gives %zu numbers for %zu",
                    h->d + 1, h->d);
    return TB_OK;
}

/* --- shot ----------------------------------------------------------------- */

static void tell(tb_shot *s, const shot_house *h)
{
    shot_tell(s, "floors", "floors", (double)h->n);
    shot_tell(s, "d.in", "numbers into a box", (double)h->d);
    shot_tell(s, "d.out", "numbers out of the top box",
              (double)(h->d + h->floors[h->n - 1].wrong));
    shot_say(s, "On each of the {floors} floors stands one box: {d.in} numbers "
                "in, {d.out} out.");
    shot_say(s, "F(x) is its name in derivations, Sublayer(x) the same in "
                "words, MHA(x) and FFN(x) the two that a Transformer has. "
                "Because the length stays, x + F(x) can be written.");
    if (h->error)
        shot_say(s, "A box that gives one number more does not fit on x, and "
                    "is refused before anything is computed.");
}

static tb_status build(tb_shot *s)
{
    const double *x;
    bool same;
    size_t name = shot_choice(s, "name");
    shot_house *h = shot_alloc(s, 1, sizeof *h);
    if (!h)
        return TB_ERR_MEMORY;
    *h = (shot_house){.title = "One machine on every floor",
                      .n = shot_whole(s, "floors"),
                      .note = "Names change nothing: the numbers beside the "
                              "arrows are those of the boxes, whatever is "
                              "written on them."};
    TB_TRY(shot_list_read(s, "x", &x, &h->d));
    for (size_t i = 0; i < h->n; i++)
        h->floors[i].name = names[name][i % 2];
    h->floors[h->n - 1].wrong = shot_on(s, "wrong");
    TB_TRY(climb(s, h, x, &same));
    TB_TRY(check_names(s, same));
    TB_TRY(refuse(s, h, x));
    h->desc = shot_text(s,
                        "A tower of %zu floors, on each a box named %s: %zu "
                        "numbers in, %zu out of the top one.",
                        h->n, shot_get(s, "name")->text, h->d,
                        h->d + h->floors[h->n - 1].wrong);
    shot_title(s, h->title, h->desc);
    shot_below(s, &shot_house_face, h);
    tell(s, h);
    check_picture(s, h);
    return TB_OK;
}

const shot_row shot_f2 = {
    .name = "F2",
    .about = "a tower with one box on every floor, and its names",
    .input = {SHOT_INPUT_X("[2,4,4,4,5,5,7,9]"),
              SHOT_INPUT_D("8"),
              {"floors", "floors", TB_SHOT_NUMBER, "3", 1, HOUSE_MOST,
               .step = 1, .whole = true},
              {"name", "name on the box", TB_SHOT_CHOICE, "F",
               .choices = "F|Sublayer|MHA/FFN"},
              {"wrong", "the top box gives d + 1 numbers", TB_SHOT_SWITCH, "0",
               0, 1, .step = 1}},
    .build = build,
};
