/* SPDX-License-Identifier: MIT */
/* The drawing of a norm: strips of bars on one axis, one per step, with the
 * line of the mean and the band of the spread; beside them J and how much it
 * passes on. */
#include "pictures/heat.h"
#include "pictures/shot_columns.h"
#include "pictures/shot_norm.h"
#include "pictures/shot_stage.h"

enum {
    MARGIN = 14,
    STRIPS = SHOT_NORM_STEPS, /* list, slid, squeezed, after gain and bias */
    WIDE = 396,               /* of the strips */
    LABEL = 28,
    NUMBER = 62,
    HEAD = 24,
    GAP = 14,
    RIGHT = 322, /* of the grid */
    AXIS = 34
};

typedef struct layout {
    tb_scene *s;
    const shot_norm_panel *p;
    const shot_norm_of *n;
    tb_axis axis;
    double row;
    bool numbers;
    double times[STRIPS]; /* a strip is drawn so much larger than the axis */
} layout;

/* --- strips --------------------------------------------------------------- */

/* Rounding leaves 1e-17 where a mean is 0, more where z is far from it. */
static double clean(const shot_norm_of *n, double v)
{
    double most = 1;
    for (size_t i = 0; i < n->d; i++)
        most = tb_max2(most, tb_fabs(n->z[i]));
    return tb_fabs(v) < 1e-14 * most ? 0 : v;
}

/* Which list a strip shows, and from which step on. */
static const double *list_of(const shot_norm_of *n, size_t k)
{
    const double *lists[STRIPS] = {n->z, n->slid, n->hat, n->out};
    return lists[k];
}

static bool reached(const layout *l, size_t k)
{
    return l->p->step >= k;
}

static const char *head_of(const shot_norm_of *n, size_t k)
{
    static const char *const centred[] = {
        "1  the list z", "2  slide: z \xE2\x88\x92 \xCE\xBC",
        ("3  squeeze: (z \xE2\x88\x92 \xCE\xBC) / \xE2\x88\x9A(\xCF\x83"
         "\xC2\xB2 + \xCE\xB5)"),
        "4  \xCE\xB3 \xE2\x8A\x99 stretches, + \xCE\xB2 shifts"};
    static const char *const rms[] = {
        "1  the list z", "2  no slide: RMSNorm keeps the mean",
        "3  squeeze: z / \xE2\x88\x9A(mean z\xC2\xB2 + \xCE\xB5)",
        "4  \xCE\xB3 \xE2\x8A\x99 stretches"};
    return n->centred ? centred[k] : rms[k];
}

static double px(const layout *l, size_t k, double v)
{
    return tb_axis_px(&l->axis, v * l->times[k]);
}

/* Band and line of the strip's own mean and spread. */
static void spread(layout *l, size_t k, double top, double high)
{
    const double *v = list_of(l->n, k);
    double mean = shot_mean(v, l->n->d), std = shot_std(v, l->n->d);
    char a[TB_SHOW_CHARS], b[TB_SHOW_CHARS];
    tb_arena *arena = &l->s->arena;
    tb_style band = {.role = "sigma-band",
                     .id = tb_arena_printf(arena, "band-%zu", k + 1),
                     .title = "mean \xC2\xB1 spread",
                     .fill = TB_TONE_TOLL_SOFT};
    tb_style line = {.role = "mu-line",
                     .id = tb_arena_printf(arena, "mu-%zu", k + 1),
                     .title = "the mean",
                     .stroke = TB_TONE_TOLL,
                     .line = 2,
                     .dash = TB_DASHED};
    tb_style text = {
        .role = "label", .fill = TB_TONE_TOLL, .size = 12, .anchor = TB_END};
    tb_scene_rect(l->s, px(l, k, mean - std), top,
                  px(l, k, mean + std) - px(l, k, mean - std), high, &band);
    tb_scene_line(l->s, px(l, k, mean), top, px(l, k, mean), top + high, &line);
    tb_scene_text(l->s, MARGIN + WIDE, top - 8,
                  tb_arena_printf(arena, "mean %s, spread %s",
                                  tb_show_number(clean(l->n, mean), a),
                                  tb_show_number(std, b)),
                  &text);
}

