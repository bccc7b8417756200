/* SPDX-License-Identifier: MIT */
/* Where things stand in a block, whatever they are made of: sublayers are one
 * node each, norms of all kinds are norms, weights are only what they do. */
#include "graph/graph.h"

/** While a graph is written down. */
typedef struct writer {
    const tb_graph *g;
    const double (*attr)[TB_OP_ATTRS];
    unsigned char *needed;
    int *number; /* per node, -1: not written */
    int count;
    tb_buf *out;
} writer;

static const tb_region *sublayer_at(const writer *w, int i)
{
    int r = w->g->nodes[i].region;
    return r >= 0 && w->g->regions[r].out == i ? &w->g->regions[r] : NULL;
}

static bool is_norm(const tb_op *op)
{
    return op->lane == TB_LANE_TOLL || op == &tb_op_dyt || op == &tb_op_derf;
}

/* Random and invisible ops: what they let pass is what counts. */
static bool passes(const tb_op *op)
{
    return op == &tb_op_drop || op == &tb_op_skipdrop ||
           (op->alias && op != &tb_op_stop && op != &tb_op_branch);
}

/* How many inputs are read: of norms and linears the first. */
static int read_by(const writer *w, int i)
{
    const tb_node *n = &w->g->nodes[i];
    if (sublayer_at(w, i))
        return 0;
    bool one = is_norm(n->op) || n->op->jac == TB_JAC_WEIGHT || passes(n->op);
    return one && n->nin > 1 ? 1 : n->nin;
}

static void mark(writer *w)
{
    for (int o = 0; o < w->g->noutputs; o++)
        w->needed[w->g->outputs[o].node] = 1;
    for (int i = w->g->nnodes - 1; i >= 0; i--) {
        const tb_region *r = w->needed[i] ? sublayer_at(w, i) : NULL;
        if (r)
            w->needed[r->in[0]] = 1;
        for (int k = 0; w->needed[i] && k < read_by(w, i); k++)
            w->needed[w->g->nodes[i].in[k]] = 1;
    }
}

static void write_inputs(writer *w, int i)
{
    const tb_node *n = &w->g->nodes[i];
    int in[TB_OP_INPUTS], count = read_by(w, i);
    for (int k = 0; k < count; k++)
        in[k] = w->number[n->in[k]];
    bool swap = count == 2 && (n->op == &tb_op_add || n->op == &tb_op_mul) &&
                in[0] > in[1];
    for (int k = 0; k < count; k++)
        tb_buf_printf(w->out, " %d", in[swap ? 1 - k : k]);
}

static void write_node(writer *w, int i)
{
    const tb_node *n = &w->g->nodes[i];
    const tb_region *r = sublayer_at(w, i);
    if (passes(n->op)) {
        w->number[i] = w->number[n->in[0]];
        return;
    }
    w->number[i] = w->count++;
    tb_buf_printf(w->out, "%d ", w->number[i]);
    if (r)
        tb_buf_printf(w->out, "%s %d", r->name, w->number[r->in[0]]);
    else if (is_norm(n->op))
        tb_buf_puts(w->out, "norm");
    else if (n->param >= 0)
        tb_buf_puts(w->out, tb_role_name(w->g->params[n->param].role));
    else
        tb_buf_puts(w->out, n->op == &tb_op_input ? "stream" : n->op->name);
    if (n->op->jac == TB_JAC_AFFINE)
        tb_buf_printf(w->out, " %.12g %.12g", w->attr[i][TB_ATTR_AFFINE_SCALE],
                      w->attr[i][TB_ATTR_AFFINE_OFFSET]);
    write_inputs(w, i);
    tb_buf_puts(w->out, "\n");
}

tb_status tb_graph_placement(tb_ctx *ctx, const tb_graph *g,
                             const double (*attr)[TB_OP_ATTRS], tb_buf *out)
{
    tb_arena a;
    size_t n = (size_t)g->nnodes;
    tb_arena_init(&a, ctx);
    writer w = {.g = g, .attr = attr, .out = out};
    w.needed = tb_arena_alloc(&a, n);
    w.number = tb_arena_alloc(&a, n * sizeof *w.number);
    if (w.needed && w.number) {
        mark(&w);
        for (int i = 0; i < g->nnodes; i++)
            if (w.needed[i])
                write_node(&w, i);
        for (int o = 0; o < g->noutputs; o++)
            tb_buf_printf(out, "out %d\n", w.number[g->outputs[o].node]);
    }
    tb_status s = w.needed && w.number ? tb_buf_status(out) : TB_ERR_MEMORY;
    tb_arena_clear(&a);
    return s;
}
