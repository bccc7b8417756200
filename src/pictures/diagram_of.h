/* SPDX-License-Identifier: MIT */
/* From a graph to the neutral description a diagram is drawn from. */
#ifndef TB_PICTURES_DIAGRAM_OF_H
#define TB_PICTURES_DIAGRAM_OF_H

#include "graph/graph.h"
#include "tollbooth/pictures.h"

/** tb_diagram_of - the lane of one block and what joins it; where every step
 * reads the same (F), one step. `tail` adds the norms after the last block
 * and may be NULL. Everything lives in `arena`. */
tb_status tb_diagram_of(tb_ctx *ctx, tb_arena *arena, const tb_graph *g,
                        const tb_graph *tail, tb_diagram *out);

#endif
