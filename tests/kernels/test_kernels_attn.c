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

/* The results of `passes` beside ref's: the same bits, or near. */
static void compare(tb_test *T, const head *h, const tb_k_attn_passes *passes,
                    bool bits)
{
    const double near = h->t == TB_F64 ? 1e-13 : 2e-5;
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
    const size_t wide[] = {1, 3, 8, 16, 20, 33, 64, 70};
    for (size_t i = 0; i < 40 && T->failed < 5; i++) {
        head h;
        open_head(T, &h, t, len[i % 8], len[below(T, 8)], wide[i / 5],
                  wide[below(T, 8)]);
        compare(T, &h, tb_kern_isa(isa, t)->attn, true);
        compare(T, &h, tb_attn_passes(T->ctx, t), false);
    }
}

static void all_sets(tb_test *T, tb_dtype t)
{
    for (size_t i = 1; tb_kern_isas[i]; i++)
        if (tb_kern_isa(tb_kern_isas[i], t))
            all_sizes(T, tb_kern_isas[i], t);
}

TB_TEST(f32)
{
    all_sets(T, TB_F32);
}

TB_TEST(f64)
{
    all_sets(T, TB_F64);
}

/* Work too large to count is asked for as SIZE_MAX. */
TB_TEST(work_does_not_wrap)
{
    TB_CHECK(T, tb_attn_work(SIZE_MAX / 8, 64, 64) == SIZE_MAX);
    TB_CHECK(T, tb_attn_work(8, SIZE_MAX - 3, 1) == SIZE_MAX);
    TB_CHECK(T, tb_attn_work(8, 1, 1) < 100000);
}
