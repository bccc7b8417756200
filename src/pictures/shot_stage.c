/* SPDX-License-Identifier: MIT */
/* A stage as a scene: lists as rows of bars, the box on the road between
 * them, the skip over it, backward arrows beside the roads they take. */
#include "pictures/diagram.h"
#include "pictures/shot_stage_parts.h"

enum {
    MARGIN = 14,
    LIST = 150,      /* px of a list */
    LIST_BACK = 170, /* where there are backward arrows */
    LIST_WIDE = 214, /* where there are two */
    GAP = 40,        /* arrow between two things */
    GAP_BACK = 92,   /* the same with words for the way back */
    BOX = 86,
    BOX_HALF = 28,
    RADIUS = 13,
    BACK = 44,  /* forward road to backward road */
    UNDER = 22, /* the skip's road to its backward road */
    NUMBER = 52,
    LABEL = 28
};

/* --- lists ---------------------------------------------------------------- */

double stage_row_height(size_t d)
{
    return d <= 8 ? 20 : 16;
}

static double bar_x(const stage_bars *b, double v)
{
    double left = b->x + LABEL, right = b->x + b->w - NUMBER;
    return left + (v - b->lo) / (b->hi - b->lo) * (right - left);
}

static void one_bar(tb_scene *s, const stage_bars *b, const char *id,
                    double from, double to, double y, double h, tb_tone tone,
                    const char *title, bool quiet)
{
    double x0 = bar_x(b, from), x1 = bar_x(b, to);
    tb_style st = {.role = "bar",
                   .id = id,
                   .title = title,
                   .fill = tone,
                   .alpha = quiet ? 0.65 : 0};
    tb_scene_rect(s, tb_min2(x0, x1), y, tb_fabs(x1 - x0), h, &st);
}

/* "x₃ = 4"; where lists are added "x₃ + F₃ = y₃: 4 + 0.5 = 4.5" on every one
 * of them. */
static const char *bar_title(tb_scene *s, const stage_bars *b, size_t i)
{
    static const char *const letters[] = {"x", "F", "y"};
    char v[3][TB_SHOW_CHARS];
    const char *name[3];
    const shot_stage *st = b->sum;
    tb_arena *a = &s->arena;
    for (size_t k = 0; k < 3; k++)
        if (!(name[k] = tb_subscript(a, st ? letters[k] : b->letter, i + 1)))
            return NULL;
    if (!st)
        return tb_arena_printf(a, "%s = %s", name[0],
                               tb_show_number(b->v[i], v[0]));
    tb_show_number(st->x[i], v[0]);
    tb_show_number(st->f ? st->f[i] : st->y[i] - st->x[i], v[1]);
    tb_show_number(st->y[i], v[2]);
    return tb_arena_printf(a, "%s + %s = %s: %s + %s = %s", name[0], name[1],
                           name[2], v[0], v[1], v[2]);
}

/* The part from zero, the rest from its end: beside it where it goes on, in
 * the lower half of the row where it goes back; a tick where both end. */
static void two_parts(tb_scene *s, const stage_bars *b, size_t i, double y,
                      double h, const char *title)
{
    double part = b->part[i], rest = b->v[i] - part;
    bool on = (part >= 0) == (rest >= 0) || part == 0 || rest == 0;
    double half = on ? 0 : h / 2;
    bool quiet = b->focus && b->focus != i + 1;
    one_bar(s, b, tb_arena_printf(&s->arena, "%s-%zu", b->id, i + 1), 0, part,
            y, h - half, b->tone, title, quiet);
    one_bar(s, b, tb_arena_printf(&s->arena, "%s-rest-%zu", b->id, i + 1), part,
            b->v[i], y + half, h - half, b->rest, title, quiet);
    double x = bar_x(b, b->v[i]);
    tb_style tick = {.role = "sum-mark", .stroke = TB_TONE_INK, .line = 1.5};
    tb_scene_line(s, x, y - 1, x, y + h + 1, &tick);
}

