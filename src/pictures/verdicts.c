/* SPDX-License-Identifier: MIT */
/* The list of verdicts, worst first, on the page and on a terminal. */
#include "pictures/scene.h"

static const char *const levels[] = {"FAIL", "WARN", "NOTE", "OK"};

/* 0 is worst; unknown levels come last. */
static size_t rank(const tb_report_verdict *v)
{
    size_t i = 0;
    while (i < TB_LEN(levels) && !tb_streq(levels[i], v->level))
        i++;
    return i;
}

static const char *text_of(const char *s)
{
    return s ? s : "";
}

static void put_where(tb_buf *b, const tb_report_verdict *v)
{
    if (v->link) {
        tb_buf_puts(b, "<a href=\"#");
        tb_xml_text(b, v->link);
        tb_buf_puts(b, "\">");
    }
    tb_xml_text(b, v->where);
    tb_buf_puts(b, v->link ? "</a>" : "");
}

static void put_html(tb_buf *b, const tb_report_verdict *v)
{
    size_t level = rank(v);
    tb_buf_printf(b, "<li class=\"%s\"><span class=\"level\">",
                  level < TB_LEN(levels) ? levels[level] : "other");
    tb_xml_text(b, v->level);
    tb_buf_puts(b, "</span><span class=\"code\">");
    tb_xml_text(b, v->code);
    tb_buf_puts(b, "</span>");
    tb_xml_text(b, v->sentence);
    if (v->detail || v->where) {
        tb_buf_puts(b, "<br><span class=\"detail\">");
        tb_xml_text(b, v->detail);
        if (v->where) {
            tb_buf_puts(b, v->detail ? " \xE2\x86\x92 " : "\xE2\x86\x92 ");
            put_where(b, v);
        }
        tb_buf_puts(b, "</span>");
    }
    tb_buf_puts(b, "</li>\n");
}

void tb_verdicts_html(tb_buf *b, const tb_report_verdict *v, size_t n)
{
    tb_buf_puts(b, "<ul class=\"verdicts\">\n");
    for (size_t level = 0; level <= TB_LEN(levels); level++)
        for (size_t i = 0; i < n; i++)
            if (rank(&v[i]) == level)
                put_html(b, &v[i]);
    tb_buf_puts(b, "</ul>\n");
}

static void put_line(tb_buf *out, tb_buf *line, const tb_terminal *term,
                     const tb_report_verdict *v)
{
    tb_buf_clear(line);
    tb_buf_printf(line, "%-4s %s: %s", text_of(v->level), text_of(v->code),
                  text_of(v->sentence));
    if (v->detail)
        tb_buf_printf(line, " (%s)", v->detail);
    if (v->where)
        tb_buf_printf(line, " \xE2\x86\x92 %s", v->where);
    tb_term_wrap(out, term, 5, tb_buf_str(line));
}

tb_status tb_verdicts_term(tb_ctx *ctx, const tb_report_verdict *v, size_t n,
                           const tb_terminal *term, tb_out *out)
{
    tb_buf line;
    tb_buf_init(&line, ctx);
    bool failed = false;
    for (size_t level = 0; level <= TB_LEN(levels); level++)
        for (size_t i = 0; i < n; i++)
            if (rank(&v[i]) == level) {
                put_line(&out->buf, &line, term, &v[i]);
                failed = failed || line.failed;
            }
    tb_buf_clear(&line);
    return failed ? TB_ERR_MEMORY : tb_buf_status(&out->buf);
}
