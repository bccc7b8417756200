/* SPDX-License-Identifier: MIT */
/* A norm of one list by the engine. */
#include "pictures/shot_norm.h"
#include "flow/flow_model.h"

double shot_mean(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return sum / (double)n;
}

double shot_std(const double *v, size_t n)
{
    double mean = shot_mean(v, n), sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (v[i] - mean) * (v[i] - mean);
    return tb_sqrt(sum / (double)n);
}

/* --- the engine ----------------------------------------------------------- */

typedef struct call {
    tb_eval e;
    tb_eval_value sets[3];
    char gain[32], bias[32];
} call;

static tb_status prepare(tb_shot *s, const shot_norm_of *n, const double *z,
                         double eps, bool plain, call *c)
{
    char number[TB_DOUBLE_CHARS];
    tb_double_text(eps, number);
    *c = (call){.sets = {{"x", 1, {n->d}, z}}};
    c->e = (tb_eval){.sets = c->sets, .nsets = 1, .seed = 1};
    c->e.text = shot_text(s, "%s(x, eps=%s)", n->name, number);
    tb_format(c->gain, sizeof c->gain, "%s.gain", n->name);
    tb_format(c->bias, sizeof c->bias, "%s.bias", n->name);
    if (!plain)
        c->sets[c->e.nsets++] = (tb_eval_value){c->gain, 1, {n->d}, n->gain};
    if (!plain && n->centred)
        c->sets[c->e.nsets++] = (tb_eval_value){c->bias, 1, {n->d}, n->bias};
    return c->e.text ? TB_OK : TB_ERR_MEMORY;
}

tb_status shot_norm_value(tb_shot *s, const shot_norm_of *n, const double *z,
                          double eps, bool plain, double *out)
{
    call c;
    TB_TRY(prepare(s, n, z, eps, plain, &c));
    return shot_eval(s, &c.e, n->d, out);
}

tb_status shot_norm_jacobian(tb_shot *s, const shot_norm_of *n, const double *z,
                             double eps, double *j)
{
    call c;
    tb_eval_result *r;
    TB_TRY(prepare(s, n, z, eps, false, &c));
    c.e.jacobian = "x";
    TB_TRY(tb_eval_run(s->ctx, &c.e, &r));
    memcpy(j, r->jacobian.data, n->d * n->d * sizeof *j);
    tb_eval_free(s->ctx, r);
    return TB_OK;
}

/* --- all of it ------------------------------------------------------------ */

static void statistics(shot_norm_of *n, double *slid)
{
    double square = 0;
    n->mu = shot_mean(n->z, n->d);
    n->sigma = shot_std(n->z, n->d);
    for (size_t i = 0; i < n->d; i++) {
        slid[i] = n->centred ? n->z[i] - n->mu : n->z[i];
        square += slid[i] * slid[i];
    }
    n->var = square / (double)n->d;
    n->s = tb_sqrt(n->var + n->eps);
}

tb_status shot_norm_run(tb_shot *s, shot_norm_of *n)
{
    size_t d = n->d, square = d * d;
    double *v = shot_alloc(s, 4 * d + 2 * square, sizeof *v);
    if (!v)
        return TB_ERR_MEMORY;
    double *slid = v, *hat = slid + d, *out = hat + d, *singular = out + d;
    double *j = singular + d, *rows = j + square;
    statistics(n, slid);
    TB_TRY(shot_norm_value(s, n, n->z, n->eps, true, hat));
    TB_TRY(shot_norm_value(s, n, n->z, n->eps, false, out));
    TB_TRY(shot_norm_jacobian(s, n, n->z, n->eps, j));
    memcpy(rows, j, square * sizeof *rows);
    tb_singular_values(s->ctx, rows, d, singular);
    /* what is left of 0 after rounding; more where z is far from its mean */
    double far = 0;
    for (size_t i = 0; i < d; i++)
        far = tb_max2(far, tb_fabs(n->z[i]) / n->s);
    for (size_t i = 0; i < d; i++)
        if (singular[i] < 1e-15 * (double)d * (1 + far) * singular[0])
            singular[i] = 0;
    n->slid = slid;
    n->hat = hat;
    n->out = out;
    n->jacobian = j;
    n->singular = singular;
    return TB_OK;
}
