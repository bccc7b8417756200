/* SPDX-License-Identifier: MIT */
/* S1: a box changes a list. x goes in, F(x) comes out, as long as it was. */
#include "pictures/shot_box.h"
#include "pictures/shot_stage.h"

static void tell(tb_shot *s, const shot_box *b, const double *f)
{
    shot_tell(s, "d.in", "numbers in", (double)b->d);
    shot_tell(s, "d.out", "numbers out", (double)b->d);
    shot_tell(s, "norm.x", "length of x", shot_norm(b->x, b->d));
    shot_tell(s, "norm.F", "length of F(x)", shot_norm(f, b->d));
    shot_list_tell(s, "x", b->x, b->d);
    shot_list_tell(s, "F", f, b->d);
    shot_say(s, shot_text(s,
                          "The list x goes into the box F (%s); F(x) comes "
                          "out: {d.in} numbers in, {d.out} numbers out. "
                          "Nothing is added yet.",
                          b->what));
    shot_say(s, "The length of x is {norm.x}, that of F(x) {norm.F}.");
}

static void check_picture(tb_shot *s, const shot_stage *st)
{
    static const char *const roles[] = {"box", "skip", "plus", "norm", "bar"};
    size_t n[TB_LEN(roles)];
    shot_drawn(s, &shot_stage_face, st, roles, TB_LEN(roles), n);
    shot_check_that(s, n[0] == 1 && n[1] + n[2] + n[3] == 0,
                    "drawn: one box, no skip, no plus, no norm");
    shot_check_that(s, n[4] == 2 * st->d, "drawn: %zu bars in, %zu out", st->d,
                    n[4] - st->d);
}

/* The same box at scale 0, by the engine. */
static tb_status check(tb_shot *s, const shot_box *b, const double *f)
{
    shot_box zero = *b;
    zero.scale = 0;
    double *nothing = shot_alloc(s, b->d, sizeof *nothing);
    if (!nothing)
        return TB_ERR_MEMORY;
    TB_TRY(shot_box_values(s, &zero, nothing, NULL));
    shot_check_that(s, shot_far(nothing, NULL, b->d) == 0,
                    "times 0, every number out is 0");
    if (b->kind == SHOT_BOX_ZERO)
        shot_check_that(s, shot_far(f, NULL, b->d) == 0,
                        "the zero box gives zeros");
    return TB_OK;
}

static tb_status build(tb_shot *s)
{
    char in[TB_SHOW_CHARS], out[TB_SHOW_CHARS];
    shot_box b;
    TB_TRY(shot_box_read(s, &b));
    double *f = shot_alloc(s, b.d, sizeof *f);
    shot_stage *st = shot_alloc(s, 1, sizeof *st);
    if (!f || !st)
        return TB_ERR_MEMORY;
    TB_TRY(shot_box_values(s, &b, f, NULL));
    *st = (shot_stage){
        .title = "A box changes a list",
        .desc = shot_text(s,
                          "A list x of %zu numbers, of length %s, goes into "
                          "the box F (%s); F(x) has %zu numbers and length %s.",
                          b.d, tb_show_number(shot_norm(b.x, b.d), in), b.what,
                          b.d, tb_show_number(shot_norm(f, b.d), out)),
        .box = "F",
        .note = b.name,
        .d = b.d,
        .x = b.x,
        .f = f};
    shot_title(s, st->title, st->desc);
    shot_below(s, &shot_stage_face, st);
    tell(s, &b, f);
    check_picture(s, st);
    return check(s, &b, f);
}

const shot_row shot_s1 = {
    .name = "S1",
    .about = "a box changes a list of numbers",
    .input = {SHOT_INPUT_X("[2,4,4,4,5,5,7,9]"), SHOT_INPUT_D("8"),
              SHOT_INPUT_F("linear"), SHOT_INPUT_SCALE(4), SHOT_INPUT_TOKENS,
              SHOT_INPUT_SEED},
    .build = build,
};
