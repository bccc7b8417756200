/* SPDX-License-Identifier: MIT */
/* NumPy .npy files, versions 1.0 to 3.0 in, 1.0 out (numpy.lib.format): magic,
 * version, header length, a Python dict of descr, fortran_order and shape,
 * padding to 64 bytes, the elements. */
#include "checkpoint/elem.h"
#include "checkpoint/files.h"
#include "checkpoint/looks_like.h"

static const struct descr {
    const char *text; /* kind and bytes, without the byte order */
    tb_elem elem;
} descrs[] = {
    {"f8", TB_ELEM_F64}, {"f4", TB_ELEM_F32}, {"f2", TB_ELEM_F16},
    {"i8", TB_ELEM_I64}, {"i4", TB_ELEM_I32}, {"i2", TB_ELEM_I16},
    {"i1", TB_ELEM_I8},  {"u8", TB_ELEM_U64}, {"u4", TB_ELEM_U32},
    {"u2", TB_ELEM_U16}, {"u1", TB_ELEM_U8},  {"b1", TB_ELEM_BOOL},
};

static const char magic[] = "\x93NUMPY";
enum { MAGIC = sizeof(magic) - 1, ALIGN = 64, HEADER_MAX = 1 << 20 };

/* --- reading the header
 * -------------------------------------------------------- */

typedef struct parser {
    tb_ctx *ctx;
    const char *path;
    const char *at, *end;
    bool has_descr, has_order, has_shape;
    tb_elem elem;
    int rank;
    size_t dims[TB_TENSOR_RANK];
} parser;

static tb_status bad(const parser *p, const char *what)
{
    return TB_FAIL(p->ctx, TB_ERR_INPUT, "%s: npy header: %s", p->path, what);
}

static void skip_space(parser *p)
{
    while (p->at < p->end && strchr(" \t\r\n", *p->at) != NULL && *p->at != 0)
        p->at++;
}

