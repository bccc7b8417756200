/* SPDX-License-Identifier: MIT */
/* S7: corners. One input turns up a card; without one, two stacks side by
 * side. */
#include "pictures/shot_s7.h"

/* --- two stacks ----------------------------------------------------------- */

static const shot_tower_of *small(tb_shot *s, const stack_run *r,
                                  const char *title, bool roof)
{
    shot_tower_of *t = shot_tower_make(s, title, r);
    if (!t)
        return NULL;
    t->tower.small = true;
    t->tower.height = 430;
    t->tower.roof = roof;
    return t;
}

tb_status s7_pair(tb_shot *s, const stack_run *left, const char *left_title,
                  const stack_run *right, const char *right_title)
{
    bool roof = left->exit_norms || right->exit_norms;
    const shot_tower_of *a = small(s, left, left_title, roof),
                        *b = small(s, right, right_title, roof);
    if (!a || !b)
        return TB_ERR_MEMORY;
    shot_below(s, &shot_tower, a);
    shot_beside(s, &shot_tower, b);
    return TB_OK;
}

/* Gains at x_0 .. x_n of a stack, as the flow figure takes them. */
static tb_status curve(tb_shot *s, const stack_run *r, const char *name,
                       tb_flow_curve *out)
{
    size_t n = r->spec.n + 1;
    double *lane = shot_alloc(s, n, sizeof *lane),
           *total = shot_alloc(s, n, sizeof *total);
    if (!lane || !total)
        return TB_ERR_MEMORY;
    for (size_t k = 0; k < n; k++) {
        lane[k] = stack_lane(r, k);
        total[k] = stack_total(r, k);
    }
    *out = (tb_flow_curve){.block = name, .n = n, .lane = lane, .total = total};
    return TB_OK;
}

static tb_status both_curves(tb_shot *s, const stack_run *r, const char *title)
{
    tb_flow_curve *runs = shot_alloc(s, 2, sizeof *runs);
    tb_flow_figure *f = shot_alloc(s, 1, sizeof *f);
    if (!runs || !f)
        return TB_ERR_MEMORY;
    TB_TRY(curve(s, &r[0], "Post-LN", &runs[0]));
    TB_TRY(curve(s, &r[1], "Pre-LN", &runs[1]));
    *f = (tb_flow_figure){
        .title = title, .runs = runs, .count = 2, .width = 740};
    shot_below(s, &shot_flow, f);
    return TB_OK;
}

static tb_status both(tb_shot *s, double factor, bool final, stack_run *r)
{
    for (size_t i = 0; i < 2; i++) {
        stack_spec spec = stack_asked(s, i == 0);
        spec.factor = factor;
        spec.final = final && i == 1;
        spec.f32 = true;
        TB_TRY(stack_measure(s, &spec, &r[i]));
    }
    return TB_OK;
}

static void tell_both(tb_shot *s, const stack_run *r)
{
    shot_tell(s, "N", "floors", (double)r[0].spec.n);
    shot_tell(s, "E6.post", "Post-LN: lane at the input", stack_lane(&r[0], 0));
    shot_tell(s, "E6.pre", "Pre-LN: lane at the input", stack_lane(&r[1], 0));
    shot_tell(s, "E7.post", "Post-LN: total at the input",
              stack_total(&r[0], 0));
    shot_tell(s, "E7.pre", "Pre-LN: total at the input", stack_total(&r[1], 0));
}

static bool lane_is_one(const stack_run *r)
{
    for (size_t k = 0; k < r->spec.n; k++)
        if (r->floor[k].lane != 1)
            return false;
    return true;
}

static tb_status stacks(tb_shot *s)
{
    stack_run *r = shot_alloc(s, 2, sizeof *r);
    char post[TB_SHOW_CHARS], pre[TB_SHOW_CHARS];
    if (!r)
        return TB_ERR_MEMORY;
    TB_TRY(both(s, shot_num(s, "v"), true, r));
    TB_TRY(s7_pair(s, &r[0], "Post-LN: a booth on every floor", &r[1],
                   "Pre-LN: a clean lane"));
    shot_title(s, "A tollbooth per floor, and a clean lane",
               shot_text(s,
                         "After %zu floors the lane keeps %s in Post-LN, %s in "
                         "Pre-LN.",
                         r[0].spec.n,
                         tb_show_number(stack_lane(&r[0], 0), post),
                         tb_show_number(stack_lane(&r[1], 0), pre)));
    tell_both(s, r);
    shot_say(s, "Lane, left to right: {E6.post} and {E6.pre} of the signal "
                "from the top reach the input. Total, with the branches: "
                "{E7.post} and {E7.pre}.");
    shot_check_that(s, lane_is_one(&r[1]), "Pre-LN: every lane arrow is 1");
    shot_check_that(s, /* one may have been measured in double */
                    tb_fabs(r[0].std_0 - r[1].std_0) <= 1e-6 * r[0].std_0,
                    "both towers get the same numbers at the input");
    return TB_OK;
}

