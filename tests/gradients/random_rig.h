/* SPDX-License-Identifier: MIT */
/* One random block's graph with numbers, and plans of it of every kind that
 * run on those numbers. Workspaces start as NaN. */
#ifndef TB_TESTS_RANDOM_RIG_H
#define TB_TESTS_RANDOM_RIG_H

#include "model/model.h"
#include "random_block.h"
#include "tb_test.h"

#include <stdlib.h>

/** A graph and, in double, what goes in, where from, and along what. */
typedef struct rig {
    tb_test *T;
    tb_arena arena;
    tb_graph *g;
    const double (*attr)[TB_OP_ATTRS];
    size_t batch, time, other; /* other: tokens of a memory */
    uint64_t seed;
    double **in, **par;   /* values, by input and parameter */
    double **tin, **tpar; /* tangents */
    double **gout;        /* cotangents, by output */
} rig;

/** One plan of the graph, or of one like it. */
typedef struct machine {
    rig *r;
    tb_graph *g;
    tb_dtype dtype;
    tb_plan *plan;
    tb_run run;
    void **in, **par, **out;
    void **gin, **gpar, **gout, **tout;
} machine;

static inline void *rig_room(rig *r, size_t bytes)
{
    void *p = tb_arena_aligned(&r->arena, bytes + 64);
    if (!p)
        abort();
    return p;
}

static inline bool rig_ids(const tb_graph *g, int node)
{
    return g->nodes[node].shape.kind == TB_SHAPE_TOKENS;
}

/* Elements of a node's value. */
static inline size_t rig_count(const rig *r, const tb_graph *g, int node)
{
    const tb_node *n = &g->nodes[node];
    return tb_shape_count(n->shape, r->batch,
                          n->of_memory ? r->other : r->time);
}

static inline double **rig_numbers(rig *r, size_t n)
{
    return rig_room(r, n * sizeof(double *));
}

/* Numbers by name. Gains, scalars, vectors and running statistics stay away
 * from 0, so that they may divide; masks are ones. */
static inline double *rig_draw(rig *r, const tb_graph *g, int node,
                               const char *what, const char *name)
{
    size_t n = rig_count(r, g, node);
    double *v = rig_room(r, n * sizeof *v);
    tb_buf key;
    const tb_param *p =
        g->nodes[node].param < 0 ? NULL : &g->params[g->nodes[node].param];
    tb_buf_init(&key, r->T->ctx);
    tb_buf_printf(&key, "%s %s %d", what, name ? name : "", node);
    tb_rng rng = tb_rng_make(r->seed, tb_buf_str(&key));
    bool value = tb_streq(what, "value");
    bool away = value && p && p->role != TB_ROLE_BIAS;
    bool matrix =
        p && (p->role == TB_ROLE_MATRIX || p->role == TB_ROLE_EMBEDDING);
    double scale = matrix ? 1 / tb_sqrt((double)g->nodes[node].shape.width) : 1;
    for (size_t i = 0; i < n; i++)
        v[i] = away && !matrix ? 0.4 + tb_rng_uniform(rng, i)
                               : scale * tb_rng_normal(rng, i);
    for (size_t i = 0; i < n && value; i++) /* the same in both types */
        v[i] = (double)(float)v[i];
    if (name && strstr(name, ".keep")) /* a mask: no number to move */
        for (size_t i = 0; i < n; i++)
            v[i] = value && (i == 0 || tb_rng_uniform(rng, i) < 0.7);
    if (value && rig_ids(g, node)) {
        int32_t *ids = (int32_t *)(void *)v;
        for (size_t i = 0; i < n; i++)
            ids[i] = (int32_t)tb_rng_below(rng, n + i, 5);
    }
    tb_buf_clear(&key);
    return v;
}

