/* SPDX-License-Identifier: MIT */
/* The numbers of a flow by their names in docs/json.md. */
#include "flow_read.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

tb_status json_number(tb_config *c, const char *key, double *out)
{
    static const struct {
        const char *text;
        double value;
    } words[] = {{"nan", (double)NAN},
                 {"inf", (double)INFINITY},
                 {"-inf", (double)-INFINITY}};
    const char *text;
    if (tb_config_what(c, key) != TB_CONFIG_STRING)
        return tb_config_number(c, key, out);
    TRY(tb_config_string(c, key, &text));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i].text) == 0) {
            *out = words[i].value;
            return TB_OK;
        }
    return tb_config_number(c, key, out); /* says what it got */
}

tb_status json_text(pool *p, tb_config *c, const char *key, const char *or_,
                    const char **out)
{
    const char *text;
    TRY(tb_config_string_or(c, key, or_, &text));
    *out = pool_copy(p, text);
    return pool_status(p);
}

/* --- by name -------------------------------------------------------------- */

typedef struct field {
    const char *key;
    size_t offset;
} field;

static tb_status numbers(tb_config *c, const field *f, size_t n, void *to)
{
    for (size_t i = 0; i < n; i++) {
        double v;
        TRY(json_number(c, f[i].key, &v));
        memcpy((char *)to + f[i].offset, &v, sizeof v);
    }
    return TB_OK;
}

static tb_status sizes(tb_config *c, const field *f, size_t n, void *to)
{
    for (size_t i = 0; i < n; i++) {
        size_t v;
        TRY(tb_config_size(c, f[i].key, &v));
        memcpy((char *)to + f[i].offset, &v, sizeof v);
    }
    return TB_OK;
}

static tb_status texts(pool *p, tb_config *c, const field *f, size_t n,
                       void *to)
{
    for (size_t i = 0; i < n; i++) {
        const char *v;
        if (tb_config_what(c, f[i].key) == TB_CONFIG_ABSENT)
            continue;
        TRY(json_text(p, c, f[i].key, NULL, &v));
        memcpy((char *)to + f[i].offset, &v, sizeof v);
    }
    return TB_OK;
}

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define ROW(name)                                                              \
    {                                                                          \
#        name, offsetof(tb_flow_row, name)                                     \
    }
#define NORM(name)                                                             \
    {                                                                          \
#        name, offsetof(tb_flow_norm, name)                                    \
    }
#define WEIGHT(name)                                                           \
    {                                                                          \
#        name, offsetof(tb_flow_weight, name)                                  \
    }
#define VERDICT(name)                                                          \
    {                                                                          \
#        name, offsetof(tb_verdict, name)                                      \
    }
#define FLOW(name)                                                             \
    {                                                                          \
#        name, offsetof(tb_flow, name)                                         \
    }

/* --- parts ---------------------------------------------------------------- */

static tb_status read_spectrum(pool *p, tb_config *c, tb_spectrum *to)
{
    static const field real[] = {{"rms", offsetof(tb_spectrum, rms)},
                                 {"max", offsetof(tb_spectrum, max)},
                                 {"median", offsetof(tb_spectrum, median)}};
    tb_config *s, *values, *one;
    TRY(tb_config_object(c, "spectrum", &s));
    TRY(numbers(s, real, COUNT(real), to));
    TRY(tb_config_array(s, "values", &values));
    to->n = tb_config_length(values);
    to->values = pool_get(p, to->n, sizeof *to->values);
    for (size_t i = 0; to->values && i < to->n; i++) {
        TRY(tb_config_item(values, i, &one));
        TRY(json_number(one, NULL, &to->values[i]));
    }
    return pool_status(p);
}

