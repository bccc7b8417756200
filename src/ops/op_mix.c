/* SPDX-License-Identifier: MIT */
/* mix: y = sum over t of A[row, first + t] x_t, one output of a mixing of n
 * streams (Hyper-Connections, Zhu et al. 2024, arXiv:2409.19606; DenseFormer,
 * Pagliardini et al. 2024, arXiv:2402.02622). The last input is A: a matrix [m,
 * n], a vector [n], or a stream of width m n whose every token has its own. */
#include "ops/op_help.h"

/* Of a row of the weights. */
static size_t columns(size_t streams, const double *attr)
{
    double of = attr[TB_ATTR_MIX_OF];
    return of > 0 ? (size_t)of : streams;
}

size_t tb_mix_first(const double *attr, size_t streams)
{
    return (size_t)attr[TB_ATTR_MIX_ROW] * columns(streams, attr) +
           (size_t)attr[TB_ATTR_MIX_FIRST];
}

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    size_t n = columns((size_t)nin - 1, attr);
    tb_shape a = in[nin - 1];
    double row = attr[TB_ATTR_MIX_ROW], first = attr[TB_ATTR_MIX_FIRST];
    for (int i = 0; i < nin - 1; i++)
        if (in[i].kind != TB_SHAPE_STREAM || in[i].width != in[0].width)
            return tb_op_no(why, "what is mixed must be streams of one width");
    bool vector = a.kind == TB_SHAPE_VECTOR, own = a.kind == TB_SHAPE_STREAM;
    if (!vector && !own && a.kind != TB_SHAPE_MATRIX)
        return tb_op_no(why, "its weights must be a matrix, vector or stream");
    if (own ? a.width % n != 0 : a.width != n)
        return tb_op_no(why, "there must be one weight per stream");
    size_t rows = own ? a.width / n : vector ? 1 : a.height;
    if (!(row >= 0 && row < (double)rows) || (double)(size_t)row != row)
        return tb_op_no(why, "the weights have no such row");
    if (!(first >= 0 && first + (nin - 1) <= (double)n))
        return tb_op_no(why, "the weights have no such columns");
    *out = in[0];
    return true;
}

static size_t streams(const tb_opcall *c)
{
    return (size_t)c->nin - 1;
}

static bool per_token(const tb_opcall *c)
{
    return c->in_shape[c->nin - 1].kind == TB_SHAPE_STREAM;
}

/* Index of the first weight of token r. */
static size_t weight_at(const tb_opcall *c, size_t r)
{
    size_t own = per_token(c) ? r * c->in_shape[c->nin - 1].width : 0;
    return own + tb_mix_first(c->attr, streams(c));
}

/* y += sum over t of w[t] x[t], one token; NULL is zero */
static void add_token(const tb_opcall *c, size_t r, const void *w,
                      const void *const *x, void *y)
{
    size_t d = c->out_shape.width, at = weight_at(c, r);
    for (size_t t = 0; t < streams(c) && w; t++)
        if (x[t])
            c->k->axpy(d, tb_op_get(c, w, at + t), tb_op_peek(c, x[t], r * d),
                       tb_op_at(c, y, r * d));
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t d = c->out_shape.width;
    (void)chunk;
    tb_op_copy(c, (to - from) * d, NULL, tb_op_at(c, c->out, from * d));
    for (size_t r = from; r < to; r++)
        add_token(c, r, c->in[c->nin - 1], c->in, c->out);
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t d = c->out_shape.width, n = streams(c);
    void *gw = c->gin[n];
    double *part = tb_op_part(c, chunk, n);
    for (size_t r = from; r < to; r++) {
        const void *gy = tb_op_peek(c, c->gout, r * d);
        for (size_t t = 0, at = weight_at(c, r); t < n; t++) {
            double dot =
                gw ? c->k->dot(d, gy, tb_op_peek(c, c->in[t], r * d)) : 0;
            if (gw && per_token(c))
                tb_op_acc(c, gw, at + t, dot);
            part[t] += dot;
            if (c->gin[t])
                c->k->axpy(d, tb_op_get(c, c->in[n], at + t), gy,
                           tb_op_at(c, c->gin[t], r * d));
        }
    }
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t d = c->out_shape.width;
    (void)chunk;
    tb_op_copy(c, (to - from) * d, NULL, tb_op_at(c, c->tout, from * d));
    for (size_t r = from; r < to; r++) {
        add_token(c, r, c->in[c->nin - 1], c->tin, c->tout);
        add_token(c, r, c->tin[c->nin - 1], c->in, c->tout);
    }
}

static void join(const tb_opcall *c, size_t pieces)
{
    size_t n = streams(c);
    if (!per_token(c))
        tb_op_join(c, pieces, n, 0, n, tb_op_at(c, c->gin[n], weight_at(c, 0)));
}

const tb_op tb_op_mix = {
    .name = "mix",
    .symbol = "mix",
    .min_in = 2,
    .max_in = TB_OP_INPUTS,
    .nattr = 1,
    .noption = 2,
    .attr_name = {"row", "first", "of"},
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_MIX,
    .needs = TB_NEED_OUT - 1, /* every input */
    .shape = shape,
    .fwd_rows = fwd_range,
    .bwd_rows = bwd_range,
    .tan_rows = tan_range,
    .part = streams,
    .join = join,
};
