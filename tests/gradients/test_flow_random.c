/* SPDX-License-Identifier: MIT */
/* Whole models of random blocks: the gradient of the loss is the derivative of
 * the loss, that of a batch the mean of its halves', and the rows of flow say
 * of lane, branch and weights what they are defined to be. */
#include "gradients/random_block.h"
#include "flow/flow_model.h"
#include "tb_test.h"

#include <stdio.h>

enum { BLOCKS = 150, B = 4, TIME = 3, SOURCE = 2, VOCAB = 7, LEVELS = 5 };

/** A model of a random block, and a batch of it. */
typedef struct rig {
    tb_test *T;
    random_drawn d;
    tb_block *block;
    tb_model *m;
    tb_rng rng;
    int32_t ids[B * (2 * TIME + SOURCE)];
    double *grads, *other, *along, *keep;
} rig;

/** The largest errors, and how many of each. */
typedef struct worst {
    double loss, halves, rows;
    size_t models, differences, parted, flows, wild;
} worst;

#define FAIL(r, ...) tb_test_fail((r)->T, __FILE__, __LINE__, __VA_ARGS__)

static tb_settings settings_of(const rig *r)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = 3;
    s.width = r->d.width;
    s.heads = r->d.heads;
    s.stack = r->d.stack;
    s.vocab = VOCAB;
    s.context = TIME;
    return s;
}

/* Weights away from their starts, where so much is 0 or 1. */
static void shake(rig *r)
{
    double *w = r->m->params;
    for (size_t v = 0; v < r->m->nviews; v++)
        for (size_t i = 0; i < r->m->views[v].count; i++)
            if (r->m->views[v].role != TB_ROLE_BUFFER)
                w[r->m->views[v].offset + i] +=
                    0.1 * tb_rng_normal(r->rng, r->m->views[v].offset + i);
}

static tb_status rig_open(rig *r, tb_test *T, uint64_t seed, unsigned without)
{
    *r = (rig){.T = T, .rng = tb_rng_make(seed, "model")};
    random_block(T->ctx, seed, without, &r->d);
    tb_settings s = settings_of(r);
    TB_TRY(tb_block_parse(T->ctx, NULL, tb_buf_str(&r->d.text), r->d.text.len,
                          TB_PARSE_BLOCK, &r->block));
    TB_TRY(tb_model_create(T->ctx, r->block, &s, TB_F64, &r->m));
    TB_TRY(tb_model_init(r->m, seed));
    shake(r);
    for (size_t i = 0; i < TB_LEN(r->ids); i++)
        r->ids[i] = (int32_t)tb_rng_below(r->rng, i, VOCAB);
    double **all[] = {&r->grads, &r->other, &r->along, &r->keep};
    for (size_t i = 0; i < TB_LEN(all); i++) {
        *all[i] = tb_alloc(T->ctx, r->m->nelements, sizeof(double));
        if (!*all[i])
            return TB_ERR_MEMORY;
    }
    return TB_OK;
}

static void rig_close(rig *r)
{
    tb_ctx *ctx = r->T->ctx;
    tb_free(ctx, r->grads);
    tb_free(ctx, r->other);
    tb_free(ctx, r->along);
    tb_free(ctx, r->keep);
    tb_model_destroy(r->m);
    if (r->block)
        tb_block_destroy(ctx, r->block);
    tb_buf_clear(&r->d.text);
}

/* Sequences [from, from + n) of the batch. */
static tb_batch batch_of(const rig *r, size_t from)
{
    const int32_t *x = r->ids;
    return (tb_batch){.tokens = x + from * TIME,
                      .targets = x + (B + from) * TIME,
                      .source = r->d.stack == TB_STACKS_BOTH
                                    ? x + 2 * B * TIME + from * SOURCE
                                    : NULL,
                      .seed = 3,
                      .step = 1};
}

static bool learned(const tb_view *v)
{
    return v->role != TB_ROLE_BUFFER;
}

