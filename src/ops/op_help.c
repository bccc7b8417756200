/* SPDX-License-Identifier: MIT */
/* Shared by the ops: element access, chunks by shape, ordered sums, and the
 * one call into tb_gemm. */
#include "ops/op_help.h"

size_t tb_shape_count(tb_shape s, size_t batch, size_t time)
{
    size_t rows = tb_op_times(batch, time);
    switch (s.kind) {
    case TB_SHAPE_STREAM:
        return tb_op_times(rows, s.width);
    case TB_SHAPE_MATRIX:
        return tb_op_times(s.height, s.width);
    case TB_SHAPE_TOKENS:
        return rows;
    case TB_SHAPE_VECTOR:
        return s.width;
    case TB_SHAPE_SCALAR:
        break;
    }
    return 1;
}

tb_reach tb_op_reach(const tb_op *op, const double *attr)
{
    return op->reach ? op->reach(attr) : TB_REACH_TOKEN;
}

size_t tb_op_rows(const tb_opcall *c)
{
    return c->batch * c->time;
}

size_t tb_op_in_time(const tb_opcall *c, int i)
{
    return c->in_time[i] ? c->in_time[i] : c->time;
}

size_t tb_op_in_count(const tb_opcall *c, int i)
{
    return tb_shape_count(c->in_shape[i], c->batch, tb_op_in_time(c, i));
}

size_t tb_op_out_count(const tb_opcall *c)
{
    return tb_shape_count(c->out_shape, c->batch, c->time);
}

size_t tb_op_row_count(const tb_opcall *c)
{
    tb_shape s = c->out_shape;
    size_t own = s.kind == TB_SHAPE_MATRIX ? s.height : 1;
    return s.kind == TB_SHAPE_STREAM ? tb_op_rows(c) : own;
}

size_t tb_op_times(size_t a, size_t b)
{
    size_t n;
    return tb_mul(a, b, &n) ? n : SIZE_MAX;
}

size_t tb_op_bytes(const tb_opcall *c, size_t n)
{
    return tb_op_times(n, tb_dtype_size(c->k->dtype));
}

const void *tb_op_peek(const tb_opcall *c, const void *p, size_t i)
{
    /* as numbers: p may be where row 0 would be, see op_rows.c */
    uintptr_t at = (uintptr_t)p + i * tb_dtype_size(c->k->dtype);
    return p ? (const void *)at : NULL;
}

void *tb_op_at(const tb_opcall *c, void *p, size_t i)
{
    return p ? (void *)((uintptr_t)p + i * tb_dtype_size(c->k->dtype)) : NULL;
}

double tb_op_get(const tb_opcall *c, const void *p, size_t i)
{
    const void *at = tb_op_peek(c, p, i);
    return c->k->dtype == TB_F32 ? (double)*(const float *)at
                                 : *(const double *)at;
}

void tb_op_set(const tb_opcall *c, void *p, size_t i, double v)
{
    void *at = tb_op_at(c, p, i);
    if (c->k->dtype == TB_F32)
        *(float *)at = (float)v;
    else
        *(double *)at = v;
}

void tb_op_acc(const tb_opcall *c, void *p, size_t i, double v)
{
    tb_op_set(c, p, i, tb_op_get(c, p, i) + v);
}

void tb_op_copy(const tb_opcall *c, size_t n, const void *x, void *y)
{
    if (!x)
        memset(y, 0, tb_op_bytes(c, n));
    else if (x != y)
        memcpy(y, x, tb_op_bytes(c, n));
}

void tb_op_plus(const tb_opcall *c, size_t n, const void *x, void *y)
{
    c->k->add(n, y, x, y);
}

void tb_op_mask(const tb_opcall *c, double p, size_t first, size_t n,
                const void *x, bool add, void *y)
{
    c->k->drop(c->rng, p, first, n, x, add, y);
}

/* Elements worth a thread's while. */
enum { GRAIN = 16384 };

size_t tb_op_pieces(size_t n, size_t unit)
{
    size_t grain = unit < GRAIN ? GRAIN / (unit ? unit : 1) : 1;
    return n ? tb_chunks(n, grain) : 0;
}

typedef struct pass {
    const tb_opcall *c;
    tb_rows_fn fn;
    size_t n, pieces;
} pass;

static void run_piece(void *arg, size_t chunk)
{
    const pass *p = arg;
    p->fn(p->c, tb_chunk_at(p->n, p->pieces, chunk),
          tb_chunk_at(p->n, p->pieces, chunk + 1), chunk);
}

