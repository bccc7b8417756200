/* SPDX-License-Identifier: MIT */
/* Checks of the norms themselves: what they miss, their eps, kinds, widths,
 * and what is used more than once. */
#include "graph/lint.h"

/* --- what no norm covers ------------------------------------------------- */

static int attention_of(const lint_graph *g, const tb_region *r)
{
    for (int i = r->first; i <= r->last; i++)
        if (g->g->nodes[i].op == &tb_op_mha)
            return i;
    return -1;
}

/* "queries and keys": what of an attention is built from a raw stream. Values
 * are fine where a norm follows. */
static const char *raw_inputs(const lint_graph *g, const tb_node *mha,
                              const lint_use *u)
{
    static const char *const names[] = {NULL,
                                        "queries",
                                        "keys",
                                        "queries and keys",
                                        "values",
                                        "queries and values",
                                        "keys and values",
                                        "queries, keys and "
                                        "values"};
    bool covered = u->norm_out >= 0 || u->norm_inner >= 0;
    int bits = g->raw[mha->in[0]] + 2 * g->raw[mha->in[1]] +
               4 * (g->raw[mha->in[2]] && !covered);
    return names[bits];
}

tb_status lint_unnormed_kv(tb_lint *L, const lint_graph *g)
{
    if (!lint_any_norm(g))
        return TB_OK;
    for (int i = 0; i < g->g->nregions; i++) {
        int at = attention_of(g, &g->g->regions[i]);
        const char *what =
            at < 0 ? NULL : raw_inputs(g, &g->g->nodes[at], &g->use[i]);
        if (what)
            TB_TRY(lint_said(
                L, lint_pos(g, at), TB_LINT_WARN,
                tb_arena_printf(&L->arena,
                                "%s are built from a stream that nothing "
                                "norms and grow with it%s",
                                what,
                                *what == 'v' ? "" : ", and so do the logits")));
    }
    return TB_OK;
}

tb_status lint_unnormed_branch(tb_lint *L, const lint_graph *g)
{
    if (!lint_any_norm(g))
        return TB_OK;
    for (int i = 0; i < g->g->nregions; i++) {
        const tb_region *r = &g->g->regions[i];
        if (attention_of(g, r) < 0 && g->raw[r->out] && g->use[i].norm_out < 0)
            lint_found(L, r->pos);
    }
    return TB_OK;
}

/* --- eps ----------------------------------------------------------------- */

/* The eps of a norm, NaN where it has none. */
static double eps_of(const lint_graph *g, int node)
{
    const tb_op *op = g->g->nodes[node].op;
    double mode = g->attr[node][TB_ATTR_NORM_EPS_MODE];
    if (op->lane != TB_LANE_TOLL || !op->nattr ||
        !tb_streq(op->attr_name[TB_ATTR_NORM_EPS], "eps") ||
        mode == TB_EPS_DTYPE)
        return __builtin_nan("");
    return mode == TB_EPS_NONE ? 0 : g->attr[node][TB_ATTR_NORM_EPS];
}

tb_status lint_eps_zero(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nnodes; i++)
        if (eps_of(g, i) == 0)
            lint_found(L, lint_pos(g, i));
    return TB_OK;
}

tb_status lint_eps_too_small(tb_lint *L, const lint_graph *g)
{
    /* halves of the smallest positive half and float: below, they are 0 */
    const double half = 0x1p-25, single = 0x1p-150;
    for (int i = 0; i < g->g->nnodes; i++) {
        double eps = eps_of(g, i);
        if (!(eps > 0 && eps < half))
            continue;
        bool none = eps < single;
        TB_TRY(lint_said(
            L, lint_pos(g, i), none ? TB_LINT_WARN : TB_LINT_NOTE,
            tb_arena_printf(&L->arena,
                            "eps = %g vanishes beside a variance of 1 in f32 "
                            "and is 0 when stored as %s: a row without spread "
                            "is then divided by 0",
                            eps, none ? "f32" : "f16")));
    }
    return TB_OK;
}

tb_status lint_eps_large(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nnodes; i++) {
        double eps = eps_of(g, i);
        if (!(eps >= 0.01))
            continue;
        TB_TRY(lint_said(
            L, lint_pos(g, i), eps >= 1 ? TB_LINT_FAIL : TB_LINT_WARN,
            tb_arena_printf(&L->arena,
                            "eps = %g is no small number beside a variance of "
                            "1: the norm's output has size %.3g there, and "
                            "less on smaller rows",
                            eps, 1 / tb_sqrt(1 + eps))));
    }
    return TB_OK;
}

