/* SPDX-License-Identifier: MIT */
/* The terms of a Jacobian as matrices. Terms are shared, so each is evaluated
 * once; numbers stay numbers until a matrix needs them. */
#include "model/symbolic.h"

/* Rows by columns, row-major; a NULL: c times the identity of any size. */
typedef struct matrix {
    size_t rows, cols;
    double *a, c;
} matrix;

/** A term that has its matrix. */
typedef struct known {
    const tb_jx *term;
    matrix m;
    struct known *next; /* in its hash chain */
} known;

enum { CHAINS = 1024, DEPTH_MOST = 2000 };
static const size_t most_bytes = (size_t)1 << 30;

typedef struct evaluation {
    const tb_symbolic *s;
    tb_arena arena;
    size_t bytes;
    int depth;
    known *chain[CHAINS];
} evaluation;

size_t tb_symbolic_count(const tb_symbolic *s, int node)
{
    return tb_shape_count(s->graph->nodes[node].shape, 1, s->time);
}

const double *tb_symbolic_value(const tb_symbolic *s, int node)
{
    return tb_plan_value(s->run, node);
}

/* --- matrices ------------------------------------------------------------- */

static tb_status new_matrix(evaluation *e, size_t rows, size_t cols,
                            matrix *out)
{
    size_t n, bytes;
    *out = (matrix){.rows = rows, .cols = cols};
    if (!tb_mul(rows, cols, &n) || !tb_mul(n, sizeof *out->a, &bytes) ||
        !tb_add(e->bytes, bytes, &e->bytes) || e->bytes > most_bytes)
        return TB_FAIL(e->s->ctx, TB_ERR_ARG,
                       "symbolic Jacobian: its matrices take more than %zu "
                       "bytes; take fewer tokens or a smaller width",
                       most_bytes);
    out->a = tb_arena_alloc(&e->arena, bytes + 1);
    return out->a ? TB_OK : TB_ERR_MEMORY;
}

static matrix number(double c)
{
    return (matrix){.c = c};
}

/* to += sign m, of the same size */
static void accumulate(matrix *to, const matrix *m, double sign)
{
    size_t diagonal = to->rows < to->cols ? to->rows : to->cols;
    if (m->a)
        for (size_t i = 0; i < to->rows * to->cols; i++)
            to->a[i] += sign * m->a[i];
    else
        for (size_t i = 0; i < diagonal; i++)
            to->a[i * to->cols + i] += sign * m->c;
}

/* to = to + sign m: a matrix of its own as soon as one side is one. */
static tb_status add(evaluation *e, matrix *to, const matrix *m, double sign)
{
    if (!to->a && !m->a) {
        to->c += sign * m->c;
        return TB_OK;
    }
    if (!to->a) {
        matrix sum;
        TB_TRY(new_matrix(e, m->rows, m->cols, &sum));
        accumulate(&sum, to, 1);
        *to = sum;
    }
    accumulate(to, m, sign);
    return TB_OK;
}

static tb_status scaled(evaluation *e, const matrix *m, double c, matrix *out)
{
    if (!m->a) {
        *out = number(m->c * c);
        return TB_OK;
    }
    TB_TRY(new_matrix(e, m->rows, m->cols, out));
    for (size_t i = 0; i < m->rows * m->cols; i++)
        out->a[i] = c * m->a[i];
    return TB_OK;
}

/* l r; most l are diagonal or block-diagonal, so zeros are skipped. */
static tb_status multiply(evaluation *e, const matrix *l, const matrix *r,
                          matrix *out)
{
    if (!l->a || !r->a)
        return l->a ? scaled(e, l, r->c, out) : scaled(e, r, l->c, out);
    TB_TRY(new_matrix(e, l->rows, r->cols, out));
    for (size_t i = 0; i < l->rows; i++)
        for (size_t k = 0; k < l->cols; k++) {
            double v = l->a[i * l->cols + k];
            const double *row = r->a + k * r->cols;
            for (size_t j = 0; v != 0 && j < r->cols; j++)
                out->a[i * r->cols + j] += v * row[j];
        }
    return TB_OK;
}

/* --- factors -------------------------------------------------------------- */

/* Which element of its node's value a scalar is. */
static size_t element(const evaluation *e, const tb_jx *x)
{
    const tb_node *n = &e->s->graph->nodes[x->at];
    if (n->op != &tb_op_mix)
        return 0;
    return tb_mix_first(e->s->run->attr[x->at], (size_t)n->nin - 1) +
           (size_t)x->input;
}

static double coefficient(const evaluation *e, const tb_jx *x)
{
    double c = x->attr ? x->attr->value : 1;
    if (x->kind == TB_JX_SCALAR)
        c = tb_symbolic_value(e->s, x->node)[element(e, x)];
    else if (x->at >= 0) /* folded for this layer */
        c = e->s->run->attr[x->at][TB_ATTR_AFFINE_SCALE];
    return x->inverse ? 1 / c : c;
}

