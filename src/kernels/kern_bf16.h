/* SPDX-License-Identifier: MIT */
/* bf16, the upper half of a float: rounded to nearest even by integer
 * arithmetic, so that every instruction set and every mode of the processor
 * gives the same bits. Subnormal numbers are rounded like all others, what is
 * too large becomes infinity, a nan stays one (quiet, with its upper bits). */
#ifndef TB_KERNELS_KERN_BF16_H
#define TB_KERNELS_KERN_BF16_H

#include "kernels/kern_common.h"

/* The bits of a float to those whose upper half is the bf16; the lower half is
 * what the rounding left there. */
TB_INLINE uint32_t bf16_round(uint32_t u)
{
    uint32_t even = u + 0x7fff + ((u >> 16) & 1);
    return (u & 0x7fffffff) > 0x7f800000 ? u | 0x400000 : even;
}

TB_INLINE uint16_t bf16_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)(bf16_round(u) >> 16);
}

/* x rounded to bf16 and back, which is exact */
TB_INLINE float bf16_as_float(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    u = bf16_round(u) & 0xffff0000;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline void to_bf16(size_t n, const void *x_, uint16_t *y)
{
    const float *x = x_;
    TB_IVDEP
    for (size_t i = 0; i < n; i++)
        y[i] = bf16_of(x[i]);
}

static inline void round_bf16(size_t n, const void *x_, void *y_)
{
    const float *x = x_;
    float *y = y_;
    TB_IVDEP
    for (size_t i = 0; i < n; i++)
        y[i] = bf16_as_float(x[i]);
}

#endif
