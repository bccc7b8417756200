/* SPDX-License-Identifier: MIT */
/* Two indices: i counts floors, j counts dials. Rows are the lists x_i of a
 * small stack, as the engine computes them. */
#include "pictures/shot_f6.h"

enum { CELL_W = 72, CELL_H = 34, LEFT = 150, TOP = 74, ROWS = F6_FLOORS + 1 };

typedef struct dials {
    double x[ROWS][F6_DIALS];
    size_t i, j;
} dials;

/* --- numbers -------------------------------------------------------------- */

/* The equation of one floor, with the feed-forward network as its F. */
static const char *one_floor(tb_shot *s, const char *equation)
{
    tb_buf b;
    tb_buf_init(&b, s->ctx);
    for (const char *p = equation; *p; p++) {
        bool call = *p == 'F' && p[1] == '(' &&
                    (p == equation || strchr(" =+-*(", p[-1]));
        if (call)
            tb_buf_puts(&b, "ffn");
        else
            tb_buf_putc(&b, *p);
    }
    tb_buf_puts(&b, "\nx");
    const char *text = b.failed ? NULL : shot_text(s, "%s", tb_buf_str(&b));
    tb_buf_clear(&b);
    return text;
}

/* Each floor takes what the one below it gave, and has weights of its own. */
static tb_status fill(tb_shot *s, const char *equation, dials *p)
{
    static const double start[F6_DIALS] = {2, -1, 0.5, 3, -2, 1};
    const char *text = one_floor(s, equation);
    if (!text)
        return TB_ERR_MEMORY;
    memcpy(p->x[0], start, sizeof start);
    for (size_t i = 1; i < ROWS; i++) {
        const tb_eval_value x = {"x", 1, {F6_DIALS}, p->x[i - 1]};
        tb_eval e = {.text = text,
                     .sets = &x,
                     .nsets = 1,
                     .seed = shot_whole(s, "seed") + i - 1};
        TB_TRY(shot_eval(s, &e, F6_DIALS, p->x[i]));
    }
    return TB_OK;
}

/* --- scene ---------------------------------------------------------------- */

static double y_of(size_t i)
{
    return TOP + (double)(F6_FLOORS - i) * CELL_H;
}

static void cell(tb_scene *s, const dials *p, size_t i, size_t j)
{
    bool row = i == p->i, here = row && j == p->j;
    char text[TB_SHOW_CHARS];
    double x = LEFT + (double)(j - 1) * CELL_W;
    tb_style box = {.role = "bar",
                    .id = tb_arena_printf(&s->arena, "dial-%zu-%zu", i, j),
                    .fill = row ? TB_TONE_IN_SOFT : TB_TONE_PAPER,
                    .stroke = here ? TB_TONE_IN : TB_TONE_GRID,
                    .line = here ? 3 : 1};
    tb_style number = {
        .role = "label", .size = 13, .bold = here, .anchor = TB_MIDDLE};
    tb_scene_rect(s, x + 2, y_of(i) + 2, CELL_W - 4, CELL_H - 4, &box);
    tb_scene_text(s, x + CELL_W / 2.0, y_of(i) + 22,
                  tb_show_number(p->x[i][j - 1], text), &number);
}

/* [ shaped, open toward the numbers. */
static void brackets(tb_scene *s)
{
    tb_style line = {.role = "axis", .stroke = TB_TONE_INK, .line = 2};
    tb_style text = {.role = "label", .size = 13, .bold = true};
    double top = TOP, bottom = TOP + ROWS * CELL_H;
    double right = LEFT + F6_DIALS * CELL_W;
    tb_scene_path(s,
                  (double[]){LEFT - 46, top + 2, LEFT - 56, top + 2, LEFT - 56,
                             bottom - 2, LEFT - 46, bottom - 2},
                  4, false, &line);
    tb_scene_text(s, 14, (top + bottom) / 2 - 4, "i: which", &text);
    tb_scene_text(s, 14, (top + bottom) / 2 + 14, "floor", &text);
    tb_scene_path(s,
                  (double[]){LEFT + 2, bottom + 6, LEFT + 2, bottom + 16,
                             right - 2, bottom + 16, right - 2, bottom + 6},
                  4, false, &line);
    text.anchor = TB_MIDDLE;
    tb_scene_text(s, (LEFT + right) / 2, bottom + 34, "j: which dial", &text);
    tb_style name = {.role = "label",
                     .size = 14,
                     .italic = true,
                     .bold = true,
                     .anchor = TB_END};
    for (size_t i = 0; i < ROWS; i++)
        tb_scene_text(s, LEFT - 8, y_of(i) + 22,
                      tb_subscript(&s->arena, "x", i), &name);
    name.anchor = TB_MIDDLE;
    for (size_t j = 1; j <= F6_DIALS; j++)
        tb_scene_text(s, LEFT + ((double)j - 0.5) * CELL_W, TOP - 8,
                      tb_arena_printf(&s->arena, "j = %zu", j), &name);
}

