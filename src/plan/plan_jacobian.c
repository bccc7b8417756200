/* SPDX-License-Identifier: MIT */
/* A Jacobian from one forward pass by many cotangents at once: node by node,
 * as many gradients of the batch as there are cotangents go through an op's
 * backward. What forward left is there once.
 *
 * A cotangent is one element (token t, channel c) of the outputs. Down to where
 * tokens meet (attention) its gradient is zero at all other tokens, so those of
 * one channel share a copy there: a token's row is that of its own cotangent.
 * Such a gradient is called narrow, [channels, B, T, width]; below attention it
 * is wide, [channels, T, B, T, width], but for the queries: each belongs to one
 * token of the value. */
#include "plan/plan_parts.h"

/** The gradient of one node, and where it stands in the room of a chunk. */
typedef struct form {
    bool wanted; /* something wanted lies behind */
    bool narrow, wide;
    bool split; /* narrow came; wide to the inputs where tokens meet */
    size_t one; /* elements of the value */
    size_t narrow_at, wide_at;
} form;

/** What counts of a node's gradient by now. Where nothing has come, nothing is
 * read. */
typedef struct mark {
    bool narrow, wide; /* something has come */
    bool open;         /* what comes narrow is added to the wide one */
} mark;

typedef struct job {
    tb_ctx *ctx;
    const tb_run *r;
    const tb_plan *p;
    const tb_jacobian_spec *j;
    const tb_kern *k;
    size_t batch, time, channels;
    form *forms;    /* per node */
    size_t at_once; /* channels of a chunk */
    size_t slots;   /* chunks at once */
    size_t grads;   /* bytes of a chunk's gradients and of marks per node, */
    size_t mark_at; /* which stand here; */
    size_t room;    /* and of all it needs */
    unsigned char *rooms;
} job;

/** One chunk at work. */
typedef struct chunk {
    const job *w;
    size_t from, n; /* channels */
    unsigned char *room;
} chunk;

static size_t size_of(const job *w)
{
    return tb_dtype_size(w->k->dtype);
}

/* --- may it be done? -------------------------------------------------------
 */

static const double *attr_of(const tb_run *r, int node)
{
    return r->attr ? r->attr[node] : r->plan->steps[node].call.attr;
}

static tb_reach reach_of(const tb_run *r, int node)
{
    return tb_op_reach(r->plan->graph->nodes[node].op, attr_of(r, node));
}

static bool is_stream(const tb_plan *p, int node)
{
    return p->graph->nodes[node].shape.kind == TB_SHAPE_STREAM;
}

/* Copies of a batch do not meet, and all gradients have the same rows. */
static bool can_repeat(const job *w)
{
    for (int n = 0; n < w->p->graph->nnodes; n++)
        if (w->forms[n].wanted &&
            (!is_stream(w->p, n) || w->p->steps[n].call.time != w->time ||
             reach_of(w->r, n) == TB_REACH_BATCH))
            return false;
    return true;
}

/* --- forms -----------------------------------------------------------------
 */

static bool gives_back(const job *w, int node, int i)
{
    const tb_node *n = &w->p->graph->nodes[node];
    return w->forms[n->in[i]].wanted && !tb_plan_data(n->op, i) &&
           n->op->shape && !tb_plan_stops(n->op);
}

static void mark_wanted(job *w)
{
    const tb_graph *g = w->p->graph;
    for (size_t i = 0; i < w->j->ninputs; i++)
        w->forms[g->inputs[w->j->inputs[i]]].wanted = true;
    for (int n = 0; n < g->nnodes; n++) {
        w->forms[n].one = w->p->steps[n].count;
        for (int i = 0; i < g->nodes[n].nin; i++)
            if (gives_back(w, n, i))
                w->forms[n].wanted = true;
    }
}

static bool gives_wide(const job *w, int node, int i)
{
    const form *f = &w->forms[node];
    bool own = (w->p->graph->nodes[node].op->own & TB_NEED_IN(i)) != 0;
    return f->wide && !(f->split && own);
}

