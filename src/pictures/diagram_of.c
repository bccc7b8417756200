/* SPDX-License-Identifier: MIT */
/* Walks the lane of a graph: norms, factors and sums become items; what a sum
 * takes in from elsewhere becomes a branch, followed back to where it left
 * the lane. */
#include "pictures/diagram_of.h"
#include "pictures/wiring.h"

enum { ITEMS = 64, PARTS = 16, BRANCHES = 8 };

typedef struct walk {
    tb_ctx *ctx;
    tb_arena *a;
    const tb_graph *g;
    unsigned char *lane; /* 1: on a lane path of this step */
    int *shown;          /* per node: how often it stands in the diagram */
    bool inexact;        /* some stand in labels only, or nowhere */
    int *item_at;        /* per node: items before it, -1: not on the path */
    tb_diagram_item *items;
    size_t first, count; /* items before this graph's, and with them */
} walk;

const char *tb_node_text(tb_ctx *ctx, tb_arena *a, const tb_graph *g, int node)
{
    tb_buf b;
    const char *text = NULL;
    tb_buf_init(&b, ctx);
    if (tb_formula_print(ctx, g, node, TB_NOTE_TEXT, &b) == TB_OK)
        text = tb_arena_strdup(a, tb_buf_str(&b));
    tb_buf_clear(&b);
    return text;
}

const char *tb_attr_text(tb_ctx *ctx, tb_arena *a, const tb_attr *c)
{
    tb_buf b;
    if (c->shown)
        return tb_arena_strdup(a, c->shown);
    if (!c->expr)
        return tb_arena_printf(a, "%g", c->value);
    tb_buf_init(&b, ctx);
    tb_expr_print(c->expr, &b);
    const char *text = tb_arena_strdup(a, tb_buf_str(&b));
    tb_buf_clear(&b);
    return text;
}

static const char *formula(walk *w, int node)
{
    return tb_node_text(w->ctx, w->a, w->g, node);
}

/* A text of the block's own: the diagram outlives the block. */
static const char *keep(walk *w, const char *text)
{
    return text ? tb_arena_strdup(w->a, text) : NULL;
}

static const char *factor_text(walk *w, const tb_node *n)
{
    return tb_attr_text(w->ctx, w->a, &n->attr[TB_ATTR_AFFINE_SCALE]);
}

static bool is_parameter(const walk *w, int node)
{
    return w->g->nodes[node].op == &tb_op_param;
}

/* What one node does to the value on its way: kind and label. */
static tb_diagram_part part_of(walk *w, const tb_node *n, int other)
{
    switch (n->op->jac) {
    case TB_JAC_AFFINE:
        return (tb_diagram_part){TB_DIAGRAM_SCALE, factor_text(w, n)};
    case TB_JAC_PROD:
    case TB_JAC_QUOT:
        return (tb_diagram_part){is_parameter(w, other) ? TB_DIAGRAM_SCALE
                                                        : TB_DIAGRAM_GATE,
                                 formula(w, other)};
    case TB_JAC_MIX:
        return (tb_diagram_part){TB_DIAGRAM_GATE,
                                 formula(w, n->in[n->nin - 1])};
    case TB_JAC_SYMBOL:
    case TB_JAC_LEAF:
    case TB_JAC_SUM:
    case TB_JAC_DIFF:
    case TB_JAC_DIAG:
    case TB_JAC_WEIGHT:
    case TB_JAC_MULTI:
    case TB_JAC_ZERO:
        break;
    }
    if (n->op->lane == TB_LANE_TOLL)
        return (tb_diagram_part){TB_DIAGRAM_NORM, n->op->symbol};
    return (tb_diagram_part){TB_DIAGRAM_BOX, n->op->symbol};
}

/* --- branches ----------------------------------------------------------------
 */

static bool is_stream(const walk *w, int node)
{
    return w->g->nodes[node].shape.kind == TB_SHAPE_STREAM;
}

/* The input a branch came through: off the lane if there is a choice. */
static int source_of(const walk *w, const tb_node *n, int *other)
{
    int main = 0;
    *other = n->nin > 1 ? 1 : 0;
    if (n->nin < 2 || n->op->jac == TB_JAC_SYMBOL)
        return n->in[0];
    if (!is_stream(w, n->in[0]) ||
        (w->item_at[n->in[0]] >= 0 && is_stream(w, n->in[1]))) {
        main = 1;
        *other = 0;
    }
    *other = n->in[*other];
    return n->in[main];
}

static void reverse(tb_diagram_part *p, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        tb_diagram_part t = p[i];
        p[i] = p[n - 1 - i];
        p[n - 1 - i] = t;
    }
}

