/* SPDX-License-Identifier: MIT */
/* One step: stem, layers, tail forward; tail, layers, stem backward, with
 * every stream carried by name. Nothing here allocates. */
#include "model/parts.h"

static tb_status need_bound(const tb_model *m)
{
    if (m->bound)
        return TB_OK;
    return TB_FAIL(m->ctx, TB_ERR_ARG, "model: not bound to a batch size yet");
}

/* Ids from `many` on would be read beyond the table. */
static tb_status check_ids(tb_model *m, const char *what, const int32_t *ids,
                           size_t many, bool may_be_absent)
{
    size_t n = m->bound->batch * m->bound->time;
    for (size_t i = 0; ids && i < n; i++) {
        bool absent = ids[i] < 0 && may_be_absent;
        if (!absent && (ids[i] < 0 || (size_t)ids[i] >= many))
            return TB_FAIL(m->ctx, TB_ERR_INPUT,
                           "%s: got id %d at row %zu, wanted 0 to %zu", what,
                           (int)ids[i], i + 1, many - 1);
    }
    return TB_OK;
}

static void set_data(tb_model *m, size_t p, const tb_batch *batch)
{
    const tb_part *part = &m->parts[p];
    tb_bound *b = m->bound;
    for (int i = 0; i < part->graph->ninputs; i++) {
        if (part->in_at[i] == TB_AT_TOKENS)
            b->io[p].inputs[i] = batch->tokens;
        else if (part->in_at[i] == TB_AT_TARGETS)
            b->io[p].inputs[i] =
                batch->targets ? batch->targets : b->no_targets;
    }
}

tb_status tb_model_run(tb_model *m, size_t l, const tb_batch *batch,
                       tb_run *out)
{
    TB_TRY(need_bound(m));
    const tb_part *p = &m->parts[l];
    const tb_bound *b = m->bound;
    set_data(m, l, batch);
    *out = (tb_run){.plan = b->plans[p->kind],
                    .saved = b->io[l].saved,
                    .work = b->work,
                    .inputs = b->io[l].inputs,
                    .outputs = b->io[l].outputs,
                    .params = b->io[l].params,
                    .attr = (const double(*)[TB_OP_ATTRS])p->attr,
                    .seed = batch->seed,
                    .step = batch->step,
                    .scope = p->scope};
    return TB_OK;
}

tb_status tb_model_forward(tb_model *m, const tb_batch *batch, double *loss)
{
    TB_TRY(need_bound(m));
    const tb_settings *s = &m->sizes.s;
    TB_TRY(check_ids(m, "tokens", batch->tokens, s->vocab, false));
    TB_TRY(
        check_ids(m, "targets", batch->targets, tb_settings_outputs(s), true));
    m->bound->ran = false;
    for (size_t p = 0; p < m->sizes.s.depth + 2; p++) {
        tb_run r;
        TB_TRY(tb_model_run(m, p, batch, &r));
        TB_TRY(tb_plan_forward(m->ctx, &r));
    }
    m->bound->ran = true;
    if (loss)
        *loss = batch->targets ? tb_elem_get(m->dtype, m->bound->loss, 0) : 0;
    return TB_OK;
}

const void *tb_model_logits(const tb_model *m)
{
    return m->bound ? m->bound->logits : NULL;
}

void *tb_model_stream(tb_model *m, size_t l)
{
    int x = tb_stream_find(m, "x");
    return m->bound && x >= 0 ? m->bound->level[l * m->nstreams + (size_t)x]
                              : NULL;
}

/* --- backward ------------------------------------------------------------ */

void *const *tb_model_gparams(tb_model *m, size_t l, void *grads)
{
    const tb_part *p = &m->parts[l];
    for (int i = 0; i < p->graph->nparams; i++)
        m->bound->gparams[i] =
            tb_elem_at(m->dtype, grads, m->views[p->view[i]].offset);
    return m->bound->gparams;
}

static size_t stream_bytes(const tb_model *m, size_t i)
{
    return tb_shape_count(m->streams[i].shape, m->bound->batch,
                          m->bound->time) *
           tb_dtype_size(m->dtype);
}

