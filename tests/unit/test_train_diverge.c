/* SPDX-License-Identifier: MIT */
/* Divergence stops before a weight is touched and says where and what is left
 * (C051, C125). */
#include "test_train_help.h"

/* Overwrite element 0 of a tensor inside a state file. */
static void plant(tb_test *T, const char *dir, const char *name, float value)
{
    char path[1100];
    tb_bytes b;
    tb_safetensors *f;
    uint64_t header = 0;
    snprintf(path, sizeof path, "%s/" TB_DIR_STATE, dir);
    TB_OKAY(T, tb_file_read(T->ctx, path, 0, &b));
    TB_OKAY(T, tb_safetensors_open_memory(T->ctx, path, b.data, b.len, &f));
    const tb_tensor_info *t = tb_safetensors_find(f, name);
    TB_REQUIRE(T, t != NULL);
    memcpy(&header, b.data, sizeof header);
    memcpy(b.data + 8 + header + t->at, &value, sizeof value);
    tb_safetensors_close(f);
    TB_OKAY(T, tb_file_write_atomic(T->ctx, path, b.data, b.len));
    tb_bytes_clear(T->ctx, &b);
}

static void read_state(tb_test *T, const char *dir, tb_bytes *out)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/" TB_DIR_STATE, dir);
    TB_CHECK(T, tb_file_read(T->ctx, path, 0, out) == TB_OK);
}

/* Five steps of ten, in a folder. */
static tb_train_spec half_run(tb_test *T, const char *dir)
{
    tb_train_spec spec = help_spec(help_text("rhyme.txt", 20), dir);
    help_log log = {.stop_at = 5};
    tb_train_result r;
    TB_CHECK(T, help_train(T, "pre-ln", &spec, &log, &r, NULL, 0) ==
                    TB_INTERRUPTED);
    tb_train_spec again = TB_TRAIN_UNSET;
    again.out = dir;
    again.resume = true;
    return again;
}

/* `value` in a weight makes step 6 fail at `where`; the folder is untouched. */
static void bad_weight(tb_test *T, const char *folder, const char *name,
                       float value, const char *where)
{
    char dir[1024], error[1024];
    tb_bytes before, after;
    help_log log = {0};
    tb_train_result r;
    snprintf(dir, sizeof dir, "%s", tmp_path(folder));
    tb_train_spec spec = half_run(T, dir);
    plant(T, dir, name, value);
    read_state(T, dir, &before);
    TB_CHECK(T, help_train(T, NULL, &spec, &log, &r, error, sizeof error) ==
                    TB_ERR_DIVERGED);
    TB_CHECK(T, r.end == TB_TRAIN_DIVERGED && r.bad_step == 6);
    TB_CHECK(T, r.steps == 5 && r.good_step == 5);
    TB_STR(T, r.bad_where, where);
    TB_CHECK(T, strstr(error, "diverged at step 6: "));
    TB_CHECK(T, strstr(error, where));
    TB_CHECK(T, strstr(error, "last good checkpoint: step 5 in "));
    TB_CHECK(T, log.steps == 1 && log.saves == 0); /* the step is shown */
    read_state(T, dir, &after);
    TB_CHECK(T, after.len == before.len &&
                    memcmp(before.data, after.data, after.len) == 0);
    tb_bytes_clear(T->ctx, &before);
    tb_bytes_clear(T->ctx, &after);
}

TB_TEST(names_the_layer_of_a_nan)
{
    const float nan = __builtin_nanf("");
    bad_weight(T, "nan0", "layers.0.attn.q.weight", nan, "layers.0");
    bad_weight(T, "nan1", "layers.1.ffn.down.bias", nan, "layers.1");
    bad_weight(T, "nan2", "head.weight", nan, "tail");
    bad_weight(T, "nan3", "embed.position.weight", nan, "stem");
}

TB_TEST(shows_the_nan_it_stops_at)
{
    char dir[1024];
    help_log log = {0};
    tb_train_result r;
    snprintf(dir, sizeof dir, "%s", tmp_path("shown"));
    tb_train_spec spec = half_run(T, dir);
    plant(T, dir, "layers.0.attn.q.weight", __builtin_nanf(""));
    TB_CHECK(T,
             help_train(T, NULL, &spec, &log, &r, NULL, 0) == TB_ERR_DIVERGED);
    TB_CHECK(T, log.loss[6] != log.loss[6] && r.loss != r.loss);
    TB_CHECK(T, log.grad_norm[6] != log.grad_norm[6]);
}

TB_TEST(a_loss_of_three_times_the_first)
{
    char error[1024];
    help_log log = {0};
    tb_train_result r;
    tb_train_spec spec = help_spec(help_text("rhyme.txt", 20), NULL);
    spec.lr = 1e6;
    spec.warmup = 0;
    TB_CHECK(T, help_train(T, "pre-ln", &spec, &log, &r, error, sizeof error) ==
                    TB_ERR_DIVERGED);
    TB_CHECK(T, r.end == TB_TRAIN_DIVERGED && r.bad_step == 2);
    TB_CHECK(T, r.good_step == 0);
    TB_CHECK(T, strstr(error, "diverged at step 2: loss "));
    TB_CHECK(T, strstr(error, "no checkpoint was saved"));
    TB_CHECK(T, log.loss[2] > 3 * log.loss[1] || log.loss[2] != log.loss[2]);
}

/* Weights that leave the floats in the update itself. */
TB_TEST(a_weight_that_overflows)
{
    char error[1024];
    help_log log = {0};
    tb_train_result r;
    const char *dir = tmp_path("overflow");
    tb_train_spec spec = help_spec(help_text("rhyme.txt", 20), dir);
    spec.lr = 1e300;
    spec.warmup = 0;
    TB_CHECK(T, help_train(T, "pre-ln", &spec, &log, &r, error, sizeof error) ==
                    TB_ERR_DIVERGED);
    TB_CHECK(T, r.bad_step == 1 && log.saves == 0);
    TB_CHECK(T, strstr(error, "not finite after the update: embed.token"));
}

/* Hopeless settings end as a plateau, not as success or a crash. */
TB_TEST(plateau)
{
    help_log log = {0};
    tb_train_result r;
    tb_train_spec spec = help_spec(help_text("rhyme.txt", 20), NULL);
    spec.lr = 0;
    spec.steps = 100;
    spec.batch = 32;
    TB_CHECK(T, help_train(T, "pre-ln", &spec, &log, &r, NULL, 0) == TB_OK);
    TB_CHECK(T, r.end == TB_TRAIN_DONE && r.plateau);
}
