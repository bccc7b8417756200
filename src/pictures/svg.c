/* SPDX-License-Identifier: MIT */
/* A scene as SVG: standalone file, or inline in a page that brings the
 * styles. Byte for byte the same everywhere. */
#include "pictures/scene.h"

typedef struct svg {
    const tb_scene *s;
    const char *prefix;
    tb_buf *b;
} svg;

static void attr_px(tb_buf *b, const char *name, double v)
{
    tb_buf_printf(b, " %s=\"", name);
    tb_px(b, v);
    tb_buf_putc(b, '"');
}

static void attr_text(tb_buf *b, const char *name, const char *prefix,
                      const char *v)
{
    if (!v)
        return;
    tb_buf_printf(b, " %s=\"", name);
    if (prefix) {
        tb_xml_text(b, prefix);
        tb_buf_putc(b, '-');
    }
    tb_xml_text(b, v);
    tb_buf_putc(b, '"');
}

/* --- attributes --------------------------------------------------------- */

static void dash_attr(tb_buf *b, tb_dash dash, double line)
{
    double length[4];
    size_t n = tb_dash_lengths(dash, line, length);
    if (n == 0)
        return;
    tb_buf_puts(b, " stroke-dasharray=\"");
    for (size_t i = 0; i < n; i++) {
        if (i)
            tb_buf_putc(b, ' ');
        tb_px(b, length[i]);
    }
    tb_buf_putc(b, '"');
}

static void common(const svg *g, const tb_item *it)
{
    const tb_style *st = &it->style;
    attr_text(g->b, "id", g->prefix, st->id);
    attr_text(g->b, "data-role", NULL, st->role);
    if (st->alpha > 0 && st->alpha < 1)
        attr_px(g->b, "opacity", st->alpha);
}

static void paint(const svg *g, const tb_item *it)
{
    const tb_style *st = &it->style;
    tb_buf_printf(g->b, " class=\"f-%s", tb_tone_at(st->fill)->name);
    if (st->stroke != TB_TONE_NONE)
        tb_buf_printf(g->b, " s-%s", tb_tone_at(st->stroke)->name);
    tb_buf_putc(g->b, '"');
    if (st->stroke == TB_TONE_NONE)
        return;
    double line = st->line > 0 ? st->line : TB_LINE_WIDTH;
    attr_px(g->b, "stroke-width", line);
    dash_attr(g->b, st->dash, line);
}

/* "/>", or the title as a child. */
static void close_tag(const svg *g, const tb_item *it, const char *tag)
{
    if (!it->style.title) {
        tb_buf_puts(g->b, "/>\n");
        return;
    }
    tb_buf_puts(g->b, "><title>");
    tb_xml_text(g->b, it->style.title);
    tb_buf_printf(g->b, "</title></%s>\n", tag);
}

/* --- items -------------------------------------------------------------- */

static void put_rect(const svg *g, const tb_item *it)
{
    tb_buf_puts(g->b, "<rect");
    attr_px(g->b, "x", it->x);
    attr_px(g->b, "y", it->y);
    attr_px(g->b, "width", it->w);
    attr_px(g->b, "height", it->h);
    if (it->style.round > 0)
        attr_px(g->b, "rx", it->style.round);
    common(g, it);
    paint(g, it);
    close_tag(g, it, "rect");
}

static void put_circle(const svg *g, const tb_item *it)
{
    tb_buf_puts(g->b, "<circle");
    attr_px(g->b, "cx", it->x);
    attr_px(g->b, "cy", it->y);
    attr_px(g->b, "r", it->w);
    common(g, it);
    paint(g, it);
    close_tag(g, it, "circle");
}

static void point(tb_buf *b, char command, double x, double y)
{
    tb_buf_putc(b, command);
    tb_px(b, x);
    tb_buf_putc(b, ' ');
    tb_px(b, y);
}

enum { LONG_LINE = 64 }; /* points */

