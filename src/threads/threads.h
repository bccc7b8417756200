/* SPDX-License-Identifier: MIT */
/* The one place that sees OpenMP (or pthreads under TSan, or nothing in
 * wasm). Work is cut by shape, never by thread count, so results do not
 * depend on how many threads run. */
#ifndef TB_THREADS_THREADS_H
#define TB_THREADS_THREADS_H

#include "base/base.h"

typedef void (*tb_chunk_fn)(void *arg, size_t chunk);

/** tb_parallel - run fn(arg, 0..n-1), each once, in any order, and wait. Runs
 * inline when n is 1, when the context allows one thread, or when called from
 * inside another tb_parallel. */
void tb_parallel(const tb_ctx *ctx, size_t n, tb_chunk_fn fn, void *arg);

/** tb_parallel_slots - the same on at most `slots` threads, at least 1; fn is
 * also told which of them runs it, 0 .. slots-1: two chunks that run at once
 * have two slots. */
typedef void (*tb_slot_fn)(void *arg, size_t chunk, size_t slot);
void tb_parallel_slots(const tb_ctx *ctx, size_t slots, size_t n, tb_slot_fn fn,
                       void *arg);

/** tb_threads_count - how many threads tb_parallel will use. */
int tb_threads_count(const tb_ctx *ctx);

/** tb_threads_backend - "openmp", "pthread" or "serial". */
const char *tb_threads_backend(void);

/** tb_threads_lend - until tb_threads_return, an OpenMP library called from
 * this thread uses tb_threads_count threads, or 1 inside tb_parallel. Returns
 * what to hand to tb_threads_return. */
int tb_threads_lend(const tb_ctx *ctx);
void tb_threads_return(int lent);

/** tb_threads_inside - true on a thread that runs a chunk of tb_parallel. */
bool tb_threads_inside(void);

/** tb_chunks - pieces of at least `grain` items out of n, at least 1 and at
 * most TB_CHUNKS_MAX; the piece c covers [tb_chunk_at(n,k,c),
 * tb_chunk_at(n,k,c+1)). Pure functions of the shape. */
enum { TB_CHUNKS_MAX = 64 };
size_t tb_chunks(size_t n, size_t grain);
size_t tb_chunk_at(size_t n, size_t chunks, size_t c);

#endif
