/* SPDX-License-Identifier: MIT */
/* The header of a safetensors file, checked as strictly as the reference
 * reader does (huggingface/safetensors); sizes before anything is allocated. */
#include <stdlib.h>

#include "checkpoint/elem.h"
#include "checkpoint/json_load.h"
#include "checkpoint/looks_like.h"
#include "checkpoint/safetensors.h"

enum {
    PREFIX = 8,      /* bytes of the length */
    HEAD = 512,      /* bytes looked at before anything is allocated */
    NAME_SHOWN = 160 /* bytes of a tensor's name in a message */
};

#define BAD(f, ...) TB_FAIL((f)->ctx, TB_ERR_INPUT, __VA_ARGS__)

/* --- the length and the first bytes ----------------------------------------
 */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* A file of another kind gets its name instead of a strange length. */
static tb_status another_kind(tb_safetensors *f, const char *head, size_t n)
{
    char phrase[160];
    if (tb_looks_like(head, n, phrase, sizeof(phrase)) == NULL)
        return TB_OK;
    return BAD(f, "%s: not safetensors: looks like %s", f->path, phrase);
}

static tb_status check_length(tb_safetensors *f, const char *head, size_t n,
                              uint64_t *length)
{
    if (f->bytes < PREFIX)
        return BAD(f,
                   "%s: too short: got %llu bytes, wanted at least 8 (the "
                   "header length)",
                   f->path, (unsigned long long)f->bytes);
    *length = 0;
    for (size_t i = 0; i < PREFIX; i++)
        *length |= (uint64_t)(unsigned char)head[i] << (8 * i);
    bool above = *length > TB_SAFETENSORS_HEADER_MAX;
    if (!above && *length <= f->bytes - PREFIX)
        return TB_OK;
    TB_TRY(another_kind(f, head, n));
    if (above)
        return BAD(f,
                   "%s: header length %llu exceeds the limit of %d bytes (the "
                   "file has %llu)",
                   f->path, (unsigned long long)*length,
                   TB_SAFETENSORS_HEADER_MAX, (unsigned long long)f->bytes);
    return BAD(f,
               "%s: header longer than the file: header length %llu, the file "
               "has %llu bytes after it",
               f->path, (unsigned long long)*length,
               (unsigned long long)(f->bytes - PREFIX));
}

/* The first character of the JSON, before its buffer is allocated. */
static tb_status check_start(tb_safetensors *f, const char *head, size_t n,
                             uint64_t length)
{
    size_t i = PREFIX, end = n - PREFIX < length ? n : PREFIX + (size_t)length;
    while (i < end && is_space(head[i]))
        i++;
    if (i < end && head[i] == '{')
        return TB_OK;
    TB_TRY(another_kind(f, head, n));
    if (i == end && end == PREFIX + length)
        return BAD(f, "%s: header: not JSON: it is empty", f->path);
    if (i < end && (unsigned char)head[i] < 0x80)
        return BAD(f,
                   "%s: header: not JSON: must begin with '{', begins with "
                   "byte 0x%02x",
                   f->path, (unsigned)head[i]);
    return TB_OK; /* a long run of white space, or not ASCII: parse it */
}

static tb_status load_header(tb_safetensors *f, json_t **root)
{
    char head[HEAD];
    size_t n = f->bytes < HEAD ? (size_t)f->bytes : HEAD;
    uint64_t length = 0;
    TB_TRY(tb_safetensors_read_at(f->ctx, f, 0, head, n));
    TB_TRY(check_length(f, head, n, &length));
    TB_TRY(check_start(f, head, n, length));
    f->data_at = PREFIX + length;
    char *text = tb_alloc(f->ctx, (size_t)length, 1);
    if (text == NULL)
        return TB_ERR_MEMORY;
    tb_status s =
        tb_safetensors_read_at(f->ctx, f, PREFIX, text, (size_t)length);
    if (s == TB_OK && memchr(text, 0, (size_t)length) != NULL)
        s = BAD(f,
                "%s: header: not JSON: NUL padding in header (pad with "
                "spaces)",
                f->path);
    if (s == TB_OK)
        s = tb_json_load(f->ctx, f->path, "header: ", text, (size_t)length,
                         TB_JSON_STRICT, NULL, root);
    tb_free(f->ctx, text);
    return s;
}

/* --- one tensor's entry -----------------------------------------------------
 */

static tb_status wrong(tb_safetensors *f, const char *name, const char *field,
                       const json_t *got, const char *wanted)
{
    char what[96];
    tb_json_describe(got, what, sizeof(what));
    return BAD(f, "%s: header: tensor '%.*s': %s: got %s, wanted %s", f->path,
               NAME_SHOWN, name, field, what, wanted);
}

