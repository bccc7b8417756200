/* SPDX-License-Identifier: MIT */
/* The part of the kernels that does not depend on the type: lanes, the
 * folding tree, and what makes compilers vectorise. */
#ifndef TB_KERNELS_KERN_COMMON_H
#define TB_KERNELS_KERN_COMMON_H

#include "base/math_inline.h"
#include "base/number.h"
#include "kernels/kern_tables.h"

/* A block of 16 must see its constant trip count, else it stays scalar. */
#define TB_INLINE static inline __attribute__((always_inline))

/* Iteration i touches element i only, so an output may be an input. clang
 * warns where it cannot obey: without SIMD or optimisation. */
#if defined(__clang__) && defined(__OPTIMIZE__) && !defined(__wasm__)
#    define TB_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__) && !defined(__clang__)
#    define TB_IVDEP _Pragma("GCC ivdep")
#else
#    define TB_IVDEP
#endif

/* For loops over the lanes: gcc would otherwise unroll some of them into 16
 * scalars before its vectoriser runs. */
#if defined(__GNUC__) && !defined(__clang__)
#    define TB_WHOLE _Pragma("GCC unroll 1")
#else
#    define TB_WHOLE
#endif

/* For loops over the elements of a vector, where gcc needs no help. */
#if defined(__clang__)
#    define TB_UNROLL8 _Pragma("clang loop unroll(full)")
#else
#    define TB_UNROLL8
#endif

enum { TB_LANES = 16 };

typedef double tb_d8 __attribute__((vector_size(64)));

/* 16 -> 8 -> 4 -> 2 -> 1 */
TB_INLINE double tree16(double *lane)
{
    for (int j = 0; j < 8; j++)
        lane[j] += lane[j + 8];
    for (int j = 0; j < 4; j++)
        lane[j] += lane[j + 4];
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

/* Words of 16 blocks of Philox 4x32-10 at once: those of tb_rng_u32 for the
 * counters 4 block, 4 block + 1, ... */
enum { TB_DRAWN = 4 * TB_LANES };

static inline void philox16(tb_rng rng, uint64_t block, uint32_t *out)
{
    uint32_t w0[TB_LANES], w1[TB_LANES], w2[TB_LANES], w3[TB_LANES];
    uint32_t k0 = (uint32_t)rng.seed, k1 = (uint32_t)(rng.seed >> 32);
    for (uint32_t j = 0; j < TB_LANES; j++) {
        w0[j] = (uint32_t)(block + j);
        w1[j] = (uint32_t)((block + j) >> 32);
        w2[j] = (uint32_t)rng.stream;
        w3[j] = (uint32_t)(rng.stream >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int j = 0; j < TB_LANES; j++) {
            uint64_t p0 = (uint64_t)w0[j] * 0xD2511F53u;
            uint64_t p1 = (uint64_t)w2[j] * 0xCD9E8D57u;
            w0[j] = (uint32_t)(p1 >> 32) ^ w1[j] ^ k0;
            w1[j] = (uint32_t)p1;
            w2[j] = (uint32_t)(p0 >> 32) ^ w3[j] ^ k1;
            w3[j] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int j = 0; j < TB_LANES; j++) {
        out[4 * j] = w0[j];
        out[4 * j + 1] = w1[j];
        out[4 * j + 2] = w2[j];
        out[4 * j + 3] = w3[j];
    }
}

/* The power of two that brings |x| into [0.5, 2); 1 for 0, inf and nan. */
TB_INLINE double pow2_near_inverse(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint64_t e = (bits >> 52) & 0x7ff;
    if (e == 0x7ff || x == 0)
        return 1;
    if (e < 2) /* subnormal: the largest power there is will do */
        e = 2;
    if (e > 2044)
        e = 2044;
    bits = (2046 - e) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return scale;
}

#endif
