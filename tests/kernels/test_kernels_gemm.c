/* SPDX-License-Identifier: MIT */
/* Matrix products: every form, odd shapes, padded rows, beta 0 and 1, each
 * back end against a product in double, within k eps sum|a||b|. */
#include "tb_test.h"
#include <stdlib.h>
#include "kernels/gemm_matmul.h"
#include "kernels/kern_tables.h"
#include "threads/threads.h"

enum { SIDE_MAX = 300, PAD = 3, BUF_MAX = SIDE_MAX * (SIDE_MAX + PAD) };

/* of the products that follow: operands rounded to bf16; alpha with beta 1 */
static bool rounding;
static double scaled = -0.75;

/* One product with its own memory; C's padding holds `untouched`. */
typedef struct product {
    tb_gemm_args g;
    char *a, *b, *a2, *b2, *c, *c0;
    const void *ra, *rb; /* the operands as they are multiplied */
    size_t c_bytes;
} product;

static const double untouched = 12345;

static void product_init(tb_test *T, product *p)
{
    p->a = tb_test_guarded(T, BUF_MAX * sizeof(double));
    p->b = tb_test_guarded(T, BUF_MAX * sizeof(double));
    p->a2 = tb_test_guarded(T, BUF_MAX * sizeof(double));
    p->b2 = tb_test_guarded(T, BUF_MAX * sizeof(double));
    p->c = tb_test_guarded(T, BUF_MAX * sizeof(double));
    p->c0 = tb_test_guarded(T, BUF_MAX * sizeof(double));
}

/* the last `n` elements: reading past them is a fault */
static void *last(tb_dtype t, char *p, size_t n)
{
    return p + BUF_MAX * sizeof(double) - n * tb_dtype_size(t);
}

/* elements from the first of the first row to the last of the last */
static size_t extent(size_t rows, size_t cols, size_t ld)
{
    return rows > 0 ? (rows - 1) * ld + cols : 0;
}

static const void *rounded(const void *x, size_t n, void *y)
{
    if (!rounding)
        return x;
    tb_kern_isa(tb_isas[0], TB_F32)->round_bf16(n, x, y);
    return y;
}

static void product_fill(tb_test *T, product *p, tb_dtype t, int form, size_t m,
                         size_t n, size_t k, double beta)
{
    bool ta = form & 1, tb = form & 2;
    size_t lda = (ta ? m : k) + PAD, ldb = (tb ? k : n) + PAD, ldc = n + PAD;
    size_t na = ta ? extent(k, m, lda) : extent(m, k, lda);
    size_t nb = tb ? extent(n, k, ldb) : extent(k, n, ldb);
    size_t nc = extent(m, n, ldc);
    p->g = (tb_gemm_args){.dtype = t,
                          .bf16 = rounding,
                          .ta = ta,
                          .tb = tb,
                          .m = m,
                          .n = n,
                          .k = k,
                          .alpha = beta == 0 ? 1 : scaled,
                          .beta = beta,
                          .lda = lda,
                          .ldb = ldb,
                          .ldc = ldc};
    p->g.a = last(t, p->a, na);
    p->g.b = last(t, p->b, nb);
    p->g.c = last(t, p->c, nc);
    p->c_bytes = nc * tb_dtype_size(t);
    tb_test_fill(T, t, last(t, p->a, na), na);
    tb_test_fill(T, t, last(t, p->b, nb), nb);
    p->ra = rounded(p->g.a, na, last(t, p->a2, na));
    p->rb = rounded(p->g.b, nb, last(t, p->b2, nb));
    tb_test_fill(T, t, p->g.c, nc);
    for (size_t i = 0; i < nc; i++)
        if (i % ldc >= n)
            tb_test_set(t, p->g.c, i, untouched);
        else if (beta == 0) /* never read: nan must vanish */
            tb_test_set(t, p->g.c, i, __builtin_nan(""));
    memcpy(last(t, p->c0, nc), p->g.c, p->c_bytes);
}

