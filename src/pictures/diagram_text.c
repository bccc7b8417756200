/* SPDX-License-Identifier: MIT */
/* A block diagram as characters, bottom to top: names left, then the lane,
 * branches to its right, lane gains at the far right.
 *
 *        x' ^                     1
 *  toll .71 #                 0.707
 *           +<-[attn]<-+
 *           +----------+
 *         x ^                 0.707
 */
#include "pictures/wiring.h"

enum {
    NAME = 13, /* columns left of the lane */
    GAIN = 8,  /* columns at the far right */
    LANE = NAME + 1,
    UP = 0x25B2,
    LEFT = 0x25C4,
    ACROSS = 0x2500,
    DOWN = 0x2502,
    FORK = 0x251C,
    CORNER_UP = 0x2510,   /* join row to riser */
    CORNER_DOWN = 0x2518, /* fork row to riser */
    CROSS = 0x253C,
    ADD = 0x2295,
    BOOTH = 0x25A3,
    DOT = 0x25A0
};

typedef struct text_layout {
    const tb_diagram *d;
    const tb_terminal *term;
    tb_arena arena;
    tb_route *routes;
    size_t n_routes;
    int levels;
    int label_max; /* columns of a part's label */
    int *riser;    /* column of each level, from 1 */
    size_t *flat;  /* of a route: parts on the join row */
    int *fork_row, *join_row;
    int rows, in_row; /* in_row: of the block's input */
    tb_canvas canvas;
} text_layout;

/* --- columns ------------------------------------------------------------ */

static bool symbol_only(const tb_diagram_part *p)
{
    return p->kind == TB_DIAGRAM_NORM;
}

/* "[attn]", or one booth. */
static int part_columns(text_layout *t, const tb_diagram_part *p)
{
    if (symbol_only(p))
        return 1;
    size_t n = tb_columns(tb_part_label(&t->arena, p));
    size_t max = (size_t)t->label_max;
    return 2 + (int)(n < max ? n : max);
}

/* "<-[F]<-#<-": arrow and part, for the parts on the join row. */
static int flat_columns(text_layout *t, const tb_route *r, size_t flat)
{
    int w = 3;
    for (size_t i = 0; i < flat; i++)
        w += 2 + part_columns(t, &r->branch->parts[r->branch->n - 1 - i]);
    return w;
}

/* Risers of rising levels go further right; false if the last is too far. */
static bool fits(text_layout *t, size_t most_flat)
{
    int right = tb_terminal_width(t->term) - GAIN - 1;
    bool upright = false;
    t->riser[0] = LANE;
    for (int level = 1; level <= t->levels; level++) {
        int at = t->riser[level - 1] + 3;
        for (size_t i = 0; i < t->n_routes; i++) {
            const tb_route *r = &t->routes[i];
            if (r->level != level)
                continue;
            t->flat[i] = r->branch->n < most_flat ? r->branch->n : most_flat;
            upright = upright || t->flat[i] < r->branch->n;
            int need = LANE + flat_columns(t, r, t->flat[i]);
            at = need > at ? need : at;
        }
        t->riser[level] = at;
    }
    /* parts standing on the riser write their label to its right */
    return t->riser[t->levels] + (upright ? 3 + t->label_max : 0) <= right;
}

static void choose_columns(text_layout *t)
{
    for (size_t flat = 8; flat > 0; flat--)
        for (t->label_max = 14; t->label_max >= 3; t->label_max--)
            if ((t->label_max >= 6 || flat == 1) && fits(t, flat))
                return;
    t->label_max = 3;
    fits(t, 0);
}

/* --- rows, from the bottom ---------------------------------------------- */

static void choose_rows(text_layout *t, int *item_row)
{
    int row = 1; /* 0 is the input's name */
    for (size_t i = 0; i < t->d->count; i++) {
        if (i && i == t->d->before)
            t->in_row = row++;
        for (size_t r = t->n_routes; r-- > 0;) /* outer forks lie lower */
            if (t->routes[r].from == i)
                t->fork_row[r] = row++;
        item_row[i] = row;
        bool joined = false;
        for (size_t r = 0; r < t->n_routes; r++) {
            if (t->routes[r].to != i)
                continue;
            size_t upright = t->routes[r].branch->n - t->flat[r];
            row += upright ? (int)upright : !joined;
            t->join_row[r] = row++;
            item_row[i] = t->join_row[r];
            joined = true;
        }
        row += !joined;
    }
    t->rows = row + 1;
}

/* --- drawing ------------------------------------------------------------ */

