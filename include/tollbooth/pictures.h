/* SPDX-License-Identifier: MIT */
/* Figures, tables and the report page. Plain numbers and labels go in, a
 * scene or text comes out; every figure has an SVG and a terminal face.
 *
 * Rules shared by all calls: strings and arrays are read during the call and
 * copied where they are kept; a NULL string means "none"; no output depends
 * on locale, time or fonts, so equal input gives equal bytes. */
#ifndef TOLLBOOTH_PICTURES_H
#define TOLLBOOTH_PICTURES_H

#include "tollbooth/json.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- output ------------------------------------------------------------- */

/** Text that grows: SVG, HTML and terminal output are appended to it. */
typedef struct tb_out tb_out;

/** tb_out_create - empty. tb_out_destroy - NULL is fine. */
tb_status tb_out_create(tb_ctx *ctx, tb_out **out);
void tb_out_destroy(tb_out *o); /* NULL is fine */
void tb_out_reset(tb_out *o);   /* back to empty */
/** tb_out_str - the text, NUL-terminated; "" if empty. */
const char *tb_out_str(const tb_out *o);
/** tb_out_len - its bytes, without the NUL. */
size_t tb_out_len(const tb_out *o);
/** tb_out_put - appends text. */
tb_status tb_out_put(tb_out *o, const char *text);

enum { TB_SHOW_CHARS = 32 };

/** tb_show_number - v as figures and tables print it: three significant
 * digits, "0.707", "12.3", "1.3e-5", "1200", "nan", "-inf". Returns out. */
char *tb_show_number(double v, char out[TB_SHOW_CHARS]);

/** How terminal output looks. No escape sequences are ever written. */
typedef struct tb_terminal {
    int width;  /* columns, clipped to 40..200; 0 means 80 */
    bool ascii; /* only bytes 0x20..0x7e and newline in what we draw */
} tb_terminal;

/** tb_text_term - a paragraph, wrapped; lines after the first are indented. */
tb_status tb_text_term(const char *text, int indent, const tb_terminal *term,
                       tb_out *out);

/* --- scene -------------------------------------------------------------- */

/** Colour tokens (CSS variables with a light and a dark value each). */
typedef enum tb_tone {
    TB_TONE_NONE,    /* not painted; in a chart series: chosen by position */
    TB_TONE_INK,     /* text */
    TB_TONE_MUTED,   /* secondary text, axis lines */
    TB_TONE_GRID,    /* grid lines */
    TB_TONE_PAPER,   /* background */
    TB_TONE_PANEL,   /* quiet background of a group */
    TB_TONE_IN,      /* input x: blue */
    TB_TONE_BOX,     /* branch: orange */
    TB_TONE_LANE,    /* highway: green */
    TB_TONE_TOLL,    /* norm: indigo */
    TB_TONE_BAD,     /* fading backward signal, failure: red */
    TB_TONE_TOTAL,   /* total gradient: grey */
    TB_TONE_IN_SOFT, /* pale fills of the four above */
    TB_TONE_BOX_SOFT,
    TB_TONE_LANE_SOFT,
    TB_TONE_TOLL_SOFT,
    TB_TONE_COUNT
} tb_tone;

typedef enum tb_anchor { TB_START, TB_MIDDLE, TB_END } tb_anchor;
typedef enum tb_dash { TB_SOLID, TB_DASHED, TB_DOTTED, TB_DASH_DOT } tb_dash;
typedef enum tb_theme { TB_THEME_AUTO, TB_THEME_LIGHT, TB_THEME_DARK } tb_theme;

