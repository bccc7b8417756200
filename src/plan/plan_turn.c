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

/* A value of its own that one node reads, and nobody outside. */
static bool is_private(const tb_plan *p, int node)
{
    const tb_step *s = &p->steps[node];
    return s->readers == 1 && s->outputs == 0 && !tb_plan_leaf(p, node) &&
           !p->graph->nodes[node].op->alias && !ends_piece(p->graph, node);
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

/* Have both ropes the same angles? */
static bool same(const tb_plan *p, int a, int b)
{
    const tb_turn r = turn_of(p, a), s = turn_of(p, b);
    return tb_turn_same(&r, &s) &&
           p->steps[a].call.time == p->steps[b].call.time;
}

/* Ropes that own angles are linked, the last of them first. */
static tb_status measure_angles(tb_ctx *ctx, tb_plan *p)
{
    int last = -1;
    for (int n = 0; n < p->graph->nnodes; n++) {
        if (!is_rope(p, n))
            continue;
        tb_step *s = &p->steps[n];
        const tb_turn r = turn_of(p, n);
        s->angles_of = last;
        while (s->angles_of >= 0 && !same(p, n, s->angles_of))
            s->angles_of = p->steps[s->angles_of].owner_before;
        if (s->angles_of >= 0)
            continue;
        TB_TRY(tb_plan_grow(ctx, p, tb_turn_bytes(&r, s->call.time),
                            &p->angle_bytes, &s->angles_at));
        s->angles_of = n;
        s->owner_before = last;
        last = n;
    }
    return TB_OK;
}

static void fill_angles(tb_plan *p, int node)
{
    const tb_step *owner = &p->steps[p->steps[node].angles_of];
    tb_opcall *c = &p->steps[node].call;
    tb_turn r = turn_of(p, node);
    c->angles = r.angles = p->angles + owner->angles_at / sizeof *r.angles;
    if (owner->angles_of == node)
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
