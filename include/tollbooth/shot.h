/* SPDX-License-Identifier: MIT */
/* Figures of the walkthrough by name. Every number in them comes from the
 * engine; each has an SVG, a terminal and a JSON face. */
#ifndef TOLLBOOTH_SHOT_H
#define TOLLBOOTH_SHOT_H

#include "tollbooth/eval.h"
#include "tollbooth/pictures.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** The table of shots: how many, their names, what they show, and what
 * --set may name ("x padding token"). */
size_t tb_shot_count(void);
const char *tb_shot_name(size_t i);
const char *tb_shot_about(size_t i);
const char *tb_shot_inputs(size_t i);

typedef struct tb_shot tb_shot;

/**
 * tb_shot_create - compute what the shot `name` draws. `sets` replace its own
 * numbers by name.
 *
 * Returns TB_ERR_ARG     no shot of that name (with the likely meant one)
 *         TB_ERR_INPUT   a set name it does not have, a number it cannot use
 *         TB_ERR_SHAPE   a list of another depth
 *         TB_ERR_MEMORY
 */
tb_status tb_shot_create(tb_ctx *ctx, const char *name, size_t nsets,
                         const tb_eval_value *sets, tb_shot **out);
void tb_shot_destroy(tb_shot *s); /* NULL is fine */

tb_status tb_shot_svg(const tb_shot *s, tb_theme theme, tb_out *out);
tb_status tb_shot_term(const tb_shot *s, const tb_terminal *term, tb_out *out);
/** tb_shot_json - the object of `picture --json` (docs/json.md). */
void tb_shot_json(const tb_shot *s, tb_json *j, const char *key);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
