/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: a tower of a few floors with one box on each, for
 * the foundations: boxes alone (F2), or beside a skip, with the gradient
 * coming down by both roads (F3). */
#ifndef TB_PICTURES_SHOT_HOUSE_H
#define TB_PICTURES_SHOT_HOUSE_H

#include "pictures/shot_parts.h"

enum { HOUSE_MOST = 6 };

typedef struct house_floor {
    const char *name; /* in its box */
    bool broken;      /* nothing goes through the box */
    bool wrong;       /* what leaves it does not fit */
    double hw, br;    /* gradient back by skip and through the box ... */
    double cos;       /* ... and how they stand to each other */
} house_floor;

typedef struct shot_house {
    const char *title, *desc, *note;
    size_t n, d;                     /* floors; numbers in a list */
    bool skip;                       /* with backward arrows */
    house_floor floors[HOUSE_MOST];  /* from the ground */
    double length[HOUSE_MOST + 1];   /* of x_i */
    double gradient[HOUSE_MOST + 1]; /* at x_i; relative to the top */
    const char *error;               /* why the wrong box is refused */
} shot_house;

extern const shot_face shot_house_face;

#endif
