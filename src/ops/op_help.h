/* SPDX-License-Identifier: MIT */
/* What the files op_*.c share: element access by dtype, cutting rows into
 * chunks that depend on the shape alone, and sums joined in chunk order. */
#ifndef TB_OPS_OP_HELP_H
#define TB_OPS_OP_HELP_H

#include "ops/op.h"

/* --- sizes and elements ------------------------------------------------- */

size_t tb_op_rows(const tb_opcall *c); /* batch * time */
size_t tb_op_in_time(const tb_opcall *c, int i);
size_t tb_op_in_count(const tb_opcall *c, int i);
size_t tb_op_out_count(const tb_opcall *c);

/** tb_op_times - a * b, SIZE_MAX on overflow (no allocation of that size
 * succeeds, so the failure is met where memory is asked for). */
size_t tb_op_times(size_t a, size_t b);
/** tb_op_bytes - n elements of the call's dtype, in bytes. */
size_t tb_op_bytes(const tb_opcall *c, size_t n);

/** tb_op_peek, tb_op_at - address of element i; NULL stays NULL. */
const void *tb_op_peek(const tb_opcall *c, const void *p, size_t i);
void *tb_op_at(const tb_opcall *c, void *p, size_t i);
/** Element i as double; an element set; an element added to. */
double tb_op_get(const tb_opcall *c, const void *p, size_t i);
void tb_op_set(const tb_opcall *c, void *p, size_t i, double v);
void tb_op_acc(const tb_opcall *c, void *p, size_t i, double v);

/** y = x over n elements, serial; x NULL means zero. */
void tb_op_copy(const tb_opcall *c, size_t n, const void *x, void *y);
/** y += x over n elements. */
void tb_op_plus(const tb_opcall *c, size_t n, const void *x, void *y);

/** tb_op_row_count - rows of the op's row parts. */
size_t tb_op_row_count(const tb_opcall *c);

/** As many elements as fit a small block on the stack, of either dtype. */
enum { TB_OP_BLOCK = 256 };
typedef union tb_op_block {
    float f[TB_OP_BLOCK];
    double d[TB_OP_BLOCK];
} tb_op_block;

/** tb_op_mask - y (+)= m (.) x over n elements, m being 0 with probability p,
 * else 1/(1-p): a pure function of the node's random stream and the element's
 * number, the first one's being `first`. y may be x. */
void tb_op_mask(const tb_opcall *c, double p, size_t first, size_t n,
                const void *x, bool add, void *y);

/* --- chunks ------------------------------------------------------------- */

/** tb_op_pieces - chunks that n items of `unit` elements are cut into. */
size_t tb_op_pieces(size_t n, size_t unit);
/** tb_op_each - fn over all pieces of n items, in parallel. */
void tb_op_each(const tb_opcall *c, size_t n, size_t unit, tb_rows_fn fn);

/** tb_op_row_pieces - pieces that the rows of row parts are cut into. */
size_t tb_op_row_pieces(size_t rows);
/** tb_op_each_row - fn over all of them, in parallel. */
void tb_op_each_row(const tb_opcall *c, tb_rows_fn fn);

/** tb_op_part - the `len` doubles of scratch that belong to one chunk. */
double *tb_op_part(const tb_opcall *c, size_t chunk, size_t len);
/** tb_op_part_bytes - scratch for `pieces` such parts. */
size_t tb_op_part_bytes(size_t pieces, size_t len);
/** tb_op_total - sum of element i of all parts, in chunk order. */
double tb_op_total(const tb_opcall *c, size_t pieces, size_t len, size_t i);
/** tb_op_join - g[j] += that sum of element first + j, for j < n. */
void tb_op_join(const tb_opcall *c, size_t pieces, size_t len, size_t first,
                size_t n, void *g);

/* --- matrix products ---------------------------------------------------- */

/** A matrix inside a larger one: address and row stride in elements. */
typedef struct tb_op_mat {
    const void *p;
    size_t ld;
} tb_op_mat;

/** Whether the first, the second operand is transposed. */
typedef enum tb_op_form { TB_OP_NN, TB_OP_NT, TB_OP_TN } tb_op_form;

/** tb_op_product - y = op(a) op(b), or += if `add`; y is [m,n], row stride
 * ldy, k the summed size. Any size may be 0. */
void tb_op_product(const tb_opcall *c, tb_op_form form, size_t m, size_t n,
                   size_t k, tb_op_mat a, tb_op_mat b, bool add, void *y,
                   size_t ldy);

/** tb_op_product_args, tb_op_multiply - the two halves of it. */
tb_gemm_args tb_op_product_args(const tb_opcall *c, tb_op_form form, size_t m,
                                size_t n, size_t k, tb_op_mat a, tb_op_mat b,
                                bool add, void *y, size_t ldy);
void tb_op_multiply(const tb_opcall *c, const tb_gemm_args *g);

/* --- shape rules -------------------------------------------------------- */

bool tb_op_same(tb_shape a, tb_shape b);
/** tb_op_no - record the reason and refuse. */
bool tb_op_no(const char **why, const char *reason);
/** tb_op_shape_keep - the output looks like input 0. */
bool tb_op_shape_keep(const tb_shape *in, int nin, const double *attr,
                      tb_shape *out, const char **why);
/** The same, where input 0 must be a stream. */
bool tb_op_shape_stream(const tb_shape *in, int nin, const double *attr,
                        tb_shape *out, const char **why);
/** tb_op_place_ok - may a first token stand there? */
bool tb_op_place_ok(double start, const char **why);

#endif
