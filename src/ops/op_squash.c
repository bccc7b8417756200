/* SPDX-License-Identifier: MIT */
/* dyt: gain (.) tanh(alpha x) + bias (Zhu et al. 2025, arXiv:2503.10622).
 * derf: gain (.) erf(alpha x + shift) + bias. They stand where a norm would,
 * but look at one element at a time: J = diag(gain alpha f'(z)), z = alpha x +
 * shift. alpha and shift are scalars of the site. */
#include "ops/op_help.h"
#include "base/math_inline.h"

typedef enum squash { SQUASH_TANH, SQUASH_ERF } squash;

/* Inputs of either, by number; bias may be beyond nin. */
typedef struct slots {
    int alpha, shift, gain, bias; /* shift 0: none */
} slots;

static const slots slot[] = {{1, 0, 2, 3}, {1, 2, 3, 4}};

/* --- shape -------------------------------------------------------------- */

static bool shape_of(squash kind, const tb_shape *in, int nin, tb_shape *out,
                     const char **why)
{
    const slots *s = &slot[kind];
    if (in[0].kind != TB_SHAPE_STREAM)
        return tb_op_no(why, "a norm applies to a stream");
    for (int i = 1; i < s->gain; i++)
        if (in[i].kind != TB_SHAPE_SCALAR)
            return tb_op_no(why, "alpha and shift must be scalars");
    for (int i = s->gain; i < nin; i++)
        if (in[i].kind != TB_SHAPE_VECTOR || in[i].width != in[0].width)
            return tb_op_no(why, "gain and bias must have the width");
    *out = in[0];
    return true;
}

/* --- a block of elements ------------------------------------------------ */

typedef struct block {
    size_t n;
    double alpha, shift;
    double x[TB_OP_BLOCK], f[TB_OP_BLOCK], df[TB_OP_BLOCK]; /* f(z), f'(z) */
    double gain[TB_OP_BLOCK];
} block;

static double param(const tb_opcall *c, const void *const *from, int i,
                    size_t at, double without)
{
    return i > 0 && i < c->nin && from[i] ? tb_op_get(c, from[i], at) : without;
}

static void squash_all(squash kind, block *b)
{
    const double two_over_root_pi = 1.12837916709551257390;
    for (size_t i = 0; i < b->n; i++) {
        double z = b->alpha * b->x[i] + b->shift;
        if (kind == SQUASH_TANH) {
            b->f[i] = tb_inline_tanh(z);
            b->df[i] = 1 - b->f[i] * b->f[i];
        } else {
            b->f[i] = tb_inline_erf(z);
            b->df[i] = two_over_root_pi * tb_inline_exp(-z * z);
        }
    }
}

/* Elements [at, at + n) of row r. */
static void load(const tb_opcall *c, squash kind, size_t r, size_t at, size_t n,
                 block *b)
{
    const slots *s = &slot[kind];
    size_t d = c->out_shape.width;
    b->n = n;
    b->alpha = param(c, c->in, s->alpha, 0, 1);
    b->shift = param(c, c->in, s->shift, 0, 0);
    for (size_t i = 0; i < n; i++) {
        b->x[i] = tb_op_get(c, c->in[0], r * d + at + i);
        b->gain[i] = param(c, c->in, s->gain, at + i, 1);
    }
    squash_all(kind, b);
}

typedef void (*block_fn)(const tb_opcall *c, squash kind, size_t r, size_t at,
                         const block *b, double *part);

/* A chunk's doubles: gradients of gain [d] and bias [d], of alpha and shift;
 * gain uses the first two. */
static size_t part_len(const tb_opcall *c)
{
    return tb_op_times(2, c->out_shape.width) + 2;
}

static void each_block(const tb_opcall *c, squash kind, size_t from, size_t to,
                       size_t chunk, block_fn fn)
{
    size_t d = c->out_shape.width;
    double *part = tb_op_part(c, chunk, part_len(c));
    block b;
    for (size_t r = from; r < to; r++)
        for (size_t at = 0; at < d; at += TB_OP_BLOCK) {
            size_t left = d - at;
            load(c, kind, r, at, left < TB_OP_BLOCK ? left : TB_OP_BLOCK, &b);
            fn(c, kind, r, at, &b, part);
        }
}

/* --- passes ------------------------------------------------------------- */

static void fwd_block(const tb_opcall *c, squash kind, size_t r, size_t at,
                      const block *b, double *part)
{
    (void)part;
    for (size_t i = 0; i < b->n; i++)
        tb_op_set(c, c->out, r * c->out_shape.width + at + i,
                  b->gain[i] * b->f[i] +
                      param(c, c->in, slot[kind].bias, at + i, 0));
}

static void bwd_block(const tb_opcall *c, squash kind, size_t r, size_t at,
                      const block *b, double *part)
{
    size_t d = c->out_shape.width;
    (void)kind;
    for (size_t i = 0; i < b->n; i++) {
        size_t e = r * d + at + i;
        double gy = tb_op_get(c, c->gout, e), gz = gy * b->gain[i] * b->df[i];
        if (c->gin[0])
            tb_op_acc(c, c->gin[0], e, gz * b->alpha);
        part[at + i] += gy * b->f[i];
        part[d + at + i] += gy;
        part[2 * d] += gz * b->x[i];
        part[2 * d + 1] += gz;
    }
}