static void product_reset(product *p)
{
    size_t nc = p->c_bytes / tb_dtype_size(p->g.dtype);
    memcpy(p->g.c, last(p->g.dtype, p->c0, nc), p->c_bytes);
}

/* c[i,j] in double, and the sum of the absolute terms */
static double wanted(const product *p, size_t i, size_t j, double *size)
{
    const tb_gemm_args *g = &p->g;
    size_t nc = p->c_bytes / tb_dtype_size(g->dtype);
    const void *c0 = (const char *)p->c0 + BUF_MAX * sizeof(double) -
                     nc * tb_dtype_size(g->dtype);
    double sum = 0, old = 0;
    *size = 0;
    for (size_t q = 0; q < g->k; q++) {
        double a = tb_test_get(g->dtype, p->ra,
                               g->ta ? q * g->lda + i : i * g->lda + q);
        double b = tb_test_get(g->dtype, p->rb,
                               g->tb ? j * g->ldb + q : q * g->ldb + j);
        sum += a * b;
        *size += tb_fabs(g->alpha * a * b);
    }
    if (g->beta != 0)
        old = g->beta * tb_test_get(g->dtype, c0, i * g->ldc + j);
    *size += tb_fabs(old);
    return g->alpha * sum + old;
}

static void product_check(tb_test *T, const product *p, const char *who)
{
    const tb_gemm_args *g = &p->g;
    double eps = g->dtype == TB_F32 ? 0x1p-24 : 0x1p-53;
    size_t nc = p->c_bytes / tb_dtype_size(g->dtype);
    for (size_t at = 0; at < nc; at++) {
        double got = tb_test_get(g->dtype, g->c, at), size = 0;
        double want = at % g->ldc >= g->n
                          ? untouched
                          : wanted(p, at / g->ldc, at % g->ldc, &size);
        /* +3: alpha, beta and the last addition; 1.1: terms in eps^2 */
        if (tb_fabs(got - want) <= 1.1 * (double)(g->k + 3) * eps * size)
            continue;
        tb_test_fail(T, __FILE__, __LINE__,
                     "%s: %c%c m %zu n %zu k %zu beta %g: c[%zu] is %g, "
                     "wanted %g, limit %g",
                     who, g->ta ? 'T' : 'N', g->tb ? 'T' : 'N', g->m, g->n,
                     g->k, g->beta, at, got, want,
                     1.1 * (double)(g->k + 3) * eps * size);
        return;
    }
}

/* --- one back end over all forms and shapes ----------------------------- */

typedef void (*gemm_fn)(tb_ctx *ctx, const tb_gemm_args *g);

/* The last ones pass the ends of blocks along k, m and n; k = 509 and 1021
 * with their padding make rows of whole pages. */
static const size_t shapes[][3] = {
    {1, 1, 1},      {1, 17, 5},    {7, 3, 2},      {5, 33, 1},
    {33, 9, 16},    {17, 31, 64},  {64, 64, 64},   {65, 47, 129},
    {2, 131, 300},  {131, 2, 257}, {129, 65, 33},  {140, 150, 100},
    {3, 5, 0},      {13, 34, 800}, {110, 401, 20}, {29, 35, 509},
    {14, 35, 1021},
};

static void all_products(tb_test *T, tb_dtype t, gemm_fn gemm, const char *who)
{
    product p;
    product_init(T, &p);
    for (size_t s = 0; s < TB_LEN(shapes) && T->failed < 5; s++)
        for (int form = 0; form < 4; form++)
            for (int beta = 0; beta < 2; beta++) {
                product_fill(T, &p, t, form, shapes[s][0], shapes[s][1],
                             shapes[s][2], beta);
                gemm(T->ctx, &p.g);
                product_check(T, &p, who);
            }
}

static void ref(tb_ctx *ctx, const tb_gemm_args *g)
{
    (void)ctx;
    tb_gemm_ref(g);
}

TB_TEST(ref_f32)
{
    all_products(T, TB_F32, ref, "ref");
}

TB_TEST(ref_f64)
{
    all_products(T, TB_F64, ref, "ref");
}

