/* SPDX-License-Identifier: MIT */
/* The parts of a model in running order, and the values that join them: an
 * input is the value that last got its name on this side, or data. */
#include "model/parts.h"

#include <limits.h>

/* --- graphs -------------------------------------------------------------- */

static tb_status part_tables(tb_model *m, tb_part *p)
{
    const tb_graph *g = p->graph;
    p->view =
        tb_arena_alloc(&m->arena, ((size_t)g->nparams + 1) * sizeof *p->view);
    p->attr =
        tb_arena_alloc(&m->arena, ((size_t)g->nnodes + 1) * sizeof *p->attr);
    p->in = tb_arena_alloc(&m->arena, ((size_t)g->ninputs + 1) * sizeof *p->in);
    p->out =
        tb_arena_alloc(&m->arena, ((size_t)g->noutputs + 1) * sizeof *p->out);
    if (!p->view || !p->attr || !p->in || !p->out)
        return TB_ERR_MEMORY;
    return tb_graph_attrs(m->ctx, g, &m->sizes, p->layer ? p->layer : 1,
                          p->attr);
}

static tb_status add_part(tb_model *m, tb_part part)
{
    tb_part *p = &m->parts[m->nparts++];
    *p = part;
    return p->scope ? part_tables(m, p) : TB_ERR_MEMORY;
}

/* One stack of the model while its parts are added. */
typedef struct tower {
    tb_side side;
    tb_stack stack;
    const char *prefix; /* of scopes: "encoder.", or "" in a single stack */
} tower;

static tb_part part_of(tb_model *m, const tower *s, tb_part_role role,
                       const tb_graph *g)
{
    return (tb_part){.graph = g,
                     .kind = m->nkinds++,
                     .role = role,
                     .side = s->side,
                     .time = s->side == TB_SIDE_ENCODER ? TB_TIME_SOURCE
                                                        : TB_TIME_TARGET};
}

static tb_status add_stem(tb_model *m, const tower *s)
{
    tb_graph *g;
    TB_TRY(tb_graph_stem(m->ctx, &m->arena, m->block, &m->sizes, s->stack, &g));
    tb_part p = part_of(m, s, TB_PART_STEM, g);
    p.scope = tb_arena_printf(&m->arena, "%sstem", s->prefix);
    return add_part(m, p);
}

/* The graph below the part to come. */
static const tb_graph *below(const tb_model *m)
{
    return m->parts[m->nparts - 1].graph;
}

/* A part that layers of one section share but for l; with lists each has its
 * own. */
typedef struct shared {
    bool made;
    tb_part part;
} shared;

static tb_status add_layer(tb_model *m, const tower *s, size_t l,
                           shared *by_section)
{
    int section;
    TB_TRY(
        tb_graph_section(m->ctx, m->block, &m->sizes, s->stack, l, &section));
    shared *same = &by_section[section];
    if (!same->made || below(m)->nlists) {
        tb_graph *g;
        TB_TRY(tb_graph_layer_on(m->ctx, &m->arena, m->block, &m->sizes,
                                 s->stack, l, below(m), &g));
        *same = (shared){true, part_of(m, s, TB_PART_LAYER, g)};
    }
    tb_part p = same->part;
    p.layer = l;
    p.scope = tb_arena_printf(&m->arena, "%slayers.%zu", s->prefix, l - 1);
    return add_part(m, p);
}

static bool reads_memory(const tb_graph *g)
{
    for (int i = 0; i < g->nnodes; i++)
        for (int j = 0; j < g->nodes[i].nin; j++) {
            const tb_node *n = &g->nodes[g->nodes[i].in[j]];
            if (n->op == &tb_op_input && tb_streq(n->name, "memory"))
                return true;
        }
    return false;
}

/* An encoder that nothing reads is a mistake: blocks that name attn and ffn
 * leave cross out. */
static tb_status check_memory(tb_model *m, const tower *s, const shared *all)
{
    const tb_section *first = NULL;
    for (int i = 0; i < m->block->nsections; i++) {
        if (!all[i].made)
            continue;
        first = first ? first : &m->block->sections[i];
        if (reads_memory(all[i].part.graph))
            return TB_OK;
    }
    if (s->stack != TB_STACK_CROSS || !first)
        return TB_OK;
    return tb_block_fail(m->ctx, m->block, first->pos,
                         "no decoder block reads the encoder: call cross(...), "
                         "or F for all three sublayers");
}

