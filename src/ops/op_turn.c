/* SPDX-License-Identifier: MIT */
/* Pair i of a head's first w elements turns by t base^(-2i/w); see op_rope.c.
 * The angles are the same in every head and for all ropes like it: a plan holds
 * them, or one call makes them. */
#include "ops/op_turn.h"

tb_turn tb_turn_of(const double *attr, size_t width)
{
    double w = attr[TB_ATTR_ROPE_ROTARY], base = attr[TB_ATTR_ROPE_BASE];
    tb_turn r = {.heads = (size_t)attr[TB_ATTR_ROPE_HEADS],
                 .interleaved = attr[TB_ATTR_ROPE_INTERLEAVED] != 0,
                 .base = base > 0 ? base : 10000,
                 .start = attr[TB_ATTR_ROPE_START]};
    if (r.heads)
        r.head = width / r.heads;
    r.w = w > 0 ? (size_t)w : r.head;
    return r;
}

bool tb_turn_same(const tb_turn *a, const tb_turn *b)
{
    return a->w == b->w && a->base == b->base && a->start == b->start;
}

size_t tb_turn_bytes(const tb_turn *r, size_t time)
{
    return tb_op_part_bytes(time, r->w);
}

typedef struct filling {
    const tb_turn *r;
    size_t time, pieces;
} filling;

static void fill_piece(void *arg, size_t chunk)
{
    const filling *f = arg;
    const tb_turn *r = f->r;
    size_t from = tb_chunk_at(f->time, f->pieces, chunk);
    size_t to = tb_chunk_at(f->time, f->pieces, chunk + 1);
    for (size_t i = 0; i < r->w / 2; i++) {
        double speed = tb_pow(r->base, -2 * (double)i / (double)r->w);
        for (size_t t = from; t < to; t++) {
            double angle = ((double)t + r->start) * speed;
            double *at = r->angles + t * r->w + i;
            at[0] = tb_cos(angle);
            at[r->w / 2] = tb_sin(angle);
        }
    }
}

/* An angle costs about as much as this many elements. */
enum { COST = 16 };

void tb_turn_fill(const tb_opcall *c, const tb_turn *r, size_t time)
{
    filling f = {.r = r, .time = time};
    f.pieces = tb_op_pieces(time, tb_op_times(r->w, COST));
    tb_parallel(c->ctx, f.pieces, fill_piece, &f);
}
