/* SPDX-License-Identifier: MIT */
/* Every kernel of every instruction set gives the bits of ref: all tails, wide
 * exponents, special values, buffers that end at an unmapped page. */
#include "tb_test.h"
#include "kernels/kernels.h"

enum { D_MAX = 131, ROWS_MAX = 6, N_MAX = D_MAX * ROWS_MAX };

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

#define CALL(name, call)                                                       \
    static void call_##name(const tb_kern *k, io *b)                           \
    {                                                                          \
        call;                                                                  \
    }

CALL(add, k->add(b->n, b->x, b->z, b->y))
CALL(add_in_place, k->add(b->n, b->y, b->z, b->y))
CALL(sub, k->sub(b->n, b->x, b->z, b->y))
CALL(mul, k->mul(b->n, b->x, b->z, b->y))
CALL(mul_acc, k->mul_acc(b->n, b->x, b->z, b->y))
CALL(scale, k->scale(b->n, 0.3, b->x, b->y))
CALL(axpy, k->axpy(b->n, -1.7, b->x, b->y))
CALL(dot, b->scalar = k->dot(b->n, b->x, b->z))
CALL(sum, b->scalar = k->sum(b->n, b->x))
CALL(norm2, b->scalar = k->norm2(b->n, b->x))
CALL(nonfinite, b->scalar = (double)k->nonfinite(b->n, b->x))
#define UNARY(id, name)                                                        \
    CALL(name##_fwd, k->unary_fwd(TB_UNARY_##id, b->n, b->x, b->y))            \
    CALL(name##_bwd, k->unary_bwd(TB_UNARY_##id, b->n, b->x, b->z, b->y))      \
    CALL(name##_tan, k->unary_tan(TB_UNARY_##id, b->n, b->x, b->z, b->y))
TB_UNARY_LIST(UNARY)
#undef UNARY
CALL(row_add, k->row_add(b->rows, b->d, b->v, b->y))
CALL(row_mul, k->row_mul(b->rows, b->d, b->x, b->v, b->y))
CALL(col_sum, k->col_sum(b->rows, b->d, b->x, b->acc))
CALL(col_dot, k->col_dot(b->rows, b->d, b->x, b->z, b->acc))
CALL(norm_fwd, k->norm_fwd(&b->norm, b->y, b->rows_out))
CALL(norm_bwd,
     k->norm_bwd(&b->norm, b->stat, b->z, b->y, b->y, b->acc, b->acc2))
CALL(norm_bwd_written,
     k->norm_bwd(&b->norm, b->stat, b->z, NULL, b->y, b->acc, b->acc2))
CALL(norm_bwd_elsewhere,
     k->norm_bwd(&b->norm, b->stat, b->z, b->y2, b->y, b->acc, NULL))
CALL(norm_tan, k->norm_tan(&b->norm, b->stat, b->z, b->v, b->w, b->y))
CALL(softmax_fwd, k->softmax_fwd(b->rows, b->d, b->d, b->first, 0.125, b->y))
CALL(softmax_bwd,
     k->softmax_bwd(b->rows, b->d, b->d, b->first, 0.125, b->x, b->y))
CALL(xent_fwd,
     k->xent_fwd(b->rows, b->d, b->x, b->target, b->rows_out, &b->scalar))
CALL(xent_bwd, k->xent_bwd(b->rows, b->d, b->x, b->target, b->lse, 0.7, b->y))
CALL(xent_tan,
     k->xent_tan(b->rows, b->d, b->x, b->target, b->lse, b->z, &b->scalar))
CALL(drop,
     k->drop(tb_rng_make(b->n, "drop"), 0.3, b->rows, b->n, b->x, false, b->y))
CALL(drop_add,
     k->drop(tb_rng_make(b->n, "drop"), 0.3, b->d, b->n, b->x, true, b->y))
CALL(adamw, b->adamw.n = b->n; k->adamw(&b->adamw, b->y, b->x, b->y2, b->y3))

static const struct {
    const char *name;
    void (*call)(const tb_kern *k, io *b);
    bool rows_only; /* needs d > 0 */
} kernels[] = {
#define ONE(name)  {#name, call_##name, false},
#define ROWS(name) {#name, call_##name, true},
    ONE(add) ONE(add_in_place) ONE(sub) ONE(mul) ONE(mul_acc) ONE(scale)
        ONE(axpy) ONE(dot) ONE(sum) ONE(norm2) ONE(nonfinite)
#define UNARY(id, name) ONE(name##_fwd) ONE(name##_bwd) ONE(name##_tan)
            TB_UNARY_LIST(UNARY)
#undef UNARY
                ROWS(row_add) ROWS(row_mul) ROWS(col_sum) ROWS(col_dot)
                    ROWS(norm_fwd) ROWS(norm_bwd) ROWS(norm_bwd_written)
                        ROWS(norm_bwd_elsewhere) ROWS(norm_tan)
                            ROWS(softmax_fwd) ROWS(softmax_bwd) ROWS(xent_fwd)
                                ROWS(xent_bwd) ROWS(xent_tan) ONE(drop)
                                    ONE(drop_add) ONE(adamw)
#undef ONE
#undef ROWS
};

/* Guarded memory for the largest case; smaller ones use its end. */
typedef struct store {
    tb_dtype t;
    char *in[5], *out[2][3];    /* N_MAX elements */
    double *acc[2][2], *row[2]; /* D_MAX, 2 ROWS_MAX */
    double *stat, *lse;
    int32_t *target;
} store;

static void store_init(tb_test *T, store *s, tb_dtype t)
{
    size_t big = N_MAX * tb_dtype_size(t);
    s->t = t;
    for (size_t i = 0; i < TB_LEN(s->in); i++)
        s->in[i] = tb_test_guarded(T, big);
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < 3; j++)
            s->out[i][j] = tb_test_guarded(T, big);
        for (size_t j = 0; j < 2; j++)
            s->acc[i][j] = tb_test_guarded(T, D_MAX * sizeof(double));
        s->row[i] = tb_test_guarded(T, 2 * ROWS_MAX * sizeof(double));
    }
    s->stat = tb_test_guarded(T, 2 * ROWS_MAX * sizeof(double));
    s->lse = tb_test_guarded(T, ROWS_MAX * sizeof(double));
    s->target = tb_test_guarded(T, ROWS_MAX * sizeof(int32_t));
}

/* the last n elements of a buffer of N_MAX */
static void *last(const store *s, char *p, size_t n)
{
    return p + (N_MAX - n) * tb_dtype_size(s->t);
}

static io io_make(store *s, size_t which, size_t rows, size_t d)
{
    size_t n = rows * d;
    io b = {.rows = rows, .d = d, .n = n, .first = which % 2};
    b.x = last(s, s->in[0], n);
    b.z = last(s, s->in[1], n);
    b.v = last(s, s->in[2], d);
    b.w = last(s, s->in[3], d);
    b.squares = last(s, s->in[4], n);
    b.y = last(s, s->out[which][0], n);
    b.y2 = last(s, s->out[which][1], n);
    b.y3 = last(s, s->out[which][2], n);
    b.acc = s->acc[which][0] + D_MAX - d;
    b.acc2 = s->acc[which][1] + D_MAX - d;
    b.rows_out = s->row[which] + 2 * (ROWS_MAX - rows);
    b.stat = s->stat + 2 * (ROWS_MAX - rows);
    b.lse = s->lse + ROWS_MAX - rows;
    b.target = s->target + ROWS_MAX - rows;
    b.norm = (tb_k_norm){
        .x = b.x, .gain = b.v, .bias = b.w, .rows = rows, .d = d, .eps = 1e-5};
    b.adamw = (tb_k_adamw){.lr = 1e-3,
                           .beta1 = 0.9,
                           .beta2 = 0.95,
                           .eps = 1e-8,
                           .decay = 0.1,
                           .bias1 = 0.3,
                           .bias2 = 0.2,
                           .grad_scale = 0.7};
    return b;
}

static void sprinkle(tb_test *T, tb_dtype t, void *x, size_t n)
{
    const double special[] = {__builtin_nan(""),
                              __builtin_inf(),
                              -__builtin_inf(),
                              -0.0,
                              1e-42,
                              3e38,
                              -700};
    for (size_t i = 0; i < n; i += 9)
        tb_test_set(t, x, (i * 7) % n,
                    special[(size_t)(tb_test_uniform(T) * 7)]);
}

/* Inputs, and what backward passes need from forward passes. */
static void fill_inputs(tb_test *T, store *s, size_t rows, size_t d,
                        bool special)
{
    io b = io_make(s, 0, rows, d);
    const tb_kern *ref = tb_kern_isa("ref", s->t);
    double loss = 0;
    for (size_t i = 0; i < TB_LEN(s->in); i++)
        tb_test_fill_wide(T, s->t, s->in[i], N_MAX);
    if (special && b.n > 0)
        sprinkle(T, s->t, last(s, s->in[0], b.n), b.n);
    for (size_t i = 0; i < ROWS_MAX; i++)
        s->target[i] = d ? (int32_t)((i * 29) % d) : 0;
    s->target[ROWS_MAX - 1] = -1;
    if (d > 0) {
        ref->norm_fwd(&b.norm, b.y, s->stat + 2 * (ROWS_MAX - rows));
        ref->xent_fwd(rows, d, b.x, b.target, s->lse + ROWS_MAX - rows, &loss);
    }
}

/* both outputs start from the same numbers; y3 (second moment) is positive */
static void fill_outputs(const store *s, io *b)
{
    size_t bytes = b->n * tb_dtype_size(s->t);
    memcpy(b->y, b->z, bytes);
    memcpy(b->y2, b->squares, bytes);
    for (size_t i = 0; i < b->n; i++)
        tb_test_set(s->t, b->y3, i, tb_fabs(tb_test_get(s->t, b->squares, i)));
    for (size_t i = 0; i < b->d; i++)
        b->acc[i] = b->acc2[i] = (double)i / 3;
    memset(b->rows_out, 0, 2 * b->rows * sizeof(double));
    b->scalar = 0.1;
}

static void compare(tb_test *T, const store *s, const char *what, const io *a,
                    const io *b)
{
    int before = T->failed;
    size_t bytes = a->n * tb_dtype_size(s->t);
    TB_SAME(T, a->y, b->y, bytes);
    TB_SAME(T, a->y2, b->y2, bytes);
    TB_SAME(T, a->y3, b->y3, bytes);
    TB_SAME(T, a->acc, b->acc, a->d * sizeof(double));
    TB_SAME(T, a->acc2, b->acc2, a->d * sizeof(double));
    TB_SAME(T, a->rows_out, b->rows_out, 2 * a->rows * sizeof(double));
    TB_SAME(T, &a->scalar, &b->scalar, sizeof(double));
    if (T->failed > before)
        tb_test_fail(T, __FILE__, __LINE__, "... %s, rows %zu, d %zu", what,
                     a->rows, a->d);
}

static void one_size(tb_test *T, store *s, const tb_kern *k, size_t rows,
                     size_t d, bool special)
{
    const tb_kern *ref = tb_kern_isa("ref", s->t);
    fill_inputs(T, s, rows, d, special);
    for (size_t i = 0; i < TB_LEN(kernels); i++) {
        io got = io_make(s, 0, rows, d), want = io_make(s, 1, rows, d);
        if (kernels[i].rows_only && d == 0)
            continue;
        got.first = want.first = special ? d : 1;
        got.norm.kind = want.norm.kind = rows % 2 ? TB_NORM_LAYER : TB_NORM_RMS;
        fill_outputs(s, &got);
        fill_outputs(s, &want);
        kernels[i].call(k, &got);
        kernels[i].call(ref, &want);
        compare(T, s, kernels[i].name, &got, &want);
    }
}

static void all_sizes(tb_test *T, const char *isa, tb_dtype t)
{
    store s;
    const tb_kern *k = tb_kern_isa(isa, t);
    if (!k)
        TB_SKIP(T, "this processor or build lacks the instruction set");
    TB_STR(T, k->isa, isa);
    TB_REQUIRE(T, k->dtype == t);
    store_init(T, &s, t);
    for (size_t d = 0; d <= D_MAX && T->failed < 5; d++) {
        one_size(T, &s, k, 1, d, false);
        one_size(T, &s, k, 1 + d % ROWS_MAX, d, false);
        one_size(T, &s, k, 1 + d % ROWS_MAX, d, true);
    }
}

TB_TEST(avx2_f32_has_the_bits_of_ref)
{
    all_sizes(T, "avx2", TB_F32);
}

TB_TEST(avx2_f64_has_the_bits_of_ref)
{
    all_sizes(T, "avx2", TB_F64);
}

TB_TEST(avx512_f32_has_the_bits_of_ref)
{
    all_sizes(T, "avx512", TB_F32);
}

TB_TEST(avx512_f64_has_the_bits_of_ref)
{
    all_sizes(T, "avx512", TB_F64);
}

/* The definition of a sum, written as the house rules state it. */
static double sum_as_defined(const double *x, size_t n)
{
    double lane[16] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i % 16] += x[i];
    for (size_t half = 8; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return lane[0];
}

TB_TEST(ref_sums_in_16_lanes)
{
    double x[D_MAX];
    for (size_t n = 0; n <= D_MAX; n++) {
        tb_test_fill_wide(T, TB_F64, x, n);
        double got = tb_kern_isa("ref", TB_F64)->sum(n, x);
        double want = sum_as_defined(x, n);
        TB_SAME(T, &got, &want, sizeof got);
    }
}

TB_TEST(the_limit_caps_the_table)
{
    const tb_kern *k = tb_kern_get(T->ctx, TB_F32);
    const char *limit = tb_ctx_isa_limit(T->ctx);
    if (limit && tb_kern_isa(limit, TB_F32))
        TB_STR(T, k->isa, limit);
    TB_CHECK(T, tb_kern_isa(k->isa, TB_F32) == k);
    TB_CHECK(T, tb_kern_isa("none such", TB_F32) == NULL);
    TB_STR(T, tb_kern_isas[0], "ref");
}
