/* SPDX-License-Identifier: MIT */
/* Row parts, alone and in groups; see op_rows.h. */
#include "ops/op_rows.h"

#include "ops/op_help.h"

/* Bytes of a tile, about a quarter of a core's L2; elements that are worth
 * another thread. */
enum { TILE_BYTES = 1 << 18, GRAIN = 1 << 15 };

/* An array that no cache of a core's share holds until its last row is
 * written. */
enum { FAR_BYTES = 32 << 20 };

size_t tb_rows_tile(size_t bytes)
{
    enum { LEAST = 4, MOST = 64 };
    size_t rows = TILE_BYTES / (bytes ? bytes : 1) / LEAST * LEAST;
    rows = rows < LEAST ? LEAST : rows;
    return rows > MOST ? MOST : rows;
}

static bool by_rows(const tb_shape *s)
{
    return s->kind == TB_SHAPE_STREAM;
}

size_t tb_rows_bytes(const tb_opcall *c)
{
    size_t width = c->out_shape.width;
    for (int i = 0; i < c->nin; i++)
        width += by_rows(&c->in_shape[i]) ? c->in_shape[i].width : 0;
    return tb_op_bytes(c, width);
}

/* --- which parts -------------------------------------------------------- */

bool tb_op_row_input(const tb_op *op, int i)
{
    return op->bwd_rows && (!op->rows_in || (op->rows_in & TB_NEED_IN(i)));
}

bool tb_op_fwd_rows(const tb_op *op, const tb_opcall *c)
{
    bool any = false;
    for (int i = 0; i < c->nin; i++)
        any = any || !op->rows_in || (op->rows_in & TB_NEED_IN(i));
    return op->fwd_rows && any && !(op->fwd_whole && op->fwd_whole(c));
}

bool tb_op_row_wise(const tb_op *op, const tb_opcall *c, int i)
{
    return tb_op_row_input(op, i) && by_rows(&c->in_shape[i]);
}

/* --- one tile ----------------------------------------------------------- */

/* Where row `from` of the slot's tile stands, told as where row 0 would. As
 * numbers: there is no such object. */
static uintptr_t moved(const tb_rowgroup *g, const void *p, size_t row_bytes,
                       size_t from, size_t slot)
{
    uintptr_t at = (uintptr_t)p, store = (uintptr_t)g->store;
    if (!g->store_bytes || at < store || at - store >= g->store_bytes)
        return at;
    return at + slot * g->store_bytes - from * row_bytes;
}

/* Call i sums what the next one can take as it is made. */
static bool pairs(const tb_rowgroup *g, size_t i)
{
    const tb_rowcall *r = &g->calls[i];
    return i + 1 < g->n && !r->back && r[0].op->sums && r[1].op->fwd_sum_rows &&
           r[1].c.in[0] == r[0].c.out;
}

/* Whether what call i writes row by row is read from memory: it is large, and
 * stands in no tile and before no call of this group that reads it. */
static bool far_away(const tb_rowgroup *g, size_t i)
{
    const tb_rowcall *r = &g->calls[i];
    const void *p = r->back ? r->c.gin[0] : r->c.out;
    size_t width = r->back ? r->c.in_shape[0].width : r->c.out_shape.width;
    bool tile = (uintptr_t)p - (uintptr_t)g->store < g->store_bytes;
    if (!p || tile || tb_op_bytes(&r->c, g->rows * width) < FAR_BYTES)
        return false;
    for (size_t k = i + (pairs(g, i) ? 2 : 1); k < g->n; k++) {
        const tb_opcall *c = &g->calls[k].c;
        for (int n = 0; n < c->nin; n++)
            if (c->in[n] == p || c->gbase[n] == p || c->gin[n] == p)
                return false;
        if (c->gout == p)
            return false;
    }
    return true;
}

/* The call as rows from `from` on are seen in this slot. */
static tb_opcall call_at(const tb_rowgroup *g, const tb_opcall *from_call,
                         size_t from, size_t slot)
{
    tb_opcall c = *from_call;
    size_t out = tb_op_bytes(&c, c.out_shape.width);
    for (int i = 0; i < c.nin; i++) {
        size_t in = tb_op_bytes(&c, c.in_shape[i].width);
        c.in[i] = (const void *)moved(g, c.in[i], in, from, slot);
        c.gin[i] = (void *)moved(g, c.gin[i], in, from, slot);
        c.gbase[i] = (const void *)moved(g, c.gbase[i], in, from, slot);
    }
    c.out = (void *)moved(g, c.out, out, from, slot);
    c.gout = (const void *)moved(g, c.gout, out, from, slot);
    return c;
}

/* gin = gbase, for the ops that can only add. */
static void open_gradients(const tb_op *op, const tb_opcall *c, size_t from,
                           size_t to)
{
    for (int i = 0; i < c->nin; i++) {
        size_t d = c->in_shape[i].width;
        if (c->gin[i] && c->gin[i] != c->gbase[i] && tb_op_row_wise(op, c, i) &&
            !(op->bases & TB_NEED_IN(i)))
            tb_op_copy(c, (to - from) * d, tb_op_peek(c, c->gbase[i], from * d),
                       tb_op_at(c, c->gin[i], from * d));
    }
}

static void run_rows(const tb_rowcall *r, const tb_opcall *c, size_t from,
                     size_t to, size_t chunk)
{
    size_t unit = r->op->elements ? c->out_shape.width : 1;
    if (r->back)
        open_gradients(r->op, c, from, to);
    r->rows(c, from * unit, to * unit, chunk);
}

