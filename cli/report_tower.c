/* SPDX-License-Identifier: MIT */
/* The one picture of a measured stack: its tower. */
#include "report_parts.h"

#include <math.h>
#include <string.h>

enum {
    AS_SUBLAYERS = 48, /* floors: so many, each a sublayer */
    MOST_FLOORS = 96   /* else blocks, and several where these are more */
};

/* Rows of one block. */
static size_t rows_per_block(const tb_flow_row *rows, size_t n)
{
    size_t same = 1;
    while (1 + same < n && rows[1 + same].layer == rows[1].layer)
        same++;
    return same;
}

/* Sublayers of a drawn floor: always whole blocks, if not one alone. */
static size_t rows_per_floor(const tb_flow_row *rows, size_t n)
{
    size_t block = rows_per_block(rows, n), by = block;
    if (n - 1 <= AS_SUBLAYERS)
        return 1;
    while ((n - 1 + by - 1) / by > MOST_FLOORS)
        by += block;
    return by;
}

/* Norms inside the branches of row k, and the gain of the last of them. */
static size_t branch_norms(const tb_flow *f, size_t k, double *toll)
{
    size_t found = 0;
    for (size_t i = 0; i < f->nnorms; i++)
        if (f->norms[i].k == k && f->norms[i].layer && !f->norms[i].lane) {
            *toll = f->norms[i].toll;
            found++;
        }
    return found;
}

static const char *floor_name(pool *p, const tb_flow_row *first,
                              const tb_flow_row *last)
{
    if (first == last)
        return first->name;
    if (first->layer == last->layer)
        return pool_text(p, "block %zu", first->layer);
    return pool_text(p, "blocks %zu-%zu", first->layer, last->layer);
}

/* Of the rows from..to: what stands on the lane multiplies; of norms inside
 * branches only a single one has a toll to tell. */
static tb_tower_floor floor_of(pool *p, const tb_flow *f,
                               const tb_flow_row *from, const tb_flow_row *to)
{
    tb_tower_floor out = {
        .name = floor_name(p, from, to), .k = to->k, .toll = (double)NAN};
    double lane = 1, branch = (double)NAN;
    size_t inside = 0;
    for (const tb_flow_row *r = from; r <= to; r++) {
        out.on_lane = out.on_lane || r->norms > 0;
        out.cut = out.cut || r->local_lane == 0;
        lane *= r->norms ? r->toll : 1;
        inside += branch_norms(f, r->k, &branch);
    }
    out.on_branch = inside > 0;
    if (out.on_lane)
        out.toll = lane;
    else if (inside == 1)
        out.toll = branch;
    return out;
}

/* `block`: rows of one. */
static const char *note_of(pool *p, size_t by, size_t block)
{
    if (by == 1)
        return block == 1 ? "A floor is a block." : "A floor is a sublayer.";
    if (by == block)
        return pool_text(p, "A floor is a block of %zu sublayers.", by);
    return pool_text(p, "A floor is %zu blocks.", by / block);
}

/* False where there is nothing to draw. */
static bool tower_of(pool *p, const report_flow *run, const tb_flow_stack *s,
                     tb_tower *out)
{
    const tb_flow_row *rows = run->flow->rows + s->first;
    if (s->nrows < 2)
        return false;
    size_t by = rows_per_floor(rows, s->nrows);
    size_t n = (s->nrows - 2) / by + 1;
    tb_tower_floor *floors = pool_get(p, n, sizeof *floors);
    double *lane = pool_get(p, n + 1, sizeof *lane);
    double *total = pool_get(p, n + 1, sizeof *total);
    if (!floors || !lane || !total)
        return false;
    for (size_t i = 0; i <= n; i++) {
        size_t k = i * by < s->nrows ? i * by : s->nrows - 1;
        lane[i] = rows[k].lane;
        total[i] = rows[k].total;
        if (i > 0)
            floors[i - 1] =
                floor_of(p, run->flow, &rows[(i - 1) * by + 1], &rows[k]);
    }
    *out = (tb_tower){.title = pool_text(p, "%s%s%s: lane and total",
                                         run->label, s->role ? ", " : "",
                                         s->role ? s->role : ""),
                      .floors = floors,
                      .n = n,
                      .k = rows[0].k,
                      .lane = lane,
                      .total = total,
                      .exit = s->has_final,
                      .exit_toll = s->final_toll,
                      .note = note_of(p, by, rows_per_block(rows, s->nrows))};
    return !p->failed;
}

void report_tower(report_sink *s, pool *p, const report_flow *f)
{
    for (size_t i = 0; i < f->flow->nstacks; i++) {
        tb_tower t;
        if (tower_of(p, f, &f->flow->stacks[i], &t))
            sink_tower(s, &t, NULL);
    }
}
