/* SPDX-License-Identifier: MIT */
/* A stop watch for the parts of an update; without a model it does nothing. */
#ifndef TB_TRAIN_TIMING_H
#define TB_TRAIN_TIMING_H

#include "model/model.h"
#include "plan/plan_profile.h"
#include "tollbooth/train.h"

/** Sums over the updates so far. The first one is left out as soon as there is
 * another: it opens libraries and touches memory. */
typedef struct tb_timing {
    tb_model *model; /* NULL: nobody asked */
    tb_profile plans;
    double data, optimizer, other, all;
    double start, last;
    size_t updates;
    bool warm; /* the first update was taken out */
} tb_timing;

void tb_timing_open(tb_timing *t, tb_model *m);

/** An update: _start, a _lap behind each part that adds to its sum, _stop. */
void tb_timing_start(tb_timing *t);
void tb_timing_lap(tb_timing *t, double *to);
void tb_timing_stop(tb_timing *t);

/** tb_timing_give - means per update. */
void tb_timing_give(const tb_timing *t, tb_train_profile *out);

#endif
