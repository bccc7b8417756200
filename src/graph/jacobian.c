/* SPDX-License-Identifier: MIT */
/* The Jacobian as a formula with factors that do not commute, built node by
 * node from the op table's rules. A sublayer stays one symbol J_F(arg) unless
 * it is to be opened. */
#include "graph/graph.h"

typedef struct maker {
    tb_arena *a;
    const tb_graph *g;
    tb_jac_mode mode;
    const tb_jx **at; /* per node, relative to the step's x */
    int now;          /* node whose rule is being applied */
    int region;       /* sublayer it is in, -1: none */
    bool wide;        /* that one reads more of x than its argument */
    bool *silent;     /* per node: 0 where every F is */
} maker;

/* Longer sums and products nest: flattening them again and again is what
 * makes a long text slow. */
enum { FLAT_MAX = 64 };

static const tb_jx zero = {.kind = TB_JX_ZERO, .node = -1};
static const tb_jx one = {.kind = TB_JX_ONE, .node = -1};

static tb_jx *leaf(maker *m, tb_jx_kind kind, const char *name, int node)
{
    tb_jx *x = TB_NEW(m->a, tb_jx);
    if (x)
        *x = (tb_jx){.kind = kind, .name = name, .node = node, .at = m->now};
    return x;
}

static bool flattens(const tb_jx *x, tb_jx_kind kind)
{
    return x->kind == kind && x->n <= FLAT_MAX;
}

static const tb_jx *pair(maker *m, tb_jx_kind kind, const tb_jx *l,
                         const tb_jx *r, signed char sign)
{
    const tb_jx *parts[2] = {l, r};
    int n = 0;
    if (!l || !r)
        return NULL;
    for (int i = 0; i < 2; i++)
        n += flattens(parts[i], kind) ? parts[i]->n : 1;
    tb_jx *x = TB_NEW(m->a, tb_jx);
    const tb_jx **items = tb_arena_alloc(m->a, (size_t)n * sizeof *items);
    signed char *signs = tb_arena_alloc(m->a, (size_t)n);
    if (!x || !items || !signs)
        return NULL;
    *x = (tb_jx){.kind = kind, .node = -1, .items = items, .signs = signs};
    for (int i = 0; i < 2; i++) {
        const tb_jx *p = parts[i];
        bool flat = flattens(p, kind);
        for (int j = 0; j < (flat ? p->n : 1); j++) {
            signed char s = flat ? p->signs[j] : 1;
            items[x->n] = flat ? p->items[j] : p;
            signs[x->n++] = i ? (signed char)(s * sign) : s;
        }
    }
    return x;
}

static bool is_number(const tb_jx *x)
{
    return x->kind == TB_JX_COEF || x->kind == TB_JX_SCALAR;
}

/* All but the first factor of a product. */
static const tb_jx *rest(maker *m, const tb_jx *x)
{
    tb_jx *r = TB_NEW(m->a, tb_jx);
    if (x->n == 2 || !r)
        return r ? x->items[1] : NULL;
    *r = *x;
    r->items++;
    r->signs++;
    r->n--;
    return r;
}

/* Numbers commute: they go to the front. A number alone is written c I. */
static const tb_jx *prod(maker *m, const tb_jx *l, const tb_jx *r)
{
    if (!l || !r)
        return NULL;
    if (l->kind == TB_JX_ZERO || r->kind == TB_JX_ZERO)
        return &zero;
    if (l->kind == TB_JX_ONE)
        return r;
    if (r->kind == TB_JX_ONE && !is_number(l))
        return l;
    if (r->kind == TB_JX_PROD && is_number(r->items[0]) && !is_number(l))
        return pair(m, TB_JX_PROD, r->items[0], prod(m, l, rest(m, r)), 1);
    return pair(m, TB_JX_PROD, l, r, 1);
}

