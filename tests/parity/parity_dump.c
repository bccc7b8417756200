/* SPDX-License-Identifier: MIT */
/* parity_dump OUT TYPE SEED KEY=VALUE... BLOCK: one model, one batch, as
 * numbers for another implementation. Writes
 * or, as text, sizes and a random block without masks of dropout:
 * parity_dump random SEED
 *   OUT.start   every parameter as it starts
 *   OUT.params  the same, all moved by noise, so that no gain is 1 and no
 *               scalar 0: a checkpoint
 *   OUT.ref     tokens, targets, logits, loss, and "grad/NAME" of each; of two
 *               stacks also the source, two tokens longer; with padding=1 what
 *               is no padding, keep and source_keep */
#include "gradients/random_block.h"
#include "model/model.h"
#include "tollbooth/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct dump {
    tb_ctx *ctx;
    tb_block *block;
    tb_settings s;
    tb_model *m;
    size_t batch, time;
    uint64_t seed;
    unsigned char *keep; /* of tokens, then the source; with padding */
    double *wide_keep;   /* as the file has it */
    bool quiet; /* running statistics, as in use; else training's first step */
    void *grads;
    int32_t *ids; /* tokens, then targets */
    double *wide, loss;
} dump;

/* --- settings ----------------------------------------------------------- */

static bool set_size(dump *d, const char *key, const char *value)
{
    const struct {
        const char *key;
        size_t *to;
    } rows[] = {
        {"depth", &d->s.depth}, {"width", &d->s.width},
        {"heads", &d->s.heads}, {"kv_heads", &d->s.kv_heads},
        {"ffn", &d->s.ffn},     {"context", &d->s.context},
        {"vocab", &d->s.vocab}, {"batch", &d->batch},
        {"time", &d->time},     {"decoder_depth", &d->s.decoder_depth},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++)
        if (tb_streq(rows[i].key, key)) {
            *rows[i].to = (size_t)strtoul(value, NULL, 10);
            return true;
        }
    return false;
}

static bool set_other(dump *d, const char *key, const char *value)
{
    const struct {
        const char *key;
        int *to;
    } rows[] = {
        {"bias", &d->s.bias},     {"tied", &d->s.tied},
        {"causal", &d->s.causal}, {"positions", &d->s.positions},
        {"stack", &d->s.stack},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++)
        if (tb_streq(rows[i].key, key)) {
            *rows[i].to = (int)strtol(value, NULL, 10);
            return true;
        }
    if (tb_streq(key, "quiet"))
        d->quiet = true;
    else if (tb_streq(key, "padding"))
        d->s.padding = true;
    else if (tb_streq(key, "eps"))
        d->s.eps = strtod(value, NULL);
    else if (tb_streq(key, "norm"))
        d->s.norm = value;
    else if (tb_streq(key, "init"))
        d->s.init = value;
    else
        return false;
    return true;
}

static bool set_one(dump *d, char *arg)
{
    char *eq = strchr(arg, '=');
    if (!eq)
        return false;
    *eq = '\0';
    return set_size(d, arg, eq + 1) || set_other(d, arg, eq + 1);
}

/* --- files -------------------------------------------------------------- */

static tb_status add_views(dump *d, tb_safetensors_writer *w, const void *flat,
                           const char *prefix)
{
    for (size_t i = 0; i < d->m->nviews; i++) {
        const tb_view *v = &d->m->views[i];
        bool matrix = v->shape.kind == TB_SHAPE_MATRIX;
        const size_t dims[2] = {matrix ? v->shape.height : v->count,
                                v->shape.width};
        const char *x =
            (const char *)flat + v->offset * tb_dtype_size(d->m->dtype);
        char name[300];
        snprintf(name, sizeof name, "%s%s", prefix, v->name);
        TB_TRY(tb_safetensors_writer_add(w, name, tb_elem_of(d->m->dtype),
                                         matrix ? 2 : 1, dims, d->m->dtype, x));
    }
    return TB_OK;
}

static tb_status save(dump *d, const char *out, const char *suffix,
                      tb_status (*fill)(dump *, tb_safetensors_writer *))
{
    tb_safetensors_writer *w;
    char path[1000];
    snprintf(path, sizeof path, "%s.%s", out, suffix);
    TB_TRY(tb_safetensors_writer_create(d->ctx, &w));
    tb_status s = fill(d, w);
    if (s == TB_OK)
        s = tb_safetensors_writer_save(w, path);
    tb_safetensors_writer_destroy(w);
    return s;
}

