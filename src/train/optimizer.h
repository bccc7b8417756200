/* SPDX-License-Identifier: MIT */
/* AdamW over a table of views, with the global gradient norm clipped. All work
 * is cut into pieces of single views by shape, and partial sums join in table
 * order, so the result does not depend on the number of threads. */
#ifndef TB_TRAIN_OPTIMIZER_H
#define TB_TRAIN_OPTIMIZER_H

#include "model/model.h"
#include "tollbooth/train.h"

/** Loshchilov and Hutter 2019, arXiv:1711.05101. */
typedef struct tb_adam {
    double beta1, beta2, eps;
    double decay; /* of matrices, by role; times the learning rate */
    double clip;  /* largest gradient norm; 0: none */
} tb_adam;

enum { TB_ROLES = TB_ROLE_TABLE + 1 };

/** tb_role_decayed - matrices only. Embedding tables are not decayed: most of
 * their rows get no gradient in a step, and decay alone would shrink rare
 * tokens towards zero. */
bool tb_role_decayed(tb_role r);

/** What one update did. */
typedef struct tb_update {
    double grad_norm, grad_norm_after;
    double factor; /* on the gradient: clip / (norm + 1e-6), at most 1 */
    bool clipped;
    double update_norm, weight_norm; /* weights after the update */
    size_t ngroups;                  /* roles that occur, in order */
    tb_train_group groups[TB_ROLES];
    const tb_view *bad; /* TB_ERR_NONFINITE: the first view to blame */
} tb_update;

typedef struct tb_piece {
    size_t view, at, n;          /* elements [at, at + n) of the flat buffers */
    double grad, update, weight; /* lengths */
} tb_piece;

typedef struct tb_optimizer {
    tb_ctx *ctx;
    const tb_kern *k;
    const tb_view *views;
    size_t nviews, nelements, npieces;
    void *params;        /* borrowed */
    void *grads, *m, *v; /* [nelements], zero at first */
    tb_piece *pieces;
    tb_k_adamw adamw; /* of the update that runs */
    double decay;
} tb_optimizer;

/** tb_optimizer_create - moments and gradients for params[nelements]; views
 * and params must outlive it. */
tb_status tb_optimizer_create(tb_ctx *ctx, tb_dtype dtype, const tb_view *views,
                              size_t nviews, size_t nelements, void *params,
                              tb_optimizer **out);
void tb_optimizer_destroy(tb_optimizer *o); /* NULL is fine */

/**
 * tb_optimizer_step - update t (from 1) of params by o->grads, which stay as
 * they are. TB_ERR_NONFINITE and no change at all, except for out->bad and
 * out->grad_norm, if a gradient is not finite or its square overflows the
 * second moment; the same with the weights changed if one of them is no longer
 * finite (out->weight_norm is not finite then).
 */
tb_status tb_optimizer_step(tb_optimizer *o, const tb_adam *p, size_t t,
                            double lr, tb_update *out);

/** tb_optimizer_layers - what the last update measured, one row per run of
 * views of one layer, in their order; rows [nviews]. */
size_t tb_optimizer_layers(const tb_optimizer *o, tb_train_layer *rows);

/** tb_optimizer_report - groups and lengths of the last update; before the
 * first one the table of groups with lengths of 0. */
void tb_optimizer_report(const tb_optimizer *o, tb_update *u);

#endif