/* The first norm of the same op in a graph, -1: none. */
static int first_like(const lint_graph *g, const tb_op *op)
{
    for (int i = 0; i < g->g->nnodes; i++)
        if (g->g->nodes[i].op == op)
            return i;
    return -1;
}

static tb_status compare_eps(tb_lint *L, const lint_graph *g, int node,
                             const lint_graph *with, int other)
{
    double mine = eps_of(g, node), theirs = eps_of(with, other);
    if (!(mine < theirs || mine > theirs))
        return TB_OK;
    return lint_said(
        L, lint_pos(g, node), g == with ? TB_LINT_WARN : TB_LINT_NOTE,
        tb_arena_printf(&L->arena, "eps = %g here and %g in another %s%s", mine,
                        theirs, g->g->nodes[node].op->name,
                        g == with ? " of this section" : ""));
}

tb_status lint_eps_differs(tb_lint *L, const lint_graph *g)
{
    const lint_graph *block = &L->at->kinds[0];
    for (int i = 0; i < g->g->nnodes; i++) {
        const tb_op *op = g->g->nodes[i].op;
        if (op->lane != TB_LANE_TOLL)
            continue;
        int here = first_like(g, op), there = first_like(block, op);
        if (here != i)
            TB_TRY(compare_eps(L, g, i, g, here));
        else if (g != block && there >= 0)
            TB_TRY(compare_eps(L, g, i, block, there));
    }
    return TB_OK;
}

/* --- kinds and widths ---------------------------------------------------- */

tb_status lint_norm_kinds(tb_lint *L, const lint_graph *unused)
{
    const tb_op *first = NULL;
    (void)unused;
    for (int k = -1; k <= L->at->nkinds; k++) {
        const lint_graph *g = k < 0                ? &L->at->stem
                              : k == L->at->nkinds ? &L->at->tail
                                                   : &L->at->kinds[k];
        for (int i = 0; i < g->g->nnodes; i++) {
            const tb_op *op = g->g->nodes[i].op;
            if (op->lane != TB_LANE_TOLL)
                continue;
            first = first ? first : op;
            if (op == first)
                continue;
            return lint_said(L, lint_pos(g, i), TB_LINT_NOTE,
                             tb_arena_printf(&L->arena, "%s here, %s elsewhere",
                                             op->name, first->name));
        }
    }
    return TB_OK;
}

tb_status lint_norm_width(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nnodes; i++) {
        const tb_node *n = &g->g->nodes[i];
        double groups =
            tb_op_has_groups(n->op) ? g->attr[i][TB_ATTR_NORM_GROUPS] : 0;
        if (!lint_is_norm(g, i) || n->op->state) /* over tokens */
            continue;
        if ((double)n->shape.width / (groups > 1 ? groups : 1) == 1)
            lint_found(L, lint_pos(g, i));
    }
    return TB_OK;
}

/* --- statistics over tokens ---------------------------------------------- */

tb_status lint_batch_causal(tb_lint *L, const lint_graph *g)
{
    bool causal = L->sizes.s.causal && L->at->which != TB_STACK_ENCODER;
    for (int i = 0; i < g->g->nnodes && causal; i++)
        if (g->g->nodes[i].op->state)
            lint_found(L, lint_pos(g, i));
    return TB_OK;
}

/* The mask is the input after the running statistics. */
tb_status lint_batch_padding(tb_lint *L, const lint_graph *g)
{
    for (int i = 0; i < g->g->nnodes; i++) {
        const tb_node *n = &g->g->nodes[i];
        if (n->op->state && n->nin < n->op->max_in)
            lint_found(L, lint_pos(g, i));
    }
    return TB_OK;
}

/* --- used more than once ------------------------------------------------- */

tb_status lint_same_norm(tb_lint *L, const lint_graph *g)
{
    unsigned char *seen = tb_arena_alloc(&L->arena, (size_t)g->g->nnodes);
    if (!seen)
        return TB_ERR_MEMORY;
    for (int i = 0; i < g->g->nregions; i++) {
        int norm = g->use[i].norm_in;
        if (norm >= 0 && seen[norm])
            lint_found(L, lint_pos(g, norm));
        if (norm >= 0)
            seen[norm] = 1;
    }
    return TB_OK;
}

tb_status lint_shared_sublayer(tb_lint *L, const lint_graph *g)
{
    static const char *const names[] = {"attn", "cross", "ffn"};
    for (size_t k = 0; k < TB_LEN(names); k++) {
        bool seen = false;
        for (int i = 0; i < g->g->nregions; i++) {
            if (!tb_streq(g->g->regions[i].name, names[k]))
                continue;
            if (seen)
                lint_found(L, g->g->regions[i].pos);
            seen = true;
        }
    }
    return TB_OK;
}
