/* SPDX-License-Identifier: MIT */
/* S5 and S6: the same weights, floors and signal, the booth on the lane or on
 * the branch. */
#include "flow/flow_model.h"
#include "pictures/diagram.h"
#include "pictures/shot_block.h"
#include "pictures/shot_panels.h"

/* --- numbers -------------------------------------------------------------- */

static void tell_floors(tb_shot *s, const stack_run *r)
{
    for (size_t k = 1; k <= r->spec.n; k++) {
        const stack_floor *f = &r->floor[k - 1];
        char id[32], label[64];
        tb_format(id, sizeof id, "E1.s.%zu", k);
        tb_format(label, sizeof label, "spread s at the norm of floor %zu", k);
        shot_tell(s, id, label, f->s);
        tb_format(id, sizeof id, "E5.tau.%zu", k);
        tb_format(label, sizeof label, "mean of 1/s on floor %zu", k);
        shot_tell(s, id, label, f->tau);
        tb_format(id, sizeof id, "E5.toll.%zu", k);
        tb_format(label, sizeof label, "RMS gain of the norm of floor %zu", k);
        shot_tell(s, id, label, f->toll);
        tb_format(id, sizeof id, "E12.std.%zu", k);
        tb_format(label, sizeof label, "spread of x above floor %zu", k);
        shot_tell(s, id, label, f->std_x);
    }
}

static void gains(const stack_run *r, bool lane, double *y)
{
    for (size_t k = 0; k <= r->spec.n; k++)
        y[k] = lane ? stack_lane(r, k) : stack_total(r, k);
}

static double least(const stack_run *r)
{
    double m = 1;
    for (size_t k = 0; k < r->spec.n; k++)
        m = tb_min2(m, stack_total(r, k));
    return m;
}

static double most(const stack_run *r)
{
    double m = 1;
    for (size_t k = 0; k < r->spec.n; k++)
        m = tb_max2(m, stack_total(r, k));
    return m;
}

/* E14 of lane and total: a factor per floor on the way down, with R^2. */
static tb_status tell_fits(tb_shot *s, const stack_run *r)
{
    double factor, r2, *y = shot_alloc(s, r->spec.n + 1, sizeof *y);
    if (!y)
        return TB_ERR_MEMORY;
    for (int lane = 1; lane >= 0; lane--) {
        gains(r, lane, y);
        if (!stack_fit(y, r->spec.n + 1, &factor, &r2))
            continue;
        shot_tell(s, lane ? "E14.lane" : "E14.total",
                  lane ? "lane: factor per floor on the way down"
                       : "total: factor per floor on the way down",
                  1 / factor);
        shot_tell(s, lane ? "E14.lane.R2" : "E14.total.R2",
                  "R\xC2\xB2 of that line", r2);
        if (!lane || r->spec.post)
            shot_say(s, lane ? "A line through the logarithms: the lane times "
                               "{E14.lane} per floor (R\xC2\xB2 {E14.lane.R2})."
                             : "A line through the logarithms: the total times "
                               "{E14.total} per floor (R\xC2\xB2 "
                               "{E14.total.R2}).");
    }
    return TB_OK;
}

static void tell(tb_shot *s, const stack_run *r)
{
    shot_tell(s, "N", "floors", (double)r->spec.n);
    shot_tell(s, "E6.lane", "lane at the input, relative to the top",
              stack_lane(r, 0));
    shot_tell(s, "E7.total", "total at the input, relative to the top",
              stack_total(r, 0));
    shot_tell(s, "E7.token.least", "the same of the token that gets least",
              r->token[0]);
    shot_tell(s, "E7.token.most", "and of the one that gets most", r->token[1]);
    shot_tell(s, "E7.least", "least total on the way", least(r));
    shot_tell(s, "E7.most", "largest total on the way", most(r));
    shot_tell(s, "E12.std", "spread of x at the top", stack_std(r, r->spec.n));
    shot_tell(s, "E12.std.0", "spread of x at the input", r->std_0);
    if (r->spec.post) {
        shot_tell(s, "E6.scalar", "product of the mean 1/s", r->booths.mean);
        shot_tell(s, "E6.product", "product of the tolls (RMS)", r->product);
        shot_tell(s, "E6.rms", "one token's J_LN multiplied out: RMS gain",
                  r->booths.rms);
        shot_tell(s, "E6.max", "its largest singular value", r->booths.max);
    }
    if (r->exit_norms)
        shot_tell(s, "E6.exit", "toll of the final norm", r->exit_toll);
    tell_floors(s, r);
}

