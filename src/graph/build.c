/* SPDX-License-Identifier: MIT */
/* Names, statements and arithmetic: text to single-assignment nodes. Values
 * are immutable, so `r = x; x = norm(x)` leaves r alone (cases C026). */
#include "graph/build.h"

#include "equation/names.h"

tb_status tb_build_grow(tb_arena *a, void **items, int count, int *cap,
                        size_t size)
{
    if (count < *cap)
        return TB_OK;
    int bigger = *cap ? *cap * 2 : 16;
    void *p = tb_arena_alloc(a, (size_t)bigger * size);
    if (!p)
        return TB_ERR_MEMORY;
    if (count)
        memcpy(p, *items, (size_t)count * size);
    *items = p;
    *cap = bigger;
    return TB_OK;
}

tb_status tb_build_fail(tb_builder *b, tb_pos pos, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    tb_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    return tb_block_fail(b->ctx, b->block, b->has_pos ? b->pos : pos, "%s",
                         text);
}

/* --- names --------------------------------------------------------------- */

enum { HEADS = 256 };

tb_binding *tb_scope_find(tb_scope *s, const char *name)
{
    if (!s->nheads)
        return NULL;
    uint64_t hash = tb_hash(name, strlen(name));
    for (int i = s->heads[hash % (uint64_t)s->nheads]; i >= 0;
         i = s->items[i].next)
        if (s->items[i].hash == hash && tb_streq(s->items[i].name, name))
            return &s->items[i];
    return NULL;
}

static tb_status scope_heads(tb_builder *b)
{
    tb_scope *s = &b->scope;
    if (s->nheads > s->count)
        return TB_OK;
    int n = s->nheads ? s->nheads * 4 : HEADS;
    int *heads = tb_arena_alloc(b->arena, (size_t)n * sizeof *heads);
    if (!heads)
        return TB_ERR_MEMORY;
    for (int i = 0; i < n; i++)
        heads[i] = -1;
    for (int i = 0; i < s->count; i++) {
        int *head = &heads[s->items[i].hash % (uint64_t)n];
        s->items[i].next = *head;
        *head = i;
    }
    s->heads = heads;
    s->nheads = n;
    return TB_OK;
}

tb_status tb_scope_put(tb_builder *b, const char *name, tb_binding **out)
{
    tb_scope *s = &b->scope;
    *out = tb_scope_find(s, name);
    if (*out)
        return TB_OK;
    TB_TRY(scope_heads(b));
    TB_TRY(TB_GROW(b, s->items, s->count, s->cap, tb_binding));
    uint64_t hash = tb_hash(name, strlen(name));
    int *head = &s->heads[hash % (uint64_t)s->nheads];
    s->items[s->count] =
        (tb_binding){.name = name, .hash = hash, .next = *head};
    *head = s->count;
    *out = &s->items[s->count++];
    return TB_OK;
}

/* --- nodes --------------------------------------------------------------- */

static tb_dim dim_of_result(const tb_builder *b, const tb_op *op, const int *in,
                            int nin, tb_shape shape)
{
    if (op == &tb_op_linear && nin > 1)
        return b->g->nodes[in[1]].dim; /* a weight's dim is its out width */
    for (int i = 0; i < nin; i++)
        if (b->g->nodes[in[i]].shape.kind == shape.kind)
            return b->g->nodes[in[i]].dim;
    return (tb_dim){0, (double)shape.width};
}

static void dim_text(tb_dim d, size_t width, char out[64])
{
    if (d.per_d == 0)
        tb_format(out, 64, "%zu", width);
    else if (d.fixed == 0 && d.per_d == 1)
        tb_format(out, 64, "d = %zu", width);
    else if (d.fixed == 0)
        tb_format(out, 64, "%g*d = %zu", d.per_d, width);
    else
        tb_format(out, 64, "%g*d + %g = %zu", d.per_d, d.fixed, width);
}

/* Two streams meet element by element only if their widths are the same
 * expression in d, not just the same number today. */
static tb_status check_dims(tb_builder *b, const tb_op *op, const int *in,
                            int nin, tb_pos pos)
{
    bool meets = op == &tb_op_add || op == &tb_op_sub || op == &tb_op_mul;
    if (!meets || nin < 2)
        return TB_OK;
    const tb_node *l = &b->g->nodes[in[0]], *r = &b->g->nodes[in[1]];
    if (l->shape.kind != TB_SHAPE_STREAM || r->shape.kind != TB_SHAPE_STREAM)
        return TB_OK;
    bool same = l->dim.per_d == r->dim.per_d && l->dim.fixed == r->dim.fixed;
    if (l->shape.width == r->shape.width && (same || b->eval))
        return TB_OK;
    char lt[64], rt[64];
    dim_text(l->dim, l->shape.width, lt);
    dim_text(r->dim, r->shape.width, rt);
    return tb_build_fail(b, pos, "widths differ: %s and %s", lt, rt);
}

