/* SPDX-License-Identifier: MIT */
/* F6: where the norm is parked. Beads on two roads are a picture of the
 * equation: they are read off its graph, and the equation that they spell has
 * the same graph again. Below, what the two indices mean. */
#include "pictures/shot_drawn.h"
#include "pictures/shot_f6.h"

/** Where a norm may stand: before the fork, on the skip, on the branch before
 * and after the box, on the lane after the plus. */
enum { FORK = 1, SKIP = 2, BEFORE = 4, BEHIND = 8, MERGED = 16 };

static const struct order {
    unsigned slots;
    const char *label;
} orders[] = {
    /* the choices of `order`, in their order */
    {MERGED, "Post-LN: add, then norm"},
    {BEFORE, "Pre-LN: norm, box, add"},
    {BEFORE | BEHIND, "sandwich: norm, box, norm, add"},
    {SKIP | BEFORE, "both roads normed: x = norm(x) + F(norm(x))"},
    {BEHIND, "norm on what the branch adds"},
    {BEFORE | MERGED, "a norm on the branch and one on the lane"},
    {SKIP, "a norm on the skip alone"},
    {FORK, "a norm before the fork: the skip carries its output"},
    {0, "no norm"},
};
#define ORDERS "post|pre|sandwich|both|output|double|skip|fork|none"

static const char *label_of(unsigned slots)
{
    for (size_t i = 0; i < TB_LEN(orders); i++)
        if (orders[i].slots == slots)
            return orders[i].label;
    return "a block of its own";
}

/* --- from beads to the equation ------------------------------------------- */

static const char *normed(tb_shot *s, bool norm, const char *what)
{
    return norm ? shot_text(s, "norm(%s)", what) : what;
}

static const char *spell(tb_shot *s, unsigned slots)
{
    const char *x = slots & FORK ? "n" : "x";
    const char *in = normed(s, slots & BEFORE, x);
    const char *f = in ? shot_text(s, "F(%s)", in) : NULL;
    const char *out = f ? normed(s, slots & BEHIND, f) : NULL;
    const char *skip = normed(s, slots & SKIP, x);
    const char *sum = out && skip ? shot_text(s, "%s + %s", skip, out) : NULL;
    const char *all = sum ? normed(s, slots & MERGED, sum) : NULL;
    if (!all)
        return NULL;
    return shot_text(s, slots & FORK ? "n = norm(x); x = %s" : "x = %s", all);
}

/* --- from the graph to beads ---------------------------------------------- */

/* NORM? BOX NORM?, into *slots. */
static bool read_branch(const tb_diagram_branch *b, unsigned *slots)
{
    size_t boxes = 0;
    for (size_t i = 0; i < b->n; i++) {
        unsigned at = boxes ? BEHIND : BEFORE;
        bool norm = b->parts[i].kind == TB_DIAGRAM_NORM;
        if (norm ? (*slots & at) != 0 : b->parts[i].kind != TB_DIAGRAM_BOX)
            return false;
        if (norm)
            *slots |= at;
        else
            boxes++;
    }
    return boxes == 1;
}

/* Is the block one plus with one box, and at most one norm in each place? */
static bool read_beads(const tb_diagram *d, unsigned *slots)
{
    size_t plus = d->count;
    *slots = 0;
    for (size_t i = 0; i < d->count; i++)
        if (d->items[i].part.kind == TB_DIAGRAM_PLUS && plus == d->count)
            plus = i;
    if (plus == d->count || d->items[plus].n != 1 ||
        !read_branch(d->items[plus].branches, slots))
        return false;
    size_t fork = plus - d->items[plus].branches[0].span;
    for (size_t i = 0; i < d->count; i++) {
        unsigned at = i < fork ? FORK : i < plus ? SKIP : MERGED;
        if (i == plus)
            continue;
        if (d->items[i].part.kind != TB_DIAGRAM_NORM || *slots & at)
            return false;
        *slots |= at;
    }
    return true;
}

/* --- the claims ----------------------------------------------------------- */

static tb_status same_graph(tb_shot *s, const tb_block *b, const char *text,
                            bool *same)
{
    const tb_settings set = TB_SETTINGS_UNSET;
    tb_block *other;
    tb_expected e = {.same = false};
    tb_out *why;
    TB_TRY(tb_block_load(s->ctx, text, &other));
    tb_status status = tb_out_create(s->ctx, &why);
    if (status == TB_OK) {
        status = tb_explain_expect(s->ctx, b, other, &set, &e, why);
        tb_out_destroy(why);
    }
    tb_block_destroy(s->ctx, other);
    *same = e.same;
    return status;
}