static void bar(layout *l, size_t k, size_t i, double y)
{
    static const tb_tone tones[STRIPS] = {TB_TONE_IN, TB_TONE_TOLL,
                                          TB_TONE_LANE, TB_TONE_LANE};
    char text[TB_SHOW_CHARS];
    double v = list_of(l->n, k)[i], x0 = px(l, k, 0), x1 = px(l, k, v);
    tb_arena *a = &l->s->arena;
    const char *name = tb_subscript(a, "z", i + 1);
    tb_show_number(k ? clean(l->n, v) : v, text);
    tb_style st = {.role = "bar",
                   .id = tb_arena_printf(a, "bar-%zu-%zu", k + 1, i + 1),
                   .title =
                       tb_arena_printf(a, "%s: %s", name ? name : "z", text),
                   .fill = tones[k],
                   .alpha = k == 3 ? 0.5 : 0};
    tb_style label = {.role = "label", .fill = TB_TONE_MUTED, .size = 12};
    tb_scene_rect(l->s, tb_min2(x0, x1), y + 2, tb_fabs(x1 - x0), l->row - 4,
                  &st);
    if (!l->numbers)
        return;
    tb_scene_text(l->s, MARGIN, y + l->row / 2 + 4, name, &label);
    label.anchor = TB_END;
    label.fill = TB_TONE_INK;
    tb_scene_text(l->s, MARGIN + WIDE, y + l->row / 2 + 4, text, &label);
}

/* At the far end of the axis, which a strip that is drawn larger does not
 * reach. */
static void times(layout *l, size_t k, double top)
{
    bool right = l->axis.hi >= -l->axis.lo;
    tb_style st = {.role = "label",
                   .fill = TB_TONE_MUTED,
                   .size = 12,
                   .anchor = right ? TB_END : TB_START};
    if (l->times[k] > 1)
        tb_scene_text(
            l->s, right ? l->axis.p_hi : l->axis.p_lo, top + 14,
            tb_arena_printf(&l->s->arena, "drawn \xC3\x97%g", l->times[k]),
            &st);
}

static void strip(layout *l, size_t k, double y)
{
    double high = l->row * (double)l->n->d, top = y + HEAD;
    bool on = reached(l, k);
    tb_style head = {.role = "label",
                     .fill = on ? TB_TONE_INK : TB_TONE_MUTED,
                     .size = 12,
                     .bold = on && (l->p->step == k || (k == 3 && on))};
    tb_style frame = {.role = "card",
                      .id = tb_arena_printf(&l->s->arena, "strip-%zu", k + 1),
                      .stroke = TB_TONE_GRID,
                      .line = 1,
                      .dash = on ? TB_SOLID : TB_DASHED};
    tb_style zero = {.role = "axis", .stroke = TB_TONE_MUTED, .line = 1};
    double left = MARGIN + LABEL, right = MARGIN + WIDE - NUMBER;
    tb_scene_text(l->s, MARGIN, top - 8, head_of(l->n, k), &head);
    tb_scene_rect(l->s, left, top, right - left, high, &frame);
    if (!on)
        return;
    spread(l, k, top, high);
    for (size_t i = 0; i < l->n->d; i++)
        bar(l, k, i, top + l->row * (double)i);
    tb_scene_line(l->s, px(l, k, 0), top, px(l, k, 0), top + high, &zero);
    times(l, k, top);
}

/* Least and largest of a strip's bars and band, and zero. */
static void extent(const layout *l, size_t k, double *lo, double *hi)
{
    const double *v = list_of(l->n, k);
    double mean = shot_mean(v, l->n->d), std = shot_std(v, l->n->d);
    *lo = clean(l->n, tb_min2(0, mean - std));
    *hi = clean(l->n, tb_max2(0, mean + std));
    for (size_t i = 0; i < l->n->d; i++) {
        *lo = tb_min2(*lo, clean(l->n, v[i]));
        *hi = tb_max2(*hi, clean(l->n, v[i]));
    }
}

/* One axis for all, with room on either side of 0 that is used; a strip that
 * would vanish on it is drawn larger by a power of ten, and says so. */
