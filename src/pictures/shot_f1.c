/* SPDX-License-Identifier: MIT */
/* F1: a token is a list of d numbers, drawn as d bars; every token has its
 * own list. */
#include "pictures/shot_box.h"
#include "pictures/shot_columns.h"
#include "pictures/shot_stage.h"

enum { TOKENS = 2, MARGIN = 14, LIST = 320, GAP = 76, TOP = 34 };

typedef struct dials {
    const char *title, *desc, *label; /* "x₃ = 4" */
    size_t d, j, token;               /* from 1 */
    const double *x[TOKENS];
} dials;

/* --- scene ---------------------------------------------------------------- */

static void list(tb_scene *s, const dials *f, size_t t, double lo, double hi)
{
    bool chosen = f->token == t + 1;
    stage_bars b = {.title = t ? "token 2" : "token 1",
                    .id = t ? "two" : "one",
                    .letter = "x",
                    .d = f->d,
                    .v = f->x[t],
                    .focus = chosen ? f->j : SIZE_MAX,
                    .tone = TB_TONE_IN,
                    .lo = lo,
                    .hi = hi,
                    .x = MARGIN + (LIST + GAP) * (double)t,
                    .top = TOP,
                    .w = LIST};
    stage_bars_draw(s, &b);
}

/* "d = 8" beside a bracket between the lists. */
static void bracket(tb_scene *s, const dials *f)
{
    double bottom = TOP + stage_row_height(f->d) * (double)f->d;
    double x = MARGIN + LIST + 10;
    tb_style line = {.role = "label", .stroke = TB_TONE_MUTED, .line = 1.5};
    tb_style text = {.role = "label", .id = "width", .size = 14, .bold = true};
    tb_scene_path(s,
                  (double[]){x, TOP + 2, x + 8, TOP + 2, x + 8, bottom - 2, x,
                             bottom - 2},
                  4, false, &line);
    tb_scene_text(s, x + 14, (TOP + bottom) / 2 + 5,
                  tb_arena_printf(&s->arena, "d=%zu", f->d), &text);
}

/* A frame around the dial in focus, and its name and value below. */
static void focus(tb_scene *s, const dials *f)
{
    double row = stage_row_height(f->d);
    double x = MARGIN + (LIST + GAP) * (double)(f->token - 1);
    tb_style frame = {.role = "focus",
                      .id = "focus",
                      .title = f->label,
                      .stroke = TB_TONE_IN,
                      .line = 2,
                      .round = 4};
    tb_style text = {.role = "label",
                     .id = "focus-label",
                     .fill = TB_TONE_IN,
                     .size = 22,
                     .bold = true};
    tb_scene_rect(s, x - 6, TOP + row * (double)(f->j - 1) + 0.5, LIST + 12,
                  row - 1, &frame);
    tb_scene_text(s, x, TOP + row * (double)f->d + 32, f->label, &text);
}

static tb_status dials_scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    const dials *f = data;
    tb_scene *s;
    double lo = 0, hi = 0;
    *out = NULL;
    TB_TRY(tb_scene_create(ctx, 2 * MARGIN + 2 * LIST + GAP,
                           TOP + stage_row_height(f->d) * (double)f->d + 48,
                           f->title, f->desc, &s));
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < f->d; i++) {
            lo = tb_min2(lo, f->x[t][i]);
            hi = tb_max2(hi, f->x[t][i]);
        }
    for (size_t t = 0; t < TOKENS; t++)
        list(s, f, t, lo, hi > lo ? hi : lo + 1);
    bracket(s, f);
    focus(s, f);
    return tb_scene_done(s, out);
}

/* --- other faces ---------------------------------------------------------- */

static shot_columns columns_of(const dials *f)
{
    shot_columns c = {.caption = f->title, .d = f->d};
    shot_columns_add(&c, "token 1", f->x[0]);
    shot_columns_add(&c, "token 2", f->x[1]);
    return c;
}

static tb_status dials_term(tb_ctx *ctx, const void *data,
                            const tb_terminal *term, tb_out *out)
{
    const dials *f = data;
    const shot_columns c = columns_of(f);
    (void)ctx;
    shot_columns_term(&c, term, out);
    tb_buf_putc(&out->buf, '\n');
    tb_term_puts(&out->buf, term, f->label);
    tb_buf_printf(&out->buf, " (token %zu), d = %zu\n", f->token, f->d);
    return tb_buf_status(&out->buf);
}

SHOT_COLUMNS_HTML(dials_html, columns_of)

static void dials_json(const void *data, tb_json *j)
{
    const dials *f = data;
    tb_json_string(j, "title", f->title);
    tb_json_string(j, "label", f->label);
    tb_json_array(j, "tokens");
    for (size_t t = 0; t < TOKENS; t++)
        tb_json_tensor(j, NULL, TB_F64, f->x[t], 1, &f->d);
    tb_json_end(j);
}