TB_TEST(live_f32)
{
    all_products(T, TB_F32, tb_gemm, tb_gemm_name(T->ctx, TB_F32));
}

TB_TEST(live_f64)
{
    all_products(T, TB_F64, tb_gemm, tb_gemm_name(T->ctx, TB_F64));
}

/* Each library by itself: oneDNN hides CBLAS in f32. */
static void dnnl(tb_ctx *ctx, const tb_gemm_args *g)
{
    if (!tb_gemm_dnnl(ctx, g))
        tb_gemm_own(ctx, g); /* k = 0 */
}

static void cblas(tb_ctx *ctx, const tb_gemm_args *g)
{
    if (!tb_gemm_cblas(ctx, g))
        tb_gemm_own(ctx, g);
}

static bool has(tb_test *T, bool (*library)(tb_ctx *, const tb_gemm_args *))
{
    float a = 2, b = 3, c = 0;
    tb_gemm_args g = {.dtype = TB_F32,
                      .m = 1,
                      .n = 1,
                      .k = 1,
                      .alpha = 1,
                      .a = &a,
                      .b = &b,
                      .c = &c,
                      .lda = 1,
                      .ldb = 1,
                      .ldc = 1};
    return library(T->ctx, &g) && c == 6;
}

TB_TEST(dnnl_f32)
{
    if (!has(T, tb_gemm_dnnl))
        TB_SKIP(T, "no oneDNN here");
    all_products(T, TB_F32, dnnl, "oneDNN");
}

/* The library's matmul primitive, in floats. */
static tb_matmul *matmul;
static void run_matmul(tb_ctx *ctx, const tb_gemm_args *g)
{
    if (!tb_matmul_run(ctx, matmul, g))
        tb_gemm_own(ctx, g); /* k = 0 */
}

TB_TEST(matmul_f32)
{
    matmul = tb_matmul_create(T->ctx);
    if (!matmul)
        TB_SKIP(T, "no oneDNN 2 here");
    scaled = 1;
    all_products(T, TB_F32, run_matmul, tb_matmul_version(matmul));
    /* more shapes than are kept */
    product p;
    product_init(T, &p);
    for (size_t n = 1; n < 200; n++) {
        product_fill(T, &p, TB_F32, (int)n % 4, 5, n, 7, (double)(n % 2));
        TB_REQUIRE(T, tb_matmul_run(T->ctx, matmul, &p.g));
        product_check(T, &p, "matmul");
    }
    scaled = -0.75;
    tb_matmul_destroy(T->ctx, matmul);
}

TB_TEST(cblas_both)
{
    if (!has(T, tb_gemm_cblas))
        TB_SKIP(T, "no OpenBLAS (OpenMP) here");
    all_products(T, TB_F32, cblas, "cblas");
    all_products(T, TB_F64, cblas, "cblas");
}

/* what runs without a library */
static void own(tb_ctx *ctx, const tb_gemm_args *g)
{
    tb_gemm_own(ctx, g);
}

static const char *fma_isa;
static void fma_part(tb_ctx *ctx, const tb_gemm_args *g)
{
    (void)ctx;
    tb_gemm_part all = {0, g->m, 0, g->n};
    tb_gemm_part_get(fma_isa, g->dtype, true)(g, all);
}

TB_TEST(own_with_fma_on_every_isa)
{
    all_products(T, TB_F32, own, "own");
    all_products(T, TB_F64, own, "own");
    for (size_t i = 0; tb_isas[i]; i++) {
        fma_isa = tb_isas[i];
        if (!tb_kern_isa(fma_isa, TB_F32))
            TB_SKIP(T, fma_isa);
        all_products(T, TB_F32, fma_part, fma_isa);
        all_products(T, TB_F64, fma_part, fma_isa);
    }
}

/* --- operands rounded to bf16 --------------------------------------------- */

/* The sum is one of floats: the bound is that of f32, about the rounded
 * operands. */
