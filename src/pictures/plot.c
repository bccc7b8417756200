/* SPDX-License-Identifier: MIT */
/* The plot area: grid, axes, reference line, series with gaps and marks for
 * what has no place on the axis. */
#include "pictures/plot.h"

/* Lines at the limits stay off the frame; marks for undrawable values sit in
 * this strip under the lowest tick. */
enum { PAD = 12, FEW = 40 };

typedef struct plot {
    tb_scene *s;
    const tb_chart *c;
    tb_box area;
    tb_axis x, y;
    size_t which; /* series being drawn */
} plot;

double tb_plot_gutter(const tb_axis *y)
{
    double w = 0;
    char text[TB_SHOW_CHARS];
    for (size_t i = 0; i < y->n_ticks; i++)
        w = tb_max2(w, tb_text_width(tb_axis_label(y, i, text), 12, false));
    return w + 8;
}

bool tb_plot_label(tb_scene *s, double x, double y, const char *text,
                   const tb_style *st)
{
    tb_item it = {
        .kind = TB_ITEM_TEXT, .style = *st, .x = x, .y = y, .text = text};
    tb_box box = tb_item_text_box(&it);
    box.x -= 3;
    box.w += 6;
    if (box.x < 0 || box.x + box.w > s->w)
        return false;
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].kind == TB_ITEM_TEXT &&
            tb_box_meets(box, tb_item_text_box(&s->items[i])))
            return false;
    tb_scene_text(s, x, y, text, st);
    return true;
}

/* --- marks -------------------------------------------------------------- */

void tb_plot_marker(tb_scene *s, tb_marker m, double x, double y, double r,
                    const tb_style *st)
{
    tb_style open = *st;
    open.fill = TB_TONE_PAPER;
    open.stroke = st->fill;
    open.line = 1.5;
    tb_style bare = open;
    bare.fill = TB_TONE_NONE;
    double d = 1.25 * r;
    switch (m) {
    case TB_MARK_NONE:
        break;
    case TB_MARK_DOT:
        tb_scene_circle(s, x, y, r, st);
        break;
    case TB_MARK_RING:
        tb_scene_circle(s, x, y, r, &open);
        break;
    case TB_MARK_SQUARE:
        tb_scene_rect(s, x - r, y - r, 2 * r, 2 * r, st);
        break;
    case TB_MARK_DIAMOND:
        tb_scene_path(s, (double[]){x, y - d, x + d, y, x, y + d, x - d, y}, 4,
                      true, st);
        break;
    case TB_MARK_TRIANGLE:
        tb_scene_path(s, (double[]){x, y - d, x + d, y + r, x - d, y + r}, 3,
                      true, st);
        break;
    case TB_MARK_CROSS:
        /* one item: over the middle, so that the lines stay straight */
        tb_scene_path(s,
                      (double[]){x - r, y - r, x + r, y + r, x, y, x - r, y + r,
                                 x + r, y - r},
                      5, false, &bare);
        break;
    }
}

/* A triangle pointing off the axis: down at the floor, up at the top. */
static void edge_mark(const plot *p, const tb_series *s, double x, double y,
                      bool down, const char *role, const char *title)
{
    double tip = down ? 5 : -5;
    tb_style st = {.role = role, .title = title, .fill = s->tone};
    tb_scene_path(p->s, (double[]){x, y + tip, x - 5, y - tip, x + 5, y - tip},
                  3, true, &st);
}

static const char *point_title(const plot *p, const tb_series *s, size_t i)
{
    char x[TB_SHOW_CHARS], y[TB_SHOW_CHARS];
    double at = tb_series_x(s, i);
    bool named = p->c->x_names && at >= 0 && at < (double)p->c->n_names &&
                 at == tb_floor(at) && p->c->x_names[(size_t)at];
    const char *t = tb_arena_printf(
        &p->s->arena, "%s%s%s at %s%s%s", s->label, *s->label ? " " : "",
        tb_show_number(s->y[i], y), named ? p->c->x_names[(size_t)at] : "",
        named ? " " : "", tb_show_number(at, x));
    if (!t)
        tb_scene_fail(p->s, TB_ERR_MEMORY);
    return t;
}

