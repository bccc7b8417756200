/* SPDX-License-Identifier: MIT */
/* mul: y = a (.) b. Equal shapes element by element; a vector (LayerScale) or
 * a scalar (ReZero) times a stream, in either order, over all tokens. */
#include "ops/op_help.h"

static bool shape(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why)
{
    (void)nin, (void)attr;
    int big = in[0].kind == TB_SHAPE_STREAM ? 0 : 1;
    tb_shape_kind a = in[big].kind, b = in[1 - big].kind;
    *out = in[big];
    if (a == TB_SHAPE_SCALAR && b == TB_SHAPE_SCALAR)
        return true;
    if (a == TB_SHAPE_MATRIX || b == TB_SHAPE_MATRIX)
        return tb_op_no(why, "a weight is applied, w(x), not multiplied");
    if (a != TB_SHAPE_STREAM)
        return tb_op_no(why, "one side must be a stream");
    if (b == TB_SHAPE_TOKENS)
        return tb_op_no(why, "token ids are not numbers to compute with");
    if (b != TB_SHAPE_SCALAR && in[0].width != in[1].width)
        return tb_op_no(why, "the two sides differ in width");
    return true;
}

/* The operand shaped like the output; 1 - big is the one that broadcasts. */
static int big_side(const tb_opcall *c)
{
    return tb_op_same(c->in_shape[0], c->out_shape) ? 0 : 1;
}

static bool broadcasts(const tb_opcall *c, tb_shape_kind kind)
{
    return c->out_shape.kind == TB_SHAPE_STREAM &&
           c->in_shape[1 - big_side(c)].kind == kind;
}

/* --- equal shapes ------------------------------------------------------- */

static void same_fwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    c->k->mul(to - from, tb_op_peek(c, c->in[0], from),
              tb_op_peek(c, c->in[1], from), tb_op_at(c, c->out, from));
}

static void same_bwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    for (int i = 0; i < 2; i++)
        if (c->gin[i])
            c->k->mul_acc(to - from, tb_op_peek(c, c->gout, from),
                          tb_op_peek(c, c->in[1 - i], from),
                          tb_op_at(c, c->gin[i], from));
}

static void same_tan(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    void *ty = tb_op_at(c, c->tout, from);
    tb_op_copy(c, to - from, NULL, ty);
    for (int i = 0; i < 2; i++)
        if (c->tin[i])
            c->k->mul_acc(to - from, tb_op_peek(c, c->tin[i], from),
                          tb_op_peek(c, c->in[1 - i], from), ty);
}

/* --- scalar times stream ------------------------------------------------ */

static void scalar_fwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    int x = big_side(c);
    c->k->scale(to - from, tb_op_get(c, c->in[1 - x], 0),
                tb_op_peek(c, c->in[x], from), tb_op_at(c, c->out, from));
}

static void scalar_bwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    int x = big_side(c);
    const void *gy = tb_op_peek(c, c->gout, from);
    if (c->gin[x])
        c->k->axpy(to - from, tb_op_get(c, c->in[1 - x], 0), gy,
                   tb_op_at(c, c->gin[x], from));
    if (c->gin[1 - x])
        *tb_op_part(c, chunk, 1) =
            c->k->dot(to - from, gy, tb_op_peek(c, c->in[x], from));
}

static void scalar_tan(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    int x = big_side(c);
    void *ty = tb_op_at(c, c->tout, from);
    tb_op_copy(c, to - from, NULL, ty);
    if (c->tin[x])
        c->k->axpy(to - from, tb_op_get(c, c->in[1 - x], 0),
                   tb_op_peek(c, c->tin[x], from), ty);
    if (c->tin[1 - x])
        c->k->axpy(to - from, tb_op_get(c, c->tin[1 - x], 0),
                   tb_op_peek(c, c->in[x], from), ty);
}

/* --- vector times stream, ranges of rows -------------------------------- */

