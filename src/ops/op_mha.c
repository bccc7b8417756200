/* SPDX-License-Identifier: MIT */
/* mha: softmax(q k^T / sqrt(hd)) v for every head (Vaswani et al. 2017,
 * arXiv:1706.03762). Heads lie side by side in the width; several query heads
 * may share one key and value head (Ainslie et al. 2023, arXiv:2305.13245).
 *
 * The work is cut into tiles: some query rows of one head. A causal tile ends
 * at its last row's own column, so most of the hidden half is never computed.
 * The probabilities, [B, heads, T, T], are kept for the other passes, before
 * dropout, whose mask every pass draws again. */
#include "ops/op_help.h"

/* Rows of a tile: small enough to skip most hidden columns, large enough for
 * the matrix product. */
enum { ROWS_CAUSAL = 64, ROWS_FULL = 128 };

/* Sizes of one call. */
typedef struct attn {
    size_t time, heads, kv_heads, group; /* group: query heads per kv head */
    size_t hd, qw, kw;                   /* of a head, of q and out, of k, v */
    size_t tile, tiles;                  /* rows of a tile; tiles of a head */
    bool causal;
    double scale, drop; /* drop: rate on the probabilities */
} attn;

/* Query rows [r0, r0 + rows) of one head; they see `cols` columns. */
typedef struct tile {
    size_t b, head, r0, rows, cols;
} tile;

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
    (void)nin;
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
    size_t kw = in[0].width / h * kv;
    if (in[1].width != kw || in[2].width != kw)
        return tb_op_no(why, "k and v must have kv_heads heads of q's size");
    *out = in[0];
    return true;
}

/* --- geometry ----------------------------------------------------------- */

static attn geometry(const tb_opcall *c)
{
    attn g = {.time = c->time,
              .heads = (size_t)c->attr[TB_ATTR_ATTN_HEADS],
              .kv_heads = (size_t)c->attr[TB_ATTR_ATTN_KV_HEADS],
              .qw = c->in_shape[0].width,
              .kw = c->in_shape[1].width,
              .causal = c->attr[TB_ATTR_ATTN_CAUSAL] != 0,
              .drop = c->attr[TB_ATTR_ATTN_DROP]};
    g.group = g.heads / g.kv_heads;
    g.hd = g.qw / g.heads;
    g.tile = g.causal ? ROWS_CAUSAL : ROWS_FULL;
    g.tiles = (g.time + g.tile - 1) / g.tile;
    g.scale = 1 / tb_sqrt((double)g.hd);
    return g;
}

static tile tile_at(const attn *g, size_t b, size_t head, size_t i)
{
    tile t = {.b = b, .head = head, .r0 = i * g->tile};
    size_t left = g->time - t.r0;
    t.rows = left < g->tile ? left : g->tile;
    t.cols = g->causal ? t.r0 + t.rows : g->time;
    return t;
}

/* The softmax kernel's `first`: columns that a tile's first row sees. */
static size_t first_of(const attn *g, const tile *t)
{
    return g->causal ? t->r0 + 1 : g->time;
}

/* Offsets of a tile's rows in q and out, of its head's rows in k and v, and
 * of its rows in the probabilities. */
static size_t q_at(const attn *g, const tile *t)
{
    return (t->b * g->time + t->r0) * g->qw + t->head * g->hd;
}

static size_t k_at(const attn *g, const tile *t)
{
    return t->b * g->time * g->kw + t->head / g->group * g->hd;
}

static size_t p_at(const attn *g, const tile *t)
{
    return ((t->b * g->heads + t->head) * g->time + t->r0) * g->time;
}

static tb_op_mat q_mat(const tb_opcall *c, const attn *g, const tile *t,
                       const void *q)
{
    return (tb_op_mat){tb_op_peek(c, q, q_at(g, t)), g->qw};
}

static tb_op_mat k_mat(const tb_opcall *c, const attn *g, const tile *t,
                       const void *k)
{
    return (tb_op_mat){tb_op_peek(c, k, k_at(g, t)), g->kw};
}

/* A chunk's own [tile, T] blocks of scratch: one for the derivatives of the
 * scores, and with dropout one for the masked probabilities. */
static size_t blocks(const attn *g)
{
    return g->drop > 0 ? 2 : 1;
}

static void *block_of(const tb_opcall *c, const attn *g, size_t chunk, size_t i)
{
    return tb_op_at(c, c->scratch, (chunk * blocks(g) + i) * g->tile * g->time);
}

