/* SPDX-License-Identifier: MIT */
/* Checks of how stacks and sublayers stand to each other: an encoder under a
 * decoder, sublayers beside each other, and what only depth makes a matter. */
#include "graph/lint.h"

/* --- what the decoder makes of the memory --------------------------------- */

static int memory_of(const lint_graph *g)
{
    for (int i = 0; i < g->g->ninputs; i++)
        if (tb_streq(g->g->nodes[g->g->inputs[i]].name, "memory"))
            return g->g->inputs[i];
    return -1;
}

static bool is_decoder_of_two(const tb_lint *L)
{
    return L->nstacks > 1 && L->at->which != TB_STACK_ENCODER;
}

static bool is_read(const lint_graph *g, int node)
{
    for (int i = g->users_at[node]; i < g->users_at[node + 1]; i++)
        if (g->reach[g->users[i]])
            return true;
    return false;
}

tb_status lint_memory_unread(tb_lint *L, const lint_graph *unused)
{
    (void)unused;
    if (!is_decoder_of_two(L))
        return TB_OK;
    for (int i = 0; i < L->at->nkinds; i++) {
        int memory = memory_of(&L->at->kinds[i]);
        if (memory >= 0 && is_read(&L->at->kinds[i], memory))
            return TB_OK;
    }
    lint_found(L, lint_pos(&L->at->kinds[0], L->at->kinds[0].top));
    return TB_OK;
}

/* Through final: or, where that does nothing, as the last block leaves it. */
static bool memory_is_normed(const tb_lint *L)
{
    const lint_stack *under = &L->stacks[0];
    int top = lint_below(&under->tail, under->tail.top);
    if (lint_is_entry(&under->tail, top))
        return lint_ends_normed(&under->kinds[under->last]);
    return lint_is_norm(&under->tail, top);
}

tb_status lint_memory_normed_twice(tb_lint *L, const lint_graph *g)
{
    int memory = is_decoder_of_two(L) ? memory_of(g) : -1;
    if (memory < 0 || !memory_is_normed(L))
        return TB_OK;
    for (int i = 0; i < g->g->nnodes; i++)
        if (lint_is_norm(g, i) && g->reach[i] &&
            lint_below(g, g->g->nodes[i].in[0]) == memory)
            lint_found(L, lint_pos(g, i));
    return TB_OK;
}

/* --- encoder beside decoder ----------------------------------------------- */

/* Where the norms of a sublayer stand, as bits. The norm behind another
 * sublayer's sum is that one's. */
static unsigned places(const lint_graph *g, const char *name)
{
    unsigned bits = 0;
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        bool mine = u->norm_in >= 0 && !g->lane[u->norm_in];
        if (tb_streq(g->g->regions[i].name, name))
            bits |=
                8u | mine | (u->norm_out >= 0) * 2u | (u->norm_top >= 0) * 4u;
    }
    return bits;
}

tb_status lint_roles_differ(tb_lint *L, const lint_graph *unused)
{
    static const char *const names[] = {"attn", "ffn"};
    (void)unused;
    if (!is_decoder_of_two(L))
        return TB_OK;
    const lint_graph *under = &L->stacks[0].kinds[L->stacks[0].last];
    const lint_graph *g = &L->at->kinds[L->at->last];
    for (size_t i = 0; i < TB_LEN(names); i++)
        if (places(under, names[i]) != places(g, names[i])) {
            lint_found(L, lint_pos(g, g->top));
            return TB_OK;
        }
    return TB_OK;
}

/* --- sublayers beside each other ------------------------------------------ */

/* What a sublayer reads, before its norm. */
static int reads(const lint_graph *g, int region)
{
    int norm = g->use[region].norm_in;
    int at = norm < 0 ? g->g->regions[region].in[0] : g->g->nodes[norm].in[0];
    return lint_below(g, at);
}

/* Another than this one, with a norm of its own. */
static bool is_beside(const lint_graph *g, int a, int b)
{
    int norm = g->use[a].norm_in;
    bool one = norm >= 0 && norm == g->use[b].norm_in;
    return !one && g->use[a].sum >= 0 && g->use[b].sum >= 0 &&
           !tb_streq(g->g->regions[a].name, g->g->regions[b].name);
}

tb_status lint_parallel(tb_lint *L, const lint_graph *g)
{
    size_t n = (size_t)g->g->nnodes + 1;
    int *first = tb_arena_alloc(&L->arena, n * sizeof *first); /* from 1 */
    if (!first)
        return TB_ERR_MEMORY;
    for (int i = 0; i < g->g->nregions; i++) {
        int *at = &first[reads(g, i)];
        if (*at && is_beside(g, i, *at - 1)) {
            lint_found(L, g->g->regions[i].pos);
            return TB_OK;
        }
        *at = *at ? *at : i + 1;
    }
    return TB_OK;
}

/* --- depth ---------------------------------------------------------------- */

/* x + F(norm(x)), nothing that keeps the sum small. */
static bool is_plain_pre(const lint_graph *g)
{
    if (g->many || g->info.kind != TB_LANE_KIND_CLEAN || lint_starts_small(g))
        return false;
    for (int i = 0; i < g->g->nregions; i++) {
        const lint_use *u = &g->use[i];
        if (u->norm_in < 0 || u->norm_out >= 0 || u->norm_inner >= 0 ||
            u->sum < 0)
            return false;
    }
    return g->g->nregions > 0;
}

tb_status lint_pre_ln_deep(tb_lint *L, const lint_graph *unused)
{
    size_t n = 0;
    const lint_graph *g = NULL;
    (void)unused;
    for (int i = 0; i < L->at->nkinds; i++)
        if (is_plain_pre(&L->at->kinds[i])) {
            n += L->at->kinds[i].count;
            g = &L->at->kinds[i];
        }
    if (n < 24)
        return TB_OK;
    return lint_said(
        L, lint_pos(g, g->top), TB_LINT_NOTE,
        tb_arena_printf(&L->arena,
                        "%zu pre-norm blocks add up at full size: the stream "
                        "grows, and the higher a block stands the less it "
                        "changes it",
                        n));
}
