/* SPDX-License-Identifier: MIT */
/* explain --expect: is this the placement that its author says it is? Asked of
 * the graphs; names and prose are not looked at. */
#include "pictures/explain_parts.h"

/** A block, seen as a placement. */
typedef struct placed {
    const tb_block *block;
    tb_model *m;
    tb_layers layers;
    const tb_graph *first, *tail;
    tb_lane_info lane, final;
    int before, after, on_lane; /* norms of the first block */
} placed;

/* --- one block ------------------------------------------------------------ */

static bool is_norm(const tb_node *n)
{
    return n->op->lane == TB_LANE_TOLL || n->op == &tb_op_dyt ||
           n->op == &tb_op_derf;
}

/* Norms by where they stand: read by a sublayer, fed by one, on the lane. */
static tb_status count_norms(tb_ctx *ctx, placed *p)
{
    const tb_graph *g = p->first;
    unsigned char *lane = tb_alloc(ctx, (size_t)g->nnodes, 1);
    if (!lane)
        return TB_ERR_MEMORY;
    tb_graph_on_lane(g, 0, g->nboundaries - 1, lane);
    for (int i = 0; i < g->nnodes; i++) {
        const tb_node *n = &g->nodes[i];
        if (n->region >= 0 || !is_norm(n))
            continue;
        bool fed = g->nodes[n->in[0]].op == &tb_op_branch, read = false;
        for (int r = 0; r < g->nregions; r++)
            read = read || g->regions[r].in[0] == i;
        p->on_lane += lane[i] != 0;
        p->after += fed && !lane[i];
        p->before += read && !lane[i];
    }
    tb_free(ctx, lane);
    return TB_OK;
}

static tb_status place(tb_ctx *ctx, placed *p, const tb_block *b,
                       const tb_settings *settings, tb_arena *a)
{
    *p = (placed){.block = b};
    TB_TRY(tb_model_create(ctx, b, settings, TB_F32, &p->m));
    size_t tail = tb_model_tail(p->m);
    p->layers = tb_model_layers(p->m, tail);
    p->first = tb_model_graph(p->m, p->layers.first);
    p->tail = tb_model_graph(p->m, tail);
    TB_TRY(tb_graph_lane(ctx, p->first, a, &p->lane));
    TB_TRY(tb_graph_lane(ctx, p->tail, a, &p->final));
    return count_norms(ctx, p);
}

/* --- two of them ---------------------------------------------------------- */

static tb_status part_differs(tb_ctx *ctx, const placed *a, size_t pa,
                              const placed *b, size_t pb, bool *differs)
{
    tb_buf one, other;
    tb_buf_init(&one, ctx);
    tb_buf_init(&other, ctx);
    tb_status s = tb_graph_placement(ctx, tb_model_graph(a->m, pa),
                                     tb_model_attrs(a->m, pa), &one);
    if (s == TB_OK)
        s = tb_graph_placement(ctx, tb_model_graph(b->m, pb),
                               tb_model_attrs(b->m, pb), &other);
    *differs = !tb_streq(tb_buf_str(&one), tb_buf_str(&other));
    tb_buf_clear(&one);
    tb_buf_clear(&other);
    return s;
}

/* The first part whose graph differs: 0 for none, else the part + 1. Stems are
 * not placements: they hold embedding and positions. */
static tb_status first_difference(tb_ctx *ctx, const placed *a, const placed *b,
                                  size_t *at)
{
    *at = 0;
    if (a->m->nparts != b->m->nparts) {
        *at = 1;
        return TB_OK;
    }
    for (size_t p = 0; p < a->m->nparts && !*at; p++) {
        bool differs;
        if (tb_model_role(a->m, p) == TB_PART_STEM)
            continue;
        TB_TRY(part_differs(ctx, a, p, b, p, &differs));
        *at = differs ? p + 1 : 0;
    }
    return TB_OK;
}

/* --- how ------------------------------------------------------------------ */

static void lane_text(const placed *p, tb_buf *out)
{
    tb_buf_puts(out, tb_lane_kind_name(p->lane.kind));
    if (p->lane.kind == TB_LANE_KIND_TOLL)
        tb_buf_printf(out, " with %d norm%s a block", p->lane.tolls,
                      p->lane.tolls == 1 ? "" : "s");
    if (p->lane.kind != TB_LANE_KIND_NONE &&
        !tb_streq(p->lane.coefficient, "1"))
        tb_buf_printf(out, " times %s", p->lane.coefficient);
}

