/* SPDX-License-Identifier: MIT */
/* Rows of two lines that stand beside each other in two files. */
#include "data/feed.h"

/** Two files, line by line. */
typedef struct pair {
    tb_lines source, target;
} pair;

static void pair_clear(tb_ctx *ctx, pair *p)
{
    tb_lines_clear(ctx, &p->source);
    tb_lines_clear(ctx, &p->target);
}

static tb_status pair_split(tb_ctx *ctx, const tb_feed_spec *spec, pair *p)
{
    TB_TRY(tb_lines_split(ctx, spec->text.data, spec->text.n, &p->source));
    TB_TRY(tb_lines_split(ctx, spec->target.data, spec->target.n, &p->target));
    if (p->source.count == p->target.count)
        return TB_OK;
    return TB_FAIL(ctx, TB_ERR_INPUT,
                   "%s has %zu lines and %s has %zu, wanted as many in both",
                   spec->text.name, p->source.count, spec->target.name,
                   p->target.count);
}

static tb_status pair_spans(tb_ctx *ctx, const tb_feed_spec *spec,
                            tb_spans *out)
{
    pair p = {0};
    tb_status s = pair_split(ctx, spec, &p);
    if (s == TB_OK)
        out->span = tb_alloc(ctx, 2 * p.source.count + 1, sizeof *out->span);
    if (out->span != NULL) {
        for (size_t i = 0; i < p.source.count; i++) {
            out->span[2 * i] = p.source.line[i];
            out->span[2 * i + 1] = p.target.line[i];
        }
        out->count = 2 * p.source.count;
    }
    pair_clear(ctx, &p);
    return s == TB_OK && out->span == NULL ? TB_ERR_MEMORY : s;
}

/* Pairs of which neither line is empty: an empty one says that there is no
 * translation. */
static void keep_pairs(tb_feed *f, const pair *p, tb_kept *a, tb_kept *b)
{
    for (size_t i = 0; i < p->source.count; i++) {
        if (p->source.line[i].n == 0 || p->target.line[i].n == 0) {
            f->skipped++;
            continue;
        }
        a->span[f->lines] = p->source.line[i];
        b->span[f->lines] = p->target.line[i];
        a->number[f->lines] = b->number[f->lines] = i + 1;
        f->lines++;
    }
}

static tb_status encode_pairs(tb_feed *f, const tb_feed_spec *spec,
                              const tb_tokenizer *t, const tb_kept *a,
                              const tb_kept *b)
{
    TB_TRY(tb_lines_part(f, spec, "pair of lines with text in both"));
    TB_TRY(tb_side_encode(f, t, a, &f->source));
    TB_TRY(tb_side_encode(f, t, b, &f->target));
    TB_TRY(tb_side_check(f, a, &f->source, "end"));
    TB_TRY(tb_side_check(f, b, &f->target, "start"));
    f->source_time = f->source.longest + 1;
    f->time = f->target.longest + 1;
    const uint64_t sums[] = {tb_side_hash(&f->source, f->lines),
                             tb_side_hash(&f->target, f->lines), f->vocab,
                             f->val};
    f->hash = tb_hash(sums, sizeof sums);
    return TB_OK;
}

static tb_status open_pairs(tb_feed *f, const tb_feed_spec *spec,
                            const tb_tokenizer *t)
{
    pair p = {0};
    tb_kept a = {0}, b = {0};
    tb_status s = pair_split(f->ctx, spec, &p);
    if (s == TB_OK)
        s = tb_kept_room(f->ctx, spec->text.name, p.source.count, &a);
    if (s == TB_OK)
        s = tb_kept_room(f->ctx, spec->target.name, p.source.count, &b);
    if (s == TB_OK) {
        keep_pairs(f, &p, &a, &b);
        s = encode_pairs(f, spec, t, &a, &b);
    }
    tb_kept_clear(f->ctx, &a);
    tb_kept_clear(f->ctx, &b);
    pair_clear(f->ctx, &p);
    return s;
}

/* The targets are the decoder's tokens a place earlier. */
static void fill_pair(const tb_feed *f, tb_split s, size_t place, tb_draw d,
                      const tb_rows *out, size_t at)
{
    size_t i = tb_lines_at(f, s, place), S = f->source_time, T = f->time;
    int32_t end = f->special[TB_SPECIAL_END];
    size_t n = tb_side_length(&f->target, i);
    (void)d;
    tb_lines_put(f, &f->source, i, -1, end, S, out->source + at * S,
                 out->source_keep + at * S);
    tb_lines_put(f, &f->target, i, f->special[TB_SPECIAL_START], -1, T,
                 out->tokens + at * T, out->keep + at * T);
    int32_t *y = out->targets + at * T;
    memcpy(y, f->target.ids.ids + f->target.at[i], n * sizeof *y);
    y[n] = end;
    for (size_t j = n + 1; j < T; j++)
        y[j] = -1;
}

const tb_feed_kind tb_feed_translate = {.name = "translate",
                                        .special = 1u << TB_SPECIAL_PAD |
                                                   1u << TB_SPECIAL_START |
                                                   1u << TB_SPECIAL_END,
                                        .spans = pair_spans,
                                        .open = open_pairs,
                                        .places = tb_lines_places,
                                        .rows = tb_lines_places,
                                        .place = tb_lines_place,
                                        .fill = fill_pair};
