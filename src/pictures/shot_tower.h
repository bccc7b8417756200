/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: the tower of a shot's stack. */
#ifndef TB_PICTURES_SHOT_TOWER_H
#define TB_PICTURES_SHOT_TOWER_H

#include "pictures/shot_stack.h"
#include "pictures/tower.h"

#define TOWER_SHOWS "both|lane|total" /* tb_tower_show, in its order */

typedef struct shot_tower_of {
    tb_tower tower; /* its floors are those of run */
    const stack_run *run;
} shot_tower_of;

/** shot_tower_make - how it looks is for the caller to set in ->tower. */
shot_tower_of *shot_tower_make(tb_shot *s, const char *title,
                               const stack_run *r);

extern const shot_face shot_tower;

#endif
