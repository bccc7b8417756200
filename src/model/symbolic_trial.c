/* SPDX-License-Identifier: MIT */
/* One layer of a block with random parameters and streams, run forward. */
#include "model/symbolic.h"

/* Matrices keep lengths; gains, scalars, vectors and running statistics stay
 * away from 0, so that they may divide. */
static double start_of(tb_role role, tb_shape shape, tb_rng r, size_t i)
{
    double u = tb_rng_uniform(r, i), z = tb_rng_normal(r, i);
    switch (role) {
    case TB_ROLE_MATRIX:
    case TB_ROLE_EMBEDDING:
        return z / tb_sqrt((double)shape.width);
    case TB_ROLE_BIAS:
        return 0.5 * z;
    case TB_ROLE_GAIN:
    case TB_ROLE_SCALAR:
    case TB_ROLE_VECTOR:
    case TB_ROLE_TABLE:
    case TB_ROLE_BUFFER:
        return 0.4 + u;
    }
    return z;
}

static const void **random_params(tb_trial *t)
{
    const tb_graph *g = t->graph;
    const void **to =
        tb_arena_alloc(&t->arena, (size_t)g->nparams * sizeof *to + 1);
    for (int i = 0; to && i < g->nparams; i++) {
        const tb_param *p = &g->params[i];
        size_t n = tb_shape_count(p->shape, 1, t->time);
        double *v = tb_arena_alloc(&t->arena, n * sizeof *v);
        tb_rng r = tb_rng_make(t->run.seed, p->name);
        if (!v)
            return NULL;
        for (size_t k = 0; k < n; k++)
            v[k] = start_of(p->role, p->shape, r, k);
        to[i] = v;
    }
    return to;
}

static const void **random_inputs(tb_trial *t)
{
    const tb_graph *g = t->graph;
    const void **to =
        tb_arena_alloc(&t->arena, (size_t)g->ninputs * sizeof *to + 1);
    for (int i = 0; to && i < g->ninputs; i++) {
        const tb_node *node = &g->nodes[g->inputs[i]];
        size_t n = tb_shape_count(node->shape, 1, t->time);
        double *v = tb_arena_alloc(&t->arena, n * sizeof *v);
        tb_rng r = tb_rng_make(t->run.seed, node->name);
        if (!v)
            return NULL;
        for (size_t k = 0; k < n; k++)
            v[k] = tb_rng_normal(r, k);
        to[i] = v;
    }
    return to;
}

tb_status tb_trial_plan(tb_trial *t, unsigned passes)
{
    tb_plan_spec spec = {.graph = t->graph,
                         .batch = 1,
                         .time = t->time,
                         .dtype = TB_F64,
                         .passes = passes | TB_PASS_KEEP,
                         .name = "symbolic"};
    TB_TRY(tb_plan_create(t->ctx, &spec, &t->plan));
    TB_TRY(tb_run_on(&t->arena, t->plan, &t->run));
    return tb_plan_forward(t->ctx, &t->run);
}

static tb_status build(tb_trial *t, const tb_block *b,
                       const tb_settings *settings, bool below, size_t l)
{
    double(*attr)[TB_OP_ATTRS];
    TB_TRY(tb_sizes_resolve(t->ctx, b, settings, &t->sizes));
    TB_TRY(tb_graph_layer(t->ctx, &t->arena, b, &t->sizes,
                          below ? TB_STACK_ENCODER : tb_sizes_top(&t->sizes), l,
                          &t->graph));
    attr = tb_arena_alloc(&t->arena, (size_t)t->graph->nnodes * sizeof *attr);
    if (!attr)
        return TB_ERR_MEMORY;
    TB_TRY(tb_graph_attrs(t->ctx, t->graph, &t->sizes, l, attr));
    t->run.attr = (const double(*)[TB_OP_ATTRS])attr;
    t->run.params = random_params(t);
    t->run.inputs = random_inputs(t);
    return t->run.params && t->run.inputs ? TB_OK : TB_ERR_MEMORY;
}

static tb_status open_side(tb_trial *t, tb_ctx *ctx, const tb_block *b,
                           const tb_settings *settings, bool below, size_t l,
                           size_t time, uint64_t seed)
{
    *t = (tb_trial){.ctx = ctx, .time = time};
    t->run = (tb_run){.seed = seed, .scope = "symbolic"};
    tb_arena_init(&t->arena, ctx);
    TB_TRY(build(t, b, settings, below, l));
    return tb_trial_plan(t, TB_PASS_BWD);
}

tb_status tb_trial_open(tb_trial *t, tb_ctx *ctx, const tb_block *b,
                        const tb_settings *settings, size_t l, size_t time,
                        uint64_t seed)
{
    return open_side(t, ctx, b, settings, false, l, time, seed);
}

tb_status tb_trial_below(tb_trial *t, tb_ctx *ctx, const tb_block *b,
                         const tb_settings *settings, size_t l, size_t time,
                         uint64_t seed)
{
    return open_side(t, ctx, b, settings, true, l, time, seed);
}

void tb_trial_close(tb_trial *t)
{
    if (t->plan)
        tb_plan_destroy(t->ctx, t->plan);
    tb_arena_clear(&t->arena);
}

tb_symbolic tb_trial_symbolic(const tb_trial *t)
{
    return (tb_symbolic){t->ctx, t->graph, &t->run, t->time};
}
