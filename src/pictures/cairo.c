/* SPDX-License-Identifier: MIT */
/* A scene as PNG and PDF by cairo, which is opened when a picture is first
 * wanted: a program that never draws one does without it. */
#include <dlfcn.h>

#include "base/platform.h"
#include "pictures/scene.h"

/* Its C interface: handles are pointers, enumerators int, 0 is success. */
typedef void *handle;
typedef int (*write_fn)(void *to, const unsigned char *data, unsigned n);
typedef struct extents {
    double x_bearing, y_bearing, width, height, x_advance, y_advance;
} extents;

enum { STATUS_WRITE_ERROR = 11, STATUS_NO_MEMORY = 1, FORMAT_RGB24 = 1 };
enum { JOIN_ROUND = 1, HINT_NONE = 1, ANTIALIAS_GRAY = 2 };
enum { PDF_TITLE = 0, PDF_SUBJECT = 2, PDF_CREATE_DATE = 5 };

/** Functions of the library, in the order of `names`. */
typedef struct functions {
    handle (*image_create)(int format, int w, int h);
    int (*write_png)(handle surface, write_fn write, void *to);
    handle (*pdf_create)(write_fn write, void *to, double w, double h);
    void (*pdf_metadata)(handle surface, int what, const char *text);
    int (*surface_status)(handle);
    void (*surface_finish)(handle);
    void (*surface_destroy)(handle);
    const char *(*status_text)(int status);
    handle (*create)(handle surface);
    void (*destroy)(handle);
    int (*status)(handle);
    void (*push_group)(handle);
    void (*pop_group)(handle);
    void (*paint)(handle);
    void (*paint_alpha)(handle, double alpha);
    void (*scale)(handle, double x, double y);
    void (*translate)(handle, double x, double y);
    void (*rgb)(handle, double r, double g, double b);
    void (*line_width)(handle, double w);
    void (*line_join)(handle, int join);
    void (*dash)(handle, const double *lengths, int n, double start);
    void (*new_path)(handle);
    void (*move_to)(handle, double x, double y);
    void (*line_to)(handle, double x, double y);
    void (*curve_to)(handle, double x1, double y1, double x2, double y2,
                     double x3, double y3);
    void (*arc)(handle, double x, double y, double r, double from, double to);
    void (*rectangle)(handle, double x, double y, double w, double h);
    void (*close_path)(handle);
    void (*fill_preserve)(handle);
    void (*stroke)(handle);
    handle (*options_create)(void);
    void (*options_destroy)(handle);
    void (*hint_style)(handle options, int style);
    void (*hint_metrics)(handle options, int metrics);
    void (*antialias)(handle options, int antialias);
    void (*font_options)(handle, handle options);
    void (*font_face)(handle, const char *family, int slant, int weight);
    void (*font_size)(handle, double size);
    void (*text_extents)(handle, const char *text, extents *);
    void (*show_text)(handle, const char *text);
} functions;

static const char *const names[] = {
    "cairo_image_surface_create",
    "cairo_surface_write_to_png_stream",
    "cairo_pdf_surface_create_for_stream",
    "cairo_pdf_surface_set_metadata",
    "cairo_surface_status",
    "cairo_surface_finish",
    "cairo_surface_destroy",
    "cairo_status_to_string",
    "cairo_create",
    "cairo_destroy",
    "cairo_status",
    "cairo_push_group",
    "cairo_pop_group_to_source",
    "cairo_paint",
    "cairo_paint_with_alpha",
    "cairo_scale",
    "cairo_translate",
    "cairo_set_source_rgb",
    "cairo_set_line_width",
    "cairo_set_line_join",
    "cairo_set_dash",
    "cairo_new_path",
    "cairo_move_to",
    "cairo_line_to",
    "cairo_curve_to",
    "cairo_arc",
    "cairo_rectangle",
    "cairo_close_path",
    "cairo_fill_preserve",
    "cairo_stroke",
    "cairo_font_options_create",
    "cairo_font_options_destroy",
    "cairo_font_options_set_hint_style",
    "cairo_font_options_set_hint_metrics",
    "cairo_font_options_set_antialias",
    "cairo_set_font_options",
    "cairo_select_font_face",
    "cairo_set_font_size",
    "cairo_text_extents",
    "cairo_show_text",
};

