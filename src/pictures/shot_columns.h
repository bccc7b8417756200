/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: lists side by side, number and bar in each cell,
 * on a terminal; the same as an HTML table. */
#ifndef TB_PICTURES_SHOT_COLUMNS_H
#define TB_PICTURES_SHOT_COLUMNS_H

#include "pictures/shot_parts.h"

enum { SHOT_COLUMNS = 4 };

typedef struct shot_columns {
    const char *caption; /* of the HTML table */
    size_t n, d;
    const char *names[SHOT_COLUMNS]; /* 8 columns at most */
    const double *lists[SHOT_COLUMNS];
} shot_columns;

void shot_columns_add(shot_columns *c, const char *name, const double *list);
/** Bars are as long as the largest magnitude of all lists says, and left out
 * where the terminal is too narrow. */
void shot_columns_term(const shot_columns *c, const tb_terminal *term,
                       tb_out *out);
tb_status shot_columns_html(tb_ctx *ctx, const shot_columns *c, tb_out *out);
/** The HTML of a face whose data are columns, as `columns_of` has them. */
#define SHOT_COLUMNS_HTML(name, columns_of)                                    \
    static tb_status name(tb_ctx *ctx, const void *data, tb_out *out)          \
    {                                                                          \
        const shot_columns c = columns_of(data);                               \
        return shot_columns_html(ctx, &c, out);                                \
    }

#endif
