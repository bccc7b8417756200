/* SPDX-License-Identifier: MIT */
/* What the norms of single rows share: layernorm, rmsnorm, scalenorm, l2norm
 * in every convention. One row x of width d, c = x - mean (or x itself):
 *
 *   y = xhat (.) gain + bias,  xhat = r c
 *   J = diag(gain) r P,  P = I - ee' - (1 - kappa) uu'
 *
 * with e the unit vector of ones (only where a mean is taken off), u = c/|c|,
 * and r and kappa by the convention: kappa is what P leaves of u, from 0 (the
 * length is normalised away) to 1 (it does not matter). */
#ifndef TB_OPS_OP_NORM_H
#define TB_OPS_OP_NORM_H

#include "ops/op_help.h"

typedef enum tb_norm_family {
    TB_FAMILY_LAYER, /* mean off; n = d or d-1 */
    TB_FAMILY_RMS,   /* n = d */
    TB_FAMILY_LENGTH /* n = 1 */
} tb_norm_family;

/** One call's convention, attributes resolved. */
typedef struct tb_norm_form {
    tb_norm_family family;
    size_t groups;    /* of the width, each a row of its own */
    size_t rows, d;   /* with them */
    double n;         /* divisor of the variance */
    tb_eps_mode mode; /* INSIDE, OUTSIDE, CLAMP or CLAMP_SQUARE */
    double eps;       /* as that mode uses it */
    tb_variance variance;
    bool plain;   /* inside, two passes, n = d: the kernels' form */
    size_t nstat; /* doubles saved of a row: mean, r; kappa if not plain */
    size_t part;  /* doubles of scratch of a chunk */
} tb_norm_form;

tb_norm_form tb_norm_form_of(const tb_opcall *c, tb_norm_family family);

/** What fwd saved of a row. */
typedef struct tb_norm_stat {
    double mean, r, kappa;
} tb_norm_stat;

tb_norm_stat tb_norm_stat_get(const tb_opcall *c, const tb_norm_form *f,
                              size_t row);

/** tb_norm_scale - r and kappa from |c|; `mode` and `eps` resolved. */
tb_norm_stat tb_norm_scale(tb_eps_mode mode, double eps, double n,
                           double length);
/** tb_norm_eps - *mode and *eps resolved: DTYPE and NONE become INSIDE. */
void tb_norm_eps(const tb_opcall *c, tb_eps_mode *mode, double *eps);

/** tb_norm_direction - u = (x - mean) / |x - mean| in d doubles, 0 where the
 * length is; returns the length. Nothing overflows. */
double tb_norm_direction(const tb_opcall *c, const void *x, double mean,
                         size_t d, double *u);

/** tb_norm_gain_at - the gain of element i, 1 if the norm has none. */
double tb_norm_gain_at(const tb_opcall *c, size_t i);

/* Rows [from, to) in double, any form. `part`: the chunk's f->part doubles; bwd
 * adds the gradients of gain and bias to its first and second d. */
void tb_norm_rows_fwd(const tb_opcall *c, const tb_norm_form *f, size_t from,
                      size_t to, double *part);
void tb_norm_rows_bwd(const tb_opcall *c, const tb_norm_form *f, size_t from,
                      size_t to, double *part);
void tb_norm_rows_tan(const tb_opcall *c, const tb_norm_form *f, size_t from,
                      size_t to, double *part);

/** tb_op_norm_gain - the op table's `gain` of any of them. */
void tb_op_norm_gain(const tb_opcall *c, tb_norm_family family, double *rms,
                     double *max);

/** tb_op_norm_scale - the op table's `scale` of any of them. */
bool tb_op_norm_scale(const tb_opcall *c, tb_norm_family family, size_t row,
                      double *s, double *eps_share);

#endif
