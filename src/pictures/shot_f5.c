/* SPDX-License-Identifier: MIT */
/* F5: the parts of LayerNorm as a table of four rows, each with its symbols,
 * its words and its bars; a switch for every symbol. */
#include "pictures/shot_box.h"
#include "pictures/shot_columns.h"
#include "pictures/shot_norm.h"

enum { ROWS = 4, PILLS = 3 };

typedef struct pill {
    const char *symbol, *id; /* NULL: none */
    bool on;
} pill;

typedef struct part {
    const char *name, *symbols, *words;
    const double *bars;  /* d */
    const double *moved; /* thin lines; or NULL */
    double band;         /* half a band around 0; 0: none */
    tb_tone tone;
    pill pills[PILLS];
} part;

typedef struct parts {
    const char *title, *desc, *note;
    size_t d, focus; /* focus: dial, from 1 */
    part rows[ROWS];
} parts;

/* --- scene ---------------------------------------------------------------- */

enum {
    MARGIN = 14,
    WORDS = 262,   /* px of the words */
    SYMBOLS = 150, /* px of the symbols */
    PICTURE = 306, /* px of the bars */
    ROW = 104,
    HEAD = 26,
    HALF = 34 /* px of the longest bar */
};

typedef struct layout {
    tb_scene *s;
    const parts *p;
    double unit; /* px of 1 */
} layout;

static void fit(layout *l)
{
    double most = 0;
    for (size_t r = 0; r < ROWS; r++) {
        const part *row = &l->p->rows[r];
        most = tb_max2(most,
                       tb_max2(row->band, shot_far(row->bars, NULL, l->p->d)));
        if (row->moved)
            most = tb_max2(most, shot_far(row->moved, NULL, l->p->d));
    }
    l->unit = most > 0 ? HALF / most : 1;
}

/* A number over each bar, or under it, where the slot has room; clear of the
 * thin line. */
static void bar_numbers(layout *l, size_t r, double x, double middle)
{
    const part *row = &l->p->rows[r];
    double slot = (double)PICTURE / (double)l->p->d;
    for (size_t i = 0; i < l->p->d; i++) {
        char text[TB_SHOW_CHARS];
        double v = row->bars[i], end = row->moved ? row->moved[i] : v;
        tb_style label = {.role = "label", .size = 12, .anchor = TB_MIDDLE};
        end = v < 0 ? tb_min2(v, end) : tb_max2(v, end);
        tb_show_number(v, text);
        if (tb_text_width(text, 12, false) <= slot)
            tb_plot_label(l->s, x + slot * ((double)i + 0.5),
                          middle - end * l->unit + (v < 0 ? 14 : -5), text,
                          &label);
    }
}

static void bars(layout *l, size_t r, double x, double middle)
{
    const part *row = &l->p->rows[r];
    tb_arena *a = &l->s->arena;
    double slot = (double)PICTURE / (double)l->p->d;
    tb_style axis = {.role = "axis", .stroke = TB_TONE_MUTED, .line = 1};
    tb_style band = {.role = "sigma-band",
                     .title = "what is divided by, either way of 0",
                     .fill = TB_TONE_TOLL_SOFT};
    tb_style tick = {.role = "nudge",
                     .title = "after one dial is turned",
                     .stroke = TB_TONE_INK,
                     .line = 2};
    if (row->band > 0)
        tb_scene_rect(l->s, x, middle - row->band * l->unit, PICTURE,
                      2 * row->band * l->unit, &band);
    for (size_t i = 0; i < l->p->d; i++) {
        char text[TB_SHOW_CHARS];
        double h = row->bars[i] * l->unit, left = x + slot * (double)i;
        tb_style bar = {.role = "bar",
                        .id = tb_arena_printf(a, "bar-%zu-%zu", r + 1, i + 1),
                        .title =
                            tb_arena_printf(a, "%zu: %s", i + 1,
                                            tb_show_number(row->bars[i], text)),
                        .fill = row->tone};
        tb_scene_rect(l->s, left + 0.15 * slot, middle - tb_max2(h, 0),
                      0.7 * slot, tb_fabs(h), &bar);
        if (!row->moved || row->moved[i] == row->bars[i])
            continue;
        double y = middle - row->moved[i] * l->unit;
        tb_scene_line(l->s, left + 2, y, left + slot - 2, y, &tick);
    }
    tb_scene_line(l->s, x, middle, x + PICTURE, middle, &axis);
    bar_numbers(l, r, x, middle);
}

