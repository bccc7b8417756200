/* SPDX-License-Identifier: MIT */
/* Gradient flow by depth as a scene: per stack one panel on the same log
 * scale, the thick highway lane and the thinner total, with their numbers. */
#include "pictures/flow_figure.h"

enum { MARGIN = 14, GAP = 26, PANEL_HEIGHT = 240, ROW = 19 };

/* --- series ------------------------------------------------------------- */

double tb_flow_least(const double *y, size_t n, size_t *at)
{
    double least = 0;
    *at = n;
    for (size_t i = 0; i < n; i++)
        if (tb_isfinite(y[i]) && (*at == n || y[i] < least)) {
            least = y[i];
            *at = i;
        }
    return least;
}

bool tb_flow_fades(const tb_flow_curve *r)
{
    size_t at;
    return tb_flow_least(r->lane, r->n, &at) < 0.1 && at < r->n;
}

/* At the top nothing has branched off yet: 0 by definition, not a finding. */
static size_t branch_points(const tb_flow_curve *r)
{
    return r->n > 1 && r->branch[r->n - 1] == 0 ? r->n - 1 : r->n;
}

size_t tb_flow_series(const tb_flow_curve *r, tb_series out[3])
{
    bool fades = tb_flow_fades(r);
    size_t n = 0;
    out[n++] = (tb_series){.label = "lane",
                           .y = r->lane,
                           .n = r->n,
                           .tone = fades ? TB_TONE_BAD : TB_TONE_LANE,
                           .dash = fades ? TB_DASHED : TB_SOLID,
                           .line = 4.5,
                           .role = "grad-hw"};
    out[n++] = (tb_series){.label = "total",
                           .y = r->total,
                           .n = r->n,
                           .tone = TB_TONE_TOTAL,
                           .marker = r->n <= 64 ? TB_MARK_DOT : TB_MARK_NONE,
                           .line = 1.8,
                           .role = "grad-total"};
    if (r->branch)
        out[n++] = (tb_series){.label = "branch",
                               .y = r->branch,
                               .n = branch_points(r),
                               .tone = TB_TONE_BOX,
                               .dash = TB_DOTTED,
                               .line = 1.8,
                               .role = "grad-br"};
    return n;
}

const char *tb_flow_name(tb_arena *a, const tb_flow_curve *r)
{
    const char *block = r->block ? r->block : "block";
    return r->depth ? tb_arena_printf(a, "%s, %zu block%s", block, r->depth,
                                      r->depth == 1 ? "" : "s")
                    : tb_arena_strdup(a, block);
}

/* "lane 0.0114 at k = 0, least 0.0114 at k = 0" */
const char *tb_flow_words(tb_arena *a, const char *what, const double *y,
                          size_t n)
{
    char first[TB_SHOW_CHARS], low[TB_SHOW_CHARS];
    size_t at;
    double least = tb_flow_least(y, n, &at);
    if (n == 0 || at == n)
        return tb_arena_printf(a, "%s: no finite value", what);
    tb_show_number(y[0], first);
    tb_show_number(least, low);
    if (at == 0)
        return tb_arena_printf(a, "%s %s at k = 0, its least", what, first);
    return tb_arena_printf(a, "%s %s at k = 0, least %s at k = %zu", what,
                           first, low, at);
}

/* All series of all runs: the shared scale. */
tb_status tb_flow_scale(tb_arena *a, const tb_flow_figure *f, tb_axis *y)
{
    tb_series *all = tb_arena_alloc(a, (3 * f->count + 1) * sizeof *all);
    if (!all)
        return TB_ERR_MEMORY;
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++)
        n += tb_flow_series(&f->runs[i], all + n);
    tb_chart c = {
        .series = all, .count = n, .log_y = true, .ref = 1, .has_ref = true};
    tb_axis_of_y(y, &c);
    return TB_OK;
}

/* --- labels on lines ---------------------------------------------------- */

/* y px of a line at x px; false where it is not drawn. */
static bool line_at(const tb_series *s, const tb_axis *ax, const tb_axis *ay,
                    double px, double *out)
{
    double k =
        ax->lo + (px - ax->p_lo) / (ax->p_hi - ax->p_lo) * (ax->hi - ax->lo);
    if (!(k >= 0 && k <= (double)(s->n - 1)))
        return false;
    size_t i = (size_t)k, j = i + 1 < s->n ? i + 1 : i;
    if (tb_axis_state(ay, s->y[i]) > TB_ABOVE ||
        tb_axis_state(ay, s->y[j]) > TB_ABOVE)
        return false;
    double t = k - (double)i;
    *out = (1 - t) * tb_axis_px(ay, s->y[i]) + t * tb_axis_px(ay, s->y[j]);
    return true;
}

