/* SPDX-License-Identifier: MIT */
/* What stands on the roads of a block diagram: boxes, pills, the plus, and
 * the tollbooth with its barriers. */
#include "pictures/diagram.h"

void tb_part_text(tb_scene *s, double x, double y, const char *text,
                  const tb_style *st)
{
    const char *cut = text ? tb_shorten_px(&s->arena, text, TB_PART_TEXT_MAX,
                                           st->size, st->bold)
                           : NULL;
    if (cut)
        tb_scene_text(s, x, y, cut, st);
    else
        tb_scene_fail(s, TB_ERR_MEMORY);
}

void tb_part_barrier(tb_scene *s, double x, double y)
{
    tb_style pole = {.stroke = TB_TONE_TOLL, .line = 6};
    tb_style stripe = {.stroke = TB_TONE_PAPER, .line = 3};
    tb_scene_line(s, x, y - TB_PART_HALF, x, y + TB_PART_HALF, &pole);
    for (int i = 0; i < 4; i++) {
        double top = y - TB_PART_HALF + 3 + i * 8;
        tb_scene_line(s, x, top, x, top + 4, &stripe);
    }
}

/* Booth: body, roof, and the barrier over the road on the exit side. */
void tb_part_booth(tb_scene *s, const tb_diagram_part *p, tb_box at,
                   const char *id, const char *toll)
{
    bool both = at.h > 3 * TB_PART_HALF; /* stands on the backward road too */
    double middle = at.x + at.w / 2;
    tb_style group = {.role = "norm"};
    tb_style body = {.role = "toll",
                     .id = id,
                     .title = toll ? "norm on the lane: a toll in both "
                                     "directions"
                                   : "norm on the branch",
                     .fill = TB_TONE_TOLL_SOFT,
                     .stroke = TB_TONE_TOLL,
                     .line = 1.8,
                     .round = 3};
    tb_style roof = {.fill = TB_TONE_TOLL};
    tb_style label = {
        .role = "label", .size = 13, .bold = true, .anchor = TB_MIDDLE};
    tb_style small = {.role = "label", .size = 12, .anchor = TB_MIDDLE};
    tb_scene_group(s, &group);
    tb_scene_rect(s, at.x, at.y, at.w, at.h, &body);
    tb_scene_path(s,
                  (double[]){at.x - 4, at.y, at.x + 3, at.y - 7,
                             at.x + at.w - 3, at.y - 7, at.x + at.w + 4, at.y},
                  4, true, &roof);
    tb_part_barrier(s, at.x + at.w + 7, at.y + TB_PART_HALF);
    if (both)
        tb_part_barrier(s, at.x - 7, at.y + at.h - TB_PART_HALF);
    tb_part_text(s, middle, at.y + TB_PART_HALF + 5,
                 tb_part_label(&s->arena, p), &label);
    double y = at.y + at.h + (both ? -TB_PART_HALF + 2 : 21);
    if (both && toll && *toll)
        tb_scene_text(s, middle, y - 15, "toll", &small);
    tb_scene_text(s, middle, y, toll, &small);
    tb_scene_end(s);
}

void tb_part_shape(tb_scene *s, tb_diagram_kind kind, const char *text,
                   tb_box at, bool on_lane)
{
    bool plain = kind == TB_DIAGRAM_BOX;
    tb_tone tone = on_lane && !plain ? TB_TONE_LANE : TB_TONE_BOX;
    tb_style st = {.role = plain                     ? "box"
                           : kind == TB_DIAGRAM_GATE ? "gate"
                                                     : "scale",
                   .fill = tone == TB_TONE_LANE ? TB_TONE_LANE_SOFT
                                                : TB_TONE_BOX_SOFT,
                   .stroke = tone,
                   .line = 1.8,
                   .dash = kind == TB_DIAGRAM_GATE ? TB_DASHED : TB_SOLID,
                   .round = plain ? 7 : TB_PART_HALF};
    tb_style label = {
        .role = "label", .size = 13, .bold = true, .anchor = TB_MIDDLE};
    tb_scene_rect(s, at.x, at.y, at.w, at.h, &st);
    tb_part_text(s, at.x + at.w / 2, at.y + TB_PART_HALF + 5, text, &label);
}

void tb_part_box(tb_scene *s, const tb_diagram_part *p, tb_box at, bool on_lane)
{
    tb_part_shape(s, p->kind, tb_part_label(&s->arena, p), at, on_lane);
}

double tb_back_width(double g)
{
    if (!(g > 1e-3))
        return 1;
    return 1 + 3 * (tb_log10(tb_min2(g, 10)) + 3);
}

void tb_part_plus(tb_scene *s, double x, double y, double r)
{
    tb_style ring = {.role = "plus",
                     .title = "add",
                     .fill = TB_TONE_PAPER,
                     .stroke = TB_TONE_INK,
                     .line = 2};
    tb_style bar = {.stroke = TB_TONE_INK, .line = 2};
    tb_scene_circle(s, x, y, r, &ring);
    tb_scene_line(s, x - 7, y, x + 7, y, &bar);
    tb_scene_line(s, x, y - 7, x, y + 7, &bar);
}

void tb_part_branch(tb_scene *s, double fork, double plus, double lane,
                    double high, double r)
{
    tb_style branch = {.role = "fwd",
                       .id = "branch",
                       .stroke = TB_TONE_BOX,
                       .line = 2.4,
                       .round = 12};
    tb_scene_arrow(
        s, (double[]){fork, lane, fork, high, plus, high, plus, lane - r - 1},
        4, &branch);
    tb_scene_circle(s, fork, lane, 5, &(tb_style){.fill = TB_TONE_BOX});
}
