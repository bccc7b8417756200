/* SPDX-License-Identifier: MIT */
/* The OpenMP back end. The number of threads is a clause or a setting of the
 * calling thread only: nothing outside tollbooth changes its behaviour. */
#include "threads/threads.h"

#if defined(TB_THREADS_OPENMP)

#    include <omp.h>

const char *tb_threads_backend(void)
{
    return "openmp";
}

int tb_threads_count(const tb_ctx *ctx)
{
    int limit = tb_ctx_thread_limit(ctx);
    int n = limit > 0 ? limit : omp_get_max_threads();
    int most = omp_get_thread_limit(); /* OMP_THREAD_LIMIT, else huge */
    most = most < TB_CHUNKS_MAX ? most : TB_CHUNKS_MAX;
    return n < most ? n : most;
}

bool tb_threads_inside(void)
{
    return omp_in_parallel() != 0;
}

void tb_parallel(const tb_ctx *ctx, size_t n, tb_chunk_fn fn, void *arg)
{
    int threads = tb_threads_count(ctx);
    if (n < 2 || threads < 2 || tb_threads_inside()) {
        for (size_t c = 0; c < n; c++)
            fn(arg, c);
        return;
    }
    /* dynamic: causal rows are unequal and cores are often shared */
#    pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (size_t c = 0; c < n; c++)
        fn(arg, c);
}

void tb_parallel_slots(const tb_ctx *ctx, size_t slots, size_t n, tb_slot_fn fn,
                       void *arg)
{
    int threads = tb_threads_count(ctx);
    if ((size_t)threads > slots)
        threads = (int)slots;
    if (n < 2 || threads < 2 || tb_threads_inside()) {
        for (size_t c = 0; c < n; c++)
            fn(arg, c, 0);
        return;
    }
#    pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (size_t c = 0; c < n; c++)
        fn(arg, c, (size_t)omp_get_thread_num());
}

int tb_threads_lend(const tb_ctx *ctx)
{
    int before = omp_get_max_threads();
    omp_set_num_threads(tb_threads_inside() ? 1 : tb_threads_count(ctx));
    return before;
}

void tb_threads_return(int lent)
{
    omp_set_num_threads(lent);
}

#endif
