/* SPDX-License-Identifier: MIT */
/* Measure the gradient, decide, then update: nothing is written before every
 * gradient is known to be finite. */
#include "train/optimizer.h"

#include <float.h>

#include "base/number.h"
#include "threads/threads.h"

/* A piece is what one thread takes at a time; a block is what stays in the
 * first-level cache, five arrays of it, while it is copied, updated and
 * measured. */
enum { PIECE = 32768, BLOCK = 512 };

bool tb_role_decayed(tb_role r)
{
    return r == TB_ROLE_MATRIX;
}

/* --- pieces -----------------------------------------------------------------
 */

/* Running statistics are not learned. */
static size_t learned(const tb_view *v)
{
    return v->role == TB_ROLE_BUFFER ? 0 : v->count;
}

static size_t pieces_of(const tb_view *v)
{
    return (learned(v) + PIECE - 1) / PIECE;
}

static tb_status cut(tb_optimizer *o)
{
    size_t n = 0, i = 0;
    for (size_t v = 0; v < o->nviews; v++)
        n += pieces_of(&o->views[v]);
    o->pieces = tb_alloc(o->ctx, n, sizeof *o->pieces);
    if (!o->pieces)
        return TB_ERR_MEMORY;
    for (size_t v = 0; v < o->nviews; v++)
        for (size_t at = 0; at < learned(&o->views[v]); at += PIECE) {
            size_t left = o->views[v].count - at;
            o->pieces[i++] = (tb_piece){.view = v,
                                        .at = o->views[v].offset + at,
                                        .n = left < PIECE ? left : PIECE};
        }
    o->npieces = n;
    return TB_OK;
}

static tb_status buffers(tb_optimizer *o)
{
    size_t size = tb_dtype_size(o->k->dtype);
    o->grads = tb_alloc(o->ctx, o->nelements, size);
    o->m = o->grads ? tb_alloc(o->ctx, o->nelements, size) : NULL;
    o->v = o->m ? tb_alloc(o->ctx, o->nelements, size) : NULL;
    return o->v ? cut(o) : TB_ERR_MEMORY;
}

tb_status tb_optimizer_create(tb_ctx *ctx, tb_dtype dtype, const tb_view *views,
                              size_t nviews, size_t nelements, void *params,
                              tb_optimizer **out)
{
    *out = NULL;
    tb_optimizer *o = tb_alloc(ctx, 1, sizeof *o);
    if (!o)
        return TB_ERR_MEMORY;
    *o = (tb_optimizer){.ctx = ctx,
                        .k = tb_kern_get(ctx, dtype),
                        .views = views,
                        .nviews = nviews,
                        .nelements = nelements,
                        .params = params};
    tb_status s = buffers(o);
    if (s == TB_OK)
        *out = o;
    else
        tb_optimizer_destroy(o);
    return s;
}

void tb_optimizer_destroy(tb_optimizer *o)
{
    if (!o)
        return;
    tb_free(o->ctx, o->grads);
    tb_free(o->ctx, o->m);
    tb_free(o->ctx, o->v);
    tb_free(o->ctx, o->pieces);
    tb_free(o->ctx, o);
}

static void *at(const tb_optimizer *o, void *flat, size_t i)
{
    return (char *)flat + i * tb_dtype_size(o->k->dtype);
}

/* --- lengths ----------------------------------------------------------------
 */

/* A sum of squares scaled by the largest length so far (LAPACK's dlassq): no
 * square of a length can overflow. */
typedef struct length {
    double scale, sum;
} length;

static void length_add(length *l, double x)
{
    if (x == 0)
        return;
    if (x > l->scale) {
        double r = l->scale / x;
        l->sum = l->sum * r * r + 1;
        l->scale = x;
        return;
    }
    double r = x / l->scale; /* nan stays nan */
    l->sum += r * r;
}

static double length_of(length l)
{
    return l.sum == 0 ? 0 : l.scale * tb_sqrt(l.sum);
}

/* --- gradient ---------------------------------------------------------------
 */

static void measure_piece(void *arg, size_t i)
{
    tb_optimizer *o = arg;
    tb_piece *p = &o->pieces[i];
    p->grad = o->k->norm2(p->n, at(o, o->grads, p->at));
}

