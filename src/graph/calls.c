/* SPDX-License-Identifier: MIT */
/* Functions of the language: one row per name, what it builds. A word of the
 * language that cannot be computed yet has a row too, so that it is refused
 * with the reason instead of as an unknown word. */
#include "graph/build.h"

typedef tb_status (*call_fn)(tb_builder *b, const tb_expr *e, tb_val *out);

typedef struct call_row {
    const char *name;
    call_fn build;
    const tb_op *op;  /* for functions that are one op of one input */
    int min, max;     /* arguments without a key */
    const char *keys; /* options, separated by spaces */
} call_row;

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

static tb_status const_option(tb_builder *b, const tb_expr *e, const char *key,
                              tb_attr *attr, bool *given)
{
    const tb_expr *value = option(e, key);
    tb_val v;
    *given = value != NULL;
    if (!value)
        return TB_OK;
    TB_TRY(tb_build_expr(b, value, &v));
    if (v.kind != TB_VAL_CONST)
        return tb_build_fail(b, value->pos,
                             "%s: got a stream, wanted a "
                             "constant",
                             key);
    *attr = (tb_attr){v.expr, __builtin_nan(""), v.shown};
    return TB_OK;
}

/* --- norms --------------------------------------------------------------- */

static tb_status norm_leaves(tb_builder *b, const tb_expr *e, const tb_op *op,
                             int x, int in[3], int *nin)
{
    bool inside = b->region >= 0;
    const char *base = inside ? "inner_norm" : b->eval ? e->name : "norm";
    const char *slot;
    tb_shape w = {TB_SHAPE_VECTOR, b->g->nodes[x].shape.width, 1};
    tb_dim dim = b->g->nodes[x].dim;
    TB_TRY(tb_build_slot(b, base, &slot));
    in[0] = x;
    *nin = 2;
    TB_TRY(tb_build_param(b, slot, "gain", TB_ROLE_GAIN, w, dim, NULL, e->pos,
                          &in[1]));
    if (op == &tb_op_rmsnorm)
        return TB_OK;
    *nin = 3;
    return tb_build_param(b, slot, "bias", TB_ROLE_BIAS, w, dim, NULL, e->pos,
                          &in[2]);
}

static tb_status norm_eps(tb_builder *b, const tb_expr *e, tb_attr *eps)
{
    bool given;
    double value;
    *eps = (tb_attr){NULL, b->sizes->s.eps, NULL};
    TB_TRY(const_option(b, e, "eps", eps, &given));
    if (!given)
        return TB_OK;
    TB_TRY(tb_build_fold(b, eps->expr, &value));
    if (!(value >= 0))
        return tb_build_fail(b, option(e, "eps")->pos,
                             "eps: got %g, wanted 0 or more", value);
    eps->value = value; /* shape rules look at it before it is folded */
    return TB_OK;
}

static tb_status call_norm(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const char *kind = tb_streq(e->name, "norm") ? b->sizes->s.norm : e->name;
    const tb_op *op = tb_op_norm(kind);
    int x, in[3], nin, node;
    tb_attr eps;
    if (!op)
        return tb_build_fail(b, e->pos, "%s: this norm cannot be computed yet",
                             kind);
    TB_TRY(tb_build_value(b, e->args[0].value, &x));
    if (b->g->nodes[x].shape.kind != TB_SHAPE_STREAM)
        return tb_build_fail(b, e->pos, "%s(...): needs a stream", e->name);
    TB_TRY(norm_eps(b, e, &eps));
    TB_TRY(norm_leaves(b, e, op, x, in, &nin));
    TB_TRY(tb_build_node(b, op, in, nin, &eps, e->pos, &node));
    return node_value(out, node);
}

/* --- sublayers ----------------------------------------------------------- */

static const tb_def *find_def(const tb_block *block, const char *name)
{
    for (int i = 0; i < block->ndefs; i++)
        if (tb_streq(block->defs[i].name, name))
            return &block->defs[i];
    return NULL;
}