static const tb_jx *minus_one(maker *m)
{
    static const tb_attr minus = {NULL, -1, NULL};
    tb_jx *x = TB_NEW(m->a, tb_jx);
    if (x)
        *x = (tb_jx){.kind = TB_JX_COEF, .node = -1, .at = -1, .attr = &minus};
    return x;
}

static const tb_jx *sum(maker *m, const tb_jx *l, const tb_jx *r, int sign)
{
    if (!l || !r)
        return NULL;
    if (r->kind == TB_JX_ZERO)
        return l;
    if (l->kind == TB_JX_ZERO)
        return sign > 0 ? r : prod(m, minus_one(m), r);
    return pair(m, TB_JX_SUM, l, r, (signed char)sign);
}

static const tb_jx *coef(maker *m, const tb_attr *attr)
{
    tb_jx *x = TB_NEW(m->a, tb_jx);
    if (attr->expr == NULL && attr->value == 1)
        return &one;
    if (x)
        *x =
            (tb_jx){.kind = TB_JX_COEF, .node = -1, .at = m->now, .attr = attr};
    return x;
}

static bool is_zero_attr(const tb_attr *a)
{
    return a->expr ? a->expr->kind == TB_EXPR_NUMBER && a->expr->number == 0
                   : a->value == 0;
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
    if (n->op->jac == TB_JAC_AFFINE)
        return first && is_zero_attr(&n->attr[TB_ATTR_AFFINE_OFFSET]);
    return first &&
           (n->op == &tb_op_drop || n->op == &tb_op_skipdrop || n->op->alias);
}

/* The factor a value stands for when it multiplies a stream. */
static const tb_jx *factor_of(maker *m, int node)
{
    if (m->mode == TB_JAC_SILENT && m->silent[node])
        return &zero;
    bool scalar = m->g->nodes[node].shape.kind == TB_SHAPE_SCALAR;
    return leaf(m, scalar ? TB_JX_SCALAR : TB_JX_DIAG, NULL, node);
}

static const tb_jx *product_rule(maker *m, const tb_node *n)
{
    const tb_jx *l = m->at[n->in[0]], *r = m->at[n->in[1]];
    const tb_jx *left =
        l->kind == TB_JX_ZERO ? &zero : prod(m, factor_of(m, n->in[1]), l);
    const tb_jx *right =
        r->kind == TB_JX_ZERO ? &zero : prod(m, factor_of(m, n->in[0]), r);
    return sum(m, left, right, 1);
}

/* Division is by a learned scalar, which does not depend on the stream. */
static const tb_jx *quotient_rule(maker *m, const tb_node *n)
{
    tb_jx *x = TB_NEW(m->a, tb_jx);
    if (!x)
        return NULL;
    *x = (tb_jx){.kind = TB_JX_SCALAR, .node = n->in[1], .inverse = true};
    return prod(m, x, m->at[n->in[0]]);
}

/* J_mha,q J(q) + J_mha,k J(k) + J_mha,v J(v); J_concat,1 J(a) + ... */
static const tb_jx *multi(maker *m, const tb_node *n)
{
    static const char *const input[] = {"q", "k", "v"};
    const tb_jx *total = &zero;
    bool letters = n->op == &tb_op_mha;
    int count = letters ? (int)TB_LEN(input) : n->nin;
    for (int i = 0; i < count; i++) {
        const char *name =
            letters ? tb_arena_printf(m->a, "%s,%s", n->op->symbol, input[i])
                    : tb_arena_printf(m->a, "%s,%d", n->op->symbol, i + 1);
        if (!name)
            return NULL;
        tb_jx *x = leaf(m, TB_JX_SYM, name, -1);
        if (!x)
            return NULL;
        x->input = i;
        total = sum(m, total, prod(m, x, m->at[n->in[i]]), 1);
    }
    return total;
}

/* w_1 J(a) + w_2 J(b) + ... and, where the weights depend on the stream,
 * J_mix J(w) */
