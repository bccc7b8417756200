/* SPDX-License-Identifier: MIT */
/* One floor from the side, as a scene; in a terminal its numbers. */
#include "pictures/shot_block.h"

#include "pictures/diagram.h"

enum { MARGIN = 12, SIZE = 16 /* of the formula, px */ };

/* y of branch, its way back, lane, its way back, numbers, formula. */
typedef struct rows {
    double branch, branch_back, lane, lane_back, number, formula;
} rows;

static const rows wide = {70, 98, 150, 186, 214, 252};
static const rows close = {58, 84, 124, 154, 0, 194};

typedef struct layout {
    tb_scene *s;
    const shot_block_of *b;
    const stack_floor *f;
    bool post;
    double w;
    rows y;
    double fork, side, box, plus, gate, end; /* x: side and gate for the booth
                                                on branch and lane */
    double half;                             /* of the booth */
    const char *toll;                        /* in it */
} layout;

static void place(layout *l)
{
    double w = l->w - 2 * MARGIN;
    char text[TB_SHOW_CHARS];
    l->fork = MARGIN + 0.1 * w;
    l->side = MARGIN + 0.28 * w;
    l->box = MARGIN + 0.475 * w;
    l->plus = MARGIN + 0.64 * w;
    l->gate = MARGIN + 0.8 * w;
    l->end = MARGIN + 0.93 * w;
    l->toll = l->b->plain ? ""
                          : tb_arena_printf(&l->s->arena, "%s",
                                            tb_show_number(l->f->toll, text));
    l->half = tb_max2(20, tb_text_width(l->toll, 12, false) / 2 + 4);
}

/* --- what comes back ------------------------------------------------------ */

/* Without numbers the block stands for the whole stack. */
static tb_style lane_style(const layout *l, double g, const char *role)
{
    tb_style st =
        tower_lane(l->b->plain && g != 1 ? stack_lane(l->b->run, 0) : g);
    st.role = st.id = role;
    st.line = tb_back_width(g);
    return st;
}

static void number(const layout *l, double x, double y, double v, tb_tone tone)
{
    char text[TB_SHOW_CHARS];
    tb_style st = {.role = "label",
                   .size = 12,
                   .bold = true,
                   .fill = tone,
                   .anchor = TB_MIDDLE};
    if (!l->b->plain)
        tb_plot_label(l->s, x, y, tb_show_number(v, text), &st);
}

static void lane_back(const layout *l)
{
    double g = l->f->local_lane, at = l->post ? l->gate : l->plus;
    tb_style top = lane_style(l, 1, "grad-top");
    tb_style lane = lane_style(l, g, "grad-hw");
    tower_arrow(l->s, l->w - 6, l->y.lane_back,
                at + (l->post ? l->half + 14 : 2), l->y.lane_back, &top);
    number(l, (l->w + at) / 2, l->y.number, 1, TB_TONE_LANE);
    tower_arrow(l->s, l->post ? l->gate - l->half : l->plus, l->y.lane_back,
                l->fork - 22, l->y.lane_back, &lane);
    number(l, l->box, l->y.number, g, tower_lane(g).stroke);
}

static void branch_back(const layout *l)
{
    double g = l->f->local_branch, x = l->plus - 20;
    tb_style st = {.role = "grad-br",
                   .id = "grad-br",
                   .stroke = TB_TONE_BOX,
                   .line = tb_back_width(g)};
    st.round = 8;
    tb_scene_path(l->s,
                  (double[]){x, l->y.lane_back, x, l->y.branch_back,
                             l->fork + 16, l->y.branch_back, l->fork + 16,
                             l->y.lane_back - 8},
                  4, false, &st);
    tower_arrow(l->s, l->fork + 16, l->y.lane_back - 26, l->fork + 16,
                l->y.lane_back - 6, &st);
    number(l, (l->side + l->box) / 2, l->y.branch_back + 26, g, TB_TONE_BOX);
}

