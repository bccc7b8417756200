/* SPDX-License-Identifier: MIT */
/* Exponents of the weights' spectra, as WeightWatcher (Martin, Peng, Mahoney
 * 2021, doi 10.1038/s41467-021-24025-8) takes them: the eigenvalues of W'W
 * above some least one are fitted by a power law of density x^-alpha, the least
 * one being that of the smallest Kolmogorov-Smirnov distance (Clauset, Shalizi,
 * Newman 2009). */
#include "flow/audit.h"

enum { LEAST = 10 }; /* eigenvalues that a fit needs; theirs */

/* --- eigenvalues ------------------------------------------------------------
 */

/** A symmetric matrix in the making: n x n, by rows. */
typedef struct square {
    const tb_kern *k;
    double *a, *diagonal, *beside;
    size_t n;
} square;

/* W'W or WW', whichever is smaller: rows of `in` numbers, `out` of them. */
static void gram(square *s, const double *w, size_t out, size_t in)
{
    bool of_rows = out <= in;
    for (size_t i = 0; of_rows && i < out; i++)
        for (size_t j = 0; j <= i; j++)
            s->a[i * out + j] = s->a[j * out + i] =
                s->k->dot(in, w + i * in, w + j * in);
    for (size_t r = 0; !of_rows && r < out; r++)
        for (size_t i = 0; i < in; i++)
            s->k->axpy(in, w[r * in + i], w + r * in, s->a + i * in);
}

/* Row i left of its diagonal becomes (0, ..., 0, beside), by a reflection of
 * both sides; p is room for a row. */
static void reflect(square *s, size_t i, double *p)
{
    double *v = s->a + i * s->n, length = s->k->norm2(i, v);
    s->beside[i - 1] = v[i - 1] > 0 ? -length : length;
    if (!(length > 0))
        return;
    v[i - 1] -= s->beside[i - 1];
    double h = s->k->dot(i, v, v) / 2, c = 0;
    for (size_t r = 0; r < i; r++) {
        p[r] = s->k->dot(i, s->a + r * s->n, v) / h;
        c += p[r] * v[r] / (2 * h);
    }
    for (size_t r = 0; r < i; r++)
        p[r] -= c * v[r];
    for (size_t r = 0; r < i; r++) {
        s->k->axpy(i, -v[r], p, s->a + r * s->n);
        s->k->axpy(i, -p[r], v, s->a + r * s->n);
    }
}

/* Rising, by halving: errors are those of the largest one. */
static void eigenvalues(square *s, double *p, double *out)
{
    double most = 0;
    for (size_t i = s->n; i-- > 1;)
        reflect(s, i, p);
    for (size_t i = 0; i < s->n; i++) {
        s->diagonal[i] = s->a[i * s->n + i];
        most += s->diagonal[i];
    }
    for (size_t i = 0; i < s->n; i++) {
        double low = 0, high = most;
        tb_tridiagonal_halve(s->diagonal, s->beside, s->n, i, &low, &high);
        out[i] = low + (high - low) / 2;
    }
}

/* --- the fit ----------------------------------------------------------------
 */

/* alpha of rising logarithms from `from` on, and how far the fit is away. */
static double exponent(const double *log, size_t n, size_t from, double sum,
                       double *distance)
{
    double count = (double)(n - from), rest = sum - count * log[from];
    double alpha = rest > 0 ? 1 + count / rest : 0;
    *distance = rest > 0 ? 0 : 2;
    for (size_t i = from; rest > 0 && i < n; i++) {
        double fit = 1 - tb_exp((1 - alpha) * (log[i] - log[from]));
        double off = tb_fabs(fit - (double)(i - from) / count);
        *distance = off > *distance ? off : *distance;
    }
    return alpha;
}

/* Exponent of rising numbers, which are used up; 0: they are too few. */
static double power_law(double *rising, size_t n)
{
    double sum = 0, best = 3, alpha = 0;
    size_t first = 0;
    while (first < n && !(rising[first] > 1e-12 * rising[n - 1]))
        first++; /* rounding */
    if (n - first < LEAST)
        return 0;
    for (size_t i = first; i < n; i++)
        rising[i] = tb_log(rising[i]);
    for (size_t i = n; i-- > first;) {
        double off, a;
        sum += rising[i];
        if (i + 1 == n)
            continue;
        a = exponent(rising, n, i, sum, &off);
        if (off <= best) {
            best = off;
            alpha = a;
        }
    }
    return alpha;
}

/* --- weights ----------------------------------------------------------------
 */

static tb_status measure(tb_walk *w, const tb_view *v, double *alpha)
{
    size_t out = v->shape.height, in = v->shape.width;
    square s = {.k = tb_kern_get(w->ctx, TB_F64), .n = out < in ? out : in};
    tb_arena a;
    tb_arena_init(&a, w->ctx);
    double *x = tb_arena_alloc(&a, v->count * sizeof *x);
    double *p = tb_arena_alloc(&a, s.n * sizeof *p);
    double *values = tb_arena_alloc(&a, s.n * sizeof *values);
    s.a = tb_arena_alloc(&a, s.n * s.n * sizeof *s.a);
    s.diagonal = tb_arena_alloc(&a, s.n * sizeof *s.diagonal);
    s.beside = tb_arena_alloc(&a, s.n * sizeof *s.beside);
    bool ok = x && p && values && s.a && s.diagonal && s.beside;
    if (ok) {
        for (size_t i = 0; i < v->count; i++)
            x[i] = tb_elem_get(w->m->dtype, w->m->params, v->offset + i);
        gram(&s, x, out, in);
        eigenvalues(&s, p, values);
        *alpha = power_law(values, s.n);
    }
    tb_arena_clear(&a);
    return ok ? TB_OK : TB_ERR_MEMORY;
}

tb_status tb_audit_alpha(tb_walk *w)
{
    for (size_t i = 0; i < w->f->nweights; i++) {
        tb_flow_weight *x = &w->f->weights[i];
        const tb_view *v = tb_model_view(w->m, x->name);
        size_t least =
            v->shape.height < v->shape.width ? v->shape.height : v->shape.width;
        if (v->role == TB_ROLE_MATRIX && v->layer && least >= LEAST)
            TB_TRY(measure(w, v, &x->alpha));
    }
    return TB_OK;
}
