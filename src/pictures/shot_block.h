/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: one floor from the side. Lane and branch meet at
 * the plus; the booth stands astride the merged lane or on the branch, and
 * what comes back passes it where it stands. Places and ids are the same for
 * both placements: only the booth moves. */
#ifndef TB_PICTURES_SHOT_BLOCK_H
#define TB_PICTURES_SHOT_BLOCK_H

#include "pictures/shot_tower.h"

typedef struct shot_block_of {
    const char *title;
    const stack_run *run;
    size_t floor;     /* from x_(floor-1) to x_floor */
    double width;     /* px; 0: 740 */
    const char *note; /* under the formula, or NULL */
    bool plain;       /* without numbers, rows closer, x and x' */
} shot_block_of;

extern const shot_face shot_block;

/** block_formula - the block's Jacobian with the I in a box, in the middle of
 * `width`; behind a barrier where a booth stands on the lane. `full`: with what
 * J_LN is taken at. */
void block_formula(tb_scene *s, double x, double y, double width, bool post,
                   bool full);

#endif
