/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: the faces of a stage (shot_stage.h). */
#ifndef TB_PICTURES_SHOT_STAGE_PARTS_H
#define TB_PICTURES_SHOT_STAGE_PARTS_H

#include "pictures/shot_stage.h"

tb_status stage_scene(tb_ctx *ctx, const void *data, tb_scene **out);
tb_status stage_term(tb_ctx *ctx, const void *data, const tb_terminal *term,
                     tb_out *out);
tb_status stage_html(tb_ctx *ctx, const void *data, tb_out *out);
void stage_json(const void *data, tb_json *j);

/** Least and largest of all lists, and zero. */
void stage_range(const shot_stage *st, double *lo, double *hi);

#endif