/* Items of the forward and tangent pass: tiles of all heads. */
static size_t tile_items(const tb_opcall *c, const attn *g)
{
    return c->batch * g->heads * g->tiles;
}

/* What a tile costs, in plain elements: some 8 products for each. A few small
 * tiles share a chunk, so that a short sequence needs no other thread. */
static size_t tile_unit(const attn *g)
{
    size_t rows = g->time < g->tile ? g->time : g->tile;
    return tb_op_times(tb_op_times(rows, g->time), g->hd / 8 + 1);
}

/* Items of the backward pass: all tiles of a (batch, kv head). */
static size_t group_unit(const attn *g)
{
    return tb_op_times(tile_unit(g), 2 * g->group * g->tiles);
}

static tile tile_of_item(const attn *g, size_t item)
{
    size_t bh = item / g->tiles;
    return tile_at(g, bh / g->heads, bh % g->heads, item % g->tiles);
}

/* --- the parts of a tile ------------------------------------------------ */

/* s (+)= q k^T; s has row stride T */
static void scores(const tb_opcall *c, const attn *g, const tile *t,
                   const void *q, const void *k, bool add, void *s)
{
    tb_op_product(c, TB_OP_NT, t->rows, t->cols, g->hd, q_mat(c, g, t, q),
                  k_mat(c, g, t, k), add, s, g->time);
}

/* y (+)= p v into the tile's rows of y, which is shaped like q */
static void mix(const tb_opcall *c, const attn *g, const tile *t, const void *p,
                const void *v, bool add, void *y)
{
    tb_op_product(c, TB_OP_NN, t->rows, g->hd, t->cols, (tb_op_mat){p, g->time},
                  k_mat(c, g, t, v), add, tb_op_at(c, y, q_at(g, t)), g->qw);
}

/* gk += p^T q, for keys and values */
static void gather(const tb_opcall *c, const attn *g, const tile *t,
                   const void *p, const void *q, void *gk)
{
    tb_op_product(c, TB_OP_TN, t->cols, g->hd, t->rows, (tb_op_mat){p, g->time},
                  q_mat(c, g, t, q), true, tb_op_at(c, gk, k_at(g, t)), g->kw);
}

/* y = dropout of the tile's p (or of what has its shape); y may be p */
static void mask(const tb_opcall *c, const attn *g, const tile *t,
                 const void *p, void *y)
{
    for (size_t r = 0; r < t->rows; r++)
        tb_op_mask(c, g->drop, p_at(g, t) + r * g->time, t->cols,
                   tb_op_peek(c, p, r * g->time), false,
                   tb_op_at(c, y, r * g->time));
}

/* The tile's probabilities as the values see them. */
static const void *dropped(const tb_opcall *c, const attn *g, const tile *t,
                           size_t chunk)
{
    const void *p = tb_op_peek(c, c->saved, p_at(g, t));
    if (!(g->drop > 0))
        return p;
    void *y = block_of(c, g, chunk, 1);
    mask(c, g, t, p, y);
    return y;
}

/* From d loss / d (dropped p), in place, to d loss / d (q k^T); a tangent
 * goes the other way through the same symmetric map, then `mask`. */
static void through_softmax(const tb_opcall *c, const attn *g, const tile *t,
                            void *gs)
{
    c->k->softmax_bwd(t->rows, t->cols, g->time, first_of(g, t), g->scale,
                      tb_op_peek(c, c->saved, p_at(g, t)), gs);
}

/* --- forward ------------------------------------------------------------ */

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    const attn g = geometry(c);
    for (size_t i = from; i < to; i++) {
        tile t = tile_of_item(&g, i);
        void *p = tb_op_at(c, c->saved, p_at(&g, &t));
        scores(c, &g, &t, c->in[0], c->in[1], false, p);
        c->k->softmax_fwd(t.rows, g.time, g.time, first_of(&g, &t), g.scale, p);
        mix(c, &g, &t, dropped(c, &g, &t, chunk), c->in[2], false, c->out);
    }
}

static void fwd(const tb_opcall *c)
{
    const attn g = geometry(c);
    tb_op_each(c, tile_items(c, &g), tile_unit(&g), fwd_range);
}

/* --- backward: one item per (batch, kv head), so that the heads which share
 * keys and values add to them in order --- */