static void all_rounded(tb_test *T, gemm_fn gemm, const char *who)
{
    rounding = true;
    all_products(T, TB_F32, gemm, who);
    rounding = false;
}

TB_TEST(live_bf16)
{
    all_rounded(T, tb_gemm, tb_gemm_name(T->ctx, TB_BF16));
}

TB_TEST(emulated_bf16)
{
    all_rounded(T, tb_gemm_bf16_emulated, "emulated");
    tb_ctx_exact(T->ctx, true);
    all_rounded(T, tb_gemm, "exact");
}

static void bf16_own(tb_ctx *ctx, const tb_gemm_args *g)
{
    if (!tb_gemm_bf16_own(ctx, g))
        __builtin_trap();
}

TB_TEST(own_bf16)
{
    if (!tb_gemm_bf16_get(tb_ctx_isa_limit(T->ctx)))
        TB_SKIP(T, "no AVX512_BF16 here");
    all_rounded(T, bf16_own, "our own");
}

/* k = 0 and other factors than 1 are not for the library */
static bool dnnl_refused;
static void bf16_dnnl(tb_ctx *ctx, const tb_gemm_args *g)
{
    if (tb_gemm_bf16_dnnl(ctx, g))
        return;
    dnnl_refused = dnnl_refused || g->k > 0;
    bf16_own(ctx, g);
}

TB_TEST(dnnl_bf16)
{
    product p;
    product_init(T, &p);
    rounding = true;
    product_fill(T, &p, TB_F32, 0, 3, 4, 5, 0);
    bool here = tb_gemm_bf16_dnnl(T->ctx, &p.g);
    product_fill(T, &p, TB_F32, 0, 3, 4, 5, 1);
    bool with_alpha = tb_gemm_bf16_dnnl(T->ctx, &p.g);
    rounding = false;
    TB_CHECK(T, !with_alpha);
    if (!here)
        TB_SKIP(T, "no oneDNN 2 or no AVX512_BF16 here");
    scaled = 1;
    dnnl_refused = false;
    all_rounded(T, bf16_dnnl, "oneDNN bf16");
    scaled = -0.75;
    TB_CHECK(T, !dnnl_refused);
}

/* More than a copy holds: pieces along m, n and k. */
TB_TEST(large_bf16)
{
    static const size_t sizes[][3] = {{70, 1100, 5000}, {4300, 40, 1030}};
    for (size_t s = 0; s < 2 * TB_LEN(sizes); s++) {
        const size_t *size = sizes[s / 2];
        bool turn = s % 2; /* as a weight's gradient, and as a linear map */
        size_t m = size[0], n = size[1], k = size[2];
        float *a = tb_alloc(T->ctx, m * k, sizeof *a);
        float *b = tb_alloc(T->ctx, n * k, sizeof *b);
        product p = {.g = {.dtype = TB_F32,
                           .bf16 = true,
                           .ta = turn,
                           .tb = !turn,
                           .m = m,
                           .n = n,
                           .k = k,
                           .alpha = 1,
                           .a = a,
                           .b = b,
                           .c = tb_alloc(T->ctx, m * n, sizeof(float)),
                           .lda = turn ? m : k,
                           .ldb = turn ? n : k,
                           .ldc = n}};
        tb_test_fill(T, TB_F32, a, m * k);
        tb_test_fill(T, TB_F32, b, n * k);
        tb_gemm(T->ctx, &p.g);
        rounding = true;
        p.ra = rounded(a, m * k, a), p.rb = rounded(b, n * k, b);
        rounding = false;
        for (size_t at = 0; at < m * n; at += m * n / 97) {
            double size_of = 0;
            double want = wanted(&p, at / n, at % n, &size_of);
            TB_NEAR(T, (double)((float *)p.g.c)[at], want,
                    (double)(k + 3) * 0x1p-24 * size_of);
        }
        tb_free(T->ctx, a), tb_free(T->ctx, b), tb_free(T->ctx, p.g.c);
    }
}

