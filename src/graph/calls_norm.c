/* SPDX-License-Identifier: MIT */
/* Norms: their options, and the parameters each kind has. */
#include "graph/calls.h"

/* groups = heads: parts as wide as a head, however many those are (with fewer
 * key heads, fewer). A number is one for all layers: it makes parameters. */
tb_status tb_call_groups(tb_builder *b, const tb_expr *e, size_t width,
                         size_t *groups)
{
    const tb_expr *o = tb_call_option(e, "groups");
    size_t head = b->sizes->s.width / b->sizes->s.heads;
    tb_val v;
    tb_dim dim;
    *groups = 0;
    if (!o)
        return TB_OK;
    if (o->kind != TB_EXPR_NAME || !tb_streq(o->name, "heads")) {
        TB_TRY(tb_call_constant(b, o, "groups", &v));
        TB_TRY(tb_build_width(b, v.expr, groups, &dim));
    } else if (width % head == 0) {
        *groups = width / head;
    }
    if (*groups && width % *groups == 0)
        return TB_OK;
    return tb_build_fail(b, o->pos, "groups: %zu features cannot be parted so",
                         width);
}

static tb_status norm_eps(tb_builder *b, const tb_expr *e, tb_attr *eps)
{
    const tb_expr *value = tb_call_option(e, "eps");
    *eps = (tb_attr){NULL, b->sizes->s.eps, NULL};
    if (!value)
        return TB_OK;
    TB_TRY(tb_call_attr(b, value, "eps", eps));
    if (!(eps->value >= 0))
        return tb_build_fail(b, value->pos, "eps: got %g, wanted 0 or more",
                             eps->value);
    return TB_OK;
}

static tb_status row_attrs(tb_builder *b, const tb_expr *e, size_t width,
                           tb_attr attr[TB_OP_ATTRS])
{
    int variance, unbiased;
    size_t groups;
    TB_TRY(tb_call_word(b, e, "variance", b->sizes->variance, &variance));
    TB_TRY(tb_call_flag(b, e, "unbiased", 0, &unbiased));
    TB_TRY(tb_call_groups(b, e, width, &groups));
    attr[TB_ATTR_NORM_VARIANCE].value = variance;
    attr[TB_ATTR_NORM_UNBIASED].value = unbiased;
    attr[TB_ATTR_NORM_GROUPS].value = (double)groups;
    return TB_OK;
}

/* A rate in (0, 1], or `attr` as it is. */
static tb_status rate_option(tb_builder *b, const tb_expr *e, const char *key,
                             tb_attr *attr)
{
    const tb_expr *o = tb_call_option(e, key);
    if (!o)
        return TB_OK;
    TB_TRY(tb_call_attr(b, o, key, attr));
    if (attr->value > 0 && attr->value <= 1)
        return TB_OK;
    return tb_build_fail(b, o->pos, "%s: got %g, wanted 0 < %s <= 1", key,
                         attr->value, key);
}

static tb_status warmup_option(tb_builder *b, const tb_expr *e, tb_attr *attr)
{
    const double published = 10000; /* arXiv:2003.07845 */
    const tb_expr *o = tb_call_option(e, "warmup");
    *attr = (tb_attr){NULL, published, NULL};
    if (!o)
        return TB_OK;
    TB_TRY(tb_call_attr(b, o, "warmup", attr));
    if (attr->value >= 0)
        return TB_OK;
    return tb_build_fail(b, o->pos, "warmup: got %g, wanted 0 or more steps",
                         attr->value);
}

/* Norms over tokens. */
static tb_status batch_attrs(tb_builder *b, const tb_expr *e, const tb_op *op,
                             tb_attr attr[TB_OP_ATTRS])
{
    TB_TRY(rate_option(b, e, "momentum", &attr[TB_ATTR_BATCH_MOMENTUM]));
    TB_TRY(
        rate_option(b, e, "back_momentum", &attr[TB_ATTR_BATCH_BACK_MOMENTUM]));
    if (op != &tb_op_powernorm)
        return TB_OK;
    return warmup_option(b, e, &attr[TB_ATTR_BATCH_WARMUP]);
}

/* Keep: which tokens count, for norms over tokens. Gain and bias: whether a
 * norm of rows has them; one that never does may be told so. */
static bool takes_option(const tb_op *op, const char *key)
{
    bool rows =
        op == &tb_op_layernorm || op == &tb_op_rmsnorm || op == &tb_op_l2norm;
    if (rows && (tb_streq(key, "gain") || tb_streq(key, "bias")))
        return true;
    for (int a = 0; a < op->nattr + op->noption; a++)
        if (tb_streq(op->attr_name[a], key))
            return true;
    return op->state && tb_streq(key, "keep");
}

