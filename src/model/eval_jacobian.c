/* SPDX-License-Identifier: MIT */
/* Jacobians of eval: many rows at once where the plan can, else one by one. */
#include "model/eval_state.h"

static const size_t most_bytes = (size_t)1 << 30;

/* --- columns ------------------------------------------------------------- */

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
        TB_TRY(tb_eval_need_input(s, "jacobian", name, &out->vars[out->nvars]));
        out->count += out->vars[out->nvars++]->count;
    }
    if (!out->nvars)
        return TB_FAIL(s->ctx, TB_ERR_INPUT,
                       "jacobian: got no name, wanted an input");
    return TB_OK;
}

static tb_status check_blocks(tb_eval_state *s, const tb_eval_cols *c)
{
    const tb_eval_var *v = c->vars[0];
    if (c->nvars == 1 && v->shape.kind == TB_SHAPE_STREAM &&
        v->count == s->rows * v->shape.width)
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
        tb_buf_printf(&b, "%zu bytes in f64 (%zu in f32)", bytes, bytes / 2);
    else
        tb_buf_printf(&b, "%.0f bytes in f64", (double)out * (double)in * 8);
    tb_status status = TB_FAIL(
        s->ctx, TB_ERR_ARG,
        "jacobian: %zu outputs x %zu inputs take %s, at most %zu are given; "
        "ask for per-token blocks, or for products with it: a tangent (J t) "
        "or a cotangent (J' g)",
        out, in, tb_buf_str(&b), most_bytes);
    tb_buf_clear(&b);
    return status;
}

/* --- rows by backward passes --------------------------------------------- */

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

static tb_status by_rows(tb_eval_state *s, const tb_eval_cols *c, bool blocks,
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

/* --- many rows at once --------------------------------------------------- */

/* Streams only: the gradients of weights add up over all copies. */
static bool by_inputs(const tb_eval_cols *c, int *inputs)
{
    for (size_t i = 0; i < c->nvars; i++) {
        inputs[i] = c->vars[i]->index;
        if (c->vars[i]->is_param || c->vars[i]->shape.kind != TB_SHAPE_STREAM)
            return false;
    }
    return true;
}

static tb_status at_once(tb_eval_state *s, const tb_eval_cols *c, bool blocks,
                         double *out, bool *done)
{
    int *inputs = tb_eval_buffer(s, c->nvars, sizeof *inputs);
    *done = false;
    if (!inputs)
        return TB_ERR_MEMORY;
    if (!by_inputs(c, inputs))
        return TB_OK;
    const tb_jacobian_spec j = {.inputs = inputs,
                                .ninputs = c->nvars,
                                .columns =
                                    blocks ? c->count / s->rows : c->count,
                                .blocks = blocks,
                                .out = out};
    memset(out, 0, s->rows * s->width * j.columns * sizeof *out);
    return tb_plan_jacobian(s->ctx, &s->run, &j, done);
}

tb_status tb_eval_jacobian(tb_eval_state *s, const tb_eval_cols *c, bool blocks,
                           double *out)
{
    bool done;
    TB_TRY(at_once(s, c, blocks, out, &done));
    return done ? TB_OK : by_rows(s, c, blocks, out);
}
