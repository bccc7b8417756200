/* SPDX-License-Identifier: MIT */
/* Places every path from x in to x out passes. A node is one exactly when no
 * edge between nodes on such paths jumps over it in topological order; the
 * flow cuts the stack there, one sublayer at a time. */
#include "graph/build.h"

/* What a name holds now: its node, -1 where it is none. */
static int held(tb_builder *b, const char *name)
{
    const tb_binding *v = tb_scope_find(&b->scope, name);
    return v && v->is_value && v->val.kind == TB_VAL_NODE ? v->val.node : -1;
}

tb_status tb_build_mark(tb_builder *b)
{
    const tb_graph *g = b->g;
    /* the first inputs; elements of lists come where they are read */
    size_t n = (size_t)(b->below ? b->below->ncarried : 0);
    tb_mark m = {.node = held(b, "x"), .regions = g->nregions};
    if (m.node < 0)
        return TB_OK;
    if (n > 1 && n <= TB_STREAMS_MOST) {
        m.streams = tb_arena_alloc(b->arena, n * sizeof *m.streams);
        if (!m.streams)
            return TB_ERR_MEMORY;
        for (size_t i = 0; i < n; i++)
            m.streams[i] = held(b, g->nodes[g->inputs[i]].name);
    }
    TB_TRY(TB_GROW(b, b->marks, b->nmarks, b->cap_marks, tb_mark));
    b->marks[b->nmarks++] = m;
    return TB_OK;
}

enum { FROM_IN = 1, TO_OUT = 2, BETWEEN = 3 };

/* Bits per node: reached from `in`, reaches `out`. */
static void reach(const tb_graph *g, int in, int out, unsigned char *bits)
{
    bits[in] |= FROM_IN;
    for (int i = in + 1; i < g->nnodes; i++)
        for (int j = 0; j < g->nodes[i].nin; j++)
            if (bits[g->nodes[i].in[j]] & FROM_IN)
                bits[i] |= FROM_IN;
    bits[out] |= TO_OUT;
    for (int i = out; i >= 0; i--)
        if (bits[i] & TO_OUT)
            for (int j = 0; j < g->nodes[i].nin; j++)
                bits[g->nodes[i].in[j]] |= TO_OUT;
}

/* last[a] = the furthest node on a path that reads a. */
static void furthest(const tb_graph *g, const unsigned char *bits, int *last)
{
    for (int i = 0; i < g->nnodes; i++)
        last[i] = i;
    for (int i = 0; i < g->nnodes; i++)
        if (bits[i] == BETWEEN)
            for (int j = 0; j < g->nodes[i].nin; j++)
                last[g->nodes[i].in[j]] = i;
}

static void separators(const tb_graph *g, const unsigned char *bits,
                       const int *last, unsigned char *is_sep)
{
    int jump = 0;
    for (int i = 0; i < g->nnodes; i++) {
        if (bits[i] != BETWEEN)
            continue;
        is_sep[i] = jump <= i;
        if (last[i] > jump)
            jump = last[i];
    }
}

static const char *group_name(tb_builder *b, int first, int n)
{
    tb_buf text;
    const char *name;
    tb_buf_init(&text, b->ctx);
    for (int i = 0; i < n && i < 8; i++)
        tb_buf_printf(&text, "%s%s", i ? "+" : "",
                      b->g->regions[first + i].name);
    name = text.failed ? NULL : tb_arena_strdup(b->arena, tb_buf_str(&text));
    tb_buf_clear(&text);
    return name;
}

static tb_status add(tb_builder *b, int node, int first, int n)
{
    tb_boundary *at = &b->g->boundaries[b->g->nboundaries++];
    *at = (tb_boundary){node, group_name(b, first, n), first, n};
    return at->name ? TB_OK : TB_ERR_MEMORY;
}

tb_status tb_build_boundaries(tb_builder *b, int in, int out)
{
    tb_graph *g = b->g;
    size_t n = (size_t)g->nnodes;
    unsigned char *bits = tb_arena_alloc(b->arena, n);
    unsigned char *is_sep = tb_arena_alloc(b->arena, n);
    int *last = tb_arena_alloc(b->arena, n * sizeof *last);
    g->boundaries = tb_arena_alloc(b->arena, ((size_t)b->nmarks + 2) *
                                                 sizeof *g->boundaries);
    if (!bits || !is_sep || !last || !g->boundaries)
        return TB_ERR_MEMORY;
    reach(g, in, out, bits);
    furthest(g, bits, last);
    separators(g, bits, last, is_sep);
    TB_TRY(add(b, in, 0, 0));
    int done = 0;
    for (int i = 0; i < b->nmarks; i++) {
        const tb_mark *m = &b->marks[i];
        bool last_of_group = i + 1 == b->nmarks ||
                             b->marks[i + 1].regions > m->regions ||
                             !is_sep[b->marks[i + 1].node];
        if (m->regions == done || !is_sep[m->node] || m->node == out ||
            !last_of_group)
            continue;
        TB_TRY(add(b, m->node, done, m->regions - done));
        done = m->regions;
    }
    return add(b, out, done, g->nregions - done);
}

/* --- cuts of several streams ---------------------------------------------- */

/** Graphs of many statements are cut at some of them at most. */
enum { CUTS_MOST = 64 };

