/* SPDX-License-Identifier: MIT */
/* One call of every kernel of the table, for the tests that compare bits: with
 * ref (test_kernels_bits.c), and with what every other machine gets
 * (kernel_hash.h, which the browser's build runs too). */
#ifndef TB_TEST_KERNEL_CALLS_H
#define TB_TEST_KERNEL_CALLS_H

#include <stddef.h>

#include "kernels/kernels.h"

/* What a kernel may read and write; x and z are [rows,d], v and w [d]. */
typedef struct io {
    size_t rows, d, n, first;
    tb_k_norm norm;
    tb_k_adamw adamw;
    const void *x, *z, *v, *w, *squares;
    const double *stat, *lse;
    const int32_t *target;
    /* written */
    void *y, *y2, *y3;             /* [rows,d] */
    double *acc, *acc2, *rows_out; /* [d], [d], [rows,2] */
    double scalar;
} io;

static const tb_k_adamw call_adamw_of = {.lr = 1e-3,
                                         .beta1 = 0.9,
                                         .beta2 = 0.95,
                                         .eps = 1e-8,
                                         .decay = 0.1,
                                         .bias1 = 0.3,
                                         .bias2 = 0.2,
                                         .grad_scale = 0.7};

#define CALL(name, call)                                                       \
    static void call_##name(const tb_kern *k, io *b)                           \
    {                                                                          \
        call;                                                                  \
    }