/* diag(value) or diag(1/value): of a stream as it is, of a vector again for
 * each token. */
static tb_status diagonal(evaluation *e, const tb_jx *x, matrix *out)
{
    const tb_symbolic *s = e->s;
    size_t width = s->graph->nodes[x->node].shape.width, n = s->time * width;
    size_t count = tb_symbolic_count(s, x->node);
    const double *v = tb_symbolic_value(s, x->node);
    TB_TRY(new_matrix(e, n, n, out));
    for (size_t i = 0; i < n; i++)
        out->a[i * n + i] = x->inverse ? 1 / v[i % count] : v[i % count];
    return TB_OK;
}

static tb_status no_formula(const evaluation *e, const tb_op *op,
                            const char *what)
{
    return TB_FAIL(e->s->ctx, TB_ERR_ARG,
                   "symbolic Jacobian: %s%s cannot be evaluated yet", op->name,
                   what);
}

/* An op by its closed formula. */
static tb_status factor(evaluation *e, int node, int input, matrix *out)
{
    const tb_symbolic *s = e->s;
    const tb_node *n = &s->graph->nodes[node];
    const tb_symbolic_row *row = tb_symbolic_find(n->op);
    if (!row)
        return no_formula(e, n->op, "");
    if (n->nin > row->inputs)
        return no_formula(e, n->op, " with so many inputs");
    for (int a = row->attrs; a < TB_OP_ATTRS; a++)
        if (s->run->attr[node][a] != 0)
            return no_formula(e, n->op, " with these options");
    TB_TRY(new_matrix(e, tb_symbolic_count(s, node),
                      tb_symbolic_count(s, n->in[input]), out));
    row->fn(s, node, input, out->a);
    return TB_OK;
}

static tb_status term(evaluation *e, const tb_jx *x, matrix *out);

static tb_status between(evaluation *e, int from, int to, tb_jac_mode mode,
                         matrix *out)
{
    const tb_jx *x;
    TB_TRY(tb_jacobian_between(&e->arena, e->s->graph, from, to, mode, &x));
    return term(e, x, out);
}

/* J_F(arg): the sublayer opened. */
static tb_status symbol(evaluation *e, const tb_jx *x, matrix *out)
{
    const tb_graph *g = e->s->graph;
    const tb_node *n = &g->nodes[x->at];
    const tb_jx *inside;
    if (n->op != &tb_op_branch)
        return factor(e, x->at, x->input, out);
    TB_TRY(tb_jacobian_sublayer(&e->arena, g, n->region, x->input, &inside));
    return term(e, inside, out);
}

/* --- terms ---------------------------------------------------------------- */

static tb_status sum(evaluation *e, const tb_jx *x, matrix *out)
{
    *out = number(0);
    for (int i = 0; i < x->n; i++) {
        matrix m;
        TB_TRY(term(e, x->items[i], &m));
        TB_TRY(add(e, out, &m, x->signs[i]));
    }
    return TB_OK;
}

/* From the right: what stands left is sparse. */
static tb_status product(evaluation *e, const tb_jx *x, matrix *out)
{
    *out = number(1);
    for (int i = x->n - 1; i >= 0; i--) {
        matrix m, right = *out;
        TB_TRY(term(e, x->items[i], &m));
        TB_TRY(multiply(e, &m, &right, out));
    }
    return TB_OK;
}

static tb_status evaluate(evaluation *e, const tb_jx *x, matrix *out)
{
    switch (x->kind) {
    case TB_JX_ZERO:
    case TB_JX_ONE:
        *out = number(x->kind == TB_JX_ONE);
        return TB_OK;
    case TB_JX_COEF:
    case TB_JX_SCALAR:
        *out = number(coefficient(e, x));
        return TB_OK;
    case TB_JX_SUM:
        return sum(e, x, out);
    case TB_JX_PROD:
        return product(e, x, out);
    case TB_JX_DIAG:
        return diagonal(e, x, out);
    case TB_JX_SYM:
        return symbol(e, x, out);
    case TB_JX_TOKENS:
        return factor(e, x->at, x->input, out);
    case TB_JX_SLOPE:
    case TB_JX_WEIGHT:
        return factor(e, x->at, 0, out);
    }
    return TB_OK;
}

static tb_status remember(evaluation *e, const tb_jx *x, const matrix *m)
{
    known **chain = &e->chain[(uintptr_t)x / sizeof *x % CHAINS];
    known *k = TB_NEW(&e->arena, known);
    if (!k)
        return TB_ERR_MEMORY;
    *k = (known){x, *m, *chain};
    *chain = k;
    return TB_OK;
}

