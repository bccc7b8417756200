/* SPDX-License-Identifier: MIT */
/* What the commands share that write a figure: formats, files, sheets. */
#ifndef TB_CLI_DRAWING_H
#define TB_CLI_DRAWING_H

#include "cli.h"

/** Where a figure goes, how large and in which colours. */
typedef struct drawing {
    const char *out, *size;
    int theme, page;
    double scale;
    tb_sheet sheet; /* what the others come to */
} drawing;

#define DRAWING_UNSET                                                          \
    {                                                                          \
        .page = -1                                                             \
    }

#define DRAWING_OPTS(d)                                                        \
    {"out", OPT_TEXT, &(d).out, "FILE", "write it there, not to the output",   \
     0,     0},                                                                \
        {"theme",                                                              \
         OPT_CHOICE,                                                           \
         &(d).theme,                                                           \
         NULL,                                                                 \
         "colours (default auto: the reader's; png, pdf: light)",              \
         "auto|light|dark",                                                    \
         0},                                                                   \
        {"scale",                                                              \
         OPT_REAL,                                                             \
         &(d).scale,                                                           \
         "F",                                                                  \
         "png, pdf: so many times as large (default 1)",                       \
         0,                                                                    \
         1e-3},                                                                \
        {"size",                                                               \
         OPT_TEXT,                                                             \
         &(d).size,                                                            \
         "WxH",                                                                \
         "png: pixels; the picture as large as fits",                          \
         0,                                                                    \
         0},                                                                   \
    {                                                                          \
        "page", OPT_CHOICE, &(d).page, NULL,                                   \
            "pdf, svg: the sheet; the picture as large as fits", "a4|letter",  \
            0                                                                  \
    }

/** How a picture is written. */
typedef enum drawn { DRAWN_NOT, DRAWN_SVG, DRAWN_PNG, DRAWN_PDF } drawn;

/** format_of_file - index in `formats` ("text|svg|png") of the end of the
 * file's name; 0 where that is none of them, or `file` is NULL. */
int format_of_file(const char *formats, const char *file);
/** drawn_of - which of them, by its name in `formats`. */
drawn drawn_of(const char *formats, int format);

/** drawing_settle - fills the sheet; 0, or the exit code of a usage error. */
int drawing_settle(const char *command, drawing *d, drawn how);
/** drawing_svg - the same for an SVG; points into `d`. */
tb_svg drawing_svg(const drawing *d);
/** drawing_write - to the file or to standard output. */
tb_status drawing_write(tb_ctx *ctx, const drawing *d, drawn how,
                        const tb_scene *scene);

/** deliver - n bytes to the file, or to standard output where it is NULL;
 * deliver_json - the finished object and a newline. */
tb_status deliver(tb_ctx *ctx, const char *file, const char *data, size_t n);
tb_status deliver_json(tb_ctx *ctx, const char *file, const tb_json *j);

#endif
