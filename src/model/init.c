/* SPDX-License-Identifier: MIT */
/* The numbers a weight starts with: a pure function of (seed, full name,
 * element), whatever the depth, the thread count or the order of filling. */
#include "model/parts.h"

typedef struct tb_fill {
    const tb_kern *k;
    const tb_start *start;
    tb_rng rng;
    tb_dtype dtype;
    size_t width, count, chunks;
    const double *drawn; /* NULL: not yet */
    void *out;
} tb_fill;

static double value_at(const tb_fill *f, size_t i)
{
    double a = f->start->value;
    if (f->start->kind == TB_START_IDENTITY)
        return i / f->width == i % f->width ? 1 : 0;
    if (f->start->kind == TB_START_ONEHOT)
        return (double)(i + 1) == a ? 1 : 0;
    return a;
}

/* Elements [i, end) out of numbers that are there. */
static void scale_drawn(const tb_fill *f, size_t i, size_t end)
{
    const double c = f->start->value, *z = f->drawn;
    double *d = f->out;
    float *s = f->out;
    if (f->dtype == TB_F64)
        for (; i < end; i++)
            d[i] = c * z[i];
    else
        for (; i < end; i++)
            s[i] = (float)(c * z[i]);
}

static void fill_chunk(void *arg, size_t chunk)
{
    const tb_fill *f = arg;
    size_t i = tb_chunk_at(f->count, f->chunks, chunk);
    size_t end = tb_chunk_at(f->count, f->chunks, chunk + 1);
    void *out = (char *)f->out + i * tb_dtype_size(f->dtype);
    if (f->drawn)
        scale_drawn(f, i, end);
    else if (f->start->kind == TB_START_NORMAL)
        f->k->normal(f->rng, i, end - i, f->start->value, out);
    else if (f->start->kind == TB_START_UNIFORM)
        f->k->uniform(f->rng, i, end - i, f->start->value, out);
    else
        for (; i < end; i++)
            tb_elem_set(f->dtype, f->out, i, value_at(f, i));
}

/* --- orthogonal ---------------------------------------------------------- */

/* The n = min(out, in) shorter-side vectors of a matrix, one after the other,
 * each of length len = max(out, in): its rows if it is wide, else columns. */
typedef struct tb_frame {
    size_t n, len;
    bool rows;
    double *v;
} tb_frame;

static size_t element_of(const tb_frame *q, size_t j, size_t i)
{
    return q->rows ? j * q->len + i : i * q->n + j;
}

static double dot(const double *a, const double *b, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

static void subtract(double c, const double *a, double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        b[i] -= c * a[i];
}

/* Gram-Schmidt, each vector twice ("twice is enough", Kahan and Parlett):
 * the Q of A = QR with a positive diagonal of R, so Q is Haar for normal A. */
static void orthonormalise(tb_frame *q)
{
    for (size_t j = 0; j < q->n; j++) {
        double *v = q->v + j * q->len;
        for (int pass = 0; pass < 2; pass++)
            for (size_t p = 0; p < j; p++) {
                const double *u = q->v + p * q->len;
                subtract(dot(u, v, q->len), u, v, q->len);
            }
        double length = tb_sqrt(dot(v, v, q->len));
        for (size_t i = 0; i < q->len; i++)
            v[i] /= length;
    }
}

static tb_status fill_orthogonal(tb_ctx *ctx, const tb_fill *f, tb_shape s)
{
    bool rows = s.height <= s.width;
    tb_frame q = {.n = rows ? s.height : s.width,
                  .len = rows ? s.width : s.height,
                  .rows = rows};
    q.v = tb_alloc(ctx, f->count, sizeof *q.v);
    if (!q.v)
        return TB_ERR_MEMORY;
    for (size_t j = 0; j < q.n; j++)
        for (size_t i = 0; i < q.len; i++)
            q.v[j * q.len + i] = tb_rng_normal(f->rng, element_of(&q, j, i));
    orthonormalise(&q);
    for (size_t j = 0; j < q.n; j++)
        for (size_t i = 0; i < q.len; i++)
            tb_elem_set(f->dtype, f->out, element_of(&q, j, i),
                        f->start->value * q.v[j * q.len + i]);
    tb_free(ctx, q.v);
    return TB_OK;
}

tb_status tb_start_fill(tb_ctx *ctx, tb_dtype dtype, const tb_start *s,
                        const char *name, tb_shape shape, uint64_t seed,
                        void *out)
{
    tb_fill f = {.k = tb_kern_get(ctx, dtype),
                 .start = s,
                 .rng = tb_rng_make(seed, name),
                 .dtype = dtype,
                 .width = shape.width,
                 .count = tb_shape_count(shape, 1, 1),
                 .out = out};
    if (s->kind == TB_START_ORTHOGONAL)
        return fill_orthogonal(ctx, &f, shape);
    if (s->kind == TB_START_NORMAL)
        f.drawn = tb_draws_normal(ctx, f.rng, f.count);
    f.chunks = tb_chunks(f.count, 4096);
    tb_parallel(ctx, f.chunks, fill_chunk, &f);
    return TB_OK;
}
