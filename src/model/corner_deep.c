/* SPDX-License-Identifier: MIT */
/* N -> infinity: stacks in which every branch gives a vector of its own. The
 * vectors are cosines: of mean 0, variance 1 and orthogonal to rounding, so
 * that sums have exactly the variance that independent branches have. */
#include "model/corners.h"
#include "model/piece.h"

enum { HEADS = 4, BRANCHES = 64, VIEW_SEED = 1 };

/** One layer of a stack. */
typedef struct layer {
    tb_piece piece;
    int branches;
    tb_piece_run run;
    const void **inputs, **params;
    void **outputs;
} layer;

typedef struct stack {
    tb_ctx *ctx;
    tb_arena a;
    tb_model *m;
    tb_layers at;
    layer *layers;
    size_t width;
    int nstreams;
    size_t used;      /* cosines given out */
    double **streams; /* [layers + 1][nstreams] */
} stack;

/* Vector number k, of d - 1 that there are. */
static void cosine(size_t k, size_t d, double scale, double *out)
{
    const double pi = 3.14159265358979323846;
    double step = pi * (double)k / (double)d;
    for (size_t i = 0; i < d; i++)
        out[i] = scale * tb_sqrt(2) * tb_cos(step * ((double)i + 0.5));
}

/* --- layers --------------------------------------------------------------- */

/* Outputs of sublayers that are not inside another. */
static int branches_of(const tb_graph *g, int *out, int most)
{
    int n = 0;
    for (int r = 0; r < g->nregions && n < most; r++) {
        bool inside = false;
        for (int o = 0; o < g->nregions; o++)
            inside = inside ||
                     (o != r && g->regions[o].first <= g->regions[r].first &&
                      g->regions[o].last > g->regions[r].last);
        if (!inside)
            out[n++] = g->regions[r].out;
    }
    return n;
}

static tb_status cut_layer(stack *s, const tb_graph *g, layer *l)
{
    int held[TB_STREAMS_MOST + BRANCHES], n = g->nstreams;
    memcpy(held, g->cuts[0].nodes, (size_t)n * sizeof *held);
    l->branches = branches_of(g, held + n, BRANCHES);
    return tb_piece_cut(&s->a, g, held, n + l->branches,
                        g->cuts[g->ncuts - 1].nodes, n, &l->piece);
}

/* Parameters at their initial values; equal layers share their matrices. */
static tb_status init_params(stack *s, size_t part, layer *l,
                             const layer *alike)
{
    const tb_graph *g = l->piece.graph;
    l->params =
        tb_arena_alloc(&s->a, ((size_t)g->nparams + 1) * sizeof *l->params);
    if (!l->params)
        return TB_ERR_MEMORY;
    for (int i = 0; i < g->nparams; i++) {
        const tb_view *v =
            tb_model_part_view(s->m, part, (size_t)l->piece.param[i]);
        if (alike && v->role == TB_ROLE_MATRIX) {
            l->params[i] = alike->params[i];
            continue;
        }
        double *to = tb_arena_alloc(&s->a, (v->count + 1) * sizeof *to);
        if (!to)
            return TB_ERR_MEMORY;
        TB_TRY(tb_model_init_view(s->m, v, VIEW_SEED, to));
        l->params[i] = to;
    }
    return TB_OK;
}

static double *vector(stack *s)
{
    return tb_arena_alloc(&s->a, s->width * sizeof(double));
}

static tb_status connect(stack *s, size_t i, layer *l)
{
    const tb_graph *g = l->piece.graph;
    size_t n = (size_t)s->nstreams;
    l->inputs =
        tb_arena_alloc(&s->a, ((size_t)g->ninputs + 1) * sizeof *l->inputs);
    l->outputs = tb_arena_alloc(&s->a, n * sizeof *l->outputs);
    if (!l->inputs || !l->outputs)
        return TB_ERR_MEMORY;
    for (size_t k = 0; k < n; k++) {
        l->inputs[k] = s->streams[i * n + k];
        l->outputs[k] = s->streams[(i + 1) * n + k];
    }
    for (int b = 0; b < l->branches; b++) {
        double *v = vector(s);
        if (!v)
            return TB_ERR_MEMORY;
        cosine(++s->used, s->width, 1, v);
        l->inputs[n + (size_t)b] = v;
    }
    l->run.run.inputs = l->inputs;
    l->run.run.outputs = l->outputs;
    l->run.run.params = l->params;
    return TB_OK;
}

