/* SPDX-License-Identifier: MIT */
/* A tower of a few floors, from the ground up. */
#include "pictures/shot_house.h"
#include "pictures/diagram.h"

enum {
    MARGIN = 14,
    WIDE = 620,
    LANE = 250,  /* x of the road up */
    BOX_X = 466, /* middle of a box beside it */
    BOX_HALF = 62,
    LOW = 20,  /* half the height of a box */
    BACK = 30, /* road up to road down */
    RADIUS = 13,
    BETWEEN = 44, /* arrow from floor to floor */
    BOXES = 60,   /* height of a floor of boxes */
    ROADS = 130   /* of one with two roads */
};

typedef struct layout {
    tb_scene *s;
    const shot_house *h;
    double high, bottom; /* of a floor; y of the ground */
} layout;

/* y of the floor's lower and upper edge. */
static double floor_bottom(const layout *l, size_t i)
{
    return l->bottom - (double)i * (l->high + BETWEEN) - BETWEEN;
}

static double floor_top(const layout *l, size_t i)
{
    return floor_bottom(l, i) - l->high;
}

static const char *id_of(layout *l, const char *what, size_t i)
{
    return tb_arena_printf(&l->s->arena, "%s-%zu", what, i);
}

static void words(layout *l, double x, double y, const char *text, tb_tone tone,
                  tb_anchor anchor)
{
    tb_style st = {.role = "label", .fill = tone, .size = 12, .anchor = anchor};
    tb_scene_text(l->s, x, y, text ? text : "", &st);
}

/* --- forward -------------------------------------------------------------- */

static void cross(tb_scene *s, double x, double y)
{
    tb_style st = {.role = "broken",
                   .title = "this road is broken",
                   .stroke = TB_TONE_BAD,
                   .line = 3};
    tb_scene_line(s, x - 9, y - 9, x + 9, y + 9, &st);
    tb_scene_line(s, x - 9, y + 9, x + 9, y - 9, &st);
}

static void box(layout *l, size_t i, double x, double y)
{
    const house_floor *f = &l->h->floors[i];
    bool bad = f->wrong || f->broken;
    tb_style body = {.role = "box",
                     .id = id_of(l, "box", i + 1),
                     .fill = TB_TONE_BOX_SOFT,
                     .stroke = bad ? TB_TONE_BAD : TB_TONE_BOX,
                     .line = 2,
                     .dash = bad ? TB_DASHED : TB_SOLID,
                     .round = 9};
    tb_style name = {.role = "label",
                     .id = id_of(l, "name", i + 1),
                     .size = 14,
                     .bold = true,
                     .anchor = TB_MIDDLE};
    tb_scene_rect(l->s, x - BOX_HALF, y - LOW, 2 * BOX_HALF, 2 * LOW, &body);
    tb_scene_text(l->s, x, y + 5, f->name, &name);
    if (f->broken)
        cross(l->s, x + BOX_HALF - 12, y - LOW + 12);
}

/* From x_(i-1) to x_i: what goes in below, what comes out above. */
static void level(layout *l, size_t i)
{
    char text[TB_SHOW_CHARS];
    bool wrong = i > 0 && l->h->floors[i - 1].wrong;
    bool first = i == 0;
    double y0 = i == 0 ? l->bottom : floor_top(l, i - 1);
    double y1 = y0 - BETWEEN;
    tb_style st = {.role = first        ? "in-arrow"
                           : l->h->skip ? "skip"
                                        : "fwd",
                   .id = id_of(l, "x", i),
                   .stroke = wrong        ? TB_TONE_BAD
                             : first      ? TB_TONE_IN
                             : l->h->skip ? TB_TONE_LANE
                                          : TB_TONE_BOX,
                   .line = l->h->skip && !first ? 5 : 3,
                   .dash = wrong ? TB_DASHED : TB_SOLID};
    if (first && l->h->skip)
        y1 -= 10;
    tb_scene_arrow(l->s, (double[]){LANE, y0, LANE, y1 + 2}, 2, &st);
    size_t d = l->h->d + wrong;
    const char *label = tb_arena_printf(&l->s->arena, "%s: %zu numbers",
                                        tb_subscript(&l->s->arena, "x", i), d);
    double y = (y0 + y1) / 2 + 4;
    words(l, LANE + 16, y, label, wrong ? TB_TONE_BAD : TB_TONE_INK, TB_START);
    if (!wrong)
        words(l, LANE + 30 + tb_text_width(label, 12, false), y,
              tb_arena_printf(&l->s->arena, "length %s",
                              tb_show_number(l->h->length[i], text)),
              TB_TONE_MUTED, TB_START);
}