static void point_gradients(tb_model *m, const tb_part *p)
{
    tb_bound *b = m->bound;
    for (int o = 0; o < p->graph->noutputs; o++) {
        int at = p->out_at[o];
        b->gout[o] = at >= 0 ? b->cur[at] : at == TB_AT_LOSS ? b->one : NULL;
    }
    for (int i = 0; i < p->graph->ninputs; i++)
        b->gin[i] = p->in_at[i] >= 0 ? b->spare[p->in_at[i]] : NULL;
}

/* What a part did with stream `s`. */
static bool touches(const int *at, int n, size_t s)
{
    for (int i = 0; i < n; i++)
        if (at[i] == (int)s)
            return true;
    return false;
}

/* From the gradient after a part to the one before it: replaced where it
 * writes the stream, added to where it only reads it. */
static void step_gradients(tb_model *m, const tb_part *p)
{
    tb_bound *b = m->bound;
    const tb_kern *k = tb_kern_get(m->ctx, m->dtype);
    for (size_t s = 0; s < m->nstreams; s++) {
        bool reads = touches(p->in_at, p->graph->ninputs, s);
        bool writes = touches(p->out_at, p->graph->noutputs, s);
        if (reads && writes) {
            void *t = b->cur[s];
            b->cur[s] = b->spare[s];
            b->spare[s] = t;
        } else if (reads) {
            k->add(stream_bytes(m, s) / tb_dtype_size(m->dtype), b->cur[s],
                   b->spare[s], b->cur[s]);
        } else if (writes) {
            memset(b->cur[s], 0, stream_bytes(m, s));
        }
    }
}

static tb_status backward_part(tb_model *m, size_t p, const tb_batch *batch,
                               void *grads)
{
    tb_run r;
    TB_TRY(tb_model_run(m, p, batch, &r));
    point_gradients(m, &m->parts[p]);
    tb_bwd w = {.hi = -1,
                .lo = -1,
                .gout = m->bound->gout,
                .gin = m->bound->gin,
                .gparams = tb_model_gparams(m, p, grads)};
    TB_TRY(tb_plan_backward(m->ctx, &r, &w));
    step_gradients(m, &m->parts[p]);
    return TB_OK;
}

tb_status tb_model_backward(tb_model *m, const tb_batch *batch, void *grads)
{
    TB_TRY(need_bound(m));
    tb_bound *b = m->bound;
    if (!(b->passes & TB_PASS_BWD) || !b->ran)
        return TB_FAIL(m->ctx, TB_ERR_ARG,
                       "backward: needs a binding for it and a forward first");
    for (size_t s = 0; s < m->nstreams; s++)
        memset(b->cur[s], 0, stream_bytes(m, s));
    for (size_t p = m->sizes.s.depth + 2; p-- > 0;)
        TB_TRY(backward_part(m, p, batch, grads));
    return TB_OK;
}

/* --- reports ------------------------------------------------------------- */

double tb_model_flops(const tb_model *m)
{
    double sum = 0;
    if (!m->bound)
        return 0;
    for (size_t p = 0; p < m->sizes.s.depth + 2; p++)
        sum += tb_plan_flops(m->bound->plans[m->parts[p].kind]);
    return m->bound->passes & TB_PASS_BWD ? 3 * sum : sum;
}

const char *tb_model_first_nonfinite(tb_model *m)
{
    if (!m->bound || !m->bound->ran)
        return NULL;
    const tb_kern *k = tb_kern_get(m->ctx, m->dtype);
    size_t one = tb_dtype_size(m->dtype), depth = m->sizes.s.depth;
    for (size_t l = 0; l <= depth; l++)
        for (size_t s = 0; s < m->nstreams; s++)
            if (k->nonfinite(stream_bytes(m, s) / one,
                             m->bound->level[l * m->nstreams + s]))
                return m->parts[l].scope;
    size_t n =
        m->bound->batch * m->bound->time * tb_settings_outputs(&m->sizes.s);
    bool bad =
        k->nonfinite(n, m->bound->logits) || k->nonfinite(1, m->bound->loss);
    return bad ? m->parts[depth + 1].scope : NULL;
}