static tb_status expand(tb_builder *b, const tb_expr *e, const tb_def *def,
                        const tb_val *vals, tb_val *out)
{
    const tb_args *outer = b->args;
    tb_args mine = {def, vals};
    if (b->depth >= 32)
        return tb_build_fail(b, e->pos, "%s calls itself", def->name);
    b->args = &mine;
    b->depth++;
    tb_status s = tb_build_expr(b, def->body, out);
    b->depth--;
    b->args = outer;
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

static tb_status drop_node(tb_builder *b, int x, tb_attr p, tb_pos pos,
                           int *out)
{
    if (!p.expr && p.value <= 0) {
        *out = x;
        return TB_OK;
    }
    return tb_build_node(b, &tb_op_drop, &x, 1, &p, pos, out);
}

/* The body, dropout at its end (ruling 10), and the node that marks where
 * the branch joins: nothing passes it when branches are cut. */
static tb_status region_body(tb_builder *b, const tb_expr *e, const tb_def *def,
                             int x, int *out)
{
    tb_val arg = {.kind = TB_VAL_NODE, .node = x}, v;
    tb_attr p = {NULL, b->sizes->s.dropout, NULL};
    int y;
    TB_TRY(expand(b, e, def, &arg, &v));
    if (v.kind == TB_VAL_CONST)
        return tb_build_fail(b, def->pos,
                             "%s: its value is a constant, "
                             "wanted a stream",
                             def->name);
    TB_TRY(drop_node(b, v.node, p, e->pos, &y));
    return tb_build_node(b, &tb_op_branch, &y, 1, NULL, e->pos, out);
}

static tb_status call_sublayer_as(tb_builder *b, const tb_expr *e,
                                  const char *name, tb_val *out)
{
    const tb_def *def = find_def(b->block, name);
    const tb_block *outer = b->block;
    bool had_pos = b->has_pos, was_f = b->sub_is_f;
    tb_pos pos = b->pos;
    int x, node, region;
    if (b->place)
        return tb_build_fail(b, e->pos,
                             "%s belongs in the block section, "
                             "not in %s",
                             e->name, b->place);
    if (b->region >= 0)
        return tb_build_fail(b, e->pos, "%s inside %s: sublayers do not nest",
                             e->name, b->g->regions[b->region].name);
    TB_TRY(tb_build_value(b, e->args[0].value, &x));
    TB_TRY(region_open(b, e, name, x));
    region = b->region;
    const char *owner = b->owner, *sub = b->sub;
    b->owner = name;
    if (!def) { /* errors inside the prelude show the call */
        def = find_def(b->prelude, name);
        b->has_pos = true;
        b->pos = e->pos;
    }
    tb_status s = region_body(b, e, def, x, &node);
    b->owner = owner;
    b->sub = sub;
    b->sub_is_f = was_f;
    b->region = -1;
    b->has_pos = had_pos;
    b->pos = pos;
    b->block = outer;
    TB_TRY(s);
    b->g->regions[region].out = node;
    b->g->regions[region].last = node;
    b->g->nodes[node].region = region;
    return node_value(out, node);
}

static tb_status call_sublayer(tb_builder *b, const tb_expr *e, tb_val *out)
{
    if (tb_streq(e->name, "cross"))
        return tb_build_fail(b, e->pos,
                             "cross: needs an encoder; encoder-decoder stacks "
                             "cannot be built yet");
    return call_sublayer_as(b, e, e->name, out);
}

static tb_status call_f(tb_builder *b, const tb_expr *e, tb_val *out)
{
    if (!b->sub)
        return tb_build_fail(b, e->pos,
                             "F belongs in the block section; here name the "
                             "sublayer: attn or ffn");
    return call_sublayer_as(b, e, b->sub, out);
}

/* --- weights inside sublayers ------------------------------------------- */

typedef struct weight_row {
    const char *name, *region;
    int out; /* 0: d, 1: kv width, 2: ffn width */
} weight_row;

static const weight_row weights[] = {
    {"q", "attn", 0}, {"k", "attn", 1},   {"v", "attn", 1},  {"o", "attn", 0},
    {"up", "ffn", 2}, {"gate", "ffn", 2}, {"down", "ffn", 0}};

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
    if (!r || !tb_streq(r->name, w->region))
        return tb_build_fail(b, e->pos,
                             "%s(...) is a weight of %s: it belongs inside "
                             "%s(x) = ...",
                             e->name, w->region, w->region);
    TB_TRY(tb_build_value(b, e->args[0].value, &x));
    const char *base = tb_arena_printf(b->arena, "%s.%s", r->name, e->name);
    tb_binding *bind;
    if (!base)
        return TB_ERR_MEMORY;
    TB_TRY(tb_scope_put(b, base, &bind)); /* no name has a dot: no clash */
    if (!bind->is_linear) {
        tb_lin lin;
        weight_width(b, w, &width, &dim);
        TB_TRY(tb_build_linear(b, base, b->g->nodes[x].shape.width,
                               b->g->nodes[x].dim, width, dim, -1, e->pos,
                               &lin));
        bind->lin = lin;
        bind->is_linear = bind->declared = true;
    }
    TB_TRY(tb_build_apply(b, bind->lin, x, e->name, e->pos, &node));
    return node_value(out, node);
}

