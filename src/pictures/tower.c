/* SPDX-License-Identifier: MIT */
/* The tower as a scene. Floors get thinner as there are more of them; every
 * floor keeps its booth, its lane and its arrows, labels stand where there is
 * room. */
#include "pictures/tower.h"

#include "pictures/diagram.h"

enum {
    NAME_END = 40, /* x of columns */
    LANE_END = 106,
    TOTAL_END = 164,
    TOTAL_X = 190,
    BACK_X = 214,
    LANE_X = 248,
    BOOTH_LEFT = 176,
    BOOTH_RIGHT = 262,
    BOX_X = 292, /* of a small one: SMALL_SHIFT less, and the riser more */
    BOX_W = 44,
    RISER_X = 362,
    SMALL_SHIFT = 10,
    NOTE_X = 386,
    NOTE_WIDTH = 124,
    PROFILE_X = 520,
    PROFILE_END = 716,
    WIDTH = 740,
    SMALL_WIDTH = 366,
    TOP = 66,  /* of the highest floor, without a booth after it */
    EXIT = 34, /* more with it */
    LABEL = 17 /* px between labels */
};

typedef struct layout {
    tb_scene *s;
    const tb_tower *t;
    double h, base;    /* of a floor; y of x_0 */
    size_t step;       /* floors between labels */
    double box, riser; /* x */
} layout;

/* --- places --------------------------------------------------------------- */

static double y_of(const layout *l, double k)
{
    return l->base - k * l->h;
}

static bool labelled(const layout *l, size_t k)
{
    size_t n = l->t->n;
    return k == n || (k % l->step == 0 && n - k >= l->step);
}

static const char *id_of(const layout *l, const char *what, size_t k)
{
    const char *id = tb_arena_printf(&l->s->arena, "%s-%zu", what, k);
    if (!id)
        tb_scene_fail(l->s, TB_ERR_MEMORY);
    return id;
}

/* --- a floor -------------------------------------------------------------- */

/* Below the roof of floor k: where the booth on the lane stands. */
static double booth_height(const layout *l)
{
    return tb_min2(18, 0.3 * l->h);
}

static void booth(const layout *l, double x0, double x1, double y, double h,
                  const char *id, const char *title)
{
    bool thin = h < 6;
    tb_style body = {.role = "toll",
                     .id = id,
                     .title = title,
                     .fill = thin ? TB_TONE_TOLL : TB_TONE_TOLL_SOFT,
                     .stroke = TB_TONE_TOLL,
                     .line = thin ? 0.6 : 1.5,
                     .round = thin ? 0 : 2};
    tb_style pole = {
        .stroke = TB_TONE_TOLL, .line = tb_max2(2, h / 4), .dash = TB_DASHED};
    tb_scene_rect(l->s, x0, y, x1 - x0, h, &body);
    if (!thin)
        tb_scene_line(l->s, x0 + 3, y + h / 2, x1 - 3, y + h / 2, &pole);
}

static void branch(const layout *l, size_t k)
{
    double yf = y_of(l, (double)k - 0.82), yp = y_of(l, (double)k - 0.48);
    double r = tb_min2(7, 0.2 * l->h), high = tb_min2(20, 0.5 * l->h);
    tb_style road = {.role = "fwd",
                     .id = id_of(l, "branch", k),
                     .stroke = TB_TONE_BOX,
                     .line = tb_min2(2, tb_max2(0.8, l->h / 10)),
                     .round = tb_min2(6, l->h / 6)};
    const double path[] = {LANE_X,   yf, l->riser,   yf,
                           l->riser, yp, LANE_X + r, yp};
    tb_style box = {.role = "box",
                    .id = id_of(l, "box", k),
                    .fill = TB_TONE_BOX_SOFT,
                    .stroke = TB_TONE_BOX,
                    .line = l->h < 14 ? 0.8 : 1.5,
                    .round = tb_min2(5, high / 3)};
    tb_style text = {
        .role = "label", .size = 12, .bold = true, .anchor = TB_MIDDLE};
    if (l->h >= 22)
        tb_scene_arrow(l->s, path, 4, &road);
    else
        tb_scene_path(l->s, path, 4, false, &road);
    tb_scene_rect(l->s, l->box, yp - high / 2, BOX_W, high, &box);
    if (high >= 11.5)
        tb_scene_text(l->s, l->box + BOX_W / 2.0, yp + 4.5, "F", &text);
}

