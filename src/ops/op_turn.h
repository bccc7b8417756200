/* SPDX-License-Identifier: MIT */
/* The angles of ropes, for rope itself and for plans, which hold them. */
#ifndef TB_OPS_OP_TURN_H
#define TB_OPS_OP_TURN_H

#include "ops/op_help.h"

/** Sizes and angles of a rope. */
typedef struct tb_turn {
    size_t heads, head, w; /* w: elements of a head that turn */
    bool interleaved;
    double base, start;
    double *angles; /* [time, w]: a token's cosines, then its sines */
} tb_turn;

/** tb_turn_of - of rope's attributes, on a stream of this width. */
tb_turn tb_turn_of(const double *attr, size_t width);
/** tb_turn_same - have both the same angles? */
bool tb_turn_same(const tb_turn *a, const tb_turn *b);

/** tb_turn_bytes - of the angles of so many tokens. */
size_t tb_turn_bytes(const tb_turn *r, size_t time);
/** tb_turn_fill - computes them, in parallel: they are a good part of the cost
 * where sequences are few. */
void tb_turn_fill(const tb_opcall *c, const tb_turn *r, size_t time);

#endif
