/* SPDX-License-Identifier: MIT */
/* What goes from graph to graph: streams, and lists of values made before. */
#include "graph/build.h"

/* --- streams ------------------------------------------------------------- */

tb_status tb_carry_bind(tb_builder *b, const char *name, int node)
{
    tb_binding *bind;
    TB_TRY(tb_scope_put(b, name, &bind));
    bind->val = (tb_val){.kind = TB_VAL_NODE, .node = node};
    bind->is_value = true;
    return TB_OK;
}

tb_status tb_carry_input(tb_builder *b, const char *name)
{
    tb_shape shape = {TB_SHAPE_STREAM, b->sizes->s.width, 1};
    int node;
    TB_TRY(tb_build_leaf(b, &tb_op_input, name, shape, (tb_dim){1, 0}, &node));
    b->g->nodes[node].of_memory = tb_streq(name, "memory");
    return tb_carry_bind(b, name, node);
}

tb_status tb_carry_check(tb_builder *b, const char *name, tb_pos pos, int *node)
{
    tb_binding *bind = tb_scope_find(&b->scope, name);
    size_t d = b->sizes->s.width;
    if (!bind || !bind->is_value || bind->val.kind != TB_VAL_NODE)
        return tb_build_fail(
            b, pos, "%s is not a stream at the end of the section", name);
    const tb_node *n = &b->g->nodes[bind->val.node];
    if (n->shape.kind != TB_SHAPE_STREAM || n->shape.width != d)
        return tb_build_fail(b, n->pos,
                             "%s leaves with width %zu, wanted d = %zu", name,
                             n->shape.width, d);
    if (n->of_memory)
        return tb_build_fail(b, n->pos, "%s leaves with the rows of memory",
                             name);
    *node = bind->val.node;
    return TB_OK;
}

static tb_status stream_out(tb_builder *b, const char *name, tb_pos pos)
{
    int node = -1;
    TB_TRY(tb_carry_check(b, name, pos, &node));
    b->g->ncarried++;
    return tb_build_output(b, name, node);
}

static bool is_stream(const tb_builder *b, const tb_binding *bind)
{
    return bind->is_value && bind->val.kind == TB_VAL_NODE &&
           b->g->nodes[bind->val.node].shape.kind == TB_SHAPE_STREAM;
}

static bool is_list(const tb_binding *bind)
{
    return bind->is_value && bind->val.kind == TB_VAL_LIST;
}

/* --- lists --------------------------------------------------------------- */

static tb_status list_in(tb_builder *b, const tb_list *l)
{
    tb_binding *bind;
    tb_val v;
    TB_TRY(tb_build_list(b, l->n, &v));
    for (int i = 0; i < l->n; i++) {
        *v.items[i] =
            (tb_item){.node = -1,
                      .name = tb_arena_printf(b->arena, "%s.%d", l->name, i),
                      .shape = l->shapes[i],
                      .dim = l->dims[i]};
        if (!v.items[i]->name)
            return TB_ERR_MEMORY;
    }
    TB_TRY(tb_scope_put(b, l->name, &bind));
    bind->val = v;
    bind->is_value = true;
    return TB_OK;
}

/* Element i, an output unless it entered under that name. */
static tb_status item_out(tb_builder *b, const char *list, int i, tb_item *item)
{
    int node;
    const char *name = tb_arena_printf(b->arena, "%s.%d", list, i);
    if (!name)
        return TB_ERR_MEMORY;
    if (tb_streq(item->name, name))
        return TB_OK;
    TB_TRY(tb_build_item(b, item, &node));
    if (b->g->nodes[node].of_memory)
        return tb_build_fail(b, b->g->nodes[node].pos,
                             "%s leaves with the rows of memory", name);
    return tb_build_output(b, name, node);
}

static tb_status list_out(tb_builder *b, const char *name, int entered,
                          tb_pos pos)
{
    const tb_binding *bind = tb_scope_find(&b->scope, name);
    tb_graph *g = b->g;
    if (!bind || !is_list(bind))
        return tb_build_fail(
            b, pos, "%s is not a list at the end of the section", name);
    size_t n = (size_t)bind->val.nitems;
    tb_list l = {.name = name, .n = bind->val.nitems, .entered = entered};
    l.shapes = tb_arena_alloc(b->arena, (n + 1) * sizeof *l.shapes);
    l.dims = tb_arena_alloc(b->arena, (n + 1) * sizeof *l.dims);
    if (!l.shapes || !l.dims)
        return TB_ERR_MEMORY;
    for (int i = 0; i < l.n; i++) {
        l.shapes[i] = bind->val.items[i]->shape;
        l.dims[i] = bind->val.items[i]->dim;
        TB_TRY(item_out(b, name, i, bind->val.items[i]));
    }
    TB_TRY(TB_GROW(b, g->lists, g->nlists, b->cap_lists, tb_list));
    g->lists[g->nlists++] = l;
    return TB_OK;
}

/* --- graphs -------------------------------------------------------------- */

tb_status tb_carry_begin(tb_builder *b, tb_pos pos)
{
    int n = b->scope.count;
    TB_TRY(stream_out(b, "x", pos));
    for (int i = 0; i < n; i++) {
        const tb_binding *bind = &b->scope.items[i];
        if (is_stream(b, bind) && !tb_streq(bind->name, "x"))
            TB_TRY(stream_out(b, bind->name, pos));
    }
    for (int i = 0; i < n; i++)
        if (is_list(&b->scope.items[i]))
            TB_TRY(list_out(b, b->scope.items[i].name, 0, pos));
    return TB_OK;
}

tb_status tb_carry_in(tb_builder *b)
{
    const tb_graph *below = b->below;
    for (int i = 0; i < below->ncarried; i++)
        TB_TRY(tb_carry_input(b, below->outputs[i].name));
    for (int i = 0; i < below->nlists; i++)
        TB_TRY(list_in(b, &below->lists[i]));
    return TB_OK;
}

tb_status tb_carry_out(tb_builder *b, tb_pos pos)
{
    const tb_graph *below = b->below;
    for (int i = 0; i < below->ncarried; i++)
        TB_TRY(stream_out(b, below->outputs[i].name, pos));
    for (int i = 0; i < below->nlists; i++)
        TB_TRY(list_out(b, below->lists[i].name, below->lists[i].n, pos));
    return TB_OK;
}
