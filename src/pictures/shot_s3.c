/* SPDX-License-Identifier: MIT */
/* S3: why adding gives a free +1 backward. The Jacobian of y = x + F(x) is
 * I + dF/dx, and the gradient comes back by both roads. */
#include "flow/flow_model.h"
#include "pictures/shot_box.h"
#include "pictures/shot_grids.h"
#include "pictures/shot_panels.h"
#include "pictures/shot_stage.h"

enum { STEPS = 12 }; /* h = 1e-1 .. 1e-12 */

typedef struct plus_one {
    shot_box b;            /* with its skip */
    size_t d, j;           /* j: nudged number, from 1; 0: none */
    double nudge, h, *one, /* d x d */
        *jf, *jy, *numeric_f, *numeric_y;
    double error[STEPS], at_h, entry; /* E10 of the curve, at h, and there
                                         entry by entry */
    double *g, *hw, *br, *in; /* d each: cotangent, its parts, their sum */
    double *f, *y, *x_nudged, *y_nudged, *moved;
    double largest, smallest; /* singular values of J */
} plus_one;

/* --- computing ------------------------------------------------------------ */

static tb_status room(tb_shot *s, plus_one *p)
{
    size_t n = p->d * p->d;
    double **grids[] = {&p->one, &p->jf, &p->jy, &p->numeric_f, &p->numeric_y};
    double **lists[] = {&p->g, &p->hw,       &p->br,       &p->in,   &p->f,
                        &p->y, &p->x_nudged, &p->y_nudged, &p->moved};
    for (size_t i = 0; i < TB_LEN(grids); i++)
        if (!(*grids[i] = shot_alloc(s, n, sizeof **grids[i])))
            return TB_ERR_MEMORY;
    for (size_t i = 0; i < TB_LEN(lists); i++)
        if (!(*lists[i] = shot_alloc(s, p->d, sizeof **lists[i])))
            return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        p->one[i] = i % (p->d + 1) == 0;
    return TB_OK;
}

/* E10: largest difference over the largest entry. */
static double relative(const plus_one *p, const double *numeric)
{
    size_t n = p->d * p->d;
    double most = shot_far(p->jy, NULL, n);
    return most > 0 ? shot_far(p->jy, numeric, n) / most : 0;
}

/* E10 entry by entry: |A - N| / (|A| + |N|). */
static double entry_error(const plus_one *p)
{
    double most = 0;
    for (size_t i = 0; i < p->d * p->d; i++) {
        double a = p->jy[i], n = p->numeric_y[i];
        double size = tb_fabs(a) + tb_fabs(n);
        most = tb_max2(most, size > 0 ? tb_fabs(a - n) / size : 0);
    }
    return most;
}

static tb_status derive(tb_shot *s, plus_one *p)
{
    double h[STEPS];
    size_t n = p->d * p->d;
    shot_box alone = p->b;
    alone.skip = false;
    double *all = shot_alloc(s, STEPS * n, sizeof *all);
    if (!all)
        return TB_ERR_MEMORY;
    for (size_t k = 0; k < STEPS; k++)
        h[k] = tb_pow10(-1 - (double)k);
    TB_TRY(shot_box_jacobian(s, &alone, p->jf));
    TB_TRY(shot_box_jacobian(s, &p->b, p->jy));
    TB_TRY(shot_box_differences(s, &p->b, h, STEPS, all));
    TB_TRY(shot_box_differences(s, &p->b, &p->h, 1, p->numeric_y));
    for (size_t k = 0; k < STEPS; k++)
        p->error[k] = relative(p, all + k * n);
    p->at_h = relative(p, p->numeric_y);
    p->entry = entry_error(p);
    for (size_t i = 0; i < n; i++)
        p->numeric_f[i] = p->numeric_y[i] - p->one[i];
    return TB_OK;
}

/* The box at x with `by` added to number j. */
static tb_status moved_by(tb_shot *s, const plus_one *p, double by, double *y)
{
    shot_box b = p->b;
    size_t n = b.tokens * b.d, at = n - b.d + p->j - 1;
    double *all = shot_alloc(s, n, sizeof *all);
    if (!all)
        return TB_ERR_MEMORY;
    memcpy(all, b.all, n * sizeof *all);
    all[at] += by;
    b.all = all;
    b.x = all + n - b.d;
    return shot_box_values(s, &b, NULL, y);
}

