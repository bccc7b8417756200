/* SPDX-License-Identifier: MIT */
/* The JSON writer: structure, escapes, numbers, pretty form, memory. */
#include "tb_test.h"

#include <math.h>

#include "tollbooth/json.h"

static void small_document(tb_json *j)
{
    const size_t dims[] = {2, 2};
    const float x[] = {1, 0.1f, -0.0f, 1e-45f};
    tb_json_object(j, NULL);
    tb_json_string(j, "block", "pre-ln");
    tb_json_int(j, "depth", -12);
    tb_json_bool(j, "clean", true);
    tb_json_null(j, "final");
    tb_json_tensor(j, "x", TB_F32, x, 2, dims);
    tb_json_array(j, "layers");
    tb_json_object(j, NULL);
    tb_json_end(j);
    tb_json_object(j, NULL);
    tb_json_number(j, "lane", 0.5);
    tb_json_end(j);
    tb_json_end(j);
    tb_json_array(j, "empty");
    tb_json_end(j);
    tb_json_end(j);
}

TB_TEST(json_document)
{
    tb_json *j;
    TB_OKAY(T, tb_json_create(T->ctx, &j));
    small_document(j);
    TB_STR(T, tb_json_text(j),
           "{\"block\":\"pre-ln\",\"depth\":-12,\"clean\":true,\"final\":null,"
           "\"x\":[[1,0.1],[-0.0,1e-45]],\"layers\":[{},{\"lane\":0.5}],"
           "\"empty\":[]}");
    tb_json_end(j); /* one too many: ignored */
    TB_CHECK(T, tb_json_text(j) != NULL);
    tb_json_destroy(j);
    tb_json_destroy(NULL);
    TB_CHECK(T, tb_ctx_blocks(T->ctx) == 0);
}

TB_TEST(json_pretty)
{
    tb_json *j;
    TB_OKAY(T, tb_json_create(T->ctx, &j));
    tb_json_pretty(j, true);
    small_document(j);
    TB_STR(T, tb_json_text(j),
           "{\n"
           "  \"block\": \"pre-ln\",\n"
           "  \"depth\": -12,\n"
           "  \"clean\": true,\n"
           "  \"final\": null,\n"
           "  \"x\": [\n"
           "    [1, 0.1],\n"
           "    [-0.0, 1e-45]\n"
           "  ],\n"
           "  \"layers\": [\n"
           "    {},\n"
           "    {\n"
           "      \"lane\": 0.5\n"
           "    }\n"
           "  ],\n"
           "  \"empty\": []\n"
           "}");
    tb_json_destroy(j);
}

static void check_string(tb_test *T, const char *s, const char *want)
{
    tb_json *j;
    TB_OKAY(T, tb_json_create(T->ctx, &j));
    tb_json_string(j, NULL, s);
    TB_STR(T, tb_json_text(j), want);
    tb_json_destroy(j);
}

TB_TEST(json_strings)
{
    check_string(T, "", "\"\"");
    check_string(T, NULL, "null");
    check_string(T, "a\"b\\c/", "\"a\\\"b\\\\c/\"");
    check_string(T, "</script><!--", "\"<\\/script><\\u0021--\"");
    check_string(T, "a < b <<", "\"a < b <<\"");
    check_string(T, "\b\f\n\r\t\x01\x1f\x7f",
                 "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    check_string(T, "\xce\xb3 \xe2\x8a\x99 \xf0\x9d\x84\x9e",
                 "\"\xce\xb3 \xe2\x8a\x99 \xf0\x9d\x84\x9e\"");
}

#define FFFD "\xEF\xBF\xBD"

/* RFC 3629: stray, overlong, surrogate, too large, cut off. */
/* NUL is a character like any other where the length is given. */
TB_TEST(json_bytes)
{
    tb_json *j;
    TB_OKAY(T, tb_json_create(T->ctx, &j));
    tb_json_array(j, NULL);
    tb_json_bytes(j, NULL, "a\0b", 3);
    tb_json_bytes(j, NULL, "", 0);
    tb_json_bytes(j, NULL, "\xe5\x9c", 2);
    tb_json_end(j);
    TB_STR(T, tb_json_text(j),
           "[\"a\\u0000b\",\"\",\"\xef\xbf\xbd\xef\xbf\xbd\"]");
    tb_json_destroy(j);
}

