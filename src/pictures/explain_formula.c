/* SPDX-License-Identifier: MIT */
/* Formulas in the terminal: broken where a reader would break them, matrices
 * drawn. */
#include "pictures/explain_parts.h"

enum { LABEL = 10, HANG = 2, MATRIX_GAP = 3 };

/* --- columns -------------------------------------------------------------- */

static int columns_of(const char *s, size_t bytes)
{
    int n = 0;
    for (size_t i = 0; i < bytes; i++)
        n += (s[i] & 0xc0) != 0x80;
    return n;
}

/* The product's dot has a byte of its own in ASCII. */
static void put(const tb_terminal *t, const char *s, size_t bytes, tb_buf *out)
{
    for (size_t i = 0; i < bytes; i++)
        if (!tb_terminal_ascii(t) || !(s[i] & 0x80))
            tb_buf_putc(out, s[i]);
        else if ((s[i] & 0xc0) == 0xc0)
            tb_buf_putc(out, '*');
}

/* After a dot of a product, or before a blank. */
static bool breaks_at(const char *s, size_t i)
{
    return s[i] == ' ' || (i >= 2 && s[i - 2] == '\xc2' && s[i - 1] == '\xb7');
}

/* How many bytes stand on a line of so many columns: up to the last break
 * inside the fewest brackets, of those in its second half; else up to any. */
static size_t line_of(const char *s, int columns)
{
    size_t good = 0, bracket = 0, i = 0;
    int depth = 0, least = 0;
    for (int n = 0; s[i]; i++) {
        bool starts = (s[i] & 0xc0) != 0x80;
        if (starts && n++ == columns)
            return good ? good : bracket ? bracket : i;
        if (i && starts && breaks_at(s, i) &&
            (!good || depth <= least || n < columns / 2)) {
            good = i;
            least = depth;
        }
        depth += (s[i] == '(') - (s[i] == ')');
        if (i && s[i - 1] == '(')
            bracket = i;
    }
    return i;
}

void tb_explain_wrap(const tb_terminal *t, const char *label, const char *text,
                     tb_buf *out)
{
    int room = tb_terminal_width(t) - LABEL;
    tb_buf_printf(out, "%-10s", label);
    for (bool first = true; first || *text; first = false) {
        int hang = first ? 0 : HANG;
        if (!first)
            tb_term_pad(out, LABEL + HANG);
        size_t n = line_of(text, room - hang);
        put(t, text, n, out);
        tb_buf_putc(out, '\n');
        text += n + (text[n] == ' ');
    }
}

/* --- matrices ------------------------------------------------------------- */

/* Widest cell of each column; the matrix's own width. */
static int measure(const tb_jac_parts *p, int f, int *width)
{
    int n = p->nstreams, total = 4 + MATRIX_GAP * (n - 1);
    for (int k = 0; k < n; k++) {
        width[k] = 0;
        for (int i = 0; i < n; i++) {
            const char *cell = p->cells[(f * n + i) * n + k];
            int w = columns_of(cell, strlen(cell));
            width[k] = w > width[k] ? w : width[k];
        }
        total += width[k];
    }
    return total;
}

/* A bracket of several lines: left or right, row i of n. */
static const char *bracket(const tb_terminal *t, bool right, int i, int n)
{
    static const char *const marks[2][3] = {
        {"\xe2\x8e\xa1", "\xe2\x8e\xa2", "\xe2\x8e\xa3"},
        {"\xe2\x8e\xa4", "\xe2\x8e\xa5", "\xe2\x8e\xa6"}};
    if (tb_terminal_ascii(t))
        return right ? "]" : "[";
    return marks[right][i == 0 ? 0 : i == n - 1 ? 2 : 1];
}

static void draw(const tb_terminal *t, const tb_jac_parts *p, int f,
                 const int *width, const char *label, tb_buf *out)
{
    int n = p->nstreams;
    for (int i = 0; i < n; i++) {
        tb_buf_printf(out, "%-10s%s ", i ? "" : label, bracket(t, false, i, n));
        for (int k = 0; k < n; k++) {
            const char *cell = p->cells[(f * n + i) * n + k];
            put(t, cell, strlen(cell), out);
            tb_term_pad(out, width[k] - columns_of(cell, strlen(cell)) +
                                 (k + 1 < n ? MATRIX_GAP : 0));
        }
        tb_buf_printf(out, " %s\n", bracket(t, true, i, n));
    }
}

