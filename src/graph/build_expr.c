/* SPDX-License-Identifier: MIT */
/* Expressions: constants stay symbols with bounded size, arithmetic becomes
 * nodes, names are read from the scope. */
#include "graph/build.h"

#include "equation/names.h"

/* --- constants ----------------------------------------------------------- */

static bool is_layer_constant(const char *name)
{
    return name[0] && !name[1] && strchr("NMlkdh", name[0]);
}

static tb_consts consts_of(const tb_builder *b)
{
    double l = b->l ? (double)b->l : __builtin_nan("");
    double k = b->k ? (double)b->k : __builtin_nan("");
    return (tb_consts){b->sizes->N,
                       b->sizes->M,
                       l,
                       k,
                       (double)b->sizes->s.width,
                       (double)b->sizes->s.heads};
}

tb_status tb_build_fold(tb_builder *b, const tb_expr *e, double *out)
{
    tb_consts c = consts_of(b);
    return tb_expr_fold(b->ctx, b->block, e, &c, NULL, NULL, out);
}

tb_status tb_build_width(tb_builder *b, const tb_expr *e, size_t *width,
                         tb_dim *dim)
{
    double d = (double)b->sizes->s.width, at[2];
    for (int i = 0; i < 2; i++) {
        tb_consts c = consts_of(b);
        c.l = c.k = __builtin_nan(""); /* one width for all layers */
        c.d = d * (i + 1);
        TB_TRY(tb_expr_fold(b->ctx, b->block, e, &c, NULL, NULL, &at[i]));
    }
    if (!(at[0] >= 1 && at[0] <= 1e9) || at[0] != (double)(size_t)at[0])
        return tb_build_fail(
            b, e->pos, "width: got %g, wanted a whole number from 1", at[0]);
    dim->per_d = (at[1] - at[0]) / d;
    dim->fixed = 2 * at[0] - at[1];
    *width = (size_t)at[0];
    return TB_OK;
}

static tb_val const_val(const tb_expr *e)
{
    return (tb_val){.kind = TB_VAL_CONST, .expr = e, .node = -1, .size = 1};
}

/* A copy of e over replaced operands, so that it stands without the locals
 * and is as deep as it says. */
tb_status tb_build_const(tb_builder *b, const tb_expr *e, const tb_val *v,
                         tb_val *out)
{
    tb_expr *copy = TB_NEW(b->arena, tb_expr);
    tb_arg *args =
        tb_arena_alloc(b->arena, (size_t)e->nargs * sizeof *args + 1);
    if (!copy || !args)
        return TB_ERR_MEMORY;
    *copy = *e;
    copy->args = args;
    *out = const_val(copy);
    for (int i = 0; i < e->nargs; i++) {
        args[i] = (tb_arg){.value = v[i].expr};
        out->size += v[i].size;
        if (copy->depth <= v[i].expr->depth)
            copy->depth = v[i].expr->depth + 1;
        if (out->size > TB_CONST_MAX || copy->depth > TB_DEPTH_MAX)
            return tb_build_fail(b, e->pos,
                                 "this constant takes too many operations");
    }
    return TB_OK;
}

/* --- arithmetic ---------------------------------------------------------- */

/* `l op r`, or -l where r is NULL, of constants. */
static tb_status const_op(tb_builder *b, tb_pos pos, char op, const tb_val *l,
                          const tb_val *r, tb_val *out)
{
    tb_expr e = {.kind = r ? TB_EXPR_BINARY : TB_EXPR_NEG,
                 .pos = pos,
                 .op = op,
                 .nargs = r ? 2 : 1};
    const tb_val v[2] = {*l, r ? *r : *l};
    return tb_build_const(b, &e, v, out);
}

static tb_attr attr_of(const tb_val *v)
{
    return (tb_attr){v->expr, __builtin_nan(""), v->shown};
}

static tb_attr attr_number(double v)
{
    return (tb_attr){NULL, v, NULL};
}

/* scale * x + offset; either may be a constant value or a number. */
static tb_status affine(tb_builder *b, int x, tb_attr scale, tb_attr offset,
                        tb_pos pos, tb_val *out)
{
    tb_attr attr[2];
    attr[TB_ATTR_AFFINE_SCALE] = scale;
    attr[TB_ATTR_AFFINE_OFFSET] = offset;
    *out = (tb_val){.kind = TB_VAL_NODE};
    return tb_build_node(b, &tb_op_affine, &x, 1, attr, pos, &out->node);
}

