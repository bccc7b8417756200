/* SPDX-License-Identifier: MIT */
/* Heat maps: sign and trouble are told by shape as well as colour, many cells
 * are merged and the figure says so, numbers stand where they fit. */
#include "test_pictures_demo.h"

#include "pictures/heat.h"

static double zero_divide(double v)
{
    volatile double zero = 0;
    return v / zero;
}

/* J of a LayerNorm at the seeds' vector (2,4,4,4,5,5,7,9), eps 0. */
enum { D = 8 };
static void norm_jacobian(double j[D * D])
{
    static const double z[D] = {-1.5, -0.5, -0.5, -0.5, 0, 0, 1, 2};
    for (size_t r = 0; r < D; r++)
        for (size_t c = 0; c < D; c++)
            j[r * D + c] = 0.5 * ((r == c) - 0.125 - z[r] * z[c] / 8);
}

static const char *const x_names[D] = {"x1", "x2", "x3", "x4",
                                       "x5", "x6", "x7", "x8"};

static tb_heat jacobian_of(const double *j)
{
    return (tb_heat){.title = "Jacobian of LayerNorm",
                     .rows = D,
                     .columns = D,
                     .values = j,
                     .row_names = x_names,
                     .column_names = x_names,
                     .row_label = "output",
                     .column_label = "input",
                     .outline_diagonal = true};
}

TB_TEST(jacobian_golden)
{
    double j[D * D];
    norm_jacobian(j);
    tb_heat h = jacobian_of(j);
    tb_scene *s;
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_heat_scene(T->ctx, &h, &s));
    check_figure(T, s, out);
    const char *svg = tb_out_str(out);
    TB_CHECK(T, count(svg, "data-role=\"jac\"") == 1);
    TB_CHECK(T, count(svg, "data-role=\"jac-cell\"") == D * D);
    TB_CHECK(T, count(svg, "data-role=\"diag\"") == D);
    TB_CHECK(T, strstr(svg, "largest 0.438 at x5, x5"));
    TB_CHECK(T, strstr(svg, "<title>x8, x1: 0.125</title>"));
    golden(T, "heat_jacobian.svg", svg);
    tb_scene_destroy(s);
    tb_out_reset(out);
    TB_OKAY(T, tb_heat_term(T->ctx, &h, NULL, out));
    check_terminal(T, tb_out_str(out), 80, false);
    TB_CHECK(T, strstr(tb_out_str(out), "-0.109"));
    golden(T, "heat_jacobian.txt", tb_out_str(out));
    tb_out_reset(out);
    TB_OKAY(T, tb_heat_table_html(T->ctx, &h, out));
    TB_CHECK(T, well_formed(tb_out_str(out)));
    TB_CHECK(T, count(tb_out_str(out), "<td") == D * D);
    tb_out_destroy(out);
}

/* One tensor kind per row, one floor per column, six decades; some tensors
 * are not there, one is zero, one is nan. */
enum { KINDS = 9, FLOORS = 24 };
typedef struct demo_heat {
    double v[KINDS * FLOORS];
    bool missing[KINDS * FLOORS];
    char name[FLOORS][8];
    const char *floors[FLOORS];
    tb_heat heat;
} demo_heat;

static void demo_heat_fill(demo_heat *d)
{
    static const char *const kinds[KINDS] = {
        "attn.q", "attn.k",   "attn.v",   "attn.o",  "attn.norm",
        "ffn.up", "ffn.gate", "ffn.down", "ffn.norm"};
    for (size_t f = 0; f < FLOORS; f++) {
        tb_format(d->name[f], sizeof d->name[f], "%zu", f + 1);
        d->floors[f] = d->name[f];
        for (size_t k = 0; k < KINDS; k++) {
            double decades = -1 - 0.2 * (double)f - 0.1 * (double)(k * k % 7);
            d->v[k * FLOORS + f] = tb_pow10(decades);
            d->missing[k * FLOORS + f] = k == 6 && f > 11;
        }
    }
    d->v[FLOORS + 3] = 0;
    d->v[2 * FLOORS + 5] = zero_divide(0);
    d->heat = (tb_heat){.title = "Parameter gradients",
                        .rows = KINDS,
                        .columns = FLOORS,
                        .values = d->v,
                        .missing = d->missing,
                        .row_names = kinds,
                        .column_names = d->floors,
                        .row_label = "tensor",
                        .column_label = "floor",
                        .value_label = "RMS of the gradient, log scale",
                        .scale = TB_HEAT_LOG};
}