/* y[r,:] += x[r,:] (.) v */
static void rows_mul_acc(const tb_opcall *c, size_t from, size_t to,
                         const void *x, const void *v, void *y)
{
    size_t d = c->out_shape.width;
    for (size_t r = from; r < to; r++)
        c->k->mul_acc(d, tb_op_peek(c, x, r * d), v, tb_op_at(c, y, r * d));
}

static void vector_fwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    int x = big_side(c);
    size_t d = c->out_shape.width;
    c->k->row_mul(to - from, d, tb_op_peek(c, c->in[x], from * d), c->in[1 - x],
                  tb_op_at(c, c->out, from * d));
}

static void vector_bwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    int x = big_side(c);
    size_t d = c->out_shape.width;
    if (c->gin[x])
        rows_mul_acc(c, from, to, c->gout, c->in[1 - x], c->gin[x]);
    if (!c->gin[1 - x])
        return;
    double *part = tb_op_part(c, chunk, d);
    memset(part, 0, d * sizeof *part);
    c->k->col_dot(to - from, d, tb_op_peek(c, c->gout, from * d),
                  tb_op_peek(c, c->in[x], from * d), part);
}

static void vector_tan(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    int x = big_side(c);
    size_t d = c->out_shape.width;
    tb_op_copy(c, (to - from) * d, NULL, tb_op_at(c, c->tout, from * d));
    if (c->tin[x])
        rows_mul_acc(c, from, to, c->tin[x], c->in[1 - x], c->tout);
    if (c->tin[1 - x])
        rows_mul_acc(c, from, to, c->in[x], c->tin[1 - x], c->tout);
}

/* --- the three passes --------------------------------------------------- */

/* One pass over the output in the manner its operands ask for. */
static void each(const tb_opcall *c, tb_range_fn same, tb_range_fn scalar,
                 tb_range_fn vector)
{
    if (broadcasts(c, TB_SHAPE_VECTOR))
        tb_op_each(c, tb_op_rows(c), c->out_shape.width, vector);
    else
        tb_op_each(c, tb_op_out_count(c), 1,
                   broadcasts(c, TB_SHAPE_SCALAR) ? scalar : same);
}

static void fwd(const tb_opcall *c)
{
    each(c, same_fwd, scalar_fwd, vector_fwd);
}

static void bwd(const tb_opcall *c)
{
    each(c, same_bwd, scalar_bwd, vector_bwd);
    size_t d = c->out_shape.width;
    int small = 1 - big_side(c);
    if (broadcasts(c, TB_SHAPE_VECTOR))
        tb_op_join(c, tb_op_pieces(tb_op_rows(c), d), d, 0, d, c->gin[small]);
    else if (broadcasts(c, TB_SHAPE_SCALAR))
        tb_op_join(c, tb_op_pieces(tb_op_out_count(c), 1), 1, 0, 1,
                   c->gin[small]);
}

static void tan_(const tb_opcall *c)
{
    each(c, same_tan, scalar_tan, vector_tan);
}

static size_t scratch(const tb_opcall *c)
{
    size_t d = c->out_shape.width;
    if (broadcasts(c, TB_SHAPE_VECTOR))
        return tb_op_part_bytes(tb_op_pieces(tb_op_rows(c), d), d);
    if (broadcasts(c, TB_SHAPE_SCALAR))
        return tb_op_part_bytes(tb_op_pieces(tb_op_out_count(c), 1), 1);
    return 0;
}

const tb_op tb_op_mul = {
    .name = "mul",
    .symbol = "*",
    .min_in = 2,
    .max_in = 2,
    .lane = TB_LANE_PASS,
    .jac = TB_JAC_PROD,
    .needs = TB_NEED_IN(0) | TB_NEED_IN(1),
    .shape = shape,
    .scratch = scratch,
    .fwd = fwd,
    .bwd = bwd,
    .tan = tan_,
};
