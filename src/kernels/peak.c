/* SPDX-License-Identifier: MIT */
/* What the registers of an instruction set multiply and add at best: the roof
 * that rates of matrix products are held against. Built with
 * -ffp-contract=fast, so that a product and its sum are one instruction where
 * the set has it; no result depends on what comes out. */
#include "kernels/kernels.h"

/* Independent sums: more than a core needs to hide how long one takes, and no
 * more than the smallest set has registers. */
enum { SUMS = 12 };

#if defined(__clang__)
#    define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#    define UNROLL _Pragma("GCC unroll 16")
#else
#    define UNROLL
#endif

/* x -> x/2 + 1/2 has its fixed point at 1: no infinities, nothing subnormal,
 * both of which are slower on some processors. */
#define PEAK(name, bytes, flags)                                               \
    typedef float name##_vec __attribute__((vector_size(bytes)));              \
    flags static double name(size_t rounds, float *out)                        \
    {                                                                          \
        enum { LANES = (bytes) / sizeof(float) };                              \
        name##_vec sum[SUMS], all = {0};                                       \
        const name##_vec half = all + 0.5F;                                    \
        UNROLL                                                                 \
        for (int i = 0; i < SUMS; i++)                                         \
            sum[i] = all + (float)(i + 2);                                     \
        for (size_t r = 0; r < rounds; r++) {                                  \
            UNROLL                                                             \
            for (int i = 0; i < SUMS; i++)                                     \
                sum[i] = sum[i] * half + half;                                 \
        }                                                                      \
        UNROLL                                                                 \
        for (int i = 0; i < SUMS; i++)                                         \
            all += sum[i];                                                     \
        *out = all[0];                                                         \
        return 2.0 * SUMS * LANES * (double)rounds;                            \
    }

PEAK(peak_least, 16, )
#if defined(__x86_64__)
PEAK(peak_avx2, 32, __attribute__((target("avx2,fma"))))
PEAK(peak_avx512, 64, __attribute__((target("avx512f,fma"))))
#endif

static const struct {
    const char *isa;
    double (*run)(size_t rounds, float *out);
} peaks[] = {
#if defined(__x86_64__)
    {"avx512", peak_avx512},
    {"avx2", peak_avx2},
#endif
    {NULL, peak_least},
};

double tb_kern_peak(const char *isa, size_t rounds, float *out)
{
    size_t i = 0;
    while (peaks[i].isa && !tb_streq(peaks[i].isa, isa))
        i++;
    return peaks[i].run(rounds, out);
}
