/* SPDX-License-Identifier: MIT */
/* Matrix products: every form, odd shapes, padded rows, beta 0 and 1, each
 * back end against a product in double, within k eps sum|a||b|. */
#include "tb_test.h"
#include "kernels/kern_tables.h"
#include "threads/threads.h"

enum { SIDE_MAX = 300, PAD = 3, BUF_MAX = SIDE_MAX * (SIDE_MAX + PAD) };

/* One product with its own memory; C's padding holds `untouched`. */
typedef struct product {
    tb_gemm_args g;
    char *a, *b, *c, *c0;
    size_t c_bytes;
} product;

static const double untouched = 12345;

static void product_init(tb_test *T, product *p)
{
    p->a = tb_test_guarded(T, BUF_MAX * sizeof(double));
    p->b = tb_test_guarded(T, BUF_MAX * sizeof(double));
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

static void product_fill(tb_test *T, product *p, tb_dtype t, int form, size_t m,
                         size_t n, size_t k, double beta)
{
    bool ta = form & 1, tb = form & 2;
    size_t lda = (ta ? m : k) + PAD, ldb = (tb ? k : n) + PAD, ldc = n + PAD;
    size_t na = ta ? extent(k, m, lda) : extent(m, k, lda);
    size_t nb = tb ? extent(n, k, ldb) : extent(k, n, ldb);
    size_t nc = extent(m, n, ldc);
    p->g = (tb_gemm_args){.dtype = t,
                          .ta = ta,
                          .tb = tb,
                          .m = m,
                          .n = n,
                          .k = k,
                          .alpha = beta == 0 ? 1 : -0.75,
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
        double a = tb_test_get(g->dtype, g->a,
                               g->ta ? q * g->lda + i : i * g->lda + q);
        double b = tb_test_get(g->dtype, g->b,
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
    for (size_t i = 0; tb_kern_isas[i]; i++) {
        fma_isa = tb_kern_isas[i];
        if (!tb_kern_isa(fma_isa, TB_F32))
            TB_SKIP(T, fma_isa);
        all_products(T, TB_F32, fma_part, fma_isa);
        all_products(T, TB_F64, fma_part, fma_isa);
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
    for (size_t i = 0; tb_kern_isas[i]; i++) {
        if (!tb_kern_isa(tb_kern_isas[i], TB_F32))
            TB_SKIP(T, tb_kern_isas[i]);
        for (tb_dtype t = TB_F32; t <= TB_F64; t++)
            own_parts(T, t, tb_kern_isas[i],
                      tb_gemm_part_get(tb_kern_isas[i], t, false));
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
    tb_ctx_exact(T->ctx, true);
    TB_CHECK(T, strncmp(tb_gemm_name(T->ctx, TB_F64), "tollbooth", 9) == 0);
}
