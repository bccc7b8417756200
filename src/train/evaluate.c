/* SPDX-License-Identifier: MIT */
/* A model as it is used: dropout off, running statistics; and means of its
 * loss over tokens. */
#include "train/trainer.h"

/* --- nothing of training ---------------------------------------------------
 */

static tb_status copy_part(tb_quiet *q, size_t p)
{
    const tb_graph *g = tb_model_graph(q->model, p);
    size_t bytes = (size_t)g->nnodes * sizeof **q->attr;
    q->attr[p] = tb_arena_alloc(&q->arena, bytes + 1);
    if (!q->attr[p])
        return TB_ERR_MEMORY;
    tb_model_quiet_attrs(q->model, p, q->attr[p]);
    return TB_OK;
}

static tb_status copy_parts(tb_quiet *q)
{
    size_t parts = q->model->nparts;
    q->attr = tb_arena_alloc(&q->arena, parts * sizeof *q->attr);
    if (!q->attr)
        return TB_ERR_MEMORY;
    for (size_t p = 0; p < parts; p++)
        TB_TRY(copy_part(q, p));
    return TB_OK;
}

tb_status tb_quiet_init(tb_model *m, tb_quiet *out)
{
    *out = (tb_quiet){.ctx = m->ctx, .model = m};
    tb_arena_init(&out->arena, m->ctx);
    tb_status s = copy_parts(out);
    if (s != TB_OK)
        tb_quiet_clear(out);
    return s;
}

void tb_quiet_clear(tb_quiet *q)
{
    if (q->model)
        tb_arena_clear(&q->arena);
    *q = (tb_quiet){0};
}

tb_status tb_quiet_forward(tb_quiet *q, const tb_batch *b, double *loss)
{
    tb_run r;
    for (size_t p = 0; p < q->model->nparts; p++) {
        TB_TRY(tb_model_run(q->model, p, b, &r));
        r.attr = (const double(*)[TB_OP_ATTRS])q->attr[p];
        TB_TRY(tb_plan_forward(q->ctx, &r));
    }
    if (loss)
        *loss = tb_model_loss(q->model);
    return TB_OK;
}

/* --- means ------------------------------------------------------------------
 */

void tb_mean_add(tb_mean *m, double loss, size_t tokens)
{
    m->sum += loss * (double)tokens;
    m->tokens += tokens;
}

double tb_mean_of(const tb_mean *m)
{
    return m->tokens ? m->sum / (double)m->tokens : __builtin_nan("");
}

/* Rows [0, rows) of the batch are rows first, first + 1, ... of the n that are
 * spread over `all`; the rest has no targets. */
static void fill(const tb_feed *f, size_t all, size_t n, size_t first,
                 size_t rows, size_t batch, const tb_rows *out)
{
    size_t T = tb_feed_time(f);
    for (size_t r = 0; r < batch; r++)
        tb_feed_row(f, TB_SPLIT_VAL, (first + (r < rows ? r : 0)) * all / n,
                    out, r);
    for (size_t i = rows * T; i < batch * T; i++)
        out->targets[i] = -1;
}

tb_status tb_validate(tb_quiet *q, const tb_feed *f, size_t batch,
                      size_t windows, const tb_rows *rows, double *out)
{
    size_t all = tb_feed_rows(f, TB_SPLIT_VAL);
    size_t n = all < windows ? all : windows;
    tb_mean mean = {0};
    for (size_t first = 0; first < n; first += batch) {
        const tb_batch b = tb_rows_batch(rows, 0, 0);
        double loss;
        fill(f, all, n, first, n - first < batch ? n - first : batch, batch,
             rows);
        TB_TRY(tb_quiet_forward(q, &b, &loss));
        tb_mean_add(&mean, loss, tb_rows_targets(f, rows, batch));
    }
    *out = tb_mean_of(&mean);
    return TB_OK;
}