static bool run_pair(const tb_rowgroup *g, size_t i, size_t from, size_t to,
                     size_t slot)
{
    if (!pairs(g, i))
        return false;
    if (!g->store_bytes)
        return g->calls[i + 1].op->fwd_sum_rows(&g->calls[i + 1].c,
                                                &g->calls[i].c, from, to);
    const tb_opcall sum = call_at(g, &g->calls[i].c, from, slot);
    const tb_opcall c = call_at(g, &g->calls[i + 1].c, from, slot);
    return g->calls[i + 1].op->fwd_sum_rows(&c, &sum, from, to);
}

static void run_tile(const tb_rowgroup *g, size_t from, size_t to, size_t chunk,
                     size_t slot)
{
    for (size_t i = 0; i < g->n; i++) {
        const tb_rowcall *r = &g->calls[i];
        if (run_pair(g, i, from, to, slot)) {
            i++;
        } else if (g->store_bytes) {
            tb_opcall c = call_at(g, &r->c, from, slot);
            run_rows(r, &c, from, to, chunk);
        } else {
            run_rows(r, &r->c, from, to, chunk);
        }
    }
}

/* --- all rows ----------------------------------------------------------- */

static size_t part_of(const tb_op *op, const tb_opcall *c)
{
    return op->part ? op->part(c) : 0;
}

/* A forward pass for which nothing has to stay in the cache goes straight on.
 */
static bool straight(const tb_rowgroup *g)
{
    bool one = g->n == 1 || (g->n == 2 && pairs(g, 0));
    return one && !g->store_bytes && !g->calls[0].back;
}

typedef struct pass {
    const tb_rowgroup *g;
    size_t pieces;
} pass;

static void run_piece(void *arg, size_t chunk, size_t slot)
{
    const pass *p = arg;
    const tb_rowgroup *g = p->g;
    size_t from = tb_chunk_at(g->rows, p->pieces, chunk);
    size_t end = tb_chunk_at(g->rows, p->pieces, chunk + 1);
    for (size_t i = 0; i < g->n; i++) {
        const tb_rowcall *r = &g->calls[i];
        size_t part = r->back && !r->op->part_open ? part_of(r->op, &r->c) : 0;
        if (part)
            memset(tb_op_part(&r->c, chunk, part), 0, part * sizeof(double));
    }
    const size_t tile = straight(g) ? end - from : g->tile;
    for (size_t to; from < end; from = to) {
        to = end - from < tile ? end : from + tile;
        run_tile(g, from, to, chunk, slot);
    }
}

void tb_rows_run(tb_ctx *ctx, const tb_rowgroup *g)
{
    pass p = {.g = g, .pieces = tb_op_row_pieces(g->rows)};
    size_t bytes = 0;
    for (size_t i = 0; i < g->n; i++)
        bytes += tb_rows_bytes(&g->calls[i].c);
    for (size_t i = 0; i < g->n; i++)
        g->calls[i].c.stream = far_away(g, i);
    bool small = tb_op_times(bytes, g->rows) < GRAIN * sizeof(float);
    /* pieces are for threads, and for sums that backward passes join */
    if (straight(g) && p.pieces && tb_threads_count(ctx) < 2)
        p.pieces = 1;
    tb_parallel_slots(ctx, small ? 1 : g->slots, p.pieces, run_piece, &p);
    for (size_t i = 0; i < g->n; i++)
        if (g->calls[i].back && g->calls[i].op->join)
            g->calls[i].op->join(&g->calls[i].c, p.pieces);
}

/* --- one call ----------------------------------------------------------- */

static void run_alone(const tb_op *op, tb_rows_fn rows, bool back,
                      const tb_opcall *c)
{
    tb_rowcall r = {.op = op, .rows = rows, .back = back, .c = *c};
    tb_rowgroup g = {.calls = &r,
                     .n = 1,
                     .rows = tb_op_row_count(c),
                     .tile = tb_rows_tile(tb_rows_bytes(c)),
                     .slots = TB_CHUNKS_MAX};
    tb_rows_run(c->ctx, &g);
}

void tb_op_forward(const tb_op *op, const tb_opcall *c)
{
    if (op->fwd)
        op->fwd(c);
    if (tb_op_fwd_rows(op, c))
        run_alone(op, op->fwd_rows, false, c);
}

void tb_op_backward(const tb_op *op, const tb_opcall *c)
{
    bool rows = false, whole = false;
    for (int i = 0; i < c->nin; i++)
        *(tb_op_row_input(op, i) ? &rows : &whole) |= c->gin[i] != NULL;
    if (rows)
        run_alone(op, op->bwd_rows, true, c);
    if (whole)
        op->bwd(c);
}

void tb_op_tangent(const tb_op *op, const tb_opcall *c)
{
    bool any = false;
    for (int i = 0; i < c->nin; i++)
        any = any || c->tin[i];
    if (op->tan)
        op->tan(c);
    else if (!any)
        tb_op_copy(c, tb_op_out_count(c), NULL, c->tout);
    if (op->tan_rows && any)
        run_alone(op, op->tan_rows, false, c);
}

size_t tb_op_scratch(const tb_op *op, const tb_opcall *c)
{
    size_t whole = op->scratch ? op->scratch(c) : 0;
    size_t pieces = tb_op_row_pieces(tb_op_row_count(c));
    size_t rows = tb_op_part_bytes(pieces, part_of(op, c));
    return whole > rows ? whole : rows;
}