/* Symbols in frames: full where they are on, dashed and crossed where not. */
static void pills(layout *l, size_t r, double x, double y)
{
    const part *row = &l->p->rows[r];
    for (size_t k = 0; k < PILLS && row->pills[k].symbol; k++, x += 38) {
        const pill *p = &row->pills[k];
        tb_style frame = {.role = "switch",
                          .id = p->id,
                          .title = p->on ? "on" : "off",
                          .fill = p->on ? TB_TONE_TOLL_SOFT : TB_TONE_PAPER,
                          .stroke = p->on ? TB_TONE_TOLL : TB_TONE_MUTED,
                          .line = 1.5,
                          .dash = p->on ? TB_SOLID : TB_DASHED,
                          .round = 10};
        tb_style text = {.role = "label",
                         .fill = p->on ? TB_TONE_INK : TB_TONE_MUTED,
                         .size = 13,
                         .bold = p->on,
                         .anchor = TB_MIDDLE};
        tb_style strike = {.role = "broken", .stroke = TB_TONE_BAD, .line = 2};
        tb_scene_rect(l->s, x, y, 32, 22, &frame);
        tb_scene_text(l->s, x + 16, y + 16, p->symbol, &text);
        if (!p->on)
            tb_scene_line(l->s, x + 4, y + 18, x + 28, y + 4, &strike);
    }
}

static void row_of(layout *l, size_t r, double y)
{
    const part *row = &l->p->rows[r];
    double x = MARGIN + WORDS + 8;
    tb_style name = {
        .role = "label", .fill = row->tone, .size = 15, .bold = true};
    tb_style words = {.role = "label", .fill = TB_TONE_INK, .size = 12};
    tb_style symbols = {.role = "label", .size = 14, .bold = true};
    tb_style line = {.role = "grid", .stroke = TB_TONE_GRID, .line = 1};
    tb_scene_line(l->s, MARGIN, y, MARGIN + WORDS + SYMBOLS + PICTURE + 14, y,
                  &line);
    tb_scene_text(l->s, MARGIN, y + 26, row->name, &name);
    tb_scene_wrap(l->s, MARGIN, y + 46, WORDS - 8, row->words, &words);
    tb_scene_text(l->s, x, y + 26, row->symbols, &symbols);
    pills(l, r, x, y + 42);
    bars(l, r, x + SYMBOLS + 6, y + ROW / 2.0);
}

static tb_status parts_scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    layout l = {.p = data};
    double wide = 2 * MARGIN + WORDS + SYMBOLS + PICTURE + 14, y = HEAD;
    tb_style head = {.fill = TB_TONE_MUTED, .size = 12, .bold = true};
    tb_style note = {.role = "note", .fill = TB_TONE_MUTED, .size = 12};
    *out = NULL;
    TB_TRY(tb_scene_create(ctx, wide, 300, l.p->title, l.p->desc, &l.s));
    fit(&l);
    tb_scene_text(l.s, MARGIN, 18, "what it does", &head);
    tb_scene_text(l.s, MARGIN + WORDS + 8, 18, "symbols", &head);
    tb_scene_text(l.s, MARGIN + WORDS + SYMBOLS + 14, 18,
                  tb_arena_printf(&l.s->arena,
                                  "the list after it, dials 1 to %zu", l.p->d),
                  &head);
    for (size_t r = 0; r < ROWS; r++, y += ROW)
        row_of(&l, r, y);
    y = tb_scene_wrap(l.s, MARGIN, y + 18, wide - 2 * MARGIN, l.p->note, &note);
    tb_scene_resize(l.s, wide, y);
    return tb_scene_done(l.s, out);
}

/* --- other faces ---------------------------------------------------------- */

static shot_columns columns_of(const parts *p)
{
    shot_columns c = {.caption = p->title, .d = p->d};
    shot_columns_add(&c, "slide", p->rows[0].bars);
    shot_columns_add(&c, "squeeze", p->rows[2].bars);
    shot_columns_add(&c, "stretch", p->rows[3].bars);
    return c;
}