CALL(add, k->add(b->n, b->x, b->z, b->y))
CALL(add_in_place, k->add(b->n, b->y, b->z, b->y))
CALL(sub, k->sub(b->n, b->x, b->z, b->y))
CALL(mul, k->mul(b->n, b->x, b->z, b->y))
CALL(mul_acc, k->mul_acc(b->n, b->x, b->z, b->y, b->y))
CALL(mul_acc_written, k->mul_acc(b->n, b->x, b->z, NULL, b->y))
CALL(scale, k->scale(b->n, 0.3, b->x, b->y))
CALL(axpy, k->axpy(b->n, -1.7, b->x, b->y))
CALL(dot, b->scalar = k->dot(b->n, b->x, b->z))
CALL(sum, b->scalar = k->sum(b->n, b->x))
CALL(norm2, b->scalar = k->norm2(b->n, b->x))
CALL(nonfinite, b->scalar = (double)k->nonfinite(b->n, b->x))
#define UNARY(id, name)                                                        \
    CALL(name##_fwd, k->unary_fwd(TB_UNARY_##id, b->n, b->x, b->y))            \
    CALL(name##_slope, k->unary_slope(TB_UNARY_##id, b->n, b->x, NULL, b->y))  \
    CALL(name##_both, k->unary_slope(TB_UNARY_##id, b->n, b->x, b->y2, b->y))
TB_UNARY_LIST(UNARY)
#undef UNARY
CALL(row_add, k->row_add(b->rows, b->d, b->v, b->y))
CALL(row_mul, k->row_mul(b->rows, b->d, b->x, b->v, b->y))
CALL(col_sum, k->col_sum(b->rows, b->d, b->x, b->acc))
CALL(col_dot, k->col_dot(b->rows, b->d, b->x, b->z, b->acc))
CALL(norm_fwd, k->norm_fwd(&b->norm, b->y, b->rows_out))
CALL(norm_fwd_far, b->norm.far = true; k->norm_fwd(&b->norm, b->y, b->rows_out);
     b->norm.far = false)
CALL(norm_fwd_streamed, b->norm.stream = true;
     k->norm_fwd(&b->norm, b->y, b->rows_out); b->norm.stream = false)
static void addnorm(const tb_kern *k, io *b, double cx, double cr, bool stream)
{
    const tb_k_sum sum = {.r = b->z, .cx = cx, .cr = cr, .sum = b->y2};
    b->norm.stream = stream;
    k->addnorm_fwd(&b->norm, &sum, b->y, b->rows_out);
    b->norm.stream = false;
}

CALL(addnorm_fwd, addnorm(k, b, 1, 1, false))
CALL(addnorm_fwd_scaled, addnorm(k, b, 0.7, -1.3, false))
CALL(addnorm_fwd_streamed, addnorm(k, b, 1, 1, true))
/* From the first row of the sums on; from row 13 on, over the end of a span; at
 * the ends of two; of the gain alone; of none. Spans are rows of y2 and y3. */
static void norm_bwd(const tb_kern *k, io *b, size_t row, const void *base,
                     bool bias)
{
    const tb_k_spans sums = {
        .row = row,
        .gain = {.part = b->y3, .full = b->acc},
        .bias = {.part = bias ? b->y2 : NULL, .full = b->acc2}};
    k->norm_bwd(&b->norm, b->stat, b->z, base, b->y, &sums);
}

CALL(norm_bwd, norm_bwd(k, b, 0, b->y, true))
CALL(norm_bwd_written, b->norm.far = true; norm_bwd(k, b, 13, NULL, true);
     b->norm.far = false)
CALL(norm_bwd_streamed, b->norm.stream = true; norm_bwd(k, b, 32, NULL, true);
     b->norm.stream = false)
CALL(norm_bwd_elsewhere, norm_bwd(k, b, 12, b->y2, false))
CALL(norm_bwd_alone, k->norm_bwd(&b->norm, b->stat, b->z, NULL, b->y, NULL))
CALL(norm_bwd_bare, b->norm.gain = NULL; norm_bwd(k, b, 3, NULL, true);
     b->norm.gain = b->v)
static void call_span_join(const tb_kern *k, io *b)
{
    const tb_k_span s[] = {{(void *)(uintptr_t)b->x, b->acc},
                           {(void *)(uintptr_t)b->z, NULL},
                           {b->y3, b->acc2},
                           {(void *)(uintptr_t)b->z, b->acc},
                           {(void *)(uintptr_t)b->x, NULL}};
    k->span_join(b->d, TB_LEN(s), s, b->y);
}

CALL(norm_tan, k->norm_tan(&b->norm, b->stat, b->z, b->v, b->w, b->y))
CALL(softmax_fwd, k->softmax_fwd(b->rows, b->d, b->d, b->first, 0.125, b->y))
CALL(softmax_bwd,
     k->softmax_bwd(b->rows, b->d, b->d, b->first, 0.125, b->x, b->y))

/* Every query's, key's and value's row is one of x, z and squares; causal where
 * rows are odd. */
static tb_k_attn attn_head(const tb_kern *k, const io *b)
{
    static double work[120000];
    return (tb_k_attn){.rows = b->rows,
                       .keys = b->rows,
                       .hd = b->d,
                       .vd = b->d,
                       .ldq = b->d,
                       .ldk = b->d,
                       .ldv = b->d,
                       .ldo = b->d,
                       .q = b->x,
                       .k = b->z,
                       .v = b->squares,
                       .first = b->rows % 2 ? 1 : (ptrdiff_t)b->rows,
                       .scale = 0.125,
                       .kern = k,
                       .stat = b->rows_out,
                       .work = work};
}

static void call_attn(const tb_kern *k, io *b)
{
    const tb_k_attn p = attn_head(k, b);
    k->attn->fwd(&p, b->y);
    k->attn->bwd(&p, &(tb_k_attn_grad){
                         .out = b->y, .gout = b->x, .gq = b->y2, .gk = b->y3});
}

static void call_attn_tan(const tb_kern *k, io *b)
{
    const tb_k_attn p = attn_head(k, b);
    k->attn->fwd(&p, b->y);
    k->attn->tan(&p, &(tb_k_attn_tangent){
                         .out = b->y, .tq = b->z, .tv = b->x, .tout = b->y2});
}

/* Many gradients of the first query, those of keys and values in one sum. */
static void call_attn_copies(const tb_kern *k, io *b)
{
    tb_k_attn p = attn_head(k, b);
    k->attn->fwd(&p, b->y);
    p.rows = 1;
    k->attn->bwd_copies(&p, &(tb_k_attn_copies){.out = b->y,
                                                .gout = b->x,
                                                .gq = b->y2,
                                                .gk = b->y3,
                                                .copies = b->rows,
                                                .nexto = b->d,
                                                .nextq = b->d});
}

/* both kinds of pairs, written and added */
static void call_turn(const tb_kern *k, io *b)
{
    size_t n = b->d / 2;
    k->turn(n, false, 1, b->acc, b->acc2, b->x, false, b->y);
    k->turn(n, false, -1, b->acc, b->acc2, b->z, true, b->y);
    k->turn(n, true, 1, b->acc, b->acc2, b->x, false, b->y2);
    k->turn(n, true, -1, b->acc, b->acc2, b->z, true, b->y3);
}

CALL(xent_fwd,
     k->xent_fwd(b->rows, b->d, b->x, b->target, b->rows_out, &b->scalar))
CALL(xent_bwd,
     k->xent_bwd(b->rows, b->d, b->x, b->target, b->lse, 0.7, b->y, b->y))
CALL(xent_tan,
     k->xent_tan(b->rows, b->d, b->x, b->target, b->lse, b->z, &b->scalar))
CALL(drop,
     k->drop(tb_rng_make(b->n, "drop"), 0.3, b->rows, b->n, b->x, false, b->y))
CALL(drop_add,
     k->drop(tb_rng_make(b->n, "drop"), 0.3, b->d, b->n, b->x, true, b->y))
CALL(normal, k->normal(tb_rng_make(3, "normal"), b->d, b->n, 0.02, b->y))
CALL(uniform, k->uniform(tb_rng_make(3, "uniform"), b->d, b->n, 0.3, b->y))
CALL(adamw, b->adamw.n = b->n; k->adamw(&b->adamw, b->y, b->x, b->y2, b->y3))
/* doubles have no such rows */
CALL(to_bf16, if (k->to_bf16) k->to_bf16(b->n, b->x, b->y))
CALL(round_bf16, if (k->round_bf16) k->round_bf16(b->n, b->x, b->y))
#undef CALL

static const struct kernel_call {
    const char *name;
    void (*call)(const tb_kern *k, io *b);
    size_t row;     /* of the table, as an offset */
    bool rows_only; /* needs d > 0 */
} kernel_calls[] = {
#define ONE(row, name)  {#name, call_##name, offsetof(tb_kern, row), false},
#define ROWS(row, name) {#name, call_##name, offsetof(tb_kern, row), true},
    /* clang-format off */
    ONE(add, add)
    ONE(add, add_in_place)
    ONE(sub, sub)
    ONE(mul, mul)
    ONE(mul_acc, mul_acc)
    ONE(mul_acc, mul_acc_written)
    ONE(scale, scale)
    ONE(axpy, axpy)
    ONE(dot, dot)
    ONE(sum, sum)
    ONE(norm2, norm2)
    ONE(nonfinite, nonfinite)
#define UNARY(id, name)                                                        \
    ONE(unary_fwd, name##_fwd)                                                 \
    ONE(unary_slope, name##_slope)                                             \
    ONE(unary_slope, name##_both)
    TB_UNARY_LIST(UNARY)
#undef UNARY
    ROWS(row_add, row_add)
    ROWS(row_mul, row_mul)
    ROWS(col_sum, col_sum)
    ROWS(col_dot, col_dot)
    ROWS(norm_fwd, norm_fwd)
    ROWS(norm_fwd, norm_fwd_far)
    ROWS(norm_fwd, norm_fwd_streamed)
    ROWS(addnorm_fwd, addnorm_fwd)
    ROWS(addnorm_fwd, addnorm_fwd_scaled)
    ROWS(addnorm_fwd, addnorm_fwd_streamed)
    ROWS(norm_bwd, norm_bwd)
    ROWS(norm_bwd, norm_bwd_written)
    ROWS(norm_bwd, norm_bwd_streamed)
    ROWS(norm_bwd, norm_bwd_elsewhere)
    ROWS(norm_bwd, norm_bwd_alone)
    ROWS(norm_bwd, norm_bwd_bare)
    ROWS(span_join, span_join)
    ROWS(norm_tan, norm_tan)
    ROWS(softmax_fwd, softmax_fwd)
    ROWS(softmax_bwd, softmax_bwd)
    ROWS(attn, attn)
    ROWS(attn, attn_tan)
    ROWS(attn, attn_copies)
    ROWS(turn, turn)
    ROWS(xent_fwd, xent_fwd)
    ROWS(xent_bwd, xent_bwd)
    ROWS(xent_tan, xent_tan)
    ONE(drop, drop)
    ONE(drop, drop_add)
    ONE(normal, normal)
    ONE(uniform, uniform)
    ONE(adamw, adamw)
    ONE(to_bf16, to_bf16)
    ONE(round_bf16, round_bf16)
/* clang-format on */
#undef ONE
#undef ROWS
};

#endif
