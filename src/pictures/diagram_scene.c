/* SPDX-License-Identifier: MIT */
/* A block diagram as a scene: the lane runs straight from left to right,
 * branches arch over it, backward arrows run back below, as wide as the lane
 * gain says. A norm is a tollbooth; on the lane it blocks both directions. */
#include "pictures/wiring.h"

enum {
    MARGIN = 16,
    STUB = 22,  /* lane on either side of an item */
    RISE = 26,  /* horizontal room of a branch's corner */
    LEVEL = 66, /* between branch levels */
    BACK = 58,  /* forward to backward lane */
    EXIT = 44,  /* lane after the last item's stub */
    PLUS_RADIUS = 13,
    PART_GAP = 22, /* arrow between parts */
};

typedef struct layout {
    tb_scene *s;
    const tb_diagram *d;
    tb_route *routes;
    size_t n_routes;
    int levels;
    double lane, back;           /* y */
    double *node, *left, *right; /* x: before item i; its edges */
} layout;

/* --- measuring ---------------------------------------------------------- */

static double part_width(layout *l, const tb_diagram_part *p)
{
    const char *label = tb_part_label(&l->s->arena, p);
    double w = tb_min2(tb_text_width(label, 13, true), TB_PART_TEXT_MAX);
    return tb_max2(w + 20, p->kind == TB_DIAGRAM_BOX ? 52 : 44);
}

static double branch_width(layout *l, const tb_diagram_branch *b)
{
    double w = b->n ? -PART_GAP : 0;
    for (size_t i = 0; i < b->n; i++)
        w += part_width(l, &b->parts[i]) + PART_GAP;
    return tb_max2(w, 30);
}

static double toll_width(const layout *l, size_t i)
{
    char text[TB_SHOW_CHARS];
    if (!l->d->tolls)
        return 0;
    return tb_text_width(tb_show_number(l->d->tolls[i], text), 12, false) + 12;
}

/* Where the parts of a route may start: right of its corner and of every
 * outer road that rises or lands within its span. */
static double zone(const layout *l, const tb_route *r)
{
    double x = l->node[r->from] + RISE;
    for (size_t i = 0; i < l->n_routes; i++) {
        const tb_route *q = &l->routes[i];
        if (q->level <= r->level)
            continue;
        if (q->from > r->from && q->from <= r->to)
            x = tb_max2(x, l->node[q->from] + RISE);
        if (q->to > r->from && q->to < r->to)
            x = tb_max2(x, l->right[q->to] + RISE / 2.0);
    }
    return x;
}

static void place(layout *l)
{
    double x = MARGIN + 34 + tb_text_width(tb_diagram_foot(l->d), 15, true);
    for (size_t i = 0; i < l->d->count; i++) {
        const tb_diagram_item *it = &l->d->items[i];
        if (i && i == l->d->before)
            x += 16 + tb_text_width(l->d->in_label, 15, true);
        l->node[i] = x;
        x += STUB;
        if (it->part.kind != TB_DIAGRAM_PLUS) {
            double w = part_width(l, &it->part);
            if (it->part.kind == TB_DIAGRAM_NORM)
                w = tb_max2(w, toll_width(l, i));
            l->left[i] = x;
            l->right[i] = x + w;
        } else {
            double cx = x + PLUS_RADIUS;
            for (size_t r = 0; r < l->n_routes; r++)
                if (l->routes[r].to == i)
                    cx = tb_max2(cx, zone(l, &l->routes[r]) + RISE +
                                         branch_width(l, l->routes[r].branch));
            l->left[i] = cx - PLUS_RADIUS;
            l->right[i] = cx + PLUS_RADIUS;
        }
        x = l->right[i] + STUB;
    }
    l->node[l->d->count] = x;
}

/* --- roads -------------------------------------------------------------- */

