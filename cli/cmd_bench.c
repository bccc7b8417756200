/* SPDX-License-Identifier: MIT */
/* tollbooth bench: cases beside what the machine copies and multiplies. */
#include "cli.h"
#include "progress.h"
#include "tollbooth/bench.h"

#include <stdio.h>
#include <stdlib.h>

static const char words[] =
    "Without a CASE, a list of %zu. A CASE is one of\n%s\n"
    "Everything is measured in rounds, each case once in each, and so is the "
    "machine: streams past the caches (a copy; two arrays read and one "
    "written; two and two), a float product of 1024^3, and multiply and add "
    "in registers. Shares are of the stream with as many reads and writes, of "
    "the product, and of the registers (peak; of attention with what whole "
    "blocks on the diagonal do for nothing). What fits into a cache may be "
    "faster than a stream. Numbers are medians of the rounds, +- half the "
    "middle half of them. TB_THREADS=N and TB_ISA=ref|avx2|avx512|neon cap "
    "what runs; the first line says what did.";

static void write_words(char *out, size_t cap)
{
    char kinds[3072] = "";
    const char *form, *what;
    size_t used = 0;
    for (size_t i = 0; tb_bench_form(i, &form, &what); i++)
        used += (size_t)snprintf(kinds + used, sizeof kinds - used, "%s: %s.\n",
                                 form, what);
    snprintf(out, cap, words, tb_bench_count(), kinds);
}

/** What was measured. */
typedef struct bench {
    tb_bench_machine machine;
    size_t n;
    tb_bench_result *cases;
} bench;

static void show(void *user, size_t done, size_t total, const char *what)
{
    progress *bar = user;
    if (bar->terminal)
        progress_show(bar, done, total, 0, what);
}

static tb_status measure(tb_ctx *ctx, bench *b, char **names, size_t rounds)
{
    progress bar;
    const char **list = calloc(b->n, sizeof *list);
    if (!list)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < b->n; i++)
        list[i] = names ? names[i] : tb_bench_name(i);
    const tb_bench spec = {list, b->n, rounds, show, &bar};
    progress_begin(&bar, "bench", false);
    tb_status s = tb_bench_run(ctx, &spec, &b->machine, b->cases);
    progress_end(&bar);
    free(list);
    return s;
}

/* --- JSON -------------------------------------------------------------------
 */

static const char *const streams[TB_BENCH_STREAMS] = {
    [TB_BENCH_COPY] = "copy",
    [TB_BENCH_2R1W] = "2r1w",
    [TB_BENCH_2R2W] = "2r2w",
};
static const char *const stream_keys[TB_BENCH_STREAMS] = {
    [TB_BENCH_COPY] = "stream_gbps",
    [TB_BENCH_2R1W] = "stream_2r1w_gbps",
    [TB_BENCH_2R2W] = "stream_2r2w_gbps",
};

static void rates_json(tb_json *j, const tb_bench_machine *m,
                       const tb_bench_result *r)
{
    if (r->gbps > 0) {
        tb_json_number(j, "gbps", r->gbps);
        tb_json_string(j, "stream", streams[r->stream]);
        tb_json_number(j, "share_of_stream",
                       r->gbps / m->stream_gbps[r->stream]);
    }
    if (r->gflops > 0) {
        tb_json_number(j, "gflops", r->gflops);
        tb_json_number(j, "share_of_gemm", r->gflops / m->gemm_gflops);
        tb_json_number(j, "share_of_peak", r->gflops / m->peak_gflops);
    }
    if (r->executed_gflops > 0) {
        tb_json_number(j, "executed_gflops", r->executed_gflops);
        tb_json_number(j, "executed_share_of_peak",
                       r->executed_gflops / m->peak_gflops);
    }
    if (r->tokens_per_s > 0)
        tb_json_number(j, "tokens_per_s", r->tokens_per_s);
    if (r->memory > 0)
        tb_json_number(j, "memory", r->memory);
}

static void machine_json(tb_json *j, const tb_bench_machine *m)
{
    tb_json_object(j, "machine");
    tb_json_string(j, "cpu", m->cpu);
    tb_json_string(j, "isa", m->isa);
    tb_json_string(j, "gemm", m->gemm);
    if (*m->gemm_bf16)
        tb_json_string(j, "gemm_bf16", m->gemm_bf16);
    tb_json_int(j, "threads", m->threads);
    for (size_t i = 0; i < TB_BENCH_STREAMS; i++)
        tb_json_number(j, stream_keys[i], m->stream_gbps[i]);
    tb_json_number(j, "gemm_gflops", m->gemm_gflops);
    tb_json_number(j, "peak_gflops", m->peak_gflops);
    tb_json_end(j);
}

