/* SPDX-License-Identifier: MIT */
/* A flow as JSON; the names are the contract's. */
#include "tollbooth/flow.h"

const char *tb_level_name(tb_level l)
{
    static const char *const names[] = {"OK", "NOTE", "WARN", "FAIL"};
    return names[l];
}

static void spectrum_json(const tb_spectrum *s, tb_json *j)
{
    tb_json_object(j, "spectrum");
    tb_json_number(j, "rms", s->rms);
    tb_json_number(j, "max", s->max);
    tb_json_number(j, "median", s->median);
    tb_json_tensor(j, "values", TB_F64, s->values, 1, &s->n);
    tb_json_end(j);
}

/* What an audit measures beside the rest. */
static void audit_json(const tb_flow_row *r, tb_json *j)
{
    tb_json_number(j, "identity_share", r->identity_share);
    tb_json_number(j, "identity_share_error", r->identity_share_error);
    tb_json_number(j, "jacobian_rms", r->jacobian_rms);
    tb_json_number(j, "jacobian_rms_error", r->jacobian_rms_error);
    tb_json_number(j, "jacobian_off", r->jacobian_off);
    tb_json_number(j, "sigma_max", r->sigma_max);
    if (r->has_sums)
        tb_json_number(j, "identity_error", r->identity_error);
    if (r->spectrum)
        spectrum_json(r->spectrum, j);
}

static void row_json(const tb_flow_row *r, tb_json *j)
{
    tb_json_object(j, NULL);
    tb_json_int(j, "k", (int64_t)r->k);
    if (r->role)
        tb_json_string(j, "role", r->role);
    tb_json_int(j, "layer", (int64_t)r->layer);
    tb_json_string(j, "name", r->name);
    tb_json_number(j, "lane", r->lane);
    tb_json_number(j, "total", r->total);
    tb_json_number(j, "branch", r->branch);
    tb_json_number(j, "cos", r->cos);
    tb_json_number(j, "local_lane", r->local_lane);
    tb_json_number(j, "local_branch", r->local_branch);
    tb_json_number(j, "local_cos", r->local_cos);
    tb_json_number(j, "toll", r->toll);
    tb_json_number(j, "toll_max", r->toll_max);
    tb_json_number(j, "toll_product", r->toll_product);
    tb_json_int(j, "norms", r->norms);
    tb_json_number(j, "std_x", r->std_x);
    tb_json_number(j, "branch_ratio", r->branch_ratio);
    tb_json_number(j, "total_min", r->total_min);
    tb_json_number(j, "total_max", r->total_max);
    tb_json_number(j, "norm_x", r->norm_x);
    tb_json_tensor(j, "top_x", TB_F64, r->top_x, 1, (const size_t[]){3});
    tb_json_number(j, "median_x", r->median_x);
    tb_json_int(j, "top_token", (int64_t)r->top_token);
    tb_json_int(j, "top_channel", (int64_t)r->top_channel);
    tb_json_number(j, "top_g", r->top_g);
    tb_json_int(j, "top_g_token", (int64_t)r->top_g_token);
    tb_json_int(j, "top_g_channel", (int64_t)r->top_g_channel);
    tb_json_number(j, "std_first", r->std_first);
    tb_json_number(j, "angle", r->angle);
    tb_json_int(j, "nonfinite", (int64_t)r->nonfinite);
    if (r->audited)
        audit_json(r, j);
    tb_json_end(j);
}

static void norms_json(const tb_flow *f, tb_json *j)
{
    tb_json_array(j, "norms");
    for (size_t i = 0; i < f->nnorms; i++) {
        const tb_flow_norm *n = &f->norms[i];
        tb_json_object(j, NULL);
        tb_json_int(j, "k", (int64_t)n->k);
        if (n->role)
            tb_json_string(j, "role", n->role);
        tb_json_int(j, "layer", (int64_t)n->layer);
        tb_json_string(j, "name", n->name);
        tb_json_string(j, "kind", n->kind);
        tb_json_bool(j, "lane", n->lane);
        tb_json_number(j, "toll", n->toll);
        tb_json_number(j, "toll_max", n->toll_max);
        if (n->has_s) {
            tb_json_number(j, "s_min", n->s_min);
            tb_json_number(j, "s_median", n->s_median);
            tb_json_number(j, "s_max", n->s_max);
            tb_json_number(j, "eps_share", n->eps_share);
            tb_json_int(j, "eps_token", (int64_t)n->eps_token);
        }
        tb_json_end(j);
    }
    tb_json_end(j);
}

static void role_and_layer(const char *role, size_t layer, tb_json *j)
{
    if (role)
        tb_json_string(j, "role", role);
    tb_json_int(j, "layer", (int64_t)layer);
}

