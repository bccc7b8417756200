/* SPDX-License-Identifier: MIT */
/* How well three ways to a Jacobian agree: rows by backward passes, columns
 * by tangent passes and by central differences. */
#include "model/eval_state.h"

/** What the check compares column by column. */
typedef struct tb_check {
    tb_eval_state *s;
    tb_eval_state *frozen; /* stopped values held: for the differences */
    const tb_eval_cols *c;
    const double *j;        /* by backward passes */
    double *column, *above; /* [outputs] */
    const void **tin, **tparams;
    void *one; /* zeros but for one element */
    double tangent, difference, step;
} tb_check;

static double worst(const tb_check *k, size_t col, double before)
{
    size_t n = k->s->rows * k->s->width;
    for (size_t i = 0; i < n; i++) {
        double d = tb_fabs(k->column[i] - k->j[i * k->c->count + col]);
        if (before == before && !(d <= before)) /* keeps a NaN */
            before = d;
    }
    return before;
}

static tb_status tangent_column(tb_check *k, const tb_eval_var *v, size_t e,
                                size_t col)
{
    tb_eval_state *s = k->s;
    const void **slot = &(v->is_param ? k->tparams : k->tin)[v->index];
    tb_elem_set(s->dtype, k->one, e, 1);
    *slot = k->one;
    tb_status status =
        tb_plan_tangent(s->ctx, &s->run, k->tin, k->tparams, s->gout);
    *slot = NULL;
    tb_elem_set(s->dtype, k->one, e, 0);
    TB_TRY(status);
    tb_eval_join(s, s->gout, k->column);
    k->tangent = worst(k, col, k->tangent);
    return TB_OK;
}

/* (y(x + h) - y(x - h)) / 2h in double. The data is shared by both states. */
static tb_status difference_column(tb_check *k, const tb_eval_var *v, size_t e,
                                   size_t col)
{
    tb_eval_state *s = k->frozen;
    double *x = v->data, at = x[e], size = tb_fabs(at);
    double h = 6e-6 * (size > 1 ? size : 1);
    volatile double up = at + h, down = at - h; /* the steps taken */
    x[e] = up;
    tb_status status = tb_eval_forward(s);
    tb_eval_join(s, s->outputs, k->above);
    x[e] = down;
    if (status == TB_OK)
        status = tb_eval_forward(s);
    tb_eval_join(s, s->outputs, k->column);
    x[e] = at;
    for (size_t i = 0; i < s->rows * s->width; i++)
        k->column[i] = (k->above[i] - k->column[i]) / (up - down);
    k->difference = worst(k, col, k->difference);
    k->step = h > k->step ? h : k->step;
    return status;
}

/* Turn node i of the copy into an input that holds its value. */
static tb_status hold(tb_eval_state *f, const tb_eval_state *s, int i)
{
    tb_eval_var v = {.name = "stop",
                     .index = f->graph->ninputs,
                     .shape = f->graph->nodes[i].shape};
    v.count = tb_shape_count(v.shape, s->batch, s->times[i]);
    v.data = tb_eval_buffer(f, v.count, sizeof(double));
    if (!v.data)
        return TB_ERR_MEMORY;
    memcpy(v.data, tb_plan_value(&s->run, i), v.count * sizeof(double));
    f->graph->nodes[i].op = &tb_op_input;
    f->graph->nodes[i].nin = 0;
    f->graph->inputs[f->graph->ninputs++] = i;
    f->vars[f->nvars++] = v;
    return TB_OK;
}

/* Room for the copy of a graph with as many inputs as nodes. */
static tb_status copy_graph(tb_eval_state *f, const tb_eval_state *s)
{
    const tb_graph *g = s->graph;
    size_t n = (size_t)g->nnodes;
    tb_node *nodes = tb_eval_buffer(f, n, sizeof *nodes);
    int *inputs = tb_eval_buffer(f, n, sizeof *inputs);
    f->graph = TB_NEW(&f->arena, tb_graph);
    f->vars = tb_eval_buffer(f, s->nvars + n, sizeof *f->vars);
    if (!f->graph || !nodes || !inputs || !f->vars)
        return TB_ERR_MEMORY;
    memcpy(nodes, g->nodes, n * sizeof *nodes);
    memcpy(inputs, g->inputs, (size_t)g->ninputs * sizeof *inputs);
    memcpy(f->vars, s->vars, s->nvars * sizeof *s->vars);
    *f->graph = *g;
    f->graph->nodes = nodes;
    f->graph->inputs = inputs;
    return TB_OK;
}

