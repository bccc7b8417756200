/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: what a norm does to a list, step by step, and its
 * Jacobian: the numbers by the engine, and the drawing of S4. */
#ifndef TB_PICTURES_SHOT_NORM_H
#define TB_PICTURES_SHOT_NORM_H

#include "pictures/shot_parts.h"

typedef struct shot_norm_of {
    const char *name; /* "layernorm", "rmsnorm" */
    bool centred;     /* layernorm */
    size_t d;
    const double *z, *gain, *bias; /* d each; bias of layernorm only */
    double eps;
    double mu, var, sigma, s;       /* s: what is divided by */
    const double *slid, *hat, *out; /* z - mu, (z - mu)/s, gain * hat + bias */
    const double *jacobian;         /* d x d, with the gain */
    const double *singular;         /* d, largest first */
} shot_norm_of;

/** Fills everything from mu on, by the engine: values, J, singular values. */
tb_status shot_norm_run(tb_shot *s, shot_norm_of *n);
/** The value alone, of any z of d numbers. */
tb_status shot_norm_value(tb_shot *s, const shot_norm_of *n, const double *z,
                          double eps, bool plain, double *out);
/** J alone. */
tb_status shot_norm_jacobian(tb_shot *s, const shot_norm_of *n, const double *z,
                             double eps, double *j);
double shot_mean(const double *v, size_t n);
/** Population: divides by n. */
double shot_std(const double *v, size_t n);

enum { SHOT_NORM_STEPS = 4 };

/** The drawing: a strip of bars per step, J, its singular values. */
typedef struct shot_norm_panel {
    const char *title, *desc;
    const shot_norm_of *norm;
    size_t step; /* 0: only the list, 1: subtract .. 4: shift */
} shot_norm_panel;

extern const shot_face shot_norm_face;

#endif
