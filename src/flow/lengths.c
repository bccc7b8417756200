/* SPDX-License-Identifier: MIT */
/* Lengths and angles of vectors that are worth more than one thread: one pass
 * over memory, in blocks that stay in the first cache, cut by size alone. */
#include "flow/walk.h"

enum { BLOCK = 2048, GRAIN = 8 * BLOCK };

typedef union block {
    float f[BLOCK];
    double d[BLOCK];
} block;

/** A length that cannot overflow before it is one: scale * sqrt(square). */
typedef struct tally {
    double scale, square;
} tally;

/** What one piece found. */
typedef struct found {
    tally whole, part, rest;
    double sum, dot;
    size_t nonfinite;
    double largest; /* of whole, and where */
    size_t at;
} found;

typedef struct sweep {
    const tb_kern *k;
    size_t n, pieces;
    const void *whole;
    const void *part;         /* rest = whole - part */
    const tb_flow_term *term; /* rest = their sum */
    size_t nterms;
    bool sum;       /* of whole's elements, */
    bool deviation; /* or of their squares about `mean` */
    bool largest;   /* only the largest of them */
    double mean;
    double unit; /* whole and part are taken times this; 0: as they are */
    found out[TB_CHUNKS_MAX];
} sweep;

static void count(tally *t, double length)
{
    if (length > t->scale) {
        double r = t->scale / length;
        t->square = 1 + t->square * r * r;
        t->scale = length;
    } else if (length == t->scale) {
        t->square += length > 0;
    } else {
        double r = length / t->scale;
        t->square += r * r;
    }
}

static double length_of(const tally *t)
{
    return t->scale * tb_sqrt(t->square);
}

static void join(tally *t, const tally *more)
{
    count(t, length_of(more));
}

static const void *peek(const sweep *w, const void *x, size_t i)
{
    return (const char *)x + i * tb_dtype_size(w->k->dtype);
}

static double squares(const sweep *w, const void *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double v = w->k->dtype == TB_F64 ? ((const double *)x)[i]
                                         : (double)((const float *)x)[i];
        sum += (v - w->mean) * (v - w->mean);
    }
    return sum;
}

static void find_largest(const sweep *w, size_t at, size_t n, found *f)
{
    const void *x = peek(w, w->whole, at);
    for (size_t i = 0; i < n; i++) {
        double v = w->k->dtype == TB_F64 ? ((const double *)x)[i]
                                         : (double)((const float *)x)[i];
        if (tb_fabs(v) > f->largest && tb_isfinite(v)) {
            f->largest = tb_fabs(v);
            f->at = at + i;
        }
    }
}

/* An angle alone, of vectors whose product would be 0 or infinite. */
static void look_scaled(const sweep *w, size_t at, size_t n, found *f)
{
    block a, b;
    size_t bytes = n * tb_dtype_size(w->k->dtype);
    memset(&a, 0, bytes);
    memset(&b, 0, bytes);
    w->k->axpy(n, w->unit, peek(w, w->part, at), &a);
    w->k->axpy(n, w->unit, peek(w, w->whole, at), &b);
    w->k->sub(n, &b, &a, &b);
    f->dot += w->k->dot(n, &a, &b);
    count(&f->part, w->k->norm2(n, &a));
    count(&f->rest, w->k->norm2(n, &b));
}

/* Elements [at, at + n), n <= BLOCK. */
static void look(const sweep *w, size_t at, size_t n, found *f)
{
    const void *x = peek(w, w->whole, at);
    block y;
    if (w->unit > 0) {
        look_scaled(w, at, n, f);
        return;
    }
    if (w->deviation) {
        f->sum += squares(w, x, n);
        return;
    }
    if (w->largest) {
        find_largest(w, at, n, f);
        return;
    }
    count(&f->whole, w->k->norm2(n, x));
    f->nonfinite += w->k->nonfinite(n, x);
    if (w->sum)
        f->sum += w->k->sum(n, x);
    if (w->part) {
        const void *part = peek(w, w->part, at);
        w->k->sub(n, x, part, &y);
        f->dot += w->k->dot(n, part, &y);
        count(&f->part, w->k->norm2(n, part));
        count(&f->rest, w->k->norm2(n, &y));
    } else if (w->nterms) {
        memset(&y, 0, n * tb_dtype_size(w->k->dtype));
        for (size_t i = 0; i < w->nterms; i++)
            w->k->axpy(n, w->term[i].factor, peek(w, w->term[i].x, at), &y);
        count(&f->rest, w->k->norm2(n, &y));
    }
}

