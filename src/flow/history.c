/* SPDX-License-Identifier: MIT */
/* The walk where blocks read what earlier blocks made. A gradient is kept for
 * every value that goes from part to part, and adds up over its readers, once
 * whole and once with all branches cut; a row shows x where its block leaves
 * it, with everything that block and those above take from it. */
#include "flow/walk.h"

/** Gradients by value. */
typedef struct ledger {
    void **at;
    bool *has; /* something came by now */
} ledger;

struct tb_history {
    tb_walk *w;
    tb_flow_box *box;
    ledger whole, cut;
    const void **gout; /* tables wide enough for every part */
    void **gin;
    bool *adds;
    double one64;
    float one32;
};

/* --- memory -------------------------------------------------------------- */

static tb_status ledger_make(const tb_walk *w, tb_arena *a, ledger *l)
{
    const tb_model *m = w->m;
    size_t one = tb_dtype_size(m->dtype);
    l->at = tb_arena_alloc(a, m->nvalues * sizeof *l->at);
    l->has = tb_arena_alloc(a, m->nvalues * sizeof *l->has);
    for (size_t v = 0; l->at && l->has && v < m->nvalues; v++) {
        size_t n = tb_model_value_count(m, v);
        if (!(l->at[v] = tb_arena_alloc(a, n * one)))
            return TB_ERR_MEMORY;
    }
    return l->at && l->has ? TB_OK : TB_ERR_MEMORY;
}

static tb_status make_tables(tb_history *h, tb_arena *a)
{
    const tb_model *m = h->w->m;
    size_t most = 1;
    for (size_t p = 0; p < m->nparts; p++) {
        const tb_graph *g = tb_model_graph(m, p);
        int n = g->ninputs > g->noutputs ? g->ninputs : g->noutputs;
        most = (size_t)n > most ? (size_t)n : most;
    }
    h->gout = tb_arena_alloc(a, most * sizeof *h->gout);
    h->gin = tb_arena_alloc(a, most * sizeof *h->gin);
    h->adds = tb_arena_alloc(a, most * sizeof *h->adds);
    return h->gout && h->gin && h->adds ? TB_OK : TB_ERR_MEMORY;
}

/* --- one part ------------------------------------------------------------ */

static const void *one(tb_history *h)
{
    h->one32 = 1;
    h->one64 = 1;
    return h->w->m->dtype == TB_F64 ? (const void *)&h->one64
                                    : (const void *)&h->one32;
}

/* What came to a part's outputs goes to its inputs; `seen` receives the
 * gradient of the node where x leaves. */
static tb_status pull(tb_history *h, const tb_run *run, size_t p, ledger *l,
                      bool cut, void *seen)
{
    const tb_model *m = h->w->m;
    const tb_graph *g = tb_model_graph(m, p);
    for (int o = 0; o < g->noutputs; o++) {
        size_t v = tb_model_out_value(m, p, (size_t)o);
        h->gout[o] = v == m->loss ? one(h) : l->has[v] ? l->at[v] : NULL;
    }
    for (int i = 0; i < g->ninputs; i++) {
        int v = tb_model_in_value(m, p, (size_t)i);
        h->gin[i] = v >= 0 ? l->at[v] : NULL;
        h->adds[i] = v >= 0 && l->has[v];
        if (v >= 0)
            l->has[v] = true;
    }
    tb_bwd b = {.hi = -1,
                .lo = -1,
                .cut = cut,
                .gout = h->gout,
                .gin = h->gin,
                .adds = h->adds,
                .nseen = 1,
                .seen = &g->outputs[0].node,
                .gseen = &seen};
    if (!cut)
        tb_walk_want_weights(h->w, p, &b);
    TB_TRY(tb_plan_backward(h->w->ctx, run, &b));
    if (!cut)
        tb_walk_measure_weights(h->w, p);
    return TB_OK;
}

/* x may leave as it came: then its value's own gradient is all there is. */
static void see_unchanged(const tb_history *h, const tb_graph *g, size_t p,
                          const ledger *l, void *seen)
{
    size_t v = tb_model_out_value(h->w->m, p, 0);
    size_t bytes = h->w->n * tb_dtype_size(h->w->m->dtype);
    if (g->nodes[g->outputs[0].node].op->lane != TB_LANE_LEAF)
        return;
    if (l->has[v])
        memcpy(seen, l->at[v], bytes);
    else
        memset(seen, 0, bytes);
}

/* Both gradients of x where part p leaves it. */
static tb_status pull_both(tb_history *h, const tb_run *run, size_t p)
{
    tb_walk *w = h->w;
    const tb_graph *g = tb_model_graph(w->m, p);
    TB_TRY(pull(h, run, p, &h->whole, false, w->total));
    TB_TRY(pull(h, run, p, &h->cut, true, w->lane));
    see_unchanged(h, g, p, &h->whole, w->total);
    see_unchanged(h, g, p, &h->cut, w->lane);
    return TB_OK;
}

/* --- rows ---------------------------------------------------------------- */

