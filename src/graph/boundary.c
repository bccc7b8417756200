/* SPDX-License-Identifier: MIT */
/* Places every path from x in to x out passes. A node is one exactly when no
 * edge between nodes on such paths jumps over it in topological order; the
 * flow cuts the stack there, one sublayer at a time. */
#include "graph/build.h"

tb_status tb_build_mark(tb_builder *b, int node)
{
    TB_TRY(TB_GROW(b, b->marks, b->nmarks, b->cap_marks, tb_mark));
    b->marks[b->nmarks++] = (tb_mark){node, b->g->nregions};
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