static void branch(layout *l, size_t which)
{
    const tb_route *r = &l->routes[which];
    const tb_diagram_branch *b = r->branch;
    tb_scene *s = l->s;
    double y = l->lane - LEVEL * r->level;
    double x0 = l->node[r->from], x1 = (l->left[r->to] + l->right[r->to]) / 2;
    bool skip = b->n == 0;
    tb_style road = {.role = skip ? "skip" : "fwd",
                     .stroke = skip ? TB_TONE_LANE : TB_TONE_BOX,
                     .line = skip ? 4 : 2.4,
                     .round = 12};
    double up[] = {x0, l->lane, x0, y, x1, y, x1, l->lane - PLUS_RADIUS - 1};
    if (b->label) {
        tb_style small = {.fill = TB_TONE_MUTED, .size = 12};
        tb_part_text(s, x0 + 10, y - TB_PART_HALF - 10, b->label, &small);
    }
    if (skip) {
        tb_scene_arrow(s, up, 4, &road);
        return;
    }
    double x = (zone(l, r) + x1 - RISE - branch_width(l, b)) / 2, from = x0;
    for (size_t i = 0; i < b->n; i++) {
        double w = part_width(l, &b->parts[i]);
        bool norm = b->parts[i].kind == TB_DIAGRAM_NORM;
        if (i == 0)
            tb_scene_arrow(s, (double[]){x0, l->lane, x0, y, x - 1, y}, 3,
                           &road);
        else
            tb_scene_arrow(s, (double[]){from, y, x - 1, y}, 2, &road);
        tb_box at = {x, y - TB_PART_HALF, w, 2 * TB_PART_HALF};
        if (norm) {
            const char *id =
                tb_arena_printf(&s->arena, "branch-toll-%zu-%zu", which, i);
            tb_part_booth(s, &b->parts[i], at, id, NULL);
        } else {
            tb_part_box(s, &b->parts[i], at, false);
        }
        from = x + w + (norm ? 10 : 0);
        x += w + PART_GAP;
    }
    tb_scene_arrow(s, (double[]){from, y, x1, y, x1, l->lane - PLUS_RADIUS - 1},
                   3, &road);
}

static void lane(layout *l)
{
    tb_scene *s = l->s;
    tb_style road = {.role = "skip", .stroke = TB_TONE_LANE, .line = 6};
    tb_style in = {.role = "in-arrow", .stroke = TB_TONE_IN, .line = 3};
    tb_style name = {.role = "label", .size = 15, .bold = true, .italic = true};
    const char *foot = tb_diagram_foot(l->d);
    double from = MARGIN + 4 + tb_text_width(foot, 15, true);
    tb_scene_text(s, MARGIN, l->lane + 5, foot, &name);
    tb_scene_arrow(s, (double[]){from + 2, l->lane, l->node[0] - 4, l->lane}, 2,
                   &in);
    double at = l->node[0] - 4;
    for (size_t i = 0; i < l->d->count; i++) {
        tb_scene_line(s, at, l->lane, l->left[i], l->lane, &road);
        at = l->right[i];
    }
    double end = l->node[l->d->count] + EXIT;
    tb_scene_arrow(s, (double[]){at, l->lane, end, l->lane}, 2, &road);
    tb_scene_text(s, end + 8, l->lane + 5, l->d->out_label, &name);
}

/* What stands before the first block, and what it leaves. */
static void stem(layout *l, double top)
{
    size_t n = l->d->before;
    tb_style word = {.role = "stem", .fill = TB_TONE_MUTED, .size = 12};
    tb_style name = {.role = "label",
                     .size = 15,
                     .bold = true,
                     .italic = true,
                     .anchor = TB_END};
    if (!n)
        return;
    tb_scene_text(l->s, l->left[0], top + 17, "stem", &word);
    tb_scene_text(l->s, l->node[n] - 16, l->lane - 10, l->d->in_label, &name);
}

/* Where roads leave the lane. */
static void forks(layout *l)
{
    for (size_t i = 0; i < l->n_routes; i++) {
        bool skip = l->routes[i].branch->n == 0;
        tb_style dot = {.fill = skip ? TB_TONE_LANE : TB_TONE_BOX};
        tb_scene_circle(l->s, l->node[l->routes[i].from], l->lane, 5, &dot);
    }
}

static void lane_booth(layout *l, size_t i, tb_box at)
{
    char text[TB_SHOW_CHARS];
    const char *id = tb_arena_printf(&l->s->arena, "lane-toll-%zu", i);
    tb_part_booth(l->s, &l->d->items[i].part, at, id,
                  l->d->tolls ? tb_show_number(l->d->tolls[i], text) : "");
}

