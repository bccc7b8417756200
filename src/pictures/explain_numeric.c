/* SPDX-License-Identifier: MIT */
/* explain --numeric: the symbolic Jacobian of every kind of layer evaluated on
 * random numbers, at a size where matrices are small. */
#include "model/symbolic.h"
#include "tollbooth/explain.h"

enum { TOKENS = 4, WIDTH = 8, WIDTH_MOST = 128, FFN_MOST = 1024 };

/* Heads as the block's own model: section gives them, 0 if it does not. */
static size_t own_heads(const tb_block *b)
{
    for (int i = 0; i < b->nsettings; i++) {
        const tb_expr *e = b->settings[i].value;
        if (tb_streq(b->settings[i].key, "heads"))
            return e->kind == TB_EXPR_NUMBER && e->number >= 1 &&
                           e->number <= WIDTH_MOST
                       ? (size_t)e->number
                       : 1;
    }
    return 0;
}

/* A width that the heads divide, where none was asked for. */
static tb_settings small_settings(const tb_block *b, const tb_settings *given)
{
    tb_settings s = *given;
    size_t own = own_heads(b), heads = s.heads ? s.heads : own ? own : 2;
    if (!s.width)
        s.width = (WIDTH + heads - 1) / heads * heads;
    if (!own && !s.heads)
        s.heads = s.width % heads ? 1 : heads;
    return s;
}

static tb_status check_size(tb_ctx *ctx, const tb_sizes *z)
{
    if (z->s.width > WIDTH_MOST)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "numeric: got width %zu, wanted at most %d", z->s.width,
                       (int)WIDTH_MOST);
    if (z->s.ffn > FFN_MOST)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "numeric: got ffn %zu, wanted at most %d", z->s.ffn,
                       (int)FFN_MOST);
    return TB_OK;
}

static void worse(double *most, double v)
{
    if (!(v <= *most)) /* keeps a NaN */
        *most = v;
}

static tb_status check_layer(tb_ctx *ctx, const tb_block *b,
                             const tb_settings *s, size_t l, uint64_t seed,
                             tb_numeric *out)
{
    tb_trial t;
    tb_agreement a;
    tb_status status = tb_trial_open(&t, ctx, b, s, l, TOKENS, seed);
    if (status == TB_OK)
        status = tb_trial_check(&t, &a);
    tb_trial_close(&t);
    TB_TRY(status);
    worse(&out->tangent, a.tangent);
    worse(&out->backward, a.backward);
    worse(&out->difference, a.difference);
    return TB_OK;
}

/* One layer of every section that is used. */
static tb_status check_sections(tb_ctx *ctx, const tb_block *b,
                                const tb_settings *s, const tb_sizes *sizes,
                                uint64_t seed, tb_numeric *out)
{
    tb_section_use *use = tb_alloc(ctx, (size_t)b->nsections + 1, sizeof *use);
    if (!use)
        return TB_ERR_MEMORY;
    tb_status status =
        tb_graph_sections(ctx, b, sizes, tb_sizes_top(sizes), use);
    for (int i = 0; i < b->nsections && status == TB_OK; i++)
        if (use[i].blocks)
            status = check_layer(ctx, b, s, use[i].first, seed, out);
    tb_free(ctx, use);
    return status;
}

tb_status tb_explain_numeric(tb_ctx *ctx, const tb_block *b,
                             const tb_settings *settings, uint64_t seed,
                             tb_numeric *out)
{
    tb_settings s = small_settings(b, settings);
    tb_sizes sizes;
    TB_TRY(tb_sizes_resolve(ctx, b, &s, &sizes));
    TB_TRY(check_size(ctx, &sizes));
    *out = (tb_numeric){.width = s.width, .tokens = TOKENS};
    TB_TRY(check_sections(ctx, b, &s, &sizes, seed, out));
    worse(&out->error, out->tangent);
    worse(&out->error, out->backward);
    worse(&out->error, out->difference);
    return TB_OK;
}
