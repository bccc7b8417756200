/* SPDX-License-Identifier: MIT */
/* Matrix products through an outside library where there is one. The
 * libraries are opened at the first product: opening takes 25 ms and tollbooth
 * has to start in 5. */
#include "kernels/gemm_matmul.h"
#include "threads/threads.h"

/* Few rows go by gemm_thin.h. */
static bool own_adds_bias(const tb_gemm_args *g)
{
    enum { THIN = 64 };
    return !g->bf16 && g->m > THIN && g->k > 0;
}

#if defined(__wasm__)

void tb_gemm_load(tb_ctx *ctx)
{
    (void)ctx;
}

const char *tb_gemm_name(tb_ctx *ctx, tb_dtype dtype)
{
    return dtype == TB_BF16 ? tb_gemm_bf16_name(ctx) : "tollbooth (wasm)";
}

void tb_gemm(tb_ctx *ctx, const tb_gemm_args *g)
{
    if (g->bf16)
        tb_gemm_bf16(ctx, g);
    else
        tb_gemm_own(ctx, g);
}

bool tb_gemm_adds_bias(const tb_ctx *ctx, const tb_gemm_args *g)
{
    (void)ctx;
    return own_adds_bias(g);
}

#else

#    include <dlfcn.h>
#    include <limits.h>

/* oneDNN's C interface: row-major, dnnl_dim_t is int64_t, 0 is success */
typedef int (*dnnl_sgemm_fn)(char ta, char tb, int64_t m, int64_t n, int64_t k,
                             float alpha, const float *a, int64_t lda,
                             const float *b, int64_t ldb, float beta, float *c,
                             int64_t ldc);

/* CBLAS: enumerators are int */
enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANS = 111, CBLAS_TRANS = 112 };
typedef void (*cblas_sgemm_fn)(int order, int ta, int tb, int m, int n, int k,
                               float alpha, const float *a, int lda,
                               const float *b, int ldb, float beta, float *c,
                               int ldc);
typedef void (*cblas_dgemm_fn)(int order, int ta, int tb, int m, int n, int k,
                               double alpha, const double *a, int lda,
                               const double *b, int ldb, double beta, double *c,
                               int ldc);
typedef int (*openblas_int_fn)(void);
typedef char *(*openblas_text_fn)(void);
enum { OPENBLAS_OPENMP = 2 }; /* openblas_get_parallel */

/** The back ends of a context; a NULL function is a library not found. */
typedef struct tb_gemm_libs {
    dnnl_sgemm_fn dnnl;
    tb_matmul *matmul; /* of the same library; NULL: not to be had */
    cblas_sgemm_fn sgemm;
    cblas_dgemm_fn dgemm;
    char dnnl_name[64], blas_name[64], own_name[48];
    char f32_name[224], f64_name[160];
} tb_gemm_libs;

/* A function pointer may not be converted from void * in ISO C. */
#    define LOAD(lib, name, fn)                                                \
        do {                                                                   \
            void *symbol_ = dlsym((lib), (name));                              \
            memcpy(&(fn), &symbol_, sizeof(fn));                               \
        } while (0)

static bool has_avx512(const tb_ctx *ctx)
{
    return tb_streq(tb_kern_get(ctx, TB_F32)->isa, "avx512");
}

/* Only version 2 has the matmul we know, and only with AVX-512 it is chosen. */
static void load_dnnl(tb_ctx *ctx, tb_gemm_libs *libs)
{
    tb_dnnl_version v;
    void *lib = tb_dnnl_open(&v);
    if (!lib)
        return;
    LOAD(lib, "dnnl_sgemm", libs->dnnl);
    if (v.major == 2 && has_avx512(ctx))
        libs->matmul = tb_matmul_create(ctx);
    tb_format(libs->dnnl_name, sizeof libs->dnnl_name,
              "oneDNN %d.%d.%d (%sdnnl_sgemm)", v.major, v.minor, v.patch,
              libs->matmul ? "matmul, " : "");
}

/* OpenBLAS picks its kernels itself, or by OPENBLAS_CORETYPE, which some
 * machines set for all: then it runs at half speed and nobody sees why. */
static void warn_if_narrow(tb_ctx *ctx, const char *core)
{
    static const char *const narrow[] = {"Haswell", "Zen", "Excavator",
                                         "Sandybridge", "Prescott"};
    if (!tb_kern_isa("avx512", TB_F32))
        return;
    for (size_t i = 0; i < TB_LEN(narrow); i++)
        if (tb_streq(core, narrow[i]))
            tb_say(ctx, TB_LOG_WARN,
                   "OpenBLAS runs its %s kernels on a processor with AVX-512: "
                   "small products take up to twice as long (is "
                   "OPENBLAS_CORETYPE set?)",
                   core);
}

