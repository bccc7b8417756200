/* SPDX-License-Identifier: MIT */
/* What stands between x in and x out when every branch is removed: only ops
 * whose lane is PASS or TOLL carry it. Read from the op table, never from
 * block names. */
#include "graph/graph.h"

static const char *const role_names[] = {"matrix", "bias",   "gain",
                                         "scalar", "vector", "embedding"};

const char *tb_role_name(tb_role r)
{
    return role_names[r];
}

const char *tb_lane_kind_name(tb_lane_kind k)
{
    static const char *const names[] = {"clean", "scaled", "gated", "toll",
                                        "none"};
    return names[k];
}

static bool carries(const tb_node *n)
{
    return (n->op->lane == TB_LANE_PASS || n->op->lane == TB_LANE_TOLL) &&
           n->op->jac != TB_JAC_ZERO;
}

/* A norm's gain and bias and a linear's weight are leaves, never on it. */
static bool is_stream_input(const tb_graph *g, const tb_node *n, int j)
{
    return g->nodes[n->in[j]].shape.kind == TB_SHAPE_STREAM;
}

void tb_graph_on_lane(const tb_graph *g, int lo, int hi, unsigned char *marks)
{
    int from = g->boundaries[lo].node, to = g->boundaries[hi].node;
    memset(marks, 0, (size_t)g->nnodes);
    marks[from] = 1;
    for (int i = from + 1; i <= to; i++) {
        const tb_node *n = &g->nodes[i];
        for (int j = 0; carries(n) && j < n->nin; j++)
            if (is_stream_input(g, n, j) && (marks[n->in[j]] & 1))
                marks[i] |= 1;
    }
    marks[to] |= 2;
    for (int i = to; i > from; i--) {
        const tb_node *n = &g->nodes[i];
        if ((marks[i] & 2) && carries(n))
            for (int j = 0; j < n->nin; j++)
                marks[n->in[j]] |= 2;
    }
    for (int i = 0; i < g->nnodes; i++)
        marks[i] = marks[i] == 3 && i != from;
}

int tb_graph_contributions(const tb_graph *g, int lo, int hi,
                           tb_contribution *out, int cap)
{
    int n = 0;
    tb_ctx *ctx = g->arena->ctx;
    unsigned char *marks = tb_alloc(ctx, (size_t)g->nnodes, 1);
    if (!marks)
        return 0;
    tb_graph_on_lane(g, lo, hi, marks);
    int from = g->boundaries[lo].node;
    marks[from] = 1;
    for (int i = from + 1; i < g->nnodes; i++) {
        const tb_node *node = &g->nodes[i];
        bool sum = node->op->jac == TB_JAC_SUM,
             diff = node->op->jac == TB_JAC_DIFF;
        if (!marks[i] || node->nin != 2 || !(sum || diff))
            continue;
        for (int j = 0; j < 2; j++)
            if (!marks[node->in[j]] && marks[node->in[1 - j]] && n < cap)
                out[n++] =
                    (tb_contribution){node->in[j], diff && j == 1 ? -1.0 : 1.0};
    }
    tb_free(ctx, marks);
    return n;
}

/* --- kind and coefficient --------------------------------------------------
 */

/* The lane's factor from x in to a node: number * text, tolls, gates. */
typedef struct factor {
    double number;
    const char *text; /* symbolic constants and their product, "" if none */
    int tolls;
    bool on, gated, sum; /* sum: several lane paths met here */
} factor;

static const char *last_factor(const char *product)
{
    const char *star = strrchr(product, '*');
    return star ? star + 1 : product;
}

/* l*r; the same factor again makes a power: alpha, alpha^2, alpha^3. */
static const char *times(tb_arena *a, const char *l, const char *r)
{
    const char *last = last_factor(l);
    size_t n = strlen(r), before = (size_t)(last - l);
    if (!*l || !*r)
        return *l ? l : r;
    if (strchr(r, '*') || strlen(last) < n || memcmp(last, r, n))
        return tb_arena_printf(a, "%s*%s", l, r);
    if (last[n] == '\0')
        return tb_arena_printf(a, "%s^2", l);
    double power;
    if (last[n] != '^' ||
        !tb_double_parse(last + n + 1, strlen(last + n + 1), &power))
        return tb_arena_printf(a, "%s*%s", l, r);
    return tb_arena_printf(a, "%.*s%s^%g", (int)before, l, r, power + 1);
}

