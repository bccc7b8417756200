/* SPDX-License-Identifier: MIT */
/* Plans for a batch size, and every buffer of a step cut from one
 * allocation. The same code measures (no base) and places. */
#include "model/parts.h"

enum { LINE = 64 };

void *tb_slab_take(tb_slab *s, size_t n, size_t size)
{
    size_t bytes, end;
    if (!tb_mul(n, size, &bytes) || !tb_add(bytes, LINE - 1, &bytes) ||
        !tb_add(s->used, bytes / LINE * LINE, &end)) {
        s->overflow = true;
        return NULL;
    }
    void *p = s->base ? s->base + s->used : NULL;
    s->used = end;
    return p;
}

void tb_bound_destroy(tb_ctx *ctx, tb_bound *b)
{
    if (!b)
        return;
    for (size_t i = 0; b->plans && i < b->nplans; i++)
        tb_plan_destroy(ctx, b->plans[i]);
    tb_free(ctx, b->slab);
    tb_arena_clear(&b->arena);
    tb_free(ctx, b);
}

/* --- plans --------------------------------------------------------------- */

static const char *part_name(tb_part_role role)
{
    static const char *const names[] = {"stem", "layer", "final", "tail"};
    return names[role];
}

/* Time of every input; NULL if memory ran out. */
static const size_t *input_times(const tb_model *m, tb_bound *b,
                                 const tb_part *p)
{
    size_t n = (size_t)p->graph->ninputs;
    size_t *time = tb_arena_alloc(&b->arena, (n + 1) * sizeof *time);
    for (size_t i = 0; time && i < n; i++)
        time[i] = b->time[p->in[i] >= 0 ? m->values[p->in[i]].time
                          : p->in[i] == TB_AT_SOURCE_KEEP ? TB_TIME_SOURCE
                                                          : p->time];
    return time;
}

static tb_status make_plan(tb_model *m, tb_bound *b, const tb_part *p,
                           tb_plan **out)
{
    const size_t *times = input_times(m, b, p);
    tb_plan_spec spec = {
        .graph = p->graph,
        .batch = b->batch,
        .time = b->time[p->time],
        .input_time = times,
        .dtype = m->products,
        .passes = p->side == TB_SIDE_ENCODER && b->growing ? 0 : b->passes,
        .name = part_name(p->role)};
    return times ? tb_plan_create(m->ctx, &spec, out) : TB_ERR_MEMORY;
}

static tb_status make_plans(tb_model *m, tb_bound *b)
{
    b->nplans = m->nkinds;
    b->plans = tb_arena_alloc(&b->arena, b->nplans * sizeof(tb_plan *));
    if (!b->plans)
        return TB_ERR_MEMORY;
    for (size_t p = 0; p < m->nparts; p++) {
        tb_plan **plan = &b->plans[m->parts[p].kind];
        if (!*plan)
            TB_TRY(make_plan(m, b, &m->parts[p], plan));
    }
    return TB_OK;
}

/* --- pointer tables ------------------------------------------------------ */

static void *table(tb_bound *b, int n)
{
    return tb_arena_alloc(&b->arena, ((size_t)n + 1) * sizeof(void *));
}

static tb_status part_table(tb_bound *b, const tb_graph *g, tb_io *io)
{
    io->inputs = table(b, g->ninputs);
    io->outputs = table(b, g->noutputs);
    io->params = table(b, g->nparams);
    return io->inputs && io->outputs && io->params ? TB_OK : TB_ERR_MEMORY;
}

static int widest(int a, int b)
{
    return a > b ? a : b;
}

