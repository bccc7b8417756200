/* SPDX-License-Identifier: MIT */
/* Beads on two roads: the branch above, the lane below; empty rings are where
 * a norm could be parked. */
#include "pictures/diagram.h"
#include "pictures/shot_f6.h"

enum {
    WIDTH = 740,
    LANE = 150,
    BRANCH = 80,
    FORK_X = 180,
    ADD_X = 520,
    BEAD = 21 /* radius */
};

/** The places, from the input to the output. */
static const struct place {
    const char *id;
    double x, y;
    size_t flag; /* offset of its bool */
} places[] = {
    {"slot-fork", 116, LANE, offsetof(f6_beads, fork)},
    {"slot-skip", 350, LANE, offsetof(f6_beads, skip)},
    {"slot-before", 254, BRANCH, offsetof(f6_beads, before)},
    {"slot-behind", 446, BRANCH, offsetof(f6_beads, behind)},
    {"slot-merged", 610, LANE, offsetof(f6_beads, merged)},
};

static bool stands(const f6_beads *b, size_t i)
{
    bool on;
    memcpy(&on, (const char *)b + places[i].flag, sizeof on);
    return on;
}

/* --- scene ---------------------------------------------------------------- */

static void roads(tb_scene *s)
{
    tb_style lane = {
        .role = "skip", .id = "lane", .stroke = TB_TONE_LANE, .line = 6};
    tb_style in = {.role = "in-arrow", .stroke = TB_TONE_IN, .line = 3};
    tb_style name = {.role = "label", .size = 15, .bold = true, .italic = true};
    tb_scene_text(s, 16, LANE + 5, "x", &name);
    tb_scene_arrow(s, (double[]){32, LANE, 76, LANE}, 2, &in);
    tb_scene_arrow(s, (double[]){76, LANE, 700, LANE}, 2, &lane);
    tb_scene_text(s, 708, LANE + 5, "x\xE2\x80\xB2", &name);
    tb_part_branch(s, FORK_X, ADD_X, LANE, BRANCH, BEAD);
}

static void bead(tb_scene *s, size_t i, bool on)
{
    tb_style ring = {.role = on ? "norm" : "slot",
                     .id = places[i].id,
                     .title = on ? "a norm is parked here"
                                 : "a norm could be parked here",
                     .fill = on ? TB_TONE_TOLL_SOFT : TB_TONE_PAPER,
                     .stroke = on ? TB_TONE_TOLL : TB_TONE_MUTED,
                     .line = on ? 2.4 : 1.2,
                     .dash = on ? TB_SOLID : TB_DASHED};
    tb_style text = {
        .role = "label", .size = 12, .bold = true, .anchor = TB_MIDDLE};
    tb_scene_circle(s, places[i].x, places[i].y, on ? BEAD : 12, &ring);
    if (on)
        tb_scene_text(s, places[i].x, places[i].y + 4.5, "norm", &text);
}

static void box_and_add(tb_scene *s)
{
    tb_style box = {.role = "box",
                    .id = "box",
                    .fill = TB_TONE_BOX_SOFT,
                    .stroke = TB_TONE_BOX,
                    .line = 2,
                    .round = 8};
    tb_style ring = {.role = "plus",
                     .id = "add",
                     .fill = TB_TONE_PAPER,
                     .stroke = TB_TONE_INK,
                     .line = 2};
    tb_style text = {
        .role = "label", .size = 12, .bold = true, .anchor = TB_MIDDLE};
    tb_scene_rect(s, 350 - 28, BRANCH - 18, 56, 36, &box);
    tb_scene_text(s, 350, BRANCH + 4.5, "box", &text);
    tb_scene_circle(s, ADD_X, LANE, BEAD, &ring);
    tb_scene_text(s, ADD_X, LANE + 4.5, "add", &text);
}

static tb_status scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    const f6_beads *b = data;
    tb_scene *s;
    tb_style equation = {.role = "label", .size = 16, .bold = true};
    tb_style note = {.role = "note", .fill = TB_TONE_MUTED, .size = 12};
    TB_TRY(tb_scene_create(ctx, WIDTH, 216, b->equation, b->label, &s));
    tb_scene_text(s, 14, 24, b->equation, &equation);
    tb_scene_text(s, 14, 44, b->label, &note);
    roads(s);
    for (size_t i = 0; i < TB_LEN(places); i++)
        bead(s, i, stands(b, i));
    box_and_add(s);
    tb_scene_text(s, 14, 204,
                  "Above: the branch. Below: the lane. Rings: where a norm "
                  "could be parked instead.",
                  &note);
    return tb_scene_done(s, out);
}

/* --- text and JSON -------------------------------------------------------- */

static tb_status term(tb_ctx *ctx, const void *data, const tb_terminal *term,
                      tb_out *out)
{
    const f6_beads *b = data;
    tb_arena a;
    tb_arena_init(&a, ctx);
    const char *branch =
        tb_arena_printf(&a,
                        "     \xE2\x94\x8C\xE2\x94\x80%s[box]%s\xE2\x94\x80"
                        "\xE2\x94\x90",
                        b->before ? "(norm)\xE2\x94\x80"
                                  : "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2"
                                    "\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94"
                                    "\x80",
                        b->behind ? "\xE2\x94\x80(norm)"
                                  : "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2"
                                    "\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94"
                                    "\x80");
    const char *lane = tb_arena_printf(
        &a,
        "x \xE2\x94\x80%s\xE2\x94\xB4\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2"
        "\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80%s\xE2\x94\x80\xE2\x94"
        "\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80"
        "\xE2\x94\x80\xE2\x8A\x95%s\xE2\x94\x80\xE2\x96\xBA x'",
        b->fork ? "N\xE2\x94\x80" : "\xE2\x94\x80\xE2\x94\x80",
        b->skip ? "(norm)"
                : "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80"
                  "\xE2\x94\x80",
        b->merged ? "\xE2\x94\x80(norm)" : "");
    tb_term_wrap(&out->buf, term, 2, b->equation);
    if (branch && lane) {
        tb_term_puts(&out->buf, term, branch);
        tb_buf_putc(&out->buf, '\n');
        tb_term_puts(&out->buf, term, lane);
        tb_buf_putc(&out->buf, '\n');
    }
    tb_term_wrap(&out->buf, term, 2, b->label);
    if (b->fork)
        tb_term_wrap(&out->buf, term, 2, "N: a norm before the fork");
    tb_arena_clear(&a);
    return branch && lane ? tb_buf_status(&out->buf) : TB_ERR_MEMORY;
}

static void json(const void *data, tb_json *j)
{
    const f6_beads *b = data;
    tb_json_string(j, "title", b->label);
    tb_json_string(j, "equation", b->equation);
    tb_json_array(j, "norms");
    for (size_t i = 0; i < TB_LEN(places); i++)
        if (stands(b, i))
            tb_json_string(j, NULL, places[i].id + strlen("slot-"));
    tb_json_end(j);
}

const shot_face f6_beads_face = {"beads", scene, term, NULL, json};
