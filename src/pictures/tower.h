/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: what the tower of floors, its text and the shots
 * that draw parts of one share. */
#ifndef TB_PICTURES_TOWER_H
#define TB_PICTURES_TOWER_H

#include "pictures/plot.h"

/** How the lane looks where it carries `gain`: where it lost something, red and
 * dashed. */
tb_style tower_lane(double gain);
/** A vertical or horizontal arrow with a small head; its shaft has st->line. */
void tower_arrow(tb_scene *s, double x0, double y0, double x1, double y1,
                 const tb_style *st);
/** The law and the arrows that are shown, from (x, y) on; returns the y
 * below. */
double tower_legend(tb_scene *s, double x, double y, double width,
                    tb_tower_show show);

/** TB_ERR_ARG without a title, floors or gains. */
tb_status tower_check(tb_ctx *ctx, const tb_tower *t);
/** Of lane and total, with room from 0.5 to 2. */
void tower_axis(const tb_tower *t, tb_axis *a);
/** k of the sublayer output at the top of floor `floor`; 0: the ground. */
size_t tower_k(const tb_tower *t, size_t floor);
/** "attn, toll 0.71" of a floor; without its number where there is none. */
const char *tower_floor_words(tb_arena *a, const tb_tower *t, size_t floor);

#endif
