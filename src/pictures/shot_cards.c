/* SPDX-License-Identifier: MIT */
/* Cards as drawn: a number or a box to tick, the question, its answer where it
 * is asked for, and what the engine says. */
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

/* "tollbooth picture S7 --set 'card=b'" */
static const char *command(tb_arena *a, const tb_card *c)
{
    return *c->settings ? tb_arena_printf(a, "tollbooth picture %s --set '%s'",
                                          c->shot, c->settings)
                        : tb_arena_printf(a, "tollbooth picture %s", c->shot);
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

/* The box, or the number. */
static void mark(tb_scene *s, const shot_cards *p, size_t k, double y)
{
    tb_style number = {.role = "label",
                       .id = tb_arena_printf(&s->arena, "item-%zu", k + 1),
                       .fill = TB_TONE_MUTED,
                       .size = 14,
                       .bold = true};
    if (p->boxes)
        tick_box(s, k + 1, y, p->ticked[k]);
    else
        tb_scene_text(s, 20, y, tb_arena_printf(&s->arena, "%zu", k + 1),
                      &number);
}

static double item(tb_scene *s, const shot_cards *p, size_t k, double y)
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
    mark(s, p, k, y);
    y = tb_scene_wrap(s, LEFT, y, w, p->card[k]->question, &bold);
    if (p->reveal)
        y = tb_scene_wrap(s, LEFT, y, w, p->card[k]->answer, &plain);
    engine.fill = proof->ok ? TB_TONE_LANE : TB_TONE_BAD;
    if (*said && (p->boxes || p->reveal))
        y = tb_scene_wrap(s, LEFT, y, w, said, &engine);
    engine.fill = TB_TONE_MUTED;
    if (!p->boxes)
        y = tb_scene_wrap(s, LEFT, y, w, command(&s->arena, p->card[k]),
                          &engine);
    tb_scene_end(s);
    return y + GAP;
}

static tb_status scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    const shot_cards *p = data;
    tb_scene *s;
    double y = 26;
    TB_TRY(tb_scene_create(ctx, WIDTH, 100, p->boxes ? "Checklist" : "Cards",
                           "questions, and what the engine says to them", &s));
    for (size_t k = 0; k < p->n; k++)
        y = item(s, p, k, y);
    tb_scene_resize(s, WIDTH, y - GAP);
    return tb_scene_done(s, out);
}

/* --- text, table, JSON ---------------------------------------------------- */

static tb_status term_item(tb_arena *a, const shot_cards *p, size_t k,
                           const tb_terminal *term, tb_out *out)
{
    const char *head = p->boxes ? p->ticked[k] ? " [x]" : " [ ]" : ".";
    const char *text =
        tb_arena_printf(a, "%zu%s %s", k + 1, head, p->card[k]->question);
    int indent = p->boxes ? 6 : 3;
    if (!text)
        return TB_ERR_MEMORY;
    TB_TRY(tb_text_term(text, indent, term, out));
    text = tb_arena_printf(a, "%*s%s", indent, "", p->card[k]->answer);
    if (p->reveal)
        TB_TRY(tb_text_term(text ? text : "", indent, term, out));
    text = tb_arena_printf(a, "%*sengine: ", indent, "");
    if (p->proof[k].n && (p->boxes || p->reveal))
        TB_TRY(tb_proof_term(a->ctx, text ? text : "", &p->proof[k], indent,
                             term, out));
    if (p->boxes)
        return TB_OK;
    text = command(a, p->card[k]);
    text = text ? tb_arena_printf(a, "%*s%s", indent, "", text) : NULL;
    return text ? tb_text_term(text, indent, term, out) : TB_ERR_MEMORY;
}

static tb_status term(tb_ctx *ctx, const void *data, const tb_terminal *term,
                      tb_out *out)
{
    const shot_cards *p = data;
    const tb_terminal how = term ? *term : (tb_terminal){.width = 0};
    tb_arena a;
    tb_status status = TB_OK;
    tb_arena_init(&a, ctx);
    for (size_t k = 0; k < p->n && status == TB_OK; k++)
        status = term_item(&a, p, k, &how, out);
    tb_arena_clear(&a);
    return status;
}

static tb_status rows(tb_arena *a, const void *data, tb_grid *g)
{
    const shot_cards *p = data;
    const tb_column columns[] = {{.head = p->boxes ? "ticked" : "picture"},
                                 {.head = p->boxes ? "statement" : "question"},
                                 {.head = "answer"},
                                 {.head = "engine"}};
    TB_TRY(tb_grid_init(g, a, p->boxes ? "Equipment checklist" : "Cards",
                        columns, TB_LEN(columns), p->n));
    for (size_t k = 0; k < p->n; k++) {
        tb_grid_text(g, !p->boxes      ? p->card[k]->shot
                        : p->ticked[k] ? "yes"
                                       : "no");
        tb_grid_text(g, p->card[k]->question);
        tb_grid_text(g, p->reveal ? p->card[k]->answer : "");
        tb_grid_text(g, numbers(a, &p->proof[k]));
    }
    return TB_OK;
}

SHOT_GRID_HTML(html, rows)

static void json(const void *data, tb_json *j)
{
    const shot_cards *p = data;
    tb_json_string(j, "title", p->boxes ? "Equipment checklist" : "Cards");
    tb_json_array(j, "items");
    for (size_t k = 0; k < p->n; k++) {
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

const shot_face shot_cards_face = {"checklist", scene, term, html, json};

/* --- reading -------------------------------------------------------------- */

tb_status shot_cards_read(tb_shot *s, const char *deck, shot_cards *out)
{
    size_t proved = 0, held = 0;
    for (size_t i = 0; i < tb_card_count() && out->n < CARDS_MOST; i++) {
        const tb_card *c = tb_card_at(i);
        tb_proof *p = &out->proof[out->n];
        if (!tb_streq(c->deck, deck))
            continue;
        TB_TRY(tb_card_prove(s->ctx, i, p));
        out->card[out->n++] = c;
        proved += p->n > 0;
        held += p->n > 0 && p->ok;
    }
    shot_tell(s, "items", "items", (double)out->n);
    shot_tell(s, "proved", "items with something to compute", (double)proved);
    shot_check_that(s, held == proved && proved > 0,
                    "%zu of %zu numbers are what the answers say", held,
                    proved);
    return TB_OK;
}
