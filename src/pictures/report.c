/* SPDX-License-Identifier: MIT */
/* The report page: one HTML file built part by part. The page's own style
 * and script are in report_page.c. */
#include "pictures/report.h"

enum { CONTENTS_FROM = 4 }; /* headings */

struct tb_report {
    tb_ctx *ctx;
    tb_out *body;
    tb_buf head, contents; /* contents: links to all headings */
    size_t figures, headings;
    bool has_json;
    tb_status status;
};

static void note(tb_report *r, tb_status s)
{
    if (r->status == TB_OK)
        r->status = s;
}

static tb_buf *body(tb_report *r)
{
    return &r->body->buf;
}

static void element(tb_buf *b, const char *tag, const char *text)
{
    tb_buf_printf(b, "<%s>", tag);
    tb_xml_text(b, text);
    size_t name = strcspn(tag, " ");
    tb_buf_printf(b, "</%.*s>\n", (int)name, tag);
}

/* Text with its line breaks, for <pre>. */
static void lines(tb_buf *b, const char *text)
{
    while (text && *text) {
        size_t n = strcspn(text, "\n");
        char piece[256];
        size_t take = n < sizeof piece - 1 ? n : sizeof piece - 1;
        while (take < n && ((unsigned char)text[take] & 0xC0) == 0x80)
            take--; /* not inside a character */
        if (take == 0 && n > 0)
            take = n < sizeof piece - 1 ? n : sizeof piece - 1;
        memcpy(piece, text, take);
        piece[take] = 0;
        tb_xml_text(b, piece);
        text += take;
        if (*text == '\n') {
            tb_buf_putc(b, '\n');
            text++;
        }
    }
}

static void page_head(tb_report *r, const tb_report_head *h)
{
    tb_buf *b = &r->head;
    tb_buf_puts(b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
                   "<meta charset=\"utf-8\">\n"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\""
                   "default-src 'none'; script-src 'unsafe-inline'; "
                   "style-src 'unsafe-inline'; img-src data:\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width, "
                   "initial-scale=1\">\n");
    element(b, "title", h->title);
    tb_buf_puts(b, "<style>\n");
    tb_palette_css(b, TB_THEME_AUTO, ":root");
    tb_palette_classes(b, TB_THEME_AUTO, UINT64_MAX);
    tb_buf_puts(b, tb_report_style);
    tb_buf_puts(b, "</style>\n</head>\n<body>\n<header>\n");
    element(b, "h1", h->title);
    if (h->lead)
        element(b, "p class=\"lead\"", h->lead);
    if (h->command) {
        tb_buf_puts(b, "<pre class=\"command\">");
        lines(b, h->command);
        tb_buf_puts(b, "</pre>\n");
    }
    tb_buf_puts(b, "<p class=\"version\">tollbooth ");
    tb_xml_text(b, h->version ? h->version : TB_VERSION);
    tb_buf_puts(b, "</p>\n</header>\n");
}

tb_status tb_report_create(tb_ctx *ctx, const tb_report_head *head,
                           tb_report **out)
{
    *out = NULL;
    if (!head->title)
        return TB_FAIL(ctx, TB_ERR_ARG, "report: no title, wanted one");
    tb_report *r = tb_alloc(ctx, 1, sizeof *r);
    if (!r)
        return TB_ERR_MEMORY;
    r->ctx = ctx;
    tb_buf_init(&r->head, ctx);
    tb_buf_init(&r->contents, ctx);
    tb_status s = tb_out_create(ctx, &r->body);
    if (s != TB_OK) {
        tb_free(ctx, r);
        return s;
    }
    page_head(r, head);
    *out = r;
    return TB_OK;
}

void tb_report_destroy(tb_report *r)
{
    if (!r)
        return;
    tb_out_destroy(r->body);
    tb_buf_clear(&r->head);
    tb_buf_clear(&r->contents);
    tb_free(r->ctx, r);
}

/* --- parts -------------------------------------------------------------- */

static void heading(tb_report *r, const char *text)
{
    tb_buf_printf(body(r), "<h2 id=\"s%zu\">", ++r->headings);
    tb_xml_text(body(r), text);
    tb_buf_puts(body(r), "</h2>");
    tb_buf_printf(&r->contents, "<li><a href=\"#s%zu\">", r->headings);
    tb_xml_text(&r->contents, text);
    tb_buf_puts(&r->contents, "</a></li>\n");
}

void tb_report_heading(tb_report *r, const char *text)
{
    heading(r, text);
    tb_buf_putc(body(r), '\n');
}

void tb_report_subheading(tb_report *r, const char *text)
{
    element(body(r), "h3", text);
}

void tb_report_fold(tb_report *r, const char *text)
{
    tb_buf_puts(body(r), "<details class=\"fold\"><summary>");
    heading(r, text);
    tb_buf_puts(body(r), "</summary>\n");
}

