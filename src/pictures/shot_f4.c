/* SPDX-License-Identifier: MIT */
/* F4: the mean is where the list balances; the variance is the mean of the
 * squares on the deviations, and the spread the side of that mean square. */
#include "pictures/shot_box.h"
#include "pictures/shot_columns.h"
#include "pictures/shot_norm.h"
#include "pictures/shot_panels.h"

typedef struct balance {
    const char *title, *desc;
    size_t d, over; /* over: what the squares are divided by */
    const double *x, *deviation, *square;
    double mu, sum, squares, var, sigma;
} balance;

/* --- scene ---------------------------------------------------------------- */

enum {
    MARGIN = 14,
    WIDE = 760,
    WEIGHT = 22,  /* px of a weight */
    TALLEST = 150 /* px of a square */
};

typedef struct layout {
    tb_scene *s;
    const balance *b;
    tb_axis axis;
    double at[SHOT_LIST_MOST][2]; /* middle and bottom of weight i, the bottom
                                     above the beam */
    double slot[SHOT_LIST_MOST];  /* px that square i takes */
    double unit;                  /* px of a distance of 1 */
    double beam, squares;         /* y: of the beam, under the squares */
    bool turns; /* numbers under the squares stand on two lines by turns */
} layout;

/* --- places --------------------------------------------------------------- */

static void fit_axis(layout *l)
{
    const balance *b = l->b;
    double lo = b->x[0], hi = lo;
    for (size_t i = 0; i < b->d; i++) {
        lo = tb_min2(lo, b->x[i]);
        hi = tb_max2(hi, b->x[i]);
    }
    double flat = hi > lo ? 0 : 1;
    tb_axis_fit(&l->axis, false, lo - flat, hi + flat, false);
    l->axis.p_lo = MARGIN + 30;
    l->axis.p_hi = WIDE - MARGIN - 30;
}

/* Weights are stacked where they would overlap; px of the highest. */
static double stack(layout *l)
{
    double most = 0;
    for (size_t i = 0; i < l->b->d; i++) {
        double x = tb_axis_px(&l->axis, l->b->x[i]), up = 0;
        for (size_t k = 0; k < i; k++)
            if (tb_fabs(l->at[k][0] - x) < WEIGHT && l->at[k][1] >= up)
                up = l->at[k][1] + WEIGHT;
        l->at[i][0] = x;
        l->at[i][1] = up;
        most = tb_max2(most, up + WEIGHT);
    }
    return most;
}

static double text_room(double v)
{
    char text[TB_SHOW_CHARS];
    return tb_max2(26, tb_text_width(tb_show_number(v, text), 12, true) + 4);
}

/* Px of all squares and their mean at this unit. Numbers on two lines by turns
 * need little more than half the room. */
static double fill_slots(layout *l)
{
    const balance *b = l->b;
    double room = 60 + tb_max2(l->unit * b->sigma, text_room(b->var));
    for (size_t i = 0; i < b->d; i++) {
        double text = text_room(b->square[i]);
        l->slot[i] = tb_max2(l->unit * tb_fabs(b->deviation[i]),
                             l->turns ? tb_max2(26, 0.6 * text) : text);
        room += l->slot[i] + 6;
    }
    return room;
}

/* The largest unit with which they fit in a row, on one line of numbers or, if
 * those alone are too wide, on two; px of the tallest. */
static double fit_squares(layout *l)
{
    const balance *b = l->b;
    double most = b->sigma;
    for (size_t i = 0; i < b->d; i++)
        most = tb_max2(most, tb_fabs(b->deviation[i]));
    for (int lines = 1; lines <= 2; lines++) {
        l->turns = lines == 2;
        for (l->unit = most > 0 ? TALLEST / most : 1;; l->unit *= 0.95) {
            if (fill_slots(l) <= WIDE - 2 * MARGIN)
                return l->unit * most;
            if (l->unit * most < 4)
                break;
        }
    }
    return l->unit * most;
}

