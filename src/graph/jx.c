/* SPDX-License-Identifier: MIT */
/* The algebra of Jacobian terms. Terms are shared, so two factors are the same
 * one exactly when their addresses are. */
#include "graph/jx.h"

/* Longer sums and products nest: flattening them again and again is what
 * makes a long text slow. */
enum { FLAT_MAX = 64, ROOM = 2 * FLAT_MAX + 1 };

const tb_jx tb_jx_zero = {.kind = TB_JX_ZERO, .node = -1};
const tb_jx tb_jx_one = {.kind = TB_JX_ONE, .node = -1};

/** The items of a sum or a product before it is made. */
typedef struct list {
    const tb_jx *items[ROOM];
    signed char signs[ROOM];
    int n;
} list;

static void push(list *l, const tb_jx *x, int sign)
{
    l->items[l->n] = x;
    l->signs[l->n++] = (signed char)sign;
}

/* x, or its items where it is of this kind and not too long. */
static void spread(list *l, const tb_jx *x, tb_jx_kind kind)
{
    bool flat = x->kind == kind && x->n <= FLAT_MAX;
    for (int i = 0; i < (flat ? x->n : 1); i++)
        push(l, flat ? x->items[i] : x, flat ? x->signs[i] : 1);
}

static const tb_jx *made(tb_arena *a, tb_jx_kind kind, const list *l)
{
    size_t n = (size_t)l->n;
    tb_jx *x = TB_NEW(a, tb_jx);
    const tb_jx **items = tb_arena_alloc(a, n * sizeof *items);
    signed char *signs = tb_arena_alloc(a, n);
    if (!x || !items || !signs)
        return NULL;
    memcpy(items, l->items, n * sizeof *items);
    memcpy(signs, l->signs, n);
    *x = (tb_jx){.kind = kind, .node = -1, .at = -1};
    x->n = l->n;
    x->items = items;
    x->signs = signs;
    return x;
}

bool tb_jx_is_number(const tb_jx *x)
{
    return x->kind == TB_JX_COEF || x->kind == TB_JX_SCALAR;
}

/* --- products ------------------------------------------------------------- */

/* Numbers commute: they go to the front. A number alone is written c I. */
static void arrange(const list *all, list *out)
{
    bool matrices = false;
    for (int i = 0; i < all->n; i++) {
        const tb_jx *x = all->items[i];
        matrices = matrices || (!tb_jx_is_number(x) && x->kind != TB_JX_ONE);
        if (tb_jx_is_number(x))
            push(out, x, 1);
    }
    for (int i = 0; i < all->n && matrices; i++)
        if (!tb_jx_is_number(all->items[i]) && all->items[i]->kind != TB_JX_ONE)
            push(out, all->items[i], 1);
    if (!matrices)
        push(out, &tb_jx_one, 1);
}

const tb_jx *tb_jx_prod(tb_arena *a, const tb_jx *l, const tb_jx *r)
{
    list all = {.n = 0}, out = {.n = 0};
    if (!l || !r)
        return NULL;
    if (l->kind == TB_JX_ZERO || r->kind == TB_JX_ZERO)
        return &tb_jx_zero;
    if (l->kind == TB_JX_ONE)
        return r;
    if (r->kind == TB_JX_ONE && !tb_jx_is_number(l))
        return l;
    spread(&all, l, TB_JX_PROD);
    spread(&all, r, TB_JX_PROD);
    arrange(&all, &out);
    return made(a, TB_JX_PROD, &out);
}

static const tb_jx *minus_one(tb_arena *a)
{
    static const tb_attr minus = {NULL, -1, NULL};
    tb_jx *x = TB_NEW(a, tb_jx);
    if (x)
        *x = (tb_jx){.kind = TB_JX_COEF, .node = -1, .at = -1, .attr = &minus};
    return x;
}

/* --- what two terms end in ------------------------------------------------ */

static int length(const tb_jx *x)
{
    return x->kind == TB_JX_PROD ? x->n : 1;
}

static const tb_jx *factor(const tb_jx *x, int i)
{
    return x->kind == TB_JX_PROD ? x->items[i] : x;
}

/* How many last factors they share; 0 where they are the same term. */
static int shared(const tb_jx *l, const tb_jx *r)
{
    int nl = length(l), nr = length(r), n = 0;
    while (n < nl && n < nr) {
        const tb_jx *f = factor(l, nl - 1 - n);
        if (f != factor(r, nr - 1 - n) || f->kind == TB_JX_ONE ||
            tb_jx_is_number(f))
            break;
        n++;
    }
    return n == nl && n == nr ? 0 : n;
}

/* Factors first..first + n - 1 of a term; numbers alone get an I. */
static const tb_jx *part(tb_arena *a, const tb_jx *x, int first, int n)
{
    list l = {.n = 0};
    if (n == 0)
        return &tb_jx_one;
    if (n == 1 && !tb_jx_is_number(factor(x, first)))
        return factor(x, first);
    for (int i = first; i < first + n; i++)
        push(&l, factor(x, i), 1);
    if (tb_jx_is_number(l.items[n - 1]))
        push(&l, &tb_jx_one, 1);
    return made(a, TB_JX_PROD, &l);
}

