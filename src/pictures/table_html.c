/* SPDX-License-Identifier: MIT */
/* Tables as HTML: caption, scope, right-aligned numbers. The page's script
 * makes their heads sort. */
#include "pictures/scene.h"

enum { WIDE = 10 }; /* columns that paper has room for at full size */

/* Most cells are numbers and need no class. l: text; w: text that may break,
 * but not after every word. */
static const char *class_of(const tb_column *c)
{
    return c->align == TB_RIGHT ? ""
           : c->wrap            ? " class=\"w\""
                                : " class=\"l\"";
}

static void head(tb_buf *b, const tb_table *t)
{
    tb_buf_puts(b, "<thead><tr>");
    for (size_t c = 0; c < t->n_columns; c++) {
        tb_buf_printf(b, "<th scope=\"col\"%s>", class_of(&t->columns[c]));
        tb_xml_text(b, t->columns[c].head);
        tb_buf_puts(b, "</th>");
    }
    tb_buf_puts(b, "</tr></thead>\n");
}

/* The first cell, a link to its own row. */
static void linked(tb_buf *b, const tb_table *t, const char *cell)
{
    tb_buf_puts(b, "<a href=\"#");
    tb_xml_text(b, t->anchor);
    tb_xml_text(b, cell);
    tb_buf_puts(b, "\">");
    tb_xml_text(b, cell);
    tb_buf_puts(b, "</a>");
}

static void row(tb_buf *b, const tb_table *t, size_t r)
{
    if (t->anchor) {
        tb_buf_puts(b, "<tr id=\"");
        tb_xml_text(b, t->anchor);
        tb_xml_text(b, t->cells[r * t->n_columns]);
        tb_buf_puts(b, "\">");
    } else {
        tb_buf_puts(b, "<tr>");
    }
    for (size_t c = 0; c < t->n_columns; c++) {
        const char *tag = c ? "td" : "th";
        tb_buf_printf(b, "<%s%s%s>", tag, c ? "" : " scope=\"row\"",
                      class_of(&t->columns[c]));
        if (t->anchor && c == 0)
            linked(b, t, t->cells[r * t->n_columns]);
        else
            tb_xml_text(b, t->cells[r * t->n_columns + c]);
        tb_buf_printf(b, "</%s>", tag);
    }
    tb_buf_puts(b, "</tr>\n");
}

tb_status tb_table_html(tb_ctx *ctx, const tb_table *table, tb_out *out)
{
    tb_buf *b = &out->buf;
    if (table->n_columns == 0)
        return TB_FAIL(ctx, TB_ERR_ARG, "table: 0 columns, wanted 1 or more");
    tb_buf_printf(b,
                  "<div class=\"scroll numbers%s\" tabindex=\"0\" "
                  "role=\"group\" aria-label=\"",
                  table->n_columns > WIDE ? " wide" : "");
    tb_xml_text(b, table->caption ? table->caption : "table");
    tb_buf_puts(b, "\"><table>\n");
    if (table->caption) {
        tb_buf_puts(b, "<caption>");
        tb_xml_text(b, table->caption);
        tb_buf_puts(b, "</caption>\n");
    }
    head(b, table);
    tb_buf_puts(b, "<tbody>\n");
    for (size_t r = 0; r < table->n_rows; r++)
        row(b, table, r);
    tb_buf_puts(b, "</tbody></table></div>\n");
    return tb_buf_status(b);
}
