/* SPDX-License-Identifier: MIT */
/* Inside bench: a case taken apart, and what it takes to run it again and
 * again. */
#ifndef TB_TRAIN_BENCH_H
#define TB_TRAIN_BENCH_H

#include "ops/op.h"
#include "tollbooth/bench.h"
#include "train/optimizer.h"

enum { TB_BENCH_SIZES = 5, TB_BENCH_MEMORY = 24 };

/** An op call, forward or backward. */
typedef struct tb_bench_pass {
    const tb_op *op;
    tb_opcall c;
    bool bwd;
} tb_bench_pass;

/** What is timed: `run` once, with inputs that stay in place. */
typedef struct tb_bench_job {
    tb_ctx *ctx;
    tb_status (*run)(struct tb_bench_job *j);
    double bytes, flops, tokens; /* of one run; 0: does not apply */
    size_t npasses;
    tb_bench_pass pass[2];
    tb_gemm_args gemm;
    struct tb_block *block; /* of a training step */
    tb_model *model;
    tb_corpus *corpus;
    tb_optimizer *optimizer;
    int32_t *ids, *targets;
    size_t batch, step;
    void *memory[TB_BENCH_MEMORY];
    size_t nmemory;
} tb_bench_job;

/** A kind of case; `what` is one of `whats`, by number. */
typedef struct tb_bench_kind {
    const char *name, *form; /* "norm", "norm:RxD:fwd|bwd" */
    const char *keys;        /* letter before each size; NULL: x between */
    size_t nsizes;
    const char *whats[3];
    tb_status (*open)(tb_bench_job *j, const size_t *size, size_t what);
} tb_bench_kind;

extern const tb_bench_kind tb_bench_kinds[];
extern const size_t tb_bench_nkinds;

/** tb_bench_close - a job that was opened, or failed to be. */
void tb_bench_close(tb_bench_job *j);

/** tb_bench_memory - zeroed memory that _close frees; NULL as tb_alloc. */
void *tb_bench_memory(tb_bench_job *j, size_t n, size_t size);

/** tb_bench_gemm - C[m,n] = A[m,k] B[k,n] in floats. */
tb_status tb_bench_gemm(tb_bench_job *j, size_t m, size_t k, size_t n);

/** tb_bench_time - median and best seconds of a run. */
tb_status tb_bench_time(tb_bench_job *j, double *median, double *best);

#endif
