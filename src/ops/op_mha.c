/* SPDX-License-Identifier: MIT */
/* mha: softmax(scale q k^T) v for every head (Vaswani et al. 2017,
 * arXiv:1706.03762). Heads lie side by side in the width; several query heads
 * may share one key and value head (Ainslie et al. 2023, arXiv:2305.13245).
 * Values may have another width than keys, and out has theirs.
 * Keys and values may belong to a memory of another length; a mask of 1 (keep)
 * and 0 (hide) acts together with causality. A query that sees nothing gets
 * zeros and gives no gradient.
 *
 * The arithmetic of one head is a kernel's (kern_attn.h). Kept for the other
 * passes are two numbers per query and head, by which they compute the
 * probabilities again; dropout's mask, too, is drawn again by every pass. */
#include "ops/op_help.h"

typedef enum attn_mask {
    MASK_NONE,
    MASK_SHARED, /* matrix [T_q, T_k] for every sequence */
    MASK_PAIRS,  /* [B, T_q, T_k] */
    MASK_KEYS    /* [B, T_k, 1]: real tokens of the memory */
} attn_mask;

/* Sizes of one call. */
typedef struct attn {
    size_t tq, tk;                 /* queries and keys of a sequence */
    size_t heads, kv_heads, group; /* group: query heads per kv head */
    size_t hd, qw, kw;             /* widths: a head, q, k */
    size_t vd, ow, vw;             /* of a head's values, out, v */
    size_t part, parts;            /* queries of an item of forward and tangent;
                                      items of a head */
    bool causal;                   /* key j is seen iff j <= i + T_k - T_q */
    attn_mask mask;                /* NONE also for one that does not fit */
    double scale, drop;            /* drop: rate on the probabilities */
} attn;

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

/* --- sizes -------------------------------------------------------------- */

static attn_mask mask_of(const tb_opcall *c, const attn *g)
{
    tb_shape s = c->in_shape[3];
    size_t time = tb_op_in_time(c, 3);
    if (c->nin < 4)
        return MASK_NONE;
    if (s.kind == TB_SHAPE_MATRIX)
        return s.height == g->tq && s.width == g->tk ? MASK_SHARED : MASK_NONE;
    if (s.width == g->tk && time == g->tq)
        return MASK_PAIRS;
    return s.width == 1 && time == g->tk ? MASK_KEYS : MASK_NONE;
}

/* Few heads are cut, so that there are this many items where the queries allow
 * it; every part copies the keys again. */
enum { ITEMS = 32, PART_ROWS = 4 * TB_ATTN_ROWS };

static attn attn_of(const tb_opcall *c)
{
    attn g = {.tq = c->time,
              .tk = tb_op_in_time(c, 1),
              .heads = (size_t)c->attr[TB_ATTR_ATTN_HEADS],
              .kv_heads = (size_t)c->attr[TB_ATTR_ATTN_KV_HEADS],
              .qw = c->in_shape[0].width,
              .kw = c->in_shape[1].width,
              .vw = c->in_shape[2].width,
              .causal = c->attr[TB_ATTR_ATTN_CAUSAL] != 0,
              .scale = c->attr[TB_ATTR_ATTN_SCALE],
              .drop = c->attr[TB_ATTR_ATTN_DROP]};
    size_t heads = tb_op_times(c->batch, g.heads);
    g.group = g.heads / g.kv_heads;
    g.hd = g.qw / g.heads;
    g.vd = g.vw / g.kv_heads;
    g.ow = g.vd * g.heads;
    g.parts = tb_chunks(g.tq, PART_ROWS);
    while (g.parts > 1 && tb_op_times(heads, g.parts) > ITEMS)
        g.parts--;
    g.part = (g.tq + g.parts - 1) / g.parts;
    g.mask = mask_of(c, &g);
    if (g.scale == 0)
        g.scale = 1 / tb_sqrt((double)g.hd);
    return g;
}

static const char *fit(const tb_opcall *c)
{
    attn g = attn_of(c);
    if (tb_op_in_time(c, 2) != g.tk)
        return "k and v must have the same number of tokens";
    if (c->nin > 3 && g.mask == MASK_NONE && g.tq > 0)
        return "the mask must be [T_q, T_k], [B, T_q, T_k] or [B, T_k, 1]";
    return NULL;
}

