/* SPDX-License-Identifier: MIT */
/* Forward and tangent of one layer, and the call of a node that every pass
 * starts from. Nothing here allocates. */
#include "plan/plan_parts.h"

/* Steele, Lea, Flood 2014 (SplitMix64). */
static uint64_t mix(uint64_t h)
{
    h += 0x9E3779B97F4A7C15u;
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
    return h ^ (h >> 31);
}

/* A stream per scope and node; the seed moves with the step. */
tb_rng tb_plan_rng(const tb_run *r, int node)
{
    tb_rng rng = tb_rng_make(r->seed ^ mix(r->step), r->scope ? r->scope : "");
    rng.stream ^= mix((uint64_t)node);
    return rng;
}

void *tb_plan_storage(const tb_run *r, const tb_step *s)
{
    if (s->output >= 0 && r->outputs && r->outputs[s->output])
        return r->outputs[s->output];
    if (s->place == TB_PLACE_SAVED)
        return (char *)r->saved + s->at;
    if (s->place == TB_PLACE_TILE)
        return (char *)r->work + r->plan->store_at + s->at;
    return (char *)r->work + r->plan->pool_at + s->at;
}

static const tb_step *root_of(const tb_plan *p, int node)
{
    return &p->steps[p->steps[node].root];
}

/* The value while the forward pass runs. */
static const void *live_value(const tb_run *r, int node)
{
    const tb_step *s = root_of(r->plan, node);
    if (s->place == TB_PLACE_INPUT)
        return r->inputs[s->slot];
    if (s->place == TB_PLACE_PARAM)
        return r->params[s->slot];
    return tb_plan_storage(r, s);
}

const void *tb_plan_value(const tb_run *r, int node)
{
    tb_place place = root_of(r->plan, node)->place;
    if (place == TB_PLACE_WORK || place == TB_PLACE_TILE)
        return NULL;
    return live_value(r, node);
}

void tb_plan_call(tb_ctx *ctx, const tb_run *r, int node, bool forward,
                  tb_opcall *c)
{
    const tb_plan *p = r->plan;
    const tb_step *s = &p->steps[node];
    const tb_node *n = &p->graph->nodes[node];
    *c = s->call;
    c->ctx = ctx;
    if (r->attr)
        memcpy(c->attr, r->attr[node], sizeof(c->attr));
    for (int i = 0; i < n->nin; i++)
        c->in[i] =
            forward ? live_value(r, n->in[i]) : tb_plan_value(r, n->in[i]);
    if (forward || root_of(p, node)->place == TB_PLACE_SAVED)
        c->out = tb_plan_storage(r, root_of(p, node));
    if (tb_plan_saves(p, n->op))
        c->saved = (char *)(p->passes ? r->saved : r->work) + s->saved_at;
    c->scratch = r->work;
    c->rng = tb_plan_rng(r, node);
    if (r->past && n->op->place && r->past->moving[node])
        c->attr[n->op->place - 1] += (double)r->past->seen;
    if (memcmp(c->attr, s->call.attr, sizeof c->attr))
        c->angles = NULL; /* those are of the node's own attributes */
}

/* --- forward ------------------------------------------------------------ */

tb_status tb_plan_check(tb_ctx *ctx, const tb_run *r, const tb_op *op,
                        const tb_opcall *c)
{
    size_t row = 0;
    const char *reason = op->check ? op->check(c, &row) : NULL;
    if (!reason)
        return TB_OK;
    return TB_FAIL(ctx, TB_ERR_INPUT, "%s: %s: %s at row %zu (rows from 1)",
                   r->scope ? r->scope : r->plan->name, op->name, reason,
                   row + 1);
}

static void run_whole(const tb_run *r, int node, const tb_opcall *c)
{
    if (r->past && r->past->seen_at[node] < SIZE_MAX)
        tb_past_attend(r, node, c);
    else
        r->plan->graph->nodes[node].op->fwd(c);
}

static tb_status run_node(tb_pending *q, int node)
{
    const tb_run *r = q->r;
    const tb_op *op = r->plan->graph->nodes[node].op;
    const tb_step *s = &r->plan->steps[node];
    tb_opcall c;
    bool kept = r->past && r->past->again && !r->past->moving[node];
    if (tb_plan_leaf(r->plan, node) || op->alias || kept)
        return TB_OK;
    TB_TRY(tb_pending_enter(q, s->fwd));
    tb_plan_call(q->ctx, r, node, true, &c);
    double start = tb_profile_now(r->profile);
    if (op->fwd) {
        run_whole(r, node, &c);
        tb_profile_count(r->profile, op, &c, false, start);
    }
    if (!tb_op_fwd_rows(op, &c))
        return tb_plan_check(q->ctx, r, op, &c);
    tb_pending_add(q, op, op->fwd_rows, &c, s->scratch);
    return TB_OK;
}

