/* SPDX-License-Identifier: MIT */
/* Arrays that options name, for eval and picture. */
#ifndef TB_CLI_NAMED_H
#define TB_CLI_NAMED_H

#include "cli.h"
#include "tollbooth/checkpoint.h"
#include "tollbooth/eval.h"

enum { NAMED_VALUES = 64 };

/** Named arrays from the command line; the names live here. */
typedef struct named {
    const char *command; /* for messages */
    tb_array arrays[NAMED_VALUES];
    char *names[NAMED_VALUES];
    tb_eval_value values[NAMED_VALUES];
    size_t count;
} named;

/** named_add - one NAME=VALUE of --option; 0 or an exit code, said. */
int named_add(tb_ctx *ctx, named *n, const char *option, const char *item);
/** named_add_all - all of them, up to the first that fails. */
int named_add_all(tb_ctx *ctx, named *n, const char *option,
                  const opt_many *items);
void named_clear(tb_ctx *ctx, named *n);

#endif
