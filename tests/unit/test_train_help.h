/* SPDX-License-Identifier: MIT */
/* Small runs in a folder of their own, and comparing what they leave. */
#ifndef TEST_TRAIN_HELP_H
#define TEST_TRAIN_HELP_H

#include "kernels/kernels.h"
#include "test_checkpoint_tmp.h"
#include "tollbooth/train.h"

static const char rhyme[] =
    "the quick brown fox jumps over the lazy dog and the dog sleeps on.\n";

/* `times` copies of the rhyme as a file. */
__attribute__((unused)) static const char *help_text(const char *name,
                                                     size_t times)
{
    size_t n = sizeof rhyme - 1;
    char *text = malloc(n * times + 1);
    if (!text)
        abort();
    for (size_t i = 0; i < times; i++)
        memcpy(text + i * n, rhyme, n);
    const char *path = tmp_file(name, text, n * times);
    free(text);
    return path;
}

/* A run of seconds: 2 blocks of width 16. */
__attribute__((unused)) static tb_train_spec help_spec(const char *text,
                                                       const char *out)
{
    tb_train_spec s = TB_TRAIN_UNSET;
    s.settings.depth = 2;
    s.settings.width = 16;
    s.settings.heads = 2;
    s.settings.context = 12;
    s.batch = 3;
    s.steps = 10;
    s.warmup = 2;
    s.lr = 1e-2;
    s.val_every = 5;
    s.val_windows = 4;
    s.save_every = 1000;
    s.text = text;
    s.out = out;
    return s;
}

/** What an observer saw. */
typedef struct help_log {
    tb_ctx *ctx;
    size_t stop_at; /* interrupt after this step; 0: never */
    size_t steps, saves, first, last_saved;
    double loss[256], grad_norm[256];
    char header[8192];
} help_log;

static void help_begin(void *user, const char *json)
{
    help_log *l = user;
    snprintf(l->header, sizeof l->header, "%s", json);
}

static void help_step(void *user, const tb_train_step *s)
{
    help_log *l = user;
    if (l->steps++ == 0)
        l->first = s->step;
    if (s->step < TB_LEN(l->loss)) {
        l->loss[s->step] = s->loss;
        l->grad_norm[s->step] = s->grad_norm;
    }
    if (s->step == l->stop_at)
        tb_ctx_interrupt(l->ctx);
}

static void help_saved(void *user, size_t step, const char *dir)
{
    help_log *l = user;
    (void)dir;
    l->saves++;
    l->last_saved = step;
}

__attribute__((unused)) static tb_train_observer help_observer(help_log *l)
{
    return (tb_train_observer){
        .begin = help_begin, .step = help_step, .saved = help_saved, .user = l};
}

/* Train `block` in a context of its own, so that an interrupt ends there. */
__attribute__((unused)) static tb_status
help_train(tb_test *T, const char *block, const tb_train_spec *spec,
           help_log *log, tb_train_result *r, char *error, size_t room)
{
    tb_ctx *ctx;
    tb_block *b = NULL;
    tb_status s = tb_ctx_create(&ctx);
    if (s != TB_OK)
        return s;
    tb_ctx_threads(ctx, tb_ctx_thread_limit(T->ctx));
    tb_ctx_exact(ctx, tb_ctx_is_exact(T->ctx));
    tb_gemm_load(ctx); /* its blocks stay until the end */
    if (spec->dtype == TB_BF16 || spec->resume)
        (void)tb_gemm_name(ctx, TB_BF16);
    size_t blocks = tb_ctx_blocks(ctx);
    log->ctx = ctx;
    tb_train_observer o = help_observer(log);
    if (block)
        s = tb_block_load(ctx, block, &b);
    if (s == TB_OK)
        s = tb_train(ctx, b, spec, &o, r);
    if (error)
        snprintf(error, room, "%s", tb_error(ctx));
    if (b)
        tb_block_destroy(ctx, b);
    TB_CHECK(T, tb_ctx_blocks(ctx) == blocks);
    tb_ctx_destroy(ctx);
    return s;
}

__attribute__((unused)) static void help_same_file(tb_test *T,
                                                   const char *dir_a,
                                                   const char *dir_b,
                                                   const char *name)
{
    char a[1100], b[1100];
    tb_bytes x, y;
    snprintf(a, sizeof a, "%s/%s", dir_a, name);
    snprintf(b, sizeof b, "%s/%s", dir_b, name);
    TB_OKAY(T, tb_file_read(T->ctx, a, 0, &x));
    TB_OKAY(T, tb_file_read(T->ctx, b, 0, &y));
    TB_CHECK(T,
             x.len > 0 && x.len == y.len && memcmp(x.data, y.data, x.len) == 0);
    tb_bytes_clear(T->ctx, &x);
    tb_bytes_clear(T->ctx, &y);
}

#endif