/* The processor's sums and the emulated ones differ by their order only. */
TB_TEST(hardware_and_emulation_agree)
{
    static float want[BUF_MAX];
    product p;
    product_init(T, &p);
    rounding = true;
    for (int form = 0; form < 4; form++) {
        product_fill(T, &p, TB_F32, form, 130, 140, 300, 0);
        tb_gemm_bf16_emulated(T->ctx, &p.g);
        memcpy(want, p.g.c, p.c_bytes);
        product_reset(&p);
        tb_gemm(T->ctx, &p.g);
        for (size_t i = 0; i < p.c_bytes / sizeof *want; i++)
            TB_NEAR(T, (double)((float *)p.g.c)[i], (double)want[i],
                    2 * 300 * 0x1p-24 * 300);
    }
    rounding = false;
}

/* Infinite and nan operands stay what they are. */
TB_TEST(bf16_keeps_what_is_not_finite)
{
    enum { N = 70 };
    static float a[N * N], b[N * N], c[N * N];
    tb_test_fill(T, TB_F32, a, N * N);
    tb_test_fill(T, TB_F32, b, N * N);
    a[0] = __builtin_inff(), a[3 * N] = __builtin_nanf("");
    const tb_gemm_args g = {.dtype = TB_F32,
                            .bf16 = true,
                            .m = N,
                            .n = N,
                            .k = N,
                            .alpha = 1,
                            .a = a,
                            .b = b,
                            .c = c,
                            .lda = N,
                            .ldb = N,
                            .ldc = N};
    for (int exact = 0; exact < 2; exact++) {
        tb_ctx_exact(T->ctx, exact);
        tb_gemm(T->ctx, &g);
        for (size_t j = 0; j < N; j++) {
            TB_CHECK(T, c[j] == (b[j] < 0 ? -1 : 1) * __builtin_inff());
            TB_CHECK(T, c[3 * N + j] != c[3 * N + j]);
            TB_CHECK(T, c[N + j] - c[N + j] == 0);
        }
    }
}

/* --- our own: the same bits everywhere ---------------------------------- */

static void own_parts(tb_test *T, tb_dtype t, const char *isa,
                      tb_gemm_part_fn part)
{
    product p;
    product_init(T, &p);
    for (size_t s = 0; s < TB_LEN(shapes) && T->failed < 5; s++)
        for (int form = 0; form < 4; form++) {
            static double want[BUF_MAX];
            tb_gemm_part all = {0, shapes[s][0], 0, shapes[s][1]};
            product_fill(T, &p, t, form, all.i1, all.j1, shapes[s][2], 1);
            tb_gemm_ref(&p.g);
            memcpy(want, p.g.c, p.c_bytes);
            product_reset(&p);
            part(&p.g, all);
            TB_SAME(T, p.g.c, want, p.c_bytes);
            if (T->failed)
                tb_test_fail(T, __FILE__, __LINE__, "... %s", isa);
        }
}

TB_TEST(own_has_the_bits_of_ref_on_every_isa)
{
    for (size_t i = 0; tb_isas[i]; i++) {
        if (!tb_kern_isa(tb_isas[i], TB_F32))
            TB_SKIP(T, tb_isas[i]);
        for (tb_dtype t = TB_F32; t <= TB_F64; t++)
            own_parts(T, t, tb_isas[i], tb_gemm_part_get(tb_isas[i], t, false));
    }
}

/* A bias that is added as the product is written, or by itself. */
TB_TEST(a_bias_comes_last)
{
    static float want[BUF_MAX], bias[91];
    product p;
    product_init(T, &p);
    tb_test_fill(T, TB_F32, bias, TB_LEN(bias));
    for (int exact = 0; exact < 2; exact++)
        for (int form = 0; form < 4; form++) {
            tb_ctx_exact(T->ctx, exact);
            product_fill(T, &p, TB_F32, form, 70, TB_LEN(bias), 700, 0);
            if (!tb_gemm_adds_bias(T->ctx, &p.g)) {
                TB_CHECK(T, !exact);
                continue;
            }
            tb_gemm(T->ctx, &p.g);
            for (size_t i = 0; i < p.g.m; i++)
                tb_kern_get(T->ctx, TB_F32)
                    ->row_add(1, p.g.n, bias, (float *)p.g.c + i * p.g.ldc);
            memcpy(want, p.g.c, p.c_bytes);
            product_reset(&p);
            p.g.bias = bias;
            tb_gemm(T->ctx, &p.g);
            TB_SAME(T, p.g.c, want, p.c_bytes);
        }
    product_fill(T, &p, TB_F32, 2, 3, 91, 700, 0);
    TB_CHECK(T, !tb_gemm_adds_bias(T->ctx, &p.g));
}

