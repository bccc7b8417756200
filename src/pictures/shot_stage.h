/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: one block as a stage. A list goes into the box F,
 * a list comes out; a skip may arch over the box to a plus, where both lists
 * are added; backward arrows may run the same roads. The same id is the same
 * thing in every shot. */
#ifndef TB_PICTURES_SHOT_STAGE_H
#define TB_PICTURES_SHOT_STAGE_H

#include "pictures/shot_parts.h"

/** Backward signals: lengths relative to the one that arrives at y. */
typedef struct stage_back {
    double out;    /* 1 */
    double hw, br; /* through the skip, through the box */
    double in;     /* both at x */
} stage_back;

typedef struct shot_stage {
    const char *title, *desc; /* of the panel; required */
    const char *box, *note;   /* in the box: "F", "linear" */
    size_t d;
    const double *x, *f, *y; /* y NULL: there is no plus */
    bool skip;               /* else its road is broken */
    bool box_broken;
    const stage_back *back;            /* NULL: forward only */
    const double *x_nudged, *y_nudged; /* thin lines; or NULL */
    size_t nudged;                     /* x_j of them, from 1; 0: none */
} shot_stage;

extern const shot_face shot_stage_face;

/** A list as rows of horizontal bars on one scale: x_1 [####] 2. */
typedef struct stage_bars {
    const char *title, *id, *letter; /* "x", ids "x-1", labels "x₁" */
    size_t d;
    const double *v;
    const double *part; /* NULL, or: v is drawn as part, then the rest */
    const double *nudged;
    size_t focus;          /* this row alone is in full ink; 0: all */
    const shot_stage *sum; /* NULL, or: titles say what its row adds up to */
    tb_tone tone, rest;
    double lo, hi; /* of the scale */
    double x, top, w;
} stage_bars;

double stage_row_height(size_t d);
void stage_bars_draw(tb_scene *s, const stage_bars *b);

#endif