/* What flow --audit measures. */
static tb_status read_audit(pool *p, tb_config *c, tb_flow_row *r)
{
    static const field real[] = {ROW(identity_share), ROW(identity_share_error),
                                 ROW(jacobian_rms),   ROW(jacobian_rms_error),
                                 ROW(jacobian_off),   ROW(sigma_max)};
    r->audited = tb_config_what(c, real[0].key) != TB_CONFIG_ABSENT;
    if (!r->audited)
        return TB_OK;
    TRY(numbers(c, real, COUNT(real), r));
    r->has_sums = tb_config_what(c, "identity_error") != TB_CONFIG_ABSENT;
    if (r->has_sums)
        TRY(json_number(c, "identity_error", &r->identity_error));
    if (tb_config_what(c, "spectrum") != TB_CONFIG_OBJECT)
        return TB_OK;
    tb_spectrum *s = pool_get(p, 1, sizeof *s);
    r->spectrum = s;
    return s ? read_spectrum(p, c, s) : TB_ERR_MEMORY;
}

static tb_status read_row(pool *p, tb_config *c, tb_flow_row *r)
{
    static const field real[] = {
        ROW(lane),       ROW(total),        ROW(branch),    ROW(cos),
        ROW(local_lane), ROW(local_branch), ROW(local_cos), ROW(toll),
        ROW(toll_max),   ROW(toll_product), ROW(std_x),     ROW(branch_ratio),
        ROW(total_min),  ROW(total_max),    ROW(norm_x),    ROW(median_x),
        ROW(std_first),  ROW(angle),        ROW(top_g)};
    static const field whole[] = {
        ROW(k),           ROW(layer),         ROW(top_token), ROW(top_channel),
        ROW(top_g_token), ROW(top_g_channel), ROW(nonfinite)};
    static const field text[] = {ROW(role), ROW(name)};
    tb_config *top, *one;
    int64_t norms;
    TRY(numbers(c, real, COUNT(real), r));
    TRY(sizes(c, whole, COUNT(whole), r));
    TRY(texts(p, c, text, COUNT(text), r));
    TRY(tb_config_int(c, "norms", &norms));
    r->norms = (int)norms;
    TRY(tb_config_array(c, "top_x", &top));
    for (size_t i = 0; i < 3 && i < tb_config_length(top); i++) {
        TRY(tb_config_item(top, i, &one));
        TRY(json_number(one, NULL, &r->top_x[i]));
    }
    r->name = r->name ? r->name : "";
    return read_audit(p, c, r);
}

static tb_status read_norm(pool *p, tb_config *c, tb_flow_norm *n)
{
    static const field real[] = {NORM(toll), NORM(toll_max)};
    static const field scales[] = {NORM(s_min), NORM(s_median), NORM(s_max),
                                   NORM(eps_share)};
    static const field whole[] = {NORM(k), NORM(layer)};
    static const field token[] = {NORM(eps_token)};
    static const field text[] = {NORM(role), NORM(name), NORM(kind)};
    TRY(numbers(c, real, COUNT(real), n));
    TRY(sizes(c, whole, COUNT(whole), n));
    TRY(texts(p, c, text, COUNT(text), n));
    TRY(tb_config_bool(c, "lane", &n->lane));
    n->has_s = tb_config_what(c, "s_min") != TB_CONFIG_ABSENT;
    if (n->has_s)
        TRY(sizes(c, token, COUNT(token), n));
    return n->has_s ? numbers(c, scales, COUNT(scales), n) : TB_OK;
}

static tb_status read_weight(pool *p, tb_config *c, tb_flow_weight *w)
{
    static const field real[] = {WEIGHT(grad_norm)};
    static const field spread[] = {WEIGHT(mean), WEIGHT(std)};
    static const field whole[] = {WEIGHT(layer), WEIGHT(elements)};
    TRY(numbers(c, real, COUNT(real), w));
    TRY(sizes(c, whole, COUNT(whole), w));
    TRY(json_text(p, c, "name", "", &w->name));
    if (tb_config_what(c, "alpha") != TB_CONFIG_ABSENT)
        TRY(json_number(c, "alpha", &w->alpha));
    if (tb_config_what(c, "init") == TB_CONFIG_ABSENT)
        return TB_OK;
    TRY(json_text(p, c, "init", "", &w->start));
    return numbers(c, spread, COUNT(spread), w);
}

