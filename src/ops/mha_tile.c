/* SPDX-License-Identifier: MIT */
/* Tiles of attention; see mha_tile.h. */
#include "ops/mha_tile.h"

/* Rows of a tile: small enough to skip most hidden columns, large enough for
 * the matrix product. */
enum { ROWS_CAUSAL = 64, ROWS_FULL = 128 };

/* --- geometry ----------------------------------------------------------- */

static tb_attn_mask mask_of(const tb_opcall *c, const tb_attn *g)
{
    tb_shape s = c->in_shape[3];
    size_t time = tb_op_in_time(c, 3);
    if (c->nin < 4)
        return TB_MASK_NONE;
    if (s.kind == TB_SHAPE_MATRIX)
        return s.height == g->tq && s.width == g->tk ? TB_MASK_SHARED
                                                     : TB_MASK_NONE;
    if (s.width == g->tk && time == g->tq)
        return TB_MASK_PAIRS;
    return s.width == 1 && time == g->tk ? TB_MASK_KEYS : TB_MASK_NONE;
}

tb_attn tb_attn_of(const tb_opcall *c)
{
    tb_attn g = {.tq = c->time,
                 .tk = tb_op_in_time(c, 1),
                 .heads = (size_t)c->attr[TB_ATTR_ATTN_HEADS],
                 .kv_heads = (size_t)c->attr[TB_ATTR_ATTN_KV_HEADS],
                 .qw = c->in_shape[0].width,
                 .kw = c->in_shape[1].width,
                 .vw = c->in_shape[2].width,
                 .causal = c->attr[TB_ATTR_ATTN_CAUSAL] != 0,
                 .scale = c->attr[TB_ATTR_ATTN_SCALE],
                 .drop = c->attr[TB_ATTR_ATTN_DROP]};
    g.group = g.heads / g.kv_heads;
    g.hd = g.qw / g.heads;
    g.vd = g.vw / g.kv_heads;
    g.ow = g.vd * g.heads;
    g.wide = g.hd > g.vd ? g.hd : g.vd;
    g.tile = g.causal ? ROWS_CAUSAL : ROWS_FULL;
    g.tiles = (g.tq + g.tile - 1) / g.tile;
    g.mask = mask_of(c, &g);
    if (g.scale == 0)
        g.scale = 1 / tb_sqrt((double)g.hd);
    return g;
}

tb_attn tb_attn_values(const tb_attn *g)
{
    tb_attn v = *g;
    v.hd = g->vd;
    v.qw = g->ow;
    v.kw = g->vw;
    return v;
}

const char *tb_attn_fit(const tb_opcall *c)
{
    tb_attn g = tb_attn_of(c);
    if (tb_op_in_time(c, 2) != g.tk)
        return "k and v must have the same number of tokens";
    if (c->nin > 3 && g.mask == TB_MASK_NONE && g.tq > 0)
        return "the mask must be [T_q, T_k], [B, T_q, T_k] or [B, T_k, 1]";
    return NULL;
}

/* Columns that query i sees by causality: its own is the last but T_q - 1 - i
 * of them. */
static size_t reach(const tb_attn *g, size_t i)
{
    size_t past = i + 1 + g->tk;
    if (!g->causal)
        return g->tk;
    return past > g->tq ? past - g->tq : 0;
}

double tb_attn_pairs(const tb_attn *g)
{
    size_t empty = g->tq > g->tk ? g->tq - g->tk : 0; /* rows without a key */
    double n = (double)(g->tq - empty), last = (double)g->tk;
    if (!g->causal)
        return (double)g->tq * (double)g->tk;
    return n * (last + (last - n + 1)) / 2;
}

tb_tile tb_tile_at(const tb_attn *g, size_t b, size_t head, size_t i)
{
    tb_tile t = {.b = b, .head = head, .r0 = i * g->tile};
    size_t left = g->tq - t.r0;
    t.rows = left < g->tile ? left : g->tile;
    t.cols = reach(g, t.r0 + t.rows - 1);
    return t;
}

size_t tb_tile_p(const tb_attn *g, const tb_tile *t)
{
    return ((t->b * g->heads + t->head) * g->tq + t->r0) * g->tk;
}

/* Offsets of a tile's rows in q and out, of its head's rows in k and v. */
static size_t q_at(const tb_attn *g, const tb_tile *t)
{
    return (t->b * g->tq + t->r0) * g->qw + t->head * g->hd;
}

static size_t k_at(const tb_attn *g, const tb_tile *t)
{
    return t->b * g->tk * g->kw + t->head / g->group * g->hd;
}

static tb_op_mat q_mat(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                       const void *q)
{
    return (tb_op_mat){tb_op_peek(c, q, q_at(g, t)), g->qw};
}

static tb_op_mat k_mat(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                       const void *k)
{
    return (tb_op_mat){tb_op_peek(c, k, k_at(g, t)), g->kw};
}

/* --- scratch ------------------------------------------------------------ */

/* The derivatives of the scores, and with dropout the masked probabilities. */
static size_t blocks(const tb_attn *g)
{
    return g->drop > 0 ? 2 : 1;
}

