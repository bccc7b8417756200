/* SPDX-License-Identifier: MIT */
/* Writing safetensors: collect names and pointers, then one atomic pass. The
 * order is the reference writer's: larger elements first, then by name. */
#include <stdlib.h>

#include "checkpoint/elem.h"
#include "checkpoint/files.h"
#include "checkpoint/utf8.h"
#include "tollbooth/json.h"

typedef struct entry {
    const char *name;
    tb_elem elem;
    int rank;
    size_t dims[TB_TENSOR_RANK], count;
    tb_dtype dtype;
    const void *data;
} entry;

typedef struct pair {
    const char *key, *value;
} pair;

struct tb_safetensors_writer {
    tb_ctx *ctx;
    tb_arena arena; /* names, keys, values */
    entry *entries;
    size_t count, cap;
    pair *meta;
    size_t meta_count, meta_cap;
};

tb_status tb_safetensors_writer_create(tb_ctx *ctx, tb_safetensors_writer **out)
{
    *out = tb_alloc(ctx, 1, sizeof(**out));
    if (*out == NULL)
        return TB_ERR_MEMORY;
    (*out)->ctx = ctx;
    tb_arena_init(&(*out)->arena, ctx);
    return TB_OK;
}

void tb_safetensors_writer_destroy(tb_safetensors_writer *w)
{
    if (w == NULL)
        return;
    tb_free(w->ctx, w->entries);
    tb_free(w->ctx, w->meta);
    tb_arena_clear(&w->arena);
    tb_free(w->ctx, w);
}

/* A table with room for one more row of `size` bytes. */
static tb_status grow(tb_ctx *ctx, void **table, size_t count, size_t *cap,
                      size_t size)
{
    if (count < *cap)
        return TB_OK;
    size_t rows, bytes;
    if (!tb_mul(*cap, 2, &rows) || !tb_add(rows, 16, &rows) ||
        !tb_mul(rows, size, &bytes))
        return TB_FAIL(ctx, TB_ERR_MEMORY, "safetensors: too many tensors");
    void *p = *table == NULL ? tb_alloc(ctx, bytes, 1)
                             : tb_realloc(ctx, *table, *cap * size, bytes);
    if (p == NULL)
        return TB_ERR_MEMORY;
    *table = p;
    *cap = rows;
    return TB_OK;
}

static tb_status check_text(tb_ctx *ctx, const char *what, const char *text)
{
    if (tb_utf8_valid(text, strlen(text)))
        return TB_OK;
    return TB_FAIL(ctx, TB_ERR_ARG, "safetensors: %s is not UTF-8", what);
}

tb_status tb_safetensors_writer_meta(tb_safetensors_writer *w, const char *key,
                                     const char *value)
{
    TB_TRY(check_text(w->ctx, "a metadata key", key));
    TB_TRY(check_text(w->ctx, key, value));
    size_t i = 0;
    while (i < w->meta_count && !tb_streq(w->meta[i].key, key))
        i++;
    void *table = w->meta;
    TB_TRY(grow(w->ctx, &table, i, &w->meta_cap, sizeof(*w->meta)));
    w->meta = table;
    pair p = {tb_arena_strdup(&w->arena, key),
              tb_arena_strdup(&w->arena, value)};
    if (p.key == NULL || p.value == NULL)
        return TB_ERR_MEMORY;
    w->meta[i] = p;
    if (i == w->meta_count)
        w->meta_count++;
    return TB_OK;
}

static tb_status check_entry(tb_ctx *ctx, const entry *e)
{
    unsigned char scratch[8];
    static const double none[1];
    TB_TRY(check_text(ctx, "a tensor's name", e->name));
    if (e->name[0] == 0 || tb_streq(e->name, "__metadata__"))
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "safetensors: got the tensor name \"%s\", wanted "
                       "another",
                       e->name);
    if (e->rank < 0 || e->rank > TB_TENSOR_RANK)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "safetensors: tensor '%s': got %d dimensions, wanted "
                       "0 to %d",
                       e->name, e->rank, TB_TENSOR_RANK);
    if (!tb_elem_encode(e->elem, TB_F64, none, 1, scratch))
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "safetensors: tensor '%s': %s cannot be written",
                       e->name, tb_elem_name(e->elem));
    return TB_OK;
}

tb_status tb_safetensors_writer_add(tb_safetensors_writer *w, const char *name,
                                    tb_elem elem, int rank, const size_t *dims,
                                    tb_dtype dtype, const void *data)
{
    entry e = {
        .name = name, .elem = elem, .rank = rank, .dtype = dtype, .data = data};
    size_t bytes;
    TB_TRY(check_entry(w->ctx, &e));
    if (rank > 0)
        memcpy(e.dims, dims, (size_t)rank * sizeof(*dims));
    if (!tb_dims_count(rank, dims, &e.count) ||
        !tb_mul(e.count, tb_elem_size(elem), &bytes))
        return TB_FAIL(w->ctx, TB_ERR_ARG,
                       "safetensors: tensor '%s': overflow in its shape", name);
    void *table = w->entries;
    TB_TRY(grow(w->ctx, &table, w->count, &w->cap, sizeof(*w->entries)));
    w->entries = table;
    e.name = tb_arena_strdup(&w->arena, name);
    if (e.name == NULL)
        return TB_ERR_MEMORY;
    w->entries[w->count++] = e;
    return TB_OK;
}

/* --- header ------------------------------------------------------------------
 */

static int by_size_then_name(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    size_t sx = tb_elem_size(x->elem), sy = tb_elem_size(y->elem);
    if (sx != sy)
        return sx > sy ? -1 : 1;
    if (x->elem != y->elem)
        return x->elem < y->elem ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const pair *)a)->key, ((const pair *)b)->key);
}