static bool hits_line(const tb_series *all, size_t n, const tb_axis *ax,
                      const tb_axis *ay, tb_box b)
{
    double one = tb_axis_px(ay, 1); /* the reference line */
    if (one > b.y - 2 && one < b.y + b.h + 2)
        return true;
    for (size_t i = 0; i < n; i++)
        for (int step = 0; step <= 12; step++) {
            double y, x = b.x - 4 + (b.w + 8) * step / 12;
            if (line_at(&all[i], ax, ay, x, &y) && y > b.y - 5 &&
                y < b.y + b.h + 5)
                return true;
        }
    return false;
}

/* The first place along the line, above or below it, that touches nothing. */
static void line_label(tb_scene *s, tb_box area, const tb_series *all, size_t n,
                       size_t which, const tb_axis *ax, const tb_axis *ay)
{
    static const double places[] = {0.5, 0.3, 0.7, 0.15, 0.85, 0.4, 0.6};
    const tb_series *one = &all[which];
    tb_style st = {.role = "label",
                   .fill = one->tone,
                   .size = 12,
                   .bold = true,
                   .anchor = TB_MIDDLE};
    static const double below[] = {-12, 21, -24, 33}; /* baseline, px */
    for (size_t i = 0; i < TB_LEN(places) * TB_LEN(below); i++) {
        double y, x = area.x + area.w * places[i % TB_LEN(places)];
        if (!line_at(one, ax, ay, x, &y))
            continue;
        y += below[i / TB_LEN(places)];
        double w = tb_text_width(one->label, 12, true);
        tb_box box = {x - w / 2, y - 9.4, w, 12};
        if (box.y < area.y || box.y + box.h > area.y + area.h - 4 ||
            hits_line(all, n, ax, ay, box))
            continue;
        if (tb_plot_label(s, x, y, one->label, &st))
            return;
    }
}

/* --- panels ------------------------------------------------------------- */

static double panel_legend(tb_scene *s, const tb_flow_curve *r,
                           const tb_series *all, size_t n, tb_box at)
{
    const double *values[] = {r->lane, r->total, r->branch};
    tb_style text = {.size = 12};
    double y = at.y;
    for (size_t i = 0; i < n; i++, y += ROW) {
        const char *words =
            tb_flow_words(&s->arena, all[i].label, values[i], all[i].n);
        const char *cut =
            words ? tb_shorten_px(&s->arena, words, at.w - 36, 12, false)
                  : NULL;
        if (!cut) {
            tb_scene_fail(s, TB_ERR_MEMORY);
            return y;
        }
        tb_plot_swatch(s, &all[i], at.x, y - 4);
        tb_scene_text(s, at.x + 36, y, cut, &text);
    }
    return y;
}

static void panel(tb_scene *s, const tb_flow_curve *r, tb_box at,
                  const tb_axis *y, const char *y_label)
{
    tb_series all[3];
    size_t n = tb_flow_series(r, all);
    tb_style bold = {.size = 14, .bold = true}, group = {.role = "stack"};
    const char *name = tb_flow_name(&s->arena, r);
    if (!name) {
        tb_scene_fail(s, TB_ERR_MEMORY);
        return;
    }
    tb_scene_group(s, &group);
    tb_scene_text(s, at.x, at.y + 14,
                  tb_shorten_px(&s->arena, name, at.w, 14, true), &bold);
    tb_box rows = {at.x, at.y + 36, at.w, 0};
    double top = panel_legend(s, r, all, n, rows) - 12;
    tb_chart c = {.series = all,
                  .count = n,
                  .log_y = true,
                  .ref = 1,
                  .has_ref = true,
                  .ref_label = "1",
                  .x_label = "sublayer k, 0 = stem",
                  .y_label = y_label,
                  .x_names = r->names,
                  .n_names = r->names ? r->n : 0};
    double gutter = tb_plot_gutter(y);
    tb_box area = {at.x + gutter, top + 6, at.w - gutter - 18,
                   at.y + at.h - top - 50};
    tb_plot_panel(s, &c, area, y);
    tb_axis ax, ay = *y;
    tb_axis_of_x(&ax, &c);
    tb_plot_frame_x(area, &ax);
    tb_plot_frame_y(area, &ay);
    for (size_t i = 0; i < n && !ax.empty && !ay.empty && r->n > 1; i++)
        line_label(s, area, all, n, i, &ax, &ay);
    tb_scene_end(s);
}

