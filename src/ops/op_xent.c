/* SPDX-License-Identifier: MIT */
/* xent: mean over the rows with a target of -log softmax(logits)[target], a
 * scalar. A target below 0 means none; one beyond the logits is passed over
 * and is a finding of `check`. Without any target the loss and its gradients
 * are 0. Smoothing e spreads that share of the target over all V classes
 * (Szegedy et al. 2016, arXiv:1512.00567), so that a row costs
 * lse - (1 - e) z[target] - e mean(z). saved: log-sum-exp of each row, then
 * the number of targets. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    double e = attr[TB_ATTR_XENT_SMOOTH];
    (void)nin;
    if (in[0].kind != TB_SHAPE_STREAM)
        return tb_op_no(why, "the logits must be a stream");
    if (in[1].kind != TB_SHAPE_TOKENS)
        return tb_op_no(why, "the targets must be tokens");
    if (!(e >= 0 && e < 1))
        return tb_op_no(why, "smoothing must lie in 0 .. 1, 1 excluded");
    *out = (tb_shape){TB_SHAPE_SCALAR, 1, 1};
    return true;
}

static const int32_t *targets(const tb_opcall *c)
{
    return c->in[1];
}

static double *lse_of(const tb_opcall *c, size_t row)
{
    return (double *)c->saved + row;
}

static double *count_of(const tb_opcall *c)
{
    return lse_of(c, tb_op_rows(c));
}

static bool beyond(const tb_opcall *c, size_t row)
{
    int32_t t = targets(c)[row];
    return t >= 0 && (size_t)t >= c->in_shape[0].width;
}

/* The next run of rows in [*from, to) without a target beyond the logits:
 * [*from, the result). Empty at the end. */
static size_t next_run(const tb_opcall *c, size_t *from, size_t to)
{
    while (*from < to && beyond(c, *from))
        ++*from;
    size_t end = *from;
    while (end < to && !beyond(c, end))
        end++;
    return end;
}

/* --- smoothing ---------------------------------------------------------- */

static double smoothing(const tb_opcall *c)
{
    return c->attr[TB_ATTR_XENT_SMOOTH];
}

/* What smoothing adds to the loss of rows [from, to) for logits x, which are
 * theirs or a tangent: e (x[target] - mean(x)). */
static double smoothed(const tb_opcall *c, size_t from, size_t to,
                       const void *x)
{
    size_t v = c->in_shape[0].width;
    double sum = 0;
    for (size_t r = from; r < to && smoothing(c) > 0; r++) {
        int32_t t = targets(c)[r];
        if (t >= 0)
            sum += tb_op_get(c, x, r * v + (size_t)t) -
                   c->k->sum(v, tb_op_peek(c, x, r * v)) / (double)v;
    }
    return smoothing(c) * sum;
}

/* g += a over n elements */
static void shift(const tb_opcall *c, size_t n, double a, void *g)
{
    tb_op_block ones;
    for (size_t i = 0; i < TB_OP_BLOCK; i++)
        tb_op_set(c, &ones, i, 1);
    for (size_t i = 0; i < n; i += TB_OP_BLOCK) {
        size_t m = n - i < TB_OP_BLOCK ? n - i : TB_OP_BLOCK;
        c->k->axpy(m, a, &ones, tb_op_at(c, g, i));
    }
}

static void smoothed_bwd(const tb_opcall *c, size_t from, size_t to,
                         double scale)
{
    size_t v = c->in_shape[0].width;
    double e = smoothing(c) * scale;
    for (size_t r = from; r < to && smoothing(c) > 0; r++) {
        int32_t t = targets(c)[r];
        if (t < 0)
            continue;
        tb_op_acc(c, c->gin[0], r * v + (size_t)t, e);
        shift(c, v, -e / (double)v, tb_op_at(c, c->gin[0], r * v));
    }
}

/* --- forward ------------------------------------------------------------ */

/* scratch of a chunk: the loss and the targets of its rows */
static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t v = c->in_shape[0].width, end;
    double *part = tb_op_part(c, chunk, 2);
    part[0] = part[1] = 0;
    for (; (end = next_run(c, &from, to)) > from; from = end) {
        c->k->xent_fwd(end - from, v, tb_op_peek(c, c->in[0], from * v),
                       targets(c) + from, lse_of(c, from), &part[0]);
        part[0] += smoothed(c, from, end, c->in[0]);
        for (size_t r = from; r < end; r++)
            part[1] += targets(c)[r] >= 0;
    }
}

