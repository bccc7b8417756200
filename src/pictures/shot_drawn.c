/* SPDX-License-Identifier: MIT */
/* Blocks as panels: from the text to the graph to the diagram. */
#include "pictures/shot_drawn.h"
#include "pictures/diagram_of.h"

tb_status shot_explain(tb_shot *s, const tb_block *b,
                       const tb_settings *settings, tb_explained *e,
                       tb_diagram **out)
{
    *out = shot_alloc(s, 1, sizeof **out);
    if (!*out)
        return TB_ERR_MEMORY;
    tb_status status = tb_explained_open(s->ctx, e, b, settings);
    if (status == TB_OK)
        status =
            tb_diagram_of(s->ctx, &s->arena, NULL, e->kinds[0].g, NULL, *out);
    if (status != TB_OK)
        tb_explained_close(e);
    return status;
}

static tb_status draw_block(tb_shot *s, const tb_block *b, const char *title,
                            bool beside, int *tolls)
{
    const tb_settings settings = TB_SETTINGS_UNSET;
    tb_explained e;
    tb_diagram *d;
    TB_TRY(shot_explain(s, b, &settings, &e, &d));
    *tolls = e.kinds[0].info.tolls;
    tb_explained_close(&e);
    d->title = title;
    if (beside)
        shot_beside(s, &shot_diagram, d);
    else
        shot_below(s, &shot_diagram, d);
    return TB_OK;
}

tb_status shot_draw(tb_shot *s, const char *text, const char *title,
                    bool beside, int *tolls)
{
    tb_block *b;
    TB_TRY(tb_block_load(s->ctx, text, &b));
    tb_status status = draw_block(s, b, title, beside, tolls);
    tb_block_destroy(s->ctx, b);
    return status;
}
