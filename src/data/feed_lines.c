/* SPDX-License-Identifier: MIT */
/* What the feeds of lines share: lines as tokens, and rows of a line, special
 * tokens and padding. */
#include "data/feed.h"

/* --- lines as tokens -------------------------------------------------------
 */

tb_status tb_kept_room(tb_ctx *ctx, const char *name, size_t n, tb_kept *out)
{
    out->name = name;
    out->span = tb_alloc(ctx, n + 1, sizeof *out->span);
    out->number = tb_alloc(ctx, n + 1, sizeof *out->number);
    return out->span && out->number ? TB_OK : TB_ERR_MEMORY;
}

void tb_kept_clear(tb_ctx *ctx, tb_kept *k)
{
    tb_free(ctx, k->span);
    tb_free(ctx, k->number);
}

enum { WHAT = 300 };

static tb_status encode_line(tb_feed *f, const tb_tokenizer *t,
                             const tb_kept *k, size_t i, tb_side *s)
{
    char what[WHAT];
    tb_tokens line;
    tb_format(what, sizeof what, "%.250s: line %zu", k->name, k->number[i]);
    TB_TRY(tb_tokenizer_encode(f->ctx, t, what, k->span[i].data, k->span[i].n,
                               &line));
    if (line.count > 0)
        memcpy(s->ids.ids + s->ids.count, line.ids,
               line.count * sizeof *line.ids);
    s->ids.count += line.count;
    s->at[i + 1] = s->ids.count;
    s->longest = line.count > s->longest ? line.count : s->longest;
    tb_tokens_clear(f->ctx, &line);
    return TB_OK;
}

/* No token of a text is shorter than a byte. */
tb_status tb_side_encode(tb_feed *f, const tb_tokenizer *t, const tb_kept *k,
                         tb_side *s)
{
    size_t bytes = 0;
    for (size_t i = 0; i < f->lines; i++)
        bytes += k->span[i].n;
    TB_TRY(tb_tokens_room(f->ctx, bytes + 1, &s->ids));
    s->at = tb_alloc(f->ctx, f->lines + 1, sizeof *s->at);
    if (s->at == NULL)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < f->lines; i++)
        TB_TRY(encode_line(f, t, k, i, s));
    return TB_OK;
}

size_t tb_side_length(const tb_side *s, size_t i)
{
    return s->at[i + 1] - s->at[i];
}

/* A row holds one special token beside the line. */
tb_status tb_side_check(const tb_feed *f, const tb_kept *k, const tb_side *s,
                        const char *special)
{
    size_t most = f->context - 1, first = f->lines, many = 0;
    for (size_t i = f->lines; i-- > 0;)
        if (tb_side_length(s, i) > most) {
            first = i;
            many++;
        }
    if (many == 0)
        return TB_OK;
    return TB_FAIL(f->ctx, TB_ERR_INPUT,
                   "%s: line %zu: got %zu tokens, wanted at most %zu (context "
                   "%zu and the %s token); %zu of %zu lines are too long, a "
                   "context of %zu would hold them",
                   k->name, k->number[first], tb_side_length(s, first), most,
                   f->context, special, many, f->lines, s->longest + 1);
}

tb_status tb_lines_part(tb_feed *f, const tb_feed_spec *spec, const char *what)
{
    if (f->lines == 0)
        return TB_FAIL(f->ctx, TB_ERR_INPUT, "%s: got no %s", spec->text.name,
                       what);
    f->val = (size_t)((double)f->lines * spec->val_fraction);
    return TB_OK;
}

uint64_t tb_side_hash(const tb_side *s, size_t lines)
{
    const uint64_t sums[] = {
        tb_hash(s->ids.ids, s->ids.count * sizeof *s->ids.ids),
        tb_hash(s->at, (lines + 1) * sizeof *s->at)};
    return tb_hash(sums, sizeof sums);
}

/* --- rows ------------------------------------------------------------------
 */

size_t tb_lines_places(const tb_feed *f, tb_split s)
{
    return tb_feed_lines(f, s);
}

size_t tb_lines_place(const tb_feed *f, size_t i)
{
    (void)f;
    return i;
}

size_t tb_lines_at(const tb_feed *f, tb_split s, size_t place)
{
    return s == TB_SPLIT_VAL ? f->lines - f->val + place : place;
}

/* `before`, the line, `after` (either absent if < 0), padding. */
void tb_lines_put(const tb_feed *f, const tb_side *s, size_t i, int32_t before,
                  int32_t after, size_t time, int32_t *x, unsigned char *keep)
{
    size_t n = tb_side_length(s, i), at = 0;
    if (before >= 0)
        x[at++] = before;
    memcpy(x + at, s->ids.ids + s->at[i], n * sizeof *x);
    at += n;
    if (after >= 0)
        x[at++] = after;
    for (size_t j = 0; j < time; j++)
        keep[j] = j < at;
    for (; at < time; at++)
        x[at] = f->special[TB_SPECIAL_PAD];
}
