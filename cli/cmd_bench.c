/* SPDX-License-Identifier: MIT */
/* tollbooth bench: cases beside what the machine copies and multiplies. */
#include "cli.h"
#include "progress.h"
#include "tollbooth/bench.h"

#include <stdio.h>
#include <stdlib.h>

static const opt_usage usage = {
    .name = "bench",
    .operands = "[CASE...]",
    .summary = "what this machine reaches, beside what it could",
    .detail =
        "A CASE is norm:RxD:fwd, norm:RxD:bwd, addnorm:RxD:fwd, gemm:MxKxN:f32,"
        " attn:BxTxHxW:fwd, attn:BxTxHxW:fwdbwd (B rows of T tokens, H heads of"
        " width W) or step:L6d384T256B12V65:f32 (a whole update: depth, width,"
        " tokens, rows, vocabulary). Without one, a list of eleven.\n\n"
        "Shares are of a copy of 256 MiB and of a float product of 1024^3, "
        "both measured in the same run, before and, where it took five "
        "seconds, "
        "after the cases: the better counts. What fits into a cache may be "
        "faster "
        "than the copy. Seconds are the median of the runs.",
    .example = "bench norm:4096x384:fwd attn:12x256x6x64:fwd",
    .min = 0,
    .max = -1,
};

/** What was measured. */
typedef struct bench {
    tb_bench_machine machine;
    size_t n;
    tb_bench_result *cases;
} bench;

static tb_status check(tb_ctx *ctx, size_t n, char **names)
{
    for (size_t i = 0; i < n; i++) {
        tb_status s = tb_bench_check(ctx, names[i]);
        if (s != TB_OK)
            return s;
    }
    return TB_OK;
}

/* Others may have used the machine in the first second of a long run: what it
 * reaches is measured again, and the better counts. */
static tb_status measure_again(tb_ctx *ctx, tb_bench_machine *m)
{
    tb_bench_machine again;
    tb_status s = tb_bench_machine_measure(ctx, &again);
    if (s != TB_OK)
        return s;
    if (again.stream_gbps > m->stream_gbps)
        m->stream_gbps = again.stream_gbps;
    if (again.gemm_gflops > m->gemm_gflops)
        m->gemm_gflops = again.gemm_gflops;
    return TB_OK;
}

static void show(progress *bar, size_t done, size_t total, const char *what)
{
    if (bar->terminal)
        progress_show(bar, done, total, 0, what);
}

/* names NULL: the list of the library */
static tb_status measure(tb_ctx *ctx, bench *b, char **names)
{
    progress bar;
    double start = seconds_now();
    progress_begin(&bar, "bench", false);
    show(&bar, 0, b->n, "copy and product");
    tb_status s = tb_bench_machine_measure(ctx, &b->machine);
    for (size_t i = 0; i < b->n && s == TB_OK; i++) {
        const char *name = names ? names[i] : tb_bench_name(i);
        show(&bar, i, b->n, name);
        s = tb_bench_run(ctx, name, &b->cases[i]);
    }
    show(&bar, b->n, b->n, "copy and product");
    if (s == TB_OK && seconds_now() - start > 5)
        s = measure_again(ctx, &b->machine);
    progress_end(&bar);
    return s;
}

/* --- JSON -------------------------------------------------------------------
 */

static void case_json(tb_json *j, const bench *b, const tb_bench_result *r)
{
    tb_json_object(j, NULL);
    tb_json_string(j, "case", r->name);
    tb_json_number(j, "seconds", r->seconds);
    if (r->gbps > 0) {
        tb_json_number(j, "gbps", r->gbps);
        tb_json_number(j, "share_of_stream", r->gbps / b->machine.stream_gbps);
    }
    if (r->gflops > 0) {
        tb_json_number(j, "gflops", r->gflops);
        tb_json_number(j, "share_of_gemm", r->gflops / b->machine.gemm_gflops);
    }
    if (r->tokens_per_s > 0)
        tb_json_number(j, "tokens_per_s", r->tokens_per_s);
    tb_json_end(j);
}

