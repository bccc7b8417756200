/* SPDX-License-Identifier: MIT */
/* Weights that keep to after: have length 1 after every step, and a run that
 * was stopped ends with the same bits as one that was not. */
#include "test_train_help.h"

#include "base/number.h"

/* Lengths of rows, or columns, of a tensor are 1 to a float's rounding. */
static void check_lines(tb_test *T, tb_safetensors *f, const char *name,
                        bool columns)
{
    const tb_tensor_info *info = tb_safetensors_find(f, name);
    TB_REQUIRE(T, info && info->rank == 2);
    size_t height = (size_t)info->dims[0], width = (size_t)info->dims[1];
    double *w = tb_alloc(T->ctx, height * width, sizeof *w);
    TB_REQUIRE(T, w != NULL);
    TB_OKAY(T,
            tb_safetensors_read(T->ctx, f, info, 0, height * width, TB_F64, w));
    for (size_t k = 0; k < (columns ? width : height); k++) {
        double sum = 0;
        for (size_t i = 0; i < (columns ? height : width); i++) {
            double x = columns ? w[i * width + k] : w[k * width + i];
            sum += x * x;
        }
        TB_NEAR(T, tb_sqrt(sum), 1, 1e-6);
    }
    tb_free(T->ctx, w);
}

static tb_test *test;
static size_t checked;

static void check_saved(void *user, size_t step, const char *dir)
{
    static const char *const rows[] = {
        "embed.token.weight",       "head.weight",
        "layers.0.attn.q.weight",   "layers.1.attn.k.weight",
        "layers.0.attn.v.weight",   "layers.1.ffn.up.weight",
        "layers.0.ffn.gate.weight",
    };
    static const char *const columns[] = {"layers.0.attn.o.weight",
                                          "layers.1.ffn.down.weight"};
    char path[1100];
    tb_safetensors *f;
    (void)user, (void)step;
    snprintf(path, sizeof path, "%s/%s", dir, TB_DIR_MODEL);
    TB_OKAY(test, tb_safetensors_open(test->ctx, path, &f));
    for (size_t i = 0; i < TB_LEN(rows); i++)
        check_lines(test, f, rows[i], false);
    for (size_t i = 0; i < TB_LEN(columns); i++)
        check_lines(test, f, columns[i], true);
    tb_safetensors_close(f);
    checked++;
}

TB_TEST(every_step_ends_at_length_1)
{
    char dir[1024];
    snprintf(dir, sizeof dir, "%s", tmp_path("unit"));
    tb_train_spec spec = help_spec(help_text("rhyme.txt", 20), dir);
    tb_train_observer o = {.saved = check_saved};
    tb_train_result r;
    tb_block *b;
    test = T;
    checked = 0;
    spec.save_every = 1;
    TB_OKAY(T, tb_block_load(T->ctx, "ngpt", &b));
    TB_OKAY(T, tb_train(T->ctx, b, &spec, &o, &r));
    TB_CHECK(T, checked == 10);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(interrupted_and_resumed_at_length_1)
{
    char dir[1024], part[1024];
    snprintf(dir, sizeof dir, "%s", tmp_path("unit-whole"));
    snprintf(part, sizeof part, "%s", tmp_path("unit-part"));
    help_log whole = {0}, one = {.stop_at = 4}, two = {0};
    tb_train_result r;
    tb_train_spec spec = help_spec(help_text("rhyme.txt", 20), dir);
    TB_CHECK(T, help_train(T, "ngpt", &spec, &whole, &r, NULL, 0) == TB_OK);
    spec.out = part;
    TB_CHECK(T,
             help_train(T, "ngpt", &spec, &one, &r, NULL, 0) == TB_INTERRUPTED);
    tb_train_spec rest = TB_TRAIN_UNSET;
    rest.out = part;
    rest.resume = true;
    TB_CHECK(T, help_train(T, NULL, &rest, &two, &r, NULL, 0) == TB_OK);
    TB_SAME(T, two.loss + 5, whole.loss + 5, 6 * sizeof(double));
    help_same_file(T, dir, part, TB_DIR_MODEL);
    help_same_file(T, dir, part, TB_DIR_STATE);
}
