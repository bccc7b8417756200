/* SPDX-License-Identifier: MIT */
/* How much memory attention works in: what kern_attn.h carves up. */
#include "kernels/kernels.h"

static size_t wide(size_t n)
{
    return n < SIZE_MAX - 16 ? (n + 15) / 16 * 16 : SIZE_MAX;
}

size_t tb_attn_work(size_t rows, size_t hd, size_t vd)
{
    const size_t keys = TB_ATTN_KEYS + TB_ATTN_SPARE;
    const size_t tile = TB_ATTN_ROWS + TB_ATTN_SPARE;
    const size_t h = wide(hd), v = wide(vd), most = h > v ? h : v;
    size_t all, blocks, per_row;
    bool fits = tb_mul(most, 6 * keys + 2 * tile, &blocks) &&
                tb_add(rows, TB_ATTN_SPARE, &rows) &&
                tb_add(most, 1, &per_row) && tb_mul(rows, per_row, &all) &&
                tb_add(all, blocks, &all) &&
                tb_add(all, 2 * tile * (TB_ATTN_KEYS + 16), &all);
    return fits ? all : SIZE_MAX;
}