static tb_status term(evaluation *e, const tb_jx *x, matrix *out)
{
    for (known *k = e->chain[(uintptr_t)x / sizeof *x % CHAINS]; k; k = k->next)
        if (k->term == x) {
            *out = k->m;
            return TB_OK;
        }
    if (e->depth >= DEPTH_MOST)
        return TB_FAIL(e->s->ctx, TB_ERR_ARG,
                       "symbolic Jacobian: its formula nests deeper than %d",
                       (int)DEPTH_MOST);
    e->depth++;
    TB_TRY(evaluate(e, x, out));
    e->depth--;
    return remember(e, x, out);
}

/* --- what callers see ----------------------------------------------------- */

/* c I written out, or a matrix of the size that was asked for. */
static tb_status give(const evaluation *e, const matrix *m, size_t rows,
                      size_t cols, double *out)
{
    matrix to = {rows, cols, out, 0};
    bool fits =
        m->a ? m->rows == rows && m->cols == cols : rows == cols || m->c == 0;
    if (!fits)
        return TB_FAIL(e->s->ctx, TB_ERR_SHAPE,
                       "symbolic Jacobian: got %zu x %zu, wanted %zu x %zu",
                       m->rows, m->cols, rows, cols);
    memset(out, 0, rows * cols * sizeof *out);
    accumulate(&to, m, 1);
    return TB_OK;
}

static tb_status begin(const tb_symbolic *s, evaluation **e)
{
    *e = tb_alloc(s->ctx, 1, sizeof **e);
    if (!*e)
        return TB_ERR_MEMORY;
    (*e)->s = s;
    tb_arena_init(&(*e)->arena, s->ctx);
    return TB_OK;
}

static tb_status end(evaluation *e, tb_status status, const matrix *m,
                     size_t rows, size_t cols, double *out)
{
    tb_ctx *ctx = e->s->ctx;
    if (status == TB_OK)
        status = give(e, m, rows, cols, out);
    tb_arena_clear(&e->arena);
    tb_free(ctx, e);
    return status;
}

tb_status tb_symbolic_term(const tb_symbolic *s, const tb_jx *x, size_t rows,
                           size_t cols, double *out)
{
    evaluation *e;
    matrix m = number(0);
    TB_TRY(begin(s, &e));
    tb_status status = term(e, x, &m);
    return end(e, status, &m, rows, cols, out);
}

tb_status tb_symbolic_between(const tb_symbolic *s, int from, int to,
                              tb_jac_mode mode, double *out)
{
    evaluation *e;
    matrix m = number(0);
    TB_TRY(begin(s, &e));
    tb_status status = between(e, from, to, mode, &m);
    return end(e, status, &m, tb_symbolic_count(s, to),
               tb_symbolic_count(s, from), out);
}

/* --- several streams ------------------------------------------------------ */

/* out = l r, all [n, n]; most of l is zero. */
static void square_product(size_t n, const double *l, const double *r,
                           double *out)
{
    memset(out, 0, n * n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            double v = l[i * n + k];
            for (size_t j = 0; v != 0 && j < n; j++)
                out[i * n + j] += v * r[k * n + j];
        }
}

/* Step f as one matrix; `block` is scratch of n*n. */
static tb_status step_matrix(evaluation *e, const tb_jacobian *j, int f,
                             size_t n, double *block, double *out)
{
    size_t s = (size_t)j->nstreams, width = s * n;
    for (size_t i = 0; i < s * s; i++) {
        matrix m;
        TB_TRY(term(e, j->entries[(size_t)f * s * s + i], &m));
        TB_TRY(give(e, &m, n, n, block));
        double *to = out + i / s * n * width + i % s * n;
        for (size_t row = 0; row < n; row++)
            memcpy(to + row * width, block + row * n, n * sizeof *to);
    }
    return TB_OK;
}

static tb_status steps_product(evaluation *e, const tb_jacobian *j, size_t n,
                               double *out)
{
    size_t width = (size_t)j->nstreams * n, bytes = width * width * sizeof *out;
    matrix step, before, block;
    TB_TRY(new_matrix(e, width, width, &step));
    TB_TRY(new_matrix(e, width, width, &before));
    TB_TRY(new_matrix(e, n, n, &block));
    for (int f = 0; f < j->nfactors; f++) {
        TB_TRY(step_matrix(e, j, f, n, block.a, f ? step.a : out));
        if (f)
            square_product(width, step.a, before.a, out);
        memcpy(before.a, out, bytes);
    }
    return TB_OK;
}

tb_status tb_symbolic_matrix(const tb_symbolic *s, const tb_jacobian *j,
                             size_t n, double *out)
{
    evaluation *e;
    TB_TRY(begin(s, &e));
    tb_status status = steps_product(e, j, n, out);
    tb_arena_clear(&e->arena);
    tb_free(s->ctx, e);
    return status;
}