static tb_status parts_term(tb_ctx *ctx, const void *data,
                            const tb_terminal *term, tb_out *out)
{
    const parts *p = data;
    const shot_columns c = columns_of(p);
    tb_arena a;
    tb_arena_init(&a, ctx);
    for (size_t r = 0; r < ROWS; r++) {
        const part *row = &p->rows[r];
        const char *line = tb_arena_printf(&a, "%s, %s: %s", row->name,
                                           row->symbols, row->words);
        for (size_t k = 0; k < PILLS && row->pills[k].symbol && line; k++)
            line = tb_arena_printf(&a, "%s [%s %s]", line, row->pills[k].symbol,
                                   row->pills[k].on ? "on" : "off");
        tb_term_wrap(&out->buf, term, 4, line ? line : "");
    }
    tb_arena_clear(&a);
    tb_buf_putc(&out->buf, '\n');
    shot_columns_term(&c, term, out);
    return tb_buf_status(&out->buf);
}

SHOT_COLUMNS_HTML(parts_html, columns_of)

static void parts_json(const void *data, tb_json *j)
{
    const parts *p = data;
    tb_json_string(j, "title", p->title);
    tb_json_array(j, "parts");
    for (size_t r = 0; r < ROWS; r++) {
        const part *row = &p->rows[r];
        tb_json_object(j, NULL);
        tb_json_string(j, "name", row->name);
        tb_json_string(j, "symbols", row->symbols);
        tb_json_tensor(j, "values", TB_F64, row->bars, 1, &p->d);
        tb_json_end(j);
    }
    tb_json_end(j);
}

static const shot_face face = {"parts", parts_scene, parts_term, parts_html,
                               parts_json};

/* --- computing ------------------------------------------------------------ */

typedef struct build_of {
    shot_norm_of n;
    bool gain, bias, eps, dot, undo;
    size_t j;
    double *out, *moved; /* with the switches as they are */
    size_t touched;      /* outputs that turning dial j moves */
} build_of;

/* After the squeeze: gain ⊙ x + bias, or a matrix that mixes. */
static tb_status last_step(tb_shot *s, const build_of *b, const double *hat,
                           double *out)
{
    const tb_eval_value sets[] = {{"x", 1, {b->n.d}, hat},
                                  {"b", 1, {b->n.d}, b->n.bias},
                                  {"g", 1, {b->n.d}, b->n.gain}};
    tb_eval e = {.text = b->dot ? "g*x + b" : "project(x, d) + b",
                 .sets = sets,
                 .nsets = b->dot ? 3 : 2,
                 .seed = 1};
    return shot_eval(s, &e, b->n.d, out);
}

static tb_status gain_and_bias(tb_shot *s, build_of *b)
{
    size_t d = b->n.d;
    double *g = shot_alloc(s, 2 * d, sizeof *g), *bias = g + d;
    const double *own_g, *own_b;
    if (!g)
        return TB_ERR_MEMORY;
    TB_TRY(shot_list_over(s, "gamma", d, &own_g));
    TB_TRY(shot_list_over(s, "beta", d, &own_b));
    double mu = shot_mean(b->n.z, d), std = shot_std(b->n.z, d);
    double spread = tb_sqrt(std * std + b->n.eps);
    for (size_t i = 0; i < d; i++) {
        g[i] = b->undo ? spread : b->gain ? own_g[i] : 1;
        bias[i] = b->undo ? mu : b->bias ? own_b[i] : 0;
    }
    b->n.gain = g;
    b->n.bias = bias;
    return TB_OK;
}

/* Dial j of the squeezed list turned up by 1. */
static tb_status turn(tb_shot *s, build_of *b)
{
    size_t d = b->n.d;
    double *hat = shot_alloc(s, 3 * d, sizeof *hat);
    if (!hat)
        return TB_ERR_MEMORY;
    b->out = hat + d;
    b->moved = b->out + d;
    memcpy(hat, b->n.hat, d * sizeof *hat);
    TB_TRY(last_step(s, b, hat, b->out));
    hat[b->j - 1] += 1;
    TB_TRY(last_step(s, b, hat, b->moved));
    for (size_t i = 0; i < d; i++)
        b->touched += b->moved[i] != b->out[i];
    return TB_OK;
}