static void load_openblas(tb_ctx *ctx, tb_gemm_libs *libs)
{
    const char *const names[] = {TB_OPENBLAS_PATH, "libopenblas.so.0"};
    void *lib = tb_library_open(names, TB_LEN(names));
    openblas_int_fn parallel = NULL;
    openblas_text_fn core = NULL;
    if (!lib)
        return;
    LOAD(lib, "openblas_get_parallel", parallel);
    LOAD(lib, "openblas_get_corename", core);
    if (!parallel || parallel() != OPENBLAS_OPENMP) {
        tb_say(ctx, TB_LOG_WARN,
               "OpenBLAS is not the OpenMP flavour (a second pool of threads "
               "halves the speed): our own products run instead");
        dlclose(lib);
        return;
    }
    LOAD(lib, "cblas_sgemm", libs->sgemm);
    LOAD(lib, "cblas_dgemm", libs->dgemm);
    const char *corename = core ? core() : "?";
    tb_format(libs->blas_name, sizeof libs->blas_name,
              "OpenBLAS (cblas, %s kernels)", corename);
    warn_if_narrow(ctx, corename);
}

/* The libraries stay open: their OpenMP threads outlive any context. */
static void drop(tb_ctx *ctx, void *p)
{
    tb_gemm_libs *libs = p;
    tb_matmul_destroy(ctx, libs->matmul);
    tb_free(ctx, libs);
}

static tb_gemm_libs *libs_of(tb_ctx *ctx)
{
    return tb_ctx_slot(ctx, TB_SLOT_GEMM);
}

/* What the choices below come to: who runs the most, then the others. */
static void name_f64(tb_gemm_libs *libs, bool avx512)
{
    const char *small = libs->dgemm ? libs->blas_name : libs->own_name;
    if (avx512 && libs->dgemm)
        tb_format(libs->f64_name, sizeof libs->f64_name, "%s; small %s",
                  libs->own_name, small);
    else
        tb_format(libs->f64_name, sizeof libs->f64_name, "%s", small);
}

static void name_f32(tb_gemm_libs *libs, bool avx512)
{
    const char *main = libs->own_name, *across = NULL, *small = NULL;
    if (libs->dnnl) {
        main = libs->dnnl_name;
        across = avx512 ? libs->own_name : NULL;
    } else if (libs->sgemm && !avx512) {
        main = libs->blas_name;
    }
    if (libs->sgemm && main != libs->blas_name)
        small = libs->blas_name;
    tb_format(libs->f32_name, sizeof libs->f32_name, "%s%s%s%s%s", main,
              across ? "; forward " : "", across ? across : "",
              small ? "; small " : "", small ? small : "");
}

void tb_gemm_load(tb_ctx *ctx)
{
    if (libs_of(ctx))
        return;
    tb_gemm_libs *libs = tb_alloc(ctx, 1, sizeof *libs);
    if (!libs)
        return; /* our own code needs nothing */
    tb_format(libs->own_name, sizeof libs->own_name, "tollbooth (%s)",
              tb_kern_get(ctx, TB_F32)->isa);
    /* Only OpenMP code can tell these libraries to stay on one thread. */
    if (tb_streq(tb_threads_backend(), "openmp")) {
        load_dnnl(ctx, libs);
        load_openblas(ctx, libs);
    }
    name_f32(libs, has_avx512(ctx));
    name_f64(libs, has_avx512(ctx));
    tb_ctx_slot_set(ctx, TB_SLOT_GEMM, libs, drop);
}

const char *tb_gemm_name(tb_ctx *ctx, tb_dtype dtype)
{
    if (dtype == TB_BF16)
        return tb_gemm_bf16_name(ctx);
    tb_gemm_load(ctx);
    const tb_gemm_libs *libs = libs_of(ctx);
    if (!libs)
        return "tollbooth";
    if (tb_ctx_is_exact(ctx))
        return libs->own_name;
    return dtype == TB_F32 ? libs->f32_name : libs->f64_name;
}

/* Two threads must not open the libraries at once: what is not open inside
 * tb_parallel stays shut there. */