static tb_status call_mha(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const tb_settings *s = &b->sizes->s;
    int in[3], node;
    tb_attr attr[TB_OP_ATTRS] = {{0}};
    attr[TB_ATTR_ATTN_HEADS].value = (double)s->heads;
    attr[TB_ATTR_ATTN_KV_HEADS].value = (double)s->kv_heads;
    attr[TB_ATTR_ATTN_CAUSAL].value = b->causal;
    attr[TB_ATTR_ATTN_DROP].value = s->dropout;
    for (int i = 0; i < 3; i++)
        TB_TRY(tb_build_value(b, e->args[i].value, &in[i]));
    TB_TRY(tb_build_node(b, &tb_op_mha, in, 3, attr, e->pos, &node));
    return node_value(out, node);
}

/* --- element-wise -------------------------------------------------------- */

static tb_status call_drop(tb_builder *b, const tb_expr *e, tb_val *out)
{
    int x, node;
    double value;
    tb_attr p = {NULL, b->sizes->s.dropout, NULL};
    TB_TRY(tb_build_value(b, e->args[0].value, &x));
    if (e->nargs > 1) {
        tb_val v;
        TB_TRY(tb_build_expr(b, e->args[1].value, &v));
        if (v.kind != TB_VAL_CONST)
            return tb_build_fail(b, e->args[1].value->pos,
                                 "drop: its rate must be a constant");
        TB_TRY(tb_build_fold(b, v.expr, &value));
        if (!(value >= 0 && value < 1))
            return tb_build_fail(b, e->args[1].value->pos,
                                 "drop: got rate %g, wanted 0 <= p < 1", value);
        p = value == 0 ? (tb_attr){NULL, 0, NULL}
                       : (tb_attr){v.expr, value, v.shown};
    }
    TB_TRY(drop_node(b, x, p, e->pos, &node));
    return node_value(out, node);
}

static tb_status not_yet(tb_builder *b, const tb_expr *e, tb_val *out)
{
    (void)out;
    return tb_build_fail(b, e->pos, "%s: cannot be computed yet", e->name);
}

