/* SPDX-License-Identifier: MIT */
/* embed: y[b,t,:] = table[token[b,t],:]. A token outside the table gives a
 * row of zeros, no gradient, and a finding of `check`. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    (void)nin, (void)attr;
    if (in[0].kind != TB_SHAPE_TOKENS)
        return tb_op_no(why, "an embedding looks up tokens");
    if (in[1].kind != TB_SHAPE_MATRIX)
        return tb_op_no(why, "its table must be a matrix [vocabulary, width]");
    *out = (tb_shape){TB_SHAPE_STREAM, in[1].width, 1};
    return true;
}

/* The table row of token r; false where there is none. */
static bool table_row(const tb_opcall *c, size_t r, size_t *row)
{
    int32_t token = ((const int32_t *)c->in[0])[r];
    *row = token < 0 ? SIZE_MAX : (size_t)token;
    return *row < c->in_shape[1].height;
}

static void look_up(const tb_opcall *c, size_t from, size_t to,
                    const void *table, void *y)
{
    size_t d = c->out_shape.width, row;
    for (size_t r = from; r < to; r++)
        tb_op_copy(c, d,
                   table_row(c, r, &row) ? tb_op_peek(c, table, row * d) : NULL,
                   tb_op_at(c, y, r * d));
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    look_up(c, from, to, c->in[1], c->out);
}

/* A chunk's columns: a few lines of the cache, so that a call is worth it. */
enum { BLOCK = 64 };

/* Blocks [from, to) of columns of every row in order: tokens that repeat add
 * up in the same order whatever the number of threads. */
static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    size_t d = c->out_shape.width, at = from * BLOCK, row;
    size_t n = (to * BLOCK < d ? to * BLOCK : d) - at;
    for (size_t r = 0; r < tb_op_rows(c); r++)
        if (table_row(c, r, &row))
            tb_op_plus(c, n, tb_op_peek(c, c->gout, r * d + at),
                       tb_op_at(c, c->gin[1], row * d + at));
}

static void bwd(const tb_opcall *c)
{
    if (c->gin[1])
        tb_op_each(c, (c->out_shape.width + BLOCK - 1) / BLOCK,
                   tb_op_times(BLOCK, tb_op_rows(c)), bwd_range);
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    look_up(c, from, to, c->tin[1], c->tout);
}

static const char *check(const tb_opcall *c, size_t *row)
{
    size_t at;
    for (size_t r = 0; r < tb_op_rows(c); r++)
        if (!table_row(c, r, &at)) {
            *row = r;
            return "token outside the vocabulary";
        }
    return NULL;
}

const tb_op tb_op_embed = {
    .name = "embed",
    .symbol = "embed",
    .min_in = 2,
    .max_in = 2,
    .lane = TB_LANE_CUT,
    .jac = TB_JAC_LEAF, /* no stream goes in */
    .needs = TB_NEED_IN(0),
    .shape = shape,
    .fwd_rows = fwd_range,
    .bwd = bwd,
    .tan_rows = tan_range,
    .check = check,
};