static void items(layout *l)
{
    double bottom = l->d->gains ? l->back : l->lane;
    for (size_t i = 0; i < l->d->count; i++) {
        const tb_diagram_item *it = &l->d->items[i];
        tb_box at = {l->left[i], l->lane - TB_PART_HALF,
                     l->right[i] - l->left[i], 2 * TB_PART_HALF};
        if (it->part.kind == TB_DIAGRAM_PLUS) {
            tb_part_plus(l->s, at.x + PLUS_RADIUS, l->lane, PLUS_RADIUS);
        } else if (it->part.kind == TB_DIAGRAM_NORM) {
            at.h += bottom - l->lane;
            lane_booth(l, i, at);
        } else {
            at.h += it->part.kind == TB_DIAGRAM_BOX ? bottom - l->lane : 0;
            tb_part_box(l->s, &it->part, at, true);
        }
    }
}

/* One arrow per stretch of lane between two things that change the gain; red
 * where the block itself made it fall, so that a final norm's toll, paid
 * once, does not paint a clean lane red. */
static void backward(layout *l)
{
    size_t block = tb_diagram_in_block(l->d);
    tb_style number = {.role = "label", .size = 12, .anchor = TB_MIDDLE};
    double right = l->node[l->d->count] + EXIT;
    for (size_t i = l->d->count + 1; i-- > 0;) {
        double g = l->d->gains[i];
        bool first = i == 0;
        bool passes = !first && l->d->items[i - 1].part.kind == TB_DIAGRAM_PLUS;
        if (passes && tb_fabs(l->d->gains[i - 1] - g) <= 1e-12 * tb_fabs(g))
            continue; /* the arrow runs on under the plus */
        double left = first    ? l->node[0] - 20
                      : passes ? l->right[i - 1] - PLUS_RADIUS
                               : l->right[i - 1] + 2;
        bool weak = i < block && !(g >= 0.9 * l->d->gains[block]);
        tb_style st = {.role = "grad-hw",
                       .stroke = weak ? TB_TONE_BAD : TB_TONE_LANE,
                       .line = tb_back_width(g),
                       .dash = weak ? TB_DASHED : TB_SOLID};
        if (!first && l->d->items[i - 1].part.kind == TB_DIAGRAM_NORM)
            left += 8;
        char text[TB_SHOW_CHARS];
        tb_scene_arrow(l->s, (double[]){right, l->back, left, l->back}, 2, &st);
        bool top = i == l->d->count; /* clear of the panel's edge */
        number.anchor = top ? TB_END : TB_MIDDLE;
        tb_plot_label(l->s, top ? right : (left + right) / 2, l->back + 26,
                      tb_show_number(g, text), &number);
        right = first ? right : passes ? left : l->left[i - 1] - 2;
    }
}

void tb_diagram_repeat(tb_scene *s, const tb_diagram *d, tb_box at, bool head)
{
    tb_style panel = {.role = "stack",
                      .fill = TB_TONE_PANEL,
                      .stroke = TB_TONE_MUTED,
                      .line = 1,
                      .dash = TB_DASHED,
                      .round = 8};
    tb_style text = {.fill = TB_TONE_MUTED, .size = 12};
    tb_scene_rect(s, at.x, at.y, at.w, at.h, &panel);
    if (head)
        tb_scene_text(s, at.x + 10, at.y + 17,
                      tb_arena_printf(&s->arena, "\xC3\x97 %zu block%s",
                                      d->depth, d->depth == 1 ? "" : "s"),
                      &text);
}

static void repeat(layout *l, double top, double bottom)
{
    size_t n = tb_diagram_in_block(l->d), from = l->d->before;
    if (!l->d->depth || n == from)
        return;
    double x0 = l->node[from] - 10, x1 = l->node[n] - (n < l->d->count ? 6 : 0);
    tb_diagram_repeat(l->s, l->d, (tb_box){x0, top, x1 - x0, bottom - top},
                      true);
}

enum { FORMULA_COLUMNS = 1000 }; /* where nobody reads on */

