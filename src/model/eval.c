/* SPDX-License-Identifier: MIT */
/* eval: the value, the gradients along a cotangent, the tangent, and where
 * the first non-finite number was made. */
#include "model/eval_state.h"

/** A result and the memory it stands in. */
typedef struct tb_eval_owner {
    tb_eval_result result; /* first: what the caller holds */
    tb_arena arena;
} tb_eval_owner;

static double *new_value(tb_eval_owner *w, const char *name, int rank,
                         const size_t *dims, tb_eval_value *out)
{
    size_t n = 1;
    out->name = tb_arena_strdup(&w->arena, name);
    out->rank = rank;
    for (int i = 0; i < rank; i++) {
        out->dims[i] = dims[i];
        n *= dims[i];
    }
    double *data = tb_arena_alloc(&w->arena, n * sizeof *data);
    out->data = data;
    return out->name ? data : NULL;
}

static tb_status give_y(tb_eval_state *s, tb_eval_owner *w)
{
    double *y = new_value(w, "y", s->y_rank, s->y_dims, &w->result.y);
    if (!y)
        return TB_ERR_MEMORY;
    tb_eval_join(s, s->outputs, y);
    return TB_OK;
}

/* --- non-finite ---------------------------------------------------------- */

static bool row_is_bad(const tb_eval_state *s, const void *x, size_t from,
                       size_t n)
{
    for (size_t i = from; i < from + n; i++)
        if (!tb_isfinite(tb_elem_get(s->dtype, x, i)))
            return true;
    return false;
}

/* The first operation whose value is not finite in `row` (in any row where y
 * has only one). */
static const char *first_op(const tb_eval_state *s, size_t row)
{
    const tb_graph *g = s->graph;
    for (int i = 0; i < g->nnodes; i++) {
        const tb_node *n = &g->nodes[i];
        const void *x = tb_plan_value(&s->run, i);
        if (n->op->lane == TB_LANE_LEAF || !x)
            continue;
        size_t all = tb_shape_count(n->shape, s->batch, s->times[i]);
        bool whole = tb_eval_rows(s, i) != s->rows;
        if (row_is_bad(s, x, whole ? 0 : row * n->shape.width,
                       whole ? all : n->shape.width))
            return n->op->name;
    }
    return NULL;
}

static void find_nonfinite(const tb_eval_state *s, tb_eval_result *r)
{
    for (size_t row = 0; row < s->rows; row++) {
        bool bad = false;
        for (size_t i = 0; i < s->width; i++)
            bad = bad || !tb_isfinite(r->y.data[row * s->width + i]);
        if (!bad)
            continue;
        r->nonfinite_rows++;
        if (!r->first_row) {
            r->first_row = row + 1;
            r->first_op = first_op(s, row);
        }
    }
}

/* --- attention to nothing ------------------------------------------------ */

/* Does query i of sequence b see key j? As op_mha.c has it. */
static bool sees(const tb_eval_state *s, int node, size_t b, size_t i, size_t j)
{
    const tb_node *n = &s->graph->nodes[node];
    size_t tq = s->times[node], tk = s->times[n->in[1]];
    if (s->run.attr[node][TB_ATTR_ATTN_CAUSAL] != 0 && j + tq > i + tk)
        return false;
    if (n->nin < 4)
        return true;
    size_t rows = s->times[n->in[3]];
    bool pairs = s->graph->nodes[n->in[3]].shape.width == tk && rows == tq;
    size_t row = b * rows + (pairs ? i : j), at = pairs ? row * tk + j : row;
    return tb_elem_get(s->dtype, tb_plan_value(&s->run, n->in[3]), at) > 0;
}

static void count_empty_rows(const tb_eval_state *s, tb_eval_result *r)
{
    for (int k = 0; k < s->graph->nnodes; k++) {
        const tb_node *n = &s->graph->nodes[k];
        if (n->op != &tb_op_mha)
            continue;
        size_t tq = s->times[k], tk = s->times[n->in[1]];
        for (size_t i = 0; i < s->batch * tq; i++) {
            size_t j = 0;
            while (j < tk && !sees(s, k, i / tq, i % tq, j))
                j++;
            r->empty_rows += j == tk;
        }
    }
}

