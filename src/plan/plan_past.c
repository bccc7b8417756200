/* SPDX-License-Identifier: MIT */
/* Forward of sequences that grow: a run computes only the new tokens, and
 * attention reads the keys and values that earlier runs left. Everything else
 * must go token by token, or not depend on the growing side at all: that is
 * computed in the first run and stays. */
#include "plan/plan_parts.h"

/* --- may it be done? -------------------------------------------------------
 */

static bool is_stream(const tb_graph *g, int node)
{
    return g->nodes[node].shape.kind == TB_SHAPE_STREAM;
}

/* Each query sees what stood before it; a mask says it of keys alone. */
static bool grows(const tb_graph *g, int node, const double *attr,
                  const bool *moving)
{
    const tb_node *n = &g->nodes[node];
    bool mask = n->nin < 4 ||
                (is_stream(g, n->in[3]) && g->nodes[n->in[3]].shape.width == 1);
    return n->op == &tb_op_mha && attr[TB_ATTR_ATTN_CAUSAL] != 0 && mask &&
           moving[n->in[0]] && moving[n->in[1]] && moving[n->in[2]];
}

/* Attention of what grows to what does not. */
static bool looks_aside(const tb_graph *g, int node, const double *attr,
                        const bool *moving)
{
    const tb_node *n = &g->nodes[node];
    bool rest = n->op == &tb_op_mha && attr[TB_ATTR_ATTN_CAUSAL] == 0;
    for (int i = 1; i < n->nin; i++)
        rest = rest && !moving[n->in[i]];
    return rest;
}

static bool all_streams_move(const tb_graph *g, int node, const bool *moving)
{
    const tb_node *n = &g->nodes[node];
    for (int i = 0; i < n->nin; i++)
        if (is_stream(g, n->in[i]) && !moving[n->in[i]])
            return false;
    return true;
}

static bool node_able(const tb_graph *g, int node, const double *attr,
                      const bool *moving)
{
    const tb_op *op = g->nodes[node].op;
    switch (tb_op_reach(op, attr)) {
    case TB_REACH_TOKEN:
        return all_streams_move(g, node, moving);
    case TB_REACH_SEQUENCE:
        return grows(g, node, attr, moving) ||
               looks_aside(g, node, attr, moving);
    case TB_REACH_BATCH:
        break;
    }
    return op == &tb_op_xent; /* nobody asks for the loss */
}

static const double *attr_of(const tb_graph *g, int node,
                             const double (*attr)[TB_OP_ATTRS], double *own)
{
    for (int i = 0; i < TB_OP_ATTRS; i++)
        own[i] = g->nodes[node].attr[i].value;
    return attr ? attr[node] : own;
}

static bool mark(const tb_graph *g, const double (*attr)[TB_OP_ATTRS],
                 const bool *moves, bool *moving)
{
    for (int i = 0; i < g->ninputs; i++)
        moving[g->inputs[i]] = moves[i];
    for (int n = 0; n < g->nnodes; n++) {
        double own[TB_OP_ATTRS];
        for (int i = 0; i < g->nodes[n].nin; i++)
            moving[n] = moving[n] || moving[g->nodes[n].in[i]];
        if (moving[n] && g->nodes[n].op->lane != TB_LANE_LEAF &&
            !node_able(g, n, attr_of(g, n, attr, own), moving))
            return false;
    }
    return true;
}

tb_status tb_past_make(tb_arena *a, const tb_graph *g,
                       const double (*attr)[TB_OP_ATTRS], const bool *moves,
                       tb_past *out, bool *able)
{
    size_t n = (size_t)g->nnodes;
    *out = (tb_past){.graph = g};
    out->moving = tb_arena_alloc(a, n * sizeof *out->moving);
    out->seen_at = tb_arena_alloc(a, n * sizeof *out->seen_at);
    if (!out->moving || !out->seen_at)
        return TB_ERR_MEMORY;
    *able = mark(g, attr, moves, out->moving);
    for (int i = 0; i < g->nnodes && *able; i++) {
        double own[TB_OP_ATTRS];
        out->seen_at[i] = SIZE_MAX;
        if (!out->moving[i] || g->nodes[i].op != &tb_op_mha ||
            !grows(g, i, attr_of(g, i, attr, own), out->moving))
            continue;
        out->seen_at[i] = out->width;
        out->width += g->nodes[g->nodes[i].in[1]].shape.width +
                      g->nodes[g->nodes[i].in[2]].shape.width;
    }
    return TB_OK;
}

