/* SPDX-License-Identifier: MIT */
/* Small unsigned integers of up to 4096 bits, for exact conversion between
 * binary and decimal. No overflow check: callers bound their exponents. */
#ifndef TB_BASE_BIGNUM_H
#define TB_BASE_BIGNUM_H

#include <stdbool.h>
#include <stdint.h>

/* The largest number met: 10^1130 as a denominator of tb_double_parse. */
enum { TB_BIG_LIMBS = 128 };

typedef struct tb_big {
    int n;                    /* limbs in use; the top one is not 0 */
    uint32_t d[TB_BIG_LIMBS]; /* least significant first */
} tb_big;

void tb_big_set(tb_big *a, uint64_t v);
void tb_big_copy(tb_big *a, const tb_big *b);
/** a = a * m + add */
void tb_big_mul_add(tb_big *a, uint32_t m, uint32_t add);
void tb_big_mul_pow5(tb_big *a, int k);
/** a = a * 10^k, k >= 0 */
void tb_big_mul_pow10(tb_big *a, int k);
void tb_big_shl(tb_big *a, int bits);
/** a = a - b, a >= b */
void tb_big_sub(tb_big *a, const tb_big *b);
/** -1, 0, 1 as a <, =, > b; and the same for a + b against c */
int tb_big_cmp(const tb_big *a, const tb_big *b);
int tb_big_cmp_sum(const tb_big *a, const tb_big *b, const tb_big *c);
/** a = a / m; returns the remainder */
uint32_t tb_big_div(tb_big *a, uint32_t m);
/** number of bits; 0 for 0 */
int tb_big_bits(const tb_big *a);

#endif
