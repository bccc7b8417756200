/* SPDX-License-Identifier: MIT */
/* What stands between x in and x out when every branch is removed: only ops
 * whose lane is PASS or TOLL carry it. Read from the op table, never from
 * block names. */
#include "graph/graph.h"

static const char *const role_names[] = {"matrix", "bias",   "gain",
                                         "scalar", "vector", "embedding",
                                         "table",  "buffer"};

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
        return -1;
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
            if (is_stream_input(g, node, j) && !marks[node->in[j]] &&
                marks[node->in[1 - j]] && n < cap)
                out[n++] =
                    (tb_contribution){node->in[j], diff && j == 1 ? -1.0 : 1.0};
    }
    tb_free(ctx, marks);
    return n;
}

/* --- kind and coefficient --------------------------------------------------
 */

/* The lane's factor from x in to a node: number * before * last^power. */
typedef struct factor {
    double number;
    double value;              /* the whole factor where attributes are known */
    const char *before, *last; /* symbolic constants, "" if none */
    int power, tolls;
    bool on, gated, mixed; /* mixed: paths with different norms met here */
} factor;

/* Hostile texts make endless coefficients. */
static const char *bounded(const char *text)
{
    return text && strlen(text) > 500 ? "(...)" : text;
}

/* The symbolic part: "alpha^2", "a*b". */
static const char *symbols(tb_arena *a, const factor *f)
{
    const char *star = *f->before ? "*" : "";
    if (f->power < 2)
        return bounded(tb_arena_printf(a, "%s%s%s", f->before, star, f->last));
    return bounded(
        tb_arena_printf(a, "%s%s%s^%d", f->before, star, f->last, f->power));
}

