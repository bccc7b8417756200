/* SPDX-License-Identifier: MIT */
/* S7, corners of one norm: a branch that is zero, a list without spread. */
#include "flow/flow_model.h"
#include "pictures/shot_s7.h"

/** A square Jacobian by z, in the shot's arena. */
typedef struct grid {
    size_t d;
    double *j;
} grid;

static tb_status jacobian(tb_shot *s, const char *text, const double *z,
                          size_t d, double eps, grid *out)
{
    const tb_eval_value set = {"x", 1, {d}, z};
    const tb_eval e = {.text = text,
                       .sets = &set,
                       .nsets = 1,
                       .jacobian = "x",
                       .eps = &eps,
                       .seed = shot_whole(s, "seed")};
    tb_eval_result *r;
    if (!text)
        return TB_ERR_MEMORY;
    TB_TRY(tb_eval_run(s->ctx, &e, &r));
    out->d = d;
    out->j = shot_alloc(s, d * d, sizeof *out->j);
    if (out->j)
        memcpy(out->j, r->jacobian.data, d * d * sizeof *out->j);
    tb_eval_free(s->ctx, r);
    return out->j ? TB_OK : TB_ERR_MEMORY;
}

/* Singular values, largest first; g stays. */
static tb_status values_of(tb_shot *s, const grid *g, double *out)
{
    double *rows = shot_alloc(s, g->d * g->d, sizeof *rows);
    if (!rows)
        return TB_ERR_MEMORY;
    memcpy(rows, g->j, g->d * g->d * sizeof *rows);
    tb_singular_values(s->ctx, rows, g->d, out);
    return TB_OK;
}

/* --- a: F = 0 ------------------------------------------------------------- */

static tb_status put_grid(tb_shot *s, const grid *g, const char *title,
                          bool beside)
{
    tb_heat *h = shot_alloc(s, 1, sizeof *h);
    if (!h)
        return TB_ERR_MEMORY;
    *h = (tb_heat){.title = title,
                   .rows = g->d,
                   .columns = g->d,
                   .values = g->j,
                   .row_label = "output",
                   .column_label = "input",
                   .value_label = "entry of the Jacobian",
                   .limit = 1,
                   .decimals = 2,
                   .width = 370,
                   .outline_diagonal = true};
    (beside ? shot_beside : shot_below)(s, &shot_heat, h);
    return TB_OK;
}

/* x = norm(x + 0*F(x)), n times; the last line is the value. */
static const char *repeated(tb_shot *s, const char *line, size_t n)
{
    tb_buf b;
    tb_buf_init(&b, s->ctx);
    for (size_t i = 0; i < n; i++)
        tb_buf_printf(&b, "x = %s\n", line);
    tb_buf_puts(&b, "x");
    const char *text = b.failed ? NULL : shot_text(s, "%s", tb_buf_str(&b));
    tb_buf_clear(&b);
    return text;
}

static double from_identity(const grid *g)
{
    double most = 0;
    for (size_t i = 0; i < g->d * g->d; i++)
        most =
            tb_max2(most, tb_fabs(g->j[i] - (i % (g->d + 1) == 0 ? 1.0 : 0.0)));
    return most;
}

/* Directions that keep more than a thousandth of the largest gain. */
static size_t rank_of(const double *values, size_t d)
{
    size_t n = 0;
    for (size_t i = 0; i < d; i++)
        n += values[i] > 1e-3 * values[0];
    return n;
}

