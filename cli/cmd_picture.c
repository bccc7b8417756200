/* SPDX-License-Identifier: MIT */
/* tollbooth picture: figures of the walkthrough, by name. */
#include "cli.h"
#include "tollbooth/checkpoint.h"
#include "tollbooth/shot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const opt_usage usage = {
    .name = "picture",
    .operands = "SHOT",
    .summary = "a figure of the walkthrough, computed",
    .detail = "SHOT is a name of the list that `tollbooth picture --list` "
              "prints. --set replaces its inputs by name, several with commas "
              "between them. Every number in a picture is computed when it is "
              "drawn, and what it claims is checked then.\n\n"
              "PNG and PDF are drawn by cairo (Debian: libcairo2) in DejaVu "
              "Sans, or the font the system has in its place.",
    .example = "picture batchnorm --set 'padding=[0,2,8],token=2' --out "
               "batch.png --scale 2",
    .min = 0,
    .max = 1,
};

#define FORMATS "text|txt|svg|png|pdf|json|scene|html"
enum {
    AS_TEXT,
    AS_TXT,
    AS_SVG,
    AS_PNG,
    AS_PDF,
    AS_JSON,
    AS_SCENE,
    AS_HTML,
    UNSAID
};

typedef struct picture_options {
    int format, theme, page;
    const char *out, *size;
    double scale;
    bool ascii, check;
    tb_sheet sheet;
} picture_options;

