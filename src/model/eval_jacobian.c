/* SPDX-License-Identifier: MIT */
/* Jacobians of eval: rows by backward passes, columns by tangent passes and
 * by central differences, and how well the three agree. */
#include "model/eval_state.h"

static const size_t most_bytes = (size_t)1 << 30;

/* --- columns
 * ------------------------------------------------------------------------------
 */

/* The next name of "a, b", its length in *n; NULL at the end. */
static const char *next_name(const char **at, size_t *n)
{
    const char *p = *at + strspn(*at, ", ");
    *n = strcspn(p, ", ");
    *at = p + *n;
    return *n ? p : NULL;
}

tb_status tb_eval_columns(tb_eval_state *s, const char *names,
                          tb_eval_cols *out)
{
    const char *p;
    size_t n;
    out->vars = tb_eval_buffer(s, strlen(names) + 1, sizeof *out->vars);
    if (!out->vars)
        return TB_ERR_MEMORY;
    while ((p = next_name(&names, &n))) {
        char *name = tb_arena_strndup(&s->arena, p, n);
        if (!name)
            return TB_ERR_MEMORY;
        TB_TRY(tb_eval_need(s, "jacobian", name, &out->vars[out->nvars]));
        out->count += out->vars[out->nvars++]->count;
    }
    if (!out->nvars)
        return TB_FAIL(s->ctx, TB_ERR_INPUT,
                       "jacobian: got no name, wanted an input");
    return TB_OK;
}

static tb_status check_blocks(tb_eval_state *s, const tb_eval_cols *c)
{
    if (c->nvars == 1 && c->vars[0]->shape.kind == TB_SHAPE_STREAM &&
        s->rows == s->batch * s->time)
        return TB_OK;
    return TB_FAIL(s->ctx, TB_ERR_ARG,
                   "jacobian: per-token blocks need one stream and a value "
                   "for each token");
}

tb_status tb_eval_jacobian_size(tb_eval_state *s, const tb_eval_cols *c,
                                bool blocks, size_t *count)
{
    size_t bytes, out = s->rows * s->width;
    if (blocks)
        TB_TRY(check_blocks(s, c));
    size_t in = blocks ? c->count / s->rows : c->count;
    bool fits = tb_mul(out, in, count) && tb_mul(*count, 8, &bytes);
    if (fits && bytes <= most_bytes)
        return TB_OK;
    tb_buf b;
    tb_buf_init(&b, s->ctx);
    if (fits)
        tb_buf_printf(&b, "%zu bytes", bytes);
    else
        tb_buf_printf(&b, "%.0f bytes", (double)out * (double)in * 8);
    tb_status status = TB_FAIL(
        s->ctx, TB_ERR_ARG,
        "jacobian: %zu outputs x %zu inputs take %s, at most %zu are given; "
        "ask for per-token blocks, or for products with it: a tangent (J t) "
        "or a cotangent (J' g)",
        out, in, tb_buf_str(&b), most_bytes);
    tb_buf_clear(&b);
    return status;
}

/* --- rows by backward passes
 * ------------------------------------------------------------------ */

static void **grad_slot(tb_eval_state *s, const tb_eval_var *v)
{
    return v->is_param ? &s->gparams[v->index] : &s->gin[v->index];
}

static tb_status want(tb_eval_state *s, const tb_eval_cols *c)
{
    for (size_t i = 0; i < c->nvars; i++) {
        void **slot = grad_slot(s, c->vars[i]);
        if (!*slot) /* a name given twice shares its gradient */
            *slot =
                tb_eval_buffer(s, c->vars[i]->count, tb_dtype_size(s->dtype));
        if (!*slot)
            return TB_ERR_MEMORY;
    }
    return TB_OK;
}

/* Parameters' gradients are added to, so they start at 0 each time. */
static void clear_grads(tb_eval_state *s, const tb_eval_cols *c)
{
    for (size_t i = 0; i < c->nvars; i++)
        memset(*grad_slot(s, c->vars[i]), 0,
               c->vars[i]->count * tb_dtype_size(s->dtype));
}

