/* SPDX-License-Identifier: MIT */
/* An open safetensors file: opening, looking up, reading tensors. The file is
 * read with pread rather than mapped, so one that shrinks is an error and not
 * a signal. */
#include <unistd.h>

#include "checkpoint/elem.h"
#include "checkpoint/files.h"
#include "checkpoint/safetensors.h"

tb_status tb_safetensors_read_at(tb_ctx *ctx, const tb_safetensors *f,
                                 uint64_t at, void *out, size_t n)
{
    if (f->fd >= 0)
        return tb_read_at(ctx, f->path, f->fd, at, out, n);
    if (n > 0)
        memcpy(out, f->memory + at, n);
    return TB_OK;
}

/* --- open and close
 * -------------------------------------------------------------- */

static tb_status make(tb_ctx *ctx, const char *path, tb_safetensors **out)
{
    tb_safetensors *f = tb_alloc(ctx, 1, sizeof(*f));
    if (f == NULL)
        return TB_ERR_MEMORY;
    f->ctx = ctx;
    f->fd = -1;
    tb_arena_init(&f->arena, ctx);
    f->path = tb_arena_strdup(&f->arena, path);
    *out = f;
    return f->path == NULL ? TB_ERR_MEMORY : TB_OK;
}

static tb_status done(tb_status s, tb_safetensors *f, tb_safetensors **out)
{
    if (s == TB_OK)
        *out = f;
    else
        tb_safetensors_close(f);
    return s;
}

tb_status tb_safetensors_open(tb_ctx *ctx, const char *path,
                              tb_safetensors **out)
{
    tb_safetensors *f = NULL;
    *out = NULL;
    tb_status s = make(ctx, path, &f);
    if (s == TB_OK)
        s = tb_open_regular(ctx, path, &f->fd, &f->bytes);
    if (s == TB_OK)
        s = tb_safetensors_load(f);
    return done(s, f, out);
}

tb_status tb_safetensors_open_memory(tb_ctx *ctx, const char *name,
                                     const void *data, size_t n,
                                     tb_safetensors **out)
{
    tb_safetensors *f = NULL;
    *out = NULL;
    tb_status s = make(ctx, name, &f);
    if (s == TB_OK) {
        f->memory = data;
        f->bytes = n;
        s = tb_safetensors_load(f);
    }
    return done(s, f, out);
}

void tb_safetensors_close(tb_safetensors *f)
{
    if (f == NULL)
        return;
    if (f->fd >= 0)
        close(f->fd);
    tb_arena_clear(&f->arena);
    tb_free(f->ctx, f);
}

/* --- looking up
 * -------------------------------------------------------------------- */

const char *tb_safetensors_path(const tb_safetensors *f)
{
    return f->path;
}

size_t tb_safetensors_count(const tb_safetensors *f)
{
    return f->count;
}

const tb_tensor_info *tb_safetensors_at(const tb_safetensors *f, size_t i)
{
    return &f->tensors[i];
}

const tb_tensor_info *tb_safetensors_find(const tb_safetensors *f,
                                          const char *name)
{
    size_t low = 0, high = f->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = strcmp(name, f->names[mid]);
        if (c == 0)
            return f->by_name[mid];
        if (c < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

tb_status tb_safetensors_need(tb_ctx *ctx, const tb_safetensors *f,
                              const char *name, int rank, const size_t *dims,
                              const tb_tensor_info **out)
{
    const tb_tensor_info *t = tb_safetensors_find(f, name);
    *out = NULL;
    if (t == NULL) {
        const char *near = tb_nearest(name, f->names, f->count);
        return TB_FAIL(ctx, TB_ERR_INPUT, "%s: no tensor '%s' among %zu%s%s%s",
                       f->path, name, f->count, near ? "; did you mean '" : "",
                       near ? near : "", near ? "'?" : "");
    }
    bool same = rank < 0 || rank == t->rank;
    for (int i = 0; same && i < rank; i++)
        same = dims[i] == t->dims[i];
    if (!same) {
        char got[TB_SHAPE_CHARS], want[TB_SHAPE_CHARS];
        return TB_FAIL(ctx, TB_ERR_INPUT,
                       "%s: tensor '%s': got shape %s, wanted %s", f->path,
                       name, tb_shape_text(t->rank, t->dims, got),
                       tb_shape_text(rank, dims, want));
    }
    *out = t;
    return TB_OK;
}

const char *tb_safetensors_meta(const tb_safetensors *f, const char *key)
{
    for (size_t i = 0; i < f->meta_count; i++)
        if (tb_streq(f->meta[i].key, key))
            return f->meta[i].value;
    return NULL;
}

size_t tb_safetensors_meta_count(const tb_safetensors *f)
{
    return f->meta_count;
}

void tb_safetensors_meta_at(const tb_safetensors *f, size_t i, const char **key,
                            const char **value)
{
    *key = f->meta[i].key;
    *value = f->meta[i].value;
}

/* --- reading tensors
 * ------------------------------------------------------------------ */

tb_status tb_safetensors_read_raw(tb_ctx *ctx, const tb_safetensors *f,
                                  const tb_tensor_info *t, void *out)
{
    return tb_safetensors_read_at(ctx, f, f->data_at + t->at, out,
                                  (size_t)t->bytes);
}

static tb_status read_converted(tb_ctx *ctx, const tb_safetensors *f,
                                const tb_tensor_info *t, size_t first,
                                size_t count, tb_dtype dtype, char *out)
{
    enum { CHUNK = 16384 };
    char raw[CHUNK];
    size_t size = tb_elem_size(t->elem), most = CHUNK / size;
    while (count > 0) {
        size_t n = count < most ? count : most;
        TB_TRY(tb_safetensors_read_at(ctx, f, f->data_at + t->at + first * size,
                                      raw, n * size));
        if (!tb_elem_decode(t->elem, raw, n, dtype, out))
            return TB_FAIL(ctx, TB_ERR_INPUT,
                           "%s: tensor '%s': %s has no numbers without its "
                           "scales",
                           f->path, t->name, tb_elem_name(t->elem));
        first += n;
        count -= n;
        out += n * tb_dtype_size(dtype);
    }
    return TB_OK;
}

tb_status tb_safetensors_read(tb_ctx *ctx, const tb_safetensors *f,
                              const tb_tensor_info *t, size_t first,
                              size_t count, tb_dtype dtype, void *out)
{
    if (first > t->count || count > t->count - first)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "%s: tensor '%s': elements %zu..%zu of %zu", f->path,
                       t->name, first, first + count, t->count);
    if (TB_LITTLE_ENDIAN && t->elem == tb_elem_of(dtype))
        return tb_safetensors_read_at(
            ctx, f, f->data_at + t->at + first * tb_elem_size(t->elem), out,
            count * tb_elem_size(t->elem));
    return read_converted(ctx, f, t, first, count, dtype, out);
}