/* Of a size that a library may run: what it adds is the bias, once. */
TB_TEST(large_products_and_their_bias)
{
    enum { SIDE = 330 };
    static float bias[SIDE];
    product p;
    product_init(T, &p);
    tb_test_fill(T, TB_F32, bias, SIDE);
    for (int form = 0; form < 4; form++) {
        for (int beta = 0; beta < 2; beta++) {
            product_fill(T, &p, TB_F32, form, SIDE, SIDE, SIDE, beta);
            tb_gemm(T->ctx, &p.g);
            product_check(T, &p, tb_gemm_name(T->ctx, TB_F32));
        }
        product_fill(T, &p, TB_F32, form, SIDE, SIDE, SIDE, 0);
        if (!tb_gemm_adds_bias(T->ctx, &p.g))
            continue;
        p.g.bias = bias;
        tb_gemm(T->ctx, &p.g);
        for (size_t i = 0; i < SIDE; i++)
            for (size_t j = 0; j < SIDE; j++) {
                double size, sum = wanted(&p, i, j, &size) + (double)bias[j];
                TB_NEAR(T, tb_test_get(TB_F32, p.g.c, i * p.g.ldc + j), sum,
                        1.1 * (SIDE + 3) * 0x1p-24 * (size + tb_fabs(sum)));
            }
    }
}

TB_TEST(exact_has_the_bits_of_ref_for_any_threads)
{
    static double want[BUF_MAX];
    product p;
    product_init(T, &p);
    tb_ctx_exact(T->ctx, true);
    for (tb_dtype t = TB_F32; t <= TB_F64; t++)
        for (int form = 0; form < 4; form++) {
            product_fill(T, &p, t, form, 290, 271, 300, 1);
            tb_gemm_ref(&p.g);
            memcpy(want, p.g.c, p.c_bytes);
            for (int threads = 1; threads <= 3; threads++) {
                tb_ctx_threads(T->ctx, threads);
                product_reset(&p);
                tb_gemm(T->ctx, &p.g);
                TB_SAME(T, p.g.c, want, p.c_bytes);
            }
        }
}

/* ... and with bf16 those of ref on operands that were rounded before, on every
 * instruction set. */
TB_TEST(exact_bf16_has_the_bits_of_ref)
{
    static float want[BUF_MAX];
    const char *limit = getenv("TB_ISA");
    char *before = limit ? strdup(limit) : NULL;
    product p;
    product_init(T, &p);
    rounding = true;
    for (int form = 0; form < 4; form++) {
        product_fill(T, &p, TB_F32, form, 190, 171, 300, 1);
        tb_gemm_args ref = p.g;
        ref.a = p.ra, ref.b = p.rb, ref.c = want;
        memcpy(want, p.g.c, p.c_bytes);
        tb_gemm_ref(&ref);
        for (size_t i = 0; tb_isas[i]; i++) {
            tb_ctx *ctx = NULL;
            setenv("TB_ISA", tb_isas[i], 1);
            TB_OKAY(T, tb_ctx_create(&ctx));
            tb_ctx_exact(ctx, true);
            product_reset(&p);
            tb_gemm(ctx, &p.g);
            TB_SAME(T, p.g.c, want, p.c_bytes);
            TB_CHECK(T, strstr(tb_gemm_name(ctx, TB_BF16), "emulated"));
            tb_ctx_destroy(ctx);
        }
    }
    rounding = false;
    if (before)
        setenv("TB_ISA", before, 1);
    else
        unsetenv("TB_ISA");
    free(before);
}

