/* SPDX-License-Identifier: MIT */
/* A heat map as a scene. Colour is one tone whose opacity is the value, so
 * that it follows the theme; shape says the sign. */
#include "pictures/heat.h"

enum {
    MARGIN = 14,
    MOST_CELLS = 4500,  /* 5,000 nodes with frame, names and legend */
    WITH_TITLES = 2200, /* a title is a node too */
    PRINTED = 8,        /* rows and columns */
    CELL_MAX = 26,      /* px */
    PRINTED_MIN = 34,
    GRID_FROM = 9, /* px of a cell that has lines around it */
    SWATCHES = 9
};

#define TEXT_SIZE 12.0

/* --- sizes -------------------------------------------------------------- */

static double widest_name(const tb_heat_view *v)
{
    double w = 0;
    for (size_t r = 0; r < v->rows; r++)
        w = tb_max2(w, tb_text_width(tb_heat_row_name(v, r), 12, false));
    return w;
}

static double gutter(const tb_heat_view *v)
{
    double w = widest_name(v);
    return w > 0 ? w + 8 : 0;
}

static const char *printed(const tb_heat_view *v, size_t cell,
                           char out[TB_SHOW_CHARS])
{
    int places = v->heat->decimals;
    if (!places || v->state[cell] != TB_HEAT_SHOWN)
        return tb_heat_cell(v, cell, out);
    double scale = tb_pow10(places), x = v->value[cell];
    double whole = tb_floor(tb_fabs(x) * scale + 0.5) / scale;
    return tb_show_number(x < 0 && whole > 0 ? -whole : whole, out);
}

/* px a printed number needs; 0 if none is printed. */
static double print_width(const tb_heat_view *v)
{
    char text[TB_SHOW_CHARS];
    double w = PRINTED_MIN - 8;
    if (v->heat->print_values == TB_PRINT_NEVER || v->rows > PRINTED ||
        v->columns > PRINTED)
        return 0;
    for (size_t i = 0; i < v->rows * v->columns; i++)
        if (v->state[i] != TB_HEAT_NONE)
            w = tb_max2(w,
                        tb_text_width(printed(v, i, text), TEXT_SIZE, false));
    return w + 8;
}

/* A name wider than its cell is left out; few columns make room for it. */
static double name_width(const tb_heat_view *v)
{
    double w = 0;
    for (size_t c = 0; c < v->columns && v->columns <= 16; c++)
        w = tb_max2(w, tb_text_width(tb_heat_column_name(v, c), 12, false));
    return w > 64 ? 0 : w + 8;
}

typedef struct cells {
    double w, h; /* px of one */
    bool printed;
} cells;

static cells cell_size(const tb_heat_view *v, double width)
{
    double room = (width - gutter(v)) / (double)v->columns;
    double print = print_width(v), want = CELL_MAX;
    cells c = {0};
    c.printed = print > 0 && print <= room;
    want = c.printed ? print : want;
    bool square = v->heat->scale != TB_HEAT_LOG;
    c.w = tb_min2(room, square ? want : tb_max2(want, name_width(v)));
    c.h = c.printed && !square ? 26 : tb_min2(c.w, want);
    if (!square)
        c.h = tb_max2(c.h, tb_min2(22, 660 / (double)v->rows));
    return c;
}

static bool names_columns(const tb_heat_view *v)
{
    return v->heat->column_names != NULL;
}

void tb_heat_size(const tb_heat_view *v, double width, double *w, double *h)
{
    cells c = cell_size(v, width);
    *w = gutter(v) + c.w * (double)v->columns + 2;
    *h = (v->heat->row_label ? 20 : 2) + c.h * (double)v->rows + 2 +
         (names_columns(v) ? 20 : 0) + (v->heat->column_label ? 20 : 0);
}

/* --- cells -------------------------------------------------------------- */