static void mark_forms(job *w)
{
    const tb_graph *g = w->p->graph;
    for (int o = 0; o < g->noutputs; o++)
        w->forms[g->outputs[o].node].narrow = true;
    for (int n = g->nnodes - 1; n >= 0; n--) {
        form *f = &w->forms[n];
        bool meet = reach_of(w->r, n) == TB_REACH_SEQUENCE;
        f->narrow = f->narrow && f->wanted;
        f->split = f->narrow && meet && !f->wide;
        f->wide = f->wide || f->split;
        for (int i = 0; i < g->nodes[n].nin; i++)
            if (gives_back(w, n, i)) {
                form *in = &w->forms[g->nodes[n].in[i]];
                in->wide = in->wide || gives_wide(w, n, i);
                in->narrow = in->narrow || (f->narrow && !gives_wide(w, n, i));
            }
    }
}

/* --- room ------------------------------------------------------------------
 */

static bool grow(size_t *total, size_t n, size_t size, size_t *at)
{
    size_t bytes;
    *at = *total;
    return tb_mul(n, size, &bytes) && tb_add(bytes, 63, &bytes) &&
           tb_add(*total, bytes / 64 * 64, total);
}

/* Copies of the batch that a node's largest call has in a chunk of n channels.
 */
static size_t copies(const job *w, const form *f, size_t n)
{
    return f->wide ? n * w->time : n;
}

/* Whether the backward of a node reads what forward left: of a product with a
 * weight it does not, where the weight's own gradient is not wanted. */
static bool reads(const job *w, int node)
{
    const tb_node *n = &w->p->graph->nodes[node];
    bool any = n->op->saved != NULL || (n->op->needs & TB_NEED_OUT);
    for (int i = 0; i < n->nin; i++)
        any = any ||
              (is_stream(w->p, n->in[i]) && (n->op->needs & TB_NEED_IN(i)) &&
               (i > 0 || n->op->jac != TB_JAC_WEIGHT));
    return any;
}

/* How the backward of a node is called for many copies. */
typedef enum way {
    WAY_BATCH,  /* all as one larger batch: it reads nothing else */
    WAY_COPIES, /* all: it can tell them from what it reads */
    WAY_DIAG,   /* once, by ones; the copies are multiplied by what that gives
                 */
    WAY_EACH    /* one after another */
} way;

static way way_of(const job *w, int node, bool wide)
{
    const tb_op *op = w->p->graph->nodes[node].op;
    if (!reads(w, node))
        return WAY_BATCH;
    if (op->copies && !(wide && !w->forms[node].split))
        return WAY_COPIES;
    return op->jac == TB_JAC_DIAG ? WAY_DIAG : WAY_EACH;
}

/* A node's largest call in a chunk of n channels. */
static tb_opcall largest(const job *w, int node, size_t n)
{
    tb_opcall c = w->p->steps[node].call;
    if (!reads(w, node))
        c.batch *= copies(w, &w->forms[node], n);
    return c;
}

/* Places everything of a chunk of n channels; false: it cannot be counted. */
static bool place(job *w, size_t n)
{
    bool fits = true;
    w->grads = w->room = 0;
    for (int i = 0; i < w->p->graph->nnodes; i++) {
        form *f = &w->forms[i];
        size_t all = 0;
        if (f->narrow)
            fits = fits && tb_mul(n, f->one, &all) &&
                   grow(&w->grads, all, size_of(w), &f->narrow_at);
        if (f->wide)
            fits = fits && tb_mul(n * w->time, f->one, &all) &&
                   grow(&w->grads, all, size_of(w), &f->wide_at);
    }
    fits = fits && grow(&w->grads, (size_t)w->p->graph->nnodes, sizeof(mark),
                        &w->mark_at);
    for (int i = 0; fits && i < w->p->graph->nnodes; i++) {
        const form *f = &w->forms[i];
        if (tb_plan_leaf(w->p, i) || (!f->narrow && !f->wide))
            continue;
        const tb_opcall c = largest(w, i, n);
        size_t at, end = w->grads;
        fits = grow(&end, tb_op_scratch(w->p->graph->nodes[i].op, &c), 1, &at);
        if (way_of(w, i, f->wide) == WAY_DIAG)
            fits = fits && grow(&end, f->one, 2 * size_of(w), &at);
        w->room = end > w->room ? end : w->room;
    }
    w->room = w->room > w->grads ? w->room : w->grads;
    return fits;
}

static size_t chunks_of(const job *w)
{
    return (w->channels + w->at_once - 1) / w->at_once;
}

