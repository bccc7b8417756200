/* SPDX-License-Identifier: MIT */
/* Schoolbook arithmetic on 32-bit limbs: 64-bit products are native
 * everywhere, 128-bit ones are a library call on wasm. */
#include "base/bignum.h"

#include <string.h>

static void trim(tb_big *a)
{
    while (a->n > 0 && a->d[a->n - 1] == 0)
        a->n--;
}

void tb_big_set(tb_big *a, uint64_t v)
{
    a->d[0] = (uint32_t)v;
    a->d[1] = (uint32_t)(v >> 32);
    a->n = 2;
    trim(a);
}

void tb_big_copy(tb_big *a, const tb_big *b)
{
    a->n = b->n;
    memcpy(a->d, b->d, (size_t)b->n * sizeof b->d[0]);
}

void tb_big_mul_add(tb_big *a, uint32_t m, uint32_t add)
{
    uint64_t carry = add;
    for (int i = 0; i < a->n; i++) {
        carry += (uint64_t)a->d[i] * m;
        a->d[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        a->d[a->n++] = (uint32_t)carry;
}

void tb_big_mul_pow5(tb_big *a, int k)
{
    for (; k >= 13; k -= 13)
        tb_big_mul_add(a, 1220703125u, 0); /* 5^13, the last that fits */
    for (; k > 0; k--)
        tb_big_mul_add(a, 5, 0);
}

void tb_big_mul_pow10(tb_big *a, int k)
{
    tb_big_mul_pow5(a, k);
    tb_big_shl(a, k);
}

void tb_big_shl(tb_big *a, int bits)
{
    int limbs = bits / 32, shift = bits % 32;
    if (a->n == 0)
        return;
    a->d[a->n] = 0;
    for (int i = a->n; i >= 0; i--) {
        uint64_t pair = (uint64_t)a->d[i] << 32 | (i > 0 ? a->d[i - 1] : 0);
        a->d[i + limbs] = (uint32_t)(pair >> (32 - shift));
    }
    memset(a->d, 0, (size_t)limbs * sizeof a->d[0]);
    a->n += limbs + 1;
    trim(a);
}

void tb_big_sub(tb_big *a, const tb_big *b)
{
    int64_t borrow = 0;
    for (int i = 0; i < a->n; i++) {
        borrow += (int64_t)a->d[i] - (i < b->n ? (int64_t)b->d[i] : 0);
        a->d[i] = (uint32_t)borrow;
        borrow = borrow < 0 ? -1 : 0;
    }
    trim(a);
}

int tb_big_cmp(const tb_big *a, const tb_big *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
        if (a->d[i] != b->d[i])
            return a->d[i] < b->d[i] ? -1 : 1;
    return 0;
}

int tb_big_cmp_sum(const tb_big *a, const tb_big *b, const tb_big *c)
{
    tb_big sum;
    uint64_t carry = 0;
    int n = a->n > b->n ? a->n : b->n;
    for (int i = 0; i < n; i++) {
        carry += (i < a->n ? a->d[i] : 0u);
        carry += (i < b->n ? b->d[i] : 0u);
        sum.d[i] = (uint32_t)carry;
        carry >>= 32;
    }
    sum.d[n] = (uint32_t)carry;
    sum.n = n + 1;
    trim(&sum);
    return tb_big_cmp(&sum, c);
}

uint32_t tb_big_div(tb_big *a, uint32_t m)
{
    uint64_t rest = 0;
    for (int i = a->n - 1; i >= 0; i--) {
        rest = rest << 32 | a->d[i];
        a->d[i] = (uint32_t)(rest / m);
        rest %= m;
    }
    trim(a);
    return (uint32_t)rest;
}

int tb_big_bits(const tb_big *a)
{
    if (a->n == 0)
        return 0;
    return 32 * a->n - __builtin_clz(a->d[a->n - 1]);
}