/* As in an evaluation: what is random would hide the rest. */
static void drop_nothing(layer *l)
{
    const tb_graph *g = l->piece.graph;
    for (int i = 0; i < g->nnodes; i++)
        if (g->nodes[i].op == &tb_op_drop || g->nodes[i].op == &tb_op_skipdrop)
            l->run.attr[i][TB_ATTR_DROP_P] = 0;
}

static tb_status open_layer(stack *s, size_t i)
{
    size_t part = s->at.first + i;
    const tb_graph *g = tb_model_graph(s->m, part);
    layer *l = &s->layers[i], *alike = NULL;
    for (size_t k = 0; k < i && !alike; k++)
        if (tb_model_graph(s->m, s->at.first + k) == g)
            alike = &s->layers[k];
    if (alike) {
        l->piece = alike->piece;
        l->branches = alike->branches;
    } else {
        TB_TRY(cut_layer(s, g, l));
    }
    TB_TRY(init_params(s, part, l, alike));
    TB_TRY(tb_piece_open(s->ctx, &s->a, &l->piece, tb_model_attrs(s->m, part),
                         1, TB_PASS_BWD, &l->run));
    drop_nothing(l);
    return connect(s, i, l);
}

/* --- a stack -------------------------------------------------------------- */

/* Wide enough for a vector of its own for every branch, and two more. */
static tb_settings sizes_for(const tb_settings *given, size_t depth)
{
    tb_settings s = *given;
    size_t heads = s.heads ? s.heads : HEADS;
    s.depth = depth;
    s.decoder_depth = 0;
    s.width =
        ((s.stack == TB_STACKS_BOTH ? 128 : 64) + heads - 1) / heads * heads;
    s.heads = heads;
    s.ffn = 0;
    s.vocab = 2;
    s.context = 1;
    s.dropout = 0;
    return s;
}

static tb_status open_stack(stack *s, tb_ctx *ctx, const tb_block *b,
                            const tb_settings *settings, size_t depth)
{
    tb_settings small = sizes_for(settings, depth);
    *s = (stack){.ctx = ctx, .used = 1};
    tb_arena_init(&s->a, ctx);
    TB_TRY(tb_model_create(ctx, b, &small, TB_F64, &s->m));
    s->at = tb_model_layers(s->m, tb_model_tail(s->m));
    s->width = s->m->sizes.s.width;
    s->nstreams = tb_model_graph(s->m, s->at.first)->nstreams;
    size_t n = (s->at.n + 1) * (size_t)s->nstreams;
    s->layers = tb_arena_alloc(&s->a, s->at.n * sizeof *s->layers);
    s->streams = tb_arena_alloc(&s->a, n * sizeof *s->streams);
    if (!s->layers || !s->streams)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        if (!(s->streams[i] = vector(s)))
            return TB_ERR_MEMORY;
    for (size_t i = 0; i < s->at.n; i++)
        TB_TRY(open_layer(s, i));
    return TB_OK;
}

static void close_stack(stack *s)
{
    for (size_t i = 0; s->layers && i < s->at.n; i++)
        if (s->layers[i].run.plan)
            tb_plan_destroy(s->ctx, s->layers[i].run.plan);
    tb_model_destroy(s->m);
    tb_arena_clear(&s->a);
}

static tb_status up(stack *s, double start)
{
    for (int k = 0; k < s->nstreams; k++)
        cosine(1, s->width, start, s->streams[k]);
    for (size_t i = 0; i < s->at.n; i++)
        TB_TRY(tb_plan_forward(s->ctx, &s->layers[i].run.run));
    return TB_OK;
}

static double length_of(const double *x, size_t n)
{
    double square = 0;
    for (size_t i = 0; i < n; i++)
        square += x[i] * x[i];
    return tb_sqrt(square);
}