static void frame(layout *l, size_t i)
{
    double top = floor_top(l, i);
    tb_style st = {.role = "floor",
                   .id = id_of(l, "floor", i + 1),
                   .fill = l->h->skip ? TB_TONE_PAPER : TB_TONE_PANEL,
                   .stroke = TB_TONE_GRID,
                   .line = 1,
                   .round = 8};
    tb_style name = {
        .role = "label", .fill = TB_TONE_MUTED, .size = 13, .bold = true};
    tb_scene_rect(l->s, MARGIN, top, WIDE - 2 * MARGIN, l->high, &st);
    tb_scene_text(l->s, MARGIN + 10, top + 20,
                  tb_arena_printf(&l->s->arena, "floor %zu", i + 1), &name);
}

/* --- two roads ------------------------------------------------------------ */

static void roads_up(layout *l, size_t i)
{
    double top = floor_top(l, i), bottom = floor_bottom(l, i);
    double plus = top + RADIUS + 8, fork = bottom - 10;
    double middle = (plus + fork) / 2;
    bool broken = l->h->floors[i].broken;
    tb_style skip = {.role = "skip",
                     .id = id_of(l, "skip", i + 1),
                     .title = "the skip: x itself",
                     .stroke = TB_TONE_LANE,
                     .line = 5};
    tb_style road = {.role = broken ? "broken" : "fwd",
                     .id = id_of(l, "road", i + 1),
                     .stroke = broken ? TB_TONE_BAD : TB_TONE_BOX,
                     .line = 3,
                     .dash = broken ? TB_DASHED : TB_SOLID,
                     .round = 10};
    tb_style dot = {.fill = TB_TONE_LANE};
    tb_scene_arrow(l->s, (double[]){LANE, fork, LANE, plus + RADIUS + 1}, 2,
                   &skip);
    tb_scene_path(
        l->s,
        (double[]){LANE, fork, BOX_X + 20, fork, BOX_X + 20, middle + LOW}, 3,
        false, &road);
    tb_scene_arrow(l->s,
                   (double[]){BOX_X + 20, middle - LOW, BOX_X + 20, plus,
                              LANE + RADIUS + 1, plus},
                   3, &road);
    tb_scene_circle(l->s, LANE, fork, 5, &dot);
    box(l, i, BOX_X, middle);
    tb_part_plus(l->s, LANE, plus, RADIUS);
}

static const char *gain_text(layout *l, const char *name, double g)
{
    char text[TB_SHOW_CHARS];
    return tb_arena_printf(&l->s->arena, "%s %s", name,
                           tb_show_number(g, text));
}

static tb_style back_style(layout *l, const char *role, size_t i, double g,
                           tb_tone tone)
{
    return (tb_style){.role = role,
                      .id = id_of(l, role, i),
                      .stroke = tone,
                      .line = tb_back_width(g),
                      .round = 8};
}

