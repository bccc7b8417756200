/* SPDX-License-Identifier: MIT */
/* config.json and other JSON for rooms that do not see jansson. A value knows
 * the file and the path that led to it, so every error can say where. */
#include "checkpoint/files.h"
#include "checkpoint/json_load.h"

struct tb_config {
    struct tb_config *root;
    tb_ctx *ctx;
    const char *file;
    const char *path; /* "rope_scaling.factors[2]", "" at the root */
    json_t *v;
    tb_arena arena; /* the root's only */
};

enum { CONFIG_MAX = 256 << 20 };

/* --- root
 * --------------------------------------------------------------------- */

static tb_status load(tb_config *c, const char *text, size_t n)
{
    static const char bom[] = "\xef\xbb\xbf";
    bool big = false;
    if (n >= 3 && memcmp(text, bom, 3) == 0) {
        text += 3;
        n -= 3;
    }
    tb_status s =
        tb_json_load(c->ctx, c->file, "", text, n, TB_JSON_STRICT, &big, &c->v);
    if (s != TB_OK && big) /* model_max_length: 10^30 is a real habit */
        s = tb_json_load(c->ctx, c->file, "", text, n, TB_JSON_AS_REAL, NULL,
                         &c->v);
    return s;
}

tb_status tb_config_parse(tb_ctx *ctx, const char *name, const char *text,
                          size_t n, tb_config **out)
{
    *out = NULL;
    tb_config *c = tb_alloc(ctx, 1, sizeof(*c));
    if (c == NULL)
        return TB_ERR_MEMORY;
    c->root = c;
    c->ctx = ctx;
    c->path = "";
    tb_arena_init(&c->arena, ctx);
    c->file = tb_arena_strdup(&c->arena, name);
    tb_status s = c->file == NULL ? TB_ERR_MEMORY : load(c, text, n);
    if (s == TB_OK)
        *out = c;
    else
        tb_config_destroy(c);
    return s;
}

tb_status tb_config_open(tb_ctx *ctx, const char *path, tb_config **out)
{
    tb_bytes b;
    *out = NULL;
    TB_TRY(tb_file_read(ctx, path, CONFIG_MAX, &b));
    tb_status s = tb_config_parse(ctx, path, b.data, b.len, out);
    tb_bytes_clear(ctx, &b);
    return s;
}

void tb_config_destroy(tb_config *root)
{
    if (root == NULL)
        return;
    json_decref(root->v);
    tb_arena_clear(&root->arena);
    tb_free(root->ctx, root);
}

/* --- values
 * -------------------------------------------------------------------- */

static json_t *member(const tb_config *c, const char *key)
{
    return key == NULL ? c->v : json_object_get(c->v, key);
}

static bool missing(const tb_config *c, const char *key)
{
    const json_t *v = member(c, key);
    return v == NULL || json_is_null(v);
}

static tb_status wrong(const tb_config *c, const char *key, const char *wanted)
{
    char what[96];
    const json_t *v = member(c, key);
    tb_json_describe(v, what, sizeof(what));
    bool dot = c->path[0] != 0 && key != NULL;
    return TB_FAIL(c->ctx, TB_ERR_INPUT, "%s: %s%s%s%sgot %s, wanted %s",
                   c->file, c->path, dot ? "." : "", key ? key : "",
                   c->path[0] != 0 || key != NULL ? ": " : "", what, wanted);
}

tb_config_kind tb_config_what(const tb_config *c, const char *key)
{
    const json_t *v = member(c, key);
    if (v == NULL)
        return TB_CONFIG_ABSENT;
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return TB_CONFIG_OBJECT;
    case JSON_ARRAY:
        return TB_CONFIG_ARRAY;
    case JSON_STRING:
        return TB_CONFIG_STRING;
    case JSON_INTEGER:
        return TB_CONFIG_INT;
    case JSON_REAL:
        return TB_CONFIG_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return TB_CONFIG_BOOL;
    case JSON_NULL:
        break;
    }
    return TB_CONFIG_NULL;
}

/* An integer, or a real that is one and is exact as a double. */
static bool integer_of(const json_t *v, int64_t *out)
{
    if (json_is_integer(v)) {
        *out = json_integer_value(v);
        return true;
    }
    double d = json_is_real(v) ? json_real_value(v) : 0.5;
    if (d < -0x1p53 || d > 0x1p53 || d != (double)(int64_t)d)
        return false;
    *out = (int64_t)d;
    return true;
}

tb_status tb_config_int(tb_config *c, const char *key, int64_t *out)
{
    return integer_of(member(c, key), out) ? TB_OK
                                           : wrong(c, key, "an integer");
}

