/* SPDX-License-Identifier: MIT */
/* Part of kern_attn.h: the backward pass of many gradients of one forward
 * pass, which is how a Jacobian is taken. They share each query's
 * probabilities: a tile's rows are copies of one query, its keys are copied
 * once for all, and what a key gets is one product of two numbers for each of
 * its elements. */

/* Copies [from, from + n) of query r. */
typedef struct FN(attn_copies) {
    const tb_k_attn_copies *g;
    size_t r, from, n;
} FN(attn_copies);

static const REAL *FN(copies_gout)(const FN(attn_copies) * c,
                                   const tb_k_attn *p)
{
    return (const REAL *)c->g->gout + c->from * c->g->nexto + c->r * p->ldo;
}

/* The query's probabilities in w->s, those that dropout leaves in its second
 * row; the query itself, scaled, in w->q. */
static void FN(copies_weights)(const FN(attn_block) * b,
                               const FN(attn_work) * w)
{
    const tb_k_attn *p = b->p;
    REAL *dropped = w->s + FN(ATTN_LD);
    FN(attn_copy)
    (1, ATTN_MR, p->hd, (REAL)p->scale, (const REAL *)p->q + b->r0 * p->ldq,
     p->ldq, w->q);
    size_t wide =
        FN(attn_group)(b, 0, w->q, FN(attn_wide)(p->hd), w->kt, p->hd, w->s);
    FN(attn_hide)(b, 0, wide, w->s);
    FN(attn_again)(wide, p->stat + 2 * b->r0, w->s);
    memcpy(dropped, w->s, FN(ATTN_LD) * sizeof *dropped);
    FN(attn_drop)(b, dropped);
}

/* w->ds = the derivatives of the scores, a row for each copy. Their means
 * <dy, y> are one more product, by a block whose one column is y. */
static void FN(copies_slopes)(const FN(attn_block) * b, const FN(attn_work) * w,
                              const FN(attn_copies) * c)
{
    const tb_k_attn *p = b->p;
    const size_t reach = FN(attn_reach)(b, 0), wide = FN(attn_wide)(reach);
    const uint64_t at = p->number + b->r0 * p->keys + b->c0;
    FN(attn_product)
    x = {.m = c->n,
         .n = wide,
         .depth = p->vd,
         .a = w->g,
         .lda = FN(attn_wide)(p->vd),
         .b = w->vt,
         .ldb = TB_ATTN_KEYS,
         .c = w->ds,
         .ldc = FN(ATTN_LD)};
    FN(attn_copy)
    (c->n, FN(attn_tiled)(c->n), p->vd, 1, FN(copies_gout)(c, p), c->g->nexto,
     w->g);
    FN(attn_times)(&x);
    x.n = x.ldb = x.ldc = TB_LANES;
    x.b = w->v;
    x.c = w->gv;
    FN(attn_times)(&x);
    for (size_t i = 0; i < c->n; i++) {
        REAL *ds = w->ds + i * FN(ATTN_LD);
        if (p->drop > 0)
            p->kern->drop(p->rng, p->drop, at, reach, ds, false, ds);
        FN(attn_through)(wide, w->s, w->gv[i * TB_LANES], ds);
    }
}

/* y[j] += s[j] x for n keys, or = where it is new; nothing, or 0, for those
 * that the query does not see. */
TB_INLINE void FN(copies_spread)(size_t n, const REAL *seen, const REAL *s,
                                 size_t width, const REAL *x, bool new, REAL *y,
                                 size_t ld)
{
    const size_t whole = width / FN(VEC) * FN(VEC);
    const FN(vec) zero = {0};
    FN(vec) v, sum;
    for (size_t i = 0; i < whole; i += FN(VEC)) {
        memcpy(&v, x + i, sizeof v);
        for (size_t j = 0; j < n; j++) {
            if (!new)
                memcpy(&sum, y + j * ld + i, sizeof sum);
            if (seen[j] != 0)
                sum = new ? s[j] * v : sum + s[j] * v;
            else
                sum = new ? zero : sum;
            memcpy(y + j * ld + i, &sum, sizeof sum);
        }
    }
    for (size_t j = 0; whole < width && j < n; j++)
        for (size_t i = whole; i < width; i++) {
            REAL term = seen[j] != 0 ? s[j] * x[i] : 0;
            y[j * ld + i] = new ? term : y[j * ld + i] + term;
        }
}

static void FN(copies_to)(const FN(attn_block) * b, const REAL *seen,
                          const REAL *s, size_t width, const REAL *x, bool new,
                          REAL *y, size_t ld)
{
    if (new)
        FN(copies_spread)(b->n, seen, s, width, x, true, y, ld);
    else
        FN(copies_spread)
    (FN(attn_reach)(b, 0), seen, s, width, x, false, y, ld);
}

/* What the block's keys and values get from one query. */
static void FN(copies_give_keys)(const FN(attn_block) * b,
                                 const FN(attn_work) * w,
                                 const FN(attn_copies) * c)
{
    const tb_k_attn *p = b->p;
    const tb_k_attn_copies *g = c->g;
    const REAL *gout = FN(copies_gout)(c, p);
    for (size_t i = 0; i < c->n; i++) {
        size_t k = (c->from + i) * g->nextk + b->c0 * p->ldk;
        size_t v = (c->from + i) * g->nextv + b->c0 * p->ldv;
        if (g->gk)
            FN(copies_to)
        (b, w->s, w->ds + i * FN(ATTN_LD), p->hd, w->q, g->new_k,
         (REAL *)g->gk + k, p->ldk);
        if (g->gv)
            FN(copies_to)
        (b, w->s, w->s + FN(ATTN_LD), p->vd, gout + i * g->nexto, g->new_v,
         (REAL *)g->gv + v, p->ldv);
    }
}

