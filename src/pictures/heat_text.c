/* SPDX-License-Identifier: MIT */
/* A heat map as characters and as a table: the numbers themselves where they
 * fit, else shades. */
#include "pictures/heat.h"

enum { TABLE_CELLS = 2500, TERM_ROWS = 120, NAME_MAX = 16 };

/* --- terminal: numbers -------------------------------------------------- */

static int name_columns(const tb_heat_view *v)
{
    size_t w = 0;
    for (size_t r = 0; r < v->rows; r++) {
        size_t n = tb_columns(tb_heat_row_name(v, r));
        w = n > w ? n : w;
    }
    return (int)(w > NAME_MAX ? NAME_MAX : w);
}

static int number_width(const tb_heat_view *v, size_t c)
{
    char text[TB_SHOW_CHARS];
    size_t w = tb_columns(tb_heat_column_name(v, c));
    for (size_t r = 0; r < v->rows; r++) {
        size_t n = tb_columns(tb_heat_cell(v, r * v->columns + c, text));
        w = n > w ? n : w;
    }
    return (int)w;
}

static bool numbers_fit(const tb_heat_view *v, const tb_terminal *term)
{
    int w = name_columns(v);
    if (v->by_row > 1 || v->by_column > 1 ||
        v->heat->print_values == TB_PRINT_NEVER)
        return false;
    for (size_t c = 0; c < v->columns && w <= tb_terminal_width(term); c++)
        w += 1 + number_width(v, c);
    return w <= tb_terminal_width(term);
}

static tb_status put_name(const tb_heat_view *v, const tb_terminal *term,
                          tb_buf *b, size_t r)
{
    int w = name_columns(v);
    const char *name = tb_shorten(v->arena, tb_heat_row_name(v, r), (size_t)w);
    if (!name)
        return TB_ERR_MEMORY;
    tb_term_puts(b, term, name);
    tb_term_pad(b, w - (int)tb_columns(name));
    return TB_OK;
}

static void put_right(tb_buf *b, const tb_terminal *term, const char *s, int w)
{
    tb_term_pad(b, w - (int)tb_columns(s));
    tb_term_puts(b, term, s);
}

static tb_status put_numbers(const tb_heat_view *v, const tb_terminal *term,
                             tb_buf *b)
{
    char text[TB_SHOW_CHARS];
    if (v->heat->column_names) {
        tb_term_pad(b, name_columns(v));
        for (size_t c = 0; c < v->columns; c++)
            put_right(b, term, tb_heat_column_name(v, c),
                      1 + number_width(v, c));
        tb_buf_putc(b, '\n');
    }
    for (size_t r = 0; r < v->rows; r++) {
        TB_TRY(put_name(v, term, b, r));
        for (size_t c = 0; c < v->columns; c++)
            put_right(b, term, tb_heat_cell(v, r * v->columns + c, text),
                      1 + number_width(v, c));
        tb_buf_putc(b, '\n');
    }
    return TB_OK;
}

/* --- terminal: shades --------------------------------------------------- */

/* From light to dark. Signed ones leave + and - to the sign beside them. */
static const char *const ascii_shades[] = {" .:o*#@", ".:-=+*#%@"};
static const uint32_t blocks[] = {' ', 0xB7, 0x2591, 0x2592, 0x2593, 0x2588};

static uint32_t shade(const tb_heat_view *v, bool ascii, double value)
{
    double t = tb_heat_strength(v, value);
    bool log = v->heat->scale == TB_HEAT_LOG;
    const char *ramp = ascii_shades[log];
    size_t first = log && !ascii; /* blank is for zero */
    size_t n = ascii ? strlen(ramp) : TB_LEN(blocks) - first;
    size_t i = (size_t)(t * (double)(n - 1) + 0.5);
    i = i >= n ? n - 1 : i;
    return ascii ? (uint32_t)(unsigned char)ramp[i] : blocks[first + i];
}

/* A cell is two columns: sign and shade, or the shade twice; trailing blanks
 * are left to the caller. */