static tb_status scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    const dials *p = data;
    tb_scene *s;
    char text[TB_SHOW_CHARS];
    TB_TRY(tb_scene_create(ctx, 740, 300, "Two indices",
                           "floors as rows, dials as columns", &s));
    tb_scene_text(s, 14, 22, "Two indices: a floor and a dial",
                  &(tb_style){.size = 15, .bold = true});
    for (size_t i = 0; i < ROWS; i++) {
        tb_scene_group(s, &(tb_style){.role = "floor"});
        for (size_t j = 1; j <= F6_DIALS; j++)
            cell(s, p, i, j);
        tb_scene_end(s);
    }
    brackets(s);
    tb_scene_text(s, LEFT, 44,
                  tb_arena_printf(&s->arena, "i = %zu, j = %zu: %s", p->i, p->j,
                                  tb_show_number(p->x[p->i][p->j - 1], text)),
                  &(tb_style){.role = "label", .size = 14, .fill = TB_TONE_IN});
    tb_scene_resize(s, 740, TOP + ROWS * CELL_H + 50);
    return tb_scene_done(s, out);
}

/* --- text and JSON -------------------------------------------------------- */

static tb_status grid(tb_arena *a, const void *data, tb_grid *g)
{
    const dials *p = data;
    tb_column columns[F6_DIALS + 1];
    columns[0] = (tb_column){.head = "floor i"};
    for (size_t j = 1; j <= F6_DIALS; j++)
        columns[j] = (tb_column){.head = tb_arena_printf(a, "j = %zu", j),
                                 .align = TB_RIGHT,
                                 .priority = j == p->j ? 0 : (int)j};
    TB_TRY(tb_grid_init(g, a, "Two indices: a floor and a dial", columns,
                        F6_DIALS + 1, ROWS));
    for (size_t i = ROWS; i-- > 0;) {
        tb_grid_text(g, tb_arena_printf(a, i == p->i ? "x%zu *" : "x%zu", i));
        for (size_t j = 0; j < F6_DIALS; j++)
            tb_grid_number(g, p->x[i][j]);
    }
    return TB_OK;
}

static tb_status term(tb_ctx *ctx, const void *data, const tb_terminal *term,
                      tb_out *out)
{
    return tb_grid_term_of(ctx, grid, data, term, out);
}

SHOT_GRID_HTML(html, grid)

static void json(const void *data, tb_json *j)
{
    const dials *p = data;
    tb_json_string(j, "title", "Two indices");
    tb_json_int(j, "i", (int64_t)p->i);
    tb_json_int(j, "j", (int64_t)p->j);
    tb_json_tensor(j, "dials", TB_F64, p->x, 2, (size_t[]){ROWS, F6_DIALS});
}

static const shot_face face = {"dials", scene, term, html, json};

tb_status f6_dials(tb_shot *s, const char *equation)
{
    dials *p = shot_alloc(s, 1, sizeof *p);
    if (!p)
        return TB_ERR_MEMORY;
    p->i = shot_whole(s, "i");
    p->j = shot_whole(s, "j");
    TB_TRY(fill(s, equation, p));
    shot_below(s, &face, p);
    shot_tell(s, "i", "floor", (double)p->i);
    shot_tell(s, "j", "dial", (double)p->j);
    shot_tell(s, "d", "dials of a list", F6_DIALS);
    shot_tell(s, "x_ij", "dial j of the list at floor i", p->x[p->i][p->j - 1]);
    shot_say(s, "x with a floor's number is a whole list of {d} dials; x with "
                "a dial's number is one of them. Floor {i}, dial {j}: {x_ij}.");
    return TB_OK;
}