/* Parallel strokes as one path along the cell's edge. */
static void hatch(tb_scene *s, tb_box b, const char *title)
{
    tb_style st = {.role = "gap-mark",
                   .title = title,
                   .fill = TB_TONE_PANEL,
                   .stroke = TB_TONE_BAD,
                   .line = 1};
    double x = b.x, y = b.y, w = b.w, h = b.h;
    tb_scene_path(s, (double[]){x,         y,         x + w, y,     x + w,
                                y + h,     x,         y + h, x,     y + h / 2,
                                x + w / 2, y,         x + w, y,     x,
                                y + h,     x + w / 2, y + h, x + w, y + h / 2,
                                x + w,     y},
                  11, false, &st);
}

static void mark(tb_scene *s, const tb_heat_view *v, size_t cell, tb_box b,
                 const char *title)
{
    double x = b.x + b.w / 2, y = b.y + b.h / 2;
    double r = tb_min2(5, 0.3 * tb_min2(b.w, b.h));
    tb_style st = {.role = "jac-cell", .title = title};
    switch ((tb_heat_state)v->state[cell]) {
    case TB_HEAT_BAD:
        hatch(s, b, title);
        break;
    case TB_HEAT_ZERO:
        st.role = "floor-mark";
        st.fill = TB_TONE_IN;
        tb_scene_path(s, (double[]){x, y + r, x - r, y - r, x + r, y - r}, 3,
                      true, &st);
        break;
    case TB_HEAT_NONE:
    case TB_HEAT_SHOWN:
    case TB_HEAT_STATES:
        st.role = "none";
        st.fill = TB_TONE_TOTAL;
        st.alpha = 0.4;
        tb_scene_rect(s, x - r, y - r, 2 * r, 2 * r, &st);
        break;
    }
}

/* Printed numbers must read on it, in either theme: half the strength. */
static tb_style look(const tb_heat_view *v, double value, bool printed,
                     double size)
{
    double t = tb_heat_strength(v, value);
    bool log = v->heat->scale == TB_HEAT_LOG;
    bool is_signed = v->heat->scale == TB_HEAT_SIGNED;
    tb_style st = {.role = "jac-cell"};
    st.alpha = (log ? 0.1 + 0.9 * t : t) * (printed ? 0.5 : 1);
    st.fill = !is_signed || value < 0 ? TB_TONE_IN : TB_TONE_BOX;
    st.round = is_signed && value < 0 ? size / 2 : 0;
    if (st.alpha < 0.005) {
        st.fill = TB_TONE_PAPER;
        st.alpha = 0;
    }
    return st;
}

static const char *cell_title(const tb_heat_view *v, size_t r, size_t c)
{
    char text[TB_SHOW_CHARS];
    const char *row = tb_heat_row_name(v, r);
    const char *column = tb_heat_column_name(v, c);
    if (!row || !column)
        return NULL;
    if (!*row && !*column)
        return tb_arena_printf(v->arena, "%zu, %zu: %s", r * v->by_row + 1,
                               c * v->by_column + 1,
                               tb_heat_cell(v, r * v->columns + c, text));
    return tb_arena_printf(v->arena, "%s%s%s: %s", row,
                           *row && *column ? ", " : "", column,
                           tb_heat_cell(v, r * v->columns + c, text));
}

static void one_cell(tb_scene *s, const tb_heat_view *v, size_t r, size_t c,
                     tb_box b, bool print)
{
    char text[TB_SHOW_CHARS];
    size_t i = r * v->columns + c;
    bool titled = v->rows * v->columns <= WITH_TITLES;
    const char *title = titled ? cell_title(v, r, c) : NULL;
    if (titled && !title)
        tb_scene_fail(s, TB_ERR_MEMORY);
    if (v->state[i] != TB_HEAT_SHOWN) {
        mark(s, v, i, b, title);
    } else {
        tb_style st = look(v, v->value[i], print, tb_min2(b.w, b.h));
        st.title = title;
        tb_scene_rect(s, b.x, b.y, b.w, b.h, &st);
    }
    if (print && (v->state[i] == TB_HEAT_SHOWN || v->state[i] == TB_HEAT_BAD)) {
        tb_style st = {.size = TEXT_SIZE, .anchor = TB_MIDDLE};
        tb_scene_text(s, b.x + b.w / 2, b.y + b.h / 2 + 4, printed(v, i, text),
                      &st);
    }
}