/* The learning arrow on both roads down; through a broken box none comes. */
static void roads_down(layout *l, size_t i)
{
    const house_floor *f = &l->h->floors[i];
    double top = floor_top(l, i), bottom = floor_bottom(l, i);
    double plus = top + RADIUS + 8, fork = bottom - 10;
    double middle = (plus + fork) / 2, inner = BOX_X - 24;
    tb_style hw = back_style(l, "grad-hw", i + 1, f->hw, TB_TONE_LANE);
    tb_style br = back_style(l, "grad-br", i + 1, f->br, TB_TONE_BOX);
    tb_scene_arrow(
        l->s, (double[]){LANE - BACK, plus - 4, LANE - BACK, fork + 2}, 2, &hw);
    words(l, LANE - BACK - 17, middle + 4, gain_text(l, "by the skip", f->hw),
          TB_TONE_LANE, TB_END);
    if (!f->broken) {
        tb_scene_path(l->s,
                      (double[]){LANE + 18, plus + 20, inner, plus + 20, inner,
                                 middle - LOW},
                      3, false, &br);
        br.id = id_of(l, "grad-br-on", i + 1);
        br.role = NULL;
        tb_scene_arrow(l->s,
                       (double[]){inner, middle + LOW, inner, fork - 20,
                                  LANE + 16, fork - 20},
                       3, &br);
    }
    words(l, LANE + 20, middle + 4, gain_text(l, "through F", f->br),
          f->broken ? TB_TONE_BAD : TB_TONE_BOX, TB_START);
}

static void gradient(layout *l, size_t i)
{
    double y1 = i == 0 ? l->bottom : floor_top(l, i - 1), y0 = y1 - BETWEEN;
    tb_style st =
        back_style(l, "grad-total", i, l->h->gradient[i], TB_TONE_TOTAL);
    tb_scene_arrow(l->s, (double[]){LANE - BACK, y0 + 4, LANE - BACK, y1 - 4},
                   2, &st);
    words(l, LANE - BACK - 17, (y0 + y1) / 2 + 4,
          gain_text(l, "gradient", l->h->gradient[i]), TB_TONE_TOTAL, TB_END);
}

/* --- scene ---------------------------------------------------------------- */

static void draw(layout *l)
{
    static const char law[] = "Coming down: the learning arrow, 10 px wide "
                              "where it carries as much as at the top, 3 px "
                              "less for each factor 10.";
    const shot_house *h = l->h;
    tb_style note = {.role = "note", .fill = TB_TONE_MUTED, .size = 12};
    tb_style bad = {
        .role = "error", .fill = TB_TONE_BAD, .size = 13, .bold = true};
    l->high = h->skip ? ROADS : BOXES;
    l->bottom = 4 + (double)h->n * (l->high + BETWEEN) + BETWEEN;
    for (size_t i = 0; i < h->n; i++)
        frame(l, i);
    for (size_t i = 0; i <= h->n; i++) {
        level(l, i);
        if (h->skip)
            gradient(l, i);
    }
    for (size_t i = 0; i < h->n; i++) {
        if (h->skip) {
            roads_up(l, i);
            roads_down(l, i);
        } else {
            box(l, i, LANE, (floor_top(l, i) + floor_bottom(l, i)) / 2);
        }
    }
    double y = l->bottom + 22;
    if (h->error)
        y = tb_scene_wrap(l->s, MARGIN, y, WIDE - 2 * MARGIN, h->error, &bad);
    y = tb_scene_wrap(l->s, MARGIN, y, WIDE - 2 * MARGIN,
                      h->skip ? law : h->note, &note);
    tb_scene_resize(l->s, WIDE, y);
}

static tb_status house_scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    layout l = {.h = data};
    *out = NULL;
    TB_TRY(tb_scene_create(ctx, WIDE, 300, l.h->title, l.h->desc, &l.s));
    draw(&l);
    return tb_scene_done(l.s, out);
}

/* --- terminal ------------------------------------------------------------- */

static void term_level(tb_arena *a, const shot_house *h, size_t i,
                       const tb_terminal *term, tb_buf *b)
{
    char g[TB_SHOW_CHARS];
    bool wrong = i > 0 && h->floors[i - 1].wrong;
    const char *back = h->skip
                           ? tb_arena_printf(a, ", gradient %s",
                                             tb_show_number(h->gradient[i], g))
                           : "";
    const char *line =
        tb_arena_printf(a, "  x%zu  \xE2\x96\xB2  %zu numbers%s%s", i,
                        h->d + wrong, wrong ? ": refused" : "", back);
    tb_term_puts(b, term, line);
    tb_buf_putc(b, '\n');
}

