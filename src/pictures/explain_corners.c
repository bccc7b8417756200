/* SPDX-License-Identifier: MIT */
/* Corners of a block: a row without spread, branches that grow without end,
 * stacks that do. Formulas beside what small trials measure. */
#include "model/corners.h"
#include "pictures/explain_parts.h"

enum { KINDS = 4, STEPS = 4 };

/** Powers of t in one step, by the rules and measured. */
typedef struct powers {
    const tb_explained_kind *kind;
    int step;
    tb_large_form form;
    tb_large seen;
} powers;

typedef struct corners {
    tb_flat *flat;
    size_t nflat, npowers;
    powers powers[KINDS * STEPS];
    tb_deep deep;
} corners;

/* --- measured ------------------------------------------------------------- */

/* A step that a trial has no numbers for keeps its formulas: an encoder under
 * another stack, eps = 0 on a row without spread. */
static tb_status measure_step(tb_ctx *ctx, tb_explained *e, powers *p)
{
    TB_TRY(tb_large_form_build(ctx, &e->arena, p->kind->g, p->step, &p->form));
    tb_status s = TB_ERR_INPUT;
    if (!p->kind->encoder)
        s = tb_corner_large(ctx, e->block, &e->given, p->kind->from, p->step,
                            &p->seen);
    if (s == TB_ERR_MEMORY)
        return s;
    for (int i = 0; s != TB_OK && i < TB_STREAMS_MOST; i++)
        p->seen.value[i] = p->seen.jacobian[i] = p->seen.lane[i] =
            __builtin_nan("");
    tb_error_clear(ctx);
    return TB_OK;
}

/* Trials of a block of more operations would take minutes and gigabytes. */
static bool is_long(const tb_explained *e)
{
    enum { LONG = 4000 };
    bool found = false;
    for (size_t k = 0; k < e->nkinds; k++)
        found = found || e->kinds[k].g->nnodes > LONG;
    return found;
}

/* One step stands for all that read the same. */
static tb_status measure(tb_ctx *ctx, tb_explained *e, corners *c)
{
    *c = (corners){.deep.why = "it has too many operations"};
    TB_TRY(tb_corner_flat(e->model, &e->arena, &c->flat, &c->nflat));
    if (is_long(e))
        return TB_OK;
    for (size_t k = 0; k < e->nkinds && k < KINDS; k++) {
        int steps = tb_jacobian_steps(ctx, &e->kinds[k].closed);
        for (int f = 0; f < steps && f < STEPS; f++) {
            powers *p = &c->powers[c->npowers++];
            *p = (powers){.kind = &e->kinds[k], .step = f};
            TB_TRY(measure_step(ctx, e, p));
        }
    }
    return tb_corner_deep(ctx, e->block, &e->given, &c->deep);
}

/* A norm of what is 0 with every F: it gives a small branch its size back, so
 * F = 0 is left at once. NULL: there is none. */
static const tb_node *restoring_norm(const tb_explained_kind *k)
{
    const tb_graph *g = k->g;
    for (int i = 0; i < g->nnodes; i++) {
        const tb_node *n = &g->nodes[i];
        if (n->region < 0 && n->op->lane == TB_LANE_TOLL &&
            k->silent.silent[n->in[0]])
            return n;
    }
    return NULL;
}

/* --- JSON ----------------------------------------------------------------- */

static void flat_json(const corners *c, tb_json *j)
{
    double most = 0;
    for (size_t i = 0; i < c->nflat; i++)
        most = c->flat[i].value > most ? c->flat[i].value : most;
    if (c->nflat)
        tb_json_number(j, "flat_row_gain", most);
    else
        tb_json_null(j, "flat_row_gain");
    tb_json_array(j, "flat_rows");
    for (size_t i = 0; i < c->nflat; i++) {
        const tb_flat *f = &c->flat[i];
        tb_json_object(j, NULL);
        tb_json_string(j, "norm", f->norm);
        tb_json_string(j, "eps_mode", f->mode);
        tb_json_number(j, "eps", f->eps);
        tb_json_string(j, "gain", f->gain);
        tb_json_number(j, "value", f->value);
        tb_json_number(j, "measured", f->measured);
        tb_json_end(j);
    }
    tb_json_end(j);
}

/* A power, null where the rules do not say; what vanishes has -inf. */
static void power_json(const char *key, int power, tb_json *j)
{
    if (power == TB_LARGE_UNKNOWN)
        tb_json_null(j, key);
    else
        tb_json_number(
            j, key, power == TB_LARGE_NONE ? -__builtin_inf() : (double)power);
}