tb_status tb_build_node(tb_builder *b, const tb_op *op, const int *in, int nin,
                        const tb_attr *attr, tb_pos pos, int *out)
{
    tb_graph *g = b->g;
    tb_node n = {.op = op,
                 .nin = nin,
                 .k = b->k,
                 .region = b->region,
                 .param = -1,
                 .pos = b->has_pos ? b->pos : pos};
    tb_shape shapes[TB_OP_INPUTS];
    double attrs[TB_OP_ATTRS] = {0};
    for (int i = 0; i < nin; i++) {
        n.in[i] = in[i];
        shapes[i] = g->nodes[in[i]].shape;
    }
    for (int i = 0; i < op->nattr; i++) {
        n.attr[i] = attr[i];
        attrs[i] = attr[i].value;
    }
    TB_TRY(check_dims(b, op, in, nin, pos));
    const char *why = "shapes do not fit";
    if (!op->shape(shapes, nin, attrs, &n.shape, &why))
        return tb_build_fail(b, pos, "%s: %s", op->name, why);
    n.dim = dim_of_result(b, op, in, nin, n.shape);
    TB_TRY(TB_GROW(b, g->nodes, g->nnodes, b->cap_nodes, tb_node));
    g->nodes[g->nnodes] = n;
    *out = g->nnodes++;
    return TB_OK;
}

tb_status tb_build_leaf(tb_builder *b, const tb_op *op, const char *name,
                        tb_shape shape, tb_dim dim, int *out)
{
    tb_graph *g = b->g;
    TB_TRY(TB_GROW(b, g->nodes, g->nnodes, b->cap_nodes, tb_node));
    g->nodes[g->nnodes] = (tb_node){.op = op,
                                    .shape = shape,
                                    .dim = dim,
                                    .region = -1,
                                    .param = -1,
                                    .name = name};
    *out = g->nnodes++;
    if (op == &tb_op_param)
        return TB_OK;
    TB_TRY(TB_GROW(b, g->inputs, g->ninputs, b->cap_inputs, int));
    g->inputs[g->ninputs++] = *out;
    return TB_OK;
}

tb_status tb_build_param(tb_builder *b, const char *base, const char *suffix,
                         tb_role role, tb_shape shape, tb_dim dim,
                         const tb_expr *start, tb_pos pos, int *out)
{
    tb_graph *g = b->g;
    const char *name =
        *suffix ? tb_arena_printf(b->arena, "%s.%s", base, suffix) : base;
    if (!name)
        return TB_ERR_MEMORY;
    TB_TRY(tb_build_leaf(b, &tb_op_param, name, shape, dim, out));
    TB_TRY(TB_GROW(b, g->params, g->nparams, b->cap_params, tb_param));
    g->nodes[*out].param = g->nparams;
    g->params[g->nparams++] = (tb_param){name, role, shape, start, pos, *out};
    return TB_OK;
}

tb_status tb_build_slot(tb_builder *b, const char *base, const char **out)
{
    const char *full =
        *b->owner ? tb_arena_printf(b->arena, "%s.%s", b->owner, base) : base;
    if (!full)
        return TB_ERR_MEMORY;
    for (int i = 0; i < b->nslots; i++)
        if (tb_streq(b->slots[i].base, full)) {
            *out = tb_arena_printf(b->arena, "%s%d", full, ++b->slots[i].count);
            return *out ? TB_OK : TB_ERR_MEMORY;
        }
    TB_TRY(TB_GROW(b, b->slots, b->nslots, b->cap_slots, tb_slot_count));
    b->slots[b->nslots++] = (tb_slot_count){full, 1};
    *out = full;
    return TB_OK;
}

tb_status tb_build_linear(tb_builder *b, const char *base, size_t in,
                          size_t out_width, tb_dim out_dim, int bias,
                          tb_pos pos, tb_lin *out)
{
    tb_shape w = {TB_SHAPE_MATRIX, in, out_width};
    tb_shape v = {TB_SHAPE_VECTOR, out_width, 1};
    TB_TRY(tb_build_param(b, base, "weight", TB_ROLE_MATRIX, w, out_dim, NULL,
                          pos, &out->weight));
    out->bias = -1;
    if (bias < 0)
        bias = b->sizes->s.bias;
    if (!bias)
        return TB_OK;
    return tb_build_param(b, base, "bias", TB_ROLE_BIAS, v, out_dim, NULL, pos,
                          &out->bias);
}