static inline void rig_fill(rig *r)
{
    const tb_graph *g = r->g;
    r->in = rig_numbers(r, (size_t)g->ninputs);
    r->tin = rig_numbers(r, (size_t)g->ninputs);
    r->par = rig_numbers(r, (size_t)g->nparams);
    r->tpar = rig_numbers(r, (size_t)g->nparams);
    r->gout = rig_numbers(r, (size_t)g->noutputs);
    for (int i = 0; i < g->ninputs; i++) {
        int n = g->inputs[i];
        r->in[i] = rig_draw(r, g, n, "value", g->nodes[n].name);
        r->tin[i] = rig_draw(r, g, n, "tangent", g->nodes[n].name);
    }
    for (int i = 0; i < g->nparams; i++) {
        int n = g->params[i].node;
        r->par[i] = rig_draw(r, g, n, "value", g->params[i].name);
        r->tpar[i] = rig_draw(r, g, n, "tangent", g->params[i].name);
        if (g->params[i].role == TB_ROLE_BUFFER)
            memset(r->tpar[i], 0, rig_count(r, g, n) * sizeof(double));
    }
    for (int o = 0; o < g->noutputs; o++)
        r->gout[o] =
            rig_draw(r, g, g->outputs[o].node, "cotangent", g->outputs[o].name);
}

/* --- machines ------------------------------------------------------------- */

static inline void *rig_copy(rig *r, tb_dtype t, const double *v, size_t n)
{
    void *to = rig_room(r, n * 8);
    for (size_t i = 0; i < n; i++)
        tb_test_set(t, to, i, v[i]);
    return to;
}

static inline void **rig_poison(rig *r, const tb_graph *g, int n,
                                const int *nodes)
{
    void **to = rig_room(r, (size_t)n * sizeof *to);
    for (int i = 0; i < n; i++) {
        size_t bytes = rig_count(r, g, nodes[i]) * 8;
        to[i] = rig_room(r, bytes);
        memset(to[i], 0xff, bytes);
    }
    return to;
}

static inline void machine_slots(machine *m, double *const *in)
{
    rig *r = m->r;
    tb_graph *g = m->g;
    int *params = rig_room(r, (size_t)g->nparams * sizeof *params);
    int *outputs = rig_room(r, (size_t)g->noutputs * sizeof *outputs);
    m->in = rig_room(r, (size_t)g->ninputs * sizeof *m->in);
    m->par = rig_room(r, (size_t)g->nparams * sizeof *m->par);
    m->gout = rig_room(r, (size_t)g->noutputs * sizeof *m->gout);
    for (int i = 0; i < g->ninputs; i++)
        m->in[i] =
            rig_ids(g, g->inputs[i])
                ? (void *)in[i]
                : rig_copy(r, m->dtype, in[i], rig_count(r, g, g->inputs[i]));
    for (int i = 0; i < g->nparams; i++) {
        params[i] = g->params[i].node;
        m->par[i] =
            rig_copy(r, m->dtype, r->par[i], rig_count(r, g, params[i]));
    }
    for (int o = 0; o < g->noutputs; o++) {
        outputs[o] = g->outputs[o].node;
        if (o < r->g->noutputs)
            m->gout[o] =
                rig_copy(r, m->dtype, r->gout[o], rig_count(r, g, outputs[o]));
    }
    m->gin = rig_poison(r, g, g->ninputs, g->inputs);
    m->gpar = rig_poison(r, g, g->nparams, params);
    m->out = rig_poison(r, g, g->noutputs, outputs);
    m->tout = rig_poison(r, g, g->noutputs, outputs);
}

static inline void machine_dirty(machine *m)
{
    memset(m->run.work, 0xff, tb_plan_work_bytes(m->plan));
}

