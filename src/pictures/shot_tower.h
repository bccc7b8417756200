/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: the tower of floors. A lane goes up, a branch
 * leaves and joins it on every floor, a booth stands on lane or branch, and
 * beside the lane the backward signal comes down: lane alone, and total, as
 * wide as the law of tb_back_width says. A part has the same id whatever
 * the placement, so that a page can move the booth. */
#ifndef TB_PICTURES_SHOT_TOWER_H
#define TB_PICTURES_SHOT_TOWER_H

#include "pictures/shot_stack.h"

typedef enum tower_show { TOWER_BOTH, TOWER_LANE, TOWER_TOTAL } tower_show;
#define TOWER_SHOWS "both|lane|total"

typedef struct shot_tower_of {
    const char *title;
    const stack_run *run;
    tower_show show;
    bool small;         /* without the profile on its right */
    bool roof;          /* room for a booth at the exit, there or not */
    double height;      /* of all floors together, px; 0: 560 */
    double least, most; /* of the profile's axis; both 0: its own */
} shot_tower_of;

extern const shot_face shot_tower;

/** A lane that lost something: drawn red and dashed. */
bool tower_weak(double gain);
/** How the lane looks where it carries `gain`. */
tb_style tower_lane(double gain);
/** A vertical or horizontal arrow with a small head; its shaft has st->line. */
void tower_arrow(tb_scene *s, double x0, double y0, double x1, double y1,
                 const tb_style *st);
/** The law and the arrows that are shown, from (x, y) on; returns the y
 * below. */
double tower_legend(tb_scene *s, double x, double y, double width,
                    tower_show show);

/** shot_tower_text.c */
tb_status shot_tower_term(tb_ctx *ctx, const void *data,
                          const tb_terminal *term, tb_out *out);
tb_status shot_tower_html(tb_ctx *ctx, const void *data, tb_out *out);
void shot_tower_json(const void *data, tb_json *j);

#endif
