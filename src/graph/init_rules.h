/* SPDX-License-Identifier: MIT */
/* Which weights a line of init: means, and the rules that came with the
 * settings. What a rule draws is the model's business. */
#ifndef TB_GRAPH_INIT_RULES_H
#define TB_GRAPH_INIT_RULES_H

#include "graph/graph.h"

/**
 * tb_init_glob - does a glob mean the weight of this full name and role?
 *
 * A glob is compared with the full name and with the name after "layers.N.",
 * of two stacks each with and without "encoder." or "decoder."; * is any run of
 * characters. It means weights: ".weight" need not be written; biases and gains
 * match only a glob that ends in .bias or .gain. Embeddings match only a glob
 * that does not begin with *, and learned scalars and vectors only one without
 * * in their own name: `*` is every matrix, and
 * `*, embed.*` every weight.
 */
bool tb_init_glob(const char *glob, const char *name, tb_role role);

/** tb_init_of_side - is it about one of two stacks? In a single stack such a
 * glob means nothing, and need not. */
bool tb_init_of_side(const char *glob);

/** tb_init_of_layer - does it name a layer, which may be one not looked at? */
bool tb_init_of_layer(const char *glob);

/** tb_init_glob_pos - where glob number g of a line stands: the tree keeps
 * only the place of the first. */
tb_pos tb_init_glob_pos(const tb_block *b, const tb_init_rule *line, int g);

/** tb_init_extra - the settings' init rules as a text of its own; *out is NULL
 * where there are none. */
tb_status tb_init_extra(tb_ctx *ctx, const tb_settings *s, tb_block **out);

#endif
