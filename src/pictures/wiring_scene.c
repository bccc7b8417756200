/* SPDX-License-Identifier: MIT */
/* A wiring as a scene: streams run from left to right, each in its row, x at
 * the bottom; what a node reads from other rows comes straight up or down to
 * it, and a dot marks where a wire that goes on is read. What is too wide goes
 * on below, as music does. */
#include "pictures/wiring.h"

enum {
    MARGIN = 16,
    GAP = 26, /* between ranks */
    ROW = 52, /* between rows, and where nothing but wires are */
    WIRE = 24,
    RADIUS = 13,
    TOP = 50,   /* of a line: its panel's head and the first row's roof */
    UNDER = 34, /* below its lowest row */
};

typedef struct liner {
    tb_scene *s;
    const tb_diagram *d;
    tb_laid l;
    double *left, *width; /* per rank; left is of its line */
    int *line;            /* per rank */
    double *y_of; /* per row of the line that is drawn: px above the floor */
    int lines;
    double high;  /* of the line's rows */
    double floor; /* y of the lowest row */
    double right; /* of the picture */
} liner;

/* --- measuring ------------------------------------------------------------ */

static double label_width(const char *text, double size)
{
    return tb_min2(tb_text_width(text, size, true), TB_PART_TEXT_MAX);
}

static double node_width(const tb_placed *p)
{
    if (!p->what)
        return 0;
    switch (p->what->kind) {
    case TB_WIRED_IN:
        return label_width(p->what->label, 15) + 22;
    case TB_WIRED_OUT:
        return label_width(p->what->label, 15) + 24;
    case TB_WIRED_PLUS:
    case TB_WIRED_TIMES:
        return 2 * RADIUS;
    case TB_WIRED_BOX:
    case TB_WIRED_NORM:
    case TB_WIRED_SCALE:
        break;
    }
    return tb_max2(label_width(p->what->label, 13) + 20, 44);
}

/* Half of what a node takes above and below its row. */
static double node_half(const tb_placed *p, bool above)
{
    if (!p->what || p->what->kind == TB_WIRED_OUT)
        return 0;
    if (p->what->kind == TB_WIRED_PLUS || p->what->kind == TB_WIRED_TIMES)
        return RADIUS + 1;
    return TB_PART_HALF + (above && p->what->kind == TB_WIRED_NORM ? 8 : 1);
}

static bool leaves(const liner *t, int rank)
{
    for (int i = 0; i < t->l.n; i++)
        if (t->l.places[i].rank == rank && t->l.places[i].what &&
            t->l.places[i].what->kind == TB_WIRED_OUT)
            return true;
    return false;
}

/* Ranks to lines; each as many as fit. */
static void break_lines(liner *t)
{
    double x = MARGIN;
    for (int i = 0; i < t->l.n; i++) {
        const tb_placed *p = &t->l.places[i];
        t->width[p->rank] = tb_max2(t->width[p->rank], node_width(p));
    }
    t->lines = 1;
    for (int r = 0; r < t->l.ranks; r++) {
        double with = r + 1 < t->l.ranks && leaves(t, r + 1)
                          ? t->width[r + 1] + GAP
                          : 0; /* an end does not stand alone */
        if (r && x + t->width[r] + with + GAP > TB_DIAGRAM_WIDEST - MARGIN) {
            x = MARGIN + 74; /* names of what goes on */
            t->lines++;
        }
        t->line[r] = t->lines - 1;
        t->left[r] = x;
        x += t->width[r] + GAP;
        t->right = tb_max2(t->right, x - GAP + MARGIN);
    }
    if (t->lines > 1)
        t->right = TB_DIAGRAM_WIDEST;
}

static bool crosses(const liner *t, const tb_placed *p, int line)
{
    return t->line[p->rank] <= line && t->line[p->last] >= line;
}

/* The rows that a line needs, closed up; one that has only wires is low. */
static void rows_of_line(liner *t, int line)
{
    for (int row = 0; row < t->l.rows; row++)
        t->y_of[row] = -1;
    for (int i = 0; i < t->l.n; i++) {
        const tb_placed *p = &t->l.places[i];
        bool here = t->line[p->rank] == line && p->what;
        if (crosses(t, p, line))
            t->y_of[p->row] = here || t->y_of[p->row] > 0;
    }
    double y = 0, under = 0; /* half of the row below */
    for (int row = 0; row < t->l.rows; row++) {
        if (t->y_of[row] < 0)
            continue;
        double half = (t->y_of[row] > 0 ? ROW : WIRE) / 2.0;
        y += under > 0 ? under + half : 0;
        under = half;
        t->y_of[row] = y;
    }
    t->high = y;
}