/* --- frame -------------------------------------------------------------- */

void tb_plot_y_axis(tb_scene *s, tb_box area, const tb_axis *y)
{
    tb_style grid = {.stroke = TB_TONE_GRID, .line = 1, .role = "grid"};
    tb_style text = {.fill = TB_TONE_MUTED, .size = 12, .anchor = TB_END};
    for (size_t i = 0; i < y->n_ticks; i++) {
        char label[TB_SHOW_CHARS];
        double at = tb_axis_unit_px(y, y->tick[i]);
        tb_scene_line(s, area.x, at, area.x + area.w, at, &grid);
        tb_plot_label(s, area.x - 8, at + 4, tb_axis_label(y, i, label), &text);
    }
}

void tb_plot_frame_y(tb_box area, tb_axis *y)
{
    y->p_lo = area.y + area.h - PAD;
    y->p_hi = area.y + PAD;
}

void tb_plot_frame_x(tb_box area, tb_axis *x)
{
    x->p_lo = area.x + PAD;
    x->p_hi = area.x + area.w - PAD;
}

static void x_axis(const plot *p)
{
    tb_style line = {.stroke = TB_TONE_MUTED, .line = 1, .role = "axis"};
    tb_style text = {.fill = TB_TONE_MUTED, .size = 12, .anchor = TB_MIDDLE};
    double bottom = p->area.y + p->area.h;
    tb_scene_line(p->s, p->area.x, bottom, p->area.x + p->area.w, bottom,
                  &line);
    for (size_t i = 0; i < p->x.n_ticks; i++) {
        char label[TB_SHOW_CHARS];
        double x = tb_axis_unit_px(&p->x, p->x.tick[i]);
        tb_scene_line(p->s, x, bottom, x, bottom + 4, &line);
        tb_plot_label(p->s, x, bottom + 18, tb_axis_label(&p->x, i, label),
                      &text);
    }
    text.anchor = TB_END;
    tb_scene_text(p->s, p->area.x + p->area.w, bottom + 36, p->c->x_label,
                  &text);
    text.anchor = TB_START;
    tb_scene_text(p->s, p->area.x - tb_plot_gutter(&p->y), p->area.y - 8,
                  p->c->y_label, &text);
}

static void reference(const plot *p)
{
    if (!p->c->has_ref || tb_axis_state(&p->y, p->c->ref) != TB_DRAWN)
        return;
    double y = tb_axis_px(&p->y, p->c->ref);
    tb_style line = {.role = "reference",
                     .title = p->c->ref_label,
                     .stroke = TB_TONE_MUTED,
                     .line = 1.2,
                     .dash = TB_DASHED};
    tb_scene_line(p->s, p->area.x, y, p->area.x + p->area.w, y, &line);
    tb_style text = {.fill = TB_TONE_MUTED, .size = 12};
    if (p->c->ref_label)
        tb_plot_label(p->s, p->area.x + p->area.w + 6, y + 4, p->c->ref_label,
                      &text);
}

/* --- series ------------------------------------------------------------- */

/* In a stretch of the same kind only its ends are marked, and the first one
 * named. Series stand a little apart so that none hides another. */
static void undrawable(const plot *p, const tb_series *s, const size_t *index,
                       size_t k, size_t n, double x)
{
    char text[TB_SHOW_CHARS];
    size_t i = index[k];
    tb_state state = tb_axis_state(&p->y, s->y[i]);
    bool like_left = k > 0 && tb_axis_state(&p->y, s->y[index[k - 1]]) == state;
    bool like_right =
        k + 1 < n && tb_axis_state(&p->y, s->y[index[k + 1]]) == state;
    if (like_left && like_right)
        return;
    double y = p->area.y + p->area.h - 6;
    if (p->c->count > 1)
        x += 18 * ((double)p->which / (double)(p->c->count - 1) - 0.5);
    x = tb_max2(p->area.x + 5, tb_min2(p->area.x + p->area.w - 5, x));
    if (state == TB_FLOOR) {
        edge_mark(p, s, x, y, true, "floor-mark", point_title(p, s, i));
    } else {
        tb_style st = {
            .role = "gap-mark", .title = point_title(p, s, i), .fill = s->tone};
        tb_plot_marker(p->s, TB_MARK_CROSS, x, y, 4, &st);
    }
    tb_style label = {.fill = s->tone, .size = 12, .anchor = TB_MIDDLE};
    if (!like_left)
        tb_plot_label(p->s, x, y - 9, tb_show_number(s->y[i], text), &label);
}

