/* SPDX-License-Identifier: MIT */
/* Scene, SVG, characters and tables: escapes, widths, what is left out. */
#include "test_pictures_demo.h"

static const tb_column columns[] = {
    {.head = "i", .align = TB_RIGHT},
    {.head = "kind"},
    {.head = "placement", .priority = 3},
    {.head = "g/gN", .align = TB_RIGHT},
    {.head = "what was found there", .priority = 1, .wrap = true},
    {.head = "\xCF\x84", .align = TB_RIGHT, .priority = 2}};

static const char *const cells[] = {
    "1",
    "attn",
    "post",
    "0.42",
    "the norm stands on the lane, so every gradient pays the toll",
    "0.707",
    "2",
    "ffn",
    "post",
    "0.398",
    NULL,
    "0.71",
    "3",
    "\xE6\xB3\xA8\xE6\x84\x8F",
    "pre",
    "1",
    "caf\xC3\xA9 & <b>",
    "1"};

static const tb_table table = {.caption = "Per sublayer",
                               .columns = columns,
                               .n_columns = 6,
                               .cells = cells,
                               .n_rows = 3};

TB_TEST(table_golden)
{
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    for (int w = 40; w <= 200; w += 10) {
        tb_out_reset(out);
        TB_OKAY(T,
                tb_table_term(T->ctx, &table, &(tb_terminal){w, false}, out));
        check_terminal(T, tb_out_str(out), (size_t)w, false);
    }
    TB_CHECK(T, !strstr(tb_out_str(out), "not shown"));
    tb_out_reset(out);
    TB_OKAY(T, tb_table_term(T->ctx, &table, NULL, out));
    TB_OKAY(T, tb_table_term(T->ctx, &table, &(tb_terminal){40, true}, out));
    golden(T, "table.txt", tb_out_str(out));
    tb_out_reset(out);
    TB_OKAY(T, tb_table_html(T->ctx, &table, out));
    TB_CHECK(T, well_formed(tb_out_str(out)));
    TB_CHECK(T, strstr(tb_out_str(out), "caf\xC3\xA9 &amp; &lt;b&gt;"));
    TB_CHECK(T, count(tb_out_str(out), "scope=\"col\"") == 6);
    TB_CHECK(T, count(tb_out_str(out), "scope=\"row\"") == 3);
    TB_FAILS(T, tb_table_term(T->ctx, &(tb_table){0}, NULL, out), TB_ERR_ARG,
             "0 columns");
    tb_out_destroy(out);
}

/* More columns than characters, words longer than a line. */
TB_TEST(table_hopeless_width)
{
    enum { N = 60 };
    tb_column many[N];
    const char *row[N];
    for (size_t i = 0; i < N; i++) {
        many[i] = (tb_column){.head = "column"};
        row[i] = "averyveryverylongwordwithoutanyblankinitatall";
    }
    many[0].wrap = true;
    tb_table t = {.columns = many, .n_columns = N, .cells = row, .n_rows = 1};
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_table_term(T->ctx, &t, &(tb_terminal){.width = 40}, out));
    check_terminal(T, tb_out_str(out), 40, false);
    tb_out_destroy(out);
}

TB_TEST(verdicts_worst_first)
{
    static const tb_report_verdict v[] = {
        {"TOLL", "NOTE", "the lane keeps 0.0114 of the signal",
         "0.0114 < 0.1, ours", "k = 0", NULL},
        {"JACCHECK", "OK", "symbolic and numeric Jacobian agree", NULL, NULL,
         NULL},
        {"NONFINITE", "FAIL", "3 values are nan", "3, no threshold",
         "floor 7, ffn", NULL}};
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_verdicts_term(T->ctx, v, 3, &(tb_terminal){50, true}, out));
    check_terminal(T, tb_out_str(out), 50, true);
    TB_STR(T, tb_out_str(out),
           "FAIL NONFINITE: 3 values are nan (3, no threshold)\n"
           "     -> floor 7, ffn\n"
           "NOTE TOLL: the lane keeps 0.0114 of the signal\n"
           "     (0.0114 < 0.1, ours) -> k = 0\n"
           "OK   JACCHECK: symbolic and numeric Jacobian agree\n");
    tb_out_destroy(out);
}

