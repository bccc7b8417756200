/* SPDX-License-Identifier: MIT */
/* The loop that measures what the registers reach: it must be run. */
#include "kernels/kernels.h"
#include "tb_test.h"

/* Every sum ends at the fixed point of x/2 + 1/2. */
TB_TEST(peak_runs)
{
    for (size_t i = 0; tb_isas[i]; i++) {
        float out = 0;
        if (!tb_kern_isa(tb_isas[i], TB_F32))
            continue;
        double one = tb_kern_peak(tb_isas[i], 1, &out);
        TB_CHECK(T, one >= 2 * 16);
        TB_CHECK(T, tb_kern_peak(tb_isas[i], 100, &out) == 100 * one);
        TB_CHECK(T, out == (float)(int)out && out > 1);
    }
}
