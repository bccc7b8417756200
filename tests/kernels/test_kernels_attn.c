/* SPDX-License-Identifier: MIT */
/* Attention of one head: every instruction set gives the bits of ref, and with
 * FMA what its rounding allows. */
#include "tb_test.h"
#include "kernels/kernels.h"

enum { INPUTS = 8, OUTPUTS = 6 };

/* One head's numbers and what the passes write, rows one after another. */
typedef struct head {
    tb_dtype t;
    tb_k_attn p;
    void *in[INPUTS];   /* q k v, gout, tq tk tv, mask */
    void *out[OUTPUTS]; /* out, gq gk gv, tout, stat */
    size_t n[OUTPUTS];
} head;

static size_t below(tb_test *T, size_t n)
{
    return (size_t)(tb_test_uniform(T) * (double)n);
}

static void open_head(tb_test *T, head *h, tb_dtype t, size_t rows, size_t keys,
                      size_t hd, size_t vd)
{
    const size_t in[INPUTS] = {rows * hd, keys * hd, keys * vd, rows * vd,
                               rows * hd, keys * hd, keys * vd, rows * keys};
    const size_t out[OUTPUTS] = {rows * vd, rows * hd, keys * hd,
                                 keys * vd, rows * vd, 2 * rows};
    *h = (head){.t = t};
    for (int i = 0; i < INPUTS; i++) {
        h->in[i] = tb_test_guarded(T, in[i] * tb_dtype_size(t));
        for (size_t j = 0; j < in[i]; j++)
            tb_test_set(t, h->in[i], j,
                        i == 7 ? (double)(tb_test_uniform(T) < 0.7)
                               : tb_test_normal(T));
    }
    for (int i = 0; i < OUTPUTS; i++) {
        h->n[i] = out[i];
        h->out[i] = tb_test_guarded(T, out[i] * sizeof(double));
    }
    size_t work = tb_attn_work(rows, hd, vd) * tb_dtype_size(t);
    h->p = (tb_k_attn){.rows = rows,
                       .keys = keys,
                       .hd = hd,
                       .vd = vd,
                       .ldq = hd,
                       .ldk = hd,
                       .ldv = vd,
                       .ldo = vd,
                       .q = h->in[0],
                       .k = h->in[1],
                       .v = h->in[2],
                       .first = below(T, 2)
                                    ? (ptrdiff_t)keys
                                    : 1 + (ptrdiff_t)keys - (ptrdiff_t)rows,
                       .keep = below(T, 2) ? h->in[7] : NULL,
                       .keep_ld = keys,
                       .scale = 0.3,
                       .drop = below(T, 2) ? 0.2 : 0,
                       .rng = tb_rng_make(3, "attn"),
                       .number = 5,
                       .kern = tb_kern_isa("ref", t),
                       .stat = h->out[5],
                       .work = tb_test_guarded(T, work)};
    memset(h->p.work, 0xff, work);
}

static void run(const head *h, const tb_k_attn_passes *k)
{
    for (int i = 0; i < OUTPUTS; i++)
        memset(h->out[i], 0, h->n[i] * sizeof(double));
    k->fwd(&h->p, h->out[0]);
    k->bwd(&h->p, &(tb_k_attn_grad){.out = h->out[0],
                                    .gout = h->in[3],
                                    .gq = h->out[1],
                                    .gk = h->out[2],
                                    .gv = h->out[3]});
    k->tan(&h->p, &(tb_k_attn_tangent){.out = h->out[0],
                                       .tq = h->in[4],
                                       .tk = h->in[5],
                                       .tv = h->in[6],
                                       .tout = h->out[4]});
}

/* The results of `passes` beside ref's: the same bits, or near: a score is a
 * sum of hd products, whose errors add up. */
static void compare(tb_test *T, const head *h, const tb_k_attn_passes *passes,
                    bool bits)
{
    const double terms = h->p.hd > 64 ? (double)h->p.hd / 64 : 1;
    const double near = terms * (h->t == TB_F64 ? 1e-13 : 2e-5);
    void *want[OUTPUTS];
    run(h, tb_kern_isa("ref", h->t)->attn);
    for (int i = 0; i < OUTPUTS; i++) {
        want[i] = tb_test_guarded(T, h->n[i] * sizeof(double));
        memcpy(want[i], h->out[i], h->n[i] * sizeof(double));
    }
    run(h, passes);
    for (int i = 0; i < OUTPUTS; i++) {
        if (bits)
            TB_SAME(T, h->out[i], want[i], h->n[i] * sizeof(double));
        for (size_t j = 0; i < 5 && j < h->n[i]; j++)
            TB_NEAR(T, tb_test_get(h->t, h->out[i], j),
                    tb_test_get(h->t, want[i], j), near);
    }
}

