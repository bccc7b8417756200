/* SPDX-License-Identifier: MIT */
/* Singular values of the whole stack's Jacobian d x_K / d x_0: its rows by
 * backward passes, then one-sided Jacobi rotations (Hestenes 1958), which
 * find small singular values to high relative accuracy. */
#include "flow/flow_model.h"

/* One cotangent from the top to the stem; a and b take turns. */
static tb_status pull_through(tb_model *m, const tb_batch *batch, void **a,
                              void **b)
{
    tb_layers layers = tb_model_layers(m, tb_model_tail(m));
    for (size_t p = layers.first + layers.n; p-- > layers.first;) {
        tb_run run;
        const void *gout[1] = {*a};
        void *gin[1] = {*b};
        int hi = tb_model_graph(m, p)->nboundaries - 1;
        tb_bwd bwd = {.hi = hi, .lo = 0, .gout = gout, .gin = gin};
        TB_TRY(tb_model_run(m, p, batch, &run));
        TB_TRY(tb_plan_backward(m->ctx, &run, &bwd));
        void *t = *a;
        *a = *b;
        *b = t;
    }
    return TB_OK;
}

static tb_status jacobian_rows(tb_model *m, const tb_batch *batch, size_t n,
                               tb_arena *scratch, double *rows)
{
    size_t bytes = n * tb_dtype_size(m->dtype);
    void *a = tb_arena_alloc(scratch, bytes),
         *b = tb_arena_alloc(scratch, bytes);
    if (!a || !b)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++) {
        memset(a, 0, bytes);
        tb_elem_set(m->dtype, a, i, 1);
        TB_TRY(pull_through(m, batch, &a, &b));
        for (size_t j = 0; j < n; j++)
            rows[i * n + j] = tb_elem_get(m->dtype, a, j);
    }
    return TB_OK;
}

/* Turn rows p and q, whose squares are *a and *b, so that they become
 * orthogonal; true if they were not. */
static bool rotate(const tb_kern *k, double *p, double *q, size_t n,
                   double *square_p, double *square_q)
{
    double a = *square_p, b = *square_q, c = k->dot(n, p, q);
    if (c * c <= 1e-30 * a * b || c == 0)
        return false;
    double zeta = (b - a) / (2 * c);
    double root = tb_sqrt(1 + zeta * zeta);
    double t = zeta >= 0 ? 1 / (zeta + root) : 1 / (zeta - root);
    double cs = 1 / tb_sqrt(1 + t * t), sn = cs * t;
    for (size_t i = 0; i < n; i++) {
        double x = p[i];
        p[i] = cs * x - sn * q[i];
        q[i] = sn * x + cs * q[i];
    }
    *square_p = a - t * c;
    *square_q = b + t * c;
    return true;
}

/* The squares are followed, and taken anew at every sweep. */
static void orthogonalise(const tb_kern *k, double *rows, size_t n,
                          double *squares)
{
    enum { SWEEPS = 30 };
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        bool turned = false;
        for (size_t p = 0; p < n; p++)
            squares[p] = k->dot(n, rows + p * n, rows + p * n);
        for (size_t p = 0; p + 1 < n; p++)
            for (size_t q = p + 1; q < n; q++)
                turned = rotate(k, rows + p * n, rows + q * n, n, &squares[p],
                                &squares[q]) ||
                         turned;
        if (!turned)
            return;
    }
}

static void sort_falling(double *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && v[j] > v[j - 1]; j--) {
            double t = v[j];
            v[j] = v[j - 1];
            v[j - 1] = t;
        }
}

void tb_flow_summarise(tb_spectrum *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += s->values[i] * s->values[i];
    s->rms = tb_sqrt(sum / (double)s->n);
    s->max = s->values[0];
    s->median = (s->values[(s->n - 1) / 2] + s->values[s->n / 2]) / 2;
}

void tb_singular_values(tb_ctx *ctx, double *rows, size_t n, double *values)
{
    const tb_kern *k = tb_kern_get(ctx, TB_F64);
    orthogonalise(k, rows, n, values);
    for (size_t i = 0; i < n; i++)
        values[i] = k->norm2(n, rows + i * n);
    sort_falling(values, n);
}

tb_status tb_flow_spectrum(tb_model *m, const tb_batch *batch, tb_flow_box *box)
{
    tb_spectrum *s = &box->flow.spectrum;
    tb_arena scratch;
    s->n = box->flow.batch * box->flow.tokens * box->flow.width;
    tb_arena_init(&scratch, m->ctx);
    double *rows = tb_arena_alloc(&scratch, s->n * s->n * sizeof *rows);
    s->values = tb_arena_alloc(&box->arena, s->n * sizeof *s->values);
    tb_status status = rows && s->values ? TB_OK : TB_ERR_MEMORY;
    if (status == TB_OK)
        status = jacobian_rows(m, batch, s->n, &scratch, rows);
    if (status == TB_OK) {
        tb_singular_values(m->ctx, rows, s->n, s->values);
        tb_flow_summarise(s);
        box->flow.has_spectrum = true;
    }
    tb_arena_clear(&scratch);
    return status;
}
