/* SPDX-License-Identifier: MIT */
/* Weights and moments in safetensors files. state.safetensors is all that a
 * resumed run needs; model.safetensors follows it, for everybody else. */
#include "train/trainer.h"

/* --- tensors ----------------------------------------------------------------
 */

static int dims_of(const tb_view *v, size_t dims[2])
{
    dims[0] = v->shape.kind == TB_SHAPE_MATRIX ? v->shape.height : v->count;
    dims[1] = v->shape.width;
    return v->shape.kind == TB_SHAPE_MATRIX ? 2 : 1;
}

static void *flat_at(const tb_model *m, void *flat, const tb_view *v)
{
    return (char *)flat + v->offset * tb_dtype_size(m->dtype);
}

/* Running statistics have no moments. */
static bool is_in(const tb_view *v, const char *prefix)
{
    return v->role != TB_ROLE_BUFFER || !*prefix;
}

/* Every view of a flat buffer as "PREFIX NAME". */
static tb_status add_views(tb_safetensors_writer *w, tb_arena *a,
                           const tb_model *m, const char *prefix, void *flat)
{
    for (size_t i = 0; i < m->nviews; i++) {
        const tb_view *v = &m->views[i];
        size_t dims[2];
        int rank = dims_of(v, dims);
        if (!is_in(v, prefix))
            continue;
        const char *name = tb_arena_printf(a, "%s%s", prefix, v->name);
        if (!name)
            return TB_ERR_MEMORY;
        TB_TRY(tb_safetensors_writer_add(w, name, tb_elem_of(m->dtype), rank,
                                         dims, m->dtype, flat_at(m, flat, v)));
    }
    return TB_OK;
}

static tb_status read_views(tb_ctx *ctx, const tb_safetensors *f, tb_arena *a,
                            const tb_model *m, const char *prefix, void *flat)
{
    for (size_t i = 0; i < m->nviews; i++) {
        const tb_view *v = &m->views[i];
        const tb_tensor_info *t;
        size_t dims[2];
        int rank = dims_of(v, dims);
        if (!is_in(v, prefix))
            continue;
        const char *name = tb_arena_printf(a, "%s%s", prefix, v->name);
        if (!name)
            return TB_ERR_MEMORY;
        TB_TRY(tb_safetensors_need(ctx, f, name, rank, dims, &t));
        TB_TRY(tb_safetensors_read(ctx, f, t, 0, t->count, m->dtype,
                                   flat_at(m, flat, v)));
    }
    return TB_OK;
}

/* --- metadata ---------------------------------------------------------------
 */

static tb_status meta_size(tb_safetensors_writer *w, const char *key, size_t n)
{
    char text[24];
    tb_format(text, sizeof text, "%zu", n);
    return tb_safetensors_writer_meta(w, key, text);
}

static tb_status meta_settings(tb_ctx *ctx, tb_safetensors_writer *w,
                               const tb_record *r)
{
    char hash[65];
    tb_buf text;
    tb_buf_init(&text, ctx);
    tb_status s = tb_record_text(ctx, r, false, &text);
    if (s == TB_OK)
        s = tb_safetensors_writer_meta(w, "settings", tb_buf_str(&text));
    tb_sha256_hex(tb_buf_str(&text), text.len, hash);
    tb_buf_clear(&text);
    return s == TB_OK ? tb_safetensors_writer_meta(w, "settings_hash", hash)
                      : s;
}

static tb_status meta_common(tb_ctx *ctx, tb_safetensors_writer *w,
                             const tb_record *r, const tb_progress *p)
{
    TB_TRY(tb_safetensors_writer_meta(w, "tollbooth", TB_VERSION));
    TB_TRY(meta_size(w, "step", p->step));
    TB_TRY(tb_safetensors_writer_meta(w, "block", r->block_text));
    TB_TRY(tb_safetensors_writer_meta(w, "block_hash", r->block_hash));
    return meta_settings(ctx, w, r);
}