/* The first view whose gradient has a nan or an infinity; if none has, the
 * length itself is beyond a double: the view with the longest piece. */
static const tb_view *bad_gradient(const tb_optimizer *o)
{
    size_t longest = 0;
    for (size_t i = 0; i < o->npieces; i++) {
        const tb_piece *p = &o->pieces[i];
        if (o->k->nonfinite(p->n, at(o, o->grads, p->at)))
            return &o->views[p->view];
        if (p->grad > o->pieces[longest].grad)
            longest = i;
    }
    return &o->views[o->pieces[longest].view];
}

static bool squares_overflow(const tb_optimizer *o, const tb_piece *p,
                             double factor)
{
    bool wide = o->k->dtype == TB_F64;
    double limit = wide ? tb_sqrt(DBL_MAX) : tb_sqrt((double)FLT_MAX);
    if (p->grad * factor < limit)
        return false; /* no element is longer than the piece */
    for (size_t i = 0; i < p->n; i++) {
        const void *g = at(o, o->grads, p->at + i);
        double x = wide ? *(const double *)g : (double)*(const float *)g;
        if (tb_fabs(x) * factor >= limit)
            return true;
    }
    return false;
}

/* A second moment that became infinite would freeze its weight for ever. */
static const tb_view *too_large(const tb_optimizer *o, double factor)
{
    for (size_t i = 0; i < o->npieces; i++)
        if (squares_overflow(o, &o->pieces[i], factor))
            return &o->views[o->pieces[i].view];
    return NULL;
}

static double gradient_norm(const tb_optimizer *o)
{
    length l = {0, 0};
    for (size_t i = 0; i < o->npieces; i++)
        length_add(&l, o->pieces[i].grad);
    return length_of(l);
}

static void clip(const tb_adam *p, tb_update *u)
{
    u->factor = 1;
    if (p->clip > 0 && p->clip / (u->grad_norm + 1e-6) < 1)
        u->factor = p->clip / (u->grad_norm + 1e-6);
    u->clipped = u->factor < 1;
    u->grad_norm_after = u->grad_norm * u->factor;
}

/* --- update -----------------------------------------------------------------
 */

static void update_block(const tb_optimizer *o, const tb_k_adamw *a, size_t i,
                         length *update, length *weight)
{
    _Alignas(64) double old[BLOCK];
    size_t bytes = a->n * tb_dtype_size(o->k->dtype);
    void *w = at(o, o->params, i);
    const void *g = at(o, o->grads, i);
    memcpy(old, w, bytes);
    o->k->adamw(a, w, g, at(o, o->m, i), at(o, o->v, i));
    o->k->sub(a->n, w, old, old);
    length_add(update, o->k->norm2(a->n, old));
    length_add(weight, o->k->norm2(a->n, w));
}

static void update_piece(void *arg, size_t i)
{
    tb_optimizer *o = arg;
    tb_piece *p = &o->pieces[i];
    tb_k_adamw a = o->adamw;
    length update = {0, 0}, weight = {0, 0};
    a.decay = tb_role_decayed(o->views[p->view].role) ? o->decay : 0;
    for (size_t j = 0; j < p->n; j += BLOCK) {
        a.n = p->n - j < BLOCK ? p->n - j : BLOCK;
        update_block(o, &a, p->at + j, &update, &weight);
    }
    p->update = length_of(update);
    p->weight = length_of(weight);
}

static tb_k_adamw constants(const tb_adam *p, size_t t, double lr,
                            double factor)
{
    return (tb_k_adamw){.lr = lr,
                        .beta1 = p->beta1,
                        .beta2 = p->beta2,
                        .eps = p->eps,
                        .bias1 = 1 - tb_pow(p->beta1, (double)t),
                        .bias2 = 1 - tb_pow(p->beta2, (double)t),
                        .grad_scale = factor};
}

/* --- report -----------------------------------------------------------------
 */

typedef struct group {
    size_t tensors, elements;
    length grad, update, weight;
} group;