static void sweep_piece(void *arg, size_t piece)
{
    sweep *w = arg;
    found f = {0};
    size_t at = tb_chunk_at(w->n, w->pieces, piece);
    size_t end = tb_chunk_at(w->n, w->pieces, piece + 1);
    for (; at < end; at += BLOCK)
        look(w, at, end - at < BLOCK ? end - at : BLOCK, &f);
    w->out[piece] = f;
}

static found run(const tb_ctx *ctx, sweep *w)
{
    found all = {0};
    w->pieces = tb_chunks(w->n, GRAIN);
    if (w->n > 0)
        tb_parallel(ctx, w->pieces, sweep_piece, w);
    for (size_t i = 0; w->n > 0 && i < w->pieces; i++) {
        const found *f = &w->out[i];
        join(&all.whole, &f->whole);
        join(&all.part, &f->part);
        join(&all.rest, &f->rest);
        all.sum += f->sum;
        all.dot += f->dot;
        all.nonfinite += f->nonfinite;
        if (f->largest > all.largest) {
            all.largest = f->largest;
            all.at = f->at;
        }
    }
    return all;
}

static double cosine(const found *f)
{
    double product = length_of(&f->part) * length_of(&f->rest);
    return product > 0 ? f->dot / product : 0;
}

/* Doubles can be so small, or large, that their products are none. */
static bool products_vanish(const tb_lengths *l)
{
    const double small = 1e-200, large = 1e200;
    double product = l->part * l->rest;
    return l->part > 0 && l->rest > 0 && tb_isfinite(l->part) &&
           tb_isfinite(l->rest) && !(product > small && product < large);
}

tb_lengths tb_flow_lengths(const tb_ctx *ctx, const tb_kern *k, size_t n,
                           const void *part, const void *whole)
{
    sweep w = {.k = k, .n = n, .whole = whole, .part = part};
    const found f = run(ctx, &w);
    tb_lengths l = {.whole = length_of(&f.whole),
                    .part = length_of(&f.part),
                    .rest = length_of(&f.rest),
                    .nonfinite = f.nonfinite};
    l.cos = cosine(&f);
    if (products_vanish(&l)) {
        double most = l.part > l.rest ? l.part : l.rest;
        w.unit = most > 1e-300 ? 1 / most : 1e300;
        const found scaled = run(ctx, &w);
        l.cos = cosine(&scaled);
    }
    return l;
}

double tb_flow_largest(const tb_ctx *ctx, const tb_kern *k, size_t n,
                       const void *x, size_t *at)
{
    sweep w = {.k = k, .n = n, .whole = x, .largest = true};
    const found f = run(ctx, &w);
    *at = f.at;
    return f.largest;
}

tb_spread tb_flow_spread(const tb_ctx *ctx, const tb_kern *k, size_t n,
                         const void *x)
{
    sweep w = {.k = k, .n = n, .whole = x, .sum = true};
    const found f = run(ctx, &w);
    double mean = f.sum / (double)n, length = length_of(&f.whole);
    double var = length * length / (double)n - mean * mean;
    return (tb_spread){mean, tb_sqrt(var > 0 ? var : 0), f.nonfinite};
}

tb_spread tb_flow_moments(const tb_ctx *ctx, const tb_kern *k, size_t n,
                          const void *x)
{
    tb_spread s = tb_flow_spread(ctx, k, n, x);
    sweep w = {.k = k, .n = n, .whole = x, .deviation = true, .mean = s.mean};
    s.std = tb_sqrt(run(ctx, &w).sum / (double)n);
    return s;
}

double tb_flow_beside(const tb_ctx *ctx, const tb_kern *k, size_t n,
                      const tb_flow_term *term, size_t nterms, const void *x)
{
    sweep w = {.k = k, .n = n, .whole = x, .term = term, .nterms = nterms};
    const found f = run(ctx, &w);
    double length = length_of(&f.whole);
    return length > 0 ? length_of(&f.rest) / length : 0;
}
