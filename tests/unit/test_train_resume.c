/* SPDX-License-Identifier: MIT */
/* A run that was stopped or killed ends with the same bits as one that was not
 * (C122), and a resumed run finds what it left or says what differs. */
#include "test_train_help.h"

static const char *const files[] = {TB_DIR_STATE, TB_DIR_MODEL, TB_DIR_CONFIG,
                                    TB_DIR_BLOCK, TB_DIR_TOKENIZER};
static const char *const lossy =
    "x = x + drop(F(norm(x)), 0.2)\nfinal:\n x = norm(x)\n";

static void same_folders(tb_test *T, const char *a, const char *b)
{
    for (size_t i = 0; i < TB_LEN(files); i++)
        help_same_file(T, a, b, files[i]);
}

static void copy_folder(tb_test *T, const char *from, const char *to)
{
    TB_OKAY(T, tb_dir_make(T->ctx, to));
    for (size_t i = 0; i < TB_LEN(files); i++) {
        char a[1100], b[1100];
        tb_bytes x;
        snprintf(a, sizeof a, "%s/%s", from, files[i]);
        snprintf(b, sizeof b, "%s/%s", to, files[i]);
        TB_OKAY(T, tb_file_read(T->ctx, a, 0, &x));
        TB_OKAY(T, tb_file_write_atomic(T->ctx, b, x.data, x.len));
        tb_bytes_clear(T->ctx, &x);
    }
}

/* The uninterrupted run, with dropout of every kind. */
static tb_train_spec whole_run(tb_test *T, const char *dir, help_log *log)
{
    tb_train_spec spec = help_spec(help_text("rhyme.txt", 20), dir);
    tb_train_result r;
    spec.settings.dropout = 0.1;
    spec.seed = 7;
    TB_CHECK(T, help_train(T, lossy, &spec, log, &r, NULL, 0) == TB_OK);
    TB_CHECK(T, r.steps == 10 && log->saves == 1);
    return spec;
}

static tb_train_spec resume_spec(const char *dir)
{
    tb_train_spec s = TB_TRAIN_UNSET;
    s.out = dir;
    s.resume = true;
    return s;
}

TB_TEST(interrupted_and_resumed)
{
    char dir[1024], part[1024], error[512];
    snprintf(dir, sizeof dir, "%s", tmp_path("whole"));
    snprintf(part, sizeof part, "%s", tmp_path("part"));
    help_log whole = {0}, one = {.stop_at = 5}, two = {0};
    tb_train_result r;
    tb_train_spec spec = whole_run(T, dir, &whole);
    spec.out = part;
    TB_CHECK(T, help_train(T, lossy, &spec, &one, &r, error, sizeof error) ==
                    TB_INTERRUPTED);
    TB_CHECK(T, r.end == TB_TRAIN_INTERRUPTED && r.steps == 5);
    TB_CHECK(T, r.good_step == 5 && one.last_saved == 5);
    TB_CHECK(T, strstr(error, "after step 5"));
    spec = resume_spec(part);
    TB_CHECK(T, help_train(T, NULL, &spec, &two, &r, NULL, 0) == TB_OK);
    TB_CHECK(T, two.first == 6 && two.steps == 5 && r.steps == 10);
    TB_SAME(T, one.loss + 1, whole.loss + 1, 5 * sizeof(double));
    TB_SAME(T, two.loss + 6, whole.loss + 6, 5 * sizeof(double));
    TB_SAME(T, two.grad_norm + 6, whole.grad_norm + 6, 5 * sizeof(double));
    same_folders(T, dir, part);
}

/* Running statistics are part of the state; powernorm's warm-up ends in the
 * part that is resumed, and its backward differs from then on. */
TB_TEST(running_statistics_resume)
{
    static const char *const text =
        "x = x + batchnorm(F(powernorm(x, warmup=6)))\nfinal: x = batchnorm(x)";
    static const char *const later =
        "x = x + batchnorm(F(powernorm(x, warmup=7)))\nfinal: x = batchnorm(x)";
    char dir[1024], part[1024];
    snprintf(dir, sizeof dir, "%s", tmp_path("running-whole"));
    snprintf(part, sizeof part, "%s", tmp_path("running-part"));
    help_log whole = {0}, one = {.stop_at = 5}, two = {0}, other = {0};
    tb_train_result r;
    tb_train_spec spec = help_spec(help_text("rhyme.txt", 20), dir);
    spec.settings.dropout = 0.1;
    TB_CHECK(T, help_train(T, text, &spec, &whole, &r, NULL, 0) == TB_OK);
    spec.out = NULL;
    TB_CHECK(T, help_train(T, later, &spec, &other, &r, NULL, 0) == TB_OK);
    TB_SAME(T, other.loss + 1, whole.loss + 1, 6 * sizeof(double));
    TB_CHECK(T, other.loss[7] != whole.loss[7]);
    spec.out = part;
    TB_CHECK(T,
             help_train(T, text, &spec, &one, &r, NULL, 0) == TB_INTERRUPTED);
    spec = resume_spec(part);
    TB_CHECK(T, help_train(T, NULL, &spec, &two, &r, NULL, 0) == TB_OK);
    TB_CHECK(T, two.first == 6);
    TB_SAME(T, two.loss + 6, whole.loss + 6, 5 * sizeof(double));
    same_folders(T, dir, part);
}

