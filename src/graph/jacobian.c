/* SPDX-License-Identifier: MIT */
/* The Jacobian as a formula with factors that do not commute, built node by
 * node from the op table's rules. A sublayer stays one symbol J_F(arg) unless
 * it is to be opened. */
#include "graph/jx.h"

/** Factors that a node is asked for: its own (one per input), and what it is
 * where it multiplies a stream. The same ones for every stream. */
enum { OWN_FACTOR = TB_OP_INPUTS, OWN_SCALE, OWN };

typedef struct maker {
    tb_arena *a;
    const tb_graph *g;
    tb_jac_mode mode;
    const tb_jx **at;         /* per node, relative to one stream of the step */
    const tb_jx *(*own)[OWN]; /* per node: factors made so far */
    int now;                  /* node whose rule is being applied */
    int region;               /* sublayer it is in, -1: none */
    bool wide;                /* that one reads more of x than its argument */
    bool *silent;             /* per node: 0 where every F is */
    int from;                 /* node that it is all relative to */
} maker;

static const tb_jx *prod(maker *m, const tb_jx *l, const tb_jx *r)
{
    return tb_jx_prod(m->a, l, r);
}

static const tb_jx *sum(maker *m, const tb_jx *l, const tb_jx *r, int sign)
{
    return tb_jx_sum(m->a, l, r, sign);
}

/* A factor that node `of` keeps under `slot`. */
static const tb_jx *keep(maker *m, int of, int slot, tb_jx made)
{
    const tb_jx **kept = &m->own[of][slot];
    if (!*kept) {
        tb_jx *x = TB_NEW(m->a, tb_jx);
        if (x)
            *x = made;
        *kept = x;
    }
    return *kept;
}

static const tb_jx *leaf(maker *m, tb_jx_kind kind, const char *name, int node)
{
    return keep(
        m, m->now, 0,
        (tb_jx){.kind = kind, .name = name, .node = node, .at = m->now});
}

static const tb_jx *coef(maker *m, const tb_attr *attr)
{
    if (attr->expr == NULL && attr->value == 1)
        return &tb_jx_one;
    return keep(
        m, m->now, OWN_SCALE,
        (tb_jx){.kind = TB_JX_COEF, .node = -1, .at = m->now, .attr = attr});
}

static bool is_zero_attr(const tb_attr *a)
{
    return a->expr ? a->expr->kind == TB_EXPR_NUMBER && a->expr->number == 0
                   : a->value == 0;
}

/* What makes 0 of 0, element by element. */
static bool keeps_zero(const tb_op *op)
{
    static const tb_op *const ops[] = {
        &tb_op_relu, &tb_op_gelu, &tb_op_gelu_tanh, &tb_op_silu,
        &tb_op_tanh, &tb_op_abs,  &tb_op_skipdrop,  &tb_op_drop};
    for (size_t i = 0; i < TB_LEN(ops); i++)
        if (op == ops[i])
            return true;
    return op->alias;
}

/* Whether node i, inside the step, is 0 with every F. */
static bool is_silent(const maker *m, int i)
{
    const tb_node *n = &m->g->nodes[i];
    bool first = n->nin && m->silent[n->in[0]];
    bool second = n->nin > 1 && m->silent[n->in[1]];
    if (n->region >= 0)
        return true;
    if (n->op->jac == TB_JAC_PROD)
        return first || second;
    if (n->op->jac == TB_JAC_SUM || n->op->jac == TB_JAC_DIFF)
        return first && (second || n->nin < 2);
    if (n->op->jac == TB_JAC_MIX) {
        for (int j = 1; j < n->nin - 1; j++)
            first = first && m->silent[n->in[j]];
        return first || m->silent[n->in[n->nin - 1]];
    }
    if (n->op->jac == TB_JAC_QUOT)
        return first;
    if (n->op->jac == TB_JAC_AFFINE)
        return first && is_zero_attr(&n->attr[TB_ATTR_AFFINE_OFFSET]);
    return first && keeps_zero(n->op);
}

/* The factor a value stands for when it multiplies a stream. */
static const tb_jx *factor_of(maker *m, int node)
{
    if (m->mode == TB_JAC_SILENT && m->silent[node])
        return &tb_jx_zero;
    bool scalar = m->g->nodes[node].shape.kind == TB_SHAPE_SCALAR;
    return keep(m, node, OWN_FACTOR,
                (tb_jx){.kind = scalar ? TB_JX_SCALAR : TB_JX_DIAG,
                        .node = node,
                        .at = m->now});
}

