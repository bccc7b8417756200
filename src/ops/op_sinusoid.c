/* SPDX-License-Identifier: MIT */
/* sinusoid: y[b,t,2i] = x + sin(a), y[b,t,2i+1] = x + cos(a) with the angle
 * a = (start + t) 10000^(-2i/d), t from 0 (Vaswani et al. 2017,
 * arXiv:1706.03762). The same for every row; no table, so a time may be any. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    return tb_op_place_ok(attr[TB_ATTR_POSITION_START], why) &&
           tb_op_shape_stream(in, nin, attr, out, why);
}

/* In scratch: what each pair of elements turns by from a token to the next. */
static void turns(const tb_opcall *c)
{
    size_t d = c->out_shape.width;
    double *turn = c->scratch;
    for (size_t i = 0; i < d; i += 2)
        turn[i / 2] = tb_pow(10000, -(double)i / (double)d);
}

static size_t scratch(const tb_opcall *c)
{
    return tb_op_part_bytes(1, c->out_shape.width / 2 + 1);
}

/* Times [from, to) of every row. */
static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t d = c->out_shape.width;
    const double *turn = c->scratch;
    double start = c->attr[TB_ATTR_POSITION_START];
    (void)chunk;
    for (size_t t = from; t < to; t++)
        for (size_t i = 0; i < d; i++) {
            double angle = (start + (double)t) * turn[i / 2];
            double wave = i % 2 ? tb_cos(angle) : tb_sin(angle);
            for (size_t b = 0; b < c->batch; b++) {
                size_t at = (b * c->time + t) * d + i;
                tb_op_set(c, c->out, at, tb_op_get(c, c->in[0], at) + wave);
            }
        }
}

/* A wave costs about as much as this many elements. */
enum { COST = 16 };

static void fwd(const tb_opcall *c)
{
    turns(c);
    tb_op_each(c, c->time, tb_op_times(c->out_shape.width, COST + c->batch),
               fwd_range);
}

static void bwd(const tb_opcall *c)
{
    if (c->gin[0])
        tb_op_plus(c, tb_op_out_count(c), c->gout, c->gin[0]);
}

static void tan_(const tb_opcall *c)
{
    tb_op_copy(c, tb_op_out_count(c), c->tin[0], c->tout);
}

const tb_op tb_op_sinusoid = {
    .name = "sinusoid",
    .symbol = "sinusoid",
    .min_in = 1,
    .max_in = 1,
    .noption = 1,
    .attr_name = {"start"},
    .place = TB_ATTR_POSITION_START + 1,
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_SUM,
    .shape = shape,
    .scratch = scratch,
    .fwd = fwd,
    .bwd = bwd,
    .tan = tan_,
};
