/* SPDX-License-Identifier: MIT */
/* One updating line on a terminal; elsewhere a plain line at most every ten
 * seconds, so that log files stay readable. All on stderr. */
#ifndef TB_CLI_PROGRESS_H
#define TB_CLI_PROGRESS_H

#include "cli.h"

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

#endif