static void bar_row(tb_scene *s, const stage_bars *b, size_t i)
{
    double row = stage_row_height(b->d), y = b->top + row * (double)i;
    char text[TB_SHOW_CHARS];
    bool quiet = b->focus && b->focus != i + 1;
    tb_style label = {.role = "label", .fill = TB_TONE_MUTED, .size = 12};
    const char *name = tb_subscript(&s->arena, b->letter, i + 1);
    const char *title = bar_title(s, b, i);
    if (!name || !title) {
        tb_scene_fail(s, TB_ERR_MEMORY);
        return;
    }
    tb_scene_text(s, b->x, y + row / 2 + 4, name, &label);
    if (b->part)
        two_parts(s, b, i, y + 3, row - 6, title);
    else
        one_bar(s, b, tb_arena_printf(&s->arena, "%s-%zu", b->id, i + 1), 0,
                b->v[i], y + 3, row - 6, b->tone, title, quiet);
    if (b->nudged && b->nudged[i] != b->v[i]) {
        double x = bar_x(b, b->nudged[i]);
        tb_style tick = {.role = "nudge",
                         .title = "after the nudge",
                         .stroke = TB_TONE_INK,
                         .line = 2};
        tb_scene_line(s, x, y + 1, x, y + row - 1, &tick);
    }
    label.fill = quiet ? TB_TONE_MUTED : TB_TONE_INK;
    label.anchor = TB_END;
    tb_scene_text(s, b->x + b->w, y + row / 2 + 4,
                  tb_show_number(b->v[i], text), &label);
}

void stage_bars_draw(tb_scene *s, const stage_bars *b)
{
    double bottom = b->top + stage_row_height(b->d) * (double)b->d;
    tb_style title = {.role = "label",
                      .fill = b->part ? TB_TONE_INK : b->tone,
                      .size = 14,
                      .bold = true};
    tb_style group = {.role = "card", .id = b->id, .title = b->title};
    tb_style axis = {.role = "axis", .stroke = TB_TONE_MUTED, .line = 1};
    tb_scene_text(s, b->x, b->top - 9, b->title, &title);
    tb_scene_group(s, &group);
    for (size_t i = 0; i < b->d; i++)
        bar_row(s, b, i);
    tb_scene_line(s, bar_x(b, 0), b->top, bar_x(b, 0), bottom, &axis);
    tb_scene_end(s);
}

/* --- places --------------------------------------------------------------- */

typedef struct layout {
    tb_scene *s;
    const shot_stage *st;
    double lo, hi, rows, list, gap; /* px of all rows, of a list, of an arrow */
    double arch, lane, back, top, bottom;
    double x, fork, box, f, plus, y, right; /* left edges; centre of plus */
} layout;

static void place(layout *l)
{
    const shot_stage *st = l->st;
    l->rows = stage_row_height(st->d) * (double)st->d;
    l->list = st->back ? LIST_BACK : st->y ? LIST : LIST_WIDE;
    l->gap = st->back ? GAP_BACK : st->y ? GAP : GAP + 26;
    l->arch = 40;
    l->lane = tb_max2(st->y ? l->arch + 36 : 40, 0) + l->rows / 2;
    if (st->y)
        l->lane = tb_max2(l->lane, l->arch + BOX_HALF + 28);
    if (st->back)
        l->lane = tb_max2(l->lane, l->arch + UNDER + BOX_HALF + 54);
    l->back = l->lane + BACK;
    l->top = l->lane - l->rows / 2;
    l->bottom = tb_max2(l->top + l->rows, l->lane + BOX_HALF);
    if (st->back)
        l->bottom = tb_max2(l->bottom, l->back + BOX_HALF + 8);
    l->x = MARGIN;
    l->fork = l->x + l->list + (st->back ? 32 : 18);
    l->box = l->x + l->list + l->gap + (st->back ? 12 : 4);
    double at = l->box + BOX;
    if (st->f) {
        l->f = at + l->gap;
        at = l->f + l->list;
    }
    l->right = at + MARGIN;
    if (st->y) {
        l->plus = at + l->gap + (st->back ? 12 : RADIUS);
        l->y = l->plus + RADIUS + (st->back ? 70 : l->gap);
        l->right = l->y + l->list + MARGIN;
    }
}

/* --- roads ---------------------------------------------------------------- */

static void caption(tb_scene *s, double x, double y, const char *text,
                    tb_tone tone)
{
    tb_style st = {
        .role = "label", .fill = tone, .size = 12, .anchor = TB_MIDDLE};
    tb_scene_text(s, x, y, text, &st);
}

static void cross(tb_scene *s, double x, double y)
{
    tb_style st = {.role = "broken",
                   .title = "this road is broken",
                   .stroke = TB_TONE_BAD,
                   .line = 3};
    tb_scene_line(s, x - 8, y - 8, x + 8, y + 8, &st);
    tb_scene_line(s, x - 8, y + 8, x + 8, y - 8, &st);
}

