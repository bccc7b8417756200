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
    tb_grad *grad; /* per node, in work */
    int hi, lo;    /* nodes of a piece; -1, -1: the whole graph */
} pass;

/* --- element-wise, in pieces by shape ----------------------------------- */

typedef struct sweep {
    const tb_kern *k;
    const char *from; /* NULL: zero */
    char *to;
    size_t n, pieces;
    bool add;
} sweep;

static void sweep_piece(void *arg, size_t piece)
{
    const sweep *w = arg;
    size_t size = tb_dtype_size(w->k->dtype);
    size_t first = tb_chunk_at(w->n, w->pieces, piece);
    size_t n = tb_chunk_at(w->n, w->pieces, piece + 1) - first;
    char *to = w->to + first * size;
    if (!w->from)
        memset(to, 0, n * size);
    else if (w->add)
        w->k->add(n, to, w->from + first * size, to);
    else
        memcpy(to, w->from + first * size, n * size);
}

/* to = from, to += from, or to = 0 */
static void move(const pass *a, int node, const void *from, bool add, void *to)
{
    enum { GRAIN = 1 << 15 };
    const tb_step *s = &a->p->steps[node];
    sweep w = {
        .k = s->call.k, .from = from, .to = to, .n = s->count, .add = add};
    w.pieces = tb_chunks(w.n, GRAIN);
    if (w.n > 0)
        tb_parallel(a->ctx, w.pieces, sweep_piece, &w);
}

/* --- gradients in the making -------------------------------------------- */

static void *gradient_storage(const pass *a, int node)
{
    if (a->grad[node].into)
        return a->grad[node].into;
    return (char *)a->r->work + a->p->pool_at + a->p->steps[node].grad_at;
}

/* A gradient that an op can add to. */
static void *open_gradient(const pass *a, int node)
{
    tb_grad *g = &a->grad[node];
    if (g->at)
        return g->at;
    g->at = gradient_storage(a, node);
    if (!g->adds)
        move(a, node, g->value, false, g->at);
    g->value = g->at;
    return g->at;
}

/* One more term. `lasting`: it stays readable as long as the node's own
 * gradient is, so the first one need not be copied. */
static void add_term(const pass *a, int node, const void *term, bool lasting)
{
    tb_grad *g = &a->grad[node];
    if (g->value || g->adds) {
        move(a, node, term, true, open_gradient(a, node));
    } else if (lasting && !g->into) {
        g->value = term;
    } else {
        g->value = g->at = gradient_storage(a, node);
        move(a, node, term, false, g->at);
    }
}

/* --- what is wanted ----------------------------------------------------- */

static bool passes_back(const pass *a, const tb_op *op)
{
    return op->bwd && !tb_plan_stops(op) &&
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

static void seed(const pass *a, int node, const void *gout)
{
    if (gout && a->grad[node].reach)
        add_term(a, node, gout, true);
}

static void seed_outputs(const pass *a)
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

/* Hands a node's complete gradient to its inputs. */
static void back_node(const pass *a, int node)
{
    const tb_node *n = &a->p->graph->nodes[node];
    const void *gout = a->grad[node].value;
    void *gin[TB_OP_INPUTS] = {0};
    bool any = false;
    for (int i = 0; i < n->nin; i++) {
        int in = n->in[i];
        if (!a->grad[in].reach || tb_plan_data(n->op, i))
            continue;
        if (tb_plan_through(a->p, node, i)) {
            add_term(a, in, gout, a->p->steps[in].borrows);
            continue;
        }
        gin[i] = open_gradient(a, in);
        any = true;
    }
    if (!any)
        return;
    tb_opcall c;
    tb_plan_call(a->ctx, a->r, node, false, &c);
    c.gout = gout;
    memcpy(c.gin, gin, sizeof(c.gin));
    double start = tb_profile_now(a->r->profile);
    n->op->bwd(&c);
    tb_profile_count(a->r->profile, n->op, &c, true, start);
}

/* No path leads there: zero. */
static void zero_untouched(const pass *a)
{
    for (int n = 0; n < a->p->graph->nnodes; n++) {
        const tb_grad *g = &a->grad[n];
        if (g->into && !g->adds && !g->at)
            move(a, n, NULL, false, g->into);
    }
}

static tb_status check_request(tb_ctx *ctx, const tb_plan *p, const tb_bwd *b)
{
    const tb_graph *g = p->graph;
    if (!(p->passes & TB_PASS_BWD))
        return TB_FAIL(ctx, TB_ERR_ARG, "%s: planned without backward",
                       p->name);
    if (b->hi == -1 && b->lo == -1)
        return TB_OK;
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
    a.grad = (tb_grad *)(void *)((char *)r->work + p->table_at);
    if (b->hi >= 0) {
        a.hi = g->boundaries[b->hi].node;
        a.lo = g->boundaries[b->lo].node;
    }
    for (int n = 0; n < g->nnodes; n++)
        mark(&a, n);
    seed_outputs(&a);
    for (int n = a.hi >= 0 ? a.hi : g->nnodes - 1; n >= 0; n--)
        if (n != a.lo && a.grad[n].reach && a.grad[n].value &&
            !tb_plan_leaf(p, n))
            back_node(&a, n);
    zero_untouched(&a);
    return TB_OK;
}
