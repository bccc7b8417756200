/* SPDX-License-Identifier: MIT */
/* A figure as the bytes of a file, and where they go. */
#include "drawing.h"

#include "tollbooth/checkpoint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t word(const char *formats, const char *name)
{
    size_t at = 0, n = strlen(name);
    for (;; formats += strcspn(formats, "|") + 1, at++) {
        size_t k = strcspn(formats, "|");
        if (k == n && strncmp(formats, name, n) == 0)
            return at;
        if (!formats[k])
            return SIZE_MAX;
    }
}

static int format_of(const char *formats, const drawing *d)
{
    const char *dot = d->out ? strrchr(d->out, '.') : NULL;
    size_t at = dot ? word(formats, dot + 1) : SIZE_MAX;
    if (d->json)
        return (int)word(formats, "json");
    if (d->format >= 0)
        return d->format;
    return at == SIZE_MAX ? 0 : (int)at;
}

static drawn drawn_of(const char *formats, int format)
{
    static const char *const names[] = {
        [DRAWN_SVG] = "svg", [DRAWN_PNG] = "png", [DRAWN_PDF] = "pdf"};
    for (drawn how = DRAWN_SVG; how <= DRAWN_PDF; how++)
        if (word(formats, names[how]) == (size_t)format)
            return how;
    return DRAWN_NOT;
}

/* --- sheets --------------------------------------------------------------- */

/* Two whole numbers: 1200x630. */
static bool read_size(const char *text, tb_sheet *sheet)
{
    char width[16];
    size_t w, h, n = strcspn(text, "x");
    if (n >= sizeof width || !text[n])
        return false;
    memcpy(width, text, n);
    width[n] = 0;
    if (!opt_size(width, &w) || !opt_size(text + n + 1, &h) || !w || !h)
        return false;
    sheet->width = (double)w;
    sheet->height = (double)h;
    return true;
}

static void take_page(int page, tb_sheet *sheet)
{
    static const double points[][2] = {/* 210 x 297 mm; 8.5 x 11 inches */
                                       {595.275591, 841.889764},
                                       {612, 792}};
    sheet->width = points[page][0];
    sheet->height = points[page][1];
    sheet->turn = true;
}

int drawing_settle(const char *command, const char *formats, drawing *d)
{
    d->format = format_of(formats, d);
    const drawn how = d->how = drawn_of(formats, d->format);
    bool file = how == DRAWN_PNG || how == DRAWN_PDF;
    d->sheet = (tb_sheet){.theme = (tb_theme)d->theme, .scale = d->scale};
    if (d->scale > 0 && !file)
        return usage_error(command, "--scale: only for png and pdf");
    if (d->size && how != DRAWN_PNG)
        return usage_error(command, "--size: only for png");
    if (d->page >= 0 && how != DRAWN_PDF && how != DRAWN_SVG)
        return usage_error(command, "--page: only for pdf and svg");
    if (d->scale > 0 && (d->size || d->page >= 0))
        return usage_error(command, "--scale: a sheet has its own");
    if (d->size && !read_size(d->size, &d->sheet))
        return usage_error(command, "--size: got %s, wanted WIDTHxHEIGHT",
                           d->size);
    if (d->page >= 0)
        take_page(d->page, &d->sheet);
    if (file && !d->out && isatty(STDOUT_FILENO))
        return usage_error(command, "--out FILE: a terminal does not show "
                                    "png and pdf");
    return 0;
}

/* --- writing -------------------------------------------------------------- */

tb_status deliver(tb_ctx *ctx, const char *file, const char *data, size_t n)
{
    if (file)
        return tb_file_write_atomic(ctx, file, data, n);
    fwrite(data, 1, n, stdout); /* finish() says whether it could */
    return TB_OK;
}

tb_status deliver_text(tb_ctx *ctx, const char *file, const tb_out *text)
{
    if (file)
        return deliver(ctx, file, tb_out_str(text), tb_out_len(text));
    put_clean(stdout, tb_out_str(text));
    return TB_OK;
}

tb_status deliver_json(tb_ctx *ctx, const char *file, const tb_json *j)
{
    const char *text = tb_json_text(j);
    size_t n = text ? strlen(text) : 0;
    char *line = text ? malloc(n + 1) : NULL;
    if (!line)
        return TB_ERR_MEMORY;
    memcpy(line, text, n);
    line[n] = '\n';
    tb_status status = deliver(ctx, file, line, n + 1);
    free(line);
    return status;
}

tb_svg drawing_svg(const drawing *d)
{
    return (tb_svg){.theme = d->sheet.theme,
                    .sheet = d->sheet.turn ? &d->sheet : NULL};
}

tb_status drawing_write(tb_ctx *ctx, const drawing *d, const tb_scene *scene)
{
    tb_out *out;
    const tb_svg svg = drawing_svg(d);
    tb_status s = tb_out_create(ctx, &out);
    if (s != TB_OK)
        return s;
    s = d->how == DRAWN_PNG   ? tb_scene_png(scene, &d->sheet, out)
        : d->how == DRAWN_PDF ? tb_scene_pdf(scene, &d->sheet, out)
                              : tb_scene_svg(scene, &svg, out);
    if (s == TB_OK)
        s = deliver(ctx, d->out, tb_out_str(out), tb_out_len(out));
    tb_out_destroy(out);
    return s;
}