/* Visible (query, key) pairs of one head, masks aside. */
static double pairs(const attn *g)
{
    size_t empty = g->tq > g->tk ? g->tq - g->tk : 0; /* rows without a key */
    double n = (double)(g->tq - empty), last = (double)g->tk;
    if (!g->causal)
        return (double)g->tq * (double)g->tk;
    return n * (last + (last - n + 1)) / 2;
}

/* --- one head ----------------------------------------------------------- */

/* Queries [r0, r0 + rows) of head h of sequence b. */
typedef struct head {
    size_t b, h, r0, rows;
    size_t most; /* rows of an item of this pass: how far apart their work is */
} head;

static size_t q_at(const attn *g, const head *h)
{
    return (h->b * g->tq + h->r0) * g->qw + h->h * g->hd;
}

static size_t o_at(const attn *g, const head *h)
{
    return (h->b * g->tq + h->r0) * g->ow + h->h * g->vd;
}

static size_t k_at(const attn *g, const head *h)
{
    return h->b * g->tk * g->kw + h->h / g->group * g->hd;
}

static size_t v_at(const attn *g, const head *h)
{
    return h->b * g->tk * g->vw + h->h / g->group * g->vd;
}

/* The mask's element for query r0 and key 0. */
static size_t mask_at(const attn *g, const head *h)
{
    if (g->mask == MASK_KEYS)
        return h->b * g->tk;
    return ((g->mask == MASK_PAIRS ? h->b * g->tq : 0) + h->r0) * g->tk;
}

static size_t work(const attn *g, size_t rows)
{
    return tb_attn_work(rows, g->hd, g->vd);
}

static tb_k_attn kernel_call(const tb_opcall *c, const attn *g, const head *h,
                             size_t chunk)
{
    const size_t row = (h->b * g->heads + h->h) * g->tq + h->r0;
    tb_k_attn p = {.rows = h->rows,
                   .keys = g->tk,
                   .hd = g->hd,
                   .vd = g->vd,
                   .ldq = g->qw,
                   .ldk = g->kw,
                   .ldv = g->vw,
                   .ldo = g->ow,
                   .q = tb_op_peek(c, c->in[0], q_at(g, h)),
                   .k = tb_op_peek(c, c->in[1], k_at(g, h)),
                   .v = tb_op_peek(c, c->in[2], v_at(g, h)),
                   .first = (ptrdiff_t)g->tk,
                   .keep_ld = g->mask == MASK_KEYS ? 0 : g->tk,
                   .scale = g->scale,
                   .drop = g->drop,
                   .rng = c->rng,
                   .number = row * g->tk,
                   .kern = c->k,
                   .stat = (double *)c->saved + 2 * row,
                   .work = tb_op_at(c, c->scratch, chunk * work(g, h->most))};
    if (g->causal)
        p.first = (ptrdiff_t)(h->r0 + 1 + g->tk) - (ptrdiff_t)g->tq;
    if (g->mask != MASK_NONE)
        p.keep = tb_op_peek(c, c->in[3], mask_at(g, h));
    return p;
}

/* --- the passes --------------------------------------------------------- */

/* Items of forward and tangent: some queries of one head. */
static size_t part_items(const tb_opcall *c, const attn *g)
{
    return tb_op_times(tb_op_times(c->batch, g->heads), g->parts);
}

/* What they cost, in plain elements: some 8 products for each. A few small ones
 * share a chunk, so that a short sequence needs no other thread. */
static size_t part_unit(const attn *g)
{
    return tb_op_times(tb_op_times(g->part, g->tk), (g->hd + g->vd) / 16 + 1);
}

/* Items of the backward pass: all of a (batch, kv head), so that the heads
 * which share keys and values add to them in order. */
static size_t group_unit(const attn *g)
{
    return tb_op_times(part_unit(g), tb_op_times(2 * g->group, g->parts));
}

