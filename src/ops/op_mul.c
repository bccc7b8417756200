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

static void same_fwd(const tb_opcall *c, size_t from, size_t to)
{
    size_t d = c->out_shape.width, at = from * d;
    c->k->mul((to - from) * d, tb_op_peek(c, c->in[0], at),
              tb_op_peek(c, c->in[1], at), tb_op_at(c, c->out, at));
}

static void same_bwd(const tb_opcall *c, size_t from, size_t to)
{
    size_t d = c->out_shape.width, at = from * d;
    for (int i = 0; i < 2; i++)
        if (c->gin[i])
            c->k->mul_acc((to - from) * d, tb_op_peek(c, c->gout, at),
                          tb_op_peek(c, c->in[1 - i], at),
                          tb_op_at(c, c->gin[i], at),
                          tb_op_at(c, c->gin[i], at));
}

static void same_tan(const tb_opcall *c, size_t from, size_t to)
{
    size_t d = c->out_shape.width, at = from * d;
    void *ty = tb_op_at(c, c->tout, at);
    tb_op_copy(c, (to - from) * d, NULL, ty);
    for (int i = 0; i < 2; i++)
        if (c->tin[i])
            c->k->mul_acc((to - from) * d, tb_op_peek(c, c->tin[i], at),
                          tb_op_peek(c, c->in[1 - i], at), ty, ty);
}

/* --- scalar times stream ------------------------------------------------ */

static void scalar_fwd(const tb_opcall *c, size_t from, size_t to)
{
    int x = big_side(c);
    size_t d = c->out_shape.width, at = from * d;
    c->k->scale((to - from) * d, tb_op_get(c, c->in[1 - x], 0),
                tb_op_peek(c, c->in[x], at), tb_op_at(c, c->out, at));
}

static void scalar_bwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    int x = big_side(c);
    size_t d = c->out_shape.width;
    if (c->gin[x])
        c->k->axpy((to - from) * d, tb_op_get(c, c->in[1 - x], 0),
                   tb_op_peek(c, c->gout, from * d),
                   tb_op_at(c, c->gin[x], from * d));
    for (size_t r = from; r < to && c->gin[1 - x]; r++)
        *tb_op_part(c, chunk, 1) += c->k->dot(d, tb_op_peek(c, c->gout, r * d),
                                              tb_op_peek(c, c->in[x], r * d));
}

static void scalar_tan(const tb_opcall *c, size_t from, size_t to)
{
    int x = big_side(c);
    size_t d = c->out_shape.width, at = from * d, n = (to - from) * d;
    void *ty = tb_op_at(c, c->tout, at);
    tb_op_copy(c, n, NULL, ty);
    if (c->tin[x])
        c->k->axpy(n, tb_op_get(c, c->in[1 - x], 0),
                   tb_op_peek(c, c->tin[x], at), ty);
    if (c->tin[1 - x])
        c->k->axpy(n, tb_op_get(c, c->tin[1 - x], 0),
                   tb_op_peek(c, c->in[x], at), ty);
}

/* --- vector times stream ------------------------------------------------ */

/* y[r,:] += x[r,:] (.) v */
static void rows_mul_acc(const tb_opcall *c, size_t from, size_t to,
                         const void *x, const void *v, void *y)
{
    size_t d = c->out_shape.width;
    for (size_t r = from; r < to; r++)
        c->k->mul_acc(d, tb_op_peek(c, x, r * d), v, tb_op_at(c, y, r * d),
                      tb_op_at(c, y, r * d));
}

static void vector_fwd(const tb_opcall *c, size_t from, size_t to)
{
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
    c->k->col_dot(to - from, d, tb_op_peek(c, c->gout, from * d),
                  tb_op_peek(c, c->in[x], from * d), tb_op_part(c, chunk, d));
}

static void vector_tan(const tb_opcall *c, size_t from, size_t to)
{
    int x = big_side(c);
    size_t d = c->out_shape.width;
    tb_op_copy(c, (to - from) * d, NULL, tb_op_at(c, c->tout, from * d));
    if (c->tin[x])
        rows_mul_acc(c, from, to, c->tin[x], c->in[1 - x], c->tout);
    if (c->tin[1 - x])
        rows_mul_acc(c, from, to, c->in[x], c->tin[1 - x], c->tout);
}

/* --- the three passes --------------------------------------------------- */

static void fwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    if (broadcasts(c, TB_SHAPE_VECTOR))
        vector_fwd(c, from, to);
    else if (broadcasts(c, TB_SHAPE_SCALAR))
        scalar_fwd(c, from, to);
    else
        same_fwd(c, from, to);
}

static void bwd(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    if (broadcasts(c, TB_SHAPE_VECTOR))
        vector_bwd(c, from, to, chunk);
    else if (broadcasts(c, TB_SHAPE_SCALAR))
        scalar_bwd(c, from, to, chunk);
    else
        same_bwd(c, from, to);
}

static void tan_(const tb_opcall *c, size_t from, size_t to, size_t chunk)
{
    (void)chunk;
    if (broadcasts(c, TB_SHAPE_VECTOR))
        vector_tan(c, from, to);
    else if (broadcasts(c, TB_SHAPE_SCALAR))
        scalar_tan(c, from, to);
    else
        same_tan(c, from, to);
}

static size_t part(const tb_opcall *c)
{
    bool any = broadcasts(c, TB_SHAPE_VECTOR) || broadcasts(c, TB_SHAPE_SCALAR);
    return any ? c->in_shape[1 - big_side(c)].width : 0;
}

static void join(const tb_opcall *c, size_t pieces)
{
    size_t n = part(c);
    if (n)
        tb_op_join(c, pieces, n, 0, n, c->gin[1 - big_side(c)]);
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
    .fwd_rows = fwd,
    .bwd_rows = bwd,
    .tan_rows = tan_,
    .part = part,
    .join = join,
};