static tb_status make_tables(tb_model *m, tb_bound *b)
{
    int nin = 0, nout = 0, nparams = 0;
    b->io = tb_arena_alloc(&b->arena, m->nparts * sizeof *b->io);
    b->value = table(b, (int)m->nvalues);
    b->grad = table(b, (int)m->nvalues);
    b->has = tb_arena_alloc(&b->arena, m->nvalues);
    if (!b->io || !b->value || !b->grad || !b->has)
        return TB_ERR_MEMORY;
    for (size_t p = 0; p < m->nparts; p++) {
        const tb_graph *g = m->parts[p].graph;
        TB_TRY(part_table(b, g, &b->io[p]));
        nin = widest(nin, g->ninputs);
        nout = widest(nout, g->noutputs);
        nparams = widest(nparams, g->nparams);
    }
    b->gin = table(b, nin);
    b->adds = tb_arena_alloc(&b->arena, (size_t)nin + 1);
    b->fresh = tb_arena_alloc(&b->arena, (size_t)nparams + 1);
    b->begun = tb_arena_alloc(&b->arena, m->nviews + 1);
    b->gout = table(b, nout);
    b->gparams = table(b, nparams);
    bool all = b->gin && b->adds && b->fresh && b->begun && b->gout;
    return all && b->gparams ? TB_OK : TB_ERR_MEMORY;
}

/* --- buffers ------------------------------------------------------------- */

static void place_saved(const tb_model *m, tb_bound *b, tb_slab *s)
{
    size_t work = 0, most = 0;
    for (size_t k = 0; k < b->nplans; k++) {
        if (!b->plans[k])
            continue;
        size_t w = tb_plan_work_bytes(b->plans[k]);
        size_t v = tb_plan_saved_bytes(b->plans[k]);
        work = w > work ? w : work;
        most = v > most ? v : most;
    }
    b->work = tb_slab_take(s, work, 1);
    void *shared = b->passes ? NULL : tb_slab_take(s, most, 1);
    for (size_t p = 0; p < m->nparts; p++)
        b->io[p].saved =
            b->passes
                ? tb_slab_take(
                      s, tb_plan_saved_bytes(b->plans[m->parts[p].kind]), 1)
                : shared;
}

static tb_status place_all(const tb_model *m, tb_bound *b, tb_slab *s)
{
    tb_pool_place(m, b, s);
    place_saved(m, b, s);
    b->one = tb_slab_take(s, 1, tb_dtype_size(m->dtype));
    b->no_targets =
        tb_slab_take(s, b->batch * b->time[TB_TIME_TARGET], sizeof(int32_t));
    for (size_t t = 0; t < TB_TIME_CLASSES && m->sizes.s.padding; t++)
        b->keep[t] =
            tb_slab_take(s, b->batch * b->time[t], tb_dtype_size(m->dtype));
    if (s->overflow)
        return TB_FAIL(m->ctx, TB_ERR_MEMORY,
                       "a batch of %zu x %zu needs more than can be addressed",
                       b->batch, b->time[TB_TIME_TARGET]);
    return TB_OK;
}

/* --- wiring -------------------------------------------------------------- */

static void wire_part(const tb_model *m, tb_bound *b, size_t p)
{
    const tb_part *part = &m->parts[p];
    tb_io *io = &b->io[p];
    const tb_graph *g = part->graph;
    for (int i = 0; i < g->ninputs; i++)
        if (part->in[i] >= 0)
            io->inputs[i] = b->value[part->in[i]];
    for (int o = 0; o < g->noutputs; o++)
        io->outputs[o] = b->value[part->out[o]];
    for (int i = 0; i < g->nparams; i++)
        io->params[i] =
            tb_elem_at(m->dtype, m->params, m->views[part->view[i]].offset);
}

static tb_status check_sizes(const tb_model *m, size_t batch, size_t time)
{
    size_t rows;
    if (!batch || !time || !tb_mul(batch, time, &rows))
        return TB_FAIL(m->ctx, TB_ERR_ARG,
                       "batch x time: got %zu x %zu, wanted 1 or more of each",
                       batch, time);
    if (m->sizes.s.positions == TB_POSITIONS_LEARNED &&
        time > m->sizes.s.context)
        return TB_FAIL(m->ctx, TB_ERR_ARG,
                       "time: got %zu, but the model has %zu positions", time,
                       m->sizes.s.context);
    return TB_OK;
}

