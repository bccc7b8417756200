/* SPDX-License-Identifier: MIT */
/* C123: in an exact context twenty steps give the same bits with any number of
 * threads, dropout included. */
#include "test_train_help.h"

TB_TEST(same_bits_for_any_number_of_threads)
{
    static const int threads[] = {1, 2, 3, 8};
    static const char *const dirs[] = {"t1", "t2", "t3", "t8"};
    char first_dir[1024], dir[1024];
    help_log first = {0};
    tb_ctx_exact(T->ctx, true);
    for (size_t i = 0; i < TB_LEN(threads); i++) {
        help_log log = {0};
        tb_train_result r;
        snprintf(dir, sizeof dir, "%s", tmp_path(dirs[i]));
        tb_train_spec s = help_spec(help_text("rhyme.txt", 20), dir);
        s.settings.width = 64;
        s.settings.context = 48;
        s.settings.dropout = 0.1;
        s.steps = 20;
        tb_ctx_threads(T->ctx, threads[i]);
        TB_CHECK(T, help_train(T, "pre-ln", &s, &log, &r, NULL, 0) == TB_OK);
        if (i == 0) {
            first = log;
            snprintf(first_dir, sizeof first_dir, "%s", dir);
        }
        TB_SAME(T, log.loss, first.loss, sizeof log.loss);
        TB_SAME(T, log.grad_norm, first.grad_norm, sizeof log.grad_norm);
        help_same_file(T, first_dir, dir, TB_DIR_STATE);
    }
    tb_ctx_threads(T->ctx, 0);
    tb_ctx_exact(T->ctx, false);
}
