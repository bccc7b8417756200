/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: axes, the state of a value on an axis, and the
 * plot area that charts, flow and loss figures share. */
#ifndef TB_PICTURES_PLOT_H
#define TB_PICTURES_PLOT_H

#include "pictures/scene.h"

enum {
    TB_TICKS = 64,
    TB_DECADES = 60,     /* most decades of a log axis */
    TB_MAX_POINTS = 2000 /* of a drawn series */
};

/** lo, hi and ticks are in axis units: the value, or its log10. */
typedef struct tb_axis {
    bool log;
    bool whole; /* no ticks between integers; set before tb_axis_fit */
    bool empty; /* nothing can be drawn */
    bool below; /* values under lo exist: cut off at TB_DECADES or y_min */
    bool above; /* values over hi exist */
    double lo, hi;
    double tick[TB_TICKS];
    size_t n_ticks;
    double step;       /* between linear ticks */
    double p_lo, p_hi; /* px of lo and hi */
} tb_axis;

typedef enum tb_state {
    TB_DRAWN,
    TB_BELOW, /* drawn at the lower edge, marked */
    TB_ABOVE,
    TB_FLOOR, /* zero or negative on a log axis */
    TB_GAP    /* nan, inf */
} tb_state;

/** Limits and ticks around min..max (values); min > max means empty. A value
 * axis widens to whole ticks; `tight` keeps the limits. */
void tb_axis_fit(tb_axis *a, bool log, double min, double max, bool tight);
/** The axis of a chart's y values, its limits or its data. */
void tb_axis_of_y(tb_axis *a, const tb_chart *c);
void tb_axis_of_x(tb_axis *a, const tb_chart *c);
tb_state tb_axis_state(const tb_axis *a, double v);
/** Axis units of a drawn, below or above value, inside lo..hi. */
double tb_axis_unit(const tb_axis *a, double v);
double tb_axis_px(const tb_axis *a, double v);
double tb_axis_unit_px(const tb_axis *a, double unit);
/** Text of tick i. */
char *tb_axis_label(const tb_axis *a, size_t i, char out[TB_SHOW_CHARS]);

/** Series i with tone, dash, marker, width, role and label filled in. */
tb_series tb_series_of(const tb_chart *c, size_t i);
double tb_series_x(const tb_series *s, size_t i);

/** At most TB_MAX_POINTS indices of y in rising order, both ends, the least
 * and the largest finite value and a gap of every stretch among them. */
const size_t *tb_thin(tb_arena *a, const tb_axis *axis, const double *y,
                      size_t n, size_t *count);

/** What the chart cannot draw, one string per series and edge; NULL-ended. */
const char *const *tb_chart_notes(tb_arena *a, const tb_chart *c,
                                  const tb_axis *y);
/** "label: 1 at 0 .. 0.01 at 24, least 0.01, largest 1" of every series. */
const char *tb_chart_describe(tb_arena *a, const tb_chart *c);

/** Draws axes, reference line and series inside `area` (ticks lie outside);
 * y is given so that panels can share it. */
void tb_plot_panel(tb_scene *s, const tb_chart *c, tb_box area,
                   const tb_axis *y);
/** The pixels of an axis inside `area`, a little off its frame. */
void tb_plot_frame_x(tb_box area, tb_axis *x);
void tb_plot_frame_y(tb_box area, tb_axis *y);
void tb_plot_y_axis(tb_scene *s, tb_box area, const tb_axis *y);
/** px the tick labels of y need left of the area. */
double tb_plot_gutter(const tb_axis *y);
/** Legend rows of all series; returns the y below them. */
double tb_plot_legend(tb_scene *s, const tb_chart *c, double x, double y,
                      double width);
/** Line sample and marker, 30 px wide, centred on y. */
void tb_plot_swatch(tb_scene *s, const tb_series *series, double x, double y);
void tb_plot_marker(tb_scene *s, tb_marker m, double x, double y, double r,
                    const tb_style *st);
/** Text, unless it would touch other text of the scene. */
bool tb_plot_label(tb_scene *s, double x, double y, const char *text,
                   const tb_style *st);
double tb_plot_notes(tb_scene *s, const char *const *notes, double x, double y,
                     double width);

/** Ends a figure: the scene, or its first failure after freeing it. */
tb_status tb_scene_done(tb_scene *s, tb_scene **out);

/** A table of strings filled cell by cell; `columns` are copied. */
typedef struct tb_grid {
    tb_arena *arena;
    tb_table table;
    const char **cells;
    size_t used, cap;
    bool failed;
} tb_grid;
tb_status tb_grid_init(tb_grid *g, tb_arena *a, const char *caption,
                       const tb_column *columns, size_t n_columns,
                       size_t max_rows);
void tb_grid_text(tb_grid *g, const char *s);
void tb_grid_number(tb_grid *g, double v);
tb_status tb_grid_term(tb_grid *g, const tb_terminal *term, tb_out *out);

/** Begins and fills a grid in the arena. */
typedef tb_status (*tb_grid_maker)(tb_arena *a, const void *data, tb_grid *g);
/** What `make` fills, as HTML or for the terminal. */
tb_status tb_grid_html_of(tb_ctx *ctx, tb_grid_maker make, const void *data,
                          tb_out *out);
tb_status tb_grid_term_of(tb_ctx *ctx, tb_grid_maker make, const void *data,
                          const tb_terminal *term, tb_out *out);

#endif
