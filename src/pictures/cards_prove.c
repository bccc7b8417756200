/* SPDX-License-Identifier: MIT */
/* What the engine says to a card: the claims' readers, and the command line
 * that shows the same. */
#include "pictures/cards_parts.h"
#include "pictures/explain_parts.h"
#include "tollbooth/flow.h"

enum { BLOCKS = 12 }; /* of claims about depth: 24 sublayers */

/* --- equations ------------------------------------------------------------ */

static size_t count_sets(const claim *c)
{
    size_t n = 0;
    while (n < CLAIM_SETS && c->set[n].name)
        n++;
    return n;
}

static void put_numbers(tb_buf *b, const double *v, size_t n)
{
    for (size_t k = 0; k < n; k++)
        tb_buf_printf(b, k ? ",%g" : "[%g", v[k]);
    tb_buf_putc(b, ']');
}

/* "eval 'x + ffn(x)' --set 'x=[2,4]' --init '*: zeros' --jacobian x" */
static tb_status tell_eval(tb_ctx *ctx, const claim *c, tb_proof *out)
{
    tb_buf b;
    tb_buf_init(&b, ctx);
    tb_buf_printf(&b, "eval '%s'", c->text);
    for (size_t i = 0; i < count_sets(c); i++) {
        tb_buf_printf(&b, " --set '%s=", c->set[i].name);
        put_numbers(&b, c->set[i].data, c->set[i].n);
        tb_buf_putc(&b, '\'');
    }
    if (c->init)
        tb_buf_printf(&b, " --init '%s'", c->init);
    if (c->jacobian)
        tb_buf_printf(&b, " --jacobian %s", c->jacobian);
    if (c->cotangent) {
        tb_buf_puts(&b, " --grad '");
        put_numbers(&b, c->cotangent, c->ncotangent);
        tb_buf_putc(&b, '\'');
    }
    tb_format(out->command, sizeof out->command, "%s", tb_buf_str(&b));
    tb_status s = tb_buf_status(&b);
    tb_buf_clear(&b);
    return s;
}

static tb_status evaluate(tb_ctx *ctx, const claim *c, tb_proof *out,
                          tb_eval_result **r)
{
    tb_eval_value sets[CLAIM_SETS];
    const tb_eval_value cotangent = {"y", 1, {c->ncotangent}, c->cotangent};
    const tb_eval e = {.text = c->text,
                       .nsets = count_sets(c),
                       .sets = sets,
                       .cotangent = c->cotangent ? &cotangent : NULL,
                       .jacobian = c->jacobian,
                       .init = c->init,
                       .seed = 1};
    for (size_t i = 0; i < e.nsets; i++)
        sets[i] =
            (tb_eval_value){c->set[i].name, 1, {c->set[i].n}, c->set[i].data};
    TB_TRY(tell_eval(ctx, c, out));
    return tb_eval_run(ctx, &e, r);
}

/* Longer lists than a proof holds are cut; none of the cards has one. */
static void take(const double *data, size_t n, tb_proof *out)
{
    out->n = n < TB_PROOF_VALUES ? n : TB_PROOF_VALUES;
    for (size_t i = 0; i < out->n; i++)
        out->value[i] = data[i];
}

static void take_one(double v, tb_proof *out)
{
    take(&v, 1, out);
}

tb_status claim_value(tb_ctx *ctx, const claim *c, tb_proof *out)
{
    tb_eval_result *r;
    TB_TRY(evaluate(ctx, c, out, &r));
    take(r->y.data, r->y.dims[0], out);
    tb_eval_free(ctx, r);
    return TB_OK;
}

static double largest_gap(const double *a, const double *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = tb_fabs(a[i] - b[i]) > most ? tb_fabs(a[i] - b[i]) : most;
    return most;
}

tb_status claim_same(tb_ctx *ctx, const claim *c, tb_proof *out)
{
    tb_eval_result *r;
    TB_TRY(evaluate(ctx, c, out, &r));
    take_one(largest_gap(r->y.data, c->set[0].data, c->set[0].n), out);
    tb_eval_free(ctx, r);
    return TB_OK;
}

