/* SPDX-License-Identifier: MIT */
/* The scene: a list of items in drawing order. Every figure fills one; the
 * back ends only read it. */
#include "pictures/scene.h"

tb_status tb_scene_create(tb_ctx *ctx, double w, double h, const char *title,
                          const char *desc, tb_scene **out)
{
    *out = NULL;
    if (!title || !*title || !desc || !*desc)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "picture: a title and a description are needed");
    if (!(w > 0 && w < 1e6 && h > 0 && h < 1e6))
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "picture: size %gx%g, wanted 0 < size < 1e6 px", w, h);
    tb_scene *s = tb_alloc(ctx, 1, sizeof *s);
    if (!s)
        return TB_ERR_MEMORY;
    s->ctx = ctx;
    s->w = w;
    s->h = h;
    tb_arena_init(&s->arena, ctx);
    s->title = tb_arena_strdup(&s->arena, title);
    s->desc = tb_arena_strdup(&s->arena, desc);
    if (!s->title || !s->desc) {
        tb_scene_destroy(s);
        return TB_ERR_MEMORY;
    }
    *out = s;
    return TB_OK;
}

void tb_scene_destroy(tb_scene *s)
{
    if (!s)
        return;
    tb_free(s->ctx, s->items);
    tb_arena_clear(&s->arena);
    tb_free(s->ctx, s);
}

tb_status tb_scene_status(const tb_scene *s)
{
    return s->status;
}

double tb_scene_width(const tb_scene *s)
{
    return s->w;
}

double tb_scene_height(const tb_scene *s)
{
    return s->h;
}

void tb_scene_fail(tb_scene *s, tb_status status)
{
    if (s->status == TB_OK)
        s->status = status;
}

void tb_scene_resize(tb_scene *s, double w, double h)
{
    if (!(w > 0 && w < 1e6 && h > 0 && h < 1e6)) {
        tb_scene_fail(s, TB_FAIL(s->ctx, TB_ERR_ARG,
                                 "picture: size %gx%g, wanted 0 < size < 1e6 "
                                 "px",
                                 w, h));
        return;
    }
    s->w = w;
    s->h = h;
}

static const char *keep(tb_scene *s, const char *text)
{
    if (!text)
        return NULL;
    const char *copy = tb_arena_strdup(&s->arena, text);
    if (!copy)
        tb_scene_fail(s, TB_ERR_MEMORY);
    return copy;
}

void tb_scene_describe(tb_scene *s, const char *desc)
{
    const char *copy = keep(s, desc);
    if (copy && *copy)
        s->desc = copy;
}

/* --- adding ------------------------------------------------------------- */

static bool grow(tb_scene *s)
{
    if (s->count < s->cap)
        return true;
    size_t cap = s->cap ? s->cap * 2 : 64;
    tb_item *items = tb_realloc(s->ctx, s->items, s->cap * sizeof *items,
                                cap * sizeof *items);
    if (!items)
        return false;
    s->items = items;
    s->cap = cap;
    return true;
}

/* A new item with its own copy of the style; NULL once the scene failed. */
static tb_item *add(tb_scene *s, tb_item_kind kind, const tb_style *st)
{
    if (s->status == TB_OK && !grow(s))
        tb_scene_fail(s, TB_ERR_MEMORY);
    if (s->status != TB_OK)
        return NULL;
    tb_item *it = &s->items[s->count];
    *it = (tb_item){.kind = kind};
    if (st)
        it->style = *st;
    it->style.role = keep(s, it->style.role);
    it->style.id = keep(s, it->style.id);
    it->style.title = keep(s, it->style.title);
    if (s->status != TB_OK)
        return NULL;
    s->count++;
    return it;
}

static bool all_finite(tb_scene *s, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!tb_isfinite(v[i])) {
            tb_scene_fail(s, TB_FAIL(s->ctx, TB_ERR_NONFINITE,
                                     "picture: coordinate %g, wanted a number",
                                     v[i]));
            return false;
        }
    return true;
}

