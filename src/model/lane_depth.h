/* SPDX-License-Identifier: MIT */
/* The lane through all blocks of a stack, from the lanes of single blocks. */
#ifndef TB_MODEL_LANE_DEPTH_H
#define TB_MODEL_LANE_DEPTH_H

#include "model/model.h"

/** What stands between one stream below the blocks and one above them. */
typedef struct tb_lane_path {
    tb_lane_kind kind;
    size_t tolls; /* norms on the path that has most */
    double value; /* of CLEAN, SCALED and NONE: the factor */
} tb_lane_path;

/** tb_lane_through - layers first, ..., first + n - 1 of a model (parts), into
 * out[s*s] for s streams: [i*s + j] is stream i out by stream j in. */
tb_status tb_lane_through(const tb_model *m, tb_layers layers,
                          tb_lane_path *out);

#endif