static int as_json(tb_ctx *ctx, const bench *b)
{
    tb_json *j;
    if (tb_json_create(ctx, &j) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_json_object(j, NULL);
    tb_json_string(j, "tollbooth", TB_VERSION);
    machine_json(j, &b->machine);
    tb_json_int(j, "rounds", (int64_t)b->machine.rounds);
    tb_json_array(j, "cases");
    for (size_t i = 0; i < b->n; i++) {
        const tb_bench_result *r = &b->cases[i];
        tb_json_object(j, NULL);
        tb_json_string(j, "case", r->name);
        tb_json_number(j, "seconds", r->seconds);
        tb_json_number(j, "best", r->best);
        tb_json_number(j, "noise", r->noise);
        rates_json(j, &b->machine, r);
        tb_json_end(j);
    }
    tb_json_end(j);
    tb_json_end(j);
    return print_json(ctx, j, 0);
}

/* --- text -------------------------------------------------------------------
 */

enum { COLUMNS = 9 };
typedef char cell[TB_SHOW_CHARS];

static void share_cell(double rate, double of, cell *out)
{
    if (rate > 0)
        snprintf(*out, sizeof *out, "%.0f %%", 100 * rate / of);
}

static void row_cells(const bench *b, const tb_bench_result *r, cell *text,
                      const char **cells)
{
    const tb_bench_machine *m = &b->machine;
    double executed = r->executed_gflops > 0 ? r->executed_gflops : r->gflops;
    tb_show_number(1e3 * r->seconds, text[1]);
    snprintf(text[2], sizeof text[2], "%.0f %%", 100 * r->noise);
    if (r->gbps > 0)
        tb_show_number(r->gbps, text[3]);
    share_cell(r->gbps, m->stream_gbps[r->stream], &text[4]);
    if (r->gflops > 0)
        tb_show_number(r->gflops, text[5]);
    share_cell(r->gflops, m->gemm_gflops, &text[6]);
    share_cell(executed, m->peak_gflops, &text[7]);
    if (r->tokens_per_s > 0)
        snprintf(text[8], sizeof text[8], "%.0f", r->tokens_per_s);
    cells[0] = r->name;
    for (size_t c = 1; c < COLUMNS; c++)
        cells[c] = text[c];
}

static tb_status table(tb_ctx *ctx, const bench *b, cell *text,
                       const char **cells, const tb_terminal *term, tb_out *out)
{
    static const tb_column columns[COLUMNS] = {
        {"case", TB_LEFT, 0, false},        {"ms", TB_RIGHT, 0, false},
        {"+-", TB_RIGHT, 2, false},         {"GB/s", TB_RIGHT, 2, false},
        {"of stream", TB_RIGHT, 1, false},  {"GFLOP/s", TB_RIGHT, 2, false},
        {"of product", TB_RIGHT, 1, false}, {"of peak", TB_RIGHT, 1, false},
        {"tokens/s", TB_RIGHT, 1, false},
    };
    for (size_t i = 0; i < b->n; i++)
        row_cells(b, &b->cases[i], text + COLUMNS * i, cells + COLUMNS * i);
    tb_table t = {.columns = columns,
                  .n_columns = COLUMNS,
                  .cells = cells,
                  .n_rows = b->n};
    return tb_table_term(ctx, &t, term, out);
}

static tb_status machine(const tb_bench_machine *m, const tb_terminal *term,
                         tb_out *out)
{
    char line[512];
    snprintf(line, sizeof line, "%s, %d thread%s, kernels %s, products %s",
             m->cpu, m->threads, m->threads == 1 ? "" : "s", m->isa, m->gemm);
    tb_status s = tb_text_term(line, 2, term, out);
    snprintf(line, sizeof line, "bf16 products %s", m->gemm_bf16);
    if (s == TB_OK && *m->gemm_bf16)
        s = tb_text_term(line, 2, term, out);
    snprintf(line, sizeof line,
             "streams %.1f (copy), %.1f (2 read, 1 written), %.1f GB/s (2, 2); "
             "product %.0f, peak %.0f GFLOP/s; %zu round%s",
             m->stream_gbps[TB_BENCH_COPY], m->stream_gbps[TB_BENCH_2R1W],
             m->stream_gbps[TB_BENCH_2R2W], m->gemm_gflops, m->peak_gflops,
             m->rounds, m->rounds == 1 ? "" : "s");
    if (s == TB_OK)
        s = tb_text_term(line, 2, term, out);
    return s == TB_OK ? tb_out_put(out, "\n") : s;
}

static int as_text(tb_ctx *ctx, const bench *b)
{
    cell *text = calloc(COLUMNS * b->n, sizeof *text);
    const char **cells = calloc(COLUMNS * b->n, sizeof *cells);
    const tb_terminal term = terminal_of(true);
    tb_out *out = NULL;
    tb_status s = text && cells ? tb_out_create(ctx, &out) : TB_ERR_MEMORY;
    if (s == TB_OK)
        s = machine(&b->machine, &term, out);
    if (s == TB_OK)
        s = table(ctx, b, text, cells, &term, out);
    if (s == TB_OK)
        fputs(tb_out_str(out), stdout);
    tb_out_destroy(out);
    free(text);
    free(cells);
    return s == TB_OK ? finish(0) : die(ctx, s);
}

int cmd_bench(tb_ctx *ctx, int argc, char **argv)
{
    bool json = false;
    size_t rounds = 0;
    char detail[4096];
    const opt_usage usage = {
        .name = "bench",
        .operands = "[CASE...]",
        .summary = "what this machine reaches, beside what it could",
        .detail = detail,
        .example = "bench norm:4096x384:fwd step:L4d64T64B8V65:f32",
        .min = 0,
        .max = -1,
    };
    const opt opts[] = {
        {"rounds", OPT_SIZE, &rounds, "N",
         "measure each case so often (default 5 to 31, by time)", 0, 0},
        {"json", OPT_FLAG, &json, NULL, "print one JSON object", 0, 0},
        OPT_END,
    };
    write_words(detail, sizeof detail);
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    bench b = {.n = argc ? (size_t)argc : tb_bench_count()};
    b.cases = calloc(b.n, sizeof *b.cases);
    tb_status s =
        b.cases ? measure(ctx, &b, argc ? argv : NULL, rounds) : TB_ERR_MEMORY;
    int code = s != TB_OK ? die(ctx, s)
               : json     ? as_json(ctx, &b)
                          : as_text(ctx, &b);
    free(b.cases);
    return code;
}
