/* SPDX-License-Identifier: MIT */
/* Making a plan: sizes of every node checked against its op's shape rule.
 * What stands where is decided in plan_buffers.c. */
#include "plan/plan_parts.h"

static tb_status check_sizes(tb_ctx *ctx, const tb_plan_spec *spec)
{
    size_t rows;
    if (spec->batch == 0 || spec->time == 0)
        return TB_FAIL(ctx, TB_ERR_SHAPE, "%s: %zu sequences of %zu tokens",
                       spec->name, spec->batch, spec->time);
    if (!tb_mul(spec->batch, spec->time, &rows))
        return TB_FAIL(ctx, TB_ERR_MEMORY,
                       "%s: %zu sequences of %zu tokens are too many",
                       spec->name, spec->batch, spec->time);
    return TB_OK;
}

/* Elements and bytes of a value; false if they overflow. */
static bool measure(tb_step *s, tb_dtype dtype)
{
    const tb_opcall *c = &s->call;
    tb_shape shape = c->out_shape;
    size_t rows, n = 1;
    bool fits = tb_mul(c->batch, c->time, &rows);
    if (shape.kind == TB_SHAPE_STREAM)
        fits = fits && tb_mul(rows, shape.width, &n);
    else if (shape.kind == TB_SHAPE_MATRIX)
        fits = tb_mul(shape.height, shape.width, &n);
    else if (shape.kind == TB_SHAPE_TOKENS)
        n = rows;
    else if (shape.kind == TB_SHAPE_VECTOR)
        n = shape.width;
    s->count = n;
    size_t one =
        shape.kind == TB_SHAPE_TOKENS ? sizeof(int32_t) : tb_dtype_size(dtype);
    return fits && tb_mul(n, one, &s->bytes);
}

static bool same_shape(tb_shape a, tb_shape b)
{
    return a.kind == b.kind && a.width == b.width &&
           (a.kind != TB_SHAPE_MATRIX || a.height == b.height);
}

bool tb_plan_leaf(const tb_plan *p, int node)
{
    return p->graph->nodes[node].op->lane == TB_LANE_LEAF;
}

bool tb_plan_saves(const tb_plan *p, const tb_op *op)
{
    return p->passes || !op->saves_ahead;
}

bool tb_plan_stops(const tb_op *op)
{
    return op->alias && op->jac == TB_JAC_ZERO;
}

bool tb_plan_data(const tb_op *op, int i)
{
    return (op->data & TB_NEED_IN(i)) != 0;
}

bool tb_plan_reads_again(const tb_node *n, int i)
{
    int readers = 0;
    for (int j = 0; j < n->nin; j++)
        readers += n->in[j] == n->in[i];
    return readers > 1;
}

bool tb_plan_through(const tb_plan *p, int node, int i)
{
    const tb_opcall *c = &p->steps[node].call;
    return p->graph->nodes[node].op->jac == TB_JAC_SUM &&
           same_shape(c->in_shape[i], c->out_shape);
}

/* Applies the op's shape rule to the shapes its inputs really have. */
static tb_status check_shape(tb_ctx *ctx, const tb_plan *p, int node)
{
    const tb_node *n = &p->graph->nodes[node];
    const tb_opcall *c = &p->steps[node].call;
    const char *why = "shapes do not fit";
    tb_shape got = n->shape;
    if (n->op->shape && !n->op->shape(c->in_shape, c->nin, c->attr, &got, &why))
        return TB_FAIL(ctx, TB_ERR_SHAPE, "%s: %s: %s", p->name, n->op->name,
                       why);
    if (!same_shape(got, n->shape))
        return TB_FAIL(ctx, TB_ERR_SHAPE,
                       "%s: %s gives width %zu, the graph says %zu", p->name,
                       n->op->name, got.width, n->shape.width);
    return TB_OK;
}

static tb_status check_inputs(tb_ctx *ctx, const tb_plan *p, int node)
{
    const tb_node *n = &p->graph->nodes[node];
    if (n->nin < n->op->min_in || n->nin > n->op->max_in)
        return TB_FAIL(ctx, TB_ERR_ARG, "%s: %s has %d inputs, wants %d to %d",
                       p->name, n->op->name, n->nin, n->op->min_in,
                       n->op->max_in);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] < 0 || n->in[i] >= node)
            return TB_FAIL(ctx, TB_ERR_ARG, "%s: node %d reads node %d",
                           p->name, node, n->in[i]);
    return TB_OK;
}

static bool has_rows(tb_shape s)
{
    return s.kind == TB_SHAPE_STREAM || s.kind == TB_SHAPE_TOKENS;
}

/* The time of a value: a leaf's own, else that of the first operand that has
 * one. Two times in one call are the op's business (attention), or wrong. */
static tb_status find_times(tb_ctx *ctx, const tb_plan_spec *spec, tb_plan *p,
                            int node)
{
    const tb_graph *g = p->graph;
    tb_opcall *c = &p->steps[node].call;
    const tb_op *op = g->nodes[node].op;
    int first = -1;
    for (int i = 0; tb_plan_leaf(p, node) && i < g->ninputs; i++)
        if (g->inputs[i] == node && spec->input_time && spec->input_time[i])
            c->time = spec->input_time[i];
    for (int i = c->nin - 1; i >= 0; i--) {
        c->in_time[i] = p->steps[g->nodes[node].in[i]].call.time;
        first = has_rows(c->in_shape[i]) ? i : first;
    }
    c->time = first < 0 ? c->time : c->in_time[first];
    for (int i = first + 1; i < c->nin && first >= 0 && !op->fit; i++)
        if (has_rows(c->in_shape[i]) && c->in_time[i] != c->time)
            return TB_FAIL(ctx, TB_ERR_SHAPE,
                           "%s: %s: streams of %zu and %zu tokens", p->name,
                           op->name, c->time, c->in_time[i]);
    const char *why = op->fit ? op->fit(c) : NULL;
    if (why)
        return TB_FAIL(ctx, TB_ERR_SHAPE, "%s: %s: %s", p->name, op->name, why);
    return TB_OK;
}

