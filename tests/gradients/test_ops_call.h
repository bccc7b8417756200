/* SPDX-License-Identifier: MIT */
/* A bed for one op: inputs, tangents, gradients and outputs of one call in
 * one dtype, each buffer ending at an unmapped page. Passes see only what the
 * op's `needs` asks for, so an op that reads more than it says crashes. */
#ifndef TB_TESTS_OPS_CALL_H
#define TB_TESTS_OPS_CALL_H

#include "ops/op_help.h"
#include "ops/op_rows.h"
#include "tb_test.h"

/* What to run. vocab: token inputs are drawn from 0 .. vocab-1. */
typedef struct variant {
    const char *op;
    size_t batch, time;
    size_t in_time[TB_OP_INPUTS]; /* 0: time */
    int nin;
    tb_shape in[TB_OP_INPUTS];
    double attr[TB_OP_ATTRS];
    int vocab;
    unsigned flags;
} variant;

enum {
    V_FROZEN = 1, /* part of the value is held: differences see more */
    V_BIG = 2,    /* several chunks; too large for differences */
    V_IGNORE = 4, /* some targets are -1 */
    V_APPROX = 8, /* bwd is a paper's rule, not the derivative */
    V_OWN = 16    /* float differs from double by design */
};

#define STREAM(w)                                                              \
    {                                                                          \
        TB_SHAPE_STREAM, (w), 1                                                \
    }
#define VECTOR(w)                                                              \
    {                                                                          \
        TB_SHAPE_VECTOR, (w), 1                                                \
    }
#define SCALAR                                                                 \
    {                                                                          \
        TB_SHAPE_SCALAR, 1, 1                                                  \
    }
#define MATRIX(h, w)                                                           \
    {                                                                          \
        TB_SHAPE_MATRIX, (w), (h)                                              \
    }
#define TOKENS                                                                 \
    {                                                                          \
        TB_SHAPE_TOKENS, 1, 1                                                  \
    }

typedef struct bed {
    const tb_op *op;
    tb_dtype type;
    tb_opcall c; /* in, out, saved, scratch set; the rest per pass */
    size_t n[TB_OP_INPUTS], nout, saved_bytes, scratch_bytes;
    unsigned data; /* inputs without a derivative */
    void *x[TB_OP_INPUTS], *t[TB_OP_INPUTS], *g[TB_OP_INPUTS];
    void *y, *ty, *gy;
} bed;

static inline bool bed_moves(const bed *b, int i)
{
    return i < b->c.nin && b->c.in_shape[i].kind != TB_SHAPE_TOKENS &&
           !(b->data & TB_NEED_IN(i));
}

/* One bit per input that has a gradient. */
static inline unsigned bed_all(const bed *b)
{
    unsigned all = 0;
    for (int i = 0; i < b->c.nin; i++)
        all |= bed_moves(b, i) ? 1u << i : 0;
    return all;
}

static inline void *bed_buffer(tb_test *T, tb_dtype type, size_t n)
{
    return tb_test_guarded(T, n * tb_dtype_size(type));
}

/* Normal numbers, none of them near 0 (relu's kink, a divisor). They are
 * exact in float, so both dtypes compute with the same. */
static inline void bed_fill(tb_test *T, tb_dtype type, void *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double v = tb_test_normal(T);
        tb_test_set(type, x, i, (double)(float)(v + (v < 0 ? -0.1 : 0.1)));
    }
}

static inline void bed_fill_tokens(tb_test *T, const variant *v, int32_t *x,
                                   size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (int32_t)(tb_test_uniform(T) * v->vocab);
        if ((v->flags & V_IGNORE) && i % 3 == 1)
            x[i] = -1;
    }
}

/* A mask of 0 and 1; running statistics: something above 0. */
static inline void bed_fill_data(tb_test *T, const bed *b, const variant *v,
                                 int i)
{
    bool vector = v->in[i].kind == TB_SHAPE_VECTOR;
    for (size_t j = 0; j < b->n[i]; j++) {
        double u = tb_test_uniform(T);
        tb_test_set(b->type, b->x[i], j,
                    vector ? (double)(float)(u + 0.5) : (double)(u < 0.7));
    }
}

static inline void bed_open_input(tb_test *T, bed *b, const variant *v, int i)
{
    size_t time = v->in_time[i] ? v->in_time[i] : v->time;
    b->n[i] = tb_shape_count(v->in[i], v->batch, time);
    if (v->in[i].kind == TB_SHAPE_TOKENS) {
        b->x[i] = tb_test_guarded(T, b->n[i] * sizeof(int32_t));
        bed_fill_tokens(T, v, b->x[i], b->n[i]);
        return;
    }
    b->x[i] = bed_buffer(T, b->type, b->n[i]);
    b->t[i] = bed_buffer(T, b->type, b->n[i]);
    b->g[i] = bed_buffer(T, b->type, b->n[i]);
    bed_fill(T, b->type, b->t[i], b->n[i]);
    if (b->data & TB_NEED_IN(i))
        bed_fill_data(T, b, v, i);
    else
        bed_fill(T, b->type, b->x[i], b->n[i]);
}

