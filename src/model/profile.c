/* SPDX-License-Identifier: MIT */
/* Start values by profiling: Admin (Liu L. et al. 2020, arXiv:2004.08249).
 * One forward pass in training mode; a counter starts at 1, of two stacks one
 * for each. Where a sum
 * w*x + f stands, all of w becomes the counter, then
 *
 *   counter = sqrt(Var[w*x] + Var[f])
 *
 * with variances over all elements, and the pass goes on with the new w. A
 * norm's output has variance 1, so w_{k+1}^2 = w_k^2 + Var f_k from the
 * second sublayer on. */
#include "model/parts.h"

/* --- where a profiled parameter stands ------------------------------------ */

static bool is_sum(const tb_node *n)
{
    return n->op == &tb_op_add || n->op == &tb_op_sub;
}

/* The only node that reads `node`, -1 if there is none or more than one. */
static int only_reader(const tb_graph *g, int node)
{
    int found = -1;
    for (int i = node + 1; i < g->nnodes; i++)
        for (int j = 0; j < g->nodes[i].nin; j++) {
            if (g->nodes[i].in[j] != node)
                continue;
            if (found >= 0)
                return -1;
            found = i;
        }
    return found;
}

static int other_operand(const tb_node *n, int node)
{
    return n->in[n->in[0] == node];
}

int tb_profile_product(const tb_graph *g, int param, const char **why)
{
    int leaf = g->params[param].node, product = only_reader(g, leaf);
    *why = "wanted in one place of the block: write vector(1) in place";
    if (product < 0)
        return -1;
    const tb_node *p = &g->nodes[product];
    int sum = p->op == &tb_op_mul ? only_reader(g, product) : -1;
    *why = "wanted as a factor in a sum: w*x + F(x)";
    if (sum < 0 || !is_sum(&g->nodes[sum]))
        return -1;
    int x = other_operand(p, leaf);
    return g->nodes[x].shape.kind == TB_SHAPE_STREAM ? product : -1;
}

/* --- one product ---------------------------------------------------------- */

typedef struct tb_profile {
    tb_model *m;
    const tb_batch *batch;
    double counter;
} tb_profile;

/* E (v - E v)^2 over all elements, in two passes. */
static double variance(const tb_model *m, const tb_part *p, int node,
                       const void *v)
{
    const tb_bound *b = m->bound;
    size_t n =
        tb_shape_count(p->graph->nodes[node].shape, b->batch, b->time[p->time]);
    double mean = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        mean += tb_elem_get(m->dtype, v, i);
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) {
        double c = tb_elem_get(m->dtype, v, i) - mean;
        sum += c * c;
    }
    return sum / (double)n;
}

/* The variances of all terms of the sum that the product begins. */
static double sum_of_variances(const tb_model *m, const tb_part *p,
                               const tb_run *r, int product)
{
    const tb_graph *g = p->graph;
    double sum = variance(m, p, product, tb_plan_value(r, product));
    int at = product, up = only_reader(g, at);
    while (up >= 0 && is_sum(&g->nodes[up])) {
        int f = other_operand(&g->nodes[up], at);
        sum += variance(m, p, f, tb_plan_value(r, f));
        at = up;
        up = only_reader(g, at);
    }
    return sum;
}

/* The profiled parameter that node i multiplies with: its place among the
 * graph's, or -1. */
static int profiled_at(const tb_model *m, const tb_part *p, int i)
{
    const tb_node *n = &p->graph->nodes[i];
    for (int j = 0; j < n->nin; j++) {
        int param = p->graph->nodes[n->in[j]].param;
        if (param >= 0 && m->starts[p->view[param]].profiled)
            return param;
    }
    return -1;
}

static void set_view(tb_model *m, size_t view, double value)
{
    const tb_view *v = &m->views[view];
    m->starts[view].value = value;
    for (size_t i = 0; i < v->count; i++)
        tb_elem_set(m->dtype, m->params, v->offset + i, value);
}

static tb_status profile_one(tb_profile *p, const tb_part *part,
                             const tb_run *r, int product, int param)
{
    tb_model *m = p->m;
    size_t view = part->view[param];
    set_view(m, view, p->counter);
    TB_TRY(tb_plan_forward(m->ctx, r));
    p->counter = tb_sqrt(sum_of_variances(m, part, r, product));
    if (tb_isfinite(p->counter) && p->counter > 0)
        return TB_OK;
    return TB_FAIL(m->ctx, TB_ERR_NONFINITE,
                   "%s: profiled: got standard deviation %g behind it, wanted "
                   "a number above 0",
                   m->views[view].name, p->counter);
}

/* The part runs once for each of its profiled parameters, lowest first: what
 * is above one does not change the values below it. */
static tb_status profile_part(tb_profile *p, size_t at)
{
    const tb_part *part = &p->m->parts[at];
    tb_run r;
    bool ran = false;
    if (part->role == TB_PART_STEM)
        p->counter = 1; /* each stack counts by itself */
    TB_TRY(tb_model_run(p->m, at, p->batch, &r));
    for (int i = 0; i < part->graph->nnodes; i++) {
        int param = profiled_at(p->m, part, i);
        if (param < 0)
            continue;
        TB_TRY(profile_one(p, part, &r, i, param));
        ran = true;
    }
    return ran ? TB_OK : tb_plan_forward(p->m->ctx, &r);
}

/* --- the pass ------------------------------------------------------------- */

/* The last part with a profiled parameter, -1 if there is none. */
static int last_profiled(const tb_model *m)
{
    int last = -1;
    for (size_t p = 0; p < m->nparts; p++)
        for (int i = 0; i < m->parts[p].graph->nparams; i++)
            if (m->starts[m->parts[p].view[i]].profiled)
                last = (int)p;
    return last;
}

/* A binding of its own: the caller's stays as it is. */
static tb_status run_pass(tb_profile *p, int last, size_t batch, size_t time)
{
    tb_model *m = p->m;
    tb_bound *callers = m->bound;
    m->bound = NULL;
    tb_status s = tb_model_bind(m, batch, time, TB_PASS_KEEP);
    for (int at = 0; at <= last && s == TB_OK; at++)
        s = profile_part(p, (size_t)at);
    tb_bound_destroy(m->ctx, m->bound);
    m->bound = callers;
    return s;
}

tb_status tb_model_profile(tb_model *m, const tb_batch *b, size_t batch,
                           size_t time)
{
    tb_profile p = {.m = m, .batch = b};
    int last = last_profiled(m);
    return last < 0 ? TB_OK : run_pass(&p, last, batch, time);
}

tb_status tb_model_profile_random(tb_model *m, uint64_t seed)
{
    size_t time = m->sizes.s.context;
    if (last_profiled(m) < 0)
        return TB_OK;
    tb_rng r = tb_rng_make(seed, "profile");
    int32_t *tokens = tb_alloc(m->ctx, 2 * time, sizeof *tokens);
    if (!tokens)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < 2 * time; i++) /* the second half: the source */
        tokens[i] = (int32_t)tb_rng_below(r, i, m->sizes.s.vocab);
    const tb_batch batch = {
        .tokens = tokens, .seed = seed, .source = tokens + time};
    tb_status s = tb_model_profile(m, &batch, 1, time);
    tb_free(m->ctx, tokens);
    return s;
}
