/* SPDX-License-Identifier: MIT */
/* mha: softmax(scale q k^T) v for every head (Vaswani et al. 2017,
 * arXiv:1706.03762). Heads lie side by side in the width; several query heads
 * may share one key and value head (Ainslie et al. 2023, arXiv:2305.13245).
 * Values may have another width than keys, and out has theirs.
 * Keys and values may belong to a memory of another length; a mask of 1 (keep)
 * and 0 (hide) acts together with causality. A query that sees nothing gets
 * zeros and gives no gradient.
 *
 * The work is cut into tiles: some query rows of one head. A causal tile ends
 * at its last row's own column, so most of the hidden half is never computed.
 * The probabilities, [B, heads, T_q, T_k], are kept for the other passes,
 * before dropout, whose mask every pass draws again. */
#include "ops/mha_tile.h"

/* --- shape -------------------------------------------------------------- */

/* A count given as an attribute: a whole number of at least 1. */
static bool count_of(double a, size_t *n)
{
    if (!(a >= 1 && a <= 1e9))
        return false;
    *n = (size_t)a;
    return (double)*n == a;
}

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    size_t h, kv;
    if (!count_of(attr[TB_ATTR_ATTN_HEADS], &h) ||
        !count_of(attr[TB_ATTR_ATTN_KV_HEADS], &kv))
        return tb_op_no(why, "heads must be a whole number, 1 or more");
    if (!(attr[TB_ATTR_ATTN_DROP] >= 0 && attr[TB_ATTR_ATTN_DROP] <= 1))
        return tb_op_no(why, "the drop probability must lie in 0 .. 1");
    if (h % kv != 0)
        return tb_op_no(why, "kv_heads must divide heads");
    for (int i = 0; i < 3; i++)
        if (in[i].kind != TB_SHAPE_STREAM)
            return tb_op_no(why, "q, k and v must be streams");
    if (in[0].width % h != 0)
        return tb_op_no(why, "heads must divide the width of q");
    if (in[1].width != in[0].width / h * kv)
        return tb_op_no(why, "k must have kv_heads heads of q's size");
    if (in[2].width % kv != 0)
        return tb_op_no(why, "v must have kv_heads heads");
    if (nin > 3 && in[3].kind != TB_SHAPE_STREAM &&
        in[3].kind != TB_SHAPE_MATRIX)
        return tb_op_no(why, "a mask must be a stream or a matrix");
    if (!tb_isfinite(attr[TB_ATTR_ATTN_SCALE]))
        return tb_op_no(why, "the scale must be a finite number");
    *out = (tb_shape){TB_SHAPE_STREAM, in[2].width / kv * h, 1};
    return true;
}

/* --- items ------------------------------------------------------------- */

/* Items of the forward and tangent pass: tiles of all heads. */
static size_t tile_items(const tb_opcall *c, const tb_attn *g)
{
    return c->batch * g->heads * g->tiles;
}

/* What a tile costs, in plain elements: some 8 products for each. A few small
 * tiles share a chunk, so that a short sequence needs no other thread. */
static size_t tile_unit(const tb_attn *g)
{
    size_t rows = g->tq < g->tile ? g->tq : g->tile;
    return tb_op_times(tb_op_times(rows, g->tk), g->wide / 8 + 1);
}

/* Items of the backward pass: all tiles of a (batch, kv head). */
static size_t group_unit(const tb_attn *g)
{
    return tb_op_times(tile_unit(g), 2 * g->group * g->tiles);
}

static tb_tile tile_of_item(const tb_attn *g, size_t item)
{
    size_t bh = item / g->tiles;
    return tb_tile_at(g, bh / g->heads, bh % g->heads, item % g->tiles);
}

/* --- dropout ------------------------------------------------------------ */

/* y = dropout of the tile's p (or of what has its shape); y may be p */
static void drop(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                 const void *p, void *y)
{
    for (size_t r = 0; r < t->rows; r++)
        tb_op_mask(c, g->drop, tb_tile_p(g, t) + r * g->tk, t->cols,
                   tb_op_peek(c, p, r * g->tk), false,
                   tb_op_at(c, y, r * g->tk));
}

