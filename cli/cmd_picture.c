/* SPDX-License-Identifier: MIT */
/* tollbooth picture: figures of the walkthrough, by name. */
#include "drawing.h"
#include "tollbooth/shot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
enum { AS_TEXT, AS_TXT, AS_SVG, AS_PNG, AS_PDF, AS_JSON, AS_SCENE, AS_HTML };

typedef struct picture_options {
    bool ascii, check;
    drawing to;
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
    const tb_svg svg = drawing_svg(&o->to);
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

typedef tb_status (*writer)(const tb_shot *s, const picture_options *o,
                            tb_out *out);
static const writer writers[] = {
    [AS_TEXT] = write_text, [AS_TXT] = write_text,     [AS_SVG] = write_svg,
    [AS_PNG] = NULL,        [AS_PDF] = NULL,           [AS_JSON] = NULL,
    [AS_SCENE] = NULL,      [AS_HTML] = write_fragment};

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
    if (o->to.format == AS_SCENE)
        status = put_scene(s, j);
    else
        tb_shot_json(s, j, NULL);
    if (status == TB_OK)
        status = deliver_json(ctx, o->to.out, j);
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
    status = writers[o->to.format](s, o, out);
    if (status == TB_OK)
        status = deliver(ctx, o->to.out, tb_out_str(out), tb_out_len(out));
    tb_out_destroy(out);
    return status;
}

static tb_status draw_scene(tb_ctx *ctx, const tb_shot *s,
                            const picture_options *o)
{
    tb_scene *scene;
    tb_status status = tb_shot_scene(s, &scene);
    if (status != TB_OK)
        return status;
    status = drawing_write(ctx, &o->to, scene);
    tb_scene_destroy(scene);
    return status;
}

static int draw(tb_ctx *ctx, const tb_shot *s, const picture_options *o)
{
    int code = o->check && !tb_shot_ok(s) ? tb_status_exit(TB_CHECK)
                                          : tb_status_exit(tb_shot_refused(s));
    tb_status status = writers[o->to.format]    ? draw_bytes(ctx, s, o)
                       : o->to.how == DRAWN_NOT ? draw_json(ctx, s, o)
                                                : draw_scene(ctx, s, o);
    return status == TB_OK ? finish(code) : die(ctx, status);
}

static int print_colours(tb_ctx *ctx, const picture_options *o)
{
    tb_out *out;
    if (tb_out_create(ctx, &out) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_status status = tb_pictures_css((tb_theme)o->to.theme, out);
    if (status == TB_OK)
        fputs(tb_out_str(out), stdout);
    tb_out_destroy(out);
    return status == TB_OK ? finish(0) : die(ctx, status);
}

/* --- what is asked for ---------------------------------------------------- */

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
    picture_options o = {.to = DRAWING_UNSET};
    bool list = false, colours = false;
    const opt opts[] = {
        {"set", OPT_MANY, &set, "NAME=V", "other inputs: 'N=24,seed=2'", 0, 0},
        DRAWING_OPTS(o.to, FORMATS),
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
        return o.to.json ? list_object(ctx) : list_shots();
    if (colours)
        return print_colours(ctx, &o);
    if (argc == 0)
        return usage_error("picture", "got 0 operands, wanted SHOT; --list "
                                      "names them");
    int wrong = drawing_settle("picture", FORMATS, &o.to);
    return wrong ? wrong : run(ctx, argv[0], &set, &o);
}