static void cell_chars(const tb_heat_view *v, bool ascii, size_t i,
                       uint32_t out[2])
{
    static const char marks[] = {
        [TB_HEAT_ZERO] = '0', [TB_HEAT_NONE] = 'x', [TB_HEAT_BAD] = '!'};
    if (v->state[i] != TB_HEAT_SHOWN) {
        out[0] = ' ';
        out[1] = (uint32_t)marks[v->state[i]];
        return;
    }
    out[0] = out[1] = shade(v, ascii, v->value[i]);
    if (v->heat->scale == TB_HEAT_SIGNED)
        out[0] = out[1] == ' ' ? ' ' : v->value[i] < 0 ? '-' : '+';
}

static tb_status put_shades(const tb_heat_view *v, const tb_terminal *term,
                            tb_buf *b)
{
    int left = name_columns(v) + 1;
    tb_canvas canvas;
    TB_TRY(tb_canvas_init(&canvas, v->arena, left + 2 * (int)v->columns,
                          (int)v->rows + (v->heat->column_names != NULL)));
    for (size_t r = 0; r < v->rows; r++) {
        const char *name =
            tb_shorten(v->arena, tb_heat_row_name(v, r), (size_t)left - 1);
        if (!name)
            return TB_ERR_MEMORY;
        tb_canvas_text(&canvas, 0, (int)r, name);
        for (size_t c = 0; c < v->columns; c++) {
            uint32_t two[2];
            cell_chars(v, tb_terminal_ascii(term), r * v->columns + c, two);
            tb_canvas_put(&canvas, left + 2 * (int)c, (int)r, two[0]);
            tb_canvas_put(&canvas, left + 2 * (int)c + 1, (int)r, two[1]);
        }
    }
    int free_from = 0; /* column names under their cells, where they fit */
    for (size_t c = 0; v->heat->column_names && c < v->columns; c++) {
        const char *name = tb_heat_column_name(v, c);
        int w = (int)tb_columns(name), at = left + 2 * (int)c + 2 - w;
        if (at < free_from || at < 0)
            continue;
        free_from = 1 + tb_canvas_text(&canvas, at, (int)v->rows, name);
    }
    tb_canvas_flush(&canvas, tb_terminal_ascii(term), b);
    return TB_OK;
}

/* "-0.3 -@ .. 0 .. +@ 0.3; x none; ! not finite" */
static tb_status put_legend(const tb_heat_view *v, const tb_terminal *term,
                            tb_buf *b)
{
    static const char *const ends[] = {[TB_HEAT_SIGNED] =
                                           ", + or - before it is the sign",
                                       [TB_HEAT_LOG] = ", log scale",
                                       [TB_HEAT_FROM_ZERO] = ", linear"};
    char lo[TB_SHOW_CHARS], hi[TB_SHOW_CHARS];
    bool log = v->heat->scale == TB_HEAT_LOG, ascii = tb_terminal_ascii(term);
    double low = log ? tb_pow10(v->axis.lo) : 0;
    double high = log ? tb_pow10(v->axis.hi) : v->limit;
    tb_buf line;
    tb_buf_init(&line, v->arena->ctx);
    if (log && v->axis.empty)
        tb_buf_puts(&line, "no positive values");
    else if (log)
        tb_buf_printf(&line, "%s ", tb_show_number(low, lo));
    else
        tb_buf_puts(&line, "0 ");
    for (int i = log ? 0 : 1; !(log && v->axis.empty) && i <= 4; i++) {
        double value =
            log ? tb_pow10(v->axis.lo + (v->axis.hi - v->axis.lo) * i / 4.0)
                : v->limit * i / 4.0;
        tb_glyph_put(&line, shade(v, ascii, value));
    }
    if (!(log && v->axis.empty))
        tb_buf_printf(&line, " %s%s", tb_show_number(high, hi),
                      ends[v->heat->scale]);
    if (v->found[TB_HEAT_ZERO])
        tb_buf_puts(&line, "; 0 zero or below");
    if (v->found[TB_HEAT_NONE])
        tb_buf_puts(&line, "; x none");
    if (v->found[TB_HEAT_BAD])
        tb_buf_puts(&line, "; ! not finite");
    tb_term_wrap(b, term, 2, tb_buf_str(&line));
    tb_status s = tb_buf_status(&line);
    tb_buf_clear(&line);
    return s;
}