static void fwd(const tb_opcall *c)
{
    size_t rows = tb_op_rows(c), v = c->in_shape[0].width;
    size_t pieces = tb_op_pieces(rows, v);
    tb_op_each(c, rows, v, fwd_range);
    double loss = tb_op_total(c, pieces, 2, 0);
    double count = tb_op_total(c, pieces, 2, 1);
    *count_of(c) = count;
    tb_op_set(c, c->out, 0, count > 0 ? loss / count : 0);
}

/* --- backward ----------------------------------------------------------- */

/* Rows [from, to) that the loss passes over. */
static void no_gradient(const tb_opcall *c, size_t from, size_t to)
{
    size_t v = c->in_shape[0].width;
    if (c->gbase[0] != c->gin[0])
        tb_op_copy(c, (to - from) * v, tb_op_peek(c, c->gbase[0], from * v),
                   tb_op_at(c, c->gin[0], from * v));
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    size_t v = c->in_shape[0].width, end;
    bool any = *count_of(c) > 0;
    double scale = any ? tb_op_get(c, c->gout, 0) / *count_of(c) : 0;
    while (from < to) {
        size_t start = from;
        from = any ? from : to;
        end = next_run(c, &from, to);
        no_gradient(c, start, from);
        c->k->xent_bwd(end - from, v, tb_op_peek(c, c->in[0], from * v),
                       targets(c) + from, lse_of(c, from), scale,
                       tb_op_peek(c, c->gbase[0], from * v),
                       tb_op_at(c, c->gin[0], from * v));
        smoothed_bwd(c, from, end, scale);
        from = end;
    }
}

static void bwd(const tb_opcall *c)
{
    tb_op_each(c, tb_op_rows(c), c->in_shape[0].width, bwd_range);
}

/* --- tangent ------------------------------------------------------------ */

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t v = c->in_shape[0].width, end;
    double *part = tb_op_part(c, chunk, 2);
    part[0] = 0;
    for (; (end = next_run(c, &from, to)) > from; from = end) {
        c->k->xent_tan(end - from, v, tb_op_peek(c, c->in[0], from * v),
                       targets(c) + from, lse_of(c, from),
                       tb_op_peek(c, c->tin[0], from * v), &part[0]);
        part[0] += smoothed(c, from, end, c->tin[0]);
    }
}

static void tan_(const tb_opcall *c)
{
    size_t rows = tb_op_rows(c), v = c->in_shape[0].width;
    double t = 0;
    if (c->tin[0] && *count_of(c) > 0) {
        tb_op_each(c, rows, v, tan_range);
        t = tb_op_total(c, tb_op_pieces(rows, v), 2, 0) / *count_of(c);
    }
    tb_op_set(c, c->tout, 0, t);
}

/* --- sizes and findings ------------------------------------------------- */

static size_t saved(const tb_opcall *c)
{
    size_t n;
    return tb_add(tb_op_rows(c), 1, &n) ? tb_op_part_bytes(n, 1) : SIZE_MAX;
}

static size_t scratch(const tb_opcall *c)
{
    size_t v = c->in_shape[0].width;
    return tb_op_part_bytes(tb_op_pieces(tb_op_rows(c), v), 2);
}

static const char *check(const tb_opcall *c, size_t *row)
{
    for (*row = 0; *row < tb_op_rows(c); ++*row)
        if (beyond(c, *row))
            return "target outside the vocabulary";
    return NULL;
}

/* A mean over all tokens. */
static tb_reach reach(const double *attr)
{
    (void)attr;
    return TB_REACH_BATCH;
}

const tb_op tb_op_xent = {
    .name = "xent",
    .symbol = "xent",
    .min_in = 2,
    .max_in = 2,
    .noption = 1,
    .attr_name = {"smooth"},
    .lane = TB_LANE_CUT,
    .jac = TB_JAC_SYMBOL,
    .needs = TB_NEED_IN(0) | TB_NEED_IN(1),
    .bases = TB_NEED_IN(0),
    .over = TB_NEED_IN(0),
    .shape = shape,
    .reach = reach,
    .saved = saved,
    .scratch = scratch,
    .fwd = fwd,
    .bwd = bwd,
    .tan = tan_,
    .check = check,
    .work = TB_WORK_LOSS,
};