static void plus(const layout *l, size_t k)
{
    double y = y_of(l, (double)k - 0.48), r = tb_min2(7, 0.2 * l->h);
    tb_style ring = {.role = "plus",
                     .id = id_of(l, "plus", k),
                     .fill = TB_TONE_PAPER,
                     .stroke = TB_TONE_INK,
                     .line = r < 4 ? 0.8 : 1.5};
    tb_style bar = {.stroke = TB_TONE_INK, .line = 1.3};
    tb_scene_circle(l->s, LANE_X, y, r, &ring);
    if (r < 4)
        return;
    tb_scene_line(l->s, LANE_X - r + 2, y, LANE_X + r - 2, y, &bar);
    tb_scene_line(l->s, LANE_X, y - r + 2, LANE_X, y + r - 2, &bar);
}

static void down(const layout *l, double x, double y0, double y1,
                 const tb_style *st)
{
    if (y1 - y0 >= 11)
        tower_arrow(l->s, x, y0, x, y1, st);
    else
        tb_scene_line(l->s, x, y0, x, y1, st);
}

/* What comes down through floor k, from under its booth to its ground. */
static void back(const layout *l, size_t k)
{
    double gap = l->h < 14 ? 0.5 : 1, y1 = y_of(l, (double)k - 1) - gap;
    double y0 = y_of(l, (double)k) + gap;
    if (l->t->floors[k - 1].on_lane)
        y0 += 0.06 * l->h + booth_height(l);
    tb_style lane = tower_lane(l->t->lane[k - 1]);
    tb_style total = {.role = "grad-total",
                      .id = id_of(l, "total", k),
                      .stroke = TB_TONE_TOTAL,
                      .line = tb_back_width(l->t->total[k - 1])};
    lane.id = id_of(l, "hw", k);
    if (l->t->show != TB_TOWER_LANE)
        down(l, TOTAL_X, y0, y1, &total);
    if (l->t->show != TB_TOWER_TOTAL)
        down(l, BACK_X, y0, y1, &lane);
}

static void floor_notes(const layout *l, size_t k)
{
    tb_style text = {.role = "label", .size = 12, .fill = TB_TONE_TOLL};
    if (l->t->small || !labelled(l, k))
        return;
    const char *words = tower_floor_words(&l->s->arena, l->t, k - 1);
    if (words)
        words = tb_shorten_px(&l->s->arena, words, NOTE_WIDTH, 12, false);
    if (!words)
        tb_scene_fail(l->s, TB_ERR_MEMORY);
    tb_scene_text(l->s, NOTE_X, y_of(l, (double)k - 0.48) + 4, words, &text);
}

/* "floor 3, attn: toll 0.71 on the lane; below it lane 0.5, total 0.9; spread
 * of x above it 1.2" */
static const char *floor_title(const layout *l, size_t k)
{
    const tb_tower_floor *f = &l->t->floors[k - 1];
    char toll[TB_SHOW_CHARS], lane[TB_SHOW_CHARS], total[TB_SHOW_CHARS],
        std[TB_SHOW_CHARS];
    tb_arena *a = &l->s->arena;
    const char *norm = f->on_lane ? "lane" : "branch";
    if (!f->on_lane && !f->on_branch)
        norm = "no norm";
    else if (tb_isfinite(f->toll))
        norm = tb_arena_printf(a, "toll %s on the %s",
                               tb_show_number(f->toll, toll), norm);
    else
        norm = tb_arena_printf(a, "norms on the %s", norm);
    return tb_arena_printf(
        a, "floor %zu, %s: %s; below it lane %s, total %s%s%s", k, f->name,
        norm ? norm : "", tb_show_number(l->t->lane[k - 1], lane),
        tb_show_number(l->t->total[k - 1], total),
        l->t->std ? "; spread of x above it " : "",
        l->t->std ? tb_show_number(l->t->std[k], std) : "");
}

/* From ground to roof; of a floor without a skip to the fork, and again from
 * the plus on. */
static void skip(const layout *l, size_t k)
{
    double top = y_of(l, (double)k), ground = y_of(l, (double)k - 1);
    double yp = y_of(l, (double)k - 0.48), yf = y_of(l, (double)k - 0.82);
    tb_style road = {.role = "skip",
                     .id = id_of(l, "skip", k),
                     .stroke = TB_TONE_LANE,
                     .line = tb_min2(5, tb_max2(3, l->h / 5))};
    if (!l->t->floors[k - 1].cut) {
        tb_scene_line(l->s, LANE_X, ground, LANE_X, top, &road);
        return;
    }
    tb_scene_line(l->s, LANE_X, ground, LANE_X, yf, &road);
    road.id = NULL;
    tb_scene_line(l->s, LANE_X, yp, LANE_X, top, &road);
    tb_plot_marker(
        l->s, TB_MARK_CROSS, LANE_X - 13, (yf + yp) / 2, tb_min2(6, 0.3 * l->h),
        &(tb_style){
            .role = "cut", .fill = TB_TONE_BAD, .title = "no skip here"});
}