static const tb_gemm_libs *open_libs(tb_ctx *ctx)
{
    if (!tb_threads_inside())
        tb_gemm_load(ctx);
    return libs_of(ctx);
}

bool tb_gemm_dnnl(tb_ctx *ctx, const tb_gemm_args *g)
{
    const tb_gemm_libs *libs = open_libs(ctx);
    if (!libs || !libs->dnnl || g->dtype != TB_F32 || g->k == 0)
        return false; /* for k = 0 oneDNN would leave C as it is */
    int lent = tb_threads_lend(ctx);
    int status = libs->dnnl(g->ta ? 'T' : 'N', g->tb ? 'T' : 'N', (int64_t)g->m,
                            (int64_t)g->n, (int64_t)g->k, (float)g->alpha, g->a,
                            (int64_t)g->lda, g->b, (int64_t)g->ldb,
                            (float)g->beta, g->c, (int64_t)g->ldc);
    tb_threads_return(lent);
    return status == 0;
}

static bool fits_int(const tb_gemm_args *g)
{
    return g->m <= INT_MAX && g->n <= INT_MAX && g->k <= INT_MAX &&
           g->lda <= INT_MAX && g->ldb <= INT_MAX && g->ldc <= INT_MAX;
}

static void call_sgemm(cblas_sgemm_fn sgemm, int ta, int tb,
                       const tb_gemm_args *g)
{
    sgemm(CBLAS_ROW_MAJOR, ta, tb, (int)g->m, (int)g->n, (int)g->k,
          (float)g->alpha, g->a, (int)g->lda, g->b, (int)g->ldb, (float)g->beta,
          g->c, (int)g->ldc);
}

static void call_dgemm(cblas_dgemm_fn dgemm, int ta, int tb,
                       const tb_gemm_args *g)
{
    dgemm(CBLAS_ROW_MAJOR, ta, tb, (int)g->m, (int)g->n, (int)g->k, g->alpha,
          g->a, (int)g->lda, g->b, (int)g->ldb, g->beta, g->c, (int)g->ldc);
}

bool tb_gemm_cblas(tb_ctx *ctx, const tb_gemm_args *g)
{
    const tb_gemm_libs *libs = open_libs(ctx);
    int ta = g->ta ? CBLAS_TRANS : CBLAS_NO_TRANS;
    int tb = g->tb ? CBLAS_TRANS : CBLAS_NO_TRANS;
    if (!libs || !libs->sgemm || !libs->dgemm || !fits_int(g))
        return false;
    int lent = tb_threads_lend(ctx);
    if (g->dtype == TB_F32)
        call_sgemm(libs->sgemm, ta, tb, g);
    else
        call_dgemm(libs->dgemm, ta, tb, g);
    tb_threads_return(lent);
    return true;
}

static bool run_matmul(tb_ctx *ctx, const tb_gemm_args *g)
{
    const tb_gemm_libs *libs = open_libs(ctx);
    return libs && libs->matmul && tb_matmul_run(ctx, libs->matmul, g);
}

static bool run_own(tb_ctx *ctx, const tb_gemm_args *g)
{
    tb_gemm_own(ctx, g);
    return true;
}

/** What runs a product of floats: `by`, the first that can, if the product has
 * this form, from `least` to `most` multiplications, and C so many rows and
 * columns. */
typedef bool (*back_end)(tb_ctx *ctx, const tb_gemm_args *g);
enum {
    ACROSS = 1, /* A B^T, a linear's forward; without it A B and A^T B */
    ONE = 2,    /* row of A, where our code has vectors */
    AVX512 = 4, /* only there */
    WIDE = 8,   /* more columns than k */
    FEW = 16,   /* rows, at most 512 */
    BIAS = 32   /* no condition: all of `by` add one */
};
typedef struct choice {
    unsigned form;
    double least, most;
    size_t rows, cols;
    back_end by[3];
} choice;

#    define ANY  1e300
#    define MUCH (1 << 25) /* half a millisecond on one core */