static tb_status nudge(tb_shot *s, plus_one *p)
{
    memcpy(p->x_nudged, p->b.x, p->d * sizeof *p->x_nudged);
    if (!p->j)
        return TB_OK;
    p->x_nudged[p->j - 1] += p->nudge;
    TB_TRY(moved_by(s, p, p->nudge, p->moved));
    for (size_t i = 0; i < p->d; i++) {
        p->moved[i] -= p->y[i];
        p->y_nudged[i] = p->y[i] + p->nudge * p->jy[i * p->d + p->j - 1];
    }
    return TB_OK;
}

static tb_status spectrum(tb_shot *s, plus_one *p)
{
    size_t n = p->d * p->d;
    double *rows = shot_alloc(s, n + p->d, sizeof *rows);
    if (!rows)
        return TB_ERR_MEMORY;
    memcpy(rows, p->jy, n * sizeof *rows);
    tb_singular_values(s->ctx, rows, p->d, rows + n);
    p->largest = rows[n];
    p->smallest = rows[n + p->d - 1];
    return TB_OK;
}

static tb_status compute(tb_shot *s, plus_one *p)
{
    TB_TRY(shot_box_read(s, &p->b));
    p->b.skip = true;
    p->d = p->b.d;
    p->j = shot_whole(s, "j") > p->d ? p->d : shot_whole(s, "j");
    p->nudge = shot_num(s, "nudge");
    p->h = shot_num(s, "h");
    TB_TRY(room(s, p));
    TB_TRY(shot_box_values(s, &p->b, p->f, p->y));
    TB_TRY(derive(s, p));
    TB_TRY(nudge(s, p));
    TB_TRY(spectrum(s, p));
    shot_arrow(p->b.seed, p->d, p->g);
    return shot_box_pull(s, &p->b, p->g, p->hw, p->br, p->in);
}

/* --- numbers -------------------------------------------------------------- */

static double cosine(const plus_one *p)
{
    double a = shot_norm(p->hw, p->d), b = shot_norm(p->br, p->d);
    return a > 0 && b > 0 ? shot_dot(p->hw, p->br, p->d) / (a * b) : 0;
}

static void tell(tb_shot *s, const plus_one *p)
{
    double trace = 0, d = (double)p->d;
    for (size_t i = 0; i < p->d; i++)
        trace += p->jy[i * (p->d + 1)];
    shot_tell(s, "E9.out", "gradient at y", shot_norm(p->g, p->d));
    shot_tell(s, "E9.hw", "gradient back by the skip", shot_norm(p->hw, p->d));
    shot_tell(s, "E9.br", "gradient back through F", shot_norm(p->br, p->d));
    shot_tell(s, "E9.cos", "cosine of the two", cosine(p));
    shot_tell(s, "E9.sum", "gradient at x", shot_norm(p->in, p->d));
    shot_tell(s, "E10.h", "step h of the differences", p->h);
    shot_tell(s, "E10.error", "J by differences against J by rule", p->at_h);
    shot_tell(s, "E10.entry", "the same entry by entry, |A-N|/(|A|+|N|)",
              p->entry);
    shot_tell(s, "E11.trace", "trace of J over d", trace / d);
    shot_tell(s, "E11.branch", "size of J - I, Frobenius over sqrt(d)",
              shot_norm(p->jf, p->d * p->d) / tb_sqrt(d));
    shot_tell(s, "sigma.max", "largest singular value of J", p->largest);
    shot_tell(s, "sigma.min", "smallest singular value of J", p->smallest);
    shot_say(s, "Of a gradient of length {E9.out} at y, {E9.hw} comes back by "
                "the skip, whatever F is, and {E9.br} through F; together "
                "{E9.sum} at x.");
    shot_say(s, "The two can cancel: their cosine is {E9.cos} here. \"Never "
                "vanishes\" is about the road, not about the sum: the "
                "singular values of J run from {sigma.max} to {sigma.min}.");
    shot_say(s, "Trace of J over d: {E11.trace}; size of \xE2\x88\x82"
                "F/\xE2\x88\x82x: {E11.branch}. By differences with h = "
                "{E10.h}, J comes out within {E10.error} of its largest entry "
                "(each within {E10.entry} of itself).");
}

