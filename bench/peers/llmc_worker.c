/* SPDX-License-Identifier: MIT */
/* Training steps of a user's own llm.c, by plain use of its functions: a
 * process that reads lines "CASE THREADS" and answers each with the seconds of
 * one step, or with "none". Built by bench/peers/run with LLMC, the path of
 * that train_gpt2.c, and LLMC_VERSION, that of the files it reads:
 * cc -Ofast -march=native -fopenmp llmc_worker.c -lm */
#define TESTING /* no main of its own */
#include LLMC

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct step {
    char name[64];
    GPT2 model;
    int batch, time, number;
    int *ids, *targets;
} step;

static double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A model file of small random numbers, as its loader wants it. */
static void write_model(const char *path, int L, int d, int T, int V)
{
    int header[256] = {20240326, LLMC_VERSION,          T, V,
                       L,        d >= 256 ? d / 64 : 4, d};
    int rows = LLMC_VERSION >= 3 ? (V + 127) / 128 * 128 : V;
    size_t n = (size_t)rows * d + (size_t)T * d +
               (size_t)L * (12 * (size_t)d * d + 13 * (size_t)d) +
               2 * (size_t)d;
    unsigned bits = 1;
    FILE *f = fopen(path, "wb");
    header[7] = rows;
    fwrite(header, sizeof *header, 256, f);
    for (size_t i = 0; i < n; i++) {
        bits = bits * 1664525u + 1013904223u;
        float x = 0.02f * ((float)(bits >> 8) / (float)(1 << 24) - 0.5f);
        fwrite(&x, sizeof x, 1, f);
    }
    fclose(f);
}

static void run(step *s)
{
    gpt2_forward(&s->model, s->ids, s->targets, s->batch, s->time);
    gpt2_zero_grad(&s->model);
    gpt2_backward(&s->model);
    gpt2_update(&s->model, 1e-4f, 0.9f, 0.95f, 1e-8f, 0.1f, ++s->number);
}

/* Built and run once: it takes its memory on the way. */
static step *find(const char *name)
{
    static step cases[8];
    static int n;
    char path[4096];
    int L, d, T, B, V, end = 0;
    for (int i = 0; i < n; i++)
        if (!strcmp(cases[i].name, name))
            return &cases[i];
    if (n == 8 || strlen(name) >= sizeof cases[0].name ||
        sscanf(name, "step:L%dd%dT%dB%dV%d:f32%n", &L, &d, &T, &B, &V, &end) !=
            5 ||
        name[end] || end == 0)
        return NULL;
    step *s = &cases[n++];
    strcpy(s->name, name);
    snprintf(path, sizeof path, "%s/model-XXXXXX", getenv("TMPDIR"));
    close(mkstemp(path));
    write_model(path, L, d, T, V);
    gpt2_build_from_checkpoint(&s->model, path);
    unlink(path);
    s->batch = B;
    s->time = T;
    s->ids = malloc(2 * (size_t)B * T * sizeof *s->ids);
    s->targets = s->ids + B * T;
    for (int i = 0; i < 2 * B * T; i++)
        s->ids[i] = (int)((unsigned)i * 2654435761u % (unsigned)V);
    run(s);
    return s;
}

int main(void)
{
    char name[128];
    int threads;
    FILE *out = fdopen(dup(1), "w"); /* the library prints what it does */
    if (!out || !freopen("/dev/null", "w", stdout))
        return 1;
    fprintf(out, "ready llm.c\n");
    fflush(out);
    while (scanf("%127s %d", name, &threads) == 2) {
        omp_set_num_threads(threads);
        step *s = find(name);
        double start = clock_now();
        if (s)
            run(s);
        if (s)
            fprintf(out, "%.9g\n", clock_now() - start);
        else
            fprintf(out, "none\n");
        fflush(out);
    }
    return 0;
}
