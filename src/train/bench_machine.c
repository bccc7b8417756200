/* SPDX-License-Identifier: MIT */
/* What the machine reaches at best: streams past the caches, a product, and
 * multiply and add in registers. */
#include "train/bench.h"

#include <fcntl.h>
#include <unistd.h>

#if defined(__SSE2__)
#    include <emmintrin.h>
#endif

/* --- streams ----------------------------------------------------------------
 */

enum {
    ARRAYS = 4,
    ARRAY_BYTES = 128 << 20,
    CHUNKS = 64,
    CHUNK_BYTES = ARRAY_BYTES / CHUNKS,
    /* arrays lie so far apart: not a multiple of a page, which would put lines
     * of the same number into the same few places of a cache */
    PITCH = ARRAY_BYTES + 67 * 64
};

/** Arrays a and b are read, y and z written. */
typedef struct streams {
    const char *a, *b;
    char *y, *z;
} streams;

/* Streaming stores where there are any: a plain store would read the line it
 * is about to overwrite. 16 bytes. */
#if defined(__SSE2__)
typedef __m128i piece;
#    define READ(p)     _mm_load_si128((const piece *)(const void *)(p))
#    define WRITE(p, x) _mm_stream_si128((piece *)(void *)(p), (x))
#    define JOIN(x, y)  _mm_xor_si128((x), (y))
#    define DONE()      _mm_sfence()
#else
typedef uint64_t piece __attribute__((vector_size(16)));
#    define READ(p)     (*(const piece *)(const void *)(p))
#    define WRITE(p, x) (*(piece *)(void *)(p) = (x))
#    define JOIN(x, y)  ((x) ^ (y))
#    define DONE()      ((void)0)
#endif

/* A line of 64 bytes at a time: half a line written is slow. */
#define EACH_LINE(i, k)                                                        \
    for (size_t i = chunk * CHUNK_BYTES, end = i + CHUNK_BYTES; i < end;       \
         i += 64)                                                              \
        for (size_t k = i; k < i + 64; k += 16)

static void copy_chunk(void *arg, size_t chunk)
{
    const streams *s = arg;
    EACH_LINE(i, k)
    WRITE(s->y + k, READ(s->a + k));
    DONE();
}

static void join_chunk(void *arg, size_t chunk)
{
    const streams *s = arg;
    EACH_LINE(i, k)
    WRITE(s->y + k, JOIN(READ(s->a + k), READ(s->b + k)));
    DONE();
}

static void both_chunk(void *arg, size_t chunk)
{
    const streams *s = arg;
    for (size_t i = chunk * CHUNK_BYTES, end = i + CHUNK_BYTES; i < end;
         i += 64) {
        piece sum[4], x[4];
        for (size_t k = 0; k < 4; k++) {
            x[k] = READ(s->a + i + 16 * k);
            sum[k] = JOIN(x[k], READ(s->b + i + 16 * k));
        }
        for (size_t k = 0; k < 4; k++)
            WRITE(s->y + i + 16 * k, sum[k]);
        for (size_t k = 0; k < 4; k++)
            WRITE(s->z + i + 16 * k, x[k]);
    }
    DONE();
}

static const struct {
    tb_chunk_fn chunk;
    size_t arrays;
} loops[TB_BENCH_STREAMS] = {
    [TB_BENCH_COPY] = {copy_chunk, 2},
    [TB_BENCH_2R1W] = {join_chunk, 3},
    [TB_BENCH_2R2W] = {both_chunk, 4},
};

static tb_status run_stream(tb_bench_job *j)
{
    tb_parallel(j->ctx, CHUNKS, loops[j->stream].chunk, j->state);
    return TB_OK;
}

static tb_status open_stream(tb_bench_job *j, tb_bench_stream kind, char *all)
{
    streams *s = tb_bench_memory(j, 1, sizeof *s);
    if (!s)
        return TB_ERR_MEMORY;
    *s = (streams){all, all + PITCH, all + 2 * (size_t)PITCH,
                   all + 3 * (size_t)PITCH};
    j->state = s;
    j->stream = kind;
    j->bytes = (double)loops[kind].arrays * ARRAY_BYTES;
    j->run = run_stream;
    return TB_OK;
}

void *tb_bench_arrays(tb_ctx *ctx)
{
    return tb_alloc(ctx, ARRAYS, PITCH);
}

/* --- registers --------------------------------------------------------------
 */

enum { PEAK_ROUNDS = 20000, PEAK_CHUNKS = 4 /* for each thread */ };

typedef struct peak {
    const char *isa;
    size_t chunks;
    float *out;
} peak;

static void peak_chunk(void *arg, size_t chunk)
{
    const peak *p = arg;
    tb_kern_peak(p->isa, PEAK_ROUNDS, &p->out[chunk]);
}

static tb_status run_peak(tb_bench_job *j)
{
    peak *p = j->state;
    tb_parallel(j->ctx, p->chunks, peak_chunk, p);
    return TB_OK;
}

static tb_status open_peak(tb_bench_job *j)
{
    peak *p = tb_bench_memory(j, 1, sizeof *p);
    if (!p)
        return TB_ERR_MEMORY;
    p->isa = tb_kern_get(j->ctx, TB_F32)->isa;
    p->chunks = PEAK_CHUNKS * (size_t)tb_threads_count(j->ctx);
    p->out = tb_bench_memory(j, p->chunks, sizeof *p->out);
    if (!p->out)
        return TB_ERR_MEMORY;
    j->flops =
        (double)p->chunks * tb_kern_peak(p->isa, PEAK_ROUNDS, &p->out[0]);
    j->state = p;
    j->run = run_peak;
    return TB_OK;
}

/* --- probes -----------------------------------------------------------------
 */

tb_status tb_bench_probe_open(tb_bench_job *j, size_t i, void *arrays)
{
    if (i < TB_BENCH_STREAMS)
        return open_stream(j, (tb_bench_stream)i, arrays);
    return i == TB_BENCH_STREAMS ? tb_bench_gemm(j, 1024, 1024, 1024)
                                 : open_peak(j);
}

void tb_bench_probe_give(size_t i, double rate, tb_bench_machine *m)
{
    if (i < TB_BENCH_STREAMS)
        m->stream_gbps[i] = rate;
    else
        *(i == TB_BENCH_STREAMS ? &m->gemm_gflops : &m->peak_gflops) = rate;
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

void tb_bench_machine_name(tb_ctx *ctx, tb_bench_machine *m)
{
    m->isa = tb_kern_get(ctx, TB_F32)->isa;
    m->threads = tb_threads_count(ctx);
    cpu_name(m->cpu, sizeof m->cpu);
    tb_format(m->gemm, sizeof m->gemm, "%s", tb_gemm_name(ctx, TB_F32));
}