/* --- checks --------------------------------------------------------------- */

/* F times 0, by the engine. */
static tb_status check_off(tb_shot *s, const plus_one *p)
{
    shot_box off = p->b;
    size_t n = p->d * p->d;
    off.scale = 0;
    double *a = shot_alloc(s, n + 3 * p->d, sizeof *a);
    if (!a)
        return TB_ERR_MEMORY;
    double *hw = a + n, *br = hw + p->d, *in = br + p->d;
    TB_TRY(shot_box_jacobian(s, &off, a));
    TB_TRY(shot_box_pull(s, &off, p->g, hw, br, in));
    shot_check_that(s, shot_far(a, p->one, n) == 0,
                    "F times 0: J is I, exactly");
    shot_check_that(s, memcmp(in, p->g, p->d * sizeof *in) == 0,
                    "F times 0: the gradient at x is that at y, in every bit");
    return TB_OK;
}

/* Of large numbers attention looks at one token alone: it bends so fast there
 * that no h is small enough, and so no claim is made of one. */
static bool smooth(const plus_one *p)
{
    return p->b.kind != SHOT_BOX_ATTENTION || shot_far(p->b.x, NULL, p->d) <= 4;
}

/* Up and down by h on number j alone, against column j. */
static tb_status check_column(tb_shot *s, const plus_one *p)
{
    double step = p->h * tb_max2(1, tb_fabs(p->b.x[p->j - 1])), far = 0;
    double x = p->b.x[p->j - 1], wide = (x + step) - (x - step);
    double *up = shot_alloc(s, 2 * p->d, sizeof *up), *down = up + p->d;
    if (!up)
        return TB_ERR_MEMORY;
    TB_TRY(moved_by(s, p, step, up));
    TB_TRY(moved_by(s, p, -step, down));
    for (size_t i = 0; i < p->d && wide > 0; i++)
        far = tb_max2(far, tb_fabs((up[i] - down[i]) / wide -
                                   p->jy[i * p->d + p->j - 1]));
    double most = shot_far(p->jy, NULL, p->d * p->d), within = p->at_h;
    if (p->h >= 1e-6 && p->h <= 1e-4 && smooth(p))
        within = tb_min2(within, 1e-7);
    shot_check_that(s, far <= most * within * (1 + 1e-9),
                    "column %zu of J is what nudging x_%zu does, within the "
                    "error of the differences",
                    p->j, p->j);
    return TB_OK;
}

static void check_curve(tb_shot *s, const plus_one *p)
{
    size_t best = 0;
    for (size_t k = 1; k < STEPS; k++)
        best = p->error[k] < p->error[best] ? k : best;
    /* where attention bends; a linear box has no such minimum, relu a kink */
    if (p->b.kind == SHOT_BOX_ATTENTION && p->error[0] > 1e-5 && smooth(p))
        shot_check_that(s, best >= 3 && best <= 5,
                        "differences are closest for an h from 1e-6 to 1e-4");
    if (p->h >= 1e-6 && p->h <= 1e-4 && smooth(p))
        shot_check_that(s, p->at_h <= 1e-7,
                        "J by differences is J by rule, within 1e-7");
}

static tb_status check(tb_shot *s, const plus_one *p)
{
    double far = 0;
    for (size_t i = 0; i < p->d * p->d; i++)
        far = tb_max2(far, tb_fabs(p->jy[i] - (p->one[i] + p->jf[i])));
    shot_check_that(s, far <= 1e-12, "J is I + dF/dx, within 1e-12");
    shot_check_that(s, memcmp(p->hw, p->g, p->d * sizeof *p->g) == 0,
                    "the skip hands the gradient back untouched, in every "
                    "bit");
    far = 0;
    for (size_t i = 0; i < p->d; i++)
        far = tb_max2(far, tb_fabs(p->in[i] - (p->hw[i] + p->br[i])));
    shot_check_that(s, far <= 1e-12, "both roads add up to the gradient at x");
    TB_TRY(check_off(s, p));
    if (p->j)
        TB_TRY(check_column(s, p));
    check_curve(s, p);
    return TB_OK;
}