static tb_status add_layers(tb_model *m, const tower *s)
{
    size_t n = (size_t)m->block->nsections + 1;
    shared *by_section = tb_arena_alloc(&m->arena, n * sizeof *by_section);
    if (!by_section)
        return TB_ERR_MEMORY;
    for (size_t l = 1; l <= tb_sizes_depth(&m->sizes, s->stack); l++)
        TB_TRY(add_layer(m, s, l, by_section));
    return check_memory(m, s, by_section);
}

/* The encoder under a decoder: what it puts out is the memory. */
static tb_status add_encoder(tb_model *m)
{
    static const tower s = {TB_SIDE_ENCODER, TB_STACK_ENCODER, "encoder."};
    tb_graph *g;
    TB_TRY(add_stem(m, &s));
    TB_TRY(add_layers(m, &s));
    TB_TRY(tb_graph_memory_on(m->ctx, &m->arena, m->block, &m->sizes, below(m),
                              &g));
    tb_part p = part_of(m, &s, TB_PART_FINAL, g);
    p.scope = "encoder.final";
    return add_part(m, p);
}

static tb_status add_top(tb_model *m)
{
    bool both = m->sizes.s.stack == TB_STACKS_BOTH;
    const tower s = {TB_SIDE_DECODER, tb_sizes_top(&m->sizes),
                     both ? "decoder." : ""};
    tb_graph *g;
    TB_TRY(add_stem(m, &s));
    TB_TRY(add_layers(m, &s));
    TB_TRY(
        tb_graph_tail_on(m->ctx, &m->arena, m->block, &m->sizes, below(m), &g));
    tb_part p = part_of(m, &s, TB_PART_TAIL, g);
    p.scope = "tail";
    return add_part(m, p);
}

static tb_status build_graphs(tb_model *m)
{
    bool both = m->sizes.s.stack == TB_STACKS_BOTH;
    size_t N = m->sizes.s.depth, M = both ? m->sizes.s.decoder_depth : 0, n;
    if (!tb_add(N, M, &n) || n > SIZE_MAX / sizeof *m->parts - 4)
        return TB_FAIL(m->ctx, TB_ERR_ARG, "depth: %zu is too large", N);
    m->parts = tb_arena_alloc(&m->arena, (n + 4) * sizeof *m->parts);
    if (!m->parts)
        return TB_ERR_MEMORY;
    if (both)
        TB_TRY(add_encoder(m));
    return add_top(m);
}

/* --- names --------------------------------------------------------------- */

typedef struct known {
    const char *name;
    size_t value;
} known;

/* What each name of a side means where the walk up the parts stands. */
typedef struct names {
    known *items;
    size_t n;
} names;

static known *find_name(const names *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (tb_streq(all->items[i].name, name))
            return &all->items[i];
    return NULL;
}

static void set_name(names *all, const char *name, size_t value)
{
    known *k = find_name(all, name);
    if (!k)
        k = &all->items[all->n++];
    *k = (known){name, value};
}

/* --- values -------------------------------------------------------------- */

/* What a batch gives, by the name that an input has on a side. A name with a
 * dot is no stream's. */
static bool data_input(tb_side side, const tb_node *n, int *at)
{
    static const struct {
        const char *name;
        int at[TB_SIDES]; /* 0: not on this side */
    } data[] = {
        {"tokens", {TB_AT_TOKENS, TB_AT_SOURCE}},
        {"targets", {TB_AT_TARGETS, 0}},
        {"x.keep", {TB_AT_KEEP, TB_AT_SOURCE_KEEP}},
        {"memory.keep", {TB_AT_SOURCE_KEEP, 0}},
    };
    bool tokens = n->shape.kind == TB_SHAPE_TOKENS;
    for (size_t i = 0; i < TB_LEN(data); i++)
        if (tb_streq(n->name, data[i].name) && data[i].at[side] &&
            (tokens || strchr(n->name, '.'))) {
            *at = data[i].at[side];
            return true;
        }
    return false;
}

static tb_status join_input(tb_model *m, const names *all, size_t part, int i)
{
    tb_part *p = &m->parts[part];
    const tb_node *n = &p->graph->nodes[p->graph->inputs[i]];
    if (data_input(p->side, n, &p->in[i]))
        return TB_OK;
    const known *k = find_name(all, n->name);
    if (!k)
        return TB_FAIL(m->ctx, TB_ERR_PARSE,
                       "%s: '%s' is no stream of the stem", p->scope, n->name);
    tb_value *v = &m->values[k->value];
    if (v->shape.kind != n->shape.kind || v->shape.width != n->shape.width)
        return TB_FAIL(m->ctx, TB_ERR_SHAPE,
                       "%s: stream %s has width %zu, got %zu", p->scope,
                       n->name, v->shape.width, n->shape.width);
    v->last = part;
    p->in[i] = (int)k->value;
    return TB_OK;
}

