/* SPDX-License-Identifier: MIT */
/* One step: every part forward in order, then backward in the opposite one.
 * A value's gradient is complete when the part that made it comes: all its
 * readers came before. Nothing here allocates. */
#include "model/parts.h"

static tb_status need_bound(const tb_model *m)
{
    if (m->bound)
        return TB_OK;
    return TB_FAIL(m->ctx, TB_ERR_ARG, "model: not bound to a batch size yet");
}

/* Ids from `many` on would be read beyond the table. */
static tb_status check_ids(tb_model *m, const char *what, const int32_t *ids,
                           tb_time time, size_t many, bool may_be_absent)
{
    const tb_bound *b = m->bound;
    size_t n = b->batch * b->time[time];
    for (size_t i = 0; ids && i < n; i++) {
        bool absent = ids[i] < 0 && may_be_absent;
        if (!absent && (ids[i] < 0 || (size_t)ids[i] >= many))
            return TB_FAIL(m->ctx, TB_ERR_INPUT,
                           "%s: got id %d at row %zu, wanted 0 to %zu", what,
                           (int)ids[i], i + 1, many - 1);
    }
    return TB_OK;
}

static tb_status check_batch(tb_model *m, const tb_batch *b)
{
    const tb_settings *s = &m->sizes.s;
    bool both = s->stack == TB_STACKS_BOTH;
    if (!b->source != !both)
        return TB_FAIL(m->ctx, TB_ERR_ARG, "source: got %s, wanted %s",
                       b->source ? "tokens" : "none",
                       both ? "what the encoder reads"
                            : "none: the model has no encoder of its own");
    if ((b->keep || b->source_keep) && !s->padding)
        return TB_FAIL(m->ctx, TB_ERR_ARG,
                       "keep: the model was made without padding");
    TB_TRY(check_ids(m, "source", b->source, TB_TIME_SOURCE, s->vocab, false));
    TB_TRY(check_ids(m, "tokens", b->tokens, TB_TIME_TARGET, s->vocab, false));
    return check_ids(m, "targets", b->targets, TB_TIME_TARGET,
                     tb_settings_outputs(s), true);
}

/* The mask as numbers of the model's type. */
static const void *mask_of(tb_model *m, tb_time time, const unsigned char *keep)
{
    tb_bound *b = m->bound;
    for (size_t i = 0; i < b->batch * b->time[time]; i++)
        tb_elem_set(m->dtype, b->keep[time], i, !keep || keep[i]);
    return b->keep[time];
}

static const void *data_at(tb_model *m, int at, const tb_batch *batch)
{
    switch (at) {
    case TB_AT_TOKENS:
        return batch->tokens;
    case TB_AT_SOURCE:
        return batch->source;
    case TB_AT_KEEP:
        return mask_of(m, TB_TIME_TARGET, batch->keep);
    case TB_AT_SOURCE_KEEP:
        return mask_of(m, TB_TIME_SOURCE, batch->source_keep);
    default:
        return batch->targets ? batch->targets : m->bound->no_targets;
    }
}

static void set_data(tb_model *m, size_t p, const tb_batch *batch)
{
    const tb_part *part = &m->parts[p];
    for (int i = 0; i < part->graph->ninputs; i++)
        if (part->in[i] < 0)
            m->bound->io[p].inputs[i] = data_at(m, part->in[i], batch);
}

tb_status tb_model_run(tb_model *m, size_t p, const tb_batch *batch,
                       tb_run *out)
{
    TB_TRY(need_bound(m));
    const tb_part *part = &m->parts[p];
    const tb_bound *b = m->bound;
    set_data(m, p, batch);
    *out = (tb_run){.plan = b->plans[part->kind],
                    .profile = m->profile,
                    .saved = b->io[p].saved,
                    .work = b->work,
                    .inputs = b->io[p].inputs,
                    .outputs = b->io[p].outputs,
                    .params = b->io[p].params,
                    .attr = (const double(*)[TB_OP_ATTRS])part->attr,
                    .seed = batch->seed,
                    .step = batch->step,
                    .scope = part->scope};
    return TB_OK;
}

tb_status tb_model_forward(tb_model *m, const tb_batch *batch, double *loss)
{
    TB_TRY(need_bound(m));
    TB_TRY(check_batch(m, batch));
    m->bound->ran = false;
    for (size_t p = 0; p < m->nparts; p++) {
        tb_run r;
        TB_TRY(tb_model_run(m, p, batch, &r));
        TB_TRY(tb_plan_forward(m->ctx, &r));
    }
    m->bound->ran = true;
    if (loss)
        *loss = batch->targets ? tb_model_loss(m) : 0;
    return TB_OK;
}

const void *tb_model_logits(const tb_model *m)
{
    return m->bound ? m->bound->value[m->logits] : NULL;
}

double tb_model_loss(const tb_model *m)
{
    return m->bound ? tb_elem_get(m->dtype, m->bound->value[m->loss], 0) : 0;
}

void *tb_model_stream(tb_model *m, size_t p)
{
    const tb_graph *g = m->parts[p].graph;
    for (int o = 0; m->bound && o < g->noutputs; o++)
        if (tb_streq(g->outputs[o].name, "x"))
            return m->bound->value[m->parts[p].out[o]];
    return NULL;
}

/* --- backward ------------------------------------------------------------ */

/* Whose gradient holds nothing so far: it is overwritten. Params of one part
 * are different views. Running statistics have no place in grads. */