/* --- grid --------------------------------------------------------------- */

static void frame(tb_scene *s, const tb_heat_view *v, tb_box g, cells c)
{
    tb_style st = {.role = "grid", .stroke = TB_TONE_GRID, .line = 1};
    bool lines = tb_min2(c.w, c.h) >= GRID_FROM;
    for (size_t r = 1; lines && r < v->rows; r++)
        tb_scene_line(s, g.x, g.y + (double)r * c.h, g.x + g.w,
                      g.y + (double)r * c.h, &st);
    for (size_t k = 1; lines && k < v->columns; k++)
        tb_scene_line(s, g.x + (double)k * c.w, g.y, g.x + (double)k * c.w,
                      g.y + g.h, &st);
    st.role = "axis";
    st.stroke = TB_TONE_MUTED;
    tb_scene_rect(s, g.x, g.y, g.w, g.h, &st);
}

static void diagonal(tb_scene *s, const tb_heat_view *v, tb_box g, cells c)
{
    tb_style st = {.role = "diag", .stroke = TB_TONE_LANE, .line = 2};
    double inset = tb_min2(c.w, c.h) >= GRID_FROM ? 1.5 : 0;
    if (inset == 0)
        st.line = 1;
    for (size_t i = 0; i < v->rows && i < v->columns; i++)
        tb_scene_rect(s, g.x + (double)i * c.w + inset,
                      g.y + (double)i * c.h + inset, c.w - 2 * inset,
                      c.h - 2 * inset, &st);
}

/* Columns from one name to the next, so that none touches its neighbour. */
static size_t name_step(const tb_heat_view *v, double cell)
{
    double w = 0;
    for (size_t k = 0; k < v->columns; k++)
        w = tb_max2(w, tb_text_width(tb_heat_column_name(v, k), 12, false));
    size_t step = (size_t)tb_ceil((w + 4) / cell);
    return step > 1 ? step : 1;
}

static void names(tb_scene *s, const tb_heat_view *v, tb_box g, cells c)
{
    tb_style st = {.fill = TB_TONE_MUTED, .size = 12, .anchor = TB_END};
    for (size_t r = 0; v->heat->row_names && r < v->rows; r++)
        tb_plot_label(s, g.x - 8, g.y + ((double)r + 0.5) * c.h + 4,
                      tb_heat_row_name(v, r), &st);
    st.anchor = TB_MIDDLE;
    size_t step = names_columns(v) ? name_step(v, c.w) : 1;
    for (size_t k = 0; names_columns(v) && k < v->columns; k += step)
        tb_plot_label(s, g.x + ((double)k + 0.5) * c.w, g.y + g.h + 16,
                      tb_heat_column_name(v, k), &st);
    double under = g.y + g.h + (names_columns(v) ? 34 : 16);
    st.anchor = TB_END;
    if (v->heat->column_label)
        tb_scene_text(
            s,
            tb_max2(g.x + g.w, tb_text_width(v->heat->column_label, 12, false)),
            under, v->heat->column_label, &st);
    st.anchor = TB_START;
    tb_scene_text(s, g.x - gutter(v), g.y - 8, v->heat->row_label, &st);
}

