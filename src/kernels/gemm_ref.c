/* SPDX-License-Identifier: MIT */
/* Our own matrix products: serial for tests, and cut into parts for
 * tb_parallel. The arithmetic is in gemm_template.h. */
#include "kernels/kern_tables.h"
#include "threads/threads.h"

/* A part is at least this many rows and columns. */
enum { PART_ROWS = 48, PART_COLS = 64 };

void tb_gemm_ref(const tb_gemm_args *g)
{
    tb_gemm_part all = {0, g->m, 0, g->n};
    tb_gemm_part_ref[g->dtype](g, all);
}

typedef struct tb_gemm_grid {
    const tb_gemm_args *g;
    tb_gemm_part_fn part;
    size_t rows, cols; /* parts along m and n */
} tb_gemm_grid;

/* Both ends of a chunk are whole blocks, except the last. */
static size_t block_at(size_t n, size_t block, size_t chunks, size_t c)
{
    size_t at = tb_chunk_at((n + block - 1) / block, chunks, c) * block;
    return at < n ? at : n;
}

static void run_part(void *arg, size_t chunk)
{
    const tb_gemm_grid *grid = arg;
    size_t m = grid->g->m, n = grid->g->n;
    size_t r = chunk / grid->cols, c = chunk % grid->cols;
    tb_gemm_part part = {
        .i0 = block_at(m, PART_ROWS, grid->rows, r),
        .i1 = block_at(m, PART_ROWS, grid->rows, r + 1),
        .j0 = block_at(n, PART_COLS, grid->cols, c),
        .j1 = block_at(n, PART_COLS, grid->cols, c + 1),
    };
    grid->part(grid->g, part);
}

/* The grid of `parts` that copies least: each of its columns of parts copies
 * all of A, each of its rows all of B. The bits do not depend on it. */
static void choose_grid(const tb_gemm_args *g, int threads, tb_gemm_grid *grid)
{
    size_t parts = threads > 1 ? 2 * (size_t)threads : 1;
    double best = 0;
    for (size_t rows = 1; rows <= parts; rows++) {
        size_t cols = parts / rows;
        double cost = (double)cols * (double)g->m + (double)rows * (double)g->n;
        if (rows * cols < parts || rows > tb_chunks(g->m, PART_ROWS) ||
            cols > tb_chunks(g->n, PART_COLS) || (best > 0 && cost >= best))
            continue;
        best = cost;
        grid->rows = rows;
        grid->cols = cols;
    }
}

void tb_gemm_own(const tb_ctx *ctx, const tb_gemm_args *g)
{
    tb_gemm_grid grid = {.g = g, .rows = 1, .cols = 1};
    grid.part = tb_gemm_part_get(tb_ctx_isa_limit(ctx), g->dtype,
                                 !tb_ctx_is_exact(ctx));
    /* below this (about 10 us of work) waking threads costs more */
    if ((double)g->m * (double)g->n * (double)g->k > 300e3)
        choose_grid(g, tb_threads_count(ctx), &grid);
    tb_parallel(ctx, grid.rows * grid.cols, run_part, &grid);
}
