/* SPDX-License-Identifier: MIT */
/* An equation from its text to a plan that has run forward once, and its
 * value y: the outputs of the graph, joined along the width. */
#include "model/eval_state.h"

/* --- small helpers ------------------------------------------------------- */

void *tb_eval_buffer(tb_eval_state *s, size_t n, size_t size)
{
    size_t bytes;
    if (!tb_mul(n, size, &bytes))
        bytes = SIZE_MAX; /* refused by the arena */
    return tb_arena_aligned(&s->arena, bytes);
}

void tb_eval_load(const tb_eval_state *s, const double *from, size_t n,
                  void *to)
{
    for (size_t i = 0; i < n; i++)
        tb_elem_set(s->dtype, to, i, from[i]);
}

void tb_eval_store(const tb_eval_state *s, const void *from, size_t n,
                   double *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = tb_elem_get(s->dtype, from, i);
}

/* --- y ------------------------------------------------------------------- */

size_t tb_eval_rows(const tb_eval_state *s, int node)
{
    return s->graph->nodes[node].shape.kind == TB_SHAPE_STREAM
               ? s->batch * s->times[node]
               : 1;
}

static tb_status measure_y(tb_eval_state *s)
{
    const tb_graph *g = s->graph;
    tb_shape first = g->nodes[g->outputs[0].node].shape;
    size_t time = s->times[g->outputs[0].node];
    s->rows = tb_eval_rows(s, g->outputs[0].node);
    for (int o = 0; o < g->noutputs; o++) {
        size_t rows = tb_eval_rows(s, g->outputs[o].node);
        if (rows != s->rows)
            return TB_FAIL(s->ctx, TB_ERR_SHAPE,
                           "value: its parts have %zu and %zu rows", s->rows,
                           rows);
        s->width += g->nodes[g->outputs[o].node].shape.width;
    }
    bool stream = first.kind == TB_SHAPE_STREAM && s->rank;
    s->y_rank =
        stream ? s->rank : s->width > 1 || first.kind != TB_SHAPE_SCALAR;
    s->y_dims[0] = s->rank == 3 ? s->batch : time;
    s->y_dims[1] = time;
    if (s->y_rank)
        s->y_dims[s->y_rank - 1] = s->width;
    return TB_OK;
}

void tb_eval_join(const tb_eval_state *s, void *const *outputs, double *y)
{
    const tb_graph *g = s->graph;
    size_t at = 0;
    for (int o = 0; o < g->noutputs; o++) {
        size_t w = g->nodes[g->outputs[o].node].shape.width;
        for (size_t i = 0; i < s->rows * w; i++)
            y[i / w * s->width + at + i % w] =
                tb_elem_get(s->dtype, outputs[o], i);
        at += w;
    }
}

void tb_eval_split(const tb_eval_state *s, const double *y, void **outputs)
{
    const tb_graph *g = s->graph;
    size_t at = 0;
    for (int o = 0; o < g->noutputs; o++) {
        size_t w = g->nodes[g->outputs[o].node].shape.width;
        for (size_t i = 0; i < s->rows * w; i++)
            tb_elem_set(s->dtype, outputs[o], i,
                        y[i / w * s->width + at + i % w]);
        at += w;
    }
}

/* --- open, plan, close --------------------------------------------------- */

tb_status tb_eval_open(tb_eval_state *s, tb_ctx *ctx, const tb_eval *spec,
                       tb_dtype dtype)
{
    *s = (tb_eval_state){.ctx = ctx, .spec = spec, .dtype = dtype};
    tb_arena_init(&s->arena, ctx);
    TB_TRY(tb_block_parse(ctx, NULL, spec->text, strlen(spec->text),
                          TB_PARSE_EVAL, &s->block));
    TB_TRY(tb_eval_make_graph(s));
    TB_TRY(tb_eval_make_vars(s));
    return measure_y(s);
}

void tb_eval_close(tb_eval_state *s)
{
    if (s->plan)
        tb_plan_destroy(s->ctx, s->plan);
    if (s->block)
        tb_block_destroy(s->ctx, s->block);
    tb_arena_clear(&s->arena);
}

static tb_status make_outputs(tb_eval_state *s)
{
    const tb_graph *g = s->graph;
    s->outputs = tb_eval_buffer(s, (size_t)g->noutputs + 1, sizeof(void *));
    s->gout = tb_eval_buffer(s, (size_t)g->noutputs + 1, sizeof(void *));
    s->gin = tb_eval_buffer(s, (size_t)g->ninputs + 1, sizeof(void *));
    s->gparams = tb_eval_buffer(s, (size_t)g->nparams + 1, sizeof(void *));
    if (!s->outputs || !s->gout || !s->gin || !s->gparams)
        return TB_ERR_MEMORY;
    for (int o = 0; o < g->noutputs; o++) {
        size_t n = s->rows * g->nodes[g->outputs[o].node].shape.width;
        s->outputs[o] = tb_eval_buffer(s, n, tb_dtype_size(s->dtype));
        s->gout[o] = tb_eval_buffer(s, n, tb_dtype_size(s->dtype));
        if (!s->outputs[o] || !s->gout[o])
            return TB_ERR_MEMORY;
    }
    return TB_OK;
}

static tb_status make_run(tb_eval_state *s)
{
    const tb_graph *g = s->graph;
    const void **in = tb_eval_buffer(s, (size_t)g->ninputs + 1, sizeof *in);
    const void **params =
        tb_eval_buffer(s, (size_t)g->nparams + 1, sizeof *params);
    double(*attr)[TB_OP_ATTRS] =
        tb_eval_buffer(s, (size_t)g->nnodes, sizeof *attr);
    if (!in || !params || !attr)
        return TB_ERR_MEMORY;
    TB_TRY(tb_graph_attrs(s->ctx, g, &s->sizes, 1, attr));
    for (int i = 0; i < g->nnodes && s->spec->running; i++)
        if (g->nodes[i].op->state)
            attr[i][TB_ATTR_BATCH_STATISTICS] = TB_STATISTICS_FROZEN;
    for (size_t i = 0; i < s->nvars; i++)
        (s->vars[i].is_param ? params : in)[s->vars[i].index] = s->vars[i].data;
    s->run = (tb_run){.inputs = in,
                      .outputs = s->outputs,
                      .params = params,
                      .attr = (const double(*)[TB_OP_ATTRS])attr,
                      .seed = s->spec->seed,
                      .scope = "eval"};
    return tb_run_on(&s->arena, s->plan, &s->run);
}

tb_status tb_eval_plan(tb_eval_state *s, unsigned passes)
{
    const tb_graph *g = s->graph;
    size_t *time = tb_eval_buffer(s, (size_t)g->ninputs + 1, sizeof *time);
    if (!time)
        return TB_ERR_MEMORY;
    for (int i = 0; i < g->ninputs; i++)
        time[i] = s->times[g->inputs[i]];
    tb_plan_spec spec = {.graph = g,
                         .batch = s->batch,
                         .time = s->time,
                         .input_time = time,
                         .dtype = s->dtype,
                         .passes = passes | TB_PASS_KEEP,
                         .name = "eval"};
    TB_TRY(tb_plan_create(s->ctx, &spec, &s->plan));
    TB_TRY(make_outputs(s));
    TB_TRY(make_run(s));
    return tb_eval_forward(s);
}

tb_status tb_eval_forward(tb_eval_state *s)
{
    return tb_plan_forward(s->ctx, &s->run);
}