static const tb_jx *product_rule(maker *m, const tb_node *n)
{
    const tb_jx *l = m->at[n->in[0]], *r = m->at[n->in[1]];
    const tb_jx *left = l->kind == TB_JX_ZERO
                            ? &tb_jx_zero
                            : prod(m, factor_of(m, n->in[1]), l);
    const tb_jx *right = r->kind == TB_JX_ZERO
                             ? &tb_jx_zero
                             : prod(m, factor_of(m, n->in[0]), r);
    return sum(m, left, right, 1);
}

/* y = a/b: (J(a) - diag(y) J(b)) / b. A scalar does not depend on the stream.
 */
static const tb_jx *quotient_rule(maker *m, int node)
{
    const tb_node *n = &m->g->nodes[node];
    bool scalar = m->g->nodes[n->in[1]].shape.kind == TB_SHAPE_SCALAR;
    const tb_jx *a = m->at[n->in[0]], *b = m->at[n->in[1]];
    const tb_jx *x = keep(m, m->now, OWN_SCALE,
                          (tb_jx){.kind = scalar ? TB_JX_SCALAR : TB_JX_DIAG,
                                  .node = n->in[1],
                                  .at = m->now,
                                  .inverse = true});
    if (b->kind != TB_JX_ZERO)
        a = sum(m, a, prod(m, factor_of(m, node), b), -1);
    return prod(m, x, a);
}

/* J_mha,q J(q) + J_mha,k J(k) + J_mha,v J(v); J_concat,1 J(a) + ... */
static const tb_jx *multi(maker *m, const tb_node *n)
{
    static const char *const input[] = {"q", "k", "v"};
    const tb_jx *total = &tb_jx_zero;
    bool letters = n->op == &tb_op_mha;
    int count = letters ? (int)TB_LEN(input) : n->nin;
    for (int i = 0; i < count; i++) {
        const char *name =
            letters ? tb_arena_printf(m->a, "%s,%s", n->op->symbol, input[i])
                    : tb_arena_printf(m->a, "%s,%d", n->op->symbol, i + 1);
        if (!name)
            return NULL;
        const tb_jx *x = keep(m, m->now, i,
                              (tb_jx){.kind = TB_JX_SYM,
                                      .name = name,
                                      .node = -1,
                                      .at = m->now,
                                      .input = i});
        total = sum(m, total, prod(m, x, m->at[n->in[i]]), 1);
    }
    return total;
}

/* w_1 J(a) + w_2 J(b) + ... and, where the weights depend on the stream,
 * J_mix J(w) */
static const tb_jx *mix_rule(maker *m, const tb_node *n)
{
    const tb_jx *total = &tb_jx_zero;
    int last = n->nin - 1;
    bool own = m->g->nodes[n->in[last]].shape.kind == TB_SHAPE_STREAM;
    tb_jx made = {.node = n->in[last], .at = m->now};
    made.kind = own ? TB_JX_TOKENS : TB_JX_SCALAR;
    for (; made.input < last; made.input++)
        total = sum(m, total,
                    prod(m, keep(m, m->now, made.input, made),
                         m->at[n->in[made.input]]),
                    1);
    made = (tb_jx){.kind = TB_JX_SYM, .name = n->op->symbol, .node = -1};
    made.at = m->now;
    made.input = last;
    return sum(m, total,
               prod(m, keep(m, m->now, last, made), m->at[n->in[last]]), 1);
}

static const char *weight_name(maker *m, const tb_node *n)
{
    const char *full = m->g->nodes[n->in[1]].name, *dot = strchr(full, '.');
    size_t len = dot ? (size_t)(dot - full) : strlen(full);
    if (dot && strchr(dot + 1, '.')) { /* attn.q.weight -> q */
        const char *q = dot + 1;
        return tb_arena_strndup(m->a, q, (size_t)(strchr(q, '.') - q));
    }
    return tb_arena_strndup(m->a, full, len);
}