enum { FLAG_BYTES = 64 };

/* Elements of a chunk. */
static size_t stride(const tb_attn *g)
{
    size_t n, rows = g->tile > g->tk ? g->tile : g->tk;
    size_t all = tb_op_times(g->tile * blocks(g), g->tk);
    return tb_add(all, tb_op_times(rows, g->wide), &n) ? n : SIZE_MAX;
}

size_t tb_tile_scratch(const tb_opcall *c, const tb_attn *g, size_t pieces)
{
    size_t most = 0, all,
           tiles = tb_op_bytes(c, tb_op_times(pieces, stride(g)));
    for (int i = 0; i < 4; i++) {
        size_t count = i < 3 ? tb_op_in_count(c, i) : tb_op_out_count(c);
        size_t n = tb_op_pieces(count, 1);
        most = n > most ? n : most;
    }
    size_t counts = tb_op_part_bytes(most, 1);
    return tb_add(tiles > counts ? tiles : counts, FLAG_BYTES, &all) ? all
                                                                     : SIZE_MAX;
}

void *tb_tile_block(const tb_opcall *c, const tb_attn *g, size_t chunk,
                    size_t i)
{
    return tb_op_at(c, (char *)c->scratch + FLAG_BYTES,
                    chunk * stride(g) + i * g->tile * g->tk);
}

static void bad_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    const void *x = tb_op_peek(c, c->in[0], from);
    *tb_op_part(c, chunk, 1) = (double)c->k->nonfinite(to - from, x);
}

void tb_tile_suspect(const tb_opcall *c, const tb_attn *g, int n,
                     const void *const *x, const size_t *count)
{
    bool hides = g->mask != TB_MASK_NONE || (g->causal && g->tq > 1);
    double *flag = c->scratch, bad = 0;
    tb_opcall one = *c;
    one.scratch = (char *)c->scratch + FLAG_BYTES;
    for (int i = 0; i < n && hides; i++) {
        if (!x[i])
            continue;
        one.in[0] = x[i];
        tb_op_each(&one, count[i], 1, bad_range);
        bad += tb_op_total(&one, tb_op_pieces(count[i], 1), 1, 0);
    }
    *flag = bad;
}

static bool suspect(const tb_opcall *c)
{
    return *(const double *)c->scratch != 0;
}

/* --- what is hidden ----------------------------------------------------- */

/* Row i of the whole mask, NULL without one that differs by query. */
static bool keeps(const tb_opcall *c, const tb_attn *g, size_t b, size_t i,
                  size_t j)
{
    size_t at = 0;
    switch (g->mask) {
    case TB_MASK_NONE:
        return true;
    case TB_MASK_SHARED:
        at = i * g->tk + j;
        break;
    case TB_MASK_PAIRS:
        at = (b * g->tq + i) * g->tk + j;
        break;
    case TB_MASK_KEYS:
        at = b * g->tk + j;
        break;
    }
    return tb_op_get(c, c->in[3], at) > 0;
}

static bool sees(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                 size_t row, size_t j)
{
    return j < reach(g, t->r0 + row) && keeps(c, g, t->b, t->r0 + row, j);
}

/* Columns below this one are seen by every row of the tile. */
static size_t common(const tb_attn *g, const tb_tile *t)
{
    return g->mask == TB_MASK_NONE ? reach(g, t->r0) : 0;
}

/* --- products ----------------------------------------------------------- */

static bool bad_row(const tb_opcall *c, const tb_attn *g, tb_op_mat m, size_t r)
{
    return c->k->nonfinite(g->hd, tb_op_peek(c, m.p, r * m.ld)) > 0;
}

/* m, or in a suspect call, if one of its rows [from, to) is not finite, a copy
 * of rows [0, to) in which such rows are 0: 0 times NaN is NaN, and a hidden
 * pair has a probability of 0. */
static tb_op_mat cleaned(const tb_opcall *c, const tb_attn *g, size_t chunk,
                         tb_op_mat m, size_t from, size_t to)
{
    void *copy = tb_tile_block(c, g, chunk, blocks(g));
    size_t r = from;
    while (suspect(c) && r < to && !bad_row(c, g, m, r))
        r++;
    if (!suspect(c) || r >= to)
        return m;
    for (r = 0; r < to; r++) {
        bool bad = r >= from && bad_row(c, g, m, r);
        tb_op_copy(c, g->hd, bad ? NULL : tb_op_peek(c, m.p, r * m.ld),
                   tb_op_at(c, copy, r * g->hd));
    }
    return (tb_op_mat){copy, g->hd};
}

/* y += p[row, j] m[r]: a pair that `cleaned` left out and the row sees */
static void one_pair(const tb_opcall *c, const tb_attn *g, const void *p,
                     size_t row, size_t j, tb_op_mat m, size_t r, void *y)
{
    c->k->axpy(g->hd, tb_op_get(c, p, row * g->tk + j),
               tb_op_peek(c, m.p, r * m.ld), y);
}