/* --- roads ---------------------------------------------------------------- */

static void roads(const layout *l)
{
    tb_style lane = {
        .role = "skip", .id = "skip", .stroke = TB_TONE_LANE, .line = 6};
    tb_style in = {.role = "in-arrow", .stroke = TB_TONE_IN, .line = 3};
    tb_style name = {.role = "label", .size = 15, .bold = true, .italic = true};
    const char *below = "x", *above = "x\xE2\x80\xB2";
    if (!l->b->plain) {
        below = tb_arena_printf(&l->s->arena, "x%zu", l->b->floor - 1);
        above = tb_arena_printf(&l->s->arena, "x%zu", l->b->floor);
    }
    double x = MARGIN + tb_text_width(below, 15, true) + 3;
    tb_scene_text(l->s, MARGIN, l->y.lane + 5, below, &name);
    tb_scene_arrow(l->s, (double[]){x, l->y.lane, l->fork - 2, l->y.lane}, 2,
                   &in);
    tb_scene_line(l->s, l->fork, l->y.lane, l->plus - 13, l->y.lane, &lane);
    lane.id = "out";
    tb_scene_arrow(l->s, (double[]){l->plus + 13, l->y.lane, l->end, l->y.lane},
                   2, &lane);
    tb_scene_text(l->s, l->end + 5, l->y.lane + 5, above, &name);
    tb_part_branch(l->s, l->fork, l->plus, l->y.lane, l->y.branch, 13);
}

/* --- what stands on them -------------------------------------------------- */

static void box(const layout *l)
{
    tb_style st = {.role = "box",
                   .id = "box",
                   .fill = TB_TONE_BOX_SOFT,
                   .stroke = TB_TONE_BOX,
                   .line = 1.8,
                   .round = 7};
    tb_style text = {
        .role = "label", .size = 14, .bold = true, .anchor = TB_MIDDLE};
    const char *label = l->b->run->spec.factor == 1
                            ? "F"
                            : tb_arena_printf(&l->s->arena,
                                              "%g\xC2\xB7"
                                              "F",
                                              l->b->run->spec.factor);
    double half = tb_max2(22, tb_text_width(label, 14, true) / 2 + 5);
    if (l->b->plain) { /* the equation above has the factor */
        label = "F";
        half = 20;
    }
    tb_scene_rect(l->s, l->box - half, l->y.branch - 18, 2 * half,
                  l->y.branch_back - l->y.branch + 30, &st);
    tb_scene_text(l->s, l->box, l->y.branch + 5, label, &text);
}

/* Body and roof, a barrier over each road on the side that is driven to. */
static void booth(const layout *l, double x, double road, double back)
{
    double top = road - 18, high = back - road + 30, half = l->half;
    tb_style group = {
        .role = "norm",
        .id = "booth",
        .title = l->post ? "norm on the merged lane: all that comes back "
                           "passes it"
                         : "norm on the branch: the lane passes none"};
    tb_style body = {.fill = TB_TONE_TOLL_SOFT,
                     .stroke = TB_TONE_TOLL,
                     .line = 1.8,
                     .round = 3};
    tb_style roof = {.fill = TB_TONE_TOLL};
    tb_style text = {
        .role = "label", .size = 13, .bold = true, .anchor = TB_MIDDLE};
    tb_style small = {.role = "label", .size = 12, .anchor = TB_MIDDLE};
    tb_scene_group(l->s, &group);
    tb_scene_rect(l->s, x - half, top, 2 * half, high, &body);
    tb_scene_path(l->s,
                  (double[]){x - half - 4, top, x - half + 3, top - 8,
                             x + half - 3, top - 8, x + half + 4, top},
                  4, true, &roof);
    tb_part_barrier(l->s, x - half - 6, road);
    tb_part_barrier(l->s, x + half + 6, back);
    tb_scene_text(l->s, x, road + 5, "LN", &text);
    tb_scene_text(l->s, x, back + 6, l->toll, &small);
    tb_scene_end(l->s);
}

