/* SPDX-License-Identifier: MIT */
/* Means over tokens (C119), losses of untrained models (C127), and validation
 * without any dropout. */
#include "test_train_help.h"
#include "train/trainer.h"

/* C119: 6 over 2 tokens and 4 over 8 */
TB_TEST(mean_over_tokens)
{
    tb_mean m = {0};
    TB_CHECK(T, tb_mean_of(&m) != tb_mean_of(&m));
    tb_mean_add(&m, 6.0 / 2, 2);
    tb_mean_add(&m, 4.0 / 8, 8);
    TB_NEAR(T, tb_mean_of(&m), 1, 1e-15);
    tb_mean_add(&m, __builtin_nan(""), 8); /* C125: never skipped */
    TB_CHECK(T, tb_mean_of(&m) != tb_mean_of(&m));
}

/* The validation loss of a run that does not learn. */
static double untrained(tb_test *T, const char *block, double dropout,
                        size_t batch, size_t windows)
{
    help_log log = {0};
    tb_train_result r = {0};
    tb_train_spec s = help_spec(help_text("rhyme.txt", 40), NULL);
    s.settings.dropout = dropout;
    s.batch = batch;
    s.val_windows = windows;
    s.lr = 0;
    s.steps = 1;
    TB_CHECK(T, help_train(T, block, &s, &log, &r, NULL, 0) == TB_OK);
    return r.val_loss;
}

/* Rates of the settings, on attention and the stem, and fixed in the text. */
TB_TEST(validates_without_dropout)
{
    static const char *const fixed = "x = x + drop_branch(drop(F(norm(x)), "
                                     "0.5), 0.25)\nfinal:\n x = norm(x)\n";
    static const char *const none =
        "x = x + F(norm(x))\nfinal:\n x = norm(x)\n";
    double want = untrained(T, none, 0, 3, 4);
    double a = untrained(T, none, 0.5, 3, 4);
    double b = untrained(T, fixed, 0.3, 3, 4);
    TB_SAME(T, &a, &want, sizeof want);
    TB_SAME(T, &b, &want, sizeof want);
}

/* Windows that do not fill the last batch count as much as the others. */
TB_TEST(validation_does_not_depend_on_the_batch)
{
    double want = untrained(T, "pre-ln", 0, 1, 7);
    for (size_t batch = 2; batch < 9; batch++)
        TB_NEAR(T, untrained(T, "pre-ln", 0, batch, 7), want, 1e-6);
    /* more windows than there are: all of them */
    TB_NEAR(T, untrained(T, "pre-ln", 0, 5, 1000),
            untrained(T, "pre-ln", 0, 1, 5000), 1e-6);
}

/* C127: a head of zeros guesses */
TB_TEST(first_loss_of_a_zero_head)
{
    help_log log = {0};
    tb_train_result r;
    tb_train_spec s = help_spec(help_text("rhyme.txt", 20), NULL);
    s.tokenizer = "byte";
    s.settings.init = "head: zeros";
    s.steps = 1;
    TB_CHECK(T, help_train(T, "pre-ln", &s, &log, &r, NULL, 0) == TB_OK);
    TB_NEAR(T, log.loss[1], 5.5451774, 1e-6);
}

TB_TEST(plateau_of_fifths)
{
    tb_progress p;
    tb_progress_init(&p);
    for (p.step = 1; p.step <= 23; p.step++)
        tb_progress_loss(&p, 23, 1);
    TB_CHECK(T, p.first_loss == 1 && tb_progress_plateau(&p, 23));
    tb_progress_init(&p);
    for (p.step = 1; p.step <= 23; p.step++)
        tb_progress_loss(&p, 23, p.step > 18 ? 0.98 : 1);
    TB_CHECK(T, !tb_progress_plateau(&p, 23));
}

/* A text of one window, and nothing learned: only the masks can differ. */
TB_TEST(masks_change_from_step_to_step)
{
    for (int dropout = 0; dropout < 2; dropout++) {
        help_log log = {0};
        tb_train_result r;
        tb_train_spec s = help_spec(tmp_text("one.txt", "abcdefgabcdef"), NULL);
        s.settings.dropout = dropout ? 0.2 : 0;
        s.val_fraction = 0;
        s.lr = 0;
        s.steps = 3;
        TB_CHECK(T, help_train(T, "pre-ln", &s, &log, &r, NULL, 0) == TB_OK);
        TB_CHECK(T, (log.loss[1] == log.loss[2]) == !dropout);
        TB_CHECK(T, (log.loss[2] == log.loss[3]) == !dropout);
    }
}