static void skip_road(layout *l)
{
    tb_scene *s = l->s;
    double middle = (l->fork + l->plus) / 2;
    double end = l->lane - RADIUS - 1;
    tb_style road = {.role = "skip",
                     .id = "skip",
                     .title = "the skip: x itself, around the box",
                     .stroke = TB_TONE_LANE,
                     .line = 5,
                     .round = 14};
    if (l->st->skip) {
        tb_scene_arrow(s,
                       (double[]){l->fork, l->lane, l->fork, l->arch, l->plus,
                                  l->arch, l->plus, end},
                       4, &road);
        caption(s, middle, l->arch - 10, "skip: x itself", TB_TONE_LANE);
        return;
    }
    road.role = "broken";
    road.dash = TB_DASHED;
    road.stroke = TB_TONE_BAD;
    road.line = 2;
    road.title = "the skip is broken: y = F(x)";
    tb_scene_path(s,
                  (double[]){l->fork, l->lane, l->fork, l->arch, l->plus,
                             l->arch, l->plus, end},
                  4, false, &road);
    cross(s, middle, l->arch);
    caption(s, middle, l->arch - 14, "skip broken", TB_TONE_BAD);
}

static void arrow(layout *l, double from, double to, const char *role,
                  const char *id, tb_tone tone, const char *text)
{
    tb_style st = {.role = role, .id = id, .stroke = tone, .line = 3};
    tb_scene_arrow(l->s, (double[]){from, l->lane, to, l->lane}, 2, &st);
    if (text)
        caption(l->s, (from + to) / 2, l->lane - 10, text, tone);
}

static void forward(layout *l)
{
    const shot_stage *st = l->st;
    double out = l->box + BOX, stop = l->plus - RADIUS - 1;
    arrow(l, l->x + l->list + 6, l->box - 1, "in-arrow", "in-arrow", TB_TONE_IN,
          st->y ? NULL : "x");
    if (st->y) /* right of the fork, and of what comes back to it */
        caption(l->s, (l->fork + (st->back ? 30 : 0) + l->box) / 2 - 2,
                l->lane - 10, "x", TB_TONE_IN);
    if (st->f) {
        arrow(l, out, l->f - 6, "box-out", "box-out", TB_TONE_BOX,
              st->y ? NULL : "F(x)");
        if (st->y)
            arrow(l, l->f + l->list + 6, stop, "box-out", "f-road", TB_TONE_BOX,
                  NULL);
    } else {
        arrow(l, out, stop, "box-out", "box-out", TB_TONE_BOX, "F(x)");
    }
    if (!st->y)
        return;
    skip_road(l);
    tb_style dot = {.fill = TB_TONE_LANE};
    tb_scene_circle(l->s, l->fork, l->lane, 5, &dot);
    arrow(l, l->plus + RADIUS + 1, l->y - 6, "fwd", "y-arrow", TB_TONE_INK,
          "y");
}

/* --- the way back --------------------------------------------------------- */

static void back_caption(layout *l, double x, double y, const char *name,
                         double g, tb_tone tone)
{
    char text[TB_SHOW_CHARS];
    const char *words =
        tb_arena_printf(&l->s->arena, "%s %s", name, tb_show_number(g, text));
    caption(l->s, x, y, words ? words : "", tone);
}

static tb_style back_style(const char *role, double g, tb_tone tone)
{
    return (tb_style){.role = role,
                      .id = role,
                      .stroke = tone,
                      .line = tb_back_width(g),
                      .round = 10};
}

static void backward(layout *l)
{
    tb_scene *s = l->s;
    const stage_back *b = l->st->back;
    double under = l->arch + UNDER, inner = l->plus - 20, left = l->fork + 20;
    tb_style total = back_style("grad-total", b->out, TB_TONE_TOTAL);
    tb_style hw = back_style("grad-hw", b->hw, TB_TONE_LANE);
    tb_style br = back_style("grad-br", b->br, TB_TONE_BOX);
    total.id = "grad-out";
    tb_scene_arrow(s, (double[]){l->y - 4, l->back, l->plus + 4, l->back}, 2,
                   &total);
    back_caption(l, (l->plus + l->y) / 2 + 2, l->back + 24, "g", b->out,
                 TB_TONE_TOTAL);
    if (l->st->skip)
        tb_scene_arrow(s,
                       (double[]){inner, l->lane - 20, inner, under, left,
                                  under, left, l->back - 9},
                       4, &hw);
    back_caption(l, (l->fork + l->plus) / 2, under + 24, "back, skip", b->hw,
                 TB_TONE_LANE);
    tb_scene_arrow(s, (double[]){inner + 16, l->back, left + 10, l->back}, 2,
                   &br);
    back_caption(l, (l->box + BOX + l->plus) / 2, l->back + 24, "back, F",
                 b->br, TB_TONE_BOX);
    total = back_style("grad-total", b->in, TB_TONE_TOTAL);
    total.id = "grad-in";
    tb_scene_arrow(s, (double[]){left, l->back, l->x + l->list + 8, l->back}, 2,
                   &total);
    back_caption(l, l->x + l->list + 44, l->back + 24, "at x", b->in,
                 TB_TONE_TOTAL);
}

