/* SPDX-License-Identifier: MIT */
/* explain --numeric: the symbolic Jacobian of every kind of layer evaluated on
 * random numbers, at a size where matrices are small. */
#include "model/symbolic.h"
#include "tollbooth/explain.h"

enum { TOKENS = 4, WIDTH = 8, WIDTH_MOST = 128, FFN_MOST = 1024 };
enum { GROWN = 8 }; /* block that stands for later ones with lists */

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
    if (*most == *most && !(v <= *most)) /* keeps a NaN */
        *most = v;
}

/** What every check of a block reads. */
typedef struct checks {
    tb_ctx *ctx;
    const tb_block *block;
    const tb_settings *settings;
    const tb_sizes *sizes;
    uint64_t seed;
    tb_numeric *out;
} checks;

/* *grows: with lists a later block of the section is another graph. */
static tb_status check_layer(const checks *c, tb_stack stack, size_t l,
                             bool *grows)
{
    tb_trial t;
    tb_agreement a;
    bool below = stack != tb_sizes_top(c->sizes);
    tb_status status = (below ? tb_trial_below : tb_trial_open)(
        &t, c->ctx, c->block, c->settings, l, TOKENS, c->seed);
    if (status == TB_OK)
        status = tb_trial_check(&t, &a);
    *grows = status == TB_OK && t.graph->nlists > 0;
    tb_trial_close(&t);
    TB_TRY(status);
    worse(&c->out->tangent, a.tangent);
    worse(&c->out->backward, a.backward);
    worse(&c->out->difference, a.difference);
    return TB_OK;
}

static tb_status check_uses(const checks *c, tb_stack stack,
                            tb_section_use *use)
{
    bool grows;
    TB_TRY(tb_graph_sections(c->ctx, c->block, c->sizes, stack, use));
    for (int i = 0; i < c->block->nsections; i++) {
        if (!use[i].blocks)
            continue;
        TB_TRY(check_layer(c, stack, use[i].first, &grows));
        size_t later = use[i].last < GROWN ? use[i].last : GROWN;
        if (grows && later > use[i].first)
            TB_TRY(check_layer(c, stack, later, &grows));
    }
    return TB_OK;
}

/* One layer of every section that is used in a stack. */
static tb_status check_stack(const checks *c, tb_stack stack)
{
    tb_section_use *use =
        tb_alloc(c->ctx, (size_t)c->block->nsections + 1, sizeof *use);
    if (!use)
        return TB_ERR_MEMORY;
    tb_status status = check_uses(c, stack, use);
    tb_free(c->ctx, use);
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
    const checks c = {ctx, b, &s, &sizes, seed, out};
    if (sizes.s.stack == TB_STACKS_BOTH)
        TB_TRY(check_stack(&c, TB_STACK_ENCODER));
    TB_TRY(check_stack(&c, tb_sizes_top(&sizes)));
    worse(&out->error, out->tangent);
    worse(&out->error, out->backward);
    worse(&out->error, out->difference);
    return TB_OK;
}