void tb_scene_rect(tb_scene *s, double x, double y, double w, double h,
                   const tb_style *st)
{
    if (!all_finite(s, (double[]){x, y, w, h}, 4))
        return;
    tb_item *it = add(s, TB_ITEM_RECT, st);
    if (!it)
        return;
    it->x = x;
    it->y = y;
    it->w = w;
    it->h = h;
}

void tb_scene_path(tb_scene *s, const double *xy, size_t n, bool closed,
                   const tb_style *st)
{
    if (n == 0 || !all_finite(s, xy, 2 * n))
        return;
    tb_item *it = add(s, TB_ITEM_PATH, st);
    if (!it)
        return;
    double *copy = tb_arena_alloc(&s->arena, 2 * n * sizeof *copy);
    if (!copy) {
        s->count--;
        tb_scene_fail(s, TB_ERR_MEMORY);
        return;
    }
    memcpy(copy, xy, 2 * n * sizeof *copy);
    it->xy = copy;
    it->n = n;
    it->closed = closed;
}

void tb_scene_line(tb_scene *s, double x1, double y1, double x2, double y2,
                   const tb_style *st)
{
    tb_scene_path(s, (double[]){x1, y1, x2, y2}, 2, false, st);
}

void tb_scene_circle(tb_scene *s, double cx, double cy, double r,
                     const tb_style *st)
{
    if (!all_finite(s, (double[]){cx, cy, r}, 3))
        return;
    tb_item *it = add(s, TB_ITEM_CIRCLE, st);
    if (!it)
        return;
    it->x = cx;
    it->y = cy;
    it->w = r;
}

void tb_scene_text(tb_scene *s, double x, double y, const char *text,
                   const tb_style *st)
{
    if (!text || !*text || !all_finite(s, (double[]){x, y}, 2))
        return;
    tb_item *it = add(s, TB_ITEM_TEXT, st);
    if (!it)
        return;
    it->x = x;
    it->y = y;
    it->text = keep(s, text);
    if (!it->text)
        s->count--;
    else if (it->style.fill == TB_TONE_NONE)
        it->style.fill = TB_TONE_INK;
}

void tb_scene_group(tb_scene *s, const tb_style *st)
{
    if (add(s, TB_ITEM_GROUP, st))
        s->depth++;
}

void tb_scene_end(tb_scene *s)
{
    if (s->depth && add(s, TB_ITEM_END, NULL))
        s->depth--;
}

/* The head is a triangle wider than the stroke (at least 8 px); the shaft
 * ends at its base so that wide arrows keep a sharp tip. */
void tb_scene_arrow(tb_scene *s, const double *xy, size_t n, const tb_style *st)
{
    if (n < 2 || !all_finite(s, xy, 2 * n))
        return;
    double line = st && st->line > 0 ? st->line : TB_LINE_WIDTH;
    double half = tb_max2(4, line + 2), head = tb_max2(8, 1.6 * line + 1);
    double tx = xy[2 * n - 2], ty = xy[2 * n - 1];
    double dx = tx - xy[2 * n - 4], dy = ty - xy[2 * n - 3];
    double length = tb_sqrt(dx * dx + dy * dy);
    if (length <= 0)
        return;
    dx /= length;
    dy /= length;
    double *shaft = tb_arena_alloc(&s->arena, 2 * n * sizeof *shaft);
    if (!shaft) {
        tb_scene_fail(s, TB_ERR_MEMORY);
        return;
    }
    memcpy(shaft, xy, 2 * n * sizeof *shaft);
    double bx = tx - dx * tb_min2(head, length);
    double by = ty - dy * tb_min2(head, length);
    shaft[2 * n - 2] = bx;
    shaft[2 * n - 1] = by;
    tb_scene_path(s, shaft, n, false, st);
    tb_style tip = {.fill = st ? st->stroke : TB_TONE_INK};
    tb_scene_path(s,
                  (double[]){tx, ty, bx - dy * half, by + dx * half,
                             bx + dy * half, by - dx * half},
                  3, true, &tip);
}

