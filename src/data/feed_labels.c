/* SPDX-License-Identifier: MIT */
/* Rows of a line and its label. */
#include "checkpoint/utf8.h"
#include "data/feed.h"

enum { MOST_LABELS = 4096 }; /* more are a mistake, and slow to sort */

/** A file of LABEL TAB text. */
typedef struct labelled {
    tb_lines lines;
    tb_span *label; /* of the tb_kept ones */
    tb_kept text;
    size_t count;
} labelled;

static void labelled_clear(tb_ctx *ctx, labelled *l)
{
    tb_lines_clear(ctx, &l->lines);
    tb_free(ctx, l->label);
    tb_kept_clear(ctx, &l->text);
}

static tb_status labelled_line(tb_ctx *ctx, const char *name, size_t number,
                               tb_span line, labelled *l)
{
    const char *tab = memchr(line.data, '\t', line.n);
    size_t n = tab == NULL ? 0 : (size_t)(tab - line.data);
    if (tab == NULL || n == 0)
        return TB_FAIL(ctx, TB_ERR_INPUT,
                       "%s: line %zu: got no %s, wanted LABEL TAB text", name,
                       number, tab == NULL ? "TAB" : "label");
    if (!tb_utf8_valid(line.data, n) || memchr(line.data, 0, n) != NULL)
        return TB_FAIL(ctx, TB_ERR_INPUT,
                       "%s: line %zu: the label is not a text in UTF-8", name,
                       number);
    l->label[l->count] = (tb_span){line.data, n};
    l->text.span[l->count] = (tb_span){tab + 1, line.n - n - 1};
    l->text.number[l->count++] = number;
    return TB_OK;
}

static tb_status labelled_split(tb_ctx *ctx, const tb_feed_spec *spec,
                                labelled *l)
{
    const char *name = spec->text.name;
    TB_TRY(tb_lines_split(ctx, spec->text.data, spec->text.n, &l->lines));
    TB_TRY(tb_kept_room(ctx, name, l->lines.count, &l->text));
    l->label = tb_alloc(ctx, l->lines.count + 1, sizeof *l->label);
    if (l->label == NULL)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < l->lines.count; i++)
        if (l->lines.line[i].n > 0)
            TB_TRY(labelled_line(ctx, name, i + 1, l->lines.line[i], l));
    return TB_OK;
}

static tb_status labelled_spans(tb_ctx *ctx, const tb_feed_spec *spec,
                                tb_spans *out)
{
    labelled l = {0};
    tb_status s = labelled_split(ctx, spec, &l);
    if (s == TB_OK) {
        *out = (tb_spans){l.text.span, l.count};
        l.text.span = NULL;
    }
    labelled_clear(ctx, &l);
    return s;
}

static int compare(const tb_span *a, const tb_span *b)
{
    size_t n = a->n < b->n ? a->n : b->n;
    int order = memcmp(a->data, b->data, n);
    return order != 0 ? order : (a->n > b->n) - (a->n < b->n);
}

/* Where `label` stands or would stand among n sorted ones. */
static size_t label_slot(const tb_span *sorted, size_t n, const tb_span *label)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (compare(&sorted[mid], label) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static tb_status sort_labels(tb_feed *f, const labelled *l, tb_span *sorted)
{
    for (size_t i = 0; i < l->count; i++) {
        size_t at = label_slot(sorted, f->nlabels, &l->label[i]);
        if (at < f->nlabels && compare(&sorted[at], &l->label[i]) == 0)
            continue;
        if (f->nlabels == MOST_LABELS)
            return TB_FAIL(f->ctx, TB_ERR_INPUT,
                           "%s: line %zu: got more than %d different labels",
                           l->text.name, l->text.number[i], (int)MOST_LABELS);
        memmove(sorted + at + 1, sorted + at,
                (f->nlabels++ - at) * sizeof *sorted);
        sorted[at] = l->label[i];
    }
    return TB_OK;
}

/* Labels as strings of the feed's own. */
static tb_status own_labels(tb_feed *f, const tb_span *label, size_t n)
{
    const char **names = tb_arena_alloc(&f->arena, (n + 1) * sizeof *names);
    if (names == NULL)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        if (!(names[i] = tb_arena_printf(&f->arena, "%.*s", (int)label[i].n,
                                         label[i].data)))
            return TB_ERR_MEMORY;
    f->labels = names;
    f->nlabels = n;
    return TB_OK;
}

/* The distinct labels of the file, sorted as bytes; or those of a model. */
static tb_status find_labels(tb_feed *f, const tb_feed_spec *spec,
                             const labelled *l, tb_span *sorted)
{
    f->nlabels = spec->nlabels;
    for (size_t i = 0; i < spec->nlabels; i++)
        sorted[i] = (tb_span){spec->labels[i], strlen(spec->labels[i])};
    if (!spec->labels)
        TB_TRY(sort_labels(f, l, sorted));
    return own_labels(f, sorted, f->nlabels);
}

static tb_status classes(tb_feed *f, const labelled *l, const tb_span *sorted)
{
    f->label = tb_alloc(f->ctx, l->count + 1, sizeof *f->label);
    if (f->label == NULL)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < l->count; i++) {
        const tb_span *s = &l->label[i];
        size_t at = label_slot(sorted, f->nlabels, s);
        f->label[i] = (int32_t)at;
        if (at == f->nlabels || compare(&sorted[at], s) != 0)
            return TB_FAIL(f->ctx, TB_ERR_INPUT,
                           "%s: line %zu: label \"%.*s\" is none of the "
                           "model's %zu",
                           l->text.name, l->text.number[i],
                           s->n < 100 ? (int)s->n : 100, s->data, f->nlabels);
    }
    return TB_OK;
}