/* The first that fits. Measured on one and two cores of a Zen 4 with AVX-512
 * (speed over dnnl_sgemm's):
 *                          A B^T                A B and A^T B
 *                          OpenBLAS  ours       OpenBLAS  ours
 *   8^3 to 64^3            1.1-2.2   1.0-1.3    1.1-6.7   0.8-2.0
 *   96^3 to 384^3          0.8-1.0   1.0-1.2    0.7-1.0   0.83-1.0
 *   1 row, B in no cache   0.4-1.5   1.0-3.0
 *   2 to 8 rows            0.2-1.9   0.5-1.5    0.2-1.3   0.1-1.4
 *   16 to 64 rows          0.7-1.9   0.87-2.8   0.6-1.2   0.5-1.2
 *   128 rows               0.88-1.0  0.94-1.1   0.83-1.0  0.85-1.0
 *   layers, rows 256-4096  0.8-1.0   0.95-1.42  0.7-0.96  0.89-1.05
 * OpenBLAS has kernels that copy nothing, for A B^T up to 2^16; few columns do
 * not pay for whole vectors of ours. oneDNN loses by its copy of a transposed
 * B, most on two threads and where cols < k. Its matmul primitive is within 3 %
 * of the better of the two, but for few rows on two threads. With weights that
 * come from memory, 256 rows, widths of 512 and 2048, GFLOP/s: A B^T 209 to
 * 217, ours 167 to 197; A B where cols > k 211, dnnl_sgemm 163; other A B and
 * A^T B 198 to 208, dnnl_sgemm 202 to 220. */
static const choice choices[] = {
    {ACROSS | ONE, 0, ANY, 0, 0, {run_own}},
    {ACROSS, 0, 1 << 16, 0, 0, {tb_gemm_cblas, tb_gemm_dnnl, run_own}},
    {ACROSS | AVX512 | FEW | BIAS, MUCH, ANY, 64, 64, {run_matmul, run_own}},
    {ACROSS | AVX512 | BIAS, 0, ANY, 16, 32, {run_own}},
    {ACROSS, 0, ANY, 0, 0, {tb_gemm_dnnl, tb_gemm_cblas, run_own}},
    {0, 0, 64 * 64 * 64, 0, 0, {tb_gemm_cblas, tb_gemm_dnnl, run_own}},
    {AVX512 | FEW | WIDE,
     MUCH,
     ANY,
     64,
     64,
     {run_matmul, tb_gemm_dnnl, run_own}},
    {AVX512, 0, ANY, 128, 32, {tb_gemm_dnnl, run_own}},
    {0, 0, ANY, 0, 0, {tb_gemm_dnnl, tb_gemm_cblas, run_own}},
};

static bool fits(const choice *c, const tb_gemm_args *g, const char *isa)
{
    double size = (double)g->m * (double)g->n * (double)g->k;
    if ((c->form & ONE) && (g->m != 1 || tb_streq(isa, "ref")))
        return false;
    if ((c->form & AVX512) && !tb_streq(isa, "avx512"))
        return false;
    if ((c->form & WIDE) && (g->ta || g->n <= g->k))
        return false;
    if ((c->form & FEW) && g->m > 512)
        return false;
    return ((c->form & ACROSS) != 0) == (!g->ta && g->tb) && size >= c->least &&
           size <= c->most && g->m >= c->rows && g->n >= c->cols;
}

static const choice *choice_of(const tb_ctx *ctx, const tb_gemm_args *g)
{
    const choice *c = choices;
    const char *isa = tb_kern_get(ctx, TB_F32)->isa;
    while (!fits(c, g, isa))
        c++;
    return c;
}

static void run_f32(tb_ctx *ctx, const tb_gemm_args *g)
{
    const choice *c = choice_of(ctx, g);
    for (size_t i = 0; !c->by[i](ctx, g); i++)
        ;
}

/* On AVX-512 ours is 1.02 (one thread) to 1.05 times (two) as fast as OpenBLAS
 * from 128^3 on, slower below 64^3. */
static void run_f64(tb_ctx *ctx, const tb_gemm_args *g)
{
    bool ours = g->m >= 64 && g->n >= 32 && g->k >= 32 && has_avx512(ctx);
    if (ours || !tb_gemm_cblas(ctx, g))
        tb_gemm_own(ctx, g);
}

bool tb_gemm_adds_bias(const tb_ctx *ctx, const tb_gemm_args *g)
{
    if (!own_adds_bias(g))
        return false;
    return tb_ctx_is_exact(ctx) ||
           (g->dtype == TB_F32 && (choice_of(ctx, g)->form & BIAS));
}

void tb_gemm(tb_ctx *ctx, const tb_gemm_args *g)
{
    if (g->bf16)
        tb_gemm_bf16(ctx, g);
    else if (tb_ctx_is_exact(ctx))
        tb_gemm_own(ctx, g);
    else if (g->dtype == TB_F32)
        run_f32(ctx, g);
    else
        run_f64(ctx, g);
}

#endif
