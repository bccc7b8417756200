/* SPDX-License-Identifier: MIT */
/* Nested lists of numbers from the command line, and config.json. */
#include <math.h>

#include "unit/test_checkpoint_tmp.h"

/* --- tensors
 * --------------------------------------------------------------------- */

TB_TEST(nested_lists)
{
    static const struct {
        const char *text;
        int rank;
        size_t dims[3];
        double data[6];
        size_t n;
    } rows[] = {
        {"3", 0, {0}, {3}, 1},
        {" -0 ", 0, {0}, {-0.0}, 1},
        {"[1,2.5,-3e-2]", 1, {3}, {1, 2.5, -0.03}, 3},
        {"[[1,2],[3,4],[5,6]]", 2, {3, 2}, {1, 2, 3, 4, 5, 6}, 6},
        {"[[[1],[2]]]\n", 3, {1, 2, 1}, {1, 2}, 2},
        {"[]", 1, {0}, {0}, 0},
        {"[[],[]]", 2, {2, 0}, {0}, 0},
        {"[18446744073709551616]", 1, {1}, {0x1p64}, 1},
        {"[5e-324]", 1, {1}, {0x1p-1074}, 1},
        {"[\"nan\",\"inf\",\"-inf\"]",
         1,
         {3},
         {(double)NAN, (double)INFINITY, -(double)INFINITY},
         3},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_array a;
        TB_OKAY(T, tb_json_parse_tensor(T->ctx, rows[i].text, "--set x", &a));
        TB_CHECK(T, a.rank == rows[i].rank && a.count == rows[i].n);
        TB_CHECK(T, memcmp(a.dims, rows[i].dims,
                           (size_t)a.rank * sizeof(size_t)) == 0);
        for (size_t k = 0; k < a.count; k++)
            if (isnan(rows[i].data[k]))
                TB_CHECK(T, isnan(a.data[k]));
            else
                TB_SAME(T, &a.data[k], &rows[i].data[k], sizeof(double));
        tb_array_clear(T->ctx, &a);
    }
}

TB_TEST(refused_lists)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"[[1,2,3],[4,5]]", "--set x: ragged list: [1] has 2 items, [0] has 3"},
        {"[[[1],[2]],[[3],[4,5]]]",
         "ragged list: [1][1] has 2 items, [0][0] has 1"},
        {"[[1],2]", "ragged list: [1] is number 2, [0] is a list"},
        {"[1,[2]]", "ragged list: [1] is a list of 1, [0] is a number"},
        {"[1,null]", "[1]: got null, wanted a number"},
        {"[1,\"two\"]", "[1]: got string \"two\", wanted a number or \"nan\""},
        {"[\"NaN\"]", "got string \"NaN\""},
        {"{\"a\":1}", "got an object, wanted a number"},
        {"true", "got true"},
        {"NaN", "write \"nan\""},
        {"[1,NaN]", "write \"nan\""},
        {"[nan]", "write \"nan\""},
        {"[-Infinity]", "not JSON"},
        {"[1e999]", "overflow"},
        {"", "not JSON"},
        {"   ", "not JSON"},
        {"[1,2", "not JSON: line 1, column 4"},
        {"[1,2]]", "not JSON"},
        {"[1,2] x", "not JSON"},
        {"[01]", "not JSON"},
        {"[.5]", "not JSON"},
        {"[1,]", "not JSON"},
        {"[[[[[[[[[1]]]]]]]]]", "more than 8 deep"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_array a;
        TB_FAILS(T, tb_json_parse_tensor(T->ctx, rows[i].text, "--set x", &a),
                 TB_ERR_INPUT, rows[i].error);
        TB_CHECK(T, a.data == NULL && a.count == 0);
    }
}

TB_TEST(eight_deep)
{
    tb_array a;
    TB_OKAY(T, tb_json_parse_tensor(T->ctx, "[[[[[[[[1,2]]]]]]]]", "x", &a));
    TB_CHECK(T, a.rank == 8 && a.dims[7] == 2 && a.count == 2);
    tb_array_clear(T->ctx, &a);
}