/** How one item looks. Zero everywhere is a valid style. */
typedef struct tb_style {
    const char *role;  /* data-role, one of the drawing vocabulary */
    const char *id;    /* unique within the scene */
    const char *title; /* shown on hover, read by screen readers */
    tb_tone fill, stroke;
    double line;  /* stroke width, px; 0 means 1.5 */
    tb_dash dash; /* of the stroke */
    double round; /* corner radius of rects and polylines, px */
    double alpha; /* opacity; 0 means 1 */
    double size;  /* font size, px; 0 means 13 */
    bool bold, italic, mono;
    tb_anchor anchor; /* of text; y is the baseline */
} tb_style;

/** A list of drawn items, in drawing order. Drawing calls cannot fail on
 * their own: the first failure (memory, a coordinate that is not finite)
 * sticks and tb_scene_status and the back ends return it. */
typedef struct tb_scene tb_scene;

/** tb_scene_create - an empty picture of w x h px. `title` names it, `desc`
 * states its message with numbers; both are required (TB_ERR_ARG). */
tb_status tb_scene_create(tb_ctx *ctx, double w, double h, const char *title,
                          const char *desc, tb_scene **out);
/** tb_scene_destroy - NULL is fine. tb_scene_status - the first failure of any
 * call; the others do nothing after it. */
void tb_scene_destroy(tb_scene *s);
tb_status tb_scene_status(const tb_scene *s);
/** tb_scene_width, _height, _resize - in px; items stay where they are. */
double tb_scene_width(const tb_scene *s);
double tb_scene_height(const tb_scene *s);
void tb_scene_resize(tb_scene *s, double w, double h);
/** tb_scene_describe - replaces the description (known once drawn). */
void tb_scene_describe(tb_scene *s, const char *desc);

/** tb_scene_rect, _line, _path, _circle, _text - one item each, over those
 * before; px from the top left corner. NULL for st: the plain style. */
void tb_scene_rect(tb_scene *s, double x, double y, double w, double h,
                   const tb_style *st);
void tb_scene_line(tb_scene *s, double x1, double y1, double x2, double y2,
                   const tb_style *st);
/** tb_scene_path - n points xy[2i], xy[2i+1]; closed joins the last to the
 * first. Corners are rounded by st->round. */
void tb_scene_path(tb_scene *s, const double *xy, size_t n, bool closed,
                   const tb_style *st);
void tb_scene_circle(tb_scene *s, double cx, double cy, double r,
                     const tb_style *st);
void tb_scene_text(tb_scene *s, double x, double y, const char *text,
                   const tb_style *st);
/** tb_scene_arrow - a path whose last point carries an arrowhead. */
void tb_scene_arrow(tb_scene *s, const double *xy, size_t n,
                    const tb_style *st);
/** tb_scene_group .. tb_scene_end - items drawn together (role, id, title
 * and alpha of st apply). */
void tb_scene_group(tb_scene *s, const tb_style *st);
void tb_scene_end(tb_scene *s);
/** tb_scene_place - draws all items of `part` moved by (dx, dy), its ids as
 * "prefix-id" (prefix NULL: as they are). */
void tb_scene_place(tb_scene *s, const tb_scene *part, const char *prefix,
                    double dx, double dy);

/** tb_text_width - px `text` takes, an upper estimate over common sans-serif
 * fonts, so that labels placed by it do not collide. */
double tb_text_width(const char *text, double size, bool bold);

/** What a picture is printed on. NULL means all zero. */
typedef struct tb_sheet {
    tb_theme theme; /* auto: light */
    double scale;   /* of the picture; 0 means 1 */
    /* the size of the sheet, px of PNG or points of PDF: the picture is made as
     * large as fits, `scale` aside. Both 0: as large as the picture */
    double width, height;
    bool turn; /* exchange the two where the picture then comes out larger */
} tb_sheet;

/** How an SVG is written. NULL means all zero. */
typedef struct tb_svg {
    bool in_html;       /* no XML header, no <style>: the page has it */
    const char *prefix; /* put before every id; "fig" if NULL */
    tb_theme theme;
    bool stacked; /* of a shot: no two panels side by side, as on a phone */
    /* NULL, or: as large as fits on paper of this width and height, in points,
     * turned where it may be; written in millimetres */
    const tb_sheet *sheet;
} tb_svg;