/* --- gradients ----------------------------------------------------------- */

tb_status tb_eval_back(tb_eval_state *s)
{
    tb_bwd b = {.hi = -1,
                .lo = -1,
                .gout = (const void *const *)s->gout,
                .gin = s->gin,
                .gparams = s->gparams};
    return tb_plan_backward(s->ctx, &s->run, &b);
}

static tb_status want_all(tb_eval_state *s)
{
    for (size_t i = 0; i < s->nvars; i++) {
        const tb_eval_var *v = &s->vars[i];
        if (v->is_buffer)
            continue;
        void *g = tb_eval_buffer(s, v->count, tb_dtype_size(s->dtype));
        if (!g)
            return TB_ERR_MEMORY;
        (v->is_param ? s->gparams : s->gin)[v->index] = g;
    }
    return TB_OK;
}

static tb_status give_grad(tb_eval_state *s, tb_eval_owner *w,
                           const tb_eval_var *v, const char *name)
{
    tb_eval_result *r = &w->result;
    double *g = new_value(w, name, v->rank, v->dims, &r->grads[r->ngrads]);
    if (!g)
        return TB_ERR_MEMORY;
    r->ngrads++;
    tb_eval_store(s, (v->is_param ? s->gparams : s->gin)[v->index], v->count,
                  g);
    return TB_OK;
}

/* One per variable, and one more for a weight that was set by a short name. */
static tb_status give_grads(tb_eval_state *s, tb_eval_owner *w)
{
    tb_eval_result *r = &w->result;
    r->grads = tb_arena_alloc(&w->arena, (2 * s->nvars + 1) * sizeof *r->grads);
    if (!r->grads)
        return TB_ERR_MEMORY;
    tb_eval_split(s, s->spec->cotangent->data, s->gout);
    TB_TRY(want_all(s));
    TB_TRY(tb_eval_back(s));
    for (size_t i = 0; i < s->nvars; i++) {
        if (s->vars[i].is_buffer)
            continue;
        TB_TRY(give_grad(s, w, &s->vars[i], s->vars[i].name));
        if (s->vars[i].alias)
            TB_TRY(give_grad(s, w, &s->vars[i], s->vars[i].alias));
    }
    memset(s->gin, 0, (size_t)s->graph->ninputs * sizeof *s->gin);
    memset(s->gparams, 0, (size_t)s->graph->nparams * sizeof *s->gparams);
    return TB_OK;
}

/* --- tangent ------------------------------------------------------------- */

static tb_status load_tangents(tb_eval_state *s, const void **tin,
                               const void **tparams)
{
    for (size_t i = 0; i < s->spec->ntangents; i++) {
        const tb_eval_value *t = &s->spec->tangents[i];
        tb_eval_var *v;
        TB_TRY(tb_eval_need_input(s, "tangent", t->name, &v));
        TB_TRY(tb_eval_fits(s, t->name, t, v->rank, v->dims));
        void *data = tb_eval_buffer(s, v->count, tb_dtype_size(s->dtype));
        if (!data)
            return TB_ERR_MEMORY;
        tb_eval_load(s, t->data, v->count, data);
        (v->is_param ? tparams : tin)[v->index] = data;
    }
    return TB_OK;
}

static tb_status give_tangent(tb_eval_state *s, tb_eval_owner *w)
{
    const tb_graph *g = s->graph;
    const void **tin = tb_eval_buffer(s, (size_t)g->ninputs + 1, sizeof *tin);
    const void **tparams =
        tb_eval_buffer(s, (size_t)g->nparams + 1, sizeof *tparams);
    double *t =
        new_value(w, "tangent", s->y_rank, s->y_dims, &w->result.tangent);
    if (!tin || !tparams || !t)
        return TB_ERR_MEMORY;
    TB_TRY(load_tangents(s, tin, tparams));
    TB_TRY(tb_plan_tangent(s->ctx, &s->run, tin, tparams, s->gout));
    tb_eval_join(s, s->gout, t);
    return TB_OK;
}

