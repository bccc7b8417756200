/* SPDX-License-Identifier: MIT */
/* SUM: both placements side by side, the I behind a barrier and alone, one
 * number under each. 600 px wide, so that 12 px stay 12 px where it is shown
 * small; as a card of 1.91 to 1, and as A4 across. */
#include "pictures/diagram.h"
#include "pictures/shot_block.h"

enum { WIDTH = 600, HALF = 296, TITLE = 40 };

typedef struct sum {
    const stack_run *run[2]; /* post, pre */
    double height;
    bool sheet; /* room for words below */
} sum;

static const char *const names[] = {"Post-LN", "Pre-LN"};
static const char *const prefixes[] = {"post", "pre"};

/* --- scene ---------------------------------------------------------------- */

static tb_status put_block(tb_scene *s, const stack_run *r, size_t i, double x,
                           double y)
{
    tb_scene *part;
    const shot_block_of b = {
        .title = tb_arena_printf(&s->arena, "%s:  %s", names[i], r->equation),
        .run = r,
        .floor = r->spec.n,
        .width = HALF,
        .plain = true};
    if (!b.title)
        return TB_ERR_MEMORY;
    TB_TRY(shot_block.scene(s->ctx, &b, &part));
    tb_scene_group(s, &(tb_style){.role = "card", .id = prefixes[i]});
    tb_scene_place(s, part, prefixes[i], x, y);
    tb_scene_end(s);
    tb_scene_destroy(part);
    return TB_OK;
}

/* What is left on the lane, large; what the total is, beside it in words. */
static void put_numbers(tb_scene *s, const stack_run *r, size_t i, double x,
                        double y)
{
    char lane[TB_SHOW_CHARS], total[TB_SHOW_CHARS], id[24];
    tb_format(id, sizeof id, "lane-%s", prefixes[i]);
    tb_style large = {.role = "label",
                      .id = id,
                      .size = 26,
                      .bold = true,
                      .fill = tower_lane(stack_lane(r, 0)).stroke,
                      .anchor = TB_MIDDLE};
    tb_style text = {.role = "label", .size = 12, .anchor = TB_MIDDLE};
    double middle = x + HALF / 2.0;
    tb_scene_text(s, middle, y, tb_show_number(stack_lane(r, 0), lane), &large);
    tb_scene_text(s, middle, y + 17,
                  tb_arena_printf(&s->arena,
                                  "is left on the lane after %zu floor%s",
                                  r->spec.n, r->spec.n == 1 ? "" : "s"),
                  &text);
    text.fill = TB_TONE_TOTAL;
    tb_scene_text(s, middle, y + 32,
                  tb_arena_printf(&s->arena, "total, branches included: %s",
                                  tb_show_number(stack_total(r, 0), total)),
                  &text);
}

static tb_status draw(tb_scene *s, const sum *m)
{
    double y = m->sheet ? 24 : 0;
    tb_style rule = {.stroke = TB_TONE_GRID, .line = 1};
    tb_style note = {.role = "note", .fill = TB_TONE_MUTED, .size = 12};
    for (size_t i = 0; i < 2; i++) {
        double x = i ? WIDTH - HALF : 0;
        TB_TRY(put_block(s, m->run[i], i, x, y - 8));
        put_numbers(s, m->run[i], i, x, y + 222);
    }
    tb_scene_line(s, WIDTH / 2.0, y, WIDTH / 2.0, y + 254, &rule);
    note.anchor = TB_MIDDLE;
    tb_scene_text(s, WIDTH / 2.0, y + 270,
                  "Arrows back are 10 px wide where all goes on, 3 px less for "
                  "each factor 10.",
                  &note);
    note.anchor = TB_START;
    if (m->sheet)
        tb_scene_wrap(
            s, 14, y + 310, WIDTH - 28,
            "Measured at initial weights. Lane: the signal that comes back "
            "with every branch cut. \"Post-LN fades, Pre-LN stays\" is true of "
            "it; the total is another number.",
            &note);
    return TB_OK;
}

static tb_status scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    const sum *m = data;
    tb_scene *s;
    char post[TB_SHOW_CHARS], pre[TB_SHOW_CHARS];
    TB_TRY(
        tb_scene_create(ctx, WIDTH, m->height, "Two blocks", "two blocks", &s));
    const char *desc = tb_arena_printf(
        &s->arena,
        "Left, Post-LN: the I of its derivative stands behind J_LN, the lane "
        "keeps %s. Right, Pre-LN: the I stands alone, the lane keeps %s.",
        tb_show_number(stack_lane(m->run[0], 0), post),
        tb_show_number(stack_lane(m->run[1], 0), pre));
    if (desc)
        tb_scene_describe(s, desc);
    else
        tb_scene_fail(s, TB_ERR_MEMORY);
    tb_status status = draw(s, m);
    if (status != TB_OK)
        tb_scene_fail(s, status);
    return tb_scene_done(s, out);
}

/* --- terminal ------------------------------------------------------------- */

enum { LINES = 5, COLUMN = 38 };

static void lines_of(tb_arena *a, const stack_run *r, size_t i,
                     const char *out[LINES])
{
    char lane[TB_SHOW_CHARS], total[TB_SHOW_CHARS];
    out[0] = tb_arena_printf(a, "%s  %s", names[i], r->equation);
    out[1] = r->spec.post
                 ? "x \xE2\x94\x80\xE2\x94\xAC\xE2\x94\x80[F]\xE2\x94\x80"
                   "\xE2\x8A\x95\xE2\x94\x80\xE2\x96\xA3\xE2\x94\x80\xE2\x96"
                   "\xBA"
                 : "x \xE2\x94\x80\xE2\x94\xAC\xE2\x96\xA3[F]\xE2\x94\x80"
                   "\xE2\x8A\x95\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x96"
                   "\xBA";
    out[2] = r->spec.post ? "J_LN\xC2\xB7( \xE2\x80\x96 [I] + J_F )"
                          : "[I] + J_F\xC2\xB7J_LN";
    out[3] = tb_arena_printf(a, "lane left after %zu: %s", r->spec.n,
                             tb_show_number(stack_lane(r, 0), lane));
    out[4] = tb_arena_printf(a, "total: %s",
                             tb_show_number(stack_total(r, 0), total));
}