/** tb_scene_svg - appends the picture. Standalone files carry their colours
 * and follow the reader's light or dark scheme. */
tb_status tb_scene_svg(const tb_scene *s, const tb_svg *opt, tb_out *out);

/** tb_scene_png, tb_scene_pdf - appends the bytes of a file (tb_out_len; there
 * are zeros in it). One px is one pixel or 3/4 point. Drawn by cairo, which is
 * opened now (the variable TB_CAIRO names another file than libcairo.so.2), in
 * DejaVu Sans and DejaVu Sans Mono, or what the system has instead: the bytes
 * depend on cairo and on the fonts. Not in a page's engine.
 * TB_ERR_SYSTEM: there is no cairo. TB_ERR_ARG: a size it cannot have. */
tb_status tb_scene_png(const tb_scene *s, const tb_sheet *sheet, tb_out *out);
tb_status tb_scene_pdf(const tb_scene *s, const tb_sheet *sheet, tb_out *out);

/** tb_scene_json - the items with their roles, places and texts, for tests and
 * foreign renderers: the object of `picture --format scene` (docs/json.md). */
void tb_scene_json(const tb_scene *s, tb_json *j, const char *key);

/** tb_pictures_css - the variables and classes pages need for in_html SVG. */
tb_status tb_pictures_css(tb_theme theme, tb_out *out);

/* --- tables ------------------------------------------------------------- */

typedef enum tb_align { TB_LEFT, TB_RIGHT } tb_align;

typedef struct tb_column {
    const char *head;
    tb_align align;
    int priority; /* 0 always stays; the largest is dropped first */
    bool wrap;    /* long text may break over lines */
} tb_column;

typedef struct tb_table {
    const char *caption;
    const tb_column *columns;
    size_t n_columns;
    const char *const *cells; /* row-major, n_rows x n_columns; NULL: "" */
    size_t n_rows;
    const char *anchor; /* a page: row r can be linked to as this and its first
                           cell, "run1-k" and "7"; or NULL */
} tb_table;

/** tb_table_term - aligned columns that fit term->width; says which columns
 * were left out. */
tb_status tb_table_term(tb_ctx *ctx, const tb_table *table,
                        const tb_terminal *term, tb_out *out);
/** tb_log_bar - v between low and high on a log scale as a bar of at most
 * `cells` columns: for a cell of a table in text. What is 0 or less is a mark,
 * what is not a number "?". */
tb_status tb_log_bar(const tb_terminal *term, double v, double low, double high,
                     int cells, tb_out *out);
/** tb_table_html - <table> with caption and scope; sortable in a report. */
tb_status tb_table_html(tb_ctx *ctx, const tb_table *table, tb_out *out);

/* --- charts ------------------------------------------------------------- */

typedef enum tb_marker {
    TB_MARK_NONE,
    TB_MARK_DOT,
    TB_MARK_SQUARE,
    TB_MARK_DIAMOND,
    TB_MARK_TRIANGLE,
    TB_MARK_CROSS,
    TB_MARK_RING
} tb_marker;

typedef struct tb_series {
    const char *label;
    const double *x; /* NULL: 0, 1, 2, ... */
    const double *y;
    size_t n;
    tb_tone tone; /* TB_TONE_NONE: tone, dash and marker by position */
    tb_dash dash;
    tb_marker marker; /* at every point if they are few, else now and then */
    double line;      /* px; 0 means 2 */
    const char *role; /* of the line; NULL: "series" */
    double stop;      /* x where the run diverged, drawn as a cross ... */
    bool stopped;     /* ... if set */
    const double *low, *high; /* [n], a band behind the line, or NULL */
} tb_series;

/** Lines over a linear x axis. On a log axis a zero or negative value is a
 * triangle at the floor; nan and inf are gaps; all of them are listed under
 * the chart, none is clamped in silence. At most 60 decades are shown. */
