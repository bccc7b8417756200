/* SPDX-License-Identifier: MIT */
/* Which buffer a value or a gradient gets. Without passes a value's buffer is
 * free again behind its last reader; a gradient's is needed from that reader,
 * the first on the way down, to the part that made the value. */
#include "model/parts.h"

/** A buffer and whether it is taken where the walk stands. */
typedef struct tb_lot {
    size_t bytes;
    bool taken;
    void *at;
} tb_lot;

static bool value_bytes(const tb_model *m, const tb_bound *b, size_t v,
                        size_t *bytes)
{
    const tb_value *x = &m->values[v];
    size_t n = tb_shape_count(x->shape, b->batch, b->time[x->time]);
    return n < SIZE_MAX && tb_mul(n, tb_dtype_size(m->dtype), bytes);
}

/* The first free lot of that size, or a new one; its number + 1. */
static size_t take(tb_pool *pool, size_t bytes)
{
    size_t i = 0;
    while (i < pool->nlots &&
           (pool->lots[i].taken || pool->lots[i].bytes != bytes))
        i++;
    if (i == pool->nlots)
        pool->lots[pool->nlots++] = (tb_lot){.bytes = bytes};
    pool->lots[i].taken = true;
    return i + 1;
}

static void give(tb_pool *pool, size_t lot)
{
    if (lot)
        pool->lots[lot - 1].taken = false;
}

/* --- values, upwards ----------------------------------------------------- */

static bool plan_values(const tb_model *m, tb_bound *b)
{
    tb_pool *pool = &b->pool;
    for (size_t p = 0; p < m->nparts; p++) {
        const tb_part *part = &m->parts[p];
        for (int o = 0; o < part->graph->noutputs; o++) {
            size_t bytes, v = part->out[o];
            if (!value_bytes(m, b, v, &bytes))
                return false;
            pool->of_value[v] = take(pool, bytes);
        }
        for (int i = 0; i < part->graph->ninputs && !b->passes; i++)
            if (part->in[i] >= 0 && m->values[part->in[i]].last == p)
                give(pool, pool->of_value[part->in[i]]);
    }
    return true;
}

/* --- gradients, downwards ------------------------------------------------ */

static bool plan_grads(const tb_model *m, tb_bound *b)
{
    tb_pool *pool = &b->pool;
    for (size_t i = 0; i < pool->nlots; i++)
        pool->lots[i].taken = true;
    for (size_t p = m->nparts; p-- > 0;) {
        const tb_part *part = &m->parts[p];
        for (int i = 0; i < part->graph->ninputs; i++) {
            size_t bytes;
            if (part->in[i] < 0 || pool->of_grad[part->in[i]])
                continue;
            if (!value_bytes(m, b, (size_t)part->in[i], &bytes))
                return false;
            pool->of_grad[part->in[i]] = take(pool, bytes);
        }
        for (int o = 0; o < part->graph->noutputs; o++)
            give(pool, pool->of_grad[part->out[o]]);
    }
    return true;
}

/* --- both ---------------------------------------------------------------- */

tb_status tb_pool_plan(const tb_model *m, tb_bound *b)
{
    tb_pool *pool = &b->pool;
    size_t n = m->nvalues + 1;
    pool->lots = tb_arena_alloc(&b->arena, 2 * n * sizeof *pool->lots);
    pool->of_value = tb_arena_alloc(&b->arena, n * sizeof *pool->of_value);
    pool->of_grad = tb_arena_alloc(&b->arena, n * sizeof *pool->of_grad);
    if (!pool->lots || !pool->of_value || !pool->of_grad)
        return TB_ERR_MEMORY;
    if (plan_values(m, b) && (!(b->passes & TB_PASS_BWD) || plan_grads(m, b)))
        return TB_OK;
    return TB_FAIL(m->ctx, TB_ERR_MEMORY,
                   "a batch of %zu x %zu needs more than can be addressed",
                   b->batch, b->time[TB_TIME_TARGET]);
}

void tb_pool_place(const tb_model *m, tb_bound *b, tb_slab *s)
{
    const tb_pool *pool = &b->pool;
    for (size_t i = 0; i < pool->nlots; i++)
        pool->lots[i].at = tb_slab_take(s, pool->lots[i].bytes, 1);
    for (size_t v = 0; v < m->nvalues; v++) {
        b->value[v] = pool->lots[pool->of_value[v] - 1].at;
        b->grad[v] =
            pool->of_grad[v] ? pool->lots[pool->of_grad[v] - 1].at : NULL;
    }
}

size_t tb_pool_values(const tb_model *m, const tb_bound *b)
{
    size_t n = 0;
    for (size_t v = 0; v < m->nvalues; v++)
        n += b->pool.lots[b->pool.of_value[v] - 1].bytes;
    return n;
}