/* --- drawing -------------------------------------------------------------- */

static void weights(layout *l)
{
    tb_arena *a = &l->s->arena;
    for (size_t i = 0; i < l->b->d; i++) {
        char text[TB_SHOW_CHARS];
        double x = l->at[i][0], y = l->beam - l->at[i][1];
        const char *name = tb_subscript(a, "x", i + 1);
        tb_style st = {.role = "bar",
                       .id = tb_arena_printf(a, "weight-%zu", i + 1),
                       .title =
                           tb_arena_printf(a, "%s = %s", name ? name : "",
                                           tb_show_number(l->b->x[i], text)),
                       .fill = TB_TONE_IN_SOFT,
                       .stroke = TB_TONE_IN,
                       .line = 1.5,
                       .round = 3};
        tb_style label = {.role = "label", .size = 12, .anchor = TB_MIDDLE};
        tb_scene_rect(l->s, x - WEIGHT / 2.0 + 1, y - WEIGHT, WEIGHT - 2,
                      WEIGHT - 1, &st);
        tb_scene_text(l->s, x, y - 7, tb_arena_printf(a, "%zu", i + 1), &label);
    }
}

static void fulcrum(layout *l, double x)
{
    char text[TB_SHOW_CHARS];
    double top = l->beam;
    tb_style st = {.role = "mu-line",
                   .id = "mu",
                   .title = "the list balances here",
                   .fill = TB_TONE_TOLL};
    tb_style name = {.role = "label",
                     .fill = TB_TONE_TOLL,
                     .size = 15,
                     .bold = true,
                     .anchor = TB_MIDDLE};
    tb_scene_path(l->s,
                  (double[]){x, top + 4, x - 16, top + 32, x + 16, top + 32}, 3,
                  true, &st);
    tb_scene_text(l->s, x, top + 50,
                  tb_arena_printf(&l->s->arena, "\xCE\xBC = %s",
                                  tb_show_number(l->b->mu, text)),
                  &name);
}

static void beam(layout *l)
{
    char text[TB_SHOW_CHARS];
    tb_style bar = {.role = "axis", .stroke = TB_TONE_INK, .line = 4};
    tb_style tick = {.role = "axis", .stroke = TB_TONE_MUTED, .line = 1};
    tb_style small = {.fill = TB_TONE_MUTED, .size = 12, .anchor = TB_MIDDLE};
    double mu = tb_axis_px(&l->axis, l->b->mu), y = l->beam;
    tb_scene_line(l->s, l->axis.p_lo - 24, y + 2, l->axis.p_hi + 24, y + 2,
                  &bar);
    fulcrum(l, mu);
    for (size_t i = 0; i < l->axis.n_ticks; i++) {
        double x = tb_axis_unit_px(&l->axis, l->axis.tick[i]);
        if (tb_fabs(x - mu) < 24)
            continue;
        tb_scene_line(l->s, x, y + 4, x, y + 10, &tick);
        tb_plot_label(l->s, x, y + 24, tb_axis_label(&l->axis, i, text),
                      &small);
    }
    weights(l);
}

/* A square of this side in the middle of its slot, name and area below. */
static void square(layout *l, const char *id, double x, double slot,
                   double side, double value, const char *name, bool mean,
                   bool lower)
{
    char text[TB_SHOW_CHARS];
    tb_show_number(value, text);
    tb_style st = {.role = mean ? "mean-square" : "square",
                   .id = id,
                   .title = tb_arena_printf(&l->s->arena, "%s: %s", name, text),
                   .fill = mean ? TB_TONE_TOLL_SOFT : TB_TONE_BOX_SOFT,
                   .stroke = mean ? TB_TONE_TOLL : TB_TONE_BOX,
                   .line = 2};
    tb_style label = {.role = "label", .size = 12, .anchor = TB_MIDDLE};
    double middle = x + slot / 2;
    side = tb_max2(side, 1);
    tb_scene_rect(l->s, middle - side / 2, l->squares - side, side, side, &st);
    tb_scene_text(l->s, middle, l->squares + 16, name, &label);
    label.bold = true;
    tb_scene_text(l->s, middle, l->squares + (lower ? 48 : 32), text, &label);
}

