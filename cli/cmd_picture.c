/* SPDX-License-Identifier: MIT */
/* tollbooth picture: figures of the walkthrough, by name. */
#include "named.h"
#include "tollbooth/shot.h"

#include <stdio.h>

static const opt_usage usage = {
    .name = "picture",
    .operands = "SHOT",
    .summary = "a figure of the walkthrough, computed",
    .detail = "SHOT is a name of the list that `tollbooth picture --list` "
              "prints. --set replaces its numbers by name, as JSON or from a "
              "file. Every number in a picture is computed when it is drawn.",
    .example = "picture batchnorm --set padding='[0,2,8]' --format svg",
    .min = 0,
    .max = 1,
};

enum { AS_TEXT, AS_SVG, AS_JSON };

typedef struct picture_options {
    int format, theme;
    bool ascii;
} picture_options;

static int list_shots(void)
{
    for (size_t i = 0; i < tb_shot_count(); i++)
        printf("%-12s %s (--set %s)\n", tb_shot_name(i), tb_shot_about(i),
               tb_shot_inputs(i));
    return finish(0);
}

static int print_object(tb_ctx *ctx, const tb_shot *s)
{
    tb_json *j;
    if (tb_json_create(ctx, &j) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_shot_json(s, j, NULL);
    return print_json(ctx, j, 0);
}

static int draw(tb_ctx *ctx, const tb_shot *s, const picture_options *o)
{
    tb_terminal term = terminal_of(o->ascii);
    tb_out *out;
    if (o->format == AS_JSON)
        return print_object(ctx, s);
    if (tb_out_create(ctx, &out) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_status status = o->format == AS_SVG
                           ? tb_shot_svg(s, (tb_theme)o->theme, out)
                           : tb_shot_term(s, &term, out);
    if (status == TB_OK)
        fputs(tb_out_str(out), stdout);
    tb_out_destroy(out);
    return status == TB_OK ? finish(0) : die(ctx, status);
}

static int run(tb_ctx *ctx, const char *name, const named *sets,
               const picture_options *o)
{
    tb_shot *s;
    tb_status status = tb_shot_create(ctx, name, sets->count, sets->values, &s);
    if (status != TB_OK)
        return die(ctx, status);
    int code = draw(ctx, s, o);
    tb_shot_destroy(s);
    return code;
}

int cmd_picture(tb_ctx *ctx, int argc, char **argv)
{
    opt_many set = {.count = 0};
    picture_options o = {.format = AS_TEXT};
    bool json = false, list = false;
    const opt opts[] = {
        {"set", OPT_MANY, &set, "NAME=V", "other numbers: padding='[0,1,20]'",
         0, 0},
        {"format", OPT_CHOICE, &o.format, NULL, "what to print (default text)",
         "text|svg|json", 0},
        {"json", OPT_FLAG, &json, NULL, "the same as --format json", 0, 0},
        {"theme", OPT_CHOICE, &o.theme, NULL,
         "colours of the SVG (default auto: the reader's)", "auto|light|dark",
         0},
        {"ascii", OPT_FLAG, &o.ascii, NULL, "plain ASCII drawing", 0, 0},
        {"list", OPT_FLAG, &list, NULL, "the names, and what they show", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    if (list)
        return list_shots();
    if (argc == 0)
        return usage_error("picture", "got 0 operands, wanted SHOT; --list "
                                      "names them");
    o.format = json ? AS_JSON : o.format;
    named sets = {.command = "picture"};
    int code = named_add_all(ctx, &sets, "set", &set);
    if (code == 0)
        code = run(ctx, argv[0], &sets, &o);
    named_clear(ctx, &sets);
    return code;
}