/* Outputs that share storage with another value, or are data. */
static void copy_outputs(const tb_run *r)
{
    const tb_graph *g = r->plan->graph;
    for (int o = 0; o < g->noutputs; o++) {
        int node = g->outputs[o].node;
        const void *value = live_value(r, node);
        if (r->outputs && r->outputs[o] && r->outputs[o] != value)
            memcpy(r->outputs[o], value, r->plan->steps[node].bytes);
    }
}

tb_status tb_plan_forward(tb_ctx *ctx, const tb_run *r)
{
    tb_pending q = tb_pending_make(ctx, r, false);
    for (int n = 0; n < r->plan->graph->nnodes; n++)
        TB_TRY(run_node(&q, n));
    TB_TRY(tb_pending_run(&q));
    copy_outputs(r);
    return TB_OK;
}

/* --- tangent ------------------------------------------------------------ */

/* The tangents of a pass: NULL is zero. */
typedef struct tan_pass {
    const tb_run *r;
    const void *const *tin, *const *tparams;
    void *const *tout;
    const void **t; /* per node, in work */
} tan_pass;

/* Where the tangent is computed: the caller's buffer if it is wanted. */
static void *tan_storage(const tan_pass *a, int node)
{
    const tb_plan *p = a->r->plan;
    for (int o = 0; p->steps[node].outputs > 0 && o < p->graph->noutputs; o++)
        if (p->graph->outputs[o].node == node && a->tout && a->tout[o])
            return a->tout[o];
    return (char *)a->r->work + p->pool_at + p->steps[node].tan_at;
}

static const void *leaf_tangent(const tan_pass *a, int node)
{
    const tb_step *s = &a->r->plan->steps[node];
    const void *const *from = s->place == TB_PLACE_INPUT ? a->tin : a->tparams;
    if (s->call.out_shape.kind == TB_SHAPE_TOKENS)
        return NULL;
    return from ? from[s->slot] : NULL;
}

static const void *node_tangent(tb_ctx *ctx, const tan_pass *a, int node)
{
    const tb_node *n = &a->r->plan->graph->nodes[node];
    bool moves = false;
    tb_opcall c;
    for (int i = 0; i < n->nin; i++)
        moves = moves || (a->t[n->in[i]] && !tb_plan_data(n->op, i));
    if (!moves || tb_plan_stops(n->op) || !n->op->shape)
        return NULL;
    if (n->op->alias)
        return a->t[n->in[0]];
    tb_plan_call(ctx, a->r, node, false, &c);
    for (int i = 0; i < n->nin; i++)
        c.tin[i] = tb_plan_data(n->op, i) ? NULL : a->t[n->in[i]];
    c.tout = tan_storage(a, a->r->plan->steps[node].in_place ? n->in[0] : node);
    tb_op_tangent(n->op, &c);
    return c.tout;
}

static void give_tangent(const tan_pass *a, int node)
{
    const tb_plan *p = a->r->plan;
    const tb_step *s = &p->steps[node];
    for (int o = 0; s->outputs > 0 && o < p->graph->noutputs; o++) {
        void *to = a->tout ? a->tout[o] : NULL;
        if (p->graph->outputs[o].node != node || !to || to == a->t[node])
            continue;
        if (a->t[node])
            memcpy(to, a->t[node], s->bytes);
        else
            memset(to, 0, s->bytes);
    }
}

static tb_status start_tangent(tb_ctx *ctx, tan_pass *a)
{
    const tb_plan *p = a->r->plan;
    if (!(p->passes & TB_PASS_TAN))
        return TB_FAIL(ctx, TB_ERR_ARG, "%s: planned without tangents",
                       p->name);
    a->t = (const void **)(void *)((char *)a->r->work + p->table_at);
    return TB_OK;
}

tb_status tb_plan_tangent(tb_ctx *ctx, const tb_run *r, const void *const *tin,
                          const void *const *tparams, void *const *tout)
{
    const tb_plan *p = r->plan;
    tan_pass a = {.r = r, .tin = tin, .tparams = tparams, .tout = tout};
    TB_TRY(start_tangent(ctx, &a));
    for (int n = 0; n < p->graph->nnodes; n++) {
        a.t[n] =
            tb_plan_leaf(p, n) ? leaf_tangent(&a, n) : node_tangent(ctx, &a, n);
        give_tangent(&a, n);
    }
    return TB_OK;
}