TB_TEST(scene_escapes_and_prefixes)
{
    tb_scene *s;
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_scene_create(T->ctx, 200, 100, "a < b & \"c\"", "d\x01 \xFF",
                               &s));
    tb_style box = {
        .id = "one", .role = "box", .title = "<t>", .fill = TB_TONE_BOX};
    tb_scene_rect(s, -0.001, 1.0 / 3, 10, 20.5, &box);
    tb_scene_text(s, 10, 50, "x</text><script>", NULL);
    tb_scene_group(s, &(tb_style){.alpha = 0.5});
    tb_scene_circle(s, 5, 5, 2, &box);
    TB_OKAY(T, tb_scene_svg(s, &(tb_svg){.prefix = "p7"}, out));
    const char *svg = tb_out_str(out);
    TB_CHECK(T, well_formed(svg)); /* the open group was closed */
    TB_CHECK(T, strstr(svg, "a &lt; b &amp; &quot;c&quot;"));
    TB_CHECK(T, strstr(svg, "d\xEF\xBF\xBD \xEF\xBF\xBD"));
    TB_CHECK(T, strstr(svg, "id=\"p7-one\" data-role=\"box\""));
    TB_CHECK(T, strstr(svg, "x=\"0\" y=\"0.33\" width=\"10\" height=\"20.5\""));
    TB_CHECK(T, !strstr(svg, "<script>"));
    tb_out_reset(out);
    TB_OKAY(T, tb_scene_svg(s, &(tb_svg){.in_html = true}, out));
    TB_CHECK(T, !strstr(tb_out_str(out), "<style>"));
    tb_scene_destroy(s);
    tb_out_destroy(out);
}

TB_TEST(scene_refuses)
{
    tb_scene *s;
    tb_out *out;
    volatile double zero = 0;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_FAILS(T, tb_scene_create(T->ctx, 10, 10, "", "d", &s), TB_ERR_ARG,
             "title");
    TB_FAILS(T, tb_scene_create(T->ctx, 1e9, 10, "t", "d", &s), TB_ERR_ARG,
             "size");
    TB_OKAY(T, tb_scene_create(T->ctx, 10, 10, "t", "d", &s));
    tb_scene_line(s, 0, 0, 1, 1 / zero, NULL);
    tb_scene_line(s, 0, 0, 1, 1, NULL);
    TB_FAILS(T, tb_scene_svg(s, NULL, out), TB_ERR_NONFINITE, "coordinate");
    tb_scene_destroy(s);
    tb_out_destroy(out);
}

TB_TEST(characters)
{
    const char *bad = "\xC0\x80\xED\xA0\x80\xF4\x90\x80\x80";
    size_t n = 0;
    for (uint32_t cp; (cp = tb_glyph_next(&bad)); n++)
        TB_CHECK(T, cp == 0xFFFD);
    TB_CHECK(T, n == 9);
    TB_CHECK(T, tb_columns("z\xCC\x82 \xE6\xB3\xA8") == 4);
    tb_arena a;
    tb_arena_init(&a, T->ctx);
    TB_STR(T, tb_shorten(&a, "attention", 5), "atte\xE2\x80\xA6");
    TB_STR(T, tb_shorten(&a, "\xE6\xB3\xA8\xE6\xB3\xA8", 3),
           "\xE6\xB3\xA8\xE2\x80\xA6");
    TB_CHECK(T,
             tb_text_width("iii", 10, false) < tb_text_width("mmm", 10, false));
    tb_arena_clear(&a);
}

