/* SPDX-License-Identifier: MIT */
/* Functions of the language, by the kinds of equation/names.h. A word that
 * cannot be computed yet is refused with that reason, not as unknown. */
#include "graph/build.h"

#include "equation/names.h"

typedef tb_status (*call_fn)(tb_builder *b, const tb_expr *e, tb_val *out);

/** How calls of a kind, or of one name, are built. */
typedef struct call_row {
    const char *name; /* NULL: every name of the kind */
    call_fn build;
    int min, max;     /* arguments without a key; max 0: any number */
    const char *keys; /* options, separated by spaces */
} call_row;

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = words; *p;) {
        const char *end = strchr(p, ' ');
        size_t len = end ? (size_t)(end - p) : strlen(p);
        if (len == n && memcmp(p, word, n) == 0)
            return true;
        p += len + (end != NULL);
    }
    return false;
}

static tb_status node_value(tb_val *out, int node)
{
    *out = (tb_val){.kind = TB_VAL_NODE, .node = node};
    return TB_OK;
}

/* The option `key`, or NULL. */
static const tb_expr *option(const tb_expr *e, const char *key)
{
    for (int i = 0; i < e->nargs; i++)
        if (tb_streq(e->args[i].key, key))
            return e->args[i].value;
    return NULL;
}

static tb_status not_yet(tb_builder *b, const tb_expr *e)
{
    return tb_build_fail(b, e->pos, "%s: cannot be computed yet", e->name);
}

/* An operand that must be a constant; `what` names it in the message. */
static tb_status const_value(tb_builder *b, const tb_expr *e, const char *what,
                             tb_val *v)
{
    TB_TRY(tb_build_expr(b, e, v));
    if (v->kind == TB_VAL_CONST)
        return TB_OK;
    return tb_build_fail(b, e->pos, "%s: got a stream, wanted a constant",
                         what);
}

/* The same with its value for this layer, which shape rules look at. */
static tb_status const_attr(tb_builder *b, const tb_expr *e, const char *what,
                            tb_attr *attr)
{
    tb_val v;
    TB_TRY(const_value(b, e, what, &v));
    *attr = (tb_attr){v.expr, 0, v.shown};
    return tb_build_fold(b, v.expr, &attr->value);
}

/* --- options ------------------------------------------------------------- */

/* true or false, 1 or 0; `without` where the call does not say. */
static tb_status flag_option(tb_builder *b, const tb_expr *e, const char *key,
                             int without, int *flag)
{
    const tb_expr *o = option(e, key);
    double v;
    *flag = without;
    if (!o)
        return TB_OK;
    if (o->kind == TB_EXPR_NAME &&
        (tb_streq(o->name, "true") || tb_streq(o->name, "false"))) {
        *flag = tb_streq(o->name, "true");
        return TB_OK;
    }
    TB_TRY(tb_build_fold(b, o, &v));
    if (v != 0 && v != 1)
        return tb_build_fail(b, o->pos, "%s: got %g, wanted true or false", key,
                             v);
    *flag = (int)v;
    return TB_OK;
}

/* One of the words of a setting, by number from 0. */
static tb_status word_option(tb_builder *b, const tb_expr *e, const char *key,
                             int without, int *word)
{
    const tb_expr *o = option(e, key);
    *word = without;
    if (!o)
        return TB_OK;
    *word = o->kind == TB_EXPR_NAME ? tb_setting_word(key, o->name) : -1;
    if (*word < 0)
        return tb_build_fail(b, o->pos, "%s: wanted one of %s", key,
                             tb_setting_kind_find(key)->words);
    return TB_OK;
}

/* --- norms --------------------------------------------------------------- */

/* groups = heads: parts as wide as a head, however many those are (with fewer
 * key heads, fewer). A number is one for all layers: it makes parameters. */