/* --- box and plus --------------------------------------------------------- */

static void box(layout *l)
{
    const shot_stage *st = l->st;
    double bottom = (st->back ? l->back : l->lane) + BOX_HALF;
    double top = l->lane - BOX_HALF, middle = l->box + BOX / 2.0;
    tb_style body = {.role = "box",
                     .id = "box",
                     .title = st->note,
                     .fill = TB_TONE_BOX_SOFT,
                     .stroke = TB_TONE_BOX,
                     .line = 2,
                     .round = 10};
    tb_style name = {
        .role = "label", .size = 20, .bold = true, .anchor = TB_MIDDLE};
    tb_style note = {.role = "label", .size = 12, .anchor = TB_MIDDLE};
    tb_scene_rect(l->s, l->box, top, BOX, bottom - top, &body);
    tb_scene_text(l->s, middle, l->lane + (st->note ? 1 : 7), st->box, &name);
    tb_scene_text(l->s, middle, l->lane + 18, st->note, &note);
    if (st->box_broken)
        cross(l->s, l->box + 12, top + 12);
}

/* --- scene ---------------------------------------------------------------- */

void stage_range(const shot_stage *st, double *lo, double *hi)
{
    const double *lists[] = {st->x, st->f, st->y, st->x_nudged, st->y_nudged};
    *lo = *hi = 0;
    for (size_t k = 0; k < TB_LEN(lists); k++)
        for (size_t i = 0; lists[k] && i < st->d; i++) {
            *lo = tb_min2(*lo, lists[k][i]);
            *hi = tb_max2(*hi, lists[k][i]);
        }
    if (*lo == *hi)
        *hi = 1;
}

static void lists(layout *l)
{
    const shot_stage *st = l->st;
    stage_bars b = {.title = "x",
                    .id = "x",
                    .letter = "x",
                    .d = st->d,
                    .v = st->x,
                    .nudged = st->x_nudged,
                    .tone = TB_TONE_IN,
                    .sum = st->y && st->skip ? st : NULL,
                    .lo = l->lo,
                    .hi = l->hi,
                    .x = l->x,
                    .top = l->top,
                    .w = l->list};
    stage_bars_draw(l->s, &b);
    b.nudged = NULL;
    if (st->f) {
        b.title = "F(x)";
        b.id = b.letter = "F";
        b.v = st->f;
        b.tone = TB_TONE_BOX;
        b.x = l->f;
        stage_bars_draw(l->s, &b);
    }
    if (!st->y)
        return;
    b.title = st->skip ? "y = x + F(x)" : "y = F(x)";
    b.id = b.letter = "y";
    b.v = st->y;
    b.part = st->skip ? st->x : NULL;
    b.nudged = st->y_nudged;
    b.tone = st->skip ? TB_TONE_LANE : TB_TONE_BOX;
    b.rest = TB_TONE_BOX;
    b.x = l->y;
    stage_bars_draw(l->s, &b);
}

static void draw(layout *l)
{
    static const char law[] = "Arrows back are 10 px wide where they carry as "
                              "much as arrives at y, 3 px less for each "
                              "factor 10.";
    tb_style note = {.role = "note", .fill = TB_TONE_MUTED, .size = 12};
    stage_range(l->st, &l->lo, &l->hi);
    place(l);
    forward(l);
    lists(l);
    box(l);
    if (l->st->y)
        tb_part_plus(l->s, l->plus, l->lane, RADIUS);
    double y = l->bottom + 12;
    if (l->st->back) {
        backward(l);
        y = tb_scene_wrap(l->s, MARGIN, l->bottom + 24, l->right - 2 * MARGIN,
                          law, &note);
        if (l->st->x_nudged)
            y = tb_scene_wrap(l->s, MARGIN, y, l->right - 2 * MARGIN,
                              "Thin lines across bars: where x and y stand "
                              "after the nudge, by J.",
                              &note);
    }
    tb_scene_resize(l->s, l->right, y);
}

tb_status stage_scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    const shot_stage *st = data;
    layout l = {.st = st};
    *out = NULL;
    TB_TRY(tb_scene_create(ctx, 760, 300, st->title, st->desc, &l.s));
    draw(&l);
    return tb_scene_done(l.s, out);
}