/* Gradients stand in the order of the inputs. */
tb_status claim_gradient(tb_ctx *ctx, const claim *c, tb_proof *out)
{
    tb_eval_result *r;
    TB_TRY(evaluate(ctx, c, out, &r));
    take(r->grads[0].data, c->set[0].n, out);
    tb_eval_free(ctx, r);
    return TB_OK;
}

tb_status claim_passed(tb_ctx *ctx, const claim *c, tb_proof *out)
{
    tb_eval_result *r;
    TB_TRY(evaluate(ctx, c, out, &r));
    take_one(largest_gap(r->grads[0].data, c->cotangent, c->ncotangent), out);
    tb_eval_free(ctx, r);
    return TB_OK;
}

tb_status claim_refused(tb_ctx *ctx, const claim *c, tb_proof *out)
{
    tb_eval_result *r;
    tb_status s = evaluate(ctx, c, out, &r);
    if (s == TB_ERR_MEMORY)
        return s;
    if (s == TB_OK)
        tb_eval_free(ctx, r);
    else
        tb_format(out->said, sizeof out->said, "%s", tb_error(ctx));
    out->said[strcspn(out->said, "\n")] = '\0'; /* without the caret */
    take_one(tb_status_exit(s), out);
    tb_error_clear(ctx);
    return TB_OK;
}

/* --- Jacobians ------------------------------------------------------------ */

typedef double (*jacobian_number)(const double *j, size_t n);

static double beside(const double *j, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n * n; i++)
        if (i % (n + 1) != 0 && tb_fabs(j[i]) > most)
            most = tb_fabs(j[i]);
    return most;
}

static double from_identity(const double *j, size_t n)
{
    double most = beside(j, n);
    for (size_t i = 0; i < n; i++) {
        double gap = tb_fabs(j[i * (n + 1)] - 1);
        most = gap > most ? gap : most;
    }
    return most;
}

/* w = J v, or J'v; the length of w. */
static double times(const double *j, size_t n, bool transposed, const double *v,
                    double *w)
{
    double square = 0;
    for (size_t i = 0; i < n; i++) {
        w[i] = 0;
        for (size_t k = 0; k < n; k++)
            w[i] += (transposed ? j[k * n + i] : j[i * n + k]) * v[k];
        square += w[i] * w[i];
    }
    return tb_sqrt(square);
}

/* Largest singular value of J, no larger than TB_PROOF_VALUES, by powers of
 * J'J. A norm's Jacobian has one value many times beside two others: there
 * the first power is as good as the last. */
static double gain_of(const double *j, size_t n)
{
    enum { ROUNDS = 50 };
    double v[TB_PROOF_VALUES], w[TB_PROOF_VALUES], gain = 0, length = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = 1 + (double)(i * i);
        length += v[i] * v[i];
    }
    length = tb_sqrt(length);
    for (int round = 0; round < ROUNDS && length > 0; round++) {
        for (size_t i = 0; i < n; i++)
            v[i] /= length;
        gain = times(j, n, false, v, w);
        length = times(j, n, true, w, v);
    }
    return gain;
}

static tb_status of_jacobian(tb_ctx *ctx, const claim *c,
                             jacobian_number number, tb_proof *out)
{
    tb_eval_result *r;
    TB_TRY(evaluate(ctx, c, out, &r));
    take_one(number(r->jacobian.data, r->jacobian.dims[0]), out);
    tb_eval_free(ctx, r);
    return TB_OK;
}

tb_status claim_gain(tb_ctx *ctx, const claim *c, tb_proof *out)
{
    return of_jacobian(ctx, c, gain_of, out);
}

tb_status claim_identity(tb_ctx *ctx, const claim *c, tb_proof *out)
{
    return of_jacobian(ctx, c, from_identity, out);
}

tb_status claim_beside(tb_ctx *ctx, const claim *c, tb_proof *out)
{
    return of_jacobian(ctx, c, beside, out);
}

