/* SPDX-License-Identifier: MIT */
/* What the text of a block alone gives: diagram, symbolic Jacobian, lane,
 * corners, findings, parameters. */
#ifndef TOLLBOOTH_EXPLAIN_H
#define TOLLBOOTH_EXPLAIN_H

#include "tollbooth/block.h"
#include "tollbooth/json.h"
#include "tollbooth/pictures.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum tb_explain_format {
    TB_EXPLAIN_TEXT,
    TB_EXPLAIN_LATEX,
    TB_EXPLAIN_MATHML,
    TB_EXPLAIN_SVG
} tb_explain_format;

/** How far the symbolic Jacobian, evaluated in double on random numbers, is
 * from three other ways to it: largest entry of the difference over the
 * largest entry. */
typedef struct tb_numeric {
    double error; /* the largest of the three */
    double tangent, backward, difference;
    size_t width, tokens; /* it was evaluated at */
} tb_numeric;

/** tb_explain_numeric - every kind of layer of the block, one by one: each of
 * its steps with sublayers closed and open, and their product; the blocks of
 * the matrix where there are several streams. At width 8 unless the settings
 * say otherwise. TB_ERR_ARG for widths above 128; TB_ERR_INPUT for zero
 * variance met with eps = 0. */
tb_status tb_explain_numeric(tb_ctx *ctx, const tb_block *b,
                             const tb_settings *settings, uint64_t seed,
                             tb_numeric *out);

/** Whether a block has the placement that it is said to have. */
typedef struct tb_expected {
    bool same;
    const char *placement; /* a built-in block that has the block's own
                              placement; NULL if it is the same or there is
                              none */
} tb_expected;

/** tb_explain_expect - compares the graphs of all blocks and of what follows
 * them: where norms, sums, factors and sublayers stand, not which kind of norm
 * they are nor what is inside a sublayer. How they differ is appended to
 * `why`. */
tb_status tb_explain_expect(tb_ctx *ctx, const tb_block *b,
                            const tb_block *other, const tb_settings *settings,
                            tb_expected *out, tb_out *why);

/** tb_explain_json - the object of `explain --json` (docs/json.md), as the
 * member `key` (NULL at the top), with `numeric` (NULL: none). No weights are
 * made, so any depth and width that can be counted can be explained. */
tb_status tb_explain_json(tb_ctx *ctx, const tb_block *b,
                          const tb_settings *settings,
                          const tb_numeric *numeric, tb_json *j,
                          const char *key);

/** tb_explain_text - the same for a reader; expand opens J_attn and J_ffn in
 * formulas; columns and ascii as in tb_terminal, for TB_EXPLAIN_TEXT only. */
tb_status tb_explain_text(tb_ctx *ctx, const tb_block *b,
                          const tb_settings *settings, tb_explain_format format,
                          bool expand, int columns, bool ascii, tb_out *out);

/** tb_explain_scene - the diagrams of all kinds of blocks, each over its
 * Jacobian; the caller destroys it (tb_scene_destroy). */
tb_status tb_explain_scene(tb_ctx *ctx, const tb_block *b,
                           const tb_settings *settings, tb_scene **out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