/* The tile's probabilities, and as the values see them. */
static const void *probabilities(const tb_opcall *c, const tb_attn *g,
                                 const tb_tile *t)
{
    return tb_op_peek(c, c->saved, tb_tile_p(g, t));
}

static const void *dropped(const tb_opcall *c, const tb_attn *g,
                           const tb_tile *t, size_t chunk)
{
    const void *p = probabilities(c, g, t);
    if (!(g->drop > 0))
        return p;
    void *y = tb_tile_block(c, g, chunk, 1);
    drop(c, g, t, p, y);
    return y;
}

/* --- forward ------------------------------------------------------------ */

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    const tb_attn g = tb_attn_of(c), gv = tb_attn_values(&g);
    for (size_t i = from; i < to; i++) {
        tb_tile t = tile_of_item(&g, i);
        void *p = tb_op_at(c, c->saved, tb_tile_p(&g, &t));
        tb_tile_scores(c, &g, &t, c->in[0], c->in[1], false, p);
        tb_tile_softmax(c, &g, &t, p);
        tb_tile_mix(c, &gv, &t, chunk, dropped(c, &g, &t, chunk), c->in[2],
                    false, c->out);
    }
}

static void fwd(const tb_opcall *c)
{
    const tb_attn g = tb_attn_of(c);
    const size_t count = tb_op_in_count(c, 2);
    tb_tile_suspect(c, &g, 1, &c->in[2], &count);
    tb_op_each(c, tile_items(c, &g), tile_unit(&g), fwd_range);
}

/* --- backward: one item per (batch, kv head), so that the heads which share
 * keys and values add to them in order --- */

static void bwd_tile(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                     size_t chunk)
{
    const tb_attn gv = tb_attn_values(g);
    void *gs = tb_tile_block(c, g, chunk, 0);
    if (c->gin[2])
        tb_tile_gather(c, &gv, t, chunk, dropped(c, g, t, chunk), c->gout,
                       c->gin[2]);
    if (!c->gin[0] && !c->gin[1])
        return;
    tb_tile_scores(c, &gv, t, c->gout, c->in[2], false, gs); /* gy v^T */
    if (g->drop > 0)
        drop(c, g, t, gs, gs);
    tb_tile_through(c, g, t, probabilities(c, g, t), gs);
    if (c->gin[0])
        tb_tile_mix(c, g, t, chunk, gs, c->in[1], true, c->gin[0]);
    if (c->gin[1])
        tb_tile_gather(c, g, t, chunk, gs, c->in[0], c->gin[1]);
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    const tb_attn g = tb_attn_of(c);
    size_t heads = g.group * g.tiles; /* tiles of one kv head */
    for (size_t i = from; i < to; i++)
        for (size_t j = 0; j < heads; j++) {
            size_t head = i % g.kv_heads * g.group + j / g.tiles;
            tb_tile t = tb_tile_at(&g, i / g.kv_heads, head, j % g.tiles);
            bwd_tile(c, &g, &t, chunk);
        }
}

static void bwd(const tb_opcall *c)
{
    const tb_attn g = tb_attn_of(c);
    const void *const x[] = {c->in[0], c->in[1], c->gout};
    const size_t nq = tb_op_in_count(c, 0);
    const size_t count[] = {nq, tb_op_in_count(c, 1), tb_op_out_count(c)};
    tb_tile_suspect(c, &g, 3, x, count);
    tb_op_each(c, c->batch * g.kv_heads, group_unit(&g), bwd_range);
}

/* --- tangent: dS = tq k^T + q tk^T, dP from it as in backward (the map is
 * symmetric), then dropout, and ty = dP v + P tv --- */

