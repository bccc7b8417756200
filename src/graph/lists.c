/* SPDX-License-Identifier: MIT */
/* Lists: what earlier blocks made, carried on beside the streams. An element
 * is the value where it was made; nothing is copied. */
#include "graph/build.h"

/* --- elements ------------------------------------------------------------ */

tb_status tb_build_item(tb_builder *b, tb_item *item, int *node)
{
    if (item->node < 0)
        TB_TRY(tb_build_leaf(b, &tb_op_input, item->name, item->shape,
                             item->dim, &item->node));
    *node = item->node;
    return TB_OK;
}

tb_status tb_build_list(tb_builder *b, int n, tb_val *out)
{
    size_t count = (size_t)n;
    tb_item *items = tb_arena_alloc(b->arena, (count + 1) * sizeof *items);
    *out = (tb_val){.kind = TB_VAL_LIST, .node = -1, .nitems = n};
    out->items = tb_arena_alloc(b->arena, (count + 1) * sizeof *out->items);
    if (!items || !out->items)
        return TB_ERR_MEMORY;
    for (int i = 0; i < n; i++) {
        items[i].node = -1;
        out->items[i] = &items[i];
    }
    return TB_OK;
}

static void item_of_node(const tb_builder *b, int node, tb_item *item)
{
    const tb_node *n = &b->g->nodes[node];
    *item = (tb_item){.node = node,
                      .name = n->op == &tb_op_input ? n->name : NULL,
                      .shape = n->shape,
                      .dim = n->dim};
}

/* A list where one is wanted. */
static tb_status list_arg(tb_builder *b, const tb_expr *call, tb_val *v)
{
    const tb_expr *e = call->args[0].value;
    TB_TRY(tb_build_expr(b, e, v));
    if (v->kind == TB_VAL_LIST)
        return TB_OK;
    return tb_build_fail(b, e->pos, "%s: got a %s, wanted a list", call->name,
                         v->kind == TB_VAL_CONST ? "constant" : "stream");
}

/* --- a function of each element ------------------------------------------ */

tb_status tb_build_each(tb_builder *b, const tb_expr *e, tb_each *out)
{
    tb_val v;
    TB_TRY(tb_build_expr(b, e, &v));
    return tb_build_each_of(b, e->pos, &v, out);
}

tb_status tb_build_each_of(tb_builder *b, tb_pos pos, const tb_val *v,
                           tb_each *out)
{
    *out = (tb_each){.n = 1, .list = v->kind == TB_VAL_LIST};
    if (v->kind == TB_VAL_CONST)
        return tb_build_fail(b, pos,
                             "a constant stands where a stream is needed");
    if (out->list)
        out->n = v->nitems;
    out->nodes =
        tb_arena_alloc(b->arena, ((size_t)out->n + 1) * sizeof *out->nodes);
    if (!out->nodes)
        return TB_ERR_MEMORY;
    if (!out->list)
        out->nodes[0] = v->node;
    for (int i = 0; out->list && i < out->n; i++)
        TB_TRY(tb_build_item(b, v->items[i], &out->nodes[i]));
    return TB_OK;
}

tb_status tb_build_each_value(tb_builder *b, const tb_each *each, tb_val *out)
{
    if (!each->list) {
        *out = (tb_val){.kind = TB_VAL_NODE, .node = each->nodes[0]};
        return TB_OK;
    }
    TB_TRY(tb_build_list(b, each->n, out));
    for (int i = 0; i < each->n; i++)
        item_of_node(b, each->nodes[i], out->items[i]);
    return TB_OK;
}

/* How many results a pair has: as many as the longer list. */
static tb_status pair_count(tb_builder *b, const tb_expr *e,
                            const tb_each each[2], int *n)
{
    *n = each[0].list ? each[0].n : each[1].n;
    if (each[0].list && each[1].list && each[0].n != each[1].n)
        return tb_build_fail(b, e->pos, "lists of %d and %d elements",
                             each[0].n, each[1].n);
    return TB_OK;
}

tb_status tb_build_pairs(tb_builder *b, const tb_op *op, const tb_expr *e,
                         const tb_val v[2], tb_val *out)
{
    tb_each each[2], all = {.n = 0};
    for (int i = 0; i < 2; i++)
        TB_TRY(tb_build_each_of(b, e->args[i].value->pos, &v[i], &each[i]));
    TB_TRY(pair_count(b, e, each, &all.n));
    all.list = each[0].list || each[1].list;
    all.nodes =
        tb_arena_alloc(b->arena, ((size_t)all.n + 1) * sizeof *all.nodes);
    if (!all.nodes)
        return TB_ERR_MEMORY;
    for (int i = 0; i < all.n; i++) {
        int in[2];
        for (int j = 0; j < 2; j++)
            in[j] = each[j].nodes[each[j].list ? i : 0];
        TB_TRY(tb_build_node(b, op, in, 2, NULL, e->pos, &all.nodes[i]));
    }
    return tb_build_each_value(b, &all, out);
}