static tb_status groups_option(tb_builder *b, const tb_expr *e, size_t width,
                               size_t *groups)
{
    const tb_expr *o = option(e, "groups");
    size_t head = b->sizes->s.width / b->sizes->s.heads;
    tb_val v;
    tb_dim dim;
    *groups = 0;
    if (!o)
        return TB_OK;
    if (o->kind != TB_EXPR_NAME || !tb_streq(o->name, "heads")) {
        TB_TRY(const_value(b, o, "groups", &v));
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
    const tb_expr *value = option(e, "eps");
    *eps = (tb_attr){NULL, b->sizes->s.eps, NULL};
    if (!value)
        return TB_OK;
    TB_TRY(const_attr(b, value, "eps", eps));
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
    TB_TRY(word_option(b, e, "variance", b->sizes->variance, &variance));
    TB_TRY(flag_option(b, e, "unbiased", 0, &unbiased));
    TB_TRY(groups_option(b, e, width, &groups));
    attr[TB_ATTR_NORM_VARIANCE].value = variance;
    attr[TB_ATTR_NORM_UNBIASED].value = unbiased;
    attr[TB_ATTR_NORM_GROUPS].value = (double)groups;
    return TB_OK;
}

/* A rate in (0, 1], or `attr` as it is. */
static tb_status rate_option(tb_builder *b, const tb_expr *e, const char *key,
                             tb_attr *attr)
{
    const tb_expr *o = option(e, key);
    if (!o)
        return TB_OK;
    TB_TRY(const_attr(b, o, key, attr));
    if (attr->value > 0 && attr->value <= 1)
        return TB_OK;
    return tb_build_fail(b, o->pos, "%s: got %g, wanted 0 < %s <= 1", key,
                         attr->value, key);
}

static tb_status warmup_option(tb_builder *b, const tb_expr *e, tb_attr *attr)
{
    const double published = 10000; /* arXiv:2003.07845 */
    const tb_expr *o = option(e, "warmup");
    *attr = (tb_attr){NULL, published, NULL};
    if (!o)
        return TB_OK;
    TB_TRY(const_attr(b, o, "warmup", attr));
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
    TB_TRY(word_option(b, e, "eps_mode", b->sizes->eps_mode - 1, &mode));
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
    TB_TRY(flag_option(b, e, key, can, &wanted));
    *has = wanted;
    if (wanted && !can)
        return tb_build_fail(b, option(e, key)->pos, "%s: this norm has none",
                             key);
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
    if (!option(e, "bias"))
        return TB_OK;
    return tb_build_fail(b, option(e, "bias")->pos,
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
    const tb_expr *keep = option(e, "keep");
    int mask = -1;
    if (keep)
        TB_TRY(tb_build_value(b, keep, &mask));
    else if (op->state)
        TB_TRY(tb_build_keep(b, b->g->nodes[in[0]].of_memory, &mask));
    if (mask >= 0)
        in[(*nin)++] = mask;
    return TB_OK;
}

static tb_status call_norm(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const char *kind = tb_streq(e->name, "norm") ? b->sizes->s.norm : e->name;
    const tb_op *op = tb_op_norm(kind);
    int in[TB_OP_INPUTS], nin;
    tb_attr attr[TB_OP_ATTRS] = {{0}};
    tb_each each;
    if (!op)
        return not_yet(b, e);
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

/* --- sublayers ----------------------------------------------------------- */

const tb_def *tb_def_find(const tb_block *block, const char *name)
{
    for (int i = 0; i < block->ndefs; i++)
        if (tb_streq(block->defs[i].name, name))
            return &block->defs[i];
    return NULL;
}

static tb_status expand(tb_builder *b, const tb_expr *e, const tb_def *def,
                        const tb_val *vals, tb_val *out)
{
    const tb_args mine = {def, vals, b->args};
    for (const tb_args *a = b->args; a; a = a->outer)
        if (a->def == def)
            return tb_build_fail(b, e->pos, "%s calls itself", def->name);
    b->args = &mine;
    tb_status s = tb_build_expr(b, def->body, out);
    b->args = mine.outer;
    return s;
}

static tb_status region_open(tb_builder *b, const tb_expr *e, const char *name,
                             int x)
{
    tb_graph *g = b->g;
    TB_TRY(TB_GROW(b, g->regions, g->nregions, b->cap_regions, tb_region));
    g->regions[g->nregions] = (tb_region){.name = name,
                                          .shown = b->sub_is_f ? "F" : name,
                                          .nin = 1,
                                          .in = {x, -1},
                                          .out = -1,
                                          .first = g->nnodes,
                                          .k = b->k,
                                          .pos = e->pos};
    b->region = g->nregions++;
    return TB_OK;
}

static tb_status drop_node(tb_builder *b, const tb_op *op, int x, tb_attr p,
                           tb_pos pos, int *out)
{
    /* a rate that depends on l is 0 in some layers only */
    if (p.value <= 0 && (!p.expr || p.expr->kind == TB_EXPR_NUMBER)) {
        *out = x;
        return TB_OK;
    }
    return tb_build_node(b, op, &x, 1, &p, pos, out);
}

/* The body, dropout at its end (ruling 10), and the node that marks where
 * the branch joins: nothing passes it when branches are cut. */
static tb_status region_body(tb_builder *b, const tb_expr *e, const tb_def *def,
                             int x, int *out)
{
    const tb_val arg = {.kind = TB_VAL_NODE, .node = x};
    tb_attr p = {NULL, b->sizes->s.dropout, NULL};
    tb_val v;
    int y;
    if (def->nparams != 1)
        return tb_build_fail(b, def->pos, "%s: got %d parameters, wanted 1",
                             def->name, def->nparams);
    TB_TRY(expand(b, e, def, &arg, &v));
    if (v.kind != TB_VAL_NODE)
        return tb_build_fail(
            b, def->pos, "%s: its value is a %s, wanted a stream", def->name,
            v.kind == TB_VAL_LIST ? "list" : "constant");
    TB_TRY(drop_node(b, &tb_op_drop, v.node, p, e->pos, &y));
    return tb_build_node(b, &tb_op_branch, &y, 1, NULL, e->pos, out);
}

/* Memory is a second input where something inside reads it. */
static void reads_memory(tb_builder *b, tb_region *r)
{
    const tb_binding *bind = tb_scope_find(&b->scope, "memory");
    int memory = bind ? bind->val.node : -1;
    for (int i = r->first; i <= r->last && memory >= 0; i++)
        for (int j = 0; j < b->g->nodes[i].nin; j++)
            if (b->g->nodes[i].in[j] == memory) {
                r->nin = 2;
                r->in[1] = memory;
            }
}

/* A sublayer by its name. Errors inside the prelude show the call. */
static tb_status region(tb_builder *b, const tb_expr *e, const char *name,
                        tb_val *out)
{
    const tb_def *own = tb_def_find(b->block, name);
    const tb_def *def = own ? own : tb_def_find(b->prelude, name);
    const tb_builder outer = *b;
    int x, node;
    if (tb_streq(name, "cross") && b->stack != TB_STACK_CROSS)
        return tb_build_no_encoder(b, e->pos, name);
    TB_TRY(tb_build_value(b, e->args[0].value, &x));
    TB_TRY(region_open(b, e, name, x));
    int at = b->region;
    b->owner = name;
    if (!own && !b->has_pos) {
        b->has_pos = true;
        b->pos = e->pos;
    }
    TB_TRY(region_body(b, e, def, x, &node));
    b->owner = outer.owner;
    b->region = outer.region;
    b->has_pos = outer.has_pos;
    b->pos = outer.pos;
    b->g->regions[at].out = node;
    b->g->regions[at].last = node;
    b->g->nodes[node].region = at;
    reads_memory(b, &b->g->regions[at]);
    return node_value(out, node);
}

static tb_status call_sublayer(tb_builder *b, const tb_expr *e, tb_val *out)
{
    if (b->place)
        return tb_build_fail(b, e->pos,
                             "%s belongs in the block section, not in %s",
                             e->name, b->place);
    if (b->region >= 0)
        return tb_build_fail(b, e->pos, "%s inside %s: sublayers do not nest",
                             e->name, b->g->regions[b->region].name);
    if (tb_streq(e->name, "F"))
        return region(b, e, b->sub, out);
    return region(b, e, e->name, out);
}

/* --- weights inside sublayers ------------------------------------------- */

typedef struct weight_row {
    const char *name, *regions; /* where it may stand, the first by default */
    int out;                    /* 0: d, 1: kv width, 2: ffn width */
} weight_row;

static const weight_row weights[] = {
    {"q", "attn cross", 0}, {"k", "attn cross", 1}, {"v", "attn cross", 1},
    {"o", "attn cross", 0}, {"up", "ffn", 2},       {"gate", "ffn", 2},
    {"down", "ffn", 0}};

static void weight_width(const tb_builder *b, const weight_row *w,
                         size_t *width, tb_dim *dim)
{
    const tb_settings *s = &b->sizes->s;
    const size_t widths[] = {s->width, s->width / s->heads * s->kv_heads,
                             s->ffn};
    *width = widths[w->out];
    *dim = (tb_dim){(double)*width / (double)s->width, 0};
    if (b->eval)
        *dim = (tb_dim){0, (double)*width};
}

static tb_status call_weight(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const weight_row *w = weights;
    const tb_region *r = b->region < 0 ? NULL : &b->g->regions[b->region];
    int x, node;
    size_t width;
    tb_dim dim;
    while (!tb_streq(w->name, e->name))
        w++;
    int home = (int)strcspn(w->regions, " ");
    if (!r || !has_word(w->regions, r->name))
        return tb_build_fail(b, e->pos,
                             "%s(...) is a weight of %.*s: it belongs inside "
                             "%.*s(x) = ...",
                             e->name, home, w->regions, home, w->regions);
    TB_TRY(tb_build_value(b, e->args[0].value, &x));
    const char *base = tb_arena_printf(b->arena, "%s.%s", r->name, e->name);
    tb_binding *bind;
    if (!base)
        return TB_ERR_MEMORY;
    TB_TRY(tb_scope_put(b, base, &bind)); /* no name has a dot: no clash */
    if (!bind->is_linear) {
        tb_lin lin;
        weight_width(b, w, &width, &dim);
        TB_TRY(tb_build_linear(b, base, b->g->nodes[x].shape.width, width, dim,
                               -1, e->pos, &lin));
        bind->lin = lin;
        bind->is_linear = true;
    }
    TB_TRY(tb_build_apply(b, bind->lin, x, e->name, e->pos, &node));
    return node_value(out, node);
}

/* keep=m or hide=m in eval: 1 - m of what is hidden. -1: neither stands. */
static tb_status mha_own_mask(tb_builder *b, const tb_expr *e, int *mask)
{
    const tb_expr *keep = option(e, "keep"), *hide = option(e, "hide");
    tb_attr flip[TB_OP_ATTRS] = {{0}};
    int hidden;
    *mask = -1;
    if (!keep && !hide)
        return TB_OK;
    if (!b->eval)
        return tb_build_fail(b, (keep ? keep : hide)->pos,
                             "mha: a mask of one's own is for eval; in a "
                             "stack --mask and padding say what is seen");
    if (keep && hide)
        return tb_build_fail(b, hide->pos,
                             "mha: got both keep and hide, wanted one");
    if (keep)
        return tb_build_value(b, keep, mask);
    TB_TRY(tb_build_value(b, hide, &hidden));
    flip[TB_ATTR_AFFINE_SCALE].value = -1;
    flip[TB_ATTR_AFFINE_OFFSET].value = 1;
    return tb_build_node(b, &tb_op_affine, &hidden, 1, flip, hide->pos, mask);
}

/* Keys and values are of one length; a memory has no order with the queries;
 * padding is not seen. */
static tb_status mha_mask(tb_builder *b, const tb_expr *e, int in[4], int *nin,
                          tb_attr *causal)
{
    const tb_node *nodes = b->g->nodes;
    bool memory = nodes[in[1]].of_memory;
    if (memory != nodes[in[2]].of_memory)
        return tb_build_fail(b, e->pos,
                             "mha: keys and values must both be memory's, or "
                             "neither");
    causal->value = b->causal && memory == nodes[in[0]].of_memory;
    TB_TRY(mha_own_mask(b, e, &in[3]));
    if (!b->eval)
        TB_TRY(tb_build_keep(b, memory, &in[3]));
    *nin = in[3] < 0 ? 3 : 4;
    return TB_OK;
}

static tb_status call_mha(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const tb_settings *s = &b->sizes->s;
    const tb_expr *scale = option(e, "scale");
    int in[4], nin = 3, node;
    tb_attr attr[TB_OP_ATTRS] = {{0}};
    attr[TB_ATTR_ATTN_HEADS].value = (double)s->heads;
    attr[TB_ATTR_ATTN_KV_HEADS].value = (double)s->kv_heads;
    attr[TB_ATTR_ATTN_DROP].value = s->dropout;
    for (int i = 0; i < 3; i++)
        TB_TRY(tb_build_value(b, e->args[i].value, &in[i]));
    TB_TRY(mha_mask(b, e, in, &nin, &attr[TB_ATTR_ATTN_CAUSAL]));
    if (scale)
        TB_TRY(const_attr(b, scale, "scale", &attr[TB_ATTR_ATTN_SCALE]));
    if (scale && !(attr[TB_ATTR_ATTN_SCALE].value > 0))
        return tb_build_fail(b, scale->pos, "scale: got %g, wanted more than 0",
                             attr[TB_ATTR_ATTN_SCALE].value);
    TB_TRY(tb_build_node(b, &tb_op_mha, in, nin, attr, e->pos, &node));
    return node_value(out, node);
}

/* Heads are as wide as in mha, however many the stream has. */
static tb_status call_rope(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const tb_expr *base = option(e, "base");
    size_t head = b->sizes->s.width / b->sizes->s.heads, width;
    tb_attr attr[TB_OP_ATTRS] = {{0}};
    int x, node;
    TB_TRY(tb_build_value(b, e->args[0].value, &x));
    width = b->g->nodes[x].shape.width;
    if (width % head)
        return tb_build_fail(b, e->pos,
                             "rope: %zu features are no whole number of heads "
                             "of %zu",
                             width, head);
    attr[TB_ATTR_ROPE_HEADS].value = (double)(width / head);
    attr[TB_ATTR_ROPE_BASE].value = b->sizes->rope_base;
    if (base)
        TB_TRY(const_attr(b, base, "base", &attr[TB_ATTR_ROPE_BASE]));
    if (base && !(attr[TB_ATTR_ROPE_BASE].value > 0))
        return tb_build_fail(b, base->pos, "base: got %g, wanted more than 0",
                             attr[TB_ATTR_ROPE_BASE].value);
    TB_TRY(tb_build_node(b, &tb_op_rope, &x, 1, attr, e->pos, &node));
    return node_value(out, node);
}

static tb_status call_concat(tb_builder *b, const tb_expr *e, tb_val *out)
{
    tb_each all;
    size_t groups;
    tb_attr attr[TB_OP_ATTRS] = {{0}};
    TB_TRY(tb_build_spread(b, e, 0, &all));
    if (!all.n)
        return tb_build_fail(b, e->pos, "concat: the list is empty");
    TB_TRY(groups_option(b, e, b->g->nodes[all.nodes[0]].shape.width, &groups));
    attr[TB_ATTR_CONCAT_GROUPS].value = (double)groups;
    while (all.n > 1) { /* by eights, then those */
        int n = 0;
        for (int i = 0; i < all.n; i += TB_OP_INPUTS, n++) {
            int rest = all.n - i;
            TB_TRY(tb_build_node(b, &tb_op_concat, all.nodes + i,
                                 rest < TB_OP_INPUTS ? rest : TB_OP_INPUTS,
                                 attr, e->pos, &all.nodes[n]));
        }
        all.n = n;
    }
    return node_value(out, all.nodes[0]);
}

/* The attribute of row=i, which the text counts from 1. */
static tb_status row_option(tb_builder *b, const tb_expr *e, tb_attr *attr)
{
    static const tb_expr one = {
        .kind = TB_EXPR_NUMBER, .number = 1, .depth = 1};
    const tb_expr *row = option(e, "row");
    tb_val v[2] = {{.kind = TB_VAL_CONST}, {.expr = &one, .size = 1}}, from_0;
    *attr = (tb_attr){NULL, 0, NULL};
    if (!row)
        return TB_OK;
    const tb_expr less = {
        .kind = TB_EXPR_BINARY, .pos = row->pos, .op = '-', .nargs = 2};
    TB_TRY(const_value(b, row, "row", &v[0]));
    TB_TRY(tb_build_const(b, &less, v, &from_0));
    *attr = (tb_attr){from_0.expr, 0, NULL};
    return tb_build_fold(b, from_0.expr, &attr->value);
}

/* The streams `from` on, as many as one op takes, mixed and added to *sum
 * (-1: there is none yet). The op has its weights last. */
static tb_status mix_piece(tb_builder *b, const tb_expr *e, const tb_each *all,
                           int from, int w, tb_attr attr[TB_OP_ATTRS], int *sum)
{
    enum { MOST = TB_OP_INPUTS - 1 };
    int in[TB_OP_INPUTS], n = all->n - from < MOST ? all->n - from : MOST, node;
    if (all->n > MOST) {
        attr[TB_ATTR_MIX_FIRST].value = from;
        attr[TB_ATTR_MIX_OF].value = all->n;
    }
    memcpy(in, all->nodes + from, (size_t)n * sizeof *in);
    in[n] = w;
    TB_TRY(tb_build_node(b, &tb_op_mix, in, n + 1, attr, e->pos, &node));
    if (*sum >= 0) {
        int pair[2] = {*sum, node};
        TB_TRY(tb_build_node(b, &tb_op_add, pair, 2, NULL, e->pos, &node));
    }
    *sum = node;
    return TB_OK;
}

/* mix(w, x1, ..., xn), mix(w, list) */
static tb_status call_mix(tb_builder *b, const tb_expr *e, tb_val *out)
{
    int w, sum = -1;
    tb_attr attr[TB_OP_ATTRS] = {{0}};
    tb_each all;
    TB_TRY(tb_build_value(b, e->args[0].value, &w));
    TB_TRY(tb_build_spread(b, e, 1, &all));
    if (!all.n)
        return tb_build_fail(b, e->pos, "mix: the list is empty");
    TB_TRY(row_option(b, e, &attr[TB_ATTR_MIX_ROW]));
    for (int i = 0; i < all.n; i += TB_OP_INPUTS - 1)
        TB_TRY(mix_piece(b, e, &all, i, w, attr, &sum));
    return node_value(out, sum);
}

/* One op of two inputs. */
static tb_status call_pair(tb_builder *b, const tb_expr *e, tb_val *out)
{
    tb_val v[2];
    for (int i = 0; i < 2; i++)
        TB_TRY(tb_build_expr(b, e->args[i].value, &v[i]));
    return tb_build_pairs(b, tb_op_find(e->name), e, v, out);
}

/* --- ops whose options are their attributes ------------------------------ */

/* What stands for an option that a call leaves out, where that is not 0. */
static double usual(const tb_op *op, int attr)
{
    if (op == &tb_op_sinkhorn && attr == TB_ATTR_SINKHORN_ROUNDS)
        return 20;
    return op == &tb_op_maxdiv && attr == TB_ATTR_MAXDIV_TO ? 8 : 0;
}

/* The first attribute is a number, the second true or false. */
static tb_status own_options(tb_builder *b, const tb_expr *e, const tb_op *op,
                             tb_attr attr[TB_OP_ATTRS])
{
    const tb_expr *number = option(e, op->attr_name[0]);
    int flag;
    attr[0].value = usual(op, 0);
    if (number)
        TB_TRY(const_attr(b, number, op->attr_name[0], &attr[0]));
    TB_TRY(flag_option(b, e, op->attr_name[1], 0, &flag));
    attr[1].value = flag;
    return TB_OK;
}

/* Sinkhorn, unit; maxdiv takes its maximum over a copy that is held constant,
 * as stop(...) is. */
static tb_status call_options(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const tb_op *op = tb_op_find(e->name);
    tb_attr attr[TB_OP_ATTRS] = {{0}};
    int in[2], node, nin = 1;
    TB_TRY(tb_build_value(b, e->args[0].value, &in[0]));
    TB_TRY(own_options(b, e, op, attr));
    if (op == &tb_op_maxdiv) {
        TB_TRY(tb_build_node(b, &tb_op_stop, in, 1, NULL, e->pos, &in[1]));
        nin = 2;
    }
    TB_TRY(tb_build_node(b, op, in, nin, attr, e->pos, &node));
    return node_value(out, node);
}

/* --- element-wise -------------------------------------------------------- */

/* drop: elements at a rate; drop_branch: all of a sequence. */
static tb_status call_drop(tb_builder *b, const tb_expr *e, tb_val *out)
{
    int x, node;
    const tb_op *op = tb_streq(e->name, "drop") ? &tb_op_drop : &tb_op_skipdrop;
    tb_attr p = {NULL, b->sizes->s.dropout, NULL};
    TB_TRY(tb_build_value(b, e->args[0].value, &x));
    if (e->nargs > 1) {
        TB_TRY(const_attr(b, e->args[1].value, e->name, &p));
        if (!(p.value >= 0 && p.value < 1))
            return tb_build_fail(b, e->args[1].value->pos,
                                 "%s: got rate %g, wanted 0 <= p < 1", e->name,
                                 p.value);
    }
    TB_TRY(drop_node(b, op, x, p, e->pos, &node));
    return node_value(out, node);
}

/* One op of one input. */
static tb_status call_op(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const tb_op *op = tb_op_find(e->name);
    tb_each each;
    if (!op)
        return not_yet(b, e);
    TB_TRY(tb_build_each(b, e->args[0].value, &each));
    for (int i = 0; i < each.n; i++)
        TB_TRY(tb_build_node(b, op, &each.nodes[i], 1, NULL, e->pos,
                             &each.nodes[i]));
    return tb_build_each_value(b, &each, out);
}

static tb_status call_const(tb_builder *b, const tb_expr *e, tb_val *out)
{
    tb_val *v = tb_arena_alloc(b->arena, (size_t)e->nargs * sizeof *v);
    if (!v)
        return TB_ERR_MEMORY;
    for (int i = 0; i < e->nargs; i++)
        TB_TRY(const_value(b, e->args[i].value, e->name, &v[i]));
    return tb_build_const(b, e, v, out);
}

/* exp and abs of a constant are one, of a stream an op. */
static tb_status call_either(tb_builder *b, const tb_expr *e, tb_val *out)
{
    tb_val v;
    tb_each each;
    TB_TRY(tb_build_expr(b, e->args[0].value, &v));
    if (v.kind == TB_VAL_CONST)
        return tb_build_const(b, e, &v, out);
    TB_TRY(tb_build_each_of(b, e->pos, &v, &each));
    for (int i = 0; i < each.n; i++)
        TB_TRY(tb_build_node(b, tb_op_find(e->name), &each.nodes[i], 1, NULL,
                             e->pos, &each.nodes[i]));
    return tb_build_each_value(b, &each, out);
}

/* --- declarations -------------------------------------------------------- */

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
        TB_TRY(const_value(b, value, e->name, &v));
        *start = v.expr;
        return TB_OK;
    }
    if (value->nargs < rule->least || value->nargs > rule->most)
        return tb_build_fail(b, value->pos, "%s: got %d arguments, wanted %d",
                             rule->name, value->nargs, rule->most);
    for (int i = 0; i < value->nargs; i++)
        TB_TRY(const_value(b, value->args[i].value, rule->name, &arg[i]));
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
        TB_TRY(const_value(b, e, "size", &v));
        TB_TRY(tb_build_width(b, v.expr, size, dim));
    }
    if (b->eval)
        *dim = (tb_dim){0, (double)*size};
    return TB_OK;
}

