/* SPDX-License-Identifier: MIT */
/* Functions of streams: attention, positions, joins, element by element. */
#include "graph/calls.h"

/* keep=m or hide=m in eval: 1 - m of what is hidden. -1: neither stands. */
static tb_status mha_own_mask(tb_builder *b, const tb_expr *e, int *mask)
{
    const tb_expr *keep = tb_call_option(e, "keep"),
                  *hide = tb_call_option(e, "hide");
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

tb_status tb_call_mha(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const tb_settings *s = &b->sizes->s;
    const tb_expr *scale = tb_call_option(e, "scale");
    int in[4], nin = 3, node;
    tb_attr attr[TB_OP_ATTRS] = {{0}};
    attr[TB_ATTR_ATTN_HEADS].value = (double)s->heads;
    attr[TB_ATTR_ATTN_KV_HEADS].value = (double)s->kv_heads;
    attr[TB_ATTR_ATTN_DROP].value = s->dropout;
    for (int i = 0; i < 3; i++)
        TB_TRY(tb_build_value(b, e->args[i].value, &in[i]));
    TB_TRY(mha_mask(b, e, in, &nin, &attr[TB_ATTR_ATTN_CAUSAL]));
    if (scale)
        TB_TRY(tb_call_attr(b, scale, "scale", &attr[TB_ATTR_ATTN_SCALE]));
    if (scale && !(attr[TB_ATTR_ATTN_SCALE].value > 0))
        return tb_build_fail(b, scale->pos, "scale: got %g, wanted more than 0",
                             attr[TB_ATTR_ATTN_SCALE].value);
    TB_TRY(tb_build_node(b, &tb_op_mha, in, nin, attr, e->pos, &node));
    return tb_call_node(out, node);
}

/* Heads are as wide as in mha, however many the stream has. */
tb_status tb_call_rope(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const tb_expr *base = tb_call_option(e, "base");
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
        TB_TRY(tb_call_attr(b, base, "base", &attr[TB_ATTR_ROPE_BASE]));
    if (base && !(attr[TB_ATTR_ROPE_BASE].value > 0))
        return tb_build_fail(b, base->pos, "base: got %g, wanted more than 0",
                             attr[TB_ATTR_ROPE_BASE].value);
    TB_TRY(tb_build_node(b, &tb_op_rope, &x, 1, attr, e->pos, &node));
    return tb_call_node(out, node);
}

tb_status tb_call_concat(tb_builder *b, const tb_expr *e, tb_val *out)
{
    tb_each all;
    size_t groups;
    tb_attr attr[TB_OP_ATTRS] = {{0}};
    TB_TRY(tb_build_spread(b, e, 0, &all));
    if (!all.n)
        return tb_build_fail(b, e->pos, "concat: the list is empty");
    TB_TRY(
        tb_call_groups(b, e, b->g->nodes[all.nodes[0]].shape.width, &groups));
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
    return tb_call_node(out, all.nodes[0]);
}

/* The attribute of row=i, which the text counts from 1. */
static tb_status row_option(tb_builder *b, const tb_expr *e, tb_attr *attr)
{
    static const tb_expr one = {
        .kind = TB_EXPR_NUMBER, .number = 1, .depth = 1};
    const tb_expr *row = tb_call_option(e, "row");
    tb_val v[2] = {{.kind = TB_VAL_CONST}, {.expr = &one, .size = 1}}, from_0;
    *attr = (tb_attr){NULL, 0, NULL};
    if (!row)
        return TB_OK;
    const tb_expr less = {
        .kind = TB_EXPR_BINARY, .pos = row->pos, .op = '-', .nargs = 2};
    TB_TRY(tb_call_constant(b, row, "row", &v[0]));
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
tb_status tb_call_mix(tb_builder *b, const tb_expr *e, tb_val *out)
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
    return tb_call_node(out, sum);
}

/* One op of two inputs. */
tb_status tb_call_pair(tb_builder *b, const tb_expr *e, tb_val *out)
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
    const tb_expr *number = tb_call_option(e, op->attr_name[0]);
    int flag;
    attr[0].value = usual(op, 0);
    if (number)
        TB_TRY(tb_call_attr(b, number, op->attr_name[0], &attr[0]));
    TB_TRY(tb_call_flag(b, e, op->attr_name[1], 0, &flag));
    attr[1].value = flag;
    return TB_OK;
}

/* Sinkhorn, unit; maxdiv takes its maximum over a copy that is held constant,
 * as stop(...) is. */
tb_status tb_call_options(tb_builder *b, const tb_expr *e, tb_val *out)
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
    return tb_call_node(out, node);
}

/* --- element-wise -------------------------------------------------------- */

/* drop: elements at a rate; drop_branch: all of a sequence. */
tb_status tb_call_drop(tb_builder *b, const tb_expr *e, tb_val *out)
{
    int x, node;
    const tb_op *op = tb_streq(e->name, "drop") ? &tb_op_drop : &tb_op_skipdrop;
    tb_attr p = {NULL, b->sizes->s.dropout, NULL};
    TB_TRY(tb_build_value(b, e->args[0].value, &x));
    if (e->nargs > 1) {
        TB_TRY(tb_call_attr(b, e->args[1].value, e->name, &p));
        if (!(p.value >= 0 && p.value < 1))
            return tb_build_fail(b, e->args[1].value->pos,
                                 "%s: got rate %g, wanted 0 <= p < 1", e->name,
                                 p.value);
    }
    TB_TRY(tb_call_drop_node(b, op, x, p, e->pos, &node));
    return tb_call_node(out, node);
}

/* One op of one input. */
tb_status tb_call_op(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const tb_op *op = tb_op_find(e->name);
    tb_each each;
    TB_TRY(tb_build_each(b, e->args[0].value, &each));
    for (int i = 0; i < each.n; i++)
        TB_TRY(tb_build_node(b, op, &each.nodes[i], 1, NULL, e->pos,
                             &each.nodes[i]));
    return tb_build_each_value(b, &each, out);
}

tb_status tb_call_const_fn(tb_builder *b, const tb_expr *e, tb_val *out)
{
    tb_val *v = tb_arena_alloc(b->arena, (size_t)e->nargs * sizeof *v);
    if (!v)
        return TB_ERR_MEMORY;
    for (int i = 0; i < e->nargs; i++)
        TB_TRY(tb_call_constant(b, e->args[i].value, e->name, &v[i]));
    return tb_build_const(b, e, v, out);
}

/* exp and abs of a constant are one, of a stream an op. */
tb_status tb_call_either(tb_builder *b, const tb_expr *e, tb_val *out)
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
