/* SPDX-License-Identifier: MIT */
/* sigma -> 0: the largest gain of a norm on a row without spread, by formula
 * and as the largest singular value of its Jacobian there. */
#include "model/corners.h"
#include "model/piece.h"

enum { MOST = 16, TURNS = 60 };

/** By where eps stands. n: numbers of a row that are normed together. */
static const struct {
    tb_eps_mode mode;
    const char *name, *gain, *length_gain; /* of layernorm and rmsnorm; of
                                              scalenorm and l2norm */
} modes[] = {
    {TB_EPS_INSIDE, "inside", "1/sqrt(eps)", "1/sqrt(n*eps)"},
    {TB_EPS_OUTSIDE, "outside", "1/eps", "1/(sqrt(n)*eps)"},
    {TB_EPS_CLAMP, "clamp", "sqrt(n)/eps", "1/eps"},
    {TB_EPS_CLAMP_SQUARE, "clamp_square", "sqrt(n)/sqrt(eps)", "1/sqrt(eps)"},
    {TB_EPS_DTYPE, "dtype", "1/sqrt(eps)", "1/sqrt(n*eps)"},
    {TB_EPS_NONE, "none", "infinite", "infinite"},
};

static bool is_length(const tb_op *op)
{
    return op == &tb_op_scalenorm || op == &tb_op_l2norm;
}

static size_t mode_of(const tb_op *op, double attr)
{
    tb_eps_mode mode = (tb_eps_mode)attr;
    if (mode == TB_EPS_DEFAULT)
        mode = is_length(op) ? TB_EPS_CLAMP : TB_EPS_INSIDE;
    for (size_t i = 0; i < TB_LEN(modes); i++)
        if (modes[i].mode == mode)
            return i;
    return 0;
}

static double value_of(tb_eps_mode mode, double eps, double n)
{
    switch (mode) {
    case TB_EPS_OUTSIDE:
        return 1 / eps;
    case TB_EPS_CLAMP:
        return tb_sqrt(n) / eps;
    case TB_EPS_CLAMP_SQUARE:
        return tb_sqrt(n) / tb_sqrt(eps);
    case TB_EPS_DEFAULT:
    case TB_EPS_INSIDE:
    case TB_EPS_DTYPE:
    case TB_EPS_NONE:
        break;
    }
    return 1 / tb_sqrt(eps);
}

/* --- measured ------------------------------------------------------------- */

/* Largest singular value of m[n, n]: a few turns of m' m. */
static double largest(const double *m, size_t n, double *v, double *w)
{
    double length = 0;
    for (size_t i = 0; i < n; i++)
        v[i] = tb_cos((double)(i * i + 1));
    for (int turn = 0; turn < TURNS; turn++) {
        memset(w, 0, n * sizeof *w);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                w[i] += m[i * n + j] * v[j];
        memset(v, 0, n * sizeof *v);
        length = 0;
        for (size_t i = 0; i < n; i++) {
            length += w[i] * w[i];
            for (size_t j = 0; j < n; j++)
                v[j] += m[i * n + j] * w[i];
        }
        double square = 0;
        for (size_t j = 0; j < n; j++)
            square += v[j] * v[j];
        if (!(square > 0))
            return tb_sqrt(length);
        for (size_t j = 0; j < n; j++)
            v[j] /= tb_sqrt(square);
    }
    return tb_sqrt(length);
}

/* Gains, lengths and the like, at 1: the norm as its formula has it. */
static tb_status unit_params(tb_arena *a, const tb_piece *p, tb_piece_run *r)
{
    const tb_graph *g = p->graph;
    const void **params =
        tb_arena_alloc(a, ((size_t)g->nparams + 1) * sizeof *params);
    if (!params)
        return TB_ERR_MEMORY;
    for (int i = 0; i < g->nparams; i++) {
        size_t n = tb_shape_count(g->params[i].shape, 1, 1);
        double *v = tb_arena_alloc(a, (n + 1) * sizeof *v);
        if (!v)
            return TB_ERR_MEMORY;
        for (size_t k = 0; k < n; k++)
            v[k] = g->params[i].role != TB_ROLE_BIAS;
        params[i] = v;
    }
    r->run.params = params;
    return TB_OK;
}