/* scalar(v), vector(v) or matrix(rows, columns, v) named `base`. */
static tb_status learned(tb_builder *b, const tb_expr *e, const char *base,
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
        TB_TRY(size_of(b, option(e, "size"), &shape.width, &dim));
    }
    TB_TRY(start_value(b, e, e->args[matrix ? 2 : 0].value, &start));
    TB_TRY(tb_build_param(b, base, "", role, shape, dim, start, e->pos, node));
    b->g->nodes[*node].k = b->k;
    return TB_OK;
}

static tb_status call_learned(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const char *slot;
    int node;
    TB_TRY(tb_build_slot(b, e->name, &slot));
    TB_TRY(learned(b, e, slot, &node));
    return node_value(out, node);
}

static tb_status call_linear(tb_builder *b, const tb_expr *e, tb_val *out)
{
    (void)out;
    return tb_build_fail(b, e->pos,
                         "linear: give it a name first: w = linear(d, d), "
                         "then w(x)");
}

static tb_status declare_linear(tb_builder *b, const char *name,
                                const tb_expr *e, tb_lin *lin)
{
    size_t w[2];
    tb_dim dim[2];
    int bias;
    for (int i = 0; i < 2; i++) {
        tb_val v;
        TB_TRY(const_value(b, e->args[i].value, "linear", &v));
        TB_TRY(tb_build_width(b, v.expr, &w[i], &dim[i]));
    }
    TB_TRY(flag_option(b, e, "bias", -1, &bias));
    return tb_build_linear(b, name, w[0], w[1], dim[1], bias, e->pos, lin);
}