/* --- an opened booth ------------------------------------------------------ */

/* E3 of the norm on the floor's first token, from its Jacobian as numbers. */
static tb_status spectrum_of(tb_shot *s, const stack_run *r, double *out)
{
    size_t d = r->spec.width;
    const tb_eval_value z = {"z", 1, {d}, r->z};
    const tb_eval e = {.text = "layernorm(z)",
                       .sets = &z,
                       .nsets = 1,
                       .jacobian = "z",
                       .eps = &r->spec.eps};
    tb_eval_result *result;
    TB_TRY(tb_eval_run(s->ctx, &e, &result));
    double *rows = shot_alloc(s, d * d, sizeof *rows);
    if (rows) {
        memcpy(rows, result->jacobian.data, d * d * sizeof *rows);
        tb_singular_values(s->ctx, rows, d, out);
    }
    tb_eval_free(s->ctx, result);
    return rows ? TB_OK : TB_ERR_MEMORY;
}

static tb_status spectrum(tb_shot *s, const stack_run *r, size_t floor)
{
    size_t d = r->spec.width;
    double *values = shot_alloc(s, d, sizeof *values);
    double *one = shot_alloc(s, d, sizeof *one);
    tb_series *lines = shot_alloc(s, 1, sizeof *lines);
    tb_chart *c = shot_alloc(s, 1, sizeof *c);
    if (!values || !one || !lines || !c)
        return TB_ERR_MEMORY;
    TB_TRY(spectrum_of(s, r, values));
    for (size_t i = 0; i < d; i++)
        one[i] = (double)(i + 1);
    *lines = (tb_series){.label = "singular values of J_LN",
                         .x = one,
                         .y = values,
                         .n = d,
                         .tone = TB_TONE_TOLL,
                         .marker = TB_MARK_DOT};
    *c = (tb_chart){.title = shot_text(s,
                                       "The booth of floor %zu, opened: J_LN "
                                       "at its first token",
                                       floor),
                    .x_label = "number",
                    .y_label = "singular value",
                    .series = lines,
                    .count = 1,
                    .width = 740,
                    .height = 240};
    shot_below(s, &shot_chart, c);
    shot_tell(s, "E3.max", "largest singular value of the opened booth",
              values[0]);
    shot_tell(s, "E3.radial", "its gain along z, \xCE\xB5/s\xC2\xB3",
              d > 1 ? values[d - 2] : 0);
    shot_say(s, "The opened booth lets d - 2 directions pass at {E3.max}, the "
                "direction of its own input at {E3.radial}, and the mean not "
                "at all.");
    return TB_OK;
}

/* --- panels --------------------------------------------------------------- */

static tb_status panels(tb_shot *s, const stack_run *r)
{
    size_t floor = r->spec.opened ? r->spec.opened : r->spec.n;
    shot_block_of *b = shot_alloc(s, 1, sizeof *b);
    shot_tower_of *t = shot_tower_make(
        s, shot_text(s, "%zu floor%s", r->spec.n, r->spec.n == 1 ? "" : "s"),
        r);
    if (!b || !t)
        return TB_ERR_MEMORY;
    *b = (shot_block_of){
        .title = shot_text(s, "Floor %zu: %s", floor, r->equation),
        .run = r,
        .floor = floor,
        .note = shot_text(s,
                          "Numbers: what of a signal of length 1 that comes "
                          "back from above goes on along the lane, and what "
                          "through the branch. %s.",
                          r->where)};
    t->tower.show = (tb_tower_show)shot_choice(s, "show");
    shot_below(s, &shot_block, b);
    if (r->spec.opened)
        TB_TRY(spectrum(s, r, floor));
    shot_below(s, &shot_tower, t);
    return TB_OK;
}