static const bool *fresh_params(tb_model *m, const tb_part *p)
{
    tb_bound *b = m->bound;
    for (int i = 0; i < p->graph->nparams; i++) {
        size_t v = p->view[i];
        b->fresh[i] = !b->begun[v] && m->views[v].role != TB_ROLE_BUFFER;
        b->begun[v] = true;
    }
    return b->fresh;
}

void *const *tb_model_gparams(tb_model *m, size_t p, void *grads)
{
    const tb_part *part = &m->parts[p];
    for (int i = 0; i < part->graph->nparams; i++)
        m->bound->gparams[i] =
            tb_elem_at(m->dtype, grads, m->views[part->view[i]].offset);
    return m->bound->gparams;
}

/* The gradients of a part's outputs, as far as anything reads them, and where
 * those of its inputs go: the first to come overwrites, the rest add. */
static void point_gradients(tb_model *m, const tb_part *p)
{
    tb_bound *b = m->bound;
    for (int o = 0; o < p->graph->noutputs; o++) {
        size_t v = p->out[o];
        b->gout[o] = v == m->loss ? b->one : b->has[v] ? b->grad[v] : NULL;
    }
    for (int i = 0; i < p->graph->ninputs; i++) {
        int v = p->in[i];
        b->gin[i] = v >= 0 ? b->grad[v] : NULL;
        b->adds[i] = v >= 0 && b->has[v];
        if (v >= 0)
            b->has[v] = true;
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
                .adds = m->bound->adds,
                .gparams = tb_model_gparams(m, p, grads),
                .fresh = fresh_params(m, &m->parts[p])};
    return tb_plan_backward(m->ctx, &r, &w);
}

static tb_status backward(tb_model *m, const tb_batch *batch, void *grads,
                          bool begun)
{
    TB_TRY(need_bound(m));
    tb_bound *b = m->bound;
    if (!(b->passes & TB_PASS_BWD) || !b->ran)
        return TB_FAIL(m->ctx, TB_ERR_ARG,
                       "backward: needs a binding for it and a forward first");
    memset(b->has, 0, m->nvalues);
    memset(b->begun, begun, m->nviews);
    for (size_t p = m->nparts; p-- > 0;)
        TB_TRY(backward_part(m, p, batch, grads));
    return TB_OK;
}

tb_status tb_model_backward(tb_model *m, const tb_batch *batch, void *grads)
{
    return backward(m, batch, grads, true);
}

tb_status tb_model_gradients(tb_model *m, const tb_batch *batch, void *grads)
{
    return backward(m, batch, grads, false);
}

/* --- training or use ------------------------------------------------------ */

/* A mask of rate 0 multiplies by 1: the bits are those of no mask. */
void tb_model_quiet_attrs(const tb_model *m, size_t l,
                          double (*out)[TB_OP_ATTRS])
{
    const tb_graph *g = m->parts[l].graph;
    for (int i = 0; i < g->nnodes; i++) {
        const tb_op *op = g->nodes[i].op;
        memmove(out[i], m->parts[l].attr[i], sizeof out[i]);
        if (op == &tb_op_drop || op == &tb_op_skipdrop)
            out[i][TB_ATTR_DROP_P] = 0;
        else if (op == &tb_op_mha)
            out[i][TB_ATTR_ATTN_DROP] = 0;
        else if (op == &tb_op_xent)
            out[i][TB_ATTR_XENT_SMOOTH] = 0;
        else if (op->state)
            out[i][TB_ATTR_BATCH_STATISTICS] = TB_STATISTICS_FROZEN;
    }
}

void tb_model_quiet(tb_model *m)
{
    for (size_t p = 0; p < m->nparts; p++)
        tb_model_quiet_attrs(m, p, m->parts[p].attr);
}

void tb_model_step(tb_model *m, size_t step)
{
    for (size_t p = 0; p < m->nparts; p++) {
        const tb_graph *g = m->parts[p].graph;
        for (int i = 0; i < g->nnodes; i++) {
            double *attr = m->parts[p].attr[i];
            if (g->nodes[i].op == &tb_op_powernorm)
                attr[TB_ATTR_BATCH_STATISTICS] =
                    (double)step <= attr[TB_ATTR_BATCH_WARMUP]
                        ? TB_STATISTICS_BATCH
                        : TB_STATISTICS_RUNNING;
        }
    }
}

tb_status tb_model_update(tb_model *m, const tb_batch *batch)
{
    for (size_t p = 0; p < m->nparts; p++) {
        tb_run r;
        TB_TRY(tb_model_run(m, p, batch, &r));
        TB_TRY(tb_plan_update(m->ctx, &r, tb_model_gparams(m, p, m->params)));
    }
    return TB_OK;
}

/* --- reports ------------------------------------------------------------- */

double tb_model_flops(const tb_model *m)
{
    double sum = 0;
    if (!m->bound)
        return 0;
    for (size_t p = 0; p < m->nparts; p++)
        sum += tb_plan_flops(m->bound->plans[m->parts[p].kind]);
    return m->bound->passes & TB_PASS_BWD ? 3 * sum : sum;
}

const char *tb_model_first_nonfinite(tb_model *m)
{
    if (!m->bound || !m->bound->ran)
        return NULL;
    const tb_kern *k = tb_kern_get(m->ctx, m->dtype);
    const tb_bound *b = m->bound;
    for (size_t i = 0; i < m->nvalues; i++) {
        const tb_value *v = &m->values[i];
        size_t n = tb_shape_count(v->shape, b->batch, b->time[v->time]);
        if (k->nonfinite(n, b->value[i]))
            return m->parts[v->part].scope;
    }
    return NULL;
}
