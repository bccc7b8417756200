/* SPDX-License-Identifier: MIT */
/* From a graph to the neutral description a diagram is drawn from. */
#ifndef TB_PICTURES_DIAGRAM_OF_H
#define TB_PICTURES_DIAGRAM_OF_H

#include "graph/graph.h"
#include "tollbooth/pictures.h"

/** tb_diagram_of - the lane of one block and what joins it; where every step
 * reads the same (F), one step. `stem` adds what comes before the first block,
 * `tail` what follows the last; both may be NULL. Everything lives in `arena`.
 */
tb_status tb_diagram_of(tb_ctx *ctx, tb_arena *arena, const tb_graph *stem,
                        const tb_graph *g, const tb_graph *tail,
                        tb_diagram *out);

/** tb_node_text - a node as a formula; tb_attr_text - a constant as the text
 * names it, or as it is. NULL without memory. */
const char *tb_node_text(tb_ctx *ctx, tb_arena *a, const tb_graph *g, int node);
const char *tb_attr_text(tb_ctx *ctx, tb_arena *a, const tb_attr *c);

#endif