static tb_status stream_json(tb_ctx *ctx, const powers *p, int i, tb_json *j)
{
    tb_buf b;
    tb_buf_init(&b, ctx);
    tb_status s = tb_large_value_print(&p->form, i, TB_NOTE_TEXT, &b);
    tb_json_object(j, NULL);
    tb_json_string(j, "stream", p->kind->g->streams[i]);
    tb_json_string(j, "value", tb_buf_str(&b));
    power_json("value_power", p->form.value[i], j);
    tb_json_number(j, "value_measured", p->seen.value[i]);
    power_json("jacobian_power", p->form.jacobian[i], j);
    tb_json_number(j, "jacobian_measured", p->seen.jacobian[i]);
    power_json("lane_power", p->form.lane[i], j);
    tb_json_number(j, "lane_measured", p->seen.lane[i]);
    tb_json_end(j);
    tb_buf_clear(&b);
    return s;
}

static tb_status step_json(tb_ctx *ctx, const powers *p, tb_json *j)
{
    tb_buf b;
    const tb_graph *g = p->kind->g;
    bool each = tb_explained_each(ctx, &p->kind->closed);
    tb_buf_init(&b, ctx);
    tb_json_object(j, NULL);
    tb_json_string(j, "blocks", p->kind->blocks);
    tb_json_string(j, "sublayer", each ? "F" : g->cuts[p->step + 1].name);
    tb_status s = tb_jacobian_print(ctx, &p->form.leading, TB_NOTE_TEXT, &b);
    tb_json_string(j, "jacobian", tb_buf_str(&b));
    tb_json_array(j, "streams");
    for (int i = 0; s == TB_OK && i < g->nstreams; i++)
        s = stream_json(ctx, p, i, j);
    tb_json_end(j);
    tb_json_end(j);
    tb_buf_clear(&b);
    return s;
}

static void sizes_json(const char *key, const size_t *v, tb_json *j)
{
    tb_json_array(j, key);
    for (int d = 0; d < TB_DEEP_COUNT; d++)
        tb_json_int(j, NULL, (int64_t)v[d]);
    tb_json_end(j);
}

static void matrix_json(const char *key, const tb_deep *d,
                        const double (*v)[TB_STREAMS_MOST], tb_json *j)
{
    tb_json_array(j, key);
    for (int i = 0; i < TB_DEEP_COUNT; i++) {
        tb_json_array(j, NULL);
        for (int k = 0; k < d->nstreams; k++)
            tb_json_number(j, NULL, v[i][k]);
        tb_json_end(j);
    }
    tb_json_end(j);
}

static void deep_json(const tb_deep *d, tb_json *j)
{
    tb_json_object(j, "deep");
    tb_json_bool(j, "measured", d->measured);
    if (!d->measured) {
        tb_json_string(j, "why", d->why);
    } else {
        sizes_json("blocks", d->depth, j);
        sizes_json("sublayers", d->sublayers, j);
        matrix_json("std", d, d->std, j);
        matrix_json("lane", d, d->lane, j);
        tb_json_number(j, "zero_branch_std", TB_DEEP_SILENT_STD);
        tb_json_array(j, "zero_branch_lane");
        for (int i = 0; i < TB_DEEP_COUNT; i++)
            tb_json_number(j, NULL, d->silent[i]);
        tb_json_end(j);
    }
    tb_json_end(j);
}

tb_status tb_explain_corners_json(tb_ctx *ctx, tb_explained *e, tb_json *j)
{
    corners c;
    TB_TRY(measure(ctx, e, &c));
    tb_json_bool(j, "small_branch_restored",
                 restoring_norm(&e->kinds[0]) != NULL);
    flat_json(&c, j);
    tb_json_array(j, "large_branch");
    for (size_t i = 0; i < c.npowers; i++)
        TB_TRY(step_json(ctx, &c.powers[i], j));
    tb_json_end(j);
    deep_json(&c.deep, j);
    return TB_OK;
}

/* --- text ----------------------------------------------------------------- */

static void flat_line(const corners *c, tb_buf *out)
{
    tb_buf_puts(out, "amplified by ");
    for (size_t i = 0; i < c->nflat; i++) {
        const tb_flat *f = &c->flat[i];
        tb_buf_printf(out, "%s%s = %.4g", i ? ", " : "", f->gain, f->value);
        if (f->measured == f->measured)
            tb_buf_printf(out, " (measured %.4g)", f->measured);
        tb_buf_printf(out, " in %s, eps %g", f->norm, f->eps);
    }
}

static void power_words(int power, tb_buf *out)
{
    if (power == TB_LARGE_NONE)
        tb_buf_puts(out, " vanishes");
    else if (power == 0)
        tb_buf_puts(out, " stays");
    else if (power == 1 || power == -1)
        tb_buf_puts(out, power > 0 ? " like t" : " like 1/t");
    else
        tb_buf_printf(out, " like t^%d", power);
}

