/* SPDX-License-Identifier: MIT */
/* F3: plus and skip on two floors. The learning arrow comes down both roads;
 * with the F road broken it still comes home by the skip. */
#include "pictures/shot_box.h"
#include "pictures/shot_house.h"

enum { FLOORS = 2 };

typedef struct two_floors {
    size_t d;
    shot_box floor[FLOORS];
    double *x[FLOORS + 1]; /* streams */
    double *g[FLOORS + 1]; /* gradients at them */
    double *hw[FLOORS], *br[FLOORS];
} two_floors;

/* Floor i takes x_i; its weights have a seed of their own. */
static void enter(two_floors *t, size_t i)
{
    t->floor[i].x = t->floor[i].all = t->x[i];
}

/* g down from the top, by the engine; `scale` of every box. */
static tb_status come_down(tb_shot *s, two_floors *t, double scale)
{
    for (size_t i = FLOORS; i-- > 0;) {
        shot_box b = t->floor[i];
        b.scale = scale;
        TB_TRY(shot_box_pull(s, &b, t->g[i + 1], t->hw[i], t->br[i], t->g[i]));
    }
    return TB_OK;
}

static tb_status compute(tb_shot *s, two_floors *t, bool broken)
{
    shot_box first;
    TB_TRY(shot_box_read(s, &first));
    first.skip = true;
    first.scale = broken ? 0 : first.scale;
    t->d = first.d;
    double *v = shot_alloc(s, (4 * FLOORS + 2) * t->d, sizeof *v);
    if (!v)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i <= FLOORS; i++, v += 2 * t->d) {
        t->x[i] = v;
        t->g[i] = v + t->d;
    }
    for (size_t i = 0; i < FLOORS; i++, v += 2 * t->d) {
        t->hw[i] = v;
        t->br[i] = v + t->d;
        t->floor[i] = first;
        t->floor[i].seed = first.seed + i;
    }
    memcpy(t->x[0], first.x, t->d * sizeof *v);
    for (size_t i = 0; i < FLOORS; i++) {
        enter(t, i);
        TB_TRY(shot_box_values(s, &t->floor[i], NULL, t->x[i + 1]));
    }
    shot_arrow(first.seed, t->d, t->g[FLOORS]);
    return come_down(s, t, first.scale);
}

static void fill(const two_floors *t, bool broken, shot_house *h)
{
    h->n = FLOORS;
    h->d = t->d;
    h->skip = true;
    for (size_t i = 0; i <= FLOORS; i++) {
        h->length[i] = shot_norm(t->x[i], t->d);
        h->gradient[i] = shot_norm(t->g[i], t->d);
    }
    for (size_t i = 0; i < FLOORS; i++) {
        double hw = shot_norm(t->hw[i], t->d), br = shot_norm(t->br[i], t->d);
        double dot = shot_dot(t->hw[i], t->br[i], t->d);
        h->floors[i] = (house_floor){.name = "F",
                                     .broken = broken,
                                     .hw = hw,
                                     .br = br,
                                     .cos = br > 0 ? dot / (hw * br) : 0};
    }
}

static void tell(tb_shot *s, const shot_house *h)
{
    for (size_t i = 0; i <= FLOORS; i++) {
        char id[32];
        tb_format(id, sizeof id, "E7.g.%zu", i);
        shot_tell(s, id, "gradient at x_i", h->gradient[i]);
    }
    for (size_t i = 0; i < FLOORS; i++) {
        const house_floor *f = &h->floors[i];
        char id[32];
        tb_format(id, sizeof id, "E9.hw.%zu", i + 1);
        shot_tell(s, id, "gradient by the skip", f->hw);
        tb_format(id, sizeof id, "E9.br.%zu", i + 1);
        shot_tell(s, id, "gradient through F", f->br);
        tb_format(id, sizeof id, "E9.cos.%zu", i + 1);
        shot_tell(s, id, "cosine of the two", f->cos);
    }
    shot_say(s, h->floors[0].broken
                    ? "Both F roads are broken. The learning arrow starts with "
                      "{E7.g.2} at the top and arrives with {E7.g.0} at the "
                      "ground, by the skip alone."
                    : "The learning arrow starts with {E7.g.2} at the top. On "
                      "floor 2 the skip hands on {E9.hw.2} and F adds "
                      "{E9.br.2}; on floor 1 the skip hands on {E9.hw.1} and F "
                      "adds {E9.br.1}. At the ground it is {E7.g.0}.");
    shot_say(s, "What F adds may point the other way (cosines {E9.cos.2} and "
                "{E9.cos.1}); the skip's part is never changed.");
}

/* The same floors with their boxes at 0. */
static tb_status check(tb_shot *s, two_floors *t)
{
    size_t bytes = t->d * sizeof **t->g;
    bool whole = true, sum = true;
    for (size_t i = 0; i < FLOORS; i++) {
        whole = whole && memcmp(t->hw[i], t->g[i + 1], bytes) == 0;
        for (size_t k = 0; k < t->d; k++)
            sum = sum && tb_fabs(t->g[i][k] - t->hw[i][k] - t->br[i][k]) <=
                             1e-12 * (1 + tb_fabs(t->g[i][k]));
    }
    shot_check_that(s, whole,
                    "on both floors the skip hands the arrow on "
                    "untouched, in every bit");
    shot_check_that(s, sum, "on both floors the two roads add up");
    TB_TRY(come_down(s, t, 0));
    shot_check_that(s, memcmp(t->g[0], t->g[FLOORS], bytes) == 0,
                    "with both F roads broken the arrow at the ground is the "
                    "one at the top, in every bit");
    return TB_OK;
}

static tb_status build(tb_shot *s)
{
    char top[TB_SHOW_CHARS], ground[TB_SHOW_CHARS];
    bool broken = shot_on(s, "broken");
    two_floors t;
    shot_house *h = shot_alloc(s, 1, sizeof *h);
    if (!h)
        return TB_ERR_MEMORY;
    TB_TRY(compute(s, &t, broken));
    *h = (shot_house){.title = broken ? "The F road is broken, the skip is not"
                                      : "Two roads home"};
    fill(&t, broken, h);
    h->desc = shot_text(s,
                        "Two floors, each with a skip and a box%s. The "
                        "learning arrow has length %s at the top and %s at "
                        "the ground.",
                        broken ? " that is broken" : "",
                        tb_show_number(h->gradient[FLOORS], top),
                        tb_show_number(h->gradient[0], ground));
    shot_title(s, h->title, h->desc);
    shot_below(s, &shot_house_face, h);
    tell(s, h);
    return check(s, &t);
}

const shot_row shot_f3 = {
    .name = "F3",
    .about = "plus and skip on two floors, and the way home",
    .input = {SHOT_INPUT_X("[2,4,4,4,5,5,7,9]"),
              SHOT_INPUT_D("8"),
              {"F", "what the box is", TB_SHOT_CHOICE, "linear",
               .choices = "linear|relu"},
              SHOT_INPUT_SCALE(4),
              {"broken", "break the F road", TB_SHOT_SWITCH, "0", 0, 1,
               .step = 1},
              SHOT_INPUT_SEED},
    .build = build,
};
