/* SPDX-License-Identifier: MIT */
/* Gradients of weights while the walk goes down: those of one part stand in a
 * buffer that the next part takes over, and are measured before. Only what
 * several parts share (a tied table) has a place of its own. */
#include "flow/walk.h"

struct tb_flow_weights {
    tb_walk *w;
    size_t *lowest; /* per view: the last part of the walk that has it */
    size_t *at;     /* per view: elements into `passing` or `lasting` */
    bool *lasts;    /* per view: several parts have it */
    int *row;       /* per view: its row in the flow, -1: none */
    void *passing, *lasting;
    void **gparams; /* tables wide enough for every part */
    bool *fresh;
    size_t nonfinite;
};

/* --- where gradients stand -------------------------------------------------
 */

static size_t view_of(const tb_model *m, size_t p, int i)
{
    return (size_t)(tb_model_part_view(m, p, (size_t)i) - m->views);
}

static void find_parts(tb_flow_weights *g)
{
    const tb_model *m = g->w->m;
    for (size_t v = 0; v < m->nviews; v++)
        g->lowest[v] = m->nparts;
    for (size_t p = m->nparts; p-- > 0;)
        for (int i = 0; i < tb_model_graph(m, p)->nparams; i++) {
            size_t v = view_of(m, p, i);
            g->lasts[v] = g->lowest[v] < m->nparts && g->lowest[v] != p;
            g->lowest[v] = p;
        }
}

/* A line of the cache for each: 16 elements of float. */
static size_t room_for(const tb_view *v)
{
    return (v->count + 15) / 16 * 16;
}

/* The elements of both buffers, and how many weights a part has. */
static void place(tb_flow_weights *g, size_t *passing, size_t *lasting,
                  size_t *most)
{
    const tb_model *m = g->w->m;
    *passing = *lasting = *most = 0;
    for (size_t p = 0; p < m->nparts; p++) {
        size_t end = 0, n = (size_t)tb_model_graph(m, p)->nparams;
        for (int i = 0; i < (int)n; i++) {
            size_t v = view_of(m, p, i), *at = g->lasts[v] ? lasting : &end;
            if (g->lowest[v] != p)
                continue;
            g->at[v] = *at;
            *at += room_for(&m->views[v]);
        }
        *passing = end > *passing ? end : *passing;
        *most = n > *most ? n : *most;
    }
}

static tb_status make_room(tb_flow_weights *g, tb_arena *a)
{
    size_t passing, lasting, most, n = g->w->m->nviews + 1;
    size_t one = tb_dtype_size(g->w->m->dtype);
    g->lowest = tb_arena_alloc(a, n * sizeof *g->lowest);
    g->at = tb_arena_alloc(a, n * sizeof *g->at);
    g->lasts = tb_arena_alloc(a, n * sizeof *g->lasts);
    if (!g->lowest || !g->at || !g->lasts)
        return TB_ERR_MEMORY;
    find_parts(g);
    place(g, &passing, &lasting, &most);
    g->passing = tb_arena_alloc(a, passing * one + 64);
    g->lasting = tb_arena_alloc(a, lasting * one + 64);
    g->gparams = tb_arena_alloc(a, (most + 1) * sizeof *g->gparams);
    g->fresh = tb_arena_alloc(a, (most + 1) * sizeof *g->fresh);
    return g->passing && g->lasting && g->gparams && g->fresh ? TB_OK
                                                              : TB_ERR_MEMORY;
}

/* --- rows ------------------------------------------------------------------
 */

/* Mean and standard deviation of a weight as it is. */
static void spread(const tb_walk *w, const tb_view *v, tb_flow_weight *out)
{
    const char *all = w->m->params;
    const tb_spread s = tb_flow_moments(
        w->ctx, w->k, v->count, all + v->offset * tb_dtype_size(w->m->dtype));
    out->mean = s.mean;
    out->std = s.std;
}

/* In the model's order; the walk fills in the lengths. */
static tb_status make_rows(tb_flow_weights *g, tb_flow_box *box)
{
    tb_walk *w = g->w;
    const tb_model *m = w->m;
    tb_flow *f = w->f;
    f->weights = tb_arena_alloc(&box->arena, m->nviews * sizeof *f->weights);
    g->row = tb_arena_alloc(&box->arena, m->nviews * sizeof *g->row);
    if (!f->weights || !g->row)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < m->nviews; i++) {
        const tb_view *v = &m->views[i];
        g->row[i] = -1;
        if (v->role == TB_ROLE_BUFFER)
            continue;
        g->row[i] = (int)f->nweights;
        tb_flow_weight *out = &f->weights[f->nweights++];
        *out = (tb_flow_weight){.name = tb_arena_strdup(&box->arena, v->name),
                                .layer = v->layer,
                                .elements = v->count,
                                .start = tb_arena_strdup(&box->arena, v->rule)};
        if (!out->name || !out->start)
            return TB_ERR_MEMORY;
        if (f->has_spread)
            spread(w, v, out);
    }
    return TB_OK;
}

tb_status tb_walk_make_weights(tb_walk *w, tb_flow_box *box, tb_arena *a)
{
    tb_flow_weights *g = TB_NEW(a, tb_flow_weights);
    if (!g)
        return TB_ERR_MEMORY;
    g->w = w;
    TB_TRY(make_room(g, a));
    TB_TRY(make_rows(g, box));
    w->weights = g;
    return TB_OK;
}

/* --- the walk --------------------------------------------------------------
 */

static void *gradient(const tb_flow_weights *g, size_t v)
{
    char *base = g->lasts[v] ? g->lasting : g->passing;
    return base + g->at[v] * tb_dtype_size(g->w->m->dtype);
}

bool tb_walk_want_weights(tb_walk *w, size_t p, tb_bwd *b)
{
    tb_flow_weights *g = w->weights;
    if (!g)
        return false;
    const tb_graph *graph = tb_model_graph(w->m, p);
    for (int i = 0; i < graph->nparams; i++) {
        size_t v = view_of(w->m, p, i);
        g->gparams[i] = gradient(g, v);
        g->fresh[i] = !g->lasts[v];
    }
    b->gparams = g->gparams;
    b->fresh = g->fresh;
    return true;
}

void tb_walk_measure_weights(tb_walk *w, size_t p)
{
    tb_flow_weights *g = w->weights;
    const tb_graph *graph = tb_model_graph(w->m, p);
    for (int i = 0; g && i < graph->nparams; i++) {
        size_t v = view_of(w->m, p, i);
        if (g->row[v] < 0 || g->lowest[v] != p)
            continue;
        const tb_lengths l = tb_flow_lengths(w->ctx, w->k, w->m->views[v].count,
                                             NULL, gradient(g, v));
        w->f->weights[g->row[v]].grad_norm = l.whole;
        g->nonfinite += l.nonfinite;
    }
}

size_t tb_walk_weights_nonfinite(const tb_walk *w)
{
    return w->weights ? w->weights->nonfinite : 0;
}