/* --- the loss ------------------------------------------------------------- */

static tb_status loss_at(rig *r, double h, double *loss)
{
    const tb_batch b = batch_of(r, 0);
    double *w = r->m->params;
    for (size_t i = 0; i < r->m->nelements; i++)
        w[i] = r->keep[i] + h * r->along[i];
    return tb_model_forward(r->m, &b, loss);
}

/* By steps h, h/4, ... (Ridders 1982); *error: how far neighbours lie apart. */
static tb_status slope(rig *r, double h, double *out, double *error)
{
    double t[LEVELS] = {0};
    *error = __builtin_inf();
    for (int row = 0; row < LEVELS; row++, h /= 4) {
        double up, down, before = t[0], factor = 1;
        TB_TRY(loss_at(r, h, &up));
        TB_TRY(loss_at(r, -h, &down));
        t[0] = (up - down) / (2 * h);
        for (int m = 1; m <= row; m++) {
            double next = t[m], e;
            factor *= 16;
            t[m] = (factor * t[m - 1] - before) / (factor - 1);
            e = tb_fabs(t[m] - t[m - 1]) + tb_fabs(t[m] - before);
            before = next;
            if (e < *error) {
                *error = e;
                *out = t[m];
            }
        }
    }
    return TB_OK;
}

static double along_of(const rig *r, double *size)
{
    double sum = 0;
    for (size_t v = 0; v < r->m->nviews; v++)
        for (size_t i = 0; learned(&r->m->views[v]) && i < r->m->views[v].count;
             i++) {
            size_t at = r->m->views[v].offset + i;
            sum += r->grads[at] * r->along[at];
            *size += tb_fabs(r->grads[at] * r->along[at]);
        }
    return sum;
}

/* <gradient, direction> against the difference along it; kinks want smaller
 * steps. A stopped value moves in a difference. */
static void check_loss(rig *r, worst *w)
{
    double got, want = 0, error = 1, size = 1, most = 1;
    tb_status s = TB_OK;
    bool near = false;
    for (size_t v = 0; v < r->m->nviews; v++)
        for (size_t i = 0; i < r->m->views[v].count; i++) {
            size_t at = r->m->views[v].offset + i;
            r->along[at] =
                learned(&r->m->views[v]) ? tb_rng_normal(r->rng, at + 1000) : 0;
        }
    got = along_of(r, &size);
    memcpy(r->keep, r->m->params, r->m->nelements * sizeof *r->keep);
    for (double h = 1e-3 / size; s == TB_OK && !near && h > 1e-8 / size;
         h /= 30) {
        s = slope(r, h, &want, &error);
        most = tb_fabs(got - want);
        near = most <= 20 * error + 1e-14 / h + 1e-7 * size;
    }
    memcpy(r->m->params, r->keep, r->m->nelements * sizeof *r->keep);
    w->differences += error <= 1e-4 * size;
    worse(&w->loss, most / size);
    if (s != TB_OK || !near)
        FAIL(r, "gradient %.12g, difference %.12g (%g) %s", got, want, error,
             s == TB_OK ? "" : tb_error(r->T->ctx));
}

/* --- parts of a batch ----------------------------------------------------- */

static double gradients_apart(const rig *r, double by, double *size)
{
    double most = 0;
    for (size_t v = 0; v < r->m->nviews; v++)
        for (size_t i = 0; learned(&r->m->views[v]) && i < r->m->views[v].count;
             i++) {
            size_t at = r->m->views[v].offset + i;
            worse(&most, tb_fabs(r->grads[at] - by * r->other[at]));
            worse(size, tb_fabs(r->grads[at]));
        }
    return most;
}

