/* SPDX-License-Identifier: MIT */
/* Block diagrams before they are drawn: checks, words, and the level each
 * branch runs on so that no two share a stretch of road. */
#include "pictures/diagram.h"

const char *tb_diagram_foot(const tb_diagram *d)
{
    return d->before ? "embedding" : d->in_label ? d->in_label : "x";
}

size_t tb_diagram_in_block(const tb_diagram *d)
{
    return d->in_block ? d->in_block : d->count;
}

tb_status tb_diagram_check(tb_ctx *ctx, const tb_diagram *d)
{
    if (!d->title)
        return TB_FAIL(ctx, TB_ERR_ARG, "diagram: no title, wanted one");
    if (d->in_block > d->count)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "diagram: %zu items in the block, there are %zu",
                       d->in_block, d->count);
    if (d->before > tb_diagram_in_block(d))
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "diagram: %zu items before the block, it ends at %zu",
                       d->before, tb_diagram_in_block(d));
    for (size_t i = 0; i < d->count; i++) {
        const tb_diagram_item *it = &d->items[i];
        if (it->n && it->part.kind != TB_DIAGRAM_PLUS)
            return TB_FAIL(ctx, TB_ERR_ARG,
                           "diagram: item %zu has branches, wanted a plus", i);
        for (size_t j = 0; j < it->n; j++)
            if (it->branches[j].span > i)
                return TB_FAIL(ctx, TB_ERR_ARG,
                               "diagram: a branch of item %zu starts %zu "
                               "items before it",
                               i, it->branches[j].span);
    }
    return TB_OK;
}

const char *tb_part_label(tb_arena *a, const tb_diagram_part *p)
{
    static const char *const plain[] = {[TB_DIAGRAM_BOX] = "F",
                                        [TB_DIAGRAM_NORM] = "norm",
                                        [TB_DIAGRAM_SCALE] = "c",
                                        [TB_DIAGRAM_GATE] = "g",
                                        [TB_DIAGRAM_PLUS] = "+"};
    const char *label = p->label ? p->label : plain[p->kind];
    bool times = p->kind == TB_DIAGRAM_SCALE || p->kind == TB_DIAGRAM_GATE;
    return times ? tb_arena_printf(a, "\xC3\x97 %s", label) : label;
}

/* --- levels ------------------------------------------------------------- */

static bool overlap(const tb_route *a, const tb_route *b)
{
    return a->from <= b->to && b->from <= a->to;
}

static int lowest_free(const tb_route *r, size_t placed, const tb_route *one)
{
    int level = 1;
    for (size_t i = 0; i < placed; i++)
        if (overlap(&r[i], one) && r[i].level >= level)
            level = r[i].level + 1;
    return level;
}

tb_route *tb_diagram_routes(tb_arena *a, const tb_diagram *d, size_t *count,
                            int *levels)
{
    size_t n = 0, used = 0;
    for (size_t i = 0; i < d->count; i++)
        n += d->items[i].n;
    tb_route *r = tb_arena_alloc(a, (n + 1) * sizeof *r);
    *count = n;
    *levels = 0;
    if (!r)
        return NULL;
    for (size_t span = 0; used < n; span++) /* short ones inside */
        for (size_t i = 0; i < d->count; i++)
            for (size_t j = 0; j < d->items[i].n; j++) {
                const tb_diagram_branch *b = &d->items[i].branches[j];
                if (b->span != span)
                    continue;
                r[used] = (tb_route){.branch = b, .from = i - span, .to = i};
                r[used].level = lowest_free(r, used, &r[used]);
                if (r[used].level > *levels)
                    *levels = r[used].level;
                used++;
            }
    return r;
}

/* --- words -------------------------------------------------------------- */

static void put_branch(tb_buf *b, tb_arena *a, const tb_diagram_branch *br)
{
    if (br->n == 0)
        tb_buf_puts(b, "a further skip");
    for (size_t i = 0; i < br->n; i++) {
        const char *label = tb_part_label(a, &br->parts[i]);
        tb_buf_printf(b, "%s%s", i ? " then " : "", label ? label : "");
    }
}

const char *tb_diagram_describe(tb_arena *a, const tb_diagram *d)
{
    char text[TB_SHOW_CHARS];
    size_t tolls = 0;
    tb_buf b;
    tb_buf_init(&b, a->ctx);
    tb_buf_puts(&b, d->before ? "From the embedding the lane passes "
                              : "The lane passes ");
    for (size_t i = 0; i < d->count; i++) {
        const tb_diagram_item *it = &d->items[i];
        const char *label = tb_part_label(a, &it->part);
        bool plus = it->part.kind == TB_DIAGRAM_PLUS;
        tolls += it->part.kind == TB_DIAGRAM_NORM;
        tb_buf_printf(&b, "%s%s",
                      i && i == d->before ? ", in each block "
                      : i                 ? ", "
                                          : "",
                      plus    ? "an addition"
                      : label ? label
                              : "");
        for (size_t j = 0; j < it->n; j++) {
            tb_buf_puts(&b, j ? " and " : " of ");
            put_branch(&b, a, &it->branches[j]);
        }
    }
    tb_buf_printf(&b, "%s: %zu norm%s on the lane", d->count ? "" : "nothing",
                  tolls, tolls == 1 ? "" : "s");
    if (d->gains)
        tb_buf_printf(&b, "; lane gain at the bottom %s",
                      tb_show_number(d->gains[0], text));
    tb_buf_putc(&b, '.');
    const char *out = b.failed ? NULL : tb_arena_strndup(a, b.data, b.len);
    tb_buf_clear(&b);
    return out;
}
