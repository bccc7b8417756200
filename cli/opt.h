/* SPDX-License-Identifier: MIT */
/* One option table per command: parsing, --help, the man page and shell
 * completion all read it. */
#ifndef TB_CLI_OPT_H
#define TB_CLI_OPT_H

#include "tollbooth/base.h"

typedef enum opt_kind {
    OPT_FLAG,   /* bool *: set to true */
    OPT_OFF,    /* int *: set to 0 */
    OPT_ON,     /* int *: set to 1 */
    OPT_SIZE,   /* size_t *: a whole number from 1 to 2^53 */
    OPT_COUNT,  /* size_t *: a whole number from 0 to 2^53 */
    OPT_SEED,   /* uint64_t *: a whole number from 0 to 2^53 */
    OPT_REAL,   /* double *: a finite number, at least `low` */
    OPT_TEXT,   /* const char ** */
    OPT_CHOICE, /* int *: index into `choices`, separated by | */
    OPT_SIZES,  /* opt_sizes *: whole numbers from 1, separated by commas */
    OPT_MANY    /* opt_many *: may be given again and again */
} opt_kind;

typedef struct opt_many {
    const char *items[64];
    size_t count;
} opt_many;

typedef struct opt_sizes {
    size_t items[64];
    size_t count;
} opt_sizes;

typedef struct opt {
    const char *name; /* without the dashes; NULL ends a table */
    opt_kind kind;
    void *to;
    const char *arg; /* what --help calls its value: "N", "FILE" */
    const char *help;
    const char *choices; /* of OPT_CHOICE */
    double low;          /* of OPT_REAL */
} opt;

#define OPT_END                                                                \
    {                                                                          \
        0                                                                      \
    }

/** What a command is, for its help. */
typedef struct opt_usage {
    const char *name;     /* "flow" */
    const char *operands; /* "BLOCK..." */
    const char *summary;  /* one line, no full stop */
    const char *detail;   /* paragraphs, may be NULL */
    const char *example;  /* a command line without "tollbooth " */
    int min, max;         /* operands; max < 0: any number */
    bool dashed;          /* "--what ever", with a blank, is an operand */
} opt_usage;

typedef enum opt_end {
    OPT_GO,   /* operands are argv[0..*argc) */
    OPT_DONE, /* help was printed: exit 0 */
    OPT_BAD   /* usage error, already said: exit 2 */
} opt_end;

/** opt_parse - options may stand anywhere; "--" ends them. argv[0] is the
 * command's name; on OPT_GO argv holds the operands only. */
opt_end opt_parse(const opt_usage *u, const opt *opts, int *argc, char **argv);

/** opt_real, opt_size - one number, all of `text`; false if it is not one.
 * Whole numbers end at 2^53: every JSON reader gives them back. */
bool opt_real(const char *text, double *out);
bool opt_size(const char *text, size_t *out);

#endif