static tb_status meta_state(tb_ctx *ctx, tb_safetensors_writer *w,
                            const tb_record *r, const tb_progress *p)
{
    tb_buf text;
    char seed[24];
    TB_TRY(meta_common(ctx, w, r, p));
    TB_TRY(tb_safetensors_writer_meta(w, "tokens_hash", r->tokens_hash));
    tb_format(seed, sizeof seed, "%llu", (unsigned long long)r->spec.seed);
    TB_TRY(tb_safetensors_writer_meta(w, "seed", seed));
    tb_buf_init(&text, ctx);
    tb_status s = tb_progress_text(ctx, p, &text);
    if (s == TB_OK)
        s = tb_safetensors_writer_meta(w, "progress", tb_buf_str(&text));
    tb_buf_clear(&text);
    return s;
}

/* --- saving -----------------------------------------------------------------
 */

typedef struct saving {
    tb_ctx *ctx;
    tb_arena arena;
    const char *dir;
    const tb_record *r;
    const tb_progress *p;
    const tb_model *m;
    const tb_optimizer *o;
} saving;

static tb_status put(saving *s, tb_safetensors_writer *w, const char *name)
{
    const char *path;
    TB_TRY(add_views(w, &s->arena, s->m, "", s->m->params));
    TB_TRY(tb_folder_path(s->ctx, &s->arena, s->dir, name, &path));
    return tb_safetensors_writer_save(w, path);
}

static tb_status put_state(saving *s, tb_safetensors_writer *w)
{
    TB_TRY(meta_state(s->ctx, w, s->r, s->p));
    TB_TRY(add_views(w, &s->arena, s->m, "adam.m/", s->o->m));
    TB_TRY(add_views(w, &s->arena, s->m, "adam.v/", s->o->v));
    return put(s, w, TB_DIR_STATE);
}

static tb_status put_model(saving *s, tb_safetensors_writer *w)
{
    TB_TRY(meta_common(s->ctx, w, s->r, s->p));
    return put(s, w, TB_DIR_MODEL);
}

static tb_status
with_writer(saving *s, tb_status (*fill)(saving *, tb_safetensors_writer *))
{
    tb_safetensors_writer *w;
    TB_TRY(tb_safetensors_writer_create(s->ctx, &w));
    tb_status status = fill(s, w);
    tb_safetensors_writer_destroy(w);
    return status;
}

tb_status tb_state_save(tb_ctx *ctx, const char *dir, const tb_record *r,
                        const tb_progress *p, const tb_model *m,
                        const tb_optimizer *o)
{
    saving s = {.ctx = ctx, .dir = dir, .r = r, .p = p, .m = m, .o = o};
    tb_arena_init(&s.arena, ctx);
    tb_status status = with_writer(&s, put_state);
    if (status == TB_OK)
        status = with_writer(&s, put_model);
    tb_arena_clear(&s.arena);
    return status;
}

/* --- loading ----------------------------------------------------------------
 */

static tb_status need_meta(tb_ctx *ctx, const tb_safetensors *f,
                           const char *key, const char **out)
{
    *out = tb_safetensors_meta(f, key);
    if (*out)
        return TB_OK;
    return TB_FAIL(ctx, TB_ERR_INPUT,
                   "%s: not written by tollbooth train (metadata has no "
                   "\"%s\")",
                   tb_safetensors_path(f), key);
}

/* The block of the file against that of the folder. */
static tb_status check_block(tb_ctx *ctx, const tb_safetensors *f,
                             const char *dir, const tb_record *r)
{
    const char *text, *hash;
    char what[160];
    TB_TRY(need_meta(ctx, f, "block", &text));
    TB_TRY(need_meta(ctx, f, "block_hash", &hash));
    tb_format(what, sizeof what,
              "%.100s/" TB_DIR_BLOCK ": not what the weights were trained with",
              dir);
    if (!tb_streq(text, r->block_text))
        return tb_block_differs(ctx, what, r->block_text, text);
    if (tb_streq(hash, r->block_hash))
        return TB_OK;
    return TB_FAIL(ctx, TB_ERR_INPUT,
                   "%s: block_hash: got %s, " TB_DIR_CONFIG " has %s",
                   tb_safetensors_path(f), hash, r->block_hash);
}

