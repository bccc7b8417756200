/* SPDX-License-Identifier: MIT */
/* A step allocates nothing: from the second one on every allocation would
 * fail. Nor does it start threads. */
#include "model/parts.h"
#include "tb_test.h"
#include "threads/threads.h"
#include "train/optimizer.h"

#include <dirent.h>
#include <stdlib.h>

enum { BATCH = 2, TIME = 20, VOCAB = 13, STEPS = 4 };
enum { PASSES = TB_PASS_BWD | TB_PASS_ONCE };

static tb_status make(tb_test *T, const char *what, size_t width, tb_block **b,
                      tb_model **m)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = 2;
    s.width = width;
    s.heads = 4;
    s.vocab = VOCAB;
    s.context = TIME;
    s.dropout = 0.1;
    TB_TRY(tb_block_load(T->ctx, what, b));
    TB_TRY(tb_model_create(T->ctx, *b, &s, TB_F32, m));
    TB_TRY(tb_model_init(*m, 1));
    return tb_model_bind(*m, BATCH, TIME, PASSES);
}

static tb_status step(tb_model *m, tb_optimizer *o, size_t number)
{
    int32_t tokens[BATCH * TIME];
    const tb_adam adam = {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .clip = 1};
    tb_batch b = {
        .tokens = tokens, .targets = tokens, .seed = 1, .step = number};
    tb_update u;
    double loss;
    for (size_t i = 0; i < BATCH * TIME; i++)
        tokens[i] = (int32_t)((i * number) % VOCAB);
    tb_model_step(m, number);
    TB_TRY(tb_model_forward(m, &b, &loss));
    TB_TRY(tb_model_gradients(m, &b, o->grads));
    TB_TRY(tb_optimizer_step(o, &adam, number, 1e-3, &u));
    tb_model_after(m);
    return tb_model_update(m, &b);
}

/* The one slab, and what plans hold themselves. */
static size_t bytes_held(const tb_bound *b)
{
    size_t n = b->bytes;
    for (size_t i = 0; i < b->nplans; i++)
        n += b->plans[i] ? tb_plan_angle_bytes(b->plans[i]) : 0;
    return n;
}

static void steady(tb_test *T, const char *what)
{
    tb_block *b = NULL;
    tb_model *m = NULL;
    tb_optimizer *o = NULL;
    size_t bytes = 0, saved;
    TB_OKAY(T, make(T, what, 32, &b, &m));
    TB_OKAY(T, tb_model_memory(m, BATCH, TIME, TIME, PASSES, &bytes, &saved));
    TB_CHECK(T, bytes == bytes_held(m->bound)); /* as train says before */
    TB_OKAY(T, tb_optimizer_create(T->ctx, TB_F32, m->views, m->nviews,
                                   m->nelements, m->params, &o));
    TB_OKAY(T, step(m, o, 1));
    tb_ctx_fail_alloc_at(T->ctx, 1);
    for (size_t i = 2; i <= STEPS; i++)
        if (step(m, o, i) != TB_OK)
            tb_test_fail(T, __FILE__, __LINE__, "%s, step %zu: %s", what, i,
                         tb_error(T->ctx));
    void *p = tb_alloc(T->ctx, 1, 1); /* the first to ask */
    TB_CHECK(T, !p);
    tb_ctx_fail_alloc_at(T->ctx, 0);
    tb_optimizer_destroy(o);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(no_step_allocates)
{
    for (size_t i = 0; i < tb_builtin_count(); i++)
        steady(T, tb_builtin_name(i));
}

/* --- threads ----------------------------------------------------------------
 */

/* The sum and the number of this process's threads, by their numbers. */
typedef struct crew {
    long sum, count;
} crew;

static bool crew_now(crew *c)
{
    DIR *d = opendir("/proc/self/task");
    *c = (crew){0, 0};
    if (!d)
        return false;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            c->sum += strtol(e->d_name, NULL, 10);
            c->count++;
        }
    closedir(d);
    return true;
}

/* Threads of the pool that a smaller team lets go would come back as others. */
TB_TEST(no_step_starts_a_thread)
{
    tb_block *b = NULL;
    tb_model *m = NULL;
    tb_optimizer *o = NULL;
    crew before, now;
    if (!tb_streq(tb_threads_backend(), "openmp") || !crew_now(&before))
        TB_SKIP(T, "no pool of OpenMP, or no /proc/self/task");
    tb_ctx_threads(T->ctx, 4);
    TB_OKAY(T, make(T, "pre-ln", 128, &b, &m));
    TB_OKAY(T, tb_optimizer_create(T->ctx, TB_F32, m->views, m->nviews,
                                   m->nelements, m->params, &o));
    TB_OKAY(T, step(m, o, 1));
    TB_CHECK(T, crew_now(&before) && before.count == tb_threads_count(T->ctx));
    for (size_t i = 2; i <= 2 * STEPS; i++) {
        TB_OKAY(T, step(m, o, i));
        TB_CHECK(T, crew_now(&now) && now.sum == before.sum &&
                        now.count == before.count);
    }
    tb_optimizer_destroy(o);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}
