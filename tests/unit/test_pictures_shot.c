/* SPDX-License-Identifier: MIT */
/* Shots: their numbers, their faces at every width, and what --set may not
 * ask. */
#include "test_pictures_demo.h"

#include "pictures/shot_parts.h"

static tb_status make(tb_test *T, size_t n, const tb_eval_value *sets,
                      tb_shot **out)
{
    return tb_shot_create(T->ctx, "batchnorm", n, sets, out);
}

/* C070, C071 */
TB_TEST(batchnorm_numbers)
{
    tb_shot *s;
    TB_OKAY(T, make(T, 0, NULL, &s));
    const tb_series *all = s->chart.series;
    TB_REQUIRE(T, s->chart.count == 3 && all[0].n == 5);
    TB_NEAR(T, all[0].y[0], -1.4142100, 1e-7);
    TB_NEAR(T, all[0].y[3], -0.2773497, 1e-7);
    for (size_t i = 0; i < all[0].n; i++) {
        TB_CHECK(T, all[1].y[i] == all[0].y[0]); /* masked: the same bits */
        TB_CHECK(T, all[2].y[i] == all[2].y[0]);
    }
    tb_shot_destroy(s);
}

TB_TEST(batchnorm_faces)
{
    tb_shot *s;
    tb_scene *scene;
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, make(T, 0, NULL, &s));
    TB_OKAY(T, tb_chart_scene(T->ctx, &s->chart, &scene));
    check_figure(T, scene, out);
    tb_scene_destroy(scene);
    tb_out_reset(out);
    TB_OKAY(T, tb_shot_svg(s, TB_THEME_AUTO, out));
    TB_CHECK(T, well_formed(tb_out_str(out)));
    for (int w = 40; w <= 200; w += 40)
        for (int ascii = 0; ascii < 2; ascii++) {
            tb_terminal term = {.width = w, .ascii = ascii};
            tb_out_reset(out);
            TB_OKAY(T, tb_shot_term(s, &term, out));
            check_terminal(T, tb_out_str(out), (size_t)w, ascii);
        }
    tb_shot_destroy(s);
    tb_out_destroy(out);
}

TB_TEST(other_numbers)
{
    static const double x[] = {2, 4, 4, 8}, counts[] = {0, 3};
    static const double two[] = {2}, three[] = {3}, half[] = {0.5};
    const tb_eval_value good[] = {{"x", 2, {2, 2}, x},
                                  {"padding", 1, {2}, counts},
                                  {"token", 0, {0}, two},
                                  {"feature", 0, {0}, two}};
    const struct {
        tb_eval_value v;
        tb_status status;
        const char *text;
    } bad[] = {
        {{"token", 0, {0}, half}, TB_ERR_INPUT, "token: got 0.5"},
        {{"feature", 0, {0}, counts}, TB_ERR_INPUT, "from 1 to 3"},
        {{"padding", 1, {1}, half}, TB_ERR_INPUT, "padding: got 0.5"},
        {{"padding", 1, {0}, half}, TB_ERR_SHAPE, "empty"},
        {{"x", 1, {2}, x}, TB_ERR_SHAPE, "1 lists deep, wanted 2"},
        {{"y", 0, {0}, three},
         TB_ERR_INPUT,
         "not used by batchnorm; there are: x padding token feature"},
    };
    tb_shot *s;
    TB_OKAY(T, make(T, TB_LEN(good), good, &s));
    TB_CHECK(T, s->chart.series[0].n == 2);
    TB_NEAR(T, s->chart.series[0].y[0], 1, 1e-5);
    tb_shot_destroy(s);
    for (size_t i = 0; i < TB_LEN(bad); i++)
        TB_FAILS(T, make(T, 1, &bad[i].v, &s), bad[i].status, bad[i].text);
    TB_FAILS(T, tb_shot_create(T->ctx, "bachnorm", 0, NULL, &s), TB_ERR_ARG,
             "no picture of bachnorm; did you mean batchnorm");
}

TB_TEST(no_memory)
{
    size_t blocks = tb_ctx_blocks(T->ctx);
    tb_status status = TB_ERR_MEMORY;
    for (size_t n = 1; n < 20000 && status == TB_ERR_MEMORY; n++) {
        tb_shot *s = NULL;
        tb_ctx_fail_alloc_at(T->ctx, n);
        status = make(T, 0, NULL, &s);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        tb_shot_destroy(s);
        TB_CHECK(T, tb_ctx_blocks(T->ctx) == blocks);
    }
    TB_OKAY(T, status);
}
