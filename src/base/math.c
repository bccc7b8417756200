/* SPDX-License-Identifier: MIT */
/* The functions of math_inline.h as ordinary calls; sin and cos are in trig.c,
 * pow in pow.c. */
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