/* --- statistics ----------------------------------------------------------- */

static tb_status give_statistic(tb_eval_state *s, tb_eval_owner *w, int node,
                                int i)
{
    const tb_node *in = &s->graph->nodes[s->graph->nodes[node].in[i]];
    tb_eval_result *r = &w->result;
    tb_eval_value v;
    double *x = new_value(w, in->name, 1, &in->shape.width, &v);
    if (!x)
        return TB_ERR_MEMORY;
    if (tb_plan_statistic(s->ctx, &s->run, node, i, x))
        r->statistics[r->nstatistics++] = v;
    return TB_OK;
}

/* What norms over tokens found, or were given. */
static tb_status give_statistics(tb_eval_state *s, tb_eval_owner *w)
{
    const tb_graph *g = s->graph;
    size_t n = (size_t)g->nparams + 1;
    w->result.statistics =
        tb_arena_alloc(&w->arena, n * sizeof *w->result.statistics);
    if (!w->result.statistics)
        return TB_ERR_MEMORY;
    for (int node = 0; node < g->nnodes; node++)
        for (int i = 0; i < g->nodes[node].nin; i++)
            if (g->nodes[node].op->state & TB_NEED_IN(i))
                TB_TRY(give_statistic(s, w, node, i));
    return TB_OK;
}

/* --- all of it ----------------------------------------------------------- */

static tb_status give_jacobian(tb_eval_state *s, tb_eval_owner *w,
                               const tb_eval_cols *c)
{
    bool blocks = s->spec->jacobian_blocks;
    size_t dims[3] = {s->rows * s->width, c->count, 0};
    if (blocks) {
        dims[0] = s->rows;
        dims[1] = s->width;
        dims[2] = c->count / s->rows;
    }
    double *j =
        new_value(w, "jacobian", blocks ? 3 : 2, dims, &w->result.jacobian);
    return j ? tb_eval_jacobian(s, c, blocks, j) : TB_ERR_MEMORY;
}

static tb_status evaluate(tb_eval_state *s, tb_eval_owner *w)
{
    const tb_eval *e = s->spec;
    tb_eval_cols cols = {0};
    size_t count;
    if (e->cotangent)
        TB_TRY(
            tb_eval_fits(s, "cotangent", e->cotangent, s->y_rank, s->y_dims));
    if (e->jacobian) {
        TB_TRY(tb_eval_columns(s, e->jacobian, &cols));
        TB_TRY(tb_eval_jacobian_size(s, &cols, e->jacobian_blocks, &count));
    }
    unsigned passes = e->cotangent || e->jacobian ? TB_PASS_BWD : 0;
    TB_TRY(tb_eval_plan(s, passes | (e->ntangents ? TB_PASS_TAN : 0)));
    TB_TRY(give_y(s, w));
    find_nonfinite(s, &w->result);
    TB_TRY(give_statistics(s, w));
    count_empty_rows(s, &w->result);
    if (e->cotangent)
        TB_TRY(give_grads(s, w));
    if (e->jacobian)
        TB_TRY(give_jacobian(s, w, &cols));
    return e->ntangents ? give_tangent(s, w) : TB_OK;
}

tb_status tb_eval_run(tb_ctx *ctx, const tb_eval *e, tb_eval_result **out)
{
    *out = NULL;
    tb_eval_owner *w = tb_alloc(ctx, 1, sizeof *w);
    if (!w)
        return TB_ERR_MEMORY;
    tb_arena_init(&w->arena, ctx);
    tb_eval_state s;
    tb_status status = tb_eval_open(&s, ctx, e, e->f32 ? TB_F32 : TB_F64);
    if (status == TB_OK)
        status = evaluate(&s, w);
    tb_eval_close(&s);
    if (status == TB_OK)
        *out = &w->result;
    else
        tb_eval_free(ctx, &w->result);
    return status;
}

void tb_eval_free(tb_ctx *ctx, tb_eval_result *r)
{
    if (!r)
        return;
    tb_eval_owner *w = (tb_eval_owner *)r;
    tb_arena_clear(&w->arena);
    tb_free(ctx, w);
}
