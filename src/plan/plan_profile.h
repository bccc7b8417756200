/* SPDX-License-Identifier: MIT */
/* Where the time of runs goes, by kinds of work: a clock around each call of an
 * op, only where someone asks (tb_run.profile). */
#ifndef TB_PLAN_PLAN_PROFILE_H
#define TB_PLAN_PLAN_PROFILE_H

#include "ops/op_rows.h"

/** What calls of one kind of work took. Bytes are those of the values that each
 * op by itself reads and writes, FLOPs those of its products. */
typedef struct tb_worked {
    double seconds, flops, bytes;
} tb_worked;

typedef struct tb_profile {
    double (*now)(void); /* the asker's clock: seconds, never going back */
    tb_worked work[TB_WORKS];
} tb_profile;

/** tb_profile_now - of its clock; 0 without a profile. */
double tb_profile_now(const tb_profile *p);

/** tb_profile_count - a call of `op` that began at `start`; nothing without a
 * profile. Backward: twice the products, and the values it needs. */
void tb_profile_count(tb_profile *p, const tb_op *op, const tb_opcall *c,
                      bool backward, double start);

/** tb_profile_rows - row parts that ran together, which began at `start`. Each
 * has the share of the time that its bytes are of all. */
void tb_profile_rows(tb_profile *p, const tb_rowcall *calls, size_t n,
                     double start);

#endif
