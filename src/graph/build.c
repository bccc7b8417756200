/* SPDX-License-Identifier: MIT */
/* Names in scope, nodes, parameters: what expressions and statements are made
 * of. Values are immutable, so `r = x; x = norm(x)` leaves r alone (C026). */
#include "graph/build.h"

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

static tb_dim joined_dim(const tb_builder *b, const int *in, int nin)
{
    tb_dim dim = {0, 0};
    for (int i = 0; i < nin; i++) {
        dim.per_d += b->g->nodes[in[i]].dim.per_d;
        dim.fixed += b->g->nodes[in[i]].dim.fixed;
    }
    return dim;
}

static tb_dim dim_of_result(const tb_builder *b, const tb_op *op, const int *in,
                            int nin, tb_shape shape)
{
    if (op == &tb_op_linear && nin > 1)
        return b->g->nodes[in[1]].dim; /* a weight's dim is its out width */
    if (op == &tb_op_dot || op == &tb_op_sum || op == &tb_op_mean)
        return (tb_dim){0, 1};
    if (op == &tb_op_concat)
        return joined_dim(b, in, nin);
    if (op == &tb_op_mha) { /* as wide as v, times what heads share it */
        const tb_node *v = &b->g->nodes[in[2]];
        double share = (double)shape.width / (double)v->shape.width;
        return (tb_dim){v->dim.per_d * share, v->dim.fixed * share};
    }
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

/* Inputs that meet element by element. */
static int meeting(const tb_op *op, int nin)
{
    static const tb_op *const pairs[] = {&tb_op_add, &tb_op_sub, &tb_op_mul,
                                         &tb_op_div, &tb_op_dot};
    for (size_t i = 0; i < TB_LEN(pairs); i++)
        if (op == pairs[i])
            return 2;
    return op == &tb_op_mix ? nin - 1 : 0; /* not the weights */
}

/* Two streams meet element by element only if their widths are the same
 * expression in d, not just the same number today. */
static tb_status check_pair(tb_builder *b, int left, int right, tb_pos pos)
{
    const tb_node *l = &b->g->nodes[left], *r = &b->g->nodes[right];
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

static tb_status check_dims(tb_builder *b, const tb_op *op, const int *in,
                            int nin, tb_pos pos)
{
    for (int i = 1; i < meeting(op, nin); i++)
        TB_TRY(check_pair(b, in[0], in[i], pos));
    return TB_OK;
}

/* Whose tokens the result's rows are. Only attention reads rows of both. */
static tb_status check_rows(tb_builder *b, const tb_op *op, const int *in,
                            int nin, tb_pos pos, bool *of_memory)
{
    bool any = false;
    for (int i = 0; i < nin; i++) {
        const tb_node *n = &b->g->nodes[in[i]];
        if (n->shape.kind != TB_SHAPE_STREAM)
            continue;
        if (any && n->of_memory != *of_memory && op != &tb_op_mha)
            return tb_build_fail(
                b, pos,
                "%s: the rows of memory are other tokens; only "
                "mha brings them together",
                op->name);
        *of_memory = any ? *of_memory : n->of_memory;
        any = true;
    }
    return TB_OK;
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
    for (int i = 0; attr && i < op->nattr + op->noption; i++) {
        n.attr[i] = attr[i];
        attrs[i] = attr[i].value;
    }
    TB_TRY(check_dims(b, op, in, nin, pos));
    TB_TRY(check_rows(b, op, in, nin, pos, &n.of_memory));
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
    g->params[g->nparams++] =
        (tb_param){name, role, shape, start, pos, *out, false};
    return TB_OK;
}

tb_status tb_build_keep(tb_builder *b, bool of_memory, int *node)
{
    int *known = &b->keep[of_memory];
    const char *name = of_memory ? "memory.keep" : "x.keep";
    if (b->sizes->s.padding && *known < 0) {
        TB_TRY(tb_build_leaf(b, &tb_op_input, name,
                             (tb_shape){TB_SHAPE_STREAM, 1, 1}, (tb_dim){0, 1},
                             known));
        b->g->nodes[*known].of_memory = of_memory;
    }
    *node = *known;
    return TB_OK;
}

tb_status tb_build_no_encoder(tb_builder *b, tb_pos pos, const char *what)
{
    if (b->stack == TB_STACK_CROSS)
        return tb_build_fail(b, pos, "%s belongs in decoder blocks, not in %s",
                             what, b->place);
    if (b->sizes->s.stack == TB_STACKS_BOTH)
        return tb_build_fail(
            b, pos, "%s: an encoder reads no memory, its output is one", what);
    return tb_build_fail(b, pos, "%s: needs an encoder%s", what,
                         b->eval ? "; give it with --set"
                                 : ": --stack encoder-decoder");
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
