/* SPDX-License-Identifier: MIT */
/* Gzip (RFC 1952) from memory with zlib. Members in a row are joined, zero
 * padding is ignored, everything else that does not fit is an error. */
#include "base/base.h"
#include "tollbooth/data.h"

#ifdef TB_HAVE_ZLIB
#    define ZLIB_CONST
#    include <zlib.h>

enum { STEP = 1 << 30 }; /* zlib counts in unsigned int */

static void *z_alloc(void *ctx, unsigned n, unsigned size)
{
    return tb_alloc(ctx, n, size);
}

static void z_free(void *ctx, void *p)
{
    tb_free(ctx, p);
}

typedef struct inflater {
    tb_ctx *ctx;
    const char *name;
    z_stream z;
    const unsigned char *at, *end;
    tb_bytes out;
    size_t cap, max;
} inflater;

static tb_status bad(const inflater *f, const char *what)
{
    return TB_FAIL(f->ctx, TB_ERR_INPUT, "%s: gzip: %s", f->name, what);
}

/* Room for output: doubles, but never beyond one byte more than the limit. */
static tb_status make_room(inflater *f)
{
    if (f->out.len + 1 < f->cap)
        return TB_OK;
    size_t want;
    if (!tb_mul(f->cap, 2, &want))
        return bad(f, "too long for this machine");
    char *p = tb_realloc(f->ctx, f->out.data, f->cap, want);
    if (p == NULL)
        return TB_ERR_MEMORY;
    f->out.data = p;
    f->cap = want;
    return TB_OK;
}

/* One call of inflate; `*code` is zlib's answer. */
static tb_status step(inflater *f, int *code)
{
    TB_TRY(make_room(f));
    size_t in = (size_t)(f->end - f->at), room = f->cap - f->out.len - 1;
    f->z.next_in = f->at;
    f->z.avail_in = (unsigned)(in < STEP ? in : STEP);
    f->z.next_out = (unsigned char *)f->out.data + f->out.len;
    f->z.avail_out = (unsigned)(room < STEP ? room : STEP);
    *code = inflate(&f->z, Z_NO_FLUSH);
    f->at = f->z.next_in;
    f->out.len = (size_t)((char *)f->z.next_out - f->out.data);
    if (f->out.len > f->max)
        return TB_FAIL(f->ctx, TB_ERR_INPUT,
                       "%s: gzip: longer than the limit of %zu bytes", f->name,
                       f->max);
    return TB_OK;
}

static tb_status one_member(inflater *f)
{
    for (;;) {
        int code;
        TB_TRY(step(f, &code));
        if (code == Z_STREAM_END)
            return TB_OK;
        if (code == Z_MEM_ERROR)
            return TB_ERR_MEMORY; /* z_alloc recorded it */
        if (code == Z_BUF_ERROR ||
            (code == Z_OK && f->at == f->end && f->z.avail_out > 0))
            return bad(f, "truncated: the file ends inside the compressed "
                          "data");
        if (code != Z_OK)
            return bad(f, f->z.msg ? f->z.msg : "damaged data");
    }
}

static tb_status all_members(inflater *f)
{
    for (;;) {
        TB_TRY(one_member(f));
        while (f->at < f->end && *f->at == 0)
            f->at++;
        if (f->at == f->end)
            return TB_OK;
        if (f->end - f->at < 2 || f->at[0] != 0x1f || f->at[1] != 0x8b)
            return bad(f, "unexpected bytes after the compressed data");
        if (inflateReset(&f->z) != Z_OK)
            return bad(f, "cannot restart");
    }
}

tb_status tb_text_gunzip(tb_ctx *ctx, const char *name, const void *data,
                         size_t n, size_t max, tb_bytes *out)
{
    enum { GZIP_WINDOW = 15 + 16, LEAST = 4096 };
    inflater f = {.ctx = ctx,
                  .name = name,
                  .z = {.zalloc = z_alloc, .zfree = z_free, .opaque = ctx},
                  .at = data,
                  .end = (const unsigned char *)data + n,
                  .cap = n < SIZE_MAX / 4 ? 3 * n + LEAST : n,
                  .max = max == 0 ? SIZE_MAX : max};
    *out = (tb_bytes){0};
    f.out.data = tb_alloc(ctx, f.cap, 1);
    if (f.out.data == NULL)
        return TB_ERR_MEMORY;
    tb_status s = TB_ERR_MEMORY;
    if (inflateInit2(&f.z, GZIP_WINDOW) == Z_OK) {
        s = all_members(&f);
        inflateEnd(&f.z);
    }
    if (s == TB_OK) {
        f.out.data[f.out.len] = 0;
        *out = f.out;
    } else
        tb_bytes_clear(ctx, &f.out);
    return s;
}

#else

tb_status tb_text_gunzip(tb_ctx *ctx, const char *name, const void *data,
                         size_t n, size_t max, tb_bytes *out)
{
    (void)data;
    (void)n;
    (void)max;
    *out = (tb_bytes){0};
    return TB_FAIL(ctx, TB_ERR_INPUT,
                   "%s: is gzip, and this build has no zlib: decompress it "
                   "first",
                   name);
}

#endif
