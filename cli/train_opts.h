/* SPDX-License-Identifier: MIT */
/* Options that train and compare share. */
#ifndef TB_CLI_TRAIN_OPTS_H
#define TB_CLI_TRAIN_OPTS_H

#include "cli.h"
#include "tollbooth/train.h"

/* t is a tb_train_spec, schedule and dtype are ints: indices into the choices;
 * D, T, B are the command's default width, context and batch as text. */
#define TRAIN_OPTS(t, schedule, dtype, D, T, B)                                 \
    SETTINGS_OPTS((t).settings, D),                                             \
        {"context",                                                             \
         OPT_SIZE,                                                              \
         &(t).settings.context,                                                 \
         "T",                                                                   \
         "tokens a model sees (default " T ")",                                 \
         0,                                                                     \
         0},                                                                    \
        {"batch", OPT_SIZE, &(t).batch, "B", "rows per update (default " B ")", \
         0,       0},                                                           \
        {"lr", OPT_REAL, &(t).lr, "R", "peak learning rate (default 1e-3)",     \
         0,    0},                                                              \
        {"schedule",                                                            \
         OPT_CHOICE,                                                            \
         &(schedule),                                                           \
         NULL,                                                                  \
         "after the warm-up (default cosine)",                                  \
         "constant|cosine|invsqrt",                                             \
         0},                                                                    \
        {"dtype",                                                               \
         OPT_CHOICE,                                                            \
         &(dtype),                                                              \
         NULL,                                                                  \
         "bf16: operands of products with weights are rounded to it (default "  \
         "f32)",                                                                \
         "f32|bf16",                                                            \
         0},                                                                    \
        {"weight-decay",                                                        \
         OPT_REAL,                                                              \
         &(t).weight_decay,                                                     \
         "D",                                                                   \
         "on matrices only (default 0.1)",                                      \
         0,                                                                     \
         0},                                                                    \
        {"beta2",                                                               \
         OPT_REAL,                                                              \
         &(t).beta2,                                                            \
         "b",                                                                   \
         "second moment's decay (default 0.95)",                                \
         0,                                                                     \
         0},                                                                    \
        {"clip",                                                                \
         OPT_REAL,                                                              \
         &(t).clip,                                                             \
         "C",                                                                   \
         "largest gradient norm; 0: no clipping (default 1)",                   \
         0,                                                                     \
         0},                                                                    \
        {"val-windows",                                                         \
         OPT_SIZE,                                                              \
         &(t).val_windows,                                                      \
         "n",                                                                   \
         "validation windows each time (default 32)",                           \
         0,                                                                     \
         0},                                                                    \
    {                                                                           \
        "tokenizer", OPT_TEXT, &(t).tokenizer, "KIND",                          \
            "char or byte (default char)", 0, 0                                 \
    }

/** schedule_of, dtype_of - the enum for the option's index, -1: unset. */
tb_schedule schedule_of(int choice);
tb_dtype dtype_of(int choice);

enum { STEP_TEXT = 3 * TB_SHOW_CHARS + 64 };

/** step_text - "loss 1.93, validation 2.01, 5310 tokens/s" into out. */
void step_text(const tb_train_step *s, char out[STEP_TEXT]);

#endif