static tb_status fill_params(dump *d, tb_safetensors_writer *w)
{
    return add_views(d, w, d->m->params, "");
}

/* --- numbers ------------------------------------------------------------ */

static void nudge(dump *d, const tb_view *v)
{
    tb_rng r = tb_rng_make(d->seed + 1, v->name);
    for (size_t i = 0; i < v->count; i++) {
        double by = 0.2 * tb_rng_normal(r, i);
        if (d->m->dtype == TB_F64)
            ((double *)d->m->params)[v->offset + i] += by;
        else
            ((float *)d->m->params)[v->offset + i] += (float)by;
    }
}

static bool has_source(const dump *d)
{
    return d->s.stack == TB_STACKS_BOTH;
}

static size_t source_time(const dump *d)
{
    return d->time + 2;
}

static tb_status draw(dump *d)
{
    size_t n = d->batch * d->time, all = 2 * n + d->batch * source_time(d);
    tb_rng r = tb_rng_make(d->seed, "tokens");
    d->ids = tb_alloc(d->ctx, all, sizeof *d->ids);
    d->wide = tb_alloc(d->ctx, all, sizeof *d->wide);
    d->grads = tb_alloc(d->ctx, d->m->nelements, tb_dtype_size(d->m->dtype));
    if (!d->ids || !d->wide || !d->grads)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < all; i++)
        d->ids[i] = (int32_t)tb_rng_below(r, i, d->m->sizes.s.vocab);
    d->ids[n + 1] = -1; /* a target that does not count */
    for (size_t i = 0; i < all; i++)
        d->wide[i] = d->ids[i];
    return TB_OK;
}

/* The ends of sequences are padding, of the second one its first token too, so
 * that a causal query sees nothing. */
static void hide(const dump *d, unsigned char *keep, size_t time)
{
    for (size_t i = 0; i < d->batch * time; i++) {
        size_t b = i / time, t = i % time;
        keep[i] = t + 1 + b < time && (b == 0 || t > 0);
    }
}

/* No target stands at padding. */
static tb_status pad(dump *d)
{
    size_t n = d->batch * d->time;
    if (!d->s.padding)
        return TB_OK;
    size_t all = n + d->batch * source_time(d);
    d->keep = tb_alloc(d->ctx, all, 1);
    d->wide_keep = tb_alloc(d->ctx, all, sizeof *d->wide_keep);
    if (!d->keep || !d->wide_keep)
        return TB_ERR_MEMORY;
    hide(d, d->keep, d->time);
    hide(d, d->keep + n, source_time(d));
    for (size_t i = 0; i < all; i++)
        d->wide_keep[i] = d->keep[i];
    for (size_t i = 0; i < n; i++)
        if (!d->keep[i])
            d->wide[n + i] = d->ids[n + i] = -1;
    return TB_OK;
}

/* Rates that the text fixes, off as in an evaluation. */
static void silence(dump *d)
{
    for (size_t p = 0; p < d->m->nparts; p++) {
        const tb_graph *g = tb_model_graph(d->m, p);
        double *attr = (double *)(uintptr_t)tb_model_attrs(d->m, p);
        for (int i = 0; i < g->nnodes; i++)
            if (g->nodes[i].op == &tb_op_drop ||
                g->nodes[i].op == &tb_op_skipdrop)
                attr[(size_t)i * TB_OP_ATTRS + TB_ATTR_DROP_P] = 0;
    }
}

static tb_status compute(dump *d)
{
    TB_TRY(draw(d));
    TB_TRY(pad(d));
    silence(d);
    if (d->quiet)
        tb_model_quiet(d->m);
    else
        tb_model_step(d->m, 1);
    size_t n = d->batch * d->time;
    TB_TRY(tb_model_bind_source(d->m, d->batch, d->time, source_time(d),
                                TB_PASS_BWD));
    const tb_batch batch = {.tokens = d->ids,
                            .targets = d->ids + n,
                            .source = has_source(d) ? d->ids + 2 * n : NULL,
                            .keep = d->keep,
                            .source_keep =
                                d->keep && has_source(d) ? d->keep + n : NULL};
    TB_TRY(tb_model_forward(d->m, &batch, &d->loss));
    TB_TRY(tb_model_backward(d->m, &batch, d->grads));
    return tb_model_update(d->m, &batch);
}