/* By the rules; what they do not say, or say otherwise, is measured. */
static void either(int power, double seen, tb_buf *out)
{
    bool known = power != TB_LARGE_UNKNOWN, is_number = seen == seen;
    if (known)
        power_words(power, out);
    if (is_number && (!known || tb_fabs(seen - power) > 0.1))
        tb_buf_printf(out,
                      known ? " (measured: t^%.2f)" : " like t^%.2f (measured)",
                      seen);
    else if (!known)
        tb_buf_puts(out, " unknown");
}

/* What comes of stream i; formulas where there is one stream. */
static tb_status large_words(tb_ctx *ctx, const powers *p, int i, tb_buf *out)
{
    const tb_large_form *l = &p->form;
    if (l->value[i] == 0) {
        tb_buf_puts(out, " to ");
        TB_TRY(tb_large_value_print(l, i, TB_NOTE_TEXT, out));
    } else {
        either(l->value[i], p->seen.value[i], out);
    }
    tb_buf_puts(out, "; Jacobian");
    if (l->jacobian[i] == 0 && l->nstreams == 1) {
        tb_buf_puts(out, " to ");
        TB_TRY(tb_jacobian_print(ctx, &l->leading, TB_NOTE_TEXT, out));
    } else {
        either(l->jacobian[i], p->seen.jacobian[i], out);
    }
    tb_buf_puts(out, "; lane");
    either(l->lane[i], p->seen.lane[i], out);
    return TB_OK;
}

/** Words about each stream; streams with the same words stand together. */
typedef struct grouped {
    const char *words[TB_STREAMS_MOST];
    int n;
} grouped;

static tb_status keep(tb_explained *e, tb_buf *b, grouped *all)
{
    const char *text =
        b->failed ? NULL : tb_arena_strdup(&e->arena, tb_buf_str(b));
    tb_buf_clear(b);
    all->words[all->n++] = text;
    return text ? TB_OK : TB_ERR_MEMORY;
}

/* "x', y'" of the streams that have words i; false: said before. */
static bool names_of(const grouped *all, int i, const char *const *streams,
                     const char *mark, tb_buf *out)
{
    const char *comma = "";
    for (int k = 0; k < i; k++)
        if (tb_streq(all->words[k], all->words[i]))
            return false;
    for (int k = i; k < all->n; k++)
        if (tb_streq(all->words[k], all->words[i])) {
            tb_buf_printf(out, "%s%s%s", comma, streams[k], mark);
            comma = ", ";
        }
    return true;
}

static tb_status large_step(tb_ctx *ctx, const tb_terminal *t, tb_explained *e,
                            const powers *p, const char **label, tb_buf *out)
{
    const tb_graph *g = p->kind->g;
    grouped all = {.n = 0};
    tb_buf b;
    for (int i = 0; i < g->nstreams; i++) {
        tb_buf_init(&b, ctx);
        tb_status s = large_words(ctx, p, i, &b);
        tb_status kept = keep(e, &b, &all);
        TB_TRY(s);
        TB_TRY(kept);
    }
    for (int i = 0; i < g->nstreams; i++) {
        tb_buf_init(&b, ctx);
        if (**label)
            tb_buf_puts(&b, "t*F for F: ");
        if (e->nkinds > 1 && p->step == 0 && i == 0)
            tb_buf_printf(&b, "%s: ", p->kind->blocks);
        if (names_of(&all, i, g->streams, "'", &b)) {
            tb_buf_puts(&b, all.words[i]);
            tb_explain_wrap(t, *label, tb_buf_str(&b), out);
            *label = "";
        }
        tb_buf_clear(&b);
    }
    return TB_OK;
}

/* F -> t F: powers of t, or what is left. */
static tb_status large_lines(tb_ctx *ctx, const tb_terminal *t, tb_explained *e,
                             const corners *c, tb_buf *out)
{
    const char *label = "Large F";
    for (size_t n = 0; n < c->npowers; n++)
        TB_TRY(large_step(ctx, t, e, &c->powers[n], &label, out));
    return TB_OK;
}

static void numbers(const double (*v)[TB_STREAMS_MOST], int k, tb_buf *out)
{
    for (int d = 0; d < TB_DEEP_COUNT; d++)
        tb_buf_printf(out, "%s%.3g", d ? ", " : "", v[d][k]);
}

static bool near(double a, double b)
{
    return tb_fabs(a - b) < 1e-3 * b;
}

/* What the three numbers are, where they are something simple. */
static void std_words(const tb_deep *d, int k, tb_buf *out)
{
    bool sum = true, one = true;
    for (int i = 0; i < TB_DEEP_COUNT; i++) {
        double v = d->std[i][k];
        sum = sum && near(v, tb_sqrt(1.0 + (double)d->sublayers[i]));
        one = one && near(v, d->std[0][k]);
    }
    if (one)
        tb_buf_printf(out, "%.3g at any depth", d->std[0][k]);
    else
        numbers(d->std, k, out);
    if (sum)
        tb_buf_puts(out, " = sqrt(1 + sublayers)");
}

