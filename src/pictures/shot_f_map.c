/* SPDX-License-Identifier: MIT */
/* F-MAP: the foundations as a bottom-up build order. An arrow points to what a
 * section leans on; finished sections are ticked, and those whose ground is
 * laid are marked. */
#include "pictures/scene.h"
#include "pictures/shot_parts.h"

enum { NODES = 6, LEANS = 2, BOX_W = 196, BOX_H = 50 };

static const struct node {
    const char *title, *what;
    size_t leans[LEANS]; /* sections, from 1; 0: no more */
    double x, y;         /* middle of its box */
} nodes[NODES] = {
    {"\xC2\xA7"
     "1 Activation vector x",
     "the list of d dials",
     {0, 0},
     370,
     346},
    {"\xC2\xA7"
     "2 Sublayer F(x)",
     "a list in, a list out",
     {1, 0},
     180,
     252},
    {"\xC2\xA7"
     "3 Residual x + F(x)",
     "the gradient highway",
     {1, 2},
     180,
     158},
    {"\xC2\xA7"
     "4 Mean \xCE\xBC, variance \xCF\x83\xC2\xB2",
     "arithmetic on the dials",
     {1, 0},
     560,
     252},
    {"\xC2\xA7"
     "5 LayerNorm",
     "\xCE\xBC and \xCF\x83 standardise",
     {4, 0},
     560,
     158},
    {"\xC2\xA7"
     "6 Placement",
     "Post-LN or Pre-LN",
     {3, 5},
     370,
     64},
};

typedef struct map {
    bool done[NODES], ready[NODES];
} map;

/* --- scene ---------------------------------------------------------------- */

/* From the dependent box down to what it leans on. */
static void edge(tb_scene *s, size_t from, size_t to, bool laid)
{
    const struct node *a = &nodes[from - 1], *b = &nodes[to - 1];
    double y0 = a->y + BOX_H / 2.0 + 1, y1 = b->y - BOX_H / 2.0 - 2;
    double shift = b->x > a->x ? 40 : b->x < a->x ? -40 : 0;
    double x0 = a->x + shift, x1 = b->x - shift;
    bool past = b->y - a->y > 150; /* two storeys: around the one between */
    tb_style st = {.role = "edge",
                   .id = tb_arena_printf(&s->arena, "edge-%zu-%zu", from, to),
                   .stroke = laid ? TB_TONE_LANE : TB_TONE_MUTED,
                   .line = laid ? 3 : 2,
                   .dash = laid ? TB_SOLID : TB_DASHED,
                   .round = 10};
    double side = a->x - BOX_W / 2.0 - 26;
    if (past)
        tb_scene_arrow(s,
                       (double[]){a->x - BOX_W / 2.0, a->y, side, a->y, side,
                                  b->y, b->x - BOX_W / 2.0 - 2, b->y},
                       4, &st);
    else
        tb_scene_arrow(s, (double[]){x0, y0, x1, y1}, 2, &st);
}

static void box(tb_scene *s, const map *m, size_t k)
{
    const struct node *n = &nodes[k - 1];
    bool done = m->done[k - 1], ready = m->ready[k - 1];
    double x = n->x - BOX_W / 2.0, y = n->y - BOX_H / 2.0;
    tb_style st = {.role = "card",
                   .id = tb_arena_printf(&s->arena, "node-%zu", k),
                   .fill = done ? TB_TONE_LANE_SOFT : TB_TONE_PAPER,
                   .stroke = done    ? TB_TONE_LANE
                             : ready ? TB_TONE_IN
                                     : TB_TONE_MUTED,
                   .line = done || ready ? 2.4 : 1.4,
                   .dash = done || ready ? TB_SOLID : TB_DASHED,
                   .round = 8};
    tb_style title = {.role = "label", .size = 13, .bold = true};
    tb_style what = {.role = "label", .size = 12, .fill = TB_TONE_MUTED};
    tb_scene_rect(s, x, y, BOX_W, BOX_H, &st);
    tb_scene_text(s, x + 10, y + 21, n->title, &title);
    tb_scene_text(s, x + 10, y + 39, n->what, &what);
    if (done) {
        tb_style tick = {.role = "tick",
                         .id = tb_arena_printf(&s->arena, "tick-%zu", k),
                         .stroke = TB_TONE_LANE,
                         .line = 3};
        double at = x + BOX_W - 22;
        tb_scene_path(s,
                      (double[]){at, y + 34, at + 5, y + 40, at + 14, y + 28},
                      3, false, &tick);
    }
}

static tb_status scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    const map *m = data;
    tb_scene *s;
    tb_style note = {.role = "note", .fill = TB_TONE_MUTED, .size = 12};
    TB_TRY(tb_scene_create(ctx, 740, 414, "Build order",
                           "2 leans on 1; 3 on 1 and 2; 4 on 1; 5 on 4; 6 on "
                           "3 and 5",
                           &s));
    for (size_t k = NODES; k > 0; k--)
        for (size_t i = 0; i < LEANS && nodes[k - 1].leans[i]; i++)
            edge(s, k, nodes[k - 1].leans[i],
                 m->done[nodes[k - 1].leans[i] - 1]);
    for (size_t k = 1; k <= NODES; k++)
        box(s, m, k);
    tb_scene_text(s, 14, 402,
                  "An arrow points to what a section leans on. Ticked: "
                  "finished. Solid border: its ground is laid.",
                  &note);
    return tb_scene_done(s, out);
}

/* --- text, table, JSON ---------------------------------------------------- */

static const char *leans_text(tb_arena *a, size_t k)
{
    const size_t *l = nodes[k - 1].leans;
    if (!l[0])
        return "nothing";
    return l[1] ? tb_arena_printf(a, "\xC2\xA7%zu, \xC2\xA7%zu", l[0], l[1])
                : tb_arena_printf(a, "\xC2\xA7%zu", l[0]);
}