void tb_heat_draw(tb_scene *s, const tb_heat_view *v, tb_box area)
{
    tb_style group = {.role = "jac"};
    cells c = cell_size(v, area.w);
    double left = gutter(v), top = v->heat->row_label ? 20 : 2;
    double gap = tb_min2(c.w, c.h) >= GRID_FROM ? 0.5 : 0;
    tb_box g = {area.x + left, area.y + top, c.w * (double)v->columns,
                c.h * (double)v->rows};
    tb_scene_group(s, &group);
    frame(s, v, g, c);
    for (size_t r = 0; r < v->rows; r++)
        for (size_t k = 0; k < v->columns; k++) {
            tb_box b = {g.x + (double)k * c.w + gap,
                        g.y + (double)r * c.h + gap, c.w - 2 * gap,
                        c.h - 2 * gap};
            one_cell(s, v, r, k, b, c.printed);
        }
    if (v->heat->outline_diagonal)
        diagonal(s, v, g, c);
    names(s, v, g, c);
    tb_scene_end(s);
}

/* --- legend ------------------------------------------------------------- */

/* Colour i of the ramp. */
static double ramp_value(const tb_heat_view *v, size_t i)
{
    double t = (double)i / (SWATCHES - 1);
    if (v->heat->scale == TB_HEAT_SIGNED)
        return v->limit * (2 * t - 1);
    if (v->heat->scale == TB_HEAT_FROM_ZERO)
        return v->limit * t;
    return tb_pow10(v->axis.lo + t * (v->axis.hi - v->axis.lo));
}

static double ramp(tb_scene *s, const tb_heat_view *v, double x, double y)
{
    enum { W = 18, H = 14 };
    char text[TB_SHOW_CHARS];
    tb_style label = {.fill = TB_TONE_MUTED, .size = 12, .anchor = TB_MIDDLE};
    tb_style edge = {.role = "legend", .stroke = TB_TONE_GRID, .line = 1};
    bool printed = print_width(v) > 0;
    for (size_t i = 0; i < SWATCHES; i++) {
        double at = x + (double)i * W;
        tb_style st = look(v, ramp_value(v, i), printed, H);
        st.role = "legend-mark";
        tb_scene_rect(s, at, y, W, H, &edge);
        tb_scene_rect(s, at + (W - H) / 2.0, y + 0.5, H, H - 1, &st);
    }
    for (size_t i = 0; i < SWATCHES; i += (SWATCHES - 1) / 2)
        tb_plot_label(s, x + ((double)i + 0.5) * W, y + H + 15,
                      tb_show_number(ramp_value(v, i), text), &label);
    return x + SWATCHES * W;
}

double tb_heat_legend(tb_scene *s, const tb_heat_view *v, double x, double y,
                      double width)
{
    static const char *const states[] = {[TB_HEAT_ZERO] = "0 or below",
                                         [TB_HEAT_NONE] = "none",
                                         [TB_HEAT_BAD] = "not finite"};
    tb_style text = {.size = 12};
    double start = x, end = x + width;
    bool empty = v->heat->scale == TB_HEAT_LOG ? v->axis.empty : v->limit <= 0;
    const char *label = v->heat->value_label;
    label = tb_arena_printf(v->arena, "%s%s%s", label ? label : "",
                            label ? ", " : "", tb_heat_scale_words(v->heat));
    if (label)
        y = tb_scene_wrap(s, x, y + 11, width, label, &text);
    else
        tb_scene_fail(s, TB_ERR_MEMORY);
    if (empty)
        tb_scene_text(s, x, y + 11,
                      v->heat->scale == TB_HEAT_LOG ? "no positive values"
                                                    : "all values are 0",
                      &text);
    else
        x = ramp(s, v, x + 16, y) + 34;
    y += empty ? 20 : 36;
    double row = y - 36;
    for (size_t k = TB_HEAT_ZERO; k < TB_HEAT_STATES; k++) {
        if (!v->found[k])
            continue;
        double w = 22 + tb_text_width(states[k], 12, false);
        if (x + w > end || empty) {
            x = start;
            row = y;
            y += 20;
            empty = false;
        }
        unsigned char state = (unsigned char)k;
        tb_heat_view one = {.heat = v->heat, .state = &state};
        mark(s, &one, 0, (tb_box){x, row, 14, 14}, NULL);
        tb_scene_text(s, x + 20, row + 11, states[k], &text);
        x += w + 18;
    }
    return y;
}