/* --- room ------------------------------------------------------------------
 */

/* The call of one sequence of a growing node that has seen `keys` tokens. */
static tb_opcall alone(const tb_plan *p, int node, size_t keys)
{
    tb_opcall c = p->steps[node].call;
    c.batch = 1;
    for (int i = 1; i < c.nin; i++)
        c.in_time[i] = keys;
    return c;
}

static size_t up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t tb_past_room(const tb_past *past, const tb_plan *p, size_t keys)
{
    size_t most = 0;
    for (int n = 0; n < p->graph->nnodes; n++) {
        if (past->seen_at[n] == SIZE_MAX)
            continue;
        tb_opcall c = alone(p, n, keys);
        size_t all = up(c.nin > 3 ? keys * sizeof(double) : 0);
        all += up(p->graph->nodes[n].op->saved(&c));
        all += up(tb_op_scratch(p->graph->nodes[n].op, &c));
        most = all > most ? all : most;
    }
    return most;
}

/* --- attention -------------------------------------------------------------
 */

/* Of sequence b: where the keys (first 1) or values (2) of a node stand. */
static char *kept_at(const tb_run *r, int node, size_t b, int which)
{
    const tb_past *q = r->past;
    const tb_opcall *c = &r->plan->steps[node].call;
    size_t one = tb_dtype_size(c->k->dtype);
    size_t at = q->seen_at[node] + (which > 1 ? c->in_shape[1].width : 0);
    return (char *)q->kept + (b * q->width + at) * q->most * one;
}

static void keep(const tb_run *r, int node, const tb_opcall *c, size_t b)
{
    for (int i = 1; i <= 2; i++) {
        size_t row = c->in_shape[i].width * tb_dtype_size(c->k->dtype);
        memcpy(kept_at(r, node, b, i) + r->past->seen * row,
               (const char *)c->in[i] + b * c->time * row, c->time * row);
    }
}

/* A mask of tokens that are all there. */
static void *ones(const tb_opcall *c, size_t n, void *at)
{
    for (size_t i = 0; i < n; i++)
        if (c->k->dtype == TB_F64)
            ((double *)at)[i] = 1;
        else
            ((float *)at)[i] = 1;
    return at;
}

void tb_past_attend(const tb_run *r, int node, const tb_opcall *call)
{
    const tb_op *op = r->plan->graph->nodes[node].op;
    size_t one = tb_dtype_size(call->k->dtype), n = call->time;
    size_t keys = r->past->seen + n;
    for (size_t b = 0; b < call->batch; b++) {
        tb_opcall c = alone(r->plan, node, keys);
        char *room = r->past->room;
        keep(r, node, call, b);
        memcpy(c.attr, call->attr, sizeof c.attr);
        c.ctx = call->ctx;
        c.rng = call->rng;
        c.in[0] =
            (const char *)call->in[0] + b * n * call->in_shape[0].width * one;
        c.in[1] = kept_at(r, node, b, 1);
        c.in[2] = kept_at(r, node, b, 2);
        c.out = (char *)call->out + b * n * call->out_shape.width * one;
        c.saved = room;
        room += up(op->saved(&c));
        c.scratch = room;
        room += up(tb_op_scratch(op, &c));
        if (c.nin > 3)
            c.in[3] = ones(&c, keys, room);
        tb_op_forward(op, &c);
    }
}

void tb_past_copy(const tb_past *past, size_t one, const void *x, size_t from,
                  void *y, size_t to)
{
    for (int n = 0; n < past->graph->nnodes; n++) {
        size_t at = past->seen_at[n];
        for (int i = 1; i <= 2 && at < SIZE_MAX; i++) {
            const tb_node *node = &past->graph->nodes[n];
            size_t width = past->graph->nodes[node->in[i]].shape.width;
            size_t here = (from * past->width + at) * past->most * one;
            size_t there = (to * past->width + at) * past->most * one;
            memcpy((char *)y + there, (const char *)x + here,
                   past->seen * width * one);
            at += width;
        }
    }
}
