/* SPDX-License-Identifier: MIT */
/* Arrows of what comes back, their legend, the scale of the gains and the words
 * of a floor. */
#include "pictures/diagram.h"
#include "pictures/tower.h"

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
    bool weak = !(gain >= 0.9);
    return (tb_style){.role = "grad-hw",
                      .stroke = weak ? TB_TONE_BAD : TB_TONE_LANE,
                      .dash = weak ? TB_DASHED : TB_SOLID,
                      .line = tb_back_width(gain)};
}

/* Where the next item of a legend goes: on the next line if it is too long. */
static void next_item(double *at, double *y, double x, double right,
                      double wide)
{
    if (*at > x && *at + wide > right) {
        *at = x;
        *y += 20;
    }
}

static void name_after(tb_scene *s, double *at, double y, double line,
                       const char *text)
{
    tb_style label = {.role = "label", .size = 12};
    tb_scene_text(s, *at + line + 5, y, text, &label);
    *at += line + 15 + tb_text_width(text, 12, false);
}

double tower_legend(tb_scene *s, double x, double y, double width,
                    tb_tower_show show)
{
    static const double gains[] = {10, 1, 0.1, 0.01, 0.001};
    static const char *const texts[] = {"\xE2\x89\xA5 10", "1", "0.1", "0.01",
                                        "\xE2\x89\xA4 0.001"};
    static const char lane[] = "lane (dashed: < 0.9)";
    double at = x - 5, right = x + width;
    name_after(s, &at, y, 0, "width of an arrow:");
    for (size_t i = 0; i < TB_LEN(gains); i++) {
        tb_style st = {.stroke = TB_TONE_TOTAL,
                       .line = tb_back_width(gains[i])};
        next_item(&at, &y, x, right, 23 + tb_text_width(texts[i], 12, false));
        tb_scene_line(s, at, y - 4, at + 18, y - 4, &st);
        name_after(s, &at, y, 18, texts[i]);
    }
    if (show != TB_TOWER_TOTAL) {
        tb_style good = tower_lane(1), bad = tower_lane(0.5);
        good.role = bad.role = NULL;
        good.line = bad.line = 5;
        next_item(&at, &y, x, right, 61 + tb_text_width(lane, 12, false));
        tb_scene_line(s, at, y - 4, at + 24, y - 4, &good);
        tb_scene_line(s, at + 28, y - 4, at + 56, y - 4, &bad);
        name_after(s, &at, y, 56, lane);
    }
    if (show != TB_TOWER_LANE) {
        tb_style total = {.stroke = TB_TONE_TOTAL, .line = 5};
        next_item(&at, &y, x, right, 23 + tb_text_width("total", 12, false));
        tb_scene_line(s, at, y - 4, at + 18, y - 4, &total);
        name_after(s, &at, y, 18, "total");
    }
    return y + 20;
}

/* --- numbers and words ---------------------------------------------------- */

tb_status tower_check(tb_ctx *ctx, const tb_tower *t)
{
    if (t->title && t->n && t->floors && t->lane && t->total)
        return TB_OK;
    return TB_FAIL(ctx, TB_ERR_ARG,
                   "tower: no title, floors or gains, wanted all three");
}

void tower_axis(const tb_tower *t, tb_axis *a)
{
    double least = 0.5, most = 2;
    for (size_t k = 0; k <= t->n; k++) {
        const double v[] = {t->lane[k], t->total[k]};
        for (size_t i = 0; i < 2; i++)
            if (tb_isfinite(v[i]) && v[i] > 0) {
                least = tb_min2(least, v[i]);
                most = tb_max2(most, v[i]);
            }
    }
    tb_axis_fit(a, true, least, most, false);
}

size_t tower_k(const tb_tower *t, size_t floor)
{
    return floor ? t->floors[floor - 1].k : t->k;
}

const char *tower_floor_words(tb_arena *a, const tb_tower *t, size_t floor)
{
    const tb_tower_floor *f = &t->floors[floor];
    char toll[TB_SHOW_CHARS];
    if (!tb_isfinite(f->toll) || (!f->on_lane && !f->on_branch))
        return f->name;
    return tb_arena_printf(a, "%s, toll %s", f->name,
                           tb_show_number(f->toll, toll));
}
