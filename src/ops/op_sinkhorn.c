/* SPDX-License-Identifier: MIT */
/* sinkhorn: exp(A), then `rounds` times every row and every column (or columns
 * first) divided by its sum: towards doubly stochastic (Sinkhorn, Knopp 1967;
 * on residual streams: mHC, Xie et al. 2025). A is a square matrix, or a
 * stream of width n n: one matrix per token.
 *
 * Computed on logarithms: dividing a line by its sum takes log-sum-exp off it,
 * L' = L - lse(L), so that dL' = dL - sum of p dL along the line, p = exp(L').
 */
#include "ops/op_help.h"

enum { MOST = 64 };

static size_t side_of(tb_shape s)
{
    size_t n = 1;
    if (s.kind == TB_SHAPE_MATRIX)
        return s.width;
    while (n * n < s.width && n <= MOST)
        n++;
    return n;
}

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    double rounds = attr[TB_ATTR_SINKHORN_ROUNDS];
    size_t n = side_of(in[0]);
    (void)nin;
    if (in[0].kind != TB_SHAPE_MATRIX && in[0].kind != TB_SHAPE_STREAM)
        return tb_op_no(why, "it applies to a matrix or a stream of them");
    if (n > MOST || n * n != (in[0].kind == TB_SHAPE_MATRIX
                                  ? tb_op_times(in[0].height, in[0].width)
                                  : in[0].width))
        return tb_op_no(why, "its matrix must be square, 64 by 64 at most");
    if (!(rounds >= 0 && rounds <= 1000) || (double)(int)rounds != rounds)
        return tb_op_no(why, "rounds must be a whole number, 0 to 1000");
    *out = in[0];
    return true;
}

/* --- one matrix --------------------------------------------------------- */

static size_t matrices(const tb_opcall *c)
{
    return c->in_shape[0].kind == TB_SHAPE_MATRIX ? 1 : tb_op_rows(c);
}

static size_t steps_of(const tb_opcall *c)
{
    return 2 * (size_t)c->attr[TB_ATTR_SINKHORN_ROUNDS];
}

/* Does step s take rows? */
static bool takes_rows(const tb_opcall *c, size_t s)
{
    return (s % 2 == 0) == (c->attr[TB_ATTR_SINKHORN_COLUMNS] == 0);
}

/* Element i of line k. */
static size_t at(size_t n, bool rows, size_t k, size_t i)
{
    return rows ? k * n + i : i * n + k;
}

/* Takes the log-sum-exp off every line; p = exp of the result. */
static void normalise(size_t n, bool rows, double *l, double *p)
{
    for (size_t k = 0; k < n; k++) {
        double max = l[at(n, rows, k, 0)], sum = 0;
        for (size_t i = 1; i < n; i++)
            max = l[at(n, rows, k, i)] > max ? l[at(n, rows, k, i)] : max;
        for (size_t i = 0; i < n; i++)
            sum += tb_exp(l[at(n, rows, k, i)] - max);
        double lse = max + tb_log(sum);
        for (size_t i = 0; i < n; i++) {
            l[at(n, rows, k, i)] -= lse;
            p[at(n, rows, k, i)] = tb_exp(l[at(n, rows, k, i)]);
        }
    }
}

/* g -= p times the line's sum of g (backward), or, with z = p, the line's sum
 * of p g (tangent) */
static void through(size_t n, bool rows, const double *p, bool tangent,
                    double *g)
{
    for (size_t k = 0; k < n; k++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            size_t e = at(n, rows, k, i);
            sum += tangent ? p[e] * g[e] : g[e];
        }
        for (size_t i = 0; i < n; i++) {
            size_t e = at(n, rows, k, i);
            g[e] -= tangent ? sum : p[e] * sum;
        }
    }
}

/* A chunk's doubles: L, one derivative, then p after every step (at least
 * one: exp(A)). Returns the last p. */
static size_t part_len(const tb_opcall *c)
{
    size_t n = side_of(c->in_shape[0]), s = steps_of(c);
    return tb_op_times(n * n, 2 + (s ? s : 1));
}

static double *run(const tb_opcall *c, size_t m, double *part)
{
    size_t n = side_of(c->in_shape[0]), nn = n * n;
    double *l = part, *p = part + 2 * nn;
    for (size_t i = 0; i < nn; i++) {
        l[i] = tb_op_get(c, c->in[0], m * nn + i);
        p[i] = tb_exp(l[i]);
    }
    for (size_t s = 0; s < steps_of(c); s++) {
        p = part + (2 + s) * nn;
        normalise(n, takes_rows(c, s), l, p);
    }
    return p;
}

/* --- passes ------------------------------------------------------------- */

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t n = side_of(c->in_shape[0]), nn = n * n;
    for (size_t m = from; m < to; m++) {
        const double *y = run(c, m, tb_op_part(c, chunk, part_len(c)));
        for (size_t i = 0; i < nn; i++)
            tb_op_set(c, c->out, m * nn + i, y[i]);
    }
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t n = side_of(c->in_shape[0]), nn = n * n;
    double *part = tb_op_part(c, chunk, part_len(c)), *g = part + nn;
    for (size_t m = from; m < to; m++) {
        const double *y = run(c, m, part);
        for (size_t i = 0; i < nn; i++)
            g[i] = tb_op_get(c, c->gout, m * nn + i) * y[i];
        for (size_t s = steps_of(c); s-- > 0;)
            through(n, takes_rows(c, s), part + (2 + s) * nn, false, g);
        for (size_t i = 0; i < nn; i++)
            tb_op_acc(c, c->gin[0], m * nn + i, g[i]);
    }
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    size_t n = side_of(c->in_shape[0]), nn = n * n;
    double *part = tb_op_part(c, chunk, part_len(c)), *t = part + nn;
    for (size_t m = from; m < to; m++) {
        const double *y = run(c, m, part);
        for (size_t i = 0; i < nn; i++)
            t[i] = tb_op_get(c, c->tin[0], m * nn + i);
        for (size_t s = 0; s < steps_of(c); s++)
            through(n, takes_rows(c, s), part + (2 + s) * nn, true, t);
        for (size_t i = 0; i < nn; i++)
            tb_op_set(c, c->tout, m * nn + i, y[i] * t[i]);
    }
}

/* An exponential costs about as much as this many elements. */
static size_t unit(const tb_opcall *c)
{
    return tb_op_times(16, part_len(c));
}

static void fwd(const tb_opcall *c)
{
    tb_op_each(c, matrices(c), unit(c), fwd_range);
}

static void bwd(const tb_opcall *c)
{
    if (c->gin[0])
        tb_op_each(c, matrices(c), unit(c), bwd_range);
}

static void tan_(const tb_opcall *c)
{
    if (c->tin[0])
        tb_op_each(c, matrices(c), unit(c), tan_range);
    else
        tb_op_copy(c, tb_op_out_count(c), NULL, c->tout);
}

static size_t scratch(const tb_opcall *c)
{
    return tb_op_part_bytes(tb_op_pieces(matrices(c), unit(c)), part_len(c));
}

const tb_op tb_op_sinkhorn = {
    .name = "sinkhorn",
    .symbol = "sinkhorn",
    .min_in = 1,
    .max_in = 1,
    .nattr = 1,
    .noption = 1,
    .attr_name = {"rounds", "columns_first"},
    .lane = TB_LANE_CUT,
    .jac = TB_JAC_SYMBOL,
    .needs = TB_NEED_IN(0),
    .shape = shape,
    .scratch = scratch,
    .fwd = fwd,
    .bwd = bwd,
    .tan = tan_,
};
