/* SPDX-License-Identifier: MIT */
/* F -> t F: one step of a layer with its branches times t, at two large t; the
 * power of t by which values and gradients grow between them. */
#include "model/corners.h"
#include "model/piece.h"
#include "model/symbolic.h"

enum { TOKENS = 4, HEADS = 2, WIDTH = 8, SEED = 1 };

static const double times[2] = {1e5, 1e7};

/** Lengths at one t. */
typedef struct lengths {
    double value[TB_STREAMS_MOST], down[TB_STREAMS_MOST], lane[TB_STREAMS_MOST];
} lengths;

/** One step as a piece, on the values that a trial has there. */
typedef struct step {
    tb_ctx *ctx;
    tb_arena *a;
    const tb_trial *t;
    tb_piece piece;
    tb_piece_run r;
    size_t n; /* elements of a stream */
    int nstreams;
    double *cotangent, *down[TB_STREAMS_MOST];
} step;

static tb_settings small_settings(const tb_settings *given)
{
    tb_settings s = *given;
    s.heads = s.heads ? s.heads : HEADS;
    s.width = (WIDTH + s.heads - 1) / s.heads * s.heads;
    s.ffn = 0;
    s.dropout = 0;
    return s;
}

static double length_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return tb_sqrt(sum);
}

/* Parameters and values of the trial, by the piece's numbers. */
static tb_status fill(step *s)
{
    const tb_graph *g = s->piece.graph;
    const void **params =
        tb_arena_alloc(s->a, ((size_t)g->nparams + 1) * sizeof *params);
    const void **inputs =
        tb_arena_alloc(s->a, ((size_t)g->ninputs + 1) * sizeof *inputs);
    if (!params || !inputs)
        return TB_ERR_MEMORY;
    for (int i = 0; i < g->nparams; i++)
        params[i] = s->t->run.params[s->piece.param[i]];
    for (int i = 0; i < g->ninputs; i++)
        inputs[i] = tb_plan_value(&s->t->run, s->piece.node[g->inputs[i]]);
    s->r.run.params = params;
    s->r.run.inputs = inputs;
    return TB_OK;
}

/* Where a sublayer joins, its value is multiplied; t is set later. */
static void scale_branches(step *s)
{
    tb_graph *g = s->piece.graph;
    for (int i = 0; i < g->nnodes; i++) {
        int old = s->piece.node[i];
        if (g->nodes[i].op == &tb_op_branch &&
            s->t->graph->nodes[old].op == &tb_op_branch)
            g->nodes[i].op = &tb_op_affine;
    }
}

static void set_times(step *s, double t)
{
    for (int i = 0; i < s->piece.graph->nnodes; i++)
        if (s->t->graph->nodes[s->piece.node[i]].op == &tb_op_branch) {
            s->r.attr[i][TB_ATTR_AFFINE_SCALE] = t;
            s->r.attr[i][TB_ATTR_AFFINE_OFFSET] = 0;
        }
}

/* Length of what arrives at the streams in, from a gradient on stream k. */
static tb_status send_down(step *s, int k, bool cut, double *out)
{
    const void *gout[TB_STREAMS_MOST] = {NULL};
    size_t inputs = (size_t)s->piece.graph->ninputs;
    void **gin = tb_arena_alloc(s->a, (inputs + 1) * sizeof *gin);
    double square = 0;
    if (!gin)
        return TB_ERR_MEMORY;
    gout[k] = s->cotangent;
    for (int i = 0; i < s->nstreams; i++)
        gin[i] = s->down[i];
    tb_bwd b = {.hi = -1, .lo = -1, .cut = cut, .gout = gout, .gin = gin};
    TB_TRY(tb_plan_backward(s->ctx, &s->r.run, &b));
    for (int i = 0; i < s->nstreams; i++) {
        double l = length_of(s->down[i], s->n);
        square += l * l;
    }
    *out = tb_sqrt(square);
    return TB_OK;
}

static tb_status measure(step *s, double t, lengths *out)
{
    set_times(s, t);
    TB_TRY(tb_plan_forward(s->ctx, &s->r.run));
    for (int k = 0; k < s->nstreams; k++) {
        int node = s->piece.graph->outputs[k].node;
        out->value[k] = length_of(tb_plan_value(&s->r.run, node), s->n);
        TB_TRY(send_down(s, k, false, &out->down[k]));
        TB_TRY(send_down(s, k, true, &out->lane[k]));
    }
    return TB_OK;
}

static double growth(double low, double high)
{
    double g = (tb_log(high) - tb_log(low)) / tb_log(times[1] / times[0]);
    return low > 0 && high > 0 ? g : __builtin_nan("");
}

static tb_status open_step(step *s, int f)
{
    const tb_graph *g = s->t->graph;
    const tb_cut *in = &g->cuts[f], *out = &g->cuts[f + 1];
    s->nstreams = g->nstreams;
    s->n = tb_shape_count(g->nodes[in->nodes[0]].shape, 1, TOKENS);
    TB_TRY(tb_piece_cut(s->a, g, in->nodes, g->nstreams, out->nodes,
                        g->nstreams, &s->piece));
    scale_branches(s);
    s->cotangent = tb_arena_alloc(s->a, s->n * sizeof *s->cotangent);
    for (int i = 0; i < s->nstreams; i++)
        if (!(s->down[i] = tb_arena_alloc(s->a, s->n * sizeof(double))))
            return TB_ERR_MEMORY;
    if (!s->cotangent)
        return TB_ERR_MEMORY;
    tb_rng r = tb_rng_make(SEED, "cotangent");
    for (size_t i = 0; i < s->n; i++)
        s->cotangent[i] = tb_rng_normal(r, i);
    TB_TRY(tb_piece_open(s->ctx, s->a, &s->piece, s->t->run.attr, TOKENS,
                         TB_PASS_BWD, &s->r));
    return fill(s);
}

static tb_status run_step(step *s, int f, tb_large *out)
{
    lengths at[2];
    TB_TRY(open_step(s, f));
    for (int i = 0; i < 2; i++)
        TB_TRY(measure(s, times[i], &at[i]));
    out->nstreams = s->nstreams;
    for (int k = 0; k < s->nstreams; k++) {
        out->value[k] = growth(at[0].value[k], at[1].value[k]);
        out->jacobian[k] = growth(at[0].down[k], at[1].down[k]);
        out->lane[k] = growth(at[0].lane[k], at[1].lane[k]);
    }
    return TB_OK;
}

tb_status tb_corner_large(tb_ctx *ctx, const tb_block *b,
                          const tb_settings *settings, size_t l, int f,
                          tb_large *out)
{
    tb_settings small = small_settings(settings);
    tb_trial t;
    tb_status s = tb_trial_open(&t, ctx, b, &small, l, TOKENS, SEED);
    step one = {.ctx = ctx, .a = &t.arena, .t = &t};
    *out = (tb_large){.nstreams = 0};
    if (s == TB_OK)
        s = run_step(&one, f, out);
    if (one.r.plan)
        tb_plan_destroy(ctx, one.r.plan);
    tb_trial_close(&t);
    return s;
}