/* A state that runs the same graph on the same numbers, but in which every
 * stop is an input with the value it has now. */
static tb_status freeze(const tb_eval_state *s, tb_eval_state *f)
{
    *f = *s;
    f->plan = NULL;
    f->block = NULL;
    tb_arena_init(&f->arena, s->ctx);
    TB_TRY(copy_graph(f, s));
    for (int i = 0; i < s->graph->nnodes; i++)
        if (s->graph->nodes[i].op == &tb_op_stop)
            TB_TRY(hold(f, s, i));
    return tb_eval_plan(f, 0);
}

static tb_status check_columns(tb_check *k)
{
    size_t col = 0;
    for (size_t v = 0; v < k->c->nvars; v++)
        for (size_t e = 0; e < k->c->vars[v]->count; e++, col++) {
            TB_TRY(tangent_column(k, k->c->vars[v], e, col));
            TB_TRY(difference_column(k, k->c->vars[v], e, col));
        }
    return TB_OK;
}

static tb_status check_buffers(tb_check *k, double **j, size_t count)
{
    tb_eval_state *s = k->s;
    size_t n = s->rows * s->width, most = 0;
    for (size_t v = 0; v < k->c->nvars; v++)
        most = k->c->vars[v]->count > most ? k->c->vars[v]->count : most;
    *j = tb_eval_buffer(s, count, sizeof(double));
    k->j = *j;
    k->column = tb_eval_buffer(s, n, sizeof(double));
    k->above = tb_eval_buffer(s, n, sizeof(double));
    k->one = tb_eval_buffer(s, most, sizeof(double));
    k->tin = tb_eval_buffer(s, (size_t)s->graph->ninputs + 1, sizeof *k->tin);
    k->tparams =
        tb_eval_buffer(s, (size_t)s->graph->nparams + 1, sizeof *k->tparams);
    return k->j && k->column && k->above && k->one && k->tin && k->tparams
               ? TB_OK
               : TB_ERR_MEMORY;
}

static void conclude(const tb_check *k, size_t count, tb_eval_agreement *out)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        double a = tb_fabs(k->j[i]);
        if (!(a <= largest))
            largest = a;
    }
    double over = largest > 1e-300 ? largest : 1e-300;
    *out = (tb_eval_agreement){k->tangent / over, k->difference / over, k->step,
                               largest};
}

static tb_status check(tb_eval_state *s, tb_eval_state *frozen,
                       tb_eval_agreement *out)
{
    tb_eval_cols cols = {0};
    tb_check k = {.s = s, .frozen = frozen, .c = &cols};
    size_t count;
    double *j;
    TB_TRY(tb_eval_columns(s, s->spec->jacobian, &cols));
    TB_TRY(tb_eval_jacobian_size(s, &cols, false, &count));
    TB_TRY(tb_eval_plan(s, TB_PASS_BWD | TB_PASS_TAN));
    TB_TRY(check_buffers(&k, &j, count));
    TB_TRY(tb_eval_jacobian(s, &cols, false, j));
    TB_TRY(freeze(s, frozen));
    TB_TRY(check_columns(&k));
    conclude(&k, count, out);
    return TB_OK;
}

tb_status tb_eval_check(tb_ctx *ctx, const tb_eval *e, tb_eval_agreement *out)
{
    tb_eval_state s, frozen = {.ctx = ctx};
    tb_arena_init(&frozen.arena, ctx);
    tb_status status =
        e->jacobian
            ? TB_OK
            : TB_FAIL(ctx, TB_ERR_INPUT, "check: got no name, wanted an input");
    TB_TRY(status);
    status = tb_eval_open(&s, ctx, e, TB_F64);
    if (status == TB_OK)
        status = check(&s, &frozen, out);
    tb_eval_close(&frozen);
    tb_eval_close(&s);
    return status;
}