static void flush_line(const plot *p, const tb_series *s, const double *xy,
                       size_t n)
{
    tb_style st = {.role = s->role,
                   .title = *s->label ? s->label : NULL,
                   .stroke = s->tone,
                   .line = s->line,
                   .dash = s->dash};
    if (n > 1)
        tb_scene_path(p->s, xy, n, false, &st);
}

/* Every point of a short series, every n/8-th of a long one (a second cue
 * beside the colour), and points without a neighbour. */
static void mark_point(const plot *p, const tb_series *s, size_t i, size_t of,
                       const double *xy, bool alone)
{
    size_t every = of <= FEW ? 1 : of / 8;
    if (!alone && (s->marker == TB_MARK_NONE || i % every != every / 2))
        return;
    tb_style st = {
        .role = "marker", .title = point_title(p, s, i), .fill = s->tone};
    tb_marker m = s->marker == TB_MARK_NONE ? TB_MARK_DOT : s->marker;
    tb_plot_marker(p->s, m, xy[0], xy[1], tb_max2(2.8, s->line), &st);
}

/* Where both edges have a place; a zero of the lower one is the floor. */
static bool band_at(const plot *p, const tb_series *s, size_t i, double xy[4])
{
    double x = tb_series_x(s, i);
    tb_state low = tb_axis_state(&p->y, s->low[i]);
    tb_state high = tb_axis_state(&p->y, s->high[i]);
    if (tb_axis_state(&p->x, x) != TB_DRAWN || low == TB_GAP ||
        high == TB_GAP || high == TB_FLOOR)
        return false;
    xy[0] = xy[2] = tb_axis_px(&p->x, x);
    xy[1] = tb_axis_px(&p->y, s->high[i]);
    xy[3] = low == TB_FLOOR ? p->y.p_lo : tb_axis_px(&p->y, s->low[i]);
    return true;
}

static void band(const plot *p, const tb_series *s)
{
    size_t n = 0, step = s->n / TB_MAX_POINTS + 1;
    double *xy = tb_arena_alloc(&p->s->arena, (4 * s->n + 4) * sizeof *xy);
    double *back = tb_arena_alloc(&p->s->arena, (2 * s->n + 2) * sizeof *back);
    if (!xy || !back) {
        tb_scene_fail(p->s, TB_ERR_MEMORY);
        return;
    }
    for (size_t i = 0; i < s->n; i += step) {
        double four[4];
        if (!band_at(p, s, i, four))
            continue;
        memcpy(xy + 2 * n, four, 2 * sizeof *xy);
        memcpy(back + 2 * n++, four + 2, 2 * sizeof *back);
    }
    for (size_t i = 0; i < n; i++)
        memcpy(xy + 2 * (n + i), back + 2 * (n - 1 - i), 2 * sizeof *xy);
    tb_style st = {.role = "band", .fill = s->tone, .alpha = 0.16};
    if (n > 1)
        tb_scene_path(p->s, xy, 2 * n, true, &st);
}

