/* SPDX-License-Identifier: MIT */
/* The public face of a block: names, texts, lane. */
#include "graph/graph.h"

const char *tb_block_name(const tb_block *b)
{
    return b->name;
}

const char *tb_block_about(const tb_block *b)
{
    return b->about;
}

static tb_status to_text(tb_ctx *ctx, tb_buf *text, char **out)
{
    tb_status s = tb_buf_status(text);
    *out = NULL;
    if (s == TB_OK) {
        *out = tb_alloc(ctx, text->len + 1, 1);
        if (*out)
            memcpy(*out, tb_buf_str(text), text->len + 1);
        else
            s = TB_ERR_MEMORY;
    }
    tb_buf_clear(text);
    return s;
}

tb_status tb_block_text(tb_ctx *ctx, const tb_block *b, char **out)
{
    tb_buf text;
    tb_buf_init(&text, ctx);
    tb_block_print(b, &text);
    return to_text(ctx, &text, out);
}

void tb_text_free(tb_ctx *ctx, char *text)
{
    tb_free(ctx, text);
}

size_t tb_builtin_count(void)
{
    size_t n = 0;
    while (tb_builtins[n].name)
        n++;
    return n;
}

const char *tb_builtin_name(size_t i)
{
    return tb_builtins[i].name;
}

static void lane_words(const tb_lane_info *l, bool final, tb_buf *out)
{
    tb_buf_puts(out, tb_lane_kind_name(l->kind));
    if (l->kind == TB_LANE_KIND_TOLL)
        tb_buf_printf(out, ", %d a block", l->tolls);
    if (l->kind == TB_LANE_KIND_SCALED)
        tb_buf_printf(out, " by %s a block", l->coefficient);
    if (final)
        tb_buf_puts(out, ", one final toll");
}

static tb_status lane_of(tb_ctx *ctx, tb_arena *a, const tb_block *b,
                         tb_lane_info *lane, bool *final)
{
    tb_settings unset = TB_SETTINGS_UNSET;
    tb_lane_info tail;
    tb_sizes sizes;
    tb_graph *g;
    TB_TRY(tb_sizes_resolve(ctx, b, &unset, &sizes));
    TB_TRY(tb_graph_layer(ctx, a, b, &sizes, tb_sizes_top(&sizes), 1, &g));
    TB_TRY(tb_graph_lane(ctx, g, a, lane));
    TB_TRY(tb_graph_tail(ctx, a, b, &sizes, &g));
    TB_TRY(tb_graph_lane(ctx, g, a, &tail));
    *final = tail.tolls > 0;
    return TB_OK;
}

tb_status tb_lane_text(tb_ctx *ctx, const tb_block *b, char **out)
{
    tb_arena a;
    tb_buf text;
    tb_lane_info lane;
    bool final;
    *out = NULL;
    tb_arena_init(&a, ctx);
    tb_buf_init(&text, ctx);
    tb_status s = lane_of(ctx, &a, b, &lane, &final);
    if (s == TB_OK) {
        lane_words(&lane, final, &text);
        s = to_text(ctx, &text, out);
    }
    tb_arena_clear(&a);
    return s;
}
