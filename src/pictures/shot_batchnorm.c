/* SPDX-License-Identifier: MIT */
/* One feature of one token after three norms, as padded tokens join its batch:
 * statistics over all tokens move with them, statistics over the tokens that
 * count and statistics of the token itself do not. */
#include "pictures/shot_parts.h"

/* The first feature is that of case C071: 1 to 5. */
static const double x_own[] = {1, 2, 6, 2, 0, 1, 3, 7, 4, 4, 4, 0, 5, 1, 1};
static const double padding_own[] = {0, 1, 2, 5, 10};
static const double first[] = {1};

enum { MOST = 10000 }; /* padded tokens */

/* Real tokens, then zeros. */
typedef struct padded {
    const tb_eval_value *real;
    size_t tokens, width;
    double *x, *keep;
} padded;

static tb_status pad(tb_shot *s, size_t more, padded *p)
{
    size_t real = p->real->dims[0], n;
    p->width = p->real->dims[1];
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

static const char *describe(tb_shot *s)
{
    const char *text = "";
    for (size_t i = 0; i < s->chart.count && text; i++) {
        const tb_series *l = &s->chart.series[i];
        char from[TB_SHOW_CHARS], to[TB_SHOW_CHARS];
        text = tb_arena_printf(&s->arena,
                               "%s%s: %s with %g padded tokens, %s "
                               "with %g. ",
                               text, l->label, tb_show_number(l->y[0], from),
                               l->x[0], tb_show_number(l->y[l->n - 1], to),
                               l->x[l->n - 1]);
    }
    return text
               ? tb_arena_printf(&s->arena, "%seps 1e-5, gain 1, bias 0.", text)
               : NULL;
}

static tb_status fill(tb_shot *s, tb_series *all, double *counts, size_t at)
{
    padded p = {.real = shot_value(s, "x")};
    size_t n = shot_value(s, "padding")->dims[0];
    double *y = shot_alloc(s, n * TB_LEN(lines), sizeof *y);
    if (!y)
        return TB_ERR_MEMORY;
    for (size_t k = 0; k < n; k++) {
        size_t more;
        TB_TRY(shot_whole(s, "padding", k, 0, MOST, &more));
        counts[k] = (double)more;
        TB_TRY(pad(s, more, &p));
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

static tb_status build(tb_shot *s)
{
    const tb_eval_value *x = shot_value(s, "x");
    size_t token, feature, n = shot_value(s, "padding")->dims[0];
    tb_series *all = shot_alloc(s, TB_LEN(lines), sizeof *all);
    double *counts = shot_alloc(s, n, sizeof *counts);
    if (!all || !counts)
        return TB_ERR_MEMORY;
    TB_TRY(shot_whole(s, "token", 0, 1, x->dims[0], &token));
    TB_TRY(shot_whole(s, "feature", 0, 1, x->dims[1], &feature));
    TB_TRY(fill(s, all, counts, (token - 1) * x->dims[1] + feature - 1));
    s->chart = (tb_chart){
        .title = "The same token after its norm, as padding joins its batch",
        .x_label = "padded tokens beside it",
        .y_label = tb_arena_printf(
            &s->arena, "feature %zu of token %zu, normalised", feature, token),
        .series = all,
        .count = TB_LEN(lines)};
    s->chart.desc = describe(s);
    return s->chart.desc && s->chart.y_label ? TB_OK : TB_ERR_MEMORY;
}

const shot_row shot_batchnorm = {
    .name = "batchnorm",
    .about = "one token after batchnorm and layernorm, as padding grows",
    .inputs = "x padding token feature",
    .input = {{"x", 2, {5, 3}, x_own},
              {"padding", 1, {5}, padding_own},
              {"token", 0, {0}, first},
              {"feature", 0, {0}, first}},
    .build = build,
};