/* project(e, n): a linear of its own wherever it stands. */
static tb_status call_project(tb_builder *b, const tb_expr *e, tb_val *out)
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
    TB_TRY(const_value(b, e->args[1].value, "project", &v));
    TB_TRY(tb_build_width(b, v.expr, &width, &dim));
    TB_TRY(flag_option(b, e, "bias", -1, &bias));
    TB_TRY(tb_build_slot(b, e->name, &slot));
    TB_TRY(tb_build_linear(b, slot, b->g->nodes[x].shape.width, width, dim,
                           bias, e->pos, &lin));
    TB_TRY(tb_build_apply(b, lin, x, e->name, e->pos, &node));
    return node_value(out, node);
}

bool tb_declares(const tb_expr *e)
{
    return e->kind == TB_EXPR_CALL &&
           tb_callable_find(e->name) == TB_CALLABLE_LEARNED;
}

/* --- the tables ---------------------------------------------------------- */

static const call_row by_kind[] = {
    [TB_CALLABLE_NONE] = {NULL, NULL, 0, 0, ""},
    [TB_CALLABLE_SUBLAYER] = {NULL, call_sublayer, 1, 1, ""},
    [TB_CALLABLE_NORM] = {NULL, call_norm, 1, 1,
                          "eps eps_mode variance unbiased groups gain bias"},
    [TB_CALLABLE_ELEMENT] = {NULL, call_op, 1, 1, ""},
    [TB_CALLABLE_STREAM] = {NULL, call_op, 1, 1, ""},
    [TB_CALLABLE_LEARNED] = {NULL, call_learned, 1, 1, ""},
    [TB_CALLABLE_WEIGHT] = {NULL, call_weight, 1, 1, ""},
    [TB_CALLABLE_CONSTANT] = {NULL, call_const, 1, 1, ""},
};

