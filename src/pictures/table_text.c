/* SPDX-License-Identifier: MIT */
/* Tables on a terminal: columns as wide as their cells; what does not fit is
 * first wrapped, then shortened, then left out, lowest priority first. */
#include "pictures/scene.h"

enum { GAP = 2, LEAST_WRAP = 12, LEAST_CUT = 4 };

typedef struct layout {
    const tb_table *t;
    const tb_terminal *term;
    tb_arena arena;
    int *width; /* 0: left out */
} layout;

static const char *cell(const tb_table *t, size_t row, size_t column)
{
    const char *s = t->cells[row * t->n_columns + column];
    return s ? s : "";
}

static void natural_widths(layout *l)
{
    for (size_t c = 0; c < l->t->n_columns; c++) {
        size_t w = tb_columns(l->t->columns[c].head);
        for (size_t r = 0; r < l->t->n_rows; r++) {
            size_t n = tb_columns(cell(l->t, r, c));
            w = n > w ? n : w;
        }
        l->width[c] = w > 200 ? 200 : w < 1 ? 1 : (int)w;
    }
}

static int total(const layout *l)
{
    int sum = -GAP;
    for (size_t c = 0; c < l->t->n_columns; c++)
        if (l->width[c])
            sum += l->width[c] + GAP;
    return sum;
}

/* The widest kept column that may still give room; n_columns if none. */
static size_t widest(const layout *l, bool wrap_only, int least)
{
    size_t best = l->t->n_columns;
    for (size_t c = 0; c < l->t->n_columns; c++)
        if (l->width[c] > least && (!wrap_only || l->t->columns[c].wrap) &&
            (best == l->t->n_columns || l->width[c] > l->width[best]))
            best = c;
    return best;
}

static size_t least_important(const layout *l)
{
    size_t best = l->t->n_columns;
    for (size_t c = 0; c < l->t->n_columns; c++)
        if (l->width[c] && l->t->columns[c].priority > 0 &&
            (best == l->t->n_columns ||
             l->t->columns[c].priority >= l->t->columns[best].priority))
            best = c;
    return best;
}

static void fit(layout *l)
{
    int max = tb_terminal_width(l->term);
    size_t c;
    while (total(l) > max &&
           (c = widest(l, true, LEAST_WRAP)) != l->t->n_columns)
        l->width[c]--;
    while (total(l) > max && (c = least_important(l)) != l->t->n_columns)
        l->width[c] = 0;
    while (total(l) > max &&
           (c = widest(l, false, LEAST_CUT)) != l->t->n_columns)
        l->width[c]--;
    for (c = l->t->n_columns; total(l) > max && c-- > 1;)
        l->width[c] = 0; /* more columns than characters */
}

/* --- rows --------------------------------------------------------------- */

/* Takes one line of at most w columns off *s, at a blank if there is one. */
static const char *take_line(layout *l, const char **s, int w, bool wrap)
{
    const char *text = *s, *p = text, *end = text, *blank = NULL;
    *s = "";
    if (tb_columns(text) <= (size_t)w)
        return text;
    if (!wrap)
        return tb_shorten(&l->arena, text, (size_t)w);
    for (int used = 0; *p; end = p) {
        if (*p == ' ')
            blank = p;
        used += tb_columns_of(tb_glyph_next(&p));
        if (used > w)
            break;
    }
    *s = blank ? blank + 1 : end;
    const char *stop = blank ? blank : end;
    return tb_arena_strndup(&l->arena, text, (size_t)(stop - text));
}

/* Blanks are held back in *blank, so that no line ends in them. */
static void put_cell(layout *l, tb_buf *b, size_t c, const char *s, int *blank)
{
    int room = l->width[c] - (int)tb_columns(s);
    bool right = l->t->columns[c].align == TB_RIGHT;
    *blank += right ? room : 0;
    if (*s) {
        tb_term_pad(b, *blank);
        tb_term_puts(b, l->term, s);
        *blank = 0;
    }
    *blank += (right ? 0 : room) + GAP;
}

