/* SPDX-License-Identifier: MIT */
/* Backward of one layer, of a piece between two boundaries, or with branches
 * cut. Readers run before what they read, so a gradient is complete when its
 * node's turn comes. */
#include "plan/plan_parts.h"

typedef struct pass {
    tb_ctx *ctx;
    const tb_run *r;
    const tb_bwd *b;
    const tb_plan *p;
    tb_grad *grad;   /* per node, in work */
    tb_pending rows; /* row parts that wait */
    bool started;    /* from here on sums of gradients wait with them */
    int hi, lo;      /* nodes of a piece; -1, -1: the whole graph */
} pass;

/* --- gradients in the making -------------------------------------------- */

/* to = base + term, base NULL being zero. */
static void move(pass *a, int node, const void *base, const void *term,
                 void *to, bool now)
{
    const tb_opcall *like = &a->p->steps[node].call;
    tb_opcall c = {.ctx = a->ctx,
                   .k = like->k,
                   .batch = like->batch,
                   .time = like->time,
                   .nin = 1,
                   .in_shape = {like->out_shape},
                   .out_shape = like->out_shape,
                   .gout = term,
                   .gin = {to},
                   .gbase = {base}};
    if (now)
        tb_op_backward(&tb_op_identity, &c);
    else
        tb_pending_add(&a->rows, &tb_op_identity, tb_op_identity.bwd_rows, &c,
                       0);
}

static void *gradient_storage(const pass *a, int node)
{
    const tb_plan *p = a->p;
    const tb_step *s = &p->steps[node];
    if (a->grad[node].into)
        return a->grad[node].into;
    if (s->grad_over)
        return tb_plan_storage(a->r, s);
    return (char *)a->r->work + (s->grad_tile ? p->store_at : p->pool_at) +
           s->grad_at;
}

/* One more term. `lasting`: it stays readable as long as the node's own
 * gradient is, so the first one need not be copied. */
static void add_term(pass *a, int node, const void *term, bool lasting)
{
    tb_grad *g = &a->grad[node];
    if (!g->value && !g->adds && lasting && !g->into) {
        g->value = term;
        return;
    }
    void *to = gradient_storage(a, node);
    move(a, node, g->at || g->adds ? to : g->value, term, to, !a->started);
    g->value = g->at = to;
}

/* Where an op's backward leaves the gradient of its input i, and what stands
 * there before. Only streams are written row by row. */
static void point_gradient(pass *a, int node, int i, tb_opcall *c)
{
    const tb_node *n = &a->p->graph->nodes[node];
    tb_grad *g = &a->grad[n->in[i]];
    void *to = gradient_storage(a, n->in[i]);
    const void *base = g->at || g->adds ? to : g->value;
    bool heeds = (n->op->bases & TB_NEED_IN(i)) &&
                 (base ? base == to : !tb_plan_reads_again(n, i));
    if (!heeds && !tb_op_row_wise(n->op, c, i) && base != to) {
        move(a, n->in[i], NULL, base, to, true);
        base = to;
    }
    c->gin[i] = to;
    c->gbase[i] = base;
    g->value = g->at = to;
}

/* --- what is wanted ----------------------------------------------------- */

static bool passes_back(const pass *a, const tb_op *op)
{
    return op->shape && !tb_plan_stops(op) &&
           !(a->b->cut && op->lane == TB_LANE_CUT);
}

/* The caller's buffer for what a node that computes gets. */
static void *seen_buffer(const pass *a, int node)
{
    for (size_t i = 0; i < a->b->nseen; i++)
        if (node == a->b->seen[i])
            return a->b->gseen[i];
    return NULL;
}

/* The caller's buffer for a leaf, for where a piece ends, or for a node to be
 * seen. */
static void *wanted_buffer(const pass *a, int node)
{
    const tb_step *s = &a->p->steps[node];
    if (s->call.out_shape.kind == TB_SHAPE_TOKENS)
        return NULL;
    if (node == a->lo)
        return a->b->gin ? a->b->gin[0] : NULL;
    if (!tb_plan_leaf(a->p, node))
        return seen_buffer(a, node);
    if (s->place == TB_PLACE_PARAM)
        return a->b->gparams ? a->b->gparams[s->slot] : NULL;
    return a->lo < 0 && a->b->gin ? a->b->gin[s->slot] : NULL;
}

/* Does the caller's buffer for this leaf already count? */
static bool counts_already(const pass *a, int node)
{
    const tb_step *s = &a->p->steps[node];
    if (node == a->lo || !tb_plan_leaf(a->p, node))
        return false;
    if (s->place == TB_PLACE_PARAM)
        return !a->b->fresh || !a->b->fresh[s->slot];
    return a->lo < 0 && a->b->adds && a->b->adds[s->slot];
}

/* A node matters if it is wanted or passes back to one that matters. */
static void mark(const pass *a, int node)
{
    const tb_node *n = &a->p->graph->nodes[node];
    tb_grad *g = &a->grad[node];
    *g = (tb_grad){.into = wanted_buffer(a, node)};
    g->adds = g->into && counts_already(a, node);
    g->reach = g->into != NULL;
    if (node == a->lo || !passes_back(a, n->op))
        return;
    for (int i = 0; i < n->nin; i++)
        g->reach =
            g->reach || (a->grad[n->in[i]].reach && !tb_plan_data(n->op, i));
}

static void seed(pass *a, int node, const void *gout)
{
    if (gout && a->grad[node].reach)
        add_term(a, node, gout, true);
}