typedef struct tb_chart {
    const char *title; /* required */
    const char *desc;  /* NULL: written from the numbers */
    const char *x_label, *y_label;
    const tb_series *series;
    size_t count;
    bool log_y;
    double y_min, y_max; /* both 0: from the data */
    double ref;          /* dashed reference line ... */
    bool has_ref;        /* ... if set */
    const char *ref_label;
    const char *const *x_names; /* name of x = 0, 1, ... or NULL */
    size_t n_names;
    double width, height; /* px; 0 means 760 x 380 */
} tb_chart;

/** tb_chart_scene - lines with markers, legend, axes; what a log axis cannot
 * hold is a triangle at its edge. tb_chart_term - the same as text. */
tb_status tb_chart_scene(tb_ctx *ctx, const tb_chart *chart, tb_scene **out);
tb_status tb_chart_term(tb_ctx *ctx, const tb_chart *chart,
                        const tb_terminal *term, tb_out *out);

/** tb_chart_table_html - the same numbers: "show as table". */
tb_status tb_chart_table_html(tb_ctx *ctx, const tb_chart *chart, tb_out *out);

typedef struct tb_bars {
    const char *title; /* required */
    const char *desc, *x_label, *y_label;
    const char *const *labels;
    const double *values;
    size_t n;
    bool log; /* bars start at the axis floor */
    double ref;
    bool has_ref;
    tb_tone tone;         /* TB_TONE_NONE: TB_TONE_IN */
    const char *role;     /* of a bar; NULL: "bar" */
    double width, height; /* px; 0 means 760 x 320 */
} tb_bars;

/** tb_bars_scene - upright bars with their numbers, on one axis. */
tb_status tb_bars_scene(tb_ctx *ctx, const tb_bars *bars, tb_scene **out);
/** tb_bars_term - one line per bar: label, number, bar in eighths. */
tb_status tb_bars_term(tb_ctx *ctx, const tb_bars *bars,
                       const tb_terminal *term, tb_out *out);

/** tb_bars_table_html, tb_heat_table_html - the same numbers: "show as table".
 */
tb_status tb_bars_table_html(tb_ctx *ctx, const tb_bars *bars, tb_out *out);

/* --- heat maps ---------------------------------------------------------- */

typedef enum tb_heat_scale {
    TB_HEAT_SIGNED,   /* -limit .. limit about zero, which is the background */
    TB_HEAT_LOG,      /* the logarithm of values above zero */
    TB_HEAT_FROM_ZERO /* 0 .. limit, of what is never below zero */
} tb_heat_scale;

typedef enum tb_heat_print {
    TB_PRINT_AUTO, /* the numbers of at most 8 x 8 cells */
    TB_PRINT_NEVER
} tb_heat_print;

/** A grid of numbers as colours. Signed: a value above zero is a square, one
 * below it a disc, so that the sign survives grey print. Logarithms: zero and
 * below is a triangle. From zero: one tone, as strong as the value. A missing
 * value is a small grey square, nan and inf are hatched. More cells than a
 * picture carries are merged; each then shows its value of largest magnitude,
 * which the figure says. */
typedef struct tb_heat {
    const char *title; /* required */
    const char *desc;  /* NULL: written from the numbers */
    size_t rows, columns;
    const double *values;         /* row-major */
    const bool *missing;          /* row-major: no such value; or NULL */
    const char *const *row_names; /* or NULL */
    const char *const *column_names;
    const char *row_label, *column_label;
    const char *value_label; /* what the colour means */
    tb_heat_scale scale;
    double limit;   /* value of the full colour; 0: largest magnitude */
    double decades; /* logarithms: at most so many below the largest; 0: all */
    bool outline_diagonal;
    tb_heat_print print_values;
    int decimals; /* of printed numbers; 0: three digits, as everywhere */
    double width; /* px; 0: what the cells need, at most 760 */
} tb_heat;

