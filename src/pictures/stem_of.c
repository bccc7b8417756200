/* SPDX-License-Identifier: MIT */
/* A stem's graph as a diagram has it: from the embedding, one value with its
 * positions, to the streams that the blocks start from. */
#include "pictures/wiring.h"

/* The last node of those that no text has: tokens, positions, dropout. */
static int embedding_of(const tb_graph *g)
{
    int at = -1;
    for (int i = 0; i < g->nnodes; i++) {
        const tb_node *n = &g->nodes[i];
        bool further = n->pos.line == 0 && n->nin && n->in[0] == at;
        if (n->op == &tb_op_embed || further)
            at = i;
    }
    return at;
}

/* Anything but x, and x as it came. */
static bool does_something(const tb_graph *g, int from)
{
    for (int i = 0; i < g->noutputs; i++)
        if (g->outputs[i].node != from || !tb_streq(g->outputs[i].name, "x"))
            return true;
    return false;
}

tb_status tb_stem_of(tb_arena *a, const tb_graph *g, const tb_graph **out)
{
    int from = g ? embedding_of(g) : -1;
    *out = NULL;
    if (from < 0 || !does_something(g, from))
        return TB_OK;
    tb_graph *own = tb_arena_alloc(a, sizeof *own);
    tb_node *nodes = tb_arena_alloc(a, (size_t)g->nnodes * sizeof *nodes);
    tb_boundary *ends = tb_arena_alloc(a, 2 * sizeof *ends);
    int *inputs = tb_arena_alloc(a, sizeof *inputs);
    if (!own || !nodes || !ends || !inputs)
        return TB_ERR_MEMORY;
    memcpy(nodes, g->nodes, (size_t)g->nnodes * sizeof *nodes);
    nodes[from].op = &tb_op_input;
    nodes[from].name = "embedding";
    nodes[from].nin = 0;
    ends[0] = (tb_boundary){.node = from};
    ends[1] = (tb_boundary){.node = g->outputs[0].node};
    inputs[0] = from;
    *own = *g;
    own->nodes = nodes;
    own->inputs = inputs;
    own->ninputs = 1;
    own->boundaries = ends;
    own->nboundaries = 2;
    *out = own;
    return TB_OK;
}