static bool take(parser *p, const char *word)
{
    size_t n = strlen(word);
    skip_space(p);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

/* string := "'" characters "'" | '"' characters '"', without escapes */
static bool take_string(parser *p, const char **s, size_t *n)
{
    skip_space(p);
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"'))
        return false;
    const char *close = memchr(p->at + 1, *p->at, (size_t)(p->end - p->at) - 1);
    if (close == NULL)
        return false;
    *s = p->at + 1;
    *n = (size_t)(close - *s);
    p->at = close + 1;
    return true;
}

static tb_status read_descr(parser *p)
{
    const char *s;
    size_t n;
    if (!take_string(p, &s, &n))
        return bad(p, "descr: wanted one simple type, got something else");
    if (n > 0 && *s == '>')
        return TB_FAIL(p->ctx, TB_ERR_INPUT,
                       "%s: npy: got the big-endian type '%.*s', wanted "
                       "little-endian",
                       p->path, (int)n, s);
    for (size_t i = 0; i < TB_LEN(descrs); i++)
        if (n == 3 && (*s == '<' || (*s == '|' && s[2] == '1')) &&
            memcmp(s + 1, descrs[i].text, 2) == 0) {
            p->elem = descrs[i].elem;
            p->has_descr = true;
            return TB_OK;
        }
    return TB_FAIL(p->ctx, TB_ERR_INPUT,
                   "%s: npy: got the type '%.*s', wanted <f8 <f4 <f2, an "
                   "integer or a bool",
                   p->path, n < 40 ? (int)n : 40, s);
}

static tb_status read_order(parser *p)
{
    if (take(p, "True"))
        return TB_FAIL(p->ctx, TB_ERR_INPUT,
                       "%s: npy: got Fortran order, wanted C order (save with "
                       "numpy.ascontiguousarray)",
                       p->path);
    if (!take(p, "False"))
        return bad(p, "fortran_order: wanted True or False");
    p->has_order = true;
    return TB_OK;
}

/* digits [ "L" ], the L from Python 2 */
static bool take_size(parser *p, size_t *out)
{
    skip_space(p);
    const char *start = p->at;
    *out = 0;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if (!tb_mul(*out, 10, out) ||
            !tb_add(*out, (size_t)(*p->at - '0'), out))
            return false;
    if (p->at == start)
        return false;
    if (p->at < p->end && *p->at == 'L')
        p->at++;
    return true;
}

/* shape := "(" [ size { "," size } [ "," ] ] ")" */
static tb_status read_shape(parser *p)
{
    if (!take(p, "("))
        return bad(p, "shape: wanted a tuple");
    while (!take(p, ")")) {
        if (p->rank == TB_TENSOR_RANK)
            return bad(p, "shape: got more than 8 dimensions");
        if (!take_size(p, &p->dims[p->rank]))
            return bad(p, "shape: wanted sizes");
        p->rank++;
        if (take(p, ")"))
            break;
        if (!take(p, ","))
            return bad(p, "shape: wanted ',' or ')'");
    }
    p->has_shape = true;
    return TB_OK;
}

static tb_status read_value(parser *p, const char *key, size_t n)
{
    static const struct {
        const char *key;
        tb_status (*read)(parser *p);
        size_t has;
    } keys[] = {
        {"descr", read_descr, offsetof(parser, has_descr)},
        {"fortran_order", read_order, offsetof(parser, has_order)},
        {"shape", read_shape, offsetof(parser, has_shape)},
    };
    for (size_t i = 0; i < TB_LEN(keys); i++)
        if (strlen(keys[i].key) == n && memcmp(keys[i].key, key, n) == 0) {
            if (*((const char *)p + keys[i].has))
                return bad(p, "a key stands twice");
            return keys[i].read(p);
        }
    return bad(p, "unknown key, wanted descr, fortran_order, shape");
}

/* dict := "{" [ string ":" value { "," string ":" value } [ "," ] ] "}" */
static tb_status read_dict(parser *p)
{
    const char *key;
    size_t n;
    if (!take(p, "{"))
        return bad(p, "wanted '{'");
    while (!take(p, "}")) {
        if (!take_string(p, &key, &n) || !take(p, ":"))
            return bad(p, "wanted a key and ':'");
        TB_TRY(read_value(p, key, n));
        if (take(p, "}"))
            break;
        if (!take(p, ","))
            return bad(p, "wanted ',' or '}'");
    }
    skip_space(p);
    if (p->at != p->end)
        return bad(p, "text after the '}'");
    if (!p->has_descr || !p->has_order || !p->has_shape)
        return bad(p, "wanted descr, fortran_order and shape");
    return TB_OK;
}

/* Where the header text starts and ends in the file. */
static tb_status find_header(parser *p, const tb_bytes *file)
{
    char phrase[160];
    const unsigned char *b = (const unsigned char *)file->data;
    if (file->len < MAGIC + 4 || memcmp(b, magic, MAGIC) != 0) {
        const char *like = tb_looks_like(b, file->len < 256 ? file->len : 256,
                                         phrase, sizeof(phrase));
        return TB_FAIL(p->ctx, TB_ERR_INPUT, "%s: not a .npy file%s%s", p->path,
                       like ? ": looks like " : "", like ? like : "");
    }
    size_t start = MAGIC + 2 + (b[MAGIC] == 1 ? 2 : 4), n = 0;
    if (b[MAGIC] < 1 || b[MAGIC] > 3)
        return TB_FAIL(p->ctx, TB_ERR_INPUT,
                       "%s: npy: got version %d.%d, wanted 1.0 to 3.0", p->path,
                       b[MAGIC], b[MAGIC + 1]);
    for (size_t i = start; i > MAGIC + 2 && start <= file->len; i--)
        n = n << 8 | b[i - 1];
    if (start > file->len || n > file->len - start || n > HEADER_MAX)
        return bad(p, "longer than the file or than 1 MiB");
    p->at = file->data + start;
    p->end = p->at + n;
    return TB_OK;
}

static tb_status fill(const parser *p, const tb_bytes *file, tb_array *out)
{
    size_t bytes, have = file->len - (size_t)(p->end - file->data);
    out->rank = p->rank;
    memcpy(out->dims, p->dims, sizeof(out->dims));
    if (!tb_dims_count(p->rank, p->dims, &out->count) ||
        !tb_mul(out->count, tb_elem_size(p->elem), &bytes))
        return bad(p, "shape: overflow");
    if (bytes != have)
        return TB_FAIL(p->ctx, TB_ERR_INPUT,
                       "%s: npy: got %zu bytes of data, wanted %zu", p->path,
                       have, bytes);
    out->data = tb_alloc(p->ctx, out->count, sizeof(*out->data));
    if (out->data == NULL)
        return TB_ERR_MEMORY;
    tb_elem_decode(p->elem, p->end, out->count, TB_F64, out->data);
    return TB_OK;
}

tb_status tb_npy_read(tb_ctx *ctx, const char *path, tb_array *out)
{
    tb_bytes file;
    parser p = {.ctx = ctx, .path = path};
    *out = (tb_array){0};
    TB_TRY(tb_file_read(ctx, path, 0, &file));
    tb_status s = find_header(&p, &file);
    const char *data = p.end;
    if (s == TB_OK)
        s = read_dict(&p);
    p.end = data;
    if (s == TB_OK)
        s = fill(&p, &file, out);
    tb_bytes_clear(ctx, &file);
    if (s != TB_OK)
        tb_array_clear(ctx, out);
    return s;
}

/* --- writing
 * ---------------------------------------------------------------------- */

struct tb_npy_writer {
    tb_ctx *ctx;
    tb_out *out;
    tb_elem elem;
    size_t count, done;
};

static const char *descr_of(tb_elem e)
{
    for (size_t i = 0; i < TB_LEN(descrs); i++)
        if (descrs[i].elem == e)
            return descrs[i].text;
    return NULL;
}

static void put_dict(tb_buf *b, tb_elem elem, int rank, const size_t *dims)
{
    tb_buf_printf(b, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                  tb_elem_size(elem) == 1 ? '|' : '<', descr_of(elem));
    for (int i = 0; i < rank; i++)
        tb_buf_printf(b, "%s%zu", i > 0 ? ", " : "", dims[i]);
    tb_buf_puts(b, rank == 1 ? ",), }" : "), }");
}

/* The header with its length in place and padded so that data is aligned. */
static tb_status put_header(tb_npy_writer *w, int rank, const size_t *dims)
{
    enum { FIXED = MAGIC + 4 };
    tb_buf b;
    tb_buf_init(&b, w->ctx);
    tb_buf_put(&b, "\x93NUMPY\x01\x00\x00\x00", FIXED);
    put_dict(&b, w->elem, rank, dims);
    while ((b.len + 1) % ALIGN != 0 && !b.failed)
        tb_buf_putc(&b, ' ');
    tb_buf_putc(&b, '\n');
    tb_status s = tb_buf_status(&b);
    if (s == TB_OK) {
        size_t n = b.len - FIXED;
        b.data[MAGIC + 2] = (char)(n & 0xff);
        b.data[MAGIC + 3] = (char)(n >> 8 & 0xff);
        s = tb_out_write(w->out, b.data, b.len);
    }
    tb_buf_clear(&b);
    return s;
}

static tb_status check_kind(tb_ctx *ctx, const char *path, tb_elem elem,
                            int rank, const size_t *dims, size_t *count)
{
    size_t bytes;
    if (descr_of(elem) == NULL)
        return TB_FAIL(ctx, TB_ERR_ARG, "%s: NumPy has no type %s", path,
                       tb_elem_name(elem));
    if (rank < 0 || rank > TB_TENSOR_RANK ||
        !tb_dims_count(rank, dims, count) ||
        !tb_mul(*count, tb_elem_size(elem), &bytes))
        return TB_FAIL(ctx, TB_ERR_ARG, "%s: npy: impossible shape", path);
    return TB_OK;
}

tb_status tb_npy_create(tb_ctx *ctx, const char *path, tb_elem elem, int rank,
                        const size_t *dims, tb_npy_writer **out)
{
    size_t count;
    *out = NULL;
    TB_TRY(check_kind(ctx, path, elem, rank, dims, &count));
    tb_npy_writer *w = tb_alloc(ctx, 1, sizeof(*w));
    if (w == NULL)
        return TB_ERR_MEMORY;
    *w = (tb_npy_writer){.ctx = ctx, .elem = elem, .count = count};
    tb_status s = tb_out_open(ctx, path, NULL, &w->out);
    if (s == TB_OK)
        s = put_header(w, rank, dims);
    if (s == TB_OK)
        *out = w;
    else
        tb_npy_abort(w);
    return s;
}

tb_status tb_npy_append(tb_npy_writer *w, tb_dtype t, const void *x, size_t n)
{
    if (n > w->count - w->done)
        return TB_FAIL(w->ctx, TB_ERR_ARG,
                       "npy: got more than the %zu elements of the shape",
                       w->count);
    w->done += n;
    return tb_out_write_elems(w->out, w->elem, t, x, n);
}

tb_status tb_npy_finish(tb_npy_writer *w)
{
    tb_status s = TB_OK;
    if (w->done != w->count)
        s = TB_FAIL(w->ctx, TB_ERR_ARG, "npy: got %zu elements, wanted %zu",
                    w->done, w->count);
    else {
        s = tb_out_finish(w->out);
        w->out = NULL;
    }
    tb_npy_abort(w);
    return s;
}

void tb_npy_abort(tb_npy_writer *w)
{
    if (w == NULL)
        return;
    tb_out_abort(w->out);
    tb_free(w->ctx, w);
}

tb_status tb_npy_write(tb_ctx *ctx, const char *path, tb_elem elem, int rank,
                       const size_t *dims, tb_dtype t, const void *x)
{
    size_t count;
    tb_npy_writer *w;
    TB_TRY(check_kind(ctx, path, elem, rank, dims, &count));
    TB_TRY(tb_npy_create(ctx, path, elem, rank, dims, &w));
    tb_status s = tb_npy_append(w, t, x, count);
    if (s == TB_OK)
        return tb_npy_finish(w);
    tb_npy_abort(w);
    return s;
}