static tb_status compute(tb_shot *s, build_of *b)
{
    *b = (build_of){.gain = shot_on(s, "use_gamma"),
                    .bias = shot_on(s, "use_beta"),
                    .eps = shot_on(s, "use_eps"),
                    .dot = shot_on(s, "use_dot"),
                    .undo = shot_on(s, "undo")};
    b->n = (shot_norm_of){.name = "layernorm",
                          .centred = true,
                          .eps = b->eps ? shot_num(s, "eps") : 0};
    TB_TRY(shot_list_read(s, "z", &b->n.z, &b->n.d));
    b->j = shot_whole(s, "j") > b->n.d ? b->n.d : shot_whole(s, "j");
    TB_TRY(gain_and_bias(s, b));
    TB_TRY(shot_norm_run(s, &b->n));
    return turn(s, b);
}

/* gain = s and bias = mu take everything back, by the engine. */
static tb_status undo_error(tb_shot *s, const build_of *b, double *out)
{
    shot_norm_of n = b->n;
    double *v = shot_alloc(s, 3 * n.d, sizeof *v);
    if (!v)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n.d; i++) {
        v[i] = n.s;
        v[n.d + i] = n.mu;
    }
    n.gain = v;
    n.bias = v + n.d;
    TB_TRY(shot_norm_value(s, &n, n.z, n.eps, false, v + 2 * n.d));
    *out = shot_far(v + 2 * n.d, n.z, n.d);
    return TB_OK;
}

static tb_status check(tb_shot *s, const build_of *b)
{
    double error, most = shot_far(b->n.z, NULL, b->n.d);
    TB_TRY(undo_error(s, b, &error));
    shot_tell(s, "undo.error", "how far undoing is from the list", error);
    shot_say(s, "With \xCE\xB3 = \xE2\x88\x9A(\xCF\x83\xC2\xB2 + \xCE\xB5) and "
                "\xCE\xB2 = \xCE\xBC the norm undoes itself, here within "
                "{undo.error}: a model that wants the list back can have it.");
    shot_check_that(s, error <= 1e-12 * (1 + most),
                    "gain s and bias mu give the list back, within 1e-12");
    if (b->dot) {
        shot_check_that(
            s, b->touched <= 1 && (b->touched == 1 || b->n.gain[b->j - 1] == 0),
            "element by element: dial %zu moves output %zu alone", b->j, b->j);
        shot_check_that(s,
                        shot_far(b->out, b->n.out, b->n.d) <=
                            1e-12 * (1 + shot_far(b->out, NULL, b->n.d)),
                        "the four rows, one after the other, are LayerNorm");
    } else {
        shot_check_that(s, b->touched == b->n.d,
                        "a matrix instead: dial %zu moves all %zu outputs",
                        b->j, b->n.d);
    }
    if (b->dot && !b->undo && !b->gain && !b->bias)
        shot_check_that(s, shot_far(b->out, b->n.hat, b->n.d) == 0,
                        "without gain and bias the last row changes nothing");
    return TB_OK;
}

/* --- shot ----------------------------------------------------------------- */

static void fill(tb_shot *s, const build_of *b, parts *p)
{
    char text[TB_SHOW_CHARS];
    bool fixed = b->undo;
    p->rows[0] = (part){.name = "slide",
                        .symbols = "z \xE2\x88\x92 \xCE\xBC",
                        .words = "slide all bars until they balance at zero",
                        .bars = b->n.slid,
                        .tone = TB_TONE_IN};
    p->rows[1] =
        (part){.name = "spread",
               .symbols = shot_text(s,
                                    "\xE2\x88\x9A(\xCF\x83\xC2\xB2 + \xCE\xB5) "
                                    "= %s",
                                    tb_show_number(b->n.s, text)),
               .words = "how wide the list lies, with a tiny number \xCE\xB5 "
                        "that guards against dividing by 0",
               .bars = b->n.slid,
               .band = b->n.s,
               .tone = TB_TONE_TOLL,
               .pills = {{"\xCE\xB5", "switch-eps", b->eps}}};
    p->rows[2] =
        (part){.name = "squeeze",
               .symbols = "(z \xE2\x88\x92 \xCE\xBC) / \xE2\x88\x9A("
                          "\xCF\x83\xC2\xB2 + \xCE\xB5)",
               .words = shot_text(s, "divide by that: now the spread is %s",
                                  tb_show_number(b->n.sigma / b->n.s, text)),
               .bars = b->n.hat,
               .tone = TB_TONE_LANE};
    p->rows[3] = (part){
        .name = "stretch, shift",
        .symbols = "\xCE\xB3 \xE2\x8A\x99 \xE2\x80\xA6 + \xCE\xB2",
        .words = b->dot
                     ? "\xCE\xB3: how tall each bar may grow; \xCE\xB2: "
                       "where its baseline sits; \xE2\x8A\x99: dial by dial, "
                       "no mixing"
                     : "\xE2\x8A\x99 is off: a matrix stands in its place, "
                       "and every dial moves every output",
        .bars = b->out,
        .moved = b->moved,
        .tone = TB_TONE_BOX,
        .pills = {{"\xCE\xB3", "switch-gamma", b->gain || fixed},
                  {"\xE2\x8A\x99", "switch-dot", b->dot},
                  {"\xCE\xB2", "switch-beta", b->bias || fixed}}};
}