/* A curve with a point for every value: tenths of a pixel, each from the one
 * before, half the bytes. Differences of rounded places add up to places. */
static void put_long(tb_buf *b, const tb_item *it)
{
    double x = tb_floor(it->xy[0] * 10 + 0.5);
    double y = tb_floor(it->xy[1] * 10 + 0.5);
    point(b, 'M', x / 10, y / 10);
    for (size_t i = 1; i < it->n; i++) {
        double to_x = tb_floor(it->xy[2 * i] * 10 + 0.5);
        double to_y = tb_floor(it->xy[2 * i + 1] * 10 + 0.5);
        tb_buf_putc(b, i == 1 ? 'l' : ' ');
        tb_px(b, (to_x - x) / 10);
        if (to_y >= y) /* else the sign stands between them */
            tb_buf_putc(b, ' ');
        tb_px(b, (to_y - y) / 10);
        x = to_x;
        y = to_y;
    }
}

static void put_points(tb_buf *b, const tb_item *it)
{
    double r = it->style.round;
    point(b, 'M', it->xy[0], it->xy[1]);
    for (size_t i = 1; i < it->n; i++) {
        const double *p = it->xy + 2 * i;
        if (r > 0 && i + 1 < it->n) {
            double from[2], to[2];
            tb_towards(p, p - 2, r, from);
            tb_towards(p, p + 2, r, to);
            point(b, 'L', from[0], from[1]);
            point(b, 'Q', p[0], p[1]);
            point(b, ' ', to[0], to[1]);
        } else {
            point(b, 'L', p[0], p[1]);
        }
    }
}

static void put_path(const svg *g, const tb_item *it)
{
    tb_buf *b = g->b;
    tb_buf_puts(b, "<path d=\"");
    if (it->n > LONG_LINE && !(it->style.round > 0))
        put_long(b, it);
    else
        put_points(b, it);
    tb_buf_puts(b, it->closed ? "Z\"" : "\"");
    if (!it->closed && it->n > 2)
        tb_buf_puts(b, " stroke-linejoin=\"round\"");
    common(g, it);
    paint(g, it);
    close_tag(g, it, "path");
}

static void put_text(const svg *g, const tb_item *it)
{
    static const char *const anchors[] = {NULL, "middle", "end"};
    const tb_style *st = &it->style;
    tb_buf *b = g->b;
    tb_buf_puts(b, "<text");
    attr_px(b, "x", it->x);
    attr_px(b, "y", it->y);
    if (st->size > 0)
        attr_px(b, "font-size", st->size);
    attr_text(b, "text-anchor", NULL, anchors[st->anchor]);
    if (st->bold)
        tb_buf_puts(b, " font-weight=\"600\"");
    if (st->italic)
        tb_buf_puts(b, " font-style=\"italic\"");
    if (st->mono)
        tb_buf_puts(b, " font-family=\"ui-monospace, monospace\"");
    common(g, it);
    paint(g, it);
    tb_buf_putc(b, '>');
    if (st->title) {
        tb_buf_puts(b, "<title>");
        tb_xml_text(b, st->title);
        tb_buf_puts(b, "</title>");
    }
    tb_xml_text(b, it->text);
    tb_buf_puts(b, "</text>\n");
}

static void put_group(const svg *g, const tb_item *it)
{
    tb_buf_puts(g->b, "<g");
    common(g, it);
    tb_buf_putc(g->b, '>');
    if (it->style.title) {
        tb_buf_puts(g->b, "<title>");
        tb_xml_text(g->b, it->style.title);
        tb_buf_puts(g->b, "</title>");
    }
    tb_buf_putc(g->b, '\n');
}

static void put_end(const svg *g, const tb_item *it)
{
    (void)it;
    tb_buf_puts(g->b, "</g>\n");
}