static const shot_face face = {"tokens", dials_scene, dials_term, dials_html,
                               dials_json};

/* --- shot ----------------------------------------------------------------- */

static tb_status read(tb_shot *s, dials *f)
{
    TB_TRY(shot_list_read(s, "x", &f->x[0], &f->d));
    TB_TRY(shot_list_over(s, "x2", f->d, &f->x[1]));
    f->token = shot_choice(s, "token") + 1;
    f->j = shot_whole(s, "j") > f->d ? f->d : shot_whole(s, "j");
    return TB_OK;
}

/* A box for both tokens at once gives what it gives for each alone. */
static tb_status check_apart(tb_shot *s, const dials *f)
{
    size_t all = TOKENS * f->d;
    double *both = shot_alloc(s, 3 * all, sizeof *both);
    if (!both)
        return TB_ERR_MEMORY;
    double *apart = both + all, *together = apart + all;
    for (size_t t = 0; t < TOKENS; t++)
        memcpy(both + t * f->d, f->x[t], f->d * sizeof *both);
    for (size_t t = 0; t <= TOKENS; t++) { /* the last: both */
        size_t n = t < TOKENS ? 1 : TOKENS;
        const tb_eval_value x = {
            "x", 2, {n, f->d}, t < TOKENS ? f->x[t] : both};
        const tb_eval e = {.text = "ffn(x)", .sets = &x, .nsets = 1, .seed = 1};
        TB_TRY(shot_eval(s, &e, n * f->d,
                         t < TOKENS ? apart + t * f->d : together));
    }
    shot_check_that(s, memcmp(apart, together, all * sizeof *both) == 0,
                    "a feed-forward box gives either token what it gives it "
                    "alone");
    return TB_OK;
}

static tb_status check(tb_shot *s, const dials *f, double focus)
{
    static const char *const roles[] = {"bar", "focus"};
    const char *text = f->label ? strstr(f->label, "= ") : NULL;
    size_t drawn[TB_LEN(roles)];
    double back;
    bool read = text && tb_double_parse(text + 2, strlen(text + 2), &back);
    shot_check_that(s, read && tb_fabs(back - focus) <= 5e-3 * tb_fabs(focus),
                    "the label says the number that the bar shows");
    shot_drawn(s, &face, f, roles, TB_LEN(roles), drawn);
    shot_check_that(s, drawn[0] == TOKENS * f->d && drawn[1] == 1,
                    "drawn: %zu bars, one of them in focus", drawn[0]);
    return check_apart(s, f);
}

static tb_status build(tb_shot *s)
{
    char text[TB_SHOW_CHARS];
    dials *f = shot_alloc(s, 1, sizeof *f);
    if (!f)
        return TB_ERR_MEMORY;
    *f = (dials){.title = "A token is a list of d numbers"};
    TB_TRY(read(s, f));
    double focus = f->x[f->token - 1][f->j - 1];
    const char *name = tb_subscript(&s->arena, "x", f->j);
    f->label =
        shot_text(s, "%s = %s", name ? name : "", tb_show_number(focus, text));
    f->desc = shot_text(s,
                        "Two tokens, each a list of %zu numbers drawn as bars. "
                        "Number %zu of token %zu is %s.",
                        f->d, f->j, f->token, text);
    shot_title(s, f->title, f->desc);
    shot_below(s, &face, f);
    shot_tell(s, "d", "numbers in a list", (double)f->d);
    shot_tell(s, "j", "the number in focus", (double)f->j);
    shot_tell(s, "x_j", "its value", focus);
    shot_list_tell(s, "x", f->x[f->token - 1], f->d);
    shot_say(s, "x is one list of d = {d} numbers, and belongs to one token. "
                "The subscript picks one of them: number {j} is {x_j}.");
    shot_say(s, "Another token has another list of the same length.");
    return check(s, f, focus);
}

const shot_row shot_f1 = {
    .name = "F1",
    .about = "x as a list of d numbers, one list per token",
    .input = {SHOT_INPUT_X("[2,4,4,4,5,5,7,9]"),
              {"x2", "the list of the other token", TB_SHOT_LIST,
               "[-3,1,6,-1,2,8,0,-4]", -20, 20, .step = 0.5,
               .most = SHOT_LIST_MOST},
              SHOT_INPUT_D("8"),
              {"token", "token", TB_SHOT_CHOICE, "1", .choices = "1|2"},
              {"j", "number in focus", TB_SHOT_NUMBER, "3", 1, SHOT_LIST_MOST,
               .step = 1, .whole = true}},
    .build = build,
};