/* y of the canvas for a row counted from the bottom */
static int y_of(const text_layout *t, int row)
{
    return t->canvas.h - 1 - row;
}

static void name(text_layout *t, int row, const char *text)
{
    const char *cut = tb_shorten(&t->arena, text, NAME);
    if (cut)
        tb_canvas_text(&t->canvas, NAME - (int)tb_columns(cut), y_of(t, row),
                       cut);
    else
        t->canvas.failed = true;
}

static void gain(text_layout *t, int row, size_t i)
{
    char text[TB_SHOW_CHARS];
    if (!t->d->gains)
        return;
    tb_show_number(t->d->gains[i], text);
    int right = t->riser[t->levels] + 4 + GAIN;
    int max = tb_terminal_width(t->term);
    for (size_t r = 0; r < t->n_routes; r++)
        if (t->flat[r] < t->routes[r].branch->n)
            right = max;
    tb_canvas_text(&t->canvas, (right < max ? right : max) - (int)strlen(text),
                   y_of(t, row), text);
}

static int put_part(text_layout *t, int x, int y, const tb_diagram_part *p)
{
    if (symbol_only(p)) {
        tb_canvas_put(&t->canvas, x, y, BOOTH);
        return x + 1;
    }
    const char *label = tb_shorten(&t->arena, tb_part_label(&t->arena, p),
                                   (size_t)t->label_max);
    if (!label) {
        t->canvas.failed = true;
        return x;
    }
    x = tb_canvas_text(&t->canvas, x, y, "[");
    x = tb_canvas_text(&t->canvas, x, y, label);
    return tb_canvas_text(&t->canvas, x, y, "]");
}

static void across(text_layout *t, int x0, int x1, int y)
{
    for (int x = x0; x < x1; x++)
        tb_canvas_put(&t->canvas, x, y,
                      tb_canvas_get(&t->canvas, x, y) == DOWN
                          ? (uint32_t)CROSS
                          : (uint32_t)ACROSS);
}

static void route(text_layout *t, size_t which)
{
    const tb_route *r = &t->routes[which];
    int riser = t->riser[r->level];
    int top = y_of(t, t->join_row[which]);
    int bottom = y_of(t, t->fork_row[which]);
    tb_canvas_put(&t->canvas, LANE, bottom, FORK);
    across(t, LANE + 1, riser, bottom);
    tb_canvas_put(&t->canvas, riser, bottom, CORNER_DOWN);
    for (int y = top + 1; y < bottom; y++)
        tb_canvas_put(&t->canvas, riser, y,
                      tb_canvas_get(&t->canvas, riser, y) == ACROSS
                          ? (uint32_t)CROSS
                          : (uint32_t)DOWN);
    tb_canvas_put(&t->canvas, LANE, top, ADD);
    across(t, LANE + 1, riser, top);
    tb_canvas_put(&t->canvas, riser, top, CORNER_UP);
    tb_canvas_put(&t->canvas, LANE + 1, top, LEFT);
    int x = LANE + 3;
    size_t n = r->branch->n;
    for (size_t i = 0; i < t->flat[which]; i++) {
        x = put_part(t, x, top, &r->branch->parts[n - 1 - i]);
        if (i + 1 < t->flat[which])
            tb_canvas_put(&t->canvas, x, top, LEFT);
        x += 2;
    }
    for (size_t i = t->flat[which]; i < n; i++) { /* standing on the riser */
        const tb_diagram_part *p = &r->branch->parts[n - 1 - i];
        int y = top + 1 + (int)(i - t->flat[which]);
        tb_canvas_put(&t->canvas, riser, y, symbol_only(p) ? BOOTH : DOT);
        const char *label = tb_shorten(&t->arena, tb_part_label(&t->arena, p),
                                       (size_t)t->label_max);
        if (label)
            tb_canvas_text(&t->canvas, riser + 2, y, label);
        else
            t->canvas.failed = true;
    }
}

static void item(text_layout *t, size_t i, int row)
{
    const tb_diagram_item *it = &t->d->items[i];
    char text[TB_SHOW_CHARS];
    bool norm = it->part.kind == TB_DIAGRAM_NORM;
    if (it->part.kind == TB_DIAGRAM_PLUS) {
        tb_canvas_put(&t->canvas, LANE, y_of(t, row), ADD);
        return;
    }
    tb_canvas_put(&t->canvas, LANE, y_of(t, row), norm ? BOOTH : DOT);
    const char *label = tb_part_label(&t->arena, &it->part);
    if (norm && t->d->tolls && label)
        label = tb_arena_printf(&t->arena, "%s %s", label,
                                tb_show_number(t->d->tolls[i], text));
    name(t, row, label ? label : "");
}