/* --- figure ------------------------------------------------------------- */

static const char *where(const tb_heat_view *v, size_t i)
{
    size_t r = i / v->columns, c = i % v->columns;
    const char *row = tb_heat_row_name(v, r);
    const char *column = tb_heat_column_name(v, c);
    if (!row || !column)
        return NULL;
    if (*row && *column)
        return tb_arena_printf(v->arena, "%s, %s", row, column);
    return tb_arena_printf(v->arena, "row %zu, column %zu", r * v->by_row + 1,
                           c * v->by_column + 1);
}

static const char *describe(const tb_heat_view *v)
{
    char a[TB_SHOW_CHARS], b[TB_SHOW_CHARS];
    size_t least = SIZE_MAX, most = SIZE_MAX;
    for (size_t i = 0; i < v->rows * v->columns; i++) {
        if (v->state[i] != TB_HEAT_SHOWN)
            continue;
        least = least == SIZE_MAX || v->value[i] < v->value[least] ? i : least;
        most = most == SIZE_MAX || v->value[i] > v->value[most] ? i : most;
    }
    const char *text = tb_arena_printf(v->arena, "%zu rows, %zu columns",
                                       v->heat->rows, v->heat->columns);
    if (text && least != SIZE_MAX) {
        const char *from = where(v, least), *to = where(v, most);
        text = from && to
                   ? tb_arena_printf(
                         v->arena, "%s: least %s at %s, largest %s at %s", text,
                         tb_show_number(v->value[least], a), from,
                         tb_show_number(v->value[most], b), to)
                   : NULL;
    }
    return text ? tb_arena_printf(
                      v->arena, "%s; %zu without a value, %zu not finite.",
                      text, v->found[TB_HEAT_NONE], v->found[TB_HEAT_BAD])
                : NULL;
}

static void draw(tb_scene *s, const tb_heat_view *v)
{
    tb_style bold = {.size = 15, .bold = true};
    double inner = s->w - 2 * MARGIN, w, h;
    double y = tb_scene_wrap(s, MARGIN, 26, inner, v->heat->title, &bold) - 10;
    tb_heat_size(v, inner, &w, &h);
    tb_heat_draw(s, v, (tb_box){MARGIN, y, inner, h});
    y = tb_heat_legend(s, v, MARGIN, y + h + 10, inner) + 8;
    const char *const *notes = tb_heat_notes(v);
    if (!notes)
        tb_scene_fail(s, TB_ERR_MEMORY);
    y = tb_plot_notes(s, notes, MARGIN, y + 8, inner);
    tb_scene_resize(s, s->w, y);
}

tb_status tb_heat_scene(tb_ctx *ctx, const tb_heat *heat, tb_scene **out)
{
    *out = NULL;
    TB_TRY(tb_heat_check(ctx, heat));
    tb_scene *s;
    TB_TRY(tb_scene_create(ctx, 760, 400, heat->title, "heat map", &s));
    tb_heat_view v;
    if (tb_heat_view_init(&v, &s->arena, heat, MOST_CELLS, MOST_CELLS) !=
        TB_OK) {
        tb_scene_fail(s, TB_ERR_MEMORY);
        return tb_scene_done(s, out);
    }
    double width = heat->width > 0 ? heat->width : 760, w, h;
    tb_heat_size(&v, width - 2 * MARGIN, &w, &h);
    if (!(heat->width > 0))
        width = tb_max2(340, tb_min2(760, w + 2 * MARGIN));
    tb_scene_resize(s, width, 400);
    const char *desc = heat->desc ? heat->desc : describe(&v);
    if (!desc)
        tb_scene_fail(s, TB_ERR_MEMORY);
    tb_scene_describe(s, desc);
    draw(s, &v);
    return tb_scene_done(s, out);
}
