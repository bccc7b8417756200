/* SPDX-License-Identifier: MIT */
/* What an audit measures, against formulas, differences and all rows. */
#include "gradients/flow_help.h"

static tb_flow_spec audit_spec(size_t depth)
{
    tb_flow_spec s = tiny_spec(depth, TB_COTANGENT_RANDOM);
    s.audit = &tb_flow_audit;
    return s;
}

/* --- Jacobians that are known --------------------------------------------- */

static void check_scaled(tb_test *T, const char *block, double by)
{
    tb_flow_spec s = audit_spec(2);
    s.settings.init = "attn.o, ffn.down: zeros";
    tb_flow *f = measure(T, block, &s);
    TB_REQUIRE(T, f);
    TB_CHECK(T, !f->rows[0].audited);
    for (size_t k = 1; k < f->nrows; k++) {
        const tb_flow_row *r = &f->rows[k];
        TB_REQUIRE(T, r->audited && r->spectrum);
        TB_NEAR(T, r->identity_share, by, 1e-15);
        TB_NEAR(T, r->jacobian_rms, tb_fabs(by), 1e-15);
        TB_NEAR(T, r->jacobian_off, tb_fabs(by - 1), 1e-15);
        TB_NEAR(T, r->sigma_max, tb_fabs(by), 1e-14);
        TB_NEAR(T, r->spectrum->values[r->spectrum->n - 1], tb_fabs(by), 1e-14);
        TB_CHECK(T, r->identity_share_error == 0 && r->jacobian_rms_error == 0);
    }
    tb_flow_free(T->ctx, f);
}

TB_TEST(silent_branches_leave_the_lane)
{
    check_scaled(T, "pre-ln", 1);
    check_scaled(T, "x = 2*x + F(norm(x))", 2);
    check_scaled(T, "x = F(x) - x/2", -0.5);
    check_scaled(T, "x = F(x)", 0);
}

/* J_LN of every token, E2 and E3: trace (d - 1 - var/s^2)/s, squares
 * (d - 2)/s^2 + eps^2/s^6, largest singular value 1/s. */
TB_TEST(silent_post_ln_is_its_norm)
{
    enum { N = TOKENS * WIDTH };
    const double d = WIDTH, eps = 1e-5;
    double trace = 0, square = 0, largest = 0;
    measured x;
    tb_flow_spec s = audit_spec(1);
    s.settings.init = "ffn.down: zeros";
    TB_OKAY(T, open_measured(T->ctx, &x, "x = norm(x + ffn(x))", &s));
    const double *stem = tb_model_stream(x.m, 0);
    for (int t = 0; t < TOKENS; t++) {
        double mean = 0, var = 0;
        for (int j = 0; j < WIDTH; j++)
            mean += stem[t * WIDTH + j] / d;
        for (int j = 0; j < WIDTH; j++)
            var += (stem[t * WIDTH + j] - mean) * (stem[t * WIDTH + j] - mean);
        var /= d;
        double v = var + eps, one = tb_sqrt(v);
        trace += (d - 1 - var / v) / one;
        square += (d - 2) / v + eps * eps / (v * v * v);
        largest = 1 / one > largest ? 1 / one : largest;
    }
    const tb_flow_row *r = &x.f->rows[1];
    TB_NEAR(T, r->identity_share, trace / N, 1e-12);
    TB_NEAR(T, r->jacobian_rms, tb_sqrt(square / N), 1e-12);
    TB_NEAR(T, r->sigma_max, largest, 1e-12);
    TB_NEAR(T, r->jacobian_off * r->jacobian_off, (square - 2 * trace) / N + 1,
            1e-12);
    close_measured(T->ctx, &x);
}

/* --- against differences -------------------------------------------------- */

TB_TEST(one_sublayer_by_differences)
{
    static const char *const blocks[] = {
        "x = norm(x + ffn(x))", "x = x + attn(norm(x))", "x = ffn(norm(x))"};
    enum { D = 8, T4 = 4, N = D * T4 };
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    for (size_t i = 0; i < TB_LEN(blocks); i++) {
        measured x;
        double J[N * N], G[N * N], trace = 0, off = 0;
        tb_flow_spec s = audit_spec(1);
        s.settings.width = D;
        s.settings.context = T4;
        TB_OKAY(T, open_measured(T->ctx, &x, blocks[i], &s));
        const tb_flow_row *r = &x.f->rows[1];
        TB_OKAY(T, difference_jacobian(&x, N, J));
        gram(J, N, G);
        for (size_t a = 0; a < N; a++)
            for (size_t b = 0; b < N; b++) {
                double rest = J[a * N + b] - (a == b);
                trace += a == b ? J[a * N + b] : 0;
                off += rest * rest;
            }
        TB_NEAR(T, r->identity_share, trace / N, 1e-7);
        TB_NEAR(T, r->jacobian_rms, k->norm2(N * N, J) / tb_sqrt(N), 1e-7);
        TB_NEAR(T, r->jacobian_off, tb_sqrt(off / N), 1e-7);
        TB_NEAR(T, r->sigma_max * r->sigma_max, largest_eigenvalue(k, G, N),
                1e-6);
        close_measured(T->ctx, &x);
    }
}