/* Lane of stream k from the top to itself at the bottom, along a vector that
 * nothing else has a share in. */
static tb_status down(stack *s, int k, double *gain)
{
    size_t n = (size_t)s->nstreams;
    double *g[2 * TB_STREAMS_MOST];
    for (size_t i = 0; i < 2 * n; i++)
        if (!(g[i] = vector(s)))
            return TB_ERR_MEMORY;
    cosine(s->width - 1, s->width, 1, g[k]);
    double start = length_of(g[k], s->width);
    for (size_t i = s->at.n; i-- > 0;) {
        const layer *l = &s->layers[i];
        const void *gout[TB_STREAMS_MOST];
        void *gin[TB_STREAMS_MOST + BRANCHES] = {NULL};
        tb_bwd b = {.hi = -1, .lo = -1, .cut = true, .gout = gout, .gin = gin};
        size_t from = (s->at.n - 1 - i) % 2 * n, to = n - from;
        for (size_t j = 0; j < n; j++) {
            gout[j] = g[from + j];
            gin[j] = g[to + j];
        }
        TB_TRY(tb_plan_backward(s->ctx, &l->run.run, &b));
    }
    *gain = length_of(g[s->at.n % 2 * n + (size_t)k], s->width) / start;
    return TB_OK;
}

static double spread(const double *x, size_t n)
{
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        square += (x[i] - mean) * (x[i] - mean) / (double)n;
    return tb_sqrt(square);
}

static tb_status measure(stack *s, size_t d, tb_deep *out)
{
    size_t n = (size_t)s->nstreams;
    TB_TRY(up(s, 1));
    out->sublayers[d] = s->used - 1;
    for (size_t k = 0; k < n; k++) {
        out->std[d][k] = spread(s->streams[s->at.n * n + k], s->width);
        TB_TRY(down(s, (int)k, &out->lane[d][k]));
    }
    for (size_t i = 0; i < s->at.n; i++) /* F = 0 */
        for (int b = 0; b < s->layers[i].branches; b++) {
            double *v = vector(s);
            if (!v)
                return TB_ERR_MEMORY;
            s->layers[i].inputs[n + (size_t)b] = v;
        }
    TB_TRY(up(s, TB_DEEP_SILENT_STD));
    return down(s, 0, &out->silent[d]);
}

/* --- what such a stack cannot say ----------------------------------------- */

static const char *refuses(const stack *s)
{
    for (size_t i = 0; i < s->m->nviews; i++)
        if (tb_streq(s->m->views[i].rule, "profiled"))
            return "its starts are profiled";
    for (size_t i = 0; i < s->at.n; i++) {
        const layer *l = &s->layers[i];
        for (int k = 0; k < l->piece.graph->nnodes; k++) {
            const tb_op *op = l->piece.graph->nodes[k].op;
            if (op == &tb_op_batchnorm || op == &tb_op_powernorm)
                return "its norms need a batch";
        }
        if (l->piece.graph->ninputs > s->nstreams + l->branches)
            return tb_model_graph(s->m, s->at.first)->nlists > 0
                       ? "it reads earlier blocks"
                       : "it reads a memory";
    }
    return s->used + 1 < s->width ? NULL : "it has too many branches";
}

tb_status tb_corner_deep(tb_ctx *ctx, const tb_block *b,
                         const tb_settings *settings, tb_deep *out)
{
    static const size_t depths[TB_DEEP_COUNT] = {6, 12, 24};
    *out = (tb_deep){.measured = true};
    for (size_t d = 0; d < TB_DEEP_COUNT && out->measured; d++) {
        stack s;
        tb_status status = open_stack(&s, ctx, b, settings, depths[d]);
        out->depth[d] = depths[d];
        out->nstreams = s.nstreams;
        if (status == TB_OK)
            out->why = refuses(&s);
        if (status == TB_OK && !out->why)
            status = measure(&s, d, out);
        close_stack(&s);
        if (status == TB_ERR_MEMORY)
            return status;
        if (status != TB_OK)
            out->why = "its values have no numbers there";
        tb_error_clear(ctx);
        out->measured = !out->why;
    }
    return TB_OK;
}
