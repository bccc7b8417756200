/* SPDX-License-Identifier: MIT */
/* PNG and PDF: what is drawn is where SVG has it, in both themes; sheets; a
 * system without cairo. */
#include <dirent.h>
#include <dlfcn.h>

#include "test_pictures_demo.h"
#include "tollbooth/shot.h"

/* --- reading a PNG back by the same library ----------------------------- */

typedef struct reader {
    const unsigned char *at;
    size_t left;
} reader;

static int next_bytes(void *from, unsigned char *data, unsigned n)
{
    reader *r = from;
    if (r->left < n)
        return 10; /* CAIRO_STATUS_READ_ERROR */
    memcpy(data, r->at, n);
    r->at += n;
    r->left -= n;
    return 0;
}

typedef struct pixels {
    void *lib, *surface;
    int w, h, stride;
    const unsigned char *data;
} pixels;

#define CALL(p, result, name, args)                                            \
    ((result(*) args)(uintptr_t)dlsym((p)->lib, name))

static void read_png(tb_test *T, const tb_out *out, pixels *p)
{
    reader r = {(const unsigned char *)tb_out_str(out), tb_out_len(out)};
    p->lib = dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL);
    TB_CHECK(T, r.left > 24 && memcmp(r.at, "\x89PNG\r\n\x1a\n", 8) == 0);
    p->surface = CALL(p, void *, "cairo_image_surface_create_from_png_stream",
                      (int (*)(void *, unsigned char *, unsigned), void *))(
        next_bytes, &r);
    p->w = CALL(p, int, "cairo_image_surface_get_width", (void *))(p->surface);
    p->h = CALL(p, int, "cairo_image_surface_get_height", (void *))(p->surface);
    p->stride =
        CALL(p, int, "cairo_image_surface_get_stride", (void *))(p->surface);
    p->data = CALL(p, const unsigned char *, "cairo_image_surface_get_data",
                   (void *))(p->surface);
}

static unsigned pixel(const pixels *p, int x, int y)
{
    uint32_t v;
    memcpy(&v, p->data + y * p->stride + 4 * x, sizeof v);
    return v & 0xFFFFFF;
}

static void drop(pixels *p)
{
    CALL(p, void, "cairo_surface_destroy", (void *))(p->surface);
}

static bool has_cairo(void)
{
    return dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL) != NULL;
}

/* --- pictures ----------------------------------------------------------- */

/* 60 x 40 px: a green rectangle from (10, 10) to (30, 30), a ring round
 * (45, 20), and a faint red one at its right. */
static void small(tb_test *T, tb_scene **out)
{
    tb_scene *s;
    *out = NULL;
    TB_OKAY(T, tb_scene_create(T->ctx, 60, 40, "small", "three things", &s));
    tb_scene_rect(s, 10, 10, 20, 20, &(tb_style){.fill = TB_TONE_LANE});
    tb_scene_circle(s, 45, 20, 8, &(tb_style){.stroke = TB_TONE_IN, .line = 4});
    tb_scene_group(s, &(tb_style){.alpha = 0.5});
    tb_scene_rect(s, 56, 0, 4, 40, &(tb_style){.fill = TB_TONE_INK});
    tb_scene_end(s);
    *out = s;
}

