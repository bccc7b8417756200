/* SPDX-License-Identifier: MIT */
/* Arrays of doubles: shapes, and nested JSON lists from the command line. */
#include <math.h> /* NAN, INFINITY */

#include "checkpoint/elem.h"
#include "checkpoint/json_load.h"

const char *tb_shape_text(int rank, const size_t *dims,
                          char out[TB_SHAPE_CHARS])
{
    size_t at = tb_format(out, TB_SHAPE_CHARS, "[");
    for (int i = 0; i < rank; i++)
        at += tb_format(out + at, TB_SHAPE_CHARS - at, "%s%zu",
                        i > 0 ? "," : "", dims[i]);
    tb_format(out + at, TB_SHAPE_CHARS - at, "]");
    return out;
}

bool tb_dims_count(int rank, const size_t *dims, size_t *count)
{
    *count = 1;
    for (int i = 0; i < rank; i++)
        if (!tb_mul(*count, dims[i], count))
            return false;
    return true;
}

void tb_array_clear(tb_ctx *ctx, tb_array *a)
{
    tb_free(ctx, a->data);
    *a = (tb_array){0};
}

/* --- nested lists ----------------------------------------------------------
 */

typedef struct filler {
    tb_ctx *ctx;
    const char *name;
    tb_array *a;
    size_t done;
    size_t at[TB_TENSOR_RANK]; /* index path of the value being read */
} filler;

/* "[1][2]" for the first `depth` indices; "" at the top. */
static const char *path_text(const size_t *at, int depth,
                             char out[TB_SHAPE_CHARS])
{
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < depth; i++)
        n += tb_format(out + n, TB_SHAPE_CHARS - n, "[%zu]", at[i]);
    return out;
}

/* The shape is that of the first item of every list. */
static tb_status measure(tb_ctx *ctx, const char *name, const json_t *v,
                         tb_array *a)
{
    a->rank = 0;
    for (; json_is_array(v); v = json_array_get(v, 0)) {
        if (a->rank == TB_TENSOR_RANK)
            return TB_FAIL(ctx, TB_ERR_INPUT,
                           "%s: got lists more than %d deep, wanted at most "
                           "%d",
                           name, TB_TENSOR_RANK, TB_TENSOR_RANK);
        a->dims[a->rank++] = json_array_size(v);
        if (json_array_size(v) == 0)
            break;
    }
    if (!tb_dims_count(a->rank, a->dims, &a->count))
        return TB_FAIL(ctx, TB_ERR_INPUT, "%s: too many numbers", name);
    return TB_OK;
}

/* number := JSON number | "nan" | "inf" | "-inf" */
static bool number_of(const json_t *v, double *out)
{
    static const struct {
        const char *text;
        double value;
    } names[] = {{"nan", (double)NAN},
                 {"inf", (double)INFINITY},
                 {"-inf", -(double)INFINITY}};
    if (json_is_number(v)) {
        *out = json_number_value(v);
        return true;
    }
    for (size_t i = 0; i < TB_LEN(names); i++)
        if (json_is_string(v) &&
            tb_streq(json_string_value(v), names[i].text)) {
            *out = names[i].value;
            return true;
        }
    return false;
}

/* A list stands where a number should, or the other way round. */
static tb_status wrong_kind(const filler *f, const json_t *v, int depth)
{
    char path[TB_SHAPE_CHARS], what[96], first[TB_SHAPE_CHARS];
    const size_t zeros[TB_TENSOR_RANK] = {0};
    tb_json_describe(v, what, sizeof(what));
    path_text(f->at, depth, path);
    if (depth > 0 && (json_is_array(v) || depth < f->a->rank))
        return TB_FAIL(f->ctx, TB_ERR_INPUT,
                       "%s: ragged list: %s is %s, %s is a %s", f->name, path,
                       what, path_text(zeros, depth, first),
                       depth < f->a->rank ? "list" : "number");
    return TB_FAIL(f->ctx, TB_ERR_INPUT,
                   "%s: %s%sgot %s, wanted a number or \"nan\", \"inf\", "
                   "\"-inf\"",
                   f->name, path, depth > 0 ? ": " : "", what);
}

static tb_status fill(filler *f, const json_t *v, int depth)
{
    if (depth == f->a->rank)
        return number_of(v, &f->a->data[f->done++]) ? TB_OK
                                                    : wrong_kind(f, v, depth);
    if (!json_is_array(v))
        return wrong_kind(f, v, depth);
    size_t n = json_array_size(v), want = f->a->dims[depth];
    if (n != want) {
        char path[TB_SHAPE_CHARS], first[TB_SHAPE_CHARS];
        const size_t zeros[TB_TENSOR_RANK] = {0};
        return TB_FAIL(f->ctx, TB_ERR_INPUT,
                       "%s: ragged list: %s has %zu items, %s has %zu", f->name,
                       path_text(f->at, depth, path), n,
                       path_text(zeros, depth, first), want);
    }
    for (size_t i = 0; i < n; i++) {
        f->at[depth] = i;
        TB_TRY(fill(f, json_array_get(v, i), depth + 1));
    }
    return TB_OK;
}

static tb_status from_json(tb_ctx *ctx, const char *name, const json_t *v,
                           tb_array *out)
{
    TB_TRY(measure(ctx, name, v, out));
    out->data = tb_alloc(ctx, out->count, sizeof(*out->data));
    if (out->data == NULL)
        return TB_ERR_MEMORY;
    filler f = {.ctx = ctx, .name = name, .a = out};
    return fill(&f, v, 0);
}

tb_status tb_json_parse_tensor(tb_ctx *ctx, const char *text, const char *name,
                               tb_array *out)
{
    json_t *v;
    *out = (tb_array){0};
    TB_TRY(tb_json_load(ctx, name, "", text, strlen(text), TB_JSON_AS_REAL,
                        NULL, &v));
    tb_status s = from_json(ctx, name, v, out);
    json_decref(v);
    if (s != TB_OK)
        tb_array_clear(ctx, out);
    return s;
}

tb_status tb_array_read_tensor(tb_ctx *ctx, const char *path, const char *name,
                               tb_array *out)
{
    tb_safetensors *f;
    const tb_tensor_info *t;
    *out = (tb_array){0};
    TB_TRY(tb_safetensors_open(ctx, path, &f));
    tb_status s = tb_safetensors_need(ctx, f, name, -1, NULL, &t);
    if (s == TB_OK) {
        out->rank = t->rank;
        memcpy(out->dims, t->dims, sizeof(out->dims));
        out->count = t->count;
        out->data = tb_alloc(ctx, t->count, sizeof(*out->data));
        s = out->data == NULL ? TB_ERR_MEMORY
                              : tb_safetensors_read(ctx, f, t, 0, t->count,
                                                    TB_F64, out->data);
    }
    tb_safetensors_close(f);
    if (s != TB_OK)
        tb_array_clear(ctx, out);
    return s;
}
