/* SPDX-License-Identifier: MIT */
/* The part of the kernels that does not depend on the type: lanes, the
 * folding tree, and what makes compilers vectorise. */
#ifndef TB_KERNELS_KERN_COMMON_H
#define TB_KERNELS_KERN_COMMON_H

#if defined(__x86_64__)
#    include <immintrin.h>
#elif defined(__wasm_simd128__)
#    include <wasm_simd128.h>
#endif

#include "base/number.h"
#include "base/trig_inline.h"
#include "kernels/kern_tables.h"

/* A block of 16 must see its constant trip count, else it stays scalar. */
#define TB_INLINE static inline __attribute__((always_inline))

/* TB_SMALL: one copy of a loop for all cases, where others have one for each,
 * which is faster on long rows and has the same bits. A page waits for every
 * byte. TB_PER_CASE: a function whose copies these are. TB_APART: registers are
 * given out for it alone. */
#ifndef TB_SMALL
#    define TB_SMALL 0
#endif
#define TB_APART static __attribute__((noinline))
#if TB_SMALL
#    define TB_PER_CASE static __attribute__((noinline))
#else
#    define TB_PER_CASE TB_INLINE
#endif

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

/* gcc would rather load a vector again than keep it in a register. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__)
#    define TB_ONCE(v) __asm__("" : "+v"(v))
#else
#    define TB_ONCE(v) ((void)(v))
#endif

/* gcc would count the address of every line of an unrolled loop apart. */
#if defined(__GNUC__) && !defined(__clang__)
#    define TB_BASE(p) __asm__("" : "+r"(p))
#else
#    define TB_BASE(p) ((void)(p))
#endif

enum { TB_LANES = 16 };

typedef double tb_d8 __attribute__((vector_size(64)));

/* 32 or 64 bytes past the caches, where the processor can: half the traffic of
 * a store that first reads the line. `to` is aligned to as many. */
TB_INLINE void tb_stream(void *to, const void *from, size_t bytes)
{
#if defined(__AVX512F__)
    if (bytes == 64) {
        _mm512_stream_si512((__m512i *)to, _mm512_loadu_si512(from));
        return;
    }
#endif
#if defined(__AVX2__)
    for (size_t i = 0; i < bytes / 32; i++)
        _mm256_stream_si256((__m256i *)to + i,
                            _mm256_loadu_si256((const __m256i *)from + i));
#elif defined(__SSE2__)
    for (size_t i = 0; i < bytes / 16; i++)
        _mm_stream_si128((__m128i *)to + i,
                         _mm_loadu_si128((const __m128i *)from + i));
#else
    memcpy(to, from, bytes);
#endif
}

/* Orders what was streamed before what another thread is told. */
TB_INLINE void tb_stream_end(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* 8 -> 4 -> 2 -> 1 */
TB_INLINE double tree8(double *lane)
{
    for (int j = 0; j < 4; j++)
        lane[j] += lane[j + 4];
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

/* 16 -> 8 -> 4 -> 2 -> 1 */
TB_INLINE double tree16(double *lane)
{
    for (int j = 0; j < 8; j++)
        lane[j] += lane[j + 8];
    return tree8(lane);
}

TB_INLINE void philox_start(tb_rng rng, uint64_t block, uint32_t w[4][TB_LANES])
{
    TB_WHOLE
    for (uint32_t j = 0; j < TB_LANES; j++) {
        w[0][j] = (uint32_t)(block + j);
        w[1][j] = (uint32_t)((block + j) >> 32);
        w[2][j] = (uint32_t)rng.stream;
        w[3][j] = (uint32_t)(rng.stream >> 32);
    }
}

#if defined(__wasm_simd128__)
/* Four products of 64 bits in halves. `m` is kept from clang, which would widen
 * it ahead and take a product of 64-bit operands: three instructions on most
 * processors, and twice the time for all. */
TB_INLINE void philox_product(v128_t x, v128_t m, v128_t *low, v128_t *high)
{
    __asm__ volatile("" : "+r"(m));
    v128_t a = wasm_u64x2_extmul_low_u32x4(x, m);
    v128_t b = wasm_u64x2_extmul_high_u32x4(x, m);
    *low = wasm_i32x4_shuffle(a, b, 0, 2, 4, 6);
    *high = wasm_i32x4_shuffle(a, b, 1, 3, 5, 7);
}

/* Columns [j, j + 4). */
TB_INLINE void philox_rounds(tb_rng rng, int j, uint32_t w[4][TB_LANES])
{
    const v128_t m0 = wasm_u32x4_splat(0xD2511F53u);
    const v128_t m1 = wasm_u32x4_splat(0xCD9E8D57u);
    uint32_t k0 = (uint32_t)rng.seed, k1 = (uint32_t)(rng.seed >> 32);
    v128_t x[4], low0, high0, low1, high1;
    for (int i = 0; i < 4; i++)
        x[i] = wasm_v128_load(&w[i][j]);
    for (int round = 0; round < 10; round++) {
        philox_product(x[0], m0, &low0, &high0);
        philox_product(x[2], m1, &low1, &high1);
        x[0] = wasm_v128_xor(wasm_v128_xor(high1, x[1]), wasm_u32x4_splat(k0));
        x[1] = low1;
        x[2] = wasm_v128_xor(wasm_v128_xor(high0, x[3]), wasm_u32x4_splat(k1));
        x[3] = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++)
        wasm_v128_store(&w[i][j], x[i]);
}
#else
TB_INLINE void philox_all_rounds(tb_rng rng, uint32_t w[4][TB_LANES])
{
    uint32_t k0 = (uint32_t)rng.seed, k1 = (uint32_t)(rng.seed >> 32);
    for (int round = 0; round < 10; round++) {
        TB_WHOLE
        for (int j = 0; j < TB_LANES; j++) {
            uint64_t p0 = (uint64_t)w[0][j] * 0xD2511F53u;
            uint64_t p1 = (uint64_t)w[2][j] * 0xCD9E8D57u;
            w[0][j] = (uint32_t)(p1 >> 32) ^ w[1][j] ^ k0;
            w[1][j] = (uint32_t)p1;
            w[2][j] = (uint32_t)(p0 >> 32) ^ w[3][j] ^ k1;
            w[3][j] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}
#endif

/* 16 blocks of Philox 4x32-10 at once, block + j in column j: w[i][j] is what
 * tb_rng_u32 gives for the counter 4 (block + j) + i. */
static inline void philox16(tb_rng rng, uint64_t block, uint32_t w[4][TB_LANES])
{
    philox_start(rng, block, w);
#if defined(__wasm_simd128__)
    for (int j = 0; j < TB_LANES; j += 4)
        philox_rounds(rng, j, w);
#else
    philox_all_rounds(rng, w);
#endif
}

/* The uniform number of tb_rng_uniform from two words: 53 bits, put into the
 * mantissas of 2^52 and 2^84, because few sets convert 64-bit integers. */
TB_INLINE double unit53(uint32_t low, uint32_t high)
{
    uint64_t bits = ((uint64_t)high << 32 | low) >> 11;
    double l = tb_inline_from_bits((bits & 0xFFFFFFFFu) | 0x4330000000000000u);
    double h = tb_inline_from_bits(bits >> 32 | 0x4530000000000000u);
    return ((h - 0x1p84) + (l - 0x1p52)) * 0x1p-53;
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