/* --- formula -------------------------------------------------------------- */

typedef struct piece {
    const char *text;
    tb_tone tone;
    bool boxed, barrier; /* a frame around it; a barrier before it */
} piece;

/* J_LN, and J_LN with what it is taken at; of Post-LN, of Pre-LN. */
static const char *const norm_names[][2] = {{"J_LN", "J_LN(x + F(x))"},
                                            {"J_LN", "J_LN(x)"}};

static const piece post_pieces[] = {{NULL, TB_TONE_TOLL, false, false},
                                    {"\xC2\xB7(", TB_TONE_INK, false, false},
                                    {"I", TB_TONE_LANE, true, true},
                                    {"+", TB_TONE_INK, false, false},
                                    {"\xE2\x88\x82"
                                     "F/\xE2\x88\x82x",
                                     TB_TONE_BOX, false, false},
                                    {")", TB_TONE_INK, false, false}};
static const piece pre_pieces[] = {{"I", TB_TONE_LANE, true, false},
                                   {"+", TB_TONE_INK, false, false},
                                   {"\xE2\x88\x82"
                                    "F/\xE2\x88\x82x",
                                    TB_TONE_BOX, false, false},
                                   {"\xC2\xB7", TB_TONE_INK, false, false},
                                   {NULL, TB_TONE_TOLL, false, false}};

static double piece_width(const piece *p, const char *text)
{
    return tb_text_width(text, SIZE, true) + (p->boxed ? 18 : 0) +
           (p->barrier ? 14 : 0);
}

void block_formula(tb_scene *s, double x, double y, double width, bool post,
                   bool full)
{
    const char *norm = norm_names[!post][full];
    const piece *all = post ? post_pieces : pre_pieces;
    size_t n = post ? TB_LEN(post_pieces) : TB_LEN(pre_pieces);
    double w = 5 * ((double)n - 1);
    for (size_t i = 0; i < n; i++)
        w += piece_width(&all[i], all[i].text ? all[i].text : norm);
    x += (width - w) / 2;
    tb_scene_group(s, &(tb_style){.role = "jac", .id = "formula"});
    for (size_t i = 0; i < n; i++) {
        const char *name = all[i].text ? all[i].text : norm;
        double own = piece_width(&all[i], name), left = x;
        tb_style text = {.role = "label",
                         .size = SIZE,
                         .bold = true,
                         .fill = all[i].tone,
                         .anchor = TB_MIDDLE};
        tb_style frame = {.role = "diag",
                          .id = "identity",
                          .fill = TB_TONE_LANE_SOFT,
                          .stroke = TB_TONE_LANE,
                          .line = 2,
                          .round = 4};
        if (all[i].barrier) {
            tb_part_barrier(s, left + 4, y - 5);
            left += 14;
        }
        if (all[i].boxed)
            tb_scene_rect(s, left, y - 18, x + own - left, 25, &frame);
        tb_scene_text(s, (left + x + own) / 2, y, name, &text);
        x += own + 5;
    }
    tb_scene_end(s);
}

/* --- all of it ------------------------------------------------------------ */

static void draw(layout *l)
{
    double w = l->w, y = l->y.formula, room = w - 2 * MARGIN;
    bool fits = tb_text_width(l->b->title, 15, true) <= room;
    tb_style bold = {.size = fits ? 15 : 13, .bold = true};
    tb_style note = {.role = "note", .fill = TB_TONE_MUTED, .size = 12};
    place(l);
    tb_scene_text(
        l->s, MARGIN, 22,
        tb_shorten_px(&l->s->arena, l->b->title, room, bold.size, true), &bold);
    branch_back(l);
    lane_back(l);
    roads(l);
    box(l);
    if (l->post)
        booth(l, l->gate, l->y.lane, l->y.lane_back);
    else
        booth(l, l->side, l->y.branch, l->y.branch_back);
    tb_part_plus(l->s, l->plus, l->y.lane, 13);
    block_formula(l->s, 0, y, w, l->post, !l->b->plain);
    if (l->b->note) {
        y = tb_scene_wrap(l->s, MARGIN, y + 28, room, l->b->note, &note) - 16;
    }
    tb_scene_resize(l->s, w, y + 16);
}