/* The part of a call that no run changes. Attributes are those the node
 * holds: sizes may depend on them, so they must not vary by layer there. */
static tb_status describe(tb_ctx *ctx, const tb_plan_spec *spec, tb_plan *p,
                          int node)
{
    const tb_node *n = &p->graph->nodes[node];
    tb_step *s = &p->steps[node];
    TB_TRY(check_inputs(ctx, p, node));
    s->call = (tb_opcall){.ctx = ctx,
                          .k = tb_kern_get(ctx, spec->dtype),
                          .bf16 = spec->dtype == TB_BF16 && n->op->rounds,
                          .batch = spec->batch,
                          .time = spec->time,
                          .nin = n->nin,
                          .out_shape = n->shape};
    for (int i = 0; i < n->nin; i++)
        s->call.in_shape[i] = p->graph->nodes[n->in[i]].shape;
    for (int i = 0; i < TB_OP_ATTRS; i++)
        s->call.attr[i] = n->attr[i].value;
    TB_TRY(check_shape(ctx, p, node));
    TB_TRY(find_times(ctx, spec, p, node));
    if (!measure(s, spec->dtype))
        return TB_FAIL(ctx, TB_ERR_MEMORY, "%s: %s is too large", p->name,
                       n->op->name);
    if (n->op->flops)
        p->flops += n->op->flops(&s->call);
    return TB_OK;
}

/* Where the caller hands a leaf in. */
static tb_status find_slot(tb_ctx *ctx, tb_plan *p, int node)
{
    const tb_graph *g = p->graph;
    tb_step *s = &p->steps[node];
    for (int i = 0; i < g->ninputs; i++)
        if (g->inputs[i] == node) {
            s->place = TB_PLACE_INPUT, s->slot = i;
            return TB_OK;
        }
    for (int i = 0; i < g->nparams; i++)
        if (g->params[i].node == node) {
            s->place = TB_PLACE_PARAM, s->slot = i;
            return TB_OK;
        }
    return TB_FAIL(ctx, TB_ERR_ARG, "%s: nothing enters by node %d", p->name,
                   node);
}

static void count_readers(tb_plan *p)
{
    const tb_graph *g = p->graph;
    for (int n = 0; n < g->nnodes; n++)
        for (int i = 0; i < g->nodes[n].nin; i++)
            p->steps[g->nodes[n].in[i]].readers++;
    for (int o = 0; o < g->noutputs; o++)
        p->steps[g->outputs[o].node].outputs++;
}

static tb_status build(tb_ctx *ctx, const tb_plan_spec *spec, tb_plan *p)
{
    for (int n = 0; n < p->graph->nnodes; n++) {
        TB_TRY(describe(ctx, spec, p, n));
        if (tb_plan_leaf(p, n))
            TB_TRY(find_slot(ctx, p, n));
    }
    count_readers(p);
    tb_plan_turns(p);
    TB_TRY(tb_plan_angles(ctx, p));
    return tb_plan_place(ctx, p);
}

tb_status tb_plan_create(tb_ctx *ctx, const tb_plan_spec *spec, tb_plan **out)
{
    *out = NULL;
    TB_TRY(check_sizes(ctx, spec));
    tb_plan *p = tb_alloc(ctx, 1, sizeof(*p));
    if (!p)
        return TB_ERR_MEMORY;
    p->graph = spec->graph;
    p->passes = spec->passes;
    p->name = spec->name ? spec->name : "plan";
    size_t n = (size_t)p->graph->nnodes + 1;
    p->slots = (size_t)tb_threads_count(ctx);
    p->steps = tb_alloc(ctx, n, sizeof(*p->steps));
    p->fwd = p->steps ? tb_alloc(ctx, 2 * n, sizeof(*p->fwd)) : NULL;
    p->bwd = p->fwd ? p->fwd + n : NULL;
    tb_status s = p->fwd ? build(ctx, spec, p) : TB_ERR_MEMORY;
    if (s == TB_OK)
        *out = p;
    else
        tb_plan_destroy(ctx, p);
    return s;
}

void tb_plan_destroy(tb_ctx *ctx, tb_plan *p)
{
    if (!p)
        return;
    tb_free(ctx, p->angles);
    tb_free(ctx, p->steps);
    tb_free(ctx, p->fwd);
    tb_free(ctx, p);
}

const tb_graph *tb_plan_graph(const tb_plan *p)
{
    return p->graph;
}

size_t tb_plan_saved_bytes(const tb_plan *p)
{
    return p->saved_bytes;
}

size_t tb_plan_work_bytes(const tb_plan *p)
{
    return p->work_bytes;
}

tb_status tb_run_on(tb_arena *a, const tb_plan *p, tb_run *r)
{
    r->plan = p;
    r->saved = tb_arena_aligned(a, p->saved_bytes);
    r->work = tb_arena_aligned(a, p->work_bytes);
    return r->saved && r->work ? TB_OK : TB_ERR_MEMORY;
}

size_t tb_plan_angle_bytes(const tb_plan *p)
{
    return p->angle_bytes;
}

double tb_plan_flops(const tb_plan *p)
{
    return p->flops;
}