/* With its margins. */
static double formula_width(const tb_diagram *d)
{
    return 2 * MARGIN + 0.62 * 14 * (double)tb_columns(d->formula);
}

double tb_diagram_width(const tb_diagram *d, double w)
{
    w = tb_max2(w, 2 * MARGIN + tb_text_width(d->title, 15, true));
    w = tb_max2(w, tb_min2(TB_DIAGRAM_WIDEST, formula_width(d)));
    return tb_max2(w, 340);
}

double tb_diagram_formula(tb_scene *s, const tb_diagram *d, double y, double w)
{
    const tb_style style = {.role = "jac", .size = 14, .mono = true};
    const char *text = tb_shorten(&s->arena, d->formula, FORMULA_COLUMNS);
    if (!d->formula || !text)
        return y;
    if (formula_width(d) > w + 2 * MARGIN) /* measured proportional */
        return tb_scene_wrap(s, MARGIN, y, 0.75 * w, text, &style) + 5;
    tb_scene_text(s, MARGIN, y, text, &style);
    return y + 24;
}

static double whole_width(const layout *l)
{
    return l->node[l->d->count] + EXIT + 12 + MARGIN +
           tb_text_width(l->d->out_label, 15, true);
}

static void draw(layout *l)
{
    tb_scene *s = l->s;
    tb_style bold = {.size = 15, .bold = true};
    tb_style note = {.role = "note", .fill = TB_TONE_MUTED, .size = 12};
    double w = tb_diagram_width(l->d, whole_width(l));
    tb_scene_resize(s, w, s->h);
    tb_scene_text(s, MARGIN, 26, l->d->title, &bold);
    double top = 42;
    l->lane = top + 46 + LEVEL * tb_max2(l->levels, 0.4);
    l->back = l->lane + BACK;
    double bottom = (l->d->gains ? l->back + 20 : l->lane + TB_PART_HALF) + 20;
    repeat(l, top, bottom);
    for (size_t i = 0; i < l->n_routes; i++)
        branch(l, i);
    lane(l);
    stem(l, top);
    forks(l);
    if (l->d->gains)
        backward(l);
    items(l);
    double y = bottom + 24;
    y = tb_diagram_formula(s, l->d, y, w - 2 * MARGIN);
    if (l->d->gains)
        y = tb_scene_wrap(
            s, MARGIN, y, w - 2 * MARGIN,
            "Below: the backward signal on the lane, relative "
            "to the top of the stack. Width 10 px at 1, 3 px less per "
            "factor 10.",
            &note);
    tb_scene_resize(s, w, y - 6);
}

static tb_status build(tb_scene *s, const tb_diagram *d)
{
    layout l = {.s = s, .d = d};
    const char *desc = d->desc ? d->desc : tb_diagram_describe(&s->arena, d);
    l.routes = tb_diagram_routes(&s->arena, d, &l.n_routes, &l.levels);
    size_t bytes = (d->count + 1) * sizeof *l.node;
    l.node = tb_arena_alloc(&s->arena, bytes);
    l.left = tb_arena_alloc(&s->arena, bytes);
    l.right = tb_arena_alloc(&s->arena, bytes);
    if (!desc || !l.routes || !l.node || !l.left || !l.right)
        return TB_ERR_MEMORY;
    tb_scene_describe(s, desc);
    place(&l);
    if (d->wired ||
        (d->wiring && !d->gains && whole_width(&l) > TB_DIAGRAM_WIDEST))
        return tb_wiring_draw(s, d);
    draw(&l);
    return TB_OK;
}

tb_status tb_diagram_scene(tb_ctx *ctx, const tb_diagram *d, tb_scene **out)
{
    *out = NULL;
    TB_TRY(tb_diagram_check(ctx, d));
    tb_diagram named = *d;
    named.in_label = d->in_label ? d->in_label : "x";
    named.out_label = d->out_label ? d->out_label : "x\xE2\x80\xB2";
    tb_scene *s;
    TB_TRY(tb_scene_create(ctx, TB_DIAGRAM_WIDEST, 300, d->title,
                           "block diagram", &s));
    tb_status status = build(s, &named);
    if (status != TB_OK)
        tb_scene_fail(s, status);
    return tb_scene_done(s, out);
}
