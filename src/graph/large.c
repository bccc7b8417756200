/* SPDX-License-Identifier: MIT */
/* F -> t F, t -> infinity: powers of t by the ops' rules. A norm takes its
 * input's power away, its Jacobian is that power smaller; of a sum only what
 * grows most is left. */
#include "graph/jx.h"
#include "graph/pen.h"

/** Terms are shared and would be walked again and again: VISITS at most. */
enum { NONE = TB_LARGE_NONE, UNKNOWN = TB_LARGE_UNKNOWN, VISITS = 20000 };

typedef struct grower {
    tb_arena *a;
    const tb_graph *g;
    signed char *degree;
    int visits;
} grower;

static int clamp(int d)
{
    return d > UNKNOWN / 2 ? UNKNOWN : d < NONE / 2 ? NONE : d;
}

static int plus(int a, int b)
{
    if (a == NONE || b == NONE)
        return NONE;
    return a == UNKNOWN || b == UNKNOWN ? UNKNOWN : clamp(a + b);
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* --- values --------------------------------------------------------------- */

/** What an elementwise function does to values that grow. */
static const struct {
    const tb_op *op;
    bool grows; /* like its input; else it stays */
} elementwise[] = {
    {&tb_op_relu, true}, {&tb_op_gelu, true},     {&tb_op_gelu_tanh, true},
    {&tb_op_silu, true}, {&tb_op_abs, true},      {&tb_op_tanh, false},
    {&tb_op_dyt, false}, {&tb_op_sigmoid, false}, {&tb_op_derf, false},
};

/* 1 grows, 0 stays, -1: not in the table. */
static int elementwise_of(const tb_op *op)
{
    for (size_t i = 0; i < TB_LEN(elementwise); i++)
        if (elementwise[i].op == op)
            return elementwise[i].grows;
    return -1;
}

/* Ops that are neither sums nor products. */
static int other_value(const tb_node *n, int in)
{
    int kind = elementwise_of(n->op);
    if (n->op->lane == TB_LANE_TOLL || kind == 0)
        return in > 0 ? 0 : in;
    if (in <= 0 || kind == 1 || n->op->jac == TB_JAC_WEIGHT || n->op->alias ||
        n->op == &tb_op_drop || n->op == &tb_op_skipdrop)
        return in == NONE ? 0 : in;
    return UNKNOWN;
}

static int value_of(const grower *w, int i)
{
    const tb_node *n = &w->g->nodes[i];
    int l = n->nin ? w->degree[n->in[0]] : 0;
    int r = n->nin > 1 ? w->degree[n->in[1]] : l;
    switch (n->op->jac) {
    case TB_JAC_LEAF:
        return 0;
    case TB_JAC_SUM:
    case TB_JAC_DIFF:
        return larger(l, r);
    case TB_JAC_AFFINE:
        return larger(l, 0);
    case TB_JAC_PROD:
        return plus(l, r);
    case TB_JAC_QUOT:
        return r > 0 ? UNKNOWN : l;
    case TB_JAC_MIX:
    case TB_JAC_MULTI:
        for (int k = 0; k < n->nin; k++)
            l = larger(l, w->degree[n->in[k]]);
        return l > 0 ? UNKNOWN : 0;
    case TB_JAC_SYMBOL:
    case TB_JAC_DIAG:
    case TB_JAC_WEIGHT:
    case TB_JAC_ZERO:
        return other_value(n, l);
    }
    return UNKNOWN;
}

/* A sublayer of what grows: how it grows itself is not known. */
static int branch_value(const grower *w, const tb_region *r)
{
    return w->degree[r->in[0]] > 0 ? UNKNOWN : 1;
}

static void grow(const grower *w, const tb_cut *in, int nstreams)
{
    for (int i = 0; i < w->g->nnodes; i++) {
        int region = w->g->nodes[i].region;
        bool held = false;
        for (int k = 0; k < nstreams; k++)
            held = held || in->nodes[k] == i;
        if (held)
            w->degree[i] = 0;
        else if (region >= 0 && w->g->regions[region].out == i)
            w->degree[i] = (signed char)branch_value(w, &w->g->regions[region]);
        else if (region >= 0)
            w->degree[i] = 0;
        else
            w->degree[i] = (signed char)value_of(w, i);
    }
}

/* --- terms ---------------------------------------------------------------- */

static const tb_jx *leading(grower *w, const tb_jx *x, int *degree);

/* J_F t, J_LN at what grows, others at what does not. */
static int symbol_degree(const grower *w, const tb_jx *x)
{
    const tb_node *n = &w->g->nodes[x->at];
    int in = n->nin ? w->degree[n->in[x->input]] : 0;
    if (n->op == &tb_op_branch) {
        in = w->degree[w->g->regions[n->region].in[0]];
        return in > 0 ? UNKNOWN : 1;
    }
    if (n->region >= 0 || in == UNKNOWN)
        return UNKNOWN; /* inside a sublayer that is written open */
    if (n->op->lane == TB_LANE_TOLL)
        return in > 0 ? -in : 0;
    return in > 0 && n->op != &tb_op_drop && n->op != &tb_op_skipdrop ? UNKNOWN
                                                                      : 0;
}

static int slope_degree(const grower *w, const tb_jx *x)
{
    int in = w->degree[x->node];
    if (in <= 0)
        return 0;
    int kind = in == UNKNOWN ? -1 : elementwise_of(w->g->nodes[x->at].op);
    return kind == 1 ? 0 : kind == 0 ? NONE : UNKNOWN;
}

static int leaf_degree(const grower *w, const tb_jx *x)
{
    switch (x->kind) {
    case TB_JX_ZERO:
        return NONE;
    case TB_JX_SYM:
        return symbol_degree(w, x);
    case TB_JX_SLOPE:
        return slope_degree(w, x);
    case TB_JX_DIAG:
    case TB_JX_SCALAR:
    case TB_JX_TOKENS:
        return x->inverse && w->degree[x->node] > 0 ? UNKNOWN
                                                    : w->degree[x->node];
    case TB_JX_ONE:
    case TB_JX_SUM:
    case TB_JX_PROD:
    case TB_JX_COEF:
        return 0;
    case TB_JX_WEIGHT:
        return w->g->nodes[x->at].region >= 0 ? UNKNOWN : 0;
    }
    return UNKNOWN;
}

static const tb_jx *leading_product(grower *w, const tb_jx *x, int *degree)
{
    const tb_jx *product = &tb_jx_one;
    *degree = 0;
    for (int i = 0; i < x->n && product; i++) {
        int d;
        product = tb_jx_prod(w->a, product, leading(w, x->items[i], &d));
        *degree = plus(*degree, d);
    }
    return product;
}

static const tb_jx *leading_sum(grower *w, const tb_jx *x, int *degree)
{
    const tb_jx *sum = &tb_jx_zero;
    *degree = NONE;
    for (int i = 0; i < x->n && sum; i++) {
        int d;
        const tb_jx *item = leading(w, x->items[i], &d);
        if (d > *degree)
            sum = tb_jx_sum(w->a, &tb_jx_zero, item, x->signs[i]);
        else if (d == *degree && d != NONE)
            sum = tb_jx_sum(w->a, sum, item, x->signs[i]);
        *degree = larger(*degree, d);
    }
    return sum;
}

static const tb_jx *leading(grower *w, const tb_jx *x, int *degree)
{
    *degree = UNKNOWN;
    if (w->visits++ > VISITS)
        return x;
    if (x->kind == TB_JX_PROD)
        return leading_product(w, x, degree);
    if (x->kind == TB_JX_SUM)
        return leading_sum(w, x, degree);
    *degree = leaf_degree(w, x);
    return *degree == NONE ? &tb_jx_zero : x;
}

/* Row i: entries that grow less than the row are 0. */
static tb_status leading_row(grower *w, const tb_jx **row, int n,
                             signed char *degree)
{
    int degrees[TB_STREAMS_MOST], most = NONE;
    for (int k = 0; k < n; k++) {
        row[k] = leading(w, row[k], &degrees[k]);
        if (!row[k])
            return TB_ERR_MEMORY;
        most = larger(most, degrees[k]);
    }
    for (int k = 0; k < n; k++)
        if (degrees[k] < most || most == NONE)
            row[k] = &tb_jx_zero;
    *degree = (signed char)most;
    return TB_OK;
}

static tb_status leading_step(grower *w, tb_ctx *ctx, tb_jac_mode mode, int f,
                              tb_jacobian *j, signed char *degrees)
{
    int n = w->g->nstreams;
    TB_TRY(tb_jacobian_build(ctx, w->a, w->g, mode, j));
    for (int i = 0; i < n; i++)
        TB_TRY(leading_row(w, j->entries + (f * n + i) * n, n, &degrees[i]));
    return TB_OK;
}

tb_status tb_large_form_build(tb_ctx *ctx, tb_arena *arena, const tb_graph *g,
                              int step, tb_large_form *out)
{
    grower w = {.a = arena, .g = g};
    tb_jacobian lane;
    *out = (tb_large_form){.nstreams = g->nstreams, .step = step};
    w.degree = tb_arena_alloc(arena, (size_t)g->nnodes);
    out->degree = w.degree;
    if (!w.degree)
        return TB_ERR_MEMORY;
    grow(&w, &g->cuts[step], g->nstreams);
    for (int i = 0; i < g->nstreams; i++)
        out->value[i] = w.degree[g->cuts[step + 1].nodes[i]];
    TB_TRY(leading_step(&w, ctx, TB_JAC_LANE, step, &lane, out->lane));
    TB_TRY(leading_step(&w, ctx, TB_JAC_CLOSED, step, &out->leading,
                        out->jacobian));
    out->leading.degree = w.degree;
    out->leading.first = step;
    out->leading.nfactors = 1;
    out->leading.entries += step * g->nstreams * g->nstreams;
    return TB_OK;
}

tb_status tb_large_value_print(const tb_large_form *l, int i, tb_notation note,
                               tb_buf *out)
{
    const tb_graph *g = l->leading.graph;
    tb_pen p = {.note = note,
                .out = out,
                .g = g,
                .entries = g->cuts[l->step].nodes,
                .streams = g->streams,
                .nentries = g->nstreams,
                .degree = l->degree,
                .start = out->len,
                .most = TB_PEN_BYTES};
    tb_pen_formula(&p, g->cuts[l->step + 1].nodes[i], false);
    return tb_buf_status(out);
}
