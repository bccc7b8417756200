/* SPDX-License-Identifier: MIT */
/* Every norm of a model, on the lane or inside a branch: its toll, and what it
 * divides rows by. The walk comes from the top, so the list fills from its
 * end. */
#include "flow/walk.h"

static bool is_norm(const tb_graph *g, int i)
{
    return g->nodes[i].op->gain != NULL;
}

tb_status tb_walk_make_norms(tb_walk *w, tb_flow_box *box)
{
    size_t n = 0;
    for (size_t p = 0; p < w->m->nparts; p++) {
        const tb_graph *g = tb_model_graph(w->m, p);
        for (int i = 0; i < g->nnodes; i++)
            n += is_norm(g, i);
    }
    w->norms_left = w->f->nnorms = n;
    w->f->norms = tb_arena_alloc(&box->arena, (n + 1) * sizeof *w->f->norms);
    return w->f->norms ? TB_OK : TB_ERR_MEMORY;
}

/* "layers.0.attn.norm" of its first weight "layers.0.attn.norm.gain". */
static const char *name_of(tb_walk *w, size_t p, int node)
{
    const tb_graph *g = tb_model_graph(w->m, p);
    const tb_node *n = &g->nodes[node];
    for (int i = 1; i < n->nin; i++) {
        int param = g->nodes[n->in[i]].param;
        if (param < 0)
            continue;
        const char *name = tb_model_part_view(w->m, p, (size_t)param)->name;
        const char *dot = strrchr(name, '.');
        size_t length = dot ? (size_t)(dot - name) : strlen(name);
        return tb_arena_strndup(&w->box->arena, name, length);
    }
    return n->op->name;
}

/* Heap sort: no recursion, no library. */
static void sift(double *v, size_t root, size_t n)
{
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && v[child] < v[child + 1])
            child++;
        if (!(v[root] < v[child]))
            return;
        double t = v[root];
        v[root] = v[child];
        v[child] = t;
    }
}

static void sort(double *v, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(v, i, n);
    for (size_t i = n; i-- > 1;) {
        double t = v[0];
        v[0] = v[i];
        v[i] = t;
        sift(v, 0, i);
    }
}

static tb_status scales(tb_walk *w, const tb_run *run, int node,
                        tb_flow_norm *out)
{
    double s, share, *all;
    size_t n = 0, at = 0, worst = 0, tokens = w->nx / w->m->sizes.s.width;
    while (tb_plan_scale(w->ctx, run, node, n, &s, &share))
        n++;
    if (n == 0)
        return TB_OK;
    all = tb_alloc(w->ctx, n, sizeof *all);
    if (!all)
        return TB_ERR_MEMORY;
    for (; tb_plan_scale(w->ctx, run, node, at, &s, &share); at++) {
        all[at] = s;
        if (at && !(share > out->eps_share))
            continue;
        out->eps_share = share;
        worst = at;
    }
    /* of a norm in groups a token has several rows */
    out->eps_token = worst / (n > tokens ? n / tokens : 1) + 1;
    sort(all, n);
    out->has_s = true;
    out->s_min = all[0];
    out->s_median = all[n / 2];
    out->s_max = all[n - 1];
    tb_free(w->ctx, all);
    return TB_OK;
}

void tb_walk_keep_norms(tb_walk *w)
{
    w->f->norms += w->norms_left;
    w->f->nnorms -= w->norms_left;
}

tb_status tb_walk_norm(tb_walk *w, const tb_run *run, size_t p, int node,
                       bool lane, const tb_flow_norm **out)
{
    if (w->norms_left == 0)
        return TB_FAIL(w->ctx, TB_ERR_ARG, "flow: more norms than there are");
    tb_flow_norm *n = &w->f->norms[--w->norms_left];
    tb_part_role role = tb_model_role(w->m, p);
    bool layer = role == TB_PART_LAYER;
    *n = (tb_flow_norm){.k = w->k_now,
                        .layer = layer ? tb_model_layer(w->m, p) : 0,
                        .role = w->stack->role,
                        .name = name_of(w, p, node),
                        .kind = tb_model_graph(w->m, p)->nodes[node].op->name,
                        .lane = lane};
    *out = n;
    if (!n->name)
        return TB_ERR_MEMORY;
    TB_TRY(tb_plan_gain(w->ctx, run, node, &n->toll, &n->toll_max));
    return scales(w, run, node, n);
}