static const tb_jx *node_rule(maker *m, int i)
{
    const tb_node *n = &m->g->nodes[i];
    const tb_jx *x = n->nin ? m->at[n->in[0]] : &tb_jx_zero;
    if (m->mode == TB_JAC_LANE && n->op->lane == TB_LANE_CUT)
        return &tb_jx_zero;
    switch (n->op->jac) {
    case TB_JAC_LEAF:
    case TB_JAC_ZERO:
        return &tb_jx_zero;
    case TB_JAC_SUM:
        return n->nin < 2 ? x : sum(m, x, m->at[n->in[1]], 1);
    case TB_JAC_DIFF:
        return sum(m, x, m->at[n->in[1]], -1);
    case TB_JAC_AFFINE:
        return prod(m, coef(m, &n->attr[TB_ATTR_AFFINE_SCALE]), x);
    case TB_JAC_PROD:
        return product_rule(m, n);
    case TB_JAC_QUOT:
        return quotient_rule(m, i);
    case TB_JAC_SYMBOL:
        return prod(m, leaf(m, TB_JX_SYM, n->op->symbol, n->in[0]), x);
    case TB_JAC_DIAG:
        return prod(m, leaf(m, TB_JX_SLOPE, n->op->symbol, n->in[0]), x);
    case TB_JAC_WEIGHT:
        return prod(m, leaf(m, TB_JX_WEIGHT, weight_name(m, n), -1), x);
    case TB_JAC_MULTI:
        return multi(m, n);
    case TB_JAC_MIX:
        return mix_rule(m, n);
    }
    return &tb_jx_zero;
}

/* What a sublayer makes of the memory: J_F,memory(arg). */
static const tb_jx *memory_rule(maker *m, const tb_region *r)
{
    if (m->at[r->in[1]]->kind == TB_JX_ZERO)
        return &tb_jx_zero;
    const char *name = tb_arena_printf(m->a, "%s,memory", r->shown);
    const tb_jx *x = name ? keep(m, m->now, 1,
                                 (tb_jx){.kind = TB_JX_SYM,
                                         .name = name,
                                         .node = r->in[0],
                                         .at = m->now,
                                         .input = 1})
                          : NULL;
    return prod(m, x, m->at[r->in[1]]);
}

/* A closed sublayer: one symbol at its output, nothing inside. */
static const tb_jx *region_rule(maker *m, int i)
{
    const tb_region *r = &m->g->regions[m->g->nodes[i].region];
    if (i != r->out || m->mode == TB_JAC_SILENT || m->mode == TB_JAC_LANE)
        return &tb_jx_zero;
    const tb_jx *own =
        prod(m, leaf(m, TB_JX_SYM, r->shown, r->in[0]), m->at[r->in[0]]);
    return r->nin < 2 ? own : sum(m, own, memory_rule(m, r), 1);
}

/* A definition may read the section's names: then J_F(arg) is not all. An
 * element of a list enters where it is read, maybe inside. */
static bool reads_around(const maker *m, const tb_region *r)
{
    for (int i = r->first; i <= r->last; i++)
        for (int k = 0; k < m->g->nodes[i].nin; k++) {
            int a = m->g->nodes[i].in[k];
            bool argument = a == r->in[0] || (r->nin > 1 && a == r->in[1]);
            bool counts =
                a == m->from || (a < r->first && m->at[a]->kind != TB_JX_ZERO);
            if (counts && !argument)
                return true;
        }
    return false;
}

/* Whether node i is inside a sublayer that is written as one symbol. */
static bool is_closed(maker *m, int i)
{
    int region = m->g->nodes[i].region;
    if (region < 0 || m->mode == TB_JAC_OPEN)
        return false;
    if (region != m->region) {
        m->region = region;
        m->wide = reads_around(m, &m->g->regions[region]);
    }
    return m->mode == TB_JAC_SILENT || m->mode == TB_JAC_LANE || !m->wide;
}

/* Nodes after `first` up to `last`, relative to `stream`; those of `held`
 * depend on nothing. */
static tb_status build_step(maker *m, const int *held, int nheld, int stream,
                            int last)
{
    int first = held[0];
    m->region = -1;
    m->from = held[stream];
    for (int i = 0; i < nheld; i++)
        first = held[i] < first ? held[i] : first;
    for (int i = first; i <= last; i++) {
        bool fixed = false;
        for (int k = 0; k < nheld; k++)
            fixed = fixed || held[k] == i;
        m->now = i;
        m->silent[i] = !fixed && is_silent(m, i);
        m->at[i] = fixed             ? &tb_jx_zero
                   : is_closed(m, i) ? region_rule(m, i)
                                     : node_rule(m, i);
        if (i == held[stream])
            m->at[i] = &tb_jx_one;
        if (!m->at[i])
            return TB_ERR_MEMORY;
    }
    return TB_OK;
}

static tb_status begin(maker *m)
{
    size_t n = (size_t)m->g->nnodes;
    m->region = -1;
    m->at = tb_arena_alloc(m->a, n * sizeof *m->at);
    m->own = tb_arena_alloc(m->a, n * sizeof *m->own);
    m->silent = tb_arena_alloc(m->a, n * sizeof *m->silent);
    for (size_t i = 0; m->at && i < n; i++)
        m->at[i] = &tb_jx_zero;
    return m->at && m->own && m->silent ? TB_OK : TB_ERR_MEMORY;
}