/* Two ways to the same numbers, for every built-in: rows of blocks with
 * several streams and with lists among them. */
TB_TEST(spectra_of_chosen_floors_agree)
{
    for (size_t i = 0; i < tb_builtin_count(); i++) {
        tb_flow_spec s = audit_spec(5);
        s.settings.width = 8;
        s.settings.context = 3;
        tb_flow *f = measure(T, tb_builtin_name(i), &s);
        TB_REQUIRE(T, f);
        for (size_t k = 1; k < f->nrows; k++) {
            const tb_flow_row *r = &f->rows[k];
            bool chosen = r->layer == 1 || r->layer == 3 || r->layer == 5;
            TB_REQUIRE(T, r->audited && chosen == (r->spectrum != NULL));
            if (!chosen)
                continue;
            TB_CHECK(T, r->spectrum->n % (3 * 8) == 0);
            TB_NEAR(T, r->spectrum->max, r->sigma_max, 1e-6);
            TB_NEAR(T, r->spectrum->rms, r->jacobian_rms, 1e-12);
        }
        tb_flow_free(T->ctx, f);
    }
}

/* --- probes --------------------------------------------------------------- */

/** What all rows of a sublayer's Jacobian say. */
typedef struct whole {
    double trace, square, largest; /* trace / n and so on */
} whole;

static tb_status by_all_rows(measured *x, size_t part, int hi, size_t n,
                             whole *out)
{
    tb_ctx *ctx = x->m->ctx;
    const tb_kern *k = tb_kern_get(ctx, TB_F64);
    double *J = tb_alloc(ctx, n * n, sizeof *J), *e = tb_alloc(ctx, n, 8);
    double *v = tb_alloc(ctx, n, 8), *y = tb_alloc(ctx, n, 8);
    tb_run run;
    tb_status s = J && e && v && y ? tb_model_run(x->m, part, &x->batch, &run)
                                   : TB_ERR_MEMORY;
    *out = (whole){0};
    for (size_t i = 0; i < n && s == TB_OK; i++) {
        const void *gout[] = {e};
        void *gin[] = {J + i * n};
        tb_bwd b = {.hi = hi, .lo = hi - 1, .gout = gout, .gin = gin};
        e[i] = 1;
        s = tb_plan_backward(ctx, &run, &b);
        e[i] = 0;
        v[i] = 1 + 0.001 * (double)(i * 7919 % 997);
        out->trace += J[i * n + i] / (double)n;
    }
    for (int step = 0; step < 300 && s == TB_OK; step++) {
        memset(y, 0, n * sizeof *y);
        for (size_t i = 0; i < n; i++) /* y = J'(J v) */
            k->axpy(n, k->dot(n, J + i * n, v), J + i * n, y);
        out->largest = tb_sqrt(k->norm2(n, y));
        k->scale(n, 1 / k->norm2(n, y), y, v);
    }
    if (s == TB_OK)
        out->square = k->dot(n * n, J, J) / (double)n;
    tb_free(ctx, J);
    tb_free(ctx, e);
    tb_free(ctx, v);
    tb_free(ctx, y);
    return s;
}

TB_TEST(probes_are_near_all_rows)
{
    enum { D = 64, T9 = 9, N = D * T9 };
    measured x;
    tb_flow_spec s = audit_spec(1);
    s.settings.width = D;
    s.settings.context = T9;
    TB_OKAY(T, open_measured(T->ctx, &x, "post-ln", &s));
    for (int k = 1; k <= 2; k++) {
        const tb_flow_row *r = &x.f->rows[k];
        whole w;
        TB_OKAY(T, by_all_rows(&x, 1, k, N, &w));
        TB_CHECK(T, r->audited && !r->spectrum);
        TB_CHECK(T,
                 r->identity_share_error > 0 && r->identity_share_error < 0.05);
        TB_CHECK(T, r->jacobian_rms_error > 0 && r->jacobian_rms_error < 0.1);
        TB_CHECK(T, tb_fabs(r->identity_share - w.trace) <
                        5 * r->identity_share_error);
        TB_CHECK(T, tb_fabs(r->jacobian_rms - tb_sqrt(w.square)) <
                        5 * r->jacobian_rms_error);
        TB_CHECK(T, r->sigma_max < w.largest * (1 + 1e-9));
        TB_CHECK(T, r->sigma_max > w.largest * 0.98);
    }
    close_measured(T->ctx, &x);
}

/* A number that is not finite is a number. */
TB_TEST(what_is_not_finite_shows)
{
    tb_flow_spec s = audit_spec(3);
    tb_flow *f = measure(T, "x = 1e200*x", &s);
    TB_REQUIRE(T, f);
    TB_NEAR(T, f->rows[1].identity_share, 1e200, 1e186);
    TB_CHECK(T, !tb_isfinite(f->rows[1].jacobian_rms));
    TB_CHECK(T, !f->rows[1].spectrum);
    tb_flow_free(T->ctx, f);
}
