/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: the cells of a heat map, merged where there are
 * too many, and what its scene, terminal and table share. */
#ifndef TB_PICTURES_HEAT_H
#define TB_PICTURES_HEAT_H

#include "pictures/plot.h"

typedef enum tb_heat_state {
    TB_HEAT_SHOWN,
    TB_HEAT_ZERO, /* no logarithm: zero or below */
    TB_HEAT_NONE, /* missing */
    TB_HEAT_BAD,  /* nan, inf */
    TB_HEAT_STATES
} tb_heat_state;

typedef struct tb_heat_view {
    const tb_heat *heat;
    tb_arena *arena;
    size_t rows, columns;     /* of cells */
    size_t by_row, by_column; /* values of a cell in either direction */
    double *value;
    unsigned char *state;         /* tb_heat_state of each cell */
    size_t found[TB_HEAT_STATES]; /* cells in each state */
    double limit;                 /* not of logarithms */
    tb_axis axis;                 /* logarithms */
} tb_heat_view;

tb_status tb_heat_check(tb_ctx *ctx, const tb_heat *h);
/** Merges until at most `cells` cells in at most `columns` columns stay. */
tb_status tb_heat_view_init(tb_heat_view *v, tb_arena *a, const tb_heat *h,
                            size_t cells, size_t columns);
/** 0..1 of a shown cell's value. */
double tb_heat_strength(const tb_heat_view *v, double value);
/** "" without names; "a..d" of a merged cell. NULL: no memory. */
const char *tb_heat_row_name(const tb_heat_view *v, size_t row);
const char *tb_heat_column_name(const tb_heat_view *v, size_t column);
/** The cell as text: its number, or "none". */
const char *tb_heat_cell(const tb_heat_view *v, size_t cell,
                         char out[TB_SHOW_CHARS]);
/** What the colours run along: "log scale". */
const char *tb_heat_scale_words(const tb_heat *h);
/** What the picture does not say by itself; NULL-ended; NULL: no memory. */
const char *const *tb_heat_notes(const tb_heat_view *v);

/** Grid, names and axis labels inside `area`, whose left and lower edge the
 * names take; the legend is not drawn. */
void tb_heat_draw(tb_scene *s, const tb_heat_view *v, tb_box area);
/** Size of a grid with its names; cells shrink to fit `width` px. */
void tb_heat_size(const tb_heat_view *v, double width, double *w, double *h);
/** The colours and their numbers; returns the y below them. */
double tb_heat_legend(tb_scene *s, const tb_heat_view *v, double x, double y,
                      double width);

#endif