static tb_status read_elem(tb_safetensors *f, const char *name, const json_t *v,
                           tb_elem *out)
{
    static const char wanted[] = "one of"
#define TB_ELEM_WORD(id, word, bytes) " " word
        TB_ELEM_LIST(TB_ELEM_WORD)
#undef TB_ELEM_WORD
        ;
    if (!json_is_string(v))
        return wrong(f, name, "dtype", v, wanted);
    for (int e = 0; e < TB_ELEM_COUNT; e++)
        if (json_string_length(v) == strlen(tb_elem_name((tb_elem)e)) &&
            tb_streq(json_string_value(v), tb_elem_name((tb_elem)e))) {
            *out = (tb_elem)e;
            return TB_OK;
        }
    return BAD(
        f, "%s: header: tensor '%.*s': dtype \"%.*s\" unknown, wanted %s%s",
        f->path, NAME_SHOWN, name, 40, json_string_value(v), wanted,
        json_string_length(v) == 0 ? " (was a tied head dropped by the writer?)"
                                   : "");
}

/* A size or offset: a JSON integer, not negative, that fits in size_t. */
static bool size_of(const json_t *v, size_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0 ||
        (unsigned long long)json_integer_value(v) > SIZE_MAX)
        return false;
    *out = (size_t)json_integer_value(v);
    return true;
}

static tb_status read_shape(tb_safetensors *f, const json_t *v,
                            tb_tensor_info *t)
{
    if (!json_is_array(v))
        return wrong(f, t->name, "shape", v, "a list of sizes");
    size_t rank = json_array_size(v);
    if (rank > TB_TENSOR_RANK)
        return BAD(f,
                   "%s: header: tensor '%.*s': shape: got %zu dimensions, "
                   "wanted at most %d",
                   f->path, NAME_SHOWN, t->name, rank, TB_TENSOR_RANK);
    t->rank = (int)rank;
    for (size_t i = 0; i < rank; i++)
        if (!size_of(json_array_get(v, i), &t->dims[i]))
            return wrong(f, t->name, "shape", json_array_get(v, i),
                         "an integer of at least 0");
    return TB_OK;
}

static tb_status read_offsets(tb_safetensors *f, const json_t *v,
                              tb_tensor_info *t)
{
    size_t at[2];
    if (!json_is_array(v) || json_array_size(v) != 2)
        return wrong(f, t->name, "data_offsets", v, "[begin, end]");
    for (size_t i = 0; i < 2; i++)
        if (!size_of(json_array_get(v, i), &at[i]))
            return wrong(f, t->name, "data_offsets", json_array_get(v, i),
                         "an integer of at least 0");
    if (at[0] > at[1])
        return BAD(f, "%s: tensor '%.*s': data_offsets [%zu,%zu] run backwards",
                   f->path, NAME_SHOWN, t->name, at[0], at[1]);
    t->at = at[0];
    t->bytes = at[1] - at[0];
    return TB_OK;
}

static tb_status check_bytes(tb_safetensors *f, tb_tensor_info *t)
{
    char shape[TB_SHAPE_CHARS];
    size_t bytes;
    tb_shape_text(t->rank, t->dims, shape);
    if (!tb_dims_count(t->rank, t->dims, &t->count) ||
        !tb_mul(t->count, tb_elem_size(t->elem), &bytes))
        return BAD(f, "%s: tensor '%.*s': overflow: %s %s needs too many bytes",
                   f->path, NAME_SHOWN, t->name, tb_elem_name(t->elem), shape);
    if (bytes == t->bytes)
        return TB_OK;
    return BAD(f,
               "%s: tensor '%.*s': %s %s needs %zu bytes, its range has %llu",
               f->path, NAME_SHOWN, t->name, tb_elem_name(t->elem), shape,
               bytes, (unsigned long long)t->bytes);
}

static tb_status read_tensor(tb_safetensors *f, const char *name,
                             const json_t *v, tb_tensor_info *t)
{
    if (!json_is_object(v))
        return wrong(f, name, "entry", v, "an object");
    t->name = tb_arena_strdup(&f->arena, name);
    if (t->name == NULL)
        return TB_ERR_MEMORY;
    TB_TRY(read_elem(f, name, json_object_get(v, "dtype"), &t->elem));
    TB_TRY(read_shape(f, json_object_get(v, "shape"), t));
    TB_TRY(read_offsets(f, json_object_get(v, "data_offsets"), t));
    return check_bytes(f, t);
}

/* --- the whole header --------------------------------------------------------
 */