/* constant op stream */
static tb_status mixed_left_one(tb_builder *b, const tb_expr *e,
                                const tb_val *c, int x, tb_val *out)
{
    bool sum = e->op == '+', difference = e->op == '-';
    if (e->op == '*')
        return affine(b, x, attr_of(c), attr_number(0), e->pos, out);
    if (sum || difference)
        return affine(b, x, attr_number(sum ? 1 : -1), attr_of(c), e->pos, out);
    return tb_build_fail(b, e->pos, "%c: only constants stand on its right",
                         e->op);
}

/* stream op constant */
static tb_status mixed_right_one(tb_builder *b, const tb_expr *e, int x,
                                 const tb_val *c, tb_val *out)
{
    static const tb_expr one = {
        .kind = TB_EXPR_NUMBER, .number = 1, .depth = 1};
    const tb_val number_one = const_val(&one);
    tb_val v;
    switch (e->op) {
    case '*':
    case '+':
        return mixed_left_one(b, e, c, x, out);
    case '-':
        TB_TRY(const_op(b, e->pos, 0, c, NULL, &v));
        return affine(b, x, attr_number(1), attr_of(&v), e->pos, out);
    default:
        TB_TRY(const_op(b, e->pos, '/', &number_one, c, &v));
        return affine(b, x, attr_of(&v), attr_number(0), e->pos, out);
    }
}

/* With each element of a list. */
static tb_status mixed(tb_builder *b, const tb_expr *e, const tb_val v[2],
                       tb_val *out)
{
    bool left = v[0].kind == TB_VAL_CONST;
    tb_each each;
    TB_TRY(tb_build_each_of(b, e->pos, &v[left], &each));
    for (int i = 0; i < each.n; i++) {
        TB_TRY(left ? mixed_left_one(b, e, &v[0], each.nodes[i], out)
                    : mixed_right_one(b, e, each.nodes[i], &v[1], out));
        each.nodes[i] = out->node;
    }
    return tb_build_each_value(b, &each, out);
}

static const tb_op *binary_op(char op)
{
    return op == '+'   ? &tb_op_add
           : op == '-' ? &tb_op_sub
           : op == '*' ? &tb_op_mul
                       : &tb_op_div;
}

static tb_status binary(tb_builder *b, const tb_expr *e, tb_val *out)
{
    tb_val v[2];
    for (int i = 0; i < 2; i++)
        TB_TRY(tb_build_expr(b, e->args[i].value, &v[i]));
    bool left = v[0].kind == TB_VAL_CONST, right = v[1].kind == TB_VAL_CONST;
    if (left && right)
        return tb_build_const(b, e, v, out);
    if (e->op == '^')
        return tb_build_fail(b, e->pos, "^: works on constants only");
    if (left || right)
        return mixed(b, e, v, out);
    return tb_build_pairs(b, binary_op(e->op), e, v, out);
}

static tb_status negate(tb_builder *b, const tb_expr *e, tb_val *out)
{
    tb_val v;
    TB_TRY(tb_build_expr(b, e->args[0].value, &v));
    if (v.kind == TB_VAL_CONST)
        return tb_build_const(b, e, &v, out);
    tb_each each;
    TB_TRY(tb_build_each_of(b, e->pos, &v, &each));
    for (int i = 0; i < each.n; i++) {
        TB_TRY(affine(b, each.nodes[i], attr_number(-1), attr_number(0), e->pos,
                      out));
        each.nodes[i] = out->node;
    }
    return tb_build_each_value(b, &each, out);
}

/* --- reading names ------------------------------------------------------- */

/* The name in scope most like `name`, or NULL. */
static const char *nearest_name(tb_builder *b, const char *name)
{
    size_t n = 0, cap = (size_t)b->scope.count;
    const char **words = tb_arena_alloc(b->arena, (cap + 1) * sizeof *words);
    for (size_t i = 0; words && i < cap; i++)
        if (b->scope.items[i].is_value)
            words[n++] = b->scope.items[i].name;
    return words ? tb_nearest(name, words, n) : NULL;
}

