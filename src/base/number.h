/* SPDX-License-Identifier: MIT */
/* Numbers that are the same on every machine: text of a double and back,
 * exp log tanh erf sin cos in float and double, and counter-based random
 * numbers. Native and wasm builds share these sources and these bits. */
#ifndef TB_BASE_NUMBER_H
#define TB_BASE_NUMBER_H

#include "base/base.h"

/* --- text --------------------------------------------------------------- */

enum { TB_DOUBLE_CHARS = 40 };

/** tb_double_text - shortest decimal that reads back to v (exact, round to
 * even); "nan", "inf", "-inf". Returns the length. Integers below 1e15 print
 * without exponent, as "3"; -0.0 prints "-0". JSON-safe for finite v. */
size_t tb_double_text(double v, char out[TB_DOUBLE_CHARS]);
/** The same for a float: shortest text that reads back to the float. */
size_t tb_float_text(float v, char out[TB_DOUBLE_CHARS]);

/** tb_double_parse - correctly rounded; reads the longest number at s, at
 * most n bytes: [+-]digits[.digits][e[+-]digits]. Returns the bytes read, 0
 * if there is none. Too large gives inf, too small 0. Locale-independent; does
 * not read nan or inf. */
size_t tb_double_parse(const char *s, size_t n, double *out);

/* --- functions ---------------------------------------------------------- */

/* Bounds in units in the last place stand beside the definitions
 * (math_inline.h, trig.c, pow.c); tests/unit/test_base_math.c asserts them. NaN
 * in, NaN out. Loops include math_inline.h, whose functions vectorise. */
double tb_exp(double x);
double tb_log(double x);
double tb_tanh(double x);
double tb_erf(double x);
double tb_sin(double x);
double tb_cos(double x);
double tb_sqrt(double x);          /* correctly rounded */
double tb_pow(double x, double y); /* special cases as C; <= 1 ulp */
float tb_expf(float x);
float tb_logf(float x);
float tb_tanhf(float x);
float tb_erff(float x);
float tb_sinf(float x);
float tb_cosf(float x);
float tb_sqrtf(float x);
double tb_fabs(double x);
bool tb_isfinite(double x);

/* --- random numbers ----------------------------------------------------- */

/** tb_hash - 64-bit hash of a string (FNV-1a, then mixed). */
uint64_t tb_hash(const void *data, size_t n);

/** A random number is a pure function of (seed, stream, counter): Philox
 * 4x32-10, Salmon et al. 2011. `stream` is usually tb_hash of a tensor name. */
typedef struct tb_rng {
    uint64_t seed, stream;
} tb_rng;

tb_rng tb_rng_make(uint64_t seed, const char *stream);
uint64_t tb_rng_u64(tb_rng r, uint64_t counter);
/** 32 bits for every counter: four of them share one block, so that a mask is
 * cheap (kernels.h has the same for many at once). */
uint32_t tb_rng_u32(tb_rng r, uint64_t counter);
/** tb_rng_drops - is element `counter` dropped at rate p? */
bool tb_rng_drops(tb_rng r, uint64_t counter, double p);
/** Uniform in [0, 1), 53 bits. */
double tb_rng_uniform(tb_rng r, uint64_t counter);
/** Standard normal (Box-Muller on tb_log, tb_sin, tb_cos). */
double tb_rng_normal(tb_rng r, uint64_t counter);
/** Unbiased integer in [0, n), n > 0. */
uint64_t tb_rng_below(tb_rng r, uint64_t counter, uint64_t n);

#endif
