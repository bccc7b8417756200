/* SPDX-License-Identifier: MIT */
/* Counter-based random numbers: a value depends on (seed, stream, counter)
 * only, so any element of any tensor can be made alone and in any order. */
#include "base/number.h"

/* --- hash --------------------------------------------------------------- */

/* Steele, Lea, Flood 2014 (SplitMix64): FNV alone leaves the high bits of
 * short strings poorly mixed. */
static uint64_t mix64(uint64_t h)
{
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
    return h ^ (h >> 31);
}

uint64_t tb_hash(const void *data, size_t n)
{
    const unsigned char *p = data;
    uint64_t h = 0xCBF29CE484222325u; /* FNV-1a offset and prime */
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001B3u;
    return mix64(h);
}

/* --- Philox 4x32-10, Salmon, Moraes, Dror, Shaw 2011 --------------------- */

typedef struct block {
    uint32_t w[4];
} block;

/* counter = (counter, stream), key = seed, low words first */
static block philox(tb_rng r, uint64_t counter)
{
    uint32_t k0 = (uint32_t)r.seed, k1 = (uint32_t)(r.seed >> 32);
    block b = {{(uint32_t)counter, (uint32_t)(counter >> 32),
                (uint32_t)r.stream, (uint32_t)(r.stream >> 32)}};
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)b.w[0] * 0xD2511F53u;
        uint64_t p1 = (uint64_t)b.w[2] * 0xCD9E8D57u;
        b = (block){{(uint32_t)(p1 >> 32) ^ b.w[1] ^ k0, (uint32_t)p1,
                     (uint32_t)(p0 >> 32) ^ b.w[3] ^ k1, (uint32_t)p0}};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return b;
}

static uint64_t low64(block b)
{
    return (uint64_t)b.w[1] << 32 | b.w[0];
}

static uint64_t high64(block b)
{
    return (uint64_t)b.w[3] << 32 | b.w[2];
}

/* --- distributions ------------------------------------------------------ */

tb_rng tb_rng_make(uint64_t seed, const char *stream)
{
    return (tb_rng){seed, tb_hash(stream, strlen(stream))};
}

uint64_t tb_rng_u64(tb_rng r, uint64_t counter)
{
    return low64(philox(r, counter));
}

uint32_t tb_rng_u32(tb_rng r, uint64_t counter)
{
    return philox(r, counter / 4).w[counter % 4];
}

bool tb_rng_drops(tb_rng r, uint64_t counter, double p)
{
    return (double)tb_rng_u32(r, counter) < p * 0x1p32;
}

static double unit53(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

double tb_rng_uniform(tb_rng r, uint64_t counter)
{
    return unit53(tb_rng_u64(r, counter));
}

/* Box and Muller 1958; the logarithm's argument is in (0, 1]. */
double tb_rng_normal(tb_rng r, uint64_t counter)
{
    const double two_pi = 0x1.921fb54442d18p+2;
    block b = philox(r, counter);
    double radius = tb_sqrt(-2 * tb_log(1 - unit53(low64(b))));
    return radius * tb_cos(two_pi * unit53(high64(b)));
}

/* Lemire 2019 would need a 128-bit product; here values of the last, partial
 * copy of [0, n) are rejected and drawn again, from the second half of the
 * block and then from further streams: still a pure function of counter. */
uint64_t tb_rng_below(tb_rng r, uint64_t counter, uint64_t n)
{
    uint64_t partial = (UINT64_MAX % n + 1) % n; /* 2^64 mod n */
    for (;;) {
        block b = philox(r, counter);
        if (low64(b) <= UINT64_MAX - partial)
            return low64(b) % n;
        if (high64(b) <= UINT64_MAX - partial)
            return high64(b) % n;
        r.stream = mix64(r.stream + 0x9E3779B97F4A7C15u);
    }
}