/** tb_heat_scene - cells "jac-cell" inside a "jac"; the diagonal "diag". */
tb_status tb_heat_scene(tb_ctx *ctx, const tb_heat *heat, tb_scene **out);
/** tb_heat_term - numbers where they fit, else shades (signs beside them). */
tb_status tb_heat_term(tb_ctx *ctx, const tb_heat *heat,
                       const tb_terminal *term, tb_out *out);
tb_status tb_heat_table_html(tb_ctx *ctx, const tb_heat *heat, tb_out *out);

/* --- gradient flow ------------------------------------------------------ */

/** One stack. Arrays over k = 0..n-1, sublayer outputs from the stem (0) to
 * the top (n-1 = K); values relative to the top. */
typedef struct tb_flow_curve {
    const char *block; /* "post-ln" */
    size_t depth;      /* blocks; 0: not printed */
    size_t n;
    const double *lane, *total;
    const double *branch;     /* NULL: not drawn */
    const char *const *names; /* "stem", "attn", "ffn", ...; or NULL */
} tb_flow_curve;

typedef struct tb_flow_figure {
    const char *title; /* NULL: "Gradient flow by depth" */
    const tb_flow_curve *runs;
    size_t count;
    double width; /* px; 0 means 760 */
} tb_flow_figure;

/** tb_flow_scene - small multiples on one log scale: the thick highway lane
 * and the thinner total of every run, each with its numbers. A lane that falls
 * below 0.1 is red and dashed, as the verdict TOLL counts it. */
tb_status tb_flow_scene(tb_ctx *ctx, const tb_flow_figure *f, tb_scene **out);
/** tb_flow_term - the same as text. */
tb_status tb_flow_term(tb_ctx *ctx, const tb_flow_figure *f,
                       const tb_terminal *term, tb_out *out);
/** tb_flow_table_html - the same numbers: "show as table". */
tb_status tb_flow_table_html(tb_ctx *ctx, const tb_flow_figure *f, tb_out *out);

/* --- tower -------------------------------------------------------------- */

typedef enum tb_tower_show {
    TB_TOWER_BOTH,
    TB_TOWER_LANE,
    TB_TOWER_TOTAL
} tb_tower_show;

/** What lies between two sublayer outputs, one or several sublayers. */
typedef struct tb_tower_floor {
    const char *name;        /* "attn", "block 3" */
    size_t k;                /* of the output at its top: x_k */
    double toll;             /* RMS gain of its norms; nan: not told */
    bool on_lane, on_branch; /* where its norms stand */
    bool cut;                /* no lane leads through it */
} tb_tower_floor;

/** A stack from its ground to its top: a lane goes up, a branch leaves and
 * joins it on every floor, booths are norms, and beside the lane comes down
 * what is left of a signal from the top, as wide as pictures' law says. */
typedef struct tb_tower {
    const char *title;            /* required */
    const char *block;            /* of the description, or NULL */
    const tb_tower_floor *floors; /* [n], the lowest first */
    size_t n;
    size_t k;                   /* of the output at the ground */
    const double *lane, *total; /* [n + 1], from the ground; relative to the
                                   top */
    const double *std;          /* [n + 1] spread of x, or NULL */
    bool exit;                  /* norms after the last floor ... */
    double exit_toll;           /* ... and their RMS gain */
    const char *note;           /* what a floor is, or NULL */
    tb_tower_show show;
    bool small;    /* without the profile on its right */
    bool roof;     /* room for a booth at the exit, there or not */
    double height; /* of all floors together, px; 0: 560 */
} tb_tower;

/** tb_tower_scene - floors with booths and arrows, the profile of lane and
 * total beside them; the caller destroys it (tb_scene_destroy). Without title,
 * floors or gains TB_ERR_ARG, as from the other two. */
