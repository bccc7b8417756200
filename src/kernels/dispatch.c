/* SPDX-License-Identifier: MIT */
/* Which kernel table runs: the widest that build, CPU and operating system
 * have, capped by TB_ISA. */
#include "kernels/kern_tables.h"

#if defined(__x86_64__)
#    include <cpuid.h>
#endif

typedef struct tb_level {
    const tb_kern *const *kern;
    const tb_gemm_part_fn *part, *fma;
    const tb_k_attn_passes *const *attn; /* with FMA; NULL: the table's */
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

/* Leaf 7, subleaf 1: AVX512_BF16 is bit 5 of eax. */
static bool cpu_has_bf16(void)
{
    unsigned a = 0, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
}

/* Leaf 7: AMX_BF16 is bit 22 of edx. */
static bool cpu_has_amx(void)
{
    unsigned a, b, c, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1);
}
#endif

/* in the order of tb_isas */
static const tb_level levels[] = {
    {tb_kern_ref, tb_gemm_part_ref, tb_gemm_part_ref, NULL, runs_always},
#if defined(__x86_64__)
    {tb_kern_avx2, tb_gemm_part_avx2, tb_gemm_fma_avx2, tb_attn_fma_avx2,
     runs_avx2},
    {tb_kern_avx512, tb_gemm_part_avx512, tb_gemm_fma_avx512,
     tb_attn_fma_avx512, runs_avx512},
#elif defined(__aarch64__)
    {tb_kern_neon, tb_gemm_part_neon, tb_gemm_fma_neon, tb_attn_fma_neon,
     runs_always},
#endif
};

static const tb_level *find(const char *isa)
{
    for (size_t i = 0; i < TB_LEN(levels); i++)
        if (tb_streq(isa, tb_isas[i]))
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
        if (tb_streq(limit, tb_isas[i]))
            break;
    }
    return found;
}

static tb_dtype stored(tb_dtype t)
{
    return t == TB_BF16 ? TB_F32 : t;
}

const tb_kern *tb_kern_get(const tb_ctx *ctx, tb_dtype dtype)
{
    return best(tb_ctx_isa_limit(ctx))->kern[stored(dtype)];
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

tb_gemm_part_fn tb_gemm_bf16_get(const char *limit)
{
#if defined(__x86_64__)
    if (best(limit)->runs == runs_avx512 && cpu_has_bf16())
        return tb_gemm_bf16_avx512;
#endif
    (void)limit;
    return NULL;
}

bool tb_gemm_has_amx(void)
{
#if defined(__x86_64__)
    return cpu_has_amx();
#else
    return false;
#endif
}

const tb_k_attn_passes *tb_attn_passes(const tb_ctx *ctx, tb_dtype dtype)
{
    const tb_level *level = best(tb_ctx_isa_limit(ctx));
    return level->attn && !tb_ctx_is_exact(ctx) ? level->attn[dtype]
                                                : level->kern[dtype]->attn;
}
