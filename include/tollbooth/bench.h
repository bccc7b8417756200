/* SPDX-License-Identifier: MIT */
/* How fast this machine is at what tollbooth does: named cases, each beside
 * what the same machine copies, multiplies and adds at best, all measured in
 * turn in the same run. */
#ifndef TOLLBOOTH_BENCH_H
#define TOLLBOOTH_BENCH_H

#include "tollbooth/base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum { TB_BENCH_CPU = 128, TB_BENCH_NAME = 64 };

/** Loops that only read and write memory, past the caches. */
typedef enum tb_bench_stream {
    TB_BENCH_COPY, /* one array read, one written */
    TB_BENCH_2R1W,
    TB_BENCH_2R2W,
    TB_BENCH_STREAMS
} tb_bench_stream;

/** The measures that cases are held against; medians, as theirs are. */
typedef struct tb_bench_machine {
    char cpu[TB_BENCH_CPU];       /* as the system names it, or "unknown" */
    char gemm[TB_BENCH_CPU];      /* library of the matrix products */
    char gemm_bf16[TB_BENCH_CPU]; /* what products in bf16 run on; empty where
                                     no case has any */
    const char *isa;              /* of our kernels */
    int threads;
    double stream_gbps[TB_BENCH_STREAMS]; /* bytes read and written */
    double gemm_gflops;                   /* float product 1024 x 1024 x 1024 */
    double peak_gflops; /* multiply and add in registers of that isa */
    size_t rounds;
} tb_bench_machine;

/** One case. A rate that does not apply is 0. */
typedef struct tb_bench_result {
    char name[TB_BENCH_NAME];
    double seconds; /* median of the rounds */
    double best;
    double noise;           /* half the middle half of them, over the median */
    double gbps;            /* bytes the job must read and write, per second */
    tb_bench_stream stream; /* that reads and writes as many arrays */
    double gflops;          /* of its matrix products */
    double executed_gflops; /* the same with what blocks do for nothing: whole
                               blocks on the diagonal, scores twice */
    double tokens_per_s;
    double memory; /* bytes an update holds: weights, gradients, two moments,
                      activations and what passes borrow */
} tb_bench_result;

/** What to measure. */
typedef struct tb_bench {
    const char *const *names;
    size_t n;
    size_t rounds; /* every case once in each; 0: by time, 5 to 31 */
    /* before each piece of work, may be NULL: `done` of `total` pieces */
    void (*tell)(void *user, size_t done, size_t total, const char *what);
    void *user;
} tb_bench;

/** tb_bench_count - cases of a run that names none. */
size_t tb_bench_count(void);
/** tb_bench_name - the i-th of them; i < count. */
const char *tb_bench_name(size_t i);

/** tb_bench_form - the i-th kind of case and what it is, "norm:RxD:fwd|bwd" and
 * "layernorm of R rows of D floats"; false behind the last. */
bool tb_bench_form(size_t i, const char **form, const char **what);

/** tb_bench_check - is `name` a case? Sizes are whole numbers. TB_ERR_USAGE
 * with the likely meant name. */
tb_status tb_bench_check(tb_ctx *ctx, const char *name);

/** tb_bench_run - every case and the machine, in rounds: out[b->n], in the
 * order of the names. Takes 512 MiB and what all cases need together.
 * TB_INTERRUPTED after tb_ctx_interrupt. */
tb_status tb_bench_run(tb_ctx *ctx, const tb_bench *b, tb_bench_machine *m,
                       tb_bench_result *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
