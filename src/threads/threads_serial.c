/* SPDX-License-Identifier: MIT */
/* The serial back end: the browser, and machines without any threads. */
#include "threads/threads.h"

#if !defined(TB_THREADS_OPENMP) && !defined(TB_THREADS_PTHREAD)

const char *tb_threads_backend(void)
{
    return "serial";
}

int tb_threads_count(const tb_ctx *ctx)
{
    (void)ctx;
    return 1;
}

bool tb_threads_inside(void)
{
    return false;
}

void tb_parallel(const tb_ctx *ctx, size_t n, tb_chunk_fn fn, void *arg)
{
    (void)ctx;
    for (size_t c = 0; c < n; c++)
        fn(arg, c);
}

void tb_parallel_slots(const tb_ctx *ctx, size_t slots, size_t n, tb_slot_fn fn,
                       void *arg)
{
    (void)ctx, (void)slots;
    for (size_t c = 0; c < n; c++)
        fn(arg, c, 0);
}

int tb_threads_lend(const tb_ctx *ctx)
{
    (void)ctx;
    return 1;
}

void tb_threads_return(int lent)
{
    (void)lent;
}

#endif
