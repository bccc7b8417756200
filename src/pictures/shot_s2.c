/* SPDX-License-Identifier: MIT */
/* S2: add, don't replace. The skip carries x around the box to a plus. */
#include "pictures/shot_box.h"
#include "pictures/shot_panels.h"
#include "pictures/shot_stage.h"

typedef struct sum {
    shot_box b;
    double *f, *y, *parts; /* parts: x + F(x) added here, to compare */
} sum;

static double identity_error(const sum *a)
{
    double most = shot_far(a->y, NULL, a->b.d);
    return most > 0 ? shot_far(a->y, a->parts, a->b.d) / most : 0;
}

static void tell(tb_shot *s, const sum *a)
{
    double x = shot_norm(a->b.x, a->b.d), f = shot_norm(a->f, a->b.d);
    shot_tell(s, "norm.x", "length of x", x);
    shot_tell(s, "norm.F", "length of F(x)", f);
    shot_tell(s, "E12.share", "length of F(x) over length of x",
              x > 0 ? f / x : 0);
    shot_tell(s, "E13.error", "largest |y - (x + F(x))| over largest |y|",
              identity_error(a));
    shot_list_tell(s, "x", a->b.x, a->b.d);
    shot_list_tell(s, "F", a->f, a->b.d);
    shot_list_tell(s, "y", a->y, a->b.d);
    shot_say(
        s,
        a->b.skip
            ? "The skip carries x around the box; at the plus the two "
              "lists are added number by number: x\xE2\x82\x81 = {x.1} "
              "and F\xE2\x82\x81 = {F.1} make y\xE2\x82\x81 = {y.1}."
            : "The skip is broken, so y is F(x) alone: y\xE2\x82\x81 = {y.1}.");
    shot_say(s, shot_text(s,
                          "The correction F(x), here %s, is {E12.share} times "
                          "as long as x.",
                          a->b.what));
}

static const shot_words_of *formula(const sum *a)
{
    static const shot_word both[] = {
        {.text = "y =", .tone = TB_TONE_NONE, .bold = true, .id = "term-y"},
        {.text = "x", .tone = TB_TONE_LANE, .bold = true, .id = "term-x"},
        {.text = "(the list, untouched)", .tone = TB_TONE_LANE},
        {.text = "+", .tone = TB_TONE_NONE, .bold = true},
        {.text = "F(x)", .tone = TB_TONE_BOX, .bold = true, .id = "term-F"},
        {.text = "(what the box computed)", .tone = TB_TONE_BOX}};
    static const shot_word alone[] = {
        {.text = "y =", .tone = TB_TONE_NONE, .bold = true, .id = "term-y"},
        {.text = "F(x)", .tone = TB_TONE_BOX, .bold = true, .id = "term-F"},
        {.text = "(the list itself is lost)", .tone = TB_TONE_BAD}};
    static const shot_words_of words[] = {{alone, TB_LEN(alone)},
                                          {both, TB_LEN(both)}};
    return &words[a->b.skip];
}

/* Arrowheads (closed paths of three points) whose tip touches the plus. */
static size_t into_plus(const tb_scene *scene)
{
    const tb_item *plus = NULL;
    size_t n = 0;
    for (size_t i = 0; i < scene->count; i++)
        if (scene->items[i].style.role &&
            tb_streq(scene->items[i].style.role, "plus"))
            plus = &scene->items[i];
    for (size_t i = 0; plus && i < scene->count; i++) {
        const tb_item *it = &scene->items[i];
        if (it->kind != TB_ITEM_PATH || !it->closed || it->n != 3)
            continue;
        double x = it->xy[0] - plus->x, y = it->xy[1] - plus->y;
        n += x * x + y * y < (plus->w + 4) * (plus->w + 4);
    }
    return n;
}

static tb_status check_picture(tb_shot *s, const shot_stage *st)
{
    tb_scene *scene;
    TB_TRY(s->status); /* of its texts */
    TB_TRY(shot_stage_face.scene(s->ctx, st, &scene));
    size_t roads = into_plus(scene);
    tb_scene_destroy(scene);
    shot_check_that(s, roads == (st->skip ? 2 : 1),
                    "drawn: %zu road%s into the plus", roads,
                    roads == 1 ? "" : "s");
    return TB_OK;
}

/* With the box at 0, by the engine. */
static tb_status check(tb_shot *s, const sum *a)
{
    size_t d = a->b.d;
    shot_box off = a->b;
    off.scale = 0;
    double *y = shot_alloc(s, d, sizeof *y);
    if (!y)
        return TB_ERR_MEMORY;
    TB_TRY(shot_box_values(s, &off, NULL, y));
    if (a->b.skip)
        shot_check_that(s, memcmp(y, a->b.x, d * sizeof *y) == 0,
                        "F times 0: y is x, in every bit");
    else
        shot_check_that(s, shot_far(y, NULL, d) == 0,
                        "F times 0 and no skip: y is 0");
    shot_check_that(s, identity_error(a) <= 1e-12,
                    "the two parts of every bar add up to y, within 1e-12");
    return TB_OK;
}

static tb_status compute(tb_shot *s, sum *a)
{
    TB_TRY(shot_box_read(s, &a->b));
    a->b.skip = shot_on(s, "skip");
    size_t d = a->b.d;
    a->f = shot_alloc(s, 3 * d, sizeof *a->f);
    if (!a->f)
        return TB_ERR_MEMORY;
    a->y = a->f + d;
    a->parts = a->y + d;
    TB_TRY(shot_box_values(s, &a->b, a->f, a->y));
    for (size_t i = 0; i < d; i++)
        a->parts[i] = (a->b.skip ? a->b.x[i] : 0) + a->f[i];
    return TB_OK;
}

static tb_status build(tb_shot *s)
{
    char share[TB_SHOW_CHARS];
    sum a;
    shot_stage *st = shot_alloc(s, 1, sizeof *st);
    if (!st)
        return TB_ERR_MEMORY;
    TB_TRY(compute(s, &a));
    double x = shot_norm(a.b.x, a.b.d), f = shot_norm(a.f, a.b.d);
    *st = (shot_stage){
        .title = a.b.skip ? "Add, don't replace" : "The skip is broken",
        .desc = shot_text(s,
                          "The list x goes into the box F (%s)%s. F(x) is %s "
                          "times as long as x.",
                          a.b.what,
                          a.b.skip ? " and around it on the green skip; at the "
                                     "plus y = x + F(x)"
                                   : "; the skip is broken, so y = F(x)",
                          tb_show_number(x > 0 ? f / x : 0, share)),
        .box = "F",
        .note = a.b.name,
        .d = a.b.d,
        .x = a.b.x,
        .f = a.f,
        .y = a.y,
        .skip = a.b.skip};
    shot_title(s, st->title, st->desc);
    shot_below(s, &shot_stage_face, st);
    shot_below(s, &shot_words, formula(&a));
    tell(s, &a);
    TB_TRY(check_picture(s, st));
    return check(s, &a);
}

const shot_row shot_s2 = {
    .name = "S2",
    .about = "the skip: add the box's list to x instead of replacing it",
    .input = {SHOT_INPUT_X("[2,4,4,4,5,5,7,9]"),
              SHOT_INPUT_D("8"),
              SHOT_INPUT_F("linear"),
              SHOT_INPUT_SCALE(4),
              {"skip", "the skip is open", TB_SHOT_SWITCH, "1", 0, 1,
               .step = 1},
              SHOT_INPUT_TOKENS,
              SHOT_INPUT_SEED},
    .build = build,
};
