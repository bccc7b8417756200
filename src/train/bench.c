/* SPDX-License-Identifier: MIT */
/* Names of cases, the clock, and what the machine reaches at best. */
#include "train/bench.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#if defined(__SSE2__)
#    include <emmintrin.h>
#endif

#include "threads/threads.h"

static const char *const defaults[] = {
    "norm:8192x768:fwd",         "norm:8192x768:bwd",
    "norm:4096x384:fwd",         "norm:4096x384:bwd",
    "addnorm:8192x768:fwd",      "gemm:3072x384x1536:f32",
    "gemm:2048x768x768:f32",     "attn:12x256x6x64:fwd",
    "attn:12x256x6x64:fwdbwd",   "step:L4d64T64B8V65:f32",
    "step:L6d384T256B12V65:f32",
};

size_t tb_bench_count(void)
{
    return TB_LEN(defaults);
}

const char *tb_bench_name(size_t i)
{
    return i < TB_LEN(defaults) ? defaults[i] : NULL;
}

/* --- names ------------------------------------------------------------------
 */

/** A name taken apart. */
typedef struct parsed {
    const tb_bench_kind *kind;
    size_t size[TB_BENCH_SIZES], what;
} parsed;

/* One size, 1 to 2^20; the text after it, or NULL. */
static const char *number(const char *p, size_t *out)
{
    const char *start = p;
    for (*out = 0; *p >= '0' && *p <= '9' && *out <= 1U << 20; p++)
        *out = 10 * *out + (size_t)(*p - '0');
    return p > start && *out >= 1 && *out <= 1U << 20 ? p : NULL;
}

/* sizes = [key] number {("x" | key) number}; the text after them, or NULL */
static const char *sizes(const tb_bench_kind *k, const char *p, size_t *size)
{
    double product = 1;
    for (size_t i = 0; i < k->nsizes && p; i++) {
        char key = k->keys ? k->keys[i] : 'x';
        if ((k->keys || i > 0) && *p++ != key)
            return NULL;
        p = number(p, &size[i]);
        product *= (double)size[i];
    }
    return product <= 0x1p40 ? p : NULL;
}

static tb_status no_kind(tb_ctx *ctx, const char *name, size_t n)
{
    const char *names[8], *near;
    char word[TB_BENCH_NAME];
    tb_format(word, sizeof word, "%.*s", (int)n, name);
    for (size_t i = 0; i < tb_bench_nkinds; i++)
        names[i] = tb_bench_kinds[i].name;
    near = tb_nearest(word, names, tb_bench_nkinds);
    if (near)
        return TB_FAIL(ctx, TB_ERR_USAGE,
                       "bench: unknown case %s; did you mean %s%s?", name, near,
                       name[n] ? name + n : ":...");
    return TB_FAIL(ctx, TB_ERR_USAGE,
                   "bench: unknown case %s; there are norm, addnorm, gemm, "
                   "attn and step",
                   name);
}

static tb_status no_what(tb_ctx *ctx, const char *name, const char *what,
                         const tb_bench_kind *k)
{
    size_t n = 0;
    while (n < TB_LEN(k->whats) && k->whats[n])
        n++;
    const char *near = tb_nearest(what, k->whats, n);
    near = near ? near : k->whats[0];
    return TB_FAIL(ctx, TB_ERR_USAGE,
                   "bench: unknown case %s; did you mean %.*s%s?", name,
                   (int)(what - name), name, near);
}

/* case = kind ":" sizes ":" what */
static tb_status parse(tb_ctx *ctx, const char *name, parsed *out)
{
    size_t n = strcspn(name, ":");
    *out = (parsed){0};
    for (size_t i = 0; i < tb_bench_nkinds && !out->kind; i++)
        if (strlen(tb_bench_kinds[i].name) == n &&
            memcmp(tb_bench_kinds[i].name, name, n) == 0)
            out->kind = &tb_bench_kinds[i];
    if (!out->kind || strlen(name) >= TB_BENCH_NAME)
        return no_kind(ctx, name, n);
    const char *p = name[n] ? sizes(out->kind, name + n + 1, out->size) : NULL;
    if (!p || *p != ':')
        return TB_FAIL(ctx, TB_ERR_USAGE,
                       "bench: case: got %s, wanted %s with sizes from 1 to "
                       "1048576, not too many together",
                       name, out->kind->form);
    for (; out->what < TB_LEN(out->kind->whats); out->what++)
        if (out->kind->whats[out->what] &&
            tb_streq(out->kind->whats[out->what], p + 1))
            return TB_OK;
    return no_what(ctx, name, p + 1, out->kind);
}

tb_status tb_bench_check(tb_ctx *ctx, const char *name)
{
    parsed p;
    return parse(ctx, name, &p);
}

/* --- the clock --------------------------------------------------------------
 */

enum { SAMPLES = 31, FEWEST = 5 };