static double row_y(const liner *t, int row)
{
    return t->floor - t->y_of[row];
}

static double centre(const liner *t, const tb_placed *p)
{
    if (p->what && p->what->kind == TB_WIRED_OUT)
        return t->left[p->rank] + 4;
    return t->left[p->rank] + t->width[p->rank] / 2;
}

static double edge(const liner *t, const tb_placed *p, bool right)
{
    if (p->what &&
        (p->what->kind == TB_WIRED_IN || p->what->kind == TB_WIRED_OUT))
        return t->left[p->rank] + (right ? node_width(p) : 4);
    double half = node_width(p) / 2;
    return centre(t, p) + (right ? half : -half);
}

/* --- wires ---------------------------------------------------------------- */

static bool enters(const tb_placed *p)
{
    return p->what && p->what->kind == TB_WIRED_IN;
}

static tb_style wire_style(const tb_placed *from, bool into_branch)
{
    bool lane = from->lane && !into_branch;
    bool given = enters(from) && !from->lane;
    return (tb_style){.role = lane ? "skip" : "fwd",
                      .stroke = lane    ? TB_TONE_LANE
                                : given ? TB_TONE_IN
                                        : TB_TONE_BOX,
                      .line = lane ? 5 : 2.4,
                      .round = 10};
}

/* The last reader of a value that has one. */
static const tb_placed *last_reader(const liner *t, int at)
{
    const tb_placed *p = &t->l.places[at];
    for (int i = at + 1; i < t->l.n; i++)
        for (int k = 0; k < t->l.places[i].n; k++)
            if (t->l.places[i].in[k] == at && t->l.places[i].rank == p->last)
                return &t->l.places[i];
    return p;
}

/* What a wire is called where it goes on in a new line. */
static const char *wire_name(const liner *t, const tb_placed *p)
{
    while (!p->what) /* a bend is what it leads on */
        p = &t->l.places[p->in[0]];
    const tb_wired *w = p->what;
    if (w->stream == p->row && w->lane)
        return t->d->wiring->streams[w->stream];
    if (!w->name && w->stream >= 0) /* on its way there */
        return tb_arena_printf(&t->s->arena, "%s\xE2\x80\xB2",
                               t->d->wiring->streams[w->stream]);
    return w->name ? w->name : tb_wired_text(&t->s->arena, w);
}

static void put_name(liner *t, const tb_placed *p)
{
    tb_style small = {
        .role = "label", .fill = TB_TONE_MUTED, .size = 12, .italic = true};
    const char *name = wire_name(t, p);
    name = name ? tb_shorten_px(&t->s->arena, name, 78, 12, false) : NULL;
    if (name)
        tb_scene_text(t->s, MARGIN, row_y(t, p->row) - 7, name, &small);
    else
        tb_scene_fail(t->s, TB_ERR_MEMORY);
}

static void along(liner *t, int at, int line)
{
    const tb_placed *p = &t->l.places[at];
    const tb_placed *to = last_reader(t, at);
    tb_style st = wire_style(p, false);
    bool begins = t->line[p->rank] == line, ends = t->line[p->last] == line;
    bool level = to->row == p->row;
    double y = row_y(t, p->row);
    double x0 = begins ? edge(t, p, true) - (p->lane ? 1 : 0) : MARGIN;
    double x1 = !ends   ? t->right - MARGIN
                : level ? edge(t, to, false) + (p->lane ? 1 : 0)
                        : centre(t, to) - 10;
    if (to == p)
        return;
    if (ends && level && !p->lane && to->what->kind != TB_WIRED_OUT)
        tb_scene_arrow(t->s, (double[]){x0, y, x1 - 1, y}, 2, &st);
    else
        tb_scene_line(t->s, x0, y, x1, y, &st);
    if (!begins)
        put_name(t, p);
}

