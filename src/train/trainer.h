/* SPDX-License-Identifier: MIT */
/* Inside the train room: the record of a run, its folder, a model that
 * evaluates with dropout off, and the state of the loop. */
#ifndef TB_TRAIN_TRAINER_H
#define TB_TRAIN_TRAINER_H

#include "base/number.h"
#include "checkpoint/files.h"
#include "train/optimizer.h"

/* --- record: every setting of a run, nothing unset ------------------------ */

typedef struct tb_record {
    tb_train_spec spec; /* strings live in the arena of the owner */
    tb_origin norm_from, eps_from;
    const char *block_name; /* or NULL */
    const char *block_text; /* canonical */
    char block_hash[65];
    size_t tokens; /* of the text */
    char tokens_hash[17];
    const char *const *labels; /* of classify, else none */
    size_t nlabels;
} tb_record;

/** tb_record_defaults - give every unset field that does not depend on the
 * block its default of train. */
void tb_record_defaults(tb_train_spec *s);

/** tb_task_stack - the tb_stacks that can learn it. */
int tb_task_stack(tb_task t);

/** tb_record_check - TB_ERR_ARG for impossible numbers. */
tb_status tb_record_check(tb_ctx *ctx, const tb_train_spec *s);

/** tb_record_adopt - take unset fields of `given` from `have`; a set one that
 * differs and must not is TB_ERR_INPUT: "steps: got 9, the run in DIR has 8".
 */
tb_status tb_record_adopt(tb_ctx *ctx, const char *dir, tb_train_spec *given,
                          const tb_train_spec *have);

/** tb_record_same - TB_ERR_INPUT naming the first setting in which the config
 * differs from the state's copy of it. */
tb_status tb_record_same(tb_ctx *ctx, const char *dir, const tb_record *config,
                         const tb_record *state);

/** tb_record_json - the members of config.json into an open object. */
void tb_record_json(const tb_record *r, tb_json *j);
/** tb_record_text - config.json on one line, for metadata. */
tb_status tb_record_text(tb_ctx *ctx, const tb_record *r, bool pretty,
                         tb_buf *out);
/** tb_record_read - from the text of config.json; the block's text is not in
 * it. */
tb_status tb_record_read(tb_ctx *ctx, tb_arena *a, const char *name,
                         const char *text, size_t n, tb_record *out);

/** tb_record_block - the canonical text of `b` into r->block_text. */
tb_status tb_record_block(tb_ctx *ctx, tb_arena *a, const tb_block *b,
                          tb_record *r);

/* --- progress: what changes from step to step ----------------------------- */

enum { TB_FIFTHS = 5 };

typedef struct tb_progress {
    size_t step; /* updates made */
    double first_loss, loss, val_loss, best_val_loss;
    size_t best_step;
    double fifth[TB_FIFTHS]; /* sum of the losses of each fifth of the steps */
} tb_progress;

void tb_progress_init(tb_progress *p);
/** tb_progress_loss - count the loss of step p->step of `steps`; nan: the step
 * had no targets. */
void tb_progress_loss(tb_progress *p, size_t steps, double loss);
/** tb_progress_plateau - after all steps: the last fifth is less than 1 %
 * below the one before. */
bool tb_progress_plateau(const tb_progress *p, size_t steps);
tb_status tb_progress_text(tb_ctx *ctx, const tb_progress *p, tb_buf *out);
tb_status tb_progress_read(tb_ctx *ctx, const char *name, const char *text,
                           tb_progress *out);

/* --- folder --------------------------------------------------------------- */

/** What is locked while a run writes. */
typedef struct tb_folder {
    tb_ctx *ctx;
    const char *dir; /* NULL: nothing is saved */
    int lock;        /* descriptor, -1: none */
} tb_folder;

/** tb_folder_open - make and lock it; NULL dir is fine. */
tb_status tb_folder_open(tb_ctx *ctx, const char *dir, tb_folder *out);
void tb_folder_close(tb_folder *f);

/** tb_folder_path - "dir/name" in the arena. */
tb_status tb_folder_path(tb_ctx *ctx, tb_arena *a, const char *dir,
                         const char *name, const char **out);
/** tb_folder_read - a whole file of it. */
tb_status tb_folder_read(tb_ctx *ctx, tb_arena *a, const char *dir,
                         const char *name, tb_bytes *out);
/** tb_folder_fresh - TB_ERR_INPUT if a new run would overwrite anything but
 * the start of one that never saved. */
tb_status tb_folder_fresh(tb_ctx *ctx, tb_arena *a, const char *dir);
/** tb_folder_start - write config.json, block.txt, tokenizer.json. */
tb_status tb_folder_start(tb_ctx *ctx, tb_arena *a, const char *dir,
                          const tb_record *r, const tb_tokenizer *t);
/** tb_folder_record - config.json; block_text stays NULL. */
tb_status tb_folder_record(tb_ctx *ctx, tb_arena *a, const char *dir,
                           tb_record *out);
/** tb_folder_block - block.txt, and its canonical text into r->block_text. It
 * is compared with the weights' own when they are read. */
tb_status tb_folder_block(tb_ctx *ctx, tb_arena *a, const char *dir,
                          tb_record *r, tb_block **out);
/** tb_folder_tokenizer - tokenizer.json. */
tb_status tb_folder_tokenizer(tb_ctx *ctx, tb_arena *a, const char *dir,
                              tb_tokenizer **out);