TB_TEST(pixels_are_where_svg_has_them)
{
    static const unsigned want[][5] = {
        /* paper, rectangle, ring, inside of it, half ink */
        {0xFFFFFF, 0x00795A, 0x0072B2, 0xFFFFFF, 0x8D8F92},
        {0x12161C, 0x3FC79A, 0x56B4E9, 0x12161C, 0x7C8086}};
    static const int at[][2] = {{2, 2}, {20, 20}, {37, 20}, {45, 20}, {57, 20}};
    tb_out *out;
    if (!has_cairo())
        TB_SKIP(T, "no cairo here");
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    tb_scene *s;
    small(T, &s);
    for (int dark = 0; dark < 2; dark++)
        for (int scale = 1; scale <= 3; scale++) {
            pixels p;
            tb_sheet sheet = {.theme = dark ? TB_THEME_DARK : TB_THEME_LIGHT,
                              .scale = scale};
            tb_out_reset(out);
            TB_OKAY(T, tb_scene_png(s, &sheet, out));
            read_png(T, out, &p);
            TB_CHECK(T, p.w == 60 * scale && p.h == 40 * scale);
            for (size_t i = 0; i < TB_LEN(at); i++) {
                unsigned got = pixel(&p, at[i][0] * scale + scale / 2,
                                     at[i][1] * scale + scale / 2);
                int off = 0;
                for (int c = 0; c < 24; c += 8) {
                    int d =
                        (int)(got >> c & 255) - (int)(want[dark][i] >> c & 255);
                    off = abs(d) > off ? abs(d) : off;
                }
                if (off > 2)
                    tb_test_fail(T, __FILE__, __LINE__,
                                 "scale %d, pixel %zu: %06x, wanted %06x",
                                 scale, i, got, want[dark][i]);
            }
            drop(&p);
        }
    tb_scene_destroy(s);
    tb_out_destroy(out);
}

/* The picture as large as fits, in the middle. */
TB_TEST(sheets)
{
    tb_out *out;
    pixels p;
    if (!has_cairo())
        TB_SKIP(T, "no cairo here");
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    tb_scene *s;
    small(T, &s);
    TB_OKAY(T, tb_scene_png(s, &(tb_sheet){.width = 1200, .height = 630}, out));
    read_png(T, out, &p);
    TB_CHECK(T, p.w == 1200 && p.h == 630);
    /* 14.49 times as large: the rectangle begins at x = 310, y = 170 */
    TB_CHECK(T, pixel(&p, 305, 300) == 0xFFFFFF);
    TB_CHECK(T, pixel(&p, 315, 300) == 0x00795A);
    TB_CHECK(T, pixel(&p, 400, 165) == 0xFFFFFF);
    TB_CHECK(T, pixel(&p, 400, 175) == 0x00795A);
    drop(&p);
    tb_out_reset(out); /* turned: it is wider than high */
    TB_OKAY(
        T, tb_scene_png(
               s, &(tb_sheet){.width = 200, .height = 300, .turn = true}, out));
    read_png(T, out, &p);
    TB_CHECK(T, p.w == 300 && p.h == 200);
    drop(&p);
    tb_scene_destroy(s);
    tb_out_destroy(out);
}

/* Is `what` among the bytes? */
static bool has(const tb_out *out, const char *what)
{
    const char *p = tb_out_str(out);
    size_t n = tb_out_len(out), k = strlen(what);
    for (size_t i = 0; i + k <= n; i++)
        if (memcmp(p + i, what, k) == 0)
            return true;
    return false;
}

TB_TEST(pdf_pages)
{
    tb_out *out, *again;
    if (!has_cairo())
        TB_SKIP(T, "no cairo here");
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_out_create(T->ctx, &again));
    tb_scene *s;
    small(T, &s);
    TB_OKAY(T, tb_scene_pdf(s, NULL, out));
    TB_CHECK(T, memcmp(tb_out_str(out), "%PDF-1.", 7) == 0);
    TB_CHECK(T, has(out, "/MediaBox [ 0 0 45 30 ]"));
    TB_CHECK(T, has(out, "small") && has(out, "three things"));
    TB_CHECK(T, !has(out, "/CreationDate"));
    TB_OKAY(T, tb_scene_pdf(s, NULL, again));
    TB_CHECK(T, tb_out_len(out) == tb_out_len(again) &&
                    memcmp(tb_out_str(out), tb_out_str(again),
                           tb_out_len(out)) == 0);
    tb_out_reset(out);
    const tb_sheet a4 = {
        .width = 595.275591, .height = 841.889764, .turn = true};
    TB_OKAY(T, tb_scene_pdf(s, &a4, out));
    TB_CHECK(T, has(out, "/MediaBox [ 0 0 841.889764 595.275591 ]"));
    tb_scene_destroy(s);
    tb_out_destroy(out);
    tb_out_destroy(again);
}