static void seed_outputs(pass *a)
{
    const tb_graph *g = a->p->graph;
    if (!a->b->gout)
        return;
    if (a->hi >= 0)
        seed(a, a->hi, a->b->gout[0]);
    else
        for (int o = 0; o < g->noutputs; o++)
            seed(a, g->outputs[o].node, a->b->gout[o]);
}

/* --- the pass ----------------------------------------------------------- */

/* Is the gradient of this input left to the op? What passes through unchanged
 * is handed on at once. */
static bool left_to_op(pass *a, int node, int i)
{
    const tb_node *n = &a->p->graph->nodes[node];
    int in = n->in[i];
    if (!a->grad[in].reach || tb_plan_data(n->op, i))
        return false;
    if (!tb_plan_through(a->p, node, i))
        return true;
    add_term(a, in, a->grad[node].value, a->p->steps[in].borrows);
    return false;
}

/* The gradient becomes that of the node's input where it stands. */
static void back_in_place(pass *a, int node)
{
    const tb_node *n = &a->p->graph->nodes[node];
    tb_opcall c;
    tb_pending_run(&a->rows);
    tb_plan_call(a->ctx, a->r, node, false, &c);
    c.gout = c.gin[0] = a->grad[node].at;
    double start = tb_profile_now(a->r->profile);
    n->op->bwd(&c);
    tb_profile_count(a->r->profile, n->op, &c, true, start);
    add_term(a, n->in[0], c.gout, a->p->steps[n->in[0]].borrows);
}

/* Hands a node's complete gradient to its inputs. */
static void back_node(pass *a, int node)
{
    const tb_node *n = &a->p->graph->nodes[node];
    unsigned whole = 0, rows = 0;
    tb_pending_enter(&a->rows, a->p->steps[node].bwd);
    if (a->p->steps[node].in_place) {
        back_in_place(a, node);
        return;
    }
    for (int i = 0; i < n->nin; i++)
        if (left_to_op(a, node, i))
            *(tb_op_row_input(n->op, i) ? &rows : &whole) |= TB_NEED_IN(i);
    if (!rows && !whole)
        return;
    tb_opcall c;
    tb_plan_call(a->ctx, a->r, node, false, &c);
    c.gout = a->grad[node].value;
    for (int i = 0; i < n->nin; i++)
        if (rows & TB_NEED_IN(i))
            point_gradient(a, node, i, &c);
    if (rows)
        tb_pending_add(&a->rows, n->op, n->op->bwd_rows, &c,
                       a->p->steps[node].scratch);
    if (!whole)
        return;
    tb_pending_run(&a->rows);
    for (int i = 0; i < n->nin; i++)
        if (whole & TB_NEED_IN(i))
            point_gradient(a, node, i, &c);
    double start = tb_profile_now(a->r->profile);
    n->op->bwd(&c);
    tb_profile_count(a->r->profile, n->op, &c, true, start);
}

/* No path leads there: zero. */
static void zero_untouched(pass *a)
{
    for (int n = 0; n < a->p->graph->nnodes; n++) {
        const tb_grad *g = &a->grad[n];
        if (g->into && !g->adds && !g->at)
            move(a, n, NULL, NULL, g->into, true);
    }
}

/* A value that its gradient replaces cannot have one from outside. */
static tb_status check_seeds(tb_ctx *ctx, const tb_plan *p, const tb_bwd *b)
{
    const tb_graph *g = p->graph;
    for (int o = 0; b->gout && o < g->noutputs; o++)
        if (b->gout[o] && p->steps[g->outputs[o].node].grad_over)
            return TB_FAIL(ctx, TB_ERR_ARG,
                           "%s: output %s is spent, it takes no gradient",
                           p->name, g->outputs[o].name);
    return TB_OK;
}

static tb_status check_request(tb_ctx *ctx, const tb_plan *p, const tb_bwd *b)
{
    const tb_graph *g = p->graph;
    if (!(p->passes & TB_PASS_BWD))
        return TB_FAIL(ctx, TB_ERR_ARG, "%s: planned without backward",
                       p->name);
    if (b->hi == -1 && b->lo == -1)
        return check_seeds(ctx, p, b);
    if (b->lo < 0 || b->hi < b->lo || b->hi >= g->nboundaries)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "%s: no piece from boundary %d to %d of %d", p->name,
                       b->hi, b->lo, g->nboundaries);
    return TB_OK;
}

tb_status tb_plan_backward(tb_ctx *ctx, const tb_run *r, const tb_bwd *b)
{
    const tb_plan *p = r->plan;
    const tb_graph *g = p->graph;
    TB_TRY(check_request(ctx, p, b));
    pass a = {.ctx = ctx, .r = r, .b = b, .p = p, .hi = -1, .lo = -1};
    a.rows = tb_pending_make(ctx, r, true);
    a.grad = (tb_grad *)(void *)((char *)r->work + p->table_at);
    if (b->hi >= 0) {
        a.hi = g->boundaries[b->hi].node;
        a.lo = g->boundaries[b->lo].node;
    }
    for (int n = 0; n < g->nnodes; n++)
        mark(&a, n);
    seed_outputs(&a);
    a.started = true;
    for (int n = a.hi >= 0 ? a.hi : g->nnodes - 1; n >= 0; n--)
        if (n != a.lo && a.grad[n].reach && a.grad[n].value &&
            passes_back(&a, g->nodes[n].op))
            back_node(&a, n);
    tb_pending_run(&a.rows);
    zero_untouched(&a);
    return TB_OK;
}