static void two(tb_buf *b, const tb_terminal *term, const char *left,
                const char *right)
{
    size_t used = tb_columns(left);
    tb_term_puts(b, term, left);
    tb_term_pad(b, used < COLUMN ? COLUMN - (int)used : 2);
    tb_term_puts(b, term, right);
    tb_buf_putc(b, '\n');
}

static tb_status term(tb_ctx *ctx, const void *data, const tb_terminal *term,
                      tb_out *out)
{
    const sum *m = data;
    const char *line[2][LINES];
    bool failed = false;
    tb_arena a;
    tb_arena_init(&a, ctx);
    for (size_t i = 0; i < 2; i++) {
        lines_of(&a, m->run[i], i, line[i]);
        for (size_t k = 0; k < LINES; k++)
            failed = failed || !line[i][k];
    }
    bool wide = !failed && tb_terminal_width(term) >= 2 * COLUMN;
    for (size_t k = 0; wide && k < LINES; k++)
        two(&out->buf, term, line[0][k], line[1][k]);
    for (size_t i = 0; !wide && !failed && i < 2; i++)
        for (size_t k = 0; k < LINES; k++)
            tb_term_wrap(&out->buf, term, 2, line[i][k]);
    tb_arena_clear(&a);
    return failed ? TB_ERR_MEMORY : tb_buf_status(&out->buf);
}

static void json(const void *data, tb_json *j)
{
    const sum *m = data;
    tb_json_string(j, "title", "Two blocks");
    tb_json_array(j, "cards");
    for (size_t i = 0; i < 2; i++) {
        tb_json_object(j, NULL);
        tb_json_string(j, "placement", names[i]);
        tb_json_string(j, "equation", m->run[i]->equation);
        tb_json_string(j, "formula", stack_formula(i == 0));
        tb_json_number(j, "lane", stack_lane(m->run[i], 0));
        tb_json_number(j, "total", stack_total(m->run[i], 0));
        tb_json_end(j);
    }
    tb_json_end(j);
}

static const shot_face face = {"cards", scene, term, NULL, json};

/* --- the shot ------------------------------------------------------------- */

static bool booth_on_every_floor(const stack_run *r, int norms)
{
    for (size_t k = 0; k < r->spec.n; k++)
        if (r->floor[k].lane_norms != norms)
            return false;
    return true;
}

static void tell(tb_shot *s, const sum *m)
{
    shot_tell(s, "N", "floors", (double)m->run[0]->spec.n);
    shot_tell(s, "E6.post", "Post-LN: lane at the input",
              stack_lane(m->run[0], 0));
    shot_tell(s, "E6.pre", "Pre-LN: lane at the input",
              stack_lane(m->run[1], 0));
    shot_tell(s, "E7.post", "Post-LN: total at the input",
              stack_total(m->run[0], 0));
    shot_tell(s, "E7.pre", "Pre-LN: total at the input",
              stack_total(m->run[1], 0));
    shot_say(s, "Post-LN: the I stands behind J_LN. After {N} floors {E6.post} "
                "of the lane is left; the total, branches included, is "
                "{E7.post}.");
    shot_say(s, "Pre-LN: the I stands alone. The lane is {E6.pre} at every "
                "depth; the total is {E7.pre}.");
    shot_check_that(s, stack_lane(m->run[1], 0) == 1,
                    "Pre-LN: the lane is exactly 1");
    shot_check_that(s,
                    booth_on_every_floor(m->run[0], 1) &&
                        booth_on_every_floor(m->run[1], 0),
                    "a norm on the lane of every floor left, on none right");
    shot_check_that(s, m->run[0]->std_0 == m->run[1]->std_0,
                    "both get the same numbers at the input");
}

static tb_status build(tb_shot *s)
{
    static const double heights[] = {280, 315 - TITLE, 424 - TITLE};
    sum *m = shot_alloc(s, 1, sizeof *m);
    stack_run *runs = shot_alloc(s, 2, sizeof *runs);
    char post[TB_SHOW_CHARS], pre[TB_SHOW_CHARS];
    if (!m || !runs)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < 2; i++) {
        stack_spec spec = stack_asked(s, i == 0);
        TB_TRY(stack_measure(s, &spec, &runs[i]));
        m->run[i] = &runs[i];
    }
    m->height = heights[shot_choice(s, "size")];
    m->sheet = shot_choice(s, "size") == 2;
    shot_title(s, "Two ingredients, two parking spots",
               shot_text(s,
                         "After %zu floors the lane keeps %s with the norm on "
                         "it, %s with the norm on the branch.",
                         runs[0].spec.n,
                         tb_show_number(stack_lane(&runs[0], 0), post),
                         tb_show_number(stack_lane(&runs[1], 0), pre)));
    shot_below(s, &face, m);
    tell(s, m);
    return TB_OK;
}

const shot_row shot_sum = {
    .name = "SUM",
    .about = "both placements side by side: the I behind a booth, and alone",
    .input = {STACK_INPUTS("24"),
              {"size", "for", TB_SHOT_CHOICE, "page", 0, 0,
               .choices = "page|social|a4"}},
    .build = build,
};
