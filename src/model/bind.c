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

static const char *kind_name(size_t kind)
{
    return kind == 0 ? "stem" : kind == 1 ? "tail" : "layer";
}

static tb_status make_plans(tb_model *m, tb_bound *b)
{
    for (size_t p = 0; p < m->sizes.s.depth + 2; p++)
        if (m->parts[p].kind >= b->nplans)
            b->nplans = m->parts[p].kind + 1;
    b->plans = tb_arena_alloc(&b->arena, b->nplans * sizeof(tb_plan *));
    if (!b->plans)
        return TB_ERR_MEMORY;
    for (size_t p = 0; p < m->sizes.s.depth + 2; p++) {
        tb_plan **plan = &b->plans[m->parts[p].kind];
        tb_plan_spec spec = {.graph = m->parts[p].graph,
                             .batch = b->batch,
                             .time = b->time,
                             .dtype = m->dtype,
                             .passes = b->passes,
                             .name = kind_name(m->parts[p].kind)};
        if (!*plan)
            TB_TRY(tb_plan_create(m->ctx, &spec, plan));
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
    size_t nparts = m->sizes.s.depth + 2;
    int nin = 0, nout = 0, nparams = 0;
    b->io = tb_arena_alloc(&b->arena, nparts * sizeof *b->io);
    b->level = tb_arena_alloc(&b->arena,
                              (nparts * m->nstreams + 1) * sizeof *b->level);
    b->cur = table(b, (int)m->nstreams);
    b->spare = table(b, (int)m->nstreams);
    b->pair = table(b, 2 * (int)m->nstreams);
    if (!b->io || !b->level || !b->cur || !b->spare || !b->pair)
        return TB_ERR_MEMORY;
    for (size_t p = 0; p < nparts; p++) {
        const tb_graph *g = m->parts[p].graph;
        TB_TRY(part_table(b, g, &b->io[p]));
        nin = widest(nin, g->ninputs);
        nout = widest(nout, g->noutputs);
        nparams = widest(nparams, g->nparams);
    }
    b->gin = table(b, nin);
    b->gout = table(b, nout);
    b->gparams = table(b, nparams);
    return b->gin && b->gout && b->gparams ? TB_OK : TB_ERR_MEMORY;
}

/* --- buffers ------------------------------------------------------------- */

static void *take_value(const tb_model *m, tb_bound *b, tb_slab *s,
                        tb_shape shape)
{
    size_t n;
    if (!tb_mul(b->batch, b->time, &n) || !tb_mul(n, shape.width, &n)) {
        s->overflow = true;
        return NULL;
    }
    return tb_slab_take(s, tb_shape_count(shape, b->batch, b->time),
                        tb_dtype_size(m->dtype));
}

/* Two buffers per stream that alternate where layers are not kept. */
static void place_pairs(const tb_model *m, tb_bound *b, tb_slab *s)
{
    for (size_t i = 0; i < 2 * m->nstreams && !b->passes; i++)
        b->pair[i] = take_value(m, b, s, m->streams[i / 2].shape);
}

static void *next_buffer(const tb_model *m, tb_bound *b, tb_slab *s, size_t at,
                         const void *before)
{
    if (b->passes)
        return take_value(m, b, s, m->streams[at].shape);
    return b->pair[2 * at] == before ? b->pair[2 * at + 1] : b->pair[2 * at];
}

/* Streams after every part: those it writes get a buffer of their own if
 * layers are kept, else the other one of the pair; the rest pass by. */
static void place_streams(const tb_model *m, tb_bound *b, tb_slab *s)
{
    size_t n = m->nstreams;
    place_pairs(m, b, s);
    for (size_t l = 0; l <= m->sizes.s.depth; l++) {
        const tb_part *p = &m->parts[l];
        void **level = b->level + l * n;
        for (size_t i = 0; i < n; i++)
            level[i] = l ? b->level[(l - 1) * n + i] : NULL;
        for (int o = 0; o < p->graph->noutputs; o++)
            if (p->out_at[o] >= 0) {
                size_t at = (size_t)p->out_at[o];
                level[at] = next_buffer(m, b, s, at, level[at]);
            }
    }
}

static void place_saved(const tb_model *m, tb_bound *b, tb_slab *s)
{
    size_t nparts = m->sizes.s.depth + 2, work = 0, most = 0;
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
    for (size_t p = 0; p < nparts; p++)
        b->io[p].saved =
            b->passes
                ? tb_slab_take(
                      s, tb_plan_saved_bytes(b->plans[m->parts[p].kind]), 1)
                : shared;
}

static void place_rest(const tb_model *m, tb_bound *b, tb_slab *s)
{
    tb_shape logits = {TB_SHAPE_STREAM, tb_settings_outputs(&m->sizes.s), 1};
    size_t one = tb_dtype_size(m->dtype);
    b->logits = take_value(m, b, s, logits);
    b->loss = tb_slab_take(s, 1, one);
    b->one = tb_slab_take(s, 1, one);
    b->no_targets = tb_slab_take(s, b->batch * b->time, sizeof(int32_t));
    if (!(b->passes & TB_PASS_BWD))
        return;
    for (size_t i = 0; i < m->nstreams; i++) {
        b->cur[i] = take_value(m, b, s, m->streams[i].shape);
        b->spare[i] = take_value(m, b, s, m->streams[i].shape);
    }
}

static tb_status place_all(const tb_model *m, tb_bound *b, tb_slab *s)
{
    place_streams(m, b, s);
    place_saved(m, b, s);
    place_rest(m, b, s);
    if (s->overflow)
        return TB_FAIL(m->ctx, TB_ERR_MEMORY,
                       "a batch of %zu x %zu needs more than can be addressed",
                       b->batch, b->time);
    return TB_OK;
}

/* --- wiring -------------------------------------------------------------- */

static void wire_part(const tb_model *m, tb_bound *b, size_t p)
{
    const tb_part *part = &m->parts[p];
    tb_io *io = &b->io[p];
    const tb_graph *g = part->graph;
    void **before = p ? b->level + (p - 1) * m->nstreams : NULL;
    void **after = b->level + p * m->nstreams; /* unused by the tail */
    for (int i = 0; i < g->ninputs; i++)
        if (part->in_at[i] >= 0 && before)
            io->inputs[i] = before[part->in_at[i]];
    for (int o = 0; o < g->noutputs; o++)
        io->outputs[o] = part->out_at[o] >= 0 ? after[part->out_at[o]]
                         : part->out_at[o] == TB_AT_LOGITS ? b->logits
                                                           : b->loss;
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
static tb_status prepare(tb_model *m, size_t batch, size_t time,
                         unsigned passes, tb_bound **out)
{
    TB_TRY(check_sizes(m, batch, time));
    tb_bound *b = tb_alloc(m->ctx, 1, sizeof *b);
    if (!b)
        return TB_ERR_MEMORY;
    tb_arena_init(&b->arena, m->ctx);
    b->batch = batch;
    b->time = time;
    b->passes = passes;
    tb_slab measure = {NULL, 0, false};
    tb_status s;
    TB_TRY_GOTO(make_plans(m, b), fail);
    TB_TRY_GOTO(make_tables(m, b), fail);
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
    TB_TRY(place_all(m, b, &slab));
    for (size_t p = 0; p < m->sizes.s.depth + 2; p++)
        wire_part(m, b, p);
    tb_elem_set(m->dtype, b->one, 0, 1);
    for (size_t i = 0; i < b->batch * b->time; i++)
        b->no_targets[i] = -1;
    return TB_OK;
}

tb_status tb_model_bind(tb_model *m, size_t batch, size_t time, unsigned passes)
{
    tb_bound *b;
    TB_TRY(prepare(m, batch, time, passes, &b));
    tb_bound_destroy(m->ctx, m->bound); /* first: both need not fit */
    m->bound = NULL;
    tb_status s = place_and_wire(m, b);
    if (s != TB_OK)
        tb_bound_destroy(m->ctx, b);
    else
        m->bound = b;
    return s;
}

tb_status tb_model_memory(tb_model *m, size_t batch, size_t time,
                          unsigned passes, size_t *bytes)
{
    tb_bound *b;
    TB_TRY(prepare(m, batch, time, passes, &b));
    *bytes = b->bytes;
    tb_bound_destroy(m->ctx, b);
    return TB_OK;
}
