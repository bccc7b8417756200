/* SPDX-License-Identifier: MIT */
/* Tasks beside the language model: who can do what, resume bit for bit, steps
 * without a target (C121), smoothed labels. */
#include "test_train_help.h"

/* A small run of an encoder on the rhyme. */
static tb_train_spec mlm_spec(const char *out)
{
    tb_train_spec s = help_spec(help_text("rhyme.txt", 20), out);
    s.settings.stack = TB_STACKS_ENCODER;
    return s;
}

static void refuse(tb_test *T, tb_train_spec s, const char *error)
{
    help_log log = {0};
    tb_train_result r;
    char text[512];
    TB_CHECK(T, help_train(T, "pre-ln", &s, &log, &r, text, sizeof text) ==
                    TB_ERR_ARG);
    if (!strstr(text, error))
        tb_test_fail(T, __FILE__, __LINE__, "%s, wanted: %s", text, error);
}

TB_TEST(tasks_and_stacks)
{
    tb_train_spec s = mlm_spec(NULL);
    s.task = TB_TASK_LM;
    refuse(T, s, "task lm: got the stack encoder, wanted decoder");
    s.task = TB_TASK_TRANSLATE;
    refuse(T, s,
           "task translate: got the stack encoder, wanted encoder-decoder");
    s = help_spec(help_text("rhyme.txt", 20), NULL);
    s.task = TB_TASK_MLM;
    refuse(T, s, "task mlm: got the stack decoder, wanted encoder");
    s = mlm_spec(NULL);
    s.source = s.text;
    refuse(T, s, "task mlm: got a source, wanted a text");
    s.settings.stack = TB_STACKS_BOTH;
    refuse(T, s, "task translate: got a text, wanted source and target");
    s.text = NULL;
    refuse(T, s, "task translate: got no target, wanted source and target");
    s = mlm_spec(NULL);
    s.label_smoothing = 1;
    refuse(T, s, "label_smoothing: got 1, wanted 0 to less than 1");
}

/* --- resume --------------------------------------------------------------- */

static const char *const files[] = {TB_DIR_STATE, TB_DIR_MODEL, TB_DIR_CONFIG,
                                    TB_DIR_BLOCK, TB_DIR_TOKENIZER};

/* A run stopped after step 4 and resumed ends as one that was not. */
static void resumes(tb_test *T, const char *name, tb_train_spec spec)
{
    char whole[900], part[1000];
    help_log a = {0}, b = {.stop_at = 4}, c = {0};
    tb_train_result r;
    snprintf(whole, sizeof whole, "%s", tmp_path(name));
    snprintf(part, sizeof part, "%s-part", whole);
    spec.settings.dropout = 0.1;
    spec.out = whole;
    TB_CHECK(T, help_train(T, "pre-ln", &spec, &a, &r, NULL, 0) == TB_OK);
    spec.out = part;
    TB_CHECK(T,
             help_train(T, "pre-ln", &spec, &b, &r, NULL, 0) == TB_INTERRUPTED);
    tb_train_spec rest = TB_TRAIN_UNSET;
    rest.out = part;
    rest.resume = true;
    TB_CHECK(T, help_train(T, NULL, &rest, &c, &r, NULL, 0) == TB_OK);
    TB_CHECK(T, c.first == 5 && r.steps == 10);
    for (size_t i = 0; i < TB_LEN(files); i++)
        help_same_file(T, whole, part, files[i]);
}

TB_TEST(hidden_tokens_resumed)
{
    tb_train_spec s = mlm_spec(NULL);
    s.label_smoothing = 0.1;
    resumes(T, "mlm", s);
}

/* --- no target ------------------------------------------------------------ */

/* Rows of three tokens: six in ten have nothing hidden. */
static tb_train_spec sparse_spec(const char *out)
{
    tb_train_spec s = mlm_spec(out);
    s.settings.context = 3;
    s.batch = 1;
    s.val_windows = 40;
    return s;
}

