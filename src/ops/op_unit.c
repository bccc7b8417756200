/* SPDX-License-Identifier: MIT */
/* unit: every row of a matrix (or every column), or a vector, divided by its
 * Euclidean length, at least eps: the weights of nGPT (Loshchilov et al. 2024,
 * arXiv:2410.01131) and FixNorm. A stream's rows are l2norm's. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    (void)nin;
    if (in[0].kind != TB_SHAPE_MATRIX && in[0].kind != TB_SHAPE_VECTOR)
        return tb_op_no(why, "it applies to a matrix or a vector");
    if (!(attr[TB_ATTR_UNIT_EPS] >= 0) || !tb_isfinite(attr[TB_ATTR_UNIT_EPS]))
        return tb_op_no(why, "eps must be a finite number, 0 or more");
    if (attr[TB_ATTR_UNIT_COLUMNS] != 0 && in[0].kind != TB_SHAPE_MATRIX)
        return tb_op_no(why, "only a matrix has columns");
    *out = in[0];
    return true;
}

/* Lines of n elements: element i of line k stands at k * line + i * step. */
typedef struct lines {
    size_t count, n, line, step;
} lines;

static lines lines_of(const tb_opcall *c)
{
    tb_shape s = c->in_shape[0];
    size_t rows = s.kind == TB_SHAPE_MATRIX ? s.height : 1;
    if (c->attr[TB_ATTR_UNIT_COLUMNS] != 0)
        return (lines){s.width, rows, 1, s.width};
    return (lines){rows, s.width, s.width, 1};
}

/* saved: the divisor of each line, negative where it is eps */
static double *divisor(const tb_opcall *c, size_t k)
{
    return (double *)c->saved + k;
}

/* Scaled first, as squares may overflow. */
static double length_of(const tb_opcall *c, const lines *l, size_t k)
{
    double big = 0, sum = 0;
    for (size_t i = 0; i < l->n; i++) {
        double x = tb_fabs(tb_op_get(c, c->in[0], k * l->line + i * l->step));
        big = x > big ? x : big;
    }
    big = big > 0 ? big : 1;
    for (size_t i = 0; i < l->n; i++) {
        double x = tb_op_get(c, c->in[0], k * l->line + i * l->step) / big;
        sum += x * x;
    }
    return big * tb_sqrt(sum);
}

static void fwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    const lines l = lines_of(c);
    double eps = c->attr[TB_ATTR_UNIT_EPS];
    (void)chunk;
    for (size_t k = from; k < to; k++) {
        double length = length_of(c, &l, k);
        *divisor(c, k) = length < eps ? -eps : length;
        for (size_t i = 0; i < l.n; i++) {
            size_t e = k * l.line + i * l.step;
            tb_op_set(c, c->out, e,
                      tb_op_get(c, c->in[0], e) / tb_fabs(*divisor(c, k)));
        }
    }
}

/* The projection of z, the same both ways; y is read back from x. */
static void project(const tb_opcall *c, size_t k, const void *z, bool add,
                    void *y)
{
    const lines l = lines_of(c);
    double length = tb_fabs(*divisor(c, k)), along = 0;
    for (size_t i = 0; i<l.n && * divisor(c, k)> 0; i++) {
        size_t e = k * l.line + i * l.step;
        along += tb_op_get(c, z, e) * (tb_op_get(c, c->in[0], e) / length);
    }
    for (size_t i = 0; i < l.n; i++) {
        size_t e = k * l.line + i * l.step;
        double u = tb_op_get(c, c->in[0], e) / length;
        (add ? tb_op_acc
             : tb_op_set)(c, y, e, (tb_op_get(c, z, e) - u * along) / length);
    }
}

static void bwd_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    for (size_t k = from; k < to; k++)
        project(c, k, c->gout, true, c->gin[0]);
}

static void tan_range(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    for (size_t k = from; k < to; k++)
        project(c, k, c->tin[0], false, c->tout);
}

static void each(const tb_opcall *c, tb_rows_fn fn)
{
    const lines l = lines_of(c);
    tb_op_each(c, l.count, tb_op_times(4, l.n), fn);
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

static size_t saved(const tb_opcall *c)
{
    return tb_op_part_bytes(lines_of(c).count, 1);
}

static const char *check(const tb_opcall *c, size_t *row)
{
    const lines l = lines_of(c);
    for (*row = 0; *row < l.count; ++*row)
        if (*divisor(c, *row) == 0)
            return "no direction with eps = 0";
    return NULL;
}

const tb_op tb_op_unit = {
    .name = "unit",
    .symbol = "unit",
    .min_in = 1,
    .max_in = 1,
    .nattr = 1,
    .noption = 1,
    .attr_name = {"eps", "columns"},
    .lane = TB_LANE_CUT,
    .jac = TB_JAC_ZERO, /* no stream moves what is learned */
    .needs = TB_NEED_IN(0),
    .shape = shape,
    .saved = saved,
    .fwd = fwd,
    .bwd = bwd,
    .tan = tan_,
    .check = check,
};