tb_status tb_config_size(tb_config *c, const char *key, size_t *out)
{
    int64_t v;
    if (!integer_of(member(c, key), &v) || v < 0 || (uint64_t)v > SIZE_MAX)
        return wrong(c, key, "an integer of at least 0");
    *out = (size_t)v;
    return TB_OK;
}

tb_status tb_config_number(tb_config *c, const char *key, double *out)
{
    const json_t *v = member(c, key);
    if (!json_is_number(v))
        return wrong(c, key, "a number");
    *out = json_number_value(v);
    return TB_OK;
}

tb_status tb_config_string(tb_config *c, const char *key, const char **out)
{
    const json_t *v = member(c, key);
    if (!json_is_string(v))
        return wrong(c, key, "a string");
    if (json_string_length(v) != strlen(json_string_value(v)))
        return wrong(c, key, "a string without NUL");
    *out = json_string_value(v);
    return TB_OK;
}

tb_status tb_config_bool(tb_config *c, const char *key, bool *out)
{
    const json_t *v = member(c, key);
    if (!json_is_boolean(v))
        return wrong(c, key, "true or false");
    *out = json_is_true(v);
    return TB_OK;
}

/* Each with a default for a key that is absent or null. */
#define WITH_DEFAULT(kind, type)                                               \
    tb_status tb_config_##kind##_or(tb_config *c, const char *key, type or_,   \
                                    type *out)                                 \
    {                                                                          \
        if (!missing(c, key))                                                  \
            return tb_config_##kind(c, key, out);                              \
        *out = or_;                                                            \
        return TB_OK;                                                          \
    }
WITH_DEFAULT(int, int64_t)
WITH_DEFAULT(size, size_t)
WITH_DEFAULT(number, double)
WITH_DEFAULT(bool, bool)

tb_status tb_config_string_or(tb_config *c, const char *key, const char *or_,
                              const char **out)
{
    if (!missing(c, key))
        return tb_config_string(c, key, out);
    *out = or_;
    return TB_OK;
}

/* --- containers
 * ------------------------------------------------------------------ */

static tb_status view(tb_config *c, json_t *v, const char *path,
                      tb_config **out)
{
    *out = path == NULL ? NULL : TB_NEW(&c->root->arena, tb_config);
    if (*out == NULL)
        return TB_ERR_MEMORY;
    **out = (tb_config){
        .root = c->root, .ctx = c->ctx, .file = c->file, .path = path, .v = v};
    return TB_OK;
}

static tb_status view_member(tb_config *c, const char *key, tb_config **out)
{
    const char *path = tb_arena_printf(
        &c->root->arena, "%s%s%s", c->path,
        c->path[0] != 0 && key != NULL ? "." : "", key == NULL ? "" : key);
    return view(c, member(c, key), path, out);
}

tb_status tb_config_object(tb_config *c, const char *key, tb_config **out)
{
    *out = NULL;
    if (!json_is_object(member(c, key)))
        return wrong(c, key, "an object");
    return view_member(c, key, out);
}

tb_status tb_config_array(tb_config *c, const char *key, tb_config **out)
{
    *out = NULL;
    if (!json_is_array(member(c, key)))
        return wrong(c, key, "a list");
    return view_member(c, key, out);
}

size_t tb_config_length(const tb_config *c)
{
    return json_is_array(c->v) ? json_array_size(c->v) : json_object_size(c->v);
}

tb_status tb_config_item(tb_config *array, size_t i, tb_config **out)
{
    json_t *v = json_array_get(array->v, i);
    *out = NULL;
    if (v == NULL)
        return TB_FAIL(array->ctx, TB_ERR_INPUT,
                       "%s: %s: got %zu items, wanted more than %zu",
                       array->file, array->path, tb_config_length(array), i);
    return view(array, v,
                tb_arena_printf(&array->root->arena, "%s[%zu]", array->path, i),
                out);
}

tb_status tb_config_ints(tb_config *array, int64_t low, int64_t high,
                         int64_t *out)
{
    for (size_t i = 0; i < tb_config_length(array); i++) {
        const json_t *v = json_array_get(array->v, i);
        if (integer_of(v, &out[i]) && out[i] >= low && out[i] <= high)
            continue;
        char what[96];
        tb_json_describe(v, what, sizeof(what));
        return TB_FAIL(array->ctx, TB_ERR_INPUT,
                       "%s: %s[%zu]: got %s, wanted an integer from %lld to "
                       "%lld",
                       array->file, array->path, i, what, (long long)low,
                       (long long)high);
    }
    return TB_OK;
}

bool tb_config_next(const tb_config *object, void **it, const char **key)
{
    *it = *it == NULL ? json_object_iter(object->v)
                      : json_object_iter_next(object->v, *it);
    if (*it == NULL)
        return false;
    *key = json_object_iter_key(*it);
    return true;
}