/* From the inputs above, or below, to the node. */
static void across(liner *t, const tb_placed *p, bool above)
{
    const tb_placed *far = NULL;
    double x = centre(t, p), y = row_y(t, p->row);
    for (int i = 0; i < p->n; i++) {
        const tb_placed *u = &t->l.places[p->in[i]];
        if ((above ? u->row > p->row : u->row < p->row) &&
            (!far || (above ? u->row > far->row : u->row < far->row)))
            far = u;
    }
    if (!far)
        return;
    tb_style st = wire_style(far, !p->lane);
    double from = row_y(t, far->row);
    double to = above ? y - node_half(p, true) : y + node_half(p, false);
    bool turns = far->last == p->rank;
    double xy[] = {x - 11, from, x, from, x, to};
    if (node_half(p, above) > 0)
        tb_scene_arrow(t->s, turns ? xy : xy + 2, turns ? 3 : 2, &st);
    else
        tb_scene_path(t->s, turns ? xy : xy + 2, turns ? 3 : 2, false, &st);
    for (int i = 0; i < p->n; i++) {
        const tb_placed *u = &t->l.places[p->in[i]];
        bool here = above ? u->row > p->row : u->row < p->row;
        tb_style dot = {.fill = wire_style(u, !p->lane).stroke};
        tb_style own = wire_style(u, false);
        if (here && u != far && u->last == p->rank)
            tb_scene_line(t->s, x - 11, row_y(t, u->row), x, row_y(t, u->row),
                          &own);
        if (here && (u != far || !turns))
            tb_scene_circle(t->s, x, row_y(t, u->row), 4.5, &dot);
    }
}

/* --- nodes ---------------------------------------------------------------- */

static void circle(liner *t, const tb_placed *p)
{
    tb_scene *s = t->s;
    double x = centre(t, p), y = row_y(t, p->row);
    const double k = 5.5;
    if (p->what->kind == TB_WIRED_PLUS) {
        tb_part_plus(s, x, y, RADIUS);
    } else {
        tb_style ring = {.role = "gate",
                         .title = "times, element by element",
                         .fill = TB_TONE_PAPER,
                         .stroke = TB_TONE_INK,
                         .line = 2};
        tb_style bar = {.stroke = TB_TONE_INK, .line = 2};
        tb_scene_circle(s, x, y, RADIUS, &ring);
        tb_scene_line(s, x - k, y - k, x + k, y + k, &bar);
        tb_scene_line(s, x - k, y + k, x + k, y - k, &bar);
    }
    if (p->what->odd < 0)
        return;
    const tb_placed *u = &t->l.places[p->in[p->what->odd]];
    tb_style mark = {
        .role = "label", .size = 14, .bold = true, .anchor = TB_MIDDLE};
    double mx = u->row == p->row ? x - RADIUS - 9 : x + (u->lane ? 15 : 10);
    double my = u->row == p->row  ? y - 8
                : u->row > p->row ? y - RADIUS - 5
                                  : y + RADIUS + 13;
    tb_scene_text(s, mx, my,
                  p->what->kind == TB_WIRED_PLUS ? "\xE2\x88\x92" : "\xC3\xB7",
                  &mark);
}

static void outside(liner *t, int at)
{
    const tb_placed *p = &t->l.places[at];
    double y = row_y(t, p->row), x = t->left[p->rank];
    bool in = enters(p);
    tb_style name = {.role = "label",
                     .size = 15,
                     .bold = true,
                     .italic = true,
                     .anchor = in ? TB_START : TB_MIDDLE};
    tb_style arrow = {.role = "in-arrow", .stroke = TB_TONE_IN, .line = 3};
    if (in) {
        double text = label_width(p->what->label, 15);
        tb_part_text(t->s, x, y + 5, p->what->label, &name);
        tb_scene_arrow(t->s,
                       (double[]){x + text + 4, y, x + node_width(p) - 2, y}, 2,
                       &arrow);
        return;
    }
    tb_style road = wire_style(p, false);
    double right = edge(t, p, true);
    if (p->last > p->rank)
        tb_scene_line(t->s, x + 4, y, right, y, &road);
    else
        tb_scene_arrow(t->s, (double[]){x + 4, y, right, y}, 2, &road);
    tb_part_text(t->s, x + 6 + node_width(p) / 2, y - 9, p->what->label, &name);
}

static void node(liner *t, int at)
{
    const tb_placed *p = &t->l.places[at];
    const tb_wired *w = p->what;
    if (!w)
        return;
    static const char *const parts[] = {"stem", "node", "after"};
    tb_style group = {.role = w->part == TB_WIRED_STEM ? "stem" : "node",
                      .id =
                          tb_arena_printf(&t->s->arena, "%s-%d", parts[w->part],
                                          (int)(w - t->d->wiring->nodes)),
                      .title = tb_wired_text(&t->s->arena, w)};
    double width = node_width(p);
    tb_box box = {centre(t, p) - width / 2, row_y(t, p->row) - TB_PART_HALF,
                  width, 2 * TB_PART_HALF};
    tb_scene_group(t->s, &group);
    if (w->kind == TB_WIRED_IN || w->kind == TB_WIRED_OUT) {
        outside(t, at);
    } else if (w->kind == TB_WIRED_PLUS || w->kind == TB_WIRED_TIMES) {
        circle(t, p);
    } else if (w->kind == TB_WIRED_NORM) {
        tb_diagram_part part = {TB_DIAGRAM_NORM, w->label};
        tb_part_booth(t->s, &part, box, NULL, w->lane ? "" : NULL);
    } else {
        bool pill = w->kind == TB_WIRED_SCALE || w->lane;
        tb_part_shape(t->s, pill ? TB_DIAGRAM_SCALE : TB_DIAGRAM_BOX, w->label,
                      box, w->lane);
    }
    tb_scene_end(t->s);
}

