/* SPDX-License-Identifier: MIT */
/* Keys and values of all layers, and the parts run on new tokens only. */
#include "model/cache.h"

#include "model/parts.h"

struct tb_cache {
    tb_model *m;
    tb_arena arena;
    size_t batch, most, source;
    size_t seen;
    bool again;         /* the next feed may use what the last one left */
    tb_past *past;      /* [nparts] */
    size_t *at;         /* [nparts]: elements before its keys and values */
    size_t width;       /* of all keys and values of a token */
    void *kept, *spare; /* [parts][batch, width, most]; spare: to pick into */
    void *room;
    size_t room_bytes;
};

/* --- may it be done? -------------------------------------------------------
 */

static bool input_moves(const tb_model *m, int in)
{
    if (in >= 0)
        return m->values[in].time == TB_TIME_TARGET;
    return in != TB_AT_SOURCE && in != TB_AT_SOURCE_KEEP;
}

static tb_status make_part(tb_cache *c, size_t p, bool *able)
{
    const tb_part *part = &c->m->parts[p];
    size_t n = (size_t)part->graph->ninputs + 1;
    bool *moves = tb_arena_alloc(&c->arena, n * sizeof *moves);
    if (!moves)
        return TB_ERR_MEMORY;
    for (int i = 0; i < part->graph->ninputs; i++)
        moves[i] = input_moves(c->m, part->in[i]);
    TB_TRY(tb_past_make(&c->arena, part->graph,
                        (const double(*)[TB_OP_ATTRS])part->attr, moves,
                        &c->past[p], able));
    c->at[p] = c->width * c->batch * c->most;
    c->width += c->past[p].width;
    c->past[p].most = c->most;
    return TB_OK;
}

static tb_status make_parts(tb_cache *c, bool *able)
{
    size_t n = c->m->nparts;
    c->past = tb_arena_alloc(&c->arena, n * sizeof *c->past);
    c->at = tb_arena_alloc(&c->arena, n * sizeof *c->at);
    if (!c->past || !c->at)
        return TB_ERR_MEMORY;
    *able = true;
    for (size_t p = 0; p < n && *able; p++)
        TB_TRY(make_part(c, p, able));
    return TB_OK;
}

static void *room_for_all(const tb_cache *c)
{
    size_t n;
    if (!tb_mul(c->width, c->batch, &n) || !tb_mul(n, c->most, &n))
        n = SIZE_MAX; /* refused */
    return tb_alloc(c->m->ctx, n, tb_dtype_size(c->m->dtype));
}

tb_status tb_cache_create(tb_model *m, size_t batch, size_t most, size_t source,
                          tb_cache **out)
{
    bool able = false;
    *out = NULL;
    tb_cache *c = tb_alloc(m->ctx, 1, sizeof *c);
    if (!c)
        return TB_ERR_MEMORY;
    c->m = m;
    c->batch = batch;
    c->most = most;
    c->source = source;
    tb_arena_init(&c->arena, m->ctx);
    tb_status s = make_parts(c, &able);
    if (s == TB_OK && able && !(c->kept = room_for_all(c)))
        s = TB_ERR_MEMORY;
    if (s == TB_OK && able)
        *out = c;
    else
        tb_cache_destroy(c);
    return s;
}

void tb_cache_destroy(tb_cache *c)
{
    if (!c)
        return;
    tb_free(c->m->ctx, c->kept);
    tb_free(c->m->ctx, c->spare);
    tb_free(c->m->ctx, c->room);
    tb_arena_clear(&c->arena);
    tb_free(c->m->ctx, c);
}

/* --- new tokens ------------------------------------------------------------
 */

static tb_status make_room(tb_cache *c, size_t keys)
{
    tb_model *m = c->m;
    size_t most = 0;
    for (size_t p = 0; p < m->nparts; p++) {
        size_t room =
            tb_past_room(&c->past[p], m->bound->plans[m->parts[p].kind], keys);
        most = room > most ? room : most;
    }
    if (most <= c->room_bytes)
        return TB_OK;
    tb_free(m->ctx, c->room);
    c->room_bytes = 0;
    c->room = tb_alloc(m->ctx, most, 1);
    c->room_bytes = c->room ? most : 0;
    return c->room ? TB_OK : TB_ERR_MEMORY;
}

/* One token at a time all values are kept: they are few, and those of the
 * source are computed once. */
static tb_status bind(tb_cache *c, size_t n)
{
    if (n == 1 && c->again)
        return TB_OK;
    TB_TRY(tb_model_bind_growing(c->m, c->batch, n, c->source ? c->source : n));
    return make_room(c, n == 1 ? c->most : c->seen + n);
}

static tb_status feed_part(tb_cache *c, size_t p, const tb_batch *b)
{
    tb_past *past = &c->past[p];
    tb_run r;
    past->seen = c->seen;
    past->again = c->again;
    past->kept = tb_elem_at(c->m->dtype, c->kept, c->at[p]);
    past->room = c->room;
    TB_TRY(tb_model_run(c->m, p, b, &r));
    r.past = past;
    return tb_plan_forward(c->m->ctx, &r);
}

tb_status tb_cache_feed(tb_cache *c, const tb_batch *b, size_t n, bool logits)
{
    tb_model *m = c->m;
    if (n > c->most - c->seen)
        return TB_FAIL(m->ctx, TB_ERR_ARG,
                       "cache: got %zu tokens after %zu, wanted at most %zu", n,
                       c->seen, c->most);
    TB_TRY(bind(c, n));
    for (size_t p = 0; p < m->nparts; p++) {
        bool done = c->again && m->sizes.s.stack == TB_STACKS_BOTH &&
                    tb_model_side(m, p) == TB_SIDE_ENCODER;
        bool asked = logits || p != tb_model_tail(m) || c->past[p].width > 0;
        if (!done && asked) /* attention after the stack keeps keys, too */
            TB_TRY(feed_part(c, p, b));
    }
    c->seen += n;
    c->again = n == 1;
    return TB_OK;
}

size_t tb_cache_seen(const tb_cache *c)
{
    return c->seen;
}

void tb_cache_forget(tb_cache *c)
{
    c->seen = 0;
    c->again = false;
}

/* --- other ways on ---------------------------------------------------------
 */

static bool moves_any(const tb_cache *c, const size_t *from)
{
    for (size_t b = 0; b < c->batch; b++)
        if (from[b] != b)
            return true;
    return false;
}

tb_status tb_cache_pick(tb_cache *c, const size_t *from)
{
    if (!moves_any(c, from))
        return TB_OK;
    if (!c->spare && !(c->spare = room_for_all(c)))
        return TB_ERR_MEMORY;
    for (size_t p = 0; p < c->m->nparts; p++)
        for (size_t b = 0; b < c->batch; b++) {
            c->past[p].seen = c->seen;
            tb_past_copy(&c->past[p], tb_dtype_size(c->m->dtype),
                         tb_elem_at(c->m->dtype, c->kept, c->at[p]), from[b],
                         tb_elem_at(c->m->dtype, c->spare, c->at[p]), b);
        }
    void *kept = c->kept;
    c->kept = c->spare;
    c->spare = kept;
    return TB_OK;
}
