/* SPDX-License-Identifier: MIT */
/* One token from logits: greedy, temperature, top-k, top-p (Holtzman et al.
 * 2020, arXiv:1904.09751). In double, in a fixed order. */
#include <stdlib.h> /* qsort */

#include "train/lm.h"

tb_status tb_sampling_check(tb_ctx *ctx, const tb_sampling *s)
{
    if (!(s->temperature >= 0) || !tb_isfinite(s->temperature))
        return TB_FAIL(ctx, TB_ERR_ARG, "temperature: got %g, wanted 0 or more",
                       s->temperature);
    if (!(s->top_p > 0 && s->top_p <= 1))
        return TB_FAIL(ctx, TB_ERR_ARG, "top-p: got %g, wanted 0 < p <= 1",
                       s->top_p);
    return TB_OK;
}

/* Most likely first, of equals the smaller id. */
static int compare(const void *a_, const void *b_)
{
    const tb_choice *a = a_, *b = b_;
    if (a->logit != b->logit)
        return a->logit > b->logit ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static tb_status rank(tb_ctx *ctx, tb_dtype dtype, const void *logits,
                      size_t vocab, uint64_t place, tb_choice *c)
{
    for (size_t i = 0; i < vocab; i++) {
        c[i] = (tb_choice){tb_elem_get(dtype, logits, i), 0, (int32_t)i};
        if (!tb_isfinite(c[i].logit))
            return TB_FAIL(ctx, TB_ERR_NONFINITE,
                           "generate: the logit of token %zu at place %llu is "
                           "%g",
                           i, (unsigned long long)place, c[i].logit);
    }
    qsort(c, vocab, sizeof *c, compare);
    return TB_OK;
}

/* Weights of the first n choices at a temperature; their sum. */
static double weigh(tb_choice *c, size_t n, double temperature)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        c[i].weight = tb_exp((c[i].logit - c[0].logit) / temperature);
        sum += c[i].weight;
    }
    return sum;
}

/* The fewest choices that reach the weight `wanted`; *sum is theirs. */
static size_t cut(const tb_choice *c, size_t n, double wanted, double *sum)
{
    double reached = 0;
    for (size_t i = 0; i < n; i++) {
        reached += c[i].weight;
        if (reached >= wanted) {
            *sum = reached;
            return i + 1;
        }
    }
    *sum = reached;
    return n;
}

static size_t draw(const tb_choice *c, size_t n, double at)
{
    size_t i = 0;
    while (i + 1 < n && at >= c[i].weight)
        at -= c[i++].weight;
    return i;
}

tb_status tb_sample(tb_ctx *ctx, const tb_sampling *s, tb_dtype dtype,
                    const void *logits, size_t vocab, uint64_t place,
                    tb_choice *c, int32_t *out)
{
    TB_TRY(rank(ctx, dtype, logits, vocab, place, c));
    *out = c[0].id;
    if (s->greedy || s->temperature == 0)
        return TB_OK;
    size_t n = s->top_k && s->top_k < vocab ? s->top_k : vocab;
    double sum = weigh(c, n, s->temperature);
    if (s->top_p < 1)
        n = cut(c, n, s->top_p * sum, &sum);
    tb_rng r = tb_rng_make(s->seed, "sample");
    *out = c[draw(c, n, tb_rng_uniform(r, place) * sum)].id;
    return TB_OK;
}
