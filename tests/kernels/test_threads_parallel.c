/* SPDX-License-Identifier: MIT */
/* Chunks are pure functions of the shape; tb_parallel runs each exactly once
 * and nested calls stay on their thread. */
#include "tb_test.h"
#include "threads/threads.h"

TB_TEST(chunks_cover_everything_once)
{
    for (size_t n = 0; n < 300; n++)
        for (size_t grain = 0; grain < 20; grain++) {
            size_t k = tb_chunks(n, grain);
            TB_CHECK(T, k >= 1 && k <= TB_CHUNKS_MAX);
            TB_CHECK(T, tb_chunk_at(n, k, 0) == 0);
            TB_CHECK(T, tb_chunk_at(n, k, k) == n);
            for (size_t c = 0; c < k; c++) {
                size_t len = tb_chunk_at(n, k, c + 1) - tb_chunk_at(n, k, c);
                TB_CHECK(T, len <= n / k + 1);
                TB_CHECK(T, len >= grain || k == 1);
            }
        }
    TB_CHECK(T, tb_chunk_at(SIZE_MAX, 64, 64) == SIZE_MAX);
}

enum { CHUNKS = 50 };
typedef struct visits {
    tb_ctx *ctx;
    int count[CHUNKS], nested[CHUNKS][4];
    bool inside[CHUNKS];
} visits;

static void inner(void *arg, size_t chunk)
{
    int *nested = arg;
    nested[chunk]++; /* no lock: nested chunks run on one thread */
}

static void outer(void *arg, size_t chunk)
{
    visits *v = arg;
    v->count[chunk]++;
    v->inside[chunk] = tb_threads_inside();
    tb_parallel(v->ctx, 4, inner, v->nested[chunk]);
}

TB_TEST(every_chunk_runs_once)
{
    for (int threads = 1; threads <= 3; threads++) {
        visits v = {.ctx = T->ctx};
        tb_ctx_threads(T->ctx, threads);
        tb_parallel(T->ctx, CHUNKS, outer, &v);
        for (int c = 0; c < CHUNKS; c++) {
            TB_CHECK(T, v.count[c] == 1);
            TB_CHECK(T, v.inside[c] == (tb_threads_count(T->ctx) > 1));
            for (int i = 0; i < 4; i++)
                TB_CHECK(T, v.nested[c][i] == 1);
        }
        TB_CHECK(T, !tb_threads_inside());
    }
}

TB_TEST(the_limit_is_the_count)
{
    bool serial = tb_streq(tb_threads_backend(), "serial");
    for (int n = 1; n <= 3; n++) {
        tb_ctx_threads(T->ctx, n);
        TB_CHECK(T, tb_threads_count(T->ctx) == (serial ? 1 : n));
    }
    tb_ctx_threads(T->ctx, 1000000);
    TB_CHECK(T, tb_threads_count(T->ctx) <= TB_CHUNKS_MAX);
}

TB_TEST(lending_is_undone)
{
    int before = tb_threads_lend(T->ctx);
    tb_threads_return(before);
    TB_CHECK(T, tb_threads_lend(T->ctx) == before);
    tb_threads_return(before);
}