static void make_output(tb_model *m, names *all, size_t part, int o)
{
    tb_part *p = &m->parts[part];
    const tb_output *out = &p->graph->outputs[o];
    p->out[o] = m->nvalues;
    set_name(all, out->name, m->nvalues);
    m->values[m->nvalues++] =
        (tb_value){.name = out->name,
                   .part = part,
                   .last = part,
                   .shape = p->graph->nodes[out->node].shape,
                   .time = p->time};
}

static tb_status values_reserve(tb_model *m, names *all, size_t sides)
{
    size_t n = 1;
    for (size_t p = 0; p < m->nparts; p++)
        n += (size_t)m->parts[p].graph->noutputs;
    if (n > INT_MAX)
        return TB_FAIL(m->ctx, TB_ERR_ARG, "model: %zu values are too many", n);
    m->values = tb_arena_alloc(&m->arena, n * sizeof *m->values);
    bool ok = m->values != NULL;
    for (size_t s = 0; s < sides; s++) {
        all[s].items = tb_arena_alloc(&m->arena, n * sizeof *all[s].items);
        ok = ok && all[s].items;
    }
    return ok ? TB_OK : TB_ERR_MEMORY;
}

/* The tail's results. */
static void find_results(tb_model *m)
{
    const tb_part *tail = &m->parts[tb_model_tail(m)];
    for (int o = 0; o < tail->graph->noutputs; o++)
        if (tb_streq(tail->graph->outputs[o].name, "logits"))
            m->logits = tail->out[o];
        else
            m->loss = tail->out[o];
}

static tb_status join_parts(tb_model *m)
{
    names all[TB_SIDES] = {{0}};
    TB_TRY(values_reserve(m, all, TB_LEN(all)));
    for (size_t p = 0; p < m->nparts; p++) {
        const tb_graph *g = m->parts[p].graph;
        names *side = &all[m->parts[p].side];
        for (int i = 0; i < g->ninputs; i++)
            TB_TRY(join_input(m, side, p, i));
        for (int o = 0; o < g->noutputs; o++)
            make_output(m, side, p, o);
        if (m->parts[p].role == TB_PART_FINAL)
            set_name(&all[TB_SIDE_DECODER], "memory", m->parts[p].out[0]);
    }
    find_results(m);
    return TB_OK;
}

tb_status tb_parts_build(tb_model *m)
{
    TB_TRY(build_graphs(m));
    return join_parts(m);
}

/* --- reading ------------------------------------------------------------- */

const tb_graph *tb_model_graph(const tb_model *m, size_t p)
{
    return m->parts[p].graph;
}

tb_part_role tb_model_role(const tb_model *m, size_t p)
{
    return m->parts[p].role;
}

tb_side tb_model_side(const tb_model *m, size_t p)
{
    return m->parts[p].side;
}

size_t tb_model_layer(const tb_model *m, size_t p)
{
    return m->parts[p].layer;
}

const char *tb_model_scope(const tb_model *m, size_t p)
{
    return m->parts[p].scope;
}

const tb_view *tb_model_part_view(const tb_model *m, size_t p, size_t i)
{
    return &m->views[m->parts[p].view[i]];
}

const double (*tb_model_attrs(const tb_model *m, size_t p))[TB_OP_ATTRS]
{
    return (const double(*)[TB_OP_ATTRS])m->parts[p].attr;
}

size_t tb_model_tail(const tb_model *m)
{
    return m->nparts - 1;
}

tb_layers tb_model_layers(const tb_model *m, size_t end)
{
    size_t first = end;
    while (first > 0 && m->parts[first - 1].role == TB_PART_LAYER)
        first--;
    return (tb_layers){first, end - first};
}

int tb_model_in_value(const tb_model *m, size_t p, size_t i)
{
    int v = m->parts[p].in[i];
    return v >= 0 ? v : -1;
}

size_t tb_model_value_count(const tb_model *m, size_t v)
{
    const tb_value *x = &m->values[v];
    return tb_shape_count(x->shape, m->bound->batch, m->bound->time[x->time]);
}

size_t tb_model_out_value(const tb_model *m, size_t p, size_t o)
{
    return m->parts[p].out[o];
}
