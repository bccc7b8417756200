/* SPDX-License-Identifier: MIT */
/* Running ops: one call as a whole, and the row parts of several calls as one
 * pass over memory. Rows are cut into pieces by their number alone; a piece
 * goes in tiles, and each tile through all calls while it is in the cache. */
#ifndef TB_OPS_OP_ROWS_H
#define TB_OPS_OP_ROWS_H

#include "ops/op.h"

/** tb_op_forward, _backward, _tangent - all parts of one call. */
void tb_op_forward(const tb_op *op, const tb_opcall *c);
void tb_op_backward(const tb_op *op, const tb_opcall *c);
void tb_op_tangent(const tb_op *op, const tb_opcall *c);
/** tb_op_scratch - bytes of scratch that any of them needs. */
size_t tb_op_scratch(const tb_op *op, const tb_opcall *c);

/** tb_op_fwd_rows - has this call a row part in forward? */
bool tb_op_fwd_rows(const tb_op *op, const tb_opcall *c);
/** tb_op_row_input - is input i's gradient the business of the row part? */
bool tb_op_row_input(const tb_op *op, int i);
/** tb_op_row_wise - is it written row by row? (Else it is joined.) */
bool tb_op_row_wise(const tb_op *op, const tb_opcall *c, int i);

/** The row part of one call. */
typedef struct tb_rowcall {
    const tb_op *op;
    tb_rows_fn rows;
    bool back;
    tb_opcall c;
} tb_rowcall;

/** Calls of equally many rows, each with scratch of its own. A pointer into
 * the first `store_bytes` of store means one tile of a value that nobody reads
 * but these calls; every slot has so many bytes. */
typedef struct tb_rowgroup {
    tb_rowcall *calls;
    size_t n, rows;
    size_t tile; /* rows; see tb_rows_tile */
    char *store;
    size_t store_bytes, slots;
} tb_rowgroup;

void tb_rows_run(tb_ctx *ctx, const tb_rowgroup *g);
/** tb_rows_tile - rows of a tile if a row of all values takes `bytes`. */
size_t tb_rows_tile(size_t bytes);
/** tb_rows_bytes - one row of everything a call's row part reads or writes. */
size_t tb_rows_bytes(const tb_opcall *c);

#endif
