/* SPDX-License-Identifier: MIT */
/* How much attention goes to the first token: E16's share of sinks. */
#include "flow/audit.h"

/* Attention to a memory is another question. */
static bool is_asked(const tb_audit_piece *x, const tb_graph *g, int node)
{
    const tb_node *n = &g->nodes[node];
    return n->op->first && !g->nodes[n->in[1]].of_memory &&
           tb_walk_between(g, x->lo, x->hi, node);
}

tb_status tb_audit_attention(const tb_audit_piece *x)
{
    tb_walk *w = x->w;
    const tb_graph *g = tb_model_graph(w->m, x->part);
    for (int i = g->nnodes - 1; i >= 0; i--) {
        if (!is_asked(x, g, i))
            continue;
        size_t n = (size_t)x->run->attr[i][TB_ATTR_ATTN_HEADS];
        tb_flow_heads *out = &w->f->attention[w->f->nattention++];
        *out = (tb_flow_heads){.k = x->row->k,
                               .layer = x->row->layer,
                               .role = x->row->role,
                               .heads = n};
        out->first = tb_arena_alloc(&w->box->arena, n * sizeof *out->first);
        if (!out->first)
            return TB_ERR_MEMORY;
        TB_TRY(tb_plan_first(w->ctx, x->run, i, out->first));
    }
    return TB_OK;
}
