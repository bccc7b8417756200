/* SPDX-License-Identifier: MIT */
/* Decimal digits of a binary number: the shortest that identify it, or all of
 * them. Text of numbers and the formatter are built on this. */
#ifndef TB_BASE_DIGITS_H
#define TB_BASE_DIGITS_H

#include "base/base.h"

/* A double has at most 767 significant digits (the largest subnormal). */
enum { TB_DIGITS_MAX = 800 };

/** The number 0.d[0]d[1]...d[n-1] * 10^point; no leading, no trailing zeros;
 * n = 0 and point = 1 for zero. */
typedef struct tb_digits {
    int n, point;
    char d[TB_DIGITS_MAX]; /* '0'..'9', not terminated */
} tb_digits;

/** A finite number as mant * 2^exp, and whether the gap to its lower neighbour
 * is half the gap to the upper one (powers of two). */
typedef struct tb_binary {
    uint64_t mant;
    int exp;
    bool negative, lower_closer;
} tb_binary;

uint64_t tb_double_bits(double v);
tb_binary tb_binary_of_double(double v);
tb_binary tb_binary_of_float(float v);

/** tb_digits_shortest - fewest digits that read back to the same number when
 * the reader rounds to even; among those the closest. */
void tb_digits_shortest(tb_binary b, tb_digits *out);
/** tb_digits_exact - every digit. */
void tb_digits_exact(tb_binary b, tb_digits *out);
/** tb_digits_round - keep the first n digits (n may be <= 0), nearest, ties
 * to even: exact when applied to tb_digits_exact. */
void tb_digits_round(tb_digits *g, int n);

#endif