/* Plain ASCII spells Greek and roots in running text; counted as wide as it
 * comes out. */
TB_TEST(spelled_out)
{
    static const char text[] =
        "\xCE\xB3/\xE2\x88\x9A(\xCF\x83\xC2\xB2+\xCE\xB5) "
        "\xE2\x86\x92 1/\xE2\x88\x9A\xCE\xB5";
    const tb_terminal plain = {.width = 40, .ascii = true},
                      rich = {.width = 40};
    tb_buf b;
    tb_buf_init(&b, T->ctx);
    tb_term_wrap(&b, &plain, 2, text);
    TB_STR(T, tb_buf_str(&b), "gamma/sqrt(sigma^2+eps) -> 1/sqrt eps\n");
    b.len = 0;
    tb_term_wrap(&b, &rich, 2, text);
    TB_CHECK(T, strlen(text) + 1 == b.len &&
                    memcmp(tb_buf_str(&b), text, b.len - 1) == 0);
    b.len = 0;
    tb_term_wrap(&b, &plain, 2,
                 "\xCF\x83\xCF\x83\xCF\x83\xCF\x83 \xCF\x83\xCF\x83\xCF\x83"
                 "\xCF\x83");
    TB_STR(T, tb_buf_str(&b), "sigmasigmasigmasigma\n  sigmasigmasigmasigma\n");
    tb_buf_clear(&b);
}

/* Two cells a decade from 1e-4 on; beyond the ends full and empty. */
TB_TEST(bars_in_cells)
{
    static const struct {
        double v;
        const char *is, *ascii;
    } cases[] = {
        {1e-4, "", ""},
        {1e-3, "\xE2\x96\x88\xE2\x96\x88", "##"},
        {0.0017782794100389228, "\xE2\x96\x88\xE2\x96\x88\xE2\x96\x8C", "###"},
        {1e9,
         "\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88"
         "\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88"
         "\xE2\x96\x88\xE2\x96\x88",
         "############"},
        {1e-9, "", ""},
        {0, "\xE2\x96\xBE", "v"},
        {-1, "\xE2\x96\xBE", "v"},
        {__builtin_nan(""), "?", "?"}};
    const tb_terminal plain = {.ascii = true};
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    for (size_t i = 0; i < TB_LEN(cases); i++) {
        tb_out_reset(out);
        TB_OKAY(T, tb_log_bar(NULL, cases[i].v, 1e-4, 1e2, 12, out));
        TB_STR(T, tb_out_str(out), cases[i].is);
        tb_out_reset(out);
        TB_OKAY(T, tb_log_bar(&plain, cases[i].v, 1e-4, 1e2, 12, out));
        TB_STR(T, tb_out_str(out), cases[i].ascii);
    }
    tb_out_destroy(out);
}

/* Every allocation of a figure fails once; none crashes or leaks. */
TB_TEST(memory_failures)
{
    demo_flow d;
    demo_flow_fill(&d);
    tb_status status = TB_ERR_MEMORY;
    for (size_t n = 1; n < 400 && status != TB_OK; n++) {
        tb_scene *s = NULL;
        tb_out *out = NULL;
        tb_ctx_fail_alloc_at(T->ctx, n);
        status = tb_out_create(T->ctx, &out);
        if (status == TB_OK)
            status = tb_flow_scene(T->ctx, &d.figure, &s);
        if (status == TB_OK)
            status = tb_scene_svg(s, NULL, out);
        if (status == TB_OK)
            status = tb_flow_term(T->ctx, &d.figure, NULL, out);
        if (status == TB_OK)
            status = tb_table_term(T->ctx, &table, NULL, out);
        TB_CHECK(T, status == TB_OK || status == TB_ERR_MEMORY);
        tb_scene_destroy(s);
        tb_out_destroy(out);
    }
    tb_ctx_fail_alloc_at(T->ctx, 0);
    TB_CHECK(T, status == TB_OK);
}