TB_TEST(gradients_golden)
{
    static demo_heat d;
    demo_heat_fill(&d);
    tb_scene *s;
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_heat_scene(T->ctx, &d.heat, &s));
    check_figure(T, s, out);
    const char *svg = tb_out_str(out);
    TB_CHECK(T, count(svg, "data-role=\"jac-cell\"") == KINDS * FLOORS - 14);
    TB_CHECK(T, count(svg, "data-role=\"none\"") == 12 + 1);
    TB_CHECK(T, count(svg, "data-role=\"floor-mark\"") == 1 + 1);
    TB_CHECK(T, count(svg, "data-role=\"gap-mark\"") == 1 + 1);
    TB_CHECK(T, strstr(svg, "<title>attn.v, 6: nan</title>"));
    TB_CHECK(T, strstr(svg, "12 without a value, 1 not finite."));
    golden(T, "heat_gradients.svg", svg);
    tb_scene_destroy(s);
    for (int w = 40; w <= 200; w += 40)
        for (int ascii = 0; ascii < 2; ascii++) {
            tb_terminal term = {.width = w, .ascii = ascii};
            tb_out_reset(out);
            TB_OKAY(T, tb_heat_term(T->ctx, &d.heat, &term, out));
            check_terminal(T, tb_out_str(out), (size_t)w, ascii);
            if (w == 80)
                golden(T,
                       ascii ? "heat_gradients_ascii.txt"
                             : "heat_gradients.txt",
                       tb_out_str(out));
        }
    tb_out_destroy(out);
}

/* 700 x 900 values with one large among them: few nodes, and it is seen. */
TB_TEST(many_values_are_merged)
{
    enum { R = 700, C = 900 };
    double *v = tb_alloc(T->ctx, (size_t)R * C, sizeof *v);
    TB_REQUIRE(T, v);
    for (size_t i = 0; i < (size_t)R * C; i++)
        v[i] = tb_test_uniform(T) - 0.5;
    v[123 * C + 456] = -7;
    tb_heat h = {.title = "large", .rows = R, .columns = C, .values = v};
    tb_scene *s;
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_heat_scene(T->ctx, &h, &s));
    check_figure(T, s, out);
    const char *svg = tb_out_str(out);
    TB_CHECK(T, count(svg, "<") - count(svg, "</") <= 5000);
    TB_CHECK(T, strstr(svg, "700 x 900 values: each cell shows the largest"));
    TB_CHECK(T, count(svg, "class=\"f-in\"") > 100);
    TB_CHECK(T, strstr(svg, "least -7 at"));
    tb_scene_destroy(s);
    tb_out_reset(out);
    tb_terminal term = {.width = 60};
    TB_OKAY(T, tb_heat_term(T->ctx, &h, &term, out));
    check_terminal(T, tb_out_str(out), 60, false);
    tb_out_reset(out);
    TB_OKAY(T, tb_heat_table_html(T->ctx, &h, out));
    TB_CHECK(T, count(tb_out_str(out), "<td") <= 2500);
    TB_CHECK(T, strstr(tb_out_str(out), ">-7<"));
    tb_out_destroy(out);
    tb_free(T->ctx, v);
}

