/* SPDX-License-Identifier: MIT */
/* The checklist as drawn: a box to tick, the statement, its answer where it is
 * asked for, and the engine's number. */
#include "pictures/scene.h"
#include "pictures/shot_checklist.h"

enum { WIDTH = 740, LEFT = 52, GAP = 14 };

/* "mean of ...: 5, 4"; "" where there is nothing to compute. */
static const char *numbers(tb_arena *a, const tb_proof *p)
{
    tb_buf b;
    if (!p->n)
        return "";
    tb_buf_init(&b, a->ctx);
    tb_buf_printf(&b, "%s: ", p->what);
    for (size_t i = 0; i < p->n; i++)
        tb_buf_printf(&b, i ? ", %.8g" : "%.8g", p->value[i]);
    if (p->said[0])
        tb_buf_printf(&b, " (%s)", p->said);
    const char *text = b.failed ? NULL : tb_arena_strdup(a, tb_buf_str(&b));
    tb_buf_clear(&b);
    return text;
}

/* --- scene ---------------------------------------------------------------- */

static void tick_box(tb_scene *s, size_t k, double y, bool on)
{
    tb_style box = {.role = "tick-box",
                    .id = tb_arena_printf(&s->arena, "item-%zu", k),
                    .fill = on ? TB_TONE_LANE_SOFT : TB_TONE_PAPER,
                    .stroke = on ? TB_TONE_LANE : TB_TONE_MUTED,
                    .line = 2,
                    .round = 3};
    tb_style tick = {.role = "tick", .stroke = TB_TONE_LANE, .line = 3};
    tb_scene_rect(s, 16, y - 14, 20, 20, &box);
    if (on)
        tb_scene_path(s, (double[]){20, y - 4, 25, y + 1, 33, y - 10}, 3, false,
                      &tick);
}

static double item(tb_scene *s, const checklist *p, size_t k, double y)
{
    tb_style bold = {.role = "label", .size = 14, .bold = true};
    tb_style plain = {.role = "label", .size = 13};
    tb_style engine = {.role = "label", .size = 12, .fill = TB_TONE_LANE};
    const tb_proof *proof = &p->proof[k];
    const char *said = numbers(&s->arena, proof);
    double w = WIDTH - LEFT - 16;
    if (!said) {
        tb_scene_fail(s, TB_ERR_MEMORY);
        return y;
    }
    tb_scene_group(s, &(tb_style){.role = "card"});
    tick_box(s, k + 1, y, p->ticked[k]);
    y = tb_scene_wrap(s, LEFT, y, w, p->card[k]->question, &bold);
    if (p->reveal)
        y = tb_scene_wrap(s, LEFT, y, w, p->card[k]->answer, &plain);
    engine.fill = proof->ok ? TB_TONE_LANE : TB_TONE_BAD;
    if (*said)
        y = tb_scene_wrap(s, LEFT, y, w, said, &engine);
    tb_scene_end(s);
    return y + GAP;
}

static tb_status scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    const checklist *p = data;
    tb_scene *s;
    double y = 26;
    TB_TRY(tb_scene_create(ctx, WIDTH, 100, "Checklist",
                           "eight statements with boxes to tick", &s));
    for (size_t k = 0; k < CHECKLIST && p->card[k]; k++)
        y = item(s, p, k, y);
    tb_scene_resize(s, WIDTH, y - GAP);
    return tb_scene_done(s, out);
}

/* --- text, table, JSON ---------------------------------------------------- */

static tb_status term(tb_ctx *ctx, const void *data, const tb_terminal *term,
                      tb_out *out)
{
    const checklist *p = data;
    const tb_terminal how = term ? *term : (tb_terminal){.width = 0};
    for (size_t k = 0; k < CHECKLIST && p->card[k]; k++) {
        char line[400];
        tb_format(line, sizeof line, "%zu [%c] %s", k + 1,
                  p->ticked[k] ? 'x' : ' ', p->card[k]->question);
        TB_TRY(tb_card_term(ctx, line, 6, &how, out));
        if (p->reveal) {
            tb_format(line, sizeof line, "      %s", p->card[k]->answer);
            TB_TRY(tb_card_term(ctx, line, 6, &how, out));
        }
        if (p->proof[k].n)
            TB_TRY(tb_proof_term(ctx, "      engine: ", &p->proof[k], 6, &how,
                                 out));
    }
    return tb_buf_status(&out->buf);
}

static tb_status rows(tb_arena *a, const checklist *p, tb_out *out)
{
    static const tb_column columns[] = {{.head = "ticked"},
                                        {.head = "statement"},
                                        {.head = "answer"},
                                        {.head = "engine"}};
    tb_grid g;
    TB_TRY(tb_grid_init(&g, a, "Equipment checklist", columns, TB_LEN(columns),
                        CHECKLIST));
    for (size_t k = 0; k < CHECKLIST && p->card[k]; k++) {
        tb_grid_text(&g, p->ticked[k] ? "yes" : "no");
        tb_grid_text(&g, p->card[k]->question);
        tb_grid_text(&g, p->reveal ? p->card[k]->answer : "");
        tb_grid_text(&g, numbers(a, &p->proof[k]));
    }
    return tb_grid_html(&g, out);
}

static tb_status html(tb_ctx *ctx, const void *data, tb_out *out)
{
    tb_arena a;
    tb_arena_init(&a, ctx);
    tb_status status = rows(&a, data, out);
    tb_arena_clear(&a);
    return status;
}

static void json(const void *data, tb_json *j)
{
    const checklist *p = data;
    tb_json_string(j, "title", "Equipment checklist");
    tb_json_array(j, "items");
    for (size_t k = 0; k < CHECKLIST && p->card[k]; k++) {
        tb_json_object(j, NULL);
        tb_json_string(j, "id", p->card[k]->id);
        tb_json_string(j, "statement", p->card[k]->question);
        tb_json_string(j, "answer", p->reveal ? p->card[k]->answer : NULL);
        tb_json_bool(j, "ticked", p->ticked[k]);
        tb_json_tensor(j, "value", TB_F64, p->proof[k].value, 1,
                       &p->proof[k].n);
        tb_json_bool(j, "holds", p->proof[k].ok);
        tb_json_end(j);
    }
    tb_json_end(j);
}

const shot_face checklist_face = {"checklist", scene, term, html, json};