tb_status tb_plan_tangent_piece(tb_ctx *ctx, const tb_run *r, int lo, int hi,
                                const void *tin, void *tout)
{
    const tb_graph *g = r->plan->graph;
    int from = g->boundaries[lo].node, to = g->boundaries[hi].node;
    size_t bytes = r->plan->steps[to].bytes;
    tan_pass a = {.r = r};
    TB_TRY(start_tangent(ctx, &a));
    for (int n = 0; n < from; n++)
        a.t[n] = NULL;
    a.t[from] = tin;
    for (int n = from + 1; n <= to; n++)
        a.t[n] = tb_plan_leaf(r->plan, n) ? NULL : node_tangent(ctx, &a, n);
    if (a.t[to])
        memcpy(tout, a.t[to], bytes);
    else
        memset(tout, 0, bytes);
    return TB_OK;
}

/* --- running statistics ------------------------------------------------- */

static bool is_state(const tb_node *n, int i)
{
    return (n->op->state & TB_NEED_IN(i)) != 0;
}

bool tb_plan_state(const tb_plan *p, int param)
{
    for (int n = 0; n < p->graph->nnodes; n++)
        for (int i = 0; i < p->graph->nodes[n].nin; i++)
            if (is_state(&p->graph->nodes[n], i) &&
                p->graph->nodes[n].in[i] == p->graph->params[param].node)
                return true;
    return false;
}

static void update_node(tb_ctx *ctx, const tb_run *r, int node,
                        void *const *buffers)
{
    const tb_node *n = &r->plan->graph->nodes[node];
    tb_opcall c;
    tb_plan_call(ctx, r, node, false, &c);
    for (int i = 0; i < n->nin; i++) {
        const tb_step *s = root_of(r->plan, n->in[i]);
        if (is_state(n, i) && s->place == TB_PLACE_PARAM)
            c.state[i] = buffers[s->slot];
    }
    n->op->update(&c);
}

tb_status tb_plan_update(tb_ctx *ctx, const tb_run *r, void *const *buffers)
{
    const tb_plan *p = r->plan;
    if (!p->passes)
        return TB_FAIL(ctx, TB_ERR_ARG, "%s: planned without its values kept",
                       p->name);
    for (int n = 0; n < p->graph->nnodes; n++)
        if (p->graph->nodes[n].op->update)
            update_node(ctx, r, n, buffers);
    return TB_OK;
}

bool tb_plan_statistic(tb_ctx *ctx, const tb_run *r, int node, int i,
                       double *out)
{
    const tb_node *n = &r->plan->graph->nodes[node];
    tb_opcall c;
    if (!r->plan->passes || i >= n->nin || !is_state(n, i))
        return false;
    tb_plan_call(ctx, r, node, false, &c);
    for (size_t j = 0; j < c.in_shape[i].width; j++)
        if (!n->op->statistic(&c, i, j, &out[j]))
            return false;
    return true;
}

/* --- toll --------------------------------------------------------------- */

bool tb_plan_scale(tb_ctx *ctx, const tb_run *r, int node, size_t row,
                   double *s, double *eps_share)
{
    const tb_plan *p = r->plan;
    tb_opcall c;
    if (!p->graph->nodes[node].op->scale || !(p->passes & TB_PASS_KEEP))
        return false;
    tb_plan_call(ctx, r, node, false, &c);
    return p->graph->nodes[node].op->scale(&c, row, s, eps_share);
}

tb_status tb_plan_first(tb_ctx *ctx, const tb_run *r, int node, double *share)
{
    const tb_plan *p = r->plan;
    tb_opcall c;
    if (!p->graph->nodes[node].op->first)
        return TB_FAIL(ctx, TB_ERR_ARG, "%s: node %d is no attention", p->name,
                       node);
    if (!(p->passes & TB_PASS_KEEP))
        return TB_FAIL(ctx, TB_ERR_ARG, "%s: planned without its values kept",
                       p->name);
    tb_plan_call(ctx, r, node, false, &c);
    p->graph->nodes[node].op->first(&c, share);
    return TB_OK;
}

tb_status tb_plan_gain(tb_ctx *ctx, const tb_run *r, int node, double *rms,
                       double *max)
{
    const tb_plan *p = r->plan;
    tb_opcall c;
    if (node < 0 || node >= p->graph->nnodes || !p->graph->nodes[node].op->gain)
        return TB_FAIL(ctx, TB_ERR_ARG, "%s: node %d is not a norm", p->name,
                       node);
    if (!(p->passes & TB_PASS_KEEP))
        return TB_FAIL(ctx, TB_ERR_ARG, "%s: planned without its values kept",
                       p->name);
    tb_plan_call(ctx, r, node, false, &c);
    p->graph->nodes[node].op->gain(&c, rms, max);
    return TB_OK;
}