static void series(const plot *p, const tb_series *s)
{
    size_t n = 0, run = 0;
    const size_t *index = tb_thin(&p->s->arena, &p->y, s->y, s->n, &n);
    double *xy = tb_arena_alloc(&p->s->arena, (2 * n + 2) * sizeof *xy);
    if (!index || !xy) {
        tb_scene_fail(p->s, TB_ERR_MEMORY);
        return;
    }
    for (size_t k = 0; k <= n; k++) {
        double at = k < n ? tb_series_x(s, index[k]) : 0;
        tb_state state = k < n ? tb_axis_state(&p->y, s->y[index[k]]) : TB_GAP;
        bool placed = k < n && tb_axis_state(&p->x, at) == TB_DRAWN;
        if (placed && state != TB_GAP && state != TB_FLOOR) {
            xy[2 * run] = tb_axis_px(&p->x, at);
            xy[2 * run + 1] = tb_axis_px(&p->y, s->y[index[k]]);
            run++;
            continue;
        }
        flush_line(p, s, xy, run);
        run = 0;
        if (placed)
            undrawable(p, s, index, k, n, tb_axis_px(&p->x, at));
    }
    bool before = false; /* the point to the left is drawn */
    for (size_t k = 0; k < n; k++) {
        size_t i = index[k];
        double at = tb_series_x(s, i);
        tb_state state = tb_axis_state(&p->y, s->y[i]);
        bool drawn = state != TB_GAP && state != TB_FLOOR &&
                     tb_axis_state(&p->x, at) == TB_DRAWN;
        tb_state next = k + 1 < n ? tb_axis_state(&p->y, s->y[index[k + 1]])
                                  : (tb_state)TB_GAP;
        bool alone = !before && (next == TB_GAP || next == TB_FLOOR);
        double point[2] = {tb_axis_px(&p->x, at), 0};
        if (drawn)
            point[1] = tb_axis_px(&p->y, s->y[i]);
        if (drawn && state == TB_DRAWN)
            mark_point(p, s, i, s->n, point, alone);
        else if (drawn)
            edge_mark(p, s, point[0], point[1], state == TB_BELOW, "edge-mark",
                      point_title(p, s, i));
        before = drawn;
    }
}

/* A cross at the last finite point before the run stopped. */
static void stop_mark(const plot *p, const tb_series *s)
{
    size_t last = s->n;
    for (size_t i = 0; i < s->n; i++)
        if (tb_series_x(s, i) <= s->stop &&
            tb_axis_state(&p->y, s->y[i]) <= TB_ABOVE)
            last = i;
    if (!s->stopped || last == s->n)
        return;
    double x = tb_axis_px(&p->x, tb_series_x(s, last));
    double y = tb_axis_px(&p->y, s->y[last]);
    char text[TB_SHOW_CHARS], words[64];
    tb_format(words, sizeof words, "diverged at %s",
              tb_show_number(s->stop, text));
    tb_style st = {.role = "diverged", .title = words, .fill = s->tone};
    tb_plot_marker(p->s, TB_MARK_CROSS, x, y, 7, &st);
    tb_style label = {.fill = s->tone, .size = 12, .bold = true};
    for (int i = 0; i < 6; i++) {
        double dy = 4 + (i + 1) / 2 * (i % 2 ? 16 : -16);
        if (y + dy < p->area.y + 10)
            continue;
        if (tb_plot_label(p->s, x + 12, y + dy, words, &label))
            return;
    }
    label.anchor = TB_END;
    tb_plot_label(p->s, x - 12, y + 16, words, &label);
}

/* --- the whole ---------------------------------------------------------- */

void tb_plot_panel(tb_scene *s, const tb_chart *c, tb_box area,
                   const tb_axis *y)
{
    plot p = {.s = s, .c = c, .area = area, .y = *y};
    tb_axis_of_x(&p.x, c);
    tb_plot_frame_x(area, &p.x);
    tb_plot_frame_y(area, &p.y);
    if (y->empty || p.x.empty) {
        tb_style st = {.fill = TB_TONE_MUTED, .anchor = TB_MIDDLE};
        tb_scene_text(s, area.x + area.w / 2, area.y + area.h / 2,
                      c->log_y ? "no positive values" : "no finite values",
                      &st);
        return;
    }
    tb_plot_y_axis(s, area, &p.y);
    x_axis(&p);
    for (size_t i = 0; i < c->count; i++) {
        tb_series one = tb_series_of(c, i);
        if (one.low && one.high)
            band(&p, &one);
    }
    reference(&p);
    for (size_t i = 0; i < c->count; i++) {
        tb_series one = tb_series_of(c, i);
        p.which = i;
        series(&p, &one);
    }
    for (size_t i = 0; i < c->count; i++) {
        tb_series one = tb_series_of(c, i);
        stop_mark(&p, &one);
    }
}