/* What kill -9 leaves is the folder as it was at the last save. */
static const char *killed_copy;
static tb_test *killed_test;

static void copy_at_first_save(void *user, size_t step, const char *dir)
{
    (void)user;
    if (step == 5)
        copy_folder(killed_test, dir, killed_copy);
}

TB_TEST(killed_and_resumed)
{
    char dir[1024], copy[1024];
    snprintf(dir, sizeof dir, "%s", tmp_path("running"));
    snprintf(copy, sizeof copy, "%s", tmp_path("killed"));
    tb_block *b;
    tb_train_result r;
    tb_train_spec spec = help_spec(help_text("rhyme.txt", 20), dir);
    tb_train_observer o = {.saved = copy_at_first_save};
    killed_copy = copy;
    killed_test = T;
    spec.settings.dropout = 0.3;
    spec.save_every = 5;
    TB_OKAY(T, tb_block_load(T->ctx, "post-ln", &b));
    TB_OKAY(T, tb_train(T->ctx, b, &spec, &o, &r));
    help_log log = {0};
    spec = resume_spec(copy);
    spec.save_every = 1; /* may change, and leaves no trace */
    TB_OKAY(T, help_train(T, "post-ln", &spec, &log, &r, NULL, 0));
    TB_CHECK(T, log.first == 6 && log.saves == 5);
    same_folders(T, dir, copy);
    tb_block_destroy(T->ctx, b);
}

/* Killed before the first save: the start is all there is. */
TB_TEST(resumes_from_nothing)
{
    char dir[1024], other[1024], path[1100];
    snprintf(dir, sizeof dir, "%s", tmp_path("full"));
    snprintf(other, sizeof other, "%s", tmp_path("started"));
    help_log whole = {0}, log = {0};
    tb_train_result r;
    (void)whole_run(T, dir, &whole);
    copy_folder(T, dir, other);
    snprintf(path, sizeof path, "%s/" TB_DIR_STATE, other);
    remove(path);
    snprintf(path, sizeof path, "%s/" TB_DIR_MODEL, other);
    remove(path);
    tb_train_spec spec = resume_spec(other);
    TB_CHECK(T, help_train(T, NULL, &spec, &log, &r, NULL, 0) == TB_OK);
    TB_CHECK(T, log.first == 1);
    same_folders(T, dir, other);
}

/* It may also be started anew, with other settings: nothing is lost. */
TB_TEST(starts_over_what_never_saved)
{
    char dir[1024], path[1100];
    help_log whole = {0}, log = {0};
    tb_train_result r;
    snprintf(dir, sizeof dir, "%s", tmp_path("over"));
    tb_train_spec spec = whole_run(T, dir, &whole);
    snprintf(path, sizeof path, "%s/" TB_DIR_STATE, dir);
    remove(path);
    snprintf(path, sizeof path, "%s/" TB_DIR_MODEL, dir);
    remove(path);
    spec.seed = 8;
    TB_CHECK(T, help_train(T, "pre-ln", &spec, &log, &r, NULL, 0) == TB_OK);
    spec = resume_spec(dir);
    spec.seed = 8;
    TB_CHECK(T, help_train(T, "pre-ln", &spec, &log, &r, NULL, 0) == TB_OK);
}

/* A finished run has nothing left to do. */
TB_TEST(resumes_at_the_end)
{
    const char *dir = tmp_path("done");
    help_log log = {0}, none = {0};
    tb_train_result r;
    (void)whole_run(T, dir, &log);
    tb_train_spec spec = resume_spec(dir);
    TB_CHECK(T, help_train(T, NULL, &spec, &none, &r, NULL, 0) == TB_OK);
    TB_CHECK(T, none.steps == 0 && none.saves == 0 && r.steps == 10);
    TB_CHECK(T, r.loss == log.loss[10] && tb_isfinite(r.val_loss));
}

/* --- what differs -----------------------------------------------------------
 */

static void refused(tb_test *T, const tb_train_spec *spec, const char *block,
                    const char *text)
{
    char error[1024];
    help_log log = {0};
    tb_train_result r;
    tb_status s = help_train(T, block, spec, &log, &r, error, sizeof error);
    if (s != TB_ERR_INPUT || !strstr(error, text))
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s, wanted: %s",
                     tb_status_text(s), error, text);
    TB_CHECK(T, log.steps == 0);
}