/* --- blocks --------------------------------------------------------------- */

static tb_status tolls_of(tb_ctx *ctx, const tb_block *b, double *out)
{
    const tb_settings unset = TB_SETTINGS_UNSET;
    tb_explained e;
    tb_status s = tb_explained_open(ctx, &e, b, &unset);
    if (s == TB_OK)
        *out = e.kinds[0].info.tolls;
    tb_explained_close(&e);
    return s;
}

tb_status claim_tolls(tb_ctx *ctx, const claim *c, tb_proof *out)
{
    char name[32];
    const char *at = c->text;
    if (c->n == 1)
        tb_format(out->command, sizeof out->command, "explain %s --json", at);
    else
        tb_format(out->command, sizeof out->command, "blocks");
    for (size_t i = 0; i < c->n; i++) {
        tb_block *b;
        size_t n = strcspn(at, " ");
        tb_format(name, sizeof name, "%.*s", (int)n, at);
        TB_TRY(tb_block_load(ctx, name, &b));
        tb_status s = tolls_of(ctx, b, &out->value[i]);
        tb_block_destroy(ctx, b);
        TB_TRY(s);
        at += n + (at[n] == ' ');
    }
    out->n = c->n;
    return TB_OK;
}

static tb_status flow_of(tb_ctx *ctx, const claim *c, tb_proof *out,
                         tb_flow **f)
{
    tb_flow_spec spec = {.settings = TB_SETTINGS_UNSET, .seed = 1};
    tb_block *b;
    spec.settings.depth = BLOCKS;
    tb_format(out->command, sizeof out->command, "flow %s --depth %d --json",
              c->text, BLOCKS);
    TB_TRY(tb_block_load(ctx, c->text, &b));
    tb_status s = tb_flow_measure(ctx, b, &spec, f);
    tb_block_destroy(ctx, b);
    return s;
}

tb_status claim_lane(tb_ctx *ctx, const claim *c, tb_proof *out)
{
    tb_flow *f;
    TB_TRY(flow_of(ctx, c, out, &f));
    double low = f->rows[0].lane, high = low;
    for (size_t k = 1; k < f->nrows; k++) {
        low = f->rows[k].lane < low ? f->rows[k].lane : low;
        high = f->rows[k].lane > high ? f->rows[k].lane : high;
    }
    const double both[] = {low, high};
    take(both, TB_LEN(both), out);
    tb_flow_free(ctx, f);
    return TB_OK;
}

tb_status claim_floors(tb_ctx *ctx, const claim *c, tb_proof *out)
{
    tb_flow *f;
    TB_TRY(flow_of(ctx, c, out, &f));
    take_one((double)f->nrows, out);
    tb_flow_free(ctx, f);
    return TB_OK;
}

/* --- all ------------------------------------------------------------------ */

static bool as_expected(const claim *c, const tb_proof *p)
{
    bool ok = p->n == c->n && (!c->says || strstr(p->said, c->says));
    for (size_t i = 0; i < p->n && i < c->n; i++) {
        double size = tb_fabs(c->expected[i]);
        double allowed = c->tolerance * (size > 1 ? size : 1);
        ok = ok && tb_fabs(p->value[i] - c->expected[i]) <= allowed;
    }
    return ok;
}

tb_status claim_prove(tb_ctx *ctx, const claim *c, tb_proof *out)
{
    *out = (tb_proof){.tolerance = c->tolerance, .ok = true};
    if (!c->read)
        return TB_OK;
    out->what = c->what;
    out->expression = c->text;
    for (size_t k = 0; k < c->n; k++)
        out->expected[k] = c->expected[k];
    TB_TRY(c->read(ctx, c, out));
    out->ok = as_expected(c, out);
    return TB_OK;
}

tb_status tb_card_prove(tb_ctx *ctx, size_t i, tb_proof *out)
{
    return claim_prove(ctx, &tb_card_rows[i].claim, out);
}