/* --- lines ---------------------------------------------------------------- */

/* Around what is repeated. */
static void panel(liner *t, int line, double top, double bottom)
{
    double x0 = MARGIN - 6, x1 = t->right - MARGIN + 6;
    int begin = t->l.begin ? t->l.begin : 1; /* behind what enters */
    if (!t->d->depth || t->line[t->l.end ? t->l.end - 1 : 0] < line ||
        (begin < t->l.ranks && t->line[begin] > line))
        return;
    for (int r = 0; r < t->l.ranks; r++) {
        if (t->line[r] != line)
            continue;
        if (r == begin)
            x0 = t->left[r] - GAP / 2.0;
        if (r == t->l.end && t->l.end < t->l.ranks)
            x1 = t->left[r] - GAP / 2.0;
    }
    tb_diagram_repeat(t->s, t->d, (tb_box){x0, top, x1 - x0, bottom - top},
                      begin >= t->l.ranks || t->line[begin] == line);
}

/* Before the first block, behind the embedding. */
static void stem_word(liner *t, double top)
{
    tb_style word = {.role = "stem", .fill = TB_TONE_MUTED, .size = 12};
    if (t->l.begin > 1)
        tb_scene_text(t->s, t->left[1], top + 17, "stem", &word);
}

static double draw_line(liner *t, int line, double top)
{
    rows_of_line(t, line);
    if (line == 0)
        stem_word(t, top);
    t->floor = top + TOP + t->high;
    panel(t, line, top, t->floor + UNDER);
    for (int lane = 0; lane < 2; lane++) /* streams over the rest */
        for (int i = 0; i < t->l.n; i++)
            if (crosses(t, &t->l.places[i], line) &&
                t->l.places[i].lane == (lane == 1))
                along(t, i, line);
    for (int i = 0; i < t->l.n; i++)
        if (t->line[t->l.places[i].rank] == line) {
            across(t, &t->l.places[i], true);
            across(t, &t->l.places[i], false);
        }
    for (int i = 0; i < t->l.n; i++)
        if (t->line[t->l.places[i].rank] == line)
            node(t, i);
    return t->floor + UNDER;
}

static void draw_all(liner *t)
{
    tb_scene *s = t->s;
    tb_style bold = {.size = 15, .bold = true};
    break_lines(t);
    t->right = tb_diagram_width(t->d, t->right);
    tb_scene_resize(s, t->right, s->h);
    tb_scene_text(s, MARGIN, 26, t->d->title, &bold);
    double y = 42;
    for (int line = 0; line < t->lines; line++)
        y = draw_line(t, line, y + (line ? 14 : 0));
    y = tb_diagram_formula(s, t->d, y + 26, t->right - 2 * MARGIN);
    tb_scene_resize(s, t->right, y - 6);
}

tb_status tb_wiring_draw(tb_scene *s, const tb_diagram *d)
{
    liner t = {.s = s, .d = d};
    const char *desc =
        d->desc ? d->desc : tb_wiring_describe(&s->arena, d->wiring);
    if (!desc)
        return TB_ERR_MEMORY;
    tb_scene_describe(s, desc);
    TB_TRY(tb_wiring_lay(&s->arena, d->wiring, false, &t.l));
    size_t ranks = (size_t)t.l.ranks + 1, rows = (size_t)t.l.rows + 1;
    t.left = tb_arena_alloc(&s->arena, ranks * sizeof *t.left);
    t.width = tb_arena_alloc(&s->arena, ranks * sizeof *t.width);
    t.line = tb_arena_alloc(&s->arena, ranks * sizeof *t.line);
    t.y_of = tb_arena_alloc(&s->arena, rows * sizeof *t.y_of);
    if (!t.left || !t.width || !t.line || !t.y_of)
        return TB_ERR_MEMORY;
    draw_all(&t);
    return TB_OK;
}