static void squares(layout *l)
{
    const balance *b = l->b;
    char text[TB_SHOW_CHARS];
    double x = MARGIN, side = l->unit * b->sigma;
    double slot = tb_max2(side, text_room(b->var));
    tb_arena *a = &l->s->arena;
    tb_style head = {.role = "label", .size = 14, .bold = true};
    tb_scene_text(l->s, MARGIN, l->beam + 84,
                  "A square on every distance to \xCE\xBC, and their mean",
                  &head);
    for (size_t i = 0; i < b->d; i++) {
        const char *name = tb_subscript(a, "x", i + 1);
        square(l, tb_arena_printf(a, "square-%zu", i + 1), x, l->slot[i],
               l->unit * tb_fabs(b->deviation[i]), b->square[i],
               name ? name : "", false, l->turns && i % 2 == 1);
        x += l->slot[i] + 6;
    }
    head.anchor = TB_MIDDLE;
    head.size = 18;
    tb_scene_text(l->s, x + 22, l->squares - 8, "\xE2\x86\x92", &head);
    x += 46;
    square(l, "mean-square", x, slot, side, b->var, "\xCF\x83\xC2\xB2", true,
           false);
    tb_style small = {.role = "label",
                      .fill = TB_TONE_TOLL,
                      .size = 12,
                      .anchor = x > WIDE / 2.0 ? TB_END : TB_START};
    tb_scene_text(l->s, x > WIDE / 2.0 ? x + slot : x,
                  l->squares + (l->turns ? 66 : 50),
                  tb_arena_printf(a, "side \xCF\x83 = %s",
                                  tb_show_number(b->sigma, text)),
                  &small);
}

static tb_status balance_scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    const balance *b = data;
    layout l = {.b = b};
    *out = NULL;
    TB_TRY(tb_scene_create(ctx, WIDE, 300, b->title, b->desc, &l.s));
    fit_axis(&l);
    l.beam = 14 + stack(&l);
    l.squares = l.beam + 104 + tb_max2(20, fit_squares(&l));
    beam(&l);
    squares(&l);
    tb_scene_resize(l.s, WIDE, l.squares + (l.turns ? 78 : 62));
    return tb_scene_done(l.s, out);
}

/* --- other faces ---------------------------------------------------------- */

static shot_columns columns_of(const balance *b)
{
    shot_columns c = {.caption = b->title, .d = b->d};
    shot_columns_add(&c, "x", b->x);
    shot_columns_add(&c, "x \xE2\x88\x92 \xCE\xBC", b->deviation);
    shot_columns_add(&c, "squared", b->square);
    return c;
}

static tb_status balance_term(tb_ctx *ctx, const void *data,
                              const tb_terminal *term, tb_out *out)
{
    const shot_columns c = columns_of(data);
    (void)ctx;
    shot_columns_term(&c, term, out);
    return tb_buf_status(&out->buf);
}

SHOT_COLUMNS_HTML(balance_html, columns_of)

static void balance_json(const void *data, tb_json *j)
{
    const balance *b = data;
    tb_json_string(j, "title", b->title);
    tb_json_tensor(j, "x", TB_F64, b->x, 1, &b->d);
    tb_json_tensor(j, "deviations", TB_F64, b->deviation, 1, &b->d);
    tb_json_tensor(j, "squares", TB_F64, b->square, 1, &b->d);
}

static const shot_face face = {"balance", balance_scene, balance_term,
                               balance_html, balance_json};

/* --- the worked sums ------------------------------------------------------ */

enum { PER_LINE = 8 };

static const char *number_text(tb_shot *s, double v)
{
    char text[TB_SHOW_CHARS];
    return shot_text(s, "%s", tb_show_number(v, text));
}

