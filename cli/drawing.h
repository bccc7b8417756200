/* SPDX-License-Identifier: MIT */
/* What the commands share that write a figure: formats, files, sheets. */
#ifndef TB_CLI_DRAWING_H
#define TB_CLI_DRAWING_H

#include "cli.h"

/** How a picture is written. */
typedef enum drawn { DRAWN_NOT, DRAWN_SVG, DRAWN_PNG, DRAWN_PDF } drawn;

/** What a result is written as, where it goes, how large and in which colours.
 */
typedef struct drawing {
    int format; /* index in the command's formats, "text|svg|png" */
    bool json;
    const char *out, *size;
    int theme, page;
    double scale;
    tb_sheet sheet; /* what the others come to */
    drawn how;
} drawing;

#define DRAWING_UNSET                                                          \
    {                                                                          \
        .format = -1, .page = -1                                               \
    }

#define DRAWING_OPTS(d, formats)                                                 \
    {"format",                                                                   \
     OPT_CHOICE,                                                                 \
     &(d).format,                                                                \
     NULL,                                                                       \
     "what to write (default: by the end of --out, else text)",                  \
     formats,                                                                    \
     0},                                                                         \
        {"json", OPT_FLAG, &(d).json, NULL, "the same as --format json", 0, 0},  \
        {"out", OPT_TEXT, &(d).out, "FILE", "write it there, not to the output", \
         0,     0},                                                              \
        {"theme",                                                                \
         OPT_CHOICE,                                                             \
         &(d).theme,                                                             \
         NULL,                                                                   \
         "colours (default auto: the reader's; png, pdf: light)",                \
         "auto|light|dark",                                                      \
         0},                                                                     \
        {"scale",                                                                \
         OPT_REAL,                                                               \
         &(d).scale,                                                             \
         "F",                                                                    \
         "png, pdf: so many times as large (default 1)",                         \
         0,                                                                      \
         1e-3},                                                                  \
        {"size",                                                                 \
         OPT_TEXT,                                                               \
         &(d).size,                                                              \
         "WxH",                                                                  \
         "png: pixels; the picture as large as fits",                            \
         0,                                                                      \
         0},                                                                     \
    {                                                                            \
        "page", OPT_CHOICE, &(d).page, NULL,                                     \
            "pdf, svg: the sheet; the picture as large as fits", "a4|letter",    \
            0                                                                    \
    }

/** drawing_settle - the format: as said, or json, or by the end of the file's
 * name, or the first; and the sheet. 0, or the exit code of a usage error. */
int drawing_settle(const char *command, const char *formats, drawing *d);
/** drawing_svg - how an SVG is written; points into `d`. */
tb_svg drawing_svg(const drawing *d);
/** drawing_write - to the file or to standard output. */
tb_status drawing_write(tb_ctx *ctx, const drawing *d, const tb_scene *scene);

/** deliver - n bytes to the file, or to standard output where it is NULL;
 * deliver_text - text, which a terminal gets clean; deliver_json - the finished
 * object and a newline. */
tb_status deliver(tb_ctx *ctx, const char *file, const char *data, size_t n);
tb_status deliver_text(tb_ctx *ctx, const char *file, const tb_out *text);
tb_status deliver_json(tb_ctx *ctx, const char *file, const tb_json *j);

#endif