static void lane_words(const tb_deep *d, int k, tb_buf *out)
{
    bool same = true, geometric = d->lane[0][k] > 0;
    double rate[TB_DEEP_COUNT] = {0};
    for (int i = 0; i < TB_DEEP_COUNT; i++) {
        same = same && near(d->lane[i][k], d->lane[0][k]);
        if (d->lane[i][k] > 0)
            rate[i] = tb_exp(tb_log(d->lane[i][k]) / (double)d->sublayers[i]);
        geometric = geometric && near(rate[i], rate[0]);
    }
    if (same || d->lane[0][k] == 0) {
        tb_buf_printf(out, "%.3g at any depth", d->lane[0][k]);
        return;
    }
    numbers(d->lane, k, out);
    if (geometric)
        tb_buf_printf(out, ", a factor %.3g a sublayer", rate[0]);
}

static bool is_flat(const double *v)
{
    return near(v[0], v[1]) && near(v[1], v[2]);
}

/* Without branches: what a lane with norms does to a stream that is not of
 * unit variance. */
static void silent_words(const tb_deep *d, tb_buf *out)
{
    if (near(d->silent[0], 1) && is_flat(d->silent))
        return;
    tb_buf_printf(out,
                  "; with F = 0, below a stream of standard deviation %d, "
                  "the lane is %.3g",
                  (int)TB_DEEP_SILENT_STD, d->silent[0]);
    if (is_flat(d->silent))
        tb_buf_puts(out, " at any depth");
    else
        tb_buf_printf(out, ", %.3g, %.3g", d->silent[1], d->silent[2]);
}

static tb_status deep_line(tb_explained *e, const tb_deep *d, tb_buf *out)
{
    const tb_graph *g = tb_model_graph(e->model, e->layers.first);
    grouped all = {.n = 0};
    if (!d->measured) {
        tb_buf_printf(out, "not measured: %s", d->why);
        return TB_OK;
    }
    tb_buf_printf(out, "branches of unit variance, %zu, %zu, %zu blocks: ",
                  d->depth[0], d->depth[1], d->depth[2]);
    for (int k = 0; k < d->nstreams; k++) {
        tb_buf b;
        tb_buf_init(&b, e->arena.ctx);
        tb_buf_puts(&b, "standard deviation at the top ");
        std_words(d, k, &b);
        tb_buf_puts(&b, ", lane ");
        lane_words(d, k, &b);
        TB_TRY(keep(e, &b, &all));
    }
    for (int k = 0; k < d->nstreams; k++) {
        tb_buf b;
        tb_buf_init(&b, e->arena.ctx);
        if (names_of(&all, k, g->streams, "", &b))
            tb_buf_printf(out, "%s%s%s%s", k ? "; " : "",
                          d->nstreams > 1 ? tb_buf_str(&b) : "",
                          d->nstreams > 1 ? ": " : "", all.words[k]);
        tb_buf_clear(&b);
    }
    silent_words(d, out);
    return TB_OK;
}

static void words(const tb_terminal *t, const char *label, const tb_buf *b,
                  tb_buf *out)
{
    tb_buf line;
    tb_buf_init(&line, out->ctx);
    tb_buf_printf(&line, "%-10s%s", label, tb_buf_str(b));
    tb_term_wrap(out, t, 10, tb_buf_str(&line));
    tb_buf_clear(&line);
}

/* x + norm(F(x)) does not start near the identity with a small F. */
static void small_line(const tb_terminal *t, const tb_explained *e, tb_buf *out)
{
    const tb_node *n = restoring_norm(&e->kinds[0]);
    tb_buf b;
    if (!n)
        return;
    tb_buf_init(&b, out->ctx);
    tb_buf_printf(&b,
                  "%s gives a small F(x) its size back, down to a standard "
                  "deviation of about sqrt(eps): only F = 0 itself is near "
                  "F = 0",
                  n->op->symbol);
    words(t, "Small F", &b, out);
    tb_buf_clear(&b);
}

tb_status tb_explain_corners(tb_ctx *ctx, tb_explained *e, const tb_terminal *t,
                             tb_buf *out)
{
    corners c;
    tb_buf b;
    TB_TRY(measure(ctx, e, &c));
    small_line(t, e, out);
    TB_TRY(large_lines(ctx, t, e, &c, out));
    tb_buf_init(&b, ctx);
    tb_status s = deep_line(e, &c.deep, &b);
    words(t, "N large", &b, out);
    tb_buf_clear(&b);
    TB_TRY(s);
    if (c.nflat == 0)
        return tb_buf_status(out);
    tb_buf_init(&b, ctx);
    flat_line(&c, &b);
    words(t, "Flat row", &b, out);
    tb_buf_clear(&b);
    return tb_buf_status(out);
}
