/* SPDX-License-Identifier: MIT */
/* Flow and loss figures: golden SVG and text, labels that do not collide, the
 * lane and the total both drawn and named. */
#include "test_pictures_demo.h"

TB_TEST(flow_scene_golden)
{
    demo_flow d;
    tb_scene *s;
    tb_out *out;
    demo_flow_fill(&d);
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_flow_scene(T->ctx, &d.figure, &s));
    check_figure(T, s, out);
    const char *svg = tb_out_str(out);
    TB_CHECK(T, count(svg, "data-role=\"stack\"") == 2);
    TB_CHECK(T, count(svg, "data-role=\"grad-hw\"") == 2);
    TB_CHECK(T, count(svg, "data-role=\"grad-total\"") == 2);
    TB_CHECK(T, strstr(svg, ">lane</text>"));
    TB_CHECK(T, strstr(svg, ">total</text>"));
    TB_CHECK(T, strstr(svg, "lane 0.0114 at k = 0"));
    golden(T, "flow.svg", svg);
    tb_scene_destroy(s);
    tb_out_destroy(out);
}

TB_TEST(flow_scene_branch_and_dark_golden)
{
    demo_flow d;
    tb_scene *s;
    tb_out *out;
    demo_flow_fill(&d);
    d.runs[0].branch = d.post_branch;
    d.runs[1].branch = d.pre_branch;
    d.figure.title = "Gradient flow: lane, branch and total";
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_flow_scene(T->ctx, &d.figure, &s));
    check_figure(T, s, out);
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"grad-br\"") == 2);
    tb_out_reset(out);
    TB_OKAY(T, tb_scene_svg(s, &(tb_svg){.theme = TB_THEME_DARK}, out));
    TB_CHECK(T, !strstr(tb_out_str(out), "prefers-color-scheme"));
    golden(T, "flow_branch_dark.svg", tb_out_str(out));
    tb_scene_destroy(s);
    tb_out_destroy(out);
}

/* A phone-wide figure, one run, values that have no logarithm. */
TB_TEST(flow_scene_undrawable)
{
    volatile double zero = 0;
    double lane[] = {0, 0.1, 0.5, 1}, total[] = {0.0 / zero, 0.4, 0.7, 1};
    tb_flow_curve run = {.block = "a block with a name that is far too long "
                                  "for one panel of this width",
                         .n = 4,
                         .lane = lane,
                         .total = total};
    tb_flow_figure f = {.runs = &run, .count = 1, .width = 340};
    tb_scene *s;
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_flow_scene(T->ctx, &f, &s));
    check_figure(T, s, out);
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"floor-mark\"") == 1);
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"gap-mark\"") == 1);
    TB_CHECK(T, strstr(tb_out_str(out), "0 at 0"));
    golden(T, "flow_narrow.svg", tb_out_str(out));
    tb_scene_destroy(s);
    tb_out_destroy(out);
}

TB_TEST(flow_term_golden)
{
    demo_flow d;
    tb_out *out;
    demo_flow_fill(&d);
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_flow_term(T->ctx, &d.figure, NULL, out));
    check_terminal(T, tb_out_str(out), 80, false);
    golden(T, "flow.txt", tb_out_str(out));
    tb_out_reset(out);
    tb_terminal narrow = {.width = 20, .ascii = true};
    TB_OKAY(T, tb_flow_term(T->ctx, &d.figure, &narrow, out));
    check_terminal(T, tb_out_str(out), 40, true);
    golden(T, "flow_ascii.txt", tb_out_str(out));
    tb_out_destroy(out);
}

/* C133: two thousand sublayers print twelve lines, and the scene stays small */
TB_TEST(flow_term_folds_depth)
{
    enum { N = 2001 };
    double *v = tb_alloc(T->ctx, N, sizeof *v);
    TB_REQUIRE(T, v);
    for (size_t i = 0; i < N; i++)
        v[i] = 1 + (double)i / N;
    tb_flow_curve run = {
        .block = "pre-ln", .depth = 1000, .n = N, .lane = v, .total = v};
    tb_flow_figure f = {.runs = &run, .count = 1};
    tb_scene *s;
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_flow_term(T->ctx, &f, NULL, out));
    TB_CHECK(T, count(tb_out_str(out), "\n") < 24);
    TB_CHECK(T, strstr(tb_out_str(out), "1991 more lines"));
    TB_OKAY(T, tb_flow_scene(T->ctx, &f, &s));
    check_figure(T, s, out);
    TB_CHECK(T, tb_out_len(out) < 200000);
    tb_scene_destroy(s);
    tb_out_destroy(out);
    tb_free(T->ctx, v);
}

TB_TEST(flow_table_html)
{
    demo_flow d;
    tb_out *out;
    demo_flow_fill(&d);
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_flow_table_html(T->ctx, &d.figure, out));
    TB_CHECK(T, well_formed(tb_out_str(out)));
    TB_CHECK(T, count(tb_out_str(out), "<tr>") == 2 * DEMO_K + 1);
    tb_out_destroy(out);
}

TB_TEST(flow_refuses_nothing)
{
    tb_scene *s;
    tb_flow_figure none = {0};
    TB_FAILS(T, tb_flow_scene(T->ctx, &none, &s), TB_ERR_ARG, "0 runs");
    tb_flow_curve run = {.n = 3};
    tb_flow_figure half = {.runs = &run, .count = 1};
    TB_FAILS(T, tb_flow_scene(T->ctx, &half, &s), TB_ERR_ARG, "no lane");
}

TB_TEST(loss_golden)
{
    demo_loss *d = tb_alloc(T->ctx, 1, sizeof *d);
    tb_scene *s;
    tb_out *out;
    TB_REQUIRE(T, d);
    demo_loss_fill(T, d);
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_loss_scene(T->ctx, &d->figure, &s));
    check_figure(T, s, out);
    const char *svg = tb_out_str(out);
    TB_CHECK(T, count(svg, "data-role=\"diverged\"") == 1);
    TB_CHECK(T, strstr(svg, "diverged at 710"));
    TB_CHECK(T, count(svg, "data-role=\"loss-val\"") == 4);
    golden(T, "loss.svg", svg);
    tb_scene_destroy(s);
    tb_out_reset(out);
    TB_OKAY(T, tb_loss_term(T->ctx, &d->figure, NULL, out));
    check_terminal(T, tb_out_str(out), 80, false);
    golden(T, "loss.txt", tb_out_str(out));
    tb_out_reset(out);
    TB_OKAY(T, tb_loss_table_html(T->ctx, &d->figure, out));
    TB_CHECK(T, well_formed(tb_out_str(out)));
    tb_out_destroy(out);
    tb_free(T->ctx, d);
}