static void tan_block(const tb_opcall *c, squash kind, size_t r, size_t at,
                      const block *b, double *part)
{
    const slots *s = &slot[kind];
    double ta = param(c, c->tin, s->alpha, 0, 0);
    double ts = param(c, c->tin, s->shift, 0, 0);
    (void)part;
    for (size_t i = 0; i < b->n; i++) {
        size_t e = r * c->out_shape.width + at + i;
        double tx = c->tin[0] ? tb_op_get(c, c->tin[0], e) : 0;
        double tz = b->alpha * tx + ta * b->x[i] + ts;
        tb_op_set(c, c->tout, e,
                  b->gain[i] * b->df[i] * tz +
                      param(c, c->tin, s->gain, at + i, 0) * b->f[i] +
                      param(c, c->tin, s->bias, at + i, 0));
    }
}

/* part: sum of squares of the Jacobian, largest element */
static void gain_block(const tb_opcall *c, squash kind, size_t r, size_t at,
                       const block *b, double *part)
{
    (void)c, (void)kind, (void)r, (void)at;
    for (size_t i = 0; i < b->n; i++) {
        double j = tb_fabs(b->gain[i] * b->df[i] * b->alpha);
        part[0] += j * j;
        part[1] = j > part[1] || j != j ? j : part[1];
    }
}

static void join_with(const tb_opcall *c, squash kind, size_t pieces)
{
    const slots *s = &slot[kind];
    size_t d = c->out_shape.width, len = part_len(c);
    tb_op_join(c, pieces, len, 2 * d, 1, c->gin[s->alpha]);
    if (s->shift)
        tb_op_join(c, pieces, len, 2 * d + 1, 1, c->gin[s->shift]);
    if (c->nin > s->gain)
        tb_op_join(c, pieces, len, 0, d, c->gin[s->gain]);
    if (c->nin > s->bias)
        tb_op_join(c, pieces, len, d, d, c->gin[s->bias]);
}

static void gain_with(const tb_opcall *c, tb_rows_fn fn, double *rms,
                      double *max)
{
    size_t pieces = tb_op_row_pieces(tb_op_rows(c)), len = part_len(c);
    memset(c->scratch, 0, tb_op_part_bytes(pieces, len));
    tb_op_each_row(c, fn);
    *max = 0;
    for (size_t i = 0; i < pieces; i++) {
        double m = tb_op_part(c, i, len)[1];
        *max = m > *max || m != m ? m : *max;
    }
    double n = (double)tb_op_out_count(c);
    *rms = n > 0 ? tb_sqrt(tb_op_total(c, pieces, len, 0) / n) : 0;
}

#define PASS(label, kind, pass)                                                \
    static void label##_##pass##_range(const tb_opcall *c, size_t from,        \
                                       size_t to, size_t chunk)                \
    {                                                                          \
        each_block(c, kind, from, to, chunk, pass##_block);                    \
    }

#define SQUASH(label, kind, sign, least, most, need)                           \
    PASS(label, kind, fwd)                                                     \
    PASS(label, kind, bwd)                                                     \
    PASS(label, kind, tan)                                                     \
    PASS(label, kind, gain)                                                    \
    static bool label##_shape(const tb_shape *in, int nin, const double *attr, \
                              tb_shape *out, const char **why)                 \
    {                                                                          \
        (void)attr;                                                            \
        return shape_of(kind, in, nin, out, why);                              \
    }                                                                          \
    static void label##_join(const tb_opcall *c, size_t pieces)                \
    {                                                                          \
        join_with(c, kind, pieces);                                            \
    }                                                                          \
    static void label##_gain(const tb_opcall *c, double *rms, double *max)     \
    {                                                                          \
        gain_with(c, label##_gain_range, rms, max);                            \
    }                                                                          \
    const tb_op tb_op_##label = {                                              \
        .name = #label,                                                        \
        .symbol = sign,                                                        \
        .min_in = least,                                                       \
        .max_in = most,                                                        \
        .lane = TB_LANE_TOLL,                                                  \
        .jac = TB_JAC_DIAG,                                                    \
        .needs = need,                                                         \
        .shape = label##_shape,                                                \
        .fwd_rows = label##_fwd_range,                                         \
        .bwd_rows = label##_bwd_range,                                         \
        .tan_rows = label##_tan_range,                                         \
        .part = part_len,                                                      \
        .join = label##_join,                                                  \
        .gain = label##_gain,                                                  \
    };

SQUASH(dyt, SQUASH_TANH, "DyT", 2, 4,
       TB_NEED_IN(0) | TB_NEED_IN(1) | TB_NEED_IN(2))
SQUASH(derf, SQUASH_ERF, "Derf", 3, 5,
       TB_NEED_IN(0) | TB_NEED_IN(1) | TB_NEED_IN(2) | TB_NEED_IN(3))
