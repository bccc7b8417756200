/* SPDX-License-Identifier: MIT */
/* Opening a folder that train wrote, and measuring its flow. */
#include "flow/flow_model.h"
#include "train/lm.h"
#include "train/setting.h"

static tb_status open_all(tb_lm *m, const char *dir)
{
    tb_ctx *ctx = m->ctx;
    TB_TRY(tb_folder_record(ctx, &m->arena, dir, &m->record));
    TB_TRY(tb_folder_block(ctx, &m->arena, dir, &m->record, &m->block));
    TB_TRY(tb_folder_tokenizer(ctx, &m->arena, dir, &m->tokenizer));
    tb_settings s = m->record.spec.settings;
    size_t tokens = tb_tokenizer_size(m->tokenizer);
    if (tokens != s.vocab)
        return TB_FAIL(ctx, TB_ERR_INPUT,
                       "%s/" TB_DIR_TOKENIZER ": got %zu tokens, " TB_DIR_CONFIG
                       " has a vocabulary of %zu",
                       dir, tokens, s.vocab);
    s.dropout = 0;
    TB_TRY(tb_model_create(ctx, m->block, &s, m->record.spec.dtype, &m->model));
    m->model->sizes.norm_from = m->record.norm_from;
    m->model->sizes.eps_from = m->record.eps_from;
    tb_model_quiet(m->model);
    TB_TRY(tb_quiet_init(m->model, &m->quiet));
    TB_TRY(tb_model_alloc(m->model));
    return tb_weights_load(ctx, dir, &m->record, m->model, &m->step);
}

tb_status tb_lm_open(tb_ctx *ctx, const char *dir, tb_lm **out)
{
    *out = NULL;
    tb_lm *m = tb_alloc(ctx, 1, sizeof *m);
    if (!m)
        return TB_ERR_MEMORY;
    m->ctx = ctx;
    tb_arena_init(&m->arena, ctx);
    tb_status s = open_all(m, dir);
    if (s == TB_OK)
        *out = m;
    else
        tb_lm_close(m);
    return s;
}

void tb_lm_close(tb_lm *m)
{
    if (!m)
        return;
    tb_quiet_clear(&m->quiet);
    tb_model_destroy(m->model);
    tb_tokenizer_destroy(m->tokenizer);
    if (m->block)
        tb_block_destroy(m->ctx, m->block);
    tb_arena_clear(&m->arena);
    tb_free(m->ctx, m);
}

const tb_block *tb_lm_block(const tb_lm *m)
{
    return m->block;
}

const tb_tokenizer *tb_lm_tokenizer(const tb_lm *m)
{
    return m->tokenizer;
}

const tb_settings *tb_lm_settings(const tb_lm *m)
{
    return &m->record.spec.settings;
}

size_t tb_lm_step(const tb_lm *m)
{
    return m->step;
}

size_t tb_lm_parameters(const tb_lm *m)
{
    return m->model->nparameters;
}

void tb_lm_origin(const tb_lm *m, tb_origin *norm, tb_origin *eps)
{
    *norm = m->record.norm_from;
    *eps = m->record.eps_from;
}

tb_status tb_lm_bind(tb_lm *m, size_t batch, size_t time, size_t source)
{
    if (m->batch == batch && m->time == time && m->source == source)
        return TB_OK;
    m->batch = m->time = 0;
    TB_TRY(
        tb_model_bind_source(m->model, batch, time, source ? source : time, 0));
    m->batch = batch;
    m->time = time;
    m->source = source;
    return TB_OK;
}

tb_status tb_lm_cache(tb_lm *m, size_t batch, size_t source, tb_cache **out)
{
    *out = NULL;
    if (m->windows)
        return TB_OK;
    m->batch = m->time = 0; /* it binds anew */
    return tb_cache_create(m->model, batch, m->record.spec.settings.context,
                           source, out);
}

double tb_lm_logit(const tb_model *m, const void *logits, size_t i)
{
    return tb_elem_get(m->dtype, logits, i);
}

tb_status tb_lm_need_task(const tb_lm *m, const char *what, tb_task task)
{
    const tb_train_spec *s = &m->record.spec;
    if (s->task == task)
        return TB_OK;
    return TB_FAIL(m->ctx, TB_ERR_INPUT,
                   "%s: got %s trained for %s, wanted a model for %s", what,
                   tb_stack_names[s->settings.stack], tb_task_name(s->task),
                   tb_task_name(task));
}

/* Weights of the same name and size. */
static void copy_weights(const tb_model *from, tb_model *to)
{
    size_t one = tb_dtype_size(to->dtype);
    for (size_t i = 0; i < to->nviews; i++)
        for (size_t k = 0; k < from->nviews; k++) {
            const tb_view *a = &from->views[k], *b = &to->views[i];
            if (a->count == b->count && tb_streq(a->name, b->name))
                memcpy((char *)to->params + b->offset * one,
                       (const char *)from->params + a->offset * one,
                       a->count * one);
        }
}

/* The trained weights in another block; what that has beside them starts as
 * its rules say. */
static tb_status same_weights(void *user, const tb_block *b,
                              const tb_flow_spec *spec, tb_flow **out)
{
    const tb_lm *m = user;
    tb_model *model;
    *out = NULL;
    TB_TRY(tb_model_create(m->ctx, b, &spec->settings, m->record.spec.dtype,
                           &model));
    tb_model_quiet(model);
    tb_status s = tb_model_init(model, m->record.spec.seed);
    if (s == TB_OK) {
        copy_weights(m->model, model);
        s = tb_flow_of_model(model, spec, out);
    }
    tb_model_destroy(model);
    return s;
}

tb_status tb_lm_flow(tb_lm *m, const tb_flow_spec *spec, tb_flow **out)
{
    tb_flow_spec own = *spec;
    own.settings = m->record.spec.settings;
    own.settings.dropout = 0;
    own.dtype = m->model->dtype;
    m->batch = m->time = 0; /* it binds anew */
    TB_TRY(tb_flow_of_model(m->model, &own, out));
    if (!spec->what_if)
        return TB_OK;
    tb_status s = tb_flow_what_if(*out, m->block, &own, same_weights, m);
    if (s != TB_OK) {
        tb_flow_free(m->ctx, *out);
        *out = NULL;
    }
    return s;
}