/* All zero, all missing, all nan, one cell; a limit below the values. */
TB_TEST(nothing_to_colour)
{
    double zero[4] = {0}, bad[4], big[4] = {-3, 1, 0, 5};
    const bool none[4] = {true, true, true, true};
    for (size_t i = 0; i < 4; i++)
        bad[i] = zero_divide(i % 2 ? 1 : 0);
    const struct {
        tb_heat h;
        const char *says;
    } cases[] = {
        {{.title = "a", .values = zero}, "all values are 0"},
        {{.title = "b", .values = zero, .scale = TB_HEAT_LOG},
         "no positive values"},
        {{.title = "c", .values = bad}, "not finite: 4 cells"},
        {{.title = "d", .values = zero, .missing = none}, "none"},
        {{.title = "e", .values = big, .limit = 2},
         "beyond the scale, at its end: 2 cells"},
    };
    tb_out *out;
    tb_scene *s;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    for (size_t i = 0; i < TB_LEN(cases); i++) {
        tb_heat h = cases[i].h;
        h.rows = h.columns = 2;
        TB_OKAY(T, tb_heat_scene(T->ctx, &h, &s));
        check_figure(T, s, out);
        TB_CHECK(T, strstr(tb_out_str(out), cases[i].says));
        tb_scene_destroy(s);
        tb_out_reset(out);
        TB_OKAY(T, tb_heat_term(T->ctx, &h, NULL, out));
        check_terminal(T, tb_out_str(out), 80, false);
    }
    tb_heat h = {.title = "no cells"};
    TB_CHECK(T, tb_heat_scene(T->ctx, &h, &s) == TB_ERR_ARG);
    tb_out_destroy(out);
}

TB_TEST(narrow_figures_fit)
{
    double j[D * D];
    norm_jacobian(j);
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    for (double w = 240; w <= 760; w += 130) {
        tb_heat h = jacobian_of(j);
        tb_scene *s;
        h.width = w;
        TB_OKAY(T, tb_heat_scene(T->ctx, &h, &s));
        check_figure(T, s, out);
        TB_CHECK(T, tb_scene_width(s) == w);
        tb_scene_destroy(s);
    }
    tb_out_destroy(out);
}

/* What is printed is rounded; what a reader hovers over is not. */
TB_TEST(rounded_numbers)
{
    const double values[] = {-0.004, 0.126, -1.999, 3};
    tb_heat h = {.title = "rounded",
                 .rows = 2,
                 .columns = 2,
                 .values = values,
                 .decimals = 2};
    tb_scene *s;
    TB_OKAY(T, tb_heat_scene(T->ctx, &h, &s));
    size_t found = 0;
    for (size_t i = 0; i < s->count; i++) {
        const tb_item *it = &s->items[i];
        const char *title = it->style.title;
        if (it->kind == TB_ITEM_TEXT)
            found += tb_streq(it->text, "0") && it->y < 100;
        if (it->kind == TB_ITEM_TEXT)
            found += tb_streq(it->text, "0.13") || tb_streq(it->text, "-2");
        found += title && strstr(title, "-0.004");
    }
    TB_CHECK(T, found == 4);
    tb_scene_destroy(s);
}

/* What is never below zero has one tone, from none at 0 on; a value that is
 * below zero after all is said to be outside. */
TB_TEST(from_zero)
{
    double values[] = {0, 0.25, 0.5, 1};
    tb_heat h = {.title = "weights",
                 .rows = 2,
                 .columns = 2,
                 .values = values,
                 .value_label = "weight",
                 .print_values = TB_PRINT_NEVER,
                 .scale = TB_HEAT_FROM_ZERO};
    tb_scene *s;
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_heat_scene(T->ctx, &h, &s));
    size_t cell = 0, words = 0;
    for (size_t i = 0; i < s->count; i++) {
        const tb_item *it = &s->items[i];
        if (it->style.role && tb_streq(it->style.role, "jac-cell")) {
            TB_NEAR(T, it->style.alpha, values[cell++], 0);
            TB_CHECK(T, it->style.round == 0);
            TB_CHECK(T, it->style.fill ==
                            (cell == 1 ? TB_TONE_PAPER : TB_TONE_IN));
        }
        if (it->kind == TB_ITEM_TEXT)
            words += tb_streq(it->text, "weight, linear, from 0") ||
                     tb_streq(it->text, "0.5");
    }
    TB_CHECK(T, cell == 4 && words == 2);
    tb_scene_destroy(s);
    TB_OKAY(T, tb_heat_term(T->ctx, &h, NULL, out));
    TB_CHECK(T, strstr(tb_out_str(out), "1, linear"));
    TB_CHECK(T, !strchr(tb_out_str(out), '+'));
    values[1] = -0.25;
    tb_out_reset(out);
    TB_OKAY(T, tb_heat_term(T->ctx, &h, NULL, out));
    TB_CHECK(T, strstr(tb_out_str(out), "beyond the scale"));
    tb_out_destroy(out);
}
