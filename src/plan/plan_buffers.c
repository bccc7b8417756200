/* SPDX-License-Identifier: MIT */
/* Who stands where: values that a later pass reads in `saved`, everything
 * else in `work` for as long as it is read, first fit. */
#include "plan/plan_parts.h"

enum { ALIGN = 64 };

tb_status tb_plan_grow(tb_ctx *ctx, const tb_plan *p, size_t bytes,
                       size_t *total, size_t *at)
{
    size_t start, end;
    bool fits = tb_add(*total, ALIGN - 1, &start);
    start = fits ? start - start % ALIGN : 0;
    if (!fits || !tb_add(start, bytes, &end))
        return TB_FAIL(ctx, TB_ERR_MEMORY, "%s: its buffers are too large",
                       p->name);
    *at = start;
    *total = end;
    return TB_OK;
}

/* --- who reads what ----------------------------------------------------- */

static void note_reader(tb_plan *p, int node)
{
    const tb_node *n = &p->graph->nodes[node];
    tb_step *s = &p->steps[node];
    s->root = n->op->alias || s->in_place ? p->steps[n->in[0]].root : node;
    s->last = s->lowest = node;
    s->reader = s->output = -1;
    for (int i = 0; i < n->nin; i++) {
        tb_step *in = &p->steps[n->in[i]];
        in->reader = node;
        p->steps[in->root].last = node;
    }
}

static void note_outputs(tb_plan *p)
{
    for (int o = 0; o < p->graph->noutputs; o++) {
        tb_step *s = &p->steps[p->graph->outputs[o].node];
        tb_step *root = &p->steps[s->root];
        root->keep = true;
        if (root->output < 0)
            root->output = o;
    }
}

/* Backward and tangent read what their ops ask for, and nothing else. */
static void note_needs(tb_plan *p, int node)
{
    const tb_node *n = &p->graph->nodes[node];
    if (p->passes & TB_PASS_KEEP)
        p->steps[node].keep = true;
    if (!(p->passes & (TB_PASS_BWD | TB_PASS_TAN)))
        return;
    for (int i = 0; i < n->nin; i++)
        if (n->op->needs & TB_NEED_IN(i))
            p->steps[p->steps[n->in[i]].root].keep = true;
    if (n->op->needs & TB_NEED_OUT)
        p->steps[p->steps[node].root].keep = true;
}

/* The gradient of a term of one sum is the sum's gradient: no copy. Not where
 * an output's cotangent is added. (Where a piece ends, the caller's buffer
 * takes a copy.) */
static bool may_borrow(const tb_plan *p, int node)
{
    const tb_step *s = &p->steps[node];
    if (tb_plan_leaf(p, node) || s->readers != 1 || s->outputs > 0)
        return false;
    const tb_node *reader = &p->graph->nodes[s->reader];
    int i = 0;
    if (p->steps[s->reader].in_place)
        return true;
    while (reader->in[i] != node)
        i++;
    return tb_plan_through(p, s->reader, i);
}

static void note_borrowing(tb_plan *p, int node)
{
    tb_step *s = &p->steps[node];
    s->borrows = may_borrow(p, node);
    if (s->borrows && s->lowest < p->steps[s->reader].lowest)
        p->steps[s->reader].lowest = s->lowest;
}

/* --- first fit ---------------------------------------------------------- */

typedef struct span {
    size_t from, to; /* bytes */
    int until;       /* last segment that reads it */
} span;

/* Buffers in use, by address. */
typedef struct pool {
    const tb_plan *p;
    span *live;
    int n;
    size_t top;
} pool;

static void expire(pool *q, int now)
{
    int kept = 0;
    for (int i = 0; i < q->n; i++)
        if (q->live[i].until >= now)
            q->live[kept++] = q->live[i];
    q->n = kept;
}

/* The lowest gap of `bytes`, in use until `until`. */
static tb_status take(tb_ctx *ctx, pool *q, size_t bytes, int until, size_t *at)
{
    size_t end = 0;
    int i = 0;
    TB_TRY(tb_plan_grow(ctx, q->p, bytes, &end, at));
    for (; i < q->n && q->live[i].from < end; i++) {
        end = q->live[i].to;
        TB_TRY(tb_plan_grow(ctx, q->p, bytes, &end, at));
    }
    memmove(q->live + i + 1, q->live + i,
            (size_t)(q->n - i) * sizeof(*q->live));
    q->live[i] = (span){.from = *at, .to = end, .until = until};
    q->n++;
    if (end > q->top)
        q->top = end;
    return TB_OK;
}

/* --- saved and scratch -------------------------------------------------- */

