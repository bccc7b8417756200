/* SPDX-License-Identifier: MIT */
/* I + dF/dx = J: three heat maps in one line of a formula, or in two where
 * their numbers need the room. */
#include "pictures/shot_grids.h"
#include "pictures/heat.h"

enum { MARGIN = 14, WIDE = 760, SIGN = 34, NAMES = 18, GRIDS = 3 };

/* Names of the three, what stands before each, and their ids. */
static const struct part {
    const char *name, *sign, *id, *text;
    tb_tone tone;
} parts[GRIDS] = {
    {"I", "", "grid-I", "I", TB_TONE_LANE},
    {"\xE2\x88\x82"
     "F/\xE2\x88\x82x",
     "+", "grid-F", "+ dF/dx", TB_TONE_BOX},
    {"J = \xE2\x88\x82y/\xE2\x88\x82x", "=", "grid-J", "= J", TB_TONE_INK}};

static double largest(const shot_grids *g)
{
    double most = 1;
    for (size_t i = 0; i < g->d * g->d; i++)
        most = tb_max2(most, tb_max2(tb_fabs(g->f[i]), tb_fabs(g->j[i])));
    return most;
}

static const double *values_of(const shot_grids *g, size_t k)
{
    return k == 0 ? g->one : k == 1 ? g->f : g->j;
}

static tb_heat heat_of(const shot_grids *g, size_t k)
{
    return (tb_heat){.title = parts[k].text,
                     .rows = g->d,
                     .columns = g->d,
                     .values = values_of(g, k),
                     .limit = largest(g),
                     .decimals = 2,
                     .outline_diagonal = true};
}

/* --- scene ---------------------------------------------------------------- */

typedef struct layout {
    tb_scene *s;
    const shot_grids *g;
    tb_heat heat[GRIDS];
    tb_heat_view view[GRIDS];
    double w[GRIDS], h; /* of the grids themselves */
} layout;

/* Natural sizes; the unit grid gives up its numbers first, then all do. */
static bool measure(layout *l)
{
    double h[GRIDS], room = WIDE - 2 * MARGIN - 2 * SIGN - GRIDS * NAMES;
    for (size_t k = 0; k < GRIDS; k++) {
        double most = l->g->d > 8 ? room / GRIDS - 3 : room;
        if (k == 0 && l->g->d > 5)
            most = tb_min2(most, 24 * (double)l->g->d);
        tb_heat_size(&l->view[k], most, &l->w[k], &h[k]);
    }
    return l->w[0] + l->w[1] + l->w[2] <= room;
}

/* Every one, or every other where cells are narrower than two digits. */
static void names(layout *l, double x, double y, double cell_w, double cell_h)
{
    tb_style st = {.fill = TB_TONE_MUTED, .size = 12, .anchor = TB_END};
    size_t step = l->g->d > 9 && cell_w < 18 ? 2 : 1;
    for (size_t i = 0; i < l->g->d; i += step) {
        char text[24];
        tb_format(text, sizeof text, "%zu", i + 1);
        double middle = (double)i + 0.5;
        st.anchor = TB_END;
        tb_plot_label(l->s, x - 4, y + middle * cell_h + 4, text, &st);
        st.anchor = TB_MIDDLE;
        tb_plot_label(l->s, x + middle * cell_w,
                      y + cell_h * (double)l->g->d + 15, text, &st);
    }
}

static void column_mark(layout *l, double x, double y, double cell_w,
                        double high)
{
    tb_style st = {.role = "column",
                   .title = "the column of the nudged number",
                   .stroke = TB_TONE_IN,
                   .line = 3,
                   .round = 3};
    tb_scene_rect(l->s, x + cell_w * (double)(l->g->column - 1) - 1, y - 2,
                  cell_w + 2, high + 4, &st);
}

/* One grid with sign and name; returns the x after it. */
static double put(layout *l, size_t k, double x, double y)
{
    double d = (double)l->g->d, cell = (l->w[k] - 2) / d, w, h;
    tb_style sign = {
        .role = "label", .size = 22, .bold = true, .anchor = TB_MIDDLE};
    tb_style name = {.role = "label",
                     .id = parts[k].id,
                     .fill = parts[k].tone,
                     .size = 15,
                     .bold = true};
    tb_heat_size(&l->view[k], l->w[k], &w, &h);
    double cell_h = (h - 4) / d;
    if (*parts[k].sign)
        tb_scene_text(l->s, x + SIGN / 2.0 - 4, y + 26 + d * cell_h / 2 + 8,
                      parts[k].sign, &sign);
    x += (*parts[k].sign ? SIGN : 0) + NAMES;
    tb_scene_text(l->s, x, y + 14, parts[k].name, &name);
    tb_heat_draw(l->s, &l->view[k], (tb_box){x, y + 24, l->w[k], h});
    names(l, x, y + 26, cell, cell_h);
    if (l->g->column && k > 0)
        column_mark(l, x, y + 26, cell, cell_h * d);
    l->h = tb_max2(l->h, 26 + cell_h * d + 20);
    return x + l->w[k];
}

static void draw(layout *l)
{
    bool fits = measure(l);
    double x = MARGIN, y = 8, right = 0;
    for (size_t k = 0; k < GRIDS; k++) {
        if (k == 2 && !fits) {
            x = MARGIN;
            y += l->h + 14;
            l->h = 0;
        }
        x = put(l, k, x, y);
        right = tb_max2(right, x);
    }
    y += l->h + 12;
    y = tb_heat_legend(l->s, &l->view[2], MARGIN, y, right - MARGIN);
    tb_scene_resize(l->s, tb_max2(right + MARGIN, 300), y + 4);
}

static tb_status grids_scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    layout l = {.g = data};
    *out = NULL;
    TB_TRY(tb_scene_create(ctx, WIDE, 300, l.g->title, l.g->desc, &l.s));
    for (size_t k = 0; k < GRIDS; k++) {
        l.heat[k] = heat_of(l.g, k);
        tb_status status =
            tb_heat_view_init(&l.view[k], &l.s->arena, &l.heat[k], 4500, 4500);
        if (status != TB_OK)
            tb_scene_fail(l.s, status);
    }
    if (l.s->status == TB_OK)
        draw(&l);
    return tb_scene_done(l.s, out);
}

/* --- other faces ---------------------------------------------------------- */

static tb_status grids_term(tb_ctx *ctx, const void *data,
                            const tb_terminal *term, tb_out *out)
{
    for (size_t k = 0; k < GRIDS; k++) {
        tb_heat h = heat_of(data, k);
        if (k)
            tb_buf_putc(&out->buf, '\n');
        TB_TRY(tb_heat_term(ctx, &h, term, out));
    }
    return tb_buf_status(&out->buf);
}

static tb_status grids_html(tb_ctx *ctx, const void *data, tb_out *out)
{
    for (size_t k = 1; k < GRIDS; k++) {
        tb_heat h = heat_of(data, k);
        TB_TRY(tb_heat_table_html(ctx, &h, out));
    }
    return tb_buf_status(&out->buf);
}

static void grids_json(const void *data, tb_json *j)
{
    const shot_grids *g = data;
    size_t dims[] = {g->d, g->d};
    tb_json_string(j, "title", g->title);
    tb_json_tensor(j, "f_jacobian", TB_F64, g->f, 2, dims);
    tb_json_tensor(j, "jacobian", TB_F64, g->j, 2, dims);
}

const shot_face shot_grids_face = {"grids", grids_scene, grids_term, grids_html,
                                   grids_json};