tb_status tb_tower_scene(tb_ctx *ctx, const tb_tower *t, tb_scene **out);
/** tb_tower_term, tb_tower_table_html - the same numbers as text, as a table.
 */
tb_status tb_tower_term(tb_ctx *ctx, const tb_tower *t, const tb_terminal *term,
                        tb_out *out);
tb_status tb_tower_table_html(tb_ctx *ctx, const tb_tower *t, tb_out *out);

/* --- training ----------------------------------------------------------- */

typedef struct tb_loss_curve {
    const char *label; /* "post-ln, warm-up 100" */
    const double *step, *loss;
    size_t n;
    const double *val_step, *val_loss; /* NULL: none */
    size_t val_n;
    bool diverged;
    double diverged_at; /* step */
} tb_loss_curve;

typedef struct tb_loss_figure {
    const char *title; /* NULL: "Loss by update" */
    const tb_loss_curve *runs;
    size_t count;
    double width, height; /* px; 0 means 760 x 400 */
} tb_loss_figure;

/** tb_loss_scene - training loss as lines, validation as marks, a cross where a
 * run diverged. tb_loss_term, tb_loss_table_html - the same as text, as a
 * table. */
tb_status tb_loss_scene(tb_ctx *ctx, const tb_loss_figure *f, tb_scene **out);
tb_status tb_loss_term(tb_ctx *ctx, const tb_loss_figure *f,
                       const tb_terminal *term, tb_out *out);
tb_status tb_loss_table_html(tb_ctx *ctx, const tb_loss_figure *f, tb_out *out);

/* --- block diagram ------------------------------------------------------ */

typedef enum tb_diagram_kind {
    TB_DIAGRAM_BOX,   /* any function: attn, ffn, linear */
    TB_DIAGRAM_NORM,  /* a tollbooth */
    TB_DIAGRAM_SCALE, /* times a constant or a learned scalar */
    TB_DIAGRAM_GATE,  /* times a computed gate */
    TB_DIAGRAM_PLUS   /* on the lane only: branches join here */
} tb_diagram_kind;

typedef struct tb_diagram_part {
    tb_diagram_kind kind;
    const char *label; /* "attn", "LN", "0.5", "1 - g" */
} tb_diagram_part;

/** A road beside the lane. It leaves the lane `span` items before its plus
 * (0: right before the plus) and passes `parts` in order; no parts: a further
 * skip. */
typedef struct tb_diagram_branch {
    const tb_diagram_part *parts;
    size_t n;
    size_t span;
    const char *label; /* "attn", or NULL */
} tb_diagram_branch;

/** One thing the lane passes, from x to the output. */
typedef struct tb_diagram_item {
    tb_diagram_part part;
    const tb_diagram_branch *branches; /* of a plus */
    size_t n;
} tb_diagram_item;

/* x = norm(x + F(x)):  PLUS {F}, NORM.
 * x = x + F(norm(x)):  PLUS {NORM, F}.
 * x = norm(a*x + F(x)): SCALE a, PLUS {F, span 1}, NORM.
 * x = (1-g)*x + g*F(x): GATE "1-g", PLUS {F, GATE "g"; span 1}. */
typedef struct tb_diagram {
    const char *title;   /* required: "post-ln" */
    const char *desc;    /* NULL: written from the items */
    const char *formula; /* shown below, as text: "J_LN (I + J_F)" */
    const char *in_label, *out_label; /* NULL: "x", "x'" */
    const tb_diagram_item *items;
    size_t count;
    size_t before;       /* items before the first block: the stem's, from the
                            embedding to in_label */
    size_t in_block;     /* items up to the end of a block, which begins behind
                            those before it; the rest follow the last block
                            (final norm). 0: all */
    size_t depth;        /* blocks; 0: not printed */
    const double *gains; /* lane gain before item i, count + 1 of them,
                            relative to the top of the stack (after the last
                            item of the block); NULL: not drawn */
    const double *tolls; /* of item i if it is a norm; NULL: not printed */
    /* the same block with every node and wire, or NULL; drawn in place of the
     * items where they do not tell all (several streams, a value that is read
     * twice), and where they are too wide */
    const struct tb_wiring *wiring;
    bool wired;
} tb_diagram;

