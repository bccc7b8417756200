/* SPDX-License-Identifier: MIT */
/* How fast this machine is at what tollbooth does: named cases, each beside
 * what the same machine copies and multiplies at best. */
#ifndef TOLLBOOTH_BENCH_H
#define TOLLBOOTH_BENCH_H

#include "tollbooth/base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum { TB_BENCH_CPU = 128, TB_BENCH_NAME = 64 };

/** The measures that cases are held against. */
typedef struct tb_bench_machine {
    char cpu[TB_BENCH_CPU];  /* as the system names it, or "unknown" */
    char gemm[TB_BENCH_CPU]; /* library of the matrix products */
    const char *isa;         /* of our kernels */
    int threads;
    double stream_gbps; /* copy of 256 MiB, bytes read and written; best run */
    double gemm_gflops; /* float product 1024 x 1024 x 1024; best run */
} tb_bench_machine;

/** One case. A rate that does not apply is 0. */
typedef struct tb_bench_result {
    char name[TB_BENCH_NAME];
    double seconds; /* median of the runs */
    double gbps;    /* bytes the job must read and write, per second */
    double gflops;  /* of its matrix products */
    double tokens_per_s;
} tb_bench_result;

/** tb_bench_count - cases of a run that names none. */
size_t tb_bench_count(void);
/** tb_bench_name - the i-th of them; i < count. */
const char *tb_bench_name(size_t i);

/**
 * tb_bench_check - is `name` a case? Sizes are whole numbers.
 *
 *   norm:RxD:fwd|bwd         layernorm with gain and bias of R rows of D floats
 *   addnorm:RxD:fwd          s = x + f, then the norm of s
 *   gemm:MxKxN:f32           C = A B
 *   attn:BxTxHxW:fwd|fwdbwd  causal attention, H heads of width W
 *   step:LldDTtBbVv:f32      one whole update of a pre-LN model: depth l, width
 *                            D, t tokens, b rows, v token kinds
 * TB_ERR_USAGE with the likely meant name.
 */
tb_status tb_bench_check(tb_ctx *ctx, const char *name);

/** tb_bench_machine_measure - takes about a second and 512 MiB. */
tb_status tb_bench_machine_measure(tb_ctx *ctx, tb_bench_machine *out);

/** tb_bench_run - one case: a second, or five runs. TB_INTERRUPTED after
 * tb_ctx_interrupt. */
tb_status tb_bench_run(tb_ctx *ctx, const char *name, tb_bench_result *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