static void put(shot_word *w, size_t *n, const char *text, tb_tone tone,
                bool ends)
{
    w[(*n)++] = (shot_word){.text = text, .tone = tone, .ends_line = ends};
}

/* "9 + 1 + ... = 32" as words, one for every term. */
static void add_up(tb_shot *s, shot_word *w, size_t *n, const double *v,
                   size_t d, tb_tone tone)
{
    for (size_t i = 0; i < d; i++) {
        bool turns = (i + 1) % PER_LINE == 0 && i + 1 < d;
        const char *sign = i == 0 ? "" : v[i] < 0 ? "\xE2\x88\x92 " : "+ ";
        put(w, n,
            shot_text(s, "%s%s", sign,
                      number_text(s, i && v[i] < 0 ? -v[i] : v[i])),
            tone, turns);
    }
}

static void sums(tb_shot *s, const balance *b)
{
    shot_words_of *all = shot_alloc(s, 1, sizeof *all);
    shot_word *w = shot_alloc(s, 2 * b->d + 12, sizeof *w);
    size_t n = 0;
    if (!all || !w)
        return;
    put(w, &n, "\xCE\xBC:", TB_TONE_TOLL, false);
    add_up(s, w, &n, b->x, b->d, TB_TONE_IN);
    put(w, &n, shot_text(s, "= %s,", number_text(s, b->sum)), TB_TONE_NONE,
        b->d > PER_LINE);
    put(w, &n, shot_text(s, "/ %zu = %s", b->d, number_text(s, b->mu)),
        TB_TONE_TOLL, true);
    put(w, &n, "\xCF\x83\xC2\xB2:", TB_TONE_TOLL, false);
    add_up(s, w, &n, b->square, b->d, TB_TONE_BOX);
    put(w, &n, shot_text(s, "= %s,", number_text(s, b->squares)), TB_TONE_NONE,
        b->d > PER_LINE);
    put(w, &n, shot_text(s, "/ %zu = %s,", b->over, number_text(s, b->var)),
        TB_TONE_TOLL, false);
    put(w, &n,
        shot_text(s, "\xE2\x88\x9A%s = %s", number_text(s, b->var),
                  number_text(s, b->sigma)),
        TB_TONE_TOLL, false);
    *all = (shot_words_of){w, n};
    shot_below(s, &shot_words, all);
}

/* --- computing ------------------------------------------------------------ */

/* A list or a number off the engine, u being ones. */
static tb_status ask(tb_shot *s, const balance *b, const double *ones,
                     const char *text, size_t n, double *out)
{
    const tb_eval_value sets[] = {{"x", 1, {b->d}, b->x},
                                  {"u", 1, {b->d}, ones}};
    const tb_eval e = {
        .text = text, .sets = sets, .nsets = strstr(text, "u)") ? 2 : 1};
    return shot_eval(s, &e, n, out);
}

static tb_status compute(tb_shot *s, balance *b)
{
    TB_TRY(shot_list_read(s, "x", &b->x, &b->d));
    double *v = shot_alloc(s, 3 * b->d, sizeof *v), *ones = v + 2 * b->d;
    if (!v)
        return TB_ERR_MEMORY;
    b->over = shot_on(s, "unbiased") ? b->d - 1 : b->d;
    b->deviation = v;
    b->square = v + b->d;
    for (size_t i = 0; i < b->d; i++)
        ones[i] = 1;
    TB_TRY(ask(s, b, ones, "sum(x)", 1, &b->sum));
    TB_TRY(ask(s, b, ones, "mean(x)", 1, &b->mu));
    TB_TRY(ask(s, b, ones, "x - mix(mean(x), u)", b->d, v));
    TB_TRY(ask(s, b, ones, "c = x - mix(mean(x), u)\nc*c", b->d, v + b->d));
    TB_TRY(
        ask(s, b, ones, "c = x - mix(mean(x), u)\nsum(c*c)", 1, &b->squares));
    b->var = b->squares / (double)b->over;
    b->sigma = tb_sqrt(b->var);
    return TB_OK;
}