tb_status tb_build_apply(tb_builder *b, tb_lin lin, int x, const char *name,
                         tb_pos pos, int *out)
{
    const tb_node *xn = &b->g->nodes[x], *w = &b->g->nodes[lin.weight];
    if (xn->shape.kind != TB_SHAPE_STREAM)
        return tb_build_fail(b, pos, "%s(...): needs a stream", name);
    if (xn->shape.width != w->shape.width)
        return tb_build_fail(b, pos, "%s(...): got width %zu, wanted %zu", name,
                             xn->shape.width, w->shape.width);
    int in[3] = {x, lin.weight, lin.bias};
    return tb_build_node(b, &tb_op_linear, in, lin.bias < 0 ? 2 : 3, NULL, pos,
                         out);
}

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
static tb_status mixed_left(tb_builder *b, const tb_expr *e, const tb_val *c,
                            int x, tb_val *out)
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
static tb_status mixed_right(tb_builder *b, const tb_expr *e, int x,
                             const tb_val *c, tb_val *out)
{
    static const tb_expr one = {
        .kind = TB_EXPR_NUMBER, .number = 1, .depth = 1};
    const tb_val number_one = const_val(&one);
    tb_val v;
    switch (e->op) {
    case '*':
    case '+':
        return mixed_left(b, e, c, x, out);
    case '-':
        TB_TRY(const_op(b, e->pos, 0, c, NULL, &v));
        return affine(b, x, attr_number(1), attr_of(&v), e->pos, out);
    default:
        TB_TRY(const_op(b, e->pos, '/', &number_one, c, &v));
        return affine(b, x, attr_of(&v), attr_number(0), e->pos, out);
    }
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
    if (left)
        return mixed_left(b, e, &v[0], v[1].node, out);
    if (right)
        return mixed_right(b, e, v[0].node, &v[1], out);
    int in[2] = {v[0].node, v[1].node};
    *out = (tb_val){.kind = TB_VAL_NODE};
    return tb_build_node(b, binary_op(e->op), in, 2, NULL, e->pos, &out->node);
}

static tb_status negate(tb_builder *b, const tb_expr *e, tb_val *out)
{
    tb_val v;
    TB_TRY(tb_build_expr(b, e->args[0].value, &v));
    if (v.kind == TB_VAL_CONST)
        return tb_build_const(b, e, &v, out);
    return affine(b, v.node, attr_number(-1), attr_number(0), e->pos, out);
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
                             "(..., ...): several values at once cannot be "
                             "computed yet");
    case TB_EXPR_COMPARE:
        break;
    }
    return tb_build_fail(b, e->pos, "a comparison belongs in block[...] only");
}

tb_status tb_build_expr(tb_builder *b, const tb_expr *e, tb_val *out)
{
    if (++b->steps > TB_STEPS_MAX || b->depth >= TB_EXPAND_MAX)
        return tb_build_fail(b, e->pos,
                             "too much to compute: definitions expand to more "
                             "than %s",
                             b->depth >= TB_EXPAND_MAX
                                 ? "2000 operations in one another"
                                 : "a million operations");
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
    *node = v.node;
    return TB_OK;
}

/* Attn, cross and ffn in the order F stands for them. */
static const char *const sublayers[] = {"attn", "cross", "ffn"};

/* Definitions remember their answer, which also ends a recursion. */
static unsigned def_calls(tb_builder *b, const tb_def *def)
{
    unsigned char *known = &b->def_calls[def - b->block->defs];
    if (!(*known & TB_CALLS_KNOWN)) {
        *known = TB_CALLS_KNOWN;
        *known |= (unsigned char)tb_build_calls(b, def->body);
    }
    return *known & ~(unsigned)TB_CALLS_KNOWN;
}

unsigned tb_build_calls(tb_builder *b, const tb_expr *e)
{
    unsigned bits = 0;
    if (b->depth >= TB_EXPAND_MAX)
        return 0; /* building it will fail */
    b->depth++;
    if (e->kind == TB_EXPR_CALL) {
        const tb_def *def = NULL;
        for (size_t i = 0; i < TB_LEN(sublayers); i++)
            if (tb_streq(e->name, sublayers[i]))
                bits = 1u << i;
        if (tb_streq(e->name, "F"))
            bits = TB_CALLS_F;
        if (!bits)
            def = tb_def_find(b->block, e->name);
        if (def)
            bits = def_calls(b, def);
    }
    for (int i = 0; i < e->nargs; i++)
        bits |= tb_build_calls(b, e->args[i].value);
    b->depth--;
    return bits;
}

