/* SPDX-License-Identifier: MIT */
/* Ropes before attention turn in place: queries and keys are read by nobody
 * else, so that no second buffer for each goes through memory, forward or
 * backward. And the angles of all ropes are computed once, when the plan is
 * made: they took longer than turning by them. */
#include "ops/op_turn.h"
#include "plan/plan_parts.h"

static bool is_rope(const tb_plan *p, int node)
{
    return p->graph->nodes[node].op == &tb_op_rope;
}

static bool ends_piece(const tb_graph *g, int node)
{
    for (int i = 0; i < g->nboundaries; i++)
        if (g->boundaries[i].node == node)
            return true;
    return false;
}

static int slots_filled(const tb_graph *g, int node)
{
    int n = 0;
    for (int i = 0; i < g->nnodes; i++)
        for (int j = 0; j < g->nodes[i].nin; j++)
            n += g->nodes[i].in[j] == node;
    for (int o = 0; o < g->noutputs; o++)
        n += g->outputs[o].node == node;
    return n;
}

/* A value of its own that one node reads, and nobody outside. */
static bool is_private(const tb_plan *p, int node)
{
    return !tb_plan_leaf(p, node) && !p->graph->nodes[node].op->alias &&
           !ends_piece(p->graph, node) && slots_filled(p->graph, node) == 1;
}

/* May the rope overwrite what it reads? */
static bool may_turn(const tb_plan *p, int rope)
{
    const int in = p->graph->nodes[rope].in[0];
    return is_private(p, rope) && is_private(p, in) &&
           !(p->graph->nodes[in].op->needs & TB_NEED_OUT);
}

void tb_plan_turns(tb_plan *p)
{
    if (p->passes & (TB_PASS_KEEP | TB_PASS_ALONE))
        return; /* somebody looks at every value */
    for (int n = 0; n < p->graph->nnodes; n++)
        for (int i = 0; i < 2 && p->graph->nodes[n].op == &tb_op_mha; i++) {
            const int in = p->graph->nodes[n].in[i];
            if (is_rope(p, in) && may_turn(p, in))
                p->steps[in].in_place = true;
        }
}

/* --- angles ------------------------------------------------------------- */

static tb_turn turn_of(const tb_plan *p, int node)
{
    const tb_opcall *c = &p->steps[node].call;
    return tb_turn_of(c->attr, c->out_shape.width);
}

/* An earlier rope of the same angles and length, or -1. */
static int same_before(const tb_plan *p, int node)
{
    const tb_turn r = turn_of(p, node);
    for (int n = 0; n < node; n++) {
        if (!is_rope(p, n))
            continue;
        const tb_turn s = turn_of(p, n);
        if (tb_turn_same(&r, &s) &&
            p->steps[n].call.time == p->steps[node].call.time)
            return n;
    }
    return -1;
}

static tb_status measure_angles(tb_ctx *ctx, tb_plan *p)
{
    for (int n = 0; n < p->graph->nnodes; n++) {
        if (!is_rope(p, n))
            continue;
        const int before = same_before(p, n);
        const tb_turn r = turn_of(p, n);
        tb_step *s = &p->steps[n];
        if (before >= 0)
            s->angles_at = p->steps[before].angles_at;
        else
            TB_TRY(tb_plan_grow(ctx, p, tb_turn_bytes(&r, s->call.time),
                                &p->angle_bytes, &s->angles_at));
    }
    return TB_OK;
}

static void fill_angles(tb_plan *p, int node)
{
    tb_opcall *c = &p->steps[node].call;
    tb_turn r = turn_of(p, node);
    r.angles = p->angles + p->steps[node].angles_at / sizeof *r.angles;
    c->angles = r.angles;
    if (same_before(p, node) < 0)
        tb_turn_fill(c, &r, c->time);
}

tb_status tb_plan_angles(tb_ctx *ctx, tb_plan *p)
{
    TB_TRY(measure_angles(ctx, p));
    if (!p->angle_bytes)
        return TB_OK;
    p->angles = tb_alloc(ctx, p->angle_bytes, 1);
    if (!p->angles)
        return TB_ERR_MEMORY;
    for (int n = 0; n < p->graph->nnodes; n++)
        if (is_rope(p, n))
            fill_angles(p, n);
    return TB_OK;
}