static void norms_text(const placed *p, tb_buf *out)
{
    tb_buf_printf(out, "%d on the lane, %d before sublayers, %d behind them",
                  p->on_lane, p->before, p->after);
}

static void final_text(const placed *p, tb_buf *out)
{
    tb_buf_puts(out, p->final.tolls ? "a norm" : "none");
}

static void streams_text(const placed *p, tb_buf *out)
{
    tb_buf_printf(out, "%d", p->first->nstreams);
}

/** What is compared in words, in the order it is told. */
static const struct {
    const char *what;
    void (*say)(const placed *p, tb_buf *out);
} aspects[] = {
    {"streams", streams_text},
    {"lane", lane_text},
    {"norms of a block", norms_text},
    {"after the last block", final_text},
};

/* "lane: got clean, wanted toll with 2 norms a block"; how many differ. */
static int differences(tb_ctx *ctx, const placed *a, const placed *b,
                       tb_buf *why)
{
    int n = 0;
    for (size_t i = 0; i < TB_LEN(aspects); i++) {
        tb_buf one, other;
        tb_buf_init(&one, ctx);
        tb_buf_init(&other, ctx);
        aspects[i].say(a, &one);
        aspects[i].say(b, &other);
        if (!tb_streq(tb_buf_str(&one), tb_buf_str(&other)))
            tb_buf_printf(why, "%s%s: got %s, wanted %s", n++ ? "; " : "",
                          aspects[i].what, tb_buf_str(&one),
                          tb_buf_str(&other));
        tb_buf_clear(&one);
        tb_buf_clear(&other);
    }
    return n;
}

static void which_part(const placed *a, size_t part, tb_buf *why)
{
    size_t l = tb_model_layer(a->m, part);
    if (l)
        tb_buf_printf(why, "block %zu is built otherwise", l);
    else
        tb_buf_puts(why, "what follows the last block is built otherwise");
}

static tb_status is_twin(tb_ctx *ctx, const placed *a, const tb_block *b,
                         const tb_settings *settings, tb_arena *arena,
                         bool *same)
{
    placed p;
    size_t at = 1;
    tb_status s = place(ctx, &p, b, settings, arena);
    if (s == TB_OK)
        s = first_difference(ctx, a, &p, &at);
    tb_model_destroy(p.m);
    tb_error_clear(ctx); /* it may not exist at these sizes */
    *same = s == TB_OK && at == 0;
    return s == TB_ERR_MEMORY ? s : TB_OK;
}

/* The built-in block that has this placement, NULL: none; of several the one
 * with the shortest text, which says nothing else. */
static tb_status find_twin(tb_ctx *ctx, const placed *a,
                           const tb_settings *settings, tb_arena *arena,
                           const char **name)
{
    size_t shortest = 0;
    *name = NULL;
    for (size_t i = 0; i < tb_builtin_count(); i++) {
        tb_block *b;
        tb_buf text;
        bool same;
        TB_TRY(tb_block_load(ctx, tb_builtin_name(i), &b));
        tb_status s = is_twin(ctx, a, b, settings, arena, &same);
        tb_buf_init(&text, ctx);
        tb_block_print(b, &text);
        if (same && (!*name || text.len < shortest)) {
            shortest = text.len;
            *name = tb_builtin_name(i);
        }
        tb_buf_clear(&text);
        tb_block_destroy(ctx, b);
        TB_TRY(s);
    }
    return TB_OK;
}

static tb_status compare(tb_ctx *ctx, const placed *a, const placed *b,
                         const tb_settings *settings, tb_arena *arena,
                         tb_expected *out, tb_buf *why)
{
    size_t at;
    TB_TRY(first_difference(ctx, a, b, &at));
    out->same = at == 0;
    if (out->same)
        return TB_OK;
    if (differences(ctx, a, b, why) == 0)
        which_part(a, at - 1, why);
    return find_twin(ctx, a, settings, arena, &out->placement);
}

tb_status tb_explain_expect(tb_ctx *ctx, const tb_block *b,
                            const tb_block *other, const tb_settings *settings,
                            tb_expected *out, tb_out *why)
{
    placed mine, its = {.m = NULL};
    tb_arena a;
    *out = (tb_expected){.same = false};
    tb_arena_init(&a, ctx);
    tb_status s = place(ctx, &mine, b, settings, &a);
    if (s == TB_OK)
        s = place(ctx, &its, other, settings, &a);
    if (s == TB_OK)
        s = compare(ctx, &mine, &its, settings, &a, out, &why->buf);
    tb_model_destroy(mine.m);
    tb_model_destroy(its.m);
    tb_arena_clear(&a);
    return s;
}