static tb_status call_const(tb_builder *b, const tb_expr *e, tb_val *out)
{
    tb_val v[2];
    tb_expr *copy = TB_NEW(b->arena, tb_expr);
    tb_arg *args = tb_arena_alloc(b->arena, 2 * sizeof *args);
    if (!copy || !args)
        return TB_ERR_MEMORY;
    *copy = *e;
    copy->args = args;
    for (int i = 0; i < e->nargs; i++) {
        TB_TRY(tb_build_expr(b, e->args[i].value, &v[i]));
        if (v[i].kind != TB_VAL_CONST)
            return tb_build_fail(b, e->args[i].value->pos,
                                 "%s: works on constants only", e->name);
        args[i] = e->args[i];
        args[i].value = v[i].expr;
    }
    *out = (tb_val){TB_VAL_CONST, copy, NULL, -1};
    return TB_OK;
}

/* --- declarations -------------------------------------------------------- */

static tb_status start_value(tb_builder *b, const tb_expr *e,
                             const tb_expr **start)
{
    tb_val v;
    TB_TRY(tb_build_expr(b, e->args[0].value, &v));
    if (v.kind != TB_VAL_CONST)
        return tb_build_fail(b, e->args[0].value->pos,
                             "%s: its start value must be a constant", e->name);
    *start = v.expr;
    return TB_OK;
}