TB_TEST(names_the_setting_that_differs)
{
    const char *dir = tmp_path("settings");
    help_log log = {0};
    (void)whole_run(T, dir, &log);
    tb_train_spec base = resume_spec(dir), s;
#define DIFFERS(field, value, text)                                            \
    do {                                                                       \
        s = base;                                                              \
        s.field = value;                                                       \
        refused(T, &s, NULL, text);                                            \
    } while (0)
    DIFFERS(steps, 20, "steps: got 20, the run in ");
    DIFFERS(settings.depth, 3, "depth: got 3");
    DIFFERS(settings.dropout, 0, "dropout: got 0");
    DIFFERS(settings.norm, "rmsnorm", "norm: got rmsnorm");
    DIFFERS(lr, 1, "lr: got 1, the run in ");
    DIFFERS(warmup, 0, "warmup: got 0");
    DIFFERS(schedule, TB_SCHEDULE_CONSTANT, "schedule: got constant");
    DIFFERS(seed, 1, "seed: got 1, the run in ");
    DIFFERS(val_windows, 5, "val_windows: got 5");
    DIFFERS(tokenizer, "byte", "tokenizer: got byte");
    DIFFERS(dtype, TB_F64, "dtype: got f64");
    DIFFERS(dtype, TB_BF16, "dtype: got bf16");
    DIFFERS(settings.bias, 0, "bias: got off");
#undef DIFFERS
    refused(T, &base, "pre-ln", "the block differs at line 2");
    s = base;
    s.steps = 10; /* the same value is no difference */
    tb_train_result r;
    TB_CHECK(T, help_train(T, lossy, &s, &log, &r, NULL, 0) == TB_OK);
}

TB_TEST(names_the_text_that_differs)
{
    char dir[1024];
    snprintf(dir, sizeof dir, "%s", tmp_path("texts"));
    help_log log = {0};
    tb_train_result r;
    (void)whole_run(T, dir, &log);
    tb_train_spec s = resume_spec(dir);
    s.text = help_text("renamed.txt", 20);
    TB_CHECK(T, help_train(T, NULL, &s, &log, &r, NULL, 0) == TB_OK);
    s.text = help_text("longer.txt", 21);
    refused(T, &s, NULL, "is not what the run in");
    s.text = tmp_text("new.txt", "UPPER CASE was never seen");
    refused(T, &s, NULL, "is not in the vocabulary");
}

/* Weights and block.txt must belong together. */
TB_TEST(refuses_a_block_that_was_edited)
{
    char dir[1024], path[1100];
    tb_lm *m;
    help_log log = {0};
    snprintf(dir, sizeof dir, "%s", tmp_path("edited"));
    (void)whole_run(T, dir, &log);
    snprintf(path, sizeof path, "%s/" TB_DIR_BLOCK, dir);
    static const char *const text =
        "x = norm(x + drop(F(x), 0.2))\nfinal:\n x = norm(x)\n";
    TB_OKAY(T, tb_file_write_atomic(T->ctx, path, text, strlen(text)));
    tb_train_spec s = resume_spec(dir);
    refused(T, &s, NULL, "not what the weights were trained with");
    TB_FAILS(T, tb_lm_open(T->ctx, dir, &m), TB_ERR_INPUT,
             "not what the weights were trained with");
    TB_CHECK(T, strstr(tb_error(T->ctx), "x = norm(x + drop(F(x), 0.2))"));
    TB_CHECK(T, strstr(tb_error(T->ctx), "x = x + drop(F(norm(x)), 0.2)"));
    TB_CHECK(T, m == NULL);
}

TB_TEST(refuses_a_config_that_was_edited)
{
    char dir[1024], path[1100];
    tb_bytes b;
    help_log log = {0};
    snprintf(dir, sizeof dir, "%s", tmp_path("config"));
    (void)whole_run(T, dir, &log);
    snprintf(path, sizeof path, "%s/" TB_DIR_CONFIG, dir);
    TB_OKAY(T, tb_file_read(T->ctx, path, 0, &b));
    char *at = strstr(b.data, "\"seed\": 7");
    TB_REQUIRE(T, at != NULL);
    at[strlen("\"seed\": ")] = '8';
    TB_OKAY(T, tb_file_write_atomic(T->ctx, path, b.data, b.len));
    tb_bytes_clear(T->ctx, &b);
    tb_train_spec s = resume_spec(dir);
    refused(T, &s, NULL, "seed: got 8, the run in ");
}

TB_TEST(refuses_to_overwrite)
{
    char dir[1024];
    help_log log = {0};
    snprintf(dir, sizeof dir, "%s", tmp_path("kept"));
    tb_train_spec s = whole_run(T, dir, &log);
    refused(T, &s, lossy, "already holds state.safetensors; resume it");
    s.out = tmp_path("kept/foreign");
    TB_OKAY(T, tb_dir_make(T->ctx, s.out));
    (void)tmp_text("kept/foreign/config.json", "{\"model_type\": \"gpt2\"}");
    refused(T, &s, lossy, "config.json that is not of a training run");
    s = resume_spec(tmp_path("nowhere"));
    refused(T, &s, NULL, "nothing to resume");
}
