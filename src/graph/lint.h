/* SPDX-License-Identifier: MIT */
/* Findings about a block, read from its graphs. */
#ifndef TB_GRAPH_LINT_H
#define TB_GRAPH_LINT_H

#include "graph/graph.h"

typedef enum tb_lint_level {
    TB_LINT_NOTE,
    TB_LINT_WARN,
    TB_LINT_FAIL
} tb_lint_level;

typedef struct tb_finding {
    const char *code;
    tb_lint_level level;
    const char *message;
    tb_pos pos;
} tb_finding;

enum { TB_FINDINGS_MAX = 32 };

/** tb_lint - the findings on one layer and the tail, at most cap. A code that
 * the text expects (expect: CODE) becomes a note. */
int tb_lint(const tb_block *b, const tb_graph *layer, const tb_graph *tail,
            tb_finding *out, int cap);

/** tb_lint_json - as the member "lint". */
tb_status tb_lint_json(tb_ctx *ctx, const tb_block *b, const tb_graph *layer,
                       const tb_graph *tail, tb_json *j);
/** tb_lint_text - one line each, nothing if there are none. */
void tb_lint_text(tb_ctx *ctx, const tb_block *b, const tb_graph *layer,
                  const tb_graph *tail, tb_buf *out);

#endif