/* Too wide to draw: its entries that are not 0, one by one. */
static void list(const tb_terminal *t, const tb_jac_parts *p, int f,
                 const char *label, tb_buf *out)
{
    int n = p->nstreams;
    for (int c = 0; c < n * n; c++) {
        const char *cell = p->cells[f * n * n + c];
        tb_buf b;
        if (tb_streq(cell, "0"))
            continue;
        tb_buf_init(&b, out->ctx);
        tb_buf_printf(&b, "%s' by %s: %s", p->streams[c / n], p->streams[c % n],
                      cell);
        tb_explain_wrap(t, label, tb_buf_str(&b), out);
        tb_buf_clear(&b);
        label = "";
    }
    if (!*label)
        return;
    tb_explain_wrap(t, label, "0", out);
}

/* Whether some of them were listed. */
static bool matrices(const tb_terminal *t, const tb_jac_parts *p,
                     const char *label, tb_buf *out)
{
    int width[TB_STREAMS_MOST], last = p->nfactors - 1;
    bool listed = false;
    for (int f = last; f >= 0; f--) {
        if (!p->cells[f * p->nstreams * p->nstreams]) {
            tb_buf_puts(out, "          ...\n");
            return listed;
        }
        if (f < last)
            tb_buf_puts(out, "          times\n");
        if (LABEL + measure(p, f, width) <= tb_terminal_width(t)) {
            draw(t, p, f, width, f < last ? "" : label, out);
        } else {
            list(t, p, f, f < last ? "" : label, out);
            listed = true;
        }
    }
    return listed;
}

static void streams_line(const tb_terminal *t, const tb_jac_parts *p,
                         bool listed, tb_buf *out)
{
    tb_buf b;
    tb_buf_init(&b, out->ctx);
    tb_buf_puts(&b,
                listed ? "of the streams " : "rows and columns: the streams ");
    for (int i = 0; i < p->nstreams; i++)
        tb_buf_printf(&b, "%s%s", i ? ", " : "", p->streams[i]);
    tb_buf_puts(&b, listed ? "; pairs not listed are 0" : "");
    tb_explain_wrap(t, "", tb_buf_str(&b), out);
    tb_buf_clear(&b);
}

static void where_lines(const tb_terminal *t, const tb_jac_parts *p,
                        tb_buf *out)
{
    for (int i = 0; i < p->nwhere; i++) {
        tb_buf b;
        tb_buf_init(&b, out->ctx);
        tb_buf_printf(&b, "%s%s = %s", i ? "      " : "where ",
                      p->where[i].name, p->where[i].is);
        tb_explain_wrap(t, "", tb_buf_str(&b), out);
        tb_buf_clear(&b);
    }
}

/* The product without what its names stand for. */
static tb_status one_stream(tb_ctx *ctx, const tb_terminal *t,
                            const char *label, const tb_jacobian *j,
                            tb_buf *out)
{
    tb_buf b;
    tb_buf_init(&b, ctx);
    tb_status s = tb_jacobian_print(ctx, j, TB_NOTE_TEXT, &b);
    char *where = strstr(tb_buf_str(&b), " where ");
    if (where)
        *where = '\0';
    tb_explain_wrap(t, label, tb_buf_str(&b), out);
    tb_buf_clear(&b);
    return s;
}

/* The derivative itself; what is left of it goes without its legend. */
static bool is_whole(const tb_jacobian *j)
{
    return j->mode == TB_JAC_CLOSED || j->mode == TB_JAC_OPEN;
}

tb_status tb_explain_formula(tb_ctx *ctx, const tb_terminal *t,
                             const char *label, const tb_jacobian *j,
                             tb_buf *out)
{
    tb_arena a;
    tb_jac_parts p;
    tb_arena_init(&a, ctx);
    tb_status s = tb_jacobian_parts(ctx, &a, j, TB_NOTE_TEXT, &p);
    bool listed = false;
    if (s == TB_OK && p.nstreams > 1)
        listed = matrices(t, &p, label, out);
    else if (s == TB_OK)
        s = one_stream(ctx, t, label, j, out);
    if (s == TB_OK && p.nstreams > 1 && is_whole(j))
        streams_line(t, &p, listed, out);
    if (s == TB_OK)
        where_lines(t, &p, out);
    tb_arena_clear(&a);
    return s == TB_OK ? tb_buf_status(out) : s;
}