_Static_assert(sizeof(functions) == TB_LEN(names) * sizeof(void *),
               "a name for each function");

/* The library stays open: its fonts outlive any picture. */
static tb_status load(tb_ctx *ctx, functions *f)
{
    const char *own = tb_platform_getenv("TB_CAIRO");
    const char *path = own && *own ? own : "libcairo.so.2";
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return TB_FAIL(ctx, TB_ERR_SYSTEM,
                       "PNG and PDF are drawn by cairo, and %s cannot be "
                       "opened: install libcairo2, or take SVG",
                       path);
    for (size_t i = 0; i < TB_LEN(names); i++) {
        void *symbol = dlsym(lib, names[i]);
        if (!symbol)
            return TB_FAIL(ctx, TB_ERR_SYSTEM,
                           "%s has no %s: wanted cairo 1.16 or newer, with "
                           "PNG and PDF",
                           path, names[i]);
        memcpy((char *)f + i * sizeof symbol, &symbol, sizeof symbol);
    }
    return TB_OK;
}

/* --- paint -------------------------------------------------------------- */

typedef struct brush {
    const functions *f;
    handle cr;
    const tb_scene *s;
    bool dark;
    tb_buf text;
} brush;

static double hex2(const char *s)
{
    int v = 0;
    for (int i = 0; i < 2; i++)
        v = 16 * v + (s[i] <= '9' ? s[i] - '0' : s[i] - 'A' + 10);
    return v / 255.0;
}

static void take_tone(const brush *b, tb_tone tone)
{
    const tb_tone_row *row = tb_tone_at(tone);
    const char *c = b->dark ? row->dark : row->light; /* #RRGGBB */
    b->f->rgb(b->cr, hex2(c + 1), hex2(c + 3), hex2(c + 5));
}

/* The path that is there: filled, then drawn round. */
static void paint(const brush *b, const tb_style *st)
{
    const functions *f = b->f;
    double length[4], line = st->line > 0 ? st->line : TB_LINE_WIDTH;
    if (st->fill != TB_TONE_NONE) {
        take_tone(b, st->fill);
        f->fill_preserve(b->cr);
    }
    if (st->stroke != TB_TONE_NONE) {
        take_tone(b, st->stroke);
        f->line_width(b->cr, line);
        f->dash(b->cr, length, (int)tb_dash_lengths(st->dash, line, length), 0);
        f->stroke(b->cr);
    }
    f->new_path(b->cr);
}

/* --- items -------------------------------------------------------------- */

#define PI 3.14159265358979323846

static void put_rect(brush *b, const tb_item *it)
{
    const functions *f = b->f;
    double x = it->x, y = it->y, w = it->w, h = it->h;
    double r = tb_min2(it->style.round, tb_min2(w, h) / 2);
    f->line_join(b->cr, 0);
    if (w <= 0 || h <= 0) /* as SVG: not drawn */
        return;
    if (r > 0) {
        f->arc(b->cr, x + w - r, y + r, r, -PI / 2, 0);
        f->arc(b->cr, x + w - r, y + h - r, r, 0, PI / 2);
        f->arc(b->cr, x + r, y + h - r, r, PI / 2, PI);
        f->arc(b->cr, x + r, y + r, r, PI, 1.5 * PI);
        f->close_path(b->cr);
    } else {
        f->rectangle(b->cr, x, y, w, h);
    }
    paint(b, &it->style);
}