/* The block's keys and values that no query sees get 0 where they are new. */
static void FN(copies_unseen)(const FN(attn_block) * b,
                              const tb_k_attn_copies *g)
{
    const tb_k_attn *p = b->p;
    for (size_t i = 0; i < g->copies; i++) {
        size_t k = i * g->nextk + b->c0 * p->ldk;
        size_t v = i * g->nextv + b->c0 * p->ldv;
        if (g->gk && g->new_k)
            FN(attn_give)
        (b->n, p->hd, 1, NULL, true, (REAL *)g->gk + k, p->ldk);
        if (g->gv && g->new_v)
            FN(attn_give)
        (b->n, p->vd, 1, NULL, true, (REAL *)g->gv + v, p->ldv);
    }
}

/* Of keys that are not finite and that the copies left out, those that are
 * seen. */
static void FN(copies_mend)(const FN(attn_block) * b, const FN(attn_work) * w,
                            const FN(attn_copies) * c)
{
    const tb_k_attn *p = b->p;
    const size_t hd = FN(attn_wide)(p->hd);
    for (size_t j = 0; j < FN(attn_reach)(b, 0); j++) {
        const REAL *k = (const REAL *)p->k + (b->c0 + j) * p->ldk;
        if (FN(attn_finite)(p->hd, k))
            continue;
        for (size_t i = 0; i < c->n; i++) {
            const REAL s = w->ds[i * FN(ATTN_LD) + j];
            for (size_t e = 0; s != 0 && e < p->hd; e++)
                w->gk[i * hd + e] += s * k[e];
        }
    }
}

/* What the query gets from the block's keys. */
static void FN(copies_give_query)(const FN(attn_block) * b,
                                  const FN(attn_work) * w,
                                  const FN(attn_copies) * c, bool bad)
{
    const tb_k_attn *p = b->p;
    const FN(attn_product) x = {.m = c->n,
                                .n = p->hd,
                                .depth = FN(attn_reach)(b, 0),
                                .a = w->ds,
                                .lda = FN(ATTN_LD),
                                .b = w->k,
                                .ldb = FN(attn_wide)(p->hd),
                                .c = w->gk,
                                .ldc = FN(attn_wide)(p->hd)};
    FN(attn_times)(&x);
    if (bad)
        FN(copies_mend)(b, w, c);
    FN(attn_give)
    (c->n, p->hd, p->scale, w->gk, c->g->new_q && b->c0 == 0,
     (REAL *)c->g->gq + c->from * c->g->nextq + c->r * p->ldq, c->g->nextq);
}

static void FN(copies_query)(const FN(attn_block) * b, const FN(attn_work) * w,
                             const tb_k_attn_copies *g, bool bad)
{
    const tb_k_attn *p = b->p;
    const REAL *out = (const REAL *)g->out + b->r0 * p->ldo;
    FN(copies_weights)(b, w);
    memset(w->v, 0, p->vd * TB_LANES * sizeof *w->v);
    for (size_t i = 0; i < p->vd; i++)
        w->v[i * TB_LANES] = out[i];
    FN(attn_copies) c = {.g = g, .r = b->r0};
    for (; c.from < g->copies; c.from += c.n) {
        c.n = FN(least)(TB_ATTN_ROWS, g->copies - c.from);
        FN(copies_slopes)(b, w, &c);
        FN(copies_give_keys)(b, w, &c);
        if (g->gq)
            FN(copies_give_query)(b, w, &c, bad);
    }
}

/* The first queries that see nothing at all. */
static void FN(copies_blind)(const tb_k_attn *p, const tb_k_attn_copies *g)
{
    const size_t n = p->keys ? FN(attn_start)(p, 0) : p->rows;
    for (size_t i = 0; g->gq && i < g->copies; i++)
        FN(attn_give)
    (n, p->hd, 1, NULL, g->new_q, (REAL *)g->gq + i * g->nextq, p->ldq);
}

static void FN(attn_bwd_copies)(const tb_k_attn *p, const tb_k_attn_copies *g)
{
    const FN(attn_work) w = FN(attn_carve)(p);
    FN(attn_block) b = {.p = p, .rows = 1};
    FN(copies_blind)(p, g);
    for (; b.c0 < p->keys; b.c0 += TB_ATTN_KEYS) {
        const REAL *k = (const REAL *)p->k + b.c0 * p->ldk;
        const REAL *v = (const REAL *)p->v + b.c0 * p->ldv;
        bool bad = false;
        b.n = FN(least)(TB_ATTN_KEYS, p->keys - b.c0);
        b.r0 = FN(attn_start)(p, b.c0);
        if (b.r0 >= p->rows) {
            FN(copies_unseen)(&b, g);
            continue;
        }
        FN(attn_across)(b.n, p->hd, k, p->ldk, w.kt);
        FN(attn_across)(b.n, p->vd, v, p->ldv, w.vt);
        if (g->gq)
            bad = FN(attn_copy_clean)(b.n, b.n, p->hd, 1, k, p->ldk, w.k);
        for (; b.r0 < p->rows; b.r0++)
            FN(copies_query)(&b, &w, g, bad);
    }
}
