/* SPDX-License-Identifier: MIT */
/* identity: y = x. branch: y = x, the end of a sublayer, cut with it. stop:
 * y = x too, but no gradient and no tangent pass. */
#include "ops/op_help.h"

static void copy_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    tb_op_copy(c, to - from, tb_op_peek(c, c->in[0], from),
               tb_op_at(c, c->out, from));
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    const void *gy = tb_op_peek(c, c->gout, from);
    const void *base = tb_op_peek(c, c->gbase[0], from);
    void *gx = tb_op_at(c, c->gin[0], from);
    if (base)
        c->k->add(to - from, base, gy, gx);
    else
        tb_op_copy(c, to - from, gy, gx);
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    tb_op_copy(c, to - from, tb_op_peek(c, c->tin[0], from),
               tb_op_at(c, c->tout, from));
}

static void stop_bwd(const tb_opcall *c)
{
    (void)c;
}

static void stop_tan(const tb_opcall *c)
{
    tb_op_copy(c, tb_op_out_count(c), NULL, c->tout);
}

const tb_op tb_op_identity = {
    .name = "identity",
    .symbol = "I",
    .min_in = 1,
    .max_in = 1,
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_SUM,
    .alias = true,
    .shape = tb_op_shape_keep,
    .fwd_rows = copy_range,
    .bwd_rows = bwd_range,
    .tan_rows = tan_range,
    .elements = true,
    .bases = TB_NEED_IN(0),
};

const tb_op tb_op_branch = {
    .name = "branch",
    .symbol = "I",
    .min_in = 1,
    .max_in = 1,
    .lane = TB_LANE_CUT,
    .jac = TB_JAC_SUM,
    .alias = true,
    .shape = tb_op_shape_keep,
    .fwd_rows = copy_range,
    .bwd_rows = bwd_range,
    .tan_rows = tan_range,
    .elements = true,
    .bases = TB_NEED_IN(0),
};

const tb_op tb_op_stop = {
    .name = "stop",
    .symbol = "stop",
    .min_in = 1,
    .max_in = 1,
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_ZERO,
    .alias = true,
    .shape = tb_op_shape_keep,
    .fwd_rows = copy_range,
    .elements = true,
    .bwd = stop_bwd,
    .tan = stop_tan,
};
