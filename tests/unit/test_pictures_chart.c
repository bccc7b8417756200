/* SPDX-License-Identifier: MIT */
/* Charts: what has no place on an axis is said, never clamped in silence;
 * thinning keeps the extremes; no locale, nan or inf reaches a coordinate. */
#include <locale.h>

#include "test_pictures_demo.h"

static double zero_divide(double v)
{
    volatile double zero = 0;
    return v / zero;
}

/* Draws a one-series log chart and leaves its SVG in out. */
static void draw(tb_test *T, const double *y, size_t n, tb_out *out)
{
    tb_series s = {.label = "gain", .y = y, .n = n};
    tb_chart c = {.title = "gain by layer",
                  .x_label = "layer",
                  .series = &s,
                  .count = 1,
                  .log_y = true};
    tb_scene *scene;
    TB_OKAY(T, tb_chart_scene(T->ctx, &c, &scene));
    check_figure(T, scene, out);
    tb_scene_destroy(scene);
}

/* C131 */
TB_TEST(log_axis_with_zero_negative_nan)
{
    const double y[] = {1e-3, 0, 1e-6, zero_divide(0), -1, zero_divide(1)};
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    draw(T, y, TB_LEN(y), out);
    const char *svg = tb_out_str(out);
    TB_CHECK(T, count(svg, "data-role=\"marker\"") == 2);
    TB_CHECK(T, count(svg, "data-role=\"floor-mark\"") == 2);
    TB_CHECK(T, count(svg, "data-role=\"gap-mark\"") == 2);
    TB_CHECK(T, strstr(svg, ">1e-3</text>") && strstr(svg, ">1e-6</text>"));
    TB_CHECK(T, !strstr(svg, ">1e-7</text>") && !strstr(svg, ">1e-2</text>"));
    TB_CHECK(T, strstr(svg, "not drawable (log axis): 0 at 1, nan at 3, -1 "
                            "at 4, inf at 5"));
    golden(T, "chart_undrawable.svg", svg);
    tb_out_destroy(out);
}

/* C131: nothing to draw; C131: one point; C142: all below one; subnormal */
TB_TEST(log_axis_limits)
{
    const double zeros[] = {0, 0, 0}, five[] = {5}, low[] = {1e-2, 1e-3, 1e-4},
                 far[] = {5e-324, 1};
    tb_out *out;
    tb_axis a = {0};
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    draw(T, zeros, 3, out);
    TB_CHECK(T, strstr(tb_out_str(out), "no positive values"));
    TB_CHECK(T, !strstr(tb_out_str(out), "data-role=\"axis\""));
    draw(T, five, 1, out);
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"marker\"") == 1);
    draw(T, low, 3, out);
    TB_CHECK(T, strstr(tb_out_str(out), ">1e-4</text>") &&
                    strstr(tb_out_str(out), ">1e-3</text>") &&
                    strstr(tb_out_str(out), ">1e-2</text>"));
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"marker\"") == 3);
    draw(T, far, 2, out);
    TB_CHECK(T, strstr(tb_out_str(out),
                       "1 value below 1e-60 drawn at the lower edge"));
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"edge-mark\"") == 1);
    tb_axis_fit(&a, true, 5, 5, false);
    TB_CHECK(T, a.lo == 0 && a.hi == 1);
    tb_axis_fit(&a, true, 1, 1, false);
    TB_CHECK(T, a.lo == -0.5 && a.hi == 0.5);
    tb_axis_fit(&a, true, 1e-4, 1e-2, false);
    TB_CHECK(T, a.lo == -4 && a.hi == -2);
    tb_axis_fit(&a, true, 5e-324, 1, false);
    TB_CHECK(T, a.lo == -60 && a.below);
    tb_out_destroy(out);
}

TB_TEST(linear_axis_limits)
{
    char text[TB_SHOW_CHARS];
    tb_axis a = {0};
    tb_axis_fit(&a, false, 0.13, 0.87, false);
    TB_CHECK(T, a.lo <= 0.13 && a.hi >= 0.87 && a.n_ticks >= 4);
    TB_STR(T, tb_axis_label(&a, 0, text), "0.0");
    tb_axis_fit(&a, false, -3, 1000.5, false);
    TB_CHECK(T, a.lo == -200 && a.hi == 1200);
    tb_axis_fit(&a, false, 7, 7, false);
    TB_CHECK(T, a.lo < 7 && a.hi > 7 && a.n_ticks > 1);
    tb_axis_fit(&a, false, -1e300, 1e300, false);
    TB_CHECK(T, tb_isfinite(a.lo) && tb_isfinite(a.hi) && a.n_ticks > 1);
    tb_axis_fit(&a, false, 1e-310, 2e-310, false);
    TB_CHECK(T, tb_isfinite(a.lo) && a.n_ticks <= TB_TICKS);
}