tb_status s7_silent(tb_shot *s)
{
    static const char post_line[] = "norm(x + 0*ffn(x))",
                      pre_line[] = "x + 0*ffn(norm(x))";
    const shot_value *z = shot_get(s, "z");
    size_t d = z->n, n = shot_whole(s, "N");
    double eps = shot_num(s, "eps");
    double *one = shot_alloc(s, 2 * d, sizeof *one);
    grid post, pre, deep, deep_pre;
    if (!one)
        return TB_ERR_MEMORY;
    TB_TRY(jacobian(s, post_line, z->data, d, eps, &post));
    TB_TRY(jacobian(s, pre_line, z->data, d, eps, &pre));
    TB_TRY(jacobian(s, repeated(s, post_line, n), z->data, d, eps, &deep));
    TB_TRY(jacobian(s, repeated(s, pre_line, n), z->data, d, eps, &deep_pre));
    TB_TRY(values_of(s, &post, one));
    TB_TRY(values_of(s, &deep, one + d));
    TB_TRY(put_grid(s, &post, "Post-LN: J = J_LN", false));
    TB_TRY(put_grid(s, &pre, "Pre-LN: J = I", true));
    shot_title(s, "The box learns nothing: F = 0",
               shot_text(s,
                         "Post-LN: J_LN, %zu of %zu directions pass. Pre-LN: "
                         "the identity.",
                         rank_of(one, d), d));
    shot_tell(s, "d", "width", (double)d);
    shot_tell(s, "N", "floors", (double)n);
    shot_tell(s, "rank", "directions that pass Post-LN",
              (double)rank_of(one, d));
    shot_tell(s, "E3.max", "largest singular value of J_LN", one[0]);
    shot_tell(s, "E3.max.N", "the same after N floors", one[d]);
    shot_tell(s, "pre.off", "Pre-LN: largest entry of J - I",
              from_identity(&pre));
    shot_say(s, "Post-LN with F = 0 is J_LN: {rank} of {d} directions pass, at "
                "{E3.max}. The toll is paid once: after {N} such floors it is "
                "{E3.max.N}.");
    shot_say(s, "Pre-LN with F = 0 is I: nothing is lost, at any depth.");
    /* where eps is small beside the variance, and beside 1 at every floor */
    if (d > 2 && one[0] * tb_sqrt(eps) < 0.01 && eps * (double)n < 0.005) {
        shot_check_that(s, rank_of(one, d) == d - 2,
                        "Post-LN: J_LN has rank d - 2, here %zu of %zu",
                        rank_of(one, d), d);
        shot_check_that(s, tb_fabs(one[d] / one[0] - 1) < 0.01,
                        "Post-LN: %zu floors let pass what one does, %.6g", n,
                        one[d]);
    }
    shot_check_that(s,
                    from_identity(&pre) == 0 && from_identity(&deep_pre) == 0,
                    "Pre-LN: J is exactly I, through %zu floors too", n);
    return TB_OK;
}

/* --- b: sigma -> 0 -------------------------------------------------------- */

enum { SWEEP = 29, SWEEP_D = 8 };

/* mean 5, and a spread of exactly sigma */
static void list_of(double sigma, double z[SWEEP_D])
{
    static const double unit[SWEEP_D] = {-1.5, -0.5, -0.5, -0.5, 0, 0, 1, 2};
    for (size_t i = 0; i < SWEEP_D; i++)
        z[i] = 5 + sigma * unit[i];
}

/* Largest gain of J_LN, and that along z itself. */
static tb_status gains_at(tb_shot *s, double sigma, double eps, double *most,
                          double *radial)
{
    double z[SWEEP_D], values[SWEEP_D];
    grid g;
    list_of(sigma, z);
    TB_TRY(jacobian(s, "layernorm(x)", z, SWEEP_D, eps, &g));
    TB_TRY(values_of(s, &g, values));
    *most = values[0];
    *radial = values[SWEEP_D - 2];
    return TB_OK;
}

typedef struct sweep {
    double at[SWEEP], most[SWEEP], radial[SWEEP];
    double here, mine; /* log10 of the chosen sigma, and its gain */
    tb_series line[3];
    tb_chart chart;
} sweep;

static tb_status fill(tb_shot *s, double eps, sweep *w)
{
    for (size_t i = 0; i < SWEEP; i++) {
        w->at[i] = -6 + 0.25 * (double)i;
        TB_TRY(
            gains_at(s, tb_pow10(w->at[i]), eps, &w->most[i], &w->radial[i]));
    }
    w->line[0] = (tb_series){.label = "largest gain, 1/s",
                             .x = w->at,
                             .y = w->most,
                             .n = SWEEP,
                             .tone = TB_TONE_TOLL,
                             .line = 3,
                             .role = "toll"};
    w->line[1] =
        (tb_series){.label = "gain along the list itself, \xCE\xB5/s\xC2\xB3",
                    .x = w->at,
                    .y = w->radial,
                    .n = SWEEP,
                    .tone = TB_TONE_TOTAL,
                    .dash = TB_DASHED};
    w->chart = (tb_chart){
        .title = "What a norm does to a nudge, as the list gets flat",
        .x_label = "log10 of the spread \xCF\x83 (left: flat)",
        .y_label = "gain of J_LN",
        .series = w->line,
        .count = eps > 0 ? 2 : 1, /* without eps the second is rounding */
        .log_y = true,
        .has_ref = eps > 0,
        .ref = eps > 0 ? 1 / tb_sqrt(eps) : 0,
        .ref_label = "1/\xE2\x88\x9A\xCE\xB5",
        .width = 740,
        .height = 340};
    return TB_OK;
}