/* (what l has before + what r has before) times what both end in. */
static const tb_jx *joined(tb_arena *a, const tb_jx *l, const tb_jx *r,
                           int sign, int n)
{
    const tb_jx *end = part(a, l, length(l) - n, n);
    const tb_jx *left = part(a, l, 0, length(l) - n);
    const tb_jx *right = part(a, r, 0, length(r) - n);
    return tb_jx_prod(a, tb_jx_sum(a, left, right, sign), end);
}

/* --- the same term again -------------------------------------------------- */

/* Value of a constant that is a number in the text. */
static bool plain(const tb_jx *x, double *v)
{
    if (x->kind != TB_JX_COEF || x->inverse)
        return false;
    if (x->attr->expr && x->attr->expr->kind != TB_EXPR_NUMBER)
        return false;
    *v = x->attr->expr ? x->attr->expr->number : x->attr->value;
    return true;
}

/* How many plain numbers a term starts with: none or one; its value. */
static int plain_part(const tb_jx *x, double *v)
{
    *v = 1;
    return x->kind == TB_JX_PROD && plain(x->items[0], v);
}

/* Terms that differ in a plain number at most. */
static bool alike(const tb_jx *l, const tb_jx *r, double *vl, double *vr)
{
    int i = plain_part(l, vl), k = plain_part(r, vr);
    if (length(l) - i != length(r) - k)
        return false;
    for (; i < length(l); i++, k++)
        if (factor(l, i) != factor(r, k))
            return false;
    return true;
}

static const tb_jx *times(tb_arena *a, double v, const tb_jx *x)
{
    tb_jx *c = TB_NEW(a, tb_jx);
    tb_attr *attr = TB_NEW(a, tb_attr);
    if (!c || !attr)
        return NULL;
    *attr = (tb_attr){NULL, v, NULL};
    *c = (tb_jx){.kind = TB_JX_COEF, .node = -1, .at = -1, .attr = attr};
    return v == 1 ? x : tb_jx_prod(a, c, x);
}

/* The first item that is x but for a number, -1: none. */
static int again(const list *l, const tb_jx *x)
{
    double vl, vx;
    for (int i = 0; i < l->n; i++)
        if (alike(l->items[i], x, &vl, &vx))
            return i;
    return -1;
}

/* l->items[i] + sign x, where they are alike. */
static bool add_again(tb_arena *a, list *l, int i, const tb_jx *x, int sign)
{
    double vl, vx;
    alike(l->items[i], x, &vl, &vx);
    int start = plain_part(x, &vx);
    double v = l->signs[i] * vl + sign * vx;
    x = part(a, x, start, length(x) - start);
    l->signs[i] = v < 0 ? -1 : 1;
    l->items[i] = v == 0 ? &tb_jx_zero : times(a, v < 0 ? -v : v, x);
    return l->items[i] != NULL;
}

/* The item that shares most with x, and how much; -1: none does. */
static int closest(const list *l, const tb_jx *x, int *most)
{
    int best = -1;
    *most = 0;
    for (int i = 0; i < l->n; i++) {
        int n = shared(l->items[i], x);
        if (n > *most) {
            *most = n;
            best = i;
        }
    }
    return best;
}

/* One more term; false if memory ran out. */
static bool add_term(tb_arena *a, list *l, const tb_jx *x, int sign)
{
    int n, i = again(l, x);
    if (i >= 0)
        return add_again(a, l, i, x, sign);
    i = closest(l, x, &n);
    if (i < 0)
        push(l, x, sign);
    else
        l->items[i] = joined(a, l->items[i], x, sign * l->signs[i], n);
    return i < 0 || l->items[i];
}

static void drop_zeros(list *l)
{
    int n = 0;
    for (int i = 0; i < l->n; i++)
        if (l->items[i]->kind != TB_JX_ZERO) {
            l->items[n] = l->items[i];
            l->signs[n++] = l->signs[i];
        }
    l->n = n;
}

const tb_jx *tb_jx_sum(tb_arena *a, const tb_jx *l, const tb_jx *r, int sign)
{
    list all = {.n = 0}, more = {.n = 0};
    int n;
    if (!l || !r)
        return NULL;
    if (r->kind == TB_JX_ZERO)
        return l;
    if (l->kind == TB_JX_ZERO)
        return sign > 0 ? r : tb_jx_prod(a, minus_one(a), r);
    if (shared(l, r)) /* one of them may be a sum, and the other's end */
        return joined(a, l, r, sign, shared(l, r));
    spread(&all, l, TB_JX_SUM);
    if (closest(&all, r, &n) >= 0)
        push(&more, r, 1);
    else
        spread(&more, r, TB_JX_SUM);
    for (int i = 0; i < more.n; i++)
        if (!add_term(a, &all, more.items[i], sign * more.signs[i]))
            return NULL;
    drop_zeros(&all);
    if (all.n > 1)
        return made(a, TB_JX_SUM, &all);
    if (all.n == 0)
        return &tb_jx_zero;
    return all.signs[0] > 0 ? all.items[0]
                            : tb_jx_prod(a, minus_one(a), all.items[0]);
}
