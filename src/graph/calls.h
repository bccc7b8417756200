/* SPDX-License-Identifier: MIT */
/* What the files of the language's functions share: calls.c (the table, and
 * definitions of a text), calls_norm.c, calls_sublayer.c, calls_stream.c,
 * calls_learned.c. */
#ifndef TB_GRAPH_CALLS_H
#define TB_GRAPH_CALLS_H

#include "graph/build.h"

/* --- arguments ------------------------------------------------------------ */

/** tb_call_has_word - is `word` one of `words`, which blanks separate? */
bool tb_call_has_word(const char *words, const char *word);
/** tb_call_option - the value of option `key`, or NULL. */
const tb_expr *tb_call_option(const tb_expr *e, const char *key);
/** tb_call_constant - an operand that must be a constant; `what` names it in
 * the message. */
tb_status tb_call_constant(tb_builder *b, const tb_expr *e, const char *what,
                           tb_val *v);
/** tb_call_attr - the same with its value for this layer, which shape rules
 * look at. */
tb_status tb_call_attr(tb_builder *b, const tb_expr *e, const char *what,
                       tb_attr *attr);
/** tb_call_flag - an option true or false, 1 or 0; `without` where the call
 * does not say. */
tb_status tb_call_flag(tb_builder *b, const tb_expr *e, const char *key,
                       int without, int *flag);
/** tb_call_word - one of the words of a setting, by number from 0. */
tb_status tb_call_word(tb_builder *b, const tb_expr *e, const char *key,
                       int without, int *word);
/** tb_call_groups - option groups: a number of equal parts of the width, or
 * `heads`; 0 where the call does not say. */
tb_status tb_call_groups(tb_builder *b, const tb_expr *e, size_t width,
                         size_t *groups);

/* --- values --------------------------------------------------------------- */

/** tb_call_node - a node as a value. */
tb_status tb_call_node(tb_val *out, int node);
/** tb_call_expand - the body of a definition with its parameters replaced. */
tb_status tb_call_expand(tb_builder *b, const tb_expr *e, const tb_def *def,
                         const tb_val *vals, tb_val *out);
/** tb_call_drop_node - drop or skipdrop of x; x itself at a rate of 0. */
tb_status tb_call_drop_node(tb_builder *b, const tb_op *op, int x, tb_attr p,
                            tb_pos pos, int *out);
/** tb_learned_build - scalar(...), vector(...) or matrix(...) named `base`. */
tb_status tb_learned_build(tb_builder *b, const tb_expr *e, const char *base,
                           int *node);
/** tb_linear_declare - the weights of linear(in, out). */
tb_status tb_linear_declare(tb_builder *b, const char *name, const tb_expr *e,
                            tb_lin *lin);

/* --- functions, as the table calls them ------------------------------------
 */

tb_status tb_call_norm(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_sublayer(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_weight(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_mha(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_rope(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_concat(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_mix(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_pair(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_options(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_drop(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_op(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_const_fn(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_either(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_learned(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_linear(tb_builder *b, const tb_expr *e, tb_val *out);
tb_status tb_call_project(tb_builder *b, const tb_expr *e, tb_val *out);

#endif