static void floor_of(const layout *l, size_t k)
{
    const tb_tower_floor *f = &l->t->floors[k - 1];
    double top = y_of(l, (double)k), yp = y_of(l, (double)k - 0.48);
    double high = booth_height(l);
    const char *title = floor_title(l, k);
    tb_style group = {.role = "floor", .id = id_of(l, "floor", k)};
    if (!title)
        tb_scene_fail(l->s, TB_ERR_MEMORY);
    tb_scene_group(l->s, &group);
    skip(l, k);
    branch(l, k);
    plus(l, k);
    back(l, k);
    if (f->on_lane)
        booth(l, BOOTH_LEFT, BOOTH_RIGHT, top + 0.06 * l->h, high,
              id_of(l, "toll", k), title);
    if (f->on_branch)
        booth(l, l->riser - 13, l->riser + 11, yp - high / 2, high,
              id_of(l, f->on_lane ? "inner" : "toll", k), title);
    tb_scene_end(l->s);
    floor_notes(l, k);
}

/* --- around it ------------------------------------------------------------ */

static void number(const layout *l, double x, double y, double v, tb_tone tone)
{
    char text[TB_SHOW_CHARS];
    tb_style st = {.role = "label", .size = 12, .fill = tone, .anchor = TB_END};
    tb_scene_text(l->s, x, y, tb_show_number(v, text), &st);
}

static void labels(const layout *l)
{
    tb_style name = {.role = "label",
                     .size = 12,
                     .bold = true,
                     .italic = true,
                     .anchor = TB_END};
    for (size_t k = 0; k <= l->t->n; k++) {
        double y = y_of(l, (double)k) + 4, lane = l->t->lane[k];
        if (!labelled(l, k))
            continue;
        tb_scene_text(l->s, NAME_END, y,
                      tb_arena_printf(&l->s->arena, "x%zu", tower_k(l->t, k)),
                      &name);
        if (l->t->show != TB_TOWER_TOTAL)
            number(l, LANE_END, y, lane, tower_lane(lane).stroke);
        if (l->t->show != TB_TOWER_LANE)
            number(l, TOTAL_END, y, l->t->total[k], TB_TONE_TOTAL);
    }
}

static void heads(const layout *l, double y)
{
    tb_style st = {.role = "label", .size = 12, .bold = true, .anchor = TB_END};
    if (l->t->show != TB_TOWER_TOTAL)
        tb_scene_text(l->s, LANE_END, y, "lane", &st);
    if (l->t->show != TB_TOWER_LANE)
        tb_scene_text(l->s, TOTAL_END, y, "total", &st);
}

/* What leaves at the top, and the booth of a final norm. */
static void top(const layout *l)
{
    double y = y_of(l, (double)l->t->n), up = y - 14;
    char toll[TB_SHOW_CHARS];
    tb_style road = {.role = "skip", .stroke = TB_TONE_LANE, .line = 5};
    tb_style text = {.role = "label", .size = 12, .fill = TB_TONE_TOLL};
    if (l->t->exit)
        up -= EXIT;
    tb_scene_arrow(l->s, (double[]){LANE_X, y, LANE_X, up}, 2, &road);
    if (!l->t->exit)
        return;
    tb_scene_group(l->s, &(tb_style){.role = "exit", .id = "exit"});
    booth(l, BOOTH_LEFT, BOOTH_RIGHT, y - 26, 18, "toll-exit",
          "final norm: one toll after the last floor");
    tb_scene_end(l->s);
    tb_scene_text(l->s, BOOTH_RIGHT + 5, y - 13,
                  tb_arena_printf(&l->s->arena, "exit toll %s",
                                  tb_show_number(l->t->exit_toll, toll)),
                  &text);
}

/* --- profile -------------------------------------------------------------- */

/* A point alone is a dot. */
static void stretch(tb_scene *s, const double *xy, size_t n, const tb_style *st)
{
    if (n == 1)
        tb_plot_marker(s, TB_MARK_DOT, xy[0], xy[1], st->line,
                       &(tb_style){.role = st->role, .fill = st->stroke});
    else if (n)
        tb_scene_path(s, xy, n, false, st);
}