/* From the sum back to the lane; parts come out in the order they act. */
static tb_status follow(walk *w, int node, tb_diagram_part *parts, size_t *n,
                        int *left_at)
{
    *n = 0;
    *left_at = -1;
    while (w->item_at[node] < 0 && *n < PARTS) {
        const tb_node *at = &w->g->nodes[node];
        int other;
        w->shown[node]++;
        if (at->op == &tb_op_branch && at->region >= 0) {
            const tb_region *r = &w->g->regions[at->region];
            parts[(*n)++] =
                (tb_diagram_part){TB_DIAGRAM_BOX, keep(w, r->shown)};
            if (!parts[*n - 1].label)
                return TB_ERR_MEMORY;
            node = r->in[0];
            continue;
        }
        if (at->op->lane == TB_LANE_LEAF || at->op->jac == TB_JAC_SUM ||
            at->op->jac == TB_JAC_DIFF) {
            parts[(*n)++] = (tb_diagram_part){TB_DIAGRAM_BOX, formula(w, node)};
            w->inexact = true;
            break;
        }
        int next = source_of(w, at, &other);
        parts[*n] = part_of(w, at, other);
        if (!parts[(*n)++].label)
            return TB_ERR_MEMORY;
        node = next;
    }
    *left_at = w->item_at[node];
    reverse(parts, *n);
    return TB_OK;
}

/* What a sum takes in, followed back to the lane. */
typedef struct found {
    tb_diagram_part parts[PARTS + 1];
    size_t n;
    int left_at; /* item it leaves the lane before, -1: nowhere */
} found;

static tb_status add_branch(walk *w, tb_diagram_item *item, const found *f)
{
    tb_diagram_part *kept;
    tb_diagram_branch *all, *b;
    if (item->n == BRANCHES) {
        w->inexact = true;
        return TB_OK;
    }
    all = tb_arena_alloc(w->a, (item->n + 1) * sizeof *all);
    kept = tb_arena_alloc(w->a, (f->n + 1) * sizeof *kept);
    if (!all || !kept)
        return TB_ERR_MEMORY;
    if (item->n)
        memcpy(all, item->branches, item->n * sizeof *all);
    memcpy(kept, f->parts, f->n * sizeof *kept);
    b = &all[item->n++];
    *b = (tb_diagram_branch){.parts = kept, .n = f->n};
    if (f->left_at >= 0 && (size_t)f->left_at < w->count)
        b->span = w->count - (size_t)f->left_at;
    item->branches = all;
    return TB_OK;
}

/* --- the lane ----------------------------------------------------------------
 */

/* x + attn(h) + ffn(h) is one sum with two branches, unless the second reads
 * what the first was added to. */
static bool joins_last_sum(const walk *w, int lane_in, const found *f)
{
    return w->count > w->first &&
           w->items[w->count - 1].part.kind == TB_DIAGRAM_PLUS &&
           w->item_at[lane_in] == (int)w->count && f->left_at < (int)w->count;
}

static tb_status sum_item(walk *w, const tb_node *n, int lane_in)
{
    int lane = n->in[0] == lane_in ? 0 : 1; /* x + x: one of them is a branch */
    found f = {.left_at = -1};
    if (lane == 1 && n->op->jac == TB_JAC_DIFF)
        w->inexact = true; /* the lane itself is taken away */
    if (n->nin > 1)
        TB_TRY(follow(w, n->in[1 - lane], f.parts, &f.n, &f.left_at));
    if (n->op->jac == TB_JAC_DIFF && lane == 0)
        f.parts[f.n++] = (tb_diagram_part){TB_DIAGRAM_SCALE, "-1"};
    if (joins_last_sum(w, lane_in, &f))
        w->count--;
    else
        w->items[w->count] = (tb_diagram_item){.part = {TB_DIAGRAM_PLUS, "+"}};
    if (n->nin > 1)
        TB_TRY(add_branch(w, &w->items[w->count], &f));
    w->count++;
    return TB_OK;
}

static tb_status lane_item(walk *w, int node, int lane_in)
{
    const tb_node *n = &w->g->nodes[node];
    w->inexact = w->inexact || w->count == ITEMS;
    if (n->op->alias || w->count == ITEMS)
        return TB_OK;
    w->shown[node]++;
    if (n->op->jac == TB_JAC_SUM || n->op->jac == TB_JAC_DIFF)
        return sum_item(w, n, lane_in);
    int other = n->nin > 1 && n->in[0] == lane_in ? n->in[1] : n->in[0];
    tb_diagram_part p = part_of(w, n, other);
    if (!p.label)
        return TB_ERR_MEMORY;
    w->items[w->count++] = (tb_diagram_item){.part = p};
    return TB_OK;
}

/* The longest lane path between two nodes, so that every norm on the lane
 * shows; shorter ones become branches without parts. Last node first; the
 * length, -1 if there is none. */
