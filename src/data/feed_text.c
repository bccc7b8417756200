/* SPDX-License-Identifier: MIT */
/* Rows of a running text: windows whose tokens are followed (lm) or hidden
 * (mlm). */
#include "data/feed.h"

static tb_status one_span(tb_ctx *ctx, const tb_feed_spec *spec, tb_spans *out)
{
    out->span = tb_alloc(ctx, 1, sizeof *out->span);
    if (out->span == NULL)
        return TB_ERR_MEMORY;
    out->span[0] = (tb_span){spec->text.data, spec->text.n};
    out->count = 1;
    return TB_OK;
}

static tb_status open_text(tb_feed *f, const tb_feed_spec *spec,
                           const tb_tokenizer *t)
{
    const tb_named_text *text = &spec->text;
    const tb_corpus_options opt = {spec->context, spec->val_fraction};
    if (spec->whole && f->task == TB_TASK_LM)
        return TB_FAIL(f->ctx, TB_ERR_ARG,
                       "lm: its rows leave out the end of a text");
    if (spec->whole)
        TB_TRY(tb_corpus_create_whole(f->ctx, text->name, t, text->data,
                                      text->n, spec->context, &f->corpus));
    else
        TB_TRY(tb_corpus_create(f->ctx, text->name, t, text->data, text->n,
                                &opt, &f->corpus));
    size_t n = tb_feed_tokens(f, TB_SPLIT_TRAIN);
    f->time = n < spec->context ? n : spec->context;
    f->hash = tb_corpus_hash(f->corpus);
    return TB_OK;
}

static size_t starts(const tb_feed *f, tb_split s)
{
    return tb_corpus_starts(f->corpus, s);
}

static size_t start_of(const tb_feed *f, size_t i)
{
    return i * f->time;
}

/* --- lm --------------------------------------------------------------------
 */

static size_t windows(const tb_feed *f, tb_split s)
{
    return tb_corpus_windows(f->corpus, s);
}

static void fill_lm(const tb_feed *f, tb_split s, size_t place, tb_draw d,
                    const tb_rows *out, size_t at)
{
    size_t n, T = f->time;
    const int32_t *ids = tb_corpus_tokens(f->corpus, s, &n);
    (void)d;
    memcpy(out->tokens + at * T, ids + place, T * sizeof *ids);
    memcpy(out->targets + at * T, ids + place + 1, T * sizeof *ids);
    if (out->keep != NULL)
        memset(out->keep + at * T, 1, T);
}

const tb_feed_kind tb_feed_lm = {.name = "lm",
                                 .spans = one_span,
                                 .open = open_text,
                                 .places = starts,
                                 .rows = windows,
                                 .place = start_of,
                                 .fill = fill_lm};

/* --- mlm -------------------------------------------------------------------
 */

bool tb_mask_token(tb_draw d, size_t at, int32_t token, size_t plain,
                   int32_t mask, int32_t *shown)
{
    const double chosen = 0.15, masked = 0.8, replaced = 0.9;
    tb_rng r = tb_rng_make(d.seed, "data.mask");
    const uint64_t of_row[] = {r.stream, d.step, d.row};
    r.stream = tb_hash(of_row, sizeof of_row);
    *shown = token;
    if (!(tb_rng_uniform(r, 2 * at) < chosen))
        return false;
    double u = tb_rng_uniform(r, 2 * at + 1);
    if (u < masked)
        *shown = mask;
    else if (u < replaced) /* u is uniform in what is left, too */
        *shown = (int32_t)((u - masked) / (replaced - masked) * (double)plain);
    return true;
}

/* The last window of a part may be shorter. */
static size_t covering(const tb_feed *f, tb_split s)
{
    size_t n = tb_feed_tokens(f, s);
    return f->whole ? (n + f->time - 1) / f->time : n / f->time;
}

static void fill_mlm(const tb_feed *f, tb_split s, size_t place, tb_draw d,
                     const tb_rows *out, size_t at)
{
    size_t n, T = f->time;
    const int32_t *ids = tb_corpus_tokens(f->corpus, s, &n);
    int32_t *x = out->tokens + at * T, *y = out->targets + at * T;
    for (size_t i = 0; i < T; i++) {
        bool in = place + i < n;
        int32_t token = in ? ids[place + i] : f->special[TB_SPECIAL_PAD];
        bool hidden = in && tb_mask_token(d, i, token, f->plain,
                                          f->special[TB_SPECIAL_MASK], &x[i]);
        x[i] = in ? x[i] : token;
        y[i] = hidden ? token : -1;
        out->keep[at * T + i] = in;
    }
}

const tb_feed_kind tb_feed_mlm = {.name = "mlm",
                                  .special = 1u << TB_SPECIAL_PAD |
                                             1u << TB_SPECIAL_MASK,
                                  .spans = one_span,
                                  .open = open_text,
                                  .places = starts,
                                  .rows = covering,
                                  .place = start_of,
                                  .fill = fill_mlm};
