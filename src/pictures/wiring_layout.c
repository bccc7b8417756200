/* SPDX-License-Identifier: MIT */
/* Places for a wiring: nodes in order, each at the first rank behind its
 * inputs where the rows that it reaches across are free. A stream keeps its
 * row: a node takes it over only when nothing reads the value in it any more,
 * else it stands above and the stream's end comes back down. */
#include "pictures/wiring.h"

typedef struct layer {
    tb_arena *a;
    const struct tb_wiring *w;
    tb_laid *l;
    bool single;
    int *place;  /* per node of the wiring; a bend moves it */
    int *uses;   /* per place: readers that are not placed yet */
    int *holder; /* per row: place whose value is in it, -1 */
    int *from;   /* per row: first rank it is free at */
    int rows;    /* room for so many */
    int least;   /* rank that the next nodes cannot be before */
} layer;

static int times_used(const tb_placed *p, int place)
{
    int n = 0;
    for (int i = 0; i < p->n; i++)
        n += p->in[i] == place;
    return n;
}

static bool is_free(const layer *y, int row, int rank)
{
    return y->holder[row] < 0 && y->from[row] <= rank;
}

/* Does the row's value end at this node? All others read it before. */
static bool ends_here(const layer *y, const tb_placed *p, int row, int rank)
{
    int at = y->holder[row];
    return at >= 0 && times_used(p, at) > 0 &&
           times_used(p, at) == y->uses[at] && y->l->places[at].last < rank;
}

/* Something else that is still read stands in it. */
static bool is_held(const layer *y, const tb_placed *p, int row)
{
    int at = y->holder[row];
    return at >= 0 && times_used(p, at) != y->uses[at];
}

static int fixed_rows(const layer *y)
{
    return y->w->nstreams;
}

static int choose_row(const layer *y, const tb_placed *p, int rank)
{
    int stream = p->what ? p->what->stream : -1;
    if (stream >= 0 &&
        (is_free(y, stream, rank) || ends_here(y, p, stream, rank)))
        return stream;
    for (int i = 0; i < p->n; i++) {
        int row = y->l->places[p->in[i]].row;
        if (row >= fixed_rows(y) && ends_here(y, p, row, rank))
            return row;
    }
    int row = fixed_rows(y);
    while (row + 1 < y->rows && !is_free(y, row, rank))
        row++;
    return row;
}

static void reach(const layer *y, tb_placed *p)
{
    p->lo = p->hi = p->row;
    for (int i = 0; i < p->n; i++) {
        int row = y->l->places[p->in[i]].row;
        p->lo = row < p->lo ? row : p->lo;
        p->hi = row > p->hi ? row : p->hi;
    }
}

static bool is_clear(const layer *y, const tb_placed *p)
{
    for (int i = 0; i < y->l->n; i++) {
        const tb_placed *q = &y->l->places[i];
        if (q->rank == p->rank && q->lo <= p->hi && p->lo <= q->hi)
            return false;
    }
    return true;
}

/* The ends of a stream stand in its row and nowhere else. */
static bool must_stream(const tb_placed *p)
{
    return p->what && p->what->stream >= 0 &&
           (p->what->kind == TB_WIRED_OUT || p->what->kind == TB_WIRED_IN);
}

static void settle(layer *y, tb_placed *p)
{
    p->rank =
        y->single && y->l->n ? y->l->places[y->l->n - 1].rank + 1 : y->least;
    for (int i = 0; i < p->n; i++)
        if (y->l->places[p->in[i]].rank >= p->rank)
            p->rank = y->l->places[p->in[i]].rank + 1;
    for (;; p->rank++) {
        p->row = choose_row(y, p, p->rank);
        if (must_stream(p) && p->row != p->what->stream)
            continue;
        reach(y, p);
        if (is_clear(y, p))
            return;
    }
}

static void take(layer *y, int at)
{
    tb_placed *p = &y->l->places[at];
    for (int i = 0; i < p->n; i++) {
        tb_placed *u = &y->l->places[p->in[i]];
        u->last = p->rank > u->last ? p->rank : u->last;
        if (--y->uses[p->in[i]] == 0 && u->row != p->row) {
            y->holder[u->row] = -1;
            y->from[u->row] = u->last + 1;
        }
    }
    y->holder[p->row] = y->uses[at] ? at : -1;
    y->from[p->row] = p->rank + 1;
    p->last = p->rank;
    if (p->rank >= y->l->ranks)
        y->l->ranks = p->rank + 1;
    if (p->row >= y->l->rows)
        y->l->rows = p->row + 1;
    y->l->n++;
}

