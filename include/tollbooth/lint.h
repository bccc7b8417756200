/* SPDX-License-Identifier: MIT */
/* What is wrong, or only remarkable, in the text of a block: findings with a
 * place, a reason, a fix and a source. Read from the graphs of the stack
 * (stem, every kind of layer, tail) and from the names of the text, never from
 * the name of a block. docs/lint.md is the list. */
#ifndef TOLLBOOTH_LINT_H
#define TOLLBOOTH_LINT_H

#include "tollbooth/block.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum tb_lint_level {
    TB_LINT_NOTE, /* worth knowing; often meant */
    TB_LINT_WARN, /* seldom meant */
    TB_LINT_FAIL  /* cannot be meant */
} tb_lint_level;

/** One finding. `line` and `column` are from 1; strings live as long as the
 * tb_lint. */
typedef struct tb_finding {
    const char *code;
    tb_lint_level level;
    const char *message, *fix, *source;
    int line, column;
} tb_finding;

/** A code that can be found, its usual level and texts. */
typedef struct tb_lint_code {
    const char *code;
    tb_lint_level level;
    const char *message, *fix, *source;
} tb_lint_code;

typedef struct tb_lint tb_lint;

/** tb_lint_create - the findings of `b` under `settings`, by place, at most
 * 200. A code that the text expects (expect: CODE) is a note, and an expected
 * code that is not found is one too. Where no dropout rate is set, drop(...)
 * is read at 0.1. Fails where the block cannot be built; `b` must outlive the
 * result. */
tb_status tb_lint_create(tb_ctx *ctx, const tb_block *b,
                         const tb_settings *settings, tb_lint **out);
/** tb_lint_destroy - NULL is fine. */
void tb_lint_destroy(tb_lint *l);

/** tb_lint_count, tb_lint_at - the findings, by place. */
size_t tb_lint_count(const tb_lint *l);
const tb_finding *tb_lint_at(const tb_lint *l, size_t i);

/** tb_lint_worst - the highest level, -1 if nothing was found. */
int tb_lint_worst(const tb_lint *l);

/** tb_lint_json - one object per finding, into the array `j` is in. `block`
 * becomes the member of that name, unless `named` is false. */
void tb_lint_json(const tb_lint *l, tb_json *j, bool named, const char *block);

/** tb_lint_text - as compilers print: "file:1:9: warn code: message", the line
 * with a caret, "fix:" and "source:"; broken to fit into `columns`, 0: not at
 * all. `file` may be NULL. Freed with tb_text_free. */
tb_status tb_lint_text(const tb_lint *l, const char *file, size_t columns,
                       char **out);

/** tb_lint_level_name - as text and JSON call it. */
const char *tb_lint_level_name(tb_lint_level level);

/** tb_lint_code_at - the i-th code, in the order of docs/lint.md; NULL past
 * the last. */
const tb_lint_code *tb_lint_code_at(size_t i);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