static tb_status read_meta(tb_safetensors *f, json_t *v)
{
    const char *key;
    json_t *value;
    if (v == NULL || json_is_null(v))
        return TB_OK;
    if (!json_is_object(v))
        return wrong(f, "__metadata__", "entry", v, "an object");
    f->meta = tb_arena_alloc(&f->arena, json_object_size(v) * sizeof(*f->meta));
    if (f->meta == NULL)
        return TB_ERR_MEMORY;
    json_object_foreach(v, key, value)
    {
        if (!json_is_string(value) ||
            json_string_length(value) != strlen(json_string_value(value)))
            return wrong(f, "__metadata__", key, value, "a string without NUL");
        tb_meta_pair *m = &f->meta[f->meta_count++];
        m->key = tb_arena_strdup(&f->arena, key);
        m->value = tb_arena_strdup(&f->arena, json_string_value(value));
        if (m->key == NULL || m->value == NULL)
            return TB_ERR_MEMORY;
    }
    return TB_OK;
}

static tb_status make_tables(tb_safetensors *f, size_t n)
{
    size_t bytes;
    if (!tb_mul(n, sizeof(*f->tensors), &bytes))
        return TB_FAIL(f->ctx, TB_ERR_MEMORY, "%s: %zu tensors", f->path, n);
    f->tensors = tb_arena_alloc(&f->arena, bytes);
    f->by_name = tb_arena_alloc(&f->arena, n * sizeof(*f->by_name));
    f->names = tb_arena_alloc(&f->arena, n * sizeof(*f->names));
    return f->tensors && f->by_name && f->names ? TB_OK : TB_ERR_MEMORY;
}

static tb_status read_entries(tb_safetensors *f, json_t *root)
{
    const char *name;
    json_t *v;
    if (!json_is_object(root))
        return BAD(f, "%s: header: not JSON: wanted an object", f->path);
    TB_TRY(make_tables(f, json_object_size(root)));
    json_object_foreach(root, name, v)
    {
        if (tb_streq(name, "__metadata__"))
            continue;
        TB_TRY(read_tensor(f, name, v, &f->tensors[f->count]));
        f->count++;
    }
    return read_meta(f, json_object_get(root, "__metadata__"));
}

/* --- coverage
 * ------------------------------------------------------------------ */

/* Empty tensors come before the one that starts where they stand. */
static int by_range(const void *a, const void *b)
{
    const tb_tensor_info *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const tb_tensor_info *x = *(const tb_tensor_info *const *)a;
    const tb_tensor_info *y = *(const tb_tensor_info *const *)b;
    return strcmp(x->name, y->name);
}

static tb_status gap(tb_safetensors *f, const tb_tensor_info *before,
                     const tb_tensor_info *t, uint64_t end)
{
    if (t->at > end)
        return BAD(f, "%s: tensor '%.*s': hole at bytes %llu..%llu before it",
                   f->path, NAME_SHOWN, t->name, (unsigned long long)end,
                   (unsigned long long)t->at);
    return BAD(f,
               "%s: tensors '%.*s' and '%.*s' overlap: ranges [%llu,%llu] and "
               "[%llu,%llu]",
               f->path, NAME_SHOWN, before->name, NAME_SHOWN, t->name,
               (unsigned long long)before->at, (unsigned long long)end,
               (unsigned long long)t->at,
               (unsigned long long)(t->at + t->bytes));
}

/* The data area is covered from its first byte to its last, once. */
static tb_status check_coverage(tb_safetensors *f)
{
    uint64_t end = 0, have = f->bytes - f->data_at;
    const tb_tensor_info *before = NULL;
    for (size_t i = 0; i < f->count; i++) {
        const tb_tensor_info *t = &f->tensors[i];
        if (t->at != end)
            return gap(f, before, t, end);
        end += t->bytes;
        before = t;
    }
    if (end > have)
        return BAD(f,
                   "%s: the file ends %llu bytes early: tensors need %llu, "
                   "data area has %llu (truncated download?)",
                   f->path, (unsigned long long)(end - have),
                   (unsigned long long)end, (unsigned long long)have);
    if (end < have)
        return BAD(f, "%s: %llu unexpected trailing bytes after the tensors",
                   f->path, (unsigned long long)(have - end));
    return TB_OK;
}

static void sort_tables(tb_safetensors *f)
{
    if (f->count > 1)
        qsort(f->tensors, f->count, sizeof(*f->tensors), by_range);
    for (size_t i = 0; i < f->count; i++)
        f->by_name[i] = &f->tensors[i];
    if (f->count > 1)
        qsort(f->by_name, f->count, sizeof(*f->by_name), by_name);
    for (size_t i = 0; i < f->count; i++)
        f->names[i] = f->by_name[i]->name;
}

tb_status tb_safetensors_load(tb_safetensors *f)
{
    json_t *root = NULL;
    TB_TRY(load_header(f, &root));
    tb_status s = read_entries(f, root);
    json_decref(root);
    TB_TRY(s);
    sort_tables(f);
    return check_coverage(f);
}