static tb_status draw(text_layout *t, tb_buf *b)
{
    int *item_row =
        tb_arena_alloc(&t->arena, (t->d->count + 1) * sizeof *item_row);
    if (!item_row)
        return TB_ERR_MEMORY;
    choose_columns(t);
    choose_rows(t, item_row);
    TB_TRY(tb_canvas_init(&t->canvas, &t->arena, tb_terminal_width(t->term),
                          t->rows));
    for (int row = 0; row < t->rows; row++)
        tb_canvas_put(&t->canvas, LANE, y_of(t, row), DOWN);
    for (size_t r = t->n_routes; r-- > 0;)
        route(t, r);
    for (size_t i = 0; i < t->d->count; i++) {
        item(t, i, item_row[i]);
        bool changes = t->d->gains && t->d->gains[i] != t->d->gains[i + 1];
        if (changes || t->d->items[i].part.kind == TB_DIAGRAM_NORM)
            gain(t, item_row[i], i);
    }
    tb_canvas_put(&t->canvas, LANE, y_of(t, 0), UP);
    tb_canvas_put(&t->canvas, LANE, y_of(t, t->rows - 1), UP);
    tb_canvas_put(&t->canvas, LANE, y_of(t, t->in_row), UP);
    name(t, 0, tb_diagram_foot(t->d));
    if (t->in_row)
        name(t, t->in_row, t->d->in_label ? t->d->in_label : "x");
    name(t, t->rows - 1, t->d->out_label ? t->d->out_label : "x'");
    gain(t, 0, 0);
    gain(t, t->rows - 1, t->d->count);
    tb_canvas_flush(&t->canvas, tb_terminal_ascii(t->term), b);
    return t->canvas.failed ? TB_ERR_MEMORY : TB_OK;
}

void tb_diagram_repeat_term(const tb_diagram *d, bool before, const char *end,
                            const tb_terminal *term, tb_buf *b)
{
    char text[80];
    if (!d->depth)
        return;
    tb_format(text, sizeof text, "%s%s%s%s%zu block%s", before ? "from x" : "",
              before && end ? " " : "", end ? end : "",
              before || end ? ": " : "", d->depth, d->depth == 1 ? "" : "s");
    tb_term_wrap(b, term, 2, text);
}

static void legend(const text_layout *t, tb_buf *b)
{
    bool after = tb_diagram_in_block(t->d) < t->d->count;
    tb_diagram_repeat_term(t->d, t->d->before > 0,
                           after ? "up to the last addition" : NULL, t->term,
                           b);
    tb_term_wrap(b, t->term, 2,
                 t->d->gains
                     ? "\xE2\x96\xA3 norm (tollbooth)  \xE2\x8A\x95 add  "
                       "right: lane gain from the top"
                     : "\xE2\x96\xA3 norm (tollbooth)  \xE2\x8A\x95 add");
    if (t->d->formula)
        tb_term_wrap(b, t->term, 2, t->d->formula);
}

static tb_status put(text_layout *t, tb_buf *b)
{
    t->routes = tb_diagram_routes(&t->arena, t->d, &t->n_routes, &t->levels);
    size_t n = t->n_routes + 1;
    t->riser =
        tb_arena_alloc(&t->arena, ((size_t)t->levels + 1) * sizeof *t->riser);
    t->flat = tb_arena_alloc(&t->arena, n * sizeof *t->flat);
    t->fork_row = tb_arena_alloc(&t->arena, n * sizeof *t->fork_row);
    t->join_row = tb_arena_alloc(&t->arena, n * sizeof *t->join_row);
    if (!t->routes || !t->riser || !t->flat || !t->fork_row || !t->join_row)
        return TB_ERR_MEMORY;
    tb_term_wrap(b, t->term, 2, t->d->title);
    if (t->d->wired)
        return tb_wiring_term(&t->arena, t->d, t->term, b);
    TB_TRY(draw(t, b));
    legend(t, b);
    return tb_buf_status(b);
}

tb_status tb_diagram_term(tb_ctx *ctx, const tb_diagram *d,
                          const tb_terminal *term, tb_out *out)
{
    TB_TRY(tb_diagram_check(ctx, d));
    text_layout t = {.d = d, .term = term};
    tb_arena_init(&t.arena, ctx);
    tb_status s = put(&t, &out->buf);
    tb_arena_clear(&t.arena);
    return s;
}