/* C121: no update, no loss; the step counts and a resumed run agrees. */
TB_TEST(C121_steps_without_a_target)
{
    help_log log = {0};
    tb_train_result r;
    tb_train_spec s = sparse_spec(NULL);
    s.steps = 200;
    TB_CHECK(T, help_train(T, "pre-ln", &s, &log, &r, NULL, 0) == TB_OK);
    size_t empty = 0;
    for (size_t i = 1; i <= 200; i++)
        empty += log.loss[i] != log.loss[i];
    TB_CHECK(T, r.steps == 200 && log.steps == 200);
    TB_CHECK(T, empty > 100 && empty < 145); /* 122.8 +- 6.9 */
    TB_CHECK(T, r.loss - r.loss == 0 && r.first_loss - r.first_loss == 0);
    TB_CHECK(T, r.val_loss - r.val_loss == 0);
    resumes(T, "sparse", sparse_spec(NULL));
}

/* Weights and moments are those of the update before, to the bit. */
TB_TEST(C121_nothing_moves_without_a_target)
{
    char dir[2][1024];
    help_log log[2] = {{0}, {0}};
    tb_train_result r;
    size_t empty = 2;
    tb_train_spec s = sparse_spec(NULL);
    s.steps = 100;
    TB_CHECK(T, help_train(T, "pre-ln", &s, &log[0], &r, NULL, 0) == TB_OK);
    while (empty < 100 && !(log[0].loss[empty] != log[0].loss[empty]))
        empty++;
    TB_REQUIRE(T, empty < 100);
    for (size_t i = 0; i < 2; i++) {
        snprintf(dir[i], sizeof dir[i], "%s", tmp_path(i ? "after" : "before"));
        s.out = dir[i];
        log[i] = (help_log){.stop_at = empty - 1 + i};
        TB_CHECK(T, help_train(T, "pre-ln", &s, &log[i], &r, NULL, 0) ==
                        TB_INTERRUPTED);
    }
    tb_safetensors *f[2];
    for (size_t i = 0; i < 2; i++) {
        strcat(dir[i], "/" TB_DIR_STATE);
        TB_OKAY(T, tb_safetensors_open(T->ctx, dir[i], &f[i]));
    }
    for (size_t k = 0; k < tb_safetensors_count(f[0]); k++) {
        const tb_tensor_info *t = tb_safetensors_at(f[0], k);
        const tb_tensor_info *u = tb_safetensors_find(f[1], t->name);
        static float a[4096], b[4096];
        TB_REQUIRE(T, u && t->count == u->count && t->count <= 4096);
        TB_OKAY(T,
                tb_safetensors_read(T->ctx, f[0], t, 0, t->count, TB_F32, a));
        TB_OKAY(T,
                tb_safetensors_read(T->ctx, f[1], u, 0, u->count, TB_F32, b));
        TB_SAME(T, b, a, t->count * sizeof *a);
    }
    tb_safetensors_close(f[0]);
    tb_safetensors_close(f[1]);
}

/* --- smoothed labels ------------------------------------------------------ */

/* What is trained changes, what is measured does not. */
TB_TEST(labels_are_smoothed_for_training_alone)
{
    double loss[2], val[2];
    for (size_t i = 0; i < 2; i++) {
        help_log log = {0};
        tb_train_result r;
        tb_train_spec s = help_spec(help_text("rhyme.txt", 20), NULL);
        s.lr = 0;
        s.steps = 1;
        s.label_smoothing = i ? 0.5 : 0;
        TB_CHECK(T, help_train(T, "pre-ln", &s, &log, &r, NULL, 0) == TB_OK);
        loss[i] = r.loss;
        val[i] = r.val_loss;
    }
    TB_SAME(T, &val[1], &val[0], sizeof *val);
    TB_CHECK(T, loss[0] - loss[1] > 1e-3 || loss[1] - loss[0] > 1e-3);
}
