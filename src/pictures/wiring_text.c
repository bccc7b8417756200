/* SPDX-License-Identifier: MIT */
/* A wiring as characters, bottom to top: a line for each node, a column for
 * each stream and value, what the node is to the right of all columns.
 *
 *      |  +      x2' = add
 *      |  |-* |  F
 *      |  |
 */
#include "pictures/wiring.h"

enum {
    INDENT = 4,
    UP = 0x25B2,
    ACROSS = 0x2500,
    DOWN = 0x2502,
    READ_LEFT = 0x251C, /* a wire that goes on is read to its right */
    READ_RIGHT = 0x2524,
    READ = 0x253C,
    END_LEFT = 0x250C, /* a wire ends here and turns right */
    END_RIGHT = 0x2510,
    END = 0x252C,
    ADD = 0x2295,
    TAKE = 0x2296,
    TIMES = 0x2297,
    OVER = 0x00F7,
    BOOTH = 0x25A3,
    BOX = 0x25A0,
    PILL = 0x25CF
};

typedef struct texter {
    tb_arena *a;
    const tb_diagram *d;
    tb_laid l;
    tb_canvas c;
    int pitch;
} texter;

static uint32_t sign_of(const tb_placed *p)
{
    static const uint32_t signs[] = {
        [TB_WIRED_IN] = UP,      [TB_WIRED_OUT] = UP,
        [TB_WIRED_BOX] = BOX,    [TB_WIRED_NORM] = BOOTH,
        [TB_WIRED_SCALE] = PILL, [TB_WIRED_TIMES] = TIMES,
        [TB_WIRED_PLUS] = ADD};
    if (!p->what)
        return ACROSS;
    if (p->what->odd >= 0)
        return p->what->kind == TB_WIRED_PLUS ? TAKE : OVER;
    return signs[p->what->kind];
}

static int column(const texter *t, int row)
{
    return INDENT + row * t->pitch;
}

static int y_of(const texter *t, int rank)
{
    return t->c.h - 1 - rank;
}

static void wires(texter *t)
{
    for (int i = 0; i < t->l.n; i++) {
        const tb_placed *p = &t->l.places[i];
        for (int rank = p->rank + 1; rank < p->last; rank++)
            tb_canvas_put(&t->c, column(t, p->row), y_of(t, rank), DOWN);
    }
}

/* The sign where the wire in `row` is read at this rank. */
static uint32_t read_sign(const tb_placed *p, const tb_placed *u)
{
    bool ends = u->last == p->rank;
    if (u->row == p->lo)
        return ends ? END_LEFT : READ_LEFT;
    if (u->row == p->hi)
        return ends ? END_RIGHT : READ_RIGHT;
    return ends ? END : READ;
}

static void put_node(texter *t, const tb_placed *p)
{
    int y = y_of(t, p->rank);
    for (int x = column(t, p->lo); x <= column(t, p->hi); x++)
        if (tb_canvas_get(&t->c, x, y) != DOWN)
            tb_canvas_put(&t->c, x, y, ACROSS);
    for (int i = 0; i < p->n; i++) {
        const tb_placed *u = &t->l.places[p->in[i]];
        tb_canvas_put(&t->c, column(t, u->row), y, read_sign(p, u));
    }
    tb_canvas_put(&t->c, column(t, p->row), y,
                  p->what           ? sign_of(p)
                  : p->row == p->hi ? 0x2518u
                                    : 0x2514u);
    const char *text = p->what ? tb_wired_text(t->a, p->what) : "";
    int x = column(t, t->l.rows - 1) + 3;
    const char *cut =
        text ? tb_shorten(t->a, text, (size_t)(t->c.w - x > 1 ? t->c.w - x : 1))
             : NULL;
    if (cut)
        tb_canvas_text(&t->c, x, y, cut);
    else
        t->c.failed = true;
}

static void legend(const texter *t, const tb_terminal *term, tb_buf *b)
{
    const struct tb_wiring *w = t->d->wiring;
    tb_diagram_repeat_term(t->d, w->stem > 0,
                           w->block < w->n ? "up to x\xE2\x80\xB2" : NULL, term,
                           b);
    tb_term_wrap(b, term, 2,
                 "\xE2\x96\xA3 norm (tollbooth)  \xE2\x8A\x95 add  "
                 "\xE2\x8A\x97 times  \xE2\x96\xA0 function  "
                 "\xE2\x97\x8F times or plus a constant");
    if (t->d->formula)
        tb_term_wrap(b, term, 2, t->d->formula);
}

tb_status tb_wiring_term(tb_arena *a, const tb_diagram *d,
                         const tb_terminal *term, tb_buf *b)
{
    texter t = {.a = a, .d = d};
    int width = tb_terminal_width(term);
    TB_TRY(tb_wiring_lay(a, d->wiring, true, &t.l));
    t.pitch = INDENT + 3 * t.l.rows + 20 <= width ? 3 : 2;
    if (INDENT + 2 * t.l.rows + 12 > width)
        t.pitch = 1;
    TB_TRY(tb_canvas_init(&t.c, a, width, t.l.ranks));
    wires(&t);
    for (int i = 0; i < t.l.n; i++)
        put_node(&t, &t.l.places[i]);
    tb_canvas_flush(&t.c, tb_terminal_ascii(term), b);
    if (t.c.failed)
        return TB_ERR_MEMORY;
    legend(&t, term, b);
    return tb_buf_status(b);
}
