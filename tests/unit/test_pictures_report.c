/* SPDX-License-Identifier: MIT */
/* The report page: everything in one file, nothing from outside, the data
 * block equal to what went in. */
#include "test_pictures_demo.h"

static const char json[] =
    "{\"tollbooth\":\"0.1.0\",\"runs\":[{\"block\":\"x = x + F(norm(x))\","
    "\"note\":\"<\\/script><\\u0021-- a < b\",\"lane\":[1,0.83,\"nan\"]}]}";

static const tb_report_setting settings[] = {{"depth", "12"},
                                             {"width", "64"},
                                             {"heads", "4"},
                                             {"seed", "1"},
                                             {"dtype", "f32"}};

static const tb_report_verdict verdicts[] = {
    {"JACCHECK", "OK", "Symbolic, tangent and backward Jacobian agree.",
     "2.1e-12 against 1e-7, CS231n ladder", NULL, NULL},
    {"TOLL", "WARN",
     "The highway lane of post-ln keeps 1.1 % of the signal; the total keeps "
     "47 %.",
     "0.0114 below 0.1, ours", "k = 0, stem", NULL},
    {"EARLYBIG", "NOTE",
     "The gradient of pre-ln grows toward the input: known.",
     "3.01 above 3, ours", "k = 0, stem", NULL}};

static tb_status fill(tb_test *T, tb_report *r, tb_out *scratch)
{
    static const char *const method[] = {
        "lane: exact backward pass with all branch Jacobians set to zero",
        "total: the true gradient of the mean cross-entropy per token",
        "both relative to the top of the stack, below the final norm"};
    demo_flow d;
    tb_scene *s;
    demo_flow_fill(&d);
    demo_loss *l = tb_alloc(T->ctx, 1, sizeof *l);
    if (!l)
        return TB_ERR_MEMORY;
    demo_loss_fill(T, l);
    tb_report_settings(r, settings, TB_LEN(settings));
    tb_report_heading(r, "Verdicts");
    tb_report_verdicts(r, verdicts, TB_LEN(verdicts));
    tb_report_heading(r, "Gradient by depth");
    TB_TRY(tb_flow_table_html(T->ctx, &d.figure, scratch));
    TB_TRY(tb_flow_scene(T->ctx, &d.figure, &s));
    tb_report_figure(r, s,
                     "The lane of post-ln loses a sixth per sublayer; what "
                     "arrives at the input comes through the branches.",
                     tb_out_str(scratch));
    tb_scene_destroy(s);
    tb_report_heading(r, "Training");
    tb_out_reset(scratch);
    TB_TRY(tb_loss_table_html(T->ctx, &l->figure, scratch));
    TB_TRY(tb_loss_scene(T->ctx, &l->figure, &s));
    tb_report_figure(r, s, NULL, tb_out_str(scratch));
    tb_scene_destroy(s);
    tb_report_heading(r, "Method");
    tb_report_paragraph(r, "The block, as it was read:");
    tb_report_pre(r, "block:\n    x = norm(x + F(x))\n");
    tb_report_list(r, method, TB_LEN(method));
    tb_report_json(r, json);
    tb_free(T->ctx, l);
    return TB_OK;
}

/* Byte for byte. */
static bool same_data(const char *page)
{
    static const char mark[] = "id=\"tollbooth-data\">";
    const char *p = strstr(page, mark);
    return p && strncmp(p + sizeof mark - 1, json, sizeof json - 1) == 0 &&
           strncmp(p + sizeof mark - 2 + sizeof json, "</script>", 9) == 0;
}

TB_TEST(report_golden)
{
    tb_report *r;
    tb_out *out, *scratch;
    const tb_report_head head = {
        .title = "post-ln against pre-ln",
        .lead = "Gradient flow at initialisation and training, side by side.",
        .command = "tollbooth compare post-ln pre-ln --depth 12 --seed 1"};
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_out_create(T->ctx, &scratch));
    TB_OKAY(T, tb_report_create(T->ctx, &head, &r));
    TB_OKAY(T, fill(T, r, scratch));
    TB_OKAY(T, tb_report_finish(r, out));
    const char *page = tb_out_str(out);
    TB_CHECK(T, same_data(page));
    TB_CHECK(T, count(page, "</script>") == 2);
    TB_CHECK(T, count(page, "Content-Security-Policy") == 1);
    TB_CHECK(T, strstr(page, "default-src 'none'"));
    TB_CHECK(T, count(page, "<svg") == 2 && count(page, "role=\"img\"") == 2);
    TB_CHECK(T, strstr(page, "id=\"fig1-title\"") &&
                    strstr(page, "id=\"fig2-title\""));
    TB_CHECK(T, count(page, "<details><summary>show as table") == 2);
    /* nothing is fetched: the only address is a namespace */
    TB_CHECK(T, count(page, "http://") == count(page, "=\"http://www.w3.org/"));
    TB_CHECK(T, !strstr(page, "https://") && !strstr(page, " src=") &&
                    !strstr(page, "url("));
    TB_CHECK(T, strstr(page, "WARN") < strstr(page, "NOTE"));
    golden(T, "report.html", page);
    tb_report_destroy(r);
    tb_out_destroy(out);
    tb_out_destroy(scratch);
}

TB_TEST(report_refuses)
{
    tb_report *r;
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_FAILS(T, tb_report_create(T->ctx, &(tb_report_head){0}, &r), TB_ERR_ARG,
             "title");
    TB_OKAY(T, tb_report_create(T->ctx, &(tb_report_head){.title = "t"}, &r));
    tb_report_json(r, "{}");
    tb_report_json(r, "{}");
    TB_FAILS(T, tb_report_finish(r, out), TB_ERR_ARG, "second data block");
    tb_report_destroy(r);
    TB_OKAY(T, tb_report_create(T->ctx, &(tb_report_head){.title = "t"}, &r));
    tb_report_json(r, "[\"</script>\"]");
    TB_FAILS(T, tb_report_finish(r, out), TB_ERR_ARG, "</");
    tb_report_destroy(r);
    tb_out_destroy(out);
}
