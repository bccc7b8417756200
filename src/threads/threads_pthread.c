/* SPDX-License-Identifier: MIT */
/* The POSIX threads back end, for ThreadSanitizer (which cannot see into
 * libgomp) and for compilers without OpenMP. Threads live for one call: some
 * 30 us each, and no pool that would be a mutable global. */
#include "threads/threads.h"

#if defined(TB_THREADS_PTHREAD)

#    include <pthread.h>
#    include <stdatomic.h>
#    include <unistd.h>

static _Thread_local bool inside; /* this thread runs a chunk */

typedef struct tb_crew {
    tb_slot_fn fn;
    void *arg;
    size_t n;
    atomic_size_t next; /* first chunk nobody has taken */
    atomic_size_t slot; /* first slot nobody has */
} tb_crew;

const char *tb_threads_backend(void)
{
    return "pthread";
}

int tb_threads_count(const tb_ctx *ctx)
{
    int limit = tb_ctx_thread_limit(ctx);
    long n = limit > 0 ? limit : sysconf(_SC_NPROCESSORS_ONLN);
    if (n < 1)
        return 1;
    return n < TB_CHUNKS_MAX ? (int)n : TB_CHUNKS_MAX;
}

bool tb_threads_inside(void)
{
    return inside;
}

static void *crew_work(void *crew_)
{
    tb_crew *crew = crew_;
    size_t slot = atomic_fetch_add(&crew->slot, 1);
    inside = true;
    for (;;) {
        size_t c = atomic_fetch_add(&crew->next, 1);
        if (c >= crew->n)
            break;
        crew->fn(crew->arg, c, slot);
    }
    inside = false;
    return NULL;
}

void tb_parallel_slots(const tb_ctx *ctx, size_t slots, size_t n, tb_slot_fn fn,
                       void *arg)
{
    size_t threads = (size_t)tb_threads_count(ctx), started = 0;
    threads = threads > slots ? slots : threads;
    threads = threads > n ? n : threads;
    if (threads < 2 || inside) {
        for (size_t c = 0; c < n; c++)
            fn(arg, c, 0);
        return;
    }
    tb_crew crew = {.fn = fn, .arg = arg, .n = n};
    pthread_t worker[TB_CHUNKS_MAX];
    /* a thread that cannot start is no failure: the others do its work */
    while (started + 1 < threads &&
           pthread_create(&worker[started], NULL, crew_work, &crew) == 0)
        started++;
    crew_work(&crew);
    for (size_t i = 0; i < started; i++)
        pthread_join(worker[i], NULL);
}

typedef struct plain {
    tb_chunk_fn fn;
    void *arg;
} plain;

static void run_plain(void *arg, size_t chunk, size_t slot)
{
    const plain *p = arg;
    (void)slot;
    p->fn(p->arg, chunk);
}

void tb_parallel(const tb_ctx *ctx, size_t n, tb_chunk_fn fn, void *arg)
{
    plain p = {fn, arg};
    tb_parallel_slots(ctx, TB_CHUNKS_MAX, n, run_plain, &p);
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