static void put_circle(brush *b, const tb_item *it)
{
    if (it->w <= 0)
        return;
    b->f->arc(b->cr, it->x, it->y, it->w, 0, 2 * PI);
    b->f->close_path(b->cr);
    paint(b, &it->style);
}

/* From the point before p round the corner p: a parabola, as in SVG, whose
 * control point lies two thirds of the way. */
static void put_corner(const brush *b, const double *p, double r)
{
    double a[2], c[2];
    tb_towards(p, p - 2, r, a);
    tb_towards(p, p + 2, r, c);
    b->f->line_to(b->cr, a[0], a[1]);
    b->f->curve_to(b->cr, (a[0] + 2 * p[0]) / 3, (a[1] + 2 * p[1]) / 3,
                   (c[0] + 2 * p[0]) / 3, (c[1] + 2 * p[1]) / 3, c[0], c[1]);
}

static void put_path(brush *b, const tb_item *it)
{
    const functions *f = b->f;
    f->move_to(b->cr, it->xy[0], it->xy[1]);
    for (size_t i = 1; i < it->n; i++) {
        const double *p = it->xy + 2 * i;
        if (it->style.round > 0 && i + 1 < it->n)
            put_corner(b, p, it->style.round);
        else
            f->line_to(b->cr, p[0], p[1]);
    }
    if (it->closed)
        f->close_path(b->cr);
    f->line_join(b->cr, !it->closed && it->n > 2 ? JOIN_ROUND : 0);
    paint(b, &it->style);
}

/* What cairo takes for text: UTF-8 without control characters. */
static const char *clean(brush *b, const char *text)
{
    b->text.len = 0;
    while (*text) {
        bool space = *text == '\n' || *text == '\t';
        tb_glyph_put(&b->text, space ? ' ' : tb_glyph_next(&text));
        text += space;
    }
    return tb_buf_str(&b->text);
}

static void take_font(const brush *b, const tb_style *st)
{
    const char *family = st->mono ? "DejaVu Sans Mono" : "DejaVu Sans";
    b->f->font_face(b->cr, family, st->italic, st->bold);
    b->f->font_size(b->cr, st->size > 0 ? st->size : TB_FONT_SIZE);
}

static double text_width(brush *b, const tb_item *it)
{
    extents e = {0};
    take_font(b, &it->style);
    b->f->text_extents(b->cr, clean(b, it->text), &e);
    return e.x_advance;
}

/* A font wider than the estimate labels were placed by is taken smaller.
 * Returns the width. */
static double fit_text(brush *b, const tb_item *it)
{
    double size = it->style.size > 0 ? it->style.size : TB_FONT_SIZE;
    double takes = text_width(b, it);
    double room = tb_item_text_box(it).w + 1; /* a pixel meets nothing */
    if (!(takes > room))
        return takes;
    b->f->font_size(b->cr, size * room / takes);
    return room;
}

static void put_text(brush *b, const tb_item *it)
{
    static const double before[] = {
        [TB_START] = 0, [TB_MIDDLE] = 0.5, [TB_END] = 1};
    double width = fit_text(b, it); /* leaves the text in b->text */
    take_tone(b, it->style.fill);
    b->f->move_to(b->cr, it->x - before[it->style.anchor] * width, it->y);
    b->f->show_text(b->cr, tb_buf_str(&b->text));
    b->f->new_path(b->cr);
}

static bool is_faint(const tb_style *st)
{
    return st->alpha > 0 && st->alpha < 1;
}

static void begin(brush *b, const tb_style *st)
{
    if (is_faint(st))
        b->f->push_group(b->cr);
}

static void end(brush *b, const tb_style *st)
{
    if (!is_faint(st))
        return;
    b->f->pop_group(b->cr);
    b->f->paint_alpha(b->cr, st->alpha);
}