static void all_sizes(tb_test *T, const char *isa, tb_dtype t)
{
    const size_t len[] = {1, 5, 47, 48, 49, 64, 65, 130};
    const size_t wide[] = {1, 3, 8, 16, 20, 33, 64, 70, 80, 96, 128, 257};
    enum { WIDE = TB_LEN(wide) };
    for (size_t i = 0; i < 5 * WIDE && T->failed < 5; i++) {
        head h;
        open_head(T, &h, t, len[i % 8], len[below(T, 8)], wide[i / 5],
                  wide[below(T, WIDE)]);
        compare(T, &h, tb_kern_isa(isa, t)->attn, true);
        compare(T, &h, tb_attn_passes(T->ctx, t), false);
    }
}

static void all_sets(tb_test *T, tb_dtype t)
{
    for (size_t i = 1; tb_isas[i]; i++)
        if (tb_kern_isa(tb_isas[i], t))
            all_sizes(T, tb_isas[i], t);
}

TB_TEST(f32)
{
    all_sets(T, TB_F32);
}

TB_TEST(f64)
{
    all_sets(T, TB_F64);
}

/* A key that scores x beside one that scores 0 has the share e / (1 + e) with e
 * = exp(x); scores are floats and no sum, so the rest is the exponential's. */
static void check_exp(tb_test *T, const tb_k_attn_passes *passes, size_t rows)
{
    head h;
    open_head(T, &h, TB_F32, rows, 2, 1, 1);
    float *q = h.in[0], *k = h.in[1], *v = h.in[2], *out = h.out[0];
    h.p.first = 2, h.p.keep = NULL, h.p.drop = 0, h.p.scale = 1;
    k[0] = v[0] = 0;
    k[1] = v[1] = 1;
    for (double x = -0.01; x > -87; x -= 0.37) {
        for (size_t r = 0; r < rows; r++)
            q[r] = (float)x;
        passes->fwd(&h.p, out);
        double e = tb_exp((double)q[0]), want = e / (1 + e);
        TB_NEAR(T, (double)out[rows - 1], want,
                want * (1.4e-7 - x * 0x1p-23 + 4 * 0x1p-24));
    }
}

TB_TEST(exp_is_as_good_as_it_says)
{
    for (size_t rows = 1; rows <= 2; rows++) {
        for (size_t i = 0; tb_isas[i]; i++)
            if (tb_kern_isa(tb_isas[i], TB_F32))
                check_exp(T, tb_kern_isa(tb_isas[i], TB_F32)->attn, rows);
        check_exp(T, tb_attn_passes(T->ctx, TB_F32), rows);
    }
}

/* --- one query ---------------------------------------------------------------
 */

/* Each query alone: the bits that it has among others. */
static void alone(tb_test *T, const head *h, const tb_k_attn_passes *passes)
{
    const size_t size = tb_dtype_size(h->t), vd = h->p.vd;
    double *stat = tb_test_guarded(T, 2 * sizeof *stat);
    void *out = tb_test_guarded(T, vd * size);
    passes->fwd(&h->p, h->out[0]);
    for (size_t r = 0; r < h->p.rows; r++) {
        tb_k_attn p = h->p;
        p.rows = 1;
        p.first += (ptrdiff_t)r;
        p.number += r * p.keys;
        p.q = (const char *)p.q + r * p.ldq * size;
        if (p.keep)
            p.keep = (const char *)p.keep + r * p.keep_ld * size;
        p.stat = stat;
        passes->fwd(&p, out);
        TB_SAME(T, out, (char *)h->out[0] + r * vd * size, vd * size);
        TB_SAME(T, stat, h->p.stat + 2 * r, 2 * sizeof *stat);
    }
}

TB_TEST(a_query_alone)
{
    const size_t keys[] = {1, 7, 9, 16, 17, 63, 64, 65, 130, 200};
    const size_t wide[] = {1, 3, 8, 16, 20, 33, 64, 70};
    for (size_t k = 0; k < 40 && T->failed < 5; k++) {
        tb_dtype t = k % 2 ? TB_F64 : TB_F32;
        head h;
        open_head(T, &h, t, 3, keys[k / 2 % 10], wide[below(T, 8)],
                  wide[below(T, 8)]);
        for (size_t i = 0; tb_isas[i]; i++)
            if (tb_kern_isa(tb_isas[i], t))
                alone(T, &h, tb_kern_isa(tb_isas[i], t)->attn);
    }
}

/* --- many gradients of one forward pass -------------------------------------
 */

/** Gradients of the output and what they give, `copies` of each. */
typedef struct many {
    size_t copies, n[4]; /* elements of one: gq, gk, gv, gout */
    void *start[3], *g[3], *gout;
    tb_k_attn_copies call;
} many;

