/* SPDX-License-Identifier: MIT */
/* Block diagrams: where the booths stand, which roads are skips, the same
 * block as characters. */
#include "test_pictures_demo.h"

#define BOX(l)                                                                 \
    {                                                                          \
        .kind = TB_DIAGRAM_BOX, .label = (l)                                   \
    }
#define NORM(l)                                                                \
    {                                                                          \
        .kind = TB_DIAGRAM_NORM, .label = (l)                                  \
    }
#define SCALE(l)                                                               \
    {                                                                          \
        .kind = TB_DIAGRAM_SCALE, .label = (l)                                 \
    }
#define GATE(l)                                                                \
    {                                                                          \
        .kind = TB_DIAGRAM_GATE, .label = (l)                                  \
    }

static const tb_diagram_part attn[] = {BOX("attn")}, ffn[] = {BOX("ffn")};
static const tb_diagram_part n_attn[] = {NORM("LN"), BOX("attn")},
                             n_ffn[] = {NORM("LN"), BOX("ffn")};
static const tb_diagram_branch b_attn[] = {{.parts = attn, .n = 1}},
                               b_ffn[] = {{.parts = ffn, .n = 1}},
                               b_n_attn[] = {{.parts = n_attn, .n = 2}},
                               b_n_ffn[] = {{.parts = n_ffn, .n = 2}};

static const tb_diagram_item post_items[] = {
    {.part = {.kind = TB_DIAGRAM_PLUS}, .branches = b_attn, .n = 1},
    {.part = NORM("LN")},
    {.part = {.kind = TB_DIAGRAM_PLUS}, .branches = b_ffn, .n = 1},
    {.part = NORM("LN")}};
static const double post_gains[] = {0.4987, 0.4987, 0.7066, 0.7066, 1},
                    post_tolls[] = {0, 0.7057, 0, 0.7066};

static const tb_diagram_item pre_items[] = {
    {.part = {.kind = TB_DIAGRAM_PLUS}, .branches = b_n_attn, .n = 1},
    {.part = {.kind = TB_DIAGRAM_PLUS}, .branches = b_n_ffn, .n = 1},
    {.part = NORM("LN")}};
/* Relative to the top of the stack, which lies below the final norm. */
static const double pre_gains[] = {1, 1, 1, 1 / 0.31},
                    pre_tolls[] = {0, 0, 0.31};

static tb_diagram post_ln(void)
{
    return (tb_diagram){.title = "post-ln: x = norm(x + F(x))",
                        .formula = "J_LN (I + J_ffn) J_LN (I + J_attn)",
                        .items = post_items,
                        .count = TB_LEN(post_items),
                        .depth = 12,
                        .gains = post_gains,
                        .tolls = post_tolls};
}

static tb_diagram pre_ln(void)
{
    return (tb_diagram){.title = "pre-ln: x = x + F(norm(x))",
                        .formula = "(I + J_ffn J_LN) (I + J_attn J_LN)",
                        .items = pre_items,
                        .count = TB_LEN(pre_items),
                        .in_block = 2,
                        .depth = 12,
                        .gains = pre_gains,
                        .tolls = pre_tolls};
}

static void both(tb_test *T, const tb_diagram *d, const char *name, tb_out *out)
{
    tb_scene *s;
    char file[64];
    static const tb_terminal narrow = {.width = 40, .ascii = true};
    TB_OKAY(T, tb_diagram_term(T->ctx, d, &narrow, out));
    check_terminal(T, tb_out_str(out), 40, true);
    tb_out_reset(out);
    TB_OKAY(T, tb_diagram_term(T->ctx, d, NULL, out));
    check_terminal(T, tb_out_str(out), 80, false);
    tb_format(file, sizeof file, "%s.txt", name);
    golden(T, file, tb_out_str(out));
    TB_OKAY(T, tb_diagram_scene(T->ctx, d, &s));
    check_figure(T, s, out);
    tb_format(file, sizeof file, "%s.svg", name);
    golden(T, file, tb_out_str(out));
    tb_scene_destroy(s);
}