static void attention_json(const tb_flow *f, tb_json *j)
{
    tb_json_array(j, "attention");
    for (size_t i = f->nattention; i-- > 0;) {
        const tb_flow_heads *h = &f->attention[i];
        tb_json_object(j, NULL);
        tb_json_int(j, "k", (int64_t)h->k);
        role_and_layer(h->role, h->layer, j);
        tb_json_tensor(j, "first", TB_F64, h->first, 1, &h->heads);
        tb_json_end(j);
    }
    tb_json_end(j);
}

static void checks_json(const tb_flow *f, tb_json *j)
{
    tb_json_array(j, "checks");
    for (size_t i = f->nchecks; i-- > 0;) {
        const tb_flow_check *c = &f->checks[i];
        tb_json_object(j, NULL);
        role_and_layer(c->role, c->layer, j);
        tb_json_number(j, "error", c->error);
        tb_json_number(j, "elementwise", c->elementwise);
        tb_json_number(j, "adjoint", c->adjoint);
        tb_json_end(j);
    }
    tb_json_end(j);
}

static void weights_json(const tb_flow *f, tb_json *j)
{
    tb_json_array(j, "weights");
    for (size_t i = 0; i < f->nweights; i++) {
        tb_json_object(j, NULL);
        tb_json_string(j, "name", f->weights[i].name);
        tb_json_int(j, "layer", (int64_t)f->weights[i].layer);
        tb_json_int(j, "elements", (int64_t)f->weights[i].elements);
        tb_json_number(j, "grad_norm", f->weights[i].grad_norm);
        if (f->has_spread) {
            tb_json_string(j, "init", f->weights[i].start);
            tb_json_number(j, "mean", f->weights[i].mean);
            tb_json_number(j, "std", f->weights[i].std);
        }
        if (f->weights[i].alpha > 0)
            tb_json_number(j, "alpha", f->weights[i].alpha);
        tb_json_end(j);
    }
    tb_json_end(j);
}

void tb_verdicts_json(const tb_verdict *v, size_t n, tb_json *j,
                      const char *key)
{
    tb_json_array(j, key);
    for (size_t i = 0; i < n; i++) {
        tb_json_object(j, NULL);
        tb_json_string(j, "code", v[i].code);
        tb_json_string(j, "level", tb_level_name(v[i].level));
        tb_json_number(j, "value", v[i].value);
        tb_json_number(j, "threshold", v[i].threshold);
        tb_json_string(j, "sentence", v[i].sentence);
        tb_json_string(j, "source", v[i].source);
        tb_json_string(j, "where", v[i].where);
        tb_json_end(j);
    }
    tb_json_end(j);
}

static void changes_json(const tb_flow *f, tb_json *j)
{
    if (f->nchanges == 0)
        return;
    tb_json_array(j, "what_if");
    for (size_t i = 0; i < f->nchanges; i++) {
        const tb_flow_change *c = &f->changes[i];
        tb_json_object(j, NULL);
        tb_json_string(j, "change", c->change);
        tb_json_number(j, "lane", c->lane);
        tb_json_number(j, "total", c->total);
        tb_json_number(j, "least_total", c->least_total);
        tb_json_number(j, "loss", c->loss);
        tb_json_end(j);
    }
    tb_json_end(j);
}

static void settings_json(const tb_flow *f, tb_json *j)
{
    tb_json_string(j, "block", f->block);
    tb_json_int(j, "depth", (int64_t)f->depth);
    if (f->nstacks > 1)
        tb_json_int(j, "decoder_depth", (int64_t)f->stacks[1].depth);
    tb_json_int(j, "width", (int64_t)f->width);
    tb_json_int(j, "heads", (int64_t)f->heads);
    tb_json_int(j, "tokens", (int64_t)f->tokens);
    tb_json_int(j, "batch", (int64_t)f->batch);
    tb_json_int(j, "seed", (int64_t)f->seed);
    tb_json_string(j, "dtype", f->dtype == TB_F64 ? "f64" : "f32");
    tb_json_number(j, "loss", f->loss);
}

static void final_json(const tb_flow_stack *s, tb_json *j, const char *key)
{
    tb_json_object(j, key);
    if (s->has_final)
        tb_json_number(j, "toll", s->final_toll);
    else
        tb_json_null(j, "toll");
    tb_json_end(j);
}

void tb_flow_json(const tb_flow *f, tb_json *j, const char *key)
{
    tb_json_object(j, key);
    settings_json(f, j);
    tb_json_array(j, "sublayers");
    for (size_t i = 0; i < f->nrows; i++)
        row_json(&f->rows[i], j);
    tb_json_end(j);
    final_json(&f->stacks[f->nstacks - 1], j, "final");
    if (f->nstacks > 1)
        final_json(&f->stacks[0], j, "encoder_final");
    norms_json(f, j);
    weights_json(f, j);
    if (f->has_spectrum)
        spectrum_json(&f->spectrum, j);
    else
        tb_json_null(j, "spectrum");
    if (f->attention)
        attention_json(f, j);
    if (f->checks)
        checks_json(f, j);
    tb_verdicts_json(f->verdicts, f->nverdicts, j, "verdicts");
    changes_json(f, j);
    tb_json_end(j);
}
