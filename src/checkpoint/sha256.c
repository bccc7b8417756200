/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4, section 6.2), for file hashes people compare with
 * other tools. */
#include "base/base.h"
#include "tollbooth/checkpoint.h"

static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n)
{
    return (x >> n) | (x << (32 - n));
}

static void schedule(const unsigned char block[64], uint32_t w[64])
{
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        uint32_t a = w[t - 15], b = w[t - 2];
        w[t] = w[t - 16] + w[t - 7] +
               (rotate(a, 7) ^ rotate(a, 18) ^ (a >> 3)) +
               (rotate(b, 17) ^ rotate(b, 19) ^ (b >> 10));
    }
}

/* The paper's a..h are v[0]..v[7]. */
static void compress(uint32_t h[8], const unsigned char block[64])
{
    uint32_t w[64], v[8];
    schedule(block, w);
    memcpy(v, h, sizeof(v));
    for (int t = 0; t < 64; t++) {
        uint32_t e = v[4], a = v[0];
        uint32_t t1 = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                      ((e & v[5]) ^ (~e & v[6])) + round_constant[t] + w[t];
        uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof(*v));
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

/* The last one or two blocks: the rest, 0x80, zeros, the length in bits. */
static void finish(uint32_t h[8], const unsigned char *rest, size_t n,
                   uint64_t bytes)
{
    unsigned char tail[128] = {0};
    memcpy(tail, rest, n);
    tail[n] = 0x80;
    size_t end = n < 56 ? 64 : 128;
    for (size_t i = 0; i < 8; i++)
        tail[end - 1 - i] = (unsigned char)(bytes * 8 >> (8 * i));
    compress(h, tail);
    if (end == 128)
        compress(h, tail + 64);
}

void tb_sha256_hex(const void *data, size_t n, char out[65])
{
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    static const unsigned char none[1];
    const unsigned char *p = n == 0 ? none : data;
    size_t i = 0;
    for (; n - i >= 64; i += 64)
        compress(h, p + i);
    finish(h, p + i, n - i, n);
    for (size_t k = 0; k < 64; k++)
        out[k] = "0123456789abcdef"[h[k / 8] >> (28 - 4 * (k % 8)) & 15];
    out[64] = 0;
}