/* --- c: a huge branch ----------------------------------------------------- */

typedef struct spread {
    double *floor, *post, *least, *most, *pre;
    tb_series line[4];
    tb_chart chart;
} spread;

static double middle_of(const stack_run *r)
{
    double sum = 0;
    for (size_t k = 0; k < r->spec.n; k++)
        sum += r->floor[k].median;
    return sum / (double)r->spec.n;
}

static tb_status room(tb_shot *s, spread *p, size_t n)
{
    double **all[] = {&p->floor, &p->post, &p->least, &p->most, &p->pre};
    for (size_t i = 0; i < TB_LEN(all); i++)
        if (!(*all[i] = shot_alloc(s, n, sizeof **all[i])))
            return TB_ERR_MEMORY;
    return TB_OK;
}

static tb_status spread_of(tb_shot *s, const stack_run *r)
{
    size_t n = r->spec.n;
    spread *p = shot_alloc(s, 1, sizeof *p);
    if (!p)
        return TB_ERR_MEMORY;
    TB_TRY(room(s, p, n));
    for (size_t k = 0; k < n; k++) {
        p->floor[k] = (double)(k + 1);
        p->post[k] = r[0].floor[k].median;
        p->least[k] = 1 / r[0].floor[k].most;
        p->most[k] = 1 / r[0].floor[k].least;
        p->pre[k] = r[1].floor[k].median;
    }
    const tb_series line = {.x = p->floor, .n = n};
    for (size_t i = 0; i < 4; i++)
        p->line[i] = line;
    p->line[0].label = "Post-LN, on the lane: median of 1/s";
    p->line[0].y = p->post;
    p->line[0].tone = TB_TONE_BAD;
    p->line[0].line = 3;
    p->line[1].label = "its least token";
    p->line[1].y = p->least;
    p->line[1].dash = TB_DOTTED;
    p->line[2].label = "its largest token";
    p->line[2].y = p->most;
    p->line[2].dash = TB_DOTTED;
    p->line[1].tone = p->line[2].tone = TB_TONE_BAD;
    p->line[3].label = "Pre-LN, on the branch: median";
    p->line[3].y = p->pre;
    p->line[3].tone = TB_TONE_LANE;
    p->line[3].dash = TB_DASHED;
    p->chart = (tb_chart){.title = "Tolls by floor",
                          .x_label = "floor",
                          .y_label = "1/s over tokens",
                          .series = p->line,
                          .count = 4,
                          .log_y = true,
                          .width = 740,
                          .height = 300};
    shot_below(s, &shot_chart, &p->chart);
    return TB_OK;
}

/* The median toll at a variance, Post-LN. */
static tb_status middle_at(tb_shot *s, double variance, double *out)
{
    stack_spec spec = stack_asked(s, true);
    stack_run r;
    spec.factor = tb_sqrt(variance);
    spec.f32 = true;
    TB_TRY(stack_measure(s, &spec, &r));
    *out = middle_of(&r);
    return TB_OK;
}

static tb_status huge(tb_shot *s)
{
    double v = shot_num(s, "variance"), none, some;
    stack_run *r = shot_alloc(s, 2, sizeof *r);
    if (!r)
        return TB_ERR_MEMORY;
    TB_TRY(both(s, tb_sqrt(v), false, r));
    TB_TRY(middle_at(s, 0, &none));
    TB_TRY(middle_at(s, v / 10, &some));
    TB_TRY(spread_of(s, r));
    TB_TRY(both_curves(s, r, "The signal, by floor"));
    shot_title(s, "A huge branch at the start",
               shot_text(s,
                         "The branch's variance times %g: the median toll of "
                         "Post-LN goes from %.3g to %.3g.",
                         v, none, middle_of(&r[0])));
    tell_both(s, r);
    shot_tell(s, "variance", "variance of the branch, times", v);
    shot_tell(s, "E5.median.0", "median toll without a branch", none);
    shot_tell(s, "E5.median", "median toll with it", middle_of(&r[0]));
    shot_say(s, "With the branch's variance times {variance} the median toll "
                "of Post-LN is {E5.median} (without a branch {E5.median.0}), "
                "and its lane ends at {E6.post}, its total at {E7.post}.");
    shot_say(s, "Pre-LN's lane is {E6.pre}: the booths stand on the branches; "
                "its total is {E7.pre}.");
    if (v > 0 && r->spec.init != 2) /* with weights of 0.02 F is too small */
        shot_check_that(s, none > some && some > middle_of(&r[0]),
                        "the median toll falls as the variance grows: %.3g, "
                        "%.3g, %.3g",
                        none, some, middle_of(&r[0]));
    shot_check_that(s, lane_is_one(&r[1]), "Pre-LN's lane stays exactly 1");
    return TB_OK;
}

/* --- f: a skip is deleted ------------------------------------------------- */