static tb_status read_verdict(pool *p, tb_config *c, tb_verdict *v)
{
    static const field real[] = {VERDICT(value), VERDICT(threshold)};
    static const field text[] = {VERDICT(code), VERDICT(sentence),
                                 VERDICT(source), VERDICT(where)};
    const char *level;
    *v = (tb_verdict){.code = "", .sentence = "", .source = "", .where = ""};
    TRY(numbers(c, real, COUNT(real), v));
    TRY(texts(p, c, text, COUNT(text), v));
    TRY(tb_config_string(c, "level", &level));
    for (int l = TB_OK_; l <= TB_FAILED; l++)
        if (strcmp(level, tb_level_name((tb_level)l)) == 0)
            v->level = (tb_level)l;
    return TB_OK;
}

/* Lists that only an audit makes are read from the last to the first, as they
 * are kept. */
static tb_status read_head(pool *p, tb_config *c, tb_flow_heads *h)
{
    static const field whole[] = {{"k", offsetof(tb_flow_heads, k)},
                                  {"layer", offsetof(tb_flow_heads, layer)}};
    tb_config *list, *one;
    TRY(sizes(c, whole, COUNT(whole), h));
    TRY(json_text(p, c, "role", NULL, &h->role));
    TRY(tb_config_array(c, "first", &list));
    h->heads = tb_config_length(list);
    h->first = pool_get(p, h->heads, sizeof *h->first);
    for (size_t i = 0; h->first && i < h->heads; i++) {
        TRY(tb_config_item(list, i, &one));
        TRY(json_number(one, NULL, &h->first[i]));
    }
    return pool_status(p);
}

static tb_status read_check(pool *p, tb_config *c, tb_flow_check *x)
{
    static const field real[] = {
        {"error", offsetof(tb_flow_check, error)},
        {"elementwise", offsetof(tb_flow_check, elementwise)},
        {"adjoint", offsetof(tb_flow_check, adjoint)}};
    static const field whole[] = {{"layer", offsetof(tb_flow_check, layer)}};
    TRY(numbers(c, real, COUNT(real), x));
    TRY(sizes(c, whole, COUNT(whole), x));
    return json_text(p, c, "role", NULL, &x->role);
}

static tb_status read_change(pool *p, tb_config *c, tb_flow_change *x)
{
    static const field real[] = {
        {"lane", offsetof(tb_flow_change, lane)},
        {"total", offsetof(tb_flow_change, total)},
        {"least_total", offsetof(tb_flow_change, least_total)},
        {"loss", offsetof(tb_flow_change, loss)}};
    TRY(json_text(p, c, "change", "", &x->change));
    return numbers(c, real, COUNT(real), x);
}

/* --- lists ---------------------------------------------------------------- */

/* One loop for all lists of objects; `last`: from the last to the first. */
#define READ_LIST(fn, type, last)                                              \
    static tb_status fn##s(pool *p, tb_config *c, const char *key, type **out, \
                           size_t *n)                                          \
    {                                                                          \
        tb_config *list, *one;                                                 \
        TRY(tb_config_array(c, key, &list));                                   \
        *n = tb_config_length(list);                                           \
        *out = pool_get(p, *n, sizeof **out);                                  \
        for (size_t i = 0; *out && i < *n; i++) {                              \
            TRY(tb_config_item(list, i, &one));                                \
            TRY(fn(p, one, &(*out)[last ? *n - 1 - i : i]));                   \
        }                                                                      \
        return pool_status(p);                                                 \
    }