static void curve(const layout *l, const tb_axis *a, bool lane)
{
    size_t n = l->t->n, count = 0;
    double *xy = tb_arena_alloc(&l->s->arena, 2 * (n + 1) * sizeof *xy);
    tb_style st =
        lane ? tower_lane(l->t->lane[0]) : (tb_style){.stroke = TB_TONE_TOTAL};
    st.role = lane ? "grad-hw-line" : "grad-total-line";
    st.line = lane ? 4 : 2;
    if (!xy) {
        tb_scene_fail(l->s, TB_ERR_MEMORY);
        return;
    }
    for (size_t k = 0; k <= n; k++) {
        double v = lane ? l->t->lane[k] : l->t->total[k];
        tb_state state = tb_axis_state(a, v);
        tb_style zero = {.fill = st.stroke};
        if (state == TB_DRAWN || state == TB_ABOVE || state == TB_BELOW) {
            xy[2 * count] = tb_axis_px(a, v);
            xy[2 * count++ + 1] = y_of(l, (double)k);
            continue;
        }
        stretch(l->s, xy, count, &st); /* no line over what has no place */
        count = 0;
        if (state == TB_FLOOR)
            tb_plot_marker(l->s, TB_MARK_TRIANGLE, a->p_lo, y_of(l, (double)k),
                           4, &zero);
    }
    stretch(l->s, xy, count, &st);
}

/* Beside its line, on the side where the other one is not; beside a triangle
 * with the zero it stands for. */
static void name_curve(const layout *l, const tb_axis *a, bool lane)
{
    static const double places[] = {0.4, 0.55, 0.25, 0.7, 0.85, 0.1};
    static const char *const names[] = {"total", "lane", "total: 0", "lane: 0"};
    const double *own = lane ? l->t->lane : l->t->total;
    const double *other = lane ? l->t->total : l->t->lane;
    tb_style st = {.role = "label",
                   .size = 12,
                   .bold = true,
                   .fill =
                       lane ? tower_lane(l->t->lane[0]).stroke : TB_TONE_TOTAL};
    for (size_t i = 0; i < TB_LEN(places); i++) {
        size_t k = (size_t)(places[i] * (double)l->t->n);
        bool left = own[k] < other[k] || (own[k] == other[k] && lane);
        tb_state state = tb_axis_state(a, own[k]);
        if (state != TB_DRAWN && state != TB_FLOOR)
            continue;
        bool zero = state == TB_FLOOR;
        const char *text = names[lane + 2 * zero];
        double w = tb_text_width(text, 12, true);
        double x = zero ? a->p_lo : tb_axis_px(a, own[k]);
        left = left && !zero;
        x += left ? -9 : 9;
        st.anchor = left ? TB_END : TB_START;
        double from = left ? x - w : x;
        double far = tb_axis_state(a, other[k]) == TB_DRAWN
                         ? tb_axis_px(a, other[k])
                         : a->p_lo;
        bool free = far < from - 2 || far > from + w + 2;
        if (free && from >= PROFILE_X - 40 && from + w <= WIDTH &&
            tb_plot_label(l->s, x, y_of(l, (double)k) + 4, text, &st))
            return;
    }
}

static void profile(const layout *l, double head)
{
    tb_axis a = {0};
    tb_style grid = {.role = "axis", .stroke = TB_TONE_GRID, .line = 1};
    tb_style one = {.role = "axis", .stroke = TB_TONE_MUTED, .line = 1};
    tb_style tick = {.role = "label", .size = 12, .anchor = TB_MIDDLE};
    tb_style bold = {.role = "label", .size = 12, .bold = true};
    double y0 = y_of(l, (double)l->t->n) - 6, y1 = y_of(l, 0) + 6;
    char text[TB_SHOW_CHARS];
    tower_axis(l->t, &a);
    a.p_lo = PROFILE_X;
    a.p_hi = PROFILE_END;
    tb_scene_text(l->s, PROFILE_X - 10, head, "gain from the top, log scale",
                  &bold);
    for (size_t i = 0; i < a.n_ticks; i++) {
        double x = tb_axis_unit_px(&a, a.tick[i]);
        tb_scene_line(l->s, x, y0, x, y1, a.tick[i] == 0 ? &one : &grid);
        tb_plot_label(l->s, x, y1 + 14, tb_axis_label(&a, i, text), &tick);
    }
    if (l->t->show != TB_TOWER_LANE)
        curve(l, &a, false);
    if (l->t->show != TB_TOWER_TOTAL)
        curve(l, &a, true);
    if (l->t->show != TB_TOWER_LANE)
        name_curve(l, &a, false);
    if (l->t->show != TB_TOWER_TOTAL)
        name_curve(l, &a, true);
}