/* --- claims --------------------------------------------------------------- */

/* Fewer booths than directions: the mean and one direction for each are lost,
 * the others pass at 1/s each time. */
static void check_matrix(tb_shot *s, const stack_run *r)
{
    const stack_matrix *b = &r->booths;
    bool free = r->spec.n + 1 < r->spec.width;
    shot_check_that(s,
                    b->rms <= b->max * (1 + 1e-9) &&
                        b->max <= b->first * (1 + 1e-9) &&
                        (!free || b->max >= b->first * 0.99),
                    "the J_LN of one token, multiplied out, pass at most the "
                    "product of its 1/s: %.6g and %.6g",
                    b->max, b->first);
}

/* 1/s and E3 on the values, multiplied, against what the norms themselves
 * divided by, and against what flow found by its own way. */
static void check_product(tb_shot *s, const stack_run *r)
{
    double toll = 1, tau = 1, over = 0;
    for (size_t k = 0; k < r->spec.n; k++) {
        toll *= r->floor[k].toll;
        tau *= r->floor[k].tau;
        over = tb_max2(over, stack_lane(r, k) / stack_lane(r, k + 1) *
                                 r->floor[k].least);
    }
    shot_check_that(s, tb_fabs(tau - r->booths.mean) <= 1e-9 * tau,
                    "the mean 1/s of all booths multiply to E6's scalar: "
                    "%.12g and %.12g",
                    tau, r->booths.mean);
    shot_check_that(s, tb_fabs(toll - r->product) <= 1e-9 * r->product,
                    "the RMS tolls by E3 to flow's product: %.12g and %.12g",
                    toll, r->product);
    shot_check_that(s, over <= 1 + 1e-9,
                    "no booth lets more of the lane pass than its largest 1/s");
    check_matrix(s, r);
}

/* A linear branch of variance v^2 on a stream of variance 1. */
static void check_linear(tb_shot *s, const stack_run *r)
{
    const stack_spec *p = &r->spec;
    double want = 1 / tb_sqrt(1 + p->factor * p->factor);
    if (p->branch == STACK_LINEAR && p->init == 0 && p->width >= 256 &&
        p->tokens >= 64)
        shot_check_that(s, tb_fabs(r->floor[0].tau - want) <= 0.02,
                        "the first toll is 1/sqrt(1 + v^2), within 0.02: %.4g "
                        "and %.4g",
                        r->floor[0].tau, want);
}

static void check_post(tb_shot *s, const stack_run *r)
{
    size_t on_lane = 0, cut = 0;
    for (size_t k = 0; k < r->spec.n; k++) {
        on_lane += (size_t)r->floor[k].lane_norms;
        cut += r->floor[k].lane_norms == 0;
    }
    shot_check_that(s, on_lane == r->spec.n && cut == 0,
                    "%zu booths on the lane, one on every floor: no skip goes "
                    "around one",
                    on_lane);
    check_product(s, r);
    check_linear(s, r);
}

static void check_pre(tb_shot *s, const stack_run *r)
{
    size_t on_lane = 0, other = 0;
    double wide = 0;
    for (size_t k = 0; k < r->spec.n; k++) {
        double w = tb_back_width(r->floor[k].lane);
        on_lane += (size_t)r->floor[k].lane_norms;
        other += r->floor[k].lane != 1;
        wide = tb_max2(wide, tb_fabs(w - tb_back_width(1)));
    }
    shot_check_that(s, on_lane == 0,
                    "%zu booths on the lane, one on each of %zu branches, %d "
                    "at the exit",
                    on_lane, r->spec.n, r->exit_norms);
    shot_check_that(s, other == 0, "the lane is exactly 1 on every floor");
    shot_check_that(s, wide <= 0.1,
                    "the lane's arrows are equally wide: %.2g px apart", wide);
    if (r->spec.factor > 0)
        shot_check_that(s, most(r) - least(r) > 1e-9,
                        "the total varies, from %.3g to %.3g", least(r),
                        most(r));
    shot_check_that(s, r->exit_norms == (r->spec.final ? 1 : 0),
                    "the final norm is there if it is asked for");
}