/** Of graph g, whose inputs are `in`; after its forward pass. */
static inline tb_status machine_make(machine *m, rig *r, tb_graph *g,
                                     double *const *in, tb_dtype dtype,
                                     unsigned passes)
{
    *m = (machine){.r = r, .g = g, .dtype = dtype};
    size_t *times = rig_room(r, (size_t)g->ninputs * sizeof *times);
    for (int i = 0; i < g->ninputs; i++)
        times[i] = g->nodes[g->inputs[i]].of_memory ? r->other : 0;
    const tb_plan_spec spec = {.graph = g,
                               .batch = r->batch,
                               .time = r->time,
                               .input_time = times,
                               .dtype = dtype,
                               .passes = passes,
                               .name = "random"};
    TB_TRY(tb_plan_create(r->T->ctx, &spec, &m->plan));
    machine_slots(m, in);
    size_t saved = tb_plan_saved_bytes(m->plan);
    m->run = (tb_run){.plan = m->plan,
                      .saved = rig_room(r, saved),
                      .work = rig_room(r, tb_plan_work_bytes(m->plan)),
                      .inputs = (const void *const *)m->in,
                      .outputs = m->out,
                      .params = (const void *const *)m->par,
                      .attr = r->attr,
                      .seed = r->seed,
                      .step = 3,
                      .scope = "layers.0"};
    memset(m->run.saved, 0xff, saved);
    machine_dirty(m);
    return tb_plan_forward(r->T->ctx, &m->run);
}

static inline void machine_free(machine *m)
{
    if (m->plan)
        tb_plan_destroy(m->r->T->ctx, m->plan);
    m->plan = NULL;
}

/** The whole backward pass, weights from 0. */
static inline tb_status machine_backward(machine *m, bool cut)
{
    tb_graph *g = m->g;
    bool *fresh = rig_room(m->r, (size_t)g->nparams);
    memset(fresh, 1, (size_t)g->nparams);
    const tb_bwd b = {.hi = -1,
                      .lo = -1,
                      .cut = cut,
                      .gout = (const void *const *)m->gout,
                      .gin = m->gin,
                      .gparams = m->gpar,
                      .fresh = fresh};
    machine_dirty(m);
    return tb_plan_backward(m->r->T->ctx, &m->run, &b);
}

static inline tb_status machine_tangent(machine *m, bool weights)
{
    rig *r = m->r;
    const void **tin = rig_room(r, (size_t)m->g->ninputs * sizeof *tin);
    for (int i = 0; i < r->g->ninputs; i++)
        tin[i] = rig_ids(m->g, m->g->inputs[i]) ? NULL : r->tin[i];
    machine_dirty(m);
    return tb_plan_tangent(r->T->ctx, &m->run, tin,
                           weights ? (const void *const *)r->tpar : NULL,
                           m->tout);
}

/* --- a graph with numbers ------------------------------------------------- */

/** A copy of the graph with room for as many inputs and outputs as nodes. */
static inline tb_graph *rig_graph(rig *r)
{
    const tb_graph *g = r->g;
    size_t n = (size_t)g->nnodes;
    tb_graph *copy = rig_room(r, sizeof *copy);
    *copy = *g;
    copy->nodes = rig_room(r, n * sizeof *copy->nodes);
    copy->inputs = rig_room(r, 2 * n * sizeof *copy->inputs);
    copy->outputs = rig_room(r, 2 * n * sizeof *copy->outputs);
    memcpy(copy->nodes, g->nodes, n * sizeof *g->nodes);
    memcpy(copy->inputs, g->inputs, (size_t)g->ninputs * sizeof(int));
    memcpy(copy->outputs, g->outputs, (size_t)g->noutputs * sizeof *g->outputs);
    return copy;
}

/** The same graph in which the values of some nodes are given: those `holds`
 * says, with the values they have in m, which keeps all. */
static inline tb_graph *rig_hold(machine *m, bool (*holds)(const tb_node *n),
                                 double ***in)
{
    rig *r = m->r;
    tb_graph *g = rig_graph(r);
    *in = rig_numbers(r, 2 * (size_t)g->nnodes);
    memcpy(*in, r->in, (size_t)g->ninputs * sizeof **in);
    for (int i = 0; i < g->nnodes; i++)
        if (holds(&r->g->nodes[i])) {
            (*in)[g->ninputs] = rig_copy(r, TB_F64, tb_plan_value(&m->run, i),
                                         rig_count(r, g, i));
            g->inputs[g->ninputs++] = i;
            g->nodes[i].op = &tb_op_input;
            g->nodes[i].nin = 0;
        }
    return g;
}

#endif
