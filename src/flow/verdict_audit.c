/* SPDX-License-Identifier: MIT */
/* Findings in what only an audit measures. */
#include "flow/verdict.h"

tb_flow_finding tb_find_identity(const tb_flow *f, size_t nonfinite)
{
    tb_flow_finding out = {.applies = false};
    for (size_t i = 0; i < f->nrows; i++) {
        const tb_flow_row *r = &f->rows[i];
        if (!r->has_sums || (out.at && !(r->identity_error > out.value)))
            continue;
        out.value = r->identity_error;
        out.at = r;
        out.applies = nonfinite == 0;
    }
    return out;
}

static bool same_role(const char *a, const char *b)
{
    return a == b || (a && b && tb_streq(a, b));
}

tb_flow_finding tb_find_check(const tb_flow *f, size_t nonfinite)
{
    tb_flow_finding out = {.applies = false};
    for (size_t i = 0; i < f->nchecks; i++) {
        const tb_flow_check *c = &f->checks[i];
        double most = c->error > c->adjoint ? c->error : c->adjoint;
        if (!same_role(c->role, f->rows[0].role) ||
            (out.check && !(most > out.value)))
            continue;
        out.value = most;
        out.check = c;
        out.applies = nonfinite == 0;
    }
    return out;
}

/* With fewer tokens the first gets much without being a sink: 0.21 of 16 where
 * every query spreads its attention evenly over what it sees. */
enum { SINK_TOKENS = 32 };

static bool is_here(const tb_flow *f, const tb_flow_heads *h)
{
    return h->k >= f->rows[0].k && h->k <= f->rows[f->nrows - 1].k;
}

tb_flow_finding tb_find_sink(const tb_flow *f, size_t nonfinite)
{
    tb_flow_finding out = {.applies = false};
    for (size_t i = 0; i < f->nattention && f->tokens >= SINK_TOKENS; i++) {
        const tb_flow_heads *h = &f->attention[i];
        for (size_t j = 0; is_here(f, h) && j < h->heads; j++) {
            if (out.heads && !(h->first[j] > out.value))
                continue;
            out.value = h->first[j];
            out.heads = h;
            out.head = j;
            out.applies = nonfinite == 0;
        }
    }
    return out;
}

size_t tb_count_sinks(const tb_flow *f, double limit, size_t *of)
{
    size_t n = 0;
    *of = 0;
    for (size_t i = 0; i < f->nattention; i++) {
        const tb_flow_heads *h = &f->attention[i];
        for (size_t j = 0; is_here(f, h) && j < h->heads; j++) {
            n += h->first[j] > limit;
            (*of)++;
        }
    }
    return n;
}

/* --- exponents of weights ---------------------------------------------------
 */

/* WeightWatcher's constants. */
static const double alpha_low = 2, alpha_high = 6;

typedef struct exponents {
    const tb_flow_weight *least, *most;
    size_t low, high, n;
} exponents;

static bool is_of(const tb_flow_weight *w, const char *role)
{
    size_t n = role ? strlen(role) : 0;
    return w->alpha > 0 && (!role || strncmp(w->name, role, n) == 0);
}

static exponents look_at(const tb_flow *f)
{
    exponents x = {0};
    for (size_t i = 0; i < f->nweights; i++) {
        const tb_flow_weight *w = &f->weights[i];
        if (!is_of(w, f->rows[0].role))
            continue;
        x.least = !x.least || w->alpha < x.least->alpha ? w : x.least;
        x.most = !x.most || w->alpha > x.most->alpha ? w : x.most;
        x.low += w->alpha < alpha_low;
        x.high += w->alpha > alpha_high;
        x.n++;
    }
    return x;
}

tb_flow_finding tb_find_alpha_low(const tb_flow *f, size_t nonfinite)
{
    const exponents x = look_at(f);
    return (tb_flow_finding){.value = x.n ? x.least->alpha : 0,
                             .weight = x.least,
                             .count = x.low,
                             .of = x.n,
                             .applies =
                                 nonfinite == 0 && x.n && (x.low || !x.high)};
}

tb_flow_finding tb_find_alpha_high(const tb_flow *f, size_t nonfinite)
{
    const exponents x = look_at(f);
    return (tb_flow_finding){.value = x.n ? x.most->alpha : 0,
                             .weight = x.most,
                             .count = x.high,
                             .of = x.n,
                             .applies = nonfinite == 0 && !x.low && x.high};
}
