/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: the scene's items, palette, glyphs, pixels and
 * the character canvas that every figure and back end shares. */
#ifndef TB_PICTURES_SCENE_H
#define TB_PICTURES_SCENE_H

#include "base/base.h"
#include "base/number.h"
#include "tollbooth/pictures.h"

/* --- output ------------------------------------------------------------- */

struct tb_out {
    tb_ctx *ctx;
    tb_buf buf;
};

/* --- items -------------------------------------------------------------- */

typedef enum tb_item_kind {
    TB_ITEM_RECT,
    TB_ITEM_PATH,
    TB_ITEM_CIRCLE,
    TB_ITEM_TEXT,
    TB_ITEM_GROUP,
    TB_ITEM_END
} tb_item_kind;

typedef struct tb_item {
    tb_item_kind kind;
    bool closed;
    tb_style style;    /* strings live in the scene's arena */
    double x, y, w, h; /* rect; circle: centre and w = radius; text: x, y */
    const double *xy;
    size_t n;
    const char *text;
} tb_item;

struct tb_scene {
    tb_ctx *ctx;
    tb_arena arena;
    double w, h;
    const char *title, *desc;
    tb_item *items;
    size_t count, cap, depth;
    tb_status status;
};

#define TB_FONT_SIZE  13.0
#define TB_LINE_WIDTH 1.5

/** Bounding box of a text item, px. */
typedef struct tb_box {
    double x, y, w, h;
} tb_box;
tb_box tb_item_text_box(const tb_item *it);
bool tb_box_meets(tb_box a, tb_box b);

/* What the back ends share. */

/** The lengths of a dashed stroke of this width, painted and not in turn;
 * returns how many, 0 for a solid one. */
size_t tb_dash_lengths(tb_dash dash, double line, double length[4]);
/** The point at most r away from a towards b, not past the middle: where a
 * rounded corner at a begins. */
void tb_towards(const double *a, const double *b, double r, double out[2]);

/** px that cairo takes for a text item; negative where there is no cairo. */
double tb_cairo_text_width(const tb_scene *s, const tb_item *text);

/** A sticky failure: kept only if it is the first. */
void tb_scene_fail(tb_scene *s, tb_status status);

/* --- palette ------------------------------------------------------------ */

typedef struct tb_tone_row {
    const char *name; /* CSS: --name, classes f-name and s-name */
    const char *light, *dark;
} tb_tone_row;
const tb_tone_row *tb_tone_at(tb_tone tone);
/** Variables of one theme, or both behind prefers-color-scheme. */
void tb_palette_css(tb_buf *b, tb_theme theme, const char *selector);
/** fill and stroke classes; `used` has bit t for fill, bit t + 32 for
 * stroke; all bits: everything. */
void tb_palette_classes(tb_buf *b, tb_theme theme, uint64_t used);

/** Tone, dash and marker of series number i. */
tb_tone tb_series_tone(size_t i);
tb_dash tb_series_dash(size_t i);
tb_marker tb_series_marker(size_t i);

/* --- characters --------------------------------------------------------- */

/** Next code point at *s (U+FFFD for bytes that are not UTF-8, and for
 * control characters); 0 at the end. */
uint32_t tb_glyph_next(const char **s);
void tb_glyph_put(tb_buf *b, uint32_t cp);
/** Terminal columns of a code point (0, 1, 2) and of a string. */
int tb_columns_of(uint32_t cp);
size_t tb_columns(const char *s);
/** A one-column stand-in below 0x7f. */
char tb_ascii_of(uint32_t cp);
const char *tb_ascii_word(uint32_t cp); /* NULL: it has none */
/** s cut to `max` columns with an ellipsis, in the arena. NULL reads "". */
const char *tb_shorten(tb_arena *a, const char *s, size_t max);
/** s cut to `px` pixels with an ellipsis. */
const char *tb_shorten_px(tb_arena *a, const char *s, double px, double size,
                          bool bold);
/** letter with the subscript j, "x₁₂"; NULL: no memory. */
const char *tb_subscript(tb_arena *a, const char *letter, size_t j);
/** Text with &, <, >, " and characters XML forbids replaced. */
void tb_xml_text(tb_buf *b, const char *s);

/** px with at most two decimals, no exponent, no "-0". */
void tb_px(tb_buf *b, double v);

/* --- canvas of characters ----------------------------------------------- */

typedef struct tb_canvas {
    int w, h;
    uint32_t *cells;
    bool failed;
} tb_canvas;
tb_status tb_canvas_init(tb_canvas *c, tb_arena *a, int w, int h);
void tb_canvas_put(tb_canvas *c, int x, int y, uint32_t cp);
uint32_t tb_canvas_get(const tb_canvas *c, int x, int y);
/** Returns the column after the text. */
int tb_canvas_text(tb_canvas *c, int x, int y, const char *s);
/** Rows top to bottom, no trailing blanks. */
void tb_canvas_flush(const tb_canvas *c, bool ascii, tb_buf *out);

/** width of `t` clipped to 40..200; 80 for NULL or 0. */
int tb_terminal_width(const tb_terminal *t);
bool tb_terminal_ascii(const tb_terminal *t);
/** One line of text, mapped to ASCII if asked, wrapped at width with a
 * hanging indent. */
void tb_term_wrap(tb_buf *b, const tb_terminal *t, int indent, const char *s);
/** A string, mapped to ASCII if asked. */
void tb_term_puts(tb_buf *b, const tb_terminal *t, const char *s);
void tb_term_pad(tb_buf *b, int n);
/** A bar of share (0..1) of `cells` columns, in eighths. */
void tb_term_bar(tb_buf *b, const tb_terminal *t, double share, int cells);

/* --- verdicts ----------------------------------------------------------- */

void tb_verdicts_html(tb_buf *b, const tb_report_verdict *v, size_t n);

/* --- small helpers ------------------------------------------------------ */

static inline double tb_min2(double a, double b)
{
    return a < b ? a : b;
}

static inline double tb_max2(double a, double b)
{
    return a > b ? a : b;
}

/** Largest integer not above x, |x| < 2^53. */
double tb_floor(double x);
double tb_ceil(double x);
/** log10, exact at powers of ten. v > 0. */
double tb_log10(double v);
double tb_pow10(double x);

/** Draws `s` wrapped to `width` px from baseline y on; returns the baseline
 * after the last line. */
double tb_scene_wrap(tb_scene *s, double x, double y, double width,
                     const char *text, const tb_style *st);

#endif