/* --- terminal ----------------------------------------------------------- */

static tb_status put_labels(const tb_heat_view *v, const tb_terminal *term,
                            tb_buf *b)
{
    const tb_heat *h = v->heat;
    const char *down = h->row_label, *across = h->column_label;
    const char *line =
        down && across
            ? tb_arena_printf(v->arena, "down: %s; across: %s", down, across)
        : down   ? tb_arena_printf(v->arena, "down: %s", down)
        : across ? tb_arena_printf(v->arena, "across: %s", across)
                 : "";
    if (!line)
        return TB_ERR_MEMORY;
    if (h->value_label)
        tb_term_wrap(b, term, 2, h->value_label);
    if (*line)
        tb_term_wrap(b, term, 2, line);
    return TB_OK;
}

static tb_status put_heat(tb_arena *a, const tb_heat *h,
                          const tb_terminal *term, tb_buf *b)
{
    tb_heat_view v;
    TB_TRY(tb_heat_view_init(&v, a, h, SIZE_MAX, SIZE_MAX));
    tb_term_wrap(b, term, 2, h->title);
    TB_TRY(put_labels(&v, term, b));
    if (numbers_fit(&v, term)) {
        TB_TRY(put_numbers(&v, term, b));
    } else {
        size_t columns =
            (size_t)(tb_terminal_width(term) - name_columns(&v) - 1) / 2;
        TB_TRY(tb_heat_view_init(&v, a, h, columns * TERM_ROWS, columns));
        TB_TRY(put_shades(&v, term, b));
        TB_TRY(put_legend(&v, term, b));
    }
    const char *const *notes = tb_heat_notes(&v);
    for (size_t i = 0; notes && notes[i]; i++)
        tb_term_wrap(b, term, 2, notes[i]);
    return notes ? tb_buf_status(b) : TB_ERR_MEMORY;
}

tb_status tb_heat_term(tb_ctx *ctx, const tb_heat *heat,
                       const tb_terminal *term, tb_out *out)
{
    TB_TRY(tb_heat_check(ctx, heat));
    tb_arena a;
    tb_arena_init(&a, ctx);
    tb_status s = put_heat(&a, heat, term, &out->buf);
    tb_arena_clear(&a);
    return s;
}

/* --- table -------------------------------------------------------------- */

static tb_status put_table(tb_arena *a, const void *data, tb_grid *g)
{
    const tb_heat *h = data;
    tb_heat_view v;
    TB_TRY(tb_heat_view_init(&v, a, h, TABLE_CELLS, TABLE_CELLS));
    tb_column *columns = tb_arena_alloc(a, (v.columns + 1) * sizeof *columns);
    if (!columns)
        return TB_ERR_MEMORY;
    columns[0] = (tb_column){.head = h->row_label ? h->row_label : "row"};
    for (size_t c = 0; c < v.columns; c++) {
        const char *name = tb_heat_column_name(&v, c);
        if (name && !*name)
            name = tb_arena_printf(a, "%zu", c * v.by_column + 1);
        if (!name)
            return TB_ERR_MEMORY;
        columns[c + 1] = (tb_column){.head = name, .align = TB_RIGHT};
    }
    TB_TRY(tb_grid_init(g, a, h->title, columns, v.columns + 1, v.rows));
    for (size_t r = 0; r < v.rows; r++) {
        char text[TB_SHOW_CHARS];
        const char *name = tb_heat_row_name(&v, r);
        if (name && !*name)
            name = tb_arena_printf(a, "%zu", r * v.by_row + 1);
        if (!name)
            return TB_ERR_MEMORY;
        tb_grid_text(g, name);
        for (size_t c = 0; c < v.columns; c++)
            tb_grid_text(g, tb_heat_cell(&v, r * v.columns + c, text));
    }
    return TB_OK;
}

tb_status tb_heat_table_html(tb_ctx *ctx, const tb_heat *heat, tb_out *out)
{
    TB_TRY(tb_heat_check(ctx, heat));
    return tb_grid_html_of(ctx, put_table, heat, out);
}
