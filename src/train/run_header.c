/* SPDX-License-Identifier: MIT */
/* The first line of a run: what trains on what, with which settings, and what
 * computes it. */
#include "threads/threads.h"
#include "train/setting.h"
#include "train/trainer.h"

/* What one file is, into an open object. */
static void file_json(const tb_trainer *t, size_t i, const char *name,
                      tb_json *j)
{
    const tb_text_stats *s = &t->stats[i];
    tb_json_string(j, "text", name);
    tb_json_bool(j, "gzip", t->gzip[i]);
    tb_json_int(j, "bytes", (int64_t)s->bytes);
    tb_json_int(j, "characters", (int64_t)s->codepoints);
    tb_json_int(j, "lf", (int64_t)s->lf);
    tb_json_int(j, "cr", (int64_t)s->cr);
    tb_json_int(j, "crlf", (int64_t)s->crlf);
    tb_json_int(j, "nul", (int64_t)s->nul);
    tb_json_int(j, "invalid_bytes", (int64_t)s->invalid);
    tb_json_bool(j, "bom", s->bom);
}

static void lines_json(const tb_feed *f, tb_json *j)
{
    size_t train = tb_feed_lines(f, TB_SPLIT_TRAIN);
    if (!train)
        return;
    tb_json_int(j, "train_lines", (int64_t)train);
    tb_json_int(j, "val_lines", (int64_t)tb_feed_lines(f, TB_SPLIT_VAL));
    tb_json_int(j, "skipped_lines", (int64_t)tb_feed_skipped(f));
}

static void corpus_json(const tb_trainer *t, tb_json *j)
{
    const tb_feed *f = t->feed;
    tb_json_object(j, "corpus");
    file_json(t, 0, t->spec.source ? t->spec.source : t->spec.text, j);
    tb_json_int(j, "train_tokens", (int64_t)tb_feed_tokens(f, TB_SPLIT_TRAIN));
    tb_json_int(j, "val_tokens", (int64_t)tb_feed_tokens(f, TB_SPLIT_VAL));
    lines_json(f, j);
    if (t->spec.target) {
        tb_json_object(j, "target");
        file_json(t, 1, t->spec.target, j);
        tb_json_end(j);
    }
    tb_json_end(j);
}

static void groups_json(const tb_trainer *t, tb_json *j)
{
    tb_update u = {0};
    tb_optimizer_report(t->optimizer, &u);
    tb_json_array(j, "groups");
    for (size_t i = 0; i < u.ngroups; i++) {
        const tb_train_group *g = &u.groups[i];
        tb_json_object(j, NULL);
        tb_json_string(j, "role", g->name);
        tb_json_bool(j, "decay", g->decayed);
        tb_json_int(j, "tensors", (int64_t)g->tensors);
        tb_json_int(j, "elements", (int64_t)g->elements);
        tb_json_end(j);
    }
    tb_json_end(j);
}

static void machine_json(const tb_trainer *t, tb_json *j)
{
    tb_dtype dtype = t->model->dtype;
    tb_json_object(j, "machine");
    tb_json_string(j, "isa", tb_kern_get(t->ctx, dtype)->isa);
    tb_json_string(j, "gemm", tb_gemm_name(t->ctx, t->model->products));
    tb_json_bool(j, "exact", tb_ctx_is_exact(t->ctx));
    tb_json_string(j, "threading", tb_threads_backend());
    tb_json_int(j, "threads", tb_threads_count(t->ctx));
    tb_json_end(j);
}

/* Bytes. */
static void memory_json(const tb_train_memory *m, tb_json *j)
{
    tb_json_object(j, "memory");
    tb_json_int(j, "activations", (int64_t)(m->saved + m->work));
    tb_json_int(j, "parameters",
                (int64_t)(m->weights + m->gradients + m->optimizer));
    tb_json_int(j, "weights", (int64_t)m->weights);
    tb_json_int(j, "gradients", (int64_t)m->gradients);
    tb_json_int(j, "optimizer", (int64_t)m->optimizer);
    tb_json_int(j, "saved", (int64_t)m->saved);
    tb_json_int(j, "work", (int64_t)m->work);
    tb_json_end(j);
}

tb_status tb_trainer_header(const tb_trainer *t, tb_json *j)
{
    tb_record r = t->record;
    r.spec = t->spec;
    tb_json_object(j, NULL);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_string(j, "command", "train");
    tb_json_string(j, "block", t->record.block_text);
    tb_json_object(j, "settings");
    tb_record_json(&r, j);
    tb_json_end(j);
    tb_json_string(j, "out", t->spec.out);
    tb_json_int(j, "resumed_at", (int64_t)t->progress.step);
    tb_json_int(j, "parameters", (int64_t)t->model->nparameters);
    groups_json(t, j);
    corpus_json(t, j);
    machine_json(t, j);
    memory_json(&t->memory, j);
    tb_json_end(j);
    return tb_json_text(j) ? TB_OK : TB_ERR_MEMORY;
}