static tb_status fill_ref(dump *d, tb_safetensors_writer *w)
{
    tb_dtype type = d->m->dtype;
    const size_t dims[3] = {d->batch, d->time, d->m->sizes.s.vocab};
    static const size_t one = 1;
    TB_TRY(tb_safetensors_writer_add(w, "tokens", TB_ELEM_F64, 2, dims, TB_F64,
                                     d->wide));
    TB_TRY(tb_safetensors_writer_add(w, "targets", TB_ELEM_F64, 2, dims, TB_F64,
                                     d->wide + d->batch * d->time));
    const size_t source[2] = {d->batch, source_time(d)};
    if (has_source(d))
        TB_TRY(tb_safetensors_writer_add(w, "source", TB_ELEM_F64, 2, source,
                                         TB_F64,
                                         d->wide + 2 * d->batch * d->time));
    if (d->keep)
        TB_TRY(tb_safetensors_writer_add(w, "keep", TB_ELEM_F64, 2, dims,
                                         TB_F64, d->wide_keep));
    if (d->keep && has_source(d))
        TB_TRY(tb_safetensors_writer_add(w, "source_keep", TB_ELEM_F64, 2,
                                         source, TB_F64,
                                         d->wide_keep + d->batch * d->time));
    TB_TRY(tb_safetensors_writer_add(w, "loss", TB_ELEM_F64, 1, &one, TB_F64,
                                     &d->loss));
    TB_TRY(tb_safetensors_writer_add(w, "logits", tb_elem_of(type), 3, dims,
                                     type, tb_model_logits(d->m)));
    return add_views(d, w, d->grads, "grad/");
}

static tb_status run(dump *d, const char *out, const char *text, tb_dtype type)
{
    TB_TRY(tb_block_load(d->ctx, text, &d->block));
    TB_TRY(tb_model_create(d->ctx, d->block, &d->s, type, &d->m));
    TB_TRY(tb_model_init(d->m, d->seed));
    TB_TRY(save(d, out, "start", fill_params));
    for (size_t i = 0; i < d->m->nviews; i++)
        nudge(d, &d->m->views[i]);
    TB_TRY(save(d, out, "params", fill_params));
    TB_TRY(compute(d));
    TB_TRY(save(d, out, "after", fill_params)); /* running statistics moved */
    return save(d, out, "ref", fill_ref);
}

static int print_random(uint64_t seed)
{
    random_drawn d;
    tb_ctx *ctx;
    if (tb_ctx_create(&ctx) != TB_OK)
        return 2;
    random_block(ctx, seed, RANDOM_DRAWS, &d);
    printf("%zu %zu %d\n%s", d.width, d.heads, d.stack, tb_buf_str(&d.text));
    tb_buf_clear(&d.text);
    tb_ctx_destroy(ctx);
    return 0;
}

int main(int argc, char **argv)
{
    dump d = {.s = TB_SETTINGS_UNSET, .batch = 2, .time = 5};
    if (argc == 3 && tb_streq(argv[1], "random"))
        return print_random(strtoull(argv[2], NULL, 10));
    if (argc < 5 || tb_ctx_create(&d.ctx) != TB_OK)
        return 2;
    d.seed = strtoull(argv[3], NULL, 10);
    for (int i = 4; i < argc - 1; i++)
        if (!set_one(&d, argv[i])) {
            fprintf(stderr, "%s: unknown setting\n", argv[i]);
            return 2;
        }
    tb_status s = run(&d, argv[1], argv[argc - 1],
                      tb_streq(argv[2], "f64") ? TB_F64 : TB_F32);
    if (s != TB_OK)
        fprintf(stderr, "%s\n", tb_error(d.ctx));
    tb_free(d.ctx, d.ids);
    tb_free(d.ctx, d.wide);
    tb_free(d.ctx, d.keep);
    tb_free(d.ctx, d.wide_keep);
    tb_free(d.ctx, d.grads);
    tb_model_destroy(d.m);
    if (d.block)
        tb_block_destroy(d.ctx, d.block);
    tb_ctx_destroy(d.ctx);
    return tb_status_exit(s);
}
