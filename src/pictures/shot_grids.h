/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: I + dF/dx = J as three grids with one scale. */
#ifndef TB_PICTURES_SHOT_GRIDS_H
#define TB_PICTURES_SHOT_GRIDS_H

#include "pictures/shot_parts.h"

typedef struct shot_grids {
    const char *title, *desc;
    size_t d;
    const double *one, *f, *j; /* d x d each */
    size_t column;             /* marked, from 1; 0: none */
} shot_grids;

extern const shot_face shot_grids_face;

#endif