/* with FMA too, by tiles and by scalar products of a few rows */
TB_TEST(own_has_the_same_bits_for_any_threads)
{
    static const size_t sizes[][3] = {{290, 271, 300}, {51, 271, 420}};
    static double want[BUF_MAX];
    product p;
    product_init(T, &p);
    for (size_t s = 0; s < TB_LEN(sizes); s++)
        for (int form = 0; form < 4; form++) {
            product_fill(T, &p, TB_F32, form, sizes[s][0], sizes[s][1],
                         sizes[s][2], 1);
            for (int threads = 1; threads <= 5; threads++) {
                tb_ctx_threads(T->ctx, threads);
                product_reset(&p);
                tb_gemm_own(T->ctx, &p.g);
                if (threads == 1)
                    memcpy(want, p.g.c, p.c_bytes);
                TB_SAME(T, p.g.c, want, p.c_bytes);
            }
        }
}

/* one element, in the order the header promises */
TB_TEST(ref_sums_k_in_blocks_of_256)
{
    float a[600], b[600], c = 2;
    tb_test_fill_wide(T, TB_F32, a, 600);
    tb_test_fill_wide(T, TB_F32, b, 600);
    tb_gemm_args g = {.dtype = TB_F32,
                      .m = 1,
                      .n = 1,
                      .k = 600,
                      .alpha = 3,
                      .beta = 0.5,
                      .a = a,
                      .b = b,
                      .c = &c,
                      .lda = 600,
                      .ldb = 1,
                      .ldc = 1};
    float want = 0.5f * c;
    for (size_t k0 = 0; k0 < 600; k0 += 256) {
        float sum = 0;
        for (size_t k = k0; k < 600 && k < k0 + 256; k++)
            sum += a[k] * b[k];
        want += 3 * sum;
    }
    tb_gemm_ref(&g);
    TB_SAME(T, &c, &want, sizeof c);
}

/* --- inside tb_parallel -------------------------------------------------- */

enum { JOBS = 8, JOB = 96 };
typedef struct jobs {
    tb_ctx *ctx;
    float a[JOB * JOB], b[JOB * JOB], c[JOBS][JOB * JOB];
} jobs;

static void job(void *arg, size_t chunk)
{
    jobs *j = arg;
    tb_gemm_args g = {.dtype = TB_F32,
                      .m = JOB,
                      .n = JOB,
                      .k = JOB,
                      .alpha = 1,
                      .a = j->a,
                      .b = j->b,
                      .c = j->c[chunk],
                      .lda = JOB,
                      .ldb = JOB,
                      .ldc = JOB};
    tb_gemm(j->ctx, &g);
}

TB_TEST(products_inside_tb_parallel)
{
    static jobs j;
    j.ctx = T->ctx;
    tb_test_fill(T, TB_F32, j.a, JOB * JOB);
    tb_test_fill(T, TB_F32, j.b, JOB * JOB);
    tb_ctx_threads(T->ctx, 2);
    tb_gemm_load(T->ctx);
    tb_parallel(T->ctx, JOBS, job, &j);
    for (size_t i = 1; i < JOBS; i++)
        TB_SAME(T, j.c[i], j.c[0], sizeof j.c[0]);
}

TB_TEST(names_say_what_runs)
{
    TB_CHECK(T, strlen(tb_gemm_name(T->ctx, TB_F32)) > 5);
    const char *name = tb_gemm_name(T->ctx, TB_BF16);
    TB_CHECK(T, strstr(name, "bf16") != NULL);
    TB_CHECK(T, !strstr(name, "emulated") ==
                    (tb_gemm_bf16_get(tb_ctx_isa_limit(T->ctx)) != NULL));
    tb_ctx_exact(T->ctx, true);
    TB_CHECK(T, strncmp(tb_gemm_name(T->ctx, TB_F64), "tollbooth", 9) == 0);
}
