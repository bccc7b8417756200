/* SPDX-License-Identifier: MIT */
/* A machine without oneDNN and OpenBLAS: every product is our own, and says so.
 * Here dlopen finds nothing. */
#include "kernels/kern_tables.h"
#include "tb_test.h"
#include "threads/threads.h"

#include <dlfcn.h>

static int asked;

void *dlopen(const char *file, int mode)
{
    (void)file, (void)mode;
    asked++;
    return NULL;
}

enum { N = 70, NN = N * N }; /* whole blocks of 64 and more */

typedef struct product {
    double a[NN], b[NN], c[NN], want[NN]; /* of floats: their first half */
    tb_gemm_args g;
} product;

static product *made(tb_test *T, tb_dtype t, bool bf16, bool tb)
{
    product *p = tb_test_guarded(T, sizeof *p);
    tb_test_fill(T, t, p->a, NN);
    tb_test_fill(T, t, p->b, NN);
    p->g = (tb_gemm_args){.dtype = t,
                          .bf16 = bf16,
                          .tb = tb,
                          .m = N,
                          .n = N,
                          .k = N,
                          .alpha = 1,
                          .a = p->a,
                          .b = p->b,
                          .c = p->want,
                          .lda = N,
                          .ldb = N,
                          .ldc = N};
    tb_gemm_ref(&p->g);
    p->g.c = p->c;
    return p;
}

/* Of operands rounded to bf16 an element is off by up to 2^-8 of its terms. */
static void compare(tb_test *T, tb_dtype t, bool bf16, bool tb)
{
    product *p = made(T, t, bf16, tb);
    const double near = bf16 ? 0.002 : t == TB_F32 ? 1e-6 : 1e-14;
    tb_gemm(T->ctx, &p->g);
    for (size_t i = 0; i < NN; i++)
        TB_NEAR(T, tb_test_get(t, p->c, i), tb_test_get(t, p->want, i),
                near * N);
}

TB_TEST(products_are_our_own)
{
    for (int tb = 0; tb < 2; tb++) {
        compare(T, TB_F32, false, tb);
        compare(T, TB_F64, false, tb);
        compare(T, TB_F32, true, tb);
    }
    TB_CHECK(T, asked > 0 || !tb_streq(tb_threads_backend(), "openmp"));
}

TB_TEST(a_library_that_is_not_there_is_not_asked)
{
    product *p = made(T, TB_F32, false, true);
    TB_CHECK(T, !tb_gemm_dnnl(T->ctx, &p->g));
    TB_CHECK(T, !tb_gemm_cblas(T->ctx, &p->g));
    p->g.bf16 = true;
    TB_CHECK(T, !tb_gemm_bf16_dnnl(T->ctx, &p->g));
}

TB_TEST(names_say_so)
{
    const char *isa = tb_kern_get(T->ctx, TB_F32)->isa;
    char want[48];
    tb_format(want, sizeof want, "tollbooth (%s)", isa);
    TB_STR(T, tb_gemm_name(T->ctx, TB_F32), want);
    TB_STR(T, tb_gemm_name(T->ctx, TB_F64), want);
    TB_CHECK(T, !strstr(tb_gemm_name(T->ctx, TB_BF16), "oneDNN"));
}