static int list_object(tb_ctx *ctx)
{
    tb_json *j;
    if (tb_json_create(ctx, &j) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_shots_json(j, NULL);
    return print_json(ctx, j, 0);
}

static int list_shots(void)
{
    for (size_t i = 0; i < tb_shot_count(); i++) {
        size_t n;
        const tb_shot_input *in = tb_shot_inputs(i, &n);
        printf("%-12s %s (--set", tb_shot_name(i), tb_shot_about(i));
        for (size_t k = 0; k < n; k++)
            printf(" %s", in[k].name);
        printf(")\n");
    }
    return finish(0);
}

/* --- one picture ---------------------------------------------------------- */

static tb_status write_text(const tb_shot *s, const picture_options *o,
                            tb_out *out)
{
    tb_terminal term = terminal_of(o->ascii);
    return tb_shot_term(s, &term, out);
}

static tb_status write_svg(const tb_shot *s, const picture_options *o,
                           tb_out *out)
{
    const tb_svg svg = {.theme = (tb_theme)o->theme,
                        .sheet = o->page >= 0 ? &o->sheet : NULL};
    return tb_shot_svg(s, &svg, out);
}

/* What a page puts into itself: the SVG, which takes its colours from the
 * page, and the tables. */
static tb_status write_fragment(const tb_shot *s, const picture_options *o,
                                tb_out *out)
{
    (void)o;
    tb_status status = tb_shot_svg(s, &(tb_svg){.in_html = true}, out);
    return status == TB_OK ? tb_shot_html(s, out) : status;
}

static tb_status write_drawn(const tb_shot *s, const picture_options *o,
                             tb_out *out)
{
    tb_scene *scene;
    tb_status status = tb_shot_scene(s, &scene);
    if (status != TB_OK)
        return status;
    status = o->format == AS_PNG ? tb_scene_png(scene, &o->sheet, out)
                                 : tb_scene_pdf(scene, &o->sheet, out);
    tb_scene_destroy(scene);
    return status;
}

typedef tb_status (*writer)(const tb_shot *s, const picture_options *o,
                            tb_out *out);
static const writer writers[] = {
    [AS_TEXT] = write_text, [AS_TXT] = write_text,     [AS_SVG] = write_svg,
    [AS_PNG] = write_drawn, [AS_PDF] = write_drawn,    [AS_JSON] = NULL,
    [AS_SCENE] = NULL,      [AS_HTML] = write_fragment};

/* To the file, or to standard output. */
static tb_status deliver(tb_ctx *ctx, const char *file, const char *data,
                         size_t n)
{
    if (file)
        return tb_file_write_atomic(ctx, file, data, n);
    fwrite(data, 1, n, stdout); /* finish() says whether it could */
    return TB_OK;
}

/* The finished object and a newline. */
static tb_status deliver_json(tb_ctx *ctx, const char *file, const tb_json *j)
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

static tb_status put_scene(const tb_shot *s, tb_json *j)
{
    tb_scene *scene;
    tb_status status = tb_shot_scene(s, &scene);
    if (status != TB_OK)
        return status;
    tb_scene_json(scene, j, NULL);
    tb_scene_destroy(scene);
    return TB_OK;
}

static tb_status draw_json(tb_ctx *ctx, const tb_shot *s,
                           const picture_options *o)
{
    tb_json *j;
    tb_status status = tb_json_create(ctx, &j);
    if (status != TB_OK)
        return status;
    if (o->format == AS_SCENE)
        status = put_scene(s, j);
    else
        tb_shot_json(s, j, NULL);
    if (status == TB_OK)
        status = deliver_json(ctx, o->out, j);
    tb_json_destroy(j);
    return status;
}

static tb_status draw_bytes(tb_ctx *ctx, const tb_shot *s,
                            const picture_options *o)
{
    tb_out *out;
    tb_status status = tb_out_create(ctx, &out);
    if (status != TB_OK)
        return status;
    status = writers[o->format](s, o, out);
    if (status == TB_OK)
        status = deliver(ctx, o->out, tb_out_str(out), tb_out_len(out));
    tb_out_destroy(out);
    return status;
}

static int draw(tb_ctx *ctx, const tb_shot *s, const picture_options *o)
{
    int code = o->check && !tb_shot_ok(s) ? tb_status_exit(TB_CHECK)
                                          : tb_status_exit(tb_shot_refused(s));
    tb_status status =
        writers[o->format] ? draw_bytes(ctx, s, o) : draw_json(ctx, s, o);
    return status == TB_OK ? finish(code) : die(ctx, status);
}

static int print_colours(tb_ctx *ctx, const picture_options *o)
{
    tb_out *out;
    if (tb_out_create(ctx, &out) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_status status = tb_pictures_css((tb_theme)o->theme, out);
    if (status == TB_OK)
        fputs(tb_out_str(out), stdout);
    tb_out_destroy(out);
    return status == TB_OK ? finish(0) : die(ctx, status);
}

/* --- what is asked for ---------------------------------------------------- */

/* By the end of the file's name where --format does not say it. */
static int format_of(const picture_options *o)
{
    const char *dot = o->out ? strrchr(o->out, '.') : NULL;
    const char *name = FORMATS;
    if (o->format != UNSAID)
        return o->format;
    for (int i = 0; dot && i < UNSAID; i++, name += strcspn(name, "|") + 1)
        if (strcspn(name, "|") == strlen(dot + 1) &&
            strncmp(name, dot + 1, strlen(dot + 1)) == 0)
            return i;
    return AS_TEXT;
}

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

/* 0, or the exit code of a usage error. */
static int settle(picture_options *o)
{
    bool drawn = o->format == AS_PNG || o->format == AS_PDF;
    o->sheet = (tb_sheet){.theme = (tb_theme)o->theme, .scale = o->scale};
    if (o->scale > 0 && !drawn)
        return usage_error("picture", "--scale: only for png and pdf");
    if (o->size && o->format != AS_PNG)
        return usage_error("picture", "--size: only for png");
    if (o->page >= 0 && o->format != AS_PDF && o->format != AS_SVG)
        return usage_error("picture", "--page: only for pdf and svg");
    if (o->scale > 0 && (o->size || o->page >= 0))
        return usage_error("picture", "--scale: a sheet has its own");
    if (o->size && !read_size(o->size, &o->sheet))
        return usage_error("picture", "--size: got %s, wanted WIDTHxHEIGHT",
                           o->size);
    if (o->page >= 0)
        take_page(o->page, &o->sheet);
    if (drawn && !o->out && isatty(STDOUT_FILENO))
        return usage_error("picture", "--out FILE: a terminal does not show "
                                      "png and pdf");
    return 0;
}

/* Several --set, and several in one: joined as the page's address does. */
static bool add_setting(char *all, size_t room, const char *one)
{
    size_t n = strlen(all), k = strlen(one);
    if (n + k + 2 > room)
        return false;
    all[n] = '&';
    memcpy(all + n + 1, one, k + 1);
    return true;
}

static int run(tb_ctx *ctx, const char *name, const opt_many *sets,
               const picture_options *o)
{
    char settings[4096] = "";
    for (size_t i = 0; i < sets->count; i++)
        if (strcspn(sets->items[i], "=") == 0 || !strchr(sets->items[i], '='))
            return usage_error("picture", "--set: got %s, wanted NAME=VALUE",
                               sets->items[i]);
        else if (!add_setting(settings, sizeof settings, sets->items[i]))
            return usage_error("picture", "--set: got more than %zu bytes",
                               sizeof settings);
    tb_shot *s;
    tb_ctx_exact(ctx, true); /* as the page computes */
    tb_status status = tb_shot_create(ctx, name, settings, &s);
    if (status != TB_OK)
        return die(ctx, status);
    int code = draw(ctx, s, o);
    tb_shot_destroy(s);
    return code;
}

int cmd_picture(tb_ctx *ctx, int argc, char **argv)
{
    opt_many set = {.count = 0};
    picture_options o = {.format = UNSAID, .page = -1};
    bool json = false, list = false, colours = false;
    const opt opts[] = {
        {"set", OPT_MANY, &set, "NAME=V", "other inputs: 'N=24,seed=2'", 0, 0},
        {"format", OPT_CHOICE, &o.format, NULL,
         "what to write (default: by the end of --out, else text)", FORMATS, 0},
        {"out", OPT_TEXT, &o.out, "FILE", "write it there, not to the output",
         0, 0},
        {"json", OPT_FLAG, &json, NULL, "the same as --format json", 0, 0},
        {"theme", OPT_CHOICE, &o.theme, NULL,
         "colours (default auto: the reader's; png, pdf: light)",
         "auto|light|dark", 0},
        {"scale", OPT_REAL, &o.scale, "F",
         "png, pdf: so many times as large (default 1)", 0, 1e-3},
        {"size", OPT_TEXT, &o.size, "WxH",
         "png: pixels; the picture as large as fits", 0, 0},
        {"page", OPT_CHOICE, &o.page, NULL,
         "pdf, svg: the sheet; the picture as large as fits", "a4|letter", 0},
        {"colours", OPT_FLAG, &colours, NULL,
         "the style sheet that a page with --format html needs", 0, 0},
        {"ascii", OPT_FLAG, &o.ascii, NULL, "plain ASCII drawing", 0, 0},
        {"check", OPT_FLAG, &o.check, NULL, "exit 1 if a claim does not hold",
         0, 0},
        {"list", OPT_FLAG, &list, NULL, "the names, and what they show", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    if (list)
        return json ? list_object(ctx) : list_shots();
    if (colours)
        return print_colours(ctx, &o);
    if (argc == 0)
        return usage_error("picture", "got 0 operands, wanted SHOT; --list "
                                      "names them");
    o.format = json ? AS_JSON : format_of(&o);
    int wrong = settle(&o);
    return wrong ? wrong : run(ctx, argv[0], &set, &o);
}