/* Inside the block alone, from x to x. */
static tb_status split(tb_history *h, const tb_run *run, const tb_graph *g,
                       tb_flow_row *row)
{
    tb_walk *w = h->w;
    const void *gout[1] = {w->total};
    void *gin[1] = {w->next};
    tb_bwd b = {.hi = g->nboundaries - 1, .lo = 0, .gout = gout, .gin = gin};
    TB_TRY(tb_plan_backward(w->ctx, run, &b));
    b.cut = true;
    gin[0] = w->local;
    TB_TRY(tb_plan_backward(w->ctx, run, &b));
    tb_walk_split(w, w->next, row);
    return TB_OK;
}

/* The sublayers of a block that is one row; a block of another stack than that
 * with the lists may have several boundaries. */
static const char *row_name(tb_history *h, const tb_graph *g)
{
    const char *name = g->boundaries[g->nboundaries - 1].name;
    return tb_arena_strdup(&h->box->arena,
                           g->nboundaries == 2 && *name ? name : "block");
}

static tb_status layer_down(tb_history *h, size_t p)
{
    tb_walk *w = h->w;
    const tb_graph *g = tb_model_graph(w->m, p);
    size_t top = w->stack->first + w->stack->nrows - 1;
    tb_flow_row *row = &w->f->rows[w->k_now];
    tb_run run;
    TB_TRY(tb_model_run(w->m, p, w->batch, &run));
    TB_TRY(tb_walk_values(w, &run, p, 0, g->nboundaries - 1, run.inputs[0],
                          run.outputs[0], row));
    row->name = row_name(h, g);
    if (!row->name)
        return TB_ERR_MEMORY;
    TB_TRY(pull_both(h, &run, p));
    if (w->k_now == top)
        w->top = tb_walk_lengths(w, NULL, w->total).whole;
    tb_walk_gains(w, w->total, row);
    TB_TRY(split(h, &run, g, row));
    row->role = w->stack->role;
    row->k = w->k_now--;
    row->layer = tb_model_layer(w->m, p);
    TB_TRY(tb_walk_audit(w, &run, p, 0, g->nboundaries - 1, row));
    return tb_walk_audit_part(w, &run, p);
}

static tb_status stem_down(tb_history *h)
{
    tb_walk *w = h->w;
    size_t stem = w->layers.first - 1;
    tb_flow_row *row = &w->f->rows[w->k_now];
    tb_run run;
    *row = (tb_flow_row){.k = w->k_now,
                         .role = w->stack->role,
                         .name = "stem",
                         .toll = 1,
                         .toll_max = 1,
                         .local_lane = 1};
    TB_TRY(tb_model_run(w->m, stem, w->batch, &run));
    TB_TRY(pull_both(h, &run, stem));
    tb_walk_gains(w, w->total, row);
    tb_walk_spread(w, run.outputs[0], row);
    return tb_walk_stream(w, NULL, run.outputs[0], row);
}

/* --- the walk ------------------------------------------------------------ */

/* The lane of a stack starts as the whole gradient of all that its last part
 * reads. */
static void start_lane(tb_history *h, size_t end)
{
    const tb_model *m = h->w->m;
    const tb_graph *g = tb_model_graph(m, end);
    for (int i = 0; i < g->ninputs; i++) {
        int v = tb_model_in_value(m, end, (size_t)i);
        if (v < 0 || !h->whole.has[v])
            continue;
        h->cut.has[v] = true;
        memcpy(h->cut.at[v], h->whole.at[v],
               tb_model_value_count(m, (size_t)v) * tb_dtype_size(m->dtype));
    }
}

static tb_status start_at(tb_history *h, const tb_flow_spec *spec, size_t end)
{
    tb_walk *w = h->w;
    int x = tb_model_in_value(w->m, end, 0);
    tb_run run;
    TB_TRY(tb_model_run(w->m, end, w->batch, &run));
    TB_TRY(tb_walk_final(w, &run, end));
    if (end != tb_model_tail(w->m) || spec->cotangent == TB_COTANGENT_LOSS) {
        TB_TRY(pull(h, &run, end, &h->whole, false, NULL));
    } else {
        tb_walk_cotangent(w, spec);
        memcpy(h->whole.at[x], w->total, w->n * tb_dtype_size(w->m->dtype));
        h->whole.has[x] = true;
    }
    start_lane(h, end);
    return TB_OK;
}

tb_status tb_history_walk(tb_history *h, const tb_flow_spec *spec, size_t end)
{
    tb_walk *w = h->w;
    TB_TRY(start_at(h, spec, end));
    for (size_t i = w->layers.n; i-- > 0;) {
        TB_TRY(layer_down(h, w->layers.first + i));
        if (tb_ctx_interrupted(w->ctx))
            return TB_FAIL(w->ctx, TB_INTERRUPTED, "flow: interrupted");
    }
    return stem_down(h);
}

tb_status tb_history_make(tb_walk *w, tb_flow_box *box, tb_arena *a,
                          tb_history **out)
{
    tb_history *h = TB_NEW(a, tb_history);
    if (!h)
        return TB_ERR_MEMORY;
    h->w = w;
    h->box = box;
    box->flow.lists = true;
    TB_TRY(make_tables(h, a));
    TB_TRY(ledger_make(w, a, &h->whole));
    TB_TRY(ledger_make(w, a, &h->cut));
    *out = h;
    return TB_OK;
}