tb_status tb_build_spread(tb_builder *b, const tb_expr *e, int from,
                          tb_each *out)
{
    int cap = 0;
    *out = (tb_each){.n = 0};
    for (int i = from; i < e->nargs; i++) {
        tb_each one;
        if (e->args[i].key)
            continue;
        TB_TRY(tb_build_each(b, e->args[i].value, &one));
        out->list = out->list || one.list;
        for (int j = 0; j < one.n; j++) {
            TB_TRY(TB_GROW(b, out->nodes, out->n, cap, int));
            out->nodes[out->n++] = one.nodes[j];
        }
    }
    return TB_OK;
}

/* --- words --------------------------------------------------------------- */

/* list(a, b), append(list, a): the elements `from` on, behind those there. */
static tb_status grow(tb_builder *b, const tb_expr *e, const tb_val *old,
                      int from, tb_val *out)
{
    int had = old ? old->nitems : 0;
    if (had + e->nargs - from > TB_LIST_MOST)
        return tb_build_fail(
            b, e->pos, "a list holds at most %d elements%s", (int)TB_LIST_MOST,
            b->l ? ": fewer blocks, or a list that drops some" : "");
    TB_TRY(tb_build_list(b, had + e->nargs - from, out));
    for (int i = 0; i < had; i++)
        out->items[i] = old->items[i];
    for (int i = from; i < e->nargs; i++) {
        int node;
        TB_TRY(tb_build_value(b, e->args[i].value, &node));
        item_of_node(b, node, out->items[had + i - from]);
        if (b->g->nodes[node].shape.kind != TB_SHAPE_STREAM)
            return tb_build_fail(b, e->args[i].value->pos,
                                 "%s: elements of a list are streams", e->name);
    }
    return TB_OK;
}

tb_status tb_call_list(tb_builder *b, const tb_expr *e, tb_val *out)
{
    return grow(b, e, NULL, 0, out);
}

tb_status tb_call_append(tb_builder *b, const tb_expr *e, tb_val *out)
{
    tb_val old;
    TB_TRY(list_arg(b, e, &old));
    return grow(b, e, &old, 1, out);
}

/* Counted from 0: in a list that the stem begins with list(x), element l is
 * what block l appended. */
tb_status tb_call_item(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const tb_expr *at = e->args[1].value;
    tb_val v, which;
    double i;
    TB_TRY(list_arg(b, e, &v));
    TB_TRY(tb_build_expr(b, at, &which));
    if (which.kind != TB_VAL_CONST)
        return tb_build_fail(b, at->pos, "item: which one must be a constant");
    TB_TRY(tb_build_fold(b, which.expr, &i));
    if (!v.nitems)
        return tb_build_fail(b, e->pos, "item: the list is empty");
    if (!(i >= 0 && i < v.nitems) || i != (double)(int)i)
        return tb_build_fail(b, at->pos,
                             "item: got %g, wanted a whole number from 0 to %d",
                             i, v.nitems - 1);
    *out = (tb_val){.kind = TB_VAL_NODE};
    return tb_build_item(b, v.items[(int)i], &out->node);
}

tb_status tb_call_size(tb_builder *b, const tb_expr *e, tb_val *out)
{
    tb_val v;
    tb_expr *n = TB_NEW(b->arena, tb_expr);
    TB_TRY(list_arg(b, e, &v));
    if (!n)
        return TB_ERR_MEMORY;
    *n = (tb_expr){
        .kind = TB_EXPR_NUMBER, .number = v.nitems, .pos = e->pos, .depth = 1};
    *out = (tb_val){.kind = TB_VAL_CONST, .expr = n, .node = -1, .size = 1};
    return TB_OK;
}

/* sum, mean: of a list its elements, of a stream the features of a token. */
tb_status tb_call_total(tb_builder *b, const tb_expr *e, tb_val *out)
{
    tb_each each;
    TB_TRY(tb_build_each(b, e->args[0].value, &each));
    if (!each.n)
        return tb_build_fail(b, e->pos, "%s: the list is empty", e->name);
    int node = each.nodes[0];
    *out = (tb_val){.kind = TB_VAL_NODE};
    if (!each.list)
        return tb_build_node(b, tb_op_find(e->name), &node, 1, NULL, e->pos,
                             &out->node);
    for (int i = 1; i < each.n; i++) {
        int in[2] = {node, each.nodes[i]};
        TB_TRY(tb_build_node(b, &tb_op_add, in, 2, NULL, e->pos, &node));
    }
    if (tb_streq(e->name, "mean")) {
        tb_attr attr[TB_OP_ATTRS] = {{0}};
        attr[TB_ATTR_AFFINE_SCALE].value = 1.0 / each.n;
        TB_TRY(tb_build_node(b, &tb_op_affine, &node, 1, attr, e->pos, &node));
    }
    out->node = node;
    return TB_OK;
}