static tb_status scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    const shot_block_of *b = data;
    layout l = {.b = b,
                .f = &b->run->floor[b->floor - 1],
                .post = b->run->spec.post,
                .y = b->plain ? close : wide,
                .w = b->width > 0 ? b->width : 740};
    char lane[TB_SHOW_CHARS], branch[TB_SHOW_CHARS];
    TB_TRY(tb_scene_create(ctx, l.w, 300, b->title, "block", &l.s));
    const char *desc = tb_arena_printf(
        &l.s->arena,
        "%s: the norm stands on the %s. Of a signal of length 1 that arrives "
        "from above, %s goes on along the lane and %s through the branch.",
        b->run->equation, l.post ? "merged lane" : "branch",
        tb_show_number(l.f->local_lane, lane),
        tb_show_number(l.f->local_branch, branch));
    if (desc)
        tb_scene_describe(l.s, desc);
    draw(&l);
    return tb_scene_done(l.s, out);
}

static tb_status term(tb_ctx *ctx, const void *data, const tb_terminal *term,
                      tb_out *out)
{
    const shot_block_of *b = data;
    const stack_floor *f = &b->run->floor[b->floor - 1];
    tb_arena a;
    char lane[TB_SHOW_CHARS], branch[TB_SHOW_CHARS], toll[TB_SHOW_CHARS];
    tb_arena_init(&a, ctx);
    tb_term_wrap(&out->buf, term, 2, b->title);
    tb_term_wrap(
        &out->buf, term, 2,
        b->run->spec.post
            ? "  x \xE2\x94\x80\xE2\x94\xAC\xE2\x94\x80[F]\xE2\x94\x80"
              "\xE2\x8A\x95\xE2\x94\x80\xE2\x96\xA3\xE2\x94\x80\xE2\x96\xBA"
            : "  x \xE2\x94\x80\xE2\x94\xAC\xE2\x96\xA3[F]\xE2\x94\x80"
              "\xE2\x8A\x95\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x96\xBA");
    const char *text = tb_arena_printf(
        &a, "toll %s; of 1 that arrives, lane %s, branch %s",
        tb_show_number(f->toll, toll), tb_show_number(f->local_lane, lane),
        tb_show_number(f->local_branch, branch));
    if (text)
        tb_term_wrap(&out->buf, term, 2, text);
    text =
        tb_arena_printf(&a, "derivative: %s", stack_formula(b->run->spec.post));
    if (text)
        tb_term_wrap(&out->buf, term, 2, text);
    if (b->note)
        tb_term_wrap(&out->buf, term, 2, b->note);
    tb_arena_clear(&a);
    return text ? tb_buf_status(&out->buf) : TB_ERR_MEMORY;
}

static void json(const void *data, tb_json *j)
{
    const shot_block_of *b = data;
    const stack_floor *f = &b->run->floor[b->floor - 1];
    tb_json_string(j, "title", b->title);
    tb_json_string(j, "equation", b->run->equation);
    tb_json_string(j, "formula", stack_formula(b->run->spec.post));
    tb_json_string(j, "booths", b->run->spec.post ? "lane" : "branch");
    tb_json_int(j, "floor", (int64_t)b->floor);
    tb_json_number(j, "toll", f->toll);
    tb_json_number(j, "local_lane", f->local_lane);
    tb_json_number(j, "local_branch", f->local_branch);
    tb_json_number(j, "local_cos", f->local_cos);
}

const shot_face shot_block = {"block", scene, term, NULL, json};
