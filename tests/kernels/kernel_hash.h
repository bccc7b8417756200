/* SPDX-License-Identifier: MIT */
/* Every kernel on fixed inputs, its results as one number: the same on every
 * machine. Needs no C library, so that the browser's build can run it. */
#ifndef TB_TEST_KERNEL_HASH_H
#define TB_TEST_KERNEL_HASH_H

#include "kernel_calls.h"
#include "kernels/kern_tables.h"

enum { HASH_D = 131, HASH_ROWS = 6, HASH_N = HASH_D * HASH_ROWS };

typedef struct hash_store {
    tb_dtype t;
    double in[5][HASH_N], out[3][HASH_N]; /* of floats: their first half */
    double acc[2][HASH_D], rows_out[2 * HASH_ROWS];
    double stat[2 * HASH_ROWS], lse[HASH_ROWS];
    int32_t target[HASH_ROWS];
} hash_store;

static void hash_set(tb_dtype t, void *x, size_t i, double v)
{
    if (t == TB_F32)
        ((float *)x)[i] = (float)v;
    else
        ((double *)x)[i] = v;
}

static double hash_get(tb_dtype t, const void *x, size_t i)
{
    return t == TB_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

/* Normal numbers times 2^-20 .. 2^20, so that no sum is exact; on demand every
 * ninth is one at which kernels go wrong. */
static void hash_fill(tb_dtype t, void *x, size_t n, uint64_t seed,
                      bool special)
{
    const double rare[] = {__builtin_nan(""),
                           __builtin_inf(),
                           -__builtin_inf(),
                           -0.0,
                           1e-42,
                           3e38,
                           -700};
    tb_rng rng = tb_rng_make(seed, "kernel hash");
    for (size_t i = 0; i < n; i++) {
        double v = tb_rng_normal(rng, i);
        size_t up = (size_t)tb_rng_below(rng, i, 41);
        v *= (double)((uint64_t)1 << up) * 0x1p-20;
        hash_set(t, x, i, special && i % 9 == 4 ? rare[i / 9 % 7] : v);
    }
}

static io hash_io(hash_store *s, size_t rows, size_t d, bool special)
{
    io b = {.rows = rows,
            .d = d,
            .n = rows * d,
            .first = special ? d : 1,
            .x = s->in[0],
            .z = s->in[1],
            .v = s->in[2],
            .w = s->in[3],
            .squares = s->in[4],
            .stat = s->stat,
            .lse = s->lse,
            .target = s->target,
            .y = s->out[0],
            .y2 = s->out[1],
            .y3 = s->out[2],
            .acc = s->acc[0],
            .acc2 = s->acc[1],
            .rows_out = s->rows_out,
            .scalar = 0.1};
    b.norm = (tb_k_norm){.kind = rows % 2 ? TB_NORM_LAYER : TB_NORM_RMS,
                         .x = b.x,
                         .gain = b.v,
                         .bias = b.w,
                         .rows = rows,
                         .d = d,
                         .eps = 1e-5};
    b.adamw = call_adamw_of;
    return b;
}

/* FNV-1a over words; a nan counts as a nan, its sign and payload are the
 * machine's own. */
static uint64_t hash_add(uint64_t h, double v)
{
    uint64_t bits = 0x7FF8000000000000u;
    if (v == v)
        memcpy(&bits, &v, sizeof bits);
    h = (h ^ bits) * 0x100000001B3u;
    return h ^ h >> 29;
}

static uint64_t hash_out(uint64_t h, const hash_store *s, const io *b)
{
    const void *out[] = {b->y, b->y2, b->y3};
    for (size_t j = 0; j < TB_LEN(out); j++)
        for (size_t i = 0; i < b->n; i++)
            h = hash_add(h, hash_get(s->t, out[j], i));
    for (size_t i = 0; i < b->d; i++)
        h = hash_add(hash_add(h, b->acc[i]), b->acc2[i]);
    for (size_t i = 0; i < 2 * b->rows; i++)
        h = hash_add(h, b->rows_out[i]);
    return hash_add(h, b->scalar);
}

/* What backward passes need of forward passes comes from the same table. */
static void hash_inputs(const tb_kern *k, hash_store *s, size_t rows, size_t d,
                        bool special)
{
    io b = hash_io(s, rows, d, special);
    double loss = 0;
    for (size_t i = 0; i < TB_LEN(s->in); i++)
        hash_fill(s->t, s->in[i], b.n, i + 1, special && i == 0);
    for (size_t i = 0; i < rows; i++)
        s->target[i] = i == 4 ? -1 : (int32_t)(i * 29 % d);
    k->norm_fwd(&b.norm, b.y, s->stat);
    k->xent_fwd(rows, d, b.x, b.target, s->lse, &loss);
}

static void hash_outputs(const hash_store *s, io *b)
{
    for (size_t i = 0; i < b->n; i++) {
        double square = hash_get(s->t, b->squares, i);
        hash_set(s->t, b->y, i, hash_get(s->t, b->z, i));
        hash_set(s->t, b->y2, i, square);
        hash_set(s->t, b->y3, i, square < 0 ? -square : square);
    }
    for (size_t i = 0; i < b->d; i++)
        b->acc[i] = b->acc2[i] = (double)i / 3;
    memset(b->rows_out, 0, 2 * b->rows * sizeof(double));
}

/* y = x z', the exact product of our own */
static void hash_product(const tb_kern *k, io *b)
{
    const tb_gemm_args g = {.dtype = k->dtype,
                            .tb = true,
                            .m = b->rows,
                            .n = b->rows,
                            .k = b->d,
                            .alpha = 0.7,
                            .a = b->x,
                            .b = b->z,
                            .c = b->y,
                            .lda = b->d,
                            .ldb = b->d,
                            .ldc = b->rows};
    tb_gemm_part all = {0, b->rows, 0, b->rows};
    tb_gemm_part_get(k->isa, k->dtype, false)(&g, all);
}

/* the calls of kernel_calls.h and the product */
enum { HASH_KERNELS = TB_LEN(kernel_calls) + 1 };

static const char *kernel_hash_name(size_t which)
{
    return which < TB_LEN(kernel_calls) ? kernel_calls[which].name : "product";
}

/* Kernel `which` of table k on six sizes, with and without rare numbers. */
static uint64_t kernel_hash(const tb_kern *k, size_t which)
{
    static const size_t size[][2] = {{1, 1},  {3, 7},  {2, 16},
                                     {5, 33}, {6, 64}, {6, HASH_D}};
    static hash_store s;
    uint64_t h = 0xCBF29CE484222325u;
    s.t = k->dtype;
    for (size_t i = 0; i < 2 * TB_LEN(size); i++) {
        size_t rows = size[i / 2][0], d = size[i / 2][1];
        bool special = i % 2;
        hash_inputs(k, &s, rows, d, special);
        io b = hash_io(&s, rows, d, special);
        hash_outputs(&s, &b);
        if (which < TB_LEN(kernel_calls))
            kernel_calls[which].call(k, &b);
        else
            hash_product(k, &b);
        h = hash_out(h, &s, &b);
    }
    return h;
}

#endif