/* Made and read by row parts of one segment. A check comes behind them. */
static bool value_in_tile(const tb_plan *p, int node)
{
    const tb_step *s = &p->steps[node];
    if (s->call.out_shape.kind != TB_SHAPE_STREAM ||
        p->graph->nodes[node].op->fwd || p->steps[s->last].fwd != s->fwd)
        return false;
    for (int n = node + 1; n <= s->last; n++)
        for (int i = 0; i < p->graph->nodes[n].nin; i++)
            if (p->graph->nodes[n].op->check &&
                p->steps[p->graph->nodes[n].in[i]].root == node)
                return false;
    return true;
}

/* The same of a gradient, complete when its node's row part comes. */
static bool gradient_in_tile(const tb_plan *p, int node)
{
    const tb_step *s = &p->steps[node];
    return s->call.out_shape.kind == TB_SHAPE_STREAM && s->lowest == node &&
           s->outputs == 0 && s->reader >= 0 &&
           p->steps[s->reader].bwd == s->bwd && !p->graph->nodes[node].op->bwd;
}

/* Nobody but the op that makes the gradient reads the value by then. */
static bool gradient_over_value(const tb_plan *p, int node)
{
    const tb_step *s = &p->steps[node];
    const tb_node *n = &p->graph->nodes[node], *r;
    if (!(p->passes & TB_PASS_ONCE) || tb_plan_leaf(p, node) ||
        s->root != node || s->readers != 1 || (n->op->needs & TB_NEED_OUT))
        return false;
    r = &p->graph->nodes[s->reader];
    for (int i = 0; i < r->nin; i++)
        if (r->in[i] == node)
            return (r->op->over & r->op->needs & TB_NEED_IN(i)) != 0;
    return false;
}

static tb_status take_tile(tb_ctx *ctx, tb_plan *p, int node, tb_segment *g,
                           size_t *at)
{
    const tb_opcall *c = &p->steps[node].call;
    size_t rows = tb_rows_tile(g->row_bytes), all = tb_op_row_count(c);
    size_t bytes = tb_op_times(rows < all ? rows : all,
                               tb_op_bytes(c, c->out_shape.width));
    TB_TRY(tb_plan_grow(ctx, p, bytes, &g->store, at));
    if (g->store > p->store_bytes)
        p->store_bytes = (g->store + ALIGN - 1) / ALIGN * ALIGN;
    return TB_OK;
}

static tb_status place_value(tb_ctx *ctx, tb_plan *p, int node)
{
    tb_step *s = &p->steps[node];
    if (tb_plan_leaf(p, node) || s->root != node)
        return TB_OK;
    s->place = s->keep ? TB_PLACE_SAVED : TB_PLACE_WORK;
    if (s->keep)
        return tb_plan_grow(ctx, p, s->bytes, &p->saved_bytes, &s->at);
    if (value_in_tile(p, node)) {
        s->place = TB_PLACE_TILE;
        return take_tile(ctx, p, node, &p->fwd[s->fwd], &s->at);
    }
    return TB_OK;
}

/* The calls of a segment wait together, each with its own scratch. */
static tb_status borrow(tb_ctx *ctx, tb_plan *p, tb_segment *g, size_t bytes)
{
    size_t at;
    TB_TRY(tb_plan_grow(ctx, p, bytes, &g->scratch, &at));
    if (g->scratch > p->scratch_bytes)
        p->scratch_bytes = g->scratch;
    return TB_OK;
}

/* What an op leaves for its backward is saved where there will be one; else
 * it stands behind the scratch of that one call. */
static tb_status place_call(tb_ctx *ctx, tb_plan *p, int node)
{
    const tb_op *op = p->graph->nodes[node].op;
    tb_step *s = &p->steps[node];
    size_t scratch = tb_op_scratch(op, &s->call);
    size_t saved = op->saved && tb_plan_saves(p, op) ? op->saved(&s->call) : 0;
    if (p->passes)
        TB_TRY(tb_plan_grow(ctx, p, saved, &p->saved_bytes, &s->saved_at));
    else
        TB_TRY(tb_plan_grow(ctx, p, saved, &scratch, &s->saved_at));
    TB_TRY(tb_plan_grow(ctx, p, 0, &scratch, &s->scratch));
    TB_TRY(borrow(ctx, p, &p->fwd[s->fwd], s->scratch));
    return borrow(ctx, p, &p->bwd[s->bwd], s->scratch);
}

/* --- work, one pass at a time; time runs by segments -------------------- */

static tb_status place_forward(tb_ctx *ctx, tb_plan *p, pool *q)
{
    for (int n = 0; n < p->graph->nnodes; n++) {
        tb_step *s = &p->steps[n];
        expire(q, s->fwd);
        if (s->place == TB_PLACE_WORK && s->root == n)
            TB_TRY(take(ctx, q, s->bytes, p->steps[s->last].fwd, &s->at));
    }
    return TB_OK;
}

