/* SPDX-License-Identifier: MIT */
/* Jacobians of single sublayers, d x_k / d x_(k-1), whose rows come by backward
 * passes: all of them where they are few, else random probes (Hutchinson 1990).
 * The largest singular value is that of a bidiagonal matrix (Golub, Kahan
 * 1965), whose steps need J and its transpose; no basis is kept, so copies of
 * it may appear there, which move it nowhere. */
#include "flow/audit.h"

enum { PROBES = 8, STEPS = 24, STEPS_OF_ROWS = 256 };

typedef tb_audit_piece piece;

/* --- products ------------------------------------------------------------- */

/* to = J' from */
static tb_status pull(const piece *j)
{
    tb_walk *w = j->w;
    bool one = w->nstreams == 1;
    void *gout[TB_WALK_STREAMS], *gin[TB_WALK_INPUTS] = {NULL};
    tb_walk_pieces(w, w->audit->from, gout);
    tb_walk_pieces(w, w->audit->to, gin);
    tb_bwd b = {.hi = one ? j->hi : -1,
                .lo = one ? j->lo : -1,
                .gout = (const void *const *)gout,
                .gin = gin};
    return tb_plan_backward(w->ctx, j->run, &b);
}

/* to = J from */
static tb_status push(const piece *j)
{
    tb_walk *w = j->w;
    void *tin[TB_WALK_INPUTS] = {NULL}, *tout[TB_WALK_STREAMS];
    if (w->nstreams == 1)
        return tb_plan_tangent_piece(w->ctx, j->run, j->lo, j->hi,
                                     w->audit->from, w->audit->to);
    tb_walk_pieces(w, w->audit->from, tin);
    tb_walk_pieces(w, w->audit->to, tout);
    return tb_plan_tangent(w->ctx, j->run, (const void *const *)tin, NULL,
                           tout);
}

static tb_status multiply(const piece *j, bool transposed, const double *x,
                          double *y)
{
    tb_dtype t = j->w->m->dtype;
    for (size_t i = 0; i < j->w->n; i++)
        tb_elem_set(t, j->w->audit->from, i, x[i]);
    TB_TRY(transposed ? pull(j) : push(j));
    for (size_t i = 0; i < j->w->n; i++)
        y[i] = tb_elem_get(t, j->w->audit->to, i);
    return TB_OK;
}

/* The same by rows that are there. */
static void multiply_rows(const double *rows, size_t n, bool transposed,
                          const double *x, double *y)
{
    for (size_t i = 0; transposed && i < n; i++)
        y[i] = 0;
    for (size_t i = 0; i < n; i++) {
        const double *row = rows + i * n;
        double sum = 0;
        for (size_t k = 0; transposed && k < n; k++)
            y[k] += row[k] * x[i];
        for (size_t k = 0; !transposed && k < n; k++)
            sum += row[k] * x[k];
        if (!transposed)
            y[i] = sum;
    }
}

/* --- the largest singular value ------------------------------------------- */

/* How many eigenvalues lie below x (Sturm). */
static size_t below_of(const double *diagonal, const double *beside, size_t n,
                       double x)
{
    double pivot = diagonal[0] - x;
    size_t below = pivot < 0;
    for (size_t i = 1; i < n; i++) {
        if (pivot == 0)
            pivot = 1e-300; /* x is an eigenvalue of what stands above */
        pivot = diagonal[i] - x - beside[i - 1] * beside[i - 1] / pivot;
        below += pivot < 0;
    }
    return below;
}

void tb_tridiagonal_halve(const double *diagonal, const double *beside,
                          size_t n, size_t i, double *low, double *high)
{
    for (int step = 0; step < 60; step++) {
        double x = *low + (*high - *low) / 2;
        if (below_of(diagonal, beside, n, x) > i)
            *high = x;
        else
            *low = x;
    }
}

/* Largest singular value of the bidiagonal matrix with a on its diagonal and b
 * above it, by halving. */
static double largest_of(const double *a, const double *b, size_t n)
{
    double diagonal[STEPS_OF_ROWS], beside[STEPS_OF_ROWS], low = 0, high = 0;
    for (size_t i = 0; i < n; i++) {
        bool last = i + 1 == n;
        diagonal[i] = a[i] * a[i] + (last ? 0 : b[i] * b[i]);
        beside[i] = last ? 0 : b[i] * a[i + 1];
        double reach = diagonal[i] + beside[i] + (i ? beside[i - 1] : 0);
        low = diagonal[i] > low ? diagonal[i] : low;
        high = reach > high ? reach : high;
    }
    if (low < high)
        tb_tridiagonal_halve(diagonal, beside, n, n - 1, &low, &high);
    return tb_sqrt(high);
}

/* y = (image - c y) / its length, which is returned. */
static double next_vector(const double *image, double c, size_t n, double *y,
                          const tb_kern *k)
{
    for (size_t i = 0; i < n; i++)
        y[i] = image[i] - c * y[i];
    double length = k->norm2(n, y);
    for (size_t i = 0; length > 0 && i < n; i++)
        y[i] /= length;
    return length;
}

static tb_status apply(const piece *j, bool transposed)
{
    tb_audit *x = j->w->audit;
    const double *from = transposed ? x->u : x->v;
    if (!x->rows)
        return multiply(j, transposed, from, x->image);
    multiply_rows(x->rows, j->w->n, transposed, from, x->image);
    return TB_OK;
}

