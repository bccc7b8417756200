/* SPDX-License-Identifier: MIT */
/* headscale: each of n equal parts of the width, a head, times its element of
 * a vector of n (NormFormer, Shleifer et al. 2021, arXiv:2110.09456; cosine
 * attention, Liu Z. et al. 2021, arXiv:2111.09883). */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    (void)nin, (void)attr;
    if (in[0].kind != TB_SHAPE_STREAM || in[1].kind != TB_SHAPE_VECTOR)
        return tb_op_no(why, "it scales a stream by a vector");
    if (in[0].width % in[1].width)
        return tb_op_no(why, "the width cannot be parted into so many heads");
    *out = in[0];
    return true;
}

static size_t heads(const tb_opcall *c)
{
    return c->in_shape[1].width;
}

static size_t part(const tb_opcall *c)
{
    return c->out_shape.width / heads(c);
}

/* y += w_h x for head h of every token; NULL is zero */
static void add(const tb_opcall *c, size_t from, size_t to, const void *x,
                const void *w, void *y)
{
    size_t n = part(c);
    for (size_t r = from; r < to && x && w; r++)
        for (size_t h = 0, at = r * c->out_shape.width; h < heads(c); h++) {
            c->k->axpy(n, tb_op_get(c, w, h), tb_op_peek(c, x, at),
                       tb_op_at(c, y, at));
            at += n;
        }
}

static void clear(const tb_opcall *c, size_t from, size_t to, void *y)
{
    size_t d = c->out_shape.width;
    tb_op_copy(c, (to - from) * d, NULL, tb_op_at(c, y, from * d));
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    clear(c, from, to, c->out);
    add(c, from, to, c->in[0], c->in[1], c->out);
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    clear(c, from, to, c->tout);
    add(c, from, to, c->tin[0], c->in[1], c->tout);
    add(c, from, to, c->in[0], c->tin[1], c->tout);
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t n = part(c), d = c->out_shape.width;
    double *sums = tb_op_part(c, chunk, heads(c));
    if (c->gin[0])
        add(c, from, to, c->gout, c->in[1], c->gin[0]);
    for (size_t r = from; r < to && c->gin[1]; r++)
        for (size_t h = 0; h < heads(c); h++)
            sums[h] += c->k->dot(n, tb_op_peek(c, c->gout, r * d + h * n),
                                 tb_op_peek(c, c->in[0], r * d + h * n));
}

static void join(const tb_opcall *c, size_t pieces)
{
    tb_op_join(c, pieces, heads(c), 0, heads(c), c->gin[1]);
}

const tb_op tb_op_headscale = {
    .name = "headscale",
    .symbol = "headscale",
    .min_in = 2,
    .max_in = 2,
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_SYMBOL,
    .needs = TB_NEED_IN(0) | TB_NEED_IN(1),
    .shape = shape,
    .fwd_rows = fwd_range,
    .bwd_rows = bwd_range,
    .tan_rows = tan_range,
    .part = heads,
    .join = join,
};
