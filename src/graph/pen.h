/* SPDX-License-Identifier: MIT */
/* One pen with three notations, for formulas (formula.c) and Jacobians
 * (jacobian_print.c). Depth and length are bounded, so hostile texts end in an
 * ellipsis instead of an endless formula. */
#ifndef TB_GRAPH_PEN_H
#define TB_GRAPH_PEN_H

#include "graph/graph.h"

enum { TB_PEN_BYTES = 16000, TB_PEN_NAMES = 8, TB_PEN_RUNS = 4 };

/** A value that is written by a name. */
typedef struct tb_pen_name {
    int node, step;
    const char *name;
    int index; /* 0, or the step that a name of the text belongs to */
    bool used;
} tb_pen_name;

/** Factors side by side that are written J_z, in step s J_zs. */
typedef struct tb_pen_run {
    const tb_jx *item[3];
    int n, step;
    char name[16];
    bool used;
} tb_pen_run;

/** What the pens of one Jacobian share. */
typedef struct tb_pen_names {
    tb_pen_name item[TB_PEN_NAMES];
    int n;
    tb_pen_run run[TB_PEN_RUNS];
    int nruns;
    bool *entry_used; /* per step and stream */
    int *count;       /* per node: how often it was written; NULL: not asked */
    size_t *length;   /* per node, in bytes */
    int *step;        /* per node */
} tb_pen_names;

typedef struct tb_pen {
    tb_notation note;
    tb_buf *out;
    const tb_graph *g;
    const int *entries; /* nodes that are this step's streams */
    const char *const *streams;
    int nentries;
    int step, index; /* x or x1, x2, ...: index 0 prints x */
    int depth;
    tb_jac_mode mode;          /* how sublayers are written */
    const bool *silent;        /* SILENT: nodes that are 0 */
    const signed char *degree; /* only what grows most, or NULL */
    size_t start, most;        /* where it started, bytes it may write */
    bool full;                 /* an ellipsis has closed it */
    tb_pen_names *names;
} tb_pen;

/* pen.c: marks */
void tb_pen_put(tb_pen *p, const char *text, const char *latex,
                const char *mathml);
void tb_pen_plus(tb_pen *p);
void tb_pen_minus(tb_pen *p);
void tb_pen_times(tb_pen *p);
void tb_pen_open(tb_pen *p);
void tb_pen_close(tb_pen *p);
void tb_pen_number(tb_pen *p, double v);
/** tb_pen_word - LN, attn, gelu: upright where it has several letters. */
void tb_pen_word(tb_pen *p, const char *name);
/** tb_pen_indexed - x, x1, x2_1: a name with digits or an index below it. */
void tb_pen_indexed(tb_pen *p, const char *name, int index);
/** tb_pen_subscript - J_LN, W_up. */
void tb_pen_subscript(tb_pen *p, const char *letter, const char *name);
/** tb_pen_spent - true past the limits: an ellipsis stands for what follows,
 * one for all once the formula is full. */
bool tb_pen_spent(tb_pen *p);
/** tb_pen_constant - an attribute as the text spells it. */
void tb_pen_constant(tb_pen *p, const tb_attr *attr);
/** tb_pen_expr - an expression; LaTeX and MathML put brackets where it binds
 * looser than `least`. */
void tb_pen_expr(tb_pen *p, const tb_expr *e, int least);
bool tb_pen_is(const tb_attr *a, double v);

/* formula.c */
/** tb_pen_formula - a node as a formula of its step's streams. */
void tb_pen_formula(tb_pen *p, int node, bool brackets);
/* jacobian_terms.c */
void tb_pen_term(tb_pen *p, const tb_jx *x, bool brackets);
/** tb_pen_product - factors first..end - 1 of a product. */
void tb_pen_product(tb_pen *p, const tb_jx *x, int first, int end);

/** tb_pen_weight - w[2], w[2,1]: what a mix multiplies input number i by. */
void tb_pen_weight(tb_pen *p, int mix, int i);
/** tb_pen_define - the same, but never by its own name. */
void tb_pen_define(tb_pen *p, int node);

#endif
