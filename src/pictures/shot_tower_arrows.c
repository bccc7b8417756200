/* SPDX-License-Identifier: MIT */
/* Arrows of what comes back, and their legend. */
#include "pictures/diagram.h"
#include "pictures/shot_tower.h"

bool tower_weak(double gain)
{
    return !(gain >= 0.9);
}

void tower_arrow(tb_scene *s, double x0, double y0, double x1, double y1,
                 const tb_style *st)
{
    double length = tb_fabs(x1 - x0) + tb_fabs(y1 - y0);
    double head = tb_min2(7, length / 2), half = st->line / 2 + 3;
    double dx = (x1 - x0) / length, dy = (y1 - y0) / length;
    double bx = x1 - dx * head, by = y1 - dy * head;
    tb_style tip = {.fill = st->stroke};
    tb_scene_line(s, x0, y0, bx, by, st);
    tb_scene_path(s,
                  (double[]){x1, y1, bx - dy * half, by + dx * half,
                             bx + dy * half, by - dx * half},
                  3, true, &tip);
}

tb_style tower_lane(double gain)
{
    bool weak = tower_weak(gain);
    return (tb_style){.role = "grad-hw",
                      .stroke = weak ? TB_TONE_BAD : TB_TONE_LANE,
                      .dash = weak ? TB_DASHED : TB_SOLID,
                      .line = tb_back_width(gain)};
}

double tower_legend(tb_scene *s, double x, double y, double width)
{
    static const double gains[] = {1, 0.1, 0.01, 0.001};
    static const char *const texts[] = {"1", "0.1", "0.01",
                                        "\xE2\x89\xA4 0.001"};
    tb_style label = {.role = "label", .size = 12};
    double at = x;
    tb_scene_text(s, at, y, "width of an arrow:", &label);
    at += tb_text_width("width of an arrow:", 12, false) + 10;
    for (size_t i = 0; i < TB_LEN(gains); i++) {
        tb_style st = {.stroke = TB_TONE_TOTAL,
                       .line = tb_back_width(gains[i])};
        tb_scene_line(s, at, y - 4, at + 18, y - 4, &st);
        tb_scene_text(s, at + 23, y, texts[i], &label);
        at += 34 + tb_text_width(texts[i], 12, false);
    }
    if (at - x + 260 > width) {
        at = x;
        y += 20;
    }
    tb_style good = tower_lane(1), bad = tower_lane(0.5);
    good.role = bad.role = NULL;
    good.line = bad.line = 5;
    tb_scene_line(s, at + 4, y - 4, at + 26, y - 4, &good);
    tb_scene_line(s, at + 30, y - 4, at + 56, y - 4, &bad);
    tb_scene_text(s, at + 62, y, "lane (dashed: under 0.9)", &label);
    return y + 20;
}
