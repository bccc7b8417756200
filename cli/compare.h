/* SPDX-License-Identifier: MIT */
/* The runs of compare: one per block, depth, warm-up and seed. */
#ifndef TB_CLI_COMPARE_H
#define TB_CLI_COMPARE_H

#include "tollbooth/train.h"
#include "train_layers.h"
#include "train_opts.h"

/** A loss curve that grows. */
typedef struct curve_points {
    double *step, *loss;
    size_t n, cap;
} curve_points;

typedef struct compare_run {
    const tb_block *block;
    const char *name; /* what the user typed */
    size_t depth, warmup, steps;
    uint64_t seed;
    tb_train_result result;
    bool diverged;
    run_layers layers;
    curve_points train, val, grad, update; /* update: |change| / |weights| */
    const tb_flow *flow; /* at init, shared by the warm-ups and seeds */
} compare_run;

typedef struct comparison {
    tb_ctx *ctx;
    tb_train_spec spec; /* what all runs share */
    const char *command;
    size_t nblocks;
    tb_block **blocks;
    char **names;
    size_t ndepths;
    const size_t *depths;
    size_t nflows;
    tb_flow **flows; /* [ndepths * nblocks], depth-major */
    size_t nruns;
    compare_run *runs;
    double memory; /* bytes that a run was said to need, most of all */
} comparison;

/** compare_table - one line per run. */
tb_status compare_table(const comparison *c, const tb_terminal *term,
                        tb_out *out);
/** compare_json - the object of --json. */
void compare_json(const comparison *c, tb_json *j);
/** compare_report - one self-contained HTML file at `path`. */
tb_status compare_report(const comparison *c, const char *path);

#endif
