/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: what the scene, the terminal and the table of a
 * flow figure share. */
#ifndef TB_PICTURES_FLOW_FIGURE_H
#define TB_PICTURES_FLOW_FIGURE_H

#include "pictures/plot.h"

#define TB_FLOW_TITLE "Gradient flow by depth"

tb_status tb_flow_check(tb_ctx *ctx, const tb_flow_figure *f);
/** Least finite value and its index, n if there is none. */
double tb_flow_least(const double *y, size_t n, size_t *at);
/** The lane falls below 0.1 somewhere (verdict TOLL). */
bool tb_flow_fades(const tb_flow_curve *r);
/** lane, total and, if given, branch; returns how many. */
size_t tb_flow_series(const tb_flow_curve *r, tb_series out[3]);
/** "post-ln, 12 blocks"; NULL without memory, as the next. */
const char *tb_flow_name(tb_arena *a, const tb_flow_curve *r);
/** "lane 0.54 at k = 0, least 0.23 at k = 3" */
const char *tb_flow_words(tb_arena *a, const char *what, const double *y,
                          size_t n);
/** The log axis that fits every run and 1. */
tb_status tb_flow_scale(tb_arena *a, const tb_flow_figure *f, tb_axis *y);

#endif
