/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: shots. One row per shot says what it shows, which
 * numbers it takes, and what computes it; shot.c prints what that leaves. A
 * shot that is no chart gets a further member of tb_shot, and its faces. */
#ifndef TB_PICTURES_SHOT_PARTS_H
#define TB_PICTURES_SHOT_PARTS_H

#include "base/base.h"
#include "base/number.h"
#include "tollbooth/shot.h"

enum { SHOT_INPUTS = 8 };

/** A number or list that --set may replace, with the shot's own value. */
typedef struct shot_input {
    const char *name;
    int rank;
    size_t dims[TB_EVAL_RANK];
    const double *data;
} shot_input;

typedef struct shot_row {
    const char *name, *about, *inputs;
    shot_input input[SHOT_INPUTS]; /* ends at the first without a name */
    tb_status (*build)(tb_shot *s);
} shot_row;

struct tb_shot {
    tb_ctx *ctx;
    tb_arena arena; /* everything the faces read */
    const shot_row *row;
    tb_eval_value value[SHOT_INPUTS]; /* of the row's inputs */
    tb_chart chart;
};

/** shot_value - the input called `name`, which the row has. */
const tb_eval_value *shot_value(const tb_shot *s, const char *name);
/** shot_whole - element i of it as a whole number from `low` to `high`;
 * TB_ERR_INPUT otherwise. */
tb_status shot_whole(const tb_shot *s, const char *name, size_t i, size_t low,
                     size_t high, size_t *out);
void *shot_alloc(tb_shot *s, size_t n, size_t size); /* NULL: no memory */

extern const shot_row shot_batchnorm;

#endif