static const tb_jx *mix_rule(maker *m, const tb_node *n)
{
    const tb_jx *total = &zero;
    int last = n->nin - 1;
    bool own = m->g->nodes[n->in[last]].shape.kind == TB_SHAPE_STREAM;
    for (int i = 0; i < last; i++) {
        tb_jx *x =
            leaf(m, own ? TB_JX_TOKENS : TB_JX_SCALAR, NULL, n->in[last]);
        if (!x)
            return NULL;
        x->input = i;
        total = sum(m, total, prod(m, x, m->at[n->in[i]]), 1);
    }
    tb_jx *x = leaf(m, TB_JX_SYM, n->op->symbol, -1);
    if (!x)
        return NULL;
    x->input = last;
    return sum(m, total, prod(m, x, m->at[n->in[last]]), 1);
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
    const tb_jx *x = n->nin ? m->at[n->in[0]] : &zero;
    switch (n->op->jac) {
    case TB_JAC_LEAF:
    case TB_JAC_ZERO:
        return &zero;
    case TB_JAC_SUM:
        return n->nin < 2 ? x : sum(m, x, m->at[n->in[1]], 1);
    case TB_JAC_DIFF:
        return sum(m, x, m->at[n->in[1]], -1);
    case TB_JAC_AFFINE:
        return prod(m, coef(m, &n->attr[TB_ATTR_AFFINE_SCALE]), x);
    case TB_JAC_PROD:
        return product_rule(m, n);
    case TB_JAC_QUOT:
        return quotient_rule(m, n);
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
    return &zero;
}

/* A closed sublayer: one symbol at its output, nothing inside. */
static const tb_jx *region_rule(maker *m, int i)
{
    const tb_region *r = &m->g->regions[m->g->nodes[i].region];
    if (i != r->out || m->mode == TB_JAC_SILENT)
        return &zero;
    return prod(m, leaf(m, TB_JX_SYM, r->shown, r->in[0]), m->at[r->in[0]]);
}

/* A definition may read the section's names: then J_F(arg) is not all. */
static bool reads_around(const maker *m, const tb_region *r)
{
    for (int i = r->first; i <= r->last; i++)
        for (int k = 0; k < m->g->nodes[i].nin; k++) {
            int a = m->g->nodes[i].in[k];
            if (a < r->first && a != r->in[0] && m->at[a]->kind != TB_JX_ZERO)
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
    return m->mode == TB_JAC_SILENT || !m->wide;
}

/* One step; nodes before it, other than its x, do not depend on x. */
static tb_status build_step(maker *m, int from, int to, const tb_jx **out)
{
    m->at[from] = &one;
    m->silent[from] = false;
    for (int i = from + 1; i <= to; i++) {
        m->now = i;
        m->silent[i] = is_silent(m, i);
        m->at[i] = is_closed(m, i) ? region_rule(m, i) : node_rule(m, i);
        if (!m->at[i])
            return TB_ERR_MEMORY;
    }
    *out = m->at[to];
    return TB_OK;
}

tb_status tb_jacobian_build(tb_ctx *ctx, tb_arena *arena, const tb_graph *g,
                            tb_jac_mode mode, tb_jacobian *out)
{
    maker m = {.a = arena, .g = g, .mode = mode, .region = -1};
    int n = g->nboundaries - 1;
    (void)ctx;
    m.at = tb_arena_alloc(arena, (size_t)g->nnodes * sizeof *m.at);
    m.silent = tb_arena_alloc(arena, (size_t)g->nnodes * sizeof *m.silent);
    out->factors = tb_arena_alloc(arena, (size_t)n * sizeof *out->factors);
    if (!m.at || !m.silent || !out->factors)
        return TB_ERR_MEMORY;
    out->graph = g;
    out->mode = mode;
    out->nfactors = n;
    out->silent = m.silent;
    for (int i = 0; i < g->nnodes; i++)
        m.at[i] = &zero;
    for (int i = 0; i < n; i++)
        TB_TRY(build_step(&m, g->boundaries[i].node, g->boundaries[i + 1].node,
                          &out->factors[i]));
    return TB_OK;
}
