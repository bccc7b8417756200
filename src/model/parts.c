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

/* Room for n parts more, and for stem and end. */
static tb_status reserve(tb_model *m, size_t n)
{
    if (n > TB_MODEL_NAMES)
        return TB_FAIL(m->ctx, TB_ERR_ARG,
                       "depth: got %zu blocks, wanted at most %d; explain and "
                       "lint take any depth",
                       n, (int)TB_MODEL_NAMES);
    tb_part *parts =
        tb_arena_alloc(&m->arena, (m->nparts + n + 4) * sizeof *parts);
    if (!parts)
        return TB_ERR_MEMORY;
    if (m->nparts)
        memcpy(parts, m->parts, m->nparts * sizeof *parts);
    m->parts = parts;
    return TB_OK;
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
                     .blocks = 1,
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

static tb_status make_shared(tb_model *m, const tower *s, size_t l, shared *out)
{
    tb_graph *g;
    TB_TRY(tb_graph_layer_on(m->ctx, &m->arena, m->block, &m->sizes, s->stack,
                             l, below(m), &g));
    *out = (shared){true, part_of(m, s, TB_PART_LAYER, g)};
    return TB_OK;
}

static tb_status add_layer(tb_model *m, const tower *s, size_t l,
                           const shared *same, tb_section_use use)
{
    tb_part p = same->part;
    p.layer = l;
    p.blocks = use.blocks;
    p.last = use.last;
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

/* The names of so many blocks with this graph. */
static tb_status count_names(tb_model *m, const tb_graph *g, size_t blocks)
{
    size_t names;
    if (!tb_mul(blocks, (size_t)g->nparams, &names) ||
        !tb_add(m->nnames, names, &m->nnames))
        m->nnames = SIZE_MAX;
    if (m->outline || m->nnames <= TB_MODEL_NAMES)
        return TB_OK;
    return TB_FAIL(m->ctx, TB_ERR_ARG,
                   "depth: the blocks have %zu weights, wanted at most %d; "
                   "explain and lint take any depth",
                   m->nnames, (int)TB_MODEL_NAMES);
}

/* The graph of every section that is used. */
static tb_status make_sections(tb_model *m, const tower *s,
                               const tb_section_use *use, shared *all)
{
    for (int i = 0; i < m->block->nsections; i++) {
        if (!use[i].blocks)
            continue;
        TB_TRY(make_shared(m, s, use[i].first, &all[i]));
        TB_TRY(count_names(m, all[i].part.graph, use[i].blocks));
    }
    return TB_OK;
}

/* With lists every layer has a graph of its own, and none stands for others. */
static tb_status add_all_layers(tb_model *m, const tower *s, bool lists,
                                shared *all)
{
    size_t depth = tb_sizes_depth(&m->sizes, s->stack);
    TB_TRY(reserve(m, depth));
    for (size_t l = 1; l <= depth; l++) {
        int section;
        TB_TRY(tb_graph_section(m->ctx, m->block, &m->sizes, s->stack, l,
                                &section));
        if (lists) {
            TB_TRY(make_shared(m, s, l, &all[section]));
            TB_TRY(count_names(m, all[section].part.graph, 1));
        }
        TB_TRY(add_layer(m, s, l, &all[section],
                         (tb_section_use){.last = l, .blocks = 1}));
    }
    return TB_OK;
}

/* The first layer of every section, from the bottom. */
static tb_status add_first_layers(tb_model *m, const tower *s,
                                  const tb_section_use *use, const shared *all)
{
    TB_TRY(reserve(m, (size_t)m->block->nsections));
    for (size_t below = 0;;) {
        int next = -1;
        for (int i = 0; i < m->block->nsections; i++)
            if (use[i].blocks && use[i].first > below &&
                (next < 0 || use[i].first < use[next].first))
                next = i;
        if (next < 0)
            return TB_OK;
        below = use[next].first;
        TB_TRY(add_layer(m, s, below, &all[next], use[next]));
    }
}

static tb_status add_layers(tb_model *m, const tower *s)
{
    size_t n = (size_t)m->block->nsections + 1;
    shared *all = tb_arena_alloc(&m->arena, n * sizeof *all);
    tb_section_use *use = tb_arena_alloc(&m->arena, n * sizeof *use);
    bool lists = below(m)->nlists > 0;
    if (!all || !use)
        return TB_ERR_MEMORY;
    m->outline &= !lists;
    TB_TRY(tb_graph_sections(m->ctx, m->block, &m->sizes, s->stack, use));
    if (!lists)
        TB_TRY(make_sections(m, s, use, all));
    TB_TRY(m->outline ? add_first_layers(m, s, use, all)
                      : add_all_layers(m, s, lists, all));
    return check_memory(m, s, all);
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
    TB_TRY(reserve(m, 0));
    if (m->sizes.s.stack == TB_STACKS_BOTH)
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

size_t tb_model_blocks(const tb_model *m, size_t p)
{
    return m->parts[p].blocks;
}

size_t tb_model_last(const tb_model *m, size_t p)
{
    return m->parts[p].last;
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