/* Of two halves, one after the other: as many targets in each. */
static void check_halves(rig *r, worst *w)
{
    double size = 1, loss;
    memset(r->other, 0, r->m->nelements * sizeof *r->other);
    tb_status s = tb_model_bind_source(r->m, B / 2, TIME, SOURCE, TB_PASS_BWD);
    for (size_t half = 0; s == TB_OK && half < 2; half++) {
        const tb_batch b = batch_of(r, half * B / 2);
        s = tb_model_forward(r->m, &b, &loss);
        if (s == TB_OK)
            s = tb_model_backward(r->m, &b, r->other);
    }
    double most = gradients_apart(r, 0.5, &size);
    w->parted++;
    worse(&w->halves, most / size);
    if (s != TB_OK || !(most <= 1e-10 * size))
        FAIL(r, "halves: %g apart, of %g %s", most, size,
             s == TB_OK ? "" : tb_error(r->T->ctx));
}

/* A step that writes gradients over values has the same bits. */
static void check_once(rig *r)
{
    double size = 1, loss;
    const tb_batch b = batch_of(r, 0);
    memset(r->other, 0xff, r->m->nelements * sizeof *r->other);
    tb_status s =
        tb_model_bind_source(r->m, B, TIME, SOURCE, TB_PASS_BWD | TB_PASS_ONCE);
    if (s == TB_OK)
        s = tb_model_forward(r->m, &b, &loss);
    if (s == TB_OK)
        s = tb_model_gradients(r->m, &b, r->other);
    double most = gradients_apart(r, 1, &size);
    if (s != TB_OK || !(most == 0))
        FAIL(r, "over values: %g apart, of %g %s", most, size,
             s == TB_OK ? "" : tb_error(r->T->ctx));
}

/* --- flow ----------------------------------------------------------------- */

static void check_split(rig *r, worst *w, double total, double lane,
                        double branch, double cos)
{
    double most = total > lane ? total : lane;
    most = branch > most ? branch : most;
    double t = total / most, l = lane / most, b = branch / most;
    double error =
        most > 0 ? tb_fabs(l * l + b * b + 2 * l * b * cos - t * t) : 0;
    worse(&w->rows, error);
    if (!(error <= 1e-10 && cos >= -1 - 1e-12 && cos <= 1 + 1e-12))
        FAIL(r, "total %g, lane %g, branch %g, cos %g", total, lane, branch,
             cos);
}

/* Lane and branch make the total, from the top and inside each sublayer. */
static void check_rows(rig *r, const tb_flow *f, worst *w)
{
    for (size_t i = 0; i < f->nstacks; i++) {
        const tb_flow_stack *s = &f->stacks[i];
        for (size_t k = s->first; k < s->first + s->nrows; k++) {
            const tb_flow_row *row = &f->rows[k];
            check_split(r, w, row->total, row->lane, row->branch, row->cos);
            if (k > s->first && !f->lists && row->total > 0)
                check_split(r, w, f->rows[k - 1].total / row->total,
                            row->local_lane, row->local_branch, row->local_cos);
        }
    }
}

static void check_weights(rig *r, const tb_flow *f)
{
    const tb_kern *k = tb_kern_get(r->T->ctx, TB_F64);
    double size = 1;
    for (size_t v = 0; v < f->nweights; v++)
        worse(&size, f->weights[v].grad_norm);
    for (size_t v = 0; v < f->nweights; v++) {
        const tb_view *view = tb_model_view(r->m, f->weights[v].name);
        double want = k->norm2(view->count, r->grads + view->offset);
        if (!(tb_fabs(f->weights[v].grad_norm - want) <= 1e-10 * size))
            FAIL(r, "flow: %s %g, not %g", view->name, f->weights[v].grad_norm,
                 want);
    }
}

