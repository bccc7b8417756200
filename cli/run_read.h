/* SPDX-License-Identifier: MIT */
/* What `report` is given: a folder of train, or a file that flow, compare or
 * train printed as JSON. */
#ifndef TB_CLI_RUN_READ_H
#define TB_CLI_RUN_READ_H

#include "report_parts.h"

typedef struct run_file {
    const char *name;
    size_t bytes;
    char sha256[65];
} run_file;

enum { RUN_FILES = 8 };

/** One training, one measurement, or both. */
typedef struct run_item {
    const char *run;   /* as it was given */
    const char *kind;  /* "folder", "flow", "compare", "train" */
    const char *label; /* "post-ln, 12 blocks, warm-up 100" */
    const char *block; /* name or text */
    const tb_report_setting *settings;
    size_t nsettings;
    run_file files[RUN_FILES];
    size_t nfiles;
    bool trained;
    report_training training;
    const char *status; /* how it ended; NULL: not known */
    const char *where;  /* where it diverged, or NULL */
    size_t steps;
    double loss, val_loss; /* last ones; nan: none */
    tb_flow *flow;         /* NULL: none */
    const char *tokens; /* what it was measured on: a file, "random"; NULL: not
                           known */
    bool owned;         /* measured here, so to be freed */
} run_item;

typedef struct run_list {
    run_item *items;
    size_t n, cap;
} run_list;

/** run_is_folder - does `what` hold a config.json? */
bool run_is_folder(const char *what);
/** run_read_file - the runs of a JSON file, for the list. What is wrong was
 * said. */
tb_status run_read_file(tb_ctx *ctx, pool *p, const char *path, double far,
                        run_list *list);
/** run_read_folder - what the files of a folder say; its flow is not measured.
 * Sets *text: the recorded text, or NULL. */
tb_status run_read_folder(tb_ctx *ctx, pool *p, const char *dir, double far,
                          run_list *list, const char **text);
/** run_json - one element of "runs" of `report --json`. */
void run_json(const run_item *r, tb_json *j);

#endif
