/* SPDX-License-Identifier: MIT */
/* What the two norms share with the file that measures their Jacobian. */
#ifndef TB_OPS_OP_NORM_H
#define TB_OPS_OP_NORM_H

#include "ops/op_help.h"

/** The gain vector, NULL if the norm has none. */
const void *tb_op_norm_gain_vector(const tb_opcall *c);

/** tb_op_norm_gain - the op table's `gain` of either norm, by its formula. */
void tb_op_norm_gain(const tb_opcall *c, tb_norm_kind kind, double *rms,
                     double *max);

#endif