static void gather(const tb_optimizer *o, group *groups)
{
    for (size_t i = 0; i < o->nviews; i++) {
        if (!learned(&o->views[i]))
            continue;
        group *g = &groups[o->views[i].role];
        g->tensors++;
        g->elements += o->views[i].count;
    }
    for (size_t i = 0; i < o->npieces; i++) {
        const tb_piece *p = &o->pieces[i];
        group *g = &groups[o->views[p->view].role];
        length_add(&g->grad, p->grad);
        length_add(&g->update, p->update);
        length_add(&g->weight, p->weight);
    }
}

void tb_optimizer_report(const tb_optimizer *o, tb_update *u)
{
    group groups[TB_ROLES] = {0};
    length update = {0, 0}, weight = {0, 0};
    gather(o, groups);
    u->ngroups = 0;
    for (size_t r = 0; r < TB_ROLES; r++) {
        const group *g = &groups[r];
        if (!g->tensors)
            continue;
        tb_train_group *t = &u->groups[u->ngroups++];
        *t = (tb_train_group){tb_role_name((tb_role)r),
                              tb_role_decayed((tb_role)r),
                              g->tensors,
                              g->elements,
                              length_of(g->grad),
                              length_of(g->update),
                              length_of(g->weight)};
        length_add(&update, t->update_norm);
        length_add(&weight, t->weight_norm);
    }
    u->update_norm = length_of(update);
    u->weight_norm = length_of(weight);
}

/* Views of one layer stand side by side; "encoder." and "decoder." keep the
 * layers of two stacks apart. */
static bool same_layer(const tb_view *a, const tb_view *b)
{
    return a->layer == b->layer && (a->layer == 0 || a->name[0] == b->name[0]);
}

/* The longest gradient of one tensor is the row's. */
static void layer_add(tb_train_layer *row, const tb_view *v, double grad)
{
    if (grad <= row->grad_norm)
        return;
    row->weight = v->name;
    row->grad_norm = grad;
}

size_t tb_optimizer_layers(const tb_optimizer *o, tb_train_layer *rows)
{
    size_t n = 0;
    const tb_view *before = NULL;
    length update = {0, 0}, weight = {0, 0};
    for (size_t i = 0; i < o->npieces;) {
        const tb_view *v = &o->views[o->pieces[i].view];
        length grad = {0, 0};
        if (!before || !same_layer(before, v)) {
            rows[n++] = (tb_train_layer){v->layer, v->name, -1, 0};
            update = weight = (length){0, 0};
        }
        for (; i < o->npieces && &o->views[o->pieces[i].view] == v; i++) {
            length_add(&grad, o->pieces[i].grad);
            length_add(&update, o->pieces[i].update);
            length_add(&weight, o->pieces[i].weight);
        }
        before = v;
        layer_add(&rows[n - 1], v, length_of(grad));
        rows[n - 1].update_ratio = length_of(update) / length_of(weight);
    }
    return n;
}

static const tb_view *bad_weight(const tb_optimizer *o)
{
    for (size_t i = 0; i < o->npieces; i++)
        if (!tb_isfinite(o->pieces[i].weight))
            return &o->views[o->pieces[i].view];
    return NULL;
}

tb_status tb_optimizer_step(tb_optimizer *o, const tb_adam *p, size_t t,
                            double lr, tb_update *out)
{
    *out = (tb_update){0};
    tb_parallel(o->ctx, o->npieces, measure_piece, o);
    out->grad_norm = gradient_norm(o);
    clip(p, out);
    out->bad = tb_isfinite(out->grad_norm) ? too_large(o, out->factor)
                                           : bad_gradient(o);
    if (out->bad)
        return TB_FAIL(o->ctx, TB_ERR_NONFINITE,
                       "gradient of %s: not finite, or its square is not",
                       out->bad->name);
    o->adamw = constants(p, t, lr, out->factor);
    o->decay = p->decay;
    tb_parallel(o->ctx, o->npieces, update_piece, o);
    tb_optimizer_report(o, out);
    if (tb_isfinite(out->weight_norm))
        return TB_OK;
    out->bad = bad_weight(o);
    return TB_FAIL(o->ctx, TB_ERR_NONFINITE, "%s: not finite after the update",
                   out->bad ? out->bad->name : "weights");
}