void tb_op_each(const tb_opcall *c, size_t n, size_t unit, tb_rows_fn fn)
{
    pass p = {.c = c, .fn = fn, .n = n, .pieces = tb_op_pieces(n, unit)};
    if (p.pieces)
        tb_parallel(c->ctx, p.pieces, run_piece, &p);
}

/* Few enough that a piece's sums cost little beside its rows. */
enum { PIECE = 16 };

size_t tb_op_row_pieces(size_t rows)
{
    return rows ? tb_chunks(rows, PIECE) : 0;
}

void tb_op_each_row(const tb_opcall *c, tb_rows_fn fn)
{
    size_t rows = tb_op_row_count(c);
    pass p = {.c = c, .fn = fn, .n = rows, .pieces = tb_op_row_pieces(rows)};
    if (p.pieces)
        tb_parallel(c->ctx, p.pieces, run_piece, &p);
}

double *tb_op_part(const tb_opcall *c, size_t chunk, size_t len)
{
    return (double *)c->scratch + chunk * len;
}

size_t tb_op_part_bytes(size_t pieces, size_t len)
{
    return tb_op_times(tb_op_times(pieces, len), sizeof(double));
}

double tb_op_total(const tb_opcall *c, size_t pieces, size_t len, size_t i)
{
    double sum = 0;
    for (size_t p = 0; p < pieces; p++)
        sum += tb_op_part(c, p, len)[i];
    return sum;
}

void tb_op_join(const tb_opcall *c, size_t pieces, size_t len, size_t first,
                size_t n, void *g)
{
    double *sum = tb_op_part(c, 0, len) + first;
    if (!g || !pieces)
        return;
    for (size_t p = 1; p < pieces; p++)
        for (size_t j = 0; j < n; j++)
            sum[j] += tb_op_part(c, p, len)[first + j];
    for (size_t j = 0; j < n; j++)
        tb_op_acc(c, g, j, sum[j]);
}

tb_gemm_args tb_op_product_args(const tb_opcall *c, tb_op_form form, size_t m,
                                size_t n, size_t k, tb_op_mat a, tb_op_mat b,
                                bool add, void *y, size_t ldy)
{
    return (tb_gemm_args){.dtype = c->k->dtype,
                          .bf16 = c->bf16,
                          .ta = form == TB_OP_TN,
                          .tb = form == TB_OP_NT,
                          .m = m,
                          .n = n,
                          .k = k,
                          .alpha = 1,
                          .beta = add ? 1 : 0,
                          .a = a.p,
                          .b = b.p,
                          .c = y,
                          .lda = a.ld,
                          .ldb = b.ld,
                          .ldc = ldy};
}

void tb_op_multiply(const tb_opcall *c, const tb_gemm_args *g)
{
    if (g->m != 0 && g->n != 0 && (g->k != 0 || g->beta == 0))
        tb_gemm(c->ctx, g);
}

void tb_op_product(const tb_opcall *c, tb_op_form form, size_t m, size_t n,
                   size_t k, tb_op_mat a, tb_op_mat b, bool add, void *y,
                   size_t ldy)
{
    const tb_gemm_args g =
        tb_op_product_args(c, form, m, n, k, a, b, add, y, ldy);
    tb_op_multiply(c, &g);
}

bool tb_op_same(tb_shape a, tb_shape b)
{
    return a.kind == b.kind && a.width == b.width && a.height == b.height;
}

bool tb_op_no(const char **why, const char *reason)
{
    *why = reason;
    return false;
}

bool tb_op_shape_keep(const tb_shape *in, int nin, const double *attr,
                      tb_shape *out, const char **why)
{
    (void)nin, (void)attr;
    if (in[0].kind == TB_SHAPE_TOKENS)
        return tb_op_no(why, "token ids are not numbers to compute with");
    *out = in[0];
    return true;
}

bool tb_op_shape_stream(const tb_shape *in, int nin, const double *attr,
                        tb_shape *out, const char **why)
{
    (void)nin, (void)attr;
    if (in[0].kind != TB_SHAPE_STREAM)
        return tb_op_no(why, "its input must be a stream");
    *out = in[0];
    return true;
}

bool tb_op_place_ok(double start, const char **why)
{
    if (start >= 0 && start <= 1e9 && (double)(size_t)start == start)
        return true;
    return tb_op_no(why, "positions start at a whole number, 0 or more");
}