static void move(tb_scene *s, tb_item *it, double dx, double dy)
{
    double *xy = NULL;
    it->x += dx;
    it->y += dy;
    if (it->n)
        xy = tb_arena_alloc(&s->arena, 2 * it->n * sizeof *xy);
    if (it->n && !xy) {
        tb_scene_fail(s, TB_ERR_MEMORY);
        return;
    }
    for (size_t k = 0; k < it->n; k++) {
        xy[2 * k] = it->xy[2 * k] + dx;
        xy[2 * k + 1] = it->xy[2 * k + 1] + dy;
    }
    it->xy = xy;
}

void tb_scene_place(tb_scene *s, const tb_scene *part, const char *prefix,
                    double dx, double dy)
{
    if (part->status != TB_OK)
        tb_scene_fail(s, part->status);
    for (size_t i = 0; i < part->count && s->status == TB_OK; i++) {
        const tb_item *from = &part->items[i];
        tb_style style = from->style;
        if (prefix && style.id)
            style.id = tb_arena_printf(&s->arena, "%s-%s", prefix, style.id);
        tb_item *it = add(s, from->kind, &style);
        if (!it)
            return;
        style = it->style;
        *it = *from;
        it->style = style;
        it->text = keep(s, from->text);
        move(s, it, dx, dy);
    }
    for (size_t i = 0; i < part->depth; i++) /* groups it left open */
        if (!add(s, TB_ITEM_END, NULL))
            return;
}

/* --- for the back ends -------------------------------------------------- */

size_t tb_dash_lengths(tb_dash dash, double line, double length[4])
{
    static const double pattern[][4] = {[TB_SOLID] = {0},
                                        [TB_DASHED] = {5, 3.5},
                                        [TB_DOTTED] = {1.4, 2.8},
                                        [TB_DASH_DOT] = {6, 3, 1.4, 3}};
    double unit = line < 1.5 ? 1.5 : line > 3 ? 3 : line;
    size_t n = 0;
    for (; n < 4 && pattern[dash][n] > 0; n++)
        length[n] = pattern[dash][n] * unit * 0.75;
    return n;
}

void tb_towards(const double *a, const double *b, double r, double out[2])
{
    double dx = b[0] - a[0], dy = b[1] - a[1];
    double length = tb_sqrt(dx * dx + dy * dy);
    double t = length > 0 ? tb_min2(r / length, 0.5) : 0;
    out[0] = a[0] + dx * t;
    out[1] = a[1] + dy * t;
}

/* --- measuring ---------------------------------------------------------- */

tb_box tb_item_text_box(const tb_item *it)
{
    double size = it->style.size > 0 ? it->style.size : TB_FONT_SIZE;
    double w = tb_text_width(it->text, size, it->style.bold);
    if (it->style.mono)
        w = (double)tb_columns(it->text) * size * 0.62;
    double x = it->x;
    if (it->style.anchor == TB_MIDDLE)
        x -= w / 2;
    else if (it->style.anchor == TB_END)
        x -= w;
    return (tb_box){x, it->y - 0.78 * size, w, size};
}

bool tb_box_meets(tb_box a, tb_box b)
{
    return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h &&
           b.y < a.y + a.h;
}

double tb_scene_wrap(tb_scene *s, double x, double y, double width,
                     const char *text, const tb_style *st)
{
    double size = st && st->size > 0 ? st->size : TB_FONT_SIZE;
    bool bold = st && st->bold;
    while (text && *text) {
        size_t fits = 0, i = 0;
        for (;;) { /* one word further each time */
            size_t end = i;
            while (text[end] && text[end] != ' ')
                end++;
            const char *line = tb_arena_strndup(&s->arena, text, end);
            if (!line) {
                tb_scene_fail(s, TB_ERR_MEMORY);
                return y;
            }
            if (fits && tb_text_width(line, size, bold) > width)
                break;
            fits = end;
            if (!text[end])
                break;
            i = end + 1;
        }
        const char *line = tb_arena_strndup(&s->arena, text, fits);
        if (line)
            tb_scene_text(
                s, x, y, tb_shorten_px(&s->arena, line, width, size, bold), st);
        text += fits;
        while (*text == ' ')
            text++;
        y += 1.35 * size;
    }
    return y;
}