READ_LIST(read_row, tb_flow_row, false)
READ_LIST(read_norm, tb_flow_norm, false)
READ_LIST(read_weight, tb_flow_weight, false)
READ_LIST(read_verdict, tb_verdict, false)
READ_LIST(read_change, tb_flow_change, false)
READ_LIST(read_head, tb_flow_heads, true)
READ_LIST(read_check, tb_flow_check, true)

static tb_status read_final(tb_config *run, const char *key, tb_flow_stack *s)
{
    tb_config *c;
    TRY(tb_config_object(run, key, &c));
    s->has_final = tb_config_what(c, "toll") != TB_CONFIG_NULL;
    return s->has_final ? json_number(c, "toll", &s->final_toll) : TB_OK;
}

/* Rows of one role are a stack. */
static tb_status split(tb_config *run, tb_flow *f)
{
    f->nstacks = f->rows[0].role ? 2 : 1;
    size_t first = 0;
    while (f->nstacks == 2 && first < f->nrows && f->rows[first].role &&
           strcmp(f->rows[first].role, f->rows[0].role) == 0)
        first++;
    f->stacks[0] = (tb_flow_stack){.role = f->rows[0].role,
                                   .depth = f->depth,
                                   .nrows = f->nstacks == 2 ? first : f->nrows};
    if (f->nstacks == 1)
        return read_final(run, "final", &f->stacks[0]);
    if (first == f->nrows)
        return TB_ERR_INPUT;
    f->stacks[1] = (tb_flow_stack){
        .role = f->rows[first].role, .first = first, .nrows = f->nrows - first};
    TRY(tb_config_size(run, "decoder_depth", &f->stacks[1].depth));
    TRY(read_final(run, "encoder_final", &f->stacks[0]));
    return read_final(run, "final", &f->stacks[1]);
}

tb_status flow_read(pool *p, tb_config *run, tb_flow **out)
{
    static const field whole[] = {FLOW(depth), FLOW(width), FLOW(heads),
                                  FLOW(tokens), FLOW(batch)};
    const char *dtype;
    size_t seed;
    tb_flow *f = *out = pool_get(p, 1, sizeof *f);
    if (!f)
        return TB_ERR_MEMORY;
    TRY(json_text(p, run, "block", "", &f->block));
    TRY(sizes(run, whole, COUNT(whole), f));
    TRY(tb_config_size(run, "seed", &seed));
    f->seed = seed;
    TRY(tb_config_string(run, "dtype", &dtype));
    f->dtype = strcmp(dtype, "f64") == 0 ? TB_F64 : TB_F32;
    TRY(json_number(run, "loss", &f->loss));
    TRY(read_rows(p, run, "sublayers", &f->rows, &f->nrows));
    TRY(read_norms(p, run, "norms", &f->norms, &f->nnorms));
    TRY(read_weights(p, run, "weights", &f->weights, &f->nweights));
    f->has_spread = f->nweights && f->weights[0].start;
    if (tb_config_what(run, "attention") != TB_CONFIG_ABSENT)
        TRY(read_heads(p, run, "attention", &f->attention, &f->nattention));
    if (tb_config_what(run, "checks") != TB_CONFIG_ABSENT)
        TRY(read_checks(p, run, "checks", &f->checks, &f->nchecks));
    TRY(read_verdicts(p, run, "verdicts", &f->verdicts, &f->nverdicts));
    f->has_spectrum = tb_config_what(run, "spectrum") == TB_CONFIG_OBJECT;
    if (f->has_spectrum)
        TRY(read_spectrum(p, run, &f->spectrum));
    if (tb_config_what(run, "what_if") != TB_CONFIG_ABSENT)
        TRY(read_changes(p, run, "what_if", &f->changes, &f->nchanges));
    if (f->nrows == 0)
        return TB_ERR_INPUT;
    TRY(split(run, f));
    for (size_t i = 0; i < f->nstacks; i++) /* every block has a row */
        if (!f->stacks[i].nrows || f->stacks[i].depth > f->stacks[i].nrows)
            return TB_ERR_INPUT;
    return TB_OK;
}