/* Chunks as large as stay in the caches, by size alone, some side by side. */
static tb_status make_room(job *w, bool *done)
{
    enum { CACHE = 1 << 20 };
    const size_t most = (size_t)1 << 28;
    w->at_once = w->channels;
    *done = place(w, 1) && w->room <= most;
    if (!*done)
        return TB_OK;
    while (w->at_once > 1 && (!place(w, w->at_once) || w->room > CACHE))
        w->at_once = (w->at_once + 1) / 2;
    *done = place(w, w->at_once);
    w->slots = chunks_of(w);
    if (w->slots > (size_t)tb_threads_count(w->ctx))
        w->slots = (size_t)tb_threads_count(w->ctx);
    while (w->slots > 1 && w->room > most / w->slots)
        w->slots--;
    w->rooms = tb_alloc(w->ctx, w->slots, w->room);
    return w->rooms ? TB_OK : TB_ERR_MEMORY;
}

/* --- one call --------------------------------------------------------------
 */

static void put(const job *w, void *x, size_t i, double v)
{
    if (w->k->dtype == TB_F32)
        ((float *)x)[i] = (float)v;
    else
        ((double *)x)[i] = v;
}

static void *narrow_of(const chunk *k, int node)
{
    return k->room + k->w->forms[node].narrow_at;
}

static void *wide_of(const chunk *k, int node)
{
    return k->room + k->w->forms[node].wide_at;
}

static mark *mark_of(const chunk *k, int node)
{
    return (mark *)(void *)(k->room + k->w->mark_at) + node;
}

static size_t wide_bytes(const chunk *k, int node)
{
    return k->n * k->w->time * k->w->forms[node].one * size_of(k->w);
}

/* wide[c, t, b, t] += narrow[c, b, t], which is empty then. */
static void widen(const chunk *k, int node)
{
    const job *w = k->w;
    size_t d = w->p->graph->nodes[node].shape.width, T = w->time;
    size_t row = d * size_of(w), n = k->n * w->batch * T;
    unsigned char *from = narrow_of(k, node), *to = wide_of(k, node);
    if (!mark_of(k, node)->wide)
        memset(to, 0, wide_bytes(k, node));
    for (size_t i = 0; i < n; i++) {
        size_t c = i / T / w->batch, b = i / T % w->batch, t = i % T;
        size_t at = ((c * T + t) * w->batch + b) * T + t;
        w->k->add(d, to + at * row, from + i * row, to + at * row);
    }
    mark_of(k, node)->wide = true;
    mark_of(k, node)->narrow = false;
}

/* Terms are added in the order of their readers: those that came narrow are in
 * the wide gradient before the first wide one. */
static void open_wide(const chunk *k, int node)
{
    if (!mark_of(k, node)->open && mark_of(k, node)->narrow)
        widen(k, node);
    mark_of(k, node)->open = true;
}

/* The gradient of input i, and what it is added to: nothing, if none has come
 * and the op heeds that. */
static void point(const chunk *k, int node, int i, bool wide, tb_opcall *c)
{
    const job *w = k->w;
    const tb_node *n = &w->p->graph->nodes[node];
    mark *m = mark_of(k, n->in[i]);
    bool *come = wide ? &m->wide : &m->narrow;
    bool heeds = tb_op_row_wise(n->op, &w->p->steps[node].call, i) ||
                 ((n->op->bases & TB_NEED_IN(i)) &&
                  (*come || !tb_plan_reads_again(n, i)));
    c->gin[i] = wide ? wide_of(k, n->in[i]) : narrow_of(k, n->in[i]);
    if (!*come && !heeds)
        memset(c->gin[i], 0,
               wide ? wide_bytes(k, n->in[i])
                    : k->n * w->forms[n->in[i]].one * size_of(w));
    c->gbase[i] = *come || !heeds ? c->gin[i] : NULL;
    *come = true;
}

/* One call after another, a copy of what is given and taken for each. */
static void each_copy(const chunk *k, int node, size_t count, tb_opcall *c)
{
    const job *w = k->w;
    const tb_node *n = &w->p->graph->nodes[node];
    const size_t out = w->forms[node].one * size_of(w);
    for (size_t i = 0; i < count; i++) {
        tb_op_backward(n->op, c);
        c->gout = (const char *)c->gout + out;
        for (int j = 0; j < n->nin; j++) {
            const size_t in = w->forms[n->in[j]].one * size_of(w);
            if (c->gbase[j])
                c->gbase[j] = (const char *)c->gbase[j] + in;
            if (c->gin[j])
                c->gin[j] = (char *)c->gin[j] + in;
        }
    }
}

