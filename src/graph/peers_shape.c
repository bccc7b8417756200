/* SPDX-License-Identifier: MIT */
/* A graph as a bag of hashes: of each node with all below it, and of each node
 * with its direct inputs. Left out is what is no placement: names, sizes, eps,
 * biases, dropout, positions, and which function stands inside ffn. */
#include "graph/peers.h"

#include "base/number.h"

/* --- hashes --------------------------------------------------------------- */

static uint64_t join(uint64_t a, uint64_t b)
{
    uint64_t pair[2] = {a, b};
    return tb_hash(pair, sizeof pair);
}

static uint64_t of_text(const char *s)
{
    return tb_hash(s, strlen(s));
}

/* As a float: (2*N)^0.25 and the same number read from a setting are one. */
static uint64_t of_number(double v)
{
    float f = (float)v;
    return tb_hash(&f, sizeof f);
}

/* Shell's sort: no libc, so that wasm shares it. */
static void sort(uint64_t *v, int n)
{
    int gap = 1;
    while (gap < n / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (int i = gap; i < n; i++) {
            uint64_t x = v[i];
            int j = i;
            for (; j >= gap && v[j - gap] > x; j -= gap)
                v[j] = v[j - gap];
            v[j] = x;
        }
}

/* --- one graph ------------------------------------------------------------ */

typedef struct view {
    tb_ctx *ctx;
    const tb_graph *g;
    const tb_sizes *sizes;
    size_t l; /* 0: stem, final */
    double (*attr)[TB_OP_ATTRS];
    uint64_t *below, *label; /* per node */
    uint64_t *coarse;        /* label in which every norm is one */
    int *real;               /* the node that stands for it */
    unsigned char *used;
} view;

static bool is_activation(const tb_graph *g, const tb_node *n)
{
    return n->op->jac == TB_JAC_DIAG && n->region >= 0 &&
           tb_streq(g->regions[n->region].name, "ffn");
}

/* Nodes that are nothing here: dropout, the mark of a branch's first value,
 * positions, a factor of 1. */
static bool is_nothing(const view *w, int i)
{
    const tb_node *n = &w->g->nodes[i];
    const double *a = w->attr[i];
    if (n->op == &tb_op_affine)
        return a[TB_ATTR_AFFINE_SCALE] == 1 && a[TB_ATTR_AFFINE_OFFSET] == 0;
    return n->op == &tb_op_drop || n->op == &tb_op_position ||
           n->op == &tb_op_sinusoid;
}

static double start_of(const view *w, const tb_param *p, int k)
{
    tb_consts c = {w->sizes->N,
                   w->sizes->M,
                   (double)w->l,
                   (double)k,
                   (double)w->sizes->s.width,
                   (double)w->sizes->s.heads};
    double v;
    if (!p->start || tb_expr_fold(w->ctx, w->g->block, p->start, &c, NULL, NULL,
                                  &v) != TB_OK) {
        tb_error_clear(w->ctx);
        return 0;
    }
    return v;
}

static uint64_t param_label(const view *w, const tb_node *n)
{
    const tb_param *p = &w->g->params[n->param];
    bool factor = p->role == TB_ROLE_SCALAR || p->role == TB_ROLE_VECTOR;
    uint64_t h = of_text(tb_role_name(p->role));
    return factor ? join(h, of_number(start_of(w, p, n->k))) : h;
}

static uint64_t input_label(const view *w, int node)
{
    for (int i = 0; i < w->g->ninputs; i++)
        if (w->g->inputs[i] == node)
            return join(of_text("input"), (uint64_t)i);
    return of_text("input");
}

/* Of norms only how they group; of attention only its scale. */
static bool counts(const tb_op *op, int a)
{
    if (op->lane == TB_LANE_TOLL)
        return tb_streq(op->attr_name[a], "groups") ||
               tb_streq(op->attr_name[a], "unbiased");
    if (op == &tb_op_mha)
        return a == TB_ATTR_ATTN_SCALE;
    return !tb_streq(op->attr_name[a], "heads");
}

static uint64_t label_of(const view *w, int i)
{
    const tb_node *n = &w->g->nodes[i];
    const tb_op *op = n->op;
    if (n->param >= 0)
        return param_label(w, n);
    if (op->lane == TB_LANE_LEAF)
        return input_label(w, i);
    if (is_activation(w->g, n))
        return of_text("activation");
    uint64_t h = of_text(op->name);
    if (op == &tb_op_branch && n->region >= 0)
        h = join(h, of_text(w->g->regions[n->region].name));
    for (int a = 0; a < op->nattr + op->noption; a++)
        if (counts(op, a))
            h = join(h, of_number(w->attr[i][a]));
    return h;
}

/* A linear's bias and the weights of a norm are left out; that a norm has a
 * gain is kept. */
static int inputs_that_count(const tb_node *n)
{
    if (n->op == &tb_op_linear && n->nin > 2)
        return 2;
    if (n->op->lane == TB_LANE_TOLL)
        return n->nin > 2 ? 2 : n->nin;
    return n->nin;
}

static bool commutes(const tb_op *op)
{
    return op == &tb_op_add || op == &tb_op_mul;
}

static void look_at(const view *w, int i)
{
    const tb_node *n = &w->g->nodes[i];
    uint64_t in[TB_OP_INPUTS];
    int nin = inputs_that_count(n);
    w->real[i] = i;
    if (is_nothing(w, i)) {
        w->real[i] = w->real[n->in[0]];
        return;
    }
    w->label[i] = label_of(w, i);
    w->coarse[i] = n->op->lane == TB_LANE_TOLL ? of_text("norm") : w->label[i];
    uint64_t h = w->label[i];
    for (int j = 0; j < nin; j++)
        in[j] = w->below[w->real[n->in[j]]];
    if (commutes(n->op))
        sort(in, nin);
    for (int j = 0; j < nin; j++)
        h = join(h, in[j]);
    w->below[i] = h;
}

/* --- what is reached ------------------------------------------------------ */

static void mark(const view *w, int node)
{
    w->used[w->real[node]] = 1;
}

/* x of a layer or the stem and every further stream that changes; of the tail
 * what the head reads. */
static uint64_t mark_outputs(const view *w, bool tail)
{
    const tb_graph *g = w->g;
    uint64_t h = 0;
    if (tail) {
        int top = g->boundaries[g->nboundaries - 1].node;
        mark(w, top);
        return w->below[w->real[top]];
    }
    for (int i = 0; i < g->noutputs; i++) {
        int node = w->real[g->outputs[i].node];
        if (i > 0 && i < g->ninputs && node == g->inputs[i])
            continue; /* carried on as it is */
        mark(w, node);
        h = join(h, join((uint64_t)i, w->below[node]));
    }
    return h;
}

static void mark_below(const view *w)
{
    for (int i = w->g->nnodes - 1; i >= 0; i--) {
        const tb_node *n = &w->g->nodes[i];
        for (int j = 0; w->used[i] && j < inputs_that_count(n); j++)
            mark(w, n->in[j]);
    }
}

/* How much more than an edge it counts that only one graph has a node, and
 * that only one has it on the lane. The kind of a norm counts once. */
enum { WEIGHT = 3 };

static void add_edges(const view *w, int i, bool lane, tb_peer_shape *out)
{
    const tb_node *n = &w->g->nodes[i];
    uint64_t on_lane = join(of_text("lane"), w->coarse[i]);
    for (int j = 0; j < WEIGHT; j++) {
        out->edges[out->nedges++] = w->coarse[i];
        if (lane)
            out->edges[out->nedges++] = on_lane;
    }
    out->edges[out->nedges++] = join(of_text("kind"), w->label[i]);
    for (int j = 0; j < inputs_that_count(n); j++)
        out->edges[out->nedges++] =
            join(w->coarse[i], w->coarse[w->real[n->in[j]]]);
}

static tb_status collect(const view *w, tb_arena *a, tb_peer_shape *out)
{
    const tb_graph *g = w->g;
    unsigned char *lane = tb_arena_alloc(a, (size_t)g->nnodes + 1);
    size_t nodes = 0, edges = 0;
    for (int i = 0; i < g->nnodes; i++) {
        nodes += w->used[i];
        edges += w->used[i] ? 2 * WEIGHT + 1 + (size_t)g->nodes[i].nin : 0;
    }
    out->nodes = tb_arena_alloc(a, (nodes + 1) * sizeof *out->nodes);
    out->edges = tb_arena_alloc(a, (edges + 1) * sizeof *out->edges);
    if (!lane || !out->nodes || !out->edges)
        return TB_ERR_MEMORY;
    tb_graph_on_lane(g, 0, g->nboundaries - 1, lane);
    for (int i = 0; i < g->nnodes; i++)
        if (w->used[i]) {
            out->nodes[out->nnodes++] = w->below[i];
            add_edges(w, i, w->l && lane[i], out);
        }
    sort(out->nodes, out->nnodes);
    sort(out->edges, out->nedges);
    return TB_OK;
}

static tb_status shape_of(tb_ctx *ctx, tb_arena *a, const tb_graph *g,
                          const tb_sizes *sizes, size_t l, bool tail,
                          tb_peer_shape *out)
{
    size_t n = (size_t)g->nnodes + 1;
    view w = {ctx,
              g,
              sizes,
              l,
              tb_arena_alloc(a, n * sizeof *w.attr),
              tb_arena_alloc(a, n * sizeof *w.below),
              tb_arena_alloc(a, n * sizeof *w.label),
              tb_arena_alloc(a, n * sizeof *w.coarse),
              tb_arena_alloc(a, n * sizeof *w.real),
              tb_arena_alloc(a, n)};
    if (!w.attr || !w.below || !w.label || !w.coarse || !w.real || !w.used)
        return TB_ERR_MEMORY;
    TB_TRY(tb_graph_attrs(ctx, g, sizes, l ? l : 1, w.attr));
    for (int i = 0; i < g->nnodes; i++)
        look_at(&w, i);
    *out = (tb_peer_shape){.out = mark_outputs(&w, tail)};
    mark_below(&w);
    return collect(&w, a, out);
}

/* --- a stack -------------------------------------------------------------- */

enum {
    LAYERS = 256
}; /* looked at one by one; conditions that change above
      are found by the last */

static tb_status add_layer(tb_ctx *ctx, tb_arena *a, const tb_graph *g,
                           const tb_sizes *sizes, size_t l, tb_peer_stack *out,
                           int *kind)
{
    tb_peer_shape s;
    TB_TRY(shape_of(ctx, a, g, sizes, l, false, &s));
    for (*kind = 0; *kind < out->nlayers; ++*kind)
        if (tb_peer_far(&out->layers[*kind], &s) == 0)
            return TB_OK;
    out->layers[out->nlayers++] = s;
    return TB_OK;
}

/* Has the graph constants that may change from layer to layer? */
static bool varies(const tb_graph *g)
{
    for (int i = 0; i < g->nnodes; i++)
        for (int a = 0; a < TB_OP_ATTRS; a++)
            if (g->nodes[i].attr[a].expr)
                return true;
    for (int i = 0; i < g->nparams; i++)
        if (g->params[i].start && g->params[i].start->kind != TB_EXPR_NUMBER)
            return true;
    return false;
}

/* Layers of one section share a graph, but not the constants in it. */
static tb_status layers_of(tb_ctx *ctx, tb_arena *a, const tb_block *b,
                           const tb_sizes *sizes, tb_stack which,
                           tb_peer_stack *out)
{
    size_t depth = tb_sizes_depth(sizes, which);
    size_t n = depth < LAYERS ? depth : LAYERS;
    tb_graph *g = NULL;
    int last = -1, section, kind = 0;
    out->layers = tb_arena_alloc(a, (n + 1) * sizeof *out->layers);
    if (!out->layers)
        return TB_ERR_MEMORY;
    for (size_t i = 1; i <= n; i++) {
        size_t l = i == n ? depth : i;
        TB_TRY(tb_graph_section(ctx, b, sizes, which, l, &section));
        if (section != last)
            TB_TRY(tb_graph_layer(ctx, a, b, sizes, which, l, &g));
        if (section != last || varies(g))
            TB_TRY(add_layer(ctx, a, g, sizes, l, out, &kind));
        last = section;
        out->order = join(out->order, (uint64_t)kind);
    }
    return TB_OK;
}

static tb_status stack_of(tb_ctx *ctx, tb_arena *a, const tb_block *b,
                          const tb_sizes *sizes, tb_stack which, unsigned parts,
                          tb_peer_stack *out)
{
    bool under = which != tb_sizes_top(sizes);
    tb_graph *g;
    *out = (tb_peer_stack){.nlayers = 0};
    if (parts & TB_PEER_BLOCK)
        TB_TRY(layers_of(ctx, a, b, sizes, which, out));
    if (parts & TB_PEER_STEM) {
        TB_TRY(tb_graph_stem(ctx, a, b, sizes, which, &g));
        TB_TRY(shape_of(ctx, a, g, sizes, 0, false, &out->stem));
    }
    if (!(parts & TB_PEER_FINAL))
        return TB_OK;
    if (under)
        TB_TRY(tb_graph_memory(ctx, a, b, sizes, &g));
    else
        TB_TRY(tb_graph_tail(ctx, a, b, sizes, &g));
    return shape_of(ctx, a, g, sizes, 0, true, &out->final);
}

tb_status tb_peer_stacks_of(tb_ctx *ctx, tb_arena *a, const tb_block *b,
                            const tb_sizes *sizes, unsigned parts,
                            tb_peer_stacks *out)
{
    tb_stack top = tb_sizes_top(sizes);
    *out = (tb_peer_stacks){.n = 1};
    TB_TRY(stack_of(ctx, a, b, sizes, top, parts, &out->at[0]));
    if (sizes->s.stack != TB_STACKS_BOTH)
        return TB_OK;
    out->n = 2;
    return stack_of(ctx, a, b, sizes, TB_STACK_ENCODER, parts, &out->at[1]);
}

/* --- numbers -------------------------------------------------------------- */

static void add_number(double v, double *out, int cap, int *n)
{
    for (int i = 0; i < *n; i++)
        if (out[i] == v)
            return;
    if (v != 1 && *n < cap)
        out[(*n)++] = v;
}

tb_status tb_peer_numbers(tb_ctx *ctx, tb_arena *a, const tb_block *b,
                          const tb_sizes *sizes, double *out, int cap, int *n)
{
    tb_stack top = tb_sizes_top(sizes);
    size_t l = tb_sizes_depth(sizes, top);
    tb_graph *g;
    *n = 0;
    TB_TRY(tb_graph_layer(ctx, a, b, sizes, top, l, &g));
    view w = {.ctx = ctx, .g = g, .sizes = sizes, .l = l};
    w.attr = tb_arena_alloc(a, ((size_t)g->nnodes + 1) * sizeof *w.attr);
    if (!w.attr)
        return TB_ERR_MEMORY;
    TB_TRY(tb_graph_attrs(ctx, g, sizes, l, w.attr));
    for (int i = 0; i < g->nnodes; i++) {
        const tb_node *k = &g->nodes[i];
        if (k->op == &tb_op_affine)
            add_number(w.attr[i][TB_ATTR_AFFINE_SCALE], out, cap, n);
        if (k->param >= 0 && g->params[k->param].start)
            add_number(start_of(&w, &g->params[k->param], k->k), out, cap, n);
    }
    return TB_OK;
}

/* --- how far -------------------------------------------------------------- */

/* Elements that only one of two sorted lists has. */
static int unlike(const uint64_t *a, int na, const uint64_t *b, int nb)
{
    int i = 0, j = 0, n = 0;
    while (i < na && j < nb)
        if (a[i] == b[j]) {
            i++;
            j++;
        } else {
            n++;
            if (a[i] < b[j])
                i++;
            else
                j++;
        }
    return n + (na - i) + (nb - j);
}

int tb_peer_far(const tb_peer_shape *a, const tb_peer_shape *b)
{
    if (a->out == b->out &&
        unlike(a->nodes, a->nnodes, b->nodes, b->nnodes) == 0)
        return 0;
    return 1 + unlike(a->edges, a->nedges, b->edges, b->nedges);
}

int tb_peer_layers_far(const tb_peer_stack *a, const tb_peer_stack *b)
{
    int most = a->nlayers > b->nlayers ? a->nlayers : b->nlayers;
    int far = a->order != b->order;
    for (int i = 0; i < most && i < LAYERS; i++)
        far += tb_peer_far(&a->layers[i < a->nlayers ? i : a->nlayers - 1],
                           &b->layers[i < b->nlayers ? i : b->nlayers - 1]);
    return far;
}
