/* SPDX-License-Identifier: MIT */
/* What the cells of a Jacobian are written with: how many factors, and the
 * names for what is long and returns. */
#ifndef TB_GRAPH_JACOBIAN_LAYOUT_H
#define TB_GRAPH_JACOBIAN_LAYOUT_H

#include "graph/pen.h"

/** Formulas shorter than LINE need no names and stand in one row. */
enum { TB_JACOBIAN_LINE = 100 };

typedef struct tb_layout {
    tb_ctx *ctx;
    tb_arena *a;
    const tb_jacobian *j;
    int shown;   /* factors that are written */
    size_t left; /* bytes that all of it may still take */
    tb_pen_names names;
    tb_buf scratch;
} tb_layout;

/** tb_layout_open - counts the factors and chooses the names; the scratch
 * buffer is the caller's to clear, also after a failure. */
tb_status tb_layout_open(tb_layout *y, tb_ctx *ctx, tb_arena *a,
                         const tb_jacobian *j);
/** tb_layout_pen - for step f. */
tb_pen tb_layout_pen(tb_layout *y, tb_notation note, int f, tb_buf *out);
const tb_jx *tb_layout_entry(const tb_layout *y, int f, int cell);
int tb_layout_cells(const tb_layout *y);
/** tb_layout_same - whether every step is written in the same words. */
bool tb_layout_same(tb_layout *y);
/** tb_layout_cell - lead: another factor follows, c I is c. */
void tb_layout_cell(tb_layout *y, tb_notation note, int f, int cell, bool lead,
                    tb_buf *out);
/** What names stand for: a value, a run of factors, stream i at the start of
 * step f. */
void tb_layout_name(tb_layout *y, tb_notation note, const tb_pen_name *n,
                    tb_buf *out);
void tb_layout_run(tb_layout *y, tb_notation note, const tb_pen_run *r,
                   tb_buf *out);
void tb_layout_stream(tb_layout *y, tb_notation note, int f, int i,
                      tb_buf *out);

#endif