/* An op of one stream that works element by element. */
static void by_diagonal(const chunk *k, int node, size_t count, tb_opcall *c)
{
    const job *w = k->w;
    const tb_op *op = w->p->graph->nodes[node].op;
    const size_t n = w->forms[node].one, bytes = n * size_of(w);
    const char *gout = c->gout;
    char *gin = c->gin[0], *ones = c->scratch, *slope = ones + bytes;
    const bool adds = c->gbase[0] != NULL;
    for (size_t i = 0; i < n; i++)
        put(w, ones, i, 1);
    c->gout = ones;
    c->gin[0] = slope;
    c->gbase[0] = NULL;
    c->scratch = slope + bytes;
    tb_op_backward(op, c);
    for (size_t i = 0; i < count; i++, gout += bytes, gin += bytes)
        if (adds)
            w->k->mul_acc(n, gout, slope, gin, gin);
        else
            w->k->mul(n, gout, slope, gin);
}

static void call(const chunk *k, int node, bool wide, tb_opcall *c)
{
    const tb_op *op = k->w->p->graph->nodes[node].op;
    const size_t count = wide ? k->n * k->w->time : k->n;
    switch (way_of(k->w, node, wide)) {
    case WAY_BATCH:
        c->batch *= count;
        tb_op_backward(op, c);
        break;
    case WAY_COPIES:
        c->copies = count;
        c->own_token = wide;
        op->bwd(c);
        break;
    case WAY_DIAG:
        by_diagonal(k, node, count, c);
        break;
    case WAY_EACH:
        each_copy(k, node, count, c);
        break;
    }
}

/* All inputs that a node gives back wide, or all narrow. */
static void hand_back(const chunk *k, int node, bool wide)
{
    const job *w = k->w;
    const tb_node *n = &w->p->graph->nodes[node];
    tb_opcall c;
    bool any = false;
    tb_plan_call(w->ctx, w->r, node, false, &c);
    c.scratch = k->room + w->grads;
    c.gout = wide ? wide_of(k, node) : narrow_of(k, node);
    for (int i = 0; i < n->nin; i++) {
        if (!gives_back(w, node, i) || gives_wide(w, node, i) != wide)
            continue;
        if (wide)
            open_wide(k, n->in[i]);
        point(k, node, i, wide, &c);
        any = true;
    }
    if (any)
        call(k, node, wide, &c);
    for (int i = 0; i < n->nin && !wide; i++) /* once, however often it reads */
        if (c.gin[i] && mark_of(k, n->in[i])->open &&
            mark_of(k, n->in[i])->narrow)
            widen(k, n->in[i]);
}

static void back_node(const chunk *k, int node)
{
    const form *f = &k->w->forms[node];
    const mark *m = mark_of(k, node);
    bool leaf = tb_plan_leaf(k->w->p, node);
    if (!leaf && m->narrow && (f->split || !f->wide))
        hand_back(k, node, false);
    if (f->wide)
        open_wide(k, node);
    if (!leaf && m->wide)
        hand_back(k, node, true);
}

/* --- chunks ----------------------------------------------------------------
 */

static void clear_narrow(const chunk *k, int node)
{
    const form *f = &k->w->forms[node];
    if (f->narrow)
        memset(narrow_of(k, node), 0, k->n * f->one * size_of(k->w));
    mark_of(k, node)->narrow = f->narrow;
}

/* 1 at channel c of every token of its output. */
static void seed(const chunk *k)
{
    const job *w = k->w;
    const tb_graph *g = w->p->graph;
    size_t rows = w->batch * w->time, before = 0;
    memset(k->room + w->mark_at, 0, (size_t)g->nnodes * sizeof(mark));
    for (int o = 0; o < g->noutputs; o++)
        clear_narrow(k, g->outputs[o].node);
    for (int o = 0; o < g->noutputs; o++) {
        size_t d = g->nodes[g->outputs[o].node].shape.width;
        for (size_t c = 0; c < k->n; c++) {
            size_t at = k->from + c - before;
            if (k->from + c < before || at >= d ||
                !w->forms[g->outputs[o].node].narrow)
                continue;
            for (size_t r = 0; r < rows; r++)
                put(w, narrow_of(k, g->outputs[o].node),
                    (c * rows + r) * d + at, 1);
        }
        before += d;
    }
}

