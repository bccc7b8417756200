/* SPDX-License-Identifier: MIT */
/* rope: rotary positions (Su et al. 2021, arXiv:2104.09864). In each head,
 * pair i of width w turns by t base^(-2i/w), t counted from `start`. Pairs are
 * (i, i + w/2) as in Llama ("rotate half"), or (2i, 2i + 1) as in GPT-J. Only
 * the first w = `rotary` elements of a head turn; the rest pass. */
#include "ops/op_turn.h"

static bool whole(double a, double least)
{
    return a >= least && a <= 1e9 && (double)(size_t)a == a;
}

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    double heads = attr[TB_ATTR_ROPE_HEADS], base = attr[TB_ATTR_ROPE_BASE];
    if (!whole(heads, 1))
        return tb_op_no(why, "heads must be a whole number, 1 or more");
    if (!(base >= 0) || !tb_isfinite(base))
        return tb_op_no(why, "the base must be a number above 0");
    if (!tb_op_place_ok(attr[TB_ATTR_ROPE_START], why))
        return false;
    if (!whole(attr[TB_ATTR_ROPE_ROTARY], 0))
        return tb_op_no(why, "the rotary width must be a whole number");
    if (!tb_op_shape_stream(in, nin, attr, out, why))
        return false;
    if (in[0].width % (size_t)heads)
        return tb_op_no(why, "heads must divide the width");
    const tb_turn r = tb_turn_of(attr, in[0].width);
    if (r.w % 2 || r.w > r.head)
        return tb_op_no(why, "the rotary width must be even and within a head");
    return true;
}

/* --- the passes --------------------------------------------------------- */

static tb_turn turn_of(const tb_opcall *c)
{
    tb_turn r = tb_turn_of(c->attr, c->out_shape.width);
    r.angles = c->angles ? c->angles : c->scratch;
    return r;
}

static size_t scratch(const tb_opcall *c)
{
    const tb_turn r = turn_of(c);
    return tb_turn_bytes(&r, c->time);
}

/* One head of token t. */
static void turn_head(const tb_opcall *c, const tb_turn *r, size_t t,
                      double way, const void *x, bool add, void *y)
{
    const double *cos = r->angles + t * r->w;
    const size_t rest = r->head - r->w;
    c->k->turn(r->w / 2, r->interleaved, way, cos, cos + r->w / 2, x, add, y);
    if (rest && add)
        tb_op_plus(c, rest, tb_op_peek(c, x, r->w), tb_op_at(c, y, r->w));
    else if (rest)
        tb_op_copy(c, rest, tb_op_peek(c, x, r->w), tb_op_at(c, y, r->w));
}

/* y (+)= x turned by its angle, or back if way is -1; rows [from, to) */
static void turn_rows(const tb_opcall *c, size_t from, size_t to, double way,
                      const void *x, bool add, void *y)
{
    const tb_turn r = turn_of(c);
    for (size_t at = from * r.heads * r.head; from < to; from++)
        for (size_t h = 0; h < r.heads; h++, at += r.head)
            turn_head(c, &r, from % c->time, way, tb_op_peek(c, x, at), add,
                      tb_op_at(c, y, at));
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    turn_rows(c, from, to, 1, c->in[0], false, c->out);
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    turn_rows(c, from, to, -1, c->gout, c->gbase[0] != NULL, c->gin[0]);
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    turn_rows(c, from, to, 1, c->tin[0], false, c->tout);
}

static void each(const tb_opcall *c, tb_rows_fn fn)
{
    const tb_turn r = turn_of(c);
    if (!c->angles)
        tb_turn_fill(c, &r, c->time);
    tb_op_each(c, tb_op_rows(c), tb_op_times(4, c->out_shape.width), fn);
}

static void fwd(const tb_opcall *c)
{
    each(c, fwd_range);
}

static void bwd(const tb_opcall *c)
{
    if (c->gin[0])
        each(c, bwd_range);
}

static void tan_(const tb_opcall *c)
{
    if (c->tin[0])
        each(c, tan_range);
    else
        tb_op_copy(c, tb_op_out_count(c), NULL, c->tout);
}

const tb_op tb_op_rope = {
    .name = "rope",
    .symbol = "rope",
    .min_in = 1,
    .max_in = 1,
    .nattr = 1,
    .noption = 4,
    .attr_name = {"heads", "base", "interleaved", "rotary", "start"},
    .place = TB_ATTR_ROPE_START + 1,
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_SYMBOL,
    .bases = TB_NEED_IN(0),
    .shape = shape,
    .scratch = scratch,
    .fwd = fwd,
    .bwd = bwd,
    .tan = tan_,
};