static void fit_axis(layout *l)
{
    double lo[STRIPS], hi[STRIPS], least = 0, most = 0;
    for (size_t k = 0; k < STRIPS; k++) {
        extent(l, k, &lo[k], &hi[k]);
        least = tb_min2(least, lo[k]);
        most = tb_max2(most, hi[k]);
    }
    least = least < 0 ? tb_min2(least, -most / 5) : 0;
    most = most > 0 ? tb_max2(most, -least / 5) : least < 0 ? 0 : 1;
    tb_axis_fit(&l->axis, false, least, most, false);
    l->axis.p_lo = MARGIN + LABEL + 4;
    l->axis.p_hi = MARGIN + WIDE - NUMBER - 4;
    for (size_t k = 0; k < STRIPS; k++) {
        double by = 1, wide = hi[k] - lo[k];
        while (wide > 0 && wide * by < (most - least) / 20 &&
               hi[k] * by * 10 <= most && lo[k] * by * 10 >= least)
            by *= 10;
        l->times[k] = by;
    }
}

static double ticks(layout *l, double y)
{
    tb_style mark = {.role = "axis", .stroke = TB_TONE_MUTED, .line = 1};
    tb_style text = {.fill = TB_TONE_MUTED, .size = 12, .anchor = TB_MIDDLE};
    for (size_t i = 0; i < l->axis.n_ticks; i++) {
        char label[TB_SHOW_CHARS];
        double x = tb_axis_unit_px(&l->axis, l->axis.tick[i]);
        tb_scene_line(l->s, x, y - GAP + 2, x, y - GAP + 7, &mark);
        tb_plot_label(l->s, x, y + 8, tb_axis_label(&l->axis, i, label), &text);
    }
    return y + 16;
}

static double strips(layout *l, double y)
{
    l->numbers = l->n->d <= 8;
    l->row = l->numbers ? 14 : 9;
    fit_axis(l);
    for (size_t k = 0; k < STRIPS; k++) {
        strip(l, k, y);
        y += HEAD + l->row * (double)l->n->d + GAP;
    }
    return ticks(l, y);
}

/* --- J -------------------------------------------------------------------- */

static tb_heat heat_of(const shot_norm_of *n)
{
    return (tb_heat){.title = n->centred ? "J of LayerNorm" : "J of RMSNorm",
                     .rows = n->d,
                     .columns = n->d,
                     .values = n->jacobian,
                     .row_label = "output i",
                     .column_label = "input j",
                     .decimals = 2,
                     .outline_diagonal = true};
}

/* Cells have two decimals: a small J is shown times a power of ten. */
static void enlarge(layout *l, tb_heat *heat)
{
    size_t count = l->n->d * l->n->d;
    double most = 0, by = 1;
    double *v = tb_arena_alloc(&l->s->arena, count * sizeof *v);
    for (size_t i = 0; i < count; i++)
        most = tb_max2(most, tb_fabs(heat->values[i]));
    while (most > 1e-300 && most * by < 0.095)
        by *= 10;
    if (by == 1 || !v)
        return;
    for (size_t i = 0; i < count; i++)
        v[i] = heat->values[i] * by;
    heat->values = v;
    heat->title = tb_arena_printf(&l->s->arena, "%g times %s", by, heat->title);
}

static double grid(layout *l, double x, double y)
{
    tb_heat heat = heat_of(l->n);
    enlarge(l, &heat);
    tb_heat_view v;
    tb_style bold = {.role = "label", .size = 14, .bold = true};
    double w, h;
    if (tb_heat_view_init(&v, &l->s->arena, &heat, 4500, 4500) != TB_OK) {
        tb_scene_fail(l->s, TB_ERR_MEMORY);
        return y;
    }
    tb_scene_text(l->s, x, y + HEAD - 8, heat.title, &bold);
    tb_heat_size(&v, RIGHT, &w, &h);
    tb_heat_draw(l->s, &v, (tb_box){x, y + HEAD, RIGHT, h});
    return tb_heat_legend(l->s, &v, x, y + HEAD + h + 4, RIGHT) + 8;
}

static double singular(layout *l, double x, double y)
{
    stage_bars b = {.title = "How much J passes on, by direction",
                    .id = "gain",
                    .letter = "g",
                    .d = l->n->d,
                    .v = l->n->singular,
                    .tone = TB_TONE_TOLL,
                    .hi = tb_max2(l->n->singular[0], 1e-300),
                    .x = x,
                    .top = y + HEAD,
                    .w = RIGHT};
    stage_bars_draw(l->s, &b);
    return y + HEAD + stage_row_height(l->n->d) * (double)l->n->d + 8;
}