/* Nothing to see, too much of it, text that is none: drawn or left out. */
static void odd(tb_test *T, tb_scene **out)
{
    static const double point[] = {5, 5}, back[] = {5, 5, 9, 5, 5, 5};
    const tb_style all = {.fill = TB_TONE_IN,
                          .stroke = TB_TONE_BAD,
                          .dash = TB_DASH_DOT,
                          .round = 1000,
                          .alpha = 0.3};
    tb_scene *s;
    *out = NULL;
    TB_OKAY(T, tb_scene_create(T->ctx, 30, 20, "odd", "odd things", &s));
    *out = s;
    tb_scene_rect(s, 5, 5, 0, 3, &all);
    tb_scene_rect(s, 5, 5, -4, 3, &all);
    tb_scene_rect(s, -1e5, -1e5, 2e5, 2e5, &all);
    tb_scene_circle(s, 5, 5, 0, &all);
    tb_scene_circle(s, 5, 5, -1, &all);
    tb_scene_path(s, point, 1, false, &all);
    tb_scene_path(s, point, 1, true, &all);
    tb_scene_path(s, back, 3, true, &all);
    tb_scene_text(s, 1, 9, "\xFF\xFE\x01 a\tb\n\xF0\x9F\x98\x80", &all);
    for (int i = 0; i < 40; i++) /* the last is left open */
        tb_scene_group(s, &(tb_style){.alpha = i % 2 ? 0.9 : 0});
    for (int i = 0; i < 39; i++)
        tb_scene_end(s);
    tb_scene_text(s, 29, 9, "i", &(tb_style){.anchor = TB_END});
}

TB_TEST(odd_items)
{
    tb_out *out;
    tb_scene *s;
    if (!has_cairo())
        TB_SKIP(T, "no cairo here");
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    odd(T, &s);
    TB_OKAY(T, tb_scene_status(s));
    TB_OKAY(T, tb_scene_png(s, NULL, out));
    TB_CHECK(T, tb_out_len(out) > 0);
    tb_out_reset(out);
    TB_OKAY(T, tb_scene_pdf(s, NULL, out));
    TB_CHECK(T, has(out, "%%EOF"));
    tb_scene_destroy(s);
    tb_out_destroy(out);
}

TB_TEST(impossible_sheets)
{
    static const tb_sheet bad[] = {{.scale = -1},
                                   {.scale = 1e5},
                                   {.scale = 1e-9},
                                   {.width = 100},
                                   {.width = -3, .height = 5},
                                   {.width = 1e5, .height = 5}};
    tb_out *out;
    if (!has_cairo())
        TB_SKIP(T, "no cairo here");
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    tb_scene *s;
    small(T, &s);
    for (size_t i = 0; i < TB_LEN(bad); i++) {
        TB_CHECK(T, tb_scene_png(s, &bad[i], out) == TB_ERR_ARG);
        TB_CHECK(T, strstr(tb_error(T->ctx), "picture: "));
        tb_error_clear(T->ctx);
        TB_CHECK(T, tb_out_len(out) == 0);
    }
    tb_scene_destroy(s);
    tb_out_destroy(out);
}

TB_TEST(no_cairo_is_said)
{
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    tb_scene *s;
    small(T, &s);
    setenv("TB_CAIRO", "/nowhere/libcairo.so", 1);
    TB_CHECK(T, tb_scene_png(s, NULL, out) == TB_ERR_SYSTEM);
    TB_CHECK(T, strstr(tb_error(T->ctx), "/nowhere/libcairo.so"));
    TB_CHECK(T, strstr(tb_error(T->ctx), "libcairo2"));
    tb_error_clear(T->ctx);
    setenv("TB_CAIRO", "libc.so.6", 1); /* another library */
    TB_CHECK(T, tb_scene_pdf(s, NULL, out) == TB_ERR_SYSTEM);
    TB_CHECK(T, strstr(tb_error(T->ctx), "libc.so.6 has no cairo_"));
    tb_error_clear(T->ctx);
    unsetenv("TB_CAIRO");
    tb_scene_destroy(s);
    tb_out_destroy(out);
}

