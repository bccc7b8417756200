/* SPDX-License-Identifier: MIT */
/* N3: positions as turns. One list turned token by token is the table of waves
 * of Vaswani et al. 2017 (arXiv:1706.03762), and its inner products depend on
 * the distance alone, which is why rotary positions (Su et al. 2021,
 * arXiv:2104.09864) turn q and k. */
#include "pictures/shot_panels.h"

enum { MOST_TOKENS = 32, MOST_WIDTH = 32 };

typedef struct turned {
    size_t tokens, width;
    const double *y; /* [tokens, width] */
    double *dot;     /* [tokens, tokens] */
} turned;

/* The same list for every token: ones in the first half (waves), or random. */
static double *one_list(tb_shot *s, const turned *t)
{
    tb_rng r = tb_rng_make((uint64_t)shot_num(s, "seed"), "list");
    bool waves = shot_choice(s, "list") == 0;
    double *x = shot_alloc(s, t->tokens * t->width, sizeof *x);
    for (size_t i = 0; x && i < t->tokens * t->width; i++) {
        size_t k = i % t->width;
        x[i] = waves ? (k < t->width / 2 ? 1 : 0) : tb_rng_normal(r, k);
    }
    return x;
}

static tb_status turn(tb_shot *s, turned *t)
{
    double *x = one_list(s, t);
    size_t n = t->tokens * t->width;
    double *y = shot_alloc(s, n, sizeof *y);
    if (!x || !y)
        return TB_ERR_MEMORY;
    const tb_eval_value sets[] = {{"x", 2, {t->tokens, t->width}, x}};
    tb_eval e = {.text = shot_text(s, "rope(x, base=%g)", shot_num(s, "base")),
                 .sets = sets,
                 .nsets = 1};
    t->y = y;
    return e.text ? shot_eval(s, &e, n, y) : TB_ERR_MEMORY;
}

/* Inner products over the length squared: 1 on the diagonal. */
static tb_status products(tb_shot *s, turned *t)
{
    double length = 0;
    size_t d = t->width;
    t->dot = shot_alloc(s, t->tokens * t->tokens, sizeof *t->dot);
    if (!t->dot)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < d; i++)
        length += t->y[i] * t->y[i];
    for (size_t a = 0; a < t->tokens; a++)
        for (size_t b = 0; b < t->tokens; b++) {
            double sum = 0;
            for (size_t i = 0; i < d; i++)
                sum += t->y[a * d + i] * t->y[b * d + i];
            t->dot[a * t->tokens + b] = sum / length;
        }
    return TB_OK;
}

/* Largest difference within a diagonal. */
static double within(const turned *t)
{
    double worst = 0;
    size_t T = t->tokens;
    for (size_t a = 1; a < T; a++)
        for (size_t b = 1; b < T; b++)
            worst = tb_max2(worst, tb_fabs(t->dot[a * T + b] -
                                           t->dot[(a - 1) * T + b - 1]));
    return worst;
}

static void panels(tb_shot *s, const turned *t)
{
    tb_heat *table = shot_alloc(s, 1, sizeof *table);
    tb_chart *chart = shot_alloc(s, 1, sizeof *chart);
    tb_series *line = shot_alloc(s, 1, sizeof *line);
    if (!table || !chart || !line)
        return;
    *table = (tb_heat){.title = "One list, turned by its position",
                       .rows = t->tokens,
                       .columns = t->width,
                       .values = t->y,
                       .row_label = "position",
                       .column_label = "feature",
                       .value_label = "value",
                       .print_values = TB_PRINT_NEVER,
                       .width = 320};
    *line = (tb_series){.label = "inner product",
                        .y = t->dot,
                        .n = t->tokens,
                        .tone = TB_TONE_TOLL};
    *chart = (tb_chart){.title = "Its inner product with position 0",
                        .x_label = "distance",
                        .y_label = "over its length squared",
                        .series = line,
                        .count = 1,
                        .width = 422,
                        .height = 340};
    shot_below(s, &shot_heat, table);
    shot_beside(s, &shot_chart, chart);
}

static tb_status build(tb_shot *s)
{
    turned t = {.tokens = shot_whole(s, "T"), .width = shot_whole(s, "d")};
    TB_TRY(turn(s, &t));
    TB_TRY(products(s, &t));
    double worst = within(&t);
    shot_tell(s, "one", "inner product at distance 1", t.dot[1]);
    shot_tell(s, "most", "largest distance", (double)t.tokens - 1);
    shot_tell(s, "far", "inner product at the largest distance",
              t.dot[t.tokens - 1]);
    shot_title(s, "Positional encoding: a place is a turn",
               shot_text(s,
                         "%zu positions, width %zu: inner products depend "
                         "on the distance alone.",
                         t.tokens, t.width));
    panels(s, &t);
    shot_say(s,
             "Each pair of features turns at its own speed. Neighbours still "
             "agree to {one}; at distance {most} it is {far}. Added to x the "
             "waves tell attention where a token is; applied to q and k they "
             "tell it how far away another one is.");
    shot_check_that(s, worst < 1e-12,
                    "inner products depend on the distance "
                    "alone");
    shot_check_that(s,
                    tb_fabs(t.dot[0] - 1) < 1e-12 &&
                        tb_fabs(t.dot[t.tokens * t.tokens - 1] - 1) < 1e-12,
                    "a turn keeps the length");
    return TB_OK;
}

const shot_row shot_n3 = {
    .name = "N3",
    .about = "positional encoding: waves and rotations",
    .input = {{"T", "positions", TB_SHOT_NUMBER, "24", 2, MOST_TOKENS,
               .step = 1, .whole = true},
              {"d", "width", TB_SHOT_NUMBER, "16", 2, MOST_WIDTH, .step = 2,
               .whole = true},
              {"base", "base", TB_SHOT_NUMBER, "10000", 2, 1e6, .step = 1,
               .log = true},
              {"list", "list", TB_SHOT_CHOICE, "waves", 0, 0,
               .choices = "waves|random"},
              {"seed", "seed", TB_SHOT_NUMBER, "1", 0, 1e6, .step = 1,
               .whole = true}},
    .build = build,
};
