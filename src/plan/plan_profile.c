/* SPDX-License-Identifier: MIT */
/* Counts of a profile. */
#include "plan/plan_profile.h"

double tb_profile_now(const tb_profile *p)
{
    return p ? p->now() : 0;
}

/* Elements of a stream; parameters are small beside it, and of a table only the
 * rows of the batch are read. */
static double stream_bytes(const tb_opcall *c, tb_shape s, int input)
{
    size_t time = input >= 0 && c->in_time[input] ? c->in_time[input] : c->time;
    if (s.kind != TB_SHAPE_STREAM)
        return 0;
    return (double)(tb_shape_count(s, c->batch, time) *
                    tb_dtype_size(c->k->dtype));
}

/* The output or its gradient, and each input: its value, its gradient. */
static double call_bytes(const tb_op *op, const tb_opcall *c, bool backward)
{
    double sum = stream_bytes(c, c->out_shape, -1);
    if (backward && (op->needs & TB_NEED_OUT))
        sum *= 2;
    for (int i = 0; i < c->nin; i++) {
        double one = stream_bytes(c, c->in_shape[i], i);
        bool read = !backward || (op->needs & TB_NEED_IN(i));
        sum += one * ((read ? 1 : 0) + (backward && c->gin[i] ? 1 : 0));
    }
    return sum;
}

static tb_work work_of(const tb_op *op)
{
    return op->lane == TB_LANE_TOLL ? TB_WORK_NORM : op->work;
}

void tb_profile_count(tb_profile *p, const tb_op *op, const tb_opcall *c,
                      bool backward, double start)
{
    if (!p)
        return;
    tb_worked *w = &p->work[work_of(op)];
    w->seconds += tb_profile_now(p) - start;
    w->bytes += call_bytes(op, c, backward);
    w->flops += op->flops ? (backward ? 2 : 1) * op->flops(c) : 0;
}

/* A row part that goes with a whole part touches the output alone. */
static double row_bytes(const tb_rowcall *r)
{
    double out = stream_bytes(&r->c, r->c.out_shape, -1);
    if (r->op->rows_in)
        return r->back ? out : 2 * out;
    return call_bytes(r->op, &r->c, r->back);
}

void tb_profile_rows(tb_profile *p, const tb_rowcall *calls, size_t n,
                     double start)
{
    double seconds = tb_profile_now(p) - start, all = 0;
    for (size_t i = 0; p && i < n; i++)
        all += row_bytes(&calls[i]);
    for (size_t i = 0; p && i < n; i++) {
        bool norm = calls[i].op->lane == TB_LANE_TOLL;
        tb_worked *w = &p->work[norm ? TB_WORK_NORM : TB_WORK_ELEMENT];
        double bytes = row_bytes(&calls[i]);
        w->seconds += all > 0 ? seconds * bytes / all : 0;
        w->bytes += bytes;
    }
}