/* --- widths ------------------------------------------------------------- */

static double number_after(const char *tag, const char *end, const char *name,
                           double otherwise)
{
    const char *p = strstr(tag, name);
    return p && p < end ? strtod(p + strlen(name), NULL) : otherwise;
}

/* Text between `from` and `to` with its entities taken back. */
static void plain(const char *from, const char *to, char *out)
{
    static const char *const entity[][2] = {
        {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}};
    while (from < to) {
        size_t i = 0;
        while (i < TB_LEN(entity) &&
               strncmp(from, entity[i][0], strlen(entity[i][0])) != 0)
            i++;
        if (i < TB_LEN(entity)) {
            *out++ = *entity[i][1];
            from += strlen(entity[i][0]);
        } else {
            *out++ = *from++;
        }
    }
    *out = 0;
}

/* What cairo would take is what labels are given, but for a pixel, and for the
 * boldest, which it draws smaller. */
static void check_room(tb_test *T, const tb_scene *s, const tb_item *it)
{
    double room = tb_item_text_box(it).w, takes = tb_cairo_text_width(s, it);
    if (takes > 1.04 * room + 1)
        tb_test_fail(T, __FILE__, __LINE__, "\"%s\": %g px, room for %g",
                     it->text, takes, room);
}

/* One text element. */
static void check_width(tb_test *T, const tb_scene *s, const char *tag)
{
    char text[1024];
    const char *end = strchr(tag, '>'), *close = strstr(tag, "</text>");
    if (strncmp(end + 1, "<title>", 7) == 0)
        end = strstr(end, "</title>") + 7;
    if ((size_t)(close - end) >= sizeof text)
        return;
    plain(end + 1, close, text);
    tb_item it = {.kind = TB_ITEM_TEXT, .text = text};
    it.style.size = number_after(tag, end, "font-size=\"", TB_FONT_SIZE);
    it.style.bold = number_after(tag, end, "font-weight=\"", 0) > 0;
    it.style.mono = strstr(tag, "monospace") && strstr(tag, "monospace") < end;
    check_room(T, s, &it);
}

static size_t check_widths(tb_test *T, const tb_scene *s, const char *name)
{
    char path[512];
    size_t seen = 0;
    tb_format(path, sizeof path, "%s/tests/golden/pictures/%s", TB_SOURCE_DIR,
              name);
    FILE *f = fopen(path, "rb");
    char *svg = calloc(1, 1 << 20);
    if (f && svg && fread(svg, 1, (1 << 20) - 1, f) > 0)
        for (const char *p = svg; (p = strstr(p, "<text ")); p++, seen++)
            check_width(T, s, p);
    if (f)
        fclose(f);
    free(svg);
    return seen;
}

TB_TEST(labels_have_the_room_they_take)
{
    size_t seen = 0;
    if (!has_cairo())
        TB_SKIP(T, "no cairo here");
    tb_scene *s;
    small(T, &s);
    DIR *d = opendir(TB_SOURCE_DIR "/tests/golden/pictures");
    for (struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, ".svg"))
            seen += check_widths(T, s, e->d_name);
    if (d)
        closedir(d);
    TB_CHECK(T, seen > 100);
    tb_scene_destroy(s);
}

TB_TEST(labels_of_shots_have_the_room_they_take)
{
    if (!has_cairo())
        TB_SKIP(T, "no cairo here");
    for (size_t i = 0; i < tb_shot_count(); i++) {
        tb_shot *shot;
        tb_scene *s;
        TB_OKAY(T, tb_shot_create(T->ctx, tb_shot_name(i), NULL, &shot));
        TB_OKAY(T, tb_shot_scene(shot, &s));
        for (size_t k = 0; k < s->count; k++)
            if (s->items[k].kind == TB_ITEM_TEXT)
                check_room(T, s, &s->items[k]);
        tb_scene_destroy(s);
        tb_shot_destroy(shot);
    }
}