static tb_status place_tangent(tb_ctx *ctx, tb_plan *p, pool *q)
{
    for (int n = 0; n < p->graph->nnodes; n++) {
        tb_step *s = &p->steps[n];
        expire(q, s->fwd);
        if (!tb_plan_leaf(p, n) && s->root == n)
            TB_TRY(take(ctx, q, s->bytes, p->steps[s->last].fwd, &s->tan_at));
    }
    return TB_OK;
}

/* A gradient lives from its node's last reader down to the node itself, or to
 * the lowest node that borrows it. */
static tb_status take_grad(tb_ctx *ctx, tb_plan *p, pool *q, int node)
{
    tb_step *s = &p->steps[node];
    s->grad_over = gradient_over_value(p, node);
    if (tb_plan_leaf(p, node) || s->borrows || s->grad_over)
        return TB_OK;
    s->grad_tile = gradient_in_tile(p, node);
    if (s->grad_tile)
        return take_tile(ctx, p, node, &p->bwd[s->bwd], &s->grad_at);
    return take(ctx, q, s->bytes, p->steps[s->lowest].bwd, &s->grad_at);
}

/* Is this the first of the reader's input slots that `node` fills, and the
 * reader the first to add to its gradient? */
static bool opens(const tb_plan *p, int reader, int i)
{
    const tb_node *n = &p->graph->nodes[reader];
    const tb_step *s = &p->steps[n->in[i]];
    for (int j = 0; j < i; j++)
        if (n->in[j] == n->in[i])
            return false;
    return s->reader == reader && s->outputs < 2;
}

static tb_status place_gradients(tb_ctx *ctx, tb_plan *p, pool *q)
{
    int nnodes = p->graph->nnodes;
    for (int n = 0; n < nnodes; n++)
        if (p->steps[n].outputs > 1) /* summed before the pass starts */
            TB_TRY(take_grad(ctx, p, q, n));
    for (int n = nnodes - 1; n >= 0; n--) {
        const tb_node *node = &p->graph->nodes[n];
        expire(q, p->steps[n].bwd);
        for (int i = 0; i < node->nin; i++)
            if (opens(p, n, i))
                TB_TRY(take_grad(ctx, p, q, node->in[i]));
    }
    return TB_OK;
}

static size_t most_calls(const tb_plan *p)
{
    size_t most = 0;
    for (int i = 0; i <= p->graph->nnodes; i++) {
        most = p->fwd[i].calls > most ? p->fwd[i].calls : most;
        most = p->bwd[i].calls > most ? p->bwd[i].calls : most;
    }
    return most;
}

typedef tb_status (*placer)(tb_ctx *, tb_plan *, pool *);

/* The passes take turns in the same bytes. */
static tb_status place_passes(tb_ctx *ctx, tb_plan *p, span *live)
{
    const placer pass[] = {place_forward, place_gradients, place_tangent};
    const unsigned wanted[] = {0, TB_PASS_BWD, TB_PASS_TAN};
    size_t top = 0;
    for (size_t i = 0; i < TB_LEN(pass); i++) {
        pool q = {.p = p, .live = live};
        if (wanted[i] && !(p->passes & wanted[i]))
            continue;
        TB_TRY(pass[i](ctx, p, &q));
        top = q.top > top ? q.top : top;
    }
    size_t total = p->scratch_bytes;
    TB_TRY(tb_plan_grow(ctx, p, p->table_bytes, &total, &p->table_at));
    TB_TRY(tb_plan_grow(ctx, p, most_calls(p) * sizeof(tb_rowcall), &total,
                        &p->calls_at));
    TB_TRY(tb_plan_grow(ctx, p, tb_op_times(p->store_bytes, p->slots), &total,
                        &p->store_at));
    TB_TRY(tb_plan_grow(ctx, p, top, &total, &p->pool_at));
    p->work_bytes = total;
    return TB_OK;
}

tb_status tb_plan_place(tb_ctx *ctx, tb_plan *p)
{
    size_t nnodes = (size_t)p->graph->nnodes;
    tb_plan_segments(p);
    for (int n = 0; n < p->graph->nnodes; n++)
        note_reader(p, n);
    note_outputs(p);
    for (int n = 0; n < p->graph->nnodes; n++) {
        note_needs(p, n);
        note_borrowing(p, n);
    }
    for (int n = 0; n < p->graph->nnodes; n++) {
        TB_TRY(place_value(ctx, p, n));
        TB_TRY(place_call(ctx, p, n));
    }
    if (!tb_mul(nnodes, sizeof(tb_grad), &p->table_bytes))
        return TB_FAIL(ctx, TB_ERR_MEMORY, "%s: too many nodes", p->name);
    span *live = tb_alloc(ctx, nnodes, sizeof(*live));
    if (!live)
        return TB_ERR_MEMORY;
    tb_status s = place_passes(ctx, p, live);
    tb_free(ctx, live);
    return s;
}