/** tb_folder_has - is there such a file? */
bool tb_folder_has(tb_ctx *ctx, tb_arena *a, const char *dir, const char *name);

/** tb_block_differs - TB_ERR_INPUT with the first line in which two canonical
 * texts differ; `what` says whose they are. */
tb_status tb_block_differs(tb_ctx *ctx, const char *what, const char *got,
                           const char *wanted);

/* --- weights in files ----------------------------------------------------- */

/** tb_state_save - state.safetensors, then model.safetensors. */
tb_status tb_state_save(tb_ctx *ctx, const char *dir, const tb_record *r,
                        const tb_progress *p, const tb_model *m,
                        const tb_optimizer *o);
/** tb_state_load - the newest state of this very run: weights, moments,
 * progress. */
tb_status tb_state_load(tb_ctx *ctx, const char *dir, const tb_record *r,
                        tb_progress *p, tb_model *m, tb_optimizer *o);
/** tb_weights_load - the weights of a model.safetensors or a state, with
 * m->params allocated; *step from its metadata. The hash of the block it was
 * trained with must be that of `r`. */
tb_status tb_weights_load(tb_ctx *ctx, const char *dir, const tb_record *r,
                          tb_model *m, size_t *step);

/* --- data ----------------------------------------------------------------- */

/** The loaded files of a task: the text; or source and target. */
typedef struct tb_files {
    size_t count;
    const char *name[2];
    tb_text text[2];
} tb_files;

/** tb_files_load - what the task of `s` reads; TB_ERR_ARG if it is not given,
 * or something else is. */
tb_status tb_files_load(tb_ctx *ctx, const tb_train_spec *s, tb_files *out);
void tb_files_clear(tb_ctx *ctx, tb_files *f);
/** tb_files_feed - the spec of a feed of these files. */
tb_feed_spec tb_files_feed(const tb_files *f, const tb_train_spec *s);

/** tb_rows_create - room for `count` rows as f fills them. */
tb_status tb_rows_create(tb_ctx *ctx, const tb_feed *f, size_t count,
                         tb_rows *out);
void tb_rows_clear(tb_ctx *ctx, tb_rows *r);
/** tb_rows_batch - the rows as a model reads them; training has a seed and a
 * step. */
tb_batch tb_rows_batch(const tb_rows *r, uint64_t seed, uint64_t step);
/** tb_rows_targets - positions with a target. tb_rows_tokens - those that are
 * no padding, of both sides. */
size_t tb_rows_targets(const tb_feed *f, const tb_rows *r, size_t count);
size_t tb_rows_tokens(const tb_feed *f, const tb_rows *r, size_t count);

/* --- evaluation ----------------------------------------------------------- */

/** A bound model run as tb_model_quiet_attrs has it. */
typedef struct tb_quiet {
    tb_ctx *ctx;
    tb_arena arena;
    tb_model *model;
    double (**attr)[TB_OP_ATTRS]; /* [nparts] */
} tb_quiet;

tb_status tb_quiet_init(tb_model *m, tb_quiet *out);
void tb_quiet_clear(tb_quiet *q);
/** tb_quiet_forward - as tb_model_forward. */
tb_status tb_quiet_forward(tb_quiet *q, const tb_batch *b, double *loss);

/** A mean over tokens, of batches of unequal size. */
typedef struct tb_mean {
    double sum;
    size_t tokens;
} tb_mean;
void tb_mean_add(tb_mean *m, double loss, size_t tokens);
double tb_mean_of(const tb_mean *m); /* nan of nothing */

/** tb_validate - mean loss over the targets of up to `windows` rows of the
 * validation part, evenly spread; nan if there is none. `rows` is scratch of
 * the bound batch. */
tb_status tb_validate(tb_quiet *q, const tb_feed *f, size_t batch,
                      size_t windows, const tb_rows *rows, double *out);

/* --- the loop ------------------------------------------------------------- */

typedef struct tb_trainer {
    tb_ctx *ctx;
    tb_arena arena;
    tb_record record;   /* as in config.json */
    tb_train_spec spec; /* of this call: folder, text, how often to save */
    const tb_block *block;
    tb_block *own_block; /* read from the folder, or NULL */
    tb_tokenizer *tokenizer;
    tb_text_stats stats[2]; /* of the text; of source and target */
    bool gzip[2];
    tb_feed *feed;
    tb_model *model;
    tb_optimizer *optimizer;
    tb_quiet quiet;
    tb_folder folder;
    tb_rows rows; /* of a batch */
    tb_progress progress;
    size_t saved; /* step of the last checkpoint in the folder; 0: none */
    tb_train_memory memory;
    bool resumed;
} tb_trainer;

/** tb_trainer_open - everything up to the first step. */
tb_status tb_trainer_open(tb_ctx *ctx, const tb_block *block,
                          const tb_train_spec *spec,
                          const tb_train_observer *obs, tb_trainer *out);
void tb_trainer_close(tb_trainer *t);

/** tb_trainer_header - the JSON line of `begin`. */
tb_status tb_trainer_header(const tb_trainer *t, tb_json *j);

/** tb_trainer_run - the steps. */
tb_status tb_trainer_run(tb_trainer *t, const tb_train_observer *obs,
                         tb_train_result *result);

#endif
