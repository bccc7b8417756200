/* SPDX-License-Identifier: MIT */
/* Row parts of neighbours run together. Which nodes may is decided once, by
 * segments: within one the row parts of a pass wait, at its end they run as
 * one pass over memory. What lives only inside a segment stands in a tile. */
#include "plan/plan_parts.h"

/* --- segments ----------------------------------------------------------- */

/* Nodes of a segment: all of its buffers live at once. */
enum { MOST = 16 };

typedef struct cutter {
    int segment, nodes;
    size_t rows; /* of the segment's nodes */
} cutter;

/* A node with another number of rows begins a segment. So does a whole part in
 * forward, which runs before the row part; in backward, where it runs last, it
 * ends one. */
static int cut_at(const tb_plan *p, int node, bool back, cutter *k)
{
    const tb_op *op = p->graph->nodes[node].op;
    size_t rows = tb_op_row_count(&p->steps[node].call);
    if (tb_plan_leaf(p, node))
        return k->segment;
    int most = p->passes & TB_PASS_ALONE ? 1 : MOST;
    if (rows != k->rows || k->nodes >= most || (!back && op->fwd))
        *k = (cutter){.segment = k->segment + 1, .rows = rows};
    k->nodes = back && op->bwd ? most : k->nodes + 1;
    return k->segment;
}

void tb_plan_segments(tb_plan *p)
{
    cutter up = {0}, down = {0};
    int n = p->graph->nnodes;
    for (int i = 0; i < n; i++) {
        p->steps[i].fwd = cut_at(p, i, false, &up);
        p->steps[n - 1 - i].bwd = cut_at(p, n - 1 - i, true, &down);
    }
    for (int i = 0; i < n; i++) {
        if (tb_plan_leaf(p, i))
            continue;
        const tb_step *s = &p->steps[i];
        tb_segment *f = &p->fwd[s->fwd], *b = &p->bwd[s->bwd];
        f->row_bytes += tb_rows_bytes(&s->call);
        b->row_bytes += 2 * tb_rows_bytes(&s->call); /* and gradients */
        f->calls++;
        b->calls += 1 + (size_t)p->graph->nodes[i].nin;
    }
}

/* --- a pass ------------------------------------------------------------- */

tb_pending tb_pending_make(tb_ctx *ctx, const tb_run *r, bool back)
{
    const tb_plan *p = r->plan;
    char *work = r->work;
    return (tb_pending){.ctx = ctx,
                        .r = r,
                        .back = back,
                        .calls = (tb_rowcall *)(void *)(work + p->calls_at)};
}

tb_status tb_pending_run(tb_pending *q)
{
    const tb_plan *p = q->r->plan;
    const tb_segment *s = &(q->back ? p->bwd : p->fwd)[q->segment];
    tb_rowgroup g = {.calls = q->calls,
                     .n = q->n,
                     .rows = q->rows,
                     .tile = tb_rows_tile(s->row_bytes),
                     .store = (char *)q->r->work + p->store_at,
                     .store_bytes = p->store_bytes,
                     .slots = p->slots};
    double start = tb_profile_now(q->r->profile);
    if (q->n)
        tb_rows_run(q->ctx, &g);
    tb_profile_rows(q->r->profile, q->calls, q->n, start);
    size_t n = q->n;
    q->n = q->used = 0;
    for (size_t i = 0; i < n && !q->back; i++)
        TB_TRY(tb_plan_check(q->ctx, q->r, q->calls[i].op, &q->calls[i].c));
    return TB_OK;
}

tb_status tb_pending_enter(tb_pending *q, int segment)
{
    if (segment == q->segment)
        return TB_OK;
    TB_TRY(tb_pending_run(q));
    q->segment = segment;
    return TB_OK;
}

void tb_pending_add(tb_pending *q, const tb_op *op, tb_rows_fn rows,
                    const tb_opcall *c, size_t scratch)
{
    tb_rowcall *r = &q->calls[q->n++];
    *r = (tb_rowcall){.op = op, .rows = rows, .back = q->back, .c = *c};
    q->rows = tb_op_row_count(c);
    if (scratch)
        r->c.scratch = (char *)c->scratch + q->used;
    if (c->saved && scratch && !q->r->plan->passes) /* it stands behind it */
        r->c.saved = (char *)c->saved + q->used;
    q->used += scratch;
}