TB_TEST(nested_brackets)
{
    enum { DEEP = 20000 };
    static char text[2 * DEEP + 1];
    tb_array a;
    tb_config *c;
    memset(text, '[', DEEP);
    memset(text + DEEP, ']', DEEP);
    TB_FAILS(T, tb_json_parse_tensor(T->ctx, text, "x", &a), TB_ERR_INPUT,
             "nested too deeply");
    TB_FAILS(T, tb_config_parse(T->ctx, "c", text, 2 * DEEP, &c), TB_ERR_INPUT,
             "c: not JSON (nested too deeply)");
}

TB_TEST(each_allocation_may_fail)
{
    tb_array a;
    tb_config *c = NULL;
    TMP_EACH_ALLOC(T, tb_json_parse_tensor(T->ctx, "[[1,2]]", "x", &a),
                   tb_array_clear(T->ctx, &a));
    const char *path = tmp_text("alloc.json", "{\"a\":[1]}");
    TMP_EACH_ALLOC(T, tb_config_open(T->ctx, path, &c), tb_config_destroy(c));
}

/* --- config
 * ------------------------------------------------------------------------- */

static const char sample[] =
    "\xef\xbb\xbf{\"n_layer\": 12, \"eps\": 1e-5, \"act\": \"gelu_new\", "
    "\"tie\": "
    "true, \"none\": null, \"wide\": 768.0, \"half\": 0.5, \"neg\": -1,\n"
    "\"rope\": {\"factors\": [1, 2.5, 3], \"kind\": 7}, \"nul\": "
    "\"a\\u0000b\"}";

static tb_config *sample_config(tb_test *T)
{
    tb_config *c = NULL;
    tb_config_parse(T->ctx, "config.json", sample, sizeof(sample) - 1, &c);
    return c;
}

TB_TEST(values)
{
    tb_config *c = sample_config(T);
    int64_t i;
    size_t n;
    double x;
    const char *s;
    bool b;
    TB_REQUIRE(T, c != NULL);
    TB_OKAY(T, tb_config_int(c, "n_layer", &i));
    TB_CHECK(T, i == 12);
    TB_OKAY(T, tb_config_size(c, "wide", &n));
    TB_CHECK(T, n == 768);
    TB_OKAY(T, tb_config_number(c, "eps", &x));
    TB_NEAR(T, x, 1e-5, 0);
    TB_OKAY(T, tb_config_number(c, "n_layer", &x));
    TB_NEAR(T, x, 12, 0);
    TB_OKAY(T, tb_config_string(c, "act", &s));
    TB_STR(T, s, "gelu_new");
    TB_OKAY(T, tb_config_bool(c, "tie", &b));
    TB_CHECK(T, b);
    TB_CHECK(T, tb_config_what(c, "none") == TB_CONFIG_NULL);
    TB_CHECK(T, tb_config_what(c, "absent") == TB_CONFIG_ABSENT);
    TB_CHECK(T, tb_config_what(c, NULL) == TB_CONFIG_OBJECT);
    TB_CHECK(T, tb_config_what(c, "eps") == TB_CONFIG_REAL);
    tb_config_destroy(c);
}

TB_TEST(wrong_values_name_file_and_key)
{
    tb_config *c = sample_config(T), *rope, *list, *item;
    int64_t i;
    size_t n;
    double x;
    const char *s;
    bool b;
    TB_REQUIRE(T, c != NULL);
    TB_FAILS(T, tb_config_int(c, "absent", &i), TB_ERR_INPUT,
             "config.json: absent: got nothing, wanted an integer");
    TB_FAILS(T, tb_config_int(c, "half", &i), TB_ERR_INPUT,
             "half: got number 0.5");
    TB_FAILS(T, tb_config_size(c, "neg", &n), TB_ERR_INPUT,
             "neg: got number -1, wanted an integer of at least 0");
    TB_FAILS(T, tb_config_number(c, "act", &x), TB_ERR_INPUT,
             "act: got string \"gelu_new\", wanted a number");
    TB_FAILS(T, tb_config_string(c, "eps", &s), TB_ERR_INPUT,
             "wanted a string");
    TB_FAILS(T, tb_config_string(c, "nul", &s), TB_ERR_INPUT, "without NUL");
    TB_FAILS(T, tb_config_bool(c, "n_layer", &b), TB_ERR_INPUT,
             "wanted true or false");
    TB_FAILS(T, tb_config_array(c, "rope", &list), TB_ERR_INPUT,
             "rope: got an object, wanted a list");
    TB_OKAY(T, tb_config_object(c, "rope", &rope));
    TB_FAILS(T, tb_config_string(rope, "kind", &s), TB_ERR_INPUT,
             "config.json: rope.kind: got number 7");
    TB_OKAY(T, tb_config_array(rope, "factors", &list));
    TB_OKAY(T, tb_config_item(list, 1, &item));
    TB_FAILS(T, tb_config_int(item, NULL, &i), TB_ERR_INPUT,
             "rope.factors[1]: got number 2.5");
    TB_FAILS(T, tb_config_item(list, 3, &item), TB_ERR_INPUT, "got 3 items");
    int64_t all[3];
    TB_FAILS(T, tb_config_ints(list, 0, 9, all), TB_ERR_INPUT,
             "rope.factors[1]: got number 2.5, wanted an integer from 0 to 9");
    tb_config_destroy(c);
}