/* A value in the way of a stream's end goes on in another row. */
static tb_status bend(layer *y, int row)
{
    int from = y->holder[row], at = y->l->n;
    tb_placed *p = &y->l->places[at];
    *p = (tb_placed){.n = 1, .lane = y->l->places[from].lane};
    p->in = tb_arena_alloc(y->a, sizeof *p->in);
    if (!p->in)
        return TB_ERR_MEMORY;
    p->in[0] = from;
    y->uses[at] = y->uses[from];
    y->uses[from] = 1;
    for (int i = 0; i < y->w->n; i++)
        if (y->place[i] == from)
            y->place[i] = at;
    settle(y, p);
    take(y, at);
    return TB_OK;
}

static int count_uses(const layer *y, int node)
{
    int n = 0;
    for (int i = node + 1; i < y->w->n; i++)
        for (int k = 0; k < y->w->nodes[i].n; k++)
            n += y->w->nodes[i].in[k] == node;
    return n;
}

static tb_status gather(layer *y, const tb_wired *n, tb_placed *p)
{
    *p = (tb_placed){.what = n, .n = n->n, .lane = n->lane};
    p->in = tb_arena_alloc(y->a, ((size_t)n->n + 1) * sizeof *p->in);
    for (int i = 0; p->in && i < n->n; i++)
        p->in[i] = y->place[n->in[i]];
    return p->in ? TB_OK : TB_ERR_MEMORY;
}

static tb_status add(layer *y, int i)
{
    const tb_wired *n = &y->w->nodes[i];
    tb_placed p;
    TB_TRY(gather(y, n, &p));
    if (n->kind == TB_WIRED_OUT && n->stream >= 0 &&
        is_held(y, &p, n->stream)) {
        TB_TRY(bend(y, n->stream));
        TB_TRY(gather(y, n, &p));
    }
    y->place[i] = y->l->n;
    y->uses[y->l->n] = count_uses(y, i);
    y->l->places[y->l->n] = p;
    settle(y, &y->l->places[y->l->n]);
    take(y, y->l->n);
    return TB_OK;
}

static bool is_ready(const layer *y, int node)
{
    const tb_wired *n = &y->w->nodes[node];
    for (int k = 0; k < n->n; k++)
        if (y->place[n->in[k]] < 0)
            return false;
    return y->place[node] < 0;
}

/* Would it have to stand beside its stream's row, since others read what is
 * in it? */
static bool can_wait(const layer *y, int node)
{
    const tb_wired *n = &y->w->nodes[node];
    int at = n->lane && n->stream >= 0 ? y->holder[n->stream] : -1, own = 0;
    for (int k = 0; k < n->n; k++)
        own += y->place[n->in[k]] == at;
    return at >= 0 && own < y->uses[at];
}

/* Nodes [from, to): in order, those that can wait after all that need not. */
static tb_status add_all(layer *y, int from, int to)
{
    for (int left = to - from; left > 0; left--) {
        int next = -1;
        bool waits = true;
        for (int i = from; i < to && waits; i++)
            if (is_ready(y, i) && (next < 0 || !can_wait(y, i))) {
                next = i;
                waits = can_wait(y, i);
            }
        TB_TRY(add(y, next));
        while (from < to && y->place[from] >= 0)
            from++;
    }
    return TB_OK;
}

static int run_of(const struct tb_wiring *w, int from)
{
    bool leaves = w->nodes[from].kind == TB_WIRED_OUT;
    int to = from + 1;
    while (to < w->n && to != w->stem && to != w->block &&
           (w->nodes[to].kind == TB_WIRED_OUT) == leaves)
        to++;
    return to;
}

tb_status tb_wiring_lay(tb_arena *a, const struct tb_wiring *w, bool single,
                        tb_laid *out)
{
    size_t n = 2 * (size_t)w->n + (size_t)w->nstreams + 2;
    layer y = {.a = a, .w = w, .l = out, .single = single, .rows = (int)n};
    *out = (tb_laid){.rows = w->nstreams};
    out->places = tb_arena_alloc(a, n * sizeof *out->places);
    y.place = tb_arena_alloc(a, n * sizeof *y.place);
    y.uses = tb_arena_alloc(a, n * sizeof *y.uses);
    y.holder = tb_arena_alloc(a, n * sizeof *y.holder);
    y.from = tb_arena_alloc(a, n * sizeof *y.from);
    if (!out->places || !y.place || !y.uses || !y.holder || !y.from)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        y.holder[i] = y.place[i] = -1;
    for (int i = 0, to; i < w->n; i = to) { /* nodes, ends, nodes, ends */
        to = run_of(w, i);
        if (i == w->stem)
            out->begin = out->ranks;
        if (i == w->block)
            out->end = out->ranks;
        if (i == w->stem || i == w->block || w->nodes[i].kind == TB_WIRED_OUT)
            y.least = out->ranks;
        TB_TRY(add_all(&y, i, to));
    }
    if (w->block == w->n)
        out->end = out->ranks;
    return TB_OK;
}