/* The chosen spread as a point; a flat list has no place on the axis. */
static void mark(sweep *w, double sigma, double gain)
{
    if (sigma < 1e-6)
        return;
    w->here = tb_log10(sigma);
    w->mine = gain;
    w->line[w->chart.count++] = (tb_series){.label = "the chosen \xCF\x83",
                                            .x = &w->here,
                                            .y = &w->mine,
                                            .n = 1,
                                            .tone = TB_TONE_BAD,
                                            .marker = TB_MARK_DIAMOND};
}

/* Asks for the value that does not exist; what the engine says to it. */
static tb_status refusal(tb_shot *s, const char **said, tb_status *status)
{
    double a, b;
    *status = gains_at(s, 0, 0, &a, &b);
    *said = shot_text(s, "%s", tb_error(s->ctx));
    tb_error_clear(s->ctx);
    return *status == TB_ERR_MEMORY || !*said ? TB_ERR_MEMORY : TB_OK;
}

static tb_status tell_here(tb_shot *s, double sigma, double eps, sweep *w)
{
    double most, radial, root = tb_sqrt(sigma * sigma + eps);
    TB_TRY(gains_at(s, sigma, eps, &most, &radial));
    mark(w, sigma, most);
    shot_tell(s, "E1.sigma", "spread \xCF\x83", sigma);
    shot_tell(s, "E1.s", "s = \xE2\x88\x9A(\xCF\x83\xC2\xB2 + \xCE\xB5)", root);
    shot_tell(s, "E1.std.out", "spread of the output, \xCF\x83/s",
              sigma / root);
    shot_tell(s, "E3.max", "largest gain of J_LN", most);
    shot_tell(s, "E3.radial", "gain along the list", radial);
    shot_say(s, "At \xCF\x83 = {E1.sigma} the norm divides by {E1.s}: the "
                "largest gain is {E3.max}, and the output has a spread of "
                "{E1.std.out}, not 1, where \xCE\xB5 is not small beside "
                "\xCF\x83\xC2\xB2.");
    /* the list stands around 5: its spread is rounded there */
    shot_check_that(s, tb_fabs(most * root - 1) < 1e-9 + 1e-14 / root,
                    "the largest gain is 1/s: %.8g", most);
    return TB_OK;
}

static bool falls(const double *y, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (y[i] > y[i - 1] * (1 + 1e-9))
            return false;
    return true;
}

tb_status s7_flat(tb_shot *s)
{
    double sigma = shot_num(s, "sigma"), eps = shot_num(s, "eps");
    sweep *w = shot_alloc(s, 1, sizeof *w);
    const char *said;
    tb_status status;
    if (!w)
        return TB_ERR_MEMORY;
    TB_TRY(fill(s, eps, w));
    TB_TRY(refusal(s, &said, &status));
    if (sigma == 0 && eps == 0) {
        s->refused = status;
        shot_say(s, "Division by zero: with \xCE\xB5 = 0 a flat list has no "
                    "value, and none is drawn.");
    } else {
        TB_TRY(tell_here(s, sigma, eps, w));
    }
    if (eps > 0)
        shot_say(s, "Without spread, \xCF\x83 = 0, the gain ends at "
                    "1/\xE2\x88\x9A\xCE\xB5: that is what \xCE\xB5 is for.");
    shot_say(s, shot_text(s,
                          "The engine, asked for a flat list and \xCE\xB5 = "
                          "0: \"%s\" (exit code %d).",
                          said, tb_status_exit(status)));
    shot_title(s, "Spread collapses: \xCF\x83 \xE2\x86\x92 0",
               shot_text(s,
                         "Largest gain of a norm: %.4g at a spread of 10, %.6g "
                         "at 1e-6.",
                         w->most[SWEEP - 1], w->most[0]));
    shot_below(s, &shot_chart, &w->chart);
    shot_check_that(s, falls(w->most, SWEEP),
                    "the gain only grows as the spread shrinks");
    if (eps > 0)
        shot_check_that(s, w->most[0] <= (1 + 1e-9) / tb_sqrt(eps),
                        "and ends at 1/sqrt(eps) = %.6g", 1 / tb_sqrt(eps));
    shot_check_that(s, status == TB_ERR_INPUT,
                    "a flat list and eps = 0: a typed error, not a number");
    return TB_OK;
}