/* --- statements ---------------------------------------------------------- */

static tb_status assign(tb_builder *b, const tb_stmt *s, const tb_val *v)
{
    tb_binding *bind;
    TB_TRY(tb_scope_put(b, s->name, &bind));
    bind->val = *v;
    bind->is_value = true;
    bind->is_linear = false;
    if (v->kind == TB_VAL_CONST) {
        bind->val.shown = s->name;
        return TB_OK;
    }
    tb_node *n = &b->g->nodes[v->node];
    if (!n->name && n->op != &tb_op_param)
        n->name = s->name;
    return TB_OK;
}

/* The sublayer a statement belongs to names its norms: "attn" for
 * x = x + attn(norm(x)); none where it calls both or neither. */
static const char *stmt_owner(tb_builder *b, const tb_expr *e)
{
    if (b->sub)
        return b->sub;
    if (b->place)
        return b->place;
    unsigned calls = b->eval ? 0 : tb_build_calls(b, e);
    for (size_t i = 0; i < TB_LEN(sublayers); i++)
        if (calls == 1u << i)
            return sublayers[i];
    return "";
}

static tb_status statement(tb_builder *b, const tb_stmt *s)
{
    tb_val v;
    if (s->kind == TB_STMT_ASSIGN && tb_declares(s->value))
        return tb_build_declare(b, s->name, s->value);
    b->owner = stmt_owner(b, s->value);
    if (!b->sub)
        b->k = b->g->nregions + 1;
    TB_TRY(tb_build_expr(b, s->value, &v));
    if (s->kind == TB_STMT_VALUE) {
        if (v.kind == TB_VAL_CONST)
            return tb_build_fail(b, s->pos,
                                 "the value is a constant; "
                                 "nothing depends on an input");
        return tb_build_output(b, "", v.node);
    }
    TB_TRY(assign(b, s, &v));
    if (!b->sub && tb_streq(s->name, "x") && v.kind == TB_VAL_NODE)
        return tb_build_mark(b, v.node);
    return TB_OK;
}

/* Ruling 1: a section with F is repeated once per sublayer; the value of an
 * EXPR, which stands last, is computed once. */
static tb_status repeat(tb_builder *b, const tb_section *s, tb_stack stack)
{
    int n = s->nstmts - (s->stmts[s->nstmts - 1].kind == TB_STMT_VALUE);
    b->sub_is_f = true;
    for (size_t i = 0; i < TB_LEN(sublayers); i++) {
        if (i == 1 && stack != TB_STACK_CROSS)
            continue;
        b->sub = sublayers[i];
        b->k++;
        for (int j = 0; j < n; j++)
            TB_TRY(statement(b, &s->stmts[j]));
        tb_binding *x = tb_scope_find(&b->scope, "x");
        if (x && x->is_value && x->val.kind == TB_VAL_NODE)
            TB_TRY(tb_build_mark(b, x->val.node));
    }
    b->sub = NULL;
    b->sub_is_f = false;
    return n < s->nstmts ? statement(b, &s->stmts[n]) : TB_OK;
}

/* Whether the section calls F, and that it then calls nothing else. */
static tb_status check_mixed(tb_builder *b, const tb_section *s, bool *has_f)
{
    unsigned all = 0;
    for (int i = 0; i < s->nstmts; i++) {
        const tb_stmt *t = &s->stmts[i];
        unsigned calls = tb_build_calls(b, t->value);
        all |= calls;
        for (size_t j = 0; j < TB_LEN(sublayers); j++)
            if ((all & TB_CALLS_F) && (all & 1u << j))
                return tb_build_fail(b, t->pos,
                                     "F and %s in one section: F already "
                                     "stands for every sublayer",
                                     sublayers[j]);
        if (t->kind == TB_STMT_VALUE && (calls & TB_CALLS_F))
            return tb_build_fail(b, t->pos,
                                 "F stands for each sublayer in turn: assign, "
                                 "as in x = x + F(norm(x))");
    }
    *has_f = (all & TB_CALLS_F) != 0;
    return TB_OK;
}

tb_status tb_build_section(tb_builder *b, const tb_section *s, tb_stack stack)
{
    bool has_f = false;
    TB_TRY(check_mixed(b, s, &has_f));
    if (has_f)
        return repeat(b, s, stack);
    for (int i = 0; i < s->nstmts; i++)
        TB_TRY(statement(b, &s->stmts[i]));
    return TB_OK;
}