static const char *attr_text(tb_arena *a, const tb_attr *attr)
{
    tb_buf b;
    if (attr->shown)
        return attr->shown;
    tb_buf_init(&b, a->ctx);
    bool simple =
        attr->expr->kind != TB_EXPR_BINARY && attr->expr->kind != TB_EXPR_NEG;
    tb_buf_puts(&b, simple ? "" : "(");
    tb_expr_print(attr->expr, &b);
    tb_buf_puts(&b, simple ? "" : ")");
    const char *text = b.failed ? NULL : tb_arena_strdup(a, tb_buf_str(&b));
    tb_buf_clear(&b);
    return text;
}

/* c * f: plain numbers fold, anything with N l k d stays text. */
static tb_status scale(tb_ctx *ctx, const tb_graph *g, tb_arena *a,
                       const tb_attr *c, factor *f)
{
    tb_consts none = {__builtin_nan(""), __builtin_nan(""), __builtin_nan(""),
                      __builtin_nan(""), __builtin_nan(""), __builtin_nan("")};
    double v = c->value;
    if (c->expr &&
        tb_expr_fold(ctx, g->block, c->expr, &none, NULL, NULL, &v) != TB_OK) {
        const char *text = attr_text(a, c);
        tb_error_clear(ctx);
        f->text = text ? times(a, f->text, text) : NULL;
        return f->text ? TB_OK : TB_ERR_MEMORY;
    }
    f->number *= v;
    return TB_OK;
}

static factor join(const factor *l, const factor *r, double sign)
{
    factor f = *l;
    bool both = l->on && r->on;
    if (!l->on) {
        f = *r;
        f.number *= sign;
        return f;
    }
    if (!both)
        return f;
    f.tolls = l->tolls > r->tolls ? l->tolls : r->tolls;
    f.gated = l->gated || r->gated;
    f.sum = f.tolls || f.gated || *l->text || *r->text || l->sum || r->sum;
    f.number = f.sum ? 1 : l->number + sign * r->number;
    return f;
}

static tb_status step(tb_ctx *ctx, const tb_graph *g, tb_arena *a, int i,
                      factor *at)
{
    const tb_node *n = &g->nodes[i];
    const factor *l = &at[n->in[0]], *r = n->nin > 1 ? &at[n->in[1]] : l;
    switch (n->op->jac) {
    case TB_JAC_SUM:
    case TB_JAC_DIFF:
        at[i] = n->nin < 2 ? *l : join(l, r, n->op->jac == TB_JAC_SUM ? 1 : -1);
        return TB_OK;
    case TB_JAC_PROD:
    case TB_JAC_QUOT:
        at[i] = join(l, r, 1);
        at[i].gated = at[i].on;
        return TB_OK;
    case TB_JAC_AFFINE:
        at[i] = *l;
        return scale(ctx, g, a, &n->attr[TB_ATTR_AFFINE_SCALE], &at[i]);
    case TB_JAC_LEAF:
    case TB_JAC_SYMBOL:
    case TB_JAC_DIAG:
    case TB_JAC_WEIGHT:
    case TB_JAC_MULTI:
    case TB_JAC_ZERO:
        at[i] = *l;
        at[i].tolls += n->op->lane == TB_LANE_TOLL;
        return TB_OK;
    }
    return TB_OK;
}

static tb_status finish(tb_arena *a, const factor *f, tb_lane_info *out)
{
    bool plain = !*f->text && f->number == 1;
    out->tolls = f->tolls;
    out->kind = !f->on               ? TB_LANE_KIND_NONE
                : f->tolls           ? TB_LANE_KIND_TOLL
                : f->gated || f->sum ? TB_LANE_KIND_GATED
                : plain              ? TB_LANE_KIND_CLEAN
                                     : TB_LANE_KIND_SCALED;
    if (!f->on)
        out->coefficient = "0";
    else if (!*f->text || f->number == 1)
        out->coefficient =
            *f->text ? f->text : tb_arena_printf(a, "%g", f->number);
    else
        out->coefficient = tb_arena_printf(a, "%g*%s", f->number, f->text);
    return out->coefficient ? TB_OK : TB_ERR_MEMORY;
}

tb_status tb_graph_lane(tb_ctx *ctx, const tb_graph *g, tb_arena *arena,
                        tb_lane_info *out)
{
    size_t n = (size_t)g->nnodes;
    int in = g->boundaries[0].node,
        top = g->boundaries[g->nboundaries - 1].node;
    factor *at = tb_arena_alloc(arena, n * sizeof *at);
    if (!at)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        at[i] = (factor){.number = 1, .text = ""};
    at[in].on = true;
    for (int i = in + 1; i <= top; i++)
        if (carries(&g->nodes[i]))
            TB_TRY(step(ctx, g, arena, i, at));
    return finish(arena, &at[top], out);
}
