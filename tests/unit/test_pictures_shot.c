/* SPDX-License-Identifier: MIT */
/* What every shot owes (claims that hold, a figure, faces at every width), and
 * the settings they read. */
#include "test_pictures_demo.h"

#include "pictures/shot_parts.h"

TB_TEST(every_shot_holds)
{
    for (size_t i = 0; i < tb_shot_count(); i++) {
        tb_shot *s;
        TB_OKAY(T, tb_shot_create(T->ctx, tb_shot_name(i), NULL, &s));
        TB_CHECK(T, s->checks.n > 0);
        for (size_t k = 0; k < s->checks.n; k++) {
            const shot_check *c = &SHOT_AT(s->checks, shot_check, k);
            if (!c->ok)
                tb_test_fail(T, __FILE__, __LINE__, "%s: %s", tb_shot_name(i),
                             c->text);
        }
        tb_shot_destroy(s);
    }
}

/* Every {id} of a sentence is a number of the shot. */
static void check_sentences(tb_test *T, const tb_shot *s)
{
    tb_arena a;
    tb_arena_init(&a, T->ctx);
    for (size_t i = 0; i < s->says.n; i++) {
        const char *line = shot_sentence(s, &a, i);
        TB_CHECK(T, line && !strchr(line, '{'));
    }
    tb_arena_clear(&a);
}

TB_TEST(every_shot_has_its_faces)
{
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    for (size_t i = 0; i < tb_shot_count(); i++) {
        tb_shot *s;
        tb_scene *scene;
        TB_OKAY(T, tb_shot_create(T->ctx, tb_shot_name(i), NULL, &s));
        TB_OKAY(T, tb_shot_scene(s, &scene));
        check_figure(T, scene, out);
        tb_scene_destroy(scene);
        check_sentences(T, s);
        for (int w = 40; w <= 200; w += 40)
            for (int ascii = 0; ascii < 2; ascii++) {
                tb_terminal term = {.width = w, .ascii = ascii};
                tb_out_reset(out);
                TB_OKAY(T, tb_shot_term(s, &term, out));
                check_terminal(T, tb_out_str(out), (size_t)w, ascii);
            }
        tb_out_reset(out);
        TB_OKAY(T, tb_shot_html(s, out));
        TB_CHECK(T, well_formed(tb_out_str(out)));
        tb_shot_destroy(s);
    }
    tb_out_destroy(out);
}

static double width_of(const char *svg)
{
    const char *at = strstr(svg, " width=\"");
    double w = 0;
    if (at)
        tb_double_parse(at + strlen(" width=\""), 8, &w);
    return w;
}

/* On a phone no panel stands beside another: the same panels, no wider. */
TB_TEST(stacked)
{
    static const char *const fit[] = {"N1", "N2", "N4", "S7"};
    size_t fits = 0;
    tb_out *plain, *stacked;
    TB_OKAY(T, tb_out_create(T->ctx, &plain));
    TB_OKAY(T, tb_out_create(T->ctx, &stacked));
    for (size_t i = 0; i < tb_shot_count(); i++) {
        tb_shot *s;
        tb_out_reset(plain);
        tb_out_reset(stacked);
        TB_OKAY(T, tb_shot_create(T->ctx, tb_shot_name(i), NULL, &s));
        TB_OKAY(T, tb_shot_svg(s, NULL, plain));
        TB_OKAY(T, tb_shot_svg(s, &(tb_svg){.stacked = true}, stacked));
        double w = width_of(tb_out_str(stacked));
        TB_CHECK(T, well_formed(tb_out_str(stacked)));
        TB_CHECK(T, w > 0 && w <= width_of(tb_out_str(plain)));
        TB_CHECK(T, count(tb_out_str(stacked), "data-role=\"panel\"") ==
                        count(tb_out_str(plain), "data-role=\"panel\""));
        for (size_t k = 0; k < TB_LEN(fit); k++)
            fits += tb_streq(tb_shot_name(i), fit[k]) && w <= 375;
        tb_shot_destroy(s);
    }
    TB_CHECK(T, fits == TB_LEN(fit));
    tb_out_destroy(plain);
    tb_out_destroy(stacked);
}

/* The own value of every input is one that may be set. */
TB_TEST(inputs_read_back)
{
    for (size_t i = 0; i < tb_shot_count(); i++) {
        size_t n;
        const tb_shot_input *in = tb_shot_inputs(i, &n);
        for (size_t k = 0; k < n; k++) {
            char set[256];
            tb_shot *s;
            TB_CHECK(T, in[k].label && in[k].own && in[k].low <= in[k].high);
            tb_format(set, sizeof set, " %s = %s ", in[k].name, in[k].own);
            TB_OKAY(T, tb_shot_create(T->ctx, tb_shot_name(i), set, &s));
            tb_shot_destroy(s);
        }
    }
}

