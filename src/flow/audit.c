/* SPDX-License-Identifier: MIT */
/* What is measured of a row and of a part where an audit is asked for. */
#include "flow/audit.h"

static tb_status make_lists(tb_walk *w)
{
    tb_arena *a = &w->box->arena;
    size_t heads = 0, checks = 0;
    for (size_t p = 0; p < w->m->nparts; p++) {
        const tb_graph *g = tb_model_graph(w->m, p);
        checks += tb_model_role(w->m, p) == TB_PART_LAYER;
        for (int i = 0; i < g->nnodes; i++)
            heads += g->nodes[i].op->first != NULL;
    }
    w->f->attention = tb_arena_alloc(a, (heads + 1) * sizeof(tb_flow_heads));
    w->f->checks = tb_arena_alloc(a, (checks + 1) * sizeof(tb_flow_check));
    return w->f->attention && w->f->checks ? TB_OK : TB_ERR_MEMORY;
}

static tb_status make(tb_walk *w, uint64_t seed, tb_arena *a)
{
    tb_audit *x = w->audit = TB_NEW(a, tb_audit);
    size_t bytes = w->n * tb_dtype_size(w->m->dtype);
    bool few = w->n <= TB_SPECTRUM_MAX;
    if (!x)
        return TB_ERR_MEMORY;
    x->seed = seed;
    x->from = tb_arena_alloc(a, bytes);
    x->to = tb_arena_alloc(a, bytes);
    x->u = tb_arena_alloc(a, w->n * sizeof *x->u);
    x->v = tb_arena_alloc(a, w->n * sizeof *x->v);
    x->image = tb_arena_alloc(a, w->n * sizeof *x->image);
    if (few)
        x->rows = tb_arena_alloc(a, w->n * w->n * sizeof *x->rows);
    if (!x->from || !x->to || !x->u || !x->v || !x->image || (few && !x->rows))
        return TB_ERR_MEMORY;
    return make_lists(w);
}

static tb_status row(tb_walk *w, const tb_run *run, size_t p, int lo, int hi,
                     tb_flow_row *r)
{
    const tb_audit_piece x = {w, run, p, lo, hi, r};
    TB_TRY(tb_audit_jacobian(&x));
    TB_TRY(tb_audit_sums(&x));
    return tb_audit_attention(&x);
}

const tb_flow_auditor tb_flow_audit = {make, row, tb_audit_check,
                                       tb_audit_alpha};