static tb_status norm_attrs(tb_builder *b, const tb_expr *e, const tb_op *op,
                            size_t width, tb_attr attr[TB_OP_ATTRS])
{
    int mode;
    for (int i = 0; i < e->nargs; i++)
        if (e->args[i].key && !takes_option(op, e->args[i].key))
            return tb_build_fail(b, e->args[i].key_pos, "%s: %s takes no %s",
                                 e->args[i].key, op->name,
                                 op->nattr ? "such option" : "options");
    if (!op->nattr)
        return TB_OK;
    TB_TRY(norm_eps(b, e, &attr[TB_ATTR_NORM_EPS]));
    TB_TRY(tb_call_word(b, e, "eps_mode", b->sizes->eps_mode - 1, &mode));
    attr[TB_ATTR_NORM_EPS_MODE].value = mode + 1;
    return op->state ? batch_attrs(b, e, op, attr)
                     : row_attrs(b, e, width, attr);
}

/* One parameter of a norm: what it is called, and how it starts where that is
 * not by its role. */
typedef struct norm_leaf {
    const char *name;
    tb_role role;
    double start; /* of scalars and buffers; below 0: the root of the part's
                     width */
} norm_leaf;

enum { NORM_LEAVES = 4 };

static const struct {
    const tb_op *op;
    norm_leaf leaves[NORM_LEAVES]; /* in the order of the op's inputs */
} norm_rows[] = {
    {&tb_op_layernorm, {{"gain", TB_ROLE_GAIN, 0}, {"bias", TB_ROLE_BIAS, 0}}},
    {&tb_op_rmsnorm, {{"gain", TB_ROLE_GAIN, 0}}},
    {&tb_op_scalenorm, {{"length", TB_ROLE_SCALAR, -1}}},
    {&tb_op_l2norm, {{0}}},
    {&tb_op_batchnorm,
     {{"gain", TB_ROLE_GAIN, 0},
      {"bias", TB_ROLE_BIAS, 0},
      {"mean", TB_ROLE_BUFFER, 0},
      {"var", TB_ROLE_BUFFER, 1}}},
    {&tb_op_powernorm,
     {{"gain", TB_ROLE_GAIN, 0},
      {"bias", TB_ROLE_BIAS, 0},
      {"square", TB_ROLE_BUFFER, 1},
      {"nu", TB_ROLE_BUFFER, 0}}},
    {&tb_op_dyt,
     {{"alpha", TB_ROLE_SCALAR, 0.5},
      {"gain", TB_ROLE_GAIN, 0},
      {"bias", TB_ROLE_BIAS, 0}}},
    {&tb_op_derf,
     {{"alpha", TB_ROLE_SCALAR, 0.5},
      {"shift", TB_ROLE_SCALAR, 0},
      {"gain", TB_ROLE_GAIN, 0},
      {"bias", TB_ROLE_BIAS, 0}}},
};

static const tb_expr *number_expr(tb_builder *b, double v)
{
    tb_expr *e = TB_NEW(b->arena, tb_expr);
    if (e)
        *e = (tb_expr){.kind = TB_EXPR_NUMBER, .number = v, .depth = 1};
    return e;
}

/* sqrt(d), or of the number where the part is not d wide. */
static const tb_expr *root_expr(tb_builder *b, size_t width)
{
    static const tb_expr d = {.kind = TB_EXPR_NAME, .name = "d", .depth = 1};
    bool whole = width == b->sizes->s.width && !b->eval;
    tb_expr *e = TB_NEW(b->arena, tb_expr);
    tb_arg *arg = TB_NEW(b->arena, tb_arg);
    const tb_expr *of = whole ? &d : number_expr(b, (double)width);
    if (!e || !arg || !of)
        return NULL;
    *arg = (tb_arg){.value = of};
    *e = (tb_expr){.kind = TB_EXPR_CALL,
                   .name = "sqrt",
                   .nargs = 1,
                   .args = arg,
                   .depth = 2};
    return e;
}

static tb_status norm_leaf_build(tb_builder *b, const tb_expr *e,
                                 const char *slot, const norm_leaf *leaf,
                                 size_t width, tb_dim dim, int *out)
{
    const tb_expr *start = NULL;
    tb_shape shape = {TB_SHAPE_VECTOR, width, 1};
    if (leaf->role == TB_ROLE_SCALAR) {
        shape = (tb_shape){TB_SHAPE_SCALAR, 1, 1};
        dim = (tb_dim){0, 1};
    }
    if (leaf->role == TB_ROLE_SCALAR || leaf->role == TB_ROLE_BUFFER) {
        start =
            leaf->start < 0 ? root_expr(b, width) : number_expr(b, leaf->start);
        if (!start)
            return TB_ERR_MEMORY;
    }
    return tb_build_param(b, slot, leaf->name, leaf->role, shape, dim, start,
                          e->pos, out);
}