void tb_tile_scores(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                    const void *q, const void *k, bool add, void *s)
{
    tb_op_product(c, TB_OP_NT, t->rows, t->cols, g->hd, q_mat(c, g, t, q),
                  k_mat(c, g, t, k), add, s, g->tk);
}

void tb_tile_mix(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                 size_t chunk, const void *p, const void *v, bool add, void *y)
{
    tb_op_mat all = k_mat(c, g, t, v);
    tb_op_mat clean = cleaned(c, g, chunk, all, common(g, t), t->cols);
    void *to = tb_op_at(c, y, q_at(g, t));
    for (size_t i = 0; i < t->rows && t->cols == 0 && !add; i++)
        tb_op_copy(c, g->hd, NULL, tb_op_at(c, to, i * g->qw));
    if (t->cols == 0)
        return;
    tb_op_product(c, TB_OP_NN, t->rows, g->hd, t->cols, (tb_op_mat){p, g->tk},
                  clean, add, to, g->qw);
    for (size_t j = common(g, t); j < t->cols && clean.p != all.p; j++)
        for (size_t i = 0; i < t->rows && bad_row(c, g, all, j); i++)
            if (sees(c, g, t, i, j))
                one_pair(c, g, p, i, j, all, j, tb_op_at(c, to, i * g->qw));
}

void tb_tile_gather(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                    size_t chunk, const void *p, const void *q, void *gk)
{
    tb_op_mat all = q_mat(c, g, t, q);
    bool hides = common(g, t) < t->cols;
    tb_op_mat clean = cleaned(c, g, chunk, all, 0, hides ? t->rows : 0);
    void *to = tb_op_at(c, gk, k_at(g, t));
    tb_op_product(c, TB_OP_TN, t->cols, g->hd, t->rows, (tb_op_mat){p, g->tk},
                  clean, true, to, g->kw);
    for (size_t i = 0; i < t->rows && clean.p != all.p; i++)
        for (size_t j = 0; j < t->cols && bad_row(c, g, all, i); j++)
            if (sees(c, g, t, i, j))
                one_pair(c, g, p, i, j, all, i, tb_op_at(c, to, j * g->kw));
}

/* --- softmax ------------------------------------------------------------ */

/* Rows at the top of the tile that see no key at all, masks aside. */
static size_t blind(const tb_attn *g, const tb_tile *t)
{
    size_t i = 0;
    while (i < t->rows && reach(g, t->r0 + i) == 0)
        i++;
    return i;
}

/* What row i does not see becomes `v`, in its first m columns. How many are
 * left. */
static size_t hide(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                   size_t i, size_t m, double v, void *row)
{
    size_t left = 0;
    for (size_t j = 0; j < m; j++)
        if (keeps(c, g, t->b, t->r0 + i, j))
            left++;
        else
            tb_op_set(c, row, j, v);
    return left;
}

static void masked_softmax(const tb_opcall *c, const tb_attn *g,
                           const tb_tile *t, void *p)
{
    for (size_t i = 0; i < t->rows; i++) {
        void *row = tb_op_at(c, p, i * g->tk);
        size_t m = reach(g, t->r0 + i);
        c->k->scale(m, g->scale, row, row); /* before -inf: it may be below 0 */
        if (hide(c, g, t, i, m, -__builtin_inf(), row) > 0)
            c->k->softmax_fwd(1, g->tk, g->tk, m, 1, row);
        else
            tb_op_copy(c, g->tk, NULL, row);
    }
}

void tb_tile_softmax(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                     void *p)
{
    size_t none = blind(g, t);
    if (g->mask != TB_MASK_NONE) {
        masked_softmax(c, g, t, p);
        return;
    }
    tb_op_copy(c, none * g->tk, NULL, p);
    c->k->softmax_fwd(t->rows - none, g->tk, g->tk, reach(g, t->r0 + none),
                      g->scale, tb_op_at(c, p, none * g->tk));
}

/* Hidden columns are 0 before, so that a nan there does not reach the row's
 * mean, and after, so that a nan mean does not reach them. */
static void masked_through(const tb_opcall *c, const tb_attn *g,
                           const tb_tile *t, const void *p, void *gs)
{
    for (size_t i = 0; i < t->rows; i++) {
        void *row = tb_op_at(c, gs, i * g->tk);
        size_t m = reach(g, t->r0 + i);
        hide(c, g, t, i, m, 0, row);
        c->k->softmax_bwd(1, t->cols, g->tk, m, g->scale,
                          tb_op_peek(c, p, i * g->tk), row);
        hide(c, g, t, i, m, 0, row);
    }
}

void tb_tile_through(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                     const void *p, void *gs)
{
    size_t none = blind(g, t), at = none * g->tk;
    if (g->mask != TB_MASK_NONE) {
        masked_through(c, g, t, p, gs);
        return;
    }
    for (size_t i = 0; i < none; i++)
        tb_op_copy(c, t->cols, NULL, tb_op_at(c, gs, i * g->tk));
    c->k->softmax_bwd(t->rows - none, t->cols, g->tk, reach(g, t->r0 + none),
                      g->scale, tb_op_peek(c, p, at), tb_op_at(c, gs, at));
}
