/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: shots that draw a block from its graph. */
#ifndef TB_PICTURES_SHOT_DRAWN_H
#define TB_PICTURES_SHOT_DRAWN_H

#include "pictures/explain_parts.h"
#include "pictures/shot_panels.h"

/** What is known of the block, which the caller closes, and the diagram of its
 * first kind of block. */
tb_status shot_explain(tb_shot *s, const tb_block *b,
                       const tb_settings *settings, tb_explained *e,
                       tb_diagram **out);

/** The drawing of an equation as a panel; *tolls: norms on its lane. */
tb_status shot_draw(tb_shot *s, const char *text, const char *title,
                    bool beside, int *tolls);

#endif