/* Two names of one value here: what follows is counted at the first. */
static bool is_second(const tb_cut *cut, int stream)
{
    for (int i = 0; i < stream; i++)
        if (cut->nodes[i] == cut->nodes[stream])
            return true;
    return false;
}

static tb_status step(maker *m, int f, const tb_jx **entries)
{
    const tb_cut *in = &m->g->cuts[f], *out = &m->g->cuts[f + 1];
    int n = m->g->nstreams, last = 0;
    for (int i = 0; i < n; i++)
        last = out->nodes[i] > last ? out->nodes[i] : last;
    for (int j = 0; j < n; j++) {
        bool second = is_second(in, j);
        if (!second)
            TB_TRY(build_step(m, in->nodes, n, j, last));
        for (int i = 0; i < n; i++)
            entries[i * n + j] = second ? &tb_jx_zero : m->at[out->nodes[i]];
    }
    return TB_OK;
}

tb_status tb_jacobian_build(tb_ctx *ctx, tb_arena *arena, const tb_graph *g,
                            tb_jac_mode mode, tb_jacobian *out)
{
    maker m = {.a = arena, .g = g, .mode = mode};
    int n = g->ncuts - 1, size = g->nstreams * g->nstreams;
    (void)ctx;
    TB_TRY(begin(&m));
    *out = (tb_jacobian){.graph = g,
                         .mode = mode,
                         .nfactors = n,
                         .nstreams = g->nstreams,
                         .silent = m.silent};
    out->entries =
        tb_arena_alloc(arena, (size_t)(n * size) * sizeof *out->entries);
    if (!out->entries)
        return TB_ERR_MEMORY;
    for (int f = 0; f < n; f++)
        TB_TRY(step(&m, f, out->entries + f * size));
    return TB_OK;
}

tb_status tb_jacobian_between(tb_arena *arena, const tb_graph *g, int from,
                              int to, tb_jac_mode mode, const tb_jx **out)
{
    maker m = {.a = arena, .g = g, .mode = mode};
    TB_TRY(begin(&m));
    TB_TRY(build_step(&m, &from, 1, 0, to > from ? to : from));
    *out = m.at[to];
    return TB_OK;
}

tb_status tb_jacobian_sublayer(tb_arena *arena, const tb_graph *g, int region,
                               int input, const tb_jx **out)
{
    maker m = {.a = arena, .g = g, .mode = TB_JAC_OPEN};
    const tb_region *r = &g->regions[region];
    int from = r->in[input];
    TB_TRY(begin(&m));
    m.at[from] = &tb_jx_one;
    for (m.now = r->first; m.now <= r->last; m.now++) {
        if (m.now != from)
            m.at[m.now] = node_rule(&m, m.now);
        if (!m.at[m.now])
            return TB_ERR_MEMORY;
    }
    *out = m.at[r->out];
    return TB_OK;
}

/* --- the memory ----------------------------------------------------------- */

static int memory_of(const tb_graph *g)
{
    for (int i = 0; i < g->ninputs; i++)
        if (tb_streq(g->nodes[g->inputs[i]].name, "memory"))
            return g->inputs[i];
    return -1;
}

/* What step f of a single stream takes from the memory. */
static tb_status memory_step(maker *m, int f, int memory, const tb_jx **out)
{
    const int held[] = {m->g->cuts[f].nodes[0], memory};
    int last = m->g->cuts[f + 1].nodes[0];
    TB_TRY(build_step(m, held, 2, 1, last));
    *out = m->at[last];
    return TB_OK;
}

tb_status tb_jacobian_memory(tb_ctx *ctx, tb_arena *arena, const tb_graph *g,
                             tb_jac_mode mode, tb_jacobian *out, bool *said)
{
    maker m = {.a = arena, .g = g, .mode = mode};
    int memory = memory_of(g), readers = 0;
    *said = false;
    if (memory < 0 || g->nstreams > 1)
        return TB_OK;
    TB_TRY(tb_jacobian_build(ctx, arena, g, mode, out));
    TB_TRY(begin(&m));
    for (int f = 0; f < out->nfactors; f++) {
        const tb_jx *own;
        TB_TRY(memory_step(&m, f, memory, &own));
        if (own->kind == TB_JX_ZERO)
            continue;
        readers++;
        for (int below = 0; below < f; below++)
            out->entries[below] = &tb_jx_one;
        out->entries[f] = own;
    }
    *said = readers == 1;
    return TB_OK;
}