static void tan_tile(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                     size_t chunk)
{
    const tb_attn gv = tb_attn_values(g);
    void *ts = tb_tile_block(c, g, chunk, 0);
    const void *tq = c->tin[0], *tk = c->tin[1], *tv = c->tin[2];
    if (tq)
        tb_tile_scores(c, g, t, tq, c->in[1], false, ts);
    if (tk)
        tb_tile_scores(c, g, t, c->in[0], tk, tq != NULL, ts);
    if (tq || tk) {
        tb_tile_through(c, g, t, probabilities(c, g, t), ts);
        if (g->drop > 0)
            drop(c, g, t, ts, ts);
        tb_tile_mix(c, &gv, t, chunk, ts, c->in[2], false, c->tout);
    }
    if (tv)
        tb_tile_mix(c, &gv, t, chunk, dropped(c, g, t, chunk), tv, tq || tk,
                    c->tout);
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    const tb_attn g = tb_attn_of(c);
    for (size_t i = from; i < to; i++) {
        tb_tile t = tile_of_item(&g, i);
        tan_tile(c, &g, &t, chunk);
    }
}

static void tan_(const tb_opcall *c)
{
    const tb_attn g = tb_attn_of(c);
    const void *const x[] = {c->in[2], c->tin[2]};
    const size_t n = tb_op_in_count(c, 2), count[] = {n, n};
    tb_tile_suspect(c, &g, 2, x, count);
    if (c->tin[0] || c->tin[1] || c->tin[2])
        tb_op_each(c, tile_items(c, &g), tile_unit(&g), tan_range);
    else
        tb_op_copy(c, tb_op_out_count(c), NULL, c->tout);
}

/* --- sizes -------------------------------------------------------------- */

static size_t saved(const tb_opcall *c)
{
    const tb_attn g = tb_attn_of(c);
    size_t heads = tb_op_times(c->batch, g.heads);
    return tb_op_bytes(c, tb_op_times(heads, tb_op_times(g.tq, g.tk)));
}

static size_t scratch(const tb_opcall *c)
{
    const tb_attn g = tb_attn_of(c);
    size_t pieces = tb_op_pieces(tile_items(c, &g), tile_unit(&g));
    size_t back = tb_op_pieces(c->batch * g.kv_heads, group_unit(&g));
    return tb_tile_scratch(c, &g, pieces > back ? pieces : back);
}

/* Two products over the visible pairs; a mask saves nothing. */
static double flops(const tb_opcall *c)
{
    const tb_attn g = tb_attn_of(c);
    return 2 * tb_attn_pairs(&g) * (double)c->batch * (double)(g.qw + g.ow);
}

/* Keep or hide, nothing between: an additive mask of 0 and -inf is not ours. */
static const char *check(const tb_opcall *c, size_t *row)
{
    size_t n = c->nin > 3 ? tb_op_in_count(c, 3) : 0;
    for (size_t i = 0; i < n; i++) {
        double m = tb_op_get(c, c->in[3], i);
        *row = i / c->in_shape[3].width;
        if (m != 0 && m != 1)
            return "a mask holds 1 (keep) or 0 (hide), not this";
    }
    return NULL;
}

static tb_reach reach(const double *attr)
{
    return attr[TB_ATTR_ATTN_DROP] > 0 ? TB_REACH_BATCH : TB_REACH_SEQUENCE;
}

const tb_op tb_op_mha = {
    .name = "mha",
    .symbol = "mha",
    .min_in = 3,
    .max_in = 4,
    .nattr = 4,
    .noption = 1,
    .attr_name = {"heads", "kv_heads", "causal", "drop", "scale"},
    .lane = TB_LANE_CUT,
    .jac = TB_JAC_MULTI,
    .needs = TB_NEED_IN(0) | TB_NEED_IN(1) | TB_NEED_IN(2) | TB_NEED_IN(3),
    .data = TB_NEED_IN(3),
    .shape = shape,
    .fit = tb_attn_fit,
    .saved = saved,
    .scratch = scratch,
    .fwd = fwd,
    .bwd = bwd,
    .tan = tan_,
    .check = check,
    .flops = flops,
    .reach = reach,
    .work = TB_WORK_ATTENTION,
};
