/* SPDX-License-Identifier: MIT */
/* Normal numbers that were drawn once, for the next model that wants them: a
 * page that moves a control builds the same weights again and again, and half
 * of the time goes to drawing them. They are kept as f64 of variance 1, out of
 * which every init scale and type makes the bits that the kernel gives. */
#include "model/parts.h"

typedef struct tb_draw {
    tb_rng from;
    size_t n;
    double *z;
} tb_draw;

typedef struct tb_draws {
    size_t most, kept; /* numbers */
    size_t count, room;
    tb_draw *of;
} tb_draws;

static void forget(tb_ctx *ctx, tb_draws *d)
{
    for (size_t i = 0; i < d->count; i++)
        tb_free(ctx, d->of[i].z);
    d->count = d->kept = 0;
}

static void drop(tb_ctx *ctx, void *draws)
{
    tb_draws *d = draws;
    forget(ctx, d);
    tb_free(ctx, d->of);
    tb_free(ctx, d);
}

tb_status tb_model_keep_draws(tb_ctx *ctx, size_t most)
{
    tb_draws *d = tb_ctx_slot(ctx, TB_SLOT_DRAWS);
    if (d)
        drop(ctx, d);
    tb_ctx_slot_set(ctx, TB_SLOT_DRAWS, NULL, NULL);
    if (!most)
        return TB_OK;
    d = tb_alloc(ctx, 1, sizeof *d);
    if (!d)
        return TB_ERR_MEMORY;
    d->most = most;
    tb_ctx_slot_set(ctx, TB_SLOT_DRAWS, d, drop);
    return TB_OK;
}

static bool room_for_one(tb_ctx *ctx, tb_draws *d)
{
    size_t room = d->room ? 2 * d->room : 64;
    if (d->count < d->room)
        return true;
    tb_draw *of =
        tb_realloc(ctx, d->of, d->room * sizeof *of, room * sizeof *of);
    if (!of)
        return false;
    d->of = of;
    d->room = room;
    return true;
}

/* Without memory they are drawn where they are wanted: no error. */
static const double *draw(tb_ctx *ctx, tb_draws *d, tb_rng from, size_t n)
{
    double *z = room_for_one(ctx, d) ? tb_alloc(ctx, n, sizeof *z) : NULL;
    if (!z) {
        tb_error_clear(ctx);
        return NULL;
    }
    tb_kern_get(ctx, TB_F64)->normal(from, 0, n, 1, z);
    d->of[d->count++] = (tb_draw){from, n, z};
    d->kept += n;
    return z;
}

const double *tb_draws_normal(tb_ctx *ctx, tb_rng from, size_t n)
{
    tb_draws *d = tb_ctx_slot(ctx, TB_SLOT_DRAWS);
    if (!d || n > d->most)
        return NULL;
    for (size_t i = 0; i < d->count; i++) {
        const tb_draw *one = &d->of[i];
        if (one->from.seed == from.seed && one->from.stream == from.stream &&
            one->n >= n)
            return one->z;
    }
    if (d->kept + n > d->most)
        forget(ctx, d);
    return draw(ctx, d, from, n);
}
