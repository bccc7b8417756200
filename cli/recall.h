/* SPDX-License-Identifier: MIT */
/* The parts of tollbooth recall: which cards, the quiz and when each card is
 * asked again, files for other programs. */
#ifndef TB_CLI_RECALL_H
#define TB_CLI_RECALL_H

#include "cli.h"
#include "tollbooth/cards.h"

/** The cards that were asked for, by place in the table. */
typedef struct choice {
    size_t *cards, n;
} choice;

typedef struct recall_options {
    bool list, json, prove, check, ascii, two_way;
    int deck, format; /* of --deck; of --export, 0: none */
    uint64_t seed;
    bool has_seed;
    const char *out, *import, *progress, *today;
} recall_options;

/* --- when to ask again ---------------------------------------------------- */

typedef enum grade { AGAIN, HARD, GOOD, EASY, GRADES } grade;

/** What is known of one card: days from one answer to the next, the day (since
 * 1970) when it is due, and how often it was asked. */
typedef struct progress_card {
    long interval, due, asked;
} progress_card;

typedef struct progress {
    const char *path;     /* NULL: kept nowhere */
    progress_card *cards; /* of tb_card_at */
    char *others;         /* lines of cards that this program does not have */
    long today;
} progress;

/** progress_open - today, or --today; and the file, where there is one. 0 or
 * an exit code, said. */
int progress_open(tb_ctx *ctx, const recall_options *o, progress *p);
/** progress_grade - when the card is next due. */
void progress_grade(progress *p, size_t card, grade g);
/** progress_save - atomically; 0 or an exit code, said. */
int progress_save(tb_ctx *ctx, const progress *p);
void progress_close(progress *p);

enum { DATE = 11 };
/** date_text - "2026-12-01" of a day. */
void date_text(long day, char out[DATE]);

/* --- the rest ------------------------------------------------------------- */

/** quiz - questions and answers on the terminal; an exit code. */
int quiz(tb_ctx *ctx, const choice *c, const recall_options *o);

/** recall_import - say what is in a file, or with --export write it in that
 * format. */
int recall_import(tb_ctx *ctx, const recall_options *o);
int recall_export(tb_ctx *ctx, const choice *c, const recall_options *o);

#endif