/* Names that are called otherwise than their kind. */
static const call_row by_name[] = {
    {"drop", call_drop, 1, 2, ""},
    {"drop_branch", call_drop, 2, 2, ""},
    {"exp", call_either, 1, 1, ""},
    {"abs", call_either, 1, 1, ""},
    {"concat", call_concat, 1, 0, "groups"},
    {"sum", tb_call_total, 1, 1, ""},
    {"mean", tb_call_total, 1, 1, ""},
    {"list", tb_call_list, 0, 0, ""},
    {"append", tb_call_append, 2, 0, ""},
    {"item", tb_call_item, 2, 2, ""},
    {"size", tb_call_size, 1, 1, ""},
    {"batchnorm", call_norm, 1, 1, "eps eps_mode momentum keep"},
    {"powernorm", call_norm, 1, 1,
     "eps eps_mode momentum back_momentum warmup keep"},
    {"rope", call_rope, 1, 1, "base"},
    {"mha", call_mha, 3, 3, "scale keep hide"},
    {"mix", call_mix, 2, 0, "row"},
    {"dot", call_pair, 2, 2, ""},
    {"headscale", call_pair, 2, 2, ""},
    {"shift", call_pair, 2, 2, ""},
    {"sinkhorn", call_options, 1, 1, "rounds columns_first"},
    {"unit", call_options, 1, 1, "eps columns"},
    {"maxdiv", call_options, 1, 1, "to whole"},
    {"vector", call_learned, 1, 1, "size"},
    {"matrix", call_learned, 3, 3, ""},
    {"linear", call_linear, 2, 2, "bias"},
    {"project", call_project, 2, 2, "bias"},
    {"min", call_const, 2, 0, ""},
    {"max", call_const, 2, 0, ""},
};

