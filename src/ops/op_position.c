/* SPDX-License-Identifier: MIT */
/* position: y[b,t,:] = x[b,t,:] + table[start + t,:], learned positions. A time
 * beyond the table gets nothing added and is a finding of `check`. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    (void)nin;
    if (!tb_op_place_ok(attr[TB_ATTR_POSITION_START], why))
        return false;
    if (in[0].kind != TB_SHAPE_STREAM)
        return tb_op_no(why, "positions are added to a stream");
    if (in[1].kind != TB_SHAPE_MATRIX || in[1].width != in[0].width)
        return tb_op_no(why, "its table must be [longest time, width]");
    *out = in[0];
    return true;
}

static size_t start_of(const tb_opcall *c)
{
    return (size_t)c->attr[TB_ATTR_POSITION_START];
}

/* Times that have a row in the table. */
static size_t known_times(const tb_opcall *c)
{
    size_t most = c->in_shape[1].height, start = start_of(c);
    most = most > start ? most - start : 0;
    return c->time < most ? c->time : most;
}

/* The table from the first token's row on. */
static const void *table_of(const tb_opcall *c, const void *table)
{
    return tb_op_peek(c, table, start_of(c) * c->out_shape.width);
}

/* y = x + table, rows [from, to); x and table may be NULL (zero) */
static void add_table(const tb_opcall *c, size_t from, size_t to, const void *x,
                      const void *table, void *y)
{
    size_t d = c->out_shape.width;
    for (size_t r = from; r < to; r++) {
        size_t t = r % c->time;
        void *yr = tb_op_at(c, y, r * d);
        tb_op_copy(c, d, tb_op_peek(c, x, r * d), yr);
        if (table && t < known_times(c))
            tb_op_plus(c, d, tb_op_peek(c, table, t * d), yr);
    }
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    add_table(c, from, to, c->in[0], table_of(c, c->in[1]), c->out);
}

static void bwd_x_range(const tb_opcall *c, size_t from, size_t to,
                        size_t chunk)
{
    (void)chunk;
    size_t d = c->out_shape.width;
    tb_op_plus(c, (to - from) * d, tb_op_peek(c, c->gout, from * d),
               tb_op_at(c, c->gin[0], from * d));
}

/* Table rows [from, to): the batch adds up in order. */
static void bwd_table_range(const tb_opcall *c, size_t from, size_t to,
                            size_t chunk)
{
    (void)chunk;
    size_t d = c->out_shape.width;
    for (size_t b = 0; b < c->batch; b++)
        tb_op_plus(c, (to - from) * d,
                   tb_op_peek(c, c->gout, (b * c->time + from) * d),
                   tb_op_at(c, c->gin[1], (start_of(c) + from) * d));
}

static void bwd(const tb_opcall *c)
{
    size_t d = c->out_shape.width;
    if (c->gin[1])
        tb_op_each(c, known_times(c), tb_op_times(d, c->batch),
                   bwd_table_range);
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    add_table(c, from, to, c->tin[0], table_of(c, c->tin[1]), c->tout);
}

static const char *check(const tb_opcall *c, size_t *row)
{
    *row = known_times(c);
    return c->batch && *row < c->time ? "time beyond the position table" : NULL;
}

const tb_op tb_op_position = {
    .name = "position",
    .symbol = "position",
    .min_in = 2,
    .max_in = 2,
    .noption = 1,
    .attr_name = {"start"},
    .place = TB_ATTR_POSITION_START + 1,
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_SUM,
    .shape = shape,
    .fwd_rows = fwd_range,
    .bwd_rows = bwd_x_range,
    .rows_in = TB_NEED_IN(0),
    .bwd = bwd,
    .tan_rows = tan_range,
    .check = check,
};