/* C135: a comma locale changes nothing */
TB_TEST(locale_changes_nothing)
{
    const double y[] = {0.5, 1.25, 0.125};
    tb_out *plain, *comma;
    TB_OKAY(T, tb_out_create(T->ctx, &plain));
    TB_OKAY(T, tb_out_create(T->ctx, &comma));
    draw(T, y, 3, plain);
    const char *set = setlocale(LC_ALL, "de_DE.UTF-8");
    set = set ? set : setlocale(LC_ALL, "pl_PL.UTF-8");
    draw(T, y, 3, comma);
    setlocale(LC_ALL, "C");
    TB_STR(T, tb_out_str(comma), tb_out_str(plain));
    tb_out_destroy(plain);
    tb_out_destroy(comma);
    if (!set)
        TB_SKIP(T, "no comma locale installed: compared in the C locale only");
}

TB_TEST(many_series_golden)
{
    enum { N = 60, S = 8 };
    static double y[S][N];
    static const char *const names[S] = {"post-ln",
                                         "pre-ln",
                                         "sandwich",
                                         "deepnorm",
                                         "resi-dual with a rather long name",
                                         "admin",
                                         "rezero",
                                         "no skip"};
    tb_series s[S];
    for (size_t k = 0; k < S; k++) {
        double v = 1;
        for (size_t i = 0; i < N; i++, v *= 1.02 - 0.03 * (double)k)
            y[k][i] = v;
        s[k] = (tb_series){.label = names[k], .y = y[k], .n = N};
    }
    tb_chart c = {.title = "Highway lane of eight placements",
                  .x_label = "sublayer below the top",
                  .y_label = "lane gain, log scale",
                  .series = s,
                  .count = S,
                  .log_y = true,
                  .ref = 1,
                  .has_ref = true,
                  .ref_label = "kept"};
    tb_scene *scene;
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_chart_scene(T->ctx, &c, &scene));
    check_figure(T, scene, out);
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"series\"") == S);
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"legend-line\"") == S);
    golden(T, "chart_many.svg", tb_out_str(out));
    tb_out_reset(out);
    TB_OKAY(T, tb_chart_term(T->ctx, &c, NULL, out));
    check_terminal(T, tb_out_str(out), 80, false);
    golden(T, "chart_many.txt", tb_out_str(out));
    for (int w = 40; w <= 200; w += 32) {
        tb_terminal term = {.width = w, .ascii = true};
        tb_out_reset(out);
        TB_OKAY(T, tb_chart_term(T->ctx, &c, &term, out));
        check_terminal(T, tb_out_str(out), (size_t)w, true);
    }
    tb_scene_destroy(scene);
    tb_out_destroy(out);
}

/* A band widens the axis; where an edge is not a number it has a gap, a zero
 * is the floor. */
TB_TEST(band_behind_a_line)
{
    const double y[] = {1, 0.5, 0.2, 0.1},
                 low[] = {0.9, 1e-3, 0, zero_divide(0)}, high[] = {1, 4, 8, 9};
    tb_series s = {.label = "total", .y = y, .n = 4, .low = low, .high = high};
    tb_chart c = {.title = "band", .series = &s, .count = 1, .log_y = true};
    tb_scene *scene;
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_chart_scene(T->ctx, &c, &scene));
    check_figure(T, scene, out);
    const char *band = strstr(tb_out_str(out), "data-role=\"band\"");
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"band\"") == 1);
    TB_CHECK(T, band && band < strstr(tb_out_str(out), "\"series\""));
    TB_CHECK(T, strstr(tb_out_str(out), ">1e-3</text>") &&
                    strstr(tb_out_str(out), ">10</text>"));
    tb_scene_destroy(scene);
    tb_out_reset(out);
    TB_OKAY(T, tb_chart_term(T->ctx, &c, NULL, out));
    check_terminal(T, tb_out_str(out), 80, false);
    tb_out_destroy(out);
}

TB_TEST(thinning_keeps_extremes)
{
    enum { N = 100000 };
    double *y = tb_alloc(T->ctx, N, sizeof *y);
    TB_REQUIRE(T, y);
    for (size_t i = 0; i < N; i++)
        y[i] = 1 + tb_test_uniform(T);
    y[54321] = 100;
    y[12345] = 0.001;
    y[777] = zero_divide(0);
    tb_axis axis = {0};
    tb_axis_fit(&axis, false, 0, 100, false);
    tb_arena a;
    tb_arena_init(&a, T->ctx);
    size_t n, found = 0;
    const size_t *index = tb_thin(&a, &axis, y, N, &n);
    TB_REQUIRE(T, index);
    TB_CHECK(T, n <= TB_MAX_POINTS && n > 1000);
    TB_CHECK(T, index[0] == 0 && index[n - 1] == N - 1);
    for (size_t k = 0; k < n; k++) {
        TB_CHECK(T, k == 0 || index[k] > index[k - 1]);
        found += index[k] == 54321 || index[k] == 12345 || index[k] == 777;
    }
    TB_CHECK(T, found == 3);
    tb_arena_clear(&a);
    tb_free(T->ctx, y);
}

