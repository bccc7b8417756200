/* SPDX-License-Identifier: MIT */
/* Flow of a model that already has its values: at init, during training, of
 * a checkpoint. */
#ifndef TB_FLOW_FLOW_MODEL_H
#define TB_FLOW_FLOW_MODEL_H

#include "model/model.h"
#include "tollbooth/flow.h"

/** Everything of a tb_flow lives here. */
typedef struct tb_flow_box {
    tb_flow flow; /* first: a tb_flow pointer is a box pointer */
    tb_arena arena;
} tb_flow_box;

/** tb_flow_of_model - measure m (settings of spec are ignored). Rebinds m to
 * spec->batch x its context. */
tb_status tb_flow_of_model(tb_model *m, const tb_flow_spec *spec,
                           tb_flow **out);

/** tb_flow_spectrum - singular values of d x_K / d x_0 of the bound model
 * after a forward, into box; for at most TB_SPECTRUM_MAX elements of x. */
enum { TB_SPECTRUM_MAX = 512 };
tb_status tb_flow_spectrum(tb_model *m, const tb_batch *batch,
                           tb_flow_box *box);

/** tb_flow_summarise - rms, max and median of values that are there. */
void tb_flow_summarise(tb_spectrum *s);

/** tb_singular_values - of n x n numbers, which are used up; largest first. */
void tb_singular_values(tb_ctx *ctx, double *rows, size_t n, double *values);

/** tb_flow_what_if - fill f->changes; `again` measures a changed block. */
typedef tb_status (*tb_flow_again)(void *user, const tb_block *changed,
                                   const tb_flow_spec *spec, tb_flow **out);
tb_status tb_flow_what_if(tb_flow *f, const tb_block *b,
                          const tb_flow_spec *spec, tb_flow_again again,
                          void *user);

/** tb_flow_judge - fill f->verdicts from the table in verdict.c, for every
 * stack. nonfinite: numbers found in each. */
tb_status tb_flow_judge(tb_ctx *ctx, tb_flow *f, const size_t *nonfinite,
                        const tb_flow_spec *spec);

#endif