static tb_status label_lines(tb_feed *f, const tb_feed_spec *spec,
                             const labelled *l)
{
    size_t room = spec->nlabels > MOST_LABELS ? spec->nlabels : MOST_LABELS;
    tb_span *sorted = tb_alloc(f->ctx, room + 1, sizeof *sorted);
    if (sorted == NULL)
        return TB_ERR_MEMORY;
    tb_status s = find_labels(f, spec, l, sorted);
    if (s == TB_OK && f->nlabels < 2)
        s = TB_FAIL(f->ctx, TB_ERR_INPUT,
                    "%s: got 1 label (%s), wanted at least 2 different ones",
                    spec->text.name, f->labels[0]);
    if (s == TB_OK)
        s = classes(f, l, sorted);
    tb_free(f->ctx, sorted);
    return s;
}

static uint64_t labelled_hash(const tb_feed *f)
{
    uint64_t names = 0;
    for (size_t i = 0; i < f->nlabels; i++) {
        const uint64_t sums[] = {names,
                                 tb_hash(f->labels[i], strlen(f->labels[i]))};
        names = tb_hash(sums, sizeof sums);
    }
    const uint64_t sums[] = {tb_side_hash(&f->target, f->lines),
                             tb_hash(f->label, f->lines * sizeof *f->label),
                             names, f->vocab, f->val};
    return tb_hash(sums, sizeof sums);
}

static tb_status encode_labelled(tb_feed *f, const tb_feed_spec *spec,
                                 const tb_tokenizer *t, const labelled *l)
{
    f->lines = l->count;
    f->skipped = l->lines.count - l->count;
    TB_TRY(tb_lines_part(f, spec, "line of LABEL TAB text"));
    TB_TRY(label_lines(f, spec, l));
    TB_TRY(tb_side_encode(f, t, &l->text, &f->target));
    TB_TRY(tb_side_check(f, &l->text, &f->target, "start"));
    f->time = f->target.longest + 1;
    f->hash = labelled_hash(f);
    return TB_OK;
}

static tb_status open_labelled(tb_feed *f, const tb_feed_spec *spec,
                               const tb_tokenizer *t)
{
    labelled l = {0};
    tb_status s = labelled_split(f->ctx, spec, &l);
    if (s == TB_OK)
        s = encode_labelled(f, spec, t, &l);
    labelled_clear(f->ctx, &l);
    return s;
}

static void fill_labelled(const tb_feed *f, tb_split s, size_t place, tb_draw d,
                          const tb_rows *out, size_t at)
{
    size_t i = tb_lines_at(f, s, place), T = f->time;
    (void)d;
    tb_lines_put(f, &f->target, i, f->special[TB_SPECIAL_START], -1, T,
                 out->tokens + at * T, out->keep + at * T);
    for (size_t j = 0; j < T; j++)
        out->targets[at * T + j] = j == 0 ? f->label[i] : -1;
}

const tb_feed_kind tb_feed_classify = {.name = "classify",
                                       .special = 1u << TB_SPECIAL_PAD |
                                                  1u << TB_SPECIAL_START,
                                       .spans = labelled_spans,
                                       .open = open_labelled,
                                       .places = tb_lines_places,
                                       .rows = tb_lines_places,
                                       .place = tb_lines_place,
                                       .fill = fill_labelled};