/* Plans and tables, and in *bytes what the buffers will take. */
static tb_status prepare(tb_model *m, size_t batch, size_t time, size_t source,
                         unsigned passes, bool growing, tb_bound **out)
{
    TB_TRY(check_sizes(m, batch, time));
    TB_TRY(check_sizes(m, batch, source));
    tb_bound *b = tb_alloc(m->ctx, 1, sizeof *b);
    if (!b)
        return TB_ERR_MEMORY;
    tb_arena_init(&b->arena, m->ctx);
    b->batch = batch;
    b->time[TB_TIME_TARGET] = time;
    b->time[TB_TIME_SOURCE] = source;
    b->passes = passes;
    b->growing = growing;
    tb_slab measure = {NULL, 0, false};
    tb_status s;
    TB_TRY_GOTO(make_plans(m, b), fail);
    TB_TRY_GOTO(make_tables(m, b), fail);
    TB_TRY_GOTO(tb_pool_plan(m, b), fail);
    TB_TRY_GOTO(place_all(m, b, &measure), fail);
    b->bytes = measure.used;
    *out = b;
    return TB_OK;
fail:
    tb_bound_destroy(m->ctx, b);
    return s;
}

static tb_status place_and_wire(tb_model *m, tb_bound *b)
{
    TB_TRY(tb_model_alloc(m));
    b->slab = tb_alloc(m->ctx, b->bytes, 1);
    if (!b->slab)
        return TB_ERR_MEMORY;
    tb_slab slab = {b->slab, 0, false};
    size_t time = b->time[TB_TIME_TARGET];
    TB_TRY(place_all(m, b, &slab));
    for (size_t p = 0; p < m->nparts; p++)
        wire_part(m, b, p);
    tb_elem_set(m->dtype, b->one, 0, 1);
    for (size_t i = 0; i < b->batch * time; i++)
        b->no_targets[i] = -1;
    return TB_OK;
}

static bool fits(const tb_bound *b, size_t batch, size_t time, size_t source,
                 unsigned passes, bool growing)
{
    return b && b->batch == batch && b->time[TB_TIME_TARGET] == time &&
           b->time[TB_TIME_SOURCE] == source && b->passes == passes &&
           b->growing == growing;
}

static tb_status bind(tb_model *m, size_t batch, size_t time, size_t source,
                      unsigned passes, bool growing)
{
    tb_bound *b;
    if (fits(m->bound, batch, time, source, passes, growing)) {
        m->bound->ran = false;
        return TB_OK;
    }
    TB_TRY(prepare(m, batch, time, source, passes, growing, &b));
    tb_bound_destroy(m->ctx, m->bound); /* first: both need not fit */
    m->bound = NULL;
    tb_status s = place_and_wire(m, b);
    if (s != TB_OK)
        tb_bound_destroy(m->ctx, b);
    else
        m->bound = b;
    return s;
}

tb_status tb_model_bind_source(tb_model *m, size_t batch, size_t time,
                               size_t source, unsigned passes)
{
    return bind(m, batch, time, source, passes, false);
}

tb_status tb_model_bind_growing(tb_model *m, size_t batch, size_t time,
                                size_t source)
{
    return bind(m, batch, time, source, time == 1 ? TB_PASS_KEEP : 0, true);
}

tb_status tb_model_bind(tb_model *m, size_t batch, size_t time, unsigned passes)
{
    return tb_model_bind_source(m, batch, time, time, passes);
}

/* What parts keep, and the values between them. */
static size_t saved_bytes(const tb_model *m, const tb_bound *b)
{
    size_t n = tb_pool_values(m, b);
    for (size_t p = 0; p < m->nparts; p++)
        n += tb_plan_saved_bytes(b->plans[m->parts[p].kind]);
    return n;
}

/* What plans hold themselves. */
static size_t angle_bytes(const tb_bound *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->nplans; i++)
        n += b->plans[i] ? tb_plan_angle_bytes(b->plans[i]) : 0;
    return n;
}

tb_status tb_model_memory(tb_model *m, size_t batch, size_t time, size_t source,
                          unsigned passes, size_t *bytes, size_t *saved)
{
    tb_bound *b;
    TB_TRY(prepare(m, batch, time, source, passes, false, &b));
    *bytes = b->bytes + angle_bytes(b);
    *saved = passes ? saved_bytes(m, b) : 0;
    tb_bound_destroy(m->ctx, b);
    return TB_OK;
}