/* Item i, with all that a group holds; returns the item after it. */
static size_t put_item(brush *b, size_t i)
{
    static void (*const put[])(brush *, const tb_item *) = {
        [TB_ITEM_RECT] = put_rect,
        [TB_ITEM_PATH] = put_path,
        [TB_ITEM_CIRCLE] = put_circle,
        [TB_ITEM_TEXT] = put_text};
    const tb_item *it = &b->s->items[i++];
    begin(b, &it->style);
    if (it->kind == TB_ITEM_GROUP)
        while (i < b->s->count && b->s->items[i].kind != TB_ITEM_END)
            i = put_item(b, i);
    else
        put[it->kind](b, it);
    end(b, &it->style);
    return i + (it->kind == TB_ITEM_GROUP);
}

/* --- sheet -------------------------------------------------------------- */

/* Where the picture goes, in the sheet's units. */
typedef struct layout {
    double width, height; /* of the sheet */
    double x, y, scale;   /* of the picture */
} layout;

enum { MARGIN_SHARE = 25 }; /* of the sheet's shorter side */

/* How large the picture may become on a sheet, within its margins. */
static double fit(const tb_scene *s, double width, double height)
{
    double margin = tb_min2(width, height) / MARGIN_SHARE;
    return tb_min2((width - 2 * margin) / s->w, (height - 2 * margin) / s->h);
}

static void lay_on_sheet(const tb_scene *s, const tb_sheet *sheet, layout *l)
{
    double w = sheet->width, h = sheet->height;
    bool turned = sheet->turn && fit(s, h, w) > fit(s, w, h);
    l->width = turned ? h : w;
    l->height = turned ? w : h;
    l->scale = fit(s, l->width, l->height);
    if (sheet->scale > 0)
        l->scale *= sheet->scale;
    l->x = (l->width - l->scale * s->w) / 2;
    l->y = (l->height - l->scale * s->h) / 2;
}

/* `unit`: of the sheet for one px. */
static tb_status lay_out(const tb_scene *s, const tb_sheet *sheet, double unit,
                         layout *l)
{
    double scale = sheet->scale > 0 ? sheet->scale : 1;
    *l = (layout){.width = s->w * scale * unit,
                  .height = s->h * scale * unit,
                  .scale = scale * unit};
    if (!tb_isfinite(sheet->scale) || sheet->scale < 0)
        return TB_FAIL(s->ctx, TB_ERR_ARG,
                       "picture: scale %g, wanted a number above 0",
                       sheet->scale);
    if (sheet->width > 0 && sheet->height > 0)
        lay_on_sheet(s, sheet, l);
    else if (!(sheet->width == 0 && sheet->height == 0))
        return TB_FAIL(s->ctx, TB_ERR_ARG,
                       "picture: sheet of %g x %g, wanted two numbers above 0",
                       sheet->width, sheet->height);
    return TB_OK;
}

static tb_status check_status(const brush *b, int status)
{
    if (status == STATUS_NO_MEMORY || b->text.failed)
        return TB_ERR_MEMORY;
    if (status != 0)
        return TB_FAIL(b->s->ctx, TB_ERR_SYSTEM, "picture: cairo: %s",
                       b->f->status_text(status));
    return TB_OK;
}

/* Widths grow with the scale: glyphs are not fitted to pixels. */
static void plain_text(const brush *b)
{
    handle options = b->f->options_create();
    b->f->hint_style(options, HINT_NONE);
    b->f->hint_metrics(options, HINT_NONE);
    b->f->antialias(options, ANTIALIAS_GRAY);
    b->f->font_options(b->cr, options);
    b->f->options_destroy(options);
}

static tb_status draw(const functions *f, const tb_scene *s, bool dark,
                      const layout *l, handle surface)
{
    brush b = {.f = f, .cr = f->create(surface), .s = s, .dark = dark};
    tb_buf_init(&b.text, s->ctx);
    plain_text(&b);
    take_tone(&b, TB_TONE_PAPER);
    f->paint(b.cr);
    f->translate(b.cr, l->x, l->y);
    f->scale(b.cr, l->scale, l->scale);
    for (size_t i = 0; i < s->count;)
        i = put_item(&b, i);
    tb_status status = check_status(&b, f->status(b.cr));
    f->destroy(b.cr);
    tb_buf_clear(&b.text);
    return status;
}