static const call_row *find_call(const char *name)
{
    for (size_t i = 0; i < TB_LEN(by_name); i++)
        if (tb_streq(by_name[i].name, name))
            return &by_name[i];
    const call_row *row = &by_kind[tb_callable_find(name)];
    return row->build ? row : NULL;
}

static tb_status wrong_count(tb_builder *b, const tb_expr *e, int got, int min,
                             int max)
{
    char wanted[48];
    if (min == max)
        tb_format(wanted, sizeof wanted, "%d", min);
    else if (max)
        tb_format(wanted, sizeof wanted, "%d to %d", min, max);
    else
        tb_format(wanted, sizeof wanted, "%d or more", min);
    return tb_build_fail(b, e->pos, "%s: got %d argument%s, wanted %s", e->name,
                         got, got == 1 ? "" : "s", wanted);
}

static tb_status check_args(tb_builder *b, const tb_expr *e, int min, int max,
                            const char *keys)
{
    int plain = 0;
    for (int i = 0; i < e->nargs; i++) {
        const tb_arg *a = &e->args[i];
        if (a->key && !has_word(keys, a->key))
            return tb_build_fail(b, a->key_pos, "%s: unknown option %s%s%s",
                                 e->name, a->key, *keys ? ", wanted " : "",
                                 keys);
        plain += !a->key;
    }
    if (plain < min || (max && plain > max))
        return wrong_count(b, e, plain, min, max);
    return TB_OK;
}