static tb_status put_row(layout *l, tb_buf *b, const char **rest)
{
    size_t columns = l->t->n_columns;
    for (bool more = true; more;) {
        more = false;
        int blank = 0;
        for (size_t c = 0; c < columns; c++) {
            if (!l->width[c])
                continue;
            const char *line =
                take_line(l, &rest[c], l->width[c], l->t->columns[c].wrap);
            if (!line)
                return TB_ERR_MEMORY;
            more = more || *rest[c];
            put_cell(l, b, c, line, &blank);
        }
        tb_buf_putc(b, '\n');
    }
    return TB_OK;
}

static void put_rule(const layout *l, tb_buf *b)
{
    int blank = 0;
    for (size_t c = 0; c < l->t->n_columns; c++) {
        if (!l->width[c])
            continue;
        tb_term_pad(b, blank);
        for (int i = 0; i < l->width[c]; i++)
            tb_term_puts(b, l->term, "\xE2\x94\x80");
        blank = GAP;
    }
    tb_buf_putc(b, '\n');
}

static void put_left_out(layout *l, tb_buf *b)
{
    tb_buf text;
    tb_buf_init(&text, l->arena.ctx);
    for (size_t c = 0; c < l->t->n_columns; c++)
        if (!l->width[c])
            tb_buf_printf(&text, "%s %s", text.len ? "," : "not shown:",
                          l->t->columns[c].head ? l->t->columns[c].head : "");
    if (text.len)
        tb_term_wrap(b, l->term, 2, text.data);
    b->failed = b->failed || text.failed;
    tb_buf_clear(&text);
}

static tb_status put_table(layout *l, tb_buf *b)
{
    const tb_table *t = l->t;
    const char **rest = tb_arena_alloc(&l->arena, t->n_columns * sizeof *rest);
    l->width = tb_arena_alloc(&l->arena, t->n_columns * sizeof *l->width);
    if (!rest || !l->width)
        return TB_ERR_MEMORY;
    natural_widths(l);
    fit(l);
    if (t->caption)
        tb_term_wrap(b, l->term, 2, t->caption);
    for (size_t c = 0; c < t->n_columns; c++)
        rest[c] = t->columns[c].head ? t->columns[c].head : "";
    TB_TRY(put_row(l, b, rest));
    put_rule(l, b);
    for (size_t r = 0; r < t->n_rows; r++) {
        for (size_t c = 0; c < t->n_columns; c++)
            rest[c] = cell(t, r, c);
        TB_TRY(put_row(l, b, rest));
    }
    put_left_out(l, b);
    return tb_buf_status(b);
}

tb_status tb_table_term(tb_ctx *ctx, const tb_table *table,
                        const tb_terminal *term, tb_out *out)
{
    if (table->n_columns == 0)
        return TB_FAIL(ctx, TB_ERR_ARG, "table: 0 columns, wanted 1 or more");
    layout l = {.t = table, .term = term};
    tb_arena_init(&l.arena, ctx);
    tb_status s = put_table(&l, &out->buf);
    tb_arena_clear(&l.arena);
    return s;
}

/* --- bars in cells ------------------------------------------------------- */

tb_status tb_log_bar(const tb_terminal *term, double v, double low, double high,
                     int cells, tb_out *out)
{
    bool ascii = tb_terminal_ascii(term);
    if (v != v)
        tb_buf_putc(&out->buf, '?');
    else if (!(v > 0) && ascii)
        tb_buf_putc(&out->buf, 'v');
    else if (!(v > 0))
        tb_glyph_put(&out->buf, 0x25BE); /* as below a log axis */
    else
        tb_term_bar(&out->buf, term, tb_log(v / low) / tb_log(high / low),
                    cells);
    return tb_buf_status(&out->buf);
}