static int path_to(const walk *w, int from, int to, int *length, int *path)
{
    int n = 0;
    if (from != to && !w->lane[to])
        return -1;
    memset(length, 0, (size_t)w->g->nnodes * sizeof *length);
    for (int i = from + 1; i <= to; i++)
        for (int j = 0; w->lane[i] && j < w->g->nodes[i].nin; j++)
            if (length[w->g->nodes[i].in[j]] >= length[i])
                length[i] = length[w->g->nodes[i].in[j]] + 1;
    for (int node = to; node != from; n++) {
        const tb_node *at = &w->g->nodes[node];
        int next = -1;
        path[n] = node;
        for (int j = 0; j < at->nin; j++)
            if ((at->in[j] == from || w->lane[at->in[j]]) &&
                (next < 0 || length[at->in[j]] > length[next]))
                next = at->in[j];
        node = next;
    }
    return n;
}

/* No lane: the whole step is one box. */
static tb_status closed_step(walk *w, int to)
{
    const tb_node *n = &w->g->nodes[to];
    const char *label = n->region >= 0 ? keep(w, w->g->regions[n->region].shown)
                                       : formula(w, to);
    w->inexact = w->inexact || w->count == ITEMS || n->region < 0;
    if (!label)
        return TB_ERR_MEMORY;
    if (w->count == ITEMS)
        return TB_OK;
    w->shown[to]++;
    w->items[w->count++] = (tb_diagram_item){.part = {TB_DIAGRAM_BOX, label}};
    return TB_OK;
}

static tb_status step_items(walk *w, int s)
{
    int from = w->g->boundaries[s - 1].node, to = w->g->boundaries[s].node;
    size_t nnodes = (size_t)w->g->nnodes;
    int *path = tb_arena_alloc(w->a, 2 * nnodes * sizeof *path);
    if (!path)
        return TB_ERR_MEMORY;
    tb_graph_on_lane(w->g, s - 1, s, w->lane);
    for (int i = 0; i < w->g->nnodes; i++)
        w->item_at[i] = -1;
    w->item_at[from] = (int)w->count;
    int n = path_to(w, from, to, path + nnodes, path);
    if (n < 0)
        return closed_step(w, to);
    for (int i = n - 1, prev = from; i >= 0; prev = path[i--]) {
        TB_TRY(lane_item(w, path[i], prev));
        w->item_at[path[i]] = (int)w->count;
    }
    return TB_OK;
}

static tb_status begin(walk *w, const tb_graph *g)
{
    size_t n = (size_t)g->nnodes;
    w->g = g;
    w->first = w->count;
    w->lane = tb_arena_alloc(w->a, n);
    w->item_at = tb_arena_alloc(w->a, n * sizeof *w->item_at);
    w->shown = tb_arena_alloc(w->a, n * sizeof *w->shown);
    return w->lane && w->item_at && w->shown ? TB_OK : TB_ERR_MEMORY;
}

/* Do items say all that the wiring has of this graph? Every node once, and
 * from x to x nothing else comes in or goes out. */
static void compare(walk *w, const struct tb_wiring *all, tb_wired_part part)
{
    int in = 0, out = 0;
    for (int i = 0; i < all->n; i++) {
        const tb_wired *n = &all->nodes[i];
        if (n->part != part)
            continue;
        if (n->kind == TB_WIRED_IN)
            in++;
        else if (n->kind == TB_WIRED_OUT)
            out++;
        else if (w->shown[n->node] != 1)
            w->inexact = true;
    }
    bool lowest =
        part == TB_WIRED_STEM || (part == TB_WIRED_BLOCK && !all->stem);
    w->inexact = w->inexact || in != lowest || out > 1;
}

tb_status tb_diagram_of(tb_ctx *ctx, tb_arena *arena, const tb_graph *stem,
                        const tb_graph *g, const tb_graph *tail,
                        tb_diagram *out)
{
    tb_jacobian j;
    walk w = {.ctx = ctx, .a = arena};
    struct tb_wiring *all = tb_arena_alloc(arena, sizeof *all);
    *out = (tb_diagram){.title = "block"};
    w.items = tb_arena_alloc(arena, (ITEMS + 1) * sizeof *w.items);
    if (!w.items || !all)
        return TB_ERR_MEMORY;
    TB_TRY(tb_stem_of(arena, stem, &stem));
    TB_TRY(tb_wiring_of(ctx, arena, stem, g, tail, all));
    TB_TRY(tb_jacobian_build(ctx, arena, g, TB_JAC_CLOSED, &j));
    if (stem) {
        TB_TRY(begin(&w, stem));
        TB_TRY(step_items(&w, 1));
        compare(&w, all, TB_WIRED_STEM);
        out->before = w.count;
    }
    TB_TRY(begin(&w, g));
    for (int s = 1; s <= tb_jacobian_steps(ctx, &j); s++)
        TB_TRY(step_items(&w, s));
    compare(&w, all, TB_WIRED_BLOCK);
    out->in_block = w.count;
    if (tail) {
        TB_TRY(begin(&w, tail));
        TB_TRY(step_items(&w, 1));
        compare(&w, all, TB_WIRED_AFTER);
    }
    out->items = w.items;
    out->count = w.count;
    out->wiring = all;
    out->wired = w.inexact;
    return TB_OK;
}