/* The floor through which the lane does not go, by flow alone; 0: none. */
static size_t floor_without_skip(const stack_run *r)
{
    for (size_t k = r->spec.n; k > 0; k--)
        if (r->floor[k - 1].local_lane == 0)
            return k;
    return 0;
}

static tb_status deleted(tb_shot *s)
{
    stack_run *r = shot_alloc(s, 2, sizeof *r);
    size_t cut = shot_whole(s, "cut"), n = shot_whole(s, "N");
    if (!r)
        return TB_ERR_MEMORY;
    if (cut > n)
        cut = shot_get(s, "cut")->set ? n : (n + 1) / 2;
    for (size_t i = 0; i < 2; i++) {
        stack_spec spec = stack_asked(s, false);
        spec.cut = i ? cut : 0;
        spec.f32 = true;
        TB_TRY(stack_measure(s, &spec, &r[i]));
    }
    size_t found = floor_without_skip(&r[1]);
    TB_TRY(s7_pair(s, &r[0], "Pre-LN, every skip in place", &r[1],
                   shot_text(s, "no skip on floor %zu", cut)));
    shot_title(s, "One skip is deleted",
               shot_text(s,
                         "Without the skip of floor %zu the lane ends there; "
                         "the total at the input is %.3g instead of %.3g.",
                         cut, stack_total(&r[1], 0), stack_total(&r[0], 0)));
    shot_tell(s, "N", "floors", (double)r[0].spec.n);
    shot_tell(s, "found", "the floor without an identity path, as measured",
              (double)found);
    shot_tell(s, "E6.cut", "lane below it", stack_lane(&r[1], cut - 1));
    shot_tell(s, "E7.above", "total above it", stack_total(&r[1], cut));
    shot_tell(s, "E7.below", "total below it", stack_total(&r[1], cut - 1));
    shot_tell(s, "E7.input", "total at the input", stack_total(&r[1], 0));
    shot_tell(s, "E7.whole", "the same with every skip", stack_total(&r[0], 0));
    double cut_off = stack_total(&r[1], cut - 1) / stack_total(&r[1], cut),
           kept = stack_total(&r[0], cut - 1) / stack_total(&r[0], cut);
    shot_tell(s, "E7.through", "what comes through that floor", cut_off);
    shot_tell(s, "E7.kept", "the same with its skip", kept);
    shot_say(s, "Floor {found} has no identity path: the lane below it is "
                "{E6.cut}, and the total goes from {E7.above} to {E7.below} "
                "there: times {E7.through}, with its skip times {E7.kept}. At "
                "the input {E7.input}, with every skip {E7.whole}. One lost "
                "skip among many looks like this in practice: entrenar#313.");
    shot_check_that(s, found == cut, "the floor is found by its lane: %zu",
                    found);
    shot_check_that(
        s,
        tb_fabs(cut_off - r[1].floor[cut - 1].local_branch) <= 1e-4 * cut_off,
        "what comes through it is the branch's alone: %.5g and %.5g", cut_off,
        r[1].floor[cut - 1].local_branch);
    if (r->spec.factor <= 1 && r->spec.init != 1) /* else branches amplify */
        shot_check_that(s, cut_off < kept,
                        "that is less than comes through with the skip");
    return TB_OK;
}

/* --- the row -------------------------------------------------------------- */

enum { STACKS, A, B, C, D, E, F };

static tb_status (*const cards[])(tb_shot *s) = {
    [STACKS] = stacks, [A] = s7_silent, [B] = s7_flat, [C] = huge,
    [D] = s7_depth,    [E] = s7_sum,    [F] = deleted};

/* Who sets what one card alone reads wants to see that card. */
static size_t card_of(const tb_shot *s)
{
    if (shot_get(s, "card")->set)
        return shot_choice(s, "card");
    return shot_get(s, "sigma")->set      ? B
           : shot_get(s, "variance")->set ? C
           : shot_get(s, "cut")->set      ? F
                                          : STACKS;
}

static tb_status build(tb_shot *s)
{
    return cards[card_of(s)](s);
}

const shot_row shot_s7 = {
    .name = "S7",
    .about = "corners: F = 0, no spread, a huge branch, depth, a sum, a lost "
             "skip",
    .input = {{"card", "card", TB_SHOT_CHOICE, "stacks", 0, 0,
               .choices = "stacks|a|b|c|d|e|f"},
              STACK_INPUTS("24"),
              {"z", "a, e: the list", TB_SHOT_LIST, "[2,4,4,4,5,5,7,9]", -1e6,
               1e6, .step = 0.1, .most = 16},
              {"sigma", "b: spread \xCF\x83", TB_SHOT_NUMBER, "0", 0, 10,
               .step = 1, .log = true},
              {"variance", "c: variance of the branch, times", TB_SHOT_NUMBER,
               "100", 0, 100, .step = 1},
              {"cut", "f: the floor without a skip", TB_SHOT_NUMBER, "12", 1,
               96, .step = 1, .whole = true}},
    .build = build,
};