static head part_of(const attn *g, size_t item)
{
    size_t bh = item / g->parts, r0 = item % g->parts * g->part;
    size_t left = g->tq > r0 ? g->tq - r0 : 0;
    return (head){.b = bh / g->heads,
                  .h = bh % g->heads,
                  .r0 = r0,
                  .rows = left < g->part ? left : g->part,
                  .most = g->part};
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    const attn g = attn_of(c);
    for (size_t i = from; i < to; i++) {
        const head h = part_of(&g, i);
        const tb_k_attn p = kernel_call(c, &g, &h, chunk);
        tb_attn_passes(c->ctx, c->k->dtype)
            ->fwd(&p, tb_op_at(c, c->out, o_at(&g, &h)));
    }
}

static void fwd(const tb_opcall *c)
{
    const attn g = attn_of(c);
    tb_op_each(c, part_items(c, &g), part_unit(&g), fwd_range);
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    const attn g = attn_of(c);
    for (size_t i = from * g.group; i < to * g.group; i++) {
        const head h = {
            .b = i / g.heads, .h = i % g.heads, .rows = g.tq, .most = g.tq};
        const tb_k_attn p = kernel_call(c, &g, &h, chunk);
        const tb_k_attn_grad grad = {.out = tb_op_peek(c, c->out, o_at(&g, &h)),
                                     .gout =
                                         tb_op_peek(c, c->gout, o_at(&g, &h)),
                                     .gq = tb_op_at(c, c->gin[0], q_at(&g, &h)),
                                     .gk = tb_op_at(c, c->gin[1], k_at(&g, &h)),
                                     .gv = tb_op_at(c, c->gin[2], v_at(&g, &h)),
                                     .new_q = !c->gbase[0],
                                     .new_k = !c->gbase[1] && i % g.group == 0,
                                     .new_v = !c->gbase[2] && i % g.group == 0};
        tb_attn_passes(c->ctx, c->k->dtype)->bwd(&p, &grad);
    }
}

/* Many gradients of the queries h, every `step`-th copy from `first` on. */
static void bwd_copies(const tb_opcall *c, const attn *g, const head *h,
                       size_t chunk, size_t first, size_t step)
{
    const tb_k_attn p = kernel_call(c, g, h, chunk);
    const size_t q = c->batch * g->tq * g->qw, k = c->batch * g->tk * g->kw;
    const size_t v = c->batch * g->tk * g->vw, o = c->batch * g->tq * g->ow;
    const tb_k_attn_copies many = {
        .out = tb_op_peek(c, c->out, o_at(g, h)),
        .gout = tb_op_peek(c, c->gout, first * o + o_at(g, h)),
        .gq = tb_op_at(c, c->gin[0], first * q + q_at(g, h)),
        .gk = tb_op_at(c, c->gin[1], first * k + k_at(g, h)),
        .gv = tb_op_at(c, c->gin[2], first * v + v_at(g, h)),
        .new_q = !c->gbase[0],
        .new_k = !c->gbase[1] && h->h % g->group == 0,
        .new_v = !c->gbase[2] && h->h % g->group == 0,
        .copies = c->copies / step,
        .nextq = step * q,
        .nextk = step * k,
        .nextv = step * v,
        .nexto = step * o};
    tb_attn_passes(c->ctx, c->k->dtype)->bwd_copies(&p, &many);
}

static void bwd_copies_range(const tb_opcall *c, size_t from, size_t to,
                             size_t chunk)
{
    const attn g = attn_of(c);
    for (size_t i = from * g.group; i < to * g.group; i++) {
        head h = {
            .b = i / g.heads, .h = i % g.heads, .rows = g.tq, .most = g.tq};
        if (!c->own_token) {
            bwd_copies(c, &g, &h, chunk, 0, 1);
            continue;
        }
        h.rows = 1;
        for (h.r0 = 0; h.r0 < g.tq; h.r0++)
            bwd_copies(c, &g, &h, chunk, h.r0, g.tq);
    }
}

static void bwd(const tb_opcall *c)
{
    const attn g = attn_of(c);
    tb_op_each(c, c->batch * g.kv_heads, group_unit(&g),
               c->copies ? bwd_copies_range : bwd_range);
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    const attn g = attn_of(c);
    for (size_t i = from; i < to; i++) {
        const head h = part_of(&g, i);
        const tb_k_attn p = kernel_call(c, &g, &h, chunk);
        const tb_k_attn_tangent t = {
            .out = tb_op_peek(c, c->out, o_at(&g, &h)),
            .tq = tb_op_peek(c, c->tin[0], q_at(&g, &h)),
            .tk = tb_op_peek(c, c->tin[1], k_at(&g, &h)),
            .tv = tb_op_peek(c, c->tin[2], v_at(&g, &h)),
            .tout = tb_op_at(c, c->tout, o_at(&g, &h))};
        tb_attn_passes(c->ctx, c->k->dtype)->tan(&p, &t);
    }
}