/* Undrawable values of one run, its name in front. */
static double run_notes(tb_scene *s, const tb_flow_curve *r, const tb_axis *y,
                        double at)
{
    tb_series all[3];
    tb_chart c = {.series = all,
                  .log_y = true,
                  .x_names = r->names,
                  .n_names = r->names ? r->n : 0};
    c.count = tb_flow_series(r, all);
    const char *const *notes = tb_chart_notes(&s->arena, &c, y);
    tb_style st = {.role = "note", .fill = TB_TONE_MUTED, .size = 12};
    for (; notes && *notes; notes++) {
        const char *line = tb_arena_printf(
            &s->arena, "%s, %s", r->block ? r->block : "block", *notes);
        at = tb_scene_wrap(s, MARGIN, at, s->w - 2 * MARGIN, line, &st);
    }
    return at;
}

static const char *describe(tb_arena *a, const tb_flow_figure *f)
{
    const char *text = "";
    for (size_t i = 0; i < f->count && text; i++) {
        const tb_flow_curve *r = &f->runs[i];
        const char *name = tb_flow_name(a, r);
        const char *lane = tb_flow_words(a, "lane", r->lane, r->n);
        const char *total = tb_flow_words(a, "total", r->total, r->n);
        if (!name || !lane || !total)
            return NULL;
        text = tb_arena_printf(a, "%s%s: highway %s; %s. ", text, name, lane,
                               total);
    }
    return text
               ? tb_arena_printf(a, "%sRelative to the top of the stack.", text)
               : NULL;
}

static void draw(tb_scene *s, const tb_flow_figure *f, const char *title)
{
    tb_style bold = {.size = 15, .bold = true};
    tb_style note = {.role = "note", .fill = TB_TONE_MUTED, .size = 12};
    tb_axis y;
    if (tb_flow_scale(&s->arena, f, &y) != TB_OK) {
        tb_scene_fail(s, TB_ERR_MEMORY);
        return;
    }
    double inner = s->w - 2 * MARGIN;
    double top = tb_scene_wrap(s, MARGIN, 26, inner, title, &bold) + 2;
    size_t columns = f->count > 1 && s->w >= 560 ? 2 : 1;
    double w = (inner - (double)(columns - 1) * GAP) / (double)columns;
    bool branch = false;
    for (size_t i = 0; i < f->count; i++)
        branch = branch || f->runs[i].branch;
    double h = PANEL_HEIGHT + (branch ? 3 : 2) * ROW + 70;
    for (size_t i = 0; i < f->count; i++) {
        tb_box at = {MARGIN + (double)(i % columns) * (w + GAP),
                     top + (double)(i / columns) * (h + 16), w, h};
        panel(s, &f->runs[i], at, &y, NULL);
    }
    size_t rows = (f->count + columns - 1) / columns;
    double end = top + (double)rows * (h + 16) + 6;
    end = tb_scene_wrap(
        s, MARGIN, end, inner,
        "Vertical: backward signal relative to the top of the stack, log "
        "scale, the same in every panel. lane: exact backward pass with all "
        "branch Jacobians set to zero. total: the true gradient.",
        &note);
    for (size_t i = 0; i < f->count; i++)
        end = run_notes(s, &f->runs[i], &y, end);
    tb_scene_resize(s, s->w, end - 2);
}

tb_status tb_flow_check(tb_ctx *ctx, const tb_flow_figure *f)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->runs[i].n && (!f->runs[i].lane || !f->runs[i].total))
            return TB_FAIL(ctx, TB_ERR_ARG,
                           "flow figure: run %zu has no lane or no total", i);
    return f->count ? TB_OK
                    : TB_FAIL(ctx, TB_ERR_ARG,
                              "flow figure: 0 runs, wanted 1 or more");
}

tb_status tb_flow_scene(tb_ctx *ctx, const tb_flow_figure *f, tb_scene **out)
{
    *out = NULL;
    TB_TRY(tb_flow_check(ctx, f));
    const char *title = f->title ? f->title : TB_FLOW_TITLE;
    tb_scene *s;
    TB_TRY(tb_scene_create(ctx, f->width > 0 ? tb_max2(320, f->width) : 760,
                           400, title, "gradient flow", &s));
    const char *desc = describe(&s->arena, f);
    if (!desc)
        tb_scene_fail(s, TB_ERR_MEMORY);
    tb_scene_describe(s, desc);
    draw(s, f, title);
    return tb_scene_done(s, out);
}