static tb_status columns(tb_ctx *ctx, const tb_run *run, size_t n, double *unit,
                         double *column, double *m)
{
    for (size_t j = 0; j < n; j++) {
        const void *tin[1] = {unit};
        void *tout[1] = {column};
        unit[j] = 1;
        TB_TRY(tb_plan_tangent(ctx, run, tin, NULL, tout));
        unit[j] = 0;
        for (size_t i = 0; i < n; i++)
            m[i * n + j] = column[i];
    }
    return TB_OK;
}

/* The norm alone on a row of zeros. */
static tb_status measure(const tb_model *m, tb_arena *a, size_t part, int node,
                         double *out)
{
    const tb_graph *g = tb_model_graph(m, part);
    size_t n = g->nodes[node].shape.width;
    tb_piece p;
    tb_piece_run r;
    double *row = tb_arena_alloc(a, n * sizeof *row);
    double *unit = tb_arena_alloc(a, n * sizeof *unit);
    double *column = tb_arena_alloc(a, n * sizeof *column);
    double *j = tb_arena_alloc(a, n * n * sizeof *j);
    if (!row || !unit || !column || !j)
        return TB_ERR_MEMORY;
    TB_TRY(tb_piece_cut(a, g, g->nodes[node].in, 1, &node, 1, &p));
    TB_TRY(unit_params(a, &p, &r));
    const void *const *params = r.run.params, *inputs[1] = {row};
    tb_status s = tb_piece_open(m->ctx, a, &p, tb_model_attrs(m, part), 1,
                                TB_PASS_TAN, &r);
    r.run.params = params;
    r.run.inputs = inputs;
    if (s == TB_OK)
        s = tb_plan_forward(m->ctx, &r.run);
    if (s == TB_OK)
        s = columns(m->ctx, &r.run, n, unit, column, j);
    if (s == TB_OK)
        *out = largest(j, n, unit, column);
    if (r.plan)
        tb_plan_destroy(m->ctx, r.plan);
    return s;
}

/* --- all of them ---------------------------------------------------------- */

static bool is_rowwise(const tb_op *op)
{
    return op == &tb_op_layernorm || op == &tb_op_rmsnorm || is_length(op);
}

static tb_flat describe(const tb_model *m, size_t part, int node)
{
    const tb_node *n = &tb_model_graph(m, part)->nodes[node];
    const double *attr = tb_model_attrs(m, part)[node];
    size_t i = mode_of(n->op, attr[TB_ATTR_NORM_EPS_MODE]);
    double groups = attr[TB_ATTR_NORM_GROUPS];
    double count = (double)n->shape.width / (groups > 1 ? groups : 1);
    double eps = modes[i].mode == TB_EPS_NONE    ? 0
                 : modes[i].mode == TB_EPS_DTYPE ? 0x1p-52
                                                 : attr[TB_ATTR_NORM_EPS];
    tb_flat f = {.norm = n->op->name, .mode = modes[i].name, .eps = eps};
    f.gain = is_length(n->op) ? modes[i].length_gain : modes[i].gain;
    f.value = value_of(modes[i].mode, eps, count);
    if (is_length(n->op))
        f.value /= tb_sqrt(count);
    return f;
}

static bool is_same(const tb_flat *a, const tb_flat *b)
{
    return a->norm == b->norm && a->mode == b->mode && a->eps == b->eps &&
           a->value == b->value;
}

static tb_status add(const tb_model *m, tb_arena *a, size_t part, int node,
                     tb_flat *all, size_t *n)
{
    tb_flat f = describe(m, part, node);
    for (size_t i = 0; i < *n; i++)
        if (is_same(&all[i], &f))
            return TB_OK;
    f.measured = __builtin_nan("");
    tb_status s = measure(m, a, part, node, &f.measured);
    if (s == TB_ERR_MEMORY)
        return s;
    tb_error_clear(m->ctx); /* eps = 0: the row has no norm */
    all[(*n)++] = f;
    return TB_OK;
}

tb_status tb_corner_flat(const tb_model *m, tb_arena *a, tb_flat **out,
                         size_t *n)
{
    const tb_graph *before = NULL;
    *n = 0;
    *out = tb_arena_alloc(a, MOST * sizeof **out);
    if (!*out)
        return TB_ERR_MEMORY;
    for (size_t p = 0; p < m->nparts; p++) {
        const tb_graph *g = tb_model_graph(m, p);
        for (int i = 0; g != before && i < g->nnodes && *n < MOST; i++)
            if (is_rowwise(g->nodes[i].op))
                TB_TRY(add(m, a, p, i, *out, n));
        before = g;
    }
    return TB_OK;
}
