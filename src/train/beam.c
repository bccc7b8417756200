/* SPDX-License-Identifier: MIT */
/* Beam search with the length penalty of Wu et al. 2016, arXiv:1609.08144, eq.
 * 14: of all hypotheses that the live ones can become, as many go on as there
 * were; one that ends leaves the beam and makes it narrower. */
#include "train/translate.h"

typedef struct candidate {
    double score;
    size_t row, id;
} candidate;

typedef struct search {
    tb_translator *w;
    double penalty;
    size_t width;    /* hypotheses that may go on: beam less those ended */
    size_t live;     /* rows 0 .. live-1 do */
    candidate *best; /* [width + 1], likeliest first */
    size_t nbest;
    int32_t *next;  /* texts of the coming step */
    double *scores; /* theirs, */
    size_t *from;   /* and the rows that they go on from */
    int32_t *text;  /* of the best that has ended */
    size_t said;
    double score, value; /* its sum of logarithms; after the penalty */
    bool any;
} search;

static double value_of(const search *s, double score, size_t tokens)
{
    return score / tb_pow((5 + (double)tokens) / 6, s->penalty);
}

/* Into the list of the best `width`; of equals the earlier one stays before. */
static void offer(search *s, candidate c)
{
    size_t at = s->nbest;
    while (at > 0 && s->best[at - 1].score < c.score) {
        s->best[at] = s->best[at - 1];
        at--;
    }
    s->best[at] = c;
    if (s->nbest < s->width)
        s->nbest++;
}

static tb_status gather(search *s, size_t seen)
{
    tb_translator *w = s->w;
    s->nbest = 0;
    for (size_t r = 0; r < s->live; r++) {
        size_t place = tb_translator_place(w, r, seen);
        double lse;
        TB_TRY(tb_translator_lse(w, place, &lse));
        for (size_t i = 0; i < w->vocab; i++)
            if (tb_translator_may(w, i))
                offer(s, (candidate){w->score[r] +
                                         tb_translator_logit(w, place, i) - lse,
                                     r, i});
    }
    return TB_OK;
}

/* The first `count` tokens of a row are a translation of this score. */
static void keep(search *s, size_t row, size_t count, double score, bool ended)
{
    double value = value_of(s, score, count + ended);
    if (s->any && !(value > s->value))
        return;
    s->any = true;
    s->value = value;
    s->score = score;
    s->said = count;
    memcpy(s->text, tb_translator_text(s->w, row),
           (count + 1) * sizeof *s->text);
}

/* The best become the rows of the next step, or have ended. */
static tb_status advance(search *s, size_t seen)
{
    tb_translator *w = s->w;
    size_t size = w->context + 1, live = 0;
    for (size_t i = 0; i < s->nbest; i++) {
        const candidate *c = &s->best[i];
        if (c->id == (size_t)w->end) {
            keep(s, c->row, seen - 1, c->score, true);
            s->width--;
            continue;
        }
        memcpy(s->next + live * size, tb_translator_text(w, c->row),
               seen * sizeof *s->next);
        s->next[live * size + seen] = (int32_t)c->id;
        s->from[live] = c->row;
        s->scores[live++] = c->score;
    }
    s->live = live;
    memcpy(w->text, s->next, live * size * sizeof *w->text);
    memcpy(w->score, s->scores, live * sizeof *w->score);
    for (size_t r = 0; r < w->rows; r++)
        w->said[r] = r < live ? seen : 0;
    for (size_t r = live; r < w->rows; r++)
        s->from[r] = r; /* ride along */
    return w->cache ? tb_cache_pick(w->cache, s->from) : TB_OK;
}

static tb_status look(search *s)
{
    tb_translator *w = s->w;
    for (size_t seen = 1; seen <= w->context && s->live; seen++) {
        if (tb_ctx_interrupted(w->m->ctx))
            return TB_FAIL(w->m->ctx, TB_INTERRUPTED, "translate: interrupted");
        TB_TRY(tb_translator_pass(w, seen));
        TB_TRY(gather(s, seen));
        TB_TRY(advance(s, seen));
    }
    w->ended[0] = s->any;
    for (size_t r = 0; r < s->live && !w->ended[0]; r++)
        keep(s, r, w->context, w->score[r], false);
    memcpy(w->text, s->text, (s->said + 1) * sizeof *w->text);
    w->said[0] = s->said;
    w->score[0] = s->score;
    return TB_OK;
}

/* The first step has one row; it may become as many as the beam is wide. */
tb_status tb_beam_line(tb_translator *w, size_t beam, double penalty)
{
    tb_ctx *ctx = w->m->ctx;
    size_t size = w->context + 1;
    search s = {.w = w, .penalty = penalty, .width = beam, .live = 1};
    s.best = tb_alloc(ctx, beam + 1, sizeof *s.best);
    s.next = tb_alloc(ctx, beam * size, sizeof *s.next);
    s.scores = tb_alloc(ctx, beam, sizeof *s.scores);
    s.text = tb_alloc(ctx, size, sizeof *s.text);
    s.from = tb_alloc(ctx, beam, sizeof *s.from);
    tb_status status = TB_ERR_MEMORY;
    if (s.best && s.next && s.scores && s.text && s.from)
        status = look(&s);
    tb_free(ctx, s.best);
    tb_free(ctx, s.next);
    tb_free(ctx, s.scores);
    tb_free(ctx, s.text);
    tb_free(ctx, s.from);
    return status;
}