TB_TEST(post_ln_golden)
{
    tb_out *out;
    tb_diagram d = post_ln();
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    both(T, &d, "block_post", out);
    const char *svg = tb_out_str(out);
    TB_CHECK(T, count(svg, "id=\"fig-lane-toll-") == 2);
    TB_CHECK(T, count(svg, "id=\"fig-branch-toll-") == 0);
    TB_CHECK(T, count(svg, "data-role=\"plus\"") == 2);
    TB_CHECK(T, count(svg, "data-role=\"box\"") == 2);
    TB_CHECK(T, count(svg, "data-role=\"in-arrow\"") == 1);
    tb_out_destroy(out);
}

TB_TEST(pre_ln_golden)
{
    tb_out *out;
    tb_diagram d = pre_ln();
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    both(T, &d, "block_pre", out);
    const char *svg = tb_out_str(out);
    TB_CHECK(T, count(svg, "id=\"fig-lane-toll-") == 1); /* the final norm */
    TB_CHECK(T, count(svg, "id=\"fig-branch-toll-") == 2);
    TB_CHECK(T, strstr(svg, "1 norm on the lane"));
    TB_CHECK(T, !strstr(svg, "s-back-bad\"")); /* a clean lane is green */
    tb_out_destroy(out);
}

/* DeepNorm's scaled lane, Sub-LN's long branch, a parallel pair, a skip over
 * two additions and a highway gate: everything at once. */
TB_TEST(everything_golden)
{
    static const tb_diagram_part sub[] = {NORM("LN"), BOX("mha"), NORM("LN"),
                                          BOX("o"), SCALE("0.5")};
    static const tb_diagram_part gated[] = {BOX("ffn"), GATE("g")};
    static const tb_diagram_branch one[] = {
        {.parts = sub, .n = 5, .label = "attention", .span = 1},
        {.parts = n_ffn, .n = 2, .label = "parallel ffn", .span = 1}};
    static const tb_diagram_branch two[] = {{.parts = gated,
                                             .n = 2,
                                             .span = 1}},
                                   three[] = {{.span = 4}};
    static const tb_diagram_item items[] = {
        {.part = SCALE("alpha")},
        {.part = {.kind = TB_DIAGRAM_PLUS}, .branches = one, .n = 2},
        {.part = GATE("(1 - g)")},
        {.part = {.kind = TB_DIAGRAM_PLUS}, .branches = two, .n = 1},
        {.part = NORM("RMSNorm")},
        {.part = {.kind = TB_DIAGRAM_PLUS}, .branches = three, .n = 1},
        {.part = BOX("a final linear map with a long name")}};
    tb_diagram d = {.title = "everything at once",
                    .items = items,
                    .count = TB_LEN(items),
                    .in_label = "x_l",
                    .out_label = "x_{l+1}"};
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    both(T, &d, "block_all", out);
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"plus\"") == 3);
    TB_CHECK(T, count(tb_out_str(out), "data-role=\"gate\"") == 2);
    tb_out_destroy(out);
}

TB_TEST(empty_and_wrong_blocks)
{
    tb_scene *s;
    tb_out *out;
    tb_diagram none = {.title = "x = x"};
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_diagram_scene(T->ctx, &none, &s));
    check_figure(T, s, out);
    tb_scene_destroy(s);
    TB_OKAY(T, tb_diagram_term(T->ctx, &none, NULL, out));
    tb_diagram_branch far = {.span = 1};
    tb_diagram_item plus = {
        .part = {.kind = TB_DIAGRAM_PLUS}, .branches = &far, .n = 1};
    tb_diagram bad = {.title = "bad", .items = &plus, .count = 1};
    TB_FAILS(T, tb_diagram_scene(T->ctx, &bad, &s), TB_ERR_ARG, "starts 1");
    plus.part.kind = TB_DIAGRAM_NORM;
    TB_FAILS(T, tb_diagram_scene(T->ctx, &bad, &s), TB_ERR_ARG,
             "wanted a plus");
    tb_out_destroy(out);
}