static void put_items(const svg *g)
{
    static void (*const put[])(const svg *, const tb_item *) = {
        [TB_ITEM_RECT] = put_rect,     [TB_ITEM_PATH] = put_path,
        [TB_ITEM_CIRCLE] = put_circle, [TB_ITEM_TEXT] = put_text,
        [TB_ITEM_GROUP] = put_group,   [TB_ITEM_END] = put_end};
    for (size_t i = 0; i < g->s->count; i++)
        put[g->s->items[i].kind](g, &g->s->items[i]);
    for (size_t i = 0; i < g->s->depth; i++)
        put_end(g, NULL);
}

/* --- frame -------------------------------------------------------------- */

static uint64_t tones_used(const tb_scene *s)
{
    uint64_t used = 1u << TB_TONE_PAPER | 1u << TB_TONE_NONE;
    for (size_t i = 0; i < s->count; i++) {
        used |= (uint64_t)1 << s->items[i].style.fill;
        if (s->items[i].style.stroke != TB_TONE_NONE)
            used |= (uint64_t)1 << (32 + s->items[i].style.stroke);
    }
    return used;
}

/* On a sheet the view box is centred and as large as fits, as SVG does it. */
static void put_size(const svg *g, const tb_sheet *sheet)
{
    if (!sheet) {
        attr_px(g->b, "width", g->s->w);
        attr_px(g->b, "height", g->s->h);
        return;
    }
    bool turn =
        sheet->turn && (g->s->w > g->s->h) != (sheet->width > sheet->height);
    const double size[] = {turn ? sheet->height : sheet->width,
                           turn ? sheet->width : sheet->height};
    for (size_t i = 0; i < 2; i++) {
        tb_buf_puts(g->b, i ? " height=\"" : " width=\"");
        tb_px(g->b, size[i] * 25.4 / 72);
        tb_buf_puts(g->b, "mm\"");
    }
}

static void open_svg(const svg *g, bool in_html, const tb_sheet *sheet)
{
    tb_buf *b = g->b;
    tb_buf_puts(b, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    put_size(g, sheet);
    tb_buf_puts(b, " viewBox=\"0 0 ");
    tb_px(b, g->s->w);
    tb_buf_putc(b, ' ');
    tb_px(b, g->s->h);
    tb_buf_puts(b, "\" role=\"img\" aria-labelledby=\"");
    tb_xml_text(b, g->prefix);
    tb_buf_puts(b, "-title ");
    tb_xml_text(b, g->prefix);
    tb_buf_puts(b, "-desc\"");
    if (in_html)
        tb_buf_puts(b, " class=\"tb-figure\"");
    tb_buf_puts(b, " font-family=\"system-ui, -apple-system, 'Segoe UI', "
                   "Roboto, 'DejaVu Sans', sans-serif\" font-size=\"13\">\n");
    tb_buf_puts(b, "<title");
    attr_text(b, "id", g->prefix, "title");
    tb_buf_putc(b, '>');
    tb_xml_text(b, g->s->title);
    tb_buf_puts(b, "</title>\n<desc");
    attr_text(b, "id", g->prefix, "desc");
    tb_buf_putc(b, '>');
    tb_xml_text(b, g->s->desc);
    tb_buf_puts(b, "</desc>\n");
}

tb_status tb_scene_svg(const tb_scene *s, const tb_svg *opt, tb_out *out)
{
    static const tb_svg plain = {0};
    if (!opt)
        opt = &plain;
    TB_TRY(s->status);
    svg g = {s, opt->prefix ? opt->prefix : "fig", &out->buf};
    open_svg(&g, opt->in_html, opt->sheet);
    if (!opt->in_html) {
        tb_buf_puts(g.b, "<style>\n");
        tb_palette_css(g.b, opt->theme, "svg");
        tb_palette_classes(g.b, opt->theme, tones_used(s));
        tb_buf_puts(g.b, "</style>\n<rect width=\"100%\" height=\"100%\" "
                         "class=\"f-paper\"/>\n");
    }
    put_items(&g);
    tb_buf_puts(g.b, "</svg>\n");
    return tb_buf_status(g.b);
}