/* What the engine's layernorm divides the deviations by. */
static tb_status divisor_error(tb_shot *s, const balance *b, const char *text,
                               double sigma, double *out)
{
    const tb_eval_value x = {"x", 1, {b->d}, b->x};
    tb_eval e = {.text = text, .sets = &x, .nsets = 1, .seed = 1};
    tb_eval_result *r;
    TB_TRY(tb_eval_run(s->ctx, &e, &r));
    *out = 0;
    for (size_t i = 0; i < b->d; i++)
        *out = tb_max2(*out, tb_fabs(r->y.data[i] - b->deviation[i] / sigma));
    tb_eval_free(s->ctx, r);
    return TB_OK;
}

static tb_status check(tb_shot *s, const balance *b)
{
    double rest = 0, far, most = shot_far(b->x, NULL, b->d);
    double least = tb_sqrt(b->squares / (double)b->d);
    for (size_t i = 0; i < b->d; i++)
        rest += b->deviation[i];
    shot_check_that(s, tb_fabs(rest) <= 1e-12 * (1 + most),
                    "the deviations add up to 0: the beam is level");
    if (!(b->squares > 0)) /* a flat list has nothing to divide by */
        return TB_OK;
    double bound = 1e-12 * (1 + most / least);
    TB_TRY(divisor_error(s, b, "layernorm(x, eps=0)", least, &far));
    shot_check_that(s, far <= bound, "LayerNorm divides by d = %zu", b->d);
    TB_TRY(divisor_error(s, b, "layernorm(x, eps=0, unbiased=true)",
                         tb_sqrt(b->squares / (double)(b->d - 1)), &far));
    shot_check_that(s, far <= bound, "and by d - 1 only where it is told to");
    return TB_OK;
}

static tb_status build(tb_shot *s)
{
    char mu[TB_SHOW_CHARS], var[TB_SHOW_CHARS], sigma[TB_SHOW_CHARS];
    balance *b = shot_alloc(s, 1, sizeof *b);
    if (!b)
        return TB_ERR_MEMORY;
    *b = (balance){.title = "Mean, variance, spread"};
    TB_TRY(compute(s, b));
    b->desc = shot_text(s,
                        "The list balances at its mean %s. The squares on the "
                        "distances to it have the mean %s, a square of side "
                        "%s.",
                        tb_show_number(b->mu, mu), tb_show_number(b->var, var),
                        tb_show_number(b->sigma, sigma));
    shot_title(s, b->title, b->desc);
    shot_below(s, &face, b);
    sums(s, b);
    shot_tell(s, "E1.sum", "sum of the list", b->sum);
    shot_tell(s, "E1.mu", "mean", b->mu);
    shot_tell(s, "E1.squares", "sum of the squares", b->squares);
    shot_tell(s, "divisor", "divided by", (double)b->over);
    shot_tell(s, "E1.var", "variance", b->var);
    shot_tell(s, "E1.sigma", "spread", b->sigma);
    shot_list_tell(s, "x", b->x, b->d);
    shot_say(s, "The mean {E1.mu} is where the list balances. The distances "
                "to it, squared, add up to {E1.squares}; over {divisor} that "
                "is the variance {E1.var}, and its root, the spread "
                "{E1.sigma}, is the usual distance from the mean.");
    if (b->over < b->d)
        shot_say(s, "Dividing by d \xE2\x88\x92 1 gives {E1.var}; LayerNorm "
                    "divides by d.");
    return check(s, b);
}

const shot_row shot_f4 = {
    .name = "F4",
    .about = "mean, variance and spread of a list, term by term",
    .input = {SHOT_INPUT_X("[2,4,4,4,5,5,7,9]"),
              SHOT_INPUT_D("8"),
              {"unbiased", "divide by d - 1", TB_SHOT_SWITCH, "0", 0, 1,
               .step = 1}},
    .build = build,
};