/* --- faces ---------------------------------------------------------------- */

static tb_status norm_scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    const shot_norm_panel *p = data;
    layout l = {.p = p, .n = p->norm};
    *out = NULL;
    TB_TRY(tb_scene_create(ctx, 760, 300, p->title, p->desc, &l.s));
    double left = strips(&l, 4), x = MARGIN + WIDE + 14;
    double right = singular(&l, x, grid(&l, x, 4) + 10);
    tb_scene_resize(l.s, x + RIGHT + MARGIN, tb_max2(left, right));
    return tb_scene_done(l.s, out);
}

static shot_columns columns_of(const shot_norm_of *n)
{
    shot_columns c = {.caption = "a norm, step by step", .d = n->d};
    shot_columns_add(&c, "z", n->z);
    shot_columns_add(&c, n->centred ? "z \xE2\x88\x92 \xCE\xBC" : "no slide",
                     n->slid);
    shot_columns_add(&c, "squeezed", n->hat);
    shot_columns_add(&c,
                     n->centred ? "\xCE\xB3\xE2\x8A\x99 + \xCE\xB2"
                                : "\xCE\xB3\xE2\x8A\x99",
                     n->out);
    return c;
}

/* "mean: 5, then 0, then 0" */
static void line_of(tb_arena *a, const char *name, const shot_columns *c,
                    const shot_norm_of *n, double (*of)(const double *, size_t),
                    const tb_terminal *term, tb_buf *b)
{
    const char *line = tb_arena_printf(a, "%s:", name);
    for (size_t k = 0; k < c->n && line; k++) {
        char text[TB_SHOW_CHARS];
        double v = of(c->lists[k], c->d);
        line = tb_arena_printf(a, "%s%s %s", line, k ? ", then" : "",
                               tb_show_number(clean(n, v), text));
    }
    if (line)
        tb_term_wrap(b, term, 2, line);
    else
        b->failed = true;
}

static tb_status norm_term(tb_ctx *ctx, const void *data,
                           const tb_terminal *term, tb_out *out)
{
    const shot_norm_panel *p = data;
    shot_columns c = columns_of(p->norm), gains = {.d = p->norm->d};
    tb_heat heat = heat_of(p->norm);
    c.n = p->step + 1 < c.n ? p->step + 1 : c.n;
    shot_columns_term(&c, term, out);
    tb_buf_putc(&out->buf, '\n');
    tb_arena a;
    tb_arena_init(&a, ctx);
    line_of(&a, "mean", &c, p->norm, shot_mean, term, &out->buf);
    line_of(&a, "spread", &c, p->norm, shot_std, term, &out->buf);
    tb_arena_clear(&a);
    tb_buf_putc(&out->buf, '\n');
    TB_TRY(tb_heat_term(ctx, &heat, term, out));
    tb_buf_putc(&out->buf, '\n');
    tb_term_wrap(&out->buf, term, 2, "How much J passes on, by direction:");
    shot_columns_add(&gains, "gain", p->norm->singular);
    shot_columns_term(&gains, term, out);
    return tb_buf_status(&out->buf);
}

static tb_status norm_html(tb_ctx *ctx, const void *data, tb_out *out)
{
    const shot_norm_panel *p = data;
    const shot_columns c = columns_of(p->norm);
    tb_heat heat = heat_of(p->norm);
    TB_TRY(shot_columns_html(ctx, &c, out));
    return tb_heat_table_html(ctx, &heat, out);
}

static void norm_json(const void *data, tb_json *j)
{
    const shot_norm_panel *p = data;
    const shot_norm_of *n = p->norm;
    tb_json_string(j, "title", p->title);
    tb_json_tensor(j, "z", TB_F64, n->z, 1, &n->d);
    tb_json_tensor(j, "slid", TB_F64, n->slid, 1, &n->d);
    tb_json_tensor(j, "squeezed", TB_F64, n->hat, 1, &n->d);
    tb_json_tensor(j, "out", TB_F64, n->out, 1, &n->d);
    tb_json_tensor(j, "jacobian", TB_F64, n->jacobian, 2,
                   (size_t[]){n->d, n->d});
    tb_json_tensor(j, "singular", TB_F64, n->singular, 1, &n->d);
}

const shot_face shot_norm_face = {"norm", norm_scene, norm_term, norm_html,
                                  norm_json};
