/* SPDX-License-Identifier: MIT */
/* A part of a graph as a graph of its own, for measurements: some nodes are
 * given from outside, and only what others need of them is computed. */
#ifndef TB_MODEL_PIECE_H
#define TB_MODEL_PIECE_H

#include "plan/plan.h"

typedef struct tb_piece {
    tb_graph *graph; /* inputs: the held nodes in their order, then inputs of
                        the graph that are needed; outputs: outs */
    int *node;       /* per node of the piece, the one it was */
    int *param;      /* per parameter of the piece */
} tb_piece;

/** tb_piece_cut - what `outs` need, down to `held` and the leaves. */
tb_status tb_piece_cut(tb_arena *a, const tb_graph *g, const int *held,
                       int nheld, const int *outs, int nouts, tb_piece *out);

/** A plan of a piece, in double, for one sequence. */
typedef struct tb_piece_run {
    tb_plan *plan;
    tb_run run; /* params, inputs, attr and outputs are the caller's to set */
    double (*attr)[TB_OP_ATTRS]; /* of the run; copied from `attr` */
} tb_piece_run;

/** tb_piece_open - plan and buffers; attr are the attributes of the graph that
 * the piece is from. tb_plan_destroy(plan) closes it. */
tb_status tb_piece_open(tb_ctx *ctx, tb_arena *a, const tb_piece *p,
                        const double (*attr)[TB_OP_ATTRS], size_t time,
                        unsigned passes, tb_piece_run *out);

#endif