/* Ruling 2: a named declaration is made once per block. In the stem and the
 * tail, which share the model's top level, its name says which. */
tb_status tb_build_declare(tb_builder *b, const char *name, const tb_expr *e)
{
    bool linear = tb_streq(e->name, "linear");
    const char *base =
        b->place ? tb_arena_printf(b->arena, "%s.%s", b->place, name) : name;
    const call_row *row = find_call(e->name);
    tb_binding *bind;
    TB_TRY(check_args(b, e, row->min, row->max, row->keys));
    TB_TRY(tb_scope_put(b, name, &bind));
    if (!base)
        return TB_ERR_MEMORY;
    if (bind->declared && bind->declared != e)
        return tb_build_fail(b, e->pos, "%s is declared twice", name);
    if (!bind->declared) {
        tb_lin lin = {-1, -1};
        int node = -1;
        if (linear)
            TB_TRY(declare_linear(b, base, e, &lin));
        else
            TB_TRY(learned(b, e, base, &node));
        if (!linear)
            b->g->nodes[node].name = name;
        bind->lin = lin;
        bind->learned = (tb_val){.kind = TB_VAL_NODE, .node = node};
    }
    bind->declared = e;
    bind->val = bind->learned;
    bind->is_value = !linear;
    bind->is_linear = linear;
    return TB_OK;
}