/* Whether a norm has the parameter `key`: by the option, else if it can. */
static tb_status has_leaf(tb_builder *b, const tb_expr *e, const char *key,
                          const norm_leaf *leaves, bool *has)
{
    bool can = false;
    int wanted;
    for (int i = 0; i < NORM_LEAVES; i++)
        can = can || tb_streq(leaves[i].name, key);
    TB_TRY(tb_call_flag(b, e, key, can, &wanted));
    *has = wanted;
    if (wanted && !can)
        return tb_build_fail(b, tb_call_option(e, key)->pos,
                             "%s: this norm has none", key);
    return TB_OK;
}

/* A bias is added to what the gain has multiplied: without the gain there is
 * none. */
static tb_status leaf_options(tb_builder *b, const tb_expr *e,
                              const norm_leaf *leaves, bool *gain, bool *bias)
{
    TB_TRY(has_leaf(b, e, "gain", leaves, gain));
    TB_TRY(has_leaf(b, e, "bias", leaves, bias));
    if (*gain || !*bias)
        return TB_OK;
    *bias = false;
    if (!tb_call_option(e, "bias"))
        return TB_OK;
    return tb_build_fail(b, tb_call_option(e, "bias")->pos,
                         "bias: stands on a gain, which gain=false left out");
}

static tb_status norm_leaves(tb_builder *b, const tb_expr *e, const tb_op *op,
                             double groups, int in[TB_OP_INPUTS], int *nin)
{
    bool gain = true, bias = true;
    bool inside = b->region >= 0;
    const char *base = inside ? "inner_norm" : b->eval ? e->name : "norm";
    const char *slot;
    double parts = groups > 0 ? groups : 1;
    size_t width = b->g->nodes[in[0]].shape.width / (size_t)parts, row = 0;
    tb_dim dim = b->g->nodes[in[0]].dim;
    dim.per_d /= parts;
    dim.fixed /= parts;
    while (norm_rows[row].op != op)
        row++;
    *nin = 1;
    const norm_leaf *leaves = norm_rows[row].leaves;
    if (takes_option(op, "gain"))
        TB_TRY(leaf_options(b, e, leaves, &gain, &bias));
    TB_TRY(tb_build_slot(b, base, &slot));
    for (int i = 0; i < NORM_LEAVES && leaves[i].name; i++)
        if ((gain || leaves[i].role != TB_ROLE_GAIN) &&
            (bias || leaves[i].role != TB_ROLE_BIAS))
            TB_TRY(norm_leaf_build(b, e, slot, &leaves[i], width, dim,
                                   &in[(*nin)++]));
    return TB_OK;
}

/* The stream of width 1 that says which tokens count for a norm over tokens:
 * the call's own, or all that are no padding. */
static tb_status norm_mask(tb_builder *b, const tb_expr *e, const tb_op *op,
                           int in[TB_OP_INPUTS], int *nin)
{
    const tb_expr *keep = tb_call_option(e, "keep");
    int mask = -1;
    if (keep)
        TB_TRY(tb_build_value(b, keep, &mask));
    else if (op->state)
        TB_TRY(tb_build_keep(b, b->g->nodes[in[0]].of_memory, &mask));
    if (mask >= 0)
        in[(*nin)++] = mask;
    return TB_OK;
}

tb_status tb_call_norm(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const char *kind = tb_streq(e->name, "norm") ? b->sizes->s.norm : e->name;
    const tb_op *op = tb_op_norm(kind);
    int in[TB_OP_INPUTS], nin;
    tb_attr attr[TB_OP_ATTRS] = {{0}};
    tb_each each;
    TB_TRY(tb_build_each(b, e->args[0].value, &each));
    if (!each.n)
        return tb_build_fail(b, e->pos, "%s: the list is empty", e->name);
    in[0] = each.nodes[0];
    const tb_node *x = &b->g->nodes[in[0]];
    if (x->shape.kind != TB_SHAPE_STREAM)
        return tb_build_fail(b, e->pos, "%s(...): needs a stream", e->name);
    TB_TRY(norm_attrs(b, e, op, x->shape.width, attr));
    double groups = tb_op_has_groups(op) ? attr[TB_ATTR_NORM_GROUPS].value : 0;
    TB_TRY(norm_leaves(b, e, op, groups, in, &nin));
    TB_TRY(norm_mask(b, e, op, in, &nin));
    for (int i = 0; i < each.n; i++) {
        in[0] = each.nodes[i];
        TB_TRY(tb_build_node(b, op, in, nin, attr, e->pos, &each.nodes[i]));
    }
    return tb_build_each_value(b, &each, out);
}
