/* SPDX-License-Identifier: MIT */
/* Elementary functions as ordinary calls: those of math_inline.h, and sin,
 * cos and pow, which no kernel needs in a loop. */
#include "base/math_inline.h"
#include "base/number.h"

double tb_exp(double x)
{
    return tb_inline_exp(x);
}

double tb_log(double x)
{
    return tb_inline_log(x);
}

double tb_tanh(double x)
{
    return tb_inline_tanh(x);
}

double tb_erf(double x)
{
    return tb_inline_erf(x);
}

float tb_expf(float x)
{
    return tb_inline_expf(x);
}

float tb_logf(float x)
{
    return tb_inline_logf(x);
}

float tb_tanhf(float x)
{
    return tb_inline_tanhf(x);
}

float tb_erff(float x)
{
    return tb_inline_erff(x);
}

/* A machine instruction on every target, correctly rounded by IEEE 754. */
double tb_sqrt(double x)
{
    return __builtin_sqrt(x);
}

float tb_sqrtf(float x)
{
    return __builtin_sqrtf(x);
}

double tb_fabs(double x)
{
    return __builtin_fabs(x);
}

bool tb_isfinite(double x)
{
    return x - x == 0;
}

double tb_cos(double x)
{
    return __builtin_cos(x);
}