static tb_status check_settings(tb_ctx *ctx, const tb_safetensors *f,
                                tb_arena *a, const char *dir,
                                const tb_record *r)
{
    const char *text;
    tb_record own;
    TB_TRY(need_meta(ctx, f, "settings", &text));
    TB_TRY(tb_record_read(ctx, a, tb_safetensors_path(f), text, strlen(text),
                          &own));
    return tb_record_same(ctx, dir, r, &own);
}

static tb_status parse_step(tb_ctx *ctx, const tb_safetensors *f, size_t *out)
{
    const char *text;
    double v = 0;
    TB_TRY(need_meta(ctx, f, "step", &text));
    if (tb_double_parse(text, strlen(text), &v) != strlen(text) || !(v >= 0))
        return TB_FAIL(ctx, TB_ERR_INPUT, "%s: step: got \"%.40s\"",
                       tb_safetensors_path(f), text);
    *out = (size_t)v;
    return TB_OK;
}

static tb_status open_file(tb_ctx *ctx, tb_arena *a, const char *dir,
                           const char *name, tb_safetensors **out)
{
    const char *path;
    TB_TRY(tb_folder_path(ctx, a, dir, name, &path));
    return tb_safetensors_open(ctx, path, out);
}

static tb_status load_state(tb_ctx *ctx, const tb_safetensors *f, tb_arena *a,
                            const char *dir, const tb_record *r, tb_progress *p,
                            tb_model *m, tb_optimizer *o)
{
    const char *text;
    TB_TRY(check_block(ctx, f, dir, r));
    TB_TRY(check_settings(ctx, f, a, dir, r));
    TB_TRY(need_meta(ctx, f, "progress", &text));
    TB_TRY(tb_progress_read(ctx, tb_safetensors_path(f), text, p));
    TB_TRY(read_views(ctx, f, a, m, "", m->params));
    TB_TRY(read_views(ctx, f, a, m, "adam.m/", o->m));
    return read_views(ctx, f, a, m, "adam.v/", o->v);
}

tb_status tb_state_load(tb_ctx *ctx, const char *dir, const tb_record *r,
                        tb_progress *p, tb_model *m, tb_optimizer *o)
{
    tb_safetensors *f = NULL;
    tb_arena a;
    tb_arena_init(&a, ctx);
    tb_status s = open_file(ctx, &a, dir, TB_DIR_STATE, &f);
    if (s == TB_OK)
        s = load_state(ctx, f, &a, dir, r, p, m, o);
    tb_safetensors_close(f);
    tb_arena_clear(&a);
    return s;
}

static tb_status load_weights(tb_ctx *ctx, const tb_safetensors *f, tb_arena *a,
                              const char *dir, const tb_record *r, tb_model *m,
                              size_t *step)
{
    TB_TRY(check_block(ctx, f, dir, r));
    TB_TRY(parse_step(ctx, f, step));
    return read_views(ctx, f, a, m, "", m->params);
}

tb_status tb_weights_load(tb_ctx *ctx, const char *dir, const tb_record *r,
                          tb_model *m, size_t *step)
{
    tb_safetensors *f = NULL;
    tb_arena a;
    tb_arena_init(&a, ctx);
    bool saved_once = !tb_folder_has(ctx, &a, dir, TB_DIR_MODEL) &&
                      tb_folder_has(ctx, &a, dir, TB_DIR_STATE);
    tb_status s =
        open_file(ctx, &a, dir, saved_once ? TB_DIR_STATE : TB_DIR_MODEL, &f);
    if (s == TB_OK)
        s = load_weights(ctx, f, &a, dir, r, m, step);
    tb_safetensors_close(f);
    tb_arena_clear(&a);
    return s;
}