/* --- panels --------------------------------------------------------------- */

static void stage_panel(tb_shot *s, const plus_one *p)
{
    shot_stage *st = shot_alloc(s, 1, sizeof *st);
    stage_back *back = shot_alloc(s, 1, sizeof *back);
    if (!st || !back)
        return;
    *back = (stage_back){shot_norm(p->g, p->d), shot_norm(p->hw, p->d),
                         shot_norm(p->br, p->d), shot_norm(p->in, p->d)};
    *st = (shot_stage){.title = "The block, forward and backward",
                       .desc = "Two arrows come back from the plus, one along "
                               "the skip, one through the box.",
                       .box = "F",
                       .note = p->b.name,
                       .d = p->d,
                       .x = p->b.x,
                       .y = p->y,
                       .skip = true,
                       .back = back,
                       .x_nudged = p->j ? p->x_nudged : NULL,
                       .y_nudged = p->j ? p->y_nudged : NULL,
                       .nudged = p->j};
    shot_below(s, &shot_stage_face, st);
    static const char *const roles[] = {"grad-hw", "grad-br"};
    size_t n[2];
    shot_drawn(s, &shot_stage_face, st, roles, 2, n);
    shot_check_that(s, n[0] == 1 && n[1] == 1,
                    "drawn: one way back by the skip, one through the box");
}

static void grids_panel(tb_shot *s, const plus_one *p)
{
    bool numeric = shot_choice(s, "J") == 1;
    shot_grids *g = shot_alloc(s, 1, sizeof *g);
    if (!g)
        return;
    *g = (shot_grids){.title = numeric ? "J by differences" : "J by rule",
                      .desc = "The grid I plus the grid of the box is the "
                              "grid J.",
                      .d = p->d,
                      .one = p->one,
                      .f = numeric ? p->numeric_f : p->jf,
                      .j = numeric ? p->numeric_y : p->jy,
                      .column = p->j};
    shot_below(s, &shot_grids_face, g);
    static const char *const roles[] = {"jac", "diag"};
    size_t n[2];
    shot_drawn(s, &shot_grids_face, g, roles, 2, n);
    shot_check_that(s, n[0] == 3 && n[1] == 3 * p->d,
                    "drawn: %zu cells outlined on the diagonal of each grid",
                    n[1] / 3);
}

static void formula_panel(tb_shot *s)
{
    static const shot_word words[] = {
        {.text = "\xE2\x88\x82y/\xE2\x88\x82x =", .bold = true},
        {.text = "I", .tone = TB_TONE_LANE, .bold = true, .id = "term-I"},
        {.text = "(from x itself)", .tone = TB_TONE_LANE},
        {.text = "+", .bold = true},
        {.text = "\xE2\x88\x82"
                 "F/\xE2\x88\x82x",
         .tone = TB_TONE_BOX,
         .bold = true,
         .id = "term-dF"},
        {.text = "(from the box)", .tone = TB_TONE_BOX}};
    static const shot_words_of all = {words, TB_LEN(words)};
    shot_below(s, &shot_words, &all);
}

static void curve_panel(tb_shot *s, const plus_one *p)
{
    tb_chart *c = shot_alloc(s, 1, sizeof *c);
    tb_series *series = shot_alloc(s, 2, sizeof *series);
    double *v = shot_alloc(s, 2 * STEPS + 2, sizeof *v);
    if (!c || !series || !v)
        return;
    memcpy(v, p->error, sizeof p->error);
    v[STEPS] = -tb_log10(p->h);
    v[STEPS + 1] = p->at_h;
    double *x = v + STEPS + 2;
    for (size_t k = 0; k < STEPS; k++)
        x[k] = (double)k + 1;
    series[0] = (tb_series){.label = "largest difference over largest entry",
                            .x = x,
                            .y = v,
                            .n = STEPS,
                            .tone = TB_TONE_TOLL,
                            .marker = TB_MARK_DOT,
                            .role = "error"};
    series[1] = (tb_series){.label = "h now",
                            .x = v + STEPS,
                            .y = v + STEPS + 1,
                            .n = 1,
                            .tone = TB_TONE_BAD,
                            .marker = TB_MARK_RING,
                            .role = "error-now"};
    *c = (tb_chart){.title = "J by differences against J by rule",
                    .x_label = "n, where the step h is 1e-n",
                    .y_label = "error",
                    .series = series,
                    .count = 2,
                    .log_y = true,
                    .width = 430,
                    .height = 300};
    shot_below(s, &shot_chart, c);
}