void tb_report_unfold(tb_report *r)
{
    tb_buf_puts(body(r), "</details>\n");
}

void tb_report_paragraph(tb_report *r, const char *text)
{
    element(body(r), "p", text);
}

void tb_report_list(tb_report *r, const char *const *items, size_t n)
{
    tb_buf_puts(body(r), "<ul>\n");
    for (size_t i = 0; i < n; i++)
        element(body(r), "li", items[i]);
    tb_buf_puts(body(r), "</ul>\n");
}

void tb_report_pre(tb_report *r, const char *text)
{
    tb_buf_puts(body(r), "<pre>");
    lines(body(r), text);
    tb_buf_puts(body(r), "</pre>\n");
}

void tb_report_settings(tb_report *r, const tb_report_setting *s, size_t n)
{
    tb_buf *b = body(r);
    tb_buf_puts(b, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
                   "aria-label=\"settings\"><table class=\"settings\">"
                   "<caption>Settings</caption><tbody>\n");
    for (size_t i = 0; i < n; i++) {
        tb_buf_puts(b, "<tr><th scope=\"row\">");
        tb_xml_text(b, s[i].name);
        tb_buf_puts(b, "</th><td>");
        tb_xml_text(b, s[i].value);
        tb_buf_puts(b, "</td></tr>\n");
    }
    tb_buf_puts(b, "</tbody></table></div>\n");
}

void tb_report_verdicts(tb_report *r, const tb_report_verdict *v, size_t n)
{
    tb_verdicts_html(body(r), v, n);
}

void tb_report_figure(tb_report *r, const tb_scene *scene, const char *caption,
                      const char *table_html)
{
    tb_buf *b = body(r);
    char prefix[32];
    tb_format(prefix, sizeof prefix, "fig%zu", ++r->figures);
    bool tall = tb_scene_height(scene) > 0.65 * tb_scene_width(scene);
    tb_buf_printf(b,
                  "<figure>\n<div class=\"scroll%s\" tabindex=\"0\" "
                  "role=\"group\" aria-label=\"figure: ",
                  tall ? " tall" : "");
    tb_xml_text(b, scene->title);
    tb_buf_puts(b, "\" style=\"--w:");
    tb_px(b, 1.25 * tb_scene_width(scene)); /* no larger than that */
    tb_buf_puts(b, "px\">\n");
    note(r, tb_scene_svg(scene, &(tb_svg){.in_html = true, .prefix = prefix},
                         r->body));
    tb_buf_puts(b, "</div>\n");
    if (caption)
        element(b, "figcaption", caption);
    if (table_html) {
        tb_buf_puts(b, "<details><summary>show as table</summary>\n");
        tb_buf_puts(b, table_html);
        tb_buf_puts(b, "</details>\n");
    }
    tb_buf_puts(b, "</figure>\n");
}

void tb_report_table(tb_report *r, const tb_table *table)
{
    note(r, tb_table_html(r->ctx, table, r->body));
}

void tb_report_markup(tb_report *r, const char *markup)
{
    tb_buf_puts(body(r), markup ? markup : "");
}

/* Byte for byte, so a text that could end the element is refused; the JSON
 * writer makes none. */
void tb_report_json(tb_report *r, const char *json)
{
    tb_buf *b = body(r);
    if (r->has_json) {
        note(r, TB_FAIL(r->ctx, TB_ERR_ARG, "report: a second data block"));
        return;
    }
    if (strstr(json, "</") || strstr(json, "<!")) {
        note(r, TB_FAIL(r->ctx, TB_ERR_ARG,
                        "report: data with </ or <!, wanted these spelled as "
                        "tb_json does"));
        return;
    }
    r->has_json = true;
    tb_buf_puts(b, "<script type=\"application/json\" id=\"tollbooth-data\">");
    tb_buf_puts(b, json);
    tb_buf_puts(b, "</script>\n");
}

tb_status tb_report_finish(tb_report *r, tb_out *out)
{
    TB_TRY(r->status);
    TB_TRY(tb_buf_status(&r->head));
    TB_TRY(tb_buf_status(&r->contents));
    TB_TRY(tb_buf_status(body(r)));
    tb_buf *b = &out->buf;
    tb_buf_puts(b, tb_buf_str(&r->head));
    if (r->headings >= CONTENTS_FROM) {
        tb_buf_puts(b, "<nav aria-label=\"contents\"><ul>\n");
        tb_buf_puts(b, tb_buf_str(&r->contents));
        tb_buf_puts(b, "</ul></nav>\n");
    }
    tb_buf_puts(b, "<main>\n");
    tb_buf_puts(b, tb_buf_str(body(r)));
    tb_buf_puts(b, "</main>\n<script>\n");
    tb_buf_puts(b, tb_report_script);
    tb_buf_puts(b, "</script>\n</body>\n</html>\n");
    return tb_buf_status(b);
}