/** tb_diagram_scene - left to right; backward arrows below, as wide as the
 * gains say. */
tb_status tb_diagram_scene(tb_ctx *ctx, const tb_diagram *d, tb_scene **out);
/** tb_diagram_term - bottom to top, lane left, branches right. */
tb_status tb_diagram_term(tb_ctx *ctx, const tb_diagram *d,
                          const tb_terminal *term, tb_out *out);

/* --- report page -------------------------------------------------------- */

typedef struct tb_report_setting {
    const char *name, *value;
} tb_report_setting;

typedef struct tb_report_verdict {
    const char *code;     /* "VANISH" */
    const char *level;    /* "OK", "NOTE", "WARN", "FAIL" */
    const char *sentence; /* what was found */
    const char *detail;   /* value, threshold, source */
    const char *where;    /* "floor 3, attn" */
    const char *link;     /* the anchor of a table's row, or NULL */
} tb_report_verdict;

/** tb_verdicts_term - worst first, wrapped. */
tb_status tb_verdicts_term(tb_ctx *ctx, const tb_report_verdict *v, size_t n,
                           const tb_terminal *term, tb_out *out);

typedef struct tb_report_head {
    const char *title;   /* required */
    const char *lead;    /* one sentence under the title */
    const char *command; /* the command line that made it */
    const char *version; /* NULL: TB_VERSION */
} tb_report_head;

/** One self-contained HTML file: no network, light and dark, printable,
 * readable on a phone. Parts appear in the order of the calls; failures
 * stick and tb_report_finish returns the first. */
typedef struct tb_report tb_report;

/** tb_report_create - a page with this head. tb_report_destroy - NULL is fine.
 * tb_report_heading - a chapter, which the contents list. */
tb_status tb_report_create(tb_ctx *ctx, const tb_report_head *head,
                           tb_report **out);
void tb_report_destroy(tb_report *r); /* NULL is fine */
void tb_report_heading(tb_report *r, const char *text);
/** tb_report_subheading - one level below the last heading. */
void tb_report_subheading(tb_report *r, const char *text);
/** tb_report_fold .. tb_report_unfold - parts that are shown on demand, behind
 * a heading of their own; not inside each other. */
void tb_report_fold(tb_report *r, const char *text);
void tb_report_unfold(tb_report *r);
/** tb_report_paragraph, _list, _pre, _settings, _verdicts, _table - parts;
 * texts are escaped. */
void tb_report_paragraph(tb_report *r, const char *text);
void tb_report_list(tb_report *r, const char *const *items, size_t n);
void tb_report_pre(tb_report *r, const char *text); /* block text, code */
void tb_report_settings(tb_report *r, const tb_report_setting *s, size_t n);
void tb_report_verdicts(tb_report *r, const tb_report_verdict *v, size_t n);
/** tb_report_figure - `table_html` ("show as table") and caption may be
 * NULL. The scene stays the caller's. */
void tb_report_figure(tb_report *r, const tb_scene *scene, const char *caption,
                      const char *table_html);
void tb_report_table(tb_report *r, const tb_table *table);
/** tb_report_markup - trusted markup of our own printers (MathML). */
void tb_report_markup(tb_report *r, const char *markup);
/** tb_report_json - the data block, byte for byte as tb_json_text has it: a
 * text with "</" or "<!", which could end the block, is TB_ERR_ARG. */
void tb_report_json(tb_report *r, const char *json);
/** tb_report_finish - appends the whole page; once. */
tb_status tb_report_finish(tb_report *r, tb_out *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