/* Of one sequence; where there are two stacks, flow gives both the same. */
static void check_flow(rig *r, worst *w)
{
    int32_t ids[TIME + 1];
    tb_flow *f = NULL;
    tb_flow_spec spec = {
        .settings = settings_of(r), .seed = 3, .dtype = TB_F64, .ids = ids};
    const tb_batch b = {.tokens = ids,
                        .targets = ids + 1,
                        .seed = 3,
                        .source = r->d.stack == TB_STACKS_BOTH ? ids : NULL};
    double loss;
    for (int i = 0; i <= TIME; i++)
        ids[i] = r->ids[i];
    memset(r->grads, 0, r->m->nelements * sizeof *r->grads);
    tb_status s = tb_flow_of_model(r->m, &spec, &f);
    if (s == TB_OK)
        s = tb_model_forward(r->m, &b, &loss);
    if (s == TB_OK)
        s = tb_model_backward(r->m, &b, r->grads);
    if (s == TB_OK) {
        check_rows(r, f, w);
        check_weights(r, f);
        w->flows++;
    } else {
        FAIL(r, "flow: %s", tb_error(r->T->ctx));
    }
    tb_flow_free(r->T->ctx, f);
}

/* --- one model ------------------------------------------------------------ */

/* A product of products: no digits are left. */
static bool is_wild(const rig *r)
{
    double size = 0, most = 0;
    gradients_apart(r, 0, &size);
    for (size_t p = 0; p < tb_model_tail(r->m); p++) {
        const double *x = tb_model_stream(r->m, p);
        for (size_t i = 0; x && i < B * SOURCE * r->d.width; i++)
            worse(&most, tb_fabs(x[i]));
    }
    return !(size <= 1e9 && most <= 1e5);
}

static void check_model(rig *r, unsigned without, worst *w)
{
    const tb_batch b = batch_of(r, 0);
    double loss;
    tb_status s = tb_model_bind_source(r->m, B, TIME, SOURCE, TB_PASS_BWD);
    if (s == TB_OK)
        s = tb_model_forward(r->m, &b, &loss);
    if (s == TB_OK)
        s = tb_model_backward(r->m, &b, r->grads);
    if (s != TB_OK && s != TB_ERR_INPUT) {
        FAIL(r, "%s", tb_error(r->T->ctx));
        return;
    }
    w->models++;
    if (s != TB_OK || is_wild(r)) {
        w->wild++;
        return;
    }
    if (without & RANDOM_STOPS)
        check_loss(r, w);
    check_once(r);
    if ((without & RANDOM_DRAWS) && (without & RANDOM_TOKENS))
        check_halves(r, w);
    check_flow(r, w);
}

static void check_seed(tb_test *T, uint64_t seed, worst *w)
{
    static const unsigned sets[] = {RANDOM_STOPS, RANDOM_DRAWS | RANDOM_TOKENS,
                                    RANDOM_STOPS | RANDOM_DRAWS | RANDOM_TOKENS,
                                    0};
    unsigned without = sets[seed % TB_LEN(sets)];
    int failed = T->failed;
    rig r;
    if (rig_open(&r, T, seed, without) == TB_OK)
        check_model(&r, without, w);
    else
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    if (T->failed > failed)
        printf("seed %llu, width %zu, stack %d:\n%s\n",
               (unsigned long long)seed, r.d.width, r.d.stack,
               tb_buf_str(&r.d.text));
    rig_close(&r);
}

TB_TEST(random_models)
{
    worst w = {0};
    const random_seeds all = random_asked(BLOCKS);
    tb_ctx_threads(T->ctx, 1);  /* thousands of passes too small to share */
    tb_ctx_exact(T->ctx, true); /* products too have the same bits */
    for (uint64_t seed = all.from; seed < all.to && T->failed < 10; seed++)
        check_seed(T, seed, &w);
    if (all.enough && (w.wild * 10 > w.models || w.differences * 3 < w.models))
        tb_test_fail(T, __FILE__, __LINE__,
                     "%zu wild and %zu differences of %zu", w.wild,
                     w.differences, w.models);
    printf("%zu models (%zu wild), %zu differences, %zu in halves, %zu flows; "
           "largest errors: loss %.2g, halves %.2g, rows %.2g\n",
           w.models, w.wild, w.differences, w.parted, w.flows, w.loss, w.halves,
           w.rows);
}