/* --- the rows ------------------------------------------------------------- */

static const char *describe(tb_shot *s, const stack_run *r)
{
    char lane[TB_SHOW_CHARS], total[TB_SHOW_CHARS];
    tb_show_number(stack_lane(r, 0), lane);
    tb_show_number(stack_total(r, 0), total);
    return shot_text(
        s,
        r->spec.post
            ? "%s: %zu booths on the lane. The lane alone keeps %s of the "
              "signal from the top, the total gradient is %s of it."
            : "%s: no booth on the lane, %zu on the branches. The lane keeps "
              "%s of the signal from the top, the total gradient is %s of it.",
        r->equation, r->spec.n, lane, total);
}

static void say_post(tb_shot *s)
{
    shot_say(s, "Lane: {N} booths multiply the backward signal; with every "
                "branch cut {E6.lane} of it reach the input. The mean tolls "
                "1/s alone multiply to {E6.scalar}; one token's J_LN, "
                "multiplied out, pass {E6.rms} (RMS), {E6.max} at most.");
    shot_say(s, "Total: with the branches {E7.total} of it reach the input "
                "(from {E7.token.least} to {E7.token.most} by token), "
                "{E7.least} where it is least. That the lane fades is not "
                "that the gradient does.");
    shot_say(s, "A toll is no loss by itself: where s < 1 the booth "
                "amplifies.");
}

static void say_pre(tb_shot *s, const stack_run *r)
{
    shot_say(s, "Lane: {E6.lane} on each of {N} floors, whatever the weights "
                "are.");
    shot_say(s, "Total: not constant; {E7.total} at the input (from "
                "{E7.token.least} to {E7.token.most} by token), up to "
                "{E7.most} on the way. The spread of x goes from {E12.std.0} "
                "to {E12.std} at the top.");
    if (r->exit_norms)
        shot_say(s, "One toll is paid at the exit, {E6.exit}, once for all "
                    "floors.");
}

static tb_status build(tb_shot *s, bool post)
{
    stack_run *r = shot_alloc(s, 1, sizeof *r);
    stack_spec spec = stack_asked(s, post);
    if (!r)
        return TB_ERR_MEMORY;
    spec.opened =
        shot_whole(s, "open") > spec.n ? spec.n : shot_whole(s, "open");
    spec.final = !post && shot_on(s, "final");
    spec.multiplied = post;
    TB_TRY(stack_measure(s, &spec, r));
    shot_title(s,
               post ? "Post-LN: a tollbooth on the highway"
                    : "Pre-LN: the lane is clean",
               describe(s, r));
    tell(s, r);
    TB_TRY(panels(s, r));
    if (post)
        say_post(s);
    else
        say_pre(s, r);
    TB_TRY(tell_fits(s, r));
    if (post)
        check_post(s, r);
    else
        check_pre(s, r);
    return TB_OK;
}

static tb_status build_s5(tb_shot *s)
{
    return build(s, true);
}

static tb_status build_s6(tb_shot *s)
{
    return build(s, false);
}

#define OPEN                                                                   \
    {                                                                          \
        "open", "open the booth of floor (0: none)", TB_SHOT_NUMBER, "0", 0,   \
            96, .step = 1, .whole = true                                       \
    }
#define SHOW                                                                   \
    {                                                                          \
        "show", "show", TB_SHOT_CHOICE, "both", 0, 0, .choices = TOWER_SHOWS   \
    }

const shot_row shot_s5 = {
    .name = "S5",
    .about = "Post-LN: the norm stands on the lane, a booth on every floor",
    .input = {STACK_INPUTS("24"), OPEN, SHOW},
    .build = build_s5,
};

const shot_row shot_s6 = {
    .name = "S6",
    .about = "Pre-LN: the norm stands on the branch, the lane is clean",
    .input = {STACK_INPUTS("24"),
              OPEN,
              SHOW,
              {.name = "final",
               .label = "norm after the last floor",
               .kind = TB_SHOT_SWITCH,
               .own = "1",
               .high = 1}},
    .build = build_s6,
};