/* False, and a failed test, if there is no such op or the shapes are bad.
 * Beds of one variant opened at the same `draws` hold the same numbers. */
static inline bool bed_open(tb_test *T, bed *b, const variant *v, tb_dtype type)
{
    const char *why = "";
    *b = (bed){.op = tb_op_find(v->op), .type = type};
    b->data = b->op ? b->op->data : 0;
    b->c = (tb_opcall){.ctx = T->ctx,
                       .k = tb_kern_get(T->ctx, type),
                       .batch = v->batch,
                       .time = v->time,
                       .nin = v->nin,
                       .rng = tb_rng_make(7, "test")};
    memcpy(b->c.in_shape, v->in, sizeof v->in);
    memcpy(b->c.in_time, v->in_time, sizeof v->in_time);
    memcpy(b->c.attr, v->attr, sizeof v->attr);
    if (!b->op ||
        !b->op->shape(v->in, v->nin, v->attr, &b->c.out_shape, &why)) {
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", v->op, why);
        return false;
    }
    for (int i = 0; i < v->nin; i++)
        bed_open_input(T, b, v, i);
    why = b->op->fit ? b->op->fit(&b->c) : NULL;
    if (why) {
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", v->op, why);
        return false;
    }
    b->nout = tb_shape_count(b->c.out_shape, v->batch, v->time);
    b->c.out = b->y = bed_buffer(T, type, b->nout);
    b->ty = bed_buffer(T, type, b->nout);
    b->gy = bed_buffer(T, type, b->nout);
    bed_fill(T, type, b->gy, b->nout);
    b->saved_bytes = b->op->saved ? b->op->saved(&b->c) : 0;
    b->scratch_bytes = tb_op_scratch(b->op, &b->c);
    b->c.saved = tb_test_guarded(T, b->saved_bytes);
    b->c.scratch = tb_test_guarded(T, b->scratch_bytes);
    return true;
}

/* A call whose scratch holds rubbish and whose inputs are all there. */
static inline tb_opcall bed_call(const bed *b)
{
    tb_opcall c = b->c;
    for (int i = 0; i < c.nin; i++)
        c.in[i] = b->x[i];
    memset(c.scratch, 0xff, b->scratch_bytes);
    return c;
}

static inline void bed_fwd(const bed *b)
{
    tb_opcall c = bed_call(b);
    tb_op_forward(b->op, &c);
}

/* A call of bwd or tan: only the operands that `needs` names. */
static inline tb_opcall bed_later_call(const bed *b)
{
    tb_opcall c = bed_call(b);
    for (int i = 0; i < c.nin; i++)
        if (!(b->op->needs & TB_NEED_IN(i)))
            c.in[i] = NULL;
    if (!(b->op->needs & TB_NEED_OUT))
        c.out = NULL;
    return c;
}

/* The tangent along the inputs in `mask`. */
static inline void bed_tan(const bed *b, unsigned mask)
{
    tb_opcall c = bed_later_call(b);
    for (int i = 0; i < c.nin; i++)
        c.tin[i] = mask & (1u << i) ? b->t[i] : NULL;
    c.tout = b->ty;
    memset(c.tout, 0xff, b->nout * tb_dtype_size(b->type));
    tb_op_tangent(b->op, &c);
}

static inline void bed_clear_gradients(const bed *b)
{
    for (int i = 0; i < b->c.nin; i++)
        if (bed_moves(b, i))
            memset(b->g[i], 0, b->n[i] * tb_dtype_size(b->type));
}

/* Gradients of the inputs in `mask`, added to what is there. Data gets none,
 * whoever asks. */
static inline void bed_bwd_add(const bed *b, unsigned mask)
{
    tb_opcall c = bed_later_call(b);
    for (int i = 0; i < c.nin; i++)
        c.gbase[i] = c.gin[i] = mask & (1u << i) ? b->g[i] : NULL;
    c.gout = b->gy;
    tb_op_backward(b->op, &c);
}

static inline void bed_bwd(const bed *b, unsigned mask)
{
    bed_clear_gradients(b);
    bed_bwd_add(b, mask);
}

static inline double bed_get(const bed *b, const void *x, size_t i)
{
    return tb_test_get(b->type, x, i);
}

/* Overwrite a buffer with the given numbers. */
static inline void bed_put(const bed *b, void *x, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tb_test_set(b->type, x, i, v[i]);
}

static inline void bed_set_all(const bed *b, void *x, size_t n, double v)
{
    for (size_t i = 0; i < n; i++)
        tb_test_set(b->type, x, i, v);
}

#endif
