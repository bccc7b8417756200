/* SPDX-License-Identifier: MIT */
/* The clock: every case and every measure of the machine once in each round,
 * so that a neighbour's work falls on all of them alike. */
#include "train/bench.h"

#include <stdlib.h>
#include <time.h>

enum { MOST = 31, FEWEST = 5 };

/* A sample is long enough for the clock; all rounds take about so long for each
 * case, if the fewest do not take longer. */
static const double sample_seconds = 5e-3, case_seconds = 0.7;

/* What takes so long is warm after one run. */
static const double long_seconds = 0.5;

/** A job between its samples. */
typedef struct timed {
    tb_bench_job job;
    size_t runs; /* in a sample */
    double one;  /* seconds of a run, at first */
    double *t;   /* [rounds] */
} timed;

typedef struct bench {
    tb_ctx *ctx;
    const tb_bench *spec;
    size_t n, rounds;
    timed *jobs; /* [n]: the machine's, then the cases */
    double *samples;
    void *arrays; /* of the machine's streams */
} bench;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static tb_status go_on(tb_ctx *ctx)
{
    return tb_ctx_interrupted(ctx)
               ? TB_FAIL(ctx, TB_INTERRUPTED, "bench interrupted")
               : TB_OK;
}

static tb_status sample(timed *j, size_t runs, double *seconds)
{
    TB_TRY(go_on(j->job.ctx)); /* one run may take a minute */
    double start = now();
    for (size_t i = 0; i < runs; i++)
        TB_TRY(j->job.run(&j->job));
    *seconds = (now() - start) / (double)runs;
    return go_on(j->job.ctx);
}

static const char *name_of(const bench *b, size_t i)
{
    return i < TB_BENCH_PROBES ? "machine"
                               : b->spec->names[i - TB_BENCH_PROBES];
}

/* Which of many cases it was. */
static tb_status blame(const bench *b, size_t i, tb_status s)
{
    char why[512];
    if (s == TB_OK || s == TB_INTERRUPTED)
        return s;
    tb_format(why, sizeof why, "%s", tb_error(b->ctx));
    return TB_FAIL(b->ctx, s, "bench: %s: %s", name_of(b, i),
                   *why ? why : tb_status_text(s));
}

static void tell(const bench *b, size_t done, size_t total, size_t job)
{
    if (b->spec->tell)
        b->spec->tell(b->spec->user, done, total, name_of(b, job));
}

/* --- before the rounds ------------------------------------------------------
 */

static tb_status open_job(bench *b, size_t i)
{
    timed *j = &b->jobs[i];
    j->job.ctx = b->ctx;
    if (i < TB_BENCH_PROBES)
        TB_TRY(tb_bench_probe_open(&j->job, i, b->arrays));
    else
        TB_TRY(tb_bench_open(b->ctx, name_of(b, i), &j->job));
    TB_TRY(sample(j, 1, &j->one)); /* warms caches and threads */
    if (j->one < long_seconds)
        TB_TRY(sample(j, 1, &j->one));
    j->runs = j->one < sample_seconds
                  ? (size_t)(sample_seconds / (j->one + 1e-9)) + 1
                  : 1;
    return TB_OK;
}

static size_t rounds_of(const bench *b)
{
    double round = 0, all = case_seconds * (double)b->n;
    for (size_t i = 0; i < b->n; i++)
        round += b->jobs[i].one * (double)b->jobs[i].runs;
    if (b->spec->rounds)
        return b->spec->rounds;
    if (all > MOST * round)
        return MOST;
    return all > FEWEST * round ? (size_t)(all / round) : FEWEST;
}

static tb_status open_all(bench *b)
{
    b->jobs = tb_alloc(b->ctx, b->n, sizeof *b->jobs);
    b->arrays = tb_bench_arrays(b->ctx);
    if (!b->jobs || !b->arrays)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < b->n; i++) {
        tell(b, 0, 1, i);
        TB_TRY(blame(b, i, open_job(b, i)));
    }
    b->rounds = rounds_of(b);
    b->samples = tb_alloc(b->ctx, b->rounds, b->n * sizeof *b->samples);
    if (!b->samples)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < b->n; i++)
        b->jobs[i].t = b->samples + i * b->rounds;
    return TB_OK;
}

/* --- rounds and what they say -----------------------------------------------
 */

static tb_status run_rounds(bench *b)
{
    for (size_t r = 0; r < b->rounds; r++)
        for (size_t i = 0; i < b->n; i++) {
            timed *j = &b->jobs[i];
            tell(b, r * b->n + i, b->rounds * b->n, i);
            TB_TRY(blame(b, i, sample(j, j->runs, &j->t[r])));
        }
    return TB_OK;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Where share `q` of n sorted numbers is reached, between two of them. */
static double quantile(const double *t, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    double part = at - (double)i;
    return i + 1 < n ? t[i] + part * (t[i + 1] - t[i]) : t[i];
}

static void give(const bench *b, tb_bench_machine *m, tb_bench_result *out)
{
    m->rounds = b->rounds;
    for (size_t i = 0; i < b->n; i++) {
        const timed *j = &b->jobs[i];
        const tb_bench_job *job = &j->job;
        qsort(j->t, b->rounds, sizeof *j->t, by_size);
        double median = quantile(j->t, b->rounds, 0.5);
        if (i < TB_BENCH_PROBES) {
            double work = job->bytes > 0 ? job->bytes : job->flops;
            tb_bench_probe_give(i, work / median * 1e-9, m);
            continue;
        }
        tb_bench_result *r = &out[i - TB_BENCH_PROBES];
        tb_format(r->name, sizeof r->name, "%s", name_of(b, i));
        r->seconds = median;
        r->best = j->t[0];
        r->noise = (quantile(j->t, b->rounds, 0.75) -
                    quantile(j->t, b->rounds, 0.25)) /
                   (2 * median);
        r->gbps = job->bytes / median * 1e-9;
        r->stream = job->stream;
        r->gflops = job->flops / median * 1e-9;
        r->executed_gflops = job->executed / median * 1e-9;
        r->tokens_per_s = job->tokens / median;
        r->memory = job->held;
    }
}

/* The library of products in bf16 is not opened for its name alone. */
static void name_bf16(tb_ctx *ctx, const tb_bench *spec, tb_bench_machine *m)
{
    for (size_t i = 0; i < spec->n; i++)
        if (strstr(spec->names[i], ":bf16"))
            tb_format(m->gemm_bf16, sizeof m->gemm_bf16, "%s",
                      tb_gemm_name(ctx, TB_BF16));
}

tb_status tb_bench_run(tb_ctx *ctx, const tb_bench *spec, tb_bench_machine *m,
                       tb_bench_result *out)
{
    bench b = {.ctx = ctx, .spec = spec, .n = TB_BENCH_PROBES + spec->n};
    *m = (tb_bench_machine){0};
    if (spec->n > 0)
        memset(out, 0, spec->n * sizeof *out);
    for (size_t i = 0; i < spec->n; i++)
        TB_TRY(tb_bench_check(ctx, spec->names[i]));
    tb_status s = open_all(&b);
    if (s == TB_OK)
        s = run_rounds(&b);
    if (s == TB_OK) {
        tb_bench_machine_name(ctx, m);
        name_bf16(ctx, spec, m);
        give(&b, m, out);
    }
    for (size_t i = 0; b.jobs && i < b.n; i++)
        tb_bench_close(&b.jobs[i].job);
    tb_free(ctx, b.jobs);
    tb_free(ctx, b.samples);
    tb_free(ctx, b.arrays);
    return s;
}