static const char *product_text(tb_arena *a, const factor *f)
{
    if (!*f->last)
        return tb_arena_printf(a, "%g", f->number);
    const char *text = symbols(a, f);
    if (!text || f->number == 1)
        return text;
    return tb_arena_printf(a, "%g*%s", f->number, text);
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

/* Numbers only: N l k d are symbols here. */
static bool is_number(tb_ctx *ctx, const tb_graph *g, const tb_attr *c,
                      double *v)
{
    const double none = __builtin_nan("");
    const tb_consts unknown = {none, none, none, none, none, none};
    *v = c->value;
    if (!c->expr)
        return true;
    bool known =
        tb_expr_fold(ctx, g->block, c->expr, &unknown, NULL, NULL, v) == TB_OK;
    tb_error_clear(ctx);
    return known;
}

/* c * f: numbers fold, the same symbol again makes a power. */
static tb_status scale(tb_ctx *ctx, const tb_graph *g, tb_arena *a,
                       const tb_attr *c, double known, factor *f)
{
    double v;
    f->value *= known;
    if (is_number(ctx, g, c, &v)) {
        f->number *= v;
        return TB_OK;
    }
    const char *text = attr_text(a, c), *before = f->last;
    if (text && tb_streq(text, f->last)) {
        f->power++;
        return TB_OK;
    }
    if (*f->last)
        before = symbols(a, f);
    f->before = before;
    f->last = text;
    f->power = 1;
    return text && before ? TB_OK : TB_ERR_MEMORY;
}

/* Two lane paths meet: constants add up; where one of them has norms or
 * gates, the sum has what the busier one has. */
static tb_status add(tb_arena *a, const factor *l, const factor *r, double sign,
                     factor *f)
{
    factor right = *r;
    double value = l->value + sign * r->value;
    right.number *= sign;
    right.value *= sign;
    *f = l->on ? *l : right;
    if (!l->on || !r->on)
        return TB_OK;
    f->value = value;
    f->tolls = l->tolls > r->tolls ? l->tolls : r->tolls;
    f->gated = l->gated || r->gated;
    f->mixed = l->mixed || r->mixed || f->tolls || f->gated;
    if (f->mixed) {
        *f = (factor){.number = 1,
                      .before = "",
                      .last = "",
                      .tolls = f->tolls,
                      .on = true,
                      .gated = f->gated,
                      .value = value,
                      .mixed = true};
        return TB_OK;
    }
    bool same = f->power == right.power && tb_streq(l->last, right.last) &&
                tb_streq(l->before, right.before);
    if (same) {
        f->number = l->number + right.number;
        return TB_OK;
    }
    const char *lt = product_text(a, l), *rt = product_text(a, &right);
    *f = (factor){
        .number = 1, .before = "", .power = 1, .value = value, .on = true};
    f->last =
        lt && rt ? bounded(tb_arena_printf(a, "(%s + %s)", lt, rt)) : NULL;
    return f->last ? TB_OK : TB_ERR_MEMORY;
}

/* What several inputs bring along: the busiest of them, gated, but where they
 * only stand side by side. */
static void join(const tb_node *n, const factor *at, factor *f)
{
    for (int j = 0; j < n->nin; j++) {
        const factor *x = &at[n->in[j]];
        if (!x->on)
            continue;
        int tolls = f->on && f->tolls > x->tolls ? f->tolls : x->tolls;
        *f = *x;
        f->tolls = tolls;
        f->gated = x->gated || n->op != &tb_op_concat;
    }
}

/* It passes the stream on, but not as it is: drop. */
static bool is_random(const tb_op *op)
{
    return op->lane == TB_LANE_PASS && op->jac == TB_JAC_SYMBOL;
}

static tb_status step(tb_ctx *ctx, const tb_graph *g, tb_arena *a, int i,
                      double scaled, factor *at)
{
    const tb_node *n = &g->nodes[i];
    const factor *l = &at[n->in[0]], *r = n->nin > 1 ? &at[n->in[1]] : l;
    switch (n->op->jac) {
    case TB_JAC_SUM:
    case TB_JAC_DIFF:
        if (n->nin > 1)
            return add(a, l, r, n->op->jac == TB_JAC_SUM ? 1 : -1, &at[i]);
        at[i] = *l;
        return TB_OK;
    case TB_JAC_PROD:
    case TB_JAC_QUOT:
        at[i] = l->on ? *l : *r;
        if (l->on && r->on && r->tolls > l->tolls)
            at[i].tolls = r->tolls;
        at[i].gated = at[i].on;
        return TB_OK;
    case TB_JAC_MIX:
    case TB_JAC_MULTI:
        join(n, at, &at[i]);
        return TB_OK;
    case TB_JAC_AFFINE:
        at[i] = *l;
        return l->on ? scale(ctx, g, a, &n->attr[TB_ATTR_AFFINE_SCALE], scaled,
                             &at[i])
                     : TB_OK;
    case TB_JAC_LEAF:
    case TB_JAC_SYMBOL:
    case TB_JAC_DIAG:
    case TB_JAC_WEIGHT:
    case TB_JAC_ZERO:
        at[i] = *l;
        at[i].tolls += n->op->lane == TB_LANE_TOLL;
        at[i].gated = at[i].gated || is_random(n->op);
        return TB_OK;
    }
    return TB_OK;
}

static tb_status finish(tb_arena *a, const factor *f, tb_lane_info *out)
{
    bool none = !f->on || f->number == 0, plain = !*f->last && f->number == 1;
    out->tolls = none ? 0 : f->tolls;
    out->kind = none                   ? TB_LANE_KIND_NONE
                : f->tolls             ? TB_LANE_KIND_TOLL
                : f->gated || f->mixed ? TB_LANE_KIND_GATED
                : plain                ? TB_LANE_KIND_CLEAN
                                       : TB_LANE_KIND_SCALED;
    out->coefficient = none ? "0" : product_text(a, f);
    out->value = none ? 0 : f->value;
    return out->coefficient ? TB_OK : TB_ERR_MEMORY;
}

tb_status tb_graph_lane_between(tb_ctx *ctx, const tb_graph *g, tb_arena *arena,
                                int from, int to,
                                const double (*attr)[TB_OP_ATTRS],
                                tb_lane_info *out)
{
    const factor off = {.number = 1, .value = 1, .before = "", .last = ""};
    size_t n = (size_t)g->nnodes;
    factor *at = tb_arena_alloc(arena, n * sizeof *at);
    if (!at)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        at[i] = off;
    at[from].on = true;
    for (int i = from + 1; i <= to; i++) {
        double scaled =
            attr ? attr[i][TB_ATTR_AFFINE_SCALE] : __builtin_nan("");
        if (carries(&g->nodes[i]))
            TB_TRY(step(ctx, g, arena, i, scaled, at));
        if (at[i].number == 0) /* x - x: what it multiplies is not on it */
            at[i] = off;
    }
    return finish(arena, &at[to], out);
}

tb_status tb_graph_lane(tb_ctx *ctx, const tb_graph *g, tb_arena *arena,
                        tb_lane_info *out)
{
    return tb_graph_lane_between(ctx, g, arena, g->boundaries[0].node,
                                 g->boundaries[g->nboundaries - 1].node, NULL,
                                 out);
}
