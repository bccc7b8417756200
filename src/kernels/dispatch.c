/* SPDX-License-Identifier: MIT */
/* Which kernel table runs: the widest that build, CPU and operating system
 * have, capped by TB_ISA. */
#include "kernels/kern_tables.h"

#if defined(__wasm__)
const char *const tb_kern_isas[] = {"wasm", NULL};
#elif defined(__aarch64__)
const char *const tb_kern_isas[] = {"ref", "neon", NULL};
#else
const char *const tb_kern_isas[] = {"ref", "avx2", "avx512", NULL};
#endif

typedef struct tb_level {
    const tb_kern *const *kern;
    const tb_gemm_part_fn *part, *fma;
    bool (*runs)(void);
} tb_level;

static bool runs_always(void)
{
    return true;
}

#if defined(__x86_64__)
/* The built-in asks cpuid and, for the wide registers, xgetbv. */
static bool runs_avx2(void)
{
    __builtin_cpu_init();
    /* no processor has AVX2 without FMA, but a virtual machine may */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool runs_avx512(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

/* in the order of tb_kern_isas */
static const tb_level levels[] = {
    {tb_kern_ref, tb_gemm_part_ref, tb_gemm_part_ref, runs_always},
#if defined(__x86_64__)
    {tb_kern_avx2, tb_gemm_part_avx2, tb_gemm_fma_avx2, runs_avx2},
    {tb_kern_avx512, tb_gemm_part_avx512, tb_gemm_fma_avx512, runs_avx512},
#elif defined(__aarch64__)
    {tb_kern_neon, tb_gemm_part_neon, tb_gemm_fma_neon, runs_always},
#endif
};

static const tb_level *find(const char *isa)
{
    for (size_t i = 0; i < TB_LEN(levels); i++)
        if (tb_streq(isa, tb_kern_isas[i]))
            return levels[i].runs() ? &levels[i] : NULL;
    return NULL;
}

/* the widest level that runs and is not above `limit`; a limit this build
 * does not know limits nothing */
static const tb_level *best(const char *limit)
{
    const tb_level *found = &levels[0];
    for (size_t i = 0; i < TB_LEN(levels); i++) {
        if (levels[i].runs())
            found = &levels[i];
        if (tb_streq(limit, tb_kern_isas[i]))
            break;
    }
    return found;
}

const tb_kern *tb_kern_get(const tb_ctx *ctx, tb_dtype dtype)
{
    return best(tb_ctx_isa_limit(ctx))->kern[dtype];
}

const tb_kern *tb_kern_isa(const char *isa, tb_dtype dtype)
{
    const tb_level *level = find(isa);
    return level ? level->kern[dtype] : NULL;
}

tb_gemm_part_fn tb_gemm_part_get(const char *limit, tb_dtype dtype, bool fma)
{
    const tb_level *level = best(limit);
    return fma ? level->fma[dtype] : level->part[dtype];
}