static tb_status def_args(tb_builder *b, const tb_expr *e, const tb_def *def,
                          tb_val **vals)
{
    TB_TRY(check_args(b, e, 0, 0, ""));
    if (e->nargs != def->nparams)
        return wrong_count(b, e, e->nargs, def->nparams, def->nparams);
    *vals = tb_arena_alloc(b->arena, (size_t)e->nargs * sizeof **vals + 1);
    if (!*vals)
        return TB_ERR_MEMORY;
    for (int i = 0; i < e->nargs; i++)
        TB_TRY(tb_build_expr(b, e->args[i].value, &(*vals)[i]));
    return TB_OK;
}

static tb_status call_def(tb_builder *b, const tb_expr *e, const tb_def *def,
                          tb_val *out)
{
    tb_val *vals;
    TB_TRY(def_args(b, e, def, &vals));
    return expand(b, e, def, vals, out);
}

tb_status tb_build_tuple_args(tb_builder *b, const tb_expr **e,
                              struct tb_args *args)
{
    tb_val *vals;
    if ((*e)->kind != TB_EXPR_CALL)
        return TB_OK;
    const tb_def *def = tb_def_find(b->block, (*e)->name);
    if (!def || def->body->kind != TB_EXPR_TUPLE)
        return TB_OK;
    TB_TRY(def_args(b, *e, def, &vals));
    *args = (struct tb_args){def, vals, b->args};
    *e = def->body;
    return TB_OK;
}

static tb_status call_named_linear(tb_builder *b, const tb_expr *e, tb_lin lin,
                                   tb_val *out)
{
    tb_each each;
    TB_TRY(check_args(b, e, 1, 1, ""));
    TB_TRY(tb_build_each(b, e->args[0].value, &each));
    for (int i = 0; i < each.n; i++)
        TB_TRY(tb_build_apply(b, lin, each.nodes[i], e->name, e->pos,
                              &each.nodes[i]));
    return tb_build_each_value(b, &each, out);
}

static tb_status unknown_call(tb_builder *b, const tb_expr *e)
{
    size_t n = (size_t)b->block->ndefs;
    const char **own = tb_arena_alloc(b->arena, (n + 1) * sizeof *own);
    if (!own)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        own[i] = b->block->defs[i].name;
    const char *near = tb_callable_near(e->name, own, n);
    return tb_build_fail(b, e->pos, "unknown function %s%s%s%s", e->name,
                         near ? "; did you mean " : "", near ? near : "",
                         near ? "?" : "");
}

/* Attn, cross and ffn are called as sublayers also where a text defines them;
 * no other built-in name can be defined. */
tb_status tb_build_call(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const call_row *row = find_call(e->name);
    if (row) {
        TB_TRY(check_args(b, e, row->min, row->max, row->keys));
        return row->build(b, e, out);
    }
    const tb_def *def = tb_def_find(b->block, e->name);
    if (def)
        return call_def(b, e, def, out);
    tb_binding *bind = tb_scope_find(&b->scope, e->name);
    if (bind && bind->is_linear)
        return call_named_linear(b, e, bind->lin, out);
    if (bind && bind->is_value)
        return tb_build_fail(b, e->pos,
                             "%s is a value, not a function: write %s * (...)",
                             e->name, e->name);
    return unknown_call(b, e);
}
