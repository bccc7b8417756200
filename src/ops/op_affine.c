/* SPDX-License-Identifier: MIT */
/* affine: y = scale x + offset, both constants of the text (x = 2*x, 1 - g).
 */
#include "ops/op_help.h"

/* y += offset */
static void shift(const tb_opcall *c, size_t n, double offset, void *y)
{
    tb_op_block b;
    size_t len = n < TB_OP_BLOCK ? n : TB_OP_BLOCK;
    for (size_t i = 0; i < len; i++)
        tb_op_set(c, &b, i, offset);
    for (size_t i = 0; i < n; i += TB_OP_BLOCK)
        tb_op_plus(c, n - i < TB_OP_BLOCK ? n - i : TB_OP_BLOCK, &b,
                   tb_op_at(c, y, i));
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    void *y = tb_op_at(c, c->out, from);
    c->k->scale(to - from, c->attr[TB_ATTR_AFFINE_SCALE],
                tb_op_peek(c, c->in[0], from), y);
    if (c->attr[TB_ATTR_AFFINE_OFFSET] != 0)
        shift(c, to - from, c->attr[TB_ATTR_AFFINE_OFFSET], y);
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    c->k->axpy(to - from, c->attr[TB_ATTR_AFFINE_SCALE],
               tb_op_peek(c, c->gout, from), tb_op_at(c, c->gin[0], from));
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    c->k->scale(to - from, c->attr[TB_ATTR_AFFINE_SCALE],
                tb_op_peek(c, c->tin[0], from), tb_op_at(c, c->tout, from));
}

const tb_op tb_op_affine = {
    .name = "affine",
    .symbol = "affine",
    .min_in = 1,
    .max_in = 1,
    .nattr = 2,
    .attr_name = {"scale", "offset"},
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_AFFINE,
    .shape = tb_op_shape_keep,
    .fwd_rows = fwd_range,
    .bwd_rows = bwd_range,
    .tan_rows = tan_range,
    .elements = true,
};