TB_TEST(settings)
{
    static const char *const good[] = {"",
                                       " ",
                                       "token=2",
                                       "token=2,feature=3",
                                       "token = 2 ; feature=3&",
                                       "padding=[0, 7],token=1",
                                       "x=[[1,2],[3,4e-1]]&padding=[ 3 ]"};
    const struct {
        const char *set;
        tb_status status;
        const char *text;
    } bad[] = {
        {"token=0.5", TB_ERR_INPUT, "token: got 0.5, wanted a whole number"},
        {"feature=4", TB_ERR_INPUT,
         "feature: got 4, wanted a whole number "
         "from 1 to 3"},
        {"padding=[0.5]", TB_ERR_INPUT, "padding: got 0.5"},
        {"padding=[]", TB_ERR_SHAPE, "wanted 1 to 64 elements"},
        {"padding=[1,2", TB_ERR_INPUT, "a list as [1,2,3]"},
        {"padding=[1]2", TB_ERR_INPUT, "nothing after the value"},
        {"x=[1,2]", TB_ERR_INPUT, "a list as [1,2,3]"},
        {"x=[[1,2],[3]]", TB_ERR_SHAPE, "rows of 2 and 1"},
        {"token=", TB_ERR_INPUT, "wanted a number"},
        {"token=nan", TB_ERR_INPUT, "wanted a number"},
        {"token", TB_ERR_INPUT, "wanted NAME=VALUE"},
        {"tokn=1", TB_ERR_INPUT, "did you mean token? there are: x padding"},
    };
    tb_shot *s;
    for (size_t i = 0; i < TB_LEN(good); i++) {
        TB_OKAY(T, tb_shot_create(T->ctx, "batchnorm", good[i], &s));
        tb_shot_destroy(s);
    }
    for (size_t i = 0; i < TB_LEN(bad); i++)
        TB_FAILS(T, tb_shot_create(T->ctx, "batchnorm", bad[i].set, &s),
                 bad[i].status, bad[i].text);
    TB_FAILS(T, tb_shot_create(T->ctx, "bachnorm", NULL, &s), TB_ERR_ARG,
             "no picture of bachnorm; did you mean batchnorm");
}

/* Under ASan: nothing that is drawn belongs to the block, which is gone. */
TB_TEST(a_diagram_outlives_its_block)
{
    static const char *const sets[] = {
        "depth=1&block=x = 0.5*x + sqrt(2)*F(norm(x))",
        "depth=1&block=g = scalar(0.5); x = g*x + (1 - 1/N)*norm(F(x))",
        "depth=1&block=n = norm(x); x = x + attn(n) + ffn(n)",
        "depth=1&block=x = F(x)"};
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    for (size_t i = 0; i < TB_LEN(sets); i++) {
        tb_shot *s;
        TB_OKAY(T, tb_shot_create(T->ctx, "workbench", sets[i], &s));
        tb_out_reset(out);
        TB_OKAY(T, tb_shot_svg(s, NULL, out));
        TB_CHECK(T, well_formed(tb_out_str(out)));
        tb_shot_destroy(s);
    }
    tb_out_destroy(out);
}

/* The workbench says of a block what explain and lint say of it. */
TB_TEST(workbench_reads_the_text)
{
    static const struct {
        const char *set, *text;
    } known[] = {
        {"", "Jacobian: I + J_F(LN(x))\xC2\xB7J_LN(x)\nwhere F = 0: I\n"},
        {"", "of the lane: clean, one final toll."},
        {"", "Lint finds nothing."},
        {"block=post-ln", "J_LN(x + F(x))\xC2\xB7(I + J_F(x))\nwhere F = 0: "
                          "J_LN(x)\n"},
        {"block=x = norm(x); x = x + F(x)", "Lint: normed-skip (warn)."},
        {"block=mhc", "\xE2\x80\xA6\nwhere F = 0:"},
        {"block=x = F(x)", "of the lane: none."}};
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    for (size_t i = 0; i < TB_LEN(known); i++) {
        char set[120];
        tb_shot *s;
        tb_format(set, sizeof set, "depth=1&width=16&tokens=4&%s",
                  known[i].set);
        TB_OKAY(T, tb_shot_create(T->ctx, "workbench", set, &s));
        TB_CHECK(T, tb_shot_ok(s));
        tb_out_reset(out);
        TB_OKAY(T, tb_shot_term(s, &(tb_terminal){.width = 200}, out));
        if (!strstr(tb_out_str(out), known[i].text))
            tb_test_fail(T, __FILE__, __LINE__, "%s: no \"%s\" in %s",
                         known[i].set, known[i].text, tb_out_str(out));
        tb_shot_destroy(s);
    }
    tb_out_destroy(out);
}

/* C070, C071 */
TB_TEST(batchnorm_numbers)
{
    tb_shot *s;
    TB_OKAY(T, tb_shot_create(T->ctx, "batchnorm", NULL, &s));
    const tb_chart *c = SHOT_AT(s->panels, shot_panel, 0).data;
    TB_REQUIRE(T, c->count == 3 && c->series[0].n == 5);
    TB_NEAR(T, c->series[0].y[0], -1.4142100, 1e-7);
    TB_NEAR(T, c->series[0].y[3], -0.2773497, 1e-7);
    tb_shot_destroy(s);
}

TB_TEST(no_memory)
{
    size_t blocks = tb_ctx_blocks(T->ctx);
    tb_status status = TB_ERR_MEMORY;
    for (size_t n = 1; n < 20000 && status == TB_ERR_MEMORY; n++) {
        tb_shot *s = NULL;
        tb_out *out = NULL;
        tb_ctx_fail_alloc_at(T->ctx, n);
        status = tb_shot_create(T->ctx, "batchnorm", "padding=[0,1]", &s);
        if (status == TB_OK)
            status = tb_out_create(T->ctx, &out);
        if (status == TB_OK)
            status = tb_shot_svg(s, NULL, out);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        tb_out_destroy(out);
        tb_shot_destroy(s);
        TB_CHECK(T, tb_ctx_blocks(T->ctx) == blocks);
    }
    TB_OKAY(T, status);
}
