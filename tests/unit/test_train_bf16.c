/* SPDX-License-Identifier: MIT */
/* Training with products in bf16: what a folder says of it, resume bit for
 * bit, and a loss curve that differs from f32's by far less than another seed's
 * does. */
#include "test_train_help.h"
#include "train/lm.h"

static const char *const block = "x = x + F(norm(x))\nfinal:\n x = norm(x)\n";

static bool has(tb_test *T, const char *dir, const char *file, const char *text)
{
    char path[1100];
    tb_bytes x;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    if (tb_file_read(T->ctx, path, 0, &x) != TB_OK)
        return false;
    bool found = memmem(x.data, x.len, text, strlen(text)) != NULL;
    tb_bytes_clear(T->ctx, &x);
    return found;
}

TB_TEST(a_folder_says_so)
{
    const char *dir = tmp_path("says");
    tb_train_spec spec = help_spec(help_text("rhyme.txt", 20), dir);
    help_log log = {0};
    tb_train_result r;
    tb_lm *m;
    spec.dtype = TB_BF16;
    TB_CHECK(T, help_train(T, block, &spec, &log, &r, NULL, 0) == TB_OK);
    TB_CHECK(T, has(T, dir, TB_DIR_CONFIG, "\"dtype\": \"bf16\""));
    TB_CHECK(T, strstr(log.header, "\"dtype\":\"bf16\""));
    TB_CHECK(T, strstr(log.header, tb_gemm_name(T->ctx, TB_BF16)));
    /* weights are floats; who opens the folder computes as training did */
    TB_CHECK(T, has(T, dir, TB_DIR_MODEL, "\"F32\""));
    TB_CHECK(T, !has(T, dir, TB_DIR_MODEL, "\"BF16\""));
    TB_OKAY(T, tb_lm_open(T->ctx, dir, &m));
    TB_CHECK(T, m->model->products == TB_BF16 && m->model->dtype == TB_F32);
    tb_lm_close(m);
}

static void stop_and_resume(tb_test *T, const char *name)
{
    char whole_dir[1000], part_dir[1024];
    help_log whole = {0}, one = {.stop_at = 5}, two = {0};
    tb_train_result r;
    snprintf(whole_dir, sizeof whole_dir, "%s", tmp_path(name));
    snprintf(part_dir, sizeof part_dir, "%s/part", whole_dir);
    tb_train_spec spec = help_spec(help_text("rhyme.txt", 20), whole_dir);
    spec.dtype = TB_BF16;
    TB_CHECK(T, help_train(T, block, &spec, &whole, &r, NULL, 0) == TB_OK);
    spec.out = part_dir;
    TB_CHECK(T,
             help_train(T, block, &spec, &one, &r, NULL, 0) == TB_INTERRUPTED);
    tb_train_spec again = TB_TRAIN_UNSET;
    again.out = part_dir;
    again.resume = true;
    TB_CHECK(T, help_train(T, NULL, &again, &two, &r, NULL, 0) == TB_OK);
    TB_CHECK(T, two.first == 6 && r.steps == 10);
    TB_SAME(T, two.loss + 6, whole.loss + 6, 5 * sizeof(double));
    help_same_file(T, whole_dir, part_dir, TB_DIR_STATE);
    help_same_file(T, whole_dir, part_dir, TB_DIR_MODEL);
}

TB_TEST(resumed_with_the_same_bits)
{
    stop_and_resume(T, "live");
    tb_ctx_exact(T->ctx, true);
    stop_and_resume(T, "exact");
}

/* --- the loss curve ---------------------------------------------------------
 */

enum { STEPS = 240, WINDOW = 20, WINDOWS = STEPS / WINDOW, SEEDS = 3 };

typedef struct curve {
    double mean[WINDOWS], val;
} curve;

static curve train(tb_test *T, tb_dtype dtype, uint64_t seed)
{
    static help_log log;
    tb_train_spec spec = help_spec(TB_SOURCE_DIR "/docs/language.md", NULL);
    tb_train_result r = {.val_loss = 0};
    curve c = {{0}, 0};
    log = (help_log){0};
    spec.settings.width = 32;
    spec.settings.context = 24;
    spec.batch = 6;
    spec.steps = STEPS;
    spec.warmup = 20;
    spec.lr = 3e-3;
    spec.val_every = STEPS;
    spec.val_windows = 32;
    spec.seed = seed;
    spec.dtype = dtype;
    TB_CHECK(T, help_train(T, block, &spec, &log, &r, NULL, 0) == TB_OK);
    for (size_t s = 0; s < STEPS; s++)
        c.mean[s / WINDOW] += log.loss[s + 1] / WINDOW;
    c.val = r.val_loss;
    return c;
}

static double spread(const double *x)
{
    double low = x[0], high = x[0];
    for (size_t i = 1; i < SEEDS; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    return high - low;
}

/* One number of each seed's two curves: what rounding changes is far less than
 * what the seed changes (1 % of it was measured). */
static void compare(tb_test *T, const double *f32, const double *bf16,
                    const char *what, size_t at)
{
    for (size_t s = 0; s < SEEDS; s++)
        if (!(tb_fabs(bf16[s] - f32[s]) < 0.05 * spread(f32)))
            tb_test_fail(T, __FILE__, __LINE__,
                         "%s %zu: seed %zu has %g in bf16, %g in f32, and "
                         "seeds differ by %g",
                         what, at, s + 1, bf16[s], f32[s], spread(f32));
}

static void curves(tb_test *T)
{
    curve f32[SEEDS], bf16[SEEDS];
    double a[SEEDS], b[SEEDS];
    for (size_t s = 0; s < SEEDS; s++) {
        f32[s] = train(T, TB_F32, s + 1);
        bf16[s] = train(T, TB_BF16, s + 1);
        TB_CHECK(T, f32[s].mean[WINDOWS - 1] < 0.8 * f32[s].mean[0]);
        TB_CHECK(T, memcmp(&f32[s], &bf16[s], sizeof f32[s]) != 0);
    }
    for (size_t w = 0; w < WINDOWS; w++) {
        for (size_t s = 0; s < SEEDS; s++)
            a[s] = f32[s].mean[w], b[s] = bf16[s].mean[w];
        compare(T, a, b, "updates from", w * WINDOW + 1);
    }
    for (size_t s = 0; s < SEEDS; s++)
        a[s] = f32[s].val, b[s] = bf16[s].val;
    compare(T, a, b, "validation after", STEPS);
}

/* The same on every machine. */
TB_TEST(emulated_curve_is_within_seed_noise)
{
    tb_ctx_exact(T->ctx, true);
    curves(T);
}

TB_TEST(live_curve_is_within_seed_noise)
{
    curves(T);
}
