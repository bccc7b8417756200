/* SPDX-License-Identifier: MIT */
/* Layer normalization in oneDNN, by plain use of its C functions: a process
 * that reads lines "CASE THREADS" and answers each with the seconds of one
 * sample, or with "none" for a case it has not. Built by bench/peers/run:
 * cc -O2 -fopenmp dnnl_worker.c -ldnnl */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <oneapi/dnnl/dnnl.h>

#if DNNL_VERSION_MAJOR != 2
#    error "written for oneDNN 2: later ones have no operation descriptors"
#endif

enum { X, MEAN, VARIANCE, SCALE, SHIFT, Y, DY, DX, DSCALE, DSHIFT, TENSORS };

static const int argument[TENSORS] = {
    DNNL_ARG_SRC,        DNNL_ARG_MEAN,     DNNL_ARG_VARIANCE,
    DNNL_ARG_SCALE,      DNNL_ARG_SHIFT,    DNNL_ARG_DST,
    DNNL_ARG_DIFF_DST,   DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_SCALE,
    DNNL_ARG_DIFF_SHIFT,
};

typedef struct norm {
    char name[64];
    int what; /* 0 forward, 1 backward */
    dnnl_primitive_t run[2];
    dnnl_exec_arg_t args[TENSORS];
} norm;

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void must(dnnl_status_t s, const char *what)
{
    if (s == dnnl_success)
        return;
    printf("error oneDNN: %s: status %d\n", what, (int)s);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- one case ------------------------------------------------------------- */

static void fill(dnnl_memory_t m, size_t n)
{
    void *p;
    unsigned bits = 1;
    must(dnnl_memory_get_data_handle(m, &p), "handle");
    for (size_t i = 0; i < n; i++) {
        bits = bits * 1664525u + 1013904223u;
        ((float *)p)[i] = (float)(bits >> 8) / (float)(1 << 24) - 0.5f;
    }
}

static void tensors(norm *c, long rows, long d)
{
    const dnnl_dims_t all = {rows, d}, row = {rows}, col = {d};
    dnnl_memory_desc_t of[3];
    must(dnnl_memory_desc_init_by_tag(&of[0], 2, all, dnnl_f32, dnnl_ab), "x");
    must(dnnl_memory_desc_init_by_tag(&of[1], 1, row, dnnl_f32, dnnl_a),
         "mean");
    must(dnnl_memory_desc_init_by_tag(&of[2], 1, col, dnnl_f32, dnnl_a),
         "gain");
    for (int i = 0; i < TENSORS; i++) {
        int kind = i == MEAN || i == VARIANCE                               ? 1
                   : i == SCALE || i == SHIFT || i == DSCALE || i == DSHIFT ? 2
                                                                            : 0;
        c->args[i].arg = argument[i];
        must(dnnl_memory_create(&c->args[i].memory, &of[kind], engine,
                                DNNL_MEMORY_ALLOCATE),
             "memory");
        fill(c->args[i].memory, (size_t)(kind == 0   ? rows * d
                                         : kind == 1 ? rows
                                                     : d));
    }
}

static void primitives(norm *c, long rows, long d)
{
    const dnnl_dims_t all = {rows, d}, row = {rows};
    const unsigned flags = dnnl_use_scale | dnnl_use_shift;
    dnnl_memory_desc_t x, stat;
    dnnl_layer_normalization_desc_t fwd, bwd;
    dnnl_primitive_desc_t pf, pb;
    must(dnnl_memory_desc_init_by_tag(&x, 2, all, dnnl_f32, dnnl_ab), "x");
    must(dnnl_memory_desc_init_by_tag(&stat, 1, row, dnnl_f32, dnnl_a), "stat");
    must(dnnl_layer_normalization_forward_desc_init(&fwd, dnnl_forward_training,
                                                    &x, &stat, 1e-5f, flags),
         "forward");
    must(dnnl_primitive_desc_create(&pf, &fwd, NULL, engine, NULL), "forward");
    must(dnnl_primitive_create(&c->run[0], pf), "forward");
    must(dnnl_layer_normalization_backward_desc_init(&bwd, dnnl_backward, &x,
                                                     &x, &stat, 1e-5f, flags),
         "backward");
    must(dnnl_primitive_desc_create(&pb, &bwd, NULL, engine, pf), "backward");
    must(dnnl_primitive_create(&c->run[1], pb), "backward");
}

static void run(norm *c)
{
    must(dnnl_primitive_execute(c->run[c->what], stream, TENSORS, c->args),
         "execute");
    must(dnnl_stream_wait(stream), "wait");
}

static double timed(norm *c)
{
    double start = now(), spent = 0;
    long runs = 0;
    do {
        run(c);
        runs++;
        spent = now() - start;
    } while (spent < 30e-3);
    return spent / (double)runs;
}

/* A core that slept wakes late: first as much work that is not timed. */
static double sample(norm *c)
{
    timed(c);
    return timed(c);
}

/* --- lines in, seconds out ------------------------------------------------ */

/* Built and run once; a forward first, since backward reads its statistics. */
static norm *find(const char *name)
{
    static norm cases[32];
    static int n;
    long rows, d;
    char what[8];
    for (int i = 0; i < n; i++)
        if (!strcmp(cases[i].name, name))
            return &cases[i];
    if (n == 32 || strlen(name) >= sizeof cases[0].name ||
        sscanf(name, "norm:%ldx%ld:%7s", &rows, &d, what) != 3 ||
        (strcmp(what, "fwd") != 0 && strcmp(what, "bwd") != 0))
        return NULL;
    norm *c = &cases[n++];
    strcpy(c->name, name);
    tensors(c, rows, d);
    primitives(c, rows, d);
    run(c);
    c->what = !strcmp(what, "bwd");
    run(c);
    return c;
}

int main(void)
{
    char name[128];
    int threads;
    const dnnl_version_t *v = dnnl_version();
    must(dnnl_engine_create(&engine, dnnl_cpu, 0), "engine");
    must(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags),
         "stream");
    printf("ready oneDNN %d.%d.%d\n", v->major, v->minor, v->patch);
    fflush(stdout);
    while (scanf("%127s %d", name, &threads) == 2) {
        omp_set_num_threads(threads);
        norm *c = find(name);
        if (c)
            printf("%.9g\n", sample(c));
        else
            printf("none\n");
        fflush(stdout);
    }
    return 0;
}
