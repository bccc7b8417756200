/* SPDX-License-Identifier: MIT */
/* log.jsonl of a training folder: the lines of `train --json`, for report. */
#ifndef TB_CLI_TRAIN_LOG_H
#define TB_CLI_TRAIN_LOG_H

#include "cli.h"

#include <stdio.h>

typedef struct run_log {
    const char *dir; /* NULL: nothing is kept */
    FILE *file;
    bool failed; /* said once; training goes on */
} run_log;

/** log_begin - opens the log of l->dir with its header line; of a run that is
 * resumed it keeps what was written up to there. */
void log_begin(tb_ctx *ctx, run_log *l, const char *header);
/** log_line - one line, held back until log_flush. */
void log_line(run_log *l, const char *line);
/** log_flush - what is on disk fits the checkpoint that was just written. */
void log_flush(run_log *l);
void log_end(run_log *l);

#endif