static int append(void *to, const unsigned char *data, unsigned n)
{
    tb_buf *b = to;
    tb_buf_put(b, (const char *)data, n);
    return b->failed ? STATUS_WRITE_ERROR : 0;
}

/* --- the two ------------------------------------------------------------ */

enum { PNG_MOST = 32767 }; /* pixels a side, cairo's limit */

static tb_status write_png(const functions *f, const tb_scene *s, bool dark,
                           const layout *l, tb_buf *out)
{
    double w = tb_ceil(l->width - 1e-6), h = tb_ceil(l->height - 1e-6);
    if (!(w >= 1 && h >= 1 && w <= PNG_MOST && h <= PNG_MOST))
        return TB_FAIL(s->ctx, TB_ERR_ARG,
                       "picture: %g x %g pixels, wanted 1 to %d each way", w, h,
                       PNG_MOST);
    handle surface = f->image_create(FORMAT_RGB24, (int)w, (int)h);
    brush b = {.f = f, .s = s};
    tb_status status = check_status(&b, f->surface_status(surface));
    if (status == TB_OK)
        status = draw(f, s, dark, l, surface);
    if (status == TB_OK)
        status = check_status(&b, f->write_png(surface, append, out));
    f->surface_destroy(surface);
    return out->failed ? TB_ERR_MEMORY : status;
}

/* The date is left out: equal pictures are equal files. */
static tb_status write_pdf(const functions *f, const tb_scene *s, bool dark,
                           const layout *l, tb_buf *out)
{
    handle surface = f->pdf_create(append, out, l->width, l->height);
    brush b = {.f = f, .s = s};
    f->pdf_metadata(surface, PDF_TITLE, s->title);
    f->pdf_metadata(surface, PDF_SUBJECT, s->desc);
    f->pdf_metadata(surface, PDF_CREATE_DATE, "");
    tb_status status = draw(f, s, dark, l, surface);
    f->surface_finish(surface);
    if (status == TB_OK)
        status = check_status(&b, f->surface_status(surface));
    f->surface_destroy(surface);
    return out->failed ? TB_ERR_MEMORY : status;
}

typedef tb_status (*print_fn)(const functions *f, const tb_scene *s, bool dark,
                              const layout *l, tb_buf *out);

static tb_status print(const tb_scene *s, const tb_sheet *sheet, double unit,
                       print_fn by, tb_out *out)
{
    static const tb_sheet own = {0};
    functions f;
    layout l;
    if (!sheet)
        sheet = &own;
    TB_TRY(s->status);
    TB_TRY(lay_out(s, sheet, unit, &l));
    TB_TRY(load(s->ctx, &f));
    return by(&f, s, sheet->theme == TB_THEME_DARK, &l, &out->buf);
}

tb_status tb_scene_png(const tb_scene *s, const tb_sheet *sheet, tb_out *out)
{
    return print(s, sheet, 1, write_png, out);
}

tb_status tb_scene_pdf(const tb_scene *s, const tb_sheet *sheet, tb_out *out)
{
    return print(s, sheet, 0.75, write_pdf, out);
}

double tb_cairo_text_width(const tb_scene *s, const tb_item *text)
{
    functions f;
    double width = -1;
    if (load(s->ctx, &f) != TB_OK)
        return width;
    handle surface = f.image_create(FORMAT_RGB24, 1, 1);
    brush b = {.f = &f, .cr = f.create(surface), .s = s};
    tb_buf_init(&b.text, s->ctx);
    plain_text(&b);
    width = text_width(&b, text);
    tb_buf_clear(&b.text);
    f.destroy(b.cr);
    f.surface_destroy(surface);
    return width;
}
