/* SPDX-License-Identifier: MIT */
/* Learning rates: C114, C115, and the ends of every schedule. */
#include "tb_test.h"
#include "tollbooth/train.h"

/* C114: d = 512, warm-up 4000, in the paper's own scale. */
TB_TEST(inverse_square_root)
{
    static const struct {
        size_t step;
        double rate;
    } cases[] = {{1, 1.7469281e-7},     {2, 3.4938562e-7},
                 {2000, 3.4938562e-4},  {4000, 6.9877124e-4},
                 {4001, 6.9868391e-4},  {8000, 4.9410588e-4},
                 {100000, 1.3975425e-4}};
    double peak = 1 / tb_sqrt(512.0 * 4000.0), before = 0;
    for (size_t i = 0; i < TB_LEN(cases); i++) {
        double got = tb_learning_rate(TB_SCHEDULE_INVSQRT, peak, 4000, 100000,
                                      cases[i].step);
        TB_NEAR(T, got / cases[i].rate, 1, 1e-6);
    }
    for (size_t s = 1; s <= 4000; s++) {
        double now = tb_learning_rate(TB_SCHEDULE_INVSQRT, peak, 4000, 9000, s);
        TB_CHECK(T, now > before);
        before = now;
    }
}

TB_TEST(inverse_square_root_without_warm_up)
{
    double unit = 1 / tb_sqrt(512);
    for (size_t s = 1; s < 100; s++)
        TB_NEAR(T, tb_learning_rate(TB_SCHEDULE_INVSQRT, unit, 0, 1000, s),
                unit / tb_sqrt((double)s), 1e-15);
}

/* C115: the first update moves, the last of the warm-up has the peak. */
TB_TEST(linear_warm_up)
{
    static const double want[] = {0.25, 0.5, 0.75, 1, 1};
    for (size_t s = 1; s <= TB_LEN(want); s++)
        TB_CHECK(T, tb_learning_rate(TB_SCHEDULE_CONSTANT, 1, 4, 10, s) ==
                        want[s - 1]);
    TB_CHECK(T, tb_learning_rate(TB_SCHEDULE_CONSTANT, 1, 0, 10, 1) == 1);
}

TB_TEST(cosine)
{
    const double lr = 0.01;
    TB_NEAR(T, tb_learning_rate(TB_SCHEDULE_COSINE, lr, 100, 1100, 100), lr,
            1e-15);
    TB_NEAR(T, tb_learning_rate(TB_SCHEDULE_COSINE, lr, 100, 1100, 600),
            lr * 0.55, 1e-15);
    TB_CHECK(T, tb_learning_rate(TB_SCHEDULE_COSINE, lr, 100, 1100, 1100) ==
                    lr * 0.1);
    for (size_t s = 100; s < 1100; s++)
        TB_CHECK(
            T, tb_learning_rate(TB_SCHEDULE_COSINE, lr, 100, 1100, s) >
                   tb_learning_rate(TB_SCHEDULE_COSINE, lr, 100, 1100, s + 1));
    /* a warm-up as long as the run never leaves it */
    TB_CHECK(T, tb_learning_rate(TB_SCHEDULE_COSINE, 1, 50, 20, 10) == 0.2);
}

TB_TEST(names)
{
    tb_schedule s;
    static const tb_schedule all[] = {TB_SCHEDULE_CONSTANT, TB_SCHEDULE_COSINE,
                                      TB_SCHEDULE_INVSQRT};
    for (size_t i = 0; i < TB_LEN(all); i++) {
        TB_OKAY(T, tb_schedule_named(T->ctx, tb_schedule_name(all[i]), &s));
        TB_CHECK(T, s == all[i]);
    }
    TB_FAILS(T, tb_schedule_named(T->ctx, "cosin", &s), TB_ERR_ARG,
             "did you mean cosine?");
}