static int count_lane(unsigned slots)
{
    return ((slots & FORK) != 0) + ((slots & SKIP) != 0) +
           ((slots & MERGED) != 0);
}

static tb_status check(tb_shot *s, const tb_block *b, unsigned slots,
                       const tb_explained *e)
{
    const tb_lane_info *lane = &e->kinds[0].info;
    int sublayers = e->kinds[0].g->nregions;
    const char *text = spell(s, slots);
    if (text && e->final.tolls)
        text = shot_text(s, "%s; final: x = norm(x)", text);
    bool same;
    if (!text)
        return TB_ERR_MEMORY;
    TB_TRY(same_graph(s, b, text, &same));
    shot_check_that(s, same, "the beads spell %s, the same graph", text);
    shot_check_that(s, lane->tolls == count_lane(slots) * sublayers,
                    "beads on the lane are the graph's norms on the lane: %d "
                    "in a block of %d sublayers",
                    lane->tolls, sublayers);
    return TB_OK;
}

/* --- panels --------------------------------------------------------------- */

/* *text: the equation that the beads spell, NULL if there are none. */
static tb_status put_beads(tb_shot *s, const tb_block *b, const tb_diagram *d,
                           const tb_explained *e, const char **text)
{
    unsigned slots;
    *text = NULL;
    if (e->nkinds > 1 || !read_beads(d, &slots)) {
        shot_title(s, "A block without beads",
                   "a block that is not one box, one plus "
                   "and norms");
        shot_say(s, "This block is more than one box, one plus and norms: it "
                    "has no beads, only a drawing.");
        shot_check_that(s, d->count > 0, "the block can be drawn");
        return TB_OK;
    }
    f6_beads *p = shot_alloc(s, 1, sizeof *p);
    if (!p)
        return TB_ERR_MEMORY;
    *p = (f6_beads){.fork = slots & FORK,
                    .skip = slots & SKIP,
                    .before = slots & BEFORE,
                    .behind = slots & BEHIND,
                    .merged = slots & MERGED,
                    .label = label_of(slots),
                    .equation = spell(s, slots)};
    *text = p->equation;
    shot_title(
        s, "Where the norm is parked",
        shot_text(s, "%s. %s.", p->equation ? p->equation : "", p->label));
    shot_below(s, &f6_beads_face, p);
    shot_tell(s, "tolls", "norms on the lane of one sublayer",
              count_lane(slots));
    shot_say(s, slots & (FORK | SKIP | MERGED)
                    ? "Norms on the lane: {tolls}. What comes back along the "
                      "skip passes every one of them."
                    : "Norms on the lane: {tolls}. The skip carries x as it "
                      "is.");
    return check(s, b, slots, e);
}

static tb_status draw(tb_shot *s, const tb_block *b, const char **text)
{
    const tb_settings set = TB_SETTINGS_UNSET;
    tb_explained e;
    tb_diagram *d;
    TB_TRY(shot_explain(s, b, &set, &e, &d));
    tb_status status = put_beads(s, b, d, &e, text);
    tb_explained_close(&e);
    TB_TRY(status);
    d->title = "The same equation as a diagram of its graph";
    shot_below(s, &shot_diagram, d);
    return TB_OK;
}

static tb_status build(tb_shot *s)
{
    const char *text = shot_get(s, "equation")->text;
    tb_block *b;
    if (!*text)
        text = spell(s, orders[shot_choice(s, "order")].slots);
    if (!text)
        return TB_ERR_MEMORY;
    TB_TRY(tb_block_load(s->ctx, text, &b));
    const char *beads = NULL;
    tb_status status = draw(s, b, &beads);
    tb_block_destroy(s->ctx, b);
    TB_TRY(status);
    if (!beads && (strchr(text, ':') || !strchr(text, '=')))
        return TB_OK; /* sections: no single equation to run */
    return f6_dials(s, beads ? beads : text);
}

const shot_row shot_f6 = {
    .name = "F6",
    .about = "two placements: the order of add, norm and box; floors and dials",
    .input = {{"order", "order of the beads", TB_SHOT_CHOICE, "post", 0, 0,
               .choices = ORDERS},
              {"equation", "equation (instead of an order)", TB_SHOT_TEXT, "",
               0, 0, .step = 0},
              {"i", "floor i", TB_SHOT_NUMBER, "2", 0, F6_FLOORS, .step = 1,
               .whole = true},
              {"j", "dial j", TB_SHOT_NUMBER, "3", 1, F6_DIALS, .step = 1,
               .whole = true},
              {"seed", "seed", TB_SHOT_NUMBER, "1", 0, 1e6, .step = 1,
               .whole = true}},
    .build = build,
};
