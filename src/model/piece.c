/* SPDX-License-Identifier: MIT */
/* Pieces of graphs: nodes that are needed, renumbered. */
#include "model/piece.h"

/** While a piece is cut out. */
typedef struct cutter {
    tb_arena *a;
    const tb_graph *from;
    tb_graph *to;
    unsigned char *needed;
    int *now; /* per node of `from`: its number in `to` */
    tb_piece *out;
} cutter;

static bool is_held(const int *held, int n, int node)
{
    for (int i = 0; i < n; i++)
        if (held[i] == node)
            return true;
    return false;
}

static tb_status begin(cutter *c)
{
    const tb_graph *g = c->from;
    size_t n = (size_t)g->nnodes;
    tb_graph *to = c->to = TB_NEW(c->a, tb_graph);
    c->needed = tb_arena_alloc(c->a, n);
    c->now = tb_arena_alloc(c->a, n * sizeof *c->now);
    c->out->node = tb_arena_alloc(c->a, n * sizeof *c->out->node);
    c->out->param =
        tb_arena_alloc(c->a, ((size_t)g->nparams + 1) * sizeof *c->out->param);
    if (!to || !c->needed || !c->now || !c->out->node || !c->out->param)
        return TB_ERR_MEMORY;
    *to = (tb_graph){.arena = c->a, .block = g->block};
    to->nodes = tb_arena_alloc(c->a, n * sizeof *to->nodes);
    to->params =
        tb_arena_alloc(c->a, ((size_t)g->nparams + 1) * sizeof *to->params);
    to->inputs = tb_arena_alloc(c->a, n * sizeof *to->inputs);
    to->boundaries = tb_arena_alloc(c->a, 2 * sizeof *to->boundaries);
    c->out->graph = to;
    return to->nodes && to->params && to->inputs && to->boundaries
               ? TB_OK
               : TB_ERR_MEMORY;
}

static void mark(cutter *c, const int *held, int nheld, const int *outs,
                 int nouts)
{
    for (int i = 0; i < nouts; i++)
        c->needed[outs[i]] = 1;
    for (int i = 0; i < nheld; i++)
        c->needed[held[i]] = 1;
    for (int i = c->from->nnodes - 1; i >= 0; i--) {
        const tb_node *n = &c->from->nodes[i];
        for (int k = 0; c->needed[i] && k < n->nin; k++)
            if (!is_held(held, nheld, i))
                c->needed[n->in[k]] = 1;
    }
}

static void copy_param(cutter *c, tb_node *n, int number)
{
    tb_graph *to = c->to;
    c->out->param[to->nparams] = n->param;
    to->params[to->nparams] = c->from->params[n->param];
    to->params[to->nparams].node = number;
    n->param = to->nparams++;
}

static void copy_node(cutter *c, int i, bool given)
{
    tb_graph *to = c->to;
    int number = c->now[i] = to->nnodes++;
    tb_node *n = &to->nodes[number];
    *n = c->from->nodes[i];
    c->out->node[number] = i;
    n->region = -1;
    if (given) {
        *n = (tb_node){.op = &tb_op_input,
                       .shape = n->shape,
                       .dim = n->dim,
                       .region = -1,
                       .param = -1,
                       .name = "given"};
        return;
    }
    for (int k = 0; k < n->nin; k++)
        n->in[k] = c->now[n->in[k]];
    if (n->param >= 0)
        copy_param(c, n, number);
    else if (n->op->lane == TB_LANE_LEAF)
        to->inputs[to->ninputs++] = number;
}

static tb_status outputs(cutter *c, const int *outs, int nouts)
{
    tb_graph *to = c->to;
    to->outputs = tb_arena_alloc(c->a, (size_t)nouts * sizeof *to->outputs);
    if (!to->outputs)
        return TB_ERR_MEMORY;
    to->noutputs = nouts;
    for (int i = 0; i < nouts; i++)
        to->outputs[i] = (tb_output){"", c->now[outs[i]]};
    to->boundaries[0] = (tb_boundary){.node = to->inputs[0], .name = ""};
    to->boundaries[1] = (tb_boundary){.node = c->now[outs[0]], .name = ""};
    to->nboundaries = 2;
    return TB_OK;
}

tb_status tb_piece_cut(tb_arena *a, const tb_graph *g, const int *held,
                       int nheld, const int *outs, int nouts, tb_piece *out)
{
    cutter c = {.a = a, .from = g, .out = out};
    TB_TRY(begin(&c));
    mark(&c, held, nheld, outs, nouts);
    c.to->ninputs = nheld;
    for (int i = 0; i < g->nnodes; i++)
        if (c.needed[i])
            copy_node(&c, i, is_held(held, nheld, i));
    for (int i = 0; i < nheld; i++)
        c.to->inputs[i] = c.now[held[i]];
    return outputs(&c, outs, nouts);
}

tb_status tb_piece_open(tb_ctx *ctx, tb_arena *a, const tb_piece *p,
                        const double (*attr)[TB_OP_ATTRS], size_t time,
                        unsigned passes, tb_piece_run *out)
{
    tb_plan_spec spec = {.graph = p->graph,
                         .batch = 1,
                         .time = time,
                         .dtype = TB_F64,
                         .passes = passes | TB_PASS_KEEP,
                         .name = "piece"};
    size_t n = (size_t)p->graph->nnodes;
    *out = (tb_piece_run){.run = {.scope = "piece", .seed = 1}};
    TB_TRY(tb_plan_create(ctx, &spec, &out->plan));
    TB_TRY(tb_run_on(a, out->plan, &out->run));
    out->attr = tb_arena_alloc(a, n * sizeof *out->attr);
    if (!out->attr)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        memcpy(out->attr[i], attr[p->node[i]], sizeof *out->attr);
    out->run.attr = (const double(*)[TB_OP_ATTRS])out->attr;
    return TB_OK;
}