static void term_floor(tb_arena *a, const shot_house *h, size_t i,
                       const tb_terminal *term, tb_buf *b)
{
    const house_floor *f = &h->floors[i];
    char hw[TB_SHOW_CHARS], br[TB_SHOW_CHARS];
    tb_show_number(f->hw, hw);
    tb_show_number(f->br, br);
    if (!h->skip) {
        tb_term_puts(b, term, tb_arena_printf(a, "     [ %s ]", f->name));
        tb_buf_putc(b, '\n');
        return;
    }
    const char *mark = f->broken ? "\xE2\x94\x88" : "\xE2\x94\x80";
    tb_term_puts(b, term,
                 tb_arena_printf(a,
                                 "      \xE2\x8A\x95\xE2\x97\x84%s[%s]%s"
                                 "\xE2\x94\x90  by the skip %s",
                                 mark, f->name, mark, hw));
    tb_buf_putc(b, '\n');
    tb_term_puts(b, term,
                 tb_arena_printf(a,
                                 "      \xE2\x94\x9C%s%s%s%s%s%s\xE2\x94\x98"
                                 "  through F %s",
                                 mark, mark, mark, mark, mark, mark, br));
    tb_buf_putc(b, '\n');
}

static tb_status house_term(tb_ctx *ctx, const void *data,
                            const tb_terminal *term, tb_out *out)
{
    const shot_house *h = data;
    tb_arena a;
    tb_arena_init(&a, ctx);
    term_level(&a, h, h->n, term, &out->buf);
    for (size_t i = h->n; i-- > 0;) {
        term_floor(&a, h, i, term, &out->buf);
        term_level(&a, h, i, term, &out->buf);
    }
    tb_arena_clear(&a);
    if (h->error)
        tb_term_wrap(&out->buf, term, 2, h->error);
    return tb_buf_status(&out->buf);
}

/* --- table and JSON ------------------------------------------------------- */

static tb_status table(tb_arena *a, const void *data, tb_grid *g)
{
    const shot_house *h = data;
    static const tb_column columns[] = {
        {.head = "floor", .align = TB_RIGHT},
        {.head = "box"},
        {.head = "numbers in", .align = TB_RIGHT},
        {.head = "numbers out", .align = TB_RIGHT},
        {.head = "gradient by the skip", .align = TB_RIGHT},
        {.head = "through F", .align = TB_RIGHT},
        {.head = "gradient below", .align = TB_RIGHT}};
    size_t n = h->skip ? TB_LEN(columns) : 4;
    TB_TRY(tb_grid_init(g, a, h->title, columns, n, h->n));
    for (size_t i = h->n; i-- > 0;) {
        const house_floor *f = &h->floors[i];
        tb_grid_number(g, (double)i + 1);
        tb_grid_text(g, f->name);
        tb_grid_number(g, (double)h->d);
        tb_grid_number(g, (double)(h->d + f->wrong));
        if (!h->skip)
            continue;
        tb_grid_number(g, f->hw);
        tb_grid_number(g, f->br);
        tb_grid_number(g, h->gradient[i]);
    }
    return TB_OK;
}

SHOT_GRID_HTML(house_html, table)

static void house_json(const void *data, tb_json *j)
{
    const shot_house *h = data;
    tb_json_string(j, "title", h->title);
    tb_json_array(j, "house");
    for (size_t i = 0; i < h->n; i++) {
        const house_floor *f = &h->floors[i];
        tb_json_object(j, NULL);
        tb_json_string(j, "box", f->name);
        tb_json_int(j, "in", (int64_t)h->d);
        tb_json_int(j, "out", (int64_t)(h->d + f->wrong));
        if (h->skip) {
            tb_json_number(j, "skip", f->hw);
            tb_json_number(j, "through", f->br);
            tb_json_number(j, "cosine", f->cos);
        }
        tb_json_end(j);
    }
    tb_json_end(j);
}

const shot_face shot_house_face = {"house", house_scene, house_term, house_html,
                                   house_json};