static tb_status unknown_name(tb_builder *b, const tb_expr *e)
{
    const char *what = tb_reserved_find(e->name);
    if (tb_callable_find(e->name) != TB_CALLABLE_NONE ||
        tb_def_find(b->block, e->name))
        return tb_build_fail(b, e->pos,
                             "%s is a function; did you mean %s(...)?", e->name,
                             e->name);
    if (tb_streq(e->name, "memory"))
        return tb_build_no_encoder(b, e->pos, e->name);
    if (what)
        return tb_build_fail(b, e->pos, "%s is %s: it cannot be read yet",
                             e->name, what);
    /* every one-letter name is near every other */
    const char *near = e->name[1] ? nearest_name(b, e->name) : NULL;
    if (near)
        return tb_build_fail(b, e->pos,
                             "%s is read before it is assigned; did you mean "
                             "%s?",
                             e->name, near);
    return tb_build_fail(b, e->pos, "%s is read before it is assigned%s",
                         e->name, b->eval ? "; give it with --set" : "");
}

static tb_status set_input(tb_builder *b, const tb_expr *e, tb_val *out)
{
    for (int i = 0; i < b->nsets; i++)
        if (tb_streq(b->sets[i].name, e->name)) {
            tb_shape s = b->sets[i].shape;
            tb_binding *bind;
            *out = (tb_val){.kind = TB_VAL_NODE};
            TB_TRY(tb_build_leaf(b, &tb_op_input, b->sets[i].name, s,
                                 (tb_dim){0, (double)s.width}, &out->node));
            b->g->nodes[out->node].of_memory = tb_streq(e->name, "memory");
            TB_TRY(tb_scope_put(b, b->sets[i].name, &bind));
            bind->val = *out;
            bind->is_value = true;
            return TB_OK;
        }
    return unknown_name(b, e);
}

static tb_status read_name(tb_builder *b, const tb_expr *e, tb_val *out)
{
    if (b->args)
        for (int i = 0; i < b->args->def->nparams; i++)
            if (tb_streq(b->args->def->params[i], e->name)) {
                *out = b->args->vals[i];
                return TB_OK;
            }
    tb_binding *bind = tb_scope_find(&b->scope, e->name);
    if (bind && bind->is_value) {
        *out = bind->val;
        return TB_OK;
    }
    if (bind && bind->is_linear)
        return tb_build_fail(b, e->pos, "%s is a linear: write %s(x), not %s*x",
                             e->name, e->name, e->name);
    if (is_layer_constant(e->name)) {
        *out = const_val(e);
        return TB_OK;
    }
    return set_input(b, e, out);
}

static tb_status expr_of_kind(tb_builder *b, const tb_expr *e, tb_val *out)
{
    switch (e->kind) {
    case TB_EXPR_NUMBER:
        *out = const_val(e);
        return TB_OK;
    case TB_EXPR_NAME:
        return read_name(b, e, out);
    case TB_EXPR_CALL:
        return tb_build_call(b, e, out);
    case TB_EXPR_NEG:
        return negate(b, e, out);
    case TB_EXPR_BINARY:
        return binary(b, e, out);
    case TB_EXPR_TUPLE:
        return tb_build_fail(b, e->pos,
                             "(..., ...): several values are for the last "
                             "statement of eval");
    case TB_EXPR_COMPARE:
        break;
    }
    return tb_build_fail(b, e->pos, "a comparison belongs in block[...] only");
}

tb_status tb_build_expr(tb_builder *b, const tb_expr *e, tb_val *out)
{
    if (b->depth >= TB_EXPAND_MAX)
        return tb_build_fail(b, e->pos,
                             "too much to compute: definitions expand to more "
                             "than %d operations in one another",
                             (int)TB_EXPAND_MAX);
    if (++b->steps > b->steps_max)
        return tb_build_fail(b, e->pos,
                             "too much to compute: definitions expand to more "
                             "than %zu operations",
                             b->steps_max);
    b->depth++;
    tb_status s = expr_of_kind(b, e, out);
    b->depth--;
    return s;
}

tb_status tb_build_value(tb_builder *b, const tb_expr *e, int *node)
{
    tb_val v;
    TB_TRY(tb_build_expr(b, e, &v));
    if (v.kind == TB_VAL_CONST)
        return tb_build_fail(b, e->pos,
                             "a constant stands where a stream is needed");
    if (v.kind == TB_VAL_LIST)
        return tb_build_fail(b, e->pos,
                             "a list stands where one stream is needed: "
                             "item(list, i), sum(list), mix(w, list) and "
                             "concat(list) make one of it");
    *node = v.node;
    return TB_OK;
}