/* Element i of y as (output, element). */
static void *cell_of(const tb_eval_state *s, void *const *outputs, size_t i,
                     size_t *element)
{
    size_t row = i / s->width, col = i % s->width;
    for (int o = 0;; o++) {
        size_t w = s->graph->nodes[s->graph->outputs[o].node].shape.width;
        if (col < w) {
            *element = row * w + col;
            return outputs[o];
        }
        col -= w;
    }
}

static tb_status one_row(tb_eval_state *s, const tb_eval_cols *c, size_t i)
{
    size_t e;
    void *cell = cell_of(s, s->gout, i, &e);
    clear_grads(s, c);
    tb_elem_set(s->dtype, cell, e, 1);
    tb_status status = tb_eval_back(s);
    tb_elem_set(s->dtype, cell, e, 0);
    return status;
}

static void store_row(tb_eval_state *s, const tb_eval_cols *c, double *row)
{
    for (size_t v = 0; v < c->nvars; v++) {
        tb_eval_store(s, *grad_slot(s, c->vars[v]), c->vars[v]->count, row);
        row += c->vars[v]->count;
    }
}

/* Only dY_t/dX_t of row t. */
static void store_block(tb_eval_state *s, const tb_eval_cols *c, size_t t,
                        double *row)
{
    size_t w = c->count / s->rows;
    tb_eval_store(s, tb_elem_at(s->dtype, *grad_slot(s, c->vars[0]), t * w), w,
                  row);
}

tb_status tb_eval_jacobian(tb_eval_state *s, const tb_eval_cols *c, bool blocks,
                           double *out)
{
    size_t width = blocks ? c->count / s->rows : c->count;
    for (int o = 0; o < s->graph->noutputs; o++) /* a tangent may be in it */
        memset(s->gout[o], 0,
               s->rows *
                   s->graph->nodes[s->graph->outputs[o].node].shape.width *
                   tb_dtype_size(s->dtype));
    TB_TRY(want(s, c));
    for (size_t i = 0; i < s->rows * s->width; i++) {
        TB_TRY(one_row(s, c, i));
        if (blocks)
            store_block(s, c, i / s->width, out + i * width);
        else
            store_row(s, c, out + i * width);
    }
    return TB_OK;
}

/* --- the check
 * ------------------------------------------------------------------------------------
 */

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
        if (!(d <= before)) /* keeps a NaN */
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

/* A copy of the graph in which every stop is an input, and a state that runs
 * it on the same numbers. */
static tb_status freeze(tb_eval_state *s, tb_eval_state *f)
{
    const tb_graph *g = s->graph;
    *f = *s;
    f->plan = NULL;
    f->block = NULL;
    tb_arena_init(&f->arena, s->ctx);
    f->graph = TB_NEW(&f->arena, tb_graph);
    tb_node *nodes = tb_eval_buffer(f, (size_t)g->nnodes, sizeof *nodes);
    int *inputs = tb_eval_buffer(f, (size_t)g->nnodes, sizeof *inputs);
    f->vars = tb_eval_buffer(f, s->nvars + (size_t)g->nnodes, sizeof *f->vars);
    if (!f->graph || !nodes || !inputs || !f->vars)
        return TB_ERR_MEMORY;
    *f->graph = *g;
    memcpy(nodes, g->nodes, (size_t)g->nnodes * sizeof *nodes);
    memcpy(inputs, g->inputs, (size_t)g->ninputs * sizeof *inputs);
    memcpy(f->vars, s->vars, s->nvars * sizeof *s->vars);
    f->graph->nodes = nodes;
    f->graph->inputs = inputs;
    for (int i = 0; i < g->nnodes; i++) {
        if (g->nodes[i].op != &tb_op_stop)
            continue;
        tb_eval_var v = {.name = "stop",
                         .index = f->graph->ninputs,
                         .shape = g->nodes[i].shape};
        v.count = tb_shape_count(v.shape, s->batch, s->time);
        v.data = tb_eval_buffer(f, v.count, sizeof(double));
        if (!v.data)
            return TB_ERR_MEMORY;
        memcpy(v.data, tb_plan_value(&s->run, i), v.count * sizeof(double));
        nodes[i].op = &tb_op_input;
        nodes[i].nin = 0;
        inputs[f->graph->ninputs++] = i;
        f->vars[f->nvars++] = v;
    }
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