TB_TEST(bars_golden)
{
    static const char *const names[] = {"attn.q", "attn.k", "attn.v",
                                        "attn.o", "ffn.up", "ffn.down",
                                        "head",   "embed"};
    const double v[] = {0.012, 0.011, 0.12, 0.18, 0.09, 0.15, 1.2, 0};
    tb_bars b = {.title = "Gradient norm by weight",
                 .y_label = "gradient norm, log scale",
                 .labels = names,
                 .values = v,
                 .n = TB_LEN(v),
                 .log = true};
    tb_scene *s;
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_bars_scene(T->ctx, &b, &s));
    check_figure(T, s, out);
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"bar\"") == 7);
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"floor-mark\"") == 1);
    golden(T, "bars.svg", tb_out_str(out));
    tb_scene_destroy(s);
    tb_out_reset(out);
    TB_OKAY(T, tb_bars_term(T->ctx, &b, NULL, out));
    check_terminal(T, tb_out_str(out), 80, false);
    golden(T, "bars.txt", tb_out_str(out));
    b.log = false;
    TB_OKAY(T, tb_bars_scene(T->ctx, &b, &s));
    check_figure(T, s, out);
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"bar\"") == 8);
    tb_scene_destroy(s);
    tb_out_reset(out);
    TB_OKAY(T, tb_bars_table_html(T->ctx, &b, out));
    TB_CHECK(T, well_formed(tb_out_str(out)));
    tb_out_destroy(out);
}

/* One row for each place, one column for each series; of a long one every so
 * many points and the last; two points at one place are two rows. */
TB_TEST(chart_table)
{
    enum { LONG = 1000 };
    double x[LONG], y[LONG];
    for (size_t i = 0; i < LONG; i++) {
        x[i] = 12000 + (double)i;
        y[i] = (double)i;
    }
    const double few_x[] = {12001, 12001, 12999}, few_y[] = {0.1, 0.2, 0.3};
    const tb_series series[] = {
        {.label = "many", .x = x, .y = y, .n = LONG},
        {.label = "few", .x = few_x, .y = few_y, .n = 3},
        {.label = "none", .n = 0}};
    tb_chart c = {.title = "t",
                  .x_label = "update",
                  .y_label = "loss",
                  .series = series,
                  .count = 3};
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_chart_table_html(T->ctx, &c, out));
    const char *html = tb_out_str(out);
    TB_CHECK(T, well_formed(html));
    TB_CHECK(T, strstr(html, "<caption>t: loss (of 3 points one)</caption>"));
    TB_CHECK(T, count(html, "<tr>") == 1 + 334 + 2);
    TB_CHECK(T, strstr(html, "12000</th><td>0</td><td></td><td></td></tr>"));
    TB_CHECK(T, strstr(html, "12001</th><td>1</td><td>0.1</td><td></td>"));
    TB_CHECK(T, strstr(html, "12001</th><td></td><td>0.2</td><td></td>"));
    TB_CHECK(T, strstr(html, "12999</th><td>999</td><td>0.3</td><td></td>"));
    TB_CHECK(T, !strstr(html, "12002</th>") && strstr(html, "12003</th>"));
    tb_out_destroy(out);
}

/* A long line is written in steps of tenths that add up to its places. */
TB_TEST(long_lines)
{
    enum { POINTS = 65 };
    double xy[2 * POINTS];
    for (size_t i = 0; i < POINTS; i++) {
        xy[2 * i] = 10.04 + (double)i / 3;
        xy[2 * i + 1] = 50 - (double)i / 7;
    }
    tb_scene *s;
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_scene_create(T->ctx, 100, 100, "t", "d", &s));
    tb_scene_path(s, xy, POINTS, false, &(tb_style){.stroke = TB_TONE_INK});
    TB_OKAY(T, tb_scene_svg(s, NULL, out));
    const char *at = strstr(tb_out_str(out), "d=\"M10 50l");
    TB_REQUIRE(T, at);
    double x = 10, y = 50;
    at += strlen("d=\"M10 50l");
    for (size_t i = 1; i < POINTS; i++) {
        char *end;
        x += strtod(at, &end);
        y += strtod(end, &end);
        at = end;
        TB_NEAR(T, x, xy[2 * i], 0.0501);
        TB_NEAR(T, y, xy[2 * i + 1], 0.0501);
    }
    TB_CHECK(T, *at == '"');
    tb_scene_destroy(s);
    tb_out_destroy(out);
}

TB_TEST(numbers_as_shown)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0, "0"},
                 {1, "1"},
                 {0.7071, "0.707"},
                 {12.34, "12.3"},
                 {1.3e-5, "1.3e-5"},
                 {1200, "1200"},
                 {-0.00416, "-0.00416"},
                 {1e-300, "1e-300"},
                 {4.4e-5, "4.4e-5"},
                 {1.5e9, "1.5e9"},
                 {0.99999, "1"},
                 {9.9999e-4, "0.001"}};
    char text[TB_SHOW_CHARS];
    for (size_t i = 0; i < TB_LEN(cases); i++)
        TB_STR(T, tb_show_number(cases[i].v, text), cases[i].text);
    TB_STR(T, tb_show_number(zero_divide(0), text), "nan");
    TB_STR(T, tb_show_number(zero_divide(-1), text), "-inf");
}
