/* SPDX-License-Identifier: MIT */
/* Leaves of the graph: values that are given, not computed. The node owns the
 * shape and the storage. */
#include "ops/op_help.h"

const tb_op tb_op_input = {
    .name = "input",
    .symbol = "x",
    .lane = TB_LANE_LEAF,
    .jac = TB_JAC_LEAF,
};

const tb_op tb_op_param = {
    .name = "param",
    .symbol = "w",
    .lane = TB_LANE_LEAF,
    .jac = TB_JAC_LEAF,
};

const tb_op tb_op_tokens = {
    .name = "tokens",
    .symbol = "tokens",
    .lane = TB_LANE_LEAF,
    .jac = TB_JAC_LEAF,
};