TB_TEST(json_bad_utf8)
{
    check_string(T, "a\x80z", "\"a" FFFD "z\"");
    check_string(T, "\xff", "\"" FFFD "\"");
    check_string(T, "\xc0\xaf", "\"" FFFD FFFD "\"");
    check_string(T, "\xe0\x80\xaf", "\"" FFFD FFFD FFFD "\"");
    check_string(T, "\xed\xa0\x80", "\"" FFFD FFFD FFFD "\"");
    check_string(T, "\xf4\x90\x80\x80", "\"" FFFD FFFD FFFD FFFD "\"");
    check_string(T, "\xf0\x82\x82\xac", "\"" FFFD FFFD FFFD FFFD "\"");
    check_string(T, "\xe2\x8a", "\"" FFFD FFFD "\"");
    check_string(T, "\xe2\x8a\"", "\"" FFFD FFFD "\\\"\"");
    check_string(T, "\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"");
}

TB_TEST(json_keys_are_escaped)
{
    tb_json *j;
    TB_OKAY(T, tb_json_create(T->ctx, &j));
    tb_json_object(j, NULL);
    tb_json_int(j, "a\"b", 1);
    tb_json_int(j, NULL, 2);
    tb_json_end(j);
    TB_STR(T, tb_json_text(j), "{\"a\\\"b\":1,\"\":2}");
    tb_json_destroy(j);
}

TB_TEST(json_numbers)
{
    tb_json *j;
    TB_OKAY(T, tb_json_create(T->ctx, &j));
    tb_json_array(j, NULL);
    tb_json_number(j, NULL, (double)NAN);
    tb_json_number(j, NULL, (double)INFINITY);
    tb_json_float(j, NULL, -INFINITY);
    tb_json_number(j, NULL, -0.0);
    tb_json_float(j, NULL, 1e-45f);
    tb_json_float(j, NULL, 0.1f);
    tb_json_number(j, NULL, (double)0.1f);
    tb_json_int(j, NULL, INT64_MIN);
    tb_json_number(j, NULL, 1e300);
    tb_json_end(j);
    TB_STR(T, tb_json_text(j),
           "[\"nan\",\"inf\",\"-inf\",-0.0,1e-45,0.1,0.10000000149011612,"
           "-9223372036854775808,1e300]");
    tb_json_destroy(j);
}

TB_TEST(json_tensors)
{
    const double x[] = {1, 2, 3, (double)NAN, 5, 6};
    const size_t dims[] = {1, 3, 2}, none[] = {0, 2};
    tb_json *j;
    TB_OKAY(T, tb_json_create(T->ctx, &j));
    tb_json_array(j, NULL);
    tb_json_tensor(j, NULL, TB_F64, x, 3, dims);
    tb_json_tensor(j, NULL, TB_F64, x + 1, 0, NULL);
    tb_json_tensor(j, NULL, TB_F64, NULL, 2, none);
    tb_json_end(j);
    TB_STR(T, tb_json_text(j), "[[[[1,2],[3,\"nan\"],[5,6]]],2,[]]");
    tb_json_destroy(j);
}

TB_TEST(json_every_allocation_fails)
{
    size_t n = 0;
    bool whole = false;
    while (!whole) {
        tb_json *j;
        tb_ctx_fail_alloc_at(T->ctx, ++n);
        tb_status s = tb_json_create(T->ctx, &j);
        TB_CHECK(T, (s == TB_OK) == (j != NULL));
        if (j) {
            for (int i = 0; i < 100; i++) /* deep enough to grow the stack */
                tb_json_array(j, NULL);
            small_document(j);
            for (int i = 0; i < 100; i++)
                tb_json_end(j);
            whole = tb_json_text(j) != NULL;
        }
        tb_json_destroy(j);
        TB_CHECK(T, tb_ctx_blocks(T->ctx) == 0);
        TB_REQUIRE(T, n < 50);
    }
    TB_CHECK(T, n > 5);
}
