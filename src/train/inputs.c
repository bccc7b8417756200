/* SPDX-License-Identifier: MIT */
/* The files of a task, and the buffers of one batch. */
#include "train/trainer.h"

/* --- files ------------------------------------------------------------------
 */

static tb_status wrong_file(tb_ctx *ctx, tb_task task, const char *got,
                            const char *wanted)
{
    return TB_FAIL(ctx, TB_ERR_ARG, "task %s: got %s, wanted %s",
                   tb_task_name(task), got, wanted);
}

/* Names of the files; one that the task does not read is a mistake. */
static tb_status name_files(tb_ctx *ctx, const tb_train_spec *s, tb_files *out)
{
    if (s->task == TB_TASK_TRANSLATE) {
        if (s->text)
            return wrong_file(ctx, s->task, "a text", "source and target");
        if (!s->source || !s->target)
            return wrong_file(ctx, s->task,
                              s->source ? "no target" : "no source",
                              "source and target");
        *out = (tb_files){.count = 2, .name = {s->source, s->target}};
        return TB_OK;
    }
    if (s->source || s->target)
        return wrong_file(ctx, s->task, s->source ? "a source" : "a target",
                          "a text");
    if (!s->text)
        return wrong_file(ctx, s->task, "no text", "a text");
    *out = (tb_files){.count = 1, .name = {s->text}};
    return TB_OK;
}

/* A byte-order mark is part of a text, but not of its first line: it would make
 * another label of the first one. */
static bool in_lines(tb_task t)
{
    return t == TB_TASK_CLASSIFY || t == TB_TASK_TRANSLATE;
}

tb_status tb_files_load(tb_ctx *ctx, const tb_train_spec *s, tb_files *out)
{
    const tb_text_options opt = {.strip_bom = in_lines(s->task)};
    *out = (tb_files){0};
    TB_TRY(name_files(ctx, s, out));
    for (size_t i = 0; i < out->count; i++)
        TB_TRY(tb_text_load(ctx, out->name[i], &opt, &out->text[i]));
    return TB_OK;
}

void tb_files_clear(tb_ctx *ctx, tb_files *f)
{
    for (size_t i = 0; i < f->count; i++)
        tb_text_clear(ctx, &f->text[i]);
}

static tb_named_text named(const tb_files *f, size_t i)
{
    const tb_bytes *b = &f->text[i].bytes;
    return (tb_named_text){f->name[i], b->data, b->len};
}

tb_feed_spec tb_files_feed(const tb_files *f, const tb_train_spec *s)
{
    return (tb_feed_spec){.task = s->task,
                          .context = s->settings.context,
                          .val_fraction = s->val_fraction,
                          .text = named(f, 0),
                          .target = named(f, 1)};
}

/* --- rows -------------------------------------------------------------------
 */

static tb_status take(tb_ctx *ctx, size_t count, size_t time, int32_t **ids,
                      unsigned char **keep)
{
    size_t n;
    if (!tb_mul(count, time, &n))
        return TB_FAIL(ctx, TB_ERR_MEMORY, "batch x context overflows");
    *ids = tb_alloc(ctx, n, sizeof **ids);
    if (keep)
        *keep = tb_alloc(ctx, n, 1);
    return *ids && (!keep || *keep) ? TB_OK : TB_ERR_MEMORY;
}

tb_status tb_rows_create(tb_ctx *ctx, const tb_feed *f, size_t count,
                         tb_rows *out)
{
    *out = (tb_rows){0};
    TB_TRY(take(ctx, count, tb_feed_time(f), &out->tokens,
                tb_feed_task(f) == TB_TASK_LM ? NULL : &out->keep));
    out->targets = tb_alloc(ctx, count * tb_feed_time(f), sizeof(int32_t));
    if (!out->targets)
        return TB_ERR_MEMORY;
    if (!tb_feed_source_time(f))
        return TB_OK;
    return take(ctx, count, tb_feed_source_time(f), &out->source,
                &out->source_keep);
}

void tb_rows_clear(tb_ctx *ctx, tb_rows *r)
{
    tb_free(ctx, r->tokens);
    tb_free(ctx, r->targets);
    tb_free(ctx, r->keep);
    tb_free(ctx, r->source);
    tb_free(ctx, r->source_keep);
    *r = (tb_rows){0};
}

tb_batch tb_rows_batch(const tb_rows *r, uint64_t seed, uint64_t step)
{
    return (tb_batch){.tokens = r->tokens,
                      .targets = r->targets,
                      .seed = seed,
                      .step = step,
                      .source = r->source,
                      .keep = r->keep,
                      .source_keep = r->source_keep};
}

size_t tb_rows_targets(const tb_feed *f, const tb_rows *r, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count * tb_feed_time(f); i++)
        n += r->targets[i] >= 0;
    return n;
}

static size_t kept(const unsigned char *keep, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += !keep || keep[i];
    return n;
}

size_t tb_rows_tokens(const tb_feed *f, const tb_rows *r, size_t count)
{
    return kept(r->keep, count * tb_feed_time(f)) +
           kept(r->source_keep, count * tb_feed_source_time(f));
}
