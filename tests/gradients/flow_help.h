/* SPDX-License-Identifier: MIT */
/* For tests of flow: small models, what was measured of them, and a Jacobian
 * by differences. */
#ifndef TB_TESTS_FLOW_HELP_H
#define TB_TESTS_FLOW_HELP_H

#include "flow/flow_model.h"
#include "tb_test.h"

enum { WIDTH = 16, HEADS = 2, TOKENS = 6, SEED = 3 };

static inline tb_flow_spec tiny_spec(size_t depth, tb_cotangent cotangent)
{
    tb_flow_spec s = {.settings = TB_SETTINGS_UNSET,
                      .seed = SEED,
                      .dtype = TB_F64,
                      .cotangent = cotangent};
    s.settings.depth = depth;
    s.settings.width = WIDTH;
    s.settings.heads = HEADS;
    s.settings.context = TOKENS;
    return s;
}

static inline tb_flow *measure(tb_test *T, const char *block,
                               const tb_flow_spec *s)
{
    tb_block *b;
    tb_flow *f = NULL;
    if (tb_block_load(T->ctx, block, &b) != TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
        return NULL;
    }
    if (tb_flow_measure(T->ctx, b, s, &f) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", block, tb_error(T->ctx));
    tb_block_destroy(T->ctx, b);
    return f;
}

/** A model with a flow taken of it: its forward values are still there. */
typedef struct measured {
    tb_block *block;
    tb_model *m;
    tb_flow *f;
    int32_t ids[64]; /* [1, T+1] */
    tb_batch batch;
} measured;

static inline tb_status open_measured(tb_ctx *ctx, measured *x,
                                      const char *block, tb_flow_spec *s)
{
    *x = (measured){.batch = {.tokens = x->ids, .targets = x->ids + 1}};
    for (int i = 0; i < 64; i++)
        x->ids[i] = (i * 37 + 11) % 251;
    s->ids = x->ids;
    TB_TRY(tb_block_load(ctx, block, &x->block));
    TB_TRY(tb_model_create(ctx, x->block, &s->settings, s->dtype, &x->m));
    TB_TRY(tb_model_init(x->m, s->seed));
    return tb_flow_of_model(x->m, s, &x->f);
}

static inline void close_measured(tb_ctx *ctx, measured *x)
{
    tb_flow_free(ctx, x->f);
    tb_model_destroy(x->m);
    tb_block_destroy(ctx, x->block);
}

/* d x_K / d x_0 by central differences: the position table is added to x_0,
 * so moving one of its entries moves that entry of x_0. */
static inline tb_status difference_jacobian(measured *x, size_t n, double *J)
{
    const double h = 1e-5;
    const tb_view *v = tb_model_view(x->m, "embed.position.weight");
    double *table = (double *)x->m->params + v->offset;
    size_t top = x->m->sizes.s.depth;
    for (size_t j = 0; j < n; j++) {
        double keep = table[j];
        for (int side = 0; side < 2; side++) {
            table[j] = side ? keep - h : keep + h;
            TB_TRY(tb_model_forward(x->m, &x->batch, NULL));
            const double *y = tb_model_stream(x->m, top);
            for (size_t i = 0; i < n; i++)
                J[i * n + j] = side ? (J[i * n + j] - y[i]) / (2 * h) : y[i];
        }
        table[j] = keep;
    }
    return TB_OK;
}

/* G = J^T J */
static inline void gram(const double *J, size_t n, double *G)
{
    memset(G, 0, n * n * sizeof *G);
    for (size_t i = 0; i < n; i++)
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++)
                G[a * n + b] += J[i * n + a] * J[i * n + b];
}

/* Power iteration. */
static inline double largest_eigenvalue(const tb_kern *k, const double *G,
                                        size_t n)
{
    double v[64], w[64], length = 1;
    for (size_t i = 0; i < n; i++)
        v[i] = 1 + 0.1 * (double)i;
    for (int step = 0; step < 2000; step++) {
        for (size_t i = 0; i < n; i++)
            w[i] = k->dot(n, G + i * n, v);
        length = k->norm2(n, w);
        for (size_t i = 0; i < n; i++)
            v[i] = w[i] / length;
    }
    return length;
}

static inline const tb_verdict *verdict(const tb_flow *f, const char *code)
{
    for (size_t i = 0; i < f->nverdicts; i++)
        if (tb_streq(f->verdicts[i].code, code))
            return &f->verdicts[i];
    return NULL;
}

#endif