/* --- all of it ------------------------------------------------------------ */

static double caption(const layout *l, double y, double w)
{
    static const char *const texts[] = {
        [TB_TOWER_BOTH] = "Coming down: lane, the signal with every branch cut "
                          "(E6); grey, the total gradient, branches included "
                          "(E7). Both relative to the top of the stack.",
        [TB_TOWER_LANE] = "Coming down: lane, the signal with every branch cut "
                          "(E6), relative to the top of the stack. The total "
                          "is another number, not shown now.",
        [TB_TOWER_TOTAL] = "Coming down: the total gradient, branches included "
                           "(E7), relative to the top of the stack. The lane "
                           "is another number, not shown now."};
    tb_style note = {.role = "note", .fill = TB_TONE_MUTED, .size = 12};
    y = tower_legend(l->s, 14, y, w - 28, l->t->show);
    y = tb_scene_wrap(l->s, 14, y, w - 28, texts[l->t->show], &note);
    return l->t->note ? tb_scene_wrap(l->s, 14, y, w - 28, l->t->note, &note)
                      : y;
}

static void draw(layout *l)
{
    double w = l->t->small ? SMALL_WIDTH : WIDTH;
    double all = l->t->height > 0 ? l->t->height : 560;
    size_t n = l->t->n;
    l->h = tb_min2(56, tb_max2(7, all / (double)n));
    l->step = (size_t)tb_ceil(LABEL / l->h);
    l->box = l->t->small ? BOX_X - SMALL_SHIFT : BOX_X;
    l->riser = l->t->small ? RISER_X - 2 * SMALL_SHIFT : RISER_X;
    double high = l->h * (double)n, head = 48;
    double top_y = TOP + (l->t->exit || l->t->roof ? EXIT : 0);
    l->base = top_y + high;
    tb_scene_resize(l->s, w, l->base + 90);
    tb_scene_text(l->s, 14, 22,
                  tb_shorten_px(&l->s->arena, l->t->title, w - 28, 15, true),
                  &(tb_style){.size = 15, .bold = true});
    heads(l, head);
    for (size_t k = 1; k <= n; k++)
        floor_of(l, k);
    top(l);
    labels(l);
    if (!l->t->small)
        profile(l, head);
    tb_style in = {.role = "in-arrow", .stroke = TB_TONE_IN, .line = 3};
    tb_scene_arrow(l->s, (double[]){LANE_X, l->base + 18, LANE_X, l->base + 2},
                   2, &in);
    double y = caption(l, l->base + 42, w);
    tb_scene_resize(l->s, w, y);
}

static const char *describe(tb_arena *a, const tb_tower *t)
{
    char lane[TB_SHOW_CHARS], total[TB_SHOW_CHARS];
    size_t on_lane = 0, on_branch = 0;
    for (size_t k = 0; k < t->n; k++) {
        on_lane += t->floors[k].on_lane;
        on_branch += t->floors[k].on_branch;
    }
    const char *norms = on_lane == t->n && !on_branch ? "a norm on every merge"
                        : on_branch == t->n && !on_lane
                            ? "a norm on every branch"
                            : tb_arena_printf(a,
                                              "norms on the lane of %zu and in "
                                              "a branch of %zu",
                                              on_lane, on_branch);
    return norms
               ? tb_arena_printf(
                     a,
                     "%s, %zu floor%s, %s%s. At the input the lane keeps %s "
                     "of the signal at the top, the total gradient is %s of "
                     "it.",
                     t->block ? t->block : t->title, t->n, t->n == 1 ? "" : "s",
                     norms, t->exit ? " and one after the last floor" : "",
                     tb_show_number(t->lane[0], lane),
                     tb_show_number(t->total[0], total))
               : NULL;
}

tb_status tb_tower_scene(tb_ctx *ctx, const tb_tower *t, tb_scene **out)
{
    layout l = {.t = t};
    *out = NULL;
    TB_TRY(tower_check(ctx, t));
    TB_TRY(tb_scene_create(ctx, WIDTH, 300, t->title, "tower", &l.s));
    const char *desc = describe(&l.s->arena, t);
    if (desc)
        tb_scene_describe(l.s, desc);
    else
        tb_scene_fail(l.s, TB_ERR_MEMORY);
    tb_scene_group(l.s, &(tb_style){.role = "stack", .id = "stack"});
    draw(&l);
    tb_scene_end(l.s);
    return tb_scene_done(l.s, out);
}
