/* SPDX-License-Identifier: MIT */
/* One updating line on a terminal; elsewhere a plain line at most every ten
 * seconds, so that log files stay readable. All on stderr. */
#ifndef TB_CLI_PROGRESS_H
#define TB_CLI_PROGRESS_H

#include "cli.h"
#include "tollbooth/train.h"

typedef struct progress {
    bool terminal, quiet;
    bool drawn;  /* a terminal line is on the screen */
    double last; /* seconds, of the last line */
    const char *label;
} progress;

void progress_begin(progress *p, const char *label, bool quiet);
/** progress_show - done of total; `text` is what is known now. */
void progress_show(progress *p, size_t done, size_t total, double seconds_left,
                   const char *text);
/** progress_end - wipe the terminal line. */
void progress_end(progress *p);

/** seconds_now - a clock that never goes back. */
double seconds_now(void);

/** progress_memory - says what a run of training is about to ask for, unless
 * one before it asked for as much: *most keeps that, 0 at first. */
void progress_memory(const tb_train_memory *m, double *most);

#endif