static void bwd_tile(const tb_opcall *c, const attn *g, const tile *t,
                     size_t chunk)
{
    void *gs = block_of(c, g, chunk, 0);
    if (c->gin[2])
        gather(c, g, t, dropped(c, g, t, chunk), c->gout, c->gin[2]);
    if (!c->gin[0] && !c->gin[1])
        return;
    scores(c, g, t, c->gout, c->in[2], false, gs); /* gy v^T */
    if (g->drop > 0)
        mask(c, g, t, gs, gs);
    through_softmax(c, g, t, gs);
    if (c->gin[0])
        mix(c, g, t, gs, c->in[1], true, c->gin[0]);
    if (c->gin[1])
        gather(c, g, t, gs, c->in[0], c->gin[1]);
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    const attn g = geometry(c);
    size_t heads = g.group * g.tiles; /* tiles of one kv head */
    for (size_t i = from; i < to; i++)
        for (size_t j = 0; j < heads; j++) {
            size_t head = i % g.kv_heads * g.group + j / g.tiles;
            tile t = tile_at(&g, i / g.kv_heads, head, j % g.tiles);
            bwd_tile(c, &g, &t, chunk);
        }
}

static void bwd(const tb_opcall *c)
{
    const attn g = geometry(c);
    tb_op_each(c, c->batch * g.kv_heads, group_unit(&g), bwd_range);
}

/* --- tangent: dS = tq k^T + q tk^T, dP from it as in backward, and
 * ty = dP v + P tv --- */

static void tan_tile(const tb_opcall *c, const attn *g, const tile *t,
                     size_t chunk)
{
    void *ts = block_of(c, g, chunk, 0);
    const void *tq = c->tin[0], *tk = c->tin[1], *tv = c->tin[2];
    if (tq)
        scores(c, g, t, tq, c->in[1], false, ts);
    if (tk)
        scores(c, g, t, c->in[0], tk, tq != NULL, ts);
    if (tq || tk) {
        through_softmax(c, g, t, ts);
        if (g->drop > 0)
            mask(c, g, t, ts, ts);
        mix(c, g, t, ts, c->in[2], false, c->tout);
    }
    if (tv)
        mix(c, g, t, dropped(c, g, t, chunk), tv, tq || tk, c->tout);
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    const attn g = geometry(c);
    for (size_t i = from; i < to; i++) {
        tile t = tile_of_item(&g, i);
        tan_tile(c, &g, &t, chunk);
    }
}

static void tan_(const tb_opcall *c)
{
    const attn g = geometry(c);
    if (c->tin[0] || c->tin[1] || c->tin[2])
        tb_op_each(c, tile_items(c, &g), tile_unit(&g), tan_range);
    else
        tb_op_copy(c, tb_op_out_count(c), NULL, c->tout);
}

/* --- sizes -------------------------------------------------------------- */

static size_t saved(const tb_opcall *c)
{
    const attn g = geometry(c);
    size_t heads = tb_op_times(c->batch, g.heads);
    return tb_op_bytes(c, tb_op_times(heads, tb_op_times(g.time, g.time)));
}

static size_t scratch(const tb_opcall *c)
{
    const attn g = geometry(c);
    size_t pieces = tb_op_pieces(tile_items(c, &g), tile_unit(&g));
    size_t back = tb_op_pieces(c->batch * g.kv_heads, group_unit(&g));
    return tb_op_bytes(c,
                       tb_op_times(pieces > back ? pieces : back,
                                   tb_op_times(g.tile * blocks(&g), g.time)));
}

/* Two products over the visible pairs. */
static double flops(const tb_opcall *c)
{
    double t = (double)c->time;
    double pairs = c->attr[TB_ATTR_ATTN_CAUSAL] != 0 ? t * (t + 1) / 2 : t * t;
    return 4 * pairs * (double)c->batch * (double)c->in_shape[0].width;
}

const tb_op tb_op_mha = {
    .name = "mha",
    .symbol = "mha",
    .min_in = 3,
    .max_in = 3,
    .nattr = 4,
    .attr_name = {"heads", "kv_heads", "causal", "drop"},
    .lane = TB_LANE_CUT,
    .jac = TB_JAC_MULTI,
    .needs = TB_NEED_IN(0) | TB_NEED_IN(1) | TB_NEED_IN(2),
    .shape = shape,
    .saved = saved,
    .scratch = scratch,
    .fwd = fwd,
    .bwd = bwd,
    .tan = tan_,
    .flops = flops,
};
