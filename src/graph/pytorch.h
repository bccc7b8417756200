/* SPDX-License-Identifier: MIT */
/* A stack of graphs as one Python file for PyTorch. The model room knows how
 * weights start and which layer has which graph; everything else is read from
 * the graphs. */
#ifndef TB_GRAPH_PYTORCH_H
#define TB_GRAPH_PYTORCH_H

#include "graph/graph.h"

typedef enum tb_py_dist {
    TB_PY_CONST,      /* value */
    TB_PY_NORMAL,     /* mean 0, standard deviation `value` */
    TB_PY_UNIFORM,    /* from -value to value */
    TB_PY_ORTHOGONAL, /* value times an orthogonal matrix */
    TB_PY_IDENTITY,
    TB_PY_ONEHOT /* 1 at element number `value`, from 1 */
} tb_py_dist;

/** How one parameter starts; `rule` as the text wrote it. */
typedef struct tb_py_start {
    tb_py_dist dist;
    double value;
    const char *rule;
} tb_py_start;

/** The stem, one layer, or the tail; starts[i] of the graph's i-th param. */
typedef struct tb_py_part {
    const tb_graph *graph;
    const tb_py_start *starts;
} tb_py_part;

/** Weights whose lines along one dimension keep length 1: their names, the
 * first number in each replaced by *. */
typedef struct tb_py_unit {
    const char *const *names;
    size_t n;
} tb_py_unit;

typedef struct tb_py_stack {
    const tb_block *block;
    const tb_sizes *sizes;
    const tb_py_part *parts; /* in running order: stem, layers from 1, tail; of
                                two stacks the encoder's stem, layers and final
                                before them. Layers of one section share a
                                graph */
    tb_py_unit unit[2];      /* columns, rows */
} tb_py_stack;

/** tb_pytorch_print - the file, appended to `out`. TB_ERR_INPUT for an op
 * without a row in pytorch_ops.c and for two modules of one name. */
tb_status tb_pytorch_print(tb_ctx *ctx, const tb_py_stack *s, tb_buf *out);

#endif
