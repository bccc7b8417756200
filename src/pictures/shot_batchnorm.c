/* SPDX-License-Identifier: MIT */
/* One feature of one token after three norms, as padded tokens join its batch:
 * statistics over all tokens move with them, statistics over the tokens that
 * count and statistics of the token itself do not. */
#include "pictures/shot_panels.h"

enum { MOST = 10000 }; /* padded tokens */

/* Real tokens, then zeros. */
typedef struct padded {
    const shot_value *real;
    size_t tokens, width;
    double *x, *keep;
} padded;

static tb_status pad(tb_shot *s, size_t more, padded *p)
{
    size_t real = p->real->rows, n;
    p->width = p->real->n;
    p->tokens = real + more;
    if (!tb_mul(p->tokens, p->width, &n))
        n = SIZE_MAX;
    p->x = shot_alloc(s, n, sizeof *p->x);
    p->keep = shot_alloc(s, p->tokens, sizeof *p->keep);
    if (!p->x || !p->keep)
        return TB_ERR_MEMORY;
    memcpy(p->x, p->real->data, real * p->width * sizeof *p->x);
    for (size_t t = 0; t < p->tokens; t++)
        p->keep[t] = t < real;
    return TB_OK;
}

static tb_status value_of(tb_shot *s, const char *text, const padded *p,
                          size_t at, double *out)
{
    const tb_eval_value sets[] = {
        {"x", 3, {1, p->tokens, p->width}, p->x},
        {"m", 3, {1, p->tokens, 1}, p->keep},
    };
    tb_eval e = {.text = text, .sets = sets, .nsets = 1, .seed = 1};
    tb_eval_result *r;
    e.nsets += strstr(text, "keep") != NULL;
    TB_TRY(tb_eval_run(s->ctx, &e, &r));
    *out = r->y.data[at];
    tb_eval_free(s->ctx, r);
    return TB_OK;
}

static const struct line {
    const char *text, *label;
    tb_tone tone;
    tb_dash dash;
    tb_marker marker;
} lines[] = {
    {"batchnorm(x)", "batchnorm over all tokens", TB_TONE_BAD, TB_DASHED,
     TB_MARK_DOT},
    {"batchnorm(x, keep=m)", "batchnorm over the real tokens", TB_TONE_LANE,
     TB_SOLID, TB_MARK_SQUARE},
    {"layernorm(x)", "layernorm", TB_TONE_TOLL, TB_SOLID, TB_MARK_DIAMOND},
};

static const char *describe(tb_shot *s, const tb_chart *c)
{
    const char *text = "";
    for (size_t i = 0; i < c->count && text; i++) {
        const tb_series *l = &c->series[i];
        char from[TB_SHOW_CHARS], to[TB_SHOW_CHARS];
        text = shot_text(s, "%s%s: %s with %g padded tokens, %s with %g. ",
                         text, l->label, tb_show_number(l->y[0], from), l->x[0],
                         tb_show_number(l->y[l->n - 1], to), l->x[l->n - 1]);
    }
    return text ? shot_text(s, "%seps 1e-5, gain 1, bias 0.", text) : NULL;
}

/* The counts of `padding` from the least to the most. */
static const double *rising(tb_shot *s, size_t *n)
{
    const shot_value *counts = shot_get(s, "padding");
    double *x = shot_alloc(s, counts->n, sizeof *x);
    *n = counts->n;
    for (size_t k = 0; x && k < *n; k++) {
        size_t at = k;
        for (; at && x[at - 1] > counts->data[k]; at--)
            x[at] = x[at - 1];
        x[at] = counts->data[k];
    }
    return x;
}

