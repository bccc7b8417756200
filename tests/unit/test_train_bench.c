/* SPDX-License-Identifier: MIT */
/* Cases of bench open, run and close, whichever allocation fails. Their rates
 * are measured by the command's tests. */
#include "tb_test.h"
#include "train/bench.h"

static const char *const cases[] = {
    "norm:5x7:fwd",        "norm:5x7:tan",          "rmsnorm:5x7:bwd",
    "addnorm:5x7:fwd",     "addnorm:5x7:bwd",       "gelu:5x7:bwd",
    "gelu_tanh:5x7:fwd",   "silu:5x7:bwd",          "swiglu:5x7:fwd",
    "rope:2x5x2x4:bwd",    "softmax:5x7:fwd",       "xent:5x7:bwd",
    "embed:5x7x11:bwd",    "gemm:3x5x7:f32-nt",     "gemm:3x5x7:bf16",
    "attn:2x5x3x4:fwdbwd", "step:L1d8T4B2V5:f32",   "step:L1d8T4B2V5:bf16",
    "adamw:5x7:f32",       "generate:L1d8T4V5:f32", "flow:L1d8T4B1:grad",
    "jacobian:d4T2:f32",
};

static tb_status once(tb_ctx *ctx, const char *name)
{
    tb_bench_job j = {0};
    tb_status s = tb_bench_open(ctx, name, &j);
    if (s == TB_OK)
        s = j.run(&j);
    tb_bench_close(&j);
    return s;
}

/* What stays is the context's own: libraries, shapes they have seen. */
static void failing(tb_test *T, const char *name)
{
    TB_OKAY(T, once(T->ctx, name));
    size_t blocks = tb_ctx_blocks(T->ctx), n = 0;
    tb_status s;
    do {
        tb_ctx_fail_alloc_at(T->ctx, ++n);
        s = once(T->ctx, name);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        if (s != TB_OK && s != TB_ERR_MEMORY)
            tb_test_fail(T, __FILE__, __LINE__, "%s, allocation %zu: %s", name,
                         n, tb_error(T->ctx));
        TB_CHECK(T, tb_ctx_blocks(T->ctx) == blocks);
    } while (s != TB_OK && T->failed == 0);
    TB_CHECK(T, n > 1);
}

TB_TEST(every_allocation_may_fail)
{
    for (size_t i = 0; i < TB_LEN(cases); i++)
        failing(T, cases[i]);
}

/* A kind that nobody tries would be a case that was never opened. */
TB_TEST(every_kind_is_tried)
{
    for (size_t k = 0; k < tb_bench_nkinds; k++) {
        size_t n = strlen(tb_bench_kinds[k].name), i = 0;
        while (i < TB_LEN(cases) &&
               (strncmp(cases[i], tb_bench_kinds[k].name, n) != 0 ||
                cases[i][n] != ':'))
            i++;
        TB_CHECK(T, i < TB_LEN(cases));
    }
}
