/* SPDX-License-Identifier: MIT */
/* Inside bench: a case taken apart, and what it takes to run it again and
 * again. */
#ifndef TB_TRAIN_BENCH_H
#define TB_TRAIN_BENCH_H

#include "ops/op_rows.h"
#include "tollbooth/bench.h"

enum { TB_BENCH_SIZES = 5, TB_BENCH_WHATS = 24, TB_BENCH_MEMORY = 24 };

/** What is timed: `run` once, with inputs that stay in place. */
typedef struct tb_bench_job {
    tb_ctx *ctx;
    void *state; /* the kind's own */
    tb_status (*run)(struct tb_bench_job *j);
    void (*close)(struct tb_bench_job *j); /* NULL: memory is all there is */
    double bytes, flops, executed, tokens; /* of one run; 0: does not apply */
    double held;                           /* bytes of memory, of an update */
    tb_bench_stream stream;
    void *memory[TB_BENCH_MEMORY];
    size_t nmemory;
} tb_bench_job;

/** A kind of case; `what` is one of `whats`, by number. */
typedef struct tb_bench_kind {
    const char *name, *form; /* "norm", "norm:RxD:fwd|bwd" */
    const char *text;        /* what it is, for help */
    const char *keys;        /* letter before each size; NULL: x between */
    size_t nsizes;
    const char *whats[TB_BENCH_WHATS];
    tb_status (*open)(tb_bench_job *j, const size_t *size, size_t what);
} tb_bench_kind;

extern const tb_bench_kind tb_bench_kinds[];
extern const size_t tb_bench_nkinds;

/** tb_bench_open - a named case; _close also one that failed to open. */
tb_status tb_bench_open(tb_ctx *ctx, const char *name, tb_bench_job *j);
void tb_bench_close(tb_bench_job *j);

/** tb_bench_memory - zeroed memory that _close frees; NULL as tb_alloc. */
void *tb_bench_memory(tb_bench_job *j, size_t n, size_t size);
/** tb_bench_normals - n floats: a few thousand normal numbers, over and over.
 */
float *tb_bench_normals(tb_bench_job *j, size_t n);

/** tb_bench_gemm - C[m,n] = A[m,k] B[k,n] in floats. */
tb_status tb_bench_gemm(tb_bench_job *j, size_t m, size_t k, size_t n);

/** What the machine is measured by: jobs 0 to TB_BENCH_PROBES - 1, all on the
 * same arrays, and where the median rate of each goes. */
enum { TB_BENCH_PROBES = TB_BENCH_STREAMS + 2 };
void *tb_bench_arrays(tb_ctx *ctx);
tb_status tb_bench_probe_open(tb_bench_job *j, size_t i, void *arrays);
void tb_bench_probe_give(size_t i, double rate, tb_bench_machine *m);
void tb_bench_machine_name(tb_ctx *ctx, tb_bench_machine *m);

/* Kinds by file: each opens one. */
tb_status tb_bench_norm(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_rmsnorm(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_addnorm(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_gelu(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_gelu_tanh(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_silu(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_swiglu(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_rope(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_softmax(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_xent(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_embed(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_attn(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_product(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_step(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_adamw(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_generate(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_flow(tb_bench_job *j, const size_t *size, size_t what);
tb_status tb_bench_jacobian(tb_bench_job *j, const size_t *size, size_t what);

#endif