static tb_status check_names(tb_safetensors_writer *w)
{
    if (w->count > 1)
        qsort(w->entries, w->count, sizeof(*w->entries), by_name);
    for (size_t i = 1; i < w->count; i++)
        if (tb_streq(w->entries[i - 1].name, w->entries[i].name))
            return TB_FAIL(w->ctx, TB_ERR_ARG,
                           "safetensors: two tensors are named '%s'",
                           w->entries[i].name);
    return TB_OK;
}

static void put_meta(const tb_safetensors_writer *w, tb_json *j)
{
    if (w->meta_count == 0)
        return;
    tb_json_object(j, "__metadata__");
    for (size_t i = 0; i < w->meta_count; i++)
        tb_json_string(j, w->meta[i].key, w->meta[i].value);
    tb_json_end(j);
}

/* One entry at data offset `at`; returns where the next one starts. */
static size_t put_entry(const entry *e, tb_json *j, size_t at)
{
    size_t end = at + e->count * tb_elem_size(e->elem);
    tb_json_object(j, e->name);
    tb_json_string(j, "dtype", tb_elem_name(e->elem));
    tb_json_array(j, "shape");
    for (int i = 0; i < e->rank; i++)
        tb_json_int(j, NULL, (int64_t)e->dims[i]);
    tb_json_end(j);
    tb_json_array(j, "data_offsets");
    tb_json_int(j, NULL, (int64_t)at);
    tb_json_int(j, NULL, (int64_t)end);
    tb_json_end(j);
    tb_json_end(j);
    return end;
}

/* Metadata by key and tensors in data order; spaces up to a multiple of 8. */
static tb_status put_header(tb_safetensors_writer *w, tb_buf *b)
{
    tb_json *j;
    size_t at = 0;
    TB_TRY(tb_json_create(w->ctx, &j));
    tb_json_object(j, NULL);
    put_meta(w, j);
    for (size_t i = 0; i < w->count; i++)
        at = put_entry(&w->entries[i], j, at);
    tb_json_end(j);
    const char *text = tb_json_text(j);
    size_t n = text == NULL ? 0 : strlen(text), padded = (n + 7) / 8 * 8;
    for (size_t i = 0; i < 8; i++)
        tb_buf_putc(b, (char)((uint64_t)padded >> (8 * i) & 0xff));
    tb_buf_put(b, text == NULL ? "" : text, n);
    for (; n < padded; n++)
        tb_buf_putc(b, ' ');
    tb_json_destroy(j);
    return n == 0 ? TB_ERR_MEMORY : tb_buf_status(b);
}

static tb_status make_header(tb_safetensors_writer *w, const char *path,
                             tb_buf *b)
{
    TB_TRY(check_names(w));
    if (w->count > 1)
        qsort(w->entries, w->count, sizeof(*w->entries), by_size_then_name);
    if (w->meta_count > 1)
        qsort(w->meta, w->meta_count, sizeof(*w->meta), by_key);
    TB_TRY(put_header(w, b));
    if (b->len - 8 > TB_SAFETENSORS_HEADER_MAX)
        return TB_FAIL(w->ctx, TB_ERR_INPUT,
                       "%s: header length %zu exceeds the limit of %d bytes "
                       "that every safetensors reader has",
                       path, b->len - 8, TB_SAFETENSORS_HEADER_MAX);
    return TB_OK;
}

/* --- data
 * --------------------------------------------------------------------- */

tb_status tb_out_write_elems(tb_out *o, tb_elem elem, tb_dtype t, const void *x,
                             size_t n)
{
    enum { CHUNK = 16384 };
    unsigned char raw[CHUNK];
    const char *from = x;
    size_t most = CHUNK / tb_elem_size(elem);
    if (TB_LITTLE_ENDIAN && elem == tb_elem_of(t))
        return tb_out_write(o, x, n * tb_elem_size(elem));
    while (n > 0) {
        size_t k = n < most ? n : most;
        tb_elem_encode(elem, t, from, k, raw);
        TB_TRY(tb_out_write(o, raw, k * tb_elem_size(elem)));
        from += k * tb_dtype_size(t);
        n -= k;
    }
    return TB_OK;
}

static tb_status put_all(const tb_safetensors_writer *w, const tb_buf *header,
                         tb_out *o)
{
    TB_TRY(tb_out_write(o, header->data, header->len));
    for (size_t i = 0; i < w->count; i++) {
        const entry *e = &w->entries[i];
        TB_TRY(tb_out_write_elems(o, e->elem, e->dtype, e->data, e->count));
    }
    return TB_OK;
}

static tb_status save(tb_safetensors_writer *w, const char *path,
                      const tb_file_ops *ops, tb_buf *header)
{
    tb_out *o;
    TB_TRY(make_header(w, path, header));
    TB_TRY(tb_out_open(w->ctx, path, ops, &o));
    tb_status s = put_all(w, header, o);
    if (s == TB_OK)
        return tb_out_finish(o);
    tb_out_abort(o);
    return s;
}

tb_status tb_safetensors_writer_save_ops(tb_safetensors_writer *w,
                                         const char *path,
                                         const tb_file_ops *ops)
{
    tb_buf header;
    tb_buf_init(&header, w->ctx);
    tb_status s = save(w, path, ops, &header);
    tb_buf_clear(&header);
    return s;
}

tb_status tb_safetensors_writer_save(tb_safetensors_writer *w, const char *path)
{
    return tb_safetensors_writer_save_ops(w, path, NULL);
}
