/* SPDX-License-Identifier: MIT */
/* skipdrop: the same for whole sequences, one number each: stochastic depth of
 * a branch (Huang et al. 2016, arXiv:1603.09382).
 *
 * drop: y = m (.) x, each element of m being 0 with probability p, else
 * 1/(1-p) (Srivastava et al. 2014). m is a pure function of the node's random
 * stream and the element's index: nothing is stored, every pass and any
 * number of threads sees the same mask. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    if (!(attr[TB_ATTR_DROP_P] >= 0 && attr[TB_ATTR_DROP_P] <= 1))
        return tb_op_no(why, "the drop probability must lie in 0 .. 1");
    return tb_op_shape_stream(in, nin, attr, out, why);
}

static void apply(const tb_opcall *c, size_t from, size_t to, const void *x,
                  bool add, void *y)
{
    tb_op_mask(c, c->attr[TB_ATTR_DROP_P], from, to - from,
               tb_op_peek(c, x, from), add, tb_op_at(c, y, from));
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    apply(c, from, to, c->in[0], false, c->out);
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    apply(c, from, to, c->gout, true, c->gin[0]);
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    apply(c, from, to, c->tin[0], false, c->tout);
}

/* Masks are drawn by an element's number. */
static tb_reach reach(const double *attr)
{
    return attr[TB_ATTR_DROP_P] > 0 ? TB_REACH_BATCH : TB_REACH_TOKEN;
}

const tb_op tb_op_drop = {
    .name = "drop",
    .symbol = "drop",
    .min_in = 1,
    .max_in = 1,
    .nattr = 1,
    .attr_name = {"p"},
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_SYMBOL,
    .shape = shape,
    .fwd_rows = fwd_range,
    .bwd_rows = bwd_range,
    .tan_rows = tan_range,
    .elements = true,
    .reach = reach,
};

/* --- skipdrop ----------------------------------------------------------- */

static void skip_rows(const tb_opcall *c, size_t from, size_t to, const void *x,
                      bool add, void *y)
{
    double p = c->attr[TB_ATTR_DROP_P];
    size_t d = c->out_shape.width;
    for (size_t r = from; r < to; r++) {
        bool drop = tb_rng_drops(c->rng, r / c->time, p);
        double m = drop ? 0 : 1 / (1 - p);
        const void *xr = tb_op_peek(c, x, r * d);
        void *yr = tb_op_at(c, y, r * d);
        if (drop && !add)
            tb_op_copy(c, d, NULL, yr); /* a nan there is dropped too */
        else if (!drop && add)
            c->k->axpy(d, m, xr, yr);
        else if (!drop)
            c->k->scale(d, m, xr, yr);
    }
}

static void skip_fwd_range(const tb_opcall *c, size_t from, size_t to,
                           size_t chunk)
{
    (void)chunk;
    skip_rows(c, from, to, c->in[0], false, c->out);
}

static void skip_bwd_range(const tb_opcall *c, size_t from, size_t to,
                           size_t chunk)
{
    (void)chunk;
    skip_rows(c, from, to, c->gout, true, c->gin[0]);
}

static void skip_tan_range(const tb_opcall *c, size_t from, size_t to,
                           size_t chunk)
{
    (void)chunk;
    skip_rows(c, from, to, c->tin[0], false, c->tout);
}

const tb_op tb_op_skipdrop = {
    .name = "skipdrop",
    .symbol = "drop_branch",
    .min_in = 1,
    .max_in = 1,
    .nattr = 1,
    .attr_name = {"p"},
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_SYMBOL,
    .shape = shape,
    .fwd_rows = skip_fwd_range,
    .bwd_rows = skip_bwd_range,
    .tan_rows = skip_tan_range,
    .reach = reach,
};