static int as_json(tb_ctx *ctx, const bench *b)
{
    tb_json *j;
    const tb_bench_machine *m = &b->machine;
    if (tb_json_create(ctx, &j) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_json_object(j, NULL);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_object(j, "machine");
    tb_json_string(j, "cpu", m->cpu);
    tb_json_string(j, "isa", m->isa);
    tb_json_string(j, "gemm", m->gemm);
    tb_json_int(j, "threads", m->threads);
    tb_json_number(j, "stream_gbps", m->stream_gbps);
    tb_json_number(j, "gemm_gflops", m->gemm_gflops);
    tb_json_end(j);
    tb_json_array(j, "cases");
    for (size_t i = 0; i < b->n; i++)
        case_json(j, b, &b->cases[i]);
    tb_json_end(j);
    tb_json_end(j);
    return print_json(ctx, j, 0);
}

/* --- text -------------------------------------------------------------------
 */

enum { COLUMNS = 7 };
typedef char cell[TB_SHOW_CHARS];

/* A rate and its share of the machine's; empty where it does not apply. */
static void rate_cells(double rate, double of, cell *out)
{
    if (rate <= 0)
        return;
    tb_show_number(rate, out[0]);
    snprintf(out[1], sizeof out[1], "%.0f %%", 100 * rate / of);
}

static void row_cells(const bench *b, const tb_bench_result *r, cell *text,
                      const char **cells)
{
    tb_show_number(1e3 * r->seconds, text[1]);
    rate_cells(r->gbps, b->machine.stream_gbps, text + 2);
    rate_cells(r->gflops, b->machine.gemm_gflops, text + 4);
    if (r->tokens_per_s > 0)
        snprintf(text[6], sizeof text[6], "%.0f", r->tokens_per_s);
    cells[0] = r->name;
    for (size_t c = 1; c < COLUMNS; c++)
        cells[c] = text[c];
}

static tb_status table(tb_ctx *ctx, const bench *b, cell *text,
                       const char **cells)
{
    static const tb_column columns[COLUMNS] = {
        {"case", TB_LEFT, 0, false},      {"ms", TB_RIGHT, 0, false},
        {"GB/s", TB_RIGHT, 2, false},     {"of copy", TB_RIGHT, 1, false},
        {"GFLOP/s", TB_RIGHT, 2, false},  {"of product", TB_RIGHT, 1, false},
        {"tokens/s", TB_RIGHT, 1, false},
    };
    tb_terminal term = terminal_of(true);
    tb_out *out;
    for (size_t i = 0; i < b->n; i++)
        row_cells(b, &b->cases[i], text + COLUMNS * i, cells + COLUMNS * i);
    tb_table t = {.columns = columns,
                  .n_columns = COLUMNS,
                  .cells = cells,
                  .n_rows = b->n};
    tb_status s = tb_out_create(ctx, &out);
    if (s != TB_OK)
        return s;
    s = tb_table_term(ctx, &t, &term, out);
    if (s == TB_OK)
        fputs(tb_out_str(out), stdout);
    tb_out_destroy(out);
    return s;
}

static int as_text(tb_ctx *ctx, const bench *b)
{
    const tb_bench_machine *m = &b->machine;
    cell *text = calloc(COLUMNS * b->n, sizeof *text);
    const char **cells = calloc(COLUMNS * b->n, sizeof *cells);
    printf("%s, %d thread%s, kernels %s, products %s\n"
           "copy %.1f GB/s, product %.0f GFLOP/s\n\n",
           m->cpu, m->threads, m->threads == 1 ? "" : "s", m->isa, m->gemm,
           m->stream_gbps, m->gemm_gflops);
    tb_status s = text && cells ? table(ctx, b, text, cells) : TB_ERR_MEMORY;
    free(text);
    free(cells);
    return s == TB_OK ? finish(0) : die(ctx, s);
}

int cmd_bench(tb_ctx *ctx, int argc, char **argv)
{
    bool json = false;
    const opt opts[] = {
        {"json", OPT_FLAG, &json, NULL, "print one JSON object", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    bench b = {.n = argc ? (size_t)argc : tb_bench_count()};
    tb_status s = check(ctx, (size_t)argc, argv);
    if (s != TB_OK)
        return die(ctx, s);
    b.cases = calloc(b.n, sizeof *b.cases);
    s = b.cases ? measure(ctx, &b, argc ? argv : NULL) : TB_ERR_MEMORY;
    int code = s != TB_OK ? die(ctx, s)
               : json     ? as_json(ctx, &b)
                          : as_text(ctx, &b);
    free(b.cases);
    return code;
}