/* gk and gv can be new for one query alone. */
static void open_many(tb_test *T, const head *h, many *m, size_t copies)
{
    const size_t size = tb_dtype_size(h->t);
    *m = (many){.copies = copies,
                .n = {h->n[1], h->n[2], h->n[3], h->n[0]},
                .gout = tb_test_guarded(T, copies * h->n[0] * size)};
    for (size_t i = 0; i < copies * m->n[3]; i++)
        tb_test_set(h->t, m->gout, i, tb_test_normal(T));
    for (int i = 0; i < 3; i++) {
        m->start[i] = tb_test_guarded(T, copies * m->n[i] * size);
        m->g[i] = tb_test_guarded(T, copies * m->n[i] * size);
        for (size_t j = 0; j < copies * m->n[i]; j++)
            tb_test_set(h->t, m->start[i], j, tb_test_normal(T));
    }
    m->call = (tb_k_attn_copies){.out = h->out[0],
                                 .gout = m->gout,
                                 .gq = below(T, 3) ? m->g[0] : NULL,
                                 .gk = below(T, 3) ? m->g[1] : NULL,
                                 .gv = below(T, 3) ? m->g[2] : NULL,
                                 .new_q = below(T, 2),
                                 .new_k = h->p.rows == 1 && below(T, 2),
                                 .new_v = h->p.rows == 1 && below(T, 2),
                                 .copies = copies,
                                 .nexto = m->n[3],
                                 .nextq = m->n[0],
                                 .nextk = m->n[1],
                                 .nextv = m->n[2]};
}

static void restart(const head *h, const many *m)
{
    for (int i = 0; i < 3; i++)
        memcpy(m->g[i], m->start[i], m->copies * m->n[i] * tb_dtype_size(h->t));
}

static void *kept(tb_test *T, const head *h, const many *m, int i)
{
    size_t bytes = m->copies * m->n[i] * tb_dtype_size(h->t);
    return memcpy(tb_test_guarded(T, bytes), m->g[i], bytes);
}

/* One after the other. */
static void run_each(const head *h, const many *m)
{
    const size_t size = tb_dtype_size(h->t);
    const tb_k_attn_copies *c = &m->call;
    void *to[] = {c->gq, c->gk, c->gv};
    restart(h, m);
    for (size_t i = 0; i < m->copies; i++) {
        void *g[3];
        for (int k = 0; k < 3; k++)
            g[k] = to[k] ? (char *)to[k] + i * m->n[k] * size : NULL;
        h->p.kern->attn->bwd(
            &h->p,
            &(tb_k_attn_grad){.out = c->out,
                              .gout = (char *)m->gout + i * m->n[3] * size,
                              .gq = g[0],
                              .gk = g[1],
                              .gv = g[2],
                              .new_q = c->new_q,
                              .new_k = c->new_k,
                              .new_v = c->new_v});
    }
}

static void compare_many(tb_test *T, const head *h, const many *m,
                         const tb_k_attn_passes *const *sets, size_t n)
{
    const double near = h->t == TB_F64 ? 1e-12 : 1e-4;
    void *each[3], *ref[3];
    run_each(h, m);
    for (int i = 0; i < 3; i++)
        each[i] = kept(T, h, m, i);
    for (size_t s = 0; s < n; s++) {
        restart(h, m);
        sets[s]->bwd_copies(&h->p, &m->call);
        for (int i = 0; i < 3; i++) {
            size_t all = m->copies * m->n[i];
            if (s == 0)
                ref[i] = kept(T, h, m, i);
            else if (s + 1 < n) /* the last one rounds otherwise */
                TB_SAME(T, m->g[i], ref[i], all * tb_dtype_size(h->t));
            for (size_t j = 0; j < all; j++)
                TB_NEAR(T, tb_test_get(h->t, m->g[i], j),
                        tb_test_get(h->t, each[i], j), near);
        }
    }
}

static void many_gradients(tb_test *T, tb_dtype t)
{
    const size_t rows[] = {1, 1, 8, 9}, keys[] = {1, 3, 7, 8, 9, 64, 65, 130};
    const size_t wide[] = {1, 3, 8, 16, 20, 33, 64}, many_[] = {1, 5, 48, 50};
    const tb_k_attn_passes *sets[8];
    size_t n = 0;
    for (size_t i = 0; tb_isas[i]; i++)
        if (tb_kern_isa(tb_isas[i], t))
            sets[n++] = tb_kern_isa(tb_isas[i], t)->attn;
    sets[n++] = tb_attn_passes(T->ctx, t);
    for (size_t i = 0; i < 64 && T->failed < 5; i++) {
        head h;
        many m;
        open_head(T, &h, t, rows[i % 4], keys[i / 4 % 8], wide[below(T, 7)],
                  wide[below(T, 7)]);
        h.p.kern->attn->fwd(&h.p, h.out[0]);
        open_many(T, &h, &m, many_[below(T, 4)]);
        compare_many(T, &h, &m, sets, n);
    }
}

TB_TEST(many_gradients_f32)
{
    many_gradients(T, TB_F32);
}

TB_TEST(many_gradients_f64)
{
    many_gradients(T, TB_F64);
}

/* Work too large to count is asked for as SIZE_MAX. */
TB_TEST(work_does_not_wrap)
{
    TB_CHECK(T, tb_attn_work(SIZE_MAX / 8, 64, 64) == SIZE_MAX);
    TB_CHECK(T, tb_attn_work(8, SIZE_MAX - 3, 1) == SIZE_MAX);
    TB_CHECK(T, tb_attn_work(8, 1, 1) < 100000);
}
