/* SPDX-License-Identifier: MIT */
/* Every kernel of every instruction set gives the bits of ref: all tails, wide
 * exponents, special values, buffers that end at an unmapped page. */
#include "tb_test.h"
#include "kernel_calls.h"

#include <stdlib.h>

/* WIDE: more than a norm's backward pass sums in float, all tails beside it. */
enum { D_MAX = 131, WIDE = 1024 + 128 + 16 + 3, ROWS_MAX = 6 };
enum { N_MAX = ROWS_MAX * WIDE };

/* Guarded memory for the largest case; smaller ones use its end. */
typedef struct store {
    tb_dtype t;
    char *in[5], *out[2][3];    /* N_MAX elements */
    double *acc[2][2], *row[2]; /* WIDE, 2 ROWS_MAX */
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
            s->acc[i][j] = tb_test_guarded(T, WIDE * sizeof(double));
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
    b.acc = s->acc[which][0] + WIDE - d;
    b.acc2 = s->acc[which][1] + WIDE - d;
    b.rows_out = s->row[which] + 2 * (ROWS_MAX - rows);
    b.stat = s->stat + 2 * (ROWS_MAX - rows);
    b.lse = s->lse + ROWS_MAX - rows;
    b.target = s->target + ROWS_MAX - rows;
    b.norm = (tb_k_norm){
        .x = b.x, .gain = b.v, .bias = b.w, .rows = rows, .d = d, .eps = 1e-5};
    b.adamw = call_adamw_of;
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
        tb_test_fill_wide(T, s->t, last(s, s->in[i], b.n), b.n);
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

/* An attention head is not that wide. */
static bool fits(const struct kernel_call *c, size_t d)
{
    bool wide = d > D_MAX && c->row == offsetof(tb_kern, attn);
    return !wide && (d > 0 || !c->rows_only);
}

static void one_size(tb_test *T, store *s, const tb_kern *k, size_t rows,
                     size_t d, bool special)
{
    const tb_kern *ref = tb_kern_isa("ref", s->t);
    fill_inputs(T, s, rows, d, special);
    for (size_t i = 0; i < TB_LEN(kernel_calls); i++) {
        io got = io_make(s, 0, rows, d), want = io_make(s, 1, rows, d);
        if (!fits(&kernel_calls[i], d))
            continue;
        got.first = want.first = special ? d : 1;
        got.norm.kind = want.norm.kind = rows % 2 ? TB_NORM_LAYER : TB_NORM_RMS;
        fill_outputs(s, &got);
        fill_outputs(s, &want);
        kernel_calls[i].call(k, &got);
        kernel_calls[i].call(ref, &want);
        compare(T, s, kernel_calls[i].name, &got, &want);
    }
}

static void all_sizes(tb_test *T, const char *isa, tb_dtype t)
{
    /* norms take 128 columns at a time, and store past the caches where rows
     * are whole lines */
    static const size_t wide[] = {192, 255, 256, 640, 999, 1024, 1040, WIDE};
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
    for (size_t i = 0; i < TB_LEN(wide) && T->failed < 5; i++)
        for (size_t rows = 1; rows <= ROWS_MAX; rows++)
            one_size(T, &s, k, rows, wide[i], rows > 4);
}

/* the instruction sets of this architecture, ref apart */
#define SETS(name)                                                             \
    TB_TEST(name##_f32_has_the_bits_of_ref)                                    \
    {                                                                          \
        all_sizes(T, #name, TB_F32);                                           \
    }                                                                          \
    TB_TEST(name##_f64_has_the_bits_of_ref)                                    \
    {                                                                          \
        all_sizes(T, #name, TB_F64);                                           \
    }
#if defined(__x86_64__)
SETS(avx2)
SETS(avx512)
#elif defined(__aarch64__)
SETS(neon)
#endif

static bool is_called(size_t row)
{
    for (size_t i = 0; i < TB_LEN(kernel_calls); i++)
        if (kernel_calls[i].row == row)
            return true;
    return false;
}

/* A kernel that kernel_calls.h does not know would be compared nowhere. */
TB_TEST(every_row_of_the_table_is_called)
{
    for (size_t row = offsetof(tb_kern, add); row < sizeof(tb_kern);
         row += sizeof(void (*)(void)))
        if (!is_called(row))
            tb_test_fail(T, __FILE__, __LINE__,
                         "row %zu of tb_kern is not in kernel_calls.h",
                         (row - offsetof(tb_kern, add)) / sizeof(void *));
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
    TB_STR(T, tb_isas[0], "ref");
}

/* Every name of a table is one that TB_ISA may hold, and no other is. */
TB_TEST(the_limit_is_a_name_of_the_table)
{
    const char *limit = getenv("TB_ISA");
    char *before = limit ? strdup(limit) : NULL;
    for (size_t i = 0;; i++) {
        const char *isa = tb_isas[i];
        tb_ctx *ctx = NULL;
        setenv("TB_ISA", isa ? isa : "scalar", 1);
        TB_OKAY(T, tb_ctx_create(&ctx));
        TB_CHECK(T, tb_ctx_environment(ctx) == (isa ? TB_OK : TB_ERR_USAGE));
        if (!isa)
            TB_CHECK(T,
                     strstr(tb_error(ctx), "TB_ISA: got scalar, wanted one"));
        tb_ctx_destroy(ctx);
        if (!isa)
            break;
    }
    if (before)
        setenv("TB_ISA", before, 1);
    else
        unsetenv("TB_ISA");
    free(before);
}
