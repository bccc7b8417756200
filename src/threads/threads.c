/* SPDX-License-Identifier: MIT */
/* Cutting work into chunks, the same for every back end: pure functions of
 * the shape, so that partial sums do not depend on the machine. */
#include "threads/threads.h"

size_t tb_chunks(size_t n, size_t grain)
{
    size_t k = n / (grain > 0 ? grain : 1);
    if (k > TB_CHUNKS_MAX)
        k = TB_CHUNKS_MAX;
    return k > 0 ? k : 1;
}

size_t tb_chunk_at(size_t n, size_t chunks, size_t c)
{
    /* the first n % chunks pieces are one item longer; c * n could overflow */
    size_t extra = n % chunks;
    return c * (n / chunks) + (c < extra ? c : extra);
}
