/* SPDX-License-Identifier: MIT */
/* Shared by the tests of the graph room: a text to its graphs, and what is
 * derived from them, as strings. */
#ifndef TB_TESTS_GRAPH_HELP_H
#define TB_TESTS_GRAPH_HELP_H

#include "graph/graph.h"
#include "tb_test.h"

/** Which graph of a text: of the stack with the head, or of the encoder under
 * it. */
typedef enum gr_part {
    GR_LAYER,
    GR_STEM,
    GR_TAIL,
    GR_ENCODER_LAYER,
    GR_ENCODER_STEM,
    GR_MEMORY,
    GR_PARTS
} gr_part;

/** A text and one of its graphs; gr_close frees both. */
typedef struct gr_case {
    tb_block *block;
    tb_arena arena;
    tb_sizes sizes;
    tb_graph *g;
} gr_case;

static inline tb_status gr_build(tb_ctx *ctx, gr_case *c,
                                 const tb_settings *settings, gr_part part,
                                 size_t l)
{
    TB_TRY(tb_sizes_resolve(ctx, c->block, settings, &c->sizes));
    tb_stack stack =
        part >= GR_ENCODER_LAYER ? TB_STACK_ENCODER : tb_sizes_top(&c->sizes);
    if (part == GR_STEM || part == GR_ENCODER_STEM)
        return tb_graph_stem(ctx, &c->arena, c->block, &c->sizes, stack, &c->g);
    if (part == GR_TAIL)
        return tb_graph_tail(ctx, &c->arena, c->block, &c->sizes, &c->g);
    if (part == GR_MEMORY)
        return tb_graph_memory(ctx, &c->arena, c->block, &c->sizes, &c->g);
    return tb_graph_layer(ctx, &c->arena, c->block, &c->sizes, stack, l, &c->g);
}

/* A built-in name or a text. On failure the case is closed. */
static inline tb_status gr_open(tb_ctx *ctx, gr_case *c, const char *what,
                                const tb_settings *settings, gr_part part,
                                size_t l)
{
    const tb_settings unset = TB_SETTINGS_UNSET;
    *c = (gr_case){0};
    TB_TRY(tb_block_load(ctx, what, &c->block));
    tb_arena_init(&c->arena, ctx);
    tb_status s = gr_build(ctx, c, settings ? settings : &unset, part, l);
    if (s != TB_OK) {
        tb_arena_clear(&c->arena);
        tb_block_destroy(ctx, c->block);
    }
    return s;
}

static inline void gr_close(tb_ctx *ctx, gr_case *c)
{
    tb_arena_clear(&c->arena);
    tb_block_destroy(ctx, c->block);
}

/* What a case reads as, into a buffer that belongs to the caller. */
typedef tb_status (*gr_say)(tb_ctx *ctx, gr_case *c, tb_buf *out);

/* The text of `say` for a graph must be `want`. */
static inline void gr_check(tb_test *T, const char *what,
                            const tb_settings *settings, gr_part part, size_t l,
                            gr_say say, const char *want)
{
    gr_case c;
    tb_buf got;
    tb_status s = gr_open(T->ctx, &c, what, settings, part, l);
    if (s != TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", what, tb_error(T->ctx));
        return;
    }
    tb_buf_init(&got, T->ctx);
    s = say(T->ctx, &c, &got);
    if (s != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", what, tb_error(T->ctx));
    else if (!tb_streq(tb_buf_str(&got), want))
        tb_test_fail(T, __FILE__, __LINE__, "%s\ngot:  %s\nwant: %s", what,
                     tb_buf_str(&got), want);
    tb_buf_clear(&got);
    gr_close(T->ctx, &c);
}

/* Building must fail, with exactly this message. */
static inline void gr_refused(tb_test *T, const char *what,
                              const tb_settings *settings, gr_part part,
                              const char *want)
{
    gr_case c;
    tb_status s = gr_open(T->ctx, &c, what, settings, part, 1);
    if (s == TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "%s: it built", what);
        gr_close(T->ctx, &c);
    } else {
        TB_STR(T, tb_error(T->ctx), want);
    }
}

/* --- ways to say a graph -------------------------------------------------- */

/* "norm.gain norm.bias ..." */
static inline tb_status gr_params(tb_ctx *ctx, gr_case *c, tb_buf *out)
{
    (void)ctx;
    for (int i = 0; i < c->g->nparams; i++)
        tb_buf_printf(out, "%s%s", i ? " " : "", c->g->params[i].name);
    return tb_buf_status(out);
}

static inline tb_status gr_dump(tb_ctx *ctx, gr_case *c, tb_buf *out)
{
    (void)ctx;
    tb_graph_dump(c->g, out);
    return tb_buf_status(out);
}

/* "x add layernorm ...": the ops that are no leaves, in order. */
static inline tb_status gr_ops(tb_ctx *ctx, gr_case *c, tb_buf *out)
{
    (void)ctx;
    for (int i = 0; i < c->g->nnodes; i++)
        if (c->g->nodes[i].op->lane != TB_LANE_LEAF)
            tb_buf_printf(out, "%s%s", out->len ? " " : "",
                          c->g->nodes[i].op->name);
    return tb_buf_status(out);
}

/* "toll 2 alpha^2" */
static inline tb_status gr_lane(tb_ctx *ctx, gr_case *c, tb_buf *out)
{
    tb_lane_info lane;
    TB_TRY(tb_graph_lane(ctx, c->g, &c->arena, &lane));
    tb_buf_printf(out, "%s %d %s", tb_lane_kind_name(lane.kind), lane.tolls,
                  lane.coefficient);
    return tb_buf_status(out);
}

/* "attn ffn": the names of the boundaries but the first */
static inline tb_status gr_boundaries(tb_ctx *ctx, gr_case *c, tb_buf *out)
{
    (void)ctx;
    for (int i = 1; i < c->g->nboundaries; i++)
        tb_buf_printf(out, "%s%s", i > 1 ? " " : "", c->g->boundaries[i].name);
    return tb_buf_status(out);
}

/* "norm.eps=1e-05": what op's attributes are in layer `l` is asked by tests */
static inline double gr_attr(tb_test *T, gr_case *c, const char *op, int attr,
                             size_t l)
{
    double v = __builtin_nan("");
    double(*all)[TB_OP_ATTRS] =
        tb_arena_alloc(&c->arena, (size_t)c->g->nnodes * sizeof *all);
    if (!all || tb_graph_attrs(T->ctx, c->g, &c->sizes, l, all) != TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "attrs: %s", tb_error(T->ctx));
        return v;
    }
    for (int i = 0; i < c->g->nnodes; i++)
        if (tb_streq(c->g->nodes[i].op->name, op))
            v = all[i][attr];
    return v;
}

#endif
