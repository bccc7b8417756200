/* SPDX-License-Identifier: MIT */
/* train --profile: where the time of updates went, beside what the machine
 * reaches. */
#ifndef TB_CLI_TRAIN_PROFILE_H
#define TB_CLI_TRAIN_PROFILE_H

#include "cli.h"
#include "tollbooth/bench.h"
#include "tollbooth/train.h"

typedef struct run_profile {
    bool wanted, there; /* asked for; at least one update was made */
    tb_train_profile times;
    tb_bench_machine machine;
} run_profile;

/** profile_measure - the machine, after a run that left times. */
tb_status profile_measure(tb_ctx *ctx, run_profile *p);

/** profile_json - "profile" into an open object; nothing without times. */
void profile_json(const run_profile *p, tb_json *j);

/** profile_text - the table; nothing without times. */
tb_status profile_text(tb_ctx *ctx, const run_profile *p);

#endif
