/* SPDX-License-Identifier: MIT */
/* rope: rotary positions (Su et al. 2021, arXiv:2104.09864). In each head,
 * pair i of width w turns by t base^(-2i/w), t counted from `start`. Pairs are
 * (i, i + w/2) as in Llama ("rotate half"), or (2i, 2i + 1) as in GPT-J. Only
 * the first w = `rotary` elements of a head turn; the rest pass. */
#include "ops/op_help.h"

static bool whole(double a, double least)
{
    return a >= least && a <= 1e9 && (double)(size_t)a == a;
}

/* Elements of a head that turn. */
static size_t turning(const double *attr, size_t head)
{
    double w = attr[TB_ATTR_ROPE_ROTARY];
    return w > 0 ? (size_t)w : head;
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
    size_t head = in[0].width / (size_t)heads, w = turning(attr, head);
    if (w % 2 || w > head)
        return tb_op_no(why, "the rotary width must be even and within a head");
    return true;
}

/* --- angles: cos and sin of each time and pair -------------------------- */

typedef struct rope {
    size_t heads, head, w; /* w: elements that turn */
    bool interleaved;
} rope;

static rope rope_of(const tb_opcall *c)
{
    rope r = {.heads = (size_t)c->attr[TB_ATTR_ROPE_HEADS],
              .interleaved = c->attr[TB_ATTR_ROPE_INTERLEAVED] != 0};
    r.head = c->out_shape.width / r.heads;
    r.w = turning(c->attr, r.head);
    return r;
}

/* A token's cosines, then its sines. */
static double *angles(const tb_opcall *c, const rope *r, size_t t)
{
    return (double *)c->scratch + t % c->time * r->w;
}

static void angle_range(const tb_opcall *c, size_t from, size_t to,
                        size_t chunk)
{
    const rope r = rope_of(c);
    double base = c->attr[TB_ATTR_ROPE_BASE];
    (void)chunk;
    for (size_t i = 0; i < r.w / 2; i++) {
        double turn = -2 * (double)i / (double)r.w;
        double speed = tb_pow(base > 0 ? base : 10000, turn);
        for (size_t t = from; t < to; t++) {
            double angle = ((double)t + c->attr[TB_ATTR_ROPE_START]) * speed;
            double *at = angles(c, &r, t) + i;
            at[0] = tb_cos(angle);
            at[r.w / 2] = tb_sin(angle);
        }
    }
}

static size_t scratch(const tb_opcall *c)
{
    return tb_op_part_bytes(c->time, rope_of(c).w);
}

/* --- turning ------------------------------------------------------------ */

/* y (+)= x turned by its angle, or back if way is -1; rows [from, to) */
static void turn_rows(const tb_opcall *c, size_t from, size_t to, double way,
                      const void *x, bool add, void *y)
{
    const rope p = rope_of(c);
    const size_t rest = p.head - p.w;
    for (size_t at = from * p.heads * p.head; from < to; from++) {
        const double *cos = angles(c, &p, from), *sin = cos + p.w / 2;
        for (size_t h = 0; h < p.heads; h++, at += p.head) {
            const void *xr = tb_op_peek(c, x, at + p.w);
            void *yr = tb_op_at(c, y, at + p.w);
            c->k->turn(p.w / 2, p.interleaved, way, cos, sin,
                       tb_op_peek(c, x, at), add, tb_op_at(c, y, at));
            if (add)
                tb_op_plus(c, rest, xr, yr);
            else
                tb_op_copy(c, rest, xr, yr);
        }
    }
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

/* An angle costs about as much as this many elements. */
enum { COST = 16 };

static void each(const tb_opcall *c, tb_rows_fn fn)
{
    tb_op_each(c, c->time, tb_op_times(rope_of(c).w, COST), angle_range);
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
