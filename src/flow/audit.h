/* SPDX-License-Identifier: MIT */
/* Inside an audit: what a walk measures where it may take longer. */
#ifndef TB_FLOW_AUDIT_H
#define TB_FLOW_AUDIT_H

#include "flow/walk.h"

/** Room for the Jacobian of a row. */
struct tb_audit {
    uint64_t seed;
    void *from, *to; /* of the walk's type: x and what J makes of it */
    double *rows;    /* [n,n], NULL: too many */
    double *u, *v, *image;
};

/** A row of the walk goes from boundary lo to hi of the part. */
typedef struct tb_audit_piece {
    tb_walk *w;
    const tb_run *run;
    size_t part;
    int lo, hi;
    tb_flow_row *row;
} tb_audit_piece;

/** tb_audit_jacobian - d x_k / d x_(k-1); of several streams that of the whole
 * block. */
tb_status tb_audit_jacobian(const tb_audit_piece *x);
/** tb_audit_sums - are the sums on the lane the sums of what goes in? */
tb_status tb_audit_sums(const tb_audit_piece *x);
/** tb_audit_attention - what each head gives the first token. */
tb_status tb_audit_attention(const tb_audit_piece *x);
/** tb_audit_alpha - exponents of all matrices of blocks. */
tb_status tb_audit_alpha(tb_walk *w);
/** tb_tridiagonal_halve - brings both nearer to eigenvalue i (from 0, rising)
 * of a symmetric tridiagonal matrix, which lies between them, to the last bits
 * of the distance they had. */
void tb_tridiagonal_halve(const double *diagonal, const double *beside,
                          size_t n, size_t i, double *low, double *high);
/** tb_audit_check - the derivatives of a whole part against each other and
 * against differences, in double. */
tb_status tb_audit_check(tb_walk *w, const tb_run *run, size_t part);

#endif
