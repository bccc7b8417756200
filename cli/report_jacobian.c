/* SPDX-License-Identifier: MIT */
/* Plot 6 of a report: Jacobians of single sublayers, by depth, and all singular
 * values of a few of them. */
#include "report_parts.h"

#include <stdio.h>

/* Below this share of the largest a singular value is rounding. */
static double rounding(const tb_flow *f)
{
    return f->dtype == TB_F64 ? 1e-13 : 1e-6;
}

static void by_depth(report_sink *s, pool *p, const tb_flow_row *rows, size_t n,
                     const char *title)
{
    double *k = pool_get(p, n, sizeof *k), *rms = pool_get(p, n, sizeof *rms);
    double *low = pool_get(p, n, sizeof *low);
    double *high = pool_get(p, n, sizeof *high);
    double *most = pool_get(p, n, sizeof *most);
    const char **names = pool_get(p, n, sizeof *names);
    bool probes = false, first = rows[0].k == 1;
    for (size_t i = 0; !p->failed && i < n; i++) {
        k[i] = (double)rows[i].k;
        names[i] = rows[i].name;
        rms[i] = rows[i].jacobian_rms;
        low[i] = rms[i] - 2 * rows[i].jacobian_rms_error;
        high[i] = rms[i] + 2 * rows[i].jacobian_rms_error;
        most[i] = rows[i].sigma_max;
        probes = probes || rows[i].jacobian_rms_error > 0;
    }
    const tb_series lines[] = {{.label = "largest singular value",
                                .x = k,
                                .y = most,
                                .n = n,
                                .marker = TB_MARK_SQUARE,
                                .role = "jac"},
                               {.label = "RMS of all",
                                .x = k,
                                .y = rms,
                                .n = n,
                                .tone = TB_TONE_TOLL,
                                .marker = TB_MARK_DOT,
                                .role = "jac",
                                .low = probes ? low : NULL,
                                .high = probes ? high : NULL}};
    const tb_chart c = {
        .title = pool_text(p, "The Jacobian of each sublayer%s", title),
        .x_label = "sublayer k",
        .y_label = "log scale",
        .x_names = first ? names : NULL,
        .n_names = first ? n : 0,
        .series = lines,
        .count = 2,
        .log_y = true,
        .has_ref = true,
        .ref = 1,
        .ref_label = "1"};
    if (!p->failed)
        sink_chart(s, &c,
                   probes ? "By probes; the band is two standard errors to "
                            "either side. The largest is a lower bound."
                          : NULL);
}

/* A curve of a floor; what is rounding is 0. */
static tb_series floor_line(pool *p, const tb_flow *f, const tb_flow_row *r)
{
    const tb_spectrum *x = r->spectrum;
    double *y = pool_get(p, x->n, sizeof *y), *at = pool_get(p, x->n, 8);
    for (size_t i = 0; y && at && i < x->n; i++) {
        at[i] = (double)(i + 1);
        y[i] = x->values[i] > rounding(f) * x->max ? x->values[i] : 0;
    }
    return (tb_series){.label = pool_text(p, "k %zu, %s of block %zu", r->k,
                                          r->name, r->layer),
                       .x = at,
                       .y = y,
                       .n = x->n,
                       .role = "jac"};
}

static void chosen_floors(report_sink *s, pool *p, const tb_flow *f,
                          const tb_flow_row *rows, size_t n, const char *title)
{
    enum { MOST = 9 };
    tb_series lines[MOST];
    size_t count = 0;
    for (size_t i = 0; i < n && count < MOST; i++)
        if (rows[i].spectrum)
            lines[count++] = floor_line(p, f, &rows[i]);
    const tb_chart c = {
        .title = pool_text(p, "Singular values of chosen floors%s", title),
        .x_label = "number, the largest is 1",
        .y_label = "log scale",
        .series = lines,
        .count = count,
        .log_y = true,
        .has_ref = true,
        .ref = 1,
        .ref_label = "1"};
    if (count && !p->failed)
        sink_chart(s, &c,
                   pool_text(p,
                             "The sublayers of the first block, of the middle "
                             "one and of the last. Below %s of the largest a "
                             "value is rounding and counts as 0.",
                             pool_number(p, rounding(f))));
}

/* Standard errors of tr(J)/d, and why there are no spectra. */
static void by_probes(report_sink *s, pool *p, const tb_flow *f,
                      const tb_flow_row *rows, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i].identity_share_error > most)
            most = rows[i].identity_share_error;
    sink_paragraph(s,
                   "Batch, tokens and width make %zu numbers of x; above 512 "
                   "a Jacobian is not written down: its trace and RMS are "
                   "those of random probes (standard error of tr(J)/d at most "
                   "%s), and there are no spectra of single floors.",
                   f->batch * f->tokens * f->width, pool_number(p, most));
}

void report_jacobians(report_sink *s, pool *p, const tb_flow *f,
                      const tb_flow_stack *stack, const char *title)
{
    const tb_flow_row *rows = f->rows + stack->first + 1;
    size_t n = stack->nrows - 1;
    if (n == 0 || !rows[0].audited) {
        sink_paragraph(s, "Not measured: flow --audit does.");
        return;
    }
    by_depth(s, p, rows, n, title);
    chosen_floors(s, p, f, rows, n, title);
    if (!rows[0].spectrum && rows[0].identity_share_error > 0)
        by_probes(s, p, f, rows, n);
}