static tb_status build(tb_shot *s)
{
    char spread[TB_SHOW_CHARS];
    build_of b;
    parts *p = shot_alloc(s, 1, sizeof *p);
    if (!p)
        return TB_ERR_MEMORY;
    TB_TRY(compute(s, &b));
    *p = (parts){
        .title =
            b.undo ? "LayerNorm's parts: the norm undone" : "LayerNorm's parts",
        .desc = shot_text(s,
                          "Four rows: slide, spread %s, squeeze, stretch and "
                          "shift. Turning dial %zu moves %zu of %zu outputs.",
                          tb_show_number(b.n.s, spread), b.j, b.touched, b.n.d),
        .note = shot_text(s,
                          "Thin lines in the last row: after squeezed number "
                          "%zu is turned up by 1; %zu of %zu bars move.",
                          b.j, b.touched, b.n.d),
        .d = b.n.d,
        .focus = b.j};
    fill(s, &b, p);
    shot_title(s, p->title, p->desc);
    shot_below(s, &face, p);
    shot_tell(s, "E1.mu", "mean", b.n.mu);
    shot_tell(s, "E1.sigma", "spread", b.n.sigma);
    shot_tell(s, "E1.s", "what is divided by", b.n.s);
    shot_tell(s, "j", "dial that is turned", (double)b.j);
    shot_tell(s, "touched", "outputs that it moves", (double)b.touched);
    shot_list_tell(s, "z", b.n.z, b.n.d);
    shot_list_tell(s, "hat", b.n.hat, b.n.d);
    shot_list_tell(s, "out", b.out, b.n.d);
    shot_say(s, "The list slides by {E1.mu}, is divided by {E1.s}, then each "
                "dial is stretched and shifted. Turning dial {j} moves "
                "{touched} of the outputs.");
    return check(s, &b);
}

#define SWITCH(name_, label_, own_)                                            \
    {                                                                          \
        name_, label_, TB_SHOT_SWITCH, own_, 0, 1, .step = 1                   \
    }

const shot_row shot_f5 = {
    .name = "F5",
    .about = "the parts of LayerNorm, a switch for every symbol",
    .input = {{"z", "the list z", TB_SHOT_LIST, "[2,4,4,4,5,5,7,9]", -20, 20,
               .step = 0.5, .most = SHOT_LIST_MOST},
              SHOT_INPUT_D("8"),
              SWITCH("use_gamma", "\xCE\xB3 on", "1"),
              {"gamma", "\xCE\xB3, how much each dial is stretched",
               TB_SHOT_LIST, "[2,1,1,1,1,1,1,0.5]", -5, 5, .step = 0.1,
               .most = SHOT_LIST_MOST},
              SWITCH("use_beta", "\xCE\xB2 on", "1"),
              {"beta", "\xCE\xB2, how much each dial is shifted", TB_SHOT_LIST,
               "[0,0,0,1,0,0,0,0]", -5, 5, .step = 0.1, .most = SHOT_LIST_MOST},
              SWITCH("use_eps", "\xCE\xB5 on", "1"),
              {"eps", "\xCE\xB5", TB_SHOT_NUMBER, "1e-5", 1e-12, 0.1, .step = 1,
               .log = true},
              SWITCH("use_dot", "\xE2\x8A\x99 on (off: a matrix mixes)", "1"),
              SWITCH("undo", "undo: \xCE\xB3 = s, \xCE\xB2 = \xCE\xBC", "0"),
              {"j", "dial that is turned", TB_SHOT_NUMBER, "3", 1,
               SHOT_LIST_MOST, .step = 1, .whole = true}},
    .build = build,
};