/* Steps until they move it no more. */
static tb_status largest(const piece *j, size_t at, double *out)
{
    tb_audit *x = j->w->audit;
    const tb_kern *k = tb_kern_get(j->w->ctx, TB_F64);
    size_t n = j->w->n, steps = x->rows ? STEPS_OF_ROWS : STEPS, still = 0;
    double enough = x->rows ? 1e-14 : 3e-4, none = x->rows ? 1e-14 : 1e-6;
    double a[STEPS_OF_ROWS], b[STEPS_OF_ROWS], before = 0;
    tb_rng r = tb_rng_make(x->seed, "largest");
    for (size_t i = 0; i < n; i++) {
        x->image[i] = tb_rng_normal(r, at * n + i);
        x->u[i] = x->v[i] = 0;
    }
    next_vector(x->image, 0, n, x->v, k);
    for (size_t i = 0; i < steps && still < 2; i++) {
        TB_TRY(apply(j, false));
        a[i] = next_vector(x->image, i ? b[i - 1] : 0, n, x->u, k);
        *out = largest_of(a, b, i + 1);
        still = *out - before > enough * *out ? 0 : still + 1;
        before = *out;
        TB_TRY(apply(j, true));
        b[i] = next_vector(x->image, a[i], n, x->v, k);
        if (!(a[i] > none * *out) || !(b[i] > none * *out))
            return TB_OK; /* there is no more of it */
    }
    return TB_OK;
}

/* --- trace and length ----------------------------------------------------- */

static tb_status all_rows(const piece *j)
{
    tb_walk *w = j->w;
    tb_audit *x = w->audit;
    size_t bytes = w->n * tb_dtype_size(w->m->dtype);
    for (size_t i = 0; i < w->n; i++) {
        memset(x->from, 0, bytes);
        tb_elem_set(w->m->dtype, x->from, i, 1);
        TB_TRY(pull(j));
        for (size_t c = 0; c < w->n; c++)
            x->rows[i * w->n + c] = tb_elem_get(w->m->dtype, x->to, c);
    }
    return TB_OK;
}

/* sum / n and root of the mean of squares, by rows. */
static void read_rows(const tb_walk *w, tb_flow_row *row)
{
    const double *J = w->audit->rows;
    double n = (double)w->n, trace = 0, square = 0, off = 0;
    for (size_t i = 0; i < w->n; i++)
        for (size_t c = 0; c < w->n; c++) {
            double v = J[i * w->n + c], rest = v - (i == c);
            trace += i == c ? v : 0;
            square += v * v;
            off += rest * rest;
        }
    row->identity_share = trace / n;
    row->jacobian_rms = tb_sqrt(square / n);
    row->jacobian_off = tb_sqrt(off / n);
}

/** Of numbers: mean, and its standard error. */
typedef struct tally {
    double sum, square;
} tally;

static void count(tally *t, double v)
{
    t->sum += v;
    t->square += v * v;
}

static double mean(const tally *t)
{
    return t->sum / PROBES;
}

static double error_of(const tally *t)
{
    double m = mean(t), spread = t->square / PROBES - m * m;
    return spread > 0 ? tb_sqrt(spread / (PROBES - 1)) : 0;
}

/* Vectors v of +1 and -1: v'J'v has the mean tr J, |J'v|^2 that of |J|^2. */
static tb_status probe(const piece *j, size_t at, tb_flow_row *row)
{
    tb_walk *w = j->w;
    tb_audit *x = w->audit;
    const tb_kern *k = tb_kern_get(w->ctx, TB_F64);
    tb_rng r = tb_rng_make(x->seed, "probes");
    tally trace = {0}, square = {0};
    double n = (double)w->n;
    for (size_t p = 0; p < PROBES; p++) {
        for (size_t i = 0; i < w->n; i++)
            x->u[i] = tb_rng_below(r, (at * PROBES + p) * w->n + i, 2) ? 1 : -1;
        TB_TRY(multiply(j, true, x->u, x->image));
        count(&trace, k->dot(w->n, x->u, x->image) / n);
        count(&square, k->dot(w->n, x->image, x->image) / n);
    }
    double off = mean(&square) - 2 * mean(&trace) + 1;
    row->identity_share = mean(&trace);
    row->identity_share_error = error_of(&trace);
    row->jacobian_rms = tb_sqrt(mean(&square));
    if (row->jacobian_rms > 0)
        row->jacobian_rms_error = error_of(&square) / 2 / row->jacobian_rms;
    row->jacobian_off = off > 0 ? tb_sqrt(off) : 0;
    return TB_OK;
}

/* --- a row ---------------------------------------------------------------- */

/* Of the first block, of the one in the middle, of the last. */
static bool is_chosen(const tb_walk *w, size_t layer)
{
    size_t last = w->stack->depth;
    return layer == 1 || layer == (last + 1) / 2 || layer == last;
}

static tb_status all_values(tb_walk *w, tb_flow_row *row)
{
    tb_spectrum *s = TB_NEW(&w->box->arena, tb_spectrum);
    double *values = tb_arena_alloc(&w->box->arena, w->n * sizeof *values);
    if (!s || !values)
        return TB_ERR_MEMORY;
    *s = (tb_spectrum){.n = w->n, .values = values};
    tb_singular_values(w->ctx, w->audit->rows, w->n, values);
    tb_flow_summarise(s);
    row->spectrum = s;
    return TB_OK;
}

tb_status tb_audit_jacobian(const tb_audit_piece *j)
{
    tb_walk *w = j->w;
    tb_flow_row *row = j->row;
    size_t at = (size_t)(row - w->f->rows);
    row->audited = true;
    if (w->audit->rows) {
        TB_TRY(all_rows(j));
        read_rows(w, row);
    } else {
        TB_TRY(probe(j, at, row));
    }
    TB_TRY(largest(j, at, &row->sigma_max));
    bool finite = tb_isfinite(row->jacobian_rms);
    if (!w->audit->rows || !finite || !is_chosen(w, row->layer))
        return TB_OK;
    return all_values(w, row);
}