/** While the cuts are looked for: streams as indices into the inputs. */
typedef struct cutter {
    tb_builder *b;
    int input[TB_STREAMS_MOST];
    int *out; /* nodes of the last cut */
    unsigned char *seen;
} cutter;

/* The streams: outputs with an input of their name, in order. */
static tb_status find_streams(cutter *c)
{
    tb_graph *g = c->b->g;
    g->streams =
        tb_arena_alloc(c->b->arena, TB_STREAMS_MOST * sizeof *g->streams);
    c->out = tb_arena_alloc(c->b->arena, TB_STREAMS_MOST * sizeof *c->out);
    if (!g->streams || !c->out)
        return TB_ERR_MEMORY;
    g->nstreams = 0;
    for (int o = 0; o < g->ncarried; o++)
        for (int i = 0; i < g->ninputs && g->nstreams < TB_STREAMS_MOST; i++)
            if (tb_streq(g->nodes[g->inputs[i]].name, g->outputs[o].name)) {
                c->input[g->nstreams] = i;
                c->out[g->nstreams] = g->outputs[o].node;
                g->streams[g->nstreams++] = g->outputs[o].name;
            }
    return TB_OK;
}

/* Whether every path from the streams in to those out passes `nodes`. */
static bool separates(cutter *c, const int *nodes)
{
    const tb_graph *g = c->b->g;
    enum { WANTED = 1, HELD = 2 };
    memset(c->seen, 0, (size_t)g->nnodes);
    for (int i = 0; i < g->nstreams; i++)
        c->seen[c->out[i]] |= WANTED;
    for (int i = 0; i < g->nstreams; i++)
        c->seen[nodes[i]] |= HELD;
    for (int i = g->nnodes - 1; i >= 0; i--)
        for (int k = 0; c->seen[i] == WANTED && k < g->nodes[i].nin; k++)
            c->seen[g->nodes[i].in[k]] |= WANTED;
    for (int i = 0; i < g->nstreams; i++)
        if (c->seen[g->inputs[c->input[i]]] == WANTED)
            return false;
    return true;
}

/* The streams at a mark; NULL where they are no cut. */
static const int *cut_at(cutter *c, const tb_mark *m)
{
    const tb_graph *g = c->b->g;
    int *nodes = tb_arena_alloc(c->b->arena, TB_STREAMS_MOST * sizeof *nodes);
    for (int i = 0; nodes && m->streams && i < g->nstreams; i++) {
        nodes[i] = m->streams[c->input[i]];
        if (nodes[i] < 0)
            return NULL;
    }
    return nodes && m->streams && separates(c, nodes) ? nodes : NULL;
}

static tb_status add_cut(tb_builder *b, const int *nodes, int first, int n)
{
    tb_cut *c = &b->g->cuts[b->g->ncuts++];
    *c = (tb_cut){nodes, group_name(b, first, n)};
    return nodes && c->name ? TB_OK : TB_ERR_MEMORY;
}

/* The last mark after each sublayer where all streams can be cut. */
static tb_status inner_cuts(cutter *c, int *done)
{
    tb_builder *b = c->b;
    for (int i = 0; i < b->nmarks && b->g->ncuts < CUTS_MOST; i++) {
        int regions = b->marks[i].regions;
        const int *nodes = NULL;
        if (regions == *done || regions == b->g->nregions)
            continue;
        for (; i < b->nmarks && b->marks[i].regions == regions; i++) {
            const int *found = cut_at(c, &b->marks[i]);
            nodes = found ? found : nodes;
        }
        i--;
        if (nodes)
            TB_TRY(add_cut(b, nodes, *done, regions - *done));
        *done = nodes ? regions : *done;
    }
    return TB_OK;
}

static tb_status several_streams(cutter *c)
{
    tb_graph *g = c->b->g;
    int *in = tb_arena_alloc(c->b->arena, TB_STREAMS_MOST * sizeof *in);
    int done = 0;
    c->seen = tb_arena_alloc(c->b->arena, (size_t)g->nnodes);
    if (!in || !c->seen)
        return TB_ERR_MEMORY;
    for (int i = 0; i < g->nstreams; i++)
        in[i] = g->inputs[c->input[i]];
    TB_TRY(add_cut(c->b, in, 0, 0));
    TB_TRY(inner_cuts(c, &done));
    return add_cut(c->b, c->out, done, g->nregions - done);
}

/* The boundaries, as cuts. */
static tb_status one_stream(tb_graph *g)
{
    static const char *const x[] = {"x"};
    g->nstreams = 1;
    g->streams = tb_arena_alloc(g->arena, sizeof *g->streams);
    if (!g->streams)
        return TB_ERR_MEMORY;
    g->streams[0] = x[0];
    for (int i = 0; i < g->nboundaries; i++)
        g->cuts[g->ncuts++] =
            (tb_cut){&g->boundaries[i].node, g->boundaries[i].name};
    return TB_OK;
}

tb_status tb_build_cuts(tb_builder *b)
{
    cutter c = {.b = b};
    size_t most = (size_t)(b->g->nboundaries > CUTS_MOST ? b->g->nboundaries
                                                         : CUTS_MOST) +
                  1;
    b->g->cuts = tb_arena_alloc(b->arena, most * sizeof *b->g->cuts);
    if (!b->g->cuts)
        return TB_ERR_MEMORY;
    TB_TRY(find_streams(&c));
    return b->g->nstreams > 1 ? several_streams(&c) : one_stream(b->g);
}
