/* SPDX-License-Identifier: MIT */
/* Learned values and linears, named or in place. */
#include "graph/calls.h"

#include "equation/names.h"

/* A rule of init: by its name, unless a local has that. */
static const tb_init_kind *start_rule(tb_builder *b, const tb_expr *e)
{
    bool named = e->kind == TB_EXPR_NAME && !tb_scope_find(&b->scope, e->name);
    return named || e->kind == TB_EXPR_CALL ? tb_init_kind_find(e->name) : NULL;
}

/* A constant, or a rule over constants: identity, onehot(k). */
static tb_status start_value(tb_builder *b, const tb_expr *e,
                             const tb_expr *value, const tb_expr **start)
{
    const tb_init_kind *rule = start_rule(b, value);
    tb_val v, arg[2];
    if (!rule) {
        TB_TRY(tb_call_constant(b, value, e->name, &v));
        *start = v.expr;
        return TB_OK;
    }
    if (value->nargs < rule->least || value->nargs > rule->most)
        return tb_build_fail(b, value->pos, "%s: got %d arguments, wanted %d",
                             rule->name, value->nargs, rule->most);
    for (int i = 0; i < value->nargs; i++)
        TB_TRY(tb_call_constant(b, value->args[i].value, rule->name, &arg[i]));
    TB_TRY(tb_build_const(b, value, arg, &v));
    *start = v.expr;
    return TB_OK;
}

/* A size that a text may leave out: then it is d. `ffn` is the width inside
 * that sublayer, whatever the settings make it. */
static tb_status size_of(tb_builder *b, const tb_expr *e, size_t *size,
                         tb_dim *dim)
{
    tb_val v;
    *size = b->sizes->s.width;
    *dim = (tb_dim){1, 0};
    if (e && e->kind == TB_EXPR_NAME && tb_streq(e->name, "ffn")) {
        *size = b->sizes->s.ffn;
        dim->per_d = (double)*size / (double)b->sizes->s.width;
    } else if (e) {
        TB_TRY(tb_call_constant(b, e, "size", &v));
        TB_TRY(tb_build_width(b, v.expr, size, dim));
    }
    if (b->eval)
        *dim = (tb_dim){0, (double)*size};
    return TB_OK;
}

/* scalar(v), vector(v) or matrix(rows, columns, v) named `base`. */
tb_status tb_learned_build(tb_builder *b, const tb_expr *e, const char *base,
                           int *node)
{
    bool scalar = tb_streq(e->name, "scalar"),
         matrix = tb_streq(e->name, "matrix");
    const tb_expr *start = NULL;
    tb_shape shape = {TB_SHAPE_SCALAR, 1, 1};
    tb_role role = TB_ROLE_SCALAR;
    tb_dim dim = {0, 1}, rows;
    if (matrix) {
        role = TB_ROLE_TABLE;
        shape.kind = TB_SHAPE_MATRIX;
        TB_TRY(size_of(b, e->args[0].value, &shape.height, &rows));
        TB_TRY(size_of(b, e->args[1].value, &shape.width, &dim));
    } else if (!scalar) {
        role = TB_ROLE_VECTOR;
        shape.kind = TB_SHAPE_VECTOR;
        TB_TRY(size_of(b, tb_call_option(e, "size"), &shape.width, &dim));
    }
    TB_TRY(start_value(b, e, e->args[matrix ? 2 : 0].value, &start));
    TB_TRY(tb_build_param(b, base, "", role, shape, dim, start, e->pos, node));
    b->g->nodes[*node].k = b->k;
    return TB_OK;
}

tb_status tb_call_learned(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const char *slot;
    int node;
    TB_TRY(tb_build_slot(b, e->name, &slot));
    TB_TRY(tb_learned_build(b, e, slot, &node));
    return tb_call_node(out, node);
}

tb_status tb_call_linear(tb_builder *b, const tb_expr *e, tb_val *out)
{
    (void)out;
    return tb_build_fail(b, e->pos,
                         "linear: give it a name first: w = linear(d, d), "
                         "then w(x)");
}

tb_status tb_linear_declare(tb_builder *b, const char *name, const tb_expr *e,
                            tb_lin *lin)
{
    size_t w[2];
    tb_dim dim[2];
    int bias;
    for (int i = 0; i < 2; i++) {
        tb_val v;
        TB_TRY(tb_call_constant(b, e->args[i].value, "linear", &v));
        TB_TRY(tb_build_width(b, v.expr, &w[i], &dim[i]));
    }
    TB_TRY(tb_call_flag(b, e, "bias", -1, &bias));
    return tb_build_linear(b, name, w[0], w[1], dim[1], bias, e->pos, lin);
}

/* project(e, n): a linear of its own wherever it stands. */
tb_status tb_call_project(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const char *slot;
    int x, node, bias;
    size_t width;
    tb_dim dim;
    tb_lin lin;
    tb_val v;
    TB_TRY(tb_build_value(b, e->args[0].value, &x));
    if (b->g->nodes[x].shape.kind != TB_SHAPE_STREAM)
        return tb_build_fail(b, e->pos, "project(...): needs a stream");
    TB_TRY(tb_call_constant(b, e->args[1].value, "project", &v));
    TB_TRY(tb_build_width(b, v.expr, &width, &dim));
    TB_TRY(tb_call_flag(b, e, "bias", -1, &bias));
    TB_TRY(tb_build_slot(b, e->name, &slot));
    TB_TRY(tb_build_linear(b, slot, b->g->nodes[x].shape.width, width, dim,
                           bias, e->pos, &lin));
    TB_TRY(tb_build_apply(b, lin, x, e->name, e->pos, &node));
    return tb_call_node(out, node);
}

bool tb_declares(const tb_expr *e)
{
    return e->kind == TB_EXPR_CALL &&
           tb_callable_find(e->name) == TB_CALLABLE_LEARNED;
}
