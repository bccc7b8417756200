/* SPDX-License-Identifier: MIT */
/* Sums and products of Jacobian terms, kept short: zeros and ones vanish,
 * numbers stand in front, and what several terms end in is written once. */
#ifndef TB_GRAPH_JX_H
#define TB_GRAPH_JX_H

#include "graph/graph.h"

extern const tb_jx tb_jx_zero, tb_jx_one;

/** tb_jx_is_number - a constant or a learned scalar. */
bool tb_jx_is_number(const tb_jx *x);
/** tb_jx_prod, tb_jx_sum - l r and l + sign r; NULL if memory ran out or an
 * operand is NULL. */
const tb_jx *tb_jx_prod(tb_arena *a, const tb_jx *l, const tb_jx *r);
const tb_jx *tb_jx_sum(tb_arena *a, const tb_jx *l, const tb_jx *r, int sign);

#endif