static tb_status fill(tb_shot *s, tb_series *all, size_t at)
{
    size_t n;
    const double *counts = rising(s, &n);
    padded p = {.real = shot_get(s, "x")};
    double *y = shot_alloc(s, n * TB_LEN(lines), sizeof *y);
    if (!counts || !y)
        return TB_ERR_MEMORY;
    for (size_t k = 0; k < n; k++) {
        TB_TRY(pad(s, (size_t)counts[k], &p));
        for (size_t i = 0; i < TB_LEN(lines); i++)
            TB_TRY(value_of(s, lines[i].text, &p, at, &y[i * n + k]));
    }
    for (size_t i = 0; i < TB_LEN(lines); i++)
        all[i] = (tb_series){.label = lines[i].label,
                             .x = counts,
                             .y = y + i * n,
                             .n = n,
                             .tone = lines[i].tone,
                             .dash = lines[i].dash,
                             .marker = lines[i].marker,
                             .role = "norm"};
    return TB_OK;
}

static void tell(tb_shot *s, const tb_series *all)
{
    size_t last = all->n - 1;
    shot_tell(s, "first", "without padding", all[0].y[0]);
    shot_tell(s, "last", "with the most padding", all[0].y[last]);
    shot_tell(s, "most", "padded tokens", all[0].x[last]);
    shot_say(s, "Statistics over all tokens take this one from {first} to "
                "{last} when {most} padded tokens join the batch.");
}

/* What the picture claims, in every bit. */
static void check(tb_shot *s, const tb_series *all)
{
    bool kept = true, own = true;
    for (size_t k = 0; k < all->n; k++) {
        kept = kept && all[1].y[k] == all[1].y[0];
        own = own && all[2].y[k] == all[2].y[0];
    }
    shot_check_that(s, kept, "masked, padding changes no bit of batchnorm");
    shot_check_that(s, own, "padding changes no bit of layernorm");
}

/* A token or feature that x has. */
static tb_status place_of(tb_shot *s, const char *name, size_t most,
                          size_t *out)
{
    *out = shot_whole(s, name);
    if (*out <= most)
        return TB_OK;
    return TB_FAIL(s->ctx, TB_ERR_INPUT,
                   "set %s: got %zu, wanted a whole number from 1 to %zu", name,
                   *out, most);
}

static tb_status build(tb_shot *s)
{
    const shot_value *x = shot_get(s, "x");
    size_t token, feature;
    tb_series *all = shot_alloc(s, TB_LEN(lines), sizeof *all);
    tb_chart *c = shot_alloc(s, 1, sizeof *c);
    if (!all || !c)
        return TB_ERR_MEMORY;
    TB_TRY(place_of(s, "token", x->rows, &token));
    TB_TRY(place_of(s, "feature", x->n, &feature));
    TB_TRY(fill(s, all, (token - 1) * x->n + feature - 1));
    *c = (tb_chart){.title = "After its norm",
                    .x_label = "padded tokens beside it",
                    .y_label = shot_text(s,
                                         "feature %zu of token %zu, "
                                         "normalised",
                                         feature, token),
                    .series = all,
                    .count = TB_LEN(lines)};
    c->desc = describe(s, c);
    shot_title(s, "The same token after its norm, as padding joins its batch",
               c->desc);
    shot_below(s, &shot_chart, c);
    tell(s, all);
    check(s, all);
    return TB_OK;
}

/* The first feature of x is that of case C071: 1 to 5. */
const shot_row shot_batchnorm = {
    .name = "batchnorm",
    .about = "one token after batchnorm and layernorm, as padding grows",
    .input = {{"x", "one row per token", TB_SHOT_MATRIX,
               "[[1,2,6],[2,0,1],[3,7,4],[4,4,0],[5,1,1]]", -1e6, 1e6,
               .most = 64},
              {"padding", "padded tokens", TB_SHOT_LIST, "[0,1,2,5,10]", 0,
               MOST, .step = 1, .whole = true, .most = 64},
              {"token", "token", TB_SHOT_NUMBER, "1", 1, 64, .step = 1,
               .whole = true},
              {"feature", "feature", TB_SHOT_NUMBER, "1", 1, 64, .step = 1,
               .whole = true}},
    .build = build,
};
