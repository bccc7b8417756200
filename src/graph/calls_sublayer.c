/* SPDX-License-Identifier: MIT */
/* Sublayers, which are regions of the graph, and the weights inside them. */
#include "graph/calls.h"

/* --- sublayers ----------------------------------------------------------- */

const tb_def *tb_def_find(const tb_block *block, const char *name)
{
    for (int i = 0; i < block->ndefs; i++)
        if (tb_streq(block->defs[i].name, name))
            return &block->defs[i];
    return NULL;
}

tb_status tb_call_expand(tb_builder *b, const tb_expr *e, const tb_def *def,
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

tb_status tb_call_drop_node(tb_builder *b, const tb_op *op, int x, tb_attr p,
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
    TB_TRY(tb_call_expand(b, e, def, &arg, &v));
    if (v.kind != TB_VAL_NODE)
        return tb_build_fail(
            b, def->pos, "%s: its value is a %s, wanted a stream", def->name,
            v.kind == TB_VAL_LIST ? "list" : "constant");
    TB_TRY(tb_call_drop_node(b, &tb_op_drop, v.node, p, e->pos, &y));
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
    if (tb_streq(name, "cross") && b->stack != TB_STACK_CROSS && !b->eval)
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
    return tb_call_node(out, node);
}

tb_status tb_call_sublayer(tb_builder *b, const tb_expr *e, tb_val *out)
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

tb_status tb_call_weight(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const weight_row *w = weights;
    const tb_region *r = b->region < 0 ? NULL : &b->g->regions[b->region];
    int x, node;
    size_t width;
    tb_dim dim;
    while (!tb_streq(w->name, e->name))
        w++;
    int home = (int)strcspn(w->regions, " ");
    if (!r || !tb_call_has_word(w->regions, r->name))
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
    return tb_call_node(out, node);
}