static void tan_(const tb_opcall *c)
{
    const attn g = attn_of(c);
    if (c->tin[0] || c->tin[1] || c->tin[2])
        tb_op_each(c, part_items(c, &g), part_unit(&g), tan_range);
    else
        tb_op_copy(c, tb_op_out_count(c), NULL, c->tout);
}

/* --- the first key ---------------------------------------------------------
 */

/* Is key j hidden from query r0 of the head? */
static bool hides(const tb_opcall *c, const attn *g, const head *h, size_t j)
{
    if (g->causal && j + g->tq > h->r0 + g->tk)
        return true;
    return g->mask != MASK_NONE &&
           tb_op_get(c, c->in[3], mask_at(g, h) + j) == 0;
}

/* What query r0 gives key 0; false where it sees nothing. Sums are relative to
 * the largest score so far. */
static bool first_of(const tb_opcall *c, const attn *g, const head *h,
                     double *out)
{
    double sum = 0, most = 0, one = 0;
    const void *q = tb_op_peek(c, c->in[0], q_at(g, h));
    for (size_t j = 0; j < g->tk; j++) {
        if (hides(c, g, h, j))
            continue;
        const void *k = tb_op_peek(c, c->in[1], k_at(g, h) + j * g->kw);
        double s = g->scale * c->k->dot(g->hd, q, k);
        double down = sum > 0 && s > most ? tb_exp(most - s) : 1;
        most = sum > 0 && s <= most ? most : s;
        sum = sum * down + tb_exp(s - most);
        one = j ? one * down : 1;
    }
    *out = sum > 0 ? one / sum : 0;
    return sum > 0;
}

static void first(const tb_opcall *c, double *share)
{
    const attn g = attn_of(c);
    for (size_t i = 0; i < g.heads; i++) {
        double sum = 0, n = 0, one;
        for (size_t b = 0; b < c->batch; b++)
            for (size_t r = 0; r < g.tq; r++) {
                const head h = {.b = b, .h = i, .r0 = r, .rows = 1};
                n += first_of(c, &g, &h, &one);
                sum += one;
            }
        share[i] = n > 0 ? sum / n : 0;
    }
}

/* --- memory ------------------------------------------------------------- */

static size_t saved(const tb_opcall *c)
{
    const attn g = attn_of(c);
    size_t rows = tb_op_times(tb_op_times(c->batch, g.heads), g.tq);
    return tb_op_times(rows, 2 * sizeof(double));
}

static size_t scratch(const tb_opcall *c)
{
    const attn g = attn_of(c);
    size_t parts = tb_op_times(tb_op_pieces(part_items(c, &g), part_unit(&g)),
                               work(&g, g.part));
    size_t heads = tb_op_times(
        tb_op_pieces(c->batch * g.kv_heads, group_unit(&g)), work(&g, g.tq));
    return tb_op_bytes(c, parts > heads ? parts : heads);
}

/* Two products over the visible pairs; a mask saves nothing. */
static double flops(const tb_opcall *c)
{
    const attn g = attn_of(c);
    return 2 * pairs(&g) * (double)c->batch * (double)(g.qw + g.ow);
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
    .needs = TB_NEED_IN(0) | TB_NEED_IN(1) | TB_NEED_IN(2) | TB_NEED_IN(3) |
             TB_NEED_OUT,
    .data = TB_NEED_IN(3),
    .bases = TB_NEED_IN(0) | TB_NEED_IN(1) | TB_NEED_IN(2),
    .shape = shape,
    .fit = fit,
    .saved = saved,
    .scratch = scratch,
    .fwd = fwd,
    .bwd = bwd,
    .copies = true,
    .tan = tan_,
    .first = first,
    .check = check,
    .flops = flops,
    .reach = reach,
    .own = TB_NEED_IN(0),
    .work = TB_WORK_ATTENTION,
};
