/* SPDX-License-Identifier: MIT */
/* Our own matrix products: serial for tests, and cut into parts for
 * tb_parallel. The arithmetic is in gemm_template.h. */
#include "kernels/kern_tables.h"
#include "threads/threads.h"

/* Parts end between whole tiles of any instruction set (their rows: 4, 6, 8,
 * 12; their columns: 4 to 32), so the bits do not depend on the parts. */
enum { PART_ROWS = 24, PART_COLS = 32 };

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

/* Both ends of a chunk are whole blocks, except the last: its longest. */
static double longest(size_t n, size_t block, size_t chunks)
{
    size_t blocks = (n + block - 1) / block;
    size_t most = (blocks + chunks - 1) / chunks * block;
    return (double)(most < n ? most : n);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* As many parts as threads, or fewer, so that the longest takes least time: its
 * tiles, and its copies. Measured on a Zen 4: to copy a row of B takes as long
 * as 20 rows of tiles, to fetch or copy one of A as long as 6 columns. */
static void choose_grid(const tb_gemm_args *g, size_t parts, tb_gemm_grid *grid)
{
    const size_t most_cols = tb_chunks(g->n, PART_COLS);
    double best = 0;
    for (size_t rows = 1; rows <= least(parts, tb_chunks(g->m, PART_ROWS));
         rows++) {
        size_t cols = least(parts / rows, most_cols);
        double cost = (longest(g->m, PART_ROWS, rows) + 20) *
                      (longest(g->n, PART_COLS, cols) + 6);
        if (best > 0 && cost >= best)
            continue;
        best = cost;
        grid->rows = rows;
        grid->cols = cols;
    }
}

void tb_gemm_cut(const tb_ctx *ctx, const tb_gemm_args *g, tb_gemm_part_fn part)
{
    tb_gemm_grid grid = {.g = g, .part = part, .rows = 1, .cols = 1};
    /* a part of less, about 5 us of work, costs more to start than it saves;
     * few rows wait for B, some 6 rows long */
    const double m = g->m < 6 ? 6 : (double)g->m;
    const double parts = m * (double)g->n * (double)g->k / 150e3;
    const int threads = tb_threads_count(ctx);
    if (parts >= 2 && threads >= 2)
        choose_grid(g, parts < threads ? (size_t)parts : (size_t)threads,
                    &grid);
    tb_parallel(ctx, grid.rows * grid.cols, run_part, &grid);
}

void tb_gemm_own(const tb_ctx *ctx, const tb_gemm_args *g)
{
    tb_gemm_cut(ctx, g,
                tb_gemm_part_get(tb_ctx_isa_limit(ctx), g->dtype,
                                 !tb_ctx_is_exact(ctx)));
}