/* scalar(v) or vector(v) named `base`. */
static tb_status learned(tb_builder *b, const tb_expr *e, const char *base,
                         int *node)
{
    bool scalar = tb_streq(e->name, "scalar");
    size_t d = b->sizes->s.width;
    const tb_expr *start = NULL;
    tb_shape shape = {scalar ? TB_SHAPE_SCALAR : TB_SHAPE_VECTOR,
                      scalar ? 1 : d, 1};
    tb_dim dim = {scalar || b->eval ? 0 : 1, scalar ? 1 : 0};
    if (!scalar && b->eval)
        dim.fixed = (double)d;
    TB_TRY(start_value(b, e, &start));
    TB_TRY(tb_build_param(b, base, "", scalar ? TB_ROLE_SCALAR : TB_ROLE_VECTOR,
                          shape, dim, start, e->pos, node));
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

static tb_status bias_option(tb_builder *b, const tb_expr *e, int *bias)
{
    const tb_expr *o = option(e, "bias");
    double v;
    *bias = -1;
    if (!o)
        return TB_OK;
    if (o->kind == TB_EXPR_NAME &&
        (tb_streq(o->name, "true") || tb_streq(o->name, "false"))) {
        *bias = tb_streq(o->name, "true");
        return TB_OK;
    }
    TB_TRY(tb_build_fold(b, o, &v));
    if (v != 0 && v != 1)
        return tb_build_fail(b, o->pos, "bias: got %g, wanted true or false",
                             v);
    *bias = (int)v;
    return TB_OK;
}

static tb_status declare_linear(tb_builder *b, const char *name,
                                const tb_expr *e, tb_lin *lin)
{
    size_t w[2];
    tb_dim dim[2];
    int bias;
    for (int i = 0; i < 2; i++) {
        tb_val v;
        TB_TRY(tb_build_expr(b, e->args[i].value, &v));
        if (v.kind != TB_VAL_CONST)
            return tb_build_fail(b, e->args[i].value->pos,
                                 "linear: a width must be a constant");
        TB_TRY(tb_build_width(b, v.expr, &w[i], &dim[i]));
    }
    TB_TRY(bias_option(b, e, &bias));
    return tb_build_linear(b, name, w[0], dim[0], w[1], dim[1], bias, e->pos,
                           lin);
}

bool tb_declares(const tb_expr *e)
{
    return e->kind == TB_EXPR_CALL &&
           (tb_streq(e->name, "scalar") || tb_streq(e->name, "vector") ||
            tb_streq(e->name, "linear"));
}

static tb_status check_args(tb_builder *b, const tb_expr *e,
                            const call_row *row);
static const call_row *find_call(const char *name);

/* Ruling 2: a named declaration is made once per block. */
tb_status tb_build_declare(tb_builder *b, const char *name, const tb_expr *e)
{
    tb_binding *bind;
    bool linear = tb_streq(e->name, "linear");
    TB_TRY(check_args(b, e, find_call(e->name)));
    TB_TRY(tb_scope_put(b, name, &bind));
    if (bind->declared)
        return TB_OK;
    bind->declared = true;
    bind->is_value = !linear;
    bind->is_linear = linear;
    if (linear) {
        tb_lin lin;
        TB_TRY(declare_linear(b, name, e, &lin));
        tb_scope_find(&b->scope, name)->lin = lin;
        return TB_OK;
    }
    int node;
    TB_TRY(learned(b, e, name, &node));
    b->g->nodes[node].name = name;
    tb_scope_find(&b->scope, name)->val =
        (tb_val){.kind = TB_VAL_NODE, .node = node};
    return TB_OK;
}

/* --- the table ----------------------------------------------------------- */

static tb_status call_op(tb_builder *b, const tb_expr *e, tb_val *out);

static const call_row calls[] = {
    {"F", call_f, NULL, 1, 1, ""},
    {"attn", call_sublayer, NULL, 1, 1, ""},
    {"cross", call_sublayer, NULL, 1, 1, ""},
    {"ffn", call_sublayer, NULL, 1, 1, ""},
    {"norm", call_norm, NULL, 1, 1, "eps"},
    {"layernorm", call_norm, NULL, 1, 1, "eps"},
    {"rmsnorm", call_norm, NULL, 1, 1, "eps"},
    {"scalenorm", not_yet, NULL, 1, 1, "eps"},
    {"l2norm", not_yet, NULL, 1, 1, "eps"},
    {"batchnorm", not_yet, NULL, 1, 1, "eps"},
    {"powernorm", not_yet, NULL, 1, 1, "eps"},
    {"dyt", not_yet, NULL, 1, 1, ""},
    {"derf", not_yet, NULL, 1, 1, ""},
    {"relu", call_op, &tb_op_relu, 1, 1, ""},
    {"gelu", call_op, &tb_op_gelu, 1, 1, ""},
    {"gelu_tanh", call_op, &tb_op_gelu_tanh, 1, 1, ""},
    {"silu", call_op, &tb_op_silu, 1, 1, ""},
    {"sigmoid", call_op, &tb_op_sigmoid, 1, 1, ""},
    {"tanh", call_op, &tb_op_tanh, 1, 1, ""},
    {"softmax", call_op, &tb_op_softmax, 1, 1, ""},
    {"stop", call_op, &tb_op_stop, 1, 1, ""},
    {"drop", call_drop, NULL, 1, 2, ""},
    {"concat", not_yet, NULL, 1, 8, ""},
    {"rope", not_yet, NULL, 1, 1, ""},
    {"mha", call_mha, NULL, 3, 3, ""},
    {"q", call_weight, NULL, 1, 1, ""},
    {"k", call_weight, NULL, 1, 1, ""},
    {"v", call_weight, NULL, 1, 1, ""},
    {"o", call_weight, NULL, 1, 1, ""},
    {"up", call_weight, NULL, 1, 1, ""},
    {"gate", call_weight, NULL, 1, 1, ""},
    {"down", call_weight, NULL, 1, 1, ""},
    {"scalar", call_learned, NULL, 1, 1, ""},
    {"vector", call_learned, NULL, 1, 1, ""},
    {"linear", call_linear, NULL, 2, 2, "bias"},
    {"sqrt", call_const, NULL, 1, 1, ""},
    {"log", call_const, NULL, 1, 1, ""},
    {"exp", call_const, NULL, 1, 1, ""},
    {"abs", call_const, NULL, 1, 1, ""},
    {"floor", call_const, NULL, 1, 1, ""},
    {"min", call_const, NULL, 2, 2, ""},
    {"max", call_const, NULL, 2, 2, ""},
};

static const call_row *find_call(const char *name)
{
    for (size_t i = 0; i < TB_LEN(calls); i++)
        if (tb_streq(calls[i].name, name))
            return &calls[i];
    return NULL;
}

bool tb_callable_known(const tb_builder *b, const char *name)
{
    return find_call(name) || find_def(b->block, name);
}

static tb_status call_op(tb_builder *b, const tb_expr *e, tb_val *out)
{
    int x, node;
    TB_TRY(tb_build_value(b, e->args[0].value, &x));
    TB_TRY(
        tb_build_node(b, find_call(e->name)->op, &x, 1, NULL, e->pos, &node));
    return node_value(out, node);
}

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

static tb_status wrong_count(tb_builder *b, const tb_expr *e, int got, int min,
                             int max)
{
    if (min == max)
        return tb_build_fail(b, e->pos, "%s: got %d argument%s, wanted %d",
                             e->name, got, got == 1 ? "" : "s", min);
    return tb_build_fail(b, e->pos, "%s: got %d argument%s, wanted %d to %d",
                         e->name, got, got == 1 ? "" : "s", min, max);
}

static tb_status check_args(tb_builder *b, const tb_expr *e,
                            const call_row *row)
{
    int plain = 0;
    for (int i = 0; i < e->nargs; i++) {
        const tb_arg *a = &e->args[i];
        if (!a->key) {
            plain++;
            continue;
        }
        if (!has_word(row->keys, a->key))
            return tb_build_fail(b, a->key_pos, "%s: unknown option %s%s%s",
                                 e->name, a->key, *row->keys ? ", wanted " : "",
                                 row->keys);
    }
    if (plain < row->min || plain > row->max)
        return wrong_count(b, e, plain, row->min, row->max);
    return TB_OK;
}

static tb_status call_def(tb_builder *b, const tb_expr *e, const tb_def *def,
                          tb_val *out)
{
    if (e->nargs != def->nparams)
        return wrong_count(b, e, e->nargs, def->nparams, def->nparams);
    tb_val *vals =
        tb_arena_alloc(b->arena, (size_t)e->nargs * sizeof *vals + 1);
    if (!vals)
        return TB_ERR_MEMORY;
    for (int i = 0; i < e->nargs; i++)
        TB_TRY(tb_build_expr(b, e->args[i].value, &vals[i]));
    return expand(b, e, def, vals, out);
}

static tb_status unknown_call(tb_builder *b, const tb_expr *e)
{
    const char *words[TB_LEN(calls) + 32];
    size_t n = 0;
    for (size_t i = 0; i < TB_LEN(calls); i++)
        words[n++] = calls[i].name;
    for (int i = 0; i < b->block->ndefs && n < TB_LEN(words); i++)
        words[n++] = b->block->defs[i].name;
    const char *near = tb_nearest(e->name, words, n);
    if (near)
        return tb_build_fail(b, e->pos,
                             "unknown function %s; did you mean "
                             "%s?",
                             e->name, near);
    return tb_build_fail(b, e->pos, "unknown function %s", e->name);
}

tb_status tb_build_call(tb_builder *b, const tb_expr *e, tb_val *out)
{
    bool sublayer = tb_streq(e->name, "attn") || tb_streq(e->name, "ffn") ||
                    tb_streq(e->name, "cross");
    tb_binding *bind = tb_scope_find(&b->scope, e->name);
    const tb_def *def = sublayer ? NULL : find_def(b->block, e->name);
    if (def)
        return call_def(b, e, def, out);
    if (bind && bind->is_linear) {
        int x, node;
        if (e->nargs != 1)
            return wrong_count(b, e, e->nargs, 1, 1);
        TB_TRY(tb_build_value(b, e->args[0].value, &x));
        TB_TRY(tb_build_apply(b, bind->lin, x, e->name, e->pos, &node));
        return node_value(out, node);
    }
    const call_row *row = find_call(e->name);
    if (row) {
        TB_TRY(check_args(b, e, row));
        return row->build(b, e, out);
    }
    if (bind && bind->is_value)
        return tb_build_fail(b, e->pos,
                             "%s is a value, not a function: write %s * (...)",
                             e->name, e->name);
    return unknown_call(b, e);
}
