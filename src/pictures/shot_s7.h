/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: the cards of S7, one function each. */
#ifndef TB_PICTURES_SHOT_S7_H
#define TB_PICTURES_SHOT_S7_H

#include "pictures/shot_panels.h"
#include "pictures/shot_tower.h"

/* of one norm */
tb_status s7_silent(tb_shot *s); /* a: F = 0 */
tb_status s7_flat(tb_shot *s);   /* b: sigma -> 0 */
tb_status s7_sum(tb_shot *s);    /* e: the sum of a norm's outputs */

/* of stacks */
tb_status s7_depth(tb_shot *s); /* d */

/** Two stacks side by side, of the same height and law of widths. */
tb_status s7_pair(tb_shot *s, const stack_run *left, const char *left_title,
                  const stack_run *right, const char *right_title);

#endif