static void nudge_panel(tb_shot *s, const plus_one *p)
{
    static const tb_column columns[] = {{.head = "i", .align = TB_RIGHT},
                                        {.head = "by J", .align = TB_RIGHT},
                                        {.head = "moved", .align = TB_RIGHT}};
    char by[TB_SHOW_CHARS], text[TB_SHOW_CHARS];
    tb_table *t = shot_alloc(s, 1, sizeof *t);
    const char **cells = shot_alloc(s, 3 * p->d, sizeof *cells);
    if (!t || !cells)
        return;
    for (size_t i = 0; i < p->d; i++) {
        double want = p->nudge * p->jy[i * p->d + p->j - 1];
        cells[3 * i] = shot_text(s, "%zu", i + 1);
        cells[3 * i + 1] = shot_text(s, "%s", tb_show_number(want, text));
        cells[3 * i + 2] =
            shot_text(s, "%s", tb_show_number(p->moved[i], text));
    }
    const char *name = tb_subscript(&s->arena, "x", p->j);
    *t = (tb_table){.caption =
                        shot_text(s, "y when %s moves by %s", name ? name : "x",
                                  tb_show_number(p->nudge, by)),
                    .columns = columns,
                    .n_columns = 3,
                    .cells = cells,
                    .n_rows = p->d};
    shot_beside(s, &shot_table, t);
}

static tb_status build(tb_shot *s)
{
    char hw[TB_SHOW_CHARS], br[TB_SHOW_CHARS], in[TB_SHOW_CHARS];
    plus_one p = {.d = 0};
    TB_TRY(compute(s, &p));
    shot_title(
        s, "Adding gives a free +1 on the way back",
        shot_text(s,
                  "The Jacobian of y = x + F(x) is I plus that of F. Of a "
                  "gradient of length 1 at y, %s comes back by the skip and %s "
                  "through F (%s); %s in all.",
                  tb_show_number(shot_norm(p.hw, p.d), hw),
                  tb_show_number(shot_norm(p.br, p.d), br), p.b.what,
                  tb_show_number(shot_norm(p.in, p.d), in)));
    stage_panel(s, &p);
    grids_panel(s, &p);
    formula_panel(s);
    if (shot_far(p.error, NULL, STEPS) > 0)
        curve_panel(s, &p);
    else
        shot_say(s, "Differences give J exactly, whatever h is.");
    if (p.j)
        nudge_panel(s, &p);
    tell(s, &p);
    return check(s, &p);
}

const shot_row shot_s3 = {
    .name = "S3",
    .about = "the Jacobian of the skip: I + dF/dx, and two roads back",
    .input = {SHOT_INPUT_X("[1,-0.5,0.5,-1]"),
              SHOT_INPUT_D("4"),
              SHOT_INPUT_F("attention"),
              SHOT_INPUT_SCALE(4),
              {"j", "nudged number j (0: none)", TB_SHOT_NUMBER, "2", 0,
               SHOT_LIST_MOST, .step = 1, .whole = true},
              {"nudge", "nudge it by", TB_SHOT_NUMBER, "0.5", -2, 2,
               .step = 0.1},
              {"J", "J by rule, or by differences", TB_SHOT_CHOICE, "symbolic",
               .choices = "symbolic|numeric"},
              {"h", "step h of the differences", TB_SHOT_NUMBER, "1e-5", 1e-12,
               0.1, .step = 1, .log = true},
              SHOT_INPUT_TOKENS,
              SHOT_INPUT_SEED},
    .build = build,
};