/* A sample is long enough for the clock; all of them about a second. */
static const double sample_seconds = 2e-3, all_seconds = 1;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static tb_status sample(tb_bench_job *j, size_t runs, double *seconds)
{
    double start = now();
    for (size_t i = 0; i < runs; i++)
        TB_TRY(j->run(j));
    *seconds = (now() - start) / (double)runs;
    if (tb_ctx_interrupted(j->ctx))
        return TB_FAIL(j->ctx, TB_INTERRUPTED, "bench interrupted");
    return TB_OK;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

tb_status tb_bench_time(tb_bench_job *j, double *median, double *best)
{
    double t[SAMPLES], one, spent = 0;
    size_t n = 0;
    TB_TRY(sample(j, 1, &one)); /* warms caches and threads */
    TB_TRY(sample(j, 1, &one));
    size_t runs =
        one < sample_seconds ? (size_t)(sample_seconds / (one + 1e-9)) + 1 : 1;
    while (n < SAMPLES && (n < FEWEST || spent < all_seconds)) {
        TB_TRY(sample(j, runs, &t[n]));
        spent += t[n++] * (double)runs;
    }
    qsort(t, n, sizeof *t, by_size);
    *median = n % 2 ? t[n / 2] : (t[n / 2 - 1] + t[n / 2]) / 2;
    *best = t[0];
    return TB_OK;
}

/* --- the machine ------------------------------------------------------------
 */

enum { COPY_BYTES = 256 << 20, COPY_CHUNKS = 64 };

/* Streaming stores where there are any: a plain store would read the line it
 * is about to overwrite. */
static void copy_chunk(void *arg, size_t chunk)
{
    tb_bench_job *j = arg;
    size_t n = COPY_BYTES / COPY_CHUNKS, at = chunk * n;
    const char *x = (const char *)j->memory[0] + at;
    char *y = (char *)j->memory[1] + at;
#if defined(__SSE2__)
    for (size_t i = 0; i < n; i += 64)
        for (size_t k = 0; k < 64; k += 16)
            _mm_stream_si128((__m128i *)(void *)(y + i + k),
                             _mm_load_si128((const void *)(x + i + k)));
    _mm_sfence();
#else
    memcpy(y, x, n);
#endif
}

static tb_status copy_all(tb_bench_job *j)
{
    tb_parallel(j->ctx, COPY_CHUNKS, copy_chunk, j);
    return TB_OK;
}

static tb_status measure_copy(tb_ctx *ctx, double *gbps)
{
    tb_bench_job j = {.ctx = ctx, .run = copy_all};
    double median, best = 1;
    bool there = tb_bench_memory(&j, COPY_BYTES, 1) &&
                 tb_bench_memory(&j, COPY_BYTES, 1);
    tb_status s = there ? tb_bench_time(&j, &median, &best) : TB_ERR_MEMORY;
    *gbps = 2.0 * COPY_BYTES / best * 1e-9;
    tb_bench_close(&j);
    return s;
}

static tb_status measure_gemm(tb_ctx *ctx, double *gflops)
{
    tb_bench_job j = {.ctx = ctx};
    double median, best = 1;
    tb_status s = tb_bench_gemm(&j, 1024, 1024, 1024);
    if (s == TB_OK)
        s = tb_bench_time(&j, &median, &best);
    *gflops = j.flops / best * 1e-9;
    tb_bench_close(&j);
    return s;
}

/* The line "model name : ..." of Linux, where there is one. */
static void cpu_name(char *out, size_t cap)
{
    char text[4096];
    int f = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = f < 0 ? 0 : read(f, text, sizeof text - 1);
    if (f >= 0)
        close(f);
    text[n > 0 ? n : 0] = '\0';
    const char *p = strstr(text, "model name");
    p = p ? strchr(p, ':') : NULL;
    p = p ? p + 1 + strspn(p + 1, " \t") : "unknown";
    tb_format(out, cap, "%.*s", (int)strcspn(p, "\n"), p);
}

tb_status tb_bench_machine_measure(tb_ctx *ctx, tb_bench_machine *out)
{
    *out = (tb_bench_machine){.isa = tb_kern_get(ctx, TB_F32)->isa,
                              .threads = tb_threads_count(ctx)};
    cpu_name(out->cpu, sizeof out->cpu);
    TB_TRY(measure_copy(ctx, &out->stream_gbps));
    TB_TRY(measure_gemm(ctx, &out->gemm_gflops));
    tb_format(out->gemm, sizeof out->gemm, "%s", tb_gemm_name(ctx, TB_F32));
    return TB_OK;
}

/* --- a case -----------------------------------------------------------------
 */

tb_status tb_bench_run(tb_ctx *ctx, const char *name, tb_bench_result *out)
{
    parsed p;
    double best;
    tb_bench_job j = {.ctx = ctx};
    *out = (tb_bench_result){0};
    TB_TRY(parse(ctx, name, &p));
    tb_format(out->name, sizeof out->name, "%s", name);
    tb_status s = p.kind->open(&j, p.size, p.what);
    if (s == TB_OK)
        s = tb_bench_time(&j, &out->seconds, &best);
    if (s == TB_OK) {
        out->gbps = j.bytes / out->seconds * 1e-9;
        out->gflops = j.flops / out->seconds * 1e-9;
        out->tokens_per_s = j.tokens / out->seconds;
    }
    tb_bench_close(&j);
    return s;
}
