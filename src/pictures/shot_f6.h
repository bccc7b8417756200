/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: the drawings of F6. */
#ifndef TB_PICTURES_SHOT_F6_H
#define TB_PICTURES_SHOT_F6_H

#include "pictures/shot_panels.h"

/** Beads on a branch and a lane; true where a norm is parked. */
typedef struct f6_beads {
    bool fork, skip, before, behind, merged;
    const char *label, *equation;
} f6_beads;

extern const shot_face f6_beads_face;

enum { F6_FLOORS = 4, F6_DIALS = 6 };

/** f6_dials - x_i for all floors of a small stack of that equation, as rows of
 * dials; i and j of the shot are marked. */
tb_status f6_dials(tb_shot *s, const char *equation);

#endif
