/* SPDX-License-Identifier: MIT */
/* The terms of a Jacobian in each notation. */
#include "graph/pen.h"

static void slope(tb_pen *p, const tb_jx *x)
{
    tb_pen_put(p, "diag(", "\\mathrm{diag}(",
               "<mi>diag</mi><mo stretchy=\"false\">(</mo>");
    if (x->kind == TB_JX_SLOPE) {
        tb_pen_word(p, x->name);
        tb_pen_put(p, "'", "'", "<mo>&#8242;</mo>");
        tb_pen_open(p);
    }
    if (x->inverse)
        tb_pen_put(p, "1/", "1/", "<mn>1</mn><mo>/</mo>");
    tb_pen_formula(p, x->node, x->inverse);
    if (x->kind == TB_JX_SLOPE)
        tb_pen_close(p);
    tb_pen_close(p);
}

/* The run that the factors from items[i] on are, NULL: none. */
static tb_pen_run *run_at(const tb_pen *p, const tb_jx *x, int i)
{
    for (int r = 0; p->names && r < p->names->nruns; r++) {
        tb_pen_run *run = &p->names->run[r];
        int k = 0;
        while (k < run->n && i + k < x->n && x->items[i + k] == run->item[k])
            k++;
        if (k == run->n)
            return run;
    }
    return NULL;
}

/* Factors first..end-1. */
void tb_pen_product(tb_pen *p, const tb_jx *x, int first, int end)
{
    for (int i = first; i < end && !p->full; i++) {
        tb_pen_run *run = run_at(p, x, i);
        if (i > first)
            tb_pen_times(p);
        if (!run) {
            tb_pen_term(p, x->items[i], true);
            continue;
        }
        tb_pen_subscript(p, "J", run->name);
        run->used = true;
        i += run->n - 1;
    }
}

/* (-1) A as a term of a sum is written - A. */
static bool negated(const tb_jx *x)
{
    return x->kind == TB_JX_PROD && x->items[0]->kind == TB_JX_COEF &&
           tb_pen_is(x->items[0]->attr, -1);
}

static void sum_terms(tb_pen *p, const tb_jx *x)
{
    for (int i = 0; i < x->n && !p->full; i++) {
        const tb_jx *item = x->items[i];
        bool flip = negated(item), positive = (x->signs[i] > 0) != flip;
        if (i && positive)
            tb_pen_plus(p);
        else if (i)
            tb_pen_minus(p);
        else if (!positive)
            tb_pen_put(p, "-", "-", "<mo>&#8722;</mo>");
        if (flip)
            tb_pen_product(p, item, 1, item->n);
        else
            tb_pen_term(p, item, x->signs[i] < 0);
    }
}

static void coefficient(tb_pen *p, const tb_jx *x)
{
    if (x->inverse)
        tb_pen_put(p, "(1/", "(1/", "<mo>(</mo><mn>1</mn><mo>/</mo>");
    if (x->kind == TB_JX_COEF)
        tb_pen_constant(p, x->attr);
    else if (p->g->nodes[x->at].op == &tb_op_mix)
        tb_pen_weight(p, x->at, x->input);
    else
        tb_pen_formula(p, x->node, true);
    if (x->inverse)
        tb_pen_close(p);
}

static void term_inner(tb_pen *p, const tb_jx *x, bool brackets)
{
    switch (x->kind) {
    case TB_JX_ZERO:
        tb_pen_number(p, 0);
        break;
    case TB_JX_ONE:
        tb_pen_word(p, "I");
        break;
    case TB_JX_SUM:
        if (brackets)
            tb_pen_open(p);
        sum_terms(p, x);
        if (brackets)
            tb_pen_close(p);
        break;
    case TB_JX_PROD:
        tb_pen_product(p, x, 0, x->n);
        break;
    case TB_JX_SYM:
        tb_pen_subscript(p, "J", x->name);
        if (x->node >= 0) {
            tb_pen_open(p);
            tb_pen_formula(p, x->node, false);
            tb_pen_close(p);
        }
        break;
    case TB_JX_SLOPE:
    case TB_JX_DIAG:
        slope(p, x);
        break;
    case TB_JX_COEF:
    case TB_JX_SCALAR:
        coefficient(p, x);
        break;
    case TB_JX_WEIGHT:
        tb_pen_subscript(p, "W", x->name);
        break;
    case TB_JX_TOKENS:
        tb_pen_put(p, "diag(", "\\mathrm{diag}(",
                   "<mi>diag</mi><mo stretchy=\"false\">(</mo>");
        tb_pen_weight(p, x->at, x->input);
        tb_pen_close(p);
        break;
    }
}

void tb_pen_term(tb_pen *p, const tb_jx *x, bool brackets)
{
    if (tb_pen_spent(p))
        return;
    p->depth++;
    term_inner(p, x, brackets);
    p->depth--;
}
