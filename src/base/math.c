/* SPDX-License-Identifier: MIT */
/* Our own elementary functions; under construction: sin, cos, log follow. */
#include "base/number.h"

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

double tb_log(double x)
{
    return __builtin_log(x);
}

double tb_cos(double x)
{
    return __builtin_cos(x);
}