static tb_status grid(tb_arena *a, const void *data, tb_grid *g)
{
    const map *m = data;
    static const tb_column columns[] = {{.head = ""},
                                        {.head = "section"},
                                        {.head = "leans on"},
                                        {.head = "what", .priority = 1}};
    TB_TRY(tb_grid_init(g, a, "Build order, from the ground up", columns,
                        TB_LEN(columns), NODES));
    for (size_t k = 1; k <= NODES; k++) {
        tb_grid_text(g, m->done[k - 1]    ? "[x]"
                        : m->ready[k - 1] ? "[ ]"
                                          : " . ");
        tb_grid_text(g, nodes[k - 1].title);
        tb_grid_text(g, leans_text(a, k));
        tb_grid_text(g, nodes[k - 1].what);
    }
    return TB_OK;
}

static tb_status term(tb_ctx *ctx, const void *data, const tb_terminal *term,
                      tb_out *out)
{
    tb_status status = tb_grid_term_of(ctx, grid, data, term, out);
    tb_term_wrap(&out->buf, term, 4,
                 "[x] finished  [ ] its ground is laid   .  not yet");
    return status;
}

SHOT_GRID_HTML(html, grid)

static void json(const void *data, tb_json *j)
{
    const map *m = data;
    tb_json_string(j, "title", "Build order");
    tb_json_array(j, "sections");
    for (size_t k = 1; k <= NODES; k++) {
        tb_json_object(j, NULL);
        tb_json_string(j, "name", nodes[k - 1].title);
        tb_json_array(j, "leans_on");
        for (size_t i = 0; i < LEANS && nodes[k - 1].leans[i]; i++)
            tb_json_int(j, NULL, (int64_t)nodes[k - 1].leans[i]);
        tb_json_end(j);
        tb_json_bool(j, "done", m->done[k - 1]);
        tb_json_bool(j, "ready", m->ready[k - 1]);
        tb_json_end(j);
    }
    tb_json_end(j);
}

static const shot_face face = {"map", scene, term, html, json};

/* --- the shot ------------------------------------------------------------- */

static void tick(tb_shot *s, map *m)
{
    const shot_value *done = shot_get(s, "done");
    for (size_t i = 0; i < done->n; i++)
        if (done->data[i] > 0)
            m->done[(size_t)done->data[i] - 1] = true;
    for (size_t k = 0; k < NODES; k++) {
        m->ready[k] = !m->done[k];
        for (size_t i = 0; i < LEANS && nodes[k].leans[i]; i++)
            m->ready[k] = m->ready[k] && m->done[nodes[k].leans[i] - 1];
    }
}

/* Sections that the highest leans on by the arrows drawn, over any number of
 * steps: arrows are drawn from the highest down. */
static size_t ground(tb_shot *s, const map *m)
{
    bool seen[NODES + 1] = {[NODES] = true};
    size_t n = 0;
    tb_scene *scene = NULL;
    if (s->status == TB_OK)
        s->status = face.scene(s->ctx, m, &scene);
    for (size_t i = 0; s->status == TB_OK && i < scene->count; i++) {
        const tb_style *st = &scene->items[i].style;
        if (tb_streq(st->role, "edge")) /* edge-6-3 */
            seen[st->id[7] - '0'] |= seen[st->id[5] - '0'];
    }
    tb_scene_destroy(scene);
    for (size_t i = 1; i < NODES; i++)
        n += seen[i];
    return n;
}

static void check(tb_shot *s, const map *m)
{
    static const char *const roles[] = {"edge", "tick"};
    bool earlier = true;
    size_t edges = 0, drawn[TB_LEN(roles)], done = 0;
    shot_drawn(s, &face, m, roles, TB_LEN(roles), drawn);
    for (size_t k = 1; k <= NODES; k++)
        for (size_t i = 0; i < LEANS && nodes[k - 1].leans[i]; i++, edges++)
            earlier = earlier && nodes[k - 1].leans[i] < k;
    shot_check_that(s, earlier && drawn[0] == edges,
                    "%zu arrows, each to an earlier section", drawn[0]);
    for (size_t k = 0; k < NODES; k++)
        done += m->done[k];
    shot_check_that(s, drawn[1] == done, "a tick on each finished section: %zu",
                    drawn[1]);
    shot_check_that(s, ground(s, m) == NODES - 1,
                    "placement leans on all %d sections before it, as drawn",
                    NODES - 1);
}

static tb_status build(tb_shot *s)
{
    map *m = shot_alloc(s, 1, sizeof *m);
    size_t done = 0, ready = 0;
    if (!m)
        return TB_ERR_MEMORY;
    tick(s, m);
    for (size_t k = 0; k < NODES; k++) {
        done += m->done[k];
        ready += m->ready[k];
    }
    shot_title(s, "The foundations, in the order they are built",
               "2 leans on 1; 3 on 1 and 2; 4 on 1; 5 on 4; 6 on 3 and 5.");
    shot_below(s, &face, m);
    shot_tell(s, "done", "sections finished", (double)done);
    shot_tell(s, "ready", "sections whose ground is laid", (double)ready);
    shot_say(s, "Finished: {done} of 6 sections. {ready} can be read next.");
    check(s, m);
    return TB_OK;
}

const shot_row shot_f_map = {
    .name = "F-MAP",
    .about = "the build order of the foundations: what leans on what",
    .input = {{"done", "sections finished (0: none)", TB_SHOT_LIST, "[0]", 0,
               NODES, .step = 1, .whole = true, .most = NODES}},
    .build = build,
};
