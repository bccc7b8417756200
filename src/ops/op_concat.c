/* SPDX-License-Identifier: MIT */
/* concat: streams side by side in the width; with groups the g-th parts of all
 * of them, then the next: heads of one number together. */
#include "ops/op_help.h"

static size_t groups(const double *attr)
{
    double n = attr[TB_ATTR_CONCAT_GROUPS];
    return n >= 1 ? (size_t)n : 1;
}

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    size_t width = 0, n = groups(attr);
    if ((double)n != attr[TB_ATTR_CONCAT_GROUPS] &&
        attr[TB_ATTR_CONCAT_GROUPS] != 0)
        return tb_op_no(why, "groups must be a whole number, 1 or more");
    for (int i = 0; i < nin; i++) {
        if (in[i].kind != TB_SHAPE_STREAM)
            return tb_op_no(why, "only streams can be joined");
        if (in[i].width % n)
            return tb_op_no(why, "groups must divide the width");
        if (!tb_add(width, in[i].width, &width))
            return tb_op_no(why, "the joined width is too large");
    }
    *out = (tb_shape){TB_SHAPE_STREAM, width, 1};
    return true;
}

/* Rows [from, to) of all parts; x[i] NULL is zero. */
static void join(const tb_opcall *c, size_t from, size_t to,
                 const void *const *x, void *y)
{
    size_t n = groups(c->attr), at = from * c->out_shape.width;
    for (size_t part = from * n; part < to * n; part++)
        for (size_t i = 0; i < (size_t)c->nin; i++) {
            size_t w = c->in_shape[i].width / n;
            tb_op_copy(c, w, tb_op_peek(c, x[i], part * w), tb_op_at(c, y, at));
            at += w;
        }
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    join(c, from, to, c->in, c->out);
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t n = groups(c->attr), at = from * c->out_shape.width;
    (void)chunk;
    for (size_t part = from * n; part < to * n; part++)
        for (size_t i = 0; i < (size_t)c->nin; i++) {
            size_t w = c->in_shape[i].width / n;
            if (c->gin[i])
                tb_op_plus(c, w, tb_op_peek(c, c->gout, at),
                           tb_op_at(c, c->gin[i], part * w));
            at += w;
        }
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    join(c, from, to, c->tin, c->tout);
}

const tb_op tb_op_concat = {
    .name = "concat",
    .symbol = "concat",
    .min_in = 1,
    .max_in = TB_OP_INPUTS,
    .noption = 1,
    .attr_name = {"groups"},
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_MULTI,
    .shape = shape,
    .fwd_rows = fwd_range,
    .bwd_rows = bwd_range,
    .tan_rows = tan_range,
};
