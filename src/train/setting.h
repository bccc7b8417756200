/* SPDX-License-Identifier: MIT */
/* The settings of a run as one table, so that defaults, config.json, resume
 * and the header line are loops. */
#ifndef TB_TRAIN_SETTING_H
#define TB_TRAIN_SETTING_H

#include "base/base.h"
#include "tollbooth/train.h"

typedef enum tb_setting_kind {
    TB_SETTING_SIZE,      /* size_t, 0 unset */
    TB_SETTING_COUNT,     /* size_t, SIZE_MAX unset */
    TB_SETTING_REAL,      /* double, < 0 unset */
    TB_SETTING_FLAG,      /* int, < 0 unset */
    TB_SETTING_POSITIONS, /* tb_positions, < 0 unset */
    TB_SETTING_TEXT,      /* const char *, NULL unset */
    TB_SETTING_SEED,      /* uint64_t, TB_SEED_UNSET */
    TB_SETTING_SCHEDULE,  /* tb_schedule */
    TB_SETTING_STACK,     /* tb_stacks, TB_STACKS_DECODER unset */
    TB_SETTING_TASK,      /* tb_task */
    TB_SETTING_DTYPE      /* tb_dtype, TB_DTYPE_UNSET */
} tb_setting_kind;

typedef struct tb_setting_row {
    const char *key; /* of config.json and of the command line */
    tb_setting_kind kind;
    size_t offset; /* in tb_train_spec */
    bool free;     /* a resumed run may change it */
    bool later;    /* folders of earlier versions lack it: unset */
} tb_setting_row;

extern const tb_setting_row tb_setting_rows[];
extern const size_t tb_setting_count;

extern const char *const tb_dtype_names[3];  /* by tb_dtype */
extern const char *const tb_origin_names[5]; /* by tb_origin */

void *tb_setting_field(const tb_setting_row *r, tb_train_spec *s);
const void *tb_setting_peek(const tb_setting_row *r, const tb_train_spec *s);
bool tb_setting_is_set(const tb_setting_row *r, const tb_train_spec *s);
bool tb_setting_same(const tb_setting_row *r, const tb_train_spec *a,
                     const tb_train_spec *b);
void tb_setting_copy(const tb_setting_row *r, tb_train_spec *to,
                     const tb_train_spec *from);

enum { TB_SETTING_CHARS = 128 };
/** tb_setting_text - the value for a message. */
const char *tb_setting_text(const tb_setting_row *r, const tb_train_spec *s,
                            char out[TB_SETTING_CHARS]);

#endif