TB_TEST(defaults)
{
    tb_config *c = sample_config(T);
    int64_t i;
    double x;
    const char *s;
    bool b;
    size_t n;
    TB_REQUIRE(T, c != NULL);
    TB_OKAY(T, tb_config_int_or(c, "absent", 3, &i));
    TB_CHECK(T, i == 3);
    TB_OKAY(T, tb_config_size_or(c, "none", 4, &n));
    TB_CHECK(T, n == 4);
    TB_OKAY(T, tb_config_number_or(c, "eps", 7, &x));
    TB_NEAR(T, x, 1e-5, 0);
    TB_OKAY(T, tb_config_string_or(c, "absent", NULL, &s));
    TB_CHECK(T, s == NULL);
    TB_OKAY(T, tb_config_bool_or(c, "absent", true, &b));
    TB_CHECK(T, b);
    TB_FAILS(T, tb_config_bool_or(c, "act", true, &b), TB_ERR_INPUT, "act");
    tb_config_destroy(c);
}

TB_TEST(members_in_order)
{
    static const char text[] = "{\"b\": 1, \"a\": 2, \"\": 3}";
    static const char *const want[] = {"b", "a", ""};
    tb_config *c;
    void *it = NULL;
    const char *key;
    size_t n = 0;
    TB_OKAY(T, tb_config_parse(T->ctx, "v", text, sizeof(text) - 1, &c));
    TB_CHECK(T, tb_config_length(c) == 3);
    while (tb_config_next(c, &it, &key)) {
        TB_REQUIRE(T, n < TB_LEN(want));
        TB_STR(T, key, want[n++]);
    }
    TB_CHECK(T, n == 3);
    tb_config_destroy(c);
}

TB_TEST(broken_configs)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"", "config.json: not JSON: line 1"},
        {"{\n\"a\": NaN}", "not JSON: line 2"},
        {"{\"a\":1,\"a\":2}", "duplicate"},
        {"{\"a\":1} x", "not JSON"},
        {"{\"a\":\"\xff\"}", "not UTF-8"},
        {"{'a':1}", "not JSON"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_config *c;
        TB_FAILS(T,
                 tb_config_parse(T->ctx, "config.json", rows[i].text,
                                 strlen(rows[i].text), &c),
                 TB_ERR_INPUT, rows[i].error);
        TB_CHECK(T, c == NULL);
    }
}

/* model_max_length of tokenizer_config.json files is often 10^30. */
TB_TEST(integers_beyond_64_bits)
{
    static const char text[] =
        "{\"model_max_length\": 1000000000000000019884624838656, \"n\": 12}";
    tb_config *c;
    double x;
    int64_t n;
    TB_OKAY(T, tb_config_parse(T->ctx, "t", text, sizeof(text) - 1, &c));
    TB_OKAY(T, tb_config_number(c, "model_max_length", &x));
    TB_NEAR(T, x, 1e30, 1e-15);
    TB_OKAY(T, tb_config_int(c, "n", &n));
    TB_CHECK(T, n == 12);
    TB_FAILS(T, tb_config_int(c, "model_max_length", &n), TB_ERR_INPUT,
             "wanted an integer");
    tb_config_destroy(c);
}
