/* SPDX-License-Identifier: MIT */
/* One evaluation: EXPR with its numbers in place, ready to run. */
#ifndef TB_MODEL_EVAL_STATE_H
#define TB_MODEL_EVAL_STATE_H

#include "model/parts.h"
#include "tollbooth/eval.h"

/** An input or a parameter: something one may differentiate by. */
typedef struct tb_eval_var {
    const char *name;
    const char *alias; /* the shorter name it was set by: "w", or NULL */
    bool is_param;
    bool is_buffer; /* a running statistic: no gradient, no tangent */
    int index;      /* into the graph's inputs or params */
    tb_shape shape;
    size_t count; /* elements */
    int rank;
    size_t dims[TB_EVAL_RANK];
    void *data; /* [count] of the state's dtype */
} tb_eval_var;

typedef struct tb_eval_state {
    tb_ctx *ctx;
    const tb_eval *spec;
    tb_arena arena; /* everything but the result */
    tb_block *block;
    tb_sizes sizes;
    tb_graph *graph;
    tb_dtype dtype;
    int rank; /* of the lists: 1 [d], 2 [T,d], 3 [B,T,d]; 0: none */
    size_t batch, time;
    size_t *times; /* per node: tokens of a sequence of its rows */
    size_t nvars;  /* inputs, then params, in the graph's order */
    tb_eval_var *vars;
    /* y: the outputs joined along the width */
    size_t rows, width;
    int y_rank;
    size_t y_dims[TB_EVAL_RANK];
    /* run */
    tb_plan *plan;
    tb_run run;
    void **outputs; /* [noutputs] */
    void **gin, **gparams, **gout;
} tb_eval_state;

/** tb_eval_open - parse, build, place the numbers; nothing large but the
 * inputs is allocated yet. Closed by tb_eval_close, also after a failure. */
tb_status tb_eval_open(tb_eval_state *s, tb_ctx *ctx, const tb_eval *spec,
                       tb_dtype dtype);
/** Steps of tb_eval_open: ranks, sizes and graph; then every input and
 * parameter with its numbers. */
tb_status tb_eval_make_graph(tb_eval_state *s);
tb_status tb_eval_make_vars(tb_eval_state *s);
/** tb_eval_plan - the plan, its buffers, and the forward pass. */
tb_status tb_eval_plan(tb_eval_state *s, unsigned passes);
tb_status tb_eval_forward(tb_eval_state *s);
void tb_eval_close(tb_eval_state *s);

/** tb_eval_find - the variable called `name` ("norm.gain", "w" for
 * "w.weight"), or NULL. */
tb_eval_var *tb_eval_find(tb_eval_state *s, const char *name);
/** tb_eval_need - the same or TB_ERR_INPUT that names `what` and the likely
 * meant name. */
tb_status tb_eval_need(tb_eval_state *s, const char *what, const char *name,
                       tb_eval_var **out);
/** tb_eval_need_input - the same, of what one may differentiate by. */
tb_status tb_eval_need_input(tb_eval_state *s, const char *what,
                             const char *name, tb_eval_var **out);
/** tb_eval_fits - TB_ERR_SHAPE unless a value has these dims. */
tb_status tb_eval_fits(tb_eval_state *s, const char *what,
                       const tb_eval_value *v, int rank, const size_t *dims);

/** tb_eval_rows - of a node's value: tokens of all sequences, or 1. */
size_t tb_eval_rows(const tb_eval_state *s, int node);

/** tb_eval_buffer - zeroed, 64-byte aligned, dies with the state. */
void *tb_eval_buffer(tb_eval_state *s, size_t n, size_t size);
void tb_eval_load(const tb_eval_state *s, const double *from, size_t n,
                  void *to);
void tb_eval_store(const tb_eval_state *s, const void *from, size_t n,
                   double *to);

/** tb_eval_join - the outputs' buffers as rows of y. */
void tb_eval_join(const tb_eval_state *s, void *const *outputs, double *y);
/** tb_eval_split - y's layout into the outputs' buffers. */
void tb_eval_split(const tb_eval_state *s, const double *y, void **outputs);

/** tb_eval_back - one backward pass from s->gout into the gradients of
 * `want` variables (their gin or gparams entries must be set). */
tb_status tb_eval_back(tb_eval_state *s);

/** Columns of a Jacobian: variables one after the other. */
typedef struct tb_eval_cols {
    size_t nvars, count; /* variables, elements in all */
    tb_eval_var **vars;
} tb_eval_cols;

tb_status tb_eval_columns(tb_eval_state *s, const char *names,
                          tb_eval_cols *out);
/** tb_eval_jacobian_size - TB_ERR_ARG above 1 GiB. */
tb_status tb_eval_jacobian_size(tb_eval_state *s, const tb_eval_cols *c,
                                bool blocks, size_t *count);
tb_status tb_eval_jacobian(tb_eval_state *s, const tb_eval_cols *c, bool blocks,
                           double *out);

#endif