static void store(const job *w, const void *from, size_t at, size_t n,
                  double *to)
{
    if (w->k->dtype == TB_F32)
        for (size_t i = 0; i < n; i++)
            to[i] = (double)((const float *)from)[at + i];
    else
        memcpy(to, (const double *)from + at, n * sizeof *to);
}

/* Row (b, t, c) of the Jacobian by one input: n elements of its own sequence
 * or, in blocks, of its own token. */
static void give_row(const chunk *k, int node, size_t c, size_t row,
                     double *out)
{
    const job *w = k->w;
    const form *f = &w->forms[node];
    size_t d = w->p->graph->nodes[node].shape.width, T = w->time;
    size_t b = row / T, t = row % T;
    size_t wide = ((c * T + t) * w->batch + b) * T * d;
    size_t narrow = (c * w->batch * T + row) * d;
    if (!mark_of(k, node)->wide && !mark_of(k, node)->narrow)
        return;
    if (w->j->blocks && f->wide)
        store(w, wide_of(k, node), wide + t * d, d, out);
    else if (w->j->blocks && f->narrow)
        store(w, narrow_of(k, node), narrow, d, out);
    else if (f->wide)
        store(w, wide_of(k, node), wide, T * d, out + b * T * d);
    else if (f->narrow)
        store(w, narrow_of(k, node), narrow, d, out + row * d);
}

static void give(const chunk *k)
{
    const job *w = k->w;
    const tb_graph *g = w->p->graph;
    size_t rows = w->batch * w->time, before = 0;
    for (size_t i = 0; i < w->j->ninputs; i++) {
        int node = g->inputs[w->j->inputs[i]];
        for (size_t c = 0; c < k->n; c++)
            for (size_t r = 0; r < rows; r++)
                give_row(k, node, c, r,
                         w->j->out + before +
                             (r * w->channels + k->from + c) * w->j->columns);
        before += w->forms[node].one;
    }
}

static void run_chunk(void *arg, size_t number, size_t slot)
{
    const job *w = arg;
    chunk k = {.w = w,
               .from = number * w->at_once,
               .n = w->at_once,
               .room = w->rooms + slot * w->room};
    if (k.n > w->channels - k.from)
        k.n = w->channels - k.from;
    seed(&k);
    for (int n = w->p->graph->nnodes - 1; n >= 0; n--)
        if (w->forms[n].narrow || w->forms[n].wide)
            back_node(&k, n);
    give(&k);
}

static tb_status run(job *w, bool *done)
{
    TB_TRY(make_room(w, done));
    if (!*done)
        return TB_OK;
    tb_gemm_load(w->ctx);
    tb_parallel_slots(w->ctx, w->slots, chunks_of(w), run_chunk, w);
    tb_free(w->ctx, w->rooms);
    return TB_OK;
}

tb_status tb_plan_jacobian(tb_ctx *ctx, const tb_run *r,
                           const tb_jacobian_spec *j, bool *done)
{
    const tb_plan *p = r->plan;
    const tb_opcall *y = &p->steps[p->graph->outputs[0].node].call;
    job w = {.ctx = ctx,
             .r = r,
             .p = p,
             .j = j,
             .k = y->k,
             .batch = y->batch,
             .time = y->time};
    *done = false;
    if (!(p->passes & TB_PASS_KEEP) || !(p->passes & TB_PASS_BWD))
        return TB_FAIL(ctx, TB_ERR_ARG, "%s: planned without its values kept",
                       p->name);
    for (int o = 0; o < p->graph->noutputs; o++) {
        if (!is_stream(p, p->graph->outputs[o].node))
            return TB_OK;
        w.channels += p->graph->nodes[p->graph->outputs[o].node].shape.width;
    }
    w.forms = tb_alloc(ctx, (size_t)p->graph->nnodes, sizeof *w.forms);
    if (!w.forms)
        return TB_ERR_MEMORY;
    mark_wanted(&w);
    mark_forms(&w);
    tb_status s = can_repeat(&w) ? run(&w, done) : TB_OK;
    tb_free(ctx, w.forms);
    return s;
}
